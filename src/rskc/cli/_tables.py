"""From a file to the data that is clustered, with notes on what was done to it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rskc.cli._app import Console, recorded_warnings
from rskc.cli._options import Preparing
from rskc.exceptions import FitWarning
from rskc.inputs.columns import (
    codes_of_missing,
    is_feature_name,
    is_outcome_name,
    sign_of_side,
)
from rskc.utils.wording import cleaned, count, listed, quoted, shortened

MOST_CODES = 3  # numbers that may stand for missing cells, in notes
MOST_COLUMNS = 200  # of which the page says what they were taken for
NAMES_IN_TEXT = 5


def prepared(preparer: Any, frame: Any) -> Any:
    """Return a frame as a preparer makes it."""
    if preparer.is_idle:
        return frame
    import pandas as pd

    names = {"index": frame.index, "columns": frame.columns}
    preparer = preparer.of_columns(range(frame.shape[1]))  # which checks no names
    if is_sparse(frame):
        values = preparer.transform(frame.sparse.to_coo().tocsr())
        return pd.DataFrame.sparse.from_spmatrix(values, **names)
    if any(str(dtype) == "category" for dtype in set(frame.dtypes)):
        preparer.feature_names_in_ = np.asarray(frame.columns, dtype=object)
        return preparer.transform(frame)
    return pd.DataFrame(preparer.transform(frame.to_numpy()), **names, copy=False)


def is_sparse(frame: Any) -> bool:
    """Whether the columns of a frame are sparse."""
    return all(hasattr(dtype, "fill_value") for dtype in frame.dtypes)


def fit_preparer(asked: Preparing, frame: Any) -> Any:
    """Find out how a table is prepared; may warn of some columns."""
    from rskc.preprocessing.preparer import Preparer

    preparer = Preparer(**asked.arguments())
    if asked.is_settled:
        return preparer.without_data(frame.shape[1])
    return preparer.fit(frame.sparse.to_coo().tocsr() if is_sparse(frame) else frame)


def preparation_note(asked: Preparing, preparer: Any) -> list[str]:
    """Announce what was done without having been asked for."""
    if preparer.is_idle or {asked.prepare, asked.log, asked.standardize} != {"auto"}:
        return []
    done = preparer.describe()
    return [f"Prepared: {done}. To cluster the numbers as they are, add --prepare none."]


@dataclass(frozen=True)
class Data:
    """A table, and what is clustered of it."""

    table: Any
    X: Any  # pandas.DataFrame, or one of Dask, standardized
    shape: tuple[int, int]
    preparer: Any  # rskc.Preparer
    reading: dict[str, Any]  # arguments of read_table
    notes: list[str]
    seconds: float
    feature_groups: Mapping[str, list[str]] | None = None
    drawn: Any = None  # of a table in blocks, cases that columns were prepared by

    @property
    def units(self) -> dict[str, Any]:
        """How prepared values of each column become those of the file, by its name."""
        return {
            str(name): self.preparer.unit(j)
            for j, name in enumerate(self.X.columns)
            if self.preparer.has_units and name not in self.table.categories
        }

    def run(self) -> dict[str, Any]:
        """Return how the table was read and standardized, for the Python that repeats it."""
        preparer, table = self.preparer, self.table
        arguments = [f"{name}={value!r}" for name, value in self.reading.items()]
        call = f"read_table({', '.join([repr(str(table.path)), *arguments])})"
        run = {
            "file": table.path.name,
            "standardization": preparer.describe(),
            "standardizer": None if preparer.is_idle else repr(preparer),
            # Tables in blocks have no digest, and read_table does not read them.
            "reader": table.sha256 and call,
        }
        return {name: value for name, value in run.items() if value is not None}


def reread(path: Path, arguments: dict[str, Any], how: Any, console: Console) -> Data:
    """Read a table; ``how`` are the options that prepare it, or the preparer of a fit."""
    from rskc.files import read_table

    start = time.perf_counter()
    with console.busy(f"Reading {path.name}"), recorded_warnings() as warned:
        table = read_table(path, **arguments)
        if isinstance(how, Preparing) and len(table.empty) == table.data.shape[1]:
            raise ValueError(f"{path.name!r}: none of its cells holds a value; give it some data.")
        # Nothing is known of empty features, and a table without missing cells is clustered faster.
        filled = table.data.drop(columns=table.empty) if table.empty else table.data
        preparer = fit_preparer(how, filled) if isinstance(how, Preparing) else how
        preparer.feature_names_in_ = np.asarray(filled.columns, dtype=object)  # files have none
        X = prepared(preparer, filled)
    notes = [*notes_of(table, len(table.data), arguments), *map(str, warned)]
    if isinstance(how, Preparing):
        notes += preparation_note(how, preparer)
    if table.in_rows:  # so that a table of few new cases is read alike
        arguments = {**arguments, "features_in_rows": True}
    if table.decimal == ",":  # other tables of the kind may not show it
        arguments = {**arguments, "decimal": ","}
    return Data(table, X, X.shape, preparer, arguments, notes, time.perf_counter() - start)


# ---- Notes


def notes_of(table: Any, n_cases: int, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Say what someone who thinks the table is just numbers would like to know.

    Of a sample of the cases nothing is said that holds of all only.
    """
    yield from table.notes
    if table.turned:
        yield (
            f"The table is transposed, as {table.turned} shows: its rows were read as features and "
            "its columns as cases; if rows are cases, add --cases-in-rows."
        )
    yield from map(_on_column, table.set_aside)
    if table.decimal == ",":
        yield "Commas were read as decimal marks; if they are none, add --decimal ."
    for name, values in table.categories.items():
        if len(values) > 1:  # else it is named with the constants
            known = listed([shortened(value, 24) for value in values], 4)
            words = f"{count(len(values), 'category', 'categories')}: {known}"
            yield f"Column {shortened(name, 60)!r} was read as {words}."
    yield from _on_columns_left_out(table)
    for name in table.data.columns:
        if is_outcome_name(str(name)) and table.data[name].nunique() == 2:
            yield (
                f"Column {shortened(name, 60)!r} has two values and is named like an outcome. It "
                "is one of the features; to compare it with the clusters instead, add "
                f"--label-column {shlex.quote(str(name))}."
            )
    if len(table.data) == n_cases:
        yield from _on_cases(table)
        if table.empty:
            yield f"Columns without any value: {quoted(table.empty)}."
        if table.constant:
            yield f"The same in all cases, and so without effect: {quoted(table.constant)}."
    sign = sign_of_side(table.id_column, n_cases, list(map(str, table.data.columns)))
    numbered = all(str(name).isdigit() for name in table.data.index[:20])
    if (
        sign is not None
        and arguments.get("features_in_rows", "auto") is not False
        and not table.in_rows
        and (is_feature_name(table.id_column) or not numbered)  # cases have numbers for names
    ):
        yield (
            f"The table has {sign}: if its rows are features, such as genes, and its columns "
            "cases, add --features-in-rows."
        )


