"""A sparse matrix of single-cell shape: as it is, made dense first, and scikit-learn's KMeans."""

import subprocess
import sys
from typing import NamedTuple

from benchmarks.timing import print_table

SHAPE, FILLED, K = (100_000, 2_000), 0.1, 8

CODE = """
import sys, time, warnings
import numpy as np, scipy.sparse as sp
from sklearn.cluster import KMeans
from rskc import RobustSparseKMeans
from rskc.metrics import classification_error_rate
from benchmarks.sparse import counts
def memory(field):
    return int(open("/proc/self/status").read().split(field)[1].split()[0]) / 1024
warm, _ = counts(500, 100, 3)  # what importing takes
RobustSparseKMeans(3, n_init=1).fit(warm), RobustSparseKMeans(3, n_init=1).fit(warm.toarray())
KMeans(3, n_init=1).fit(warm)
base = memory("VmRSS:")
X, classes = counts(*{shape}, {K})
size = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 2**20
open("/proc/self/clear_refs", "w").write("5")  # the peak begins here
start, cpu = time.perf_counter(), time.process_time()
{densify}
model = {model}.fit(X)
wall, cpu = time.perf_counter() - start, time.process_time() - cpu
error = classification_error_rate(classes, model.labels_)
print(size, memory("VmHWM:") - base, wall, cpu, model.inertia_, error)
"""

FITS = {
    "K-means": "RobustSparseKMeans(8, trim=0, l1_bound=None, random_state=0)",
    "robust and sparse, all automatic": "RobustSparseKMeans(8, random_state=0)",
}


class Measured(NamedTuple):
    """Memory in MB, seconds, and how good the clusters are."""

    matrix: float
    peak: float
    wall: float
    cpu: float
    inertia: float
    error: float


def counts(n, p, K, filled=FILLED):
    """Draw logarithms of counts, of which a share is above 0; 40 features differ for a cluster."""
    import numpy as np
    from scipy.sparse import csr_matrix, vstack

    rng = np.random.default_rng(0)
    rates = np.repeat(-np.log1p(-filled) * rng.gamma(2.0, 0.5, p)[None], K, axis=0)
    for k in range(K):
        rates[k, rng.choice(p, min(40, p // K), replace=False)] *= 8
    classes, parts = rng.integers(0, K, n), []
    for some in np.array_split(classes, -(-n // 2000)):
        depth = rng.gamma(10.0, 0.1, (len(some), 1))
        parts.append(csr_matrix(np.log1p(rng.poisson(rates[some] * depth)), dtype=np.float32))
    return vstack(parts, format="csr"), classes


def measure(model: str, densify: str = "", shape: tuple[int, int] = SHAPE) -> Measured:
    """Fit a model in a process of its own."""
    code = CODE.format(shape=shape, K=K, densify=densify, model=model)
    command = [sys.executable, "-W", "ignore", "-c", code]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return Measured(*map(float, output.split()))


def main() -> None:
    if not sys.platform.startswith("linux"):
        print("\nPeak memory is read from /proc, which this system does not have.")
        return
    rows = []
    ways = {f"{name}, sparse": (model, "") for name, model in FITS.items()}
    ways |= {f"{name}, made dense": (model, "X = X.toarray()") for name, model in FITS.items()}
    ways["scikit-learn's KMeans, sparse"] = ("KMeans(8, random_state=0)", "")
    for name, way in sorted(ways.items()):
        found = measure(*way)
        rows.append(
            (
                name,
                f"{found.peak:.0f}",
                f"{found.peak / found.matrix:.2f}",
                f"{found.wall:.1f}",
                f"{found.cpu:.1f}",
                f"{found.inertia:.6g}",
                f"{found.error:.4f}",
            )
        )
    n, p = SHAPE
    size = f"{n:,} x {p:,} float32, {FILLED:.0%} filled, K={K}: {found.matrix:.0f} MB"
    header = (size, "peak MB", "peak / matrix", "s", "CPU s", "inertia", "CER")
    print_table("Sparse matrices; peaks with the data included", header, rows)
