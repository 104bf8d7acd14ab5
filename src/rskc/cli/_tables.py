"""From a file to the data that is clustered, with notes on what was done to it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rskc.cli._console import Console, recorded_warnings
from rskc.cli._options import Preparing, Reading
from rskc.inputs.columns import (
    NONE,
    alike_words,
    codes_of_missing,
    copies_among,
    is_feature_name,
    is_outcome_name,
    sign_of_side,
)
from rskc.utils.wording import cleaned, count, listed, quoted, shortened

MOST_CODES = 3  # numbers that may stand for missing cells, in notes
SCALES = {"robust": "mad", "classic": "std"}


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


def preparation_note(asked: Preparing, preparer: Any) -> Iterator[str]:
    """Announce what was done without having been asked for."""
    if preparer.is_idle or not asked.is_usual:
        return
    options = ["--prepare none"]
    if preparer.log_.any() and not preparer.counts_:
        options = ["--prepare none, or --log none"]
    yield (
        f"Prepared: {preparer.describe()}. To cluster the numbers as they are, add {options[0]}."
    )


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
    groups_file: Path | None = None  # of features that share a weight
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


def read(path: Path, reading: Reading, preparing: Preparing, console: Console) -> Data:
    """Read a table and prepare it."""
    data = _read(path, reading.arguments(), console, preparing)
    return data if reading.labels is None else _with_labels(data, reading.labels)


def _with_labels(data: Data, path: Path) -> Data:
    """Add the known classes that another file has."""
    from rskc.files import read_classes

    found = read_classes(path, data.table.data.index)
    table = replace(data.table, labels=found.labels, label_column=found.name)
    how = "by the names of the cases" if found.by_id else "in the order of the cases"
    note = f"{path.name}: column {found.name!r} holds the known classes, {how}."
    return replace(data, table=table, notes=[*data.notes, note])


def reread(path: Path, arguments: dict[str, Any], preparer: Any, console: Console) -> Data:
    """Read the table of a fit again, and prepare it as then."""
    return _read(path, arguments, console, preparer)


def _read(path: Path, arguments: dict[str, Any], console: Console, how: Any) -> Data:
    """Read a table; ``how`` are the options, or the preparer of a fit."""
    from rskc.files import read_table

    start = time.perf_counter()
    with console.busy(f"Reading {path.name}"), recorded_warnings() as warned:
        table = read_table(path, **arguments)
        asked = isinstance(how, Preparing)
        # Nothing is known of empty features, and a table without holes is clustered faster.
        filled = table.data.drop(columns=table.empty) if table.empty else table.data
        preparer = fit_preparer(how, filled) if asked else how
        X = prepared(preparer, filled)
    known = arguments.get("features_in_rows", False) is not False
    sideways = [] if table.in_rows else sideways_note(table, len(table.data), not known)
    notes = [
        *table.notes,
        *side_notes(table),
        *notes_of(table),
        *sideways,
        *weight_note(arguments),
        *map(str, warned),
    ]
    if asked:
        notes += preparation_note(how, preparer)
    if table.in_rows:  # so that a table of few new cases is read alike
        arguments = {**arguments, "features_in_rows": True}
    if table.decimal == ",":  # other tables of the kind may not show it
        arguments = {**arguments, "decimal": ","}
    return Data(table, X, X.shape, preparer, arguments, notes, time.perf_counter() - start)


def grouped(data: Data, path: Path | None) -> Data:
    """Add the groups of features that a GMT file has, with a word on what it does not have."""
    if path is None:
        return data
    from rskc.files import read_gmt

    found = read_gmt(path, data.X.columns)
    notes = [*data.notes, f"{path.name}: {found.words()}"]
    return replace(data, groups_file=path, feature_groups=found.groups, notes=notes)


def weight_note(arguments: Mapping[str, Any]) -> list[str]:
    """Say that cases do not all count the same."""
    name = arguments.get("weight_column")
    return [] if name is None else [f"Column {shortened(name, 60)!r} says what each case counts."]


def notes_of(table: Any, is_sample: bool = False) -> Iterator[str]:
    """Say what someone who thinks the table is just numbers would like to know.

    Of a sample nothing is said that holds of all cases only.
    """
    yield from map(_on_column, table.set_aside)
    if table.decimal == ",":
        yield "Commas were read as decimal marks; if they are none, add --decimal ."
    if table.written:
        which = listed(
            (f"{shortened(name, 60)!r} ({how})" for name, how in table.written.items()), 8
        )
        yield f"Read as numbers: {which}."
    yield from _on_categories(table, is_sample)
    yield from left_out(table)
    yield from _on_targets(table)
    if is_sample:
        return
    yield from _on_ids(table)
    unobserved = np.flatnonzero(table.data.isna().all(axis=1) if table.n_missing else [])
    if len(unobserved):
        which = listed(named_cases(table, unobserved.tolist()))
        yield f"No value at all, so that the cluster means nothing: {which}."
    if not is_sparse(table.data):
        yield from _on_cells(table)
    if table.empty:
        yield f"Without a single value: {quoted(table.empty)}."
    if table.constant:
        tell = "it tells" if len(table.constant) == 1 else "they tell"
        yield f"The same in all cases, so {tell} nothing: {quoted(table.constant)}."


def _on_ids(table: Any) -> Iterator[str]:
    """Say which names of cases occur again."""
    again = table.data.index[table.data.index.duplicated()]
    if len(again):
        names = quoted(dict.fromkeys(map(str, again)), 4)
        yield (
            f"{count(len(again), 'row has', 'rows have')} an id that occurs before ({names}): each "
            "row is a case of its own; leave out those that were entered twice."
        )


def _on_targets(table: Any) -> Iterator[str]:
    """Ask about columns of two values that are named like an outcome."""
    for name in table.data.columns:
        if is_outcome_name(str(name)) and table.data[name].nunique() == 2:
            yield (
                f"Column {shortened(name, 60)!r} has two values and is named like an outcome, and "
                f"it is clustered by; to compare it with the clusters instead, add --label-column "
                f"{shlex.quote(str(name))}."
            )


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
        pairs = alike_words(values)
        if pairs:
            same = listed([f"{a!r} and {b!r}" for a, b in pairs], 3)
            yield f"Column {column} has categories that hardly differ, {same}: are they the same?"
        if n_none:
            hold = count(n_none, f"cell of {column} holds", f"cells of {column} hold")
            yield (
                f"{hold} {NONE!r}, which is one of the categories; if it stands for a missing "
                f"cell, add --missing {NONE}."
            )


def _on_cells(table: Any) -> Iterator[str]:
    """Say what the numbers themselves suggest."""
    numbers = table.data.select_dtypes("number")
    for code in codes_of_missing(numbers.to_numpy())[:MOST_CODES]:
        which = quoted([numbers.columns[j] for j in code.columns], 6)
        remedy = f"add --missing {code.value:g}."
        if {".csv", ".tsv", ".txt"} & set(table.path.suffixes):
            remedy = f"add --missing {code.value:g} (as the file writes it)."
        yield (
            f"{count(code.n_cells, 'cell')} of {which} are {code.value:g}, apart from all others: "
            f"if it stands for a missing cell, {remedy}"
        )
    cells = numbers.to_numpy()
    if table.categories:
        codes = [table.data[name].cat.codes for name in table.categories]
        cells = np.column_stack([cells, *codes])
    copies = copies_among(cells[~table.data.isna().all(axis=1)])
    if len(copies):
        yield (
            f"{count(len(copies), 'case is an exact copy', 'cases are exact copies')} of others, "
            "and count twice: if they were entered twice, leave them out."
        )


def _on_column(column: Any) -> str:
    name, option = repr(shortened(column.name, 60)), shlex.quote(column.name)
    use = f"to cluster by it, add --use-column {option}."
    if column.role == "classes":
        done, use = "it was left out and compared with the clusters", f"; {use}"
        if column.is_text:
            use = "."
        return f"Column {name} {column.why}: {done}{use}"
    done = "became their names" if column.role == "names" else "was left out"
    if column.is_text or column.why != "counts the cases":
        done = done.replace("their names", "the names of the cases")
    return f"Column {name} {column.why} and {done}{'.' if column.is_text else f'; {use}'}"


def side_notes(table: Any) -> Iterator[str]:
    """Say that a table was taken to be on its side, and what is known of its cases by that."""
    if table.turned:
        yield (
            f"The table lies on its side, as {table.turned} shows: its rows are taken for features "
            "and its columns for cases; if rows are cases, add --cases-in-rows."
        )
    if table.in_rows and table.labels is not None:
        classes = list(dict.fromkeys(table.labels))
        yield (
            f"Known classes of the cases are in {table.label_column} ({listed(classes, 6)}): they "
            "are compared with the clusters and not used to find them."
        )


def sideways_note(table: Any, n_cases: int, in_rows: bool) -> Iterator[str]:
    """Say that a table is perhaps on its side."""
    name, ids = table.id_column, table.data.index[:20]
    sign = sign_of_side(name, n_cases, list(map(str, table.data.columns)))
    if in_rows or sign is None:
        return
    if not is_feature_name(name) and all(str(each).isdigit() for each in ids):
        return  # numbers, as cases have them
    yield (
        f"The table has {sign}: if a row is a feature, such as a gene, and a column a case, add "
        "--features-in-rows."
    )


def named_cases(table: Any, cases: Iterable[int]) -> list[str]:
    """Name cases, given their numbers; those without names by their number and line."""
    names = [cleaned(table.data.index[i], 40) for i in cases]
    if table.id_column is not None or table.data.index.dtype == object:
        return names
    return [f"{name} ({table.where(int(i))})" for name, i in zip(names, cases, strict=True)]


def left_out(table: Any) -> Iterator[str]:
    """Name columns that were left out without having been asked for."""
    known = {column.name for column in table.set_aside}
    dropped = {
        name: why for name, why in table.dropped.items() if why != "asked for" and name not in known
    }
    if dropped:
        which = listed(f"{name!r} ({why})" for name, why in dropped.items())
        hold = "it holds" if len(dropped) == 1 else "they hold"
        text = f"Left out, since {hold} no numbers: {which}"
        remedies = []
        if "dates" in dropped.values():
            remedies.append("to count dates in days, add --dates numbers")
        if any(why.startswith("text with") for why in dropped.values()):
            remedies.append("to cluster by text of many values, add --categorical NAME")
        yield "; ".join([text, *remedies]) + "."
