"""What the data decide of a fit: the share of cases that is trimmed, and the number of features.

Internal. ``trim="auto"`` and ``l1_bound="auto"`` come here; a number for either is left to the
solver as it is.

*Features: cluster, test, refit.* A tight bound costs clusters, a generous one only the list of
features. So clusters are found with a generous bound, each feature is tested for a difference
between them, and the clusters are refined with as many features as pass, until these are the same.
The test is a rule for choosing features and no inference: the same data made the clusters, so that
p-values of noise are too small wherever noise had a part in the clusters. It is one on ranks,
because a few outlying cells or heavy tails must not decide.

*Outlying cases: over-trim, flag, set aside.* A fit that trims more than is likely to be outlying
has clean centers. Cases that are far from these are set aside, the others are clustered with hardly
any trimming, an eighth of an average cluster at most, and the reweighting step lets the distances
decide about every case again. But trimming costs small clusters. So where a fit that trims nothing
shows no outlying case, that is the end of it.

Where there are very many cases all this is done on the sample that the solver searches; all cases
see its outcome in the end, from which centers, weights and flags converge on them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import fdtrc
from scipy.stats import false_discovery_control, rankdata

from rskc.engines import Engine
from rskc.model import outliers
from rskc.solver import Problem, Solution, Starts, solve, solve_near
from rskc.solver.alternate import is_guarded, mass_of, tell
from rskc.solver.groups import FeatureGroups
from rskc.solver.search import Sampled, search_size
from rskc.solver.solution import carry
from rskc.solver.split_merge import FEWEST_OF_DOUBLED

if TYPE_CHECKING:
    from rskc.model.cells import CellBounds

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
# Cut-off for setting cases aside, in MADs of the cube roots.
ASIDE_CUTOFF = 3.5
# Rounds of test and refit.
MOST_ROUNDS = 4
# Fewer features are enough while this share of the cases stays in its cluster.
SAME_CLUSTERS = 0.99
# False discovery rate at which features are counted.
LEVEL = 0.05
# Cases that are ranked, evenly spaced where there are more; fewer where there are many features,
# but no fewer than the least number. 16 million ranks take 2 s.
MOST_CASES, FEWEST_CASES, MOST_CELLS = 4000, 1000, 2**24
CELLS_AT_ONCE = 2**18
# Features of a group by whose correlations its degrees of freedom are found.
MOST_TOGETHER = 500


class LeftToData(NamedTuple):
    """What the data are to decide."""

    trim: bool
    bound: bool
    outliers: bool  # in the end, by the reweighting step, which cases are left out


class FeatureTests(NamedTuple):
    """One-way tests on ranks, which is Kruskal and Wallis's test: one for each feature."""

    statistics: np.ndarray  # (p,) F on ranks; 0 where a feature is constant
    p_values: np.ndarray  # (p,) 1 where a feature is constant, or hardly observed

    def passed(self, level: float = LEVEL) -> np.ndarray:
        """Return the features that pass at this false discovery rate (Benjamini and Hochberg)."""
        return false_discovery_control(self.p_values) <= level


class FeatureChoice(NamedTuple):
    """What was found about the features, or about the groups of features."""

    tests: FeatureTests
    n_different: int  # features that pass
    n_enough: int  # the least number on the path that gives the same clusters


class FitResult(NamedTuple):
    """A solution, the problem that the data chose, and how the features were chosen."""

    solution: Solution
    problem: Problem
    features: FeatureChoice | None
    cells: CellBounds | None = None  # if the errors of cells are bounded


class Clusters(NamedTuple):
    """A solution for some of the cases."""

    engine: Engine
    problem: Problem
    solution: Solution

    def members(self, n: int, cases: np.ndarray) -> np.ndarray:
        """Return the labels (n,) of the cases that made the centers, -1 for the others.

        ``cases`` are the numbers that those of its engine have among all n.
        """
        labels = self.engine.arrays.to_numpy(outliers.members_of(self.engine, self.solution))
        members = np.full(n, -1, labels.dtype)
        members[cases] = labels
        return members


class Subset(NamedTuple):
    """The cases on which choices are made: all, or a sample."""

    engine: Engine
    problem: Problem
    starts: Starts
    sample: Sampled | None


def trimmed_mass(engine: Engine, share: float, K: int) -> float:
    """Return a share of the mass of all cases, of which one is left for each cluster."""
    return min(mass_of(share, engine), engine.rounded(engine.mass) - K)


