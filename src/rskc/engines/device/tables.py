"""Tables on a device, for trimmed K-means."""

from __future__ import annotations

from typing import Any

import numpy as np

from rskc.engines.arrays import labels_of, with_labels
from rskc.engines.contract import Assignment, Grouping, Latest, Moved, Regrouping, Table
from rskc.engines.device import passes_array
from rskc.engines.device.ops import DeviceOps, fetch, to_host
from rskc.engines.frame import Place
from rskc.engines.memory import MemoryTable, to_blocks
from rskc.engines.passes import PASSES
from rskc.engines.passes_numpy import scale_centers
from rskc.engines.sums import scaled_up


class DeviceTable(Table):
    """The cells of the columns that carry weight, on the device.

    ``rows`` is (n, width) or wider: columns of zeros may follow. Where cells may be missing, values
    are followed by marks. Nearest centers have no masses, and are Triton kernels where there are
    any; other passes with masses are those of the array API.
    """

    arrays: DeviceOps

    def __init__(
        self,
        rows: Any,
        weights: np.ndarray,
        place: Place | None,
        arrays: DeviceOps,
        passes: Any,
        missing: bool,
    ):
        super().__init__(rows.shape[0], weights, place, missing)
        self.rows, self.passes = rows, passes
        self.summing = passes if arrays.masses is None else passes_array  # kernels know no masses
        self._use(arrays)
        self.padding = rows.shape[1] - self.width
        self._host = Latest()

    @property
    def work_bytes(self):
        return self.arrays.work_bytes

    def _row_sums(self, weights, dtype=None):
        arrays, xp = self.arrays, self.arrays.xp
        weights = self._padded(weights)
        columns, width = arrays.asarray(weights.T), 2 * self.rows.shape[1] + len(weights)
        parts = [
            (passes_array.read(self.rows, rows) ** 2 @ columns).T
            for rows in passes_array.chunks(self.rows, width)
        ]
        return xp.astype(xp.concat(parts, axis=1), dtype or self.rows.dtype)

    # ---- Nearest centers

    def assign(self, centers):
        if self.missing:
            return self._assign_observed(centers)
        factors, constants = np.empty(centers.shape), np.empty(centers.shape[:2])
        scale_centers(self.weights, centers, factors, constants)
        return self._nearest(factors, constants)

    def _nearest(self, factors, constants):
        """Find the least of x * factors + constants (runs, K) for every case and run."""
        asarray, dtype = self.arrays.asarray, self.rows.dtype
        parts = asarray(self._padded(factors), dtype), asarray(constants, dtype)
        return Assignment(*self.passes.assign(self.rows, *parts, self.norms()))

    def _padded(self, array):
        """Add columns of 0, as the cells have; NumPy's pad takes longer than to launch a kernel."""
        wide = np.zeros((*array.shape[:-1], array.shape[-1] + self.padding))
        wide[..., : array.shape[-1]] = array
        return wide

    def _assign_observed(self, centers):
        xp, unseen = self.arrays.xp, np.isnan(centers)
        filled = np.where(unseen, 0, centers)
        weighted = self.weights[:, None, :] * filled
        factors = np.concatenate([-2 * weighted, weighted * filled], axis=2)
        labels, costs = self._nearest(factors, np.zeros(centers.shape[:2]))
        costs = xp.astype(xp.astype(costs, xp.float64) * self.scale, costs.dtype)
        unseen &= self.weights[:, None, :] > 0
        for run in np.flatnonzero(unseen.any(axis=(1, 2))):
            own = self._assign_partly_seen(centers[run], self.weights[run % len(self.weights)])
            labels[int(run), :] = own.labels
            costs[int(run), :] = xp.astype(own.costs, costs.dtype)
        blind = self.scale == 0
        return Assignment(xp.where(blind, xp.zeros_like(labels), labels), costs)

    def _assign_partly_seen(self, centers: np.ndarray, weights: np.ndarray) -> Assignment:
        """Find the nearest of centers that are not observed in all features, for one run."""
        arrays, xp = self.arrays, self.arrays.xp
        seen, filled = ~np.isnan(centers) * weights, np.nan_to_num(centers)
        parts = np.hstack([-2 * seen * filled, seen * filled**2]), np.hstack([0 * seen, seen])
        columns, marks, squares = (arrays.asarray(part.T) for part in (*parts, seen))
        labels, costs = [], []
        for rows in passes_array.chunks(self.rows, 4 * self.rows.shape[1]):
            cells = passes_array.read(self.rows, rows)[:, : self.width]
            sums = cells[:, : self.n_columns] ** 2 @ squares + cells @ columns
            scaled = scaled_up(sums, cells @ marks, float(weights.sum()), xp)
            least = xp.min(scaled, axis=1)
            labels.append(xp.astype(xp.argmin(scaled, axis=1), xp.int32))
            costs.append(xp.where(xp.isfinite(least), least, xp.zeros_like(least)))
        return Assignment(xp.concat(labels), xp.concat(costs))

    # ---- Trimming and sums

    def _trimmed(self, assignment, m):
        """Return groups, and the costs of kept cases summed, on the device."""
        if self.masses is None:
            return self.passes.trim(*assignment, m)
        out = self.arrays.largest(assignment.costs, m)
        groups = self.arrays.without(assignment.labels, out)
        return groups, self.arrays.within(groups, assignment.costs)

    def trim(self, assignment, m):
        groups, within = self._trimmed(assignment, m)
        return Grouping(self.exclude(groups), to_host(within))

    def regroup(self, assignment, m, sums, before):
        groups, within = self._trimmed(assignment, m)
        groups = self.exclude(groups)
        *change, within = fetch(*self._change(before, groups, sums.counts.shape[1]), within)
        return Regrouping(groups, within, self.changed(sums, change))

    def sums(self, groups, K):
        kept = () if self.masses is None else (None, self.arrays.kept_masses(groups))
        totals, counts = self.summing.sums(self.rows, labels_of(groups), K, *kept)
        return self.sums_type(*fetch(totals[:, :, : self.width], counts))

    def change(self, sums, before, after):
        return sums.change(*fetch(*self._change(before, after, sums.counts.shape[1])))

    def _change(self, before, after, K):
        """Return what totals and counts change by, and how many cases moved."""
        labels, masses = (labels_of(before), labels_of(after)), []
        if self.masses is not None:
            masses = [None, [self.arrays.kept_masses(groups) for groups in (before, after)]]
        totals, *others = self.summing.shift(self.rows, *labels, K, *masses)
        return totals[:, :, : self.width], *others

    def single_moves(self, groups, K):
        """Move cases one after the other in memory: it is asked of small tables only."""
        host = with_labels(groups, to_host(labels_of(groups)))
        found = self.to_numpy().single_moves(host, K)
        return Moved(self.arrays.from_numpy(found.groups), found.sums, found.moves)

    def cases(self, index):
        xp, flat = self.arrays.xp, self.arrays.asarray(index.reshape(-1))
        rows = to_host(xp.take(self.rows, flat, axis=0))[:, : self.n_columns]
        return rows.astype(np.float64).reshape(*index.shape, -1)

    def to_numpy(self):
        """Return the same table in memory."""
        return self._host.get(self.weights.tobytes(), self._in_memory)

    def _in_memory(self):
        rows = np.ascontiguousarray(to_host(self.rows[:, : self.width]))
        cells, weights = (to_blocks(rows, PASSES.BLOCK), rows.reshape(-1)), self.weights
        facts = {"masses": self.arrays.host_masses, "missing": self.missing}
        return MemoryTable(cells, np.ascontiguousarray(weights), self._place, **facts)
