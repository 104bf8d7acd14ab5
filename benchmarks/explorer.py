"""The explorer: how long a page takes, and how large it is."""

import resource
import tempfile
import time
from pathlib import Path

import rskc
from benchmarks.declare import Rows, benchmark
from benchmarks.timing import apart
from rskc.datasets import make_contaminated

# Cases, features, those that differ, outlying cases; what `rskc explore` makes of it by default.
TABLES = ((90, 200, 20, 3), (300, 2000, 40, 9), (100_000, 50, 10, 1000))


@benchmark(
    "The explorer, from an array to the page",
    "table | settings | s, two jobs {:.0f} | CPU s {:.0f} | page, MB {:.2f}",
)
def explorer(most: int = len(TABLES)) -> Rows:
    for shape in TABLES[:most]:
        start, cpu = time.perf_counter(), _cpu_seconds()
        n_settings, size = apart(_page, shape)
        seconds = time.perf_counter() - start
        yield f"{shape[0]} x {shape[1]}", n_settings, seconds, _cpu_seconds() - cpu, size


def _page(shape: tuple[int, ...]) -> tuple[int, float]:
    """Return the number of settings, and the size of the page in MB."""
    X = make_contaminated("shared_cell", *shape, random_state=1).data
    page = rskc.explore(X, progress=False, n_jobs=2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "page.html")
        page.save(path)
        return page.search.axes_.n_settings, path.stat().st_size / 1e6


def _cpu_seconds() -> float:
    """Return the CPU time of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
