"""What a fit has to say about its data and its result, in one sentence each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rskc.engines import Engine

# Distances rest on little when less than this share of the weight is observed.
LITTLE_SEEN = 0.1

# The names, or the numbers in the data, of cases whose numbers an engine gives.
Names = Callable[[np.ndarray], np.ndarray]


class SmallClusterWarning(UserWarning):
    """A solution with a larger objective has a cluster that may be nothing but outlying cases."""


class Complaint(NamedTuple):
    message: str
    category: type[Warning]


def of_bound(asked: Any, problem: Any, p: int) -> Iterator[Complaint]:
    """What to say of a bound that is too large to bind."""
    given = problem.l1_bound is not None and not isinstance(asked, str)
    if given and asked > np.sqrt(p) * (1 + 1e-9):
        yield Complaint(
            f"l1_bound={asked:g} never binds: {p} weights of L2 norm 1 have an L1 norm of at most "
            f"{np.sqrt(p):.3g}. To ask for a number of features, use n_features.",
            UserWarning,
        )


def of_solution(problem: Any, solution: Any, name_cases: Names) -> Iterator[Complaint]:
    """What to say of a result."""
    if not solution.converged:
        yield Complaint(
            f"Not settled after max_iter={problem.max_iter} iterations; raise max_iter or tol.",
            ConvergenceWarning,
        )
    found = int(np.count_nonzero(solution.sizes))
    if found < problem.n_clusters:
        yield Complaint(
            f"Only {found} distinct clusters found, fewer than n_clusters={problem.n_clusters}: "
            "too few kept cases differ. Lower n_clusters or trim.",
            ConvergenceWarning,
        )
    selected = np.count_nonzero(solution.weights)
    if problem.n_features not in (None, selected):
        yield Complaint(
            f"n_features={problem.n_features} is not to be had, because features tie or do not "
            f"differ between clusters; {selected} have a weight above 0.",
            UserWarning,
        )
    if solution.rival is not None:
        yield _of_rival(solution, problem.n_trim, name_cases)


def _of_rival(solution: Any, n_trim: int, name_cases: Names) -> Complaint:
    rival = solution.rival
    return Complaint(
        f"Another solution has a larger objective ({rival.mean:.4g} against {solution.mean:.4g} "
        f"per kept case), but one of its clusters has {rival.size} cases only "
        f"({listed(name_cases(rival.cases))}), and up to {n_trim} cases may be outliers. "
        "If these are a true cluster, lower trim.",
        SmallClusterWarning,
    )


def of_missing(
    engine: Engine, weights: np.ndarray, names: np.ndarray, name_cases: Names
) -> Iterator[Complaint]:
    """What to say of missing cells."""
    if engine.n_missing == 0:
        return
    dead = engine.equal_weights()[0] == 0
    if dead.any():
        yield Complaint(
            f"{counted(dead.sum(), 'feature has', 'features have')} no observed cell and weight 0: "
            f"{listed(names[dead])}.",
            UserWarning,
        )
    little = engine.little_seen(weights, LITTLE_SEEN)
    if little.total:
        yield Complaint(
            f"{counted(little.total, 'case is', 'cases are')} judged by less than "
            f"{LITTLE_SEEN:.0%} of the weight, the rest being missing: "
            f"{listed(name_cases(little.first))}. Their distances rest on little.",
            UserWarning,
        )


def counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def listed(names: Any) -> str:
    """The first few of them."""
    return ", ".join(map(str, names[:6])) + (", ..." if len(names) > 6 else "")
