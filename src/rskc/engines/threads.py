"""Threads: how many the passes use, one for BLAS, and how they share the work of a fit.

Results do not depend on their number. Long passes over the data have threads of their own, which
wait for one another at the end. What consists of runs that take a while each is shared instead:
threads of a pool take one part after another, and the thread that asked does too. It never waits
for long: a part that another thread has begun, and does not end because other programs keep the
CPUs busy, is made again. With two busy processes on two CPUs, where all threads of a pass wait for
the last, fits took three times as long with two threads as with one.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import lru_cache
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController

from rskc.engines.passes import PASSES

# A pass of more multiplications than this has all threads, others one: a millisecond or two.
LONG_PASS = 50_000_000
# Work of fewer multiplications is not worth the .1 ms that it takes to wake a thread.
SHARED_WORK = 20_000_000
# How long a part may take: as many times as the shortest has taken.
PATIENCE = 3


def usable_threads(wanted: int | None) -> int:
    """Return how many threads the passes use: as many as wanted, or all that the machine allows.

    More than there are CPUs, or than OMP_NUM_THREADS allows, would only wait for one another. After
    a fork it is one: the threads of OpenMP stay behind in the parent, and the child would wait for
    them without end.
    """
    if wanted == 1 or _forks:
        return 1  # counting the CPUs takes longer than a pass
    most = max(1, min(PASSES.max_threads(), joblib.cpu_count()))
    return most if wanted is None else min(wanted, most)


class _OneBlasThread:
    """Holds BLAS to one thread while any fit is under way.

    The passes call BLAS from threads of their own, and one thread rounds alike everywhere. Fits
    may overlap in threads: the first to enter sets the limit, the last to leave restores it.
    """

    def __init__(self) -> None:
        self.lock, self.depth = threading.Lock(), 0
        self.controller: ThreadpoolController | None = None

    def __enter__(self) -> None:
        with self.lock:
            self.controller = self.controller or ThreadpoolController()
            if self.depth == 0:
                self._let_any_thread_limit()
                self.limit = self.controller.limit(limits=1, user_api="blas")
            self.depth += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                self._let_any_thread_limit()
                self.limit.restore_original_limits()
                self._let_any_thread_limit()

    def _let_any_thread_limit(self) -> None:
        """Since threadpoolctl 3.8 only the thread that set a limit can change it, in silence.

        The last fit to leave may be in another thread than the first to enter.
        """
        for library in self.controller.lib_controllers if self.controller else ():
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)


one_blas_thread = _OneBlasThread()
_forks: list[int] = []  # the processes that this one was forked from, since rskc was imported


def _note_fork() -> None:
    """Use one thread from now on; a lock that another thread held is held by nobody here."""
    _forks.append(os.getppid())
    one_blas_thread.lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_note_fork)


# ---- Work that threads share


def team(work: float, n_threads: int) -> int:
    """Return how many threads a pass of this many multiplications has: all, or one.

    OpenMP ends the threads that a smaller team leaves out, and begins new ones for a larger.
    """
    return n_threads if work > LONG_PASS else 1


def share(
    work: Callable[[slice], Any], n_runs: int, step: int, n_threads: int, size: float
) -> list[Any]:
    """Return the results of work on runs, so many at a time, made by this thread and others.

    Work on some runs may be done twice: it changes nothing, and returns something. ``size`` is how
    many multiplications all runs take; a few are not worth a part of their own.
    """
    step = step if size > SHARED_WORK else max(n_runs, 1)
    parts = [slice(first, min(first + step, n_runs)) for first in range(0, n_runs, step)]
    others = min(n_threads, len(parts)) - 1
    if others < 1:
        return [work(part) for part in parts]
    numbers, results = deque(range(len(parts))), [None] * len(parts)
    seconds: list[float] = []  # that parts took

    def help_along() -> None:
        """Make parts while there are some that nobody has taken."""
        while numbers:
            try:
                number, start = numbers.popleft(), time.perf_counter()
            except IndexError:  # another thread was faster
                return
            results[number] = work(parts[number])
            seconds.append(time.perf_counter() - start)

    helpers = [_pool().submit(help_along) for _ in range(others)]
    help_along()
    # Wait for the others as long as a part may take; then make what they have begun. Where a CPU is
    # given to another program, it is gone for longer than that.
    busy = [helper for helper in helpers if not helper.cancel()]
    wait(busy, PATIENCE * min(seconds), FIRST_EXCEPTION)
    return [work(part) if results[i] is None else results[i] for i, part in enumerate(parts)]


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    """Return the threads of this process. A fit after a fork has one, and asks for none."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="rskc")
