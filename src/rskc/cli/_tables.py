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
from rskc.cli._options import Reading, Standardizing
from rskc.columns import NONE, code_of_missing, copies_among, is_feature_name, sign_of_side
from rskc.wording import cleaned, count, listed, quoted, shortened

SCALES = {"robust": ("median", "mad"), "classic": ("mean", "std")}
WORDS = {
    "robust": "centered at the median and divided by the MAD",
    "classic": "centered at the mean and divided by the standard deviation",
}


@dataclass(frozen=True)
class Scaling:
    """How tables are standardized: "none", "rows", or "columns" by centers and scales of a fit."""

    of: str = "none"
    kind: str = "robust"
    centers: Any = None  # arrays, of columns
    scales: Any = None

    def apply(self, frame: Any) -> Any:
        """Standardize a frame; warns of rows that are constant."""
        if self.of == "rows" and is_sparse(frame):
            raise ValueError(
                "the table is sparse, and --standardize rows would fill it: use --standardize "
                "columns, which leaves 0 at 0, or standardize before the table is written."
            )
        if self.of == "none":
            return frame
        standardizer = self._standardizer()
        if has_categories(frame):
            standardizer.feature_names_in_ = np.asarray(frame.columns, dtype=object)
        return _framed(frame, standardizer.transform)

    def apply_to_block(self, frame: Any) -> Any:
        """Standardize a block; without a warning on constant rows, whose numbers it cannot know."""
        if self.of != "rows":
            return self.apply(frame)
        from rskc.preprocessing import standardize_rows

        return _framed(frame, lambda X: standardize_rows(X, *SCALES[self.kind])[0])

    def of_columns(self, places: list[int]) -> Scaling:
        """Return how some of the columns are standardized, each by itself."""
        if self.of != "columns":
            return self
        return replace(self, centers=self.centers[places], scales=self.scales[places])

    def _standardizer(self) -> Any:
        from rskc.preprocessing import ColumnStandardizer, RowStandardizer

        if self.of == "rows":
            return RowStandardizer(*SCALES[self.kind])
        made = ColumnStandardizer(*SCALES[self.kind])
        made.center_, made.scale_ = self.centers, self.scales
        made.n_features_in_ = len(self.centers)
        return made

    def words(self) -> str:
        """Say what was done."""
        return "none" if self.of == "none" else f"{self.of} {WORDS[self.kind]}"

    def python(self) -> str | None:
        """Return the standardizer as one writes it in Python."""
        return None if self.of == "none" else repr(self._standardizer())

    def extra(self) -> dict[str, Any]:
        """Return what the model's file keeps."""
        return {"of": self.of, "kind": self.kind, "centers": self.centers, "scales": self.scales}

    @classmethod
    def from_extra(cls, extra: Mapping[str, Any] | None, p: int) -> Scaling:
        """Make one from what the model's file has kept, if it fits its model."""
        scaling = cls(**(extra or {}))
        arrays = (scaling.centers, scaling.scales) if scaling.of == "columns" else ()
        if scaling.kind not in SCALES or any(np.shape(array) != (p,) for array in arrays):
            raise ValueError("the standardization in the model's file does not fit the model.")
        return scaling


def _framed(frame: Any, transform: Any) -> Any:
    import pandas as pd

    names = {"index": frame.index, "columns": frame.columns}
    if is_sparse(frame):
        values = transform(frame.sparse.to_coo().tocsr())
        return pd.DataFrame.sparse.from_spmatrix(values, **names)
    if has_categories(frame):
        return transform(frame)
    return pd.DataFrame(transform(frame.to_numpy()), **names, copy=False)


def is_sparse(frame: Any) -> bool:
    """Whether the columns of a frame are sparse."""
    return all(hasattr(dtype, "fill_value") for dtype in frame.dtypes)


def has_categories(frame: Any) -> bool:
    """Whether a frame holds categories beside numbers, or nothing else."""
    return any(str(dtype) == "category" for dtype in set(frame.dtypes))


