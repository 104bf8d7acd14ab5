"""The command line, as someone types it: files in, files out, exit codes and sentences."""

import contextlib
import errno
import gzip
import hashlib
import html
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import psutil
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import rskc
from commands import labels, refused, run, without
from rskc.cli import _commands as pages
from rskc.cli._app import Console
from rskc.cli._commands import app
from rskc.cli._options import ExploredSettings, Model, Searching
from rskc.cli._output import results_folder
from rskc.cli._work import run_search
from rskc.datasets import make_simulation
from rskc.files import read_model
from rskc.selection import Stability

FILES = {"labels.csv", "features.csv", "markers.csv", "summary.json", "model.rskc", "report.html"}
HOSTILE = ["=cmd()", 'say "hi"', "two\nlines", "😀", "\u202eabc", "a,b", "[red]x[/]", "\x1b[31mz"]


@pytest.fixture(scope="module")
def frame():
    made = make_simulation(random_state=0, n_samples=45, n_features=12, n_informative=6)
    data = made.data + 2 * (made.target[:, None] - 1) * made.informative
    frame = pd.DataFrame(data, columns=[f"gene{j}" for j in range(12)])
    frame.insert(0, "patient", [f"P{i}" for i in range(45)])
    frame.insert(5, "group", np.array(["a", "b", "c"])[made.target])
    return frame


@pytest.fixture
def here(tmp_path, monkeypatch, frame):
    """An empty folder with a table in it, to work in."""
    monkeypatch.chdir(tmp_path)
    frame.to_csv("table.csv", index=False)
    return tmp_path


FIT = ("fit", "table.csv", "--clusters", "3", "--label-column", "group", "--n-init", "5")
QUICK = (*FIT, "--no-report", "--quiet")
WEIGHTED = ("--weight-column", "people", "--no-report")
CHOOSE = ("fit", "table.csv", "--n-init", "2", "--jobs", "1", "--drop", "gene3")


@pytest.fixture(scope="module")
def chosen(tmp_path_factory, frame):
    """A folder with a table, one column of it skewed, and a fit with a number that was chosen."""
    folder = tmp_path_factory.mktemp("chosen")
    spend = np.exp(np.random.default_rng(0).normal(5, 1.5, len(frame)))
    frame.assign(spend=spend).to_csv(folder / "table.csv", index=False)
    with contextlib.chdir(folder):
        run(*CHOOSE, "--quiet")
    return folder


# --- fit


def test_fit_does_the_whole_job(here):
    result = run(*FIT)
    assert {file.name for file in Path("table-rskc").iterdir()} == FILES
    for words in ("3 clusters of 45 cases", "Cluster", "CER", "report.html", "labels.csv"):
        assert words in result.stdout
    found = labels("table-rskc")
    assert list(found.case) == [f"P{i}" for i in range(45)]
    assert {"cluster", "distance", "outlier", "trimmed", "silhouette"} <= set(found)
    features = labels("table-rskc", "features.csv")
    assert {"feature", "weight", "rank", "selected", "center_0", "center_2"} <= set(features)
    assert "group" not in set(features.feature)
    markers = labels("table-rskc", "markers.csv")
    assert set(markers.cluster) == {0, 1, 2}
    assert set(markers.feature) <= set(features.feature[features.selected])
    page = Path("table-rskc/report.html").read_text("utf-8")
    assert "Clusters of table.csv" in page
    assert "What sets each cluster apart" in page
    assert sorted(os.listdir()) == ["table-rskc", "table.csv"]


