"""Exact order statistics of values that lie in blocks, without gathering them.

A sample of the values brackets the wanted one; blocks count what lies above the bracket and return
what lies inside. Where that is too much, for instance because values tie or the sample misled, they
return evenly spaced ones of those inside, and the bracket is narrowed with these. Every bracket is
checked by counts, so that the result is exact whatever the values are; NaN is below everything.

Where cases have masses, ranks are masses: the value of rank m is the one at which the mass m is
reached from the largest downwards.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from rskc.engines.blocks.plans import Blocks, Node
from rskc.engines.passes_numpy import MASS_SLACK

# Values in the first sample, and those that may come back from inside a bracket, of all blocks.
# More where nothing travels: of ten million values the first bracket holds 240,000.
SAMPLE, INSIDE, INSIDE_HERE = 2**14, 2**17, 2**20
# ... but this many from each block at least.
LEAST_INSIDE = 64
# Half the width of the first bracket, in standard deviations of the rank of the wanted value.
BRACKET_MARGIN = 3.0


class Sampled(NamedTuple):
    """Evenly spaced values (rows, .) of a block, and what is known of all of them."""

    values: np.ndarray
    counts: np.ndarray  # (rows,) values above -inf, or their mass
    largest: np.ndarray  # (rows,)
    masses: np.ndarray | None = None  # (.,) of these values


class InBracket(NamedTuple):
    """What a block knows of a bracket."""

    # Values above it, inside, and those inside that equal its lower end and its upper one: how many
    # they are, or their mass.
    amounts: np.ndarray
    values: np.ndarray  # those inside, or evenly spaced ones of them, sorted upwards
    complete: bool  # all of them
    masses: np.ndarray | None = None  # of these values, if all are there


class Selected(NamedTuple):
    """The wanted value of each row, how many are larger, and how many in each block tie with it."""

    values: np.ndarray  # (rows,)
    above: np.ndarray  # (rows,)
    ties: np.ndarray  # (blocks, rows): how many, or their mass
    largest: np.ndarray  # (rows,) the largest of all


class _Row:
    """The search for the value of one rank (1 for the largest) in one row."""

    rank: float

    def __init__(self, rank: float, values: np.ndarray, step: int, masses: np.ndarray | None):
        """Begin with a sample of the values, and about where in it the wanted one belongs."""
        if masses is None:
            self.rank, ordered = int(rank), np.sort(values)[::-1]
            place = self.rank / step
        else:
            order = np.argsort(-values, kind="stable")
            self.rank, ordered = float(rank), values[order]
            place = float(np.searchsorted(step * np.cumsum(masses[order]), rank))
        dtype = values.dtype.type
        self.low, self.high = dtype(-np.inf), dtype(np.inf)
        self._floor, self._ceiling = self.low, self.high  # the value is known to lie between
        self.found: tuple | None = None
        margin = BRACKET_MARGIN * np.sqrt(place * max(1 - place / max(len(ordered), 1), 0)) + 2
        below, above = int(np.ceil(place + margin)), int(np.floor(place - margin))
        if below < len(ordered):
            self.low = ordered[below]
        if 0 <= above < len(ordered):
            self.high = ordered[above]

    def learn(self, parts: list[InBracket]) -> None:
        """Take what the blocks know of the bracket: the value is found, or the bracket moves."""
        above, inside, at_low, at_high = np.sum([part.amounts for part in parts], axis=0)
        if self.rank <= above:
            self._floor = np.nextafter(self.high, np.inf, dtype=self.high.dtype)
            self.low, self.high = self._floor, self._ceiling
        elif self.rank > above + inside:
            if self.low == -np.inf:  # the rest are NaN
                self.found = self.low, above + inside, [0] * len(parts)
                return
            self._ceiling = np.nextafter(self.low, -np.inf, dtype=self.low.dtype)
            self.low, self.high = self._floor, self._ceiling
        elif all(part.complete for part in parts):
            self.finish([part.values for part in parts], above, [part.masses for part in parts])
        elif self.rank <= above + at_high:
            self.found = self.high, above, [part.amounts[3] for part in parts]
        elif self.rank > above + inside - at_low:
            self.found = self.low, above + inside - at_low, [part.amounts[2] for part in parts]
        else:
            self._bracket(parts, self.rank - above)

    def finish(self, inside: list[np.ndarray], above: float, masses: list) -> None:
        """Find the value among those inside, of all blocks."""
        values, own = np.concatenate(inside), None
        if masses[0] is None:
            value = np.sort(values)[::-1][int(self.rank - above) - 1]
        else:  # the one at which the rank is reached
            own, order = np.concatenate(masses), np.argsort(-values, kind="stable")
            reached = above + np.cumsum(own[order])
            place = np.searchsorted(reached, self.rank * (1 - MASS_SLACK))
            value = values[order[min(int(place), len(order) - 1)]]
        pairs = zip(inside, masses, strict=True)
        ties = [_amount(part == value, mass) for part, mass in pairs]
        self.found = value, above + _amount(values > value, own), ties

    def _bracket(self, parts: list[InBracket], rank: float) -> None:
        """Narrow the bracket, whose ends are ruled out, around a rank among the values inside."""
        self._floor = np.nextafter(self.low, np.inf, dtype=self.low.dtype)
        self._ceiling = np.nextafter(self.high, -np.inf, dtype=self.high.dtype)
        values = np.concatenate([part.values for part in parts])
        numbers = np.array([len(part.values) for part in parts])
        # What each of those given stands for.
        spacings = np.array([part.amounts[1] for part in parts]) / np.maximum(numbers, 1)
        weights = np.repeat(spacings, numbers)
        order = np.argsort(values)[::-1]
        values, ranks = values[order], np.cumsum(weights[order])
        # No rank is off by more than one spacing of each block that returned only some values.
        margin = sum(spacings[spacings > 1]) + 1
        first, last = np.searchsorted(ranks, [rank - margin, rank + margin])
        while first == 0 and last == len(values):  # that would rule nothing out
            margin /= 2
            first, last = np.searchsorted(ranks, [rank - margin, rank + margin])
        self.low, self.high = self._floor, self._ceiling
        if first > 0:
            self.high = min(self.high, values[first - 1])
        if last < len(values):
            self.low = max(self.low, values[last])


def select(
    blocks: Blocks,
    node: Node,
    n: int,
    ranks: Callable[[np.ndarray], np.ndarray],
    masses: Node | None = None,
) -> Selected:
    """Find the values of given ranks (rows,), 1 for the largest, in the rows (rows, n) of a node.

    ``ranks`` gets the number of values above -inf in each row, or their mass. A rank of 0 gives
    NaN.
    """
    step = max(1, -(-n // SAMPLE))
    nodes = [node] if masses is None else [node, masses]
    sampled = blocks.gather(partial(sample, step=step), *nodes)
    rows = [np.concatenate(row) for row in zip(*(part.values for part in sampled), strict=True)]
    wanted = ranks(np.sum([part.counts for part in sampled], axis=0))
    own = None if masses is None else np.concatenate([part.masses for part in sampled])
    searches = [_Row(rank, row, step, own) for rank, row in zip(wanted, rows, strict=True)]
    for r, search in enumerate(searches):
        if search.rank == 0:
            search.found = np.nan, 0, [0] * len(sampled)
        elif step == 1:
            inside = [part.values[r] for part in sampled]
            search.finish(inside, 0, [part.masses for part in sampled])
    most = max(LEAST_INSIDE, (INSIDE if blocks.scheduler.remote else INSIDE_HERE) // blocks.number)
    while open_rows := [r for r, search in enumerate(searches) if search.found is None]:
        brackets = [(r, searches[r].low, searches[r].high) for r in open_rows]
        found = blocks.gather(partial(look_inside, brackets=brackets, most=most), *nodes)
        for r, parts in zip(open_rows, zip(*found, strict=True), strict=True):
            searches[r].learn(list(parts))
    values, above, ties = zip(*(search.found for search in searches if search.found), strict=True)
    largest = np.max([part.largest for part in sampled], axis=0)
    return Selected(np.array(values), np.array(above), np.array(ties).T, largest)


def median(blocks: Blocks, node: Node, n: int, masses: Node | None = None) -> float:
    """Return the median of the finite values of a node, n at most; 0 if there are none."""
    pair = Node(_finite_twice, node)
    if masses is None:
        middle = select(blocks, pair, n, lambda counts: (counts + [2, 1]) // 2 * (counts > 0))
    else:  # just before and just behind half the mass
        slack = 3 * MASS_SLACK
        middle = select(blocks, pair, n, lambda own: own / 2 * [1 - slack, 1 + slack], masses)
    return float(np.mean(middle.values)) if middle.values[0] > -np.inf else 0.0


# ---- What is done with a block


def sample(values: np.ndarray, masses: np.ndarray | None = None, *, step: int) -> Sampled:
    """Take every value of each row that a step leads to."""
    some, finite = values[:, ::step].copy(), values > -np.inf
    if masses is None:
        return Sampled(some, np.count_nonzero(finite, axis=1), values.max(axis=1))
    return Sampled(some, finite @ masses, values.max(axis=1), masses[::step].copy())


def look_inside(
    values: np.ndarray, masses: np.ndarray | None = None, *, brackets: list, most: int
) -> list[InBracket]:
    """Count the values of some rows above and inside brackets, and return some of those inside."""
    found = []
    for r, low, high in brackets:
        above, within = values[r] > high, values[r] >= low
        within &= ~above
        inside, own = values[r][within], None if masses is None else masses[within]
        ends = _amount(inside == low, own), _amount(inside == high, own)
        number = len(inside) if own is None else float(own.sum())
        complete = len(inside) <= most
        if not complete:  # the middle of each of equal parts
            places = ((np.arange(most) + 0.5) * (len(inside) / most)).astype(np.int64)
            inside, own = np.sort(inside)[places], None
        amounts = np.array([_amount(above, masses), number, *ends])
        found.append(InBracket(amounts, inside, complete, own))
    return found


def _amount(mask: np.ndarray, masses: np.ndarray | None) -> float:
    """Count the values of a mask, or sum their masses."""
    return int(np.count_nonzero(mask)) if masses is None else float(masses[mask].sum())


def _finite_twice(values: np.ndarray) -> np.ndarray:
    finite = np.isfinite(values)
    values = (values if finite.all() else np.where(finite, values, -np.inf)).ravel()
    return np.broadcast_to(values, (2, len(values)))
