"""An engine in which the squared error of a cell counts no more than a limit.

A cell beyond the limit from a center costs that limit, whatever it is: it is *flagged*, and takes
no part in its center. The solver works on a bounded engine as on any other. Restarts do not: they
are matrix products, and are made on tables without extreme cells.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from rskc.engines.base import BaseEngine, Latest, above_0
from rskc.engines.descent import descend_by_passes
from rskc.engines.interface import Assignment, Engine, Moved, Regrouping
from rskc.engines.masses import whole
from rskc.engines.missing import MissingSums

# Rounds in which flags and centers of given groups are made consistent; two or three are enough.
MOST_FLAGGINGS = 50
# What does not depend on how errors are measured is that of the engine, or table, that is bounded.
CASES = (
    "n_cases n_features n_missing n_unobserved n_threads mass rounded weighted arrays work_bytes "
    "searchable frame unit dtype seen rotated cases_at rows columns_of numbers returned as_result "
    "equal_weights set_aside farthest distinct largest_cell little_seen place restore trim exclude "
    "expect forget_part"
)
OF_CASES = frozenset(CASES.split())


class BoundedSums(MissingSums):
    """Sums of unflagged cells: totals of their values, and then their numbers."""

    factored = False

    def copy(self):
        """Return sums that may be changed."""
        return BoundedSums(self.totals.copy(), self.counts.copy())


class _Bounds:
    """What table and engine do alike with cells: both sum those of groups that are unflagged."""

    _engine: Any  # the one that is bounded
    _columns: np.ndarray  # (q,)
    _limits: np.ndarray  # (q,) of squares in the frame
    _latest: Latest

    def sums(self, groups, K):
        """Sum the unflagged cells: flags and centers are those of each other.

        Centers begin at medians, so that they do not depend on how the groups came about. The
        lower median is a cell itself, so that one cell at least is unflagged. The last groups are
        remembered: at convergence the same are asked for several times.
        """
        arrays = self._engine.arrays
        key = K, arrays.to_numpy(groups).tobytes(), _parts_of(groups)
        return self._latest.get(key, lambda: self._summed(groups, K)).copy()

    def _summed(self, groups, K):
        arrays = self._engine.arrays
        if len(arrays.sizes(groups, K)) == 2 and not arrays.differ(
            arrays.take(groups, slice(0, 1)), arrays.take(groups, slice(1, 2))
        ):
            return self._summed(arrays.take(groups, slice(0, 1)), K).of_runs(np.zeros(2, int))
        centers = self._engine.group_medians(self._columns, groups, K)
        for _ in range(MOST_FLAGGINGS):
            found = self._engine.bounded_sums(self._columns, self._limits, groups, centers)
            sums = BoundedSums(found.totals, found.counts)
            before, centers = centers, sums.means()
            if np.array_equal(before, centers, equal_nan=True):
                break
        return sums

    def shift(self, sums, before, after):
        """Bring sums from one grouping to another: they are made anew."""
        new = self.sums(after, sums.counts.shape[1])
        sums.totals[:], sums.counts[:] = new.totals, new.counts
        return self._engine.arrays.differ(before, after)


class BoundedTable(_Bounds):
    """The columns that carry weight; what has to do with no cell is left to a plain table."""

    def __init__(self, engine, columns, limits, plain, weights):
        self._engine, self._columns, self._limits = engine, columns, limits
        self._plain, self.weights, self.n_columns = plain, weights, len(columns)
        self._latest = Latest()

    def __getattr__(self, name):
        if name not in OF_CASES:  # what sees cells must not be that of the plain table
            raise AttributeError(name)
        return getattr(self._plain, name)

    def descend(self, centers, m, max_iter, tol=0.0):
        return descend_by_passes(self, centers, m, max_iter, tol)

    def of_runs(self, index):
        own = self.weights[index] if len(self.weights) > 1 else self.weights
        plain = self._plain.of_runs(index)
        return BoundedTable(self._engine, self._columns, self._limits, plain, own)

    def place(self, centers):
        return self._engine.place(centers)[:, :, self._columns]

    def assign(self, centers):
        arrays, each = self._engine.arrays, []
        for r, own in enumerate(np.ascontiguousarray(centers, np.float64)):
            weights = self.weights[r * (len(self.weights) > 1)]
            each.append(self._engine.nearest_bounded(self._columns, weights, self._limits, own))
        labels, costs = (
            arrays.join([arrays.as_run(x) for x in part]) for part in zip(*each, strict=True)
        )
        return Assignment(labels, costs)

    def regroup(self, assignment, m, sums, before):
        groups, within = self.trim(assignment, m)
        return Regrouping(groups, within, self.shift(sums, before, groups))

    def single_moves(self, groups, K, max_rounds=100):
        return Moved(
            groups,
            self.sums(groups, K),
            np.zeros(len(self._engine.arrays.sizes(groups, K)), np.int64),
        )


class BoundedEngine(_Bounds):
    """An engine whose cells have limits (p,), infinite for none: of errors in the space of X."""

    def __init__(self, engine, limits):
        self._engine, self._columns = engine, np.arange(engine.n_features)
        self.cell_limits, self._latest = limits, Latest()
        self._limits = (limits * engine.frame.factor) ** 2

    def __getattr__(self, name):
        if name not in OF_CASES:
            raise AttributeError(name)
        return getattr(self._engine, name)

    take_out_farthest = BaseEngine.take_out_farthest
    _without = BaseEngine._without
    nearest = BaseEngine.nearest

    def part(self, cases, masses=None):
        return BoundedEngine(self._engine.part(cases, masses), self.cell_limits)

    def table(self, weights):
        columns = np.flatnonzero(weights.any(axis=0))
        own = np.ascontiguousarray(weights[:, columns])
        return BoundedTable(
            self._engine, columns, self._limits[columns], self._engine.table(weights), own
        )

    rough_table = compact_table = table

    def between(self, sums, groups, weights):
        """Return B_j: the bounded total less the bounded within sum."""
        engine, centers = self._engine, sums.means()
        shares = None
        if engine.n_missing:
            shares = engine.arrays.to_numpy(engine._factors(weights))
        values, cells = sums.halves()
        mean = (values.sum(axis=1) / above_0(cells.sum(axis=1)))[:, None]
        total, within = (
            engine.bounded_sums(self._columns, self._limits, groups, points, shares).within
            for points in (np.repeat(mean, centers.shape[1], axis=1), centers)
        )
        return np.where(engine.equal_weights() > 0, total - within, -1.0)

    def distances(self, labels, centers, weights=None):
        weights = self.equal_weights() if weights is None else weights
        columns = np.flatnonzero(weights.any(axis=0))
        own = np.ascontiguousarray(weights[:, columns]), self._limits[columns]
        centers = np.ascontiguousarray(centers[:, :, columns])
        return self._engine.bounded_distances(columns, *own, labels, centers)

    def squared(self, centers, weights):
        """Return bounded distances (n, K) to all centers (K, p), in the units of the data."""
        return self._engine.arrays.from_numpy(
            (self._to_all(centers, weights) * self.unit).astype(self.dtype)
        )

    def transform(self, centers, weights):
        """Return their roots."""
        roots = np.sqrt(self._to_all(centers, weights)) / self.frame.factor
        return self._engine.arrays.from_numpy(roots.astype(self.dtype))

    def _to_all(self, centers, weights):
        arrays = self._engine.arrays
        labels = arrays.from_numpy(np.zeros((len(centers), self.n_cases), np.int32))
        found = self.distances(labels, centers[:, None, :], weights[None])
        return np.ascontiguousarray(arrays.to_numpy(found).T)


def _parts_of(groups):
    """Return what is known of cases that are trimmed in part."""
    return None if whole(groups) is groups else (groups.cut.tobytes(), groups.left.tobytes())


def bounded_engine(engine: Engine, limits: np.ndarray) -> Engine:
    """Return an engine in which the error of a cell counts no more than its limit (p,)."""
    return cast(Engine, BoundedEngine(engine, limits))
