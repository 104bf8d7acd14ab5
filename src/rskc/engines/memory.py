"""The engine for NumPy arrays in memory."""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from rskc.engines import passes_numpy
from rskc.engines.interface import Assignment, Grouping, Sums

try:
    from rskc.engines import _passes
except ImportError:  # built without a compiler
    _passes = None

PASSES = _passes or passes_numpy

# Below this many multiplications a pass is over before a second thread has woken up.
THREAD_WORK = 2_000_000
# A column subset is copied if that saves at least this share of the columns...
SUBSET_SHARE = 0.25
# ... or if the copy is small anyway.
SUBSET_BYTES = 2**25
# Cells beyond this many typical deviations are cut off there, so that their squares stay finite.
LIMIT = {np.dtype(np.float32): 1e15, np.dtype(np.float64): 1e150}


def passes_info() -> dict:
    """Say which passes are in use."""
    return {
        "compiled": _passes is not None,
        "openmp": PASSES.has_openmp(),
        "max_threads": PASSES.max_threads(),
    }


class Frame(NamedTuple):
    """Where the data lie and how large they are: tables hold (X - location) * factor."""

    location: np.ndarray
    factor: float

    @classmethod
    def of(cls, X: np.ndarray) -> Frame:
        """Frame X robustly, from a sample of its rows.

        Centre first: |x|^2 - 2xc + |c|^2 loses digits when the centre of the data is far from 0.
        A median, so that a wild cell of 1e30 does not drag its column away: of 63 rows, since any
        place among the data will do, and a median over all of 300 x 1000 cells takes 4 ms.
        """
        sample = X[:: max(1, -(-len(X) // 63))]
        middle = len(sample) // 2
        location = np.partition(sample, middle, axis=0)[middle].astype(np.float64)
        return cls(location, _power_of_two(X, sample, location))


def _power_of_two(X: np.ndarray, sample: np.ndarray, location: np.ndarray) -> float:
    """Return a factor that brings typical deviations near 1; a power of 2 rounds nothing."""
    step = max(1, X.shape[1] // 64)
    deviations = np.abs(sample[:, ::step] - location[::step])
    deviations = deviations[deviations > 0]
    typical = np.median(deviations) if deviations.size else np.max(np.abs(X - location), initial=0)
    if typical == 0:
        return 1.0
    return float(2.0 ** np.clip(-np.floor(np.log2(typical)), -1000, 1000))


class MemoryTable:
    """Columns of the data that carry weight, or coordinates with the same distances."""

    def __init__(self, rows, weights, n_threads, passes):
        self.rows, self.weights = rows, weights
        self.n_threads, self.passes = n_threads, passes
        self.n_cases, self.n_columns = rows.shape
        self._norms = None

    def norms(self):
        if self._norms is None:
            self._norms = np.empty((len(self.weights), self.n_cases), self.rows.dtype)
            work = self.n_columns * len(self.weights)
            self.passes.row_norms(self.rows, self.weights, self._threads(work), self._norms)
        return self._norms

    def of_runs(self, index):
        if len(self.weights) == 1:
            return self
        part = copy.copy(self)
        part.weights, part._norms = self.weights[index], self.norms()[index]
        return part

    def assign(self, centres):
        runs, K, _ = centres.shape
        dtype, weights = self.rows.dtype, self.weights[:, None, :]
        weighted = weights * centres
        constants = np.einsum("rkj,rkj->rk", weighted, centres).astype(dtype)
        scaled = np.ascontiguousarray(-2 * weighted, dtype)
        labels = np.empty((runs, self.n_cases), np.int32)
        costs = np.empty((runs, self.n_cases), dtype)
        threads = self._threads(runs * K * self.n_columns)
        self.passes.assign(self.rows, scaled, constants, self.norms(), threads, labels, costs)
        return Assignment(labels, costs)

    def trim(self, assignment, m):
        groups, within = np.empty_like(assignment.labels), np.empty(len(assignment.labels))
        threads = self._threads(2 * len(groups))
        self.passes.trim(assignment.labels, assignment.costs, m, threads, groups, within)
        return Grouping(groups, within)

    def sums(self, groups, K):
        sums = Sums.empty(len(groups), K, self.n_columns)
        self.shift(sums, np.full_like(groups, -1), groups)
        return sums

    def shift(self, sums, before, after):
        return _shift(self, self.rows, np.zeros(self.n_columns), sums, before, after)

    def single_moves(self, sums, groups, max_rounds=100):
        moves = np.empty(len(groups), np.int64)
        threads = self._threads(groups.size)
        self.passes.single_moves(
            self.rows, self.weights, max_rounds, threads, groups, sums.totals, sums.counts, moves
        )
        return moves

    def cases(self, index):
        return self.rows[index].astype(np.float64)

    def place(self, centres):
        location, factor = self.frame
        return (centres - location)[:, :, self.columns] * factor

    def _threads(self, work_per_case):
        return self.n_threads if work_per_case * self.n_cases > THREAD_WORK else 1


class MemoryEngine:
    """Passes over a C-ordered float32 or float64 array without holes."""

    def __init__(self, X, *, frame=None, n_threads=1, passes=PASSES):
        self.X, self.n_threads, self.passes = X, n_threads, passes
        self.n_cases, self.n_features = X.shape
        self.frame = frame or Frame.of(X)
        self.location = self.frame.location
        self._rotated = None

    def table(self, weights):
        return self._columns_table(weights, self.X.dtype)

    def compact_table(self, weights):
        active = np.count_nonzero(weights.any(axis=0))
        if len(weights) > 1 or active <= self.n_cases:
            return self.table(weights)
        return self._rotated_table(weights)

    def search_table(self, weights):
        active = np.count_nonzero(weights.any(axis=0))
        if len(weights) > 1 or active <= self.n_cases:
            return self._columns_table(weights, np.dtype(np.float32))
        table = self._rotated_table(weights)
        rows = table.rows.astype(np.float32)
        return MemoryTable(rows, table.weights, self.n_threads, self.passes)

    def sums(self, groups, K):
        sums = Sums.empty(len(groups), K, self.n_features)
        self.shift(sums, np.full_like(groups, -1), groups)
        return sums

    def shift(self, sums, before, after):
        return _shift(self, self.X, self.location, sums, before, after)

    def distances(self, labels, centres, weights=None):
        if weights is None:
            weights = np.ones((1, self.n_features))
        out = np.empty(labels.shape)
        threads = self._threads(len(labels) * self.n_features)
        self.passes.own_distances(self.X, self.location, weights, labels, centres, threads, out)
        return out

    def farthest(self, distances, m):
        groups = np.zeros(distances.shape, np.int32)
        if m > 0:
            kept, labels = np.empty(len(distances)), np.zeros_like(groups)
            self.passes.trim(labels, distances, m, self._threads(2), groups, kept)
        return groups < 0

    def restore(self, centres):
        return (centres + self.location).astype(self.X.dtype)

    def _columns_table(self, weights, dtype):
        columns = self._columns(weights)
        rows = np.empty((self.n_cases, len(columns)), dtype)
        threads = self._threads(len(columns))
        location, factor = self.frame
        self.passes.table(self.X, columns, location, factor, LIMIT[dtype], threads, rows)
        weights = np.ascontiguousarray(weights[:, columns])
        table = MemoryTable(rows, weights, self.n_threads, self.passes)
        table.frame, table.columns = self.frame, columns
        return table

    def _columns(self, weights):
        """Active columns; all of them where a subset would save little of a large copy."""
        active = np.flatnonzero(weights.any(axis=0))
        small = self.n_cases * len(active) * self.X.itemsize <= SUBSET_BYTES
        if small or len(active) <= SUBSET_SHARE * self.n_features:
            return active
        return np.arange(self.n_features)

    def _rotated_table(self, weights):
        """Coordinates of the cases in the space that they span, n x n instead of n x q."""
        if self._rotated is None or not np.array_equal(self._rotated[0], weights):
            table = self._columns_table(weights, np.dtype(np.float64))
            rows = span_coordinates(table.rows * np.sqrt(table.weights))
            self._rotated = (weights, rows)
        rows = self._rotated[1]
        return MemoryTable(rows, np.ones((1, rows.shape[1])), self.n_threads, self.passes)

    def _threads(self, work_per_case):
        return self.n_threads if work_per_case * self.n_cases > THREAD_WORK else 1


def span_coordinates(rows: np.ndarray) -> np.ndarray:
    """Coordinates (n, rank) with the same scalar products as the rows (n, q).

    A pivoted Cholesky factor of the Gram matrix: its error is of the size that the scalar products
    have anyway, and for 78 x 4751 it takes 1 ms where a QR factorisation takes 8. Rows are brought
    to length 1 for it, so that one wild case does not decide what counts as 0.
    """
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    norms[norms == 0] = 1.0
    unit = rows / norms[:, None]
    factor, pivots, rank, _ = lapack.dpstrf(unit @ unit.T, lower=1)
    coordinates = np.empty((len(rows), rank))
    coordinates[pivots - 1] = np.tril(factor)[:, :rank]
    return coordinates * norms[:, None]


def _shift(owner, X, location, sums, before, after):
    moved = np.empty(len(before), np.int64)
    threads = owner._threads(len(before) * X.shape[1])
    owner.passes.shift_sums(X, location, before, after, threads, sums.totals, sums.counts, moved)
    return moved
