"""What is said, and small cases by hand, in files of text that were reviewed.

Each line there that begins with ``>>>`` is run, and the line below is its value or the error that
it raises: ``refusals.txt`` has errors, ``values.txt`` values, and ``sentences.txt`` what functions
of ``sentences.py`` yield of results, line by line. A line that begins with ``$`` is a command, and
the lines below are what it says: in ``transcripts.txt``, whose tables are written by ``put`` of
``commands.py``. ``python tests/reviewed.py`` writes what follows such lines anew; read
the difference before it is committed. A title may end with the packages that its section needs, in
brackets.
"""

import ast
import contextlib
import os
import re
import tempfile
import warnings
from pathlib import Path
from types import GeneratorType
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd

import rskc
from rskc import datasets, files, metrics, selection
from rskc.datasets import make_figure1

FILES = ("refusals.txt", "values.txt", "sentences.txt")
KEPT = [Path(__file__).with_name(name) for name in FILES]
TRANSCRIPTS = Path(__file__).with_name("transcripts.txt")  # needs all that the command needs


class Section(NamedTuple):
    """A title, the packages that are needed, and lines of code with what they raise."""

    title: str
    packages: list[str]
    lines: list[str]


def sections(file: Path) -> list[Section]:
    """Return the sections of a file."""
    found = []
    for text in re.split(r"^# ", file.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        head, *lines = text.rstrip().splitlines()
        title, _, packages = head.rstrip("]").partition(" [")
        found.append(Section(title, packages.split(), [line for line in lines if line]))
    return found


def read(content: str | bytes, name: str = "t.csv", **how: Any) -> dict[str, Any]:
    """Write a file and read it as a table; return its cells and all that is said of it."""
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    table = files.read_table(name, **how)
    said = {name: values.tolist() for name, values in table.data.items()}
    index = table.data.index
    said |= {} if isinstance(index, pd.RangeIndex) else {"cases": (table.id_column, [*index])}
    if table.labels is not None:
        said["labels"] = (table.label_column, np.asarray(table.labels).tolist())
    said["decimal"] = table.decimal if table.decimal != "." else ""
    said["written"] = {name: str(each) for name, each in table.written.items()}
    facts = ("dropped", "constant", "empty", "notes", "categories", "turned")
    said |= {name: getattr(table, name) for name in facts}
    return {name: value for name, value in said.items() if value}


def names() -> dict[str, object]:
    """Return what code may use beside its own imports: the public names, and a table."""
    made: dict[str, object] = {"np": np, "pd": pd, "rskc": rskc, "read": read}
    for module in (rskc, datasets, metrics, selection):
        made |= {name: getattr(module, name) for name in module.__all__}
    X = make_figure1(60, 6, random_state=0).data
    return made | {"X": X, "frame": pd.DataFrame(X, columns=list("abcdef"))}


def told(section: Section) -> list[str]:
    """Run a section in an empty folder; return its code and commands with what comes of them."""
    made, space = [], names()
    if any(line.startswith("$ ") for line in section.lines):
        import commands

        space |= vars(commands)
    wide = patch.dict(os.environ, COLUMNS="1000")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), wide:
        for line in section.lines:
            if line.startswith(">>> "):
                made += [line, *outcome(line[4:], space)]
            elif line.startswith("$ "):
                made += [line, *commands.said(line[2:], with_slashes), ""]
    return made


def outcome(code: str, space: dict[str, object]) -> list[str]:
    """Run code; return its value, if it has one, or the error that it raises, one sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (*statements, last) = ast.parse(code).body
            if statements or not isinstance(last, ast.Expr):
                exec(code, space)
                return []
            value = eval(code, space)
            if isinstance(value, GeneratorType):
                return list(value)
            return [] if value is None else [repr(plain(value))]
    except Exception as error:
        message = with_slashes(str(error))
        assert "\n" not in message, code
        assert message.endswith("."), code
        return [f"{type(error).__name__}: {message}"]


def with_slashes(message: str) -> str:
    """Write paths in a message as on Linux."""
    return message if os.sep == "/" else message.replace(2 * os.sep, "/").replace(os.sep, "/")


def plain(value: Any) -> Any:
    """Return numbers of NumPy as those of Python, whose words are the same in all versions."""
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    return value.item() if isinstance(value, np.generic) else value


def main() -> None:
    """Write the files anew."""
    for file in [*KEPT, TRANSCRIPTS]:
        parts = []
        for section in sections(file):
            packages = f" [{' '.join(section.packages)}]" if section.packages else ""
            lines = "\n".join(told(section)).rstrip()
            parts.append(f"# {section.title}{packages}\n\n{lines}\n")
        file.write_text("\n".join(parts), "utf-8")
        print(f"{file} has {len(file.read_text('utf-8').splitlines())} lines; read what changed.")


if __name__ == "__main__":
    main()
