"""Fits to all cases and to halves of them, for one number of clusters."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from rskc.exceptions import ParameterError
from rskc.inputs.labels import adjusted_rand_index, count_shared, match_clusters
from rskc.selection.checkpoint import Result
from rskc.selection.cloud import NOT_COMPARED, with_few_starts
from rskc.selection.gaps import density_between, places_of
from rskc.selection.runner import Key, rng_of, seed_of
from rskc.selection.search import configured, fit_quietly
from rskc.selection.subsample import Sample

# A feature counts as selected by a half if its test passes at this level. Many tests are made, but
# of noise hardly any feature is selected by most of the halves.
SELECTED = 0.07


# What is kept of the fit to a half.
FOUND = ("labels", "selected", "others", "distances", "gaps")


class Fits:
    """Fits with a number of clusters: to all cases, and to the halves of each split."""

    def __init__(self, n_clusters: int, full: Result, weights: np.ndarray | None = None):
        self.n_clusters, self.full, self.weights = n_clusters, full, weights
        self.splits: list[Result] = []
        self.cloud = NOT_COMPARED

    @property
    def halves(self) -> list[Result]:
        """Two for each split."""
        halves = ("first", "second")
        return [
            {name: split[f"{half}_{name}"] for name in FOUND}
            for split in self.splits
            for half in halves
        ]

    @property
    def agreements(self) -> list[float]:
        """Adjusted Rand index of the halves of each split, over the cases that are no outliers."""
        clean = ~self.full["outliers"]
        weights = None if self.weights is None else self.weights[clean]
        return [
            adjusted_rand_index(
                split["first_labels"][clean], split["second_labels"][clean], weights
            )
            for split in self.splits
        ]

    @property
    def cluster_stability(self) -> np.ndarray:
        """The median Jaccard index (K,) of each cluster of the fit to all cases."""
        clean = ~self.full["outliers"]
        own, K = self.full["labels"][clean], self.n_clusters
        weights = None if self.weights is None else self.weights[clean]
        found = [jaccard_indices(own, half["labels"][clean], K, weights) for half in self.halves]
        return np.median(found, axis=0)

    @property
    def stability(self) -> float:
        """That of the worst cluster."""
        return float(self.cluster_stability.min())

    @cached_property
    def density_between(self) -> float:
        """The density midway between neighbors, as a share of that on both sides."""
        own, K, places = self.full["labels"], self.n_clusters, []
        for half in self.halves:
            order = np.argsort(best_match(own, half["labels"], K, self.weights))
            if len(half["others"]):
                clean = ~self.full["outliers"][half["others"]]
                places.append(
                    {
                        "others": half["others"][clean],
                        "distances": half["distances"][clean][:, order],
                        "gaps": half["gaps"][np.ix_(order, order)],
                    }
                )
        return density_between(places, len(own), K, self.weights)

    def matched_labels(self) -> np.ndarray:
        """Return the labels of the halves, numbered as those of the fit to all cases."""
        own, K = self.full["labels"], self.n_clusters
        found = [half["labels"] for half in self.halves]
        return np.array([best_match(own, half, K, self.weights)[half] for half in found])

    def figures(self) -> tuple:
        """Return a row of the table."""
        low, middle, high = np.percentile(self.agreements, (25, 50, 75))
        return (
            self.n_clusters,
            len(self.splits),
            self.stability,
            middle,
            (high - low) / 2,
            float(self.full["n_different"]),
            float(self.full["n_enough"]),
            self.cloud.p_value,
            self.cloud.pair,
            self.density_between,
        )


COLUMNS = (
    "n_clusters",
    "n_splits",
    "stability",
    "agreement",
    "agreement_spread",
    "features_different",
    "features_enough",
    "p_value",
    "pair_p_value",
    "density_between",
)


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
    """Cluster all cases."""
    n, p = sample.shape
    try:
        model = fit_quietly(clone(estimator).set_params(n_clusters=key[0]), sample)
    except ParameterError as error:
        if error.parameter != "n_clusters":
            raise
        return _of_no_clusters(n, p)  # fewer distinct cases than clusters
    return {
        "labels": model.labels_,
        "outliers": np.asarray(getattr(model, "outliers_", np.zeros(n, bool))),
        "weights": getattr(model, "feature_weights_", np.ones(p)),
        "share": getattr(model, "trim_", 0.0),
        "n_different": getattr(model, "n_features_different_", np.nan),
        "n_enough": getattr(model, "n_features_enough_", np.nan),
    }


def _of_no_clusters(n: int, p: int) -> Result:
    return {
        "labels": np.zeros(n, np.int32),
        "outliers": np.zeros(n, bool),
        "weights": np.ones(p),
        "share": 0.0,
        "n_different": 0,
        "n_enough": 0,
    }


def fit_halves(sample: Sample, cases: np.ndarray, estimator: Any, seed: int, key: Key) -> Result:
    """Cluster the two halves of some cases, split in the same way for every number of clusters."""
    K, split = key
    halves = np.array_split(rng_of(seed, split).permutation(cases), 2)
    result: dict[str, Any] = {}
    for i, name in enumerate(("first", "second")):
        half, rest = np.sort(halves[i]), np.sort(halves[1 - i])
        found = _predict_from(sample, half, rest, estimator, seed_of(seed, *key, i), K)
        result |= {f"{name}_{what}": value for what, value in found.items()}
    return result


def _predict_from(
    sample: Sample, half: np.ndarray, rest: np.ndarray, estimator: Any, seed: int, K: int
) -> Result:
    """Cluster some cases; return the clusters of all, and which features have weight.

    And where the rest of the cases lie between the centers.
    """
    n, p = sample.shape
    model = with_few_starts(configured(estimator, seed, n_clusters=K))
    try:
        fit_quietly(model, sample.take(half))
    except ParameterError:  # fewer distinct cases than clusters: nothing comes back
        nothing = {"labels": np.zeros(n, np.int32), "selected": np.zeros(p, bool)}
        return nothing | places_of(None, sample.X, rest)
    labels = model.predict(sample.X).astype(np.int32)
    found = {"labels": labels, "selected": _selected(model, p)}
    return found | places_of(model, sample.X, rest)


def _selected(model: Any, p: int) -> np.ndarray:
    """Return which features differ between the clusters of a half, or have weight."""
    if hasattr(model, "feature_p_values_"):
        return model.feature_p_values_ <= SELECTED
    return getattr(model, "feature_weights_", np.ones(p)) > 0
