"""The device engine for data with missing cells; see ``missing cells`` for what that means."""

from __future__ import annotations

from typing import Any

import numpy as np

from rskc.engines.device import passes_array
from rskc.engines.device.arrays import fetch, to_host
from rskc.engines.device.engine import DeviceEngine
from rskc.engines.device.tables import DeviceTable
from rskc.engines.frame import sample_steps
from rskc.engines.interface import Assignment, Grouping, Listed
from rskc.engines.missing import MissingSums, MissingTable, observed_frame

# Less observed weight than this share of all is none.
NOTHING = 1e-12


class DeviceMissingTable(DeviceTable):
    """Values, 0 in a missing cell, and beside them marks, 1 where a cell is observed: (n, 2 q)."""

    width_factor = 2
    sums_type = MissingSums

    def __init__(self, *parts):
        super().__init__(*parts)
        self.scale = self._scale()

    def _scale(self):
        """Factor of distances for missing cells: all weight / observed weight; 0 if blind."""
        xp, asarray = self.engine.arrays.xp, self.engine.arrays.asarray
        observed = self._row_sums(np.hstack([np.zeros_like(self.weights), self.weights]))
        observed = xp.astype(observed, xp.float64)
        total = asarray(self.weights.sum(axis=1, keepdims=True))
        return scales(observed, total)

    def norms(self):
        if self._norms is None:
            self._norms = self._row_sums(np.hstack([self.weights, np.zeros_like(self.weights)]))
        return self._norms

    def of_runs(self, index):
        part = super().of_runs(index)
        if part is not self:
            part.scale = self.engine.arrays.take(self.scale, index)
        return part

    def assign(self, centers):
        xp, unseen = self.engine.arrays.xp, np.isnan(centers)
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
        """Nearest of centers that are not observed in all features, for one run."""
        arrays, xp = self.engine.arrays, self.engine.arrays.xp
        seen, filled = ~np.isnan(centers) * weights, np.nan_to_num(centers)
        parts = np.hstack([-2 * seen * filled, seen * filled**2]), np.hstack([0 * seen, seen])
        columns, marks, squares = (arrays.asarray(part.T) for part in (*parts, seen))
        labels, costs = [], []
        for rows in passes_array.chunks(self.rows, 4 * self.rows.shape[1]):
            cells = passes_array.read(self.rows, rows)[:, : self.width]
            sums = cells[:, : self.n_columns] ** 2 @ squares + cells @ columns
            scaled = scaled_up(sums, cells @ marks, float(weights.sum()))
            least = xp.min(scaled, axis=1)
            labels.append(xp.astype(xp.argmin(scaled, axis=1), xp.int32))
            costs.append(xp.where(xp.isfinite(least), least, xp.zeros_like(least)))
        return Assignment(xp.concat(labels), xp.concat(costs))

    def trim(self, assignment, m):
        groups, within = super().trim(assignment, m)
        return Grouping(self.exclude(groups), within)

    def exclude(self, groups):
        xp = self.engine.arrays.xp
        return xp.where(self.scale == 0, -xp.ones_like(groups), groups)

    def _host_table(self, *parts):
        return MissingTable(*parts)


def scales(observed: Any, total: Any) -> Any:
    """All weight / observed weight, 0 where nothing is observed."""
    xp = passes_array.array_namespace(observed)
    some = observed > NOTHING * total
    return xp.where(
        some, total / xp.where(some, observed, xp.ones_like(observed)), xp.zeros_like(observed)
    )


def scaled_up(sums: Any, observed: Any, total: float) -> Any:
    """Distances over observed features, scaled up for the others; infinite if there are none."""
    xp = passes_array.array_namespace(sums)
    some = observed > NOTHING * total
    scaled = sums * total / xp.where(some, observed, xp.ones_like(observed))
    scaled = xp.where(scaled > 0, scaled, xp.zeros_like(scaled))
    return xp.where(some, scaled, xp.full_like(scaled, float("inf")))


