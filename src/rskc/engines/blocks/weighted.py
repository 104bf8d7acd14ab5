"""The engine for Dask arrays whose cases have masses: the engines with masses, block by block.

Groups and masks of a block are those of an engine in memory, with the numbers that cases have in
the block; the case that is trimmed in part is in one of the blocks.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from rskc.engines.base import Sums, sums_to_keys
from rskc.engines.blocks import tasks
from rskc.engines.blocks.cases import BlockCases, CaseArray, key_sums
from rskc.engines.blocks.data import BlockData
from rskc.engines.blocks.engine import BlocksEngine, BlocksMissingEngine
from rskc.engines.blocks.order import MASS_SLACK, Selected, median, select
from rskc.engines.blocks.plans import Blocks, Node, same
from rskc.engines.blocks.tables import BlocksTable
from rskc.engines.interface import Farthest, Moved
from rskc.engines.masses import Parted, joined, slots_in_order, whole
from rskc.engines.weighted import (
    WeightedEngine,
    WeightedMissingEngine,
    WeightedNumpyCases,
    WeightedOwner,
    give_masses,
    without_rounding,
)

# What needs no masses is done with these.
PARTED_CASES = WeightedNumpyCases(np.empty(0))


class WeightedBlockCases(BlockCases):
    """:class:`~rskc.engines.interface.Cases` for arrays in blocks of cases with masses."""

    numpy = PARTED_CASES

    def __init__(self, blocks: Blocks, lengths: np.ndarray, masses: Node):
        super().__init__(blocks, lengths)
        self.masses = masses

    def _summed(self, name: str, *arrays: CaseArray, **options: Any) -> Any:
        """Sum what a method of the cases of each block returns."""
        nodes = (array.node for array in arrays)
        return self.blocks.ask(partial(_of_block, name=name, **options), self.masses, *nodes)

    def gathered(self, array: CaseArray) -> Any:
        """Return groups or a mask (runs, n) in memory, with what is trimmed in part."""
        parts = self.blocks.gather(same, array.node)
        plain = np.concatenate([whole(part) for part in parts], axis=-1)
        if not any(isinstance(part, Parted) for part in parts):
            return plain
        slots = [joined(part, None) for part in parts]
        runs = len(plain) if plain.ndim == 2 else 1
        pairs = zip(slots, self.firsts, strict=True)
        cuts = [np.where(cut >= 0, cut + first, -1) for (cut, _), first in pairs]
        cut, left = (
            np.hstack([np.broadcast_to(each, (runs, each.shape[1])) for each in column])
            for column in (cuts, [left for _, left in slots])
        )
        return Parted(plain, cut, left)

    def to_numpy(self, array):
        return np.concatenate([whole(part) for part in self.blocks.gather(same, array.node)], -1)

    def from_numpy(self, array):
        if not isinstance(array, Parted):
            return super().from_numpy(array)
        parts = np.split(array.array, self.firsts[1:], axis=-1)
        own = []
        for part, first, length in zip(parts, self.firsts, self.lengths, strict=True):
            here = (array.cut >= first) & (array.cut < first + length)
            own.append(Parted(part.copy(), np.where(here, array.cut - first, -1), array.left))
        return CaseArray(self.blocks, self.blocks.hold(own))

    def take(self, array, runs):
        make = self.of if isinstance(runs, slice) else self.soon
        return make(partial(PARTED_CASES.take, runs=runs), array)

    def only(self, array):
        return self.of(PARTED_CASES.only, array)

    def as_run(self, array):
        return self.of(PARTED_CASES.as_run, array)

    def join(self, parts):
        return self.soon(_join, *parts)

    def sizes(self, groups, K):
        return self._summed("sizes", groups, K=K)

    def keys(self, groups, K, masks=None):
        nodes = [groups.node] if masks is None else [groups.node, masks.node]
        found = self.blocks.gather(partial(_keys_of_block, K=K, n=self.n), self.places, *nodes)
        sums, slots = zip(*found, strict=True)
        total = [np.sum(column, axis=0) for column in zip(*sums, strict=True)]
        keys = sums_to_keys(total[0], total[1] if len(total) > 1 else None)
        return [
            key + b"".join(np.round(part[run], 6).tobytes() for parts in slots for part in parts)
            for run, key in enumerate(keys)
        ]

    def fill_empty(self, groups, counts, costs):
        return self._filled(groups, counts, costs, self.masses)

    def number(self, mask):
        return self.blocks.ask(PARTED_CASES.number, mask.node)

    def count(self, mask):
        return self._summed("count", mask)

    def masses_at(self, cases):
        return self.at(self.as_run(CaseArray(self.blocks, self.masses)), cases)[0]

    def total(self, costs, out):
        return self._summed("total", costs, out)

    def spread(self, costs):
        middle = median(self.blocks, costs.node, self.n, self.masses)
        deviations = self.blocks.make(partial(_deviations, middle=middle), costs.node)
        return middle, median(self.blocks, deviations, self.n, self.masses)


class WeightedBlocksTable(WeightedOwner, BlocksTable):
    """Tables of the columns that carry weight, one for each block of cases with masses."""

    def __init__(self, engine: Any, node: Node, recipe: tasks.TableRecipe, of_moved: Any = None):
        node = engine.blocks.make(give_masses, node, engine.masses_node)
        super().__init__(engine, node, recipe)  # all of a table that is not kept is made anew
        self.masses, self.total_mass = engine.masses, engine.total_mass

    def _cut(self, labels, costs, m):
        return self.engine.groups_by_mass(labels, costs, m)

    def _within(self, groups, costs):
        parts = self.engine.masses_node, groups.node, costs.node
        return self.blocks.make(_within, *parts)

    def shift(self, sums, before, after):
        moved = super().shift(sums, before, after)
        without_rounding(sums)
        return moved

    def regroup(self, assignment, m, sums, before):
        found = super().regroup(assignment, m, sums, before)
        without_rounding(sums)
        return found

    def _shifted(self, sums, before, after):
        made = partial(_changes, K=sums.counts.shape[1])
        return self.blocks.make(made, self.node, before.node, after.node)

    def single_moves(self, groups, K):
        found = self.seeding_table().single_moves(self.arrays.gathered(groups), K)
        return Moved(self.arrays.from_numpy(found.groups), found.sums, found.moves)

    def seeding_table(self):
        return give_masses(super().seeding_table(), self.masses)

    def typical_norm(self):
        norms = self.blocks.make(_norms, self.node)
        tiled = self.blocks.make(partial(np.tile, reps=len(self.weights)), self.engine.masses_node)
        return median(self.blocks, norms, self.n_cases * len(self.weights), tiled)


class WeightedBlocksMixin(WeightedOwner, BlocksEngine):
    """Passes over a Dask array whose cases have masses."""

    table_type = WeightedBlocksTable

    def __init__(self, data: BlockData, n_threads: int, masses: np.ndarray):
        parts = np.split(masses, np.cumsum(data.all_lengths)[:-1])
        held = data.blocks.hold([parts[i] for i in data.used])
        self.masses_node = data.blocks.make(tasks.seen_rows, held, data.unobserved, keep=True)
        self.masses = np.concatenate(data.blocks.gather(same, self.masses_node))
        self.total_mass = float(self.masses.sum())
        self.copies = bool((self.masses == np.rint(self.masses)).all())
        super().__init__(data, n_threads)
        self.arrays = WeightedBlockCases(self.blocks, data.lengths, self.masses_node)

    def rounded(self, mass):
        return int(mass) if self.copies else float(mass)

    def _engines(self, rows, frame):
        missing, options = self.data.missing, {"frame": frame, "n_threads": self.threads_a_task}
        made = partial(_engine_of, missing=missing, **options)
        return self.blocks.make(made, rows, self.masses_node)

    def _engine_of_rows(self, rows, cases, masses):
        options = {"frame": self.frame, "n_threads": self.n_threads}
        masses = self.masses[cases] if masses is None else masses
        return _engine_of(rows, masses, missing=self.data.missing, **options)

    def returned(self, array, unobserved):
        return self.data.returned(self.blocks.make(_named, array.node), unobserved)

    def _can_rotate(self, weights):
        return False

    def shift(self, sums, before, after):
        made = partial(_changes, K=sums.counts.shape[1])
        change = self.blocks.ask(made, self.node, before.node, after.node)
        moved = sums.change(*change)
        without_rounding(sums)
        return moved

    def farthest(self, distances, m):
        found = self._selected(distances.node, m)
        return Farthest(CaseArray(self.blocks, self._mask(distances.node, found, m)), found.largest)

    def take_out_farthest(self, groups, labels, sums, m):
        return super(BlocksEngine, self).take_out_farthest(groups, labels, sums, m)

    def groups_by_mass(self, labels: Node, costs: Node, m: float) -> Node:
        """Return groups: the labels, without the cases of largest cost that have the mass m."""
        mask = self._mask(costs, self._selected(costs, m), m)
        return self.blocks.make_soon(PARTED_CASES.without, labels, mask)

    def _selected(self, costs: Node, m: float) -> Selected:
        ranks = partial(_all_rows, m=m)
        return select(self.blocks, costs, self.n_cases, ranks, self.masses_node)

    def _mask(self, costs: Node, found: Selected, m: float) -> Node:
        values, ties = self.cut(found, m)
        made = partial(_cut_off, values=values, slack=MASS_SLACK * m)
        return self.blocks.make_soon(made, costs, ties, self.masses_node)


class WeightedBlocksEngine(WeightedBlocksMixin):
    """Passes over such an array without missing cells."""


class WeightedBlocksMissingEngine(WeightedBlocksMixin, BlocksMissingEngine):
    """Passes over such an array in which NaN marks a missing cell."""

    def __init__(self, data: BlockData, n_threads: int, masses: np.ndarray):
        super().__init__(data, n_threads, masses)
        self.observed_features = data.observed


def weighted_engine(data: BlockData, n_threads: int, masses: np.ndarray) -> WeightedBlocksMixin:
    """Return the engine of blocks whose cases have these masses."""
    n = int(data.all_lengths.sum())
    if len(masses) != n:
        raise ValueError(
            f"sample_weight has shape {masses.shape}; it must have shape ({n},): a number for "
            "each case."
        )
    made = WeightedBlocksMissingEngine if data.missing else WeightedBlocksEngine
    return made(data, n_threads, masses)


# ---- What is done with a block


def _engine_of(rows, masses, *, missing, **options):
    return (WeightedMissingEngine if missing else WeightedEngine)(rows, masses=masses, **options)


def _of_block(masses, *arrays, name, **options):
    return getattr(WeightedNumpyCases(masses), name)(*arrays, **options)


def _join(*parts):
    return PARTED_CASES.join(parts)


def _keys_of_block(first, groups, masks=None, *, K, n):
    """Return sums for the keys of runs, and the cases that are trimmed in part."""
    sums = key_sums(first, whole(groups), None if masks is None else whole(masks), K=K, n=n)
    slots = [slots_in_order(each, len(whole(groups))) for each in (groups, masks)]
    for pairs in slots:
        pairs[:, :, 0] += np.where(pairs[:, :, 0] >= 0, first, 0)
    return sums, slots


def _deviations(costs, middle):
    return np.abs(costs - middle)


def _norms(table):
    return table.norms()


def _all_rows(counts, m):
    return np.full(len(counts), float(m))


def _within(masses, groups, costs):
    """Sum the masses times the costs of kept cases, as the only item of a tuple."""
    own = WeightedNumpyCases(masses).kept_masses(groups)
    return (np.sum(own * costs, axis=1, where=whole(groups) >= 0),)


def _changes(owner, before, after, K):
    """Return the change of the sums of an engine or a table, and how many cases moved."""
    sums = Sums.empty(len(whole(before)), K, owner.width)
    moved = owner.change(sums, before, after)
    return sums.totals, sums.counts, moved


def _cut_off(costs, ties, masses, values, slack):
    """Return a mask of the costs (runs, n) above values (runs,), and of the first ties by mass."""
    mask, shape = costs > values[:, None], (len(costs), 1)
    cut, left = np.full(shape, -1), np.zeros(shape)
    for run in np.flatnonzero(ties > slack):
        cases = np.flatnonzero(costs[run] == values[run])
        gone = np.cumsum(masses[cases])
        n_whole = int(np.searchsorted(gone, ties[run] + slack, side="right"))
        mask[run, cases[:n_whole]] = True
        rest = ties[run] - (gone[n_whole - 1] if n_whole else 0.0)
        if n_whole < len(cases) and rest > slack:
            cut[run], left[run] = cases[n_whole], masses[cases[n_whole]] - rest
    return Parted(mask, cut, left)


def _named(array):
    """Return a mask with the cases that are trimmed in part, or any other array as it is."""
    if not isinstance(array, Parted):
        return array
    mask = array.array.copy()
    mask[array.cut[array.cut >= 0]] = True
    return mask
