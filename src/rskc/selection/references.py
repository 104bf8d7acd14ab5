"""Data without clusters, to compare with: reference sets and permuted columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from scipy.stats import norm

from rskc.inputs.arrays import to_dense
from rskc.inputs.spreads import MAD_FACTOR, column_medians
from rskc.selection.subsample import evenly_drawn
from rskc.solver.groups import FeatureGroups

# Cells farther than this number of MADs from the median of their column are clipped to that
# distance before the axes are computed: a single outlying cell would be an axis of its own.
OUTLYING_MADS = 3.5
# Turning numbers into categories weakens correlations. Before that, a correlation is divided by the
# share of it that is left, to this power: with 0 the reference explains too little where columns
# correlate, with 1 nearly all that categories show. It is limited to the second number: otherwise
# columns that agree in nearly all cases would be one cloud.
CORRELATION_POWER, MAX_CORRELATION = 0.3, 0.7
# What Clest may draw; and the clouds that half-samples are compared with, a normal one and one with
# edges: clusters of an even spread are more compact than those of a normal one.
REFERENCES, CLOUDS = ("pca", "uniform"), ("normal", "pca")


@dataclass(frozen=True)
class Reference:
    """One cloud of cases without clusters, as large as the data and with their missing cells."""

    spread: tuple[str, Any, Any]  # along the axes: of NumPy's generators, with its parameters
    axes: np.ndarray | None  # (rank, p) from the mean; None for the columns themselves
    mean: np.ndarray  # (p,)
    missing: np.ndarray | None  # (n, p) mask
    n_cases: int
    categories: Sequence[Categories] = ()

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a data set."""
        rank = len(self.mean if self.axes is None else self.axes)
        distribution, *ends = self.spread
        drawn = getattr(rng, distribution)(*ends, (self.n_cases, rank))
        if self.axes is not None:
            drawn = drawn @ self.axes + self.mean
        if self.missing is not None:
            drawn[self.missing] = np.nan
        for column in self.categories:
            drawn[:, column.features] = column.indicators(drawn[:, column.features])
        return drawn


def reference_of(kind: str, X: np.ndarray, masses: np.ndarray | None = None) -> Reference:
    """Let cases be drawn from one cloud like the data.

    "uniform": each column on its own, evenly between its ends. "pca": evenly in a box along the
    principal axes, so that correlations stay. "normal": from a normal cloud with these axes. They
    come from the n x p data: nothing is p x p.
    """
    filled, missing = _filled(X, masses)
    n, low = len(filled), filled.min(axis=0)
    if kind == "uniform":
        return Reference(("uniform", low, filled.max(axis=0)), None, low, missing, n)
    masses = np.ones(n) if masses is None else masses
    mean = masses @ filled / masses.sum()
    centered = filled - mean
    if not np.isfinite(centered).all():
        raise ValueError("The squares of X overflow: its cells are too large. Rescale its columns.")
    roots = np.sqrt(masses / masses.mean())
    _, sizes, axes = np.linalg.svd(centered * roots[:, None], full_matrices=False)
    if kind == "normal":
        return Reference(("normal", 0.0, sizes / np.sqrt(max(n - 1, 1))), axes, mean, missing, n)
    scores = centered @ axes.T
    ends = scores.min(axis=0), scores.max(axis=0)
    return Reference(("uniform", *ends), axes, mean, missing, n)


def permuted(
    X: Any,
    rng: np.random.Generator,
    groups: FeatureGroups | None = None,
    weights: np.ndarray | None = None,
) -> Any:
    """Permute each column on its own; a missing cell moves like any other cell.

    The indicators of a category are one column, and move together. Where cases have weights, a cell
    comes as often as its share of the weight asks for, whichever cases it comes to.
    """
    if issparse(X):
        return _permuted_sparse(X, rng, weights)
    n, p = X.shape
    columns = np.arange(p) if groups is None else groups.columns
    if weights is None and len(np.unique(columns)) == p:
        return rng.permuted(X, axis=0)
    drawn = [np.repeat(np.arange(n), _copies(n, weights, rng)) for _ in range(columns[-1] + 1)]
    orders = rng.permuted(np.column_stack(drawn), axis=0)
    return np.ascontiguousarray(np.take_along_axis(X, orders[:, columns], axis=0))


