"""Reading tables: cases in rows (or in columns), features in columns (or in rows).

Nothing is guessed that would change the numbers: a column of text, of dates or of true and false is
named and refused, or left out and listed, and never turned into numbers.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rskc.files._formats import of_columns, read_excel, read_h5ad, read_npy, read_npz
from rskc.files._source import Layout, Source, TableError, near, polars, shown
from rskc.files._text import SEPARATORS, numbers, read_text
from rskc.validation import check_choice
from rskc.wording import quoted

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MISSING_VALUES", "Table", "TableError", "read_table"]

MISSING_VALUES = ("", "NA", "NaN", "nan", "N/A", "n/a", "#N/A", "NULL", "null", "None")

PARQUET = (".parquet", ".parq", ".pq")
READERS = {
    ".parquet": lambda layout: of_columns(layout, "read_parquet"),
    ".arrow": lambda layout: of_columns(layout, "read_ipc"),
    ".feather": lambda layout: of_columns(layout, "read_ipc"),
    ".npy": read_npy,
    ".npz": read_npz,
    ".xlsx": read_excel,
    ".h5ad": read_h5ad,
}


@dataclass(frozen=True)
class Table:
    """A table, ready to be clustered.

    Attributes
    ----------
    data : pandas.DataFrame of shape (n_cases, n_features)
        Numbers, NaN where a cell is missing; float32 if all columns of the file are, else float64.
        Its index are the ids of the cases, as text, or row numbers; its columns the features.
    labels : ndarray of shape (n_cases,) or None
        The label column: whole numbers if all are, else text.
    id_column : str or None
        Column that the ids were taken from, "" if it has no name; None for row numbers.
    dropped : dict
        Columns that were left out, and why.
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
    """

    data: pd.DataFrame
    labels: np.ndarray | None
    id_column: str | None
    dropped: Mapping[str, str]
    constant: list[str]
    empty: list[str]
    n_missing: int
    path: Path
    sha256: str | None


class Roles(NamedTuple):
    """Columns of the file, by number."""

    ids: int | None
    labels: int | None
    features: list[int]
    dropped: dict[str, str]


def read_table(
    path: str | os.PathLike,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    drop: Sequence[str] = (),
    features_in_rows: bool = False,
    missing_values: Sequence[str] = MISSING_VALUES,
    decimal: str = ".",
    text_columns: str = "refuse",
    sheet: str | int | None = None,
    separator: str | None = None,
    encoding: str = "utf-8",
    header: bool = True,
) -> Table:
    """Read a table from a file.

    The format goes by the name: .csv, .tsv and .txt (also .gz), .parquet, .arrow and .feather,
    .npy, .npz, .xlsx, .h5ad.

    Parameters
    ----------
    path : str or path
        The file.
    id_column : str or None, default=None
        Column with the ids of the cases. None: the first column if it has no name, or holds text
        of which none occurs twice; else the cases are numbered.
    label_column : str or None, default=None
        Column with known classes, which is returned apart. In an .h5ad, a column of obs.
    drop : sequence of str, default=()
        Columns of the file to leave out.
    features_in_rows : bool, default=False
        Whether a line is a feature and a column a case, as is usual for genes. The id column then
        has the names of the features, and the header those of the cases.
    missing_values : sequence of str
        What stands for a missing cell, in addition to an empty one.
    decimal : {".", ","}, default="."
        Decimal mark of text.
    text_columns : {"refuse", "drop"}, default="refuse"
        What to do with columns of text, dates, or true and false. These are never turned into
        numbers; write 0 and 1 if that is what is meant.
    sheet : str, int or None, default=None
        Name or number of the sheet of an .xlsx; None for the first.
    separator : str or None, default=None
        What separates cells of text. None: a tab in .tsv; else a comma, semicolon or tab, whichever
        fits the first two lines.
    encoding : str, default="utf-8"
        Encoding of text.
    header : bool, default=True
        Whether the first line of text or of a sheet has the names of the columns; without, they
        are x0, x1, ....

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
    check_choice("decimal", decimal, (".", ","))
    check_choice("text_columns", text_columns, ("refuse", "drop"))
    as_text = tuple(name for name in (id_column, label_column) if name is not None)
    layout = Layout(
        path=Path(path),
        missing_values=tuple(dict.fromkeys(["", *missing_values])),
        decimal=decimal,
        separator=separator,
        encoding=encoding,
        header=header,
        sheet=sheet,
        id_column=id_column,
        as_text=as_text,
    )
    if features_in_rows and label_column is not None:
        raise layout.error("{label_column} cannot be used when features are in rows")
    digest = _digest(layout)
    source = _read(layout)
    roles = find_roles(
        layout, source, id_column, label_column, (drop,) if isinstance(drop, str) else drop
    )
    roles, matrix = find_numbers(layout, source, roles, text_columns)
    return _table(layout, source, roles, matrix, features_in_rows, digest)


