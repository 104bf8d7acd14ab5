"""The commands: ``fit``, the whole job; searches; pages of settings, of results, of a tour.

Importing a command registers it, in the order of the help.
"""

from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer

from rskc.cli._app import Console, app, command, recorded_warnings
from rskc.cli._options import (
    NAMES,
    Basics,
    Bounds,
    EngineOptions,
    ExploredSettings,
    Grid,
    Model,
    ModelPath,
    Number,
    Numbers,
    Preparing,
    Reading,
    Rereading,
    Results,
    Searching,
    TableFile,
    TablePath,
    Target,
)
from rskc.cli._output import (
    check_empty,
    check_no_file,
    check_report,
    clusters_table,
    open_model,
    preparer_of,
    results_folder,
    show_result,
    stem_of,
    write_page,
    write_results,
)
from rskc.cli._results import Counts, Result
from rskc.cli._tables import Data, is_sparse, prepared, reread
from rskc.cli._work import fit_or_search, read, run_search, work_on
from rskc.utils.wording import cleaned, count, on_outliers, quoted

__all__ = ["app"]

PANEL = "Choosing the settings"
NO_FOLDER = "Folder for the results (default: none)."


@dataclass(frozen=True)
class Job:
    """What fits and searches have in common: a table, how it is read and fitted, and results."""

    table: TablePath
    model: Model
    searching: Searching
    reading: Reading
    preparing: Preparing
    engine: EngineOptions
    results: Results
    console: Console

    def run(self, estimator: Any, searches: list[Any], usual_folder: Path | None = None) -> None:
        """Read the table, fit or search, write if there is a folder, and show."""
        table, groups = self.table, self.model.feature_groups
        results, console = self.results, self.console
        folder = None if results.plan else results.out or usual_folder  # a plan leaves nothing
        target: Any = nullcontext()
        if folder is not None:  # it is there, with all that was written, when the block ends
            target = results_folder(folder, results.force, table)
            if not results.no_report:
                check_report()
        with target as part, work_on(table, self.engine, self.model.n_threads) as in_blocks:
            data = read(table, self.reading, self.preparing, groups, console, in_blocks)
            estimator.set_params(feature_groups=data.feature_groups)
            if results.plan:
                self.plan(searches or [estimator], data)
                return
            result = fit_or_search(estimator, searches, data, console)
            with console.busy("Writing the results"):
                if in_blocks:
                    from rskc.cli._blocks import write_cases

                    result = write_cases(part, result)
                if part is not None:
                    # A command that searches has no usual folder.
                    tried = searches[0].table_ if usual_folder is None else None
                    write_results(part, result, results, tried)
        show_result(result, folder, console)
        console.print_json(result.summary)

    def plan(self, models: list[Any], data: Data) -> None:
        """Say what fits and searches, one after the other, are going to take."""
        from rskc.planning import plan

        with self.console.busy("Estimating time and memory"):
            plans = [plan(data.X, model, data.table.weights) for model in models]
        least, most = (sum(ends) for ends in zip(*(each.seconds for each in plans), strict=True))
        told = replace(plans[0], seconds=(least, most))
        self.console.print(str(told))
        self.console.print_json(asdict(told))

    def search(self, search: Any) -> None:
        """Run a search."""
        search.set_params(**vars(self.searching), random_state=self.model.random_state)
        self.run(search.estimator, [search])


@command(
    "fit",
    "rskc fit iris.csv",
    "rskc fit genes.tsv.gz -k 4 --features-in-rows --out results",
    out="Folder for the results (default: TABLE-rskc).",
)
def fit(number: Number, job: Job) -> None:
    """Cluster the cases of a table, and write a page that explains the result.

    Without options, everything is recognized or chosen from the data.
    """
    K, chooses_bound = number.n_clusters, job.model.l1_bound == "choose"
    if chooses_bound and job.model.n_features is not None:
        raise ValueError("--l1-bound choose and --n-features exclude each other; give one of them.")
    estimator, searches = job.model.estimator(2 if K == "auto" else K), []
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
        settings = vars(job.searching) | {"random_state": job.model.random_state}
        searches = [kind(estimator, **settings) for kind in kinds]
    job.run(estimator, searches, Path(f"{stem_of(job.table)}-rskc"))


