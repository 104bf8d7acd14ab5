"""Starting centers: which cases each restart begins with.

Every draw is made before the first batch, so that cutting the restarts into batches changes
nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rskc.engines import Table

# One uniform number a center is drawn; the candidates of a greedy step are its shifts.
GOLDEN = 0.6180339887498949
# From this number of clusters on a start must be good by itself: random starts hardly ever have
# all centers in place.
MANY_CLUSTERS = 6


def random_cases(table: Table, uniforms: np.ndarray, n_trim: float) -> np.ndarray:
    """Draw K different cases for each run, all subsets equally likely (Floyd's algorithm).

    Where cases have masses, these are K of their copies.
    """
    runs, K = uniforms.shape
    copies = int(table.mass)
    chosen = np.empty((runs, K), np.int64)
    for k in range(K):
        last = copies - K + k
        draw = np.minimum((uniforms[:, k] * (last + 1)).astype(np.int64), last)
        taken = (chosen[:, :k] == draw[:, None]).any(axis=1)
        chosen[:, k] = np.where(taken, last, draw)
    return table.cases_at((chosen + 0.5) * (table.mass / copies))


def plusplus_cases(table: Table, uniforms: np.ndarray, n_trim: float) -> np.ndarray:
    """k-means++: draw each next case in proportion to its distance from those before it.

    For many clusters greedily, as scikit-learn does: of 2 + log(K) cases that are drawn, the one is
    taken that lowers the sum most.
    """
    first = table.cases_at(uniforms[:, :1] * table.mass)
    return np.hstack([first, spread_cases(table, table.cases(first), uniforms[:, 1:], 0)])


def robust_cases(table: Table, uniforms: np.ndarray, n_trim: float) -> np.ndarray:
    """Greedy k-means++ that outlying cases cannot capture.

    The ``n_trim`` cases farthest from the centers chosen so far are neither drawn nor counted in
    the sum, and the first center is the most central of a few: the one with the least such sum.
    """
    shifts = np.arange(3) * GOLDEN
    trials = table.cases_at((uniforms[:, :1] + shifts) % 1.0 * table.mass)
    centers = table.cases(trials.ravel())[:, None, :]
    sums = table.trim(table.assign(centers), n_trim).within.reshape(trials.shape)
    first = np.take_along_axis(trials, sums.argmin(axis=1)[:, None], axis=1)
    return np.hstack([first, spread_cases(table, table.cases(first), uniforms[:, 1:], n_trim)])


INITS = {"random": random_cases, "k-means++": plusplus_cases, "robust": robust_cases}


def trials_for(K: int) -> int:
    """Return the number of candidates in each step: 1 where few clusters are found by restarts."""
    return 1 if K < MANY_CLUSTERS else 2 + int(np.log(K))


def spread_cases(
    table: Table, centers: np.ndarray, uniforms: np.ndarray, n_trim: float
) -> np.ndarray:
    """Choose further cases (runs, m) beside centers (runs, K, columns), one for each uniform.

    Candidates are drawn in proportion to their distance from the nearest center, the ``n_trim``
    farthest excluded; the one that lowers the sum over the other cases most is taken.
    """
    arrays, (runs, m) = table.arrays, uniforms.shape
    chosen = np.empty((runs, m), np.int64)
    trials = trials_for(centers.shape[1] + m)
    each, shifts = np.repeat(np.arange(runs), trials), np.arange(trials) / trials
    assignment = table.assign(centers)
    costs, groups = assignment.costs, table.trim(assignment, n_trim).groups
    for k in range(m):
        drawn = arrays.draw(costs, groups, (uniforms[:, k, None] + shifts) % 1.0)
        assignment = table.assign(table.cases(drawn.ravel())[:, None, :])
        lower: Any = arrays.lesser(assignment.costs, arrays.take(costs, each))
        trimmed = table.trim(assignment._replace(costs=lower), n_trim)
        best = trimmed.within.reshape(runs, trials).argmin(axis=1)
        chosen[:, k] = drawn[np.arange(runs), best]
        rows = np.arange(runs) * trials + best
        costs, groups = arrays.take(lower, rows), arrays.take(trimmed.groups, rows)
    return chosen
