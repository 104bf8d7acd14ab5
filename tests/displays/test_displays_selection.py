"""Pictures of searches: what is drawn, where, and what the titles decide."""

import builtins
from types import SimpleNamespace

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from rskc import RobustSparseKMeans
from rskc.datasets import make_figure1
from rskc.displays import (
    ClestDisplay,
    ConsensusDisplay,
    FeaturePathDisplay,
    GapDisplay,
    GridDisplay,
    SelectionDisplay,
    StabilityDisplay,
    StrengthDisplay,
    TrimCurvesDisplay,
    style,
)
from rskc.pictures.palette import PALETTE
from rskc.selection import (
    Clest,
    GapL1,
    GridSearch,
    PredictionStrength,
    Stability,
    TrimCurves,
    feature_path,
)

pytestmark = pytest.mark.usefixtures("closed_figures")

DATA = make_figure1(60, 8, random_state=0).data
MODEL = RobustSparseKMeans(3, trim=0.02, l1_bound=1.6, n_init=3, random_state=0)
HOW = {"random_state": 0, "n_jobs": 1, "progress": False}


def make_stability(numbers=(2, 3, 4), **how):
    return Stability(MODEL, list(numbers), n_splits=3, n_references=4, **HOW | how)


MAKE = {
    "clest": lambda: Clest(MODEL, [2, 3], n_splits=4, n_references=19, **HOW),
    "gap_l1": lambda: GapL1(MODEL, 5, n_permutations=3, **HOW),
    "stability": lambda: make_stability(),
    "consensus": lambda: make_stability(),
    "selected": lambda: make_stability(),
    "strength": lambda: PredictionStrength(MODEL, [1, 2, 3], n_splits=4, **HOW),
    "trim": lambda: TrimCurves(MODEL, [2, 3], [0, 0.05, 0.1], **HOW),
    "grid": lambda: GridSearch(MODEL, [2, 3], [1.3, 1.6, 2.5], [0, 0.1], **HOW),
}
DISPLAYS = {
    "clest": ClestDisplay,
    "gap_l1": GapDisplay,
    "stability": StabilityDisplay,
    "consensus": ConsensusDisplay,
    "selected": SelectionDisplay,
    "strength": StrengthDisplay,
    "trim": TrimCurvesDisplay,
    "path": FeaturePathDisplay,
    "grid": GridDisplay,
}
ALL = pytest.mark.parametrize("kind", DISPLAYS)
ON_ONE_AXES = pytest.mark.parametrize("kind", [kind for kind in DISPLAYS if kind != "grid"])
SEARCHES = pytest.mark.parametrize("kind", MAKE)


@pytest.fixture(scope="module")
def fitted():
    known = ("consensus", "selected")  # drawn from the search of "stability"
    searches = {kind: make().fit(DATA) for kind, make in MAKE.items() if kind not in known}
    searches |= dict.fromkeys(known, searches["stability"])
    return searches | {"path": feature_path(MODEL, DATA, 6)}


def title_of(display):
    return display.ax_.get_title(loc="left")


def offsets(points):
    return np.asarray(points.get_offsets())


def heights_of_bars(bars):
    return np.array([segment[0, 1] for segment in bars.get_segments()])


