"""What a command prints, and where: results to stdout; notes, progress and errors to stderr."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import typer

from rskc.cli._options import NAMES, RESULTS, option
from rskc.exceptions import ColumnWarning, Phrased

# Seconds after which a log says what is under way, and then how far it is.
PATIENCE, MINUTE = 1.0, 60.0


@dataclass(frozen=True)
class Console:
    """The options of every command that say how much it prints."""

    panel = RESULTS
    quiet: bool = option("Print errors only.", False, "--quiet", "-q")
    json: bool = option("Print the result as JSON.", False, "--json")
    debug: bool = option("Show where an error came from.", False, "--debug")

    @property
    def silent(self) -> bool:
        """Whether nothing is printed for people."""
        return self.quiet or self.json

    def print(self, *lines: Any, **how: Any) -> None:
        """Print text or tables, for people; ``soft_wrap=True`` breaks no line, such as a path."""
        if not self.silent:
            console = _rich(sys.stdout)
            for line in lines:
                console.print(line, markup=False, **how)

    def note(self, *sentences: Any) -> None:
        """Print sentences, or warnings, that should not be overlooked."""
        if not self.silent:
            from rich.text import Text

            from rskc.utils.wording import cleaned

            for sentence in sentences:
                words = Text.assemble(("Note: ", "yellow"), cleaned(in_options(sentence), 2000))
                _rich(sys.stderr).print(words)

    def print_json(self, facts: Any) -> None:
        """Print facts for programs, if JSON is asked for."""
        if self.json:
            from rskc.files.writing import json_text

            typer.echo(json_text(facts))

    def error(self, sentence: str) -> None:
        """Print an error, in one line that nothing wraps or colors."""
        typer.echo(f"rskc: {sentence}", err=True)

    @contextmanager
    def busy(self, what: str, seconds: float = 0.0) -> Iterator[Callable[[int, int], None]]:
        """Show that something is under way, and how far it is, if what is yielded is told so.

        ``seconds`` is the time that it is likely to take, if that is known. On a terminal there is
        a bar, in a log there are lines.
        """
        if self.silent:
            yield lambda done, total: None
            return
        if not sys.stderr.isatty():
            with _logged(what) as log:
                yield log
            return
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        about = TextColumn(f"of about {seconds:.0f} s" * (seconds > 0))
        columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn()
        with Progress(
            *columns, TimeElapsedColumn(), about, console=_rich(sys.stderr), transient=True
        ) as progress:
            task = progress.add_task(what, total=None)

            def update(done: int, total: int) -> None:
                words = f"{what}: {done:,} of {total:,}"
                progress.update(task, completed=done, total=total, description=words)

            yield update


@contextmanager
def _logged(what: str) -> Iterator[Callable[[int, int], None]]:
    """Write a line once the work has taken a while; then one for each quarter or each minute."""
    start, quarter, written = time.monotonic(), 0, float("inf")

    def begin() -> None:
        nonlocal written
        written = time.monotonic()
        print(f"rskc: {what} ...", file=stream, flush=True)

    def update(done: int, total: int) -> None:
        nonlocal quarter, written
        now, before, quarter = time.monotonic(), quarter, 4 * done // total if total else 0
        if (before < quarter < 4 and written < now) or now - written > MINUTE:
            written = now
            passed = f"{done:,} of {total:,} after {now - start:.0f} s"
            print(f"rskc: {what}: {passed}", file=stream, flush=True)

    stream, timer = sys.stderr, threading.Timer(PATIENCE, begin)
    timer.daemon = True
    timer.start()
    try:
        yield update
    finally:
        timer.cancel()
        timer.join()


def _rich(stream: Any) -> Any:
    from rich.console import Console as RichConsole

    class Console(RichConsole):
        def on_broken_pipe(self) -> None:
            """Leave it to the application: rich would exit with 1 where ``head`` went away."""
            raise BrokenPipeError

    return Console(file=stream, highlight=False, emoji=False)


def in_options(message: Any) -> str:
    """Return the text of an error, a warning or a sentence, with parameters called by options."""
    return message.phrased(NAMES) if isinstance(message, Phrased) else str(message)


def sentence_of(error: BaseException) -> str:
    """Return the message of an error in one line, ending in a full stop."""
    if isinstance(error, OSError) and error.strerror:
        name = "" if error.filename is None else f"{os.fspath(error.filename)!r}: "
        text = f"{name}{error.strerror[0].lower()}{error.strerror[1:]}"
    elif isinstance(error, MemoryError):
        why = f" ({error})" if str(error) else ""
        text = f"there is not enough memory for this table{why}"
        text = "; ".join([text, *getattr(error, "__notes__", [])])
    else:
        text = in_options(error) or type(error).__name__
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?")) else f"{text}."


@contextmanager
def recorded_warnings() -> Iterator[list[Warning]]:
    """Collect warnings instead of printing them; the list is filled when the block ends."""
    found: list[Warning] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    messages: list[Any] = [w.message for w in caught if issubclass(w.category, UserWarning)]
    # Of columns the notes on the table have said what there is to say.
    messages = [message for message in messages if not isinstance(message, ColumnWarning)]
    found += {str(message): message for message in messages}.values()
