"""Two threads against one, and how a Lloyd iteration grows with the number of cases."""

import subprocess
import sys

import numpy as np

from benchmarks.data import Work, levels, with_missing
from benchmarks.declare import Rows, benchmark
from benchmarks.timing import best_of
from rskc import RobustSparseKMeans
from rskc.engines import engine_for
from rskc.solver import Problem
from rskc.solver.alternate import lloyd

COMPARED = "1 thread s {:.3f} | all threads s {:.3f} | faster {:.2f}x | same bits"


@benchmark("Two threads against one", f"work | {COMPARED}")
def threads(repeats: int = 3) -> Rows:
    large = (
        Work(100_000, 50, 10, 10, n_init=10),
        Work(100_000, 50, 10, 10, n_init=10, trim=0.1),
        Work(100_000, 50, 10, 10, n_init=10, trim=0.1, l1_bound=3.0),
    )
    for work in large:
        models = [work.model(max_iter=30, n_threads=n_threads) for n_threads in (1, 2)]
        yield str(work), *_compared(repeats, *models, work.data())


@benchmark(
    "Threads, smaller tables, robust and sparse",
    f"other processes | table | cells | {COMPARED}",
)
def threads_of_small_tables(repeats: int = 9) -> Rows:
    """Compare the default number of threads with one, also where other processes are busy."""
    for n_busy in (0, 2):
        busy = [sys.executable, "-c", "while True: pass"]
        others = [subprocess.Popen(busy) for _ in range(n_busy)]
        try:
            for n, p, K in [(300, 1000, 3), (2000, 200, 5), (10_000, 100, 10)]:
                options = {"trim": 0.1, "l1_bound": 0.6 * np.sqrt(p / 5), "random_state": 0}
                X = levels(n, p, K, p // 5)
                for cells, data in (("complete", X), ("5% missing", with_missing(X))):
                    models = [
                        RobustSparseKMeans(K, n_threads=n_threads, **options)
                        for n_threads in (1, None)
                    ]
                    yield n_busy, f"{n} x {p}, K={K}", cells, *_compared(repeats, *models, data)
        finally:
            for other in others:
                other.kill()
                other.wait()


def _compared(
    repeats: int, one: RobustSparseKMeans, two: RobustSparseKMeans, X: np.ndarray
) -> tuple:
    """Seconds of both models, how much faster the second is, and whether they agree."""
    first, second = best_of(repeats, lambda: one.fit(X), lambda: two.fit(X))
    same = all(
        np.array_equal(getattr(one, name), getattr(two, name), equal_nan=name != "labels_")
        for name in ("labels_", "feature_weights_", "cluster_centers_")
    )
    return first, second, first / second, same


@benchmark(
    "A trimmed Lloyd iteration of the search, p=50, K=10, one thread",
    "cases | 1 run, ns a case {:.3g} | 10 runs, ns a case and run {:.3g}",
    threads=1,
)
def growth(largest: int = 1_000_000) -> Rows:
    sizes = np.array([n for n in (10_000, 30_000, 100_000, 300_000, 1_000_000) if n <= largest])
    seconds = np.array([[_iteration(int(n), runs) for runs in (1, 10)] for n in sizes])
    yield from zip(sizes, *(seconds / sizes[:, None] / (1, 10) * 1e9).T, strict=True)
    yield "slope in log-log", *np.polyfit(np.log(sizes), np.log(seconds), 1)[0]


def _iteration(n: int, runs: int) -> float:
    """Seconds of one iteration: the difference between 12 and 2 of them, divided by 10."""
    engine = engine_for(levels(n, 50, 10, 10))
    table = engine.compact_table(np.ones((1, 50)), engine.float32)
    cases = np.random.default_rng(0).integers(0, n, (runs, 10))
    centers = table.cases(cases).astype(np.float64)
    few, many = (Problem(10, n // 10, max_iter=max_iter) for max_iter in (2, 12))
    short, long = best_of(
        4, lambda: lloyd(table, centers, few), lambda: lloyd(table, centers, many)
    )
    return (long - short) / 10
