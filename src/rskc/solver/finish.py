"""From the partition or the state that was chosen to one consistent solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rskc.engines import Assignment, Engine, Sums, Table
from rskc.solver.alternate import Outcome, State, is_guarded
from rskc.solver.partition import continue_lloyd
from rskc.solver.problem import Problem, Rival, Solution
from rskc.solver.search import Found
from rskc.solver.weights import is_sparse, weigh

# Rounds in which the labels and the weights of the chosen state are made consistent.
FINISH_ROUNDS = 50
# From this number of cases on K-means ends when the within sum falls by no more than this share of
# tol in an iteration: the last cases take hundreds of iterations, each of which reads all data, and
# lower the sum by a hundredth of a percent. Labels are then those of the centers, as ``predict``
# gives them. A sparse fit ends when at most this many times tol of the cases, one in a thousand,
# change their cluster or their flag, and weights change by no more than that share: of ten million
# cases one in 10,000 did.
MILLIONS, LATE_TOL, LATE_MOVES = 1_000_000, 1e-2, 10
# Ends of branches that are tried where the state chosen loses its guard.
MOST_ENDS = 4
# By how much a rival's objective must be larger to be worth a word.
RIVAL_GAIN = 0.01
# The most cases of its smallest cluster that are looked up.
RIVAL_CASES = 100


def plain_solution(engine: Engine, problem: Problem, found: Found) -> Solution:
    """Return that of K-means or trimmed K-means: the least within sum, with equal weights."""
    weights, m = engine.equal_weights(), problem.n_trim
    table = engine.table(weights) if found.table.rotated else found.table
    leader = found.partitions.take(slice(0, 1))
    late = engine.n_cases >= MILLIONS and problem.tol > 0
    tol = LATE_TOL * problem.tol if late else 0.0
    best = continue_lloyd(table, leader.groups, replace(problem, tol=tol))
    last = replace(problem, max_iter=1) if late and best.converged[0] else problem
    ended = _iterate(engine, table, best.groups, last, lambda a: table.trim(a, m).groups)
    ended = ended._replace(reached=ended.reached or last is not problem)
    sums = engine.sums(ended.groups, problem.n_clusters)
    between = engine.between(sums, ended.groups, weights)[0] * weights[0]
    trimmed = engine.arrays.only(engine.arrays.trimmed(ended.groups))
    return Solution(
        **_described(engine, problem, ended, weights[0], _costs(engine, ended, weights[0])),
        made_with=weights[0],
        trimmed_unweighted=trimmed & ~trimmed,  # none
        objective=float(between.sum()) * engine.unit,
        n_kept=sums.n_kept(),
        path=(float(between.sum()) * engine.unit,),
        converged=bool(leader.converged[0] and best.converged[0] and ended.reached),
    )


def sparse_solution(engine: Engine, problem: Problem, outcome: Outcome) -> Solution:
    """Return that of sparse K-means, trimmed or not: the state chosen, with labels of its weights.

    If that makes a cluster that may be nothing but outlying cases, the ends of the branches are
    tried in turn, where nothing moves any more. If none will do the state is returned, and the
    warning names the cluster.
    """
    solution = finish(engine, problem, outcome.state)
    if outcome.state.guarded and not is_guarded(problem, solution.sizes, solution.kept_sizes):
        ends = (end for end in outcome.ends[:MOST_ENDS] if end.guarded)
        others = (finish(engine, problem, end) for end in ends)
        safe = (each for each in others if is_guarded(problem, each.sizes, each.kept_sizes))
        exposed = solution
        solution = next(safe, None) or replace(exposed, exposed=_smallest_cluster(engine, exposed))
    path = tuple(objective * engine.unit for objective in outcome.path)
    return replace(
        solution,
        path=(*path, solution.objective),
        converged=solution.converged and outcome.converged,
        rival=_rival(engine, problem, solution, outcome),
    )


class Held(NamedTuple):
    """A partition whose trimmed sets are to stay. A State has all of this too."""

    groups: Any  # (1, n) labels, -1 for O_W
    far: Any  # (1, n) O_E
    made_with: np.ndarray  # (p,) weights that made the partition
    weights: np.ndarray  # (p,)
    converged: bool


def finish(engine: Engine, problem: Problem, state: State | Held) -> Solution:
    """Make labels and weights of a state consistent; its trimmed sets stay.

    With these fixed it is a sparse K-means on the kept cases, which only gains.
    """
    out = engine.set_aside(state.groups, state.made_with)
    weights, groups = state.weights, state.groups
    most, enough = may_move(problem, engine.n_cases), max(problem.tol, 1e-12)
    enough = max(enough, _slack(problem, engine.n_cases))
    # What a sample led to is near: of millions of cases weights change after each pass over them.
    near, make = most > 0, _step if most > 0 else _iterate
    for _ in range(FINISH_ROUNDS):
        if not (weights.any() and np.isfinite(weights).all()):
            raise FloatingPointError("between-cluster sums of squares overflow")
        table = engine.table(weights[None])
        if not near:
            groups = _labels_with_fixed_trimming(table, groups, out, problem)
        before, regroup = groups, partial(_keep_out, table, out)
        ended = make(engine, table, groups, problem, regroup, state.far)
        groups, sums = ended.groups, ended.kept_sums
        between = engine.between(sums, ended.kept, state.made_with[None])[0]
        made_with = weights
        weights = weigh(problem, between) if is_sparse(problem) else weights
        stationary = np.abs(weights - made_with).sum() <= enough * made_with.sum()
        del table, regroup  # before the next one is made
        if stationary:
            costs = _costs(engine, ended, made_with)  # of blocks, made when labels are
            near = most == 0 or engine.arrays.differ(before, groups)[0] <= most
            if near:
                break
    else:
        costs = _costs(engine, ended, made_with)
    objective = float(made_with @ between) * engine.unit
    return Solution(
        **_described(engine, problem, ended, made_with, costs),
        made_with=state.made_with,
        trimmed_unweighted=engine.arrays.only(state.far),
        objective=objective,
        n_kept=sums.n_kept(),
        path=(objective,),
        converged=bool(state.converged and stationary and near and (most or ended.reached)),
    )


class _Stationary(NamedTuple):
    """A stationary partition: its centers lead to its labels and its labels to its centers."""

    groups: Any  # (1, n)
    labels: Any  # (1, n)
    centers: np.ndarray  # (1, K, p) in the space of the data
    kept: Any  # (1, n) the groups that made the centers, without the cases that are far
    kept_sums: Sums
    reached: bool


def _iterate(
    engine: Engine, table: Table, groups: Any, problem: Problem, regroup: Callable, far: Any = None
) -> _Stationary:
    """Repeat centers and labels, as ``predict`` computes them, until they agree to the last bit.

    Of very many cases a few may still move; labels are then those of the centers.
    """
    for _ in range(problem.max_iter):
        ended = _step(engine, table, groups, problem, regroup, far)
        moved = engine.arrays.differ(groups, ended.groups)[0]
        if moved <= may_move(problem, engine.n_cases):
            return ended._replace(reached=True)
        groups = ended.groups
    return ended


def _step(
    engine: Engine,
    table: Table,
    groups: Any,
    problem: Problem,
    regroup: Callable[[Assignment], Any],
    far: Any,
) -> _Stationary:
    """Make centers of groups and labels of these; whether they agree is not asked.

    Sums without the cases ``far`` (1, n) are made in the same pass: that reads all features.
    """
    arrays = engine.arrays
    kept = groups if far is None else arrays.without(groups, far)
    both = groups if far is None else arrays.join([groups, kept])
    sums = engine.sums(both, problem.n_clusters)
    centers = engine.restore(sums.of_runs(slice(0, 1)).means())
    assignment = table.assign(table.place(centers))
    last = sums.of_runs(slice(-1, None))
    return _Stationary(regroup(assignment), assignment.labels, centers, kept, last, False)


def _labels_with_fixed_trimming(table: Table, groups: Any, out: Any, problem: Problem) -> Any:
    """Run Lloyd's iterations with the trimmed cases left as they are."""
    sums = table.sums(groups, problem.n_clusters)
    for _ in range(problem.max_iter):
        before, groups = groups, _keep_out(table, out, table.assign(sums.means()))
        if table.shift(sums, before, groups)[0] <= may_move(problem, table.n_cases):
            break
    return groups


