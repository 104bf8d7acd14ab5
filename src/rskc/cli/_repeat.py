"""How a result is repeated: as a command, and in Python."""

from __future__ import annotations

import inspect
import shlex
from pathlib import Path
from typing import Any

from rskc.cli._options import SEPARATORS, Reading
from rskc.cli._tables import SCALES, Data
from rskc.cli._values import table_word

# Arguments of read_table that are lists, and the options that are repeated for them.
REPEATED = {"drop": "--drop", "use_columns": "--use-column", "categorical": "--categorical"}


def explore_command(data: Data, folder: Path) -> str:
    """Return the command that makes the explorer of the table, beside its report."""
    words = _on_table("explore", data)
    return shlex.join([*words, "--out", str(folder / "explorer.html")])


def fit_command(data: Data, model: Any) -> str:
    """Return the command that fits such a model to the table, with all that differs from usual."""
    words = [*_on_table("fit", data), "--clusters", str(model.n_clusters)]
    if model.trim != "auto":
        words += ["--trim", f"{model.trim:.12g}"]
    if model.cells != "auto":
        words += ["--cells", "none" if model.cells is None else f"{model.cells:.12g}"]
    if model.n_features is not None:
        words += ["--n-features", str(model.n_features)]
    elif model.l1_bound is None:
        words += ["--l1-bound", "none"]
    elif model.l1_bound != "auto":
        words += ["--l1-bound", str(model.l1_bound)]
    if model.n_init != "auto":
        words += ["--n-init", str(model.n_init)]
    if model.random_state != 0:
        words += ["--seed", str(model.random_state)]
    return shlex.join(words)


def _on_table(command: str, data: Data) -> list[str]:
    """Return a command with the table, how it is read and standardized, and its groups."""
    words = ["rskc", command, table_word(data.table.path), *_reading_options(data.reading)]
    words += _preparing_options(data.preparer)
    if data.groups_file is not None:
        words += ["--groups", str(data.groups_file)]
    return words


def _preparing_options(preparer: Any) -> list[str]:
    """Return the options that prepare a table in this way."""
    log, standardize, scale = preparer.log, preparer.standardize, preparer.scale
    if log is None and standardize is None:
        return ["--prepare", "none"]
    words = []
    if log != "auto":
        words += ["--log", "none" if log is None else ",".join([log] if log == "all" else log)]
    if standardize != "auto":
        words += ["--standardize", "none" if standardize is None else standardize]
    usual = "mad" if standardize == "rows" else "auto"
    names = {made: name for name, made in SCALES.items()}
    return words + (["--scale", names[scale]] if scale not in (usual, "auto") else [])


def run_of(data: Data) -> dict[str, Any]:
    """Return how a table was read and standardized, for the Python that repeats it."""
    run = {
        "file": data.table.path.name,
        "standardization": data.preparer.describe(),
        "standardizer": None if data.preparer.is_idle else repr(data.preparer),
        # Tables in blocks have no digest, and read_table does not read them.
        "reader": data.table.sha256 and read_call(data.table.path, data.reading),
    }
    return {name: value for name, value in run.items() if value is not None}


def read_call(path: Path, reading: dict[str, Any]) -> str:
    """Return the call of ``read_table`` that reads the table, as one writes it in Python."""
    from rskc.files import read_table

    usual = {
        name: [] if parameter.default == () else parameter.default
        for name, parameter in inspect.signature(read_table).parameters.items()
    }
    usual["missing_values"] = list(usual["missing_values"])
    given = [f"{name}={value!r}" for name, value in reading.items() if value != usual.get(name)]
    return f"read_table({', '.join([repr(str(path)), *given])})"


def _reading_options(reading: dict[str, Any]) -> list[str]:
    usual, words = Reading().arguments(), []
    marks = {mark: name for name, mark in SEPARATORS.items() if name.isalpha()}
    changed = {name: value for name, value in reading.items() if value != usual.get(name)}
    for name, value in changed.items():
        if name == "missing_values":
            known = usual["missing_values"]
            words += [word for mark in value if mark not in known for word in ("--missing", mark)]
        elif name in REPEATED and not isinstance(value, str):
            option = REPEATED[name]
            words += [word for column in value for word in (option, column)]
        elif name == "date_columns":
            words += ["--dates", value]
        elif name == "features_in_rows":
            words.append("--features-in-rows" if value else "--cases-in-rows")
        elif name == "header":
            words.append("--no-header")
        elif name == "separator":
            words += ["--separator", marks.get(value, value)]
        elif isinstance(value, str):
            words += [f"--{name.replace('_', '-')}", value]
    return words
