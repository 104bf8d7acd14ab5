"""What is asked of the solver, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rskc.solver.weights import count_weights, sparse_weights


@dataclass(frozen=True)
class Problem:
    """K clusters, m trimmed cases, and at most one of a bound and a number of features."""

    n_clusters: int
    n_trim: int = 0
    l1_bound: float | None = None
    n_features: int | None = None
    max_iter: int = 300
    tol: float = 0.0

    @property
    def sparse(self) -> bool:
        """Whether features get weights of their own."""
        return self.l1_bound is not None or self.n_features is not None

    def weights(self, between: np.ndarray) -> np.ndarray:
        """Step (e): the weights for between-cluster sums of squares (p,) or (runs, p)."""
        if self.n_features is not None:
            return np.apply_along_axis(count_weights, -1, between, self.n_features)
        assert self.l1_bound is not None
        return sparse_weights(between, self.l1_bound)


class Warm(NamedTuple):
    """Where a branch may begin: a partition, and the weights that made it. A Solution has them."""

    labels: np.ndarray  # (n,)
    trimmed_weighted: np.ndarray  # (n,)
    weights: np.ndarray  # (p,)


@dataclass(frozen=True)
class Rival:
    """A solution with a larger objective whose smallest cluster may be nothing but wild cases."""

    mean: float  # objective per kept case
    cases: np.ndarray  # of the smallest cluster


@dataclass(frozen=True)
class Solution:
    """One consistent state: everything in it is of the same iteration."""

    weights: np.ndarray  # (p,)
    labels: np.ndarray  # (n,) of every case: its nearest centre
    centres: np.ndarray  # (K, p) in the space of the data, means of the cases not in O_W
    trimmed_weighted: np.ndarray  # (n,) O_W
    trimmed_unweighted: np.ndarray  # (n,) O_E
    costs: np.ndarray  # (n,) weighted squared distance to the own centre
    objective: float  # sum_j w_j B_j over the cases in neither trimmed set
    path: tuple[float, ...]  # the objective, iteration by iteration; last, that of the solution
    converged: bool
    rival: Rival | None = None

    @property
    def inertia(self) -> float:
        """Weighted within sum of squares of the cases not in O_W."""
        return float(self.costs[~self.trimmed_weighted].sum())

    @property
    def mean(self) -> float:
        """Objective per kept case."""
        kept = ~(self.trimmed_weighted | self.trimmed_unweighted)
        return self.objective / max(int(np.count_nonzero(kept)), 1)
