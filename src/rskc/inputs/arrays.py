"""The kinds of arrays, in memory, on a device, in blocks of Dask; and case weights (internal)."""

import copy
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config

from rskc.exceptions import ColumnWarning, not_numpy, warn_user
from rskc.inputs.columns import recognize
from rskc.utils.wording import short_repr


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


def to_numpy(array: Any) -> np.ndarray:
    """Return an array of any kind as NumPy's."""
    if not is_elsewhere(array):
        return np.asarray(without_mask(array))
    if is_dask(array):
        return np.asarray(array.compute())
    from rskc.engines.device.ops import to_host

    return to_host(array.detach() if hasattr(array, "detach") else array)


def without_mask(X: Any) -> Any:
    """Return a masked array with NaN in the place of masked cells, and anything else as it is."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    kinds = {"b": np.float64, "i": np.float64, "u": np.float64, "f": X.dtype, "c": X.dtype}
    return np.ma.filled(X.astype(kinds.get(X.dtype.kind, object)), np.nan)


class NamedMatrix(NamedTuple):
    """A sparse matrix and the names of its rows and columns, of which SciPy's knows none."""

    matrix: Any
    index: Any  # of pandas, as a data frame has them
    columns: Any


def to_dense(table: Any) -> np.ndarray:
    """Return a table in memory as an array, where it is sparse."""
    return table.toarray() if issparse(table) else table


def is_elsewhere(array: Any) -> bool:
    """Whether an array is on a device, or in blocks of Dask."""
    if isinstance(array, np.ndarray | np.generic):
        return False
    return is_dask(array) or is_on_device(array) or hasattr(array, "__array_namespace__")


def to_numpy_pair(model: Any, X: Any) -> tuple[Any, Any]:
    """Return a model and a table that may be on a device, or in blocks, in memory."""
    if is_dask(X):
        X = X.compute()  # a dataframe stays one, with its names
    elif is_on_device(X):
        X = to_numpy(X)
    return model_to_numpy(model), X


def model_to_numpy(model: Any) -> Any:
    """Return a fitted model whose results are NumPy arrays: itself, where they are."""
    elsewhere = {name: value for name, value in vars(model).items() if is_elsewhere(value)}
    if not elsewhere:
        return model
    model = copy.copy(model)
    vars(model).update({name: to_numpy(value) for name, value in elsewhere.items()})
    return model


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array or dataframe; nobody has one who has not imported Dask."""
    return "dask" in sys.modules and type(X).__module__.startswith(("dask.", "dask_expr."))


def check_collection(X: Any) -> None:
    """Refuse Dask's other collections: series, bags, delayed values."""
    # The class is asked: a delayed value has any attribute.
    kind = type(X)
    if hasattr(kind, "chunks") or (hasattr(kind, "columns") and X.ndim == 2):
        return
    remedy = ": X.to_frame()" if hasattr(kind, "to_frame") else ""
    raise TypeError(
        f"X is of Dask's type {kind.__name__}; it must be a Dask array or dataframe with a row a "
        f"case and a column a feature{remedy}."
    )


def as_blocks(X: Any) -> Any:
    """Return a Dask array of float32 or float64 whose blocks hold all columns of their cases."""
    check_collection(X)
    X = X if hasattr(X, "chunks") else _rows_of_frame(X)
    if X.ndim != 2 or not X.shape[1] > 0:  # a number of columns that is not known is NaN
        raise ValueError(
            f"X has shape {X.shape}; it must have two dimensions and a known number of features, "
            "at least one."
        )
    if not isinstance(X._meta, np.ndarray):
        raise not_numpy(X._meta)
    if X.dtype.kind == "c":
        raise ValueError(f"X has dtype {X.dtype}; it must have numbers that are not complex.")
    if X.dtype.kind not in "biufO":
        raise ValueError(f"X has dtype {X.dtype}: its columns are not numbers, and must be.")
    if isinstance(X._meta, np.ma.MaskedArray):
        X = X.map_blocks(without_mask, dtype="float64", meta=np.empty((0, 0)))
    if X.dtype.name not in ("float32", "float64") or not X.dtype.isnative:
        X = X.astype("float64")
    return X if len(X.chunks[1]) == 1 else X.rechunk({1: -1})


