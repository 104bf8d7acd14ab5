"""What lies in blocks, and what the solver does with arrays (runs, n) there."""

from __future__ import annotations

import operator
import weakref
from functools import partial, partialmethod
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
from rskc.engines.blocks import tasks
from rskc.engines.blocks.order import median
from rskc.engines.blocks.plans import Blocks, Call, Node, known, same


def in_blocks(numbers: np.ndarray, lengths: Any) -> list[np.ndarray]:
    """Return the sorted numbers of cases within each block; none if lengths are not known."""
    if len(numbers) == 0:
        return [numbers] * len(lengths)
    ends = np.cumsum(lengths)
    parts = np.split(numbers, np.searchsorted(numbers, ends[:-1]))
    return [part - end + size for part, end, size in zip(parts, ends, lengths, strict=True)]


class InBlocks:
    """What lies in blocks, each of which has a part: data, arrays, engines, tables.

    Its methods call a function, or a method of the part, in every block. Arguments that lie in
    blocks too come before others; arrays that are not of length n have names, for on a device all
    others are sent there.
    """

    blocks: Blocks
    node: Node

    def _call(self, function: Any, arguments: tuple, options: dict[str, Any]) -> tuple:
        nodes = [each for each in arguments if isinstance(each, Node | InBlocks)]
        call = Call(function, *arguments[len(nodes) :], **options)
        return call, self.node, *(each if isinstance(each, Node) else each.node for each in nodes)

    def made(self, function: Any, *arguments: Any, soon: bool = False, **options: Any) -> CaseArray:
        """Return an array that is made when it is needed, or by the next graph."""
        make = self.blocks.make_soon if soon else partial(Node, keep=True)
        return CaseArray(self.blocks, make(*self._call(function, arguments, options)))

    def summed(self, function: Any, *arguments: Any, **options: Any) -> Any:
        """Return what is made of all blocks, summed."""
        return self.blocks.ask(*self._call(function, arguments, options))

    def listed(self, function: Any, *arguments: Any, **options: Any) -> list[Any]:
        """Return what is made of each block."""
        return self.blocks.gather(*self._call(function, arguments, options))


class CaseArray(InBlocks):
    """An array (runs, n) or (n,) in blocks, made when something is asked of it, and kept then."""

    def __init__(self, blocks: Blocks, node: Node):
        self.blocks, self.node = blocks, node
        node.owner = weakref.ref(self)

    __and__ = partialmethod(InBlocks.made, operator.and_)
    __or__ = partialmethod(InBlocks.made, operator.or_)
    __invert__ = partialmethod(InBlocks.made, operator.invert)
    __gt__ = partialmethod(InBlocks.made, operator.gt)
    __lt__ = partialmethod(InBlocks.made, operator.lt)
    # The only run (1, n) as (n,), or the other way round.
    __getitem__ = partialmethod(InBlocks.made, operator.getitem)
    # Distances are scaled, which are asked for in any case: the next graph makes them.
    __mul__ = partialmethod(InBlocks.made, operator.mul, soon=True)


class BlockOps(InBlocks, ArrayOps):
    """What the solver does with arrays in blocks: what ``ArrayOps`` does with those of each block.

    Groups and masks of a block have the numbers that cases have in the block; the case that is
    trimmed in part is in one of the blocks.
    """

    def __init__(self, data: Any, masses: np.ndarray | None):
        self.blocks, self.lengths, self.n = data.blocks, data.lengths, data.n_cases
        self.firsts = np.cumsum(self.lengths) - self.lengths
        self.places = known(map(int, self.firsts))
        self.node, self.masses = known([ArrayOps()] * len(self.lengths)), None
        self.host_masses = None
        if masses is not None:  # they are kept, in their blocks and here
            parts = np.split(masses, np.cumsum(data.all_lengths)[:-1])
            of_used = known(parts[i] for i in data.used)
            self.masses = Node(tasks.seen_rows, of_used, data.unobserved, keep=True)
            self.node = Node(ArrayOps, self.masses)
            self.host_masses = np.concatenate(self.blocks.gather(same, self.masses))

    as_mask, without, cube_roots = (
        partialmethod(InBlocks.made, name) for name in ("as_mask", "without", "cube_roots")
    )
    sizes, differ, number, count, total = (
        partialmethod(InBlocks.summed, name)
        for name in ("sizes", "differ", "number", "count", "total")
    )

    def to_numpy(self, array):
        return np.concatenate(array.listed(labels_of), axis=-1)

    def gathered(self, array: CaseArray) -> Any:
        """Return groups or a mask (runs, n) in memory, with what is trimmed in part."""
        parts = array.listed(same)
        plain = np.concatenate([labels_of(part) for part in parts], axis=-1)
        if not isinstance(parts[0], PartlyTrimmed):
            return plain
        return PartlyTrimmed(plain, np.concatenate([part.kept for part in parts], axis=-1))

    def from_numpy(self, array):
        ends = self.firsts + self.lengths
        parts = [array[..., slice(*ends)] for ends in zip(self.firsts, ends, strict=True)]
        return CaseArray(self.blocks, known(each_part(np.copy, part) for part in parts))

    def take(self, array, runs):
        return self.made("take", array, runs, soon=not isinstance(runs, slice))

    def join(self, parts):
        return self.made(_join, *parts, soon=True)

    def kept_shares(self, groups):
        return np.concatenate(self.listed("kept_shares", groups))

    def keys(self, groups, K, masks=None):
        arrays = [groups] if masks is None else [groups, masks]
        return joined_keys(self.listed("key_sums", self.places, *arrays, K=K, n=self.n))

    def candidates(self, groups, costs, wanted):
        found, candidates = self.listed("candidates", groups, costs, wanted), []
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
        return self.made("with_changes", groups, known(in_block), soon=True)

    def first_members(self, groups, k, most):
        found = self.listed("first_members", groups, k, most)
        parts = [part + first for part, first in zip(found, self.firsts, strict=True)]
        return np.concatenate(parts)[:most]

    def middle(self, values):
        return median(self.blocks, values.node, self.n, self.masses)

    def spread(self, costs):
        middle = self.middle(costs)
        deviations = Node(np.abs, Node(Call(operator.sub, middle), costs.node))
        return middle, median(self.blocks, deviations, self.n, self.masses)


# ---- What is done with a block


def _join(ops, *parts):
    return ops.join(parts)
