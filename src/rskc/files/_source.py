"""What the readers of all formats have in common: layout, cells, errors, packages."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from rskc.exceptions import Phrased
from rskc.inputs.columns import NONE
from rskc.utils.wording import as_utf8, quoted, shortened

LONGEST_NAME = 60


class TableError(Phrased, ValueError):
    """A table cannot be read; the message is one sentence with file, line and column.

    ``parameter`` is that of ``read_table`` which names what the table does not have, if any.
    """

    def __init__(self, template: str, parameter: str | None = None, **values: Any):
        self.parameter = parameter
        super().__init__(template, **values)


class MissingPackageError(ImportError):
    """A package that is needed for a file is not installed; the message says what installs it."""


def needed(package: str, purpose: str, extra: str) -> Any:
    """Import a package, or say which extra brings it."""
    try:
        return import_module(package)
    except ImportError as error:
        message = f'{package} is needed {purpose}; pip install "rskc[{extra}]" brings it.'
        raise MissingPackageError(message) from error


def polars() -> Any:
    """Import polars."""
    return needed("polars", "to read tables", "tables")


def for_polars(path: Path) -> str | bytes:
    """Return the name of a file, or its bytes where the name is no UTF-8, which polars expects."""
    name = os.path.abspath(path)
    return name if as_utf8(name) == name else path.read_bytes()


@dataclass(frozen=True)
class Layout:
    """How the file is to be understood."""

    path: Path
    missing_values: tuple[str, ...]
    decimal: str
    separator: str | None
    encoding: str
    header: bool
    sheet: str | int | None
    id_column: str | None
    as_text: tuple[str, ...]  # columns whose cells are not to be taken for numbers
    asked_for: tuple[str, ...] = ()  # columns that the caller names

    @property
    def missing_numbers(self) -> tuple[str, ...]:
        """What stands for a missing cell in a column of numbers or dates."""
        return (*self.missing_values, NONE)

    def error(self, template: str, parameter: str | None = None, **values: Any) -> TableError:
        """Make an error of the file; the template is one of ``rskc.exceptions.Phrased``.

        Text that comes from the file belongs into the values: it may hold braces.
        """
        file = shown(str(self.path), 200)
        return TableError(f"{{file}}: {template}.", parameter, file=file, **values)


@dataclass(frozen=True)
class Source:
    """The cells of a file: a polars frame with columns "0", "1", ..., and their names."""

    frame: Any
    names: list[str]
    where: Callable[[int], str]  # of a row of the frame: "line 17"
    parse: bool = False  # whether cells of text may be numbers
    separator: str | None = None  # between the cells of text
    notes: tuple[str, ...] = ()  # what else the file has
    is_upright: bool = False  # where the format says that rows are cases
    id_name: str | None = None  # where the format says which column has the ids
    left_out: Mapping[str, str] = field(default_factory=dict)  # name and why
    cells: Any = None  # a CSR matrix of the features, whose names follow those of the frame


def row_number(row: int) -> str:
    """Name a row in a format without lines."""
    return f"row {row + 1}"


def shown(text: str, most: int = LONGEST_NAME) -> str:
    """Return a text from the file in one line of a message, in quotation marks."""
    return repr(shortened(text, most))


def near(name: str, names: Iterable[str]) -> str:
    """Say what else may have been meant."""
    names = [each for each in names if each]
    folded = {each.casefold(): each for each in reversed(names)}
    close = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)
    if close:
        return f"perhaps {' or '.join(shown(folded[each]) for each in close)} is meant"
    return f"there are {quoted(names)}"