def _permuted_sparse(X: Any, rng: np.random.Generator, weights: np.ndarray | None) -> Any:
    X = X.tocsc(copy=True)
    X.sum_duplicates()
    n, columns = X.shape[0], []
    for start, stop in pairwise(X.indptr):  # the stored cells of a column go to other rows
        values = X.data[start:stop]
        if weights is not None:
            values = np.repeat(values, _copies(n, weights, rng)[X.indices[start:stop]])
        columns.append((values, rng.choice(n, len(values), replace=False)))
    values, rows = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    ends = np.cumsum([0, *(len(cells) for cells, _ in columns)])
    return type(X)((values, rows, ends), shape=X.shape).tocsr()


def _copies(n: int, weights: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """Return how often the cells of each case come into a column."""
    return np.ones(n, int) if weights is None else evenly_drawn(weights, n, rng)


def stepped_reference(
    kind: str, X: np.ndarray, columns: np.ndarray, masses: np.ndarray | None = None
) -> Reference:
    """Let cases be drawn from one cloud, whose numbers become categories where the data have some.

    ``columns`` (p,) has the column of the table of each feature; a column of categories has several
    features, their indicators. Each of these is drawn as a number. A category is then given to the
    cases in which its indicator is largest, the rarest category first, so that it is as frequent as
    in the data. That weakens correlations, so those of the numbers are made larger.
    """
    filled, missing = _filled(X, masses)
    masses = np.ones(len(X)) if masses is None else masses
    mean = masses @ filled / masses.sum()
    covariance = np.cov(filled.T, aweights=masses, ddof=0).reshape(len(mean), -1)
    several = np.bincount(columns)[columns] > 1
    shares = np.clip(masses @ (filled > 0) / masses.sum(), 1e-6, 1 - 1e-6)
    kept = norm.pdf(norm.ppf(shares)) / np.sqrt(shares * (1 - shares))
    kept = np.where(several, kept, 1.0)  # share of a correlation, where a number becomes 0 or 1
    weakened = (columns[:, None] != columns) & (several[:, None] | several)
    deviations = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    most = MAX_CORRELATION * deviations
    stronger = np.clip(covariance / np.outer(kept, kept) ** CORRELATION_POWER, -most, most)
    sizes, axes = np.linalg.eigh(np.where(weakened, stronger, covariance))
    axes = np.maximum(sizes, 0) ** 0.5 * axes  # of the nearest matrix that is a covariance
    scale = np.sqrt(np.diag(covariance) / np.maximum((axes**2).sum(axis=1), 1e-300))
    categories = []
    for j in set(columns[several]):
        features = np.flatnonzero(columns == j)
        sizes = masses @ (np.nan_to_num(X[:, features]) > 0)
        values = np.nanmax(X[:, features], axis=0, initial=0.0)
        categories.append(Categories(features, sizes / max(sizes.sum(), 1e-300), values))
    even = -np.sqrt(3), np.sqrt(3)  # variance 1
    spread = ("normal", 0.0, 1.0) if kind == "normal" else ("uniform", *even)
    return Reference(spread, (axes * scale[:, None]).T, mean, missing, len(X), categories)


class Categories(NamedTuple):
    """The categories of a column."""

    features: np.ndarray  # numbers of their indicators
    shares: np.ndarray  # of the cases
    values: np.ndarray  # of the indicators, where they are not 0

    def indicators(self, numbers: np.ndarray) -> np.ndarray:
        """Return the indicators for the numbers that were drawn for them."""
        left = np.flatnonzero(~np.isnan(numbers[:, 0]))
        indicators = np.where(np.isnan(numbers), np.nan, 0.0)
        sizes = np.round(self.shares * len(left)).astype(int)
        *rare, last = np.argsort(sizes, kind="stable")
        for k in rare:
            first = np.argsort(-numbers[left, k], kind="stable")[: sizes[k]]
            indicators[left[first], k] = self.values[k]
            left = np.delete(left, first)
        indicators[left, last] = self.values[last]
        return indicators


def _filled(X: np.ndarray, masses: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Clip outlying cells and fill missing ones with the median; return their mask, if any."""
    X = to_dense(X)
    missing = np.isnan(X)
    missing = missing if missing.any() else None
    cells = np.where(missing.all(axis=0), 0.0, X) if missing is not None else X
    median = column_medians(cells, masses)
    mad = MAD_FACTOR * column_medians(np.abs(cells - median), masses)
    reach = np.where(mad > 0, OUTLYING_MADS * mad, np.inf)
    clipped = np.clip(cells, median - reach, median + reach)
    return np.where(np.isnan(clipped), median, clipped), missing
