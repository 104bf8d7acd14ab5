"""Groups and masks in which a case is trimmed in part.

Cases may have masses: case weights in units of which a case has about 1, so that whole masses are
copies. By mass, trimming ends within a case, of which a part is kept. Groups and masks with such
cases are :class:`PartlyTrimmed`; all others are the plain arrays of the engine. A case that two
rules trim in part keeps the lesser of two parts, as copies would, of which the first go first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rskc.engines.tolerances import SAME_PART


class PartlyTrimmed:
    """Groups or a mask (runs, n) or (n,) with some cases that are trimmed in part.

    ``array`` has the label of such a case, or False. ``cut`` (runs, slots) are their numbers, -1
    for none, and ``left`` what is kept of their masses; both are NumPy's. It is indexed by runs and
    compared as the array is.
    """

    __array_ufunc__ = None  # plain masks leave | and & to this class

    def __init__(self, array: Any, cut: np.ndarray, left: np.ndarray):
        self.array, self.cut, self.left = array, cut, left

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

    def __mul__(self, number: float) -> Any:
        return self.array * number

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
