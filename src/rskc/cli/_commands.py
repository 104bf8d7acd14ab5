"""The commands: ``fit``, the whole job; searches; pages of settings, of results, of a tour.

Importing a command registers it, in the order of the help.
"""

import json
import shlex
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from rskc.cli import STARTED
from rskc.cli._app import Console, app, command, recorded_warnings
from rskc.cli._options import (
    NAMES,
    Basics,
    Bounds,
    EngineOptions,
    ExploredSettings,
    Grid,
    ModelPath,
    Number,
    Numbers,
    Page,
    Preparing,
    Reading,
    Rereading,
    Results,
    Searching,
    Sparsity,
    TableFile,
    TablePath,
    Target,
    Trimming,
    settings_of,
)
from rskc.cli._output import (
    bold,
    check_no_file,
    check_report,
    clusters_table,
    open_model,
    preparer_of,
    results_folder,
    show_result,
    stem_of,
    write_others,
    write_page,
)
from rskc.cli._results import Counts, Result
from rskc.cli._tables import Data, is_sparse, prepared, read, reread
from rskc.cli._work import fit_model, fit_searched, plan_of, run_search, work_on
from rskc.exceptions import ComparisonError
from rskc.utils.wording import cleaned, count, on_outliers, quoted

__all__ = ["app"]

PANEL = "Choosing the settings"
NO_FOLDER = "Folder for the results (default: none)."


@dataclass(frozen=True)
class Job:
    """What fits and searches have in common: a table, how it is read and fitted, and results."""

    table: TablePath
    basics: Basics
    searching: Searching
    reading: Reading
    preparing: Preparing
    engine: EngineOptions
    results: Results
    console: Console

    def run(self, estimator: Any, searches: list[Any], usual_folder: Path | None = None) -> None:
        """Read the table, fit or search, write if there is a folder, and show."""
        from rskc.files import write_csv, write_ranked_lists

        table, groups = self.table, self.basics.feature_groups
        results, console = self.results, self.console
        folder = None if results.plan else results.out or usual_folder  # a plan leaves nothing
        place: Any = nullcontext()
        if folder is not None:  # it is there, with all that was written, when the block ends
            place = results_folder(folder, results.force, table, groups)
            if not results.no_report:
                check_report()
        with place as part, work_on(table, self.engine, self.basics.n_threads, console) as work:
            data = work.read(table, self.reading, self.preparing, groups, console)
            estimator.set_params(feature_groups=data.feature_groups)
            if results.plan:
                with console.busy("Estimating time and memory"):
                    plan = plan_of(searches or [estimator], data, work.why)
                console.print(str(plan))
                console.print_json(plan.as_dict())
                return
            if searches:
                result = fit_searched(searches, data, console)
            else:
                result = fit_model(estimator, data, console, work.why)
            with console.busy("Writing the results"):
                result = work.write_cases(part, result)
                if part is not None:
                    write_others(part, result, results)
                    if usual_folder is None:  # it is a command that searches
                        write_csv(searches[0].table_, part / "table.csv")
                    if results.ranked_lists and not result.is_one:
                        write_ranked_lists(result.model, result.data.X, part)
        if results.ranked_lists and result.is_one:
            console.note("One cluster has nothing to be compared with: there are no ranked lists.")
        show_result(result, folder, console)
        console.print_json(result.summary)

    def search(self, search: Any) -> None:
        """Run a search."""
        search.set_params(**vars(self.searching), random_state=self.basics.random_state)
        self.run(search.estimator, [search])


@command(
    "fit",
    "rskc fit iris.csv",
    "rskc fit genes.tsv.gz -k 4 --features-in-rows --out results",
    out="Folder for the results (default: TABLE-rskc).",
)
def fit(number: Number, trimming: Trimming, sparsity: Sparsity, job: Job) -> None:
    """Cluster the cases of a table, and write a page that explains the result.

    Without options, everything is recognized or chosen from the data.
    """
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
    job.run(estimator, searches, Path(f"{stem_of(job.table)}-rskc"))


@command(
    "select-k",
    "rskc select-k table.csv",
    "rskc select-k table.csv --clusters 2-6 --out choice --checkpoint choice.db",
    panel=PANEL,
    out=NO_FOLDER,
)
def select_k(numbers: Numbers, trimming: Trimming, sparsity: Sparsity, job: Job) -> None:
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
    job.search(search)


