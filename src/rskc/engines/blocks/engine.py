"""The engine for Dask arrays: the passes of the engines in memory, block by block; its tables."""

import copy
from functools import partial
from operator import add, attrgetter
from typing import Any, NamedTuple

import dask.array as da
import numpy as np

from rskc.engines import contract
from rskc.engines.arrays import ArrayOps
from rskc.engines.blocks import tasks
from rskc.engines.blocks.data import BlockData
from rskc.engines.blocks.ops import BlockOps, CaseArray
from rskc.engines.blocks.order import BRACKET_MARGIN, median, select
from rskc.engines.blocks.plans import Blocks, Method, Node, same
from rskc.engines.contract import Place
from rskc.engines.memory import WORK_BYTES, Frame, MemoryEngine
from rskc.engines.passes_numpy import MASS_SLACK

# The share of the memory that data leave which a table may take, and of a device, where little else
# is kept.
TABLE_SHARE, DEVICE_SHARE = 2 / 3, 0.9
# The numbers of this many cases are listed; all are counted.
MOST_LISTED = 100


class InBlocks(contract.CaseData):
    """What the engine and its tables do alike: sums over what each block has."""

    blocks: Blocks
    node: Node  # the engine or the table of each block

    def sums(self, groups, K):
        made = partial(tasks.sums_of, K=K)
        return self.sums_type(*self.blocks.ask(made, self.node, groups.node))

    def shift(self, sums, before, after):
        return self.changed(sums, self.blocks.ask(same, self._shifted(sums, before, after)))

    def _shifted(self, sums, before, after):
        """Return a node of how sums change."""
        made = partial(tasks.changes_of, K=sums.counts.shape[1])
        return self.blocks.make(made, self.node, before.node, after.node)


class BlocksTable(InBlocks, contract.Table):
    """Tables of the columns that carry weight, one for each block."""

    arrays: BlockOps

    def __init__(
        self,
        engine: Any,
        node: Node,
        recipe: tasks.TableRecipe,
        of_moved: tuple[Node, np.ndarray] | None = None,
    ):
        facts = recipe.weights, recipe.place, recipe.missing
        super().__init__(engine.arrays, engine.n_cases, *facts)
        self.engine, self.blocks, self.node, self.recipe = engine, engine.blocks, node, recipe
        # Of a table that is not kept: engines, and its columns in these.
        self.of_moved = of_moved

    def of_runs(self, index):
        if len(self.weights) == 1:
            return self
        part = copy.copy(self)
        part.weights = self.weights[index]
        part.recipe = self.recipe._replace(weights=part.weights)
        part.node = self.blocks.make(Method("of_runs", index=index), self.node)
        return part

    def assign(self, centers):
        """Only note what to do: what asks for labels or costs first does it on its way."""
        both = self.blocks.make(Method("assign", centers=centers), self.node, keep=True)
        parts = (both.part(name) for name in contract.Assignment._fields)
        return contract.Assignment(*(CaseArray(self.blocks, part) for part in parts))

    def trim(self, assignment, m):
        groups = self._groups(assignment, m)
        (within,) = self.blocks.ask(same, self._within(groups, assignment.costs))
        return contract.Grouping(groups, within)

    def _groups(self, assignment: contract.Assignment, m: float) -> CaseArray:
        labels, costs = assignment.labels.node, assignment.costs.node
        groups = labels
        if m > 0:
            ties, bar, _ = self.engine.cut(costs, m)
            own = self.arrays.own
            groups = self.blocks.make_soon(partial(tasks.trim, **bar), labels, costs, ties, own)
        return self.exclude(CaseArray(self.blocks, groups))

    def _within(self, groups: CaseArray, costs: CaseArray) -> Node:
        """Return the costs of kept cases summed, as the only item of a tuple."""
        return self.blocks.make(tasks.within, groups.node, costs.node, self.arrays.own)

    def exclude(self, groups):
        if not self.missing:
            return groups
        node = self.blocks.make_soon(Method("exclude"), self.node, groups.node)
        return CaseArray(self.blocks, node)

    def regroup(self, assignment, m, sums, before):
        groups = self._groups(assignment, m)
        moved = self._shifted(sums, before, groups)
        *change, kept = self.blocks.ask(add, moved, self._within(groups, assignment.costs))
        return contract.Regrouping(groups, kept, self.changed(sums, change))

    def _shifted(self, sums, before, after):
        """Return that; a table that is not kept is made of the cases that moved."""
        if self.of_moved is None:
            return super()._shifted(sums, before, after)
        engines, columns = self.of_moved
        facts = {"K": sums.counts.shape[1], "recipe": self.recipe, "columns": columns}
        made = partial(tasks.changes_of_moved, **facts)
        return self.blocks.make(made, engines, before.node, after.node)

    def in_memory(self):
        engine = self.engine.engine_of_rows(None, self.arrays.host_masses)
        columns, dtype = self.recipe.place.columns, self.recipe.dtype
        return engine.table_of(engine.lay_out(columns, dtype), self.weights, self._place, dtype)

    def typical_norm(self):
        norms, masses, runs = self.blocks.make(Method("norms"), self.node), None, len(self.weights)
        if self.masses is not None:
            masses = self.blocks.make(partial(np.tile, reps=runs), self.arrays.masses)
        return median(self.blocks, norms, self.n_cases * runs, masses)


