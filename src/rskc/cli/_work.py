"""How the work is done: in memory or block by block, with progress, and with warnings kept."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from rskc.cli._app import Console, recorded_warnings, typed_command
from rskc.cli._options import EngineOptions, Preparing, Reading
from rskc.cli._output import check_installed
from rskc.cli._results import Result
from rskc.cli._tables import Data, reread
from rskc.utils.machine import free_memory

DASK = ("dask", "distributed", "pyarrow")  # for tables in blocks
# What a search does, for people who wait.
STAGES = {
    "Stability": "Choosing the number of clusters",
    "Clest": "Choosing the number of clusters by Clest",
    "GapL1": "Choosing the L1 bound",
    "GridSearch": "Comparing settings",
    "Exploration": "Fitting all settings",
}


@contextmanager
def work_on(table: Path, engine: EngineOptions, n_threads: int | None) -> Iterator[bool]:
    """Work on a table in memory or, if it is too large or asked for, block by block.

    Yields whether it is read in blocks.
    """
    limit = _limit_of(engine)
    if is_read_in_blocks(table, engine.engine, limit):
        import dask

        settings = {"scheduler": "threads", "rskc.memory": limit, "num_workers": n_threads}
        with dask.config.set({name: each for name, each in settings.items() if each is not None}):
            yield True
        return
    try:
        yield False
    except MemoryError as error:
        error.add_note("with --engine dask, Parquet and .npy files are read block by block")
        raise


def _limit_of(engine: EngineOptions) -> int | None:
    """Return the bytes that --memory allows for blocks, if it is given."""
    if engine.memory is None:
        return None
    check_installed(DASK, "dask", "to read a table in blocks, which --memory is about")
    from dask.utils import parse_bytes

    limit = 0
    with suppress(ValueError, OverflowError):
        limit = parse_bytes(engine.memory.strip() or "0")
    if limit <= 0:
        raise typer.BadParameter(f"--memory {engine.memory!r} is no amount of memory, such as 2GB.")
    return limit


def is_read_in_blocks(table: Path, engine: str, limit: int | None) -> bool:
    """Decide whether a table is read block by block: if it is asked for, or does not fit."""
    from rskc.files.tables import bytes_needed, is_many_files

    if engine == "memory":
        return False
    if engine == "dask" or is_many_files(table):
        check_installed(DASK, "dask", "to read a table in blocks")
        return True
    size, free = bytes_needed(table), free_memory()
    if limit is not None and size > limit:
        return True
    if free is None or size <= free / 2:
        return False
    why = "the table needs more than half of the memory that is free"
    check_installed(DASK, "dask", f"to read {table.name!r} in blocks, since {why}")
    return True


def read(
    path: Path,
    reading: Reading,
    preparing: Preparing,
    groups: Path | None,
    console: Console,
    in_blocks: bool = False,
) -> Data:
    """Read a table and prepare it; classes and groups of features may be in files of their own."""
    from rskc.files.beside import read_classes, read_gmt

    if in_blocks:
        from rskc.cli._blocks import read_blocks

        data = read_blocks(path, reading, preparing, console)
    else:
        data = reread(path, reading.arguments(), preparing, console)
    if reading.labels is not None:
        found, name = read_classes(reading.labels, data.table.data.index), reading.labels.name
        table = replace(data.table, labels=found.labels, label_column=found.name)
        how = "by the names of the cases" if found.by_id else "in the order of the cases"
        note = f"{name}: column {found.name!r} holds the known classes, {how}."
        data = replace(data, table=table, notes=[*data.notes, note])
    if groups is not None:
        gmt = read_gmt(groups, data.X.columns)
        notes = [*data.notes, f"{groups.name}: {gmt.words()}"]
        data = replace(data, feature_groups=gmt.groups, notes=notes)
    return data


# ---- Fits and searches


def fit_or_search(estimator: Any, searches: list[Any], data: Data, console: Console) -> Result:
    """Fit an estimator as it is, or run searches, each with what the one before has chosen."""
    start, model, done, warned = time.perf_counter(), estimator, list[Any](), list[Any]()
    if not searches:
        (n, p), weights = data.shape, data.table.weights
        with (
            console.busy(f"Clustering {n:,} cases by {p:,} features"),
            recorded_warnings() as warned,
        ):
            model.fit(data.X, sample_weight=weights)
    for search in searches:
        if done and model.n_clusters == 1:
            warned.append(
                "With one cluster there is no reason to prefer features: no bound was searched."
            )
            break
        if done:
            search.set_params(estimator=model)
        warned = run_search(search, data, console)
        done.append(search)
        model = search.best_estimator_
    return Result(data, model, done, warned, time.perf_counter() - start, [*typed_command])


def run_search(search: Any, data: Data, console: Console) -> list[Any]:
    """Run one search; return the warnings of the model that it chose."""
    try:
        with (
            console.busy(STAGES[type(search).__name__]) as update,
            recorded_warnings() as warned,
        ):
            search.set_params(progress=update).fit(data.X, sample_weight=data.table.weights)
    except KeyboardInterrupt as error:
        note = "nothing was kept; with --checkpoint FILE a search can be resumed"
        if search.checkpoint is not None:
            kept = f"finished fits are kept in {str(search.checkpoint)!r}"
            note = f"{kept}, and the same command resumes the search"
        error.add_note(note)
        raise
    finally:
        search.set_params(progress=False)
    return warned
