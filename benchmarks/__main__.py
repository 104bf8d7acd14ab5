"""Run the benchmarks that are named, or all of them; ``--help`` lists them.

A name is that of a module, ``many``, or of one of its tables, ``many.outlying_rows``; words such as
``seeds=1`` are arguments of the tables that have them, and a folder is ``folder=...``.
"""

import sys
from ast import literal_eval
from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from benchmarks.declare import NotHereError

FILES = Path(__file__).parent.glob("[!_]*.py")
NAMES = sorted(path.stem for path in FILES if "\n@benchmark" in path.read_text("utf-8"))


def main(words: list[str]) -> None:
    if {"-h", "--help"} & {*words}:
        return show_list()
    given = dict(_value(*word.split("=", 1)) for word in words if "=" in word)
    names = []
    for word in words:
        if word not in NAMES and Path(word).is_dir():
            given["folder"] = Path(word)
        elif "=" not in word:
            names.append(word)
    for name in names or NAMES:
        for measure in _benchmarks(name):
            taken = signature(measure).parameters
            lacking = [word for word in taken if _is_required(taken[word]) and word not in given]
            try:
                if lacking:
                    raise NotHereError(f"say {lacking[0]}=...")
                measure(**{word: value for word, value in given.items() if word in taken})
            except NotHereError as error:
                print(f"\n{name}: {measure.__name__} is left out: {error}.")


def show_list() -> None:
    """Print the modules, and their tables with their arguments."""
    print(__doc__)
    for name in NAMES:
        about = import_module(f"benchmarks.{name}").__doc__ or ""
        print(f"{name}: {about.partition(chr(10))[0]}")
        for measure in _benchmarks(name):
            options = (
                word if _is_required(option) else f"{word}={option.default}"
                for word, option in signature(measure).parameters.items()
            )
            print(f"  {name}.{measure.__name__} {' '.join(options)}".rstrip())


def _is_required(option: Parameter) -> bool:
    return option.default is Parameter.empty


def _value(name: str, text: str) -> tuple[str, Any]:
    try:
        return name, literal_eval(text)
    except (ValueError, SyntaxError):
        return name, Path(text) if name == "folder" else text


def _benchmarks(name: str) -> Iterator[Callable[..., None]]:
    module, _, only = name.partition(".")
    if module not in NAMES:
        sys.exit(f"benchmarks: {module!r} is not one of {', '.join(NAMES)}.")
    for key, value in list(vars(import_module(f"benchmarks.{module}")).items()):
        if getattr(value, "is_benchmark", False) and only in ("", key):
            yield value


if __name__ == "__main__":
    main(sys.argv[1:])
