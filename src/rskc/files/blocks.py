"""Tables that are read a block at a time: folders of Parquet files, one such file, or an .npy.

The first rows show what the columns are, by the rules of ``tables``; the number of rows stands in
the files' metadata. No other cell is read before its block is.
"""

from __future__ import annotations

import ctypes
import glob
import math
import os
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rskc.files._formats import damage_named, of_frame, of_matrix
from rskc.files._numbers import observed
from rskc.files._roles import find_roles
from rskc.files._source import TOO_LARGE, Layout, Roles, Source, needed, pl, shown
from rskc.files.tables import PARQUET, ColumnRoles, is_pattern
from rskc.inputs.categories import MOST_IN_BLOCKS
from rskc.inputs.columns import MOST_CLASSES, are_classes
from rskc.inputs.frames import as_number
from rskc.utils.wording import count

__all__ = ["BlockTable", "Piece", "open_blocks"]

# Cells of a block: large enough that a pass over it takes far longer than the scheduler's share
# (about a millisecond), small enough that each thread may hold some.
BLOCK_BYTES = 2**25
HEAD = 1000  # rows by which columns are judged
TEXT = ("text", "true and false")  # what columns hold that may be categories


class Piece(NamedTuple):
    """Some rows of a file."""

    path: str
    begin: int  # the first row in the file
    end: int  # the row after the last
    first: int  # number of its first case in the table
    n_cases: int


@dataclass(frozen=True, kw_only=True)
class BlockTable(ColumnRoles):
    """A table in pieces.

    Attributes
    ----------
    path : Path
        Where it is.
    pieces : list of Piece
        Its blocks, in order.
    features, dtype
        Names of the features, and float32 if all their columns are, else float64.
    id_column, label_column : str or None
        Columns with the names and the known classes of the cases.
    dropped : dict
        Columns that are left out, and why.
    set_aside : tuple
        Columns that were recognized as ids or classes, by the first rows.
    categories : dict
        Columns of categories, and their values, of all cases.
    missing_values : tuple of str
        What stands for a missing category.
    """

    pieces: list[Piece]
    features: list[str]
    dtype: np.dtype
    weight_column: str | None = None
    missing_values: tuple[str, ...] = ()

    @property
    def weights(self) -> np.ndarray | None:
        """What each case counts, read from all pieces; None without a weight column."""
        if self.weight_column is None:
            return None
        weights = replace(self, dtype=np.dtype(np.float64), missing_values=())
        parts = [weights.read_features(piece, [self.weight_column]) for piece in self.pieces]
        return np.concatenate([part[self.weight_column] for part in parts])

    @property
    def n_cases(self) -> int:
        """Number of cases."""
        return sum(piece.n_cases for piece in self.pieces)

    @property
    def data(self) -> Any:
        """The columns of the features, without a case."""
        kinds = {name: pd.CategoricalDtype(values) for name, values in self.categories.items()}
        columns = {name: pd.Series(dtype=kinds.get(name, self.dtype)) for name in self.features}
        return pd.DataFrame(columns)

    def read_features(self, piece: Piece, features: list[str] | None = None) -> Any:
        """Read the features of a block, or some of them, and no other column."""
        return self._read(piece, features, [])[0]

    def read(self, piece: Piece, features: list[str] | None = None) -> Block:
        """Read a block, or some features of it, with names and classes of its cases."""
        wanted = [name for name in (self.id_column, self.label_column) if name is not None]
        frame, sides = self._read(piece, features, wanted)
        frame.index = pd.RangeIndex(piece.first, piece.first + piece.n_cases)
        if self.id_column is not None:
            frame.index = pd.Index([str(each) for each in sides[self.id_column]], dtype=object)
        return Block(frame, None if self.label_column is None else sides[self.label_column])

    def _read(
        self, piece: Piece, features: list[str] | None, sides: list[str]
    ) -> tuple[Any, dict[str, np.ndarray]]:
        """Return features as a frame, and other columns as text."""
        features = self.features if features is None else features
        names = [name for name in features if name not in self.categories]
        words = [name for name in features if name in self.categories]
        cells = np.empty((piece.n_cases, len(names)), self.dtype)
        codes = {name: np.empty(piece.n_cases, np.int32) for name in words}
        texts = {name: np.empty(piece.n_cases, object) for name in sides}
        places = {name: {text: i for i, text in enumerate(self.categories[name])} for name in words}
        if piece.path.endswith(".npy"):  # its columns are x0, x1, ...
            rows = np.load(piece.path, mmap_mode="r")[piece.begin : piece.end]
            cells[:] = rows[:, [int(name[1:]) for name in names]]
            texts = {name: rows[:, int(name[1:])].astype(str).astype(object) for name in sides}
        else:
            wanted = [*names, *words, *sides]
            parts, end = reader.read(piece.path, wanted, piece.begin, piece.end, words)[::-1], 0
            while parts:  # each is let go when it has been copied
                batch = parts.pop()
                rows = slice(end, end := end + batch.num_rows)
                columns = [_numbers(piece, name, batch[name]) for name in names]
                if columns:
                    np.stack(columns, axis=1, out=cells[rows], casting="same_kind")
                for name, known in places.items():
                    numbers, values = _coded(batch[name], self.missing_values)
                    codes[name][rows] = np.array([*(known[value] for value in values), -1])[numbers]
                for name in sides:
                    texts[name][rows] = batch[name].to_pylist()
        for marker in self.missing_values:
            if (value := as_number(marker)) is not None:
                cells[cells == value] = np.nan
        # A sum shows that all are finite, mostly, without an array as large as the block.
        if not np.isfinite(np.sum(cells)) and (outlying := np.isinf(cells).any(axis=0)).any():
            column = shown(names[int(outlying.argmax())])
            raise Layout(Path(piece.path)).error(f"column {column}: a cell {TOO_LARGE}")
        frame = pd.DataFrame(cells, columns=names, copy=False)
        for name in words:
            column = pd.Categorical.from_codes(codes[name], categories=list(self.categories[name]))
            frame.insert(features.index(name), name, column)
        return frame, texts

    def close(self) -> None:
        """Close files that are open where a block ended, and give freed memory back."""
        reader.close()


