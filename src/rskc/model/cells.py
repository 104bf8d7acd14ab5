"""Cells that are outlying, and clusters of tables that have them (internal).

A cell is judged by its error, its distance from the center of its cluster in one feature, on the
scale of such errors. Before there are clusters, columns are looked at as they are. Restarts need a
table without extreme cells, on which all of ``automatic`` works as it is: one that is clipped, and
one in which these cells are missing. From the clusters found there, scales of errors, the features
that differ, flagged cells, centers and weights are made anew on the table as it is, where the
squared error of a cell counts no more than a limit, until clusters and features no longer change.
The one of the looks with the smallest bounded within sum is the solution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from rskc.engines import BoundedEngine, Engine, engine_for
from rskc.engines.cells import group_medians
from rskc.inputs.arrays import is_dask, to_dense, to_numpy
from rskc.inputs.spreads import MAD_FACTOR, lower_medians
from rskc.model import automatic
from rskc.model.automatic import FeatureTests, cases_to_rank, rank_tests, ranks_of
from rskc.model.outliers import distances_to, first_thresholds, reweight
from rskc.solver import Problem, Solution, Starts, Warm, solve, solve_near
from rskc.solver.search import MANY_CLUSTERS
from rskc.solver.solution import carry

# The cut-off in scales: .1% of clean normal cells are beyond it.
CUTOFF = 3.3
# Whether bounding pays. A cell is extreme beyond this many scales of its column, and more where few
# cases tell these: twice as many with 20 cases. Of clean normal columns one cell in 100,000 is, of
# 20 cases as of 100. Where no more than this share of the cases has any, trimming
# and setting aside see to them: in the designs of ``make bench ARGS=choice`` up to .10 do.
EXTREME_SCALES, HALF_KNOWN, FEW_CASES = 6.0, 20, 0.125
# A column of which more than this share of the cases have the same value has no scale: it is of
# counts, mostly zeros, or of few values, which have no outlying ones.
SAME_VALUE = 0.25
# Cases by which a table is first looked at.
FIRST_LOOK = 1000
# Clipped columns end at this many scales. It keeps small clusters that are far away.
CLIP_SCALES = 3.0
# With many clusters extreme cells may be what tells small ones, and a table that is hardly clipped
# is looked at too: of 190 cases in 14 classes the adjusted Rand index is .53 so, and .48 without.
WIDE_CLIP_SCALES = 10.0
# Cells beyond this many scales are left out of the second look. It withstands a fifth of outlying
# cells, where clipped ones drown the others from a tenth on; with 3 scales it does not (CER .06),
# and 1 in 80 clean normal cells is beyond 2.5. Bent back to the middle (below) such cells pull the
# clusters together: with 12% of them a cluster was lost in one table of ten.
REMOVE_SCALES = 2.5
# Raymaekers and Rousseeuw's function: as it is up to 1.5 scales, then bent back to 0 at 4. The
# tables of searches are made so: they stay complete.
BEND, END, HEIGHT, SLOPE = 1.5, 4.0, 1.541, 0.8623
# They are bent where more cells of a typical column are extreme, and clipped otherwise. With 2% of
# outlying cells either is as good, with 8% only the former; of t with 3 degrees of freedom .7% are.
MANY_EXTREMES = 0.01
# Cells that are flagged at once.
CELLS_AT_ONCE = 2**20
# Rounds until clusters and features no longer change: 2 to 5, but for near ties. The first shows
# which of two ways is better: after three the same ones were chosen, at a tenth more time.
MOST_ROUNDS = 10
# Restarts of the quick clusters that show whether extreme cells are those of clusters far apart.
QUICK_STARTS = 4


# ---- Columns, and the errors of cells


class Columns(NamedTuple):
    """Medians and scales (p,) of columns; a column without a scale has an infinite one."""

    medians: np.ndarray
    scales: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, masses: np.ndarray | None = None) -> Columns:
        """Measure columns (n, p), whose cases may have masses; NaN marks a missing cell."""
        medians = lower_medians(rows, masses)
        scales = MAD_FACTOR * lower_medians(np.abs(rows - medians), masses)
        return cls(medians, np.where(scales > 0, scales, np.inf))

    def without(self, columns: np.ndarray) -> Columns:
        """Return them without the scales of the columns of a mask (p,)."""
        return Columns(self.medians, np.where(columns, np.inf, self.scales))

    def share_with_extremes(self, errors: np.ndarray, masses: np.ndarray | None = None) -> float:
        """Return the share of the cases (n, p) that have a cell with an extreme error."""
        extreme = EXTREME_SCALES * (1 + (HALF_KNOWN / len(errors)) ** 2)
        return float(np.average((np.abs(errors) / self.scales > extreme).any(1), weights=masses))

    def of_errors(
        self, errors: np.ndarray, n_clusters: int, masses: np.ndarray | None = None
    ) -> Columns:
        """Return them with the scales of errors (m, p) around the centers of clusters.

        Centers follow their cases: errors are too small by what n - K has to do with n.
        """
        n = len(errors) if masses is None else masses.sum()
        pulled = np.sqrt(n / max(n - n_clusters, 1))
        scales = MAD_FACTOR * pulled * lower_medians(np.abs(errors), masses)
        return Columns(self.medians, scales).without(np.isinf(self.scales) | ~(scales > 0))

    def clip(self, rows: np.ndarray, most: float = CLIP_SCALES) -> np.ndarray:
        """Cut cells off at this many scales."""
        reach = most * self.scales
        return np.clip(rows, self.medians - reach, self.medians + reach)

    def remove(self, rows: np.ndarray) -> np.ndarray:
        """Return rows whose cells beyond REMOVE_SCALES are missing.

        A case of which nothing would be left is clipped.
        """
        left = np.where(np.abs(rows - self.medians) > REMOVE_SCALES * self.scales, np.nan, rows)
        empty = np.isnan(left).all(axis=1)
        left[empty] = self.clip(rows[empty])
        return left

    def wrap(self, rows: np.ndarray) -> np.ndarray:
        """Bend cells beyond BEND scales back to the median."""
        away = (rows - self.medians) / self.scales
        size = np.abs(away)
        bent = np.sign(away) * HEIGHT * np.tanh(SLOPE * np.maximum(END - size, 0.0))
        scales = np.where(np.isinf(self.scales), 0.0, self.scales)
        return np.where(size > BEND, self.medians + scales * bent, rows).astype(rows.dtype)


def extreme_columns(rows: np.ndarray, masses: np.ndarray | None = None) -> Columns | None:
    """Return the columns (n, p), if so many cases have extreme cells that no trimming will do.

    The quick question comes first: which columns have few values takes a sort of all.
    """
    columns = Columns.of(rows, masses)
    errors = rows - columns.medians
    if columns.share_with_extremes(errors, masses) > FEW_CASES:
        columns = columns.without(of_few_values(rows))
        if columns.share_with_extremes(errors, masses) > FEW_CASES:
            return columns
    return None


def without_extremes(rows: np.ndarray, masses: np.ndarray | None = None) -> np.ndarray:
    """Return a table whose extreme cells are clipped, or bent back where they are many.

    Bent back, small clusters far from the others would be in the middle.
    """
    columns = Columns.of(rows, masses).without(of_few_values(rows))
    extreme = np.abs(rows - columns.medians) > EXTREME_SCALES * columns.scales
    shares = np.average(extreme, axis=0, weights=masses)
    return columns.wrap(rows) if np.median(shares) > MANY_EXTREMES else columns.clip(rows)


def of_few_values(rows: np.ndarray) -> np.ndarray:
    """Return which columns (p,) have a value that more than SAME_VALUE of their cases share."""
    ordered = np.sort(rows, axis=0)  # a NaN comes last, and is like no other
    apart = int(SAME_VALUE * len(rows))
    return (ordered[apart:] == ordered[: len(rows) - apart]).any(axis=0)


class CellBounds(NamedTuple):
    """The scales (p,) of errors, in the space of the data, and the cut-off in scales."""

    scales: np.ndarray
    cutoff: float
    extreme_share: float = 1.0  # of the cases, how many have a cell with an extreme error

    @property
    def limits(self) -> np.ndarray:
        """The errors (p,) beyond which cells are flagged."""
        return self.cutoff * self.scales


def flagged(X: Any, labels: np.ndarray, centers: np.ndarray, limits: np.ndarray) -> csr_array:
    """Return which cells (n, p) of a table of any kind are beyond limits from their centers."""
    parts, first = [], 0
    for rows in _pieces(X):
        rows = rows.astype(np.float64)  # differences of the largest numbers overflow in float32
        errors = np.abs(rows - centers[labels[first : first + len(rows)]])
        parts.append(csr_array(errors > limits))
        first += len(rows)
    return csr_array(vstack(parts, format="csr"))


def _pieces(X: Any) -> Iterator[np.ndarray]:
    """Yield the cases of a table, some at a time, in memory."""
    if is_dask(X):
        yield from map(to_numpy, X.blocks)
        return
    step = max(1, CELLS_AT_ONCE // X.shape[1])
    for first in range(0, X.shape[0], step):
        rows = X[first : first + step]
        yield to_dense(rows) if issparse(rows) else to_numpy(rows)


# ---- Clusters of tables with outlying cells


def shows_outlying_cells(engine: Engine, problem: Problem, starts: Starts) -> bool:
    """Whether outlying cells are in so many cases that bounding their errors seems to pay.

    Clusters that are far apart have cells far from the middle of a column too. So where columns
    have such cells, the errors of quick clusters decide.
    """
    engine = automatic.subset_of(engine, problem, starts).engine
    n, K = engine.n_cases, problem.n_clusters
    n_rows = min(FIRST_LOOK, len(cases_to_rank(n, engine.n_features)))
    numbers = np.unique(np.linspace(0, n - 1, n_rows).astype(np.int64))
    all_masses = engine.arrays.masses_at(numbers)
    masses = None if (all_masses == 1).all() else all_masses
    rows = engine.rows(numbers)
    columns = extreme_columns(rows, masses)
    if columns is None or K == 1 or not starts.drawn or len(numbers) < 2 * K:
        return columns is not None
    clipped = engine_for(columns.clip(rows), masses=masses)
    n_trim = automatic.trimmed_mass(clipped, automatic.OVER_TRIM, K)
    plain = replace(problem, l1_bound=None, n_features=None, n_trim=n_trim)
    labels = solve(clipped, plain, replace(starts, sample=None).fewer(QUICK_STARTS, 0)).labels
    centers = np.array([lower_medians(rows[labels == k]) for k in range(K)])
    errors = rows - centers[labels]
    return columns.of_errors(errors, K, masses).share_with_extremes(errors, masses) > FEW_CASES


def solve_with_cells(
    engine: Engine,
    problem: Problem,
    starts: Starts,
    left: automatic.LeftToData,
    cutoff: float,
    unscaled: np.ndarray | None = None,
) -> automatic.FitResult:
    """Solve a problem with the errors of cells bounded at ``cutoff`` scales.

    ``unscaled`` (p,) are features whose cells are never flagged.
    """
    subset = automatic.subset_of(engine, problem, starts)
    table = _Table(subset, left, cutoff, unscaled)
    looks = [Columns.clip, Columns.remove]
    if problem.n_clusters >= MANY_CLUSTERS:
        looks.append(partial(Columns.clip, most=WIDE_CLIP_SCALES))
    best = table.best([table.advanced(table.first(look)) for look in looks])
    for _ in range(MOST_ROUNDS):
        if best.converged:
            break
        best = table.advanced(best)
    bounds, solution, features, K = best.bounds, best.warm, None, problem.n_clusters
    assert bounds is not None
    assert isinstance(solution, Solution)
    part = BoundedEngine(subset.engine, bounds.limits)
    if best.tests is not None:
        n_trim = part.rounded(min(part.mass - solution.n_kept, part.rounded(part.mass) - K))
        alike = automatic.Clusters(part, replace(best.problem, n_trim=n_trim), solution)
        n_different = int(best.tests.passed().sum())
        features = automatic.FeatureChoice(best.tests, n_different, automatic.count_enough(alike))
    last = replace(best.problem, n_trim=problem.n_trim)
    if subset.sample is not None:
        bounded = BoundedEngine(engine, bounds.limits)
        if left.outliers:
            thresholds = first_thresholds(part, solution.centers, solution.weights)
            solution = automatic.reweight_all(bounded, last, solution, thresholds=thresholds)
        else:
            solution = carry(bounded, last, subset.sample, solution)
    labels = subset.engine.arrays.to_numpy(best.warm.labels)[table.numbers]
    errors = table.rows - best.centers[labels]
    scaled = table.columns.of_errors(errors, K, table.masses)
    bounds = bounds._replace(extreme_share=scaled.share_with_extremes(errors, table.masses))
    return automatic.FitResult(solution, last, features, bounds)


class _Way(NamedTuple):
    """Where a look led to, or where the alternation is."""

    problem: Problem
    warm: Warm | Solution
    centers: np.ndarray
    members: np.ndarray  # (n,) clusters of the cases that are judged by, -1 for others
    shares: np.ndarray  # (n,) of these that are not trimmed
    bounds: CellBounds | None = None
    tests: FeatureTests | None = None
    converged: bool = False  # clusters and number of features are those of the round before


class _Table:
    """The cases on which choices are made, and those by which errors and features are judged."""

    def __init__(
        self,
        subset: automatic.Subset,
        left: automatic.LeftToData,
        cutoff: float,
        unscaled: np.ndarray | None,
    ):
        self.subset, self.left, self.cutoff = subset, left, cutoff
        self.numbers, self.masses = automatic.ranked_cases(subset.engine)
        self.rows = subset.engine.rows(self.numbers)
        never = of_few_values(self.rows)
        never = never if unscaled is None else never | unscaled
        self.columns = Columns.of(self.rows, self.masses).without(never)

    def first(self, look: Callable[[Columns, np.ndarray], np.ndarray]) -> _Way:
        """Find clusters on the table as a look shows it."""
        engine, problem, _, _ = self.subset
        n, arrays = engine.n_cases, engine.arrays
        every = np.arange(n)
        masses = arrays.masses_at(every) if engine.masses is not None else None
        seen = engine_for(look(self.columns, engine.rows(every)), masses=masses)
        clusters, kept = automatic.first_clusters(self.subset._replace(engine=seen), self.left)
        members, weights = clusters.members(n, kept), clusters.solution.weights
        groups = arrays.from_numpy(members)
        nearest = np.asarray(seen.nearest(clusters.solution.centers, weights))
        labels = np.where(members < 0, nearest, members)
        warm = Warm(arrays.from_numpy(labels), groups < 0, weights)
        features = np.arange(engine.n_features)
        medians = group_medians(engine, features, groups[None, ...], problem.n_clusters)
        problem = replace(clusters.problem, n_trim=problem.n_trim)
        return _Way(problem, warm, engine.restore(medians)[0], members, np.ones(n))

    def advanced(self, way: _Way) -> _Way:
        """Make scales, features, flags, centers and weights anew."""
        problem, warm, labels = way.problem, way.warm, way.members[self.numbers]
        errors, kept, masses = self.rows - way.centers[labels], labels >= 0, self.masses
        own = None if masses is None else masses[kept]
        K, tests = len(way.centers), None
        bounds = CellBounds(self.columns.of_errors(errors[kept], K, own).scales, self.cutoff)
        if self.left.bound:  # by the cells that are not flagged
            flags = (np.abs(errors) > bounds.limits) & kept[:, None]
            ranks, counted = ranks_of(np.where(flags, np.nan, self.rows), masses), way.shares
            counted = counted[self.numbers] * (1.0 if masses is None else masses)
            tests = rank_tests(ranks, labels, K, counted, problem.feature_groups)
            n_features = max(int(tests.passed().sum()), 1)
            problem = replace(problem, l1_bound=None, n_features=n_features)
        engine = BoundedEngine(self.subset.engine, bounds.limits)
        arrays = engine.arrays
        if self.left.outliers:
            members = arrays.without(warm.labels, warm.trimmed_weighted)
            solution = reweight(engine, problem, way.centers, warm.weights, members)
        else:
            solution = solve_near(engine, problem, [warm])
        converged = (
            way.bounds is not None
            and not arrays.differ(solution.labels[None, ...], warm.labels[None, ...])[0]
            and problem.n_features == way.problem.n_features
        )
        groups, shares = automatic.tested_groups(engine, solution)
        centers = solution.centers
        return _Way(problem, solution, centers, groups, shares, bounds, tests, converged)

    def best(self, ways: list[_Way]) -> _Way:
        """Return the way with the smallest bounded within sum.

        It is over the features that have weight in any, each on the scale of its column, which is
        the same for all: by the weighted sum the clipped look won where a fifth of the cells is
        outlying, by unscaled ones the columns with the most of these decided.
        """
        used = np.any([way.warm.weights > 0 for way in ways], axis=0)
        scales = self.columns.scales
        squares = np.where(np.isinf(scales), self.rows.std(axis=0), scales) ** 2
        weights = np.where(used & (squares > 0), 1 / np.where(squares > 0, squares, 1), 0.0)
        engine = BoundedEngine(self.subset.engine, self.cutoff * scales)
        none = ways[0].warm.trimmed_weighted & ~ways[0].warm.trimmed_weighted
        costs = [distances_to(engine, way.warm.labels, way.centers, weights) for way in ways]
        return ways[int(np.argmin([engine.arrays.total(each, none) for each in costs]))]
