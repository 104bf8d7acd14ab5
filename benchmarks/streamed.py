"""Tables larger than memory, or than that of a GPU: what a fit reads and sends, and its time.

Counts, for which no clock is asked: `python -m benchmarks streamed.counts n=10000000`. Blocks are
made anew whenever they are read; nothing of them is kept, or the columns that have weight are. With
``device=cpu`` passes are made by torch. docs/howto/large-data.md has the table.

Times, of a table in host memory on a device that it does not fit on: `python -m benchmarks
streamed.times cases=400000000 device=cuda memory=40GB`, which needs 90 GB of memory. With
``device=cpu`` and fewer cases the same code runs anywhere.
"""

import pickle
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks.declare import Rows, benchmark
from benchmarks.timing import seconds
from rskc import RobustSparseKMeans

COLUMNS, CLUSTERS, CHUNK = 50, 10, 100_000
MODELS = {
    "all automatic": {},
    "trim=0.05, n_features=10": {"trim": 0.05, "n_features": 10},
    "trim=0.05, l1_bound=None": {"trim": 0.05, "l1_bound": None},
}


# ---- Counts


@benchmark(
    "{n} x 50 float32, K = 10; memory as a share of it",
    "fit | memory {:.0%} | reads {:.1f} | graphs | iterations | MB out {:.1f} | MB back {:.1f} | "
    "KB a graph {:.0f}",
)
def counts(n: int = 1_000_000, device: str | None = None) -> Rows:
    for name, options in MODELS.items():
        for share in (0.0, 0.45):
            yield name, share, *counted(n, options, device, share)


def counted(n: int, options: dict, device: str | None, share: float) -> tuple:
    """Fit, and count the cells that are read and the bytes of what travels."""
    import dask
    import dask.array as da

    numbers = da.arange(n, chunks=CHUNK)[:, None]
    chunks, count, block = (numbers.chunks[0], (COLUMNS,)), Counter(), drawn(0, CHUNK)

    def rows(numbers: np.ndarray) -> np.ndarray:
        count["cells"] += len(numbers) * COLUMNS
        return block[: len(numbers)] * np.float32(1 + 1e-9 * numbers[0, 0])  # no case twice

    meta = np.empty((0, 0), np.float32)
    X = numbers.map_blocks(rows, chunks=chunks, dtype=np.float32, meta=meta)
    model = RobustSparseKMeans(CLUSTERS, random_state=0, device=device, **options)
    config = dict.fromkeys(("rskc.memory", "rskc.device-memory"), int(share * n * COLUMNS * 4) + 1)
    config |= {"scheduler": "threads", "num_workers": 2}
    with dask.config.set(config), watched(count):
        model.fit(X)
    out, back = count["out"] / 1e6, count["back"] / 1e6
    per_graph = 1e3 * (out + back) / count["graphs"]
    return count["cells"] / (n * COLUMNS), count["graphs"], model.n_iter_, out, back, per_graph


class watched:
    """Count graphs, and the bytes that a scheduler would send: programs, and what is asked for."""

    def __init__(self, count: Counter):
        self.count = count

    def __enter__(self) -> None:
        from rskc.engines.blocks import order, plans

        order.INSIDE_HERE = order.INSIDE  # as on a cluster
        self.run, self.graph = plans.Blocks._run, plans.Blocks._graph

        def run(blocks, asked, combine, *others):
            result = self.run(blocks, asked, combine, *others)
            self.count["graphs"] += 1
            self.count["back"] += len(pickle.dumps(result))
            return result

        def graph(blocks, *others):
            made, keys = self.graph(blocks, *others)
            programs = (value for key, value in made.items() if str(key).endswith("-program"))
            self.count["out"] += sum(map(size_of, programs))
            return made, keys

        plans.Blocks._run, plans.Blocks._graph = run, graph

    def __exit__(self, *error: object) -> None:
        from rskc.engines.blocks import plans

        plans.Blocks._run, plans.Blocks._graph = self.run, self.graph


def size_of(program) -> int:
    from cloudpickle import dumps

    return len(dumps(program))


def drawn(first: int, n: int) -> np.ndarray:
    """Draw the cases of a block: ten clusters in ten of the features, and 2% outlying cases."""
    rng = np.random.default_rng(first)
    X = rng.standard_normal((n, COLUMNS), np.float32)
    means = 2 * np.random.default_rng(0).standard_normal((CLUSTERS, 10))
    X[:, :10] += means[rng.integers(0, CLUSTERS, n)].astype(np.float32)
    X[: n // 50, -1] += 100
    return X


# ---- Times


@benchmark(
    "{cases} x 50 float32 in host memory, on {device} with {memory}",
    "GB {:.1f} | fit, s {:.1f} | iterations | peak of the device, GB {:.1f} | "
    "copy alone, s {:.2f} | one pass, s {:.2f}",
)
def times(cases: int, device: str = "cuda", memory: str = "40GB") -> Rows:
    """Time a fit of a table in host memory, and one pass over it against the copy alone."""
    import dask
    import torch

    from rskc.engines.blocks.devices import placed

    X, on_gpu = in_memory(cases), torch.device(device).type == "cuda"
    with dask.config.set({"rskc.device-memory": memory, "scheduler": "threads"}):
        if on_gpu:
            torch.cuda.reset_peak_memory_stats(device)
        model = RobustSparseKMeans(CLUSTERS, random_state=0, device=device)
        fitted = seconds(lambda: model.fit(X))
        peak = torch.cuda.max_memory_reserved(device) / 1e9 if on_gpu else None
        blocks = placed(X, device)
        copied, passed = (
            min(seconds(work) for _ in range(3))
            for work in (copy_of(blocks, device), pass_over(blocks, device))
        )
    yield X.nbytes / 1e9, fitted, model.n_iter_, peak, copied, passed


def in_memory(n: int) -> np.ndarray:
    """Draw a table, by threads."""
    X = np.empty((n, COLUMNS), np.float32)

    def fill(first: int) -> None:
        X[first : first + CHUNK] = drawn(first, min(CHUNK, n - first))

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(0, n, CHUNK)))
    return X


def copy_of(blocks, device: str) -> Callable[[], object]:
    """Return what copies all rows to the device, on as many threads as a pass has."""
    from rskc.engines.blocks.devices import DEVICE_THREADS, device_named

    place, parts = device_named(device), list(blocks.dask.values())

    def copy(rows: np.ndarray) -> None:
        with place.work():
            place.copy(rows)

    def copy_all() -> None:
        with ThreadPoolExecutor(DEVICE_THREADS) as pool:
            list(pool.map(copy, parts))

    return copy_all


def pass_over(blocks, device: str) -> Callable[[], object]:
    """Return what finds the nearest centers of all cases, and sums these, in one read."""
    from rskc.engines.blocks import BlocksEngine

    engine = BlocksEngine(blocks, device=device)
    table = engine.table(engine.equal_weights())
    rows = next(iter(blocks.dask.values()))
    centers = table.place(rows[None, :CLUSTERS].astype(float))
    return lambda: table.sums(table.assign(centers).labels, CLUSTERS)
