"""Tables made ready for clustering: counts, logarithms, levels of cases and scales of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from rskc.exceptions import ParameterError
from rskc.inputs.arrays import to_dense
from rskc.inputs.columns import MANY, SPARSE, spreads_of
from rskc.inputs.frames import CATEGORY, NUMBERS, column_names, kinds_of
from rskc.inputs.validation import check_choice
from rskc.preprocessing.standardizers import SCALES, ColumnStandardizer, standardize_rows
from rskc.utils.wording import count, listed, shortened

# Rows by which a table is judged; at most, evenly spaced.
SAMPLE = 2000
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
# Counts: this share of the cells that are not 0 is the largest one, and no more. Pixels of digits
# have 18%.
MOST_AT_END = 0.01
# Features with a larger share of all counts would decide about size factors.
MOST_OF_ALL = 0.05
# Scale of a feature of which 2 in 100 cases have one: rarer ones are not made larger.
LEAST_OF_COUNTS = 0.1
# Largest cells, over the least ones, where those below 0 are noise.
MUCH_MORE = 3.0
AS_IT_IS, FLOORED, FROM_ZERO = 0, 1, 2


class Decisions(NamedTuple):
    """What the data say: counts or not, features in one unit or not, logarithms of which."""

    counts: bool
    alike: bool
    logs: np.ndarray  # (p,) AS_IT_IS, FLOORED: log(max(x, unit)), or FROM_ZERO: log(1 + x / unit)
    units: np.ndarray  # (p,)


class Preparer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Prepare a table for clustering: what its numbers are decides what is done to them.

    The weight of a feature follows its variance. Numbers as they are published are in units that
    differ, or are amounts and intensities whose largest cells decide everything.

    - **Counts** of many features (whole numbers from 0 on): each case is divided by its size
      factor, its total over that of the typical case; then ``log(1 + x)``, and features are
      divided by their scales.
    - **Many features in one unit**, such as intensities of genes: if those that vary most are
      skewed to the right, logarithms of all; then cases are standardized, which differ in level.
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
        deviation that few outlying cells hardly sway and that is never 0 by a floor; and "std" for
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
        names = column_names(X) if hasattr(X, "columns") else []
        places = _places_of_numbers(X)
        table = self._checked(X, places, reset=True)
        found = self._decided(table, names)
        self.counts_, self.log_, self.unit_ = found.counts, found.logs, found.units
        self.standardize_ = self._standardized(table, found, places is not None)
        self._fit_scales(table)
        if places is not None:
            self._spread_out(places, X.shape[1])
        return self

    def _checked(self, X: Any, places: list[int] | None, reset: bool) -> Any:
        """Return the numbers of a table as an array or a CSR matrix."""
        if places is not None:
            validate_data(self, X, reset=reset, skip_check_array=True)
            part = X.iloc[:, places] if hasattr(X, "iloc") else X[:, places]
            return np.asarray(part, dtype=np.float64)
        return validate_data(
            self,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            order="C",
            accept_sparse="csr",
            ensure_all_finite="allow-nan",
        )

    def _decided(self, table: Any, names: Sequence[str]) -> Decisions:
        p = table.shape[1]
        if p == 0:
            return Decisions(False, False, np.zeros(0, int), np.ones(0))
        found = decide(table)
        if isinstance(self.log, str) and self.log == "auto":
            return found
        chosen = _chosen(self.log, names, p)
        logs, units = _log_of(
            _some_rows(table), chosen, together=found.alike and bool(chosen.all())
        )
        return Decisions(False, found.alike, logs, units)

    def _standardized(self, table: Any, found: Decisions, mixed: bool) -> str | None:
        if self.standardize != "auto":
            if self.standardize == "rows" and (mixed or issparse(table)):
                kind = "holds categories" if mixed else "is sparse"
                raise ValueError(
                    f"standardize='rows' compares cells along a row, and X {kind}; use 'columns'."
                )
            return self.standardize
        if mixed or found.counts or not found.alike:
            return "columns"
        is_rows = table.shape[1] >= (MANY if found.logs.any() else VERY_MANY)
        return "rows" if is_rows and not issparse(table) else None

    def _fit_scales(self, table: Any) -> None:
        p = table.shape[1]
        self.total_, self.counted_ = 1.0, np.ones(p, bool)
        if self.counts_:
            sums = np.asarray(table.sum(axis=0)).ravel()
            self.counted_ = sums <= MOST_OF_ALL * sums.sum()
            self.total_ = float(np.median(self._totals(table))) or 1.0
        self.level_, self.spread_ = 0.0, 1.0
        self.center_, self.scale_ = np.zeros(p), np.ones(p)
        if self.standardize_ == "rows" and self.standardize == "auto":
            rows = self._logged(_some_rows(table))
            with np.errstate(invalid="ignore"):
                self.level_ = float(np.nanmedian(np.nanmean(rows, axis=1)))
                self.spread_ = float(np.nanmedian(np.nanstd(rows, axis=1))) or 1.0
        if self.standardize_ == "columns" and p:
            scale = "clipped" if self.scale == "auto" else self.scale
            center = "mean" if scale == "std" else "median"
            own, names = self._logged(table), getattr(self, "feature_names_in_", ())
            if scale == "mad" and len(names) == p and not issparse(table):
                import pandas as pd

                own = pd.DataFrame(own, columns=names)  # of which a warning gives names
            found = ColumnStandardizer(center, scale).fit(own)
            least = LEAST_OF_COUNTS if self.counts_ else 0.0
            self.center_, self.scale_ = found.center_, np.maximum(found.scale_, least)

    def _spread_out(self, places: list[int], p: int) -> None:
        """Give the columns that hold no numbers a place in the arrays too."""
        usual_values = {"log_": 0, "unit_": 1.0, "center_": 0.0, "scale_": 1.0, "counted_": True}
        for name, usual in usual_values.items():
            own = getattr(self, name)
            every = np.full(p, usual, own.dtype)
            every[places] = own
            setattr(self, name, every)

    def _logged(self, table: Any) -> Any:
        if self.counts_:
            table = _divided(table, self._totals(table) / self.total_)
        return logarithms(table, self.log_, self.unit_)

    def _totals(self, table: Any) -> np.ndarray:
        counted = table @ self.counted_.astype(table.dtype) if issparse(table) else None
        if counted is not None:
            return np.asarray(counted, np.float64).ravel()
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
        places = _places_of_numbers(X)
        table = self._checked(X, places, reset=False)
        own = self if places is None else self.of_columns(places)
        made = own._prepared(table)
        if places is None:
            return made
        columns = {X.columns[j]: made[:, i] for i, j in enumerate(places)}
        return X.assign(**columns) if hasattr(X, "iloc") else X.with_columns(**columns)

    def _prepared(self, table: Any) -> Any:
        dtype, made = table.dtype, self._logged(table)
        if self.standardize_ == "rows":
            scale = "std" if self.scale == "auto" else self.scale
            made, _ = standardize_rows(made, "mean" if scale == "std" else "median", scale)
            made = made * self.spread_ + self.level_
        if issparse(made):
            if (self.scale_ != 1).any():
                made = made.copy() if made is table else made
                made.data = made.data / self.scale_[made.indices]
            return made.astype(dtype)
        return ((made - self.center_) / self.scale_).astype(dtype, copy=False)

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
        self.counts_, self.log_, self.unit_ = False, np.zeros(p, int), np.ones(p)
        self.standardize_, self.total_, self.level_, self.spread_ = self.standardize, 1.0, 0.0, 1.0
        self.center_, self.scale_, self.counted_ = np.zeros(p), np.ones(p), np.ones(p, bool)
        self.n_features_in_ = p
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
        made = Preparer(self.log, self.standardize, self.scale)
        for name in ("counts_", "total_", "standardize_", "level_", "spread_"):
            setattr(made, name, getattr(self, name))
        for name in ("log_", "unit_", "center_", "scale_", "counted_"):
            setattr(made, name, getattr(self, name)[list(places)])
        made.n_features_in_ = len(made.log_)
        return made

    def describe(self) -> str:
        """Say in a few words what is done; "nothing" if that is so."""
        check_is_fitted(self)
        parts = []
        logs, p = np.flatnonzero(self.log_), len(self.log_)
        if self.counts_:
            parts.append("counts divided by size factors, and log(1 + x) of them")
        elif len(logs):
            which = "all columns"
            if len(logs) < p:
                known = getattr(self, "feature_names_in_", [f"x{j}" for j in range(p)])
                names = listed([shortened(str(known[j]), 40) for j in logs], 6)
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
        made = cls(**{name: state[name] for name in ("log", "standardize", "scale")})
        made.without_data(p)
        for name in STATE:
            setattr(made, name, state.get(name, getattr(made, name)))
        arrays = (made.log_, made.unit_, made.center_, made.scale_, made.counted_)
        if any(np.shape(array) != (p,) for array in arrays):
            raise ValueError("the preparation in the model's file does not fit the model.")
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


STATE = (
    "log", "standardize", "scale", "counts_", "total_", "standardize_", "level_", "spread_",
    "log_", "unit_", "center_", "scale_", "counted_",
)  # fmt: skip


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
            return np.expm1(values) * self.unit if self.log == FROM_ZERO else values


# ---- What the data say


def decide(table: Any) -> Decisions:
    """Say what the numbers of a table are, by some of its rows."""
    rows = _some_rows(table)
    p = rows.shape[1]
    if p >= MANY and _are_counts(table, rows):
        return Decisions(True, True, np.full(p, FROM_ZERO), np.ones(p))
    is_sparse = p >= MANY and np.nanmin(rows) >= 0 and np.mean(rows == 0) >= SPARSE
    if p >= MANY and _are_intensities(rows):
        logs, units = _log_of(np.maximum(rows, 0), np.ones(p, bool), together=True)
        return Decisions(False, not is_sparse, logs, units)
    if is_sparse:
        return Decisions(False, False, np.zeros(p, int), np.ones(p))
    if (p >= MANY and _spread_alike(rows)) or _have_one_range(rows):
        return Decisions(False, True, np.zeros(p, int), np.ones(p))
    chosen = np.array([_is_skewed(column) for column in rows.T], bool)
    logs, units = _log_of(rows, chosen, together=False)
    spreads = spreads_of(rows)
    alike = not chosen.any() and (spreads is None or spreads.ratio <= ALIKE)
    return Decisions(False, alike, logs, units)


def _are_counts(table: Any, rows: np.ndarray) -> bool:
    """Whether cells are whole numbers from 0 on, of which the largest are rare."""
    cells = table.data if issparse(table) else rows
    cells = cells[np.isfinite(cells)] if np.isnan(cells).any() else cells
    if cells.size == 0 or cells.min() < 0 or (cells != np.floor(cells)).any():
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
    return _have_one_level(rows) and _are_skewed_together(rows)


def _have_one_range(rows: np.ndarray) -> bool:
    """Whether most features have the same least and largest cell, as pixels and answers have."""
    low, high = np.fmin.reduce(rows, axis=0), np.fmax.reduce(rows, axis=0)
    varying = low < high
    ends = np.column_stack([low, high])[varying]
    if len(ends) < 2:
        return False
    return bool(2 * np.unique(ends, axis=0, return_counts=True)[1].max() > len(ends))


def _have_one_level(rows: np.ndarray) -> bool:
    """Whether features differ in level as those in one unit may."""
    medians = _quantiles(np.where(rows > 0, rows, np.nan), (0.5,))[0]
    known = np.log(medians[np.isfinite(medians)])
    return len(known) > MANY // 2 and known.std() < LEVELS


def _are_skewed_together(rows: np.ndarray) -> bool:
    """Whether the quarter of the features that vary most is skewed as amounts are."""
    above = np.where(rows > np.nanmin(rows), rows, np.nan)
    seen = above[np.isfinite(above)]
    if seen.size == 0 or np.quantile(seen, 0.999) < REACH * np.median(seen):
        return False
    deviations = np.nanstd(rows, axis=0)
    most = np.argsort(-deviations, kind="stable")[: max(1, rows.shape[1] // 4)]
    votes = [_is_skewed(column) for column in above[:, most].T]
    return 2 * sum(votes) > len(votes)


def _spread_alike(rows: np.ndarray) -> bool:
    deviations = np.nanstd(rows, axis=0)
    deviations = deviations[deviations > 0]
    if len(deviations) == 0:
        return True
    low, middle, high = np.quantile(deviations, (0.05, 0.5, 0.95))
    return high <= MANY_ALIKE * middle and middle <= MANY_ALIKE * low


def _is_skewed(column: np.ndarray) -> bool:
    """Whether a column is positive and skewed to the right, and its logarithms are not."""
    seen = column[np.isfinite(column)]
    if len(seen) < FEWEST or seen.min() < 0:
        return False
    above = seen[seen > 0]
    if len(np.unique(above)) < FEWEST:
        return False
    if 2 * np.count_nonzero(above == above.min()) > len(above):  # a floor
        above = above[above > above.min()]
    plain, logged = _skewness(above), _skewness(np.log(above))
    return plain >= SKEWED and abs(logged) <= plain / 2


def _skewness(values: np.ndarray) -> float:
    """Return the mean skewness of quantiles, from -1 to 1."""
    low = np.quantile(values, TAILS)
    high = np.quantile(values, 1 - np.array(TAILS))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (high + low - 2 * np.median(values)) / (high - low)
    return float(np.nan_to_num(found).mean())


def _log_of(rows: np.ndarray, chosen: np.ndarray, together: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return how logarithms of the chosen columns are taken, and their floors or units.

    The unit of all features together is the median of the cells above the floor: below it noise is
    large in logarithms. Of 11 published tables the mean adjusted Rand index was .28 with a unit of
    0, .27 with .3 of the median and .32 with the median, all else chosen by the data.
    """
    logs, units = np.zeros(len(chosen), int), np.ones(len(chosen))
    if together:
        above = rows[rows > max(0.0, np.nanmin(rows, initial=np.inf))]
        return logs + FROM_ZERO, units * float(np.median(above))
    for j in np.flatnonzero(chosen):
        logs[j], units[j] = _log_of_column(rows[:, j])
    return logs, units


