"""How a result is repeated: as a command, and in Python."""

from __future__ import annotations

import inspect
import shlex
from pathlib import Path
from typing import Any

from rskc.cli._options import NAMES, SCALES, SEPARATORS, Reading, table_word
from rskc.cli._tables import Data

# Parameters of a model that options set, and what they are where none does.
SETTINGS = {
    "trim": "auto",
    "cells": "auto",
    "n_features": None,
    "l1_bound": "auto",
    "n_init": "auto",
    "random_state": 0,
}


def explore_command(data: Data, folder: Path) -> str:
    """Return the command that makes the explorer of the table, beside its report."""
    words = _on_table("explore", data)
    return shlex.join([*words, "--out", str(folder / "explorer.html")])


def fit_command(data: Data, model: Any) -> str:
    """Return the command that fits such a model to the table, with all that differs from usual."""
    words = [*_on_table("fit", data), "--clusters", str(model.n_clusters)]
    for name, usual in SETTINGS.items():
        value = getattr(model, name)
        if value != usual:
            text = f"{value:.12g}" if isinstance(value, float) else str(value)
            words += [NAMES[name], "none" if value is None else text]
    return shlex.join(words)


def _on_table(command: str, data: Data) -> list[str]:
    """Return a command with the table, how it is read and standardized, and its groups."""
    words = ["rskc", command, table_word(data.table.path)]
    usual, marks = Reading().arguments(), {mark: name for name, mark in SEPARATORS.items()}
    for name, value in data.reading.items():
        if value == usual.get(name):
            continue
        if name == "header":
            words.append("--no-header")
        elif name == "features_in_rows":
            words.append("--features-in-rows" if value else "--cases-in-rows")
        elif name == "separator":
            words += ["--separator", marks.get(value, value)]
        else:
            values = value if isinstance(value, list) else [value]
            for each in values:
                words += [] if each in (usual[name] or ()) else [NAMES[name], each]
    words += _preparing_options(data.preparer)
    return words if data.groups_file is None else [*words, "--groups", str(data.groups_file)]


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
        "reader": data.table.sha256 and _read_call(data.table.path, data.reading),
    }
    return {name: value for name, value in run.items() if value is not None}


def _read_call(path: Path, reading: dict[str, Any]) -> str:
    """Return the call of ``read_table`` that reads the table, as one writes it in Python."""
    from rskc.files import read_table

    parameters = inspect.signature(read_table).parameters
    given = []
    for name, value in reading.items():
        usual = parameters[name].default
        if value != (list(usual) if isinstance(usual, tuple) else usual):
            given.append(f"{name}={value!r}")
    return f"read_table({', '.join([repr(str(path)), *given])})"
