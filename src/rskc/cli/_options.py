"""Options of the commands, in groups: a dataclass each.

A field has the name of the parameter of the library that it sets, so that a group's fields are the
arguments of a call; the option is called the same, unless the field says otherwise. Help is short,
a line of a terminal where possible, and says what the default is.
"""

import atexit
import re
import shutil
import sys
import tempfile
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

TABLE, MODEL, RESULTS, SEARCH = "Reading the table", "Model", "Results", "Search"
LARGE, IN_ROWS = "Large tables and long searches", "Tables with features in rows"
SEPARATORS = {"\\t": "\t", "tab": "\t", "comma": ",", "semicolon": ";", "space": " "}
SCALES = {"robust": "mad", "classic": "std"}


# ---- Values as they are typed. What the library does not allow it refuses itself.


def value(text: Any) -> Any:
    """Read a number, or a word, of which "none" is None."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return None if text in (None, "none") else text


def numbers(text: Any) -> Any:
    """Read "2-8", "2,4,6", "0.05" or "3" as a list; or a word."""
    if not re.search(r"\d", str(text)):
        return value(text)
    found: list[Any] = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        if dash and low:  # a range, and no negative number
            if not (low.isdecimal() and high.isdecimal() and int(low) <= int(high) < 10**4):
                raise typer.BadParameter(f"{part!r} is no range, such as 2-8.")
            found += range(int(low), int(high) + 1)
        elif isinstance(value(part), str):
            raise typer.BadParameter(f"{text!r} is no list of numbers, such as 2,4,6.")
        else:
            found.append(value(part))
    return found


def count(text: Any) -> Any:
    """Read how many there are, "10", or which, "2,3.5,5"; or a word."""
    return int(text) if str(text).isdecimal() else numbers(text)


def table_path(text: str) -> Path:
    """Return the path of a table; what comes through a pipe becomes a file, until the end."""
    if text != "-":
        return Path(text)
    folder = tempfile.mkdtemp(prefix="rskc-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    cells = sys.stdin.buffer.read()
    path = Path(folder, "standard-input.txt" + ".gz" * cells.startswith(b"\x1f\x8b"))
    path.write_bytes(cells)
    return path


# ---- Options


def option(help: str, default: Any = None, *names: str, **how: Any) -> Any:
    """Declare a field of a dataclass that becomes an option, in the panel of the dataclass.

    With ``panel=None`` it is at the top of the help, for the few that most people need. Without a
    default it is None; with ``dataclasses.MISSING`` the option is required.
    """
    return field(default=default, metadata={"help": help, "names": names} | how)


def option_name(option: Any) -> str:
    """Return the name of an option, given its field."""
    names = option.metadata["names"]
    return names[0] if names else f"--{option.name.replace('_', '-')}"


# ---- The table

_kinds = ".csv .tsv .txt .gct (.gz) .xlsx .parquet .feather .npy .npz .h5ad .mtx"
_table = f"The table, one row per case: {_kinds}, a folder of Parquet files, or - for a pipe."
_file = f"The table, which must be one file: {_kinds}."
_model = "The model.rskc of a fit, or the folder it is in."
TablePath = Annotated[Path, typer.Argument(metavar="TABLE", help=_table, parser=table_path)]
TableFile = Annotated[Path, typer.Argument(metavar="TABLE", help=_file)]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help=_model)]


@dataclass(frozen=True)
class Rereading:
    """How cells are to be read, in the table of a fit and in others like it."""

    panel = TABLE
    id_column: str | None = option("Column with the names of the cases.")
    missing_values: list[str] = option(
        "What else stands for a missing cell; repeatable.", (), "--missing"
    )
    decimal: str | None = option('Decimal mark, "." or "," (default: recognized).')
    sheet: str | None = option("Sheet of an .xlsx (default: the first with numbers).")
    separator: str | None = option(
        "What separates cells, such as tab.", parser=lambda text: SEPARATORS.get(text, text)
    )
    encoding: str | None = option("Encoding of text (default: utf-8).")

    def given(self, missing_values: Any = None) -> dict[str, Any]:
        """Return arguments of read_table, those that are not its own defaults."""
        from rskc.files.tables import MISSING_VALUES

        asked = {name: value for name, value in vars(self).items() if value not in (None, [], ())}
        if self.missing_values:
            known = MISSING_VALUES if missing_values is None else missing_values
            asked["missing_values"] = [*known, *self.missing_values]
        return asked

    def like(self, fitted: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of read_table: those of the fit, and what differs."""
        # What was recognized in the table of the fit need not show in another.
        in_rows = {"features_in_rows": fitted.get("features_in_rows") is True}
        usual = {} if fitted else {"use_columns": "all"}
        return usual | fitted | self.given(fitted.get("missing_values")) | in_rows