def _log_of_column(cells: np.ndarray) -> tuple[int, float]:
    seen = cells[np.isfinite(cells)]
    above = seen[seen > 0]
    if len(above) == 0:
        return AS_IT_IS, 1.0
    if len(above) == len(seen):
        middle, high = np.quantile(above, (0.5, 0.9))
        fence = middle * (middle / high) ** 3  # as far below the median as a slip of the decimal
        return FLOORED, float(max(above.min(), fence))
    return FROM_ZERO, float(np.median(above))


def logarithms(table: Any, logs: np.ndarray, units: np.ndarray) -> Any:
    """Take logarithms of some columns of an array, or of all of a sparse matrix."""
    if not logs.any():
        return table
    if issparse(table):
        if (logs == FLOORED).any():
            raise ValueError("logarithms of a sparse table without zeros would fill it.")
        made = table.copy()
        with np.errstate(invalid="ignore"):
            own = np.log1p(np.maximum(made.data, 0) / units[made.indices])
        made.data = np.where(logs[made.indices] == FROM_ZERO, own, made.data).astype(table.dtype)
        return made
    floored, from_zero = logs == FLOORED, logs == FROM_ZERO
    made = np.array(table)
    made[:, floored] = np.log(np.maximum(made[:, floored], units[floored]))
    made[:, from_zero] = np.log1p(np.maximum(made[:, from_zero], 0) / units[from_zero])
    return made


