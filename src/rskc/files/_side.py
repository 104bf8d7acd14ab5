"""Tables on their side: a line is a feature, such as a gene, and a column a case.

Published tables of genes mostly are. It is recognized before any search: by the name of the first
column, by a header that has classes instead of names, by columns that are named like cases, or by
very many rows of columns that resemble one another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rskc.files._numbers import kind_of
from rskc.files._source import Source, is_number, near, shown
from rskc.inputs.columns import (
    FEWEST_NAMED,
    are_alike,
    are_features,
    classes_of_names,
    is_class_name,
    is_feature_name,
    is_id_name,
    sign_of_side,
    words_of,
)
from rskc.utils.wording import count, quoted

LOOKED_AT = 40  # columns
MOST_ABOUT = 0.25  # of the columns that may be about features, as a description is
TOP = 6  # rows among which those with classes are looked for
CALLS = {None, "P", "M", "A"}  # present, marginal, absent
OF_ARRAYS = ("AID", "EWEIGHT")  # rows of .pcl and .cdt files
# What may stand between the names of genes and their values, in lower case.
ANNOTATIONS = {
    "chr", "chrom", "chromosome", "start", "end", "stop", "strand", "length", "position", "entrez",
    "entrezid", "entrez_id", "entrez_gene_id", "locuslink", "cytoband",
}  # fmt: skip
MOST_SIDES = 10  # columns that are not values
MOSTLY = 0.8  # of the cells of a row of classes are words


@dataclass(frozen=True)
class Side:
    """A table on its side: what says so, its source without rows of classes, and the classes."""

    why: str
    source: Source
    labels: np.ndarray | None = None
    label_row: str | None = None  # where they stand, in words


def find_side(source: Source) -> Side | None:
    """Return how a table lies on its side; None if it stands upright."""
    asked, label_row = source.layout.features_in_rows, source.layout.label_row
    why: str | None = ""
    if source.cells is not None or asked is False:
        return Side("", source) if asked is True else None
    if asked is not True and label_row is None:
        why = _sign(source)
    if why is None:
        return None
    ids = source.layout.id_column
    if ids is None and (place := _place_of_names(source)):
        ids = source.names[place]
        source = replace(source, layout=replace(source.layout, id_column=ids))
    about = [j for j, name in enumerate(source.names[:MOST_SIDES]) if name.lower() in ANNOTATIONS]
    if about and ids not in (names := [source.names[j] for j in about]):
        source = _without_columns(source, about, f"{quoted(names)}, about the features")
    return _with_classes(Side(why, source), label_row)


def _place_of_names(source: Source) -> int | None:
    """Return the column, one of the first three, with the names of features; None if unknown.

    Before it there may be row numbers or descriptions.
    """
    for j, name in enumerate(source.names[:3]):
        series = source.frame[str(j)]
        is_text = str(series.dtype) == "String"
        if is_text and are_features(series.to_list()):
            return j
        if _names_features(source, j) and "description" not in words_of(name):
            return j
        if name and not is_id_name(name) and "description" not in words_of(name):
            return None
    return None


def _names_features(source: Source, j: int) -> bool:
    """Whether a column is called gene or the like, and holds no numbers with decimals."""
    series = source.frame[str(j)]
    few = [str(cell).strip().replace(",", ".") for cell in series.head(LOOKED_AT)]
    is_measured = any(re.fullmatch(r"-?\d*\.\d*[1-9]\d*", cell) for cell in few)
    is_first = j == 0 or kind_of(source, j) == "text"
    return is_feature_name(source.names[j]) and is_first and not is_measured


def _sign(source: Source) -> str | None:
    """Return what says that a table is on its side."""
    (first, *others), layout = source.names, source.layout
    if source.is_upright or source.id_name is not None or len(others) < FEWEST_NAMED:
        return None
    # Columns that somebody knows as such.
    known = {layout.label_column, layout.weight_column, *layout.drop, *layout.as_text}
    if (known | set(layout.use_columns)) & set(source.names):
        return None
    is_named, repeated = _names_features(source, 0), classes_of_names(others) is not None
    place = None if is_named or repeated else _place_of_names(source)
    if not is_named and not repeated and place is None:
        # Text that never repeats, or a column without a name, may be the names of features.
        series = source.frame["0"]
        is_text = str(series.dtype) == "String" and kind_of(source, 0) == "text"
        if first != "" and not (is_text and series.n_unique() == len(series)):
            return None
    rows = _rows_of_words(source)
    below = _without(source, rows)
    # Most other columns must hold numbers, apart from rows of words at the top.
    places = range(1, len(source.names), max(1, len(source.names) // LOOKED_AT))
    kinds = [kind_of(below, j) for j in places]
    if kinds.count("numbers") < (1 - MOST_ABOUT) * len(kinds):
        return None
    if repeated:
        first_two = list(dict.fromkeys(others))[:2]
        return f"a header with classes ({quoted(first_two)}, ...)"
    if is_named:
        return f"a first column {quoted([first])}"
    if place is not None:
        few = quoted(below.frame[str(place)].drop_nulls().head(2).to_list())
        return f"a column of names of features ({few}, ...)"
    sign = None if is_id_name(first) else sign_of_side(first, source.frame.height, others)
    if sign is None or sign.startswith("columns"):
        return sign
    columns = [series for series in below.frame.iter_columns() if series.dtype.is_numeric()]
    if len(columns) < FEWEST_NAMED:
        return None
    matrix = np.column_stack([series.to_numpy() for series in columns[:LOOKED_AT]])
    return sign if are_alike(matrix) else None


def without_extras(source: Source) -> Source:
    """Leave out what formats of genes have beside names and values.

    That are columns that say whether a gene was detected, and weights in .pcl and .cdt files.
    """
    counts = Counter(source.names)
    calls = [
        j
        for j, series in enumerate(source.frame if source.cells is None else ())
        if (counts[source.names[j]] > 1 or not source.names[j])
        and str(series.dtype) == "String"
        and {None} < {None, *series.unique()} <= CALLS
    ]
    if calls:
        which = f"{count(len(calls), 'column')} of detection calls (P, M or A)"
        source = _without_columns(source, calls, which)
    first = source.frame["0"].head(3).to_list() if source.cells is None else []
    is_pcl = {".pcl", ".cdt"} & set(source.layout.path.suffixes) or set(first) & set(OF_ARRAYS)
    if is_pcl and "GWEIGHT" in source.names and source.layout.features_in_rows == "auto":
        source = _without(source, [i for i, cell in enumerate(first) if cell in OF_ARRAYS])
        places = [j for j, name in enumerate(source.names) if name in ("GID", "GWEIGHT")]
        source = _without_columns(source, places, "weights and tree of a .pcl or .cdt file")
        ids = source.layout.id_column or source.names[0]
        layout = replace(source.layout, features_in_rows=True, id_column=ids)
        source = replace(source, layout=layout)
    return source


def _without_columns(source: Source, columns: Sequence[int], words: str) -> Source:
    """Leave out columns, and say so."""
    kept = [j for j in range(len(source.names)) if j not in set(columns)]
    frame = source.frame.select(map(str, kept))
    frame.columns = list(map(str, range(len(kept))))
    names, notes = [source.names[j] for j in kept], (*source.notes, f"Left out: {words}.")
    return replace(source, frame=frame, names=names, notes=notes)


def _rows_of_words(source: Source) -> list[int]:
    """Return the rows at the top that hold words where the others hold numbers."""
    if not source.parse:
        return []
    head = source.frame.head(TOP)
    texts = [j for j in range(1, head.width) if str(head[str(j)].dtype) == "String"]
    if len(texts) < MOSTLY * (head.width - 1):
        return []
    rows = list(zip(*(head[str(j)].to_list() for j in texts), strict=True))
    words = [sum(not is_number(cell) for cell in row) for row in rows]
    found = [i for i, n in enumerate(words) if n >= MOSTLY * len(texts)]
    return found if len(found) < len(rows) else []


def _without(source: Source, rows: Sequence[int]) -> Source:
    """Return a source without some of its rows."""
    if not rows:
        return source
    kept = [i for i in range(source.frame.height) if i not in set(rows)]
    return replace(
        source, frame=source.frame[kept], where=lambda row: source.where(kept[row]), parse=True
    )


def _with_classes(side: Side, label_row: str | None) -> Side:
    """Find the row with the known classes of the cases: the header, or one of the first."""
    source = side.source
    words = _rows_of_words(source)
    place = None if label_row is None else _place_of(source, label_row)
    if label_row is None:
        top = range(min(TOP, source.frame.height))
        place = next((i for i in top if _has_classes(_cells(source, i), i in words)), None)
    found, where = None, None
    if place is not None:
        name, *found = _cells(source, place)
        where = f"row {name!r}" if name else source.where(place)
    elif label_row in (None, source.names[0], "1"):
        found, where = classes_of_names(source.names[1:]), "the header"
        names = next((_cells(source, i) for i in words), source.names)
        if found is not None and len(set(names)) == len(names):  # those of the cases, below
            source = replace(source, names=names)
    side = replace(side, source=_without(source, words if place is None else [*words, place]))
    if found is None or len(set(found)) < 2:
        return side
    return replace(side, labels=np.array(["", *found], dtype=object), label_row=where)


def _has_classes(row: list[str], is_of_words: bool) -> bool:
    """Whether a row has classes of the cases: few words, or numbers where its name says so."""
    name, *cells = row
    seen = [cell for cell in cells if cell]  # a column of descriptions may have none
    is_likely = is_of_words or is_class_name(name)
    return is_likely and len(seen) >= MOSTLY * len(cells) and classes_of_names(seen) is not None


def _place_of(source: Source, label_row: str) -> int | None:
    """Return the number of the row of that name; None for the header."""
    names = [str(cell) for cell in source.frame["0"].to_list()]
    if label_row in names:
        return names.index(label_row)
    if label_row in (source.names[0], "1"):
        return None
    others = near(label_row, [source.names[0], *names[:1000]])
    raise source.layout.error(
        f"there is no row {shown(label_row)}, given as {{label_row}}; {others}"
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
    seen, known = Counter[str](), set(names)
    made = []
    for name in names:
        text = unique = "without a name" if name is None else name
        seen[text] += 1
        while seen[text] > 1 and (unique == text or unique in known):
            unique = f"{text} ({seen[text]})"
            seen[text] += unique in known
        made.append(unique)
    return made
