"""The report in a browser: see tests/browsing.py."""

import csv
import io
import warnings

import numpy as np
import pandas as pd
import pytest

import browsing
from browsing import NASTY, assert_well_set, skip_without_browser, wait_until
from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.report import make_report
from rskc.selection import Clest, Stability

CHARTS = ["clusters", "silhouettes", "weights", "cells", "outliers"]

skip_without_browser()


def make_data():
    X = np.random.default_rng(0).normal(size=(300, 8))
    X[:100, :2] += 6
    X[200:, :2] -= 6
    X[5, 0], X[7, 1] = 60, 80
    X[10, 3] = np.nan
    names = [*NASTY, *(f"case {i}" for i in range(len(NASTY), 300))]
    features = [*NASTY[:5], "a.b[0]", "plain", "$m_1$"]
    return pd.DataFrame(X, index=names, columns=features)


def fit(X, K=3, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RobustSparseKMeans(K, **{"random_state": 0, "trim": 0.05} | params).fit(X)


@pytest.fixture(scope="module")
def data():
    return make_data()


@pytest.fixture(scope="module")
def model(data):
    return fit(data, l1_bound=2.2)


@pytest.fixture(scope="module")
def path(tmp_path_factory, model, data):
    report = make_report(model, data, labels=np.repeat(["a", "b", "c"], 100), title=NASTY[1])
    return report.save(tmp_path_factory.mktemp("report") / "report.html")


class Watch(browsing.Watch):
    """A page, and the numbers of its charts."""

    def rows_of(self, chart, dataset):
        """The rows of a data set, as the view of the chart holds them."""
        code = "([chart, name]) => rskc.views[chart].data(name).map(d => ({...d}))"
        return self.page.evaluate(code, [chart, dataset])

    def scale_of(self, chart, axis):
        """The domain of an axis."""
        code = "([chart, axis]) => rskc.views[chart].scale(axis).domain()"
        return self.page.evaluate(code, [chart, axis])


@pytest.fixture(scope="module")
def watch(browser, path):
    with Watch(browser, path) as watch:
        yield watch


def test_every_chart_is_drawn_without_error_or_request(watch, path, model):
    assert watch.complaints == []
    assert watch.requests == [path.as_uri()]
    assert watch.page.evaluate("window.hacked") is None
    assert watch.count(".drawing[data-drawn=yes]") == len(CHARTS)
    for name in CHARTS:
        box = watch.page.locator(f"#chart-{name} svg").bounding_box()
        assert box["width"] > 800
        assert box["height"] > 150
    weights = np.sort(model.feature_weights_)[::-1]
    bars = [bar["weight"] for bar in watch.rows_of("weights", "bars")]
    assert bars == pytest.approx(weights[: len(bars)], rel=1e-3)
    points = watch.rows_of("outliers", "points")
    assert [point["weighted"] for point in points] == pytest.approx(model.distances_, rel=1e-2)
    texts = cells(watch, "features", 1)
    assert {"<script>window.hacked = 1</script>", "=cmd()", "a.b[0]", "$m_1$"} <= set(texts)
    assert watch.count("tbody img") == watch.count("tbody script") == 0


def test_marks_are_as_many_as_there_are_numbers(watch, model):
    seen = np.isfinite(model.distances_)
    points = watch.count("#chart-clusters .mark-symbol.layer_0_marks path")
    crosses = watch.count("#chart-clusters .mark-symbol.layer_1_marks path")
    assert points == (seen & ~model.outliers_).sum()
    assert crosses == (seen & model.outliers_).sum()
    assert watch.count("#chart-clusters .mark-text.layer_3_marks text") == 3
    n_weights = np.count_nonzero(model.feature_weights_)
    assert watch.count("#chart-weights .mark-rect.layer_0_marks path") == n_weights
    assert watch.count("#chart-silhouettes .mark-rect.layer_0_marks path") == seen.sum()
    assert watch.count("#chart-cells .mark-rect.layer_0_marks path") == 120 * n_weights
    assert watch.count("#chart-cells .mark-rect.layer_1_marks path") == 120
    hollow = (model.trimmed_ & ~model.outliers_ & seen).sum()
    solid, rings = (f"#chart-outliers .mark-symbol.layer_{i}_marks path" for i in (0, 1))
    assert watch.count(solid) == seen.sum() - hollow
    assert watch.count(rings) == hollow


def test_pointing_at_a_case_shows_its_name(watch, model):
    mark = watch.page.locator("#chart-clusters .mark-symbol.layer_1_marks path").first
    mark.scroll_into_view_if_needed()
    mark.hover(force=True)
    tip = watch.page.locator("#vg-tooltip-element.visible")
    tip.wait_for(timeout=60_000)
    first = model.case_names_in_[model.outliers_][0]
    assert " ".join(first.split())[:20] in " ".join(tip.inner_text().split())
    assert tip.evaluate("e => getComputedStyle(e).visibility") == "visible"
    watch.page.mouse.move(5, 5)


def test_scatter_plots_zoom_and_come_back(watch):
    drawing = watch.page.locator("#chart-outliers svg")
    drawing.scroll_into_view_if_needed()
    labels = watch.page.locator("#chart-outliers .role-axis-label text")
    before, box = sorted(labels.all_text_contents()), drawing.bounding_box()
    watch.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    scrolled = watch.page.evaluate("scrollY")
    watch.page.keyboard.down("Control")
    watch.page.mouse.wheel(0, -400)
    watch.page.keyboard.up("Control")
    wait_until(lambda: sorted(labels.all_text_contents()) != before)
    assert watch.page.evaluate("scrollY") == scrolled
    watch.page.mouse.dblclick(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    wait_until(lambda: sorted(labels.all_text_contents()) == before)


def test_wheel_alone_scrolls_the_page(watch):
    drawing = watch.page.locator("#chart-clusters svg")
    drawing.scroll_into_view_if_needed()
    box, before = drawing.bounding_box(), watch.page.evaluate("scrollY")
    watch.page.mouse.move(box["x"] + 300, box["y"] + 100)
    watch.page.mouse.wheel(0, 200)
    wait_until(lambda: watch.page.evaluate("scrollY") > before)


def cells(watch, table, column):
    return watch.page.locator(
        f"[data-table={table}] tbody tr > :nth-child({column})"
    ).all_inner_texts()


def test_tables_sort(watch):
    head = watch.page.locator("[data-table=cases] thead th").nth(2)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    values = [float(text) for text in cells(watch, "cases", 3)]
    assert values == sorted(values, reverse=True)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    values = [float(text) for text in cells(watch, "cases", 3)]
    assert values == sorted(values)
    name = watch.page.locator("[data-table=cases] thead th").first
    name.locator("button").focus()
    watch.page.keyboard.press("Enter")
    assert name.get_attribute("aria-sort") == "ascending"
    assert head.get_attribute("aria-sort") == "none"
    names = [text for text in cells(watch, "cases", 1) if text.startswith("case ")]
    assert names[:3] == ["case 8", "case 9", "case 10"]


def test_tables_show_more_and_filter(watch):
    table = watch.page.locator("[data-table=cases]")
    assert table.locator("tbody tr").count() == 200
    table.locator(".more").click()
    assert table.locator("tbody tr").count() == 300
    assert table.locator(".more").is_hidden()
    watch.page.get_by_label("Search for a case").fill("CASE 29")
    wait_until(lambda: len(cells(watch, "cases", 1)) == 11)
    assert table.locator(".status").inner_text() == "11 rows."
    watch.page.get_by_label("Search for a case").fill("no such case")
    wait_until(lambda: len(cells(watch, "cases", 1)) == 0)
    assert table.locator(".status").inner_text() == "No row matches."
    watch.page.get_by_label("Search for a case").fill("")
    wait_until(lambda: len(cells(watch, "cases", 1)) == 200)


def test_download_is_safe_for_spreadsheets(watch, model):
    with watch.page.expect_download() as waiting:
        watch.page.locator("[data-table=cases] .download").click()
    assert waiting.value.suggested_filename == "cases.csv"
    text = waiting.value.path().read_bytes().decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 300
    by_name = {row["case"]: row for row in rows}
    assert "'=cmd()" in by_name
    assert "'-1 minus" in by_name
    assert '"quoted", comma' in by_name
    assert "<script>window.hacked = 1</script>" in by_name
    assert float(by_name["case 20"]["distance"]) == pytest.approx(model.distances_[20], rel=1e-3)
    assert not any(row["case"][0] in "=+-@" for row in rows)


def test_names_of_clusters_are_written_anew(browser, path, tmp_path):
    with Watch(browser, path) as watch:
        name = watch.page.get_by_role("textbox", name="Name of cluster 1")
        before = name.inner_text()
        assert before
        name.fill("Regular <b>customers</b>")
        name.press("Enter")
        wait_until(lambda: watch.rows_of("clusters", "centers")[1]["called"].startswith("1: Reg"))
        # In the key of a chart and in the table, as text.
        shown = watch.page.locator('[data-name-of="1"]').all_inner_texts()
        assert len(shown) > 2
        assert set(shown) == {"Regular <b>customers</b>"}
        with watch.page.expect_download() as waiting:
            watch.page.locator("[data-table=cases] .download").click()
        text = waiting.value.path().read_bytes().decode("utf-8-sig")
        names = {row["cluster"]: row["cluster_name"] for row in csv.DictReader(io.StringIO(text))}
        assert names["1"] == "Regular <b>customers</b>"
        # The same browser remembers, and a copy of the page tells others.
        watch.page.reload()
        watch.page.wait_for_selector("html[data-ready=yes]")
        assert name.inner_text() == "Regular <b>customers</b>"
        with watch.page.expect_download() as waiting:
            watch.page.get_by_text("Save a copy of this page").click()
        copy = tmp_path / "copy.html"
        waiting.value.save_as(copy)
        assert watch.complaints == []
    with Watch(browser, copy) as watch:
        assert watch.complaints == []
        assert watch.count(".drawing[data-drawn=yes]") == len(CHARTS)
        assert set(watch.page.locator('[data-name-of="1"]').all_inner_texts()) == set(shown)
        assert watch.page.locator('[data-name-of="0"]').first.inner_text()
        assert len(cells(watch, "cases", 1)) == 200


@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (900, "dark"), (1400, "light")])
def test_nothing_is_cut_and_all_can_be_read(browser, path, width, scheme):
    assert_well_set(browser, path, width, scheme)


