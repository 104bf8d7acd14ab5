"""Dask arrays and dataframes: what the estimator needs to know of them."""

from __future__ import annotations

import sys
from typing import Any


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array or dataframe; nobody has one who has not imported Dask."""
    return "dask" in sys.modules and type(X).__module__.startswith(("dask.", "dask_expr."))


def as_blocks(X: Any) -> Any:
    """Return a Dask array of float32 or float64 whose blocks hold all columns of their cases."""
    X = X if hasattr(X, "chunks") else X.to_dask_array()
    if X.dtype.name not in ("float32", "float64"):
        X = X.astype("float64")
    return X.rechunk({1: -1})


def by_blocks(function: Any, X: Any, dtype: Any, n_columns: int | None = None) -> Any:
    """Apply a function of NumPy rows to each block, when it is computed."""
    if n_columns is None:
        return X.map_blocks(function, dtype=dtype, drop_axis=1)
    return X.map_blocks(function, dtype=dtype, chunks=(X.chunks[0], (n_columns,)))
