"""Kernels compiled side by side, before a fit needs them one after the other."""

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial

import torch

from rskc.engines.device.kernels.assignment import assign
from rskc.engines.device.kernels.distances import own_distances
from rskc.engines.device.kernels.selection import trim
from rskc.engines.device.kernels.totals import shift, sums

# Cases of the tables that the kernels are tried on, and runs: many, few and one take other tiles.
FEW_CASES, RUNS = 8192, (20, 1)
# Where clusters are split and merged there are for a while so many more.
MORE_CLUSTERS = 5
THREADS = 16


def compile_kernels(X, K, m):
    """Compile what a fit of X with K clusters and m trimmed cases needs: 3 s instead of 9.

    Triton compiles a kernel when it is first called, for about half a second. Once in a process, or
    on a machine where Triton keeps what it has compiled, it is needed.
    """
    n, p = X.shape
    _compile(str(X.device), X.dtype, n % 16, p % 4 == 0, K, m % 16 == 0, m > 0)


@lru_cache(maxsize=64)
def _compile(device, dtype, odd_cases, whole, K, whole_trim, trimmed):
    """Call every pass once; the numbers are those that Triton compiles kernels apart for."""
    n, q = FEW_CASES + odd_cases, 64
    m = (64 if whole_trim else 63) if trimmed else 0
    calls = []
    for kind in (torch.float32, torch.float64):
        zeros = partial(torch.zeros, dtype=kind, device=device)
        X, norms = zeros((n, q)), zeros((1, n))
        for R in RUNS:
            groups = torch.zeros((R, n), dtype=torch.int32, device=device)
            after = groups.clone()
            after[:, 0] = K - 1
            calls += [
                *(
                    partial(assign, X, zeros((R, k, q)), zeros((R, k)), norms)
                    for k in (K, K + MORE_CLUSTERS)
                ),
                partial(trim, groups, zeros((R, n)), m),
                partial(sums, X, groups, K),
                partial(shift, X, groups, after, K),
            ]
    own = torch.zeros((n, q if whole else q - 1), dtype=dtype, device=device)
    double = partial(torch.zeros, dtype=torch.float64, device=device)
    for R in (4, 2, 1):
        labels = torch.zeros((R, n), dtype=torch.int32, device=device)
        frame = double(own.shape[1]), 1.0, double((1, own.shape[1]))
        calls.append(partial(own_distances, own, *frame, labels, double((R, K, own.shape[1]))))
    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(call) for call in calls]:
            done.result()
