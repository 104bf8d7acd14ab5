"""Values of options as they are typed: "2-8", "auto", "0,0.05,0.1"."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

SEPARATORS = {"\\t": "\t", "tab": "\t", "comma": ",", "semicolon": ";", "space": " "}
STANDARD_INPUT = "standard-input.txt"


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
