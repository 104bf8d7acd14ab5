"""Tables made ready for clustering: counts, logarithms, levels of cases and scales of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from rskc.exceptions import ParameterError
from rskc.inputs.arrays import to_dense
from rskc.inputs.columns import MANY
from rskc.inputs.frames import column_names, places_of
from rskc.inputs.validation import check_choice
from rskc.preprocessing.decisions import (
    AS_IT_IS,
    FLOORED,
    FROM_ZERO,
    VERY_MANY,
    Decisions,
    decide,
    logs_of,
    some_rows,
)
from rskc.preprocessing.standardizers import (
    SCALES,
    ColumnStandardizer,
    Transformer,
    numeric_columns,
    standardize_rows,
    with_numbers,
)
from rskc.utils.wording import count, listed, shortened

# Features with a larger share of all counts would decide about size factors.
MOST_OF_ALL = 0.05
# Scale of a feature of which 2 in 100 cases have one: rarer ones are not made larger.
LEAST_OF_COUNTS = 0.1


class Preparer(Transformer):
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
        names = column_names(X) if hasattr(X, "columns") else []
        places = numeric_columns(X)
        table = self._numbers(X, places, reset=True)
        found = self._decided(table, names, places)
        self.counts_, self.log_, self.unit_ = found.counts, found.logs, found.units
        self.standardize_ = self._standardized(table, found, places is not None)
        self._fit_scales(table)
        if places is not None:
            self._spread_out(places, X.shape[1])
        return self

    def _decided(self, table: Any, names: Sequence[str], places: list[int] | None) -> Decisions:
        p = table.shape[1]
        if p == 0:
            return Decisions(False, False, np.zeros(0, int), np.ones(0))
        found = decide(table)
        if isinstance(self.log, str) and self.log == "auto":
            return found
        chosen = self._chosen(names or [""] * p, range(p) if places is None else places)
        logs, units = logs_of(some_rows(table), chosen, together=found.alike and bool(chosen.all()))
        return Decisions(False, found.alike, logs, units)

    def _chosen(self, names: Sequence[str], places: Sequence[int]) -> np.ndarray:
        """Return of which of the columns of numbers, at these places, logarithms are asked for."""
        if self.log is None or (isinstance(self.log, str) and self.log in ("all", "none")):
            return np.full(len(places), self.log == "all")
        asked = places_of("log", self.log, names)
        for j in set(asked) - set(places):
            raise ParameterError("log", names[j], "is a column of {X} that holds no numbers.")
        return np.isin(places, asked)

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
            rows = self._logged(some_rows(table))
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
        places = numeric_columns(X)
        table = self._numbers(X, places, reset=False)
        if places is None:
            return self._prepared(table)
        return with_numbers(X, places, self.of_columns(places)._prepared(table))

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


# ---- What is done


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
