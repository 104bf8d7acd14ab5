"""Reading tables: what comes out of each format, and what is said of each fault."""

import os
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rskc.files import TableError, read_table

PLAIN = "id,a,b\nu,1,2.5\nv,NA,-3e2\nw,0.1,\n"


@pytest.fixture
def put(tmp_path):
    """Write text or bytes to a file, and return its path."""

    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def complaint(path, **options):
    """The one sentence that reading a file ends with."""
    with pytest.raises(TableError) as caught:
        read_table(path, **options)
    words = str(caught.value)
    assert words.startswith(repr(str(path)))
    assert words.endswith(".")
    assert "\n" not in words
    return words


def assert_plain(table):
    expected = pd.DataFrame({"a": [1, np.nan, 0.1], "b": [2.5, -300, np.nan]}, index=list("uvw"))
    pd.testing.assert_frame_equal(table.data, expected)
    assert table.id_column == "id"


# --- Text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "change", "options"),
    [
        ("t.csv", lambda text: text, {}),
        ("t.CSV", lambda text: text, {}),
        ("t.tsv", lambda text: text.replace(",", "\t"), {}),
        ("t.txt", lambda text: text.replace(",", "\t"), {}),
        ("t.txt", lambda text: text.replace(",", ";"), {}),
        ("t.csv", lambda text: text.replace(",", ";"), {}),
        ("t.csv", lambda text: text.replace(",", ";").replace(".", ","), {"decimal": ","}),
        ("t.csv", lambda text: text.replace(",", ";").replace(".", ","), {}),
        ("t.csv", lambda text: text.replace(",", "|"), {"separator": "|"}),
        ("t.csv", lambda text: "\ufeff" + text, {}),
        ("t.csv", lambda text: text.replace("\n", "\r\n"), {}),
        ("t.csv", lambda text: text.replace("\n", "\n\n"), {}),
        ("t.csv", lambda text: "\n\n" + text, {}),
        ("t.csv", lambda text: text.rstrip("\n"), {}),
        ("t.csv", lambda text: text.replace("u,1,", '"u","1",'), {}),
        ("t.csv", lambda text: text.replace("u,1,", "u, 1 ,"), {}),
        ("a b é 🙂[*].csv", lambda text: text, {}),
        ("t.csv", lambda text: text, {"id_column": "id"}),
    ],
)
def test_dialects_of_text_say_the_same(put, name, change, options):
    assert_plain(read_table(put(change(PLAIN), name), **options))


def test_floats_read_back_exactly(put):
    values = np.random.default_rng(0).normal(size=500) * 10.0 ** np.arange(-250, 250)
    path = put("a\n" + "\n".join(map(repr, values.tolist())))
    np.testing.assert_array_equal(read_table(path).data["a"], values)


# --- Complaints about text ------------------------------------------------------------------------


def test_a_carriage_return_within_a_line_is_refused(put):
    assert "line 2 cannot be understood" in complaint(put("a,b\n1,2\r3\n4,5\n"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "t.csv")
    assert "or a device" in complaint(tmp_path / "t.csv")


def test_no_permission(put, monkeypatch):
    path = put(PLAIN)

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("builtins.open", refuse)
    assert "Permission denied" in complaint(path)


def test_a_missing_package_is_named(put, monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr("rskc.files._source.import_module", absent)
    for name, extra in (("t.csv", "tables"), ("t.xlsx", "excel"), ("t.h5ad", "anndata")):
        with pytest.raises(ImportError, match=rf'pip install "rskc\[{extra}\]"'):
            read_table(put("a\n1\n", name))


# --- Hostile names --------------------------------------------------------------------------------

HOSTILE = [
    '"quoted"',
    "a,b;c\td",
    "line\nbreak",
    "<script>alert(1)</script>",
    "🙂",
    "\u202eright to left",
    "=cmd|'/c calc'!A1",
    "x" * 10_000,
    "{0}%s\\n",
    "NaN",
    "__index_level_0__",
]
# A carriage return alone ends a line for the csv module and none for polars.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\x00"), min_size=1)
names = texts.map(str.strip).filter(bool)


@given(st.lists(names.filter(lambda name: name != "id"), min_size=2, max_size=6, unique=True))
@example(HOSTILE)
def test_any_name_of_a_column_or_a_case_survives(tmp_path_factory, names):
    path = tmp_path_factory.mktemp("names") / "t.csv"
    columns = {name: np.arange(len(names)) + 0.5 for name in names}
    path.write_bytes(pl.DataFrame({"id": names, **columns}).write_csv().encode())
    table = read_table(path, id_column="id").data
    assert list(table.columns) == list(table.index) == names


like_tables = st.text(alphabet='ab1,;\t"\n.- ', max_size=80).map(str.encode)


@given(st.binary(max_size=200) | like_tables, st.sampled_from([".csv", ".tsv", ".txt", ".csv.gz"]))
def test_any_bytes_are_a_table_or_one_error(tmp_path_factory, data, suffix):
    path = tmp_path_factory.mktemp("bytes") / f"t{suffix}"
    path.write_bytes(data)
    try:
        cells = read_table(path, text_columns="drop").data.to_numpy()
    except TableError:
        complaint(path, text_columns="drop")
    else:
        assert cells.size
        assert not np.isinf(cells).any()


def test_errors_name_parameters_as_their_reader_does(put):
    path = put("{id_column},{}\n{drop},1\n{x,2\n", "{n}{0}.csv")
    with pytest.raises(TableError) as raised:
        read_table(path, label_column="{kind}")
    error = pickle.loads(pickle.dumps(raised.value))
    assert error.parameter == "label_column"
    words = "there is no column '{kind}', given as label_column; perhaps '{}' is meant."
    assert str(error).endswith("{n}{0}.csv': " + words)
    assert "'{kind}', given as --class; perhaps" in error.phrased({"label_column": "--class"})
    path = put("a,{b}\n1,x{y}\n2,3\n4,5\n", "{n}.csv")
    with pytest.raises(TableError, match=r"column '\{b\}': 'x\{y\}' is not a number") as raised:
        read_table(path)
    assert "name in --missing what" in raised.value.phrased({"missing_values": "--missing"})
