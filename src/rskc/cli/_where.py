"""Whether a table is held in memory or read block by block, and what is needed for that."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import typer

from rskc.cli._options import EngineOptions
from rskc.utils.machine import free_memory

PACKAGES = ("dask", "distributed", "pyarrow")


def is_read_in_blocks(table: Path, engine: EngineOptions) -> bool:
    """Decide whether a table is read block by block; says what is missing for that."""
    from rskc.files.tables import bytes_needed, is_many_files

    if engine.engine == "memory":
        if engine.scheduler is not None:
            raise typer.BadParameter("--scheduler needs --engine dask.")
        if engine.memory is not None:
            raise typer.BadParameter(
                "--memory is about blocks, and --engine memory makes none; leave one of them out."
            )
        return False
    limit = memory_of_blocks(engine)
    if engine.engine == "dask" or engine.scheduler is not None or is_many_files(table):
        check_dask("to read a table in blocks")
        return True
    size, free = bytes_needed(table), free_memory()
    if not ((limit is not None and size > limit) or (free is not None and size > free / 2)):
        return False
    check_dask(f"since {table.name!r} needs more than half of the memory that is free")
    return True


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
