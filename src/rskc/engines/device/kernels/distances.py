"""Distances to the own center, in double precision."""

import torch
import triton
import triton.language as tl

from rskc.engines.device.kernels.common import on_its_device, unit

# Runs whose distances one program finds at most, and columns of its steps.
OWN_RUNS, OWN_COLUMNS = 4, 64


@on_its_device
def own_distances(X, location, factor, weights, labels, centers):
    """Distances of (X - location) * factor, weighted and squared, to the center of the label.

    In float64: ``location`` (q,), ``weights`` (1 or R, q), ``centers`` (R, K, q), and what is
    returned, (R, n). Of 1e6 x 2000 in float32: 2.7 ms for 1 run, 8.3 for 4; reading takes 1.9.
    """
    (n, q), (R, K, _) = X.shape, centers.shape
    out = torch.empty((R, n), dtype=torch.float64, device=X.device)
    scale = torch.full((1,), factor, dtype=torch.float64, device=X.device)
    first = 0
    while first < R:
        runs = min(OWN_RUNS, triton.next_power_of_2(R - first))
        cases, warps = (16, 4) if runs > 2 else (8, 2)
        _own_kernel[(triton.cdiv(n, cases),)](
            X, location.contiguous(), scale, weights.contiguous(), labels.contiguous(),
            centers.contiguous(), out, n, q, K, R, first, q if len(weights) > 1 else 0,
            RUNS=runs, BM=cases, BC=OWN_COLUMNS, UNIT=unit(q), num_warps=warps,
        )  # fmt: skip
        first += runs
    return out


@triton.jit(do_not_specialize=["n", "q", "K", "R", "first", "weights_stride"])
def _own_kernel(
    X, location, factor, weights, labels, centers, out, n, q, K, R, first, weights_stride,
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
        c_at = centers + own[:, :, None] + j[None, :, :]
        error = x[None, :, :] - tl.load(c_at, mask=(j < stride)[None, :, :], other=0.0)
        w = tl.load(weights + run * weights_stride + j, mask=j < stride, other=0.0)
        # A square may be infinite, which times a weight of 0 would be no number.
        total += tl.where(w[:, None, :] > 0, w[:, None, :] * (error * error), 0.0)
    inside = (start + tl.arange(0, BM) < n)[None, :] & (first + tl.arange(0, RUNS) < R)[:, None]
    tl.store(out + at, tl.sum(total, axis=2), mask=inside)
