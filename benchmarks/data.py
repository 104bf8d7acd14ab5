"""Data for measuring, and the seconds that R's RSKC 2.4.2 took on data of the same distribution."""

import numpy as np


def simulation(n=60, p=500, informative=50, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, :informative] += (np.arange(n) * 3 // n - 1.0)[:, None]
    return X


def levels(n, p, K, informative, outliers=0.0, seed=1):
    """K clusters at equal steps of 1.5 in the informative features; single outlying cells of 25."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, :informative] += (1.5 * (np.arange(n) % K - (K - 1) / 2))[:, None]
    outlying = np.arange(round(outliers * n))
    X[outlying, rng.integers(0, p, outlying.size)] = 25.0
    return X


# name: (data, K, trim, l1_bound, n_init, seconds of RSKC: one thread, median of three runs)
RSKC_RUNS = {
    "a: 60 x 500, K=3, 200 starts": (lambda: simulation(), 3, 1 / 60, 6.2, 200, 0.119),
    "b: 300 x 1000, K=3, 100 starts": (
        lambda: levels(300, 1000, 3, 50, 0.05), 3, 0.1, 6.0, 100, 0.795,
    ),
    "c: 2000 x 200, K=5, 20 starts": (
        lambda: levels(2000, 200, 5, 30, 0.05), 5, 0.1, 5.0, 20, 0.677,
    ),
    "d: 10000 x 100, K=5, 10 starts": (
        lambda: levels(10000, 100, 5, 20, 0.05), 5, 0.1, 4.0, 10, 2.348,
    ),
    "g: 100 x 5000, K=3, 100 starts": (
        lambda: levels(100, 5000, 3, 100, 0.05), 3, 0.1, 10.0, 100, 0.900,
    ),
}  # fmt: skip
