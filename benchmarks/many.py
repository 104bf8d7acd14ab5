"""Many clusters and wide tables: scikit-learn's KMeans with its ten best starts beside the default.

Within sums are those of K-means, `trim=0, l1_bound=None`, as a ratio to scikit-learn's with
`n_init=10`, one thread. Below them, robust and sparse with 3% outlying cases against K-means that
is told the true features, or their true weights too, and wide tables. First of all, clusters and
outlying rows with nothing but K given, which ``python -m benchmarks many.outlying_rows`` prints
alone.
"""

import time

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs

from benchmarks.data import normal_clusters
from benchmarks.declare import Rows, benchmark
from benchmarks.timing import best_of, seconds
from rskc import RobustSparseKMeans
from rskc.metrics import classification_error_rate


def mixture(n, p, K, seed, outlying=0.0):
    """A normal mixture with centers N(0, 1); single outlying cells of 10 to 20."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(K, p))[rng.integers(0, K, n)] + rng.normal(size=(n, p))
    cases = rng.choice(n, int(outlying * n), replace=False)
    X[cases, rng.integers(0, p, len(cases))] += rng.uniform(10, 20, len(cases))
    return X


def million(seed):
    """Three clusters, where five are asked for: slow to converge."""
    return normal_clusters(np.random.default_rng(seed), np.arange(1_000_000) % 3, 50, 10, 3.0)


TABLES = {  # data of a seed, number of clusters
    "blobs 10000 x 10, K=30": (
        lambda seed: make_blobs(10000, 10, centers=30, cluster_std=2, random_state=seed)[0], 30,
    ),
    "mixture 20000 x 200, K=10, 2% cells": (lambda seed: mixture(20000, 200, 10, seed, 0.02), 10),
    "mixture 5000 x 20, K=50": (lambda seed: mixture(5000, 20, 50, seed), 50),
    "uniform 5000 x 2, K=100": (
        lambda seed: np.random.default_rng(seed).uniform(size=(5000, 2)), 100,
    ),
    "digits, K=10": (lambda seed: load_digits().data, 10),
    "digits, K=50": (lambda seed: load_digits().data, 50),
    "1000000 x 50, K=5; n_init=1 there": (million, 5),
}  # fmt: skip
# Clusters, cases, and the share of these that is outlying.
OUTLYING = (
    (5, 500, 0.05), (10, 1000, 0.05),
    (20, 10_000, 0.01), (20, 10_000, 0.05), (50, 10_000, 0.01), (50, 10_000, 0.05),
    (100, 10_000, 0.01), (100, 10_000, 0.05), (200, 20_000, 0.02), (200, 20_000, 0.05),
)  # fmt: skip


@benchmark(
    "Nothing but K given, {seeds} seeds",
    "K, cases, outlying | clusters found {:.1%} | clean flagged {:.2%} | "
    "outlying found {:.3f} | CER {:.5f} | false features {:.1f} | time over given {:.1f}x",
    threads=1,
)
def outlying_rows(seeds: int = 3, first: int = 40, most: int = len(OUTLYING)) -> Rows:
    """Time is over that with trim and the number of features given.

    Seeds from 40 on played no part in settling solver/split_merge.py and model/automatic.py.
    """
    for K, n, share in OUTLYING[:most]:
        means = np.mean([_recovery(K, n, share, first + i) for i in range(seeds)], axis=0)
        yield f"{K}, {n}, {share:.0%}", *means


def _recovery(K, n, share, seed):
    """A cluster is found if 3/4 of its clean cases are in one, of whose these are 3/4.

    Clusters are 2.2 deviations apart in 20 of 60 features; outlying rows are times 6.
    """
    rng = np.random.default_rng([seed, K])
    labels = rng.integers(0, K, n)
    X = normal_clusters(rng, labels, 60, 20, 2.2)
    outlying = np.isin(np.arange(n), rng.choice(n, round(share * n), replace=False))
    X[outlying] *= 6
    options = {"random_state": seed, "n_threads": 1}
    model = RobustSparseKMeans(K, **options)
    given = RobustSparseKMeans(K, trim=share, n_features=20, **options)
    taken, base = (seconds(lambda fit=fit: fit.fit(X), time.process_time) for fit in (model, given))
    clean = ~outlying
    shared = np.zeros((K, K))
    np.add.at(shared, (labels[clean], model.labels_[clean]), 1)
    common = np.minimum(shared / shared.sum(1)[:, None], shared / np.maximum(shared.sum(0), 1))
    return (
        (common >= 0.75).any(1).mean(),
        model.outliers_[clean].mean(),
        model.outliers_[outlying].mean(),
        classification_error_rate(model.labels_[clean], labels[clean]),
        model.get_support()[20:].sum(),
        taken / base,
    )


@benchmark(
    "K-means of many clusters against scikit-learn, n_init=10",
    "table | seed | within {:.4f} | faster {:.1f}x",
    threads=1,
)
def within_sums(seeds: int = 2, most: int = len(TABLES)) -> Rows:
    for name, (data, K) in list(TABLES.items())[:most]:
        for seed in range(seeds):
            X, ours = data(seed), _plain(K, seed)
            theirs = KMeans(K, n_init=1 if "n_init=1 " in name else 10, random_state=seed)
            base, mine = best_of(1, lambda: theirs.fit(X), lambda: ours.fit(X))  # noqa: B023
            yield name, seed, ours.inertia_ / theirs.inertia_, base / mine


def _plain(K, seed):
    return RobustSparseKMeans(K, trim=0, l1_bound=None, random_state=seed, n_threads=1)


@benchmark(
    "CER of the clean cases, robust and sparse; means of {seeds} seeds",
    "100 cases a cluster, 20 of 100 features | rskc {:.4f} | told the features {:.4f} | "
    "told their weights too {:.4f} | rskc - told the features {:+.4f}",
    threads=1,
)
def many_sparse_clusters(seeds: int = 3) -> Rows:
    """Print the errors beside those of K-means that knows the features, and the weights too.

    The second shows what is left to search for: weights in proportion to B_j are part of the
    criterion, and no search makes the classes that equal weights would.
    """
    for K in (10, 20, 30, 50):
        errors = []
        for seed in range(seeds):
            X, labels, clean = sparse_table(K, seed)
            ours = RobustSparseKMeans(K, trim=0.1, random_state=seed, n_threads=1).fit(X)
            informative, classes = X[clean, :20], labels[clean]
            partitions = [ours.labels_[clean]]
            for weights in (1, np.sqrt(between(informative, classes))):
                rival = KMeans(K, n_init=10, random_state=seed)
                partitions.append(rival.fit_predict(informative * weights))
            errors.append([classification_error_rate(each, classes) for each in partitions])
        means = np.mean(errors, axis=0)
        yield f"K={K}", *means, means[0] - means[1]


def sparse_table(K, seed, p=100, informative=20):
    """100 cases a cluster that differ in 20 of 100 features; 3% of them with 3 outlying cells."""
    rng, n = np.random.default_rng([seed, K]), 100 * K
    labels = np.arange(n) % K
    X = normal_clusters(rng, labels, p, informative, 1.2)
    outlying = rng.choice(n, int(0.03 * n), replace=False)
    for case in outlying:
        cells = rng.choice(p, 3, replace=False)
        X[case, cells] += rng.choice([-1, 1], 3) * rng.uniform(10, 20, 3)
    return X, labels, ~np.isin(np.arange(n), outlying)


def between(X, labels):
    """B_j of the true classes."""
    means = np.array([X[labels == k].mean(axis=0) for k in np.unique(labels)])
    return (np.bincount(labels)[:, None] * (means - X.mean(axis=0)) ** 2).sum(axis=0)


@benchmark(
    "Wide tables against scikit-learn's KMeans, n_init=10",
    "table | within, K-means {:.4f} | K-means faster {:.1f}x | robust sparse faster {:.1f}x",
    threads=1,
)
def wide_tables() -> Rows:
    for n, p in ((3000, 1000), (5000, 2000), (10000, 1000)):
        X = normal_clusters(np.random.default_rng(0), np.arange(n) % 10, p, 50)
        theirs, plain = KMeans(10, n_init=10, random_state=0), _plain(10, 0)
        sparse = RobustSparseKMeans(10, trim=0.1, random_state=0, n_threads=1)
        fits = [lambda model=model: model.fit(X) for model in (theirs, plain, sparse)]  # noqa: B023
        base, *ours = best_of(1, *fits)
        ratio = plain.inertia_ / theirs.inertia_
        yield f"{n} x {p}, K=10", ratio, *(base / mine for mine in ours)
