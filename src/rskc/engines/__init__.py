"""Engines: the passes over the n x p data, and the only code that touches them.

The solver above sees an :class:`Engine` and each :class:`Table` that it hands out. Every pass takes
a leading axis of runs, so that many restarts, or several branches, are one matrix product. In
memory, on a GPU and on a cluster are three engines for one solver.
"""

from __future__ import annotations

import numpy as np

from rskc.engines.holes import HolesEngine
from rskc.engines.interface import Assignment, Engine, Grouping, Sums, Table
from rskc.engines.memory import MemoryEngine, passes_info

__all__ = [
    "Assignment",
    "Engine",
    "Grouping",
    "HolesEngine",
    "MemoryEngine",
    "Sums",
    "Table",
    "engine_for",
    "has_holes",
    "passes_info",
]


def engine_for(X, *, holes: bool | None = None, **options) -> Engine:
    """Return the engine for the kind of array that X is.

    ``holes``: whether to count with missing cells; None to look whether there are any.
    """
    if holes is None:
        holes = has_holes(X)
    return (HolesEngine if holes else MemoryEngine)(X, **options)


def has_holes(X: np.ndarray) -> bool:
    """Whether a cell is missing; the sum tells, mostly, without an array as large as X."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isnan(np.sum(X)) and np.isnan(X).any())
