"""Tables in other formats than text: Parquet, Arrow, NumPy, Excel, AnnData.

Excel is read by python-calamine, which hands over each cell as it is; read as text by way of
fastexcel, 1/3 comes back as 0.333333333 and 1e-20 as 0.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from rskc.files._needs import needed
from rskc.files._source import Layout, Source, near, row_number, shown

NAMES_IN_NPZ = ("X", "data")
# Where pandas keeps an index without name in a Parquet file.
PANDAS_INDEX = "__index_level_0__"


def of_columns(layout: Layout, reader: str, **more: Any) -> Source:
    """Read Parquet or Arrow, by the name of the function of polars."""
    pl = needed("polars", "to read tables", "tables")
    source: Any = layout.path.read_bytes() if reader == "read_ipc" else str(layout.path.absolute())
    options = more if reader == "read_ipc" else {"glob": False, **more}
    panic = getattr(pl.exceptions, "PanicException", pl.exceptions.PolarsError)
    try:
        frame = getattr(pl, reader)(source, **options)
    except (pl.exceptions.PolarsError, panic, OSError, ValueError) as error:
        raise damaged(layout, error) from error
    names = frame.columns
    id_name = PANDAS_INDEX if PANDAS_INDEX in names else None
    return Source(_numbered(frame), names, row_number, id_name=id_name)


def read_npy(layout: Layout) -> Source:
    """Read a matrix of NumPy."""
    try:
        matrix = np.load(layout.path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise damaged(layout, error) from error
    return of_matrix(layout, matrix)


def read_npz(layout: Layout) -> Source:
    """Read the matrix X of an archive of NumPy, and the names that go with it."""
    try:
        # Opened here: NumPy leaves the file of a damaged archive open.
        with open(layout.path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise damaged(layout, error) from error
    main = _main_array(layout, arrays)
    matrix = arrays.pop(main)
    features, cases = arrays.pop("feature_names", None), arrays.pop("case_names", None)
    sides = {name: arrays.pop(name) for name in layout.as_text if name in arrays}
    if layout.id_column is not None:
        cases = None
    if cases is not None:
        sides = {"case_names": cases} | sides
    left_out = dict.fromkeys(arrays, f"another array than {main}")
    names = None if features is None else [str(name) for name in np.ravel(features)]
    id_name = None if cases is None else "case_names"
    return of_matrix(layout, matrix, names, sides, id_name=id_name, left_out=left_out)


def _main_array(layout: Layout, arrays: dict[str, np.ndarray]) -> str:
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    found = [name for name in NAMES_IN_NPZ if name in tables] or tables
    if len(found) == 1 or (found and found[0] in NAMES_IN_NPZ):
        return found[0]
    raise layout.error(f"of its {len(tables)} tables, one must be called 'X' to be read")


def read_h5ad(layout: Layout) -> Source:
    """Read X of an AnnData file, with the columns of obs that were asked for."""
    anndata = needed("anndata", "to read .h5ad", "anndata")
    try:
        data = anndata.read_h5ad(layout.path)
    except Exception as error:  # h5py and anndata raise whatever comes
        raise damaged(layout, error) from error
    for name in layout.as_text:
        if name not in data.obs.columns:
            raise layout.error(f"there is no column {shown(name)} in obs; {_in_obs(data, name)}")
    matrix = data.X.toarray() if hasattr(data.X, "toarray") else np.asarray(data.X)
    id_name = "obs_names" if layout.id_column is None else layout.id_column
    sides = {"obs_names": np.asarray(data.obs_names, object)} if id_name == "obs_names" else {}
    sides |= {name: np.asarray(data.obs[name], object) for name in layout.as_text}
    names = [str(name) for name in data.var_names]
    return of_matrix(layout, matrix, names, sides, id_name=id_name)


def _in_obs(data: Any, name: str) -> str:
    return near(name, map(str, data.obs.columns)) if len(data.obs.columns) else "it has none"


def read_excel(layout: Layout) -> Source:
    """Read a sheet of a workbook of Excel."""
    calamine = needed("python_calamine", "to read .xlsx", "excel")
    pl = needed("polars", "to read tables", "tables")
    try:
        book = calamine.CalamineWorkbook.from_path(str(layout.path))
    except (calamine.CalamineError, OSError) as error:
        raise damaged(layout, error) from error
    sheet = book.get_sheet_by_name(_sheet_name(layout, book.sheet_names))
    rows = list(enumerate(sheet.to_python(skip_empty_area=False), 1))
    lines, cells = _filled(rows)
    if len(cells) <= layout.header:
        raise layout.error(f"sheet {shown(sheet.name)} holds no row with data")
    names = [_text(cell) or "" for cell in cells[0]]
    if layout.header:
        lines, cells = lines[1:], cells[1:]
    else:
        names = [f"x{j}" for j in range(len(names))]
    columns = [_series(pl, column) for column in zip(*cells, strict=True)]
    frame = pl.DataFrame({str(j): column for j, column in enumerate(columns)})
    return Source(frame, names, lambda row: f"line {lines[row]}", parse=True)


def _filled(rows: list[tuple[int, list[Any]]]) -> tuple[list[int], list[list[Any]]]:
    """Numbers and cells of the rows that are not blank."""
    kept = [(number, row) for number, row in rows if any(cell != "" for cell in row)]
    return [number for number, _ in kept], [row for _, row in kept]


def _sheet_name(layout: Layout, names: list[str]) -> str:
    sheet = 0 if layout.sheet is None else layout.sheet
    if isinstance(sheet, str) and sheet in names:
        return sheet
    if isinstance(sheet, int) and 0 <= sheet < len(names):
        return names[sheet]
    raise layout.error(f"there is no sheet {sheet!r}; {near(str(sheet), names)}")


def _series(pl: Any, cells: Sequence[Any]) -> Any:
    cells = [None if isinstance(cell, str) and not cell else cell for cell in cells]
    if all(cell is None or type(cell) in (int, float) for cell in cells):
        return pl.Series(cells, dtype=pl.Float64, strict=False)
    return pl.Series([_text(cell) for cell in cells], dtype=pl.String)


def _text(cell: Any) -> str | None:
    """A cell as text; a number so that it reads back exactly."""
    if cell is None or (isinstance(cell, str) and not cell):
        return None
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return str(cell)


def of_matrix(
    layout: Layout,
    matrix: np.ndarray,
    names: list[str] | None = None,
    sides: dict[str, np.ndarray] | None = None,
    **more: Any,
) -> Source:
    """A matrix, and columns of text beside it."""
    pl = needed("polars", "to read tables", "tables")
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise layout.error(
            f"an array of shape {matrix.shape} and type {matrix.dtype} is no table of numbers"
        )
    names = [f"x{j}" for j in range(matrix.shape[1])] if names is None else names
    sides = {} if sides is None else sides
    if len(names) != matrix.shape[1] or any(len(side) != len(matrix) for side in sides.values()):
        raise layout.error(f"the names do not fit the table's shape {matrix.shape}")
    beside = [pl.Series([_side(cell) for cell in side]) for side in sides.values()]
    columns = [*beside, *(pl.Series(column) for column in _native(matrix).T)]
    frame = pl.DataFrame({str(j): column for j, column in enumerate(columns)})
    return Source(frame, [*sides, *names], row_number, **more)


def _native(matrix: np.ndarray) -> np.ndarray:
    """In the byte order of this machine, half precision as single."""
    dtype = np.dtype(np.float32) if matrix.dtype == np.float16 else matrix.dtype.newbyteorder("=")
    return np.asfortranarray(matrix, dtype=dtype)


def _side(cell: Any) -> str | None:
    return None if cell is None or cell != cell else str(cell)


def _numbered(frame: Any) -> Any:
    return frame.rename(dict(zip(frame.columns, map(str, range(frame.width)), strict=True)))


def damaged(layout: Layout, error: BaseException) -> Exception:
    """That a file cannot be read, with the beginning of what is said of it."""
    words = (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")
    kind = layout.path.suffix
    return layout.error(f"the file cannot be read as {kind}, it may be damaged ({words})")
