"""Tables in other formats than text: Parquet, Arrow, NumPy, Excel, AnnData, Matrix Market.

Sparse ones are not made dense.

Excel is read by python-calamine, which hands over each cell as it is; read as text by way of
fastexcel, 1/3 comes back as 0.333333333 and 1e-20 as 0.
"""

import gzip
import io
import mmap
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import unpack_from
from typing import Any

import numpy as np
from scipy.io import mmread
from scipy.sparse import csr_matrix, issparse, load_npz

from rskc.files._source import (
    Layout,
    Source,
    TableError,
    check_text,
    line_of_names,
    literal,
    near,
    needed,
    pl,
    shown,
    titles_note,
)
from rskc.utils.wording import cleaned, quoted, shortened

# Where pandas keeps an index without name in a Parquet file.
PANDAS_INDEX = "__index_level_0__"


def read_columns(layout: Layout) -> Source:
    """Read columns of Parquet or Arrow."""
    with damage_named(layout):
        if layout.path.suffix.lower() == ".parquet":
            return of_frame(layout, pl.read_parquet(layout.path.read_bytes()))
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
        for array in arrays.values():
            check_text(array)
        if {"format", "shape", "data"} <= arrays.keys():  # as SciPy writes a sparse matrix
            return of_matrix(layout, load_npz(layout.path))
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    usual = [name for name in ("X", "data") if name in tables]
    if not usual and len(tables) != 1:
        raise layout.error(f"of its {len(tables)} tables, one must be called 'X' to be read")
    table = (usual or tables)[0]
    matrix = arrays.pop(table)
    features, cases = arrays.pop("feature_names", None), arrays.pop("case_names", None)
    sides = {name: arrays.pop(name) for name in layout.as_text if name in arrays}
    id_name = None
    if cases is not None and layout.id_column is None:
        id_name, sides = "case_names", {"case_names": cases} | sides
    notes = (f"Left out: {quoted(arrays)}, beside {table}.",) if arrays else ()
    names = None if features is None else [str(name) for name in np.ravel(features)]
    return of_matrix(layout, matrix, names, sides, id_name=id_name, notes=notes)


def read_mtx(layout: Layout) -> Source:
    """Read a matrix of Matrix Market, rows being cases.

    With the names of features and barcodes beside it, as 10x Genomics writes them, rows are
    features.
    """
    with damage_named(layout):
        data = _unpacked(layout.path)
        if b"\0" in data:  # SciPy would read on behind the end
            raise ValueError("it holds bytes that are 0")
        matrix = mmread(io.BytesIO(data))
        if issparse(matrix) and max(matrix.shape) > MOST_EMPTY + PER_ENTRY * matrix.nnz:
            raise ValueError(f"it has shape {matrix.shape} and {matrix.nnz} entries")
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


def _names_beside(path: Path, *files: str) -> list[str] | None:
    """Return the names in the first of these files beside a matrix; None if there is none.

    Those of the second column, which has the symbols of genes, or of the first if these repeat.
    """
    for file in (path.with_name(name + packed) for name in files for packed in ("", ".gz")):
        if file.is_file():
            lines = _unpacked(file).decode().split("\n")
            rows = [line.rstrip("\r").split("\t") for line in lines if line.strip()]
            columns = [[row[min(j, len(row) - 1)] for row in rows] for j in (1, 0)]
            return next((names for names in columns if len(set(names)) == len(names)), columns[1])
    return None


def _unpacked(path: Path) -> bytes:
    """Return the bytes of a file that may be packed."""
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def read_h5ad(layout: Layout) -> Source:
    """Read X of an AnnData file, with the columns of obs that were asked for."""
    anndata = needed("anndata", "to read .h5ad", "anndata")
    with damage_named(layout):
        check_heaps(layout.path)
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


# Rows and columns of a sparse matrix: so many, and ten times as many as there are entries.
MOST_EMPTY, PER_ENTRY = 1_000_000, 10
# Cells of a sheet, from its first to its last: so many, and twenty times those that are there.
MOST_CELLS, PER_CELL = 4_000_000, 20
# Bytes that a workbook unpacks to: so many, and two hundred times those that it takes.
MOST_BYTES, PER_BYTE = 1 << 26, 200
CELL = re.compile(rb'<(?:\w+:)?(?:c|row)\b[^>]*?\br="([A-Z]{0,3})([0-9]+)"')


def check_workbook(path: Path) -> None:
    """Refuse a workbook that unpacks to far more than it takes, or has cells far from all others.

    Its reader makes every cell from the first to the last of a sheet.
    """
    with zipfile.ZipFile(path) as archive:
        n_bytes = sum(entry.file_size for entry in archive.infolist())
        if n_bytes > MOST_BYTES + PER_BYTE * path.stat().st_size:
            raise ValueError(f"it unpacks to {n_bytes} bytes")
        for name in archive.namelist():
            if not re.search(r"worksheets/[^/]*\.xml$", name):
                continue
            cells = CELL.findall(archive.read(name))
            columns = {column for column, _ in cells}
            # A is 1, and AA 27.
            width = max(
                (sum((x - 64) * 26**i for i, x in enumerate(c[::-1])) for c in columns), default=0
            )
            height = max((int(row) for _, row in cells), default=0)
            if height * width > MOST_CELLS + PER_CELL * len(cells):
                raise ValueError(f"its cells lie as far apart as {height} x {width}")


def check_heaps(path: Path) -> None:
    """Refuse a file of HDF5 in whose heaps of texts an object takes no bytes.

    Only a damaged file has one, and its reader would stay there for ever.
    """
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for heap in re.finditer(rb"GCOL\x01\0\0\0", data):
            place = heap.start() + 16
            end = heap.start() + unpack_from("<Q", data, heap.start() + 8)[0]
            while place + 16 <= min(end, len(data)):
                number, size = unpack_from("<H6xQ", data, place)
                if number:  # an object; what is free has number 0
                    size = 16 + -(-size // 8) * 8
                if size == 0:
                    raise ValueError(f"its heap at byte {heap.start()} is broken")
                place += size
