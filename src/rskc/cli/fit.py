"""``rskc fit``, the whole job; and the searches: ``select-k``, ``select-l1`` and ``compare``."""

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
    Number,
    Numbers,
    Preparing,
    Reading,
    Results,
    ResultsOfFit,
    Searching,
    Sparsity,
    TablePath,
    Trimming,
)
from rskc.cli._output import check_report, open_model, results_folder, stem_of
from rskc.cli._terminal import show_result
from rskc.cli._work import fit_model, fit_searched, plan_of, work_on
from rskc.exceptions import ComparisonError

PANEL = "Choosing the settings"
NO_FOLDER = "Folder for the results (default: none)."


@dataclass(frozen=True)
class Job:
    """What fits and searches have in common: a table, read and prepared, and how it is fitted."""

    basics: Basics
    searching: Searching
    reading: Reading
    preparing: Preparing
    engine: EngineOptions

    def run(
        self,
        table: Path,
        estimator: Any,
        searches: list[Any],
        results: Results,
        folder: Path | None,
        console: Console,
    ) -> None:
        """Read the table, fit or search, write if there is a folder, and show."""
        from rskc.files import write_csv, write_ranked_lists

        is_plan = is_ranked = False
        if is_fit := isinstance(results, ResultsOfFit):
            is_plan, is_ranked = results.plan, results.ranked_lists
        report, groups = folder is not None and not results.no_report, self.basics.feature_groups
        check_report(report)
        place: Any = nullcontext()
        if folder is not None:  # it is there, with all that was written, when the block ends
            place = results_folder(folder, results.force, table, groups)
        with place as part, work_on(table, self.engine, self.basics.n_threads, console) as work:
            data = work.read(table, self.reading, self.preparing, groups, console)
            estimator.set_params(feature_groups=data.feature_groups)
            if is_plan:
                with console.busy("Estimating time and memory"):
                    plan = plan_of(searches or [estimator], data, work.why)
                console.print(str(plan))
                console.print_json(plan.as_dict())
                return
            if searches:
                result = fit_searched(searches, data, typed_command(), console)
            else:
                result = fit_model(estimator, data, typed_command(), console, work.why)
            with console.busy("Writing the results"):
                result = work.write(part, result, report=report, title=results.title)
                is_one = len(result.model.cluster_centers_) == 1
                if part is not None and not is_fit:
                    write_csv(searches[0].table_, part / "table.csv")
                if part is not None and is_ranked and not is_one:
                    write_ranked_lists(result.model, result.data.X, part)
        if is_ranked and is_one:
            console.note("One cluster has nothing to be compared with: there are no ranked lists.")
        show_result(result, folder, console)
        console.print_json(result.summary)

    def search(self, search: Any, table: Path, results: Results, console: Console) -> None:
        """Run a search."""
        search.set_params(**vars(self.searching), random_state=self.basics.random_state)
        self.run(table, search.estimator, [search], results, results.out, console)


@command(
    "fit",
    "rskc fit iris.csv",
    "rskc fit genes.tsv.gz -k 4 --features-in-rows --out results",
    out="Folder for the results (default: TABLE-rskc).",
)
def fit(
    table: TablePath,
    number: Number,
    trimming: Trimming,
    sparsity: Sparsity,
    job: Job,
    results: ResultsOfFit,
    console: Console,
) -> None:
    """Cluster the cases of a table, and write a page that explains the result.

    Without options, everything is recognized or chosen from the data.
    """
    folder = results.out if results.out is not None else Path(f"{stem_of(table)}-rskc")
    K, chooses_bound = number.n_clusters, sparsity.l1_bound == "choose"
    if chooses_bound and sparsity.n_features is not None:
        raise ValueError("--l1-bound choose and --n-features exclude each other; give one of them.")
    estimator, searches = job.basics.estimator(2 if K == "auto" else K, trimming, sparsity), []
    if chooses_bound:
        estimator.set_params(l1_bound="auto")
    if K == "auto" or chooses_bound:
        from rskc.selection import GapL1, Stability

        if K == "auto" and chooses_bound and job.searching.checkpoint is not None:
            raise typer.BadParameter(
                "--checkpoint keeps one search, and two are asked for: choose the number of "
                "clusters first, with rskc select-k."
            )
        kinds = [Stability] * (K == "auto") + [GapL1] * chooses_bound
        settings = vars(job.searching) | {"random_state": job.basics.random_state}
        searches = [kind(estimator, **settings) for kind in kinds]
    # A plan leaves nothing behind.
    job.run(table, estimator, searches, results, None if results.plan else folder, console)


@command(
    "select-k",
    "rskc select-k table.csv",
    "rskc select-k table.csv --clusters 2-6 --out choice --checkpoint choice.db",
    panel=PANEL,
    out=NO_FOLDER,
)
def select_k(
    table: TablePath,
    numbers: Numbers,
    trimming: Trimming,
    sparsity: Sparsity,
    job: Job,
    results: Results,
    console: Console,
) -> None:
    """Choose the number of clusters."""
    from rskc.selection import Clest, Stability

    kinds = {"stability": Stability, "clest": Clest}
    search = kinds[numbers.method](job.basics.estimator(2, trimming, sparsity))
    for name, value in vars(numbers).items():
        if name == "method" or value is None:
            continue
        if name not in search.get_params(deep=False):
            raise typer.BadParameter(f"--method {numbers.method} has no {NAMES[name]}.")
        search.set_params(**{name: value})
    job.search(search, table, results, console)


@command("select-l1", "rskc select-l1 table.csv --clusters 3", panel=PANEL, out=NO_FOLDER)
def select_l1(
    table: TablePath,
    bounds: Bounds,
    trimming: Trimming,
    job: Job,
    results: Results,
    console: Console,
) -> None:
    """Choose how many features get weight, by the gap to shuffled data."""
    from rskc.selection import GapL1

    given = dict(vars(bounds))
    estimator = job.basics.estimator(given.pop("n_clusters"), trimming)
    job.search(GapL1(estimator, **given), table, results, console)


@command(
    "compare",
    "rskc compare table.csv --clusters 2-4 --bounds 4 --trims 0,0.1",
    panel=PANEL,
    out=NO_FOLDER,
)
def compare(table: TablePath, grid: Grid, job: Job, results: Results, console: Console) -> None:
    """Fit all combinations of settings, and find the partition on which most of them agree."""
    from rskc.selection import GridSearch

    estimator = job.basics.estimator(grid.n_clusters[0])
    if grid.l1_bounds is None:
        estimator.set_params(l1_bound=None)
    job.search(GridSearch(estimator, **vars(grid)), table, results, console)


@command("changes", "rskc changes three-rskc four-rskc", panel=PANEL)
def changes(model: ModelPath, other: ModelPath, console: Console) -> None:
    """Show what changes from one saved result to another of the same table.

    Clusters are matched, so that their numbers do not matter.
    """
    from rskc.comparison import compare_solutions

    try:
        comparison = compare_solutions(open_model(model).model, open_model(other).model)
    except ComparisonError as error:
        names = {"a": repr(str(model)), "b": repr(str(other))}
        names["give the cases to compare them on as X"] = "fit both to the same table"
        raise ValueError(error.phrased(names)) from None
    console.print(comparison.summary(), soft_wrap=True)
    facts = {
        "table": comparison.table.to_numpy(),
        "matches": comparison.matches,
        "cer": comparison.cer,
        "cer_regular": comparison.cer_regular,
        "cases": comparison.cases.to_dict("records"),
        "features": comparison.features.to_dict("records"),
    }
    console.print_json(facts)
