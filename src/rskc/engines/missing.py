"""The engine for arrays in memory with missing cells. Nothing is imputed.

Distances are over the features observed in both the case and the center, scaled up by the observed
weight; means are over observed cells. A table holds the values, 0 in a missing cell, and beside
them marks, 1 where a cell is observed: then one product of values and marks with ``[-2 w c ; w
c^2]`` gives the distances, and sums of both give totals and counts at once. So the passes are those
for complete data.

A center is NaN in a feature of which its cluster has no observed cell. A case of which nothing that
has weight is observed is *blind*: its distances are infinite, its label is 0, and it is excluded
from everything else.

The two mixins hold what engines and tables of all kinds make of missing cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rskc.engines.base import NO_MASS, BaseEngine, BaseTable, Frame, Sums, above_0, sample_steps
from rskc.engines.interface import Assignment, Listed
from rskc.engines.memory import PASSES, ROWS_BYTES, MemoryEngine, MemoryTable, to_blocks

# Less observed weight than this share of all weight counts as none.
NOTHING = 1e-12
# A distance is summed again, term by term, where what was subtracted from it is this much larger.
CANCELLED = 1e5
# Rows that are taken at once: whole blocks.
ROWS_AT_ONCE = 16384


def _chunks(n: int) -> Iterator[slice]:
    return (slice(first, min(n, first + ROWS_AT_ONCE)) for first in range(0, n, ROWS_AT_ONCE))


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

    def means(self) -> np.ndarray:
        """Return means over observed cells; NaN where there is none."""
        values, cells = np.split(self.totals, 2, axis=2)
        return np.where(cells > NO_MASS, values / above_0(cells), np.nan)

    def values_and_cells(self) -> tuple[np.ndarray, np.ndarray]:
        """Totals (K, p) of the only run, and the number of observed cells in each of them."""
        values, cells = np.split(self.totals[0], 2, axis=1)
        return values, cells

    def between(self) -> np.ndarray:
        """Return B_j as if every case had observed all features that it is judged by."""
        values, cells = np.split(self.totals, 2, axis=2)
        mean = values.sum(axis=1) / above_0(cells.sum(axis=1))
        errors = np.nan_to_num(self.means()) - mean[:, None, :]
        return np.einsum("rkj,rkj->rj", cells, errors**2)

    def factored_between(self, first: np.ndarray, zeroth: np.ndarray) -> np.ndarray:
        """Return B_j from sums (runs, K, p) of f x, and of f over observed cells."""
        values, cells = np.split(self.totals, 2, axis=2)
        means = np.nan_to_num(self.means())
        mean = (values.sum(axis=1) / above_0(cells.sum(axis=1)))[:, None, :]
        return (2 * first * (means - mean) + zeroth * (mean**2 - means**2)).sum(axis=1)


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
            observed = self._row_sums(np.hstack([np.zeros_like(self.weights), self.weights]))
            observed = xp.asarray(observed, dtype=xp.float64)
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

    def assign(self, centers):
        unseen = np.isnan(centers)
        filled = np.where(unseen, 0, centers) if unseen.any() else centers
        constants = np.zeros(centers.shape[:2], self.blocks.dtype)
        labels, costs = self._nearest(self._factors(filled), constants)
        costs *= self.scale
        unseen &= self.weights[:, None, :] > 0
        for run in np.flatnonzero(unseen.any(axis=(1, 2))):
            self._assign_partly_seen(centers[run], run, labels[run], costs[run])
        labels[np.broadcast_to(self.scale == 0, labels.shape)] = 0
        return Assignment(labels, costs)

    def _factors(self, centers):
        """Return what values and marks are multiplied by: -2 w c and w c^2."""
        q, weighted = self.n_columns, self.weights[:, None, :] * centers
        factors = np.empty((*centers.shape[:2], 2 * q), self.blocks.dtype)
        np.multiply(weighted, -2, out=factors[:, :, :q], casting="same_kind")
        np.multiply(weighted, centers, out=factors[:, :, q:], casting="same_kind")
        return factors

    def _assign_partly_seen(self, centers, run, labels, costs):
        """Find the nearest of centers that are not observed in all features, for one run."""
        weights = self.weights[run % len(self.weights)]
        seen = ~np.isnan(centers) * weights
        filled = np.nan_to_num(centers)
        for rows in _chunks(self.n_cases):
            cells = self._gather(np.arange(rows.start, rows.stop), self.width)
            values, marks = np.split(cells.astype(np.float64), 2, axis=1)
            sums = (
                values**2 @ seen.T - 2 * values @ (seen * filled).T + marks @ (seen * filled**2).T
            )
            observed = marks @ seen.T
            with np.errstate(divide="ignore", invalid="ignore"):
                scaled = np.where(observed > 0, sums * weights.sum() / observed, np.inf)
            labels[rows] = scaled.argmin(axis=1)
            least = scaled.min(axis=1)
            costs[rows] = np.where(np.isfinite(least), np.maximum(least, 0), 0)

    def single_moves(self, groups, K, max_rounds=100):
        # Moves lower the sum over observed cells and exchanges the one scaled up for missing ones:
        # together they may cycle, and the number of rounds ends that.
        passes = self.passes.single_moves_missing
        return self._move(passes, (self.scale,), groups, K, max_rounds)


class MissingEngineMixin(BaseEngine):
    """What engines for data with missing cells answer alike."""

    observed_features: np.ndarray  # (p,) whether a feature is observed at all
    sums: Callable[..., Any]
    factored: Callable[..., Any]  # sums with the factors of cases
    _observed_weight: Callable[..., Any]  # (runs, n) of each case

    def equal_weights(self):
        return self.observed_features[None].astype(np.float64)

    def little_seen(self, weights, share):
        seen = self._observed_weight(weights[None])[0, :] / float(weights.sum())
        return Listed.of(self.arrays.numbers_where(seen < share))

    def shift(self, sums, before, after):
        fresh = self.sums(after, sums.counts.shape[1])
        sums.totals[...], sums.counts[...] = fresh.totals, fresh.counts
        return self.arrays.differ(before, after)

    def between(self, sums, groups, weights):
        """Return B_j, each case's terms multiplied by the factor for its missing cells."""
        parts = self.factored(groups, weights, sums.counts.shape[1])
        return np.where(self.observed_features, sums.factored_between(*parts), -1.0)

    def set_aside(self, groups, weights):
        return self.arrays.trimmed(groups) & (self._factors(weights[None]) > 0)

    def _factors(self, weights):
        """Return all weight / observed weight (runs, n) of each case; 0 for a blind one."""
        total = self.arrays.asarray(weights.sum(axis=1, keepdims=True))
        return missing_factors(self._observed_weight(weights), total, self.arrays.xp)

    def _can_rotate(self, weights):
        return False


