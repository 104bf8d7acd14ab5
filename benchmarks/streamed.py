"""Tables larger than memory, or than that of a GPU: what a fit reads and sends, and its time.

Counts, for which no clock is asked: `python -m benchmarks.streamed counts 1000000 10000000`. Blocks
are made anew whenever they are read; nothing of them is kept, or the columns that have weight are.
With ``--device cpu`` passes are made by torch. docs/howto/large-data.md has the table.

Times, of a table in host memory on a device that it does not fit on: `python -m benchmarks.streamed
times 400000000 --device cuda --memory 40GB`, which needs 90 GB of memory. With ``--device cpu`` and
fewer cases the same code runs anywhere.
"""

import argparse
import pickle
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks.timing import print_table, times
from rskc import RobustSparseKMeans

COLUMNS, CLUSTERS, CHUNK = 50, 10, 100_000
MODELS = {
    "all automatic": {},
    "trim=0.05, n_features=10": {"trim": 0.05, "n_features": 10},
    "trim=0.05, l1_bound=None": {"trim": 0.05, "l1_bound": None},
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["counts", "times"])
    parser.add_argument("sizes", nargs="*", type=int, default=[1_000_000])
    parser.add_argument("--device")
    parser.add_argument("--memory", default="1kB", help="of the device, for what is kept there")
    asked = parser.parse_args()
    for n in asked.sizes:
        if asked.what == "counts":
            counts(n, asked.device)
        else:
            streamed(n, asked.device or "cuda", asked.memory)


# ---- Counts


def counts(n: int, device: str | None) -> None:
    rows = [
        (name, f"{share:.0%}", *counted(n, options, device, share))
        for name, options in MODELS.items()
        for share in (0, 0.45)
    ]
    header = ("fit", "memory", "reads", "graphs", "iterations", "MB out", "MB back", "KB a graph")
    print_table(f"{n} x {COLUMNS} float32, K = {CLUSTERS}; memory as a share of it", header, rows)


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
    with dask.config.set(config), watched(count), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    sizes = (f"{count[way] / 1e6:.1f}" for way in ("out", "back"))
    a_graph = f"{(count['out'] + count['back']) / count['graphs'] / 1e3:.0f}"
    return f"{count['cells'] / (n * COLUMNS):.1f}", count["graphs"], model.n_iter_, *sizes, a_graph


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


def streamed(n: int, device: str, memory: str) -> None:
    """Time a fit of a table in host memory, and one pass over it against the copy alone."""
    import dask

    X = in_memory(n)
    with dask.config.set({"rskc.device-memory": memory, "scheduler": "threads"}):
        seconds, model, peak = fit_seconds(X, device)
        rows = [
            ("fit, s", f"{seconds:.1f}", ""),
            ("iterations", model.n_iter_, ""),
            ("peak of the device, GB", peak, ""),
        ]
        copied, passed = copy_seconds(X, device), pass_seconds(X, device)
        rows += [
            ("copy alone, s", f"{copied:.2f}", f"{X.nbytes / copied / 1e9:.1f} GB/s"),
            ("one pass, s", f"{passed:.2f}", times(passed / copied)),
        ]
    size = f"{n} x {COLUMNS} float32, {X.nbytes / 1e9:.1f} GB in host memory"
    print_table(f"{size}, on {device} with {memory}", ("measured", "", ""), rows)


def in_memory(n: int) -> np.ndarray:
    """Draw a table, by threads."""
    X = np.empty((n, COLUMNS), np.float32)

    def fill(first: int) -> None:
        X[first : first + CHUNK] = drawn(first, min(CHUNK, n - first))

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(0, n, CHUNK)))
    return X


def fit_seconds(X: np.ndarray, device: str) -> tuple[float, RobustSparseKMeans, str]:
    """Fit, and return the largest memory that was taken on a GPU too."""
    import torch

    if torch.device(device).type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    model, start = RobustSparseKMeans(CLUSTERS, random_state=0, device=device), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    seconds, peak = time.perf_counter() - start, "none"
    if torch.device(device).type == "cuda":
        peak = f"{torch.cuda.max_memory_reserved(device) / 1e9:.1f}"
    return seconds, model, peak


def copy_seconds(X: np.ndarray, device: str, repeats: int = 3) -> float:
    """Copy all rows to the device, block by block, on as many threads as a pass has."""
    from rskc.engines.blocks.devices import BLOCK_BYTES, device_named

    place, step = device_named(device), BLOCK_BYTES // (COLUMNS * X.itemsize)

    def copy(first: int) -> None:
        with place.work():
            place.copy(X[first : first + step])

    with ThreadPoolExecutor() as pool:
        return best(lambda: list(pool.map(copy, range(0, len(X), step))), repeats)


def pass_seconds(X: np.ndarray, device: str, repeats: int = 3) -> float:
    """Find the nearest centers of all cases, and sum these, in one read of the data."""
    from rskc.engines.blocks import blocks_engine
    from rskc.engines.blocks.devices import BLOCK_BYTES, cut

    engine = blocks_engine(cut(X, BLOCK_BYTES // (COLUMNS * X.itemsize)), device=device)
    table = engine.table(engine.equal_weights())
    centers = table.place(X[None, :CLUSTERS].astype(float))
    return best(lambda: table.sums(table.assign(centers).labels, CLUSTERS), repeats)


def best(work, repeats: int) -> float:
    """Return the least time of some calls."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
