"""The blocks of a Dask array: how long they are, what is missing in them, where the data lie."""

from collections.abc import Sequence
from functools import partial
from operator import attrgetter, getitem
from typing import Any, NamedTuple
from uuid import uuid4

import dask
import dask.array as da
import numpy as np

from rskc.engines.blocks import tasks
from rskc.engines.blocks.plans import Blocks, Key, Node, same, unwrapped
from rskc.engines.blocks.schedulers import make_task
from rskc.engines.contract import Latest
from rskc.engines.memory import Frame, observed_frame, sample_steps
from rskc.exceptions import unobserved_error


class Brought(NamedTuple):
    """Rows that came with another pass, and the sorted numbers of their cases."""

    numbers: np.ndarray
    rows: np.ndarray


class BlockData:
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
        self._are_views = getattr(X, "are_views", False)  # of an array that is in memory anyway
        graph = graph_of(X)
        keys = [(X.name, i, 0) for i in range(len(self.chunks))]
        every = Blocks(graph, keys)
        self.budget = every.scheduler.budget()
        keep = self._is_kept(sum(self.chunks))
        node = every.make(partial(tasks.clean, dtype=self.dtype), every.source, keep=keep)
        inspected = every.make(tasks.inspect, node, keep=True)
        numbers = self._come_along(wanted, keep)
        along = every.hold(in_blocks(numbers, self.chunks))
        found, rows = zip(*every.gather(tasks.facts_and_rows, inspected, node, along), strict=True)
        self._learn(found, missing, drop_unobserved)
        self._brought = None if self._differs else Brought(numbers, np.concatenate(rows))
        self.blocks = Blocks(graph, [keys[i] for i in self.used])
        self.n_bytes = size = self.n_cases * self.n_features * self.dtype.itemsize
        self.keep_rows = self._is_kept(self.n_cases)
        self.room = self.budget - (size if self.keep_rows else 0)
        self.unobserved = self.blocks.make(attrgetter("unobserved"), self._of_used(inspected))
        self.node = self._of_used(node, self.keep_rows)
        if self.n_unobserved:
            made = tasks.seen_rows, self.node, self.unobserved
            self.node = self.blocks.make(*made, keep=self.keep_rows)
        self.frame = frame or self._frame()
        self.wanted = None
        if wanted is not None and self._brought is not None:
            self.wanted = Brought(wanted, self.rows(wanted))
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

    def _is_kept(self, n: float) -> bool:
        """Whether data of n cases are kept; not while their number is unknown (NaN)."""
        size = n * self.n_features * self.dtype.itemsize
        return self._are_views or size <= self.budget / 2

    @property
    def _differs(self) -> bool:
        """Whether the cases are not those that the lengths of blocks promise."""
        return self.n_unobserved > 0 or not np.array_equal(self.all_lengths, self.chunks)

    def _learn(
        self, found: Sequence[tasks.Facts], missing: bool | None, drop_unobserved: bool
    ) -> None:
        if any(block.infinite for block in found):
            raise ValueError(
                f"Input X contains infinity or a value too large for dtype({self.dtype.name!r})."
            )
        every = np.array([block.length for block in found])
        unobserved = np.array([block.unobserved for block in found])
        n_missing = sum(block.missing for block in found)
        self.all_lengths = every
        self.dropped = unobserved if drop_unobserved else np.zeros_like(unobserved)
        if not drop_unobserved:
            n_missing += int(unobserved.sum()) * self.n_features
        self.n_unobserved, self.n_missing = int(self.dropped.sum()), n_missing
        self.observed = np.any([block.observed for block in found], axis=0)
        self.missing = n_missing > 0 or bool(missing)
        self.used = np.flatnonzero(every > self.dropped)
        self.lengths = (every - self.dropped)[self.used]
        self.n_cases = int(self.lengths.sum())
        if every.sum() == 0:
            raise ValueError(
                f"Found array with 0 sample(s) (shape=(0, {self.n_features})) while a minimum of "
                "1 is required."
            )
        if self.n_cases == 0:
            raise unobserved_error(int(every.sum()))

    def _of_used(self, node: Node, keep: bool = False) -> Node:
        """Return what a node holds of the blocks that are used; else it is to be made again."""
        some = Node(partial(tasks.clean, dtype=self.dtype), (self.blocks.source,), keep)
        if node.held is not None:
            some.hold(node.of_blocks(list(self.used)))
        return some

    # ---- Columns

    def columns(self, columns: np.ndarray) -> Node | None:
        """Return some columns of all cases, where these are read apart from the others.

        None if the data are kept anyway, or come from an array. The last are remembered.
        """
        if not self.reads_columns or len(columns) in (0, self.n_features):
            return None
        return self._columns.get(columns.tobytes(), partial(self._some_columns, columns))

    @property
    def reads_columns(self) -> bool:
        """Whether some columns are read apart from the others."""
        return self._read_columns is not None and not self.keep_rows

    def _some_columns(self, columns: np.ndarray) -> Node | None:
        assert self._read_columns is not None
        array = self._read_columns(columns)
        if len(array.chunks[0]) != len(self.chunks):  # Dask joins blocks of which little is read
            return None
        self.blocks.graph |= graph_of(array)
        source = self.blocks.hold([Key((array.name, int(i), 0)) for i in self.used])
        node = self.blocks.make(partial(tasks.clean, dtype=self.dtype), source)
        if self.n_unobserved:
            node = self.blocks.make(tasks.seen_rows, node, self.unobserved)
        node.among = partial(np.take, indices=columns, axis=1), self.node
        return node

    # ---- Rows

    def rows(self, index: np.ndarray | None, node: Node | None = None) -> np.ndarray:
        """Return rows by the sorted numbers of their cases, or all; those of a node, if given."""
        if index is not None and node is None and self._brought is not None:
            known = np.isin(self._brought.numbers, index, assume_unique=True)
            if np.count_nonzero(known) == len(index):
                return self._brought.rows[known]
        node = self.node if node is None else node
        if index is None:
            return np.concatenate(self.blocks.gather(same, node))
        wanted = in_blocks(index, self.lengths)
        some = [i for i, part in enumerate(wanted) if len(part)]
        wanted_node = self.blocks.hold(wanted)
        return np.concatenate(self.blocks.gather(getitem, node, wanted_node, only=some))

    def _frame(self) -> Frame:
        """Return the frame that an engine in memory has: it looks at some rows only."""
        few, many = sample_steps(self.n_cases, self.n_features)
        rows = self.rows(np.arange(0, self.n_cases, few))
        if self.missing:
            return observed_frame(self._with_observed(rows))
        ordered, last = np.sort(rows, axis=0), len(rows) - 1
        varies = (ordered[last - last // 4] != ordered[last // 4]).all()  # the middle half
        if varies or many == few:
            return Frame.from_rows(rows, rows)
        return Frame.from_rows(rows, self.rows(np.arange(0, self.n_cases, many)))

    def _with_observed(self, rows: np.ndarray) -> np.ndarray:
        """Return rows with the first observed cells of each column of which they show none."""
        columns = np.flatnonzero(np.isnan(rows).all(axis=0) & self.observed)
        if len(columns):
            most = partial(tasks.first_observed, columns=columns, most=len(rows))
            found = self.blocks.gather(most, self.node)
            for j, cells in zip(columns, zip(*found, strict=True), strict=True):
                rows[:, j] = np.resize(np.concatenate(cells), len(rows))
        return rows

    def numbers(self, cases: np.ndarray) -> np.ndarray:
        """Return the numbers of cases in the data, unobserved ones counted."""
        if self.n_unobserved == 0 or len(cases) == 0:
            return cases
        starts = (np.cumsum(self.all_lengths) - self.all_lengths)[self.used]
        order, numbers = np.argsort(cases), np.empty_like(cases)
        wanted, lengths = in_blocks(cases[order], self.lengths), list(self.all_lengths[self.used])
        nodes = self.unobserved, self.blocks.hold(wanted), self.blocks.hold(lengths)
        some = [i for i, part in enumerate(wanted) if len(part)]
        found = self.blocks.gather(tasks.number_of_seen, *nodes, only=some)
        parts = [starts[i] + part for i, part in zip(some, found, strict=True)]
        numbers[order] = np.concatenate(parts)
        return numbers

    def returned(self, node: Node, unobserved: Any) -> da.Array:
        """Return a Dask array (n,), chunked as the data, with unobserved cases put back."""
        made = partial(tasks.put_back, value=unobserved)
        node = self.blocks.make(made, node, self.unobserved, keep=True)
        (dtype,) = set(self.blocks.gather(attrgetter("dtype"), node))
        assert node.held is not None
        name = f"rskc-cases-{uuid4().hex}"
        lengths = tuple(map(int, self.all_lengths))
        graph: dict[Any, Any] = {
            (name, i): np.full(length, unobserved, dtype) for i, length in enumerate(lengths)
        }
        for i, part in zip(self.used, node.held, strict=True):
            # Labels are kept in fewer bytes than the user gets.
            graph[name, int(i)] = make_task(unwrapped, part)
        return da.Array(graph, name, (lengths,), dtype)


def in_blocks(numbers: np.ndarray, lengths: Any) -> list[np.ndarray]:
    """Return the sorted numbers of cases within each block; none if lengths are not known."""
    if len(numbers) == 0:
        return [numbers] * len(lengths)
    ends = np.cumsum(lengths)
    parts = np.split(numbers, np.searchsorted(numbers, ends[:-1]))
    return [part - end + size for part, end, size in zip(parts, ends, lengths, strict=True)]


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


def spaced_blocks(X: Any, n: int) -> list[int]:
    """Return the numbers of evenly spaced blocks that have so many cases together."""
    lengths = np.array(X.chunks[0])
    number = int(np.clip(np.ceil(n * len(lengths) / lengths.sum()), 1, len(lengths)))
    return np.unique(np.linspace(0, len(lengths) - 1, number).astype(int)).tolist()


def read_blocks(X: Any, numbers: Sequence[int]) -> np.ndarray:
    """Read some blocks."""
    rows = dask.compute(*(X.blocks[i] for i in numbers))
    return np.ascontiguousarray(np.concatenate(rows))


class CountedRows:
    """Rows in blocks; it counts the cells that are read of them."""

    def __init__(self, rows: np.ndarray):
        self.rows, self.cells = rows, 0

    def table(self, n_blocks: int, like: Any) -> Any:
        """Return a Dask array of the rows, whose columns are read apart if those of another are."""
        X = self._blocks(n_blocks, slice(None), self.rows.shape[1])
        if hasattr(like, "of_columns"):
            X.of_columns = lambda columns: self._blocks(n_blocks, columns, len(columns))
        return X

    def _blocks(self, n_blocks: int, columns: Any, width: int) -> Any:
        numbers = da.arange(len(self.rows), chunks=-(-len(self.rows) // n_blocks))[:, None]
        how = {"chunks": (numbers.chunks[0], (width,)), "dtype": self.rows.dtype}
        meta = np.empty((0, 0), self.rows.dtype)
        return numbers.map_blocks(self._read, columns=columns, meta=meta, **how)

    def _read(self, numbers: np.ndarray, columns: Any) -> np.ndarray:
        rows = self.rows[numbers[0, 0] : numbers[-1, 0] + 1, columns].copy()
        self.cells += rows.size
        return rows
