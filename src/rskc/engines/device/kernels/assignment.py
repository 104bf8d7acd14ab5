"""The nearest center of every case."""

import torch
import triton
import triton.language as tl

from rskc.engines.device.kernels.common import on_its_device, unit

# Columns (a run after the other) that a program of ``_assign_kernel`` works on at most.
MAX_COLUMNS = 128
# Up to this many clusters a run gets a power of 2 of columns, so that its minimum is a plain
# reduction; beyond that runs are packed, and the minimum of each takes a pass over all columns.
# Packed, 20 runs of 5 take 0.76 ms of the narrow table; padded to 8, 0.71.
MAX_SLOT = 8


@on_its_device
def assign(X, factors, constants, norms):
    """Find the k with the least x . factors[r, k] + constants[r, k], the lowest in a tie.

    Parameters
    ----------
    X : tensor (n, q)
    factors : tensor (R, K, q)
    constants : tensor (R, K)
    norms : tensor (1 or R, n)
        Added to the least, which then cannot be negative, for the costs.

    Returns
    -------
    labels : tensor (R, n) of int32
    costs : tensor (R, n)
    """
    R, K, _ = factors.shape
    if K <= MAX_COLUMNS:
        return _assign(X, factors, constants, norms, 0.0)
    parts = triton.cdiv(K, MAX_COLUMNS)
    part = triton.cdiv(K, parts)
    gap = parts * part - K
    factors = torch.nn.functional.pad(factors, (0, 0, 0, gap)).reshape(R * parts, part, -1)
    constants = torch.nn.functional.pad(constants, (0, gap), value=float("inf"))
    zeros = torch.zeros((1, len(X)), dtype=X.dtype, device=X.device)
    labels, least = _assign(X, factors, constants.reshape(R * parts, part), zeros, float("-inf"))
    least, best = least.reshape(R, parts, -1).min(dim=1)
    labels = labels.reshape(R, parts, -1).gather(1, best[:, None])[:, 0]
    return labels + part * best.to(torch.int32), torch.clamp(least + norms, min=0)


