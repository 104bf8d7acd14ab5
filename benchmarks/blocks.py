"""The Dask engine: compared with memory, by the number of cases, out of core, its traffic."""

import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks.timing import print_table, times
from rskc import RobustSparseKMeans

THREADS = 2
COLUMNS = 50
OPTIONS = {"n_clusters": 8, "trim": 0.05, "l1_bound": 3.0, "n_init": 10, "random_state": 0}
CHUNK = 125_000


def main() -> None:
    compare_with_memory()
    growth()
    out_of_core()
    parquet_files()
    parquet_files(n_texts=10)
    text_file()
    traveling()


def mixture(n: int, p: int = COLUMNS, K: int = 8, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, :10] += 2 * rng.standard_normal((K, 10))[rng.integers(0, K, n)]
    X[: n // 50, -1] += 100
    return X


def compare_with_memory(n: int = 2_000_000, repeats: int = 3) -> None:
    """Time the same fit of a table that fits into memory, by both engines on the same threads."""
    import dask
    import dask.array as da

    X = mixture(n)
    blocks = da.from_array(X, chunks=(CHUNK, -1))
    model = RobustSparseKMeans(**OPTIONS, n_threads=THREADS)
    best = {"memory": np.inf, "dask": np.inf}
    labels = {}
    with dask.config.set(scheduler="threads", num_workers=THREADS):
        for _ in range(repeats):
            for name, table in (("memory", X), ("dask", blocks)):
                start = time.perf_counter()
                labels[name] = np.asarray(quietly(model, table).labels_)
                best[name] = min(best[name], time.perf_counter() - start)
    same = "same labels" if np.array_equal(*labels.values()) else "OTHER LABELS"
    rows = [
        ("in memory", f"{best['memory']:.1f}", ""),
        ("Dask, threaded", f"{best['dask']:.1f}", times(best["dask"] / best["memory"])),
    ]
    title = f"A whole fit of {n} x {COLUMNS}, {THREADS} threads; {same}"
    print_table(title, ("engine", "s", "of memory's"), rows)


def quietly(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


# ---- By the number of cases


def growth(sizes=(500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000), runs: int = 1) -> None:
    """Time one iteration of trimmed K-means: one run, as after the search on a sample."""
    import dask

    rows, seconds = [], []
    with dask.config.set(scheduler="threads", num_workers=THREADS):
        for n in sizes:
            seconds.append(iteration_seconds(drawn_blocks(n), runs))
            rows.append((n, f"{seconds[-1]:.3f}", f"{seconds[-1] / n * 1e9:.0f}"))
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    rows.append(("slope", f"{slope:.2f}", "1 is linear"))
    title = f"One iteration as cases grow, {COLUMNS} columns, K = 8, {runs} run, {THREADS} threads"
    print_table(title, ("cases", "s", "ns a case"), rows)


def drawn_blocks(n: int, chunk: int = CHUNK):
    """A table in the memory of the scheduler's workers, in blocks."""
    import dask.array as da

    draw = da.random.default_rng(0).standard_normal
    return draw((n, COLUMNS), chunks=(chunk, COLUMNS)).persist()


def iteration_seconds(X, runs: int, repeats: int = 5) -> float:
    iterate, best = iterations(X, runs), np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        next(iterate)
        best = min(best, time.perf_counter() - start)
    return best


def iterations(X, runs: int, K: int = 8):
    """Yield after each iteration of trimmed K-means, from centers that are drawn."""
    from rskc.engines import engine_for

    engine = engine_for(X)
    table, m = engine.search_table(engine.equal_weights()), engine.n_cases // 20
    centers = np.random.default_rng(0).standard_normal((runs, K, COLUMNS))
    groups = table.trim(table.assign(centers), m).groups
    sums = table.sums(groups, K)
    while True:
        groups = table.regroup(table.assign(sums.means()), m, sums, groups).groups
        yield


# ---- Out of core


def out_of_core(n: int = 15_000_000, memory: str = "600MB") -> None:
    """A table of 6 GB on disk, clustered by a process of its own whose memory is watched."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npy"
        write_table(path, n)
        command = [sys.executable, "-m", "benchmarks.blocks", str(path), memory]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        size = path.stat().st_size
    title = f"A table of {size / 1e9:.1f} GB on disk, {n} x {COLUMNS}, rskc.memory = {memory}"
    print_table(title, ("measured", ""), [tuple(line.split("\t")) for line in said.splitlines()])


def write_table(path: Path, n: int, step: int = 500_000) -> None:
    table = np.lib.format.open_memmap(path, "w+", np.float64, (n, COLUMNS))
    for first in range(0, n, step):
        table[first : first + step] = mixture(min(step, n - first), seed=first)
        table.flush()


def fit_from_disk(path: str, memory: str) -> None:
    """Fit, then print the time and the memory."""
    import dask
    import dask.array as da

    n = np.load(path, mmap_mode="r").shape[0]
    numbers = da.arange(n, chunks=CHUNK)[:, None]
    chunks = (numbers.chunks[0], (COLUMNS,))
    X = da.map_blocks(read_rows, numbers, path=path, dtype=float, chunks=chunks)
    before, start = peak(), time.perf_counter()
    options = {"scheduler": "threads", "num_workers": THREADS, "rskc.memory": memory}
    with dask.config.set(options):
        model = quietly(RobustSparseKMeans(**OPTIONS), X)
        sizes = np.bincount(model.labels_.compute(), minlength=8)
    print(f"seconds\t{time.perf_counter() - start:.0f}")
    print(f"peak memory of the process, GB\t{peak():.2f}")
    print(f"of this before the fit, GB\t{before:.2f}")
    print(f"iterations\t{model.n_iter_}")
    print(f"cases of the smallest cluster\t{sizes.min()}")


def read_rows(numbers: np.ndarray, path: str) -> np.ndarray:
    """Read the rows of a block; the file is not left mapped, which would count as memory."""
    return np.array(np.load(path, mmap_mode="r")[numbers[0, 0] : numbers[-1, 0] + 1])


# ---- Files, from the command line


def parquet_files(
    n: int = 2_000_000, memory: str = "200MB", rows: int = 1_000_000, n_texts: int = 0
) -> None:
    """``rskc fit`` of a folder of Parquet files, 8 of 50 features with weight.

    The files have ``rows`` cases each, in one row group, as pyarrow writes them; ``n_texts`` of the
    columns are text of three to eight values. By ``python -m benchmarks.blocks parquet 10000000 1GB
    1000000 10`` with other sizes.
    """
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        write_parquet(data, n, rows, n_texts=n_texts)
        size = sum(path.stat().st_size for path in data.iterdir())
        lines = measured_fit(data, "--n-features", "8", "--memory", memory)
    title = (
        f"rskc fit of {n} x {COLUMNS} in Parquet files of {size / 1e9:.1f} GB, {n_texts} columns "
        f"of text, --memory {memory}"
    )
    print_table(title, ("measured", ""), lines)


def text_file(n: int = 1_000_000, p: int = 20) -> None:
    """``rskc fit`` of a CSV file, which is read in memory."""
    import polars as pl

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        X = mixture(n, p, K=5)
        pl.DataFrame({f"v{j}": X[:, j] for j in range(p)}).write_csv(path)
        size = path.stat().st_size
        lines = measured_fit(path)
    title = f"rskc fit of {n} x {p} in a CSV file of {size / 1e9:.1f} GB"
    print_table(title, ("measured", ""), lines)


# Its own memory: what getrusage says of a child begins with that of its parent, which has written
# the files.
PEAK_AT_EXIT = """
import atexit, pathlib, sys
from rskc.cli import main
status = pathlib.Path("/proc/self/status")
atexit.register(lambda: print(status.read_text(), file=sys.stderr))
main()
"""


def measured_fit(data: Path, *options: str) -> list[tuple[str, str]]:
    """Run ``rskc fit`` as a process of its own; return time and memory."""
    command = [sys.executable, "-c", PEAK_AT_EXIT, "fit", str(data), "-k", "5", *options]
    command += ["--threads", str(THREADS), "--out", str(data.parent / "out")]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    seconds, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return [
        ("seconds", f"{seconds:.0f}"),
        ("seconds of processor time", f"{cpu:.0f}"),
        ("peak memory of the process, GB", f"{peak(said):.2f}"),
    ]


def write_parquet(folder: Path, n: int, rows: int, K: int = 5, n_texts: int = 0) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    centers = 2 * np.random.default_rng(99).standard_normal((K, 8))
    for number, first in enumerate(range(0, n, rows)):
        rng, count = np.random.default_rng(number), min(rows, n - first)
        X = rng.standard_normal((count, COLUMNS))
        X[:, :8] += centers[rng.integers(0, K, count)]
        X[: count // 50, -1] += 100
        columns = {f"v{j}": X[:, j] for j in range(COLUMNS)}
        for i in range(n_texts):  # the first ones tell something of the clusters
            words = np.array([f"word {k}" for k in range(3 + i % 6)])
            cells = X[:, i] if i < 2 else X[:, 20 + i]
            columns[f"v{20 + i}"] = words[np.digitize(cells, np.linspace(-1, 1, len(words) - 1))]
        pq.write_table(pa.table(columns), folder / f"part-{number:03d}.parquet")


def peak(status: str | None = None) -> float:
    """Largest resident memory in GB, as Linux counts it (getrusage counts the parent's too)."""
    lines = (status or Path("/proc/self/status").read_text()).splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e9


# ---- Traffic


def traveling(sizes=(400_000, 800_000, 1_600_000, 3_200_000), runs: int = 10) -> None:
    """What workers send one another, and what goes through the network in all, in an iteration."""
    from distributed import Client, LocalCluster

    rows = []
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        for n in sizes:
            iterate = iterations(drawn_blocks(n, n // 8), runs)
            for _ in range(5):
                next(iterate)
            counts = [bytes_of(client, iterate) for _ in range(11)]
            between, network = np.median(counts, axis=0)
            rows.append(
                (n, f"{n * COLUMNS * 8 / 1e6:.0f}", *(f"{c / 1e6:.2f}" for c in (between, network)))
            )
    title = f"Bytes that travel in one iteration: 2 workers, 8 blocks, {runs} runs, K = 8"
    print_table(title, ("cases", "data, MB", "between workers, MB", "all of the network, MB"), rows)


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


if __name__ == "__main__":
    if sys.argv[1] == "parquet":
        parquet_files(int(sys.argv[2]), *sys.argv[3:4], *map(int, sys.argv[4:]))
    elif sys.argv[1] == "csv":
        text_file(*map(int, sys.argv[2:]))
    else:
        fit_from_disk(*sys.argv[1:])
