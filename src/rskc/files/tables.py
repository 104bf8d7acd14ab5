"""Reading tables: cases in rows (or in columns), features in columns (or in rows).

Nothing is guessed that would change the numbers in silence: a column of text, of dates or of true
and false is named and refused, left out and listed, or read as categories. Of numbers with units
and marks, such as 12% and $1,200, the table says how they were written.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import issparse

from rskc.files._numbers import all_are_numbers, as_text, observed, shows_decimal_comma
from rskc.files._roles import (
    Side,
    find_roles,
    find_side,
    unique_names,
    without_calls,
)
from rskc.files._source import (
    MISSING_VALUES,
    Layout,
    Roles,
    Source,
    TableError,
    literal,
    pl,
    row_number,
    shown,
)
from rskc.files._text import SEPARATORS, read_text
from rskc.inputs.columns import Recognized
from rskc.inputs.frames import as_number

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MISSING_VALUES", "Table", "TableError", "read_table"]

PARQUET = (".parquet", ".parq", ".pq")


@dataclass(frozen=True, kw_only=True)
class ColumnRoles:
    """What is known of the columns of a file that are no numbers."""

    path: Path
    id_column: str | None
    label_column: str | None
    dropped: Mapping[str, str]
    set_aside: tuple[Recognized, ...]
    categories: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class Table(ColumnRoles):
    """A table, ready to be clustered.

    Attributes
    ----------
    data : pandas.DataFrame of shape (n_cases, n_features)
        Numbers, NaN where a cell is missing; float32 if all columns of the file are, else float64.
        Categories are of pandas' categorical type.
        Of a sparse matrix in the file its columns are sparse.
        Its index are the ids of the cases, as text, or row numbers; its columns the features.
    labels : ndarray of shape (n_cases,) or None
        The label column: whole numbers if all are, else text.
    id_column : str or None
        Column that the ids were taken from, "" if it has no name; None for row numbers.
    label_column : str or None
        Column that the labels were taken from.
    dropped : dict
        Columns that were left out, and why.
    set_aside : tuple
        Columns that were recognized as ids or classes: ``name``, ``why``, their ``role`` ("names",
        "classes" or "left out") and whether they hold text, ``is_text``.
    categories : dict
        Columns of categories, and their values.
    written : dict
        Columns of numbers that were written with units or marks, and their units, "" for marks
        between thousands.
    decimal : str
        The decimal mark, "." or ",".
    in_rows : bool
        Whether features were in rows.
    turned : str
        What said so, if nobody did.
    notes : tuple of str
        What else the file has, such as other sheets.
    constant : list of str
        Features with one value in all cases, or in all where there is one.
    empty : list of str
        Features without a value.
    n_missing : int
        Number of missing cells.
    path : Path
        The file.
    sha256 : str or None
        Digest of its bytes; None where only some of it was read.
    where : callable
        Names the place of a case, by its number: "line 17", or "row 16" in formats without lines.
    weights : ndarray of shape (n_cases,) or None
        The weight column: what each case counts.
    """

    data: pd.DataFrame
    labels: np.ndarray | None
    constant: list[str]
    empty: list[str]
    n_missing: int
    sha256: str | None
    where: Callable[[int], str] = row_number
    weights: np.ndarray | None = None
    written: Mapping[str, str] = field(default_factory=dict)
    decimal: str = "."
    in_rows: bool = False
    turned: str = ""
    notes: tuple[str, ...] = ()


def read_table(
    path: str | os.PathLike,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    drop: Sequence[str] = (),
    use_columns: Sequence[str] | str = (),
    features_in_rows: bool | str = "auto",
    label_row: str | None = None,
    missing_values: Sequence[str] = MISSING_VALUES,
    decimal: str = "auto",
    text_columns: str = "refuse",
    categorical: Sequence[str] = (),
    sheet: str | int | None = None,
    separator: str | None = None,
    encoding: str = "utf-8",
    header: bool = True,
    weight_column: str | None = None,
) -> Table:
    """Read a table from a file.

    The format goes by the name: .csv, .tsv, .txt and .gct (also .gz), .parquet, .arrow and
    .feather, .npy, .npz (also of SciPy's save_npz), .xlsx, .h5ad, .mtx (also .gz; with features.tsv
    and barcodes.tsv beside it, rows are features).

    Numbers may have a unit, the same in all cells of a column, and marks between thousands: 12%,
    8.4 kg, $1,200.50. ``written`` of the table lists them.

    Parameters
    ----------
    path : str or path
        The file, or a folder with matrix.mtx, features.tsv and barcodes.tsv of 10x Genomics.
    id_column : str or None, default=None
        Column with the ids of the cases. None: the first column if it has no name, or holds text
        of which nearly none occurs twice; else the cases are numbered.
    label_column : str or None, default=None
        Column with known classes, which is returned apart. In an .h5ad, a column of obs.
    drop : sequence of str, default=()
        Columns of the file to leave out.
    use_columns : sequence of str or "all", default=()
        Columns that are features whatever they look like. Of the others, those that look like ids
        (they count the cases, or hardly ever repeat and are named like ids) name the cases, and
        those that look like known classes (they have few values and are named like classes) become
        the label column; ``set_aside`` of the table lists them. "all": no column is set aside.
    features_in_rows : bool or "auto", default="auto"
        Whether a line is a feature and a column a case, as is usual for genes. The first column, or
        the id column, then has the names of the features, and the header those of the cases, or
        their known classes. "auto": if the first column is called gene, probe or the like, or
        has names of genes or probes, if the header has classes instead of names, if columns are
        named like cases, or if there are very many rows of columns that resemble one another;
        ``turned`` of the table says which.
    label_row : str or None, default=None
        Name of the row with known classes, where features are in rows; "1" is the header. None:
        the header or one of the first rows, if they have few words where names or numbers are
        expected.
    missing_values : sequence of str
        What stands for a missing cell, in addition to an empty one. "None" does so in columns of
        numbers and dates; among words it is one of them, unless it is named here.
    decimal : {".", ",", "auto"}, default="auto"
        Decimal mark of text. "auto": a point, unless a column holds decimal commas such as 1,5 and
        none holds decimal points.
    text_columns : {"refuse", "drop", "categories"}, default="refuse"
        What to do with columns of text, of dates, or of true and false. "categories": those with
        few values (30 at most, and no more than a third of the cases) are categories; others, and
        dates, are left out.
    categorical : sequence of str, default=()
        Columns that are categories whatever they hold: numbers, or text of many values.
    sheet : str, int or None, default=None
        Name or number of the sheet of an .xlsx; None for the first with numbers.
    separator : str or None, default=None
        What separates cells of text. None: a tab in .tsv; else a comma, semicolon or tab, whichever
        fits the first lines, or else a bar, or in .txt a space.
    encoding : str, default="utf-8"
        Encoding of text.
    header : bool, default=True
        Whether the first line of text or of a sheet has the names of the columns; without, they
        are x0, x1, .... Titles may stand above the names.
    weight_column : str or None, default=None
        Column of numbers that say what each case counts, for ``sample_weight``. It is returned
        apart, and no feature.

    Returns
    -------
    table : Table

    Raises
    ------
    TableError
        If the file is no table, in one sentence with file, line and column. Lines are those of the
        file, the header being line 1; formats without lines have rows, counted from 1.
    ImportError
        If the format needs a package that is not installed.
    """
    layout = Layout.of(**locals() | {"path": matrix_in(Path(path))})
    if separator is not None and (
        len(separator) != 1 or not separator.isascii() or separator in '"\r\n\0'
    ):
        mark = f"{{separator}}{{=}}{shown(separator)}"
        raise layout.error(f"{mark} does not separate cells; give one character, such as , or ;")
    for name in ("label_column", "weight_column"):
        if features_in_rows is True and getattr(layout, name) is not None:
            raise layout.error(f"{{{name}}} cannot be used when features are in rows")
    digest = _digest(layout)
    source = without_calls(without_markers(read_source(layout)))
    if decimal == "auto" and source.parse:
        source = _by_commas(source)
    side = find_side(source)
    source = source if side is None else side.source
    if source.frame.height == 0 and source.cells is None:  # there were classes and nothing else
        raise layout.error("no row holds numbers")
    asked = replace(source.layout, features_in_rows=side is not None)
    if side is not None:
        asked = replace(asked, text_columns="drop")
    source = replace(source, layout=asked)
    return _table(source, find_roles(source), side, digest)


def without_markers(source: Source) -> Source:
    """Empty the cells that hold markers of missing cells: numbers such as -999, and words.

    Text is read with them in any case; in the other formats a cell may be of either type, and a
    column of numbers but for such words is one of numbers.
    """
    markers = [mark for mark in source.layout.missing_values if mark not in MISSING_VALUES]
    if source.cells is not None or not markers:
        return source
    numbers = [value for value in map(as_number, markers) if value is not None]
    made = []
    for series in source.frame.iter_columns():
        missing = None
        if series.dtype.is_numeric() and numbers:
            missing = series.cast(pl.Float64).is_in(numbers)
        elif str(series.dtype) == "String":
            missing = series.str.strip_chars().is_in(markers)
        if missing is not None and missing.any():
            column = pl.select(pl.when(~missing).then(series)).to_series().alias(series.name)
            if str(series.dtype) == "String" and not source.parse:
                rest = column.str.strip_chars().cast(pl.Float64, strict=False)
                column = rest if rest.null_count() == column.null_count() else column
            made.append(column)
    return replace(source, frame=source.frame.with_columns(made))


def _digest(layout: Layout) -> str:
    """Return the digest of the file; the first to find out that there is none."""
    path = layout.path
    try:
        if not path.is_file():
            is_there = path.exists()
            raise layout.error(
                "this is a folder or a device; give a file" if is_there else "there is no such file"
            )
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, UnicodeError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise layout.error(f"the file cannot be opened ({literal(words)})") from error


def read_source(layout: Layout) -> Source:
    """Read the cells of a file, in the format that its name says."""
    suffixes = [suffix.lower() for suffix in layout.path.suffixes[-2:]] or [""]
    packed = suffixes[-1] == ".gz"
    suffix = suffixes[0] if packed and len(suffixes) > 1 else suffixes[-1]
    if layout.path.stat().st_size == 0:
        raise layout.error("the file is empty")
    if suffix in SEPARATORS:
        return read_text(layout, suffix, packed)
    from rskc.files._formats import READERS

    if suffix in READERS and (suffix == ".mtx" or not packed):
        return READERS[suffix](layout)
    known = ", ".join([*SEPARATORS, *READERS])
    words = f"tables are read from {known} (text and .mtx also with .gz), and this is none"
    raise layout.error(words)


def _by_commas(source: Source) -> Source:
    """Take commas for decimal marks, if a column shows some and all numbers can be read so."""
    layout = source.layout
    texts = (series for series in source.frame if str(series.dtype) == "String")
    if not any(shows_decimal_comma(observed(series, layout.missing_numbers)) for series in texts):
        return source
    commas = replace(layout, decimal=",")
    pointed = [
        j
        for j, series in enumerate(source.frame)
        if series.dtype.is_numeric() and not (series == series.floor()).all()
    ]
    if not pointed:
        return replace(source, layout=commas)
    if source.separator == ",":
        return source
    again = read_source(commas)  # 1.234 may be a thousand
    return again if all_are_numbers(again, pointed) else source


def matrix_in(path: Path) -> Path:
    """Return the matrix in a folder as 10x Genomics writes it; any other path as it is."""
    inside = (path / name for name in ("matrix.mtx", "matrix.mtx.gz"))
    return next((file for file in inside if file.is_file()), path)


def is_many_files(path: Path) -> bool:
    """Whether a path is a folder, or a pattern that no file has for a name."""
    path = matrix_in(path)
    return path.is_dir() or (is_pattern(path) and not path.exists())


def is_pattern(path: Path) -> bool:
    """Whether a path may stand for several files."""
    return bool(re.search(r"[*?\[]", str(path)))


def bytes_needed(path: Path) -> int:
    """Return the bytes that a file which can be read in blocks takes in memory; 0 for others."""
    if not path.is_file():
        return 0
    if path.suffix == ".npy":
        return path.stat().st_size
    if path.suffix not in PARQUET or find_spec("pyarrow") is None:
        return 0
    try:
        found = import_module("pyarrow.parquet").read_metadata(path)
    except (OSError, ValueError):  # whoever reads it will say what is wrong
        return 0
    return found.num_rows * found.num_columns * 8


def _table(source: Source, roles: Roles, side: Side | None, digest: str) -> Table:
    """Make the table of the cells of a file."""
    import pandas as pd

    matrix, texts, features = roles.matrix, roles.categories, roles.features
    sparse, where = issparse(matrix), source.where
    names = [source.names[j] for j in features]
    ids = None if roles.ids is None else as_text(source.frame[str(roles.ids)]).to_list()
    labels, label_column = _labels(source, roles.labels)
    if side is None:
        if roles.ids is not None and ids is not None and None in ids:
            raise source.error(ids.index(None), roles.ids, "the id is missing")
    else:
        matrix = matrix.T.tocsr() if sparse else np.ascontiguousarray(matrix.T)
        n_features = matrix.shape[1]
        rows = [f"x{j}" for j in range(n_features)] if ids is None else unique_names(ids)
        cases = [name or f"column {j + 1}" for name, j in zip(names, features, strict=True)]
        ids, names = unique_names(cases), rows
        where = [f"column {j + 1}" for j in features].__getitem__
        labels = None if side.labels is None else side.labels[features].astype(str)
        label_column = side.label_row
    if sparse:
        low, high = (end(axis=0).toarray().ravel() for end in (matrix.nanmin, matrix.nanmax))
        data = pd.DataFrame.sparse.from_spmatrix(matrix, index=ids, columns=names)
    else:
        low, high = np.fmin.reduce(matrix, axis=0), np.fmax.reduce(matrix, axis=0)
        data = pd.DataFrame(matrix, index=ids, columns=names, copy=False)
    if texts:
        made = {source.names[j]: pd.Categorical(each.to_list()) for j, each in texts.items()}
        order = [source.names[j] for j in sorted([*features, *texts])]
        data = pd.concat([data, pd.DataFrame(made, index=data.index)], axis=1)[order]
    values = {source.names[j]: tuple(data[source.names[j]].cat.categories) for j in texts}
    same = [names[j] for j in np.flatnonzero(low == high)]
    n_missing = int(np.count_nonzero(np.isnan(matrix.data if sparse else matrix)))
    return Table(
        data=data,
        labels=labels,
        id_column=None if roles.ids is None else source.names[roles.ids],
        label_column=label_column,
        dropped=roles.dropped,
        set_aside=tuple(roles.set_aside),
        constant=same + [name for name, known in values.items() if len(known) == 1],
        empty=[names[j] for j in np.flatnonzero(np.isnan(low))],
        n_missing=n_missing + sum(each.null_count() for each in texts.values()),
        path=source.layout.path,
        sha256=digest,
        where=where,
        categories=values,
        weights=roles.weights,
        written=roles.written,
        decimal=source.layout.decimal,
        in_rows=side is not None,
        turned="" if side is None else side.why,
        notes=source.notes,
    )


def _labels(source: Source, j: int | None) -> tuple[np.ndarray | None, str | None]:
    """Return the classes, as whole numbers if they are, and the name of their column."""
    if j is None:
        return None, None
    text = as_text(source.frame[str(j)])
    if text.null_count():
        words = "the label is missing; fill it in, or leave the column out by {drop}"
        raise source.error(int(text.is_null().arg_max()), j, words)
    whole = text.cast(pl.Int64, strict=False)
    return np.array((text if whole.null_count() else whole).to_list()), source.names[j]
