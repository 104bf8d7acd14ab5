"""Checks of parameters and data (internal). Each message names the value and what is allowed."""

import math
import sys
from importlib.util import find_spec
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

from rskc.engines.memory import usable_threads
from rskc.engines.sparse import has_nan
from rskc.exceptions import ParameterError
from rskc.inputs.arrays import (
    NamedMatrix,
    as_blocks,
    check_collection,
    is_dask,
    is_elsewhere,
    is_on_device,
    to_numpy,
    without_mask,
)
from rskc.inputs.categories import CategoryEncoder, encoded_blocks
from rskc.inputs.frames import NUMBERS, kinds_of, refusal
from rskc.utils.wording import short_repr

PRECISIONS = [np.float64, np.float32]  # of a fit; a prediction has that of the centers


def is_integer(value: Any) -> bool:
    """Whether a value is a whole number, and not True or False."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    """Whether a value is a number, infinite perhaps, but not NaN, True or False."""
    return not isinstance(value, bool) and isinstance(value, Real) and not math.isnan(value)


def is_word(value: Any, word: str) -> bool:
    """Whether a parameter is this word, and not an array or a number."""
    return isinstance(value, str) and value == word


def check_integer(
    name: str, value: Any, least: int, most: int | None = None, remedy: str = ""
) -> int:
    """Return a parameter that is a whole number in a range."""
    if is_integer(value) and value >= least and (most is None or value <= most):
        return int(value)
    bounds = f">= {least}" if most is None else f"in [{least}, {most}]"
    raise ParameterError(name, value, f"must be an integer {bounds}{remedy}.")


def check_real(
    name: str, value: Any, low: float, below: float = math.inf, remedy: str = ""
) -> float:
    """Return a parameter that is a number in a range; its upper end does not belong to it."""
    if is_real(value) and low <= value < below:
        return float(value)
    bounds = f">= {low:g}" if below == math.inf else f"in [{low:g}, {below:g})"
    raise ParameterError(name, value, f"must be a number {bounds}{remedy}.")


def check_choice(name: str, value: Any, allowed: tuple, remedy: str = "") -> None:
    """Refuse a parameter that is none of the allowed values."""
    if not any(type(value) is type(choice) and value == choice for choice in allowed):
        choices = ", ".join(map(repr, allowed))
        raise ParameterError(name, value, f"must be one of {choices}{remedy}.")


def check_sparsity(l1_bound: Any, n_features: Any, p: int) -> tuple[float | None, int | None]:
    """Return the bound for p features, or the number of features that is wanted instead, if any."""
    if n_features is not None:
        if l1_bound is None or is_word(l1_bound, "auto"):
            return None, check_integer("n_features", n_features, 1, p)
        words = "and {l1_bound}={other!r} are two ways to say the same; give one of them only."
        raise ParameterError("n_features", n_features, words, other=l1_bound)
    root = float(np.sqrt(p))
    if l1_bound is None:
        return None, None
    if isinstance(l1_bound, str) and l1_bound in ("auto", "half"):
        return 1 + (root - 1) / 2, None
    if is_real(l1_bound) and l1_bound >= 1:
        return float(min(l1_bound, root)), None
    raise ParameterError(
        "l1_bound",
        l1_bound,
        f"must be a number in [1, {root:.3g}] for {p} features, "
        'or "auto" or "half"; use {None} to keep all of them equal.',
    )


def check_n_threads(n_threads: Any) -> int:
    """Return the number of threads that the compiled passes may use."""
    if n_threads is not None:
        check_integer("n_threads", n_threads, 1, remedy=" or None")
    return usable_threads(n_threads)


def check_device(device: Any, X: Any) -> str:
    """Return the name of the device on which passes over X are made block by block."""
    if not isinstance(X, np.ndarray) and not is_dask(X):
        kind = type(X).__name__
        raise ParameterError(
            "device", device, f"is for arrays in memory and Dask collections; X is a {kind}."
        )
    missing = [name for name in ("torch", "array_api_compat", "dask") if find_spec(name) is None]
    if missing:
        raise ImportError(
            f"device={device!r} needs {' and '.join(missing)}: pip install 'rskc[gpu,dask]'."
        )
    import torch

    try:
        kind = torch.device(str(device)).type if isinstance(device, str) else ""
    except RuntimeError:
        kind = ""
    if kind not in ("cpu", "cuda"):
        raise ParameterError("device", device, 'must be "cuda", "cuda:1", "cpu" or {None}.')
    return str(device)


def check_centers(init: Any, K: int, p: int) -> np.ndarray:
    """Return starting centers (K, p)."""
    try:
        centers = np.asarray(plain_centers(init), dtype=np.float64)
    except (TypeError, ValueError):
        centers = np.empty(0)
    if centers.shape == (K, p) and np.isfinite(centers).all():
        return centers
    raise ValueError(
        "init must name a kind of start or hold finite centers of shape (n_clusters, n_features) = "
        f"({K}, {p}); got {short_repr(init)}."
    )


def plain_centers(init: Any) -> Any:
    """Return ``init`` as it is, or as an array if it holds centers in another way than lists."""
    if init is None or isinstance(init, str | list | tuple) or callable(init):
        return init
    return np.asarray(to_numpy(init), np.float64)


def check_seed(random_state: Any) -> np.random.RandomState:
    """Return the random numbers of a seed; those of a Generator go on where it is."""
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(random_state.bit_generator)
    try:
        return check_random_state(random_state)
    except ValueError:
        raise ParameterError(
            "random_state",
            random_state,
            "must be None, an integer in [0, 2**32), a RandomState or a Generator.",
        ) from None


def names_of_cases(X: Any) -> np.ndarray | None:
    """Return the index of a pandas frame or a named matrix, unless it is the default one."""
    pandas = sys.modules.get("pandas")  # nobody has a frame who has not imported it
    if pandas is None or not isinstance(X, pandas.DataFrame | NamedMatrix):
        return None
    index = X.index
    if isinstance(index, pandas.RangeIndex) and index.start == 0 and index.step == 1:
        return None
    names = np.empty(len(index), object)
    names[:] = list(index)
    return names


def validated(estimator: Any, X: Any, reset: bool, dtype: Any, sample_weight: Any = None) -> Any:
    """Check a table of any kind: numbers, two-dimensional, finite or NaN, with known features.

    The shares of categories go by the weights of the cases.
    """
    if type(X).__name__ == "AnnData":
        raise TypeError(
            "X is an AnnData, which has several tables: rskc.anndata.cluster(adata) clusters it "
            "and adds the results; else give one, as Preparer().fit_transform(adata.to_df())."
        )
    X = without_mask(X)
    if is_dask(X):
        check_collection(X)
    if reset:
        _find_encoder(estimator, X, sample_weight)
    if hasattr(estimator, "encoder_"):
        return _encoded(estimator, X, reset, dtype)
    if is_dask(X):
        # A dataframe without rows tells the names, and nothing is computed.
        meta = X._meta if hasattr(X, "columns") else X
        validate_data(estimator, meta, reset=reset, skip_check_array=True)
        return as_blocks(X)
    if isinstance(X, NamedMatrix):
        checked = validated(estimator, X.matrix, reset, dtype)
        validate_data(estimator, X.columns.to_frame().T, reset=reset, skip_check_array=True)
        return checked
    if is_on_device(X):
        return _on_device(estimator, X, reset, dtype)
    if getattr(getattr(X, "dtype", None), "kind", "") in ("m", "M"):  # NumPy makes numbers of them
        raise ValueError("X holds dates; make numbers of them first.")
    if getattr(X, "columns", None) is not None and getattr(X, "dtypes", None) is not None:
        flags = [str(dtype).lower().startswith("bool") for dtype in X.dtypes]  # 0 and 1
        kinds = zip(X.columns, kinds_of(X), flags, strict=True)
        bad = {name: kind for name, kind, is_flag in kinds if kind != NUMBERS and not is_flag}
        if bad:
            raise ValueError(refusal(bad))
    at_device = getattr(estimator, "device", None) is not None
    with np.errstate(over="ignore", invalid="ignore"):  # in the sum that looks for infinities
        checked = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=dtype,
            order="C",
            accept_sparse="csr",
            # A fit on a device looks through the array there, or by all threads.
            ensure_all_finite=False if reset and at_device else "allow-nan",
        )
    if issparse(checked) and has_nan(checked):
        raise ValueError(
            "X is sparse and has missing cells (NaN), which sparse matrices cannot have here; make "
            "it dense: X.toarray()."
        )
    return checked


def _find_encoder(estimator: Any, X: Any, sample_weight: Any) -> None:
    """Give an estimator that takes categories the encoder of a table that has some."""
    vars(estimator).pop("encoder_", None)  # of an earlier fit
    asked = getattr(estimator, "estimator", estimator)  # a search asks what its estimator asks
    if not hasattr(asked, "categorical"):
        return
    given = asked.categorical is not None or asked.ordinal is not None
    is_frame = getattr(X, "columns", None) is not None and hasattr(X, "dtypes")
    if (is_elsewhere(X) and not is_frame) or issparse(X) or isinstance(X, NamedMatrix):
        if given:
            raise ValueError("Categories need a data frame, of pandas, polars or Dask.")
        return
    head = X._meta if is_dask(X) else X
    if given or (is_frame and set(kinds_of(head)) - {NUMBERS}):
        encoder = CategoryEncoder(asked.categorical, asked.ordinal)
        encoder.fit(X, sample_weight=sample_weight)
        if any(code.kind != NUMBERS for code in encoder.columns_):
            estimator.encoder_ = encoder


def _encoded(estimator: Any, X: Any, reset: bool, dtype: Any) -> np.ndarray:
    """Check a table with categories, and return it as numbers."""
    if is_elsewhere(X):
        if not (is_dask(X) and hasattr(X, "columns")):
            raise ValueError("The model was fitted to categories, which need a data frame.")
        validate_data(estimator, X._meta, reset=reset, skip_check_array=True)
        return encoded_blocks(X, estimator.encoder_)
    X = X if hasattr(X, "columns") else np.asarray(X)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return check_array(
        estimator.encoder_.transform(X),
        dtype=np.float64 if isinstance(dtype, list) else dtype,
        order="C",
        ensure_all_finite="allow-nan",
        input_name="X",
    )


def _on_device(estimator: Any, X: Any, reset: bool, dtype: Any) -> Any:
    if find_spec("array_api_compat") is None:
        raise ImportError(
            "Arrays on a device need the package array-api-compat: pip install 'rskc[gpu]'."
        )
    from array_api_compat import array_namespace, device

    xp = array_namespace(X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(
            f"X has shape {tuple(X.shape)}; it must have two dimensions, with at least one case "
            "and one feature."
        )
    layout, place = str(getattr(X, "layout", "")), device(X)
    if layout.startswith("torch.sparse"):
        raise TypeError(f"X has layout {layout}; it must be dense: X.to_dense().")
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError(f"X has dtype {X.dtype}; it must have numbers that are not complex.")
    if "float64" not in xp.__array_namespace_info__().dtypes(device=place, kind="real floating"):
        raise ValueError(
            f"X is on the device {place}, which has no float64; move it to one that has, such as "
            "the CPU."
        )
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    X = X.detach() if hasattr(X, "detach") else X
    # float32 stays float32 in a fit; all else becomes float64, or what the fit had.
    single = X.dtype == xp.float32 if isinstance(dtype, list) else dtype == np.float32
    X = xp.astype(X, xp.float32 if single else xp.float64, copy=False)
    return X.contiguous() if hasattr(X, "contiguous") else X
