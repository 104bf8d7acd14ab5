"""Step (e): the weights that maximise sum_j w_j B_j under ||w||_2 <= 1 and ||w||_1 <= s, exactly.

The solution is a soft threshold, w = S(B+, D) / ||S(B+, D)||_2. With the q largest entries active,
D has a closed form, so one sort finds it; nothing is bisected, and nothing depends on the scale of
B.
"""

from __future__ import annotations

import numpy as np


def sparse_weights(between: np.ndarray, l1_bound: float) -> np.ndarray:
    """Return the weights for a bound on their L1 norm.

    Where more than ``l1_bound**2`` features tie at the top, no solution treats them alike: those
    with the lowest numbers are taken, so that both norms hold.

    Parameters
    ----------
    between : ndarray of shape (p,)
        Between-cluster sums of squares; negative ones count as 0.
    l1_bound : float
        Bound s >= 1 on the L1 norm.

    Returns
    -------
    weights : ndarray of shape (p,)
        Non-negative, ``||w||_2 = 1`` and ``||w||_1 <= l1_bound``.
    """
    positive = np.maximum(between, 0.0)
    top = positive.max()
    if top == 0:
        return _tied_weights(_not_ruled_out(between), l1_bound)
    share = positive / top
    full = share / np.linalg.norm(share)
    if full.sum() <= l1_bound * (1 + 1e-12):
        return _within_bound(full, l1_bound)
    below = (top - positive) / top
    if np.count_nonzero(below == 0) >= l1_bound**2 * (1 - 1e-12):
        return _tied_weights(below == 0, l1_bound)
    weights = np.maximum(_depth(np.sort(below), l1_bound) - below, 0.0)
    return _within_bound(weights / np.linalg.norm(weights), l1_bound)


def count_weights(between: np.ndarray, n_features: int) -> np.ndarray:
    """Return the weights with ``n_features`` of them above 0, for the bound that gives so many.

    The threshold lies halfway between the last feature that is kept and the first that is not.
    Where these two tie, the nearest count without a tie is taken.
    """
    positive = np.maximum(between, 0.0)
    ordered = np.append(-np.sort(-positive), 0.0)
    steps = np.flatnonzero(ordered[:-1] > ordered[1:]) + 1  # the counts that some bound gives
    if len(steps) == 0:
        return _tied_weights(_not_ruled_out(between), np.sqrt(n_features))
    count = steps[np.argmin(np.abs(steps - n_features))]
    weights = np.maximum(positive - (ordered[count - 1] + ordered[count]) / 2, 0.0)
    weights /= weights.max()
    return weights / np.linalg.norm(weights)


def _not_ruled_out(between: np.ndarray) -> np.ndarray:
    """Features with B_j >= 0; others have no observed cell, or cells that speak against them."""
    return between >= 0 if (between >= 0).any() else np.ones(len(between), bool)


def _depth(below: np.ndarray, s: float) -> float:
    """Return how far below the largest entry the threshold lies.

    ``below`` is sorted upwards and starts with 0. Differences to the top, and not the entries
    themselves, are squared: near-ties at the top would cancel.
    """
    q = np.arange(1, len(below) + 1)
    total, squares = np.cumsum(below), np.cumsum(below**2)
    enough = q > s**2 * (1 + 1e-12)
    spread = np.maximum(q * squares - total**2, 0.0)[enough]
    depths = (total[enough] + s * np.sqrt(spread / (q[enough] - s**2))) / q[enough]
    # Active are the q entries less than `depth` below the top: the largest q for which that holds.
    fits = np.flatnonzero(below[enough] < depths)
    return depths[fits[-1]] if len(fits) else depths[0]


def _tied_weights(tied: np.ndarray, s: float) -> np.ndarray:
    """Both norms on the first of the tied features: q - 1 equal weights and a smaller one."""
    q = min(int(np.ceil(s**2 * (1 - 1e-12))), int(np.count_nonzero(tied)))
    first = np.flatnonzero(tied)[:q]
    spread = np.sqrt(max(q - s**2, 0.0) * (q - 1)) / q
    weights = np.zeros(len(tied))
    weights[first] = s / q + spread / max(q - 1, 1)
    weights[first[-1]] = s / q - spread
    return _within_bound(weights / np.linalg.norm(weights), s)


def _within_bound(weights: np.ndarray, s: float) -> np.ndarray:
    """Bring rounding back under the bound."""
    excess = weights.sum() / s
    return weights / excess if 1 < excess < 1 + 1e-9 else weights
