"""What passes return. Arrays of length n are of the engine's own kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rskc.engines.contract.ops import ArrayOps
from rskc.engines.sums import Sums


class Assignment(NamedTuple):
    """The nearest center of every case and what the case costs there, a row for each run."""

    labels: Any  # (runs, n) int32
    costs: Any  # (runs, n), weighted squared distances in the units of the table


class Grouping(NamedTuple):
    """Groups, the labels with -1 for a trimmed case, and the costs of the kept cases summed."""

    groups: Any  # (runs, n) int32
    within: np.ndarray  # (runs,)


class Regrouping(NamedTuple):
    """A grouping, and how many cases of each run were in another group before."""

    groups: Any  # (runs, n) int32
    within: np.ndarray  # (runs,)
    moved: np.ndarray  # (runs,)


class Moved(NamedTuple):
    """Groups after single moves, their sums, and how many moves there were."""

    groups: Any  # (runs, n) int32
    sums: Sums
    moves: np.ndarray  # (runs,)


@dataclass
class Partitions:
    """Partitions of the cases, a row for each run; groups and labels are the engine's arrays."""

    groups: Any  # (runs, n) int32: labels, -1 for a trimmed case
    labels: Any  # (runs, n) int32: trimmed cases have one too
    within: np.ndarray  # (runs,) weighted within sum of squares of the kept cases, table units
    converged: np.ndarray  # (runs,) bool
    arrays: ArrayOps

    def __len__(self) -> int:
        return len(self.within)

    def take(self, rows: np.ndarray | slice) -> Partitions:
        """Return some of the runs."""
        groups, labels = (self.arrays.take(part, rows) for part in (self.groups, self.labels))
        return Partitions(groups, labels, self.within[rows], self.converged[rows], self.arrays)

    def join(self, *others: Partitions) -> Partitions:
        """Return these runs and those."""
        every = [self, *others]
        return Partitions(
            self.arrays.join([part.groups for part in every]),
            self.arrays.join([part.labels for part in every]),
            np.concatenate([part.within for part in every]),
            np.concatenate([part.converged for part in every]),
            self.arrays,
        )

    def replace(self, rows: np.ndarray, other: Partitions) -> Partitions:
        """Return the runs with others in the place of some."""
        order = np.arange(len(self))
        order[rows] = len(self) + np.arange(len(rows))
        return self.join(other).take(order)

    def best(self, most: int, K: int) -> Partitions:
        """Return the runs of least within sum, each partition once, whatever its numbering.

        Of the runs with the same partition the first is taken: their within sums differ by rounding
        alone, which depends on the engine.
        """
        first: dict[bytes, int] = {}
        for run, key in enumerate(self.arrays.keys(self.groups, K)):
            first.setdefault(key, run)
        runs = np.fromiter(first.values(), np.int64)
        return self.take(runs[np.argsort(self.within[runs], kind="stable")[:most]])


class Farthest(NamedTuple):
    """The cases at the largest distances, and the largest distance of each run."""

    mask: Any  # (runs, n)
    distance: np.ndarray  # (runs,)


class Summed(NamedTuple):
    """Groups, and the sums over all features of each."""

    groups: Any  # (runs, n) int32
    sums: Sums

    def of_runs(self, runs: np.ndarray, arrays: ArrayOps) -> Summed:
        """Return those of some of the runs."""
        return Summed(arrays.take(self.groups, runs), self.sums.of_runs(runs))

    def and_none_of(self, groups: Any, runs: int, arrays: ArrayOps) -> Summed:
        """Return these, and for more runs, with groups as these are, that no case is summed."""
        trimmed = arrays.trimmed(groups)
        none = arrays.without(groups, trimmed | ~trimmed)
        return Summed(arrays.join([self.groups, none]), self.sums.and_empty(runs))


class Remaining(NamedTuple):
    """What is left of groups when the farthest cases are taken out too."""

    far: Any  # (runs, n) a mask of these cases
    kept: Any  # (runs, n) int32: groups without them
    sums: Sums  # of these groups


class Listed(NamedTuple):
    """How many cases there are of some kind, and the numbers of the first of them."""

    total: int
    first: np.ndarray
