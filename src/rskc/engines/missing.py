"""The engine for arrays in memory with missing cells. Nothing is imputed.

Distances are over the features observed in both the case and the center, scaled up by the observed
weight; means are over observed cells. A table holds the values, 0 in a missing cell, and beside
them marks, 1 where a cell is observed: then one product of values and marks with ``[-2 w c ; w
c^2]`` gives the distances, and sums of both give totals and counts at once. So the passes are those
for complete data.

A center is NaN in a feature of which its cluster has no observed cell. A case of which nothing that
has weight is observed is *blind*: its distances are infinite, its label is 0, and it has no say.
"""

from __future__ import annotations

import numpy as np

from rskc.engines.frame import Frame, sample_steps
from rskc.engines.interface import Assignment, Grouping, Listed, Sums
from rskc.engines.memory import (
    FLOAT32,
    PASSES,
    ROWS_BYTES,
    MemoryEngine,
    MemoryTable,
    to_blocks,
)

# A distance is summed again, term by term, where what was subtracted from it is so much larger.
CANCELLED = 1e5
# Rows that are taken at once: whole blocks.
CHUNK = 16384


class MissingSums(Sums):
    """Sums whose totals are of values, and then of marks: the number of observed cells."""

    factored = True

    def means(self) -> np.ndarray:
        """Means over observed cells; NaN where there is none."""
        values, cells = np.split(self.totals, 2, axis=2)
        return np.where(cells > 0.5, values / np.maximum(cells, 1), np.nan)

    def values_and_cells(self) -> tuple[np.ndarray, np.ndarray]:
        """Totals (K, p) of the only run, and the number of observed cells in each of them."""
        values, cells = np.split(self.totals[0], 2, axis=1)
        return values, cells

    def between(self) -> np.ndarray:
        """B_j as if every case had observed all features that it is judged by."""
        values, cells = np.split(self.totals, 2, axis=2)
        mean = values.sum(axis=1) / np.maximum(cells.sum(axis=1), 1)
        errors = np.nan_to_num(self.means()) - mean[:, None, :]
        return np.einsum("rkj,rkj->rj", cells, errors**2)

    def factored_between(self, first: np.ndarray, zeroth: np.ndarray) -> np.ndarray:
        """B_j from sums of f x, and of f over observed cells, of each cluster and feature."""
        values, cells = np.split(self.totals, 2, axis=2)
        means = np.nan_to_num(self.means())
        mean = (values.sum(axis=1) / np.maximum(cells.sum(axis=1), 1))[:, None, :]
        return (2 * first * (means - mean) + zeroth * (mean**2 - means**2)).sum(axis=1)


