"""Two threads against one, and how a Lloyd iteration grows with the number of cases."""

import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.data import levels
from benchmarks.timing import best_of, print_table
from rskc import RobustSparseKMeans
from rskc.engines import engine_for
from rskc.solver import Problem
from rskc.solver.partition import lloyd


def main() -> None:
    _threads()
    _threads_of_small_tables()
    with busy(2):
        _threads_of_small_tables("two busy processes beside")
    _growth()


@contextmanager
def busy(n: int) -> Iterator[None]:
    """Keep so many CPUs busy."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def _threads() -> None:
    X, rows = levels(100_000, 50, 10, 10), []
    for name, options in {
        "K-means": {"trim": 0, "l1_bound": None},
        "trimmed": {"trim": 0.1, "l1_bound": None},
        "robust and sparse": {"trim": 0.1, "l1_bound": 3.0},
    }.items():
        models = [
            RobustSparseKMeans(
                10, n_init=10, max_iter=30, random_state=0, n_threads=n_threads, **options
            )
            for n_threads in (1, 2)
        ]
        rows.append((name, *_compared(3, *models, X)))
    header = ("100000 x 50, K=10, 10 starts", "1 thread s", "2 threads s", "faster", "same bits")
    print_table("Threads", header, rows)


def _threads_of_small_tables(beside: str = "machine left alone") -> None:
    """Compare the default number of threads with one."""
    rows = []
    for n, p, K in [(300, 1000, 3), (2000, 200, 5), (10_000, 100, 10)]:
        complete, bound = levels(n, p, K, p // 5), 0.6 * np.sqrt(p / 5)
        missing = np.random.default_rng(0).random(complete.shape) < 0.05
        for name, X in {
            "complete": complete,
            "5% missing": np.where(missing, np.nan, complete),
        }.items():
            models = [
                RobustSparseKMeans(K, trim=0.1, l1_bound=bound, random_state=0, n_threads=n_threads)
                for n_threads in (1, None)
            ]
            rows.append((f"{n} x {p}, K={K}, {name}", *_compared(9, *models, X)))
    header = ("robust and sparse", "1 thread s", "all threads s", "faster", "same bits")
    print_table(f"Threads, smaller tables, {beside}", header, rows)


def _compared(
    repeats: int, one: RobustSparseKMeans, two: RobustSparseKMeans, X: np.ndarray
) -> tuple:
    """Seconds of both models, how much faster the second is, and whether they agree."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = best_of(repeats, lambda: one.fit(X), lambda: two.fit(X))
    same = all(
        np.array_equal(getattr(one, name), getattr(two, name), equal_nan=name != "labels_")
        for name in ("labels_", "feature_weights_", "cluster_centers_")
    )
    ratio = f"{seconds[0] / seconds[1]:.2f}x"
    return *(f"{value:.3f}" for value in seconds), ratio, "yes" if same else "NO"


def _growth() -> None:
    sizes = np.array([10_000, 30_000, 100_000, 300_000, 1_000_000])
    columns = {runs: [_iteration(int(n), runs) for n in sizes] for runs in (1, 10)}
    rows = [
        (n, *(f"{columns[runs][i] / n / runs * 1e9:.1f}" for runs in columns))
        for i, n in enumerate(sizes)
    ]
    slopes = [np.polyfit(np.log(sizes), np.log(columns[runs]), 1)[0] for runs in columns]
    rows.append(("slope in log-log", *(f"{slope:.3f}" for slope in slopes)))
    header = ("cases", "1 run, ns a case", "10 runs, ns a case and run")
    print_table("A trimmed Lloyd iteration of the search, p=50, K=10, one thread", header, rows)


def _iteration(n: int, runs: int) -> float:
    """Seconds of one iteration: the difference between 12 and 2 of them, divided by 10."""
    X = levels(n, 50, 10, 10)
    table = engine_for(X).search_table(np.ones((1, 50)))
    cases = np.random.default_rng(0).integers(0, n, (runs, 10))
    centers = table.cases(cases).astype(np.float64)
    few, many = (Problem(10, n // 10, max_iter=max_iter) for max_iter in (2, 12))
    with threadpool_limits(1):
        short, long = best_of(
            4, lambda: lloyd(table, centers, few), lambda: lloyd(table, centers, many)
        )
    return (long - short) / 10
