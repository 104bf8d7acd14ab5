"""The engines on a device for cases that have masses.

Passes with masses are those of the array API; nearest centers and distances, which have none, are
Triton kernels where there are any.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rskc.engines.base import Sums
from rskc.engines.device import passes_array
from rskc.engines.device.arrays import DeviceCases, fetch, to_host
from rskc.engines.device.engine import DeviceEngine
from rskc.engines.device.missing import DeviceMissingEngine, DeviceMissingTable
from rskc.engines.device.tables import DeviceTable
from rskc.engines.interface import Farthest, Grouping, Moved, Regrouping
from rskc.engines.masses import Parted, WeightedCases, weighted_median, whole
from rskc.engines.missing import MissingSums
from rskc.engines.weighted import (
    WeightedMissingTable,
    WeightedOwner,
    WeightedTable,
    give_masses,
    without_rounding,
)


class WeightedDeviceCases(WeightedCases, DeviceCases):
    """:class:`~rskc.engines.interface.Cases` for arrays on a device of cases with masses."""

    def __init__(self, like: Any, masses: np.ndarray):
        super().__init__(like)
        self.host_masses, self.masses = masses, self.asarray(masses)

    def from_numpy(self, array):
        if isinstance(array, Parted):
            return Parted(self.asarray(array.array), array.cut, array.left)
        return self.asarray(array)

    def masses_at(self, cases):
        return self.host_masses[cases]

    def values_at(self, array, run, case):
        flat = self.xp.reshape(array, (-1,))
        return to_host(self.xp.take(flat, self.asarray(run * array.shape[1] + case)))

    def put(self, array, run, case, values):
        array = self.xp.asarray(array, copy=True)
        for r, i, value in zip(run.tolist(), case.tolist(), values.tolist(), strict=True):
            array[r, i] = value
        return array

    def largest(self, costs: Any, m: float) -> Any:
        """Return a mask of the cases of largest cost that have the mass m, the last one in part."""
        if m <= 0:
            return costs < 0
        mask, cut, left = passes_array.largest_masses(costs, self.masses, m)
        cut, left = fetch(cut, left)
        return Parted(mask, cut.astype(np.int64)[:, None], left[:, None])

    def within(self, groups: Any, costs: Any) -> Any:
        """Sum the masses times the costs (runs,) of kept cases."""
        own = self.kept_masses(groups) * costs
        kept = self.xp.where(whole(groups) < 0, self.xp.zeros_like(own), own)
        return self.xp.sum(kept, axis=1, dtype=self.xp.float64)


class WeightedDeviceTableMixin(WeightedOwner, DeviceTable):
    """Cells on the device, of cases with masses."""

    def __init__(self, engine, rows, weights, place):
        super().__init__(engine, rows, weights, place)
        self.masses, self.total_mass = engine.masses, engine.total_mass

    def trim(self, assignment, m):
        groups = self._groups(assignment, m)
        within = to_host(self.arrays.within(groups, assignment.costs))
        return Grouping(self.exclude(groups), within)

    def _groups(self, assignment, m):
        return self.arrays.without(assignment.labels, self.arrays.largest(assignment.costs, m))

    def sums(self, groups, K):
        parts = self.rows, whole(groups), K, None, self.arrays.kept_masses(groups)
        totals, counts = passes_array.sums(*parts)
        return self.sums_type(*fetch(totals[:, :, : self.width], counts))

    def shift(self, sums, before, after):
        moved = super().shift(sums, before, after)
        without_rounding(sums)
        return moved

    def _change(self, before, after, K):
        kept = [self.arrays.kept_masses(groups) for groups in (before, after)]
        parts = self.rows, whole(before), whole(after), K, None, kept
        totals, *others = passes_array.shift(*parts)
        return totals[:, :, : self.width], *others

    def regroup(self, assignment, m, sums, before):
        groups = self._groups(assignment, m)
        within, groups = self.arrays.within(groups, assignment.costs), self.exclude(groups)
        change = self._change(before, groups, sums.counts.shape[1])
        *change, within = fetch(*change, within)
        moved = sums.change(*change)
        without_rounding(sums)
        return Regrouping(groups, within, moved)

    def single_moves(self, groups, K):
        host: Any = to_host(whole(groups))
        if isinstance(groups, Parted):
            host = Parted(host, groups.cut, groups.left)
        found = self.to_numpy().single_moves(host, K)
        return Moved(self.arrays.from_numpy(found.groups), found.sums, found.moves)

    def to_numpy(self):
        return give_masses(super().to_numpy(), self.arrays.host_masses)

    def typical_norm(self):
        xp, norms = self.arrays.xp, self.norms()
        masses = xp.broadcast_to(self.masses[None, :], norms.shape)
        return weighted_median(xp.reshape(norms, (-1,)), xp.reshape(masses, (-1,)), xp)


class WeightedDeviceTable(WeightedDeviceTableMixin):
    """Columns of complete data."""

    host_table_type = WeightedTable


class WeightedDeviceMissingTable(WeightedDeviceTableMixin, DeviceMissingTable):
    """Values and marks of the columns that carry weight."""

    host_table_type = WeightedMissingTable


class WeightedDeviceEngineMixin(WeightedOwner, DeviceEngine):
    """Passes over an array on a device, of cases with masses."""

    def __init__(self, X, *, masses, **options):
        super().__init__(X, **options)
        self.arrays = WeightedDeviceCases(X, masses)
        self.masses, self.total_mass = self.arrays.masses, float(masses.sum())
        self.copies = bool((masses == np.rint(masses)).all())

    def rounded(self, mass):
        return int(mass) if self.copies else float(mass)

    def part(self, cases, masses=None):
        options = {"frame": self.frame, "passes": self.passes}
        masses = self.arrays.host_masses[cases] if masses is None else masses
        return type(self)(self._taken(cases), masses=masses, **options)

    def returned(self, array, unobserved):
        if isinstance(array, Parted):  # a case that is trimmed in part is named with the others
            cut = array.cut[array.cut >= 0]
            named = self.arrays.as_run(array.array)
            named = self.arrays.put(named, np.zeros_like(cut), cut, np.ones(len(cut), bool))
            array = self.arrays.only(named)
        return super().returned(array, unobserved)

    def sums(self, groups, K):
        kept = self.arrays.kept_masses(groups)
        return Sums(*fetch(*passes_array.sums(self.X, whole(groups), K, self.device_frame, kept)))

    def shift(self, sums, before, after):
        kept = [self.arrays.kept_masses(groups) for groups in (before, after)]
        parts = self.X, whole(before), whole(after), sums.counts.shape[1], self.device_frame, kept
        moved = sums.change(*fetch(*passes_array.shift(*parts)))
        without_rounding(sums)
        return moved

    def farthest(self, distances, m):
        largest = to_host(self.arrays.xp.max(distances, axis=1))
        return Farthest(self.arrays.largest(distances, m), largest)

    def _table_of_coordinates(self, coordinates, dtype):
        rows = self.arrays.asarray(coordinates, dtype)
        return WeightedDeviceTable(self, rows, np.ones((1, rows.shape[1])), None)


class WeightedDeviceEngine(WeightedDeviceEngineMixin):
    """Passes over such an array without missing cells."""

    table_type = WeightedDeviceTable


class WeightedDeviceMissingEngine(WeightedDeviceEngineMixin, DeviceMissingEngine):
    """Passes over such an array in which NaN marks a missing cell."""

    table_type = WeightedDeviceMissingTable

    def shift(self, sums, before, after):
        return DeviceMissingEngine.shift(self, sums, before, after)

    def sums(self, groups, K):
        kept, own = self.arrays.kept_masses(groups), whole(groups)
        values = passes_array.sums(self.X, own, K, self.device_frame, kept)
        marks, _ = passes_array.sums(self.observed, own, K, None, kept)
        totals, counts, cells = fetch(*values, marks)
        return MissingSums(np.concatenate([totals, cells], axis=2), counts)

    def factored(self, groups, weights, K):
        factors = self._factors(weights) * self.arrays.kept_masses(groups)
        return self._factored(whole(groups), factors, K)
