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

from rskc.solver.problem import FeatureGroups

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
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)


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
        columns = slice(first, first + step)
        cells = np.array(rows[:, columns].T, order="C")
        missing = np.isnan(cells)
        # Missing cells rank last, behind all others, which do not notice.
        cells[missing] = np.inf
        centered = _ranks(cells) - ((~missing).sum(axis=1, keepdims=True) + 1) / 2
        centered[missing] = np.nan
        ranks[columns] = centered
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
