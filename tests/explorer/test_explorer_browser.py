"""The explorer in a browser: every pane, and what follows from every action."""

import csv
import io

import numpy as np
import pandas as pd
import pytest

import rskc
from browsing import NASTY, Watch, assert_well_set, skip_without_browser, wait_until
from rskc.explorer.views import scene_of

PANES = ["plane", "map", "tree", "features", "values", "cases", "compare", "take"]

skip_without_browser()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 9))
    X[:, 0] += 7 * (np.arange(90) % 3 == 1)
    X[:, 1] += 7 * (np.arange(90) % 3 == 2)
    X[12, 4], X[20, 5] = 50, np.nan
    names = [*NASTY, *(f"case {i}" for i in range(len(NASTY), 90))]
    features = ["a.b[0]", *NASTY[:5], "plain", "$m_1$", "&amp;"]
    return pd.DataFrame(X, index=names, columns=features)


@pytest.fixture(scope="module")
def explorer(data):
    return rskc.explore(
        data,
        n_clusters=[2, 3, 4],
        n_features=[2, 4, 9],
        trims=[0, 0.05],
        n_splits=1,
        labels=np.array(["x", NASTY[0], "z"])[np.arange(90) % 3],
        title=NASTY[1],
        n_jobs=1,
        progress=False,
    )


@pytest.fixture(scope="module")
def path(explorer, tmp_path_factory):
    return explorer.save(tmp_path_factory.mktemp("explorer") / "explorer.html")


@pytest.fixture(scope="module")
def scene(explorer):
    return scene_of(explorer.search)


@pytest.fixture
def watch(browser, path):
    with Watch(browser, path, reduced_motion="reduce") as watch:
        yield watch
        assert watch.complaints == []
        assert watch.requests == [path.as_uri()]
        assert watch.page.evaluate("window.hacked") is None


def view(watch):
    """The places on the axes of what is shown."""
    return watch.page.evaluate("[rskc.view.k, rskc.view.f, rskc.view.t]")


def counted(n, noun):
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def setting_of(k, f, t):
    return (k * 2 + t) * 3 + f


def text(watch, id):
    return " ".join(watch.page.locator(f"#{id}").inner_text().split())


def read(download):
    content = download.value.path().read_bytes().decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(content)))


def cells(watch, table, column):
    return watch.page.locator(f"#{table} tbody tr > :nth-child({column})").all_inner_texts()


def brush(watch, first=(0.02, 0.02), last=(0.98, 0.98)):
    """Drag over a part of the plane, given in shares of its size."""
    canvas = watch.page.locator("#plane")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (first, last)]
    watch.page.mouse.move(*places[0])
    watch.page.mouse.down()
    watch.page.mouse.move(*places[1], steps=3)
    watch.page.mouse.up()


def selected(watch):
    return watch.page.evaluate("rskc.view.selected ? Array.from(rskc.view.selected) : null")


def test_every_pane_is_drawn(watch, scene):
    for name in PANES:
        pane = watch.page.locator(f"#pane-{name}")
        assert pane.bounding_box()["height"] > 60
        assert pane.locator(".what").inner_text().endswith(".")
    assert view(watch) == scene.start
    assert watch.page.title() == NASTY[1]
    assert "3 clusters" in text(watch, "automatic")
    assert watch.count("#map tbody button") == 9
    assert watch.count("#tree [data-node]") == 2 + 3 + 4
    assert watch.count(".star") == 3
    for canvas in ("plane", "values"):
        pixels = watch.page.evaluate(
            f"""() => {{ const c = document.getElementById("{canvas}");
            const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
            return new Set(Array.from({{length: d.length / 4}}, (_, i) =>
              d[4 * i + 3] > 200 ? d.slice(4 * i, 4 * i + 3).join() : "")).size }}"""
        )
        assert pixels > 10, canvas


def test_sliders_by_keyboard_and_mouse(watch, scene):
    k, f, t = scene.start
    slider = watch.page.locator("#slider-k")
    slider.focus()
    watch.page.keyboard.press("Home")
    assert view(watch) == [0, f, t]
    watch.page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "3"
    watch.page.keyboard.press("End")
    assert view(watch) == [2, f, t]
    assert watch.count("#key li") == 4
    track = watch.page.locator("#slider-f").bounding_box()
    watch.page.mouse.click(track["x"] + track["width"] - 4, track["y"] + track["height"] / 2)
    assert view(watch) == [2, 2, t]
    sizes = scene.views[setting_of(2, 2, t)].sizes
    assert cells_of_key(watch) == [counted(n, "case") for n in sizes]
    watch.page.locator("#to-automatic").click()
    assert view(watch) == [k, f, t]


