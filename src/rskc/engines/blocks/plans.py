"""Passes over blocks as Dask graphs: what is made of each block, what is kept and what comes back.

A :class:`Node` stands for a value in every block: a part of the data, of a table, of labels. It
says how to make it. When sums or values are asked for (:meth:`Blocks.ask`, :meth:`Blocks.gather`),
all that they need goes into one graph; nodes that are worth it are kept where they were made, on
the workers or in memory, and only what was asked for comes back.

What is kept is made by a task of its own, from nothing but what it needs: labels from a table and
centers, never from the labels before. So a block that is lost with its worker is soon made again,
and nothing of earlier iterations has to be remembered for that.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from dask.optimization import cull

from rskc.engines.arrays import PartlyTrimmed
from rskc.engines.blocks.schedulers import ClusterScheduler, arguments_of, make_task, scheduler_for
from rskc.engines.contract import Assignment
from rskc.engines.memory import one_blas_thread

# Results of this many blocks are added at a time, in this order whatever the scheduler: sums round
# alike then.
FAN_IN = 16


@dataclass(eq=False, slots=True)
class Value:
    """A value in a graph that Dask must not look into."""

    value: Any


@dataclass(eq=False, slots=True)
class Packed:
    """Labels or groups, kept in as few bytes as they need: 1 for a case, mostly, instead of 4."""

    array: np.ndarray

    def __sizeof__(self) -> int:
        return self.array.nbytes


def packed(value: Any) -> Any:
    """Return a value as it is kept."""
    if any(hasattr(part, "is_cuda") for part in (value if isinstance(value, tuple) else [value])):
        return Value(value)  # a worker may send it to another one, which Dask cannot do itself
    if isinstance(value, Assignment | PartlyTrimmed):
        return _with_its_labels(packed, value)
    if not isinstance(value, np.ndarray) or value.dtype != np.int32 or value.size == 0:
        return value
    largest = max(int(value.max()), -int(value.min()))
    kind = next((kind for kind in (np.int8, np.int16) if largest <= np.iinfo(kind).max), np.int32)
    return Packed(value.astype(kind))


def unpacked(value: Any) -> Any:
    """Return a value as it was before it was kept."""
    if isinstance(value, Packed):
        return value.array.astype(np.int32)
    return _with_its_labels(unpacked, value)


def _with_its_labels(function: Callable, value: Any) -> Any:
    if isinstance(value, Assignment):
        return Assignment(function(value.labels), value.costs)
    if isinstance(value, PartlyTrimmed):
        return PartlyTrimmed(function(value.array), value.kept)
    return value


def unwrapped(part: Any) -> Any:
    """Return what is held for a block."""
    return unpacked(part.value if isinstance(part, Value) else part)


class Key(NamedTuple):
    """A value that a graph makes."""

    key: Any


class Node:
    """A value in every block: held, or to be made from those of other nodes.

    One with owners is worth keeping as long as one of these lives. Else arrays of length n would
    pile up: distances beside their roots, and roots as long as a mask may be made of them.
    """

    __slots__ = ("__weakref__", "_keep", "among", "function", "held", "owners", "parents", "parts")

    def __init__(self, function: Callable | None, parents: tuple = (), keep: bool = False):
        self.function, self.parents, self._keep = function, parents, keep
        self.held: list[Any] | None = None
        self.among: tuple[Callable, Node] | None = None
        self.owners: weakref.WeakSet[Any] | None = None
        self.parts: weakref.WeakKeyDictionary[Node, str] | None = None

    @property
    def keep(self) -> bool:
        """Whether it is kept when it has been made."""
        return self._keep and (self.owners is None or len(self.owners) > 0)

    def own(self, owner: Any) -> None:
        """Note who may ask for the values."""
        self.owners = weakref.WeakSet() if self.owners is None else self.owners
        self.owners.add(owner)

    def made_from(self, needed: set[int]) -> tuple[Callable | None, tuple]:
        """Return how to make the values, and from what.

        Columns are taken from rows that the same graph needs, and are not read besides.
        """
        if self.among is not None and id(self.among[1]) in needed:
            return self.among[0], (self.among[1],)
        return self.function, self.parents

    def part(self, name: str) -> Node:
        """Return a node of one field of the values, which are named tuples."""
        part = Node(attrgetter(name), (self,))
        self.parts = weakref.WeakKeyDictionary() if self.parts is None else self.parts
        self.parts[part] = name
        return part

    def hold(self, values: list[Any]) -> None:
        """Take the values; what they were made from is no longer needed."""
        self.held, self.function, self.parents = values, None, ()

    def hold_here(self, values: list[Any]) -> None:
        """Take values that are in this process: of a node with parts, those that are in use."""
        values = [value.value if isinstance(value, Value) else value for value in values]
        if self.parts is None:
            self.hold([Value(value) for value in values])
            return
        for part, name in list(self.parts.items()):
            part.hold([Value(getattr(value, name)) for value in values])

    def of_blocks(self, blocks: Sequence[int]) -> list[Any]:
        """Return the values that are held of some blocks."""
        assert self.held is not None
        return [self.held[block] for block in blocks]


class Method:
    """A call of a method of the first value, with the others, more arguments and some options."""

    def __init__(self, name: str, *more: Any, **options: Any):
        self.__name__, self.more, self.options = name, more, options

    def __call__(self, owner: Any, *values: Any) -> Any:
        return getattr(owner, self.__name__)(*values, *self.more, **self.options)


# What a task does with the leaves of a block: steps, each with the places of its arguments.
Program = list[tuple[Callable, tuple[int, ...]]]


def keep_program(program: Value, *leaves: Any) -> Any:
    """Make the values of one block, and return the last as it is kept."""
    return packed(run_program(program, *leaves))


def run_program(program: Value, *leaves: Any) -> Any:
    """Make the values of one block, and return the last."""
    values = [unwrapped(leaf) for leaf in leaves]
    with one_blas_thread, np.errstate(over="ignore", invalid="ignore"):
        for function, places in program.value:
            values.append(function(*(values[place] for place in places)))
    return values[-1]


def add(parts: Sequence[Any]) -> Any:
    """Sum numbers or arrays, or tuples of them place by place."""
    if isinstance(parts[0], tuple):
        return tuple(add(column) for column in zip(*parts, strict=True))
    return sum(parts[1:], parts[0])


def add_all(results: Sequence[Any]) -> Any:
    """Sum the results of all blocks, some at a time, as the tasks of a graph do."""
    while True:
        results = [add(some) for some in _batches(results)]
        if len(results) == 1:
            return results[0]


def _batches(items: Sequence[Any]) -> list[Any]:
    return [items[first : first + FAN_IN] for first in range(0, len(items), FAN_IN)]


class Blocks:
    """Blocks of cases, and the scheduler that works on them."""

    def __init__(self, graph: dict, keys: list[Any]):
        self.graph, self.scheduler = graph, scheduler_for()
        self.source = self.hold([Key(key) for key in keys])
        self._waiting: list[weakref.ref[Node]] = []
        self.n_graphs = 0

    def __len__(self) -> int:
        assert self.source.held is not None
        return len(self.source.held)

    def hold(self, values: list[Any]) -> Node:
        """Return a node whose values are known here: small ones, or keys of the user's graph."""
        node = Node(None)
        node.hold([part if isinstance(part, Key) else Value(part) for part in values])
        return node

    def make(self, function: Callable, *parents: Node, keep: bool = False) -> Node:
        """Return a node that is made from others when it is needed."""
        return Node(function, parents, keep)

    def make_soon(self, function: Callable, *parents: Node) -> Node:
        """Return a node that the next graph makes, so that its parents need not be kept."""
        node = Node(function, parents, keep=True)
        self._waiting.append(weakref.ref(node))
        return node

    def ask(self, function: Callable, *parents: Node) -> Any:
        """Return the sums over all blocks of what a function makes of the nodes."""
        return self._run(self.make(function, *parents), add_all)

    def gather(
        self, function: Callable, *parents: Node, only: Sequence[int] | None = None
    ) -> list[Any]:
        """Return what a function makes of the nodes in each of all blocks, or of some."""
        return self._run(self.make(function, *parents), list, only)

    def _run(self, asked: Node, combine: Callable, only: Sequence[int] | None = None) -> Any:
        blocks = range(len(self)) if only is None else only
        kept: list[Node] = []
        if only is None:
            waiting = (node for node in (ref() for ref in self._waiting) if node is not None)
            roots = [*(node for node in waiting if node.held is None), asked]
            self._waiting = []
            kept = [node for node in _needed(roots) if node.keep]
        graph, (*made, results) = self._graph([*kept, asked], blocks)
        self.n_graphs += 1
        if isinstance(self.scheduler, ClusterScheduler):
            own = dict(zip(blocks, zip(*made, results, strict=True), strict=True))
            last = _add_last(graph, results, combine)
            held, result = self.scheduler.get_and_leave(graph, made, last, own)
        else:
            keys = [list(own) for own in zip(*made, results, strict=True)]
            each = self.scheduler.get_blocks(graph, keys)
            *held, parts = zip(*each, strict=True)
            result = combine(parts)
        hold = Node.hold if self.scheduler.remote else Node.hold_here
        for node, own in zip(kept, held, strict=True):
            hold(node, own)
        return result

    def _graph(self, nodes: list[Node], blocks: Sequence[int]) -> tuple[dict, list[list]]:
        """Return a graph with a task for each node and block, and the keys of these tasks.

        A node that comes later uses what the tasks of those before it have made.
        """
        graph: dict[Any, Any] = {}
        made: dict[int, list[Key]] = {}
        needed = {id(node) for node in _needed(nodes)}
        for node in nodes:
            leaves, program = _program(node, made, needed)
            name, run = _name(node.function), keep_program if node.keep else run_program
            graph[f"{name}-program"] = Value(program)
            columns = [made.get(id(leaf)) or leaf.of_blocks(blocks) for leaf in leaves]
            for i in range(len(blocks)):
                parts = (column[i] for column in columns)
                arguments = (part.key if isinstance(part, Key) else part for part in parts)
                graph[name, i] = make_task(run, f"{name}-program", *arguments)
            made[id(node)] = [Key((name, i)) for i in range(len(blocks))]
        taken = (part for task in graph.values() for part in arguments_of(task))
        wanted = {part for part in taken if isinstance(part, str | tuple)} & self.graph.keys()
        if wanted:
            graph |= cull(self.graph, list(wanted))[0]
        return graph, [[key for (key,) in made[id(node)]] for node in nodes]


