"""The device engine: first that its results are the CPU's, then its speed against the limits.

Needs a CUDA device with torch: `make bench ARGS=gpu`, or `python -m benchmarks gpu`. flash-kmeans
is measured too where it is installed. The last output is kept in benchmarks/results/gpu.txt.
"""

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

from benchmarks.timing import print_table, times
from rskc import RobustSparseKMeans
from rskc.datasets import make_contaminated, make_simulation
from rskc.metrics import classification_error_rate

# What the sums of squares may differ by.
ROUNDING = {"float32": 1e-5, "float64": 1e-10}
CPU_THREADS = 2


def main() -> None:
    try:
        import torch
    except ImportError:
        torch = None
    if torch is None or not torch.cuda.is_available():
        print("\ngpu: no CUDA device here, nothing is measured.")
        return
    print(f"\n{torch.cuda.get_device_name()}, torch {torch.__version__}")
    same_answers(torch)
    one_pass(torch)
    one_iteration(torch)
    small_fits(torch)
    whole_fit(torch)
    many_cases(torch)
    prediction(torch)
    many_clusters(torch)


# ---- The same results


def same_answers(torch) -> None:
    rows, failed = [], False
    for name, (X, K, options) in problems().items():
        for dtype in (np.float32, np.float64):
            data, kind = X.astype(dtype), np.dtype(dtype).name
            cpu, gpu = (fit(K, table, options) for table in (data, torch.asarray(data).cuda()))
            off = abs(gpu.objective_ / cpu.objective_ - 1)
            error = classification_error_rate(gpu.labels_.cpu().numpy(), cpu.labels_)
            trimmed = np.count_nonzero(gpu.trimmed_.cpu().numpy() != cpu.trimmed_)
            good = off <= ROUNDING[kind] and error == 0
            failed |= not good
            rows.append((name, kind, f"{off:.0e}", f"{error:g}", trimmed, "ok" if good else "NO"))
    header = ("table", "precision", "objective off by", "labels off (CER)", "trimmed differ", "")
    print_table("The answers of the CPU", header, rows)
    if failed:
        sys.exit("gpu: the device gives other answers than the CPU.")


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RobustSparseKMeans(K, random_state=0, **options).fit(X)


# ---- One pass, one iteration


def one_pass(torch, n=1_000_000, q=100, K=10, runs=10) -> None:
    table, centers = table_and_centers(torch, n, q, K, runs)
    X, columns = table.rows, torch.randn(q, K * runs, device="cuda")
    product = milliseconds(torch, lambda: X @ columns)
    reading = milliseconds(torch, lambda: X.sum(dim=0))
    ours = milliseconds(torch, lambda: table.assign(centers))
    rows = [
        ("matrix product", f"{product:.2f}", ""),
        ("one read of the data", f"{reading:.2f}", ""),
        ("assign: labels and costs", f"{ours:.2f}", times(ours / (product + reading))),
    ]
    title = f"One assignment pass, {n} x {q}, K = {K}, {runs} runs, float32 (ms)"
    print_table(title, ("what", "ms", "of product + read"), rows)


def one_iteration(torch, n=1_000_000, q=100, K=10, runs=10) -> None:
    """Time rskc, which trims 5%, from the state of a fit after some iterations."""
    table, centers = table_and_centers(torch, n, q, K, runs)
    m = n // 20
    groups = table.trim(table.assign(centers), m).groups
    sums = table.sums(groups, K)
    states = []
    for _ in range(6):
        assignment = table.assign(sums.means())
        states.append((sums.means(), groups, sums.of_runs(np.arange(runs))))
        groups = table.regroup(assignment, m, sums, groups).groups

    def iterations():
        for means, before, own in states:
            table.regroup(table.assign(means), m, own.of_runs(np.arange(runs)), before)

    ours = milliseconds(torch, iterations) / len(states) / runs
    plain = milliseconds(
        torch, lambda: plain_iteration(torch, table.rows, centers_of(table, torch))
    )
    rows = [("rskc, trimmed, 10 runs at a time", f"{ours:.3f}", "")]
    rows.append(("torch: product + argmin + index_add_", f"{plain:.3f}", times(plain / ours)))
    flash = flash_iteration(torch, table.rows, K)
    if flash is not None:
        rows.append(("flash-kmeans 0.3.1", f"{flash:.3f}", times(flash / ours)))
    title = f"One iteration of one run, {n} x {q}, K = {K}, float32 (ms)"
    print_table(title, ("what", "ms", "rskc is faster by"), rows)


