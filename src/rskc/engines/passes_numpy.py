"""The NumPy twin of ``_passes``: same names, same arguments, same results up to rounding.

It runs where there was no compiler, and it is the oracle of the tests. ``n_threads`` is taken so
that the signatures agree, NumPy decides for itself; so is ``block``, and is 1.
"""

from typing import Any

import numpy as np

# Cases of a table lie row by row, so that a table is an (n, q) array.
BLOCK = 1
HAS_OPENMP = False

# What counts as none and as the same; ``kernels.h`` has these numbers too.
# Less mass than this, where a case has about 1, is none.
NO_MASS = 1e-9
# Masses that are off by less than this share of what is trimmed are off by rounding.
MASS_SLACK = 1e-11
# Parts of a case that differ by less are the same: sums of masses are rounded.
SAME_PART = 1e-9
# Less observed weight than this share of all weight counts as none.
NOTHING = 1e-12

# Work arrays of a pass stay near this size.
WORK_BYTES = 2**24


def max_threads():
    """How many threads OpenMP would use now."""
    return 1


def _pieces(n, bytes_per_row):
    step = max(1, WORK_BYTES // max(1, bytes_per_row))
    return (slice(start, min(n, start + step)) for start in range(0, n, step))


def _framed(X, location, factor, columns, copies):
    """Yield cases in pieces, in the frame."""
    for rows in _pieces(len(X), 8 * copies * len(columns)):
        yield rows, (X[rows][:, columns] - location[columns]) * factor


def table(X, columns, location, factor, limits, block, n_threads, out):
    """Write (X - location)[:, columns] * factor, cut off at +-limits, to ``out``, in blocks.

    Where there is room for twice as many columns, values, 0 for a NaN, are followed by marks: 1
    where a cell is observed, 0 where it is NaN.
    """
    out, limits = out.reshape(len(X), -1), limits[columns]
    for rows, cells in _framed(X, location, factor, columns, 2):
        cells = np.clip(cells, -limits, limits)
        out[rows] = cells if out.shape[1] == len(columns) else _with_marks(cells)


def _with_marks(rows):
    """Return values, 0 for a NaN, and marks beside them, 1 where they are none."""
    seen = ~np.isnan(rows)
    return np.hstack([np.where(seen, rows, 0), seen])


def scale_centers(weights, centers, scaled, constants):
    """Write -2 w c to ``scaled`` and sum w c^2 to ``constants``, for each center."""
    weighted = weights[:, None, :] * centers
    np.multiply(weighted, -2, out=scaled, casting="same_kind")
    constants[...] = np.einsum("rkj,rkj->rk", weighted, centers)


def assign(X, block, weights, centers, norms, scale, n_threads, labels, costs):
    """Nearest of the centers (runs, K, q) of every case of a table, for every run.

    norms = sum w x^2 of each case; one row for all runs or one a run, as weights. With scale (else
    None) the table has values and marks (n, 2q), a center is NaN in a feature of which it has no
    cell, and distances are multiplied by scale for the missing cells of each case. Label and cost
    are 0 where scale is, and cost is too where no center is observed.
    """
    X = X.reshape(labels.shape[1], -1)
    for r, center in enumerate(centers):
        row = r % len(weights)
        if scale is None:
            scaled, constants = np.empty(center.shape, costs.dtype), np.empty(len(center))
            scale_centers(weights[[row]], center[None], scaled[None], constants[None])
            distances = X @ scaled.T + constants.astype(costs.dtype)
            least = np.maximum(distances.min(axis=1) + norms[row], 0)
        else:
            values, marks = np.split(X.astype(np.float64), 2, axis=1)
            seen, filled = np.where(np.isnan(center), 0, weights[row]), np.nan_to_num(center)
            sums = values**2 @ seen.T + marks @ (seen * filled**2).T
            sums -= 2 * values @ (seen * filled).T
            distances = scaled_up(sums, marks @ seen.T, weights[row].sum())
            least = distances.min(axis=1)
        labels[r], costs[r] = distances.argmin(axis=1), np.where(np.isfinite(least), least, 0)


def trim(labels, costs, masses, m, n_threads, groups, kept, cut, left):
    """Write the labels to ``groups``, with -1 for the m cases of largest cost.

    The lower number goes first in a tie. kept = the sum of the other costs, for each run. With
    masses (else None) cases go until the mass m is gone. The last one may go in part and keeps its
    label: ``cut`` (runs, 1) is its number, or -1, and ``left`` what is kept of its mass; kept is
    the sum of masses times costs then. Without masses cut and left are not looked at.
    """
    groups[...], slack, n = labels, MASS_SLACK * m, labels.shape[1]
    for r, cost in enumerate(costs):
        order = np.argsort(-cost, kind="stable")
        own = np.ones(n) if masses is None else masses
        gone = np.append(0.0, np.cumsum(own[order]))
        n_whole = int(np.searchsorted(gone, m + slack, side="right")) - 1
        groups[r, order[:n_whole]] = -1
        kept[r] = own[order[n_whole:]] @ cost[order[n_whole:]].astype(np.float64)
        if masses is None:
            continue
        cut[r], left[r], rest = -1, 0.0, m - gone[n_whole]
        if n_whole < n and rest > slack:
            cut[r] = last = order[n_whole]
            left[r] = masses[last] - rest
            with np.errstate(invalid="ignore"):  # a case without observed cells costs infinity
                kept[r] -= rest * cost[last]


def shift_sums(
    X, block, location, factor, masses, before, after, old, new, n_threads, totals, counts, moved
):
    """Bring totals and counts of each group from the grouping ``before`` to ``after``.

    Where totals have twice as many columns as X, they are of observed cells, and then of marks: how
    many there are.

    With masses (one row or one for each run; else None) each case counts with its own, and counts
    are masses too. ``old`` and ``new`` (cut, left), None for none, say of the groupings what is
    kept (runs, slots) of the masses of some cases, which have the numbers cut, -1 for none. A run
    in which another part of a case is kept counts one more case in moved.
    """
    masses = np.ones((1, before.shape[1])) if masses is None else masses
    X, width = X.reshape(-1, len(location)), totals.shape[2]
    for r in range(len(before)):
        kept = [_kept_masses(masses[r % len(masses)], slots, r) for slots in (old, new)]
        other_part = np.abs(kept[0] - kept[1]) > SAME_PART
        changed = np.flatnonzero((before[r] != after[r]) | other_part)
        moved[r] = np.count_nonzero(before[r] != after[r]) + other_part.any()
        for groups, mass, sign in ((before[r], kept[0], -1), (after[r], kept[1], 1)):
            for k in np.unique(groups[changed]):
                if k >= 0:
                    cases = changed[groups[changed] == k]
                    rows = factor * (X[cases] - location)
                    rows = rows if rows.shape[1] == width else _with_marks(rows)
                    totals[r, k] += sign * (mass[cases] @ rows)
                    counts[r, k] += sign * mass[cases].sum()


def _kept_masses(masses, slots, run):
    """Return what is kept of the masses (n,) in a run."""
    kept = masses.copy()
    if slots is not None:
        cut, left = slots[0][run], slots[1][run]
        kept[cut[cut >= 0]] = left[cut >= 0]
    return kept


def own_distances(X, location, factor, weights, labels, centers, missing, n_threads, out):
    """Distances of (X - location) * factor, weighted and squared, to the center of the label.

    Where cells are missing, NaN marks what is not observed, of cases or centers: distances are over
    features that are observed in both, scaled up by all weight / observed weight; infinite where
    nothing is observed.
    """
    for r, label in enumerate(labels):
        run_weights, run = weights[r % len(weights)], slice(r, r + 1)
        used = np.flatnonzero(run_weights)
        facts = run_weights[used][None], np.full(len(used), np.inf), label[None]
        with np.errstate(over="ignore"):  # an outlying cell may be infinitely far away
            own = centers[run][..., used], n_threads, out[run]
            bounded_distances(X, location, factor, used, *facts, *own)


def missing_factors(X, weights, n_threads, out):
    """Set out[r, i] to all weight / the weight of what is not NaN in case i; 0 if that has none."""
    total = weights.sum(axis=1, keepdims=True)
    for rows in _pieces(len(X), 16 * X.shape[1]):
        out[:, rows] = factors_of(weights @ ~np.isnan(X[rows]).T, total)


def row_norms(X, block, weights, n_threads, out):
    """Set out[r, i] to sum_j weights[r, j] x_ij^2 for the cases of a table."""
    X = X.reshape(-1, weights.shape[1])
    for rows in _pieces(len(X), 8 * X.shape[1]):
        out[:, rows] = weights @ np.square(X[rows], dtype=np.float64).T


def single_moves(
    X, block, weights, scale, masses, max_rounds, n_threads, groups, totals, counts, moves
):
    """Move or exchange one case at a time while the within sum of squares falls, for every run.

    With scale (else None) the table has values and marks (n, 2q), and distances are multiplied by
    it for the missing cells of each case. With masses (else None) each case counts with its own,
    and only those of the same mass are exchanged.
    """
    X, ones = X.reshape(groups.shape[1], -1), np.ones(groups.shape[1])
    masses = ones if masses is None else masses
    for r in range(len(groups)):
        row = r % len(weights)
        facts = weights[row], ones if scale is None else scale[row], masses
        moves[r] = Run(X, *facts, groups[r], totals[r], counts[r]).all_rounds(max_rounds)


def group_sums(groups, values, out):
    """Sum values over the trimmed cases and over each group (runs, 1 + K); None: all are 1."""
    for r, row in enumerate(groups):
        out[r] = np.bincount(row + 1, values, out.shape[1])


def draw(chances, uniforms, cases):
    """Draw a case for each uniform number, in proportion to chances; where none has any, any."""
    ladder = np.cumsum(chances, axis=1, dtype=np.float64)
    ladder[ladder[:, -1] == 0] = np.arange(1, ladder.shape[1] + 1)
    for r, steps in enumerate(ladder):
        cases[r] = np.searchsorted(steps, uniforms[r] * steps[-1], side="right")
    np.minimum(cases, ladder.shape[1] - 1, out=cases)


# ---- Single moves of one run: what ``moves_typed.h`` does for the compiled passes


class Run:
    """One partition under single moves; changes its groups, totals and counts in place."""

    GAIN = 1 - 1e-10  # a move must gain more than rounding could
    SWEEPS = 10  # over the candidates of one screening
    EXCHANGE_WORK = 50_000  # trimmed cases times columns up to which exchanges are tried

    def __init__(self, X, weights, scale, mass, groups, totals, counts):
        self.weights, self.scale, self.mass = weights, scale, mass
        self.groups, self.totals, self.counts = groups, totals, counts
        self.slack, q = 1e-12 if X.dtype == np.float64 else 1e-4, len(weights)
        self.complete, self.cells = totals.shape[1] == q, X.astype(np.float64)
        self.values, self.marks = self.cells[:, :q], self.cells[:, q:]  # no marks if complete
        self.norms, self.clusters = self.values**2 @ weights, np.arange(len(counts))

    def all_rounds(self, max_rounds):
        moves = 0
        for _ in range(max_rounds):
            moved = self.move_round() or self.exchange_round()
            moves += moved
            if moved == 0:
                break
        return moves

    def changes(self, cases, clusters, step):
        """Return the change of the within sum when cases enter clusters (1) or leave them (-1)."""
        mass, q = self.mass[cases], len(self.weights)
        cells = self.counts[:, None] if self.complete else self.totals[:, q:]
        after = cells[clusters] + step * mass[..., None]
        means = self.totals[:, :q] / np.where(cells > NO_MASS, cells, 1.0)
        squares = self.values[cases] - means[clusters]
        squares **= 2
        squares *= cells[clusters] / np.where(after > NO_MASS, after, 1.0)
        if not self.complete:
            squares *= self.marks[cases]
        return mass * (squares @ self.weights)

    def leavers(self):
        """Return the cases that are not all that their clusters have, and what their leaving gains.

        Those that are trimmed are none of them.
        """
        kept = np.flatnonzero(self.groups >= 0)
        kept = kept[self.counts[self.groups[kept]] - self.mass[kept] >= NO_MASS]
        return kept, self.changes(kept, self.groups[kept], -1)

    def transfer(self, i, k, sign):
        self.counts[k] += sign * self.mass[i]
        self.totals[k] += sign * self.mass[i] * self.cells[i]

    def move_round(self):
        """Move those cases that gain by it as the sums are when the round begins."""
        moves, (kept, gain) = 0, self.leavers()
        loss = np.array([self.changes(kept, np.full(len(kept), k), 1) for k in self.clusters])
        loss[self.groups[kept], np.arange(len(kept))] = np.inf
        slack = self.slack * self.mass[kept] * self.norms[kept]
        candidates = kept[loss.min(axis=0) < gain + slack]
        for _ in range(self.SWEEPS):
            moved = sum(self.move(i) for i in candidates)
            moves += moved
            if moved == 0:
                break
        return moves

    def move(self, i):
        """Move a case to the cluster where it costs least, if that gains; return whether it did."""
        a = self.groups[i]
        loss = self.changes(i, self.clusters, 1)
        loss[a] = np.inf
        b = loss.argmin()
        alone = self.counts[a] - self.mass[i] < NO_MASS
        if alone or loss[b] >= self.changes(i, a, -1) * self.GAIN:
            return False
        self.transfer(i, a, -1)
        self.transfer(i, b, 1)
        self.groups[i] = b
        return True

    def exchange_round(self):
        """Exchange the kept case that costs most for a trimmed one while that gains."""
        moves, trimmed = 0, (self.groups == -1) & (self.scale > 0)
        if np.count_nonzero(trimmed) * len(self.weights) > self.EXCHANGE_WORK:
            return 0
        while moves < len(self.groups):
            kept, gains = self.leavers()
            gains *= self.scale[kept]
            if gains.max(initial=0) <= 0:
                break
            worst = (gains / self.mass[kept]).argmax()
            best = out = kept[worst]
            to, least = self.groups[out], gains[worst] * self.GAIN
            self.transfer(out, to, -1)
            trimmed = (self.groups == -1) & (self.scale > 0) & (self.mass == self.mass[out])
            for i in np.flatnonzero(trimmed):
                loss = self.scale[i] * self.changes(i, self.clusters, 1)
                if loss.min() < least:
                    best, to, least = i, loss.argmin(), loss.min()
            self.groups[out] = -1
            self.transfer(best, to, 1)
            self.groups[best] = to
            if best == out:
                break
            moves += 1
        return moves


# ---- Cells whose squared error is bounded
#
# Cases are rows of X, brought into the frame by ``location`` and ``factor``; NaN marks a missing
# cell, of cases and of centers. ``limits`` are the most that a squared error counts, infinite for a
# feature without a scale. ``columns`` are the features that are looked at: limits, weights and
# centers are theirs.


def nearest_bounded(
    X, location, factor, columns, weights, limits, centers, n_threads, labels, costs
):
    """labels, costs (n,) = the nearest of the centers (K, q), and the bounded distance to it."""
    total = weights.sum()
    for rows, cells in _framed(X, location, factor, columns, 2):
        found = np.stack([_costs(cells - center, weights, limits, total) for center in centers])
        labels[rows] = found.argmin(axis=0)
        costs[rows] = found.min(axis=0)


def bounded_distances(
    X, location, factor, columns, weights, limits, labels, centers, n_threads, out
):
    """Out (runs, n) = weighted bounded distance to the center that a label names.

    weights: one row for all runs or one a run.
    """
    totals = weights.sum(axis=1)
    for rows, cells in _framed(X, location, factor, columns, 3):
        for r, run_labels in enumerate(labels):
            w = r * (len(weights) > 1)
            errors = cells - centers[r, run_labels[rows]]
            out[r, rows] = _costs(errors, weights[w], limits, totals[w])


def bounded_sums(
    X, location, factor, columns, limits, shares, groups, centers, n_threads, totals, counts, within
):
    """Sum what is not flagged, by group (runs, n) and feature; outputs begin at 0.

    totals (runs, K, 2q) of values, and then of their number; counts (runs, K) of the cases; within
    (runs, q) of the bounded squared errors. Each case counts its share (1 or runs, n).
    """
    K, q = centers.shape[1], len(columns)
    for rows, cells in _framed(X, location, factor, columns, 5):
        for r, run_groups in enumerate(groups[:, rows]):
            share = shares[r * (len(shares) > 1), rows]
            members = np.zeros((K, len(cells)))
            kept = np.flatnonzero(run_groups >= 0)
            members[run_groups[kept], kept] = share[kept]
            squares = (cells - centers[r, run_groups]) ** 2
            unflagged = squares <= limits
            totals[r, :, :q] += members @ np.where(unflagged, cells, 0.0)
            totals[r, :, q:] += members @ unflagged
            counts[r] += members.sum(axis=1)
            bounded = np.where(np.isnan(squares), 0.0, np.minimum(squares, limits))
            within[r] += members.sum(axis=0) @ bounded


def lower_medians(X, location, factor, columns, order, starts, n_threads, out):
    """Out (K, q) = the lower median of the observed cells of cases order[starts[k]:starts[k+1]].

    NaN where there is none.
    """
    for k in range(len(starts) - 1):
        cases = order[starts[k] : starts[k + 1]]
        cells = np.full((len(cases) + 1, len(columns)), np.nan)  # behind the others one is missing
        cells[:-1] = (X[cases][:, columns] - location[columns]) * factor
        cells.sort(axis=0)
        middle = (np.maximum(np.count_nonzero(~np.isnan(cells), axis=0), 1) - 1) // 2
        out[k] = cells[middle, np.arange(len(columns))]


def _costs(errors, weights, limits, total):
    """Return bounded distances over observed cells, scaled up; infinite where nothing is."""
    squares = errors**2
    seen = ~np.isnan(squares)
    if seen.all():
        return np.minimum(squares, limits) @ weights
    sums = np.where(seen, np.minimum(squares, limits), 0.0) @ weights
    return scaled_up(sums, seen @ weights, total)


# ---- Missing cells


def factors_of(observed: Any, total: Any, xp: Any = np) -> Any:
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
