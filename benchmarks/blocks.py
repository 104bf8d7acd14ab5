"""The Dask engine: compared with memory, by the number of cases, out of core, its traffic."""

import contextlib
import io
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.data import mixture
from benchmarks.declare import Rows, benchmark
from benchmarks.timing import Usage, apart, best_of, seconds, usage
from rskc import RobustSparseKMeans

THREADS = 2
COLUMNS = 50
OPTIONS = {"n_clusters": 8, "trim": 0.05, "l1_bound": 3.0, "n_init": 10, "random_state": 0}
CHUNK = 125_000


@benchmark(
    "A whole fit of {n} x 50 by both engines, two threads",
    "memory s {:.1f} | Dask s {:.1f} | of memory's {:.1f}x | same labels",
)
def in_memory(n: int = 2_000_000, repeats: int = 2) -> Rows:
    import dask
    import dask.array as da

    X = mixture(n, COLUMNS)
    tables = X, da.from_array(X, chunks=(CHUNK, -1))
    models = [RobustSparseKMeans(**OPTIONS, n_threads=THREADS) for _ in tables]
    with dask.config.set(scheduler="threads", num_workers=THREADS):
        memory, blocks = best_of(
            repeats,
            lambda: models[0].fit(tables[0]),
            lambda: np.asarray(models[1].fit(tables[1]).labels_),
        )
        same = np.array_equal(*(np.asarray(model.labels_) for model in models))
    yield memory, blocks, blocks / memory, same


# ---- By the number of cases


