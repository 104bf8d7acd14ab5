"""Files beside a table: known classes of its cases, and groups of its features (GMT)."""

import gzip
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rskc.files._formats import damage_named
from rskc.files._numbers import as_text
from rskc.files._source import Layout, literal, shown, shown_names
from rskc.files.tables import read_source
from rskc.inputs.columns import are_classes, is_class_name
from rskc.utils.wording import count, quoted

# ---- Classes


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
    is_short = place is None and len(texts[0]) == len(ids) - 1
    if is_short or (place is not None and names[place] in ids):  # the first line is that of a case
        texts, names = _texts(replace(layout, header=False))
        place = _ids_among(texts, ids)
    others = [j for j in range(len(texts)) if j != place]
    few = [j for j in others if are_classes(len(texts[j]), len(set(texts[j])))]
    named = [j for j in few if is_class_name(names[j])]
    likely = next((columns for columns in (others, named, few) if len(columns) == 1), None)
    if likely is None:
        columns = ", ".join(shown(names[j]) for j in others) or "there is none"
        words = "it is not clear which column holds the classes; leave one of these, and the ids"
        raise layout.error(f"{words}: {columns}")
    found, name = texts[likely[0]], names[likely[0]]
    if place is None and len(found) != len(ids):
        rows, cases = count(len(found), "row"), count(len(ids), "case")
        words = f"it has {rows} where the table has {cases}, and no column holds their names"
        raise layout.error(words)
    if place is not None:
        known = dict(zip(texts[place], found, strict=True))
        lost = [each for each in ids if each not in known]
        if lost:
            words = f"{len(lost)} of the cases are not among its ids: {shown_names(lost)}"
            raise layout.error(words)
        found = [known[each] for each in ids]
    empty = [ids[i] for i, label in enumerate(found) if label is None]
    if empty:
        raise layout.error(f"the class is missing of {shown_names(empty)}")
    return Classes(np.array(found), name, place is not None)


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


# ---- Groups


@dataclass(frozen=True)
class MatchedGroups:
    """The groups of a GMT file that name features of a table.

    Attributes
    ----------
    groups : dict
        The features of each group, for ``feature_groups``.
    not_found : list of str
        Groups of the file that got no feature.
    n_several : int
        Features that several groups name; each is in the first one of the file.
    n_alone : int
        Features that no group names.
    """

    groups: dict[str, list[str]]
    not_found: list[str]
    n_several: int
    n_alone: int

    def words(self) -> str:
        """Say what was found, in one sentence."""
        text = f"{count(len(self.groups), 'group')} with features of the table"
        if self.not_found:
            text += f", {len(self.not_found):,} without any ({quoted(self.not_found, 3, 40)})"
        text += f"; {count(self.n_alone, 'feature')} in no group, with a weight alone"
        if self.n_several:
            text += f"; {count(self.n_several, 'feature')} in several groups, counted in the first"
        return f"{text}."


def read_gmt(path: str | os.PathLike, features: Iterable[str]) -> MatchedGroups:
    """Read the groups of features from a GMT file.

    A line has the name of a group, a description, and its features, separated by tabs. A feature
    has one weight, and so belongs to one group: the first of the file that names it.

    Parameters
    ----------
    path : str or path
        The file, .gmt or .gmt.gz.
    features : iterable of str
        Names of the features of the table; names of the file that are none of these are left out.

    Returns
    -------
    matched : MatchedGroups

    Raises
    ------
    TableError
        If it is no such file, or names no feature of the table.
    """
    layout, known = Layout.of(path), set(map(str, features))
    groups: dict[str, list[str]] = {}
    not_found: list[str] = []
    taken: set[str] = set()
    several: set[str] = set()
    for name, members in _groups(layout):
        if name in groups or name in not_found:
            raise layout.error(f"the group {literal(name)} occurs twice")
        found = {each: None for each in members if each in known}
        several |= found.keys() & taken
        groups[name] = [each for each in found if each not in taken]
        taken |= found.keys()
        if not groups[name]:
            not_found.append(name)
            del groups[name]
    if not groups:
        raise layout.error("no group names a feature of the table")
    return MatchedGroups(groups, not_found, len(several), len(known) - len(taken))


def _groups(layout: Layout) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the members of each group."""
    if not layout.path.exists():
        raise layout.error("there is no such file")
    with damage_named(layout):
        data = layout.path.read_bytes()
        text = (gzip.decompress(data) if layout.path.suffix == ".gz" else data).decode("utf-8-sig")
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, *rest = (cell.strip() for cell in line.split("\t"))
        if not name or len(rest) < 2:
            raise layout.error(
                f"line {number}: a line of a GMT file has a name, a description and features, "
                "separated by tabs"
            )
        yield name, [each for each in rest[1:] if each]