def cells_of_key(watch):
    return [entry.split(maxsplit=1)[1] for entry in watch.page.locator("#key li").all_inner_texts()]


def test_the_address_keeps_the_view(browser, watch, path, scene):
    watch.page.locator("#slider-k").press("End")
    watch.page.get_by_label("silhouette").check()
    watch.page.get_by_label("by the current weights").check()
    watch.page.locator("#pin").click()
    watch.page.locator("#slider-t").press("Home")
    watch.page.locator("#features tbody button").first.click()
    address, now = watch.page.url, view(watch)
    assert "#k=4&" in address
    with Watch(browser, path, address.partition(path.as_uri())[2]) as again:
        assert again.complaints == []
        assert view(again) == now
        assert again.page.evaluate("[rskc.view.map, rskc.view.plane]") == ["silhouette", "weights"]
        assert again.page.evaluate("rskc.view.pin") == watch.page.evaluate("rskc.view.pin")
        assert again.page.evaluate("rskc.view.feature") == watch.page.evaluate("rskc.view.feature")
        again.page.evaluate("location.hash = 'k=2&features=9&trim=0.05'")
        wait_until(lambda: view(again) == [0, 2, 1])
    with Watch(browser, path, "#k=99&features=x&pin=1&map=no&feature=none") as wrong:
        assert wrong.complaints == []
        assert view(wrong) == scene.start


def test_the_map_goes_to_a_setting_and_changes_its_colors(watch, scene):
    t = scene.start[2]
    watch.page.locator("#map tbody tr").nth(2).locator("button").nth(1).click()
    assert view(watch) == [2, 1, t]
    pressed = watch.page.locator("#map button[aria-pressed=true]")
    assert pressed.get_attribute("aria-label").startswith("4 clusters, 4 features")
    pressed.press("ArrowUp")
    assert view(watch) == [1, 1, t]
    shown = {}
    for measure in ("agreement", "silhouette", "smallest"):
        watch.page.locator(f"#map-choice input[value={measure}]").check()
        shown[measure] = watch.page.locator("#map tbody button").first.inner_text()
    first = scene.views[setting_of(0, 0, t)]
    assert shown["agreement"] == f"{first.figures['agreement']:.2f}"
    assert shown["silhouette"] == f"{first.figures['silhouette']:.2f}"
    assert shown["smallest"] == str(first.sizes.min())
    assert watch.page.locator("#map button", has_text="★").count() == 1


def test_pointing_names_the_case(watch, scene):
    i = 30
    x, y = watch.page.evaluate(f"[rskc.data.plane[{2 * i}], rskc.data.plane[{2 * i + 1}]]")
    canvas = watch.page.locator("#plane")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    inner = [box["width"] - 28, box["height"] - 28]
    watch.page.mouse.move(box["x"] + 14 + x * inner[0], box["y"] + 14 + (1 - y) * inner[1])
    words = watch.page.locator("#tip").inner_text()
    name = words.splitlines()[0]
    assert name in [" ".join(str(n).split())[:20] for n in NASTY] or name.startswith("case ")
    assert "cluster" in words
    assert "known class" in words


