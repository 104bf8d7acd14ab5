"""How many threads a pass has. Its results do not depend on that."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

usage_of_thread: Callable[[], Any] | None
try:
    import resource

    usage_of_thread = partial(resource.getrusage, resource.RUSAGE_THREAD)
except (ImportError, AttributeError):  # only Linux counts the switches of a thread
    usage_of_thread = None

# Up to so many multiplications a pass is over before a second thread has begun.
SHORT_PASS = 300_000
# From so many on it has all threads, whatever else the machine does: it takes milliseconds.
LONG_PASS = 10_000_000 if usage_of_thread is None else 100_000_000
# Passes that are made by one thread after CPUs were found busy, at first and at most.
FEWEST_ALONE, MOST_ALONE = 32, 1024


def team(work: float, n_threads: int) -> int:
    """Return how many threads a pass of this many multiplications has."""
    if n_threads == 1 or work <= min(SHORT_PASS, LONG_PASS):
        return 1
    return n_threads if work > LONG_PASS or _traffic.is_calm() else 1


class _Traffic(threading.local):
    """Sees whether this thread lately had to wait for a CPU.

    All threads of a pass wait for the last. Where other programs keep the CPUs busy, that one comes
    milliseconds late, and a fit whose passes take a tenth of that takes ten times as long. A thread
    that waits is switched out: after that a number of passes are made by one thread, twice as many
    each time.
    """

    def __init__(self) -> None:
        self.switches, self.alone, self.left = 0, FEWEST_ALONE, 0

    def is_calm(self) -> bool:
        """Whether nothing was switched for a while; ask once for each pass."""
        if usage_of_thread is None:
            return False  # nobody knows
        usage = usage_of_thread()
        switches = usage.ru_nvcsw + usage.ru_nivcsw
        if switches != self.switches:
            self.left, self.alone = self.alone, min(2 * self.alone, MOST_ALONE)
        elif self.left == 0:
            self.alone = max(FEWEST_ALONE, self.alone - 1)
        self.switches, self.left = switches, max(0, self.left - 1)
        return self.left == 0


_traffic = _Traffic()
