"""What the columns of a file are for: names of the cases, known classes, features.

Columns that are named are what they are named as. Of the others, those that are recognized as ids
or classes (``rskc.inputs.columns``) are set aside, each with a word on it, unless they are to be
used.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from rskc.files._numbers import find_numbers, kind_of
from rskc.files._source import Layout, Roles, SetAside, Source, near, shown, shown_names
from rskc.inputs.columns import (
    Recognized,
    are_classes,
    is_class_name,
    is_feature_name,
    is_id_name,
    recognize,
)

# Arguments of ``read_table`` that name columns.
NAMING = ("id_column", "label_column", "weight_column", "drop", "use_columns", "categorical")


def find_roles(source: Source) -> Roles:
    """Say what each column is for, and make numbers of the features."""
    layout, roles = source.layout, _roles_by_name(source)
    if layout.weight_column is not None:
        weights = Roles([source.names.index(layout.weight_column)])
        plain = replace(layout, text_columns="refuse", date_columns="drop", categorical=())
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
            column = Recognized(name, "class", "is named like known classes")
            _set_aside(source, roles, j, column, is_text=True)
        elif is_id and _name_cases(series):
            column = Recognized(name, "id", "is named like an id")
            _set_aside(source, roles, j, column, is_text=True)


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
            _set_aside(source, roles, columns[i], column, is_text=False)


def _set_aside(source: Source, roles: Roles, j: int, column: Recognized, is_text: bool) -> None:
    series, role = source.frame[str(j)], "left out"
    roles.features = [feature for feature in roles.features if feature != j]
    if column.kind == "class" and roles.labels is None and series.null_count() == 0:
        role, roles.labels = "classes", j
    elif column.kind == "id" and roles.ids is None and _name_cases(series):
        role, roles.ids = "names", j
    else:
        roles.dropped[column.name] = f"it {column.why}"
    roles.set_aside.append(SetAside(column.name, column.why, role, is_text, column.kind == "id"))


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
    dropped = dict(source.left_out) | dict.fromkeys(layout.drop, "asked for")
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
