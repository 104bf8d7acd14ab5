"""Choosing: ``select-k``, ``select-l1``, ``compare``, and ``changes``."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, Literal

import typer

from rskc.cli._app import command, typed_command
from rskc.cli._console import Console
from rskc.cli._options import (
    SEARCH,
    Basics,
    EngineOptions,
    ModelPath,
    Preparing,
    Reading,
    Results,
    Searching,
    Sparsity,
    TablePath,
    Trimming,
    clusters_option,
    option,
)
from rskc.cli._output import check_report, open_model, results_folder
from rskc.cli._tables import grouped
from rskc.cli._terminal import show_result
from rskc.cli._values import some_bounds, some_clusters, some_shares
from rskc.cli._work import fit_searched, work_on
from rskc.exceptions import ComparisonError

PANEL = "Choosing the settings"


@dataclass(frozen=True)
class OneNumber:
    """The number of clusters."""

    clusters: int = clusters_option(MISSING, "Number of clusters.", "NUMBER")


@dataclass(frozen=True)
class Numbers:
    """Numbers of clusters to try, and how one of them is chosen."""

    clusters: Any = clusters_option(
        None,
        "Numbers to try, such as 2-8 or 2,4,6; else 2-10, and more where these are too few (2-8 "
        "for clest).",
        "NUMBERS",
        parser=some_clusters,
    )
    method: Literal["stability", "clest"] = option(
        SEARCH,
        "stability",
        "stability: by half-samples; clest: by Clest, the paper's way.",
        metavar="HOW",
    )
    rule: Literal["agreement", "paper"] | None = option(
        SEARCH, None, "Rule of Clest: agreement or paper.", metavar="NAME"
    )
    splits: int | None = option(
        SEARCH, None, "Splits of the cases; else 6, for clest 20.", metavar="NUMBER"
    )
    references: int | None = option(
        SEARCH, None, "Reference sets of stability and clest; else 20.", metavar="NUMBER"
    )


@dataclass(frozen=True)
class Bounds:
    """Bounds to try."""

    bounds: Any = option(
        SEARCH,
        "10",
        "How many bounds to try, or which: 2,4,8.",
        parser=some_bounds,
        metavar="BOUNDS",
    )
    permutations: int = option(SEARCH, 20, "Shuffled data sets.", metavar="NUMBER")


@dataclass(frozen=True)
class Grid:
    """Settings of which all combinations are tried."""

    clusters: Any = clusters_option(
        MISSING, "Numbers of clusters, such as 2-4.", "NUMBERS", parser=some_clusters
    )
    bounds: Any = option(
        SEARCH,
        "5",
        "How many bounds, or which: 2,4,8; none: all features have the same weight.",
        parser=some_bounds,
        metavar="BOUNDS",
    )
    trims: Any = option(
        SEARCH, "0,0.05,0.1", "Shares to trim.", parser=some_shares, metavar="SHARES"
    )


@dataclass(frozen=True)
class SearchRun:
    """What all searches have in common."""

    basics: Basics
    searching: Searching
    reading: Reading
    preparing: Preparing
    engine: EngineOptions
    results: Results

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that all searches take."""
        return self.searching.arguments(self.basics.seed)

    def __call__(self, search: Any, table: Path, console: Console) -> None:
        """Read, search, write if there is a folder, and show."""
        from rskc.files import write_csv

        results = self.results
        report = results.out is not None and not results.no_report
        check_report(report)
        folder = (
            nullcontext()
            if results.out is None
            else results_folder(results.out, results.force, table, self.basics.groups)
        )
        work = work_on(table, self.engine, self.basics.threads, console)
        with folder as part, work as (read, write):
            data = grouped(read(table, self.reading, self.preparing, console), self.basics.groups)
            search.estimator.set_params(feature_groups=data.feature_groups)
            result = fit_searched([search], data, typed_command(), console)
            with console.busy("Writing the results"):
                result = write(part, result, report=report, title=results.title)
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
    estimator = run.basics.estimator(2, **vars(trimming), **vars(sparsity))
    search = kinds[numbers.method](estimator, **run.arguments())
    options = {
        "n_clusters": ("--clusters", numbers.clusters),
        "rule": ("--rule", numbers.rule),
        "n_splits": ("--splits", numbers.splits),
        "n_references": ("--references", numbers.references),
    }
    for name, (typed, value) in options.items():
        if value is None:
            continue
        if name not in search.get_params(deep=False):
            raise typer.BadParameter(f"--method {numbers.method} has no {typed}.")
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

    if bounds.bounds is None:
        raise typer.BadParameter("--bounds none leaves nothing to choose from.")
    estimator = run.basics.estimator(number.clusters, **vars(trimming))
    n_permutations = bounds.permutations
    search = GapL1(estimator, bounds.bounds, n_permutations=n_permutations, **run.arguments())
    run(search, table, console)


@command("compare", "rskc compare table.csv --clusters 2-4 --bounds 4 --trims 0,0.1", panel=PANEL)
def compare(table: TablePath, grid: Grid, run: SearchRun, console: Console) -> None:
    """Fit all combinations of settings, and see on which partition most of them agree."""
    from rskc.selection import GridSearch

    estimator = run.basics.estimator(grid.clusters[0])
    if grid.bounds is None:
        estimator.set_params(l1_bound=None)
    search = GridSearch(estimator, grid.clusters, grid.bounds, grid.trims, **run.arguments())
    run(search, table, console)


@command("changes", "rskc changes three-rskc four-rskc", panel=PANEL)
def changes(model: ModelPath, other: ModelPath, console: Console) -> None:
    """Show what changes from one saved result to another of the same table.

    Clusters are matched, so that their numbers do not matter.
    """
    from rskc.comparison import compare_solutions

    first, second = open_model(model).model, open_model(other).model
    try:
        found = compare_solutions(first, second)
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
