"""The application: registering commands, and what becomes of their errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup

from rskc.cli import silence_stdout
from rskc.cli._phrases import as_options, sentence_of
from rskc.cli._voice import Voice

# What data and settings may be guilty of; anything else is a mistake of ours.
EXPECTED = (ValueError, OSError, ImportError, MemoryError)

_typed: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())


class Commands(TyperGroup):
    """Remembers what was typed, so that a result can say how it came about."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, and remember."""
        _typed.set(tuple(args))
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="rskc",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def typed_command() -> list[str]:
    """The command as it was typed."""
    return ["rskc", *_typed.get()]


def _show_version(asked: bool) -> None:
    if asked:
        import rskc

        typer.echo(f"rskc {rskc.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Robust and sparse K-means: finds the clusters, the features and the outliers of a table.

    Begin with [bold]rskc demo[/bold], or with a table of your own:
    [bold]rskc fit table.csv --clusters 3[/bold]
    """


def command(name: str, *examples: str, panel: str | None = None) -> Callable:
    """Register a command; parameters that are dataclasses stand for an option for each field."""

    def register(function: Callable) -> Callable:
        options: dict[str, Any] = {"epilog": _epilog(examples), "rich_help_panel": panel}
        app.command(name, **options)(_flattened(function))
        return function

    return register


def _epilog(examples: tuple[str, ...]) -> str | None:
    """Examples, one a line: a blank line between them keeps typer from joining them."""
    if not examples:
        return None
    heading = "[bold]Examples[/bold]" if len(examples) > 1 else "[bold]Example[/bold]"
    return "\n\n".join([heading, *(f"  {example}" for example in examples)])


def _flattened(function: Callable) -> Callable:
    """A function whose parameters are those of another and the fields of its dataclasses."""
    hints = get_type_hints(function, include_extras=True)
    given = inspect.signature(function).parameters
    groups = {name: hints[name] for name in given if is_dataclass(hints[name])}

    def run(**values: Any) -> None:
        made = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        with one_sentence(made["voice"]):
            function(**values, **made)

    parameters = [
        parameter
        for name in given
        for parameter in _parameters(name, hints[name], given[name].default)
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__doc__ = function.__doc__
    return run


def _parameters(name: str, hint: Any, default: Any) -> Iterator[inspect.Parameter]:
    kind = inspect.Parameter.KEYWORD_ONLY
    if not is_dataclass(hint):
        yield inspect.Parameter(name, kind, annotation=hint, default=default)
        return
    hints = get_type_hints(hint, include_extras=True)
    for field in fields(hint):
        yield inspect.Parameter(
            field.name, kind, annotation=hints[field.name], default=field.default
        )


@contextmanager
def one_sentence(voice: Voice) -> Iterator[None]:
    """Say in one sentence what went wrong, and leave with the code for it."""
    try:
        yield
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except KeyboardInterrupt as error:
        voice.complain("interrupted" + "".join(f"; {note}" for note in notes_of(error)) + ".")
        raise typer.Exit(130) from None
    except BrokenPipeError:
        silence_stdout()
        raise typer.Exit(0) from None
    except Exception as error:
        if voice.debug:
            raise
        voice.complain(_complaint(error))
        raise typer.Exit(1) from None


def notes_of(error: BaseException) -> list[str]:
    """What was added to an error on its way."""
    return getattr(error, "__notes__", [])


def _complaint(error: Exception) -> str:
    if isinstance(error, EXPECTED):
        return as_options(sentence_of(error))
    return (
        f"this should not happen and is a mistake in rskc ({type(error).__name__}: "
        f"{sentence_of(error)}) Run it again with --debug, and report what it prints."
    )
