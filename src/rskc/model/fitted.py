"""A fitted model: the attributes that a fit leaves, and what predicts (internal).

``ATTRIBUTES`` is the only list of fitted attributes; files, copies of a model and tests read it.
"""

import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from rskc.engines import BoundedEngine, Engine, Frame, engine_for
from rskc.engines.memory import one_blas_thread
from rskc.inputs.arrays import (
    by_blocks,
    check_sample_weight,
    count_of,
    is_dask,
    to_numpy,
    trimmed_sum,
)
from rskc.inputs.validation import check_n_threads, validated
from rskc.model.cells import flagged
from rskc.model.outliers import Thresholds, both_distances, distances_to


class Attribute(NamedTuple):
    """What a fitted attribute holds."""

    types: str  # those of an array as NumPy writes them; else that of Python; csr: true and false
    axes: str = ""  # n cases, K clusters, p features, q numbers, g groups, i iterations
    optional: bool = False


ATTRIBUTES = {
    "labels_": Attribute("i4 i8", "n"),
    "cluster_centers_": Attribute("f4 f8", "Kq"),
    "feature_weights_": Attribute("f8", "p"),
    "group_names_": Attribute("O", "g", optional=True),  # with feature_groups
    "group_weights_": Attribute("f8", "g", optional=True),
    "feature_group_": Attribute("i8", "p", optional=True),
    "trimmed_weighted_": Attribute("b1", "n"),
    "trimmed_unweighted_": Attribute("b1", "n"),
    "trimmed_": Attribute("b1", "n"),
    "outliers_": Attribute("b1", "n"),
    "distances_": Attribute("f8", "n"),
    "unweighted_distances_": Attribute("f8", "n"),
    "objective_path_": Attribute("f8", "i"),
    "feature_names_in_": Attribute("O", "p", optional=True),
    "case_names_in_": Attribute("O", "n", optional=True),
    "sample_weight_": Attribute("f8", "n", optional=True),
    "n_trim_": Attribute("int"),
    "n_iter_": Attribute("int"),
    "n_missing_": Attribute("int"),
    "n_features_in_": Attribute("int"),
    "objective_": Attribute("float"),
    "inertia_": Attribute("float"),
    "outlier_threshold_": Attribute("float"),
    "unweighted_outlier_threshold_": Attribute("float"),
    "outlier_cutoff_": Attribute("float"),
    "trim_": Attribute("float"),
    "l1_bound_": Attribute("float"),  # or None
    "feature_statistics_": Attribute("f8", "p", optional=True),  # with l1_bound="auto"
    "feature_p_values_": Attribute("f8", "p", optional=True),
    "n_features_different_": Attribute("int", optional=True),
    "n_features_enough_": Attribute("int", optional=True),
    "outlying_cells_": Attribute("csr", "np", optional=True),  # or None
    "cell_scales_": Attribute("f8", "p", optional=True),
    "cell_cutoff_": Attribute("float", optional=True),  # or None
    "warnings_": Attribute("list"),
    "warning_kinds_": Attribute("list"),
    "encoder_": Attribute("CategoryEncoder", optional=True),  # of tables with categories
    "_frame": Attribute("Frame"),
    "_sklearn_output_config": Attribute("dict", optional=True),  # of set_output
}


def feature_names(model: Any) -> np.ndarray:
    """Return the names of the features; x0, x1, ... where the data had none."""
    numbered = np.array([f"x{j}" for j in range(model.n_features_in_)], dtype=object)
    return getattr(model, "feature_names_in_", numbered)


def number_names(model: Any) -> np.ndarray:
    """Return the names of the numbers that are clustered: of a category, one for each category."""
    encoder = getattr(model, "encoder_", None)
    return feature_names(model) if encoder is None else encoder.get_feature_names_out()


def number_weights(model: Any) -> np.ndarray:
    """Return the weights (q,) of these numbers: the indicators of a category share one."""
    return by_number(model, to_numpy(model.feature_weights_))


def by_number(model: Any, values: np.ndarray) -> np.ndarray:
    """Return values (p,) of columns as (q,) of the numbers that are clustered."""
    encoder = getattr(model, "encoder_", None)
    return values if encoder is None else values[encoder.columns]


