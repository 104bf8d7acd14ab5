"""Numbers as people write them: 12%, 8.4 kg, $1,200.50, <5."""

from __future__ import annotations

from typing import Any, NamedTuple

from rskc.files._source import pl
from rskc.utils.wording import count

CURRENCY = r"(?:US\$|[$€£¥₹]|(?:USD|EUR|GBP|CHF|JPY|INR)\b)"
# Words and signs that no other number follows: not the 80 of 120/80, nor the 24 of 18-24. An
# exponent or a square may end them.
UNIT = r"[^\d\p{No}\s.,;:+\-<>=/()_#'\"][^\d,;:]{0,14}?[23]?"
FIRST = 100  # cells that are looked at before all of them are
# Cells with a mark between thousands, and no more, that are no chance where commas are decimal.
ENOUGH = 3


class HowWritten(NamedTuple):
    """What was written beside the numbers of a column."""

    unit: str = ""
    limit: str = ""  # the first of the cells such as <5
    n_limits: int = 0

    def __str__(self) -> str:
        words = [f"in {self.unit}"] if self.unit else []
        if self.n_limits:
            words.append(f"{count(self.n_limits, 'cell')} such as {self.limit} as the limit")
        return "; ".join(words) or "with marks between thousands"

    def differs_from(self, unit: str | None) -> bool:
        """Whether numbers are in another unit than this, if both are known."""
        return bool(self.unit and unit) and same_unit(self.unit) != same_unit(str(unit))


def written_numbers(
    cells: Any, decimal: str, separator: str | None
) -> tuple[Any, HowWritten] | None:
    """Read cells (a series of text, null where missing) as numbers of one unit; None if they fail.

    The second result is what stood beside the numbers. A limit such as <5 is read as 5. What stands
    between thousands must not be a decimal mark.
    """
    seen = cells.drop_nulls()
    first = _parts(seen.head(FIRST), decimal)
    if len(seen) == 0 or first["body"].null_count():
        return None
    parts = _parts(seen, decimal) if len(seen) > FIRST else first
    if parts["body"].null_count():
        return None
    # Marks between thousands must surely be that: 1,234 may be a decimal comma, where the file has
    # no commas between its cells.
    mark = "." if decimal == "," else ","
    marked = parts["body"].filter(parts["body"].str.contains(mark, literal=True))
    are_sure = len(marked) == 0 or marked.str.contains(rf"\{mark}.*[.,]").any()
    if not (are_sure or (len(marked) >= ENOUGH if decimal == "," else separator != ";")):
        return None
    signs = (pl.col("sign") + pl.col("inner")).str.contains("[-−]")
    body = pl.col("body").str.replace_all(f"[^0-9\\{decimal}]", "").str.replace(",", ".")
    size = body.cast(pl.Float64)
    values = parts.select(pl.when(signs).then(-size).otherwise(size)).to_series()
    units = parts.filter(values != 0).select(
        (pl.col("before") + pl.col("after")).str.strip_chars()
    ).to_series()  # fmt: skip
    if len({same_unit(unit) for unit in units.unique()}) > 1:
        return None
    limits = seen.filter(parts["limit"] != "")
    if 2 * len(limits) > len(seen):  # categories such as <18 and >65
        return None
    made = pl.select(pl.when(cells.is_not_null()).then(0.0)).to_series()
    made = made.scatter(cells.is_not_null().arg_true(), values)
    unit = units[0] if len(units) else ""
    return made, HowWritten(unit, limits[0] if len(limits) else "", len(limits))


def strays_among_written(cells: Any, decimal: str, separator: str | None) -> Any:
    """Return the mask of the few cells but for which a column would be numbers as written.

    None if there are none, or if they are more than a tenth of the cells.
    """
    for mark in dict.fromkeys((decimal, ",")):
        stray = cells.is_not_null() & _parts(cells, mark)["body"].is_null()
        if 0 < 10 * stray.sum() <= cells.count():
            rest = cells.filter(~stray)
            if written_numbers(rest, mark, separator) is not None:
                return stray
    return None


def same_unit(unit: str) -> str:
    """Return what units that are the same have in common: day and days, KG and kg."""
    return unit.casefold().rstrip("s. ")


def _parts(cells: Any, decimal: str) -> Any:
    """Return the parts of cells, in columns that are null where a cell is no number."""
    thousands = r"[.'’ \x{a0}\x{202f}]" if decimal == "," else r"[,'’ \x{a0}\x{202f}]"
    mark = f"\\{decimal}"
    # Digits of other scripts are \d too, and no number to polars.
    body = rf"D{{1,3}}(?:{thousands}D{{3}})+(?:{mark}D*)?|D+(?:{mark}D*)?|{mark}D+".replace(
        "D", "[0-9]"
    )
    pattern = (
        rf"^(?<limit>[<>≤≥]=?)?\s*(?<sign>[-+−]?)\s*(?<before>{CURRENCY})?\s*(?<inner>[-−]?)"
        rf"(?<body>{body})\s*(?<after>{UNIT})?$"
    )
    groups = cells.str.extract_groups(pattern).struct.unnest()
    return groups.with_columns(pl.exclude("body").fill_null(""))


def shows_decimal_comma(cells: Any) -> bool:
    """Whether cells of text are numbers with decimal commas, and one is surely no thousand."""
    sure = r"(?:^|[^0-9])0,[0-9]|,[0-9]{1,2}(?:[^0-9]|$)|,[0-9]{4}"
    seen = cells.drop_nulls()
    if len(seen) == 0 or not seen.head(FIRST).str.contains(",", literal=True).any():
        return False
    return bool(seen.str.contains(sure).any()) and written_numbers(seen, ",", None) is not None
