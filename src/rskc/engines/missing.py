"""The engine for arrays in memory with missing cells. Nothing is imputed.

Distances are over the features observed in both the case and the center, scaled up by the observed
weight; means are over observed cells. The data stay as they are, NaN included. A table holds the
values, 0 in a missing cell, and beside them marks, 1 where a cell is observed: then one product of
values and marks with ``[-2 w c ; w c^2]`` gives the distances, and sums of both give totals and
counts at once.

A center is NaN in a feature of which its cluster has no observed cell. A case of which nothing that
has weight is observed is *blind*: its distances are infinite, its label is 0, and it is excluded
from everything else.

The two mixins hold what engines and tables of all kinds make of missing cells.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from rskc.engines.base import NO_MASS, BaseEngine, BaseTable, Frame, Sums, above_0, sample_steps
from rskc.engines.interface import Assignment, Listed
from rskc.engines.memory import NOTHING_CUT, PASSES, MemoryEngine, MemoryTable
from rskc.engines.passes_numpy import NOTHING
from rskc.engines.teams import team

# Rows that are looked at together.
ROWS_AT_ONCE = 16384


def missing_factors(observed: Any, total: Any, xp: Any = np) -> Any:
    """Return all weight / observed weight, by which distances are scaled up; 0 if there is none."""
    some = observed > NOTHING * total
    one, zero = xp.ones_like(observed), xp.zeros_like(observed)
    return xp.where(some, total / xp.where(some, observed, one), zero)


def scaled_up(sums: Any, observed: Any, total: float, xp: Any = np) -> Any:
    """Return distances over observed features, scaled up; infinite where nothing is observed."""
    some = observed > NOTHING * total
    scaled = sums * total / xp.where(some, observed, xp.ones_like(observed))
    scaled = xp.where(scaled < 0, xp.zeros_like(scaled), scaled)
    return xp.where(some, scaled, xp.full_like(scaled, float("inf")))


class MissingSums(Sums):
    """Sums whose totals are of values, and then of marks: the number of observed cells."""

    factored = True

    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the totals (runs, K, p) of values, and those of marks."""
        p = self.totals.shape[2] // 2
        return self.totals[:, :, :p], self.totals[:, :, p:]

    def means(self) -> np.ndarray:
        """Return means over observed cells; NaN where there is none."""
        values, cells = self.halves()
        means = np.where(cells > NO_MASS, cells, np.nan)
        return np.divide(values, means, out=means)

    def values_and_cells(self) -> tuple[np.ndarray, np.ndarray]:
        """Totals (K, p) of the only run, and the number of observed cells in each of them."""
        values, cells = self.halves()
        return values[0], cells[0]

    def between(self) -> np.ndarray:
        """Return B_j as if every case had observed all features that it is judged by."""
        means, mean = self._means_and_mean()
        return np.einsum("rkj,rkj->rj", self.halves()[1], (means - mean) ** 2)

    def factored_between(self, first: np.ndarray, zeroth: np.ndarray) -> np.ndarray:
        """Return B_j from sums (runs, K, p) of f x, and of f over observed cells."""
        means, mean = self._means_and_mean()
        return (2 * first * (means - mean) + zeroth * (mean**2 - means**2)).sum(axis=1)

    def _means_and_mean(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the means (runs, K, p), 0 where there is none, and those of all clusters."""
        values, cells = self.halves()
        means = np.where(cells > NO_MASS, values, 0.0) / above_0(cells)
        return means, (values.sum(axis=1) / above_0(cells.sum(axis=1)))[:, None, :]


class MissingTableMixin(BaseTable):
    """Values, 0 in a missing cell, and beside them marks, 1 where a cell is observed."""

    width_factor = 2
    sums_type = MissingSums
    _scale: Any = None

    @property
    def scale(self):
        """Factor of distances for missing cells: all weight / observed weight; 0 if blind."""
        if self._scale is None:
            xp, total = self.arrays.xp, self.weights.sum(axis=1, keepdims=True)
            of_marks = np.hstack([np.zeros_like(self.weights), self.weights])
            observed = self._row_sums(of_marks, xp.float64)
            self._scale = missing_factors(observed, self.arrays.asarray(total), xp)
        return self._scale

    def norms(self):
        if self._norms is None:
            padded = np.hstack([self.weights, np.zeros_like(self.weights)])
            self._norms = self._row_sums(padded)
        return self._norms

    def of_runs(self, index):
        part = super().of_runs(index)
        if part is not self:
            part._scale = self.arrays.take(self.scale, index)
        return part

    def exclude(self, groups):
        return self.arrays.without(groups, self.scale == 0)


class MissingTable(MissingTableMixin, MemoryTable):
    """Values and marks of the columns that carry weight."""

    _has_blind: bool | None = None

    def of_runs(self, index):
        part = super().of_runs(index)
        if part is not self:
            part._has_blind = None
        return part

    def assign(self, centers):
        runs, K, q = centers.shape
        centers = np.ascontiguousarray(centers, np.float64)
        scaled = np.empty((runs, K, 2 * q), self.blocks.dtype)
        starts, threads = np.empty(runs * K + 1, np.int64), team(4 * scaled.size, self.n_threads)
        self.passes.scale_centers_missing(self.weights, centers, threads, scaled, starts)
        columns = np.empty(starts[-1], np.int64)
        if len(columns):
            self.passes.unseen_features(self.weights, centers, starts, threads, columns)
        labels = np.empty((runs, self.n_cases), np.int32)
        costs = np.empty((runs, self.n_cases), self.blocks.dtype)
        self.passes.assign_missing(
            self.blocks,
            self.passes.BLOCK,
            scaled,
            starts,
            columns,
            self.weights,
            self.norms(),
            self.scale,
            self._threads(runs * K * self.width),
            labels,
            costs,
        )
        return Assignment(labels, costs)

    def exclude(self, groups):
        if self._has_blind is None:
            self._has_blind = not self.scale.all()
        return super().exclude(groups) if self._has_blind else groups

    def single_moves(self, groups, K, max_rounds=100):
        # Moves lower the sum over observed cells and exchanges the one scaled up for missing ones:
        # together they may cycle, and the number of rounds ends that.
        return self._move(self.passes.single_moves, self.scale, groups, K, max_rounds)


class MissingEngineMixin(BaseEngine):
    """What engines for data with missing cells answer alike."""

    observed_features: np.ndarray  # (p,) whether a feature is observed at all
    sums: Callable[..., Any]
    factored: Callable[..., Any]  # sums with the factors of cases
    _factors: Callable[..., Any]  # (runs, n) all weight / observed weight; 0 for a blind case

    def equal_weights(self):
        return self.observed_features[None].astype(np.float64)

    def little_seen(self, weights, share):
        factors = self._factors(weights[None])[0, :]
        return Listed.of(self.arrays.numbers_where((factors == 0) | (factors * share > 1)))

    def between(self, sums, groups, weights):
        """Return B_j, each case's terms multiplied by the factor for its missing cells."""
        parts = self.factored(groups, weights, sums.counts.shape[1])
        return np.where(self.observed_features, sums.factored_between(*parts), -1.0)

    def set_aside(self, groups, weights):
        return self.arrays.trimmed(groups) & (self._factors(weights[None]) > 0)

    def _can_rotate(self, weights):
        return False


class MissingEngine(MissingEngineMixin, MemoryEngine):
    """Passes over a C-ordered float32 or float64 array in which NaN marks a missing cell."""

    table_type = MissingTable
    sums_type = MissingSums

    def __init__(self, X, *, frame=None, n_threads=1, passes=PASSES):
        frame = frame or observed_frame(X)
        super().__init__(X, frame=frame, n_threads=n_threads, passes=passes)

    @cached_property
    def observed_cells(self):
        """The number of observed cells of each feature."""
        starts = range(0, self.n_cases, ROWS_AT_ONCE)
        parts = (np.isnan(self.X[start : start + ROWS_AT_ONCE]) for start in starts)
        return self.n_cases - sum(np.count_nonzero(part, axis=0) for part in parts)

    @cached_property
    def n_missing(self):  # type: ignore[override]
        return self.X.size - int(self.observed_cells.sum())

    @cached_property
    def observed_features(self):  # type: ignore[override]
        return self.observed_cells > 0

    def largest_cell(self):
        return float(max(np.nanmax(self.X), -np.nanmin(self.X)))

    def factored(self, groups, weights, K):
        """Return sums (runs, K, p) of f x, and of f over observed cells; f is a case's factor."""
        return self._factored(groups, self._factors(weights), K)

    def _factored(self, groups, factors, K):
        sums = self.sums_type.empty(len(groups), K, self.width)
        moved, (location, factor, _) = np.empty(len(groups), np.int64), self.frame
        none, threads = np.full_like(groups, -1), self._threads(len(groups) * self.width)
        self.passes.shift_sums(
            self.X.reshape(-1),
            1,
            location,
            factor,
            factors,
            none,
            groups,
            *NOTHING_CUT,
            threads,
            sums.totals,
            sums.counts,
            moved,
        )
        return sums.halves()

    def _factors(self, weights):
        out = np.empty((len(weights), self.n_cases))
        self.passes.missing_factors(self.X, weights, self._threads(weights.size), out)
        return out


def observed_frame(X: np.ndarray) -> Frame:
    """Frame X by cells that are observed; its location is exact in the type of X.

    About 31 rows stand for all: in each column, missing cells among them are filled with observed
    cells.
    """
    sample = X[:: sample_steps(*X.shape)[0]]
    missing = np.isnan(sample)
    # The observed cells of a column, in order, over and over.
    places = np.arange(len(sample))[:, None] % np.maximum(np.count_nonzero(~missing, axis=0), 1)
    places = np.take_along_axis(np.argsort(missing, axis=0, kind="stable"), places, axis=0)
    sample = np.take_along_axis(sample, places, axis=0)
    for j in np.flatnonzero(missing.all(axis=0)):
        cells = X[~np.isnan(X[:, j]), j]
        sample[:, j] = np.resize(cells, len(sample)) if len(cells) else 0.0
    frame = Frame.from_rows(sample, sample)
    return frame._replace(location=frame.location.astype(X.dtype).astype(np.float64))
