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
SHARED_WORK, HUGE = 20_000_000, float("inf")
# How long a part may take: as many times as the shortest has taken.
PATIENCE = 3


def team(work: float, n_threads: int) -> int:
    """Return how many threads a pass of this many multiplications has: all, or one.

    OpenMP ends the threads that a smaller team leaves out, and begins new ones for a larger.
    """
    return n_threads if work > LONG_PASS else 1


def share(
    work: Callable[[int], Any], n_parts: int, n_threads: int, size: float = HUGE
) -> list[Any]:
    """Return work(0), work(1), ... of all parts, made by this thread and others.

    A part may be made twice: its work changes nothing, and returns something. ``size`` is how many
    multiplications all parts take.
    """
    others = min(n_threads, n_parts) - 1
    if others < 1 or size <= SHARED_WORK:
        return [work(part) for part in range(n_parts)]
    job = _Job(work, n_parts)
    for _ in range(others):
        _pool().submit(job.help)
    job.help()
    return job.finished()


class _Job:
    """Parts of which threads take the next that nobody has taken."""

    def __init__(self, work: Callable[[int], Any], n_parts: int):
        self.work, self.results = work, [None] * n_parts
        self.next, self.changed = 0, threading.Condition()
        self.seconds: float | None = None  # that the shortest part took
        self.failed = False

    def help(self) -> None:
        """Make parts while there are some that nobody has taken."""
        while True:
            with self.changed:
                part, self.next = self.next, self.next + 1
            if part >= len(self.results):
                return
            start = time.perf_counter()
            try:
                result = self.work(part)
            except BaseException:
                self.note(part, None, time.perf_counter() - start)
                raise
            self.note(part, result, time.perf_counter() - start)

    def note(self, part: int, result: Any, seconds: float) -> None:
        """Record the result of a part, or that it failed."""
        with self.changed:
            self.results[part], self.failed = result, self.failed or result is None
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
        for part, result in enumerate(self.results):
            if result is None:
                self.results[part] = self.work(part)
        return self.results


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    """Return the threads of this process. A fit after a fork has one, and asks for none."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="rskc")