def _divided(table: Any, factors: np.ndarray) -> Any:
    """Divide the rows of a table; those of factor 0 are empty and stay so."""
    factors = np.where(factors > 0, factors, 1.0)
    if not issparse(table):
        return table / factors[:, None]
    made = table.astype(np.result_type(table.dtype, np.float32))
    made.data = made.data / np.repeat(factors, np.diff(made.indptr))
    return made


def _some_rows(table: Any) -> np.ndarray:
    return np.asarray(to_dense(table[:: table.shape[0] // SAMPLE + 1]), np.float64)


def _quantiles(rows: np.ndarray, shares: Sequence[float]) -> np.ndarray:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of columns without a cell
        return np.stack([np.asarray(np.nanquantile(rows, share, axis=0)) for share in shares])


def _places_of_numbers(X: Any) -> list[int] | None:
    """Return the columns of numbers of a frame that has categories too; else None."""
    if getattr(X, "columns", None) is None or getattr(X, "dtypes", None) is None:
        return None
    kinds = kinds_of(X)
    if CATEGORY not in kinds:
        return None
    return [j for j, kind in enumerate(kinds) if kind == NUMBERS]


def _chosen(log: Any, names: Sequence[str], p: int) -> np.ndarray:
    """Return the columns of which logarithms are wanted, as a mask."""
    if log is None or (isinstance(log, str) and log in ("all", "none")):
        return np.full(p, log == "all")
    mask = np.zeros(p, bool)
    for each in [log] if isinstance(log, str | Integral) else log:
        place = int(each) if isinstance(each, Integral) else -1
        if place < 0 and str(each) in names:
            place = list(names).index(str(each))
        if not 0 <= place < p:
            raise ParameterError("log", each, "is no column of {X}.")
        mask[place] = True
    return mask
