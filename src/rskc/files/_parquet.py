"""Rows of Parquet files, read in order and little by little.

A row group can be decoded from its beginning only. Where it is larger than a block, the next block
goes on where the one before ended: a stream is left open in between.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from rskc.files._source import needed

# Rows that are decoded at a time: 50 columns of them stay in the cache.
ROWS_AT_A_TIME = 4096
# Bytes of each column that are read at a time, and not all that a row group has of it.
STREAMED = {"buffer_size": 2**16, "pre_buffer": False}

# What is done with some rows: it gets them as a record batch, and the number of the first.
Take = Callable[[Any, int], None]


def parquet() -> Any:
    """Import pyarrow.parquet."""
    return needed("pyarrow.parquet", "to read Parquet files in blocks", "dask")


def release_memory() -> None:
    """Give memory that Arrow has freed back to the system: it would keep 100 MB and more."""
    import_module("pyarrow").default_memory_pool().release_unused()


class _Stream:
    """The rows of a file, from the row group of a row on."""

    def __init__(self, path: str, columns: tuple[str, ...], begin: int):
        self.path, self.columns = path, columns
        self.next = begin  # where the last who asked for rows will leave it
        self.users = 0
        self._reached, self._broken = begin, False
        self._turn = threading.Condition()
        self._batches: Any = None

    def read(self, begin: int, end: int, take: Take) -> bool:
        """Read some rows after those before them; whether there are more in the row group."""
        with self._turn:
            self._turn.wait_for(lambda: self._broken or self._reached == begin)
            try:
                if self._broken or self._batches is None:
                    self._open(begin)
                while self._position < end:
                    self._read_batch(begin, end, take)
                self._reached, self._broken = end, False
            except BaseException:
                self._broken = True
                raise
            finally:
                self._turn.notify_all()
            if end in self._ends:
                self._batches = self._rest = None  # the next row group may be another's
                release_memory()
            return self._batches is not None

    def _open(self, begin: int) -> None:
        file = parquet().ParquetFile(self.path, **STREAMED)
        found = file.metadata
        sizes = [found.row_group(i).num_rows for i in range(found.num_row_groups)]
        self._ends = np.cumsum(sizes)
        first = int(np.searchsorted(self._ends, begin, side="right"))
        self._position, self._rest = int(self._ends[first]) - sizes[first], None
        options = {"row_groups": list(range(first, len(sizes))), "columns": list(self.columns)}
        self._batches = file.iter_batches(ROWS_AT_A_TIME, **options, use_threads=True)

    def _read_batch(self, begin: int, end: int, take: Take) -> None:
        batch = next(self._batches) if self._rest is None else self._rest
        skipped = self._position < begin
        most = (begin if skipped else end) - self._position
        part, self._rest = batch[:most], batch[most:] if most < batch.num_rows else None
        if not skipped:
            take(part, self._position)
        self._position += part.num_rows


_streams: list[_Stream] = []  # those that are read, or may go on
_lock = threading.Lock()


def read_rows(path: str, columns: Sequence[str], begin: int, end: int, take: Take) -> None:
    """Read columns of the rows from ``begin`` to before ``end`` of a file.

    Several threads may ask for rows that follow one another: each waits for those before.
    """
    names = tuple(columns)
    with _lock:
        stream = _find(path, names, begin)
        stream.next, stream.users = end, stream.users + 1
    more = False
    try:
        more = stream.read(begin, end, take)
    finally:
        with _lock:
            stream.users -= 1
            if stream.users == 0 and not more and stream in _streams:
                _streams.remove(stream)


def _find(path: str, columns: tuple[str, ...], begin: int) -> _Stream:
    """Return the stream that comes to a row, or a new one in the place of those nobody uses.

    Each holds some pages of each column: about 100 MB of 50 columns.
    """
    for stream in _streams:
        if (stream.path, stream.columns, stream.next) == (path, columns, begin):
            return stream
    _streams[:] = [stream for stream in _streams if stream.users]
    _streams.append(_Stream(path, columns, begin))
    return _streams[-1]
