"""``rskc explore``, as someone types it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from browsing import content_of
from commands import run
from rskc.metrics import classification_error_rate

SMALL = ("-k", "2-3", "--n-features", "2,6", "--trims", "0,0.1", "--splits", "1", "--jobs", "1")


def words_of(path):
    """What the page says, without its arrays."""
    return content_of(Path(path).read_text("utf-8"))[0]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(45, 6))
    X[:, :2] += 6 * (np.arange(45) % 3 == np.array([[1], [2]])).T
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame.insert(0, "patient", [f"P{i}" for i in range(45)])
    frame.insert(1, "group", np.array(["x", "y", "z"])[np.arange(45) % 3])
    frame.to_csv("table.csv", index=False)
    return tmp_path


def test_explore_writes_one_page_and_says_what_it_did(here):
    result = run("explore", "table.csv", *SMALL, "--n-init", "2")
    assert "8 settings for 45 cases." in result.stdout
    assert "table-explorer.html: open it in a browser" in result.stdout
    words = words_of("table-explorer.html")
    assert words["axes"] == [[2, 3], [2, 6], [0, 0.1]]
    assert words["cases"][:2] == ["P0", "P1"]
    assert words["classes"]["names"] == ["x", "y", "z"]
    assert words["title"] == "Clusters of table.csv"
    assert "read_table('table.csv'" in words["python"]
    assert [file.name for file in here.iterdir() if "explorer" in file.name] == [
        "table-explorer.html"
    ]


def test_the_python_on_the_page_repeats_its_views(here):
    run("explore", "table.csv", *SMALL, "--standardize", "columns", "--out", "page.html")
    words = words_of("page.html")
    names = {}
    lines = f"{words['python']}\n{words['models'][-1]}\nmodel.fit(X)"
    exec(lines, names)
    assert sorted(np.bincount(names["model"].labels_)) == sorted(words["sizes"][-1])
    assert classification_error_rate(names["model"].labels_, np.arange(45) % 3) < 0.1


def test_a_mixed_table_with_groups(here):
    frame = pd.read_csv("table.csv").assign(a=lambda f: f.a.map("{:.3f} kg".format))
    kind = np.arange(45) % 3
    frame["color"] = np.array(["red", "green", "blue"])[kind]
    frame.to_csv("table.csv", index=False)
    Path("pairs.gmt").write_text("ab\tx\ta\tb\nrest\tx\tc\td\te\tf\n")
    few = ("-k", "3", "--n-features", "2,3", "--trims", "0", "--splits", "0", "--jobs", "1")
    told = run("explore", "table.csv", *few, "--groups", "pairs.gmt", "--seed", "1")
    words = words_of("table-explorer.html")
    assert words["features"] == ["a", "b", "c", "d", "e", "f", "color"]
    assert words["n_weights"] == [3, 7]  # a and b, which are one, and color; all
    place = words["shown"].index(0)
    assert words["spans"][place][1] == pytest.approx(frame.a.str[:-3].astype(float).max())
    assert "Column 'color' was read as 3 categories" in told.output
    how = ("-k", "3", "--n-features", "2", "--trim", "0", "--groups", "pairs.gmt", "--seed", "1")
    run("fit", "table.csv", *how, "--out", "again", "--no-report", "--quiet")
    found = pd.read_csv("again/labels.csv").cluster
    assert sorted(found.value_counts()) == sorted(words["sizes"][0])


def test_a_page_that_is_there_is_kept(here):
    Path("table-explorer.html").write_text("mine")
    result = run("explore", "table.csv", *SMALL, code=1)
    assert "use --force" in result.stderr
    assert Path("table-explorer.html").read_text() == "mine"
