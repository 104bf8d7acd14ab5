"""Pages: ``rskc explore``, of many settings; ``report``, of a saved result; ``demo``, both."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rskc.cli._app import command, seconds_since_start
from rskc.cli._console import Console
from rskc.cli._options import (
    Basics,
    EngineOptions,
    ExploredSettings,
    ModelPath,
    Number,
    Page,
    Preparing,
    Reading,
    Rereading,
    ResultsOfFit,
    Searching,
    Sparsity,
    TableFile,
    Target,
    Trimming,
    settings_of,
)
from rskc.cli._output import (
    check_no_file,
    check_report,
    open_model,
    preparer_of,
    stem_of,
    write_page,
)
from rskc.cli._results import Result
from rskc.cli._tables import Data, read, reread
from rskc.cli._terminal import bold
from rskc.cli._work import run_search
from rskc.cli.fit import Job, fit
from rskc.utils.wording import cleaned, count

# Of the tour.
HEADING, TITLE = "bold cyan", "A tour of rskc"
TABLE, RESULT = "expression.csv", "expression-rskc"
N_PATIENTS, N_GENES, N_TELLING, N_OUTLYING = 90, 200, 20, 3
PATIENTS = (
    f"Three groups of patients differ in {N_TELLING} genes; all other genes are noise, and "
    f"{2 * N_OUTLYING} patients have an outlying cell."
)
CHOICE = (
    "How many clusters are there, which genes separate them, and which patients are outlying? The "
    "data decide. To do the same yourself:"
)
OTHERS = "Would other numbers of clusters and genes do as well? A page with sliders shows it:"


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

    out = page.out if page.out is not None else Path(f"{stem_of(table)}-explorer.html")
    check_no_file(out, page.force, table)
    data = read(table, reading, preparing, basics.feature_groups, console)
    how = vars(settings) | vars(searching) | {"random_state": basics.random_state}
    estimator = basics.estimator(2).set_params(feature_groups=data.feature_groups)
    search, (n, p) = Exploration(estimator, **how), data.shape
    used = n if search.max_samples is None else min(n, search.max_samples)
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
    choice, n_settings = search.choice_, search.axes_.n_settings
    console.print("", bold(f"{count(n_settings, 'setting')} for {count(n, 'case')}."))
    console.print(choice.reason)
    console.note(*data.notes, *warned)
    console.print(f"Time: {seconds_since_start():.1f} s")
    console.print("", f"The page is in {cleaned(out, 2000)}: open it in a browser", soft_wrap=True)
    console.print_json(
        {
            "file": str(out),
            "n_settings": n_settings,
            "n_clusters": search.axes_.n_clusters,
            "n_features": search.axes_.n_features,
            "trims": search.axes_.trims,
            "chosen": choice.n_clusters,
            "reason": choice.reason,
            "notes": data.notes,
        }
    )


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
    check_report(True)
    saved = open_model(model)
    out = page.out
    if out is None:
        out = (model if model.is_dir() else model.parent) / "report.html"
    check_no_file(out, page.force, table)
    extra = saved.extra
    data = reread(table, rereading.like(extra.get("reading", {})), preparer_of(saved), console)
    doubts = []
    if extra.get("sha256") not in (None, data.table.sha256):
        doubts = [
            f"{table.name!r} differs from the file of the fit ({extra.get('file')!r}); the page is "
            "right only if the numbers are the same."
        ]
    typed = list(extra.get("command", []))
    with console.busy("Writing the page"):
        kept = extra.get("searches")
        result = Result(data, saved.model, [], doubts, 0.0, typed, kept=kept)
        write_page(out, result, page.title or extra.get("title"))
    console.note(*doubts)
    console.print(f"The page is in {out}: open it in a browser", soft_wrap=True)
    console.print_json({"file": str(out), "warnings": doubts})


@command(
    "demo", "rskc demo", "rskc demo --out tour", out="Folder for the files (default: rskc-demo)."
)
def demo(target: Target, console: Console) -> None:
    """Take a tour: make a table, choose the settings, cluster, and write the pages.

    It takes some seconds.
    """
    check_report(True)
    folder = Path("rskc-demo") if target.out is None else target.out
    table, results = folder / TABLE, folder / RESULT
    force = _write_table(table, target.force)
    size = f"{N_PATIENTS} patients x {N_GENES} genes"
    console.print("", bold("1. A table", HEADING), f"{size} in {table}. {PATIENTS}")
    console.print("", bold("2. Clusters and features", HEADING), CHOICE)
    console.print(f"   {shlex.join(['rskc', 'fit', str(table)])}", soft_wrap=True)
    shown = replace(console, quiet=console.silent, json=False)
    job = Job(Basics(), Searching(), Reading(), Preparing(), EngineOptions())
    written = ResultsOfFit(results, force, TITLE)
    fit(table, Number(), Trimming(), Sparsity(), job, written, shown)
    console.print("", bold("3. All other settings", HEADING), OTHERS)
    page = Page(results / "explorer.html", force, TITLE)
    console.print(
        f"   {shlex.join(['rskc', 'explore', str(table), '--out', str(page.out)])}", soft_wrap=True
    )
    parts = Reading(), Preparing(), Basics(), Searching()
    explore(table, ExploredSettings(), *parts, page, shown)
    console.print("", bold("4. The pages", HEADING), "Open them in a browser.")
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

    size = (N_PATIENTS, N_GENES, N_TELLING, N_OUTLYING)
    data, groups, outliers, _ = make_contaminated("shared_cell", *size, random_state=1)
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
