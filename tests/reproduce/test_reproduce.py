"""The paper's experiments: what they find, the files they leave, and the command that runs them."""

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from reproduction import (
    EXPERIMENTS,
    Reproduction,
    breast_cancer,
    digits,
    figure1,
    masking,
    simulation,
)
from reproduction.__main__ import main
from reproduction.outcome import write_index
from reproduction.plain import plain_method

from definitions import found_by_r
from rskc.metrics import classification_error_rate
from rskc.solver import Problem

MODELS = ("clean", "model 1", "model 2")


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    plt = sys.modules.get("matplotlib.pyplot")
    assert plt is None or plt.get_fignums() == []


def run(monkeypatch, *args, code=0):
    monkeypatch.setattr(sys, "argv", ["reproduction", *map(str, args)])
    assert main() == code


def module(name):
    """A module of reproduction; the package's attribute of that name may be the function."""
    return sys.modules[f"reproduction.{name}"]


def tables(found):
    return list(found.tables.values())


# ---- What they find


@pytest.fixture(scope="module")
def masked():
    return masking(seed=0)


def test_masking_misleads_all_but_the_robust_and_sparse(masked):
    (table,) = tables(masked)
    table = table.set_index("method")
    squared = table.filter(like="weight") ** 2
    for method in ("naive", "sparse"):
        assert squared.loc[method, ["weight 4", "weight 5"]].sum() > 0.99
        assert table.loc[method, "CER"] > 0.3
    assert squared.loc["robust and sparse", ["weight 1", "weight 2"]].sum() > 0.99
    assert table.loc["robust and sparse", "CER"] <= 0.1
    assert masked.verdict.startswith("As in the paper")


def test_figure_1_has_two_weights():
    found = figure1()
    (table,) = tables(found)
    sparse = table.iloc[-1]
    assert sparse["weight 1"] > 0
    assert sparse["weight 2"] > 0
    assert sparse["others above 0"] == 0
    assert sparse["CER"] < 0.06
    assert table["CER"].iloc[0] > 0.2
    assert found.verdict.startswith("As in the paper")
    assert "weight to 2 of 1,000 features, the right ones" in found.verdict


def test_digits_are_as_good_as_those_of_rskc():
    found = digits()
    numbers = tables(found)[0].set_index("what")["rskc"]
    assert numbers["CER"] <= 0.052
    assert abs(numbers["features with weight"] - 45) <= 1
    assert found.verdict.startswith("As good as RSKC")


def test_a_verdict_can_be_bad():
    rows = [{"CER": 0.1, "weight 4": 0.0, "weight 5": 0.0}] * 3
    assert module("masking")._verdict(rows, 0.1).startswith("Unlike in the paper")


@pytest.fixture(scope="module")
def simulated():
    return simulation(3, n_jobs=1, progress=False)


def test_the_simulation_in_short(simulated):
    cer, weights, bounds, harder = tables(simulated)
    assert list(cer["method"]) == ["K", "SK", "TK", "RSK"]
    cer = cer.set_index("method")
    assert (cer.loc["RSK", list(MODELS)] <= 0.02).all()
    assert (cer.loc["SK", ["model 1", "model 2"]] > 0.2).all()
    assert len(weights) == 6
    robust = weights[weights.method == "RSK"]["non-zero"].str.split(" ").str[0].astype(float)
    assert ((robust - 49.2).abs() <= 1.5).all()
    assert weights["non-zero"].str.fullmatch(r"\d+\.\d \(\d+\.\d\d\)").all()
    assert bounds["non-zero"].is_monotonic_increasing
    assert (harder["rskc"] <= harder["as published"]).all()
    assert harder["rskc"].max() < 0.1


@pytest.mark.slow
def test_the_simulation_at_full_length():
    found = simulation(progress=False)
    cer, weights, bounds, _ = tables(found)
    robust = weights[weights.method == "RSK"]
    means = {c: robust[c].str.split(" ").str[0].astype(float) for c in ("non-zero", "true of 50")}
    assert ((means["non-zero"] - 49.2).abs() <= 0.5).all()
    assert means["true of 50"].mean() >= 48.9
    cer = cer.set_index("method")[list(MODELS)]
    assert (cer.loc["RSK"] <= np.array([0.0068, 0.0081, 0.0180]) + 1e-4).all()
    assert (cer.loc["SK", ["model 1", "model 2"]] > 0.2).all()
    assert abs(bounds.set_index("l1_bound")["non-zero"][6.2] - 49.2) <= 0.5
    assert found.verdict.startswith("As in the paper")


# ---- The method as published, and the naive one


@pytest.mark.parametrize("name", ["golden02", "golden15", "golden21"])
def test_the_plain_method_gives_what_rskc_gives(name):
    """Its labels are of the iteration after that of its weights: both as in RSKC."""
    found = found_by_r(name)
    X, K = np.array(found["data"], float), found["K"]
    for record in found["runs"]:
        if record["L1"] is None:
            continue
        problem = Problem(K, int(record["alpha"] * len(X) + 1e-9), l1_bound=record["L1"])
        plain = plain_method(X, problem, 100, seed=0)
        assert_allclose(plain.weights, record["weights"], atol=1e-4)
        assert classification_error_rate(plain.labels, record["labels"]) == 0


# ---- Breast cancer, on data made up for it


N_CASES, N_GENES = 30, 80