@dataclass(frozen=True)
class Reading(Rereading):
    """How a table is to be read."""

    label_column: str | None = option("Known classes, compared with the clusters.", panel=None)
    labels: Path | None = option("Known classes in another file, by id or in order.")
    label_row: str | None = option("Row with known classes.", panel=IN_ROWS)
    weight_column: str | None = option("Column with case weights.")
    drop: list[str] = option("Column to leave out; repeatable.", ())
    use_columns: list[str] = option(
        "Column to cluster by, whatever it looks like; repeatable.", (), "--use-column"
    )
    features_in_rows: bool | None = option(
        "What rows are (default: recognized).",
        None,
        "--features-in-rows/--cases-in-rows",
        panel=IN_ROWS,
    )
    text_columns: Literal["categories", "refuse", "drop"] = option(
        "Text becomes categories (default), or: refuse, drop.", "categories"
    )
    categorical: list[str] = option("Column of numbers that are categories; repeatable.", ())
    no_header: bool = option("The first line has data, not names.", False)

    def arguments(self) -> dict[str, Any]:
        """Return arguments of read_table, those that are not its own defaults."""
        asked = {k: v for k, v in self.given().items() if k not in ("labels", "no_header")}
        return asked | ({"header": False} if self.no_header else {})


@dataclass(frozen=True)
class Preparing:
    """What is done to the numbers of a table before they are clustered."""

    panel = TABLE
    prepare: Literal["auto", "none"] = option(
        "none: cluster the numbers as they are.", "auto", panel=None
    )
    log: str = option("Take logarithms of NAME,NAME, all or none (default: auto).", "auto")
    standardize: Literal["auto", "none", "rows", "columns"] = option(
        "Standardize columns, rows or none (default: auto).", "auto"
    )
    scale: Literal["auto", "robust", "classic"] = option(
        "robust (MAD) or classic (SD) (default: auto).", "auto"
    )

    def arguments(self) -> dict[str, Any]:
        """Return the parameters of the Preparer; ``--prepare none`` is none of both."""
        asked = {"log": self.log, "standardize": self.standardize}
        asked = {name: self.prepare if how == "auto" else how for name, how in asked.items()}
        made: dict[str, Any] = {name: value(how) for name, how in asked.items()}
        if asked["log"] not in ("auto", "all", "none"):
            made["log"] = [name.strip() for name in self.log.split(",")]
        # Rows are divided by their MAD as in the paper.
        usual = "mad" if self.standardize == "rows" else "auto"
        return made | {"scale": SCALES.get(self.scale, usual)}

    @property
    def is_settled(self) -> bool:
        """Whether no numbers need be seen to know what is done to them."""
        asked = self.arguments()
        return asked["log"] is None and asked["standardize"] in (None, "rows")


@dataclass(frozen=True)
class EngineOptions:
    """Whether the table is held in memory, or how much of it if not."""

    panel = LARGE
    engine: Literal["auto", "memory", "dask"] = option(
        "Where the table is: memory, dask (in blocks), auto (by size).", "auto"
    )
    memory: str | None = option("Memory for blocks, such as 2GB (default: half of what is free).")


# ---- The model


@dataclass(frozen=True)
class Basics:
    """Groups of features, restarts, seed and threads."""

    panel = MODEL
    feature_groups: Path | None = option("GMT file: features that share weight.", None, "--groups")
    n_init: Any = option("Restarts (default: 10 to 100, by size).", "auto", parser=value)
    random_state: int = option("Seed of the random numbers (default: 0).", 0, "--seed")
    n_threads: int | None = option("Threads (default: all CPUs).", None, "--threads")
    device: str | None = option("Device, by torch: cuda, cuda:1 or cpu.", panel=LARGE)

    def estimator(self, n_clusters: int) -> Any:
        """Make an estimator with these settings; groups of features need the table."""
        from rskc.estimator import RobustSparseKMeans

        return RobustSparseKMeans(n_clusters, **vars(self) | {"feature_groups": None})


@dataclass(frozen=True)
class Model(Basics):
    """The shares of cases and of features that count, and which single cells do not."""

    trim: Any = option("Share of cases to trim, 0 to 0.5 (default: auto).", "auto", parser=value)
    cells: Any = option(
        "Scales beyond which a cell is outlying, or none (default: auto).", "auto", parser=value
    )
    l1_bound: Any = option(
        "How many features get weight: 1 (one) to the root of their number (all), auto (default), "
        "half, none or, in rskc fit, choose.",
        "auto",
        parser=value,
    )
    n_features: int | None = option("Number of features, instead of a bound.")


