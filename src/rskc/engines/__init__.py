"""Engines: the passes over the n x p data, and the only code that touches them.

The solver above sees an :class:`Engine` and each :class:`Table` that it hands out. Every pass takes
a leading axis of runs, so that many restarts, or several branches, are one matrix product. In
memory, on a GPU and on a cluster are three engines for one solver.
"""

from typing import Any

import numpy as np
from scipy.sparse import issparse

from rskc.engines.arrays import ArrayOps, Sums
from rskc.engines.cells import BoundedEngine
from rskc.engines.contract import Assignment, Engine, Partitions, Summed, Table
from rskc.engines.memory import Frame, MemoryEngine, passes_info
from rskc.engines.sparse import SparseEngine, is_better_dense
from rskc.exceptions import unobserved_error

__all__ = [
    "ArrayOps",
    "Assignment",
    "BoundedEngine",
    "Engine",
    "Frame",
    "MemoryEngine",
    "Partitions",
    "SparseEngine",
    "Summed",
    "Sums",
    "Table",
    "engine_for",
    "passes_info",
]


def engine_for(
    X: Any,
    *,
    missing: bool | None = None,
    drop_unobserved: bool = False,
    masses: np.ndarray | None = None,
    device: str | None = None,
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
    device : str or None
        Where passes over blocks of Dask are made. An array in memory goes there as a whole, or is
        cut into blocks if it does not fit; results are NumPy arrays all the same.
    **options
        ``frame``, ``n_threads``, ``passes``; of a Dask array ``wanted``, the numbers of cases whose
        rows will be asked for.
    """
    facts: Any = {"missing": missing, "drop_unobserved": drop_unobserved, "masses": masses}
    if device is not None and isinstance(X, np.ndarray):
        from rskc.engines.blocks.devices import here, placed

        X = placed(X, device)
        if not hasattr(X, "chunks"):
            options.pop("wanted", None)
            device = None
        with here():
            engine = engine_for(X, device=device, **facts, **options)
        engine.gathers, engine.source = True, X  # memory is locked while the blocks live
        return engine
    if type(X).__module__.startswith("dask."):
        from rskc.engines.blocks import BlocksEngine

        return BlocksEngine(X, device=device, **facts, **options)
    if issparse(X):
        if not (missing or is_better_dense(X)):
            return SparseEngine(X, masses=masses, **options)
        X = X.toarray()
    xp, make, to_host = _kind_of(X)
    if missing is None or xp is not np:  # this also refuses infinities on a device
        missing = _has_missing(X, xp) or bool(missing)
    if not missing:
        return make(X, masses=masses, **options)
    unobserved = xp.all(xp.isnan(X), axis=1)
    if not drop_unobserved or not xp.any(unobserved):
        return make(X, missing=True, masses=masses, **options)
    if xp.all(unobserved):
        raise unobserved_error(X.shape[0])
    index = xp.nonzero(~unobserved)[0]
    masses = None if masses is None else masses[to_host(index)]
    seen = xp.take(X, index, axis=0)
    engine = make(seen, missing=_has_missing(seen, xp), masses=masses, **options)
    engine.leave_out(unobserved)
    return engine


def _kind_of(X: Any) -> tuple[Any, Any, Any]:
    """Return the namespace of an array, its engine, and what brings such an array to memory."""
    if isinstance(X, np.ndarray):
        return np, MemoryEngine, np.asarray
    from array_api_compat import array_namespace

    from rskc.engines.device import DeviceEngine
    from rskc.engines.device.ops import to_host

    return array_namespace(X), DeviceEngine, to_host


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
