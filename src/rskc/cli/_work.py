"""How the work is done: in memory or block by block, with progress, and with warnings kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer

from rskc.cli._console import Console, recorded_warnings
from rskc.cli._options import EngineOptions
from rskc.cli._output import write_results
from rskc.cli._results import Result
from rskc.cli._tables import Data, is_sparse, named_cases, read
from rskc.cli._where import is_read_in_blocks
from rskc.exceptions import OverflowedError
from rskc.utils.wording import shortened

# What a search does, for people who wait.
STAGES = {
    "Stability": "Choosing the number of clusters",
    "Clest": "Choosing the number of clusters by Clest",
    "GapL1": "Choosing the L1 bound",
    "GridSearch": "Comparing settings",
    "Exploration": "Fitting all settings",
}


class Work(NamedTuple):
    """How tables are read, and results written to a folder, or nowhere, and returned."""

    read: Callable[..., Data]
    write: Callable[..., Result]


@contextmanager
def work_on(
    table: Path, engine: EngineOptions, n_threads: int | None, console: Console
) -> Iterator[Work]:
    """Work on a table in memory or, if it is too large or asked for, block by block."""
    if not is_read_in_blocks(table, engine):
        with blocks_suggested():
            yield Work(read, _write)
        return
    from rskc.cli import _blocks

    with _blocks.dask_configured(engine, n_threads, console):
        yield Work(_blocks.read_blocks, _blocks.write_results)


@contextmanager
def blocks_suggested() -> Iterator[None]:
    """Add to an error about memory that tables need not be in it as a whole."""
    try:
        yield
    except MemoryError as error:
        error.add_note("of a Parquet or .npy file, --engine dask has only some blocks in memory")
        raise


def _write(folder: Path | None, result: Result, *, report: bool, title: str | None) -> Result:
    if folder is not None:
        write_results(folder, result, report=report, title=title)
    return result


# ---- Fits and searches


def fit_model(estimator: Any, data: Data, command: list[str], console: Console) -> Result:
    """Fit an estimator as it is."""
    start, (n, p) = time.perf_counter(), data.shape
    with (
        console.busy(f"Clustering {n:,} cases by {p:,} features"),
        recorded_warnings() as warned,
        _largest_cell_named(data),
    ):
        model = estimator.fit(data.X, sample_weight=data.table.weights)
    return Result(data, model, [], warned, time.perf_counter() - start, command)


def fit_searched(searches: list[Any], data: Data, command: list[str], console: Console) -> Result:
    """Run searches, each with the estimator that the one before has chosen."""
    start = time.perf_counter()
    found: list[Any] = []
    warned: list[Any] = []
    for search in searches:
        if found and found[-1].best_estimator_.n_clusters == 1:
            warned.append("One cluster gives no reason to prefer features: no bound was searched.")
            break
        if found:
            search.set_params(estimator=found[-1].best_estimator_)
        with _largest_cell_named(data):
            warned = run_search(search, data, console)
        found.append(search)
    seconds = time.perf_counter() - start
    return Result(data, found[-1].best_estimator_, found, warned, seconds, command)


def run_search(search: Any, data: Data, console: Console) -> list[Any]:
    """Run one search; return the warnings of the model that it chose."""
    try:
        with (
            console.counting(STAGES[type(search).__name__]) as update,
            recorded_warnings() as warned,
            checkpoint_noted(search.checkpoint),
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
        name = shortened(str(numbers.columns[column]), 60)
        where = named_cases(data.table, [int(case)])[0]
        place = f"column {name!r}, case {where}"
        largest = abs(float(data.table.data[numbers.columns[column]].iloc[case]))
        raise OverflowedError(largest, place) from None


@contextmanager
def checkpoint_noted(checkpoint: Path | None) -> Iterator[None]:
    """Add to Ctrl-C that the work so far is kept."""
    try:
        yield
    except KeyboardInterrupt as error:
        note = "nothing was kept; to be able to go on, run it again with --checkpoint FILE"
        if checkpoint is not None:
            kept = f"what was done is kept in {str(checkpoint)!r}"
            note = f"{kept}, and the same command goes on from there"
        error.add_note(note)
        raise


def searches_for(clusters: Any, bound: Any, estimator: Any, **how: Any) -> list[Any]:
    """Return the searches that "auto" clusters and a bound to "choose" stand for."""
    from rskc.selection import GapL1, Stability

    searches: list[Any] = []
    if clusters == "auto":
        searches.append(Stability(estimator, **how))
    if bound == "choose":
        searches.append(GapL1(estimator, **how))
    if len(searches) > 1 and how["checkpoint"] is not None:
        raise typer.BadParameter(
            "--checkpoint keeps one search, and two are asked for: choose the number of clusters "
            "first, with rskc select-k."
        )
    return searches
