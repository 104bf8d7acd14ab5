"""Clustering and searching, with progress, and warnings kept as sentences."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rskc.cli._engine import Engine, dask_at_work
from rskc.cli._results import Result, write_others, write_results
from rskc.cli._tables import Data, read
from rskc.cli._voice import Voice, heard

MOST_CLUSTERS = 8  # that --clusters auto tries


class Work(NamedTuple):
    """How tables are read, and results written to a folder, or nowhere, and returned."""

    read: Callable[..., Data]
    write: Callable[..., Result]


@contextmanager
def work_on(table: Path, engine: Engine, n_threads: int | None, voice: Voice) -> Iterator[Work]:
    """Work on a table in memory or, if it is too large or asked for, block by block."""
    if not engine.in_blocks(table):
        yield Work(read, _write)
        return
    from rskc.cli._blocks import read_blocks

    with dask_at_work(engine, n_threads, voice):
        yield Work(read_blocks, _write_blocks)


def _write(folder: Path | None, result: Result, *, report: bool, title: str | None) -> Result:
    if folder is not None:
        write_results(folder, result, report=report, title=title)
    return result


def _write_blocks(folder: Path | None, result: Result, **how: Any) -> Result:
    from rskc.cli._blocks import write_cases

    # Where nothing is written there still is to be counted.
    result = write_cases(os.devnull if folder is None else folder / "labels.csv", result)
    if folder is not None:
        write_others(folder, result, **how)
    return result


def fit_model(estimator: Any, data: Data, command: list[str], voice: Voice) -> Result:
    """Fit an estimator as it is."""
    start = time.perf_counter()
    n, p = data.shape
    with voice.busy(f"Clustering {n:,} cases by {p:,} features"), heard() as warned:
        model = estimator.fit(data.X)
    return Result(data, model, [], warned, time.perf_counter() - start, command)


def fit_searched(searches: list[Any], data: Data, command: list[str], voice: Voice) -> Result:
    """Run searches, each with the estimator that the one before has chosen."""
    start = time.perf_counter()
    found: list[Any] = []
    warned: list[str] = []
    for search in searches:
        if found:
            if found[-1].best_estimator_.n_clusters == 1:
                skipped = "One cluster gives no reason to prefer features: no bound was searched."
                return _result(data, found, [*warned, skipped], start, command)
            search.set_params(estimator=found[-1].best_estimator_)
        warned = run_search(search, data.X, voice)
        found.append(search)
    return _result(data, found, warned, start, command)


def _result(
    data: Data, found: list[Any], warned: list[str], start: float, command: list[str]
) -> Result:
    model, seconds = found[-1].best_estimator_, time.perf_counter() - start
    return Result(data, model, found, warned, seconds, command)


def run_search(search: Any, X: Any, voice: Voice) -> list[str]:
    """Run one search; returns what the model that it chose warned of."""
    name = type(search).__name__
    try:
        with voice.counting(name) as update, heard() as warned:
            search.set_params(progress=update).fit(X)
    except KeyboardInterrupt as error:
        if search.checkpoint is not None:
            kept = f"what was done is kept in {str(search.checkpoint)!r}"
            error.add_note(f"{kept}, and the same command goes on from there")
        raise
    finally:
        search.set_params(progress=False)
    return warned


def searches_for(clusters: Any, bound: Any, estimator: Any, n_cases: int, **how: Any) -> list[Any]:
    """The searches that "auto" clusters and a bound to "choose" stand for."""
    from rskc.selection import Clest, GapL1

    searches: list[Any] = []
    if clusters == "auto":
        most = max(2, min(MOST_CLUSTERS, n_cases // 3))
        searches.append(Clest(estimator, range(2, most + 1), **how))
    if bound == "choose":
        searches.append(GapL1(estimator, **how))
    return searches
