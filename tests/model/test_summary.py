"""The frames and the summary of a fitted model, whatever was fitted to what."""

import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline

from rskc import RobustSparseKMeans
from rskc.datasets import make_figure1
from rskc.metrics import revised_silhouette
from rskc.model.summary import count_features
from skips import Optional

pl = Optional("polars")
X = make_figure1(n_samples=60, n_features=6, random_state=0).data
START = X[[0, 25, 50]]
CASES = ["case", "cluster", "distance", "unweighted_distance", "outlier"]
CASES += ["outlier_weighted", "outlier_unweighted"]
CASES += ["trimmed", "trimmed_weighted", "trimmed_unweighted"]


def incomplete():
    """A case without a cell, one of which little is known, and a feature without a cell."""
    table = X.copy()
    table[5] = np.nan
    table[8, :2] = np.nan
    table[:, 4] = np.nan
    return table


def named(index, X=X):
    return pd.DataFrame(X, columns=[f"g{j}" for j in range(6)], index=index)


TABLES = {
    "array": lambda: X,
    "single": lambda: X.astype(np.float32),
    "missing": incomplete,
    "frame": lambda: named([f"case {i}" for i in range(60)], incomplete()),
    "polars": lambda: pl.DataFrame(X),
}
SETTINGS = {
    "robust-sparse": {},
    "one cluster": {"n_clusters": 1},
    "two clusters": {"n_clusters": 2},
    "plain": {"trim": 0, "l1_bound": None},
    "one cluster, plain": {"n_clusters": 1, "trim": 0, "l1_bound": None},
    "one feature": {"n_features": 1},
    "given start": {"init": START, "n_init": 1},
    "function": {"init": lambda X, K, random_state: START, "n_init": 2},
}


def fit(X, **changes):
    bound = {} if "n_features" in changes else {"l1_bound": "half"}
    options = {"n_clusters": 3, "n_init": 4, "random_state": 0, "trim": 0.1} | bound | changes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of missing cells: kept in warnings_
        return RobustSparseKMeans(**options).fit(X)


@cache
def fitted(table, settings):
    return fit(TABLES[table](), **SETTINGS[settings])


@pytest.fixture(params=TABLES)
def kind(request):
    return request.param


@pytest.fixture
def table(kind):
    return TABLES[kind]()


@pytest.fixture(params=SETTINGS)
def model(request, kind):
    return fitted(kind, request.param)


# ---- Frames


def test_features_frame(model):
    frame, weights = model.features_frame(), model.feature_weights_
    K = len(model.cluster_centers_)
    centers = [f"center_{k}" for k in range(K)]
    assert list(frame.columns) == ["feature", "weight", "rank", "selected", *centers]
    assert frame["feature"].tolist() == list(
        getattr(model, "feature_names_in_", [f"x{j}" for j in range(6)])
    )
    assert_array_equal(frame["weight"], weights)
    assert_array_equal(frame["selected"], model.get_support())
    assert_array_equal(frame[centers], model.cluster_centers_.T)
    assert sorted(frame["rank"]) == list(range(1, 7))
    ranked = weights[np.argsort(frame["rank"])]
    assert (np.diff(ranked) <= 0).all()
    for weight in np.unique(weights):  # ties in the order of the data
        assert frame["rank"][weights == weight].is_monotonic_increasing


def test_cases_frame(model, table):
    frame = model.cases_frame()
    assert list(frame.columns) == CASES
    assert_array_equal(frame["case"], getattr(model, "case_names_in_", np.arange(60)))
    assert_array_equal(frame["cluster"], model.labels_)
    far = frame["distance"] > model.outlier_threshold_
    far |= frame["unweighted_distance"] > model.unweighted_outlier_threshold_
    assert_array_equal(frame["outlier"], far)
    assert_array_equal(frame["unweighted_distance"], model.unweighted_distances_)
    assert_array_equal(frame["outlier"], model.outliers_)
    assert_array_equal(frame["outlier_weighted"] | frame["outlier_unweighted"], far)
    assert_array_equal(frame["outlier_weighted"], frame["distance"] > model.outlier_threshold_)
    for name in CASES[7:]:
        assert_array_equal(frame[name], getattr(model, name + "_"))
    own = (np.asarray(model.transform(table)) ** 2)[np.arange(60), model.labels_]
    assert_allclose(frame["distance"], own, rtol=1e-4 if own.dtype == np.float32 else 1e-9)


def test_cases_frame_with_the_data(model, table):
    frame = model.cases_frame(table)
    assert list(frame.columns) == [*CASES, "observed", "second_cluster", "silhouette"]
    pd.testing.assert_frame_equal(frame[CASES], model.cases_frame())
    assert frame["second_cluster"].dtype == "Int64"
    if len(model.cluster_centers_) == 1:
        assert frame["second_cluster"].isna().all()
        assert frame["silhouette"].isna().all()
        return
    found = revised_silhouette(model, table)
    assert_array_equal(frame["silhouette"], found.values)
    assert_array_equal(frame["second_cluster"], found.second)
    assert (frame["second_cluster"] != frame["cluster"]).all()
    assert frame["silhouette"].between(0, 1).all()


def test_a_notebook_counts_the_features_with_weight():
    X = np.random.default_rng(0).normal(size=(60, 30))
    X[:20, :3] += 6
    model = RobustSparseKMeans(2, trim=0, l1_bound=2, random_state=0).fit(X)
    shown = model._html_repr()
    assert re.search(rf"\b{model.get_support().sum()} of 30 features have weight", shown)
    assert " 2 features" not in shown
    named = model.fit(pd.DataFrame(X, columns=["<b>", *map(str, range(29))]))
    assert "<b>" not in named._html_repr()
    assert "&lt;b&gt;" in named._html_repr()


