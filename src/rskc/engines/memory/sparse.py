"""The engine for SciPy's sparse matrices in memory, whose tables are dense while they are small."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from rskc.engines.cells import CellPasses
from rskc.engines.contract.engine import Engine
from rskc.engines.contract.ops import ArrayOps
from rskc.engines.contract.results import Assignment
from rskc.engines.contract.tables import Table
from rskc.engines.memory.engine import MemoryEngine
from rskc.engines.memory.sparse_cells import (
    CHUNK_BYTES,
    SparseCells,
    bytes_of,
    in_order,
    largest,
    origin_of,
    sparse_frame,
)
from rskc.engines.memory.sparse_moves import SparseRun
from rskc.engines.memory.tables import MemoryTable
from rskc.engines.passes import PASSES

# Tables up to this size are dense, and larger ones up to this share of the matrix.
DENSE_BYTES, DENSE_SHARE = 2**25, 0.5
# Scalar products of cases are sums over stored cells if fewer than this share is filled.
THIN = 0.1


class SparseTable(MemoryTable):
    """Columns that carry weight, too many to be made dense."""

    def __init__(self, cells: SparseCells, dtype, weights, n_threads, passes, place, masses):
        Table.__init__(self, cells.Z.shape[0], weights, place)
        self._use(ArrayOps(masses))
        self.stored, self.dtype, self.n_threads, self.passes = cells, dtype, n_threads, passes

    def assign(self, centers):
        runs, K, q = centers.shape
        shifted = centers + self.stored.offset
        weighted = self.weights[:, None, :] * shifted
        constants = np.einsum("rkj,rkj->kr", weighted, shifted).astype(self.dtype)
        # Cluster by cluster: then the least of each run is found for all runs at once.
        factors = (weighted * (-2 * self.stored.factor)).transpose(2, 1, 0).reshape(q, -1)
        factors = factors.astype(self.dtype, order="C")
        labels = np.empty((runs, self.n_cases), np.int32)
        costs, norms = np.empty(labels.shape, self.dtype), self.norms()

        def nearest(rows: slice, Z: csr_array) -> None:
            products = (Z @ factors).reshape(-1, K, runs)
            found, least = _least(products + constants)
            labels[:, rows] = found.T
            costs[:, rows] = np.maximum(least.T + norms[:, rows], 0)

        self.stored.each_chunk(nearest, factors.shape[1], self.dtype)
        return Assignment(labels, costs)

    def change(self, sums, before, after):
        return self.stored.shift(sums, before, after, self.arrays)

    descend = Table.descend

    def _move(self, max_rounds, labels, totals, counts, moves):
        masses = np.ones(self.n_cases) if self.masses is None else self.masses
        for r, norms in enumerate(np.broadcast_to(self.norms(), labels.shape)):
            weights = self.weights[r % len(self.weights)]
            run = SparseRun(self.stored, norms, weights, masses, labels[r], totals[r], counts[r])
            moves[r] = run.all_rounds(max_rounds)

    def cases(self, index):
        return self.stored.rows(index.ravel()).astype(self.dtype).reshape(*index.shape, -1)

    def _row_sums(self, weights, dtype=None):
        return self.stored.norms(weights).astype(self.dtype)


def _least(products: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the number and the value of the least of (cases, K, runs), the first in a tie."""
    least = products[:, 0].copy()
    nearest = np.zeros(least.shape, np.int32)
    for k in range(1, products.shape[1]):
        less = products[:, k] < least
        np.copyto(least, products[:, k], where=less)
        nearest[less] = k
    return nearest, least