class Block(NamedTuple):
    """Cases of a block: their numbers, with their names as index, and their known classes."""

    data: Any  # pandas.DataFrame
    labels: np.ndarray | None


def open_blocks(path: str | os.PathLike, **how: Any) -> BlockTable:
    """Open a table that is read a block at a time.

    Parameters
    ----------
    path : str or path
        A folder of Parquet files, a pattern such as ``"part-*.parquet"``, one Parquet file, or an
        .npy.
    **how
        As in ``read_table``; what is about CSV and Excel is not used.

    Returns
    -------
    table : BlockTable

    Raises
    ------
    TableError
        If it is no such table.
    ImportError
        If a package is not installed.
    """
    layout = Layout.of(path, **how)
    is_matrix = layout.path.suffix == ".npy"
    if layout.categorical and is_matrix:
        raise layout.error("numbers of an .npy cannot be categories in blocks; use {read_table}")
    if layout.features_in_rows is True:
        raise layout.error(
            "features in rows cannot be read in blocks, of which each needs them all"
        )
    pieces, source = (_open_npy if is_matrix else _open_parquet)(layout)
    roles, names = find_roles(source), source.names
    categories, left_out = _categories_of(source, pieces, roles)
    features = {names[j] for j in roles.features} | set(categories)
    dropped = {name: why for name, why in roles.dropped.items() if name not in features}
    return BlockTable(
        path=layout.path,
        pieces=pieces,
        features=[name for name in names if name in features],
        dtype=roles.matrix.dtype,
        id_column=None if roles.ids is None else names[roles.ids],
        label_column=None if roles.labels is None else names[roles.labels],
        dropped=dropped | left_out,
        set_aside=tuple(roles.set_aside),
        weight_column=layout.weight_column,
        categories=categories,
        missing_values=layout.missing_values,
    )


