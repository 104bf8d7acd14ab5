"""Pictures of a fitted model: what is drawn, where, and how it is named."""

import sys
import warnings
from functools import cache
from itertools import pairwise

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb
from numpy.testing import assert_allclose, assert_array_equal

from rskc import RobustSparseKMeans
from rskc.datasets import make_figure1
from rskc.displays import (
    CellsDisplay,
    ClusterDisplay,
    HeatmapDisplay,
    OutlierDisplay,
    SearchDisplay,
    SilhouetteDisplay,
    WeightsDisplay,
    style,
)
from rskc.metrics import revised_silhouette
from rskc.pictures import models, palette
from rskc.pictures.models import strongest
from rskc.selection import Stability
from skips import Optional

pytestmark = pytest.mark.usefixtures("closed_figures")

pl = Optional("polars")
ALL = [ClusterDisplay, HeatmapDisplay, OutlierDisplay, SilhouetteDisplay, WeightsDisplay]


def make_data():
    """60 cases, two features that matter, two outlying cases, one in a feature of noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    X[:25, :2] += 5
    X[40:, :2] -= 5
    X[3, 0], X[50, 4] = 60, 40
    return X


def fit(X, K=3, **settings):
    """Fit with few restarts, and without warnings of small clusters and much that is missing."""
    settings = {"trim": 0.05, "l1_bound": 1.6, "n_init": 4, "random_state": 0} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RobustSparseKMeans(K, **settings).fit(X)


X = make_data()
MODEL = fit(X)
FLAT = np.column_stack([X, np.ones(60)]).astype(np.float32)


def with_missing():
    missing = X.copy()
    missing[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    missing[7] = np.nan  # an unobserved case
    return missing


def draw(display, model, X):
    """Make a display and put it on paper, where odd text and empty artists show."""
    display.from_estimator(model, X).figure_.canvas.draw()


def bar_values(patch):
    values = patch.get_data().values
    return values[~np.isnan(values)]


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


# All displays


@cache
def search():
    model, how = RobustSparseKMeans(2, l1_bound=1.6, n_init=3, random_state=0), {"n_jobs": 1}
    how |= {"n_splits": 3, "n_references": 4, "random_state": 0, "progress": False}
    return Stability(model, [2, 3, 4], **how).fit(X)


def given(display):
    """What a display is made from."""
    return (search(),) if display is SearchDisplay else (MODEL, X)


each_display = pytest.mark.parametrize("display", [*ALL, CellsDisplay, SearchDisplay])


@each_display
def test_sets_axes_and_figure(display):
    drawn = display.from_estimator(*given(display))
    assert drawn.ax_.figure is drawn.figure_
    assert len(plt.get_fignums()) == 1
    assert drawn.ax_.get_title(loc="left")
    drawn.figure_.canvas.draw()


@each_display
def test_draws_in_given_axes_and_again(display):
    figure = plt.figure(figsize=(12, 5), layout="constrained")
    one, other = (part.subplots() for part in figure.subfigures(1, 2))
    drawn = display.from_estimator(*given(display), ax=one)
    assert drawn.ax_ is one
    assert drawn.plot(ax=other) is drawn
    assert drawn.ax_ is other
    assert len(plt.get_fignums()) == 1


def frame_of(X):
    return pd.DataFrame(X, columns=list("abcdef"))


FITS = {
    "pandas": lambda: (fit(frame_of(X)), frame_of(X)),
    "polars": lambda: (fit(pl.from_pandas(frame_of(X))), pl.from_pandas(frame_of(X))),
    "missing": lambda: (fit(with_missing()), with_missing()),
    "float32, a constant": lambda: (fit(FLAT, l1_bound=None), FLAT),
    "one feature of one": lambda: (fit(X[:, :1], l1_bound=None), X[:, :1]),
    "all features": lambda: (fit(X, l1_bound=None), X),
    "one feature of six": lambda: (fit(X, l1_bound=1), X),
    "no trimming": lambda: (fit(X, trim=0), X),
    "20 clusters": lambda: (fit(X, 20, trim=0), X),
    "one cluster": lambda: (fit(X, 1), X),
}


@pytest.mark.parametrize("kind", FITS)
def test_all_fits_can_be_drawn(kind):
    model, table = FITS[kind]()
    for display in ALL:
        if (display, kind) != (SilhouetteDisplay, "one cluster"):
            draw(display, model, table)


@pytest.mark.parametrize("n", [1, 7])
@pytest.mark.parametrize("display", [ClusterDisplay, HeatmapDisplay, SilhouetteDisplay])
def test_new_cases_are_welcome(display, n):
    assert len(display.from_estimator(MODEL, X[:n]).labels) == n


@pytest.mark.parametrize(
    ("display", "bound", "how"),
    [
        (ClusterDisplay, 1.6, {"kind": "features"}),
        (ClusterDisplay, 1.6, {"kind": "pca"}),
        (ClusterDisplay, 1, {}),
        (SilhouetteDisplay, 1.6, {}),
        (HeatmapDisplay, 1.6, {}),
    ],
)
def test_order_of_cases_does_not_matter(display, bound, how):
    model, order = fit(X, l1_bound=bound), np.random.default_rng(5).permutation(60)
    one, other = (display.from_estimator(model, Z, **how) for Z in (X, X[order]))
    assert_allclose(one.ax_.axis(), other.ax_.axis())
    if display is ClusterDisplay:
        assert_allclose(one.positions[order], other.positions, atol=1e-9)
    elif display is HeatmapDisplay:
        assert_allclose(one.image_.get_array(), other.image_.get_array())
        assert_array_equal(one.rows_, order[other.rows_])
    else:
        for k in range(3):
            assert_allclose(bar_values(one.bars_[k]), bar_values(other.bars_[k]))
            assert one.texts_[k].get_text() == other.texts_[k].get_text()


@each_display
def test_says_how_to_get_matplotlib(display, monkeypatch):
    arguments = given(display)
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r'pip install "rskc\[plot\]"'):
        display.from_estimator(*arguments)


# Silhouettes


def test_silhouettes_are_sorted_stacked_and_averaged_within_clusters():
    drawn = SilhouetteDisplay.from_estimator(MODEL, X)
    found, outlying = revised_silhouette(MODEL, X), MODEL.is_outlier(X)
    assert drawn.ax_.yaxis_inverted()
    assert drawn.ax_.get_xlim() == (0, 1)
    assert set(drawn.outlier_bars_) == set(found.nearest[outlying])
    end = -np.inf
    for k, bars in drawn.bars_.items():
        mine, edges = found.nearest == k, bars.get_data().edges
        assert_allclose(bar_values(bars), np.sort(found.values[mine])[::-1])
        assert edges.min() >= end + 1
        end, text = edges.max(), drawn.texts_[k]
        values = found.values[mine & ~outlying]
        assert f"cluster {k}: mean {values.mean():.2f} (n = {len(values)})" in text.get_text()
        assert edges.min() <= text.get_position()[1] <= end
        assert ("outliers" in text.get_text()) == (mine & outlying).any()
        if (mine & outlying).any():
            darker = drawn.outlier_bars_[k]
            assert_allclose(np.sort(bar_values(darker)), np.sort(found.values[mine & outlying]))
            assert sum(darker.get_facecolor()[:3]) < sum(bars.get_facecolor()[:3])


def test_text_of_tiny_clusters_does_not_overlap():
    values, labels = np.full(2009, 0.5), np.repeat(np.arange(10), [2000] + 9 * [1])
    drawn = SilhouetteDisplay(values, labels, np.zeros(2009, bool)).plot()
    drawn.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in drawn.texts_.values()]
    assert all(upper.y0 > lower.y0 + 8 for upper, lower in pairwise(boxes))


# Weights


def test_bars_are_the_weights_the_largest_first():
    drawn = WeightsDisplay.from_estimator(MODEL)
    weights = np.sort(MODEL.feature_weights_[MODEL.feature_weights_ > 0])[::-1]
    assert_allclose([bar.get_width() for bar in drawn.bars_], weights)
    order = np.argsort(-MODEL.feature_weights_)[: len(weights)]
    assert ticks(drawn.ax_.yaxis) == [f"x{j}" for j in order]
    assert drawn.ax_.yaxis_inverted()
    assert drawn.more_ is None


def test_features_without_a_bar_are_counted():
    weights = np.sort(np.random.default_rng(0).random(50_000))[::-1]
    drawn = WeightsDisplay(weights, np.arange(50_000), n_features=60_000).plot(n_top=10)
    assert len(drawn.bars_) == 10
    assert "and 49,990 more of 60,000" in drawn.more_.get_text()
    assert "50,000 of 60,000 features" in drawn.ax_.get_title(loc="left")
    drawn = WeightsDisplay.from_estimator(fit(X, l1_bound=None))
    assert "All 6 features have the same weight" in drawn.ax_.get_title(loc="left")


# Outliers


@pytest.mark.parametrize("rule", ["both", "paper"])
def test_points_are_the_two_distances_by_what_makes_them_outliers(rule):
    model = fit(X, outlier_rule=rule)
    drawn = OutlierDisplay.from_estimator(model, X)
    codes = (model.distances_ > model.outlier_threshold_) + 2 * (
        model.unweighted_distances_ > model.unweighted_outlier_threshold_
    )
    hollow = model.trimmed_ & (codes == 0)
    unweighted = ((X - model.cluster_centers_[model.labels_]) ** 2).sum(axis=1)
    both = np.column_stack([model.distances_, unweighted])
    shown = np.maximum(both, 0.01 * np.median(both, axis=0))
    assert list(drawn.points_) == ["none", "weighted", "unweighted", "both", "trimmed"]
    for code, points in enumerate(list(drawn.points_.values())[:4]):
        assert_allclose(points.get_offsets(), shown[(codes == code) & ~hollow])
    assert_allclose(drawn.points_["trimmed"].get_offsets(), shown[hollow])
    assert drawn.ax_.get_title(loc="left").startswith(f"60 cases: {model.outliers_.sum()} outlier")
    assert list(drawn.lines_) == ["weighted", "unweighted"][: 2 if rule == "both" else 1]
    assert drawn.lines_["weighted"].get_xdata()[0] == model.outlier_threshold_
    if rule == "both":
        assert drawn.lines_["unweighted"].get_ydata()[0] == model.unweighted_outlier_threshold_


def test_axes_are_logarithmic_and_hold_points_and_thresholds():
    drawn = OutlierDisplay.from_estimator(MODEL, X)
    assert (drawn.ax_.get_xscale(), drawn.ax_.get_yscale()) == ("log", "log")
    points = np.concatenate([points.get_offsets() for points in drawn.points_.values()])
    limits = (MODEL.outlier_threshold_, MODEL.unweighted_outlier_threshold_)
    for ends, along, limit in zip(
        (drawn.ax_.get_xlim(), drawn.ax_.get_ylim()), points.T, limits, strict=True
    ):
        assert ends[0] < min(*along, limit) < max(*along, limit) < ends[1]
    drawn.figure_.canvas.draw()


def test_distances_near_zero_fit_on_a_log_axis():
    distances = np.array([0.0, 1.0, 1.0, 1.0, 2000.0])
    drawn = OutlierDisplay(distances, distances, thresholds=(50.0, np.inf)).plot()
    lowest = drawn.points_["none"].get_offsets().min()
    assert 0 < drawn.ax_.get_xlim()[0] < lowest == 1e-2


def test_the_most_extreme_flagged_cases_are_named():
    frame = pd.DataFrame(X, index=[f"case {i}" for i in range(60)], columns=list("abcdef"))
    drawn = OutlierDisplay.from_estimator(fit(frame), frame)
    names = [text.get_text() for text in drawn.texts_]
    assert {"case 3", "case 50"} <= set(names)
    assert len(names) <= 10
    drawn = OutlierDisplay.from_estimator(MODEL, X, n_names=1)
    assert [text.get_text() for text in drawn.texts_] in (["3"], ["50"])


def test_names_do_not_cover_one_another():
    rng = np.random.default_rng(0)
    points = rng.random((200, 2)) + 1
    points[:10] = [3, 3] + 0.1 * rng.random((10, 2))
    drawn = OutlierDisplay(*points.T, thresholds=(2.5, 2.5)).plot()
    drawn.figure_.canvas.draw()
    assert len(drawn.texts_) == 10
    # The box of the letters, without the line to the point.
    boxes = [matplotlib.text.Text.get_window_extent(text) for text in drawn.texts_]
    pairs = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i]]
    assert not any(a.overlaps(b) for a, b in pairs)


# Clusters


def test_two_features_are_shown_as_they_are():
    model = fit(X, n_features=2, l1_bound="auto")
    drawn = ClusterDisplay.from_estimator(model, X)
    strongest = np.argsort(-model.feature_weights_)[:2]
    assert (drawn.ax_.get_xlabel(), drawn.ax_.get_ylabel()) == tuple(f"x{j}" for j in strongest)
    outlying = model.is_outlier(X)
    for k in range(3):
        expected = X[(model.labels_ == k) & ~outlying][:, strongest]
        assert_allclose(drawn.points_[k].get_offsets(), expected)
        assert len(drawn.crosses_[k].get_offsets()) == ((model.labels_ == k) & outlying).sum()
        center = model.cluster_centers_[k, strongest]
        assert_allclose(drawn.centers_[k].get_position(), center)
        assert drawn.centers_[k].get_text() == str(k)
    texts = [text.get_text() for text in drawn.legend_.get_texts()]
    assert texts[:3] == [f"{k} (n = {n})" for k, n in enumerate(np.bincount(model.labels_))]
    assert texts[3:] == [f"{outlying.sum()} outlier" + "s" * int(outlying.sum() > 1)]


def test_components_keep_weighted_distances():
    """In a plane of the data, principal components are a rotation."""
    plane = make_figure1(90, 2, random_state=0).data
    model = fit(plane, l1_bound=1.3)
    drawn = ClusterDisplay.from_estimator(model, plane, kind="pca")
    gaps = drawn.positions - drawn.centers[model.labels_]
    assert_allclose((gaps**2).sum(axis=1), model.transform(plane).min(axis=1) ** 2)


def test_components_are_found_without_outliers():
    outlying = np.vstack([X, np.full(6, 1e4)])
    drawn = ClusterDisplay.from_estimator(MODEL, outlying, kind="pca")
    clean = ClusterDisplay.from_estimator(MODEL, X, kind="pca")
    assert_allclose(drawn.positions[:60], clean.positions, atol=1e-9)


def test_components_of_small_and_large_tables_are_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(50, 4)) * [3, 2, 1, 0.5] + 7
    outliers = np.arange(50) == 3
    small = models.principal_components(Z, outliers, Z[:2])
    monkeypatch.setattr(models, "PLAIN_CELLS", 0)
    large = models.principal_components(Z, outliers, Z[:2])
    for one, other in zip(small, large, strict=True):
        assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert_allclose(small.place(Z)[~outliers].mean(axis=0), 0, atol=1e-12)


def test_far_outliers_stand_on_the_edge():
    drawn = ClusterDisplay.from_estimator(fit(X, n_features=2, l1_bound="auto"), X)
    left, right = drawn.ax_.get_xlim()
    cross = np.vstack([points.get_offsets() for points in drawn.crosses_.values()])
    assert drawn.positions[3].max() == 60
    assert right < 30
    assert ((left < cross[:, 0]) & (cross[:, 0] < right)).all()
    assert "1 outlier beyond the frame" in drawn.ax_.get_title(loc="left")


def test_one_feature_is_shown_by_rank():
    drawn = ClusterDisplay.from_estimator(fit(X, l1_bound=1), X)
    assert_array_equal(np.sort(drawn.positions[:, 1]), np.arange(60))
    assert_array_equal(np.argsort(drawn.positions[:, 1]), np.argsort(drawn.positions[:, 0]))
    assert "order of this feature" in drawn.ax_.get_ylabel()


def test_missing_cells_are_drawn_at_the_center():
    missing = with_missing()
    model = fit(missing, n_features=2, l1_bound="auto")
    drawn = ClusterDisplay.from_estimator(model, missing)
    strongest = np.argsort(-model.feature_weights_)[:2]
    seen = np.isfinite(model.transform(missing)[:, 0])
    cells, labels = missing[seen][:, strongest], model.labels_[seen]
    centers = model.cluster_centers_[labels][:, strongest]
    assert_allclose(drawn.positions, np.where(np.isnan(cells), centers, cells))
    title = drawn.ax_.get_title(loc="left")
    assert f"{np.isnan(cells).any(axis=1).sum()} cases with missing cells" in title
    assert "not shown" in title


def test_many_cases_are_rasterised():
    rng = np.random.default_rng(0)
    n = 20_001
    drawn = ClusterDisplay(
        rng.normal(size=(n, 2)), rng.integers(0, 2, n), rng.random(n) < 0.01, np.zeros((2, 2))
    ).plot()
    assert all(points.get_rasterized() for points in drawn.points_.values())


# Heat map


def test_the_heat_map_is_sorted_standardized_and_marked():
    model = fit(X, l1_bound=None)
    drawn, features = HeatmapDisplay.from_estimator(model, X), strongest(model.feature_weights_)
    labels, distances = model.labels_[drawn.rows_], model.distances_[drawn.rows_]
    assert_array_equal(np.lexsort((distances, labels)), np.arange(60))
    assert_array_equal(np.sort(drawn.rows_), np.arange(60))
    outlying = model.is_outlier(X)
    tame = X[~outlying][:, features]
    expected = (X[:, features] - tame.mean(axis=0)) / tame.std(axis=0)
    assert_allclose(drawn.image_.get_array(), expected[drawn.rows_])
    low, high = drawn.image_.get_clim()
    assert low == -high
    assert high < expected.max()  # an outlying cell does not set the colors
    assert_array_equal([bar.get_height() for bar in drawn.strip_], np.bincount(model.labels_))
    colors = [to_hex(bar.get_facecolor()).upper() for bar in drawn.strip_]
    assert colors == palette.cluster_colors(3)
    marked = drawn.rows_[(drawn.marks_.get_ydata() - 0.5).astype(int)]
    assert_array_equal(np.sort(marked), np.flatnonzero(outlying))
    few = HeatmapDisplay.from_estimator(model, X, n_top=2)
    assert_allclose(few.image_.get_array(), expected[few.rows_][:, :2])
    assert "2 features of largest weight, of 6" in few.ax_.get_title(loc="left")


def test_missing_cells_are_masked_and_gray():
    missing = with_missing()
    model = fit(missing)
    drawn = HeatmapDisplay.from_estimator(model, missing)
    features = strongest(model.feature_weights_)
    assert_array_equal(drawn.image_.get_array().mask, np.isnan(missing[drawn.rows_][:, features]))
    red, green, blue = drawn.image_.cmap.get_bad()[:3]
    assert red == green == blue
    assert "gray: missing" in drawn.ax_.get_title(loc="left")


def test_rows_and_names_are_thinned():
    rng = np.random.default_rng(0)
    n = 5000
    drawn = HeatmapDisplay(
        rng.normal(size=(n, 4)), np.arange(n) // 2500, rng.random(n), np.zeros(n, bool)
    ).plot()
    assert len(drawn.image_.get_array()) <= 2000
    assert 10 < len(ticks(drawn.case_axis_.yaxis)) < 200
    assert drawn.ax_.get_ylim() == (n, 0)
    assert "evenly spaced" in drawn.ax_.get_title(loc="left")


# Style


@pytest.mark.parametrize("name", ["$x_1^2$", "a_b", r"\alpha", "50% & #1 {~}", "$5", r"\$", "_x"])
def test_names_are_shown_to_the_letter(name):
    ax = plt.subplots()[1]
    text = ax.text(0, 0, *style.names_at([name], [0]))
    shown, is_math = text._preprocess_math(text.get_text())
    assert (shown, is_math) == (name, False)


def test_odd_names_can_be_drawn_everywhere():
    columns = [f"_a$x_{j}^2$ " + 30 * "long " for j in range(6)]
    index = pd.MultiIndex.from_product([["$a", "_b"], range(30)])
    frame = pd.DataFrame(X, columns=columns, index=index)
    model = fit(frame)
    for display in ALL:
        draw(display, model, frame)
    drawn = WeightsDisplay.from_estimator(model)
    assert ticks(drawn.ax_.yaxis)[0].startswith(r"_a\$x_")


# Machado, Oliveira and Fernandes (2009): linear RGB as seen without red or green cones.
VISION = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}


def cielab(colors, vision):
    rgb = np.array([to_rgb(color) for color in colors])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.transpose(VISION[vision]), 0, 1)
    to_xyz = [[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]]
    x, y, z = np.cbrt(seen @ np.transpose(to_xyz) / [0.9505, 1, 1.0888]).T
    return np.column_stack([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISION)
def test_twenty_colors_can_be_told_apart_without_red_or_green_cones(vision):
    lab = cielab(palette.cluster_colors(20), vision)
    apart = np.linalg.norm(lab[:, None] - lab[None], axis=2)
    assert apart[np.triu_indices(20, 1)].min() > 17


def test_more_clusters_than_a_legend_can_hold():
    rng = np.random.default_rng(0)
    labels, none = np.arange(180) % 60, np.zeros(180, bool)
    drawn = ClusterDisplay(rng.normal(size=(180, 2)), labels, none, rng.normal(size=(60, 2))).plot()
    assert len(drawn.legend_.get_texts()) == 0
    assert len(drawn.centers_) == 60
    texts = SilhouetteDisplay(rng.random(180), labels, none).plot().texts_
    assert texts[7].get_text().startswith("cluster 7: mean 0.")