class DeviceMissingEngine(DeviceEngine):
    """Passes over an array (n, p) on a device in which NaN marks a missing cell."""

    table_cells = 2  # values and marks

    def __init__(self, X, *, frame=None, **options):
        self.observed = ~passes_array.array_namespace(X).isnan(X)
        super().__init__(X, frame=frame, **options)
        xp = self.arrays.xp
        location = xp.astype(self.place_on_device.location, X.dtype)
        self.X = xp.where(self.observed, X, location)
        self.n_missing = X.shape[0] * X.shape[1] - int(xp.sum(xp.astype(self.observed, xp.int64)))
        self._any = to_host(xp.any(self.observed, axis=0))

    def _frame_of(self, X):
        """The frame of some 31 rows, with observed cells of each column that these do not show."""
        rows = np.array(to_host(X[:: sample_steps(*X.shape)[0], :]))  # a copy: the data stay
        for j in np.flatnonzero(np.isnan(rows).all(axis=0)):
            column = to_host(X[:, int(j)])
            cells = column[~np.isnan(column)]
            rows[:, j] = np.resize(cells, len(rows)) if len(cells) else np.nan
        return observed_frame(rows)

    def part(self, cases):
        xp, index = self.arrays.xp, self.arrays.asarray(cases)
        rows, marks = (xp.take(array, index, axis=0) for array in (self.X, self.observed))
        rows = xp.where(marks, rows, xp.full_like(rows, float("nan")))
        return DeviceMissingEngine(rows, frame=self.frame, passes=self.passes)

    def equal_weights(self):
        return self._any[None].astype(np.float64)

    def _row_keys(self, rows):
        pairs = zip(to_host(self.X[rows, :]) + 0.0, to_host(self.observed[rows, :]), strict=True)
        return {row.tobytes() + marks.tobytes() for row, marks in pairs}

    def compact_table(self, weights):
        return self.table(weights)

    def search_table(self, weights):
        return self._columns_table(weights, self.arrays.xp.float32)

    def _table_of(self, *parts):
        return DeviceMissingTable(self, *parts)

    def _parts(self, columns, dtype):
        xp = self.arrays.xp
        marks = xp.take(self.observed, self.arrays.asarray(columns), axis=1)
        return [*super()._parts(columns, dtype), xp.astype(marks, dtype)]

    def sums(self, groups, K):
        values = passes_array.sums(self.X, groups, K, self.place_on_device)
        marks, _ = passes_array.sums(self.observed, groups, K)
        totals, counts, cells = fetch(*values, marks)
        # What stands in a missing cell is at the location of the frame, and adds 0.
        return MissingSums(np.concatenate([totals, cells], axis=2), counts)

    def shift(self, sums, before, after):
        fresh = self.sums(after, sums.counts.shape[1])
        sums.totals[...], sums.counts[...] = fresh.totals, fresh.counts
        xp = self.arrays.xp
        return to_host(xp.sum(xp.astype(before != after, xp.int64), axis=1))

    def distances(self, labels, centers, weights=None):
        xp, asarray = self.arrays.xp, self.arrays.asarray
        weights = self.equal_weights() if weights is None else weights
        filled, seen = asarray(np.nan_to_num(centers)), asarray((~np.isnan(centers)).astype(float))
        columns, parts = asarray(weights), []
        for rows in passes_array.chunks(self.X, 6 * self.n_features):
            cells = passes_array.read(self.X, rows, self.place_on_device)
            marks, found = xp.astype(self.observed[rows, :], xp.float64), []
            for run in range(labels.shape[0]):
                own = xp.astype(labels[run, rows], xp.int64)
                both = marks * xp.take(seen[run, ...], own, axis=0)
                errors = (cells - xp.take(filled[run, ...], own, axis=0)) ** 2 * both
                weight = columns[run if len(weights) > 1 else 0, :]
                total = float(weights[run if len(weights) > 1 else 0].sum())
                found.append(scaled_up(errors @ weight, both @ weight, total))
            parts.append(xp.stack(found))
        return xp.concat(parts, axis=1)

    def between(self, sums, groups, weights):
        """B_j, each case's terms carrying the factor for its missing cells."""
        parts = self._factored_sums(groups, self._factors(weights), sums.counts.shape[1])
        return np.where(self._any, sums.factored_between(*parts), -1.0)

    def _factored_sums(self, groups, factors, K):
        """Sums of f x and of f over the observed cells of each cluster and feature."""
        xp, runs = self.arrays.xp, groups.shape[0]
        first = xp.zeros((runs * K, self.n_features), dtype=xp.float64, device=self.arrays.device)
        zeroth = xp.zeros_like(first)
        for rows in passes_array.chunks(self.X, 2 * runs * K + 3 * self.n_features):
            own = xp.reshape(passes_array.members(groups[:, rows], K), (runs, K, -1))
            own = xp.reshape(own * factors[:, None, rows], (runs * K, -1))
            first += own @ passes_array.read(self.X, rows, self.place_on_device)
            zeroth += own @ xp.astype(self.observed[rows, :], xp.float64)
        shape = (runs, K, self.n_features)
        return [part.reshape(shape) for part in fetch(first, zeroth)]

    def _factors(self, weights):
        """All weight / observed weight (runs, n) of each case; 0 for a blind one."""
        asarray = self.arrays.asarray
        return scales(self._observed_weight(weights), asarray(weights.sum(axis=1, keepdims=True)))

    def _observed_weight(self, weights):
        """The weight (runs, n) that is observed of each case."""
        xp, columns = self.arrays.xp, self.arrays.asarray(weights.T)
        parts = [
            (passes_array.read(self.observed, rows) @ columns).T
            for rows in passes_array.chunks(self.observed, self.n_features)
        ]
        return xp.concat(parts, axis=1)

    def set_aside(self, groups, weights):
        return (groups < 0) & (self._factors(weights[None]) > 0)

    def little_seen(self, weights, share):
        seen = self._observed_weight(weights[None])[0, :] / float(weights.sum())
        return Listed.of(to_host(self.arrays.xp.nonzero(seen < share)[0]))


def device_engine(
    X: Any, *, missing: bool | None, drop_unobserved: bool, **options: Any
) -> DeviceEngine:
    """Return the engine for an array on a device, with missing cells or without."""
    xp = passes_array.array_namespace(X)
    if missing is None:
        missing = bool(xp.any(xp.isnan(X)))
    if not missing:
        return DeviceEngine(X, **options)
    unobserved = xp.all(xp.isnan(X), axis=1)
    if not drop_unobserved or not bool(xp.any(unobserved)):
        return DeviceMissingEngine(X, **options)
    if bool(xp.all(unobserved)):
        raise ValueError(
            f"X has no observed cell in any of its {X.shape[0]} cases; give it some data."
        )
    seen = xp.take(X, xp.nonzero(~unobserved)[0], axis=0)
    engine = device_engine(seen, missing=None, drop_unobserved=False, **options)
    engine.leave_out(unobserved)
    return engine
