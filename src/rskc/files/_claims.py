"""What files claim about their size, compared with what they hold, before a reader believes it."""

from __future__ import annotations

import math
import mmap
import re
import zipfile
from functools import partial
from importlib import import_module
from pathlib import Path
from struct import unpack_from
from typing import IO, Any

CHUNK = 1 << 24
# Rows and columns of a sparse matrix: so many, and ten times as many as there are entries.
MOST_EMPTY, PER_ENTRY = 1_000_000, 10
# Bytes of the shortest entry, such as "1 1" or "1", and the end of its line.
SHORTEST = {b"coordinate": 4, b"array": 2}
# Cells of a sheet, from its first to its last: so many, and twenty times those that are there.
MOST_CELLS, PER_CELL = 4_000_000, 20
# Bytes that a workbook unpacks to: so many, and two hundred times those that it takes.
MOST_BYTES, PER_BYTE = 1 << 26, 200
# Bytes of the arrays of a file of HDF5: so many, and as many times those of the file as gzip packs.
PER_PACKED_BYTE = 1100
CELL = re.compile(rb'<(?:\w+:)?(?:c|row)\b[^>]*?\br="([A-Z]{0,3})([0-9]{1,7})"')
LONGEST_CELL = 200  # bytes from the beginning of a cell to its name


def check_market(file: IO[bytes]) -> None:
    """Refuse a Matrix Market file whose reader would crash, or go on for ever.

    SciPy's reads beyond the end of a file that ends in NUL bytes, and makes arrays of the size that
    the header names before it looks for entries.
    """
    banner = file.readline(CHUNK).lower().split()
    kind = banner[2] if len(banner) > 2 else b""
    lines = iter(partial(file.readline, CHUNK), b"")
    header = next((line for line in lines if line.strip() and line[:1] != b"%"), b"")
    sizes = [int(each) for each in header.split() if re.fullmatch(rb"[0-9]{1,18}", each)]
    if len(sizes) != {b"coordinate": 3, b"array": 2}.get(kind) or b"\0" in header:
        raise ValueError(f"its header {header[:60].decode(errors='replace').strip()!r} is none")
    n_bytes = 0
    while chunk := file.read(CHUNK):
        n_bytes += len(chunk)
        if b"\0" in chunk:
            raise ValueError("it holds NUL bytes, which no text does")
    n_entries = sizes[2] if kind == b"coordinate" else sizes[0] * sizes[1]
    symmetric = 2 if len(banner) > 4 and banner[4] != b"general" else 1
    if n_entries * SHORTEST[kind] > symmetric * (n_bytes + 2):
        raise ValueError(f"its header claims {n_entries} entries, and it ends before")
    if kind == b"coordinate" and max(sizes[:2]) > MOST_EMPTY + PER_ENTRY * n_entries:
        raise ValueError(f"it is {sizes[0]} x {sizes[1]} with {n_entries} entries")


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