def _digest(layout: Layout) -> str:
    """Return the digest of the file; the first to find out that there is none."""
    path = layout.path
    if path.is_dir():
        raise layout.error("this is a folder, and a file is expected")
    if path.exists() and not path.is_file():
        raise layout.error("this is not a regular file")
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise layout.error("there is no such file{similar}", similar=similar(path)) from error
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise layout.error("the file cannot be opened ({words})", words=words) from error


def similar(path: Path) -> str:
    """Name a file whose name is nearly the same, for the end of a sentence."""
    names = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
    words = near(path.name, names)
    return f"; {words}" if words.startswith("perhaps") else ""


def _read(layout: Layout) -> Source:
    suffixes = [suffix.lower() for suffix in layout.path.suffixes[-2:]] or [""]
    packed = suffixes[-1] == ".gz"
    suffix = suffixes[0] if packed and len(suffixes) > 1 else suffixes[-1]
    if layout.path.stat().st_size == 0:
        raise layout.error("the file is empty")
    if suffix in SEPARATORS:
        return read_text(layout, suffix, packed)
    if suffix in READERS and not packed:
        return READERS[suffix](layout)
    known = ", ".join([*SEPARATORS, *READERS])
    raise layout.error(
        "tables are read from {known} (text also with .gz), and this is none", known=known
    )


def is_many_files(path: Path) -> bool:
    """Whether a path is a folder, or a pattern that no file has for a name."""
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


def find_roles(layout: Layout, source: Source, ids: Any, labels: Any, drop: Sequence[str]) -> Roles:
    """Say what each column is for, and check the names."""
    asked = {"id_column": [ids], "label_column": [labels], "drop": list(drop)}
    for parameter, wanted in asked.items():
        for name in wanted:
            if name is not None and name not in source.names:
                raise layout.error(
                    f"there is no column {{name}}, given as {{{parameter}}}; {{others}}",
                    parameter=parameter,
                    name=shown(name),
                    others=near(name, source.names),
                )
    dropped = dict(source.left_out) | dict.fromkeys(drop, "asked for")
    kept = [j for j, name in enumerate(source.names) if name not in drop]
    counts = Counter(source.names[j] for j in kept)
    twice = [name for name, count in counts.items() if count > 1 and name]
    if twice:
        raise layout.error("several columns have the same name: {names}", names=quoted(twice))
    label = source.names.index(labels) if labels is not None else None
    kept = [j for j in kept if j != label]
    id_number = _id_number(layout, source, ids, kept)
    features = [j for j in kept if j != id_number and not _is_nothing(layout, source, j)]
    if not features:
        raise layout.error("there is no column left that could be a feature")
    return Roles(id_number, label, features, dropped)


def _id_number(layout: Layout, source: Source, ids: str | None, kept: list[int]) -> int | None:
    name = ids if ids is not None else source.id_name
    if name is not None:
        return source.names.index(name)
    if not kept or kept[0] != 0:
        return None
    if source.names[0] == "" and len(source.names) > 1:
        return 0
    first = source.frame["0"]
    kind = _kind(layout, source, 0)
    return 0 if kind == "text" and first.n_unique() == len(first) else None