def test_the_summary_is_enough_to_repeat_it(here):
    run(*FIT, "--no-report", "--standardize", "columns", "--trim", "0.07", "--seed", "5")
    summary = json.loads(Path("table-rskc/summary.json").read_text("utf-8"))
    assert summary["table"]["sha256"] == sha256_of("table.csv")
    assert summary["parameters"]["random_state"] == 5
    assert summary["parameters"]["trim"] == 0.07
    assert summary["versions"]["rskc"] == rskc.__version__
    assert summary["truth"]["cer"] == pytest.approx(0, abs=0.2)
    command = shlex.split(summary["command"])
    assert command[0] == "rskc"
    assert read_model("table-rskc/model.rskc").extra["sha256"] == sha256_of("table.csv")
    run(*command[1:], "--out", "again", "--threads", "1")
    for name in ("labels.csv", "features.csv"):
        assert Path("again", name).read_bytes() == Path("table-rskc", name).read_bytes()


def sha256_of(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@pytest.mark.parametrize("engine", ["memory", "dask"])
def test_a_column_has_the_weights_of_the_cases(here, frame, engine):
    weights = np.random.default_rng(13).integers(0, 5, len(frame))
    X = frame.drop(columns=["patient", "group"])
    X.assign(people=weights).to_parquet("people.parquet")
    settings = ("-k", "3", "--trim", "0.1", "--l1-bound", "1.7", "--prepare", "none")
    run("fit", "people.parquet", *settings, *WEIGHTED, "--engine", engine)
    model = rskc.RobustSparseKMeans(3, random_state=0, trim=0.1, l1_bound=1.7)
    model.fit(X, sample_weight=weights)
    assert list(labels("people-rskc").cluster) == list(model.labels_)
    assert list(rskc.load("people-rskc/model.rskc").sample_weight_) == list(weights)


def test_clusters_and_bound_are_chosen_on_request(here):
    summary = json.loads(run(*CHOOSE, "--l1-bound", "choose", "--json").stdout)
    assert [each["search"] for each in summary["searches"]] == ["Stability", "GapL1"]
    assert summary["result"]["n_clusters"] == 3
    assert summary["parameters"]["l1_bound"] == summary["searches"][1]["suggests"]["l1_bound"]
    page = Path("table-rskc/report.html").read_text("utf-8")
    for words in (
        "How many clusters: half-samples",
        "How stable the result is",
        "How many features: the gap",
    ):
        assert words in page


# --- tables


def test_parquet_and_packed_text_give_the_same(here, frame):
    frame.to_parquet("table.parquet", index=False)
    with gzip.open("my genes ü.tsv.gz", "wt", encoding="utf-8") as file:
        frame.to_csv(file, index=False, sep="\t")
    run(*QUICK)
    for name in ("table.parquet", "my genes ü.tsv.gz"):
        folder = f"{name.partition('.')[0]}-rskc"  # of the name of the table
        run("fit", name, *QUICK[2:], "--force")
        assert list(labels(folder).cluster) == list(labels("table-rskc").cluster)


def test_hostile_names_do_no_harm(here, frame):
    numbers = frame.drop(columns=["patient", "group"])
    named = numbers.set_axis([*HOSTILE, *(f"g{j}" for j in range(len(HOSTILE), 12))], axis=1)
    named.insert(0, "id", [HOSTILE[i] if i < len(HOSTILE) else f"P{i}" for i in range(45)])
    named.to_csv("table.csv", index=False)
    result = run("fit", "table.csv", "-k", "3", "--trim", "0", "--title", "<script>x</script>")
    assert "\x1b[31m" not in result.stdout
    assert "\u202e" not in result.stdout
    found = labels("table-rskc")
    assert found.case[0] == "'=cmd()"
    assert list(found.case[1:6]) == HOSTILE[1:6]
    features = labels("table-rskc", "features.csv")
    assert features.feature[0] == "'=cmd()"
    assert "<script>x" not in Path("table-rskc/report.html").read_text("utf-8")
    again = run("predict", "table-rskc", "table.csv", "--json")
    cases = json.loads(again.stdout)["cases"]
    assert [case["case"] for case in cases][: len(HOSTILE)] == HOSTILE
    assert [case["cluster"] for case in cases] == list(found.cluster)


# --- refusals


@pytest.mark.parametrize(
    "args",
    [
        ("fit",),
        ("fit", "table.csv", "--l1-bound", "choose", "--checkpoint", "kept.db"),
        ("fit", "table.csv", "-k", "3", "--standardize", "all"),
        ("fit", "table.csv", "-k", "3", "--color"),
        ("select-k", "table.csv", "-k", "8-2"),
        ("select-k", "table.csv", "-k", "2,x3"),
        ("select-k", "table.csv", "--method", "gap", "--rule", "paper"),
        ("compare", "table.csv"),
        ("nothing",),
    ],
)
def test_wrong_usage_is_another_code(here, args):
    result = run(*args, code=2)
    assert result.stdout == ""
    assert "Value error" not in result.stderr
    assert os.listdir() == ["table.csv"]


def test_tracebacks_show_where_an_error_came_from(here, monkeypatch):
    """On request, and of a mistake of ours."""
    with monkeypatch.context() as patched:
        patched.setenv("RSKC_TRACEBACK", "1")
        result = CliRunner().invoke(app, ["fit", "no.csv", "-k", "3"])
    assert isinstance(result.exception, ValueError)
    monkeypatch.setattr("rskc.cli._commands.read", lambda *_: {}["oops"])
    assert isinstance(CliRunner().invoke(app, FIT).exception, KeyError)


@pytest.mark.parametrize("package", ["jinja2", "vl_convert"])
def test_a_missing_package_is_named_before_the_work(here, monkeypatch, package):
    without(monkeypatch, package)
    assert 'pip install "rskc[report]"' in refused(*FIT)
    run(*QUICK)
    monkeypatch.setitem(sys.modules, "polars", None)
    assert 'pip install "rskc[tables]"' in refused(*FIT, "--no-report", "--force")


# --- folders


def test_results_are_not_overwritten_unless_asked(here):
    run(*FIT, "--quiet")
    Path("table-rskc/mine.txt").write_text("keep me", "utf-8")
    before = Path("table-rskc/labels.csv").read_bytes()
    assert "--force" in refused(*FIT)
    run(*QUICK, "--force", "--clusters", "2")
    assert Path("table-rskc/labels.csv").read_bytes() != before
    assert Path("table-rskc/mine.txt").read_text("utf-8") == "keep me"
    # A page of the earlier result would be a lie.
    assert {file.name for file in Path("table-rskc").iterdir()} == FILES - {"report.html"} | {
        "mine.txt"
    }


def test_results_that_another_run_wrote_meanwhile_are_not_replaced(here):
    """Of two runs into one new folder the second says that it is there."""

    def run_late():
        with results_folder(Path("new"), False, Path("table.csv")):
            Path("new").mkdir()
            Path("new/labels.csv").write_text("theirs", "utf-8")

    with pytest.raises(ValueError, match="already exists"):
        run_late()
    assert Path("new/labels.csv").read_text("utf-8") == "theirs"
    assert sorted(os.listdir("new")) == ["labels.csv"]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes")
@pytest.mark.parametrize("closed", ["2>&-", ">&- 2>&- <&-", "| head -1"])
def test_closed_streams_change_nothing(here, closed):
    """The first file that is opened would get the place of a closed stream."""
    words = f"set -o pipefail; {sys.executable} -m rskc fit table.csv -k 2 --no-report {closed}"
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, timeout=300)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert {file.name for file in Path("table-rskc").iterdir()} == FILES - {"report.html"}