@command(
    "select-k",
    "rskc select-k table.csv",
    "rskc select-k table.csv --clusters 2-6 --out choice --checkpoint choice.db",
    panel=PANEL,
    out=NO_FOLDER,
)
def select_k(numbers: Numbers, job: Job) -> None:
    """Choose the number of clusters."""
    from rskc.selection import Clest, Stability

    kinds = {"stability": Stability, "clest": Clest}
    search = kinds[numbers.method](job.model.estimator(2))
    for name, value in vars(numbers).items():
        if name == "method" or value is None:
            continue
        if name not in search.get_params(deep=False):
            raise typer.BadParameter(f"--method {numbers.method} has no {NAMES[name]}.")
        search.set_params(**{name: value})
    job.search(search)


@command(
    "select-l1",
    "rskc select-l1 table.csv --clusters 3",
    panel=PANEL,
    out=NO_FOLDER,
    l1_bound=None,
    n_features=None,
)
def select_l1(bounds: Bounds, job: Job) -> None:
    """Choose how many features get weight, by the gap to shuffled data."""
    from rskc.selection import GapL1

    given = dict(vars(bounds))
    job.search(GapL1(job.model.estimator(given.pop("n_clusters")), **given))


@command(
    "compare",
    "rskc compare table.csv --clusters 2-4 --bounds 4 --trims 0,0.1",
    panel=PANEL,
    out=NO_FOLDER,
    **dict.fromkeys(("trim", "cells", "l1_bound", "n_features")),
)
def compare(grid: Grid, job: Job) -> None:
    """Fit all combinations of settings, and find the partition on which most of them agree."""
    from rskc.selection import GridSearch

    estimator = job.model.estimator(grid.n_clusters[0])
    if grid.l1_bounds is None:
        estimator.set_params(l1_bound=None)
    job.search(GridSearch(estimator, **vars(grid)))


@command(
    "explore",
    "rskc explore table.csv",
    "rskc explore genes.csv -k 2-5 --n-features 10,50,200 --trims 0,0.1 --out genes.html",
    out="The page (default: TABLE-explorer.html).",
)
def explore(
    table: TableFile,
    settings: ExploredSettings,
    basics: Basics,
    searching: Searching,
    reading: Reading,
    preparing: Preparing,
    target: Target,
    console: Console,
) -> None:
    """Fit many settings, and write one page with sliders to compare them.

    It works offline and can be mailed.
    """
    from rskc.explorer.grid import Exploration

    out = target.out or Path(f"{stem_of(table)}-explorer.html")
    check_no_file(out, target.force, table)
    data = read(table, reading, preparing, basics.feature_groups, console)
    how = vars(settings) | vars(searching) | {"random_state": basics.random_state}
    estimator = basics.estimator(2).set_params(feature_groups=data.feature_groups)
    search = Exploration(estimator, **how)
    warned = run_search(search, data, console)
    with console.busy("Writing the page"):
        _write_explorer(out, search, data, target.title)
    choice, axes, n = search.choice_, search.axes_, data.shape[0]
    console.print("", f"{count(axes.n_settings, 'setting')} for {count(n, 'case')}.", style="bold")
    console.print(choice.reason)
    console.note(*data.notes, *warned)
    console.print("", f"The page is in {cleaned(out, 2000)}: open it in a browser", soft_wrap=True)
    facts = {"file": str(out), "n_settings": axes.n_settings, **axes._asdict()}
    facts |= {"chosen": choice.n_clusters, "reason": choice.reason, "notes": data.notes}
    console.print_json(facts)


def _write_explorer(path: Path, search: Any, data: Data, title: str | None) -> None:
    """Write the page; clusters are numbered as in a report of the same table in its folder."""
    from rskc.explorer import Explorer
    from rskc.files import ModelFileError

    labels = None
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
        units=data.units,
        numbered_like=labels,
    ).save(path)


