"""The nearest center of new cases: one look at them, and at once a second where they are in doubt.

A case is read once, in single precision and rounded for the tensor cores. Where the two nearest
centers are closer than the rounding may explain, it is put on a list, and a second kernel, which
follows without a word from the host, decides in double precision, as ``assign`` does in a fit.
"""

import numpy as np
import torch
import triton
import triton.language as tl

from rskc.engines.base import Place
from rskc.engines.device.kernels.assignment import assign_tile
from rskc.engines.device.kernels.common import unit
from rskc.engines.passes_numpy import scale_centers

# What TF32 loses of a cell, at most, as a share of it...
CUT = 2.0**-10
# ... what single precision loses of its location...
SHIFTED = 2.0**-22
# ... and what sums lose, as a share of the largest that they could be: each step of 32 terms 1 in
# 2^20, and their sum 1 in 2^24 for each of the steps.
ROUNDING = 2.0**-18
# Programs that share the cases in doubt.
PROGRAMS = 1024


def nearest(X, frame, weights, centers):
    """Find the nearest of the centers (K, p), by weighted distance, for float32 cases (n, p).

    All columns are read, those without weight too: single ones take ten times as long.

    Parameters
    ----------
    X : tensor (n, p) of float32
    frame : Frame
        Cases are meant as (x - location) * factor, cut off at its limits.
    weights : ndarray (p,)
    centers : ndarray (K, p)
        In the space of the data.

    Returns
    -------
    labels : tensor (n,) of int32
        -1 for cases with a cell that is not finite.
    n_left : int
        How many these are.
    """
    (n, p), K = X.shape, len(centers)
    columns = np.flatnonzero(weights)
    place, own = Place(columns, frame), weights[columns]
    inside = place.centers(centers[None])
    rough, slack = _rough(place, own, inside[0], p)
    tile = assign_tile(K, K, len(columns), torch.float64)
    exact = _exact(place, own, inside, tile)
    # One copy to the device for all; zeros for the lengths of the list and of what is left.
    sent = np.concatenate([rough.view(np.float64), exact, np.zeros(2)])
    sent = torch.from_numpy(sent).to(X.device)
    rough, exact = sent[: len(rough) // 2].view(torch.float32), sent[len(rough) // 2 : -2]
    state = sent[-2:].view(torch.int64)
    labels = torch.empty(n, dtype=torch.int32, device=X.device)
    doubtful = torch.empty(n, dtype=torch.int64, device=X.device)
    BN = _lines(K)
    BM, warps, stages = (64, 2, 1) if BN <= 32 else (128, 8, 3)
    _rough_kernel[(triton.cdiv(n, BM),)](
        X, rough, labels, doubtful, state, n, p, *slack,
        BM=BM, BN=BN, BK=32, UNIT=unit(p), num_warps=warps, num_stages=stages,
    )  # fmt: skip
    BM, BN, BK, warps, _ = tile
    _exact_kernel[(min(PROGRAMS, triton.cdiv(n, BM)),)](
        X, exact, doubtful, state, labels, p, triton.cdiv(len(columns), BK),
        BM=BM, BN=BN, BK=BK, num_warps=warps, num_stages=1,
    )  # fmt: skip
    return labels, int(state[1])


def _lines(K):
    """Return the number of columns that K centers take in a product of the tensor cores."""
    return max(16, triton.next_power_of_2(K))


def _rough(place, weights, centers, p):
    """Return what ``_rough_kernel`` reads of centers (K, q), and the doubt that it allows for.

    Columns are scaled by the roots of their weights, so that distances have none. A case y is seen
    as y + d, and all centers g with the same d, so that their difference is off by
    2 d . (g_k - g_l), at most 4 |d| times the radius of the centers.
    """
    columns, frame = place
    (K, _), width = centers.shape, triton.cdiv(p, 64) * 64
    roots = np.sqrt(weights)
    points, scale = centers * roots, frame.factor * roots
    shift = frame.location[columns] * scale
    BN = _lines(K)
    lines = np.zeros((2 + 2 * BN, width), np.float32)
    lines[0, columns], lines[1, columns] = scale, -shift
    factors = (-2 * points).astype(np.float32)
    high = ((factors.view(np.int32) + 0x1000) & -0x2000).view(np.float32)
    lines[2 : 2 + K, columns], lines[2 + BN : 2 + BN + K, columns] = high, -2 * points - high
    offsets = np.full(BN, np.inf, np.float32)
    squares = (points**2).sum(axis=1)
    offsets[:K] = squares
    radius = float(np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=1).max()))
    rounding = ROUNDING * (1 + p / 2**11)
    always = 4 * radius * SHIFTED * float(np.sqrt(shift @ shift)) + rounding * float(squares.max())
    # A cell is cut off if its share of the norm is as large as that.
    most = float((frame.limits[columns] ** 2 * weights).min())
    return np.append(lines, offsets), (always, 4 * radius * CUT, rounding, most)


