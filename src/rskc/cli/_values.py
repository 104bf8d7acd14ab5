"""Values of options as they are typed: "2-8", "auto", "0,0.05,0.1"."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import typer

STANDARD_INPUT = "standard-input.txt"


def clusters_or_auto(text: Any) -> int | str:
    """Read "3" or "auto"."""
    return "auto" if text == "auto" else _number(int, text, '3 or "auto"')


def some_clusters(text: Any) -> list[int]:
    """Read "2-8", "2,4,6" or "3"."""
    numbers: list[int] = []
    for part in str(text).split(","):
        first, dash, last = part.partition("-")
        low = _number(int, first, '3, "2-8" or "2,4,6"')
        high = _number(int, last, '"2-8"') if dash else low
        if high < low or high - low > 1000:
            raise typer.BadParameter(f"{part!r} is no range, such as 2-8.")
        numbers += range(low, high + 1)
    return numbers


def share_or_auto(text: Any) -> float | str:
    """Read "0.05" or "auto"."""
    return "auto" if text == "auto" else _number(float, text, '0.05 or "auto"')


def cells_or_word(text: Any) -> float | str | None:
    """Read a number, "auto" or "none"."""
    if text in ("none", None):
        return None
    return "auto" if text == "auto" else _number(float, text, 'a number, "auto" or "none"')


def bound_or_word(text: Any) -> float | str | None:
    """Read a number, "auto", "half", "none" or "choose"."""
    if text in ("auto", "half", "choose"):
        return str(text)
    if text in ("none", None):
        return None
    return _number(float, text, 'a number, "auto", "half", "none" or "choose"')


def plain_bound(text: Any) -> float | str | None:
    """Read a number, "auto", "half" or "none"."""
    if text == "choose":
        raise typer.BadParameter(
            '"choose" is for rskc fit; here it is a number, "auto", "half" or "none".'
        )
    return bound_or_word(text)


def some_bounds(text: Any) -> int | list[float] | None:
    """Read how many bounds, "10", or which, "2,3.5,5"; or "none"."""
    if text in ("none", None):
        return None
    return int(text) if str(text).isdecimal() else some_shares(text)


def some_shares(text: Any) -> list[float]:
    """Read "0,0.05,0.1"."""
    return [_number(float, part, 'numbers such as "0,0.05,0.1"') for part in str(text).split(",")]


def numbers_or_auto(text: Any) -> int | list[int] | str:
    """Read how many numbers, "8", or which, "5,20,100"; or "auto"."""
    if text == "auto":
        return "auto"
    return int(text) if str(text).isdecimal() else some_clusters(text)


def shares_or_auto(text: Any) -> list[float] | str:
    """Read "0,0.05,0.1" or "auto"."""
    return "auto" if text == "auto" else some_shares(text)


def _number(kind: type, text: Any, expected: str) -> Any:
    try:
        return kind(str(text))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not what is expected: {expected}.") from None


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
