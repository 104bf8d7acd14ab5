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

# Where each thread would have fewer multiplications than this, one is done before others begin.
SHORT_SHARE = 150_000
# With more than this a pass has all threads, whatever else the machine does.
LONG_PASS = 10_000_000
# After a thread had to wait, passes have one thread this often, at first and at most.
FEWEST_ALONE, MOST_ALONE = 16, 1024
# If it has to wait again within this number of passes with several threads, the CPUs are busy.
SOON = 64


def team(work: float, n_threads: int) -> int:
    """Return how many threads a pass of this many multiplications has: all, or one.

    OpenMP ends the threads that a smaller team leaves out, and begins new ones for a larger.
    """
    if n_threads == 1 or work <= min(n_threads * SHORT_SHARE, LONG_PASS):
        return 1
    return n_threads if work > LONG_PASS or _traffic.is_calm() else 1


class _Traffic(threading.local):
    """Sees whether this thread lately had to wait for a CPU.

    All threads of a pass wait for the last. Where other programs keep the CPUs busy, that one comes
    milliseconds late, and a fit whose passes take a tenth of that takes ten times as long. A thread
    that waits is switched out: after that a few passes are made by one thread, and each time that
    it happens again soon, twice as many.
    """

    def __init__(self) -> None:
        self.switches, self.alone = _switches(), FEWEST_ALONE
        # Passes to be made alone, and made by several threads since.
        self.left, self.together = 0, SOON

    def is_calm(self) -> bool:
        """Whether nothing was switched for a while; ask once for each pass."""
        if usage_of_thread is None:
            return False  # nobody knows
        before, self.switches = self.switches, _switches()
        if self.left > 0:
            self.left -= 1
            return False
        if self.switches != before:
            again = self.together < SOON
            self.alone = min(2 * self.alone, MOST_ALONE) if again else FEWEST_ALONE
            self.left, self.together = self.alone - 1, 0
            return False
        self.together += 1
        return True


def _switches() -> int:
    """Return how often this thread was switched out so far."""
    if usage_of_thread is None:
        return 0
    usage = usage_of_thread()
    return usage.ru_nvcsw + usage.ru_nivcsw


_traffic = _Traffic()