class MissingEngine(MissingEngineMixin, MemoryEngine):
    """Passes over a C-ordered float32 or float64 array in which NaN marks a missing cell."""

    table_type = MissingTable

    def __init__(self, X, *, frame=None, n_threads=1, passes=PASSES):
        self.observed = ~np.isnan(X)
        frame = frame or observed_frame(X)
        filled = np.where(self.observed, X, frame.location.astype(X.dtype))
        super().__init__(filled, frame=frame, n_threads=n_threads, passes=passes)
        self.missing_rows, self.missing_columns = np.nonzero(~self.observed)
        self.n_missing = len(self.missing_rows)
        self.observed_features = self.observed.any(axis=0)

    def rows(self, cases):
        return np.where(self.observed[cases], self.X[cases], np.nan)

    def sums(self, groups, K):
        values = Sums.empty(len(groups), K, self.n_features)
        MemoryEngine.shift(self, values, np.full_like(groups, -1), groups)
        ones = np.ones(len(self.missing_rows))
        cells = [
            count[:, None] - self._missing_cells(row, ones, K)
            for row, count in zip(groups, values.counts, strict=True)
        ]
        return MissingSums(np.concatenate([values.totals, cells], axis=2), values.counts)

    def distances(self, labels, centers, weights=None):
        weights = self.equal_weights() if weights is None else weights
        filled = np.nan_to_num(centers)
        out = super().distances(labels, filled, weights)
        for r, label in enumerate(labels):
            own = weights[r % len(weights)]
            cost, seen = out[r], own.sum() - self._missing_weight(own)
            pulls = (own * filled[r] ** 2)[label[self.missing_rows], self.missing_columns]
            pulls = np.bincount(self.missing_rows, pulls, self.n_cases)
            cost -= pulls
            unseen = self._leave_out_unseen(centers[r], label, own, cost, seen)
            # Not ">": infinity less infinity is doubtful too.
            doubtful = np.flatnonzero(~(pulls + unseen <= CANCELLED * np.abs(cost)))
            cost[doubtful] = self._sums_over_observed(doubtful, centers[r], label, own)
            out[r] = scaled_up(cost, seen, own.sum())
        return out

    def factored(self, groups, weights, K):
        """Return sums (runs, K, p) of f x, and of f over observed cells; f is a case's factor."""
        return self._factored(groups, self._factors(weights), K)

    def _factored(self, groups, factors, K):
        zeroth = [
            np.bincount(row[row >= 0], own[row >= 0], K)[:, None]
            - self._missing_cells(row, own[self.missing_rows], K)
            for row, own in zip(groups, factors, strict=True)
        ]
        return self._factored_sums(groups, factors, K), np.stack(zeroth)

    def _factored_sums(self, groups, factors, K):
        """Sum f x over the cases of each cluster: (runs, K, p)."""
        runs = len(groups)
        first = np.zeros((runs * K, self.n_features))
        for rows in _chunks(self.n_cases):
            run, case = np.nonzero(groups[:, rows] >= 0)
            members = np.zeros((runs * K, len(self.X[rows])))
            members[run * K + groups[:, rows][run, case], case] = factors[:, rows][run, case]
            first += members @ self.frame.place(self.X[rows])
        return first.reshape(runs, K, -1)

    def _missing_cells(self, groups, values, K):
        """Sum values of the missing cells of each cluster and feature: (K, p)."""
        own = groups[self.missing_rows]
        kept = own >= 0
        cells = own[kept].astype(np.int64) * self.n_features + self.missing_columns[kept]
        sums = np.bincount(cells, values[kept], K * self.n_features)
        return sums.reshape(K, self.n_features)

    def _observed_weight(self, weights):
        """Return the weight (runs, n) that is observed of each case."""
        return np.stack([own.sum() - self._missing_weight(own) for own in weights])

    def _missing_weight(self, weights):
        return np.bincount(self.missing_rows, weights[self.missing_columns], self.n_cases)

    def _leave_out_unseen(self, centers, labels, weights, cost, seen):
        """Take features out in which a center is not observed; return what they had added."""
        taken = np.zeros(self.n_cases)
        for k, j in np.argwhere(np.isnan(centers) & (weights > 0)):
            cases = np.flatnonzero((labels == k) & self.observed[:, j])
            place = (self.X[cases, j] - self.frame.location[j]) * self.frame.factor
            taken[cases] += weights[j] * place**2
            seen[cases] -= weights[j]
        cost -= taken
        return taken

    def _sums_over_observed(self, cases, centers, labels, weights):
        """Return the sums in the distances of some cases, term by term."""
        errors = self.frame.place(self.X[cases]) - centers[labels[cases]]
        counted = self.observed[cases] & ~np.isnan(errors) & (weights > 0)
        terms = np.where(counted, errors**2, 0)
        return terms @ weights

    def lay_out(self, columns, dtype):
        q, shape = len(columns), (self.n_cases, 2 * len(columns))
        blocks, by_rows = np.empty(shape, dtype), None
        most = max(ROWS_BYTES, 2 * self.X.nbytes - blocks.nbytes)
        if self.passes.BLOCK > 1 and blocks.nbytes <= most:
            by_rows = np.empty(shape, dtype)
        for rows in _chunks(self.n_cases):
            X = self.X[rows]
            values = np.empty(len(X) * q, dtype)
            self.passes.table(X, columns, *self.frame, 1, self._threads(4 * q), values)
            marks = self.observed[rows][:, columns].astype(dtype)
            part = np.hstack([values.reshape(-1, q), marks])
            blocks[rows] = to_blocks(part, self.passes.BLOCK).reshape(part.shape)
            if by_rows is not None:
                by_rows[rows] = part
        return blocks.reshape(-1), None if by_rows is None else by_rows.reshape(-1)


def observed_frame(X: np.ndarray) -> Frame:
    """Frame X by cells that are observed; its location is exact in the type of X.

    About 31 rows stand for all: in each column, missing cells among them are filled with observed
    cells.
    """
    sample = X[:: sample_steps(*X.shape)[0]].copy()
    for j in np.flatnonzero(np.isnan(sample).any(axis=0)):
        missing = np.isnan(sample[:, j])
        cells = sample[~missing, j] if not missing.all() else X[~np.isnan(X[:, j]), j]
        sample[missing, j] = np.resize(cells, missing.sum()) if len(cells) else 0.0
    frame = Frame.from_rows(sample, sample)
    return frame._replace(location=frame.location.astype(X.dtype).astype(np.float64))
