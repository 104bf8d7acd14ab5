"""The passes of a CUDA device, in Triton: what ``passes_numpy`` does, on PyTorch tensors.

A table X is (n, q), row by row, in float32 or float64, and finite. Floats are never added in an
order that may vary, so that results are the same from call to call. Times are of an H200; "the
narrow case" is 1e6 x 100 with 10 runs of 10 clusters, "the wide case" 1e6 x 2000 with 20 of 10,
both in float32.

R, K, n and q are passed at run time: a kernel is compiled anew, in about 0.5 s, only for another
type, for q divisible by 4 or not, and for the few sizes of tiles that the functions below choose.
"""

import torch
import triton
import triton.language as tl

# Tables of so many columns, or a multiple, are read twice as fast as others.
COLUMNS_MULTIPLE = 4

# ---------------------------------------------------------------------------------------- assign

# Columns (a run after the other) that a program of ``_assign_kernel`` works on at most.
MAX_COLUMNS = 128
# Up to so many clusters a run gets a power of 2 of columns, so that its minimum is a plain
# reduction; beyond that runs are packed, and the minimum of each takes a pass over all columns.
# Packed, 20 runs of 5 take 0.76 ms of the narrow table; padded to 8, 0.71.
MAX_SLOT = 8


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
    BM, BN, BK, warps, stages = _assign_tile(R * (slot or K), K, q, X.dtype)
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
        BM=BM, BN=BN, BK=BK, SLOT=slot, UNIT=_unit(q), num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return labels, costs


def _assign_tile(columns, K, q, dtype):
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


def _unit(q):
    """What q is a multiple of: with 4, cells load 4 at a time, and the wide case takes half."""
    return 4 if q % 4 == 0 else 1


