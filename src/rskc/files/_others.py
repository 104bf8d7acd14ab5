"""Columns of a file that hold no numbers: categories, dates, and what is left out."""

from __future__ import annotations

from typing import Any, NamedTuple

from rskc.files._source import Layout, Source, polars
from rskc.inputs.columns import are_classes, are_names
from rskc.utils.wording import count

# Dates as text: those that sort, of which numbers can be made, and those of one country or another.
# Digits of other scripts are \d too, and no date to polars.
ISO = r"^D{4}-D{2}-D{2}([T ]D{2}:D{2}(:D{2}(\.D+)?)?(Z|[+-]D{2}:?D{2})?)?$".replace("D", "[0-9]")
OTHER_DATES = r"^D{1,2}[./-]D{1,2}[./-](D{2}|D{4})$".replace("D", "[0-9]")
MICROSECONDS = 24 * 3600 * 1_000_000  # of a day


class Others(NamedTuple):
    """What becomes of columns that hold no numbers, by number."""

    categories: dict[int, Any]  # series of text, null where missing
    days: dict[int, Any]  # series of numbers
    left_out: dict[int, str]  # what they hold


def are_dates(cells: Any) -> bool:
    """Whether all cells of text that are there look like dates."""
    seen = cells.drop_nulls()
    if len(seen) == 0:
        return False
    return bool(seen.str.contains(ISO).all() or seen.str.contains(OTHER_DATES).all())


def observed(series: Any, missing_values: tuple[str, ...]) -> Any:
    """Return cells of any type as text, null where missing."""
    pl = polars()
    cells = as_text(series).str.strip_chars()
    missing = cells.is_in(list(missing_values)).fill_null(True)
    return pl.select(pl.when(~missing).then(cells)).to_series()


def as_text(series: Any) -> Any:
    """Return cells as text, whole numbers without a point."""
    pl = polars()
    texts = series.cast(pl.String)
    if not series.dtype.is_float():
        return texts
    is_whole = (series == series.floor()) & (series.abs() < 2**63)
    whole = series.cast(pl.Int64, strict=False).cast(pl.String)
    return pl.select(pl.when(is_whole).then(whole).otherwise(texts)).to_series()


def sort_others(
    layout: Layout, source: Source, kinds: dict[int, str], forced: set[int], wanted: Any
) -> Others:
    """Decide on columns by what they hold (``kinds``); those that are ``forced`` are categories."""
    found = Others({}, {}, {})
    for j in sorted({*kinds, *forced}):
        series, kind = source.frame[str(j)], kinds.get(j, "numbers")
        if kind == "dates" and j not in forced and wanted.date_columns == "numbers":
            found.days[j] = _days(layout, source, j)
            continue
        is_text = kind in ("text", "true and false")
        if j not in forced and not (is_text and wanted.text_columns == "categories"):
            found.left_out[j] = kind
            continue
        is_number = kind == "numbers"
        cells = observed(series, layout.missing_numbers if is_number else layout.missing_values)
        n, n_distinct = cells.count(), cells.drop_nulls().n_unique()
        if j in forced or n_distinct == 1 or are_classes(n, n_distinct):
            found.categories[j] = cells
        else:
            what = f"{kind} that names cases:" if are_names(n, n_distinct) else f"{kind} with"
            found.left_out[j] = f"{what} {count(n_distinct, 'value')} in {count(n, 'case')}"
    return found


def _sorted_dates(layout: Layout, name: str, cells: Any) -> Any:
    """Return dates such as 31.12.2024 and 12/31/2024 as 2024-12-31.

    With points the day is first; else a number above 12 says which is the day.
    """
    pl = polars()
    parts = cells.str.extract_groups(r"^(?<a>\d{1,2})[./-](?<b>\d{1,2})[./-](?<y>\d{2,4})$")
    parts = parts.struct.unnest().cast(pl.Int64)
    first, second = (parts[each].max() or 0 for each in ("a", "b"))
    dotted = cells.str.contains(".", literal=True).any()
    if not dotted and first <= 12 and second <= 12:
        raise layout.error(
            "it is not clear whether day or month comes first in {name}, such as {cell}; write "
            "dates as 2024-12-31",
            name=repr(name),
            cell=repr(cells.drop_nulls()[0]),
        )
    day, month = ("a", "b") if dotted or first > 12 else ("b", "a")
    century = pl.when(pl.col("y") >= 100).then(0).when(pl.col("y") < 50).then(2000).otherwise(1900)
    made = pl.date(pl.col("y") + century, pl.col(month), pl.col(day)).cast(pl.String)
    try:
        return parts.select(made).to_series()
    except pl.exceptions.PolarsError as error:
        raise layout.error("{name} has dates that there are not", name=repr(name)) from error


def _days(layout: Layout, source: Source, j: int) -> Any:
    """Return dates as days since 1970, and times as parts of a day."""
    pl = polars()
    series = source.frame[str(j)]
    if str(series.dtype) == "String":
        cells = observed(series, layout.missing_numbers)
        if not cells.drop_nulls().str.contains(ISO).all():
            cells = _sorted_dates(layout, source.names[j], cells)
        hours = cells.str.slice(11, 2).cast(pl.Float64, strict=False).fill_null(0.0)
        minutes = cells.str.slice(14, 2).cast(pl.Float64, strict=False).fill_null(0.0)
        days = cells.str.slice(0, 10).str.to_date().cast(pl.Int32).cast(pl.Float64)
        return days + hours / 24 + minutes / 1440
    if str(series.dtype).startswith("Date"):
        return series.cast(pl.Datetime("us")).cast(pl.Int64).cast(pl.Float64) / MICROSECONDS
    if str(series.dtype) == "Time":
        series = series.cast(pl.Duration("us"))
    return series.dt.total_microseconds().cast(pl.Float64) / MICROSECONDS
