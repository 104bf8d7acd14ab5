"""Prediction strength: the largest number of clusters that can all be predicted."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np

from rskc.inputs.validation import check_integer, check_real
from rskc.selection.checkpoint import Result
from rskc.selection.runner import Key, Runner, rng_of, seed_of
from rskc.selection.search import (
    Search,
    check_clusters,
    configured,
    fit_quietly,
    with_clusters,
)
from rskc.selection.subsample import Sample


@dataclass(eq=False, repr=False)
class PredictionStrength(Search):
    """Number of clusters by the prediction strength of Tibshirani and Walther.

    The cases are split in half. Both halves are clustered, and the second is also put to the
    centers of the first. For each cluster of the second half: which share of its pairs of cases
    are together there as well? The least share over the clusters is the prediction strength of a
    split. Cases that the clustering of the second half trims are left out.

    Parameters
    ----------
    estimator : RobustSparseKMeans or another clusterer
        Anything with ``n_clusters``, ``fit``, ``labels_`` and ``predict``.
    n_clusters : int or iterable of int, default=range(1, 9)
        The numbers to try. The strength of one cluster is 1.
    n_splits : int, default=20
        Splits of the data.
    threshold : float, default=0.8
        What the strength must reach; its authors recommend 0.8 to 0.9.
    max_samples, random_state, n_jobs, checkpoint, progress
        As in :class:`Clest`.

    Attributes
    ----------
    n_clusters_ : int
        The largest number whose strength plus its standard error reaches the threshold; if there
        is none, the one with the largest strength.
    table_ : pandas.DataFrame
        A row for each number: ``n_clusters``; ``strength``, the mean over the splits;
        ``standard_error``; ``chosen``.
    strengths_ : ndarray of shape (n_splits, numbers)
        Prediction strength of each split.
    n_samples_, n_samples_used_ : int
        How many cases the table has, and how many of them were searched on.
    best_estimator_ : estimator
        Fitted to all the data with ``n_clusters_`` clusters.

    References
    ----------
    Tibshirani and Walther, "Cluster validation by prediction strength", Journal of Computational
    and Graphical Statistics 14, 2005.

    Examples
    --------
    >>> from rskc import RobustSparseKMeans
    >>> from rskc.datasets import make_simulation
    >>> from rskc.selection import PredictionStrength
    >>> outlying = make_simulation(model=1, random_state=0)
    >>> model = RobustSparseKMeans(trim=0.05, l1_bound=6, n_init=10)
    >>> search = PredictionStrength(model, range(1, 6), n_splits=5, random_state=0)
    >>> search.fit(outlying.data).n_clusters_
    3
    """

    n_clusters: Any = range(1, 9)
    _: KW_ONLY
    n_splits: int = 20
    threshold: float = 0.8

    def _check(self, n: int, p: int) -> None:
        check_clusters(self.n_clusters, 1, n // 2)
        check_integer("n_splits", self.n_splits, 2)
        check_real("threshold", self.threshold, 0)

    def _search(self, sample: Sample, runner: Runner) -> None:
        numbers = check_clusters(self.n_clusters, 1, sample.shape[0] // 2)
        work = partial(_split_strength, sample, self._for_tasks(), runner.seed)
        keys = [(b, K) for b in range(self.n_splits) for K in numbers]
        results = runner.run("Prediction strength", work, keys)
        strengths = np.array([result["strength"] for result in results])
        self.strengths_ = strengths.reshape(-1, len(numbers))
        self._decide(np.array(numbers))

    def _decide(self, numbers: np.ndarray) -> None:
        import pandas as pd

        strength = self.strengths_.mean(axis=0)
        error = self.strengths_.std(axis=0, ddof=1) / np.sqrt(self.n_splits)
        enough = np.flatnonzero(strength + error >= self.threshold)
        choice = enough[-1] if len(enough) else strength.argmax()
        self.n_clusters_ = int(numbers[choice])
        self.table_ = pd.DataFrame(
            {
                "n_clusters": numbers,
                "strength": strength,
                "standard_error": error,
                "chosen": numbers == self.n_clusters_,
            }
        )

    def _chosen(self) -> dict[str, Any]:
        return with_clusters(self.estimator, self.n_clusters_)


def _split_strength(sample: Sample, estimator: Any, seed: int, key: Key) -> Result:
    """Prediction strength of one split, the same for every number of clusters."""
    number, K = key
    if K == 1:
        return {"strength": 1.0}
    halves = np.array_split(rng_of(seed, number).permutation(sample.shape[0]), 2)
    first, second = map(sample.take, halves)
    models = [configured(estimator, seed_of(seed, *key, i), n_clusters=K) for i in (0, 1)]
    predicted = fit_quietly(models[0], first).predict(second.X)
    found = fit_quietly(models[1], second)
    kept = ~getattr(found, "trimmed_", np.zeros(second.shape[0], bool))
    weights = None if second.weights is None else second.weights[kept]
    return {"strength": prediction_strength(found.labels_[kept], predicted[kept], K, weights)}


def prediction_strength(
    labels: np.ndarray, predicted: np.ndarray, K: int, weights: np.ndarray | None = None
) -> float:
    """Least share, over the clusters, of pairs that are together in both; 0 for a lost cluster."""
    weights = np.ones(len(labels)) if weights is None else weights
    table, itself = np.zeros((2, K, K))
    np.add.at(table, (labels, predicted), weights)
    np.add.at(itself, (labels, predicted), weights**2)  # a case with itself is no pair
    sizes = table.sum(axis=1)
    pairs = sizes**2 - itself.sum(axis=1)
    pairs[pairs < 1e-12 * sizes**2] = 0.0
    together = (table**2 - itself).sum(axis=1)
    shares = np.divide(together, pairs, out=np.ones(K), where=pairs > 0)
    return float(np.where(sizes > 0, shares, 0.0).min())
