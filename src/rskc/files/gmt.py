"""Groups of features from a GMT file, as pathways and gene sets come."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rskc.files._source import TableError
from rskc.utils.wording import count, quoted


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
        alone = "feature is" if self.n_alone == 1 else "features are"
        text += f"; {self.n_alone:,} {alone} in no group and stand{'s' * (self.n_alone == 1)} alone"
        if self.n_several:
            are = "is in several and counts" if self.n_several == 1 else "are in several and count"
            text += f"; {self.n_several:,} {are} in the first"
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
    path, known = Path(path), set(map(str, features))
    groups: dict[str, list[str]] = {}
    not_found: list[str] = []
    taken: set[str] = set()
    several: set[str] = set()
    for name, members in _lines(path):
        if name in groups or name in not_found:
            raise TableError("{file}: the group {name} occurs twice", file=_file(path), name=name)
        own = dict.fromkeys(each for each in members if each in known)
        several |= own.keys() & taken
        groups[name] = [each for each in own if each not in taken]
        taken |= own.keys()
        if not groups[name]:
            not_found.append(name)
            del groups[name]
    if not groups:
        raise TableError("{file}: no group names a feature of the table", file=_file(path))
    return MatchedGroups(groups, not_found, len(several), len(known) - len(taken))


def _file(path: Path) -> str:
    return repr(str(path))


def _lines(path: Path) -> Iterable[tuple[str, list[str]]]:
    """Return the name and the members of each group."""
    try:
        packed = path.suffix == ".gz"
        data = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
        text = data.decode("utf-8-sig")
    except FileNotFoundError as error:
        raise TableError("{file}: there is no such file", file=_file(path)) from error
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        words = getattr(error, "strerror", None) or "it is no text in UTF-8, or damaged"
        message = "{file}: the file cannot be read ({words})"
        raise TableError(message, file=_file(path), words=words) from error
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, *rest = (cell.strip() for cell in line.split("\t"))
        if not name or len(rest) < 2:
            raise TableError(
                "{file}, line {line}: a line of a GMT file has a name, a description and features, "
                "separated by tabs",
                file=_file(path),
                line=number,
            )
        yield name, [each for each in rest[1:] if each]
