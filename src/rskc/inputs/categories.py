"""Columns of categories as numbers: an indicator for each category, scaled so that all count alike.

``category_codes`` has the numbers of one column; here are those of a table.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from rskc.exceptions import warn_user
from rskc.inputs.arrays import is_dask, to_numpy
from rskc.inputs.case_weights import check_sample_weight
from rskc.inputs.category_codes import ORDINAL, ColumnCode, Tally
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
from rskc.solver.feature_groups import FeatureGroups, check_groups
from rskc.utils.wording import quoted, shortened

__all__ = ["CategoryEncoder"]

MOST_IN_BLOCKS = 10_000  # categories of a column that is read in blocks


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
            What each case counts in the shares; None if all count the same. Categories of cases of
            weight 0 are not seen.

        Returns
        -------
        self : CategoryEncoder
        """
        X = X if hasattr(X, "columns") else to_numpy(X)
        head = X._meta if is_dask(X) else X
        validate_data(self, head, reset=True, skip_check_array=True)
        names = column_names(X)
        orders = _orders(self.ordinal, names)
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
        X = X if hasattr(X, "columns") else to_numpy(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        made, unknown = self.coded(X)
        if unknown:
            which = "; ".join(f"{quoted(new, 3, 40)} in {name!r}" for name, new in unknown.items())
            warn_user(
                f"X has categories that the fit has not seen, and that are treated as none of the "
                f"known ones: {which}."
            )
        return made

    def coded(self, X: Any) -> tuple[np.ndarray, dict[str, list[str]]]:
        """Return a table as numbers, and the categories that are not known, by column."""
        parts, unknown = [], {}
        for j, (name, code) in enumerate(zip(column_names(X), self.columns_, strict=True)):
            if code.kind == NUMBERS:
                parts.append(numbers_of(name, column(X, j))[:, None])
                continue
            part, new = code.coded(*codes_of(column(X, j)))
            parts.append(part)
            if new:
                unknown[name] = new
        return np.hstack(parts), unknown

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features: of a category, "column = category"."""
        check_is_fitted(self, "columns_")
        known = getattr(self, "feature_names_in_", None)
        names = [f"x{j}" for j in range(len(self.columns_))] if known is None else known
        pairs = zip(names, self.columns_, strict=True)
        out = [feature for name, code in pairs for feature in code.names(name)]
        return np.array(out, dtype=object)

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
    def masses(self) -> np.ndarray:
        """The share of each feature in the variance of its column."""
        return np.concatenate([code.masses for code in self.columns_])

    @property
    def units(self) -> np.ndarray:
        """What an indicator is multiplied by; 1 for numbers and ranks."""
        return np.concatenate([code.units for code in self.columns_])

    @property
    def indicators(self) -> np.ndarray:
        """Whether each feature is an indicator."""
        return np.repeat(
            [code.kind == CATEGORY for code in self.columns_],
            [code.width for code in self.columns_],
        )

    def groups(self, given: Any, names: np.ndarray | None) -> FeatureGroups:
        """Return the groups of features: those of columns, whose indicators share a weight."""
        if isinstance(given, FeatureGroups):  # of the numbers already
            return given
        p, columns = len(self.columns_), self.columns
        found = check_groups([None] * p if given is None else given, names, p)
        assert found is not None
        parts, numbers = found.parts[columns], found.numbers[columns]
        return replace(found, numbers=numbers, columns=columns, masses=self.masses, parts=parts)

    def describe(self, centers: np.ndarray) -> list[list[Any]]:
        """Return a center (K, features) by columns: numbers, mean ranks, and shares in words."""
        ends = self.first[1:]
        return [
            [
                code.describe(own)
                for code, own in zip(self.columns_, np.split(center, ends), strict=True)
            ]
            for center in centers
        ]

    def by_category(self, numbers: np.ndarray) -> np.ndarray:
        """Return coded cases (n, features) by columns: the place of a category, or the number."""
        made = np.array(numbers[:, self.first], np.float64)
        for j, (code, first) in enumerate(zip(self.columns_, self.first, strict=True)):
            if code.kind == ORDINAL:
                made[:, j] = np.round(made[:, j] / code.scales[0] + code.center) - 1
            elif code.kind == CATEGORY:
                missing = np.isnan(made[:, j])
                own = np.nan_to_num(numbers[:, first : first + code.width])
                made[:, j] = np.where(missing, np.nan, own.argmax(axis=1))
        return made

    def to_plain(self) -> list[list[Any]]:
        """Return how columns become numbers, in lists of text and numbers."""
        return [[kind, list(c), list(s), center] for kind, c, s, center in self.columns_]

    @classmethod
    def from_plain(cls, columns: Any, names: np.ndarray | None = None) -> CategoryEncoder:
        """Return the encoder of such lists; ValueError if no fit makes them."""
        encoder = cls()
        encoder.columns_ = [ColumnCode.of_plain(*column) for column in columns]
        encoder.n_features_in_ = len(encoder.columns_)
        if names is not None:
            encoder.feature_names_in_ = names
        return encoder


def tallies_of(X: Any, places: Sequence[int], sample_weight: Any) -> list[Tally]:
    """Return what columns of a table hold, without the cases of weight 0."""
    if is_dask(X):
        return _tallies_of_blocks(X, places, sample_weight)
    n = X.shape[0]
    weights = np.ones(n) if sample_weight is None else check_sample_weight(sample_weight, n)
    return [_tally(column(X, j), weights) for j in places]


def _tally(values: Any, weights: np.ndarray) -> Tally:
    codes, texts = codes_of(values)
    counted = (codes >= 0) & (weights > 0)
    masses = np.bincount(codes[counted], weights[counted], len(texts)).tolist()
    seen = {text: mass for text, mass in zip(texts, masses, strict=True) if mass > 0}
    return Tally(seen, int(counted.sum()))


def _tallies_of_blocks(X: Any, places: Sequence[int], sample_weight: Any) -> list[Tally]:
    """Read these columns of a Dask dataframe once."""
    import dask

    parts = X[[X.columns[j] for j in places]].to_delayed()
    weights: list[Any] = [None] * len(parts)
    if sample_weight is not None:
        lengths = getattr(X, "part_lengths", None) or dask.compute(*map(dask.delayed(len), parts))
        given = check_sample_weight(sample_weight, int(np.sum(lengths)))
        weights = np.split(given, np.cumsum(lengths)[:-1])
    read = dask.delayed(_tallies_of_block, pure=False)
    blocks = dask.compute(*(read(part, own) for part, own in zip(parts, weights, strict=True)))
    totals = []
    for tallies in zip(*blocks, strict=True):
        masses: Counter[str] = Counter()
        for tally in tallies:
            masses.update(tally.masses)
        totals.append(Tally(dict(masses), sum(tally.n for tally in tallies)))
    return totals


def _tallies_of_block(part: Any, weights: np.ndarray | None) -> list[Tally]:
    tallies = tallies_of(part, range(part.shape[1]), weights)
    for name, tally in zip(part.columns, tallies, strict=True):
        if len(tally.masses) > MOST_IN_BLOCKS:
            raise ValueError(
                f"Column {shortened(name, 60)!r} of X has more than {MOST_IN_BLOCKS:,} categories; "
                "leave the column out."
            )
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
    some = copy.copy(encoder)
    some.columns_ = [encoder.columns_[j] for j in places]
    rows = encoded_blocks(X[[X.columns[j] for j in places]], some)
    found = np.flatnonzero(np.isin(encoder.columns, places))
    return rows[:, np.searchsorted(found, features)]


def as_plain(given: Any) -> Any:
    """Return columns as a user gives them, in lists and dictionaries of text and numbers."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {str(name): [text_of(value) for value in order] for name, order in given.items()}
    several = [given] if isinstance(given, str | Integral) else given
    return [int(each) if isinstance(each, Integral) else str(each) for each in several]


def _orders(ordinal: Any, names: Sequence[str]) -> dict[int, list[str] | None]:
    """Return the order of the categories of each ordinal column, None where its type has it."""
    places = places_of("ordinal", ordinal, names)
    if not isinstance(ordinal, Mapping):
        return dict.fromkeys(places)
    orders = [[text_of(value) for value in order] for order in ordinal.values()]
    return dict(zip(places, orders, strict=True))


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


def find_encoder(
    X: Any, categorical: Any, ordinal: Any, sample_weight: Any = None
) -> CategoryEncoder | None:
    """Return the fitted encoder of a table in memory, None if all its columns are numbers."""
    given = categorical is not None or ordinal is not None
    is_frame = getattr(X, "columns", None) is not None and hasattr(X, "dtypes")
    head = X._meta if is_dask(X) else X
    if not given and not (is_frame and set(kinds_of(head)) - {NUMBERS}):
        return None
    encoder = CategoryEncoder(categorical, ordinal).fit(X, sample_weight=sample_weight)
    return encoder if any(code.kind != NUMBERS for code in encoder.columns_) else None
