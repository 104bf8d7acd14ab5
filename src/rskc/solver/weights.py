"""Step (e): the weights that maximize sum_j w_j B_j under ||w||_2 <= 1 and ||w||_1 <= s, exactly.

The solution is a soft threshold, w = S(B+, D) / ||S(B+, D)||_2. With the q largest entries active,
D has a closed form, so one sort finds it; nothing is bisected, and nothing depends on the scale of
B.
"""

from __future__ import annotations

import numpy as np

from rskc.solver.problem import Problem

# Sums of squares that differ by less than this share tie: by that much rounding sets apart what is
# the same, as of columns of 0 and 1. Between the two no threshold may be left.
TIE = 1e-12


def is_sparse(problem: Problem) -> bool:
    """Return whether features get weights of their own."""
    return problem.l1_bound is not None or problem.n_features is not None


def weigh(problem: Problem, between: np.ndarray) -> np.ndarray:
    """Return the weights for between-cluster sums of squares (p,) or (runs, p): step (e).

    Features of a group share one: the step is made for the groups.
    A run whose sums overflow gets those of no cluster, so that it cannot stop the others.
    """
    finite = np.isfinite(between).all(axis=-1, keepdims=True)
    between = between if finite.all() else np.where(finite, between, 0.0)
    groups = problem.feature_groups
    between = between if groups is None else groups.gather(between)
    if problem.n_features is not None:
        weights = np.apply_along_axis(count_weights, -1, between, problem.n_features)
    else:
        assert problem.l1_bound is not None
        weights = sparse_weights(between, problem.l1_bound)
    return weights if groups is None else groups.spread(weights)


def sparse_weights(between: np.ndarray, l1_bound: float) -> np.ndarray:
    """Return the weights for a bound on their L1 norm.

    Where more than ``l1_bound**2`` features tie at the top, no solution treats them alike: those
    with the lowest numbers are taken, so that both norms hold.

    Parameters
    ----------
    between : ndarray of shape (p,) or (runs, p)
        Between-cluster sums of squares; negative ones count as 0.
    l1_bound : float
        Bound s >= 1 on the L1 norm.

    Returns
    -------
    weights : ndarray of the same shape
        Non-negative, ``||w||_2 = 1`` and ``||w||_1 <= l1_bound``.
    """
    if between.ndim == 1:
        return sparse_weights(between[None], l1_bound)[0]
    positive = np.maximum(between, 0.0)
    top = positive.max(axis=1, keepdims=True)
    below = (top - positive) / np.where(top > 0, top, 1.0)
    tied = (below == 0).sum(axis=1) >= l1_bound**2 * (1 - 1e-12)
    free = _unit_rows(np.where(top > 0, 1.0 - below, 0.0))
    binds = free.sum(axis=1) > l1_bound * (1 + 1e-12)
    if binds.all() and not tied.any():  # nearly always
        return _within_bound(_threshold(below, l1_bound), l1_bound)
    weights = _within_bound(free, l1_bound)
    for i in np.flatnonzero(binds & ~tied):
        weights[i] = _within_bound(_threshold(below[i : i + 1], l1_bound), l1_bound)[0]
    for i in np.flatnonzero((top[:, 0] == 0) | (binds & tied)):
        candidates = _not_ruled_out(between[i]) if top[i, 0] == 0 else below[i] == 0
        weights[i] = _tied_weights(candidates, l1_bound)
    return weights


def count_weights(between: np.ndarray, n_features: int) -> np.ndarray:
    """Return the weights with ``n_features`` of them above 0, for the bound that gives that number.

    The threshold lies halfway between the last feature that is kept and the first that is not.
    Where these two tie, the nearest count without a tie is taken.
    """
    positive = np.maximum(between, 0.0)
    ordered = np.append(-np.sort(-positive), 0.0)
    gaps = ordered[:-1] - ordered[1:]
    steps = np.flatnonzero(gaps > TIE * ordered[:-1]) + 1  # the counts that some bound gives
    if len(steps) == 0:
        return _tied_weights(_not_ruled_out(between), np.sqrt(n_features))
    count = steps[np.argmin(np.abs(steps - n_features))]
    weights = np.maximum(positive - (ordered[count - 1] + ordered[count]) / 2, 0.0)
    weights /= weights.max()
    return weights / np.linalg.norm(weights)


def _not_ruled_out(between: np.ndarray) -> np.ndarray:
    """Return the features with B_j >= 0; others have no observed cell, or cells against them."""
    return between >= 0 if (between >= 0).any() else np.ones(len(between), bool)


def _threshold(below: np.ndarray, s: float) -> np.ndarray:
    """Return the soft threshold that meets the bound; ``below`` is measured from each row's top."""
    depths = _depths(np.sort(below, axis=1), s)
    return _unit_rows(np.maximum(depths[:, None] - below, 0.0))


def _depths(below: np.ndarray, s: float) -> np.ndarray:
    """Return how far below the largest entry of each row the threshold lies.

    The rows of ``below`` are sorted upwards and start with 0. Differences to the top, and not the
    entries themselves, are squared: near-ties at the top would cancel.
    """
    enough = int(np.floor(s**2 * (1 + 1e-12)))  # more features than that can meet the bound
    q = np.arange(enough + 1, below.shape[1] + 1)
    total = np.cumsum(below, axis=1)[:, enough:]
    squares = np.cumsum(below * below, axis=1)[:, enough:]
    spread = np.maximum(q * squares - total * total, 0.0)
    depths = (total + s * np.sqrt(spread / (q - s**2))) / q
    # Active are the q entries less than `depth` below the top: the largest q for which that holds.
    fits = below[:, enough:] < depths
    last = np.where(fits.any(axis=1), fits.shape[1] - 1 - fits[:, ::-1].argmax(axis=1), 0)
    return depths[np.arange(len(depths)), last]


def _unit_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows of L2 norm 1; a row of zeros stays."""
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    norms[norms == 0] = 1.0
    return rows / norms[:, None]


def _tied_weights(tied: np.ndarray, s: float) -> np.ndarray:
    """Let the first of the tied features meet both norms: q - 1 equal weights and a smaller one."""
    q = min(int(np.ceil(s**2 * (1 - 1e-12))), int(np.count_nonzero(tied)))
    first = np.flatnonzero(tied)[:q]
    spread = np.sqrt(max(q - s**2, 0.0) * (q - 1)) / q
    weights = np.zeros(len(tied))
    weights[first] = s / q + spread / max(q - 1, 1)
    weights[first[-1]] = s / q - spread
    return _within_bound((weights / np.linalg.norm(weights))[None], s)[0]


def _within_bound(weights: np.ndarray, s: float) -> np.ndarray:
    """Bring rounding back under the bound."""
    excess = weights.sum(axis=1) / s
    over = (excess > 1) & (excess < 1 + 1e-9)
    if over.any():
        weights[over] /= excess[over, None]
    return weights
