"""Case weights in the command line: ``--weight-column``."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from typer.testing import CliRunner

from rskc import RobustSparseKMeans
from rskc.cli._commands import app
from rskc.datasets import make_figure1
from rskc.files import load
from rskc.selection.search import Search

pytestmark = pytest.mark.filterwarnings("ignore::rskc.exceptions.FitWarning")


@pytest.fixture
def people(tmp_path):
    """A table with a column of weights, as text and as Parquet."""
    data = make_figure1(n_samples=45, n_features=6, random_state=13)
    frame = pd.DataFrame(data.data, columns=list("abcdef"))
    frame["people"] = np.random.default_rng(13).integers(0, 5, len(frame))
    frame.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path, frame


def run_fit(folder, name, *options):
    out = folder / "out"
    words = ["fit", str(folder / name), "-k", "3", "--out", str(out), "--force", "--no-report"]
    result = CliRunner().invoke(app, [*words, *options])
    return result, out


def test_the_command_line_has_a_weight_column(people):
    folder, frame = people
    result, out = run_fit(folder, "people.csv", "--weight-column", "people", "--prepare", "none")
    assert result.exit_code == 0, result.output
    assert "Column 'people' says what each case counts." in " ".join(result.output.split())
    model, X = load(out / "model.rskc"), frame.drop(columns="people")
    expected = RobustSparseKMeans(3, random_state=0).fit(X, sample_weight=frame["people"])
    assert list(model.feature_names_in_) == list(X.columns)
    assert_allclose(model.objective_, expected.objective_)
    assert_array_equal(model.sample_weight_, frame["people"])
    assert_array_equal(pd.read_csv(out / "labels.csv")["cluster"], expected.labels_)


def test_weights_in_blocks_are_those_of_the_table(people):
    folder, frame = people
    frame.to_parquet(folder / "people.parquet")
    options = [
        "--weight-column",
        "people",
        "--engine",
        "dask",
        "--trim",
        "0.1",
        "--l1-bound",
        "1.7",
        "--prepare",
        "none",
    ]
    result, out = run_fit(folder, "people.parquet", *options)
    assert result.exit_code == 0, result.output
    expected = RobustSparseKMeans(3, random_state=0, trim=0.1, l1_bound=1.7)
    expected.fit(frame.drop(columns="people"), sample_weight=frame["people"])
    assert_array_equal(pd.read_csv(out / "labels.csv")["cluster"], expected.labels_)


def test_a_weight_column_of_text_is_refused_with_its_own_remedy(people):
    folder, frame = people
    frame.assign(town="north").to_csv(folder / "towns.csv", index=False)
    result, _ = run_fit(folder, "towns.csv", "--weight-column", "town")
    assert result.exit_code == 1
    words = "in line 2); --weight-column must name a column of numbers, what each case counts"
    assert words in " ".join(result.output.split())


SEARCHES = {
    "fit": ["--out", "o", "--no-report"],
    "select-k": ["--clusters", "2,3", "--splits", "2", "--references", "3"],
    "select-l1": ["-k", "3", "--bounds", "1.3,2", "--permutations", "2"],
    "compare": ["-k", "2,3", "--bounds", "1.5,2", "--trims", "0"],
}


@pytest.mark.parametrize("command", SEARCHES)
def test_searches_of_the_command_line_go_by_weight(people, command, monkeypatch):
    folder, frame = people
    monkeypatch.chdir(folder)
    seen = []
    fit = Search.fit

    def watched(search, X, y=None, sample_weight=None):
        seen.append(sample_weight)
        return fit(search, X, y, sample_weight)

    monkeypatch.setattr(Search, "fit", watched)
    words = [*command.split(), "people.csv", "--weight-column", "people", *SEARCHES[command]]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    assert "Column 'people' says what each case counts." in text
    assert_array_equal(seen[0], frame["people"])
    if command != "fit":
        assert "Cases count by their weights." in text
