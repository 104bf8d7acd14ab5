"""What RSKC gets wrong: odd data and wrong parameters are answered in one sentence, or work."""

import warnings

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import rand_score

from definitions import read_only, strided
from rskc import ColumnStandardizer, RobustSparseKMeans, RowStandardizer
from rskc.datasets import make_figure1
from skips import skip_without

# That a cluster may be outlying is no complaint about the input.
pytestmark = pytest.mark.filterwarnings("ignore::rskc.SmallClusterWarning")

DATA = make_figure1(n_samples=60, n_features=6, random_state=0)
X = DATA.data


def make_model(n_clusters=3, **changes):
    return RobustSparseKMeans(n_clusters, **{"n_init": 5, "random_state": 0} | changes)


def assert_sound(model, X):
    """Labels are labels, weights keep both norms, and everything is finite."""
    n, p, K = *X.shape, model.n_clusters
    assert model.labels_.shape == (n,)
    assert model.labels_.dtype.kind == "i"
    assert set(model.labels_) <= set(range(K))
    assert_array_equal(model.predict(X), model.labels_)
    assert model.cluster_centers_.shape == (K, p)
    results = (model.cluster_centers_, model.objective_, model.inertia_, model.outlier_threshold_)
    assert all(np.isfinite(result).all() for result in results)
    assert_weights(model.feature_weights_, p, model.l1_bound_)


def assert_weights(weights, p, bound):
    assert weights.shape == (p,)
    assert (weights >= 0).all()
    if bound is None:
        assert_array_equal(weights, 1)
        return
    assert_allclose(np.linalg.norm(weights), 1, rtol=1e-9)
    assert weights.sum() <= bound * (1 + 1e-9)


def assert_one_sentence(error, name):
    message = str(error.value)
    assert message.startswith(f"{name}=")
    assert message.endswith(".")
    assert "\n" not in message


# Wrong parameters


@pytest.mark.parametrize(
    ("parameter", "values"),
    [
        ("n_clusters", [0, -1, 2.0, True, "3", None, np.nan]),
        ("trim", [-0.1, 0.5, 1, np.nan, np.inf, "0.1", "half", None, True, [0.1]]),
        ("l1_bound", [0.99, 0, -1, np.nan, -np.inf, "halfway", True, [2.0]]),
        ("n_features", [0, -2, 7, 2.0, "2", True]),
        ("n_init", [0, -1, 1.5, "many", None, True]),
        ("max_iter", [0, -1, 10.0, "300", None]),
        ("tol", [-1e-9, np.nan, np.inf, "0", None]),
        ("outlier_cutoff", [-1, np.nan, np.inf, "3.5"]),
        ("outlier_rule", ["mad", None, 3]),
        ("reweight", ["yes", 2, None]),
        ("n_threads", [0, -1, 1.0, "2", True]),
        ("init", ["kmeans", "Random", ""]),
        ("random_state", ["a", -1, 1.5]),
        ("verbose", ["loud", -1]),
    ],
)
def test_wrong_values_are_named(parameter, values):
    for value in values:
        with pytest.raises(ValueError) as error:
            make_model().set_params(**{parameter: value}).fit(X)
        assert_one_sentence(error, parameter)
        assert repr(value) in str(error.value)


# Odd data


