"""The log of a fit on the terminal. Internal."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def logging_to_terminal(verbose: int) -> Iterator[None]:
    """Send the solver's log to the terminal for a while."""
    log, level = logging.getLogger("rskc"), logging.getLogger("rskc").level
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("rskc: %(message)s"))
    if verbose:
        log.setLevel(logging.DEBUG if verbose > 1 else logging.INFO)
        log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
