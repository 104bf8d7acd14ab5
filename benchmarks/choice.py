"""Choices that the data make: features and outlying cases, with K given and all else default."""

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from benchmarks.declare import Rows, and_mean, benchmark
from benchmarks.designs import DESIGNS, SMALL_CLUSTERS, Design, make_design
from benchmarks.timing import best_of
from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.metrics import classification_error_rate
from rskc.selection import GapL1

# No method that is measured here separates the factors of "correlated noise" from clusters.
JUDGED = [name for name in DESIGNS if name != "correlated noise"]
RESULT = (
    "CER {:.4f} | recall {:.3f} | false {:.1f} | outlying found {:.3f} | clean flagged {:.4f} | "
    "seconds {:.2f}"
)


class Result(NamedTuple):
    """How good a model is; NaN where a table has nothing of the kind."""

    cer: float  # of the cases that belong to a cluster
    recall: float  # of the features that differ
    false: float  # features with weight that do not
    found: float  # share of the outlying cases that is flagged
    flagged: float  # share of the other cases that is
    seconds: float


def judged(model: RobustSparseKMeans, design: Design, seconds: float) -> Result:
    """Compare a model with the truth about a simulated table."""
    member, outlying = design.labels >= 0, design.outlying
    support = model.get_support() & (model.n_clusters > 1)
    true = design.informative
    return Result(
        classification_error_rate(model.labels_[member], design.labels[member]),
        support[true].mean() if true.any() else np.nan,
        float(support[~true].sum()),
        model.outliers_[outlying].mean() if outlying.any() else np.nan,
        model.outliers_[~outlying].mean(),
        seconds,
    )


def _default(design: Design, seed: int, **options: object) -> RobustSparseKMeans:
    model = RobustSparseKMeans(design.n_clusters, random_state=seed, **options)
    return model.fit(design.data)


def _half(design: Design, seed: int) -> RobustSparseKMeans:
    return _default(design, seed, trim=0.1, l1_bound="half")


def _gap(design: Design, seed: int) -> RobustSparseKMeans:
    model = RobustSparseKMeans(design.n_clusters, trim=0.1, random_state=seed)
    return GapL1(model, random_state=seed, n_jobs=1).fit(design.data).best_estimator_


METHODS: dict[str, Callable[[Design, int], RobustSparseKMeans]] = {
    "default": _default,
    'l1_bound="half", trim=.1': _half,
    "GapL1, trim=.1": _gap,
}


@benchmark("K given, {seeds} seeds", f"method, design | {RESULT}")
def designs(seeds: int = 4) -> Rows:
    for name, method in METHODS.items():
        rows = ((f"{name}: {kind}", *_means(method, kind, range(seeds))) for kind in JUDGED)
        yield from and_mean(rows, f"{name}: mean")


def _means(method: Callable, kind: str, seeds: Iterable[int]) -> np.ndarray:
    results = []
    for seed in seeds:
        design, start = make_design(kind, seed), time.process_time()
        model = method(design, seed)
        results.append(judged(model, design, time.process_time() - start))
    return np.nanmean(results, axis=0)


@benchmark(
    "A true cluster of 8%, four times {seeds} seeds",
    "method | design | kept as one {:.2f} | lost, with a warning | kept, with a warning",
)
def small_clusters(seeds: int = 4) -> Rows:
    """Count how often a true cluster of 8% is a cluster of its own, and how often a warning came.

    It is one where at least 3/4 of its cases are in one cluster, and at least 3/4 of those that the
    cluster keeps are of it.
    """
    for method in list(METHODS)[:2]:
        for name in SMALL_CLUSTERS:
            draws = [8 * seed + i for seed in range(seeds) for i in range(4)]
            kept, warned = np.array([_is_kept(METHODS[method], name, i) for i in draws]).T
            lost = f"{(~kept & warned).sum()} of {(~kept).sum()}"
            yield method, name, kept.mean(), lost, f"{(kept & warned).sum()} of {kept.sum()}"


def _is_kept(method: Callable, name: str, seed: int) -> tuple[bool, bool]:
    """Whether the cluster is one, and whether the model warns of a clump."""
    design = make_design(name, seed)
    model = method(design, seed)
    small = design.labels == 2
    k = np.bincount(model.labels_[small]).argmax()
    members = (model.labels_ == k) & ~model.trimmed_
    is_one = members[small].mean() >= 0.75 and small[members].mean() >= 0.75
    return bool(is_one), "clump" in " ".join(model.warning_kinds_)


@benchmark(
    "The paper's simulation, twice {seeds} data sets",
    "model | settings | CER {:.4f} | true features of 50 {:.1f} | false {:.1f}",
)
def simulation(seeds: int = 4) -> Rows:
    for number in (0, 1, 2):
        for name, settings in (("default", {}), ("given", {"trim": 1 / 60, "l1_bound": 6.2})):
            results = []
            for seed in range(2 * seeds):
                data = make_simulation(number, random_state=seed)
                model = RobustSparseKMeans(3, random_state=seed, **settings).fit(data.data)
                support = model.get_support()
                error = classification_error_rate(model.labels_, data.target)
                results.append((error, support[:50].sum(), support[50:].sum()))
            yield number, name, *np.mean(results, axis=0)


@benchmark(
    "Time of one core",
    "design | both given, s {:.3f} | bound automatic {:.1f}x | bound and trim automatic {:.1f}x",
)
def times(repeats: int = 3) -> Rows:
    """Time automatic fits over a fit with trim and bound given."""
    for name in ("equal, rows", "blocks, clump", "wide"):
        design = make_design(name, 0)
        bound = _default(design, 0).l1_bound_
        fits = [
            lambda options=options: _default(design, 0, n_threads=1, **options)  # noqa: B023
            for options in ({"trim": 0.1, "l1_bound": bound}, {"trim": 0.1}, {})
        ]
        given, *automatic = best_of(repeats, *fits, clock=time.process_time)
        yield name, given, *(taken / given for taken in automatic)
