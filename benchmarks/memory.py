"""Peak memory of a fit on 1,000,000 x 50 and other tables, as a multiple of the data."""

import numpy as np

from benchmarks.data import levels, with_missing
from benchmarks.declare import Rows, benchmark
from benchmarks.timing import Usage, apart, forget_peak, usage
from rskc import RobustSparseKMeans

TALL, MIDDLE, WIDE = (1_000_000, 50), (20_000, 1000), (500, 40_000)
PLAIN, TRIMMED = {"trim": 0, "l1_bound": None}, {"trim": 0.1, "l1_bound": None}
EVERY = {"trim": 0.1, "l1_bound": 7}
FITS = (
    ("K-means", TALL, PLAIN, "float64"),
    ("trimmed K-means", TALL, TRIMMED, "float64"),
    ("robust and sparse, few weights above 0", TALL, {"trim": 0.1, "l1_bound": 3}, "float64"),
    ("robust and sparse, every weight above 0", TALL, EVERY, "float64"),
    ('robust and sparse, l1_bound="auto"', TALL, {"trim": 0.1}, "float64"),
    ('robust and sparse, trim="auto" too', TALL, {}, "float64"),
    ("float32: trimmed K-means", TALL, TRIMMED, "float32"),
    ("float32: every weight above 0", TALL, EVERY, "float32"),
    ("5% missing: trimmed K-means", TALL, TRIMMED, "missing"),
    ("5% missing: every weight above 0", TALL, EVERY, "missing"),
    ("robust and sparse", MIDDLE, {"trim": 0.1, "l1_bound": 10}, "float64"),
    ("the defaults", MIDDLE, {}, "float64"),
    ("K-means", WIDE, PLAIN, "float64"),
    ("the defaults", WIDE, {}, "float64"),
)
KINDS = {"float64": np.asarray, "float32": np.float32, "missing": with_missing}


@benchmark(
    "Peak memory, the data included; K=5, 10 starts",
    "table | fit | data MB {:.0f} | peak MB {:.0f} | peak / data {:.2f} | s {:.1f}",
)
def memory(most: int = len(FITS)) -> Rows:
    for name, (n, p), options, kind in FITS[:most]:
        used = apart(fitted, n, p, options, kind)
        data, peak = used.result, used.peak - used.before
        yield f"{n} x {p}", name, data, data + peak, (data + peak) / data, used.seconds


def fitted(n: int, p: int, options: dict, kind: str) -> Usage:
    """Fit a table, and return its size in MB and what the fit took."""
    RobustSparseKMeans(5, n_init=1, max_iter=2).fit(levels(1000, 50, 5, 10))  # what importing takes
    X = KINDS[kind](levels(n, p, 5, 10))
    model = RobustSparseKMeans(5, n_init=10, random_state=0, **options)
    forget_peak()
    used = usage(lambda: model.fit(X))
    return used._replace(result=X.nbytes / 2**20)
