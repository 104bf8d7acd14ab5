"""Words for counts, lists and names in messages, summaries and pages (internal)."""

import math
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any


def count(n: Any, one: str, many: str | None = None) -> str:
    """Write a number and its noun: 1 case, 2 cases, 1,797 cases."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def on_outliers(n_outliers: int, n_blind: int) -> str:
    """Say how many cases look like outliers, and of how many nothing is known."""
    text = count(n_outliers, "case looks like an outlier", "cases look like outliers")
    if not n_outliers:
        text = "no case looks like an outlier"
    if not n_blind:
        return text
    return f"{text}; {count(n_blind, 'case has', 'cases have')} no data to judge by"


def number(value: float | None, digits: int = 3) -> str:
    """Write a number: 1,234 or 0.0123 or 1.2e-07; a dash for what is not known."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 10**digits and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def percent(share: float) -> str:
    """Write a share: 12%, 0.3%; never 0% of something nor 100% of less than all."""
    if 0 < share < 0.01 or 0.99 < share < 1:
        return f"{100 * share:.2g}%" if share < 0.5 else f"{math.floor(1000 * share) / 10:g}%"
    return f"{share:.0%}"


def exact_percent(share: float) -> str:
    """Write a share that somebody has chosen: 2%, 2.5%."""
    return f"{100 * share:.3g}%"


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
    if not text.isprintable():  # mostly it is, and a million names are looked at in a second
        text = "".join(" " if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c for c in text)
    return _ends(" ".join(text.split()), width)


def as_utf8(text: str) -> str:
    """Return a text that UTF-8 can hold: lone surrogates, as of broken file names, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def shortened(text: Any, width: int) -> str:
    """Return a text, or its beginning and three dots."""
    text = str(text)
    return text if len(text) <= width else text[: width - 3] + "..."


def short_repr(value: Any) -> str:
    """Return a value in one short line of a message."""
    return shortened(" ".join(repr(value).split()), 60)


def _ends(text: str, width: int) -> str:
    """Return a text, or its two ends."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def in_bytes(size: float) -> str:
    """Return an amount of memory in words."""
    powers = [(size / 1000**power, unit) for power, unit in enumerate(("bytes", "kB", "MB", "GB"))]
    amount, unit = next((pair for pair in powers if pair[0] < 999.5), powers[-1])
    return f"{amount:.2g} {unit}" if amount < 10 else f"{amount:.0f} {unit}"


def in_time(seconds: float) -> str:
    """Return a time in words."""
    for unit, size in (("hour", 3600), ("minute", 60)):
        if seconds >= 2 * size:
            return count(round(seconds / size), unit)
    return count(max(1, round(seconds)), "second")
