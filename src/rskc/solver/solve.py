"""From a problem to its solution: the restarts, the branches, and on what cases they are made."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from rskc.engines import ArrayOps, Engine, Partitions
from rskc.solver.alternate import Outcome, best_outcome, explore
from rskc.solver.finish import plain_solution, sparse_solution
from rskc.solver.partition import MANY_CLUSTERS, lloyd
from rskc.solver.problem import Problem, Rival, Solution, Warm
from rskc.solver.search import Found, Sampled, Starts, search
from rskc.solver.weights import is_sparse

log = logging.getLogger(__name__)

# With the best weights so far this many restarts are made, and this many of the partitions found
# are followed. Few columns carry weight then: few starts are enough.
MORE_STARTS, MORE_BRANCHES = 50, 2
# Rounds of such restarts, and how many without a gain end them.
MOST_ROUNDS, ROUNDS_IN_VAIN = 4, 2
# Multiplications that an iteration of all these rounds may take.
ROUND_WORK = 25_000_000
# Along a path of bounds this many of the first partitions are followed again.
PATH_BRANCHES = 2
# How long the objective may fall on all cases, after a sample was followed to its end.
PATIENCE_ON_ALL = 2


def solve(engine: Engine, problem: Problem, starts: Starts, warm: Sequence[Warm] = ()) -> Solution:
    """Cluster the data of an engine.

    Parameters
    ----------
    engine : Engine
        The data.
    problem : Problem
        What is asked.
    starts : Starts
        Where the restarts begin.
    warm : sequence of Warm
        Solutions from which further branches begin, of a sparse problem.

    Returns
    -------
    solution : Solution
    """
    if starts.sample is not None:
        return _solve_by_sample(engine, problem, starts, starts.sample, warm)
    if starts.drawn and not engine.searchable:
        return _solve_in_memory(engine, problem, starts, warm)
    if not is_sparse(problem):
        return plain_solution(engine, problem, search(engine, problem, starts))
    partitions = search(engine, problem, starts).partitions
    return _branch_out(engine, problem, partitions, starts, warm)


def _solve_in_memory(
    engine: Engine, problem: Problem, starts: Starts, warm: Sequence[Warm]
) -> Solution:
    """Solve for data that are few enough to be gathered, and hand the solution back."""
    to_numpy = engine.arrays.to_numpy
    gathered = [
        Warm(to_numpy(one.labels), to_numpy(one.trimmed_weighted), one.weights) for one in warm
    ]
    solution = solve(engine.part(np.arange(engine.n_cases)), problem, starts, gathered)
    return hand_back(engine, solution)


def hand_back(engine: Engine, solution: Solution) -> Solution:
    """Return a solution for all cases, found in memory, with arrays of the kind of the engine."""
    names = ["labels", "trimmed_weighted", "trimmed_unweighted", "costs"]
    names += [] if solution.unweighted_costs is None else ["unweighted_costs"]
    from_numpy = engine.arrays.from_numpy
    return replace(solution, **{name: from_numpy(getattr(solution, name)) for name in names})


def _solve_by_sample(
    engine: Engine, problem: Problem, starts: Starts, sample: Sampled, warm: Sequence[Warm]
) -> Solution:
    """Search on a sample of very many cases; run what is found to convergence on all of them.

    Restarts and branches read the data hundreds of times, and on some ten thousand cases they come
    to the same end: from there all cases need a few more iterations.
    """
    part = engine.part(*sample)
    share = part.mass / engine.mass
    few = replace(problem, n_trim=part.rounded(problem.n_trim * share))
    if not is_sparse(problem):
        leader = search(part, few, starts.on_all()).partitions.take(slice(0, 1))
        centers = part.restore(part.sums(leader.groups, few.n_clusters).means())
        del part, leader  # they have tables of the sample
        engine.forget_part()
        return plain_solution(
            engine, problem, _carried(engine, problem, centers, engine.equal_weights())
        )
    of_sample = solve(part, few, starts.on_all())
    log.info("search on %d of %d cases done", part.n_cases, engine.n_cases)
    del part
    return carry(engine, problem, sample, of_sample, warm)


def carry(
    engine: Engine,
    problem: Problem,
    sample: Sampled,
    of_sample: Solution,
    warm: Sequence[Warm] = (),
) -> Solution:
    """Run the solution of a sample to convergence on all cases."""
    if not is_sparse(problem):
        carried = _carried(engine, problem, of_sample.centers[None], engine.equal_weights())
        return plain_solution(engine, problem, carried)
    share = of_sample.sizes.sum() / engine.mass
    made_with = np.vstack([of_sample.made_with, *(solution.weights for solution in warm)])
    # Its table is as large as the data: given up before the branches make theirs.
    branches = _carried(
        engine, problem, of_sample.centers[None], of_sample.made_with[None]
    ).partitions
    branches = branches.join(*(_as_partition(solution, engine.arrays) for solution in warm))
    outcome = explore(engine, replace(problem, patience=PATIENCE_ON_ALL), branches, made_with)
    solution = sparse_solution(engine, problem, outcome)
    if of_sample.rival is None or solution.rival is not None:
        return solution
    cases = sample.numbers[of_sample.rival.cases]
    size = round(of_sample.rival.size / share)
    return replace(solution, rival=Rival(of_sample.rival.mean, size, cases))


def _carried(engine: Engine, problem: Problem, centers: np.ndarray, weights: np.ndarray) -> Found:
    """Run K-means of all cases from the centers that a sample led to, with the same weights."""
    table = engine.rough_table(weights)
    return Found(lloyd(table, table.place(centers), problem), table)


def solve_path(engine: Engine, problems: Sequence[Problem], starts: Starts) -> Iterator[Solution]:
    """Solve sparse problems that differ in their bounds alone, from the least bound upwards.

    The restarts with equal weights are the same for all. From the second problem on, few branches
    are followed, and one begins at the solution before: that is allowed under a larger bound, so
    that the objective does not fall along the path. On data without clusters, where each search
    ends somewhere else, it would, by as much as a tenth, and the gap would choose no sparsity.
    """
    if starts.sample is None and (engine.searchable or not starts.drawn):
        partitions = search(engine, problems[0], starts).partitions
        solution = _branch_out(engine, problems[0], partitions, starts)
    else:
        solution = solve(engine, problems[0], starts)
        even = replace(problems[0], l1_bound=None, n_features=None)
        plain = solve(engine, even, starts)
        partitions = _as_partition(plain, engine.arrays)
    yield solution
    few = partitions.take(slice(0, PATH_BRANCHES))
    equal = np.repeat(engine.equal_weights(), len(few), axis=0)
    for problem in problems[1:]:
        made_with = np.vstack([solution.weights, equal])
        branches = _as_partition(solution, engine.arrays).join(few)
        outcome = explore(engine, problem, branches, made_with)
        solution = sparse_solution(engine, problem, outcome)
        yield solution


def solve_near(engine: Engine, problem: Problem, neighbors: Sequence[Warm | Solution]) -> Solution:
    """Solve a problem from solutions of like ones; K-means goes on from the first of them."""
    made_with = np.array([warm.weights for warm in neighbors])
    first, *others = (_as_partition(warm, engine.arrays) for warm in neighbors)
    if not is_sparse(problem):
        return plain_solution(engine, problem, Found(first, engine.table(engine.equal_weights())))
    partitions = first.join(*others)
    return sparse_solution(engine, problem, explore(engine, problem, partitions, made_with))


def _branch_out(
    engine: Engine,
    problem: Problem,
    partitions: Partitions,
    starts: Starts,
    warm: Sequence[Warm] = (),
) -> Solution:
    """Follow the partitions, and what is found with better weights than equal ones, as branches."""

    def search_more(weights: np.ndarray, round_: int = 0) -> Partitions:
        found = search(engine, problem, starts.fewer(MORE_STARTS, round_), weights)
        return found.partitions.best(MORE_BRANCHES, problem.n_clusters)

    made_with = np.repeat(engine.equal_weights(), len(partitions), axis=0)
    made_with = np.vstack([made_with, *(solution.weights for solution in warm)])
    branches = partitions.join(*(_as_partition(solution, engine.arrays) for solution in warm))
    if problem.n_clusters < MANY_CLUSTERS:
        outcome = explore(engine, problem, branches, made_with, search_more)
    else:
        outcome = explore(engine, problem, branches, made_with)
        outcome = _return_to_search(engine, problem, outcome, search_more)
    log.info("converged after %d iterations", len(outcome.path))
    return sparse_solution(engine, problem, outcome)


def _return_to_search(
    engine: Engine,
    problem: Problem,
    outcome: Outcome,
    search_more: Callable[[np.ndarray, int], Partitions],
) -> Outcome:
    """Restart with the weights of the best state, round by round, until that brings nothing.

    The first weights of many clusters are far from the last. Of 50 clusters in 20 of 100 features
    (``make bench ARGS=many``) the CER falls from .006 to .004 by a second round.
    """
    in_vain = 0
    for round_ in range(1, MOST_ROUNDS + 1):
        weights = outcome.state.weights[None]
        work = engine.n_cases * np.count_nonzero(weights) * problem.n_clusters
        if round_ * work > ROUND_WORK:
            break
        found = search_more(weights, round_)
        other = explore(engine, problem, found, np.repeat(weights, len(found), axis=0))
        in_vain = 0 if other.state.beats(outcome.state) else in_vain + 1
        outcome = best_outcome([outcome, other])
        if in_vain == ROUNDS_IN_VAIN:
            break
    return outcome


def _as_partition(warm: Warm | Solution, arrays: ArrayOps) -> Partitions:
    """Return the beginning of a branch; what it costs is found on the way."""
    labels = arrays.as_run(warm.labels)
    groups = arrays.without(labels, arrays.as_run(warm.trimmed_weighted))
    return Partitions(groups, labels, np.zeros(1), np.ones(1, bool), arrays)
