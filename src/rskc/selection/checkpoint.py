"""Finished tasks on disk, so that a search that was stopped can go on from there.

One SQLite file: a commit is there as a whole or not at all, whatever kills the process. The file
also says which data and settings the results are for, and is refused for any others.
"""

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
# Claimed after the seed only, which draws the cases of a large table.
DATA = "data"
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
        self.identity: dict[str, str] = {}
        try:
            with self._or_refuse():
                schema = self._connection.execute("select name from sqlite_master").fetchall()
                if schema and ("identity",) not in schema:
                    raise sqlite3.DatabaseError("it is a database of something else")
                # With a write-ahead log a commit is cheap enough for every task: 0.1 ms, not 5.
                self._connection.execute("pragma journal_mode = wal")
                self._connection.execute("pragma synchronous = normal")
                self._connection.executescript(TABLES)
            self.claim(format=FORMAT, **identity)
        except ValueError:
            self.close()
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

    def claim(self, **asked: str | None) -> None:
        """Add to the identity, or refuse the file if it was made for something else.

        None stands for the value in the file: a seed, drawn where there is none.
        """
        with self._or_refuse(), self._connection:
            self._connection.execute("begin immediate")
            stored = dict(self._connection.execute("select name, value from identity"))
            if not stored.keys() & asked.keys():
                drawn = str(np.random.SeedSequence().generate_state(1)[0])
                new = {name: drawn if value is None else value for name, value in asked.items()}
                rows = sorted(new.items())
                self._connection.executemany("insert into identity values (?, ?)", rows)
                stored |= new
            if not str(stored.get("seed")).isdecimal():
                raise sqlite3.DatabaseError("it has no seed")
        self.identity |= {k: stored.get(k, "") if v is None else v for k, v in asked.items()}
        for name in self.identity | stored:
            is_known = name in self.identity or name != DATA
            if is_known and stored.get(name) != self.identity.get(name):
                what = f"{{{name}}}={{stored}} and this search has {{{name}}}={{asked}}"
                what = "other data" if name == DATA else what
                remedy = "give the name of a new file, or delete this one to begin again"
                words = f"was made with {what}; {remedy}."
                differing = {"stored": stored.get(name), "asked": asked.get(name)}
                raise ParameterError("checkpoint", self.path, words, **differing)

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