def fit_scaling(asked: Standardizing, frame: Any) -> Scaling:
    """Find centers and scales of the columns, if it is these; may warn of some of them.

    Numbers beside categories are standardized unless somebody says otherwise: a category counts
    like a standardized number.
    """
    of = asked.standardize
    mixed = frame is not None and has_categories(frame)
    if mixed and of == "rows":
        raise ValueError(
            "--standardize rows compares cells along a row, and some hold categories; use "
            "--standardize columns, or leave these out by --text-columns drop."
        )
    if of == "auto":
        of = "columns" if mixed else "none"
    if of != "columns":
        return Scaling(of, asked.scale)
    from rskc.preprocessing import ColumnStandardizer

    fitted = ColumnStandardizer(*SCALES[asked.scale]).fit(frame)
    return Scaling("columns", asked.scale, fitted.center_, fitted.scale_)


@dataclass(frozen=True)
class Data:
    """A table, and what is clustered of it."""

    table: Any
    X: Any  # pandas.DataFrame, or one of Dask, standardized
    shape: tuple[int, int]
    scaling: Scaling
    reading: dict[str, Any]  # arguments of read_table
    notes: list[str]
    seconds: float
    groups_file: Path | None = None  # of features that share a weight
    feature_groups: Mapping[str, list[str]] | None = None

    @property
    def units(self) -> dict[str, tuple[float, float]]:
        """Center and scale of each column that was standardized, by its name."""
        if self.scaling.of != "columns":
            return {}
        scales = zip(self.scaling.centers, self.scaling.scales, strict=True)
        return {
            str(name): pair
            for name, pair in zip(self.X.columns, scales, strict=True)
            if name not in self.table.categories
        }


def read(path: Path, reading: Reading, standardizing: Standardizing, console: Console) -> Data:
    """Read a table and standardize it."""
    return _read(path, reading.arguments(), console, standardizing)


def reread(path: Path, arguments: dict[str, Any], scaling: Scaling, console: Console) -> Data:
    """Read the table of a fit again, and standardize it as then."""
    return _read(path, arguments, console, scaling)


def _read(
    path: Path, arguments: dict[str, Any], console: Console, how: Standardizing | Scaling
) -> Data:
    from rskc.files import read_table

    start = time.perf_counter()
    with console.busy(f"Reading {path.name}"), recorded_warnings() as warned:
        table = read_table(path, **arguments)
        scaling = how if isinstance(how, Scaling) else fit_scaling(how, table.data)
        X = scaling.apply(table.data)
    sideways = sideways_note(table, len(table.data), arguments.get("features_in_rows", False))
    notes = [*notes_of(table), *sideways, *weight_note(arguments), *map(str, warned)]
    if table.categories and not isinstance(how, Scaling) and how.standardize == "auto":
        notes.append(
            "Numbers were standardized by column, since a category counts like a standardized "
            "number; to leave them as they are, add --standardize none."
        )
    if table.decimal == ",":  # other tables of the kind may not show it
        arguments = {**arguments, "decimal": ","}
    return Data(table, X, X.shape, scaling, arguments, notes, time.perf_counter() - start)


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
    yield from _on_categories(table)
    yield from left_out(table)
    if is_sample:
        return
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


def _on_categories(table: Any) -> Iterator[str]:
    """Say which categories columns have, and how many cells are missing or look so."""
    for name, values in table.categories.items():
        if len(values) == 1:
            continue  # named with the constants
        column, cells = repr(shortened(name, 60)), table.data[name]
        known = listed([shortened(value, 24) for value in values], 4)
        n_missing, n_none = int(cells.isna().sum()), int((cells == NONE).sum())
        read_as = f"{count(len(values), 'category', 'categories')}: {known}"
        if n_missing:
            read_as += f"; {count(n_missing, 'cell is', 'cells are')} missing"
        yield f"Column {column} was read as {read_as}."
        if n_none:
            hold = count(n_none, f"cell of {column} holds", f"cells of {column} hold")
            yield (
                f"{hold} {NONE!r}, which is one of the categories; if it stands for a missing "
                f"cell, add --missing {NONE}."
            )


def _on_cells(table: Any) -> Iterator[str]:
    """Say what the numbers themselves suggest."""
    numbers = table.data.select_dtypes("number")
    code = code_of_missing(numbers.to_numpy())
    if code is not None:
        which = quoted([numbers.columns[j] for j in code.columns], 6)
        remedy = "leave these cells empty."
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
