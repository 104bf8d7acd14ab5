"""What is counted over the cases of a result, some of them at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

MOST_NAMES = 6  # of outliers


@dataclass
class Counts:
    """Numbers over all cases, of frames as ``model.cases_frame(X)`` makes them."""

    n_clusters: int
    n_cases: int = 0
    n_trimmed: int = 0
    sizes: np.ndarray = field(init=False)
    outliers: np.ndarray = field(init=False)
    n_known: np.ndarray = field(init=False)  # cases with a silhouette
    silhouettes: np.ndarray = field(init=False)  # their sums
    farthest: Any = None  # the outliers that are farthest from their centers

    def __post_init__(self) -> None:
        self.sizes, self.outliers, self.n_known = np.zeros((3, self.n_clusters), int)
        self.silhouettes = np.zeros(self.n_clusters)

    def add(self, cases: Any) -> None:
        """Count some cases more."""
        import pandas as pd

        clusters, outlying = cases["cluster"].to_numpy(), cases["outlier"].to_numpy()
        values = cases["silhouette"].to_numpy(float)
        known = np.isfinite(values)
        self.n_cases += len(cases)
        self.n_trimmed += int(cases["trimmed"].sum())
        self.sizes += self._per_cluster(clusters)
        self.outliers += self._per_cluster(clusters[outlying])
        self.n_known += self._per_cluster(clusters[known])
        self.silhouettes += np.bincount(clusters[known], values[known], self.n_clusters)
        outlying = pd.concat([self.farthest, cases.loc[outlying, ["case", "distance"]]])
        outlying = outlying.sort_values("distance", ascending=False, kind="stable")
        self.farthest = outlying.head(MOST_NAMES)

    def _per_cluster(self, clusters: np.ndarray) -> np.ndarray:
        return np.bincount(clusters, minlength=self.n_clusters)

    def clusters(self) -> list[dict[str, Any]]:
        """A dict a cluster."""
        return [
            {
                "cluster": k,
                "cases": int(self.sizes[k]),
                "outliers": int(self.outliers[k]),
                "silhouette": _mean(self.silhouettes[k], self.n_known[k]),
            }
            for k in range(self.n_clusters)
        ]

    def silhouette(self) -> float | None:
        """The mean over all cases that have one."""
        return _mean(self.silhouettes.sum(), self.n_known.sum())


def _mean(total: Any, number: Any) -> float | None:
    return float(total / number) if number else None
