"""Data without clusters, to compare with: reference sets and permuted columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from scipy.sparse import issparse

from rskc.arrays import to_dense
from rskc.groups import FeatureGroups

# Cells farther than this many MADs from the median of their column are drawn in to that distance
# before the box is measured: one outlying cell would stretch it along an axis that nothing else
# has.
OUTLYING_MADS = 3.5


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
    def of(cls, X: np.ndarray) -> UniformReference:
        """Measure the box of some data."""
        filled, missing = _filled(X)
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
    def of(cls, X: np.ndarray) -> PcaReference:
        """Measure the box of some data."""
        filled, missing = _filled(X)
        mean = filled.mean(axis=0)
        left, sizes, axes = _singular(filled - mean)
        scores = left * sizes
        return cls(mean, axes, scores.min(axis=0), scores.max(axis=0), missing, X.shape[0])

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a data set."""
        scores = rng.uniform(self.low, self.high, (self.n_cases, len(self.low)))
        return _with_missing(scores @ self.axes + self.mean, self.missing)


REFERENCES: dict[str, Callable[[np.ndarray], Reference]] = {
    "pca": PcaReference.of,
    "uniform": UniformReference.of,
}


def permuted(X: Any, rng: np.random.Generator, groups: FeatureGroups | None = None) -> Any:
    """Permute each column on its own; a missing cell moves like any other cell.

    The indicators of a category are one column, and move together.
    """
    if issparse(X):
        return _permuted_sparse(X, rng)
    if groups is None or len(np.unique(groups.columns)) == X.shape[1]:
        return rng.permuted(X, axis=0)
    orders = rng.permuted(np.tile(np.arange(len(X))[:, None], groups.columns[-1] + 1), axis=0)
    return np.ascontiguousarray(np.take_along_axis(X, orders[:, groups.columns], axis=0))


def _permuted_sparse(X: Any, rng: np.random.Generator) -> Any:
    X = X.tocsc(copy=True)
    X.sum_duplicates()
    for start, stop in pairwise(X.indptr):  # the stored cells of a column go to other rows
        X.indices[start:stop] = rng.choice(X.shape[0], stop - start, replace=False)
    X.has_sorted_indices = False
    return X.tocsr()


@dataclass(frozen=True)
class NormalReference:
    """One normal cloud with the principal axes of the data, and their standard deviations."""

    mean: np.ndarray  # (p,)
    axes: np.ndarray  # (rank, p)
    deviations: np.ndarray  # (rank,)
    missing: np.ndarray | None
    n_cases: int

    @classmethod
    def of(cls, X: np.ndarray) -> NormalReference:
        """Measure the axes of some data."""
        filled, missing = _filled(X)
        mean = filled.mean(axis=0)
        _, sizes, axes = _singular(filled - mean)
        return cls(mean, axes, sizes / np.sqrt(max(X.shape[0] - 1, 1)), missing, X.shape[0])

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a data set."""
        scores = rng.normal(size=(self.n_cases, len(self.deviations))) * self.deviations
        return _with_missing(scores @ self.axes + self.mean, self.missing)


def _singular(centered: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if not np.isfinite(centered).all():
        raise ValueError("The squares of X overflow: its cells are too large. Rescale its columns.")
    return np.linalg.svd(centered, full_matrices=False)


def _filled(X: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Clip outlying cells and fill missing ones with the median; return their mask, if any."""
    X = to_dense(X)
    missing = np.isnan(X)
    missing = missing if missing.any() else None
    known = np.where(missing.all(axis=0), 0.0, X) if missing is not None else X
    median = np.nanmedian(known, axis=0)
    mad = 1.4826 * np.nanmedian(np.abs(known - median), axis=0)
    reach = np.where(mad > 0, OUTLYING_MADS * mad, np.inf)
    drawn_in = np.clip(known, median - reach, median + reach)
    return np.where(np.isnan(drawn_in), median, drawn_in), missing


def _with_missing(X: np.ndarray, missing: np.ndarray | None) -> np.ndarray:
    if missing is not None:
        X[missing] = np.nan
    return X
