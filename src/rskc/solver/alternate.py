"""Steps (a)-(e) of a problem: branches, each alternated until it repeats itself, and which is best.

The objective, the weighted between sum of squares for each kept case, need not rise from one
iteration to the next: the trimmed sets change. So a branch goes on to where it repeats itself, and
of all the states that the branches pass through the best is returned.

Which is best is the delicate part, because a cluster made of outlying cases has the largest
objective of all. Up to ``n_trim`` cases may be outlying. A state is *guarded* if each of its
clusters has more cases than that, so that none can consist of outlying ones, or at least keeps more
than half the cases of an average cluster: where much is trimmed (K * trim near 1) more cannot be
asked. Guarded states come first, and among them the largest objective; if a cluster of ``n_trim``
cases or fewer is there, the objective that is left when such clusters are taken away.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from rskc.engines import ArrayOps, Engine, Partitions, Summed, Sums, Table
from rskc.engines.arrays import above_0
from rskc.solver.groups import FeatureGroups

# Factors for missing cells may raise the objective by this factor when states are compared.
MOST_FACTOR = 1.1
# Objectives that differ by less than this share are the same, and the first is taken.
TIE = 1e-10
# Multiplications that a round of single moves may take: a tenth of a second.
MOVE_ROUND = 100_000_000
# How much the fit under way prints: 1 its stages, 2 its iterations. Each thread has its own.
VERBOSITY: ContextVar[int] = ContextVar("verbosity", default=0)


def tell(least: int, what: str) -> None:
    """Print what happens, if fits are at least so verbose."""
    if VERBOSITY.get() >= least:
        print("rskc:", what, file=sys.stderr)


@dataclass(frozen=True)
class Problem:
    """K clusters, m trimmed cases, and at most one of a bound and a number of features.

    Both are over groups where features share weights.
    """

    n_clusters: int
    n_trim: float = 0  # an int, or where cases have masses that are not whole, a mass
    l1_bound: float | None = None
    n_features: int | None = None
    max_iter: int = 300
    tol: float = 0.0
    patience: int = 5  # a branch ends when its objective has not risen for this many iterations
    feature_groups: FeatureGroups | None = None  # features that share a weight


def mass_of(share: float, engine: Engine) -> float:
    """Return a share of all cases: floor(share * n), or the mass where masses are not whole.

    10 / 78 * 78 and 0.29 * 100 are 10 and 29, whatever they round to.
    """
    mass = share * engine.mass
    rounded = engine.rounded(mass + 1e-9)
    return rounded if isinstance(rounded, int) else mass


@dataclass(frozen=True)
class State:
    """One pass through steps (a)-(e): everything in it belongs to the same iteration."""

    branch: int
    groups: Any  # (1, n) labels, -1 for O_W
    labels: Any  # (1, n)
    far: Any  # (1, n) O_E
    made_with: np.ndarray  # (p,) weights that made this partition
    weights: np.ndarray  # (p,) made from this partition
    objective: float  # sum_j w_j B_j over the cases in neither trimmed set
    n_kept: float  # the number of these, or their mass
    kept_sizes: np.ndarray  # (K,) cases in each group
    guarded: bool  # see is_guarded
    rest: float  # objective per kept case, without clusters of n_trim cases or fewer
    converged: bool

    @property
    def mean(self) -> float:
        """Objective per kept case."""
        return self.objective / max(self.n_kept, 1)

    def beats(self, other: State) -> bool:
        """Whether this state is better: guarded ones first, and by more than rounding."""
        if self.guarded != other.guarded:
            return self.guarded
        return self.rest > other.rest + TIE * abs(other.rest)


@dataclass(frozen=True)
class Outcome:
    """What the branches came to."""

    state: State
    ends: tuple[State, ...]  # where the branches ended
    rival: State  # the largest objective, guarded or not
    path: tuple[float, ...]  # objective of each iteration of the state's branch
    converged: bool


def reweigh(
    engine: Engine,
    problem: Problem,
    partitions: Partitions,
    branches: list[int],
    made_with: np.ndarray,
    known: Summed | None = None,
) -> tuple[list[State], Summed]:
    """Make steps (b)-(e) for each branch, whose partition these weights (branches, p) made.

    O_E is found, and what is in neither trimmed set is summed.

    Return the sums over what is kept too. ``known`` are such sums of partitions that are near.
    """
    groups = partitions.groups
    sums = engine.sums_near(known, groups, problem.n_clusters)
    far, kept, sums = engine.take_out_farthest(groups, partitions.labels, sums, problem.n_trim)
    arrays, between = engine.arrays, engine.between(sums, kept, made_with)
    weights = weigh(problem, between)
    sizes = arrays.sizes(partitions.labels, problem.n_clusters)
    kept_sizes = arrays.sizes(partitions.groups, problem.n_clusters)
    states = []
    for i, branch in enumerate(branches):
        run = slice(i, i + 1)
        partition, own_sums = partitions.take(run), sums.of_runs(run)
        objective = float(weights[i] @ between[i])
        rest = _rest(own_sums, sizes[i], weights[i], problem.n_trim, objective)
        if not (np.isfinite(objective) and np.isfinite(rest)):
            # Anything else is better: than -infinity nothing would be by a share of that.
            objective, rest = -np.inf, -sys.float_info.max
        state = State(
            branch=branch,
            groups=partition.groups,
            labels=partition.labels,
            far=arrays.take(far, run),
            made_with=made_with[i],
            weights=weights[i],
            objective=objective,
            n_kept=own_sums.n_kept(),
            kept_sizes=kept_sizes[i],
            guarded=is_guarded(problem, sizes[i], kept_sizes[i]),
            rest=rest,
            converged=bool(partition.converged[0]),
        )
        states.append(state)
    return states, Summed(kept, sums)


def is_guarded(problem: Problem, sizes: np.ndarray, kept_sizes: np.ndarray) -> bool:
    """Whether every cluster has more cases than may be outlying, or keeps half an average cluster.

    The first excludes a cluster of nothing but outlying cases. The second does not: it is all that
    can be asked where an average cluster has no more than ``n_trim`` cases, as with K * trim near
    1 or above. ``sizes`` (K,) are those of the clusters with all their cases, ``kept_sizes``
    without trimmed ones.
    """
    half = (sizes.sum() - problem.n_trim) // (2 * problem.n_clusters)
    return bool(((sizes > problem.n_trim) | (kept_sizes > half)).all())


def _rest(
    sums: Sums, sizes: np.ndarray, weights: np.ndarray, most: float, objective: float
) -> float:
    """Return the least objective per kept case without one cluster of ``most`` cases or fewer.

    Or without several: the smallest are taken away together, while they have at most ``most``.
    """
    small = np.flatnonzero(sizes <= most)
    if len(small) == 0:
        n_kept = max(sums.n_kept(), 1)
        if not sums.factored:
            return objective / n_kept
        # Cases of which little is observed must not decide.
        return min(objective, MOST_FACTOR * float(weights @ sums.between()[0])) / n_kept
    small = small[np.argsort(sizes[small], kind="stable")]
    together = small[np.cumsum(sizes[small]) <= most]
    (values, cells), counts = (part[0] for part in sums.halves()), sums.counts[0]
    squares, means = (values**2 / above_0(cells)) @ weights, []  # squares (K,)
    parts = values, cells, squares, counts
    one = [part[small] for part in parts]
    several = [part[together].cumsum(axis=0)[1:] for part in parts]
    for values_gone, cells_gone, squares_gone, counts_gone in (one, several):
        left = (values.sum(axis=0) - values_gone) ** 2 / above_0(cells.sum(axis=0) - cells_gone)
        rest = squares.sum() - squares_gone - left @ weights
        means.append(rest / above_0(counts.sum() - counts_gone))
    return float(np.concatenate(means).min())


def advance(engine: Engine, problem: Problem, states: list[State]) -> Partitions:
    """Make step (a) with the weights of each state, from its partition."""
    table = engine.table(np.array([state.weights for state in states]))
    groups = table.arrays.join([state.groups for state in states])
    return repartition(table, groups, problem)


class _Watch:
    """Sees which branches repeat themselves, meet, or no longer change."""

    def __init__(self, problem: Problem, arrays: ArrayOps):
        self.problem, self.arrays = problem, arrays
        self.seen: set[bytes] = set()
        self.last: dict[int, np.ndarray] = {}
        self.means: dict[int, list[float]] = {}

    def live(self, states: list[State]) -> list[State]:
        """Return the states whose branches go on."""
        groups = self.arrays.join([state.groups for state in states])
        far = self.arrays.join([state.far for state in states])
        keys = self.arrays.keys(groups, self.problem.n_clusters, far)
        live = []
        for state, key in zip(states, keys, strict=True):
            before = self.last.get(state.branch, np.inf)
            changed = np.abs(state.weights - before).sum() > self.problem.tol * state.weights.sum()
            means = self.means.setdefault(state.branch, [])
            means.append(state.mean)
            rising = len(means) - int(np.argmax(means)) <= self.problem.patience
            if key not in self.seen and changed and rising:
                live.append(state)
            self.seen.add(key)
            self.last[state.branch] = state.weights
        return live


def alternate(
    engine: Engine,
    problem: Problem,
    partitions: Partitions,
    made_with: np.ndarray,
    more: Callable[[np.ndarray], Partitions] | None = None,
) -> Iterator[tuple[list[State], bool]]:
    """Yield the states of all live branches, iteration by iteration, and whether they go on.

    ``made_with`` (branches, p) are the weights that made the partitions. ``more`` searches with
    given weights: when the leading branch has its first ones, what is found with these joins as
    further branches.
    """
    arrays, branches = engine.arrays, list(range(len(partitions)))
    watch = _Watch(problem, arrays)
    known: Summed | None = None
    for _ in range(problem.max_iter):
        states, known = reweigh(engine, problem, partitions, branches, made_with, known)
        live = watch.live(states)
        yield states, bool(live)
        if not live:
            return
        going = {state.branch for state in live}
        stay = np.flatnonzero([state.branch in going for state in states])
        known = Summed(arrays.take(known.groups, stay), known.sums.of_runs(stay))
        partitions, branches = advance(engine, problem, live), [s.branch for s in live]
        made_with = np.array([state.weights for state in live])
        if more is not None:
            found, more = more(states[0].weights[None]), None
            partitions = partitions.join(found)
            trimmed = found.groups < 0  # of these no case is summed yet
            groups = arrays.join([known.groups, arrays.without(found.groups, trimmed | ~trimmed)])
            known = Summed(groups, known.sums.and_empty(len(found)))
            made_with = np.vstack([made_with, *[states[0].weights] * len(found)])
            branches += [len(states) + i for i in range(len(found))]


def explore(
    engine: Engine,
    problem: Problem,
    partitions: Partitions,
    made_with: np.ndarray,
    more: Callable[[np.ndarray], Partitions] | None = None,
) -> Outcome:
    """Follow all branches to their ends, and choose among the states they passed through.

    They go side by side, as many as the work space holds.
    """
    step = max(1, engine.work_bytes // (64 * engine.n_cases))
    outcomes = []
    for first in range(0, len(partitions), step):
        some = slice(first, first + step)
        part, extra = partitions.take(some), None if first else more
        outcomes.append(_follow(alternate(engine, problem, part, made_with[some], extra)))
    return best_outcome(outcomes)


def best_outcome(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcome whose state is best, with the ends and the best rival of all."""
    best = reduce(lambda one, other: other if other.state.beats(one.state) else one, outcomes)
    ends = tuple(end for outcome in outcomes for end in outcome.ends)
    rival = max((outcome.rival for outcome in outcomes), key=lambda state: state.mean)
    return replace(best, ends=ends, rival=rival)


