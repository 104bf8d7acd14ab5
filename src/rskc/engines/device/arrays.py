"""Arrays on a device: between it and memory, and what the solver does with long ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_cupy_array, is_torch_array, to_device

from rskc.engines.base import case_numbers, sums_to_keys
from rskc.engines.empty import Candidates, candidates_needed, fill_from


def to_host(array: Any) -> np.ndarray:
    """Copy an array of any kind into memory."""
    if is_torch_array(array) or is_cupy_array(array):
        array = to_device(array, "cpu")
    return np.asarray(array)


def fetch(*arrays: Any) -> list[np.ndarray]:
    """Copy small arrays into memory, as float64, in one go: one synchronization for all."""
    xp = array_namespace(*arrays)
    flat = xp.concat([xp.astype(xp.reshape(part, (-1,)), xp.float64) for part in arrays])
    ends = np.cumsum([int(np.prod(part.shape)) for part in arrays])[:-1]
    parts = np.split(to_host(flat), ends)
    return [part.reshape(array.shape) for part, array in zip(parts, arrays, strict=True)]


def free_bytes(X: Any) -> int | None:
    """Return the memory that is free on the device of X, if it can be asked."""
    if is_torch_array(X) and X.device.type == "cuda":
        import torch

        stats = torch.cuda.memory_stats(X.device)  # a quarter of a millisecond: asked once
        unused = stats["reserved_bytes.all.current"] - stats["allocated_bytes.all.current"]
        return torch.cuda.mem_get_info(X.device)[0] + unused
    if is_cupy_array(X):
        import cupy

        return cupy.cuda.Device(X.device.id).mem_info[0]
    return None


class DeviceCases:
    """:class:`~rskc.engines.interface.Cases` for arrays on a device."""

    def __init__(self, like: Any):
        self.xp, self.device = array_namespace(like), device(like)
        self._numbers: Any = None

    def asarray(self, array: Any, dtype: Any = None) -> Any:
        """Bring an array from memory to the device."""
        return self.xp.asarray(np.ascontiguousarray(array), dtype=dtype, device=self.device)

    def to_numpy(self, array):
        return to_host(array)

    def from_numpy(self, array):
        return self.asarray(array)

    def take(self, array, runs):
        if isinstance(runs, slice):
            return array[slice(*runs.indices(array.shape[0])), :]
        return self.xp.take(array, self.asarray(runs), axis=0)

    def only(self, array):
        return array[0, ...]

    def as_run(self, array):
        return array[None, ...]

    def join(self, parts):
        return self.xp.concat(list(parts), axis=0)

    def without(self, groups, out):
        return self.xp.where(out, -self.xp.ones_like(groups), groups)

    def trimmed(self, groups):
        return groups < 0

    def sizes(self, groups, K):
        ones = self.xp.ones(groups.shape[1], dtype=self.xp.float64, device=self.device)
        return self._of_groups(groups, K, ones)[:, 1:].astype(np.int64)

    def differ(self, groups, others):
        return to_host(self.xp.count_nonzero(groups != others, axis=1))

    def keys(self, groups, K, masks=None):
        numbers = self._numbers_of(groups.shape[1])
        sums, marks = self._of_groups(groups, K, numbers), None
        if masks is not None:
            numbers, zeros = self.xp.flip(numbers), self.xp.zeros_like(numbers)
            marks = to_host(self.xp.sum(self.xp.where(masks, numbers, zeros), axis=1))
        return sums_to_keys(sums, marks)

    def _of_groups(self, groups, K, values):
        """Sum values (n,) over the trimmed cases and over each group: (runs, 1 + K)."""
        xp = self.xp
        if hasattr(xp, "bincount"):  # not in the array API, but where there are devices
            rows = (groups[run, :] + 1 for run in range(groups.shape[0]))
            parts = [xp.bincount(row, weights=values, minlength=K + 1) for row in rows]
            return to_host(xp.stack(parts))
        zeros = xp.zeros_like(values)
        parts = [xp.sum(xp.where(groups == k, values, zeros), axis=1) for k in range(-1, K)]
        return to_host(xp.stack(parts, axis=1))

    def _numbers_of(self, n):
        if self._numbers is None or self._numbers.shape[0] != n:
            self._numbers = self.asarray(case_numbers(0, n, n))
        return self._numbers

    def fill_empty(self, groups, counts, costs):
        xp, groups = self.xp, self.xp.asarray(groups, copy=True)
        for run in np.flatnonzero((counts == 0).any(axis=1)):
            own = groups[int(run), :]
            paid = xp.where(own < 0, xp.zeros_like(costs[0, :]), costs[int(run), :])
            most = min(candidates_needed(counts[run]), paid.shape[0])
            numbers = xp.argsort(-paid, stable=True)[:most]
            parts = numbers, xp.take(paid, numbers), xp.take(own, numbers)
            found = [to_host(part) for part in parts]
            found.append(self.masses_at(found[0]))
            for case, k in fill_from(Candidates(*found), counts[run]):
                groups[int(run), case] = k
        return groups

    def lesser(self, costs, others):
        return self.xp.where(costs < others, costs, others)

    def draw(self, costs, groups, uniforms):
        xp = self.xp
        chances = xp.astype(xp.where(groups < 0, xp.zeros_like(costs), costs), xp.float64)
        ladder = xp.cumulative_sum(chances, axis=1)
        goals = self.asarray(uniforms) * ladder[:, -1:]
        rows = range(costs.shape[0])
        found = [xp.searchsorted(ladder[run, :], goals[run, :], side="right") for run in rows]
        places, total = fetch(xp.stack(found), ladder[:, -1])
        n = costs.shape[1]
        places = np.where(total[:, None] == 0, uniforms * n, places)  # all alike: any case
        return np.minimum(places, n - 1).astype(np.int64)

    def numbers_where(self, mask):
        return to_host(self.xp.nonzero(mask)[0])

    def first_members(self, groups, k, most):
        return self.numbers_where(groups[0, :] == k)[:most]

    def masses_at(self, cases):
        return np.ones(len(cases))

    def kept_shares(self, groups):
        return np.ones(groups.shape[0])

    def number(self, mask):
        return self.count(mask)

    def count(self, mask):
        return int(self.xp.count_nonzero(mask))

    def total(self, costs, out):
        return float(self.xp.sum(self.xp.where(out, self.xp.zeros_like(costs), costs)))

    def cube_roots(self, costs, groups, factors):
        xp, last = self.xp, self.xp.full_like(groups, len(factors))
        index = xp.astype(xp.where(groups < 0, last, groups), xp.int64)
        return (costs * xp.take(self.asarray(np.append(factors, 1.0)), index)) ** (1 / 3)

    def spread(self, costs):
        finite = costs[self.xp.isfinite(costs)]
        if finite.shape[0] == 0:
            return 0.0, 0.0
        median = self._median(finite)
        return median, self._median(self.xp.abs(finite - median))

    def _median(self, values):
        ordered, n = self.xp.sort(values), values.shape[0]
        return float(self.xp.mean(ordered[(n - 1) // 2 : n // 2 + 1]))
