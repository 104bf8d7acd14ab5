"""The pages of the gallery: each runs, quietly, and makes pictures of something."""

import ast
import itertools
import runpy
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

FOLDER = Path(__file__).parent.parent / "examples"
PAGES = sorted(FOLDER.glob("plot_*.py"))
PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@pytest.fixture(autouse=True)
def closed_figures(monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: None)
    yield
    plt.close("all")


def test_there_are_pages():
    assert len(PAGES) >= 8


@PAGE
def test_runs_and_makes_pictures(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(page), run_name="page")
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    for figure in figures:
        figure.canvas.draw()
        assert figure.axes
        assert any(ax.has_data() for ax in figure.axes)
    assert not list(tmp_path.iterdir())  # nothing is written unless asked


@PAGE
def test_is_a_page_of_text_with_a_title_and_headings_underlined_in_full(page):
    text = page.read_text("utf-8")
    assert set(ast.get_docstring(ast.parse(text)).splitlines()[1]) == {"="}
    lines = [line.removeprefix("# ").removeprefix('"""') for line in text.splitlines()]
    for title, line in itertools.pairwise(lines):
        assert set(line) not in ({"="}, {"-"}) or len(line) == len(title), title
    assert text.count("\n# %%\n# ") >= 2
    assert text.rstrip().endswith("plt.show()")


def test_first_steps_writes_the_picture_of_the_readme(tmp_path, monkeypatch):
    path, page = tmp_path / "first-steps.png", str(FOLDER / "plot_first_steps.py")
    monkeypatch.setattr(sys, "argv", [page, str(path)])
    runpy.run_path(page, run_name="__main__")
    assert plt.imread(path).shape[1] > 1200
