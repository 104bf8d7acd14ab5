"""What the readers of all formats have in common: layout, cells, errors, packages."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from rskc.exceptions import Phrased
from rskc.inputs.columns import NONE, Recognized
from rskc.inputs.frames import as_number
from rskc.inputs.validation import check_choice
from rskc.utils.wording import as_utf8, count, quoted, shortened

MISSING_VALUES = ("", "NA", "NaN", "nan", "N/A", "n/a", "#N/A", "NULL", "null")
CHOICES: dict[str, tuple] = {
    "decimal": (".", ",", "auto"),
    "features_in_rows": (True, False, "auto"),
    "text_columns": ("refuse", "drop", "categories"),
}
LONGEST_NAME = 60
TOO_LARGE = "is infinite, or too large for a number; correct it, or leave it empty"
MOST_TITLES = 10  # lines above the names of the columns


class TableError(Phrased, ValueError):
    """A table cannot be read; the message is one sentence with file, line and column.

    ``parameter`` is that of ``read_table`` with a ``name`` that the table does not have, if any.
    """

    def __init__(self, template: str, parameter: str | None = None, name: str | None = None):
        self.parameter, self.name = parameter, name
        super().__init__(template)


def needed(package: str, purpose: str, extra: str) -> Any:
    """Import a package, or say which extra brings it."""
    try:
        return import_module(package)
    except ImportError as error:
        message = f'{package} is needed {purpose}; pip install "rskc[{extra}]" brings it.'
        raise ImportError(message) from error


class _Polars:
    """The package polars, which is imported when something of it is used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(needed("polars", "for tables in files", "tables"), name)


pl: Any = _Polars()


@dataclass(frozen=True)
class Layout:
    """How a file is to be understood: the arguments of ``read_table``."""

    path: Path
    id_column: str | None = None
    label_column: str | None = None
    drop: Sequence[str] = ()
    use_columns: Sequence[str] | str = ()
    features_in_rows: bool | str = "auto"
    label_row: str | None = None
    missing_values: tuple[str, ...] = MISSING_VALUES
    decimal: str = "."
    text_columns: str = "refuse"
    categorical: Sequence[str] = ()
    sheet: str | int | None = None
    separator: str | None = None
    encoding: str = "utf-8"
    header: bool = True
    weight_column: str | None = None

    @classmethod
    def of(cls, path: str | os.PathLike, **given: Any) -> Layout:
        """Return the layout that somebody asks for; a list of one may be its only element."""
        for name, choices in CHOICES.items():
            if name in given:
                check_choice(name, given[name], choices)
        for name in ("drop", "use_columns", "categorical"):
            if isinstance(given.get(name), str) and given[name] != "all":
                given[name] = (given[name],)
        marks = given.get("missing_values", MISSING_VALUES)
        # A lone surrogate, of bytes that are no text, is in no file.
        marks = [mark for mark in marks if as_utf8(mark) == mark]
        given["missing_values"] = tuple(dict.fromkeys(["", *marks]))
        if given.get("decimal") == "auto":
            given["decimal"] = "."
        return cls(Path(path), **given)

    @property
    def as_text(self) -> tuple[str, ...]:
        """Columns whose cells are not to be taken for numbers."""
        return tuple(filter(None, (self.id_column, self.label_column, *self.categorical)))

    @property
    def missing_numbers(self) -> tuple[str, ...]:
        """What stands for a missing cell in a column of numbers or dates."""
        return (*self.missing_values, NONE)

    def error(self, template: str, *about: str) -> TableError:
        """Make an error of the file; the template is one of ``rskc.exceptions.Phrased``.

        Text that comes from the file goes through ``shown`` or ``literal``: it may hold braces.
        """
        return TableError(f"{shown(self.path, 200)}: {template}.", *about)


def row_number(row: int) -> str:
    """Name a row in a format without lines."""
    return f"row {row + 1}"


@dataclass(frozen=True)
class Source:
    """The cells of a file: a polars frame with columns "0", "1", ..., and their names."""

    layout: Layout
    frame: Any
    names: list[str]
    where: Callable[[int], str] = row_number  # of a row of the frame: "line 17"
    parse: bool = False  # whether cells of text may be numbers
    separator: str | None = None  # between the cells of text
    notes: tuple[str, ...] = ()  # what else the file has
    is_upright: bool = False  # where the format says that rows are cases
    id_name: str | None = None  # where the format says which column has the ids
    cells: Any = None  # a CSR matrix of the features, whose names follow those of the frame

    def error(self, row: int, column: int, template: str) -> TableError:
        """Make an error of a cell."""
        name = shown(self.names[column])
        return self.layout.error(f"{self.where(row)}, column {name}: {template}")


@dataclass
class Roles:
    """What the columns of a file are for, by number, and the cells of the features."""

    features: list[int]
    ids: int | None = None
    labels: int | None = None
    dropped: dict[str, str] = field(default_factory=dict)  # names, and why
    set_aside: list[Recognized] = field(default_factory=list)
    matrix: Any = None
    categories: dict[int, Any] = field(default_factory=dict)  # text, null where missing
    weights: Any = None  # (n,) case weights
    written: dict[str, str] = field(default_factory=dict)  # units of numbers, by name


def line_of_names(lines: Iterable[Sequence[Any]]) -> int:
    """Return which of the first lines has the names of the columns: one with most cells filled.

    Above it there may be a title, comments, or the size of the table, as in GCT files.
    """
    head = list(islice(lines, 3 * MOST_TITLES))
    # Of names the first may be empty.
    filled = [1 + sum(cell not in ("", None) for cell in cells[1:]) for cells in head]
    most = sorted(filled)[-2:][:1]  # a single line that is longer has a cell too many
    likely = (i for i, n in enumerate(filled[:MOST_TITLES]) if 2 * n >= most[0])
    place = next(likely, 0)
    # Numbers are no names of a table whose first line has more than one cell, and some empty.
    return 0 if filled and filled[0] > 1 and all(map(is_number, head[place])) else place


def is_number(cell: Any) -> bool:
    """Whether a cell reads as a number."""
    return as_number(str(cell).strip().replace(",", ".")) is not None


def titles_note(n: int) -> str:
    """Say that lines above the names of the columns were left out."""
    return f"Left out as titles: {count(n, 'line')} above the names of the columns."


def check_text(array: np.ndarray) -> None:
    """Refuse text with numbers that are no characters; Python makes strings of some of them."""
    if array.dtype.kind == "U":
        numbers = np.frombuffer(array.tobytes(), array.dtype.str[0] + "u4")
        if numbers.max(initial=0) > sys.maxunicode:
            raise ValueError(f"an array of {array.dtype} holds no text")


def literal(text: Any) -> str:
    """Return a text as it stands in a template, where braces are around parameters."""
    return str(text).replace("{", "{{").replace("}", "}}")


def shown(text: Any, most: int = LONGEST_NAME) -> str:
    """Return a text from the file for a template, in one line and in quotation marks."""
    return literal(repr(shortened(text, most)))


def shown_names(names: Iterable[Any], most: int = 5, width: int = LONGEST_NAME) -> str:
    """List names from the file for a template."""
    return literal(quoted(names, most, width))


def near(name: str, names: Iterable[str]) -> str:
    """Say what else may have been meant, in a template."""
    names = [each for each in names if each]
    folded = {each.casefold(): each for each in reversed(names)}
    close = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)
    if close:
        return f"perhaps {' or '.join(shown(folded[each]) for each in close)} is meant"
    return f"there are {shown_names(names)}"
