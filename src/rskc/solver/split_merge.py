"""Split and merge: a way out of local optima where there are many clusters.

Lloyd's iterations cannot carry a center from where there are too many to where there are too few,
and with K clusters the chance that a start has none misplaced falls like c^-K: restarts do not
help. So centers are added where the sum is large, a few iterations are made with too many, and
then the pairs of clusters are merged whose merging costs least: that cost is exact, and known
from means and counts alone. What is better is kept; when nothing is, fewer centers are added.

The idea is that of breathing k-means (Fritzke, arXiv:2006.15666), which removes the centers of
least utility, found by the second-best center of each case. Merging pairs needs no such pass over
the data and led to sums as low.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rskc.engines import Sums, Table
from rskc.solver.partition import Partitions, lloyd
from rskc.solver.problem import Problem
from rskc.solver.starts import GOLDEN

# Centers added at first, and iterations made with them.
MOST_ADDED, GROWN_ITERATIONS = 5, 4
# How far towards a case the center of its cluster is split.
SPLIT_STEP = 0.1
# A round counts if the within sum falls by more than this share.
GAIN = 1e-4
# So many rounds at most: 10 to 25 are usual.
MOST_ROUNDS = 100


def split_and_merge(
    table: Table, start: Partitions, problem: Problem, uniforms: np.ndarray
) -> Partitions:
    """Improve partitions by adding and merging centers until that gains nothing in any of them.

    ``uniforms`` (runs,) say where in each run the draws of new centers begin.
    """
    best, added = start, min(MOST_ADDED, problem.n_clusters)
    for round_ in range(MOST_ROUNDS):
        shifts = 1 + np.arange(round_ * MOST_ADDED, round_ * MOST_ADDED + added)
        draws = (uniforms[:, None] + GOLDEN * shifts) % 1.0
        found = lloyd(table, _exchanged(table, best, problem, draws), problem)
        better = np.flatnonzero(found.within < best.within * (1 - GAIN))
        if len(better):
            best = best.replace(better, found.take(better))
        else:
            added -= 1
        if added == 0:
            break
    return best


def _exchanged(
    table: Table, partitions: Partitions, problem: Problem, uniforms: np.ndarray
) -> np.ndarray:
    """Return centers (runs, K, columns) after a few (runs, few) were added, and as many merged."""
    K, added = problem.n_clusters, uniforms.shape[1]
    centers = table.sums(partitions.groups, K).means()
    assignment = table.assign(centers)
    groups = table.trim(assignment, problem.n_trim).groups
    cases = table.cases(table.arrays.draw(assignment.costs, groups, uniforms))
    centers, seeds = split(centers, cases, table.weights)
    more = replace(problem, n_clusters=K + added, max_iter=GROWN_ITERATIONS, tol=0.0)
    grown = lloyd(table, np.concatenate([centers, seeds], axis=1), more)
    sums = table.sums(grown.groups, K + added)
    runs = [merged(sums.of_runs(slice(i, i + 1)), K, table.weights[0]) for i in range(len(grown))]
    return np.concatenate([run.means() for run in runs])


def split(
    centers: np.ndarray, cases: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Split the clusters of some cases (runs, few, columns): return their centers, and new ones.

    A center moves a little away from the case, and a new one is put a little towards it: so the
    cluster is cut at its center. The case itself would be no center where columns are many, since
    all other cases are farther from it than from their means.
    """
    known = np.nan_to_num(centers)
    off = known[:, None, :, :] - cases[:, :, None, :]
    own = np.einsum("rckj,rj,rckj->rck", off, np.broadcast_to(weights, known[:, 0].shape), off)
    own, runs = own.argmin(axis=2), np.arange(len(cases))[:, None]
    steps = SPLIT_STEP * (cases - known[runs, own])
    moved = centers.copy()
    np.subtract.at(moved, (runs, own), steps)
    return moved, centers[runs, own] + steps


def merged(sums: Sums, K: int, weights: np.ndarray) -> Sums:
    """Merge the clusters of one run, the cheapest pair first, until K are left.

    Merging clusters of n and m cases raises the within sum by n m / (n + m) times the squared
    distance of their means. Where cells are missing that is an approximation.
    """
    totals, counts = sums.totals[0].copy(), sums.counts[0].copy()
    means = np.nan_to_num(sums.means()[0])
    alive = np.ones(len(counts), bool)
    costs = _merging_costs(means, counts, weights)
    while np.count_nonzero(alive) > K:
        k, gone = np.unravel_index(costs.argmin(), costs.shape)
        totals[k] += totals[gone]
        counts[k] += counts[gone]
        alive[gone] = False
        means[k] = np.nan_to_num(type(sums)(totals[None, [k]], counts[None, [k]]).means()[0, 0])
        costs[gone], costs[:, gone] = np.inf, np.inf
        row = _merging_costs(means[[k]], counts[[k]], weights, means, counts)[0]
        row[~alive | (np.arange(len(row)) == k)] = np.inf
        costs[k], costs[:, k] = row, row
    return type(sums)(totals[None, alive], counts[None, alive])


def _merging_costs(means, counts, weights, others=None, other_counts=None):
    own = others is None
    others, other_counts = (means, counts) if own else (others, other_counts)
    weighted = means * weights
    squares = np.einsum("kj,kj->k", weighted, means)
    other_squares = np.einsum("kj,j,kj->k", others, weights, others)
    distances = np.maximum(squares[:, None] + other_squares - 2 * weighted @ others.T, 0)
    product, total = counts[:, None] * other_counts, counts[:, None] + other_counts
    costs = distances * product / np.maximum(total, 1)
    if own:
        np.fill_diagonal(costs, np.inf)
    return costs