@pytest.mark.parametrize("cell", [np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("other", [0.0, np.nan])
def test_infinities_are_refused(cell, dtype, other):
    bad = X.astype(dtype)
    bad[3, 2], bad[4, 2] = cell, other
    with pytest.raises(ValueError, match="X contains infinity"):
        make_model().fit(bad)
    model = make_model().fit(X)
    for method in ("predict", "transform", "score_samples", "is_outlier"):
        with pytest.raises(ValueError, match="X contains infinity"):
            getattr(model, method)(bad)


@pytest.mark.parametrize("bound", [1.5, None])
def test_constant_columns_get_no_weight_and_do_not_matter(bound):
    constant = np.insert(X, [0, 3, 6], [5.0, -1e9, 1e-9], axis=1)
    with_them, without = (make_model(l1_bound=bound).fit(Z) for Z in (constant, X))
    assert_sound(with_them, constant)
    assert_array_equal(with_them.labels_, without.labels_)
    assert_allclose(with_them.cluster_centers_[:, [0, 4, 8]], [[5.0, -1e9, 1e-9]] * 3)
    if bound is not None:
        assert_allclose(np.delete(with_them.feature_weights_, [0, 4, 8]), without.feature_weights_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", [6, 100])
@pytest.mark.parametrize("size", [1e9, 1e30, 1e100, 1e300])
def test_one_cell_out_of_this_world(p, size, dtype):
    outlying, target, *_ = make_figure1(n_samples=60, n_features=p, random_state=0)
    outlying[7, 5] = min(size, float(np.finfo(dtype).max))
    outlying = outlying.astype(dtype)
    model = make_model(l1_bound=1.5).fit(outlying)
    assert_sound(model, outlying)
    assert model.trimmed_[7]
    assert rand_score(np.delete(model.labels_, 7), np.delete(target, 7)) > 0.93
    assert_sound(make_model(l1_bound=None).fit(outlying), outlying)


def test_fewer_clusters_than_asked_for_are_mentioned():
    cases = np.zeros((10, 2))
    cases[8:] = [[5, 5], [-5, 5]]
    with pytest.warns(ConvergenceWarning, match=r"Only 2 distinct clusters .* n_clusters=3"):
        make_model(3, trim=0.2, l1_bound=None).fit(cases)


# All of it at once


@st.composite
def tables(draw):
    """Tables of any shape, scale, place and order, with columns and cases that repeat."""
    n, p = draw(st.integers(2, 40)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.standard_normal((n, p)) + rng.integers(-5, 6, n)[:, None] * draw(
        st.sampled_from([0, 3])
    )
    X[:, : draw(st.integers(0, p))] = draw(st.sampled_from([0.0, 1.0, -7.3]))
    X = X[:, rng.integers(0, p, p)] if draw(st.booleans()) else X
    X = X[rng.integers(0, draw(st.integers(1, n)), n)] if draw(st.booleans()) else X
    X = np.round(X) if draw(st.booleans()) else X
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    most = 150 if dtype == np.float64 else 29
    scale = 10.0 ** draw(st.one_of(st.just(0), st.integers(-most, most)))
    X = ((X + draw(st.sampled_from([0, 0, 1e3, 1e8]))) * scale).astype(dtype)
    return draw(st.sampled_from([np.ascontiguousarray, np.asfortranarray, strided, read_only]))(X)


@st.composite
def models(draw, p):
    """Models with any of the parameters that are right for p features."""
    bounds = st.one_of(st.none(), st.just("auto"), st.floats(1, max(1, np.sqrt(p))))
    return RobustSparseKMeans(
        draw(st.integers(1, 8)),
        trim=draw(st.one_of(st.just(0), st.floats(0, 0.5, exclude_max=True))),
        l1_bound=draw(bounds),
        init=draw(st.sampled_from(["auto", "random", "k-means++", "robust"])),
        n_init=draw(st.integers(1, 4)),
        tol=draw(st.sampled_from([0, 1e-4])),
        random_state=draw(st.integers(0, 1000)),
    )


def can_be_clustered(model, X):
    left = len(X) - int(np.floor(model.trim * len(X) + 1e-9))
    return model.n_clusters <= min(left, len(np.unique(X, axis=0)))


@pytest.mark.filterwarnings("ignore:Only .* distinct clusters")
@settings(max_examples=300)
@given(data=st.data(), X=tables())
def test_either_a_sound_result_or_one_sentence(data, X):
    model = data.draw(models(X.shape[1]))
    if not can_be_clustered(model, X):
        event("refused")
        with pytest.raises(ValueError) as error:
            model.fit(X)
        assert_one_sentence(error, "n_clusters")
        return
    assert_sound(model.fit(X), X)


@settings(max_examples=100)
@given(X=tables(), m=st.integers(1, 12))
def test_a_wanted_number_of_features_is_met_or_missed_aloud(X, m):
    m = min(m, X.shape[1])
    model = RobustSparseKMeans(1, n_features=m, n_init=1, random_state=0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X)
    assert_sound(model, X)
    met = model.get_support().sum() == m
    assert met != any(f"n_features={m} is not" in str(warning.message) for warning in said)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("dtype", [float, np.float32, int])
def test_masked_cells_are_missing_cells(dtype):
    """What a mask hides takes no part, whatever it is."""
    rng = np.random.default_rng(0)
    cells = (rng.normal(size=(60, 5)) + 4 * (np.arange(60) % 3)[:, None]).astype(dtype)
    mask = rng.random(cells.shape) < 0.05
    plain = np.where(mask, np.nan, cells).astype(np.float32 if dtype == np.float32 else float)
    hidden = np.ma.masked_array(np.where(mask, np.array(1e6).astype(dtype), cells), mask)
    model = RobustSparseKMeans(2, random_state=0, trim=0.1, l1_bound=None).fit(plain)
    found = clone(model).fit(hidden)
    assert_array_equal(found.cluster_centers_, model.cluster_centers_)
    assert_array_equal(model.transform(hidden), model.transform(plain))
    for standardizer in (ColumnStandardizer(), RowStandardizer()):
        made = standardizer.fit_transform(hidden)
        assert_array_equal(made, clone(standardizer).fit_transform(plain))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_masked_blocks_have_missing_cells():
    skip_without("dask")
    import dask.array as da

    X = np.random.default_rng(0).normal(size=(40, 3))
    blocks = da.from_array(np.ma.masked_array(X, X > 1.5), chunks=(20, 3))
    model = RobustSparseKMeans(2, random_state=0)
    expected = clone(model).fit(np.where(X > 1.5, np.nan, X))
    assert_array_equal(model.fit(blocks).cluster_centers_, expected.cluster_centers_)
