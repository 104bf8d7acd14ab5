"""Hard limits: little memory and forks, each in a process of its own."""

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from rskc import RobustSparseKMeans
from rskc.engines import memory, passes_numpy
from rskc.engines.passes import PASSES
from rskc.solver import search
from rskc.utils import machine
from skips import skip_without

needs_limits = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and forks")


def run(program):
    """Run a program; return what it prints, or its exit code if it was killed."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=300,
        # Threads that wait do not spin: where other work keeps the CPUs busy, that takes minutes.
        env=os.environ | {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"},
    )
    assert done.returncode == 0, done.stderr or done.returncode
    return done.stdout.strip()


# With the arrays of each pass made, no more than 20 MB can be had, and each needs 60 or more.
SMALL_ROOM = """
import resource
import numpy as np
from rskc.engines import _passes

def ones(*shape, dtype=np.float64):
    return np.ones(shape, dtype)

def zeros(*shape, dtype=np.int32):
    return np.full(shape, 0, dtype)

arguments = {arguments}
pages = int(open("/proc/self/statm").read().split()[0])
room = pages * resource.getpagesize() + 20 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (room, room))
try:
    _passes.{name}(*arguments)
except MemoryError as error:
    print(error)
"""
PASSES_IN_NEED = {
    "table": "(ones(1, 10**6), np.arange(10**6), ones(10**6), 1.0, ones(10**6), 256, 1, "
    "ones(10**6))",
    "assign": "(ones(1), 256, ones(1, 400_000), ones(1, 400_000, 1), ones(1, 1), None, 1, "
    "zeros(1, 1), ones(1, 1))",
    "trim": "(zeros(1, 10**7), ones(1, 10**7), None, 5, 1, zeros(1, 10**7), ones(1), None, None)",
    "shift_sums": "(ones(40_000), 256, ones(40_000), 1.0, None, zeros(1, 1), zeros(1, 1), "
    "None, None, 1, ones(1, 1, 40_000), ones(1, 1), zeros(1, dtype=np.int64))",
    "single_moves": "(ones(2 * 10**6), 1, ones(1, 1), None, None, 5, 1, zeros(1, 2 * 10**6), "
    "ones(1, 1, 1), ones(1, 1), zeros(1, dtype=np.int64))",
}


@needs_limits
@pytest.mark.skipif(PASSES is passes_numpy, reason="the compiled passes are not built")
@pytest.mark.parametrize("name", PASSES_IN_NEED)
def test_passes_without_memory_say_so(name):
    words = run(SMALL_ROOM.format(name=name, arguments=PASSES_IN_NEED[name]))
    assert words.startswith("A pass needs ")


FORK = """
import os, signal
import numpy as np
from rskc import RobustSparseKMeans
from rskc.engines import memory

memory.LONG_PASS = memory.SHARED_WORK = 0
X = np.random.default_rng(0).normal(size=(2000, 5))
{setting}
model = RobustSparseKMeans(3, random_state=0, n_threads=2)
labels = np.asarray(model.fit(X).labels_)
child = os.fork()
if child == 0:
    signal.alarm(60)
    same = (np.asarray(model.fit(X).labels_) == labels).all()
    os._exit(0 if same and (np.asarray(model.predict(X)) == labels).all() else 1)
