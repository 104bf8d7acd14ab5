"""The device engine: first that its results are the CPU's, then its speed against the limits.

Needs a CUDA device with torch: `make bench ARGS=gpu`, or `python -m benchmarks gpu`. flash-kmeans
is measured too where it is installed. The last output is kept in benchmarks/results/gpu.txt.
"""

import time
from collections.abc import Callable

import numpy as np

from benchmarks.declare import NotHereError, Rows, benchmark
from rskc import RobustSparseKMeans
from rskc.datasets import make_contaminated, make_simulation
from rskc.engines import engine_for
from rskc.metrics import classification_error_rate

try:
    import torch
except ImportError:
    torch = None

# What the sums of squares may differ by.
ROUNDING = {np.float32: 1e-5, np.float64: 1e-10}
CPU_THREADS = 2


def need_device() -> None:
    if torch is None or not torch.cuda.is_available():
        raise NotHereError("no CUDA device here")


# ---- The same results


@benchmark("The device", "device | torch")
def device() -> Rows:
    need_device()
    yield torch.cuda.get_device_name(), torch.__version__


@benchmark(
    "The answers of the CPU",
    "table | precision | objective off by {:.0e} | labels off (CER) {:g} | trimmed differ | ok",
)
def same_answers() -> Rows:
    need_device()
    for name, (X, K, options) in problems().items():
        for dtype, rounding in ROUNDING.items():
            data = X.astype(dtype)
            cpu, gpu = (fit(K, table, options) for table in (data, torch.asarray(data).cuda()))
            off = abs(gpu.objective_ / cpu.objective_ - 1)
            error = classification_error_rate(gpu.labels_.cpu().numpy(), cpu.labels_)
            trimmed = np.count_nonzero(gpu.trimmed_.cpu().numpy() != cpu.trimmed_)
            same = off <= rounding and error == 0
            yield name, dtype.__name__, off, error, trimmed, same


def problems() -> dict:
    """Tables that take every path: tall, wide, trimmed, sparse, with missing cells."""
    tall = make_simulation(1, 0, n_samples=20_000, n_features=50, n_informative=10).data
    wide = make_contaminated("shared_cell", random_state=0).data
    missing = make_simulation(1, 1, n_samples=3000, n_features=20, n_informative=5).data.copy()
    missing[np.random.default_rng(0).random(missing.shape) < 0.05] = np.nan
    return {
        "20000 x 50, robust sparse": (tall, 3, {"trim": 0.05, "l1_bound": 3.0}),
        "20000 x 50, trimmed": (tall, 3, {"trim": 0.05, "l1_bound": None}),
        "20000 x 50, K-means": (tall, 5, {"trim": 0.0, "l1_bound": None}),
        "60 x 500, robust sparse": (wide, 3, {"trim": 0.1, "l1_bound": 3.5}),
        "3000 x 20 with missing cells": (missing, 3, {"trim": 0.05, "l1_bound": 2.0}),
    }


def fit(K, X, options):
    return RobustSparseKMeans(K, random_state=0, **options).fit(X)


# ---- One pass, one iteration


@benchmark(
    "One assignment pass, {n} x {q}, K = {K}, {runs} runs, float32",
    "matrix product, ms {:.2f} | one read of the data, ms {:.2f} | "
    "assign: labels and costs, ms {:.2f} | of product + read {:.1f}x",
)
def one_pass(n=1_000_000, q=100, K=10, runs=10) -> Rows:
    table, centers = table_and_centers(n, q, K, runs)
    X, columns = table.rows, torch.randn(q, K * runs, device="cuda")
    product = milliseconds(lambda: X @ columns)
    reading = milliseconds(lambda: X.sum(dim=0))
    ours = milliseconds(lambda: table.assign(centers))
    yield product, reading, ours, ours / (product + reading)


