"""Threads while a fit is under way."""

from __future__ import annotations

import threading

import joblib
from threadpoolctl import ThreadpoolController

from rskc.engines import passes_info


def n_threads_for(n_threads: int | None) -> int:
    """Return a number of threads, or all that the machine allows if there is none."""
    if n_threads is None:
        return min(passes_info()["max_threads"], joblib.cpu_count())
    return int(n_threads)


class _OneBlasThread:
    """Holds BLAS to one thread while any fit is under way.

    The passes call BLAS from threads of their own, and one thread rounds alike everywhere. Fits
    may overlap in threads: the first in sets the limit, and the last out restores what was.
    """

    def __init__(self) -> None:
        self.lock, self.depth = threading.Lock(), 0
        self.controller: ThreadpoolController | None = None

    def __enter__(self) -> None:
        with self.lock:
            self.controller = self.controller or ThreadpoolController()
            if self.depth == 0:
                self.limit = self.controller.limit(limits=1, user_api="blas")
            self.depth += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                self.limit.restore_original_limits()


one_blas_thread = _OneBlasThread()
