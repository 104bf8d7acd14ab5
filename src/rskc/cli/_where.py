"""Whether a table is held in memory or read block by block, and what is needed for that."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import NamedTuple

import typer

from rskc.cli._options import EngineOptions
from rskc.utils.machine import free_memory

PACKAGES = ("dask", "distributed", "pyarrow")


class Place(NamedTuple):
    """Where a table is held, and why there."""

    in_blocks: bool
    why: str


def place_of(table: Path, engine: EngineOptions) -> Place:
    """Decide whether a table is read block by block; says what is missing for that."""
    from rskc.files.tables import bytes_needed, is_many_files

    if engine.engine == "memory":
        if engine.scheduler is not None:
            raise typer.BadParameter("--scheduler needs --engine dask.")
        if engine.memory is not None:
            raise typer.BadParameter(
                "--memory is about blocks, and --engine memory makes none; leave one of them out."
            )
        return Place(False, "--engine memory asks for it")
    limit, many = memory_of_blocks(engine), is_many_files(table)
    if engine.engine == "dask" or engine.scheduler is not None or many:
        check_dask("to read a table in blocks")
        return Place(True, "the table is many files" if many else "the options ask for it")
    size, free = bytes_needed(table), free_memory()
    if limit is not None and size > limit:
        return Place(True, "the table is larger than --memory")
    if free is None or size <= free / 2:
        return Place(False, "the table fits into memory")
    check_dask(f"since {table.name!r} needs more than half of the memory that is free")
    return Place(True, "the table needs more than half of the memory that is free")


def memory_of_blocks(engine: EngineOptions) -> int | None:
    """Return the bytes that blocks may be kept in, if --memory says so."""
    if engine.memory is None:
        return None
    check_dask("to read a table in blocks, which --memory is about")
    from dask.utils import parse_bytes

    try:
        size = parse_bytes(engine.memory) if engine.memory.strip() else 0
    except (ValueError, OverflowError):
        size = 0
    if size <= 0:
        raise typer.BadParameter(f"--memory {engine.memory!r} is no amount of memory, such as 2GB.")
    return size


def check_dask(why: str) -> None:
    """Say, before any work, that Dask is not installed."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} needed {why}: pip "
            "install 'rskc[dask]'."
        )
