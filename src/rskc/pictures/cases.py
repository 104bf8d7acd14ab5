"""What pictures ask of a fitted model: its cases, their distances, and all the names."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from rskc.arrays import to_numpy_pair

_CHUNK = 256  # cases at a time, so that n x p differences are never held


class AssignedCases(NamedTuple):
    """The cases of a table as a model sees them: those of its fit, or new ones."""

    labels: np.ndarray
    distances: np.ndarray  # weighted and squared, to the nearest center; inf: nothing observed
    outliers: np.ndarray  # whether this is above the threshold of the model
    names: np.ndarray


def assign(model: Any, X: Any) -> AssignedCases:
    """Assign the cases of X to their nearest centers."""
    distances = -model.score_samples(X)
    labels = model.predict(X)
    outliers = distances > model.outlier_threshold_
    return AssignedCases(labels, distances, outliers, case_names(X, len(labels)))


def check_fitted(model: Any, X: Any = None) -> tuple[Any, Any]:
    """Return a fitted model and a table, both in memory."""
    check_is_fitted(model, "cluster_centers_")
    return to_numpy_pair(model, X)


def check_cases_of_the_fit(model: Any, n: int, what: str) -> None:
    """Refuse cases that are not those of the fit, for which alone ``what`` is known."""
    if n != len(model.labels_):
        raise ValueError(
            f"X has {n} cases and the model was fitted to {len(model.labels_)}: {what} is known "
            "for the cases of the fit only; give the X that was given to fit."
        )


def check_seen(seen: np.ndarray) -> None:
    """Refuse a table without any case that can be drawn."""
    if not seen.any():
        raise ValueError(
            f"X has nothing to draw: none of its {len(seen)} cases has an observed feature with "
            "weight."
        )


def table_of(model: Any, X: Any) -> np.ndarray:
    """Return X as an array of floats, NaN for a missing cell, its columns those of the fit."""
    kind = model.cluster_centers_.dtype
    return validate_data(model, X, reset=False, dtype=kind, ensure_all_finite="allow-nan")


def case_names(X: Any, n: int) -> np.ndarray:
    """Return the index of a pandas frame, or numbers from 0 on."""
    return np.asarray(X.index.to_flat_index()) if hasattr(X, "iloc") else np.arange(n)


def feature_names(model: Any, features: np.ndarray) -> np.ndarray:
    """Return the names of some features, x3 and the like if the model knows none."""
    if hasattr(model, "feature_names_in_"):
        return model.feature_names_in_[features]
    return np.array([f"x{j}" for j in features], dtype=object)


def strongest(weights: np.ndarray, n_top: int | None = None) -> np.ndarray:
    """Return the features that have weight, the largest first, at most ``n_top`` of them."""
    order = np.argsort(-weights, kind="stable")
    return order[: np.count_nonzero(weights > 0)][:n_top]


def unweighted_distances(X: np.ndarray, labels: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the squared distance of each case to the center of its cluster, over all features.

    ``p / observed * sum_{j observed} (x_ij - c_j)^2``, p being the features of which the centers
    know anything; inf where nothing is observed.
    """
    p = np.count_nonzero(~np.isnan(centers).all(axis=0))
    distances = np.full(len(X), np.inf)
    for start in range(0, len(X), _CHUNK):
        rows = slice(start, start + _CHUNK)
        squares = (X[rows].astype(np.float64) - centers[labels[rows]]) ** 2
        observed = np.count_nonzero(~np.isnan(squares), axis=1)
        total = np.nansum(squares, axis=1)
        np.divide(p * total, observed, out=distances[rows], where=observed > 0)
    return distances


def fill_with_centers(X: np.ndarray, labels: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Put missing cells at the center of their cluster, or at the mean of the centers."""
    known = np.count_nonzero(~np.isnan(centers), axis=0)
    mean = np.nansum(centers, axis=0) / np.maximum(known, 1)
    centers = np.where(np.isnan(centers), mean, centers)
    return np.where(np.isnan(X), centers[labels], X)
