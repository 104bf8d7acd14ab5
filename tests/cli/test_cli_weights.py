"""Case weights in the command line: ``--weight-column``."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from commands import labels, run
from rskc import RobustSparseKMeans, load
from rskc.datasets import make_figure1
from rskc.selection.search import Search

pytestmark = pytest.mark.filterwarnings("ignore::rskc.exceptions.FitWarning")
WEIGHTED = ("--weight-column", "people")
FIT = ("-k", "3", "--out", "out", "--no-report", "--prepare", "none", *WEIGHTED)


@pytest.fixture
def people(tmp_path, monkeypatch):
    """A table with a column of weights, as text, and the folder to work in."""
    monkeypatch.chdir(tmp_path)
    data = make_figure1(n_samples=45, n_features=6, random_state=13)
    frame = pd.DataFrame(data.data, columns=list("abcdef"))
    frame["people"] = np.random.default_rng(13).integers(0, 5, len(frame))
    frame.to_csv("people.csv", index=False)
    return frame


def test_the_command_line_has_a_weight_column(people):
    result = run("fit", "people.csv", *FIT)
    assert "Column 'people' holds the weights of the cases." in " ".join(result.output.split())
    model, X = load("out/model.rskc"), people.drop(columns="people")
    expected = RobustSparseKMeans(3, random_state=0).fit(X, sample_weight=people["people"])
    assert list(model.feature_names_in_) == list(X.columns)
    assert_allclose(model.objective_, expected.objective_)
    assert_array_equal(model.sample_weight_, people["people"])
    assert_array_equal(labels("out").cluster, expected.labels_)


def test_weights_in_blocks_are_those_of_the_table(people):
    people.to_parquet("people.parquet")
    settings = ("--trim", "0.1", "--l1-bound", "1.7")
    run("fit", "people.parquet", *FIT, *settings, "--engine", "dask")
    expected = RobustSparseKMeans(3, random_state=0, trim=0.1, l1_bound=1.7)
    expected.fit(people.drop(columns="people"), sample_weight=people["people"])
    assert_array_equal(labels("out").cluster, expected.labels_)


SEARCHES = {
    "fit": ["--out", "o"],
    "select-k": ["--clusters", "2,3", "--splits", "2", "--references", "3"],
    "select-l1": ["-k", "3", "--bounds", "1.3,2", "--permutations", "2"],
    "compare": ["-k", "2,3", "--bounds", "1.5,2", "--trims", "0"],
}


@pytest.mark.parametrize("command", SEARCHES)
def test_searches_of_the_command_line_go_by_weight(people, command, monkeypatch):
    seen = []
    fit = Search.fit

    def watched(search, X, y=None, sample_weight=None):
        seen.append(sample_weight)
        if command == "fit":
            raise ValueError("That is enough")
        return fit(search, X, y, sample_weight)

    monkeypatch.setattr(Search, "fit", watched)
    few = ("--n-init", "2", "--jobs", "1")
    words = [command, "people.csv", *WEIGHTED, *SEARCHES[command], *few]
    result = run(*words, code=int(command == "fit"))
    assert_array_equal(seen[0], people["people"])
    if command != "fit":
        assert "Cases count by their weights." in " ".join(result.output.split())
