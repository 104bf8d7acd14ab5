"""Missing values: against the complete table, and against R's RSKC."""

import warnings

import numpy as np

from benchmarks.data import levels
from benchmarks.timing import best_of, print_table
from rskc import RobustSparseKMeans
from rskc.engines.memory import engine as memory

CASES = {
    "300 x 1000, K=3, 100 starts, robust and sparse": (
        lambda: levels(300, 1000, 3, 50, 0.05), 3, 100, {"trim": 0.1, "l1_bound": 6.0}, 5, 2.41,
    ),
    "100000 x 50, K=10, 10 starts, K-means": (
        lambda: levels(100_000, 50, 10, 10), 10, 10, {"trim": 0, "l1_bound": None}, 2, None,
    ),
    "100000 x 50, K=10, 10 starts, robust and sparse": (
        lambda: levels(100_000, 50, 10, 10), 10, 10, {"trim": 0.1, "l1_bound": 3.0}, 2, None,
    ),
}  # fmt: skip


def main() -> None:
    rows = []
    for name, (data, K, n_init, options, repeats, theirs) in CASES.items():
        X = data()
        incomplete = np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.nan, X)
        model = RobustSparseKMeans(K, n_init=n_init, random_state=0, n_threads=1, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            complete, missing = best_of(
                repeats,
                lambda: without_rotation(lambda: model.fit(X)),  # noqa: B023
                lambda: model.fit(incomplete),  # noqa: B023
            )
        ratio = "-" if theirs is None else f"{theirs / missing:.1f}x"
        rows.append((name, f"{complete:.3f}", f"{missing:.3f}", f"{missing / complete:.1f}", ratio))
    header = ("5% missing, one thread", "complete s", "missing s", "ratio", "faster than RSKC")
    print_table("Missing values (complete: without rotation of wide tables)", header, rows)


def without_rotation(work):
    """Do it with tables of columns only, as missing values need them."""
    engine = memory.MemoryEngine
    kept = engine.compact_table, engine.search_table
    engine.compact_table = engine.table
    engine.search_table = lambda self, weights: self._columns_table(weights, self.float32)
    try:
        return work()
    finally:
        engine.compact_table, engine.search_table = kept
