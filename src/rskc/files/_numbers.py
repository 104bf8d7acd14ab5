"""From cells to numbers or categories, or to one sentence on the first cell that is none.

Numbers may be as people write them: 12%, 8.4 kg, $1,200.50.
"""

import re
from typing import Any, NamedTuple

import numpy as np

from rskc.files._source import TOO_LARGE, Roles, Source, TableError, pl, shown, shown_names
from rskc.inputs.columns import are_classes, are_names, same_unit
from rskc.utils.wording import count

CURRENCY = r"(?:US\$|[$€£¥₹]|(?:USD|EUR|GBP|CHF|JPY|INR)\b)"
# Words and signs that no other number follows: not the 80 of 120/80, nor the 24 of 18-24. An
# exponent or a square may end them.
UNIT = r"[^\d\p{No}\s.,;:+\-<>=/()_#'\"][^\d,;:]{0,14}?[23]?"
FIRST = 100  # cells that are looked at before all of them are
# Cells with a mark between thousands, and no more, that are no chance where commas are decimal.
ENOUGH = 3


class Cells(NamedTuple):
    """A column of text, read as numbers."""

    numbers: Any
    bad: Any  # mask of cells that are neither numbers nor missing
    unit: str | None = None  # beside numbers; "" where there are marks between thousands only


def written_numbers(cells: Any, decimal: str, separator: str | None) -> Cells | None:
    """Read cells (a series of text, null where missing) as numbers of one unit.

    None if more than a tenth of them are none. The others are ``bad``, and reason enough to refuse
    a column, but no sign of what it or the file holds. What stands between thousands must not be a
    decimal mark.
    """
    if _parts(cells.drop_nulls().head(FIRST), decimal)["body"].count() == 0:
        return None
    parts = _parts(cells, decimal)
    body = parts["body"]
    bad = cells.is_not_null() & body.is_null()
    if 10 * bad.sum() > cells.count():
        return None
    # Marks between thousands must surely be that: 1,234 may be a decimal comma, where the file has
    # no commas between its cells.
    mark = "." if decimal == "," else ","
    marked = body.filter(body.str.contains(mark, literal=True))
    are_sure = len(marked) == 0 or marked.str.contains(rf"\{mark}.*[.,]").any()
    if not (are_sure or (len(marked) >= ENOUGH if decimal == "," else separator != ";")):
        return None
    size = pl.col("body").str.replace_all(f"[^0-9\\{decimal}]", "").str.replace(",", ".")
    size = size.cast(pl.Float64)
    signs = (pl.col("sign") + pl.col("inner")).str.contains("[-−]")
    parts = parts.select(
        numbers=pl.when(signs).then(-size).otherwise(size),
        unit=(pl.col("before") + pl.col("after")).str.strip_chars(),
    )
    units = parts.filter(pl.col("numbers") != 0)["unit"]
    if len({same_unit(unit) for unit in units.unique()}) > 1:
        return None
    return Cells(parts["numbers"], bad, units[0] if len(units) else "")


def _parts(cells: Any, decimal: str) -> Any:
    """Return the parts of cells, in columns; the body is null where a cell is no number."""
    thousands = r"[.'’ \x{a0}\x{202f}]" if decimal == "," else r"[,'’ \x{a0}\x{202f}]"
    mark = f"\\{decimal}"
    # Digits of other scripts are \d too, and no number to polars.
    body = rf"D{{1,3}}(?:{thousands}D{{3}})+(?:{mark}D*)?|D+(?:{mark}D*)?|{mark}D+".replace(
        "D", "[0-9]"
    )
    pattern = (
        rf"^(?<sign>[-+−]?)\s*(?<before>{CURRENCY})?\s*(?<inner>[-−]?)(?<body>{body})"
        rf"\s*(?<after>{UNIT})?$"
    )
    groups = cells.str.extract_groups(pattern).struct.unnest()
    return groups.with_columns(pl.exclude("body").fill_null(""))


def shows_decimal_comma(cells: Any) -> bool:
    """Whether cells of text are numbers with decimal commas, and one is surely no thousand."""
    sure = r"(?:^|[^0-9])0,[0-9]|,[0-9]{1,2}(?:[^0-9]|$)|,[0-9]{4}"
    seen = cells.drop_nulls()
    if len(seen) == 0 or not seen.head(FIRST).str.contains(",", literal=True).any():
        return False
    written = written_numbers(seen, ",", None) if seen.str.contains(sure).any() else None
    return written is not None and not written.bad.any()


