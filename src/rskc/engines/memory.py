"""The engine for NumPy arrays in memory."""

from __future__ import annotations

import copy
from types import ModuleType

import numpy as np
from scipy.linalg import lapack

from rskc.engines import passes_numpy
from rskc.engines.cases import NumpyCases
from rskc.engines.frame import Frame, Place
from rskc.engines.interface import (
    Assignment,
    Cases,
    Farthest,
    Grouping,
    Listed,
    Moved,
    Regrouping,
    Sums,
)

PASSES: ModuleType
try:
    from rskc.engines import _passes as PASSES
except ImportError:  # built without a compiler
    PASSES = passes_numpy

# Below this many multiplications a pass is over before a second thread has woken up.
THREAD_WORK = 10_000_000
# A column subset is copied if that saves at least this share of the columns...
SUBSET_SHARE = 0.25
# ... or if the copy is small anyway.
SUBSET_BYTES = 2**25
# Tables up to this size are also kept row by row: sums read single cases, 4 times as fast so.
# Larger ones too, if both copies together take no more than the data, as in single precision.
ROWS_BYTES = 2**25
# Restarts go in batches whose work arrays (labels, groups, costs, sums) stay within this.
WORK_BYTES = 2**25
ARRAYS = NumpyCases()
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


def has_missing(X: np.ndarray) -> bool:
    """Whether a cell is missing; the sum tells, mostly, without an array as large as X."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isnan(np.sum(X)) and np.isnan(X).any())


def passes_info() -> dict:
    """Say which passes are in use."""
    return {
        "compiled": PASSES is not passes_numpy,
        "openmp": PASSES.has_openmp(),
        "max_threads": PASSES.max_threads(),
    }


class MemoryTable:
    """Columns of the data that carry weight, or coordinates with the same distances.

    ``blocks`` holds the cases in blocks of ``passes.BLOCK``, column by column within a block; that
    is what products read. ``rows`` is for reading single cases: the same row by row
    (``row_block`` = 1), or ``blocks`` again where a second copy would be large.
    """

    arrays: Cases = ARRAYS
    width_factor = 1  # columns in storage for each column
    sums_type = Sums

    def __init__(self, blocks, rows, weights, n_threads, passes, place):
        self.blocks, self.rows = blocks, blocks if rows is None else rows
        self.row_block = passes.BLOCK if rows is None else 1
        self.weights, self.n_threads, self.passes = weights, n_threads, passes
        self.n_columns = weights.shape[1]
        self.width = self.width_factor * self.n_columns
        self.n_cases = blocks.size // self.width
        self.rotated = place is None
        self._place = place
        self._norms = None

    @property
    def work_bytes(self):
        """A batch reads the table once for all its runs: large tables get a third of their size."""
        return max(WORK_BYTES, self.n_cases * self.n_columns * 4 // 3)

    def norms(self):
        if self._norms is None:
            self._norms = self._row_sums(self.weights)
        return self._norms

    def of_runs(self, index):
        if len(self.weights) == 1:
            return self
        part = copy.copy(self)
        part.weights, part._norms = self.weights[index], self.norms()[index]
        return part

    def assign(self, centers):
        weighted = self.weights[:, None, :] * centers
        constants = np.einsum("rkj,rkj->rk", weighted, centers)
        return self._nearest(-2 * weighted, constants)

    def _nearest(self, factors, constants):
        """Find the least of x * factors + constants (runs, K) for every case and run."""
        runs, K, _ = factors.shape
        dtype = self.blocks.dtype
        labels = np.empty((runs, self.n_cases), np.int32)
        costs = np.empty((runs, self.n_cases), dtype)
        self.passes.assign(
            self.blocks,
            self.passes.BLOCK,
            np.ascontiguousarray(factors, dtype),
            constants.astype(dtype),
            self.norms(),
            self._threads(runs * K * self.width),
            labels,
            costs,
        )
        return Assignment(labels, costs)

    def trim(self, assignment, m):
        groups, within = np.empty_like(assignment.labels), np.empty(len(assignment.labels))
        threads = self._threads(20 * len(groups))
        self.passes.trim(assignment.labels, assignment.costs, m, threads, groups, within)
        return Grouping(groups, within)

    def regroup(self, assignment, m, sums, before):
        groups, within = self.trim(assignment, m)
        return Regrouping(groups, within, self.shift(sums, before, groups))

    def exclude(self, groups):
        return groups

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
            before,
            after,
            self._threads(len(before) * self.width),
            sums.totals,
            sums.counts,
            moved,
        )
        return moved

    def single_moves(self, groups, K, max_rounds=100):
        return self._move(self.passes.single_moves, (), groups, K, max_rounds)

    def _move(self, single_moves, scale, groups, K, max_rounds):
        groups, sums, moves = groups.copy(), self.sums(groups, K), np.empty(len(groups), np.int64)
        single_moves(
            self.rows,
            self.row_block,
            self.weights,
            *scale,
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

    def seeds(self):
        return self

    def _row_sums(self, weights):
        """sum_j weights_j x_j^2 of each case, for each row of weights."""
        out = np.empty((len(weights), self.n_cases), self.blocks.dtype)
        threads = self._threads(self.width * len(weights))
        self.passes.row_norms(self.blocks, self.passes.BLOCK, weights, threads, out)
        return out

    def _gather(self, index, columns):
        """The first columns of some cases."""
        first = index - index % self.row_block
        stride = np.minimum(self.row_block, self.n_cases - first)
        start = first * self.width + index - first
        return self.rows[start[..., None] + stride[..., None] * np.arange(columns)]

    def place(self, centers):
        return self._place.centers(centers)

    def _threads(self, work_per_case):
        return self.n_threads if work_per_case * self.n_cases > THREAD_WORK else 1


class MemoryEngine:
    """Passes over a C-ordered float32 or float64 array without missing cells."""

    arrays: Cases = ARRAYS
    work_bytes = WORK_BYTES

    searchable = True

    def __init__(self, X, *, frame=None, n_threads=1, passes=PASSES):
        self.X, self.n_threads, self.passes = X, n_threads, passes
        self.n_cases, self.n_features = X.shape
        self.n_missing = 0
        self.frame = frame or Frame.of(X)
        with np.errstate(over="ignore", under="ignore"):
            self.unit = float(np.power(self.frame.factor, -2.0))
        self._rotated = self._last = None
        self.n_unobserved, self.seen = 0, None

    def leave_out(self, unobserved):
        """Take note of unobserved cases (of all): the data of this engine are without them."""
        self.n_unobserved, self.seen = (
            int(np.count_nonzero(unobserved)),
            np.flatnonzero(~unobserved),
        )

    def part(self, cases):
        return MemoryEngine(
            self.X[cases], frame=self.frame, n_threads=self.n_threads, passes=self.passes
        )

    def numbers(self, cases):
        return cases if self.seen is None else self.seen[cases]

    def returned(self, array, unobserved):
        if self.seen is None:
            return array
        whole = np.full(self.n_cases + self.n_unobserved, unobserved, array.dtype)
        whole[self.seen] = array
        return whole

    def distinct(self, most):
        seen = set()
        for row in self.X:
            seen.add((row + 0.0).tobytes())  # -0.0 is the same as 0.0
            if len(seen) >= most:
                break
        return len(seen)

    def largest_cell(self):
        return float(np.abs(self.X).max())

    def little_seen(self, weights, share):
        return Listed(0, np.empty(0, np.int64))

    def equal_weights(self):
        return np.ones((1, self.n_features))

    def table(self, weights):
        return self._columns_table(weights, FLOAT64)

    def compact_table(self, weights):
        active = np.count_nonzero(weights.any(axis=0))
        if len(weights) > 1 or active <= self.n_cases:
            return self.table(weights)
        return self._rotated_table(weights, FLOAT64)

    def search_table(self, weights):
        active = np.count_nonzero(weights.any(axis=0))
        if len(weights) > 1 or active <= self.n_cases:
            return self._columns_table(weights, FLOAT32)
        return self._rotated_table(weights, FLOAT32)

    def sums(self, groups, K):
        sums = Sums.empty(len(groups), K, self.n_features)
        self.shift(sums, np.full_like(groups, -1), groups)
        return sums

    def shift(self, sums, before, after):
        moved = np.empty(len(before), np.int64)
        threads = self._threads(len(before) * self.n_features)
        location, factor, _ = self.frame
        rows = self.X.reshape(-1)
        self.passes.shift_sums(
            rows, 1, location, factor, before, after, threads, sums.totals, sums.counts, moved
        )
        return moved

    def distances(self, labels, centers, weights=None):
        if weights is None:
            weights = np.ones((1, self.n_features))
        out = np.empty(labels.shape)
        threads = self._threads(len(labels) * self.n_features)
        location, factor, _ = self.frame
        self.passes.own_distances(self.X, location, factor, weights, labels, centers, threads, out)
        return out

    def transform(self, centers, weights):
        labels = np.zeros((len(centers), self.n_cases), np.int32)
        distances = self.distances(labels, centers[:, None, :], weights[None])
        return (distances.T * self.unit).astype(self.X.dtype)

    def as_result(self, array):
        return array

    def between(self, sums, groups, weights):
        return sums.between()

    def set_aside(self, groups, weights):
        return groups < 0

    def farthest(self, distances, m):
        groups = np.zeros(distances.shape, np.int32)
        if m > 0:
            kept, labels = np.empty(len(distances)), np.zeros_like(groups)
            self.passes.trim(labels, distances, m, self._threads(20 * len(labels)), groups, kept)
        return Farthest(groups < 0, distances.max(axis=1))

    def place(self, centers):
        return self.frame.place(centers)

    def restore(self, centers):
        return (centers / self.frame.factor + self.frame.location).astype(self.X.dtype)

    def _columns_table(self, weights, dtype):
        columns = self._columns(weights)
        blocks, rows = self._layout(columns, dtype)
        weights, place = np.ascontiguousarray(weights[:, columns]), Place(columns, self.frame)
        return self._table_of(blocks, rows, weights, self.n_threads, self.passes, place)

    def _table_of(self, *parts):
        return MemoryTable(*parts)

    def _layout(self, columns, dtype):
        """The cells of a table in blocks and, where there is room, row by row.

        The last small one is kept: weights change more often than which of them are above 0.
        """
        key = (dtype, columns.tobytes())
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        layout = self._lay_out(columns, dtype)
        if layout[0].nbytes <= ROWS_BYTES:
            self._last = (key, layout)
        return layout

    def _lay_out(self, columns, dtype):
        blocks, rows = self._laid_out(columns, dtype, self.passes.BLOCK), None
        most = max(ROWS_BYTES, self.X.nbytes - blocks.nbytes)
        if self.passes.BLOCK > 1 and blocks.nbytes <= most:
            rows = self._laid_out(columns, dtype, 1)
        return blocks, rows

    def _laid_out(self, columns, dtype, block):
        out = np.empty(self.n_cases * len(columns), dtype)
        threads = self._threads(4 * len(columns))
        self.passes.table(self.X, columns, *self.frame, block, threads, out)
        return out

    def _columns(self, weights):
        """Active columns; all of them where a subset would save little of a large copy."""
        active = np.flatnonzero(weights.any(axis=0))
        small = self.n_cases * len(active) * self.X.itemsize <= SUBSET_BYTES
        if small or len(active) <= SUBSET_SHARE * self.n_features:
            return active
        return np.arange(self.n_features)

    def _rotated_table(self, weights, dtype):
        """Coordinates of the cases in the space that they span, n x n instead of n x q."""
        if self._rotated is None or not np.array_equal(self._rotated[0], weights):
            columns = self._columns(weights)
            rows = self._laid_out(columns, FLOAT64, 1).reshape(self.n_cases, -1)
            self._rotated = (weights, span_coordinates(rows * np.sqrt(weights[0, columns])))
        rows = self._rotated[1].astype(dtype)
        blocks, ones = to_blocks(rows, self.passes.BLOCK), np.ones((1, rows.shape[1]))
        return MemoryTable(blocks, rows.reshape(-1), ones, self.n_threads, self.passes, None)

    def _threads(self, work_per_case):
        return self.n_threads if work_per_case * self.n_cases > THREAD_WORK else 1


def span_coordinates(rows: np.ndarray) -> np.ndarray:
    """Coordinates (n, rank) with the same scalar products as the rows (n, q).

    A pivoted Cholesky factor of the Gram matrix: its error is of the size that the scalar products
    have anyway, and for 78 x 4751 it takes 1 ms where a QR factorization takes 8.
    """
    return gram_coordinates(rows @ rows.T)


def gram_coordinates(gram: np.ndarray) -> np.ndarray:
    """Coordinates (n, rank) with these scalar products (n, n).

    Rows are brought to length 1 for it, so that one outlying case does not decide what counts as 0.
    """
    norms = np.sqrt(gram.diagonal())
    norms[norms == 0] = 1.0
    factor, pivots, rank, _ = lapack.dpstrf(gram / norms / norms[:, None], lower=1)
    rank = max(rank, 1)  # cases that are all alike have one coordinate, 0
    coordinates = np.empty((len(gram), rank))
    coordinates[pivots - 1] = np.tril(factor)[:, :rank]
    return coordinates * norms[:, None]


def to_blocks(rows: np.ndarray, block: int) -> np.ndarray:
    """Lay the rows (n, q) out in blocks, column by column within a block."""
    if block == 1:
        return rows.reshape(-1)
    return np.concatenate([rows[i : i + block].T.ravel() for i in range(0, len(rows), block)])
