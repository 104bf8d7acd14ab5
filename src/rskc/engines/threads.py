"""Threads while a fit is under way: how many the passes use, and one for BLAS."""

from __future__ import annotations

import os
import threading

import joblib
from threadpoolctl import ThreadpoolController

from rskc.engines.passes import PASSES


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