def _exact(place, weights, centers, tile):
    """Return what ``_exact_kernel`` reads of centers (1, K, q): the numbers that ``assign`` has."""
    columns, frame = place
    (_, K, q), (_, BN, BK, _, _) = centers.shape, tile
    factors, constants = np.empty((1, K, q)), np.empty((1, K))
    scale_centers(weights[None], centers, factors, constants)
    lines = np.zeros((4 + BN, triton.cdiv(q, BK) * BK))
    lines[0, :q], lines[1, :q] = columns, frame.location[columns]
    lines[2, :q], lines[3, :q] = frame.factor, frame.limits[columns]
    lines[4 : 4 + K, :q] = factors[0]
    offsets = np.full(BN, np.inf)
    offsets[:K] = constants[0]
    return np.append(lines, offsets)


@triton.jit(do_not_specialize=["n", "p", "always", "slope", "rounding", "most"])
def _rough_kernel(
    X, rough, labels, doubtful, state, n, p, always, slope, rounding, most,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """Multiply BM cases with all factors; keep the least, and list where the next is as small."""
    stride, width = p // UNIT * UNIT, (p + 63) // 64 * 64
    start = tl.program_id(0).to(tl.int64) * BM
    rows = tl.minimum(tl.arange(0, BM), n - 1 - start).to(tl.int32)
    lines, place = tl.arange(0, BN), tl.arange(0, BK)
    x_at = X + start * stride + rows[:, None] * stride
    f_at = rough + (2 + lines)[None, :] * width + place[:, None]
    products = tl.zeros((BM, BN), tl.float32)
    squares = tl.zeros((BM, BK), tl.float32)
    for first in range(0, p, BK):
        j = first + place
        x = tl.load(x_at + j[None, :], mask=j[None, :] < stride, other=0.0)
        x = x * tl.load(rough + j)[None, :] + tl.load(rough + width + j)[None, :]
        squares += x * x
        step = tl.dot(x, tl.load(f_at + BN * width + first), input_precision="tf32")
        step = tl.dot(x, tl.load(f_at + first), step, input_precision="tf32")
        products += step
    norms = tl.sum(squares, axis=1)
    products += tl.load(rough + (2 + 2 * BN) * width + lines)[None, :]
    least = tl.min(products, axis=1)
    best = tl.min(tl.where(products == least[:, None], lines[None, :], BN - 1), axis=1)
    second = tl.min(tl.where(lines[None, :] == best[:, None], float("inf"), products), axis=1)
    doubt = always + slope * tl.sqrt(norms) + rounding * norms
    # What is not finite is in doubt too, even with weight 0: 0 times infinity is not a number.
    sure = (second - least > doubt) & (norms < most)
    at, inside = start + tl.arange(0, BM), start + tl.arange(0, BM) < n
    tl.store(labels + at, best, mask=inside)
    unsure = ((sure == 0) & inside).to(tl.int32)
    count = tl.sum(unsure)
    if count > 0:
        end = tl.atomic_add(state, count.to(tl.int64)) + tl.cumsum(unsure)
        tl.store(doubtful + end - 1, at, mask=unsure > 0)


@triton.jit(do_not_specialize=["p", "steps"])
def _exact_kernel(
    X, exact, doubtful, state, labels, p, steps,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Find the nearest center of the cases on the list, with the steps and the bits of assign."""
    count, width = tl.load(state), steps * BK
    lines, place = tl.arange(0, BN), tl.arange(0, BK)
    offsets = tl.load(exact + (4 + BN) * width + lines)
    for first in range(tl.program_id(0) * BM, count, tl.num_programs(0) * BM):
        i = first + tl.arange(0, BM)
        case = tl.load(doubtful + i, mask=i < count, other=0)
        cells = X + case[:, None] * p
        strange = tl.zeros((BM, BK), tl.int32)
        for start in range(0, p, BK):
            j = start + place
            x = tl.load(cells + j[None, :], mask=j[None, :] < p, other=0.0)
            strange |= (tl.abs(x) < float("inf")).to(tl.int32) ^ 1
        products = tl.zeros((BM, BN), tl.float64)
        for step in range(steps):
            at = exact + step * BK + place
            x = tl.load(cells + tl.load(at).to(tl.int32)[None, :]).to(tl.float64)
            x = (x - tl.load(at + width)[None, :]) * tl.load(at + 2 * width)[None, :]
            limit = tl.load(at + 3 * width)[None, :]
            x = tl.minimum(tl.maximum(x, -limit), limit)
            f = tl.load(at[:, None] + (4 + lines)[None, :] * width)
            products = tl.dot(x, f, products, input_precision="ieee", out_dtype=tl.float64)
        products += offsets[None, :]
        least = tl.min(products, axis=1)
        best = tl.min(tl.where(products == least[:, None], lines[None, :], BN - 1), axis=1)
        left = tl.max(strange, axis=1)
        tl.store(labels + case, tl.where(left > 0, -1, best), mask=i < count)
        n_left = tl.sum(tl.where(i < count, left, 0))
        tl.atomic_add(state + 1, n_left.to(tl.int64), mask=n_left > 0)
