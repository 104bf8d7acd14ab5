"""``rskc reproduce``: the experiments of the paper, beside what the paper and R's RSKC report."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from rskc.cli._app import command
from rskc.cli._options import RESULTS, TABLE
from rskc.cli._voice import Voice, heard

SUFFIXES = (".png", ".svg", ".csv", ".md")
OWN = "Simulation and breast cancer"
Experiment = Annotated[
    Literal["figure-1", "masking", "simulation", "breast-cancer", "digits"],
    Argument(
        metavar="EXPERIMENT",
        help="One of those above.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Tumours:
    """The data of the breast-cancer example, which are not ours to pass on."""

    data: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="breast-cancer: log ratios, a row a tumour, a column a gene.",
            rich_help_panel=TABLE,
        ),
    ] = None
    id_column: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="Column of --data with the names of the tumours; else 'sample'.",
            rich_help_panel=TABLE,
        ),
    ] = None
    labels: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="breast-cancer: a .csv or .tsv with the receptor, tumours in the same order.",
            rich_help_panel=TABLE,
        ),
    ] = None
    label_column: Annotated[
        str | None,
        Option(
            metavar="NAME", help="Column of --labels with it; else 'ER'.", rich_help_panel=TABLE
        ),
    ] = None


@dataclass(frozen=True)
class Running:
    """How the two long experiments run."""

    replicates: Annotated[
        int | None,
        Option(
            metavar="NUMBER",
            min=2,
            help="simulation: data sets of each model; else 100.",
            rich_help_panel=OWN,
        ),
    ] = None
    jobs: Annotated[
        int | None,
        Option(metavar="NUMBER", help="Fits at a time; else a core for each.", rich_help_panel=OWN),
    ] = None
    checkpoint: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="simulation: keep what is done in this file; the same command then goes on after "
            "a stop.",
            rich_help_panel=OWN,
        ),
    ] = None


@command(
    "reproduce",
    "rskc reproduce masking",
    "rskc reproduce simulation --replicates 20",
    "rskc reproduce breast-cancer --data tumours.csv --labels receptor.csv",
)
def reproduce(
    experiment: Experiment,
    tumours: Tumours,
    running: Running,
    voice: Voice,
    out: Annotated[
        Path,
        Option("--out", "-o", metavar="FOLDER", help="Where to put it.", rich_help_panel=RESULTS),
    ] = Path("rskc-reproduce"),
    seed: Annotated[
        int,
        Option(metavar="NUMBER", min=0, help="Another one gives other data, or other starts."),
    ] = 0,
    force: Annotated[
        bool, Option("--force", help="Replace files that are there.", rich_help_panel=RESULTS)
    ] = False,
) -> None:
    """Repeat an experiment of the paper, and compare it with what the paper reports.

    figure-1: K-means and sparse K-means on 1,000 features, of which two matter.

    masking: why one trimming rule is not enough.

    simulation: four methods, on clean data and with an outlying cell.

    breast-cancer: 78 tumours by 4,751 genes; the data you need to have.

    digits: the example of R's RSKC package.

    Writes the figure, the tables, and a page of both, within a minute or two.
    """
    start = time.perf_counter()
    given = _given(experiment, tumours, running)
    with _folder_for(experiment, out, force) as folder:
        given |= _read(tumours, voice) if experiment == "breast-cancer" else {}
        found = _run(experiment, given | {"seed": seed}, voice)
        files = found.save(folder)
    _show(found, files, voice)
    voice.tell(_told(found, files, seed, time.perf_counter() - start))


def _given(experiment: str, tumours: Tumours, running: Running) -> dict[str, Any]:
    """The arguments of the experiment; options that it has no use for are refused."""
    from rskc.reproduce import EXPERIMENTS

    known = {name: inspect.signature(f).parameters for name, f in EXPERIMENTS.items()}
    options = {
        "replicates": ("--replicates", running.replicates),
        "n_jobs": ("--jobs", running.jobs),
        "checkpoint": ("--checkpoint", running.checkpoint),
        "data": ("--data", tumours.data or tumours.id_column),
        "labels": ("--labels", tumours.labels or tumours.label_column),
    }
    given = {name: value for name, (_, value) in options.items() if value is not None}
    for name in sorted(given.keys() - known[experiment].keys()):
        others = " and ".join(other for other, taken in known.items() if name in taken)
        raise ValueError(f"{options[name][0]} is for {others}, and not for {experiment}.")
    return given


@contextmanager
def _folder_for(experiment: str, out: Path, force: bool) -> Iterator[Path]:
    """The folder, made before the work; other experiments may have left their files in it."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"{str(out)!r} is a file, and the results need a folder; use --out.")
    there = sorted(path for path in out.glob(f"{experiment}*") if path.suffix in SUFFIXES)
    if there and not force:
        raise ValueError(
            f"{str(there[0])!r} is there already; use --force to replace it, or --out for another "
            "folder."
        )
    new = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    try:
        yield out
    except BaseException:
        with suppress(OSError):  # not empty
            if new:
                out.rmdir()
        raise


