"""Engines: the passes over the n x p data, and the only code that touches them.

The solver above sees an :class:`Engine` and each :class:`Table` that it hands out. Every pass takes
a leading axis of runs, so that many restarts, or several branches, are one matrix product. In
memory, on a GPU and on a cluster are three engines for one solver.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from rskc.engines.base import Frame, Sums
from rskc.engines.bounded import bounded_engine
from rskc.engines.interface import Assignment, Cases, Engine, Grouping, Remaining, Table
from rskc.engines.memory import MemoryEngine, MemoryTable, passes_info
from rskc.engines.missing import MissingEngine
from rskc.engines.sparse import SparseEngine, has_nan, is_full

__all__ = [
    "Assignment",
    "Cases",
    "Engine",
    "Frame",
    "Grouping",
    "MemoryEngine",
    "MemoryTable",
    "MissingEngine",
    "Remaining",
    "SparseEngine",
    "Sums",
    "Table",
    "bounded_engine",
    "engine_for",
    "memory_engine",
    "passes_info",
]


def engine_for(
    X: Any,
    *,
    missing: bool | None = None,
    drop_unobserved: bool = False,
    masses: np.ndarray | None = None,
    **options: Any,
) -> Engine:
    """Return the engine for the kind of array that X is.

    Parameters
    ----------
    X : ndarray, CSR matrix, Dask array or array on a device, of shape (n, p)
        The data, float32 or float64. A sparse matrix that is nearly full, or has missing cells, is
        made dense.
    missing : bool or None
        Whether to allow for missing cells; None to look whether there are any.
    drop_unobserved : bool
        Whether to leave out cases of which nothing is observed.
    masses : ndarray of shape (n,) or None
        What each case counts, all above 0; None if all count the same.
    **options
        ``frame``, ``n_threads``, ``passes``; of a Dask array ``wanted``, the numbers of cases whose
        rows will be asked for.
    """
    if type(X).__module__.startswith("dask."):
        from rskc.engines.blocks import blocks_engine

        return blocks_engine(
            X, missing=missing, drop_unobserved=drop_unobserved, masses=masses, **options
        )
    if issparse(X):
        if not (missing or is_full(X) or has_nan(X)):
            return _sparse_engine(X, masses, options)
        X = X.toarray()
    xp, complete, incomplete = _kind_of(X, masses is not None)
    own = {} if masses is None else {"masses": masses}
    if missing is None or xp is not np:  # this also refuses infinities on a device
        missing = _has_missing(X, xp) or bool(missing)
    if not missing:
        return complete(X, **own, **options)
    unobserved = xp.all(xp.isnan(X), axis=1)
    if not drop_unobserved or not xp.any(unobserved):
        return incomplete(X, **own, **options)
    if xp.all(unobserved):
        n = X.shape[0]
        raise ValueError(f"X has no observed cell in any of its {n} cases; give it some data.")
    index = xp.nonzero(~unobserved)[0]
    if masses is not None:
        own = {"masses": masses[_on_host(index, xp)]}
    seen = xp.take(X, index, axis=0)
    engine = (incomplete if _has_missing(seen, xp) else complete)(seen, **own, **options)
    engine.leave_out(unobserved)
    return engine


def memory_engine(rows: np.ndarray, masses: np.ndarray | None, n_threads: int) -> Engine:
    """Return an engine for cases in memory, whatever the engine is that they come from."""
    return engine_for(rows, masses=masses, n_threads=n_threads)


def _sparse_engine(X: Any, masses: np.ndarray | None, options: dict[str, Any]) -> Engine:
    if masses is None:
        return SparseEngine(X, **options)
    from rskc.engines.weighted import WeightedSparseEngine

    return WeightedSparseEngine(X, masses=masses, **options)


def _kind_of(X: Any, weighted: bool) -> tuple[Any, Any, Any]:
    """Return the namespace of an array, and its engines for complete and for incomplete data."""
    if isinstance(X, np.ndarray) and not weighted:
        return np, MemoryEngine, MissingEngine
    if isinstance(X, np.ndarray):
        from rskc.engines.weighted import WeightedEngine, WeightedMissingEngine

        return np, WeightedEngine, WeightedMissingEngine
    from array_api_compat import array_namespace

    from rskc.engines.device import DeviceEngine, DeviceMissingEngine
    from rskc.engines.device.weighted import WeightedDeviceEngine, WeightedDeviceMissingEngine

    if weighted:
        return array_namespace(X), WeightedDeviceEngine, WeightedDeviceMissingEngine
    return array_namespace(X), DeviceEngine, DeviceMissingEngine


def _on_host(array: Any, xp: Any) -> np.ndarray:
    if xp is np:
        return np.asarray(array)
    from rskc.engines.device.arrays import to_host

    return to_host(array)


def _has_missing(X: Any, xp: Any) -> bool:
    """Whether a cell is missing; the sum mostly shows it, without an array as large as X."""
    with np.errstate(over="ignore", invalid="ignore"):
        if bool(xp.isfinite(xp.sum(X))):
            return False
    if xp is not np and bool(xp.any(xp.isinf(X))):  # arrays in memory were checked before
        raise ValueError(
            f"Input X contains infinity or a value too large for dtype({str(X.dtype)!r})."
        )
    return bool(xp.any(xp.isnan(X)))
