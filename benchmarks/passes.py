"""The assignment pass against the bare matrix product of the same shape, one thread."""

import numpy as np

from benchmarks.declare import Rows, benchmark
from benchmarks.timing import best_of
from rskc.engines import engine_for

SHAPES = [(10_000, 100, 10, 5), (2000, 200, 20, 5), (100_000, 100, 10, 10), (100_000, 100, 1, 10)]


@benchmark(
    "Assignment (product, nearest, cost) against the bare product",
    "cases x columns, runs x K | type | product ms {:.2f} | pass ms {:.2f} | pass / product {:.2f}",
    threads=1,
)
def passes(repeats: int = 7) -> Rows:
    for n, p, runs, K in SHAPES:
        for dtype in (np.float32, np.float64):
            rng = np.random.default_rng(0)
            X = rng.standard_normal((n, p)).astype(dtype)
            centers = rng.standard_normal((runs, K, p))
            flat, out = centers.reshape(-1, p).astype(dtype), np.empty((n, runs * K), dtype)
            engine, weights = engine_for(X), np.ones((1, p))
            table = (
                engine.compact_table(weights, engine.float32)
                if dtype is np.float32
                else engine.table(weights)
            )
            table.norms()
            product, ours = best_of(
                repeats,
                lambda: np.dot(X, flat.T, out=out),  # noqa: B023
                lambda: table.assign(centers),  # noqa: B023
            )
            name = f"{n} x {p}, {runs} x {K}"
            yield name, dtype.__name__, product * 1e3, ours * 1e3, ours / product
