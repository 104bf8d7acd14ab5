"""Tables in text: separated by commas, semicolons or tabs, perhaps compressed.

polars reads them: it was faster and leaner than pyarrow on both shapes. To a NumPy array, against
pyarrow to a pandas frame (one run each, 2 cores): 1,000,000 x 50 in 1.5 s and 1.1 GB against 2.9 s
and 2.2 GB, 78 x 24,000 in 0.7 s and 0.3 GB against 6.8 s and 0.8 GB (with blocks of 64 MB
and before any conversion, 2.0 s and 0.3 GB). Three more runs each on a busy machine kept the order.
Where something is odd, the csv module goes through the file once more, slowly, to find the line.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import IO, Any, NamedTuple

from rskc.files._source import Layout, Source, TableError, for_polars, polars, shown
from rskc.inputs.columns import NONE, is_feature_name

SEPARATORS = {".csv": ",;\t", ".txt": "\t,;", ".tsv": "\t"}
MARKS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
SAMPLE, SAMPLE_CELLS = 100, 200_000  # rows and cells by which columns are judged, at most
WIDE = 1000  # columns
CHUNK = 1 << 24
NO_DATA = "there is a header in line 1 but no line with data below it"


class Record(NamedTuple):
    """Cells, and the line of the file where they begin."""

    line: int
    cells: list[str]


@dataclass(frozen=True)
class Text:
    """A file of text, and its bytes if they had to be unpacked or recoded."""

    layout: Layout
    suffix: str
    data: bytes | None

    @cached_property
    def separator(self) -> str:
        """The one asked for, or that which gives the first two lines equally many cells."""
        if self.layout.separator is not None:
            return self.layout.separator
        candidates = SEPARATORS[self.suffix].replace(self.layout.decimal, "")
        counts = {each: self._widths(each) for each in candidates}
        return max(counts, key=lambda each: counts[each])

    def _widths(self, separator: str) -> tuple[bool, int]:
        """How well a separator fits: whether the first lines agree, and into how many cells."""
        widths: list[int] = []
        with suppress(TableError):  # 24,000 cells are one that is too long, by a wrong separator
            widths += (len(record.cells) for record in islice(self.records(separator), 2))
        agree = len(widths) < 2 or widths[1] - widths[0] in (0, 1)
        return agree and widths[:1] != [1], max(widths, default=0)

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns; one more, empty, in front if the header is one short, as R's is."""
        records = self.records(self.separator)
        first = next(records, None)
        if first is None:
            raise self.layout.error("the file is empty")
        second = next(records, None)
        if not self.layout.header:
            return [f"x{j}" for j in range(len(first.cells))]
        names = [name.strip() for name in first.cells]
        if second is None:
            raise self.layout.error(NO_DATA)
        self._check_header(names)
        # A separator at the end of the line is no sign of it, and would shift all cells by one.
        is_short = len(second.cells) == len(names) + 1 and second.cells[-1].strip() != ""
        return [""] * is_short + names

    def _check_header(self, names: list[str]) -> None:
        """Refuse a table without header, whose first case would be lost."""
        if all(map(_is_number, names)) and not all(name.isdigit() for name in names):
            raise self.layout.error(
                "line 1 holds numbers where the names of the columns are expected; if the table "
                "has no names, use {header=False}"
            )

    @cached_property
    def skip(self) -> int:
        """Rows before the data: the header, and blank lines."""
        with self.open() as file:
            rows = csv.reader(file, delimiter=self.separator)
            filled = (number for number, cells in enumerate(rows) if cells)
            return next(islice(filled, int(self.layout.header), None), 1)

    def open(self) -> IO[str]:
        """Open the file as text, with lines that end where they do for polars."""
        return io.TextIOWrapper(self.open_bytes(), "utf-8-sig", newline="\n")

    def open_bytes(self) -> Any:
        """Open the file as bytes."""
        return self.layout.path.open("rb") if self.data is None else io.BytesIO(self.data)

    def records(self, separator: str) -> Iterator[Record]:
        """Read the lines that are not blank, header included."""
        with self.open() as file:
            rows, line = csv.reader(file, delimiter=separator, strict=True), 1
            try:
                for cells in rows:
                    if cells:
                        yield Record(line, cells)
                    line = rows.line_num + 1
            except csv.Error as error:
                raise self.layout.error(
                    "line {line} cannot be understood ({error})", line=line, error=error
                ) from error
            except UnicodeDecodeError as error:
                raise self._encoding_error() from error

    def _encoding_error(self) -> TableError:
        with self.open_bytes() as raw:
            for number, line in enumerate(raw, 1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as error:
                    return self.layout.error(
                        "line {line} is not UTF-8 (byte 0x{byte:02x}); save the file as UTF-8 or "
                        'say what it is, such as {encoding="cp1252"} of Windows',
                        line=number,
                        byte=line[error.start],
                    )
        return self.layout.error("the file is not UTF-8")

    def count(self, *pieces: bytes) -> list[int]:
        """Count how often bytes occur."""
        totals = [0] * len(pieces)
        with self.open_bytes() as raw:
            while chunk := raw.read(CHUNK):
                totals = [n + chunk.count(piece) for n, piece in zip(totals, pieces, strict=True)]
        return totals


def read_text(layout: Layout, suffix: str, packed: bool) -> Source:
    """Read a table of separated text."""
    pl = polars()
    text = Text(layout, suffix, _unpacked(layout, packed))
    names = text.names
    try:
        frame = _with_words_as_they_are(pl, text, _frame(pl, text))
        frame = _without_blank_lines(pl, text, frame)
    except pl.exceptions.PolarsError as error:
        words = str(error).splitlines()[0].rstrip(".")
        raise layout.error("the file cannot be read ({words})", words=words) from error
    if frame.height == 0:
        raise layout.error(NO_DATA)
    return Source(
        layout, frame, names, lambda row: _line_of(text, row), parse=True, separator=text.separator
    )


def _frame(pl: Any, text: Text) -> Any:
    """Read the cells, into columns of numbers where all are."""
    n_columns = len(text.names)
    # polars takes 1.234 for a number also where commas are decimal and it may be a thousand.
    if text.layout.decimal == "." or text.count(b".") == [0]:
        n_rows = max(2, min(SAMPLE, SAMPLE_CELLS // n_columns))
        with suppress(pl.exceptions.PolarsError):
            return _read(pl, text, _schema(pl, text, n_rows))
    check_widths(text)
    # Text is dear by the column: 24,000 of them take 20 s to look through.
    if n_columns > WIDE:
        with suppress(pl.exceptions.PolarsError):
            return _read(pl, text, _schema(pl, text, None))
    return _read(pl, text, _all_text(pl, text))


def _with_words_as_they_are(pl: Any, text: Text, frame: Any) -> Any:
    """Give back words that are spelt like a missing value.

    These are ids, such as NA for Namibia, and None in a column of text.
    """
    layout, schema = text.layout, _all_text(pl, text)
    ids: list[int] = []
    words: list[int] = []
    for j, name in enumerate(text.names):
        if str(frame[str(j)].dtype) == "String" and frame[str(j)].null_count():
            is_id = name == layout.id_column or (j == 0 and name not in layout.as_text)
            (ids if is_id else words).append(j)
    if ids:
        frame = frame.with_columns(_read(pl, text, schema, columns=ids, null_values=None))
    if words and NONE not in layout.missing_values and text.count(NONE.encode()) != [0]:
        known = list(layout.missing_values)
        frame = frame.with_columns(_read(pl, text, schema, columns=words, null_values=known))
    return frame


def _unpacked(layout: Layout, packed: bool) -> bytes | None:
    """Return the bytes in UTF-8, if they are not so in the file."""
    data = _gunzipped(layout) if packed else None
    if data is not None:
        head = data[:4096]
    else:
        with open(layout.path, "rb") as file:
            head = file.read(4096)
    if layout.encoding.lower().replace("_", "-") not in ("utf-8", "utf8", "utf-8-sig"):
        return _recoded(layout, layout.path.read_bytes() if data is None else data)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise layout.error('the file is UTF-16; save it as UTF-8 or use {encoding="utf-16"}')
    if b"\r" in head and b"\n" not in head and b"\n" not in (data or layout.path.read_bytes()):
        return (data or layout.path.read_bytes()).replace(b"\r", b"\n")
    return data


def _gunzipped(layout: Layout) -> bytes:
    try:
        return gzip.decompress(layout.path.read_bytes())
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise layout.error(
            "the compressed file is damaged or cut short ({error})", error=error
        ) from error


def _recoded(layout: Layout, data: bytes) -> bytes:
    try:
        return data.decode(layout.encoding).encode()
    except LookupError as error:
        raise layout.error("there is no {encoding}={name!r}", name=layout.encoding) from error
    except UnicodeError as error:
        raise layout.error(
            "the file is not {name} ({error})", name=layout.encoding, error=error
        ) from error


def _all_text(pl: Any, text: Text) -> dict[str, Any]:
    return {str(j): pl.String for j in range(len(text.names))}


def _schema(pl: Any, text: Text, n_rows: int | None) -> dict[str, Any]:
    """Numbers where the first rows hold nothing else."""
    missing, comma = set(text.layout.missing_numbers), text.layout.decimal == ","
    is_text = [name == "" or name in text.layout.as_text for name in text.names]
    is_text[0] |= is_feature_name(text.names[0])  # numbers of genes are names
    records = islice(text.records(text.separator), int(text.layout.header), None)
    for _, cells in islice(records, n_rows):
        for j, cell in enumerate(cells[: len(is_text)]):
            if not is_text[j] and cell not in missing:
                is_text[j] = not _is_number(cell, comma)
    return {str(j): pl.String if words else pl.Float64 for j, words in enumerate(is_text)}


def numbers(pl: Any, cells: Any, decimal: str) -> Any:
    """Turn cells of text into numbers, null where they are none."""
    if decimal == ",":
        cells = pl.when(~cells.str.contains(".", literal=True)).then(
            cells.str.replace(",", ".", literal=True)
        )
    return cells.cast(pl.Float64, strict=False)


def _read(pl: Any, text: Text, schema: dict[str, Any], **options: Any) -> Any:
    return pl.read_csv(
        for_polars(text.layout.path) if text.data is None else text.data,
        has_header=False,
        skip_rows=text.skip,
        schema=schema,
        separator=text.separator,
        decimal_comma=text.layout.decimal == ",",
        glob=False,
        **({"null_values": list(text.layout.missing_numbers)} | options),
    )


def check_widths(text: Text) -> None:
    """Refuse lines with more or fewer cells than the header, slowly."""
    for line, cells in text.records(text.separator):
        width, names = len(cells), len(text.names)
        if width == names or (line == 1 and width == names - 1):
            continue
        missing = f" and none for column {shown(text.names[width])}" if width < names else ""
        taken = "the separator was taken to be {mark}"
        if names == 1:
            taken = f"if that is a title, delete all lines above the names of the columns ({taken})"
        raise text.layout.error(
            f"line {{line}} has {{width}} cells where the header has {{names}}{{missing}}; {taken}",
            line=line,
            width=width,
            names=names,
            missing=missing,
            mark=MARKS.get(text.separator, repr(text.separator)),
        )


def _without_blank_lines(pl: Any, text: Text, frame: Any) -> Any:
    """Leave out blank lines, and refuse short ones: polars fills both with nulls."""
    if frame.height == 0 or frame[:, -1].null_count() == 0:
        return frame
    blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    separators, quotes = text.count(text.separator.encode(), b'"')
    rows = frame.height + text.layout.header
    if not quotes and not blank.any() and separators == (frame.width - 1) * rows:
        return frame
    check_widths(text)
    if not blank.any():
        return frame
    with text.open() as file:
        lines = [bool(cells) for cells in csv.reader(file, delimiter=text.separator)]
    filled = lines[text.skip :]
    return frame.filter(pl.Series(filled + [False] * (frame.height - len(filled))))


def _line_of(text: Text, row: int) -> str:
    for number, record in enumerate(text.records(text.separator)):
        if number == row + text.layout.header:
            return f"line {record.line}"
    return f"row {row + 1}"


def _is_number(cell: str, comma: bool = False) -> bool:
    """Whether polars takes a cell for a number: Python is more generous."""
    if "_" in cell or not cell.isascii() or cell != cell.strip() or (comma and "." in cell):
        return False
    try:
        float(cell.replace(",", ".") if comma else cell)
    except ValueError:
        return False
    return True
