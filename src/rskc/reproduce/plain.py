"""The method without what rskc adds: for comparison, and for the naive method.

Steps (a)-(e) as the paper states them: restarts of trimmed K-means by Lloyd alone, one partition
goes on, and the alternation stops at the first fall of the objective, as in R's RSKC.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rskc.engines import Engine, engine_for
from rskc.solver import DrawnStarts, Problem
from rskc.solver.alternate import examine
from rskc.solver.partition import Partitions, lloyd

MOST_ITERATIONS = 25


class PlainResult(NamedTuple):
    """Labels and weights of the last iteration that counted."""

    labels: np.ndarray
    weights: np.ndarray


def plain_method(X: np.ndarray, problem: Problem, n_init: int, seed: int) -> PlainResult:
    """Alternate until the objective falls: robust and sparse K-means as published."""
    return _alternate(X, problem, n_init, seed, naive=False)


def naive_method(X: np.ndarray, problem: Problem, n_init: int, seed: int) -> PlainResult:
    """Leave out of step (e) the cases of the weighted rule alone.

    The paper shows why that is not enough: a case that is wild in a feature of no weight is not
    trimmed, and gives that feature all the weight.
    """
    return _alternate(X, problem, n_init, seed, naive=True)


def _alternate(X, problem: Problem, n_init: int, seed: int, naive: bool) -> PlainResult:
    engine, rng = engine_for(np.ascontiguousarray(X), n_threads=1), np.random.RandomState(seed)
    weights, best, result = engine.equal_weights(), -np.inf, None
    for _ in range(MOST_ITERATIONS):
        partition = _best_restart(engine, problem, weights, n_init, rng)
        between = _between(engine, problem, partition, weights, naive)
        new = problem.weights(between)
        if float(new[0] @ between[0]) <= best * (1 + 1e-9):
            break
        best, result = float(new[0] @ between[0]), PlainResult(partition.labels[0], new[0])
        weights = new
    assert result is not None
    return result


def _best_restart(
    engine: Engine, problem: Problem, weights: np.ndarray, n_init: int, rng
) -> Partitions:
    """Step (a): the best of many restarts at random cases."""
    table = engine.table(weights)
    starts = DrawnStarts(("random",), rng.random_sample((n_init, problem.n_clusters)))
    (batch,) = starts.batches(table, problem.n_trim)
    return lloyd(table, batch.centres, problem).best(1)


def _between(
    engine: Engine, problem: Problem, partition: Partitions, weights: np.ndarray, naive: bool
) -> np.ndarray:
    """B_j over the kept cases: steps (b)-(d), or (b) alone."""
    if naive:
        sums = engine.sums(partition.groups, problem.n_clusters)
        return engine.between(sums, partition.groups, weights)
    far, sums = examine(engine, problem, partition)
    kept = np.where(far, np.int32(-1), partition.groups)
    return engine.between(sums, kept, weights)
