"""Many restarts of step (a), of which the best few partitions are kept and improved.

Every draw of a start is made before the first batch, so that cutting the restarts into batches
changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.random import sample_without_replacement

from rskc.engines import Engine, Partitions, Table
from rskc.solver.alternate import Problem, is_sparse, lloyd, moves_pay, repartition, tell
from rskc.solver.split_merge import FEWEST_OF_DOUBLED, GOLDEN, split_and_merge

# From this number of clusters on a start must be good by itself: random starts hardly ever have
# all centers in place.
MANY_CLUSTERS = 6
# The search is made on a sample of this many cells, where there are more than twice as many.
SAMPLE_CELLS, FEWEST_CASES = 2**22, 2**14
# Branches are followed side by side while their labels, groups and masks stay within this.
WORK_BYTES = 2**25
# Partitions kept for single moves: as many as a round of moves takes this many multiplications for.
MOVE_WORK = 4_000_000
FEWEST_KEPT, MOST_KEPT = 2, 8
# Of these, MOST_BRANCHES go on as branches. PLAIN_BRANCHES go on as they were before single moves
# too, since their objective may be larger; where a round of moves takes more multiplications, a
# branch costs much, and on tables of 3,000 cases by 1,000 columns they brought nothing.
MOST_BRANCHES, PLAIN_BRANCHES, PLAIN_WORK = 4, 2, 10_000_000
# Weights of groups of features, as the indicators of a category are one, have many local optima,
# and the best partition with equal weights seldom leads to the best one. More are followed there:
# of 24 fits to tables of 13 columns, 8 of them categories, the objective was 7% below the best one
# known with the numbers above, and 1% with this one. More restarts were of no use.
MOST_OF_GROUPS = 32
# Partitions that are split and merged: as many as an iteration takes this many multiplications for.
ESCAPE_WORK, MOST_ESCAPES = 3_500_000, 4
# Restarts with n_init="auto": as many as an iteration takes this many multiplications for; where
# there are many clusters, and on a sample of very many cases.
AUTO_WORK, FEWEST_STARTS, MOST_STARTS = 100_000_000, 10, 100
MANY_WORK, FEWEST_OF_MANY, MOST_OF_MANY = 5_000_000, 1, 20
# Before weights are known partitions are worse than they will be, and it takes more to choose from.
SPARSE_WORK = 25_000_000
SAMPLE_STARTS = 30
# Single precision is off by 6e-8 of |x|^2; it is trusted while costs are above this share of that.
SINGLE_SHARE = 1e-3


# ---- Starting centers: which cases each run begins with


def random_cases(table: Table, uniforms: np.ndarray, n_trim: float) -> np.ndarray:
    """Draw K different cases for each run, all subsets equally likely (Floyd's algorithm).

    Where cases have masses, these are K of their copies.
    """
    runs, K = uniforms.shape
    copies = int(table.mass)
    chosen = np.empty((runs, K), np.int64)
    for k in range(K):
        last = copies - K + k
        draw = np.minimum((uniforms[:, k] * (last + 1)).astype(np.int64), last)
        taken = (chosen[:, :k] == draw[:, None]).any(axis=1)
        chosen[:, k] = np.where(taken, last, draw)
    return table.cases_at((chosen + 0.5) * (table.mass / copies))


def plusplus_cases(table: Table, uniforms: np.ndarray, n_trim: float) -> np.ndarray:
    """k-means++: draw each next case in proportion to its distance from those before it.

    For many clusters greedily, as scikit-learn does: of 2 + log(K) cases that are drawn, the one is
    taken that lowers the sum most.
    """
    first = table.cases_at(uniforms[:, :1] * table.mass)
    return np.hstack([first, spread_cases(table, table.cases(first), uniforms[:, 1:], 0)])


def robust_cases(table: Table, uniforms: np.ndarray, n_trim: float) -> np.ndarray:
    """Greedy k-means++ that outlying cases cannot capture.

    The ``n_trim`` cases farthest from the centers chosen so far are neither drawn nor counted in
    the sum, and the first center is the most central of a few: the one with the least such sum.
    """
    shifts = np.arange(3) * GOLDEN
    trials = table.cases_at((uniforms[:, :1] + shifts) % 1.0 * table.mass)
    centers = table.cases(trials.ravel())[:, None, :]
    sums = table.trim(table.assign(centers), n_trim).within.reshape(trials.shape)
    first = np.take_along_axis(trials, sums.argmin(axis=1)[:, None], axis=1)
    return np.hstack([first, spread_cases(table, table.cases(first), uniforms[:, 1:], n_trim)])


INITS = {"random": random_cases, "k-means++": plusplus_cases, "robust": robust_cases}


def trials_for(K: int) -> int:
    """Return the number of candidates in each step: 1 where few clusters are found by restarts."""
    return 1 if K < MANY_CLUSTERS else 2 + int(np.log(K))


def spread_cases(
    table: Table, centers: np.ndarray, uniforms: np.ndarray, n_trim: float
) -> np.ndarray:
    """Choose further cases (runs, m) beside centers (runs, K, columns), one for each uniform.

    Candidates are drawn in proportion to their distance from the nearest center, the ``n_trim``
    farthest excluded; the one that lowers the sum over the other cases most is taken.
    """
    arrays, (runs, m) = table.arrays, uniforms.shape
    chosen = np.empty((runs, m), np.int64)
    trials = trials_for(centers.shape[1] + m)
    each, shifts = np.repeat(np.arange(runs), trials), np.arange(trials) / trials
    assignment = table.assign(centers)
    costs, groups = assignment.costs, table.trim(assignment, n_trim).groups
    for k in range(m):
        drawn = arrays.draw(costs, groups, (uniforms[:, k, None] + shifts) % 1.0)
        assignment = table.assign(table.cases(drawn.ravel())[:, None, :])
        lower = arrays.xp.minimum(assignment.costs, arrays.take(costs, each))
        trimmed = table.trim(assignment._replace(costs=lower), n_trim)
        best = trimmed.within.reshape(runs, trials).argmin(axis=1)
        chosen[:, k] = drawn[np.arange(runs), best]
        rows = np.arange(runs) * trials + best
        costs, groups = arrays.take(lower, rows), arrays.take(trimmed.groups, rows)
    return chosen


# ---- Restarts


class Sampled(NamedTuple):
    """Cases on which a search is made."""

    numbers: np.ndarray  # upwards
    masses: np.ndarray | None = None  # what they count there; None: as in the whole


@dataclass(frozen=True)
class Starts:
    """Where restarts begin: at cases that are drawn, in each of some ways in turn, or at groups.

    The best partitions of each way go on as branches.
    """

    inits: tuple[str, ...] = ()  # ways to draw cases; none where groups are given
    uniforms: Any = None  # (runs, K) of the cases that are drawn
    sample: Sampled | None = None  # the cases on which the search is made; None for all
    # (1, n) each: the partitions that restarts begin with instead of cases.
    groups: Sequence[Any] = ()

    @property
    def drawn(self) -> bool:
        """Whether they are drawn, and not given for all cases."""
        return len(self.inits) > 0

    @property
    def n_runs(self) -> int:
        """How many they are."""
        return len(self.uniforms if self.drawn else self.groups)

    def fewer(self, n_runs: int, round_: int) -> Starts:
        """Return the first few; those that are drawn are shifted in each round."""
        if not self.drawn:
            return replace(self, groups=self.groups[:n_runs])
        uniforms = (self.uniforms[:n_runs] + round_ * GOLDEN) % 1.0
        return replace(self, uniforms=uniforms, groups=() if round_ else self.groups)

    def from_labels(self, labels: Any, K: int) -> Starts:
        """Return a start with labels (1, n) of all cases, where split and merge leads on from it.

        With few clusters, or where groups are given, the starts themselves.
        """
        return replace(self, groups=[labels]) if self.drawn and K >= FEWEST_OF_DOUBLED else self

    def batches(self, table: Table, problem: Problem) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield starting centers (runs, K, columns) batch by batch, and in which way each is drawn.

        A batch fits the work space.
        """
        for groups in self.groups:
            yield table.sums(groups, problem.n_clusters).means(), np.zeros(1, int)
        if len(self.groups):
            return
        runs, K = self.uniforms.shape
        step = max(1, table.work_bytes // (24 * table.n_cases + 40 * K * table.n_columns))
        kinds = np.arange(runs) % len(self.inits)
        for first in range(0, runs, step):
            rows = slice(first, first + step)
            cases = self._draw(table, problem.n_trim, rows, kinds[rows])
            yield table.cases(cases), kinds[rows]

    def escape(self, table: Table, problem: Problem, found: Partitions) -> Partitions:
        """Split and merge, where there are clusters enough for centers to be misplaced.

        Given groups lead to the local optimum near them.
        """
        if problem.n_clusters < MANY_CLUSTERS or not self.drawn:
            return found
        work = table.n_cases * max(table.n_columns, 8) * problem.n_clusters
        first = found.take(slice(0, int(np.clip(ESCAPE_WORK // work, 1, MOST_ESCAPES))))
        better = split_and_merge(table, first, problem, self.uniforms[: len(first), 0])
        return better.join(found).best(len(found), problem.n_clusters)

    def _draw(self, table: Table, n_trim: float, rows: slice, kinds: np.ndarray) -> np.ndarray:
        uniforms = self.uniforms[rows]
        cases = np.empty(uniforms.shape, np.int64)
        bytes_of_run = 16 * trials_for(self.uniforms.shape[1]) * table.n_cases
        step = max(1, table.work_bytes // bytes_of_run)  # all candidates of a step at once
        for kind, init in enumerate(self.inits):
            runs_of_kind = np.flatnonzero(kinds == kind)
            for few in (runs_of_kind[i : i + step] for i in range(0, len(runs_of_kind), step)):
                cases[few] = INITS[init](table, uniforms[few], n_trim)
        return cases


def auto_inits(problem: Problem) -> tuple[str, ...]:
    """Return the kinds of start that ``init="auto"`` stands for."""
    spread = "robust" if problem.n_trim else "k-means++"
    return (spread,) if problem.n_clusters >= MANY_CLUSTERS else ("random", spread)


def auto_starts(n: int, p: int, problem: Problem) -> int:
    """Return the number of restarts that ``n_init="auto"`` stands for."""
    K = problem.n_clusters
    work = n * max(min(n, p), 8) * K
    if K >= MANY_CLUSTERS:
        most = SPARSE_WORK if is_sparse(problem) else MANY_WORK
        return int(np.clip(most // work, FEWEST_OF_MANY, MOST_OF_MANY))
    if search_size(n, p, K) < n:
        return SAMPLE_STARTS
    return int(np.clip(AUTO_WORK // work, FEWEST_STARTS, MOST_STARTS))


def search_size(n: int, p: int, K: int) -> int:
    """On how many cases the search is made."""
    most = max(SAMPLE_CELLS // p, FEWEST_CASES, 100 * K)
    return n if n <= 2 * most else most


def search_cases(
    engine: Engine, K: int, random_state: np.random.RandomState, size: int | None = None
) -> Sampled | None:
    """Draw the cases on which the search is made, so many or as many as usual; None for all.

    Where cases have masses, they are drawn in proportion to these, and count alike in the sample: a
    few that have most of the mass would be missed by others. One of very much mass is drawn several
    times, and counts as often.
    """
    n, p = engine.n_cases, engine.n_features
    if engine.masses is None:
        cases = draw_cases(n, p, K, random_state, size)
        return None if cases is None else Sampled(cases)
    most = size or search_size(n, p, K)
    if n == most:
        return None
    # One in each of even parts of the mass: no order of the cases can be in step with them.
    positions = (np.arange(most) + random_state.random_sample(most)) * (engine.mass / most)
    numbers, counts = np.unique(engine.cases_at(positions), return_counts=True)
    return Sampled(numbers, counts.astype(np.float64))


def draw_cases(
    n: int, p: int, K: int, random_state: np.random.RandomState, size: int | None = None
) -> np.ndarray | None:
    """Draw some of n cases that all count alike; None if the search is made on all of them."""
    most = size or search_size(n, p, K)
    if n == most:
        return None
    return np.sort(sample_without_replacement(n, most, random_state=random_state))


class Found(NamedTuple):
    """Partitions, and the table on which they have converged."""

    partitions: Partitions
    table: Table


def search(
    engine: Engine, problem: Problem, starts: Starts, weights: np.ndarray | None = None
) -> Found:
    """Run all restarts with weights (1, p) or equal ones; return the best partitions of each kind.

    Restarts run in single precision, twice as fast; what they find is finished in double.
    """
    weights = engine.equal_weights() if weights is None else weights
    table = engine.compact_table(weights, engine.float32)
    found = _restart(table, problem, starts)
    trusted = _single_is_enough(table, found[0], problem)
    del table  # before the next one is made
    exact = engine.compact_table(weights)
    if not trusted:
        found = _restart(exact, problem, starts)
    return Found(_finish(exact, problem, found), exact)


def _restart(table: Table, problem: Problem, starts: Starts) -> list[Partitions]:
    """Run the restarts batch by batch, and keep the best partitions of each kind."""
    # Of very many cases few partitions are kept.
    fewest = np.clip(WORK_BYTES // (64 * table.n_cases), 1, FEWEST_KEPT)
    work = table.n_cases * table.n_columns * problem.n_clusters
    most = int(np.clip(MOVE_WORK // work, fewest, _more_of_groups(problem, MOST_KEPT)))
    kept: dict[int, Partitions] = {}
    for centers, kinds in starts.batches(table, problem):
        runs = lloyd(table, centers, problem)
        for kind in np.unique(kinds):
            best = runs.take(np.flatnonzero(kinds == kind))
            best = kept[kind].join(best) if kind in kept else best
            kept[kind] = best.best(most, problem.n_clusters)
    return [starts.escape(table, problem, found) for found in kept.values()]


def _more_of_groups(problem: Problem, usual: int) -> int:
    """Return how many partitions are followed, the usual number if features are not in groups."""
    groups = problem.feature_groups
    in_groups = groups is not None and len(groups) < len(groups.numbers)
    return MOST_OF_GROUPS if in_groups and is_sparse(problem) else usual


def _single_is_enough(table: Table, found: Partitions, problem: Problem) -> bool:
    """Whether rounding in single precision is small beside what cases cost."""
    kept = table.mass - problem.n_trim
    return bool(found.within[0] / kept > SINGLE_SHARE * table.typical_norm())


def _finish(table: Table, problem: Problem, kinds: list[Partitions]) -> Partitions:
    """Run the partitions of each kind to convergence, and keep the best of each."""
    most, K = _more_of_groups(problem, MOST_BRANCHES), problem.n_clusters
    parts = [repartition(table, found.groups, problem).best(most, K) for found in kinds]
    small = table.n_cases * table.n_columns * problem.n_clusters <= PLAIN_WORK
    if is_sparse(problem) and moves_pay(table, problem.n_clusters) and small:
        n_plain = _more_of_groups(problem, PLAIN_BRANCHES)
        parts += [found.take(slice(0, n_plain)) for found in kinds]
    joined = parts[0].join(*parts[1:])
    tell(1, f"restarts done: {len(joined)} partitions go on")
    return joined.best(len(joined), problem.n_clusters)