def _categories_of(
    source: Source, pieces: list[Piece], roles: Roles
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return the columns of categories and their values, and the text that is left out, and why.

    The first rows show which columns hold text; all rows are read for how many values.
    """
    layout = source.layout
    names = [source.names[j] for j in roles.categories]
    if layout.text_columns == "categories":
        names += [name for name, why in roles.dropped.items() if why.startswith(TEXT)]
    most = {name: MOST_IN_BLOCKS if name in layout.categorical else MOST_CLASSES for name in names}
    texts: dict[str, set[str]] = {name: set() for name in names}
    counts = dict.fromkeys(names, 0)  # of cells that have a value
    for path in dict.fromkeys(piece.path for piece in pieces if names):
        with parquet().ParquetFile(path, read_dictionary=names, **STREAMED) as file:
            for batch in file.iter_batches(ROWS_AT_A_TIME, columns=names):
                for name in names:
                    if len(texts[name]) <= most[name]:
                        codes, values = _coded(batch[name], layout.missing_values)
                        texts[name].update(values)
                        counts[name] += int(np.count_nonzero(codes >= 0))
    release_memory()
    kept, left_out = {}, {}
    for name in names:
        n, n_distinct, is_forced = counts[name], len(texts[name]), name in layout.categorical
        if n_distinct > most[name] and is_forced:
            words = f"column {shown(name)} has more than {MOST_IN_BLOCKS:,} categories"
            raise layout.error(f"{words}; leave it out by {{drop}}")
        if n_distinct > most[name]:
            left_out[name] = f"text with more than {MOST_CLASSES} values"
        elif is_forced or n_distinct == 1 or are_classes(n, n_distinct):
            kept[name] = tuple(sorted(texts[name]))
        else:
            left_out[name] = f"text with {count(n_distinct, 'value')} in {count(n, 'case')}"
    return kept, left_out


def _coded(column: Any, missing_values: tuple[str, ...]) -> tuple[np.ndarray, list[str]]:
    """Return a column of Arrow as numbers of texts, -1 where missing, and these texts."""
    column = column if hasattr(column, "dictionary") else column.dictionary_encode()
    texts = observed(pl.Series(column.dictionary), missing_values).to_list()
    places = {text: i for i, text in enumerate(dict.fromkeys(t for t in texts if t is not None))}
    numbers = np.array([*(places.get(text, -1) for text in texts), -1])
    return numbers[column.indices.fill_null(len(texts)).to_numpy()], list(places)


# ---- Parquet


def _files(layout: Layout) -> list[str]:
    """Find the files, in the order of the numbers in their names."""
    path = layout.path
    if path.is_dir():
        inside = (file for file in path.rglob("*") if file.is_file())
        found = [str(file) for file in inside if not file.name.startswith((".", "_"))]
    else:
        found = [str(path)] if path.exists() else glob.glob(str(path))
    if not found and not path.exists() and not is_pattern(path):
        raise layout.error("there is no such file or folder")
    found = [file for file in found if file.endswith(PARQUET)]
    if not found:
        raise layout.error(
            "in blocks, tables are read from .npy and from Parquet files, whose names end in "
            ".parquet; use {read_table} for others"
        )
    parts = {file: re.split(r"(\d+)", file) for file in found}  # part.10 comes after part.9
    natural = {file: [int(x) if x.isdecimal() else x for x in parts[file]] for file in found}
    return [os.path.abspath(file) for file in sorted(found, key=natural.__getitem__)]


def _open_parquet(layout: Layout) -> tuple[list[Piece], Source]:
    pieces: list[Piece] = []
    files, names = _files(layout), list[str]()
    for file in files:
        with damage_named(replace(layout, path=Path(file))):
            found = parquet().read_metadata(file)
            columns = found.schema.to_arrow_schema().names
        names = names or columns
        if set(columns) != set(names):
            lost = shown(sorted(set(names) ^ set(columns))[0])
            both = " and ".join(shown(Path(each).name) for each in (files[0], file))
            raise layout.error(f"the files have different columns: {lost} is only in one of {both}")
        sizes = [found.row_group(i).num_rows for i in range(found.num_row_groups)]
        first = pieces[-1].first + pieces[-1].n_cases if pieces else 0
        pieces += _pieces_of(file, sizes, found.num_columns, first)
    if not pieces:
        raise layout.error("there is no row with data")
    # The first rows only; polars would read the first row group for them.
    with (
        damage_named(replace(layout, path=Path(pieces[0].path))),
        parquet().ParquetFile(pieces[0].path, **STREAMED) as opened,
    ):
        batch = next(opened.iter_batches(HEAD, use_threads=False))
        head = of_frame(layout, pl.from_arrow([batch]))
    release_memory()
    return pieces, head


def _pieces_of(file: str, sizes: list[int], n_columns: int, first: int) -> list[Piece]:
    """Make pieces of a file with groups of rows, of as many cells as a block has.

    Small groups that lie together are one piece. Large ones, such as the million rows that pyarrow
    writes, are cut.
    """
    most = max(1, BLOCK_BYTES // (8 * max(n_columns, 1)))
    cuts, end = [0], 0
    for size in sizes:
        if end + size - cuts[-1] > most:
            cuts.append(end)
        parts = math.ceil(size / most)
        cuts += np.linspace(end, end + size, parts + 1).astype(int)[1:-1].tolist()
        end += size
    cuts.append(end)
    return [Piece(file, a, b, first + a, b - a) for a, b in pairwise(cuts) if b > a]


# ---- NumPy


def _open_npy(layout: Layout) -> tuple[list[Piece], Source]:
    if not layout.path.exists():
        raise layout.error("there is no such file")
    with damage_named(layout):
        matrix = np.load(layout.path, mmap_mode="r", allow_pickle=False)
    head = of_matrix(layout, np.atleast_1d(matrix)[:HEAD])
    n, p = matrix.shape
    return _pieces_of(os.path.abspath(layout.path), [n], p, 0), head


def _numbers(piece: Piece, name: str, column: Any) -> np.ndarray:
    """Return cells as floats; a missing one is NaN."""
    kind = str(column.type)
    if kind in ("float", "double"):
        return column.to_numpy(zero_copy_only=False)
    try:
        return column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
    except (ValueError, NotImplementedError, TypeError) as error:
        raise Layout(Path(piece.path)).error(
            f"column {shown(name)} holds {kind} here and numbers in the first file; leave it out "
            "by {drop}, or write the files alike"
        ) from error


# Rows that are decoded at a time: 50 columns of them are 6 MB.
ROWS_AT_A_TIME = 2**14
# Bytes of each column that are read at a time, and not all that a row group has of it.
STREAMED = {"buffer_size": 2**16, "pre_buffer": False}

# Streams that are open: passes read some columns, or all, or both in turns.
MOST_STREAMS = 2


def parquet() -> Any:
    """Import pyarrow.parquet."""
    return needed("pyarrow.parquet", "to read Parquet files in blocks", "dask")


def release_memory() -> None:
    """Give freed memory back to the system: Arrow and the C library would keep 100 MB each."""
    import_module("pyarrow").default_memory_pool().release_unused()
    trim = getattr(ctypes.pythonapi, "malloc_trim", None)  # of the GNU C library
    if trim is not None:
        trim(0)


class _Stream:
    """Columns of the rows of a file, from the row group of a row on."""

    def __init__(self, path: str, columns: tuple[str, ...], begin: int, texts: tuple[str, ...]):
        file = parquet().ParquetFile(path, read_dictionary=list(texts), **STREAMED)
        found = file.metadata
        sizes = [found.row_group(i).num_rows for i in range(found.num_row_groups)]
        self.ends = np.cumsum(sizes)
        first = int(np.searchsorted(self.ends, begin, side="right"))
        self.position = int(self.ends[first]) - sizes[first]
        self._rest: Any = None  # of the batch read last
        options = {"row_groups": list(range(first, len(sizes))), "columns": list(columns)}
        self._batches = file.iter_batches(ROWS_AT_A_TIME, **options)

    def read(self, begin: int, end: int) -> list[Any]:
        """Return rows as record batches; those before ``begin`` are skipped."""
        parts = []
        while self.position < end:
            batch = next(self._batches) if self._rest is None else self._rest
            skipped = self.position < begin
            most = (begin if skipped else end) - self.position
            part, self._rest = batch[:most], batch[most:] if most < batch.num_rows else None
            if not skipped:
                parts.append(part)
            self.position += part.num_rows
        return parts


class _Reader:
    """Decodes for one thread at a time, by the threads of Arrow, and has few streams open.

    What is done with the rows, their owners do while others decode: that takes as long again. A
    stream holds some pages of each column: 100 MB of 50 columns, if pages are of 1 MB.
    """

    def __init__(self) -> None:
        self._turn, self._busy = threading.Condition(), False
        self._waiting: list[tuple] = []
        # By file, columns and next row; one of the same columns at most, the one used last is last.
        self._streams: dict[tuple, _Stream] = {}

    def read(
        self, path: str, columns: Sequence[str], begin: int, end: int, texts: Sequence[str] = ()
    ) -> list[Any]:
        """Return columns of the rows from ``begin`` to before ``end`` of a file, in batches.

        Those of ``texts`` are of few values, and read as numbers of these.
        """
        wanted = (path, tuple(columns), begin, tuple(texts))
        with self._turn:
            self._waiting.append(wanted)
            # Who wants the next rows of a stream goes first.
            self._turn.wait_for(
                lambda: (
                    not self._busy
                    and (wanted in self._streams or not self._streams.keys() & set(self._waiting))
                )
            )
            self._waiting.remove(wanted)
            self._busy = True
        try:
            return self._read(wanted, end)
        finally:
            with self._turn:
                self._busy = False
                self._turn.notify_all()

    def _read(self, wanted: tuple, end: int) -> list[Any]:
        path, columns, begin, texts = wanted
        stream = self._streams.pop(wanted, None)
        others = [place for place in self._streams if place[1] != columns][1 - MOST_STREAMS :]
        self._streams = {place: self._streams[place] for place in others}
        stream = stream or _Stream(*wanted)
        parts = stream.read(begin, end)
        if end not in stream.ends:
            self._streams[path, columns, end, texts] = stream
        elif not self._streams:
            del stream
            release_memory()
        return parts

    def close(self) -> None:
        """Close all streams, and give freed memory back."""
        with self._turn:
            self._turn.wait_for(lambda: not self._busy)
            self._streams.clear()
        release_memory()


reader = _Reader()
