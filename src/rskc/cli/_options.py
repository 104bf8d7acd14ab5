"""Options of the commands, in groups: a dataclass each, whose fields become options."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument

from rskc.cli._values import (
    bound_or_word,
    cells_or_word,
    plain_bound,
    share_or_auto,
    table_path,
)

TABLE, MODEL, RESULTS, SEARCH = "Reading the table", "Model", "Results", "Search"
LARGE, OUTPUT = "Large tables and long searches", RESULTS
SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
# What messages of the library call parameters, and the options that set them.
NAMES = {
    "n_clusters": "--clusters",
    "l1_bound": "--l1-bound",
    "l1_bounds": "--bounds",
    "n_features": "--n-features",
    "feature_groups": "--groups",
    "X": "the table",
    "trim": "--trim",
    "cells": "--cells",
    "trims": "--trims",
    "n_init": "--n-init",
    "random_state": "--seed",
    "n_threads": "--threads",
    "device": "--device",
    "n_jobs": "--jobs",
    "max_samples": "--max-samples",
    "n_splits": "--splits",
    "n_references": "--references",
    "n_permutations": "--permutations",
    "checkpoint": "--checkpoint",
    "rule": "--rule",
    "None": "none",
    "id_column": "--id-column",
    "label_column": "--label-column",
    "weight_column": "--weight-column",
    "sample_weight": "--weight-column",
    "label_row": "--label-row",
    "drop": "--drop",
    "use_columns": "--use-column",
    "log": "--log",
    "text_columns": "--text-columns",
    "date_columns": "--dates",
    "categorical": "--categorical",
    'text_columns="drop"': "--text-columns drop",
    "missing_values": "--missing",
    "decimal": "--decimal",
    'decimal=","': "--decimal ,",
    "encoding": "--encoding",
    'encoding="cp1252"': "--encoding cp1252",
    'encoding="utf-16"': "--encoding utf-16",
    "header=False": "--no-header",
    "read_table": "--engine memory",
    "=": " ",
    "Stability": "rskc select-k",
    "Clest": "rskc select-k --method clest",
    "GapL1": "rskc select-l1",
    "ColumnStandardizer()": "--standardize columns",
    "Preparer()": "--prepare auto",
    "Preparer() in a pipeline": "--standardize columns",
    "RowStandardizer()": "--standardize rows",
}


def option(panel: str | None, default: Any, help: str, *names: str, **how: Any) -> Any:
    """Declare a field of a dataclass that becomes an option in a panel of the help.

    Without a panel it is at the top of the help, for the few that most people need. Help is short,
    a line of a terminal where possible, and says what the default is.
    ``dataclasses.MISSING`` as default makes it a required one.
    """
    how = {"show_default": panel == SEARCH} | how
    made = typer.Option(*names, help=help, rich_help_panel=panel, **how)
    return field(default=default, metadata={"option": made})


def out_option(default: Path | None, help: str, metavar: str = "FOLDER") -> Any:
    """Declare a field for the folder or file that a command writes to."""
    return option(RESULTS, default, help, "--out", "-o", metavar=metavar)


def clusters_option(default: Any, help: str, metavar: str, **how: Any) -> Any:
    """Declare a field for the number of clusters, or for several."""
    return option(None, default, help, "--clusters", "-k", metavar=metavar, **how)


def flag(panel: str, help: str, *names: str) -> Any:
    """Declare a field that is False unless the option is given."""
    return option(panel, False, help, *names)


# ---- The table

_kinds = ".csv .tsv .txt (.gz) .xlsx .parquet .feather .npy .npz .h5ad .mtx"
_table_help = f"A row a case: {_kinds}, a folder of Parquet, or - for text from a pipe"
_file_help = f"The table of the fit, which must be one file: {_kinds}."
TablePath = Annotated[
    Path,
    Argument(metavar="TABLE", help=_table_help, show_default=False, parser=table_path),
]
TableFile = Annotated[Path, Argument(metavar="TABLE", help=_file_help, show_default=False)]
ModelPath = Annotated[
    Path,
    Argument(
        metavar="MODEL",
        help="The model.rskc of a fit, or the folder it is in.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Reading:
    """How a table is to be read."""

    id_column: str | None = option(
        TABLE,
        None,
        "Names of cases; else recognized.",
        metavar="NAME",
    )
    label_column: str | None = option(
        None,
        None,
        "Known classes, to compare with.",
        metavar="NAME",
    )
    weight_column: str | None = option(
        TABLE,
        None,
        "What each case counts; no feature.",
        metavar="NAME",
    )
    drop: list[str] | None = option(TABLE, None, "Column to leave out; repeatable.", metavar="NAME")
    use_column: list[str] | None = option(
        TABLE,
        None,
        "Cluster by it, whatever it looks like.",
        metavar="NAME",
    )
    features_in_rows: bool | None = option(
        TABLE,
        None,
        "A row is a feature, or a case; else found.",
        "--features-in-rows/--cases-in-rows",
        show_default=False,
    )
    labels: Path | None = option(
        TABLE, None, "Known classes in another file, by id or in order.", metavar="FILE"
    )
    label_row: str | None = option(
        TABLE, None, "Known classes, where features are in rows.", metavar="NAME"
    )
    missing: list[str] | None = option(
        TABLE,
        None,
        "What else stands for a missing cell.",
        metavar="MARKER",
    )
    decimal: str = option(TABLE, "auto", 'Decimal mark, "." or ","; else found.', metavar="MARK")
    text_columns: Literal["categories", "refuse", "drop"] = option(
        TABLE,
        "categories",
        "categories (few values), refuse or drop.",
        metavar="HOW",
    )
    categorical: list[str] | None = option(
        TABLE, None, "Categories, though numbers; repeatable.", metavar="NAME"
    )
    dates: Literal["drop", "numbers"] = option(
        TABLE, "drop", "drop (usual), or numbers: count in days.", metavar="HOW"
    )
    sheet: str | None = option(TABLE, None, "Sheet of an .xlsx; else the first.", metavar="NAME")
    separator: str | None = option(
        TABLE,
        None,
        "Between cells, as tab; else found.",
        metavar="MARK",
    )
    encoding: str = option(TABLE, "utf-8", "Encoding of text; utf-8 is usual.", metavar="NAME")
    no_header: bool = flag(TABLE, "The first line has no names but data.", "--no-header")

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of read_table."""
        from rskc.files.tables import MISSING_VALUES

        return {
            "id_column": self.id_column,
            "label_column": self.label_column,
            "weight_column": self.weight_column,
            "drop": list(self.drop or []),
            "use_columns": list(self.use_column or []),
            "features_in_rows": "auto" if self.features_in_rows is None else self.features_in_rows,
            "label_row": self.label_row,
            "missing_values": [*MISSING_VALUES, *(self.missing or [])],
            "decimal": self.decimal,
            "text_columns": self.text_columns,
            "categorical": list(self.categorical or []),
            "date_columns": self.dates,
            "sheet": self.sheet,
            "separator": SEPARATORS.get(self.separator or "", self.separator),
            "encoding": self.encoding,
            "header": not self.no_header,
        }


