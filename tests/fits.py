"""Small tables of every kind, their fits in memory, and fits elsewhere that are to be the same."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rskc import RobustSparseKMeans
from rskc.datasets import make_contaminated, make_simulation
from rskc.inputs.arrays import to_numpy


def with_missing(X, share=0.06, seed=0):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, X.dtype.type(np.nan), X)


TALL = make_simulation(1, 0, n_samples=300, n_features=8, n_informative=3).data
WIDE = make_contaminated("shared_cell", random_state=0).data[:, :120]
BLANK = with_missing(TALL)
BLANK[[0, 1, 7, 150, 299]] = np.nan
PLAIN = {"trim": 0.05, "l1_bound": 1.8}
TABLES = {
    "K-means": (TALL, {"trim": 0.0, "l1_bound": None}),
    "trimmed": (TALL, {"trim": 0.05, "l1_bound": None}),
    "sparse": (TALL, {"trim": 0.0, "l1_bound": 1.8}),
    "robust sparse": (TALL, PLAIN),
    "float32": (TALL.astype(np.float32), PLAIN),
    "a number of features": (TALL, {"trim": 0.05, "n_features": 3}),
    "features chosen": (TALL, {"trim": 0.1, "l1_bound": "auto"}),
    "outliers found": (TALL, {"trim": "auto", "l1_bound": 1.8}),
    "reweighted, missing": (with_missing(TALL), {"trim": 0.1, "l1_bound": 1.5, "reweight": True}),
    "wide": (WIDE, {"trim": 0.1, "l1_bound": 3.5}),
    "wide, trimmed": (WIDE, {"trim": 0.1, "l1_bound": None}),
    "missing": (with_missing(TALL), PLAIN),
    "missing cells, trimmed": (with_missing(TALL), {"trim": 0.05, "l1_bound": None}),
    "missing cells, wide": (with_missing(WIDE), {"trim": 0.1, "l1_bound": 3.5}),
    "unobserved cases": (BLANK, PLAIN),
    "unobserved cases and no missing cells": (
        np.where(np.isnan(BLANK).all(axis=1, keepdims=True), np.nan, TALL),
        PLAIN,
    ),
    "far from 0": (TALL + 1e6, PLAIN),
}
CASES = ("labels_", "trimmed_weighted_", "trimmed_unweighted_", "trimmed_", "outliers_")


def model_for(name, **options):
    given = {"n_init": 4, "random_state": 0} | TABLES[name][1] | options
    return RobustSparseKMeans(3, **given)


@cache
def in_memory(name):
    return model_for(name).fit(TABLES[name][0])


def on_host(array):
    """Return an array in memory: of Dask, of a device, or of NumPy."""
    return array.compute() if hasattr(array, "compute") else to_numpy(array)


def assert_same_fit(found, expected, rounding=1e-9):
    """Assert that two models are the same, up to rounding where they are no labels or masks."""
    for name in CASES:
        assert_array_equal(on_host(getattr(found, name)), getattr(expected, name), err_msg=name)
    assert on_host(found.cluster_centers_).dtype == expected.cluster_centers_.dtype
    for name in ("cluster_centers_", "feature_weights_", "objective_path_"):
        values = on_host(getattr(found, name))
        assert_allclose(values, getattr(expected, name), rtol=rounding, atol=rounding, err_msg=name)
    for name in ("objective_", "inertia_", "outlier_threshold_"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=rounding)
    assert_allclose(on_host(found.distances_), expected.distances_, rtol=1e3 * rounding, atol=1e-9)
    assert (found.n_missing_, found.n_trim_) == (expected.n_missing_, expected.n_trim_)
    assert found.warnings_ == expected.warnings_
