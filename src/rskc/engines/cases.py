"""What the solver does with arrays (runs, n) in memory, and what all engines share of it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

# Bits of the random number of a case: fewer where there are so many cases that sums were inexact.
KEY_BITS, EXACT_BITS = 30, 52


class NumpyCases:
    """:class:`~rskc.engines.interface.Cases` for NumPy arrays."""

    def take(self, array, runs):
        return array[runs]

    def only(self, array):
        return array[0]

    def as_run(self, array):
        return array[None]

    def join(self, parts):
        return np.concatenate(parts)

    def without(self, groups, out):
        return np.where(out, np.int32(-1), groups)

    def trimmed(self, groups):
        return groups < 0

    def sizes(self, groups, K):
        return np.array([np.bincount(row + 1, minlength=K + 1)[1:] for row in groups])

    def differ(self, groups, others):
        return np.count_nonzero(groups != others, axis=1)

    def keys(self, groups, K, masks=None):
        numbers = _numbers_of_all(groups.shape[1])
        sums = np.array([np.bincount(row + 1, numbers, K + 1) for row in groups])
        marks = None if masks is None else (masks * numbers[::-1]).sum(axis=1)
        return sums_to_keys(sums, marks)

    def fill_empty(self, groups, counts, costs):
        groups = groups.copy()
        for run in np.flatnonzero((counts == 0).any(axis=1)):
            paid = np.where(groups[run] < 0, 0, costs[run])
            most = candidates_needed(counts[run])
            numbers = np.argsort(-paid, kind="stable")[:most]
            found = Candidates(numbers, paid[numbers], groups[run, numbers])
            for case, k in fill_from(found, counts[run]):
                groups[run, case] = k
        return groups

    def lesser(self, costs, others):
        return np.minimum(costs, others)

    def draw(self, costs, groups, uniforms):
        ladder = np.cumsum(np.where(groups < 0, 0, costs), axis=1, dtype=np.float64)
        ladder[ladder[:, -1] == 0] = np.arange(1, ladder.shape[1] + 1)  # all alike: any case
        rows = zip(ladder, uniforms * ladder[:, -1:], strict=True)
        places = [np.searchsorted(steps, goals, side="right") for steps, goals in rows]
        return np.minimum(places, ladder.shape[1] - 1)

    def first_members(self, groups, k, most):
        return np.flatnonzero(groups[0] == k)[:most]

    def total(self, costs, out):
        return float(costs[~out].sum())

    def spread(self, costs):
        costs = costs[np.isfinite(costs)]
        if len(costs) == 0:  # nothing that has weight is observed of any case
            return 0.0, 0.0
        median = np.median(costs)
        return float(median), float(np.median(np.abs(costs - median)))


# ---- Keys of partitions


def case_numbers(first: int, last: int, n: int) -> np.ndarray:
    """Return a random whole number for each of the cases from the first to before the last of n.

    It depends on the number of the case alone, so that blocks of cases can be keyed apart
    (splitmix64). Sums of them are exact in float64.
    """
    with np.errstate(over="ignore"):
        z = np.arange(first + 1, last + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = min(KEY_BITS, EXACT_BITS - int(n).bit_length())
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(64 - bits)).astype(np.float64)


@lru_cache(maxsize=4)
def _numbers_of_all(n: int) -> np.ndarray:
    return case_numbers(0, n, n)


def sums_to_keys(sums: np.ndarray, marks: np.ndarray | None) -> list[bytes]:
    """Make keys of the sums (runs, 1 + K) of the numbers of trimmed cases and of each group.

    Sorted, they do not depend on how the groups are numbered. ``marks`` (runs,) are sums over a
    mask.
    """
    sums = np.hstack([sums[:, :1], np.sort(sums[:, 1:], axis=1)])
    if marks is not None:
        sums = np.hstack([sums, marks[:, None]])
    return [row.tobytes() for row in sums]


# ---- Clusters that are empty


class Candidates(NamedTuple):
    """The cases of a run that cost most, the most expensive first."""

    numbers: np.ndarray
    costs: np.ndarray
    groups: np.ndarray


def candidates_needed(counts: np.ndarray) -> int:
    """How many cases can be in question: one for each empty cluster, and those that are alone."""
    return len(counts) + int(np.count_nonzero(counts == 0))


def fill_from(found: Candidates, counts: np.ndarray) -> list[tuple[int, int]]:
    """Return (case, group) pairs: each empty group gets a case that is not alone in its group."""
    counts, pairs, free = counts.copy(), [], list(zip(*found, strict=True))
    for k in np.flatnonzero(counts == 0):
        for place, (case, cost, group) in enumerate(free):
            if cost > 0 and counts[group] >= 2:
                counts[group] -= 1
                counts[k] = 1
                pairs.append((int(case), int(k)))
                del free[place]
                break
    return pairs
