"""The command line on tables that are read block by block: the same files as in memory."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from commands import flat, refused, run, without
from rskc import load
from rskc.cli import _blocks, _work
from rskc.files import blocks, read_model
from rskc.solver import search
from skips import skip_without

FILES = {"labels.csv", "features.csv", "markers.csv", "summary.json", "model.rskc", "report.html"}
N = 240
FIT = ("--clusters", "3", "--label-column", "group", "--n-init", "2")
QUICK = (*FIT, "--no-report", "--quiet")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    target = np.arange(N) % 3
    data = rng.standard_normal((N, 8))
    data[:, :3] += 6 * np.eye(3)[target]
    data[::40] += rng.uniform(10, 30, (len(data[::40]), 8))
    data[5, 2] = np.nan
    frame = pd.DataFrame(data, columns=[f"gene{j}" for j in range(8)])
    frame.insert(0, "patient", [f"P{i}" for i in range(N)])
    frame.insert(4, "group", np.array(["a", "b", "c"])[target])
    return frame


@pytest.fixture
def here(tmp_path, monkeypatch, frame):
    """A folder with a table in one file, and the same in a folder of twelve."""
    monkeypatch.chdir(tmp_path)
    frame.to_parquet("whole.parquet", index=False)
    Path("big").mkdir()
    for k in range(12):  # part.10 comes after part.9
        frame.iloc[20 * k : 20 * (k + 1)].to_parquet(f"big/part.{k}.parquet", index=False)
    Path("big/README.txt").write_text("not a table")
    return tmp_path


def assert_same_results(folder, other):
    """The same but for rounding."""
    for name in ("labels.csv", "features.csv"):
        found, known = (pd.read_csv(Path(each, name)) for each in (folder, other))
        pd.testing.assert_frame_equal(found, known, rtol=1e-9, atol=1e-9)
    found, known = (json.loads(Path(each, "summary.json").read_text()) for each in (folder, other))
    assert_allclose(found["result"].pop("objective"), known["result"].pop("objective"))
    for ours, theirs in zip(found["result"]["clusters"], known["result"]["clusters"], strict=True):
        assert ours == pytest.approx(theirs)
    assert found["result"]["n_outliers"] == known["result"]["n_outliers"]
    assert found["result"]["n_trimmed"] == known["result"]["n_trimmed"]
    assert found["truth"] == known["truth"]
    same = ("n_cases", "n_features", "n_missing", "id_column", "dropped", "constant", "empty")
    assert [found["table"][name] for name in same] == [known["table"][name] for name in same]
    assert found["notes"] == known["notes"]


# ---- fit


def test_a_folder_gives_the_same_as_one_file(here):
    run("fit", "whole.parquet", *FIT, "--engine", "memory")
    result = run("fit", "big", *FIT)
    assert "3 clusters of 240 cases" in result.stdout
    assert {file.name for file in Path("big-rskc").iterdir()} == FILES
    assert_same_results("big-rskc", "whole-rskc")
    assert "Clusters of big" in Path("big-rskc/report.html").read_text("utf-8")
    assert sorted(os.listdir()) == ["big", "big-rskc", "whole-rskc", "whole.parquet"]


@pytest.mark.parametrize("of", ["none", "columns", "rows", "none, missing"])
def test_results_are_written_from_the_features_that_have_weight(here, frame, monkeypatch, of):
    """But rows are standardized by all of them. What is shown was noted when all were read."""
    read, known = set(), blocks.BlockTable.read
    monkeypatch.setattr(
        blocks.BlockTable,
        "read",
        lambda table, piece, names: read.add(frozenset(names)) or known(table, piece, names),
    )
    if of != "none, missing":
        frame.fillna(1.0).to_parquet("whole.parquet", index=False)
        frame[:20].fillna(1.0).to_parquet("big/part.0.parquet", index=False)
    how = (*QUICK, "--n-features", "3", "--standardize", of.split(",")[0])
    run("fit", "whole.parquet", *how, "--engine", "memory")
    run("fit", "big", *how)
    assert_same_results("big-rskc", "whole-rskc")
    features = pd.read_csv("big-rskc/features.csv")
    own = features[features.weight > 0] if of in ("none", "columns") else features
    assert read == {frozenset(own.feature)}
    markers = (pd.read_csv(f"{name}-rskc/markers.csv") for name in ("big", "whole"))
    pd.testing.assert_frame_equal(*markers)  # of all features of the cases that are shown


def test_stability_of_cases_is_written_block_by_block(here):
    how = ("--label-column", "group", "--quiet", "--max-samples", "60", "--n-init", "2")
    run("fit", "whole.parquet", *how, "--engine", "memory", "--jobs", "1")
    told = run("fit", "big", *how, "--jobs", "1", "--json").stdout
    assert json.loads(told)["result"]["n_clusters"] == 3
    whole, blocks = (pd.read_csv(f"{name}-rskc/labels.csv") for name in ("whole", "big"))
    assert whole.stability.notna().sum() == 60
    assert_allclose(blocks.stability, whole.stability)


@pytest.mark.parametrize(
    ("table", "folder"),
    [
        ("whole.parquet", "whole-rskc"),
        ("big/part.*.parquet", "big-rskc"),
        ("big/", "big-rskc"),
        ("big/part.3.parquet", "part.3-rskc"),
    ],
)
def test_files_and_patterns(here, table, folder):
    run("fit", table, *QUICK, "--engine", "dask")
    n = len(pd.read_csv(Path(folder, "labels.csv")))
    assert n == (20 if "part.3" in table else N)


def with_text(frame):
    """The table with categories, of which some are in later files only, and text of many values."""
    rng = np.random.default_rng(1)
    color = np.array(["red", " green", "blue", "NA"])[rng.integers(0, 4, N)].astype(object)
    color[:60], color[::11] = "red", None
    return frame.assign(
        color=color,
        flag=rng.random(N) < 0.3,
        kind=pd.Categorical(np.array(list("xyz"))[np.arange(N) % 3]),
        street=[f"s{i % 50}" for i in range(N)],
        ward=rng.integers(1, 4, N),
    )


@pytest.mark.parametrize("is_complete", [False, True])
def test_text_columns_as_in_memory(here, frame, is_complete):
    whole = with_text(frame)
    if is_complete:
        whole = whole.assign(color=whole.color.fillna("red").replace("NA", "red"), ward=1.0)
        whole = whole.assign(ward=np.arange(N) % 2, gene2=whole.gene2.fillna(0.0))
    whole.to_parquet("whole.parquet", index=False, row_group_size=100)
    for k in range(12):
        whole.iloc[20 * k : 20 * (k + 1)].to_parquet(f"big/part.{k}.parquet", index=False)
    asked = (*FIT, "--categorical", "ward", "--missing", "3", "--no-report")
    run("fit", "whole.parquet", *asked, "--engine", "memory")
    for name in ("big", "whole.parquet"):
        told = run("fit", name, *asked, "--engine", "dask", "--out", "blocks", "--force").stderr
        known = (Path(folder, "labels.csv").read_bytes() for folder in ("blocks", "whole-rskc"))
        assert len(set(known)) == 1
        found, expected = (load(f"{each}/model.rskc") for each in ("blocks", "whole-rskc"))
        assert found.encoder_.columns_ == expected.encoder_.columns_
        assert_allclose(found.feature_weights_, expected.feature_weights_, atol=1e-9)
        assert found.n_missing_ == expected.n_missing_
        assert "Column 'color' was read as 3 categories: blue, green, red" in flat(told)
        assert found.n_missing_ == 0 or not is_complete
        assert "'street' (text with more than 30 values)" in flat(told)
    run("predict", "blocks", "big", "--out", "new.csv")
    pd.testing.assert_series_equal(
        pd.read_csv("new.csv").cluster, pd.read_csv("blocks/labels.csv").cluster
    )


def test_a_sample_of_text_columns_is_shown(here, frame, few):
    with_text(frame).to_parquet("text.parquet", index=False)
    told = flat(run("fit", "text.parquet", *FIT, "--engine", "dask").stderr)
    assert "Column 'color' was read as 3 categories: blue, green, red." in told  # no count of holes
    assert Path("text-rskc/report.html").stat().st_size > 10_000


def test_categories_that_blocks_cannot_hold(here, frame, monkeypatch):
    monkeypatch.setattr("rskc.files.blocks.MOST_IN_BLOCKS", 5)
    with_text(frame).to_parquet("big/part.0.parquet", index=False)
    for k in range(1, 12):
        Path(f"big/part.{k}.parquet").unlink()
    told = refused("fit", "big", *FIT, "--categorical", "street")
    assert "column 'street' has more than 5 categories; leave it out by --drop" in told
    np.save("m.npy", np.zeros((5, 2)))
    told = refused("fit", "m.npy", "-k", "2", "--categorical", "x1", "--engine", "dask")
    assert "cannot be categories in blocks; use --engine memory" in told


@pytest.mark.parametrize("table", ["whole.parquet", "big"])
def test_a_device_gives_the_same(here, table, monkeypatch):
    skip_without("torch", "array_api_compat")
    for name, value in (("SAMPLE_CELLS", 1000), ("FEWEST_CASES", 100)):  # else blocks are small
        monkeypatch.setattr(search, name, value)
    run("fit", "whole.parquet", *QUICK, "--out", "known")
    run("fit", table, *QUICK, "--device", "cpu", "--out", "found")
    assert_same_results("found", "known")
    assert "--device='tpu' must be" in refused("fit", table, *QUICK, "--device", "tpu")


# ---- More cases than are shown


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(_blocks, "MOST_SHOWN", 50)


def test_all_cases_are_written_and_some_shown(here, few):
    columns = ("--standardize", "columns")
    run("fit", "whole.parquet", *QUICK, *columns)
    result = run("fit", "big", *FIT, *columns)
    told = flat(result.stdout)
    assert "3 clusters of 240 cases" in told
    assert "among 50 cases drawn at random" in told
    whole, known = (pd.read_csv(f"{name}-rskc/labels.csv") for name in ("whole", "big"))
    assert list(known) == list(whole)
    assert len(known) == N
    facts = json.loads(Path("big-rskc/summary.json").read_text())["result"]
    assert facts["n_outliers"] == known.outlier.sum()
    assert facts["n_trimmed"] == known.trimmed.sum()
    assert facts["silhouette"] == pytest.approx(known.silhouette[~known.outlier].mean())
    sizes = known.cluster.value_counts().sort_index()
    assert [each["cases"] for each in facts["clusters"]] == sizes.tolist()
    page = Path("big-rskc/report.html").read_text("utf-8")
    assert "3 clusters of 240 cases" in page
    assert "Apart from the headline, this page is about 50 of them, drawn at random" in page
    model = read_model("big-rskc/model.rskc").model
    assert len(model.labels_) == 50
    kept = known.set_index("case").loc[model.case_names_in_]
    assert_array_equal(kept.cluster, model.labels_)
    assert_allclose(kept.distance, model.distances_)


# ---- predict


@pytest.mark.parametrize("scaling", ["none", "rows", "columns"])
def test_predictions_are_those_of_the_fit(here, few, scaling):
    run("fit", "big", *QUICK, "--standardize", scaling)
    run("predict", "big-rskc", "big", "--out", "blocks.csv")
    run("predict", "big-rskc", "whole.parquet", "--out", "memory.csv")
    printed = run("predict", "big-rskc", "big", "--out", "-").stdout
    assert printed == Path("blocks.csv").read_text("utf-8")
    found, known = pd.read_csv("blocks.csv"), pd.read_csv("memory.csv")
    pd.testing.assert_frame_equal(found, known, rtol=1e-12)
    fitted = pd.read_csv("big-rskc/labels.csv")
    pd.testing.assert_frame_equal(found, fitted[found.columns], rtol=1e-9)


# ---- Searches


def test_a_part_is_searched_in_memory_too(here):
    how = ("--label-column", "group", "-k", "3", "--bounds", "3", "--permutations", "2")
    told = [
        run("select-l1", table, *how, "--max-samples", "90", "--jobs", "1").stdout
        for table in ("big", "whole.parquet")
    ]
    assert "Searched on 90 of the 240 cases" in flat(told[0])
    assert told[0].split("Time:")[0] == told[1].split("Time:")[0]


# ---- What is refused


def test_what_is_wrong_with_a_folder(here, frame):
    """In words of pyarrow, whose versions differ."""
    Path("big/part.12.parquet").write_bytes(b"PAR1 nonsense")
    assert "part.12.parquet" in refused("fit", "big", *FIT)
    frame.assign(gene1="many").to_parquet("big/part.12.parquet", index=False)
    told = refused("fit", "big", *FIT)
    assert "part.12.parquet" in told
    assert "'gene1' holds" in told
    assert not any(name.startswith(("big-", ".big", "bug")) for name in os.listdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        *((("--memory", text), f"--memory {text!r} is no amount") for text in ("", "0", "1e400GB")),
    ],
)
def test_wrong_usage(here, words, said):
    told = run("fit", "whole.parquet", *QUICK, *words, code=2).stderr
    assert said in flat(told.replace("│", " "))
    assert sorted(os.listdir()) == ["big", "whole.parquet"]


def test_without_dask_one_sentence(here, monkeypatch):
    without(monkeypatch, "dask", "distributed")
    told = refused("fit", "big", *FIT)
    assert "dask and distributed are needed to read a table in blocks" in told
    assert 'pip install "rskc[dask]"' in told
    told = refused("fit", "whole.parquet", *QUICK, "--memory", "1GB")
    assert "needed to read a table in blocks, which --memory is about; pip install" in told
    run("fit", "whole.parquet", *QUICK)  # what fits the memory needs no Dask


WHOLE, MATRIX = 8 * 10 * N, 8 * 8 * N + 128  # bytes: of the cells; of a file with its header


@pytest.mark.parametrize(
    ("name", "free", "limit", "in_blocks"),
    [
        ("whole.parquet", 2 * WHOLE, None, False),
        ("whole.parquet", 2 * WHOLE - 1, None, True),
        ("matrix.npy", 2 * MATRIX, None, False),
        ("matrix.npy", 2 * MATRIX - 1, None, True),
        ("whole.parquet", None, None, False),  # how much is free is not known everywhere
        ("whole.parquet", 2**40, WHOLE, False),
        ("whole.parquet", 2**40, WHOLE - 1, True),
        ("whole.parquet", WHOLE, 2**30, True),  # --memory does not raise what is free
        ("table.csv", 2**40, WHOLE - 1, False),  # text is read as a whole
    ],
)
def test_what_is_large_is_read_in_blocks(here, frame, monkeypatch, name, free, limit, in_blocks):
    np.save("matrix.npy", frame.drop(columns=["patient", "group"]).to_numpy())
    frame.to_csv("table.csv", index=False)
    monkeypatch.setattr(_work, "free_memory", lambda: free)
    assert _work.is_read_in_blocks(Path(name), "auto", limit) == in_blocks
    without(monkeypatch, "dask")
    if in_blocks and limit is None:
        told = refused("fit", name, "-k", "3")
        assert f"to read {name!r} in blocks, since the table needs more than half of" in told


@pytest.mark.parametrize(("memory", "in_blocks"), [("1MB", False), (WHOLE - 1, True)])
def test_memory_says_how_large_a_table_is_read_in_blocks(here, memory, in_blocks):
    run("fit", "whole.parquet", *QUICK, "--memory", memory)
    table = json.loads(Path("whole-rskc/summary.json").read_text())["table"]
    assert (table["sha256"] is None) == in_blocks
