"""Case weights: what a fit with weights takes, beside one without."""

import warnings

import numpy as np

from benchmarks.data import levels
from benchmarks.timing import best_of, print_table
from rskc import RobustSparseKMeans

CASES = {
    "300 x 1000, K=3, 100 starts, robust and sparse": (
        lambda: levels(300, 1000, 3, 50, 0.05), 3, 100, {"trim": 0.1, "l1_bound": 6.0}, 5,
    ),
    "2000 x 50, K=5, 20 starts, robust and sparse": (
        lambda: levels(2000, 50, 5, 10, 0.05), 5, 20, {"trim": 0.1, "l1_bound": 3.0}, 5,
    ),
    "100000 x 50, K=10, 10 starts, K-means": (
        lambda: levels(100_000, 50, 10, 10), 10, 10, {"trim": 0, "l1_bound": None}, 2,
    ),
    "100000 x 50, K=10, 10 starts, trimmed K-means": (
        lambda: levels(100_000, 50, 10, 10), 10, 10, {"trim": 0.1, "l1_bound": None}, 2,
    ),
}  # fmt: skip


def main() -> None:
    rows = []
    for name, (data, K, n_init, options, repeats) in CASES.items():
        X = data()
        weights = np.random.default_rng(0).uniform(0.9, 1.1, len(X))
        model = RobustSparseKMeans(K, n_init=n_init, random_state=0, n_threads=1, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain, weighted = best_of(
                repeats,
                lambda: model.fit(X),  # noqa: B023
                lambda: model.fit(X, sample_weight=weights),  # noqa: B023
            )
        rows.append((name, f"{plain:.3f}", f"{weighted:.3f}", f"{weighted / plain:.2f}"))
    header = ("weights of .9 to 1.1, one thread", "without s", "with s", "ratio")
    print_table("Case weights", header, rows)
