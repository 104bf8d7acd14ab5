"""What the command line says: sentences that are true, in the words of someone who types."""

import html
import json
import re
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from commands import labels, refused, run
from rskc.cli import _console, _terminal
from rskc.utils.wording import number, percent

rng = np.random.default_rng(0)
N = 40
GROUP = np.arange(N) % 2
FIT = ("fit", "t.csv", "-k", "2", "--n-init", "5", "--force")


def frame(**columns):
    noise = np.random.default_rng(1).uniform(-1, 1, (4, N))  # without a tail
    features = {x: noise[j] + 6 * GROUP * (x in "ab") for j, x in enumerate("abcd")}
    return pd.DataFrame(features | columns)


@pytest.fixture
def put(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda made, **how: made.to_csv("t.csv", index=False, **how)


def flat(text):
    return " ".join(text.split())


@pytest.mark.parametrize(("column", "quiet"), [("a", []), ("c", ["--quiet"])])
def test_a_cell_of_1e300_is_an_outlier_and_no_missing_case(put, column, quiet):
    made = frame()
    made.loc[7, column] = 1e300
    put(made)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run(*FIT, *quiet, "--prepare", "none")
    # On a busy machine a log says what is under way.
    assert [line for line in result.stderr.splitlines() if not line.endswith(" ...")] == []
    page = Path("t-rskc/report.html").read_text("utf-8")
    assert "Nothing that matters is known" not in page
    assert "without an observed value" not in page
    assert list(labels("t-rskc").case[labels("t-rskc").outlier]) == [7]
    if column == "a" and not quiet:
        assert "Cells too large: 1 case has a cell so large" in flat(result.stdout)


def test_cases_without_names_are_named_by_their_line_too(put):
    made = frame()
    made.loc[7, "c"] = 90.0
    made.loc[11] = np.nan
    put(made)
    result = run(*FIT, "--no-report")
    assert "Outliers: 7 (line 9)\n" in result.stdout
    assert "without any value, whose cluster is arbitrary: 11 (line 13)." in flat(result.stderr)
    Path("t.csv").write_text(Path("t.csv").read_text("utf-8").replace("\n", "\n\n", 3), "utf-8")
    assert "7 (line 12)" in run(*FIT, "--no-report").stdout


def test_columns_of_one_name_have_a_remedy(put, tmp_path):
    put(frame())
    text = Path("t.csv").read_text("utf-8").replace("a,b,c,d", "a,a,c,d", 1)
    Path("t.csv").write_text(text, "utf-8")
    told = refused(*FIT)
    assert "'a'; rename them in line 1 of the file, or leave all of a name out" in told
    assert "by --drop 'a'" in told


def test_a_log_has_a_line_for_each_stage_that_takes_a_while(put, monkeypatch):
    put(frame())
    monkeypatch.setattr(_console, "PATIENCE", 1e6)
    assert "rskc: " not in run(*FIT, "--no-report").stderr

    class AtOnce(threading.Timer):
        start, join = threading.Timer.run, lambda self: None

    monkeypatch.setattr(_console, "PATIENCE", 0.0)
    monkeypatch.setattr(_console, "threading", SimpleNamespace(Timer=AtOnce))
    told = run("compare", "t.csv", "-k", "2", "--trims", "0,.05,.1,.15", "--jobs", "1").stderr
    lines = told.splitlines()
    assert lines[:2] == ["rskc: Reading t.csv ...", "rskc: Comparing settings ..."]
    assert re.fullmatch(r"rskc: Comparing settings: \d+ of \d+ after \d+ s", lines[2])
    assert run(*FIT, "--no-report", "--quiet").stderr == ""


def test_the_time_is_that_of_the_clock_on_the_wall(put, monkeypatch):
    put(frame())
    monkeypatch.setattr(_terminal, "seconds_since_start", lambda: 123.4)
    assert re.search(
        r"Time: 123.4 s, of which reading \d\.\d s, clustering", run(*FIT, "--no-report").stdout
    )
    # It starts before anything heavy is imported.
    code = (
        "import rskc.cli, sys; assert not {'typer', 'sklearn'} & {*sys.modules}; rskc.cli.STARTED"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_advice_is_the_same_on_the_page_and_in_the_terminal(put):
    put(frame(salary=1e5 * rng.normal(size=N)))
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


def test_the_command_on_the_page_is_a_fit_that_repeats_it(put):
    put(frame(note="x"))
    given = ("--drop", "note", "--standardize", "columns", "--scale", "classic", "--seed", "3")
    few = ("--trims", "0,0.1", "--jobs", "1")
    run("compare", "t.csv", "-k", "2", *few, *given, "--out", "found", "--json")
    page = Path("found/report.html").read_text("utf-8")
    command = re.search("<dt>Command</dt><dd><code[^>]*>(.*?)</code>", page)[1]
    assert command.startswith("rskc fit t.csv --drop note --standardize columns --scale classic")
    run(*command.split()[1:], "--out", "again", "--quiet")
    assert list(labels("again").cluster) == list(labels("found").cluster)
    assert re.search(r"<dt>Date</dt><dd><code[^>]*>\d+ [A-Z][a-z]+ 20\d\d, \d\d:\d\d", page)


def test_of_a_table_on_its_side_rows_are_features(put):
    put(frame().T.reset_index(names="gene"))
    run(*FIT, "--features-in-rows", "--no-report")
    read = json.loads(Path("t-rskc/summary.json").read_text("utf-8"))["read"]
    assert read["columns"][0] | {"n_missing": 0} == {
        "name": "gene",
        "kind": "names",
        "taken_for": "names of the features",
        "n_missing": 0,
    }
    assert (
        read["sentence"] == f"{N} cases were clustered by {len(frame().columns)} rows of numbers."
    )
    assert read["n_columns"] == len(frame().columns)


def test_the_page_says_what_was_read_and_its_numbers_are_those_of_the_files(put):
    made = frame(label=np.array(["x", "y"])[GROUP], city=np.array(["Graz", "Wien"])[GROUP])
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
    assert read["missing"] == {"n_cells": 6, "words": "6 cells (3%), in c (6)"}
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
            assert f"{write(row.mean)} against {write(row.mean_of_others)})" in sentence
        typical = cases[(cases.cluster == k) & ~cases.outlier].sort_values("distance").case.iloc[0]
        assert sentence.endswith(f"Its most typical case is {typical}.")
    assert f"Adjusted Rand index: {summary['truth']['ari']:.3f}" in page


@pytest.mark.parametrize(("number", "named"), [([], True), (["-k", "2"], False)])
def test_a_cell_whose_square_overflows_is_named_by_column_and_line(put, number, named):
    made = frame(patient=[f"p{i}" for i in range(N)]) if named else frame()
    made.loc[6, "c"] = -1e300
    put(made)
    told = flat(refused("fit", "t.csv", *number, "--trim", "0", "--n-init", "5", "--no-report"))
    assert told.endswith(
        "The squares of the table overflow: it has cells of up to 1e+300, the largest in column "
        f"'c', case {'p6' if named else '6 (line 8)'}. Rescale its columns, or raise --trim if "
        "these cells are outlying."
    )


def test_numbers_with_units_are_named(put):
    salary = [f"${25108 + 13 * i:,}.0" for i in range(N)]
    share, crp = [f"{7 * i % 40}%" for i in range(N)], [5 + 7 * i % 40 for i in range(N - 2)]
    put(frame(salary=salary, share=share, crp=["<5", "<5", *crp]))
    told = flat(run(*FIT, "--no-report").output)
    assert (
        "Read as numbers: 'salary' (in $), 'share' (in %), 'crp' (2 cells such as <5 as the limit)."
        in told
    )
    put(frame(salary=[f"{i},108" for i in range(1, N + 1)]), sep=";")
    assert "if these are decimal commas, use --decimal ," in flat(refused(*FIT))
    put(frame(note=["1,500.0", "a, b and c.", *["x"] * (N - 2)]))
    assert "holds no numbers: 'note'" in flat(refused(*FIT, "--text-columns", "refuse"))


def test_predict_refuses_another_unit(put):
    put(frame(mass=[f"{7 * i % 40} kg" for i in range(N)]))
    run(*FIT, "--no-report")
    put(frame(mass=[f"{7 * i % 40} KG" for i in range(N)]))
    run("predict", "t-rskc", "t.csv", "--out", "out.csv")
    put(frame(mass=[f"{7 * i % 40} lb" for i in range(N)]))
    told = refused("predict", "t-rskc", "t.csv", "--out", "out2.csv")
    assert "'t.csv': column 'mass' is in lb, and was in kg in the fit; write it in kg." in flat(
        told
    )


def test_decimal_commas_are_announced_and_expected_again(put):
    put(frame(mass=[i + 0.5 for i in range(N)]), sep=";", decimal=",")
    told = flat(run(*FIT, "--no-report").output)
    assert "Commas were read as decimal marks; if they are none, add --decimal ." in told
    put(frame(mass=1000).round().astype(int), sep=";")  # which does not show them
    out = run("predict", "t-rskc", "t.csv", "--out", "-").stdout
    assert out.startswith("case,cluster")


def test_a_table_from_a_pipe_is_called_so_again(put):
    text = frame().to_csv(index=False)
    told = flat(run(*("fit", "-", *FIT[2:]), "--no-report", pipe=text).output)
    assert "rskc explore - --out standard-input-rskc" in told


def test_predict_names_the_categories_that_are_missing(put):
    kind = np.where(GROUP, "x", "y")
    put(frame(kind=kind, noise=np.where(rng.random(N) < 0.5, "u", "v")))
    run(*FIT, "--no-report")
    put(frame(kind=kind))
    run("predict", "t-rskc", "t.csv", "--out", "out.csv")  # noise has no weight
    put(frame())
    told = refused("predict", "t-rskc", "t.csv", "--out", "out2.csv")
    assert "lacks 1 of the" in told
    assert "'kind'; add it, or fit again" in told


def page_of(folder):
    """The text of a page, without its tags."""
    html = Path(folder, "report.html").read_text("utf-8")
    return flat(re.sub("<[^>]*>", " ", re.sub(r"(?s)<(script|style).*?</\\1>", " ", html)))


def test_no_clusters_are_one_group_and_nothing_else_is_claimed(put):
    noise = pd.DataFrame(np.random.default_rng(3).normal(size=(N, 6)), columns=list("abcdef"))
    put(noise.assign(label=GROUP))
    few = ("-k", "2-3", "--splits", "2", "--references", "3", "--n-init", "3", "--jobs", "1")
    result = run("select-k", "t.csv", *few, "--out", "none")
    told, page = flat(result.stdout), page_of("none")
    assert "Half-samples suggest no clusters" in told
    assert "The search found no reliable clusters" in told
    for text in (told, page):
        assert "All 40 cases are one group; all 6 features have the same weight" in text
        for untrue in (
            "asked for: no",
            "no choice among them",
            "told from chance",
            "above the mean",
        ):
            assert untrue not in text
    # What is compared with nothing is no comparison.
    assert "of the pairs of cases" not in told
    assert "error rate" not in page
    assert "Not tested" not in told


def test_too_few_cases_are_not_searched(put):
    put(frame().head(3))
    told = flat(run("fit", "t.csv").stdout)
    assert told.startswith("There are too few cases to cluster halves of them: nothing was search")
    assert "Half-samples suggest" not in told
    assert "There are too few cases to look for clusters; to see a partition anyway" in told
    assert "Searches" not in page_of("t-rskc")


@pytest.mark.parametrize("rows", [1, 2])
def test_rows_without_a_value_are_no_outliers(put, rows):
    made = frame()
    made.loc[7, "c"] = 90.0
    made.loc[: rows - 1] = np.nan
    put(made)
    result = run(*FIT)
    has = "1 case has" if rows == 1 else "2 cases have"
    told, page = flat(result.stdout), page_of("t-rskc")
    counted = f"1 case looks like an outlier; {has} no data to judge by."
    assert counted in told
    assert counted in page
    cluster = "its cluster is" if rows == 1 else "their clusters are"
    leave = "leave it out." if rows == 1 else "leave them out."
    assert f"Cases without data: {has} no value at all: {cluster} arbitrary; {leave}" in told
    assert "--l1-bound" not in told
    assert "the one that lay farthest from its center was left out" in page
    summary = json.loads(Path("t-rskc/summary.json").read_text("utf-8"))["result"]
    assert (summary["n_outliers"], summary["n_without_data"]) == (1, rows)
    assert (labels("t-rskc").observed == 0).sum() == rows
    predicted = flat(run("predict", "t-rskc", "t.csv", "--out", "new.csv").stdout)
    assert counted in predicted


def test_the_page_says_how_cases_without_names_are_numbered(put):
    put(frame())
    run(*FIT)
    assert "Cases are numbered from 0: case 0 is line 2 of the file." in page_of("t-rskc")
    put(frame(patient=[f"p{i}" for i in range(N)]))
    run(*FIT)
    assert "numbered from 0: case" not in page_of("t-rskc")


def test_standardizing_is_not_advised_twice(put):
    heavy = np.random.default_rng(0).standard_cauchy(N) ** 3
    put(frame(salary=1e5 * rng.normal(size=N), heavy=heavy))
    assert "Units differ" in run(*FIT, "--no-report", "--prepare", "none").stdout
    how = ("--standardize", "columns", "--scale", "classic")
    told, _, explorer = run(*FIT, "--no-report", *how).stdout.partition("All other settings")
    assert "--standardize columns" not in told
    assert "--standardize columns" in explorer  # which is made in the same way


def test_one_feature_is_not_counted(put):
    put(frame()[["a"]])
    told = flat(run(*FIT).stdout)
    assert told.startswith("2 clusters of 40 cases; there is one feature; ")
    assert "there is one feature" in page_of("t-rskc")


def test_a_fit_does_not_wait_for_what_it_does_not_use(put):
    """A tenth of the start of a command was packages that only searches and pictures need."""
    put(frame())
    code = (
        "import sys; from rskc.cli._commands import app\n"
        f"try: app({[*FIT, '-q', '--no-report']!r})\n"
        "except SystemExit as end: assert end.code in (None, 0)\n"
        "slow = {'sklearn.metrics', 'sklearn.decomposition', 'sklearn.linear_model', 'matplotlib',"
        " 'dask', 'sklearn.cluster'}\n"
        "assert not slow & {*sys.modules}, slow & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
