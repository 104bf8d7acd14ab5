"""Cells that are outlying: scales of columns and of errors, and two looks at a table (internal).

A cell is judged by its error, its distance from the center of its cluster in one feature, on the
scale of such errors. Before there are clusters, columns are looked at as they are: extreme cells
are cut off, or left out, so that restarts find the clusters in spite of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from rskc.inputs.arrays import is_dask, to_dense, to_numpy
from rskc.inputs.medians import MAD_FACTOR, lower_medians

# The cut-off in scales: .1% of clean normal cells are beyond it.
CUTOFF = 3.3
# Whether bounding pays. A cell is extreme beyond this many scales of its column, and more where few
# cases tell these: twice as many with 20 cases. Of clean normal columns one cell in 100,000 is, of
# 20 cases as of 100. Where no more than this share of the cases has any, trimming
# and setting aside see to them: in the designs of ``make bench ARGS=choice`` up to .10 do.
EXTREME, HALF_KNOWN, FEW_CASES = 6.0, 20, 0.125
# A column of which more than this share of the cases have the same value has no scale: it is of
# counts, mostly zeros, or of few values, which have no outlying ones.
SAME_VALUE = 0.25
# Cases by which a table is first looked at.
FIRST_LOOK = 1000
# Clipped columns end at this many scales. It keeps small clusters that are far away.
CLIP = 3.0
# Cells beyond this many scales are left out of the second look. It withstands a fifth of outlying
# cells, where clipped ones drown the others from a tenth on; with 3 scales it does not (CER .06),
# and 1 in 80 clean normal cells is beyond 2.5. Bent back to the middle (below) such cells pull the
# clusters together: with 12% of them a cluster was lost in one table of ten.
REMOVE = 2.5
# Raymaekers and Rousseeuw's function: as it is up to 1.5 scales, then bent back to 0 at 4. The
# tables of searches are made so: they stay complete.
BEND, END, HEIGHT, SLOPE = 1.5, 4.0, 1.541, 0.8623
# A feature with more cells flagged than this has two modes, or there are too few clusters.
MANY_CELLS = 0.25
# Cells that are flagged at once.
CELLS_AT_ONCE = 2**20


class Columns(NamedTuple):
    """Medians and scales (p,) of columns; a column without a scale has an infinite one."""

    medians: np.ndarray
    scales: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, masses: np.ndarray | None = None) -> Columns:
        """Measure columns (n, p), whose cases may have masses; NaN marks a missing cell."""
        medians = lower_medians(rows, masses)
        scales = MAD_FACTOR * lower_medians(np.abs(rows - medians), masses)
        return cls(medians, np.where(scales > 0, scales, np.inf))

    def without(self, columns: np.ndarray) -> Columns:
        """Return them without the scales of some columns (p,), a mask."""
        return Columns(self.medians, np.where(columns, np.inf, self.scales))

    def share_with_extremes(self, rows: np.ndarray, masses: np.ndarray | None = None) -> float:
        """Return the share of the cases that have an extreme cell."""
        return _share(np.abs(rows - self.medians) / self.scales, masses)

    def share_with_extreme_errors(
        self, errors: np.ndarray, n_clusters: int, masses: np.ndarray | None = None
    ) -> float:
        """Return the share of the cases that have one with an extreme error."""
        scales = error_scales(errors, n_clusters, masses)
        scales[np.isinf(self.scales)] = np.inf
        return _share(np.abs(errors) / scales, masses)

    def clip(self, rows: np.ndarray) -> np.ndarray:
        """Cut cells off at CLIP scales."""
        reach = CLIP * self.scales
        return np.clip(rows, self.medians - reach, self.medians + reach)

    def remove(self, rows: np.ndarray) -> np.ndarray:
        """Return rows whose cells beyond REMOVE scales are missing.

        A case of which nothing would be left is clipped.
        """
        left = np.where(np.abs(rows - self.medians) > REMOVE * self.scales, np.nan, rows)
        empty = np.isnan(left).all(axis=1)
        left[empty] = self.clip(rows[empty])
        return left

    def wrap(self, rows: np.ndarray) -> np.ndarray:
        """Bend cells beyond BEND scales back to the median."""
        away = (rows - self.medians) / self.scales
        size = np.abs(away)
        bent = np.sign(away) * HEIGHT * np.tanh(SLOPE * np.maximum(END - size, 0.0))
        scales = np.where(np.isinf(self.scales), 0.0, self.scales)
        return np.where(size > BEND, self.medians + scales * bent, rows).astype(rows.dtype)


def _share(sizes: np.ndarray, masses: np.ndarray | None) -> float:
    """Return the share of the cases (n, p) with an extreme cell, of sizes in scales."""
    extreme = EXTREME * (1 + (HALF_KNOWN / len(sizes)) ** 2)
    return float(np.average((sizes > extreme).any(axis=1), weights=masses))


LOOKS: tuple[Callable[[Columns, np.ndarray], np.ndarray], ...] = (Columns.clip, Columns.remove)


def extreme_columns(rows: np.ndarray, masses: np.ndarray | None = None) -> Columns | None:
    """Return the columns (n, p), if so many cases have extreme cells that no trimming will do.

    The quick question comes first: which columns have few values takes a sort of all.
    """
    columns = Columns.of(rows, masses)
    if columns.share_with_extremes(rows, masses) <= FEW_CASES:
        return None
    columns = columns.without(of_few_values(rows))
    return columns if columns.share_with_extremes(rows, masses) > FEW_CASES else None


def wrapped(rows: np.ndarray, masses: np.ndarray | None = None) -> np.ndarray:
    """Return a table without extreme cells."""
    return Columns.of(rows, masses).without(of_few_values(rows)).wrap(rows)


def of_few_values(rows: np.ndarray) -> np.ndarray:
    """Return which columns (p,) have a value that more than SAME_VALUE of their cases share."""
    ordered = np.sort(rows, axis=0)  # a NaN comes last, and is like no other
    apart = int(SAME_VALUE * len(rows))
    return (ordered[apart:] == ordered[: len(rows) - apart]).any(axis=0)


def error_scales(
    errors: np.ndarray, n_clusters: int, masses: np.ndarray | None = None
) -> np.ndarray:
    """Return the scales (p,) of errors (m, p) around the centers of clusters; infinite where 0.

    Centers follow their cases: errors are too small by what n - K has to do with n.
    """
    n = len(errors) if masses is None else masses.sum()
    pulled = np.sqrt(n / max(n - n_clusters, 1))
    scales = MAD_FACTOR * pulled * lower_medians(np.abs(errors), masses)
    return np.where(scales > 0, scales, np.inf)


@dataclass(frozen=True)
class CellBounds:
    """The scales (p,) of errors, in the space of the data, and the cut-off in scales."""

    scales: np.ndarray
    cutoff: float
    extreme_share: float = 1.0  # of the cases, how many have a cell with an extreme error

    @property
    def limits(self) -> np.ndarray:
        """The errors (p,) beyond which cells are flagged."""
        return self.cutoff * self.scales

    def flags(self, rows: np.ndarray, centers: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return which cells (n, p) are outlying; those of a case without a label (-1) are not."""
        return (np.abs(rows - centers[labels]) > self.limits) & (labels >= 0)[:, None]


def flagged(X: Any, labels: np.ndarray, centers: np.ndarray, limits: np.ndarray) -> csr_array:
    """Return which cells (n, p) of a table of any kind are beyond limits from their centers."""
    parts, first = [], 0
    for rows in _pieces(X):
        rows = rows.astype(np.float64)  # differences of the largest numbers overflow in float32
        errors = np.abs(rows - centers[labels[first : first + len(rows)]])
        parts.append(csr_array(errors > limits))
        first += len(rows)
    return csr_array(vstack(parts, format="csr"))


def _pieces(X: Any) -> Iterator[np.ndarray]:
    """Yield the cases of a table, some at a time, in memory."""
    if is_dask(X):
        for block in X.blocks:
            yield to_numpy(block)
        return
    step = max(1, CELLS_AT_ONCE // X.shape[1])
    for first in range(0, X.shape[0], step):
        rows = X[first : first + step]
        yield to_dense(rows) if issparse(rows) else to_numpy(rows)
