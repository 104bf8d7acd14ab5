"""K-means: the same number of random starts, each run to convergence, against scikit-learn."""

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.data import Work, levels
from benchmarks.declare import Rows, benchmark
from benchmarks.timing import best_of
from rskc import RobustSparseKMeans

WORKS = (
    Work(60, 500, 3, 50, n_init=200, step=1.0),
    Work(300, 1000, 3, 50, n_init=100),
    Work(2000, 200, 5, 30, n_init=20),
    Work(78, 4751, 8, 70, n_init=200),
    Work(100_000, 50, 10, 10, n_init=10),
    Work(100_000, 50, 10, 10, n_init=10, trim=0.1),
)


@benchmark(
    "K-means from random starts, run to convergence; trimmed K-means against plain KMeans",
    "work, one thread | scikit-learn ms {:.1f} | rskc ms {:.1f} | faster {:.1f}x | "
    "inertia, rskc / sklearn {:.5f}",
    threads=1,
)
def same_restarts(repeats: int = 4) -> Rows:
    for work in WORKS:
        X, options = work.data(), {"init": "random", "tol": 0, "n_init": work.n_init}
        rival = KMeans(work.K, algorithm="lloyd", random_state=0, **options)
        ours = work.model(max_iter=300, **options)
        theirs, mine = best_of(repeats, lambda: rival.fit(X), lambda: ours.fit(X))  # noqa: B023
        share = None if work.trim else ours.inertia_ / rival.inertia_
        yield str(work), theirs * 1e3, mine * 1e3, theirs / mine, share


@benchmark(
    "Single precision, K=10, both with n_init=10",
    "float32, one thread | scikit-learn s {:.2f} | K-means s {:.2f} | robust sparse s {:.2f} | "
    "K-means faster {:.1f}x | robust sparse faster {:.1f}x",
    threads=1,
)
def single_precision(repeats: int = 3) -> Rows:
    """Both as they are: scikit-learn's starts are k-means++ then."""
    for n, p in ((5000, 2000), (3000, 1000), (10_000, 1000)):
        X = levels(n, p, 10, p // 10).astype(np.float32)
        options = {"n_init": 10, "random_state": 0}
        models = [
            KMeans(10, **options),
            RobustSparseKMeans(10, trim=0, l1_bound=None, n_threads=1, **options),
            RobustSparseKMeans(10, trim=0.1, l1_bound=p**0.5 / 5, n_threads=1, **options),
        ]
        fits = [lambda model=model: model.fit(X) for model in models]  # noqa: B023
        theirs, *ours = best_of(repeats, *fits)
        yield f"{n} x {p}", theirs, *ours, *(theirs / mine for mine in ours)
