"""Words for counts, lists and names in messages, summaries and pages (internal)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any


def count(n: Any, one: str, many: str | None = None) -> str:
    """Write a number and its noun: 1 case, 2 cases, 1,797 cases."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def listed(words: Iterable[Any], most: int = 5, n: int | None = None) -> str:
    """List the first words: a, b, c and 4 more; n is the number of all, if not all are given."""
    words = list(words)
    more = (len(words) if n is None else n) - most
    return ", ".join(map(str, words[:most])) + (f" and {more:,} more" if more > 0 else "")


def sentence_list(words: Sequence[str], most: int = 3) -> str:
    """List words in a sentence: a, b and c; or a, b, c and 4 more."""
    if not 1 < len(words) <= most:
        return listed(words, most)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def quoted(names: Iterable[Any], most: int = 5, width: int = 60) -> str:
    """List the first names in quotation marks: 'a', 'b' and 4 more."""
    names = list(names)
    return listed([repr(shortened(name, width)) for name in names[:most]], most, len(names))


def cleaned(name: Any, width: int = 120) -> str:
    """Return a name in one line of at most ``width`` characters that is safe to show.

    Control characters, and those that turn the direction of the text around them, become spaces: a
    terminal would obey them. The middle is left out, as long names tend to differ at their ends.
    """
    text = _ends(str(name), 50 * width)
    text = "".join(" " if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c for c in text)
    return _ends(" ".join(text.split()), width)


def shortened(text: Any, width: int) -> str:
    """Return a text, or its beginning and three dots."""
    text = str(text)
    return text if len(text) <= width else text[: width - 3] + "..."


def _ends(text: str, width: int) -> str:
    """Return a text, or its two ends."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"
