"""Outlying cells in report and explorer: the numbers are those of the model."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from rskc import RobustSparseKMeans, explore
from rskc.explorer.views import scene_of, values_of
from rskc.report import _facts, make_report


@pytest.fixture(scope="module")
def data():
    """Two clusters in 10 of 30 features, and 40 cells that are far off."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 30))
    X[:, :10] += 4.0 * (np.arange(80)[:, None] % 2)
    places = rng.choice(80 * 30, 40, replace=False)
    X.flat[places] += 20.0
    X[3, 15:20] -= 30.0
    index = [f"case {i}" for i in range(80)]
    return pd.DataFrame(X, columns=[f"gene {j}" for j in range(30)], index=index)


@pytest.fixture(scope="module")
def model(data):
    return RobustSparseKMeans(2, random_state=0).fit(data)


@pytest.fixture(scope="module")
def summary(model, data):
    return make_report(model, data).summary


def test_the_table_has_the_cells_of_the_model(summary, model, data):
    cells, frame = summary["cells"], model.cells_frame(data)
    assert cells["n_rows"] == len(frame) == model.outlying_cells_.nnz
    assert cells["share"] == pytest.approx(len(frame) / data.size)
    assert cells["data"]["case"] == frame.case.tolist()
    words, codes = (cells[part]["feature"] for part in ("words", "data"))
    assert [words[code] for code in codes] == frame.feature.tolist()
    for name in ("value", "center", "scales", "cluster"):
        assert_allclose(cells["data"][name], frame[name], rtol=1e-3)


def test_of_many_cells_the_farthest_are_held(model, data, monkeypatch):
    monkeypatch.setattr(_facts, "MOST_FOR_CELLS", 1000)
    cells = make_report(model, data).summary["cells"]
    held = cells["data"]["case"]
    assert 3 < len(held) < cells["n_rows"]
    assert held == model.cells_frame(data).case[: len(held)].tolist()
    assert f"the {len(held)} cells farthest from their centers" in cells["note"]


def test_a_sparse_table_without_outlying_cells_has_no_section(data):
    X = csr_array(np.clip(data, 1, 4) - 1)
    model = RobustSparseKMeans(2, cells=50.0, random_state=0).fit(X)
    assert model.cells_frame(X).empty
    assert make_report(model, X).summary["cells"] is None


def test_without_bounded_cells_there_is_no_section(data):
    model = RobustSparseKMeans(2, cells=None, random_state=0).fit(data)
    report = make_report(model, data)
    assert report.summary["cells"] is None
    assert 'id="cells"' not in report.html


def test_the_explorer_shows_the_table_as_it_is_and_places_without_extremes(data):
    settings = {"n_clusters": [2], "n_features": [10, 30], "trims": [0], "n_splits": 0}
    page = explore(data, **settings, n_jobs=1, progress=False)
    scene = scene_of(page.search)
    cells, _ = values_of(page.search, scene.shown, {})
    assert_allclose(cells, data.to_numpy()[:, scene.shown])
    automatic = page.search.best_estimator_
    assert (scene.cells != automatic.outlying_cells_).nnz == 0
    assert np.abs(page.search.searched_).max() < np.abs(page.search.data_).max()
