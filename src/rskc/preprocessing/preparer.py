"""Tables made ready for clustering: counts, logarithms, levels of cases and scales of features.

What the numbers of a table are decides: counts, intensities, features in one unit, or something
else.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from rskc.exceptions import ParameterError
from rskc.inputs.arrays import to_dense
from rskc.inputs.frames import column_names, places_of
from rskc.inputs.spreads import MANY, SPARSE, column_medians, some_rows, spreads_of
from rskc.inputs.validation import check_choice, is_word
from rskc.preprocessing.standardizers import (
    SCALES,
    Transformer,
    column_scales,
    standardize_rows,
    with_numbers,
)
from rskc.utils.wording import count, listed, shortened

# From MANY columns on a table may be one of many features in one unit, such as genes. Cases are
# standardized without logarithms from VERY_MANY on.
VERY_MANY = 1000
# Natural logarithms of the medians of such features vary by less: 2.4 in bulk counts of RNA.
LEVELS = 3.5
# Of few features in one unit the spreads do not differ by more; of many, nine in ten from the
# median one.
ALIKE, MANY_ALIKE = 3.0, 8.0
# Skewness of quantiles, from -1 to 1, that logarithms must remove. Intensities have .34 to .72 and
# their logarithms -.19 to .12 (11 published tables); ages, scores and pixels are below .15.
SKEWED = 0.25
TAILS = (0.1, 0.05, 0.025)
FEWEST = 12  # distinct cells above the floor
# The largest cells, in medians: logarithms of counts and intensities end at 10, tables of
# intensities begin at 20.
REACH = 12.0
# Or spreads are proportional to levels, and their slope in logarithms is 1. Published intensities
# have .05 to 1.04, and logarithms or logarithms of ratios .22 at most (14 and 13 tables).
SLOPE = 0.7
# Counts: this share of the cells that are not 0 is the largest one, and no more. Pixels of digits
# have 18%.
MOST_AT_END = 0.01
# Largest cells, over the least ones, where those below 0 are noise.
MUCH_MORE = 3.0
AS_IT_IS, FLOORED, FROM_ZERO = 0, 1, 2


class Decisions(NamedTuple):
    """What the data say: counts or not, features in one unit or not, logarithms of which."""

    counts: bool
    alike: bool
    logs: np.ndarray  # (p,) AS_IT_IS, FLOORED: log(max(x, unit)), or FROM_ZERO: log(1 + x / unit)
    units: np.ndarray  # (p,)


def decide(table: Any) -> Decisions:
    """Say what the numbers of a table are, by some of its rows."""
    rows = some_rows(table)
    p = rows.shape[1]
    as_it_is = np.full(p, AS_IT_IS), np.ones(p)
    if p >= MANY:
        if _are_counts(table, rows):
            return Decisions(True, True, np.full(p, FROM_ZERO), np.ones(p))
        is_sparse = bool(np.nanmin(rows) >= 0 and np.mean(rows == 0) >= SPARSE)
        if _are_intensities(rows):
            return Decisions(False, not is_sparse, *logs_together(np.maximum(rows, 0)))
        if is_sparse:
            return Decisions(False, False, *as_it_is)
        deviations = _deviations(rows)
        low, middle, high = np.quantile(deviations[deviations > 0], (0.05, 0.5, 0.95))
        if high <= MANY_ALIKE * middle and middle <= MANY_ALIKE * low:
            return Decisions(False, True, *as_it_is)
    if _have_one_range(rows):
        return Decisions(False, True, *as_it_is)
    skewed = np.array([_is_skewed(column) for column in rows.T], bool)
    spreads = spreads_of(rows)
    alike = not skewed.any() and (spreads is None or spreads.ratio <= ALIKE)
    return Decisions(False, alike, *logs_of_columns(rows, skewed))


def _are_counts(table: Any, rows: np.ndarray) -> bool:
    """Whether cells are whole numbers from 0 on, of which the largest are rare."""
    cells = table.data if issparse(table) else rows
    cells = cells[np.isfinite(cells)] if np.isnan(cells).any() else cells
    if cells.min(initial=0) < 0 or (cells != np.floor(cells)).any():
        return False
    filled = cells[cells > 0]
    largest = filled.max(initial=0)
    at_end = np.count_nonzero(filled == largest)
    is_open = at_end <= max(1, MOST_AT_END * filled.size)
    return bool(largest > 1 and (rows == 0).any() and is_open)


def _are_intensities(rows: np.ndarray) -> bool:
    """Whether features are skewed to the right, in one unit, and above 0 but for noise."""
    cells = rows[np.isfinite(rows)]
    if cells.size == 0:
        return False
    if cells.min() < 0:  # as where a background was subtracted: golub_72x7129 has 29%
        low, high = np.quantile(cells, (0.001, 0.999))
        if high < MUCH_MORE * -low or 2 * np.count_nonzero(cells < 0) > cells.size:
            return False
        rows = np.maximum(rows, 0)
    medians = column_medians(np.where(rows > 0, rows, np.nan))
    levels = np.log(medians[np.isfinite(medians)])
    # Features in one unit differ in level by less.
    one_level = len(levels) > MANY // 2 and levels.std() < LEVELS
    return bool(one_level) and _are_skewed_together(rows)


def _have_one_range(rows: np.ndarray) -> bool:
    """Whether most features have the same least and largest cell, as pixels and answers have."""
    low, high = np.fmin.reduce(rows, axis=0), np.fmax.reduce(rows, axis=0)
    varying = low < high
    ends = np.column_stack([low, high])[varying]
    if len(ends) < 2:
        return False
    return bool(2 * np.unique(ends, axis=0, return_counts=True)[1].max() > len(ends))


def _are_skewed_together(rows: np.ndarray) -> bool:
    """Whether the quarter of the features that vary most is skewed as amounts are.

    Or whether spreads grow like levels, as those of amounts do however little each of them varies.
    """
    above = np.where(rows > np.nanmin(rows), rows, np.nan)
    seen = above[np.isfinite(above)]
    if seen.size == 0 or np.quantile(seen, 0.999) < REACH * np.median(seen):
        return False
    deviations, levels = _deviations(rows), column_medians(rows)
    told = (deviations > 0) & (levels > 0)
    if 2 * np.count_nonzero(told) > len(told):
        level = np.log(levels[told]) - np.log(levels[told]).mean()
        if level @ np.log(deviations[told]) >= SLOPE * (level @ level) > 0:
            return True
    most = np.argsort(-deviations, kind="stable")[: max(1, rows.shape[1] // 4)]
    votes = [_is_skewed(column) for column in above[:, most].T]
    return 2 * sum(votes) > len(votes)


def _deviations(rows: np.ndarray) -> np.ndarray:
    """Return the standard deviations of columns, 0 for one without an observed cell."""
    with np.errstate(over="ignore"):
        return np.nanstd(np.where(np.isnan(rows).all(axis=0), 0.0, rows), axis=0)


def _is_skewed(column: np.ndarray) -> bool:
    """Whether a column is positive and skewed to the right, and its logarithms are not."""
    seen = column[np.isfinite(column)]
    if len(seen) < FEWEST or seen.min() < 0:
        return False
    above = seen[seen > 0]
    if len(np.unique(above)) < FEWEST:
        return False
    plain, logged = _skewness(above), _skewness(np.log(above))
    return plain >= SKEWED and abs(logged) <= plain / 2


def _skewness(values: np.ndarray) -> float:
    """Return the mean skewness of quantiles, from -1 to 1."""
    low = np.quantile(values, TAILS)
    high = np.quantile(values, 1 - np.array(TAILS))
    with np.errstate(invalid="ignore", divide="ignore"):
        skewness = (high + low - 2 * np.median(values)) / (high - low)
    return float(np.nan_to_num(skewness).mean())


def logs_together(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how logarithms of all features together are taken, and their unit.

    That is the median of the cells above the floor: below it noise is large in logarithms. Of 11
    published tables the mean adjusted Rand index was .28 with a unit of 0, .27 with .3 of the
    median and .32 with the median, all else chosen by the data.
    """
    p, above = rows.shape[1], rows[rows > max(0.0, np.nanmin(rows, initial=np.inf))]
    return np.full(p, FROM_ZERO), np.full(p, float(np.median(above)))


