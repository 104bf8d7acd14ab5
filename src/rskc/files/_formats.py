"""Tables in other formats than text: Parquet, Arrow, NumPy, Excel, AnnData, Matrix Market.

Sparse ones are not made dense.

Excel is read by python-calamine, which hands over each cell as it is; read as text by way of
fastexcel, 1/3 comes back as 0.333333333 and 1e-20 as 0.
"""

import gzip
import io
import math
import mmap
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from struct import unpack_from
from typing import IO, Any

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix, issparse, load_npz

from rskc.files._source import (
    Layout,
    Source,
    TableError,
    for_polars,
    line_of_names,
    literal,
    near,
    needed,
    pl,
    shown,
    titles_note,
)
from rskc.utils.wording import cleaned, quoted, shortened

NAMES_IN_NPZ = ("X", "data")
# Where pandas keeps an index without name in a Parquet file.
PANDAS_INDEX = "__index_level_0__"


def read_columns(layout: Layout) -> Source:
    """Read columns of Parquet or Arrow."""
    with damage_named(layout):
        if layout.path.suffix.lower() == ".parquet":
            return of_frame(layout, pl.read_parquet(for_polars(layout.path), glob=False))
        return of_frame(layout, pl.read_ipc(layout.path.read_bytes()))


def of_frame(layout: Layout, frame: Any) -> Source:
    """Make a source of a frame of polars with typed columns."""
    names = frame.columns
    id_name = PANDAS_INDEX if PANDAS_INDEX in names else None
    frame = frame.rename(dict(zip(names, map(str, range(frame.width)), strict=True)))
    return Source(layout, frame, names, id_name=id_name)


