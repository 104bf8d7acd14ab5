"""What the solver asks of an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np


class Assignment(NamedTuple):
    """The nearest centre of every case and what the case costs there, a row for each run."""

    labels: np.ndarray  # (runs, n) int32
    costs: np.ndarray  # (runs, n), weighted squared distances in the units of the table


class Grouping(NamedTuple):
    """Groups, the labels with -1 for a trimmed case, and the costs of the kept cases summed."""

    groups: np.ndarray  # (runs, n) int32
    within: np.ndarray  # (runs,)


@dataclass
class Sums:
    """Totals and counts of the cases of each cluster; ``shift`` passes change them in place."""

    totals: np.ndarray  # (runs, K, columns) float64
    counts: np.ndarray  # (runs, K) float64
    factored: ClassVar[bool] = False  # whether B_j of an engine has factors that these lack

    @classmethod
    def empty(cls, runs: int, K: int, columns: int) -> Sums:
        """Sums over no case."""
        return cls(np.zeros((runs, K, columns)), np.zeros((runs, K)))

    def means(self) -> np.ndarray:
        """Means of the clusters; 0, the location of the data, for an empty one."""
        return self.totals / np.maximum(self.counts, 1)[:, :, None]

    def between(self) -> np.ndarray:
        """B_j = sum_k n_k (mean_kj - mean_j)^2, a row for each run."""
        mean = self.totals.sum(axis=1) / np.maximum(self.counts.sum(axis=1), 1)[:, None]
        return np.einsum("rk,rkj->rj", self.counts, (self.means() - mean[:, None, :]) ** 2)

    def without(self, clusters: list[int]) -> Sums:
        """The sums with some clusters empty."""
        left = self.of_runs(np.arange(len(self.counts)))  # a copy
        for part in vars(left).values():
            part[:, clusters] = 0
        return left

    def of_runs(self, index: np.ndarray | slice) -> Self:
        """The sums of some of the runs: a copy, or for a slice a view."""
        return type(self)(*(part[index] for part in vars(self).values()))


class Table(Protocol):
    """The columns that carry weight, centred: what step (a), a trimmed K-means, works on.

    Centres are given in the coordinates of the table. Groups are labels, with -1 for a trimmed
    case.
    """

    n_cases: int
    n_columns: int
    rotated: bool  # coordinates of its own, in which centres of the data cannot be placed

    def of_runs(self, index: np.ndarray) -> Table:
        """Return the table for some of the runs only (each may have its own weights)."""
        ...

    def assign(self, centres: np.ndarray) -> Assignment:
        """Find the nearest of the centres (runs, K, columns)."""
        ...

    def trim(self, assignment: Assignment, m: int) -> Grouping:
        """Trim the m cases of largest cost, the lower case number first where costs tie."""
        ...

    def sums(self, groups: np.ndarray, K: int) -> Sums:
        """Sum the cases of each group."""
        ...

    def shift(self, sums: Sums, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Bring sums from one grouping to another; return how many cases changed in each run."""
        ...

    def exclude(self, groups: np.ndarray) -> np.ndarray:
        """Return groups with -1 also for cases of which nothing that has weight is observed."""
        ...

    def single_moves(self, sums: Sums, groups: np.ndarray) -> np.ndarray:
        """Move single cases while the within sum falls; return how many moves in each run."""
        ...

    def cases(self, index: np.ndarray) -> np.ndarray:
        """Return the coordinates of some cases."""
        ...

    def place(self, centres: np.ndarray) -> np.ndarray:
        """Bring centres (runs, K, p) from the space of the data into that of the table."""
        ...

    def norms(self) -> np.ndarray:
        """Return the weighted squared norm of each case, (1 or runs, n)."""
        ...


class Engine(Protocol):
    """The data in their frame: centred, and scaled by a power of 2."""

    n_cases: int
    n_features: int
    n_missing: int  # cells
    frame: Any  # what another engine needs to see other data in the same frame
    unit: float  # a squared distance of 1 in the frame, in the space of the data

    def equal_weights(self) -> np.ndarray:
        """Return weights (1, p) of 1, and 0 for features that are nowhere observed."""
        ...

    def table(self, weights: np.ndarray) -> Table:
        """Return the table for weights (1 or runs, p), in double precision."""
        ...

    def compact_table(self, weights: np.ndarray) -> Table:
        """Return a table with the same distances and as few columns as can be."""
        ...

    def search_table(self, weights: np.ndarray) -> Table:
        """Return such a table in the precision that is fastest for many runs."""
        ...

    def sums(self, groups: np.ndarray, K: int) -> Sums:
        """Sum, over all features, the cases of each group (runs, n)."""
        ...

    def shift(self, sums: Sums, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Bring such sums from one grouping to another."""
        ...

    def between(self, sums: Sums, groups: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """B_j (runs, p) of groups, whose sums are given and which these weights (runs, p) made."""
        ...

    def blind(self, weights: np.ndarray) -> np.ndarray:
        """Mask (n,) of the cases of which nothing that has weight (p,) is observed."""
        ...

    def farthest(self, distances: np.ndarray, m: int) -> np.ndarray:
        """Mask (runs, n) of the m largest, the lower case number first where they tie."""
        ...

    def place(self, centres: np.ndarray) -> np.ndarray:
        """Bring centres (runs, K, p) from the space of the data into the frame."""
        ...

    def restore(self, centres: np.ndarray) -> np.ndarray:
        """Bring them back."""
        ...

    def distances(
        self, labels: np.ndarray, centres: np.ndarray, weights: np.ndarray | None = None
    ) -> np.ndarray:
        """Squared distance (runs, n) of each case to the centre that its label names, in the frame.

        Over all features, weighted by ``weights`` (1 or runs, p) if these are given.
        """
        ...