@benchmark(
    "One iteration of one run, {n} x {q}, K = {K}, float32",
    "what | ms {:.3f} | rskc is faster by {:.1f}x",
)
def one_iteration(n=1_000_000, q=100, K=10, runs=10) -> Rows:
    """Time rskc, which trims 5%, from the state of a fit after some iterations."""
    table, centers = table_and_centers(n, q, K, runs)
    m = n // 20
    groups = table.trim(table.assign(centers), m).groups
    sums = table.sums(groups, K)
    states = []
    for _ in range(6):
        assignment = table.assign(sums.means())
        states.append((sums.means(), groups, sums.of_runs(np.arange(runs))))
        groups = table.regroup(assignment, m, sums, groups).groups

    def iterations():
        for means, before, known in states:
            table.regroup(table.assign(means), m, known.of_runs(np.arange(runs)), before)

    ours = milliseconds(iterations) / len(states) / runs
    yield f"rskc, trimmed, {runs} runs at a time", ours, None
    start = table.rows[torch.arange(K, device="cuda") * 1000].clone()
    plain = milliseconds(lambda: plain_iteration(table.rows, start))
    yield "torch: product + argmin + index_add_", plain, plain / ours
    flash = flash_iteration(table.rows, K)
    if flash is not None:
        yield "flash-kmeans 0.3.1", flash, flash / ours


def table_and_centers(n, q, K, runs):
    engine = engine_for(mixture(n, q, K)[0])
    table = engine.compact_table(engine.equal_weights(), engine.float32)
    cases = np.random.default_rng(1).integers(0, n, runs * K)
    centers = table.rows[torch.asarray(cases, device="cuda")].double().cpu().numpy()
    return table, centers.reshape(runs, K, q)


def plain_iteration(X, centers):
    """K-means as one would write it, without trimming and weights."""
    distances = torch.addmm((centers**2).sum(dim=1), X, centers.T, alpha=-2)
    labels = distances.argmin(dim=1)
    sums = torch.zeros_like(centers).index_add_(0, labels, X)
    return sums / torch.bincount(labels, minlength=len(centers)).clamp(min=1)[:, None]


def flash_iteration(X, K, iterations=10):
    try:
        from flash_kmeans import batch_kmeans_Euclid
    except ImportError:
        return None

    def work(count):
        start = X[None, : K * 1000 : 1000].contiguous()
        batch_kmeans_Euclid(X[None], K, max_iters=count, tol=-1.0, init_centroids=start)

    few = milliseconds(lambda: work(iterations))
    many = milliseconds(lambda: work(2 * iterations))
    return (many - few) / iterations


# ---- Whole fits


@benchmark(
    "Small fits, of which Clest and the gap make hundreds",
    "table | CPU, 2 threads, ms {:.0f} | GPU, ms {:.0f} | GPU is faster by {:.1f}x",
)
def small_fits() -> Rows:
    for n, p in ((100, 1000), (1000, 20), (10_000, 50), (100_000, 50)):
        X = mixture(n, p, 3, torch.float64)[0]
        options = {"trim": 0.05, "l1_bound": 2.0, "n_threads": CPU_THREADS}
        cpu, gpu = (
            min(timed_fit(3, table, options)[0] for _ in range(3)) for table in (X.cpu().numpy(), X)
        )
        yield f"{n} x {p}", cpu * 1e3, gpu * 1e3, cpu / gpu


