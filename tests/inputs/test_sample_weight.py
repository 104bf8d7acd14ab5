"""Case weights: a case of weight 3 is three copies of it, on every engine and in every fit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import rand_score

from engine_kinds import to_strict
from rskc import RobustSparseKMeans
from rskc.datasets import make_figure1
from rskc.engines.arrays import weighted_median
from rskc.inputs.arrays import to_numpy
from table_kinds import as_dask

pytestmark = pytest.mark.filterwarnings("ignore::rskc.exceptions.FitWarning")

seeds = st.integers(0, 2**32 - 1)
K = 3


# ---- Units and medians


@given(seed=seeds, n=st.integers(1, 12))
def test_weighted_median_is_that_of_copies(seed, n):
    rng = np.random.default_rng(seed)
    values, masses = rng.integers(0, 6, n).astype(float), rng.integers(1, 5, n)
    expected = np.median(np.repeat(values, masses))
    assert weighted_median(values, masses.astype(float)) == expected
    assert weighted_median(values, masses * 0.1) == expected


# ---- Fits

METHODS = {
    "K-means": {"trim": 0, "l1_bound": None},
    "trimmed": {"trim": 0.1, "l1_bound": None},
    "sparse": {"trim": 0, "l1_bound": 1.6},
    "robust and sparse": {"trim": 0.1, "l1_bound": 1.6},
    "reweighted": {"trim": 0.1, "l1_bound": 1.6, "reweight": True},
}
each_method = pytest.mark.parametrize("settings", METHODS.values(), ids=METHODS)
RESULTS = ("labels_", "cluster_centers_", "feature_weights_", "trimmed_", "outliers_", "distances_")


def table(seed, n=45, missing=0.0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % K
    X = rng.normal(size=(n, 6))
    X[:, :3] += 8 * np.eye(3)[labels]
    X[-2:] += 30 * rng.normal(size=(2, 6))
    start = np.stack([X[labels == k][:5].mean(axis=0) for k in range(K)])
    X[rng.random(X.shape) < missing] = np.nan
    return X, start


def fitted(X, start, weights=None, **settings):
    model = RobustSparseKMeans(K, init=start, n_threads=1, **settings)
    return model.fit(X, sample_weight=weights)


def assert_close(one, other, factor=1.0):
    assert_allclose(one.objective_, factor * other.objective_, rtol=1e-7)
    assert_allclose(one.inertia_, factor * other.inertia_, rtol=1e-7)
    assert_allclose(one.cluster_centers_, other.cluster_centers_, rtol=1e-7, atol=1e-8)
    assert_allclose(one.feature_weights_, other.feature_weights_, rtol=1e-7, atol=1e-8)
    assert_allclose(one.outlier_threshold_, other.outlier_threshold_, rtol=1e-7)
    assert_allclose(one.trim_, other.trim_, atol=1e-12)


@each_method
@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(4))
def test_a_case_of_weight_3_is_three_copies(settings, missing, seed):
    """With so many cases that none is moved alone: three copies may go three ways.

    Of given seeds: where cells are missing, one in some hundreds ends in another optimum.
    """
    n = 1002
    (X, start), weights = table(seed, n, missing), np.random.default_rng(seed).integers(1, 4, n)
    one = fitted(X, start, weights, **settings)
    other = fitted(np.repeat(X, weights, axis=0), start, **settings)
    assert_close(one, other)
    assert_array_equal(np.repeat(one.labels_, weights), other.labels_)
    assert_array_equal(np.repeat(one.outliers_, weights), other.outliers_)
    assert (np.repeat(one.trimmed_, weights) >= other.trimmed_).all()
    assert_array_equal(one.sample_weight_, weights)


@each_method
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_weights_of_1_change_nothing_bit_for_bit(settings, missing):
    X, start = table(1, missing=missing)
    one, other = fitted(X, start, np.ones(45), **settings), fitted(X, start, **settings)
    for name in (*RESULTS, "objective_", "inertia_", "n_trim_", "trim_", "objective_path_"):
        assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@each_method
@settings(max_examples=8)
@given(seed=seeds, power=st.integers(-9, 9), factor=st.floats(0.1, 10))
def test_scaling_all_weights_changes_nothing(settings, seed, power, factor):
    (X, start), weights = table(seed), np.random.default_rng(seed).uniform(0.2, 3, 45)
    one = fitted(X, start, weights, **settings)
    other = fitted(X, start, weights * 2.0**power, **settings)
    for name in (*RESULTS, "n_trim_", "trim_"):
        assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert other.objective_ == one.objective_ * 2.0**power
    assert other.inertia_ == one.inertia_ * 2.0**power
    assert_close(fitted(X, start, weights * factor, **settings), one, factor)


@each_method
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_a_case_of_weight_0_is_absent_but_has_a_label(settings, missing):
    (X, start), weights = table(2, missing=missing), np.random.default_rng(2).integers(0, 3, 45)
    one, there = fitted(X, start, weights, **settings), weights > 0
    other = fitted(X[there], start, weights[there], **settings)
    for name in RESULTS:
        own = getattr(one, name)
        own = own[there] if len(own) == len(X) else own
        assert_array_equal(own, getattr(other, name), err_msg=name)
    assert one.objective_ == other.objective_
    assert_array_equal(one.labels_, one.predict(X))
    assert_array_equal(one.outliers_[~there], one.is_outlier(X)[~there])
    assert not one.trimmed_[~there].any()


def test_by_hand_the_last_case_is_trimmed_in_part():
    """A weight of 1 at 0, 1, 2, 3 and 4, of 3 at 10, a quarter trimmed: 2 of the 3 go, 1 stays."""
    x = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 10.0])
    model = RobustSparseKMeans(1, trim=0.25, l1_bound=None)
    model.fit(x[:, None], sample_weight=[1, 1, 1, 1, 1, 3])
    assert_allclose(model.cluster_centers_, [[20 / 6]])
    assert_allclose(model.inertia_, ((x - 20 / 6) ** 2).sum())
    assert_array_equal(model.trimmed_, x == 10)
    assert (model.n_trim_, model.trim_) == (1, 0.25)


@pytest.mark.parametrize("init", ["random", "k-means++", "robust"])
def test_starts_are_drawn_as_among_copies(init):
    X, _ = table(4, 1002)
    weights = np.random.default_rng(4).integers(1, 4, 1002)
    model = RobustSparseKMeans(K, init=init, n_init=4, random_state=0, trim=0.1, l1_bound=1.6)
    one = clone(model).fit(X, sample_weight=weights)
    other = clone(model).fit(np.repeat(X, weights, axis=0))
    assert_close(one, other)
    assert_array_equal(np.repeat(one.labels_, weights), other.labels_)


def test_the_data_decide_by_weight():
    """What ``trim="auto"`` and ``l1_bound="auto"`` find does not depend on the kind of copies."""
    data = make_figure1(n_samples=80, n_features=12, random_state=1)
    X, weights = data.data.copy(), np.random.default_rng(5).integers(1, 4, 80)
    X[:3] += 40
    model = RobustSparseKMeans(3, n_init=10, random_state=0)
    one = clone(model).fit(X, sample_weight=weights)
    other = clone(model).fit(np.repeat(X, weights, axis=0))
    assert one.n_features_different_ == other.n_features_different_
    assert_allclose(one.feature_statistics_, other.feature_statistics_, rtol=1e-5)
    assert_allclose(one.trim_, other.trim_)
    assert_array_equal(np.repeat(one.outliers_, weights), other.outliers_)


def test_many_clusters_with_cases_that_are_trimmed_in_part():
    rng = np.random.default_rng(6)
    truth = np.arange(180) % 12
    X = rng.normal(size=(180, 3)) + 20 * rng.normal(size=(12, 3))[truth]
    model = RobustSparseKMeans(12, trim=0.05, l1_bound=None, random_state=0)
    model.fit(X, sample_weight=rng.random(180))
    assert rand_score(model.labels_, truth) == 1


PLACES = {"blocks": as_dask, "device": to_strict, "sparse": csr_array}


@pytest.mark.parametrize(
    ("place", "missing"),
    [("blocks", 0.0), ("blocks", 0.1), ("device", 0.0), ("device", 0.1), ("sparse", 0.0)],
)
@pytest.mark.parametrize("method", ["robust and sparse", "trimmed"])
def test_fits_elsewhere_are_those_in_memory(place, missing, method, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    (X, start), weights = table(11, missing=missing), np.random.default_rng(11).uniform(0.2, 3, 45)
    X[::2, 3:] = 0  # so that a sparse matrix stays one
    weights[[2, 9]] = 0
    one = fitted(X, start, weights, **METHODS[method])
    elsewhere = PLACES[place](X)
    with config_context(array_api_dispatch=place == "device"):
        other = fitted(elsewhere, start, weights, **METHODS[method])
        found = {name: to_numpy(getattr(other, name)) for name in RESULTS}
    for name in ("labels_", "trimmed_", "outliers_"):
        assert_array_equal(found[name], getattr(one, name), err_msg=name)
    assert_allclose(found["distances_"], one.distances_, rtol=1e-9)
    assert_allclose(other.objective_, one.objective_, rtol=1e-9)
    assert_array_equal(other.sample_weight_, weights)


def test_blocks_know_how_many_weights_they_need():
    X, start = table(0)
    blocks = as_dask(X)[np.arange(45) < 40]
    unknown = blocks[blocks[:, 0] > -1e9]  # lengths of its chunks are not known
    with pytest.raises(ValueError, match=r"sample_weight has shape \(45,\); it must have shape"):
        fitted(unknown, start, np.arange(1.0, 46.0), trim=0.1)
    with pytest.raises(ValueError, match=r"call X.compute_chunk_sizes\(\) first"):
        fitted(unknown, start, np.arange(40.0), trim=0.1)


# ---- scikit-learn


def test_score_counts_by_weight():
    X, start = table(8)
    weights = np.random.default_rng(8).integers(0, 4, 45)
    weights[0] = 1
    model = fitted(X, start, trim=0.1, l1_bound=1.6)
    copies = np.repeat(X, weights, axis=0)
    assert_allclose(model.score(X, sample_weight=weights), model.score(copies))
    assert_allclose(model.score(X, sample_weight=np.ones(45)), model.score(X))
    assert_allclose(model.score(X, sample_weight=2.5 * weights), 2.5 * model.score(copies))


def test_fit_predict_and_fit_transform_take_weights():
    X, start = table(10)
    weights = np.random.default_rng(10).integers(1, 4, 45)
    model = fitted(X, start, weights, trim=0.1, l1_bound=1.6)
    assert_array_equal(clone(model).fit_predict(X, sample_weight=weights), model.labels_)
    assert_allclose(clone(model).fit_transform(X, sample_weight=weights), model.transform(X))
    assert not hasattr(model.fit(X), "sample_weight_")
