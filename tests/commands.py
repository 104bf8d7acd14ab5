"""The command line as someone types it: write a table, run a command, read what it wrote."""

import importlib.util
import re
import shlex
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from rskc.cli._commands import app

N = 40
GROUP = np.arange(N) % 2
COUNT = np.arange(N)
PROGRESS = re.compile(r" of [\d,]+ after \d+ s$")  # what a log says on a busy machine
WRITTEN = re.compile(r"  (labels|features|markers|cells)\.csv|  model\.rskc|  summary\.json|$")


def run(*args, code=0, pipe=None):
    result = CliRunner().invoke(app, [str(arg) for arg in args], input=pipe)
    told = f"{result.stdout}\n{result.stderr}"
    assert result.exit_code == code, told
    return result


def refused(*args, code=1):
    """The one sentence that a command refuses something with."""
    result = run(*args, code=code)
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if not PROGRESS.search(line)]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("rskc: ")
    return f"{lines[0]}\n"


def without(monkeypatch, *packages):
    """Let packages look as if they were not installed."""
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name in packages else found(name, *a)
    )


def said(command, with_slashes=str):
    """Run a command, and return what it says: an exclamation mark stands for stderr."""
    before = sorted(Path().iterdir())
    pipe = Path("t.csv").read_text("utf-8") if " - " in command else None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = CliRunner().invoke(app, shlex.split(command)[1:], input=pipe)
    out = [line.rstrip() for line in result.stdout.splitlines() if "─" not in line]
    out = [re.sub(r"\d+\.\d s|\d+ ms", "0.0 s", line) for line in out if not WRITTEN.match(line)]
    errors = [line for line in result.stderr.splitlines() if not PROGRESS.search(line)]
    here = with_slashes(f"{Path().resolve()}/")
    errors = [f"! {with_slashes(line.rstrip()).replace(here, '')}" for line in errors]
    if result.exit_code:
        assert not out or command.startswith("rskc explore"), out
        assert len(errors) == 1, errors
        assert sorted(Path().iterdir()) == before
        errors.append(f"exit code {result.exit_code}")
    return [*out, *errors]


def flat(text):
    """What a terminal shows, in one line."""
    return " ".join(text.split())


def labels(folder, name="labels.csv"):
    return pd.read_csv(Path(folder) / name)


def table(**columns):
    """Two clusters in two of four features, and more columns."""
    noise = np.random.default_rng(1).uniform(-1, 1, (4, N))  # without a tail
    features = {x: noise[j] + 6 * GROUP * (x in "ab") for j, x in enumerate("abcd")}
    return pd.DataFrame(columns | features)


def changed(cells, **columns):
    """The same with other cells, by row and column; ``*`` stands for all columns."""
    made = table(**columns)
    for (row, column), value in cells.items():
        made.loc[row, list(made) if column == "*" else column] = value
    return made


def words(first, second):
    return np.array([first, second])[GROUP]


def as_text(made, **how):
    return made if isinstance(made, str) else made.to_csv(index=False, **how)


def put(made, name="t.csv", **how):
    """Write a table, a frame or text."""
    Path(name).parent.mkdir(exist_ok=True)
    if name.endswith(".parquet"):
        made.to_parquet(name, index=False)
    else:
        Path(name).write_text(as_text(made, **how), "utf-8")
