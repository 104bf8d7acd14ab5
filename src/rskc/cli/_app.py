"""The application: how commands are registered, what they print, and what becomes of their errors.

Results go to stdout; notes, progress and errors to stderr.
"""

import inspect
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup

from rskc.cli import silence_stdout
from rskc.cli._options import NAMES, RESULTS, option, option_name
from rskc.exceptions import ColumnWarning, Phrased

PATIENCE = 10.0  # seconds after which a log says how far work is


@dataclass(frozen=True)
class Console:
    """The options of every command that say how much it prints."""

    panel = RESULTS
    quiet: bool = option("Print errors only.", False, "--quiet", "-q")
    json: bool = option("Print the result as JSON.", False)

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

    def fact(self, heading: str, words: str, style: str = "cyan", stream: Any = None) -> None:
        """Print words after a heading."""
        if not self.silent:
            from rich.text import Text

            _rich(stream or sys.stdout).print(Text.assemble((f"{heading}: ", style), words))

    def note(self, *sentences: Any) -> None:
        """Print sentences, or warnings, that should not be overlooked."""
        from rskc.utils.wording import cleaned

        for sentence in sentences:
            self.fact("Note", cleaned(in_options(sentence), 2000), "yellow", sys.stderr)

    def print_json(self, facts: Any) -> None:
        """Print facts for programs, if JSON is asked for."""
        if self.json:
            from rskc.files.writing import json_text

            typer.echo(json_text(facts))

    @contextmanager
    def busy(self, what: str) -> Iterator[Callable[[int, int], None]]:
        """Show that something is under way, and how far it is, if what is yielded is told so.

        On a terminal there is a bar, in a log there are lines.
        """
        if self.silent:
            yield lambda done, total: None
            return
        if not sys.stderr.isatty():
            yield _log(what)
            return
        from rich.progress import Progress

        with Progress(console=_rich(sys.stderr), transient=True) as progress:
            task = progress.add_task(what, total=None)

            def update(done: int, total: int) -> None:
                words = f"{what}: {done:,} of {total:,}"
                progress.update(task, completed=done, total=total, description=words)

            yield update


def _log(what: str) -> Callable[[int, int], None]:
    """Return what writes a line for each tenth of work that takes a while."""
    start, tenth = time.monotonic(), 0

    def update(done: int, total: int) -> None:
        nonlocal tenth
        seconds, before, tenth = time.monotonic() - start, tenth, 10 * done // max(total, 1)
        if before < tenth < 10 and seconds > PATIENCE:
            words = f"rskc: {what}: {done:,} of {total:,} after {seconds:.0f} s"
            print(words, file=sys.stderr, flush=True)

    return update


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
    messages: Iterator[Any] = (w.message for w in caught if issubclass(w.category, UserWarning))
    # Of columns the notes on the table have said what there is to say.
    found += {str(each): each for each in messages if not isinstance(each, ColumnWarning)}.values()


# What data and settings may cause; anything else is a mistake of ours.
EXPECTED = (ValueError, OSError, ImportError, MemoryError)

# The command as it was typed, so that a result can show how to repeat it.
typed_command: list[str] = []


class Commands(TyperGroup):
    """Commands that remember what was typed."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; a wrong value is told without the prefix that pydantic gives it."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, and remember."""
        typed_command[:] = ["rskc", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="rskc",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


VERSION: Any = typer.Option("--version", help="Print the version.", metavar="")


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, VERSION] = False) -> None:
    """Robust and sparse K-means: find clusters, the features that separate them, and outliers.

    Begin with [bold]rskc demo[/bold], or with a table of your own:
    [bold]rskc fit table.csv --clusters 3[/bold]
    """
    if version:
        import rskc

        typer.echo(f"rskc {rskc.__version__}")
        raise typer.Exit


def command(name: str, *examples: str, panel: str | None = None, **helps: str | None) -> Callable:
    """Register a command.

    Parameters that are dataclasses stand for an option for each field; their fields may be
    dataclasses again. ``helps`` has the help of options that mean something else here, by the names
    of their fields, or None for those that are left at their default.
    """
    # A blank line between them keeps typer from joining the examples.
    epilog = "\n\n".join(["[bold]Examples[/bold]" * bool(examples), *examples])

    def register(function: Callable) -> Callable:
        hints = get_type_hints(function, include_extras=True)
        hints.pop("return", None)

        def run(**values: Any) -> None:
            with _errors_in_one_sentence():
                function(**{name: _made(hint, name, values) for name, hint in hints.items()})

        parameters = [p for name, hint in hints.items() for p in _parameters(name, hint, helps)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__doc__ = function.__doc__
        app.command(name, epilog=epilog, rich_help_panel=panel)(run)
        return function

    return register


def _parameters(name: str, hint: Any, helps: dict[str, Any]) -> Iterator[inspect.Parameter]:
    """Yield the parameters, as typer understands them, that a parameter of a command stands for."""
    kind = inspect.Parameter.KEYWORD_ONLY
    if not is_dataclass(hint):
        yield inspect.Parameter(name, kind, annotation=hint)
        return
    hints = get_type_hints(hint, include_extras=True)
    for field in fields(hint):
        if "names" not in field.metadata:
            yield from _parameters(field.name, hints[field.name], helps)
            continue
        how = {"panel": hint.panel, **field.metadata}  # type: ignore[union-attr]
        how["help"] = helps.get(field.name, how["help"])
        if how["help"] is None:
            continue
        names, how["rich_help_panel"] = how.pop("names") or [option_name(field)], how.pop("panel")
        metavar = "" if hints[field.name] in (bool, bool | None) else "VALUE"
        option = typer.Option(*names, show_default=False, metavar=metavar, **how)
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        annotation: Any = Annotated[hints[field.name], option]
        yield inspect.Parameter(field.name, kind, annotation=annotation, default=default)


def _made(hint: Any, name: str, values: dict[str, Any]) -> Any:
    """Return a value as it was typed, or the dataclass that is made of some of them."""
    if not is_dataclass(hint):
        return values[name]
    hints = get_type_hints(hint)
    names = [name for name, kind in hints.items() if is_dataclass(kind) or name in values]
    return hint(**{name: _made(hints[name], name, values) for name in names})  # type: ignore[operator]


@contextmanager
def _errors_in_one_sentence() -> Iterator[None]:
    """Say what data and settings have caused; a mistake of ours keeps its traceback."""
    try:
        yield
    except KeyboardInterrupt as error:
        notes = "; ".join(["interrupted", *getattr(error, "__notes__", [])])
        typer.echo(f"rskc: {notes}.", err=True)
        raise typer.Exit(130) from None
    except BrokenPipeError:
        silence_stdout()
        raise typer.Exit(0) from None
    except EXPECTED as error:
        if os.environ.get("RSKC_TRACEBACK"):
            raise
        typer.echo(f"rskc: {sentence_of(error)}", err=True)  # which nothing wraps or colors
        raise typer.Exit(1) from None
