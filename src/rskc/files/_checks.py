"""What a model in a file must be, so that it predicts and can be fitted anew (internal)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from rskc.engines import Frame
from rskc.estimator import RobustSparseKMeans
from rskc.inputs.categories import CategoryEncoder
from rskc.inputs.validation import check_n_threads
from rskc.model.fitted import ATTRIBUTES

OTHER_KINDS = {
    "feature_groups": (list, dict),
    "categorical": (list,),
    "ordinal": (list, dict),
    "init": (np.ndarray, list, tuple),
    "random_state": (np.random.RandomState, np.random.Generator),
}
OUTPUTS = ("default", "pandas", "polars")


def checked_model(params: dict[str, Any], attributes: dict[str, Any]) -> RobustSparseKMeans:
    """Return the model of parameters and attributes; ValueError if it is none that a fit makes."""
    for name, expected in ATTRIBUTES.items():
        if name not in attributes and not expected.optional:
            raise ValueError(f"{name} is missing")
    for name in set(attributes).difference(ATTRIBUTES):
        raise ValueError(f"{name!r:.60} is no attribute of a model")
    params, attributes = _of_earlier_version(params, attributes)
    model = RobustSparseKMeans(**params)
    if set(params) != set(model.get_params(deep=False)):
        raise ValueError("parameters are missing")
    _check_params(params)
    axes = _check_arrays(attributes)
    _check_contents(attributes, axes["K"])
    _check_numbers(attributes, axes)
    _check_others(attributes)
    if "outlying_cells_" in attributes:
        attributes["outlying_cells_"] = _cells(attributes["outlying_cells_"], axes["n"], axes["p"])
    n_numbers = axes["p"]
    if "encoder_" in attributes:
        names = attributes.get("feature_names_in_")
        encoder = CategoryEncoder.from_plain(attributes["encoder_"], names)
        if len(encoder.columns_) != axes["p"]:
            raise ValueError("encoder_ does not fit the features")
        attributes["encoder_"], n_numbers = encoder, len(encoder.columns)
    if axes["q"] != n_numbers:
        raise ValueError("cluster_centers_ do not fit the features")
    attributes["_frame"] = _frame(attributes["_frame"], axes["q"])
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


def _check_params(params: dict[str, Any]) -> None:
    """Refuse what no parameter can be; a fit refuses the rest in one sentence."""
    check_n_threads(params["n_threads"])  # which predictions read
    if params["n_init"] is None:
        raise ValueError("n_init is missing")
    for name, value in params.items():
        kinds = OTHER_KINDS.get(name, ())
        if value is not None and not isinstance(value, (bool, int, float, str, np.generic, *kinds)):
            raise ValueError(f"{name} is a {type(value).__name__}")


def _of_earlier_version(
    params: dict[str, Any], attributes: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a file of an earlier version means today.

    It had no groups, categories and outlying cells, and at first one rule for outliers.
    """
    params = dict.fromkeys(("cells", "device", "feature_groups", "categorical", "ordinal")) | params
    if "outlier_rule" in params:
        return params, attributes
    params = params | {"outlier_rule": "paper", "reweight": False}
    if params["l1_bound"] == "auto":
        params["l1_bound"] = "half"
    cutoff = float(params["outlier_cutoff"])
    return params, attributes | {"trim_": float(params["trim"]), "outlier_cutoff_": cutoff}


def _check_arrays(attributes: dict[str, Any]) -> dict[str, int]:
    """Types and shapes; compiled passes rely on them. Returns the lengths of the axes."""
    axes: dict[str, int] = {}
    for name, (types, letters, _) in ATTRIBUTES.items():
        if not letters or name not in attributes or types == "csr":
            continue
        array = attributes[name]
        if array.dtype not in [np.dtype(each) for each in types.split()]:
            raise ValueError(f"{name} is of type {array.dtype}")
        lengths = dict(zip(letters, array.shape, strict=True))
        if any(axes.setdefault(axis, length) != length for axis, length in lengths.items()):
            raise ValueError(f"{name} has shape {array.shape}, which does not fit the others")
    if 0 in axes.values():
        raise ValueError("an array is empty")
    return axes