def _follow(iterations: Iterator[tuple[list[State], bool]]) -> Outcome:
    best = rival = None
    paths: dict[int, list[float]] = {}
    ends: dict[int, State] = {}
    converged = False
    for iteration, (states, going_on) in enumerate(iterations):
        converged = not going_on
        means = ", ".join(f"{state.mean:.5g}" for state in states)
        tell(2, f"iteration {iteration + 1}: objective per kept case: {means}")
        for state in states:
            paths.setdefault(state.branch, []).append(state.objective)
            ends[state.branch] = state
            if best is None or state.beats(best):
                best = state
            if rival is None or state.mean > rival.mean:
                rival = state
    assert best is not None
    assert rival is not None
    return Outcome(best, tuple(ends.values()), rival, tuple(paths[best.branch]), converged)


# ---- Step (a): trimmed K-means by batches of runs, with single moves of cases


def lloyd(table: Table, centers: np.ndarray, problem: Problem) -> Partitions:
    """Run trimmed K-means from each of the starting centers (runs, K, columns), in one batch."""
    return table.descend(centers, problem.n_trim, problem.max_iter, problem.tol)


def moves_pay(table: Table, K: int) -> bool:
    """Whether single moves can gain anything that Lloyd does not.

    A case pulls the center of its cluster towards itself, the more the fewer cases the cluster has
    for its columns: with 2 cases a column the pull is no more than the variance of one column. For
    few cases they cost nothing; where a round takes a hundred million multiplications, too much.
    """
    few = table.n_cases < max(1000, 2 * K * table.n_columns)
    return few and table.n_cases * table.n_columns * K <= MOVE_ROUND


