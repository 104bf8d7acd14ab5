"""Case weights: what a fit with weights takes, beside one without."""

import time
import warnings

import numpy as np

from benchmarks.data import levels
from benchmarks.timing import print_table
from rskc import RobustSparseKMeans

CASES = {
    "300 x 1000, K=3, 100 starts, robust and sparse": (
        lambda: levels(300, 1000, 3, 50, 0.05), 3, 100, {"trim": 0.1, "l1_bound": 6.0}, 6,
    ),
    "2000 x 50, K=5, 20 starts, robust and sparse": (
        lambda: levels(2000, 50, 5, 10, 0.05), 5, 20, {"trim": 0.1, "l1_bound": 3.0}, 6,
    ),
    "100000 x 50, K=10, 10 starts, K-means": (
        lambda: levels(100_000, 50, 10, 10), 10, 10, {"trim": 0, "l1_bound": None}, 2,
    ),
    "100000 x 50, K=10, 10 starts, trimmed K-means": (
        lambda: levels(100_000, 50, 10, 10), 10, 10, {"trim": 0.1, "l1_bound": None}, 2,
    ),
}  # fmt: skip
REPEATS = 3


def main() -> None:
    """Print CPU time a fit, over some seeds: the number of iterations differs by chance."""
    rows = []
    for name, (data, K, n_init, options, n_seeds) in CASES.items():
        X, times = data(), np.zeros(2)
        model = RobustSparseKMeans(K, n_init=n_init, n_threads=1, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for seed in range(n_seeds):
                weights = np.random.default_rng(seed).uniform(0.9, 1.1, len(X))
                model.set_params(random_state=seed)
                times += _least_times(model, X, [None, weights])
        plain, weighted = times / n_seeds
        rows.append((name, f"{plain:.3f}", f"{weighted:.3f}", f"{weighted / plain:.2f}"))
    header = ("weights of .9 to 1.1, CPU time of one thread", "without s", "with s", "ratio")
    print_table("Case weights", header, rows)


def _least_times(model, X, both) -> np.ndarray:
    """Return the least CPU time of a fit with each of the weights, taken in turn."""
    least = np.full(len(both), np.inf)
    for _ in range(REPEATS):
        for i, weights in enumerate(both):
            start = time.process_time()
            model.fit(X, sample_weight=weights)
            least[i] = min(least[i], time.process_time() - start)
    return least
