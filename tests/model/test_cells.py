"""Outlying cells: bounded errors as engines see them, and fits that withstand them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, issparse
from sklearn.base import clone

from engine_kinds import _passes, needs_compiler
from rskc import RobustSparseKMeans
from rskc.engines import BoundedEngine, engine_for, passes_numpy
from rskc.inputs.arrays import to_numpy
from rskc.metrics import classification_error_rate
from rskc.model import cells as cells_module
from rskc.model.cells import Columns, extreme_columns, of_few_values, without_extremes
from rskc.selection import Stability
from skips import skip_without
from table_kinds import as_dask, as_tensor


def table(seed, n=120, p=80, q=16, K=3, share=0.04, separation=1.5):
    """Return a table, its clusters and its outlying cells."""
    rng = np.random.default_rng(seed)
    clusters = np.arange(n) % K
    X = rng.normal(size=(n, p))
    X[:, :q] += (separation * rng.normal(size=(K, q)))[clusters]
    cells = rng.random((n, p)) < share
    X[cells] = rng.choice([-1, 1], cells.sum()) * rng.uniform(7, 14, cells.sum())
    return X, clusters, cells


def fitted(X, K=3, **options):
    return RobustSparseKMeans(K, random_state=0, **options).fit(X)


# ---- Passes


@needs_compiler
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_passes_are_those_in_numpy(dtype, missing, threads):
    rng = np.random.default_rng(0)
    X, location = rng.normal(size=(37, 83)).astype(dtype), rng.normal(size=83)
    cells = X, location, 2.0, np.sort(rng.choice(83, 70, replace=False))
    limits, centers = rng.uniform(0.5, 4, 70), rng.normal(size=(2, 4, 70))
    limits[:5] = np.inf
    if missing:
        X[rng.random(X.shape) < 0.2] = X[5] = centers[0, 1, 3] = np.nan
    groups = rng.integers(-1, 4, (2, 37)).astype(np.int32)
    weights, labels = rng.random((2, 70)), np.maximum(groups, 0)
    order = np.argsort(labels[0], kind="stable")
    starts = np.searchsorted(labels[0][order], np.arange(5))
    calls = {
        "nearest_bounded": ((weights[0], limits, centers[0]), [(37,), (37,)], np.int32),
        "bounded_distances": ((weights, limits, labels, centers), [(2, 37)], float),
        "bounded_sums": (
            (limits, rng.random((2, 37)), groups, centers),
            [(2, 4, 140), (2, 4), (2, 70)],
            float,
        ),
        "lower_medians": ((order, starts), [(4, 70)], float),
    }
    for name, (inputs, shapes, first) in calls.items():
        found = []
        for passes in (_passes, passes_numpy):
            outputs = [np.zeros(s, float if i else first) for i, s in enumerate(shapes)]
            getattr(passes, name)(*cells, *inputs, threads, *outputs)
            found.append(outputs)
        for one, other in zip(*found, strict=True):
            assert_allclose(one, other, rtol=1e-12, err_msg=name)


def test_between_sums_are_the_bounded_total_less_the_bounded_within_sum():
    rng = np.random.default_rng(4)
    X, limits = rng.normal(size=(30, 4)), np.full(4, 1.1)
    engine = BoundedEngine(engine_for(X), limits)
    groups = np.append(np.arange(29) % 2, -1).astype(np.int32)[None]
    sums = engine.sums(groups, 2)
    between = engine.between(sums, groups, np.ones((1, 4)))[0] * engine.unit
    means, kept = engine.restore(sums.means())[0], X[:29]
    values, cells = sums.halves()
    mean = engine.restore((values.sum(axis=1) / cells.sum(axis=1))[:, None])[0]
    total = np.minimum((kept - mean) ** 2, 1.1**2).sum(axis=0)
    within = np.minimum((kept - means[groups[0, :29]]) ** 2, 1.1**2).sum(axis=0)
    assert_allclose(between, total - within)


def test_what_is_not_known_to_be_of_cases_is_not_taken_from_the_plain_engine():
    engine = BoundedEngine(engine_for(np.eye(3, 4)), np.ones(4))
    with pytest.raises(AttributeError, match="BoundedEngine"):
        engine.compact_table(np.ones((1, 4)), engine.float32)  # as coordinates of the plain cells
    with pytest.raises(AttributeError, match="blocks"):
        _ = engine.table(np.ones((1, 4))).blocks


# ---- Columns


def test_without_extremes_cells_are_as_they_were_bent_or_in_the_middle():
    X = np.array([[-1.0], [0], [1], [-0.5], [0.5], [-1.5], [1.5], [2.5], [1e9], [-7]])
    columns = Columns.of(X)
    out = columns.wrap(X)
    size = np.abs((X - columns.medians) / columns.scales)
    assert_array_equal(out[size <= 1.5], X[size <= 1.5])
    assert_array_equal(out[size >= 4], np.full_like(out[size >= 4], columns.medians[0]))
    between = (size > 1.5) & (size < 4)
    expected = 1.541 * np.tanh(0.8623 * (4 - size[between])) * columns.scales[0]
    assert_allclose(np.abs(out - columns.medians)[between], expected)
    assert np.abs(columns.clip(X) - columns.medians).max() <= 3 * columns.scales[0] * (1 + 1e-12)


def test_removed_cells_are_missing_and_no_case_is_empty():
    X = np.array([[-1.0, 1], [0, 2], [1, 3], [-0.5, 4], [0.5, 90], [1e9, 5], [-7, -80]])
    columns = Columns.of(X)
    out = columns.remove(X)
    far = np.abs((X - columns.medians) / columns.scales) > 2.5
    assert_array_equal(np.isnan(out)[:6], far[:6])
    assert_array_equal(out[~far], X[~far])
    assert_array_equal(out[6], columns.clip(X)[6])  # of which both cells are far


def test_columns_of_few_values_have_no_outlying_cells():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    X[:, 1] = rng.random(200) < 0.5  # two values
    X[:, 2] = rng.poisson(0.4, 200)  # mostly 0
    X[:80, 3] = 0  # inflated by zeros
    X[:, 4] = rng.poisson(30, 200)
    assert_array_equal(of_few_values(X), [False, True, True, True, False])
    X[::3, 1:3] = 50
    model = fitted(X, 2, cells=3.3)
    assert_array_equal(np.isinf(model.cell_scales_), [False, True, True, True, False])
    assert model.outlying_cells_[:, [1, 2, 3]].nnz == 0


def test_scales_of_errors_are_standard_deviations_of_normal_ones():
    errors = np.random.default_rng(0).normal(size=(20_000, 3)) * [1, 10, 0]
    columns = Columns(np.zeros(3), np.ones(3))
    scales = columns.of_errors(errors, 2).scales
    assert_allclose(scales[:2], [1, 10], rtol=0.03)
    assert np.isinf(scales[2])
    masses = np.repeat([1.0, 2.0], 10_000)
    copies = np.concatenate([errors, errors[10_000:]])
    assert_allclose(
        columns.of_errors(errors, 2, masses).scales, columns.of_errors(copies, 2).scales
    )


def test_a_cell_here_and_there_and_outlying_cases_are_no_reason_to_bound():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 300))
    assert extreme_columns(X) is None
    X[:15] *= 6
    assert extreme_columns(X) is None
    X[rng.random(X.shape) < 0.01] = 12
    assert extreme_columns(X) is not None
    assert np.abs(without_extremes(X)).max() < 6


# ---- Fits


@pytest.mark.parametrize(("K", "n_looks"), [(5, 2), (6, 3)])
def test_many_clusters_are_looked_for_in_hardly_clipped_tables_too(K, n_looks, monkeypatch):
    X, clusters, _ = table(1, n=180, K=K)
    reach, first = [], cells_module._Table.first

    def watched(one, look):
        seen, (medians, scales) = look(one.columns, one.rows), one.columns
        reach.append(np.nanmax(np.abs(seen - medians) / scales))
        return first(one, look)

    monkeypatch.setattr(cells_module._Table, "first", watched)
    assert classification_error_rate(fitted(X, K).labels_, clusters) < 0.01
    assert_allclose(reach, [3, 2.5, 10][:n_looks], rtol=0.01)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.12])
def test_a_fit_withstands_outlying_cells(share):
    X, clusters, cells = table(1, share=share)
    model = fitted(X)
    assert classification_error_rate(model.labels_, clusters) <= 0.02
    flags = model.outlying_cells_.toarray()
    assert flags[cells].mean() > 0.97
    assert flags[~cells].mean() < 0.005
    assert model.get_support()[:16].mean() > 0.8
    assert classification_error_rate(fitted(X, cells=None).labels_, clusters) > 0.02


def test_a_table_without_outlying_cells_has_the_answer_it_had():
    for spread in (1.5, 20):  # clusters that are far apart have cells far from the middle
        X, _, _ = table(2, share=0, separation=spread)
        one, other = fitted(X), fitted(X, cells=None)
        for name in ("labels_", "feature_weights_", "cluster_centers_", "distances_"):
            assert_array_equal(getattr(one, name), getattr(other, name))
        assert one.cell_cutoff_ is None
        assert one.outlying_cells_.nnz == 0


def test_the_methods_of_the_paper_leave_cells_alone_unless_asked():
    X, _, _ = table(3)
    assert fitted(X, trim=0.1, l1_bound=4).cell_cutoff_ is None
    assert fitted(X, trim=0, l1_bound=None).cell_cutoff_ is None
    assert fitted(X, trim=0.1, n_features=10).cell_cutoff_ is None
    assert fitted(X, cells=None).cell_cutoff_ is None
    for options in ({"trim": 0.1, "l1_bound": 4}, {"trim": 0, "l1_bound": None}):
        X, clusters, _ = table(3, separation=2)
        model = fitted(X, cells=3.3, **options)
        assert model.cell_cutoff_ == 3.3
        assert classification_error_rate(model.labels_, clusters) < 0.03


def test_all_attributes_are_of_one_solution():
    X, _, _ = table(4)
    model = fitted(X)
    limits = model.cell_cutoff_ * model.cell_scales_
    errors = np.abs(X - model.cluster_centers_[model.labels_])
    flags = errors > limits
    assert issparse(model.outlying_cells_)
    assert_array_equal(model.outlying_cells_.toarray(), flags)
    bounded = np.minimum(errors, limits) ** 2
    assert_allclose(model.distances_, bounded @ model.feature_weights_)
    assert_allclose(model.unweighted_distances_, bounded.sum(axis=1))
    assert_array_equal(model.predict(X), model.labels_)
    assert_allclose(model.transform(X).min(axis=1) ** 2, model.distances_)
    kept = np.where(flags | model.trimmed_weighted_[:, None], np.nan, X)
    for k, center in enumerate(model.cluster_centers_):
        assert_allclose(np.nanmean(kept[model.labels_ == k], axis=0), center, atol=1e-9)
    assert_array_equal(model.is_outlier(X) | ~model.outliers_, True)


@pytest.mark.parametrize("seed", [8, 9, 10])
def test_cases_of_weight_2_are_as_two(seed):
    """Up to a cell at the limit: of a case that is trimmed in part the looks keep all."""
    X, _, _ = table(seed, n=60)
    weights = np.ones(60)
    weights[::3] = 2
    copies = np.repeat(X, weights.astype(int), axis=0)
    model = RobustSparseKMeans(3, cells=3.3, init=X[:3], random_state=0)
    one, other = clone(model).fit(X, sample_weight=weights), clone(model).fit(copies)
    first = np.cumsum(weights).astype(int) - 1
    assert_array_equal(one.labels_, other.labels_[first])
    assert_array_equal(one.get_support(), other.get_support())
    assert (one.outlying_cells_ != other.outlying_cells_[first]).nnz <= 2


def test_a_case_of_no_weight_is_judged_like_a_new_one_and_so_are_its_cells():
    X, _, cells = table(9)
    weights = np.ones(len(X))
    weights[5::6] = 0
    model = RobustSparseKMeans(3, random_state=0).fit(X, sample_weight=weights)
    assert model.cell_cutoff_ is not None
    assert_array_equal(model.predict(X), model.labels_)
    assert_array_equal(model.is_outlier(X[5::6]), model.outliers_[5::6])
    assert_allclose(model.transform(X[5::6]).min(axis=1) ** 2, model.distances_[5::6])
    assert_array_equal(model.outlying_cells_[[5]].toarray(), model.outlying_cells(X[[5]]).toarray())
    assert model.outlying_cells_[[5]].toarray()[0][cells[5]].all()


def test_categories_have_no_outlying_cells():
    pd = pytest.importorskip("pandas")
    X, clusters, cells = table(11, p=30)
    X /= 2
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(30)])
    frame.insert(0, "color", np.array(["red", "green", "blue"])[clusters])
    model = fitted(frame)
    assert model.outlying_cells_.shape == (120, 31)
    assert model.outlying_cells_[:, [0]].nnz == 0
    assert np.isinf(model.cell_scales_[0])
    assert model.outlying_cells_[:, 1:].toarray()[cells].mean() > 0.95
    assert_array_equal(model.outlying_cells(frame).toarray(), model.outlying_cells_.toarray())


@pytest.mark.filterwarnings("ignore::rskc.exceptions.FitWarning")
@pytest.mark.parametrize("bounded", [False, True], ids=["outlying rows", "outlying cells"])
@pytest.mark.parametrize(
    ("elsewhere", "missing"),
    [(as_dask, False), (as_dask, True), (as_tensor, False), (as_tensor, True), (csr_array, False)],
)
def test_elsewhere_the_data_decide_as_in_memory(elsewhere, missing, bounded):
    X, _, _ = table(13, share=0.04 * bounded)
    X[::9] *= 1 if bounded else 6
    if elsewhere is csr_array:
        X[:, 40:] *= np.random.default_rng(0).random((120, 40)) < 0.2  # mostly zeros
    if missing:
        X[np.random.default_rng(1).random(X.shape) < 0.05] = np.nan
        X[7, 1:] = np.nan  # hardly observed
    here, there = fitted(X), fitted(elsewhere(X))
    assert (here.cell_cutoff_ is not None) == bounded
    for name in ("labels_", "outliers_"):
        assert_array_equal(to_numpy(getattr(there, name)), getattr(here, name), err_msg=name)
    assert_array_equal(there.get_support(), here.get_support())
    assert there.n_features_enough_ == here.n_features_enough_
    assert there.warnings_ == here.warnings_
    assert (there.outlying_cells_ != here.outlying_cells_).nnz == 0
    assert_array_equal(to_numpy(there.predict(elsewhere(X[:60]))), here.labels_[:60])
    assert (there.outlying_cells(elsewhere(X[:60])) != here.outlying_cells_[:60]).nnz == 0
    assert_allclose(to_numpy(there.transform(elsewhere(X))), here.transform(X))


def test_very_many_cases_are_searched_by_a_sample(monkeypatch):
    monkeypatch.setattr("rskc.solver.search.SAMPLE_CELLS", 2**13)
    monkeypatch.setattr("rskc.solver.search.FEWEST_CASES", 2**8)
    X, clusters, cells = table(15, n=2000, p=30, q=6, separation=3)
    for options in ({}, {"trim": 0.05}, {"l1_bound": 3.0}):
        model = fitted(X, **options)
        assert model.cell_cutoff_ == 3.3
        assert classification_error_rate(model.labels_, clusters) < 0.02
        assert model.outlying_cells_.toarray()[cells].mean() > 0.97
        assert_array_equal(model.predict(X), model.labels_)


# ---- Searches and files


def test_the_number_of_clusters_is_found_with_outlying_cells():
    X, _, _ = table(16, p=60)
    search = Stability(
        RobustSparseKMeans(), range(2, 5), n_references=0, n_splits=3, random_state=0, n_jobs=1
    )
    search.set_params(progress=False).fit(X)
    assert search.n_clusters_ == 3
    assert search.best_estimator_.outlying_cells_.nnz > 0


def test_frames_and_words_tell_of_the_cells():
    X, _, _ = table(18)
    model = fitted(X)
    frame = model.cells_frame(X)
    assert len(frame) == model.outlying_cells_.nnz
    assert frame.scales.abs().is_monotonic_decreasing
    assert (frame.scales.abs() > model.cell_cutoff_).all()
    errors = frame.value - frame.center
    assert_allclose(errors / model.cell_scales_[frame.feature.str[1:].astype(int)], frame.scales)
    assert_array_equal(model.cases_frame().outlying_cells, model.outlying_cells_.sum(axis=1))
    assert_array_equal(model.features_frame().outlying_cells, model.outlying_cells_.sum(axis=0))
    assert f"{len(frame)} cells of" in model.summary()
    with pytest.raises(ValueError, match="give the data of fit"):
        model.cells_frame(X[:5])


def test_the_command_line_writes_the_cells(tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas")
    skip_without("typer")
    from commands import run

    monkeypatch.chdir(tmp_path)
    X, _, cells = table(20, p=40)
    pd.DataFrame(X).add_prefix("gene ").to_csv("t.csv", index=False)
    run("fit", "t.csv", "-k", "3", "--no-report", "--standardize", "none")
    frame = pd.read_csv("t-rskc/cells.csv")
    assert len(frame) > 0.95 * cells.sum()
    assert "outlying_cells" in pd.read_csv("t-rskc/labels.csv")
    assert {"outlying_cells", "cell_scale"} <= set(pd.read_csv("t-rskc/features.csv"))
    run("fit", "t.csv", "-k", "3", "--no-report", "--force", "--cells", "none")
    assert not (tmp_path / "t-rskc" / "cells.csv").exists()


def test_the_picture_has_a_mark_for_each_cell():
    skip_without("matplotlib")
    from rskc.displays import CellsDisplay

    X, _, _ = table(21)
    model = fitted(X)
    display = CellsDisplay.from_estimator(model, X)
    places = np.asarray(display.marks_.get_offsets())
    assert len(places) == model.outlying_cells_.nnz
    order = np.argsort(model.labels_, kind="stable")
    cells = order[places[:, 1].astype(int)], places[:, 0].astype(int)
    assert model.outlying_cells_.toarray()[cells].all()
    errors = X[cells] - model.cluster_centers_[model.labels_[cells[0]], cells[1]]
    assert_array_equal(np.sign(display.scales), np.sign(errors))
    display.figure_.clear()
    none = CellsDisplay(*np.empty((2, 0), int), np.empty(0), labels=model.labels_, n_features=9)
    none.plot().figure_.clear()
