"""Traps for a newcomer: ids and classes among the numbers, tables on their side, units."""

import numpy as np
import pandas as pd
import pytest

from commands import COUNT, GROUP, N, flat, labels, put, run, table
from rskc import RobustSparseKMeans
from rskc.exceptions import ColumnWarning
from rskc.files import read_table
from rskc.files.blocks import open_blocks


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# --- from the command line


def test_all_columns_are_used_if_nothing_else_is_left():
    put(pd.DataFrame({"id": COUNT}))
    assert read_table("t.csv").data.shape == (N, 1)


def test_readers_say_what_they_set_aside():
    put(table(row=COUNT, sample_id=COUNT * 3, label=GROUP), "t.parquet")
    for found in (read_table("t.parquet"), open_blocks("t.parquet")):
        roles = [(column.name, column.role) for column in found.set_aside]
        assert roles == [("row", "names"), ("sample_id", "left out"), ("label", "classes")]
        assert (found.id_column, found.label_column) == ("row", "label")
    everything = read_table("t.parquet", use_columns="all")
    assert everything.set_aside == ()
    assert everything.data.shape[1] == 7
    assert read_table("t.parquet", use_columns="label").labels is None


def test_predict_and_report_use_the_columns_of_the_fit():
    put(table(id=COUNT + 1000, label=GROUP + 1))
    run("fit", "t.csv", "-k", "2", "--no-report", "--quiet", "--use-column", "label")
    run("predict", "t-rskc", "t.csv", "--quiet")
    assert list(labels(".", "t-labels.csv").cluster) == list(labels("t-rskc").cluster)
    assert list(labels(".", "t-labels.csv").case) == list(COUNT + 1000)
    run("report", "t-rskc", "t.csv", "--quiet")


# --- in Python


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_warned_of(library):
    made = table(id=COUNT + 1000, label=GROUP + 1)
    if library == "polars":
        made = pytest.importorskip("polars").from_pandas(made)
    with pytest.warns(ColumnWarning) as warned:
        RobustSparseKMeans(2, n_init=2, random_state=0).fit(made)
    for each, name in zip(warned, ("id", "label"), strict=True):
        assert f"Column '{name}' of X" in str(each.message)
        assert each.filename == __file__


def test_frames_of_measurements_and_arrays_are_not():
    made = table(score=COUNT % 10, reads=np.random.default_rng(0).permutation(N), year=COUNT + 1980)
    RobustSparseKMeans(2, n_init=2, random_state=0).fit(made)
    RobustSparseKMeans(2, n_init=2, random_state=0).fit(
        np.column_stack([COUNT, made.a, made.b]).astype(float)
    )


# --- cases that occur twice


@pytest.mark.parametrize("first", ["P", ""])
def test_ids_of_which_one_repeats_stay(first):
    ids = [f"{first}{1000 + 7 * i}" for i in range(N)]
    ids[0] = ids[1]
    put(table(customer_id=ids))
    told = flat(run("fit", "t.csv", "-k", "2", "--no-report").stderr)
    assert f"1 row repeats an id ('{ids[0]}')" in told
    labels = pd.read_csv("t-rskc/labels.csv", dtype=str)
    assert labels["case"].tolist() == ids
    put(table(customer_id=[*ids[:30], *ids[:10]]))
    told = flat(run("fit", "t.csv", "-k", "2", "--no-report", "--force").stderr)
    text, number = "one, add --id-column NAME", "it, add --id-column customer_id"
    assert f"; to name the cases by {text if first else number}" in told
