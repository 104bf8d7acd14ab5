"""Preparer: what the data say of logarithms, counts, levels and scales, and the way back."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from rskc import ColumnStandardizer, Preparer, RobustSparseKMeans
from rskc.datasets import make_contaminated, make_simulation
from rskc.exceptions import FitWarning
from rskc.preprocessing.preparer import FLOORED, FROM_ZERO

rng = np.random.default_rng(0)
N, P = 120, 150
AGES, AMOUNTS = rng.normal(45, 12, N), np.exp(rng.normal(8, 1.2, N))
LEVELS = np.exp(rng.normal(5, 1.5, P))
INTENSITIES = LEVELS * np.exp(rng.normal(0, 0.8, (N, P)) + rng.normal(0, 0.4, (N, 1)))
RATIOS = rng.normal(0, 1, (N, 1200)) * rng.uniform(0.5, 1.5, 1200)
DEPTHS = np.exp(rng.normal(0, 0.5, N))
COUNTS = rng.poisson(np.outer(DEPTHS, np.exp(rng.normal(-1, 1.2, P)))).astype(float)


@parametrize_with_checks([Preparer()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_amounts_get_logarithms_and_columns_one_scale():
    frame = pd.DataFrame({"age": AGES, "amount": AMOUNTS, "smoker": rng.integers(0, 2, N)})
    made = Preparer().fit(frame)
    assert_array_equal(made.log_ > 0, [False, True, False])
    assert made.standardize_ == "columns"
    Z = made.transform(frame)
    assert_allclose(Z.std(axis=0), [1, 1, np.sqrt(2 / np.pi)], atol=0.1)
    assert made.describe().startswith("logarithms of 1 of 3 columns (amount); columns centered")
    assert_allclose(made.inverse_transform(Z), frame, rtol=1e-9)


def test_intensities_of_many_features_get_logarithms_and_rows_one_level():
    made = Preparer().fit(INTENSITIES)
    assert (made.log_ == FROM_ZERO).all()
    assert made.standardize_ == "rows"
    assert len(set(made.unit_)) == 1
    Z = made.transform(INTENSITIES)
    assert np.ptp(Z.mean(axis=1)) < 1e-9
    brighter = INTENSITIES * np.where(np.arange(N) == 3, 1.2, 1)[:, None]
    assert abs(made.transform(brighter)[3] - Z[3]).max() < 0.2
    back = made.inverse_transform(Z)  # as in the typical case
    assert np.corrcoef(np.log(np.median(back, axis=0)), np.log(LEVELS))[0, 1] > 0.98
    assert made.inverse_transform(Z - 100).min() == 0  # not below what cells can be


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_counts_are_recognized_and_depth_goes(kind):
    made = Preparer().fit(kind(COUNTS))
    assert made.counts_
    assert made.standardize_ == "columns"
    Z = made.transform(kind(COUNTS))
    assert sparse.issparse(Z) == (kind is not np.asarray)
    twice = np.where(np.arange(N)[:, None] % 2, 2 * COUNTS, COUNTS)
    again = made.transform(kind(twice))
    Z, again = (each.toarray() if sparse.issparse(each) else each for each in (Z, again))
    assert_allclose(Z, again, rtol=1e-9, atol=1e-12)
    assert made.needs_all


def test_a_scale_of_floors_zeros_and_two_values_is_never_tiny():
    rng = np.random.default_rng(0)
    floored = np.maximum(rng.normal(size=1000), 0.7)
    rare = np.r_[np.zeros(990), np.ones(10)]
    outlying = np.r_[rng.normal(size=997), 1e6, 1e6, 1e6]
    X = np.column_stack([floored, rare, outlying, rng.normal(size=1000)])
    made = Preparer(log=None, standardize="columns").fit(X)
    spread = made.transform(X).std(axis=0)
    assert_allclose(spread[[1, 3]], [np.sqrt(2 / np.pi), 1], atol=0.1)  # two values: a category
    assert spread[0] == pytest.approx(1)
    assert 0.9 < made.scale_[2] < 1.3
    assert_allclose(ColumnStandardizer(scale="clipped").fit(X).scale_, made.scale_)


def test_missing_cells_stay_missing_and_change_no_decision():
    holes = rng.random(INTENSITIES.shape) < 0.05
    X = np.where(holes, np.nan, INTENSITIES)
    made = Preparer().fit(X)
    assert (made.log_ == FROM_ZERO).all()
    assert_array_equal(np.isnan(made.transform(X)), holes)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_categories_beside_numbers_stay(library):
    import polars as pl

    frame = pd.DataFrame({"amount": AMOUNTS, "kind": np.tile(["a", "b", "c"], N // 3)})
    made = Preparer().fit(frame if library == "pandas" else pl.from_pandas(frame))
    out = made.transform(frame if library == "pandas" else pl.from_pandas(frame))
    assert list(out["kind"]) == list(frame.kind)
    assert_array_equal(made.log_, [FLOORED, 0])
    assert abs(np.std(out["amount"].to_numpy()) - 1) < 0.1


@pytest.mark.parametrize("as_sparse", [False, True])
def test_two_values_count_like_a_category_whatever_they_are(as_sparse):
    flags = rng.random((N, 3)) < [0.5, 0.2, 0.05]
    X = flags * np.array([1.0, 7.0, 0.01])
    scaler = ColumnStandardizer("mean", "clipped").fit(sparse.csr_matrix(X) if as_sparse else X)
    assert_allclose((X / scaler.scale_).var(axis=0), 2 / np.pi)
    X[::5] = np.nan
    Z = ColumnStandardizer("mean", "clipped").fit_transform(X)
    assert_allclose(np.nanvar(Z, axis=0), 2 / np.pi)


def explained_of_normal(m):
    """The share of the variance of a normal feature that m clusters explain, by Lloyd's steps."""
    x = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    centers = norm.ppf((np.arange(m) + 0.5) / m)
    for _ in range(500):
        labels = np.searchsorted((centers[1:] + centers[:-1]) / 2, x)
        centers = np.bincount(labels, x) / np.bincount(labels)
    return (centers[labels] ** 2).mean() / (x**2).mean()