def _read(tumours: Tumours, voice: Voice) -> dict[str, Any]:
    from rskc.files import read_table
    from rskc.reproduce.breast_cancer import WHERE

    if tumours.data is None or tumours.labels is None:
        raise ValueError(f"breast-cancer needs --data and --labels. {WHERE}")
    with voice.busy(f"Reading {tumours.data.name}"):
        table = read_table(tumours.data, id_column=tumours.id_column or "sample")
        labels = read_column(tumours.labels, tumours.label_column or "ER")
    return {"data": table.data, "labels": labels}


def read_column(path: Path, name: str) -> Any:
    """Read one column of a text table, as text."""
    import pandas as pd

    separator = "\t" if ".tsv" in path.suffixes else ","
    columns = list(pd.read_csv(path, sep=separator, nrows=0).columns)
    if name not in columns:
        raise ValueError(
            f"{path.name!r} has no column {name!r}, but {', '.join(map(repr, columns))}; use "
            "--label-column."
        )
    cells = pd.read_csv(path, sep=separator, usecols=[name], dtype=str, keep_default_na=False)
    return cells[name].to_numpy(object)


def _run(experiment: str, given: dict[str, Any], voice: Voice) -> Any:
    """Run it, with progress where there is any; warnings of the fits are of no interest here."""
    from rskc.reproduce import EXPERIMENTS

    function = EXPERIMENTS[experiment]
    with heard():
        if "progress" not in inspect.signature(function).parameters:
            with voice.busy(experiment):
                return function(**given)
        with voice.counting(experiment) as update, _checkpoint_noted(given.get("checkpoint")):
            return function(**given, progress=update)


@contextmanager
def _checkpoint_noted(checkpoint: Path | None) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        if checkpoint is not None:
            kept = f"what was done is kept in {str(checkpoint)!r}"
            error.add_note(f"{kept}, and the same command goes on from there")
        raise


def _show(found: Any, files: list[Path], voice: Voice) -> None:
    if voice.silent:
        return
    from rich.text import Text

    voice.say("", Text(found.title, style="bold cyan"))
    for caption, table in found.tables.items():
        voice.say("", Text(caption, style="bold"), _drawn(table))
    voice.say(found.verdict, "")
    for file in files:
        voice.say_in_one_line(f"Written: {file}")


def _drawn(table: Any) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from rskc.reproduce.outcome import shown_rows

    drawn, words = Table(box=SIMPLE_HEAD), table.select_dtypes(exclude="number").columns
    for name in table.columns:
        drawn.add_column(str(name), justify="left" if name in words else "right")
    for row in shown_rows(table):
        drawn.add_row(*row)
    return drawn


def _told(found: Any, files: list[Path], seed: int, seconds: float) -> dict[str, Any]:
    return {
        "experiment": found.name,
        "title": found.title,
        "verdict": found.verdict,
        "tables": {caption: table.to_dict("records") for caption, table in found.tables.items()},
        "files": [str(file) for file in files],
        "seed": seed,
        "seconds": seconds,
    }