def logs_of_columns(rows: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how logarithms of each of the chosen columns are taken, and their floors or units."""
    logs, units = np.full(len(chosen), AS_IT_IS), np.ones(len(chosen))
    for j in np.flatnonzero(chosen):
        seen = rows[np.isfinite(rows[:, j]), j]
        above = seen[seen > 0]
        if 0 < len(above) == len(seen):
            middle, high = np.quantile(above, (0.5, 0.9))
            fence = (
                middle * (middle / high) ** 3
            )  # as far below the median as a slip of the decimal
            logs[j], units[j] = FLOORED, max(above.min(), fence)
        elif len(above):
            logs[j], units[j] = FROM_ZERO, np.median(above)
    return logs, units


# Features with a larger share of all counts would decide about size factors.
MOST_OF_ALL = 0.05
# Scale of a feature of which 2 in 100 cases have one: rarer ones are not made larger.
LEAST_OF_COUNTS = 0.1
# What a fit finds of a table and of each of its columns, and what that is where nothing is done.
OF_TABLE = {"counts_": False, "total_": 1.0, "standardize_": None, "level_": 0.0, "spread_": 1.0}
OF_COLUMNS = {"log_": AS_IT_IS, "unit_": 1.0, "center_": 0.0, "scale_": 1.0, "counted_": True}
STATE = ("log", "standardize", "scale", *OF_TABLE, *OF_COLUMNS)


class Preparer(Transformer):
    """Prepare a table for clustering: what its numbers are decides what is done to them.

    The weight of a feature follows its variance. Numbers as they are published are in units that
    differ, or are amounts and intensities whose largest cells decide everything.

    - **Counts** of many features (whole numbers from 0 on): each case is divided by its size
      factor, its total over that of the typical case; then ``log(1 + x)``, and features are
      divided by their scales.
    - **Many features in one unit**, such as intensities of genes: if those that vary most are
      skewed to the right, or spreads grow like levels, logarithms of all; then cases are
      standardized, which differ in level.
    - **Transformed counts**, of which 30% and more are 0: features are divided by their scales.
    - **Other tables**: logarithms of columns that are positive and skewed, as amounts of money are,
      and all columns are standardized, unless their spreads hardly differ.

    Parameters
    ----------
    log : {"auto", "all", None} or sequence of str or int, default="auto"
        Of which columns logarithms are taken: as the data say, of all, of none, or of these, by
        name or number. Of many features in one unit, and of columns with zeros,
        it is ``log(1 + x / unit)``, the unit being a typical cell. Counts are recognized with
        "auto" only.
    standardize : {"auto", "columns", "rows", None}, default="auto"
        What is standardized then.
    scale : {"auto", "clipped", "mad", "std"}, default="auto"
        By what: see :class:`rskc.ColumnStandardizer`. "auto" is "clipped" for columns, a standard
        deviation that few outlying cells hardly change and that has a floor above 0; and "std" for
        rows.

    Attributes
    ----------
    log_ : ndarray of int of shape (n_features,)
        Above 0 for features of which logarithms are taken: 1 of what is at least a floor, 2 of 1
        plus what may be 0.
    unit_ : ndarray of shape (n_features,)
        The floor of these, or the unit of their zeros.
    counts_ : bool
        Whether cases are divided by their size factors.
    total_, counted_ : float, ndarray of bool of shape (n_features,)
        Total of the typical case, where they are, and the features that it is over: not those few
        that have more than 5% of all counts.
    standardize_ : {"columns", "rows", None}
        What is standardized.
    level_, spread_ : float
        Mean and scale of the typical case, to which rows are standardized.
    center_, scale_ : ndarray of shape (n_features,)
        Centers and scales of the columns.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, if X had any.

    Notes
    -----
    NaN marks a missing cell and stays. Sparse counts stay sparse. Columns of a data frame that hold
    no numbers stay as they are; numbers beside categories are always standardized.

    See Also
    --------
    ColumnStandardizer : Standardizes features, and nothing else.
    RowStandardizer : Standardizes cases, and nothing else.

    Examples
    --------
    >>> import numpy as np
    >>> from rskc import Preparer
    >>> income = np.exp(np.linspace(6, 12, 50))
    >>> age = np.linspace(20, 80, 50)
    >>> preparer = Preparer().fit(np.column_stack([income, age]))
    >>> preparer.log_
    array([1, 0])
    >>> print(preparer.describe())
    logarithms of 1 of 2 columns (x0); columns centered and divided by their spread

    Before clustering::

        make_pipeline(Preparer(), RobustSparseKMeans(2))
    """

    _accepted = "csr"

    def __init__(self, log: Any = "auto", standardize: Any = "auto", scale: str = "auto"):
        self.log = log
        self.standardize = standardize
        self.scale = scale

    def fit(self, X: Any, y: Any = None) -> Self:
        """Decide what to do, and find centers and scales.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Cases, NaN for a missing cell.
        y : ignored
            There for the scikit-learn interface.

        Returns
        -------
        self : Preparer
        """
        check_choice("standardize", self.standardize, ("auto", "columns", "rows", None))
        check_choice("scale", self.scale, ("auto", *SCALES))
        table, places = self._numbers(X, reset=True)
        p, mixed = table.shape[1], places is not None
        places = list(range(p)) if places is None else places
        names = column_names(X) if hasattr(X, "columns") else [""] * p
        if self.standardize == "rows" and (mixed or issparse(table)):
            kind = "holds categories" if mixed else "is sparse"
            words = f"compares cells along a row, and {{X}} {kind}; use 'columns'."
            raise ParameterError("standardize", "rows", words)
        decisions = self._decide(table, names, places)
        n = len(names)
        self.without_data(p)
        self.counts_, alike, self.log_, self.unit_ = decisions
        if self.standardize == "auto":
            self.standardize_ = None
            if mixed or self.counts_ or not alike:
                self.standardize_ = "columns"
            elif p >= (MANY if self.log_.any() else VERY_MANY) and not issparse(table):
                self.standardize_ = "rows"
        self._fit_scales(table, getattr(self, "feature_names_in_", np.arange(n))[places])
        # The columns that hold no numbers have a place in the arrays too.
        for name, value in OF_COLUMNS.items():
            values = np.full(n, value)
            values[places] = getattr(self, name)
            setattr(self, name, values)
        self.n_features_in_ = n
        return self

    def _decide(self, table: Any, names: Sequence[str], places: Sequence[int]) -> Decisions:
        """Decide about a table, whose columns of numbers are at these places among the names."""
        p = table.shape[1]
        if p == 0:
            return Decisions(False, False, np.zeros(0, int), np.ones(0))
        decisions = decide(table)
        if is_word(self.log, "auto"):
            return decisions
        chosen = np.full(p, is_word(self.log, "all"))
        if self.log is not None and not is_word(self.log, "all"):
            asked = places_of("log", self.log, names)
            for j in set(asked) - set(places):
                raise ParameterError("log", names[j], "is a column of {X} that holds no numbers.")
            chosen = np.isin(places, asked)
        rows, together = some_rows(table), decisions.alike and chosen.all()
        logs = logs_together(rows) if together else logs_of_columns(rows, chosen)
        return Decisions(False, decisions.alike, *logs)

    def _fit_scales(self, table: Any, names: np.ndarray) -> None:
        if self.counts_:
            sums = np.asarray(table.sum(axis=0)).ravel()
            self.counted_ = sums <= MOST_OF_ALL * sums.sum()
            self.total_ = float(np.median(self._totals(table))) or 1.0
        if self.standardize_ == "rows" and self.standardize == "auto":
            rows = self._logged(some_rows(table))
            with np.errstate(invalid="ignore"):
                self.level_ = float(np.nanmedian(np.nanmean(rows, axis=1)))
                self.spread_ = float(np.nanmedian(np.nanstd(rows, axis=1))) or 1.0
        if self.standardize_ == "columns" and table.shape[1]:
            scale = "clipped" if self.scale == "auto" else self.scale
            center, logged = "mean" if scale == "std" else "median", self._logged(table)
            self.center_, scales = column_scales(logged, center, scale, names)
            self.scale_ = np.maximum(scales, LEAST_OF_COUNTS if self.counts_ else 0.0)

    def _logged(self, table: Any) -> Any:
        if self.counts_:
            factors = self._totals(table) / self.total_
            factors = np.where(factors > 0, factors, 1.0)  # else the row is empty, and stays so
            if issparse(table):
                table = table.astype(np.result_type(table.dtype, np.float32))
                table.data = table.data / np.repeat(factors, np.diff(table.indptr))
            else:
                table = table / factors[:, None]
        return logarithms(table, self.log_, self.unit_)

    def _totals(self, table: Any) -> np.ndarray:
        if issparse(table):
            return np.asarray(table @ self.counted_.astype(table.dtype), np.float64).ravel()
        return np.asarray(np.nansum(table[:, self.counted_], axis=1, dtype=np.float64))

    def transform(self, X: Any) -> Any:
        """Do to X what was decided in the fit.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Cases, NaN for a missing cell.

        Returns
        -------
        X : ndarray, sparse matrix or data frame of shape (n_samples, n_features)
            A copy; of a data frame that also holds other columns than numbers, a frame in which
            these are as they were.
        """
        check_is_fitted(self)
        table, places = self._numbers(X, reset=False)
        if places is None:
            return self._prepared(table)
        return with_numbers(X, places, self.of_columns(places)._prepared(table))

    def _prepared(self, table: Any) -> Any:
        dtype, prepared = table.dtype, self._logged(table)
        if self.standardize_ == "rows":
            scale = "std" if self.scale == "auto" else self.scale
            prepared, _ = standardize_rows(prepared, "mean" if scale == "std" else "median", scale)
            prepared = prepared * self.spread_ + self.level_
        if issparse(prepared):
            if (self.scale_ != 1).any():
                prepared = prepared.copy() if prepared is table else prepared
                prepared.data = prepared.data / self.scale_[prepared.indices]
            return prepared.astype(dtype)
        return ((prepared - self.center_) / self.scale_).astype(dtype, copy=False)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return prepared values in the units of the table: as in the typical case.

        What was lost stays lost: size factors, levels of cases, and cells below a floor.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Prepared cases, NaN for a missing cell.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        cells = np.array(to_dense(X), np.float64)
        return np.column_stack([self.unit(j).back(cells[:, j]) for j in range(cells.shape[1])])

    def unit(self, j: int) -> Unit:
        """Return how prepared values of a feature, by its number, become those of the table."""
        return Unit(*(values[j] for values in (self.center_, self.scale_, self.log_, self.unit_)))

    def without_data(self, p: int) -> Preparer:
        """Set what a fit to p features would, where the data decide nothing: no logarithms."""
        of_columns = {name: np.full(p, value) for name, value in OF_COLUMNS.items()}
        self.__dict__.update(OF_TABLE | of_columns)
        self.standardize_, self.n_features_in_ = self.standardize, p
        return self

    @property
    def is_idle(self) -> bool:
        """Whether nothing is done to a table."""
        return not self.log_.any() and self.standardize_ is None

    @property
    def has_units(self) -> bool:
        """Whether prepared values have counterparts in the units of the table."""
        return not self.is_idle and (self.standardize_ != "rows" or self.standardize == "auto")

    @property
    def needs_all(self) -> bool:
        """Whether a case can be prepared only if all of its features are known."""
        return bool(self.counts_) or self.standardize_ == "rows"

    def of_columns(self, places: Sequence[int]) -> Preparer:
        """Return what prepares some of the columns; all are needed where rows are standardized."""
        part = copy.copy(self)
        part.__dict__.pop("feature_names_in_", None)
        part.n_features_in_ = len(places)
        for name in OF_COLUMNS:
            setattr(part, name, getattr(self, name)[list(places)])
        return part

    def describe(self) -> str:
        """Say in a few words what is done; "nothing" if that is so."""
        check_is_fitted(self)
        parts, logs, p = [], np.flatnonzero(self.log_), len(self.log_)
        if self.counts_:
            parts.append("counts divided by size factors, and log(1 + x) of them")
        elif len(logs):
            which = "all columns"
            if len(logs) < p:
                all_names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(p)])
                names = listed([shortened(str(all_names[j]), 40) for j in logs], 6)
                which = f"{len(logs)} of {count(p, 'column')} ({names})"
            parts.append(f"logarithms of {which}")
        if self.standardize_ == "rows":
            parts.append("each case centered and divided by its spread")
        elif self.standardize_ == "columns":
            parts.append("columns centered and divided by their spread")
        return "; ".join(parts) or "nothing"

    def to_plain(self) -> dict[str, Any]:
        """Return the fitted preparer as text, numbers and arrays."""
        return {name: value for name, value in vars(self).items() if name in STATE}

    @classmethod
    def from_plain(cls, state: Mapping[str, Any], p: int) -> Preparer:
        """Return the preparer of such a state; ValueError if it fits no table of p columns."""
        params = {name: state[name] for name in ("log", "standardize", "scale")}
        preparer = cls(**params).without_data(p)
        preparer.__dict__.update({name: state[name] for name in STATE if name in state})
        if any(np.shape(getattr(preparer, name)) != (p,) for name in OF_COLUMNS):
            raise ValueError("the preparation in the model's file does not fit the model.")
        return preparer


class Unit(NamedTuple):
    """How prepared values of one feature become those of the table."""

    center: float
    scale: float
    log: int = AS_IT_IS
    unit: float = 1.0

    def back(self, values: Any) -> Any:
        """Return prepared values in the units of the table."""
        values = np.asarray(values, np.float64) * self.scale + self.center
        with np.errstate(over="ignore"):
            if self.log == FLOORED:
                return np.exp(values)
            if self.log == FROM_ZERO:  # a case of another level than the typical one may be below
                return np.maximum(np.expm1(values), 0) * self.unit
        return values


def logarithms(table: Any, logs: np.ndarray, units: np.ndarray) -> Any:
    """Take logarithms of some columns of an array, or of all of a sparse matrix."""
    if not logs.any():
        return table
    if issparse(table):
        if (logs == FLOORED).any():
            raise ValueError("logarithms of a sparse table without zeros would fill it.")
        logged = table.copy()
        with np.errstate(invalid="ignore"):
            cells = np.log1p(np.maximum(logged.data, 0) / units[logged.indices])
        is_logged = logs[logged.indices] == FROM_ZERO
        logged.data = np.where(is_logged, cells, logged.data).astype(table.dtype)
        return logged
    floored, from_zero = logs == FLOORED, logs == FROM_ZERO
    logged = np.array(table)
    logged[:, floored] = np.log(np.maximum(logged[:, floored], units[floored]))
    logged[:, from_zero] = np.log1p(np.maximum(logged[:, from_zero], 0) / units[from_zero])
    return logged
