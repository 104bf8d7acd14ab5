"""The cases of largest cost, exactly."""

import torch
import triton
import triton.language as tl

from rskc.engines.device.kernels.common import TILE, on_its_device

# Where fewer than 1 in FEW_LEFT of the costs are left to count, each is counted by itself.
FEW_LEFT = 32


@on_its_device
def trim(labels, costs, m):
    """Return groups, -1 for the m cases of largest cost of each run, and the sums of the others.

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
        _histogram_kernel[(programs, R)](costs, state, histogram, n, end, n // FEW_LEFT, TILE=2048)
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
    """Return the digits that end at bit ``end``, and which of the costs begin with the prefix."""
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