print(os.waitpid(child, 0)[1], (np.asarray(model.fit(X).labels_) == labels).all())
"""
BLOCKS = """
import dask, dask.array as da
X = da.from_array(X, chunks=(500, 5))
dask.config.set(scheduler="threads", num_workers={workers})
"""


@needs_limits
@pytest.mark.parametrize("setting", ["", *(BLOCKS.format(workers=n) for n in (None, 2))])
def test_a_fit_after_a_fork_ends(setting):
    skip_without(*["dask"] * bool(setting))
    assert run(FORK.format(setting=setting)) == "0 True"


# ---- Memory that is left


def write_group(folder, version, limit, used, cache=0):
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in zip(version, (limit, used), strict=False):
        (folder / name).write_text(f"{value}\n")
    (folder / "memory.stat").write_text(f"anon 7\n{version[2]} {cache}\n")


@pytest.mark.parametrize("version", [machine.ONE, machine.TWO], ids=["v1", "v2"])
@pytest.mark.parametrize("at_root", [True, False], ids=["a container", "the host"])
def test_the_limits_of_a_container_are_those_of_its_groups(tmp_path, monkeypatch, version, at_root):
    """The least of what the groups have left counts; what is cached is given back."""
    mount, one = tmp_path / "cgroup", version is machine.ONE
    monkeypatch.setattr(machine, "CGROUPS", mount)
    monkeypatch.setattr(machine, "OWN_GROUPS", tmp_path / "own")
    lines = "9:name=systemd:/\n4:cpu,memory:/a/b\n0::/\n" if one else "0::/a/b\n"
    (tmp_path / "own").write_text(lines)
    without, root = machine.free_memory(), mount / "memory" if one else mount
    write_group(root, version, 2**63 - 4096 if one else "max", 5)
    assert machine.free_memory() == pytest.approx(without, rel=0.1)
    write_group(root if at_root else root / "a", version, 5_000_000, 3_000_000, 500_000)
    if not at_root:
        write_group(root / "a/b", version, 9_000_000, 1_000_000)
    assert machine.free_memory() == 2_500_000
    write_group(root if at_root else root / "a", version, 5_000_000, 6_000_000)
    assert machine.free_memory() == 0


def test_no_groups_are_no_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "OWN_GROUPS", tmp_path / "none")
    assert machine.free_memory() > 2**20


@needs_limits
def test_the_limit_of_a_process_counts():
    program = "import resource; from rskc.utils.machine import free_memory; "
    program += "resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31)); print(free_memory())"
    assert 0 < int(run(program)) < 2**31


# ---- Memory of whole fits


@pytest.mark.parametrize(
    ("options", "dtype"),
    [
        ({"trim": 0, "l1_bound": None}, np.float32),
        ({"trim": 0.1, "l1_bound": 6.2}, np.float64),  # every weight above 0
        ({"trim": 0.1, "l1_bound": 3}, np.float32),
        ({}, np.float32),  # the data decide, and the cases are reweighted
        ({}, np.float64),
    ],
    ids=["K-means", "all features", "few features", "defaults", "defaults, double"],
)
def test_a_fit_takes_hardly_more_than_twice_the_data(monkeypatch, options, dtype):
    """With the limits for large tables lowered, so that 16 MB are large.

    Labels, costs and distances are a third of 40 columns in single precision.
    """
    monkeypatch.setattr(search, "SAMPLE_CELLS", 2**16)
    monkeypatch.setattr(search, "FEWEST_CASES", 2**10)
    monkeypatch.setattr(memory.MemoryEngine, "rows_bytes", 2**20)
    monkeypatch.setattr(memory, "WORK_BYTES", 2**20)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 40)) + 2 * rng.integers(0, 3, 50_000)[:, None] * (
        np.arange(40) < 9
    )
    X = X.astype(dtype)
    RobustSparseKMeans(3, n_init=2, random_state=0, **options).fit(X[:500])  # imports
    tracemalloc.start()
    try:
        RobustSparseKMeans(3, n_init=2, random_state=0, **options).fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 1 + peak / X.nbytes < (2.6 if dtype == np.float32 else 2.4)


# One table of 48 kB left behind by each fit would be 9 MB in the end. On a busy machine parts
# of a fit are made twice, at most once for each thread at a time: 3 MB more were seen.
MANY_FITS = """
import gc, resource
import numpy as np
from rskc import RobustSparseKMeans
from rskc.engines import memory

memory.LONG_PASS = memory.SHARED_WORK = 0  # with threads, though there are few cases
X = np.random.default_rng(0).normal(size=(200, 30)) + 3 * (np.arange(200) % 3)[:, None]
holes = np.where(np.random.default_rng(1).random(X.shape) < 0.05, np.nan, X)
KINDS = [(X, dict(trim=0, l1_bound=None)), (X, dict(trim=0.1, l1_bound=2)), (X, dict()),
         (holes, dict(trim=0.1, l1_bound=2))]

def fits(number):
    for i in range(number):
        data, options = KINDS[i % len(KINDS)]
        model = RobustSparseKMeans(3, n_init=2, n_threads=2, random_state=i, **options)
        model.fit(data).predict(data)
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 2**20

print(-fits(40) + fits({number}))
"""


@needs_limits
@pytest.mark.parametrize("number", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_many_fits_take_no_more_memory_than_few(number):
    assert float(run(MANY_FITS.replace("{number}", str(number)))) < 5
