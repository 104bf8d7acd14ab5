"""Case weights with groups and categories, and in what is said of a fit."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from rskc import RobustSparseKMeans
from rskc.inputs.categories import CategoryEncoder
from rskc.markers import marker_effects
from rskc.metrics import revised_silhouette
from skips import skip_without

pytestmark = pytest.mark.filterwarnings("ignore::rskc.exceptions.FitWarning")

K = 3
GROUPS = ["a", "a", "b", "b", "b", "c"]


def make_numbers(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    X[:, :3] += 8 * np.eye(3)[np.arange(n) % K]
    X[:3] += 40
    return X


def make_frame(seed, n):
    """A table of numbers, categories, ranks, and missing cells of each."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(make_numbers(seed, n)[:, :3], columns=["one", "two", "three"])
    colors = np.array(["red", "green", "blue"], object)[np.arange(n) % K]
    frame["color"] = np.where(rng.random(n) < 0.2, "red", colors)
    frame["size"] = np.array(["small", "middle", "large"], object)[rng.integers(0, 3, n)]
    frame.loc[5, "color"] = frame.loc[6, "size"] = None
    frame.loc[7, "one"] = np.nan
    return frame


def model_of(kind, **settings):
    known = {"trim": 0.1, "l1_bound": 1.4, "n_init": 4, "random_state": 0, "n_threads": 1}
    if kind == "groups":
        known["feature_groups"] = GROUPS
    if kind == "categories":
        known["ordinal"] = {"size": ["small", "middle", "large"]}
    return RobustSparseKMeans(K, **known | settings)


TABLES = {"groups": make_numbers, "categories": make_frame}
each_kind = pytest.mark.parametrize("kind", TABLES)


def rows(table, numbers):
    return table.iloc[numbers] if hasattr(table, "iloc") else table[numbers]


def assert_same_fit(one, other, factor=1.0):
    assert_allclose(one.objective_, factor * other.objective_, rtol=1e-7)
    assert_allclose(one.feature_weights_, other.feature_weights_, rtol=1e-6, atol=1e-9)
    assert_allclose(one.cluster_centers_, other.cluster_centers_, rtol=1e-6, atol=1e-8)
    assert_allclose(one.outlier_threshold_, other.outlier_threshold_, rtol=1e-6)
    if hasattr(one, "group_weights_"):
        assert_allclose(one.group_weights_, other.group_weights_, rtol=1e-6, atol=1e-9)
    if hasattr(one, "encoder_"):
        for code, own in zip(one.encoder_.columns_, other.encoder_.columns_, strict=True):
            assert code.categories == own.categories
            assert_allclose([*code.scales, code.center], [*own.scales, own.center])


# ---- Groups and categories


@each_kind
def test_a_case_of_weight_3_is_three_copies(kind):
    n = 600
    table, weights = TABLES[kind](1, n), np.random.default_rng(1).integers(1, 4, n)
    one = model_of(kind).fit(table, sample_weight=weights)
    other = model_of(kind).fit(rows(table, np.repeat(np.arange(n), weights)))
    assert_same_fit(one, other)
    assert_array_equal(np.repeat(one.labels_, weights), other.labels_)


def test_shares_of_categories_by_hand():
    """Red has 3 of 4 units of weight: its indicator is sqrt(2 / pi) over the root of 3/4."""
    frame = pd.DataFrame({"color": ["red", "blue", "blue", "green"]})
    encoder = CategoryEncoder().fit(frame, sample_weight=[3, 0.5, 0.5, 0])
    assert encoder.columns_[0].categories == ("blue", "red")  # green is not seen
    assert_allclose(encoder.columns_[0].scales, np.sqrt(2 / np.pi) * np.array([2, np.sqrt(4 / 3)]))
    ranks = CategoryEncoder(ordinal={"color": ["red", "green", "blue"]})
    code = ranks.fit(frame, sample_weight=[3, 0.5, 0.5, 0]).columns_[0]
    assert (code.center, code.scales[0]) == (1.5, pytest.approx(1 / np.sqrt(0.75)))