def test_points_move_to_the_plane_of_the_weights(watch):
    watch.page.get_by_label("by the current weights").check()
    code = "Array.from(rskc.data.cache.get('plane ' + rskc.s).positions)"
    plane, true = np.array(watch.page.evaluate(code)).reshape(-1, 2), np.arange(90) % 3
    centers = np.array([np.median(plane[true == k], axis=0) for k in range(3)])
    nearest = ((plane[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == true).mean() > 0.95
    assert "place the points" in text(watch, "plane-note")


def test_brushed_cases_are_followed_by_other_panes(watch, scene):
    brush(watch, (0.01, 0.01), (0.5, 0.99))
    chosen = np.array(selected(watch), bool)
    plane = scene.plane
    assert 0 < chosen.sum() < 90
    assert plane[chosen, 0].max() <= plane[~chosen, 0].min() + 0.02
    assert f"{chosen.sum()} cases selected" in text(watch, "status")
    assert watch.page.locator("#case-filter").input_value() == "selected"
    assert len(cells(watch, "cases", 1)) == min(50, chosen.sum())
    parts = [int(part) for part in watch.page.locator("#tree .part").all_text_contents()]
    assert sum(parts) == 3 * chosen.sum()  # in each of three rows
    watch.page.locator("#clear").click()
    assert selected(watch) is None
    assert watch.page.locator("#case-filter").input_value() == "all"


def test_a_branch_of_the_tree_lights_up(watch, scene):
    _, f, t = scene.start
    node = watch.page.locator("#tree [data-node='2:3']")
    node.scroll_into_view_if_needed()
    node.hover()
    lit = np.array(watch.page.evaluate("Array.from(rskc.view.lit)"), bool)
    np.testing.assert_array_equal(lit, scene.views[setting_of(2, f, t)].labels == 3)
    assert watch.count("#tree .nodes .faded") > 0
    shown = watch.page.locator("#tip").inner_text()
    assert shown == f"cluster 3 of 4: {counted(lit.sum(), 'case')}"
    node.click()
    assert view(watch) == [2, f, t]
    watch.page.mouse.move(5, 5)
    wait_until(lambda: watch.page.evaluate("rskc.view.lit") is None)
    edges = watch.page.locator("#tree path title").all_text_contents()
    assert sum(int(edge.split()[0]) for edge in edges) == 2 * 90


def test_features_are_listed_searched_shown_and_saved(watch, scene, data):
    own = scene.views[setting_of(*scene.start)]
    assert cells(watch, "features", 1) == [" ".join(data.columns[j].split()) for j in own.features]
    assert cells(watch, "features", 3)[0] == f"{50 * own.times_selected[0]:g}%"
    watch.page.locator("#features tbody button").nth(1).click()
    assert text(watch, "value-name") == " ".join(data.columns[own.features[1]].split())
    watch.page.locator("#feature-search").fill("PLAIN")
    wait_until(lambda: cells(watch, "features", 1) == ["plain"])
    watch.page.locator("#feature-search").fill("")
    watch.page.locator("#slider-f").press("End")
    with watch.page.expect_download() as waiting:
        watch.page.locator("#feature-download").click()
    rows, last = read(waiting), scene.views[setting_of(scene.start[0], 2, scene.start[2])]
    assert waiting.value.suggested_filename == "features.csv"
    assert len(rows) == 9
    assert {"'=cmd()", "$m_1$", "&amp;"} <= {row["feature"] for row in rows}
    weights = [float(row["weight"]) for row in rows]
    assert weights == pytest.approx(last.weights, abs=1e-4)
    assert float(rows[0]["weight_at_9"]) == pytest.approx(weights[0], rel=1e-4)
    assert watch.count("#features img") == watch.count("#features script") == 0


def test_categories_are_shown_by_cluster(browser, tmp_path):
    kind = np.arange(60) % 3
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": kind + rng.normal(0, 0.2, 60), "noise": rng.normal(size=60)})
    X["color"] = np.array(["red", "green", "blue"])[kind]
    how = {"n_features": [3], "trims": [0], "n_splits": 0, "n_jobs": 1, "progress": False}
    rskc.explore(X, n_clusters=[3], **how).save(tmp_path / "mixed.html")
    with Watch(browser, tmp_path / "mixed.html") as watch:
        assert_categories_are_drawn(watch.page)
        assert watch.complaints == []


def assert_categories_are_drawn(page):
    page.locator("#features button", has_text="color").click()
    assert page.locator("#value-name").inner_text() == "color"
    page.get_by_label("by the current weights").check()
    page.wait_for_function("document.body.innerText.includes('3 features place the points')")
    # The words of the axis and the shares are drawn, each share 100% of its cluster.
    drawn = page.evaluate(
        """() => {
          const words = [];
          const fill = CanvasRenderingContext2D.prototype.fillText;
          CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
            words.push(text);
            return fill.call(this, text, ...at);
          };
          for (const name of ["size", "color"])
            [...document.querySelectorAll("#features button")]
              .find((button) => button.textContent === name)
              .click();
          return words;
        }"""
    )
    assert {"red", "green", "blue"} <= set(drawn)
    assert drawn.count("100%") == 3


def test_cases_are_filtered_sorted_and_saved(watch, scene, data):
    own = scene.views[setting_of(*scene.start)]
    assert len(cells(watch, "cases", 1)) == 50
    watch.page.locator("#case-more").click()
    assert len(cells(watch, "cases", 1)) == 90
    head = watch.page.locator("#cases [data-key=agreement] button")
    head.click()
    shares = [float(cell.rstrip("%")) for cell in cells(watch, "cases", 8)]
    assert shares == sorted(shares)
    head = watch.page.locator("#cases [data-key=agreement]")
    assert head.get_attribute("aria-sort") == "ascending"
    watch.page.locator("#case-filter").select_option("outliers")
    assert len(cells(watch, "cases", 1)) == own.outliers.sum()
    watch.page.locator("#case-filter").select_option("all")
    watch.page.locator("#case-search").fill("Case 8")
    wait_until(lambda: len(cells(watch, "cases", 1)) == 11)
    watch.page.locator("#case-search").fill("")
    with watch.page.expect_download() as waiting:
        watch.page.locator("#case-download").click()
    rows = {row["case"]: row for row in read(waiting)}
    assert len(rows) == 90
    assert "'=cmd()" in rows
    own_of = {row: int(rows[row]["cluster_of_3"]) for row in ("case 20", "case 33", "case 88")}
    labels = scene.views[setting_of(1, *scene.start[1:])].labels
    assert own_of == {f"case {i}": labels[i] for i in (20, 33, 88)}
    assert rows["case 20"]["class"] == "z"


def test_a_pinned_view_is_compared(watch, scene):
    k, f, t = scene.start
    assert "No view is pinned" in text(watch, "compare")
    watch.page.locator("#pin").click()
    assert "0 cases of 90 moved" in text(watch, "moved")
    watch.page.locator("#slider-k").press("End")
    watch.page.locator("#slider-f").press("End")
    before, now = scene.views[setting_of(k, f, t)], scene.views[setting_of(2, 2, t)]
    moved = int((before.labels != now.labels).sum())
    assert f"{counted(moved, 'case')} of 90 moved" in text(watch, "moved")
    gained = len(set(now.features) - set(before.features))
    assert f"{counted(gained, 'feature')} gained" in text(watch, "gained")
    assert "0 features lost: none" in text(watch, "lost")
    known = np.arange(90) % 3
    rates = [rskc.metrics.classification_error_rate(v.labels, known) for v in (before, now)]
    assert f"{rates[0]:.3f} at the pin, {rates[1]:.3f} now" in text(watch, "cer")
    counts = [int(cell) for cell in watch.page.locator(".cross td").all_inner_texts()]
    assert sum(counts) == 90
    watch.page.get_by_role("button", name="Select these cases").click()
    assert sum(selected(watch)) == moved
    watch.page.get_by_role("button", name="Back to the pin").click()
    assert view(watch) == [k, f, t]
    watch.page.locator("#pin").click()
    assert "No view is pinned" in text(watch, "compare")


def test_a_view_is_taken_along(watch, scene, data):
    watch.page.locator("#slider-k").press("End")
    code = watch.page.locator("#take code").inner_text()
    assert "RobustSparseKMeans(4, " in code
    s = setting_of(2, *scene.start[1:])
    with watch.page.expect_download() as waiting:
        watch.page.locator("#take-labels").click()
    rows = read(waiting)
    assert waiting.value.suggested_filename == "labels.csv"
    np.testing.assert_array_equal([int(row["cluster"]) for row in rows], scene.views[s].labels)
    outliers = [row["outlier"] == "True" for row in rows]
    np.testing.assert_array_equal(outliers, scene.views[s].outliers)
    with watch.page.expect_download() as waiting:
        watch.page.locator("#take-weights").click()
    weights = [float(row["weight"]) for row in read(waiting)]
    assert weights == pytest.approx(scene.views[s].weights, abs=1e-4)


def ink(watch):
    return watch.page.evaluate("getComputedStyle(document.body).color")


def cell_color(watch):
    return watch.page.locator("#map tbody button").first.evaluate("e => e.style.background")


def test_dark_print_and_wide(browser, path):
    with Watch(
        browser, path, color_scheme="dark", viewport={"width": 1400, "height": 900}
    ) as watch:
        dark = ink(watch), cell_color(watch)
        ends = {}
        for name in PANES:
            box = watch.page.locator(f"#pane-{name}").bounding_box()
            ends[name] = box["y"] + box["height"]
        assert ends["plane"] == pytest.approx(ends["tree"], abs=1)  # side by side, without holes
        assert ends["features"] == pytest.approx(ends["values"], abs=1)
        watch.page.emulate_media(media="print")
        assert ink(watch) != dark[0]
        wait_until(lambda: cell_color(watch) != dark[1])
        printed = cell_color(watch)
        assert watch.page.locator(".tools").first.is_hidden()
        assert all(watch.page.locator(f"#pane-{name}").is_visible() for name in PANES)
        assert len(watch.page.pdf(format="A4")) > 30_000
        watch.page.emulate_media(media="screen", color_scheme="light")
        wait_until(lambda: ink(watch) == "rgb(29, 33, 38)")
        assert cell_color(watch) == printed
        assert watch.complaints == []


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (900, "light"), (1400, "light")])
def test_nothing_is_cut_and_all_can_be_read(browser, path, width, scheme):
    assert_well_set(browser, path, width, scheme)


@pytest.mark.parametrize("width", [320, 768])
def test_narrow_screens_do_not_overflow(browser, path, width):
    look = {"viewport": {"width": width, "height": 700}, "is_mobile": True, "has_touch": True}
    with Watch(browser, path, **look) as phone:
        assert phone.complaints == []
        assert phone.page.evaluate("document.documentElement.scrollWidth") <= width
        for name in PANES:
            assert phone.page.locator(f"#pane-{name}").bounding_box()["width"] <= width
        phone.page.locator("#slider-k").press("Home")
        assert view(phone)[0] == 0
