"""What is done with arrays of length n, cases with masses included, and sums over their groups.

:class:`ArrayOps` has bodies for any array of the array API, and where that is not enough those for
NumPy's: arrays in blocks or on a device are what differs.

Cases may have masses: case weights in units of which a case has about 1, so that whole masses are
copies. By mass, trimming ends within a case, of which a part is kept. Groups and masks with such
cases are :class:`PartlyTrimmed`; all others are the plain arrays of the engine. A case that two
rules trim in part keeps the lesser of two parts, as copies would, of which the first go first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
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

    ``array`` has the label of such a case, or False, and ``kept`` what is left of the mass of each
    case: all of it, but where it is trimmed in part. It is indexed by runs and compared as the
    array is.
    """

    array: Any
    kept: Any

    __array_ufunc__ = None  # plain masks leave | and & to this class

    @property
    def shape(self) -> tuple[int, ...]:
        """Return that of the array."""
        return self.array.shape

    def __len__(self) -> int:
        return self.array.shape[0]

    def __getitem__(self, key: Any) -> PartlyTrimmed:
        return PartlyTrimmed(self.array[key], self.kept[key])

    def __lt__(self, number: float) -> PartlyTrimmed:
        return PartlyTrimmed(self.array < number, self.kept)

    def __or__(self, other: Any) -> PartlyTrimmed:
        kept = self.kept
        if isinstance(other, PartlyTrimmed):
            kept, less = kept + 0.0, other.kept < kept  # a copy
            kept[less] = other.kept[less]
        return PartlyTrimmed(self.array | labels_of(other), kept)

    def __and__(self, other: Any) -> Any:
        if isinstance(other, PartlyTrimmed):  # what one trims in part is hardly so by both
            return self.array & other.array
        return PartlyTrimmed(self.array & other, self.kept)

    __ror__, __rand__ = __or__, __and__

    def __invert__(self) -> Any:
        return ~self.array


def labels_of(groups: Any) -> Any:
    """Return groups or a mask without what is known of cases that are trimmed in part."""
    return groups.array if isinstance(groups, PartlyTrimmed) else groups


def with_labels(groups: Any, labels: Any) -> Any:
    """Return other labels, with the same cases trimmed in part."""
    return PartlyTrimmed(labels, groups.kept) if isinstance(groups, PartlyTrimmed) else labels


def each_part(function: Callable[[Any], Any], groups: Any) -> Any:
    """Return what a function makes of groups or a mask, and of what is kept of masses."""
    if isinstance(groups, PartlyTrimmed):
        return PartlyTrimmed(function(groups.array), function(groups.kept))
    return function(groups)


def with_cuts(groups: Any, masses: np.ndarray | None, cut: np.ndarray, left: np.ndarray) -> Any:
    """Return groups with what is left of the mass of one case of each run.

    Its number (runs, 1) is -1 for none. Without masses there is no such case.
    """
    if masses is None:
        return groups
    kept, (run,) = np.tile(masses, (len(groups), 1)), np.nonzero(cut[:, 0] >= 0)
    kept[run, cut[run, 0]] = left[run, 0]
    return PartlyTrimmed(groups, kept)