def improve(table: Table, groups: Any, problem: Problem) -> Partitions:
    """Improve partitions by moving single cases until no move lowers the within sum.

    Lloyd is stuck early when n is small and p large, since a case pulls its own center towards
    itself: on the paper's clean simulation single moves bring the CER of K-means from .155 to .014.
    A partition that no single move improves is one that Lloyd does not change either, and one
    whose trimmed cases are the farthest; Lloyd is called where rounding or ties make it otherwise.
    """
    moved, sums = table.single_moves(groups, problem.n_clusters)
    assignment = table.assign(sums.means())
    trimmed, within = table.trim(assignment, problem.n_trim)
    converged = np.ones(len(within), bool)
    found = Partitions(trimmed, assignment.labels, within, converged, table.arrays)
    other = np.flatnonzero(table.arrays.differ(trimmed, moved))
    if len(other) == 0:
        return found
    groups = table.arrays.take(trimmed, other)
    return found.replace(other, continue_lloyd(table.of_runs(other), groups, problem))


def continue_lloyd(table: Table, groups: Any, problem: Problem) -> Partitions:
    """Run Lloyd's iterations from where partitions stand."""
    return lloyd(table, table.sums(groups, problem.n_clusters).means(), problem)


def repartition(table: Table, groups: Any, problem: Problem) -> Partitions:
    """Run partitions to convergence on a table: by single moves where these pay, else by Lloyd."""
    if moves_pay(table, problem.n_clusters):
        return improve(table, groups, problem)
    return continue_lloyd(table, groups, problem)


