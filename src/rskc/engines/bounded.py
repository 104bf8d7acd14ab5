"""An engine in which the squared error of a cell counts no more than a limit.

A cell beyond the limit from a center costs that limit, whatever it is: it is *flagged*, and takes
no part in its center. The solver works on a bounded engine as on any other. Restarts do not: they
are matrix products, and are made on tables without extreme cells.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rskc.engines.contract.engine import Engine
from rskc.engines.contract.results import Assignment, Moved
from rskc.engines.contract.tables import Table
from rskc.engines.groups import PartlyTrimmed
from rskc.engines.keeping import Latest
from rskc.engines.sums import above_0

# Rounds in which flags and centers of given groups are made consistent; two or three are enough.
MOST_FLAGGINGS = 50
# What a bounded engine takes from the engine that is bounded, beside the methods that say so.
OF_DATA = {"work_bytes", "observed_features", "rows", "returned", "largest_cell", "farthest"}
OF_DATA |= {"_factors"}


class _Bounds:
    """What table and engine do alike with cells: both sum those of groups that are unflagged."""

    _engine: Any  # the one that is bounded
    _features: np.ndarray  # (q,)
    _limits: np.ndarray  # (q,) of squares in the frame
    _latest: Latest

    def sums(self, groups, K):
        """Sum the unflagged cells: flags and centers are those of each other.

        Centers begin at medians, so that they do not depend on how the groups came about. The
        lower median is a cell itself, so that one cell at least is unflagged. The last groups are
        remembered: at convergence the same are asked for several times.
        """
        labels = self._engine.arrays.to_numpy(groups)
        parted = isinstance(groups, PartlyTrimmed)
        parts = (groups.cut.tobytes(), groups.left.tobytes()) if parted else None
        key = K, labels.tobytes(), parts
        sums = self._latest.get(key, lambda: self._summed(groups, len(labels), K))
        return sums.of_runs(np.arange(len(labels)))  # a copy: sums may be changed

    def _summed(self, groups, runs, K):
        arrays, one, other = self._engine.arrays, slice(0, 1), slice(1, 2)
        if runs == 2 and not arrays.differ(*(arrays.take(groups, r) for r in (one, other)))[0]:
            return self._summed(arrays.take(groups, one), 1, K).of_runs(np.zeros(2, int))
        centers = self._engine.group_medians(self._features, groups, K)
        for _ in range(MOST_FLAGGINGS):
            sums, _ = self._engine.bounded_sums(self._features, self._limits, groups, centers)
            before, centers = centers, sums.means()
            if np.array_equal(before, centers, equal_nan=True):
                break
        return sums

    def shift(self, sums, before, after):
        """Bring sums from one grouping to another: they are made anew."""
        new = self.sums(after, sums.counts.shape[1])
        sums.totals[:], sums.counts[:] = new.totals, new.counts
        return self._engine.arrays.differ(before, after)


class BoundedTable(_Bounds, Table):
    """The columns that carry weight; what has to do with no cell is left to a plain table."""

    def __init__(self, engine, columns, limits, plain, weights):
        super().__init__(engine.n_cases, weights, None, engine.missing)
        self._use(engine.arrays)
        self._engine, self._features, self._limits = engine, columns, limits
        self._plain, self._latest = plain, Latest()
        self.rotated = False

    @property
    def work_bytes(self):
        return self._plain.work_bytes

    def of_runs(self, index):
        weights = self.weights[index] if len(self.weights) > 1 else self.weights
        plain = self._plain.of_runs(index)
        return BoundedTable(self._engine, self._features, self._limits, plain, weights)

    def place(self, centers):
        return self._engine.place(centers)[:, :, self._features]

    def assign(self, centers):
        arrays, found = self.arrays, []
        for r, run_centers in enumerate(np.ascontiguousarray(centers, np.float64)):
            weights = self.weights[r * (len(self.weights) > 1)]
            facts = self._features, weights, self._limits, run_centers
            nearest = self._engine.nearest_bounded(*facts)
            found.append([arrays.as_run(part) for part in nearest])
        return Assignment(*(arrays.join(parts) for parts in zip(*found, strict=True)))

    def trim(self, assignment, m):
        return self._plain.trim(assignment, m)

    def exclude(self, groups):
        return self._plain.exclude(groups)

    def single_moves(self, groups, K):
        """Move none: what there is to gain by them was gained on the table without extremes."""
        sums = self.sums(groups, K)
        return Moved(groups, sums, np.zeros(len(sums.counts), np.int64))


class BoundedEngine(_Bounds, Engine):
    """An engine whose cells have limits (p,), infinite for none: of errors in the space of X."""

    def __init__(self, engine: Engine, limits: np.ndarray):
        shape = engine.n_cases, engine.n_features
        super().__init__(shape, engine.dtype, engine.frame, engine.missing)
        self._use(engine.arrays)
        self._engine, self._features = engine, np.arange(engine.n_features)
        self._limits, self._latest = (limits * engine.frame.factor) ** 2, Latest()
        self.limits, self.seen = limits, engine.seen
        self.n_missing, self.n_unobserved = engine.n_missing, engine.n_unobserved

    # ---- The data are those of the engine that is bounded

    def __getattr__(self, name):
        if name not in OF_DATA:
            raise AttributeError(f"A bounded engine has no {name!r}.")
        return getattr(self._engine, name)

    def columns_of(self, cases, columns):
        return self._engine.columns_of(cases, columns)

    def as_result(self, array):
        return self._engine.as_result(array)

    def forget_part(self):
        self._engine.forget_part()

    def little_seen(self, weights, share):
        return self._engine.little_seen(weights, share)

    def set_aside(self, groups, weights):
        return self._engine.set_aside(groups, weights)

    def part(self, cases, masses=None):
        return BoundedEngine(self._engine.part(cases, masses), self.limits)

    # ---- Errors are bounded

    def table(self, weights):
        columns = np.flatnonzero(weights.any(axis=0))
        plain, weights = self._engine.table(weights), np.ascontiguousarray(weights[:, columns])
        return BoundedTable(self._engine, columns, self._limits[columns], plain, weights)

    def between(self, sums, groups, weights):
        """Return B_j: the bounded total less the bounded within sum."""
        engine, centers = self._engine, sums.means()
        shares = engine.arrays.to_numpy(self._factors(weights)) if self.missing else None
        values, cells = sums.halves()
        mean = (values.sum(axis=1) / above_0(cells.sum(axis=1)))[:, None]
        total, within = (
            engine.bounded_sums(self._features, self._limits, groups, points, shares)[1]
            for points in (np.repeat(mean, centers.shape[1], axis=1), centers)
        )
        return np.where(self.equal_weights() > 0, total - within, -1.0)

    def distances(self, labels, centers, weights=None):
        weights = self.equal_weights() if weights is None else weights
        columns = np.flatnonzero(weights.any(axis=0))
        active = np.ascontiguousarray(weights[:, columns]), self._limits[columns]
        centers = np.ascontiguousarray(centers[:, :, columns])
        return self._engine.bounded_distances(columns, *active, labels, centers)
