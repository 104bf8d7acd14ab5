"""Which features differ between clusters: a rank test for each, and how many pass (internal).

The test is a rule for choosing features and no inference: the same data made the clusters, so that
p-values of noise are too small wherever noise had a part in the clusters. Ranks, because a few
outlying cells or heavy tails must not decide.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import fdtrc
from scipy.stats import rankdata

from rskc.solver.feature_groups import FeatureGroups

# False discovery rate at which features are counted.
LEVEL = 0.05
# Cases that are ranked, evenly spaced where there are more; fewer where there are many features,
# but no fewer than the least number. 16 million ranks take 2 s.
MOST_CASES, FEWEST_CASES, MOST_CELLS = 4000, 1000, 2**24
CELLS_AT_ONCE = 2**18
# Features of a group by whose correlations its degrees of freedom are found.
MOST_TOGETHER = 500


class FeatureTests(NamedTuple):
    """One-way tests on ranks, which is Kruskal and Wallis's test: one for each feature."""

    statistics: np.ndarray  # (p,) F on ranks; 0 where a feature is constant
    p_values: np.ndarray  # (p,) 1 where a feature is constant, or hardly observed

    def passed(self, level: float = LEVEL) -> np.ndarray:
        """Return the features that pass at this false discovery rate (Benjamini and Hochberg)."""
        order = np.argsort(self.p_values, kind="stable")
        p = len(order)
        below = self.p_values[order] <= level * np.arange(1, p + 1) / p
        n_passed = int(np.flatnonzero(below)[-1]) + 1 if below.any() else 0
        mask = np.zeros(p, bool)
        mask[order[:n_passed]] = True
        return mask


