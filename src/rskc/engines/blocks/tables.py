"""Tables in blocks: what step (a) works on, and the passes over it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from operator import add
from typing import Any

import numpy as np

from rskc.engines.base import BaseTable, Sums
from rskc.engines.blocks import tasks
from rskc.engines.blocks.cases import CaseArray
from rskc.engines.blocks.order import Selected, median, select
from rskc.engines.blocks.plans import Method, Node, same
from rskc.engines.interface import Assignment, Grouping, Moved, Regrouping
from rskc.engines.memory import WORK_BYTES, table_of_coordinates
from rskc.engines.missing import MissingSums


class BlocksTable(BaseTable):
    """Tables of the columns that carry weight, one for each block."""

    def __init__(
        self,
        engine: Any,
        node: Node,
        recipe: tasks.TableRecipe,
        of_moved: tuple[Node, Callable] | None = None,
    ):
        super().__init__(engine.n_cases, recipe.weights, recipe.place)
        self.engine, self.blocks, self.arrays = engine, engine.blocks, engine.arrays
        self.node, self.recipe = node, recipe
        # Of a table that is not kept: engines, and how sums change with the cases that moved.
        self.of_moved = of_moved
        self.sums_type = MissingSums if recipe.missing else Sums

    @property
    def work_bytes(self):
        """A batch reads the table once for all its runs: large tables get a third of their size."""
        wanted = max(WORK_BYTES, self.n_cases * self.n_columns * 4 // 3)
        return min(wanted, max(WORK_BYTES, self.engine.room() // 2))

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
        return Assignment(*(CaseArray(self.blocks, both.part(name)) for name in Assignment._fields))

    def trim(self, assignment, m):
        groups = self._groups(assignment, m)
        (within,) = self.blocks.ask(same, self._within(groups, assignment.costs))
        return Grouping(groups, within)

    def _groups(self, assignment: Assignment, m: float) -> CaseArray:
        labels, costs = assignment.labels.node, assignment.costs.node
        groups = self._cut(labels, costs, m) if m > 0 else labels
        return self.exclude(CaseArray(self.blocks, groups))

    def _cut(self, labels: Node, costs: Node, m: float) -> Node:
        values, ties = self.engine.cut(select_largest(self.engine, costs, m), m)
        return self.blocks.make_soon(partial(tasks.trim, values=values), labels, costs, ties)

    def _within(self, groups: CaseArray, costs: CaseArray) -> Node:
        """Return the costs of kept cases summed, as the only item of a tuple."""
        return self.blocks.make(tasks.within, groups.node, costs.node)

    def exclude(self, groups):
        if not self.recipe.missing:
            return groups
        return CaseArray(
            self.blocks, self.blocks.make_soon(Method("exclude"), self.node, groups.node)
        )

    def regroup(self, assignment, m, sums, before):
        groups = self._groups(assignment, m)
        moved = self._shifted(sums, before, groups)
        *change, kept = self.blocks.ask(add, moved, self._within(groups, assignment.costs))
        return Regrouping(groups, kept, sums.change(*change))

    def sums(self, groups, K):
        return self.sums_type(*self.blocks.ask(partial(tasks.sums_of, K=K), self.node, groups.node))

    def shift(self, sums, before, after):
        return sums.change(*self.blocks.ask(same, self._shifted(sums, before, after)))

    def _shifted(self, sums: Sums, before: CaseArray, after: CaseArray) -> Node:
        """Return how sums change; a table that is not kept is made of the cases that moved."""
        K, groups = sums.counts.shape[1], (before.node, after.node)
        if self.of_moved is None:
            return self.blocks.make(partial(tasks.changes_of, K=K), self.node, *groups)
        engines, function = self.of_moved
        function = partial(function, K=K, recipe=self.recipe)  # the weights of some runs, perhaps
        return self.blocks.make(function, engines, *groups)

    def single_moves(self, groups, K):
        """Move cases one after the other in memory: it is asked of small tables only."""
        moved, sums, moves = self.seeding_table().single_moves(groups.to_numpy(), K)
        return Moved(self.arrays.from_numpy(moved), sums, moves)

    def seeding_table(self):
        recipe = self.recipe._replace(n_threads=self.engine.n_threads)
        return recipe.table_of_rows(self.engine.rows(None))

    def typical_norm(self):
        norms = self.blocks.make(Method("norms"), self.node)
        return median(self.blocks, norms, self.n_cases * len(self.weights))


class RotatedTable(BlocksTable):
    """Coordinates with the same distances, which are also known here."""

    def __init__(self, engine: Any, rows: np.ndarray, dtype: np.dtype):
        self.rows = rows.astype(dtype)
        recipe = tasks.TableRecipe(None, np.ones((1, rows.shape[1])), dtype, False, False, 1)
        parts = engine.blocks.hold(np.split(self.rows, engine.arrays.firsts[1:]))
        node = engine.blocks.make(table_of_coordinates, parts)
        super().__init__(engine, node, recipe)

    def seeding_table(self):
        return table_of_coordinates(self.rows)


def select_largest(engine: Any, node: Node, m: float) -> Selected:
    """Find the least of the m largest values of each run."""
    return select(engine.blocks, node, engine.n_cases, lambda counts: np.full(len(counts), m))