def read_numpy(layout: Layout) -> Source:
    """Read a matrix of NumPy, or the matrix X of an archive and the names that go with it."""
    with (
        damage_named(layout),
        open(layout.path, "rb") as file,  # here: NumPy leaves that of a damaged archive open
    ):
        archive = np.load(file, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            return of_matrix(layout, archive)
        arrays = {name: np.asarray(archive[name]) for name in archive.files}  # may be bytes
        if {"format", "shape", "data"} <= arrays.keys():  # as SciPy writes a sparse matrix
            return of_matrix(layout, load_npz(layout.path))
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    table = next((name for name in NAMES_IN_NPZ if name in tables), tables[0] if tables else None)
    if table is None or (len(tables) > 1 and table not in NAMES_IN_NPZ):
        raise layout.error(f"of its {len(tables)} tables, one must be called 'X' to be read")
    matrix = arrays.pop(table)
    features, cases = arrays.pop("feature_names", None), arrays.pop("case_names", None)
    sides = {name: arrays.pop(name) for name in layout.as_text if name in arrays}
    id_name = None
    if cases is not None and layout.id_column is None:
        id_name, sides = "case_names", {"case_names": cases} | sides
    left_out = dict.fromkeys(arrays, f"another array than {table}")
    names = None if features is None else [str(name) for name in np.ravel(features)]
    return of_matrix(layout, matrix, names, sides, id_name=id_name, left_out=left_out)


def read_mtx(layout: Layout) -> Source:
    """Read a matrix of Matrix Market, rows being cases.

    With the names of features and barcodes beside it, as 10x Genomics writes them, rows are
    features.
    """
    with damage_named(layout):
        with _opened(layout.path) as file:
            matrix = _market_matrix(file)
        features = _names_beside(layout.path, "features.tsv", "genes.tsv")
        cases = _names_beside(layout.path, "barcodes.tsv")
    if features is None or cases is None:
        return of_matrix(layout, matrix)
    if matrix.shape != (len(features), len(cases)):
        raise layout.error(
            f"the matrix has shape {matrix.shape}, and beside it are the names of {len(features)} "
            f"features and {len(cases)} cases"
        )
    sides = {"barcode": np.array(cases, object)}
    return of_matrix(layout, matrix.T, features, sides, id_name="barcode", is_upright=True)


def _market_matrix(file: IO[bytes]) -> Any:
    """Read a matrix of Matrix Market.

    SciPy's reader reads beyond the end of a file that ends in NUL bytes, and makes arrays of the
    size that the header names before it looks for entries.
    """
    banner = file.readline(CHUNK).decode(errors="replace").lower().split()
    if len(banner) < 5 or banner[2] not in ("coordinate", "array") or banner[4] != "general":
        raise ValueError(f"its header {' '.join(banner)[:60]!r} is not that of a general matrix")
    _, _, kind, field, _ = banner
    schema = {str(j): pl.Float64 for j in range(3 if kind == "coordinate" else 2)}
    options = {"separator": " ", "has_header": False, "comment_prefix": "%", "schema": schema}
    sizes, cells = np.split(pl.read_csv(file.read(), **options).to_numpy(), [1])
    n, p = sizes[0, :2].astype(np.int64)
    if kind == "array":
        return cells[:, 0].reshape(p, n).T
    if len(cells) != sizes[0, 2] or max(n, p) > MOST_EMPTY + PER_ENTRY * len(cells):
        raise ValueError(
            f"it is {n} x {p} with {sizes[0, 2]:.0f} entries, of which {len(cells)} are there"
        )
    values = np.ones(len(cells)) if field == "pattern" else cells[:, 2]
    return coo_matrix((values, tuple(cells[:, :2].T.astype(np.int64) - 1)), (n, p))


def _opened(path: Path) -> Any:
    """Open a file as bytes, unpacked if it was packed."""
    return gzip.open(path) if path.suffix == ".gz" else open(path, "rb")


def _names_beside(path: Path, *files: str) -> list[str] | None:
    """Return the names in the first of these files beside a matrix; None if there is none.

    Those of the second column, which has the symbols of genes, or of the first if these repeat.
    """
    for file in (path.with_name(name + packed) for name in files for packed in ("", ".gz")):
        if file.is_file():
            with io.TextIOWrapper(_opened(file), encoding="utf-8") as lines:
                rows = [line.rstrip("\r\n").split("\t") for line in lines if line.strip()]
            columns = [[row[min(j, len(row) - 1)] for row in rows] for j in (1, 0)]
            return next((names for names in columns if len(set(names)) == len(names)), columns[1])
    return None


def read_h5ad(layout: Layout) -> Source:
    """Read X of an AnnData file, with the columns of obs that were asked for."""
    anndata = needed("anndata", "to read .h5ad", "anndata")
    with damage_named(layout):
        check_hdf5(layout.path)
        data = anndata.read_h5ad(layout.path)
    for name in layout.as_text:
        if name not in data.obs.columns:
            columns = list(map(str, data.obs.columns))
            others = near(name, columns) if columns else "it has none"
            parameter = "id_column" if name == layout.id_column else "label_column"
            raise layout.error(f"there is no column {shown(name)} in obs; {others}", parameter)
    matrix = data.X if issparse(data.X) else np.asarray(data.X)
    id_name = "obs_names" if layout.id_column is None else layout.id_column
    sides = {"obs_names": np.asarray(data.obs_names, object)} if id_name == "obs_names" else {}
    sides |= {name: np.asarray(data.obs[name], object) for name in layout.as_text}
    names = [str(name) for name in data.var_names]
    return of_matrix(layout, matrix, names, sides, id_name=id_name, is_upright=True)


def read_excel(layout: Layout) -> Source:
    """Read a sheet of a workbook of Excel: the one that is asked for, or the first with numbers."""
    calamine = needed("python_calamine", "to read .xlsx", "excel")
    with damage_named(layout):
        check_workbook(layout.path)
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(layout.path.read_bytes()))
        asked = book.sheet_names if layout.sheet is None else [_sheet_name(layout, book)]
        sheets = {}
        for name in asked:  # the first may explain the others
            rows = enumerate(book.get_sheet_by_name(name).to_python(skip_empty_area=False), 1)
            sheets[name] = [(line, row) for line, row in rows if any(cell != "" for cell in row)]
            if any(type(cell) in (int, float) for _, row in sheets[name] for cell in row):
                break
        else:
            name = asked[0]
    if len(sheets[name]) <= layout.header:
        raise layout.error(f"sheet {shown(name)} holds no row with data")
    lines, cells = zip(*sheets[name], strict=True)
    names, notes = [f"x{j}" for j in range(len(cells[0]))], []
    if others := [other for other in asked if other != name]:
        others_too = f"the file has {quoted(others)} too: --sheet."
        notes.append(f"Sheet {shortened(name, 60)!r} was read; {others_too}")
    if layout.header:
        top = line_of_names(cells)
        names = [_text(cell) or "" for cell in cells[top]]
        lines, cells = lines[top + 1 :], cells[top + 1 :]
        notes += [titles_note(top)] * (top > 0)
    columns = {}
    for j, column in enumerate(zip(*cells, strict=True)):
        values = [None if cell == "" else cell for cell in column]
        if all(cell is None or type(cell) in (int, float) for cell in values):
            columns[str(j)] = pl.Series(values, dtype=pl.Float64, strict=False)
        else:
            columns[str(j)] = pl.Series(map(_text, values), dtype=pl.String)
    where = "line {}".format
    return Source(
        layout,
        pl.DataFrame(columns),
        names,
        lambda row: where(lines[row]),
        parse=True,
        notes=tuple(notes),
    )


