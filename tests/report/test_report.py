"""The report: the numbers it gives, the advice, and a page that is safe, small and the same."""

import copy
import html
import json
import os
import re
import sys
import textwrap
from collections import defaultdict
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

import sentences
from rskc.metrics import classification_error_rate, revised_silhouette
from rskc.model.warnings import KINDS
from rskc.pictures.palette import DARK_PALETTE
from rskc.preprocessing.preparer import FLOORED
from rskc.report import Report, make_report, summarize
from rskc.report._summary import short_names
from rskc.report._words import ADVICE, advise
from rskc.report.page import TEMPLATES, render, vega_script
from rskc.selection.findings import describe
from rskc.utils.webpage import embedded_json
from rskc.utils.wording import number
from sentences import facts, fit, make_data, search_stability

NASTY = {
    "script": "<script>alert(1)</script>",
    "end of script": "</script><script>alert(2)</script><!--",
    "attribute": '" onmouseover="alert(3)" x=\'',
    "emoji": "gene 🧬🎉",
    "right to left": "שלום עולם",
    "override": "abc\u202edef",
    "long": "a" * 5000 + "<b>" + "z" * 5000,
    "formula": "=cmd()",
    "template": "{{7*7919}} {% raw %}",
    "surrogate": "bad\udc80byte",
    "control": "nul\x00 bell\x07",
    "separator": "line\u2028break",
    "entity": "&lt;img src=x&gt;",
    "signal": "datum.x + 1",
}


@pytest.fixture(scope="module")
def X():
    return make_data()


@pytest.fixture(scope="module")
def model(X):
    return fit(X)


@pytest.fixture(scope="module")
def summary(model, X):
    return summarize(model, X, labels=np.repeat(["a", "b", "c"], 20))


