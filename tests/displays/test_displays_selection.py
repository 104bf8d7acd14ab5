"""Pictures of searches: what is drawn, where, and what the titles decide."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.text import Text
from numpy.testing import assert_allclose, assert_array_equal

from rskc import RobustSparseKMeans
from rskc.datasets import make_figure1
from rskc.displays import SearchDisplay
from rskc.selection import Clest, GapL1, GridSearch, Stability
from rskc.selection.findings import Curve, Line, describe

pytestmark = pytest.mark.usefixtures("closed_figures")

DATA = make_figure1(60, 8, random_state=0).data
MODEL = RobustSparseKMeans(3, trim=0.02, l1_bound=1.6, n_init=3, random_state=0)
HOW = {"random_state": 0, "n_jobs": 1, "progress": False}


MAKE = {
    "clest": lambda: Clest(MODEL, [2, 3], n_splits=4, n_references=19, **HOW),
    "gap_l1": lambda: GapL1(MODEL, 5, n_permutations=3, **HOW),
    "stability": lambda: Stability(MODEL, [2, 3, 4], n_splits=3, n_references=4, **HOW),
    "grid": lambda: GridSearch(MODEL, [2, 3], [1.3, 1.6, 2.5], [0, 0.1], **HOW),
}


@pytest.fixture(scope="module")
def fitted():
    return {kind: make().fit(DATA) for kind, make in MAKE.items()}


def title_of(display):
    return display.ax_.get_title(loc="left")


def overlaps(texts):
    """Whether any two texts that are drawn share room, without lines that join them to points."""
    boxes = [Text.get_window_extent(text) for text in texts]
    return any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


# The curve of a search


@pytest.mark.parametrize("kind", MAKE)
def test_the_curve_is_drawn_as_the_search_describes_it(kind, fitted):
    drawn, finding = SearchDisplay.from_estimator(fitted[kind]), describe(fitted[kind])
    curve = finding.curve
    for line, bars in zip(curve.lines, drawn.curves_, strict=True):
        assert_allclose(bars.lines[0].get_ydata(), line.y)
        assert_allclose(bars.lines[0].get_xdata(), curve.x)
        if line.errors is not None:
            ends = np.array([segment[:, 1] for segment in bars.lines[2][0].get_segments()])
            assert_allclose(ends, np.column_stack([line.y - line.errors, line.y + line.errors]))
    dots = [line.dots for line in curve.lines if line.dots is not None]
    for points, values in zip(drawn.dots_, dots, strict=True):
        assert_allclose(points.get_offsets()[:, 1], values.ravel())
    assert (drawn.chosen_ is None) == (curve.chosen is None)
    if curve.chosen is not None:
        line, place = curve.chosen
        assert_allclose(drawn.chosen_.get_xydata(), [[curve.x[place], curve.lines[line].y[place]]])
    if curve.threshold is None:
        assert drawn.threshold_ is None
    else:
        assert_allclose(drawn.threshold_.get_ydata(), curve.threshold[1])
    title, *reason = title_of(drawn).splitlines()
    assert title.lower() == finding.result.lower()
    assert " ".join(reason).lower() == finding.reason.lower()


def test_what_is_drawn_is_in_the_tables(fitted):
    clest, gap, stability = (fitted[kind] for kind in ("clest", "gap_l1", "stability"))
    first, second = describe(clest).curve.lines
    assert_allclose(first.y, np.median(clest.observed_cers_, axis=0))
    assert_allclose(second.y, clest.reference_cers_.mean(axis=0))
    assert_array_equal(first.dots, clest.observed_cers_)
    curve, table = describe(gap).curve, gap.table_
    assert curve.x[curve.chosen[1]] == gap.l1_bound_1se_
    assert curve.threshold[1] == (table.gap - table.standard_error)[table.gap.idxmax()]
    assert describe(stability).curve.threshold[1] == stability.threshold


def test_a_search_that_finds_no_clusters_has_no_ring():
    search = Clest(MODEL, [2, 3], n_splits=2, n_references=4, **HOW).fit(
        np.random.default_rng(0).normal(size=(60, 8))
    )
    assert search.n_clusters_ == 1
    drawn = SearchDisplay.from_estimator(search)
    assert drawn.chosen_ is None
    assert title_of(drawn).startswith("No clusters: all cases are one group\n")


@pytest.mark.parametrize("size", [(12, 5), (5, 3)])
def test_words_along_the_axes_do_not_overlap(size):
    x = np.geomspace(1.2, 20, 16)
    line = Line("line", x)
    curve = Curve("l1_bound", x, "y", [line], chosen=(0, 7), above=("features", ["10,000"] * 16))
    ax = plt.subplots(figsize=size, layout="constrained")[1]
    drawn = SearchDisplay(curve).plot(ax)
    drawn.figure_.canvas.draw()
    for axis in (drawn.ax_.xaxis, drawn.above_axis_.xaxis):
        assert not overlaps(axis.get_ticklabels())


def test_too_few_cases_to_search_draw_all_the_same():
    search = Stability(MODEL.set_params(l1_bound=None), **HOW).fit(DATA[:5])
    assert search.table_.empty
    SearchDisplay.from_estimator(search).figure_.canvas.draw()
