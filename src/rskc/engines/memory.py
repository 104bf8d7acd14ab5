"""The engine for NumPy arrays in memory."""

from __future__ import annotations

from functools import lru_cache, partial
from types import ModuleType

import numpy as np

from rskc.engines import passes_numpy
from rskc.engines.base import BaseEngine, BaseTable, Frame, Sums, case_numbers, sums_to_keys
from rskc.engines.cells import Piece
from rskc.engines.empty import candidates_needed, costliest, fill_from
from rskc.engines.interface import (
    Assignment,
    Cases,
    Descended,
    Farthest,
    Grouping,
    Moved,
    Regrouping,
)
from rskc.engines.masses import Parted
from rskc.engines.teams import team

PASSES: ModuleType
try:
    from rskc.engines import _passes as PASSES
except ImportError:  # built without a compiler
    PASSES = passes_numpy

# Up to this many cases the runs of a batch are counted all at once: Python takes longer than that.
FEW_CASES = 500
# Tables up to this size are also kept row by row: sums read single cases, 4 times as fast so.
# Larger ones too, if both copies together take no more than the data, as in single precision.
ROWS_BYTES = 2**25
# Restarts go in batches whose work arrays (labels, groups, costs, sums) stay within this.
WORK_BYTES = 2**25
# Descents are made in groups of so many runs, which share products and belong to one thread; of few
# runs each group has fewer.
MOST_TOGETHER, FEWEST_GROUPS = 8, 16
# A few runs that take more multiplications than this in an iteration share threads within passes.
FEW_RUNS, LONG_RUN = 4, 10_000_000
# Where no case is trimmed in part, before and after.
NOTHING_CUT = None, None, None, None


def passes_info() -> dict:
    """Return which passes are in use, and how many threads they may have."""
    return {
        "compiled": PASSES is not passes_numpy,
        "openmp": PASSES.has_openmp(),
        "max_threads": PASSES.max_threads(),
    }


class NumpyCases:
    """:class:`~rskc.engines.interface.Cases` for NumPy arrays."""

    xp = np
    masses: np.ndarray | None = None  # (n,) of cases that do not all count the same

    def asarray(self, array):
        return array

    def to_numpy(self, array):
        return array

    def from_numpy(self, array):
        return array

    def take(self, array, runs):
        return array[runs]

    def only(self, array):
        return array[0]

    def as_run(self, array):
        return array[None]

    def join(self, parts):
        return np.concatenate(parts)

    def without(self, groups, out):
        return np.where(out, np.int32(-1), groups)

    def trimmed(self, groups):
        return groups < 0

    def sizes(self, groups, K):
        return self._of_groups(groups, K, None)[:, 1:].astype(np.int64)

    def differ(self, groups, others):
        return np.count_nonzero(groups != others, axis=1)

    def keys(self, groups, K, masks=None):
        numbers = _case_numbers(groups.shape[1])
        sums = self._of_groups(groups, K, numbers)
        marks = None if masks is None else (masks * numbers[::-1]).sum(axis=1)
        return sums_to_keys(sums, marks)

    def _of_groups(self, groups, K, values):
        """Sum values (n,), or count, over the trimmed cases and over each group: (runs, 1 + K)."""
        runs, n = groups.shape
        if n > FEW_CASES:
            return np.array([np.bincount(row + 1, values, K + 1) for row in groups])
        places = groups + (1 + (K + 1) * np.arange(runs)[:, None])
        weights = None if values is None else np.broadcast_to(values, groups.shape).ravel()
        return np.bincount(places.ravel(), weights, runs * (K + 1)).reshape(runs, K + 1)

    def fill_empty(self, groups, counts, costs):
        groups = groups.copy()
        for run in np.flatnonzero((counts == 0).any(axis=1)):
            most = candidates_needed(counts[run])
            found = costliest(groups[run], costs[run], most, self.masses)
            for case, k in fill_from(found, counts[run]):
                groups[run, case] = k
        return groups

    def lesser(self, costs, others):
        return np.minimum(costs, others)

    def draw(self, costs, groups, uniforms):
        ladder = np.cumsum(np.where(groups < 0, 0, costs), axis=1, dtype=np.float64)
        ladder[ladder[:, -1] == 0] = np.arange(1, ladder.shape[1] + 1)  # all alike: any case
        goals = uniforms * ladder[:, -1:]
        if ladder.shape[1] <= FEW_CASES:  # counting is quicker than a search for each run
            places = np.count_nonzero(ladder[:, None, :] <= goals[:, :, None], axis=2)
        else:
            rows = zip(ladder, goals, strict=True)
            places = np.array([np.searchsorted(steps, own, side="right") for steps, own in rows])
        return np.minimum(places, ladder.shape[1] - 1)

    def numbers_where(self, mask):
        return np.flatnonzero(mask)

    def first_members(self, groups, k, most):
        return np.flatnonzero(groups[0] == k)[:most]

    def total(self, costs, out):
        return float(costs[~out].sum())

    def number(self, mask):
        return self.count(mask)

    def count(self, mask):
        return int(np.count_nonzero(mask))

    def masses_at(self, cases):
        return np.ones(len(cases))

    def kept_shares(self, groups):
        return np.ones(len(groups))

    def cube_roots(self, costs, groups, factors):
        return np.cbrt(costs * np.append(factors, 1.0)[groups])

    def spread(self, costs):
        costs = costs[np.isfinite(costs)]
        if len(costs) == 0:  # nothing that has weight is observed of any case
            return 0.0, 0.0
        median = np.median(costs)
        return float(median), float(np.median(np.abs(costs - median)))


