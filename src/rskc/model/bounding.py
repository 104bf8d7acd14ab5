"""Clusters of tables with outlying cells: two starts, each followed with bounded errors (internal).

Restarts need a table without extreme cells, on which all of ``automatic`` works as it is: one that
is clipped, and one in which these cells are missing. From the clusters found there, scales of
errors, the features that differ, flagged cells, centers and weights are made anew on the table as
it is, where the squared error of a cell counts no more than a limit, until clusters and features
stand. The one of the two with the smaller bounded within sum is the solution.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rskc.engines import BoundedEngine, Engine, engine_for
from rskc.inputs.medians import lower_medians
from rskc.model.automatic import (
    LAST_CUTOFF,
    OVER_TRIM,
    Clusters,
    Features,
    Few,
    Found,
    Wishes,
    as_warm,
    count_enough,
    few_of,
    first_clusters,
    most_trimmed,
    ranked_cases,
    solve_gathered,
    test_features,
    tested_groups,
)
from rskc.model.cells import (
    FEW_CASES,
    FIRST_LOOK,
    LOOKS,
    CellBounds,
    Columns,
    error_scales,
    extreme_columns,
    of_few_values,
)
from rskc.model.feature_tests import FeatureTests, cases_to_rank, ranks_of
from rskc.model.outliers import distances_to
from rskc.model.reweighting import first_thresholds, reweight
from rskc.solver import Problem, Solution, Starts, Warm, solve, solve_near
from rskc.solver.solve import carry

log = logging.getLogger(__name__)

# Rounds in which clusters and features come to stand: 2 to 5, but for near ties. The first shows
# which of two ways is better: after three the same ones were chosen, at a tenth more time.
MOST_ROUNDS = 10
# Restarts of the quick clusters that show whether extreme cells are those of clusters far apart.
QUICK_STARTS = 4


def solve_with_cells(
    engine: Engine,
    problem: Problem,
    starts: Starts,
    wishes: Wishes,
    cutoff: float,
    unscaled: np.ndarray | None = None,
) -> Found:
    """Solve a problem with the errors of cells bounded at ``cutoff`` scales.

    ``unscaled`` (p,) are features whose cells are never flagged.
    """
    few = few_of(engine, problem, starts)
    if few is None:
        more = wishes, cutoff, unscaled
        return solve_gathered(solve_with_cells, engine, problem, starts, *more)
    table = _Table.of(few, wishes, cutoff, unscaled)
    best = table.best([table.advanced(table.first(look)) for look in LOOKS])
    for _ in range(MOST_ROUNDS):
        if best.stands:
            break
        best = table.advanced(best)
    clusters, features, bounds = best.found, None, best.bounds
    assert clusters is not None
    assert bounds is not None
    if best.tests is not None:
        n_different = int(best.tests.passed().sum())
        features = Features(best.tests, n_different, count_enough(_trimmed_alike(clusters)))
    last, solution = replace(clusters.problem, n_trim=problem.n_trim), clusters.solution
    if few.sample is not None:
        bounded = BoundedEngine(engine, bounds.limits)
        solution = _on_all(bounded, last, few, clusters, wishes)
    return Found(solution, last, features, replace(bounds, extreme_share=table.extreme_share(best)))


def shows_outlying_cells(engine: Engine, problem: Problem, starts: Starts) -> bool:
    """Whether outlying cells are in so many cases that bounding their errors seems to pay.

    Clusters that are far apart have cells far from the middle of a column too. So where columns
    have such cells, the errors of quick clusters decide.
    """
    few = few_of(engine, problem, starts)
    sampled = engine if few is None else few.engine  # of few cases in blocks, all
    n, K = sampled.n_cases, problem.n_clusters
    some = min(FIRST_LOOK, len(cases_to_rank(n, sampled.n_features)))
    numbers = np.unique(np.linspace(0, n - 1, some).astype(np.int64))
    masses = sampled.arrays.masses_at(numbers)
    known = None if (masses == 1).all() else masses
    rows = sampled.rows(numbers)
    columns = extreme_columns(rows, known)
    if columns is None or K == 1 or not starts.drawn or len(numbers) < 2 * K:
        return columns is not None
    seen = engine_for(columns.clip(rows), masses=known, n_threads=1)
    n_trim = min(seen.rounded(OVER_TRIM * seen.mass), most_trimmed(seen, K))
    plain = replace(problem, l1_bound=None, n_features=None, n_trim=n_trim)
    labels = solve(seen, plain, starts.on_all().fewer(QUICK_STARTS, 0)).labels
    centers = np.array([lower_medians(rows[labels == k]) for k in range(K)])
    return columns.share_with_extreme_errors(rows - centers[labels], K, known) > FEW_CASES


class _Way(NamedTuple):
    """Where a look led to, or where the alternation stands."""

    problem: Problem
    warm: Warm
    centers: np.ndarray
    members: np.ndarray  # (n,) clusters of the cases that are judged by, -1 for others
    shares: np.ndarray  # (n,) of these that are not trimmed
    found: Clusters | None = None  # on a bounded engine
    bounds: CellBounds | None = None
    tests: FeatureTests | None = None
    stands: bool = False  # clusters and number of features are those of the round before

    @property
    def solution(self) -> Solution:
        """The solution on the bounded engine."""
        assert self.found is not None
        return self.found.solution


@dataclass(frozen=True)
class _Table:
    """The cases on which choices are made, and what is known of their columns."""

    few: Few
    wishes: Wishes
    cutoff: float
    columns: Columns
    numbers: np.ndarray  # of the cases by which errors are measured and features tested
    masses: np.ndarray | None  # theirs
    rows: np.ndarray  # their cells

    @classmethod
    def of(cls, few: Few, wishes: Wishes, cutoff: float, unscaled: np.ndarray | None) -> _Table:
        """Measure the columns."""
        numbers, masses = ranked_cases(few.engine)
        rows = few.engine.rows(numbers)
        never = of_few_values(rows)
        columns = Columns.of(rows, masses).without(never if unscaled is None else never | unscaled)
        return cls(few, wishes, cutoff, columns, numbers, masses, rows)

    def first(self, look: Any) -> _Way:
        """Find clusters on the table as a look shows it."""
        engine, problem, _, _ = self.few
        every = np.arange(engine.n_cases)
        masses = engine.arrays.masses_at(every) if engine.weighted else None
        seen = engine_for(look(self.columns, engine.rows(every)), masses=masses, n_threads=1)
        found, kept = first_clusters(self.few._replace(engine=seen), self.wishes)
        members = np.full(engine.n_cases, -1, np.int32)
        members[kept] = found.kept_labels()
        groups = engine.arrays.from_numpy(members)
        warm = Warm(groups, engine.arrays.trimmed(groups), found.solution.weights)
        own = engine.arrays.as_run(groups)
        medians = engine.group_medians(np.arange(engine.n_features), own, problem.n_clusters)
        shares, centers = np.ones(engine.n_cases), engine.restore(medians)[0]
        return _Way(replace(found.problem, n_trim=problem.n_trim), warm, centers, members, shares)

    def advanced(self, way: _Way) -> _Way:
        """Make scales, features, flags, centers and weights anew."""
        clusters, problem, tests = way.members[self.numbers], way.problem, None
        bounds = self._bounds(clusters, way)
        if self.wishes.bound:
            tests = self._test(bounds, clusters, way)
            n_different = int(tests.passed().sum())
            problem = replace(problem, l1_bound=None, n_features=max(n_different, 1))
        engine = BoundedEngine(self.few.engine, bounds.limits)
        found = Clusters(engine, problem, self._refined(engine, problem, way))
        solution = found.solution
        same = engine.arrays.differ(*map(engine.arrays.as_run, (solution.labels, way.warm.labels)))
        stands = (
            way.found is not None and not same[0] and problem.n_features == way.problem.n_features
        )
        known = as_warm(solution), solution.centers, *tested_groups(found)
        return _Way(problem, *known, found, bounds, tests, stands)

    def _bounds(self, clusters: np.ndarray, way: _Way) -> CellBounds:
        """Measure the errors of the cases that are in a cluster."""
        kept = clusters >= 0
        errors = self.rows[kept] - way.centers[clusters[kept]]
        masses = None if self.masses is None else self.masses[kept]
        scales = error_scales(errors, len(way.centers), masses)
        return CellBounds(np.where(np.isinf(self.columns.scales), np.inf, scales), self.cutoff)

    def _test(self, bounds: CellBounds, clusters: np.ndarray, way: _Way) -> FeatureTests:
        """Test the features over the cells that are not flagged."""
        flags = bounds.flags(self.rows, way.centers, clusters)
        ranks = ranks_of(np.where(flags, np.nan, self.rows), self.masses)
        shares = way.shares[self.numbers]
        counted = shares if self.masses is None else shares * self.masses
        return test_features(way.problem, ranks, clusters, counted)

    def _refined(self, engine: Engine, problem: Problem, way: _Way) -> Solution:
        """Make clusters, flags and weights consistent, with limits that are given."""
        if not (self.wishes.trim or self.wishes.reweight):
            return solve_near(engine, problem, [way.warm])
        labels, trimmed, weights = way.warm
        members = engine.arrays.without(labels, trimmed)
        return reweight(engine, problem, way.centers, weights, LAST_CUTOFF, members)

    def extreme_share(self, way: _Way) -> float:
        """Return the share of the cases that have a cell with an extreme error."""
        assert way.found is not None
        labels = self.few.engine.arrays.to_numpy(way.warm.labels)[self.numbers]
        errors = self.rows - way.centers[labels]
        return self.columns.share_with_extreme_errors(errors, len(way.centers), self.masses)

    def best(self, ways: list[_Way]) -> _Way:
        """Return the way with the smaller bounded within sum.

        It is over the features that have weight in either, each on the scale of its column, which
        is the same for both: by the weighted sum the clipped look won where a fifth of the cells
        is outlying, by unscaled ones the columns with the most of these decided.
        """
        used = np.any([way.solution.weights > 0 for way in ways], axis=0)
        spreads = np.where(
            np.isinf(self.columns.scales), self.rows.std(axis=0), self.columns.scales
        )
        squares = spreads**2
        weights = np.where(used & (squares > 0), 1 / np.where(squares > 0, squares, 1), 0.0)
        engine = BoundedEngine(self.few.engine, self.cutoff * self.columns.scales)

        def cost(way: _Way) -> float:
            solution = way.solution
            costs = distances_to(engine, solution.labels, solution.centers, weights[None])
            none = solution.trimmed_weighted & ~solution.trimmed_weighted
            return engine.arrays.total(costs, none)

        return min(ways, key=cost)


def _trimmed_alike(found: Clusters) -> Clusters:
    """Return clusters whose problem trims as many cases as were left out."""
    engine, problem, solution = found
    gone = min(engine.mass - solution.n_kept, most_trimmed(engine, problem.n_clusters))
    return found._replace(problem=replace(problem, n_trim=engine.rounded(gone)))


def _on_all(
    engine: Engine, problem: Problem, few: Few, found: Clusters, wishes: Wishes
) -> Solution:
    """Run what a sample led to to convergence on all cases."""
    assert few.sample is not None
    solution = found.solution
    if not (wishes.trim or wishes.reweight):
        return carry(engine, problem, few.sample, solution)
    known = solution.centers, solution.weights, LAST_CUTOFF
    thresholds = first_thresholds(found.engine, *known)
    last = reweight(engine, problem, *known, None, thresholds)
    return replace(last, path=(*solution.path, last.objective))
