"""The command ``rskc``: a table in, a folder of results with one HTML page out.

One file per group of commands; whatever is heavy is imported inside of them, so that ``rskc
--help`` answers at once. Commands print by a ``Console`` and raise errors; ``_app`` makes one
sentence and an exit code of these.
"""

import gc
import os
import signal
import sys
import time
from contextlib import suppress
from typing import Any

__all__ = ["main"]

STARTED = time.perf_counter()
NEEDS = 'rskc: the command line needs {}, which is not installed: pip install "rskc[cli]".'


def main() -> None:
    """Run the command line, and leave with 0, 1 (data or settings), 2 (usage) or 130 (Ctrl-C)."""
    # Importing scikit-learn makes many objects and no garbage: looking for it takes 0.2 s of 1.8.
    gc.set_threshold(200_000, 20, 20)
    _open_closed_streams()
    _tolerate_any_text()
    for name in ("SIGTERM", "SIGHUP"):
        with suppress(ValueError, AttributeError):  # not the main thread; not that system
            signal.signal(getattr(signal, name), _end)
    try:
        _load_app()(prog_name="rskc")
    except KeyboardInterrupt:  # while starting or ending
        sys.exit(130)
    except BrokenPipeError:
        silence_stdout()


def _load_app() -> Any:
    """Import the commands, if what they need is installed."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        sys.exit(NEEDS.format(error.name))  # prints to stderr, exit code 1
    from rskc.cli._commands import app

    return app


def _end(number: int, _: object) -> None:
    """Clean up when asked to end, and leave as if that signal had done it."""
    sys.exit(128 + number)


def _open_closed_streams() -> None:
    """Let what is printed to a closed stream go nowhere: not into the next file that is opened."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (it stays open)


def _tolerate_any_text() -> None:
    """Print what a terminal cannot show as escapes, instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def silence_stdout() -> None:
    """Print nothing more, not even at exit, since the reader went away as ``head`` does."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
