"""Options of the commands, in groups: a dataclass each.

A field has the name of the parameter of the library that it sets, so that a group's fields are the
arguments of a call; the option is called the same, unless the field says otherwise.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument

TABLE, MODEL, RESULTS, SEARCH = "Reading the table", "Model", "Results", "Search"
LARGE = "Large tables and long searches"
SEPARATORS = {"\\t": "\t", "tab": "\t", "comma": ",", "semicolon": ";", "space": " "}
STANDARD_INPUT = "standard-input.txt"
SCALES = {"robust": "mad", "classic": "std"}


# ---- Values as they are typed: "2-8", "auto", "0,0.05,0.1"


def number(kind: type, text: Any, expected: str) -> Any:
    """Read a number."""
    try:
        return kind(str(text))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not what is expected: {expected}.") from None


def number_or(kind: type, example: str, *words: str) -> Callable[[Any], Any]:
    """Return what reads a number, or one of these words."""
    *first, last = [example, *(f'"{word}"' for word in words)]
    expected = f"{', '.join(first)} or {last}"
    return word_or(lambda text: number(kind, text, expected), *words)


def word_or(read: Callable[[Any], Any], *words: str) -> Callable[[Any], Any]:
    """Return what reads one of these words, of which "none" is None, or anything else."""

    def parse(text: Any) -> Any:
        if text is None or text in words:
            return None if text == "none" else text
        return read(text)

    return parse


def count_or(read: Callable[[Any], list]) -> Callable[[Any], Any]:
    """Return what reads how many there are, "10", or which, "2,3.5,5"."""
    return lambda text: int(text) if str(text).isdecimal() else read(text)


def some_clusters(text: Any) -> list[int]:
    """Read "2-8", "2,4,6" or "3"."""
    numbers: list[int] = []
    for part in str(text).split(","):
        first, dash, last = part.partition("-")
        low = number(int, first, '3, "2-8" or "2,4,6"')
        high = number(int, last, '"2-8"') if dash else low
        if high < low or high - low > 1000:
            raise typer.BadParameter(f"{part!r} is no range, such as 2-8.")
        numbers += range(low, high + 1)
    return numbers


def some_shares(text: Any) -> list[float]:
    """Read "0,0.05,0.1"."""
    return [number(float, part, 'numbers such as "0,0.05,0.1"') for part in str(text).split(",")]


def separator(text: str) -> str:
    """Read a mark, or its name."""
    return SEPARATORS.get(text, text)


def table_path(text: str) -> Path:
    """Return the path of a table; what comes through a pipe becomes a file, until the end."""
    if text != "-":
        return Path(text)
    folder = tempfile.mkdtemp(prefix="rskc-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    cells = sys.stdin.buffer.read()
    path = Path(folder, STANDARD_INPUT + ".gz" * cells.startswith(b"\x1f\x8b"))
    path.write_bytes(cells)
    return path


def table_word(path: Path) -> str:
    """Return what a command calls a table: its path, or - for what came through a pipe."""
    is_temporary = path.parent.parent == Path(tempfile.gettempdir())
    return "-" if is_temporary and path.name.startswith(STANDARD_INPUT) else str(path)


# ---- Options


def option(
    panel: str | None, default: Any, help: str, metavar: str | None = None, *names: str, **how: Any
) -> Any:
    """Declare a field of a dataclass that becomes an option in a panel of the help.

    Without a panel it is at the top of the help, for the few that most people need. Help is short,
    a line of a terminal where possible, and says what the default is.
    ``dataclasses.MISSING`` as default makes it a required one.
    """
    how = {"show_default": panel == SEARCH, "metavar": metavar} | how
    made = typer.Option(*names, help=help, rich_help_panel=panel, **how)
    return field(default=default, metadata={"option": made, "names": names})


def out_option(default: Path | None, help: str, metavar: str = "FOLDER") -> Any:
    """Declare a field for the folder or file that a command writes to."""
    return option(RESULTS, default, help, metavar, "--out", "-o")


def clusters_option(default: Any, help: str, metavar: str = "NUMBERS", **how: Any) -> Any:
    """Declare a field for the number of clusters, or for several."""
    return option(None, default, help, metavar, "--clusters", "-k", **how)


def flag(panel: str, help: str, *names: str) -> Any:
    """Declare a field that is False unless the option is given."""
    return option(panel, False, help, None, *names)


# ---- The table

_kinds = ".csv .tsv .txt (.gz) .xlsx .parquet .feather .npy .npz .h5ad .mtx"
_table_help = f"One row per case: {_kinds}, a folder of Parquet, or - for a pipe"
_file_help = f"The table of the fit, which must be one file: {_kinds}."
_model_help = "The model.rskc of a fit, or the folder it is in."
TablePath = Annotated[
    Path, Argument(metavar="TABLE", help=_table_help, show_default=False, parser=table_path)
]
TableFile = Annotated[Path, Argument(metavar="TABLE", help=_file_help, show_default=False)]
ModelPath = Annotated[Path, Argument(metavar="MODEL", help=_model_help, show_default=False)]


@dataclass(frozen=True)
class Reading:
    """How a table is to be read."""

    id_column: str | None = option(TABLE, None, "Column of case names.", "NAME")
    label_column: str | None = option(None, None, "Known classes, to compare with.", "NAME")
    weight_column: str | None = option(TABLE, None, "Case weights; no feature.", "NAME")
    drop: list[str] = option(TABLE, (), "Column to leave out; repeatable.", "NAME")
    use_columns: list[str] = option(
        TABLE, (), "Cluster by it, whatever it looks like.", "NAME", "--use-column"
    )
    features_in_rows: bool | None = option(
        TABLE,
        None,
        "Rows are features, or cases.",
        None,
        "--features-in-rows/--cases-in-rows",
    )
    labels: Path | None = option(
        TABLE, None, "Known classes in another file, by id or in order.", "FILE"
    )
    label_row: str | None = option(
        TABLE, None, "Known classes, where features are in rows.", "NAME"
    )
    missing_values: list[str] = option(
        TABLE, (), "What else stands for a missing cell.", "MARKER", "--missing"
    )
    decimal: str = option(TABLE, "auto", 'Decimal mark, "." or ",".', "MARK")
    text_columns: Literal["categories", "refuse", "drop"] = option(
        TABLE, "categories", "categories (few values), refuse or drop.", "HOW"
    )
    categorical: list[str] = option(TABLE, (), "Numbers that are categories; repeatable.", "NAME")
    date_columns: Literal["drop", "numbers"] = option(
        TABLE, "drop", "drop, or numbers (days).", "HOW", "--dates"
    )
    sheet: str | None = option(TABLE, None, "Sheet; default: the first.", "NAME")
    separator: Any = option(TABLE, None, "Separator, such as tab.", "MARK", parser=separator)
    encoding: str = option(TABLE, "utf-8", "Encoding of text; utf-8 is usual.", "NAME")
    no_header: bool = flag(TABLE, "The first line holds data, not names.", "--no-header")

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of read_table."""
        from rskc.files.tables import MISSING_VALUES

        given = {
            name: list(value) if isinstance(value, list | tuple) else value
            for name, value in vars(self).items()
            if name not in ("labels", "no_header")
        }
        given["missing_values"] = [*MISSING_VALUES, *self.missing_values]
        if self.features_in_rows is None:
            given["features_in_rows"] = "auto"
        return given | {"header": not self.no_header}