def _on_column(column: Any) -> str:
    """Say what became of a column that was recognized."""
    name, option = repr(shortened(column.name, 60)), shlex.quote(column.name)
    use = "." if column.is_text else f"; to cluster by it, add --use-column {option}."
    if column.role == "classes":
        return f"Column {name} {column.why}: it was left out and compared with the clusters{use}"
    done = "was left out"
    if column.role == "names":
        done = "gives them their names" if column.why == "counts the cases" else "names the cases"
    elif column.kind == "id":
        use = f"; to name the cases by it, add --id-column {option}" + use
    return f"Column {name} {column.why} and {done}{use}"


def _on_columns_left_out(table: Any) -> Iterator[str]:
    """Name columns that were left out without having been asked for."""
    known = {column.name for column in table.set_aside}
    dropped = {
        name: why for name, why in table.dropped.items() if why != "asked for" and name not in known
    }
    if dropped:
        which = listed(f"{name!r} ({why})" for name, why in dropped.items())
        hold = "it holds" if len(dropped) == 1 else "they hold"
        use = ""
        if any(why.startswith("text that names cases") for why in dropped.values()):
            use += "; to name the cases by one, add --id-column NAME"
        if any(why.startswith("text with") for why in dropped.values()):
            use += "; to cluster by text of many values, add --categorical NAME"
        yield f"Left out, since {hold} no numbers: {which}{use}."