@pytest.fixture(scope="module")
def tumours():
    rng = np.random.default_rng(0)
    positive = np.arange(N_CASES) % 15 < 8
    X = rng.normal(size=(N_CASES, N_GENES))
    X[:, :40] += np.where(positive, 1.5, -1.5)[:, None] * np.resize([1, -1], 40)
    frame = pd.DataFrame(X.round(4), columns=[f"gene{j}" for j in range(N_GENES)])
    frame.index = pd.Index([str(i) for i in range(1, N_CASES + 1)], name="sample")
    return frame, np.where(positive, "pos", "neg")


@pytest.fixture
def files(tumours, tmp_path):
    data, labels = tmp_path / "tumours.csv", tmp_path / "receptor.csv"
    tumours[0].to_csv(data)
    frame = {"row": range(N_CASES), "sample_id": "x", "ER": tumours[1], "age": 50}
    pd.DataFrame(frame).to_csv(labels, index=False)
    return data, labels


@pytest.fixture(scope="module")
def cancer(tumours):
    """From arrays; the command reads data frames."""
    frame, labels = tumours
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module("breast_cancer"), "NUMBERS", range(2, 4))
        found = breast_cancer(frame.to_numpy(), list(labels), 0, 2, n_jobs=1, progress=False)
    return found


def test_breast_cancer_beside_the_paper(cancer):
    errors, genes, silhouettes = tables(cancer)
    assert list(errors["trimmed"]) == [0, 1, 5, 10]
    assert list(errors["CER, paper"]) == ["0.10", "0.08", "0.08", "0.06"]
    assert list(errors["CER"]) == ["0.00"] * 4
    assert genes["shared"].iloc[0].endswith("= 100%")
    assert (genes["K, paper's rule"] == 2).all()
    assert list(silhouettes["mean, paper"]) == ["0.85", "0.79", "0.91", "0.91"]
    assert (silhouettes.groupby("trimmed")["cases"].sum() == N_CASES).all()
    assert list(silhouettes["cases"]) == sorted(silhouettes["cases"][:2], reverse=True) * 2
    assert cancer.title == "Breast cancer: 30 tumours, 80 genes"
    assert cancer.verdict.startswith("Not all as in the paper")


# ---- Files


@pytest.mark.parametrize("name", ["masked", "simulated", "cancer"])
def test_the_files_are_whole(name, request, tmp_path):
    found, folder = request.getfixturevalue(name), tmp_path / "new" / "folder"
    files = found.save(folder)
    assert sorted(files) == sorted(folder.iterdir())
    png, svg, page = (folder / f"{found.name}{suffix}" for suffix in (".png", ".svg", ".md"))
    assert matplotlib.image.imread(png).ndim == 3
    assert png.stat().st_size < 200_000
    assert ET.parse(svg).getroot().tag.endswith("svg")
    text = page.read_text("utf-8")
    assert text.startswith(f"## {found.title}\n")
    assert f"]({found.name}.png)" in text
    assert text.endswith(f"{found.verdict}\n")
    assert re.search(r"\bnan\b", text) is None
    csvs = sorted(file for file in files if file.suffix == ".csv")
    for file, (caption, table) in zip(csvs, found.tables.items(), strict=True):
        assert f"**{caption}**\n\n| {' | '.join(table.columns)} |\n| ---" in text
        again = pd.read_csv(file)
        assert list(again.columns) == list(table.columns)
        assert len(again) == len(table)


def test_numbers_are_shown_short_and_kept_long():
    table = pd.DataFrame({"x": [1 / 3, np.nan, 0.0, 1354.94], "n": [1, 2, 3, 4]})
    found = Reproduction("any", "Any", None, {"T": table}, "Fine.")
    rows = [line for line in found.markdown().splitlines() if line.startswith("|")]
    assert rows[2:] == ["| 0.3333 | 1 |", "|  | 2 |", "| 0 | 3 |", "| 1355 | 4 |"]


# ---- The command


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_shows_and_writes(here, monkeypatch, capsys):
    run(monkeypatch, "masking")
    told = capsys.readouterr()
    assert "As in the paper" in told.out
    assert "weight 5" in told.out
    assert "Warning" not in told.out + told.err
    written = {file.name for file in Path("rskc-reproduction").iterdir()}
    assert written == {"masking.png", "masking.svg", "masking.csv", "masking.md", "index.md"}
    page = Path("rskc-reproduction/index.md").read_text("utf-8")
    assert "```bash\npython -m reproduction masking\n```" in page


def test_the_page_of_all_experiments_is_what_the_documentation_has(tmp_path):
    docs = Path(__file__).parents[2] / "docs" / "reproduction"
    for file in docs.glob("*.md"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    write_index(tmp_path, EXPERIMENTS)
    assert (tmp_path / "index.md").read_text("utf-8") == (docs / "index.md").read_text("utf-8")


def test_unknown_experiments_are_named(here, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run(monkeypatch, "no-such")
    assert "there is no experiment no-such" in capsys.readouterr().err


def test_breast_cancer_from_files(here, files, monkeypatch, capsys):
    monkeypatch.setattr(module("breast_cancer"), "NUMBERS", range(2, 3))
    data, labels = files
    run(monkeypatch, "breast-cancer", "--data", data, "--labels", labels, "--jobs", 1)
    assert "Breast cancer: 30 tumours, 80 genes" in capsys.readouterr().out
    assert len(list(Path("rskc-reproduction").glob("breast-cancer-?.csv"))) == 3