MOST_STRAYS = 12  # words in a message
# Dates as text, day, month and year in any order, and a time. Digits of other scripts are \d too,
# and no date to polars.
MONTH = r"(?i:jan|feb|m[aä]r|mrz|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])\pL{0,6}\.?"
DATE = (
    r"^(?:(?:1[89]|20)DD[-/.](?:0?[1-9]|1[0-2])(?:[-/.](?:0?[1-9]|[12]D|3[01]))?"
    r"|D{1,2}[./-]D{1,2}[./-](?:D{4}|DD)"
    rf"|D{{1,2}}\.?[ -]*{MONTH}[ -]*(?:D{{4}}|DD)"
    rf"|{MONTH} D{{1,2}}(?:st|nd|rd|th)?,? +D{{4}})"
    r"(?:(?:T|,? +)D{1,2}:DD(?::DD(?:\.D+)?)? ?(?:[AaPp][Mm])?(?:Z|[+-]DD:?DD)?)?$"
).replace("D", "[0-9]")
COMMA = r"\s*-?\d*,\d+\s*"  # a number with a decimal comma, maybe
KINDS = {"Boolean": "true and false", "String": "text", "Categorical": "text", "Enum": "text"}


def _parsed(source: Source, series: Any) -> Cells:
    layout = source.layout
    cells = observed(series, layout.missing_numbers)
    texts = cells
    if layout.decimal == ",":
        texts = cells.set(cells.str.contains(".", literal=True), None)
        texts = texts.str.replace(",", ".", literal=True)
    numbers = texts.cast(pl.Float64, strict=False)
    bad = cells.is_not_null() & numbers.is_null()
    written = written_numbers(cells, layout.decimal, source.separator) if bad.any() else None
    return Cells(numbers, bad) if written is None or written.bad.any() else written


def observed(series: Any, missing_values: tuple[str, ...]) -> Any:
    """Return cells of any type as text, null where missing."""
    cells = as_text(series).str.strip_chars()
    missing = cells.is_in(list(missing_values)).fill_null(True)
    return pl.select(pl.when(~missing).then(cells)).to_series()


def as_text(series: Any) -> Any:
    """Return cells as text, whole numbers without a point."""
    texts = series.cast(pl.String)
    if not series.dtype.is_float():
        return texts
    is_whole = (series == series.floor()) & (series.abs() < 2**63)
    whole = series.cast(pl.Int64, strict=False).cast(pl.String)
    return pl.select(pl.when(is_whole).then(whole).otherwise(texts)).to_series()


def kind_of(source: Source, j: int) -> str:
    """Say what a column holds: "numbers", "text", "dates" ....

    Text that may be numbers is, unless fewer than half of the cells that are there are numbers.
    """
    series = source.frame[str(j)]
    kind = str(series.dtype).split("(")[0]
    if series.dtype.is_numeric() or kind == "Null":
        return "numbers"
    if kind == "String" and source.parse:
        cells = _parsed(source, series)
        if int(cells.bad.sum()) <= cells.numbers.count():
            return "numbers"
        seen = observed(series, source.layout.missing_numbers).drop_nulls()
        return "dates" if len(seen) and seen.str.contains(DATE).all() else "text"
    return "dates" if series.dtype.is_temporal() else KINDS.get(kind, kind)


def all_are_numbers(source: Source, columns: list[int]) -> bool:
    """Whether columns hold numbers, and no other cell."""
    texts = (source.frame[str(j)] for j in columns if not source.frame[str(j)].dtype.is_numeric())
    return not any(_parsed(source, series).bad.any() for series in texts)


def find_numbers(source: Source, roles: Roles) -> None:
    """Make numbers of the features, or categories, and leave out those that hold other things."""
    layout, names = source.layout, source.names
    kinds = {j: kind_of(source, j) for j in roles.features}
    others: dict[int, str] = {}  # columns that hold neither, and what they hold
    for j, kind in kinds.items():
        is_forced = names[j] in layout.categorical
        is_word = kind in ("text", "true and false") and layout.text_columns == "categories"
        if is_forced or is_word:
            missing = layout.missing_numbers if kind == "numbers" else layout.missing_values
            cells = observed(source.frame[str(j)], missing)
            n, n_distinct = cells.count(), cells.drop_nulls().n_unique()
            if is_forced or n_distinct == 1 or are_classes(n, n_distinct):
                roles.categories[j] = cells
            else:
                what = f"{kind} that names cases:" if are_names(n, n_distinct) else f"{kind} with"
                others[j] = f"{what} {count(n_distinct, 'value')} in {count(n, 'case')}"
        elif kind != "numbers":
            others[j] = kind
    _check_text(source, kinds, others)
    roles.features = [j for j in kinds if j not in roles.categories and j not in others]
    if not (roles.features or roles.categories):
        raise layout.error("no column holds numbers")
    roles.dropped |= {names[j]: kind for j, kind in others.items()}
    parsed = {}
    for j in roles.features:
        series = source.frame[str(j)]
        if str(series.dtype) == "String":
            cells = _parsed(source, series)
            if cells.bad.any():
                raise _not_numbers(source, j, cells.bad)
            parsed[str(j)] = cells.numbers
            if cells.unit is not None:
                roles.written[names[j]] = cells.unit
    frame = source.frame.select(map(str, roles.features)).with_columns(**parsed)
    roles.matrix = _matrix(source, frame, roles.features)


