"""What the rows and columns of a file are for: names of the cases, known classes, features.

Columns that are named are what they are named as. Of the others, those that are recognized as ids
or classes (``rskc.inputs.columns``) are set aside, each with a word on it, unless they are to be
used.

In a table on its side a line is a feature, such as a gene, and a column a case. Published tables of
genes mostly are. It is recognized before any search: by the name of the first column, by a header
that has classes instead of names, by columns that are named like cases, or by very many rows of
columns that resemble one another.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rskc.files._numbers import find_numbers, kind_of
from rskc.files._source import Layout, Roles, Source, is_number, near, shown, shown_names
from rskc.inputs.columns import (
    ANNOTATIONS,
    FEWEST_NAMED,
    Recognized,
    are_alike,
    are_classes,
    are_features,
    classes_of_names,
    is_class_name,
    is_feature_name,
    is_id_name,
    recognize,
    sign_of_side,
    words_of,
)
from rskc.utils.wording import count, quoted

LOOKED_AT = 40  # columns
MOST_ABOUT = 0.25  # of the columns that may be about features, as a description is
TOP = 6  # rows among which those with classes are looked for
CALLS = {None, "P", "M", "A"}  # present, marginal, absent
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


def without_calls(source: Source) -> Source:
    """Leave out columns beside those of cases that say whether a gene was detected."""
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


def unique_names(names: Sequence[str | None]) -> list[str]:
    """Number names that occur again: TP53, TP53 (2)."""
    seen, known, made = Counter[str](), set(names), list[str]()
    for name in names:
        text = unique = "without a name" if name is None else name
        seen[text] += 1
        while seen[text] > 1 and (unique == text or unique in known):
            unique = f"{text} ({seen[text]})"
            seen[text] += unique in known
        made.append(unique)
    return made


# Arguments of ``read_table`` that name columns.
NAMING = ("id_column", "label_column", "weight_column", "drop", "use_columns", "categorical")


def find_roles(source: Source) -> Roles:
    """Say what each column is for, and make numbers of the features."""
    layout, roles = source.layout, _roles_by_name(source)
    if layout.weight_column is not None:
        weights = Roles([source.names.index(layout.weight_column)])
        plain = replace(layout, text_columns="refuse", categorical=())
        find_numbers(replace(source, layout=plain), weights)
        roles.weights = weights.matrix[:, 0].astype(np.float64)
    if source.cells is not None:  # features and nothing else
        columns = np.array(roles.features) - source.frame.width
        every = len(columns) == source.cells.shape[1]
        roles.matrix = source.cells if every else source.cells[:, columns]
        return roles
    if layout.use_columns != "all" and layout.features_in_rows is not True:
        _set_text_aside(source, roles)
    find_numbers(source, roles)
    if layout.use_columns != "all":
        _set_numbers_aside(source, roles)
    return roles


def _set_text_aside(source: Source, roles: Roles) -> None:
    """Set aside columns of text that are named like ids or classes."""
    used = {*source.layout.use_columns, *source.layout.categorical}
    for j in list(roles.features):
        name, series = source.names[j], source.frame[str(j)]
        is_id, is_class = is_id_name(name), is_class_name(name)
        if name in used or not (is_id or is_class) or kind_of(source, j) == "numbers":
            continue
        if is_class and are_classes(series.len(), series.drop_nulls().n_unique()):
            _set_aside(source, roles, j, Recognized(name, "class", "is named like known classes"))
        elif is_id and _name_cases(series):
            _set_aside(source, roles, j, Recognized(name, "id", "is named like an id"))


def _set_numbers_aside(source: Source, roles: Roles) -> None:
    """Set aside columns of numbers that are no measurements, if any others are left."""
    layout, columns = source.layout, roles.features
    if not columns:
        return
    recognized = {
        i: column
        for i, column in recognize([source.names[j] for j in columns], roles.matrix).items()
        if column.name not in layout.use_columns and (layout.features_in_rows is not True or i == 0)
    }
    if recognized and (len(recognized) < len(columns) or roles.categories):
        roles.matrix = np.delete(roles.matrix, list(recognized), axis=1)
        for i, column in recognized.items():
            _set_aside(source, roles, columns[i], column)


def _set_aside(source: Source, roles: Roles, j: int, column: Recognized) -> None:
    series, role = source.frame[str(j)], "left out"
    roles.features = [feature for feature in roles.features if feature != j]
    if column.kind == "class" and roles.labels is None and series.null_count() == 0:
        role, roles.labels = "classes", j
    elif column.kind == "id" and roles.ids is None and _name_cases(series):
        role, roles.ids = "names", j
    else:
        roles.dropped[column.name] = f"it {column.why}"
    roles.set_aside.append(column._replace(role=role, is_text=kind_of(source, j) != "numbers"))


def _roles_by_name(source: Source) -> Roles:
    """Give the columns that are named their roles, and check the names."""
    layout, in_rows = source.layout, source.layout.features_in_rows is True
    for parameter in NAMING:
        asked = getattr(layout, parameter)
        if asked is None or (parameter, asked) == ("use_columns", "all"):
            continue
        for name in [asked] if isinstance(asked, str) else asked:
            if name not in source.names:
                words = f"there is no column {shown(name)}, given as {{{parameter}}}"
                words += f"; {near(name, source.names)}"
                raise layout.error(words, parameter, name)
    dropped = dict.fromkeys(layout.drop, "asked for")
    kept = [j for j, name in enumerate(source.names) if name not in layout.drop]
    counts = Counter(source.names[j] for j in kept)
    twice = [name for name, count in counts.items() if count > 1 and name]
    if twice and not in_rows:
        raise layout.error(
            f"several columns have the same name: {shown_names(twice)}; rename them in line 1 of "
            f"the file, or leave all of a name out by {{drop}}{{=}}{shown(twice[0])}"
        )
    label, weight = (
        None if name is None else source.names.index(name)
        for name in (layout.label_column, layout.weight_column)
    )
    kept = [j for j in kept if j not in (label, weight)]
    ids = _id_number(source, layout, kept)
    features = [j for j in kept if j != ids and not _is_nothing(source, j, in_rows)]
    if not features:
        words = "there is no column left that could be a feature"
        if len(source.names) == 1 and source.separator is not None:
            words += f"; it has one, {shown(source.names[0])}: if another mark separates cells, "
            words += "name it by {separator}"
        raise layout.error(words)
    return Roles(features, ids, label, dropped)


def _id_number(source: Source, layout: Layout, kept: list[int]) -> int | None:
    """Return the column with the names of the cases, if there is one."""
    name = layout.id_column if layout.id_column is not None else source.id_name
    if name is not None:
        return source.names.index(name)
    if not kept or kept[0] != 0 or source.cells is not None:
        return None
    first, name, in_rows = source.frame["0"], source.names[0], layout.features_in_rows is True
    if (name == "" and len(source.names) > 1) or (in_rows and is_feature_name(name)):
        return 0
    if name in layout.use_columns and layout.use_columns != "all":
        return None
    kind = kind_of(source, 0)
    is_text = kind == "text" or (kind == "dates" and not first.dtype.is_temporal())
    is_unique = first.n_unique() == len(first)
    return 0 if is_text and (in_rows or is_unique or _name_cases(first)) else None


def _name_cases(series: Any) -> bool:
    """Whether every case has a name, nearly always one of its own: some may be entered twice."""
    return series.null_count() == 0 and 10 * series.n_unique() >= 9 * series.len()


def _is_nothing(source: Source, j: int, in_rows: bool) -> bool:
    """Whether a column has neither name nor cells, as separators at the ends of lines make it."""
    if source.names[j]:
        return False
    if source.frame[str(j)].null_count() == source.frame.height:
        return True
    if in_rows and source.cells is None:  # a case
        return False
    raise source.layout.error(f"column {j + 1} has no name")
