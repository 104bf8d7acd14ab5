"""Tables on their side: a line is a feature, such as a gene, and a column a case.

Published tables of genes mostly are. It is recognized before any search: by the name of the first
column, by a header that has classes instead of names, by columns that are named like cases, or by
very many rows of columns that resemble one another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rskc.files._numbers import kind_of
from rskc.files._source import Layout, Source, near, shown
from rskc.inputs.columns import (
    FEWEST_NAMED,
    are_alike,
    classes_of_names,
    is_feature_name,
    is_id_name,
    sign_of_side,
)

LOOKED_AT = 40  # columns
MOST_ABOUT = 0.25  # of the columns that may be about features, as a description is
TOP = 6  # rows among which those with classes are looked for
MOSTLY = 0.8  # of the cells of a row of classes are words


@dataclass(frozen=True)
class Side:
    """A table on its side: what says so, its source without rows of classes, and the classes."""

    why: str
    source: Source
    case_names: list[str]
    labels: np.ndarray | None = None
    label_row: str | None = None  # where they stand, in words


def find_side(layout: Layout, source: Source, asked: Any, label_row: str | None) -> Side | None:
    """Return how a table lies on its side; None if it stands upright."""
    if asked is False or source.cells is not None:
        wanted = asked is True
        return Side("", source, list(source.names)) if wanted else None
    why = "" if asked is True or label_row is not None else _sign(layout, source)
    if why is None:
        return None
    return _with_classes(layout, Side(why, source, list(source.names)), label_row)


def _sign(layout: Layout, source: Source) -> str | None:
    """Return what says that a table is on its side."""
    first, *others = source.names
    if source.is_upright or source.id_name is not None or len(others) < FEWEST_NAMED:
        return None
    if set(layout.asked_for) & set(source.names):  # columns that somebody knows as such
        return None
    is_named = is_feature_name(first)
    repeated = classes_of_names(others) is not None
    rows = _rows_of_words(source)
    if not is_named and not repeated and not _names_rows(layout, source):
        return None
    if not _are_numbers(layout, source, rows):
        return None
    if repeated:
        return (
            f"a header with classes ({', '.join(map(shown, list(dict.fromkeys(others))[:2]))}, ...)"
        )
    if is_named:
        return f"a first column {shown(first)}"
    if is_id_name(first):
        return None
    sign = sign_of_side(first, source.frame.height, others)
    if sign is None or sign.startswith("columns"):
        return sign
    matrix = _some_numbers(source, rows)
    return sign if matrix is not None and are_alike(matrix) else None


def _names_rows(layout: Layout, source: Source) -> bool:
    """Whether the first column holds text that never repeats, or has no name."""
    series = source.frame["0"]
    is_text = str(series.dtype) == "String" and kind_of(layout, source, 0) == "text"
    return source.names[0] == "" or (is_text and series.n_unique() == len(series))


def _are_numbers(layout: Layout, source: Source, rows: Sequence[int]) -> bool:
    """Whether most other columns hold numbers, apart from rows of words at the top."""
    places = range(1, len(source.names), max(1, len(source.names) // LOOKED_AT))
    below = _without(source, rows)
    kinds = [kind_of(layout, below, j) for j in places]
    return kinds.count("numbers") >= (1 - MOST_ABOUT) * len(kinds)


def _some_numbers(source: Source, rows: Sequence[int]) -> np.ndarray | None:
    frame = _without(source, rows).frame
    columns = [series for series in frame.iter_columns() if series.dtype.is_numeric()]
    if len(columns) < FEWEST_NAMED:
        return None
    return np.column_stack([series.to_numpy() for series in columns[:LOOKED_AT]])


def _rows_of_words(source: Source) -> list[int]:
    """Return the rows at the top that hold words where the others hold numbers."""
    if not source.parse:
        return []
    head = source.frame.head(TOP)
    texts = [j for j in range(1, head.width) if str(head[str(j)].dtype) == "String"]
    if len(texts) < MOSTLY * (head.width - 1):
        return []
    rows = list(zip(*(head[str(j)].to_list() for j in texts), strict=True))
    words = [sum(not _reads(cell) for cell in row) for row in rows]
    found = [i for i, n in enumerate(words) if n >= MOSTLY * len(texts)]
    return found if len(found) < len(rows) else []


def _reads(cell: Any) -> bool:
    try:
        float(str(cell).strip().replace(",", "."))
    except ValueError:
        return False
    return True


def _without(source: Source, rows: Sequence[int]) -> Source:
    """Return a source without some of its rows."""
    if not rows:
        return source
    kept = [i for i in range(source.frame.height) if i not in set(rows)]
    return replace(
        source, frame=source.frame[kept], where=lambda row: source.where(kept[row]), parse=True
    )


def _with_classes(layout: Layout, side: Side, label_row: str | None) -> Side:
    """Find the row with the known classes of the cases: the header, or one of the first."""
    source = side.source
    rows = _rows_of_words(source)
    place = None if label_row is None else _place_of(layout, source, label_row)
    others = side.case_names[1:]
    if place is not None:
        rows = sorted({*rows, place})
    elif label_row is None:
        place = next((i for i in rows if classes_of_names(_cells(source, i)[1:])), None)
    found, where = None, None
    if place is not None:
        found, where = _cells(source, place)[1:], f"row {_cells(source, place)[0]!r}"
    elif label_row in (None, source.names[0], "1"):
        found, where = classes_of_names(others), "the header"
    labels = None
    if found is not None and len(set(found)) > 1:
        labels = np.array(["", *found], dtype=object)
    return replace(
        side,
        source=_without(source, rows),
        labels=labels,
        label_row=None if labels is None else where,
    )


def _place_of(layout: Layout, source: Source, label_row: str) -> int | None:
    """Return the number of the row of that name; None for the header."""
    names = [str(cell) for cell in source.frame["0"].to_list()]
    if label_row in names:
        return names.index(label_row)
    if label_row in (source.names[0], "1"):
        return None
    raise layout.error(
        "there is no row {name}, given as {label_row}; {others}",
        name=shown(label_row),
        others=near(label_row, [source.names[0], *names[:1000]]),
    )


def _cells(source: Source, row: int) -> list[str]:
    return [
        "" if cell is None else f"{cell:g}" if isinstance(cell, float) else str(cell).strip()
        for cell in source.frame.row(row)
    ]


def names_of_cases(names: Sequence[str], numbers: Sequence[int]) -> list[str]:
    """Name the cases by their columns; classes that repeat are numbered, ALL 1, ALL 2."""
    counts, seen = Counter(names), Counter[str]()
    made = []
    for name, number in zip(names, numbers, strict=True):
        seen[name] += 1
        own = name or f"column {number + 1}"
        made.append(f"{name} {seen[name]}" if name and counts[name] > 1 else own)
    return made


def unique_names(names: Sequence[str | None]) -> list[str]:
    """Number the names of features that occur again: TP53, TP53 (2)."""
    seen = Counter[str]()
    known = set(names)
    made = []
    for name in names:
        text = "without a name" if name is None else name
        seen[text] += 1
        own = text if seen[text] == 1 else f"{text} ({seen[text]})"
        while seen[text] > 1 and own in known:
            seen[text] += 1
            own = f"{text} ({seen[text]})"
        made.append(own)
    return made
