"""What the data decide of a fit: the share of cases that is trimmed, and the number of features.

Internal. ``trim="auto"`` and ``l1_bound="auto"`` come here; a number for either is left to the
solver as it is.

*Features: cluster, test, refit.* A tight bound costs clusters, a generous one only the list of
features. So clusters are found with a generous bound, each feature is tested for a difference
between them, and the clusters are refined with as many features as pass, until these stand.

*Outlying cases: over-trim, flag, set aside.* A fit that trims more than is likely to be outlying
has clean centers. Cases that are far from these are set aside, the others are clustered with hardly
any trimming, an eighth of an average cluster at most, and the reweighting step lets the distances
decide about every case again. But trimming costs small clusters. So where a fit that trims nothing
shows no outlying case, that is the end of it.

Where there are very many cases all this is done on the sample that the solver searches; all cases
see its outcome in the end, from which centers, weights and flags converge on them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rskc.engines import Engine
from rskc.model.cells import CellBounds
from rskc.model.feature_tests import FeatureTests, cases_to_rank, group_tests, rank_tests, ranks_of
from rskc.model.outliers import (
    Distances,
    Thresholds,
    any_of_outlying_cells,
    distances_of,
    far_cases,
    find_clump,
)
from rskc.model.reweighting import first_thresholds, reweight
from rskc.solver import Problem, Solution, Starts, Warm, solve, solve_near
from rskc.solver.alternate import is_guarded
from rskc.solver.problem import Rival
from rskc.solver.search import Sampled, search_size
from rskc.solver.solve import carry, hand_back
from rskc.solver.split_merge import FEWEST_OF_DOUBLED

log = logging.getLogger(__name__)

# Share that the first fit trims: more than is likely to be outlying.
OVER_TRIM = 0.15
# Restarts of the first fit.
OVER_STARTS = 10
# Heavy tails do not end where cases are set aside: this share of theirs is trimmed of the others.
# With Cauchy noise a trim of .02 made clusters of 2 to 6 cases in 2 of 8 tables. Where none was set
# aside none is trimmed: of clusters of 5 to 12 cases beside large ones .02 cost one in every tenth
# table.
TAIL_TRIM = 0.5
# No more than this share of an average cluster: of 20 clusters a trim of .02 is half of one, and
# the objective gains by trimming one that lies near the mean of all; 17 were found then. With a
# larger share small clusters are trimmed, with .05 outlying cases keep a center now and then.
MOST_OF_CLUSTER = 0.12
# Cut-offs, in MADs of the cube roots: for setting cases aside, and in the end.
ASIDE_CUTOFF, LAST_CUTOFF = 3.5, 3.0
# Rounds of test and refit.
MOST_ROUNDS = 4
# Fewer features are enough while this share of the cases stays in its cluster.
SAME_CLUSTERS = 0.99


class Wishes(NamedTuple):
    """What the data are to decide, and whether the reweighting step follows."""

    trim: bool
    bound: bool
    reweight: bool

    @property
    def any(self) -> bool:
        """Whether a fit is more than one call of the solver."""
        return self.trim or self.bound or self.reweight


class Features(NamedTuple):
    """What was found about the features, or about the groups of features."""

    tests: FeatureTests
    n_different: int  # features that pass
    n_enough: int  # the least number on the path that gives the same clusters


class Found(NamedTuple):
    """A solution, the problem that the data chose, and how the features were chosen."""

    solution: Solution
    problem: Problem
    features: Features | None
    cells: CellBounds | None = None  # if the errors of cells are bounded


def mass_of(share: float, engine: Engine) -> float:
    """Return a share of all cases: floor(share * n), or the mass where masses are not whole.

    10 / 78 * 78 and 0.29 * 100 are 10 and 29, whatever they round to.
    """
    mass = share * engine.mass
    rounded = engine.rounded(mass + 1e-9)
    return rounded if isinstance(rounded, int) else mass


def most_trimmed(engine: Engine, K: int) -> float:
    """Return the most that may be trimmed: a case is left for each cluster."""
    return engine.rounded(engine.mass) - K


class Clusters(NamedTuple):
    """A solution for some of the cases."""

    engine: Engine
    problem: Problem
    solution: Solution

    def kept_labels(self) -> np.ndarray:
        """Return the labels of the cases that made the centers, -1 for the others."""
        arrays, solution = self.engine.arrays, self.solution
        return arrays.to_numpy(arrays.without(solution.labels, solution.trimmed_weighted))


def solve_automatically(engine: Engine, problem: Problem, starts: Starts, wishes: Wishes) -> Found:
    """Solve a problem of which the data are to decide a part.

    ``problem`` has the generous bound where the bound is to be found.
    """
    few = few_of(engine, problem, starts)
    if few is None:
        return solve_gathered(solve_automatically, engine, problem, starts, wishes)
    sample = few.sample
    found, kept = first_clusters(few, wishes)
    features = None
    if wishes.bound:
        found, features = choose_features(found)
    numbers = kept if sample is None else sample.numbers[kept]
    last, solution = replace(found.problem, n_trim=problem.n_trim), found.solution
    rival = solution.rival
    if sample is None and (wishes.trim or wishes.reweight):
        solution = _reweighted(engine, last, solution, members=_as_members(engine, found, kept))
    elif wishes.trim or wishes.reweight:
        known = solution.centers, solution.weights, LAST_CUTOFF
        thresholds = first_thresholds(few.engine, *known)
        del few, found  # they have tables of the sample
        engine.forget_part()
        solution = _reweighted(engine, last, solution, thresholds=thresholds)
    elif sample is not None:
        solution = carry(engine, last, sample, solution)
    return Found(replace(solution, rival=_renumbered(rival, numbers)), last, features)


def first_clusters(few: Few, wishes: Wishes) -> tuple[Clusters, np.ndarray]:
    """Set cases aside, if that is wished, and cluster the others; their numbers come second."""
    engine, problem, starts, _ = few
    kept = np.arange(engine.n_cases)
    if wishes.trim:
        over = _untrimmed(engine, problem, starts) or _over_trimmed(engine, problem, starts)
        kept = _not_set_aside(engine, over)
        log.info("%d cases set aside", engine.n_cases - len(kept))
        starts = _starts_of_part(starts, engine, engine, kept)
        known = engine.arrays.to_numpy(over.solution.labels)[kept]
        starts = starts.from_labels(engine.arrays.from_numpy(known[None]), problem.n_clusters)
    clean = engine if len(kept) == engine.n_cases else engine.part(kept)
    if wishes.trim:
        share = TAIL_TRIM * (1 - clean.mass / engine.mass)
        share = min(share, MOST_OF_CLUSTER / problem.n_clusters)
        n_trim = min(mass_of(share, clean), most_trimmed(clean, problem.n_clusters))
        problem = replace(problem, n_trim=n_trim)
    return Clusters(clean, problem, solve(clean, problem, starts)), kept


def solve_gathered(
    solve_part: Callable[..., Found], engine: Engine, problem: Problem, starts: Starts, *how: Any
) -> Found:
    """Solve for data that are few enough to be gathered, and hand the solution back."""
    every = np.arange(engine.n_cases)
    part = engine.part(every)
    found = solve_part(part, problem, _starts_of_part(starts, engine, part, every), *how)
    return found._replace(solution=hand_back(engine, found.solution))


class Few(NamedTuple):
    """The cases on which choices are made: all, or a sample."""

    engine: Engine
    problem: Problem
    starts: Starts
    sample: Sampled | None


def few_of(engine: Engine, problem: Problem, starts: Starts) -> Few | None:
    """Return the cases on which choices are made; None where all are to be gathered first."""
    sample = _sample_of(engine, problem, starts)
    if sample is None and not engine.searchable:
        return None
    few = engine if sample is None else engine.part(*sample)
    starts = _starts_of_part(starts, engine, few, None if sample is None else sample.numbers)
    n_trim = few.rounded(problem.n_trim * few.mass / engine.mass)
    return Few(few, replace(problem, n_trim=n_trim), starts, sample)


def _sample_of(engine: Engine, problem: Problem, starts: Starts) -> Sampled | None:
    """Return the cases on which choices are made; None for all."""
    n = engine.n_cases
    size = search_size(n, engine.n_features, problem.n_clusters)
    if starts.sample is not None or engine.searchable or size == n:
        return starts.sample
    return Sampled(np.linspace(0, n - 1, size).astype(np.int64))


def _starts_of_part(
    starts: Starts, engine: Engine, part: Engine, cases: np.ndarray | None
) -> Starts:
    """Return the starts for some of the cases."""
    if cases is None or starts.drawn:
        return starts.on_all()
    groups = [engine.arrays.to_numpy(own)[:, cases] for own in starts.groups]
    return Starts(groups=[part.arrays.from_numpy(own) for own in groups])


# ---- Outlying cases


def _untrimmed(few: Engine, problem: Problem, starts: Starts) -> Clusters | None:
    """Cluster all cases; return that if it shows no outlying case, and clusters are few.

    With many clusters it would take as long as a search without outlying cases, and hardly ever be
    of use.
    """
    if problem.n_clusters >= FEWEST_OF_DOUBLED:
        return None
    plain = replace(problem, n_trim=0)
    try:
        found = Clusters(few, plain, solve(few, plain, starts.fewer(OVER_STARTS, 0)))
        found.solution.check_finite()
    except FloatingPointError:
        return None  # a cell whose square overflows is an outlying one
    sizes = found.solution.kept_sizes
    small = np.flatnonzero(sizes <= OVER_TRIM * few.mass)
    far = _far(found, ASIDE_CUTOFF)
    shows_some = (
        sizes.min() < 2  # a case alone is not far from its center
        or few.arrays.count(far.weighted | far.unweighted)
        or any_of_outlying_cells(few, found.solution, small)
    )
    return None if shows_some else found


def _over_trimmed(few: Engine, problem: Problem, starts: Starts) -> Clusters:
    n_trim = min(mass_of(OVER_TRIM, few), most_trimmed(few, problem.n_clusters))
    over = replace(problem, n_trim=n_trim)
    solution = solve(few, over, starts.fewer(OVER_STARTS, 0))
    guarded = is_guarded(over, solution.sizes, solution.kept_sizes)
    if not guarded and starts.n_runs > OVER_STARTS:
        # Outlying cases may have a cluster in all that was found.
        solution = solve(few, over, starts)
    return Clusters(few, over, solution)


def _not_set_aside(few: Engine, over: Clusters) -> np.ndarray:
    """Return the cases that are not far from clean centers, or that form a cluster of their own.

    All, if too few clusters would stay.
    """
    far = _far(over, ASIDE_CUTOFF)
    aside = few.arrays.to_numpy(far.weighted | far.unweighted)
    K = over.problem.n_clusters
    for _ in range(K):
        clump = find_clump(few, over.solution, np.flatnonzero(aside)).cases
        if len(clump) == 0:
            break
        aside[clump] = False
    kept = np.flatnonzero(~aside)
    if len(kept) == few.n_cases or few.part(kept).distinct(K) < K:
        return np.arange(few.n_cases)
    return kept


def _far(found: Clusters, cutoff: float) -> Distances:
    """Return the cases that either distance flags."""
    engine, solution = found.engine, found.solution
    members = engine.arrays.without(solution.labels, solution.trimmed_weighted)
    distances = distances_of(engine, solution)
    return far_cases(engine, distances, members, solution.kept_sizes, cutoff)


def _as_members(engine: Engine, found: Clusters, kept: np.ndarray) -> Any:
    """Return the labels (n,) of the cases that made the centers, -1 for others."""
    own = found.kept_labels()
    every = np.full(engine.n_cases, -1, own.dtype)
    every[kept] = own
    return engine.arrays.from_numpy(every)


def _reweighted(
    engine: Engine,
    problem: Problem,
    solution: Solution,
    members: Any = None,
    thresholds: Thresholds | None = None,
) -> Solution:
    """Let the distances of all cases decide, from the centers of some."""
    known = solution.centers, solution.weights, LAST_CUTOFF
    last = reweight(engine, problem, *known, members, thresholds)
    return replace(
        last,
        path=(*solution.path, last.objective),
        converged=solution.converged and last.converged,
    )


def _renumbered(rival: Rival | None, numbers: np.ndarray) -> Rival | None:
    return None if rival is None else replace(rival, cases=numbers[rival.cases])


# ---- Features


def choose_features(found: Clusters) -> tuple[Clusters, Features]:
    """Test the features or their groups, refit with as many as pass, until these stand."""
    engine, problem, solution = found
    numbers, masses = ranked_cases(engine)
    ranks, seen = ranks_of(engine.rows(numbers), masses), set()
    for _ in range(MOST_ROUNDS):
        clusters, shares = (part[numbers] for part in tested_groups(found))
        counted = shares if masses is None else shares * masses
        tests = test_features(problem, ranks, clusters, counted)
        passed = tests.passed()
        if passed.tobytes() in seen:  # it stands, or goes round between few sets
            break
        seen.add(passed.tobytes())
        n_different = int(passed.sum())
        if problem.n_clusters == 1:
            return found, Features(tests, 0, len(passed))
        problem = replace(problem, l1_bound=None, n_features=max(n_different, 1))
        solution = solve_near(engine, problem, [as_warm(found.solution)])
        found = Clusters(engine, problem, solution)
    return found, Features(tests, n_different, count_enough(found))


def test_features(
    problem: Problem, ranks: np.ndarray, clusters: np.ndarray, counted: np.ndarray
) -> FeatureTests:
    """Test each feature, or group, by the ranks of cases that count so much; -1 for no cluster."""
    K, groups = problem.n_clusters, problem.feature_groups
    tests = rank_tests(ranks, clusters, K, counted)
    return tests if groups is None else group_tests(tests, ranks, clusters, K, groups, counted)


def ranked_cases(engine: Engine) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the numbers of the cases that are ranked, and their masses if they have any.

    All, or where there are more than enough evenly spaced ones; by mass these are copies.
    """
    copies = cases_to_rank(int(engine.mass), engine.n_features)
    if len(copies) < int(engine.mass):
        return engine.cases_at(copies + 0.5), None
    every = np.arange(engine.n_cases)
    masses = engine.arrays.masses_at(every)
    return every, None if (masses == 1).all() else masses


