"""What was read of a table, for the page and for summary.json."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rskc.cli._repeat import run_of
from rskc.cli._tables import Data
from rskc.exceptions import FitWarning
from rskc.utils.wording import cleaned, count, listed, percent, sentence_list

MOST_COLUMNS = 200  # of which the page says what they were taken for
MOST_NAMES = 5


def what_was_read(data: Data, n_cases: int, warnings: list[Any]) -> dict[str, Any]:
    """Return the file, its rows and columns, what these were taken for, and every note.

    Of a table of which only some cases are in memory, missing cells by column are not known.
    """
    table = data.table
    is_whole = len(table.data) == n_cases
    columns = list(_columns(data, is_whole))
    kinds = [column["kind"] for column in columns]
    line = "row" if data.reading.get("features_in_rows") is True else "column"  # of a feature
    words = [
        count(kinds.count(kind), *form)
        for kind, form in {
            "number": (f"{line} of numbers", f"{line}s of numbers"),
            "category": (f"{line} of categories", f"{line}s of categories"),
        }.items()
        if kind in kinds
    ]
    n_left_out = kinds.count("left out")
    sentence = f"{count(n_cases, 'case')} were clustered by {sentence_list(words)}"
    if n_cases == 1:
        sentence = sentence.replace("were", "was")
    if n_left_out:
        left = [cleaned(each["name"], 40) for each in columns if each["kind"] == "left out"]
        were = "was" if n_left_out == 1 else "were"
        which = listed(left, MOST_NAMES)
        sentence += f"; {count(n_left_out, line)} {were} left out: {which}"
    note = f"{line.capitalize()}s of the file, in the order of their use."
    if len(columns) > MOST_COLUMNS:
        note = f"The first {MOST_COLUMNS} of {len(columns):,} {line}s."
    return {
        "sentence": f"{sentence}.",
        "file": table.path.name,
        "n_cases": n_cases,
        "n_columns": len(columns),
        "line": line,
        "missing": {"n_cells": int(table.n_missing), "words": _missing(data, columns, is_whole)},
        "prepared": run_of(data)["standardization"],
        "columns": columns[:MOST_COLUMNS],
        "columns_note": note,
        "notes": [*data.notes, *(str(w) for w in warnings if not isinstance(w, FitWarning))],
    }


def _columns(data: Data, is_whole: bool) -> Iterator[dict[str, Any]]:
    """Yield a row for each column: what is no feature first."""
    table, known = data.table, {column.name: column for column in data.table.set_aside}
    weights, seen = data.reading.get("weight_column"), set[str]()

    def row(name: str, kind: str, taken_for: str, n_missing: int | None = None) -> dict[str, Any]:
        seen.add(name)
        return {
            "name": cleaned(name, 60),
            "kind": kind,
            "taken_for": cleaned(taken_for, 200),
            "n_missing": n_missing,
        }

    if table.id_column is not None:
        what = "features" if data.reading.get("features_in_rows") is True else "cases"
        yield row(table.id_column, "names", f"names of the {what}")
    if table.label_column is not None:
        yield row(table.label_column, "classes", "known classes, compared with the clusters")
    if weights is not None:
        yield row(weights, "weights", "weights of the cases")
    for name, why in {**{c.name: c.why for c in known.values()}, **table.dropped}.items():
        if name not in seen:
            yield row(name, "left out", f"left out: {why}")
    n_missing = table.data.isna().sum().to_numpy() if is_whole else [None] * table.data.shape[1]
    for name, holes in zip(table.data.columns, n_missing, strict=True):
        kind, words = "number", "a number"
        if name in table.categories:
            kind = "category"
            words = f"a category of {count(len(table.categories[name]), 'value')}"
        elif name in table.written:
            words = f"a number, written {table.written[name]}"
        words += ", the same in all cases" * (name in table.constant)
        words += ", without any value" * (name in table.empty)
        yield row(str(name), kind, words, None if holes is None else int(holes))


def _missing(data: Data, columns: list[dict[str, Any]], is_whole: bool) -> str:
    """Say how many cells are missing, and where most of them are."""
    n_missing, n_features = int(data.table.n_missing), data.table.data.shape[1]
    if not n_missing:
        return "none"
    n_cells = len(data.table.data) * n_features
    text = count(n_missing, "cell")
    if not is_whole:
        return text
    text += f" ({percent(n_missing / n_cells)})"
    holes = np.array([column["n_missing"] or 0 for column in columns])
    first = np.argsort(-holes, kind="stable")[: min(MOST_NAMES, np.count_nonzero(holes))]
    names = [f"{columns[j]['name']} ({holes[j]:,})" for j in first]
    return f"{text}, in {listed(names, MOST_NAMES, int(np.count_nonzero(holes)))}"
