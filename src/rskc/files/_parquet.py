"""Rows of Parquet files, read in order and little by little.

A row group can be decoded from its beginning only. Where it is larger than a block, the next block
goes on where the one before ended: a stream is left open in between. So blocks should be read in
their order; in any other they are read all the same, but what is before them is decoded again.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from rskc.files._source import needed

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
