"""The NumPy twin of the passes for cells whose squared error is bounded.

Cases are rows of X, brought into the frame by ``location`` and ``factor``; NaN marks a missing
cell, of cases and of centers. ``limits`` are the most that a squared error counts, infinite for a
feature without a scale. ``columns`` are the features that are looked at: limits, weights and
centers are theirs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rskc.engines.tolerances import NOTHING

# Work arrays of a pass stay near this size.
WORK_BYTES = 2**24


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
