"""The assignment pass against the bare matrix product of the same shape, one thread."""

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.timing import best_of, print_table
from rskc.engines import engine_for

SHAPES = [(10_000, 100, 10, 5), (2000, 200, 20, 5), (100_000, 100, 10, 10), (100_000, 100, 1, 10)]


def main() -> None:
    rows = [_measure(*shape, dtype) for shape in SHAPES for dtype in (np.float32, np.float64)]
    header = ("cases x columns, runs x K", "type", "product ms", "pass ms", "pass / product")
    print_table("Assignment (product, nearest, cost) against the bare product", header, rows)


def _measure(n: int, p: int, runs: int, K: int, dtype: type) -> tuple:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)).astype(dtype)
    centers = rng.standard_normal((runs, K, p))
    flat, out = centers.reshape(-1, p).astype(dtype), np.empty((n, runs * K), dtype)
    engine, weights = engine_for(X), np.ones((1, p))
    table = engine.search_table(weights) if dtype is np.float32 else engine.table(weights)
    table.norms()
    with threadpool_limits(1):
        product, ours = best_of(
            7, lambda: np.dot(X, flat.T, out=out), lambda: table.assign(centers)
        )
    name = f"{n} x {p}, {runs} x {K}"
    return (
        name,
        dtype.__name__,
        f"{product * 1e3:.2f}",
        f"{ours * 1e3:.2f}",
        f"{ours / product:.2f}",
    )
