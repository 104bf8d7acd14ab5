"""The passes of a CUDA device, in Triton: what ``passes_numpy`` does, on PyTorch tensors.

A table X is (n, q), row by row, in float32 or float64, and finite. Floats are never added in an
order that may vary, so that results are the same from call to call. Times are of an H200; "the
narrow case" is 1e6 x 100 with 10 runs of 10 clusters, "the wide case" 1e6 x 2000 with 20 of 10,
both in float32.

R, K, n and q are passed at run time: a kernel is compiled anew, in about 0.5 s, only for another
type, for q divisible by 4 or not, and for the few sizes of tiles that the functions below choose.
"""

from rskc.engines.device.kernels.assignment import assign
from rskc.engines.device.kernels.distances import own_distances
from rskc.engines.device.kernels.selection import trim
from rskc.engines.device.kernels.totals import shift, sums

__all__ = ["COLUMNS_MULTIPLE", "assign", "own_distances", "shift", "sums", "trim"]

# Tables whose number of columns is a multiple of this are read twice as fast as others.
COLUMNS_MULTIPLE = 4
