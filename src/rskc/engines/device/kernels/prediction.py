"""The nearest center of new cases, in one look at them, and where that look is not enough."""

import numpy as np
import torch
import triton
import triton.language as tl

from rskc.engines.device.kernels.assignment import two_parts
from rskc.engines.device.kernels.common import unit

# By how much two distances of a case may be off, as a share of the largest that they could be. The
# products lose 1 in 2^22 at most, and sums over steps of 32 terms as much again.
ROUNDING = 2.0**-18


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
        In the frame.

    Returns
    -------
    labels : tensor (n,) of int32
    unsure : tensor of int64
        Numbers of the cases for which another center is as near, up to rounding, and of those with
        a cell that is not finite.
    """
    (n, p), K = X.shape, len(centers)
    BN, width = max(16, triton.next_power_of_2(K)), triton.cdiv(p, 64) * 64
    centers = np.clip(centers, -frame.limits, frame.limits)
    squares = centers**2 @ weights
    lines = np.zeros((3 + BN, width), np.float32)
    lines[0, :p] = frame.location
    lines[1, :p] = frame.location - lines[0, :p]  # what single precision loses of it
    lines[2, :p] = weights * frame.factor**2
    lines[3 : 3 + K, :p] = -2 * weights * frame.factor * centers
    constants = np.full(BN, np.inf, np.float32)
    constants[:K] = squares
    # A cell is cut off if its share of the norm is as large as that.
    most = float((frame.limits**2 * weights)[weights > 0].min())
    sent = torch.asarray(np.append(lines, constants), device=X.device)  # one copy, not three
    labels = torch.empty(n, dtype=torch.int32, device=X.device)
    unsure = torch.empty(n, dtype=torch.bool, device=X.device)
    BM, warps, stages = (64, 2, 1) if BN <= 32 else (128, 8, 3)
    _nearest_kernel[(triton.cdiv(n, BM),)](
        X, sent, labels, unsure, n, p, float(squares.max()), most, ROUNDING,
        BM=BM, BN=BN, BK=32, UNIT=unit(p), num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return labels, torch.nonzero(unsure).ravel()


@triton.jit(do_not_specialize=["n", "p", "largest", "most", "rounding"])
def _nearest_kernel(
    X, sent, labels, unsure, n, p, largest, most, rounding,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """Multiply BM cases with all factors; keep the least, and whether the next is as small."""
    stride, width = p // UNIT * UNIT, (p + 63) // 64 * 64
    start = tl.program_id(0).to(tl.int64) * BM
    rows = tl.minimum(tl.arange(0, BM), n - 1 - start).to(tl.int32)
    lines, place = tl.arange(0, BN), tl.arange(0, BK)
    x_at = X + start * stride + rows[:, None] * stride
    f_at = sent + (3 + lines)[None, :] * width + place[:, None]
    products = tl.zeros((BM, BN), tl.float32)
    norms = tl.zeros((BM,), tl.float32)
    for first in range(0, p, BK):
        j = first + place
        x = tl.load(x_at + j[None, :], mask=j[None, :] < stride, other=0.0)
        x = (x - tl.load(sent + j)[None, :]) - tl.load(sent + width + j)[None, :]
        norms += tl.sum(x * x * tl.load(sent + 2 * width + j)[None, :], axis=1)
        x_high, x_low = two_parts(x)
        f_high, f_low = two_parts(tl.load(f_at + first))
        step = tl.dot(x_low, f_high, input_precision="tf32")
        step = tl.dot(x_high, f_low, step, input_precision="tf32")
        step = tl.dot(x_high, f_high, step, input_precision="tf32")
        products += step
    products += tl.load(sent + (3 + BN) * width + lines)[None, :]
    least = tl.min(products, axis=1)
    best = tl.min(tl.where(products == least[:, None], lines[None, :], BN - 1), axis=1)
    second = tl.min(tl.where(lines[None, :] == best[:, None], float("inf"), products), axis=1)
    # What is not finite is unsure too, even with weight 0: 0 times infinity is not a number.
    sure = (second - least > rounding * (norms + largest)) & (norms < most)
    at, inside = start + tl.arange(0, BM), start + tl.arange(0, BM) < n
    tl.store(labels + at, best, mask=inside)
    tl.store(unsure + at, sure == 0, mask=inside)
