"""Words: options as they are typed, and messages in the words of the command line."""

from __future__ import annotations

import os
import re
from typing import Any

import typer

OPTIONS = {
    "n_clusters": "--clusters",
    "l1_bound": "--l1-bound",
    "l1_bounds": "--bounds",
    "n_features": "--n-features",
    "n_init": "--n-init",
    "random_state": "--seed",
    "n_threads": "--threads",
    "n_jobs": "--jobs",
    "max_samples": "--max-samples",
    "n_splits": "--splits",
    "n_references": "--references",
    "n_permutations": "--permutations",
    "id_column": "--id-column",
    "label_column": "--label-column",
    "text_columns": "--text-columns",
    "missing_values": "--missing",
    "features_in_rows": "--features-in-rows",
}
# Words of every day, which are options only where a value or a piece of advice goes with them.
PLAIN = ("trim", "trims", "decimal", "encoding", "separator", "sheet", "drop", "checkpoint", "rule")
QUOTED = re.compile(r"('(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")")
RULES: list[tuple[re.Pattern[str], Any]] = [
    (re.compile(r"\bheader=False\b"), "--no-header"),
    (re.compile(r"\buse None\b"), "use none"),
    (re.compile(r"\bengine=memory\b"), "--engine memory"),
    (re.compile(rf"(?<![\w.-])({'|'.join(OPTIONS)})\b(?!\.)"), lambda m: OPTIONS[m[1]]),
    (re.compile(rf"(?<![\w.-])({'|'.join(PLAIN)})="), r"--\1="),
    (re.compile(r"\b(lower|raise|or|by|with) (trim|drop)\b"), r"\1 --\2"),
]


def as_options(message: str) -> str:
    """A message about parameters as one about options; names in quotes stay as they are."""
    parts = QUOTED.split(message)
    parts[::2] = [_replaced(part) for part in parts[::2]]
    return "".join(parts)


def _replaced(text: str) -> str:
    for pattern, option in RULES:
        text = pattern.sub(option, text)
    return text


def sentence_of(error: BaseException) -> str:
    """The message of an error in one line, ending in a full stop."""
    if isinstance(error, OSError) and error.strerror:
        name = "" if error.filename is None else f"{os.fspath(error.filename)!r}: "
        text = f"{name}{error.strerror[0].lower()}{error.strerror[1:]}"
    elif isinstance(error, MemoryError):
        text = f"there is not enough memory for this table{f' ({error})' if str(error) else ''}"
    else:
        text = str(error) or type(error).__name__
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?")) else f"{text}."


def clusters_or_auto(text: Any) -> int | str:
    """Read "3" or "auto"."""
    return "auto" if text == "auto" else _whole(text, '3 or "auto"')


def some_clusters(text: Any) -> list[int]:
    """Read "2-8", "2,4,6" or "3"."""
    numbers: list[int] = []
    for part in str(text).split(","):
        first, dash, last = part.partition("-")
        low = _whole(first, '3, "2-8" or "2,4,6"')
        high = _whole(last, '"2-8"') if dash else low
        if high < low or high - low > 1000:
            raise typer.BadParameter(f"{part!r} is no range, such as 2-8.")
        numbers += range(low, high + 1)
    return numbers


def bound_or_word(text: Any) -> float | str | None:
    """Read a number, "auto", "none" or "choose"."""
    if text in ("auto", "choose"):
        return str(text)
    return None if text in ("none", None) else _real(text, 'a number, "auto", "none" or "choose"')


def plain_bound(text: Any) -> float | str | None:
    """Read a number, "auto" or "none"."""
    if text == "choose":
        raise typer.BadParameter('"choose" is for rskc fit; here it is a number, "auto" or "none".')
    return bound_or_word(text)


def some_bounds(text: Any) -> int | list[float] | None:
    """Read how many bounds, "10", or which, "2,3.5,5"; or "none"."""
    if text in ("none", None):
        return None
    if str(text).isdigit():
        return int(text)
    return some_shares(text)


def some_shares(text: Any) -> list[float]:
    """Read "0,0.05,0.1"."""
    return [_real(part, 'numbers such as "0,0.05,0.1"') for part in str(text).split(",")]


def _whole(text: Any, expected: str) -> int:
    try:
        return int(str(text))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not what is expected: {expected}.") from None


def _real(text: Any, expected: str) -> float:
    try:
        return float(str(text))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not what is expected: {expected}.") from None
