"""What verbose fits print (internal)."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Told:
    """Prints what verbose fits log. Fits may overlap in threads: each line is printed once.

    The first verbose fit to enter adds the handler, and the last to leave takes it away and gives
    the logger its level back. Of what each thread logs its own fit says how much is printed.
    """

    def __init__(self) -> None:
        self.lock, self.own = threading.Lock(), threading.local()
        self.levels: list[int] = []  # of the fits under way
        self.log, self.handler = logging.getLogger("rskc"), logging.StreamHandler()
        self.before = self.log.level

    @contextmanager
    def at(self, verbose: int) -> Iterator[None]:
        """Print, while the block runs, what this thread logs at this verbosity."""
        outer = getattr(self.own, "level", None)
        self.own.level = (logging.CRITICAL, logging.INFO, logging.DEBUG)[min(verbose, 2)]
        try:
            if verbose:
                self._enter(self.own.level)
            yield
        finally:
            if verbose:
                self._leave(self.own.level)
            self.own.level = outer

    def _enter(self, level: int) -> None:
        with self.lock:
            if not self.levels:
                self.before, self.handler = self.log.level, logging.StreamHandler()
                self.handler.setFormatter(logging.Formatter("rskc: %(message)s"))
                self.handler.addFilter(self._is_wanted)
                self.log.addHandler(self.handler)
            self.levels.append(level)
            self.log.setLevel(min(self.levels))

    def _leave(self, level: int) -> None:
        with self.lock:
            self.levels.remove(level)
            self.log.setLevel(min(self.levels, default=self.before))
            if not self.levels:
                self.log.removeHandler(self.handler)

    def _is_wanted(self, record: logging.LogRecord) -> bool:
        return record.levelno >= (getattr(self.own, "level", None) or logging.CRITICAL)

    def forget(self) -> None:
        """Forget the fits of the parent, in a process that was forked while they ran."""
        self.lock = threading.Lock()
        if self.levels:
            self.levels = []
            self.log.removeHandler(self.handler)
            self.log.setLevel(self.before)


told = _Told()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=told.forget)
