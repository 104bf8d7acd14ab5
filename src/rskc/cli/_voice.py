"""What a command says, and where: results to stdout; notes, progress and errors to stderr."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import typer

PANEL = "Output"
OptionOf = typer.Option


@dataclass(frozen=True)
class Voice:
    """The options of every command that say how much it says."""

    quiet: Annotated[
        bool, OptionOf("--quiet", "-q", help="Print errors only.", rich_help_panel=PANEL)
    ] = False
    json: Annotated[
        bool, OptionOf("--json", help="Print the result as JSON.", rich_help_panel=PANEL)
    ] = False
    debug: Annotated[
        bool, OptionOf("--debug", help="Show where an error came from.", rich_help_panel=PANEL)
    ] = False

    @property
    def silent(self) -> bool:
        """Whether only a program listens."""
        return self.quiet or self.json

    def say(self, *lines: Any) -> None:
        """Print words or tables, for people."""
        if not self.silent:
            console = _console(sys.stdout)
            for line in lines:
                console.print(line, markup=False)

    def say_in_one_line(self, words: str) -> None:
        """Print words that must not be broken, such as a path."""
        if not self.silent:
            _console(sys.stdout).print(words, markup=False, soft_wrap=True)

    def note(self, sentence: str) -> None:
        """Print a sentence that should not be overlooked."""
        if not self.silent:
            from rich.text import Text

            words = Text.assemble(("Note: ", "yellow"), sentence)
            _console(sys.stderr).print(words)

    def tell(self, facts: Any) -> None:
        """Print facts as JSON, for programs."""
        if self.json:
            typer.echo(json_of(facts))

    def complain(self, sentence: str) -> None:
        """Print an error, in one line that nothing wraps or colors."""
        typer.echo(f"rskc: {sentence}", err=True)

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """Show, on a terminal, that something is under way and for how long."""
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
        with Progress(*columns, **self._where()) as progress:
            progress.add_task(what)
            yield

    @contextmanager
    def counting(self, what: str) -> Iterator[Callable[[int, int], None]]:
        """Show, on a terminal, how much is done and how long the rest will take."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Left

        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Left()
        with Progress(*columns, **self._where()) as progress:
            task = progress.add_task(what, total=None)

            def update(done: int, total: int) -> None:
                if progress.tasks[task].completed > done:
                    progress.reset(task, total=total)
                progress.update(task, completed=done, total=total)

            yield update

    def _where(self) -> dict[str, Any]:
        console = _console(sys.stderr)
        hidden = self.silent or not console.is_terminal
        return {"console": console, "transient": True, "disable": hidden}


def _console(stream: Any) -> Any:
    from rich.console import Console

    return Console(file=stream, highlight=False, emoji=False)


def json_of(facts: Any) -> str:
    """Facts as JSON, as files.write_json writes them."""
    import json

    from rskc.files.writing import to_json

    return json.dumps(to_json(facts), ensure_ascii=False, allow_nan=False, indent=1)


@contextmanager
def heard() -> Iterator[list[str]]:
    """Collect warnings as sentences; the list is filled when the block ends."""
    sentences: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield sentences
    messages = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    sentences += dict.fromkeys(messages)
