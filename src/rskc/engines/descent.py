"""Descents by passes: runs of trimmed Lloyd where no compiled pass makes them whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from rskc.engines.contract.results import Partitions
from rskc.engines.sums import Sums


def descend_by_passes(
    table: Any, centers: np.ndarray, m: float, max_iter: int, tol: float
) -> Partitions:
    """Run trimmed Lloyd from each of the centers (runs, K, columns), in one batch.

    A run leaves the batch when it has ended.
    """
    runs, converged = np.arange(len(centers)), np.zeros(len(centers), bool)
    ended_runs, ended = [], []
    assignment = table.assign(centers)
    groups, within = table.trim(assignment, m)
    sums = table.sums(groups, centers.shape[1])
    for iteration in range(max_iter + 1):
        if iteration:
            assignment = table.assign(centers)
            before = within
            groups, within, moved = table.regroup(assignment, m, sums, groups)
            # A sum that no longer falls goes round in ties or in rounding.
            converged = (moved == 0) | (within >= before * (1 - tol))
        groups = _without_empty(table, groups, sums, assignment.costs)
        # A cluster that is empty all the same keeps its center.
        centers = np.where((sums.counts == 0)[:, :, None], centers, sums.means())
        now = Partitions(groups, assignment.labels, within, converged, table.arrays)
        del assignment  # of blocks, it is kept while somebody may ask for it
        done = converged | (iteration == max_iter)
        if done.any():
            ended_runs.append(runs[done])
            ended.append(now.take(np.flatnonzero(done)))
            if done.all():
                break
            stay = np.flatnonzero(~done)
            table, runs, now = table.of_runs(stay), runs[stay], now.take(stay)
            groups, within, centers = now.groups, now.within, centers[stay]
            sums = sums.of_runs(stay)
    if len(ended) == 1:
        return ended[0]
    return ended[0].join(*ended[1:]).take(np.argsort(np.concatenate(ended_runs)))


def _without_empty(table: Any, groups: Any, sums: Sums, costs: Any) -> Any:
    """Return groups in which empty ones have a case; their sums follow."""
    if sums.counts.all():
        return groups
    filled = table.arrays.fill_empty(groups, sums.counts, costs)
    table.shift(sums, groups, filled)
    return filled