@benchmark(
    "One iteration of trimmed K-means as cases grow, 50 columns, K = 8, {runs} run, two threads",
    "cases | s {:.3f} | ns a case {:.0f} | slope, 1 is linear {:.2f}",
)
def growth(largest: int = 8_000_000, runs: int = 1) -> Rows:
    """One run, as after the search on a sample."""
    import dask

    sizes, taken = [], []
    with dask.config.set(scheduler="threads", num_workers=THREADS):
        for n in (largest // 2**i for i in range(4, -1, -1)):
            iterate = iterations(drawn_blocks(n), runs)
            sizes.append(n)
            taken.append(min(seconds(lambda: next(iterate)) for _ in range(5)))  # noqa: B023
            slope = np.polyfit(np.log(sizes), np.log(taken), 1)[0] if len(sizes) > 1 else None
            yield n, taken[-1], taken[-1] / n * 1e9, slope


def drawn_blocks(n: int, chunk: int = CHUNK):
    """A table in the memory of the scheduler's workers, in blocks."""
    import dask.array as da

    draw = da.random.default_rng(0).standard_normal
    return draw((n, COLUMNS), chunks=(chunk, COLUMNS)).persist()


def iterations(X, runs: int, K: int = 8):
    """Yield after each iteration of trimmed K-means, from centers that are drawn."""
    from rskc.engines import engine_for

    engine = engine_for(X)
    table, m = engine.compact_table(engine.equal_weights(), engine.float32), engine.n_cases // 20
    centers = np.random.default_rng(0).standard_normal((runs, K, COLUMNS))
    groups = table.trim(table.assign(centers), m).groups
    sums = table.sums(groups, K)
    while True:
        groups = table.regroup(table.assign(sums.means()), m, sums, groups).groups
        yield


# ---- Out of core, and files from the command line

MEASURED = "s {:.0f} | CPU s {:.0f} | peak memory, GB {:.2f}"


def _measured(used: Usage) -> tuple[float, ...]:
    return used.seconds, used.cpu, used.peak * 2**20 / 1e9


@benchmark(
    "A table of {n} x 50 on disk, rskc.memory = {memory}",
    f"GB {{:.1f}} | {MEASURED} | of this before the fit {{:.2f}} | iterations",
)
def out_of_core(n: int = 15_000_000, memory: str = "600MB") -> Rows:
    """Cluster it in a process of its own, whose memory is watched."""
    with tempfile.TemporaryDirectory() as folder:
        path, step = Path(folder, "table.npy"), min(n, 500_000)
        table = np.lib.format.open_memmap(path, "w+", np.float64, (n, COLUMNS))
        for first in range(0, n, step):
            table[first : first + step] = mixture(min(step, n - first), COLUMNS, seed=first)
            table.flush()
        used = apart(fit_from_disk, path, n, memory)
        before = used.before * 2**20 / 1e9
        yield path.stat().st_size / 1e9, *_measured(used), before, used.result


def fit_from_disk(path: Path, n: int, memory: str) -> Usage:
    """Return what a fit takes, and the number of its iterations."""
    import dask
    import dask.array as da

    numbers = da.arange(n, chunks=CHUNK)[:, None]
    chunks = (numbers.chunks[0], (COLUMNS,))
    X = da.map_blocks(read_rows, numbers, path=path, dtype=float, chunks=chunks)

    def fit() -> int:
        model = RobustSparseKMeans(**OPTIONS).fit(X)
        model.labels_.compute()
        return model.n_iter_

    options = {"scheduler": "threads", "num_workers": THREADS, "rskc.memory": memory}
    with dask.config.set(options):
        return usage(fit)


def read_rows(numbers: np.ndarray, path: Path) -> np.ndarray:
    """Read the rows of a block; the file is not left mapped, which would count as memory."""
    return np.array(np.load(path, mmap_mode="r")[numbers[0, 0] : numbers[-1, 0] + 1])


@benchmark(
    "rskc fit of Parquet files, {n} x 50, {texts} columns of text, --memory {memory}",
    f"GB {{:.1f}} | {MEASURED}",
)
def parquet_files(
    n: int = 2_000_000, memory: str = "200MB", rows: int = 1_000_000, texts: int = 0
) -> Rows:
    """8 of 50 features have weight, and ``texts`` columns are text of three to eight values.

    The files have ``rows`` cases each, in one row group, as pyarrow writes them.
    """
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data")
        write_parquet(data, n, rows, texts)
        size = sum(path.stat().st_size for path in data.iterdir()) / 1e9
        used = apart(fit_by_command, data, "--n-features", "8", "--memory", memory)
        yield size, *_measured(used)


@benchmark("rskc fit of a CSV file, {n} x {p}, in memory", f"GB {{:.1f}} | {MEASURED}")
def text_file(n: int = 1_000_000, p: int = 20) -> Rows:
    import polars as pl

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        X = mixture(n, p, K=5)
        pl.DataFrame({f"v{j}": X[:, j] for j in range(p)}).write_csv(path)
        yield path.stat().st_size / 1e9, *_measured(apart(fit_by_command, path))


def fit_by_command(data: Path, *options: str) -> Usage:
    """Run ``rskc fit`` in this process; return time and memory."""
    from rskc.cli import main

    sys.argv = ["rskc", "fit", str(data), "-k", "5", *options]
    sys.argv += ["--threads", str(THREADS), "--out", str(data.parent / "out")]

    def run() -> None:
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError("rskc fit has failed") from end

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return usage(run)


def write_parquet(folder: Path, n: int, rows: int, texts: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    centers = 2 * np.random.default_rng(99).standard_normal((5, 8))
    for number, first in enumerate(range(0, n, rows)):
        rng, count = np.random.default_rng(number), min(rows, n - first)
        X = rng.standard_normal((count, COLUMNS))
        X[:, :8] += centers[rng.integers(0, 5, count)]
        X[: count // 50, -1] += 100
        columns = {f"v{j}": X[:, j] for j in range(COLUMNS)}
        for i in range(texts):  # the first two tell something of the clusters
            words = np.array([f"word {k}" for k in range(3 + i % 6)])
            cells = X[:, i] if i < 2 else X[:, 20 + i]
            columns[f"v{20 + i}"] = words[np.digitize(cells, np.linspace(-1, 1, len(words) - 1))]
        pq.write_table(pa.table(columns), folder / f"part-{number:03d}.parquet")


# ---- Traffic


@benchmark(
    "Bytes that travel in one iteration: 2 workers, 8 blocks, {runs} runs, K = 8",
    "cases | data, MB {:.0f} | between workers, MB {:.2f} | all of the network, MB {:.2f}",
)
def traffic(largest: int = 3_200_000, runs: int = 10) -> Rows:
    """What workers send one another, and what goes through the network in all."""
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        for n in (largest // 2**i for i in range(3, -1, -1)):
            iterate = iterations(drawn_blocks(n, n // 8), runs)
            for _ in range(5):
                next(iterate)
            counts = [bytes_of(client, iterate) for _ in range(11)]
            yield n, n * COLUMNS * 8 / 1e6, *np.median(counts, axis=0) / 1e6


def bytes_of(client, iterate) -> tuple[int, int]:
    """What workers received from one another, and what the loopback device sent in all."""
    import psutil

    def count():
        received = sum(client.run(received_bytes).values())
        return received, psutil.net_io_counters(pernic=True)["lo"].bytes_sent

    before = count()
    next(iterate)
    after = count()
    return after[0] - before[0], after[1] - before[1]


def received_bytes(dask_worker) -> int:
    return sum(transfer["total"] for transfer in dask_worker.transfer_incoming_log)
