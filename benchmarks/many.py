"""Many clusters and wide tables: scikit-learn's KMeans with its ten best starts beside the default.

Within sums are those of K-means, `trim=0, l1_bound=None`, as a ratio to scikit-learn's with
`n_init=10`, one thread. Below them, robust and sparse with 3% outlying cases against K-means that
is told the true features, or their true weights too, and wide tables.
"""

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs
from threadpoolctl import threadpool_limits

from benchmarks.timing import best_of, print_table, times
from rskc import RobustSparseKMeans
from rskc.metrics import classification_error_rate

SEEDS = (0, 1)


def mixture(n, p, K, seed, outlying=0.0):
    """A normal mixture with centers N(0, 1); single outlying cells of 10 to 20."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(K, p))[rng.integers(0, K, n)] + rng.normal(size=(n, p))
    cases = rng.choice(n, int(outlying * n), replace=False)
    X[cases, rng.integers(0, p, len(cases))] += rng.uniform(10, 20, len(cases))
    return X


def digits(seed):
    return np.ascontiguousarray(load_digits().data)


TABLES = {
    "blobs 10000 x 10, K=30": (
        lambda seed: make_blobs(10000, 10, centers=30, cluster_std=2, random_state=seed)[0], 30,
    ),
    "mixture 20000 x 200, K=10, 2% cells": (lambda seed: mixture(20000, 200, 10, seed, 0.02), 10),
    "mixture 5000 x 20, K=50": (lambda seed: mixture(5000, 20, 50, seed), 50),
    "uniform 5000 x 2, K=100": (
        lambda seed: np.random.default_rng(seed).uniform(size=(5000, 2)), 100,
    ),
    "digits, K=10": (digits, 10),
    "digits, K=50": (digits, 50),
}  # fmt: skip


def sparse_table(K, seed, p=100, informative=20):
    """100 cases a cluster that differ in 20 of 100 features; 3% of them with 3 outlying cells."""
    rng = np.random.default_rng([seed, K])
    n = 100 * K
    labels = np.arange(n) % K
    X = rng.normal(size=(n, p))
    X[:, :informative] += 1.2 * rng.normal(size=(K, informative))[labels]
    outlying = rng.choice(n, int(0.03 * n), replace=False)
    for case in outlying:
        cells = rng.choice(p, 3, replace=False)
        X[case, cells] += rng.choice([-1, 1], 3) * rng.uniform(10, 20, 3)
    return X, labels, ~np.isin(np.arange(n), outlying)


def wide_table(n, p, K=10, informative=50):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    X[:, :informative] += rng.normal(size=(K, informative))[np.arange(n) % K]
    return X


def main() -> None:
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        within_sums()
        many_sparse_clusters()
        wide_tables()
        a_million_cases()


def within_sums() -> None:
    rows = []
    for name, (data, K) in TABLES.items():
        sums, ratios = [], []
        for seed in SEEDS:
            X, ours = data(seed), kmeans(K, seed)
            theirs = KMeans(K, n_init=10, random_state=seed)
            seconds = best_of(2, lambda: theirs.fit(X), lambda: ours.fit(X))  # noqa: B023
            sums.append(ours.inertia_ / theirs.inertia_)
            ratios.append(seconds[0] / seconds[1])
        rows.append((name, *(f"{ratio:.4f}" for ratio in sums), *map(times, ratios)))
    seeds = [f"seed {seed}" for seed in SEEDS]
    header = (
        "table",
        *(f"within, {seed}" for seed in seeds),
        *(f"faster, {seed}" for seed in seeds),
    )
    print_table("K-means of many clusters against scikit-learn, n_init=10", header, rows)


def kmeans(K, seed):
    return RobustSparseKMeans(K, trim=0, l1_bound=None, random_state=seed, n_threads=1)


def many_sparse_clusters() -> None:
    """Print the errors beside those of K-means that knows the features, and the weights too.

    The second shows what is left to search for: weights in proportion to B_j are part of the
    criterion, and no search makes the classes that equal weights would.
    """
    rows = []
    for K in (10, 20, 30, 50):
        errors = []
        for seed in range(3):
            X, labels, clean = sparse_table(K, seed)
            ours = RobustSparseKMeans(K, trim=0.1, random_state=seed, n_threads=1).fit(X)
            told, known = X[clean, :20], labels[clean]
            weights = np.sqrt(between(told, known))
            theirs = [KMeans(K, n_init=10, random_state=seed) for _ in range(2)]
            found = [ours.labels_[clean], theirs[0].fit_predict(told)]
            found.append(theirs[1].fit_predict(told * weights))
            errors.append([classification_error_rate(each, known) for each in found])
        mine, told, weighted = np.mean(errors, axis=0)
        cells = (mine, told, weighted)
        rows.append((f"K={K}", *(f"{cell:.4f}" for cell in cells), f"{mine - told:+.4f}"))
    header = (
        "100 cases a cluster, 20 of 100 features",
        "rskc",
        "told the features",
        "told their weights too",
        "rskc - told the features",
    )
    print_table("CER of the clean cases, robust and sparse; means of 3 seeds", header, rows)


def between(X, labels):
    """B_j of the true classes."""
    means = np.array([X[labels == k].mean(axis=0) for k in np.unique(labels)])
    return (np.bincount(labels)[:, None] * (means - X.mean(axis=0)) ** 2).sum(axis=0)


def a_million_cases() -> None:
    """Print both defaults where three clusters exist and five are asked for: slow to converge."""
    rows = []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1_000_000, 50))
        X[:, :10] += 3 * rng.normal(size=(3, 10))[np.arange(len(X)) % 3]
        theirs, ours = KMeans(5, random_state=seed), kmeans(5, seed)
        base, mine = best_of(1, lambda: theirs.fit(X), lambda: ours.fit(X))  # noqa: B023
        ratio = ours.inertia_ / theirs.inertia_
        rows.append((f"seed {seed}", f"{ratio:.4f}", times(base / mine)))
    header = ("1000000 x 50, K=5, n_init=1 there", "within", "faster")
    print_table("K-means of a million cases, the defaults of both", header, rows)


def wide_tables() -> None:
    rows = []
    for n, p in ((3000, 1000), (5000, 2000), (10000, 1000)):
        X, theirs = wide_table(n, p), KMeans(10, n_init=10, random_state=0)
        plain = kmeans(10, 0)
        sparse = RobustSparseKMeans(10, trim=0.1, random_state=0, n_threads=1)
        fits = (lambda: theirs.fit(X), lambda: plain.fit(X), lambda: sparse.fit(X))  # noqa: B023
        base, one, other = best_of(1, *fits)
        ratio = plain.inertia_ / theirs.inertia_
        rows.append((f"{n} x {p}, K=10", f"{ratio:.4f}", times(base / one), times(base / other)))
    header = ("table", "within, K-means", "K-means faster", "robust sparse faster")
    print_table("Wide tables against scikit-learn's KMeans, n_init=10", header, rows)