@benchmark(
    "A whole fit, K = 10, n_init = 20, l1_bound = 15, trim = .05, float32",
    "what | s {:.2f} | remark",
)
def whole_fit(n=1_000_000, p=2000, sizes=(50_000, 100_000)) -> Rows:
    """Time the CPU on two smaller tables, and extrapolate linearly."""
    options = {"trim": 0.05, "l1_bound": 15.0, "n_init": 20}
    X, target = mixture(n, p, 10)
    first, model = timed_fit(10, X, options)
    again, _ = timed_fit(10, X, options)
    error = classification_error_rate(model.labels_.cpu().numpy()[::100], target[::100])
    del X, model
    yield f"GPU, {n} x {p}", first, "first fit, kernels compiled in it"
    yield f"GPU, {n} x {p}", again, f"again; CER {error:.4f}"
    options["n_threads"] = CPU_THREADS
    cpu = [timed_fit(10, mixture(size, p, 10)[0].cpu().numpy(), options)[0] for size in sizes]
    for size, took in zip(sizes, cpu, strict=True):
        yield f"CPU, {size} x {p}", took, f"{CPU_THREADS} threads"
    slope = max(cpu[1] - cpu[0], 0) / (sizes[1] - sizes[0])
    scaled = cpu[1] + slope * (n - sizes[1])
    remark = f"by {slope * 1e6:.0f} s a million cases: GPU is faster by {scaled / again:.1f}x"
    yield f"CPU, {n} x {p}", scaled, remark


@benchmark(
    "predict, {n} x {p}, K = {K}, float32",
    "weights | ms {:.2f} | one read, ms {:.2f} | reads {:.1f} | labels of the fit",
)
def prediction(n=10_000_000, p=100, K=10) -> Rows:
    """Time ``predict`` against one read of the data; see that it gives the labels of the fit."""
    X = mixture(n, p, K)[0]
    reading = milliseconds(lambda: X.sum())
    for name, options in {"all features": {"l1_bound": None}, "sparse": {"l1_bound": 4.0}}.items():
        model = timed_fit(K, X, {"trim": 0.05, **options})[1]
        ours = milliseconds(lambda: model.predict(X))  # noqa: B023
        yield name, ours, reading, ours / reading, bool((model.predict(X) == model.labels_).all())


@benchmark(
    "Many cases, K = 10, n_init = 10", "table | s {:.2f} | CER {:.4f} | peak memory, GiB {:.0f}"
)
def many_cases(n=10_000_000, p=100) -> Rows:
    X, target = mixture(n, p, 10)
    torch.cuda.reset_peak_memory_stats()
    seconds, model = timed_fit(10, X, {"trim": 0.05, "l1_bound": 5.0, "n_init": 10})
    error = classification_error_rate(model.labels_.cpu().numpy()[::1000], target[::1000])
    yield f"{n} x {p}", seconds, error, torch.cuda.max_memory_allocated() / 2**30


@benchmark("Many clusters, robust and sparse", "table | first fit s {:.2f} | again s {:.2f}")
def many_clusters(n=1_000_000, p=100, K=1000) -> Rows:
    X = mixture(n, p, K)[0]
    times = (timed_fit(K, X, {"trim": 0.05, "l1_bound": 6.0})[0] for _ in "12")
    yield f"{n} x {p}, K = {K}", *times


def mixture(n, p, K, dtype=None, informative=50, outlying=0.02):
    """Clusters that differ in some features, and some outlying cases; drawn on the device."""
    need_device()
    generator = torch.Generator("cuda").manual_seed(0)
    dtype, informative = dtype or torch.float32, min(informative, p)
    labels = torch.randint(K, (n,), generator=generator, device="cuda")
    means = 1.5 * torch.randn(K, informative, generator=generator, device="cuda", dtype=dtype)
    X = torch.randn(n, p, generator=generator, device="cuda", dtype=dtype)
    X[:, :informative] += means[labels]
    X[: int(outlying * n), -3:] += 50
    return X, labels.cpu().numpy()


# ---- Time


def milliseconds(work: Callable[[], object], repeats: int = 20) -> float:
    """Least time of some calls, as the device counts it."""
    for _ in range(3):
        work()
    best = np.inf
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in "12")
        torch.cuda.synchronize()
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end))
    return best


def timed_fit(K, X, options) -> tuple[float, RobustSparseKMeans]:
    torch.cuda.synchronize()
    start = time.perf_counter()
    model = fit(K, X, options)
    torch.cuda.synchronize()
    return time.perf_counter() - start, model
