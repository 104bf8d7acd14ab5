"""The device engine for data with missing cells; see :mod:`rskc.engines.missing`."""

from __future__ import annotations

import numpy as np
from array_api_compat import array_namespace

from rskc.engines.base import sample_steps
from rskc.engines.device import passes_array
from rskc.engines.device.arrays import fetch, to_host
from rskc.engines.device.engine import DeviceEngine
from rskc.engines.device.tables import DeviceTable
from rskc.engines.interface import Assignment
from rskc.engines.missing import (
    MissingEngineMixin,
    MissingSums,
    MissingTable,
    MissingTableMixin,
    missing_factors,
    observed_frame,
    scaled_up,
)


class DeviceMissingTable(MissingTableMixin, DeviceTable):
    """Values and marks of the columns that carry weight, (n, 2 q)."""

    host_table_type = MissingTable

    def assign(self, centers):
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


class DeviceMissingEngine(MissingEngineMixin, DeviceEngine):
    """Passes over an array (n, p) on a device in which NaN marks a missing cell."""

    table_type = DeviceMissingTable

    def __init__(self, X, *, frame=None, **options):
        self.observed = ~array_namespace(X).isnan(X)
        super().__init__(X, frame=frame, **options)
        xp = self.arrays.xp
        location = xp.astype(self.device_frame.location, X.dtype)
        self.X = xp.where(self.observed, X, location)
        self.n_missing = X.shape[0] * X.shape[1] - int(xp.sum(xp.astype(self.observed, xp.int64)))
        self.observed_features = to_host(xp.any(self.observed, axis=0))

    def _frame_of(self, X):
        """Frame about 31 rows, with observed cells of each column of which they show none."""
        rows = np.array(to_host(X[:: sample_steps(*X.shape)[0], :]))  # a copy: the data stay
        for j in np.flatnonzero(np.isnan(rows).all(axis=0)):
            column = to_host(X[:, int(j)])
            cells = column[~np.isnan(column)]
            rows[:, j] = np.resize(cells, len(rows)) if len(cells) else np.nan
        return observed_frame(rows)

    def rows(self, cases):
        return np.where(self._on_host(self.observed, cases), super().rows(cases), np.nan)

    def _taken(self, cases):
        xp, index = self.arrays.xp, self.arrays.asarray(cases)
        rows, marks = (xp.take(array, index, axis=0) for array in (self.X, self.observed))
        return xp.where(marks, rows, xp.full_like(rows, float("nan")))

    def _parts(self, columns, dtype):
        xp = self.arrays.xp
        marks = xp.take(self.observed, self.arrays.asarray(columns), axis=1)
        return [*super()._parts(columns, dtype), xp.astype(marks, dtype)]

    def sums(self, groups, K):
        values = passes_array.sums(self.X, groups, K, self.device_frame)
        marks, _ = passes_array.sums(self.observed, groups, K)
        totals, counts, cells = fetch(*values, marks)
        # What stands in a missing cell is at the location of the frame, and adds 0.
        return MissingSums(np.concatenate([totals, cells], axis=2), counts)

    def shift(self, sums, before, after):
        fresh = self.sums(after, sums.counts.shape[1])
        sums.totals[...], sums.counts[...] = fresh.totals, fresh.counts
        return self.arrays.differ(before, after)

    def distances(self, labels, centers, weights=None):
        xp, asarray = self.arrays.xp, self.arrays.asarray
        weights = self.equal_weights() if weights is None else weights
        filled, seen = asarray(np.nan_to_num(centers)), asarray((~np.isnan(centers)).astype(float))
        columns, parts = asarray(weights), []
        for rows in passes_array.chunks(self.X, 6 * self.n_features):
            cells = passes_array.read(self.X, rows, self.device_frame)
            marks, found = xp.astype(self.observed[rows, :], xp.float64), []
            for run in range(labels.shape[0]):
                own = xp.astype(labels[run, rows], xp.int64)
                both = marks * xp.take(seen[run, ...], own, axis=0)
                errors = (cells - xp.take(filled[run, ...], own, axis=0)) ** 2
                weight = columns[run if len(weights) > 1 else 0, :]
                # A square may be infinite, which times 0 would be no number.
                errors = xp.where(both * weight > 0, errors, xp.zeros_like(errors))
                total = float(weights[run if len(weights) > 1 else 0].sum())
                found.append(scaled_up(errors @ weight, both @ weight, total, xp))
            parts.append(xp.stack(found))
        return xp.concat(parts, axis=1)

    def factored(self, groups, weights, K):
        """Return sums (runs, K, p) of f x, and of f over observed cells; f is a case's factor."""
        return self._factored(groups, self._factors(weights), K)

    def _factored(self, groups, factors, K):
        xp, runs = self.arrays.xp, groups.shape[0]
        first = xp.zeros((runs * K, self.n_features), dtype=xp.float64, device=self.arrays.device)
        zeroth = xp.zeros_like(first)
        for rows in passes_array.chunks(self.X, 2 * runs * K + 3 * self.n_features):
            own = xp.reshape(passes_array.members(groups[:, rows], K), (runs, K, -1))
            own = xp.reshape(own * factors[:, None, rows], (runs * K, -1))
            first += own @ passes_array.read(self.X, rows, self.device_frame)
            zeroth += own @ xp.astype(self.observed[rows, :], xp.float64)
        shape = (runs, K, self.n_features)
        return [part.reshape(shape) for part in fetch(first, zeroth)]

    def _factors(self, weights):
        xp, columns = self.arrays.xp, self.arrays.asarray(weights.T)
        parts = [
            (passes_array.read(self.observed, rows) @ columns).T
            for rows in passes_array.chunks(self.observed, self.n_features)
        ]
        total = self.arrays.asarray(weights.sum(axis=1, keepdims=True))
        return missing_factors(xp.concat(parts, axis=1), total, xp)