def _keep_out(table: Table, out: Any, assignment: Assignment) -> Any:
    return table.exclude(table.arrays.without(assignment.labels, out))


def may_move(problem: Problem, n: int) -> int:
    """Return how many cases may still move at convergence."""
    return int(_slack(problem, n) * n)


def _slack(problem: Problem, n: int) -> float:
    """Return the share of the cases, and of the weights, that may still change at convergence.

    It is 0 for fewer than a million cases.
    """
    return LATE_MOVES * problem.tol if n >= MILLIONS else 0.0


def _described(
    engine: Engine, problem: Problem, ended: _Stationary, weights: np.ndarray, costs: Any
) -> dict:
    """Return the fields of a solution that follow from a partition and the weights (p,) it has."""
    arrays, K = engine.arrays, problem.n_clusters
    trimmed = arrays.only(arrays.trimmed(ended.groups))
    return {
        "weights": weights,
        "labels": arrays.only(ended.labels),
        "centers": ended.centers[0],
        "trimmed_weighted": trimmed,
        "costs": costs,
        "inertia": arrays.total(costs, trimmed),
        "sizes": arrays.sizes(ended.labels, K)[0],
        "kept_sizes": arrays.sizes(ended.groups, K)[0],
    }


def _costs(engine: Engine, ended: _Stationary, weights: np.ndarray) -> Any:
    """Return the squared distances (n,) of cases to their centers, by weights (p,)."""
    distances = engine.distances(ended.labels, engine.place(ended.centers), weights[None])
    return engine.arrays.only(distances) * engine.unit


def _smallest_cluster(engine: Engine, solution: Solution) -> Rival:
    least = int(solution.kept_sizes.argmin())
    groups = engine.arrays.without(solution.labels, solution.trimmed_weighted)
    cases = engine.arrays.first_members(engine.arrays.as_run(groups), least, RIVAL_CASES)
    return Rival(solution.mean, solution.kept_sizes[least].item(), cases)


def _rival(engine: Engine, problem: Problem, solution: Solution, outcome: Outcome) -> Rival | None:
    """Return the rival, if it was passed over for its small cluster and for nothing else.

    A cluster of one case is an outlier and not worth a word.
    """
    rival = outcome.rival
    sizes, guarded = rival.kept_sizes, is_guarded(problem, solution.sizes, solution.kept_sizes)
    passed_over = guarded and not rival.guarded and sizes.min() > 1
    if not passed_over or rival.mean * engine.unit <= solution.mean * (1 + RIVAL_GAIN):
        return None
    least = int(sizes.argmin())
    cases = engine.arrays.first_members(rival.groups, least, RIVAL_CASES)
    return Rival(rival.mean * engine.unit, sizes[least].item(), cases)