def _check_text(source: Source, kinds: dict[int, str], others: dict[int, str]) -> None:
    """Refuse columns of text that may be meant as numbers, or all if that is asked for."""
    layout = source.layout
    for j in others if layout.text_columns != "drop" else ():
        cells = observed(source.frame[str(j)], layout.missing_numbers)
        for mark in (layout.decimal, ",") if kinds[j] == "text" else ():
            written = written_numbers(cells, mark, source.separator)
            if written is not None and written.bad.any():
                raise _not_numbers(source, j, written.bad)
    refused = others if layout.text_columns == "refuse" else {}
    if layout.text_columns == "categories":
        words = (j for j, kind in kinds.items() if kind == "text")
        free = (j for j in words if source.names[j] not in layout.categorical)
        refused = {j: "" for j in free if _is_comma(source, _first_cell(source, j)[1])}
    if refused:
        raise _refusal(source, {j: kinds[j] for j in refused})


def _refusal(source: Source, kinds: dict[int, str]) -> TableError:
    j, kind = next(iter(kinds.items()))
    row, example = _first_cell(source, j)
    names = shown_names(source.names[j] for j in kinds)
    remedy = (
        'leave such columns out by {text_columns="drop"}; {id_column} is for names of the cases, '
    )
    remedy += "and {label_column} for known classes"
    if _is_comma(source, example):
        remedy = 'if these are decimal commas, use {decimal=","} to read them'
    elif source.names[j] == source.layout.weight_column:
        remedy = "{weight_column} must name a column of numbers, what each case counts"
    there = "this column holds" if len(kinds) == 1 else "these columns hold"
    kind += f", such as {shown(example)} in {source.where(row)}"
    return source.layout.error(f"{there} no numbers: {names} ({kind}); {remedy}")


def _first_cell(source: Source, j: int) -> tuple[int, str]:
    """Return the row of the first cell that is there, and its text."""
    series = source.frame[str(j)]
    row = int(series.is_not_null().arg_max() or 0)
    return row, str(series[row])


def _is_comma(source: Source, cell: str) -> bool:
    """Whether a cell that is no number looks like one with a decimal comma."""
    return source.parse and source.layout.decimal == "." and bool(re.fullmatch(COMMA, cell))


def _not_numbers(source: Source, j: int, bad: Any) -> TableError:
    """Return the error on the cells of a column of numbers that are none."""
    series, row = source.frame[str(j)], int(bad.arg_max())
    cell, strays = series[row], list(dict.fromkeys(series.filter(bad).to_list()))
    what = f"{shown(cell)} is not a number"
    if len(strays) > 1:
        words = shown_names(strays, MOST_STRAYS, 40)
        what = f"{bad.sum()} cells are not numbers, the first is {shown(cell)}: {words}"
    remedy = "correct the file, or name in {missing_values} what stands for a missing cell"
    if _is_comma(source, cell):
        remedy = 'if it is a decimal comma, use {decimal=","} to read them'
    return source.error(row, j, f"{what}; {remedy}")


def _matrix(source: Source, frame: Any, features: list[int]) -> np.ndarray:
    """Return the cells as float32 if all are, else as float64; none is infinite."""
    if not features:
        return np.empty((source.frame.height, 0))
    single = all(str(dtype) == "Float32" for dtype in frame.dtypes)
    frame = frame.cast(pl.Float32 if single else pl.Float64)
    matrix = frame.to_numpy(order="c", writable=True)
    largest = np.maximum(np.fmax.reduce(matrix, axis=0), -np.fmin.reduce(matrix, axis=0))
    if np.isinf(largest).any():
        column = int(np.argmax(np.isinf(largest)))
        row = int(np.argmax(np.isinf(matrix[:, column])))
        raise source.error(row, features[column], f"the cell {TOO_LARGE}")
    return matrix
