"""What a command prints, and where: results to stdout; notes, progress and errors to stderr."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import typer

from rskc.cli._options import NAMES, RESULTS, flag
from rskc.exceptions import ColumnWarning, Phrased

# Seconds after which a log says what is under way, and then how far it is; short work goes without.
PATIENCE, MINUTE = 1.0, 60.0


@dataclass(frozen=True)
class Console:
    """The options of every command that say how much it prints."""

    quiet: bool = flag(RESULTS, "Print errors only.", "--quiet", "-q")
    json: bool = flag(RESULTS, "Print the result as JSON.", "--json")
    debug: bool = flag(RESULTS, "Show where an error came from.", "--debug")

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
        a bar, in a log a line for each quarter and each minute.
        """
        if self.silent:
            yield lambda done, total: None
            return
        if not sys.stderr.isatty():
            with _logged(what) as log:
                yield log
            return
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        class Bar(BarColumn):
            def render(self, task: Any) -> Any:
                if seconds:  # never full before the end: what takes longer creeps on
                    passed = (task.elapsed or 0.0) / seconds
                    task.total, task.completed = 1, passed if passed < 0.9 else 1 - 0.09 / passed
                return super().render(task)

        about = f"of about {seconds:.0f} s" * (seconds > 0)
        columns = SpinnerColumn(), TextColumn("{task.description}"), Bar(), TimeElapsedColumn()
        shown = _rich(sys.stderr)
        with Progress(*columns, TextColumn(about), console=shown, transient=True) as progress:
            task = progress.add_task(what, total=None)

            def update(done: int, total: int) -> None:
                words = f"{what}: {done:,} of {total:,}"
                progress.update(task, completed=done, total=total, description=words)

            yield update


@contextmanager
def _logged(what: str) -> Iterator[Callable[[int, int], None]]:
    """Write a line once the work has taken a while; then one for each quarter and each minute."""
    stream, start, ended, is_slow = sys.stderr, time.monotonic(), threading.Event(), False
    quarter, share = 0, ""

    def tell_time() -> None:
        passed = f"{share}after {time.monotonic() - start:.0f} s"
        print(f"rskc: {what}: {passed}", file=stream, flush=True)

    def watch() -> None:
        nonlocal is_slow
        if ended.wait(PATIENCE):
            return
        is_slow = True
        print(f"rskc: {what} ...", file=stream, flush=True)
        while not ended.wait(MINUTE):
            tell_time()

    def update(done: int, total: int) -> None:
        nonlocal quarter, share
        before, quarter = quarter, 4 * done // total if total else 0
        share = f"{done:,} of {total:,} "
        if is_slow and before < quarter < 4:
            tell_time()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield update
    finally:
        ended.set()
        watcher.join()


def _rich(stream: Any) -> Any:
    from rich.console import Console as RichConsole

    class Console(RichConsole):
        def on_broken_pipe(self) -> None:
            """Leave it to the application: rich would exit with 1 where ``head`` went away."""
            raise BrokenPipeError

    return Console(file=stream, highlight=False, emoji=False)


def bold(words: str, style: str = "bold") -> Any:
    """Return text that stands out."""
    from rich.text import Text

    return Text(words, style=style)


def text_table(labels: Iterable[tuple[str, Any]], rows: Iterable[Iterable[str]], **how: Any) -> Any:
    """Make a table; each column has a label and is justified "left" or "right"."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    # Without double space between columns, the seven of a grid fit into 80 characters.
    table = Table(box=SIMPLE_HEAD, collapse_padding=True, **how)
    for label, justify in labels:
        table.add_column(label, justify=justify)
    for row in rows:
        table.add_row(*row)
    return table


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