def _check_contents(attributes: dict[str, Any], K: int) -> None:
    labels, weights = attributes["labels_"], attributes["feature_weights_"]
    if labels.min() < 0 or labels.max() >= K:
        raise ValueError("labels_ are not those of clusters")
    if not (np.isfinite(weights).all() and weights.min() >= 0 and 0 < weights.max() <= 1e100):
        raise ValueError("feature_weights_ are not weights")
    # A center is NaN where no case of the cluster has the feature.
    if np.isinf(attributes["cluster_centers_"]).any():
        raise ValueError("cluster_centers_ are infinite")
    if not (attributes.get("cell_scales_", np.ones(1)) > 0).all():
        raise ValueError("cell_scales_ are not above 0")
    for name in ("distances_", "unweighted_distances_", "feature_statistics_"):
        if name in attributes and not (attributes[name] >= 0).all():
            raise ValueError(f"{name} are not 0 or more")
    counted = attributes.get("sample_weight_", np.ones(1))
    if not (np.isfinite(counted).all() and (counted >= 0).all() and counted.any()):
        raise ValueError("sample_weight_ are not weights")
    if np.isnan(attributes["objective_path_"]).any():
        raise ValueError("objective_path_ has no value")
    if not all(0 <= each <= 1 for each in attributes.get("feature_p_values_", ())):
        raise ValueError("feature_p_values_ are not between 0 and 1")
    for name in ("feature_names_in_", "group_names_"):
        if not all(type(each) is str for each in attributes.get(name, ())):
            raise ValueError(f"{name} are not text")
    group, names = attributes.get("feature_group_", ()), attributes.get("group_names_", ())
    if bool(len(group)) is not bool(len(names)):
        raise ValueError("feature_group_ and group_names_ do not belong together")
    if not np.isin(group, np.arange(len(names))).all():
        raise ValueError("feature_group_ are not those of groups")


def _check_numbers(attributes: dict[str, Any], axes: dict[str, int]) -> None:
    for name, (types, *_) in ATTRIBUTES.items():
        kind = {"int": int, "float": float}.get(types)
        none = name in ("l1_bound_", "cell_cutoff_") and attributes.get(name) is None
        if kind is None or name not in attributes or none:
            continue
        if type(attributes[name]) is not kind:
            raise ValueError(f"{name} is not of type {types}")
        number = float(attributes[name])
        # Only thresholds can be infinite; a sum of squares may round to less than 0.
        least = -math.inf if name in ("objective_", "inertia_") else 0
        if not number >= least or (math.isinf(number) and "threshold" not in name):
            raise ValueError(f"{name} is {number:.6g}")
        if number == 0 and "threshold" in name:  # by which distances are divided
            raise ValueError(f"{name} is 0")
    n, p = axes["n"], axes["p"]
    most = {"n_trim_": n, "n_iter_": axes["i"], "n_missing_": n * p, "trim_": 1}
    most |= dict.fromkeys(("n_features_different_", "n_features_enough_"), p)
    for name, limit in most.items():
        if attributes.get(name, 0) > limit:
            raise ValueError(f"{name} is more than {limit}")
    if attributes["n_features_in_"] != p:
        raise ValueError("n_features_in_ is not the number of features")


def _check_others(attributes: dict[str, Any]) -> None:
    for name in ("warnings_", "warning_kinds_"):
        texts = attributes.get(name, [])
        if type(texts) is not list or not all(type(each) is str for each in texts):
            raise ValueError(f"{name} are not text")
    config = attributes.get("_sklearn_output_config", {})
    if not set(config) <= {"transform"} or not set(config.values()) <= set(OUTPUTS):
        raise ValueError("its kind of output is unknown")


def _cells(places: Any, n: int, p: int) -> csr_array:
    """Return the outlying cells (n, p) of cases and features (2, cells)."""
    if not isinstance(places, np.ndarray) or places.dtype != np.int64 or places.shape[:1] != (2,):
        raise ValueError("outlying_cells_ are no places")
    if places.ndim != 2 or (places < 0).any() or (places >= [[n], [p]]).any():
        raise ValueError("outlying_cells_ are not those of cases and features")
    return csr_array((np.ones(places.shape[1], bool), tuple(places)), (n, p))


def _frame(fields: dict[str, Any], p: int) -> Frame:
    frame = Frame(**fields)
    for array in (frame.location, frame.limits):
        if array.dtype != np.float64 or array.shape != (p,) or not np.isfinite(array).all():
            raise ValueError("_frame does not fit the features")
    if type(frame.factor) is not float or not 2.0**-1000 <= frame.factor <= 2.0**1000:
        raise ValueError("_frame has a wrong factor")
    if frame.limits.min() <= 0:
        raise ValueError("_frame has limits below 0")
    return frame
