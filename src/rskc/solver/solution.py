"""From a problem to its solution: restarts, branches, and what is chosen made consistent."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rskc.engines import ArrayOps, Assignment, Engine, Partitions, Sums, Table
from rskc.solver.alternate import (
    Outcome,
    Problem,
    State,
    best_outcome,
    continue_lloyd,
    explore,
    is_guarded,
    is_sparse,
    lloyd,
    tell,
    weigh,
)
from rskc.solver.search import MANY_CLUSTERS, Found, Sampled, Starts, search


class Warm(NamedTuple):
    """Where a branch may begin: a partition, and the weights that made it. A Solution has them."""

    labels: Any  # (n,)
    trimmed_weighted: Any  # (n,)
    weights: np.ndarray  # (p,)


@dataclass(frozen=True)
class Rival:
    """A solution with a larger objective whose smallest cluster may be all outlying cases."""

    mean: float  # objective per kept case
    size: float  # of the smallest cluster
    cases: np.ndarray  # the numbers of its first cases


@dataclass(frozen=True)
class Solution:
    """One consistent state: everything in it is of the same iteration.

    What is (n,) long is of the kind that the engine has.
    """

    weights: np.ndarray  # (p,)
    made_with: np.ndarray  # (p,) weights that made its trimmed sets
    labels: Any  # (n,) of every case: its nearest center
    centers: np.ndarray  # (K, p) in the space of the data, means of the cases not in O_W
    trimmed_weighted: Any  # (n,) O_W
    trimmed_unweighted: Any  # (n,) O_E
    costs: Any  # (n,) weighted squared distance to the own center
    objective: float  # sum_j w_j B_j over the cases in neither trimmed set
    n_kept: float  # how many these are, or their mass
    sizes: np.ndarray  # (K,) cases that have each label
    kept_sizes: np.ndarray  # (K,) those of them that are not in O_W
    inertia: float  # weighted within sum of squares of the cases not in O_W
    path: tuple[float, ...]  # the objective, iteration by iteration; last, that of the solution
    converged: bool
    rival: Rival | None = None  # passed over for its small cluster
    exposed: Rival | None = None  # the own smallest cluster, where no better solution was found
    unweighted_costs: Any = None  # (n,) such a distance by equal weights, where it is known

    @property
    def mean(self) -> float:
        """Objective per kept case."""
        return self.objective / max(self.n_kept, 1)

    def check_finite(self) -> None:
        """Refuse sums of squares that overflowed."""
        if not (np.isfinite(self.objective) and np.isfinite(self.inertia)):
            raise FloatingPointError("sums of squares overflow")


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
    """Cluster the data of an engine; from ``warm`` further branches of a sparse problem begin."""
    if starts.sample is not None:
        return _solve_by_sample(engine, problem, starts, starts.sample, warm)
    if starts.drawn and not engine.searchable:
        to_numpy = engine.arrays.to_numpy
        warm = [
            Warm(to_numpy(one.labels), to_numpy(one.trimmed_weighted), one.weights) for one in warm
        ]
        part = engine.part(np.arange(engine.n_cases))  # the data are few enough to be gathered
        return hand_back(engine, solve(part, problem, starts, warm))
    if not is_sparse(problem):
        return plain_solution(engine, problem, search(engine, problem, starts))
    partitions = search(engine, problem, starts).partitions
    return _branch_out(engine, problem, partitions, starts, warm)


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
        leader = search(part, few, starts).partitions.take(slice(0, 1))
        centers = part.restore(part.sums(leader.groups, few.n_clusters).means())
        del part, leader  # they have tables of the sample
        engine.forget_part()
        carried = _carried(engine, problem, centers, engine.equal_weights())
        return plain_solution(engine, problem, carried)
    of_sample = solve(part, few, replace(starts, sample=None))
    tell(1, f"search on {part.n_cases} of {engine.n_cases} cases done")
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
    centers, weights = of_sample.centers[None], of_sample.made_with[None]
    branches = _carried(engine, problem, centers, weights).partitions
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
    table = engine.table(weights)
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
        partitions = _as_partition(solve(engine, even, starts), engine.arrays)
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
    few = problem.n_clusters < MANY_CLUSTERS
    outcome = explore(engine, problem, branches, made_with, search_more if few else None)
    if not few:
        outcome = _return_to_search(engine, problem, outcome, search_more)
    tell(1, f"converged after {len(outcome.path)} iterations")
    return sparse_solution(engine, problem, outcome)


def _return_to_search(
    engine: Engine, problem: Problem, outcome: Outcome, search_more: Callable[..., Partitions]
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
    labels = warm.labels[None, ...]
    groups = arrays.without(labels, warm.trimmed_weighted[None, ...])
    return Partitions(groups, labels, np.zeros(1), np.ones(1, bool), arrays)


# ---- What was chosen, made consistent

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
    costs = _costs(engine, ended, weights[0])
    return Solution(
        **_described(engine, problem, ended, weights[0], costs),
        made_with=weights[0],
        trimmed_unweighted=costs < 0,  # none
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
        ends = sorted((end for end in outcome.ends if end.guarded), key=lambda end: -end.rest)
        others = (finish(engine, problem, end) for end in ends[:MOST_ENDS])
        safe = (each for each in others if is_guarded(problem, each.sizes, each.kept_sizes))
        groups = _as_partition(solution, engine.arrays).groups
        exposed = _smallest_cluster(engine, groups, solution.kept_sizes, solution.mean)
        solution = next(safe, None) or replace(solution, exposed=exposed)
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
    most = may_move(problem, engine.n_cases)
    enough = max(problem.tol, 1e-12, slack(problem, engine.n_cases))
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
        trimmed_unweighted=state.far[0, ...],
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


def slack(problem: Problem, n: int) -> float:
    """Return the share of the cases, and of the weights, that may change in the end: mostly 0."""
    return LATE_MOVES * problem.tol if n >= MILLIONS else 0.0


def may_move(problem: Problem, n: int) -> int:
    """Return how many cases may still move at convergence."""
    return int(slack(problem, n) * n)


def _described(
    engine: Engine, problem: Problem, ended: _Stationary, weights: np.ndarray, costs: Any
) -> dict:
    """Return the fields of a solution that follow from a partition and the weights (p,) it has."""
    arrays, K = engine.arrays, problem.n_clusters
    trimmed = (ended.groups < 0)[0, ...]
    return {
        "weights": weights,
        "labels": ended.labels[0, ...],
        "centers": ended.centers[0],
        "trimmed_weighted": trimmed,
        "costs": costs,
        "inertia": arrays.total(costs, trimmed),
        "sizes": arrays.sizes(ended.labels, K)[0],
        "kept_sizes": arrays.sizes(ended.groups, K)[0],
    }


def _costs(engine: Engine, ended: _Stationary, weights: np.ndarray) -> Any:
    """Return the squared distances (n,) of cases to their centers, by weights (p,)."""
    distances = engine.distances(ended.labels, engine.frame.place(ended.centers), weights[None])
    return distances[0, ...] * engine.unit


def _smallest_cluster(engine: Engine, groups: Any, sizes: np.ndarray, mean: float) -> Rival:
    least = int(sizes.argmin())
    cases = engine.arrays.first_members(groups, least, RIVAL_CASES)
    return Rival(mean, sizes[least].item(), cases)


def _rival(engine: Engine, problem: Problem, solution: Solution, outcome: Outcome) -> Rival | None:
    """Return the rival, if it was passed over for its small cluster and for nothing else.

    A cluster of one case is an outlier and not worth a word.
    """
    rival = outcome.rival
    sizes, guarded = rival.kept_sizes, is_guarded(problem, solution.sizes, solution.kept_sizes)
    passed_over = guarded and not rival.guarded and sizes.min() > 1
    if not passed_over or rival.mean * engine.unit <= solution.mean * (1 + RIVAL_GAIN):
        return None
    return _smallest_cluster(engine, rival.groups, sizes, rival.mean * engine.unit)
