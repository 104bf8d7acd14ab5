"""Tables in formats other than text."""

import datetime
import gzip
import zipfile

import anndata
import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix

from rskc.files import TableError, read_table


def complaint(path, **options):
    with pytest.raises(TableError) as caught:
        read_table(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(params=["parquet", "feather", "arrow"])
def columns_file(request, tmp_path):
    """Write a polars frame in a format of typed columns, and return its path."""

    def write(frame):
        path = tmp_path / f"t é.{request.param}"
        frame.write_parquet(path) if request.param == "parquet" else frame.write_ipc(path)
        return path

    return write


FRAME = pl.DataFrame(
    {
        "id": ["u", "v", "w"],
        "whole": [1, None, 3],
        "real": [0.1, float("nan"), 1 / 3],
        "none": pl.Series([None, None, None], dtype=pl.Null),
        "kind": pl.Series(["p", "q", "p"], dtype=pl.Categorical),
        "text": ["1", "2", "3"],
        "flag": [True, False, True],
        "day": [datetime.date(2024, 1, day) for day in (1, 2, 3)],
    }
)


def test_typed_columns(columns_file):
    path = columns_file(FRAME)
    words = complaint(path)
    assert "'kind', 'text', 'flag', 'day' (text, such as 'p' in row 1)" in words
    table = read_table(path, text_columns="drop", label_column="text")
    assert list(table.labels) == [1, 2, 3]
    assert table.dropped == {"kind": "text", "flag": "true and false", "day": "dates"}
    assert list(table.data.columns) == ["whole", "real", "none"]
    assert list(table.data.index) == ["u", "v", "w"]
    assert table.n_missing == 5
    np.testing.assert_array_equal(table.data["real"], [0.1, np.nan, 1 / 3])


def test_infinite_cells_are_found(columns_file):
    frame = pl.DataFrame({"a": [1.0, 2.0], "b": [1.0, -np.inf]})
    assert "row 2, column 'b'" in complaint(columns_file(frame))


def test_markers_of_missing_cells_are_for_all_formats(columns_file):
    frame = pl.DataFrame({"a": ["1", "-999", " 3"], "n": [1, 2, -999], "w": ["x", "?", "x"]})
    table = read_table(columns_file(frame), missing_values=["-999", "?"], text_columns="categories")
    assert table.data.isna().to_numpy().tolist() == [
        [False, False, False],
        [True, False, True],
        [False, True, False],
    ]


def test_text_of_digits_without_a_marker_stays_text(columns_file):
    frame = pl.DataFrame({"a": [1.5, -999.0, 2.5], "code": ["01234", "02345", "03456"]})
    table = read_table(columns_file(frame), missing_values=["-999"], text_columns="drop")
    assert table.dropped == {"code": "text"}
    assert table.n_missing == 1


@pytest.mark.parametrize("share", [0.2, 0.6, 0.95])
def test_damaged_columns(columns_file, share):
    path = columns_file(FRAME)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    assert "cannot be read" in complaint(path)
    path.write_bytes(b"a,b\n1,2\n" * 20)
    assert "cannot be read" in complaint(path)


def test_the_index_of_pandas_in_parquet_and_another_file_in_an_archive(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": [1.0, 2.0]}, index=["u", "v"]).to_parquet(path)
    assert list(read_table(path).data.index) == ["u", "v"]
    path = tmp_path / "t.npz"
    np.savez(path, X=np.eye(3))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("notes.txt", "no array")
    assert read_table(path).data.shape == (3, 3)


# --- NumPy ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f8", "f4", ">f8", "f2", "i4", "u1"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy(tmp_path, dtype, order):
    X = np.arange(12).reshape(4, 3).astype(dtype, order=order)
    np.save(tmp_path / "t.npy", X)
    data = read_table(tmp_path / "t.npy").data
    np.testing.assert_array_equal(data.to_numpy(), X)
    assert list(data.columns) == ["x0", "x1", "x2"]
    assert data.to_numpy().dtype == (np.float32 if dtype in ("f4", "f2") else np.float64)


def test_a_damaged_npy_and_one_with_objects(tmp_path):
    path = tmp_path / "t.npy"
    np.save(path, np.array([[None]]), allow_pickle=True)
    assert "cannot be read" in complaint(path)
    np.save(path, np.ones((2, 2)))
    path.write_bytes(path.read_bytes()[:-1])
    assert "cannot be read" in complaint(path)


def test_npz(tmp_path):
    path, X = tmp_path / "t.npz", np.arange(6.0).reshape(3, 2)
    np.savez(path, whatever=X)
    np.testing.assert_array_equal(read_table(path).data.to_numpy(), X)
    names = {"feature_names": ["f", "g"], "case_names": ["u", "v", "w"]}
    np.savez(path, X=X, y=[0, 1, 0], other=X, **names)
    table = read_table(path, label_column="y")
    assert list(table.data.columns) == ["f", "g"]
    assert list(table.data.index) == ["u", "v", "w"]
    assert list(table.labels) == [0, 1, 0]
    assert table.notes == ("Left out: 'other', beside X.",)
    np.savez(path, a=X, b=X)
    assert "'X'" in complaint(path)
    np.savez(path, X=X, feature_names=["f"])
    assert "do not fit" in complaint(path)
    np.savez(path, X=X, feature_names=np.array([2**31 - 1, 65], np.uint32).view("U1"))
    assert "cannot be read" in complaint(path)
    path.write_bytes(path.read_bytes()[:100])
    assert "cannot be read" in complaint(path)


# --- Excel ----------------------------------------------------------------------------------------


@pytest.fixture
def book(tmp_path):
    """Write sheets of an Excel file."""

    def write(**sheets):
        workbook = openpyxl.Workbook()
        workbook.remove(workbook.active)
        for title, rows in sheets.items():
            sheet = workbook.create_sheet(title)
            for row in rows:
                sheet.append(row)
        workbook.save(tmp_path / "t é.xlsx")
        return tmp_path / "t é.xlsx"

    return write


def test_excel_is_exact(book):
    values = [0.1, 1 / 3, 1e-20, 1e300, -7.0]
    path = book(first=[["id", "a", "b"], *([f"c{i}", x, i] for i, x in enumerate(values))])
    table = read_table(path)
    np.testing.assert_array_equal(table.data["a"], values)
    assert list(table.data.index) == ["c0", "c1", "c2", "c3", "c4"]


def test_excel_sheets_and_errors(book):
    path = book(
        one=[["a", "b"], [1, 2], [], [3, "oh"], [4, 5], [5, None]],
        two=[["a", "day", "flag"], [1, datetime.date(2024, 1, 2), True]],
        three=[["a"]],
    )
    assert "line 4, column 'b': 'oh' is not a number" in complaint(path)
    assert "'day', 'flag'" in complaint(path, sheet="two")
    assert "no row with data" in complaint(path, sheet=2)
    assert "perhaps 'three' is meant" in complaint(path, sheet="thre")
    assert "no sheet 9" in complaint(path, sheet=9)
    table = read_table(path, missing_values=["oh"])
    assert table.n_missing == 2
    path.write_bytes(path.read_bytes()[:500])
    assert "cannot be read" in complaint(path)


# --- AnnData --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
def test_h5ad(tmp_path, sparse):
    X = np.array([[1, 0], [0, 2.5], [3, 0]], np.float32)
    obs = pd.DataFrame({"type": ["p", "q", "p"]}, index=["u", "v", "w"])
    var = pd.DataFrame(index=["g", "h"])
    path = tmp_path / "t.h5ad"
    anndata.AnnData(csr_matrix(X) if sparse else X, obs=obs, var=var).write_h5ad(path)
    table = read_table(path, label_column="type")
    assert list(table.labels) == ["p", "q", "p"]
    assert list(table.data.index) == ["u", "v", "w"]
    np.testing.assert_array_equal(table.data.to_numpy(), X)
    assert table.data.to_numpy().dtype == np.float32
    assert "perhaps 'type' is meant" in complaint(path, label_column="typ")
    path.write_bytes(path.read_bytes()[:100])
    assert "cannot be read" in complaint(path)


# ---- What files claim

MARKET = "%%MatrixMarket matrix coordinate real general\n% a\n{}\n1 1 1.5\n2 2 2\n3 3 3\n4 1 4\n"


@pytest.mark.parametrize("beside", ["", "features.tsv.gz", "barcodes.tsv.gz"])
def test_damaged_packed_files_are_one_sentence(tmp_path, beside):
    """A byte that is wrong, or the end that is missing."""
    good = gzip.compress(MARKET.format("4 3 4").encode())
    (tmp_path / "m.mtx.gz").write_bytes(good)
    (tmp_path / "features.tsv.gz").write_bytes(gzip.compress(b"a\nb\nc\nd\n"))
    (tmp_path / "barcodes.tsv.gz").write_bytes(gzip.compress(b"r\ns\nt\n"))
    assert read_table(tmp_path / "m.mtx.gz").data.shape == (3, 4)
    path = tmp_path / (beside or "m.mtx.gz")
    whole = path.read_bytes()
    for data in (whole[:-9], whole[:12] + b"\xff\xff\xff" + whole[15:]):
        path.write_bytes(data)
        with pytest.raises(TableError, match=r"may be damaged"):
            read_table(tmp_path / "m.mtx.gz")


def test_workbooks_that_take_far_more_than_the_file_are_refused(book):
    """The reader would make 17 billion cells of the first one."""
    path = book(one=[["a", "b"], [1, 2], [2, 5]])
    opened = openpyxl.load_workbook(path)
    for last, n in (("B1000", 3), ("XFD1048576", None)):
        opened.active[last] = 3
        opened.save(path)
        if n is not None:
            assert len(read_table(path).data) == n
    assert "its cells lie as far apart as 1048576 x 16384" in complaint(path)
    book(one=[["a"], [1], [2]])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/more.xml", bytes(100_000_000))
    assert "it unpacks to 1000" in complaint(path)


@pytest.mark.parametrize("notes", [[], [["Made", "by", "hand"]]])
def test_a_title_above_the_names_and_other_sheets(book, notes):
    """A sheet of words is passed over."""
    rows = [["Results of 2024"], [], ["by the laboratory"], ["a", "b", "c"]]
    rows += [[i / 3, 2 * i, 3.5] for i in range(5)]
    table = read_table(book(Notes=notes, Data=rows) if notes else book(Data=rows, Notes=notes))
    assert list(table.data.columns) == ["a", "b", "c"]
    assert table.data.shape == (5, 3)
    assert table.where(0) == "line 5"
    assert "Sheet 'Data' was read; the file has 'Notes' too" in table.notes[0]
    assert "2 lines above the names" in table.notes[1]
