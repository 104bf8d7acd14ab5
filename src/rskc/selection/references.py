"""Data without clusters, to compare with: reference sets and permuted columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import issparse
from scipy.stats import norm

from rskc.inputs.arrays import to_dense
from rskc.inputs.medians import MAD_FACTOR, column_medians
from rskc.selection.subsample import evenly_drawn
from rskc.solver.feature_groups import FeatureGroups

# Cells farther than this many MADs from the median of their column are drawn in to that distance
# before the box is measured: one outlying cell would stretch it along an axis that nothing else
# has.
OUTLYING_MADS = 3.5
# Steps weaken a correlation. Before they are made it is divided by what they leave of it, to this
# power: with 0 too little is explained where columns correlate, with 1 nearly all that categories
# show. And it is at most this: columns that agree in nearly all cases would else be one cloud.
STRENGTHENED, STRONGEST = 0.3, 0.7


class Reference(Protocol):
    """A box in which cases are drawn evenly."""

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a data set as large as the one it stands for, with its missing cells."""
        ...


@dataclass(frozen=True)
class UniformReference:
    """Each column on its own, evenly between its ends."""

    low: np.ndarray
    high: np.ndarray
    missing: np.ndarray | None  # (n, p) mask
    n_cases: int

    @classmethod
    def of(cls, X: np.ndarray, masses: np.ndarray | None = None) -> UniformReference:
        """Measure the box of some data."""
        filled, missing = _filled(X, masses)
        return cls(filled.min(axis=0), filled.max(axis=0), missing, X.shape[0])

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a data set."""
        return _with_missing(
            rng.uniform(self.low, self.high, (self.n_cases, len(self.low))), self.missing
        )


@dataclass(frozen=True)
class PcaReference:
    """Evenly in a box along the principal axes, so that correlations stay.

    The axes come from the singular values of the n x p data: nothing is p x p.
    """

    mean: np.ndarray  # (p,)
    axes: np.ndarray  # (rank, p)
    low: np.ndarray  # (rank,)
    high: np.ndarray
    missing: np.ndarray | None
    n_cases: int

    @classmethod
    def of(cls, X: np.ndarray, masses: np.ndarray | None = None) -> PcaReference:
        """Measure the box of some data."""
        filled, missing = _filled(X, masses)
        mean, scores, _, axes = _principal(filled, masses)
        return cls(mean, axes, scores.min(axis=0), scores.max(axis=0), missing, X.shape[0])

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a data set."""
        scores = rng.uniform(self.low, self.high, (self.n_cases, len(self.low)))
        return _with_missing(scores @ self.axes + self.mean, self.missing)


REFERENCES: dict[str, Callable[[np.ndarray, np.ndarray | None], Reference]] = {
    "pca": PcaReference.of,
    "uniform": UniformReference.of,
}


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
    single = groups is None or len(np.unique(groups.columns)) == p
    if single and weights is None:
        return rng.permuted(X, axis=0)
    columns = np.arange(p) if groups is None or single else groups.columns
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
    ends = np.cumsum([0, *(len(own) for own, _ in columns)])
    return type(X)((values, rows, ends), shape=X.shape).tocsr()


