"""From the cells of a file to numbers, or to one sentence on the first cell that is none."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from rskc.files._others import are_dates, observed, sort_others
from rskc.files._source import Layout, Source, TableError, polars, shown
from rskc.files._text import numbers
from rskc.files._written import HowWritten, Written, strays_among_written, written_numbers
from rskc.utils.wording import quoted

MOST_STRAYS = 12  # words in a message


class Cells(NamedTuple):
    """A column of text, read as numbers."""

    numbers: Any
    bad: Any  # mask of cells that are neither numbers nor missing
    written: Written | None = None  # where they had units or the like beside them


def _parsed(layout: Layout, source: Source, series: Any) -> Cells:
    pl = polars()
    cells = pl.col("cells")
    missing = cells.is_null() | cells.is_in(list(layout.missing_numbers))
    frame = series.to_frame("cells").select(cells.str.strip_chars())
    frame = frame.select(cells=pl.when(~missing).then(cells))
    values = frame.select(numbers(pl, cells, layout.decimal)).to_series()
    bad = frame["cells"].is_not_null() & values.is_null()
    if bad.any():
        written = written_numbers(frame["cells"], layout.decimal, source.separator)
        if written is not None:
            return Cells(written.numbers, bad & False, written)
    return Cells(values, bad)


def kind_of(layout: Layout, source: Source, j: int) -> str:
    """Say what a column holds: "numbers", "text", "dates" ....

    Text that may be numbers is, unless fewer than half of the cells that are there are numbers.
    """
    series = source.frame[str(j)]
    dtype = series.dtype
    if dtype.is_numeric() or dtype == "null" or str(dtype) == "Null":
        return "numbers"
    if str(dtype) == "String" and source.parse:
        cells = _parsed(layout, source, series)
        n_bad, n_good = int(cells.bad.sum()), cells.numbers.count()
        if n_bad <= n_good:
            return "numbers"
        return "dates" if are_dates(observed(series, layout.missing_numbers)) else "text"
    if dtype.is_temporal():
        return "dates"
    words = {"Boolean": "true and false", "String": "text", "Categorical": "text", "Enum": "text"}
    return words.get(str(dtype).split("(")[0], str(dtype).split("(")[0])


def all_are_numbers(layout: Layout, source: Source, columns: list[int]) -> bool:
    """Whether columns hold numbers, and no other cell."""
    texts = (source.frame[str(j)] for j in columns if not source.frame[str(j)].dtype.is_numeric())
    return not any(_parsed(layout, source, series).bad.any() for series in texts)


class Numbers(NamedTuple):
    """The columns that hold numbers, their cells, the categories, and what the others hold.

    ``written`` has what stood beside numbers, by the name of the column.
    """

    columns: list[int]
    matrix: np.ndarray
    categories: dict[int, Any]  # series of text
    others: dict[str, str]
    written: dict[str, HowWritten]


def find_numbers(layout: Layout, source: Source, columns: list[int], wanted: Any) -> Numbers:
    """Make numbers of columns, without those that hold other things."""
    forced = {j for j in columns if source.names[j] in wanted.categorical}
    others = [j for j in columns if not source.frame[str(j)].dtype.is_numeric()]
    kinds = {j: kind for j in others if (kind := kind_of(layout, source, j)) != "numbers"}
    found = sort_others(layout, source, kinds, forced, wanted)
    if wanted.text_columns != "drop":
        for j in (j for j in found.left_out if kinds[j] == "text"):
            cells = observed(source.frame[str(j)], layout.missing_numbers)
            stray = strays_among_written(cells, layout.decimal, source.separator)
            if stray is not None:
                raise _not_numbers(layout, source, j, stray)
    refused = {j: kinds[j] for j in found.left_out}
    if refused and wanted.text_columns == "refuse":
        raise _refusal(layout, source, refused)
    text = {j: kind for j, kind in kinds.items() if kind == "text" and j not in forced}
    commas = {j: kind for j, kind in text.items() if _decimal_comma(layout, source, j)}
    if wanted.text_columns == "categories" and commas:
        raise _refusal(layout, source, commas)
    rest = {*found.categories, *found.left_out}
    columns = [j for j in columns if j not in rest]
    if not (columns or found.categories):
        raise layout.error("no column holds numbers")
    parsed, written = {}, {}
    for j in (j for j in others if j in columns):
        cells = Cells(found.days[j], None) if j in found.days else _column(layout, source, j)
        parsed[str(j)] = cells.numbers
        if cells.written is not None:
            written[source.names[j]] = cells.written.how
    matrix = np.empty((source.frame.height, 0))
    if columns:
        matrix = _matrix(source.frame.select(map(str, columns)).with_columns(**parsed))
        _check_finite(layout, source, columns, matrix)
    left_out = {source.names[j]: kind for j, kind in found.left_out.items()}
    return Numbers(columns, matrix, found.categories, left_out, written)


def _refusal(layout: Layout, source: Source, kinds: dict[int, str]) -> TableError:
    j, kind = next(iter(kinds.items()))
    cells = source.frame[str(j)].drop_nulls()
    example = str(cells[0]) if len(cells) else ""
    if len(cells):
        where = source.where(int(source.frame[str(j)].is_not_null().arg_max() or 0))
        kind += f", such as {shown(example)} in {where}"
    names = quoted(source.names[j] for j in kinds)
    if _is_comma(layout, source, example):
        remedy = 'if these are decimal commas, use {decimal=","} to read them'
    elif len(kinds) == 1:
        remedy = "leave it out by {drop}{=}{names}, or compare the clusters with it by "
        remedy += "{label_column}{=}{names}"
        if cells.n_unique() == len(cells):
            remedy = "leave it out by {drop}{=}{names}, or name the cases by {id_column}{=}{names}"
    else:
        remedy = 'leave them out by {text_columns="drop"}; for known classes use {label_column}'
    there = "this column holds" if len(kinds) == 1 else "these columns hold"
    return layout.error(
        f"{there} no numbers: {{names}} ({{kind}}); {remedy}", names=names, kind=kind
    )


def _decimal_comma(layout: Layout, source: Source, j: int) -> bool:
    """Whether the first cell of text of a column looks like a number with a decimal comma."""
    cells = source.frame[str(j)].drop_nulls()
    first = str(cells[0]) if len(cells) else ""
    return _is_comma(layout, source, first)


def _is_comma(layout: Layout, source: Source, cell: str) -> bool:
    return source.parse and layout.decimal == "." and bool(re.fullmatch(r"\s*-?\d*,\d+\s*", cell))


def _column(layout: Layout, source: Source, j: int) -> Cells:
    """Return a column of text, or of nothing, as numbers."""
    pl = polars()
    series = source.frame[str(j)]
    if str(series.dtype) != "String":
        return Cells(series.cast(pl.Float64), None)
    cells = _parsed(layout, source, series)
    if cells.bad.any():
        raise _not_numbers(layout, source, j, cells.bad)
    return cells


def _not_numbers(layout: Layout, source: Source, j: int, bad: Any) -> TableError:
    """Return the error on the cells of a column of numbers that are none."""
    series = source.frame[str(j)]
    row = int(bad.arg_max())
    cell = series[row]
    remedy = "correct it, or name it in {missing_values} if it stands for a missing cell"
    if _is_comma(layout, source, cell):
        remedy = 'if it is a decimal comma, use {decimal=","} to read them'
    strays = list(dict.fromkeys(series.filter(bad).to_list()))
    if len(strays) == 1:
        template = f"{{cell}} is not a number; {remedy}"
        return cell_error(layout, source, [row], j, template, cell=shown(cell))
    remedy = remedy.replace("correct it, or name it", "correct these cells, or name them")
    remedy = remedy.replace("it stands for a missing cell", "they stand for missing cells")
    template = f"{{n}} cells are not numbers, the first is {{cell}}: {{words}}; {remedy}"
    n, words = int(bad.sum()), quoted(strays, MOST_STRAYS, 40)
    return cell_error(layout, source, [row], j, template, n=n, cell=shown(cell), words=words)


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
    raise cell_error(layout, source, [row], features[column], words)


def cell_error(
    layout: Layout, source: Source, rows: list[int], column: int, template: str, **values: Any
) -> TableError:
    where, name = " and ".join(map(source.where, rows)), shown(source.names[column])
    return layout.error(f"{{where}}, column {{name}}: {template}", where=where, name=name, **values)