def table_and_centers(torch, n, q, K, runs):
    from rskc.engines import engine_for

    engine = engine_for(mixture(torch, n, q, K)[0])
    table = engine.search_table(engine.equal_weights())
    cases = np.random.default_rng(1).integers(0, n, runs * K)
    centers = table.rows[torch.asarray(cases, device="cuda")].double().cpu().numpy()
    return table, centers.reshape(runs, K, q)


def centers_of(table, torch, K=10):
    return table.rows[torch.arange(K, device="cuda") * 1000].clone()


def plain_iteration(torch, X, centers):
    """K-means as one would write it, without trimming and weights."""
    distances = torch.addmm((centers**2).sum(dim=1), X, centers.T, alpha=-2)
    labels = distances.argmin(dim=1)
    sums = torch.zeros_like(centers).index_add_(0, labels, X)
    return sums / torch.bincount(labels, minlength=len(centers)).clamp(min=1)[:, None]


def flash_iteration(torch, X, K, iterations=10):
    try:
        from flash_kmeans import batch_kmeans_Euclid
    except ImportError:
        return None

    def work(count):
        start = X[None, : K * 1000 : 1000].contiguous()
        batch_kmeans_Euclid(X[None], K, max_iters=count, tol=-1.0, init_centroids=start)

    few = milliseconds(torch, lambda: work(iterations))
    many = milliseconds(torch, lambda: work(2 * iterations))
    return (many - few) / iterations


# ---- Whole fits


def small_fits(torch) -> None:
    """Time small fits, of which Clest and the gap make hundreds."""
    rows = []
    for n, p in ((100, 1000), (1000, 20), (10_000, 50), (100_000, 50)):
        X = mixture(torch, n, p, 3, torch.float64)[0]
        options = {"trim": 0.05, "l1_bound": 2.0, "n_threads": CPU_THREADS}
        cpu, gpu = (
            min(timed_fit(torch, 3, table, options)[0] for _ in range(3))
            for table in (X.cpu().numpy(), X)
        )
        rows.append((f"{n} x {p}", f"{cpu * 1e3:.0f}", f"{gpu * 1e3:.0f}", times(cpu / gpu)))
    header = ("table", f"CPU, {CPU_THREADS} threads, ms", "GPU, ms", "GPU is faster by")
    print_table("Small fits, as in Clest and the gap", header, rows)


def whole_fit(torch, n=1_000_000, p=2000, sizes=(50_000, 100_000)) -> None:
    """Time the CPU on two smaller tables, and extrapolate linearly."""
    options = {"trim": 0.05, "l1_bound": 15.0, "n_init": 20}
    X, target = mixture(torch, n, p, 10)
    first, model = timed_fit(torch, 10, X, options)
    again, _ = timed_fit(torch, 10, X, options)
    error = classification_error_rate(model.labels_.cpu().numpy()[::100], target[::100])
    del X, model
    options["n_threads"] = CPU_THREADS
    cpu = [timed_fit(torch, 10, cpu_data(torch, size, p), options)[0] for size in sizes]
    slope = max(cpu[1] - cpu[0], 0) / (sizes[1] - sizes[0])
    scaled = cpu[1] + slope * (n - sizes[1])
    rows = [
        (f"GPU, {n} x {p}", f"{first:.2f}", "first fit, kernels compiled in it"),
        (f"GPU, {n} x {p}", f"{again:.2f}", f"again; CER {error:.4f}"),
        (f"CPU, {sizes[0]} x {p}", f"{cpu[0]:.1f}", f"{CPU_THREADS} threads"),
        (f"CPU, {sizes[1]} x {p}", f"{cpu[1]:.1f}", f"{CPU_THREADS} threads"),
        (f"CPU, {n} x {p}", f"{scaled:.0f}", f"by {slope * 1e6:.0f} s a million cases"),
        ("GPU is faster by", times(scaled / again), "than that line"),
    ]
    title = "A whole fit, K = 10, n_init = 20, l1_bound = 15, trim = .05, float32"
    print_table(title, ("what", "s", ""), rows)


