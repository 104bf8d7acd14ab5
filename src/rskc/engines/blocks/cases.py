"""What the solver does with arrays (runs, n) that lie in blocks."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import numpy as np

from rskc.engines.base import case_numbers, sums_to_keys
from rskc.engines.blocks.order import median
from rskc.engines.blocks.plans import Blocks, Node, same
from rskc.engines.empty import Candidates, candidates_needed, costliest, fill_from
from rskc.engines.masses import Parted, joined, whole
from rskc.engines.memory import NUMPY_CASES


class CaseArray:
    """An array (runs, n) or (n,) in blocks, made when something is asked of it, and kept then."""

    def __init__(self, blocks: Blocks, node: Node):
        self.blocks, self.node = blocks, node
        node.own(self)

    def _made(self, function: Any, *others: CaseArray) -> CaseArray:
        nodes = (other.node for other in others)
        return CaseArray(self.blocks, self.blocks.make(function, self.node, *nodes, keep=True))

    def __and__(self, other: CaseArray) -> CaseArray:
        return self._made(operator.and_, other)

    def __or__(self, other: CaseArray) -> CaseArray:
        return self._made(operator.or_, other)

    def __invert__(self) -> CaseArray:
        return self._made(operator.invert)

    def __mul__(self, number: float) -> CaseArray:
        """Scale distances, which are asked for in any case: the next graph makes them."""
        node = self.blocks.make_soon(partial(operator.mul, number), self.node)
        return CaseArray(self.blocks, node)

    def __gt__(self, number: float) -> CaseArray:
        return self._made(partial(operator.lt, number))

    def to_numpy(self) -> np.ndarray:
        """Return all of it in memory."""
        return np.concatenate(self.blocks.gather(same, self.node), axis=-1)


class BlockCases:
    """:class:`~rskc.engines.interface.Cases` for arrays in blocks."""

    numpy: Any = NUMPY_CASES  # what is done with the arrays of a block

    def __init__(self, blocks: Blocks, lengths: np.ndarray):
        self.blocks, self.lengths = blocks, lengths
        self.n = int(lengths.sum())
        self.firsts = np.cumsum(lengths) - lengths
        self.places = blocks.hold([int(first) for first in self.firsts])

    def of(self, function: Any, *arrays: CaseArray) -> CaseArray:
        """Return an array made from others."""
        nodes = (array.node for array in arrays)
        return CaseArray(self.blocks, self.blocks.make(function, *nodes, keep=True))

    def soon(self, function: Any, *arrays: CaseArray) -> CaseArray:
        """Return such an array that the next graph makes: what it is made from is let go."""
        nodes = (array.node for array in arrays)
        return CaseArray(self.blocks, self.blocks.make_soon(function, *nodes))

    def to_numpy(self, array: CaseArray) -> np.ndarray:
        return array.to_numpy()

    def at(self, array: CaseArray, cases: np.ndarray) -> np.ndarray:
        """Return an array (runs, n) at some cases, in the order of their numbers."""
        parts = np.split(cases, np.searchsorted(cases, self.firsts[1:]))
        own = [part - first for part, first in zip(parts, self.firsts, strict=True)]
        return np.concatenate(self.blocks.gather(_at, array.node, self.blocks.hold(own)), axis=1)

    def from_numpy(self, array: np.ndarray) -> CaseArray:
        """Cut an array (runs, n) into blocks."""
        parts = np.split(array, self.firsts[1:], axis=-1)
        return CaseArray(self.blocks, self.blocks.hold([part.copy() for part in parts]))

    def take(self, array, runs):
        make = self.of if isinstance(runs, slice) else self.soon
        return make(operator.itemgetter(runs), array)

    def only(self, array):
        return self.of(operator.itemgetter(0), array)

    def as_run(self, array):
        return self.of(operator.itemgetter(None), array)

    def join(self, parts):
        return self.soon(_join, *parts)

    def without(self, groups, out):
        return self.of(self.numpy.without, groups, out)

    def trimmed(self, groups):
        return self.of(self.numpy.trimmed, groups)

    def sizes(self, groups, K):
        return self.blocks.ask(partial(NUMPY_CASES.sizes, K=K), groups.node)

    def differ(self, groups, others):
        return self.blocks.ask(self.numpy.differ, groups.node, others.node)

    def keys(self, groups, K, masks=None):
        nodes = [groups.node] if masks is None else [groups.node, masks.node]
        found = self.blocks.ask(partial(key_sums, K=K, n=self.n), self.places, *nodes)
        return sums_to_keys(found[0], found[1] if len(found) > 1 else None)

    def fill_empty(self, groups, counts, costs):
        return self._filled(groups, counts, costs)

    def _filled(self, groups: CaseArray, counts: np.ndarray, costs: CaseArray, *masses: Node):
        runs = np.flatnonzero((counts == 0).any(axis=1))
        wanted = [(int(run), candidates_needed(counts[run])) for run in runs]
        nodes = self.places, groups.node, costs.node, *masses
        found = self.blocks.gather(partial(_candidates, wanted=wanted), *nodes)
        changes: list[list] = [[] for _ in self.lengths]
        for (run, most), parts in zip(wanted, zip(*found, strict=True), strict=True):
            # The costliest of all blocks, whose cases come in order: the lower number in a tie.
            all_blocks = [np.concatenate(column) for column in zip(*parts, strict=True)]
            order = np.argsort(-all_blocks[1], kind="stable")[:most]
            candidates = Candidates(*(column[order] for column in all_blocks))
            for case, k in fill_from(candidates, counts[run]):
                block = int(np.searchsorted(self.firsts, case, side="right")) - 1
                changes[block].append((run, case - int(self.firsts[block]), k))
        node = self.blocks.make_soon(_changed, groups.node, self.blocks.hold(changes))
        return CaseArray(self.blocks, node)

    def first_members(self, groups, k, most):
        members = partial(_first_members, k=k, most=most)
        return np.concatenate(self.blocks.gather(members, self.places, groups.node))[:most]

    def masses_at(self, cases):
        return np.ones(len(cases))

    def kept_shares(self, groups):
        return np.ones(self.n)

    def number(self, mask):
        return self.count(mask)

    def count(self, mask):
        return self.blocks.ask(NUMPY_CASES.count, mask.node)

    def total(self, costs, out):
        return self.blocks.ask(NUMPY_CASES.total, costs.node, out.node)

    def cube_roots(self, costs, groups, factors):
        return self.of(partial(self.numpy.cube_roots, factors=factors), costs, groups)

    def spread(self, costs):
        middle = median(self.blocks, costs.node, self.n)
        deviations = self.blocks.make(partial(_deviations, middle=middle), costs.node)
        return middle, median(self.blocks, deviations, self.n)


# ---- What is done with a block


def _at(array, cases):
    return np.ascontiguousarray(array[:, cases])


def _join(*parts):
    return np.concatenate(parts)


def key_sums(first, groups, masks=None, *, K, n):
    """Return sums of the random numbers of cases, by group and over masks."""
    last = first + groups.shape[1]
    numbers = case_numbers(first, last, n)
    sums = np.array([np.bincount(row + 1, numbers, K + 1) for row in groups])
    if masks is None:
        return (sums,)
    return sums, (masks * case_numbers(n - last, n - first, n)[::-1]).sum(axis=1)


def _candidates(first, groups, costs, masses=None, *, wanted):
    """Return the cases that cost most in some runs, by their numbers among all cases.

    Cases that are trimmed in part stay where they are.
    """
    array, (cut, _) = whole(groups), joined(groups, None)
    found = []
    for run, most in wanted:
        own = array[run].copy()
        own[cut[run % len(cut)][cut[run % len(cut)] >= 0]] = -1
        found.append(costliest(own, costs[run], most, masses))
    return [own._replace(numbers=first + own.numbers) for own in found]


def _changed(groups, changes):
    array = whole(groups).copy()
    for run, case, k in changes:
        array[run, case] = k
    return Parted(array, groups.cut, groups.left) if isinstance(groups, Parted) else array


def _first_members(first, groups, k, most):
    return first + NUMPY_CASES.first_members(whole(groups), k, most)


def _deviations(costs, middle):
    return np.abs(costs - middle)