@dataclass(frozen=True)
class Rereading:
    """How a second table differs from that of the fit."""

    id_column: str | None = option(
        TABLE, None, "Column with the names of the cases.", metavar="NAME"
    )
    missing: list[str] | None = option(
        TABLE, None, "What else stands for a missing cell; repeatable.", metavar="MARKER"
    )
    decimal: str | None = option(TABLE, None, "Decimal mark.", metavar="MARK")
    sheet: str | None = option(TABLE, None, "Sheet of an .xlsx.", metavar="NAME")
    separator: str | None = option(TABLE, None, "What separates cells.", metavar="MARK")
    encoding: str | None = option(TABLE, None, "Encoding of text.", metavar="NAME")

    def arguments(self, fitted: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of read_table: those of the fit, and what differs."""
        from rskc.files.tables import MISSING_VALUES

        given: dict[str, Any] = {
            "id_column": self.id_column,
            "decimal": self.decimal,
            "sheet": self.sheet,
            "separator": SEPARATORS.get(self.separator or "", self.separator),
            "encoding": self.encoding,
        }
        if self.missing:
            known = fitted.get("missing_values", MISSING_VALUES)
            given["missing_values"] = [*known, *self.missing]
        # Models of earlier versions were fitted to all columns.
        fitted = {"use_columns": "all"} | fitted
        fitted |= {"features_in_rows": fitted.get("features_in_rows") is True}
        return fitted | {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class Preparing:
    """What is done to the numbers of a table before they are clustered."""

    prepare: Literal["auto", "none"] = option(
        None, "auto", "none: cluster the numbers as they are.", metavar="HOW"
    )
    log: str = option(TABLE, "auto", "Logarithms of all, none, or NAME,NAME.", metavar="COLUMNS")
    standardize: Literal["auto", "none", "rows", "columns"] = option(
        TABLE,
        "auto",
        "columns, rows or none; else by kind.",
        metavar="WHAT",
    )
    scale: Literal["auto", "robust", "classic"] = option(
        TABLE,
        "auto",
        "robust (MAD), classic (SD); else by kind.",
        metavar="HOW",
    )

    @property
    def is_usual(self) -> bool:
        """Whether nothing was asked for."""
        return (self.prepare, self.log, self.standardize) == ("auto", "auto", "auto")

    @property
    def is_judged(self) -> bool:
        """Whether numbers must be seen to know what is done to them."""
        asked = self.arguments()
        return asked["log"] is not None or asked["standardize"] in ("auto", "columns")

    def arguments(self) -> dict[str, Any]:
        """Return the parameters of the Preparer."""
        log: Any = None if self.log == "none" else self.log
        if log not in ("auto", "all", None):
            log = [name.strip() for name in log.split(",")]
        standardize = None if self.standardize == "none" else self.standardize
        if self.prepare == "none":
            log = None if self.log == "auto" else log
            standardize = None if standardize == "auto" else standardize
        scale = {"robust": "mad", "classic": "std"}.get(self.scale, "auto")
        if standardize == "rows" and scale == "auto":
            scale = "mad"  # as in the paper
        return {"log": log, "standardize": standardize, "scale": scale}


@dataclass(frozen=True)
class EngineOptions:
    """Whether the table is held in memory, and who works on it if not."""

    engine: Literal["auto", "memory", "dask"] = option(
        LARGE,
        "auto",
        "memory, dask (in blocks) or auto (by size).",
        metavar="WHERE",
    )
    scheduler: str | None = option(
        LARGE,
        None,
        "A Dask cluster, such as tcp://host:8786.",
        metavar="ADDRESS",
    )
    memory: str | None = option(
        LARGE,
        None,
        "For blocks, such as 2GB; else half the free.",
        metavar="AMOUNT",
    )


# ---- The model


@dataclass(frozen=True)
class Trimming:
    """The share of outlying cases."""

    trim: Any = option(
        MODEL,
        "auto",
        "Share of outlying cases, 0 to 0.5, or auto.",
        parser=share_or_auto,
        metavar="SHARE",
    )


@dataclass(frozen=True)
class TrimmingAndCells(Trimming):
    """That, and which single cells are outlying."""

    cells: Any = option(
        MODEL,
        "auto",
        "Scales beyond which a cell is outlying, auto or none.",
        parser=cells_or_word,
        metavar="SCALES",
    )


_bound_help = "1 (one feature) to the root of their number (all), auto, half, none"


@dataclass(frozen=True)
class Sparsity:
    """How many features get weight."""

    l1_bound: Any = option(MODEL, "auto", f"{_bound_help}.", parser=plain_bound, metavar="BOUND")
    n_features: int | None = option(
        MODEL, None, "Number of features, instead of a bound.", metavar="NUMBER"
    )


@dataclass(frozen=True)
class SparsityOrSearch(Sparsity):
    """The same, with the choice left to the gap statistic."""

    l1_bound: Any = option(
        MODEL,
        "auto",
        f"{_bound_help} or choose.",
        parser=bound_or_word,
        metavar="BOUND",
    )


@dataclass(frozen=True)
class Basics:
    """Groups of features, restarts, seed and threads."""

    groups: Path | None = option(
        MODEL, None, "Features that share a weight: a GMT file.", metavar="FILE"
    )
    n_init: int | None = option(MODEL, None, "Restarts; else 10 to 100, by size.", metavar="NUMBER")
    seed: int = option(MODEL, 0, "Gives the same result again; else 0.", metavar="NUMBER")
    threads: int | None = option(MODEL, None, "Threads; else all there are.", metavar="NUMBER")
    device: str | None = option(
        LARGE, None, "cuda, cuda:1 or cpu (by torch); fits there.", metavar="NAME"
    )

    def estimator(self, n_clusters: int, **settings: Any) -> Any:
        """Make an estimator with these settings and others."""
        from rskc.estimator import RobustSparseKMeans

        return RobustSparseKMeans(
            n_clusters,
            n_init="auto" if self.n_init is None else self.n_init,
            random_state=self.seed,
            n_threads=self.threads,
            device=self.device,
            **settings,
        )


@dataclass(frozen=True)
class Searching:
    """How a search runs."""

    jobs: int = option(
        LARGE, -1, "Fits at a time; else one a core.", metavar="NUMBER", show_default=False
    )
    checkpoint: Path | None = option(
        LARGE, None, "Keeps a search, which then can be resumed.", metavar="FILE"
    )
    max_samples: int = option(
        LARGE,
        5000,
        "Most cases to search on; else 5000.",
        metavar="NUMBER",
        show_default=False,
    )

    def arguments(self, seed: int) -> dict[str, Any]:
        """Return the arguments that all searches take."""
        return {
            "n_jobs": self.jobs,
            "checkpoint": self.checkpoint,
            "max_samples": self.max_samples,
            "random_state": seed,
        }


# ---- Results


@dataclass(frozen=True)
class Results:
    """Where results go; nowhere without a folder."""

    out: Path | None = out_option(None, "Folder for the results; else none.")
    force: bool = flag(RESULTS, "Replace results that are there.", "--force")
    no_report: bool = flag(RESULTS, "Leave the HTML page out.", "--no-report")
    title: str | None = option(RESULTS, None, "Heading of the page.", metavar="TEXT")


@dataclass(frozen=True)
class ResultsOfFit(Results):
    """Where results go; a folder here unless another one is named."""

    out: Path | None = out_option(None, "Folder for results; else TABLE-rskc, here.")
    plan: bool = flag(LARGE, "Say what it would take, and stop.", "--plan")
    ranked_lists: bool = flag(RESULTS, "Features by cluster, ranked: .rnk files.", "--ranked-lists")
