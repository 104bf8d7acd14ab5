"""Split and merge: a way out of local optima where there are many clusters.

Lloyd's iterations cannot carry a center from where there are too many to where there are too few,
and with K clusters the chance that a start has none misplaced falls like c^-K: restarts do not
help. So centers are added where the sum is large, a few iterations are made with too many, and
then the pairs of clusters are merged whose merging costs least: that cost is exact, and known
from means and counts alone. What is better is kept; when nothing is, fewer centers are added.

Where clusters are many, many centers may be misplaced, and whole clusters may be trimmed. So as
many centers are added first as there are, some of them at trimmed cases: what is merged again is
then the best of all exchanges at once. Of 200 clusters, 5 exchanges at a time found 182.

The idea is that of breathing k-means (Fritzke, arXiv:2006.15666), which removes the centers of
least utility, found by the second-best center of each case. Merging pairs needs no such pass over
the data and led to sums as low.
"""

from dataclasses import replace

import numpy as np

from rskc.engines import Partitions, Sums, Table
from rskc.engines.arrays import above_0, labels_of
from rskc.solver.alternate import Problem, lloyd

# One uniform number a center is drawn; the candidates of a greedy step are its shifts.
GOLDEN = 0.6180339887498949
# Centers added at first, and iterations made with them.
MOST_ADDED, GROWN_ITERATIONS = 5, 4
# Where several partitions are at hand one of them is soon freed: with 7 to 14 clusters a center for
# every 3 led to sums as low, in two thirds of the rounds. A single partition needs them all: of
# 10000 x 1000, K=10, three of five stayed .4% above.
SHARE_OF_SEVERAL = 3
# How far towards a case the center of its cluster is split.
SPLIT_STEP = 0.1
# From this number of clusters on centers are doubled first, and rounds begin anew until a cycle of
# them gains nothing; with 10 clusters that only takes time. Of 16 tables with 60 clusters (``make
# bench ARGS=blobs``, seeds 6 to 21) one stays 1.3% above the best sum that is known where centers
# are not doubled, and the cycles go on until two gain nothing; with doubling none does, sooner.
FEWEST_OF_DOUBLED = 20
# Where cases are trimmed, clusters may be too: of 12 clusters in 6 of 60 features, with 3% outlying
# rows, 10 were found without doubling and all with it. With 6 clusters it brought nothing.
FEWEST_TRIMMED = 12
# Iterations with twice as many. After 4 two of 200 clusters that are 6 deviations apart were still
# cut across.
DOUBLED_ITERATIONS = 8
# New centers at trimmed cases: so many on average in a cluster that is trimmed as a whole.
DRAWS_OF_LOST = 2
# Cases that cost more than this many times the mean kept case are trimmed while there are too many
# centers: those of a cluster whose center is one of its cases cost twice as much.
FAR_COST = 4.0
# Of too many clusters those are given up that have no more than a case, or than this share of the
# mean size: an outlying case alone costs much to merge.
SMALL_SHARE = 0.25
# A round counts if the within sum falls by more than this share: less where centers are doubled.
# With .0001 three of 227 tables of 10 to 200 clusters, two of them uniform, stayed .06% above
# scikit-learn's best of ten; with .00002 all are below, in up to three times the time, and tables
# with clusters take no longer. Of few clusters such gains are near what rounding decides.
LEAST_GAIN, LEAST_GAIN_OF_MANY = 1e-4, 2e-5
# The most rounds: 10 to 25 are usual, 50 with many clusters.
MOST_ROUNDS = 200


