"""How the work is done: in memory or block by block, with progress, and with warnings kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from rskc.cli._app import Console, recorded_warnings, typed_command
from rskc.cli._options import EngineOptions
from rskc.cli._output import check_installed, write_cases
from rskc.cli._results import Result
from rskc.cli._tables import Data, is_sparse, named_cases, read
from rskc.exceptions import OverflowedError
from rskc.utils.machine import free_memory
from rskc.utils.wording import shortened

if TYPE_CHECKING:
    from rskc.planning import Plan

# Fits that are likely to take so many seconds are announced. Only tables with as many cells as this
# are looked at: the look takes a second or two.
LONG, LARGE_CELLS = 30.0, 2**24
DASK = {name: name for name in ("dask", "distributed", "pyarrow")}  # for tables in blocks
# What a search does, for people who wait.
STAGES = {
    "Stability": "Choosing the number of clusters",
    "Clest": "Choosing the number of clusters by Clest",
    "GapL1": "Choosing the L1 bound",
    "GridSearch": "Comparing settings",
    "Exploration": "Fitting all settings",
}


@dataclass(frozen=True)
class Work:
    """How a table is read, in memory or block by block, and its cases are written."""

    in_blocks: bool
    why: str
    read: Callable[..., Data]
    write_cases: Callable[[Path | None, Result], Result]  # to a folder, or nowhere


@contextmanager
def work_on(
    table: Path, engine: EngineOptions, n_threads: int | None, console: Console
) -> Iterator[Work]:
    """Work on a table in memory or, if it is too large or asked for, block by block."""
    limit = 0
    if engine.memory is not None:
        if engine.engine == "memory":
            raise typer.BadParameter(
                "--memory is about blocks, and --engine memory makes none; leave one of them out."
            )
        check_installed(DASK, "dask", "to read a table in blocks, which --memory is about")
        from dask.utils import parse_bytes

        with suppress(ValueError, OverflowError):
            limit = parse_bytes(engine.memory.strip() or "0")
        if limit <= 0:
            words = f"--memory {engine.memory!r} is no amount of memory, such as 2GB."
            raise typer.BadParameter(words)
    in_blocks, why = _place_of(table, engine, limit or None)
    if in_blocks:
        from rskc.cli import _blocks

        with _blocks.dask_configured(engine.scheduler, limit or None, n_threads, console):
            yield Work(True, why, _blocks.read_blocks, _blocks.write_cases)
        return
    try:
        yield Work(False, why, read, write_cases)
    except MemoryError as error:
        error.add_note("with --engine dask, Parquet and .npy files are read block by block")
        raise


def _place_of(table: Path, engine: EngineOptions, limit: int | None) -> tuple[bool, str]:
    """Decide whether a table is read block by block, and say why."""
    from rskc.files.tables import bytes_needed, is_many_files

    if engine.engine == "memory":
        if engine.scheduler is not None:
            raise typer.BadParameter("--scheduler needs --engine dask.")
        return False, "--engine memory asks for it"
    many = is_many_files(table)
    if engine.engine == "dask" or engine.scheduler is not None or many:
        check_installed(DASK, "dask", "to read a table in blocks")
        return True, "the table consists of many files" if many else "the options ask for it"
    size, free = bytes_needed(table), free_memory()
    if limit is not None and size > limit:
        return True, "the table is larger than --memory"
    if free is None or size <= free / 2:
        return False, "the table fits into memory"
    why = "the table needs more than half of the memory that is free"
    check_installed(DASK, "dask", f"to read {table.name!r} in blocks, since {why}")
    return True, why


# ---- Fits and searches


def plan_of(models: list[Any], data: Data, why: str) -> Plan:
    """Say what fits and searches, one after the other, are going to take."""
    from rskc.planning import plan

    plans = [plan(data.X, model, data.table.weights) for model in models]
    least, most = (sum(ends) for ends in zip(*(each.seconds for each in plans), strict=True))
    return replace(plans[0], why=why, seconds=(least, most))


def fit_model(estimator: Any, data: Data, console: Console, why: str) -> Result:
    """Fit an estimator as it is; of a long fit, say before what it is going to take."""
    (n, p), seconds = data.shape, 0.0
    if n * p >= LARGE_CELLS:
        with console.busy("Estimating how long it takes"):
            plan = plan_of([estimator], data, why)
        if plan.expected_seconds >= LONG:
            console.note(f"This takes {plan.time} and {plan.memory} of memory.")
            seconds = plan.expected_seconds
    start = time.perf_counter()
    with (
        console.busy(f"Clustering {n:,} cases by {p:,} features", seconds),
        recorded_warnings() as warned,
        _largest_cell_named(data),
    ):
        model = estimator.fit(data.X, sample_weight=data.table.weights)
    return Result(data, model, [], warned, time.perf_counter() - start, [*typed_command])


def fit_searched(searches: list[Any], data: Data, console: Console) -> Result:
    """Run searches, each with the estimator that the one before has chosen."""
    start, done, warned = time.perf_counter(), list[Any](), list[Any]()
    for search in searches:
        if done:
            chosen = done[-1].best_estimator_
            if chosen.n_clusters == 1:
                warned.append(
                    "With one cluster there is no reason to prefer features: no bound was searched."
                )
                break
            search.set_params(estimator=chosen)
        warned = run_search(search, data, console)
        done.append(search)
    seconds = time.perf_counter() - start
    return Result(data, done[-1].best_estimator_, done, warned, seconds, [*typed_command])


def run_search(search: Any, data: Data, console: Console) -> list[Any]:
    """Run one search; return the warnings of the model that it chose."""
    try:
        with (
            console.busy(STAGES[type(search).__name__]) as update,
            recorded_warnings() as warned,
            checkpoint_noted(search.checkpoint),
            _largest_cell_named(data),
        ):
            search.set_params(progress=update).fit(data.X, sample_weight=data.table.weights)
    finally:
        search.set_params(progress=False)
    return warned


@contextmanager
def _largest_cell_named(data: Data) -> Iterator[None]:
    """Say in which column and line of the table the cell is whose square overflows."""
    try:
        yield
    except OverflowedError:
        if not hasattr(data.X, "iloc") or hasattr(data.X, "dask") or is_sparse(data.X):
            raise
        numbers = data.X.select_dtypes("number")
        cells = np.abs(numbers.to_numpy())
        case, column = np.unravel_index(np.nanargmax(cells), cells.shape)
        name = numbers.columns[column]
        where = named_cases(data.table, [int(case)])[0]
        largest = abs(float(data.table.data[name].iloc[case]))
        place = f"column {shortened(name, 60)!r}, case {where}"
        raise OverflowedError(largest, place) from None


@contextmanager
def checkpoint_noted(checkpoint: Path | None) -> Iterator[None]:
    """Add to Ctrl-C that the work so far is kept."""
    try:
        yield
    except KeyboardInterrupt as error:
        note = "nothing was kept; with --checkpoint FILE a search can be resumed"
        if checkpoint is not None:
            kept = f"finished fits are kept in {str(checkpoint)!r}"
            note = f"{kept}, and the same command resumes the search"
        error.add_note(note)
        raise
