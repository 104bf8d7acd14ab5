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
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any
from uuid import uuid4

import numpy as np
from dask.optimization import cull

from rskc.engines.arrays import labels_of, with_labels
from rskc.engines.blocks.schedulers import Value, add, scheduler_for
from rskc.engines.memory import one_blas_thread


def packed(value: Any) -> Any:
    """Return a value as it is kept: labels in as few bytes as they need, mostly 1 instead of 4."""
    if hasattr(value, "is_cuda"):
        return Value(value)  # a worker may send it to another one, which Dask cannot do itself
    labels = labels_of(value)
    if not isinstance(labels, np.ndarray) or labels.dtype != np.int32 or labels.size == 0:
        return value
    least = min(int(labels.min()), -1 - int(labels.max()))
    return with_labels(value, labels.astype(np.min_scalar_type(least)))


def unpacked(value: Any) -> Any:
    """Return what is held for a block as it was before it was kept."""
    if isinstance(value, Value):
        return unpacked(value.value)
    labels = labels_of(value)
    if isinstance(labels, np.ndarray) and labels.dtype in (np.int8, np.int16):
        return with_labels(value, labels.astype(np.int32))
    return value


class Node:
    """A value in every block: held, or to be made from those of other nodes.

    What is held is a key of the user's graph (a tuple), a :class:`Value`, or a future of a cluster.
    A node with an owner is worth keeping as long as that lives. Else arrays of length n would pile
    up: distances beside their roots, and roots as long as a mask may be made of them.
    """

    __slots__ = ("__weakref__", "_keep", "among", "function", "held", "owner", "parents")

    def __init__(
        self,
        function: Callable | None,
        *parents: Node,
        keep: bool = False,
        held: Sequence[Any] | None = None,
    ):
        self.function, self.parents, self._keep = function, parents, keep
        self.held: Any = held
        # Another way to make it, from a node that the same graph may need anyway.
        self.among: tuple[Callable, Node] | None = None
        self.owner: weakref.ref[Any] | None = None  # who may ask for the values

    @property
    def keep(self) -> bool:
        """Whether it is kept when it has been made."""
        return self._keep and (self.owner is None or self.owner() is not None)

    def made_from(self, needed: set[int]) -> tuple[Callable | None, tuple]:
        """Return how to make the values, and from what.

        Columns are taken from rows that the same graph needs, and are not read besides.
        """
        if self.among is not None and id(self.among[1]) in needed:
            return self.among[0], (self.among[1],)
        return self.function, self.parents


def known(values: Iterable[Any]) -> Node:
    """Return a node whose values are known here, and small."""
    return Node(None, held=[Value(value) for value in values])


class Call:
    """A call of a function, or of a method of the first value, with more arguments behind those."""

    def __init__(self, function: Callable | str, *more: Any, **options: Any):
        self.function, self.more, self.options = function, more, options

    def __call__(self, first: Any, *values: Any) -> Any:
        values = *values, *self.more
        if isinstance(self.function, str):
            return getattr(first, self.function)(*values, **self.options)
        return self.function(first, *values, **self.options)


def run_program(program: Value, *leaves: Any) -> Any:
    """Make the values of one block, and return the last, as it is kept if it is.

    Values have the numbers of their nodes. The program says those of the leaves, then the steps,
    each a number, a function and the numbers of its arguments, and the context of all this.
    """
    numbers, steps, context, keep = program.value
    values, number = dict(zip(numbers, map(unpacked, leaves), strict=True)), None
    with one_blas_thread, np.errstate(over="ignore", invalid="ignore"), context():
        for number, function, parents in steps:
            values[number] = function(*(values[parent] for parent in parents))
    return packed(values[number]) if keep else values[number]


class Blocks:
    """Blocks of cases, and the scheduler that works on them."""

    def __init__(self, graph: dict, keys: list[Any]):
        self.graph, self.scheduler = graph, scheduler_for()
        self.source = Node(None, held=keys)
        self.context: Callable = nullcontext
        self.number, self.n_graphs = len(keys), 0
        self._waiting: list[weakref.ref[Node]] = []

    def make_soon(self, function: Callable, *parents: Node) -> Node:
        """Return a node that the next graph makes, so that its parents need not be kept."""
        node = Node(function, *parents, keep=True)
        self._waiting.append(weakref.ref(node))
        return node

    def ask(self, function: Callable, *parents: Node) -> Any:
        """Return the sums over all blocks of what a function makes of the nodes."""
        return self._run(Node(function, *parents), add)

    def gather(
        self, function: Callable, *parents: Node, only: Sequence[int] | None = None
    ) -> list[Any]:
        """Return what a function makes of the nodes in each of all blocks, or of some."""
        return self._run(Node(function, *parents), list, only)

    def _run(self, asked: Node, combine: Callable, only: Sequence[int] | None = None) -> Any:
        blocks = range(self.number) if only is None else only
        kept: list[Node] = []
        if only is None:
            waiting = [node for ref in self._waiting if (node := ref()) and node.held is None]
            self._waiting = []
            kept = [node for node in _needed([*waiting, asked]) if node.keep]
        graph, keys = self._graph([*kept, asked], blocks)
        self.n_graphs += 1
        held, result = self.scheduler.run(graph, keys, combine)
        for node, values in zip(kept, held, strict=True):
            # What they were made from is no longer needed.
            node.held, node.function, node.parents = values, None, ()
        return result

    def _graph(self, nodes: list[Node], blocks: Sequence[int]) -> tuple[dict, list[list]]:
        """Return a graph with a task for each node and block, and the keys of these tasks.

        A node that comes later uses what the tasks of those before it have made.
        """
        graph: dict[Any, Any] = {}
        made: dict[int, list] = {}
        needed, taken = {id(node) for node in _needed(nodes)}, set()
        for node in nodes:
            leaves, steps = _steps(node, made, needed)
            program = [id(leaf) for leaf in leaves], steps, self.context, node.keep
            # As a dashboard shows it, and unlike any other.
            function = getattr(node.function, "function", node.function)
            title = getattr(getattr(function, "func", function), "__name__", str(function))
            name = f"rskc-{title.strip('_')}-{uuid4().hex}"
            graph[f"{name}-program"] = Value(program)
            columns = [made.get(id(leaf)) or [leaf.held[i] for i in blocks] for leaf in leaves]
            made[id(node)] = [(name, i) for i in range(len(blocks))]
            for key, *parts in zip(made[id(node)], *columns, strict=True):
                graph[key] = run_program, f"{name}-program", *parts
                taken |= {part for part in parts if isinstance(part, tuple)}
        if wanted := taken & self.graph.keys():
            graph |= cull(self.graph, list(wanted))[0]
        return graph, [made[id(node)] for node in nodes]


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


def _steps(root: Node, made: dict[int, Any], needed: set[int]) -> tuple[list[Node], list]:
    """Return the leaves, held or made by others, that a node is made from, and the steps."""
    order: dict[int, Node] = {}
    _visit(root, made, order, needed)
    leaves, steps = [], []
    for number, node in order.items():
        if node.held is not None or number in made:
            leaves.append(node)
        else:
            function, parents = node.made_from(needed)
            steps.append((number, function, [id(parent) for parent in parents]))
    return leaves, steps