# ---- Step (e): the weights that maximize sum_j w_j B_j under ||w||_2 <= 1 and ||w||_1 <= s
#
# The exact solution is a soft threshold, w = S(B+, D) / ||S(B+, D)||_2. With the q largest entries
# active, D has a closed form, so one sort finds it; nothing is bisected, and nothing depends on the
# scale of B.

# Sums of squares that differ by less than this share tie: by that much rounding sets apart what is
# the same, as of columns of 0 and 1. Between the two no threshold may be left.
WEIGHT_TIE = 1e-12


def count_active(groups: FeatureGroups | None, weights: np.ndarray) -> int:
    """Return how many groups have weight; without groups, how many features."""
    if groups is None:
        return int(np.count_nonzero(weights))
    return len(np.unique(groups.numbers[weights > 0]))


def is_sparse(problem: Problem) -> bool:
    """Return whether features get weights of their own."""
    return problem.l1_bound is not None or problem.n_features is not None


def weigh(problem: Problem, between: np.ndarray) -> np.ndarray:
    """Return the weights for between-cluster sums of squares (p,) or (runs, p): step (e).

    Features of a group share one: the step is made for the groups.
    A run whose sums overflow gets those of no cluster, so that it cannot stop the others.
    """
    finite = np.isfinite(between).all(axis=-1, keepdims=True)
    between = between if finite.all() else np.where(finite, between, 0.0)
    groups = problem.feature_groups
    between = between if groups is None else groups.gather(between)
    step: Any = sparse_weights if problem.n_features is None else count_weights
    wanted = problem.n_features or problem.l1_bound
    weights = np.apply_along_axis(step, -1, between, wanted)
    return weights if groups is None else groups.spread(weights)


