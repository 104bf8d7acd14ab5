"""How many clusters mixed tables have: Stability on simulated numbers and categories.

The rule was settled on the designs of ``SETTLED``, seeds 2 to 9, and judged on those of ``JUDGED``,
seeds 11 to 17. Some have clusters, others are one cloud, with independent columns or correlated.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from benchmarks.declare import Rows, benchmark
from rskc import ColumnStandardizer, RobustSparseKMeans
from rskc.selection import Stability

Columns = dict[str, np.ndarray]


def agreeing(rng: np.random.Generator, kinds: np.ndarray, share: float, names: str) -> np.ndarray:
    """Return categories: that of the cluster with some probability, else any."""
    n, m = len(kinds), len(names)
    other = rng.integers(0, m, n)
    return np.array(list(names))[np.where(rng.random(n) < share, kinds % m, other)]


def several(name: str, number: int, make: Callable[[], np.ndarray]) -> Columns:
    """Return columns that are made alike."""
    return {f"{name}{j}": make() for j in range(number)}


def clear(rng: np.random.Generator, n: int = 150) -> Columns:
    """Three clusters in three numbers and two categories."""
    k, none = rng.integers(0, 3, n), np.zeros(n, int)
    numbers = {f"x{j}": rng.normal(size=n) + 3 * (k == j) for j in range(3)}
    return {
        **numbers,
        **several("c", 2, lambda: agreeing(rng, k, 0.85, "abc")),
        "b": agreeing(rng, none, 0, "yn"),
        "e": rng.normal(size=n),
    }


def in_categories(rng: np.random.Generator, n: int = 150) -> Columns:
    """Three clusters in five categories."""
    k = rng.integers(0, 3, n)
    return {
        **several("c", 5, lambda: agreeing(rng, k, 0.75, "abc")),
        **several("b", 2, lambda: agreeing(rng, k, 0, "yn")),
        "x": rng.normal(size=n),
    }


def independent(rng: np.random.Generator, n: int = 150) -> Columns:
    """No clusters: columns that have nothing to do with one another."""
    k = np.zeros(n, int)
    return {
        **several("x", 3, lambda: rng.normal(size=n)),
        **several("c", 2, lambda: agreeing(rng, k, 0, "abc")),
        **several("b", 3, lambda: agreeing(rng, k, 0, "yn")),
    }


def one_factor(rng: np.random.Generator, n: int = 150) -> Columns:
    """No clusters: all columns go by one normal number, some in steps."""
    f = rng.normal(size=n)

    def latent() -> np.ndarray:
        return 0.75 * f + 0.66 * rng.normal(size=n)

    return {
        **several("x", 3, latent),
        **several("c", 2, lambda: np.array(list("abc"))[np.digitize(latent(), [-0.4, 0.5])]),
        **several("b", 3, lambda: np.where(latent() > 0.2, "y", "n")),
    }


def overlapping(rng: np.random.Generator, n: int = 200) -> Columns:
    """Two clusters that overlap, with long tails."""
    k = (rng.random(n) < 0.4).astype(int)
    return {
        **several("x", 4, lambda: rng.standard_t(5, size=n) + 2.2 * k),
        **several("b", 3, lambda: agreeing(rng, k, 0.7, "yn")),
        "c": agreeing(rng, k, 0, "abcde"),
    }


def four(rng: np.random.Generator, n: int = 200) -> Columns:
    """Four clusters in three numbers and two categories."""
    k = rng.integers(0, 4, n)
    numbers = {f"x{j}": rng.normal(size=n) + 4 * (k == j) for j in range(3)}
    categories = {"c": agreeing(rng, k, 0.9, "abcd"), "g": agreeing(rng, k, 0.9, "wxyz")}
    return {**numbers, **categories, "b": agreeing(rng, k, 0, "yn")}


def skewed(rng: np.random.Generator, n: int = 200) -> Columns:
    """No clusters: skewed numbers, rare categories."""
    rare = {f"b{j}": np.where(rng.random(n) < p, "y", "n") for j, p in enumerate((0.1, 0.2, 0.5))}
    c = rng.choice(list("abcd"), n, p=[0.6, 0.2, 0.1, 0.1])
    return {**several("x", 3, lambda: rng.exponential(size=n)), **rare, "c": c}


def even_factor(rng: np.random.Generator, n: int = 200) -> Columns:
    """No clusters: all columns go by one even number, most in steps."""
    f = rng.uniform(-1.7, 1.7, n)

    def latent() -> np.ndarray:
        return 0.8 * f + 0.6 * rng.normal(size=n)

    return {
        **several("x", 2, latent),
        **several("c", 3, lambda: np.array(list("abcd"))[np.digitize(latent(), [-0.8, 0, 0.8])]),
        **several("b", 2, lambda: np.where(latent() > 0.6, "y", "n")),
    }


SETTLED = {clear: 3, in_categories: 3, independent: 1, one_factor: 1}
JUDGED = {overlapping: 2, four: 4, skewed: 1, even_factor: 1}


@benchmark(
    "Stability on numbers and categories",
    "rule | design | clusters | right | chosen",
)
def mixed_number(seeds: int = 8) -> Rows:
    for rule, designs, draws in (
        ("settled", SETTLED, range(2, 10)),
        ("judged", JUDGED, range(11, 18)),
    ):
        for design, true in designs.items():
            numbers = [chosen(design, seed) for seed in draws[:seeds]]
            right = f"{numbers.count(true)} of {len(numbers)}"
            yield rule, design.__name__, true, right, " ".join(map(str, numbers))


def chosen(design: Callable[[np.random.Generator], Columns], seed: int) -> int:
    """Return the number of clusters that is chosen for a simulated table."""
    X = pd.DataFrame(design(np.random.default_rng([seed, len(design.__name__)])))
    X = ColumnStandardizer("mean", "std").set_output(transform="pandas").fit_transform(X)
    options = {"n_splits": 4, "n_references": 10, "n_jobs": 1, "progress": False}
    model = RobustSparseKMeans(n_init=10)
    return int(Stability(model, range(2, 6), random_state=seed, **options).fit(X).n_clusters_)
