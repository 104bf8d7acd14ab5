"""The explorer: how long a page takes, and how large it is."""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.timing import print_table
from rskc.datasets import make_contaminated

# Cases, features, those that differ, outlying cases; what `rskc explore` makes of it by default.
TABLES = {
    "90 x 200": (90, 200, 20, 3),
    "300 x 2,000": (300, 2000, 40, 9),
    "100,000 x 50": (100_000, 50, 10, 1000),
}
PAGE = """
import sys, numpy, rskc
page = rskc.explore(numpy.load(sys.argv[1]), progress=False, n_jobs=2)
page.save(sys.argv[2])
print(page.search.axes_.n_settings)
"""


def main(names: tuple[str, ...] = tuple(TABLES)) -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        data, page = Path(folder, "data.npy"), Path(folder, "page.html")
        for name in names:
            np.save(data, make_contaminated("shared_cell", *TABLES[name], random_state=1).data)
            start, before = time.perf_counter(), _cpu_seconds()
            done = subprocess.run(
                [sys.executable, "-c", PAGE, data, page], check=True, capture_output=True, text=True
            )
            seconds, cpu = time.perf_counter() - start, _cpu_seconds() - before
            size = page.stat().st_size / 1e6
            rows.append((name, done.stdout.strip(), f"{seconds:.0f}", f"{cpu:.0f}", f"{size:.2f}"))
    header = ("table", "settings", "s, two jobs", "CPU s", "page, MB")
    print_table("The explorer, from an array to the page", header, rows)


def _cpu_seconds() -> float:
    """Return the CPU time of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or tuple(TABLES))
