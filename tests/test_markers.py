"""Markers: effects by hand, laws, what is left out, and the lists that other programs read."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.files import write_ranked_lists
from rskc.markers import effects_between, marker_effects
from rskc.model.fitted import with_cases

THREE = np.repeat([0, 1, 2], 4)


def table(seed=0, n=12, p=7):
    return np.random.default_rng(seed).normal(size=(n, p))


@pytest.fixture(scope="module")
def X():
    made = make_simulation(model=1, random_state=0, n_features=60, n_informative=20)
    return made.data


@pytest.fixture(scope="module")
def model(X):
    return RobustSparseKMeans(3, trim=0.05, l1_bound=4, n_init=5, random_state=0).fit(X)


# --- by hand


@pytest.mark.parametrize("zero_and_one", [(0.0, 1.0), (-0.3, 7.5)])
def test_the_mean_of_two_values_is_the_plain_mean(zero_and_one):
    """Three of 31 ones are no outlying cells, though nine cells in ten are the same."""
    ones = np.r_[np.ones(3), np.zeros(28), np.ones(30), np.zeros(20)].astype(int)
    cells = np.asarray(zero_and_one)[ones][:, None]
    cells[40] = np.nan
    found = effects_between(cells, np.repeat([0, 1], [31, 50]), 2)
    assert_allclose(found.means[:, 0], [cells[:31].mean(), np.nanmean(cells[31:])])


# --- laws


def test_neither_units_nor_order_nor_numbers_of_clusters_matter():
    X, factors = table(), np.array([1e-6, 0.1, 1, 3, 1e5, 7, 2])
    one, other = (
        effects_between(X, THREE, 3),
        effects_between(X * factors + 100 * factors, THREE, 3),
    )
    assert_allclose(other.effects, one.effects, rtol=1e-7)
    assert_allclose(other.separations, one.separations, rtol=1e-7)
    assert_allclose(effects_between(-X, THREE, 3).effects, -one.effects)
    other = effects_between(X[::-1], THREE[::-1], 3)
    for left, right in zip(one, other, strict=True):
        assert_allclose(left, right, atol=1e-12)
    new = np.array([2, 0, 1])
    other = effects_between(X, new[THREE], 3)
    assert_allclose(other.effects[new], one.effects)
    assert_allclose(other.separations[new], one.separations)
    two = effects_between(X, THREE % 2, 2)
    assert_allclose(two.effects[0], -two.effects[1])
    assert_allclose(two.separations, np.abs(two.effects))


def test_sparse_and_single_precision_tables_and_cases_left_out():
    X, labels = np.where(table() > 0, table(), 0), THREE.copy()
    dense = effects_between(X, THREE, 3)
    assert_array_equal(effects_between(sparse.csc_matrix(X), THREE, 3).effects, dense.effects)
    assert_allclose(effects_between(X.astype(np.float32), THREE, 3).effects, dense.effects, 1e-4)
    labels[[1, 6]] = -1
    kept = labels >= 0
    X[~kept] = 1e9
    one, other = effects_between(X, labels, 3), effects_between(X[kept], labels[kept], 3)
    assert_array_equal(one.effects, other.effects)


def test_cells_of_many_cases_are_cut_by_some(monkeypatch):
    X, labels = table(n=600), np.repeat([0, 1, 2], 200)
    whole = effects_between(X, labels, 3)
    monkeypatch.setattr("rskc.markers.MOST_FOR_CUTS", 100)
    some = effects_between(X, labels, 3)
    assert_allclose(some.means, whole.means, atol=0.03)
    assert_allclose(some.scales, whole.scales, rtol=0.03)
    assert not np.array_equal(some.scales, whole.scales)


# --- what is left out


def test_trimmed_cases_and_outliers_are_left_out(model, X):
    changed = X.copy()
    out = model.trimmed_ | model.outliers_
    assert out.any()
    changed[out] += 1000
    assert_array_equal(marker_effects(model, changed).effects, marker_effects(model, X).effects)


def test_missing_cells_do_not_count():
    X = table()
    X[[0, 5, 9], 2] = np.nan
    seen = ~np.isnan(X[:, 2])
    found = effects_between(X, THREE, 3)
    alone = effects_between(X[seen][:, [2]], THREE[seen], 3)
    assert_allclose(found.effects[:, 2], alone.effects[:, 0])
    assert_allclose(found.scales[2], alone.scales[0])


def test_a_cluster_without_regular_cases(model, X):
    gone = with_cases(
        model,
        labels_=model.labels_,
        trimmed_=model.trimmed_,
        outliers_=model.outliers_ | (model.labels_ == 1),
    )
    frame = gone.markers_frame(X)
    assert set(frame.cluster) == {0, 2}


# --- the frame


def test_the_frame_has_what_it_says(model, X):
    frame, found = model.markers_frame(X, min_effect=0), marker_effects(model, X)
    assert len(frame) == 3 * model.get_support().sum()
    features = frame.feature.str[1:].astype(int).to_numpy()
    assert_array_equal(frame.effect, found.effects[frame.cluster, features])
    assert_allclose(frame.effect, (frame["mean"] - frame.mean_of_others) / frame.scale)
    assert_array_equal(frame.weight, model.feature_weights_[features])
    strength = np.maximum(frame.effect.abs(), frame.separation)
    for k in range(3):
        own = frame.cluster == k
        assert_array_equal(frame["rank"][own], np.arange(1, own.sum() + 1))
        assert (np.diff(strength[own]) <= 0).all()
        assert set(frame.feature[own]) == {f"x{j}" for j in np.flatnonzero(model.get_support())}
    top = model.markers_frame(X, n_top=2)
    assert_array_equal(top.groupby("cluster").size(), 2)
    least = model.markers_frame(X, min_effect=1.5)
    assert len(least) == (strength >= 1.5).sum()
    for row in frame.itertuples():
        column = found.means[:, int(row.feature[1:])]
        rank = int((column < column[row.cluster]).sum())
        assert row.position == ("below", "between", "above")[rank]
    for _, own in top.groupby("cluster"):
        assert own.feature.str[1:].astype(int).max() < 20  # these are informative
    assert "selection_probability" not in frame
    given = np.linspace(0, 1, X.shape[1])
    frame = model.markers_frame(X, selection_probabilities=given)
    assert_array_equal(frame.selection_probability, given[frame.feature.str[1:].astype(int)])
    dense = RobustSparseKMeans(3, l1_bound=None, n_init=5, random_state=0).fit(X)
    assert len(dense.markers_frame(X, min_effect=0)) == 3 * X.shape[1]


def test_one_cluster_has_none(X, tmp_path):
    one = RobustSparseKMeans(1, l1_bound=None, random_state=0).fit(X)
    frame = one.markers_frame(X)
    assert len(frame) == 0
    assert {"cluster", "feature", "effect"} <= set(frame)
    assert np.isnan(marker_effects(one, X).effects).all()
    with pytest.raises(ValueError, match="nothing to be compared with"):
        write_ranked_lists(one, X, tmp_path)


# --- ranked lists


def test_ranked_lists_hold_all_features_in_order(model, X, tmp_path):
    paths = write_ranked_lists(model, X, tmp_path / "new" / "lists")
    assert [path.name for path in paths] == ["cluster-0.rnk", "cluster-1.rnk", "cluster-2.rnk"]
    for k, path in enumerate(paths):
        read = pd.read_csv(path, sep="\t", header=None, index_col=0)[1]
        assert len(read) == X.shape[1]
        assert (np.diff(read) <= 0).all()
        known = marker_effects(model, X).effects[k]
        assert_allclose(read[[f"x{j}" for j in range(X.shape[1])]], known, rtol=1e-5)


def test_names_cannot_break_a_ranked_list(X, tmp_path):
    names = ["a\tb", "two\nlines", "é\udc80", *(f"g{j}" for j in range(3, X.shape[1]))]
    frame = pd.DataFrame(X, columns=pd.Index(names, dtype=object))  # "str" of pandas 3 is UTF-8
    model = RobustSparseKMeans(2, n_init=2, random_state=0).fit(frame)
    for path in write_ranked_lists(model, frame, tmp_path):
        rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
        assert len(rows) == X.shape[1]
        assert all(len(row) == 2 for row in rows)
        assert {"a b", "two lines"} <= {row[0] for row in rows}