# ---- Searches


def clusters(help: str, default: Any, parser: Any = numbers) -> Any:
    """Declare a field for the number of clusters, or for several."""
    return option(help, default, "--clusters", "-k", parser=parser, panel=None)


@dataclass(frozen=True)
class Searching:
    """How a search runs."""

    panel = LARGE
    n_jobs: int = option("Parallel fits (default: one per core).", -1, "--jobs")
    checkpoint: Path | None = option("File to resume a stopped search from.")
    max_samples: int = option("Most cases to search on (default: 5000).", 5000)


@dataclass(frozen=True)
class Number:
    """The number of clusters, or the wish to have it chosen."""

    panel = None
    n_clusters: Any = clusters("Number of clusters (default: chosen).", "auto", value)


@dataclass(frozen=True)
class Numbers:
    """Numbers of clusters to try, and how one of them is chosen."""

    panel = SEARCH
    n_clusters: Any = clusters(
        "Numbers to try, such as 2-8 or 2,4,6 (default: 2-10, and more where these are too few; "
        "2-8 for clest).",
        None,
    )
    method: Literal["stability", "clest"] = option(
        "stability (default, by half-samples) or clest (as in the paper).", "stability"
    )
    rule: Literal["agreement", "paper"] | None = option("Rule of Clest: agreement or paper.")
    n_splits: int | None = option("Splits of the cases (default: 6, clest 20).", None, "--splits")
    n_references: int | None = option("Reference data sets (default: 20).", None, "--references")


@dataclass(frozen=True)
class Bounds:
    """The number of clusters, and bounds to try."""

    panel = SEARCH
    n_clusters: int = option("Number of clusters.", MISSING, "--clusters", "-k", panel=None)
    l1_bounds: Any = option(
        "How many bounds to try, or which: 2,4,8 (default: 10).", 10, "--bounds", parser=count
    )
    n_permutations: int = option("Shuffled data sets (default: 20).", 20, "--permutations")


@dataclass(frozen=True)
class Grid:
    """Settings of which all combinations are tried."""

    panel = SEARCH
    n_clusters: Any = clusters("Numbers of clusters, such as 2-4.", MISSING)
    l1_bounds: Any = option(
        "How many bounds, or which: 2,4,8; none: equal weights (default: 5).",
        5,
        "--bounds",
        parser=count,
    )
    trims: Any = option("Shares to trim (default: 0,0.05,0.1).", "0,0.05,0.1", parser=numbers)


@dataclass(frozen=True)
class ExploredSettings:
    """Settings of which all combinations are fitted."""

    panel = SEARCH
    n_clusters: Any = clusters(
        "Numbers of clusters, such as 2-6 (default: 2-8, or up to 2 more than are chosen).", "auto"
    )
    n_features: Any = option(
        "How many numbers of features, or which: 5,20,100 (default: 8).", "auto", parser=count
    )
    trims: Any = option(
        "Shares to trim (default: 0,0.05,0.1 or the share that is found).", "auto", parser=numbers
    )
    n_splits: int = option("Splits in halves, for every setting (default: 2).", 2, "--splits")


# ---- Results


@dataclass(frozen=True)
class Target:
    """Where a command writes; its help says what, and what the default is."""

    panel = RESULTS
    out: Path | None = option("", None, "--out", "-o")
    force: bool = option("Replace existing files.", False)
    title: str | None = option("Heading of the page.")


@dataclass(frozen=True)
class Results(Target):
    """Where results go; nowhere without a folder."""

    no_report: bool = option("Leave the HTML page out.", False)
    ranked_lists: bool = option("Write the features ranked for each cluster: .rnk files.", False)
    plan: bool = option("Predict time and memory, and stop.", False, panel=LARGE)


# ---- What parameters are called

GROUPS = (Reading, Preparing, Model, Searching, Numbers, Bounds, Grid)
# What messages of the library call parameters, and the options that set them.
NAMES = {each.name: option_name(each) for group in GROUPS for each in fields(group)} | {
    "X": "the table",
    "None": "none",
    "=": " ",
    "sample_weight": "--weight-column",
    'text_columns="drop"': "--text-columns drop",
    'decimal=","': "--decimal ,",
    'encoding="cp1252"': "--encoding cp1252",
    'encoding="utf-16"': "--encoding utf-16",
    "header=False": "--no-header",
    "read_table": "--engine memory",
    "Stability": "rskc select-k",
    "ColumnStandardizer()": "--standardize columns",
    "Preparer()": "--prepare auto",
    "Preparer() in a pipeline": "--standardize columns",
}
