"""Medians of columns, and what makes a standard deviation of median deviations (internal)."""

from __future__ import annotations

import numpy as np

from rskc.engines.arrays import weighted_median
from rskc.engines.passes import PASSES

# For normal data the standard deviation is this many median deviations (MAD).
MAD_FACTOR = 1.4826


def column_medians(X: np.ndarray, masses: np.ndarray | None = None) -> np.ndarray:
    """Return the median of the observed cells of each column; NaN where none is observed.

    Many short columns, or columns with missing cells, are quicker to sort: 0.03 s for 200,000
    columns of 20 cells, where NumPy takes 0.1 s.
    """
    missing = np.isnan(X)
    if masses is not None:
        return np.array(
            [
                weighted_median(column[seen], masses[seen]) if seen.any() else np.nan
                for column, seen in zip(X.T, ~missing.T, strict=True)
            ]
        )
    if len(X) > X.shape[1] and not missing.any():
        return np.median(X, axis=0)
    n_observed = len(X) - missing.sum(axis=0)
    ordered = np.sort(X, axis=0)  # NaN comes last
    middle = np.stack([(n_observed - 1) // 2, n_observed // 2]).clip(0)
    # Halved before they are added, lest the sum overflow.
    return (np.take_along_axis(ordered, middle, axis=0) / 2).sum(axis=0)


def lower_medians(X: np.ndarray, masses: np.ndarray | None = None) -> np.ndarray:
    """Return the lower median of the observed cells of each column; NaN where none is observed.

    That is a cell itself. Without masses the compiled pass selects it, 6 times as fast as a sort.
    """
    n, p = X.shape
    if masses is None:
        out, every = np.empty((1, p)), (np.arange(n), np.array([0, n]))
        X = np.ascontiguousarray(X)
        PASSES.lower_medians(X, np.zeros(p), 1.0, np.arange(p), *every, 1, out)
        return out[0]
    order = np.argsort(X, axis=0)  # NaN comes last
    below = np.cumsum(np.where(np.isnan(X), 0.0, masses[:, None])[order, np.arange(p)], axis=0)
    places = (below < below[-1] / 2 * (1 - 1e-12)).sum(axis=0)
    return np.take_along_axis(X, order, axis=0)[places, np.arange(p)]
