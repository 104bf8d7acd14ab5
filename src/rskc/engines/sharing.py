"""How threads share the work of a fit. Results do not depend on their number.

Long passes over the data have threads of their own, which wait for one another at the end. What
consists of runs that take a while each is shared instead: threads of a pool take one part after
another, and the thread that asked does too. It never waits for long: a part that another thread has
begun, and does not end because other programs keep the CPUs busy, is made again. With two busy
processes on two CPUs, where all threads of a pass wait for the last, fits took three times as long
with two threads as with one.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

# A pass of more multiplications than this has all threads, others one: a millisecond or two.
LONG_PASS = 50_000_000
# Work of fewer multiplications is not worth the .1 ms that it takes to wake a thread.
SHARED_WORK = 20_000_000
# How long a part may take: as many times as the shortest has taken.
PATIENCE = 3


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
    job = _Job(work, parts)
    for _ in range(others):
        _pool().submit(job.help)
    job.help()
    return job.finished()


class _Job:
    """Parts of which threads take the next that nobody has taken."""

    def __init__(self, work: Callable[[slice], Any], parts: list[slice]):
        self.work, self.parts, self.results = work, parts, [None] * len(parts)
        self.next, self.changed = 0, threading.Condition()
        self.seconds: float | None = None  # that the shortest part took
        self.failed = False

    def help(self) -> None:
        """Make parts while there are some that nobody has taken."""
        while True:
            with self.changed:
                number, self.next = self.next, self.next + 1
            if number >= len(self.parts):
                return
            start = time.perf_counter()
            try:
                result = self.work(self.parts[number])
            except BaseException:
                self.note(number, None, time.perf_counter() - start)
                raise
            self.note(number, result, time.perf_counter() - start)

    def note(self, number: int, result: Any, seconds: float) -> None:
        """Record the result of a part, or that it failed."""
        with self.changed:
            self.results[number], self.failed = result, self.failed or result is None
            self.seconds = seconds if self.seconds is None else min(seconds, self.seconds)
            self.changed.notify()

    def finished(self) -> list[Any]:
        """Wait for the others as long as a part may take; then make what they have begun.

        Where a CPU is given to another program, it is gone for longer than that.
        """
        with self.changed:
            self.changed.wait_for(lambda: self.seconds is not None)
            self.changed.wait_for(
                lambda: self.failed or None not in self.results, PATIENCE * (self.seconds or 0)
            )
        for number, result in enumerate(self.results):
            if result is None:
                self.results[number] = self.work(self.parts[number])
        return self.results


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    """Return the threads of this process. A fit after a fork has one, and asks for none."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="rskc")