@pytest.mark.parametrize("m", [2, 3, 5, 10])
def test_few_values_get_the_variance_that_so_many_clusters_explain_of_a_normal_feature(m):
    x = np.tile(np.arange(m) * 7.0, 60)
    x[:: len(x) // 20] = np.nan
    scaler = ColumnStandardizer("mean", "clipped").fit(np.column_stack([x, np.arange(60 * m)]))
    variances = np.nanvar(np.column_stack([x, np.arange(60 * m)]) / scaler.scale_, axis=0)
    assert_allclose(variances, [explained_of_normal(m), 1], atol=2e-3)


def test_the_tail_of_a_count_belongs_to_it_and_a_slip_does_not():
    """Of 0 to 3, mostly 0, those above 1 are no outlying cells; 55 among 1 to 5 is one."""
    few = np.r_[np.zeros(780), np.ones(195), np.full(24, 2.0), 3]
    scores = np.r_[np.tile(np.arange(1.0, 6), 199), 1, 2, 3, 4, 55]
    scale = ColumnStandardizer("mean", "clipped").fit(np.column_stack([few, scores])).scale_
    assert_allclose(few.var() / scale[0] ** 2, 0.8825, rtol=0.02)
    assert_allclose(2 / scale[1] ** 2, 0.9420, rtol=0.02)


def test_few_values_among_many_missing_cells_and_in_sparse_columns():
    """As many columns as a table of genes has: nothing is done column by column."""
    X = rng.integers(0, 2, (N, 300)).astype(float)
    X[:, 1] = np.where(rng.random(N) < 0.7, np.nan, rng.integers(0, 3, N))
    X[:, 2] = np.nan
    X[:, 3] = 7
    X[:, 4] = rng.normal(size=N)
    scaled = X / ColumnStandardizer("mean", "clipped").fit(X).scale_
    variances = [np.nanvar(scaled[:, j]) for j in (0, 1, 3, 4)]
    assert_allclose(variances, [2 / np.pi, 0.8098, 0, 1], atol=0.01)
    places = [0, 3, 4, 5]
    dense, compressed = (
        ColumnStandardizer("mean", "clipped").fit(kind(X[:, places])).scale_
        for kind in (np.asarray, sparse.csr_array)
    )
    assert_allclose(dense, compressed)


# ---- A fit warns of units that differ


WINE, CANCER = load_wine().data, load_breast_cancer().data
CELLS = np.log1p(COUNTS / DEPTHS[:, None])
CODES = pd.DataFrame({"color": list("abc") * 40, "size": AGES / 12})
ALIKE = {
    "iris": load_iris().data,
    "digits": load_digits().data[:300],
    "diabetes": load_diabetes(scaled=False).data,
    "prepared wine": Preparer().fit_transform(WINE),
    "standardized": ColumnStandardizer().fit_transform(CANCER),
    "prepared counts": Preparer().fit_transform(COUNTS),
    "counts in logarithms": CELLS,
    "ratios": RATIOS,
    "prepared intensities": Preparer().fit_transform(INTENSITIES),
    "simulated": make_simulation(1, 0).data,
    "outlying cells": make_contaminated("shared_cell", random_state=0).data,
    "categories": CODES,
}


@pytest.mark.parametrize("name", ALIKE)
def test_no_warning_where_features_are_alike(name):
    model = RobustSparseKMeans(2, n_init=1, max_iter=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other kinds
        assert "units differ" not in model.fit(ALIKE[name]).warning_kinds_


@pytest.mark.parametrize("X", [WINE, CANCER, np.column_stack([AGES, AMOUNTS])])
def test_units_that_differ_are_named_with_the_remedy(X):
    with pytest.warns(FitWarning, match=r"x\d+ spreads [\d,]+ times .* by Preparer\(\) in a pipe"):
        model = RobustSparseKMeans(2, random_state=0).fit(X)
    assert "units differ" in model.warning_kinds_
    make_pipeline(Preparer(), RobustSparseKMeans(2, random_state=0)).fit(X)


@pytest.mark.parametrize("cell", [np.nan, 1e200])
def test_columns_without_a_cell_and_huge_cells_are_no_warning(cell):
    X = np.random.default_rng(0).normal(size=(30, 120))
    X[:, 5], X[2, 7] = np.nan, cell
    assert Preparer().fit(X).transform(X).shape == X.shape
