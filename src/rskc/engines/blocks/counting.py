"""What is read of a Dask array: some of its blocks, and how often rows are read in a fit."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np


def some_blocks(X: Any, n: int) -> tuple[np.ndarray, int]:
    """Read evenly spaced blocks that have so many cases together, and return how many they are."""
    lengths = np.array(X.chunks[0])
    number = int(np.clip(np.ceil(n * len(lengths) / lengths.sum()), 1, len(lengths)))
    chosen = np.unique(np.linspace(0, len(lengths) - 1, number).astype(int))
    rows = dask.compute(*(X.blocks[int(i)] for i in chosen))
    return np.ascontiguousarray(np.concatenate(rows)), number


class CountedRows:
    """Rows in blocks; it counts the cells that are read of them."""

    def __init__(self, rows: np.ndarray):
        self.rows, self.cells = rows, 0

    def table(self, n_blocks: int, like: Any) -> Any:
        """Return a Dask array of the rows, whose columns are read apart if those of another are."""
        X = self._blocks(n_blocks, slice(None), self.rows.shape[1])
        if hasattr(like, "of_columns"):
            X.of_columns = lambda columns: self._blocks(n_blocks, columns, len(columns))
        return X

    def _blocks(self, n_blocks: int, columns: Any, width: int) -> Any:
        numbers = da.arange(len(self.rows), chunks=-(-len(self.rows) // n_blocks))[:, None]
        how = {"chunks": (numbers.chunks[0], (width,)), "dtype": self.rows.dtype}
        meta = np.empty((0, 0), self.rows.dtype)
        return numbers.map_blocks(self._read, columns=columns, meta=meta, **how)

    def _read(self, numbers: np.ndarray, columns: Any) -> np.ndarray:
        rows = self.rows[numbers[0, 0] : numbers[-1, 0] + 1, columns].copy()
        self.cells += rows.size
        return rows
