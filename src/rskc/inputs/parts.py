"""Parts of a table of any kind: some of its cases and features, of the same kind (internal)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from rskc.inputs.arrays import as_blocks, is_dask, is_on_device
from rskc.inputs.categories import CategoryEncoder, encoded_blocks
from rskc.inputs.frames import NUMBERS, kinds_of


@dataclass(frozen=True)
class AnyTable:
    """A table of any kind, of which parts are taken."""

    X: Any
    weights: np.ndarray | None

    @classmethod
    def of(cls, X: Any, sample_weight: Any) -> AnyTable:
        """Take a table as ``fit`` does."""
        if is_dask(X):
            is_coded = hasattr(X, "columns") and set(kinds_of(X._meta)) != {NUMBERS}
            X = encoded_blocks(X, CategoryEncoder().fit(X)) if is_coded else as_blocks(X)
            if np.isnan(X.shape[0]):
                raise ValueError(
                    "X does not know how many cases it has, and a plan needs their number; call "
                    "X.compute_chunk_sizes() before."
                )
        elif not hasattr(X, "shape"):
            X = np.asarray(X)
        if len(X.shape) != 2 or 0 in X.shape:
            raise ValueError(f"X has shape {tuple(X.shape)}; it must have cases and features.")
        return cls(X, None if sample_weight is None else np.asarray(sample_weight))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of cases and of features."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return self.shape[0] * self.shape[1]

    @cached_property
    def n_bytes(self) -> int:
        """The bytes of the data."""
        X = self.X
        if issparse(X):
            X = X.tocsr()
            return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        if hasattr(X, "memory_usage"):  # of pandas
            return int(X.memory_usage(index=False).sum())
        return int(getattr(X, "nbytes", 8 * X.shape[0] * X.shape[1]))

    def part(self, n: int, p: int) -> AnyTable:
        """Return some evenly spaced cases and features, in memory or on the device of the data."""
        rows, columns = (
            np.linspace(0, most - 1, size).astype(np.int64)
            for most, size in zip(self.shape, (n, p), strict=True)
        )
        weights = None if self.weights is None else self.weights[rows]
        if is_on_device(self.X):
            from array_api_compat import array_namespace, device

            xp, X = array_namespace(self.X), self.X
            for axis, index in enumerate((rows, columns)):
                X = xp.take(X, xp.asarray(index, device=device(X)), axis=axis)
            return AnyTable(X, weights)
        X = _safe_indexing(self.X, rows) if n < self.shape[0] else self.X
        return AnyTable(_safe_indexing(X, columns, axis=1) if p < self.shape[1] else X, weights)
