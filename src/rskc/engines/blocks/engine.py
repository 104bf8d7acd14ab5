"""The engine for Dask arrays: the passes of the engines in memory, block by block."""

from __future__ import annotations

from functools import partial
from typing import Any

import dask.array as da
import numpy as np

from rskc.engines.blocks import tasks
from rskc.engines.blocks.cases import BlockCases, CaseArray
from rskc.engines.blocks.data import BlockData
from rskc.engines.blocks.order import Selected
from rskc.engines.blocks.plans import Node, collect
from rskc.engines.blocks.tables import BlocksTable, RotatedTable, select_largest
from rskc.engines.interface import Farthest, Listed, Sums
from rskc.engines.memory import (
    FLOAT32,
    FLOAT64,
    ROWS_BYTES,
    SUBSET_BYTES,
    SUBSET_SHARE,
    WORK_BYTES,
    gram_coordinates,
)
from rskc.engines.missing import MissingSums

# So many numbers of cases are named; how many there are is said of all.
MOST_NAMED = 100


class BlocksEngine:
    """Passes over a Dask array (n, p) whose blocks hold all columns, float32 or float64."""

    searchable = False

    def __init__(self, data: BlockData, n_threads: int = 1):
        self.data, self.blocks, self.n_threads = data, data.blocks, n_threads
        self.frame, self.n_missing, self.n_unobserved = (
            data.frame,
            data.n_missing,
            data.n_unobserved,
        )
        self.n_cases, self.n_features = data.n_cases, data.n_features
        self.arrays: Any = BlockCases(self.blocks, data.lengths)
        with np.errstate(over="ignore", under="ignore"):
            self.unit = float(np.power(self.frame.factor, -2.0))
        # Threads within a task only where there are fewer blocks than threads.
        remote = self.blocks.scheduler.remote
        self.threads_a_task = 1 if remote else max(1, n_threads // len(self.blocks))
        made = partial(tasks.engine_of, missing=data.missing, frame=self.frame)
        made = partial(made, n_threads=self.threads_a_task)
        self.node = self.blocks.make(made, data.node, keep=data.keep_engines)
        data.forget()
        self._last: tuple | None = None
        self._rotated: tuple | None = None
        self._gathered: tuple | None = None
        self.work_bytes = max(WORK_BYTES, self.room() // 8)

    def room(self) -> int:
        """Bytes of the budget that neither the data nor a table that is kept take."""
        taken = self._last[2] if self._last is not None and self._last[1].keep else 0
        return max(self.data.room - taken, 0)

    # ---- Cases

    def gather(self, index):
        """Rows of the data; the last are remembered, since starts are drawn among them again."""
        if self._gathered is None or not _same_index(self._gathered[0], index):
            self._gathered = None  # before the next come
            self._gathered = (index, self.data.rows(index, self.node))
        return self._gathered[1]

    def part(self, cases):
        rows = np.ascontiguousarray(self.gather(cases))
        return tasks.engine_of(rows, self.data.missing, self.frame, self.n_threads)

    def numbers(self, cases):
        return self.data.numbers(cases)

    def returned(self, array, unobserved):
        return self.data.returned(array.node, unobserved)

    def as_result(self, array):
        return array

    def distinct(self, most):
        return self.data.distinct(most)

    def largest_cell(self):
        return self.data.largest_cell()

    def little_seen(self, weights, share):
        if not self.data.missing:
            return Listed(0, np.empty(0, np.int64))
        found = partial(tasks.little_seen, weights=weights, share=share, most=MOST_NAMED)
        parts = self.blocks.ask(found, self.node, self.arrays.places, combine=collect)
        first = np.concatenate([part.first for part in parts])[:MOST_NAMED]
        return Listed(sum(part.total for part in parts), first)

    def equal_weights(self):
        if not self.data.missing:
            return np.ones((1, self.n_features))
        return self.data.observed[None].astype(np.float64)

    # ---- Tables

    def table(self, weights):
        return self._columns_table(weights, FLOAT64)

    def compact_table(self, weights):
        if self._wide(weights):
            return self._rotated_table(weights, FLOAT64)
        return self.table(weights)

    def search_table(self, weights):
        if self._wide(weights):
            return self._rotated_table(weights, FLOAT32)
        return self._columns_table(weights, FLOAT32)

    def _wide(self, weights):
        """Whether a rotation saves anything, and has room here for products of all pairs."""
        if self.data.missing or len(weights) > 1 or np.count_nonzero(weights) <= self.n_cases:
            return False
        return 32 * self.n_cases**2 <= max(self.room(), WORK_BYTES)

    def _columns_table(self, weights, dtype):
        columns = self._columns(weights)
        own = np.ascontiguousarray(weights[:, columns])
        recipe = tasks.TableRecipe(
            columns, own, dtype, self.frame, self.data.missing, self.threads_a_task
        )
        layout, make = self._layout(columns, dtype), self.blocks.make
        if not layout.keep:
            return BlocksTable(self, make(partial(tasks.table_of, recipe=recipe), layout), recipe)
        sides = make(partial(tasks.sides_of, recipe=recipe), layout, keep=True)
        node = make(partial(tasks.kept_table, recipe=recipe), layout, sides)
        return BlocksTable(self, node, recipe, kept=True)

    def _layout(self, columns, dtype):
        """The cells of tables, kept where there is room; the last are remembered."""
        key = (dtype, columns.tobytes())
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        self._last = None
        size = self._layout_bytes(len(columns), dtype)
        made = partial(tasks.lay_out, columns=columns, dtype=dtype)
        node = self.blocks.make(made, self.node, keep=size <= self.room() * 2 // 3)
        self._last = (key, node, size)
        return node

    def _layout_bytes(self, q, dtype):
        """As the engines in memory lay out: in blocks and, where that is cheap, row by row too."""
        size = int(self.n_cases) * q * dtype.itemsize * (2 if self.data.missing else 1)
        both = size <= ROWS_BYTES * len(self.blocks) or 2 * size <= self.data.n_bytes
        return 2 * size if both else size

    def _columns(self, weights):
        """Active columns; all of them where a subset would save little of a large copy."""
        active = np.flatnonzero(weights.any(axis=0))
        small = self.n_cases * len(active) * self.data.dtype.itemsize <= SUBSET_BYTES
        if small or len(active) <= SUBSET_SHARE * self.n_features:
            return active
        return np.arange(self.n_features)

    def _rotated_table(self, weights, dtype):
        """Coordinates of the cases in the space that they span, n x n instead of n x q."""
        if self._rotated is None or not np.array_equal(self._rotated[0], weights):
            columns = np.flatnonzero(weights[0])
            own = partial(tasks.weighted_rows, columns=columns, weights=weights[0, columns])
            gram = self.data.products(self.blocks.make(own, self.node))
            self._rotated = (weights, gram_coordinates(gram))
        return RotatedTable(self, self._rotated[1], dtype)

    # ---- Passes

    def sums(self, groups, K):
        kind = MissingSums if self.data.missing else Sums
        return kind(*self.blocks.ask(partial(tasks.engine_sums, K=K), self.node, groups.node))

    def shift(self, sums, before, after):
        K, nodes = sums.counts.shape[1], (self.node, before.node, after.node)
        if isinstance(sums, MissingSums):
            totals, counts, moved = self.blocks.ask(partial(tasks.incomplete_shift, K=K), *nodes)
            sums.totals[...], sums.counts[...] = totals, counts
            return moved
        return sums.change(*self.blocks.ask(partial(tasks.engine_shift, K=K), *nodes))

    def distances(self, labels, centers, weights=None):
        weights = self.equal_weights() if weights is None else weights
        made = partial(tasks.distances, centers=centers, weights=weights)
        node = self.blocks.make(made, self.node, labels.node, keep=True)
        return CaseArray(self.blocks, node)

    def between(self, sums, groups, weights):
        if not self.data.missing:
            return sums.between()
        made = partial(tasks.factored, weights=weights, K=sums.counts.shape[1])
        parts = self.blocks.ask(made, self.node, groups.node)
        return np.where(self.data.observed, sums.factored_between(*parts), -1.0)

    def set_aside(self, groups, weights):
        if not self.data.missing:
            return self.arrays.trimmed(groups)
        made = partial(tasks.set_aside, weights=weights)
        return CaseArray(self.blocks, self.blocks.make_soon(made, self.node, groups.node))

    def farthest(self, distances, m):
        found = select_largest(self, distances.node, m)
        values, ties = self.cut(found, m)
        node = self.blocks.make_soon(partial(tasks.cut_off, values=values), distances.node, ties)
        return Farthest(CaseArray(self.blocks, node), found.largest)

    def cut(self, found: Selected, m: int) -> tuple[np.ndarray, Node]:
        """The values above which cases are cut off, and how many ties in each block."""
        values = np.where(np.isnan(found.values), np.inf, found.values).astype(found.values.dtype)
        return values, self.blocks.hold(list(found.cut(m)))

    def transform(self, centers, weights):
        made = partial(tasks.transform, centers=centers, weights=weights)
        return self.data.returned(self.blocks.make(made, self.node), np.inf, (len(centers),))

    def place(self, centers):
        return self.frame.place(centers)

    def restore(self, centers):
        return (centers / self.frame.factor + self.frame.location).astype(self.data.dtype)


def _same_index(first: np.ndarray | None, second: np.ndarray | None) -> bool:
    if first is None or second is None:
        return first is second
    return np.array_equal(first, second)


def blocks_engine(
    X: da.Array,
    *,
    missing: bool | None = None,
    drop_unobserved: bool = False,
    frame: Any = None,
    n_threads: int = 1,
) -> BlocksEngine:
    """Return the engine for a Dask array; one pass looks at what is in it."""
    return BlocksEngine(BlockData(X, missing, drop_unobserved, frame), n_threads)
