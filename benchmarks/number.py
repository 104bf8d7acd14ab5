"""Everything left to the data, K too: Stability beside Clest."""

import time
from collections.abc import Callable

import numpy as np

from benchmarks.choice import JUDGED, RESULT, judged
from benchmarks.declare import Rows, and_mean, benchmark
from benchmarks.designs import NULLS, make_design
from benchmarks.gradients import GRADIENTS
from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.selection import Clest, Stability

# Seeds that played no part in settling how Stability chooses K and recognizes gradients. The level
# at which halves select features was changed after a look at those of the simulation, so these have
# seeds of their own.
FIRST, FIRST_SIMULATED = 310, 500
OPTIONS = {"random_state": 0, "n_jobs": 1, "progress": False}

METHODS: dict[str, Callable] = {
    "Stability": lambda model: Stability(model, **OPTIONS),
    "Clest": lambda model: Clest(model, range(2, 9), rule="agreement", **OPTIONS),
    "Clest, paper's rule": lambda model: Clest(model, range(2, 9), rule="paper", **OPTIONS),
}


def _search(method: str, X: np.ndarray):
    return METHODS[method](RobustSparseKMeans(random_state=0, n_threads=1)).fit(X)


@benchmark(
    "Nothing given, {seeds} seeds from {first} on",
    f"method, design | K right {{:.2f}} | {RESULT}",
)
def designs(seeds: int = 2, first: int = FIRST) -> Rows:
    for method in METHODS:
        for title, names in (("clusters", JUDGED), ("no clusters", NULLS)):
            rows = [
                (f"{method}: {name}", *_means(method, name, range(first, first + seeds)))
                for name in names
            ]
            yield from and_mean(rows, f"{method}: mean, {title}")


def _means(method: str, name: str, seeds: range) -> np.ndarray:
    results = []
    for seed in seeds:
        design, start = make_design(name, seed), time.process_time()
        search = _search(method, design.data)
        result = judged(search.best_estimator_, design, time.process_time() - start)
        results.append((search.n_clusters_ == design.n_clusters, *result))
    return np.nanmean(results, axis=0)


@benchmark(
    "Gradients, {seeds} seeds from {first} on",
    "method | table | K = 1 {:.2f} | K",
)
def gradients(seeds: int = 2, first: int = FIRST) -> Rows:
    for method in METHODS:
        for name, draw in GRADIENTS.items():
            numbers = [
                int(_search(method, draw(np.random.default_rng([seed, 7]))).n_clusters_)
                for seed in range(first, first + seeds)
            ]
            yield method, name, np.mean(np.array(numbers) == 1), str(numbers)


@benchmark(
    "Features of the paper's simulation with a selection probability of .75 or more, K=3, "
    "{seeds} data sets each",
    "model | true of 50 {:.1f} | false {:.1f} | bound on false {:.1f}",
)
def selection_probabilities(seeds: int = 4) -> Rows:
    for number in (0, 1, 2):
        counts = []
        for seed in range(FIRST_SIMULATED, FIRST_SIMULATED + seeds):
            search = Stability(RobustSparseKMeans(random_state=0), [3], **OPTIONS)
            data = make_simulation(number, random_state=seed).data
            often = search.fit(data).selection_probabilities_ >= 0.75
            counts.append((often[:50].sum(), often[50:].sum(), search.selection_bound(0.75)))
        yield number, *np.mean(counts, axis=0)
