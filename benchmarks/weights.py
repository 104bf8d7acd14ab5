"""Case weights: what a fit with weights takes, beside one without."""

import time

import numpy as np

from benchmarks.data import Work
from benchmarks.declare import Rows, benchmark
from benchmarks.timing import best_of

# Each with its number of seeds.
WORKS = {
    Work(300, 1000, 3, 50, n_init=100, trim=0.1, l1_bound=6.0, outliers=0.05): 6,
    Work(2000, 50, 5, 10, n_init=20, trim=0.1, l1_bound=3.0, outliers=0.05): 6,
    Work(100_000, 50, 10, 10, n_init=10): 2,
    Work(100_000, 50, 10, 10, n_init=10, trim=0.1): 2,
}


@benchmark(
    "Case weights of .9 to 1.1, CPU time of one thread",
    "work | without s {:.3f} | with s {:.3f} | ratio {:.2f}",
)
def case_weights(repeats: int = 3) -> Rows:
    """Over some seeds: the number of iterations differs by chance."""
    for work, n_seeds in WORKS.items():
        X, total = work.data(), np.zeros(2)
        for seed in range(n_seeds):
            model = work.model(random_state=seed)
            weights = np.random.default_rng(seed).uniform(0.9, 1.1, len(X))
            total += best_of(
                repeats,
                lambda: model.fit(X),  # noqa: B023
                lambda: model.fit(X, sample_weight=weights),  # noqa: B023
                clock=time.process_time,
            )
        plain, weighted = total / n_seeds
        yield str(work), plain, weighted, weighted / plain
