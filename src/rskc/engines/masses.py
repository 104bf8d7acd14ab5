"""Cases that count more or less than others: their masses, and cases that are trimmed in part.

A mass is a case weight in units of which a case has about 1, so that whole masses are copies. By
mass, trimming ends within a case, of which a part is kept. Groups and masks with such cases are
:class:`Parted`; all others are the plain arrays of the engine. A case that two rules trim in part
keeps the lesser of two parts, as copies would, of which the first go first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

# Parts that differ by less are the same: sums of masses are rounded.
SAME_PART = 1e-9


class Parted:
    """Groups or a mask (runs, n) or (n,) with some cases that are trimmed in part.

    ``array`` has the label of such a case, or False. ``cut`` (runs, slots) are their numbers, -1
    for none, and ``left`` what is kept of their masses; both are NumPy's.
    """

    __array_ufunc__ = None  # plain masks leave | and & to this class

    def __init__(self, array: Any, cut: np.ndarray, left: np.ndarray):
        self.array, self.cut, self.left = array, cut, left

    def __len__(self) -> int:
        return self.array.shape[0]

    def __or__(self, other: Any) -> Parted:
        return Parted(self.array | whole(other), *joined(self, other))

    def __and__(self, other: Any) -> Parted:
        if isinstance(other, Parted):  # what is trimmed in part by one is hardly so by both
            return Parted(self.array & other.array, *no_slots(len(self.cut)))
        return Parted(self.array & other, self.cut, self.left)

    __ror__, __rand__ = __or__, __and__

    def __invert__(self) -> Parted:
        return Parted(~self.array, *no_slots(len(self.cut)))


def whole(array: Any) -> Any:
    """Return groups or a mask without what is known of cases that are trimmed in part."""
    return array.array if isinstance(array, Parted) else array


def no_slots(runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return that of no run a case is trimmed in part."""
    return np.empty((runs, 0), np.int64), np.empty((runs, 0))