@dataclass(frozen=True)
class Rereading:
    """How a second table differs from that of the fit."""

    id_column: str | None = option(TABLE, None, "Column with the names of the cases.", "NAME")
    missing_values: list[str] = option(
        TABLE, (), "What else stands for a missing cell; repeatable.", "MARKER", "--missing"
    )
    decimal: str | None = option(TABLE, None, "Decimal mark.", "MARK")
    sheet: str | None = option(TABLE, None, "Sheet of an .xlsx.", "NAME")
    separator: Any = option(TABLE, None, "What separates cells.", "MARK", parser=separator)
    encoding: str | None = option(TABLE, None, "Encoding of text.", "NAME")

    def arguments(self, fitted: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of read_table: those of the fit, and what differs."""
        from rskc.files.tables import MISSING_VALUES

        given = {name: value for name, value in vars(self).items() if value}
        known = fitted.get("missing_values", MISSING_VALUES)
        given["missing_values"] = [*known, *self.missing_values]
        # What was recognized in the table of the fit need not show in another.
        given["features_in_rows"] = fitted.get("features_in_rows") is True
        return {"use_columns": "all"} | fitted | given


@dataclass(frozen=True)
class Preparing:
    """What is done to the numbers of a table before they are clustered."""

    prepare: Literal["auto", "none"] = option(
        None, "auto", "none: cluster the numbers as they are.", "HOW"
    )
    log: str = option(TABLE, "auto", "Logarithms of all, none, or NAME,NAME.", "COLUMNS")
    standardize: Literal["auto", "none", "rows", "columns"] = option(
        TABLE, "auto", "columns, rows or none.", "WHAT"
    )
    scale: Literal["auto", "robust", "classic"] = option(
        TABLE, "auto", "robust (MAD) or classic (SD).", "HOW"
    )

    @property
    def is_judged(self) -> bool:
        """Whether numbers must be seen to know what is done to them."""
        asked = self.arguments()
        return asked["log"] is not None or asked["standardize"] in ("auto", "columns")

    def arguments(self) -> dict[str, Any]:
        """Return the parameters of the Preparer."""
        usual = "none" if self.prepare == "none" else "auto"
        log, standardize = (
            usual if asked == "auto" else asked for asked in (self.log, self.standardize)
        )
        scale = SCALES.get(self.scale, "auto")
        if standardize == "rows" and scale == "auto":
            scale = "mad"  # as in the paper
        columns = log if log in ("auto", "all") else [name.strip() for name in log.split(",")]
        return {
            "log": None if log == "none" else columns,
            "standardize": None if standardize == "none" else standardize,
            "scale": scale,
        }


@dataclass(frozen=True)
class EngineOptions:
    """Whether the table is held in memory, and who works on it if not."""

    engine: Literal["auto", "memory", "dask"] = option(
        LARGE, "auto", "memory, dask (in blocks) or auto (by size).", "WHERE"
    )
    scheduler: str | None = option(
        LARGE, None, "A Dask cluster, such as tcp://host:8786.", "ADDRESS"
    )
    memory: str | None = option(LARGE, None, "Of blocks, as 2GB; default: half the free.", "AMOUNT")


# ---- The model

_bound_help = "1 (one feature) to the root of their number (all), auto, half, none"


@dataclass(frozen=True)
class Trimming:
    """The share of outlying cases."""

    trim: Any = option(
        MODEL,
        "auto",
        "Share of outlying cases, 0 to 0.5, or auto.",
        "SHARE",
        parser=number_or(float, "0.05", "auto"),
    )


@dataclass(frozen=True)
class TrimmingAndCells(Trimming):
    """That, and which single cells are outlying."""

    cells: Any = option(
        MODEL,
        "auto",
        "Scales beyond which a cell is outlying, auto or none.",
        "SCALES",
        parser=number_or(float, "a number", "auto", "none"),
    )


@dataclass(frozen=True)
class Sparsity:
    """How many features get weight."""

    l1_bound: Any = option(
        MODEL,
        "auto",
        f"{_bound_help}.",
        "BOUND",
        parser=number_or(float, "a number", "auto", "half", "none"),
    )
    n_features: int | None = option(
        MODEL, None, "Number of features, instead of a bound.", "NUMBER"
    )


@dataclass(frozen=True)
class SparsityOrSearch(Sparsity):
    """The same, with the choice left to the gap statistic."""

    l1_bound: Any = option(
        MODEL,
        "auto",
        f"{_bound_help} or choose.",
        "BOUND",
        parser=number_or(float, "a number", "auto", "half", "none", "choose"),
    )


@dataclass(frozen=True)
class Basics:
    """Groups of features, restarts, seed and threads."""

    feature_groups: Path | None = option(
        MODEL, None, "Features that share a weight: a GMT file.", "FILE", "--groups"
    )
    n_init: int | None = option(MODEL, None, "Restarts; default: 10 to 100, by size.", "NUMBER")
    random_state: int = option(MODEL, 0, "Seed of random numbers; default: 0.", "NUMBER", "--seed")
    n_threads: int | None = option(
        MODEL, None, "Threads; default: all CPUs.", "NUMBER", "--threads"
    )
    device: str | None = option(LARGE, None, "cuda, cuda:1 or cpu (by torch); fits there.", "NAME")

    def estimator(self, n_clusters: int, **settings: Any) -> Any:
        """Make an estimator with these settings and others; groups need the table."""
        from rskc.estimator import RobustSparseKMeans

        n_init = "auto" if self.n_init is None else self.n_init
        given = vars(self) | {"feature_groups": None, "n_init": n_init}
        return RobustSparseKMeans(n_clusters, **given, **settings)


# ---- Searches


@dataclass(frozen=True)
class Searching:
    """How a search runs."""

    n_jobs: int = option(LARGE, -1, "Parallel fits; default: one per core.", "NUMBER", "--jobs")
    checkpoint: Path | None = option(
        LARGE, None, "Keeps finished fits, to resume a search.", "FILE"
    )
    max_samples: int = option(LARGE, 5000, "Most cases searched; default: 5000.", "NUMBER")


@dataclass(frozen=True)
class NumberOrAuto:
    """The number of clusters, or the wish to have it chosen."""

    n_clusters: Any = clusters_option(
        "auto",
        "Number of clusters; default: chosen.",
        "NUMBER",
        parser=number_or(int, "3", "auto"),
    )


@dataclass(frozen=True)
class OneNumber:
    """The number of clusters."""

    n_clusters: int = clusters_option(MISSING, "Number of clusters.", "NUMBER")


@dataclass(frozen=True)
class Numbers:
    """Numbers of clusters to try, and how one of them is chosen."""

    n_clusters: Any = clusters_option(
        None,
        "Numbers to try, such as 2-8 or 2,4,6; else 2-10, and more where these are too few (2-8 "
        "for clest).",
        parser=some_clusters,
    )
    method: Literal["stability", "clest"] = option(
        SEARCH, "stability", "stability: by half-samples; clest: by Clest, the paper's way.", "HOW"
    )
    rule: Literal["agreement", "paper"] | None = option(
        SEARCH, None, "Rule of Clest: agreement or paper.", "NAME"
    )
    n_splits: int | None = option(
        SEARCH, None, "Splits of the cases; default: 6, clest 20.", "NUMBER", "--splits"
    )
    n_references: int | None = option(
        SEARCH, None, "Reference sets; default: 20.", "NUMBER", "--references"
    )


@dataclass(frozen=True)
class Bounds:
    """Bounds to try."""

    l1_bounds: Any = option(
        SEARCH,
        "10",
        "How many bounds to try, or which: 2,4,8.",
        "BOUNDS",
        "--bounds",
        parser=count_or(some_shares),
    )
    n_permutations: int = option(SEARCH, 20, "Shuffled data sets.", "NUMBER", "--permutations")


@dataclass(frozen=True)
class Grid:
    """Settings of which all combinations are tried."""

    n_clusters: Any = clusters_option(
        MISSING, "Numbers of clusters, such as 2-4.", parser=some_clusters
    )
    l1_bounds: Any = option(
        SEARCH,
        "5",
        "How many bounds, or which: 2,4,8; none: all features have the same weight.",
        "BOUNDS",
        "--bounds",
        parser=word_or(count_or(some_shares), "none"),
    )
    trims: Any = option(SEARCH, "0,0.05,0.1", "Shares to trim.", "SHARES", parser=some_shares)


@dataclass(frozen=True)
class ExploredSettings:
    """Settings of which all combinations are fitted."""

    n_clusters: Any = clusters_option(
        "auto",
        "Numbers of clusters, such as 2-6; else 2-8, or 2 more than are chosen.",
        parser=word_or(some_clusters, "auto"),
    )
    n_features: Any = option(
        SEARCH,
        "auto",
        "How many numbers of features (8 is usual), or which: 5,20,100.",
        "NUMBERS",
        parser=word_or(count_or(some_clusters), "auto"),
    )
    trims: Any = option(
        SEARCH,
        "auto",
        "Shares to trim; auto: 0, 0.05, 0.1, or the share that is found.",
        "SHARES",
        parser=word_or(some_shares, "auto"),
    )
    n_splits: int = option(
        SEARCH,
        2,
        "Splits into halves, fitted with every setting; 0: none.",
        "NUMBER",
        "--splits",
    )


# ---- Results


@dataclass(frozen=True)
class Results:
    """Where results go; nowhere without a folder."""

    out: Path | None = out_option(None, "Folder for the results; default: none.")
    force: bool = flag(RESULTS, "Replace existing results.", "--force")
    no_report: bool = flag(RESULTS, "Leave the HTML page out.", "--no-report")
    title: str | None = option(RESULTS, None, "Heading of the page.", "TEXT")


@dataclass(frozen=True)
class ResultsOfFit(Results):
    """Where results go; a folder here unless another one is named."""

    out: Path | None = out_option(None, "Folder for results; default: TABLE-rskc.")
    plan: bool = flag(LARGE, "Predict time and memory, and stop.", "--plan")
    ranked_lists: bool = flag(RESULTS, "Features by cluster, ranked: .rnk files.", "--ranked-lists")


@dataclass(frozen=True)
class Page:
    """Where a page is written, and its heading."""

    out: Path | None = out_option(None, "The page; default: beside the model.", "FILE")
    title: str | None = option(RESULTS, None, "Heading of the page.", "TEXT")
    force: bool = flag(RESULTS, "Replace a page that is there.", "--force")


# ---- What parameters are called

GROUPS = (Reading, Trimming, TrimmingAndCells, Sparsity, Basics, Searching, Numbers, Bounds, Grid)
# What messages of the library call parameters, and the options that set them.
NAMES = {
    each.name: next(iter(each.metadata["names"]), f"--{each.name.replace('_', '-')}")
    for group in GROUPS
    for each in fields(group)
} | {
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
    "Clest": "rskc select-k --method clest",
    "GapL1": "rskc select-l1",
    "ColumnStandardizer()": "--standardize columns",
    "Preparer()": "--prepare auto",
    "Preparer() in a pipeline": "--standardize columns",
    "RowStandardizer()": "--standardize rows",
}
