"""Writing: whole files or none, and what spreadsheets make of them."""

import csv
import errno
import json
import os
import stat

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from counting import count_calls
from rskc import RobustSparseKMeans, files
from rskc.files import atomic_write, write_json
from skips import skip_without

RNG = np.random.default_rng(0)

# --- Whole or not at all --------------------------------------------------------------------------


def write_half(path, error):
    with atomic_write(path) as file:
        file.write(b"half")
        raise error


@pytest.mark.parametrize("old", [None, b"old"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_what_was_there(tmp_path, old, error):
    path = tmp_path / "a b é.bin"
    if old is not None:
        path.write_bytes(old)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(error):
        write_half(path, error)
    assert sorted(tmp_path.iterdir()) == before
    assert old is None or path.read_bytes() == old


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
def test_a_full_disk(tmp_path, monkeypatch, call):
    path = tmp_path / "model"
    path.write_bytes(b"old")

    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space left") as caught, atomic_write(path) as file:
        file.write(b"new")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model"]


def test_folders_that_are_not_there_or_not_ours(tmp_path, monkeypatch):
    for path, error in ((tmp_path / "no" / "file", FileNotFoundError), (tmp_path, OSError)):
        with pytest.raises(error) as caught, atomic_write(path):
            pass
        assert caught.value.filename == str(path)

    def refuse(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied", "/tmp/.rskc-x.part")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(PermissionError) as caught, atomic_write(tmp_path / "file"):
        pass
    assert caught.value.filename == str(tmp_path / "file")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="permissions of Unix")
def test_permissions_and_links(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    with atomic_write(path) as file:
        file.write(b"1")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    path.chmod(0o640)
    link.symlink_to(path)
    with atomic_write(link) as file:
        file.write(b"2")
    assert link.is_symlink()
    assert path.read_bytes() == b"2"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


# --- CSV ------------------------------------------------------------------------------------------


def cells_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def write_csv(frame, path):
    skip_without("polars")
    files.write_csv(frame, path)


@pytest.mark.parametrize("begin", [*"=+-@\t\r\n", " =", "  +", "\u00a0@", " \t="])
def test_formulas_are_made_harmless(tmp_path, begin):
    text = f"{begin}cmd|' /C calc'!A0"
    write_csv(pd.DataFrame({text: [text, "safe"], "x": [-1.5, 2]}), tmp_path / "t.csv")
    rows = cells_of(tmp_path / "t.csv")
    assert rows[0] == ["'" + text, "x"]
    assert rows[1] == ["'" + text, "-1.5"]
    assert rows[2] == ["safe", "2.0"]
    write_csv(pd.DataFrame({"id": ["-5", "+1e3", " -5", "-1+1"]}), tmp_path / "t.csv")
    assert [row[0] for row in cells_of(tmp_path / "t.csv")] == ["id", "-5", "+1e3", " -5", "'-1+1"]


def test_ranked_lists_have_no_formulas(tmp_path):
    names = ["=1+1", "@SUM(A1)", "-5", "+x", " =2", "plain"]
    X = RNG.normal(size=(30, 6)) + 9 * (np.arange(30) % 2)[:, None]
    frame = pd.DataFrame(X, columns=names)
    model = RobustSparseKMeans(2, random_state=0).fit(frame)
    (first, _) = files.write_ranked_lists(model, frame, tmp_path)
    written = {line.split("\t")[0] for line in first.read_text().splitlines()}
    assert written == {"'=1+1", "'@SUM(A1)", "-5", "'+x", "'=2", "plain"}


def test_half_characters_are_written_as_escapes(tmp_path):
    """Names of files that are no UTF-8, and broken text, have them; UTF-8 does not."""
    half = "\ud800"
    X = RNG.normal(size=(30, 3)) / 5 + 2 * (np.arange(30) % 2)[:, None]
    frame = pd.DataFrame(X, columns=[f"a{half}", f"={half}", "c"]).set_axis(
        [f"{half}{i}" for i in range(30)]
    )
    frame["kind"] = pd.Categorical(np.where(X[:, 0] > 1, half, "y"))
    model = RobustSparseKMeans(2, random_state=0).fit(frame)
    path = tmp_path / "model.rskc"
    files.save(model, path, extra={"title": half})
    again = files.load(path)
    assert list(again.feature_names_in_) == list(frame.columns)
    assert again.summary() == model.summary()
    for table in (model.features_frame(), model.cases_frame(frame), model.markers_frame(frame)):
        files.write_csv(table, tmp_path / "table.csv")
        assert "\\ud800" in (tmp_path / "table.csv").read_text("utf-8")
    files.write_ranked_lists(model, frame, tmp_path)
    write_json({half: half}, tmp_path / "facts.json")
    with atomic_write(tmp_path / "page.html", "w") as file:
        file.write(half)
    assert (tmp_path / "page.html").read_text("utf-8") == "\\ud800"
    for refused in (lambda: files.save(model, half), lambda: write_json({}, half)):
        with pytest.raises(UnicodeEncodeError):
            refused()
    with pytest.raises(files.ModelFileError, match="cannot be opened"):
        files.load(half)


def test_missing_cells_and_kinds(tmp_path):
    frame = pd.DataFrame(
        {
            "real": [np.nan, np.inf, -0.0],
            "whole": [1, -2, 3],
            "flag": [True, False, True],
            "mixed": [None, 3, "é"],
            "text": ["", "a,b", 'q"q'],
            "category": pd.Categorical(["u", "v", None]),
        }
    )
    write_csv(frame, tmp_path / "t.csv")
    assert cells_of(tmp_path / "t.csv") == [
        ["real", "whole", "flag", "mixed", "text", "category"],
        ["", "1", "true", "", "", "u"],
        ["inf", "-2", "false", "3", "a,b", "v"],
        ["-0.0", "3", "true", "é", 'q"q', ""],
    ]
    write_csv(pd.DataFrame({"a": []}), tmp_path / "t.csv")
    assert cells_of(tmp_path / "t.csv") == [["a"]]
    write_csv(pd.DataFrame([[1, 2]], columns=["a", "a"]), tmp_path / "t.csv")
    assert cells_of(tmp_path / "t.csv") == [["a", "a"], ["1", "2"]]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
@example([5e-324, 1.7976931348623157e308, 0.1, 1 / 3, -0.0, 1e22, 123456789.123456789])
def test_numbers_read_back_exactly(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("floats") / "t.csv"
    write_csv(pd.DataFrame({"x": values}), path)
    again = [float(row[0]) for row in cells_of(path)[1:]]
    assert np.array(again).tobytes() == np.array(values).tobytes()


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))


@given(st.lists(texts, min_size=1), texts)
@example(['"', "a\nb", "🙂", "\u202e", "<script>", "=1+1", "x" * 10_000, "'=1"], "=name")
def test_text_reads_back_but_for_the_apostrophe(tmp_path_factory, cells, name):
    path = tmp_path_factory.mktemp("texts") / "t.csv"
    write_csv(pd.DataFrame({name: cells, "n": 1}), path)
    for written, text in zip(cells_of(path), [name, *cells], strict=True):
        assert written[0] in (text, "'" + text)
        assert not written[0].startswith(("=", "@", "\t", "\r", "\n"))


def test_many_rows_take_no_more_calls_than_a_few(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20_000, 7)))
    frame["case"] = [f"case {i}" for i in range(len(frame))]
    few, path = frame[:100], tmp_path / "t.csv"
    write_csv(few, path)  # so that the folder is the same for both
    assert count_calls(lambda: write_csv(frame, path)) == count_calls(lambda: write_csv(few, path))


# --- JSON -----------------------------------------------------------------------------------------


def test_json_is_valid_whatever_comes(tmp_path):
    obj = {
        "n": np.int64(3),
        "x": np.float32(0.5),
        "flag": np.bool_(True),
        "nan": np.nan,
        "inf": [np.inf, -np.inf, np.float64("nan")],
        "array": np.array([[1.5, np.nan]]),
        5: ("é", None, {1}),
        "path": tmp_path,
    }
    write_json(obj, tmp_path / "t.json")
    text = (tmp_path / "t.json").read_text("utf-8")
    again = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert again == {
        "n": 3,
        "x": 0.5,
        "flag": True,
        "nan": None,
        "inf": [None] * 3,
        "array": [[1.5, None]],
        "5": ["é", None, [1]],
        "path": str(tmp_path),
    }
    write_json("\ud800", tmp_path / "t.json")
    json.loads((tmp_path / "t.json").read_text("utf-8"))
