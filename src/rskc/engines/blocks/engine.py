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
from rskc.engines.blocks.ops import BlockOps, CaseArray, InBlocks, in_blocks
from rskc.engines.blocks.order import BRACKET_MARGIN, median, select
from rskc.engines.blocks.plans import Call, Node, known, same
from rskc.engines.blocks.schedulers import DEVICE_MEMORY
from rskc.engines.contract import Place
from rskc.engines.memory import WORK_BYTES, Frame, MemoryEngine
from rskc.engines.passes_numpy import MASS_SLACK

# The share of the memory that data leave which a table may take, and of a device, where little else
# is kept.
TABLE_SHARE, DEVICE_SHARE = 2 / 3, 0.9
# The numbers of this many cases are listed; all are counted.
MOST_LISTED = 100


class SummedInBlocks(InBlocks, contract.CaseData):
    """What the engine and its tables do alike: sums over what each block has."""

    arrays: BlockOps

    def sums(self, groups, K):
        return self.sums_type(*self.summed(tasks.sums_of, groups, K=K))

    def shift(self, sums, before, after):
        return self.changed(sums, self.blocks.ask(same, self._shifted(sums, before, after)))

    def _shifted(self, sums, before, after):
        """Return a node of how sums change."""
        made = partial(tasks.changes_of, K=sums.counts.shape[1])
        return Node(made, self.node, before.node, after.node)


class BlocksTable(SummedInBlocks, contract.Table):
    """Tables of the columns that carry weight, one for each block."""

    def __init__(self, engine: Any, node: Node, dtype: Any, of_moved: tuple | None, **facts: Any):
        super().__init__(engine.arrays, engine.n_cases, **facts)
        self.engine, self.blocks, self.node, self.dtype = engine, engine.blocks, node, dtype
        # Of a table that is not kept: engines, and its columns in these.
        self.of_moved = of_moved

    def of_runs(self, index):
        if len(self.weights) == 1:
            return self
        part = copy.copy(self)
        part.weights, part.node = self.weights[index], Node(Call("of_runs", index=index), self.node)
        return part

    def assign(self, centers):
        """Only note what to do: what asks for labels or costs first does it on its way."""
        both = Node(Call("assign", centers=centers), self.node, keep=True)
        # In this process what nobody asks for is let go; on a cluster each would be one more task.
        make: Any = Node if self.blocks.scheduler.remote else self.blocks.make_soon
        parts = (make(attrgetter(name), both) for name in contract.Assignment._fields)
        return contract.Assignment(*(CaseArray(self.blocks, part) for part in parts))

    def trim(self, assignment, m):
        groups = self._groups(assignment, m)
        (within,) = self.arrays.summed(tasks.within, groups, assignment.costs)
        return contract.Grouping(groups, within)

    def _groups(self, assignment: contract.Assignment, m: float) -> CaseArray:
        groups, costs = assignment
        if m > 0:
            out, _ = self.engine.farthest(costs, m)
            groups = self.arrays.made("without", groups, out, soon=True)
        return self.exclude(groups)

    def exclude(self, groups):
        return self.made("exclude", groups, soon=True) if self.missing else groups

    def regroup(self, assignment, m, sums, before):
        groups = self._groups(assignment, m)
        kept = Node(tasks.within, self.arrays.node, groups.node, assignment.costs.node)
        *change, kept = self.blocks.ask(add, self._shifted(sums, before, groups), kept)
        return contract.Regrouping(groups, kept, self.changed(sums, change))

    def _shifted(self, sums, before, after):
        """Return that; a table that is not kept is made of the cases that moved."""
        if self.of_moved is None:
            return super()._shifted(sums, before, after)
        engines, columns = self.of_moved
        facts = {"weights": self.weights, "place": self._place, "dtype": self.dtype}
        made = Call(tasks.changes_of_moved, sums.counts.shape[1], columns, **facts)
        return Node(made, engines, before.node, after.node)

    def in_memory(self):
        engine = self.engine.engine_of_rows(None, self.arrays.host_masses)
        assert self._place is not None
        cells = engine.lay_out(self._place.columns, self.dtype)
        return engine.table_of(cells, self.weights, self._place, self.dtype)

    def typical_norm(self):
        norms, masses, runs = Node(Call("norms"), self.node), None, len(self.weights)
        if self.masses is not None:
            masses = Node(partial(np.tile, reps=runs), self.arrays.masses)
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