def joined(one: Any, other: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the cases that either has trimmed in part, and what both keep."""
    if not isinstance(other, Parted):
        return (one.cut, one.left) if isinstance(one, Parted) else no_slots(1)
    if not isinstance(one, Parted):
        return other.cut, other.left
    if one.cut.shape[1] == 0 and len(one.cut) <= len(other.cut):
        return other.cut, other.left
    same = (one.cut[:, :, None] == other.cut[:, None, :]) & (one.cut[:, :, None] >= 0)
    least = np.where(same, other.left[:, None, :], np.inf).min(axis=2, initial=np.inf)
    others = np.where(same.any(axis=1), -1, other.cut)
    used = (others >= 0).any(axis=0)
    cuts = np.broadcast_to(one.cut, (len(others), one.cut.shape[1])), others[:, used]
    lefts = np.minimum(one.left, least), np.broadcast_to(other.left, others.shape)[:, used]
    runs = max(len(part) for part in (*cuts, *lefts))
    cut, left = (
        np.hstack([np.broadcast_to(part, (runs, part.shape[1])) for part in parts])
        for parts in (cuts, lefts)
    )
    return cut, left


class Cuts(NamedTuple):
    """The cases of groups that are trimmed in part: an entry for each run and case."""

    run: np.ndarray
    case: np.ndarray
    group: np.ndarray
    gone: np.ndarray  # what is trimmed of the mass


class WeightedCases:
    """What is done with arrays (runs, n) where cases have masses; mixed with an engine's Cases."""

    xp: Any
    masses: Any  # (n,) float64, of the engine's kind
    masses_at: Callable[[np.ndarray], np.ndarray]  # masses of some cases, NumPy's
    values_at: Callable[[Any, np.ndarray, np.ndarray], np.ndarray]  # of an array, by run and case
    put: Callable[[Any, np.ndarray, np.ndarray, np.ndarray], Any]  # a copy with other values
    _of_groups: Callable[..., np.ndarray]

    def cuts(self, groups: Any) -> Cuts:
        """Return the cases that are trimmed in part, of those in a group."""
        if not isinstance(groups, Parted) or not (groups.cut >= 0).any():
            none = np.empty(0, np.int64)
            return Cuts(none, none, none, np.empty(0))
        run, slot = np.nonzero(groups.cut >= 0)
        case, left = groups.cut[run, slot], groups.left[run, slot]
        found = self.values_at(groups.array, run, case).astype(np.int64)
        own = found >= 0
        gone = self.masses_at(case) - left
        return Cuts(run[own], case[own], found[own], gone[own])

    def kept_masses(self, groups: Any) -> Any:
        """Return the masses (runs, n) that cases in a group have left."""
        xp, cuts = self.xp, self.cuts(groups)
        masses = xp.broadcast_to(self.masses[None, :], whole(groups).shape)
        if len(cuts.run) == 0:
            return masses
        return self.put(masses, cuts.run, cuts.case, self.masses_at(cuts.case) - cuts.gone)

    def kept_shares(self, groups):
        shares, cuts = np.ones(whole(groups).shape[0]), self.cuts(self.as_run(groups))
        shares[cuts.case] -= cuts.gone / self.masses_at(cuts.case)
        return shares

    def _each(self, array: Any, function: Callable) -> Any:
        if isinstance(array, Parted):
            return Parted(function(array.array), array.cut, array.left)
        return function(array)

    def to_numpy(self, array):
        return super().to_numpy(whole(array))  # type: ignore[misc]

    def take(self, array, runs):
        if not isinstance(array, Parted):
            return super().take(array, runs)  # type: ignore[misc]
        taken = super().take(array.array, runs)  # type: ignore[misc]
        return Parted(taken, array.cut[runs], array.left[runs])

    def only(self, array):
        return self._each(array, super().only)  # type: ignore[misc]

    def as_run(self, array):
        return self._each(array, super().as_run)  # type: ignore[misc]

    def join(self, parts):
        array = super().join([whole(part) for part in parts])  # type: ignore[misc]
        if not any(isinstance(part, Parted) for part in parts):
            return array
        widths = {part.cut.shape[1] if isinstance(part, Parted) else 0 for part in parts}
        width = max(widths)
        if len(widths) == 1:  # as always, but where warm starts are joined
            slots = ([part.cut for part in parts], [part.left for part in parts])
            return Parted(array, *map(np.concatenate, slots))
        runs = sum(whole(part).shape[0] for part in parts)
        cut, left, first = np.full((runs, width), -1), np.zeros((runs, width)), 0
        for part in parts:
            last = first + whole(part).shape[0]
            if isinstance(part, Parted):
                own = slice(first, last), slice(part.cut.shape[1])
                cut[own], left[own] = part.cut, part.left
            first = last
        return Parted(array, cut, left)

    def without(self, groups, out):
        array = super().without(whole(groups), whole(out))  # type: ignore[misc]
        if not (isinstance(groups, Parted) or isinstance(out, Parted)):
            return array
        cut, left = joined(groups, out)
        runs = array.shape[0] if array.ndim == 2 else 1
        shape = runs, cut.shape[1]
        return Parted(array, np.broadcast_to(cut, shape), np.broadcast_to(left, shape))

    def trimmed(self, groups):
        return self._each(groups, super().trimmed)  # type: ignore[misc]

    def sizes(self, groups, K):
        sizes, cuts = self._of_groups(whole(groups), K, self.masses), self.cuts(groups)
        sizes = np.array(sizes[:, 1:])
        np.subtract.at(sizes, (cuts.run, cuts.group), cuts.gone)
        return sizes

    def differ(self, groups, others):
        found = super().differ(whole(groups), whole(others))  # type: ignore[misc]
        return found + parts_differ(groups, others)

    def keys(self, groups, K, masks=None):
        arrays = whole(groups), K, None if masks is None else whole(masks)
        keys = super().keys(*arrays)  # type: ignore[misc]
        parts = np.hstack([slots_in_order(each, len(keys)) for each in (groups, masks)])
        return [key + part.tobytes() for key, part in zip(keys, parts.round(6), strict=True)]

    def fill_empty(self, groups, counts, costs):
        cuts = self.cuts(groups)
        none = np.full(len(cuts.run), -1, np.int32)
        hidden = self.put(whole(groups), cuts.run, cuts.case, none)
        filled = super().fill_empty(hidden, counts, costs)  # type: ignore[misc]
        filled = self.put(filled, cuts.run, cuts.case, cuts.group.astype(np.int32))
        return Parted(filled, groups.cut, groups.left) if isinstance(groups, Parted) else filled

    def draw(self, costs, groups, uniforms):
        xp, array = self.xp, whole(groups)
        chances = xp.where(array < 0, xp.zeros_like(costs), costs) * self.kept_masses(groups)
        none = xp.sum(chances, axis=1, keepdims=True) == 0
        masses = xp.broadcast_to(self.masses[None, :], chances.shape)
        chances = xp.where(none, masses, chances)
        return super().draw(chances, xp.zeros_like(array), uniforms)  # type: ignore[misc]

    def first_members(self, groups, k, most):
        return super().first_members(whole(groups), k, most)  # type: ignore[misc]

    def total(self, costs, out):
        total = super().total(costs * self.masses, whole(out))  # type: ignore[misc]
        if not isinstance(out, Parted):
            return total
        case = out.cut[0][out.cut[0] >= 0]
        gone = self.masses_at(case) - out.left[0][out.cut[0] >= 0]
        values = self.values_at(self.as_run(costs), np.zeros_like(case), case)
        hidden = self.values_at(self.as_run(out.array), np.zeros_like(case), case)
        return total - float((gone * values * (hidden == 0)).sum())

    def number(self, mask):
        return super().count(whole(mask)) + int((joined(mask, None)[0] >= 0).sum())  # type: ignore[misc]

    def count(self, mask):
        return float(self.xp.sum(self.xp.where(whole(mask), self.masses, 0 * self.masses)))

    def cube_roots(self, costs, groups, factors):
        return super().cube_roots(costs, whole(groups), factors)  # type: ignore[misc]

    def spread(self, costs):
        xp, finite = self.xp, self.xp.isfinite(costs)
        costs, masses = costs[finite], self.masses[finite]
        if costs.shape[0] == 0:
            return 0.0, 0.0
        median = weighted_median(costs, masses, xp)
        return median, weighted_median(xp.abs(costs - median), masses, xp)


def parts_differ(groups: Any, others: Any) -> Any:
    """Return whether runs differ in the cases that are trimmed in part: (runs,), or 0 for none."""
    one, other = (joined(array, None) for array in (groups, others))
    if one[0].shape != other[0].shape:
        used = [(cut >= 0).sum(axis=1) for cut, _ in (one, other)]
        return (used[0] != used[1]).astype(np.int64)
    moved = (one[0] != other[0]) | ((one[0] >= 0) & (np.abs(one[1] - other[1]) > SAME_PART))
    return moved.any(axis=1).astype(np.int64)


def slots_in_order(array: Any, runs: int) -> np.ndarray:
    """Return numbers and parts (runs, slots, 2), those in use first."""
    if not isinstance(array, Parted):
        return np.empty((runs, 0, 2))
    pairs = np.empty((*array.cut.shape, 2))
    pairs[:, :, 0], pairs[:, :, 1] = array.cut, np.where(array.cut < 0, 0.0, array.left)
    if pairs.shape[1] == 1:
        return pairs[:, (array.cut >= 0).any(axis=0)]
    pairs = pairs[:, (array.cut >= 0).any(axis=0)]
    order = np.argsort(-pairs[:, :, 0], axis=1, kind="stable")
    return np.take_along_axis(pairs, order[:, :, None], axis=1)


def weighted_median(values: Any, masses: Any, xp: Any = np) -> float:
    """Return the median of values, each as often as its mass: the mean of the two middle ones."""
    order = xp.argsort(values)
    cumulative = xp.cumsum if xp is np else xp.cumulative_sum
    below = cumulative(xp.take(masses, order))
    half, last = float(below[-1]) / 2, values.shape[0] - 1
    places = [int(xp.count_nonzero(below < half * side)) for side in (1 - 1e-12, 1 + 1e-12)]
    return sum(float(values[int(order[min(place, last)])]) for place in places) / 2


def unit_of(weights: np.ndarray, most: int = 20) -> tuple[float, bool]:
    """Return the unit of weights, and whether these are whole multiples of it: copies.

    It is the largest number of which all weights are multiples, if the least of them is at most
    20 units. Otherwise it is their mean: a case has about mass 1 in any case, whatever all weights
    are multiplied by.
    """
    least, some = float(weights.min()), weights[:1000]
    for number in range(1, most + 1):
        unit = least / number
        if _are_multiples(some, unit) and _are_multiples(weights, unit):
            return unit, True
    return float(weights.mean()), False


def _are_multiples(weights: np.ndarray, unit: float) -> bool:
    counts = weights / unit
    whole_counts = np.abs(counts - np.rint(counts)) <= 1e-9 * counts
    return bool(whole_counts.all()) and float(counts.max()) < 1e6
