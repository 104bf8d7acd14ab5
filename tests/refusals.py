"""What is refused, and in which sentence, section by section of ``refusals.txt``.

Each line there that begins with ``>>>`` is run, and the line below is the error that it raises.
``python tests/refusals.py`` writes these lines anew; read the difference before it is committed.
A title may end with the packages that its section needs, in brackets.
"""

import contextlib
import re
import tempfile
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

import rskc
from rskc import datasets, metrics, selection
from rskc.datasets import make_figure1

KEPT = Path(__file__).with_name("refusals.txt")


class Section(NamedTuple):
    """A title, the packages that are needed, and lines of code with what they raise."""

    title: str
    packages: list[str]
    lines: list[str]


def sections() -> dict[str, Section]:
    """Return the sections of the file by their titles."""
    found = {}
    for text in re.split(r"^# ", KEPT.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        head, *lines = text.rstrip().splitlines()
        title, _, packages = head.rstrip("]").partition(" [")
        found[title] = Section(title, packages.split(), [line for line in lines if line])
    return found


def names() -> dict[str, object]:
    """Return what code may use beside its own imports: the public names, and a table."""
    made: dict[str, object] = {"np": np, "pd": pd, "rskc": rskc}
    for module in (rskc, datasets, metrics, selection):
        made |= {name: getattr(module, name) for name in module.__all__}
    X = make_figure1(60, 6, random_state=0).data
    return made | {"X": X, "frame": pd.DataFrame(X, columns=list("abcdef"))}


def raised(section: Section) -> list[str]:
    """Run the code of a section in an empty folder; return it with what it raises."""
    made, space = [], names()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for line in section.lines:
            if line.startswith(">>> "):
                made += [line, *error_of(line[4:], space)]
    return made


def error_of(code: str, space: dict[str, object]) -> list[str]:
    """Run code; return the error that it raises, one sentence, or nothing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(code, space)
    except Exception as error:
        message = str(error)
        assert "\n" not in message, code
        assert message.endswith("."), code
        return [f"{type(error).__name__}: {message}"]
    return []


def main() -> None:
    """Write the file anew."""
    parts = []
    for section in sections().values():
        packages = f" [{' '.join(section.packages)}]" if section.packages else ""
        parts.append("\n".join([f"# {section.title}{packages}", "", *raised(section), ""]))
    KEPT.write_text("\n".join(parts), "utf-8")
    print(f"{KEPT} has {len(KEPT.read_text('utf-8').splitlines())} lines; read what changed.")


if __name__ == "__main__":
    main()