@lru_cache(maxsize=4)
def _case_numbers(n: int) -> np.ndarray:
    return case_numbers(0, n, n)


NUMPY_CASES = NumpyCases()


class MemoryTable(BaseTable):
    """Columns of the data that carry weight, or coordinates with the same distances.

    ``blocks`` holds the cases in blocks of ``passes.BLOCK``, column by column within a block; that
    is what products read. ``rows`` is for reading single cases: the same row by row
    (``row_block`` = 1), or ``blocks`` again where a second copy would be large.
    """

    arrays: Cases = NUMPY_CASES

    def __init__(self, blocks, rows, weights, n_threads, passes, place):
        n_cases = blocks.size // (self.width_factor * weights.shape[1])
        super().__init__(n_cases, weights, place)
        self.blocks, self.rows = blocks, blocks if rows is None else rows
        self.row_block = passes.BLOCK if rows is None else 1
        self.n_threads, self.passes = n_threads, passes

    @property
    def scale(self):
        """Nothing is missing, and nothing is scaled up."""
        return None

    @property
    def work_bytes(self):
        """A batch reads the table once for all its runs: large tables get a third of their size."""
        return max(WORK_BYTES, self.n_cases * self.n_columns * 4 // 3)

    def assign(self, centers):
        centers = np.ascontiguousarray(centers, np.float64)
        factors = np.empty(centers.shape, self.blocks.dtype)
        constants = np.empty(centers.shape[:2], self.blocks.dtype)
        self.passes.scale_centers(self.weights, centers, factors, constants)
        return self._nearest(factors, constants)

    def _nearest(self, factors, constants):
        """Find the least of x * factors + constants (runs, K) for every case and run."""
        runs, K, _ = factors.shape
        labels = np.empty((runs, self.n_cases), np.int32)
        costs = np.empty((runs, self.n_cases), self.blocks.dtype)
        self.passes.assign(
            self.blocks,
            self.passes.BLOCK,
            factors,
            constants,
            self.norms(),
            self._threads(runs * K * self.width),
            labels,
            costs,
        )
        return Assignment(labels, costs)

    def trim(self, assignment, m):
        groups, within = np.empty_like(assignment.labels), np.empty(len(assignment.labels))
        threads = self._threads(20 * len(groups))
        self.passes.trim(*assignment, None, m, threads, groups, within, None, None)
        return Grouping(self.exclude(groups), within)

    def regroup(self, assignment, m, sums, before):
        groups, within = self.trim(assignment, m)
        return Regrouping(groups, within, self.shift(sums, before, groups))

    def sums(self, groups, K):
        sums = self.sums_type.empty(len(groups), K, self.width)
        self.shift(sums, np.full_like(groups, -1), groups)
        return sums

    def shift(self, sums, before, after):
        moved = np.empty(len(before), np.int64)
        self.passes.shift_sums(
            self.rows,
            self.row_block,
            np.zeros(self.width),
            1.0,
            None,
            before,
            after,
            *NOTHING_CUT,
            self._threads(len(before) * (20 + self.width)),
            sums.totals,
            sums.counts,
            moved,
        )
        return moved

    def descend(self, centers, m, max_iter, tol=0.0):
        runs, K, _ = centers.shape
        one_run = self.n_cases * self.width * K
        if not hasattr(self.passes, "descend") or (runs < FEW_RUNS and one_run > LONG_RUN):
            return super().descend(centers, m, max_iter, tol)
        groups, labels = np.empty((2, runs, self.n_cases), np.int32)
        within, converged = np.empty(runs), np.empty(runs, np.uint8)
        parts = np.empty((runs, 1), np.int64), np.empty((runs, 1))
        masses = getattr(self.arrays, "masses", None)
        self.passes.descend(
            self.blocks,
            self.passes.BLOCK,
            self.rows,
            self.row_block,
            self.weights,
            self.norms(),
            self.scale,
            masses,
            m,
            max_iter,
            tol,
            np.ascontiguousarray(centers, np.float64),
            min(MOST_TOGETHER, -(-runs // FEWEST_GROUPS)),
            self.n_threads,
            groups,
            labels,
            within,
            converged,
            *parts,
        )
        if masses is not None:
            groups = Parted(groups, *parts)
        return Descended(groups, labels, within, converged.astype(bool))

    def single_moves(self, groups, K, max_rounds=100):
        return self._move(self.passes.single_moves, None, groups, K, max_rounds)

    def _move(self, single_moves, scale, groups, K, max_rounds):
        groups, sums, moves = groups.copy(), self.sums(groups, K), np.empty(len(groups), np.int64)
        single_moves(
            self.rows,
            self.row_block,
            self.weights,
            scale,
            None,
            max_rounds,
            self._threads(groups.size),
            groups,
            sums.totals,
            sums.counts,
            moves,
        )
        return Moved(groups, sums, moves)

    def typical_norm(self):
        return float(np.median(self.norms()))

    def cases(self, index):
        return self._gather(index, self.n_columns)

    def _row_sums(self, weights, dtype=None):
        out = np.empty((len(weights), self.n_cases), dtype or self.blocks.dtype)
        threads = self._threads(self.width * len(weights))
        self.passes.row_norms(self.blocks, self.passes.BLOCK, weights, threads, out)
        return out

    def _gather(self, index, columns):
        """Return the first columns of some cases."""
        if self.row_block == 1:
            return self.rows.reshape(self.n_cases, self.width)[index, :columns]
        first = index - index % self.row_block
        stride = np.minimum(self.row_block, self.n_cases - first)
        start = first * self.width + index - first
        return self.rows[start[..., None] + stride[..., None] * np.arange(columns)]

    def _threads(self, work_per_case):
        return team(work_per_case * self.n_cases, self.n_threads)


class MemoryEngine(BaseEngine):
    """Passes over a C-ordered float32 or float64 array without missing cells."""

    arrays: Cases = NUMPY_CASES
    work_bytes = WORK_BYTES
    table_type = MemoryTable
    sums_type = Sums

    searchable = True

    def __init__(self, X, *, frame=None, n_threads=1, passes=PASSES):
        super().__init__(X.shape, X.dtype, frame or Frame.of(X))
        self.X, self.n_threads, self.passes = X, n_threads, passes
        self.width = self.table_type.width_factor * self.n_features  # columns of its sums

    def rows(self, cases):
        """Return some of the data as they were given."""
        return self.X[cases]

    def part(self, cases, masses=None):
        rows, options = self.rows(cases), {"n_threads": self.n_threads, "passes": self.passes}
        return type(self)(rows, frame=self.frame, **options)

    def pieces(self, columns):
        yield Piece(slice(None), self.X, self.frame.location, self.frame.factor, columns)

    def some_cells(self, columns, order):
        return self.X, self.frame.location, self.frame.factor, columns, order

    @property
    def cell_passes(self):
        return self.passes

    def cell_threads(self, columns, runs):
        return self._threads(4 * runs * len(columns))

    def returned(self, array, unobserved):
        if self.seen is None:
            return array
        whole = np.full(self.n_cases + self.n_unobserved, unobserved, array.dtype)
        whole[self.seen] = array
        return whole

    def largest_cell(self):
        return float(np.abs(self.X).max())

    def sums(self, groups, K):
        sums = self.sums_type.empty(len(groups), K, self.width)
        self.shift(sums, np.full_like(groups, -1), groups)
        return sums

    def shift(self, sums, before, after):
        moved = np.empty(len(before), np.int64)
        threads = self._threads(len(before) * self.width)
        location, factor, _ = self.frame
        rows = self.X.reshape(-1)
        groups, result = (before, after, *NOTHING_CUT), (sums.totals, sums.counts, moved)
        self.passes.shift_sums(rows, 1, location, factor, None, *groups, threads, *result)
        return moved

    def distances(self, labels, centers, weights=None):
        weights = self.equal_weights() if weights is None else weights
        out = np.empty(labels.shape)
        threads = self._threads(len(labels) * self.n_features)
        frame, missing = self.frame[:2], self.sums_type.factored
        self.passes.own_distances(self.X, *frame, weights, labels, centers, missing, threads, out)
        return out

    def squared(self, centers, weights):
        return (self._to_all(centers, weights) * self.unit).astype(self.dtype)

    def transform(self, centers, weights):
        roots = np.sqrt(self._to_all(centers, weights))
        return (roots / self.frame.factor).astype(self.dtype)

    def _to_all(self, centers, weights):
        labels = np.zeros((len(centers), self.n_cases), np.int32)
        return self.distances(labels, centers[:, None, :], weights[None]).T

    def farthest(self, distances, m):
        groups = np.zeros(distances.shape, np.int32)
        if m > 0:
            kept, labels = np.empty(len(distances)), np.zeros_like(groups)
            threads = self._threads(20 * len(labels))
            self.passes.trim(labels, distances, None, m, threads, groups, kept, None, None)
        return Farthest(groups < 0, distances.max(axis=1))

    def _table_of(self, cells, weights, place):
        blocks, rows = cells
        return self.table_type(blocks, rows, weights, self.n_threads, self.passes, place)

    def _cells(self, columns, dtype):
        """Return the cells of a table; the last small ones are kept.

        Weights change more often than which of them are above 0.
        """
        make = partial(self.lay_out, columns, dtype)
        size = self.n_cases * len(columns) * dtype.itemsize * self.table_type.width_factor
        if size > ROWS_BYTES:
            return make()
        return self._layouts.get((dtype, columns.tobytes()), make)

    def lay_out(self, columns, dtype):
        """Return cells in blocks and, where there is room, row by row too (else None)."""
        blocks, rows = self._laid_out(columns, dtype, self.passes.BLOCK), None
        most = max(ROWS_BYTES, self.table_type.width_factor * self.X.nbytes - blocks.nbytes)
        if self.passes.BLOCK > 1 and blocks.nbytes <= most:
            rows = self._laid_out(columns, dtype, 1)
        return blocks, rows

    def _laid_out(self, columns, dtype, block):
        out = np.empty(self.n_cases * len(columns) * self.table_type.width_factor, dtype)
        threads = self._threads(4 * len(columns))
        self.passes.table(self.X, columns, *self.frame, block, threads, out)
        return out

    def weighted_rows(self, columns, weights):
        """Return the cells (n, columns) in the frame, times the roots of their weights."""
        rows = self._laid_out(columns, self.float64, 1).reshape(self.n_cases, -1)
        rows *= np.sqrt(weights)  # in place: wide tables are large
        return rows

    def _gram(self, weights):
        columns = self._columns(weights)
        rows = self.weighted_rows(columns, weights[0, columns])
        return rows @ rows.T

    def _table_of_coordinates(self, coordinates, dtype):
        return table_of_coordinates(coordinates.astype(dtype), self.n_threads, self.passes)

    def _threads(self, work_per_case):
        return team(work_per_case * self.n_cases, self.n_threads)


def table_of_coordinates(
    rows: np.ndarray, n_threads: int = 1, passes=PASSES, made=MemoryTable
) -> MemoryTable:
    """Return a rotated table with these coordinates."""
    blocks, ones = to_blocks(rows, passes.BLOCK), np.ones((1, rows.shape[1]))
    flat = np.ascontiguousarray(rows).reshape(-1)
    return made(blocks, flat, ones, n_threads, passes, None)


def to_blocks(rows: np.ndarray, block: int) -> np.ndarray:
    """Lay the rows (n, q) out in blocks, column by column within a block."""
    if block == 1:
        return rows.reshape(-1)
    return np.concatenate([rows[i : i + block].T.ravel() for i in range(0, len(rows), block)])
