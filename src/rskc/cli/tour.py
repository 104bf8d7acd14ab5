"""``rskc demo``, the whole tour on made-up data; and ``rskc versions``."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rskc.cli._app import command, typed_command
from rskc.cli._console import Console, bold
from rskc.cli._options import (
    RESULTS,
    Basics,
    ExploredSettings,
    Preparing,
    Reading,
    Searching,
    flag,
    out_option,
)
from rskc.cli._output import check_report, results_folder, write_results
from rskc.cli._tables import read
from rskc.cli._terminal import show_result
from rskc.cli._work import fit_searched, searches_for
from rskc.cli.pages import explored, write_explorer

HEADING = "bold cyan"

TABLE, RESULT, EXPLORER = "expression.csv", "expression-rskc", "explorer.html"
N_PATIENTS, N_GENES, N_TELLING, N_OUTLYING = 90, 200, 20, 3
PATIENTS = (
    f"Three groups of patients differ in {N_TELLING} genes; all other genes are noise, and "
    f"{2 * N_OUTLYING} patients have an outlying cell."
)
CHOICE = (
    "How many clusters, which genes, which patients are outlying? The data decide: halves of the "
    "patients are clustered again and again. The same by hand:"
)
OTHERS = "Would other numbers of clusters and genes do as well? Sliders show it:"


@dataclass(frozen=True)
class TourFolder:
    """Where the tour goes."""

    out: Path = out_option(Path("rskc-demo"), "Folder for the files.")
    force: bool = flag(RESULTS, "Replace files that are there.", "--force")


@command("demo", "rskc demo", "rskc demo --out tour")
def demo(folder: TourFolder, console: Console) -> None:
    """Run the whole tour: make a table, choose the settings, cluster, write the page.

    Takes some seconds.
    """
    check_report(True)
    table, results = folder.out / TABLE, folder.out / RESULT
    force = _write_table(table, folder.force)
    similar = ["rskc", "fit", str(table), "--out", str(results)]
    size = f"{N_PATIENTS} patients x {N_GENES} genes"
    console.print("", bold("1. A table", HEADING), f"{size} in {table}. {PATIENTS}")
    console.print("", bold("2. Clusters and features", HEADING), CHOICE)
    console.print(f"   {shlex.join(similar)}", soft_wrap=True)
    with results_folder(results, force) as part:
        data = read(table, Reading(), Preparing(), None, console)
        how = vars(Searching()) | {"random_state": 0}
        searches = searches_for("auto", "auto", Basics().estimator(2), **how)
        result = fit_searched(searches, data, typed_command(), console)
        write_results(part, result, report=True, title="A tour of rskc")
    show_result(result, results, console)
    console.print("", bold("3. All other settings", HEADING), OTHERS)
    explorer = results / EXPLORER
    similar = ["rskc", "explore", str(table), "--out", str(explorer)]
    console.print(f"   {shlex.join(similar)}", soft_wrap=True)
    search, _ = explored(ExploredSettings(), Basics(), Searching(), data, console)
    write_explorer(explorer, search, data, "A tour of rskc")
    console.print("", bold("4. The pages", HEADING), "Open them in a browser.")
    console.print(f"   {results / 'report.html'}", "explains the result", soft_wrap=True)
    console.print(f"   {explorer}", "compares it with others", soft_wrap=True)
    console.print_json(result.summary)


def _write_table(path: Path, force: bool) -> bool:
    """Write the table; return whether results beside it may be replaced, since they are ours."""
    from rskc.files.writing import csv_parts
    from rskc.utils.atomic import atomic_write

    content = b"".join(csv_parts([_patients()]))
    ours = path.is_file() and path.read_bytes() == content
    if path.exists() and not (ours or force):
        raise ValueError(f"{str(path)!r} is there already; use --force, or --out for elsewhere.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content)
    return ours or force


def _patients() -> Any:
    """Make three groups that differ in a few genes; a few patients have an outlying cell."""
    import numpy as np
    import pandas as pd

    from rskc.datasets import make_contaminated

    size = (N_PATIENTS, N_GENES, N_TELLING, N_OUTLYING)
    made = make_contaminated("shared_cell", *size, random_state=1)
    cells = made.data.round(3)
    cells[np.flatnonzero(~made.outliers)[:: N_PATIENTS // N_OUTLYING], 0] = 25.0
    genes = [f"gene{j:03d}" for j in range(1, N_GENES + 1)]
    frame = pd.DataFrame(cells, columns=genes)
    frame.insert(0, "patient", [f"P{i:03d}" for i in range(1, N_PATIENTS + 1)])
    frame.insert(1, "group", np.array(["mild", "medium", "severe"])[made.target])
    return frame


@command("versions")
def versions(console: Console) -> None:
    """Print versions and the build, for a bug report."""
    from rskc.versions import environment, show_versions

    if not console.silent:
        show_versions()
    console.print_json(environment())
