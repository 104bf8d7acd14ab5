"""Greedy starts, and centers that are added and merged."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from rskc import RobustSparseKMeans
from rskc.engines import engine_for
from rskc.solver import Problem
from rskc.solver.alternate import lloyd
from rskc.solver.search import spread_cases
from rskc.solver.split_merge import merged, split_and_merge


def table_of(X):
    engine = engine_for(np.ascontiguousarray(X))
    return engine.table(engine.equal_weights())


def within_of(X, groups):
    parts = [X[groups == k] for k in np.unique(groups)]
    return sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts)


def blobs(seed=0, K=12, n=600):
    return make_blobs(n, 4, centers=K, cluster_std=0.4, random_state=seed)


def test_the_pair_is_merged_whose_merging_raises_the_within_sum_least():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(60, 3)), (np.arange(60) % 5).astype(np.int32)
    table = table_of(X)
    sums = table.sums(groups[None], 5)
    pairs = [(a, b) for a in range(5) for b in range(a + 1, 5)]
    a, b = min(pairs, key=lambda pair: within_of(X, np.where(groups == pair[1], pair[0], groups)))
    left = merged(sums, 4, np.ones(3))
    expected = np.delete(sums.totals[0], b, axis=0)
    expected[a] += sums.totals[0, b]
    assert_allclose(left.totals[0], expected)
    assert_array_equal(left.counts[0], [24 if k == a else 12 for k in range(5) if k != b])


def test_runs_are_merged_as_if_each_were_alone():
    rng = np.random.default_rng(1)
    table, groups = table_of(rng.normal(size=(90, 4))), rng.integers(-1, 9, (5, 90), np.int32)
    sums, weights = table.sums(groups, 9), rng.random(4)
    together = merged(sums, 5, weights)
    for run in range(5):
        alone = merged(sums.of_runs(slice(run, run + 1)), 5, weights)
        assert_array_equal(together.totals[run], alone.totals[0])
        assert_array_equal(together.counts[run], alone.counts[0])


def test_empty_clusters_are_merged_first():
    rng = np.random.default_rng(2)
    table, groups = table_of(rng.normal(size=(90, 4))), rng.integers(0, 6, (2, 90), np.int32)
    sums, weights = table.sums(groups, 6), rng.random(4)
    spread = type(sums).empty(2, 9, 4)
    for run, places in enumerate([[0, 1, 3, 4, 6, 8], [1, 2, 4, 5, 6, 7]]):
        spread.totals[run, places], spread.counts[run, places] = sums.totals[run], sums.counts[run]
    for K in (4, 6):
        assert_array_equal(merged(spread, K, weights).totals, merged(sums, K, weights).totals)
    assert (merged(spread, 7, weights).counts == 0).sum() == 2


@pytest.mark.parametrize("n_trim", [0, 30])
def test_misplaced_centers_find_their_place(n_trim):
    """Two centers in one cluster and one in two others: Lloyd cannot mend it."""
    X, y = blobs()
    if n_trim:
        X = X.copy()
        X[:n_trim:2] += 300  # half of what may be trimmed
    table, problem = table_of(X), Problem(12, n_trim=n_trim, tol=1e-6)
    centers = table.cases(np.array([np.flatnonzero(y == k)[-1] for k in range(12)]))
    centers[1] = table.cases(np.array([np.flatnonzero(y == 0)[-5]]))[0]
    stuck = lloyd(table, centers[None], problem)
    found = split_and_merge(table, stuck, problem, np.array([0.3]))
    true = lloyd(table, table.sums(y[None].astype(np.int32), 12).means(), problem)
    assert found.within[0] < 0.8 * stuck.within[0]
    assert found.within[0] <= true.within[0] * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_split_and_merge_never_raises_the_sum(seed):
    X = np.random.default_rng(seed).uniform(size=(300, 2))
    table, problem = table_of(X), Problem(20, n_trim=10, tol=1e-4)
    start = lloyd(table, table.cases(np.arange(40).reshape(2, 20)), problem)
    found = split_and_merge(table, start, problem, np.array([0.1, 0.7]))
    assert (found.within <= start.within).all()
    assert_array_equal((found.groups < 0).sum(axis=1), 10)


def test_each_greedy_step_takes_the_candidate_that_lowers_the_sum_most():
    X = np.random.default_rng(3).normal(size=(80, 2))
    table, uniforms = table_of(X), np.array([[0.37]])
    centers = table.cases(np.arange(7))[None]
    chosen = spread_cases(table, centers, uniforms, 0)[0, 0]
    distances = ((X[:, None] - X[None, :7]) ** 2).sum(2).min(1)
    ladder = np.cumsum(distances)
    trials = 2 + int(np.log(8))
    goals = (0.37 + np.arange(trials) / trials) % 1 * ladder[-1]
    drawn = np.searchsorted(ladder, goals, side="right")
    sums = [np.minimum(distances, ((X - X[i]) ** 2).sum(1)).sum() for i in drawn]
    assert chosen == drawn[int(np.argmin(sums))]


@pytest.mark.parametrize(("K", "seed"), [(10, 0), (25, 1), (60, 2)])
def test_many_clusters_are_found_as_well_as_by_ten_starts_of_scikit_learn(K, seed):
    X = make_blobs(1500, 5, centers=K, cluster_std=2.0, random_state=seed)[0]
    theirs = KMeans(K, n_init=10, random_state=seed).fit(X).inertia_
    ours = RobustSparseKMeans(K, trim=0, l1_bound=None, random_state=seed).fit(X).inertia_
    assert ours <= theirs * 1.001


def many_clusters(K, n, share, seed):
    """Clusters 2.2 deviations apart in 20 of 30 features, and rows times 6."""
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(n, 30)), np.arange(n) % K
    X[:, :20] += 2.2 * rng.normal(size=(K, 20))[labels]
    outlying = np.arange(n) % round(1 / share) == 0
    X[outlying] *= 6
    return X, labels, outlying


def test_clusters_that_were_trimmed_as_a_whole_are_found_again():
    """Eight of 40 clusters are among the trimmed cases, and eight others have two centers."""
    X, labels, outlying = many_clusters(40, 1200, 0.02, 0)
    table, problem = table_of(X), Problem(40, n_trim=270, tol=1e-4)
    known = table.sums(np.where(outlying, -1, labels)[None].astype(np.int32), 40).means()
    known[:, :8] = known[:, 8:16] + 0.01
    stuck = lloyd(table, known, problem)
    found = split_and_merge(table, stuck, problem, np.array([0.3]))
    kept = (found.groups[0] >= 0) & ~outlying
    assert not (found.groups[0][outlying] >= 0).any()
    assert (np.bincount(labels[kept]) >= 15).all()  # of 30
    shared = np.unique(np.stack([labels[kept], found.groups[0][kept]]), axis=1)
    assert shared.shape[1] == 40


@pytest.mark.parametrize(("share", "seed"), [(0.01, 0), (0.05, 1)])
def test_many_clusters_and_outlying_rows_with_nothing_but_k(share, seed):
    X, labels, outlying = many_clusters(40, 1600, share, seed)
    model = RobustSparseKMeans(40, random_state=seed, n_threads=1).fit(X)
    pairs = np.stack([labels[~outlying], model.labels_[~outlying]])
    assert np.unique(pairs, axis=1).shape[1] == 40
    assert model.outliers_[outlying].all()
    assert model.outliers_[~outlying].mean() <= 0.01
    assert model.get_support()[:20].all()


def test_given_centers_are_not_led_elsewhere():
    """Who gives centers wants the optimum that they lead to."""
    X, y = blobs()
    centers = np.array([X[np.flatnonzero(y == k)[-1]] for k in range(12)])
    centers[1] = X[np.flatnonzero(y == 0)[-5]]
    model = RobustSparseKMeans(12, trim=0, l1_bound=None, init=centers).fit(X)
    found = RobustSparseKMeans(12, trim=0, l1_bound=None, random_state=0).fit(X)
    assert model.inertia_ > 1.2 * found.inertia_
