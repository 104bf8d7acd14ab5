"""Engines: the passes over the n x p data, and the only code that touches them.

The solver above sees an :class:`Engine` and each :class:`Table` that it hands out. Every pass takes
a leading axis of runs, so that many restarts, or several branches, are one matrix product. In
memory, on a GPU and on a cluster are three engines for one solver.
"""

from __future__ import annotations

import numpy as np

from rskc.engines.interface import Assignment, Cases, Engine, Grouping, Sums, Table
from rskc.engines.memory import MemoryEngine, MemoryTable, has_missing, passes_info
from rskc.engines.missing import MissingEngine

__all__ = [
    "Assignment",
    "Cases",
    "Engine",
    "Grouping",
    "MemoryEngine",
    "MemoryTable",
    "MissingEngine",
    "Sums",
    "Table",
    "engine_for",
    "has_missing",
    "passes_info",
]


def engine_for(
    X, *, missing: bool | None = None, drop_unobserved: bool = False, **options
) -> Engine:
    """Return the engine for the kind of array that X is.

    Parameters
    ----------
    X : ndarray, Dask array or array on a device, of shape (n, p)
        The data, float32 or float64.
    missing cells : bool or None
        Whether to count with missing cells; None to look whether there are any.
    drop_unobserved : bool
        Whether to leave out cases of which nothing is observed.
    **options
        ``frame``, ``n_threads``, ``passes``.
    """
    if not isinstance(X, np.ndarray):
        return _engine_elsewhere(X, missing=missing, drop_unobserved=drop_unobserved, **options)
    if missing is None:
        missing = has_missing(X)
    if not missing:
        return MemoryEngine(X, **options)
    unobserved = np.isnan(X).all(axis=1)
    if not drop_unobserved or not unobserved.any():
        return MissingEngine(X, **options)
    if unobserved.all():
        raise ValueError(f"X has no observed cell in any of its {len(X)} cases; give it some data.")
    seen = np.ascontiguousarray(X[~unobserved])
    engine = (MissingEngine if has_missing(seen) else MemoryEngine)(seen, **options)
    engine.leave_out(unobserved)
    return engine


def _engine_elsewhere(X, **options) -> Engine:
    """The engine for data that are not in memory; its libraries are imported only here."""
    if type(X).__module__.startswith("dask."):
        from rskc.engines.blocks import blocks_engine

        return blocks_engine(X, **options)
    from rskc.engines.device.missing import device_engine

    return device_engine(X, **options)
