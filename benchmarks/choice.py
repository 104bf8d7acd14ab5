"""Choices that the data make: features and outlying cases, with K given and all else default."""

import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.timing import print_table
from rskc import RobustSparseKMeans
from rskc.datasets import DESIGNS, SMALL_CLUSTERS, Design, make_design, make_simulation
from rskc.metrics import classification_error_rate
from rskc.selection import GapL1

SEEDS = range(4)
# No method that is measured here separates clusters from factors in the noise.
LEFT_OUT = "correlated noise"
PLAIN = {"trim": 0.1, "l1_bound": "half"}


class Result(NamedTuple):
    cer: float  # of the cases that belong to a cluster
    recall: float  # of the features that differ
    false: float  # features with weight that do not
    found: float  # share of the outlying cases that is flagged; NaN where there are none
    flagged: float  # share of the other cases that is
    seconds: float


def _default(design: Design, seed: int) -> RobustSparseKMeans:
    return RobustSparseKMeans(design.n_clusters, random_state=seed).fit(design.data)


def _half(design: Design, seed: int) -> RobustSparseKMeans:
    return RobustSparseKMeans(design.n_clusters, random_state=seed, **PLAIN).fit(design.data)


def _gap(design: Design, seed: int) -> RobustSparseKMeans:
    model = RobustSparseKMeans(design.n_clusters, trim=0.1, random_state=seed)
    return GapL1(model, random_state=seed, n_jobs=1).fit(design.data).best_estimator_


METHODS: dict[str, Callable[[Design, int], RobustSparseKMeans]] = {
    "default": _default,
    'l1_bound="half", trim=.1': _half,
    "GapL1, trim=.1": _gap,
}


def main(seeds: Iterable[int] = SEEDS) -> None:
    seeds = list(seeds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in METHODS:
            _designs(name, seeds)
        _small_clusters(seeds)
        _simulation(seeds)
        _time(seeds)


def _designs(method: str, seeds: list[int]) -> None:
    chosen = [name for name in DESIGNS if name != LEFT_OUT]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of designs without outlying cases
        means = [
            np.nanmean([_measure(METHODS[method], name, seed) for seed in seeds], axis=0)
            for name in chosen
        ]
    rows = [(name, *_formatted(mean)) for name, mean in zip(chosen, means, strict=True)]
    rows.append(("all", *_formatted(np.nanmean(means, axis=0))))
    header = ("design", "CER", "recall", "false", "outlying found", "clean flagged", "seconds")
    print_table(f"{method}; K given, {len(seeds)} seeds", header, rows)


def _formatted(mean: np.ndarray) -> tuple[str, ...]:
    cer, recall, false, found, flagged, seconds = mean
    shares = "-" if np.isnan(found) else f"{found:.3f}", f"{flagged:.4f}"
    return f"{cer:.4f}", f"{recall:.3f}", f"{false:.1f}", *shares, f"{seconds:.3f}"


def _measure(method: Callable, name: str, seed: int) -> Result:
    design = make_design(name, seed)
    start = time.process_time()
    model = method(design, seed)
    seconds = time.process_time() - start
    member, support, outliers = design.labels >= 0, model.get_support(), model.outliers_
    return Result(
        classification_error_rate(model.labels_[member], design.labels[member]),
        float(support[design.informative].mean()),
        float(support[~design.informative].sum()),
        float(outliers[design.outlying].mean()) if design.outlying.any() else np.nan,
        float(outliers[~design.outlying].mean()),
        seconds,
    )


def _small_clusters(seeds: list[int]) -> None:
    """Count how often a true cluster of 8% is a cluster of its own, and how often a warning came.

    It is one where at least 3/4 of its cases are in one cluster, and at least 3/4 of those that the
    cluster keeps are of it.
    """
    rows = []
    for method in list(METHODS)[:2]:
        for name in SMALL_CLUSTERS:
            many = [8 * seed + i for seed in seeds for i in range(4)]
            kept, named = zip(*(_is_kept(METHODS[method], name, i) for i in many), strict=True)
            lost = 1 - np.array(kept)
            told = f"{np.sum(lost * named):.0f} of {lost.sum():.0f}"
            false = f"{np.sum(kept * np.array(named)):.0f} of {np.sum(kept):.0f}"
            rows.append((method, name, f"{np.mean(kept):.2f}", told, false))
    header = ("method", "design", "kept as one", "lost, with a warning", "kept, with a warning")
    print_table(f"A true cluster of 8%, {len(seeds) * 4} seeds", header, rows)


def _is_kept(method: Callable, name: str, seed: int) -> tuple[bool, bool]:
    design = make_design(name, seed)
    model = method(design, seed)
    small, kept = design.labels == 2, ~model.trimmed_
    k = np.bincount(model.labels_[small]).argmax()
    own = (model.labels_ == k) & kept
    found = np.mean(own[small]) >= 0.75 and np.mean(small[own]) >= 0.75
    return bool(found), "clump" in " ".join(model.warning_kinds_)


def _simulation(seeds: list[int]) -> None:
    rows = []
    for number in (0, 1, 2):
        for name, settings in (("default", {}), ("given", {"trim": 1 / 60, "l1_bound": 6.2})):
            found = [
                _simulated(number, i, settings) for seed in seeds for i in (2 * seed, 2 * seed + 1)
            ]
            cer, true, false = np.mean(found, axis=0)
            rows.append((str(number), name, f"{cer:.4f}", f"{true:.1f}", f"{false:.1f}"))
    header = ("model", "settings", "CER", "true features of 50", "false")
    print_table(f"The paper's simulation, {2 * len(seeds)} data sets each", header, rows)


def _simulated(number: int, seed: int, settings: dict) -> tuple[float, int, int]:
    data = make_simulation(number, random_state=seed)
    model = RobustSparseKMeans(3, random_state=seed, **settings).fit(data.data)
    support = model.get_support()
    error = classification_error_rate(model.labels_, data.target)
    return error, int(support[:50].sum()), int(support[50:].sum())


def _time(seeds: list[int]) -> None:
    """Time automatic fits over a fit with trim and bound given, best of three each."""
    rows = []
    for name in ("equal, rows", "blocks, clump", "wide"):
        design = make_design(name, seeds[0])
        model = RobustSparseKMeans(design.n_clusters, random_state=0).fit(design.data)
        ways = ({"trim": 0.1, "l1_bound": model.l1_bound_}, {"trim": 0.1}, {})
        given, *others = (_least_time(partial(_fit, design, settings)) for settings in ways)
        rows.append((name, f"{given:.3f}", *(f"{other / given:.1f}x" for other in others)))
    header = ("design", "both given, s", "bound automatic", "bound and trim automatic")
    print_table("Time, of one core", header, rows)


def _fit(design: Design, settings: dict) -> None:
    RobustSparseKMeans(design.n_clusters, random_state=0, n_threads=1, **settings).fit(design.data)


def _least_time(work: Callable[[], None]) -> float:
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


if __name__ == "__main__":
    import sys

    main(range(int(sys.argv[1])) if len(sys.argv) > 1 else SEEDS)