@command("select-l1", "rskc select-l1 table.csv --clusters 3", panel=PANEL, out=NO_FOLDER)
def select_l1(bounds: Bounds, trimming: Trimming, job: Job) -> None:
    """Choose how many features get weight, by the gap to shuffled data."""
    from rskc.selection import GapL1

    given = dict(vars(bounds))
    job.search(GapL1(job.basics.estimator(given.pop("n_clusters"), trimming), **given))


@command(
    "compare",
    "rskc compare table.csv --clusters 2-4 --bounds 4 --trims 0,0.1",
    panel=PANEL,
    out=NO_FOLDER,
)
def compare(grid: Grid, job: Job) -> None:
    """Fit all combinations of settings, and find the partition on which most of them agree."""
    from rskc.selection import GridSearch

    estimator = job.basics.estimator(grid.n_clusters[0])
    if grid.l1_bounds is None:
        estimator.set_params(l1_bound=None)
    job.search(GridSearch(estimator, **vars(grid)))


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
    facts = {"table": comparison.table.to_numpy()}
    facts |= {name: getattr(comparison, name) for name in ("matches", "cer", "cer_regular")}
    facts |= {name: getattr(comparison, name).to_dict("records") for name in ("cases", "features")}
    console.print_json(facts)


@command(
    "explore",
    "rskc explore table.csv",
    "rskc explore genes.csv -k 2-5 --n-features 10,50,200 --trims 0,0.1 --out genes.html",
    out="The page (default: TABLE-explorer.html).",
)
def explore(
    table: TableFile,
    settings: ExploredSettings,
    reading: Reading,
    preparing: Preparing,
    basics: Basics,
    searching: Searching,
    page: Page,
    console: Console,
) -> None:
    """Fit many settings, and write one page with sliders to compare them.

    It works offline and can be mailed.
    """
    from rskc.explorer.grid import Exploration

    out = page.out or Path(f"{stem_of(table)}-explorer.html")
    check_no_file(out, page.force, table)
    data = read(table, reading, preparing, basics.feature_groups, console)
    how = vars(settings) | vars(searching) | {"random_state": basics.random_state}
    estimator = basics.estimator(2).set_params(feature_groups=data.feature_groups)
    search, (n, p) = Exploration(estimator, **how), data.shape
    used = min(n, searching.max_samples)
    numbers, features, trims = search.planned(used, p)
    halves = f" and {count(2 * search.n_splits, 'half', 'halves')} of them" * (search.n_splits > 0)
    console.print(
        f"{count(len(numbers), 'number')} of clusters x {len(features)} of features x "
        f"{count(len(trims), 'share')} to trim: {len(numbers) * len(features) * len(trims):,} "
        f"settings, each fitted to {count(used, 'case')}{halves}."
    )
    warned = run_search(search, data, console)
    with console.busy("Writing the page"):
        _write_explorer(out, search, data, page.title)
    choice, axes = search.choice_, search.axes_
    console.print("", bold(f"{count(axes.n_settings, 'setting')} for {count(n, 'case')}."))
    console.print(choice.reason)
    console.note(*data.notes, *warned)
    console.print(f"Time: {time.perf_counter() - STARTED:.1f} s")
    console.print("", f"The page is in {cleaned(out, 2000)}: open it in a browser", soft_wrap=True)
    names = ("n_settings", "n_clusters", "n_features", "trims")
    facts = {"file": str(out), **{name: getattr(axes, name) for name in names}}
    facts |= {"chosen": choice.n_clusters, "reason": choice.reason, "notes": data.notes}
    console.print_json(facts)


def _write_explorer(path: Path, search: Any, data: Data, title: str | None) -> None:
    """Write the page; clusters are numbered as in a report of the same table in its folder."""
    from rskc.explorer import Explorer
    from rskc.files import ModelFileError

    labels = None
    if (path.parent / "model.rskc").exists():
        with suppress(ModelFileError, OSError):
            saved = open_model(path.parent)
            same = saved.extra.get("sha256") == data.table.sha256 is not None
            if same and len(saved.model.labels_) == len(data.X):
                labels = saved.model.labels_
    Explorer(
        search,
        labels=data.table.labels,
        case_names=list(data.X.index),
        title=title or f"Clusters of {data.table.path.name}",
        run=data.run(),
        command=lambda model: shlex.join([*data.command("fit"), *settings_of(model)]),
        units=data.units,
        numbered_like=labels,
    ).save(path)


