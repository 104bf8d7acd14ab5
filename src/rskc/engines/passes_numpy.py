"""The NumPy twin of ``_passes``: same names, same arguments, same results up to rounding.

It runs where there was no compiler, and it is the oracle of the tests. ``n_threads`` is taken so
that the signatures agree; NumPy decides for itself.
"""

import numpy as np

from rskc.engines.cells_numpy import (  # noqa: F401
    bounded_distances,
    bounded_sums,
    lower_medians,
    nearest_bounded,
)
from rskc.engines.masses import SAME_PART
from rskc.engines.moves_numpy import MissingRun, Run

# Cases of a table lie row by row, so that a table is an (n, q) array.
BLOCK = 1

# Work arrays of a pass stay near this size.
WORK_BYTES = 2**24

# Masses that are off by less than this share of what is trimmed are off by rounding.
MASS_SLACK = 1e-11
# Less observed weight than this share of all weight counts as none.
NOTHING = 1e-12


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


def scale_centers_missing(weights, centers, n_threads, scaled, starts):
    """Write -2 w c and then w c^2 to ``scaled``, 0 where a center is NaN.

    starts (runs * K + 1) = the number of features that have weight in which the centers before are
    NaN.
    """
    missing = np.isnan(centers)
    filled, own = np.where(missing, 0, centers), weights[:, None, :]
    scaled[...] = np.concatenate([-2 * own * filled, own * filled**2], axis=2)
    starts[0], starts[1:] = 0, np.cumsum((missing & (own > 0)).sum(axis=2))


def unseen_features(weights, centers, starts, n_threads, columns):
    """Write the features that have weight in which each center is NaN, center by center."""
    unseen = np.isnan(centers) & (weights[:, None, :] > 0)
    columns[...] = np.flatnonzero(unseen) % centers.shape[2]