def _rows_of_frame(X: Any) -> Any:
    """Make an array of a dataframe; missing values of pandas become NaN."""
    from pandas.api.types import is_numeric_dtype

    other = [name for name, dtype in X.dtypes.items() if not is_numeric_dtype(dtype)]
    if other:
        raise ValueError(f"X has columns that are not numbers: {', '.join(map(str, other))}.")
    if {dtype.name for dtype in X.dtypes} not in ({"float32"}, {"float64"}):  # else a copy
        X = X.astype("float64")
    # Who made a dataframe may know how long its parts are.
    rows = X.to_dask_array(lengths=getattr(X, "part_lengths", None))
    if X.columns.is_unique:
        # Files of columns need not be read whole for passes that need some of these only.
        rows.of_columns = lambda columns: X[list(X.columns[columns])].to_dask_array()
    return rows


def warn_of_columns(X: Any) -> None:
    """Warn, at the line that called rskc, of columns that every pass has to put together."""
    n_chunks = len(X.chunks[1]) if hasattr(X, "chunks") and X.ndim == 2 else 1
    if n_chunks > 1:
        warn_user(
            f"X has {n_chunks} chunks of columns; they are put together anew whenever its blocks "
            "are read, which copies all of it. Better give chunks with all columns: "
            "X.rechunk({1: -1}).persist()."
        )


def warn_of_numbers(X: Any, checked: Any) -> None:
    """Warn of columns of a data frame that hold numbers which are no measurements."""
    names = getattr(X, "columns", None)
    if names is None or not isinstance(checked, np.ndarray):
        return
    for column in recognize([str(name) for name in names], checked).values():
        warn_user(
            ColumnWarning(
                "Column {name} of X {why}, and is clustered as a measurement; if it is none, leave "
                "it out.",
                name=repr(column.name),
                why=column.why,
            )
        )


def merged_blocks(counted: Any, out: np.ndarray, values: np.ndarray, chunks: tuple) -> Any:
    """Return a Dask array with values in memory for the cases ``out``, and its own for others."""
    import dask.array as da

    whole = np.zeros(len(out), counted.dtype)
    whole[out] = values
    there = counted[np.maximum(np.cumsum(~out) - 1, 0)].rechunk((chunks,))
    mask, others = (da.from_array(part, chunks=(chunks,)) for part in (out, whole))
    return da.where(mask, others, there)


def by_blocks(function: Callable, X: Any, dtype: Any, n_columns: int | None = None) -> Any:
    """Apply a function of NumPy rows to each block, when it is computed.

    It returns an array (rows,) or, if ``n_columns`` is given, (rows, n_columns).
    """
    shape = () if n_columns is None else (n_columns,)
    options: dict[str, Any] = {"drop_axis": 1}
    if n_columns is not None:
        options = {"chunks": (X.chunks[0], (n_columns,))}
    return X.map_blocks(
        partial(_on_rows, function, shape, np.dtype(dtype)),
        dtype=dtype,
        meta=np.empty((0,) * (1 + len(shape)), dtype),
        name=f"rskc-{uuid4().hex}",
        **options,
    )


def _on_rows(function: Callable, shape: tuple, dtype: np.dtype, block: Any) -> np.ndarray:
    """Apply a function of rows to a block, unless it has none."""
    if hasattr(block, "toarray"):  # sparse, although the array looked dense
        raise not_numpy(block)
    if len(block) == 0:
        return np.empty((0, *shape), dtype)
    return function(np.asarray(block))


# ---- Case weights
#
# They are divided by a unit, so that a case has about mass 1. Where all weights are multiples of a
# unit, masses are whole, and a case is as that many copies of it.


def check_sample_weight(sample_weight: Any, n: int | None) -> np.ndarray:
    """Return weights (n,) of cases; None for a number of cases that is not known."""
    try:
        weights = np.asarray(to_numpy(sample_weight), dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"sample_weight must hold numbers, one for each case; got {short_repr(sample_weight)}."
        ) from None
    if weights.ndim != 1 or (n is not None and len(weights) != n):
        cases = "one number for each case" if n is None else f"shape ({n},): a number for each case"
        raise ValueError(f"sample_weight has shape {weights.shape}; it must have {cases}.")
    if (bad := ~((weights >= 0) & np.isfinite(weights))).any():
        case = int(bad.argmax())
        raise ValueError(
            f"sample_weight is {weights[case]:g} for case {case}; weights must be finite and 0 or "
            "more, 0 for a case that is not to count."
        )
    if not weights.any():
        raise ValueError("sample_weight is zero for all cases; give some of them a weight above 0.")
    return weights