def background(watch):
    return watch.page.evaluate("getComputedStyle(document.body).backgroundColor")


def label_color(watch):
    code = "getComputedStyle(document.querySelector('#chart-weights .role-axis-label text')).fill"
    return watch.page.evaluate(code)


@pytest.mark.parametrize("width", [320, 768])
def test_a_phone_shows_all_of_it(browser, path, width):
    look = {"viewport": {"width": width, "height": 700}, "is_mobile": True, "has_touch": True}
    with Watch(browser, path, **look) as phone:
        assert phone.complaints == []
        assert phone.page.evaluate("document.documentElement.scrollWidth") <= width
        for name in CHARTS:
            assert phone.page.locator(f"#chart-{name} svg").bounding_box()["width"] <= width
        if width > 400:
            return
        # A parameter is a block, with its meaning below; of a marker one sees above or below.
        meaning = phone.page.locator("table.stack td[data-label=Meaning]").first.bounding_box()
        name = phone.page.locator("table.stack th[data-label=Parameter]").first.bounding_box()
        assert meaning["y"] > name["y"]
        # Labels stand in the room before the text of a cell, and not under it.
        room = "cells => cells.map(cell => parseFloat(getComputedStyle(cell).paddingLeft))"
        rooms = phone.page.locator("table.stack [data-label]").evaluate_all(room)
        assert min(rooms) > 100, rooms
        for cell in ("table.stack td[data-label=Meaning]", "td.words"):
            box = phone.page.locator(cell).first.bounding_box()
            assert 0 <= box["x"] < box["x"] + box["width"] <= width
        words = phone.page.locator("td.words").first.inner_text()
        assert words.endswith((" SD above", " SD below"))


