"""Columns of data frames, of pandas and polars alike, and what they hold (internal)."""

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from rskc.exceptions import ParameterError
from rskc.utils.wording import shortened

NUMBERS, CATEGORY = "numbers", "category"
# Types of columns, by the beginnings of their names.
DATES = ("datetime", "date", "timedelta", "duration", "time", "period")
SAMPLE = 2000  # cells by which a column of text is judged
TEXT = ("object", "str", "string")
CATEGORIES = ("category", "categorical", "enum", "bool")


def column_names(X: Any) -> list[str]:
    """Return the names of the columns, x0, x1, ... of an array."""
    names = getattr(X, "columns", None)
    return [f"x{j}" for j in range(X.shape[1])] if names is None else [str(name) for name in names]


def column(X: Any, j: Any) -> Any:
    """Return a column, or several, of a frame of pandas or polars, or of an array."""
    return X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]


def places_of(parameter: str, given: Any, names: Sequence[str]) -> list[int]:
    """Return the numbers of columns that a parameter gives by name or number."""
    places = []
    for name in [given] if isinstance(given, str | Integral) else () if given is None else given:
        place = int(name) if isinstance(name, Integral) else -1
        if place < 0 and str(name) in names:
            place = list(names).index(str(name))
        if not 0 <= place < len(names):
            raise ParameterError(parameter, name, "is no column of {X}.")
        places.append(place)
    return places


def kinds_of(X: Any) -> list[str]:
    """Return what columns of a table hold: "numbers", "category", "dates" or "mixed"."""
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None:
        dtypes = ["object" if X.dtype.kind in "OUS" else "numbers"] * X.shape[1]
    return [_kind(str(dtype).lower(), X, j) for j, dtype in enumerate(dtypes)]


def _kind(dtype: str, X: Any, j: int) -> str:
    if dtype.startswith(DATES):
        return "dates"
    if dtype.startswith(CATEGORIES):
        return CATEGORY
    if dtype.startswith("complex"):
        return "complex numbers"
    if not dtype.startswith(TEXT):
        return NUMBERS
    if len(X) == 0:  # the head of a Dask dataframe
        return CATEGORY if dtype.startswith("str") else "cells of any type"
    seen = [value for value in cells_of(column(X, j)) if not is_missing(value)]
    if seen and all(isinstance(value, bool | np.bool_) for value in seen):
        return CATEGORY
    try:
        np.asarray(seen, float)
    except (TypeError, ValueError):
        if any(hasattr(value, "isoformat") for value in seen):
            return "dates"
        if not all(isinstance(value, str) for value in seen):
            return "mixed"
        # Words may stand among numbers in text, as "unknown" does in a column of a CSV file.
        read = list(map(as_number, seen[:: len(seen) // SAMPLE + 1]))
        return "mixed" if 2 * read.count(None) < len(read) else CATEGORY
    return NUMBERS


def as_number(text: str) -> float | None:
    """Return a text as a number, None if it reads as none."""
    try:
        return float(text)
    except ValueError:
        return None


def refusal(bad: Mapping[str, str]) -> str:
    """Say which columns hold what is no number and no category."""
    words = {"mixed": "both numbers and text", "category": "text"}
    named = [f"{shortened(name, 60)!r} ({words.get(kind, kind)})" for name, kind in bad.items()]
    return (
        f"X has columns that are not numbers: {', '.join(named[:5])}; leave them out, or make "
        "numbers of them first."
    )


def cells_of(values: Any) -> list[Any]:
    """Return the cells of a column."""
    return values.to_list() if hasattr(values, "to_list") else list(values)


def is_missing(value: Any) -> bool:
    """Whether a cell is missing: None, NaN, NA."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def codes_of(values: Any) -> tuple[np.ndarray, list[str]]:
    """Return the cells of a column as numbers of texts, -1 where missing, and these texts."""
    import pandas as pd

    cells = values if hasattr(values, "iloc") else np.array(cells_of(values), object)
    codes, found = pd.factorize(cells)
    places: dict[str, int] = {}
    numbers = [places.setdefault(text_of(value), len(places)) for value in found]
    return np.array([*numbers, -1])[codes], list(places)


def text_of(value: Any) -> str:
    """Return a category as text; whole numbers without a point, whatever type they have."""
    if isinstance(value, float | np.floating) and value.is_integer():
        value = int(value)
    return str(value)


def numbers_of(name: str, values: Any) -> np.ndarray:
    """Return a column of numbers, NaN where missing; ValueError if it holds others."""
    try:
        if hasattr(values, "iloc"):
            return values.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.array([np.nan if v is None else v for v in cells_of(values)], np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"Column {shortened(name, 60)!r} of X holds text, and held numbers in the fit."
        ) from None