def tested_groups(found: Clusters) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels (n,) of the cases that are neither trimmed nor flagged, -1 for others.

    And the shares of them that are not trimmed: 1, but where one is trimmed in part.
    """
    arrays, solution = found.engine.arrays, found.solution
    far = _far(found, LAST_CUTOFF)
    out = solution.trimmed_weighted | solution.trimmed_unweighted | far.weighted | far.unweighted
    groups = arrays.without(solution.labels, out)
    return arrays.to_numpy(groups), arrays.kept_shares(groups)


def count_enough(found: Clusters) -> int:
    """Return the least number of features, along halvings, that gives the same clusters."""
    engine, problem, solution = found
    least = problem.n_features
    assert least is not None
    for number in _halvings(least):
        fewer = replace(problem, n_features=number)
        other = solve_near(engine, fewer, [as_warm(solution)])
        if agreement(engine, solution, other, problem.n_clusters) < SAME_CLUSTERS:
            break
        least = number
    return least


def _halvings(number: int) -> Iterator[int]:
    while number > 1:
        number = -(-number // 2)
        yield number


def agreement(engine: Engine, one: Solution, other: Solution, K: int) -> float:
    """Return the share of the cases that two partitions have in the same cluster."""
    to_numpy = engine.arrays.to_numpy
    pairs = to_numpy(one.labels).astype(np.int64) * K + to_numpy(other.labels)
    masses = engine.arrays.masses_at(np.arange(engine.n_cases))
    counts = np.bincount(pairs, masses, minlength=K * K).reshape(K, K)
    return min(counts.max(axis=0).sum(), counts.max(axis=1).sum()) / engine.mass


def as_warm(solution: Solution) -> Warm:
    """Return where a branch begins that goes on from a solution."""
    return Warm(solution.labels, solution.trimmed_weighted, solution.weights)
