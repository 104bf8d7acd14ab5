"""Passes over blocks as Dask graphs: what is made of each block, what is kept and what comes back.

A :class:`Node` stands for a value in every block: a part of the data, of a table, of labels. It is
only written down how to make it. When a number is asked for (:meth:`Blocks.ask`), all that it needs
goes into one graph, one task for each block; nodes that are worth it are kept where they were made,
on the workers or in memory, and only the number comes back.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement, count
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from dask.optimization import cull

from rskc.engines.schedulers import ClusterScheduler, scheduler_for

# So many results of blocks are brought together at a time, in this order whatever the scheduler:
# sums round alike then.
FAN_IN = 16


class Value:
    """A value in a graph that Dask shall not look into."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __reduce__(self):
        return Value, (self.value,)


class Key(NamedTuple):
    """A value that the user's own graph makes."""

    key: Any


class Node:
    """A value in every block: held, or to be made from those of other nodes."""

    __slots__ = ("__weakref__", "function", "held", "keep", "parents")

    def __init__(self, function: Callable | None, parents: tuple = (), keep: bool = False):
        self.function, self.parents, self.keep = function, parents, keep
        self.held: list[Any] | None = None

    def hold(self, values: list[Any]) -> None:
        """Take the values; what they were made from is no longer needed."""
        self.held, self.function, self.parents = values, None, ()


class Program(NamedTuple):
    """What a task does with the leaves of a block: steps, each with the places of its arguments."""

    steps: list[tuple[Callable, tuple[int, ...]]]
    kept: tuple[int, ...]


class Outcome(NamedTuple):
    """What is kept of a block, and what comes back."""

    kept: tuple
    result: Any


def run_program(program: Value, *leaves: Any) -> Outcome | Any:
    """Make the values of one block; the last comes back, alone if nothing is kept."""
    from rskc._runtime import one_blas_thread  # which asks the engines for their threads

    steps, kept = program.value
    values = [as_value(leaf) for leaf in leaves]
    with one_blas_thread, np.errstate(over="ignore", invalid="ignore"):
        for function, places in steps:
            values.append(function(*(values[place] for place in places)))
    return Outcome(tuple(values[place] for place in kept), values[-1]) if kept else values[-1]


def as_value(leaf: Any) -> Any:
    """What is held for a block, without its wrapping."""
    if isinstance(leaf, Value):
        return leaf.value
    return leaf.kept[0] if isinstance(leaf, Outcome) else leaf


def pick_kept(outcome: Outcome, place: int) -> Any:
    """Part of an outcome that stays."""
    return outcome.kept[place]


def pick_result(outcome: Outcome) -> Any:
    """Part of an outcome that comes back."""
    return outcome.result


def collect(parts: Sequence[list]) -> list:
    """Bring lists together."""
    return [item for part in parts for item in part]


def add(parts: Sequence[tuple]) -> tuple:
    """Sum tuples of numbers or arrays, place by place."""
    return tuple(sum(column[1:], column[0]) for column in zip(*parts, strict=True))


def in_one(combine: Callable, results: list[Any]) -> Any:
    """Bring the results of all blocks together, some at a time, as the tasks of a graph do."""
    while True:
        results = [combine(some) for some in _some(results)]
        if len(results) == 1:
            return results[0]


def _some(items: list[Any]) -> list[list[Any]]:
    return [items[first : first + FAN_IN] for first in range(0, len(items), FAN_IN)]


