"""Fits to all cases, and to halves of them."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from rskc.exceptions import ParameterError
from rskc.inputs.labels import adjusted_rand_index, count_shared, match_clusters
from rskc.selection.checkpoint import Result
from rskc.selection.cloud import NOT_COMPARED, CloudPValues
from rskc.selection.gaps import Between, between_neighbors, places_of
from rskc.selection.runner import Key, rng_of, seed_of
from rskc.selection.search import fit_task
from rskc.selection.subsample import Sample

# A feature counts as selected by a half if its test passes at this level. Many tests are made, but
# of noise hardly any feature is selected by most of the halves.
SELECTION_LEVEL = 0.07
# A half finds a cluster again from this Jaccard index on.
MIN_FOUND_AGAIN = 0.5


class HalfSamples(NamedTuple):
    """Fits of one setting to halves of the cases, two in succession for each split."""

    labels: np.ndarray  # (halves, n) clusters of all cases
    selected: np.ndarray  # (halves, p) features that differ between clusters, or have weight
    weights: np.ndarray | None = None  # (n,) of the cases

    def agreements(self, outliers: np.ndarray) -> list[float]:
        """Return the adjusted Rand index of the halves of each split, without outliers."""
        clean, labels = ~outliers, self.labels[:, ~outliers]
        weights = None if self.weights is None else self.weights[clean]
        pairs = zip(labels[::2], labels[1::2], strict=True)
        return [adjusted_rand_index(one, other, weights) for one, other in pairs]

    def matched(self, labels: np.ndarray, K: int) -> np.ndarray:
        """Return the labels of the halves, numbered as others by the cases they share."""
        return np.array([best_match(labels, half, K, self.weights)[half] for half in self.labels])


@dataclass(eq=False)
class Fits:
    """Fits with a number of clusters: to all cases, and to the halves of each split."""

    n_clusters: int
    full: Result
    weights: np.ndarray | None = None
    splits: list[Result] = field(default_factory=list)
    cloud: CloudPValues = NOT_COMPARED
    separation: float = np.nan  # of the two nearest clusters, in standard deviations

    def of_halves(self, name: str) -> np.ndarray:
        """Return a result of each half, two for each split."""
        return np.concatenate([split[name] for split in self.splits])

    @property
    def halves(self) -> HalfSamples:
        """What the halves give to all cases."""
        return HalfSamples(self.of_halves("labels"), self.of_halves("selected"), self.weights)

    @property
    def found_again(self) -> np.ndarray:
        """The Jaccard index (halves, K) of each cluster of the fit to all cases, in each half."""
        clean = ~self.full["outliers"]
        labels, halves = self.full["labels"][clean], self.of_halves("labels")[:, clean]
        weights = None if self.weights is None else self.weights[clean]
        return np.array([jaccard_indices(labels, h, self.n_clusters, weights) for h in halves])

    @property
    def cluster_stability(self) -> np.ndarray:
        """The median Jaccard index (K,) of each cluster of the fit to all cases."""
        return np.median(self.found_again, axis=0)

    @property
    def smallest(self) -> int:
        """The number of cases of the smallest cluster, without outliers."""
        clean = self.full["labels"][~self.full["outliers"]]
        return int(np.bincount(clean, minlength=self.n_clusters).min())

    @property
    def stability(self) -> float:
        """That of the least stable cluster."""
        return float(self.cluster_stability.min())

    @cached_property
    def between(self) -> Between:
        """The cases between neighbors, by the halves that find all clusters again, or by all.

        The centers of other halves are those of other clusters.
        """
        again = self.found_again.min(axis=1) >= MIN_FOUND_AGAIN
        again |= not again.any()
        distances, gaps = self.of_halves("distances")[again], self.of_halves("gaps")[again]
        for i, half in enumerate(self.of_halves("labels")[again]):
            order = np.argsort(best_match(self.full["labels"], half, self.n_clusters, self.weights))
            distances[i], gaps[i] = distances[i][:, order], gaps[i][np.ix_(order, order)]
        distances[:, self.full["outliers"]] = np.nan
        return between_neighbors(distances, gaps, self.weights)


def jaccard_indices(
    labels: np.ndarray, others: np.ndarray, K: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return for each of K clusters the largest Jaccard index with a cluster of another fit."""
    shared = count_shared(labels, others, K, K, weights)
    either = shared.sum(axis=1, keepdims=True) + shared.sum(axis=0) - shared
    return (shared / np.where(either > 0, either, 1)).max(axis=1)


def best_match(
    labels: np.ndarray, others: np.ndarray, K: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return which cluster (K,) of a fit each cluster of another is, by the cases they share."""
    return match_clusters(count_shared(others, labels, K, K, weights))


def fit_all(sample: Sample, estimator: Any, key: Key) -> Result:
    """Cluster all cases; in one cluster, if there are fewer distinct cases than clusters."""
    n, p = sample.shape
    try:
        model = fit_task(estimator, sample, n_clusters=key[0])
    except ParameterError as error:
        if error.parameter != "n_clusters":
            raise
        one = {"labels": np.zeros(n, np.int32), "outliers": np.zeros(n, bool)}
        return {**one, "weights": np.ones(p), "share": 0.0, "n_different": 0, "n_enough": 0}
    return {
        "labels": model.labels_,
        "outliers": model.outliers_,
        "weights": model.feature_weights_,
        "share": model.trim_,
        "n_different": getattr(model, "n_features_different_", np.nan),
        "n_enough": getattr(model, "n_features_enough_", np.nan),
    }


def split_in_halves(cases: np.ndarray, seed: int, split: int) -> list[np.ndarray]:
    """Return the cases of each half, upwards; the same for all settings with these cases."""
    halves = np.array_split(rng_of(seed, split).permutation(cases), 2)
    return [np.sort(half) for half in halves]


def fit_halves(
    sample: Sample, smooth: Any, cases: dict[int, np.ndarray], estimator: Any, seed: int, key: Key
) -> Result:
    """Cluster each half of a split, and place the cases of the other one between its centers.

    ``cases`` has those of each number of clusters. Cases are placed as they are without steps.
    """
    (K, split), (n, p) = key, sample.shape
    halves = split_in_halves(cases[K], seed, split)
    results = []
    for i, (half, others) in enumerate((halves, halves[::-1])):
        seed_of_half = seed_of(seed, *key, i)
        try:
            model = fit_task(estimator, sample.take(half), n_clusters=K, random_state=seed_of_half)
            labels, selected = model.predict(sample.X), model.feature_weights_ > 0
            if hasattr(model, "feature_p_values_"):
                selected = model.feature_p_values_ <= SELECTION_LEVEL
        except ParameterError:  # fewer distinct cases than clusters: no cluster is found again
            model, labels, selected = None, np.zeros(n), np.zeros(p, bool)
        places = places_of(model, smooth, K, others)
        results.append({"labels": labels.astype(np.int32), "selected": selected, **places})
    return {name: np.array([result[name] for result in results]) for name in results[0]}
