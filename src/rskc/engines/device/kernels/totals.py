"""Sums of the cases of each group, and how they change."""

import torch
import triton
import triton.language as tl

from rskc.engines.device.kernels.common import TILE, on_its_device, unit

# Cases that one program adds up; the sums of programs are added in float64.
MIN_CHUNK, MAX_CHUNK = 256, 4096
# Programs enough for the device, and bytes of the sums of programs that are held at once.
PROGRAMS, PARTIAL_BYTES = 1024, 2**28
# Groups that a program counts by itself; of more each case is added to the counts, which are then
# far apart enough: a histogram of 1024 bins takes seconds to compile.
BINS = 32, 128


@on_its_device
def sums(X, groups, K):
    """Sum the cases of each group (R, n), -1 for none: totals (R, K, q) and counts in float64.

    The narrow case takes 0.36 ms and the wide one 8.6; a product with a matrix of 0 and 1 takes
    0.39 and 3.25 for each run, ``index_add_`` 1.2 in the narrow case.
    """
    return _grouped(X, None, groups, None, K)


@on_its_device
def shift(X, before, after, K):
    """Return what totals and counts change by between groupings, and the moves of each run.

    Only the cases that changed in some run are read. For 1 in 100 of them that takes 0.27 ms in the
    narrow case, launches and little else, and 0.45 in the wide one.
    """
    moved, index = _changes(before, after)
    return *_grouped(X, before, after, index, K), moved


def _changes(before, after):
    """How many cases of each run changed their group, and the numbers of those of any run."""
    R, n = after.shape
    moved = torch.zeros(R, dtype=torch.int64, device=after.device)
    changed = torch.empty(n, dtype=torch.int8, device=after.device)
    _changes_kernel[(triton.cdiv(n, 1024),)](
        before.contiguous(), after.contiguous(), moved, changed, n, R, TILE=1024
    )
    return moved, torch.nonzero(changed).ravel()


def _grouped(X, before, after, index, K):
    """Totals and counts of ``after``, less those of ``before``, over some cases or all."""
    q, R = X.shape[1], len(after)
    m = len(X) if index is None else len(index)
    totals = torch.zeros((R * K, q), dtype=torch.float64, device=X.device)
    counts = torch.zeros((R, K), dtype=torch.int32, device=X.device)
    if m > 0:
        # One byte for a group is read fastest, but the float64 tensor cores of Triton need four.
        kind = torch.int8 if K < 128 and X.dtype == torch.float32 else torch.int32
        new = _codes(after, index, K, kind, 1, counts)
        old = new if before is None else _codes(before, index, K, kind, -1, counts)
        _add_totals(X, old, new, index, m, K, totals)
    return totals.reshape(R, K, q), counts.double()


def _codes(groups, index, K, kind, sign, counts):
    """Copy the groups of some cases or all, in whole tiles, and add sign * their counts."""
    R, n = groups.shape
    m = n if index is None else len(index)
    codes = torch.empty((R, triton.cdiv(m, TILE) * TILE), dtype=kind, device=groups.device)
    _codes_kernel[(triton.cdiv(m, TILE), R)](
        groups.contiguous(), groups if index is None else index, codes, counts, n, m, K, sign,
        TILE=TILE, BINS=next((bins for bins in BINS if bins >= K), 0), GATHER=index is not None,
    )  # fmt: skip
    return codes


