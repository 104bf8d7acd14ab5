"""From a file to the data that is clustered, with notes on what was done to it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rskc.cli._app import Console, recorded_warnings
from rskc.cli._options import Preparing, Reading, table_word, words_of
from rskc.exceptions import FitWarning
from rskc.inputs.columns import (
    NONE,
    codes_of_missing,
    is_feature_name,
    is_outcome_name,
    sign_of_side,
)
from rskc.utils.wording import (
    cleaned,
    count,
    listed,
    percent,
    quoted,
    sentence_list,
    shortened,
)

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
    if has_categories(frame):
        preparer.feature_names_in_ = np.asarray(frame.columns, dtype=object)
        return preparer.transform(frame)
    return pd.DataFrame(preparer.transform(frame.to_numpy()), **names, copy=False)


def is_sparse(frame: Any) -> bool:
    """Whether the columns of a frame are sparse."""
    return all(hasattr(dtype, "fill_value") for dtype in frame.dtypes)


def has_categories(frame: Any) -> bool:
    """Whether a frame holds categories beside numbers, or nothing else."""
    return any(str(dtype) == "category" for dtype in set(frame.dtypes))


def fit_preparer(asked: Preparing, frame: Any) -> Any:
    """Find out how a table is prepared; may warn of some columns."""
    arguments = asked.arguments()
    rows = arguments["standardize"] == "rows"
    if rows and has_categories(frame):
        raise ValueError(
            "--standardize rows compares cells along a row, and some hold categories; use "
            "--standardize columns, or leave these out by --text-columns drop."
        )
    if rows and is_sparse(frame):
        raise ValueError(
            "the table is sparse, and --standardize rows would fill it: use --standardize "
            "columns, which leaves 0 at 0, or standardize before the table is written."
        )
    from rskc.preprocessing.preparer import Preparer

    if not asked.is_judged:
        return Preparer(**arguments).without_data(frame.shape[1])
    table = frame.sparse.to_coo().tocsr() if is_sparse(frame) else frame
    made = Preparer(**arguments).fit(table)
    made.feature_names_in_ = np.asarray(frame.columns, dtype=object)
    return made


def preparation_note(asked: Preparing, preparer: Any) -> list[str]:
    """Announce what was done without having been asked for."""
    if preparer.is_idle or {asked.prepare, asked.log, asked.standardize} != {"auto"}:
        return []
    how = "--prepare none" + ", or --log none" * bool(preparer.log_.any() and not preparer.counts_)
    done = preparer.describe()
    return [f"Prepared: {done}. To cluster the numbers as they are, add {how}."]


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
    words: tuple[str, ...] = ()  # options that were typed: how it is read and prepared
    feature_groups: Mapping[str, list[str]] | None = None
    drawn: Any = None  # of a table in blocks, cases that columns were prepared by

    @property
    def units(self) -> dict[str, Any]:
        """How prepared values of each column become those of the file, by its name."""
        if not self.preparer.has_units:
            return {}
        return {
            str(name): self.preparer.unit(j)
            for j, name in enumerate(self.X.columns)
            if name not in self.table.categories
        }

    def grouped(self, path: Path | None) -> Data:
        """Add the groups of features that a GMT file has, with a word on what it does not have."""
        if path is None:
            return self
        from rskc.files import read_gmt

        gmt = read_gmt(path, self.X.columns)
        notes = [*self.notes, f"{path.name}: {gmt.words()}"]
        words = (*self.words, "--groups", str(path))
        return replace(self, words=words, feature_groups=gmt.groups, notes=notes)

    def command(self, name: str) -> list[str]:
        """Return a command on the table, which is read and prepared in the same way."""
        return ["rskc", name, table_word(self.table.path), *self.words]

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


def read(
    path: Path, reading: Reading, preparing: Preparing, groups: Path | None, console: Console
) -> Data:
    """Read a table and prepare it; classes and groups of features may be in files of their own."""
    from rskc.files.beside import read_classes

    data = reread(path, reading.arguments(), preparing, console)
    data = replace(data, words=tuple(words_of(reading, preparing)))
    if reading.labels is not None:
        found, name = read_classes(reading.labels, data.table.data.index), reading.labels.name
        table = replace(data.table, labels=found.labels, label_column=found.name)
        how = "by the names of the cases" if found.by_id else "in the order of the cases"
        note = f"{name}: column {found.name!r} holds the known classes, {how}."
        data = replace(data, table=table, notes=[*data.notes, note])
    return data.grouped(groups)


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
    is_sample = len(table.data) < n_cases
    yield from table.notes
    yield from _on_side(table)
    yield from map(_on_column, table.set_aside)
    if table.decimal == ",":
        yield "Commas were read as decimal marks; if they are none, add --decimal ."
    if table.written:
        written = table.written.items()
        numbers = [f"{shortened(name, 60)!r} ({_how(unit)})" for name, unit in written]
        yield f"Read as numbers: {listed(numbers, 8)}."
    yield from _on_categories(table, is_sample)
    yield from _on_columns_left_out(table)
    for name in table.data.columns:
        if is_outcome_name(str(name)) and table.data[name].nunique() == 2:
            yield (
                f"Column {shortened(name, 60)!r} has two values and is named like an outcome. It "
                "is one of the features; to compare it with the clusters instead, add "
                f"--label-column {shlex.quote(str(name))}."
            )
    if not is_sample:
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
    if (name := arguments.get("weight_column")) is not None:
        yield f"Column {shortened(name, 60)!r} holds the weights of the cases."


def _how(unit: str) -> str:
    """Say how numbers of a column are written."""
    return f"in {unit}" if unit else "with marks between thousands"


def _on_side(table: Any) -> Iterator[str]:
    """Say that a table was taken to be transposed, and what is known of its cases by that."""
    if table.turned:
        yield (
            f"The table is transposed, as {table.turned} shows: its rows were read as features and "
            "its columns as cases; if rows are cases, add --cases-in-rows."
        )
    if table.in_rows and table.labels is not None:
        classes = list(dict.fromkeys(table.labels))
        yield (
            f"Known classes of the cases ({listed(classes, 6)}), in {table.label_column}, are "
            "compared with the clusters, and not used to find them."
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


def _on_categories(table: Any, is_sample: bool) -> Iterator[str]:
    """Say which categories columns have, and how many of all cells are missing or look so."""
    for name, values in table.categories.items():
        if len(values) == 1:
            continue  # named with the constants
        column, cells = repr(shortened(name, 60)), table.data[name]
        known = listed([shortened(value, 24) for value in values], 4)
        n_missing, n_none = int(cells.isna().sum()), int((cells == NONE).sum())
        if is_sample:
            n_missing = n_none = 0
        read_as = f"{count(len(values), 'category', 'categories')}: {known}"
        if n_missing:
            read_as += f"; {count(n_missing, 'cell is', 'cells are')} missing"
        yield f"Column {column} was read as {read_as}."
        if n_none:
            hold = count(n_none, f"cell of {column} holds", f"cells of {column} hold")
            yield (
                f"{hold} {NONE!r}, which was read as a category; if it stands for a missing cell, "
                f"add --missing {NONE}."
            )


def _on_columns_left_out(table: Any) -> Iterator[str]:
    """Name columns that were left out without having been asked for."""
    known = {column.name for column in table.set_aside}
    dropped = {
        name: why for name, why in table.dropped.items() if why != "asked for" and name not in known
    }
    if dropped:
        which = listed(f"{name!r} ({why})" for name, why in dropped.items())
        hold = "it holds" if len(dropped) == 1 else "they hold"
        parts = [f"Left out, since {hold} no numbers: {which}"]
        names = [name for name, why in dropped.items() if why.startswith("text that names cases")]
        if names and table.id_column is None:
            parts.append(f"to name the cases by it, add --id-column {shlex.quote(names[0])}")
        if any(why.startswith("text with") for why in dropped.values()):
            parts.append("to cluster by text of many values, add --categorical NAME")
        yield f"{'; '.join(parts)}."


def _on_cases(table: Any) -> Iterator[str]:
    """Say which cases occur again or have no data, and which cells are likely to be missing."""
    again = table.data.index[table.data.index.duplicated()]
    if len(again):
        names = quoted(dict.fromkeys(map(str, again)), 4)
        rows = table.data[table.data.index.isin(again)]
        n_copies = 0 if is_sparse(rows) else int(rows.reset_index().duplicated().sum())
        copied = f", {n_copies:,} of them with the same cells" if n_copies else ""
        yield (
            f"{count(len(again), 'row repeats', 'rows repeat')} an id ({names}){copied}. Each row "
            "is a case of its own; remove those that were entered twice."
        )
    unobserved = np.zeros(len(table.data), bool)
    if table.n_missing:
        unobserved = table.data.isna().all(axis=1).to_numpy()
    if unobserved.any():
        which = listed(named_cases(table, np.flatnonzero(unobserved).tolist()))
        yield f"Cases without any value, whose cluster is arbitrary: {which}."
    if is_sparse(table.data):
        return
    numbers = table.data.select_dtypes("number")
    cells = numbers.to_numpy()
    for code in codes_of_missing(cells)[:MOST_CODES]:
        which = quoted([numbers.columns[j] for j in code.columns], 6)
        is_text = {".csv", ".tsv", ".txt"} & set(table.path.suffixes)
        written = " (as written in the file)" if is_text else ""
        yield (
            f"{count(code.n_cells, 'cell')} of {which} are {code.value:g}, far from all others: if "
            f"it stands for a missing cell, add --missing {code.value:g}{written}."
        )


def named_cases(table: Any, cases: Iterable[int]) -> list[str]:
    """Name cases, given their numbers; those without names by their number and line."""
    names = [cleaned(table.data.index[i], 40) for i in cases]
    if table.id_column is not None or table.data.index.dtype == object:
        return names
    return [f"{name} ({table.where(int(i))})" for name, i in zip(names, cases, strict=True)]


# ---- What was read


def what_was_read(data: Data, n_cases: int, warnings: list[Any]) -> dict[str, Any]:
    """Return the file, its rows and columns, what these were taken for, and every note."""
    table, columns = data.table, list(_columns(data, n_cases))
    kinds = [column["kind"] for column in columns]
    nouns = {"number": "of numbers", "category": "of categories"}
    line = "row" if data.reading.get("features_in_rows") is True else "column"  # of a feature
    words = [
        count(kinds.count(kind), f"{line} {noun}", f"{line}s {noun}")
        for kind, noun in nouns.items()
        if kind in kinds
    ]
    were = "was" if n_cases == 1 else "were"
    sentence = f"{count(n_cases, 'case')} {were} clustered by {sentence_list(words)}"
    if left := [cleaned(column["name"], 40) for column in columns if column["kind"] == "left out"]:
        were = count(len(left), f"{line} was", f"{line}s were")
        sentence += f"; {were} left out: {listed(left, NAMES_IN_TEXT)}"
    note = f"{line.capitalize()}s of the file, in the order of their use."
    if len(columns) > MOST_COLUMNS:
        note = f"The first {MOST_COLUMNS} of {len(columns):,} {line}s."
    missing = count(int(table.n_missing), "cell") if table.n_missing else "none"
    if table.n_missing and len(table.data) == n_cases:
        lacking = [column for column in columns if column["n_missing"]]
        lacking.sort(key=lambda column: -column["n_missing"])
        which = listed([f"{c['name']} ({c['n_missing']:,})" for c in lacking], NAMES_IN_TEXT)
        missing += f" ({percent(table.n_missing / table.data.size)}), in {which}"
    return {
        "sentence": f"{sentence}.",
        "file": table.path.name,
        "n_cases": n_cases,
        # Where rows are features, their names are a column.
        "n_columns": len(columns) - (kinds.count("names") if line == "row" else 0),
        "line": line,
        "missing": {"n_cells": int(table.n_missing), "words": missing},
        "prepared": data.preparer.describe(),
        "columns": columns[:MOST_COLUMNS],
        "columns_note": note,
        "notes": [*data.notes, *(str(w) for w in warnings if not isinstance(w, FitWarning))],
    }


def _columns(data: Data, n_cases: int) -> Iterator[dict[str, Any]]:
    """Yield what each column was taken for: what is no feature first.

    Of a table of which only some cases are in memory, missing cells by column are not known.
    """
    table, reading = data.table, data.reading
    whose = "features" if reading.get("features_in_rows") is True else "cases"
    roles = {
        reading.get("weight_column"): ("weights", "weights of the cases"),
        table.label_column: ("classes", "known classes, compared with the clusters"),
        table.id_column: ("names", f"names of the {whose}"),
    }
    left_out = {column.name: column.why for column in table.set_aside} | dict(table.dropped)
    columns = [(name, *roles[name], None) for name in reversed(roles) if name is not None]
    columns += [
        (name, "left out", f"left out: {why}", None)
        for name, why in left_out.items()
        if name not in roles
    ]
    missing = table.data.isna().sum().tolist() if len(table.data) == n_cases else None
    for j, name in enumerate(table.data.columns):
        kind, words = "number", "a number"
        if name in table.categories:
            kind = "category"
            words = f"a category of {count(len(table.categories[name]), 'value')}"
        elif name in table.written:
            words = f"a number, written {_how(table.written[name])}"
        words += ", the same in all cases" * (name in table.constant)
        words += ", without any value" * (name in table.empty)
        columns.append((name, kind, words, None if missing is None else missing[j]))
    for name, kind, words, n_missing in columns:
        taken = {"name": cleaned(name, 60), "kind": kind, "taken_for": cleaned(words, 200)}
        yield taken | {"n_missing": n_missing}
