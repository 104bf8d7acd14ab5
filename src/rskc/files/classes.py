"""Known classes of cases from a file of their own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rskc.files._numbers import as_text
from rskc.files._source import Layout, shown
from rskc.files.tables import read_source
from rskc.inputs.columns import are_classes, is_class_name
from rskc.utils.wording import count, quoted


class Classes(NamedTuple):
    """The classes of cases, the column they are from, and whether ids told which is whose."""

    labels: np.ndarray
    name: str
    by_id: bool


def read_classes(path: str | os.PathLike, ids: Sequence[str]) -> Classes:
    """Read the known classes of cases, by their ids or in their order.

    Parameters
    ----------
    path : str or path
        A table with a column of ids and one of classes, or with classes only, in the order of the
        cases; with or without a header.
    ids : sequence of str
        The names of the cases.

    Returns
    -------
    classes : Classes

    Raises
    ------
    TableError
        If ids are missing, or no column or several hold classes.
    """
    ids, layout = list(map(str, ids)), Layout.of(path)
    texts, names = _texts(layout)
    place = _ids_among(texts, ids)
    if place is None and len(texts[0]) == len(ids) - 1:
        texts, names = _texts(replace(layout, header=False))
        place = _ids_among(texts, ids)
    j = _column_of_classes(layout, texts, names, place)
    found = texts[j]
    if place is None and len(found) != len(ids):
        raise layout.error(
            "it has {rows} where the table has {cases}, and no column holds their names",
            rows=count(len(found), "row"),
            cases=count(len(ids), "case"),
        )
    if place is not None:
        known = dict(zip(texts[place], found, strict=True))
        lost = [name for name in ids if name not in known]
        if lost:
            words = "{n} of the cases are not among its ids: {names}"
            raise layout.error(words, n=len(lost), names=quoted(lost))
        found = [known[name] for name in ids]
    empty = [ids[i] for i, label in enumerate(found) if label is None]
    if empty:
        raise layout.error("the class is missing of {names}", names=quoted(empty))
    return Classes(np.array(found), names[j], place is not None)


def _texts(layout: Layout) -> tuple[list[list[Any]], list[str]]:
    source = read_source(layout)
    columns = [as_text(source.frame[str(j)]).to_list() for j in range(source.frame.width)]
    return columns, source.names


def _ids_among(texts: list[list[Any]], ids: list[str]) -> int | None:
    """Return the column that holds the names of most cases; None if none does."""
    wanted = set(ids)
    shared = [len(wanted & set(column)) for column in texts]
    best = int(np.argmax(shared))
    return best if 2 * shared[best] > len(wanted) else None


def _column_of_classes(
    layout: Layout, texts: list[list[Any]], names: list[str], ids: int | None
) -> int:
    others = [j for j in range(len(texts)) if j != ids]
    few = [j for j in others if are_classes(len(texts[j]), len(set(texts[j])))]
    named = [j for j in few if is_class_name(names[j])]
    for found in (others, named, few):
        if len(found) == 1:
            return found[0]
    raise layout.error(
        "it is not clear which column holds the classes; leave one of these, and the ids: {names}",
        names=", ".join(shown(names[j]) for j in others) or "there is none",
    )
