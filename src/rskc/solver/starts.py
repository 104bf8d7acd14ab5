"""Starting centers: which cases each restart begins with.

Every draw is made before the first batch, so that cutting the restarts into batches changes
nothing.
"""

from __future__ import annotations

import numpy as np

from rskc.engines import Table


def random_cases(table: Table, uniforms: np.ndarray, n_trim: int) -> np.ndarray:
    """Draw K different cases for each run, all subsets equally likely (Floyd's algorithm)."""
    runs, K = uniforms.shape
    chosen = np.empty((runs, K), np.int64)
    for k in range(K):
        last = table.n_cases - K + k
        draw = np.minimum((uniforms[:, k] * (last + 1)).astype(np.int64), last)
        taken = (chosen[:, :k] == draw[:, None]).any(axis=1)
        chosen[:, k] = np.where(taken, last, draw)
    return chosen


def plusplus_cases(table: Table, uniforms: np.ndarray, n_trim: int) -> np.ndarray:
    """k-means++: draw each next case in proportion to its distance from those before it."""
    first = (uniforms[:, 0] * table.n_cases).astype(np.int64)
    return _spread(table, first, uniforms, 0)


def robust_cases(table: Table, uniforms: np.ndarray, n_trim: int) -> np.ndarray:
    """k-means++ that outlying cases cannot capture.

    The ``n_trim`` cases farthest from the centers chosen so far cannot be drawn, and the first
    center is the most central of a few: the one with the least sum of distances to the others, the
    ``n_trim`` farthest left out.
    """
    trials = _first_trials(uniforms[:, 0], table.n_cases)
    sums = np.stack([_kept_costs(table, cases, n_trim) for cases in trials])
    first = np.take_along_axis(trials, sums.argmin(axis=0)[None], axis=0)[0]
    return _spread(table, first, uniforms, n_trim)


INITS = {"random": random_cases, "k-means++": plusplus_cases, "robust": robust_cases}


def _first_trials(uniforms: np.ndarray, n: int, count: int = 3) -> np.ndarray:
    """Make several cases (count, runs) out of one uniform number each, by the golden ratio."""
    shifted = (uniforms + np.arange(count)[:, None] * 0.6180339887498949) % 1.0
    return (shifted * n).astype(np.int64)


def _kept_costs(table: Table, cases: np.ndarray, n_trim: int) -> np.ndarray:
    return table.trim(table.assign(table.cases(cases)[:, None, :]), n_trim).within


def _spread(table: Table, first: np.ndarray, uniforms: np.ndarray, n_trim: int) -> np.ndarray:
    """Choose the second to the last case of each run by its distance to those before it."""
    runs, K = uniforms.shape
    chosen = np.empty((runs, K), np.int64)
    chosen[:, 0] = first
    least = None
    for k in range(1, K):
        assignment = table.assign(table.cases(chosen[:, k - 1])[:, None, :])
        costs = assignment.costs
        least = costs if least is None else table.arrays.lesser(least, costs)
        groups = table.trim(assignment._replace(costs=least), n_trim).groups
        chosen[:, k] = table.arrays.draw(least, groups, uniforms[:, k])
    return chosen
