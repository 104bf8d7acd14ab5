"""K-means: the same number of random starts, each run to convergence, against scikit-learn."""

import warnings

from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from benchmarks.data import levels, simulation
from benchmarks.timing import best_of, print_table, times
from rskc import RobustSparseKMeans

CASES = {
    "60 x 500, K=3, 200 starts": (lambda: simulation(), 3, 200, 0.0, 5),
    "300 x 1000, K=3, 100 starts": (lambda: levels(300, 1000, 3, 50), 3, 100, 0.0, 5),
    "2000 x 200, K=5, 20 starts": (lambda: levels(2000, 200, 5, 30), 5, 20, 0.0, 5),
    "78 x 4751, K=8, 200 starts": (lambda: levels(78, 4751, 8, 70), 8, 200, 0.0, 5),
    "100000 x 50, K=10, 10 starts": (lambda: levels(100_000, 50, 10, 10), 10, 10, 0.0, 2),
    "the same, trim=.1 against plain KMeans": (
        lambda: levels(100_000, 50, 10, 10), 10, 10, 0.1, 2,
    ),
}  # fmt: skip


def main() -> None:
    rows = []
    for name, (data, K, n_init, trim, repeats) in CASES.items():
        X = data()
        rival = KMeans(K, init="random", n_init=n_init, tol=0, algorithm="lloyd", random_state=0)
        ours = RobustSparseKMeans(
            K, trim=trim, l1_bound=None, init="random", n_init=n_init, tol=0, max_iter=300,
            random_state=0, n_threads=1,
        )  # fmt: skip
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs, mine = best_of(repeats, lambda: rival.fit(X), lambda: ours.fit(X))  # noqa: B023
        share = "-" if trim else f"{ours.inertia_ / rival.inertia_:.5f}"
        rows.append((name, f"{theirs * 1e3:.1f}", f"{mine * 1e3:.1f}", times(theirs / mine), share))
    header = ("work, one thread", "scikit-learn ms", "rskc ms", "faster", "inertia, rskc / sklearn")
    print_table("K-means from random starts, run to convergence", header, rows)
