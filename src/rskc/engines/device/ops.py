"""Arrays on a device: between it and memory, and what the solver does with long ones."""

from functools import cached_property, partial
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_cupy_array, is_torch_array, to_device

from rskc.engines.arrays import (
    ArrayOps,
    PartlyTrimmed,
    case_numbers,
    each_part,
    labels_of,
    weighted_median,
    with_labels,
)
from rskc.engines.device import passes_array


def to_host(array: Any) -> np.ndarray:
    """Copy an array of any kind into memory."""
    if is_torch_array(array):
        return array.detach().cpu().numpy()
    return np.asarray(to_device(array, "cpu") if is_cupy_array(array) else array)


def fetch(*arrays: Any) -> list[np.ndarray]:
    """Copy small arrays into memory, as float64, in one go: one synchronization for all."""
    xp = array_namespace(*arrays)
    flat = xp.concat([xp.astype(xp.reshape(part, (-1,)), xp.float64) for part in arrays])
    ends = np.cumsum([int(np.prod(part.shape)) for part in arrays])[:-1]
    parts = np.split(to_host(flat), ends)
    return [part.reshape(array.shape) for part, array in zip(parts, arrays, strict=True)]


def free_bytes(place: Any) -> int | None:
    """Return the memory that is free on a device of torch or CuPy, if it can be asked."""
    if getattr(place, "type", "") == "cuda":
        import torch

        unused = torch.cuda.memory_reserved(place) - torch.cuda.memory_allocated(place)
        return torch.cuda.mem_get_info(place)[0] + unused
    return place.mem_info[0] if hasattr(place, "mem_info") else None


# Work arrays of a batch of runs may take this share of the memory that is free on the device...
WORK_SHARE = 8
# ... or this much, where that is not known.
UNKNOWN_WORK_BYTES = 2**30


class DeviceOps(ArrayOps):
    """What the solver does with arrays (runs, n) on a device."""

    def __init__(self, like: Any, masses: np.ndarray | None = None):
        self.xp, self.device = array_namespace(like), device(like)
        self.there = {"device": self.device}
        self.concatenate = self.xp.concat
        self.host_masses = masses
        self.masses = None if masses is None else self.asarray(masses)
        self._numbers: Any = None

    @cached_property
    def work_bytes(self) -> int:
        """Return what work arrays of a batch of runs may take."""
        free = free_bytes(self.device)
        return UNKNOWN_WORK_BYTES if free is None else free // WORK_SHARE

    def asarray(self, array, dtype=None):
        array = np.ascontiguousarray(array)
        if hasattr(self.xp, "from_numpy") and array.flags.writeable:  # other threads go on
            return self.xp.from_numpy(array).to(self.device, dtype)
        return self.xp.asarray(array, dtype=dtype, device=self.device)

    def to_numpy(self, array):
        return to_host(labels_of(array))

    def take(self, array, runs):
        if isinstance(runs, slice):
            return array[slice(*runs.indices(array.shape[0])), :]
        if isinstance(array, PartlyTrimmed):
            return each_part(partial(self.take, runs=runs), array)
        return self.xp.take(array, self.asarray(runs), axis=0)

    def with_changes(self, groups, changes):
        labels = self.xp.asarray(labels_of(groups), copy=True)
        for run, case, k in changes:
            labels[run, case] = k
        return with_labels(groups, labels)

    def largest(self, costs: Any, m: float) -> Any:
        """Return a mask of the cases of largest cost that have the mass m, the last one in part."""
        if self.masses is None:
            return passes_array.largest(costs, int(m))
        if m <= 0:
            return costs < 0
        return PartlyTrimmed(*passes_array.largest_masses(costs, self.masses, m))

    def _of_groups(self, labels, K, values):
        xp = self.xp
        if values is None:
            values = xp.ones(labels.shape[1], dtype=xp.float64, device=self.device)
        if hasattr(xp, "bincount"):  # not in the array API, but where there are devices
            rows = (labels[run, :] + 1 for run in range(labels.shape[0]))
            parts = [xp.bincount(row, weights=values, minlength=K + 1) for row in rows]
            return to_host(xp.stack(parts))
        zeros = xp.zeros_like(values)
        parts = [xp.sum(xp.where(labels == k, values, zeros), axis=1) for k in range(-1, K)]
        return to_host(xp.stack(parts, axis=1))

    def _numbers_of(self, first, last, n):
        if self._numbers is None or self._numbers.shape[0] != n:
            self._numbers = self.asarray(case_numbers(0, n, n))
        return self._numbers

    def _drawn(self, chances, uniforms):
        xp, (runs, n) = self.xp, chances.shape
        ladder = xp.cumulative_sum(xp.astype(chances, xp.float64), axis=1)
        goals = self.asarray(uniforms) * ladder[:, -1:]
        found = [xp.searchsorted(ladder[r, :], goals[r, :], side="right") for r in range(runs)]
        places, total = fetch(xp.stack(found), ladder[:, -1])
        places = np.where(total[:, None] == 0, uniforms * n, places)  # all alike: any case
        return np.minimum(places, n - 1).astype(np.int64)

    def _middle(self, values, masses):
        if masses is not None:
            return weighted_median(values, masses, self.xp)
        ordered, n = self.xp.sort(values), values.shape[0]
        return float(self.xp.mean(ordered[(n - 1) // 2 : n // 2 + 1]))

    def cube_roots(self, costs, groups, factors):
        xp, labels = self.xp, labels_of(groups)
        index = xp.where(labels < 0, xp.full_like(labels, len(factors)), labels)
        factors = xp.take(self.asarray(np.append(factors, 1.0)), xp.astype(index, xp.int64))
        return (costs * factors) ** (1 / 3)
