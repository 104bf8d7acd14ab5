"""Choosing the settings: ``select-k``, ``select-l1``, ``select-trim`` and ``compare``."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Option

from rskc.cli._app import command, typed_command
from rskc.cli._engine import Engine
from rskc.cli._folder import results_folder
from rskc.cli._options import (
    MODEL,
    SEARCH,
    Basics,
    Reading,
    Results,
    Searching,
    Sparsity,
    Standardizing,
    TablePath,
    Trimming,
)
from rskc.cli._phrases import some_bounds, some_clusters, some_shares
from rskc.cli._results import check_report
from rskc.cli._show import show_result
from rskc.cli._voice import Voice
from rskc.cli._work import fit_searched, work_on

PANEL = "Choosing the settings"
K = Annotated[
    int,
    Option(
        "--clusters",
        "-k",
        metavar="NUMBER",
        help="Number of clusters.",
        rich_help_panel=MODEL,
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Method:
    """How the number of clusters is chosen."""

    method: Annotated[
        Literal["clest", "gap", "strength"],
        Option(
            metavar="HOW",
            help="clest, gap or strength: by prediction, the gap statistic or prediction strength.",
            rich_help_panel=SEARCH,
        ),
    ] = "clest"
    rule: Annotated[
        Literal["agreement", "paper"] | None,
        Option(metavar="NAME", help="Rule of Clest: agreement or paper.", rich_help_panel=SEARCH),
    ] = None
    splits: Annotated[
        int | None,
        Option(
            metavar="NUMBER",
            help="Splits of Clest and of prediction strength; else 20.",
            rich_help_panel=SEARCH,
        ),
    ] = None
    references: Annotated[
        int | None,
        Option(
            metavar="NUMBER",
            help="Reference sets of Clest and of the gap; else 20.",
            rich_help_panel=SEARCH,
        ),
    ] = None

    def search(self, estimator: Any, numbers: list[int] | None, **how: Any) -> Any:
        """The search, with what was asked for."""
        from rskc.selection import Clest, GapK, PredictionStrength

        kinds = {"clest": Clest, "gap": GapK, "strength": PredictionStrength}
        given = {"rule": self.rule, "n_splits": self.splits, "n_references": self.references}
        given = {name: value for name, value in given.items() if value is not None}
        search = kinds[self.method](estimator, **how)
        for name in given:
            if name not in search.get_params(deep=False):
                option = f"--{name.removeprefix('n_')}"
                raise typer.BadParameter(f"--method {self.method} has no {option}.")
        return search.set_params(**given, **({} if numbers is None else {"n_clusters": numbers}))


@command(
    "select-k",
    "rskc select-k table.csv",
    "rskc select-k table.csv --clusters 2-6 --out choice --checkpoint choice.db",
    panel=PANEL,
)
def select_k(
    table: TablePath,
    method: Method,
    trimming: Trimming,
    sparsity: Sparsity,
    basics: Basics,
    searching: Searching,
    reading: Reading,
    standardizing: Standardizing,
    engine: Engine,
    results: Results,
    voice: Voice,
    clusters: Annotated[
        Any,
        Option(
            "--clusters",
            "-k",
            parser=some_clusters,
            metavar="NUMBERS",
            help="Numbers to try, such as 2-8 or 2,4,6; else 2-8 (1-8 for gap and strength).",
            rich_help_panel=MODEL,
        ),
    ] = None,
) -> None:
    """Choose the number of clusters."""
    estimator = basics.estimator(2, **vars(trimming), **vars(sparsity))
    search = method.search(estimator, clusters, **_how(searching, basics))
    run(search, table, Run(reading, standardizing, engine, basics.threads, results, voice))


@command("select-l1", "rskc select-l1 table.csv --clusters 3", panel=PANEL)
def select_l1(
    table: TablePath,
    clusters: K,
    trimming: Trimming,
    basics: Basics,
    searching: Searching,
    reading: Reading,
    standardizing: Standardizing,
    engine: Engine,
    results: Results,
    voice: Voice,
    bounds: Annotated[
        Any,
        Option(
            parser=some_bounds,
            metavar="BOUNDS",
            help="How many bounds to try, or which: 2,4,8.",
            rich_help_panel=SEARCH,
        ),
    ] = "10",
    permutations: Annotated[
        int, Option(metavar="NUMBER", help="Shuffled data sets.", rich_help_panel=SEARCH)
    ] = 20,
) -> None:
    """Choose how many features get weight, by the gap to shuffled data."""
    from rskc.selection import GapL1

    if bounds is None:
        raise typer.BadParameter("--bounds none leaves nothing to choose from.")
    estimator = basics.estimator(clusters, **vars(trimming))
    search = GapL1(estimator, bounds, n_permutations=permutations, **_how(searching, basics))
    run(search, table, Run(reading, standardizing, engine, basics.threads, results, voice))


@command("select-trim", "rskc select-trim table.csv --clusters 3 --trims 0,0.05,0.1", panel=PANEL)
def select_trim(
    table: TablePath,
    clusters: K,
    sparsity: Sparsity,
    basics: Basics,
    searching: Searching,
    reading: Reading,
    standardizing: Standardizing,
    engine: Engine,
    results: Results,
    voice: Voice,
    trims: Annotated[
        Any,
        Option(
            parser=some_shares,
            metavar="SHARES",
            help="Shares to try; else 0, 0.02, ... 0.2.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
) -> None:
    """Choose the share of cases to trim: the least from which on the clusters stay as they are."""
    from rskc.selection import TrimCurves

    given = {} if trims is None else {"trims": trims}
    search = TrimCurves(
        basics.estimator(clusters, **vars(sparsity)), **given, **_how(searching, basics)
    )
    run(search, table, Run(reading, standardizing, engine, basics.threads, results, voice))


@command("compare", "rskc compare table.csv --clusters 2-4 --bounds 4 --trims 0,0.1", panel=PANEL)
def compare(
    table: TablePath,
    basics: Basics,
    searching: Searching,
    reading: Reading,
    standardizing: Standardizing,
    engine: Engine,
    results: Results,
    voice: Voice,
    clusters: Annotated[
        Any,
        Option(
            "--clusters",
            "-k",
            parser=some_clusters,
            metavar="NUMBERS",
            help="Numbers of clusters, such as 2-4.",
            rich_help_panel=MODEL,
            show_default=False,
        ),
    ],
    bounds: Annotated[
        Any,
        Option(
            parser=some_bounds,
            metavar="BOUNDS",
            help="How many bounds, or which: 2,4,8; none: no sparsity.",
            rich_help_panel=SEARCH,
        ),
    ] = "5",
    trims: Annotated[
        Any,
        Option(
            parser=some_shares, metavar="SHARES", help="Shares to trim.", rich_help_panel=SEARCH
        ),
    ] = "0,0.05,0.1",
) -> None:
    """Fit all combinations of settings, and see on which partition most of them agree."""
    from rskc.selection import GridSearch

    estimator = basics.estimator(clusters[0])
    search = GridSearch(estimator, clusters, bounds, trims, **_how(searching, basics))
    run(search, table, Run(reading, standardizing, engine, basics.threads, results, voice))


@dataclass(frozen=True)
class Run:
    """What all searches are told alike."""

    reading: Reading
    standardizing: Standardizing
    engine: Engine
    threads: int | None
    results: Results
    voice: Voice


def _how(searching: Searching, basics: Basics) -> dict[str, Any]:
    return {
        "n_jobs": searching.jobs,
        "checkpoint": searching.checkpoint,
        "max_samples": searching.max_samples,
        "random_state": basics.seed,
    }


def run(search: Any, table: Path, how: Run) -> None:
    """Read, search, write if there is a folder, and show."""
    from rskc.files import write_csv

    results, voice = how.results, how.voice
    report = results.out is not None and not results.no_report
    check_report(report)
    folder = nullcontext() if results.out is None else results_folder(results.out, results.force)
    with folder as part, work_on(table, how.engine, how.threads, voice) as (read, write):
        data = read(table, how.reading, how.standardizing, voice)
        result = fit_searched([search], data, typed_command(), voice)
        with voice.busy("Writing the results"):
            result = write(part, result, report=report, title=results.title)
            if part is not None:
                write_csv(search.table_, part / "table.csv")
    show_result(result, results.out, voice)
    voice.tell(result.summary)