def cpu_data(torch, n, p):
    return mixture(torch, n, p, 10)[0].cpu().numpy()


def prediction(torch, n=10_000_000, p=100, K=10) -> None:
    """Time ``predict`` against one read of the data; see that it gives the labels of the fit."""
    X = mixture(torch, n, p, K)[0]
    reading, rows = milliseconds(torch, lambda: X.sum()), []
    for name, options in {"all features": {"l1_bound": None}, "sparse": {"l1_bound": 4.0}}.items():
        model = timed_fit(torch, K, X, {"trim": 0.05, **options})[1]
        ours = milliseconds(torch, lambda: model.predict(X))  # noqa: B023
        same = bool((model.predict(X) == model.labels_).all())
        rows.append((name, f"{ours:.2f}", times(ours / reading), "yes" if same else "NO"))
    title = f"predict, {n} x {p}, K = {K}, float32; one read takes {reading:.2f} ms"
    print_table(title, ("weights", "ms", "reads", "labels of the fit"), rows)


def many_cases(torch, n=10_000_000, p=100) -> None:
    X, target = mixture(torch, n, p, 10)
    torch.cuda.reset_peak_memory_stats()
    seconds, model = timed_fit(torch, 10, X, {"trim": 0.05, "l1_bound": 5.0, "n_init": 10})
    error = classification_error_rate(model.labels_.cpu().numpy()[::1000], target[::1000])
    memory = torch.cuda.max_memory_allocated() / 2**30
    rows = [(f"{n} x {p}", f"{seconds:.2f}", f"{error:.4f}", f"{memory:.0f} GiB")]
    print_table("Many cases, K = 10, n_init = 10", ("table", "s", "CER", "peak memory"), rows)


def many_clusters(torch, n=1_000_000, p=100, K=1000) -> None:
    X = mixture(torch, n, p, K)[0]
    first, again = (timed_fit(torch, K, X, {"trim": 0.05, "l1_bound": 6.0})[0] for _ in "12")
    rows = [(f"{n} x {p}, K = {K}", f"{first:.2f}", f"{again:.2f}")]
    print_table("Many clusters, robust and sparse", ("table", "first fit s", "again s"), rows)


def mixture(torch, n, p, K, dtype=None, informative=50, outlying=0.02):
    """Clusters that differ in some features, and some outlying cases; drawn on the device."""
    generator = torch.Generator("cuda").manual_seed(0)
    dtype, informative = dtype or torch.float32, min(informative, p)
    labels = torch.randint(K, (n,), generator=generator, device="cuda")
    means = 1.5 * torch.randn(K, informative, generator=generator, device="cuda", dtype=dtype)
    X = torch.randn(n, p, generator=generator, device="cuda", dtype=dtype)
    X[:, :informative] += means[labels]
    X[: int(outlying * n), -3:] += 50
    return X, labels.cpu().numpy()


# ---- Time


def milliseconds(torch, work: Callable[[], object], repeats: int = 20) -> float:
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


def timed_fit(torch, K, X, options) -> tuple[float, RobustSparseKMeans]:
    torch.cuda.synchronize()
    start = time.perf_counter()
    model = fit(K, X, options)
    torch.cuda.synchronize()
    return time.perf_counter() - start, model
