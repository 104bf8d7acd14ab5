"""The application: how commands are registered, and what becomes of their errors."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperGroup

from rskc.cli import STARTED, silence_stdout
from rskc.cli._console import Console, sentence_of
from rskc.exceptions import ClusterError

# What data and settings may cause; anything else is a mistake of ours.
EXPECTED = (ValueError, OSError, ImportError, MemoryError, ClusterError)

# What the help calls values of these types.
METAVARS = {int: "NUMBER", str: "TEXT", Path: "PATH", bool: "", Any: "VALUE"}

_typed: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())


class Commands(TyperGroup):
    """Commands that remember what was typed, so that a result can show how to repeat it."""

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
    """Return the command as it was typed."""
    return ["rskc", *_typed.get()]


def seconds_since_start() -> float:
    """Return the seconds since the program was started, imports included."""
    return time.perf_counter() - STARTED


def _show_version(asked: bool) -> None:
    if asked:
        import rskc

        typer.echo(f"rskc {rskc.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Print the version.",
            metavar="",
        ),
    ] = False,
) -> None:
    """Robust and sparse K-means: find clusters, the features that separate them, and outliers.

    Begin with [bold]rskc demo[/bold], or with a table of your own:
    [bold]rskc fit table.csv --clusters 3[/bold]
    """


def command(name: str, *examples: str, panel: str | None = None, **helps: str) -> Callable:
    """Register a command.

    Parameters that are dataclasses stand for an option for each field; their fields may be
    dataclasses again. One of the parameters is ``console``. ``helps`` has the help of options that
    mean something else here, by the names of their fields.
    """
    heading = "[bold]Examples[/bold]" if len(examples) > 1 else "[bold]Example[/bold]"
    # A blank line between them keeps typer from joining the examples.
    epilog = "\n\n".join([heading, *(f"  {each}" for each in examples)]) if examples else None

    def register(function: Callable) -> Callable:
        hints = get_type_hints(function, include_extras=True)
        hints.pop("return", None)

        def run(**values: Any) -> None:
            given = {name: _made(hint, name, values) for name, hint in hints.items()}
            with _errors_in_one_sentence(given["console"]):
                function(**given)

        parameters = [p for name, hint in hints.items() for p in _parameters(name, hint, helps)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__doc__ = function.__doc__
        app.command(name, epilog=epilog, rich_help_panel=panel)(run)
        return function

    return register


def _parameters(name: str, hint: Any, helps: dict[str, str]) -> Iterator[inspect.Parameter]:
    """Yield the parameters, as typer understands them, that a parameter of a command stands for."""
    kind = inspect.Parameter.KEYWORD_ONLY
    if not is_dataclass(hint):
        yield inspect.Parameter(name, kind, annotation=hint)
        return
    hints = get_type_hints(hint)
    for field in fields(hint):
        if "names" not in field.metadata:
            yield from _parameters(field.name, hints[field.name], helps)
            continue
        usual = {"rich_help_panel": hint.panel}  # type: ignore[union-attr]
        how = usual | field.metadata | {"help": helps.get(field.name, field.metadata["help"])}
        types = get_args(hints[field.name]) or (hints[field.name],)
        metavar = next((METAVARS[each] for each in types if each in METAVARS), "WORD")
        option = typer.Option(*how.pop("names"), show_default=False, metavar=metavar, **how)
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        annotation: Any = Annotated[hints[field.name], option]
        yield inspect.Parameter(field.name, kind, annotation=annotation, default=default)


def _made(hint: Any, name: str, values: dict[str, Any]) -> Any:
    """Return a value as it was typed, or the dataclass that is made of some of them."""
    if not is_dataclass(hint):
        return values[name]
    hints = get_type_hints(hint)
    return hint(**{each.name: _made(hints[each.name], each.name, values) for each in fields(hint)})  # type: ignore[operator]


@contextmanager
def _errors_in_one_sentence(console: Console) -> Iterator[None]:
    try:
        yield
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except KeyboardInterrupt as error:
        console.error("; ".join(["interrupted", *getattr(error, "__notes__", [])]) + ".")
        raise typer.Exit(130) from None
    except BrokenPipeError:
        silence_stdout()
        raise typer.Exit(0) from None
    except Exception as error:
        if console.debug:
            raise
        sentence = sentence_of(error)
        if not isinstance(error, EXPECTED):
            sentence = (
                f"this should not happen; it is a mistake in rskc ({type(error).__name__}: "
                f"{sentence}) Run it again with --debug, and report what it prints."
            )
        console.error(sentence)
        raise typer.Exit(1) from None