def _sheet_name(layout: Layout, book: Any) -> str:
    sheet, names = layout.sheet, book.sheet_names
    if isinstance(sheet, str) and sheet in names:
        return sheet
    if isinstance(sheet, int) and 0 <= sheet < len(names):
        return names[sheet]
    raise layout.error(f"there is no sheet {literal(repr(sheet))}; {near(str(sheet), names)}")


def _text(cell: Any) -> str | None:
    """Return a cell as text, None where it is missing; a number so that it reads back exactly."""
    if cell is None or cell != cell or (isinstance(cell, str) and not cell):
        return None
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return str(cell)


def of_matrix(
    layout: Layout,
    matrix: Any,
    names: list[str] | None = None,
    sides: dict[str, np.ndarray] | None = None,
    **more: Any,
) -> Source:
    """Make a source of a matrix, dense or sparse, and columns of text beside it."""
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        kind = f"shape {matrix.shape} and type {literal(matrix.dtype)}"
        raise layout.error(f"an array of {kind} is no table of numbers")
    names = [f"x{j}" for j in range(matrix.shape[1])] if names is None else names
    texts = {
        name: [str(x) if x == x and x is not None else None for x in side]
        for name, side in (sides or {}).items()
    }
    lengths = set(map(len, texts.values()))
    if len(names) != matrix.shape[1] or lengths - {matrix.shape[0]}:
        raise layout.error(f"the names do not fit the table's shape {matrix.shape}")
    columns = list(map(pl.Series, texts.values()))
    single = matrix.dtype in (np.float16, np.float32)
    if issparse(matrix):
        more["cells"] = csr_matrix(matrix, dtype=np.float32 if single else np.float64)
    else:  # in the byte order of this machine, and half precision as single
        dtype = np.float32 if single else matrix.dtype.newbyteorder("=")
        columns += [pl.Series(column) for column in np.asfortranarray(matrix, dtype=dtype).T]
    frame = pl.DataFrame({str(j): column for j, column in enumerate(columns)})
    return Source(layout, frame, [*texts, *names], **more)


@contextmanager
def damage_named(layout: Layout) -> Iterator[None]:
    """Turn whatever a reader of somebody else raises into one sentence on the file."""
    try:
        yield
    except (TableError, ImportError, MemoryError):
        raise
    except BaseException as error:
        # A panic of Rust is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        words = cleaned(first, 200).rstrip(".")
        what = literal(f"{layout.path.suffix}, it may be damaged ({words})")
        raise layout.error(f"the file cannot be read as {what}") from error


