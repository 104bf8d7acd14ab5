"""What the solver does with arrays (runs, n) that lie in blocks."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import numpy as np

from rskc.engines.arrays import (
    ArrayOps,
    Candidates,
    PartlyTrimmed,
    each_part,
    joined_keys,
    labels_of,
)
from rskc.engines.blocks.data import in_blocks
from rskc.engines.blocks.order import median
from rskc.engines.blocks.plans import Blocks, Method, Node, same


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

    def __lt__(self, number: float) -> CaseArray:
        return self._made(partial(operator.gt, number))

    def __getitem__(self, runs: Any) -> CaseArray:
        """Return the only run (1, n) as (n,), or the other way round."""
        return self._made(Method("__getitem__", runs))

    def to_numpy(self) -> np.ndarray:
        """Return all of it in memory."""
        return np.concatenate(self.blocks.gather(labels_of, self.node), axis=-1)


def _call(name: str, ops: BlockOps, arguments: tuple) -> tuple:
    """Return a call in each block, and its nodes: of arrays, which come before other arguments."""
    nodes = [each.node for each in arguments if isinstance(each, CaseArray)]
    return Method(name, *arguments[len(nodes) :]), ops.own, *nodes


def _of_each_block(name: str) -> Any:
    """Return a method that makes an array from others."""

    def made(self: BlockOps, *arguments: Any) -> CaseArray:
        return CaseArray(self.blocks, self.blocks.make(*_call(name, self, arguments), keep=True))

    return made


def _summed(name: str) -> Any:
    """Return a method that sums what is counted in each block."""
    return lambda self, *arguments: self.blocks.ask(*_call(name, self, arguments))


class BlockOps(ArrayOps):
    """What the solver does with arrays in blocks: what ``ArrayOps`` does with those of each block.

    Groups and masks of a block have the numbers that cases have in the block; the case that is
    trimmed in part is in one of the blocks.
    """

    def __init__(
        self,
        blocks: Blocks,
        lengths: np.ndarray,
        masses: Node | None = None,
        host_masses: np.ndarray | None = None,
    ):
        self.blocks, self.lengths = blocks, lengths
        self.masses, self.host_masses = masses, host_masses
        self.n = int(lengths.sum())
        self.firsts = np.cumsum(lengths) - lengths
        self.places = blocks.hold([int(first) for first in self.firsts])
        # What is done with the arrays of a block.
        self.own = blocks.hold([ArrayOps()] * len(lengths))
        if masses is not None:
            self.own = blocks.make(ArrayOps, masses)

    as_mask, without, cube_roots = map(_of_each_block, ("as_mask", "without", "cube_roots"))
    sizes, differ, number, count, total = map(
        _summed, ("sizes", "differ", "number", "count", "total")
    )

    def soon(self, function: Any, *arrays: CaseArray) -> CaseArray:
        """Return such an array that the next graph makes: what it is made from is let go."""
        nodes = (array.node for array in arrays)
        return CaseArray(self.blocks, self.blocks.make_soon(function, self.own, *nodes))

    def to_numpy(self, array):
        return array.to_numpy()

    def gathered(self, array: CaseArray) -> Any:
        """Return groups or a mask (runs, n) in memory, with what is trimmed in part."""
        parts = self.blocks.gather(same, array.node)
        plain = np.concatenate([labels_of(part) for part in parts], axis=-1)
        if not isinstance(parts[0], PartlyTrimmed):
            return plain
        return PartlyTrimmed(plain, np.concatenate([part.kept for part in parts], axis=-1))

    def at(self, array: CaseArray, cases: np.ndarray) -> np.ndarray:
        """Return an array (runs, n) at some cases, in the order of their numbers."""
        own = self.blocks.hold(in_blocks(cases, self.lengths))
        some = self.blocks.gather(partial(np.take, axis=1), array.node, own)
        return np.concatenate(some, axis=1)

    def from_numpy(self, array):
        ends = self.firsts + self.lengths
        own = [array[..., slice(*some)] for some in zip(self.firsts, ends, strict=True)]
        return CaseArray(self.blocks, self.blocks.hold([each_part(np.copy, part) for part in own]))

    def take(self, array, runs):
        if isinstance(runs, slice):
            return _of_each_block("take")(self, array, runs)
        return self.soon(Method("take", runs), array)

    def join(self, parts):
        return self.soon(_join, *parts)

    def kept_shares(self, groups):
        return np.concatenate(self.blocks.gather(Method("kept_shares"), self.own, groups.node))

    def keys(self, groups, K, masks=None):
        nodes = [groups.node] if masks is None else [groups.node, masks.node]
        made = Method("key_sums", K=K, n=self.n)
        return joined_keys(self.blocks.gather(made, self.own, self.places, *nodes))

    def candidates(self, groups, costs, wanted):
        nodes, candidates = (self.own, groups.node, costs.node), []
        found = self.blocks.gather(Method("candidates", wanted), *nodes)
        for (_, most), parts in zip(wanted, zip(*found, strict=True), strict=True):
            # The costliest of all blocks, whose cases come in order: the lower number in a tie.
            all_blocks = [np.concatenate(column) for column in zip(*parts, strict=True)]
            all_blocks[0] += np.repeat(self.firsts, [len(own.numbers) for own in parts])
            order = np.argsort(-all_blocks[1], kind="stable")[:most]
            candidates.append(Candidates(*(column[order] for column in all_blocks)))
        return candidates

    def with_changes(self, groups, changes):
        in_block: list[list] = [[] for _ in self.lengths]
        for run, case, k in changes:
            block = int(np.searchsorted(self.firsts, case, side="right")) - 1
            in_block[block].append((run, case - int(self.firsts[block]), k))
        nodes = self.own, groups.node, self.blocks.hold(in_block)
        return CaseArray(self.blocks, self.blocks.make_soon(Method("with_changes"), *nodes))

    def first_members(self, groups, k, most):
        found = self.blocks.gather(Method("first_members", k, most), self.own, groups.node)
        parts = [part + first for part, first in zip(found, self.firsts, strict=True)]
        return np.concatenate(parts)[:most]

    def middle(self, values):
        return median(self.blocks, values.node, self.n, self.masses)

    def spread(self, costs):
        middle = self.middle(costs)
        deviations = self.blocks.make(partial(_deviations, middle=middle), costs.node)
        return middle, median(self.blocks, deviations, self.n, self.masses)


# ---- What is done with a block


def _join(ops, *parts):
    return ops.join(parts)


def _deviations(costs, middle):
    deviations = costs - middle
    return np.abs(deviations, out=deviations)