def cases_to_rank(n: int, p: int) -> np.ndarray:
    """Return the numbers of the cases that are ranked: all, or some evenly spaced ones."""
    most = int(np.clip(MOST_CELLS // p, FEWEST_CASES, MOST_CASES))
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.int64)


def ranks_of(rows: np.ndarray, masses: np.ndarray | None = None) -> np.ndarray:
    """Rank the cells (n, p) of each feature, ties by their mean rank; NaN where none is observed.

    Ranks are centered and of length (p, n), single precision: halves up to 4,000 are exact in it.
    With ``masses`` (n,) a case ranks as its copies do: all of them tie.
    """
    if masses is not None:
        return np.array([_weighted_ranks(column, masses) for column in rows.T], np.float32)
    n, p = rows.shape
    ranks = np.empty((p, n), np.float32)
    step = max(1, CELLS_AT_ONCE // n)
    for first in range(0, p, step):
        some = slice(first, min(p, first + step))
        cells = np.ascontiguousarray(rows[:, some].T)
        missing = np.isnan(cells)
        if missing.any():
            # Missing cells rank last, behind all others, which do not notice.
            own = _ranks(np.where(missing, np.inf, cells))
            own -= ((~missing).sum(axis=1, keepdims=True) + 1) / 2
            own[missing] = np.nan
        else:
            own = _ranks(cells) - (n + 1) / 2
        ranks[some] = own
    return ranks


def _weighted_ranks(cells: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Rank the cells of one feature, centered: what is below, and half of what ties."""
    _, places = np.unique(cells, return_inverse=True)
    observed = ~np.isnan(cells)
    tied = np.bincount(places, masses * observed)
    ranks = (np.cumsum(tied) - tied / 2)[places] - tied.sum() / 2
    return np.where(observed, ranks, np.nan)


def _ranks(cells: np.ndarray) -> np.ndarray:
    """Rank each row; infinite cells in any order. One sort, twice as fast as ``rankdata``."""
    order = np.argsort(cells, axis=1)
    ordered = np.take_along_axis(cells, order, axis=1)
    ranks = np.empty(cells.shape)
    np.put_along_axis(ranks, order, np.arange(1.0, cells.shape[1] + 1)[None], axis=1)
    tied = ((ordered[:, 1:] == ordered[:, :-1]) & np.isfinite(ordered[:, 1:])).any(axis=1)
    if tied.any():
        ranks[tied] = rankdata(cells[tied], axis=1)
    return ranks


def rank_tests(
    ranks: np.ndarray, groups: np.ndarray, K: int, masses: np.ndarray | None = None
) -> FeatureTests:
    """Test each feature for a difference between groups (n,), -1 for a case that is left out.

    ``masses`` (n,) are what cases count; 1 if they are None.
    """
    p = len(ranks)
    members, kept = _memberships(groups, K, masses)
    statistics, p_values = np.zeros(p), np.ones(p)
    step = max(1, CELLS_AT_ONCE // ranks.shape[1])
    for first in range(0, p, step):
        some = slice(first, min(p, first + step))
        statistics[some], p_values[some] = _test(ranks[some].astype(np.float64), members, kept)
    return FeatureTests(statistics, p_values)


def _memberships(
    groups: np.ndarray, K: int, masses: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return what each case counts in each group (n, K), and the cases that are in any."""
    members, kept = np.zeros((len(groups), K)), np.flatnonzero(groups >= 0)
    members[kept, groups[kept]] = 1.0 if masses is None else masses[kept]
    return members, kept


class _Sums(NamedTuple):
    """Sums of squares of ranks, over the observed cells: each (features,)."""

    between: np.ndarray
    total: np.ndarray
    n: np.ndarray  # cells
    n_groups: np.ndarray

    @property
    def testable(self) -> np.ndarray:
        several = (self.n_groups > 1) & (self.n > self.n_groups)
        return several & (self.total > 1e-9 * np.maximum(self.n, 1))


def _sums(ranks: np.ndarray, members: np.ndarray, kept: np.ndarray) -> _Sums:
    observed = ~np.isnan(ranks)
    complete = observed.all()
    values = ranks if complete else np.where(observed, ranks, 0.0)
    totals = values @ members  # (features, K)
    counts = members.sum(axis=0)[None] if complete else observed @ members
    n = counts.sum(axis=1)
    mean = totals.sum(axis=1) / np.maximum(n, 1)
    total = values[:, kept] ** 2 @ members[kept].sum(axis=1) - n * mean**2
    between = (totals**2 / np.where(counts > 0, counts, 1.0)).sum(axis=1) - n * mean**2
    return _Sums(between, total, n, (counts > 0).sum(axis=1))


def _test(ranks: np.ndarray, members: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return F on ranks of each feature, over its observed cells, and the p-value."""
    sums = _sums(ranks, members, kept)
    between, total, n, groups = sums
    within, testable = np.maximum(total - between, 0.0), sums.testable
    n_free, n_groups = np.maximum(n - groups, 1), np.maximum(groups - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistics = np.where(testable, between / n_groups / (within / n_free), 0.0)
    statistics = np.where(testable & (within <= 1e-12 * total), np.inf, np.maximum(statistics, 0))
    p_values = np.where(testable, fdtrc(n_groups, n_free, statistics), 1.0)
    return statistics, p_values


def group_tests(
    tests: FeatureTests,
    ranks: np.ndarray,
    clusters: np.ndarray,
    K: int,
    groups: FeatureGroups,
    masses: np.ndarray | None = None,
) -> FeatureTests:
    """Test each group of features; that of a feature alone is its own.

    F is over the shares of the variances of ranks that lie between clusters, averaged over the
    features. Its degrees of freedom are those of one feature, times the number of independent
    features that the group amounts to (Box): 1 for copies of one feature, the number of categories
    less 1 for the indicators of a category.
    """
    members, kept = _memberships(clusters, K, masses)
    statistics, p_values = np.zeros(len(groups)), np.ones(len(groups))
    for g, features in enumerate(groups.members):
        if len(features) == 1:
            statistics[g], p_values[g] = tests.statistics[features[0]], tests.p_values[features[0]]
            continue
        found = _test_together(ranks[features], members, kept, groups.masses[features])
        statistics[g], p_values[g] = found
    return FeatureTests(statistics, p_values)


def _test_together(
    ranks: np.ndarray, members: np.ndarray, kept: np.ndarray, masses: np.ndarray
) -> tuple[float, float]:
    """Return F and p-value of one group, whose features (m, n) have these masses."""
    ranks = ranks.astype(np.float64)
    sums = _sums(ranks, members, kept)
    shares = np.where(sums.testable, masses, 0.0)
    if not shares.any():
        return 0.0, 1.0
    scales = shares / np.where(sums.testable, sums.total, 1.0)
    explained = float(np.clip(scales @ sums.between / shares.sum(), 0, 1))
    n_groups = int(sums.n_groups.max()) - 1
    n_free = float(shares @ (np.broadcast_to(sums.n, shares.shape)) / shares.sum()) - n_groups - 1
    some = np.linspace(0, len(ranks) - 1, min(len(ranks), MOST_TOGETHER)).astype(int)
    amount = _independent(ranks[some], members, kept, scales[some])
    if explained >= 1 - 1e-12:
        return np.inf, 0.0
    statistic = explained / n_groups / ((1 - explained) / n_free)
    return statistic, float(fdtrc(amount * n_groups, amount * n_free, statistic))


def _independent(
    ranks: np.ndarray, members: np.ndarray, kept: np.ndarray, scales: np.ndarray
) -> float:
    """Return how many independent features some (m, n) amount to within clusters.

    That is (sum of eigenvalues)^2 / (sum of their squares) of the covariances within clusters.
    """
    observed = ~np.isnan(ranks)
    values = np.where(observed, ranks, 0.0)
    counts = observed @ members
    means = (values @ members) / np.where(counts > 0, counts, 1.0)
    left = np.where(observed, values - means @ (members > 0).T, 0.0)[:, kept]
    left *= np.sqrt(scales)[:, None] * np.sqrt(members[kept].sum(axis=1))
    products = left @ left.T if len(left) <= len(kept) else left.T @ left
    squares = float((products**2).sum())
    return float(np.trace(products)) ** 2 / squares if squares > 0 else 1.0