def texts_of(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def boxes_of(texts):
    """Where texts are, without the lines that join annotations to their points."""
    return [Text.get_window_extent(text) for text in texts]


def overlaps(texts):
    """Whether any two texts that are drawn share room."""
    boxes = boxes_of(texts)
    return any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


# All displays


@ALL
def test_sets_axes_and_figure(kind, fitted):
    drawn = DISPLAYS[kind].from_estimator(fitted[kind])
    assert drawn.ax_.figure is drawn.figure_
    assert len(plt.get_fignums()) == 1
    assert title_of(drawn)
    drawn.figure_.canvas.draw()


@ON_ONE_AXES
def test_draws_in_given_axes_and_again(kind, fitted):
    figure, (one, other) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    drawn = DISPLAYS[kind].from_estimator(fitted[kind], ax=one)
    assert drawn.ax_ is one
    assert drawn.plot(ax=other) is drawn
    assert drawn.ax_ is other
    assert drawn.figure_ is figure
    assert len(plt.get_fignums()) == 1


@ON_ONE_AXES
def test_draws_in_a_subfigure(kind, fitted):
    figure = plt.figure(figsize=(12, 5), layout="constrained")
    ax = figure.subfigures(1, 2)[0].subplots()
    assert DISPLAYS[kind].from_estimator(fitted[kind], ax=ax).ax_ is ax


@SEARCHES
def test_refuses_a_search_that_was_not_fitted(kind):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        DISPLAYS[kind].from_estimator(MAKE[kind]())
    assert not plt.get_fignums()


@ALL
def test_refuses_other_searches_and_models_in_a_sentence(kind, fitted):
    display = DISPLAYS[kind]
    own = type(fitted[kind])  # a stability search has several displays
    strangers = [search for search in fitted.values() if type(search) is not own]
    for stranger in [*strangers, MODEL, MODEL.fit(DATA), DATA, None]:
        name = type(stranger).__name__
        with pytest.raises(TypeError, match=f"^{display.__name__} draws a .* not a {name}.$"):
            display.from_estimator(stranger)
    assert not plt.get_fignums()


@ALL
def test_says_how_to_get_matplotlib(kind, fitted, monkeypatch):
    known = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return known(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r'pip install "rskc\[plot\]"'):
        DISPLAYS[kind].from_estimator(fitted[kind])


# Clest


def make_clest(chosen=3, passed=(False, True, False), numbers=(2, 3, 6)):
    rng = np.random.default_rng(0)
    m = len(numbers)
    table = pd.DataFrame(
        {
            "n_clusters": numbers,
            "observed_cer": 0.1,
            "reference_cer": 0.3,
            "passed": passed,
        }
    )
    return SimpleNamespace(
        table_=table,
        observed_cers_=rng.random((20, m)) / 2,
        reference_cers_=rng.random((30, m)) / 2 + 0.3,
        n_clusters_=chosen,
    )


def test_clest_points_stand_left_and_right_of_their_number():
    search = make_clest()
    drawn = ClestDisplay.from_estimator(search)
    for name, rates, side in (
        ("observed", search.observed_cers_, -1),
        ("reference", search.reference_cers_, 1),
    ):
        points = offsets(drawn.points_[name])
        assert_allclose(points[:, 1], rates.ravel())
        aside = points[:, 0] - np.tile(np.arange(3), len(rates))
        assert np.all((aside * side > 0) & (np.abs(aside) < 0.5))


def test_clest_bars_are_medians_and_means():
    search = make_clest()
    drawn = ClestDisplay.from_estimator(search)
    medians, means = np.median(search.observed_cers_, axis=0), search.reference_cers_.mean(axis=0)
    assert_allclose(heights_of_bars(drawn.bars_["median"]), medians)
    assert_allclose(heights_of_bars(drawn.bars_["mean"]), means)


def test_clest_marks_the_chosen_number_and_those_that_passed():
    drawn = ClestDisplay.from_estimator(make_clest())
    assert texts_of(drawn.ax_.xaxis) == ["2", "3", "6"]
    assert (drawn.band_.get_x(), drawn.band_.get_width()) == (0.5, 1)
    assert to_hex(drawn.band_.get_facecolor()).upper() == style.CHOSEN
    labels = drawn.below_axis_.xaxis.get_ticklabels()
    search = make_clest()
    below = search.reference_cers_ < np.median(search.observed_cers_, axis=0)
    first, second, third = below.sum(axis=0)
    assert texts_of(drawn.below_axis_.xaxis) == [f"{first}", f"{second} *", f"{third}"]
    assert [label.get_fontweight() for label in labels] == ["normal", "bold", "normal"]
    assert title_of(drawn) == (
        f"3 clusters: predicted better than {30 - second} of 30 reference sets"
    )


def test_clest_without_clusters_says_so():
    drawn = ClestDisplay.from_estimator(make_clest(chosen=1, passed=[False] * 3))
    assert drawn.band_ is None
    assert title_of(drawn).startswith("No clusters: all cases are one group\n")
    assert "none passed" in drawn.below_axis_.get_xlabel()


@pytest.mark.parametrize("size", [(12, 5), (5, 3)])
def test_clest_numbers_of_references_do_not_overlap(size):
    numbers = np.arange(2, 18)
    ax = plt.subplots(figsize=size, layout="constrained")[1]
    search = make_clest(chosen=5, passed=[True] * 16, numbers=numbers)
    drawn = ClestDisplay.from_estimator(search, ax=ax)
    drawn.figure_.canvas.draw()
    assert not overlaps(drawn.below_axis_.xaxis.get_ticklabels())


def test_clest_agrees_with_the_search(fitted):
    search = fitted["clest"]
    drawn = ClestDisplay.from_estimator(search)
    assert_allclose(heights_of_bars(drawn.bars_["median"]), search.table_.observed_cer)
    assert_allclose(heights_of_bars(drawn.bars_["mean"]), search.table_.reference_cer)
    assert (search.n_clusters_ == 1) == title_of(drawn).startswith(
        "No clusters: all cases are one group"
    )


# Stability


def test_stability_draws_both_curves_splits_threshold_and_choice(fitted):
    search = fitted["stability"]
    drawn, table = StabilityDisplay.from_estimator(search), search.table_
    assert search.n_clusters_ == 3
    assert_allclose(drawn.curve_.get_ydata(), table.stability)
    assert_allclose(drawn.agreement_.lines[0].get_ydata(), table.agreement)
    assert_allclose(offsets(drawn.points_)[:, 1], search.agreements_.ravel())
    assert_allclose(drawn.line_.get_ydata(), search.threshold)
    assert_allclose(drawn.chosen_.get_xydata(), [[1, table.stability[1]]])
    title, *reason = title_of(drawn).splitlines()
    assert title == "3 clusters"
    assert " ".join(reason) == search.reason_


def test_stability_of_one_cluster_has_no_ring_and_negative_agreement_is_seen():
    numbers, nothing = np.array([2, 3]), np.array([0.1, 0.2])
    drawn = StabilityDisplay(
        numbers, nothing, nothing - 0.3, nothing, threshold=0.8, chosen=1, reason="No number."
    ).plot()
    assert drawn.chosen_ is None
    assert drawn.points_ is None
    assert title_of(drawn) == "No clusters: all cases are one group\nNo number."
    assert drawn.ax_.get_ylim()[0] < -0.2


@pytest.mark.parametrize("display", [StabilityDisplay, ConsensusDisplay, SelectionDisplay])
def test_too_few_cases_to_search_draw_all_the_same(display):
    search = Stability(MODEL.set_params(l1_bound=None), **HOW).fit(DATA[:5])
    assert search.table_.empty
    display.from_estimator(search).figure_.canvas.draw()


def test_consensus_is_sorted_by_cluster_and_stability(fitted):
    search = fitted["consensus"]
    drawn = ConsensusDisplay.from_estimator(search)
    labels, firm = search.best_estimator_.labels_, search.case_stability_
    cases = drawn.names[drawn.order_].astype(int)
    assert sorted(cases) == list(range(len(DATA)))
    assert np.all(np.diff(labels[cases]) >= 0)
    for k in range(3):
        assert np.all(np.diff(firm[cases[labels[cases] == k]]) <= 0)
    whole = search.consensus_matrix()
    assert_allclose(drawn.image_.get_array(), whole[np.ix_(cases, cases)])
    assert title_of(drawn) == "60 cases in 3 clusters: together in half-samples"


def test_consensus_of_many_cases_shows_some(fitted):
    drawn = ConsensusDisplay.from_estimator(fitted["consensus"], max_cases=20)
    assert drawn.image_.get_array().shape == (20, 20)
    assert "rows: 20 of them" in title_of(drawn)
    assert set(drawn.labels) == {0, 1, 2}


def test_selection_bars_are_sorted_and_know_the_weights(fitted):
    search = fitted["selected"]
    drawn = SelectionDisplay.from_estimator(search, n_top=5)
    expected = np.sort(search.selection_probabilities_)[::-1]
    assert_allclose([bar.get_height() for bar in drawn.bars_], expected[:5])
    weights = search.best_estimator_.feature_weights_
    names = texts_of(drawn.ax_.xaxis)
    for name, bar in zip(names, drawn.bars_, strict=True):
        has_weight = weights[int(name[1:])] > 0
        assert (to_hex(bar.get_facecolor()).upper() == PALETTE[0]) == has_weight
    assert "and 3 more" in drawn.more_.get_text()
    n = np.count_nonzero(expected >= 0.75)
    assert title_of(drawn).startswith(f"{n} of 8 features selected by 75% of the half-samples")
    assert f"{search.selection_bound(0.75):.2g}" in title_of(drawn)


def test_selection_names_are_written_to_the_letter():
    drawn = SelectionDisplay(np.array([1.0, 0.5]), ["$a_1$", "_b"]).plot()
    assert texts_of(drawn.ax_.xaxis) == [r"\$a_1\$", "_b"]
    assert drawn.more_ is None
    drawn.figure_.canvas.draw()


# The gap


def make_gap(chosen=2, gap=(0.1, 0.4, 0.7, 0.75, 0.72), n=5):
    table = pd.DataFrame(
        {
            "l1_bound": [1.2, 3.0, 5.0, 5.1, 22.0][:n],
            "gap": gap[:n],
            "standard_error": 0.06,
            "chosen": np.arange(n) == chosen,
            "n_features": [2, 10, 45, 47, 500][:n],
        }
    )
    return SimpleNamespace(table_=table)


def ends_of_errors(drawn):
    (bars,) = drawn.curve_.lines[2]
    return np.array([segment[:, 1] for segment in bars.get_segments()])


def test_gap_curve_errors_and_marks():
    table = make_gap().table_
    drawn = GapDisplay.from_estimator(make_gap())
    assert_allclose(drawn.curve_.lines[0].get_xdata(), table.l1_bound)
    assert_allclose(drawn.curve_.lines[0].get_ydata(), table.gap)
    assert_allclose(ends_of_errors(drawn), np.column_stack([table.gap - 0.06, table.gap + 0.06]))
    assert_allclose(drawn.largest_.get_xydata(), [[5.1, 0.75]])
    assert_allclose(drawn.chosen_.get_xydata(), [[5.0, 0.7]])


def test_gap_over_bounds_has_a_log_scale_a_line_and_numbers_of_features():
    drawn = GapDisplay.from_estimator(make_gap())
    assert drawn.ax_.get_xscale() == "log"
    assert_allclose(drawn.line_.get_ydata(), 0.75 - 0.06)
    # 5.0 and 5.1 have no room for both; the chosen one comes first
    assert texts_of(drawn.feature_axis_.xaxis) == ["2", "10", "45", "500"]
    assert title_of(drawn).splitlines() == [
        "bound 5 (45 features): within one standard error",
        "largest gap: bound 5.1 (47 features)",
    ]


def test_gap_of_one_value():
    drawn = GapDisplay.from_estimator(make_gap(chosen=0, n=1))
    drawn.figure_.canvas.draw()
    assert title_of(drawn).endswith(": the largest gap")


def test_gap_agrees_with_the_search(fitted):
    search = fitted["gap_l1"]
    drawn = GapDisplay.from_estimator(search)
    assert drawn.chosen_.get_xdata()[0] == search.l1_bound_1se_
    assert drawn.largest_.get_xdata()[0] == search.l1_bound_


@pytest.mark.parametrize(("low", "high"), [(1.2, 2.3), (1.2, 8), (1.2, 70), (1.2, 230), (60, 70)])
def test_bounds_have_a_few_round_ticks(low, high):
    ticks = style.round_bounds(low, high)
    assert 2 <= len(ticks) <= 9
    assert min(ticks) >= low
    assert max(ticks) <= high


# Prediction strength


def make_strength(strength, chosen, threshold=0.8):
    m = len(strength)
    table = pd.DataFrame(
        {"n_clusters": np.arange(1, m + 1), "strength": strength, "standard_error": 0.05}
    )
    splits = np.tile(strength, (6, 1))
    return SimpleNamespace(table_=table, strengths_=splits, threshold=threshold, n_clusters_=chosen)


def test_strength_curve_threshold_and_choice():
    drawn = StrengthDisplay.from_estimator(make_strength([1, 0.9, 0.78, 0.3], 3))
    assert_allclose(drawn.curve_.lines[0].get_ydata(), [1, 0.9, 0.78, 0.3])
    assert_allclose(ends_of_errors(drawn)[2], [0.73, 0.83])
    assert_allclose(drawn.line_.get_ydata(), 0.8)
    assert_allclose(drawn.chosen_.get_xydata(), [[2, 0.78]])
    assert len(offsets(drawn.points_)) == 24
    assert (
        title_of(drawn) == "3 clusters: the largest number that is predicted well (strength 0.78)"
    )


def test_strength_below_the_threshold_is_not_praised():
    search = make_strength([0.5, 0.6], 2)
    drawn = StrengthDisplay.from_estimator(search)
    assert "2 clusters: the strongest, though below the threshold of 0.8" in title_of(drawn)
    drawn = StrengthDisplay([2], [0.5], [0.0], threshold=1.2, chosen=2).plot()
    assert drawn.points_ is None
    assert drawn.ax_.get_ylim()[1] > 1.2


# Trimming curves


def make_trim(suggested, trims=(0.0, 0.05, 0.1), value=None):
    rows = [
        {"n_clusters": K, "trim": trim, "moved": (value or 0.1) * j / K if j else np.nan}
        for K in suggested
        for j, trim in enumerate(trims)
    ]
    table = pd.DataFrame(rows).assign(n_features=5, n_outliers=2, within=1.0, objective=4.0)
    return SimpleNamespace(table_=table, suggested_trims_=suggested)


def test_trim_curves_are_the_columns_a_little_aside():
    search = make_trim({2: 0.05, 5: 0.1})
    for y in ("moved", "objective", "within", "n_features", "n_outliers"):
        drawn = TrimCurvesDisplay.from_estimator(search, y=y)
        assert list(drawn.curves_) == [2, 5]
        for K, curve in drawn.curves_.items():
            expected = search.table_[search.table_.n_clusters == K]
            assert_allclose(curve.get_ydata(), expected[y])
            assert_allclose(curve.get_xdata(), expected.trim, atol=0.0125)


def test_trim_curves_have_their_own_color_and_marker():
    drawn = TrimCurvesDisplay.from_estimator(make_trim(dict.fromkeys(range(2, 8), 0.05)))
    looks = {(to_hex(c.get_color()).upper(), c.get_marker()) for c in drawn.curves_.values()}
    assert {color for color, _ in looks} == set(PALETTE[:6])
    x = [curve.get_xdata()[1] for curve in drawn.curves_.values()]
    assert np.diff(x).min() > 0


def test_trim_rings_mark_the_least_share_that_trims_all_outlying_cases():
    drawn = TrimCurvesDisplay.from_estimator(make_trim({2: 0.03, 3: 0.0, 4: 0.12}))
    assert list(drawn.rings_) == [2, 3]  # with 4 clusters more are outlying than any share trims
    assert_allclose(drawn.rings_[2].get_ydata(), 0.05)
    assert_allclose(drawn.rings_[2].get_xdata()[0], drawn.curves_[2].get_xdata()[1])
    assert_allclose(drawn.rings_[3].get_ydata(), 0)  # of the least share nothing is known
    entries = [text.get_text() for text in drawn.legend_.get_texts()]
    assert entries[:3] == ["2: 3%", "3: 0%", "4: 12%"]
    assert title_of(drawn).startswith("0% to 12% of the cases are outlying\n")


def test_trim_ticks_stand_at_the_shares():
    drawn = TrimCurvesDisplay.from_estimator(make_trim({3: 0.025}, (0, 0.025, 0.1)))
    assert texts_of(drawn.ax_.xaxis) == ["0%", "2.5%", "10%"]
    assert_allclose(drawn.ax_.get_xticks(), [0, 0.025, 0.1])


@pytest.mark.parametrize("trims", [(0.1,), (0.0,)])
def test_trim_of_one_share(trims):
    drawn = TrimCurvesDisplay.from_estimator(make_trim({3: trims[0]}, trims))
    drawn.figure_.canvas.draw()
    assert f"{trims[0]:.0%} of the cases are outlying" in title_of(drawn)


def test_trim_column_is_checked(fitted):
    with pytest.raises(ValueError, match="y='inertia' must be one of 'moved'"):
        TrimCurvesDisplay.from_estimator(fitted["trim"], y="inertia")


# The feature path


def make_path(p=30, bounds=6, seed=0, names=None):
    weights = np.random.default_rng(seed).random((bounds, p))
    names = [f"x{j}" for j in range(p)] if names is None else names
    return SimpleNamespace(
        l1_bounds=np.geomspace(1.2, max(np.sqrt(p), 1.3), bounds),
        weights=weights,
        feature_names=np.array(names, object),
    )


def test_path_lines_are_the_weights_the_strongest_first():
    path = make_path()
    drawn = FeaturePathDisplay.from_estimator(path, n_top=4)
    order = np.argsort(-path.weights.sum(axis=0))
    assert_array_equal(drawn.features_, order[:4])
    for line, j in zip(drawn.lines_, order, strict=False):
        assert_allclose(line.get_ydata(), path.weights[:, j])
        assert_allclose(line.get_xdata(), path.l1_bounds)
    assert [text.get_text() for text in drawn.texts_] == [f"x{j}" for j in order[:4]]
    others = drawn.others_.get_segments()
    assert len(others) == 26
    assert_allclose(others[0][:, 1], path.weights[:, order[4]])
    assert title_of(drawn) == "All 30 features get weight; the 4 strongest are named"


def test_path_names_do_not_overlap_and_stand_beside_the_axes():
    path = make_path()
    path.weights[:] = 0.2 - 1e-6 * np.arange(30)  # all in one place
    drawn = FeaturePathDisplay.from_estimator(path, n_top=20)
    drawn.figure_.canvas.draw()
    assert not overlaps(drawn.texts_)
    frame = drawn.ax_.get_window_extent()
    boxes = boxes_of(drawn.texts_)
    assert min(box.x0 for box in boxes) > frame.x0 + 0.98 * frame.width
    assert min(box.y0 for box in boxes) > frame.y0 - 1
    assert max(box.y1 for box in boxes) < frame.y1 + 1
    assert [box.y0 for box in boxes] == sorted((box.y0 for box in boxes), reverse=True)


def test_path_draws_only_what_gets_weight():
    path = make_path(p=10)
    path.weights[:, 3:] = 0
    drawn = FeaturePathDisplay.from_estimator(path)
    assert len(drawn.lines_) == 3
    assert len(drawn.others_.get_segments()) == 0
    assert title_of(drawn) == "3 of 10 features get weight"


def test_path_of_many_features_draws_a_few_hundred_and_counts_the_rest():
    drawn = FeaturePathDisplay.from_estimator(make_path(50_000, 20))
    assert len(drawn.others_.get_segments()) == 300
    assert "the 49,690 weakest of them are not drawn" in title_of(drawn)
    drawn.figure_.canvas.draw()


def test_path_counts_features_above():
    path = make_path(bounds=3)
    path.weights[0, 2:] = 0
    drawn = FeaturePathDisplay.from_estimator(path)
    assert texts_of(drawn.feature_axis_.xaxis) == ["2", "30", "30"]


def test_path_names_are_shown_to_the_letter():
    path = make_path(p=3, names=["$x$ a", "_y", "gene\nwith a long, long name in it"])
    path.weights[:] = [0.9, 0.5, 0.1]
    drawn = FeaturePathDisplay.from_estimator(path)
    drawn.figure_.canvas.draw()
    texts = [text.get_text() for text in drawn.texts_]
    assert texts[:2] == [r"\$x\$ a", "_y"]
    assert len(texts[2]) == style.NAME_WIDTH


def test_path_of_one_bound_has_points():
    drawn = FeaturePathDisplay.from_estimator(make_path(bounds=1))
    drawn.figure_.canvas.draw()
    assert drawn.lines_[0].get_marker() == "o"


@pytest.mark.parametrize("n_top", [0, 1.5, "all"])
def test_path_n_top_is_checked(n_top):
    with pytest.raises(ValueError, match="n_top="):
        FeaturePathDisplay.from_estimator(make_path(), n_top=n_top)


# The grid


def test_grid_cells_are_the_column_of_the_table(fitted):
    table = fitted["grid"].table_
    for column in ("consensus", "cer_trim", "n_features"):
        drawn = GridDisplay.from_estimator(fitted["grid"], column=column)
        for ax, image, K in zip(drawn.axes_, drawn.images_, (2, 3), strict=True):
            wide = table[table.n_clusters == K].pivot(
                index="trim", columns="l1_bound", values=column
            )
            assert_allclose(np.asarray(image.get_array(), float), wide.to_numpy(float))
            assert ax.get_title(loc="left") == f"{K} clusters"
    assert texts_of(drawn.ax_.yaxis) == ["0%", "10%"]
    assert [text.split("\n")[0] for text in texts_of(drawn.ax_.xaxis)] == ["1.3", "1.6", "2.5"]


def test_grid_frame_marks_what_was_chosen(fitted):
    search = fitted["grid"]
    drawn = GridDisplay.from_estimator(search)
    assert drawn.frame_.axes is drawn.axes_[1]  # the model has three clusters
    best = search.best_params_
    corner = [1.3, 1.6, 2.5].index(best["l1_bound"]), [0, 0.1].index(best["trim"])
    assert_allclose(drawn.frame_.get_xy(), np.array(corner) - 0.5)


def test_grid_writes_its_cells_where_there_is_room(fitted):
    drawn = GridDisplay.from_estimator(fitted["grid"])
    values = drawn.values[0]
    for (row, column), text in drawn.texts_[0].items():
        assert text.get_position() == (column, row)
        assert text.get_text() == f"{values[row, column]:.2f}"
    assert len(drawn.texts_[0]) == 6
    drawn.plot(plt.subplots(1, 2, figsize=(2.6, 1.6), layout="constrained")[1])
    assert drawn.texts_[0] == {}


def test_grid_without_bounds_and_with_missing_cells():
    values = np.array([[[np.nan], [0.5]]])
    drawn = GridDisplay([None], [0.0, 0.1], [3], values, np.full((1, 2, 1), 9), chosen=(0, 1, 0))
    drawn.plot().figure_.canvas.draw()
    assert texts_of(drawn.ax_.xaxis) == ["none\n(9)"]
    assert [text.get_text() for text in drawn.texts_[0].values()] == ["", "0.50"]


def test_grid_of_a_search_without_bounds():
    search = GridSearch(MODEL, [2], None, [0, 0.1], **HOW).fit(DATA)
    drawn = GridDisplay.from_estimator(search, column="n_outliers")
    assert texts_of(drawn.ax_.xaxis) == ["none\n(8)"]


def test_grid_checks_column_and_axes(fitted):
    with pytest.raises(ValueError, match="column='trim' must be one of 'consensus'"):
        GridDisplay.from_estimator(fitted["grid"], column="trim")
    ax = plt.subplots()[1]
    with pytest.raises(ValueError, match="axes has 1 elements and there are 2 numbers"):
        GridDisplay.from_estimator(fitted["grid"], axes=ax)
