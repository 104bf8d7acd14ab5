"""The NumPy twin of ``_passes``: same names, same arguments, same results up to rounding.

It runs where there was no compiler, and it is the oracle of the tests. ``n_threads`` is taken so
that the signatures agree; NumPy decides for itself.
"""

from collections.abc import Iterator

import numpy as np

from rskc.engines.sums import MASS_SLACK, NO_MASS, NOTHING, SAME_PART, scaled_up
from rskc.engines.sums import missing_factors as factors_of

# Cases of a table lie row by row, so that a table is an (n, q) array.
BLOCK = 1
HAS_OPENMP = False

# Work arrays of a pass stay near this size.
WORK_BYTES = 2**24


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
    """Write (X - location)[:, columns] * factor, cut off at +-limits, to ``out``, in blocks.

    Where there is room for twice as many columns, values, 0 for a NaN, are followed by marks: 1
    where a cell is observed, 0 where it is NaN.
    """
    q, limits = len(columns), limits[columns]
    marked = out.size > len(X) * q
    step, width = block if block > 1 else max(1, WORK_BYTES // (16 * q)), 2 * q if marked else q
    for first in range(0, len(X), step):
        rows = (X[first : first + step][:, columns] - location[columns]) * factor
        rows = np.clip(rows, -limits, limits)
        if marked:
            rows = _with_marks(rows)
        out[first * width : (first + step) * width] = (rows if block == 1 else rows.T).ravel()


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
    (runs, K, q), constants = centers.shape, np.zeros(centers.shape[:2], costs.dtype)
    scaled = np.empty((runs, K, q if scale is None else 2 * q), costs.dtype)
    if scale is None:
        scale_centers(weights, centers, scaled, constants)
    else:
        filled, run_weights = np.where(np.isnan(centers), 0, centers), weights[:, None, :]
        scaled[...] = np.concatenate([-2 * run_weights * filled, run_weights * filled**2], axis=2)
    X = _rows(X, scaled.shape[2], block)
    for rows in _blocks(len(X), X.itemsize * runs * K):
        products = X[rows] @ scaled.reshape(runs * K, -1).T
        distances = products.reshape(-1, runs, K) + constants
        nearest = distances.argmin(axis=2)
        least = np.take_along_axis(distances, nearest[:, :, None], axis=2)[:, :, 0]
        labels[:, rows] = nearest.T
        costs[:, rows] = np.maximum(least.T + norms[:, rows], 0)
    if scale is None:
        return
    costs *= scale
    labels[np.broadcast_to(scale == 0, labels.shape)] = 0
    values, marks = np.split(X.astype(np.float64), 2, axis=1)
    for r, center in enumerate(centers):
        run_weights = weights[r % len(weights)]
        seen = np.where(np.isnan(center), 0, run_weights)
        if (seen == run_weights).all():
            continue
        sums = values**2 @ seen.T + values @ scaled[r, :, :q].T + marks @ scaled[r, :, q:].T
        distances = scaled_up(sums, marks @ seen.T, run_weights.sum())
        labels[r], least = distances.argmin(axis=1), distances.min(axis=1)
        costs[r] = np.where(np.isfinite(least), least, 0)


def trim(labels, costs, masses, m, n_threads, groups, kept, cut, left):
    """Write the labels to ``groups``, with -1 for the m cases of largest cost.

    The lower number goes first in a tie. kept = the sum of the other costs, for each run. With
    masses (else None) cases go until the mass m is gone. The last one may go in part and keeps its
    label: ``cut`` (runs, 1) is its number, or -1, and ``left`` what is kept of its mass; kept is
    the sum of masses times costs then. Without masses cut and left are not looked at.
    """
    groups[...] = labels
    for r, cost in enumerate(costs):
        if masses is not None:
            kept[r] = _trim_masses(cost, masses, m, groups[r], cut[r], left[r])
            continue
        if m > 0:
            bar = np.partition(cost, len(cost) - m)[len(cost) - m]
            above = cost > bar
            ties = np.flatnonzero(cost == bar)[: m - np.count_nonzero(above)]
            groups[r, above] = -1
            groups[r, ties] = -1
        kept[r] = cost[groups[r] >= 0].sum(dtype=np.float64)


def _trim_masses(cost, masses, m, groups, cut, left):
    """Do it for one run by mass; return what is kept."""
    cut[...], left[...], slack = -1, 0.0, MASS_SLACK * m
    if m > 0:
        order = np.argsort(-cost, kind="stable")
        gone = np.cumsum(masses[order])
        whole = int(np.searchsorted(gone, m + slack, side="right"))
        groups[order[:whole]] = -1
        rest = m - (gone[whole - 1] if whole else 0.0)
        if whole < len(order) and rest > slack:
            cut[0] = order[whole]
            left[0] = masses[cut[0]] - rest
    member = groups >= 0
    kept = masses[member] @ cost[member].astype(np.float64)
    if cut[0] >= 0:
        with np.errstate(invalid="ignore"):  # of a case without observed cells the cost is infinite
            kept -= (masses[cut[0]] - left[0]) * cost[cut[0]]
    return kept


def shift_sums(
    X,
    block,
    location,
    factor,
    masses,
    before,
    after,
    parts_before,
    parts_after,
    n_threads,
    totals,
    counts,
    moved,
):
    """Bring totals and counts of each group from the grouping ``before`` to ``after``.

    Where totals have twice as many columns as X, they are of observed cells, and then of marks: how
    many there are.

    With masses (one row or one for each run; else None) each case counts with its own, and counts
    are masses too. Parts (cut, left), None for none, say of either grouping what is kept (runs,
    slots) of the masses of some cases, which have the numbers cut, -1 for none. A run in which
    another part of a case is kept counts one more case in moved.
    """
    masses = np.ones((1, before.shape[1])) if masses is None else masses
    X, width = _rows(X, len(location), block), totals.shape[2]

    def framed(cases):
        rows = factor * (X[cases] - location)
        return rows if rows.shape[1] == width else _with_marks(rows)

    for r in range(len(before)):
        mass = masses[r % len(masses)]
        changed = np.flatnonzero(before[r] != after[r])
        moved[r] = len(changed)
        for groups, sign in ((before[r], -1), (after[r], 1)):
            members = changed[groups[changed] >= 0]
            for k in np.unique(groups[members]):
                cases = members[groups[members] == k]
                totals[r, k] += sign * (mass[cases, None] * framed(cases)).sum(axis=0)
                counts[r, k] += sign * mass[cases].sum()
    if parts_before is None and parts_after is None:
        return
    none = np.empty((len(before), 0), np.int64), np.empty((len(before), 0))
    (cut, left), (new_cut, new_left) = parts_before or none, parts_after or none
    for groups, cuts, lefts, sign in ((before, cut, left, 1), (after, new_cut, new_left, -1)):
        for r, slot in zip(*np.nonzero(cuts >= 0), strict=True):
            case = cuts[r, slot]
            k = groups[r, case]
            if k >= 0:
                gone = sign * (masses[r % len(masses), case] - lefts[r, slot])
                totals[r, k] += gone * framed([case])[0]
                counts[r, k] += gone
    if cut.shape == new_cut.shape:
        parts = (cut >= 0) & (np.abs(left - new_left) > SAME_PART)
        moved += ((cut != new_cut) | parts).any(axis=1)
    else:
        moved += (cut >= 0).sum(axis=1) != (new_cut >= 0).sum(axis=1)


def own_distances(X, location, factor, weights, labels, centers, missing, n_threads, out):
    """Distances of (X - location) * factor, weighted and squared, to the center of the label.

    Where cells are missing, NaN marks what is not observed, of cases or centers: distances are over
    features that are observed in both, scaled up by all weight / observed weight; infinite where
    nothing is observed.
    """
    for r, label in enumerate(labels):
        run_weights = weights[r % len(weights)]
        used = slice(None) if run_weights.all() and not missing else np.flatnonzero(run_weights)
        run_weights = run_weights[used]
        for rows in _blocks(len(X), 32 * X.shape[1] if missing else 16 * X.shape[1]):
            # An outlying cell may be infinitely far away.
            with np.errstate(over="ignore", invalid="ignore" if missing else None):
                errors = ((X[rows] - location) * factor - centers[r][label[rows]])[:, used]
                if not missing:
                    out[r, rows] = errors**2 @ run_weights
                    continue
                sums = np.where(np.isnan(errors), 0, errors**2) @ run_weights
            out[r, rows] = scaled_up(sums, ~np.isnan(errors) @ run_weights, run_weights.sum())


def missing_factors(X, weights, n_threads, out):
    """Set out[r, i] to all weight / the weight of what is not NaN in case i; 0 if that has none."""
    total = weights.sum(axis=1, keepdims=True)
    for rows in _blocks(len(X), 16 * X.shape[1]):
        out[:, rows] = factors_of(weights @ ~np.isnan(X[rows]).T, total)


def row_norms(X, block, weights, n_threads, out):
    """Set out[r, i] to sum_j weights[r, j] x_ij^2 for the cases of a table."""
    X = _rows(X, weights.shape[1], block)
    for rows in _blocks(len(X), 8 * X.shape[1]):
        out[:, rows] = weights @ np.square(X[rows], dtype=np.float64).T


def single_moves(
    X, block, weights, scale, masses, max_rounds, n_threads, groups, totals, counts, moves
):
    """Move or exchange one case at a time while the within sum of squares falls, for every run.

    With scale (else None) the table has values and marks (n, 2q), and distances are multiplied by
    it for the missing cells of each case. With masses (else None) each case counts with its own,
    and only those of the same mass are exchanged.
    """
    X = _rows(X, totals.shape[2], block)
    for r in range(len(groups)):
        row = r % len(weights)
        kind = Run if scale is None else MissingRun
        run = kind(X, weights[row], groups[r], totals[r], counts[r])
        run.scale = run.scale if scale is None else scale[row]
        run.mass = run.mass if masses is None else masses
        moves[r] = run.all_rounds(max_rounds)


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
        if len(cases) == 0:
            out[k] = np.nan
            continue
        cells = np.sort((X[cases][:, columns] - location[columns]) * factor, axis=0)
        middle = (len(cells) - 1 - np.isnan(cells).sum(axis=0)) // 2
        out[k] = np.take_along_axis(cells, np.maximum(middle, 0)[None], axis=0)[0]


def _framed(X, location, factor, columns, copies) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield cases in pieces, in the frame."""
    step = max(1, WORK_BYTES // (8 * copies * max(len(columns), 1)))
    for first in range(0, len(X), step):
        rows = slice(first, min(len(X), first + step))
        yield rows, (X[rows][:, columns] - location[columns]) * factor


def _costs(errors, weights, limits, total):
    """Return bounded distances over observed cells, scaled up; infinite where nothing is."""
    squares = errors**2
    seen = ~np.isnan(squares)
    if seen.all():
        return np.minimum(squares, limits) @ weights
    observed = seen @ weights
    some = observed > NOTHING * total
    sums = np.where(seen, np.minimum(squares, limits), 0.0) @ weights
    return np.where(some, sums * (total / np.where(some, observed, 1.0)), np.inf)
