"""What ``rskc.plan`` says of the time of a fit, and what the fit takes, on six tables.

The constants of ``rskc.planning`` were settled on eight other tables, of 200 x 20,000 to 1,600,000
x 20. One thread, and seconds of the processor on both sides, so that other programs do not count.
"""

import time
import warnings

import numpy as np
from scipy.sparse import csr_array

from benchmarks.timing import print_table
from rskc import RobustSparseKMeans, plan, planning
from rskc.selection import Stability

HOW = {"random_state": 0, "n_threads": 1}


def main() -> None:
    planning.CLOCK = time.process_time
    rows = []
    for name, X in tables():
        rows += [(name, how, *compared(X, model_for(how))) for how in ("K given", "automatic")]
    header = ("table", "clusters", "plan, s", "told, s", "taken, s", "taken / told")
    print_table("Time that was told before a fit, and that it took", header, rows)


def model_for(how: str):
    if how == "K given":
        return RobustSparseKMeans(4, **HOW)
    search = RobustSparseKMeans(n_init=10, **HOW)
    return Stability(search, range(2, 7), max_samples=2000, n_jobs=1, random_state=0)


def tables():
    yield "small: 1,500 x 20", mixture(1500, 20)
    yield "tall: 500,000 x 30", mixture(500_000, 30)
    yield "wide: 200 x 6,000", mixture(200, 6000)
    dense = mixture(15_000, 600)
    yield "sparse: 15,000 x 600, 3%", csr_array(np.where(dense > 2.2, dense, 0))
    X = mixture(100_000, 50)
    X[np.random.default_rng(1).random(X.shape) < 0.05] = np.nan
    yield "missing: 100,000 x 50, 5%", X
    yield "blocks: 800,000 x 20", in_blocks(mixture(800_000, 20))


def mixture(n: int, p: int, K: int = 4) -> np.ndarray:
    rng = np.random.default_rng(n + p)
    X = rng.standard_normal((n, p))
    X[:, :8] += 2 * rng.standard_normal((K, 8))[rng.integers(0, K, n)]
    X[rng.integers(0, n, n // 50), -1] += 100
    return X


def in_blocks(X: np.ndarray):
    import dask
    import dask.array as da

    dask.config.set({"scheduler": "threads", "num_workers": 1, "rskc.memory": "100MB"})
    return da.from_array(X, chunks=(len(X) // 8, -1))


def compared(X, model) -> tuple[str, ...]:
    """Seconds of the plan, of what it says, and of the fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        told = plan(X, model)
        planned, start = time.process_time() - start, time.process_time()
        model.fit(X)
        taken = time.process_time() - start
    expected = told.expected_seconds
    return *(f"{s:.2f}" for s in (planned, expected, taken)), f"{taken / expected:.2f}"


if __name__ == "__main__":
    main()
