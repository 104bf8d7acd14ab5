"""Traps for a newcomer: ids and classes among the numbers, tables on their side, units."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from commands import labels, run
from rskc import RobustSparseKMeans
from rskc.exceptions import ColumnWarning
from rskc.files import read_table
from rskc.files.blocks import open_blocks

rng = np.random.default_rng(0)
N = 40
GROUP = np.arange(N) % 2
COUNT = np.arange(N)


def frame(**columns):
    """Two clusters in two of four features, between columns that are no measurements."""
    features = {
        name: rng.normal(size=N) + 6 * GROUP * (name in "ab") for name in ("a", "b", "c", "d")
    }
    return pd.DataFrame(columns | features)


@pytest.fixture
def put(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def put(made, name="t.csv"):
        getattr(made, f"to_{Path(name).suffix[1:]}")(name, index=False)
        return name

    return put


def flat(text):
    """A text without the line breaks of a terminal."""
    return " ".join(text.split())


# --- from the command line


def test_all_columns_are_used_if_nothing_else_is_left(put):
    put(pd.DataFrame({"id": COUNT}))
    assert read_table("t.csv").data.shape == (N, 1)


def test_readers_say_what_they_set_aside(put):
    put(frame(row=COUNT, sample_id=COUNT * 3, label=GROUP), "t.parquet")
    for table in (read_table("t.parquet"), open_blocks("t.parquet")):
        roles = [(column.name, column.role) for column in table.set_aside]
        assert roles == [("row", "names"), ("sample_id", "left out"), ("label", "classes")]
        assert (table.id_column, table.label_column) == ("row", "label")
    everything = read_table("t.parquet", use_columns="all")
    assert everything.set_aside == ()
    assert everything.data.shape[1] == 7
    assert read_table("t.parquet", use_columns="label").labels is None


def test_predict_and_report_use_the_columns_of_the_fit(put):
    put(frame(id=COUNT + 1000, label=GROUP + 1))
    run("fit", "t.csv", "-k", "2", "--no-report", "--quiet", "--use-column", "label")
    run("predict", "t-rskc", "t.csv", "--quiet")
    assert list(labels(".", "t-labels.csv").cluster) == list(labels("t-rskc").cluster)
    assert list(labels(".", "t-labels.csv").case) == list(COUNT + 1000)
    run("report", "t-rskc", "t.csv", "--quiet")


# --- in Python


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_warned_of(library):
    made = frame(id=COUNT + 1000, label=GROUP + 1)
    if library == "polars":
        made = pytest.importorskip("polars").from_pandas(made)
    with pytest.warns(ColumnWarning) as warned:
        RobustSparseKMeans(2, n_init=2, random_state=0).fit(made)
    for each, name in zip(warned, ("id", "label"), strict=True):
        assert f"Column '{name}' of X" in str(each.message)
        assert each.filename == __file__


def test_frames_of_measurements_and_arrays_are_not():
    made = frame(score=COUNT % 10, reads=rng.permutation(N), year=COUNT + 1980)
    RobustSparseKMeans(2, n_init=2, random_state=0).fit(made)
    RobustSparseKMeans(2, n_init=2, random_state=0).fit(
        np.column_stack([COUNT, made.a, made.b]).astype(float)
    )


# --- cases that occur twice


@pytest.mark.parametrize("first", ["P", ""])
def test_ids_of_which_one_repeats_stay(put, first):
    ids = [f"{first}{1000 + 7 * i}" for i in range(N)]
    ids[0] = ids[1]
    put(frame(customer_id=ids))
    told = flat(run("fit", "t.csv", "-k", "2", "--no-report").stderr)
    assert f"1 row repeats an id ('{ids[0]}')" in told
    labels = pd.read_csv("t-rskc/labels.csv", dtype=str)
    assert labels["case"].tolist() == ids
    put(frame(customer_id=[*ids[:30], *ids[:10]]))
    told = flat(run("fit", "t.csv", "-k", "2", "--no-report", "--force").stderr)
    assert "; to name the cases by it, add --id-column customer_id" in told
