"""What verbose fits print (internal)."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Told:
    """Prints what verbose fits log. Fits may overlap in threads: each prints what its own has.

    The logger has the level of the fit that prints most, and its own again after the last.
    """

    def __init__(self) -> None:
        self.lock, self.log = threading.Lock(), logging.getLogger("rskc")
        self.levels: list[int] = []  # of the fits under way
        self.before = self.log.level

    @contextmanager
    def at(self, verbose: int) -> Iterator[None]:
        """Print, while the block runs, what this thread logs at this verbosity."""
        if not verbose:
            yield
            return
        handler, thread = logging.StreamHandler(), threading.get_ident()
        handler.setFormatter(logging.Formatter("rskc: %(message)s"))
        handler.setLevel(logging.INFO if verbose == 1 else logging.DEBUG)
        handler.addFilter(lambda record: record.thread == thread)
        self.log.addHandler(handler)
        with self.lock:
            self.before = self.before if self.levels else self.log.level
            self.levels.append(handler.level)
            self.log.setLevel(min(self.levels))
        try:
            yield
        finally:
            self.log.removeHandler(handler)
            with self.lock:
                self.levels.remove(handler.level)
                self.log.setLevel(min(self.levels, default=self.before))

    def forget(self) -> None:
        """Forget the fits of the parent, in a process that was forked while they ran."""
        self.lock = threading.Lock()
        if self.levels:
            self.levels = []
            self.log.setLevel(self.before)


told = _Told()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=told.forget)