def slots_of(groups: Any, masses: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Return cut and left (runs, slots) as the passes take them; None where there are none."""
    if not isinstance(groups, PartlyTrimmed):
        return None
    run, case = np.nonzero(groups.kept != masses)
    slot = np.arange(len(run)) - np.searchsorted(run, run)
    shape = len(groups), slot.max(initial=-1) + 1
    cut, left = np.full(shape, -1), np.zeros(shape)
    cut[run, slot], left[run, slot] = case, groups.kept[run, case]
    return cut, left


class Cuts(NamedTuple):
    """The cases of groups that are trimmed in part: an entry for each run and case."""

    run: np.ndarray
    case: np.ndarray
    group: np.ndarray
    gone: np.ndarray  # what is trimmed of the mass


NO_CASES = np.empty(0, np.int64)
NO_CUTS = Cuts(NO_CASES, NO_CASES, NO_CASES, np.empty(0))


# ---- Empty clusters: which cases they get


class Candidates(NamedTuple):
    """The cases of a run that cost most, the most expensive first."""

    numbers: np.ndarray
    costs: np.ndarray
    groups: np.ndarray
    masses: np.ndarray


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
        """Return B_j = sum_k n_k (mean_kj - mean_j)^2, a row for each run.

        Where cells are missing, as if every case had observed all features that it is judged by.
        """
        means, mean = self._means_and_mean()
        return (self.halves()[1] * (means - mean) ** 2).sum(axis=1)

    def n_kept(self) -> float:
        """Return how many cases the only run has in its groups, an int where that is whole."""
        total = float(self.counts.sum())
        return int(total) if total.is_integer() else total

    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        """Return totals (runs, K, p), and the number of cells (runs, K, 1 or p) in each."""
        return self.totals, self.counts[:, :, None]

    def _means_and_mean(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the means (runs, K, p), 0 where there is none, and those of all clusters."""
        values, cells = self.halves()
        means = np.where(cells > NO_MASS, values, 0.0) / above_0(cells)
        return means, (values.sum(axis=1) / above_0(cells.sum(axis=1)))[:, None, :]

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

    def factored_between(self, first: np.ndarray, zeroth: np.ndarray) -> np.ndarray:
        """Return B_j from sums (runs, K, p) of f x, and of f over observed cells."""
        means, mean = self._means_and_mean()
        return (2 * first * (means - mean) + zeroth * (mean**2 - means**2)).sum(axis=1)


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
        return each_part(self.to_numpy, groups)

    def from_numpy(self, array: Any) -> Any:
        """Return an array (n,) or (runs, n) as the engine has them."""
        return each_part(self.asarray, array)

    def take(self, array: Any, runs: np.ndarray | slice) -> Any:
        """Return some of the runs."""
        return array[runs]

    def with_changes(self, groups: Any, changes: list) -> Any:
        """Return a copy of groups in which some cases, (run, case, group) each, have another."""
        labels, places = np.array(labels_of(groups)), np.array(changes, np.int64).reshape(-1, 3)
        labels[places[:, 0], places[:, 1]] = places[:, 2]
        return with_labels(groups, labels)

    def _of_groups(self, labels: Any, K: int, values: Any) -> np.ndarray:
        """Sum values (n,), or count, over the trimmed cases and over each group: (runs, 1 + K)."""
        out = np.empty((len(labels), 1 + K))
        PASSES.group_sums(np.ascontiguousarray(labels), values, out)
        return out

    def _numbers_of(self, first: int, last: int, n: int) -> Any:
        """Return the random numbers of some of n cases."""
        return case_numbers(first, last, n)

    def _drawn(self, chances: Any, uniforms: np.ndarray) -> np.ndarray:
        """Draw in proportion to chances (runs, n); where all are 0, any case."""
        cases = np.empty((len(chances), uniforms.shape[-1]), np.int64)
        PASSES.draw(*map(np.ascontiguousarray, (chances, uniforms)), cases)
        return cases

    def _middle(self, values: Any, masses: Any) -> float:
        """Return the median of values (m,), by mass where there are masses."""
        return weighted_median(values, masses) if masses is not None else float(np.median(values))

    def cube_roots(self, costs: Any, groups: Any, factors: np.ndarray) -> Any:
        """Return the cube roots of costs (n,), those of each group times its factor (K,) first."""
        return np.cbrt(costs * np.append(factors, 1.0)[labels_of(groups)])

    # ---- Runs

    def join(self, parts: Sequence[Any]) -> Any:
        """Return the runs of all parts."""
        array = self.concatenate([labels_of(part) for part in parts])
        if not any(isinstance(part, PartlyTrimmed) for part in parts):
            return array
        return PartlyTrimmed(array, self.concatenate([self.kept_masses(part) for part in parts]))

    # ---- Groups and masks

    def without(self, groups: Any, out: Any) -> Any:
        """Return the groups with -1 for the cases of a mask (n,) or (runs, n)."""
        labels = labels_of(groups)
        array = self.xp.where(labels_of(out), self.xp.full_like(labels[..., :1], -1), labels)
        kept = [part.kept for part in (groups, out) if isinstance(part, PartlyTrimmed)]
        if not kept:
            return array
        return PartlyTrimmed(array, reduce(self.xp.minimum, kept, self.kept_masses(array)))

    def as_mask(self, array: Any) -> Any:
        """Return a mask (n,) in which a case that is trimmed in part is named with the others."""
        if isinstance(array, PartlyTrimmed):
            return array.array | (array.kept < self.masses)
        return array

    def cuts(self, groups: Any) -> Cuts:
        """Return the cases that are trimmed in part, of those in a group."""
        if not isinstance(groups, PartlyTrimmed):
            return NO_CUTS
        found = self.xp.nonzero((groups.array >= 0) & (groups.kept < self.masses))
        run, case = map(self.to_numpy, found)
        places, parts = self.asarray(run * groups.shape[1] + case), (groups.array, groups.kept)
        values = (self.xp.take(self.xp.reshape(part, (-1,)), places) for part in parts)
        labels, left = map(self.to_numpy, values)
        return Cuts(run, case, labels.astype(np.int64), self.masses_at(case) - left)

    def kept_masses(self, groups: Any) -> Any:
        """Return the masses that cases in a group have left; None where all count 1."""
        if self.masses is None or isinstance(groups, PartlyTrimmed):
            return None if self.masses is None else groups.kept
        return self.xp.broadcast_to(self.masses, groups.shape)

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
        if not (isinstance(groups, PartlyTrimmed) or isinstance(others, PartlyTrimmed)):
            return found
        change = self.kept_masses(groups) - self.kept_masses(others)
        return found + self.to_numpy(self.xp.any(self.xp.abs(change) > SAME_PART, axis=1))

    def keys(self, groups: Any, K: int, masks: Any = None) -> list[bytes]:
        """Return a key for each run, whatever the numbers of its groups; for its mask too."""
        return joined_keys([self.key_sums(0, groups, masks, K=K, n=groups.shape[1])])

    def key_sums(self, first: int, groups: Any, masks: Any = None, *, K: int, n: int) -> list:
        """Return sums of the random numbers of cases from the first, by group and over masks.

        And what is trimmed in part of their masses, times these numbers.
        """
        xp, last = self.xp, first + groups.shape[1]
        numbers = self._numbers_of(first, last, n)
        sums, amounts = [self._of_groups(labels_of(groups), K, numbers)], []
        if masks is not None:
            flipped = xp.flip(self._numbers_of(n - last, n - first, n))
            amounts = [xp.where(labels_of(masks), flipped, xp.zeros_like(flipped))]
        for part in (groups, masks):
            if isinstance(part, PartlyTrimmed):
                amounts.append(numbers * xp.round((self.masses - part.kept) * 1e6))
        return sums + [self.to_numpy(xp.sum(amount, axis=1)) for amount in amounts]

    def fill_empty(self, groups: Any, counts: np.ndarray, costs: Any) -> Any:
        """Give each empty group the case that costs most where it is, if it costs anything.

        Cases that are trimmed in part stay where they are.
        """
        empty, changes = np.count_nonzero(counts == 0, axis=1), []
        # One may have to move for each empty cluster, and others are alone.
        wanted = [(int(run), counts.shape[1] + int(empty[run])) for run in np.flatnonzero(empty)]
        for (run, _), found in zip(wanted, self.candidates(groups, costs, wanted), strict=True):
            changes += [(run, case, k) for case, k in fill_from(found, counts[run])]
        return self.with_changes(groups, changes)

    def candidates(self, groups: Any, costs: Any, wanted: list) -> list[Candidates]:
        """Return the kept cases that cost most in some runs, as many of each as wanted.

        The lower number goes first where they tie.
        """
        labels, found = labels_of(groups), []
        if isinstance(groups, PartlyTrimmed):
            labels = self.without(labels, groups.kept < self.masses)
        for run, most in wanted:
            own, paid = self.to_numpy(labels[run, :]), self.to_numpy(costs[run, :])
            paid = np.where(own < 0, 0, paid)
            numbers = np.argsort(-paid, kind="stable")[:most]
            masses = self.masses_at(numbers)
            found.append(Candidates(numbers, paid[numbers], own[numbers], masses))
        return found

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
            chances = xp.where(none, self.kept_masses(chances), chances)
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
        return int(self.xp.count_nonzero(self.as_mask(mask)))

    def count(self, mask: Any) -> float:
        """Count the cases of a mask (n,), or sum their masses."""
        if self.masses is None:
            return int(self.xp.count_nonzero(mask))
        return float(self.xp.sum(self.xp.where(labels_of(mask), self.masses, 0 * self.masses)))

    def total(self, costs: Any, out: Any) -> float:
        """Sum the costs (n,) of the cases that are not in the mask."""
        total = costs if self.masses is None else costs * self.masses
        total = float(self.xp.sum(total[~labels_of(out)]))
        if not isinstance(out, PartlyTrimmed):
            return total
        some = ~out.array & (out.kept < self.masses)
        return total - float(self.xp.sum((costs * (self.masses - out.kept))[some]))

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


def joined_keys(found: list[list]) -> list[bytes]:
    """Make keys of the sums (runs, 1 + K) of the numbers of trimmed cases and of each group.

    Sorted, they do not depend on how the groups are numbered. Other sums (runs,) of each block may
    follow.
    """
    groups, *others = (np.sum(column, axis=0) for column in zip(*found, strict=True))
    groups[:, 1:].sort(axis=1)
    return [row.tobytes() for row in np.column_stack([groups, *others])]
