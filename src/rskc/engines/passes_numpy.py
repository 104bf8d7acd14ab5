"""The NumPy twin of ``_passes``: same names, same arguments, same results up to rounding.

It runs where there was no compiler, and it is the oracle of the tests. ``n_threads`` is taken so
that the signatures agree; NumPy decides for itself.
"""

import numpy as np

from rskc.engines.masses import SAME_PART

# Cases of a table lie row by row, so that a table is an (n, q) array.
BLOCK = 1

# Work arrays of a pass stay near this size.
WORK_BYTES = 2**24

# Masses that are off by less than this share of what is trimmed are off by rounding.
MASS_SLACK = 1e-11
# Less mass than this, where a case has about 1, is none.
NO_MASS = 1e-9


def has_openmp():
    """Whether the passes were built with OpenMP."""
    return False


def max_threads():
    """How many threads OpenMP would use now."""
    return 1


def _blocks(n, bytes_per_row):
    step = max(1, WORK_BYTES // max(1, bytes_per_row))
    return (slice(start, min(n, start + step)) for start in range(0, n, step))


def _rows(X, q, block):
    """Return a table as an (n, q) array: itself where it lies row by row, else a copy."""
    if block == 1:
        return X.reshape(-1, q)
    starts = range(0, X.size, block * q)
    return np.concatenate([X[i : i + block * q].reshape(q, -1).T for i in starts])


def table(X, columns, location, factor, limits, block, n_threads, out):
    """Write (X - location)[:, columns] * factor, cut off at +-limits, to ``out``, in blocks."""
    q, limits = len(columns), limits[columns]
    step = block if block > 1 else max(1, WORK_BYTES // (16 * q))
    for first in range(0, len(X), step):
        rows = (X[first : first + step][:, columns] - location[columns]) * factor
        rows = np.clip(rows, -limits, limits)
        out[first * q : (first + step) * q] = (rows if block == 1 else rows.T).ravel()


def scale_centers(weights, centers, scaled, constants):
    """Write -2 w c to ``scaled`` and sum w c^2 to ``constants``, for each center."""
    weighted = weights[:, None, :] * centers
    np.multiply(weighted, -2, out=scaled, casting="same_kind")
    constants[...] = np.einsum("rkj,rkj->rk", weighted, centers)


def assign(X, block, scaled, constants, norms, n_threads, labels, costs):
    """Nearest center of every case of a table, for every run."""
    runs, K, q = scaled.shape
    X = _rows(X, q, block)
    for rows in _blocks(len(X), X.itemsize * runs * K):
        distances = (X[rows] @ scaled.reshape(runs * K, q).T).reshape(-1, runs, K) + constants
        nearest = distances.argmin(axis=2)
        least = np.take_along_axis(distances, nearest[:, :, None], axis=2)[:, :, 0]
        labels[:, rows] = nearest.T
        costs[:, rows] = np.maximum(least.T + norms[:, rows], 0)


def trim(labels, costs, m, n_threads, groups, kept):
    """Write the labels to ``groups``, with -1 for the m cases of largest cost.

    The lower number goes first in a tie. kept = the sum of the other costs, for each run.
    """
    groups[...] = labels
    for r, cost in enumerate(costs):
        if m > 0:
            bar = np.partition(cost, len(cost) - m)[len(cost) - m]
            above = cost > bar
            ties = np.flatnonzero(cost == bar)[: m - np.count_nonzero(above)]
            groups[r, above] = -1
            groups[r, ties] = -1
        kept[r] = cost[groups[r] >= 0].sum(dtype=np.float64)


def trim_masses(labels, costs, masses, m, n_threads, groups, kept, cut, left):
    """Do the same by mass: cases go, the largest cost first, until the mass m is gone.

    The last one may go in part and keeps its label: ``cut`` is its number, or -1, and ``left`` what
    is kept of its mass. kept = the sum of masses times costs of what is kept, for each run.
    """
    groups[...], cut[...], left[...] = labels, -1, 0.0
    slack = MASS_SLACK * m
    for r, cost in enumerate(costs):
        if m > 0:
            order = np.argsort(-cost, kind="stable")
            gone = np.cumsum(masses[order])
            whole = int(np.searchsorted(gone, m + slack, side="right"))
            groups[r, order[:whole]] = -1
            rest = m - (gone[whole - 1] if whole else 0.0)
            if whole < len(order) and rest > slack:
                cut[r] = order[whole]
                left[r] = masses[cut[r]] - rest
        own = groups[r] >= 0
        kept[r] = masses[own] @ cost[own].astype(np.float64)
        if cut[r] >= 0:
            kept[r] -= (masses[cut[r]] - left[r]) * cost[cut[r]]


def shift_sums(X, block, location, factor, before, after, n_threads, totals, counts, moved):
    """Bring totals and counts of each group from the grouping ``before`` to ``after``."""
    ones = np.ones(before.shape[1])
    _shift(X, block, location, factor, ones, before, after, totals, counts, moved)


def shift_masses(
    X,
    block,
    location,
    factor,
    masses,
    before,
    after,
    cut_before,
    left_before,
    cut_after,
    left_after,
    n_threads,
    totals,
    counts,
    moved,
):
    """Do the same where each case counts with its mass; counts are masses too.

    Of the cases with the numbers cut (runs, slots), -1 for none, left is what is kept of the mass,
    in either grouping. A run in which another part of a case is kept counts one more case in moved.
    """
    _shift(X, block, location, factor, masses, before, after, totals, counts, moved)
    rows = _rows(X, totals.shape[2], block)
    for groups, cut, left, sign in (
        (before, cut_before, left_before, 1),
        (after, cut_after, left_after, -1),
    ):
        for r, slot in zip(*np.nonzero(cut >= 0), strict=True):
            case = cut[r, slot]
            k = groups[r, case]
            if k >= 0:
                gone = sign * (masses[case] - left[r, slot])
                totals[r, k] += gone * factor * (rows[case] - location)
                counts[r, k] += gone
    used = (cut_before >= 0).sum(axis=1), (cut_after >= 0).sum(axis=1)
    if cut_before.shape != cut_after.shape:
        moved += used[0] != used[1]
        return
    parts = (cut_before >= 0) & (np.abs(left_before - left_after) > SAME_PART)
    moved += ((cut_before != cut_after) | parts).any(axis=1)


def _shift(X, block, location, factor, masses, before, after, totals, counts, moved):
    K, X = totals.shape[1], _rows(X, totals.shape[2], block)
    for r in range(len(before)):
        changed = np.flatnonzero(before[r] != after[r])
        moved[r] = len(changed)
        for groups, sign in ((before[r], -1), (after[r], 1)):
            members = changed[groups[changed] >= 0]
            for k in range(K):
                cases = members[groups[members] == k]
                if len(cases):
                    rows = (X[cases] - location) * masses[cases, None]
                    totals[r, k] += sign * factor * rows.sum(axis=0)
                    counts[r, k] += sign * masses[cases].sum()


def own_distances(X, location, factor, weights, labels, centers, n_threads, out):
    """Distances of (X - location) * factor, weighted and squared, to the center of the label."""
    for r, label in enumerate(labels):
        own = weights[r % len(weights)]
        used = slice(None) if own.all() else np.flatnonzero(own)
        for rows in _blocks(len(X), 16 * X.shape[1]):
            with np.errstate(over="ignore"):  # an outlying cell may be infinitely far away
                errors = (X[rows] - location) * factor - centers[r][label[rows]]
                out[r, rows] = errors[:, used] ** 2 @ own[used]


def row_norms(X, block, weights, n_threads, out):
    """Set out[r, i] to sum_j weights[r, j] x_ij^2 for the cases of a table."""
    X = _rows(X, weights.shape[1], block)
    for rows in _blocks(len(X), 8 * X.shape[1]):
        out[:, rows] = weights @ np.square(X[rows], dtype=np.float64).T


def single_moves(X, block, weights, max_rounds, n_threads, groups, totals, counts, moves):
    """Move or exchange one case at a time while the within sum of squares falls, for every run."""
    X = _rows(X, weights.shape[1], block)
    for r in range(len(groups)):
        run = _Run(X, weights[r % len(weights)], groups[r], totals[r], counts[r])
        moves[r] = run.all_rounds(max_rounds)


def single_moves_missing(
    X, block, weights, scale, max_rounds, n_threads, groups, totals, counts, moves
):
    """Do the same for a table of values and marks (n, 2q)."""
    X = _rows(X, 2 * weights.shape[1], block)
    for r in range(len(groups)):
        own = r % len(weights)
        run = _MissingRun(X, weights[own], groups[r], totals[r], counts[r])
        run.scale = scale[own]
        moves[r] = run.all_rounds(max_rounds)


def move_masses(X, block, weights, masses, max_rounds, n_threads, groups, totals, counts, moves):
    """Move cases that count with their masses; only those of the same mass are exchanged."""
    X = _rows(X, weights.shape[1], block)
    for r in range(len(groups)):
        run = _Run(X, weights[r % len(weights)], groups[r], totals[r], counts[r])
        run.mass = masses
        moves[r] = run.all_rounds(max_rounds)


def move_masses_missing(
    X, block, weights, scale, masses, max_rounds, n_threads, groups, totals, counts, moves
):
    """Do the same for a table of values and marks (n, 2q)."""
    X = _rows(X, 2 * weights.shape[1], block)
    for r in range(len(groups)):
        own = r % len(weights)
        run = _MissingRun(X, weights[own], groups[r], totals[r], counts[r])
        run.scale, run.mass = scale[own], masses
        moves[r] = run.all_rounds(max_rounds)


class _Run:
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
        own, gain = self.groups[kept], self.changes(kept, self.groups[kept], -1)
        loss = np.full(len(kept), np.inf)
        for k in range(len(self.counts)):
            entering = self.changes(kept, np.full(len(kept), k), 1) if self.counts[k] > 0 else 0
            loss = np.where(own == k, loss, np.minimum(loss, entering))
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


class _MissingRun(_Run):
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
