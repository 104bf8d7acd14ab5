"""What worker processes run first (internal); it imports next to nothing."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


def end_with(parent: int) -> None:
    """Let this process end soon after its parent, however that one ends."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    if os.getppid() == parent:  # and not a worker of somebody else
        threading.Thread(target=watch, daemon=True).start()


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Keep Ctrl-C from the processes that are started meanwhile; here it comes a little later.

    A terminal sends it to all of them, and one that is still importing would print a traceback.
    The process that started them ends them.
    """
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
