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


def table_or_complaint(path):
    try:
        return read_table(path, text_columns="drop")
    except TableError:
        return complaint(path, text_columns="drop")


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
        ("t.csv", lambda text: text.replace("\n", "\r"), {}),
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


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_other_encodings_when_asked_for(put, encoding):
    path = put("id,größe\nä,1\nö,2\n".encode(encoding))
    table = read_table(path, encoding=encoding)
    assert list(table.data.columns) == ["größe"]
    assert list(table.data.index) == ["ä", "ö"]


def test_what_a_table_says_of_itself(put):
    text = "case,flat,x,none,class,note\nu,1,2,,3,s\nv,1,NA,,4,t\nw,,7,,3,s\n"
    path = put(text)
    table = read_table(path, label_column="class", drop=["note"])
    assert list(table.data.columns) == ["flat", "x", "none"]
    assert list(table.labels) == [3, 4, 3]
    assert table.labels.dtype.kind == "i"
    assert table.dropped == {"note": "asked for"}
    assert (table.constant, table.empty, table.n_missing) == (["flat"], ["none"], 5)
    assert table.path == path
    assert len(table.sha256) == 64


def test_ids_stay_as_they_are_written(put):
    path = put("country,code,x\nNA,007,1\nDE,1e3,2\n")
    table = read_table(path, drop="code")
    assert list(table.data.index) == ["NA", "DE"]
    table = read_table(path, id_column="code", drop="country")
    assert list(table.data.index) == ["007", "1e3"]


@pytest.mark.parametrize("text", [",a,b\n1,5,6\n2,7,8\n", "a,b\n1,5,6\n2,7,8\n"])
def test_a_first_column_without_name_is_the_index_of_pandas_or_r(put, text):
    table = read_table(put(text))
    assert table.id_column == ""
    assert list(table.data.index) == ["1", "2"]
    assert list(table.data.columns) == ["a", "b"]


def test_separators_at_the_ends_of_lines_make_no_column(put):
    table = read_table(put("a,b,\n1,2,\n3,4,\n"))
    assert list(table.data.columns) == ["a", "b"]


def test_features_in_rows(put):
    path = put("gene,about,s1,s2,s3\ng1,xx,1,2,3\ng2,yy,4,,6\n")
    table = read_table(path, features_in_rows=True, drop=["about"])
    assert list(table.data.columns) == ["g1", "g2"]
    assert list(table.data.index) == ["s1", "s2", "s3"]
    np.testing.assert_array_equal(table.data["g2"], [4, np.nan, 6])
    assert table.id_column == "gene"
    assert "features are in rows" in complaint(path, features_in_rows=True, label_column="gene")


def test_without_header(put):
    path = put("1.5,2\n3,4\n")
    table = read_table(path, header=False)
    assert list(table.data.columns) == ["x0", "x1"]
    assert table.data.shape == (2, 2)
    assert "header=False" in complaint(path)


def test_floats_read_back_exactly(put):
    values = np.random.default_rng(0).normal(size=500) * 10.0 ** np.arange(-250, 250)
    path = put("a\n" + "\n".join(map(repr, values.tolist())))
    np.testing.assert_array_equal(read_table(path).data["a"], values)


# --- Complaints about text ------------------------------------------------------------------------


def test_a_carriage_return_within_a_line_is_refused(put):
    assert "line 2 cannot be understood" in complaint(put("a,b\n1,2\r3\n4,5\n"))


def test_a_line_of_separators_is_a_case_and_a_blank_line_is_none(put):
    table = read_table(put("a,b\n1,2\n,\n\n3,4\n"))
    assert len(table.data) == 3
    assert table.data.iloc[1].isna().all()


DATES = {
    "2024-12-31": 20088,
    "2024/12/31": 20088,
    "31.12.2024": 20088,
    "31.12.24 18:00": 20088.75,
    "12/31/2024": 20088,
    "31/12/2024 6:00 PM": 20088.75,
    "31. Dez 2024": 20088,
    "31 December 2024": 20088,
    "31-Dec-24": 20088,
    "Dec. 31st, 2024": 20088,
    "2024-12-31T06:00:00.25Z": 20088.25,
    "2024-12": 20058,
}


@pytest.mark.parametrize(("text", "day"), DATES.items())
def test_dates_as_people_write_them(put, text, day):
    path = put(f'a,since\n1,"{text}"\n2,\n3,"{text}"\n')
    assert read_table(path, text_columns="drop").dropped == {"since": "dates"}
    days = read_table(path, date_columns="numbers").data["since"]
    np.testing.assert_allclose(days, [day, np.nan, day])


@pytest.mark.parametrize("text", ["31 Dozen 2024", "1.2.3.4", "2024-13", "7 of 10"])
def test_words_and_numbers_that_are_no_dates(put, text):
    path = put(f"a,b\n1,{text}\n2,{text}\n")
    assert read_table(path, text_columns="drop").dropped["b"] != "dates"


