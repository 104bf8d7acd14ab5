"""What ``rskc.plan`` says of the time of a fit, and what the fit takes, on six tables.

The constants of ``rskc.planning`` were settled on eight other tables, of 200 x 20,000 to 1,600,000
x 20. One thread, and seconds of the processor on both sides, so that other programs do not count.
"""

import time

import numpy as np
from scipy.sparse import csr_array

from benchmarks.data import mixture, with_missing
from benchmarks.declare import Rows, benchmark
from benchmarks.timing import seconds
from rskc import RobustSparseKMeans, plan, planning
from rskc.selection import Stability

OPTIONS = {"random_state": 0, "n_threads": 1}
MODELS = {
    "K given": lambda: RobustSparseKMeans(4, **OPTIONS),
    "automatic": lambda: Stability(
        RobustSparseKMeans(n_init=10, **OPTIONS),
        range(2, 7),
        max_samples=2000,
        n_jobs=1,
        random_state=0,
    ),
}


def table(n, p):
    return mixture(n, p, K=4, seed=n + p, informative=8)


def counted():
    dense = table(15_000, 600)
    return csr_array(np.where(dense > 2.2, dense, 0))


def in_blocks():
    import dask
    import dask.array as da

    dask.config.set({"scheduler": "threads", "num_workers": 1, "rskc.memory": "100MB"})
    return da.from_array(table(800_000, 20), chunks=(100_000, -1))


TABLES = {
    "small: 1,500 x 20": lambda: table(1500, 20),
    "tall: 500,000 x 30": lambda: table(500_000, 30),
    "wide: 200 x 6,000": lambda: table(200, 6000),
    "sparse: 15,000 x 600, 3%": counted,
    "missing: 100,000 x 50, 5%": lambda: with_missing(table(100_000, 50)),
    "blocks: 800,000 x 20": in_blocks,
}


@benchmark(
    "Time that was predicted, and that a fit took",
    "table | clusters | plan, s {:.2f} | predicted, s {:.2f} | taken, s {:.2f} | "
    "taken / predicted {:.2f}",
)
def planned(most: int = len(TABLES)) -> Rows:
    planning.CLOCK = time.process_time
    for name, make in list(TABLES.items())[:most]:
        X = make()
        for clusters, model_of in MODELS.items():
            model, start = model_of(), time.process_time()
            expected = plan(X, model).expected_seconds
            planning_took = time.process_time() - start
            taken = seconds(lambda: model.fit(X), time.process_time)  # noqa: B023
            yield name, clusters, planning_took, expected, taken, taken / expected
