"""What the readers of all formats hand over, and how they complain."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LONGEST_NAME = 60


class TableError(ValueError):
    """A table cannot be read; the message is one sentence with file, line and column."""


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

    def error(self, words: str) -> TableError:
        """The file's name and the words."""
        return TableError(f"{shown(str(self.path), 200)}: {words}.")


@dataclass(frozen=True)
class Source:
    """The cells of a file: a polars frame with columns "0", "1", ..., and their names."""

    frame: Any
    names: list[str]
    where: Callable[[int], str]  # of a row of the frame: "line 17"
    parse: bool = False  # whether cells of text may be numbers
    id_name: str | None = None  # where the format says which column has the ids
    left_out: Mapping[str, str] = field(default_factory=dict)  # name and why


def row_number(row: int) -> str:
    """Place of a row in a format without lines."""
    return f"row {row + 1}"


def shown(text: str, most: int = LONGEST_NAME) -> str:
    """A text from the file in one line of a message, quoted."""
    return repr(text if len(text) <= most else text[: most - 3] + "...")


def named(names: Iterable[str], most: int = 5) -> str:
    """The first few names, quoted, and how many more there are."""
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(shown, names[:most])) + more


def near(name: str, names: Iterable[str]) -> str:
    """Words on what else may have been meant."""
    names = [each for each in names if each]
    folded = {each.casefold(): each for each in reversed(names)}
    close = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)
    if close:
        return f"perhaps {' or '.join(shown(folded[each]) for each in close)} is meant"
    return f"there are {named(names)}"