class SparseEngine(MemoryEngine):
    """Passes over a CSR matrix of float32 or float64, without missing cells."""

    def __init__(
        self,
        X,
        *,
        masses=None,
        frame=None,
        n_threads=1,
        passes=PASSES,
        dense_bytes=None,
        origin=None,
    ):
        X = in_order(X)
        Engine.__init__(self, X.shape, X.dtype, frame or sparse_frame(X), missing=False)
        self._use(ArrayOps(masses))
        self.X, self.n_threads, self.passes = X, n_threads, passes
        # A second copy of a dense table, row by row, is not to take what the matrix saves.
        self.n_bytes = 0
        if origin is None:
            origin = origin_of(X, self.frame.location)
        self.stored = SparseCells.of(X, self.frame, origin, n_threads)
        self.dense_bytes = dense_bytes  # up to which tables are dense
        if dense_bytes is None:
            self.dense_bytes = max(DENSE_BYTES, int(DENSE_SHARE * bytes_of(X)))
        # A part does as the whole does: some rows show less of how far columns are from 0.
        self._options = {"frame": self.frame, "n_threads": n_threads, "passes": passes}
        self._options |= {"dense_bytes": self.dense_bytes, "origin": origin}

    def stand_for_more(self, share):
        super().stand_for_more(share)
        share_of_matrix = int(DENSE_SHARE * bytes_of(self.X))
        self.dense_bytes = max(int(DENSE_BYTES * share), share_of_matrix)

    def rows(self, cases):
        return self.X[cases].toarray()

    pieces, some_cells = CellPasses.pieces, CellPasses.some_cells

    def distinct(self, most):
        known: set[bytes] = set()
        step = max(1, CHUNK_BYTES // (self.n_features * self.dtype.itemsize))
        for first in range(0, self.n_cases, step):
            known |= {row.tobytes() for row in self.rows(slice(first, first + step)) + 0.0}
            if len(known) >= most:
                return most
        return len(known)

    def largest_cell(self):
        return largest(self.X)

    def change(self, sums, before, after):
        return self.stored.shift(sums, before, after, self.arrays)

    def distances(self, labels, centers, weights=None):
        weights = self.equal_weights() if weights is None else weights
        return self.stored.distances(labels, centers, weights)

    # ---- Tables

    def _fits(self, n_columns, dtype):
        """Whether a dense table is small enough."""
        return self.n_cases * n_columns * dtype.itemsize <= self.dense_bytes

    def _can_rotate(self, weights):
        return super()._can_rotate(weights) and self._fits(self.n_cases, self.float64)

    def _cells(self, columns, dtype):
        if self._fits(len(columns), dtype):
            return super()._cells(columns, dtype)
        return self.stored.columns(columns).cut_off(self.frame.limits[columns])

    def _table_of(self, cells, weights, place, dtype):
        if not isinstance(cells, SparseCells):
            return super()._table_of(cells, weights, place, dtype)
        return SparseTable(cells, dtype, weights, self.n_threads, self.passes, place, self.masses)

    def _laid_out(self, columns, dtype, block):
        q, every = len(columns), np.arange(len(columns))
        X = self.X if q == self.n_features else self.X[:, columns]
        location, factor, limits = self.frame
        frame = location[columns], factor, limits[columns]
        out = np.empty(self.n_cases * q, dtype)
        step = -(-CHUNK_BYTES // (8 * q * block)) * block  # whole blocks
        for first in range(0, self.n_cases, step):
            rows = X[first : first + step].toarray()
            part = out[first * q : (first + len(rows)) * q]
            self.passes.table(rows, every, *frame, block, self._threads(4 * q), part)
        return out

    def _gram(self, weights):
        active = np.flatnonzero(weights[0])
        if self._fits(len(active), self.float64):
            return super()._gram(weights)
        if self.X.nnz <= THIN * self.n_cases * self.n_features:
            return self.stored.columns(active).gram(weights[0, active])
        gram = np.zeros((self.n_cases, self.n_cases))
        step = max(1, self.dense_bytes // (32 * self.n_cases))
        for first in range(0, len(active), step):
            some = active[first : first + step]
            rows = self.weighted_rows(some, weights[0, some])
            gram += rows @ rows.T
        return gram
