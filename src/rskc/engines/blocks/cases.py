"""What the solver does with arrays (runs, n) that lie in blocks."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import numpy as np

from rskc.engines.blocks.order import median
from rskc.engines.blocks.plans import Blocks, Node, collect
from rskc.engines.cases import (
    Candidates,
    candidates_needed,
    case_numbers,
    fill_from,
    sums_to_keys,
)


class CaseArray:
    """An array (runs, n) or (n,) in blocks, made when something is asked of it."""

    def __init__(self, blocks: Blocks, node: Node):
        self.blocks, self.node = blocks, node

    def _made(self, function: Any, *others: CaseArray) -> CaseArray:
        nodes = (other.node for other in others)
        return CaseArray(self.blocks, self.blocks.make(function, self.node, *nodes))

    def __and__(self, other: CaseArray) -> CaseArray:
        return self._made(operator.and_, other)

    def __or__(self, other: CaseArray) -> CaseArray:
        return self._made(operator.or_, other)

    def __invert__(self) -> CaseArray:
        return self._made(operator.invert)

    def __mul__(self, number: float) -> CaseArray:
        return self._made(partial(operator.mul, number))

    def __gt__(self, number: float) -> CaseArray:
        return self._made(partial(operator.lt, number))

    def to_numpy(self) -> np.ndarray:
        """All of it in memory."""
        parts = self.blocks.ask(_in_list, self.node, combine=collect)
        return np.concatenate(parts, axis=-1)


class BlockCases:
    """:class:`~rskc.engines.interface.Cases` for arrays in blocks."""

    def __init__(self, blocks: Blocks, lengths: np.ndarray):
        self.blocks, self.lengths = blocks, lengths
        self.n = int(lengths.sum())
        self.firsts = np.cumsum(lengths) - lengths
        self.places = blocks.hold([int(first) for first in self.firsts])

    def of(self, function: Any, *arrays: CaseArray) -> CaseArray:
        """An array made from others."""
        nodes = (array.node for array in arrays)
        return CaseArray(self.blocks, self.blocks.make(function, *nodes))

    def soon(self, function: Any, *arrays: CaseArray) -> CaseArray:
        """Such an array that is kept, and what it is made from given up."""
        nodes = (array.node for array in arrays)
        return CaseArray(self.blocks, self.blocks.make_soon(function, *nodes))

    def from_numpy(self, array: np.ndarray) -> CaseArray:
        """Cut an array (runs, n) into blocks."""
        parts = np.split(array, self.firsts[1:], axis=-1)
        return CaseArray(self.blocks, self.blocks.hold([part.copy() for part in parts]))

    def take(self, array, runs):
        if isinstance(runs, slice):
            return self.of(partial(_rows, runs=runs), array)
        return self.soon(partial(_rows, runs=runs), array)

    def only(self, array):
        return self.of(partial(_rows, runs=0), array)

    def as_run(self, array):
        return self.of(partial(_rows, runs=None), array)

    def join(self, parts):
        return self.soon(_join, *parts)

    def without(self, groups, out):
        return self.of(_without, groups, out)

    def trimmed(self, groups):
        return self.of(_trimmed, groups)

    def sizes(self, groups, K):
        return self.blocks.ask(partial(_sizes, K=K), groups.node)[0]

    def differ(self, groups, others):
        return self.blocks.ask(_differ, groups.node, others.node)[0]

    def keys(self, groups, K, masks=None):
        nodes = [groups.node] if masks is None else [groups.node, masks.node]
        found = self.blocks.ask(partial(_key_sums, K=K, n=self.n), self.places, *nodes)
        return sums_to_keys(found[0], found[1] if len(found) > 1 else None)

    def fill_empty(self, groups, counts, costs):
        runs = np.flatnonzero((counts == 0).any(axis=1))
        wanted = [(int(run), candidates_needed(counts[run])) for run in runs]
        nodes = self.places, groups.node, costs.node
        found = self.blocks.ask(partial(_candidates, wanted=wanted), *nodes, combine=collect)
        changes: list[list] = [[] for _ in self.lengths]
        for (run, most), parts in zip(wanted, zip(*found, strict=True), strict=True):
            for case, k in fill_from(_most_expensive(parts, most), counts[run]):
                block = int(np.searchsorted(self.firsts, case, side="right")) - 1
                changes[block].append((run, case - int(self.firsts[block]), k))
        node = self.blocks.make_soon(_changed, groups.node, self.blocks.hold(changes))
        return CaseArray(self.blocks, node)

    def first_members(self, groups, k, most):
        members = partial(_first_members, k=k, most=most)
        return np.concatenate(self.blocks.ask(members, self.places, groups.node, combine=collect))[
            :most
        ]

    def total(self, costs, out):
        return float(self.blocks.ask(_total, costs.node, out.node)[0])

    def spread(self, costs):
        middle = median(self.blocks, costs.node, self.n)
        deviations = self.of(partial(_deviations, middle=middle), costs)
        return middle, median(self.blocks, deviations.node, self.n)


def _most_expensive(parts: Any, most: int) -> Candidates:
    """The most expensive of the candidates of all blocks, the lower number first in a tie."""
    numbers, costs, groups = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(-costs, kind="stable")[:most]  # blocks come in the order of the cases
    return Candidates(numbers[order], costs[order], groups[order])


# ---- What is done with a block


def _in_list(values):
    return [values]


def _rows(values, runs):
    return values[runs]


def _join(*parts):
    return np.concatenate(parts)


def _without(groups, out):
    return np.where(out, np.int32(-1), groups)


def _trimmed(groups):
    return groups < 0


def _sizes(groups, K):
    return (np.array([np.bincount(row + 1, minlength=K + 1)[1:] for row in groups]),)


def _differ(groups, others):
    return ((groups != others).sum(axis=1),)


def _key_sums(first, groups, masks=None, *, K, n):
    last = first + groups.shape[1]
    numbers = case_numbers(first, last, n)
    sums = np.array([np.bincount(row + 1, numbers, K + 1) for row in groups])
    if masks is None:
        return (sums,)
    return sums, (masks * case_numbers(n - last, n - first, n)[::-1]).sum(axis=1)


def _candidates(first, groups, costs, wanted):
    """The cases that cost most in some runs, the lower number first where they tie."""
    found = []
    for run, most in wanted:
        paid = np.where(groups[run] < 0, 0, costs[run])
        numbers = np.argsort(-paid, kind="stable")[:most]
        found.append(Candidates(first + numbers, paid[numbers], groups[run, numbers]))
    return [found]


def _changed(groups, changes):
    groups = groups.copy()
    for run, case, k in changes:
        groups[run, case] = k
    return groups


def _first_members(first, groups, k, most):
    return [first + np.flatnonzero(groups[0] == k)[:most]]


def _total(costs, out):
    return (costs[~out].sum(),)


def _deviations(costs, middle):
    return np.abs(costs - middle)
