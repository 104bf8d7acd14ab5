"""K-means: the same number of random starts, each run to convergence, against scikit-learn."""

import warnings

import numpy as np
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


WIDE = [(5000, 2000), (3000, 1000), (10_000, 1000)]


def main() -> None:
    _same_restarts()
    _single_precision()


def _single_precision() -> None:
    """Both with n_init=10, as they come: scikit-learn's starts are k-means++ then."""
    rows = []
    for n, p in WIDE:
        X = levels(n, p, 10, p // 10).astype(np.float32)
        rival = KMeans(10, n_init=10, random_state=0)
        ours = [
            RobustSparseKMeans(10, n_init=10, random_state=0, n_threads=1, **options)
            for options in ({"trim": 0, "l1_bound": None}, {"trim": 0.1, "l1_bound": p**0.5 / 5})
        ]
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fits = [lambda model=model: model.fit(X) for model in (rival, *ours)]  # noqa: B023
            theirs, *mine = best_of(3, *fits)
        seconds = f"{theirs:.2f}", *(f"{time:.2f}" for time in mine)
        rows.append((f"{n} x {p}", *seconds, *(times(theirs / time) for time in mine)))
    header = ("float32, K=10, one thread", "scikit-learn s", "K-means s", "robust sparse s")
    print_table("Single precision", (*header, "faster", "faster"), rows)


def _same_restarts() -> None:
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
