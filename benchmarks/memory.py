"""Peak memory of a fit on 1,000,000 x 50 and other tables, as a multiple of the data."""

import subprocess
import sys

from benchmarks.timing import print_table

CODE = """
import time, numpy as np
from rskc import RobustSparseKMeans
def memory(kind):
    status = open("/proc/self/status").read()
    return int(status.split(kind)[1].split()[0]) / 1024
n, p = {shape}
X = np.random.default_rng(0).standard_normal((n, p))
X[:, :10] += (1.5 * (np.arange(n) % 5 - 2))[:, None]
{change}
RobustSparseKMeans(5, n_init=1, max_iter=2, trim=.1).fit(X[:1000, :50])  # what importing takes
data = X.nbytes / 2**20
base = memory("VmRSS:") - data
open("/proc/self/clear_refs", "w").write("5")  # the peak counts from here
start = time.perf_counter()
RobustSparseKMeans(5, n_init=10, random_state=0, {options}).fit(X)
print(memory("VmHWM:") - base, data, time.perf_counter() - start)
"""

MISSING = "X[np.random.default_rng(1).random(X.shape) < .05] = np.nan"
SINGLE = "X = X.astype(np.float32)"
FITS = {
    "K-means": ("trim=0, l1_bound=None", ""),
    "trimmed K-means": ("trim=.1, l1_bound=None", ""),
    "robust and sparse, few weights above 0": ("trim=.1, l1_bound=3", ""),
    "robust and sparse, every weight above 0": ("trim=.1, l1_bound=7", ""),
    'robust and sparse, l1_bound="auto"': ("trim=.1", ""),
    'robust and sparse, trim="auto" too': ("", ""),
    "float32: trimmed K-means": ("trim=.1, l1_bound=None", SINGLE),
    "float32: every weight above 0": ("trim=.1, l1_bound=7", SINGLE),
    "5% missing: trimmed K-means": ("trim=.1, l1_bound=None", MISSING),
    "5% missing: every weight above 0": ("trim=.1, l1_bound=7", MISSING),
}
OTHERS = {
    "20,000 x 1,000: robust and sparse": ("trim=.1, l1_bound=10", (20_000, 1000)),
    "20,000 x 1,000: the defaults": ("", (20_000, 1000)),
    "500 x 40,000: K-means": ("trim=0, l1_bound=None", (500, 40_000)),
    "500 x 40,000: the defaults": ("", (500, 40_000)),
}


def main() -> None:
    if not sys.platform.startswith("linux"):
        print("\nPeak memory is read from /proc, which this system does not have.")
        return
    rows = [_row(name, *peak_of(*fit)) for name, fit in FITS.items()]
    rows += [_row(name, *peak_of(how, shape=shape)) for name, (how, shape) in OTHERS.items()]
    header = ("1,000,000 x 50, K=5, 10 starts", "data MB", "peak MB", "peak / data", "s")
    print_table("Peak memory, the data included", header, rows)


def _row(name: str, peak: float, data: float, seconds: float) -> tuple[str, ...]:
    return name, f"{data:.0f}", f"{peak:.0f}", f"{peak / data:.2f}", f"{seconds:.1f}"


def peak_of(
    options: str, change: str = "", shape: tuple[int, int] = (1_000_000, 50)
) -> tuple[float, float, float]:
    """Peak and data in MB, and the seconds of a fit, in a process of its own."""
    code = CODE.replace("{options}", options).replace("{change}", change)
    code = code.replace("{shape}", str(shape))
    command = [sys.executable, "-W", "ignore", "-c", code]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    peak, data, seconds = map(float, output.split())
    return peak, data, seconds
