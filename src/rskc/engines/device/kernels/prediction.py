"""The nearest center of new cases: one look at all, and at once a second at those in doubt.

Cases are read once, in single precision. Where the distances of a case to two centers differ by
less than rounding may explain, it is put on a list. A second kernel, which follows without waiting
for the host, decides about these in double precision, as in a fit.
"""

import numpy as np
import torch
import triton
import triton.language as tl

from rskc.engines.contract import Place
from rskc.engines.device.kernels.assignment import assign_tile
from rskc.engines.device.kernels.common import on_its_device, unit
from rskc.engines.passes_numpy import scale_centers

# By how much two distances of a case may be off, as a share of the largest that they could be.
# TF32 cuts off the second parts of cells and factors: 2^-18. As much is lost where a step adds up
# its products, and 2^-23 with each step, of 16 columns at least.
ROUNDING, ADDING = 2.0**-17, 2.0**-27
# Programs that share the cases in doubt.
PROGRAMS = 1024


@on_its_device
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
    rough = _sent(_rough(place, own, inside[0], p), X.device)
    state = rough[-4:].view(torch.int64)
    labels = torch.empty(n, dtype=torch.int32, device=X.device)
    numbers = torch.int32 if n < 2**31 else torch.int64
    doubtful = torch.empty(n, dtype=numbers, device=X.device)
    BN = _lines(K)
    BM, BK, warps, stages = _tile(BN, p)
    _rough_kernel[(-(-n // BM),)](
        X, rough, labels, doubtful, state, n, p,
        BM=BM, BN=BN, BK=BK, UNIT=unit(p), num_warps=warps, num_stages=stages,
    )  # fmt: skip
    # While that runs, the next is made ready.
    BM, BN, BK, warps, _ = tile = assign_tile(K, K, len(columns), torch.float64)
    exact = _sent(_exact(place, own, inside, tile), X.device)
    _exact_kernel[(min(PROGRAMS, -(-n // BM)),)](
        X, exact, labels, doubtful, state, p, -(-len(columns) // BK),
        BM=BM, BN=BN, BK=BK, num_warps=warps, num_stages=1,
    )  # fmt: skip
    return labels, int(state[1])


def _sent(array, device):
    """Copy an array to the device, without waiting until what runs there is done."""
    return torch.from_numpy(array).to(device, non_blocking=True)


def _lines(K):
    """Return the number of columns that K centers take in a product of the tensor cores."""
    return max(16, 1 << (K - 1).bit_length())


def _tile(BN, p):
    """Return rows and terms of a step, warps, and steps loaded ahead.

    1e7 x 100 takes 1.3 ms for 10 centers, and 1.4 with 2 steps instead of 3.
    """
    if BN <= 16:
        return 64, 32, 2, 2 if p <= 32 else 3
    return (128, 16, 4, 3) if BN <= 64 else (64, 32, 4, 2)


def _rough(place, weights, centers, p):
    """Return what ``_rough_kernel`` reads of centers (K, q), and two zeros for what it counts.

    Columns are scaled by the roots of their weights, so that distances need none.
    """
    columns, frame = place
    (K, q), width, BN = centers.shape, -(-p // 64) * 64, _lines(len(centers))
    at = columns if q < p else slice(p)  # which is five times as fast
    roots, location = np.sqrt(weights), frame.location[columns]
    factors = centers * roots
    squares = np.einsum("kj,kj->k", factors, factors)
    factors *= -2
    high = ((factors.astype(np.float32).view(np.int32) + 0x1000) & -0x2000).view(np.float32)
    size = (3 + 2 * BN) * width
    sent = np.zeros(size + BN + 8, np.float32)
    lines, offsets, limits = sent[:size].reshape(-1, width), sent[size:-8], sent[-8:]
    lines[0, at], lines[1, at] = location, roots * frame.factor
    lines[2, at] = (lines[0, at] - location) * lines[1, at]  # what float32 loses of the location
    lines[3 : 3 + K, at], lines[3 + BN : 3 + BN + K, at] = high, factors - high
    offsets[:K], offsets[K:] = squares, np.inf
    # A cell is cut off if its share of the norm is as large as the least of these.
    most = (frame.limits[columns] ** 2 * weights).min()
    limits[:3] = ROUNDING + ADDING * p, squares.max(), most
    return sent


def _exact(place, weights, centers, tile):
    """Return what ``_exact_kernel`` reads of centers (1, K, q): the numbers that ``assign`` has."""
    columns, frame = place
    (_, K, q), (_, BN, BK, _, _) = centers.shape, tile
    lines, offsets = np.zeros((4 + BN, -(-q // BK) * BK)), np.full((1, BN), np.inf)
    lines[0, :q], lines[1, :q] = columns, frame.location[columns]
    lines[2, :q], lines[3, :q] = frame.factor, frame.limits[columns]
    scale_centers(weights[None], centers, lines[None, 4 : 4 + K, :q], offsets[:, :K])
    return np.concatenate([lines.ravel(), offsets.ravel()])


@triton.jit(do_not_specialize=["n", "p"])
def _rough_kernel(
    X, rough, labels, doubtful, state, n, p,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """Multiply BM cases with all factors; keep the least, and list where the next is as small.

    Norms are products too, so that cells stay in the layout of the tensor cores: with sums over
    columns this takes 2.3 ms of 1e7 x 100 instead of 1.3, and one read of these takes 0.9.
    """
    stride, width = p // UNIT * UNIT, (p + 63) // 64 * 64
    start = tl.program_id(0).to(tl.int64) * BM
    rows = tl.minimum(tl.arange(0, BM), n - 1 - start).to(tl.int32)
    lines, place = tl.arange(0, BN), tl.arange(0, BK)
    x_at = X + start * stride + rows[:, None] * stride
    f_at = rough + (3 + lines)[None, :] * width + place[:, None]
    products = tl.zeros((BM, BN), tl.float32)
    squares = tl.zeros((BM, 16), tl.float32)
    ones = tl.full((BK, 16), 1.0, tl.float32)
    for first in range(0, p, BK):
        j = first + place
        x = tl.load(x_at + j[None, :], mask=j[None, :] < stride, other=0.0)
        x = (x - tl.load(rough + j)[None, :]) * tl.load(rough + width + j)[None, :]
        x += tl.load(rough + 2 * width + j)[None, :]
        squares = tl.dot(x * x, ones, squares, input_precision="tf32")
        x_high = (x.to(tl.int32, bitcast=True) & -0x2000).to(tl.float32, bitcast=True)
        f_high, f_low = tl.load(f_at + first), tl.load(f_at + BN * width + first)
        step = tl.dot(x - x_high, f_high, input_precision="tf32")
        step = tl.dot(x_high, f_low, step, input_precision="tf32")
        step = tl.dot(x_high, f_high, step, input_precision="tf32")
        products += step
    norms = 1.01 * tl.max(squares, axis=1)  # TF32 cuts the squares off
    offsets = rough + (3 + 2 * BN) * width
    products += tl.load(offsets + lines)[None, :]
    least = tl.min(products, axis=1)
    best = tl.min(tl.where(products == least[:, None], lines[None, :], BN - 1), axis=1)
    second = tl.min(tl.where(lines[None, :] == best[:, None], float("inf"), products), axis=1)
    rounding, largest = tl.load(offsets + BN), tl.load(offsets + BN + 1)
    # What is not finite is in doubt too, even with weight 0: 0 times infinity is not a number.
    sure = (second - least > rounding * (norms + largest)) & (norms < tl.load(offsets + BN + 2))
    at, inside = start + tl.arange(0, BM), start + tl.arange(0, BM) < n
    tl.store(labels + at, best, mask=inside)
    unsure = ((sure == 0) & inside).to(tl.int32)
    count = tl.sum(unsure)
    if count > 0:
        end = tl.atomic_add(state, count.to(tl.int64)) + tl.cumsum(unsure)
        tl.store(doubtful + end - 1, at, mask=unsure > 0)


@triton.jit(do_not_specialize=["p", "steps"])
def _exact_kernel(
    X, exact, labels, doubtful, state, p, steps,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Find the nearest center of the cases on the list, with the steps and the bits of assign."""
    count, width = tl.load(state), steps * BK
    lines, place = tl.arange(0, BN), tl.arange(0, BK)
    offsets = tl.load(exact + (4 + BN) * width + lines)
    for first in range(tl.program_id(0) * BM, count, tl.num_programs(0) * BM):
        i = first + tl.arange(0, BM)
        case = tl.load(doubtful + i, mask=i < count, other=0).to(tl.int64)
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
