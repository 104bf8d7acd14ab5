"""Tables in text: separated by commas, semicolons or tabs, perhaps compressed.

polars reads them: it was faster and leaner than pyarrow on both shapes. To a NumPy array, against
pyarrow to a pandas frame (one run each, 2 cores): 1,000,000 x 50 in 1.5 s and 1.1 GB against 2.9 s
and 2.2 GB, 78 x 24,000 in 0.7 s and 0.3 GB against 6.8 s and 0.8 GB (with blocks of 64 MB
and before any conversion, 2.0 s and 0.3 GB). Three more runs each on a busy machine kept the order.
Where something is odd, the csv module goes through the file once more, slowly, to find the line.
"""

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import IO, Any

from rskc.files._source import (
    MOST_TITLES,
    Layout,
    Source,
    TableError,
    line_of_names,
    literal,
    pl,
    shown,
    titles_note,
)
from rskc.inputs.columns import is_feature_name
from rskc.inputs.frames import as_number

SEPARATORS = {".csv": ",;\t|", ".txt": "\t,;| ", ".tsv": "\t", ".gct": "\t"}
MARKS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar", " ": "a space"}
SAMPLE, SAMPLE_CELLS = 100, 200_000  # rows and cells by which columns are judged, at most
WIDE = 1000  # columns
NO_DATA = "there is a header in line 1 but no line with data below it"