def _is_nothing(layout: Layout, source: Source, j: int) -> bool:
    """Whether a column has neither name nor cells, as separators at the ends of lines make it."""
    if source.names[j]:
        return False
    if source.frame[str(j)].null_count() == source.frame.height:
        return True
    raise layout.error("column {number} has no name", number=j + 1)


class Cells(NamedTuple):
    """A column of text, read as numbers."""

    numbers: Any
    bad: Any  # mask of cells that are neither numbers nor missing


def _parsed(layout: Layout, series: Any) -> Cells:
    pl = polars()
    cells = pl.col("cells")
    missing = cells.is_null() | cells.is_in(list(layout.missing_values))
    frame = series.to_frame("cells").select(cells.str.strip_chars())
    frame = frame.select(cells=pl.when(~missing).then(cells))
    values = frame.select(numbers(pl, cells, layout.decimal)).to_series()
    return Cells(values, frame["cells"].is_not_null() & values.is_null())


def _kind(layout: Layout, source: Source, j: int) -> str:
    """Say what a column holds: "numbers", "text", "dates" ....

    Text that may be numbers is, unless fewer than half of the cells that are there are numbers.
    """
    series = source.frame[str(j)]
    dtype = series.dtype
    if dtype.is_numeric() or dtype == "null" or str(dtype) == "Null":
        return "numbers"
    if str(dtype) == "String" and source.parse:
        cells = _parsed(layout, series)
        n_bad, n_good = int(cells.bad.sum()), cells.numbers.count()
        return "text" if n_bad > n_good else "numbers"
    if dtype.is_temporal():
        return "dates"
    words = {"Boolean": "true and false", "String": "text", "Categorical": "text", "Enum": "text"}
    return words.get(str(dtype).split("(")[0], str(dtype).split("(")[0])


def find_numbers(
    layout: Layout, source: Source, roles: Roles, text_columns: str
) -> tuple[Roles, np.ndarray]:
    """Make numbers of the features, without the columns that hold other things."""
    others = [j for j in roles.features if not source.frame[str(j)].dtype.is_numeric()]
    kinds = {j: kind for j in others if (kind := _kind(layout, source, j)) != "numbers"}
    if kinds and text_columns == "refuse":
        raise _refusal(layout, source, kinds)
    features = [j for j in roles.features if j not in kinds]
    if not features:
        raise layout.error("no column holds numbers")
    parsed = {str(j): _column(layout, source, j) for j in others if j not in kinds}
    frame = source.frame.select(map(str, features)).with_columns(**parsed)
    dropped = {source.names[j]: kind for j, kind in kinds.items()}
    matrix = _matrix(frame)
    _check_finite(layout, source, features, matrix)
    return roles._replace(features=features, dropped=roles.dropped | dropped), matrix


def _refusal(layout: Layout, source: Source, kinds: dict[int, str]) -> TableError:
    j, kind = next(iter(kinds.items()))
    cells = source.frame[str(j)].drop_nulls()
    example = str(cells[0]) if len(cells) else ""
    if len(cells):
        where = source.where(int(source.frame[str(j)].is_not_null().arg_max() or 0))
        kind += f", such as {shown(example)} in {where}"
    there = "there is a column that holds" if len(kinds) == 1 else "there are columns that hold"
    them = "it" if len(kinds) == 1 else "them"
    remedy = f'; leave {them} out by {{drop}} or {{text_columns}}="drop", or use {them} as ids or '
    remedy += "labels"
    if _decimal_comma(layout, source, example):
        remedy = '; if these are decimal commas, use {decimal}=","'
    names = quoted(source.names[j] for j in kinds)
    return layout.error(f"{there} no numbers: {{names}} ({{kind}}){remedy}", names=names, kind=kind)


def _decimal_comma(layout: Layout, source: Source, cell: str) -> bool:
    return source.parse and layout.decimal == "." and bool(re.fullmatch(r"\s*-?\d*,\d+\s*", cell))


