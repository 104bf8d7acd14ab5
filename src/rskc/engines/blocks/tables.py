"""Tables in blocks: what step (a) works on, and the passes over it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from operator import add
from typing import Any

import numpy as np

from rskc.engines.blocks import tasks
from rskc.engines.blocks.ops import BlockOps, CaseArray
from rskc.engines.blocks.order import median
from rskc.engines.blocks.plans import Method, Node, same
from rskc.engines.contract.results import Assignment, Grouping, Moved, Regrouping
from rskc.engines.contract.tables import Table
from rskc.engines.memory.tables import WORK_BYTES, table_of_coordinates
from rskc.engines.sums import Sums


class BlocksTable(Table):
    """Tables of the columns that carry weight, one for each block.

    Coordinates in the space that the cases span are known here too.
    """

    arrays: BlockOps

    def __init__(
        self,
        engine: Any,
        node: Node,
        recipe: tasks.TableRecipe,
        of_moved: tuple[Node, Callable] | None = None,
        coordinates: np.ndarray | None = None,
    ):
        super().__init__(engine.n_cases, recipe.weights, recipe.place, recipe.missing)
        self.engine, self.blocks = engine, engine.blocks
        self._use(engine.arrays)
        self.node, self.recipe, self.coordinates = node, recipe, coordinates
        # Of a table that is not kept: engines, and how sums change with the cases that moved.
        self.of_moved = of_moved

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
        groups = labels
        if m > 0:
            ties, bar = self.engine.cut(self.engine.select_largest(costs, m), m)
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
        return Regrouping(groups, kept, self.engine.changed(sums, change))

    def sums(self, groups, K):
        return self.sums_type(*self.blocks.ask(partial(tasks.sums_of, K=K), self.node, groups.node))

    def shift(self, sums, before, after):
        return self.engine.changed(sums, self.blocks.ask(same, self._shifted(sums, before, after)))

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
        found = self.seeding_table().single_moves(self.arrays.gathered(groups), K)
        return Moved(self.arrays.from_numpy(found.groups), found.sums, found.moves)

    def seeding_table(self):
        if self.coordinates is not None:
            return table_of_coordinates(self.coordinates)
        recipe = self.recipe.in_memory._replace(n_threads=self.engine.n_threads)
        assert recipe.place is not None, "a rotated table is not made of rows of the data"
        engine, (columns, _) = self.engine.in_memory(), recipe.place
        return recipe.table_of_cells(engine.lay_out(columns, recipe.dtype), self.arrays.host_masses)

    def typical_norm(self):
        norms, masses, runs = self.blocks.make(Method("norms"), self.node), None, len(self.weights)
        if self.masses is not None:
            masses = self.blocks.make(partial(np.tile, reps=runs), self.arrays.masses)
        return median(self.blocks, norms, self.n_cases * runs, masses)
