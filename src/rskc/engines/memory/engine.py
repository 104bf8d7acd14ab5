"""The engine for NumPy arrays in memory: complete, or with NaN in missing cells.

With missing cells, distances are over the features observed in both the case and the center, scaled
up by the observed weight; means are over observed cells. The data stay as they are.

A center is NaN in a feature of which its cluster has no observed cell. A case of which nothing that
has weight is observed is *blind*: its distances are infinite, its label is 0, and it is excluded
from everything else.
"""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np

from rskc.engines import passes_numpy
from rskc.engines.contract.engine import Engine
from rskc.engines.contract.ops import ArrayOps
from rskc.engines.contract.results import Farthest
from rskc.engines.frame import Frame, observed_frame
from rskc.engines.memory.tables import WORK_BYTES, InMemory, MemoryTable, table_of_coordinates
from rskc.engines.passes import PASSES
from rskc.engines.sums import Sums

# Tables up to this size are also kept row by row: sums read single cases, twice as fast so. Larger
# ones too, if both copies together take no more than the data, as in single precision.
ROWS_BYTES = 2**27
# Rows that are looked at together.
ROWS_AT_ONCE = 16384


def passes_info() -> dict:
    """Return which passes are in use, and how many threads they may have."""
    return {
        "compiled": PASSES is not passes_numpy,
        "openmp": PASSES.HAS_OPENMP,
        "max_threads": PASSES.max_threads(),
    }


class MemoryEngine(InMemory, Engine):
    """Passes over a C-ordered float32 or float64 array."""

    work_bytes = WORK_BYTES
    rows_bytes = ROWS_BYTES
    searchable = True

    def __init__(self, X, *, masses=None, missing=False, frame=None, n_threads=1, passes=PASSES):
        frame = frame or (observed_frame(X) if missing else Frame.of(X))
        super().__init__(X.shape, X.dtype, frame, missing)
        self._use(ArrayOps(masses))
        self.X, self.n_bytes, self.n_threads, self.passes = X, X.nbytes, n_threads, passes
        self.cell_passes = passes
        # What an engine of other cases has too.
        self._options = {"frame": frame, "n_threads": n_threads, "passes": passes}
        self._options["missing"] = missing

    def stand_for_more(self, share):
        self.rows_bytes = int(self.rows_bytes * share)

    def rows(self, cases):
        return self.X[cases]

    def part(self, cases, masses=None):
        if self.masses is not None and masses is None:
            masses = self.masses[cases]
        return type(self)(self.X[cases], masses=masses, **self._options)

    def pieces(self, columns):
        yield slice(None), self.X, self.frame.location, self.frame.factor, columns

    def some_cells(self, columns, order):
        return self.X, self.frame.location, self.frame.factor, columns, order

    def cell_threads(self, columns, runs):
        return self._threads(4 * runs * len(columns))

    def returned(self, array, unobserved):
        array = self.arrays.as_mask(array)
        if self.seen is None:
            return array
        whole = np.full(self.n_cases + self.n_unobserved, unobserved, array.dtype)
        whole[self.seen] = array
        return whole

    def largest_cell(self):
        return float(max(np.nanmax(self.X), -np.nanmin(self.X)))

    # ---- Missing cells

    @cached_property
    def observed_cells(self):
        """The number of observed cells of each feature."""
        starts = range(0, self.n_cases, ROWS_AT_ONCE)
        parts = (np.isnan(self.X[start : start + ROWS_AT_ONCE]) for start in starts)
        return self.n_cases - sum(np.count_nonzero(part, axis=0) for part in parts)

    @cached_property
    def n_missing(self):
        return self.X.size - int(self.observed_cells.sum()) if self.missing else 0

    @cached_property
    def observed_features(self):
        return self.observed_cells > 0

    def _factors(self, weights):
        out = np.empty((len(weights), self.n_cases))
        self.passes.missing_factors(self.X, weights, self._threads(weights.size), out)
        return out

    def _factored(self, labels, factors, K):
        sums, none = Sums.empty(len(labels), K, self.width), np.full_like(labels, -1)
        self._change((self.X.reshape(-1), 1), *self.frame[:2], sums, none, labels, factors)
        return tuple(np.split(sums.totals, 2, axis=2))

    # ---- Passes

    def change(self, sums, before, after):
        return self._change((self.X.reshape(-1), 1), *self.frame[:2], sums, before, after)

    def sums_near(self, known, groups, K):
        """Read only the cases that have moved."""
        if known is None:
            return self.sums(groups, K)
        self.shift(known.sums, known.groups, groups)
        return known.sums

    def distances(self, labels, centers, weights=None):
        weights = self.equal_weights() if weights is None else weights
        out, frame = np.empty(labels.shape), self.frame[:2]
        threads = self._threads(len(labels) * self.n_features)
        self.passes.own_distances(
            self.X, *frame, weights, labels, centers, self.missing, threads, out
        )
        return out

    def farthest(self, distances, m):
        groups = np.zeros(distances.shape, np.int32)
        if m > 0:
            groups, _ = self._trim(groups, distances, m)
        return Farthest(groups < 0, distances.max(axis=1))

    # ---- Tables

    def _table_of(self, cells, weights, place, dtype):
        blocks, rows = cells
        facts = self.n_threads, self.passes, place, self.masses, self.missing, dtype
        return MemoryTable(blocks, rows, weights, *facts)

    def _cells(self, columns, dtype):
        """Return the cells of a table; the last small ones are kept.

        Weights change more often than which of them are above 0.
        """
        dtype = self._cell_type(dtype)
        make = partial(self.lay_out, columns, dtype)
        if self.n_cases * len(columns) * dtype.itemsize * (1 + self.missing) > self.rows_bytes:
            return make()
        return self._layouts.get((dtype, columns.tobytes()), make)

    def lay_out(self, columns, dtype):
        """Return cells in blocks and, where there is room, row by row too (else None)."""
        dtype = self._cell_type(dtype)
        blocks, rows = self._laid_out(columns, dtype, self.passes.BLOCK), None
        most = max(self.rows_bytes, (1 + self.missing) * self.n_bytes - blocks.nbytes)
        if self.passes.BLOCK > 1 and blocks.nbytes <= most:
            rows = self._laid_out(columns, dtype, 1)
        return blocks, rows

    def _laid_out(self, columns, dtype, block):
        out = np.empty(self.n_cases * len(columns) * (1 + self.missing), dtype)
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
        rows = coordinates.astype(dtype)
        return table_of_coordinates(rows, self.n_threads, self.passes, self.masses)