def test_a_case_without_a_cell_is_infinitely_far():
    row = fit(incomplete()).cases_frame(incomplete()).loc[5]
    assert row["distance"] == np.inf
    assert row["observed"] == 0
    assert row["outlier"]
    assert row["trimmed"]
    assert row["silhouette"] == 0


# ---- Names of cases


@pytest.mark.parametrize(
    "index",
    [
        [f"case {i}" for i in range(60)],
        ["same"] * 60,
        np.arange(60)[::-1],
        pd.RangeIndex(1, 61),
        pd.date_range("2026-01-01", periods=60),
        [None, np.nan, 1.5, "a", ("b", 2), *range(55)],
        pd.MultiIndex.from_product([["a", "b"], range(30)]),
        pd.CategoricalIndex(["a", "b"] * 30),
    ],
    ids=lambda index: type(index).__name__,
)
def test_any_index_names_the_cases(index):
    frame = named(pd.Index(index, tupleize_cols=False) if isinstance(index, list) else index)
    model = fit(frame)
    assert model.case_names_in_.shape == (60,)
    assert model.case_names_in_.dtype == object
    for name, label in zip(model.case_names_in_, frame.index, strict=True):
        assert name == label or (name != name and label != label)
    assert len(model.cases_frame(frame)) == 60
    assert_array_equal(model.labels_, fit(X).labels_)
    assert str(model.case_names_in_[np.flatnonzero(model.trimmed_)[0]])[:10] in model.summary()


def test_a_default_index_names_nothing_and_names_are_forgotten():
    model = fit(named([f"case {i}" for i in range(60)]))
    assert hasattr(model, "case_names_in_")
    assert not hasattr(model.fit(named(None)), "case_names_in_")
    for table in (X, X.tolist(), pl.DataFrame(X)):
        assert not hasattr(fit(table), "case_names_in_")


# ---- The summary


def test_a_summary_is_short_and_narrow_and_says_what_was_asked_and_found(model, table):
    lines = model.summary().splitlines()
    assert len(lines) <= 26
    assert max(map(len, lines)) < 100
    assert not any(line != line.rstrip() for line in lines)
    text = " ".join(model.summary().split())
    K, sizes = len(model.cluster_centers_), ", ".join(map(str, np.bincount(model.labels_)))
    assert f"{K} cluster{'s' * (K > 1)} of 60 cases: {sizes}" in text
    have = "has" if model.get_support().sum() == 1 else "have"
    assert f"{model.get_support().sum()} of 6 features {have} weight" in text
    assert f"{np.isnan(np.asarray(table)).sum()} of 360 cells missing" in text
    assert f"objective {model.objective_:.6g} after {model.n_iter_} iteration" in text
    for heading, mask in (("trimmed", model.trimmed_), ("outliers", model.outliers_)):
        count = int(mask.sum())
        words = "none" if count == 0 else f"{count} case{'s' * (count > 1)}:"
        assert f" {heading} {words}" in text


@pytest.mark.parametrize("method", ["fit", "fit_predict", "fit_transform"])
@pytest.mark.parametrize("piped", [False, True])
def test_a_warning_names_the_line_of_the_user(method, piped):
    model = RobustSparseKMeans(3, n_init=4, random_state=0, l1_bound=9, max_iter=1)
    model = make_pipeline(model) if piped else model
    with pytest.warns(UserWarning, match=r"\.$") as said:
        getattr(model, method)(incomplete())
    assert {warning.filename for warning in said} == {__file__}


def test_warnings_are_kept():
    model = RobustSparseKMeans(3, n_init=4, random_state=0, l1_bound=9, max_iter=1)
    with pytest.warns(UserWarning, match=r"\.$") as said:
        model.fit(incomplete())
    assert model.warnings_ == [str(warning.message) for warning in said]
    assert len(model.warnings_) >= 3
    text = model.summary()
    assert "Warnings:" in text
    for message in model.warnings_:
        assert message[:100] in " ".join(text.split())
    assert model.set_params(max_iter=300, l1_bound=2.0).fit(X).warnings_ == []
    assert "Warnings:" not in model.summary()


def test_long_and_broken_names_are_shortened():
    frame = pd.DataFrame(incomplete(), columns=[c * 10_000 for c in "abcdef"])
    frame.index = [f"{i}\n\t" + "long " * 2000 for i in range(60)]
    model = fit(frame, l1_bound=2.0, max_iter=1)
    lines = model.summary().splitlines()
    assert max(map(len, lines)) < 100
    assert len(lines) < 40
    assert "aaa... 0." in model.summary()
    assert model.features_frame()["feature"][0] == "a" * 10_000


# ---- Features in words


def test_tiny_weights_are_not_said_to_matter():
    """Two features hold the weight; 4.6e-08 is a weight above 0 and no more."""
    model = fit(X, l1_bound=2)
    model.feature_weights_ = np.array([0.8, 0.6, 4.6e-8, 4.6e-8, 0, 0])
    assert count_features(model).words == "4 of 6 features have weight, and 2 hold 90% of it"


def test_one_cluster_differs_from_nothing():
    assert count_features(fit(X, n_clusters=1, l1_bound="auto")).n_different is None
