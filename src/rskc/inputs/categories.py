"""Columns of categories as numbers: an indicator for each category, scaled so that all count alike.

The indicator of a category with share p_l is divided by the root of p_l, as in correspondence
analysis, and by the root of the number of categories less 1: a rare category is farther from the
others than a frequent one. A column of categories would then have variance 1, and would count more
than a standardized number: two clusters can explain all of two categories, and of a normal number
cut at its median no more than 2 / pi. So its variance is made 2 / pi, and both count alike.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from rskc.exceptions import warn_user
from rskc.inputs.arrays import check_sample_weight, is_dask, to_numpy
from rskc.inputs.columns import are_names
from rskc.inputs.frames import (
    CATEGORY,
    NUMBERS,
    cells_of,
    codes_of,
    column,
    column_names,
    is_missing,
    kinds_of,
    numbers_of,
    places_of,
    refusal,
    text_of,
)
from rskc.solver.groups import FeatureGroups, check_groups
from rskc.utils.wording import count, listed, percent, quoted, shortened

__all__ = ["CategoryEncoder"]

ORDINAL = "ordinal"
MOST_IN_BLOCKS = 10_000  # categories of a column that is read in blocks
MOST_SHARES = 4  # of the categories of a center that are written
# The variance of a category. With 1, columns of two values that tell nothing lead: in mixed tables
# with clusters in the numbers the mean error rate was 0.19 to 0.45, and 0.04 to 0.10 with this.
VARIANCE = 2 / np.pi


class Tally(NamedTuple):
    """What the cells of a column hold that are not missing: what each text counts, and how many."""

    masses: Counter[str]
    n: int


class ColumnCode(NamedTuple):
    """How a column becomes numbers."""

    kind: str
    categories: tuple[str, ...] = ()
    scales: tuple[float, ...] = ()  # of indicators; of ranks, one
    center: float = 0.0  # of ranks

    @classmethod
    def of_categories(cls, name: str, tally: Tally) -> ColumnCode:
        """Make indicators of a column."""
        masses = dict(sorted(tally.masses.items()))
        if are_names(tally.n, len(masses)):
            raise ValueError(
                f"Column {shortened(name, 60)!r} of X has "
                f"{count(len(masses), 'category', 'categories')} in {count(tally.n, 'case')}: "
                "they name the cases rather than group them; leave the column out."
            )
        total, spread = sum(masses.values()), max(len(masses) - 1, 1)
        scales = (np.sqrt(VARIANCE * total / (mass * spread)) for mass in masses.values())
        return cls(CATEGORY, tuple(masses), tuple(map(float, scales)))

    @classmethod
    def of_ranks(cls, name: str, tally: Tally, order: list[str] | None) -> ColumnCode:
        """Make standardized ranks of a column; ``order`` has its categories, None if not known."""
        short = shortened(name, 60)
        if order is None:
            raise ValueError(
                f"ordinal has column {short!r}, whose categories have no order; give them in "
                f"order: ordinal={{{short!r}: [...]}}."
            )
        if extra := sorted(set(tally.masses) - set(order)):
            raise ValueError(f"ordinal does not have {quoted(extra)} of column {short!r}.")
        if not tally.masses:
            return cls(ORDINAL, tuple(order), (1.0,))
        places = {text: i + 1 for i, text in enumerate(order)}
        ranks = np.array([places[text] for text in tally.masses], float)
        weights = np.array(list(tally.masses.values()))
        center = float(np.average(ranks, weights=weights))
        deviation = np.sqrt(np.average((ranks - center) ** 2, weights=weights))
        return cls(ORDINAL, tuple(order), (1 / deviation if deviation else 1.0,), center)

    @property
    def width(self) -> int:
        """Number of features."""
        return max(len(self.scales), 1)

    @property
    def masses(self) -> np.ndarray:
        """The share of each feature in the variance of the column."""
        if self.kind != CATEGORY or len(self.categories) < 2:
            return np.ones(self.width)
        scales = np.array(self.scales)
        shares = VARIANCE / (scales**2 * (len(scales) - 1))
        return (1 - shares) / (len(scales) - 1)

    def names(self, name: str) -> list[str]:
        """Return the names of the features of a column with this name."""
        if self.kind != CATEGORY or not self.categories:
            return [str(name)]
        return [f"{name} = {category}" for category in self.categories]

    def coded(self, codes: np.ndarray, texts: list[str]) -> tuple[np.ndarray, list[str]]:
        """Return the features (n, width) of a column, and the categories that are not known.

        Its cells are numbers of the texts, -1 where missing.
        """
        numbers = {text: i for i, text in enumerate(self.categories)}
        places = np.array([*(numbers.get(text, -1) for text in texts), -2])[codes]
        unknown = [texts[i] for i in dict.fromkeys(codes[places == -1].tolist())]
        if self.kind == ORDINAL:
            ranks = np.where(places < 0, np.nan, places + 1.0)
            return ((ranks - self.center) * self.scales[0])[:, None], unknown
        part = np.zeros((len(codes), self.width))
        if len(self.categories) > 1:  # one category alone tells nothing
            rows = np.flatnonzero(places >= 0)
            part[rows, places[rows]] = np.array(self.scales)[places[rows]]
        part[places == -2] = np.nan
        return part, unknown

    def describe(self, center: np.ndarray) -> Any:
        """Return a center (width,): a number, a mean rank, or shares in words."""
        if self.kind == ORDINAL:
            return float(center[0] / self.scales[0] + self.center)
        if not self.scales:
            return float(center[0])
        if np.isnan(center).all():
            return ""
        shares = (center / np.array(self.scales)).round(6) if len(center) > 1 else np.ones(1)
        order = [i for i in np.argsort(-shares, kind="stable") if shares[i] >= 0.005]
        words = [f"{shortened(self.categories[i], 24)} {percent(shares[i])}" for i in order]
        return listed(words, MOST_SHARES)  # red 80%, blue 20%


class CategoryEncoder(TransformerMixin, BaseEstimator):
    """Make numbers of the columns of a table that hold categories.

    Each category of a column becomes an indicator, 1 or 0, divided by the root of its share of the
    cases, as in correspondence analysis, and by the root of the number of categories less 1, and
    multiplied by the root of 2 / pi: a column of categories then counts like one standardized
    number, of which two clusters explain 2 / pi at best. Numbers stay as they are.
    ``RobustSparseKMeans`` uses it for data frames that have such columns, with one weight for each.

    Parameters
    ----------
    categorical : sequence of str or int, default=None
        Columns of numbers that stand for categories, by name or number. Columns of text, of true
        and false, and of the categorical types of pandas and polars are categories anyway.
    ordinal : sequence of str or int, or mapping, default=None
        Columns whose categories have an order and are coded by rank, standardized. A mapping gives
        the categories in order; else it is that of an ordered type.

    Attributes
    ----------
    columns_ : list of ColumnCode
        How each column becomes numbers: ``kind`` ("numbers", "category" or "ordinal") and
        ``categories``.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Columns seen in ``fit``.

    Warns
    -----
    UserWarning
        In ``transform``, of categories that ``fit`` has not seen: they are none of the known ones
        (all indicators 0), and missing where categories have an order.

    Examples
    --------
    >>> import pandas as pd
    >>> from rskc.inputs.categories import CategoryEncoder
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "color": ["red", "red", "blue", "red"]})
    >>> encoder = CategoryEncoder().fit(frame)
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'color = blue', 'color = red']
    >>> encoder.transform(frame).round(3)
    array([[1.   , 0.   , 0.921],
           [2.   , 0.   , 0.921],
           [3.   , 1.596, 0.   ],
           [4.   , 0.   , 0.921]])
    """

    def __init__(self, categorical: Any = None, ordinal: Any = None):
        self.categorical = categorical
        self.ordinal = ordinal

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the categories of the columns, and their shares.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            The table.
        y : ignored
            There for the scikit-learn interface.
        sample_weight : array-like of shape (n_samples,), default=None
            Case weights, for the shares; None for equal weights. Categories of cases of
            weight 0 are not seen.

        Returns
        -------
        self : CategoryEncoder
        """
        X = self._checked(X, reset=True)
        head = X._meta if is_dask(X) else X
        names = column_names(X)
        ordinal: list[Any] = places_of("ordinal", self.ordinal, names)
        orders: dict[int, list[str] | None] = dict.fromkeys(ordinal)
        if isinstance(self.ordinal, Mapping):
            given = [[text_of(value) for value in order] for order in self.ordinal.values()]
            orders = dict(zip(ordinal, given, strict=True))
        asked = {*places_of("categorical", self.categorical, names), *orders}
        kinds = kinds_of(head)
        for j, name in enumerate(names):
            if kinds[j] not in (NUMBERS, CATEGORY) and j not in asked:
                raise ValueError(refusal({name: kinds[j]}))
        places = [j for j in range(len(names)) if j in asked or kinds[j] != NUMBERS]
        tallies = dict(zip(places, tallies_of(X, places, sample_weight), strict=True))
        self.columns_ = [ColumnCode(NUMBERS)] * len(names)
        for j, tally in tallies.items():
            if j in orders:
                order = orders[j] or _order_of_type(column(head, j))
                if order is None and kinds[j] == NUMBERS:
                    order = sorted(tally.masses, key=float)
                self.columns_[j] = ColumnCode.of_ranks(names[j], tally, order)
            else:
                self.columns_[j] = ColumnCode.of_categories(names[j], tally)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the table as numbers.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            The same columns.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features_out)
            NaN in all features of a column where its cell is missing.
        """
        check_is_fitted(self, "columns_")
        X = self._checked(X, reset=False)
        numbers, unknown = self.coded(X)
        if unknown:
            which = "; ".join(f"{quoted(new, 3, 40)} in {name!r}" for name, new in unknown.items())
            warn_user(
                f"X has categories that the fit has not seen, and that are treated as none of the "
                f"known ones: {which}."
            )
        return numbers

    def _checked(self, X: Any, reset: bool) -> Any:
        """Return a data frame as it is, or a checked array; keep or compare the columns."""
        if hasattr(X, "columns"):
            head = X._meta if is_dask(X) else X
            validate_data(self, head, reset=reset, skip_check_array=True)
            return X
        return validate_data(self, to_numpy(X), reset=reset, dtype=None, ensure_all_finite=False)

    def coded(self, X: Any) -> tuple[np.ndarray, dict[str, list[str]]]:
        """Return a table as numbers, and the categories that are not known, by column."""
        parts, unknown = [], {}
        for j, (name, code) in enumerate(zip(column_names(X), self.columns_, strict=True)):
            if code.kind == NUMBERS:
                part = numbers_of(name, column(X, j))[:, None]
            else:
                part, unknown[name] = code.coded(*codes_of(column(X, j)))
            parts.append(part)
        return np.hstack(parts), {name: new for name, new in unknown.items() if new}

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features: of a category, "column = category"."""
        check_is_fitted(self, "columns_")
        numbered = [f"x{j}" for j in range(len(self.columns_))]
        pairs = zip(getattr(self, "feature_names_in_", numbered), self.columns_, strict=True)
        return np.array([feature for name, code in pairs for feature in code.names(name)], object)

    # ---- What the estimator and its results need

    @property
    def columns(self) -> np.ndarray:
        """The column of each feature."""
        return np.repeat(np.arange(len(self.columns_)), [code.width for code in self.columns_])

    @property
    def first(self) -> np.ndarray:
        """The first feature of each column."""
        return np.searchsorted(self.columns, np.arange(len(self.columns_)))

    @property
    def units(self) -> np.ndarray:
        """What an indicator is multiplied by; 1 for numbers and ranks."""
        scales = (code.scales if code.kind == CATEGORY else () for code in self.columns_)
        return np.concatenate([each or (1.0,) for each in scales])

    @property
    def indicators(self) -> np.ndarray:
        """Whether each feature is an indicator."""
        return np.array([code.kind == CATEGORY for code in self.columns_])[self.columns]

    def groups(self, given: Any, names: np.ndarray | None) -> FeatureGroups:
        """Return the groups of features: those of columns, whose indicators share a weight."""
        if isinstance(given, FeatureGroups):  # of the numbers already
            return given
        p, columns = len(self.columns_), self.columns
        groups = check_groups([None] * p if given is None else given, names, p)
        parts, numbers = groups.parts[columns], groups.numbers[columns]
        masses = np.concatenate([code.masses for code in self.columns_])
        return replace(groups, numbers=numbers, columns=columns, masses=masses, parts=parts)

    def describe(self, centers: np.ndarray) -> list[list[Any]]:
        """Return a center (K, features) by columns: numbers, mean ranks, and shares in words."""
        parts = np.split(centers, self.first[1:], axis=1)
        pairs = zip(self.columns_, parts, strict=True)
        return list(
            map(list, zip(*(map(code.describe, part) for code, part in pairs), strict=True))
        )

    def by_category(self, numbers: np.ndarray) -> np.ndarray:
        """Return coded cases (n, features) by columns: the place of a category, or the number."""
        cells = np.array(numbers[:, self.first], np.float64)
        for j, (code, first) in enumerate(zip(self.columns_, self.first, strict=True)):
            if code.kind == ORDINAL:
                cells[:, j] = np.round(cells[:, j] / code.scales[0] + code.center) - 1
            elif code.kind == CATEGORY:
                indicators = np.nan_to_num(numbers[:, first : first + code.width])
                cells[:, j] = np.where(np.isnan(cells[:, j]), np.nan, indicators.argmax(axis=1))
        return cells

    @classmethod
    def from_plain(cls, columns: Any, names: np.ndarray | None = None) -> CategoryEncoder:
        """Return the encoder with ``columns_`` of lists of text and numbers, as in a file."""
        encoder = cls()
        encoder.columns_ = [
            ColumnCode(kind, tuple(categories), tuple(scales), center)
            for kind, categories, scales, center in columns
        ]
        encoder.n_features_in_ = len(encoder.columns_)
        if names is not None:
            encoder.feature_names_in_ = names
        return encoder