class Blocks:
    """Blocks of cases, and the scheduler that works on them."""

    def __init__(self, graph: dict, keys: list[Any]):
        self.graph, self.scheduler = graph, scheduler_for()
        self.source = self.hold([Key(key) for key in keys])
        self._waiting: list[weakref.ref[Node]] = []
        self._numbers, self._name = count(), uuid4().hex
        self.n_graphs = 0

    def __len__(self) -> int:
        assert self.source.held is not None
        return len(self.source.held)

    def hold(self, values: list[Any]) -> Node:
        """A node whose values are known here: small ones, or keys of the user's graph."""
        node = Node(None)
        node.hold([part if isinstance(part, Key) else Value(part) for part in values])
        return node

    def make(self, function: Callable, *parents: Node, keep: bool = False) -> Node:
        """A node made, when it is needed, from others."""
        return Node(function, parents, keep)

    def make_soon(self, function: Callable, *parents: Node) -> Node:
        """A node that the next graph makes, so that what it is made from need not be kept."""
        node = Node(function, parents, keep=True)
        self._waiting.append(weakref.ref(node))
        return node

    def ask(
        self,
        function: Callable,
        *parents: Node,
        combine: Callable = add,
        only: Sequence[int] | None = None,
    ) -> Any:
        """Return what a function makes of the nodes in all blocks, or in some, brought together."""
        asked = self.make(function, *parents)
        waiting = self._take_waiting() if only is None else []
        leaves, nodes = _in_order([*waiting, asked])
        kept = [node for node in nodes if node.keep and only is None]
        program = _program(leaves, nodes, kept)
        tasks = self._tasks(leaves, range(len(self)) if only is None else only)
        self.n_graphs += 1
        made, result = self._run(program, tasks, len(kept), combine)
        for place, node in enumerate(kept):
            node.hold([parts[place] for parts in made])
        return result

    def ask_pairs(self, function: Callable, node: Node) -> list[tuple[tuple[int, int], Any]]:
        """Return what a function of two values of a node makes of each pair of blocks."""
        leaves, nodes = _in_order([self.make(_same, node)])
        tasks = self._tasks(leaves, range(len(self)))
        graph, keys = self._graph(_program(leaves, nodes, []), tasks)
        pairs = list(combinations_with_replacement(range(len(self)), 2))
        name = keys[0][0]
        for i, j in pairs:
            graph[name, "pair", i, j] = (function, keys[i], keys[j])
        graph[name, "pairs"] = [(name, "pair", i, j) for i, j in pairs]
        self.n_graphs += 1
        return list(zip(pairs, self.scheduler.get_one(graph, (name, "pairs")), strict=True))

    def _take_waiting(self) -> list[Node]:
        nodes = [node for node in (ref() for ref in self._waiting) if node is not None]
        self._waiting = []
        return [node for node in nodes if node.held is None]

    def _tasks(self, leaves: list[Node], blocks: Sequence[int]) -> list[list[Any]]:
        held = [leaf.held for leaf in leaves]
        return [[values[block] for values in held if values is not None] for block in blocks]

    def _run(self, program, tasks, n_kept, combine):
        """Run a graph; return what is kept of each block, and the result."""
        graph, keys = self._graph(program, tasks)
        if isinstance(self.scheduler, ClusterScheduler):
            kept, result = _left_there(graph, keys, n_kept, combine)
            return self.scheduler.get_and_leave(graph, kept, result)
        outcomes = self.scheduler.get(graph, keys)
        if n_kept == 0:
            return [], in_one(combine, outcomes)
        made = [tuple(Value(part) for part in outcome.kept) for outcome in outcomes]
        return made, in_one(combine, [outcome.result for outcome in outcomes])

    def _graph(self, program: Program, tasks: list[list[Any]]) -> tuple[dict, list]:
        """A graph with a task for each block, and the keys of these tasks."""
        name = f"rskc-{self._name}-{next(self._numbers)}"
        graph: dict[Any, Any] = {name: Value(program)}
        keys = [(name, "block", i) for i in range(len(tasks))]
        needed = []
        for key, leaves in zip(keys, tasks, strict=True):
            needed += [leaf.key for leaf in leaves if isinstance(leaf, Key)]
            arguments = [leaf.key if isinstance(leaf, Key) else leaf for leaf in leaves]
            graph[key] = (run_program, name, *arguments)
        if needed:
            graph |= cull(self.graph, needed)[0]
        return graph, keys


def _left_there(graph, keys, n_kept, combine):
    """Add tasks so that what is kept stays where it is, and results are brought together there.

    If only one value is kept of a block, it stays in its outcome: that saves a task.
    """
    name = keys[0][0]
    kept: list[list[Any]] = [[key] * (n_kept == 1) for key in keys]
    if n_kept > 1:
        kept = [[(name, "kept", i, place) for place in range(n_kept)] for i in range(len(keys))]
        for key, own in zip(keys, kept, strict=True):
            graph |= {part: (pick_kept, key, place) for place, part in enumerate(own)}
    results = keys
    if n_kept > 0:
        results = [(name, "result", i) for i in range(len(keys))]
        graph |= {own: (pick_result, key) for own, key in zip(results, keys, strict=True)}
    level = 0
    while level == 0 or len(results) > 1:
        level, some = level + 1, _some(results)
        results = [(name, "sum", level, i) for i in range(len(some))]
        graph |= {own: (combine, part) for own, part in zip(results, some, strict=True)}
    return kept, results[0]


def _same(value: Any) -> Any:
    return value


def _in_order(roots: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """All nodes that are needed: those that are held, and those to be made, parents first."""
    leaves: dict[int, Node] = {}
    order: dict[int, Node] = {}

    def visit(node: Node) -> None:
        if id(node) in order or id(node) in leaves:
            return
        if node.held is not None:
            leaves[id(node)] = node
            return
        for parent in node.parents:
            visit(parent)
        order[id(node)] = node

    for root in roots:
        visit(root)
    return list(leaves.values()), list(order.values())


def _program(leaves: list[Node], nodes: list[Node], kept: list[Node]) -> Program:
    places = {id(node): place for place, node in enumerate([*leaves, *nodes])}
    steps = []
    for node in nodes:
        assert node.function is not None
        steps.append((node.function, tuple(places[id(parent)] for parent in node.parents)))
    return Program(steps, tuple(places[id(node)] for node in kept))