class Reader(HTMLParser):
    """Collects what a browser would: elements, their attributes, and the text outside scripts."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.scripts, self.open = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.scripts.append(data)
        else:
            self.texts.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


# The summary


def test_summary_is_plain(summary):
    again = json.loads(json.dumps(summary, allow_nan=False))
    assert again["headline"] == summary["headline"]
    assert "<" not in json.dumps([summary[key] for key in ("headline", "meaning", "advice")])


def test_counts_are_those_of_the_model(model, X, summary):
    data, result = summary["data"], summary["result"]
    assert (data["n_cases"], data["n_features"]) == X.shape
    assert result["n_selected"] == np.count_nonzero(model.feature_weights_)
    assert result["n_trimmed"] == model.trimmed_.sum()
    values = revised_silhouette(model, X).values
    for row, mine in [
        (result, np.full(60, True)),
        *((row, model.labels_ == row["cluster"]) for row in summary["clusters"]),
    ]:
        assert row["n_outliers"] == (mine & model.outliers_).sum()
        assert row.get("size", 60) == mine.sum()
        assert_allclose(row["silhouette"], values[mine & ~model.outliers_].mean())


def test_markers_of_the_page_are_those_of_the_frame(model, X, summary):
    frame = model.markers_frame(X)
    low, middle, high = np.argsort(model.cluster_centers_[:, 0])
    for k, group in enumerate(summary["markers"]):
        own = frame[frame.cluster == k]
        assert group["n"] == len(own)
        assert [row["feature"] for row in group["top"]] == list(own.feature[:5])
        assert [row["mean"] for row in group["top"]] == list(map(number, own["mean"][:5]))
        assert {row["feature"] for row in group["top"][:2]} == {"x0", "x1"}
    assert summary["markers"][high]["top"][0]["words"].endswith("SD above")
    assert summary["markers"][low]["top"][0]["words"].endswith("SD below")
    assert summary["markers"][middle]["top"][0]["words"].startswith("between the others, ")
    page = Reader(Report(summary).html).text
    assert "What sets each cluster apart" in page
    assert summary["markers"][high]["top"][0]["words"] in page
    assert "is no test" in page
    assert "Selected" not in page


def test_profiles_have_no_signed_zero_and_logarithms_geometric_means(X):
    table = pd.DataFrame(np.abs(X), columns=list("abcdef"))
    model, notes = fit(table), []
    for unit in ((0.0, 1.0), (0.0, 1.0, FLOORED)):
        report = make_report(model, table)
        made = summarize(model, table, units={"a": unit})
        notes.append("those of columns in logarithms geometric means" in Report(made).html)
        made["clusters"][0]["profile"] = [{"feature": "a", "effect": -0.04, "length": 0.1}]
        page = Reader(Report(made).html).text
        assert "-0.0" not in page
    assert notes == [False, True]
    assert "geometric" not in report.html


def test_alarms_stand_at_the_top(model, X):
    made = summarize(model, X)
    about = [item["about"] for item in made["advice"]]
    assert about
    calm = Report(made).html
    assert 'class="advice alarms"' not in calm
    made["advice"] = [item | {"alarm": item["about"] == about[0]} for item in made["advice"]]
    page = Report(made).html
    first = page.index('class="advice alarms"')
    assert page.index('class="headline"') < first < page.index('class="tiles"')
    assert page.count(f"<strong>{about[0]}.</strong>") == 1
    assert page.index(f"<strong>{about[0]}.</strong>") > first


def test_a_cluster_without_markers_says_so(model, summary):
    bare = copy.deepcopy(summary)
    bare["markers"][1]["top"] = []
    assert "no feature differs by half an SD or more" in Reader(Report(bare).html).text
    assert short_names([[], []]) == ["cluster 0", "cluster 1"]


def test_truth(model, summary):
    true = np.repeat(["a", "b", "c"], 20)
    assert_allclose(summary["truth"]["cer"], classification_error_rate(true, model.labels_))
    assert_allclose(summary["truth"]["ari"], adjusted_rand_score(true, model.labels_))
    assert summary["truth"]["classes"]["class"] == ["a", "b", "c"]
    assert sum(summary["truth"]["classes"]["size"]) == 60
    words, codes = summary["cases"]["words"]["class"], summary["cases"]["data"]["class"]
    assert [words[code] for code in codes] == true.tolist()


def test_of_a_class_whose_cases_have_no_weight_no_share_is_known(X):
    weights = np.repeat([1.0, 2.0, 0.0], [20, 35, 5])
    labels = np.repeat(["a", "b", "c"], [20, 35, 5])
    report = make_report(fit(X, sample_weight=weights), X, labels=labels)
    assert report.summary["truth"]["classes"]["sensitivity"][2] is None
    assert '<td class="n">–</td></tr>' in report.html


def test_tables_hold_everything(model, X, summary):
    cases, features = summary["cases"]["data"], summary["features"]["data"]
    assert cases["case"] == [str(i) for i in range(60)]
    assert_array_equal(cases["cluster"], model.labels_)
    assert_allclose(cases["distance"], model.distances_, rtol=1e-3)
    assert_allclose(cases["unweighted_distance"], model.unweighted_distances_, rtol=1e-3)
    words = np.array(summary["cases"]["words"]["outlier"])[cases["outlier"]]
    assert_array_equal(words != "no", model.outliers_)
    order = np.argsort(-model.feature_weights_, kind="stable")
    assert features["feature"] == [f"x{j}" for j in order]
    assert_allclose(features["weight"], model.feature_weights_[order], rtol=1e-3)
    assert_allclose(features["center_1"], model.cluster_centers_[1, order], rtol=1e-3)
    assert features["rank"] == list(range(1, 7))
    assert summary["cases"]["note"] == summary["features"]["note"] == ""


def test_charts_hold_the_numbers(model, X, summary):
    data = {name: chart["data"] for name, chart in summary["charts"].items()}
    assert data["clusters"]["points"]["cluster"] == model.labels_.tolist()
    assert sum(data["clusters"]["points"]["outlier"]) == model.outliers_.sum()
    bars = data["silhouettes"]["bars"]
    values = revised_silhouette(model, X).values
    assert_allclose(bars["value"], [values[int(name)] for name in bars["case"]], rtol=1e-3)
    assert bars["cluster"] == sorted(bars["cluster"])
    drawn = data["weights"]["bars"]["weight"]
    assert drawn == sorted(drawn, reverse=True)
    assert len(drawn) == np.count_nonzero(model.feature_weights_)
    points = data["outliers"]["points"]
    assert [flag != "none" for flag in points["flag"]] == model.outliers_.tolist()
    assert sum(points["trimmed"]) == (model.trimmed_ & ~model.outliers_).sum()
    labels = [entry["label"] for entry in summary["charts"]["outliers"]["key"]]
    assert sum(int(label.rpartition("(")[2][:-1]) for label in labels if "(" in label) == 60
    rows, features = len(data["cells"]["rows"]["row"]), np.count_nonzero(model.feature_weights_)
    assert len(data["cells"]["cells"]["value"]) == rows * features


def test_many_cases_are_sampled_and_outliers_kept():
    X = make_data(9000, 5)
    model = fit(X, n_init=1)
    summary = summarize(model, X)
    charts = summary["charts"]
    points = charts["clusters"]["data"]["points"]
    assert len(points["x"]) == 2000
    assert sum(points["outlier"]) == model.outliers_.sum()
    (note,) = (n for n in charts["clusters"]["notes"] if n.startswith("Drawn"))
    assert note.startswith("Drawn: 2,000 of 9,000 cases, ")
    assert "2,000" in Reader(render(summary)).text
    assert len(charts["silhouettes"]["data"]["bars"]["value"]) == 600
    assert len(summary["cases"]["data"]["case"]) == 9000


def test_too_many_outliers_to_draw_are_drawn_in_part():
    X = np.random.default_rng(0).standard_t(1.2, size=(8000, 2))
    model = fit(X, 2, n_init=1, outlier_rule="paper")
    assert model.outliers_.sum() > 1000
    chart = summarize(model, X)["charts"]["outliers"]
    farthest = str(int(np.argmax(model.distances_)))
    assert farthest in chart["data"]["points"]["case"]
    assert sum(chart["data"]["points"]["outlier"]) > 1000
    assert any("the farthest outliers" in note for note in chart["notes"])


@pytest.mark.parametrize("factor", [1e-6, 1e6, 1e150])
def test_any_scale_and_one_feature(X, factor):
    json.dumps(summarize(fit(factor * X), factor * X), allow_nan=False)
    column = factor * X[:, :1]
    assert "there is one feature" in render(summarize(fit(column, l1_bound=None), column))


def test_settings_and_snippet_repeat_the_run(model, X):
    run = {"command": "rskc fit 'x.csv'", "file": "x.csv\nimport os", "sha256": "ab" * 32}
    settings = summarize(model, X, run=run)["settings"]
    assert settings["run"]["Command"] == "rskc fit 'x.csv'"
    snippet = settings["snippet"]
    assert "RobustSparseKMeans(3, trim=0.1, l1_bound=1.4, random_state=0)" in snippet
    compile(snippet, "snippet", "exec")
    space = {}
    lines = [line for line in snippet.splitlines() if line.startswith(("from", "model ="))]
    exec("\n".join(lines), space)
    assert_array_equal(space["model"].fit(X).labels_, model.labels_)
    assert settings["seeded"]
    assert "import os" not in snippet.splitlines()


# Searches


def test_searches_have_sections(model, X, searches):
    summary = summarize(model, X, searches=searches)
    json.dumps(summary, allow_nan=False)
    for section, search in zip(summary["searches"], searches, strict=True):
        assert section["name"] == type(search).__name__
        assert section["suggests"].items() <= describe(search).suggests.items()
        assert len(section["table"]["rows"]) == len(search.table_)
    page = Reader(render(summary))
    assert all(section["found"] in page.text for section in summary["searches"])
    assert len([a for a in page.all("div") if a.get("role") == "img"]) == 5 + len(searches)
    other = make_report(model, X, searches=searches[0])  # which says nothing of stability
    assert other.summary["sure"] is None
    assert 'id="sure"' not in other.html
    assert "stability" not in other.summary["cases"]["data"]


# How sure


@pytest.fixture(scope="module")
def stable():
    return sentences.stable()


def texts_of(summary):
    return {point["about"]: point["text"] for point in summary["sure"]}


def test_how_sure_says_what_the_search_found(stable):
    X, search = stable
    model = search.best_estimator_
    summary = summarize(model, X, searches=[search])
    texts = texts_of(summary)
    n = np.count_nonzero(search.case_stability_ >= 0.9)
    assert texts["Cases"].startswith(f"{n} of 90 cases ")
    n = np.count_nonzero(search.selection_probabilities_ >= 0.75)
    assert texts["Features"].startswith(f"{n} of 6 features ")
    assert_allclose(summary["stability"], search.cluster_stability_)
    assert_allclose(summary["cases"]["data"]["stability"], search.case_stability_, atol=1e-3)
    order = np.argsort(-model.feature_weights_, kind="stable")
    found = summary["features"]["data"]["probability"]
    assert_allclose(found, search.selection_probabilities_[order], atol=1e-3)


@pytest.mark.parametrize(
    ("stability", "word"),
    [(1, "stable"), (0.85, "stable"), (0.84, "fairly stable"), (0.59, "unstable")],
)
def test_each_cluster_has_a_word(stable, stability, word):
    X, search = stable
    search = copy.copy(search)
    search.cluster_stability_ = np.full(3, stability)
    page = make_report(search.best_estimator_, X, searches=search)
    words = f"{stability:.2f} ({word})"
    assert {row["stability"] for row in page.summary["clusters"]} == {words}
    assert page.html.count(f">{words}</td>") == 3


def test_a_search_about_other_clusters_says_nothing_of_these(stable):
    X, search = stable
    summary = summarize(fit(X, 2), X, searches=search)
    assert "another model, of 2 clusters" in texts_of(summary)["Another model"]
    assert summary["stability"] is None
    assert "stability" not in summary["cases"]["data"]


def test_cases_that_were_not_searched_on_are_missing(stable):
    X, _ = stable
    search = search_stability(X, max_samples=60)
    summary = summarize(search.best_estimator_, X, searches=search)
    stability = np.array(summary["cases"]["data"]["stability"], float)
    assert_array_equal(np.flatnonzero(~np.isnan(stability)), search.samples_used_)
    assert "The other 30 cases were not searched on." in texts_of(summary)["Cases"]


# Advice


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_warning_is_advice_in_two_lines(kind):
    """Long lists of names in it, too, where there are briefer words."""
    named = KINDS[kind][2].format_map(defaultdict(lambda: 12345))
    brief = ADVICE.get(kind.capitalize(), {}).get("brief", "")
    said = f"12 cases have few cells: {'word ' * 100}" if brief else named
    (item,) = advise(facts(warnings=[said], warning_kinds=[kind]))
    assert item["text"] == said.strip()
    assert len(textwrap.wrap(f"{item['about']}: {item['brief']}", 80)) <= 2
    if "{start}" in brief:
        assert item["brief"].startswith("12 cases have few cells; ")


# The page


@pytest.fixture(scope="module")
def page(model, X, searches):
    return make_report(model, X, searches=searches, labels=np.repeat(["a", "b", "c"], 20)).html


def test_page_says_what_the_summary_says(page, summary, model, X):
    reader = Reader(page)
    assert len(page.encode()) < 2e6
    assert make_report(model, X).html == make_report(model, X).html
    assert summary["headline"] in reader.text
    for sentence in summary["meaning"]:
        assert sentence in reader.text
    assert "RobustSparseKMeans(3, trim=0.1, l1_bound=1.4, random_state=0)" in reader.text


def test_page_is_accessible(page):
    reader = Reader(page)
    assert reader.all("html")[0]["lang"] == "en"
    assert len(reader.all("main")) == len(reader.all("h1")) == len(reader.all("footer")) == 1
    levels = [int(tag[1]) for tag, _ in reader.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for link in reader.all("a"):
        assert link["href"][1:] in ids
    for _, attributes in reader.elements:
        for name in ("aria-labelledby", "for"):
            assert attributes.get(name) in (None, *ids)
    assert len(reader.all("caption")) == len(reader.all("table"))
    assert all(a.get("aria-label") for a in reader.all("div") if a.get("role") == "img")
    assert {a["for"] for a in reader.all("label")} == {a["id"] for a in reader.all("input")}


def test_page_fetches_nothing(page):
    reader = Reader(page)
    for tag, attributes in reader.elements:
        assert "src" not in attributes
        if "href" in attributes:
            assert attributes["href"].startswith("#"), (tag, attributes)
        assert not any(name.startswith("on") for name in attributes)
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
    policy = {a.get("http-equiv"): a.get("content") for a in reader.all("meta")}[
        "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    assert re.search(r"script-src ('sha256-[\w+/=]+' ?){2};", policy)
    own = page.replace(make_scripts()["vega"], "")
    assert not re.findall(r"https?://|url\(|@import", own)


def make_scripts():
    return {"vega": vega_script(), "page": (TEMPLATES / "page.js").read_text("utf-8")}


def test_scripts_cannot_end_early():
    for script in make_scripts().values():
        assert "</script" not in script.lower()
        assert "<!--" not in script
        assert "\r" not in script


@pytest.mark.parametrize("place", ["cases", "features", "title", "labels", "run"])
def test_names_are_harmless(place):
    names = list(NASTY.values())
    X = make_data(42, len(names))
    table = pd.DataFrame(X, columns=[f"f{j}" for j in range(len(names))])
    given = {}
    if place == "features":
        table.columns = pd.Index(names, dtype=object)  # text of Arrow holds no half characters
    if place == "cases":
        given["case_names"] = names * 3
    if place == "labels":
        given["labels"] = names * 3
    if place == "title":
        given["title"] = " ".join(names)
    if place == "run":
        given["run"] = {name: name for name in names}
    page = make_report(fit(table, l1_bound=3.5), table, **given).html
    page.encode("utf-8")
    reader, plain = Reader(page), Reader(make_report(fit(X), X).html)
    # Nothing that was given became an element or an attribute.
    assert {tag for tag, _ in reader.elements} <= {tag for tag, _ in plain.elements} | {
        "code",
        "strong",
    }
    assert len(reader.all("script")) == 5
    assert not any(n.startswith("on") for _, a in reader.elements for n in a)
    assert "55433" not in reader.text
    for index in ("chart-data", "table-data"):
        (text,) = re.findall(rf'id="{index}">(.*?)</script>', page, flags=re.S)
        assert "<" not in text
        json.loads(text)
    assert max(map(len, re.findall(r"a+", page.replace(make_scripts()["vega"], "")))) <= 2000


def test_embedded_json_is_json():
    value = {"</script>": ["<!--", "&amp;", "\u2028", 1.5, None, "🧬"]}
    text = embedded_json(value)
    assert json.loads(text) == value
    assert not set("<>&\u2028") & set(text)
    with pytest.raises(ValueError, match="Out of range"):
        embedded_json(float("nan"))


def test_templates_escape_by_themselves():
    for template in TEMPLATES.glob("*.html"):
        text = template.read_text("utf-8")
        assert "|safe" not in text.replace(" ", "")
        assert "autoescape" not in text


# Size


@pytest.mark.parametrize("long_names", [False, True])
def test_many_cases_stay_small(long_names):
    X = make_data(100_000, 50).astype(np.float32)
    model = fit(X, n_init=1, max_iter=20)
    names = [f"a sample with a name & a number {i}" for i in range(100_000)] if long_names else None
    report = make_report(model, X, case_names=names)
    assert len(report.html.encode()) < 5e6
    if not long_names:
        assert len(report.summary["cases"]["data"]["case"]) == 100_000
    else:
        held = len(report.summary["cases"]["data"]["case"])
        assert f"Of 100,000, the table holds the {held:,} cases farthest" in report.html


@pytest.mark.parametrize("bound", [10, None])
def test_many_features_stay_small(bound):
    X = np.random.default_rng(0).normal(size=(78, 24_000))
    X[:40, :60] += 2
    table = pd.DataFrame(X, columns=[f"ENSG{j:011d}" for j in range(24_000)])
    report = make_report(fit(table, 2, l1_bound=bound, n_init=2), table)
    assert len(report.html.encode()) < 2.2e6


# Charts


def test_charts_are_vega_lite(model, X, searches):
    import altair as alt
    import vl_convert

    known = (TEMPLATES / "macros.html").read_text("utf-8")
    summary = summarize(model, X, searches=searches)
    for chart in [*summary["charts"].values(), *summary["searches"]]:
        frames = {name: pd.DataFrame(columns) for name, columns in chart["data"].items()}
        datasets = {name: frame.to_dict("records") for name, frame in frames.items()}
        alt.LayerChart.from_dict({**chart["spec"], "datasets": datasets}, validate=True)
        drawn = vl_convert.vegalite_to_vega(json.dumps(chart["spec"]))
        titles = [axis.get("title") for axis in drawn.get("axes", [])]
        assert any(titles) or chart["id"] == "cells", chart["id"]
        for entry in chart["key"]:
            assert f'"{entry["shape"]}"' in known or entry["shape"] == "line"
            assert re.fullmatch(r"var\(--\w+\)|#\w{6}", entry["color"])


def contrast(*colors):
    """The contrast ratio of WCAG, from 1 to 21."""
    shares = [np.array([int(c[i : i + 2], 16) for i in (1, 3, 5)]) / 255 for c in colors]
    linear = [np.where(s <= 0.04045, s / 12.92, ((s + 0.055) / 1.055) ** 2.4) for s in shares]
    dark, light = sorted(part @ [0.2126, 0.7152, 0.0722] for part in linear)
    return (light + 0.05) / (dark + 0.05)


def test_text_has_contrast():
    style = (TEMPLATES / "style.css").read_text("utf-8")
    blocks = re.findall(r":root \{(.*?)\}", style, flags=re.S)
    assert len(blocks) == 3
    found = []
    for block in blocks:
        colors = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
        found.append(colors)
        for paper in ("paper", "raised", "warn", "chosen"):
            for ink in ("ink", "muted", "accent"):
                assert contrast(colors[ink], colors[paper]) >= 4.5, (ink, paper)
        assert contrast(colors["soft"], colors["paper"]) >= 3
    assert found[0] == found[2]  # print is light
    assert min(contrast(color, "#14171b") for color in DARK_PALETTE) >= 3


# Files and notebooks


def test_save_replaces_whole(tmp_path, model, X):
    report = make_report(model, X)
    path = tmp_path / "report.html"
    path.write_text("old")
    assert report.save(path) == path
    assert path.read_text("utf-8") == report.html
    assert os.listdir(tmp_path) == ["report.html"]


def test_notebook_gets_a_frame(model, X):
    report = make_report(model, X, title='A "title" <b>')
    frame = report._repr_html_()
    assert frame.startswith("<iframe ")
    (attributes,) = (dict(a) for tag, a in Reader(frame).elements if tag == "iframe")
    assert attributes["srcdoc"] == report.html
    assert attributes["title"] == 'A "title" <b>'
    assert html.escape("<script>") in frame
    assert "3 clusters" in repr(report)
    assert isinstance(report, Report)


@pytest.mark.parametrize("package", ["jinja2", "vl_convert"])
def test_missing_package_is_named(monkeypatch, package, model, X):
    from rskc.report._facts import templates

    templates.cache_clear()
    vega_script.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r'pip install "rskc\[report\]"'):
        make_report(model, X)


# Words


def test_the_script_is_kept_and_mended(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    make = vega_script.__wrapped__
    script = make()
    (kept,) = (tmp_path / "rskc").iterdir()
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda snippet: "made again")
    assert make() == script
    kept.unlink()
    assert make() == "made again"


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "rskc").write_text("a file where the folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda snippet: "made")
    assert vega_script.__wrapped__() == "made"