def sparse_weights(between: np.ndarray, l1_bound: float) -> np.ndarray:
    """Return the weights for a bound on their L1 norm.

    Where more than ``l1_bound**2`` features tie at the top, no solution treats them alike: those
    with the lowest numbers are taken, so that both norms hold.

    Parameters
    ----------
    between : ndarray of shape (p,)
        Between-cluster sums of squares; negative ones count as 0.
    l1_bound : float
        Bound s >= 1 on the L1 norm.

    Returns
    -------
    weights : ndarray of the same shape
        Non-negative, ``||w||_2 = 1`` and ``||w||_1 <= l1_bound``.
    """
    positive = np.maximum(between, 0.0)
    top = positive.max()
    if top == 0:
        return _tied_weights(_not_ruled_out(between), l1_bound)
    below = (top - positive) / top  # how far each is below the top, of which it is a share
    weights = 1.0 - below
    weights /= _norm(weights)
    if weights.sum() > l1_bound * (1 + 1e-12):
        if np.count_nonzero(below == 0) >= l1_bound**2 * (1 - 1e-12):
            return _tied_weights(below == 0, l1_bound)
        weights = np.maximum(_depth(np.sort(below), l1_bound) - below, 0.0)
        weights /= _norm(weights)
    return _within_bound(weights, l1_bound)


def count_weights(between: np.ndarray, n_features: int) -> np.ndarray:
    """Return the weights with ``n_features`` of them above 0, for the bound that gives that number.

    The threshold lies halfway between the last feature that is kept and the first that is not.
    Where these two tie, the nearest count without a tie is taken.
    """
    positive = np.maximum(between, 0.0)
    ordered = np.append(-np.sort(-positive), 0.0)
    gaps = ordered[:-1] - ordered[1:]
    steps = np.flatnonzero(gaps > WEIGHT_TIE * ordered[:-1]) + 1  # the counts that some bound gives
    if len(steps) == 0:
        return _tied_weights(_not_ruled_out(between), np.sqrt(n_features))
    count = steps[np.argmin(np.abs(steps - n_features))]
    weights = np.maximum(positive - (ordered[count - 1] + ordered[count]) / 2, 0.0)
    weights /= weights.max()
    return weights / np.linalg.norm(weights)


def _not_ruled_out(between: np.ndarray) -> np.ndarray:
    """Return the features with B_j >= 0; others have no observed cell, or cells against them."""
    return between >= 0 if (between >= 0).any() else np.ones(len(between), bool)


def _depth(below: np.ndarray, s: float) -> float:
    """Return how far below the largest entry the soft threshold lies that meets the bound.

    ``below`` is sorted upwards and starts with 0. Differences to the top, and not the entries
    themselves, are squared: near-ties at the top would cancel.
    """
    enough = int(np.floor(s**2 * (1 + 1e-12)))  # more features than that can meet the bound
    q = np.arange(enough + 1, len(below) + 1)
    total, squares = np.cumsum(below)[enough:], np.cumsum(below * below)[enough:]
    spread = np.maximum(q * squares - total * total, 0.0)
    depths = (total + s * np.sqrt(spread / (q - s**2))) / q
    # Active are the q entries less than `depth` below the top: the largest q for which that holds.
    fits = np.flatnonzero(below[enough:] < depths)
    return depths[fits[-1] if len(fits) else 0]


def _norm(weights: np.ndarray) -> float:
    return np.sqrt(np.einsum("j,j->", weights, weights))


def _tied_weights(tied: np.ndarray, s: float) -> np.ndarray:
    """Let the first of the tied features meet both norms: q - 1 equal weights and a smaller one."""
    q = min(int(np.ceil(s**2 * (1 - 1e-12))), int(np.count_nonzero(tied)))
    first = np.flatnonzero(tied)[:q]
    spread = np.sqrt(max(q - s**2, 0.0) * (q - 1)) / q
    weights = np.zeros(len(tied))
    weights[first] = s / q + spread / max(q - 1, 1)
    weights[first[-1]] = s / q - spread
    return _within_bound(weights / np.linalg.norm(weights), s)


def _within_bound(weights: np.ndarray, s: float) -> np.ndarray:
    """Bring rounding back under the bound."""
    excess = weights.sum() / s
    return weights / excess if 1 < excess < 1 + 1e-9 else weights
