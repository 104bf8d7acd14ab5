"""Single moves of one run on a sparse table: those of ``moves_numpy``, by products."""

import numpy as np

from rskc.engines.moves_numpy import Run


class SparseRun(Run):
    """One partition under single moves; changes its groups, totals and counts in place."""

    def __init__(self, cells, norms, weights, masses, groups, totals, counts):
        self.cells, self.norms, self.weights, self.slack = cells, norms, weights, 1e-12
        self.mass = masses
        self.groups, self.totals, self.counts = groups, totals, counts
        self.scale = np.ones(len(groups))
        self.factors, self.constants = np.empty(totals.shape), np.empty(len(counts))
        for k in range(len(counts)):
            self._update(k)

    def _update(self, k):
        """Bring what products with the center of cluster k need up to date."""
        shifted = self.center_of(k) + self.cells.offset
        weighted = self.weights * shifted
        self.factors[k] = (2 * self.cells.factor) * weighted
        self.constants[k] = weighted @ shifted

    def _to_all(self, cases):
        """Return the distances (cases, K) to all centers."""
        products = self.cells.Z[cases] @ self.factors.T
        return np.maximum(self.norms[cases, None] - products + self.constants, 0)

    def _case(self, i):
        """Return the stored cells of a case, and their columns."""
        Z = self.cells.Z
        some = slice(Z.indptr[i], Z.indptr[i + 1])
        return Z.data[some].astype(np.float64), Z.indices[some]

    def _row(self, i):
        cells, columns = self._case(i)
        distances = self.norms[i] - self.factors[:, columns] @ cells + self.constants
        return np.maximum(distances, 0)

    def movable(self):
        kept = np.flatnonzero(self.groups >= 0)
        kept = kept[~self.alone(kept)]
        groups, mass, n = self.groups[kept], self.mass[kept], self.counts
        rows = np.arange(len(kept))
        distances = self._to_all(kept) * mass[:, None]
        gain = distances[rows, groups] * n[groups] / (n[groups] - mass)
        loss = np.where(n > 0, distances * n / (n + mass[:, None]), 0)
        loss[rows, groups] = np.inf
        return kept[loss.min(axis=1) < gain + self.slack * mass * self.norms[kept]]

    def changes(self, cases, clusters, step):
        if np.ndim(cases) == 0:
            distances = self._row(cases)[clusters]
        else:
            distances = self._to_all(cases)[np.arange(len(cases)), clusters]
        mass, n = self.mass[cases], self.counts[clusters]
        return mass * distances * n / (n + step * mass)

    def entering(self, i):
        changes = self._row(i) * self.mass[i] * self.counts / (self.counts + self.mass[i])
        return np.where(self.counts > 0, changes, 0)

    def transfer(self, i, k, sign):
        cells, columns = self._case(i)
        change = sign * self.mass[i]
        self.counts[k] += change
        self.totals[k, columns] += (change * self.cells.factor) * cells
        self.totals[k] -= change * self.cells.offset
        if self.counts[k] > 0:
            self._update(k)