@triton.jit
def _two_parts(x):
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
        f_high, f_low = _two_parts(f)
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
    """The products of cases and factors, as exact as float32 (in float64 as exact as that).

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
            x_high, x_low = _two_parts(x)
            f_low = tl.load(low + f_at + first)
            step = tl.dot(x_low, f_high, input_precision="tf32")
            step = tl.dot(x_high, f_low, step, input_precision="tf32")
            step = tl.dot(x_high, f_high, step, input_precision="tf32")
            total += step
    return total


# ------------------------------------------------------------------------------------------ sums

# Cases of a tile, whose groups are copied, counted or trimmed by one program.
TILE = 4096
# Cases that one program adds up; the sums of programs are added in float64.
MIN_CHUNK, MAX_CHUNK = 256, 4096
# Programs enough for the device, and bytes of the sums of programs that are held at once.
PROGRAMS, PARTIAL_BYTES = 1024, 2**28
# Up to this share of cases that changed in some run these alone are read: summing anew is as fast
# from 0.35 on in the narrow case, from 0.65 on in the wide one.
SHIFT_SHARE = 0.5


def sums(X, groups, K):
    """Sum the cases of each group (R, n), -1 for none: totals (R, K, q) and counts in float64.

    The narrow case takes 0.36 ms and the wide one 8.6; a product with a matrix of 0 and 1 takes
    0.39 and 3.25 for each run, ``index_add_`` 1.2 in the narrow case.
    """
    return _grouped(X, None, groups, None, K)


def shift(X, before, after, K):
    """What totals and counts change by from one grouping to another, and the moves of each run.

    Only the cases that changed in some run are read. For 1 in 100 of them that takes 0.27 ms in the
    narrow case, launches and little else, and 0.45 in the wide one.
    """
    moved, index = _changes(before, after)
    return *_grouped(X, before, after, index, K), moved


def update(X, before, after, totals, counts):
    """Bring totals and counts from one grouping to another; return them and the moves."""
    moved, index = _changes(before, after)
    K = counts.shape[1]
    if len(index) > SHIFT_SHARE * len(X):
        return *sums(X, after, K), moved
    more, added = _grouped(X, before, after, index, K)
    return totals + more, counts + added, moved


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
        TILE=TILE, BINS=max(32, triton.next_power_of_2(K)), GATHER=index is not None,
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
            UNIT=_unit(q), num_warps=warps, num_stages=3,
        )  # fmt: skip
        totals += partial[:now].sum(0, dtype=torch.float64)


def _sums_tile(groups, dtype):
    """Groups and columns of a program, cases of a step, and warps."""
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
    bins = tl.arange(0, BINS)
    count = tl.histogram(group, BINS, mask=group >= 0)
    tl.atomic_add(counts + run * K + bins, sign * count, mask=(bins < K) & (count > 0))


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


# ------------------------------------------------------------------------------------------ trim

# Where fewer than 1 in FEW of the costs are left to count, each is counted by itself.
FEW = 32


def trim(labels, costs, m):
    """Groups, -1 for the m cases of largest cost of each run, and the other costs summed.

    The lower number goes first in a tie. The least cost that goes is found 8 bits at a time, for
    all runs at once: 10 runs of 1e6 in 0.18 ms, 0.22 to 0.35 where the device waits for launches;
    sorting them takes 0.98.
    """
    R, n = costs.shape
    labels, costs = labels.contiguous(), costs.contiguous()
    if m == 0:
        return labels.clone(), costs.sum(1, dtype=torch.float64)
    state = _bars(costs, m)
    tiles = triton.cdiv(n, TILE)
    counts = torch.empty((R, tiles), dtype=torch.int64, device=costs.device)
    _ties_kernel[(tiles, R)](costs, state, counts, n, m, TILE=TILE)
    groups = torch.empty_like(labels)
    kept = torch.empty((R, tiles), dtype=torch.float64, device=costs.device)
    _trim_kernel[(tiles, R)](
        labels, costs, state, counts, counts.cumsum(1), groups, kept, n, m, TILE=TILE
    )
    return groups, kept.sum(1)


def _bars(costs, m):
    """For each run the least cost that goes (its bits), how many lie above, how many elsewhere."""
    R, n = costs.shape
    bits = 8 * costs.element_size()
    zeros = torch.zeros((R * 3 + bits // 8 * R * 256,), dtype=torch.int64, device=costs.device)
    state, histograms = zeros[: R * 3], zeros[R * 3 :].reshape(-1, R * 256)
    programs = min(128, triton.cdiv(n, 2048))
    for histogram, end in zip(histograms, range(bits - 8, -1, -8), strict=True):
        _histogram_kernel[(programs, R)](costs, state, histogram, n, end, n // FEW, TILE=2048)
        _digit_kernel[(R,)](state, histogram, n, m, num_warps=1)
    return state


@triton.jit
def _bits(costs):
    """Integers in the order of the costs, which are not negative (-0 is 0)."""
    if costs.dtype == tl.float64:
        return tl.maximum(costs.to(tl.int64, bitcast=True), 0)
    else:
        return tl.maximum(costs.to(tl.int32, bitcast=True), 0)


@triton.jit
def _next_digits(costs, i, n, end, prefix):
    """The digits that end at bit ``end``, and which of the costs begin with the prefix."""
    bits = _bits(tl.load(costs + i, mask=i < n, other=0.0)) >> end
    return (bits & 255).to(tl.int32), (i < n) & ((bits >> 8) == prefix)


@triton.jit(do_not_specialize=["end", "few"])
def _histogram_kernel(costs, state, histogram, n, end, few, TILE: tl.constexpr):
    """Count the next digit of the costs that begin as the bar of their run does."""
    run = tl.program_id(1).to(tl.int64)
    prefix, elsewhere = tl.load(state + run * 3), tl.load(state + run * 3 + 2)
    costs += run * n
    histogram += run * 256
    first, step = tl.program_id(0) * TILE, tl.num_programs(0) * TILE
    if n - elsewhere < few:
        for start in range(first, n, step):
            i = start + tl.arange(0, TILE)
            digits, counted = _next_digits(costs, i, n, end, prefix)
            tl.atomic_add(histogram + digits, counted.to(tl.int64), mask=counted, sem="relaxed")
    else:
        counts = tl.zeros((256,), tl.int32)
        for start in range(first, n, step):
            i = start + tl.arange(0, TILE)
            digits, counted = _next_digits(costs, i, n, end, prefix)
            counts += tl.histogram(digits, 256, mask=counted)
        tl.atomic_add(histogram + tl.arange(0, 256), counts.to(tl.int64), mask=counts > 0)


@triton.jit(do_not_specialize=["n", "m"])
def _digit_kernel(state, histogram, n, m):
    """Append a digit to the bar of a run."""
    run = tl.program_id(0)
    state += run * 3
    digits = tl.arange(0, 256)
    counts = tl.load(histogram + run * 256 + digits)
    higher = tl.load(state + 1) + tl.sum(counts) - tl.cumsum(counts)
    here = (higher < m) & (m <= higher + counts)
    tl.store(state, (tl.load(state) << 8) + tl.sum(tl.where(here, digits, 0)))
    tl.store(state + 1, tl.sum(tl.where(here, higher, 0)))
    tl.store(state + 2, n - tl.sum(tl.where(here, counts, 0)))


@triton.jit(do_not_specialize=["m"])
def _ties_kernel(costs, state, counts, n, m, TILE: tl.constexpr):
    """Count the costs at the bar, tile by tile, where not all of them go."""
    run = tl.program_id(1).to(tl.int64)
    bar, higher = tl.load(state + run * 3), tl.load(state + run * 3 + 1)
    count = 0
    if n - tl.load(state + run * 3 + 2) > m - higher:
        i = tl.program_id(0) * TILE + tl.arange(0, TILE)
        bits = _bits(tl.load(costs + run * n + i, mask=i < n, other=0.0))
        count = tl.sum(((bits == bar) & (i < n)).to(tl.int32))
    tl.store(counts + run * tl.num_programs(0) + tl.program_id(0), count)


@triton.jit(do_not_specialize=["m"])
def _trim_kernel(
    labels, costs, state, counts, cumulative, groups, kept, n, m, TILE: tl.constexpr
):  # fmt: skip
    """Write the groups of a tile, and sum the costs that stay."""
    run = tl.program_id(1).to(tl.int64)
    tile = run * tl.num_programs(0) + tl.program_id(0)
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cost = tl.load(costs + run * n + i, mask=i < n, other=0.0)
    bits, bar = _bits(cost), tl.load(state + run * 3)
    tie = (bits == bar) & (i < n)
    earlier = tl.load(cumulative + tile) - tl.load(counts + tile)
    rank = earlier + tl.cumsum(tie.to(tl.int32))
    out = (bits > bar) | (tie & (rank <= m - tl.load(state + run * 3 + 1)))
    label = tl.load(labels + run * n + i, mask=i < n, other=-1)
    tl.store(groups + run * n + i, tl.where(out, -1, label), mask=i < n)
    tl.store(kept + tile, tl.sum(tl.where(out, 0.0, cost.to(tl.float64))))


# --------------------------------------------------------------------------------- own distances

# Runs whose distances one program finds at most, and columns of its steps.
OWN_RUNS, OWN_COLUMNS = 4, 64


def own_distances(X, location, factor, weights, labels, centres):
    """Distances of (X - location) * factor, weighted and squared, to the centre of the label.

    In float64: ``location`` (q,), ``weights`` (1 or R, q), ``centres`` (R, K, q), and what is
    returned, (R, n). Of 1e6 x 2000 in float32: 2.7 ms for 1 run, 8.3 for 4; reading takes 1.9.
    """
    (n, q), (R, K, _) = X.shape, centres.shape
    out = torch.empty((R, n), dtype=torch.float64, device=X.device)
    scale = torch.full((1,), factor, dtype=torch.float64, device=X.device)
    first = 0
    while first < R:
        runs = min(OWN_RUNS, triton.next_power_of_2(R - first))
        cases, warps = (16, 4) if runs > 2 else (8, 2)
        _own_kernel[(triton.cdiv(n, cases),)](
            X, location.contiguous(), scale, weights.contiguous(), labels.contiguous(),
            centres.contiguous(), out, n, q, K, R, first, q if len(weights) > 1 else 0,
            RUNS=runs, BM=cases, BC=OWN_COLUMNS, UNIT=_unit(q), num_warps=warps,
        )  # fmt: skip
        first += runs
    return out


@triton.jit(do_not_specialize=["n", "q", "K", "R", "first", "weights_stride"])
def _own_kernel(
    X, location, factor, weights, labels, centres, out, n, q, K, R, first, weights_stride,
    RUNS: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """Distances of some cases, for some runs."""
    stride = q // UNIT * UNIT
    start = tl.program_id(0).to(tl.int64) * BM
    rows = tl.minimum(tl.arange(0, BM), n - 1 - start).to(tl.int32)
    run = tl.minimum(first + tl.arange(0, RUNS), R - 1)[:, None]
    at = run.to(tl.int64) * n + start + rows[None, :]
    own = (run * K + tl.maximum(tl.load(labels + at), 0)).to(tl.int64) * stride
    scale = tl.load(factor)
    total = tl.zeros((RUNS, BM, BC), tl.float64)
    for j0 in tl.range(0, q, BC, num_stages=3):
        j = (j0 + tl.arange(0, BC))[None, :]
        x_at = X + start * stride + rows[:, None] * stride + j
        x = tl.load(x_at, mask=j < stride, other=0.0).to(tl.float64)
        x = (x - tl.load(location + j, mask=j < stride, other=0.0)) * scale
        c_at = centres + own[:, :, None] + j[None, :, :]
        error = x[None, :, :] - tl.load(c_at, mask=(j < stride)[None, :, :], other=0.0)
        w = tl.load(weights + run * weights_stride + j, mask=j < stride, other=0.0)
        total += w[:, None, :] * (error * error)
    inside = (start + tl.arange(0, BM) < n)[None, :] & (first + tl.arange(0, RUNS) < R)[:, None]
    tl.store(out + at, tl.sum(total, axis=2), mask=inside)
