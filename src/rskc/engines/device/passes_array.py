"""The passes for any array-API namespace: the twin of ``kernels``, and what runs without it.

Everything is on the device of X (n, q), and so is what is returned. Cases are taken in chunks, so
that work arrays stay small; sums over cases are in double precision.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from array_api_compat import array_namespace, device

from rskc.engines.memory import Frame
from rskc.engines.passes_numpy import MASS_SLACK, scaled_up

# Cells of the work arrays of a chunk: many for a GPU, few enough for the cache of a CPU.
CPU_CELLS, GPU_CELLS = 2**20, 2**26


def chunks(X: Any, cells_per_case: int) -> Iterator[slice]:
    """Yield the cases in chunks."""
    cells = CPU_CELLS if "cpu" in str(device(X)).lower() else GPU_CELLS
    step, n = max(1, cells // max(1, cells_per_case)), X.shape[0]
    return (slice(first, min(n, first + step)) for first in range(0, n, step))


def read(X: Any, rows: slice, frame: Frame | None = None, observed: Any = None) -> Any:
    """Return some cases in double precision, in their frame, whose location is on the device.

    Behind them are marks, where it is said which cells are observed.
    """
    xp = array_namespace(X)
    cells = xp.astype(X[rows, :], xp.float64)
    cells = cells if frame is None else (cells - frame.location) * frame.factor
    if observed is None:
        return cells
    return xp.concat([cells, xp.astype(observed[rows, :], xp.float64)], axis=1)


def weighted_squares(X: Any, weights: Any) -> Any:
    """Return sum_j weights_j x_j^2 of each case (runs, n), for weights (q, runs)."""
    xp = array_namespace(X)
    parts = [
        (read(X, rows) ** 2 @ weights).T for rows in chunks(X, 2 * X.shape[1] + weights.shape[1])
    ]
    return xp.concat(parts, axis=1)


def assign(X: Any, factors: Any, constants: Any, norms: Any) -> tuple[Any, Any]:
    """Return the nearest center of every case for every run, and its cost, both (runs, n).

    The least of ``x . factors[r, k] + constants[r, k]``, the lower k in a tie; with the norms
    (1 or runs, n) added it is a squared distance.
    """
    xp = array_namespace(X)
    runs, K, q = factors.shape
    columns = xp.reshape(factors, (runs * K, q)).T
    labels, costs = [], []
    for rows in chunks(X, 3 * runs * K):
        distances = X[rows, :] @ columns + xp.reshape(constants, (1, runs * K))
        distances = xp.reshape(distances, (-1, runs, K))
        labels.append(xp.astype(xp.argmin(distances, axis=2), xp.int32).T)
        least = xp.min(distances, axis=2).T + norms[:, rows]
        costs.append(xp.where(least > 0, least, xp.zeros_like(least)))
    return xp.concat(labels, axis=1), xp.concat(costs, axis=1)


def largest(costs: Any, m: int) -> Any:
    """Return a mask (runs, n) of the m largest costs, the lower number first in a tie."""
    xp, n = array_namespace(costs), costs.shape[1]
    if m in (0, n):
        return xp.full(costs.shape, m > 0, dtype=xp.bool, device=device(costs))
    bar = xp.sort(costs, axis=1)[:, n - m : n - m + 1]
    above, ties = costs > bar, costs == bar
    need = m - xp.sum(xp.astype(above, xp.int64), axis=1, keepdims=True)
    rank = xp.cumulative_sum(xp.astype(ties, xp.int64), axis=1)
    return above | (ties & (rank <= need))


def largest_masses(costs: Any, masses: Any, m: float) -> tuple[Any, Any]:
    """Return a mask (runs, n) of the cases of largest cost, until the mass m is gone.

    Also what is left of the masses, of which a case may go in part.
    """
    xp, n, slack = array_namespace(costs), costs.shape[1], MASS_SLACK * m
    order = xp.argsort(-costs, axis=1, stable=True)
    gone = xp.cumulative_sum(
        xp.reshape(xp.take(masses, xp.reshape(order, (-1,))), order.shape), axis=1
    )
    n_whole = xp.sum(xp.astype(gone <= m + slack, xp.int64), axis=1, keepdims=True)
    numbers = xp.arange(n, dtype=order.dtype, device=device(costs))[None, :]
    here = numbers == n_whole  # of the first case, in this order, that is not gone as a whole
    last = xp.sum(xp.where(here, order, xp.zeros_like(order)), axis=1, keepdims=True)
    bar = xp.max(
        xp.where(numbers == last, costs, xp.full_like(costs, -float("inf"))), axis=1, keepdims=True
    )
    mask = (costs > bar) | ((costs == bar) & (numbers < last)) | (n_whole == n)
    before = xp.sum(xp.where(numbers == n_whole - 1, gone, xp.zeros_like(gone)), axis=1)
    rest, own = m - before, xp.take(masses, last[:, 0])
    some = (rest > slack) & (n_whole[:, 0] < n)
    left = xp.where(some, own - rest, own)[:, None]
    return mask, xp.where(numbers == last, left, masses[None, :])


def sums(
    X: Any,
    groups: Any,
    K: int,
    masses: Any = None,
    frame: Frame | None = None,
    observed: Any = None,
) -> tuple[Any, Any]:
    """Sum the cases of each group in double precision: totals (runs, K, q), counts (runs, K).

    ``masses`` (runs, n) are the case weights, None for 1. Totals of marks (n, p), which say which
    cells are observed, follow those of values.
    """
    xp, runs = array_namespace(X), groups.shape[0]
    width = X.shape[1] if observed is None else 2 * X.shape[1]
    totals = xp.zeros((runs * K, width), dtype=xp.float64, device=device(X))
    counts = xp.zeros((runs * K,), dtype=xp.float64, device=device(X))
    numbers = xp.arange(K, dtype=groups.dtype, device=device(groups))
    for rows in chunks(X, runs * K + X.shape[1]):
        # A row for each run and group: 1 for the cases in it, or their masses.
        own = xp.astype(groups[:, None, rows] == numbers[None, :, None], xp.float64)
        own = xp.reshape(own if masses is None else own * masses[:, None, rows], (runs * K, -1))
        totals += own @ read(X, rows, frame, observed)
        counts += xp.sum(own, axis=1)
    return xp.reshape(totals, (runs, K, -1)), xp.reshape(counts, (runs, K))


def shift(
    X: Any,
    before: Any,
    after: Any,
    K: int,
    masses: Sequence[Any] | None = None,
    frame: Frame | None = None,
    observed: Any = None,
) -> tuple[Any, Any, Any]:
    """Return what totals and counts change by between groupings, and how many cases moved.

    ``masses`` are those (runs, n) before and after, None for 1.
    """
    xp, changed = array_namespace(X), before != after
    if masses is not None:
        changed = changed | (masses[0] != masses[1])
    moved = xp.sum(xp.astype(changed, xp.int64), axis=1)
    cases = xp.nonzero(xp.any(changed, axis=0))[0]
    rows = xp.take(X, cases, axis=0)
    seen = None if observed is None else xp.take(observed, cases, axis=0)
    # Cases that stay in one run while they move in another leave and enter the same group.
    parts = []
    for i, groups in enumerate((before, after)):
        own = None if masses is None else xp.take(masses[i], cases, axis=1)
        parts.append(sums(rows, xp.take(groups, cases, axis=1), K, own, frame, seen))
    (left, left_counts), (joined, joined_counts) = parts
    return joined - left, joined_counts - left_counts, moved


def own_distances(
    X: Any,
    location: Any,
    factor: float,
    weights: Any,
    labels: Any,
    centers: Any,
    marks: tuple[Any, Any] | None = None,
) -> Any:
    """Return weighted squared distances (runs, n) to the center of the label, in the frame.

    ``weights`` (1 or runs, p), ``centers`` (runs, K, p). Where cells may be missing, ``marks`` say
    which cells (n, p) and which features of centers (runs, K, p) are observed.
    """
    xp, parts = array_namespace(X), []
    for rows in chunks(X, (3 if marks is None else 6) * X.shape[1]):
        cells, found = (read(X, rows) - location) * factor, []
        seen = None if marks is None else xp.astype(marks[0][rows, :], xp.float64)
        for run in range(labels.shape[0]):
            own = xp.astype(labels[run, rows], xp.int64)
            weight = weights[run if weights.shape[0] > 1 else 0, :]
            errors = (cells - xp.take(centers[run, ...], own, axis=0)) ** 2
            both = 1.0 if marks is None else seen * xp.take(marks[1][run, ...], own, axis=0)
            # A square may be infinite, which times a weight of 0 would be no number.
            errors = xp.where(both * weight > 0, errors, xp.zeros_like(errors)) @ weight
            if marks is not None:
                errors = scaled_up(errors, both @ weight, float(xp.sum(weight)), xp)
            found.append(errors)
        parts.append(xp.stack(found))
    return xp.concat(parts, axis=1)
