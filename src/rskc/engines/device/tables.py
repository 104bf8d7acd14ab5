"""Tables on a device, for trimmed K-means."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from rskc.engines.device import passes_array
from rskc.engines.device.arrays import fetch, to_host
from rskc.engines.frame import Place
from rskc.engines.interface import Assignment, Cases, Grouping, Moved, Regrouping, Sums
from rskc.engines.memory import PASSES as HOST_PASSES
from rskc.engines.memory import MemoryTable
from rskc.engines.memory import to_blocks as host_blocks

if TYPE_CHECKING:
    from rskc.engines.device.engine import DeviceEngine


class DeviceTable:
    """The cells of the columns that carry weight, on the device.

    ``rows`` is (n, width) or wider: columns of zeros may follow.
    """

    width_factor = 1  # columns in storage for each column
    sums_type = Sums

    def __init__(self, engine: DeviceEngine, rows: Any, weights: np.ndarray, place: Place | None):
        self.engine, self.rows, self.weights = engine, rows, weights
        self.arrays: Cases = engine.arrays
        self.work_bytes = engine.work_bytes
        self.n_cases, self.n_columns = engine.n_cases, weights.shape[1]
        self.width = self.width_factor * self.n_columns
        self.padding = rows.shape[1] - self.width
        self.rotated = place is None
        self._place = place
        self._norms: Any = None
        self._host: MemoryTable | None = None

    def place(self, centers):
        assert self._place is not None, "a rotated table has no place for centers"
        return self._place.centers(centers)

    def of_runs(self, index):
        if len(self.weights) == 1:
            return self
        part = copy.copy(self)
        part.weights, part._host = self.weights[index], None
        part._norms = self.arrays.take(self.norms(), index)
        return part

    def norms(self):
        """Return the weighted squared norm of each case, (1 or runs, n)."""
        if self._norms is None:
            self._norms = self._row_sums(self.weights)
        return self._norms

    def _row_sums(self, weights):
        """sum_j weights_j x_j^2 of each case, for each row of weights, in the table's precision."""
        arrays, xp = self.engine.arrays, self.engine.arrays.xp
        weights = np.pad(weights, ((0, 0), (0, self.padding)))
        columns, width = arrays.asarray(weights.T), 2 * self.rows.shape[1] + len(weights)
        parts = [
            (passes_array.read(self.rows, rows) ** 2 @ columns).T
            for rows in passes_array.chunks(self.rows, width)
        ]
        return xp.astype(xp.concat(parts, axis=1), self.rows.dtype)

    def typical_norm(self):
        xp, norms = self.engine.arrays.xp, self.norms()
        return float(xp.sort(xp.reshape(norms, (-1,)))[norms.shape[0] * norms.shape[1] // 2])

    def assign(self, centers):
        weighted = self.weights[:, None, :] * centers
        constants = np.einsum("rkj,rkj->rk", weighted, centers)
        return self._nearest(-2 * weighted, constants)

    def _nearest(self, factors, constants):
        """Find the least of x * factors + constants (runs, K) for every case and run."""
        asarray, dtype = self.engine.arrays.asarray, self.rows.dtype
        factors = np.pad(factors, ((0, 0), (0, 0), (0, self.padding)))
        parts = asarray(factors, dtype), asarray(constants, dtype)
        return Assignment(*self.engine.passes.assign(self.rows, *parts, self.norms()))

    def trim(self, assignment, m):
        groups, within = self.engine.passes.trim(*assignment, m)
        return Grouping(groups, to_host(within))

    def exclude(self, groups):
        return groups

    def sums(self, groups, K):
        totals, counts = self.engine.passes.sums(self.rows, groups, K)
        return self.sums_type(*fetch(totals[:, :, : self.width], counts))

    def shift(self, sums, before, after):
        return sums.change(*fetch(*self._change(before, after, sums.counts.shape[1])))

    def _change(self, before, after, K):
        """What totals and counts change by, and how many cases moved."""
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
        return Moved(self.engine.arrays.asarray(moved), sums, moves)

    def seeds(self):
        return self

    def cases(self, index):
        xp, flat = self.engine.arrays.xp, self.engine.arrays.asarray(index.reshape(-1))
        rows = to_host(xp.take(self.rows, flat, axis=0))[:, : self.n_columns]
        return rows.astype(np.float64).reshape(*index.shape, -1)

    def to_numpy(self):
        """Return the same table in memory."""
        if self._host is None:
            rows = np.ascontiguousarray(to_host(self.rows[:, : self.width]))
            blocks, flat = host_blocks(rows, HOST_PASSES.BLOCK), rows.reshape(-1)
            weights = np.ascontiguousarray(self.weights)
            self._host = self._host_table(blocks, flat, weights, 1, HOST_PASSES, self._place)
        return self._host

    def _host_table(self, *parts):
        return MemoryTable(*parts)