@command(
    "report",
    "rskc report iris-rskc iris.csv --out iris.html --title Iris",
    out="The page (default: report.html beside the model).",
)
def report(
    model: ModelPath, table: TableFile, rereading: Rereading, target: Target, console: Console
) -> None:
    """Write the HTML page of a saved result again, given its table."""
    check_report()
    saved = open_model(model)
    out = target.out or (model if model.is_dir() else model.parent) / "report.html"
    check_no_file(out, target.force, table)
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
        write_page(out, result, target.title or extra.get("title"))
    console.note(*doubts)
    console.print(f"The page is in {out}: open it in a browser", soft_wrap=True)
    console.print_json({"file": str(out), "warnings": doubts})


@command(
    "demo",
    "rskc demo",
    "rskc demo --out tour",
    out="Folder for the files (default: rskc-demo).",
    title=None,
)
def demo(target: Target, console: Console) -> None:
    """Take a tour: make a table, choose the settings, cluster, and write the pages.

    It takes some seconds.
    """
    from rskc.files import write_csv

    check_report()
    folder = target.out or Path("rskc-demo")
    check_empty(folder, folder, target.force)
    folder.mkdir(parents=True, exist_ok=True)
    table, results = folder / "expression.csv", folder / "expression-rskc"
    write_csv(_expression(), table)
    console.print(
        f"{table}: 90 patients x 200 genes. Three groups of patients differ in 20 genes; all other "
        "genes are noise, and 6 patients have an outlying cell."
    )
    console.print("", f"rskc fit {table}", style="bold cyan", soft_wrap=True)
    how = Model(), Searching(), Reading(), Preparing()
    fit(Number(), Job(table, *how, EngineOptions(), Results(results, force=True), console))
    page = Target(results / "explorer.html", force=True)
    console.print("", f"rskc explore {table} --out {page.out}", style="bold cyan", soft_wrap=True)
    shown = replace(console, quiet=console.silent, json=False)
    explore(table, ExploredSettings(), *how, page, shown)


def _expression() -> Any:
    """Make a table: three groups differ in a few genes; a few patients have an outlying cell."""
    import pandas as pd

    from rskc.datasets import make_contaminated

    data, groups, outliers, _ = make_contaminated("shared_cell", 90, 200, 20, 3, random_state=1)
    cells = data.round(3)
    cells[np.flatnonzero(~outliers)[::30], 0] = 25.0
    frame = pd.DataFrame(cells, columns=[f"gene{j:03d}" for j in range(1, 201)])
    frame.insert(0, "patient", [f"P{i:03d}" for i in range(1, 91)])
    frame.insert(1, "group", np.array(["mild", "medium", "severe"])[groups])
    return frame