def _name(function: Any) -> str:
    """Return a name for the tasks of a function, as a dashboard shows it, and unlike any other."""
    function = getattr(function, "func", function)
    name = getattr(function, "__name__", type(function).__name__)
    return f"rskc-{name.strip('_')}-{uuid4().hex}"


def _add_last(graph: dict, results: list[Any], combine: Callable) -> Any:
    """Add the tasks that bring results together, and return the key of the last."""
    level, name = 0, _name(combine)
    if combine is list:
        graph[name] = make_task(list, results)
        return name
    while level == 0 or len(results) > 1:
        level, some = level + 1, _batches(results)
        results = [(name, level, i) for i in range(len(some))]
        graph |= {own: make_task(add, part) for own, part in zip(results, some, strict=True)}
    return results[0]


def same(value: Any) -> Any:
    """Return a value as it is."""
    return value


def _needed(roots: Sequence[Node]) -> list[Node]:
    """Return all nodes that are to be made for some, parents first."""
    order: dict[int, Node] = {}
    for root in roots:
        _visit(root, {}, order, set())
    return [node for node in order.values() if node.held is None]


def _visit(node: Node, made: dict[int, Any], order: dict[int, Node], needed: set[int]) -> None:
    """Add a node to those in order, after what it is made from: what is held or made has that.

    No function in a function: that would be a cycle, which holds all values until Python looks for
    cycles. It does not look while arrays grow.
    """
    if id(node) in order:
        return
    if node.held is None and id(node) not in made:
        for parent in node.made_from(needed)[1]:
            _visit(parent, made, order, needed)
    order[id(node)] = node


def _program(root: Node, made: dict[int, Any], needed: set[int]) -> tuple[list[Node], Program]:
    """Return what makes a node, and the leaves, held or made by others, that it starts from."""
    found: dict[int, Node] = {}
    _visit(root, made, found, needed)
    known = {key for key, node in found.items() if node.held is not None or key in made}
    leaves = [node for key, node in found.items() if key in known]
    order = [node for key, node in found.items() if key not in known]
    places = {id(node): place for place, node in enumerate([*leaves, *order])}
    steps: Program = []
    for node in order:
        function, parents = node.made_from(needed)
        assert function is not None
        steps.append((function, tuple(places[id(parent)] for parent in parents)))
    return leaves, steps