def by_column(model: Any, values: Any) -> Any:
    """Return values (..., q) of numbers that are the same within columns as (..., p) of columns."""
    encoder = getattr(model, "encoder_", None)
    return values if encoder is None else values[..., encoder.first]


class Units(NamedTuple):
    """What has weights: features, or the groups of features that share one."""

    names: np.ndarray
    weights: np.ndarray
    noun: str


def units_of(model: Any) -> Units:
    """Return the features of a model, or its groups of features, with their weights."""
    if hasattr(model, "group_names_"):
        return Units(model.group_names_, to_numpy(model.group_weights_), "feature group")
    return Units(feature_names(model), to_numpy(model.feature_weights_), "feature")


def case_names(model: Any) -> np.ndarray:
    """Return the names of the cases of the fit; 0, 1, ... where the data had none."""
    return getattr(model, "case_names_in_", np.arange(len(model.labels_)))


def unequal_weights(model: Any) -> np.ndarray | None:
    """Return what the cases of a fit count; None if all count the same."""
    weights = getattr(model, "sample_weight_", None)
    return None if weights is None or (weights == weights[0]).all() else weights


def with_cases(model: Any, **attributes: Any) -> Any:
    """Return a copy of a model, in memory, with other cases, or with none.

    Attributes of length n are left out; those that are given, of any length, are set. Without its
    cases a model is small, and tasks can send it.
    """
    other = copy.copy(model)
    for name, attribute in ATTRIBUTES.items():
        if "n" in attribute.axes:
            vars(other).pop(name, None)
        elif attribute.axes and name in vars(model):
            setattr(other, name, to_numpy(getattr(model, name)))
    vars(other).update(attributes)
    return other


def with_features(model: Any, columns: np.ndarray) -> Any:
    """Return a copy of a model, without its cases, for tables that have some of its features only.

    It predicts the same where these have all the weight.
    """
    part = with_cases(model, n_features_in_=len(columns), _frame=model._frame.of_columns(columns))
    for name, attribute in ATTRIBUTES.items():
        if attribute.axes[-1:] in ("p", "q") and name in vars(part):
            setattr(part, name, np.take(getattr(part, name), columns, axis=-1))
    return part


# ---- What predicts


class JudgedCases(NamedTuple):
    """Cases in memory as a fitted model sees them."""

    labels: Any
    weighted: Any  # squared distance to the nearest center; inf: nothing observed
    unweighted: Any
    outliers: Any


@dataclass(frozen=True)
class Predictor:
    """The part of a fitted model that assigns cases: small, and sent to tasks as it is.

    Its methods take validated arrays of the centers' dtype.
    """

    centers: np.ndarray  # (K, p)
    weights: np.ndarray  # (p,)
    frame: Frame
    thresholds: Thresholds  # the distances beyond which a case is an outlier
    n_threads: int | None  # as the model has it: an engine asks how many the machine has
    limits: np.ndarray | None = None  # (p,) the most that the error of a cell counts

    def labels(self, X: Any) -> Any:
        """Return the nearest center of each case, by weighted distance."""
        return self._nearest(self._engine(X))

    def squared(self, X: Any) -> Any:
        """Return the weighted squared distances (n, K) of cases to centers."""
        return self._engine(X).squared(self.centers, self.weights)

    def transform(self, X: Any) -> Any:
        """Return their square roots."""
        return self._engine(X).transform(self.centers, self.weights)

    def distances(self, X: Any) -> Any:
        """Return the weighted squared distance of each case to its nearest center."""
        engine = self._engine(X)
        return distances_to(engine, self._nearest(engine), self.centers, self.weights)

    def judged(self, X: Any) -> JudgedCases:
        """Return clusters, both distances and outliers of cases, from one look at them."""
        engine = self._engine(X)
        labels = self._nearest(engine)
        distances = both_distances(engine, labels, self.centers, self.weights)
        return JudgedCases(labels, *distances, self.thresholds.flag(distances).either)

    def outliers(self, X: Any) -> Any:
        """Return whether either distance of each case is beyond its threshold."""
        return self.judged(X).outliers

    def scores(self, X: Any) -> Any:
        """Return the weighted distance, or the unweighted one where it is the more outlying.

        An unweighted distance is scaled so that its threshold is that of the weighted ones.
        """
        limit, limit_unweighted = self.thresholds
        if np.isinf(limit_unweighted):
            return self.distances(X)
        engine = self._engine(X)
        labels = self._nearest(engine)
        weighted, unweighted = both_distances(engine, labels, self.centers, self.weights)
        return engine.arrays.xp.maximum(weighted, unweighted * (limit / limit_unweighted))

    def apply(self, method: str, X: Any) -> Any:
        """Call a method, or have it called on the blocks of a Dask array when they are computed."""
        if not is_dask(X):
            # A case may be infinitely far away: 1e300 squared is.
            with np.errstate(over="ignore", invalid="ignore"):
                return getattr(self, method)(X)
        alone = replace(self, n_threads=1)  # the scheduler has threads of its own
        to_centers = dict.fromkeys(("squared", "transform"), self.centers.dtype)
        dtypes = {"labels": np.int32, "outliers": np.bool_} | to_centers
        dtype = dtypes.get(method, np.float64)
        n_columns = len(self.centers) if method in to_centers else None
        return by_blocks(partial(Predictor._on_block, alone, method), X, dtype, n_columns)

    def _on_block(self, method: str, block: np.ndarray) -> np.ndarray:
        checks: dict[str, Any] = {"order": "C", "ensure_all_finite": "allow-nan"}
        X = check_array(block, dtype=self.centers.dtype, input_name="X", **checks)
        return self.apply(method, X)

    def _nearest(self, engine: Engine) -> Any:
        with one_blas_thread:
            return engine.nearest(self.centers, self.weights)

    def _engine(self, X: Any) -> Engine:
        missing = True if np.isnan(self.centers).any() else None
        n_threads = check_n_threads(self.n_threads)
        engine = engine_for(X, missing=missing, frame=self.frame, n_threads=n_threads)
        return engine if self.limits is None else BoundedEngine(engine, self.limits)