def assign_missing(
    X, block, scaled, starts, columns, weights, norms, scale, n_threads, labels, costs
):
    """Nearest center of every case of a table of values and marks, for every run.

    columns[starts[c] : starts[c + 1]] are the features in which the center c of all runs' is NaN.
    """
    runs, K, q = len(scaled), scaled.shape[1], scaled.shape[2] // 2
    assign(X, block, scaled, np.zeros((runs, K), X.dtype), norms, n_threads, labels, costs)
    costs *= scale
    labels[np.broadcast_to(scale == 0, labels.shape)] = 0
    values, marks = np.split(_rows(X, 2 * q, block).astype(np.float64), 2, axis=1)
    for r in np.flatnonzero(np.diff(starts[::K])):
        own = weights[r % len(weights)]
        seen = np.tile(own, (K, 1))
        for k in range(K):
            seen[k, columns[starts[r * K + k] : starts[r * K + k + 1]]] = 0
        sums = values**2 @ seen.T + values @ scaled[r, :, :q].T + marks @ scaled[r, :, q:].T
        observed = marks @ seen.T
        some = observed > NOTHING * own.sum()
        scaled_up = np.maximum(sums, 0) * own.sum() / np.where(some, observed, 1)
        scaled_up = np.where(some, scaled_up, np.inf)
        labels[r], least = scaled_up.argmin(axis=1), scaled_up.min(axis=1)
        costs[r] = np.where(np.isfinite(least), least, 0)


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
    """Bring totals and counts of each group from the grouping ``before`` to ``after``.

    Where totals have twice as many columns as X, they are of observed cells, and then of marks: how
    many there are.
    """
    ones = np.ones((1, before.shape[1]))
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

    Masses have one row, or one for each run. Of the cases with the numbers cut (runs, slots), -1
    for none, left is what is kept of the mass, in either grouping. A run in which another part of a
    case is kept counts one more case in moved.
    """
    _shift(X, block, location, factor, masses, before, after, totals, counts, moved)
    rows = _rows(X, len(location), block)
    for groups, cut, left, sign in (
        (before, cut_before, left_before, 1),
        (after, cut_after, left_after, -1),
    ):
        for r, slot in zip(*np.nonzero(cut >= 0), strict=True):
            case = cut[r, slot]
            k = groups[r, case]
            if k >= 0:
                gone = sign * (masses[r % len(masses), case] - left[r, slot])
                row = factor * (rows[case : case + 1] - location)
                totals[r, k] += gone * _as_wide(row, totals.shape[2])[0]
                counts[r, k] += gone
    used = (cut_before >= 0).sum(axis=1), (cut_after >= 0).sum(axis=1)
    if cut_before.shape != cut_after.shape:
        moved += used[0] != used[1]
        return
    parts = (cut_before >= 0) & (np.abs(left_before - left_after) > SAME_PART)
    moved += ((cut_before != cut_after) | parts).any(axis=1)


def _shift(X, block, location, factor, masses, before, after, totals, counts, moved):
    K, X = totals.shape[1], _rows(X, len(location), block)
    for r in range(len(before)):
        own = masses[r % len(masses)]
        changed = np.flatnonzero(before[r] != after[r])
        moved[r] = len(changed)
        for groups, sign in ((before[r], -1), (after[r], 1)):
            members = changed[groups[changed] >= 0]
            for k in range(K):
                cases = members[groups[members] == k]
                if len(cases):
                    rows = _as_wide(factor * (X[cases] - location), totals.shape[2])
                    totals[r, k] += sign * (own[cases, None] * rows).sum(axis=0)
                    counts[r, k] += sign * own[cases].sum()


def _as_wide(rows, width):
    return rows if rows.shape[1] == width else _with_marks(rows)


def own_distances(X, location, factor, weights, labels, centers, n_threads, out):
    """Distances of (X - location) * factor, weighted and squared, to the center of the label."""
    for r, label in enumerate(labels):
        own = weights[r % len(weights)]
        used = slice(None) if own.all() else np.flatnonzero(own)
        for rows in _blocks(len(X), 16 * X.shape[1]):
            with np.errstate(over="ignore"):  # an outlying cell may be infinitely far away
                errors = (X[rows] - location) * factor - centers[r][label[rows]]
                out[r, rows] = errors[:, used] ** 2 @ own[used]


def own_distances_missing(X, location, factor, weights, labels, centers, n_threads, out):
    """Return the same where NaN marks what is not observed, of cases or centers.

    Distances are over features that are observed in both, scaled up by all weight / observed
    weight; infinite where nothing is observed.
    """
    for r, label in enumerate(labels):
        used = np.flatnonzero(weights[r % len(weights)])
        own = weights[r % len(weights), used]
        for rows in _blocks(len(X), 32 * X.shape[1]):
            with np.errstate(over="ignore", invalid="ignore"):
                errors = (X[rows] - location) * factor - centers[r][label[rows]]
                errors = errors[:, used]
                sums = np.where(np.isnan(errors), 0, errors**2) @ own
            observed = ~np.isnan(errors) @ own
            some = observed > NOTHING * own.sum()
            scaled_up = sums * own.sum() / np.where(some, observed, 1)
            out[r, rows] = np.where(some, scaled_up, np.inf)


def missing_factors(X, weights, n_threads, out):
    """Set out[r, i] to all weight / the weight of what is not NaN in case i; 0 if that has none."""
    total = weights.sum(axis=1, keepdims=True)
    for rows in _blocks(len(X), 16 * X.shape[1]):
        seen = weights @ ~np.isnan(X[rows]).T
        some = seen > NOTHING * total
        out[:, rows] = some * total / np.where(some, seen, 1)


def row_norms(X, block, weights, n_threads, out):
    """Set out[r, i] to sum_j weights[r, j] x_ij^2 for the cases of a table."""
    X = _rows(X, weights.shape[1], block)
    for rows in _blocks(len(X), 8 * X.shape[1]):
        out[:, rows] = weights @ np.square(X[rows], dtype=np.float64).T


def single_moves(X, block, weights, max_rounds, n_threads, groups, totals, counts, moves):
    """Move or exchange one case at a time while the within sum of squares falls, for every run."""
    X = _rows(X, weights.shape[1], block)
    for r in range(len(groups)):
        run = Run(X, weights[r % len(weights)], groups[r], totals[r], counts[r])
        moves[r] = run.all_rounds(max_rounds)


def single_moves_missing(
    X, block, weights, scale, max_rounds, n_threads, groups, totals, counts, moves
):
    """Do the same for a table of values and marks (n, 2q)."""
    X = _rows(X, 2 * weights.shape[1], block)
    for r in range(len(groups)):
        own = r % len(weights)
        run = MissingRun(X, weights[own], groups[r], totals[r], counts[r])
        run.scale = scale[own]
        moves[r] = run.all_rounds(max_rounds)


def move_masses(X, block, weights, masses, max_rounds, n_threads, groups, totals, counts, moves):
    """Move cases that count with their masses; only those of the same mass are exchanged."""
    X = _rows(X, weights.shape[1], block)
    for r in range(len(groups)):
        run = Run(X, weights[r % len(weights)], groups[r], totals[r], counts[r])
        run.mass = masses
        moves[r] = run.all_rounds(max_rounds)


def move_masses_missing(
    X, block, weights, scale, masses, max_rounds, n_threads, groups, totals, counts, moves
):
    """Do the same for a table of values and marks (n, 2q)."""
    X = _rows(X, 2 * weights.shape[1], block)
    for r in range(len(groups)):
        own = r % len(weights)
        run = MissingRun(X, weights[own], groups[r], totals[r], counts[r])
        run.scale, run.mass = scale[own], masses
        moves[r] = run.all_rounds(max_rounds)