def _on_cases(table: Any) -> Iterator[str]:
    """Say which ids occur again, and which cells are likely to be missing."""
    again = table.data.index[table.data.index.duplicated()]
    if len(again):
        names = quoted(dict.fromkeys(map(str, again)), 4)
        yield (
            f"{count(len(again), 'row repeats', 'rows repeat')} an id ({names}). Each row is a "
            "case of its own; remove those that were entered twice."
        )
    numbers = table.data.select_dtypes("number")
    codes = [] if is_sparse(table.data) else codes_of_missing(numbers.to_numpy())
    for code in codes[:MOST_CODES]:
        which = quoted([numbers.columns[j] for j in code.columns], 6)
        yield (
            f"{count(code.n_cells, 'cell')} of {which} are {code.value:g}, far from all others: if "
            f"it stands for a missing cell, add --missing {code.value:g}, as written in the file."
        )


def named_cases(table: Any, cases: Iterable[int]) -> list[str]:
    """Name cases, given their numbers; those without names by their number and line."""
    names = [cleaned(table.data.index[i], 40) for i in cases]
    if table.id_column is not None or table.data.index.dtype == object:
        return names
    return [f"{name} ({table.where(int(i))})" for name, i in zip(names, cases, strict=True)]


# ---- What was read


def what_was_read(data: Data, n_cases: int, warnings: list[Any]) -> dict[str, Any]:
    """Return the file, its rows and columns, what these were taken for, and every note.

    What is no feature comes first. Of a table of which only some cases are in memory, missing cells
    by column are not known.
    """
    table, in_rows = data.table, data.reading.get("features_in_rows") is True
    line = "row" if in_rows else "column"  # of a feature
    taken = {
        table.id_column: f"names of the {'features' if in_rows else 'cases'}",
        table.label_column: "known classes, compared with the clusters",
        data.reading.get("weight_column"): "weights of the cases",
    }
    left_out = {column.name: column.why for column in table.set_aside} | dict(table.dropped)
    left_out = {name: why for name, why in left_out.items() if name not in taken}
    taken |= {name: f"left out: {why}" for name, why in left_out.items()}
    for name in table.data.columns:
        words = "a number"
        if name in table.categories:
            words = f"a category of {count(len(table.categories[name]), 'value')}"
        elif name in table.written:
            unit = table.written[name]
            words = f"a number in {unit}" if unit else "a number with marks between thousands"
        words += ", the same in all cases" * (name in table.constant)
        taken[name] = words + ", without any value" * (name in table.empty)
    taken.pop(None, None)
    missing = table.data.isna().sum().to_dict() if len(table.data) == n_cases else {}
    columns = [
        {"name": cleaned(name, 60), "taken_for": cleaned(how, 200), "n_missing": missing.get(name)}
        for name, how in taken.items()
    ]
    features = count(table.data.shape[1], line)
    sentence = f"{count(n_cases, 'case')} were clustered by {features}"
    if left_out:
        were = count(len(left_out), f"{line} was", f"{line}s were")
        names = listed([cleaned(name, 60) for name in left_out], NAMES_IN_TEXT)
        sentence += f"; {were} left out: {names}"
    note = f"{line.capitalize()}s of the file, in the order of their use."
    if len(columns) > MOST_COLUMNS:
        note = f"The first {MOST_COLUMNS} of {len(columns):,} {line}s."
    n_missing = int(table.n_missing)
    return {
        "sentence": f"{sentence}.",
        "file": table.path.name,
        "n_cases": n_cases,
        # Where rows are features, their names are a column.
        "n_columns": len(columns) - (in_rows and table.id_column is not None),
        "line": line,
        "missing": {
            "n_cells": n_missing,
            "words": count(n_missing, "cell") if n_missing else "none",
        },
        "prepared": data.preparer.describe(),
        "columns": columns[:MOST_COLUMNS],
        "columns_note": note,
        "notes": [*data.notes, *(str(w) for w in warnings if not isinstance(w, FitWarning))],
    }
