"""What the command line says: sentences that are true, in the words of someone who types."""

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rskc.cli import _console, _results
from test_cli import labels, refused, run

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
    return lambda made: made.to_csv("t.csv", index=False)


def flat(text):
    return " ".join(text.split())


@pytest.mark.parametrize("column", ["a", "c"])
@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_cell_of_1e300_is_an_outlier_and_no_missing_case(put, column, quiet):
    made = frame()
    made.loc[7, column] = 1e300
    put(made)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run(*FIT, *quiet)
    assert result.stderr == ""
    page = Path("t-rskc/report.html").read_text("utf-8")
    assert "Nothing that matters is known" not in page
    assert "without an observed value" not in page
    assert list(labels("t-rskc").case[labels("t-rskc").outlier]) == [7]
    if column == "a" and not quiet:
        assert "Cells too large: 1 case with a cell so large" in flat(result.stdout)


def test_cases_without_names_are_named_by_their_line_too(put):
    made = frame()
    made.loc[7, "c"] = 90.0
    made.loc[11] = np.nan
    put(made)
    result = run(*FIT, "--no-report")
    assert "Outliers: 11 (line 13), 7 (line 9)" in result.stdout
    assert "No value at all, so that the cluster means nothing: 11 (line 13)." in flat(
        result.stderr
    )
    Path("t.csv").write_text(Path("t.csv").read_text("utf-8").replace("\n", "\n\n", 3), "utf-8")
    assert "7 (line 12)" in run(*FIT, "--no-report").stdout


def test_messages_name_options(put):
    put(frame())
    told = [
        refused("fit", "t.csv", "-k", "99", "--no-report"),
        refused("fit", "t.csv", "-k", "25", "--trim", "0.45", "--no-report"),
    ]
    assert "--clusters=99 is more than 40 cases; lower --clusters." in told[0]
    assert "--clusters=25 is more than the 22 cases that are left of 40 when --trim=0.45" in told[1]
    for each in told:
        assert not re.search("n_clusters|n_samples|l1_bound|TrimCurves", each)


def test_columns_of_one_name_have_a_remedy(put, tmp_path):
    put(frame())
    text = Path("t.csv").read_text("utf-8").replace("a,b,c,d", "a,a,c,d", 1)
    Path("t.csv").write_text(text, "utf-8")
    told = refused(*FIT)
    assert "'a'; rename them in line 1 of the file, or leave all of a name out" in told
    assert "by --drop 'a'" in told


def test_a_log_has_a_line_for_each_stage_that_takes_a_while(put, monkeypatch):
    put(frame())
    assert "rskc: " not in run(*FIT, "--no-report").stderr  # over in no time

    class Impatient(_console.threading.Timer):
        def start(self):
            self.function()

    monkeypatch.setattr(_console.threading, "Timer", Impatient)
    told = run("select-trim", "t.csv", "-k", "2", "--trims", "0,.05,.1,.15", "--jobs", "1").stderr
    lines = told.splitlines()
    assert lines[:2] == ["rskc: Reading t.csv ...", "rskc: Choosing the trimming share ..."]
    assert re.fullmatch(r"rskc: Choosing the trimming share: \d+ of \d+ after \d+ s", lines[2])
    assert run(*FIT, "--no-report", "--quiet").stderr == ""