def solve_automatically(
    engine: Engine, problem: Problem, starts: Starts, left: LeftToData
) -> FitResult:
    """Solve a problem of which the data are to decide a part.

    ``problem`` has the generous bound where the bound is to be found.
    """
    subset = subset_of(engine, problem, starts)
    clusters, kept = first_clusters(subset, left)
    features = None
    if left.bound:
        clusters, features = choose_features(clusters)
    last = replace(clusters.problem, n_trim=problem.n_trim)
    solution, sample = clusters.solution, subset.sample
    if (rival := solution.rival) is not None:
        numbers = kept if sample is None else sample.numbers[kept]
        rival = replace(rival, cases=numbers[rival.cases])
    if left.outliers and sample is None:
        members = engine.arrays.from_numpy(clusters.members(engine.n_cases, kept))
        solution = reweight_all(engine, last, solution, members=members)
    elif left.outliers:
        thresholds = outliers.first_thresholds(subset.engine, solution.centers, solution.weights)
        del subset, clusters  # they have tables of the sample
        engine.forget_part()
        solution = reweight_all(engine, last, solution, thresholds=thresholds)
    elif sample is not None:
        solution = carry(engine, last, sample, solution)
    return FitResult(replace(solution, rival=rival), last, features)


def first_clusters(subset: Subset, left: LeftToData) -> tuple[Clusters, np.ndarray]:
    """Set cases aside, if that is asked, and cluster the others; their numbers come second."""
    engine, problem, starts, _ = subset
    if not left.trim:
        solution = solve(engine, problem, starts)
        return Clusters(engine, problem, solution), np.arange(engine.n_cases)
    first, K = _untrimmed(subset) or _over_trimmed(subset), problem.n_clusters
    kept = _not_set_aside(first)
    tell(1, f"{engine.n_cases - len(kept)} cases set aside")
    labels = engine.arrays.to_numpy(first.solution.labels)[kept]
    starts = starts_of_part(starts, engine, engine, kept)
    starts = starts.from_labels(engine.arrays.from_numpy(labels[None]), K)
    clean = engine if len(kept) == engine.n_cases else engine.part(kept)
    share = min(TAIL_TRIM * (1 - clean.mass / engine.mass), MOST_OF_CLUSTER / K)
    problem = replace(problem, n_trim=trimmed_mass(clean, share, K))
    return Clusters(clean, problem, solve(clean, problem, starts)), kept


def where_searched(engine: Engine, problem: Problem, starts: Starts) -> tuple[Engine, Starts]:
    """Return an engine in memory for cases in blocks that are few enough, else the same one."""
    n = engine.n_cases
    few = starts.sample is None and not engine.searchable
    if few and search_size(n, engine.n_features, problem.n_clusters) == n:
        every = np.arange(n)
        part = engine.part(every)
        return part, starts_of_part(starts, engine, part, every)
    return engine, starts


def subset_of(engine: Engine, problem: Problem, starts: Starts) -> Subset:
    """Return the cases on which choices are made, for an engine of :func:`where_searched`."""
    sample, n = starts.sample, engine.n_cases
    if sample is None and not engine.searchable:
        size = search_size(n, engine.n_features, problem.n_clusters)
        sample = Sampled(np.linspace(0, n - 1, size).astype(np.int64))
    if sample is None:
        part, starts = engine, replace(starts, sample=None)
    else:
        part = engine.part(*sample)
        starts = starts_of_part(starts, engine, part, sample.numbers)
    n_trim = part.rounded(problem.n_trim * part.mass / engine.mass)
    return Subset(part, replace(problem, n_trim=n_trim), starts, sample)


def starts_of_part(starts: Starts, engine: Engine, part: Engine, cases: np.ndarray) -> Starts:
    """Return the starts for some of the cases."""
    if starts.drawn:
        return replace(starts, sample=None)
    groups = [engine.arrays.to_numpy(labels)[:, cases] for labels in starts.groups]
    return Starts(groups=[part.arrays.from_numpy(labels) for labels in groups])


# ---- Outlying cases


