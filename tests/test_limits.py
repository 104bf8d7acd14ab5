"""Hard limits: little memory and forks, each in a process of its own."""

import os
import subprocess
import sys

import pytest

from rskc.engines import passes_numpy
from rskc.engines.memory import PASSES

needs_limits = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and forks")


def run(program):
    """Run a program; return what it prints, or its exit code if it was killed."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OMP_NUM_THREADS": "2"},
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
    "assign": "(ones(1), 256, ones(1, 40_000, 1), ones(1, 40_000), ones(1, 1), 1, zeros(1, 1), "
    "ones(1, 1))",
    "trim": "(zeros(1, 10**7), ones(1, 10**7), 5, 1, zeros(1, 10**7), ones(1))",
    "shift_sums": "(ones(40_000), 256, ones(40_000), 1.0, zeros(1, 1), zeros(1, 1), 1, "
    "ones(1, 1, 40_000), ones(1, 1), zeros(1, dtype=np.int64))",
    "single_moves": "(ones(2 * 10**6), 1, ones(1, 1), 5, 1, zeros(1, 2 * 10**6), ones(1, 1, 1), "
    "ones(1, 1), zeros(1, dtype=np.int64))",
}


@needs_limits
@pytest.mark.skipif(PASSES is passes_numpy, reason="the compiled passes are not built")
@pytest.mark.parametrize("name", PASSES_IN_NEED)
def test_passes_without_memory_say_so(name):
    words = run(SMALL_ROOM.format(name=name, arguments=PASSES_IN_NEED[name]))
    assert words.startswith("A pass needs ")


FORK = """
import os
import numpy as np
from rskc import RobustSparseKMeans
from rskc.engines import memory

memory.THREAD_WORK = 0
X = np.random.default_rng(0).normal(size=(2000, 5))
model = RobustSparseKMeans(3, random_state=0, n_threads=2)
labels = model.fit(X).labels_
child = os.fork()
if child == 0:
    same = (model.fit(X).labels_ == labels).all() and (model.predict(X) == labels).all()
    os._exit(0 if same else 1)
print(os.waitpid(child, 0)[1], (model.fit(X).labels_ == labels).all())
"""


@needs_limits
def test_a_fit_after_a_fork_ends():
    assert run(FORK) == "0 True"