# ---- What is said of a fit


@pytest.fixture(scope="module")
def weighted():
    X, weights = make_numbers(6, 60), np.random.default_rng(6).integers(0, 5, 60).astype(float)
    weights[9] = 12.5
    return model_of("plain").fit(X, sample_weight=weights), X, weights


def test_markers_are_those_of_copies():
    X, weights = make_numbers(7, 300), np.random.default_rng(7).integers(0, 4, 300)
    model = model_of("plain", trim=0).fit(X, sample_weight=weights)
    copies = clone(model).set_params(init=model.cluster_centers_)
    copies.fit(np.repeat(X, weights, axis=0))
    one = marker_effects(model, X)
    other = marker_effects(copies, np.repeat(X, weights, axis=0))
    for name in one._fields:
        assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-6, err_msg=name)
    alike = marker_effects(model.fit(X, sample_weight=np.full(300, 2.0)), X)
    assert_array_equal(alike.effects, marker_effects(model.fit(X), X).effects)


def test_frames_and_summary_have_weights(weighted):
    model, X, weights = weighted
    frame = model.cases_frame(X)
    assert_array_equal(frame["weight"], weights)
    sizes = np.bincount(model.labels_, weights)
    text = " ".join(model.summary().split())
    total = f"{weights.sum():g}"
    assert f"cases have a weight of {total}, by cluster: {sizes[0]:g}, {sizes[1]:g}" in text
    plain = clone(model).fit(X)
    assert "weight" not in plain.cases_frame(X)
    assert "by cluster" not in plain.summary()


def test_the_report_counts_by_weight(weighted):
    skip_without("jinja2", "vl_convert")
    from rskc.report import make_report, summarize

    model, X, weights = weighted
    summary, regular = summarize(model, X), ~model.outliers_
    values = revised_silhouette(model, X).values
    expected = np.average(values[regular], weights=weights[regular])
    assert summary["result"]["silhouette"] == pytest.approx(expected)
    for cluster in summary["clusters"]:
        mine = model.labels_ == cluster["cluster"]
        assert (cluster["size"], cluster["weight"]) == (mine.sum(), weights[mine].sum())
        assert cluster["weight_share"] == pytest.approx(weights[mine].sum() / weights.sum())
    share = weights[model.outliers_].sum() / weights.sum()
    assert summary["result"]["outlier_share"] == pytest.approx(share)
    plain = clone(model).fit(X)
    for each, shown in ((model, True), (plain, False)):
        page = make_report(each, X).html
        assert ('<th scope="col" class="n">Weight</th>' in page) == shown


def test_pictures_have_weights(weighted):
    skip_without("matplotlib")
    import matplotlib.pyplot as plt

    from rskc.displays import ClusterDisplay, HeatmapDisplay, SilhouetteDisplay

    model, X, weights = weighted
    size = f"n = {(model.labels_ == 0).sum()}, weight {weights[model.labels_ == 0].sum():g}"
    legend = ClusterDisplay.from_estimator(model, X).legend_.get_texts()
    assert legend[0].get_text() == f"0 ({size})"
    ticks = HeatmapDisplay.from_estimator(model, X).ax_.get_yticklabels()
    assert ticks[0].get_text() == f"0 ({size})"
    shown = SilhouetteDisplay.from_estimator(model, X)
    mine = (model.labels_ == 1) & ~model.outliers_
    mean = np.average(shown.values[mine], weights=weights[mine])
    assert f"mean {mean:.2f} (n = {mine.sum()}, weight {weights[mine].sum():g})" in (
        shown.texts_[1].get_text()
    )
    others = SilhouetteDisplay.from_estimator(model, X[::-1])  # other cases have no weights
    assert others.weights is None
    plt.close("all")