@dataclass(frozen=True)
class Text:
    """A file of text, and its bytes, unpacked and in UTF-8."""

    layout: Layout
    suffix: str
    data: bytes

    @cached_property
    def separator(self) -> str:
        """The one asked for, or that which gives the first two lines equally many cells."""
        if self.layout.separator is not None:
            return self.layout.separator

        def fit(mark: str) -> tuple[bool, bool, int, int]:
            lines: list[list[str]] = []
            with suppress(TableError):  # 24,000 cells are one that is too long, by a wrong mark
                lines += (cells for _, cells in islice(self.records(mark), MOST_TITLES + 2))
            widths, top = list(map(len, lines)), line_of_names(lines) if self.layout.header else 0
            first, second = [*widths, *widths[-1:], 0, 0][top : top + 2]
            agree = first > 1 and second - first in (0, 1)
            # Words may hold spaces and bars, and as many on each line by chance.
            return agree, mark not in " |", -top, max(widths, default=0)

        return max(SEPARATORS[self.suffix].replace(self.layout.decimal, ""), key=fit)

    @cached_property
    def top(self) -> int:
        """Lines that are not blank above the names of the columns."""
        return line_of_names(cells for _, cells in self.records()) if self.layout.header else 0

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns; one more, empty, in front if the header is one short, as R's is."""
        lines = list(islice(self.records(), self.top, self.top + 2))
        if not lines:
            raise self.layout.error("the file is empty")
        if not self.layout.header:
            return [f"x{j}" for j in range(len(lines[0][1]))]
        if len(lines) == 1:
            raise self.layout.error(NO_DATA)
        (line, first), (_, second) = lines
        names = [name.strip() for name in first]
        # A table without header would lose its first case.
        if all(map(_is_number, names)) and not all(map(str.isdigit, names)):
            raise self.layout.error(
                f"line {line} holds numbers where the names of the columns are expected; if the "
                "table has no names, use {header=False}"
            )
        # A separator at the end of the line is no sign of it, and would shift all cells by one.
        is_short = len(second) == len(names) + 1 and second[-1].strip() != ""
        return [""] * is_short + names

    @cached_property
    def skip(self) -> int:
        """Rows before the data: the header, and blank lines."""
        with self.open() as file:
            rows = csv.reader(file, delimiter=self.separator)
            filled = (number for number, cells in enumerate(rows) if cells)
            return next(islice(filled, self.top + self.layout.header, None), 1)

    def open(self) -> IO[str]:
        """Open the file as text, with lines that end where they do for polars."""
        return io.TextIOWrapper(io.BytesIO(self.data), "utf-8-sig", newline="\n")

    def records(self, separator: str | None = None) -> Iterator[tuple[int, list[str]]]:
        """Read the cells of the lines that are not blank, header included, and where they begin."""
        with self.open() as file:
            rows, line = csv.reader(file, delimiter=separator or self.separator, strict=True), 1
            try:
                for cells in rows:
                    if cells:
                        yield line, cells
                    line = rows.line_num + 1
            except csv.Error as error:
                words = f"line {line} cannot be understood ({literal(error)})"
                raise self.layout.error(words) from error

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Read the cells of the cases, and the lines where they begin."""
        return islice(self.records(), self.top + self.layout.header, None)

    def line_of(self, row: int) -> str:
        """Name the line of a case."""
        line = next((line for line, _ in islice(self.rows(), row, None)), None)
        return f"row {row + 1}" if line is None else f"line {line}"

    def read(self, kinds: list[bool] | None = None, **options: Any) -> Any:
        """Read the cells into columns of text, or of numbers where ``kinds`` says so."""
        known = [False] * len(self.names) if kinds is None else kinds
        schema = {str(j): pl.Float64 if number else pl.String for j, number in enumerate(known)}
        return pl.read_csv(
            self.data,
            has_header=False,
            skip_rows=self.skip,
            schema=schema,
            separator=self.separator,
            decimal_comma=self.layout.decimal == ",",
            **({"null_values": list(self.layout.missing_numbers)} | options),
        )

    def kinds(self, n_rows: int | None) -> list[bool]:
        """Return which columns hold nothing but numbers in the first rows."""
        missing, comma = set(self.layout.missing_numbers), self.layout.decimal == ","
        numbers = [name != "" and name not in self.layout.as_text for name in self.names]
        numbers[0] &= not is_feature_name(self.names[0])  # numbers of genes are names
        for _, cells in islice(self.rows(), n_rows):
            for j, cell in enumerate(cells[: len(numbers)]):
                if numbers[j] and cell not in missing:
                    numbers[j] = _is_number(cell, comma)
        return numbers


def read_text(layout: Layout, suffix: str, packed: bool) -> Source:
    """Read a table of separated text."""
    text = Text(layout, suffix, _bytes(layout, packed))
    try:
        names = text.names
        frame = _without_blank_lines(text, _with_words_as_they_are(text, _frame(text)))
    except UnicodeDecodeError as error:
        cells = text.data.decode("utf-8", "surrogateescape")
        place = next(re.finditer("[\udc80-\udcff]", cells)).start()
        line, byte = cells.count("\n", 0, place) + 1, ord(cells[place]) & 255
        raise layout.error(
            f"line {line} is not UTF-8 (byte 0x{byte:02x}); save the file as UTF-8, or say what it "
            'is, such as {encoding="cp1252"} of Windows, or "iso-8859-15"'
        ) from error
    except pl.exceptions.PolarsError as error:
        words = literal(str(error).splitlines()[0].rstrip("."))
        raise layout.error(f"the file cannot be read ({words})") from error
    if frame.height == 0:
        raise layout.error(NO_DATA)
    notes = (titles_note(text.top),) if text.top else ()

    def where(row: int) -> str:
        return Text(layout, suffix, _bytes(layout, packed)).line_of(row)

    return Source(layout, frame, names, where, parse=True, separator=text.separator, notes=notes)


def _bytes(layout: Layout, packed: bool) -> bytes:
    """Return the bytes of a file, unpacked and in UTF-8."""
    data = layout.path.read_bytes()
    try:
        data = gzip.decompress(data) if packed else data
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        words = f"the compressed file is damaged or cut short ({literal(error)})"
        raise layout.error(words) from error
    name = layout.encoding
    try:
        if codecs.lookup(name).name not in ("utf-8", "utf-8-sig"):
            return data.decode(name).encode()
    except LookupError as error:
        raise layout.error(f"there is no {{encoding}}={literal(repr(name))}") from error
    except UnicodeError as error:
        raise layout.error(literal(f"the file is not {name} ({error})")) from error
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise layout.error('the file is UTF-16; save it as UTF-8 or use {encoding="utf-16"}')
    # In a series of GEO, lines that begin with ! are no cells.
    return re.sub(rb"(?m)^!.*$", b"", data) if data[:1] == b"!" else data


def _frame(text: Text) -> Any:
    """Read the cells, into columns of numbers where all are."""
    n_columns = len(text.names)
    # polars takes 1.234 for a number also where commas are decimal and it may be a thousand.
    if text.layout.decimal == "." or b"." not in text.data:
        n_rows = max(2, min(SAMPLE, SAMPLE_CELLS // n_columns))
        with suppress(pl.exceptions.PolarsError):
            return text.read(text.kinds(n_rows))
    check_widths(text)
    # Text is dear by the column: 24,000 of them take 20 s to look through.
    if n_columns > WIDE:
        with suppress(pl.exceptions.PolarsError):
            return text.read(text.kinds(None))
    return text.read()


def _with_words_as_they_are(text: Text, frame: Any) -> Any:
    """Give back words that are spelt like a missing value.

    These are ids, such as NA for Namibia, and None in a column of text.
    """
    layout, columns = text.layout, list(enumerate(frame.iter_columns()))
    words = [j for j, each in columns if str(each.dtype) == "String" and each.null_count()]
    if not words:
        return frame
    texts, missing = text.read(columns=words, null_values=None), list(layout.missing_values)
    first = () if text.names[0] in layout.as_text else ("0",)
    ids = {*first, *(str(j) for j in words if text.names[j] == layout.id_column)}
    others = pl.exclude(ids)
    return frame.with_columns(texts.with_columns(pl.when(~others.is_in(missing)).then(others)))


def check_widths(text: Text) -> None:
    """Refuse lines with more or fewer cells than the header, slowly."""
    names, taken = len(text.names), MARKS.get(text.separator, shown(text.separator))
    for line, cells in text.rows():
        width = len(cells)
        if width == names:
            continue
        missing = f" and none for column {shown(text.names[width])}" if width < names else ""
        raise text.layout.error(
            f"line {line} has {width} cells where the header has {names}{missing}; the separator "
            f"was taken to be {taken}"
        )


def _without_blank_lines(text: Text, frame: Any) -> Any:
    """Leave out blank lines, and refuse short ones: polars fills both with nulls."""
    if frame.height == 0 or frame[:, -1].null_count() == 0:
        return frame
    blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    n_separators = (frame.width - 1) * (frame.height + text.layout.header)
    is_plain = not blank.any() and not text.top and b'"' not in text.data
    if is_plain and text.data.count(text.separator.encode()) == n_separators:
        return frame
    check_widths(text)
    if not blank.any():
        return frame
    with text.open() as file:
        lines = [bool(cells) for cells in csv.reader(file, delimiter=text.separator)]
    filled = lines[text.skip :]
    return frame.filter(pl.Series(filled + [False] * (frame.height - len(filled))))


def _is_number(cell: str, comma: bool = False) -> bool:
    """Whether polars takes a cell for a number: Python is more generous."""
    if "_" in cell or not cell.isascii() or cell != cell.strip() or (comma and "." in cell):
        return False
    return as_number(cell.replace(",", ".") if comma else cell) is not None