class OfColumns(NamedTuple):
    """Engines of the blocks that know some columns at least."""

    node: Node
    columns: Any  # those of the data that they know: an index of arrays (..., p)
    places: np.ndarray  # where the wanted ones are among these


class KnownCases(NamedTuple):
    """Cases whose rows are here, and their engine."""

    cases: np.ndarray
    engine: MemoryEngine

    def bracket(self, labels: np.ndarray, centers: np.ndarray, m: int, n: int) -> list[np.ndarray]:
        """Return bounds (runs,) between which the m-th largest of n distances is likely to lie."""
        distances = self.engine.distances(labels, centers, self.engine.equal_weights())
        ordered = -np.sort(-distances, axis=1)
        most, place = len(self.cases), m * len(self.cases) / n
        margin = BRACKET_MARGIN * np.sqrt(place * max(1 - place / most, 0)) + 2
        ends = int(np.ceil(place + margin)), int(np.floor(place - margin))
        padded = np.pad(ordered, [(0, 0), (1, 1)], constant_values=[(0, 0), (np.inf, -np.inf)])
        return [padded[:, np.clip(end + 1, 0, most + 1)] for end in ends]


class BlocksEngine(InBlocks, contract.Engine):
    """Passes over a Dask array (n, p) whose blocks hold all columns, float32 or float64."""

    searchable = False
    arrays: BlockOps

    def __init__(
        self,
        X: da.Array,
        *,
        missing: bool | None = None,
        drop_unobserved: bool = False,
        frame: Frame | None = None,
        n_threads: int = 1,
        masses: np.ndarray | None = None,
        wanted: np.ndarray | None = None,
        device: str | None = None,
    ):
        """Look at all of the data in one pass.

        It brings the rows of the cases ``wanted`` along, which will be asked for. Passes are made
        on the device, if one is named.
        """
        data = BlockData(X, missing, drop_unobserved, frame, wanted)
        n = int(data.all_lengths.sum())
        if masses is not None and len(masses) != n:
            raise ValueError(
                f"sample_weight has shape {masses.shape}; it must have shape ({n},): a number for "
                "each case."
            )
        shape = data.n_cases, data.n_features
        arrays = self._arrays_of(data, masses)
        super().__init__(arrays, shape, data.dtype, data.frame, data.missing)
        self.data, self.blocks, self.n_threads = data, data.blocks, n_threads
        self.n_missing, self.n_unobserved = data.n_missing, data.n_unobserved
        self.observed_features = data.observed
        self.table_bytes = 0  # that a table takes which is kept
        # Threads within a task only where there are fewer blocks than threads.
        remote = self.blocks.scheduler.remote
        self.threads_a_task = 1 if remote else max(1, n_threads // len(self.blocks))
        self.device, self.keeps_rows, self.space = device, data.keep_rows, data.room
        self.engine_type: Any = partial(tasks.engine_of, n_threads=self.threads_a_task)
        self.recipe_type: Any = tasks.TableRecipe
        self.table_share = TABLE_SHARE
        if device is not None:
            self._use_device(device)
        self.node = self._engines(data.node, self.frame)
        if device is not None and self.keeps_rows:
            stay = Method("stay", forget=not data.keep_rows)
            self.node = self.blocks.make(stay, self.node, keep=True)
        self.forget_part()
        if data.wanted is not None:
            cases, rows = data.wanted
            self._gathered.get((cases.tobytes(),), lambda: rows)
            data.wanted = None  # it is kept once

    def _use_device(self, device: str) -> None:
        """Make passes on a device; decide what is kept there, beside blocks that are in work."""
        from rskc.engines.blocks.devices import (
            BLOCKS_IN_WORK,
            DEVICE_THREADS,
            BlockEngine,
            DeviceRecipe,
            free_on,
        )

        self.engine_type, self.recipe_type = partial(BlockEngine, device=device), DeviceRecipe
        scheduler, size = self.blocks.scheduler, self.data.n_bytes * (1 + self.missing)
        scheduler.most_threads = DEVICE_THREADS  # of this process
        in_work = scheduler.n_threads * size * self.data.lengths.max() / self.n_cases
        budget = scheduler.device_budget(partial(free_on, device)) - BLOCKS_IN_WORK * in_work
        self.keeps_rows = size <= budget / 2  # else columns with weight have all the room
        self.space = max(0, int(budget - size * self.keeps_rows))
        self.table_share = DEVICE_SHARE

    @staticmethod
    def _arrays_of(data: BlockData, masses: np.ndarray | None) -> BlockOps:
        """Return what is done with arrays; the case weights are kept, in their blocks and here."""
        blocks, node = data.blocks, None
        if masses is not None:
            parts = np.split(masses, np.cumsum(data.all_lengths)[:-1])
            held = blocks.hold([parts[i] for i in data.used])
            node = blocks.make(tasks.seen_rows, held, data.unobserved, keep=True)
            masses = np.concatenate(blocks.gather(same, node))
        return BlockOps(blocks, data.lengths, node, masses)

    def _engines(self, rows: Node, frame: Frame) -> Node:
        """Return the engine in memory of each block of rows."""
        made = partial(self.engine_type, missing=self.missing, frame=frame)
        return self.blocks.make(made, rows, self.arrays.own)

    def _of_columns(self, columns: np.ndarray) -> OfColumns:
        """Return engines that know some columns: of these alone, if they are read alone."""
        rows = None if self.keeps_rows else self.data.columns(columns)
        if rows is None:
            return OfColumns(self.node, slice(None), columns)
        engines = self._engines(rows, self.frame.of_columns(columns))
        return OfColumns(engines, columns, np.arange(len(columns)))

    @property
    def work_bytes(self):
        """Return an eighth of what neither the data nor a table that is kept take."""
        return max(WORK_BYTES, (self.space - self.table_bytes) // 8)

    # ---- Cases

    def rows(self, cases):
        """Return rows of the data, or all (None); the last are kept: starts are drawn of them."""
        key = (None if cases is None else cases.tobytes(),)
        return self._gathered.get(key, lambda: self.data.rows(cases))

    def columns_of(self, cases, columns):
        node = self.data.columns(columns)
        return super().columns_of(cases, columns) if node is None else self.data.rows(cases, node)

    def part(self, cases, masses=None):
        key = cases.tobytes(), None if masses is None else masses.tobytes()
        if masses is None and self.masses is not None:
            masses = self.arrays.masses_at(cases)
        made = partial(self.engine_of_rows, cases, masses)
        return self._sample.get(key, lambda: KnownCases(cases, made())).engine

    def forget_part(self):
        self._gathered, self._sample = contract.Latest(), contract.Latest()

    def engine_of_rows(self, cases: np.ndarray | None, masses: np.ndarray | None) -> MemoryEngine:
        """Return the engine in memory of some cases, or of all (None)."""
        options = {"frame": self.frame, "n_threads": self.n_threads, "missing": self.missing}
        rows = np.ascontiguousarray(self.rows(cases))
        return tasks.engine_of(rows, ArrayOps(masses), **options)

    def numbers(self, cases):
        return self.data.numbers(cases)

    def returned(self, array, unobserved):
        if self.masses is not None:
            array = self.arrays.as_mask(array)
        array = self.data.returned(array.node, unobserved)
        return array.compute(scheduler="synchronous") if self.gathers else array

    def distinct(self, most):
        function = partial(_distinct_rows, most=most)
        # Those of the first block are mostly enough.
        (known,) = self.blocks.gather(function, self.data.node, only=[0])
        if len(known) < most and len(self.blocks) > 1:
            known = set().union(*self.blocks.gather(function, self.data.node))
        return min(len(known), most)

    def largest_cell(self):
        return max(self.blocks.gather(tasks.largest_cell, self.data.node))

    # ---- Tables

    def _can_rotate(self, weights):
        return False  # many starts are made in memory, and few would not pay it

    def _columns(self, weights):
        """Return the active columns; where these are read alone, any subset saves something."""
        active = np.flatnonzero(weights.any(axis=0))
        return active if self.data.reads_columns else super()._columns(weights)

    def table(self, weights, dtype=None):
        dtype = dtype or self.float64
        columns, make = self._columns(weights), self.blocks.make
        facts = np.ascontiguousarray(weights[:, columns]), dtype, self.missing
        place = Place(columns, self.frame)
        recipe = self.recipe_type(place, *facts, self.threads_a_task, self.device)
        cells, known, sides = self._cells(columns, dtype), self._of_columns(columns), []
        if cells.keep:
            sides = [make(recipe.sides_of, cells, keep=True)]
        node = make(recipe.table_of, cells, self.arrays.own, *sides)
        whole = cells.keep or self.masses is not None or (self.device and self.keeps_rows)
        return BlocksTable(self, node, recipe, None if whole else (known.node, known.places))

    def _size(self, columns, dtype):
        """Return the bytes of cells as the engines in memory lay them out.

        That is in blocks and, where it is cheap, row by row too.
        """
        item = self._cell_type(dtype).itemsize
        size = int(self.n_cases) * len(columns) * item * (1 + self.missing)
        if self.device is not None:
            return size
        twice = size <= tasks.ROWS_BYTES * len(self.blocks) or 2 * size <= self.data.n_bytes
        return 2 * size if twice else size

    def _fits(self, columns, dtype):
        """Whether cells are kept; those before are given up for them."""
        return self._size(columns, dtype) <= self.space * self.table_share

    def lay_out(self, columns, dtype):
        """Return the node of the cells of tables, kept where there is room."""
        keep = self._fits(columns, dtype)
        self.table_bytes = self._size(columns, dtype) if keep else 0
        known = self._of_columns(columns)
        made = Method("lay_out", columns=known.places, dtype=dtype)
        return self.blocks.make(made, known.node, keep=keep)

    # ---- Passes

    def distances(self, labels, centers, weights):
        known = self._of_columns(np.flatnonzero(weights.any(axis=0)))
        own = (np.ascontiguousarray(each[..., known.columns]) for each in (centers, weights))
        made = Method("distances", **dict(zip(("centers", "weights"), own, strict=True)))
        node = self.blocks.make(made, known.node, labels.node, keep=True)
        return CaseArray(self.blocks, node)

    def farthest(self, distances, m):
        ties, bar, largest = self.cut(distances.node, m)
        parts = distances.node, ties, self.arrays.own
        node = self.blocks.make_soon(partial(tasks.cut_off, **bar), *parts)
        return CaseArray(self.blocks, node), largest

    def take_out_farthest(self, groups, labels, sums, m):
        """Read the data once, where they are not kept, for distances and for what is taken out.

        Known cases tell about where the threshold will be: the sums over what lies beyond are made
        on the way, and the few cases that are near it are kept until it is known.
        """
        read_anyway = self.keeps_rows or self.missing or self.masses is not None
        sample = self._sample.value
        if m == 0 or sample is None or read_anyway:
            return super().take_out_farthest(groups, labels, sums, m)
        K, means = sums.counts.shape[1], sums.means()
        low, high = sample.bracket(self.arrays.at(labels, sample.cases), means, m, self.n_cases)
        facts = {"centers": means, "weights": self.equal_weights()}
        made = partial(tasks.examined, **facts, low=low, high=high, K=K)
        both = self.blocks.make(made, self.node, groups.node, labels.node, keep=True)
        distances = CaseArray(self.blocks, self.blocks.make(attrgetter("distances"), both))
        far, largest = self.farthest(distances, m)
        kept = self.arrays.without(groups, far)
        bracketed = self.blocks.gather(tasks.is_bracketed, both, far.node)
        if largest.max() > contract.OUTLYING_DISTANCE or not all(bracketed):
            return self._without(groups, far, largest, sums)
        sums.change(*self.blocks.ask(partial(tasks.taken_out, K=K), both, groups.node, far.node))
        return contract.Remaining(far, kept, sums)

    def cut(self, costs: Node, m: float) -> tuple[Node, dict[str, Any], np.ndarray]:
        """Find the least of the m largest costs of each run.

        Return how many ties with it are cut off in each block, by what values cases are, and the
        largest costs.
        """
        every = self.n_cases, lambda counts: np.full(len(counts), m)
        found = select(self.blocks, costs, *every, self.arrays.masses)
        values = np.where(np.isnan(found.values), np.inf, found.values).astype(found.values.dtype)
        # The first of the ties are among the m largest.
        before = np.cumsum(found.ties, axis=0) - found.ties
        ties = np.clip(m - found.above - before, 0, found.ties)
        bar = {"values": values, "slack": MASS_SLACK * m}
        return self.blocks.hold(list(ties)), bar, found.largest

    # ---- Missing cells

    def little_seen(self, weights, share):
        if not self.missing:
            return super().little_seen(weights, share)
        found = partial(tasks.little_seen, weights=weights, share=share, most=MOST_LISTED)
        parts = self.blocks.gather(found, self.node, self.arrays.places)
        first = np.concatenate([part.first for part in parts])[:MOST_LISTED]
        return contract.Listed(sum(part.total for part in parts), first)

    def _factors(self, weights):
        made = Method("_factors", weights=weights)
        return CaseArray(self.blocks, self.blocks.make_soon(made, self.node))

    def factored(self, groups, weights, K):
        return self.blocks.ask(Method("factored", weights=weights, K=K), self.node, groups.node)

    def set_aside(self, groups, weights):
        if not self.missing:
            return super().set_aside(groups, weights)
        made = Method("set_aside", weights=weights)
        return CaseArray(self.blocks, self.blocks.make_soon(made, self.node, groups.node))


def _distinct_rows(X: np.ndarray, most: int) -> set[bytes]:
    return contract.distinct_rows(X.__getitem__, len(X), most)