READERS = {
    **dict.fromkeys((".parquet", ".arrow", ".feather"), read_columns),
    **dict.fromkeys((".npy", ".npz"), read_numpy),
    ".xlsx": read_excel,
    ".h5ad": read_h5ad,
    ".mtx": read_mtx,
}


CHUNK = 1 << 24
# Rows and columns of a sparse matrix: so many, and ten times as many as there are entries.
MOST_EMPTY, PER_ENTRY = 1_000_000, 10
# Cells of a sheet, from its first to its last: so many, and twenty times those that are there.
MOST_CELLS, PER_CELL = 4_000_000, 20
# Bytes that a workbook unpacks to: so many, and two hundred times those that it takes.
MOST_BYTES, PER_BYTE = 1 << 26, 200
# Bytes of the arrays of a file of HDF5: so many, and as many times those of the file as gzip packs.
PER_PACKED_BYTE = 1100
CELL = re.compile(rb'<(?:\w+:)?(?:c|row)\b[^>]*?\br="([A-Z]{0,3})([0-9]{1,7})"')
LONGEST_CELL = 200  # bytes from the beginning of a cell to its name


def check_hdf5(path: Path) -> None:
    """Refuse a file of HDF5 whose reader would go on for ever, or make arrays of any size.

    Texts are in heaps, one object after the other. A reader of one that takes no bytes, which only
    a damaged file has, stays where it is.
    """
    h5py: Any = import_module("h5py")

    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for heap in re.finditer(rb"GCOL\x01\0\0\0", data):
            (size,) = unpack_from("<Q", data, heap.start() + 8)
            start, place, end = heap.start(), heap.start() + 16, heap.start() + size
            while place + 16 <= min(end, len(data)):
                number, size = unpack_from("<H6xQ", data, place)
                if number:  # an object; what is free has number 0
                    size = 16 + -(-size // 8) * 8
                if size == 0:
                    raise ValueError(f"its heap at byte {start} is broken")
                place += size
        n_bytes = len(data)
    sizes: list[int] = []

    def add(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):  # it is read chunk by chunk, each as a whole
            sizes.append(max(item.nbytes, math.prod(item.chunks or (0,)) * item.dtype.itemsize))

    with h5py.File(path) as contents:
        contents.visititems(add)
    if sum(sizes) > MOST_BYTES + PER_PACKED_BYTE * n_bytes:
        raise ValueError(f"its arrays claim {sum(sizes)} bytes")


def check_workbook(path: Path) -> None:
    """Refuse a workbook that unpacks to far more than it takes, or has cells far from all others.

    Its reader makes every cell from the first to the last of a sheet.
    """
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        n_bytes = sum(entry.file_size for entry in entries)
        if n_bytes > MOST_BYTES + PER_BYTE * path.stat().st_size:
            raise ValueError(f"it unpacks to {n_bytes} bytes")
        for entry in entries:
            if re.search(r"worksheets/[^/]*\.xml$", entry.filename):
                with archive.open(entry) as file:
                    _check_sheet(file)


def _check_sheet(file: IO[bytes]) -> None:
    n_cells = last_row = 0
    columns: set[bytes] = set()
    rest = b""
    while chunk := file.read(CHUNK):
        chunk = rest + chunk
        for column, row in CELL.findall(chunk):
            n_cells, last_row = n_cells + bool(column), max(last_row, int(row))
            columns.add(column)
        rest = chunk[max(chunk.rfind(b"<"), len(chunk) - LONGEST_CELL) :]
    # A is 1, and AA 27.
    numbers = (sum((x - 64) * 26**i for i, x in enumerate(reversed(name))) for name in columns)
    last_column = max(numbers, default=0)
    if last_row * last_column > MOST_CELLS + PER_CELL * n_cells:
        raise ValueError(f"its {n_cells} cells lie as far apart as {last_row} x {last_column}")
