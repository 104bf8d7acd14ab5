"""What the solver asks of a table."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from rskc.engines.contract.ops import ArrayOps
from rskc.engines.contract.results import Assignment, Grouping, Moved, Partitions, Regrouping
from rskc.engines.descent import descend_by_passes
from rskc.engines.frame import Place
from rskc.engines.groups import labels_of
from rskc.engines.sums import MissingSums, Sums, missing_factors


class CaseData:
    """What an engine and its tables know of their cases, and sums over these."""

    n_cases: int
    arrays: ArrayOps
    missing: bool  # whether cells may be missing
    masses: Any  # (n,) float64 of the engine's kind; None where all cases count the same
    width: int  # columns of sums: of values, and of marks where cells may be missing
    # ``shift``, whatever rounding leaves in empty clusters: sums may be a change of others.
    change: Callable[[Sums, Any, Any], np.ndarray]

    def _use(self, arrays: Any) -> None:
        """Note what is done with arrays of the cases, and what these count."""
        self.arrays, self.masses = arrays, arrays.masses

    @property
    def mass(self) -> float:
        """Return the mass of all cases: their number, if nothing else is said of them."""
        return self.n_cases if self.masses is None else self.arrays.total_mass

    def cases_at(self, positions: np.ndarray) -> np.ndarray:
        """Return the cases at positions from 0 to the mass of all, one after another by mass."""
        if self.masses is None:
            return positions.astype(np.int64)
        found = np.searchsorted(self.arrays.ladder, positions, side="right")
        return np.minimum(found, self.n_cases - 1)

    @property
    def sums_type(self) -> type[Sums]:
        """Return the kind of sums over the cases."""
        return MissingSums if self.missing else Sums

    def sums(self, groups: Any, K: int) -> Sums:
        """Sum the cases of each group (runs, n)."""
        sums = self.sums_type.empty(len(groups), K, self.width)
        self.shift(sums, np.full_like(labels_of(groups), -1), groups)
        return sums

    def shift(self, sums: Sums, before: Any, after: Any) -> np.ndarray:
        """Bring sums from one grouping to another; return how many cases changed in each run."""
        moved = self.change(sums, before, after)
        if self.masses is not None:
            sums.drop_rounding()
        return moved

    def changed(self, sums: Sums, change: Any) -> np.ndarray:
        """Add what totals and counts change by; return how many cases moved in each run."""
        moved = sums.change(*change)
        if self.masses is not None:
            sums.drop_rounding()
        return moved


class Table(CaseData):
    """The columns that carry weight, centered: what step (a), a trimmed K-means, works on.

    Centers are given in the coordinates of the table.
    """

    n_columns: int
    weights: np.ndarray  # (1 or runs, columns); 1 where coordinates contain them
    rotated: bool  # coordinates of its own, in which centers of the data cannot be placed
    work_bytes: Any  # what labels, groups, costs and sums of a batch of runs may take

    # ---- What a table adds

    assign: Callable[[np.ndarray], Assignment]  # the nearest of the centers (runs, K, columns)
    # Trim the m cases, or the mass m, of largest cost, the lower number first where costs tie.
    trim: Callable[[Assignment, float], Grouping]
    single_moves: Callable[[Any, int], Moved]  # of cases, while the within sum falls
    cases: Callable[[np.ndarray], np.ndarray]  # coordinates (..., columns); of seeding tables
    _row_sums: Callable[..., Any]  # sum_j weights_j x_j^2 of each case, for each row of weights

    def __init__(
        self, n_cases: int, weights: np.ndarray, place: Place | None, missing: bool = False
    ):
        self.n_cases, self.n_columns, self.missing = n_cases, weights.shape[1], missing
        self.weights, self.width = weights, (1 + missing) * self.n_columns
        self.rotated, self._place = place is None, place
        self._norms: Any = None
        self._scale: Any = None

    # ---- Passes

    def regroup(self, assignment: Assignment, m: float, sums: Sums, before: Any) -> Regrouping:
        """Trim, and bring the sums of the groups before to those of the new ones."""
        groups, within = self.trim(assignment, m)
        return Regrouping(groups, within, self.shift(sums, before, groups))

    def descend(self, centers: np.ndarray, m: float, max_iter: int, tol: float = 0.0) -> Partitions:
        """Run trimmed Lloyd from each of the centers (runs, K, columns).

        A run ends when nothing in it changes, or when its within sum falls by no more than ``tol``
        of itself.
        """
        return descend_by_passes(self, centers, m, max_iter, tol)

    # ---- Starts

    def seeding_table(self) -> Table:
        """Return the table from which starts are drawn: this one, or the same in memory."""
        return self

    def place(self, centers: np.ndarray) -> np.ndarray:
        """Bring centers (runs, K, p) from the space of the data into that of the table."""
        assert self._place is not None, "a rotated table has no place for centers"
        return self._place.centers(centers)

    # ---- What a table knows of each case

    def of_runs(self, index: np.ndarray | slice) -> Any:
        """Return the table for some of the runs only (each may have its own weights)."""
        if len(self.weights) == 1:
            return self
        part = copy.copy(self)
        part.weights, part._norms = self.weights[index], self.arrays.take(self.norms(), index)
        if self.missing:
            part._scale = self.arrays.take(self.scale, index)
        return part

    def exclude(self, groups: Any) -> Any:
        """Return groups with -1 also for cases of which nothing that has weight is observed."""
        return self.arrays.without(groups, self.scale == 0) if self.missing else groups

    def typical_norm(self) -> float:
        """Return the weighted squared norm of a typical case."""
        return self.arrays.middle(self.norms())

    def norms(self) -> Any:
        """Return the weighted squared norm of each case, (1 or runs, n)."""
        if self._norms is None:
            marks = [np.zeros_like(self.weights)] * self.missing
            self._norms = self._row_sums(np.hstack([self.weights, *marks]))
        return self._norms

    @property
    def scale(self) -> Any:
        """Factor of distances for missing cells: all weight / observed weight; 0 if blind."""
        if self._scale is None:
            total = self.weights.sum(axis=1, keepdims=True)
            of_marks = np.hstack([np.zeros_like(self.weights), self.weights])
            observed = self._row_sums(of_marks, self.arrays.xp.float64)
            total = self.arrays.asarray(total)
            self._scale = missing_factors(observed, total, self.arrays.xp)
        return self._scale
