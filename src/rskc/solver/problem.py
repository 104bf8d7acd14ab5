"""What is asked of the solver, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rskc.solver.feature_groups import FeatureGroups


@dataclass(frozen=True)
class Problem:
    """K clusters, m trimmed cases, and at most one of a bound and a number of features.

    Both are over groups where features share weights.
    """

    n_clusters: int
    n_trim: float = 0  # an int, or where cases have masses that are not whole, a mass
    l1_bound: float | None = None
    n_features: int | None = None
    max_iter: int = 300
    tol: float = 0.0
    patience: int = 5  # a branch ends when its objective has not risen for this many iterations
    feature_groups: FeatureGroups | None = None  # features that share a weight


class Warm(NamedTuple):
    """Where a branch may begin: a partition, and the weights that made it. A Solution has them."""

    labels: Any  # (n,)
    trimmed_weighted: Any  # (n,)
    weights: np.ndarray  # (p,)


@dataclass(frozen=True)
class Rival:
    """A solution with a larger objective whose smallest cluster may be all outlying cases."""

    mean: float  # objective per kept case
    size: float  # of the smallest cluster
    cases: np.ndarray  # the numbers of its first cases


@dataclass(frozen=True)
class Solution:
    """One consistent state: everything in it is of the same iteration.

    What is (n,) long is of the kind that the engine has.
    """

    weights: np.ndarray  # (p,)
    made_with: np.ndarray  # (p,) weights that made its trimmed sets
    labels: Any  # (n,) of every case: its nearest center
    centers: np.ndarray  # (K, p) in the space of the data, means of the cases not in O_W
    trimmed_weighted: Any  # (n,) O_W
    trimmed_unweighted: Any  # (n,) O_E
    costs: Any  # (n,) weighted squared distance to the own center
    objective: float  # sum_j w_j B_j over the cases in neither trimmed set
    n_kept: float  # how many these are, or their mass
    sizes: np.ndarray  # (K,) cases that have each label
    kept_sizes: np.ndarray  # (K,) those of them that are not in O_W
    inertia: float  # weighted within sum of squares of the cases not in O_W
    path: tuple[float, ...]  # the objective, iteration by iteration; last, that of the solution
    converged: bool
    rival: Rival | None = None  # passed over for its small cluster
    exposed: Rival | None = None  # the own smallest cluster, where no better solution was found
    unweighted_costs: Any = None  # (n,) such a distance by equal weights, where it is known

    @property
    def mean(self) -> float:
        """Objective per kept case."""
        return self.objective / max(self.n_kept, 1)

    def check_finite(self) -> None:
        """Refuse sums of squares that overflowed."""
        if not (np.isfinite(self.objective) and np.isfinite(self.inertia)):
            raise FloatingPointError("sums of squares overflow")
