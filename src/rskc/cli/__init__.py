"""The command ``rskc``: a table in, a folder of results with one HTML page out.

Whatever is heavy is imported inside of the commands, so that ``rskc
--help`` answers at once. Commands print by a ``Console`` and raise errors; ``_app`` makes one
sentence and an exit code of these.
"""

import gc
import os
import signal
import sys
import time
from contextlib import suppress

__all__ = ["main"]

STARTED = time.perf_counter()
NEEDS = 'rskc: the command line needs {}, which is not installed: pip install "rskc[cli]".'


def main() -> None:
    """Run the command line, and leave with 0, 1 (data or settings), 2 (usage) or 130 (Ctrl-C)."""
    # Importing scikit-learn makes many objects and no garbage: looking for it takes 0.2 s of 1.8.
    gc.set_threshold(200_000, 20, 20)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # it is closed: what is printed must not go into the next file
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (it stays open)
        elif mode == "w" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # what a terminal cannot show
    for name in ("SIGTERM", "SIGHUP"):  # clean up when asked to end
        with suppress(ValueError, AttributeError):  # not the main thread; not that system
            signal.signal(getattr(signal, name), lambda number, _: sys.exit(128 + number))
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        sys.exit(NEEDS.format(error.name))  # prints to stderr, exit code 1
    try:
        from rskc.cli._commands import app

        app(prog_name="rskc")
    except KeyboardInterrupt:  # while starting or ending
        sys.exit(130)
    except BrokenPipeError:
        silence_stdout()


def silence_stdout() -> None:
    """Print nothing more, not even at exit, since the reader went away as ``head`` does."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