def test_the_time_is_that_of_the_clock_on_the_wall(put, monkeypatch):
    put(frame())
    monkeypatch.setattr(_results, "seconds_since_start", lambda: 123.4)
    assert re.search(
        r"Time: 123.4 s, of which reading \d\.\d s, clustering", run(*FIT, "--no-report").stdout
    )
    # It starts before anything heavy is imported.
    code = (
        "import rskc.cli, sys; assert not {'typer', 'sklearn'} & {*sys.modules}; rskc.cli.STARTED"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tables_of_a_search_are_not_cut(put):
    put(frame())
    told = run("compare", "t.csv", "-k", "2-3", "--bounds", "2", "--trims", "0,0.1").stdout
    assert "…" not in told
    assert "Silhouette" in told


def test_advice_is_the_same_on_the_page_and_in_the_terminal(put):
    put(frame(salary=1e5 * rng.normal(size=N)))
    told = run("fit", "t.csv", "-k", "2", "--l1-bound", "9").stdout
    command = "rskc fit t.csv -k 2 --l1-bound 9 --standardize columns --force"
    assert f"if units differ, try {command}" in flat(told)
    page = Path("t-rskc/report.html").read_text("utf-8")
    abouts = re.findall(r"<li><strong>(.*?)\.</strong>", page)
    assert abouts[:2] == ["Units differ", "Bound never binds"]
    section = told.split("What to try next")[1].split("\n\n")[0].strip()
    found = re.split(f"\n(?=(?:{'|'.join(abouts)}): )", section)
    assert [each.partition(":")[0] for each in found] == abouts
    assert all(len(each.splitlines()) <= 2 for each in found)


def test_help_of_fit_fits_on_two_screens(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("fit", "--help").stdout.splitlines()
    assert len(lines) <= 72
    names = [word for line in lines for word in re.findall(r"^│ [* ]*(--[a-z-]+)", line)]
    assert names[:3] == ["--clusters", "--label-column", "--standardize"]


def test_the_command_on_the_page_is_a_fit_that_repeats_it(put):
    put(frame(note="x"))
    given = ("--drop", "note", "--standardize", "columns", "--scale", "classic", "--seed", "3")
    run("select-trim", "t.csv", "-k", "2", "--trims", "0,0.1", *given, "--out", "found", "--json")
    page = Path("found/report.html").read_text("utf-8")
    command = re.search("<dt>Command</dt><dd><code[^>]*>(.*?)</code>", page)[1]
    assert command.startswith("rskc fit t.csv --drop note --standardize columns --scale classic")
    run(*command.split()[1:], "--out", "again", "--quiet")
    assert list(labels("again").cluster) == list(labels("found").cluster)
    assert re.search(r"<dt>Date</dt><dd><code[^>]*>\d+ [A-Z][a-z]+ 20\d\d, \d\d:\d\d", page)


def test_the_page_has_all_classes_by_all_clusters(put):
    put(frame(label=np.array(["x", "y", "z"])[np.arange(N) % 3]))
    run(*FIT, "--quiet")
    page = Path("t-rskc/report.html").read_text("utf-8")
    table = page.split('id="truth"')[1].split("</table>")[0]
    rows = re.findall(r"<tr><th scope=.row.>.*?</tr>", table)
    found = pd.crosstab(np.arange(N) % 3, labels("t-rskc").cluster).to_numpy()
    cells = [[int(cell) for cell in re.findall(r">(\d+)</td>", row)] for row in rows]
    assert [row[1:3] for row in cells] == found.tolist()
    assert [row[0] for row in cells] == found.sum(axis=1).tolist()
    summary = json.loads(Path("t-rskc/summary.json").read_text("utf-8"))
    assert summary["truth"]["label_column"] == "label"


@pytest.mark.parametrize("number", [[], ["-k", "2"]])
@pytest.mark.parametrize("named", [False, True])
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


def test_thousands_separators_are_named(put):
    salary = [f"{25108 + 13 * i:,}.0" for i in range(N)]
    debt = [f"-{1250108 + i:,}" for i in range(N)]
    put(frame(salary=salary, debt=debt, city=["Aix", "Bonn"] * (N // 2)))
    told = flat(refused(*FIT))
    assert (
        "these columns look like numbers with thousands separators (commas): 'salary', 'debt' "
        "(such as '25,108.0' in line 2); write them without, such as '25108.0'." in told
    )
    put(frame(salary=[500.5] * (N - 2) + ["1,500.0", ""]))  # one cell among numbers
    told = flat(refused(*FIT))
    assert "this column looks like numbers with thousands separators (commas): 'salary'" in told
    assert "'1,500.0' in line 40" in told
    put(frame(salary=[f"{i},108" for i in range(1, N + 1)]))
    assert "if these are decimal commas, use --decimal ," in flat(refused(*FIT))
    put(frame(note=["1,500.0", "a, b and c.", *["x"] * (N - 2)]))
    assert "holds no numbers: 'note'" in flat(refused(*FIT, "--text-columns", "refuse"))


def test_predict_says_that_no_case_is_an_outlier(put):
    put(frame())
    run(*FIT, "--no-report")
    told = flat(run("predict", "t-rskc", "t.csv", "--out", "out.csv").stdout)
    assert "40 cases of t.csv; no case looks like an outlier." in told