def test_parents_are_made_and_removed_again_on_failure(here):
    run(*QUICK, "--out", "a b/c/ü")
    assert Path("a b/c/ü/labels.csv").exists()
    refused("fit", "no.csv", "-k", "3", "--out", "d/e/f")
    Path("out").mkdir()  # an empty folder is used
    run(*QUICK, "--out", "out")
    assert sorted(os.listdir()) == ["a b", "out", "table.csv"]


def test_where_nothing_can_be_written(here, monkeypatch):
    assert "table.csv" in refused(*FIT, "--out", "table.csv/out")

    def forbidden(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied", "/secret/name")

    monkeypatch.setattr("rskc.cli._output.tempfile.mkdtemp", forbidden)
    assert refused(*FIT) == "rskc: 'table-rskc': permission denied.\n"


@pytest.mark.parametrize("name", ["write_csv", "save", "write_json"])
def test_a_full_disk_leaves_nothing_behind(here, monkeypatch, name):
    run(*QUICK, "--out", "old")
    before = Path("old/labels.csv").read_bytes()

    def full(*args, **kwargs):
        path = next(arg for arg in args if isinstance(arg, Path))
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(f"rskc.files.{name}", full)
    told = refused(*QUICK)
    assert "no space left on device" in told
    assert ".part" not in told
    refused(*QUICK[:3], "2", *QUICK[4:], "--out", "old", "--force")
    assert Path("old/labels.csv").read_bytes() == before
    assert sorted(os.listdir()) == ["old", "table.csv"]


def test_ranked_lists_are_written_on_request_and_removed_with_the_result(here):
    result = run(*FIT, "--no-report", "--ranked-lists")
    assert "cluster-*.rnk" in result.stdout
    lists = {"cluster-0.rnk", "cluster-1.rnk", "cluster-2.rnk"}
    assert {file.name for file in Path("table-rskc").iterdir()} == FILES - {"report.html"} | lists
    ranked = pd.read_csv("table-rskc/cluster-1.rnk", sep="\t", header=None)
    assert set(ranked[0]) == set(labels("table-rskc", "features.csv").feature)
    markers = labels("table-rskc", "markers.csv").query("cluster == 1").set_index("feature")
    known = dict(zip(ranked[0], ranked[1], strict=True))
    assert_allclose(markers.effect, [known[name] for name in markers.index], rtol=1e-5)
    Path("table-rskc/cluster-mine.rnk").write_text("keep me", "utf-8")
    run(*FIT, "--no-report", "--ranked-lists", "--force", "--clusters", "2")
    kept = {file.name for file in Path("table-rskc").glob("*.rnk")}
    assert kept == {"cluster-0.rnk", "cluster-1.rnk", "cluster-mine.rnk"}
    run(*QUICK, "--force")
    assert [file.name for file in Path("table-rskc").glob("*.rnk")] == ["cluster-mine.rnk"]


# --- predict


@pytest.mark.parametrize(("of", "scale"), [("rows", "robust"), ("columns", "classic")])
def test_what_was_standardized_is_standardized_again(here, frame, of, scale):
    scaled = frame.assign(gene0=frame.gene0 * 1000 + 5, gene1=2.5)
    scaled.loc[3, "gene2"] = np.nan
    scaled.to_csv("table.csv", index=False)
    run(*QUICK, "--standardize", of, "--scale", scale)
    fitted = labels("table-rskc")
    # A part of the table: columns must be scaled as they were, and not anew.
    scaled.sample(frac=1, axis=1, random_state=0).iloc[5:9].to_csv("new.csv", index=False)
    cases = json.loads(run("predict", "table-rskc", "new.csv", "--json").stdout)["cases"]
    assert [case["case"] for case in cases] == list(fitted.case[5:9])
    assert [case["cluster"] for case in cases] == list(fitted.cluster[5:9])
    distances = [case["distance"] for case in cases]
    np.testing.assert_allclose(distances, fitted.distance[5:9], rtol=1e-9)


@pytest.mark.parametrize(
    ("of", "scale"), [("none", "robust"), ("rows", "classic"), ("columns", "robust")]
)
def test_the_python_of_the_page_repeats_the_run(here, frame, of, scale):
    run(*FIT, "--quiet", "--standardize", of, "--scale", scale)
    page = Path("table-rskc/report.html").read_text("utf-8")
    code = html.unescape(re.search(r"<code>(from rskc import.*?)</code>", page, re.S)[1])
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rskc.SmallClusterWarning)  # the run prints it as a note
        exec(code, names)
    assert list(names["model"].labels_) == list(labels("table-rskc").cluster)
    assert list(names["model"].case_names_in_) == list(labels("table-rskc").case)
    again = Path("report.html").read_text("utf-8")
    assert re.findall("<p class=.headline.>.*", again) == re.findall("<p class=.headline.>.*", page)


