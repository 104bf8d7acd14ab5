"""What ``rskc.plan`` says, and what a fit or a search takes.

``planned``: six tables, on four of which the constants of searches were settled; those of fits were
on eight others, of 200 x 20,000 to 1,600,000 x 20. ``judged``: searches of tables and settings on
which no constant was settled. Both on one thread, in seconds of the processor on both sides, so
that other programs do not count. ``on_gpu``: time and memory of tables on a GPU, or in blocks that
go there.
"""

import time

import numpy as np
from scipy.sparse import csr_array

from benchmarks.data import levels, mixture, with_missing
from benchmarks.declare import NotHereError, Rows, benchmark
from benchmarks.timing import seconds
from rskc import RobustSparseKMeans, plan, planning
from rskc.datasets import make_simulation
from rskc.selection import Clest, GapL1, GridSearch, Stability

OPTIONS = {"random_state": 0, "n_threads": 1}
TEN_STARTS = RobustSparseKMeans(n_init=10, **OPTIONS)
MODELS = {
    "K given": lambda: RobustSparseKMeans(4, **OPTIONS),
    "automatic": lambda: searching(TEN_STARTS, range(2, 7), max_samples=2000),
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
COLUMNS = (
    "plan, s {:.2f} | predicted, s {:.2f} | taken, s {:.2f} | taken / predicted {:.2f} | K chosen"
)


def compared(X, model) -> tuple:
    """Plan, and fit."""
    planning.CLOCK = clock = time.process_time
    start = clock()
    expected = plan(X, model).expected_seconds
    planning_took = clock() - start
    taken = seconds(lambda: model.fit(X), clock)
    return planning_took, expected, taken, taken / expected, getattr(model, "n_clusters_", None)


@benchmark("Time that was predicted, and that a fit took", "table | clusters | " + COLUMNS)
def planned(most: int = len(TABLES)) -> Rows:
    for name, make in list(TABLES.items())[:most]:
        X = make()
        for clusters, model_of in MODELS.items():
            yield name, clusters, *compared(X, model_of())


# ---- Searches


def searching(model=None, n_clusters="auto", kind=Stability, **options):
    model = model or RobustSparseKMeans(**OPTIONS)
    return kind(model, n_clusters, n_jobs=1, random_state=0, **options)


GIVEN = RobustSparseKMeans(4, trim=0.05, l1_bound=2.0, n_init=10, **OPTIONS)
SEARCHES = {
    "120 x 300, simulated": (
        lambda: make_simulation(1, 9, n_samples=120, n_features=300, n_informative=30).data,
        searching(),
    ),
    "2,500 x 15 float32, K=5 levels": (
        lambda: levels(2500, 15, 5, 6, 0.02).astype("f4"),
        searching(n_clusters=range(2, 9)),
    ),
    "700 x 25, noise": (lambda: np.random.default_rng(31).normal(size=(700, 25)), searching()),
    "3,500 x 40, K=7": (
        lambda: mixture(3500, 40, 7, seed=32, informative=12),
        searching(n_clusters=range(3, 10)),
    ),
    "250 x 2,000, K=3": (
        lambda: mixture(250, 2000, 3, seed=33, informative=40),
        searching(n_clusters=range(2, 6)),
    ),
    "60,000 x 12 float32, K=5": (
        lambda: mixture(60_000, 12, 5, seed=34, informative=6).astype("f4"),
        searching(n_clusters=range(2, 7)),
    ),
    "900 x 8, K=6, all given": (
        lambda: mixture(900, 8, 6, seed=35, informative=8),
        searching(GIVEN, range(2, 11)),
    ),
    "1,200 x 30, K=2": (lambda: mixture(1200, 30, 2, seed=36), searching()),
    "Clest, 800 x 20": (lambda: mixture(800, 20, 4, 37, 8), searching(GIVEN, range(2, 7), Clest)),
    "gap, 600 x 60": (lambda: mixture(600, 60, 3, 38, 15), searching(GIVEN, 10, GapL1)),
    "grid, 1,000 x 30": (
        lambda: mixture(1000, 30, 4, 39),
        searching(GIVEN, range(2, 6), GridSearch),
    ),
}


@benchmark("Searches of other tables", "table | " + COLUMNS)
def judged(only: str = "") -> Rows:
    for name, (make, search) in SEARCHES.items():
        if only in name:
            yield name, *compared(make(), search)


# ---- GPUs


@benchmark(
    "Plans on a GPU, {n} x {p} float32; in host memory, with this memory of the device",
    "clusters | data | memory | engine | plan, s {:.1f} | predicted, s {:.2f} | taken, s {:.2f} | "
    "taken / predicted {:.2f} | GB predicted {:.2f} | GB of data and device {:.2f} | "
    "taken / predicted {:.2f}",
)
def on_gpu(n: int = 1_000_000, p: int = 50, memory: str = "", clusters: str = "5 50") -> Rows:
    import dask
    import torch

    if not torch.cuda.is_available():
        raise NotHereError("there is no GPU")
    planning.CLOCK = time.perf_counter
    X = torch.from_numpy(mixture(n, p, seed=n + p).astype("f4"))
    X, device = (X.numpy(), "cuda") if memory else (X.cuda(), None)
    for K in map(int, str(clusters).split()):
        for kind, asked in {"automatic": {}, "given": {"trim": 0.05, "n_features": 10}}.items():
            model = RobustSparseKMeans(K, random_state=0, device=device, **asked)
            with dask.config.set({"rskc.device-memory": memory or None, "scheduler": "threads"}):
                start = time.perf_counter()
                told = plan(X, model)
                planning_took = time.perf_counter() - start
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
                before = torch.cuda.memory_allocated()
                taken = seconds(lambda: model.fit(X))  # noqa: B023
            bytes_taken = torch.cuda.max_memory_allocated() - before + X.nbytes
            gigabytes = told.peak_bytes / 1e9, bytes_taken / 1e9
            expected = told.expected_seconds
            times = planning_took, expected, taken, taken / expected
            yield f"{K}", kind, memory, told.engine, *times, *gigabytes, gigabytes[1] / gigabytes[0]
