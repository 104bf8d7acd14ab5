"""What is done with arrays of length n, cases with masses included, and sums over their groups.

:class:`ArrayOps` has bodies for any array of the array API, and where that is not enough those for
NumPy's: arrays in blocks or on a device are what differs.

Cases may have masses: case weights in units of which a case has about 1, so that whole masses are
copies. By mass, trimming ends within a case, of which a part is kept. Groups and masks with such
cases are :class:`PartlyTrimmed`; all others are the plain arrays of the engine. A case that two
rules trim in part keeps the lesser of two parts, as copies would, of which the first go first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from rskc.engines.passes import PASSES
from rskc.engines.passes_numpy import NO_MASS, SAME_PART

# Bits of the random number of a case: fewer where sums over very many cases would be inexact.
KEY_BITS, EXACT_BITS = 30, 52


# ---- Groups in which a case is trimmed in part


@dataclass(eq=False)
class PartlyTrimmed:
    """Groups or a mask (runs, n) or (n,) with some cases that are trimmed in part.

    ``array`` has the label of such a case, or False. ``cut`` (runs, slots) are their numbers, -1
    for none, and ``left`` what is kept of their masses; both are NumPy's. It is indexed by runs and
    compared as the array is.
    """

    array: Any
    cut: np.ndarray
    left: np.ndarray

    __array_ufunc__ = None  # plain masks leave | and & to this class

    @property
    def shape(self) -> tuple[int, ...]:
        """Return that of the array."""
        return self.array.shape

    def __len__(self) -> int:
        return self.array.shape[0]

    def __getitem__(self, key: Any) -> PartlyTrimmed:
        runs = key[0] if isinstance(key, tuple) else key
        runs = runs if isinstance(runs, slice | np.ndarray) else slice(None)  # else the only one
        return PartlyTrimmed(self.array[key], self.cut[runs], self.left[runs])

    def __lt__(self, number: float) -> PartlyTrimmed:
        return PartlyTrimmed(self.array < number, self.cut, self.left)

    def __or__(self, other: Any) -> PartlyTrimmed:
        return PartlyTrimmed(self.array | labels_of(other), *joined(self, other))

    def __and__(self, other: Any) -> PartlyTrimmed:
        if isinstance(other, PartlyTrimmed):  # what one trims in part is hardly so by both
            return PartlyTrimmed(self.array & other.array, *_no_slots(len(self.cut)))
        return PartlyTrimmed(self.array & other, self.cut, self.left)

    __ror__, __rand__ = __or__, __and__

    def __invert__(self) -> PartlyTrimmed:
        return PartlyTrimmed(~self.array, *_no_slots(len(self.cut)))


def labels_of(groups: Any) -> Any:
    """Return groups or a mask without what is known of cases that are trimmed in part."""
    return groups.array if isinstance(groups, PartlyTrimmed) else groups


def with_labels(groups: Any, labels: Any) -> Any:
    """Return other labels, with the same cases trimmed in part."""
    if isinstance(groups, PartlyTrimmed):
        return PartlyTrimmed(labels, groups.cut, groups.left)
    return labels


def slots_of(groups: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Return cut and left (runs, slots) as the passes take them; None where there are none."""
    if not isinstance(groups, PartlyTrimmed):
        return None
    return np.ascontiguousarray(groups.cut), np.ascontiguousarray(groups.left)


def _no_slots(runs: int) -> tuple[np.ndarray, np.ndarray]:
    return np.empty((runs, 0), np.int64), np.empty((runs, 0))


