"""Options that commands share, in groups: a dataclass each, whose fields become options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from rskc.cli._phrases import bound_or_word, plain_bound

TABLE, MODEL, RESULTS, SEARCH = "Reading the table", "Model", "Results", "Search"
SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}

_kinds = ".csv, .tsv, .txt (also .gz), .xlsx, .parquet, .feather, .npy, .npz, .h5ad"
TablePath = Annotated[
    Path,
    Argument(
        metavar="TABLE",
        help=f"The table: {_kinds}, or a folder of Parquet files; a row a case, a column a "
        "feature.",
        show_default=False,
    ),
]
TableFile = Annotated[
    Path,
    Argument(
        metavar="TABLE",
        help=f"The table of the fit, which must be one file: {_kinds}.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Reading:
    """How a table is to be read."""

    id_column: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="Column with the names of the cases; else the first one if it is text that never "
            "repeats.",
            rich_help_panel=TABLE,
        ),
    ] = None
    label_column: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="Column with known classes. Only compared with the clusters, never used to find "
            "them.",
            rich_help_panel=TABLE,
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="Column to leave out; repeatable.", rich_help_panel=TABLE),
    ] = None
    features_in_rows: Annotated[
        bool,
        Option(
            "--features-in-rows",
            help="A row is a feature and a column a case, as is usual for genes.",
            rich_help_panel=TABLE,
        ),
    ] = False
    missing: Annotated[
        list[str] | None,
        Option(
            metavar="MARKER",
            help="What else stands for a missing cell, beside an empty one, NA, NaN, NULL ...; "
            "repeatable.",
            rich_help_panel=TABLE,
        ),
    ] = None
    decimal: Annotated[
        str, Option(metavar="MARK", help='Decimal mark, "." or ",".', rich_help_panel=TABLE)
    ] = "."
    text_columns: Annotated[
        Literal["refuse", "drop"],
        Option(
            metavar="HOW",
            help="refuse or drop: what to do about columns that hold no numbers.",
            rich_help_panel=TABLE,
        ),
    ] = "refuse"
    sheet: Annotated[
        str | None,
        Option(metavar="NAME", help="Sheet of an .xlsx; else the first.", rich_help_panel=TABLE),
    ] = None
    separator: Annotated[
        str | None,
        Option(
            metavar="MARK",
            help="What separates cells: a character, or tab, comma, semicolon; else it is found.",
            rich_help_panel=TABLE,
        ),
    ] = None
    encoding: Annotated[
        str, Option(metavar="NAME", help="Encoding of text.", rich_help_panel=TABLE)
    ] = "utf-8"
    no_header: Annotated[
        bool,
        Option("--no-header", help="The first line has no names but data.", rich_help_panel=TABLE),
    ] = False

    def arguments(self) -> dict[str, Any]:
        """The arguments of read_table."""
        from rskc.files.tables import MISSING_VALUES

        return {
            "id_column": self.id_column,
            "label_column": self.label_column,
            "drop": list(self.drop or []),
            "features_in_rows": self.features_in_rows,
            "missing_values": [*MISSING_VALUES, *(self.missing or [])],
            "decimal": self.decimal,
            "text_columns": self.text_columns,
            "sheet": self.sheet,
            "separator": _separator(self.separator),
            "encoding": self.encoding,
            "header": not self.no_header,
        }


@dataclass(frozen=True)
class Rereading:
    """How a second table differs from that of the fit."""

    id_column: Annotated[
        str | None,
        Option(metavar="NAME", help="Column with the names of the cases.", rich_help_panel=TABLE),
    ] = None
    missing: Annotated[
        list[str] | None,
        Option(
            metavar="MARKER",
            help="What else stands for a missing cell; repeatable.",
            rich_help_panel=TABLE,
        ),
    ] = None
    decimal: Annotated[
        str | None, Option(metavar="MARK", help="Decimal mark.", rich_help_panel=TABLE)
    ] = None
    sheet: Annotated[
        str | None, Option(metavar="NAME", help="Sheet of an .xlsx.", rich_help_panel=TABLE)
    ] = None
    separator: Annotated[
        str | None, Option(metavar="MARK", help="What separates cells.", rich_help_panel=TABLE)
    ] = None
    encoding: Annotated[
        str | None, Option(metavar="NAME", help="Encoding of text.", rich_help_panel=TABLE)
    ] = None

    def arguments(self, fitted: dict[str, Any]) -> dict[str, Any]:
        """The arguments of read_table: those of the fit, and what was said to differ."""
        given = {
            name: getattr(self, name) for name in ("id_column", "decimal", "sheet", "encoding")
        }
        given["separator"] = _separator(self.separator)
        merged = fitted | {name: value for name, value in given.items() if value is not None}
        if self.missing:
            from rskc.files.tables import MISSING_VALUES

            known = fitted.get("missing_values", MISSING_VALUES)
            merged["missing_values"] = [*known, *self.missing]
        return merged


def _separator(text: str | None) -> str | None:
    return None if text is None else SEPARATORS.get(text, text)


@dataclass(frozen=True)
class Standardizing:
    """Whether cells are made comparable first."""

    standardize: Annotated[
        Literal["none", "rows", "columns"],
        Option(
            metavar="WHAT",
            help="rows, columns or none: center and scale each row first, so that the shape of a "
            "case counts and not its level; or each column, so that units do not count.",
            rich_help_panel=TABLE,
        ),
    ] = "none"
    scale: Annotated[
        Literal["robust", "classic"],
        Option(
            metavar="HOW",
            help="robust (median and MAD, which outlying cells do not sway) or classic (mean and "
            "SD).",
            rich_help_panel=TABLE,
        ),
    ] = "robust"


@dataclass(frozen=True)
class Trimming:
    """The share of outlying cases."""

    trim: Annotated[
        float,
        Option(
            metavar="SHARE",
            help="Share of the cases that may be outlying, 0 to 0.5.",
            rich_help_panel=MODEL,
        ),
    ] = 0.1


_bound_help = (
    "How many features get weight: a bound from 1 (one feature) to the root of their number (all); "
    "auto is halfway, none gives all of them the same weight"
)


@dataclass(frozen=True)
class Sparsity:
    """How many features get weight."""

    l1_bound: Annotated[
        Any,
        Option(parser=plain_bound, metavar="BOUND", help=f"{_bound_help}.", rich_help_panel=MODEL),
    ] = "auto"
    n_features: Annotated[
        int | None,
        Option(
            metavar="NUMBER",
            help="So many features get weight, instead of a bound.",
            rich_help_panel=MODEL,
        ),
    ] = None


@dataclass(frozen=True)
class SparsityOrSearch(Sparsity):
    """The same, with the choice left to the gap statistic."""

    l1_bound: Annotated[
        Any,
        Option(
            parser=bound_or_word,
            metavar="BOUND",
            help=f"{_bound_help}; choose searches for it first.",
            rich_help_panel=MODEL,
        ),
    ] = "auto"


@dataclass(frozen=True)
class Basics:
    """Restarts, seed and threads."""

    n_init: Annotated[
        int | None,
        Option(
            metavar="NUMBER",
            help="Restarts; else 10 to 100, by the size of the table.",
            rich_help_panel=MODEL,
        ),
    ] = None
    seed: Annotated[
        int,
        Option(
            metavar="NUMBER", help="The same seed gives the same result.", rich_help_panel=MODEL
        ),
    ] = 0
    threads: Annotated[
        int | None,
        Option(metavar="NUMBER", help="Threads; else all there are.", rich_help_panel=MODEL),
    ] = None

    def estimator(self, n_clusters: int, **settings: Any) -> Any:
        """An estimator with these settings and others."""
        from rskc.estimator import RobustSparseKMeans

        return RobustSparseKMeans(
            n_clusters,
            n_init="auto" if self.n_init is None else self.n_init,
            random_state=self.seed,
            n_threads=self.threads,
            **settings,
        )


@dataclass(frozen=True)
class Searching:
    """How a search runs."""

    jobs: Annotated[
        int,
        Option(metavar="NUMBER", help="Fits at a time; -1: a core each.", rich_help_panel=SEARCH),
    ] = -1
    checkpoint: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Keep what is done in this file; the same command then goes on after a stop.",
            rich_help_panel=SEARCH,
        ),
    ] = None
    max_samples: Annotated[
        int,
        Option(
            metavar="NUMBER",
            help="Most cases to search on; of more, so many are drawn. The model is fitted to all.",
            rich_help_panel=SEARCH,
        ),
    ] = 5000


_out_help = "Folder for the results"
_no_report = Option("--no-report", help="Leave the HTML page out.", rich_help_panel=RESULTS)
_force = Option("--force", help="Replace results that are there already.", rich_help_panel=RESULTS)
_title = Option(metavar="TEXT", help="Heading of the page.", rich_help_panel=RESULTS)


@dataclass(frozen=True)
class Results:
    """Where results go; nowhere without a folder."""

    out: Annotated[
        Path | None,
        Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help=f"{_out_help}; else none.",
            rich_help_panel=RESULTS,
        ),
    ] = None
    force: Annotated[bool, _force] = False
    no_report: Annotated[bool, _no_report] = False
    title: Annotated[str | None, _title] = None


@dataclass(frozen=True)
class ResultsOfFit(Results):
    """Where results go; beside the user without a folder."""

    out: Annotated[
        Path | None,
        Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help=f"{_out_help}; else the name of the table and -rskc, here.",
            rich_help_panel=RESULTS,
        ),
    ] = None
