"""The kinds of table that an estimator takes: in memory, on a device, in blocks of Dask."""

from __future__ import annotations

import copy
import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils.validation import validate_data

from rskc._lazy import as_blocks, check_collection, is_dask

# What a fitted model has that is not NumPy's when its data were on a device, or in blocks.
ARRAYS = (
    "labels_",
    "cluster_centers_",
    "feature_weights_",
    "trimmed_weighted_",
    "trimmed_unweighted_",
    "trimmed_",
    "distances_",
    "outliers_",
    "objective_path_",
)


def is_on_device(X: Any) -> bool:
    """Whether X is a torch tensor or a CuPy array.

    Other arrays of the array API count where scikit-learn's ``array_api_dispatch`` is on; else they
    become NumPy's, as everywhere.
    """
    for library, kind in (("torch", "Tensor"), ("cupy", "ndarray")):
        module = sys.modules.get(library)  # nobody has an array who has not imported it
        if module is not None and isinstance(X, getattr(module, kind, ())):
            return True
    dispatched = get_config()["array_api_dispatch"] and hasattr(X, "__array_namespace__")
    return dispatched and not isinstance(X, np.ndarray | np.generic) and not is_dask(X)


def validated(estimator: Any, X: Any, reset: bool, dtype: Any) -> Any:
    """Check a table of any kind: numbers, two-dimensional, finite or NaN, with known features."""
    if is_dask(X):
        check_collection(X)
        # A dataframe without rows tells the names, and nothing is computed.
        meta = X._meta if hasattr(X, "columns") else X
        validate_data(estimator, meta, reset=reset, skip_check_array=True)
        return as_blocks(X)
    if is_on_device(X):
        return _on_device(estimator, X, reset, dtype)
    return validate_data(
        estimator, X, reset=reset, dtype=dtype, order="C", ensure_all_finite="allow-nan"
    )


def _on_device(estimator: Any, X: Any, reset: bool, dtype: Any) -> Any:
    if find_spec("array_api_compat") is None:
        raise ImportError(
            "Arrays on a device need the package array-api-compat: pip install 'rskc[gpu]'."
        )
    from array_api_compat import array_namespace

    xp = array_namespace(X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(
            f"X has shape {tuple(X.shape)}; it must have two dimensions, with at least one case "
            "and one feature."
        )
    _check_array(xp, X)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    X = X.detach() if hasattr(X, "detach") else X
    X = xp.astype(X, _precision(xp, X, dtype), copy=False)
    if bool(xp.any(xp.isinf(X))):
        raise ValueError(
            f"Input X contains infinity or a value too large for dtype({str(X.dtype)!r})."
        )
    return X.contiguous() if hasattr(X, "contiguous") else X


def _check_array(xp: Any, X: Any) -> None:
    """Refuse arrays that are sparse or complex, or on a device that is too simple."""
    from array_api_compat import device

    layout = str(getattr(X, "layout", ""))
    if layout.startswith("torch.sparse"):
        raise TypeError(f"X has layout {layout}; it must be dense: X.to_dense().")
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError(f"X has dtype {X.dtype}; it must have numbers that are not complex.")
    place = device(X)
    if "float64" not in xp.__array_namespace_info__().dtypes(device=place, kind="real floating"):
        raise ValueError(
            f"X is on the device {place}, which has no float64; move it to one that has, such as "
            "the CPU."
        )


def _precision(xp: Any, X: Any, dtype: Any) -> Any:
    """float32 stays float32 and all else becomes float64, or what the fit had."""
    if isinstance(dtype, list):
        return X.dtype if X.dtype in (xp.float32, xp.float64) else xp.float64
    return xp.float32 if dtype == np.float32 else xp.float64


def in_memory(array: Any) -> np.ndarray:
    """Return an array of any kind as NumPy's."""
    if isinstance(array, np.ndarray | np.generic):
        return np.asarray(array)
    if is_dask(array):
        return np.asarray(array.compute())
    if is_on_device(array) or hasattr(array, "__array_namespace__"):
        from rskc.engines.device.arrays import to_host

        return to_host(array)
    return np.asarray(array)


def brought_home(model: Any, X: Any) -> tuple[Any, Any]:
    """Return a model and a table that may be on a device, or in blocks, in memory."""
    if is_dask(X):
        X = X.compute()  # a dataframe stays one, with its names
    elif is_on_device(X):
        X = in_memory(X)
    return model_in_memory(model), X


def model_in_memory(model: Any) -> Any:
    """Return a fitted model whose results are NumPy arrays: itself, where they are."""
    if all(isinstance(getattr(model, name), np.ndarray) for name in ARRAYS):
        return model
    model = copy.copy(model)
    for name in ARRAYS:
        setattr(model, name, in_memory(getattr(model, name)))
    return model
