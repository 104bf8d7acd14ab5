"""The passes of a CUDA device, in Triton: what ``passes_numpy`` does, on PyTorch tensors.

Tables are (n, q), row by row, in float32 or float64, and finite. All results are the same from call
to call: no pass adds floats in an order that may vary.
"""

import torch
import triton
import triton.language as tl

# ---------------------------------------------------------------------------------------- assign


@triton.jit
def _two_parts(x):
    """Split float32 in two that TF32 holds (it ignores the last 13 bits), to 1 in 2^23."""
    high = ((x.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    low = ((x - high).to(tl.int32, bitcast=True) + 0x1000).to(tl.float32, bitcast=True)
    return high, low


@triton.jit(do_not_specialize=["R", "K", "q", "width", "slot", "per_block"])
def _pack_kernel(
    factors, constants, high, low, packed, R, K, q, width, slot, per_block,
    BN: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Lay factors out for ``_assign_kernel``, zeros in the gaps, and split them."""
    line = tl.program_id(0)
    run = line // BN * per_block + line % BN // slot
    k = line % BN % slot
    used = (line % BN < per_block * slot) & (run < R) & (k < K)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    f = tl.load(factors + (run * K + k).to(tl.int64) * q + j, mask=used & (j < q), other=0.0)
    here = line * width + j
    if f.dtype == tl.float64:
        tl.store(high + here, f, mask=j < width)
    else:
        f_high, f_low = _two_parts(f)
        tl.store(high + here, f_high, mask=j < width)
        tl.store(low + here, f_low, mask=j < width)
    if tl.program_id(1) == 0:
        tl.store(packed + line, tl.load(constants + run * K + k, mask=used, other=float("inf")))


@triton.jit(do_not_specialize=["q", "R", "K", "per_block", "n_blocks", "norms_stride"])
def _assign_kernel(
    X, high, low, constants, norms, labels, costs,
    n, q, R, K, per_block, n_blocks, norms_stride,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    SLOTS: tl.constexpr, SLOT: tl.constexpr, MODE: tl.constexpr, UNIT: tl.constexpr,
    DIRECT: tl.constexpr, EQ: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0) % n_blocks
    start = (tl.program_id(0) // n_blocks).to(tl.int64) * BM
    stride, width = q // UNIT * UNIT, (q + 63) // 64 * 64
    rows = tl.minimum(tl.arange(0, BM), n - 1 - start).to(tl.int32)
    lines = tl.arange(0, BN)
    j = tl.arange(0, BK)
    x_at = X + start * stride + rows[:, None] * stride + j[None, :]
    f_at = block * BN * width + lines[None, :] * width + j[:, None]
    double: tl.constexpr = X.dtype.element_ty == tl.float64
    acc = tl.zeros((BM, BN), tl.float64 if double else tl.float32)
    for first in range(0, q, BK):
        x = tl.load(x_at + first, mask=(first + j)[None, :] < stride, other=0.0)
        f_high = tl.load(high + f_at + first)
        if double:
            acc = tl.dot(x, f_high, acc, input_precision="ieee", out_dtype=tl.float64)
        elif DIRECT == 2:
            acc = tl.dot(x, f_high, acc, input_precision="ieee")
        else:
            x_high, x_low = _two_parts(x)
            f_low = tl.load(low + f_at + first)
            if DIRECT == 1:
                acc = tl.dot(x_low, f_high, acc, input_precision="tf32")
                acc = tl.dot(x_high, f_low, acc, input_precision="tf32")
                acc = tl.dot(x_high, f_high, acc, input_precision="tf32")
            else:
                part = tl.dot(x_low, f_high, input_precision="tf32")
                part = tl.dot(x_high, f_low, part, input_precision="tf32")
                part = tl.dot(x_high, f_high, part, input_precision="tf32")
                acc += part
    acc += tl.load(constants + block * BN + lines)[None, :]
    n_rows = tl.minimum(n - start, BM).to(tl.int32)
    if MODE == "mask":
        rows = tl.arange(0, BM)
        for slot in range(per_block):
            run = block * per_block + slot
            mine = (lines >= slot * K) & (lines < slot * K + K)
            own = tl.where(mine[None, :], acc, float("inf"))
            least = tl.min(own, axis=1)
            nearest = tl.min(tl.where(own == least[:, None], lines[None, :], BN), axis=1)
            nearest = tl.minimum(nearest - slot * K, K - 1)
            kept = (rows < n_rows) & (run < R)
            norm = tl.load(norms + run.to(tl.int64) * norms_stride + start + rows, mask=kept)
            at = run.to(tl.int64) * n + start + rows
            tl.store(labels + at, nearest, mask=kept)
            tl.store(costs + at, tl.maximum(least + norm, 0.0), mask=kept)
    else:
        if MODE == "gather":
            s = tl.arange(0, SLOTS * SLOT)
            source = tl.minimum(s // SLOT * K + tl.minimum(s % SLOT, K - 1), BN - 1)
            acc = tl.gather(acc, tl.broadcast_to(source[None, :], (BM, SLOTS * SLOT)), 1)
        cube = tl.reshape(acc, (BM, SLOTS, SLOT))
        if EQ:
            least = tl.min(cube, axis=2)
            place = tl.arange(0, SLOT)[None, None, :]
            nearest = tl.min(tl.where(cube == least[:, :, None], place, SLOT), axis=2)
        else:
            least, nearest = tl.min(cube, axis=2, return_indices=True)
        nearest = tl.minimum(nearest, K - 1)
        slots = tl.arange(0, SLOTS)
        runs = (block * per_block + slots).to(tl.int64)[None, :]
        rows = tl.arange(0, BM)[:, None]
        kept = (rows < n_rows) & (runs < R) & (slots < per_block)[None, :]
        norm = tl.load(norms + runs * norms_stride + start + rows, mask=kept, other=0.0)
        at = runs * n + start + rows
        tl.store(labels + at, nearest, mask=kept)
        tl.store(costs + at, tl.maximum(least + norm, 0.0), mask=kept)


def _unit(q):
    return 4 if q % 4 == 0 else 1


def assign_variant(X, factors, constants, norms, mode, BM, BN, BK, warps, stages, direct=0, eq=False):
    R, K, q = factors.shape
    n = len(X)
    SLOT = triton.next_power_of_2(K)
    slot = SLOT if mode == "pad" else K
    per_block = BN // slot
    SLOTS = BN // SLOT if mode == "pad" else triton.next_power_of_2(per_block)
    n_blocks = triton.cdiv(R, per_block)
    width = triton.cdiv(q, 64) * 64
    high = torch.empty((n_blocks * BN, width), dtype=X.dtype, device=X.device)
    low = high if X.dtype == torch.float64 else torch.empty_like(high)
    packed = torch.empty(n_blocks * BN, dtype=X.dtype, device=X.device)
    _pack_kernel[(n_blocks * BN, triton.cdiv(width, 1024))](
        factors, constants, high, low, packed, R, K, q, width, slot, per_block, BN=BN, COLUMNS=1024
    )
    labels = torch.empty((R, n), dtype=torch.int32, device=X.device)
    costs = torch.empty((R, n), dtype=X.dtype, device=X.device)
    k = _assign_kernel[(triton.cdiv(n, BM) * n_blocks,)](
        X, high, low, packed, norms, labels, costs,
        n, q, R, K, per_block, n_blocks, n if len(norms) > 1 else 0,
        BM=BM, BN=BN, BK=BK, SLOTS=SLOTS, SLOT=SLOT, MODE=mode, UNIT=_unit(q), DIRECT=direct, EQ=eq,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    assign_variant.last = k
    return labels, costs


# ------------------------------------------------------------------------------------------ sums


@triton.jit(do_not_specialize=["m", "K", "tiles", "sign"])
def _codes_kernel(
    groups, index, codes, counts, n, m, K, tiles, sign,
    TILE: tl.constexpr, BINS: tl.constexpr, GATHER: tl.constexpr,
):  # fmt: skip
    """Copy the groups of some cases, -1 behind the last, and count them."""
    run = tl.program_id(1)
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    rows = i
    if GATHER:
        rows = tl.load(index + i, mask=i < m, other=0)
    g = tl.load(groups + run.to(tl.int64) * n + rows, mask=i < m, other=-1)
    tl.store(codes + (run.to(tl.int64) * tiles + tl.program_id(0)) * TILE + tl.arange(0, TILE), g)
    bins = tl.arange(0, BINS)
    count = tl.histogram(g, BINS, mask=g >= 0)
    tl.atomic_add(counts + run * K + bins, sign * count, mask=(bins < K) & (count > 0))


@triton.jit(do_not_specialize=["m", "q", "R", "K", "tiles", "chunk"])
def _sums_kernel(
    X, before, after, index, partial, m, q, R, K, tiles, chunk,
    BG: tl.constexpr, BC: tl.constexpr, BR: tl.constexpr, TILE: tl.constexpr, SHIFT: tl.constexpr,
    GATHER: tl.constexpr, UNIT: tl.constexpr, TURN: tl.constexpr,
):  # fmt: skip
    """Sum a chunk of cases: the product of a matrix of 0 and 1, which is exact, with X."""
    stride = q // UNIT * UNIT
    groups = tl.program_id(1) * BG + tl.arange(0, BG)
    run = tl.minimum(groups // K, R - 1).to(tl.int64) * tiles * TILE
    k = tl.where(groups < R * K, groups % K, -2)
    j = tl.program_id(0) * BC + tl.arange(0, BC)
    begin = tl.program_id(2) * chunk * BR
    end = tl.minimum(begin + chunk * BR, m)
    double: tl.constexpr = X.dtype.element_ty == tl.float64
    if TURN:
        acc = tl.zeros((BC, BG), X.dtype.element_ty)
    else:
        acc = tl.zeros((BG, BC), X.dtype.element_ty)
    for i0 in range(begin, end, BR):
        i = i0 + tl.arange(0, BR)
        rows = i.to(tl.int64)
        if GATHER:
            rows = tl.load(index + i, mask=i < end, other=0)
        if TURN:
            hot = (tl.load(after + run[None, :] + i[:, None]) == k[None, :]).to(tl.float32)
            if SHIFT:
                hot -= (tl.load(before + run[None, :] + i[:, None]) == k[None, :]).to(tl.float32)
        else:
            hot = (tl.load(after + run[:, None] + i[None, :]) == k[:, None]).to(tl.float32)
            if SHIFT:
                hot -= (tl.load(before + run[:, None] + i[None, :]) == k[:, None]).to(tl.float32)
        inside = (i < end)[:, None] & (j < stride)[None, :]
        x = tl.load(X + rows[:, None] * stride + j[None, :], mask=inside, other=0.0)
        if double:
            acc = tl.dot(hot.to(tl.float64), x, acc, input_precision="ieee", out_dtype=tl.float64)
        else:
            hot = hot.to(tl.bfloat16)
            if TURN:
                x = tl.trans(x)
            high = x.to(tl.bfloat16)
            rest = x - high.to(tl.float32)
            middle = rest.to(tl.bfloat16)
            low = (rest - middle.to(tl.float32)).to(tl.bfloat16)
            if TURN:
                part = tl.dot(low, hot)
                part = tl.dot(middle, hot, part)
                part = tl.dot(high, hot, part)
            else:
                part = tl.dot(hot, low)
                part = tl.dot(hot, middle, part)
                part = tl.dot(hot, high, part)
            acc += part
    at = (tl.program_id(2) * (R * K) + groups).to(tl.int64)[:, None] * q + j[None, :]
    if TURN:
        acc = tl.trans(acc)
    tl.store(partial + at, acc, mask=(groups < R * K)[:, None] & (j < q)[None, :])


CODE_TILE = 4096


def codes_of(groups, K, counts, sign, index=None, small=True):
    R, n = groups.shape
    m = n if index is None else len(index)
    tiles = triton.cdiv(m, CODE_TILE)
    kind = torch.int8 if small else torch.int32
    codes = torch.empty((R, tiles * CODE_TILE), dtype=kind, device=groups.device)
    _codes_kernel[(tiles, R)](
        groups, groups if index is None else index, codes, counts, n, m, K, tiles, sign,
        TILE=CODE_TILE, BINS=max(32, triton.next_power_of_2(K)), GATHER=index is not None,
        num_warps=4,
    )  # fmt: skip
    return codes


def sums_variant(X, groups, K, BG, BC, BR, warps, stages, chunk, turn=False, before=None, index=None):
    (n, q), R = X.shape, len(groups)
    m = n if index is None else len(index)
    counts = torch.zeros((R, K), dtype=torch.int32, device=X.device)
    small = K < 128 and X.dtype == torch.float32
    after = codes_of(groups, K, counts, 1, index, small)
    old = after if before is None else codes_of(before, K, counts, -1, index, small)
    chunks = triton.cdiv(m, chunk * BR)
    partial = torch.empty((chunks, R * K, q), dtype=X.dtype, device=X.device)
    _sums_kernel[(triton.cdiv(q, BC), triton.cdiv(R * K, BG), chunks)](
        X, old, after, after if index is None else index,
        partial, m, q, R, K, after.shape[1] // CODE_TILE, chunk,
        BG=BG, BC=BC, BR=BR, SHIFT=before is not None, GATHER=index is not None, UNIT=_unit(q),
        TURN=turn, TILE=CODE_TILE, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return partial.sum(0, dtype=torch.float64).reshape(R, K, q), counts.double()


@triton.jit(do_not_specialize=["R"])
def _changes_kernel(before, after, moved, any_moved, n, R, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    changed = tl.zeros((TILE,), tl.int32)
    at = i.to(tl.int64)
    for run in range(R):
        a = tl.load(after + at, mask=i < n, other=-1)
        b = tl.load(before + at, mask=i < n, other=-1)
        differ = (a != b).to(tl.int32)
        changed |= differ
        count = tl.sum(differ)
        tl.atomic_add(moved + run, count.to(tl.int64), mask=count > 0)
        at += n
    tl.store(any_moved + i, changed.to(tl.int8), mask=i < n)


def changes(before, after):
    R, n = after.shape
    moved = torch.zeros(R, dtype=torch.int64, device=after.device)
    any_moved = torch.empty(n, dtype=torch.int8, device=after.device)
    _changes_kernel[(triton.cdiv(n, 1024),)](before, after, moved, any_moved, n, R, TILE=1024)
    return moved, torch.nonzero(any_moved).ravel()


# ------------------------------------------------------------------------------------------ trim


@triton.jit
def _bits(costs):
    """Integers in the order of costs that are not negative."""
    if costs.dtype == tl.float64:
        return tl.maximum(costs.to(tl.int64, bitcast=True), 0)
    else:
        return tl.maximum(costs.to(tl.int32, bitcast=True), 0)


@triton.jit(do_not_specialize=["shift"])
def _digits_kernel(costs, prefixes, ties, histogram, n, shift, TILE: tl.constexpr):
    """Count the next 8 bits of the costs that begin with the prefix of their run."""
    run = tl.program_id(1)
    prefix = tl.load(prefixes + run)
    row = costs + run.to(tl.int64) * n
    here = histogram + run * 256
    first, step = tl.program_id(0) * TILE, tl.num_programs(0) * TILE
    if tl.load(ties + run) < n // 32:
        for start in range(first, n, step):
            i = start + tl.arange(0, TILE)
            bits = _bits(tl.load(row + i, mask=i < n, other=0.0)) >> shift
            counted = (i < n) & ((bits >> 8) == prefix)
            tl.atomic_add(here + (bits & 255).to(tl.int32), 1, mask=counted, sem="relaxed")
    else:
        counts = tl.zeros((256,), tl.int32)
        for start in range(first, n, step):
            i = start + tl.arange(0, TILE)
            bits = _bits(tl.load(row + i, mask=i < n, other=0.0)) >> shift
            counted = (i < n) & ((bits >> 8) == prefix)
            counts += tl.histogram((bits & 255).to(tl.int32), 256, mask=counted)
        tl.atomic_add(here + tl.arange(0, 256), counts, mask=counts > 0)


@triton.jit
def _digit_kernel(histogram, prefixes, needed, ties):
    """Find the digit of the cost that is trimmed last, and how many of its like still go."""
    run = tl.program_id(0)
    digits = tl.arange(0, 256)
    counts = tl.load(histogram + run * 256 + digits)
    need = tl.load(needed + run)
    above = tl.sum(counts) - tl.cumsum(counts)
    here = (above < need) & (need <= above + counts)
    digit = tl.sum(tl.where(here, digits, 0))
    tl.store(prefixes + run, (tl.load(prefixes + run) << 8) + digit)
    tl.store(needed + run, need - tl.sum(tl.where(here, above, 0)))
    tl.store(ties + run, tl.sum(tl.where(here, counts, 0)))


@triton.jit
def _ties_kernel(costs, bars, needed, ties, counts, n, TILE: tl.constexpr):
    """Count the costs that tie with the bar, tile by tile, where not all of them go."""
    run = tl.program_id(1)
    count = 0
    if tl.load(ties + run) > tl.load(needed + run):
        i = tl.program_id(0) * TILE + tl.arange(0, TILE)
        bits = _bits(tl.load(costs + run.to(tl.int64) * n + i, mask=i < n, other=0.0))
        count = tl.sum(((bits == tl.load(bars + run)) & (i < n)).to(tl.int32))
    tl.store(counts + run * tl.num_programs(0) + tl.program_id(0), count)


@triton.jit
def _trim_kernel(labels, costs, bars, needed, earlier, groups, kept, n, TILE: tl.constexpr):
    run = tl.program_id(1)
    tile = run * tl.num_programs(0) + tl.program_id(0)
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    at = run.to(tl.int64) * n + i
    cost = tl.load(costs + at, mask=i < n, other=0.0)
    bits = _bits(cost)
    bar = tl.load(bars + run)
    tie = (bits == bar) & (i < n)
    rank = tl.load(earlier + tile) + tl.cumsum(tie.to(tl.int32))
    out = (bits > bar) | (tie & (rank <= tl.load(needed + run)))
    tl.store(groups + at, tl.where(out, -1, tl.load(labels + at, mask=i < n)), mask=i < n)
    tl.store(kept + tile, tl.sum(tl.where(out, 0.0, cost.to(tl.float64))))


def trim(labels, costs, m, DTILE=8192, PROGS=64, TILE=4096, warps=8):
    """Groups, -1 for the m cases of largest cost of each run, and the other costs summed."""
    R, n = costs.shape
    if m == 0:
        return labels.clone(), costs.sum(1, dtype=torch.float64)
    device = costs.device
    prefixes = torch.zeros(R, dtype=torch.int64, device=device)
    ties = torch.full((R,), n, dtype=torch.int64, device=device)
    needed = torch.full((R,), m, dtype=torch.int64, device=device)
    size = 8 * costs.element_size()
    histograms = torch.zeros((size // 8, R, 256), dtype=torch.int32, device=device)
    parts = min(PROGS, triton.cdiv(n, DTILE))
    for digit, shift in enumerate(range(size - 8, -1, -8)):
        _digits_kernel[(parts, R)](
            costs, prefixes, ties, histograms[digit], n, shift, TILE=DTILE, num_warps=warps
        )
        _digit_kernel[(R,)](histograms[digit], prefixes, needed, ties, num_warps=1)
    tiles = triton.cdiv(n, TILE)
    counts = torch.empty((R, tiles), dtype=torch.int32, device=device)
    kept = torch.empty((R, tiles), dtype=torch.float64, device=device)
    groups = torch.empty_like(labels)
    _ties_kernel[(tiles, R)](costs, prefixes, needed, ties, counts, n, TILE=TILE)
    earlier = counts.cumsum(1) - counts
    _trim_kernel[(tiles, R)](
        labels, costs, prefixes, needed, earlier, groups, kept, n, TILE=TILE, num_warps=4
    )
    return groups, kept.sum(1)


# --------------------------------------------------------------------------------- own distances


@triton.jit(do_not_specialize=["q", "K", "R", "first", "weights_stride"])
def _own_kernel(
    X, location, factor, weights, labels, centres, out, n, q, K, R, first, weights_stride,
    RUNS: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr, UNIT: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    start = tl.program_id(0).to(tl.int64) * BM
    stride = q // UNIT * UNIT
    rows = tl.minimum(tl.arange(0, BM), n - 1 - start).to(tl.int32)
    run = first + tl.arange(0, RUNS)
    at = tl.minimum(run, R - 1).to(tl.int64)[:, None] * n + start + rows[None, :]
    label = tl.maximum(tl.load(labels + at), 0)
    run = tl.minimum(run, R - 1)
    own = (run[:, None] * K + label) * stride
    j = tl.arange(0, BC)
    scale = tl.load(factor)
    acc = tl.zeros((RUNS, BM, BC), tl.float64)
    for j0 in tl.range(0, q, BC, num_stages=STAGES):
        col = j0 + j
        inside = col < stride
        x = tl.load(
            X + start * stride + rows[:, None] * stride + col[None, :],
            mask=inside[None, :], other=0.0,
        ).to(tl.float64)  # fmt: skip
        x = (x - tl.load(location + col, mask=inside, other=0.0)[None, :]) * scale
        c = tl.load(centres + own[:, :, None] + col[None, None, :], mask=inside[None, None, :])
        w = tl.load(
            weights + run[:, None] * weights_stride + col[None, :], mask=inside[None, :], other=0.0
        )
        d = tl.where(inside[None, None, :], x[None, :, :] - c, 0.0)
        acc += w[:, None, :] * (d * d)
    inside = (start + tl.arange(0, BM) < n)[None, :] & (first + tl.arange(0, RUNS) < R)[:, None]
    tl.store(out + at, tl.sum(acc, axis=2), mask=inside)


def own_distances(X, location, factor, weights, labels, centres, cfg=None):
    (n, q), (R, K, _) = X.shape, centres.shape
    out = torch.empty((R, n), dtype=torch.float64, device=X.device)
    scale = torch.full((1,), factor, dtype=torch.float64, device=X.device)
    first = 0
    while first < R:
        RUNS, BM, BC, warps, stages = (cfg or {}).get(
            min(4, R - first), (1, 16, 128, 4, 2) if R - first == 1 else (4, 16, 64, 4, 2)
        )
        _own_kernel[(triton.cdiv(n, BM),)](
            X, location, scale, weights, labels, centres, out, n, q, K, R, first,
            q if len(weights) > 1 else 0, RUNS=RUNS, BM=BM, BC=BC, UNIT=_unit(q),
            STAGES=stages, num_warps=warps,
        )  # fmt: skip
        first += RUNS
    return out
