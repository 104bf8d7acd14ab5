"""From a file to the data that is clustered, with notes on what was done to it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rskc.cli._options import Reading, Standardizing
from rskc.cli._scaling import Scaling, learn
from rskc.cli._voice import Voice, heard


@dataclass(frozen=True)
class Data:
    """A table, and what is clustered of it."""

    table: Any
    X: Any  # pandas.DataFrame, standardized
    scaling: Scaling
    reading: dict[str, Any]  # arguments of read_table
    notes: list[str]
    seconds: float

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of cases and features."""
        return self.X.shape


def read(path: Path, reading: Reading, standardizing: Standardizing, voice: Voice) -> Data:
    """Read a table and standardize it."""
    from rskc.files import read_table

    start, arguments = time.perf_counter(), reading.arguments()
    with voice.busy(f"Reading {path.name}"):
        table = read_table(path, **arguments)
        scaling, notes = learn(standardizing.standardize, standardizing.scale, table.data)
        with heard() as warned:
            X = scaling.apply(table.data)
    notes = [*notes_of(table), *notes, *warned]
    return Data(table, X, scaling, arguments, notes, time.perf_counter() - start)


def reread(path: Path, arguments: dict[str, Any], scaling: Scaling, voice: Voice) -> Data:
    """Read the table of a fit again, and standardize it as then."""
    from rskc.files import read_table

    start = time.perf_counter()
    with voice.busy(f"Reading {path.name}"):
        table = read_table(path, **arguments)
    with heard() as warned:
        X = scaling.apply(table.data)
    notes = [*notes_of(table), *warned]
    return Data(table, X, scaling, arguments, notes, time.perf_counter() - start)


def notes_of(table: Any) -> Iterator[str]:
    """What someone who thinks the table is just numbers would like to know."""
    yield from _counting(table.data)
    unobserved = table.data.index[table.data.isna().all(axis=1)] if table.n_missing else []
    if len(unobserved):
        which = _few([repr(name) for name in unobserved])
        yield f"No value at all, so that the cluster means nothing: {which}."
    yield from left_out(table)
    if table.empty:
        yield f"Without a single value: {_few(map(repr, table.empty))}."
    if table.constant:
        tell = _these(table.constant, "tells", "tell")
        yield f"The same in all cases, so {tell} nothing: {_few(map(repr, table.constant))}."


def left_out(table: Any) -> Iterator[str]:
    """Columns that were left out without having been asked for."""
    dropped = {name: why for name, why in table.dropped.items() if why != "asked for"}
    if dropped:
        which = _few([f"{name!r} ({why})" for name, why in dropped.items()])
        yield f"Left out, since {_these(dropped)} no numbers: {which}."


def _these(names: Any, one: str = "holds", more: str = "hold") -> str:
    return f"it {one}" if len(names) == 1 else f"they {more}"


def _few(words: Any, most: int = 5) -> str:
    words = list(words)
    more = f" and {len(words) - most:,} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def _counting(data: Any) -> Iterator[str]:
    """A first column that counts the rows is a name rather than a measurement."""
    first = data.iloc[:, 0].to_numpy()
    n = len(first)
    if n > 3 and (first - first[0] == range(n)).all() and first[0] in (0, 1):
        name = data.columns[0]
        yield (
            f"Column {name!r} counts the rows and was clustered as a measurement; if it names the "
            f"cases, add --id-column {name!r}."
        )