class CaseWeights(NamedTuple):
    """Which cases count, and how much."""

    given: np.ndarray | None  # (n,) as they were given; None if all count the same
    masses: np.ndarray | None  # of those above 0, in units; None if these are all 1
    unit: float

    def of(self, array: Any) -> Any:
        """Return an array without the cases of weight 0, which do not take part in a fit."""
        if self.given is None or self.given.all():
            return array
        return rows_of(array, np.flatnonzero(self.given))

    def names(self, names: np.ndarray | None) -> np.ndarray | None:
        """Return the names of these cases; their numbers, where some are left out."""
        if names is None and self.given is not None and not self.given.all():
            return np.flatnonzero(self.given)
        return names if names is None else self.of(names)


def rows_of(array: Any, numbers: np.ndarray) -> Any:
    """Return some cases of an array of any kind, of that kind."""
    if not is_on_device(array):
        return array[numbers]
    from array_api_compat import array_namespace, device

    xp = array_namespace(array)
    return xp.take(array, xp.asarray(numbers, device=device(array)), axis=0)


def case_weights_of(X: Any, sample_weight: Any) -> CaseWeights:
    """Check the weights of cases, and find their unit."""
    if sample_weight is None:
        return CaseWeights(None, None, 1.0)
    n = X.shape[0]
    weights = check_sample_weight(sample_weight, None if np.isnan(n) else int(n))
    if np.isnan(n) and not weights.all():
        raise ValueError(
            "sample_weight is 0 for some cases, and the lengths of the chunks of X are not known; "
            "call X.compute_chunk_sizes() first, or leave these cases out."
        )
    masses, unit = _in_units(weights[weights > 0])
    return CaseWeights(weights, None if (masses == 1).all() else masses, unit)


def masses_of(weights: np.ndarray) -> np.ndarray:
    """Return checked weights (n,) in units, 0 for a case that takes no part."""
    masses, counted = np.zeros(len(weights)), weights > 0
    masses[counted] = _in_units(weights[counted])[0]
    return masses


def _in_units(weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Return weights above 0 in units, and the unit; whole numbers where they are copies."""
    if len(weights) == 0:
        return weights, 1.0
    unit, whole = unit_of(weights)
    return np.rint(weights / unit) if whole else weights / unit, unit


def mean_by_weight(values: np.ndarray, weights: np.ndarray | None) -> float:
    """Return the mean of values; NaN of those that have no weight."""
    if weights is None:
        return float(values.mean()) if len(values) else np.nan
    total = weights.sum()
    return float(values @ weights / total) if total > 0 else np.nan


def count_of(share: float, n: int) -> int:
    """Return floor(share * n); 10 / 78 * 78 and 0.29 * 100 are 10 and 29 whatever they round to."""
    return int(np.floor(share * n + 1e-9))


def trimmed_sum(distances: np.ndarray, weights: np.ndarray, share: float) -> float:
    """Sum distances times weights, without the largest that have this share of the weight."""
    counted = weights > 0
    if not counted.any():
        return 0.0
    distances, weights = distances[counted], weights[counted]
    unit, whole = unit_of(weights)
    gone = share * weights.sum()
    gone = count_of(1, gone / unit) * unit if whole else gone
    order = np.argsort(-distances, kind="stable")
    kept = np.clip(np.cumsum(weights[order]) - gone, 0, weights[order])
    return float(kept @ distances[order])


def unit_of(weights: np.ndarray, most: int = 20) -> tuple[float, bool]:
    """Return the unit of weights, and whether these are whole multiples of it: copies.

    It is the largest number of which all weights are multiples, if the least of them is at most
    20 units. Otherwise it is their mean: a case has about mass 1 in any case, whatever all weights
    are multiplied by.
    """

    def are_multiples(weights: np.ndarray, unit: float) -> bool:
        counts = weights / unit
        whole_counts = np.abs(counts - np.rint(counts)) <= 1e-9 * counts
        return bool(whole_counts.all()) and float(counts.max()) < 1e6

    for number in range(1, most + 1):
        unit = float(weights.min()) / number
        if are_multiples(weights[:1000], unit) and are_multiples(weights, unit):
            return unit, True
    return float(weights.mean()), False