class BlocksEngine(SummedInBlocks, contract.Engine):
    """Passes over a Dask array (n, p) whose blocks hold all columns, float32 or float64."""

    searchable = False

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
        super().__init__(BlockOps(data, masses), shape, data.dtype, data.frame, data.missing)
        self.data, self.blocks, self.n_threads = data, data.blocks, n_threads
        self.n_missing, self.n_unobserved = data.n_missing, data.n_unobserved
        self.observed_features, self.rows = data.observed, data.rows
        self.table_bytes = 0  # that a table takes which is kept
        # Threads within a task only where there are fewer blocks than threads.
        remote = self.blocks.scheduler.remote
        threads = 1 if remote else max(1, n_threads // self.blocks.number)
        self.device, self.keeps_rows, self.space = device, data.keep_rows, data.room
        self.engine_type: Any = partial(tasks.engine_of, n_threads=threads)
        self.table_type: Any = partial(tasks.table_of, n_threads=threads)
        self.table_share = TABLE_SHARE
        if device is not None:
            self._use_device(device)
        self.node = self._engines(data.node, self.frame)
        if device is not None and self.keeps_rows:
            self.node = Node(Call("stay", not data.keep_rows), self.node, keep=True)
        self._sample = contract.Latest()

    def _use_device(self, device: str) -> None:
        """Make passes on a device; decide what is kept there, beside blocks that are in work."""
        from rskc.engines.blocks import devices

        self.engine_type = partial(devices.BlockEngine, device=device)
        self.table_type = partial(devices.table_on_device, device=device)
        self.blocks.context = partial(devices.work_on, device)
        scheduler, size = self.blocks.scheduler, self.data.n_bytes * (1 + self.missing)
        scheduler.most_threads = devices.DEVICE_THREADS  # of this process
        in_work = scheduler.n_threads * size * self.data.lengths.max() / self.n_cases
        budget = scheduler.budget(DEVICE_MEMORY, partial(devices.free_on, device))
        budget -= devices.BLOCKS_IN_WORK * in_work
        self.keeps_rows = size <= budget / 2  # else columns with weight have all the room
        self.space = max(0, int(budget - size * self.keeps_rows))
        self.table_share = DEVICE_SHARE

    def _engines(self, rows: Node, frame: Frame) -> Node:
        """Return the engine in memory of each block of rows."""
        made = partial(self.engine_type, missing=self.missing, frame=frame)
        return Node(made, rows, self.arrays.node)

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

    def columns_of(self, cases, columns):
        node = self.data.columns(columns)
        return super().columns_of(cases, columns) if node is None else self.data.read(cases, node)

    def part(self, cases, masses=None):
        key = cases.tobytes(), None if masses is None else masses.tobytes()
        if masses is None and self.masses is not None:
            masses = self.arrays.masses_at(cases)
        made = partial(self.engine_of_rows, cases, masses)
        return self._sample.get(key, lambda: KnownCases(cases, made())).engine

    def forget_part(self):
        self.data.latest_rows, self._sample = contract.Latest(), contract.Latest()

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
        (rows,) = self.blocks.gather(function, self.data.node, only=[0])
        if len(rows) < most and self.blocks.number > 1:
            rows = set().union(*self.blocks.gather(function, self.data.node))
        return min(len(rows), most)

    def largest_cell(self):
        return max(self.data.listed(tasks.largest_cell))

    # ---- Tables

    def _can_rotate(self, weights):
        return False  # many starts are made in memory, and few would not pay it

    def _columns(self, weights):
        """Return the active columns; where these are read alone, any subset saves something."""
        active = np.flatnonzero(weights.any(axis=0))
        return active if self.data.reads_columns else super()._columns(weights)

    def table(self, weights, dtype=None):
        dtype, columns = dtype or self.float64, self._columns(weights)
        weights, place = np.ascontiguousarray(weights[:, columns]), Place(columns, self.frame)
        facts = {"weights": weights, "place": place, "missing": self.missing}
        made = partial(self.table_type, dtype=dtype, **facts)
        cells, engines = self._cells(columns, dtype), self._of_columns(columns)
        node = Node(made, cells, self.arrays.node)
        if cells.keep:
            node = Node(tasks.with_known, node, Node(tasks.known_of, node, keep=True))
        whole = cells.keep or self.masses is not None or (self.device and self.keeps_rows)
        of_moved = None if whole else (engines.node, engines.places)
        return BlocksTable(self, node, dtype, of_moved, **facts)

    def lay_out(self, columns, dtype):
        """Return the node of the cells of tables, kept where there is room.

        Engines in memory lay them out in blocks and, where it is cheap, row by row too.
        """
        item = self._cell_type(dtype).itemsize
        size = int(self.n_cases) * len(columns) * item * (1 + self.missing)
        cheap = size <= tasks.ROWS_BYTES * self.blocks.number or 2 * size <= self.data.n_bytes
        size *= 2 if cheap and self.device is None else 1
        keep = size <= self.space * self.table_share  # those before are given up for them
        self.table_bytes = size if keep else 0
        engines = self._of_columns(columns)
        return Node(Call("lay_out", engines.places, dtype), engines.node, keep=keep)

    # ---- Passes

    def distances(self, labels, centers, weights):
        engines = self._of_columns(np.flatnonzero(weights.any(axis=0)))
        facts = {"centers": centers, "weights": weights}
        facts = {name: np.ascontiguousarray(x[..., engines.columns]) for name, x in facts.items()}
        node = Node(Call("distances", **facts), engines.node, labels.node, keep=True)
        return CaseArray(self.blocks, node)

    def farthest(self, distances, m):
        """Find the least of the m largest of each run; of those that tie with it the first."""
        every = self.n_cases, lambda counts: np.full(len(counts), m)
        found = select(self.blocks, distances.node, *every, self.arrays.masses)
        values = np.where(np.isnan(found.values), np.inf, found.values).astype(found.values.dtype)
        before = np.cumsum(found.ties, axis=0) - found.ties
        ties = known(np.clip(m - found.above - before, 0, found.ties))
        bar = {"values": values, "slack": MASS_SLACK * m}
        mask = self.arrays.made(tasks.cut_off, distances, ties, soon=True, **bar)
        return mask, found.largest

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
        cases = known(in_blocks(sample.cases, self.data.lengths))
        of_sample = np.concatenate(labels.listed(np.take, cases, axis=1), axis=1)
        bracket = sample.bracket(of_sample, means, m, self.n_cases)
        facts = {"centers": means, "weights": self.equal_weights()}
        made = partial(tasks.examined, K=K, bracket=bracket, **facts)
        both = Node(made, self.node, groups.node, labels.node, keep=True)
        distances = CaseArray(self.blocks, Node(attrgetter("distances"), both))
        far, largest = self.farthest(distances, m)
        kept = self.arrays.without(groups, far)
        bracketed = self.blocks.gather(tasks.is_bracketed, both, far.node)
        if largest.max() > contract.OUTLYING_DISTANCE or not all(bracketed):
            return self._without(groups, far, largest, sums)
        sums.change(*self.blocks.ask(partial(tasks.taken_out, K=K), both, groups.node, far.node))
        return contract.Remaining(far, kept, sums)

    # ---- Missing cells

    def little_seen(self, weights, share):
        if not self.missing:
            return super().little_seen(weights, share)
        facts = {"weights": weights, "share": share, "most": MOST_LISTED}
        parts = self.listed(tasks.little_seen, self.arrays.places, **facts)
        first = np.concatenate([part.first for part in parts])[:MOST_LISTED]
        return contract.Listed(sum(part.total for part in parts), first)

    def _factors(self, weights):
        return self.made("_factors", soon=True, weights=weights)

    def factored(self, groups, weights, K):
        return self.summed("factored", groups, weights=weights, K=K)

    def set_aside(self, groups, weights):
        if not self.missing:
            return super().set_aside(groups, weights)
        return self.made("set_aside", groups, soon=True, weights=weights)


def _distinct_rows(X: np.ndarray, most: int) -> set[bytes]:
    return contract.distinct_rows(X.__getitem__, len(X), most)