def _assign(X, factors, constants, norms, floor):
    (n, q), (R, K, _) = X.shape, factors.shape
    slot = triton.next_power_of_2(K) if K <= MAX_SLOT else 0
    BM, BN, BK, warps, stages = assign_tile(R * (slot or K), K, q, X.dtype)
    per_block = BN // (slot or K)
    n_blocks = triton.cdiv(R, per_block)
    width = triton.cdiv(q, 64) * 64
    packed = torch.empty((2, n_blocks * BN, width), dtype=X.dtype, device=X.device)
    offsets = torch.empty(n_blocks * BN, dtype=X.dtype, device=X.device)
    _pack_kernel[(n_blocks * BN, triton.cdiv(width, 1024))](
        factors.contiguous(), constants.contiguous(), packed[0], packed[1], offsets,
        R, K, q, width, slot or K, per_block, BN=BN, COLUMNS=1024,
    )  # fmt: skip
    labels = torch.empty((R, n), dtype=torch.int32, device=X.device)
    costs = torch.empty((R, n), dtype=X.dtype, device=X.device)
    _assign_kernel[(triton.cdiv(n, BM) * n_blocks,)](
        X, packed[0], packed[1], offsets, norms.contiguous(), labels, costs,
        n, q, R, K, per_block, n_blocks, n if len(norms) > 1 else 0, floor,
        BM=BM, BN=BN, BK=BK, SLOT=slot, UNIT=unit(q), num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return labels, costs


def assign_tile(columns, K, q, dtype):
    """Rows, columns and terms of a step, warps, and steps loaded ahead.

    The minima take less of fewer columns, the products less of more: the narrow case takes 0.62 ms
    with 32 columns and 0.66 with 64, the wide one 10.9 with 64 and 11.3 with 128.
    """
    if dtype == torch.float64:
        return (64, 32, 16, 2, 3) if K <= 16 else (64, 64 if K <= 64 else 128, 16, 4, 3)
    if columns <= 16:
        return 64, 16, 64, 4, 3
    if K <= 16 and (columns <= 32 or q < 512):
        return 128, 32, 32, 4, 3
    if K <= 64:
        return 128, 64, 32, 4, 3
    return 128, 128, 32, 8, 3


@triton.jit
def two_parts(x):
    """Split float32 in two for TF32, which ignores the last 13 bits; 1 in 2^23 is lost at most."""
    high = ((x.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    low = ((x - high).to(tl.int32, bitcast=True) + 0x1000).to(tl.float32, bitcast=True)
    return high, low


@triton.jit(do_not_specialize=["R", "K", "q", "width", "slot", "per_block"])
def _pack_kernel(
    factors, constants, high, low, offsets, R, K, q, width, slot, per_block,
    BN: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Lay factors out as ``_assign_kernel`` reads them, zeros in the gaps, and split them."""
    line = tl.program_id(0)
    run = line // BN * per_block + line % BN // slot
    k = line % BN % slot
    used = (line % BN < per_block * slot) & (run < R) & (k < K)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    f = tl.load(factors + (run * K + k).to(tl.int64) * q + j, mask=used & (j < q), other=0.0)
    at = line.to(tl.int64) * width + j
    if f.dtype == tl.float64:
        tl.store(high + at, f, mask=j < width)
    else:
        f_high, f_low = two_parts(f)
        tl.store(high + at, f_high, mask=j < width)
        tl.store(low + at, f_low, mask=j < width)
    if tl.program_id(1) == 0:
        tl.store(offsets + line, tl.load(constants + run * K + k, mask=used, other=float("inf")))


@triton.jit(
    do_not_specialize=["n", "q", "R", "K", "per_block", "n_blocks", "norms_stride", "floor"]
)
def _assign_kernel(
    X, high, low, offsets, norms, labels, costs,
    n, q, R, K, per_block, n_blocks, norms_stride, floor,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SLOT: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """Multiply BM cases with the factors of the runs of a block, and keep the least of each run."""
    block = tl.program_id(0) % n_blocks
    start = (tl.program_id(0) // n_blocks).to(tl.int64) * BM
    products = _products(X, high, low, block, start, n, q, BM, BN, BK, UNIT)
    lines, rows = tl.arange(0, BN), tl.arange(0, BM)
    products += tl.load(offsets + block * BN + lines)[None, :]
    if SLOT > 0:
        slots, place = tl.arange(0, BN // SLOT)[None, :], tl.arange(0, SLOT)[None, None, :]
        cube = tl.reshape(products, (BM, BN // SLOT, SLOT))
        least = tl.min(cube, axis=2)
        nearest = tl.min(tl.where(cube == least[:, :, None], place, K - 1), axis=2)
        run = (block * per_block + slots).to(tl.int64)
        at, kept = start + rows[:, None], (start + rows[:, None] < n) & (run < R)
        norm = tl.load(norms + run * norms_stride + at, mask=kept, other=0.0)
        tl.store(labels + run * n + at, nearest, mask=kept)
        tl.store(costs + run * n + at, tl.maximum(least + norm, floor), mask=kept)
    else:
        for slot in range(per_block):
            run = (block * per_block + slot).to(tl.int64)
            mine = (lines >= slot * K) & (lines < slot * K + K)
            own = tl.where(mine[None, :], products, float("inf"))
            least = tl.min(own, axis=1)
            nearest = tl.min(tl.where(own == least[:, None], lines[None, :] - slot * K, BN), axis=1)
            at, kept = start + rows, (start + rows < n) & (run < R)
            norm = tl.load(norms + run * norms_stride + at, mask=kept, other=0.0)
            tl.store(labels + run * n + at, tl.minimum(tl.maximum(nearest, 0), K - 1), mask=kept)
            tl.store(costs + run * n + at, tl.maximum(least + norm, floor), mask=kept)


@triton.jit
def _products(
    X, high, low, block, start, n, q,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """Multiply cases and factors, as exactly as float32 allows (or float64, for its tables).

    Three products in TF32 take the place of one in float32. Tensor cores do not round what they
    add up but cut it off, so that each step begins at 0 and is added outside of them: the error is
    then 0.6 times that of cuBLAS in float32, else 15 times (wide case).
    """
    stride, width = q // UNIT * UNIT, (q + 63) // 64 * 64
    rows = tl.minimum(tl.arange(0, BM), n - 1 - start).to(tl.int32)
    j = tl.arange(0, BK)
    x_at = X + start * stride + rows[:, None] * stride + j[None, :]
    f_at = block.to(tl.int64) * BN * width + tl.arange(0, BN)[None, :] * width + j[:, None]
    total = tl.zeros((BM, BN), X.dtype.element_ty)
    for first in range(0, q, BK):
        x = tl.load(x_at + first, mask=(first + j)[None, :] < stride, other=0.0)
        f_high = tl.load(high + f_at + first)
        if X.dtype.element_ty == tl.float64:
            total = tl.dot(x, f_high, total, input_precision="ieee", out_dtype=tl.float64)
        else:
            x_high, x_low = two_parts(x)
            f_low = tl.load(low + f_at + first)
            step = tl.dot(x_low, f_high, input_precision="tf32")
            step = tl.dot(x_high, f_low, step, input_precision="tf32")
            step = tl.dot(x_high, f_high, step, input_precision="tf32")
            total += step
    return total
