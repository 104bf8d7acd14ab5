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
from rskc.engines.sums import above_0
from rskc.solver.partition import Partitions, lloyd
from rskc.solver.problem import Problem
from rskc.solver.starts import GOLDEN

# Centers added at first, and iterations made with them.
MOST_ADDED, GROWN_ITERATIONS = 5, 4
# Where several partitions are at hand one of them is soon freed: with 7 to 14 clusters a center for
# every 3 led to sums as low, in two thirds of the rounds. A single partition needs them all: of
# 10000 x 1000, K=10, three of five stayed .4% above.
SHARE_OF_SEVERAL = 3
# How far towards a case the center of its cluster is split.
SPLIT_STEP = 0.1
# From this number of clusters on the rounds begin anew until this many cycles in a row have gained
# nothing; with 10 clusters that only takes time. Of 20 tables with 60 clusters (``make bench
# ARGS=blobs``, seeds 6 to 25) two stayed 2% above scikit-learn's KMeans with n_init=10 where one
# such cycle was enough, none with two; nor did any of the seeds 26 to 39, on which it was judged.
FEWEST_OF_CYCLES, IDLE_CYCLES = 20, 2
# A round counts if the within sum falls by more than this share.
GAIN = 1e-4
# The most rounds: 10 to 25 are usual, 50 with many clusters.
MOST_ROUNDS = 200


def split_and_merge(
    table: Table, start: Partitions, problem: Problem, uniforms: np.ndarray
) -> Partitions:
    """Improve partitions by adding and merging centers until that gains nothing in any of them.

    ``uniforms`` (runs,) say where in each run the draws of new centers begin.
    """
    most = min(MOST_ADDED, problem.n_clusters)
    if len(start) > 1:
        most = min(most, max(1, problem.n_clusters // SHARE_OF_SEVERAL))
    patience = IDLE_CYCLES if problem.n_clusters >= FEWEST_OF_CYCLES else 0
    best, added, gained, idle = start, most, False, 0
    for round_ in range(MOST_ROUNDS):
        shifts = 1 + np.arange(round_ * MOST_ADDED, round_ * MOST_ADDED + added)
        draws = (uniforms[:, None] + GOLDEN * shifts) % 1.0
        found = lloyd(table, _exchanged(table, best, problem, draws), problem)
        better = np.flatnonzero(found.within < best.within * (1 - GAIN))
        if len(better):
            best, gained = best.replace(better, found.take(better)), True
        else:
            added -= 1
        if added == 0:  # the end of a cycle
            idle = 0 if gained else idle + 1
            if idle >= patience:
                break
            added, gained = most, False
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
    return merged(table.sums(grown.groups, K + added), K, table.weights[0]).means()


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
    """Merge the clusters of each run, the cheapest pair first, until K are left.

    Merging clusters of n and m cases raises the within sum by n m / (n + m) times the squared
    distance of their means. Where cells are missing that is an approximation.
    """
    kind, totals, counts = type(sums), sums.totals.copy(), sums.counts.copy()
    means = np.nan_to_num(sums.means())
    runs, n = np.arange(len(counts)), counts.shape[1]
    gone = np.zeros(counts.shape, bool)
    costs = _merging_costs(means, counts, means, counts, weights)
    costs[:, np.arange(n), np.arange(n)] = np.inf
    for _ in range(n - K):
        one, other = np.divmod(costs.reshape(len(runs), -1).argmin(axis=1), n)
        totals[runs, one] += totals[runs, other]
        counts[runs, one] += counts[runs, other]
        gone[runs, other] = True
        joined = kind(totals[runs, one][:, None], counts[runs, one][:, None])
        means[runs, one] = np.nan_to_num(joined.means()[:, 0])
        own = means[runs, one][:, None]
        row = _merging_costs(own, joined.counts, means, counts, weights)[:, 0]
        row[gone] = np.inf
        row[runs, one] = np.inf
        costs[runs, other], costs[runs, :, other] = np.inf, np.inf
        costs[runs, one], costs[runs, :, one] = row, row
    left = ~gone
    return kind(totals[left].reshape(len(runs), K, -1), counts[left].reshape(len(runs), K))


def _merging_costs(
    means: np.ndarray,
    counts: np.ndarray,
    others: np.ndarray,
    other_counts: np.ndarray,
    weights: np.ndarray,
) -> np.ndarray:
    """Return by how much the sum rises (runs, a, b) when one of a clusters joins one of b."""
    weighted = means * weights
    squares = np.einsum("rkj,rkj->rk", weighted, means)[:, :, None]
    other_squares = np.einsum("rkj,j,rkj->rk", others, weights, others)[:, None, :]
    distances = squares + other_squares - 2 * weighted @ others.transpose(0, 2, 1)
    n, m = counts[:, :, None], other_counts[:, None, :]
    return np.maximum(distances, 0) * n * m / above_0(n + m)
