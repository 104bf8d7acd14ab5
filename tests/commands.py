"""The command line as someone types it: run a command, read what it wrote."""

from pathlib import Path

import pandas as pd
from typer.testing import CliRunner

from rskc.cli._commands import app


def run(*args, code=0, pipe=None):
    result = CliRunner().invoke(app, [str(arg) for arg in args], input=pipe)
    told = f"{result.stdout}\n{result.stderr}"
    assert result.exit_code == code, told
    return result


def refused(*args, code=1):
    """The one sentence that a command refuses something with."""
    result = run(*args, code=code)
    assert result.stdout == ""
    # On a busy machine a log says what is under way.
    lines = [line for line in result.stderr.splitlines() if not line.endswith(" ...")]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("rskc: ")
    return f"{lines[0]}\n"


def labels(folder, name="labels.csv"):
    return pd.read_csv(Path(folder) / name)