def _copies(n: int, weights: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """Return how often the cells of each case come into a column."""
    return np.ones(n, int) if weights is None else evenly_drawn(weights, n, rng)


@dataclass(frozen=True)
class NormalReference:
    """One normal cloud with the principal axes of the data, and their standard deviations."""

    mean: np.ndarray  # (p,)
    axes: np.ndarray  # (rank, p)
    deviations: np.ndarray  # (rank,)
    missing: np.ndarray | None
    n_cases: int

    @classmethod
    def of(cls, X: np.ndarray, masses: np.ndarray | None = None) -> NormalReference:
        """Measure the axes of some data."""
        filled, missing = _filled(X, masses)
        mean, _, sizes, axes = _principal(filled, masses)
        return cls(mean, axes, sizes / np.sqrt(max(X.shape[0] - 1, 1)), missing, X.shape[0])

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a data set."""
        scores = rng.normal(size=(self.n_cases, len(self.deviations))) * self.deviations
        return _with_missing(scores @ self.axes + self.mean, self.missing)


Spread = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]  # numbers of variance 1


def normal_spread(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Draw normal numbers."""
    return rng.normal(size=shape)


def even_spread(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Draw numbers evenly between two ends."""
    return rng.uniform(-np.sqrt(3), np.sqrt(3), shape)


@dataclass(frozen=True)
class SteppedReference:
    """One cloud, normal or even along its axes, seen in steps where the data have categories.

    Each indicator is drawn as a number. A category is then given to the cases in which its
    indicator is largest, the rarest category first, so that it is as frequent as in the data. Steps
    weaken correlations; those of the numbers that are drawn are larger by a part of that.
    """

    cloud: NormalReference
    spread: Spread
    steps: list[Steps]

    @classmethod
    def of(
        cls, X: np.ndarray, columns: np.ndarray, spread: Spread, masses: np.ndarray | None = None
    ) -> SteppedReference:
        """Measure some data, of which ``columns`` (p,) are the columns; a category has several."""
        filled, missing = _filled(X, masses)
        own = np.ones(len(X)) if masses is None else masses
        mean = own @ filled / own.sum()
        covariance = np.cov(filled.T, aweights=own, ddof=0).reshape(len(mean), -1)
        several = np.bincount(columns)[columns] > 1
        shares = np.clip(own @ (filled > 0) / own.sum(), 1e-6, 1 - 1e-6)
        kept = norm.pdf(norm.ppf(shares)) / np.sqrt(shares * (1 - shares))
        kept = np.where(several, kept, 1.0)  # of a correlation, when a number becomes two steps
        stepped = (columns[:, None] != columns) & (several[:, None] | several)
        deviations = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
        most = STRONGEST * deviations
        stronger = np.clip(covariance / np.outer(kept, kept) ** STRENGTHENED, -most, most)
        sizes, axes = np.linalg.eigh(np.where(stepped, stronger, covariance))
        axes = np.maximum(sizes, 0) ** 0.5 * axes  # the nearest that is a covariance
        scale = np.sqrt(np.diag(covariance) / np.maximum((axes**2).sum(axis=1), 1e-300))
        cloud = NormalReference(
            mean, (axes * scale[:, None]).T, np.ones(len(mean)), missing, len(X)
        )
        steps = [Steps.of(X, np.flatnonzero(columns == j), own) for j in set(columns[several])]
        return cls(cloud, spread, steps)

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a data set."""
        cloud = self.cloud
        drawn = self.spread(rng, (cloud.n_cases, len(cloud.axes))) @ cloud.axes + cloud.mean
        drawn = _with_missing(drawn, cloud.missing)
        for steps in self.steps:
            drawn[:, steps.features] = steps.taken(drawn[:, steps.features])
        return drawn


class Steps(NamedTuple):
    """The categories of a column."""

    features: np.ndarray
    shares: np.ndarray
    values: np.ndarray  # of the indicators

    @classmethod
    def of(cls, X: np.ndarray, features: np.ndarray, masses: np.ndarray) -> Steps:
        """Measure a column."""
        sizes = masses @ (np.nan_to_num(X[:, features]) > 0)
        values = np.nanmax(X[:, features], axis=0, initial=0.0)
        return cls(features, sizes / max(sizes.sum(), 1e-300), values)

    def taken(self, cells: np.ndarray) -> np.ndarray:
        """Return the indicators of the categories for what was drawn for them."""
        left = np.flatnonzero(~np.isnan(cells[:, 0]))
        made = np.where(np.isnan(cells), np.nan, 0.0)
        sizes = np.round(self.shares * len(left)).astype(int)
        *rare, last = np.argsort(sizes, kind="stable")
        for each in rare:
            first = np.argsort(-cells[left, each], kind="stable")[: sizes[each]]
            made[left[first], each] = self.values[each]
            left = np.delete(left, first)
        made[left, last] = self.values[last]
        return made


class Components(NamedTuple):
    """The principal axes of some data."""

    mean: np.ndarray  # (p,)
    scores: np.ndarray  # (n, rank)
    sizes: np.ndarray  # (rank,) singular values: of n cases that count the same
    axes: np.ndarray  # (rank, p)


def _principal(X: np.ndarray, masses: np.ndarray | None) -> Components:
    mean = X.mean(axis=0) if masses is None else masses @ X / masses.sum()
    centered = X - mean
    if not np.isfinite(centered).all():
        raise ValueError("The squares of X overflow: its cells are too large. Rescale its columns.")
    if masses is None:
        left, sizes, axes = np.linalg.svd(centered, full_matrices=False)
        return Components(mean, left * sizes, sizes, axes)
    roots = np.sqrt(masses / masses.mean())
    _, sizes, axes = np.linalg.svd(centered * roots[:, None], full_matrices=False)
    return Components(mean, centered @ axes.T, sizes, axes)


def _filled(X: np.ndarray, masses: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Clip outlying cells and fill missing ones with the median; return their mask, if any."""
    X = to_dense(X)
    missing = np.isnan(X)
    missing = missing if missing.any() else None
    known = np.where(missing.all(axis=0), 0.0, X) if missing is not None else X
    median = column_medians(known, masses)
    mad = MAD_FACTOR * column_medians(np.abs(known - median), masses)
    reach = np.where(mad > 0, OUTLYING_MADS * mad, np.inf)
    drawn_in = np.clip(known, median - reach, median + reach)
    return np.where(np.isnan(drawn_in), median, drawn_in), missing


def _with_missing(X: np.ndarray, missing: np.ndarray | None) -> np.ndarray:
    if missing is not None:
        X[missing] = np.nan
    return X