def _column(layout: Layout, source: Source, j: int) -> Any:
    """Return a column of text, or of nothing, as numbers."""
    pl = polars()
    series = source.frame[str(j)]
    if str(series.dtype) != "String":
        return series.cast(pl.Float64)
    cells = _parsed(layout, series)
    if not cells.bad.any():
        return cells.numbers
    row = int(cells.bad.arg_max())
    cell = series[row]
    remedy = "correct it, or name it in {missing_values} if it stands for a missing cell"
    if _decimal_comma(layout, source, cell):
        remedy = 'if it is a decimal comma, use {decimal}=","'
    template = f"{{cell}} is not a number; {remedy}"
    raise _cell_error(layout, source, [row], j, template, cell=shown(cell))


def _matrix(frame: Any) -> np.ndarray:
    """Return the cells as float32 if all are, else as float64."""
    pl = polars()
    single = all(str(dtype) == "Float32" for dtype in frame.dtypes)
    frame = frame.cast(pl.Float32 if single else pl.Float64)
    return frame.to_numpy(order="c", writable=True)


def _check_finite(layout: Layout, source: Source, features: list[int], matrix: np.ndarray) -> None:
    largest = np.maximum(np.fmax.reduce(matrix, axis=0), -np.fmin.reduce(matrix, axis=0))
    if not np.isinf(largest).any():
        return
    column = int(np.argmax(np.isinf(largest)))
    row = int(np.argmax(np.isinf(matrix[:, column])))
    words = "the cell is infinite, or too large for a number; correct it, or leave it empty"
    raise _cell_error(layout, source, [row], features[column], words)


def _cell_error(
    layout: Layout, source: Source, rows: list[int], column: int, template: str, **values: Any
) -> TableError:
    where, name = " and ".join(map(source.where, rows)), shown(source.names[column])
    return layout.error(f"{{where}}, column {{name}}: {template}", where=where, name=name, **values)


def _table(
    layout: Layout,
    source: Source,
    roles: Roles,
    matrix: np.ndarray,
    features_in_rows: bool,
    digest: str,
) -> Table:
    import pandas as pd

    names = [source.names[j] for j in roles.features]
    ids = None if roles.ids is None else _ids(layout, source, roles.ids)
    if features_in_rows:
        matrix = np.ascontiguousarray(matrix.T)
        features = [f"x{j}" for j in range(matrix.shape[1])] if ids is None else ids
        ids, names = names, features
    low, high = np.fmin.reduce(matrix, axis=0), np.fmax.reduce(matrix, axis=0)
    return Table(
        data=pd.DataFrame(matrix, index=ids, columns=names, copy=False),
        labels=None if roles.labels is None else _labels(layout, source, roles.labels),
        id_column=None if roles.ids is None else source.names[roles.ids],
        dropped=roles.dropped,
        constant=[names[j] for j in np.flatnonzero(low == high)],
        empty=[names[j] for j in np.flatnonzero(np.isnan(low))],
        n_missing=int(np.count_nonzero(np.isnan(matrix))),
        path=layout.path,
        sha256=digest,
    )


def _ids(layout: Layout, source: Source, j: int) -> list[str]:
    """Return the ids as text; none missing, none twice."""
    pl = polars()
    series = source.frame[str(j)]
    if series.null_count():
        row = int(series.is_null().arg_max())
        raise _cell_error(layout, source, [row], j, "the id is missing")
    ids = series.cast(pl.String).to_list()
    if len(set(ids)) < len(ids):
        twice = next(each for each, count in Counter(ids).items() if count > 1)
        rows = [row for row, each in enumerate(ids) if each == twice][:2]
        raise _cell_error(layout, source, rows, j, "the id {id} occurs twice", id=shown(twice))
    return ids


def _labels(layout: Layout, source: Source, j: int) -> np.ndarray:
    """Return the classes, as whole numbers if they are."""
    pl = polars()
    series = source.frame[str(j)]
    if series.null_count():
        row = int(series.is_null().arg_max())
        words = "the label is missing; fill it in, or leave the column out by {drop}"
        raise _cell_error(layout, source, [row], j, words)
    text = series.cast(pl.String)
    whole = text.cast(pl.Int64, strict=False)
    return np.array(text.to_list() if whole.null_count() else whole.to_list())
