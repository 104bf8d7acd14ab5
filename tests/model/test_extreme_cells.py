"""Any finite table gives a result or one sentence, without a warning of NumPy's."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from rskc import RobustSparseKMeans, load, save
from rskc.metrics import revised_silhouette

RNG = np.random.default_rng(0)
CELLS = [0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1e-160, 1.0, 1e150, -1e160, 1e300, 1e308, -1e308]


def outcome(X, n_clusters=2, **params):
    """Fit a model and use it; return it, or the sentence that refuses the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        try:
            model = RobustSparseKMeans(n_clusters, random_state=0, n_init=3, **params).fit(X)
        except ValueError as error:
            return str(error)
        used = [model.predict(X), model.transform(X), model.score_samples(X), model.is_outlier(X)]
        model.score(X)
        model.summary()
        model.cases_frame(X)
        model.features_frame()
        if n_clusters > 1:
            revised_silhouette(model, X)
    assert not any(np.isnan(each).any() for each in used)
    assert not np.isnan(model.distances_).any()
    assert not np.isnan(model.unweighted_distances_).any()
    assert_array_equal(model.is_outlier(X), model.outliers_)
    return model


def assert_sentence(words):
    assert words.endswith(".")
    assert "\n" not in words
    expected = ("The squares of X overflow", "n_clusters=", "X has no observed cell")
    assert words.startswith(expected), words


# The four tables of the report.


def test_a_huge_cell_among_tiny_ones():
    X = RNG.normal(size=(12, 4)) * 1e-10
    X[3, 2] = 1e300
    assert "cells of up to 1e+300" in outcome(X, trim=0)
    assert outcome(X).outliers_[3]
    assert outcome(X, outlier_rule="paper", trim=0.1).trimmed_[3]


def test_single_precision_whose_squares_overflow():
    X = RNG.normal(size=(30, 4))
    huge, usual = outcome((X * 1e25).astype(np.float32)), outcome(X.astype(np.float32))
    assert_array_equal(huge.labels_, usual.labels_)
    np.testing.assert_allclose(
        huge.transform((X * 1e25).astype(np.float32)) / 1e25, usual.transform(X), rtol=1e-4
    )


# Any table.


@st.composite
def tables(draw):
    n, p = draw(st.integers(2, 25)), draw(st.one_of(st.integers(1, 6), st.integers(1, 60)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    with np.errstate(all="ignore"):
        X = rng.normal(size=(n, p)) * 10.0 ** draw(st.integers(-320, 307))
        X *= 10.0 ** rng.integers(-draw(st.sampled_from([0, 3, 150])) or 0, 1, p)
    cells = st.one_of(
        st.sampled_from(CELLS), st.floats(allow_nan=False, allow_infinity=False), st.just(np.nan)
    )
    for _ in range(draw(st.integers(0, 5))):
        X[draw(st.integers(0, n - 1)), draw(st.integers(0, p - 1))] = draw(cells)
    X[rng.random(size=X.shape) < draw(st.sampled_from([0, 0, 0.1, 0.6]))] = np.nan
    if draw(st.booleans()):
        X = np.clip(X, -3e38, 3e38).astype(np.float32)
    return X


SETTINGS = st.fixed_dictionaries(
    {
        "n_clusters": st.integers(1, 4),
        "trim": st.sampled_from(["auto", 0, 0.1, 0.4]),
        "l1_bound": st.sampled_from(["auto", "half", None, 1.0, 1.2]),
        "reweight": st.booleans(),
        "outlier_rule": st.sampled_from(["both", "paper"]),
    }
)


@given(tables(), SETTINGS)
@settings(max_examples=100, deadline=None)
def test_any_finite_table_gives_a_result_or_one_sentence(tmp_path_factory, X, params):
    made = outcome(X, **params)
    if isinstance(made, str):
        assert_sentence(made)
        return
    path = tmp_path_factory.getbasetemp() / "extreme.rskc"
    save(made, path)
    assert_array_equal(load(path).predict(X), made.predict(X))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_columns_of_0_and_1_whose_sums_differ_by_rounding():
    """Of the 20 x 3 cells of the report."""
    rows = "000010011011010111100010101010000110111010110110010011001010"
    X = np.array(list(rows), float).reshape(20, 3)
    assert RobustSparseKMeans(5, random_state=1).fit(X).feature_weights_.any()