@command(
    "report",
    "rskc report iris-rskc iris.csv --out iris.html --title Iris",
    out="The page (default: report.html beside the model).",
)
def report(
    model: ModelPath, table: TableFile, rereading: Rereading, page: Page, console: Console
) -> None:
    """Write the HTML page of a saved result again, given its table."""
    check_report()
    saved = open_model(model)
    out = page.out or (model if model.is_dir() else model.parent) / "report.html"
    check_no_file(out, page.force, table)
    extra = saved.extra
    data = reread(table, rereading.like(extra.get("reading", {})), preparer_of(saved), console)
    doubts = []
    if extra.get("sha256") not in (None, data.table.sha256):
        doubts = [
            f"{table.name!r} differs from the file of the fit ({extra.get('file')!r}); the page is "
            "right only if the numbers are the same."
        ]
    typed, kept = list(extra.get("command", [])), extra.get("searches")
    with console.busy("Writing the page"):
        result = Result(data, saved.model, [], doubts, 0.0, typed, kept=kept)
        write_page(out, result, page.title or extra.get("title"))
    console.note(*doubts)
    console.print(f"The page is in {out}: open it in a browser", soft_wrap=True)
    console.print_json({"file": str(out), "warnings": doubts})


# Of the table of the tour: patients, genes, those that separate the groups, outlying cases.
TOUR = N_PATIENTS, N_GENES, N_TELLING, N_OUTLYING = 90, 200, 20, 3


@command(
    "demo", "rskc demo", "rskc demo --out tour", out="Folder for the files (default: rskc-demo)."
)
def demo(target: Target, console: Console) -> None:
    """Take a tour: make a table, choose the settings, cluster, and write the pages.

    It takes some seconds.
    """
    check_report()
    folder = target.out or Path("rskc-demo")
    table, results, title = folder / "expression.csv", folder / "expression-rskc", "A tour of rskc"
    force = _write_table(table, target.force)

    def show(heading: str, words: str, command: list[Any] | None = None) -> None:
        console.print("", bold(heading, "bold cyan"), words)
        if command:
            console.print(f"   {shlex.join(map(str, ['rskc', *command]))}", soft_wrap=True)

    show(
        "1. A table",
        f"{N_PATIENTS} patients x {N_GENES} genes in {table}. Three groups of patients differ in "
        f"{N_TELLING} genes; all other genes are noise, and {2 * N_OUTLYING} patients have an "
        "outlying cell.",
    )
    show(
        "2. Clusters and features",
        "How many clusters are there, which genes separate them, and which patients are outlying? "
        "The data decide. To do the same yourself:",
        ["fit", table],
    )
    how = Basics(), Searching(), Reading(), Preparing()
    shown = replace(console, quiet=console.silent, json=False)
    job = Job(table, *how, EngineOptions(), Results(results, force, title), shown)
    fit(Number(), Trimming(), Sparsity(), job)
    page = Page(results / "explorer.html", force, title)
    show(
        "3. All other settings",
        "Would other numbers of clusters and genes do as well? A page with sliders shows it:",
        ["explore", table, "--out", page.out],
    )
    basics, searching, reading, preparing = how
    explore(table, ExploredSettings(), reading, preparing, basics, searching, page, shown)
    show("4. The pages", "Open them in a browser.")
    console.print(f"   {results / 'report.html'}", "explains the result", soft_wrap=True)
    console.print(f"   {page.out}", "compares it with others", soft_wrap=True)
    console.print_json(json.loads((results / "summary.json").read_text("utf-8")))


