"""What a fitted model says of cases: labels, distances, outliers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from rskc.arrays import by_blocks, check_collection, is_dask, to_numpy, validated, warn_of_columns
from rskc.engines import Engine, engine_for
from rskc.engines.threads import one_blas_thread
from rskc.validation import check_n_threads


class _Wrapped(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """A ``transform`` for arrays in memory, which scikit-learn wraps as ``set_output`` says."""

    def transform(self, X):
        return self._transformed(X)

    def _transformed(self, X):
        raise NotImplementedError


class PredictionMixin(_Wrapped, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Methods of a fitted estimator; X is of any kind, and what is returned of the same.

    Its own ``transform`` is not wrapped by scikit-learn, which would read a Dask array into memory.
    """

    fit: Any
    cluster_centers_: Any
    feature_weights_: Any
    outlier_threshold_: float
    trim: float
    n_threads: int | None
    _frame: Any

    def predict(self, X):
        """Return the nearest center of each case, by weighted distance."""
        check_is_fitted(self, "cluster_centers_")
        if is_dask(X):
            return self._by_blocks(PredictionMixin.predict, X, np.int32)
        return self._nearest(self._engine(X))

    def transform(self, X):
        """Return the weighted squared distances (n_samples, n_clusters) of cases to centers.

        Those of a Dask array or dataframe are a Dask array, whatever ``set_output`` says.
        """
        check_is_fitted(self, "cluster_centers_")
        if is_dask(X):
            centers = to_numpy(self.cluster_centers_)
            return self._by_blocks(PredictionMixin._transformed, X, centers.dtype, len(centers))
        return super().transform(X)

    def fit_transform(self, X, y=None, **unsupported):
        """Cluster the cases of X and return their distances, as ``transform`` does."""
        return self.fit(X, y, **unsupported).transform(X)

    def _transformed(self, X):
        centers = to_numpy(self.cluster_centers_)
        engine = self._engine(X)
        return engine.transform(engine.place(centers[None])[0], to_numpy(self.feature_weights_))

    def score_samples(self, X):
        """Return minus the weighted squared distance of each case to its nearest center."""
        check_is_fitted(self, "cluster_centers_")
        if is_dask(X):
            return self._by_blocks(PredictionMixin.score_samples, X, np.float64)
        engine = self._engine(X)
        labels, centers = engine.arrays.as_run(self._nearest(engine)), self._centers(engine)
        distances = engine.distances(labels, centers, to_numpy(self.feature_weights_)[None])
        return -engine.arrays.only(distances) * engine.unit

    def score(self, X, y=None):
        """Return minus the weighted within sum of squares of X.

        The share ``trim`` of its cases that are farthest from their centers is left out. It
        compares seeds and starts but no settings: with other weights, more clusters or more
        trimming the sum falls by itself.
        """
        scores = np.sort(to_numpy(self.score_samples(X)))
        scores = scores[np.isfinite(scores)]  # of unobserved cases nothing can be said
        return float(scores[count_of(self.trim, len(scores)) :].sum())

    def is_outlier(self, X):
        """Say of each case whether it is farther from its center than ``outlier_threshold_``."""
        return -self.score_samples(X) > self.outlier_threshold_

    def _nearest(self, engine: Engine) -> Any:
        with one_blas_thread:
            table = engine.table(to_numpy(self.feature_weights_)[None])
            centers = table.place(to_numpy(self.cluster_centers_)[None])
            return engine.arrays.only(table.assign(centers).labels)

    def _centers(self, engine: Engine) -> np.ndarray:
        """The centers (1, K, p) in the frame."""
        return engine.place(to_numpy(self.cluster_centers_)[None])

    def _engine(self, X) -> Engine:
        X = self._validate(X, reset=False)
        missing = True if np.isnan(to_numpy(self.cluster_centers_)).any() else None
        n_threads = check_n_threads(self.n_threads)
        return engine_for(X, missing=missing, frame=self._frame, n_threads=n_threads)

    def _validate(self, X, reset: bool) -> Any:
        if is_dask(X):
            check_collection(X)
            if reset:
                warn_of_columns(X)
        dtype: Any = [np.float64, np.float32]
        if not reset:
            dtype = to_numpy(self.cluster_centers_).dtype
        return validated(self, X, reset, dtype)

    def _by_blocks(self, method, X, dtype, n_columns=None):
        """Apply a method to the blocks of a Dask array when these are computed."""
        return by_blocks(_OfBlock(method, self), self._validate(X, reset=False), dtype, n_columns)


class _OfBlock:
    """A method of a model, without what is as long as the data that it was fitted to."""

    def __init__(self, method, model):
        self.method, self.model = method, type(model)(**model.get_params(deep=False))
        for name in ("_frame", "n_features_in_", "outlier_threshold_"):
            setattr(self.model, name, getattr(model, name))
        for name in ("cluster_centers_", "feature_weights_"):
            setattr(self.model, name, to_numpy(getattr(model, name)))
        self.model.n_threads = 1

    def __call__(self, block):
        return self.method(self.model, block)


def count_of(share: float, n: int) -> int:
    """floor(share * n), where 10 / 78 * 78 and 0.29 * 100 are 10 and 29 whatever they round to."""
    return int(np.floor(share * n + 1e-9))
