"""Everything left to the data, K too: Stability beside Clest."""

import time
import warnings
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from benchmarks.gradients import GRADIENTS
from benchmarks.timing import print_table
from rskc import RobustSparseKMeans
from rskc.datasets import DESIGNS, NULLS, Design, make_design, make_simulation
from rskc.metrics import classification_error_rate
from rskc.selection import Clest, Stability

# Seeds that played no part in settling how Stability chooses K and recognizes gradients. The level
# at which halves select features was changed after a look at those of the simulation, so these have
# seeds of their own.
SEEDS = range(310, 312)
SIMULATED = range(500, 504)
LEFT_OUT = "correlated noise"  # no method tells these factors from clusters
HOW = {"random_state": 0, "n_jobs": 1, "progress": False}


class Result(NamedTuple):
    right: bool
    cer: float  # of the cases that belong to a cluster
    recall: float  # of the features that differ
    false: float  # features with weight that do not
    found: float  # share of the outlying cases that is flagged; NaN where there are none
    flagged: float  # share of the other cases that is
    seconds: float


def _clest(rule: str) -> Callable:
    return lambda model: Clest(model, range(2, 9), rule=rule, **HOW)


METHODS: dict[str, Callable] = {
    "Stability": lambda model: Stability(model, **HOW),
    "Clest": _clest("agreement"),
    "Clest, paper's rule": _clest("paper"),
}


def main(seeds: Iterable[int] = SEEDS, methods: Iterable[str] = METHODS) -> None:
    seeds = list(seeds)
    chosen = [name for name in DESIGNS if name != LEFT_OUT]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method in methods:
            for kind, names in (("designs", chosen), ("no clusters", NULLS)):
                _judge(f"{method}, {kind}; {len(seeds)} seeds", METHODS[method], names, seeds)
            _judge_gradients(method, seeds)
        _selection_probabilities(list(SIMULATED))


def _judge(title: str, method: Callable, names: Iterable[str], seeds: list[int]) -> None:
    means, rows = [], []
    for name in names:
        results = [_measure(method, make_design(name, seed)) for seed in seeds]
        means.append(np.nanmean(np.array(results, float), axis=0))
        rows.append((name, *_formatted(means[-1])))
    rows.append(("all", *_formatted(np.nanmean(means, axis=0))))
    header = ("table", "K right", "CER", "recall", "false", "outlying found", "flagged", "seconds")
    print_table(title, header, rows)


def _judge_gradients(method: str, seeds: list[int]) -> None:
    rows = []
    for name, draw in GRADIENTS.items():
        found = []
        for seed in seeds:
            search = METHODS[method](RobustSparseKMeans(random_state=0, n_threads=1))
            found.append(search.fit(draw(np.random.default_rng([seed, 7]))).n_clusters_)
        rows.append((name, f"{np.mean(np.array(found) == 1):.2f}", str(found)))
    rows.append(("all", f"{np.mean([float(share) for _, share, _ in rows]):.2f}", ""))
    header = ("table", "K = 1", "K")
    print_table(f"{method}, gradients; {len(seeds)} seeds", header, rows)


def _formatted(mean: np.ndarray) -> tuple[str, ...]:
    right, cer, recall, false, found, flagged, seconds = mean
    shares = ["-" if np.isnan(share) else f"{share:.3f}" for share in (recall, found)]
    return (
        f"{right:.2f}",
        f"{cer:.4f}",
        shares[0],
        f"{false:.1f}",
        shares[1],
        f"{flagged:.4f}",
        f"{seconds:.1f}",
    )


def _measure(method: Callable, design: Design) -> Result:
    start = time.process_time()
    search = method(RobustSparseKMeans(random_state=0, n_threads=1)).fit(design.data)
    seconds = time.process_time() - start
    model, member, true = search.best_estimator_, design.labels >= 0, design.informative
    support = model.get_support() & (search.n_clusters_ > 1)
    outlying = design.outlying
    return Result(
        search.n_clusters_ == design.n_clusters,
        classification_error_rate(model.labels_[member], design.labels[member]),
        float(support[true].mean()) if true.any() else np.nan,
        float(support[~true].sum()),
        float(model.outliers_[outlying].mean()) if outlying.any() else np.nan,
        float(model.outliers_[~outlying].mean()),
        seconds,
    )


def _selection_probabilities(seeds: list[int]) -> None:
    """Count the features of the paper's simulation with a selection probability of .75 or more."""
    rows = []
    for number in (0, 1, 2):
        counts = []
        for seed in seeds:
            search = Stability(RobustSparseKMeans(random_state=0), [3], **HOW)
            data = make_simulation(number, random_state=seed).data
            often = search.fit(data).selection_probabilities_ >= 0.75
            counts.append((often[:50].sum(), often[50:].sum(), search.selection_bound(0.75)))
        true, false, bound = np.mean(counts, axis=0)
        rows.append((str(number), f"{true:.1f}", f"{false:.1f}", f"{bound:.1f}"))
    header = ("model", "true of 50", "false", "bound on false")
    print_table(f"Selection probability >= .75, K=3, {len(seeds)} data sets each", header, rows)


if __name__ == "__main__":
    import sys

    main(
        range(200, 200 + int(sys.argv[1])) if len(sys.argv) > 1 else SEEDS, sys.argv[2:] or METHODS
    )
