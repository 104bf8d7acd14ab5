"""Descents by passes: runs of trimmed Lloyd where no compiled pass makes them whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from rskc.engines.contract.results import Assignment, Descended


def descend_by_passes(
    table: Any, centers: np.ndarray, m: float, max_iter: int, tol: float
) -> Descended:
    """Run trimmed Lloyd from each of the centers (runs, K, columns), in one batch.

    A run leaves the batch when it has ended.
    """
    batch = _Batch(table, centers, m)
    for _ in range(max_iter):
        ended = batch.step(tol)
        if ended.any():
            batch.leave(ended)
        if len(batch.runs) == 0:
            break
    else:
        batch.leave(np.ones(len(batch.runs), bool), converged=False)
    return batch.found()


class _Batch:
    """The runs that still move, and their sums; and those that have ended."""

    def __init__(self, table: Any, centers: np.ndarray, n_trim: float):
        self.table, self.n_trim, self.centers = table, n_trim, centers
        self.runs = np.arange(len(centers))
        self.ended: list[tuple[np.ndarray, Descended]] = []
        assignment = table.assign(centers)
        self.labels = assignment.labels
        self.groups, self.within = table.trim(assignment, n_trim)
        self.sums = table.sums(self.groups, centers.shape[1])
        self._update_centers(assignment)

    def step(self, tol: float) -> np.ndarray:
        """Make one iteration; return which runs have ended."""
        assignment = self.table.assign(self.centers)
        new = self.table.regroup(assignment, self.n_trim, self.sums, self.groups)
        # A sum that no longer falls goes round in ties or in rounding.
        ended = (new.moved == 0) | (new.within >= self.within * (1 - tol))
        self.groups, self.labels, self.within = new.groups, assignment.labels, new.within
        self._update_centers(assignment)
        return ended

    def leave(self, ended: np.ndarray, converged: bool = True) -> None:
        """Record the runs that have ended and go on without them."""
        done, stay, take = np.flatnonzero(ended), np.flatnonzero(~ended), self.table.arrays.take
        cases, own = (take(self.groups, done), take(self.labels, done)), self.within[done]
        self.ended.append((self.runs[done], Descended(*cases, own, np.full(len(done), converged))))
        if len(stay) == 0:
            self.runs = stay
            return
        self.table, self.runs = self.table.of_runs(stay), self.runs[stay]
        self.groups, self.labels = take(self.groups, stay), take(self.labels, stay)
        self.centers, self.sums = self.centers[stay], self.sums.of_runs(stay)
        self.within = self.within[stay]

    def found(self) -> Descended:
        """Return all runs, in the order in which they were given."""
        runs, parts = zip(*self.ended, strict=True)
        if len(parts) == 1:
            return parts[0]
        arrays, order = self.table.arrays, np.argsort(np.concatenate(runs))
        groups, labels, within, converged = zip(*parts, strict=True)
        return Descended(
            arrays.take(arrays.join(groups), order),
            arrays.take(arrays.join(labels), order),
            np.concatenate(within)[order],
            np.concatenate(converged)[order],
        )

    def _update_centers(self, assignment: Assignment) -> None:
        before: Any = self.centers
        if not self.sums.counts.all():
            arrays = self.table.arrays
            filled = arrays.fill_empty(self.groups, self.sums.counts, assignment.costs)
            self.table.shift(self.sums, self.groups, filled)
            self.groups = filled
        self.centers = self.sums.means()
        if not self.sums.counts.all():
            empty = self.sums.counts == 0
            self.centers[empty] = before[empty]
