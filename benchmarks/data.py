"""Data to measure on, and fits to them."""

from dataclasses import dataclass

import numpy as np

from rskc import RobustSparseKMeans


def levels(n, p, K, informative, outliers=0.0, step=1.5):
    """K clusters at equal steps in the informative features; single outlying cells of 25."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, p))
    X[:, :informative] += (step * (np.arange(n) % K - (K - 1) / 2))[:, None]
    outlying = np.arange(round(outliers * n))
    X[outlying, rng.integers(0, p, outlying.size)] = 25.0
    return X


def normal_clusters(rng, labels, p, informative, spread=1.0):
    """Clusters whose centers are drawn, with this standard deviation of the first features."""
    X = rng.normal(size=(len(labels), p))
    X[:, :informative] += spread * rng.normal(size=(labels.max() + 1, informative))[labels]
    return X


def mixture(n, p, K=8, seed=0, informative=10):
    """Clusters of random sizes; one case in fifty is outlying in the last feature."""
    rng = np.random.default_rng(seed)
    X = normal_clusters(rng, rng.integers(0, K, n), p, informative, 2.0)
    X[: n // 50, -1] += 100
    return X


def with_missing(X, share=0.05):
    return np.where(np.random.default_rng(0).random(X.shape) < share, np.nan, X)


@dataclass(frozen=True)
class Work:
    """A table of ``levels`` and a fit to it, on one thread."""

    n: int
    p: int
    K: int
    informative: int
    n_init: int
    trim: float = 0.0
    l1_bound: float | None = None
    outliers: float = 0.0
    step: float = 1.5
    rskc: float | None = None  # seconds of R's RSKC 2.4.2: one thread, median of three runs

    def __str__(self) -> str:
        kind = "robust and sparse" if self.l1_bound else "trimmed K-means" if self.trim else ""
        name = f"{self.n} x {self.p}, K={self.K}, {self.n_init} starts"
        return f"{name}, {kind or 'K-means'}"

    def data(self) -> np.ndarray:
        return levels(self.n, self.p, self.K, self.informative, self.outliers, self.step)

    def model(self, **options: object) -> RobustSparseKMeans:
        given = {"n_init": self.n_init, "trim": self.trim, "l1_bound": self.l1_bound}
        given |= {"random_state": 0, "n_threads": 1}
        return RobustSparseKMeans(self.K, **(given | options))