@command(
    "predict",
    "rskc predict iris-rskc new.csv --out new-labels.csv",
    "rskc predict model.rskc new.csv --out - | head",
    out="The file (default: the name of the table and -labels.csv; - prints it).",
    title=None,
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
    with work_on(table, engine, None) as in_blocks:
        saved = open_model(model)
        with console.busy(f"Reading {table.name}"):
            frames = _predicted(saved, table, rereading, in_blocks)
        counts = Counts(len(saved.model.cluster_centers_))
        with console.busy("Predicting"), recorded_warnings() as warned:
            counted = map(counts.add, frames)
            printed = list(counted) if is_printed else []
            if not is_printed:
                write_csv_parts(counted, out)
    console.note(*warned)
    clusters = [row for row in counts.clusters() if row["cases"]]
    facts: dict[str, Any] = {
        "n_cases": counts.total("cases"),
        "sizes": {row["cluster"]: row["cases"] for row in clusters},
        "outliers": {row["cluster"]: row["outliers"] for row in clusters if row["outliers"]},
        "n_outliers": counts.total("outliers"),
        "n_without_data": counts.total("blind"),
        "notes": list(map(str, warned)),
        "file": None if is_printed else str(out),
    }
    if is_printed:
        facts["cases"] = [case for part in printed for case in part.to_dict("records")]
        if not console.silent:
            typer.echo(b"".join(csv_parts(printed)), nl=False)
    else:
        outliers = on_outliers(facts["n_outliers"], facts["n_without_data"])
        cases = f"{count(facts['n_cases'], 'case')} of {cleaned(table.name, 80)}"
        console.print("", f"{cases}; {outliers}.", style="bold")
        console.print("", clusters_table(counts))
        console.print(f"Cluster, distances and more for each case: {out}", soft_wrap=True)
    console.print_json(facts)


def _predicted(saved: Any, path: Path, rereading: Rereading, in_blocks: bool) -> Iterable[Any]:
    """Return the clusters of a table, in a frame or in one for each block."""
    from rskc.files import read_table
    from rskc.inputs.columns import same_unit

    model, preparer = saved.model, preparer_of(saved)
    if in_blocks:
        from rskc.cli._blocks import predicted_parts
        from rskc.files.blocks import open_blocks
        from rskc.model.fitted import with_cases

        blocks = _read_like_fit(open_blocks, saved, path, rereading)
        check_columns(blocks, model, preparer)
        predict = partial(_clusters, with_cases(model, n_threads=1), preparer)
        known = set(getattr(model, "feature_names_in_", blocks.features))
        return predicted_parts(blocks, known, predict)
    table = _read_like_fit(read_table, saved, path, rereading)
    for name, unit in table.written.items():
        known = saved.extra.get("units", {}).get(name, "")
        if unit and known and same_unit(unit) != same_unit(known):
            raise ValueError(
                f"{path.name!r}: column {name!r} is in {unit}, and was in {known} in the fit; "
                f"write it in {known}."
            )
    check_columns(table, model, preparer)
    return map(partial(_clusters, model, preparer), [table.data])


def _read_like_fit(read: Callable, saved: Any, path: Path, rereading: Rereading) -> Any:
    """Read a table as that of the fit; it need not have ids or labels because that had."""
    from rskc.files import TableError

    categories = []
    if (encoder := getattr(saved.model, "encoder_", None)) is not None:
        codes = zip(saved.model.feature_names_in_, encoder.columns_, strict=True)
        categories = [str(name) for name, code in codes if code.categories]
    ids = saved.extra.get("id_column") or None
    free = {"id_column": ids, "label_column": None, "weight_column": None, "label_row": None}
    # The model knows which columns are features.
    known = {"drop": [], "use_columns": "all", "text_columns": "drop", "categorical": categories}
    arguments = rereading.like(saved.extra.get("reading", {}) | free | known)
    while True:
        try:
            return read(path, **arguments)
        except TableError as error:
            # What the table lacks is refused later, if it has weight.
            present = [name for name in arguments["categorical"] if name != error.name]
            if error.parameter == "categorical" and present != arguments["categorical"]:
                arguments["categorical"] = present
            elif error.parameter == "id_column" and arguments["id_column"] == ids:
                arguments["id_column"] = None
            else:
                raise


def check_columns(table: Any, model: Any, preparer: Any) -> None:
    """Refuse a table without some columns that count.

    A feature without weight changes no distance, so a table of the selected ones will do; not if
    rows are standardized, by all of their cells.
    """
    names, columns = getattr(model, "feature_names_in_", None), table.data.columns
    if names is None and len(columns) != model.n_features_in_:
        raise ValueError(
            f"{table.path.name!r} has {count(len(columns), 'column')}, and the model has "
            f"{model.n_features_in_} without names; give a table with the columns of the fit."
        )
    if names is None:
        return
    needed = names if preparer.needs_all else names[model.feature_weights_ > 0]
    missing = [name for name in needed if name not in columns]
    if missing:
        text = " as numbers" * any(name in table.dropped for name in missing)
        raise ValueError(
            f"{table.path.name!r} lacks {len(missing)} of the {len(needed)} columns that the model "
            f"needs: {quoted(missing, 6)}; add {'it' if len(missing) == 1 else 'them'}{text}, or "
            "fit again."
        )


def _clusters(model: Any, preparer: Any, frame: Any) -> Any:
    import pandas as pd

    from rskc.model.fitted import by_column, judge_cases, with_cases
    from rskc.model.summary import observed_share

    names = getattr(model, "feature_names_in_", None)
    if names is not None and list(frame.columns) != list(names):
        if is_sparse(frame) and not set(names) <= set(frame.columns):
            frame = frame.sparse.to_dense()  # what is missing is not 0
        frame = frame.reindex(columns=names)
    X = prepared(preparer, frame)
    values = X if names is not None else X.to_numpy()
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