def test_a_title_above_the_names(put):
    for title in ("Customers of 2026", "Customers;;;", "Customers\n\nof 2026"):
        table = read_table(put(f"{title}\nid;a;b;c\nu;1;2;3\nv;4;5,5;6\n"))
        assert table.data.to_numpy().tolist() == [[1, 2, 3], [4, 5.5, 6]]
        assert table.notes[0].startswith("Left out as titles")
    assert "line 5, column 'a': 'x'" in complaint(put("t\n\na,b,c\n1,2,3\nx,3,3\n4,5,3\n"))
    assert "line 2 holds numbers" in complaint(put("t\n1,2.5,3\n4,5,6\n7,8,9\n"))
    assert "column 2 has no name" in complaint(put("a,\nu,1\nv,2\n"))


@pytest.mark.parametrize("mark", ["|", " "])
def test_other_separators(put, mark):
    path = put(mark.join("abc") + "\n" + mark.join("123") + "\n", "t.txt")
    assert read_table(path).data.to_numpy().tolist() == [[1, 2, 3]]
    assert "it has one, 'a~b': if another mark" in complaint(put("a~b\nu~1\nv~2\n"))
    words = put(f"a{mark}b,c{mark}d\n1,2\n")
    assert list(read_table(words).data.columns) == [f"a{mark}b", f"c{mark}d"]


WRITTEN = [
    (["12%", "5 %", "", "0"], [12, 5, None, 0], "in %"),
    (["8.4 kg", "1kg", ".5 KG"], [8.4, 1, 0.5], "in kg"),
    (["1 day", "3 days", "2 days"], [1, 3, 2], "in day"),
    (["$1,200.50", "-$3", "$-4.5"], [1200.5, -3, -4.5], "in $"),
    (["1,234,567", "89", "12"], [1234567, 89, 12], "with marks between thousands"),
    (["1,234", "567", "12"], [1234, 567, 12], "with marks between thousands"),
    (["3.179,93 €", "128,75 €"], [3179.93, 128.75], "in €"),
    (["1 200,5 m2", "3 m2"], [1200.5, 3], "in m2"),
    (["<5", "7.5", "9", ">90"], [5, 7.5, 9, 90], "2 cells such as <5 as the limit"),
]


@pytest.mark.parametrize(("cells", "expected", "how"), WRITTEN)
def test_numbers_may_have_units_and_marks(put, cells, expected, how):
    text = "a,b\n" + "".join(f'{i},"{cell}"\n' for i, cell in enumerate(cells))
    table = read_table(put(text))
    found = [None if np.isnan(cell) else cell for cell in table.data["b"]]
    assert found == expected
    assert {name: str(each) for name, each in table.written.items()} == {"b": how}


def test_decimal_commas_are_found(put):
    table = read_table(put("a;b;c\n1,5;2;1.234,5\n2,25;1.000;12,5\n3;2.500;0,5\n4;3.000;7,5\n"))
    assert table.decimal == ","
    assert table.data["a"].tolist() == [1.5, 2.25, 3, 4]
    assert table.data["b"].tolist() == [2, 1000, 2500, 3000]
    assert table.data["c"].tolist() == [1234.5, 12.5, 0.5, 7.5]
    assert read_table(put('a,b\n1,"2,5"\n2,"3,5"\n')).data["b"].tolist() == [2.5, 3.5]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "t.csv")
    assert "regular" in complaint(tmp_path / "t.csv")


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


@given(st.lists(names, min_size=2, max_size=6, unique=True))
@example(HOSTILE)
def test_any_name_of_a_column_survives(tmp_path_factory, columns):
    frame = pd.DataFrame([np.arange(len(columns) + 1.0)] * 2, columns=["first", *columns])
    path = tmp_path_factory.mktemp("names") / "t.csv"
    if len({"first", *columns}) < len(columns) + 1:
        return
    path.write_bytes(pl.DataFrame(frame.to_dict("list")).write_csv().encode())
    assert list(read_table(path).data.columns) == ["first", *columns]


@given(st.lists(names, min_size=2, max_size=6, unique=True))
@example(HOSTILE)
def test_any_id_survives(tmp_path_factory, ids):
    path = tmp_path_factory.mktemp("ids") / "t.csv"
    path.write_bytes(pl.DataFrame({"id": ids, "x": [1.5] * len(ids)}).write_csv().encode())
    assert list(read_table(path, id_column="id").data.index) == ids


@given(st.binary(max_size=200), st.sampled_from([".csv", ".tsv", ".txt", ".csv.gz"]))
def test_any_bytes_are_a_table_or_one_error(tmp_path_factory, data, suffix):
    path = tmp_path_factory.mktemp("bytes") / f"t{suffix}"
    path.write_bytes(data)
    table = table_or_complaint(path)
    if not isinstance(table, str):
        assert not np.isinf(table.data.to_numpy()).any()


@given(st.text(alphabet='ab1,;\t"\n.- ', max_size=80))
def test_anything_like_a_table_is_one_or_an_error(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("texts") / "t.csv"
    path.write_text(text, encoding="utf-8", newline="")
    table = table_or_complaint(path)
    assert isinstance(table, str) or table.data.size


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
    assert "name it in --missing if" in raised.value.phrased({"missing_values": "--missing"})


@pytest.mark.parametrize("codes", [("1001-21", "1001-22"), ("1 Marker 10", "2 Decoy 11")])
def test_codes_that_resemble_dates_are_categories(tmp_path, codes):
    frame = pd.DataFrame({"a": range(20), "b": [i % 7 for i in range(20)], "site": [*codes] * 10})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert "site" in read_table(tmp_path / "t.csv", text_columns="categories").data
