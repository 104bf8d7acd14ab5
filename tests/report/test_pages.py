"""Report, explorer and files of one result: the same numbers, the same clusters."""

import csv
import re

import numpy as np
import pandas as pd
import pytest

from browsing import Watch, skip_without_browser
from commands import run

skip_without_browser()


def make_table():
    """Three clusters of unequal sizes in 6 of 12 features, outlying cells and a row."""
    rng = np.random.default_rng(5)
    labels = np.repeat([2, 0, 1], [34, 26, 20])
    X = rng.normal(size=(80, 12))
    X[:, :4] += 3.0 * (labels == 1)[:, None]
    X[:, 2:6] -= 3.0 * (labels == 2)[:, None]
    X.flat[rng.choice(X.size, 20, replace=False)] += 25.0
    X[3] += 9.0
    frame = pd.DataFrame(X.round(3), columns=[f"f{j}" for j in range(12)])
    frame.insert(0, "id", [f"case {i}" for i in range(80)])
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The results of a fit, and the explorer beside its report."""
    folder = tmp_path_factory.mktemp("pages")
    table, results = folder / "table.csv", folder / "results"
    make_table().to_csv(table, index=False)
    run("fit", table, "--clusters", "3", "--seed", "7", "--out", results)
    settings = ["-k", "2-4", "--n-features", "2,4,12", "--trims", "0,0.05", "--splits", "1"]
    run("explore", table, *settings, "--jobs", "1", "--out", results / "explorer.html")
    return results


def rows_of(path):
    """The rows of a file, by the names of its columns."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def downloaded(watch, button):
    """The rows that a button of a page saves."""
    with watch.page.expect_download() as waiting:
        watch.page.locator(button).click()
    return rows_of(waiting.value.path())


@pytest.fixture(scope="module")
def report(browser, folder):
    with Watch(browser, folder / "report.html") as watch:
        yield watch


@pytest.fixture(scope="module")
def explorer(browser, folder):
    with Watch(browser, folder / "explorer.html") as watch:
        yield watch


def colors_of_report(watch):
    code = """() => [...document.querySelectorAll(".card .mark")].map(
        (mark) => getComputedStyle(mark).backgroundColor)"""
    return watch.page.evaluate(code)


def colors_of_explorer(watch):
    code = """() => [...document.querySelectorAll("#key .chip")].map(
        (chip) => [chip.textContent, getComputedStyle(chip).backgroundColor])"""
    return dict(watch.page.evaluate(code))


def test_clusters_have_the_same_numbers_in_report_explorer_and_file(folder, report, explorer):
    labels = {row["case"]: row["cluster"] for row in rows_of(folder / "labels.csv")}
    on_report = downloaded(report, "[data-table=cases] .download")
    assert {row["case"]: row["cluster"] for row in on_report} == labels
    explorer.page.evaluate("rskc.set({k: 1, f: 1, t: 0})")
    here = {row["case"]: row["cluster"] for row in downloaded(explorer, "#take-labels")}
    assert here.keys() == labels.keys()
    assert np.mean([here[case] == labels[case] for case in labels]) > 0.9


def test_clusters_have_the_same_colors(report, explorer):
    explorer.page.evaluate("rskc.set({k: 1})")
    colors = colors_of_explorer(explorer)
    assert colors_of_report(report) == [colors[str(k)] for k in range(3)]


def test_numbers_of_the_page_are_those_of_the_files(folder, report):
    cases, features = rows_of(folder / "labels.csv"), rows_of(folder / "features.csv")
    names = ("distance", "unweighted_distance", "outlying_cells", "silhouette")
    for row, known in zip(downloaded(report, "[data-table=cases] .download"), cases, strict=True):
        assert row["case"] == known["case"]
        for name in names:
            assert float(row[name]) == pytest.approx(float(known[name]), rel=1e-3, abs=1e-3)
        assert (row["outlier"] != "no") == (known["outlier"] == "true")
        assert (row["trimmed"] != "no") == (known["trimmed"] == "true")
    known = {row["feature"]: row for row in features}
    for row in downloaded(report, "[data-table=features] .download"):
        theirs = known[row["feature"]]
        for name in ("weight", "rank", "outlying_cells", "center_0", "center_1", "center_2"):
            assert float(row[name]) == pytest.approx(float(theirs[name]), rel=1e-3, abs=1e-12)
    cells = rows_of(folder / "cells.csv")
    for row, known in zip(downloaded(report, "[data-table=cells] .download"), cells, strict=True):
        assert [row[name] for name in ("case", "feature")] == [known["case"], known["feature"]]
        for name in ("value", "center", "scales"):
            assert float(row[name]) == pytest.approx(float(known[name]), rel=1e-3)
    sizes = [
        int(re.sub(r"\D", "", size))
        for size in report.page.locator("#groups ~ .scroll [data-label=Cases]").evaluate_all(
            "all => all.map((each) => each.textContent.split('(')[0])"
        )
    ]
    assert sizes == [sum(row["cluster"] == str(k) for row in cases) for k in range(3)]
