"""Finished tasks on disk, so that a search that was stopped can go on from there.

One SQLite file: a commit is there as a whole or not at all, whatever kills the process. The file
also says which data and settings the results are for, and is refused for any others.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import numpy as np

from rskc.exceptions import ParameterError

Result = Mapping[str, Any]  # numbers and arrays

FORMAT = "rskc checkpoint 2"
# Known after the seed only, because the seed draws the cases of a large table: see ``claim``.
SET_WITH_SEED = ("data",)
TABLES = """
create table if not exists identity (name text primary key, value text not null);
create table if not exists results (key text primary key, value blob not null);
"""


class Checkpoint:
    """Keeps results and their identity in a file; without a file, the identity only.

    Parameters
    ----------
    path : str, path or None
        The file, made if it is not there; None to keep nothing.
    identity : mapping
        All that the results depend on. It must equal that of the file; None stands for the value
        in the file.
    """

    def __init__(self, path: str | os.PathLike | None, identity: Mapping[str, str | None]):
        self.path = None if path is None else os.fspath(path)
        if self.path == "":
            raise ParameterError("checkpoint", self.path, "must be the name of a file, or None.")
        with self._or_refuse():
            self._connection = sqlite3.connect(self.path or ":memory:", timeout=10)
        try:
            with self._or_refuse():
                self._prepare()
                self.identity = self._identify({"format": FORMAT, **identity})
        except ValueError:
            self._connection.close()
            raise

    @contextmanager
    def _or_refuse(self) -> Iterator[None]:
        """Turn errors of SQLite into one sentence."""
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeEncodeError) as error:
            raise ParameterError(
                "checkpoint",
                self.path,
                "cannot be used ({error}); give the file of an earlier search, or the name of a "
                "new one in a folder that can be written to.",
                error=str(error),
            ) from error

    def _prepare(self) -> None:
        tables = {name for (name,) in self._connection.execute("select name from sqlite_master")}
        if tables and "identity" not in tables:
            raise sqlite3.DatabaseError("it is a database of something else")
        # A write-ahead log makes a commit cheap enough for every task: 0.1 ms instead of 5.
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute("pragma synchronous = normal")
        self._connection.executescript(TABLES)

    def _identify(self, asked: dict[str, str | None]) -> dict[str, str]:
        with self._connection:
            self._connection.execute("begin immediate")
            stored = dict(self._connection.execute("select name, value from identity"))
            if not stored:
                seed = str(np.random.SeedSequence().generate_state(1)[0])
                stored = {name: seed if value is None else value for name, value in asked.items()}
                rows = sorted(stored.items())
                self._connection.executemany("insert into identity values (?, ?)", rows)
        if not str(stored.get("seed")).isdecimal():
            raise sqlite3.DatabaseError("it has no seed")
        wanted = {k: stored.get(k) if value is None else value for k, value in asked.items()}
        compared = {k: value for k, value in stored.items() if k not in SET_WITH_SEED}
        for name in wanted | compared:
            if wanted.get(name) != compared.get(name):
                raise self._refusal(name, stored.get(name), asked.get(name))
        return stored

    def claim(self, name: str, value: str) -> None:
        """Add to the identity, or refuse the file if it was made for something else."""
        with self._or_refuse(), self._connection:
            row = (name, value)
            self._connection.execute("insert or ignore into identity values (?, ?)", row)
            query = "select value from identity where name = ?"
            (stored,) = self._connection.execute(query, (name,)).fetchone()
        if stored != value:
            raise self._refusal(name, stored, value)
        self.identity[name] = value

    def _refusal(self, name: str, stored: str | None, asked: str | None) -> ParameterError:
        what = f"{{{name}}}={{stored}} and this search has {{{name}}}={{asked}}"
        if name == "data":
            what = "other data"
        remedy = "give the name of a new file, or delete this one to begin again"
        words = f"was made with {what}; {remedy}."
        return ParameterError("checkpoint", self.path, words, stored=stored, asked=asked)

    def results(self) -> dict[str, Result]:
        """Return the finished tasks."""
        with self._or_refuse():
            rows = self._connection.execute("select key, value from results")
            return {key: _unpacked(key, value) for key, value in rows}

    def add(self, key: str, result: Result) -> None:
        """Keep a result: it is safe as soon as this returns."""
        if self.path is None:
            return
        buffer = BytesIO()
        np.savez(buffer, **result)
        data = buffer.getvalue()
        with self._or_refuse(), self._connection:
            row = (key, _digest(key, data) + data)
            self._connection.execute("insert or replace into results values (?, ?)", row)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _unpacked(key: str, value: Any) -> dict[str, Any]:
    """Return a result, if its bytes are those that were stored under this key."""
    size = len(_digest("", b""))
    if not isinstance(value, bytes) or value[:size] != _digest(key, value[size:]):
        raise sqlite3.DatabaseError("a result in it is damaged")
    with np.load(BytesIO(value[size:]), allow_pickle=False) as arrays:
        return {name: arrays[name][()] for name in arrays.files}


def _digest(key: str, data: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + data).digest()
