"""The blocks of a Dask array: how long they are, what is missing in them, where the data lie."""

from collections.abc import Sequence
from functools import partial
from operator import attrgetter, getitem
from typing import Any
from uuid import uuid4

import dask
import dask.array as da
import numpy as np

from rskc.engines.blocks import tasks
from rskc.engines.blocks.ops import InBlocks, in_blocks
from rskc.engines.blocks.plans import Blocks, Node, known, same, unpacked
from rskc.engines.contract import Latest
from rskc.engines.memory import Frame, observed_frame, sample_steps
from rskc.exceptions import unobserved_error


class BlockData(InBlocks):
    """A Dask array (n, p) after one pass that looked at all of it.

    Blocks without any case, or in which all cases are unobserved and these are dropped, are left
    out. The pass brings rows of the cases ``wanted`` along, where the lengths of blocks are known.
    """

    def __init__(
        self,
        X: da.Array,
        missing: bool | None,
        drop_unobserved: bool,
        frame: Frame | None,
        wanted: np.ndarray | None = None,
    ):
        self.n_features, self.dtype, self.chunks = X.shape[1], np.dtype(X.dtype), X.chunks[0]
        self._read_columns, self._columns = getattr(X, "of_columns", None), Latest()
        are_views = getattr(X, "are_views", False)  # of an array that is in memory anyway
        self.latest_rows = Latest()
        graph = graph_of(X)
        keys = [(X.name, i, 0) for i in range(len(self.chunks))]
        every = Blocks(graph, keys)
        self.budget = every.scheduler.budget()
        # Not while the number of cases is unknown (NaN).
        cell_bytes = self.n_features * self.dtype.itemsize
        keep = are_views or sum(self.chunks) * cell_bytes <= self.budget / 2
        clean = partial(tasks.clean, dtype=self.dtype)
        rows = Node(clean, every.source, keep=keep)
        inspected = Node(tasks.inspect, rows, keep=True)
        numbers = self._come_along(wanted, keep)
        parts = inspected, rows, known(in_blocks(numbers, self.chunks))
        found, brought = zip(*every.gather(tasks.facts_and_rows, *parts), strict=True)
        self._learn(found, missing, drop_unobserved)
        differs = self.n_unobserved > 0 or not np.array_equal(self.all_lengths, self.chunks)
        # Rows that came with this pass, and the sorted numbers of their cases.
        self._brought = None if differs else (numbers, np.concatenate(brought))
        self.blocks = Blocks(graph, [keys[i] for i in self.used])
        self.n_bytes = self.n_cases * cell_bytes
        self.keep_rows = are_views or self.n_bytes <= self.budget / 2
        self.room = self.budget - (self.n_bytes if self.keep_rows else 0)
        # Whether some columns are read apart from the others: not where all are kept anyway.
        self.reads_columns = self._read_columns is not None and not self.keep_rows
        found_of_used = Node(None, held=[inspected.held[i] for i in self.used])
        self.unobserved = Node(attrgetter("unobserved"), found_of_used)
        held = None if rows.held is None else [rows.held[i] for i in self.used]
        self.node = Node(clean, self.blocks.source, keep=self.keep_rows, held=held)
        if self.n_unobserved:
            self.node = Node(tasks.seen_rows, self.node, self.unobserved, keep=self.keep_rows)
        self.frame = frame or self._frame()
        if wanted is not None and self._brought is not None:
            self.rows(wanted)
        self._brought = None

    def _come_along(self, wanted: np.ndarray | None, are_kept: bool) -> np.ndarray:
        """Return the numbers of rows that come with the first pass: none if n is not known.

        Those that are wanted, and those that a frame is made of: all of them where columns that
        hardly vary would have the data read once more.
        """
        n = sum(self.chunks)
        if not n > 0:
            return np.empty(0, np.int64)
        steps = sample_steps(n, self.n_features)[: 1 if are_kept else 2]
        numbers = [np.arange(0, n, step) for step in steps]
        return np.unique(np.concatenate(numbers if wanted is None else [*numbers, wanted]))

    def _learn(
        self, found: Sequence[tasks.Facts], missing: bool | None, drop_unobserved: bool
    ) -> None:
        if any(block.infinite for block in found):
            raise ValueError(
                f"Input X contains infinity or a value too large for dtype({self.dtype.name!r})."
            )
        every = np.array([block.length for block in found])
        unobserved = np.array([block.unobserved for block in found])
        self.n_missing = sum(block.missing for block in found)
        if not drop_unobserved:
            self.n_missing += int(unobserved.sum()) * self.n_features
            unobserved[:] = 0
        self.all_lengths, self.n_unobserved = every, int(unobserved.sum())
        self.observed = np.any([block.observed for block in found], axis=0)
        self.missing = self.n_missing > 0 or bool(missing)
        self.used = np.flatnonzero(every > unobserved)
        self.lengths = (every - unobserved)[self.used]
        self.n_cases = int(self.lengths.sum())
        if every.sum() == 0:
            raise ValueError(
                f"Found array with 0 sample(s) (shape=(0, {self.n_features})) while a minimum of "
                "1 is required."
            )
        if self.n_cases == 0:
            raise unobserved_error(int(every.sum()))

    # ---- Columns

    def columns(self, columns: np.ndarray) -> Node | None:
        """Return some columns of all cases, if these are read apart; the last are remembered."""
        if not self.reads_columns or len(columns) in (0, self.n_features):
            return None
        return self._columns.get(columns.tobytes(), partial(self._some_columns, columns))

    def _some_columns(self, columns: np.ndarray) -> Node | None:
        assert self._read_columns is not None
        array = self._read_columns(columns)
        if len(array.chunks[0]) != len(self.chunks):  # Dask joins blocks of which little is read
            return None
        self.blocks.graph |= graph_of(array)
        source = Node(None, held=[(array.name, int(i), 0) for i in self.used])
        node = Node(partial(tasks.clean, dtype=self.dtype), source)
        if self.n_unobserved:
            node = Node(tasks.seen_rows, node, self.unobserved)
        node.among = partial(np.take, indices=columns, axis=1), self.node
        return node

    # ---- Rows

    def rows(self, index: np.ndarray | None) -> np.ndarray:
        """Return rows by the sorted numbers of their cases, or all; the last are kept."""
        key = (None if index is None else index.tobytes(),)
        return self.latest_rows.get(key, partial(self.read, index, self.node))

    def read(self, index: np.ndarray | None, node: Node) -> np.ndarray:
        """Return rows of a node, by the sorted numbers of their cases, or all."""
        if index is None:
            return np.concatenate(self.blocks.gather(same, node))
        if node is self.node and self._brought is not None:
            numbers, rows = self._brought
            among = np.isin(numbers, index, assume_unique=True)
            if np.count_nonzero(among) == len(index):
                return rows[among]
        wanted = in_blocks(index, self.lengths)
        some = [i for i, part in enumerate(wanted) if len(part)]
        return np.concatenate(self.blocks.gather(getitem, node, known(wanted), only=some))

    def _frame(self) -> Frame:
        """Return the frame that an engine in memory has: it looks at some rows only."""
        few, many = sample_steps(self.n_cases, self.n_features)
        rows = self.read(np.arange(0, self.n_cases, few), self.node)
        if self.missing:
            return observed_frame(self._with_observed(rows))
        ordered, last = np.sort(rows, axis=0), len(rows) - 1
        varies = (ordered[last - last // 4] != ordered[last // 4]).all()  # the middle half
        if varies or many == few:
            return Frame.from_rows(rows, rows)
        return Frame.from_rows(rows, self.read(np.arange(0, self.n_cases, many), self.node))

    def _with_observed(self, rows: np.ndarray) -> np.ndarray:
        """Return rows with the first observed cells of each column of which they show none."""
        columns = np.flatnonzero(np.isnan(rows).all(axis=0) & self.observed)
        if len(columns):
            found = self.listed(tasks.first_observed, columns=columns, most=len(rows))
            for j, cells in zip(columns, zip(*found, strict=True), strict=True):
                rows[:, j] = np.resize(np.concatenate(cells), len(rows))
        return rows

    def numbers(self, cases: np.ndarray) -> np.ndarray:
        """Return the numbers of cases in the data, unobserved ones counted."""
        if self.n_unobserved == 0 or len(cases) == 0:
            return cases
        starts = (np.cumsum(self.all_lengths) - self.all_lengths)[self.used]
        order, numbers = np.argsort(cases), np.empty_like(cases)
        wanted = known(in_blocks(cases[order], self.lengths))
        found = self.blocks.gather(tasks.number_of_seen, self.unobserved, wanted)
        parts = [start + part for start, part in zip(starts, found, strict=True)]
        numbers[order] = np.concatenate(parts)
        return numbers

    def returned(self, node: Node, unobserved: Any) -> da.Array:
        """Return a Dask array (n,), chunked as the data, with unobserved cases put back."""
        made = partial(tasks.put_back, value=unobserved)
        node = Node(made, node, self.unobserved, keep=True)
        (dtype,) = set(self.blocks.gather(attrgetter("dtype"), node))
        name = f"rskc-cases-{uuid4().hex}"
        lengths = tuple(map(int, self.all_lengths))
        graph: dict[Any, Any] = {
            (name, i): np.full(length, unobserved, dtype) for i, length in enumerate(lengths)
        }
        for i, part in zip(self.used, node.held, strict=True):
            # Labels are kept in fewer bytes than the user gets.
            graph[name, int(i)] = unpacked, part
        return da.Array(graph, name, (lengths,), dtype)


def graph_of(X: da.Array) -> dict[Any, Any]:
    """Return the optimized graph of an array, with the futures of what a cluster holds already.

    Dask's optimization leaves these out, since the scheduler knows them.
    """
    held = {
        key: value
        for key, value in dict(X.__dask_graph__()).items()
        if type(value).__module__.startswith("distributed.")
    }
    (X,) = dask.optimize(X)
    return dict(X.__dask_graph__()) | held


# ---- What is read of a Dask array


def spaced_rows(X: Any, n: int) -> np.ndarray:
    """Read evenly spaced blocks that have so many cases together."""
    lengths = np.array(X.chunks[0])
    number = int(np.clip(np.ceil(n * len(lengths) / lengths.sum()), 1, len(lengths)))
    numbers = np.unique(np.linspace(0, len(lengths) - 1, number).astype(int)).tolist()
    rows = dask.compute(*(X.blocks[i] for i in numbers))
    return np.ascontiguousarray(np.concatenate(rows))


def cut(X: np.ndarray, size: int) -> da.Array:
    """Return blocks of an array, or of a map, of so many cases: nothing of it is copied or read.

    Dask's ``from_array`` would copy all of it.
    """
    X, name, firsts = np.asarray(X), f"rskc-rows-{uuid4().hex}", range(0, len(X), size)
    graph = {(name, i, 0): X[first : first + size] for i, first in enumerate(firsts)}
    chunks = tuple(map(len, graph.values())), X.shape[1:]
    blocks: Any = da.Array(graph, name, chunks, meta=X[:0])
    blocks.are_views = True
    return blocks


def counted(rows: np.ndarray, n_blocks: int, like: Any, cells: list[int]) -> Any:
    """Return a Dask array of rows that notes how many cells are read of it each time.

    Its columns are read apart if those of another are.
    """
    blocks: Any = cut(rows, -(-len(rows) // n_blocks))

    def read(block: np.ndarray, columns: Any) -> np.ndarray:
        cells.append(block[:, columns].size)
        return block[:, columns].copy()

    def some(columns: Any) -> Any:
        how = {"dtype": rows.dtype, "meta": np.empty((0, 0), rows.dtype)}
        how["chunks"] = blocks.chunks[0], (rows[:1, columns].shape[1],)
        return blocks.map_blocks(read, columns, **how)

    X = some(slice(None))
    if hasattr(like, "of_columns"):
        X.of_columns = some
    return X