def tallies_of(X: Any, places: Sequence[int], sample_weight: Any) -> list[Tally]:
    """Return what columns of a table hold, without the cases of weight 0; Dask's are read once."""
    if is_dask(X):
        import dask

        parts = X[[X.columns[j] for j in places]].to_delayed()
        weights: list[Any] = [None] * len(parts)
        if sample_weight is not None:
            lengths = getattr(X, "part_lengths", None)
            lengths = lengths or dask.compute(*map(dask.delayed(len), parts))
            checked = check_sample_weight(sample_weight, int(np.sum(lengths)))
            weights = np.split(checked, np.cumsum(lengths)[:-1])
        of_block = dask.delayed(partial(_tallies_in_memory, most=MOST_IN_BLOCKS), pure=False)
        blocks = dask.compute(*map(of_block, parts, weights))
        columns = zip(*blocks, strict=True)
        return [
            Tally(sum((t.masses for t in parts), Counter()), sum(t.n for t in parts))
            for parts in columns
        ]
    if sample_weight is not None:
        sample_weight = check_sample_weight(sample_weight, X.shape[0])
    return _tallies_in_memory(column(X, list(places)), sample_weight)


def _tallies_in_memory(X: Any, weights: np.ndarray | None, most: int | None = None) -> list[Tally]:
    """Return what columns hold; ValueError if one has more categories than ``most``."""
    tallies = []
    weights = np.ones(X.shape[0]) if weights is None else weights
    for j, name in enumerate(column_names(X)):
        codes, texts = codes_of(column(X, j))
        counted = (codes >= 0) & (weights > 0)
        masses = np.bincount(codes[counted], weights[counted], len(texts)).tolist()
        seen = {text: mass for text, mass in zip(texts, masses, strict=True) if mass > 0}
        if most is not None and len(seen) > most:
            raise ValueError(
                f"Column {shortened(name, 60)!r} of X has more than {most:,} categories; leave the "
                "column out."
            )
        tallies.append(Tally(Counter(seen), int(counted.sum())))
    return tallies


