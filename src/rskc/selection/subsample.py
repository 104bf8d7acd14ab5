"""The cases that a search works on: those of a table of any kind, or some of a large one."""

from __future__ import annotations

from operator import getitem
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array

from rskc.arrays import is_dask, to_numpy
from rskc.selection.runner import rng_of
from rskc.validation import PRECISIONS, check_integer

# Keys of tasks are small numbers; the draw of the cases has one that no task has.
DRAW = 2**32 - 1


def check_max_samples(max_samples: Any) -> int | None:
    """Return the most cases to work on, None for all."""
    if max_samples is None:
        return None
    return check_integer("max_samples", max_samples, 1, remedy=" or None")


def with_length(table: Any) -> Any:
    """Return a table that knows how many cases it has; Dask may have to read it for that."""
    if not is_dask(table) or not np.isnan(table.shape[0]):
        return table
    # A copy: counting sets the lengths in place, and the array may be the caller's own.
    return table.copy().compute_chunk_sizes()


def draw_cases(n: int, n_used: int, seed: int) -> np.ndarray:
    """Draw ``n_used`` of n cases, and return their numbers upwards."""
    return np.sort(rng_of(seed, DRAW).choice(n, n_used, replace=False, shuffle=False))


def gather(table: Any, n_used: int, seed: int) -> Any:
    """Return ``n_used`` cases of a table in memory; an array or matrix of no more is itself."""
    n = table.shape[0]
    if n <= n_used:
        drawn = table if issparse(table) else to_numpy(table)
    else:
        drawn = _rows(table, draw_cases(n, n_used, seed))
    if drawn is table or issparse(table):
        return drawn
    return check_array(
        drawn, dtype=PRECISIONS, order="C", ensure_all_finite="allow-nan", input_name="X"
    )


def _rows(table: Any, cases: np.ndarray) -> Any:
    if isinstance(table, np.ndarray) or issparse(table):
        return table[cases]
    if is_dask(table):
        return _rows_of_blocks(table, cases)
    from array_api_compat import array_namespace, device

    xp = array_namespace(table)
    return to_numpy(xp.take(table, xp.asarray(cases, device=device(table)), axis=0))


def _rows_of_blocks(table: Any, cases: np.ndarray) -> np.ndarray:
    """Take the rows where the blocks are: nothing else travels, and other blocks are not read."""
    from dask import compute, delayed

    ends = np.cumsum(table.chunks[0])
    parts = np.split(cases, np.searchsorted(cases, ends[:-1]))
    starts = np.append(0, ends[:-1])
    blocks = zip(table.to_delayed()[:, 0], parts, starts, strict=True)
    wanted = [delayed(getitem)(block, rows - start) for block, rows, start in blocks if len(rows)]
    return np.concatenate(compute(*wanted))