def joined(one: Any, other: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the cases that either has trimmed in part, and what both keep."""
    if not isinstance(other, PartlyTrimmed):
        return (one.cut, one.left) if isinstance(one, PartlyTrimmed) else _no_slots(1)
    if not isinstance(one, PartlyTrimmed):
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
    return side_by_side(cuts, runs), side_by_side(lefts, runs)


def side_by_side(parts: Sequence[np.ndarray], runs: int) -> np.ndarray:
    """Join the slots of parts, each of which has one row or one for each run."""
    return np.hstack([np.broadcast_to(part, (runs, part.shape[1])) for part in parts])


def joined_runs(parts: Sequence[Any], array: Any) -> Any:
    """Return an array with the runs of all parts, and what of these is trimmed in part."""
    if not any(isinstance(part, PartlyTrimmed) for part in parts):
        return array
    slots = [joined(part, None) for part in parts]
    width = max(cut.shape[1] for cut, _ in slots)
    shape = array.shape[0], width
    cut, left = np.full(shape, -1), np.zeros(shape)
    first = 0
    for part, (own_cut, own_left) in zip(parts, slots, strict=True):
        place = slice(first, first := first + part.shape[0]), slice(own_cut.shape[1])
        cut[place], left[place] = own_cut, own_left
    return PartlyTrimmed(array, cut, left)


class Cuts(NamedTuple):
    """The cases of groups that are trimmed in part: an entry for each run and case."""

    run: np.ndarray
    case: np.ndarray
    group: np.ndarray
    gone: np.ndarray  # what is trimmed of the mass


NO_CASES = np.empty(0, np.int64)
NO_CUTS = Cuts(NO_CASES, NO_CASES, NO_CASES, np.empty(0))


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
    if not isinstance(array, PartlyTrimmed):
        return np.empty((runs, 0, 2))
    pairs = np.empty((*array.cut.shape, 2))
    pairs[:, :, 0], pairs[:, :, 1] = array.cut, np.where(array.cut < 0, 0.0, array.left)
    pairs = pairs[:, (array.cut >= 0).any(axis=0)]
    order = np.argsort(-pairs[:, :, 0], axis=1, kind="stable")
    return np.take_along_axis(pairs, order[:, :, None], axis=1)


# ---- Empty clusters: which cases they get


class Candidates(NamedTuple):
    """The cases of a run that cost most, the most expensive first."""

    numbers: np.ndarray
    costs: np.ndarray
    groups: np.ndarray
    masses: np.ndarray


def wanted_candidates(counts: np.ndarray) -> list[tuple[int, int]]:
    """Return the runs with empty clusters, and how many cases of each may have to move.

    That is one for each empty cluster, and those that are alone.
    """
    empty = np.count_nonzero(counts == 0, axis=1)
    return [(int(run), counts.shape[1] + int(empty[run])) for run in np.flatnonzero(empty)]


def fill_from(found: Candidates, counts: np.ndarray) -> list[tuple[int, int]]:
    """Return (case, group) pairs: each empty group gets a case that is not alone in its group."""
    counts, pairs, free = counts.copy(), [], list(zip(*found, strict=True))
    for k in np.flatnonzero(counts == 0):
        for place, (case, cost, group, mass) in enumerate(free):
            if cost > 0 and counts[group] - mass > NO_MASS:
                counts[group] -= mass
                counts[k] = mass
                pairs.append((int(case), int(k)))
                del free[place]
                break
    return pairs


# ---- Sums: where cells are missing, of those observed, with totals of values and of marks


def above_0(counts: np.ndarray) -> np.ndarray:
    """Return counts to divide by: 1 where there is nothing."""
    return np.where(counts > NO_MASS, counts, 1.0)


@dataclass
class Sums:
    """Totals and counts of the cases of each cluster; ``shift`` passes change them in place.

    Where cases have masses, the counts are masses.
    """

    totals: np.ndarray  # (runs, K, columns) float64
    counts: np.ndarray  # (runs, K) float64
    factored: ClassVar[bool] = False  # whether B_j of an engine has factors that these lack

    @classmethod
    def empty(cls, runs: int, K: int, columns: int) -> Self:
        """Return the sums over no case."""
        return cls(np.zeros((runs, K, columns)), np.zeros((runs, K)))

    def and_empty(self, runs: int) -> Self:
        """Return these, and the sums over no case for more runs."""
        _, K, columns = self.totals.shape
        more = self.empty(runs, K, columns)
        totals, counts = (self.totals, more.totals), (self.counts, more.counts)
        return type(self)(np.concatenate(totals), np.concatenate(counts))

    def change(self, totals: np.ndarray, counts: np.ndarray, moved: np.ndarray) -> np.ndarray:
        """Add what totals and counts change by when cases move; return how many moved."""
        self.totals += totals
        self.counts += counts
        return moved.astype(np.int64)

    def drop_rounding(self) -> None:
        """Make clusters empty that have no more mass than what rounding left in them."""
        empty = self.counts < NO_MASS
        if empty.any():
            self.counts[empty], self.totals[empty] = 0.0, 0.0

    def means(self) -> np.ndarray:
        """Return the means of the clusters; 0, the location of the data, for an empty one."""
        return self.totals / above_0(self.counts)[:, :, None]

    def between(self) -> np.ndarray:
        """Return B_j = sum_k n_k (mean_kj - mean_j)^2, a row for each run."""
        mean = self.totals.sum(axis=1) / above_0(self.counts.sum(axis=1))[:, None]
        return np.einsum("rk,rkj->rj", self.counts, (self.means() - mean[:, None, :]) ** 2)

    def n_kept(self) -> float:
        """Return how many cases the only run has in its groups, an int where that is whole."""
        total = float(self.counts.sum())
        return int(total) if total.is_integer() else total

    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        """Return totals (runs, K, p), and the number of cells (runs, K, 1 or p) in each."""
        return self.totals, self.counts[:, :, None]

    def of_runs(self, index: np.ndarray | slice) -> Self:
        """Return the sums of some of the runs: a copy, or for a slice a view."""
        return type(self)(*(part[index] for part in vars(self).values()))


class MissingSums(Sums):
    """Sums whose totals are of values, and then of marks: the number of observed cells."""

    factored = True

    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the totals (runs, K, p) of values, and those of marks."""
        p = self.totals.shape[2] // 2
        return self.totals[:, :, :p], self.totals[:, :, p:]

    def means(self) -> np.ndarray:
        """Return means over observed cells; NaN where there is none."""
        values, cells = self.halves()
        means = np.where(cells > NO_MASS, cells, np.nan)
        return np.divide(values, means, out=means)

    def between(self) -> np.ndarray:
        """Return B_j as if every case had observed all features that it is judged by."""
        means, mean = self._means_and_mean()
        return np.einsum("rkj,rkj->rj", self.halves()[1], (means - mean) ** 2)

    def factored_between(self, first: np.ndarray, zeroth: np.ndarray) -> np.ndarray:
        """Return B_j from sums (runs, K, p) of f x, and of f over observed cells."""
        means, mean = self._means_and_mean()
        return (2 * first * (means - mean) + zeroth * (mean**2 - means**2)).sum(axis=1)

    def _means_and_mean(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the means (runs, K, p), 0 where there is none, and those of all clusters."""
        values, cells = self.halves()
        means = np.where(cells > NO_MASS, values, 0.0) / above_0(cells)
        return means, (values.sum(axis=1) / above_0(cells.sum(axis=1)))[:, None, :]


# ---- Arrays of an engine


class ArrayOps:
    """What is done with arrays (runs, n) of an engine's kind; groups are -1 for a trimmed case.

    Where cases have masses, groups and masks may be trimmed in part.
    """

    xp: Any = np
    concatenate: Any = staticmethod(np.concatenate)

    def __init__(self, masses: np.ndarray | None = None):
        self.masses: Any = masses  # (n,) of the engine's kind; None where all cases count the same
        self.host_masses: Any = masses  # the same in memory
        self.there: dict[str, Any] = {}  # what it takes to make an array where the data are

    # ---- What differs between kinds of arrays: here, NumPy's

    def asarray(self, array: np.ndarray, dtype: Any = None) -> Any:
        """Bring an array from memory to where the data are."""
        return array

    def to_numpy(self, array: Any) -> np.ndarray:
        """Return an array in memory, without what is known of cases trimmed in part."""
        return labels_of(array)

    def gathered(self, groups: Any) -> Any:
        """Return groups or a mask in memory, with what is known of cases trimmed in part."""
        return with_labels(groups, self.to_numpy(groups))

    def from_numpy(self, array: Any) -> Any:
        """Return an array (n,) or (runs, n) as the engine has them."""
        return with_labels(array, self.asarray(labels_of(array)))

    def take(self, array: Any, runs: np.ndarray | slice) -> Any:
        """Return some of the runs."""
        return array[runs]

    def lesser(self, costs: Any, others: Any) -> Any:
        """Return the lesser of two costs of each case and run; of seeding tables."""
        return self.xp.where(costs < others, costs, others)

    def put(self, array: Any, run: np.ndarray, case: np.ndarray, values: np.ndarray) -> Any:
        """Return a copy with other values in some places."""
        array = np.array(array)
        array[run, case] = values
        return array

    def values_at(self, array: Any, run: np.ndarray, case: np.ndarray) -> np.ndarray:
        """Return the values in some places, in memory."""
        flat = self.xp.reshape(array, (-1,))
        return self.to_numpy(self.xp.take(flat, self.asarray(run * array.shape[1] + case)))

    def _of_groups(self, labels: Any, K: int, values: Any) -> np.ndarray:
        """Sum values (n,), or count, over the trimmed cases and over each group: (runs, 1 + K)."""
        out = np.empty((len(labels), 1 + K))
        PASSES.group_sums(np.ascontiguousarray(labels), values, out)
        return out

    def _numbers_of(self, first: int, last: int, n: int) -> Any:
        """Return the random numbers of some of n cases."""
        return case_numbers(first, last, n)

    def _costliest(self, labels: Any, costs: Any, run: int, most: int) -> Candidates:
        """Return the kept cases (of n) that cost most, the lower number first where they tie."""
        paid = np.where(labels[run] < 0, 0, costs[run])
        numbers = np.argsort(-paid, kind="stable")[:most]
        return Candidates(numbers, paid[numbers], labels[run, numbers], self.masses_at(numbers))

    def _drawn(self, chances: Any, uniforms: np.ndarray) -> np.ndarray:
        """Draw in proportion to chances (runs, n); where all are 0, any case."""
        cases = np.empty((len(chances), uniforms.shape[-1]), np.int64)
        PASSES.draw(*map(np.ascontiguousarray, (chances, uniforms)), cases)
        return cases

    def _total(self, costs: Any, out: Any) -> float:
        return float(costs[~out].sum())

    def _median(self, values: Any) -> float:
        return float(np.median(values))

    def _middle(self, values: Any, masses: Any) -> float:
        if masses is None:
            return self._median(values)
        return weighted_median(values, masses, self.xp)

    def cube_roots(self, costs: Any, groups: Any, factors: np.ndarray) -> Any:
        """Return the cube roots of costs (n,), those of each group times its factor (K,) first."""
        return np.cbrt(costs * np.append(factors, 1.0)[labels_of(groups)])

    # ---- Runs

    def join(self, parts: Sequence[Any]) -> Any:
        """Return the runs of all parts."""
        array = self.concatenate([labels_of(part) for part in parts])
        return array if self.masses is None else joined_runs(parts, array)

    # ---- Groups and masks

    def without(self, groups: Any, out: Any) -> Any:
        """Return the groups with -1 for the cases of a mask (n,) or (runs, n)."""
        labels = labels_of(groups)
        array = self.xp.where(labels_of(out), self.xp.full_like(labels[..., :1], -1), labels)
        if not (isinstance(groups, PartlyTrimmed) or isinstance(out, PartlyTrimmed)):
            return array
        cut, left = joined(groups, out)
        shape = array.shape[0] if array.ndim == 2 else 1, cut.shape[1]
        return PartlyTrimmed(array, np.broadcast_to(cut, shape), np.broadcast_to(left, shape))

    def as_mask(self, array: Any) -> Any:
        """Return a mask (n,) in which a case that is trimmed in part is named with the others."""
        if not isinstance(array, PartlyTrimmed):
            return array
        cut = array.cut[array.cut >= 0]
        mask = array.array[None, ...]
        return self.put(mask, np.zeros_like(cut), cut, np.ones(len(cut), bool))[0, ...]

    def cuts(self, groups: Any) -> Cuts:
        """Return the cases that are trimmed in part, of those in a group."""
        if not isinstance(groups, PartlyTrimmed) or not (groups.cut >= 0).any():
            return NO_CUTS
        run, slot = np.nonzero(groups.cut >= 0)
        case, left = groups.cut[run, slot], groups.left[run, slot]
        labels = self.values_at(groups.array, run, case).astype(np.int64)
        member = labels >= 0
        gone = self.masses_at(case) - left
        return Cuts(run[member], case[member], labels[member], gone[member])

    def kept_masses(self, groups: Any) -> Any:
        """Return the masses (runs, n) that cases in a group have left; None where all count 1."""
        if self.masses is None:
            return None
        masses = self.xp.broadcast_to(self.masses[None, :], groups.shape)
        cuts = self.cuts(groups)
        if len(cuts.run) == 0:
            return masses
        return self.put(masses, cuts.run, cuts.case, self.masses_at(cuts.case) - cuts.gone)

    def kept_shares(self, groups: Any) -> np.ndarray:
        """Return the shares of cases in groups (n,) that are kept: 1, but where trimmed in part."""
        shares = np.ones(groups.shape[0])
        if self.masses is not None:
            cuts = self.cuts(groups[None, ...])
            shares[cuts.case] -= cuts.gone / self.masses_at(cuts.case)
        return shares

    def sizes(self, groups: Any, K: int) -> np.ndarray:
        """Count the cases (runs, K) of each group, or sum their masses."""
        sizes = self._of_groups(labels_of(groups), K, self.masses)[:, 1:]
        if self.masses is None:
            return sizes.astype(np.int64)
        sizes, cuts = np.array(sizes), self.cuts(groups)
        np.subtract.at(sizes, (cuts.run, cuts.group), cuts.gone)
        return sizes

    def differ(self, groups: Any, others: Any) -> np.ndarray:
        """Count the cases of each run that are in another group."""
        different = labels_of(groups) != labels_of(others)
        found = self.to_numpy(self.xp.count_nonzero(different, axis=1))
        return found if self.masses is None else found + parts_differ(groups, others)

    def keys(self, groups: Any, K: int, masks: Any = None) -> list[bytes]:
        """Return a key for each run, whatever the numbers of its groups; for its mask too."""
        return joined_keys([self.key_sums(0, groups, masks, K=K, n=groups.shape[1])])

    def key_sums(self, first: int, groups: Any, masks: Any = None, *, K: int, n: int) -> tuple:
        """Return sums of the random numbers of cases from the first, by group and over masks.

        And the cases that are trimmed in part.
        """
        xp, last = self.xp, first + groups.shape[1]
        sums = [self._of_groups(labels_of(groups), K, self._numbers_of(first, last, n))]
        if masks is not None:
            numbers = xp.flip(self._numbers_of(n - last, n - first, n))
            marked = xp.where(labels_of(masks), numbers, xp.zeros_like(numbers))
            sums.append(self.to_numpy(xp.sum(marked, axis=1)))
        slots = [slots_in_order(each, len(sums[0])) for each in (groups, masks)]
        for pairs in slots:
            pairs[:, :, 0] += np.where(pairs[:, :, 0] >= 0, first, 0)
        return sums, slots

    def fill_empty(self, groups: Any, counts: np.ndarray, costs: Any) -> Any:
        """Give each empty group the case that costs most where it is, if it costs anything.

        Cases that are trimmed in part stay where they are.
        """
        wanted, changes = wanted_candidates(counts), []
        for (run, _), found in zip(wanted, self.candidates(groups, costs, wanted), strict=True):
            changes += [(run, case, k) for case, k in fill_from(found, counts[run])]
        return self.with_changes(groups, changes)

    def candidates(self, groups: Any, costs: Any, wanted: list) -> list[Candidates]:
        """Return the cases that cost most in some runs, as many of each as wanted."""
        labels, cuts = labels_of(groups), self.cuts(groups)
        if len(cuts.run):
            labels = self.put(labels, cuts.run, cuts.case, np.full(len(cuts.run), -1, np.int32))
        return [self._costliest(labels, costs, run, most) for run, most in wanted]

    def with_changes(self, groups: Any, changes: list) -> Any:
        """Return a copy of groups in which some cases, (run, case, group) each, have another."""
        run, case, k = np.array(changes, np.int64).reshape(-1, 3).T
        return with_labels(groups, self.put(labels_of(groups), run, case, k))

    def draw(self, costs: Any, groups: Any, uniforms: np.ndarray) -> np.ndarray:
        """Draw a case for each uniform number (runs, m), among those in a group.

        In proportion to their costs; where all cost nothing, any case. Asked of the arrays of
        tables that are seeds.
        """
        xp = self.xp
        chances = xp.where(labels_of(groups) < 0, xp.zeros_like(costs), costs)
        if self.masses is not None:
            chances = chances * self.kept_masses(groups)
            none = xp.sum(chances, axis=1, keepdims=True) == 0
            chances = xp.where(none, xp.broadcast_to(self.masses[None, :], chances.shape), chances)
        return self._drawn(chances, uniforms)

    def first_members(self, groups: Any, k: int, most: int) -> np.ndarray:
        """Return the numbers of the first cases of group k of the only run."""
        return self.to_numpy(self.xp.nonzero(labels_of(groups)[0, ...] == k)[0])[:most]

    # ---- Counts and sums over cases

    def masses_at(self, cases: np.ndarray) -> np.ndarray:
        """Return the masses of some cases, by their numbers."""
        return np.ones(len(cases)) if self.host_masses is None else self.host_masses[cases]

    def number(self, mask: Any) -> int:
        """Count the cases of a mask (n,), those that are trimmed in part too."""
        found = int(self.xp.count_nonzero(labels_of(mask)))
        return found + int((joined(mask, None)[0] >= 0).sum())

    def count(self, mask: Any) -> float:
        """Count the cases of a mask (n,), or sum their masses."""
        if self.masses is None:
            return int(self.xp.count_nonzero(mask))
        return float(self.xp.sum(self.xp.where(labels_of(mask), self.masses, 0 * self.masses)))

    def total(self, costs: Any, out: Any) -> float:
        """Sum the costs (n,) of the cases that are not in the mask."""
        if self.masses is None:
            return self._total(costs, out)
        total = self._total(costs * self.masses, labels_of(out))
        if not isinstance(out, PartlyTrimmed):
            return total
        case = out.cut[0][out.cut[0] >= 0]
        gone = self.masses_at(case) - out.left[0][out.cut[0] >= 0]
        values = self.values_at(costs[None, ...], np.zeros_like(case), case)
        hidden = self.values_at(out.array[None, ...], np.zeros_like(case), case)
        return total - float((gone * values * (hidden == 0)).sum())

    def middle(self, values: Any) -> float:
        """Return the median of values (n,), or of arrays (runs, n), by mass."""
        xp, masses = self.xp, self.masses
        if masses is not None:
            masses = xp.reshape(xp.broadcast_to(masses, values.shape), (-1,))
        return self._middle(xp.reshape(values, (-1,)), masses)

    def spread(self, costs: Any) -> tuple[float, float]:
        """Return the median of the finite costs (n,), and the median deviation from it."""
        finite = self.xp.isfinite(costs)
        costs, masses = costs[finite], None if self.masses is None else self.masses[finite]
        if costs.shape[0] == 0:  # nothing that has weight is observed of any case
            return 0.0, 0.0
        median = self._middle(costs, masses)
        return median, self._middle(self.xp.abs(costs - median), masses)


def weighted_median(values: Any, masses: Any, xp: Any = np) -> float:
    """Return the median of values, each as often as its mass: the mean of the two middle ones."""
    order = xp.argsort(values)
    cumulative = xp.cumsum if xp is np else xp.cumulative_sum
    below = cumulative(xp.take(masses, order))
    half, last = float(below[-1]) / 2, values.shape[0] - 1
    places = [int(xp.count_nonzero(below < half * side)) for side in (1 - 1e-12, 1 + 1e-12)]
    return sum(float(values[int(order[min(place, last)])]) for place in places) / 2


# ---- Keys of partitions


@lru_cache(maxsize=4)
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


def joined_keys(found: list[tuple]) -> list[bytes]:
    """Make keys of the sums (runs, 1 + K) of the numbers of trimmed cases and of each group.

    Sorted, they do not depend on how the groups are numbered. Those over masks (runs,) may follow,
    and the cases that are trimmed in part, of each block.
    """
    sums, slots = zip(*found, strict=True)
    groups, *marks = (np.sum(column, axis=0) for column in zip(*sums, strict=True))
    groups[:, 1:].sort(axis=1)
    rows = np.column_stack([groups, *marks])
    parts = [part.round(6) for pairs in slots for part in pairs]
    return [
        row.tobytes() + b"".join(p[run].tobytes() for p in parts) for run, row in enumerate(rows)
    ]