def _untrimmed(subset: Subset) -> Clusters | None:
    """Cluster all cases; return that if it shows no outlying case, and clusters are few.

    With many clusters it would take as long as a search without outlying cases, and hardly ever be
    of use.
    """
    engine, problem, starts, _ = subset
    if problem.n_clusters >= FEWEST_OF_DOUBLED:
        return None
    plain = replace(problem, n_trim=0)
    try:
        solution = solve(engine, plain, starts.fewer(OVER_STARTS, 0))
        solution.check_finite()
    except FloatingPointError:
        return None  # a cell whose square overflows is an outlying one
    sizes = solution.kept_sizes
    small = np.flatnonzero(sizes <= OVER_TRIM * engine.mass)
    shows_outliers = (
        sizes.min() < 2  # a case alone is not far from its center
        or engine.arrays.count(outliers.far_of(engine, solution, ASIDE_CUTOFF).either)
        or outliers.any_of_outlying_cells(engine, solution, small)
    )
    return None if shows_outliers else Clusters(engine, plain, solution)


def _over_trimmed(subset: Subset) -> Clusters:
    engine, problem, starts, _ = subset
    over = replace(problem, n_trim=trimmed_mass(engine, OVER_TRIM, problem.n_clusters))
    solution = solve(engine, over, starts.fewer(OVER_STARTS, 0))
    guarded = is_guarded(over, solution.sizes, solution.kept_sizes)
    if not guarded and starts.n_runs > OVER_STARTS:
        # Outlying cases may have a cluster in all that was found.
        solution = solve(engine, over, starts)
    return Clusters(engine, over, solution)


def _not_set_aside(clusters: Clusters) -> np.ndarray:
    """Return the cases that are not far from clean centers, or that form a cluster of their own.

    All, if too few clusters would stay.
    """
    engine, problem, solution = clusters
    aside = engine.arrays.to_numpy(outliers.far_of(engine, solution, ASIDE_CUTOFF).either)
    for _ in range(problem.n_clusters):
        clump = outliers.find_clump(engine, solution, np.flatnonzero(aside)).cases
        if len(clump) == 0:
            break
        aside[clump] = False
    kept = np.flatnonzero(~aside)
    if aside.any() and engine.part(kept).distinct(problem.n_clusters) < problem.n_clusters:
        return np.arange(engine.n_cases)
    return kept


def reweight_all(
    engine: Engine,
    problem: Problem,
    solution: Solution,
    members: Any = None,
    thresholds: outliers.Thresholds | None = None,
) -> Solution:
    """Let the distances of all cases decide, from the centers of some."""
    last = outliers.reweight(
        engine, problem, solution.centers, solution.weights, members, thresholds
    )
    converged = solution.converged and last.converged
    return replace(last, path=(*solution.path, last.objective), converged=converged)


# ---- Features


def choose_features(clusters: Clusters) -> tuple[Clusters, FeatureChoice]:
    """Test the features or their groups, refit with as many as pass, until these are the same."""
    engine, problem, solution = clusters
    numbers, masses = ranked_cases(engine)
    ranks, seen = ranks_of(engine.rows(numbers), masses), set()
    for _ in range(MOST_ROUNDS):
        labels, shares = (part[numbers] for part in tested_groups(engine, solution))
        counted = shares if masses is None else shares * masses
        tests = rank_tests(ranks, labels, problem.n_clusters, counted, problem.feature_groups)
        passed = tests.passed()
        if passed.tobytes() in seen:  # the same, or in turn with few other sets
            break
        seen.add(passed.tobytes())
        n_different = int(passed.sum())
        problem = replace(problem, l1_bound=None, n_features=max(n_different, 1))
        solution = solve_near(engine, problem, [solution])
    refined = Clusters(engine, problem, solution)
    return refined, FeatureChoice(tests, n_different, count_enough(refined))


def ranked_cases(engine: Engine) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the numbers of the cases that are ranked, and their masses if they have any.

    All, or where there are more than enough evenly spaced ones; by mass these are copies.
    """
    copies = cases_to_rank(int(engine.mass), engine.n_features)
    if len(copies) < int(engine.mass):
        return engine.cases_at(copies + 0.5), None
    numbers = np.arange(engine.n_cases)
    masses = engine.arrays.masses_at(numbers)
    return numbers, None if (masses == 1).all() else masses


def tested_groups(engine: Engine, solution: Solution) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels (n,) of the cases that are neither trimmed nor flagged, -1 for others.

    And the shares of them that are not trimmed: 1, but where one is trimmed in part.
    """
    far = outliers.far_of(engine, solution)
    out = solution.trimmed_weighted | solution.trimmed_unweighted | far.weighted | far.unweighted
    groups = engine.arrays.without(solution.labels, out)
    return engine.arrays.to_numpy(groups), engine.arrays.kept_shares(groups)


