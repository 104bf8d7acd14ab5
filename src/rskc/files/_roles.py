"""What the columns of a file are for: names of the cases, known classes, features.

Columns that are named are what they are named as. Of the others, those that are recognized as ids
or classes (``rskc.inputs.columns``) are set aside, each with a word on it, unless they are to be
used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from rskc.files._numbers import find_numbers, kind_of
from rskc.files._source import Layout, Source, near, shown
from rskc.files._written import HowWritten
from rskc.inputs.columns import (
    Recognized,
    are_classes,
    is_class_name,
    is_feature_name,
    is_id_name,
    recognize,
)
from rskc.utils.wording import quoted


class SetAside(NamedTuple):
    """A column that was recognized as no measurement."""

    name: str
    why: str  # what it does, such as "counts the cases"
    role: str  # "names", "classes" or "left out"
    is_text: bool


@dataclass(frozen=True)
class Wanted:
    """What the caller says of columns, by name."""

    ids: str | None = None
    labels: str | None = None
    drop: Sequence[str] = ()
    use: Sequence[str] | str = ()  # features whatever they look like, or "all"
    text_columns: str = "refuse"
    date_columns: str = "drop"
    categorical: Sequence[str] = ()  # categories whatever they hold
    features_in_rows: bool = False
    weights: str | None = None


class Roles(NamedTuple):
    """Columns of the file, by number, and the cells of the features."""

    ids: int | None
    labels: int | None
    features: list[int]
    dropped: dict[str, str]
    set_aside: tuple[SetAside, ...] = ()
    matrix: Any = None
    categories: Mapping[int, Any] = MappingProxyType({})  # series of text
    weights: np.ndarray | None = None  # (n,) what cases count
    written: Mapping[str, HowWritten] = MappingProxyType({})  # what stood beside numbers


def find_roles(layout: Layout, source: Source, wanted: Wanted) -> Roles:
    """Say what each column is for, and make numbers of the features."""
    roles = _roles_by_name(layout, source, wanted)
    if wanted.weights is not None:
        number = source.names.index(wanted.weights)
        cells = find_numbers(layout, source, [number], Wanted()).matrix
        roles = roles._replace(weights=cells[:, 0].astype(np.float64))
    if source.cells is not None:  # features and nothing else
        columns = np.array(roles.features) - source.frame.width
        every = len(columns) == source.cells.shape[1]
        return roles._replace(matrix=source.cells if every else source.cells[:, columns])
    if wanted.use != "all" and not wanted.features_in_rows:
        roles = _without_text(layout, source, roles, [*wanted.use, *wanted.categorical])
    found = find_numbers(layout, source, roles.features, wanted)
    roles = roles._replace(
        features=found.columns,
        dropped=roles.dropped | found.others,
        matrix=found.matrix,
        categories=found.categories,
        written=found.written,
    )
    return roles if wanted.use == "all" else _without_numbers(source, roles, wanted)


def _without_text(layout: Layout, source: Source, roles: Roles, use: Collection[str]) -> Roles:
    """Set aside columns of text that are named like ids or classes."""
    for j in roles.features:
        name, series = source.names[j], source.frame[str(j)]
        is_id, is_class = is_id_name(name), is_class_name(name)
        if name in use or not (is_id or is_class) or kind_of(layout, source, j) == "numbers":
            continue
        n_distinct = series.drop_nulls().n_unique()
        if is_class and are_classes(series.len(), n_distinct):
            found = Recognized(name, "class", "is named like known classes")
        elif is_id and n_distinct == series.len():
            found = Recognized(name, "id", "is named like an id")
        else:
            continue
        roles = _set_aside(source, roles, j, found, is_text=True)
    return roles


def _without_numbers(source: Source, roles: Roles, wanted: Wanted) -> Roles:
    """Set aside columns of numbers that are no measurements, if any others are left."""
    names = [source.names[j] for j in roles.features]
    if not names:
        return roles
    found = {
        j: column
        for j, column in recognize(names, roles.matrix).items()
        if names[j] not in wanted.use and (not wanted.features_in_rows or j == 0)
    }
    if not found or (len(found) == len(names) and not roles.categories):
        return roles
    columns, matrix = roles.features, np.delete(roles.matrix, list(found), axis=1)
    for j, column in found.items():
        roles = _set_aside(source, roles, columns[j], column, is_text=False)
    return roles._replace(matrix=matrix)


def _set_aside(source: Source, roles: Roles, j: int, found: Recognized, is_text: bool) -> Roles:
    series, role = source.frame[str(j)], "left out"
    is_complete = series.null_count() == 0
    changes: dict[str, Any] = {"features": [each for each in roles.features if each != j]}
    if found.kind == "class" and roles.labels is None and is_complete:
        role, changes["labels"] = "classes", j
    elif found.kind == "id" and roles.ids is None and series.n_unique() == series.len():
        role, changes["ids"] = "names", j
    else:
        changes["dropped"] = roles.dropped | {found.name: f"it {found.why}"}
    column = SetAside(found.name, found.why, role, is_text)
    return roles._replace(**changes, set_aside=(*roles.set_aside, column))


def _roles_by_name(layout: Layout, source: Source, wanted: Wanted) -> Roles:
    """Give the columns that are named their roles, and check the names."""
    use = () if wanted.use == "all" else wanted.use
    asked = {"id_column": [wanted.ids], "label_column": [wanted.labels]}
    asked["weight_column"] = [wanted.weights]
    asked |= {"drop": list(wanted.drop), "use_columns": list(use)}
    asked |= {"categorical": list(wanted.categorical)}
    for parameter, names in asked.items():
        for name in names:
            if name is not None and name not in source.names:
                raise layout.error(
                    f"there is no column {{name}}, given as {{{parameter}}}; {{others}}",
                    parameter=parameter,
                    name=shown(name),
                    others=near(name, source.names),
                )
    dropped = dict(source.left_out) | dict.fromkeys(wanted.drop, "asked for")
    kept = [j for j, name in enumerate(source.names) if name not in wanted.drop]
    counts = Counter(source.names[j] for j in kept)
    twice = [name for name, count in counts.items() if count > 1 and name]
    if twice and not wanted.features_in_rows:
        raise layout.error(
            "several columns have the same name: {names}; rename them in line 1 of the file, or "
            "leave all of a name out by {drop}{=}{name}",
            names=quoted(twice),
            name=shown(twice[0]),
        )
    label = source.names.index(wanted.labels) if wanted.labels is not None else None
    weight = source.names.index(wanted.weights) if wanted.weights is not None else None
    kept = [j for j in kept if j not in (label, weight)]
    id_number = _id_number(layout, source, wanted, kept)
    unnamed = wanted.features_in_rows and source.cells is None
    features = [j for j in kept if j != id_number and not _is_nothing(layout, source, j, unnamed)]
    if not features:
        raise layout.error("there is no column left that could be a feature")
    return Roles(id_number, label, features, dropped)


def _id_number(layout: Layout, source: Source, wanted: Wanted, kept: list[int]) -> int | None:
    name = wanted.ids if wanted.ids is not None else source.id_name
    if name is not None:
        return source.names.index(name)
    if not kept or kept[0] != 0 or source.cells is not None:
        return None
    if source.names[0] == "" and len(source.names) > 1:
        return 0
    if wanted.features_in_rows and is_feature_name(source.names[0]):
        return 0
    first = source.frame["0"]
    kind = kind_of(layout, source, 0)
    if source.names[0] in wanted.use and wanted.use != "all":
        return None
    is_text = kind == "text" or (kind == "dates" and not first.dtype.is_temporal())
    return 0 if is_text and (wanted.features_in_rows or first.n_unique() == len(first)) else None


def _is_nothing(layout: Layout, source: Source, j: int, unnamed: bool) -> bool:
    """Whether a column has neither name nor cells, as separators at the ends of lines make it."""
    if source.names[j]:
        return False
    if source.frame[str(j)].null_count() == source.frame.height:
        return True
    if unnamed:  # a case
        return False
    raise layout.error("column {number} has no name", number=j + 1)