class MissingTable(MemoryTable):
    """Values and marks of the columns that carry weight."""

    width_factor = 2
    sums_type = MissingSums

    _scale = None

    @property
    def scale(self):
        """Factor of distances for missing cells: all weight / observed weight; 0 if blind."""
        if self._scale is None:
            padded = np.hstack([np.zeros_like(self.weights), self.weights])
            observed = self._row_sums(padded).astype(np.float64)
            total = self.weights.sum(axis=1, keepdims=True)
            seen = observed > 1e-12 * total
            self._scale = np.where(seen, total / np.maximum(observed, 1e-300), 0.0)
        return self._scale

    def norms(self):
        if self._norms is None:
            padded = np.hstack([self.weights, np.zeros_like(self.weights)])
            self._norms = self._row_sums(padded).astype(self.blocks.dtype)
        return self._norms

    def of_runs(self, index):
        part = super().of_runs(index)
        if part is not self:
            part._scale = self.scale[index]
        return part

    def assign(self, centers):
        unseen = np.isnan(centers)
        filled = np.where(unseen, 0, centers) if unseen.any() else centers
        labels, costs = self._nearest(self._factors(filled), np.zeros(centers.shape[:2]))
        costs *= self.scale
        unseen &= self.weights[:, None, :] > 0
        for run in np.flatnonzero(unseen.any(axis=(1, 2))):
            self._assign_partly_seen(centers[run], run, labels[run], costs[run])
        labels[np.broadcast_to(self.scale == 0, labels.shape)] = 0
        return Assignment(labels, costs)

    def _factors(self, centers):
        """What values and marks are multiplied by: -2 w c and w c^2."""
        q, weighted = self.n_columns, self.weights[:, None, :] * centers
        factors = np.empty((*centers.shape[:2], 2 * q), self.blocks.dtype)
        np.multiply(weighted, -2, out=factors[:, :, :q], casting="same_kind")
        np.multiply(weighted, centers, out=factors[:, :, q:], casting="same_kind")
        return factors

    def _assign_partly_seen(self, centers, run, labels, costs):
        """Distances to centers that are not observed in all features, one by one."""
        weights = self.weights[run % len(self.weights)]
        seen = ~np.isnan(centers) * weights
        filled = np.nan_to_num(centers)
        for start in range(0, self.n_cases, CHUNK):
            rows = slice(start, min(start + CHUNK, self.n_cases))
            values, marks = np.split(self._range_of_rows(rows), 2, axis=1)
            sums = (
                values**2 @ seen.T - 2 * values @ (seen * filled).T + marks @ (seen * filled**2).T
            )
            observed = marks @ seen.T
            with np.errstate(divide="ignore", invalid="ignore"):
                scaled = np.where(observed > 0, sums * weights.sum() / observed, np.inf)
            labels[rows] = scaled.argmin(axis=1)
            least = scaled.min(axis=1)
            costs[rows] = np.where(np.isfinite(least), np.maximum(least, 0), 0)

    def _range_of_rows(self, rows):
        if self.row_block == 1:
            return self.rows.reshape(self.n_cases, -1)[rows].astype(np.float64)
        return self._gather(np.arange(rows.start, rows.stop), self.width)

    def trim(self, assignment, m):
        groups, within = super().trim(assignment, m)
        return Grouping(self.exclude(groups), within)

    def exclude(self, groups):
        return np.where(self.scale == 0, np.int32(-1), groups)

    def single_moves(self, groups, K, max_rounds=100):
        # Moves lower the sum over observed cells and exchanges the one scaled up for missing ones:
        # together they may cycle, and the number of rounds ends that.
        passes = self.passes.single_moves_missing
        return self._move(passes, (self.scale,), groups, K, max_rounds)


