"""Choosing: ``select-k``, ``select-l1``, ``compare``, and ``changes``."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from rskc.cli._app import command, typed_command
from rskc.cli._console import Console
from rskc.cli._options import (
    NAMES,
    Basics,
    Bounds,
    EngineOptions,
    Grid,
    ModelPath,
    Numbers,
    OneNumber,
    Preparing,
    Reading,
    Results,
    Searching,
    Sparsity,
    TablePath,
    Trimming,
)
from rskc.cli._output import check_report, open_model, results_folder
from rskc.cli._terminal import show_result
from rskc.cli._work import fit_searched, work_on
from rskc.exceptions import ComparisonError

PANEL = "Choosing the settings"


@dataclass(frozen=True)
class SearchRun:
    """What all searches have in common."""

    basics: Basics
    searching: Searching
    reading: Reading
    preparing: Preparing
    engine: EngineOptions
    results: Results

    def __call__(self, search: Any, table: Path, console: Console) -> None:
        """Read, search, write if there is a folder, and show."""
        from rskc.files import write_csv

        basics, results = self.basics, self.results
        folder: Any = nullcontext()
        search.set_params(**vars(self.searching), random_state=basics.random_state)
        report = results.out is not None and not results.no_report
        check_report(report)
        if results.out is not None:
            folder = results_folder(results.out, results.force, table, basics.feature_groups)
        with folder as part, work_on(table, self.engine, basics.n_threads, console) as work:
            data = work.read(table, self.reading, self.preparing, basics.feature_groups, console)
            search.estimator.set_params(feature_groups=data.feature_groups)
            result = fit_searched([search], data, typed_command(), console)
            with console.busy("Writing the results"):
                result = work.write(part, result, report=report, title=results.title)
                if part is not None:
                    write_csv(search.table_, part / "table.csv")
        show_result(result, results.out, console)
        console.print_json(result.summary)


@command(
    "select-k",
    "rskc select-k table.csv",
    "rskc select-k table.csv --clusters 2-6 --out choice --checkpoint choice.db",
    panel=PANEL,
)
def select_k(
    table: TablePath,
    numbers: Numbers,
    trimming: Trimming,
    sparsity: Sparsity,
    run: SearchRun,
    console: Console,
) -> None:
    """Choose the number of clusters."""
    from rskc.selection import Clest, Stability

    kinds = {"stability": Stability, "clest": Clest}
    search = kinds[numbers.method](run.basics.estimator(2, **vars(trimming), **vars(sparsity)))
    for name, value in vars(numbers).items():
        if name == "method" or value is None:
            continue
        if name not in search.get_params(deep=False):
            raise typer.BadParameter(f"--method {numbers.method} has no {NAMES[name]}.")
        search.set_params(**{name: value})
    run(search, table, console)


@command("select-l1", "rskc select-l1 table.csv --clusters 3", panel=PANEL)
def select_l1(
    table: TablePath,
    number: OneNumber,
    trimming: Trimming,
    bounds: Bounds,
    run: SearchRun,
    console: Console,
) -> None:
    """Choose how many features get weight, by the gap to shuffled data."""
    from rskc.selection import GapL1

    estimator = run.basics.estimator(number.n_clusters, **vars(trimming))
    run(GapL1(estimator, **vars(bounds)), table, console)


@command("compare", "rskc compare table.csv --clusters 2-4 --bounds 4 --trims 0,0.1", panel=PANEL)
def compare(table: TablePath, grid: Grid, run: SearchRun, console: Console) -> None:
    """Fit all combinations of settings, and see on which partition most of them agree."""
    from rskc.selection import GridSearch

    estimator = run.basics.estimator(grid.n_clusters[0])
    if grid.l1_bounds is None:
        estimator.set_params(l1_bound=None)
    run(GridSearch(estimator, **vars(grid)), table, console)


@command("changes", "rskc changes three-rskc four-rskc", panel=PANEL)
def changes(model: ModelPath, other: ModelPath, console: Console) -> None:
    """Show what changes from one saved result to another of the same table.

    Clusters are matched, so that their numbers do not matter.
    """
    from rskc.comparison import compare_solutions

    try:
        found = compare_solutions(open_model(model).model, open_model(other).model)
    except ComparisonError as error:
        names = {"a": repr(str(model)), "b": repr(str(other))}
        names["give the cases to compare them on as X"] = "fit both to the same table"
        raise ValueError(error.phrased(names)) from None
    console.print(found.summary(), soft_wrap=True)
    facts = {
        "table": found.table.to_numpy(),
        "matches": found.matches,
        "cer": found.cer,
        "cer_regular": found.cer_regular,
        "cases": found.cases.to_dict("records"),
        "features": found.features.to_dict("records"),
    }
    console.print_json(facts)