def split_and_merge(
    table: Table, start: Partitions, problem: Problem, uniforms: np.ndarray
) -> Partitions:
    """Improve partitions by adding and merging centers until that gains nothing in any of them.

    ``uniforms`` (runs,) say where in each run the draws of new centers begin.
    """
    most = min(MOST_ADDED, problem.n_clusters)
    many = problem.n_clusters >= (FEWEST_TRIMMED if problem.n_trim else FEWEST_OF_DOUBLED)
    if len(start) > 1:
        most = min(most, max(1, problem.n_clusters // SHARE_OF_SEVERAL))
    steps = [problem.n_clusters] * many + list(range(most, 0, -1))
    gain = LEAST_GAIN_OF_MANY if many else LEAST_GAIN
    best, drawn, step, gained = start, 0, 0, False
    for _ in range(MOST_ROUNDS):
        exchange = _doubled if many and step == 0 else _exchanged
        draws = (uniforms[:, None] + GOLDEN * (1 + drawn + np.arange(steps[step]))) % 1.0
        drawn += max(steps[step], MOST_ADDED)
        found = lloyd(table, exchange(table, best, problem, draws), problem)
        better = np.flatnonzero(found.within < best.within * (1 - gain))
        if len(better):
            best, gained = best.replace(better, found.take(better)), True
        else:
            step += 1
        if step == len(steps):  # the end of a cycle
            if not (many and gained):
                break
            step, gained = 0, False
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


def _doubled(
    table: Table, partitions: Partitions, problem: Problem, uniforms: np.ndarray
) -> np.ndarray:
    """Return centers (runs, K, columns) after as many (runs, K) were added, and merged."""
    K, arrays = problem.n_clusters, table.arrays
    n_lost = min(K - 1, int(np.ceil(DRAWS_OF_LOST * K * problem.n_trim / table.mass)))
    centers = table.sums(partitions.groups, K).means()
    labels, costs = table.assign(centers)
    cases = table.cases(arrays.draw(costs, partitions.groups, uniforms[:, n_lost:]))
    centers, n_trim = np.concatenate(split(centers, cases, table.weights), axis=1), problem.n_trim
    if n_lost:
        trimmed = labels_of(partitions.groups < 0) * 1.0  # any of them is drawn
        lost = table.cases(arrays.draw(trimmed, labels, uniforms[:, :n_lost]))
        centers = np.concatenate([centers, lost], axis=1)
        # No more than cost much more than the mean of their run.
        bars = (FAR_COST * (partitions.within / (table.mass - n_trim))).tolist()
        far = table.assign(centers).costs
        most = max(arrays.count(far[run, ...] > bar) for run, bar in enumerate(bars))
        n_trim = min(n_trim, int(most))
    more = replace(problem, n_clusters=2 * K, n_trim=n_trim, max_iter=DOUBLED_ITERATIONS, tol=0.0)
    sums = table.sums(lloyd(table, centers, more).groups, 2 * K)
    if n_lost:
        mean = sums.counts.sum(axis=1, keepdims=True) / (2 * K)
        small = sums.counts <= np.maximum(1, SMALL_SHARE * mean)
        sums.totals[small], sums.counts[small] = 0, 0
    return merged(sums, K, table.weights[0]).means()


def split(
    centers: np.ndarray, cases: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Split the clusters of some cases (runs, few, columns): return their centers, and new ones.

    A center moves a little away from the case, and a new one is put a little towards it: so the
    cluster is cut at its center. The case itself would be no center where columns are many, since
    all other cases are farther from it than from their means.
    """
    filled = np.nan_to_num(centers)
    off = filled[:, None, :, :] - cases[:, :, None, :]
    weights = np.broadcast_to(weights, filled[:, 0].shape)
    distances = np.einsum("rckj,rj,rckj->rck", off, weights, off)
    nearest, runs = distances.argmin(axis=2), np.arange(len(cases))[:, None]
    steps = SPLIT_STEP * (cases - filled[runs, nearest])
    moved = centers.copy()
    np.subtract.at(moved, (runs, nearest), steps)
    return moved, centers[runs, nearest] + steps


def merged(sums: Sums, K: int, weights: np.ndarray) -> Sums:
    """Merge the clusters of each run, the cheapest pair first, until K are left.

    Merging clusters of n and m cases raises the within sum by n m / (n + m) times the squared
    distance of their means. Where cells are missing that is an approximation.
    """
    kind, runs = type(sums), np.arange(len(sums.counts))
    totals, counts = _without_empty(sums, K)
    means, n = np.nan_to_num(kind(totals, counts).means()), counts.shape[1]
    gone = np.zeros(counts.shape, bool)
    costs = _merging_costs(means, counts, means, counts, weights)
    costs[:, np.arange(n), np.arange(n)] = np.inf
    nearest, least = costs.argmin(axis=2), costs.min(axis=2)
    for _ in range(n - K):
        one = least.argmin(axis=1)
        other = nearest[runs, one]
        totals[runs, one] += totals[runs, other]
        counts[runs, one] += counts[runs, other]
        gone[runs, other] = True
        joined = kind(totals[runs, one][:, None], counts[runs, one][:, None])
        means[runs, one] = np.nan_to_num(joined.means()[:, 0])
        joined_means = means[runs, one][:, None]
        row = _merging_costs(joined_means, joined.counts, means, counts, weights)[:, 0]
        row[gone] = np.inf
        row[runs, one] = np.inf
        costs[runs, other], costs[runs, :, other] = np.inf, np.inf
        costs[runs, one], costs[runs, :, one] = row, row
        changed = (nearest == one[:, None]) | (nearest == other[:, None]) | (row < least)
        changed[runs, one], changed[runs, other] = True, True
        run, at = np.nonzero(changed)
        nearest[run, at] = costs[run, at].argmin(axis=1)
        least[run, at] = costs[run, at, nearest[run, at]]
    left = ~gone
    return kind(totals[left].reshape(len(runs), K, -1), counts[left].reshape(len(runs), K))


def _without_empty(sums: Sums, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Return totals and counts without as many empty clusters as each run can spare.

    One that is empty is the nearest of all others: each merge of one would look at all pairs.
    """
    empty, n = sums.counts == 0, sums.counts.shape[1]
    spared = min(n - K, int(empty.sum(axis=1).min()))
    left = ~(empty & (empty.cumsum(axis=1) <= spared))
    shape = len(empty), n - spared
    return sums.totals[left].reshape(*shape, -1), sums.counts[left].reshape(shape)


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
