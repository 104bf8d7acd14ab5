"""Outlying cells in report and explorer: the numbers are those of the model."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from rskc import RobustSparseKMeans, explore
from rskc.explorer.views import scene_of, values_of
from rskc.pictures.models import rows_by_cluster
from rskc.report import _charts, make_report


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


def test_the_section_counts_the_cells_of_the_model(summary, model, data):
    cells, frame = summary["cells"], model.cells_frame(data)
    assert cells["n_cells"] == len(frame) == model.outlying_cells_.nnz
    assert cells["share"] == pytest.approx(len(frame) / data.size)
    for kind, group in (("feature", cells["features"]), ("case", cells["cases"])):
        counts = frame[kind].value_counts()
        assert group["n"] == len(counts)
        shown = {row["name"]: row for row in group["rows"]}
        assert max(counts[~counts.index.isin(list(shown))], default=0) <= min(
            row["n_cells"] for row in group["rows"]
        )
        for name, row in shown.items():
            assert row["n_cells"] == counts[name]
            farthest = frame[frame[kind] == name].scales.iloc[0]
            assert row["farthest"] == pytest.approx(farthest, rel=1e-3)
    assert cells["cases"]["rows"][0]["name"] == "case 3"


def test_marks_are_at_their_cases_and_features(summary, model, data):
    marks, frame = summary["charts"]["outlying"]["data"]["marks"], model.cells_frame(data)
    assert marks["case"] == frame.case.tolist()
    assert marks["feature"] == frame.feature.tolist()
    assert_allclose(marks["value"], frame.value, rtol=1e-3)
    rows = rows_by_cluster(model.labels_)
    assert marks["y"] == rows[data.index.get_indexer(frame.case)].tolist()
    assert marks["x"] == data.columns.get_indexer(frame.feature).tolist()
    bands = summary["charts"]["outlying"]["data"]["clusters"]
    for k, start, end in zip(*bands.values(), strict=True):
        assert sorted(rows[model.labels_ == k]) == list(range(start, end))


def test_many_cells_are_drawn_in_part(model, data, monkeypatch):
    monkeypatch.setattr(_charts, "MOST_MARKS", 20)
    monkeypatch.setattr(_charts, "FARTHEST", 10)
    chart = make_report(model, data).summary["charts"]["outlying"]
    frame = model.cells_frame(data)
    assert chart["data"]["marks"]["case"][:10] == frame.case[:10].tolist()
    assert len(chart["data"]["marks"]["case"]) == 20
    assert f"20 of {len(frame)} cells" in chart["notes"][0]


def test_a_sparse_table_without_outlying_cells_has_no_section(data):
    X = csr_array(np.clip(data, 1, 4) - 1)
    model = RobustSparseKMeans(2, cells=50.0, random_state=0).fit(X)
    assert model.cells_frame(X).empty
    assert make_report(model, X).summary["cells"] is None


def test_without_bounded_cells_there_is_no_section(data):
    model = RobustSparseKMeans(2, cells=None, random_state=0).fit(data)
    report = make_report(model, data)
    assert report.summary["cells"] is None
    assert "outlying" not in report.summary["charts"]
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