def _add_totals(X, old, new, index, m, K, totals):
    q, R = X.shape[1], len(new)
    BG, BC, step, warps = _sums_tile(R * K, X.dtype)
    blocks = triton.cdiv(q, BC), triton.cdiv(R * K, BG)
    chunk = min(max(blocks[0] * blocks[1] * m // PROGRAMS, MIN_CHUNK), MAX_CHUNK)
    steps = chunk // step
    chunks = triton.cdiv(m, steps * step)
    at_once = min(chunks, max(1, PARTIAL_BYTES // (R * K * q * X.element_size())), 65535)
    partial = torch.empty((at_once, R * K, q), dtype=X.dtype, device=X.device)
    for first in range(0, chunks, at_once):
        now = min(at_once, chunks - first)
        _sums_kernel[(*blocks, now)](
            X, old, new, new if index is None else index, partial,
            m, q, R, K, new.shape[1] // TILE, first, steps,
            BG=BG, BC=BC, STEP=step, TILE=TILE, SHIFT=new is not old, GATHER=index is not None,
            UNIT=unit(q), num_warps=warps, num_stages=3,
        )  # fmt: skip
        totals += partial[:now].sum(0, dtype=torch.float64)


def _sums_tile(groups, dtype):
    """Return groups and columns of a program, cases of a step, and warps."""
    if dtype == torch.float64:
        return 64, 64, 16, 4
    return (32, 128, 64, 4) if groups <= 32 else (128, 64, 64, 8)


@triton.jit(do_not_specialize=["R"])
def _changes_kernel(before, after, moved, changed, n, R, TILE: tl.constexpr):
    """Count the cases of each run that changed their group, and mark those of any run."""
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    at = i.to(tl.int64)
    any_run = tl.zeros((TILE,), tl.int32)
    for run in range(R):
        old = tl.load(before + at, mask=i < n, other=-1)
        new = tl.load(after + at, mask=i < n, other=-1)
        differ = (old != new).to(tl.int32)
        count = tl.sum(differ)
        tl.atomic_add(moved + run, count.to(tl.int64), mask=count > 0)
        any_run |= differ
        at += n
    tl.store(changed + i, any_run.to(tl.int8), mask=i < n)


@triton.jit(do_not_specialize=["m", "K", "sign"])
def _codes_kernel(
    groups, index, codes, counts, n, m, K, sign,
    TILE: tl.constexpr, BINS: tl.constexpr, GATHER: tl.constexpr,
):  # fmt: skip
    """Copy the groups of a tile of cases, -1 behind the last, and count them."""
    run = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    rows = i
    if GATHER:
        rows = tl.load(index + i, mask=i < m, other=0)
    group = tl.load(groups + run * n + rows, mask=i < m, other=-1)
    tl.store(codes + run * tl.num_programs(0) * TILE + i, group)
    if BINS > 0:
        bins = tl.arange(0, BINS)
        count = tl.histogram(group, BINS, mask=group >= 0)
        tl.atomic_add(counts + run * K + bins, sign * count, mask=(bins < K) & (count > 0))
    else:
        tl.atomic_add(counts + run * K + group, tl.where(group < 0, 0, sign), mask=group >= 0)


@triton.jit(do_not_specialize=["m", "q", "R", "K", "tiles", "first", "steps"])
def _sums_kernel(
    X, old, new, index, partial, m, q, R, K, tiles, first, steps,
    BG: tl.constexpr, BC: tl.constexpr, STEP: tl.constexpr, TILE: tl.constexpr,
    SHIFT: tl.constexpr, GATHER: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """Sum some columns of a chunk of cases, as the product of a matrix of 0 and 1 with them.

    Three parts in bfloat16 are a float32, so that the products are exact. As in ``_products`` each
    step is added outside of the tensor cores: of columns with mean 5 and deviation 1 the sums are
    right to 5e-8, those of cuBLAS in float32 to 7e-7.
    """
    stride = q // UNIT * UNIT
    group = tl.program_id(1) * BG + tl.arange(0, BG)
    used = group < R * K
    k = tl.where(used, group % K, -2)[:, None]
    codes = tl.minimum(group // K, R - 1).to(tl.int64)[:, None] * tiles * TILE
    j = tl.program_id(0) * BC + tl.arange(0, BC)
    begin = (first + tl.program_id(2)) * steps * STEP
    end = tl.minimum(begin + steps * STEP, m)
    total = tl.zeros((BG, BC), X.dtype.element_ty)
    for start in range(begin, end, STEP):
        i = start + tl.arange(0, STEP)
        rows = i.to(tl.int64)
        if GATHER:
            rows = tl.load(index + i, mask=i < end, other=0)
        member = (tl.load(new + codes + i[None, :]) == k).to(tl.float32)
        if SHIFT:
            member -= (tl.load(old + codes + i[None, :]) == k).to(tl.float32)
        inside = (i < end)[:, None] & (j < stride)[None, :]
        x = tl.load(X + rows[:, None] * stride + j[None, :], mask=inside, other=0.0)
        if X.dtype.element_ty == tl.float64:
            member = member.to(tl.float64)
            total = tl.dot(member, x, total, input_precision="ieee", out_dtype=tl.float64)
        else:
            member = member.to(tl.bfloat16)
            high = x.to(tl.bfloat16)
            rest = x - high.to(tl.float32)
            middle = rest.to(tl.bfloat16)
            low = (rest - middle.to(tl.float32)).to(tl.bfloat16)
            step = tl.dot(member, low)
            step = tl.dot(member, middle, step)
            step = tl.dot(member, high, step)
            total += step
    at = (tl.program_id(2) * (R * K) + group).to(tl.int64)[:, None] * q + j[None, :]
    tl.store(partial + at, total, mask=used[:, None] & (j < q)[None, :])