class MissingEngine(MemoryEngine):
    """Passes over a C-ordered float32 or float64 array in which NaN marks a missing cell."""

    def __init__(self, X, *, frame=None, n_threads=1, passes=PASSES):
        self.observed = ~np.isnan(X)
        frame = frame or observed_frame(X)
        filled = np.where(self.observed, X, frame.location.astype(X.dtype))
        super().__init__(filled, frame=frame, n_threads=n_threads, passes=passes)
        self.missing_rows, self.missing_columns = np.nonzero(~self.observed)
        self.n_missing = len(self.missing_rows)

    def part(self, cases):
        X = np.where(self.observed[cases], self.X[cases], np.nan)
        return MissingEngine(X, frame=self.frame, n_threads=self.n_threads, passes=self.passes)

    def equal_weights(self):
        return self.observed.any(axis=0)[None].astype(np.float64)

    def compact_table(self, weights):
        return self.table(weights)

    def search_table(self, weights):
        return self._columns_table(weights, FLOAT32)

    def sums(self, groups, K):
        values = super().sums(groups, K)
        cells = np.stack(
            [self._cells(row, count) for row, count in zip(groups, values.counts, strict=True)]
        )
        return MissingSums(np.concatenate([values.totals, cells], axis=2), values.counts)

    def shift(self, sums, before, after):
        if not isinstance(sums, MissingSums):
            return super().shift(sums, before, after)
        fresh = self.sums(after, sums.counts.shape[1])
        sums.totals[...], sums.counts[...] = fresh.totals, fresh.counts
        return np.count_nonzero(before != after, axis=1)

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
            doubtful = np.flatnonzero(pulls + unseen > CANCELLED * np.abs(cost))
            cost[doubtful] = self._sums_over_observed(doubtful, centers[r], label, own)
            with np.errstate(divide="ignore", invalid="ignore"):
                scaled = np.maximum(cost, 0) * own.sum() / seen
            out[r] = np.where(seen > 1e-12 * own.sum(), scaled, np.inf)
        return out

    def between(self, sums, groups, weights):
        """B_j, each case's terms carrying the factor for its missing cells."""
        parts = self.factored(groups, weights, sums.counts.shape[1])
        return np.where(self.equal_weights() > 0, sums.factored_between(*parts), -1.0)

    def factored(self, groups, weights, K):
        """Sums (runs, K, p) of f x, and of f over observed cells; f is the factor of a case."""
        factors = np.stack([self._factors(row) for row in weights])
        rows = zip(groups, factors, strict=True)
        zeroth = np.stack([self._factored_cells(*row, K) for row in rows])
        return self._factored_sums(groups, factors, K), zeroth

    def set_aside(self, groups, weights):
        return (groups < 0) & (self._factors(weights) > 0)

    def _factors(self, weights):
        """All weight / observed weight of each case; 0 for a blind one."""
        total, seen = weights.sum(), weights.sum() - self._missing_weight(weights)
        return np.where(seen > 1e-12 * total, total / np.maximum(seen, 1e-300), 0.0)

    def _factored_sums(self, groups, factors, K):
        """Sums of f x over the cases of each cluster, (runs, K, p)."""
        runs = len(groups)
        first = np.zeros((runs * K, self.n_features))
        for start in range(0, self.n_cases, CHUNK):
            rows = slice(start, start + CHUNK)
            run, case = np.nonzero(groups[:, rows] >= 0)
            members = np.zeros((runs * K, len(self.X[rows])))
            members[run * K + groups[:, rows][run, case], case] = factors[:, rows][run, case]
            first += members @ self.frame.place(self.X[rows])
        return first.reshape(runs, K, -1)

    def _factored_cells(self, groups, factors, K):
        """Sums of f over the observed cells of each cluster and feature, (K, p)."""
        kept = groups >= 0
        totals = np.bincount(groups[kept], factors[kept], K)[:, None]
        return totals - self._missing_cells(groups, factors[self.missing_rows], K)

    def _cells(self, groups, counts):
        """Observed cells (K, p) of each cluster and feature."""
        missing = self._missing_cells(groups, np.ones(len(self.missing_rows)), len(counts))
        return counts[:, None] - missing

    def _missing_cells(self, groups, values, K):
        own = groups[self.missing_rows]
        kept = own >= 0
        cells = own[kept].astype(np.int64) * self.n_features + self.missing_columns[kept]
        sums = np.bincount(cells, values[kept], K * self.n_features)
        return sums.reshape(K, self.n_features)

    def little_seen(self, weights, share):
        seen = 1 - self._missing_weight(weights) / weights.sum()
        return Listed.of(np.flatnonzero(seen < share))

    def distinct(self, most):
        seen = set()
        for row, observed in zip(self.X, self.observed, strict=True):
            seen.add((row + 0.0).tobytes() + observed.tobytes())
            if len(seen) >= most:
                break
        return len(seen)

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
        """The sum in a distance, term by term."""
        errors = self.frame.place(self.X[cases]) - centers[labels[cases]]
        terms = np.where(self.observed[cases] & ~np.isnan(errors), errors**2, 0)
        return terms @ weights

    def _table_of(self, *parts):
        return MissingTable(*parts)

    def _lay_out(self, columns, dtype):
        shape = self.n_cases, 2 * len(columns)
        blocks, rows = np.empty(shape, dtype), None
        if self.passes.BLOCK > 1 and blocks.nbytes <= max(
            ROWS_BYTES, 2 * self.X.nbytes - blocks.nbytes
        ):
            rows = np.empty(shape, dtype)
        for start in range(0, self.n_cases, CHUNK):
            part = self._values_and_marks(slice(start, start + CHUNK), columns, dtype)
            blocks[start : start + CHUNK] = to_blocks(part, self.passes.BLOCK).reshape(part.shape)
            if rows is not None:
                rows[start : start + CHUNK] = part
        return blocks.reshape(-1), None if rows is None else rows.reshape(-1)

    def _values_and_marks(self, rows, columns, dtype):
        X, q = self.X[rows], len(columns)
        values = np.empty(len(X) * q, dtype)
        self.passes.table(X, columns, *self.frame, 1, self._threads(4 * q), values)
        return np.hstack([values.reshape(-1, q), self.observed[rows][:, columns].astype(dtype)])


def observed_frame(X: np.ndarray) -> Frame:
    """Frame X by cells that are observed; its location is exact in the type of X.

    Some 31 rows stand for all: in each column, missing cells among them are filled with observed
    cells.
    """
    sample = X[:: sample_steps(*X.shape)[0]].copy()
    for j in np.flatnonzero(np.isnan(sample).any(axis=0)):
        missing = np.isnan(sample[:, j])
        cells = sample[~missing, j] if not missing.all() else X[~np.isnan(X[:, j]), j]
        sample[missing, j] = np.resize(cells, missing.sum()) if len(cells) else 0.0
    frame = Frame.from_rows(sample, sample)
    return frame._replace(location=frame.location.astype(X.dtype).astype(np.float64))
