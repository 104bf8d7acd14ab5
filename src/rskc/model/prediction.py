"""Methods of a fitted estimator: clusters, distances and outliers among cases (internal)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from rskc.inputs.arrays import is_dask, to_numpy
from rskc.inputs.case_weights import check_sample_weight, count_of, trimmed_sum
from rskc.inputs.validation import validated
from rskc.model.fitted import JudgedCases, outlying_cells, predictor_of


class _Wrapped(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """A ``transform`` for arrays in memory, which scikit-learn wraps as ``set_output`` asks for."""

    _apply: Any

    def transform(self, X: Any) -> Any:
        return self._apply("transform", X)


class PredictionMixin(_Wrapped, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Methods of a fitted estimator; X is of any kind, and what is returned of the same.

    Its own ``transform`` is not wrapped by scikit-learn, which would read a Dask array into memory.
    """

    fit: Any
    trim: Any

    def predict(self, X: Any) -> Any:
        """Return the nearest center of each case, by weighted distance."""
        return self._apply("labels", X)

    def transform(self, X: Any) -> Any:
        """Return the weighted distances (n_samples, n_clusters) to the centers, not squared.

        So that a pipeline may have KMeans in its place, they are distances as KMeans gives them,
        ``sqrt(sum_j w_j (x_j - c_j)^2)``. ``distances_`` and ``score_samples`` are squared.
        Those of a Dask array or dataframe are a Dask array, whatever ``set_output`` asks for.
        """
        return self._apply("transform", X) if is_dask(X) else super().transform(X)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Cluster the cases of X and return their distances, as ``transform`` does."""
        return self.fit(X, y, sample_weight=sample_weight).transform(X)

    def score_samples(self, X: Any) -> Any:
        """Return minus the distance of each case to its nearest center, below which it is outlying.

        Minus the weighted squared distance; or, with ``outlier_rule="both"``, minus the unweighted
        one where it is the more outlying of the two, in units in which its threshold is that of the
        weighted ones. So a case with a score below ``-outlier_threshold_`` is an outlier. For
        weighted distances alone see ``transform``.
        """
        return -self._apply("scores", X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the weighted within sum of squares of X.

        The share ``trim`` of its cases that are farthest from their centers is left out. It
        compares seeds and starts but no settings: with other weights, more clusters or more
        trimming the sum falls by itself. ``sample_weight`` (n_samples,) says what each case counts,
        as in ``fit``.
        """
        distances = to_numpy(self._apply("distances", X))
        seen = np.isfinite(distances)  # of unobserved cases nothing can be said
        if sample_weight is not None:
            weights = check_sample_weight(sample_weight, len(distances))
            return -trimmed_sum(distances[seen], weights[seen], self.trim_)
        scores = np.sort(-distances[seen])
        return float(scores[count_of(self.trim_, len(scores)) :].sum())

    def is_outlier(self, X: Any) -> Any:
        """Return whether each case is outlying, by the rule and the thresholds of the fit.

        That is if its weighted squared distance to its nearest center is above
        ``outlier_threshold_``, or its unweighted one above ``unweighted_outlier_threshold_``.
        """
        return self._apply("outliers", X)

    def outlying_cells(self, X: Any) -> Any:
        """Return which cells are outlying, a sparse matrix of booleans (n_samples, n_features_in_).

        Those whose distance from the nearest center of their case is more than ``cell_cutoff_``
        times ``cell_scales_``; of a table in blocks or on a device too the matrix is in memory.
        None is if cells were left alone in the fit.
        """
        check_is_fitted(self, "cluster_centers_")
        predictor = predictor_of(self)
        checked = validated(self, X, False, predictor.centers.dtype)
        return outlying_cells(self, checked, to_numpy(predictor.apply("labels", checked)))

    def _apply(self, method: str, X: Any) -> Any:
        check_is_fitted(self, "cluster_centers_")
        predictor = predictor_of(self)
        return predictor.apply(method, validated(self, X, False, predictor.centers.dtype))


def judge_cases(model: Any, X: Any) -> JudgedCases:
    """Return clusters, distances and outliers of cases, from one look at them."""
    check_is_fitted(model, "cluster_centers_")
    predictor = predictor_of(model)
    return predictor.judged(validated(model, X, False, predictor.centers.dtype))
