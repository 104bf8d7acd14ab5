"""``rskc reproduce``: the experiments of the paper, compared with the paper and R's RSKC."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument

from rskc.cli._app import command
from rskc.cli._console import Console, bold, recorded_warnings, text_table
from rskc.cli._options import RESULTS, TABLE, flag, option, out_option
from rskc.cli._output import check_folder
from rskc.cli._work import checkpoint_noted
from rskc.utils.wording import quoted

SUFFIXES = (".png", ".svg", ".csv", ".md")
OWN = "Simulation and breast cancer"
Experiment = Annotated[
    Literal["figure-1", "masking", "simulation", "breast-cancer", "digits"],
    Argument(metavar="EXPERIMENT", help="One of those above.", show_default=False),
]


@dataclass(frozen=True)
class Tumors:
    """The data of the breast-cancer example, which are not ours to pass on."""

    data: Path | None = option(
        TABLE, None, "breast-cancer: log ratios, a row a tumor, a column a gene.", metavar="FILE"
    )
    id_column: str | None = option(
        TABLE,
        None,
        "Column of --data with the names of the tumors; else 'sample'.",
        metavar="NAME",
    )
    labels: Path | None = option(
        TABLE,
        None,
        "breast-cancer: a .csv or .tsv with the receptor, tumors in the same order.",
        metavar="FILE",
    )
    label_column: str | None = option(
        TABLE, None, "Column of --labels with it; else 'ER'.", metavar="NAME"
    )


@dataclass(frozen=True)
class Running:
    """How the two long experiments run."""

    replicates: int | None = option(
        OWN, None, "simulation: data sets of each model; else 100.", min=2, metavar="NUMBER"
    )
    jobs: int | None = option(OWN, None, "Fits at a time; else a core for each.", metavar="NUMBER")
    checkpoint: Path | None = option(
        OWN,
        None,
        "simulation: keep what is done in this file; the same command then goes on after a stop.",
        metavar="FILE",
    )


@dataclass(frozen=True)
class ExperimentFolder:
    """Where the figure and the tables go, and the seed."""

    out: Path = out_option(Path("rskc-reproduce"), "Folder for the files.")
    seed: int = option(
        None, 0, "Another one gives other data, or other starts.", min=0, metavar="NUMBER"
    )
    force: bool = flag(RESULTS, "Replace files that are there.", "--force")


@command(
    "reproduce",
    "rskc reproduce masking",
    "rskc reproduce simulation --replicates 20",
    "rskc reproduce breast-cancer --data tumors.csv --labels receptor.csv",
)
def reproduce(
    experiment: Experiment,
    tumors: Tumors,
    running: Running,
    folder: ExperimentFolder,
    console: Console,
) -> None:
    """Repeat an experiment of the paper, and compare it with what the paper reports.

    figure-1: K-means and sparse K-means on 1,000 features, of which two matter.

    masking: why one trimming rule is not enough.

    simulation: four methods, on clean data and with an outlying cell.

    breast-cancer: 78 tumors by 4,751 genes; the data you need to have.

    digits: the example of R's RSKC package.

    Writes the figure, the tables, and a page of both, within a minute or two.
    """
    start = time.perf_counter()
    given = _given(experiment, tumors, running)
    with _folder_for(experiment, folder.out, folder.force):
        given |= _read(tumors, console) if experiment == "breast-cancer" else {}
        found = _run(experiment, given | {"seed": folder.seed}, console)
        files = found.save(folder.out)
    _show(found, files, console)
    console.print_json(
        {
            "experiment": found.name,
            "title": found.title,
            "verdict": found.verdict,
            "tables": {
                caption: table.to_dict("records") for caption, table in found.tables.items()
            },
            "files": [str(file) for file in files],
            "seed": folder.seed,
            "seconds": time.perf_counter() - start,
        }
    )


def _given(experiment: str, tumors: Tumors, running: Running) -> dict[str, Any]:
    """Return the arguments of the experiment; refuse options that it has no use for."""
    from rskc.reproduce import EXPERIMENTS

    known = {name: inspect.signature(f).parameters for name, f in EXPERIMENTS.items()}
    options = {
        "replicates": ("--replicates", running.replicates),
        "n_jobs": ("--jobs", running.jobs),
        "checkpoint": ("--checkpoint", running.checkpoint),
        "data": ("--data", tumors.data or tumors.id_column),
        "labels": ("--labels", tumors.labels or tumors.label_column),
    }
    given = {name: value for name, (_, value) in options.items() if value is not None}
    for name in sorted(given.keys() - known[experiment].keys()):
        others = " and ".join(other for other, taken in known.items() if name in taken)
        raise ValueError(f"{options[name][0]} is for {others}, and not for {experiment}.")
    return given


@contextmanager
def _folder_for(experiment: str, out: Path, force: bool) -> Iterator[None]:
    """Make the folder before the work; other experiments may have left their files in it."""
    check_folder(out)
    there = sorted(path for path in out.glob(f"{experiment}*") if path.suffix in SUFFIXES)
    if there and not force:
        raise ValueError(
            f"{str(there[0])!r} is there already; use --force to replace it, or --out for another "
            "folder."
        )
    new = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # not empty
            if new:
                out.rmdir()
        raise


def _read(tumors: Tumors, console: Console) -> dict[str, Any]:
    from rskc.files import read_table
    from rskc.reproduce.breast_cancer import WHERE

    if tumors.data is None or tumors.labels is None:
        raise ValueError(f"breast-cancer needs --data and --labels. {WHERE}")
    with console.busy(f"Reading {tumors.data.name}"):
        table = read_table(tumors.data, id_column=tumors.id_column or "sample")
        labels = read_column(tumors.labels, tumors.label_column or "ER")
    return {"data": table.data, "labels": labels}


def read_column(path: Path, name: str) -> Any:
    """Read one column of a text table, as text."""
    import pandas as pd

    separator = "\t" if ".tsv" in path.suffixes else ","
    columns = list(pd.read_csv(path, sep=separator, nrows=0).columns)
    if name not in columns:
        raise ValueError(
            f"{path.name!r} has no column {name!r}, but {quoted(columns)}; use --label-column."
        )
    cells = pd.read_csv(path, sep=separator, usecols=[name], dtype=str, keep_default_na=False)
    return cells[name].to_numpy(object)


def _run(experiment: str, given: dict[str, Any], console: Console) -> Any:
    """Run it, with progress where there is any; warnings of the fits are of no interest here."""
    from rskc.reproduce import EXPERIMENTS

    function = EXPERIMENTS[experiment]
    with recorded_warnings():
        if "progress" not in inspect.signature(function).parameters:
            with console.busy(experiment):
                return function(**given)
        with console.counting(experiment) as update, checkpoint_noted(given.get("checkpoint")):
            return function(**given, progress=update)


def _show(found: Any, files: list[Path], console: Console) -> None:
    if console.silent:
        return
    from rskc.reproduce.outcome import shown_rows

    console.print("", bold(found.title, "bold cyan"))
    for caption, table in found.tables.items():
        words = table.select_dtypes(exclude="number").columns
        columns = [(str(name), "left" if name in words else "right") for name in table.columns]
        console.print("", bold(caption), text_table(columns, shown_rows(table)))
    console.print(found.verdict, "")
    for file in files:
        console.print(f"Written: {file}", soft_wrap=True)
