"""Cells whose squared error counts no more than a limit.

A cell beyond the limit from a center costs that limit, whatever it is: it is *flagged*, and takes
no part in its center. The solver works on a bounded engine as on any other. Restarts do not: they
are matrix products, and are made on tables without extreme cells. The passes are made in memory,
piece by piece where the data are not there.
"""

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import numpy as np

from rskc.engines.arrays import MissingSums, PartlyTrimmed, Sums, above_0
from rskc.engines.contract import Assignment, Engine, Latest, Place, Summed, Table
from rskc.engines.memory import team

# Rounds in which flags and centers of given groups are made consistent; two or three are enough.
MOST_FLAGGINGS = 50
# Cells of the rows that are read at once, where the data are not an array in memory.
CELLS_AT_ONCE = 2**22
# The center of a group begins at the median of at most so many of its cases. With 100 the order of
# the cases decided where it began; more than 4,000 would take a sixth more time of 20,000 x 50.
MOST_RANKED = 4000


class BoundedSums(MissingSums):
    """Sums of unflagged cells: totals of their values, and then their numbers."""

    factored = False


# ---- Passes: in the frame are centers, and limits (q,), the most that a squared error counts


def pieces(engine: Engine, columns: np.ndarray) -> Iterator[tuple]:
    """Yield all cases: which these are, their cells, and how they come into the frame."""
    if engine.in_place is not None:
        yield slice(None), *_cells_of(engine, columns, None)
        return
    step = max(1, CELLS_AT_ONCE // max(1, len(columns)))
    for first in range(0, engine.n_cases, step):
        cases = np.arange(first, min(first + step, engine.n_cases))
        yield slice(first, first + step), *_cells_of(engine, columns, cases)


def _cells_of(engine: Engine, columns: np.ndarray, cases: np.ndarray | None) -> tuple:
    """Return cells as passes take them: of some cases, or of all that lie in memory anyway."""
    location, factor, _ = engine.frame
    if engine.in_place is not None:
        return engine.in_place, location, factor, columns
    assert cases is not None, "all cases are read at once from memory alone"
    X = np.ascontiguousarray(engine.columns_of(cases, columns))
    return X, location[columns], factor, np.arange(len(columns))


def _threads(engine: Engine, columns: np.ndarray, runs: int) -> int:
    return team(4 * runs * len(columns) * engine.n_cases, engine.n_threads)


def bounded_sums(
    engine: Engine,
    columns: np.ndarray,
    limits: np.ndarray,
    groups: Any,
    centers: np.ndarray,
    shares: np.ndarray | None = None,
) -> tuple[Sums, np.ndarray]:
    """Sum the unflagged cells of groups (runs, n) around centers (runs, K, q).

    Return the sums, and the bounded squared errors (runs, q). Each case counts with its mass, and
    with its share (1 or runs, n) if these are given.
    """
    arrays, (runs, K, q) = engine.arrays, centers.shape
    labels, masses = arrays.to_numpy(groups), arrays.kept_masses(groups)
    shares = np.ones((1, engine.n_cases)) if shares is None else shares
    shares = shares if masses is None else shares * arrays.to_numpy(masses)
    sums, within = BoundedSums.empty(runs, K, 2 * q), np.zeros((runs, q))
    outputs = _threads(engine, columns, runs), sums.totals, sums.counts, within
    for rows, *piece in pieces(engine, columns):
        facts = (np.ascontiguousarray(part[:, rows]) for part in (shares, labels))
        engine.cell_passes.bounded_sums(*piece, limits, *facts, centers, *outputs)
    return sums, within


def group_medians(engine: Engine, columns: np.ndarray, groups: Any, K: int) -> np.ndarray:
    """Return lower medians (runs, K, q) of groups (runs, n), or of evenly spaced cases."""
    labels, threads = engine.arrays.to_numpy(groups), _threads(engine, columns, 1)
    medians = np.empty((len(labels), K, len(columns)))
    for run, out in zip(labels, medians, strict=True):
        order, starts = _by_group(run, K, engine.arrays.host_masses)
        cases = None
        if engine.in_place is None:
            cases, order = np.unique(order, return_inverse=True)
        cells = _cells_of(engine, columns, cases)
        engine.cell_passes.lower_medians(*cells, order, starts, threads, out)
    return medians


def _by_group(
    labels: np.ndarray, K: int, masses: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the cases of each group, one group after the other, and where each begins.

    Where cases have masses they come as their copies would.
    """
    members = [np.flatnonzero(labels == k) for k in range(K)]
    if masses is not None:
        copies = np.clip(np.rint(masses), 1, MOST_RANKED).astype(np.int64)
        members = [np.repeat(cases, copies[cases]) for cases in members]
    members = [cases[:: max(1, -(-len(cases) // MOST_RANKED))] for cases in members]
    return np.concatenate(members), np.cumsum([0, *map(len, members)])


# ---- The engine


class _Bounds:
    """What table and engine do alike with cells: both sum those of groups that are unflagged."""

    _engine: Engine  # the one that is bounded
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
        parts = groups.kept.tobytes() if parted else None
        key = K, labels.tobytes(), parts
        sums = self._latest.get(key, lambda: self._summed(groups, len(labels), K))
        return sums.of_runs(np.arange(len(labels)))  # a copy: sums may be changed

    def _summed(self, groups, runs, K):
        arrays, one, other = self._engine.arrays, slice(0, 1), slice(1, 2)
        if runs == 2 and not arrays.differ(*(arrays.take(groups, r) for r in (one, other)))[0]:
            return self._summed(arrays.take(groups, one), 1, K).of_runs(np.zeros(2, int))
        centers = group_medians(self._engine, self._features, groups, K)
        for _ in range(MOST_FLAGGINGS):
            sums, _ = bounded_sums(self._engine, self._features, self._limits, groups, centers)
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
        place = Place(columns, engine.frame)
        super().__init__(engine.arrays, engine.n_cases, weights, place, engine.missing)
        self._engine, self._features, self._limits = engine, columns, limits
        self._plain, self._latest = plain, Latest()
        self.trim = plain.trim

    def of_runs(self, index):
        weights = self.weights[index] if len(self.weights) > 1 else self.weights
        plain = self._plain.of_runs(index)
        return BoundedTable(self._engine, self._features, self._limits, plain, weights)

    def place(self, centers):
        return self._engine.frame.place(centers)[:, :, self._features]  # and cut nothing off

    def assign(self, centers):
        engine, shape = self._engine, (len(centers), self.n_cases)
        labels, costs = np.empty(shape, np.int32), np.empty(shape)
        threads = _threads(engine, self._features, centers.shape[1])
        for rows, *piece in pieces(engine, self._features):
            for r, run_centers in enumerate(np.ascontiguousarray(centers, np.float64)):
                weights = self.weights[r * (len(self.weights) > 1)]
                facts = weights, self._limits, run_centers, threads
                engine.cell_passes.nearest_bounded(*piece, *facts, labels[r, rows], costs[r, rows])
        return Assignment(*map(self.arrays.from_numpy, (labels, costs)))

    def exclude(self, groups):
        return self._plain.exclude(groups)

    def single_moves(self, groups, K):
        """Move none: what there is to gain by them was gained on the table without extremes."""
        return Summed(groups, self.sums(groups, K))


class BoundedEngine(_Bounds, Engine):
    """An engine whose cells have limits (p,), infinite for none: of errors in the space of X."""

    def __init__(self, engine: Engine, limits: np.ndarray):
        shape = engine.n_cases, engine.n_features
        super().__init__(engine.arrays, shape, engine.dtype, engine.frame, engine.missing)
        self._engine, self._features = engine, np.arange(engine.n_features)
        self._limits, self._latest = (limits * engine.frame.factor) ** 2, Latest()
        self.limits, self.seen = limits, engine.seen
        self.n_missing, self.n_unobserved = engine.n_missing, engine.n_unobserved

    def part(self, cases, masses=None):
        return BoundedEngine(self._engine.part(cases, masses), self.limits)

    def table(self, weights, dtype=None):
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
            bounded_sums(engine, self._features, self._limits, groups, points, shares)[1]
            for points in (np.repeat(mean, centers.shape[1], axis=1), centers)
        )
        return np.where(self.equal_weights() > 0, total - within, -1.0)

    def distances(self, labels, centers, weights):
        columns = np.flatnonzero(weights.any(axis=0))
        weights, limits = np.ascontiguousarray(weights[:, columns]), self._limits[columns]
        centers, labels = centers[:, :, columns], self.arrays.to_numpy(labels)
        threads, parts = _threads(self._engine, columns, len(labels)), []
        for rows, *piece in pieces(self._engine, columns):
            some = np.ascontiguousarray(labels[:, rows])
            facts = weights, limits, some, np.ascontiguousarray(centers), threads
            parts.append(np.empty(some.shape))
            self._engine.cell_passes.bounded_distances(*piece, *facts, parts[-1])
        return self.arrays.from_numpy(np.concatenate(parts, axis=1))


# What a bounded engine takes from the engine that is bounded.
OF_THE_DATA = ["rows", "columns_of", "returned", "as_result", "forget_part", "largest_cell"]
OF_THE_DATA += ["farthest", "little_seen", "set_aside", "_factors", "observed_features"]
OF_THE_DATA += ["work_bytes"]
for name in OF_THE_DATA:
    setattr(BoundedEngine, name, property(attrgetter(f"_engine.{name}")))