def count_enough(clusters: Clusters) -> int:
    """Return the least number of features, along halvings, that gives the same clusters."""
    engine, problem, solution = clusters
    assert problem.n_features is not None
    least = number = problem.n_features
    while number > 1:
        number = -(-number // 2)
        fewer = solve_near(engine, replace(problem, n_features=number), [solution])
        if agreement(engine, solution, fewer, problem.n_clusters) < SAME_CLUSTERS:
            break
        least = number
    return least


def agreement(engine: Engine, one: Solution, other: Solution, K: int) -> float:
    """Return the share of the cases that two partitions have in the same cluster."""
    to_numpy = engine.arrays.to_numpy
    pairs = to_numpy(one.labels).astype(np.int64) * K + to_numpy(other.labels)
    masses = engine.arrays.masses_at(np.arange(engine.n_cases))
    counts = np.bincount(pairs, masses, minlength=K * K).reshape(K, K)
    return min(counts.max(axis=0).sum(), counts.max(axis=1).sum()) / engine.mass


# ---- Tests of features


def cases_to_rank(n: int, p: int) -> np.ndarray:
    """Return the numbers of the cases that are ranked: all, or some evenly spaced ones."""
    most = int(np.clip(MOST_CELLS // p, FEWEST_CASES, MOST_CASES))
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)


def ranks_of(rows: np.ndarray, masses: np.ndarray | None = None) -> np.ndarray:
    """Rank the cells (n, p) of each feature, ties by their mean rank; NaN where none is observed.

    Ranks are centered and of length (p, n), single precision: halves up to 4,000 are exact in it.
    With ``masses`` (n,) a case ranks as its copies do: all of them tie. Without them it is one
    sort, twice as fast as ``rankdata``.
    """
    if masses is not None:
        return np.array([_weighted_ranks(column, masses) for column in rows.T], np.float32)
    n, p = rows.shape
    ranks = np.empty((p, n), np.float32)
    step = max(1, CELLS_AT_ONCE // n)
    for first in range(0, p, step):
        columns = slice(first, first + step)
        cells = np.array(rows[:, columns].T, order="C")
        missing = np.isnan(cells)
        cells[missing] = np.inf  # they rank last, behind all others, which do not notice
        order, found = np.argsort(cells, axis=1), np.empty(cells.shape)
        np.put_along_axis(found, order, np.arange(1.0, n + 1)[None], axis=1)
        ordered = np.take_along_axis(cells, order, axis=1)
        tied = ((ordered[:, 1:] == ordered[:, :-1]) & np.isfinite(ordered[:, 1:])).any(axis=1)
        if tied.any():
            found[tied] = rankdata(cells[tied], axis=1)
        centered = found - ((~missing).sum(axis=1, keepdims=True) + 1) / 2
        ranks[columns] = np.where(missing, np.nan, centered)
    return ranks


def _weighted_ranks(cells: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Rank the cells of one feature, centered: what is below, and half of what ties."""
    _, places = np.unique(cells, return_inverse=True)
    observed = ~np.isnan(cells)
    tied = np.bincount(places, masses * observed)
    ranks = (np.cumsum(tied) - tied / 2)[places] - tied.sum() / 2
    return np.where(observed, ranks, np.nan)


def rank_tests(
    ranks: np.ndarray,
    labels: np.ndarray,
    K: int,
    masses: np.ndarray | None = None,
    groups: FeatureGroups | None = None,
) -> FeatureTests:
    """Test each feature, or each group of features, for a difference between clusters.

    ``labels`` (n,) are -1 for a case that is left out, and ``masses`` (n,) the case weights; 1 if
    they are None.
    """
    p = len(ranks)
    kept = np.flatnonzero(labels >= 0)
    members = np.zeros((len(labels), K))  # what each case counts in each cluster
    members[kept, labels[kept]] = 1.0 if masses is None else masses[kept]
    statistics, p_values = np.zeros(p), np.ones(p)
    step = max(1, CELLS_AT_ONCE // ranks.shape[1])
    for first in range(0, p, step):
        rows = slice(first, first + step)
        sums = _Sums.of(ranks[rows].astype(np.float64), members, kept)
        statistics[rows], p_values[rows] = sums.tests()
    if groups is None:
        return FeatureTests(statistics, p_values)
    # The test of a feature alone is its own.
    leading = np.array([features[0] for features in groups.members])
    statistics, p_values = statistics[leading], p_values[leading]
    for g, features in enumerate(groups.members):
        if len(features) > 1:
            statistics[g], p_values[g] = _test_together(
                ranks[features].astype(np.float64), members, kept, groups.masses[features]
            )
    return FeatureTests(statistics, p_values)


class _Sums(NamedTuple):
    """Sums of squares of ranks, over the observed cells: each (features,)."""

    between: np.ndarray
    total: np.ndarray
    n: np.ndarray  # cells
    n_groups: np.ndarray
    testable: np.ndarray

    @classmethod
    def of(cls, ranks: np.ndarray, members: np.ndarray, kept: np.ndarray) -> _Sums:
        """Add up the ranks of features (m, n), by the case weights in each cluster (n, K)."""
        observed = ~np.isnan(ranks)
        complete = observed.all()
        values = ranks if complete else np.where(observed, ranks, 0.0)
        totals = values @ members  # (features, K)
        counts = members.sum(axis=0)[None] if complete else observed @ members
        n, n_groups = counts.sum(axis=1), (counts > 0).sum(axis=1)
        mean = totals.sum(axis=1) / np.maximum(n, 1)
        total = values[:, kept] ** 2 @ members[kept].sum(axis=1) - n * mean**2
        between = (totals**2 / np.where(counts > 0, counts, 1.0)).sum(axis=1) - n * mean**2
        testable = (n_groups > 1) & (n > n_groups) & (total > 1e-9 * np.maximum(n, 1))
        return cls(between, total, n, n_groups, testable)

    def tests(self) -> tuple[np.ndarray, np.ndarray]:
        """Return F on ranks of each feature, and the p-value."""
        within = np.maximum(self.total - self.between, 0.0)
        n_free, n_groups = np.maximum(self.n - self.n_groups, 1), np.maximum(self.n_groups - 1, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            statistics = self.between / n_groups / (within / n_free)
        statistics = np.where(self.testable, np.maximum(statistics, 0), 0.0)
        statistics[self.testable & (within <= 1e-12 * self.total)] = np.inf
        return statistics, np.where(self.testable, fdtrc(n_groups, n_free, statistics), 1.0)


def _test_together(
    ranks: np.ndarray, members: np.ndarray, kept: np.ndarray, masses: np.ndarray
) -> tuple[float, float]:
    """Return F and p-value of one group, whose features (m, n) have these masses.

    F is over the shares of the variances of ranks that lie between clusters, averaged over the
    features. Its degrees of freedom are those of one feature, times the number of independent
    features that the group amounts to (Box): 1 for copies of one feature, the number of categories
    less 1 for the indicators of a category.
    """
    sums = _Sums.of(ranks, members, kept)
    shares = np.where(sums.testable, masses, 0.0)
    if not shares.any():
        return 0.0, 1.0
    scales = shares / np.where(sums.testable, sums.total, 1.0)
    explained = float(np.clip(scales @ sums.between / shares.sum(), 0, 1))
    if explained >= 1 - 1e-12:
        return np.inf, 0.0
    n_groups = int(sums.n_groups.max()) - 1
    n_free = float(shares @ np.broadcast_to(sums.n, shares.shape) / shares.sum()) - n_groups - 1
    evenly = np.linspace(0, len(ranks) - 1, min(len(ranks), MOST_TOGETHER)).astype(int)
    amount = _independent(ranks[evenly], members, kept, scales[evenly])
    statistic = explained / n_groups / ((1 - explained) / n_free)
    return statistic, float(fdtrc(amount * n_groups, amount * n_free, statistic))


def _independent(
    ranks: np.ndarray, members: np.ndarray, kept: np.ndarray, scales: np.ndarray
) -> float:
    """Return how many independent features these (m, n) amount to within clusters.

    That is (sum of eigenvalues)^2 / (sum of their squares) of the covariances within clusters.
    """
    observed = ~np.isnan(ranks)
    values = np.where(observed, ranks, 0.0)
    counts = observed @ members
    means = (values @ members) / np.where(counts > 0, counts, 1.0)
    errors = np.where(observed, values - means @ (members > 0).T, 0.0)[:, kept]
    errors *= np.sqrt(scales)[:, None] * np.sqrt(members[kept].sum(axis=1))
    products = errors @ errors.T if len(errors) <= len(kept) else errors.T @ errors
    squares = float((products**2).sum())
    return float(np.trace(products)) ** 2 / squares if squares > 0 else 1.0