def _write_table(path: Path, force: bool) -> bool:
    """Write the table; return whether results beside it may be replaced, since they are ours.

    Three groups differ in a few genes; a few patients have an outlying cell.
    """
    import pandas as pd

    from rskc.datasets import make_contaminated
    from rskc.files.writing import csv_parts
    from rskc.utils.atomic import atomic_write

    data, groups, outliers, _ = make_contaminated("shared_cell", *TOUR, random_state=1)
    cells = data.round(3)
    cells[np.flatnonzero(~outliers)[:: N_PATIENTS // N_OUTLYING], 0] = 25.0
    frame = pd.DataFrame(cells, columns=[f"gene{j:03d}" for j in range(1, N_GENES + 1)])
    frame.insert(0, "patient", [f"P{i:03d}" for i in range(1, N_PATIENTS + 1)])
    frame.insert(1, "group", np.array(["mild", "medium", "severe"])[groups])
    content = b"".join(csv_parts([frame]))
    ours = path.is_file() and path.read_bytes() == content
    if path.exists() and not (ours or force):
        raise ValueError(f"{str(path)!r} already exists; use --force, or --out for another folder.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content)
    return ours or force


@command(
    "predict",
    "rskc predict iris-rskc new.csv --out new-labels.csv",
    "rskc predict model.rskc new.csv --out - | head",
    out="The file (default: the name of the table and -labels.csv; - prints it).",
)
def predict(
    model: ModelPath,
    table: TablePath,
    rereading: Rereading,
    engine: EngineOptions,
    target: Target,
    console: Console,
) -> None:
    """Assign the cases of another table to the clusters of a fit.

    Columns are found by their names, in whatever order. They are prepared as for the fit.
    """
    from rskc.files.writing import csv_parts, write_csv_parts

    out = target.out or Path("-" if console.json else f"{stem_of(table)}-labels.csv")
    is_printed = out == Path("-")
    if not is_printed:
        check_no_file(out, target.force, table)
    with work_on(table, engine, None, console) as work:
        saved = open_model(model)
        with console.busy(f"Reading {table.name}"):
            frames, notes = _predicted(saved, table, rereading, work.in_blocks)
        counts = Counts(len(saved.model.cluster_centers_))
        with console.busy("Predicting"):
            counted = map(counts.add, frames)
            printed = list(counted) if is_printed else []
            if not is_printed:
                write_csv_parts(counted, out)
    console.note(*notes)
    clusters = [row for row in counts.clusters() if row["cases"]]
    facts: dict[str, Any] = {
        "n_cases": counts.total("cases"),
        "sizes": {row["cluster"]: row["cases"] for row in clusters},
        "outliers": {row["cluster"]: row["outliers"] for row in clusters if row["outliers"]},
        "n_outliers": counts.total("outliers"),
        "n_without_data": counts.total("blind"),
        "notes": notes,
        "file": None if is_printed else str(out),
    }
    if is_printed:
        facts["cases"] = [case for part in printed for case in part.to_dict("records")]
        if not console.silent:
            typer.echo(b"".join(csv_parts(printed)), nl=False)
    else:
        outliers = on_outliers(facts["n_outliers"], facts["n_without_data"])
        cases = f"{count(facts['n_cases'], 'case')} of {cleaned(table.name, 80)}"
        console.print("", bold(f"{cases}; {outliers}."), "", clusters_table(counts))
        words = f"Cluster, distances and more for each case: {out}"
        console.print(words, soft_wrap=True)
    console.print_json(facts)


def _predicted(
    saved: Any, path: Path, rereading: Rereading, in_blocks: bool
) -> tuple[Iterable[Any], list[str]]:
    """Return the clusters of a table, in a frame or in one for each block, and notes."""
    from rskc.files import read_table
    from rskc.inputs.columns import same_unit

    preparer = preparer_of(saved)
    if in_blocks:
        from rskc.cli._blocks import predicted_parts
        from rskc.files.blocks import open_blocks

        blocks = _read_like_fit(open_blocks, saved, path, rereading)
        _, notes = matched(blocks, saved.model, preparer)
        return predicted_parts(blocks, saved.model, preparer, _clusters), notes
    table = _read_like_fit(read_table, saved, path, rereading)
    for name, unit in table.written.items():
        known = saved.extra.get("units", {}).get(name, "")
        if unit and known and same_unit(unit) != same_unit(known):
            raise ValueError(
                f"{path.name!r}: column {name!r} is in {unit}, and was in {known} in the fit; "
                f"write it in {known}."
            )
    X, notes = matched(table, saved.model, preparer)
    with recorded_warnings() as warned:
        frame = _clusters(saved.model, prepared(preparer, X))
    return [frame], [*notes, *map(str, warned)]


def _read_like_fit(read: Callable, saved: Any, path: Path, rereading: Rereading) -> Any:
    """Read a table as that of the fit; it need not have ids or labels because that had."""
    from rskc.files import TableError

    categories = []
    if (encoder := getattr(saved.model, "encoder_", None)) is not None:
        codes = zip(saved.model.feature_names_in_, encoder.columns_, strict=True)
        categories = [str(name) for name, code in codes if code.categories]
    free = dict.fromkeys(["id_column", "label_column", "weight_column", "label_row"])
    # The model knows which columns are features.
    known = {"drop": [], "use_columns": "all", "text_columns": "drop", "categorical": categories}
    arguments = rereading.like(saved.extra.get("reading", {}) | free | known)
    ids = saved.extra.get("id_column") or None
    if rereading.id_column is None:
        arguments["id_column"] = ids
    while True:
        try:
            return read(path, **arguments)
        except TableError as error:
            categories = arguments["categorical"]
            # What the table lacks is refused later, if it has weight.
            present = [name for name in categories if name != error.name]
            if error.parameter == "categorical" and present != categories:
                arguments["categorical"] = present
            elif error.parameter == "id_column" and arguments["id_column"] == ids:
                arguments["id_column"] = None
            else:
                raise


def matched(table: Any, model: Any, preparer: Any) -> tuple[Any, list[str]]:
    """Return the columns that the model knows, in its order; refuse if some that count are missing.

    A feature without weight changes no distance, so a table of the selected ones will do; not if
    rows are standardized, by all of their cells.
    """
    names, frame = getattr(model, "feature_names_in_", None), table.data
    if names is None:
        if frame.shape[1] != model.n_features_in_:
            raise ValueError(
                f"{table.path.name!r} has {count(frame.shape[1], 'column')}, and the model has "
                f"{model.n_features_in_} without names; give a table with the columns of the fit."
            )
        return frame, []
    known, known_names = list(names), set(names)
    needed = names if preparer.needs_all else names[model.feature_weights_ > 0]
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        one = len(missing) == 1
        text = [name for name in missing if name in table.dropped]
        are = "is there, but holds" if one else "are there, but hold"
        held = f" ({quoted(text, 6)} {are} no numbers)"
        raise ValueError(
            f"{table.path.name!r} lacks {len(missing)} of the {len(needed)} columns that the model "
            f"needs: {quoted(missing, 6)}{held if text else ''}; add {'it' if one else 'them'}, or "
            "fit again."
        )
    unused = [name for name in [*table.dropped, *frame.columns] if name not in known_names]
    them = "it" if len(unused) == 1 else "them"
    note = f"Not used, since the model does not know {them}: {quoted(unused, 6)}."
    notes = [note] if unused else []
    if list(frame.columns) == known:
        return frame, notes
    if is_sparse(frame) and not known_names <= set(frame.columns):
        frame = frame.sparse.to_dense()  # what is missing is not 0
    return frame.reindex(columns=known), notes


def _clusters(model: Any, X: Any) -> Any:
    import pandas as pd

    from rskc.model.fitted import by_column, judge_cases, with_cases
    from rskc.model.summary import observed_share

    values = X if hasattr(model, "feature_names_in_") else X.to_numpy()
    known = ~np.isnan(by_column(model, model.cluster_centers_)).all(axis=0)
    if (X.isna().all() & known).any():
        # A table of the selected features, or a few more: an unweighted distance over these few is
        # not what the threshold was made for.
        model = with_cases(model, unweighted_outlier_threshold_=np.inf)
    found = judge_cases(model, values)
    return pd.DataFrame(
        {
            "case": X.index,
            "cluster": found.labels,
            "distance": found.weighted,
            "unweighted_distance": found.unweighted,
            "outlier": found.outliers,
            "observed": observed_share(model, values),
        }
    )


@command("versions")
def versions(console: Console) -> None:
    """Print versions and the build, for a bug report."""
    from rskc.versions import environment, show_versions

    if not console.silent:
        show_versions()
    console.print_json(environment())
