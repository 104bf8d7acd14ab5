"""Single moves of one run, in NumPy: what ``moves_typed.h`` does for the compiled passes."""

import numpy as np

from rskc.engines.tolerances import NO_MASS


class Run:
    """One partition under single moves; changes its groups, totals and counts in place."""

    GAIN = 1 - 1e-10  # a move must gain more than rounding could
    SWEEPS = 10  # over the candidates of one screening
    EXCHANGE_WORK = 50_000  # trimmed cases times columns up to which exchanges are tried

    def __init__(self, X, weights, groups, totals, counts):
        self.X, self.weights = X.astype(np.float64), weights
        self.slack = 1e-12 if X.dtype == np.float64 else 1e-4
        self.groups, self.totals, self.counts = groups, totals, counts
        self.scale = self.mass = np.ones(len(X))
        self.centers = np.array([self.center_of(k) for k in range(len(counts))])

    def all_rounds(self, max_rounds):
        moves = 0
        for _ in range(max_rounds):
            made = self.move_round() or self.exchange_round()
            moves += made
            if made == 0:
                break
        return moves

    def movable(self):
        """Kept cases that gain by a move, as the sums are when a round begins."""
        kept = np.flatnonzero(self.groups >= 0)
        kept = kept[~self.alone(kept)]
        groups, gain = self.groups[kept], self.changes(kept, self.groups[kept], -1)
        loss = np.full(len(kept), np.inf)
        for k in range(len(self.counts)):
            entering = self.changes(kept, np.full(len(kept), k), 1) if self.counts[k] > 0 else 0
            loss = np.where(groups == k, loss, np.minimum(loss, entering))
        values = self.X[kept, : len(self.weights)]
        off = self.slack * self.mass[kept] * (values**2 @ self.weights)
        return kept[loss < gain + off]

    def alone(self, cases):
        """Whether cases are all that their clusters have."""
        return self.counts[self.groups[cases]] - self.mass[cases] < NO_MASS

    def center_of(self, k):
        return self.totals[k] / (self.counts[k] if self.counts[k] > 0 else 1)

    def changes(self, cases, clusters, step):
        """Return the change of the within sum when cases enter clusters (1) or leave them (-1)."""
        d = self.mass[cases] * (((self.X[cases] - self.centers[clusters]) ** 2) @ self.weights)
        return d * self.counts[clusters] / (self.counts[clusters] + step * self.mass[cases])

    def transfer(self, i, k, sign):
        self.counts[k] += sign * self.mass[i]
        self.totals[k] += sign * self.mass[i] * self.X[i]
        if self.counts[k] > 0:
            self.centers[k] = self.center_of(k)

    def entering(self, i):
        k = np.arange(len(self.counts))
        return np.where(self.counts > 0, self.changes(np.full(len(k), i), k, 1), 0)

    def move_round(self):
        moves, candidates = 0, self.movable() if len(self.counts) > 1 else ()
        for _ in range(self.SWEEPS):
            moved = self.sweep(candidates)
            moves += moved
            if moved == 0:
                break
        return moves

    def sweep(self, candidates):
        moves = 0
        for i in candidates:
            a = self.groups[i]
            if self.alone(i):
                continue
            loss = self.entering(i)
            loss[a] = np.inf
            b = loss.argmin()
            if loss[b] < self.changes(i, a, -1) * self.GAIN:
                self.transfer(i, a, -1)
                self.transfer(i, b, 1)
                self.groups[i] = b
                moves += 1
        return moves

    def costliest(self):
        kept = np.flatnonzero(self.groups >= 0)
        kept = kept[~self.alone(kept)]
        if len(kept) == 0:
            return -1, 0.0
        gains = self.scale[kept] * self.changes(kept, self.groups[kept], -1)
        worst = (gains / self.mass[kept]).argmax()
        return kept[worst], gains[worst]

    def exchange_round(self):
        moves, n_out = 0, np.count_nonzero((self.groups == -1) & (self.scale > 0))
        if n_out * len(self.weights) > self.EXCHANGE_WORK:
            return 0
        while moves < len(self.groups):
            out, gain = self.costliest()
            if out < 0 or gain <= 0:
                break
            origin = self.groups[out]
            self.transfer(out, origin, -1)
            best, to, least = out, origin, gain * self.GAIN
            alike = self.mass == self.mass[out]
            for i in np.flatnonzero((self.groups == -1) & (self.scale > 0) & alike):
                loss = self.scale[i] * self.entering(i)
                if loss.min() < least:
                    best, to, least = i, loss.argmin(), loss.min()
            self.groups[out] = -1
            self.transfer(best, to, 1)
            self.groups[best] = to
            if best == out:
                break
            moves += 1
        return moves


class MissingRun(Run):
    """The same where totals count the observed cells of each cluster and feature."""

    def center_of(self, k):
        values, cells = np.split(self.totals[k], 2)
        some = cells > NO_MASS
        return np.where(some, values / np.where(some, cells, 1), 0)

    def changes(self, cases, clusters, step):
        values, marks = np.split(self.X[cases], 2, axis=-1)
        cells = np.split(self.totals[clusters], 2, axis=-1)[1]
        mass = self.mass[cases]
        after = cells + step * mass[..., None]
        some = after > NO_MASS
        share = np.where(some, cells / np.where(some, after, 1), 0)
        return mass * ((marks * share * (values - self.centers[clusters]) ** 2) @ self.weights)
