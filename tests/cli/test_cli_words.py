"""What the command line says: sentences that are true, in the words of someone who types."""

import html
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import reviewed
from commands import GROUP, N, flat, labels, put, run, table
from rskc.cli import _app
from rskc.utils.wording import number, percent

FIT = ("fit", "t.csv", "-k", "2", "--n-init", "5", "--force")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("section", reviewed.sections(reviewed.TRANSCRIPTS), ids=lambda s: s.title)
def test_what_is_said_was_reviewed(section):
    """After a change: ``python tests/reviewed.py``, and read what changed."""
    assert list(filter(None, reviewed.told(section))) == section.lines


def test_a_log_has_lines_of_a_search_that_takes_a_while(monkeypatch):
    put(table())
    many = ("compare", "t.csv", "-k", "2", "--trims", "0,.05,.1,.15", "--jobs", "1")
    assert "rskc: " not in run(*many).stderr
    monkeypatch.setattr(_app, "PATIENCE", 0.0)
    line = run(*many).stderr.splitlines()[0]
    assert re.fullmatch(r"rskc: Comparing settings: \d+ of \d+ after \d+ s", line)
    assert run(*FIT, "--no-report", "--quiet").stderr == ""


def test_advice_is_the_same_on_the_page_and_in_the_terminal():
    put(table(salary=1e5 * np.random.default_rng(0).normal(size=N)))
    told = run("fit", "t.csv", "-k", "2", "--prepare", "none").stdout
    assert "if units differ, try --standardize columns" in flat(told)
    page = Path("t-rskc/report.html").read_text("utf-8")
    abouts = re.findall(r"<li><strong>(.*?)\.</strong>", page)
    assert abouts[:1] == ["Units differ"]
    section = told.split("What to try next")[1].split("\n\n")[0].strip()
    found = re.split(f"\n(?=(?:{'|'.join(abouts)}): )", section)
    assert [each.partition(":")[0] for each in found] == abouts
    assert all(len(each.splitlines()) <= 2 for each in found)


def test_help_of_fit_fits_on_two_screens(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("fit", "--help").stdout.splitlines()
    assert len(lines) <= 98
    names = [word for line in lines for word in re.findall(r"^│ [* ]*(--[a-z-]+)", line)]
    assert names[:3] == ["--clusters", "--label-column", "--prepare"]


def test_the_page_says_what_was_read_and_its_numbers_are_those_of_the_files():
    made = table(label=np.array(["x", "y"])[GROUP], city=np.array(["Graz", "Wien"])[GROUP])
    made.insert(0, "customer", [f"C{i:03d}" for i in range(N)])
    made["since"] = pd.date_range("2020-01-01", periods=N).astype(str)
    made.loc[3:8, "c"] = np.nan
    put(made)
    result = run(*FIT)
    page = html.unescape(Path("t-rskc/report.html").read_text("utf-8"))
    summary = json.loads(Path("t-rskc/summary.json").read_text("utf-8"))
    cases, markers = labels("t-rskc"), labels("t-rskc", "markers.csv")
    # What was read: on the page, in the file, at the terminal.
    read = summary["read"]
    taken = {column["name"]: column["taken_for"] for column in read["columns"]}
    assert taken["customer"] == "names of the cases"
    assert taken["label"] == "known classes, compared with the clusters"
    assert taken["since"] == "left out: dates"
    assert taken["city"] == "a category of 2 values"
    assert {taken[name] for name in "abcd"} == {"a number"}
    assert (read["n_cases"], read["n_columns"]) == (N, made.shape[1])
    assert read["missing"] == {"n_cells": 6, "words": "6 cells"}
    assert len(read["notes"]) >= 3
    part = page.split('id="read"')[1].split('id="charts"')[0]
    for words in (read["sentence"], read["prepared"], *read["notes"], *taken.values(), *taken):
        assert words in part
    for note in read["notes"]:
        assert flat(note) in flat(result.stderr)
    for item in summary["try_next"]:
        assert item["text"] in page
    # Each number of a card is that of a file.
    for k, own in markers.groupby("cluster"):
        sentence = re.search(rf'id="card-{k}".*?<p dir="auto">(.*?)</p>', page, re.DOTALL)[1]
        size = (cases.cluster == k).sum()
        assert sentence.startswith(f"{size} cases ({percent(size / N)}): ")
        for row in own.head(3).itertuples():
            write = percent if " = " in row.feature else number
            assert f"({write(row.mean)})" in sentence
        typical = cases[(cases.cluster == k) & ~cases.outlier].sort_values("distance").case.iloc[0]
        assert sentence.endswith(f"Its most typical case is {typical}.")
    assert f"Adjusted Rand index: {summary['truth']['ari']:.3f}" in page


def test_the_page_says_how_cases_without_names_are_numbered():
    put(table())
    run(*FIT)
    assert "Cases are numbered from 0: case 0 is line 2 of the file." in Path(
        "t-rskc/report.html"
    ).read_text("utf-8")
    put(table(patient=[f"p{i}" for i in range(N)]))
    run(*FIT)
    assert "numbered from 0: case" not in Path("t-rskc/report.html").read_text("utf-8")