def test_keyboard_dark_and_print(browser, path, watch):
    with Watch(browser, path, color_scheme="dark") as dark:
        dark.page.keyboard.press("Tab")
        assert dark.page.evaluate("document.activeElement.textContent") == "Skip to the results"
        dark.page.keyboard.press("Enter")
        assert dark.page.evaluate("document.activeElement.id") == "main"
        assert background(dark) == "rgb(20, 23, 27)"
        assert label_color(dark) == "rgb(236, 239, 242)"
        dark.page.emulate_media(media="print")  # without loading anew
        assert background(dark) == "rgb(255, 255, 255)"
        assert label_color(dark) == label_color(watch) == "rgb(29, 33, 38)"
        for hidden in ("nav", ".tools", ".on-screen"):
            assert dark.page.locator(hidden).first.is_hidden()
        for name in CHARTS:
            assert dark.page.locator(f"#chart-{name} svg").is_visible()
        assert len(dark.page.pdf(format="A4")) > 50_000
        dark.page.emulate_media(media="screen", color_scheme="light")
        assert background(dark) == "rgb(255, 255, 255)"
        assert dark.complaints == []


def test_page_in_a_notebook(browser, model, data, tmp_path):
    frame = make_report(model, data)._repr_html_()
    outside = tmp_path / "notebook.html"
    outside.write_text(f"<!DOCTYPE html><html data-ready=yes><p id=own>text</p>{frame}", "utf-8")
    with Watch(browser, outside) as watch:
        inside = watch.page.frame_locator("iframe")
        inside.locator("html[data-ready=yes]").wait_for(state="attached", timeout=60_000)
        assert inside.locator(".drawing[data-drawn=yes]").count() == len(CHARTS)
        assert watch.complaints == []


