"""Tables on a device, for trimmed K-means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rskc.engines.base import BaseTable, Place
from rskc.engines.device import passes_array
from rskc.engines.device.arrays import fetch, to_host
from rskc.engines.interface import Assignment, Grouping, Moved, Regrouping
from rskc.engines.memory import PASSES, MemoryTable, to_blocks
from rskc.engines.passes_numpy import scale_centers

if TYPE_CHECKING:
    from rskc.engines.device.engine import DeviceEngine


class DeviceTable(BaseTable):
    """The cells of the columns that carry weight, on the device.

    ``rows`` is (n, width) or wider: columns of zeros may follow.
    """

    host_table_type = MemoryTable

    def __init__(self, engine: DeviceEngine, rows: Any, weights: np.ndarray, place: Place | None):
        super().__init__(engine.n_cases, weights, place)
        self.engine, self.rows, self.arrays = engine, rows, engine.arrays
        self.padding = rows.shape[1] - self.width
        self._host: MemoryTable | None = None

    @property
    def work_bytes(self):
        return self.engine.work_bytes

    def of_runs(self, index):
        part = super().of_runs(index)
        if part is not self:
            part._host = None
        return part

    def _row_sums(self, weights, dtype=None):
        arrays, xp = self.arrays, self.arrays.xp
        weights = self._padded(weights)
        columns, width = arrays.asarray(weights.T), 2 * self.rows.shape[1] + len(weights)
        parts = [
            (passes_array.read(self.rows, rows) ** 2 @ columns).T
            for rows in passes_array.chunks(self.rows, width)
        ]
        return xp.astype(xp.concat(parts, axis=1), dtype or self.rows.dtype)

    def typical_norm(self):
        xp, norms = self.arrays.xp, self.norms()
        return float(xp.sort(xp.reshape(norms, (-1,)))[norms.shape[0] * norms.shape[1] // 2])

    def assign(self, centers):
        factors, constants = np.empty(centers.shape), np.empty(centers.shape[:2])
        scale_centers(self.weights, centers, factors, constants)
        return self._nearest(factors, constants)

    def _nearest(self, factors, constants):
        """Find the least of x * factors + constants (runs, K) for every case and run."""
        asarray, dtype = self.arrays.asarray, self.rows.dtype
        parts = asarray(self._padded(factors), dtype), asarray(constants, dtype)
        return Assignment(*self.engine.passes.assign(self.rows, *parts, self.norms()))

    def _padded(self, array):
        """Add columns of 0, as the cells have; NumPy's pad takes longer than to launch a kernel."""
        wide = np.zeros((*array.shape[:-1], array.shape[-1] + self.padding))
        wide[..., : array.shape[-1]] = array
        return wide

    def trim(self, assignment, m):
        groups, within = self.engine.passes.trim(*assignment, m)
        return Grouping(self.exclude(groups), to_host(within))

    def sums(self, groups, K):
        totals, counts = self.engine.passes.sums(self.rows, groups, K)
        return self.sums_type(*fetch(totals[:, :, : self.width], counts))

    def shift(self, sums, before, after):
        return sums.change(*fetch(*self._change(before, after, sums.counts.shape[1])))

    def _change(self, before, after, K):
        """Return what totals and counts change by, and how many cases moved."""
        totals, *others = self.engine.passes.shift(self.rows, before, after, K)
        return totals[:, :, : self.width], *others

    def regroup(self, assignment, m, sums, before):
        groups, within = self.engine.passes.trim(*assignment, m)
        groups = self.exclude(groups)
        change = self._change(before, groups, sums.counts.shape[1])
        *change, within = fetch(*change, within)
        return Regrouping(groups, within, sums.change(*change))

    def single_moves(self, groups, K):
        """Move cases one after the other in memory: it is asked of small tables only."""
        moved, sums, moves = self.to_numpy().single_moves(to_host(groups), K)
        return Moved(self.arrays.asarray(moved), sums, moves)

    def cases(self, index):
        xp, flat = self.arrays.xp, self.arrays.asarray(index.reshape(-1))
        rows = to_host(xp.take(self.rows, flat, axis=0))[:, : self.n_columns]
        return rows.astype(np.float64).reshape(*index.shape, -1)

    def to_numpy(self):
        """Return the same table in memory."""
        if self._host is None:
            rows = np.ascontiguousarray(to_host(self.rows[:, : self.width]))
            blocks, flat = to_blocks(rows, PASSES.BLOCK), rows.reshape(-1)
            weights = np.ascontiguousarray(self.weights)
            self._host = self.host_table_type(blocks, flat, weights, 1, PASSES, self._place)
        return self._host