def thresholds_of(model: Any) -> Thresholds:
    """Return the distances beyond which a case is an outlier."""
    return Thresholds(model.outlier_threshold_, model.unweighted_outlier_threshold_)


def predictor_of(model: Any) -> Predictor:
    """Return the part of a fitted model that predicts."""
    return Predictor(
        to_numpy(model.cluster_centers_),
        number_weights(model),
        model._frame,
        thresholds_of(model),
        model.n_threads,
        cell_limits(model),
    )


def cell_limits(model: Any) -> np.ndarray | None:
    """Return the errors (q,) beyond which cells are outlying; None if none is."""
    cutoff = getattr(model, "cell_cutoff_", None)
    return None if cutoff is None else cutoff * by_number(model, to_numpy(model.cell_scales_))


def outlying_cells(model: Any, X: Any, labels: Any) -> Any:
    """Return which cells (n, p) of validated cases are outlying, a sparse matrix of booleans."""
    limits = cell_limits(model)
    if limits is None:
        return csr_array((labels.shape[0], model.n_features_in_), dtype=bool)
    centers = to_numpy(model.cluster_centers_)
    return by_column(model, flagged(X, to_numpy(labels), centers, limits))


def judge_cases(model: Any, X: Any) -> JudgedCases:
    """Return clusters, distances and outliers of cases, from one look at them."""
    predictor, cases = _checked(model, X)
    return predictor.judged(cases)


def _checked(model: Any, X: Any) -> tuple[Predictor, Any]:
    """Return the part of a model that predicts, and the cases as that takes them."""
    check_is_fitted(model, "cluster_centers_")
    predictor = predictor_of(model)
    return predictor, validated(model, X, False, predictor.centers.dtype)


class _Wrapped(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """A ``transform`` for arrays in memory, which scikit-learn wraps as ``set_output`` asks for."""

    _apply: Any

    def transform(self, X: Any) -> Any:
        return self._apply("transform", X)


class PredictionMixin(_Wrapped, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Methods of a fitted estimator; X is of any kind, and what is returned of the same.

    Its own ``transform`` is not wrapped by scikit-learn, which would read a Dask array into memory.
    """

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
        predictor, cases = _checked(self, X)
        return outlying_cells(self, cases, to_numpy(predictor.apply("labels", cases)))

    def _apply(self, method: str, X: Any) -> Any:
        predictor, cases = _checked(self, X)
        return predictor.apply(method, cases)