def test_searches_are_drawn(browser, searches, tmp_path):
    X = make_simulation(model=1, random_state=0).data
    model = fit(X, l1_bound=6)
    path = make_report(model, X, searches=searches).save(tmp_path / "searches.html")
    with Watch(browser, path) as watch:
        assert watch.complaints == []
        assert watch.count(".drawing[data-drawn=yes]") == len(CHARTS) + len(searches)
        rows = watch.rows_of("search-0", "curve")
        expected = searches[0].table_.observed_cer
        assert [row["y"] for row in rows][: len(expected)] == pytest.approx(expected, rel=1e-3)
        assert watch.count("#chart-search-3 .mark-line path") == 4
        dots = watch.count("#chart-search-0 .mark-symbol.layer_0_marks path")
        assert dots == searches[0].observed_cers_.size + searches[0].reference_cers_.size


def test_a_page_of_one_cluster_is_drawn_without_a_warning(browser, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 20))
    one = RobustSparseKMeans(2, trim=0, l1_bound=None, n_init=3, random_state=0)
    how = {"random_state": 0, "n_jobs": 1, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        searches = [
            Stability(one, [2, 3], n_splits=4, n_references=19, **how).fit(X),
            Clest(one, [2, 3], n_splits=3, n_references=19, **how).fit(X),
        ]
    assert [search.n_clusters_ for search in searches] == [1, 1]
    model = searches[0].best_estimator_
    path = make_report(model, X, searches=searches).save(tmp_path / "one.html")
    with Watch(browser, path) as watch:
        assert watch.complaints == []
        drawn = ["clusters", "outliers", "search-0", "search-1"]
        assert watch.page.evaluate("Object.keys(rskc.views)") == drawn
        assert "largest weights" not in " ".join(watch.page.locator("h3").all_inner_texts())


def test_a_mixed_weighted_table_is_drawn_without_a_warning(browser, tmp_path):
    """A far outlier makes the scales of distances logarithmic, and nothing else is trimmed."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 4)), columns=list("abcd"))
    frame.loc[:39, "a"] += 8
    frame.loc[40:79, "b"] += 8
    frame.loc[5, "c"] = 1e4
    frame["color"] = np.repeat(["red", "green", "blue"], 40)
    model = RobustSparseKMeans(3, trim="auto", l1_bound=None, cells=None, n_init=5, random_state=0)
    model.fit(frame, sample_weight=rng.uniform(0.5, 3, 120))
    report = make_report(model, frame)
    chart = report.summary["charts"]["outliers"]
    place = chart["spec"]["layer"][0]["encoding"]
    assert [place[axis]["scale"]["type"] for axis in "xy"] == ["log", "log"]
    assert not any(chart["data"]["points"]["trimmed"])
    with Watch(browser, report.save(tmp_path / "mixed.html")) as watch:
        assert watch.complaints == []
        x, points = watch.scale_of("outliers", "x"), chart["data"]["points"]["x"]
        assert x[0] < min(points) < model.outlier_threshold_ < max(points) < x[1]


def test_a_search_that_tried_nothing_has_no_chart():
    X = np.random.default_rng(0).normal(size=(3, 4))
    search = Stability(RobustSparseKMeans(2, random_state=0), n_jobs=1, random_state=0).fit(X)
    summary = make_report(search.best_estimator_, X, searches=search).summary
    assert "spec" not in summary["searches"][0]
    assert "too few cases" in summary["sure"][0]["text"]
