"""Dask arrays and dataframes: what the estimator needs to know of them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import numpy as np


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array or dataframe; nobody has one who has not imported Dask."""
    return "dask" in sys.modules and type(X).__module__.startswith(("dask.", "dask_expr."))


def as_blocks(X: Any) -> Any:
    """Return a Dask array of float32 or float64 whose blocks hold all columns of their cases."""
    X = X if hasattr(X, "chunks") else _rows_of_frame(X)
    if X.ndim != 2 or not X.shape[1] > 0:  # a number of columns that is not known is NaN
        raise ValueError(
            f"X has shape {X.shape}; it must have two dimensions and a known number of features, "
            "at least one."
        )
    if X.dtype.kind not in "biufO":
        raise ValueError(f"X has dtype {X.dtype}; it must have numbers that are not complex.")
    if X.dtype.name not in ("float32", "float64") or not X.dtype.isnative:
        X = X.astype("float64")
    return _with_all_columns(X)


def _rows_of_frame(X: Any) -> Any:
    """A dataframe as an array; columns that pandas has missing values for become NaN there."""
    from pandas.api.types import is_numeric_dtype

    other = [name for name, dtype in X.dtypes.items() if not is_numeric_dtype(dtype)]
    if other:
        raise ValueError(f"X has columns that are not numbers: {', '.join(map(str, other))}.")
    if {dtype.name for dtype in X.dtypes} != {"float32"}:
        X = X.astype("float64")
    return X.to_dask_array()


def _with_all_columns(X: Any) -> Any:
    n_chunks = len(X.chunks[1])
    if n_chunks > 1:
        warnings.warn(
            f"X has {n_chunks} chunks of columns; they are put together anew whenever its blocks "
            "are read, which copies all of it. Better give chunks with all columns: "
            "X.rechunk({1: -1}).persist().",
            UserWarning,
            stacklevel=2,
        )
        X = X.rechunk({1: -1})
    return X


def by_blocks(function: Callable, X: Any, dtype: Any, n_columns: int | None = None) -> Any:
    """Apply a function of NumPy rows to each block, when it is computed.

    It returns an array (rows,) or, if ``n_columns`` says so, (rows, n_columns).
    """
    shape = () if n_columns is None else (n_columns,)
    options: dict[str, Any] = {"drop_axis": 1}
    if n_columns is not None:
        options = {"chunks": (X.chunks[0], (n_columns,))}
    return X.map_blocks(
        _OfRows(function, shape, np.dtype(dtype)),
        dtype=dtype,
        meta=np.empty((0,) * (1 + len(shape)), dtype),
        name=f"rskc-{uuid4().hex}",
        **options,
    )


class _OfRows:
    """A function of rows that is not asked where there are none."""

    def __init__(self, function: Callable, shape: tuple[int, ...], dtype: np.dtype):
        self.function, self.shape, self.dtype = function, shape, dtype

    def __call__(self, block: Any) -> np.ndarray:
        if len(block) == 0:
            return np.empty((0, *self.shape), self.dtype)
        return self.function(np.asarray(block))
