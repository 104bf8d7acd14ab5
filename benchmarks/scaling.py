"""Two threads against one, and how a Lloyd iteration grows with the number of cases."""

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.data import levels
from benchmarks.timing import best_of, print_table, times
from rskc import RobustSparseKMeans
from rskc.engines import engine_for


def main() -> None:
    _threads()
    _growth()


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
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one, two = best_of(3, *[lambda model=model: model.fit(X) for model in models])
        same = all(
            np.array_equal(getattr(models[0], name), getattr(models[1], name))
            for name in ("labels_", "feature_weights_", "cluster_centers_")
        )
        rows.append((name, f"{one:.2f}", f"{two:.2f}", times(one / two), "yes" if same else "NO"))
    header = ("100000 x 50, K=10, 10 starts", "1 thread s", "2 threads s", "faster", "same bits")
    print_table("Threads", header, rows)


def _growth() -> None:
    sizes, seconds = np.array([10_000, 30_000, 100_000, 300_000, 1_000_000]), []
    for n in sizes:
        X = levels(int(n), 50, 10, 10)
        table = engine_for(X).table(np.ones((1, 50)))
        centres = table.cases(np.arange(10))[None].astype(np.float64)
        before = np.zeros((1, n), np.int32)

        def iteration(table=table, centres=centres, before=before):
            groups = table.trim(table.assign(centres), len(before[0]) // 10).groups
            table.shift(table.sums(before, 10), before, groups)

        with threadpool_limits(1):
            seconds += best_of(5, iteration)
        del X, table
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    rows = [
        (n, f"{s * 1e3:.2f}", f"{s / n * 1e9:.1f}") for n, s in zip(sizes, seconds, strict=True)
    ]
    rows.append(("slope in log-log", f"{slope:.3f}", ""))
    print_table(
        "A trimmed Lloyd iteration, p=50, K=10, float64", ("cases", "ms", "ns a case"), rows
    )
