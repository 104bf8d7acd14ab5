"""Numbers and names as they stand on the page."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rskc.displays._style import count

__all__ = ["count", "listed", "number", "percent", "plain_numbers", "shown", "shown_all"]

TABLE_WIDTH = 120  # characters of a name in tables and in downloads
CHART_WIDTH = 48  # ... in charts, which hold each name several times
PROSE_WIDTH = 32  # ... in sentences


def shown(name: Any, width: int = TABLE_WIDTH) -> str:
    """Return a name in one line of at most ``width`` characters that any browser can show.

    The middle is left out, as long names tend to differ at one of their ends. Control characters,
    and those that turn the direction of the text around them, become spaces.
    """
    text = str(name)[: 50 * width] if len(str(name)) <= 50 * width else _ends(str(name), 50 * width)
    text = "".join(" " if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c for c in text)
    text = " ".join(text.split())
    return text if len(text) <= width else _ends(text, width)


def _ends(text: str, width: int) -> str:
    tail = (width - 1) // 2
    return text[: width - 1 - tail] + "…" + text[len(text) - tail :]


def shown_all(names: Iterable[Any], width: int = TABLE_WIDTH) -> list[str]:
    return [shown(name, width) for name in names]


def number(value: float | None, digits: int = 3) -> str:
    """1,234 or 0.0123 or 1.2e-07; a dash for what is not known."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 10**digits and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def percent(share: float) -> str:
    """12%, 0.3%; never 0% of something nor 100% of less than all."""
    if 0 < share < 0.01 or 0.99 < share < 1:
        return f"{100 * share:.2g}%" if share < 0.5 else f"{math.floor(1000 * share) / 10:g}%"
    return f"{share:.0%}"


def listed(words: Sequence[str], most: int = 3) -> str:
    """a, b and c; or a, b, c and 4 more."""
    first, more = list(words[:most]), len(words) - most
    if more > 0:
        return f"{', '.join(first)} and {more:,} more"
    if len(first) < 2:
        return "".join(first)
    return f"{', '.join(first[:-1])} and {first[-1]}"


def plain_numbers(values: Any, digits: int = 4) -> list:
    """Return numbers for JSON: so many significant digits, None for what is not finite."""
    array = np.asarray(values)
    if array.dtype.kind in "biu":
        return array.astype(int).tolist()
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in array.tolist()]
