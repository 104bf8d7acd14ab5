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
    fill_from,
    joined,
    joined_keys,
    labels_of,
    side_by_side,
    wanted_candidates,
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
        if not any(isinstance(part, PartlyTrimmed) for part in parts):
            return plain
        runs, slots = len(plain) if plain.ndim == 2 else 1, [joined(part, None) for part in parts]
        pairs = zip(slots, self.firsts, strict=True)
        cuts = [np.where(cut >= 0, cut + first, -1) for (cut, _), first in pairs]
        lefts = [left for _, left in slots]
        return PartlyTrimmed(plain, side_by_side(cuts, runs), side_by_side(lefts, runs))

    def from_numpy(self, array):
        parts = np.split(labels_of(array), self.firsts[1:], axis=-1)
        own: list[Any] = [part.copy() for part in parts]
        if isinstance(array, PartlyTrimmed):
            for i, (first, length) in enumerate(zip(self.firsts, self.lengths, strict=True)):
                here = (array.cut >= first) & (array.cut < first + length)
                own[i] = PartlyTrimmed(own[i], np.where(here, array.cut - first, -1), array.left)
        return CaseArray(self.blocks, known(own))

    def take(self, array, runs):
        return self.made("take", array, runs, soon=not isinstance(runs, slice))

    def join(self, parts):
        return self.made(_join, *parts, soon=True)

    def kept_shares(self, groups):
        return np.concatenate(self.listed("kept_shares", groups))

    def keys(self, groups, K, masks=None):
        arrays = [groups] if masks is None else [groups, masks]
        return joined_keys(self.listed("key_sums", self.places, *arrays, K=K, n=self.n))

    def fill_empty(self, groups, counts, costs):
        wanted = wanted_candidates(counts)
        found = self.listed("candidates", groups, costs, wanted)
        changes: list[list] = [[] for _ in self.lengths]
        for (run, most), parts in zip(wanted, zip(*found, strict=True), strict=True):
            # The costliest of all blocks, whose cases come in order: the lower number in a tie.
            all_blocks = [np.concatenate(column) for column in zip(*parts, strict=True)]
            all_blocks[0] += np.repeat(self.firsts, [len(own.numbers) for own in parts])
            order = np.argsort(-all_blocks[1], kind="stable")[:most]
            candidates = Candidates(*(column[order] for column in all_blocks))
            for case, k in fill_from(candidates, counts[run]):
                block = int(np.searchsorted(self.firsts, case, side="right")) - 1
                changes[block].append((run, case - int(self.firsts[block]), k))
        return self.made("with_changes", groups, known(changes), soon=True)

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