def test_predictions_are_a_summary_in_the_terminal_and_the_rest_in_a_file(here):
    run(*QUICK)
    result = run("predict", "table-rskc", "table.csv")
    assert "45 cases of table.csv" in result.stdout
    assert len(result.stdout.splitlines()) < 15
    assert not re.search(r"\d\.\d{6}", result.stdout)
    assert len(labels(".", "table-labels.csv")) == 45
    assert "--force" in refused("predict", "table-rskc", "table.csv")
    assert "is a folder" in refused("predict", "table-rskc", "table.csv", "-o", "table-rskc")
    assert run("predict", "table-rskc", "table.csv", "--quiet", "--force").stdout == ""
    lines = run("predict", "table-rskc", "table.csv", "--out", "-").stdout.splitlines()
    assert lines[0] == "case,cluster,distance,unweighted_distance,outlier,observed"
    assert len(lines) == 46


# --- searches


FEW = ("--n-init", "2", "--jobs", "1")
SEARCHES = {
    "select-k": ("-k", "2-4", "--splits", "3", "--references", "19", *FEW),
    "select-l1": ("-k", "3", "--bounds", "3", "--permutations", "2", *FEW),
    "compare": ("-k", "2-3", "--bounds", "2,3", "--trims", "0,0.1", *FEW),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_searches_say_what_they_found_and_leave_a_folder_if_asked(here, name):
    given = (name, "table.csv", "--label-column", "group", *SEARCHES[name])
    result = run(*given)
    assert ">" in result.stdout  # marks the choice
    assert os.listdir() == ["table.csv"]
    summary = json.loads(run(*given, "--out", "found", "--json").stdout)
    assert {file.name for file in Path("found").iterdir()} == FILES | {"table.csv"}
    (search,) = summary["searches"]
    assert len(search["table"]) == len(labels("found", "table.csv"))
    assert search["found"] in Path("found/report.html").read_text("utf-8")
    told = " ".join(result.stdout.split())
    assert search["found"] in told
    assert " chosen" in told.partition(search["found"])[2]  # the rule
    assert all(words in told for words in search["changes"])
    assert len(search["changes"]) == (name == "compare")


def test_checkpoints_go_on_and_are_not_mixed_up(here):
    given = ("compare", "table.csv", "--bounds", "none", "--label-column", "group", *FEW, "--json")
    given += ("--checkpoint", "c.db")
    tables = [json.loads(run(*given, "-k", "3").stdout)["searches"][0]["table"] for _ in range(2)]
    assert tables[0] == tables[1]
    assert "was made with" in refused(*given, "-k", "2")


# --- report, demo, versions, help


def test_report_of_a_saved_result_keeps_what_is_known_of_it(chosen, monkeypatch):
    monkeypatch.chdir(chosen)
    run("report", "table-rskc", "table.csv", "--out", "again.html")
    pages = [Path(name).read_text("utf-8") for name in ("again.html", "table-rskc/report.html")]
    sections = r'id="sure">.*?</section>', r'id="searches">.*?</details>'
    for part in (*sections, "<dt>Prepared</dt><dd>logarithms of 1 of .*?spend.*?</dd>"):
        again, first = (re.search(part, page, re.DOTALL)[0] for page in pages)
        assert again == first


def test_the_demo_leaves_pages_and_can_be_repeated(here, monkeypatch):
    few = ExploredSettings([2, 3], [5, 20], [0.05], 0)
    monkeypatch.setattr(pages, "ExploredSettings", lambda: few)
    monkeypatch.setattr(pages, "Searching", lambda: Searching(n_jobs=1))
    monkeypatch.setattr(pages, "Model", lambda: Model(n_init=5))
    result = run("demo", "--out", "tour")
    assert "3 clusters of" in result.stdout
    assert "Half-samples suggest 3 clusters" in result.stdout
    told = " ".join(result.stdout.split())  # as many as the tour says it has made
    assert "6 patients have an outlying cell" in told
    assert "; 6 cases look like outliers." in told
    assert "rskc explore tour/expression.csv" in told
    page = Path("tour/expression-rskc/report.html").read_text("utf-8")
    assert "How many clusters: half-samples" in page
    assert Path("tour/expression-rskc/explorer.html").exists()
    assert "--force" in refused("demo", "--out", "tour")


def test_versions(here):
    assert rskc.__version__ in run("--version").stdout
    assert "numpy" in run("versions").stdout
    assert json.loads(run("versions", "--json").stdout)["rskc"] == rskc.__version__


# --- as a process


def start(*args, **how):
    command = [sys.executable, "-m", "rskc", *map(str, args)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, encoding="utf-8", **pipes, **how)


def test_exit_codes_and_streams_of_a_process(here):
    good = start(*FIT, "--no-report", "--json")
    out, err = good.communicate(timeout=60)
    assert (good.returncode, err) == (0, "")
    assert json.loads(out)["result"]["n_clusters"] == 3
    bad = start(*FIT)
    out, err = bad.communicate(timeout=60)
    assert (bad.returncode, out) == (1, "")
    assert err.startswith("rskc: the folder 'table-rskc' already exists")


def wait_for_workers(process, most=60):
    """Wait until its worker processes have had a second of work: one that starts would talk."""
    until, parent = time.monotonic() + most, psutil.Process(process.pid)
    while time.monotonic() < until:
        with contextlib.suppress(psutil.Error):
            used = [sum(child.cpu_times()[:2]) for child in parent.children()]
            if sum(seconds > 2 for seconds in used) >= 2:
                return
        time.sleep(0.1)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_is_one_line_and_keeps_the_checkpoint(here):
    given = ("--label-column", "group", "--splits", "2000", "--checkpoint", "c.db")
    process = start("select-k", "table.csv", *given, "--out", "found", start_new_session=True)
    wait_for_workers(process)
    os.killpg(process.pid, signal.SIGINT)  # to its workers too, as a terminal does
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    # A stage that takes a while has a line of its own before.
    last = err.splitlines()[-1]
    assert last.startswith("rskc: interrupted; finished fits are kept in 'c.db'")
    assert "Traceback" not in err
    assert sorted(set(os.listdir()) - {"c.db-journal"}) == ["c.db", "table.csv"]


def test_ctrl_c_without_a_checkpoint_says_how_to_keep_the_work(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Stability, "fit", interrupted)
    data = SimpleNamespace(X=None, table=SimpleNamespace(weights=None))
    with pytest.raises(KeyboardInterrupt) as found:
        run_search(Stability(rskc.RobustSparseKMeans()), data, Console(quiet=True))
    assert "with --checkpoint FILE" in found.value.__notes__[0]


@pytest.mark.skipif(os.name == "nt", reason="head")
def test_a_reader_that_goes_away_is_no_error(here, frame):
    run(*QUICK)
    pd.concat([frame.drop(columns="patient")] * 400).to_csv("long.csv", index=False)
    process = start("predict", "table-rskc", "long.csv", "--out", "-")
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 0
    assert "Error" not in err


HEAVY = ("sklearn", "pandas", "polars", "scipy", "matplotlib", "jinja2")
UNUSED = ("metrics", "decomposition", "linear_model", "cluster")  # only searches and pictures need
PROGRAMS = {  # each with what it prints, and its exit code
    "a second command": (
        "import sys; from rskc.cli import main; sys.argv = ['rskc', '--version']\n"
        "for _ in range(2):\n"
        "    try: main()\n"
        "    except SystemExit as end: print('left with', end.code)",
        f"rskc {rskc.__version__}\nleft with 0\n" * 2,
        0,
    ),
    "help loads nothing heavy": (
        f"import sys, rskc.cli._commands; print([m for m in {HEAVY} if m in sys.modules])",
        "[]\n",
        0,
    ),
    "a fit loads what it uses": (  # the rest was a tenth of its start
        "import sys; from rskc.cli._commands import app\n"
        f"try: app({[*QUICK]!r})\n"
        "except SystemExit as end: assert end.code in (None, 0)\n"
        f"print([m for m in {UNUSED} if f'sklearn.{{m}}' in sys.modules])\n"
        "print([m for m in ('matplotlib', 'dask') if m in sys.modules])",
        "[]\n[]\n",
        0,
    ),
    "without typer": (
        "import sys; sys.modules['typer'] = None; from rskc.cli import main; main()",
        "",
        1,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_run_the_command_line(here, name):
    code, printed, exit_code = PROGRAMS[name]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == (printed, exit_code), done.stderr
    assert exit_code == 0 or 'pip install "rskc[cli]"' in done.stderr


FEW_FEATURES = ("fit", "table.csv", "-k", "2", "--drop", "group", "--n-features", "3")


@pytest.mark.parametrize("scaling", ["none", "columns"])
def test_a_table_of_the_selected_features_will_do(here, scaling):
    run(*FEW_FEATURES, "--standardize", scaling)
    features = pd.read_csv("table-rskc/features.csv")
    selected = features.feature[features.selected].tolist()
    table = pd.read_csv("table.csv", index_col=0)
    table[selected[::-1]].to_csv("panel.csv")
    run("predict", "table-rskc/model.rskc", "panel.csv", "--out", "new.csv")
    expected, found = pd.read_csv("table-rskc/labels.csv"), pd.read_csv("new.csv")
    assert found.cluster.tolist() == expected.cluster.tolist()
    assert_allclose(found.distance, expected.distance, rtol=1e-9)
    table[selected[1:]].to_csv("less.csv")
    assert selected[0] in run("predict", "table-rskc/model.rskc", "less.csv", code=1).stderr


def test_a_plan_is_printed_and_nothing_is_written(here):
    result = run("fit", "table.csv", "--clusters", "3", "--plan", "--json")
    assert json.loads(result.stdout)["engine"] == "memory"
    text = run("fit", "table.csv", "--clusters", "3", "--plan").stdout
    assert "Engine: memory, because the data are in memory" in text
    assert not (here / "table-rskc").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="permissions and links of POSIX")
def test_a_file_whose_name_is_no_utf_8(here):
    table, out = os.fsdecode(b"t\xff.csv"), os.fsdecode(b"o\xff")
    Path("table.csv").rename(table)
    for words in (["fit", table, *FIT[2:], "-o", out, "--title", out], ["predict", out, table]):
        done = subprocess.run([sys.executable, "-m", "rskc", *words], capture_output=True)
        assert done.returncode == 0, done.stderr
    run("predict", out, table, "-o", os.fsdecode(b"l\xff.csv"), "--quiet")
    assert len(labels(".", os.fsdecode(b"l\xff.csv"))) == 45


@pytest.mark.parametrize("command", [QUICK, ("predict", "table-rskc", "table.csv")])
def test_too_little_memory_is_said_with_a_remedy(here, monkeypatch, command):
    run(*QUICK)

    def fail(*_args, **_kwargs):
        raise MemoryError

    monkeypatch.setattr("rskc.files.read_table", fail)
    told = refused(*command, "--force")
    assert "not enough memory" in told
    assert "--engine dask" in told