def encoded_blocks(X: Any, encoder: CategoryEncoder) -> Any:
    """Return a Dask dataframe as an array of numbers, coded whenever its blocks are read."""
    import pandas as pd

    width = len(encoder.columns)
    meta = pd.DataFrame(np.empty((0, width)), columns=range(width))
    lengths = getattr(X, "part_lengths", None)
    rows = X.map_partitions(_encoded_block, encoder, meta=meta).to_dask_array(lengths=lengths)
    rows.of_columns = partial(_encoded_columns, X, encoder)
    return rows


def _encoded_block(part: Any, encoder: CategoryEncoder) -> Any:
    import pandas as pd

    return pd.DataFrame(encoder.coded(part)[0], index=part.index, copy=False)


def _encoded_columns(X: Any, encoder: CategoryEncoder, features: np.ndarray) -> Any:
    """Return an array of some features, of which only the columns are read."""
    places = np.unique(encoder.columns[features])
    part = copy.copy(encoder)
    part.columns_ = [encoder.columns_[j] for j in places]
    rows = encoded_blocks(X[[X.columns[j] for j in places]], part)
    read = np.flatnonzero(np.isin(encoder.columns, places))
    return rows[:, np.searchsorted(read, features)]


def as_plain(given: Any) -> Any:
    """Return columns as a user gives them, in lists and dictionaries of text and numbers."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {str(name): [text_of(value) for value in order] for name, order in given.items()}
    columns = [given] if isinstance(given, str | Integral) else given
    return [int(name) if isinstance(name, Integral) else str(name) for name in columns]


def _order_of_type(values: Any) -> list[str] | None:
    """Return the order that a categorical type of pandas or polars has; of numbers, their own."""
    categories = getattr(getattr(values, "cat", None), "categories", None)
    if categories is not None and getattr(values.cat, "ordered", False):
        return [text_of(value) for value in categories]
    if str(getattr(values, "dtype", "")).lower().startswith("enum"):
        return [text_of(value) for value in values.dtype.categories]
    seen = [value for value in cells_of(values) if not is_missing(value)]
    if seen and all(isinstance(value, Real) for value in seen):
        return [text_of(value) for value in sorted(set(seen))]
    return None
