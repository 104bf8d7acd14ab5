"""Passes for cells whose squared error is bounded, as every engine has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rskc.engines.passes import PASSES
from rskc.engines.sums import MissingSums

# Cells of the rows that are read at once, where the data are not an array in memory.
CELLS_AT_ONCE = 2**22
# The center of a group begins at the median of at most so many of its cases. With 100 the order of
# the cases decided where it began; more than 4,000 would take a sixth more time of 20,000 x 50.
MOST_RANKED = 4000


class BoundedSums(MissingSums):
    """Sums of unflagged cells: totals of their values, and then their numbers."""

    factored = False


class CellPasses:
    """Bounded distances and sums, made piece by piece.

    ``columns`` are the q features that are looked at. Centers are in the frame, and so are
    ``limits`` (q,), the most that a squared error counts.
    """

    arrays: Any
    n_cases: int
    frame: Any
    columns_of: Any
    cell_passes: Any = PASSES

    def nearest_bounded(self, columns, weights, limits, centers):
        """Return the nearest of the centers (K, q) of each case, and the distance to it: (n,)."""
        labels, costs = np.empty(self.n_cases, np.int32), np.empty(self.n_cases)
        threads = self.cell_threads(columns, len(centers))
        for rows, *piece in self.pieces(columns):
            outputs = labels[rows], costs[rows]
            self.cell_passes.nearest_bounded(*piece, weights, limits, centers, threads, *outputs)
        return self.arrays.from_numpy(labels), self.arrays.from_numpy(costs)

    def bounded_distances(self, columns, weights, limits, labels, centers):
        """Return distances (runs, n) to the centers (runs, K, q) of labels, by (1 or runs, q)."""
        labels = self.arrays.to_numpy(labels)
        threads, parts = self.cell_threads(columns, len(labels)), []
        for rows, *piece in self.pieces(columns):
            facts = weights, limits, np.ascontiguousarray(labels[:, rows]), centers, threads
            out = np.empty(facts[2].shape)
            self.cell_passes.bounded_distances(*piece, *facts, out)
            parts.append(out)
        return self.arrays.from_numpy(np.concatenate(parts, axis=1))

    def bounded_sums(self, columns, limits, groups, centers, shares=None):
        """Sum the unflagged cells of groups (runs, n) around centers (runs, K, q).

        Return the sums, and the bounded squared errors (runs, q). Each case counts with its mass,
        and with its share (1 or runs, n) if these are given.
        """
        labels, masses = self.arrays.to_numpy(groups), self.arrays.kept_masses(groups)
        shares = np.ones((1, self.n_cases)) if shares is None else shares
        shares = shares if masses is None else shares * self.arrays.to_numpy(masses)
        runs, K, q = centers.shape
        sums, within = BoundedSums.empty(runs, K, 2 * q), np.zeros((runs, q))
        outputs = sums.totals, sums.counts, within
        threads = self.cell_threads(columns, runs)
        for rows, *piece in self.pieces(columns):
            facts = (np.ascontiguousarray(part[:, rows]) for part in (shares, labels))
            self.cell_passes.bounded_sums(*piece, limits, *facts, centers, threads, *outputs)
        return sums, within

    def group_medians(self, columns, groups, K):
        """Return lower medians (runs, K, q) of groups (runs, n), or of evenly spaced cases."""
        labels, threads = self.arrays.to_numpy(groups), self.cell_threads(columns, 1)
        medians = np.empty((len(labels), K, len(columns)))
        for run, out in zip(labels, medians, strict=True):
            order, starts = _by_group(run, K, self.arrays.host_masses)
            cells = self.some_cells(columns, order)
            self.cell_passes.lower_medians(*cells, starts, threads, out)
        return medians

    def pieces(self, columns) -> Iterator[tuple]:
        """Yield all cases: which these are, their cells, and how they come into the frame."""
        step = max(1, CELLS_AT_ONCE // max(1, len(columns)))
        location, places = self.frame.location[columns], np.arange(len(columns))
        for first in range(0, self.n_cases, step):
            rows = slice(first, min(first + step, self.n_cases))
            X = self.columns_of(np.arange(rows.start, rows.stop), columns)
            yield rows, np.ascontiguousarray(X), location, self.frame.factor, places

    def some_cells(self, columns, order):
        """Return cells of some cases, as a pass takes them, and the places of the cases there."""
        cases, places = np.unique(order, return_inverse=True)
        X = np.ascontiguousarray(self.columns_of(cases, columns))
        location = self.frame.location[columns]
        return X, location, self.frame.factor, np.arange(len(columns)), places

    def cell_threads(self, columns, runs) -> int:
        """Return how many threads a pass has."""
        return 1


def lower_medians(X: np.ndarray, passes: Any = PASSES) -> np.ndarray:
    """Return the lower median of the observed cells of each column; NaN where there is none."""
    n, p = X.shape
    out, every = np.empty((1, p)), (np.arange(n), np.array([0, n]))
    X = np.ascontiguousarray(X)
    passes.lower_medians(X, np.zeros(p), 1.0, np.arange(p), *every, 1, out)
    return out[0]


def _by_group(
    labels: np.ndarray, K: int, masses: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the cases of each group, one group after the other, and where each begins.

    Where cases have masses they come as their copies would.
    """
    members = [np.flatnonzero(labels == k) for k in range(K)]
    if masses is not None:
        copies = np.clip(np.rint(masses), 1, MOST_RANKED).astype(np.int64)
        members = [np.repeat(cases, copies[cases]) for cases in members]
    members = [cases[:: max(1, -(-len(cases) // MOST_RANKED))] for cases in members]
    return np.concatenate(members), np.cumsum([0, *map(len, members)])
