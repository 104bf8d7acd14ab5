"""The engine for SciPy's sparse matrices in memory. Zeros are values; nothing is missing.

Tables are dense while they are small. In the frame a cell is (x - location) * factor, which is not
0 where x is. So the location is subtracted algebraically: with e = center + location * factor,

    sum_j w_j (x_j factor - e_j)^2 = sum_j w_j (x_j factor)^2 - 2 factor x (w e) + sum_j w_j e_j^2,

where the first two sums are over the stored cells alone. That loses digits where a column is far
from 0 for its spread: a distance that comes out small beside what was subtracted is summed again,
term by term.

Products are SciPy's. On 16,384 x 2,000 cells of which 10% are filled they take 0.6 of the time of
dense ones, in both precisions, for 8 centers or 240.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from rskc.engines.arrays import ArrayOps, Sums, labels_of
from rskc.engines.contract import Assignment, Engine, Table
from rskc.engines.memory import MOST_ROUNDS, Frame, MemoryEngine, MemoryTable, sample_steps, share
from rskc.engines.passes import PASSES
from rskc.engines.passes_numpy import Run

# Tables up to this size are dense, and larger ones up to this share of the matrix.
DENSE_BYTES, DENSE_SHARE = 2**25, 0.5
# Scalar products of cases are sums over stored cells if fewer than this share is filled.
THIN = 0.1
# Multiplications below which threads of Python are not worth their start.
POOL_WORK = 10_000_000
# A matrix is made dense if that takes no more than this many times its memory.
FULL_SHARE = 1.5
# A distance is summed again, term by term, where what was subtracted is this much larger.
CANCELLED = 1e5
# Factors within 2 to the power of this are applied in the products, others to the cells first.
FOLDED_BITS = 30
# Work arrays of a pass stay near this size.
CHUNK_BYTES = 2**23


def bytes_of(X: csr_array) -> int:
    """Return the memory that a matrix takes."""
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes


def largest(X: csr_array) -> float:
    """Return the largest absolute value, without an array of all of them."""
    return float(max(X.data.max(initial=0.0), -X.data.min(initial=0.0)))


def has_nan(X: csr_array) -> bool:
    """Whether a stored cell is NaN, found likewise."""
    return bool(np.isnan(X.data.max(initial=0.0)))


def is_better_dense(X: csr_array) -> bool:
    """Whether a stored cell is NaN, or a dense copy takes hardly more memory."""
    return has_nan(X) or X.shape[0] * X.shape[1] * X.dtype.itemsize <= FULL_SHARE * bytes_of(X)


class _Columns:
    """Columns of a few rows, dense when they are asked for."""

    def __init__(self, X: csr_array):
        self.X = X.tocsc()

    def __getitem__(self, key: tuple[slice, int]) -> np.ndarray:
        start, stop = self.X.indptr[key[1]], self.X.indptr[key[1] + 1]
        column = np.zeros(self.X.shape[0], self.X.dtype)
        column[self.X.indices[start:stop]] = self.X.data[start:stop]
        return column


@dataclass
class SparseCells:
    """The stored cells Z of a matrix, which in the frame are Z * factor - offset."""

    Z: csr_array
    factor: float
    offset: np.ndarray
    n_threads: int = 1

    @classmethod
    def of(cls, X: csr_array, frame: Frame, n_threads: int) -> SparseCells:
        """Take the cells of a matrix."""
        Z, factor, offset = X, frame.factor, frame.location * frame.factor
        if abs(np.log2(factor)) > FOLDED_BITS:
            Z, factor = _with_data(Z, Z.data * factor), 1.0
        return cls(Z, factor, offset, n_threads)

    def columns(self, columns: np.ndarray) -> SparseCells:
        """Return the cells of some columns."""
        if len(columns) == self.Z.shape[1]:
            return self
        return SparseCells(self.Z[:, columns], self.factor, self.offset[columns], self.n_threads)

    def cut_off(self, limits: np.ndarray) -> SparseCells:
        """Return the cells cut off at +-limits."""
        Z = self.Z
        if largest(Z) * self.factor <= limits.min():
            return self
        most, data = (limits / self.factor).astype(Z.dtype), Z.data.copy()
        step = CHUNK_BYTES // Z.dtype.itemsize  # what is cut off is the only array of its length
        for first in range(0, len(data), step):
            bounds = most[Z.indices[first : first + step]]
            np.clip(data[first : first + step], -bounds, bounds, out=data[first : first + step])
        return SparseCells(_with_data(Z, data), self.factor, self.offset, self.n_threads)

    def step(self, bytes_per_row: int) -> int:
        """Return how many rows a chunk has, the same for any number of threads."""
        row = bytes_of(self.Z) // max(1, self.Z.shape[0])
        return max(1, CHUNK_BYTES // (row + bytes_per_row + 1))

    def chunk(self, rows: slice, dtype: Any = np.float64) -> csr_array:
        """Return some rows in this precision; the factor is not applied."""
        start, stop = self.Z.indptr[rows.start], self.Z.indptr[rows.stop]
        data = self.Z.data[start:stop].astype(dtype, copy=False)
        ends = self.Z.indptr[rows.start : rows.stop + 1] - start
        shape = len(ends) - 1, self.Z.shape[1]
        return csr_array((data, self.Z.indices[start:stop], ends), shape=shape)

    def each_chunk(
        self, work: Callable[[slice, csr_array], None], width: int, dtype: Any = np.float64
    ) -> None:
        """Call ``work`` on each chunk, on all threads; a row of its results has a width."""

        def one(rows: slice) -> None:
            with np.errstate(over="ignore", invalid="ignore"):  # threads do not inherit it
                work(rows, self.chunk(rows, dtype))

        threads = self.n_threads if self.Z.nnz * width > POOL_WORK else 1
        share(one, self.Z.shape[0], self.step(8 * width), threads, np.inf)

    def rows(self, cases: np.ndarray) -> np.ndarray:
        """Return some cases (m, q) in the frame."""
        return self.Z[cases].toarray() * self.factor - self.offset

    def norms(self, weights: np.ndarray) -> np.ndarray:
        """Return sum_j w_j (z_j factor)^2 of each case (runs, n), offsets not counted."""
        out, factors = np.empty((len(weights), self.Z.shape[0])), weights.T * self.factor**2

        def norms(rows: slice, Z: csr_array) -> None:
            out[:, rows] = (_with_data(Z, Z.data**2) @ factors).T

        self.each_chunk(norms, len(weights))
        return out

    def shift(self, sums: Sums, before: Any, after: Any, ops: ArrayOps) -> np.ndarray:
        """Bring sums from one grouping to another; return how many cases changed in each run."""
        runs, K, _ = sums.totals.shape
        counts, n, step = np.zeros(runs * K), self.Z.shape[0], self.step(16 * runs)
        for rows in (slice(first, min(n, first + step)) for first in range(0, n, step)):
            old, new = labels_of(before)[:, rows], labels_of(after)[:, rows]
            run, case = np.nonzero(old != new)
            groups = np.concatenate([old[run, case], new[run, case]])
            case_masses = ops.masses_at(case + rows.start)
            signs, member = np.concatenate([-case_masses, case_masses]), groups >= 0
            if not member.any():
                continue
            Z = self.chunk(rows)
            clusters = (np.tile(run, 2) * K + groups)[member]
            entries = signs[member], (clusters, np.tile(case, 2)[member])
            totals = csr_array(entries, shape=(runs * K, Z.shape[0])) @ Z
            sums.totals += totals.toarray().reshape(sums.totals.shape) * self.factor
            counts += np.bincount(clusters, signs[member], runs * K)
        counts = counts.reshape(runs, K)
        sums.counts += counts
        if self.offset.any():
            sums.totals -= counts[:, :, None] * self.offset
        # Put back what was trimmed of cases before, and take out what is so after.
        for some, sign in ((before, 1), (after, -1)):
            run, case, group, gone = ops.cuts(some)
            if len(run):
                np.add.at(sums.totals, (run, group), sign * gone[:, None] * self.rows(case))
                np.add.at(sums.counts, (run, group), sign * gone)
        return ops.differ(before, after)

    def distances(self, labels, centers, weights):
        """Return weighted squared distances (runs, n) of cases to the centers of their labels."""
        runs, K, q = centers.shape
        out, shifted = np.empty(labels.shape), centers + self.offset
        weighted = weights[:, None, :] * shifted
        constants = np.einsum("rkj,rkj->rk", weighted, shifted)
        factors = np.ascontiguousarray((2 * self.factor * weighted).reshape(-1, q).T)
        squares, run_numbers = weights.T * self.factor**2, np.arange(runs)[:, None]

        def measure(rows: slice, Z: csr_array) -> None:
            own_labels, case = labels[:, rows], np.arange(Z.shape[0])
            sizes = (_with_data(Z, Z.data**2) @ squares).T + constants[run_numbers, own_labels]
            distances = sizes - (Z @ factors)[case, run_numbers * K + own_labels]
            # Not "<": infinity less infinity is doubtful too.
            for run, some in enumerate(~(distances * CANCELLED > sizes)):
                cases = np.flatnonzero(some & (sizes[run] != 0))
                arguments = centers[run], own_labels[run], weights[run % len(weights)]
                distances[run, cases] = self._term_by_term(rows.start + cases, cases, *arguments)
            out[:, rows] = distances

        self.each_chunk(measure, runs * K + 2 * runs)
        return out

    def _term_by_term(self, numbers, cases, centers, labels, weights):
        """Return the distances of cases with these numbers, which are ``cases`` in a chunk."""
        used, out = np.flatnonzero(weights), np.empty(len(cases))
        step = max(1, CHUNK_BYTES // (8 * self.Z.shape[1]))
        for first in range(0, len(cases), step):
            some = slice(first, first + step)
            errors = self.rows(numbers[some]) - centers[labels[cases[some]]]
            out[some] = errors[:, used] ** 2 @ weights[used]
        return out

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """Return the weighted scalar products (n, n) of the cases, for weights (q,)."""
        n = self.Z.shape[0]
        gram, pulls = np.empty((n, n)), np.empty(n)
        across = self.Z.T.tocsr().astype(np.float64, copy=False)
        across.data *= np.repeat(weights * self.factor**2, np.diff(across.indptr))

        def products(rows: slice, Z: csr_array) -> None:
            gram[rows] = (Z @ across).toarray()
            pulls[rows] = Z @ (weights * self.offset) * self.factor

        self.each_chunk(products, 3 * n)
        return gram - pulls - pulls[:, None] + weights @ self.offset**2


def _with_data(Z: csr_array, data: np.ndarray) -> csr_array:
    """Return a matrix with other cells in the same places."""
    return csr_array((data, Z.indices, Z.indptr), shape=Z.shape)


# ---- Tables and the engine


class SparseTable(MemoryTable):
    """Columns that carry weight, too many to be made dense."""

    def __init__(self, engine, cells, weights, place, dtype):
        Table.__init__(self, engine.arrays, engine.n_cases, weights, place)
        self.stored, self.dtype = cells, dtype
        self.n_threads, self.passes = engine.n_threads, engine.passes

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

    def _move(self, labels, totals, counts, moves):
        ones = np.ones(self.n_cases)
        masses = ones if self.masses is None else self.masses
        for r, norms in enumerate(np.broadcast_to(self.norms(), labels.shape)):
            facts = norms, self.weights[r % len(self.weights)], ones, masses
            run = SparseRun(self.stored, *facts, labels[r], totals[r], counts[r])
            moves[r] = run.all_rounds(MOST_ROUNDS)

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
    ):
        # Each cell is stored once, column by column; what was given stays as it is.
        X = csr_array(X, copy=not X.has_canonical_format)
        X.sum_duplicates()
        few, many = sample_steps(*X.shape)
        frame = frame or Frame.from_rows(X[::few].toarray(), _Columns(X[::many]))
        Engine.__init__(self, ArrayOps(masses), X.shape, X.dtype, frame, missing=False)
        self.X, self.n_threads, self.passes = X, n_threads, passes
        # A second copy of a dense table, row by row, is not to take what the matrix saves.
        self.n_bytes = 0
        self.stored = SparseCells.of(X, self.frame, n_threads)
        self.dense_bytes = dense_bytes  # up to which tables are dense
        if dense_bytes is None:
            self.dense_bytes = max(DENSE_BYTES, int(DENSE_SHARE * bytes_of(X)))
        self._options = {"frame": self.frame, "n_threads": n_threads, "passes": passes}
        self._options["dense_bytes"] = self.dense_bytes  # a part does as the whole does

    def stand_for_more(self, share):
        super().stand_for_more(share)
        share_of_matrix = int(DENSE_SHARE * bytes_of(self.X))
        self.dense_bytes = max(int(DENSE_BYTES * share), share_of_matrix)

    def rows(self, cases):
        return self.X[cases].toarray()

    def largest_cell(self):
        return largest(self.X)

    change = SparseTable.change

    def distances(self, labels, centers, weights):
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

    def table_of(self, cells, weights, place, dtype):
        if not isinstance(cells, SparseCells):
            return super().table_of(cells, weights, place, dtype)
        return SparseTable(self, cells, weights, place, dtype)

    def _laid_out(self, columns, dtype, block):
        q, every = len(columns), np.arange(len(columns))
        X = self.X if q == self.n_features else self.X[:, columns]
        frame = self.frame.of_columns(columns)
        out = np.empty(self.n_cases * q, dtype)
        step = -(-CHUNK_BYTES // (8 * q * block)) * block  # whole blocks
        for first in range(0, self.n_cases, step):
            rows = X[first : first + step].toarray()
            part = out[first * q : (first + len(rows)) * q]
            self.passes.table(rows, every, *frame, block, self._threads(4 * q), part)
        return out

    def _gram(self, weights):
        active = np.flatnonzero(weights[0])
        large = not self._fits(len(active), self.float64)
        if large and self.X.nnz <= THIN * self.n_cases * self.n_features:
            return self.stored.columns(active).gram(weights[0, active])
        gram = np.zeros((self.n_cases, self.n_cases))
        # A quarter at once where not all of it fits: there are products beside it.
        step = max(1, self.dense_bytes // (32 * self.n_cases)) if large else len(active)
        for first in range(0, len(active), step):
            some = active[first : first + step]
            rows = self.weighted_rows(some, weights[0, some])
            gram += rows @ rows.T
        return gram


class SparseRun(Run):
    """One partition under single moves; changes its groups, totals and counts in place."""

    def __init__(self, stored, norms, weights, scale, mass, groups, totals, counts):
        self.stored, self.norms, self.slack = stored, norms, 1e-12
        self.weights, self.scale, self.mass = weights, scale, mass
        self.groups, self.totals, self.counts = groups, totals, counts
        self.factors, self.constants = np.empty(totals.shape), np.empty(len(counts))
        self.clusters = np.arange(len(counts))
        for k in self.clusters:
            self._update(k)

    def _update(self, k):
        """Bring what products with the center of cluster k need up to date."""
        shifted = self.totals[k] / (self.counts[k] or 1) + self.stored.offset
        weighted = self.weights * shifted
        self.factors[k] = (2 * self.stored.factor) * weighted
        self.constants[k] = weighted @ shifted

    def _case(self, i):
        """Return the stored cells of a case, and their columns."""
        Z = self.stored.Z
        some = slice(Z.indptr[i], Z.indptr[i + 1])
        return Z.data[some].astype(np.float64), Z.indices[some]

    def changes(self, cases, clusters, step):
        if np.ndim(cases) == 0:
            cells, columns = self._case(cases)
            products = (self.factors[:, columns] @ cells)[clusters]
        else:
            used, place = np.unique(clusters, return_inverse=True)
            products = (self.stored.Z[cases] @ self.factors[used].T)[np.arange(len(cases)), place]
        distances = np.maximum(self.norms[cases] - products + self.constants[clusters], 0)
        mass, n = self.mass[cases], self.counts[clusters]
        return mass * distances * n / (n + step * mass)

    def transfer(self, i, k, sign):
        (cells, columns), change = self._case(i), sign * self.mass[i]
        self.counts[k] += change
        self.totals[k, columns] += (change * self.stored.factor) * cells
        self.totals[k] -= change * self.stored.offset
        self._update(k)
