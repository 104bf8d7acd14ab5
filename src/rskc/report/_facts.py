"""What the page is about: a fitted model and its data, with all that is computed only once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rskc.displays._cases import case_names as names_in
from rskc.displays._cases import (
    check_cases_of_the_fit,
    check_fitted,
    feature_names,
    strongest,
    table_of,
    unweighted_distances,
)
from rskc.estimator import RobustSparseKMeans
from rskc.metrics import RevisedSilhouette, revised_silhouette
from rskc.report._words import shown_all

# Distances may differ from those of the fit by rounding (float32), not by more than this share.
ROUNDING = 0.01
CHUNK = 4096  # cases at a time


@dataclass(frozen=True)
class Facts:
    """A fitted model and its data; per case arrays are in the order of the data."""

    model: Any
    X: np.ndarray
    case_names: list[str]
    silhouette: RevisedSilhouette | None  # None with one cluster

    @property
    def labels(self) -> np.ndarray:
        return self.model.labels_

    @property
    def distances(self) -> np.ndarray:
        return self.model.distances_

    @property
    def outliers(self) -> np.ndarray:
        return self.model.outliers_

    @property
    def weights(self) -> np.ndarray:
        return self.model.feature_weights_

    @property
    def centers(self) -> np.ndarray:
        return self.model.cluster_centers_

    @property
    def n(self) -> int:
        return len(self.labels)

    @property
    def p(self) -> int:
        return self.model.n_features_in_

    @property
    def K(self) -> int:
        return len(self.centers)

    @cached_property
    def seen(self) -> np.ndarray:
        """Cases of which a feature with weight is observed."""
        return np.isfinite(self.distances)

    @cached_property
    def tame(self) -> np.ndarray:
        """Cases that are no outliers; all of them if there are no such."""
        return ~self.outliers if not self.outliers.all() else np.ones(self.n, bool)

    @cached_property
    def support(self) -> np.ndarray:
        """Features that have weight, the largest first."""
        return strongest(self.weights)

    @cached_property
    def feature_names(self) -> list[str]:
        return shown_all(feature_names(self.model, np.arange(self.p)))

    @cached_property
    def unweighted(self) -> np.ndarray:
        return unweighted_distances(self.X, self.labels, self.centers)

    @cached_property
    def rules(self) -> np.ndarray:
        """What trimmed each case: 0 nothing, 1 its weighted distance, 2 the unweighted, 3 both."""
        return self.model.trimmed_weighted_ + 2 * self.model.trimmed_unweighted_.astype(int)

    @cached_property
    def means(self) -> np.ndarray:
        """Means of the features that have weight over the cases that are no outliers."""
        totals, counts = np.zeros((2, len(self.support)))
        for start in range(0, self.n, CHUNK):
            rows = slice(start, start + CHUNK)
            cells = self.X[rows][self.tame[rows]][:, self.support].astype(np.float64)
            totals += np.nansum(cells, axis=0)
            counts += np.count_nonzero(~np.isnan(cells), axis=0)
        return np.divide(totals, counts, out=np.full(len(totals), np.nan), where=counts > 0)

    @cached_property
    def sizes(self) -> np.ndarray:
        return np.bincount(self.labels, minlength=self.K)


def gather(model: Any, X: Any, case_names: Any = None) -> Facts:
    """Check that model and data belong together, and look at every case once."""
    if not isinstance(model, RobustSparseKMeans):
        raise TypeError(
            f"model={model!r:.60} must be a fitted RobustSparseKMeans; of a search, give its "
            "best_estimator_, and the search itself in searches."
        )
    model, X = check_fitted(model, X)
    table = table_of(model, X)
    check_cases_of_the_fit(model, len(table), "what a report says")
    _check_same_data(model, X)
    names = _names(model, X, len(table), case_names)
    silhouette = revised_silhouette(model, X) if len(model.cluster_centers_) > 1 else None
    return Facts(model, table, names, silhouette)


def _check_same_data(model: Any, X: Any) -> None:
    """See by the distances whether X is the data of the fit, standardized in the same way."""
    known, found = model.distances_, -model.score_samples(X)
    both = np.isfinite(known) & np.isfinite(found)
    scale = np.maximum(np.abs(known[both]), np.median(known[both]) if both.any() else 0)
    apart = np.abs(found[both] - known[both]) > ROUNDING * scale
    if apart.mean() > 0.5 if both.any() else np.isfinite(known).any():
        raise ValueError(
            "X is not the data that the model was fitted to: most of its cases have other "
            "distances to their centers. Give what was given to fit, standardized in the same way."
        )


def _names(model: Any, X: Any, n: int, given: Any) -> list[str]:
    names = getattr(model, "case_names_in_", None) if given is None else list(given)
    if names is None:
        names = names_in(X, n)
    if len(names) != n:
        raise ValueError(f"case_names has {len(names)} names for {n} cases; give one for each.")
    return shown_all(names)
