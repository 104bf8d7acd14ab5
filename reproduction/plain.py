"""The method without what rskc adds: for comparison, and for the naive method.

Steps (a)-(e) as the paper states them: restarts of trimmed K-means by Lloyd alone, one partition
goes on, and the alternation stops at the first fall of the objective, as in R's RSKC.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rskc.engines import Engine, Partitions, engine_for
from rskc.solver import Problem, Starts
from rskc.solver.alternate import lloyd, weigh

MOST_ITERATIONS = 25

Between = Callable[[Engine, Problem, Partitions, np.ndarray], np.ndarray]


class PlainResult(NamedTuple):
    """The last weights that raised the objective, and the labels that they lead to.

    RSKC returns the same two: in all 93 sparse runs of ``tests/reference`` its labels are those of
    the iteration whose weights it throws away.
    """

    labels: np.ndarray
    weights: np.ndarray


def plain_method(X: np.ndarray, problem: Problem, n_init: int, seed: int) -> PlainResult:
    """Alternate until the objective falls: robust and sparse K-means as published."""
    return _alternate(X, problem, n_init, seed, _between_of_both_rules)


def naive_method(X: np.ndarray, problem: Problem, n_init: int, seed: int) -> PlainResult:
    """Leave out of step (e) the cases of the weighted rule alone.

    The paper shows why that is not enough: a case that is outlying in a feature of no weight is not
    trimmed, and gives that feature all the weight.
    """
    return _alternate(X, problem, n_init, seed, _between_of_weighted_rule)


def _alternate(
    X: Any, problem: Problem, n_init: int, seed: int, between_of: Between
) -> PlainResult:
    engine, rng = engine_for(np.ascontiguousarray(X), n_threads=1), np.random.RandomState(seed)
    weights, best = engine.equal_weights(), -np.inf
    for _ in range(MOST_ITERATIONS):
        partition = _best_restart(engine, problem, weights, n_init, rng)
        between = between_of(engine, problem, partition, weights)
        new = weigh(problem, between)
        objective = float(new[0] @ between[0])
        if objective <= best * (1 + 1e-9):
            break
        weights, best = new, objective
    return PlainResult(partition.labels[0], weights[0])


def _best_restart(
    engine: Engine, problem: Problem, weights: np.ndarray, n_init: int, rng: Any
) -> Partitions:
    """Step (a): the best of many restarts at random cases."""
    table = engine.table(weights)
    starts = Starts(("random",), rng.random_sample((n_init, problem.n_clusters)))
    batches = starts.batches(table, problem)
    K = problem.n_clusters
    first, *others = (lloyd(table, centers, problem).best(1, K) for centers, _ in batches)
    return first.join(*others).best(1, K)


def _between_of_weighted_rule(
    engine: Engine, problem: Problem, partition: Any, weights: np.ndarray
) -> np.ndarray:
    """B_j over the cases that step (b) keeps."""
    sums = engine.sums(partition.groups, problem.n_clusters)
    return engine.between(sums, partition.groups, weights)


def _between_of_both_rules(
    engine: Engine, problem: Problem, partition: Any, weights: np.ndarray
) -> np.ndarray:
    """B_j over the cases that steps (b)-(d) keep."""
    groups, labels = partition.groups, partition.labels
    sums = engine.sums_near(None, groups, problem.n_clusters)
    _, kept, sums = engine.take_out_farthest(groups, labels, sums, problem.n_trim)
    return engine.between(sums, kept, weights)
