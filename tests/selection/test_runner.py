"""What all searches share: the runner, the checkpoint, and data without clusters."""

import contextlib
import fcntl
import os
import pickle
import pty
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
import threading
import time
import tracemalloc
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_info, threadpool_limits

from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.selection import Clest, GapL1, GridSearch
from rskc.selection import runner as runner_module
from rskc.selection.checkpoint import Checkpoint
from rskc.selection.progress import Progress
from rskc.selection.references import REFERENCES, pca_reference, permuted, uniform_reference
from rskc.selection.runner import Runner
from rskc.selection.subsample import Sample

SILENT = {"progress": False, "n_jobs": 1}
MODEL = RobustSparseKMeans(3, trim=0.05, l1_bound=2, n_init=3)
SEARCHES = {
    "Clest": Clest(MODEL, (2, 3), n_splits=3, n_references=3, rule="paper"),
    "GapL1": GapL1(MODEL, 4, n_permutations=4),
    "GridSearch": GridSearch(MODEL, (2, 3), (1.5, 2), (0, 0.1)),
}
each_search = pytest.mark.parametrize("name", SEARCHES)


@cache
def blobs():
    """Three clusters of 12 cases, far from each other in three of six features."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((36, 6))
    X[:, :3] += 4 * (np.arange(36) % 3)[:, None]
    return X


def test_blas_has_one_thread_in_tasks_of_this_process():
    """As in workers: results must not depend on where the clock lets a task run."""

    def work(key):
        libraries = [info for info in threadpool_info() if info["user_api"] == "blas"]
        return {"threads": max(info["num_threads"] for info in libraries)}

    closing = contextlib.closing(Checkpoint(None, {"seed": "0"}))
    with threadpool_limits(2, "blas"), closing as store:
        (found,) = Runner(store, 1, Progress(False)).run("test", work, [(0,)])
    assert found["threads"] == 1


def search_of(name, **params):
    return clone(SEARCHES[name]).set_params(**{**SILENT, "random_state": 0, **params})


def small_clest(**params):
    return search_of("Clest", **params)


class Stop(Exception):
    """Ends a search from its progress."""


def stop_at(number):
    def report(done, total):
        if done == number:
            raise Stop

    return report


class Calls(list):
    """A progress that remembers."""

    def __call__(self, done, total):
        self.append((done, total))


def interrupted(search, path, number, X=None):
    """Run a search until a number of tasks are done."""
    X = blobs() if X is None else X
    with pytest.raises(Stop):
        clone(search).set_params(checkpoint=path, progress=stop_at(number)).fit(X)


def findings(search):
    """All that a search has found."""
    own = {k: v for k, v in vars(search).items() if k.endswith("_") and not k.startswith("_")}
    model = own.pop("best_estimator_")
    if "changes_" in own:
        own["changes_"] = [str(change) for change in own["changes_"]]
    return {**own, "labels": model.labels_, "weights": getattr(model, "feature_weights_", None)}


def assert_same(one, other):
    ours, theirs = findings(one), findings(other)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        if name == "table_":
            assert_frame_equal(value, theirs[name], check_exact=True)
        else:
            assert_array_equal(value, theirs[name], err_msg=name)


def count_results(path):
    """How many results another process finds in a checkpoint."""
    with contextlib.closing(sqlite3.connect(path, timeout=10)) as connection:
        try:
            return connection.execute("select count(*) from results").fetchone()[0]
        except sqlite3.OperationalError:  # no table yet
            return 0


def assert_sound(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]


def assert_one_sentence(error):
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert len(message) < 400


# ---- The same for any number of jobs


@cache
def alone(name):
    """What a search finds with one job."""
    return search_of(name).fit(blobs())


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_any_number_of_jobs_gives_the_same(n_jobs, in_processes):
    for name in SEARCHES:
        assert_same(search_of(name, n_jobs=n_jobs).fit(blobs()), alone(name))


@pytest.mark.slow
def test_tasks_that_begin_here_and_end_in_processes_give_the_same(in_processes, monkeypatch):
    monkeypatch.setattr(runner_module, "SERIAL_SECONDS", 0.05)
    assert_same(small_clest(n_jobs=2).fit(blobs()), alone("Clest"))


def test_other_seeds_give_other_splits():
    noise = np.random.default_rng(3).standard_normal((30, 3))
    tables = [small_clest(random_state=seed).fit(noise).observed_cers_ for seed in (0, 1)]
    assert (tables[0] != tables[1]).any()


@pytest.mark.parametrize("kind", [int, np.random.RandomState, np.random.default_rng])
def test_any_seed_decides(kind):
    one, other = (small_clest(random_state=kind(7)).fit(blobs()) for _ in range(2))
    assert_same(one, other)
    if kind is not np.random.default_rng:
        assert_same(one, small_clest(random_state=7).fit(blobs()))


def test_a_word_is_no_seed():
    with pytest.raises(ValueError, match=r"random_state=.* must be None, an integer") as error:
        small_clest(random_state="seven").fit(blobs())
    assert_one_sentence(error)


def fit_in_thread(seed):
    return small_clest(random_state=seed).fit(blobs()).table_


@pytest.mark.parametrize("prefer", ["threads", pytest.param("processes", marks=pytest.mark.slow)])
def test_searches_run_inside_other_parallel_work(prefer):
    tables = Parallel(2, prefer=prefer)(delayed(fit_in_thread)(seed) for seed in (0, 0, 1))
    assert_frame_equal(tables[0], tables[1], check_exact=True)
    # pandas may give the names of columns another type in another process.
    same = {"check_exact": True, "check_column_type": False}
    assert_frame_equal(tables[0], alone("Clest").table_, **same)


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_search_runs_inside_a_thread(n_jobs, in_processes, tmp_path):
    found = []
    search = small_clest(n_jobs=n_jobs, checkpoint=tmp_path / "checkpoint")
    thread = threading.Thread(target=lambda: found.append(search.fit(blobs())))
    thread.start()
    thread.join(60)
    assert_same(found[0], alone("Clest"))


# ---- Warnings


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_warning_filters_are_as_before(n_jobs, in_processes):
    before = list(warnings.filters)
    small_clest(n_jobs=n_jobs).fit(blobs())
    with pytest.raises(Stop):
        small_clest(n_jobs=n_jobs, progress=stop_at(2)).fit(blobs())
    assert list(warnings.filters) == before


def test_warning_filters_are_as_before_when_searches_overlap():
    """The first begins, the second begins, the first ends, the second ends."""
    first_in, second_in, first_out = (threading.Event() for _ in range(3))

    def progress_of_first(done, total):
        first_in.set()
        if done == total:
            assert second_in.wait(30)

    def progress_of_second(done, total):
        second_in.set()
        if done == total:
            assert first_out.wait(30)

    def first():
        small_clest(progress=progress_of_first).fit(blobs())
        first_out.set()

    def second():
        assert first_in.wait(30)
        small_clest(progress=progress_of_second).fit(blobs())

    with warnings.catch_warnings():
        before = list(warnings.filters)
        threads = [threading.Thread(target=target) for target in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert list(warnings.filters) == before


# ---- Stopping and going on


@each_search
def test_a_search_that_was_stopped_goes_on_to_the_same_result(name, tmp_path):
    path, calls = tmp_path / "checkpoint", Calls()
    interrupted(search_of(name), path, 2)
    assert_sound(path)
    assert count_results(path) == 2
    resumed = search_of(name, checkpoint=path, progress=calls).fit(blobs())
    assert calls[0][0] == 2
    assert_same(resumed, alone(name))


def test_stopped_again_and_again_and_resumed_with_more_jobs(tmp_path, in_processes):
    path = tmp_path / "checkpoint"
    for number in (1, 4, 5, 9):
        interrupted(small_clest(), path, number)
        assert count_results(path) == number
    assert_same(small_clest(checkpoint=path, n_jobs=2).fit(blobs()), alone("Clest"))


def no_work(*args):
    raise AssertionError("a task was run")


def test_a_finished_search_is_read_and_not_run(tmp_path, monkeypatch):
    path, calls = tmp_path / "checkpoint", Calls()
    first = small_clest(checkpoint=path).fit(blobs())
    monkeypatch.setattr("rskc.selection.clest._split_error", no_work)
    with pytest.raises(AssertionError, match="a task was run"):
        small_clest().fit(blobs())
    again = small_clest(checkpoint=str(path), progress=calls).fit(blobs())
    assert_same(again, first)
    assert calls == [(12, 12)]


def stored_seed(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        query = "select value from identity where name = 'seed'"
        return connection.execute(query).fetchone()[0]


def test_without_a_seed_a_search_goes_on_with_that_of_the_checkpoint(tmp_path):
    path = tmp_path / "checkpoint"
    search = small_clest(random_state=None)
    interrupted(search, path, 3)
    seed = stored_seed(path)
    resumed = small_clest(random_state=None, checkpoint=path).fit(blobs())
    assert stored_seed(path) == seed
    search._groups = None
    with contextlib.closing(Checkpoint(None, {"seed": str(seed)})) as store:
        search._search(Sample(blobs()), Runner(store, 1, Progress(False)))
    assert_array_equal(resumed.observed_cers_, search.observed_cers_)
    assert_array_equal(resumed.reference_cers_, search.reference_cers_)
    other = tmp_path / "other"
    interrupted(search, other, 1)
    assert stored_seed(other) != seed


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_a_task_leaves_the_checkpoint_whole(n_jobs, tmp_path, in_processes):
    """Two distinct cases at most in each test set: enough for K = 2 in some splits, not for 3."""
    X = np.repeat([[0.0, 1.0], [5.0, 5.0]], 15, axis=0)
    X[0] = -9  # so that the data pass
    path = tmp_path / "checkpoint"
    search = small_clest(checkpoint=path, n_jobs=n_jobs, estimator__trim=0)
    for _ in range(2):
        with pytest.raises(ValueError, match="n_clusters=3 is more than the 2 distinct") as error:
            clone(search).set_params(estimator__l1_bound=1.2, estimator__n_init=1).fit(X)
        assert_one_sentence(error)
        assert_sound(path)
    if n_jobs == 1:
        assert count_results(path) > 0


# ---- Killed, and interrupted from the keyboard

CHILD = """
import signal, sys, time
import numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored below a shell's `&`
from test_runner import long_clest, long_data
def report(done, total):
    print(done, total, flush=True)
    time.sleep({pause})
long_clest(checkpoint=sys.argv[1], progress=report, n_jobs={n_jobs}).fit(long_data())
"""


def long_clest(**params):
    model = RobustSparseKMeans(l1_bound=4, trim=0.05, n_init=5)
    common = {**SILENT, "random_state": 5, "n_splits": 15, "n_references": 20, **params}
    return Clest(model, (2, 3, 4), **common)


def long_data():
    return make_simulation(1, 0, n_features=100).data


@cache
def long_result():
    """Attributes of the search when nothing stops it."""
    return long_clest().fit(long_data())


def start_child(path, pause, n_jobs):
    return subprocess.Popen(
        [sys.executable, "-c", CHILD.format(pause=pause, n_jobs=n_jobs), str(path)],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def living(session):
    """Processes of a session, without those that are dead and not yet waited for."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, own = stat.read_text().rpartition(")")[2].split()[:4]
            if int(own) == session and state not in "ZX":
                found.append(int(stat.parent.name))
    return found


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def end_all(session):
    for pid in living(session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def stopped_by(kill, path, pause, n_jobs):
    """Start a search in another process, and stop it when some of its results are on disk."""
    child = start_child(path, pause, n_jobs)
    try:
        assert wait_until(lambda: path.exists() and count_results(path) >= 5, 60)
        assert child.poll() is None
        kill(child.pid)
        _, errors = child.communicate(timeout=30)
        gone = wait_until(lambda: not living(child.pid), 10)
        return child.returncode, errors, gone
    finally:
        end_all(child.pid)


def assert_goes_on(path):
    assert_sound(path)
    n_done, calls = count_results(path), Calls()
    assert 5 <= n_done < 105
    resumed = long_clest(checkpoint=path, progress=calls).fit(long_data())
    assert calls[0] == (n_done, 105)
    assert calls[-1] == (105, 105)
    assert_same(resumed, long_result())


linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")


@linux
@pytest.mark.parametrize("n_jobs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_killed_outright_it_goes_on(n_jobs, tmp_path):
    path = tmp_path / "checkpoint"
    code, _, gone = stopped_by(lambda pid: os.kill(pid, signal.SIGKILL), path, 0.02, n_jobs)
    assert code == -signal.SIGKILL
    assert gone, "its workers live on"
    assert_goes_on(path)


@linux
@pytest.mark.parametrize(
    "to_all",
    [
        pytest.param(False, marks=pytest.mark.slow, id="to the parent"),
        pytest.param(True, id="to the group"),
    ],
)
def test_ctrl_c_ends_it_leaves_no_process_and_it_goes_on(to_all, tmp_path):
    """A terminal sends the signal to the whole group; `kill -INT` to one process."""
    path = tmp_path / "checkpoint"
    send = os.killpg if to_all else os.kill
    code, errors, gone = stopped_by(lambda pid: send(pid, signal.SIGINT), path, 0.02, 2)
    assert code in (1, 130, -signal.SIGINT)
    assert "KeyboardInterrupt" in errors
    assert gone
    assert_goes_on(path)


# ---- Checkpoints that are refused


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"estimator__trim": 0.1}, "estimator__trim=0.05 and this search has estimator__trim=0.1"),
        ({"estimator__n_init": 4}, "estimator__n_init"),
        ({"n_splits": 4}, "n_splits=3 and this search has n_splits=4"),
        ({"n_clusters": (2, 3, 4)}, "n_clusters"),
        ({"rule": "agreement", "n_references": 3, "level": 0.3}, "level|rule"),
        ({"random_state": 1}, "random_state"),
        ({"estimator": KMeans(3, n_init=3)}, "estimator"),
    ],
)
def test_a_checkpoint_of_another_setting_is_refused(params, told, tmp_path):
    path = tmp_path / "checkpoint"
    interrupted(small_clest(), path, 2)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=told) as error:
        small_clest(checkpoint=path, **params).fit(blobs())
    assert_one_sentence(error)
    assert "new file, or delete this one" in str(error.value)
    assert path.read_bytes() == before
    assert_same(small_clest(checkpoint=path).fit(blobs()), alone("Clest"))


def test_what_does_not_change_the_result_is_not_refused(tmp_path):
    path, calls = tmp_path / "checkpoint", Calls()
    interrupted(small_clest(), path, 2)
    how = {"n_clusters": range(2, 4), "estimator__n_threads": 1, "estimator__random_state": 3}
    resumed = small_clest(checkpoint=str(path), progress=calls, **how).fit(blobs())
    assert calls[0] == (2, 12)
    assert_array_equal(resumed.observed_cers_, alone("Clest").observed_cers_)


def alter(path, *statement):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(*statement)


@pytest.mark.parametrize(
    "change", [lambda X: X + 1e-9 * (X[0, 0] == X), lambda X: X[:-1], lambda X: X.astype("f4")]
)
def test_a_checkpoint_of_other_data_is_refused(change, tmp_path):
    path = tmp_path / "checkpoint"
    interrupted(small_clest(), path, 2)
    with pytest.raises(ValueError, match="was made with other data") as error:
        small_clest(checkpoint=path).fit(change(blobs()))
    assert_one_sentence(error)


IDENTITY = "update identity set value = '{}' where name = '{}'"


@pytest.mark.parametrize(
    ("statement", "name", "told"),
    [
        (None, "GapL1", "search=Clest and this search has search=GapL1"),
        (IDENTITY.format("rskc checkpoint 0", "format"), "Clest", "format=rskc checkpoint 0 "),
        (IDENTITY.format("9.9", "rskc"), "Clest", "rskc=9.9 "),
        ("delete from identity where name = 'level'", "Clest", "level=None"),
        ("insert into identity values ('color', 'blue')", "Clest", "color=blue"),
    ],
)
def test_a_checkpoint_of_another_search_or_version_is_refused(statement, name, told, tmp_path):
    path = tmp_path / "checkpoint"
    interrupted(small_clest(), path, 2)
    if statement:
        alter(path, statement)
    with pytest.raises(ValueError, match=f"was made with {told}") as error:
        search_of(name, checkpoint=path).fit(blobs())
    assert_one_sentence(error)


def write_foreign_database(path):
    alter(path, "create table recipes (name text)")


def write_truncated(path):
    interrupted(search_of("GapL1"), path, 3)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_text("cases,x,y\n" + "1,2,3\n" * 500),
        lambda path: path.write_text("1,2,3\n"),
        write_foreign_database,
        write_truncated,
    ],
)
def test_a_file_of_something_else_is_refused_and_left_alone(write, tmp_path):
    path = tmp_path / "checkpoint"
    write(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="cannot be used") as error:
        search_of("GapL1", checkpoint=path).fit(blobs())
    assert_one_sentence(error)
    assert path.read_bytes() == before


def test_a_folder_and_a_missing_folder_are_refused(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere" / "checkpoint"):
        with pytest.raises(ValueError, match="cannot be used") as error:
            small_clest(checkpoint=path).fit(blobs())
        assert_one_sentence(error)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path):
    """/proc, where even root may not write; and a folder of one's own."""
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    folders = [Path("/proc")] * Path("/proc").exists() + [locked] * (os.geteuid() != 0)
    for folder in folders:
        with pytest.raises(ValueError, match="cannot be used") as error:
            small_clest(checkpoint=folder / "checkpoint").fit(blobs())
        assert_one_sentence(error)


def damage_pages(path):
    """Keep the schema and the identity, and garble what follows."""
    whole = path.read_bytes()
    path.write_bytes(whole[: 5 * 4096] + b"x" * (len(whole) - 5 * 4096))


@pytest.mark.parametrize(
    "damage",
    [
        None,
        "update results set value = substr(value, 1, 60)",
        "update results set value = zeroblob(length(value))",
        "update results set value = 'text'",
        "update results set value = (select value from results limit 1)",
        IDENTITY.format("none", "seed"),
        "delete from identity where name = 'seed'",
    ],
)
def test_a_checkpoint_with_damaged_results_is_refused(damage, tmp_path):
    path = tmp_path / "checkpoint"
    interrupted(search_of("GapL1"), path, 4)
    if damage is None:
        damage_pages(path)
    else:
        alter(path, damage)
    with pytest.raises(ValueError, match="checkpoint=") as error:
        search_of("GapL1", checkpoint=path).fit(blobs())
    assert_one_sentence(error)


@linux
def test_a_refused_checkpoint_is_let_go_of(tmp_path):
    path = tmp_path / "checkpoint"
    interrupted(small_clest(), path, 2)
    with pytest.raises(ValueError, match="n_splits") as error:
        small_clest(checkpoint=path, n_splits=9).fit(blobs())
    assert "n_splits" in str(error.value)  # which keeps the traceback alive, as a shell does
    links = [os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()]
    assert str(path.resolve()) not in links


def test_a_result_is_safe_at_once(tmp_path):
    path = tmp_path / "checkpoint"
    store = Checkpoint(path, {"seed": "1"})
    store.add("one", {"cer": 0.5})
    n_safe = count_results(path)
    store.close()
    assert n_safe == 1


def test_results_come_back_as_they_were(tmp_path):
    path, result = tmp_path / "checkpoint", {"cer": 0.1 + 0.2, "labels": np.arange(4, dtype="i4")}
    store = Checkpoint(path, {"seed": None})
    store.add("one", result)
    store.add("one", result)
    store.close()
    again = Checkpoint(path, {"seed": None})
    assert again.identity == store.identity
    (found,) = again.results().values()
    again.close()
    assert found["cer"] == result["cer"]
    assert_array_equal(found["labels"], result["labels"])
    assert found["labels"].dtype == np.int32


# ---- Progress


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_callable_is_called_for_every_task(n_jobs, in_processes):
    calls = Calls()
    small_clest(progress=calls, n_jobs=n_jobs).fit(blobs())
    assert calls == [(done, 12) for done in range(13)]


def test_progress_of_gap_l1_goes_up_to_the_end():
    calls = Calls()
    search_of("GapL1", progress=calls, l1_bounds=5).fit(blobs())
    done, total = np.transpose(calls)
    assert (np.diff(done) >= 0).all()
    assert calls[-1][0] == calls[-1][1] == max(total)


@each_search
def test_nothing_is_written_where_there_is_no_terminal(name, capfd):
    search_of(name, progress=True).fit(blobs())
    assert capfd.readouterr() == ("", "")


def test_a_program_without_stderr_may_search(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert small_clest(progress=True).fit(blobs()).n_clusters_ == 3


SHOWN = """
import sys, time
import numpy as np
from sklearn.cluster import KMeans
from rskc.selection import Clest
class Slow(KMeans):
    def fit(self, X, y=None):
        time.sleep(0.05)
        return super().fit(X)
X = np.random.default_rng(0).standard_normal((30, 3))
search = Clest(Slow(n_init=1), (2, 3), n_splits=5, n_references=8, rule="paper",
               progress={progress}, n_jobs=1, random_state=0)
search.fit(X)
"""


def start_on_terminal(progress):
    """Start a search of 2.6 s whose stderr is a terminal of 100 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    command = [sys.executable, "-c", SHOWN.format(progress=progress)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    return child, ours


def read_to_end(child, ours):
    parts = []
    with contextlib.suppress(OSError):  # how Linux says that the other end is closed
        while part := os.read(ours, 4096):
            parts.append(part)
    os.close(ours)
    assert child.wait(60) == 0
    return b"".join(parts).decode()


def test_a_bar_is_shown_on_a_terminal_unless_unwanted():
    shown, hidden = (start_on_terminal(progress) for progress in (True, False))
    text = read_to_end(*shown)
    assert "Clest" in text
    assert re.search(r"\b\d+/26\b", text)
    assert re.search(r"\d\d:\d\d<\d\d:\d\d", text), "no time left"
    assert read_to_end(*hidden) == ""


# ---- The estimator's side


def test_a_search_with_results_can_be_pickled():
    search = small_clest().fit(blobs())
    again = pickle.loads(pickle.dumps(search))
    assert_same(again, search)
    assert_array_equal(again.predict(blobs()), search.best_estimator_.labels_)


class Spy(KMeans):
    """Remembers what it was fitted to."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y=None):
        Spy.seen.append(X.copy())
        return super().fit(X)


@pytest.mark.parametrize("reference", ["pca", "uniform"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_reference_sets_have_the_type_of_the_data(dtype, reference):
    Spy.seen.clear()
    model, X = Spy(n_init=1), blobs().astype(dtype)
    small_clest(estimator=model, reference=reference).fit(X)
    assert len(Spy.seen) == 2 * 12 + 1
    assert {data.dtype for data in Spy.seen} == {np.dtype(dtype)}


# ---- Reference sets

each_kind = pytest.mark.parametrize("kind", REFERENCES.values(), ids=REFERENCES)


def draw(kind, X, seed=0):
    return kind(X).draw(np.random.default_rng(seed))


def draw_many(kind, X, times=200):
    box, rng = kind(X), np.random.default_rng(0)
    return np.vstack([box.draw(rng) for _ in range(times)])


def rotated_box(n=400):
    """Cases drawn evenly in a box that is not along the axes."""
    rng = np.random.default_rng(1)
    axes = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    return rng.uniform(-1, 1, (n, 4)) * [9, 5, 2, 0.5] @ axes + [10, -20, 0, 3]


def test_wide_data_need_nothing_as_large_as_the_square_of_their_features():
    X = np.random.default_rng(0).standard_normal((50, 3000))
    tracemalloc.start()
    try:
        draw(pca_reference, X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12 * X.nbytes < 0.25 * 3000**2 * 8


def test_draws_stay_in_the_box_along_the_axes():
    X = rotated_box()
    _, _, axes = np.linalg.svd(X - X.mean(axis=0))
    scores = (X - X.mean(axis=0)) @ axes.T
    drawn = (draw_many(pca_reference, X, 20) - X.mean(axis=0)) @ axes.T
    size = np.ptp(scores, axis=0)
    assert (drawn >= scores.min(axis=0) - 1e-9 * size).all()
    assert (drawn <= scores.max(axis=0) + 1e-9 * size).all()
    assert_allclose(np.ptp(drawn, axis=0), size, rtol=0.01)


def test_draws_stay_between_the_ends_of_each_column():
    X = np.random.default_rng(0).uniform(-1, 3, (100, 5))
    drawn = draw_many(uniform_reference, X, 50)
    assert (drawn >= X.min(axis=0)).all()
    assert (drawn <= X.max(axis=0)).all()
    assert_allclose(np.ptp(drawn, axis=0), np.ptp(X, axis=0), rtol=0.01)
    assert_allclose(np.corrcoef(drawn.T), np.eye(5), atol=0.06)


def test_draws_have_the_mean_and_the_spread_of_evenly_spread_data():
    X = rotated_box(2000)
    drawn = draw_many(pca_reference, X, 20)
    spread = np.sqrt(np.linalg.eigvalsh(np.cov(X.T)))
    assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.05 * spread.max())
    assert_allclose(np.sqrt(np.linalg.eigvalsh(np.cov(drawn.T))), spread, rtol=0.08)
    assert_allclose(np.corrcoef(drawn.T), np.corrcoef(X.T), atol=0.06)


@each_kind
def test_a_reference_set_is_as_large_and_no_copy(kind):
    X = np.random.default_rng(0).standard_normal((30, 7))
    first, second = draw(kind, X, 0), draw(kind, X, 1)
    assert first.shape == second.shape == X.shape
    assert_array_equal(first, draw(kind, X, 0))
    assert (first != second).all()
    assert (first != X).all()


@each_kind
def test_missing_cells_are_carried_over(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    missing = rng.random(X.shape) < 0.2
    missing[3] = True
    missing[:, 4] = True
    X[missing] = np.nan
    before = X.copy()
    drawn = draw(kind, X)
    assert_array_equal(np.isnan(drawn), missing)
    assert_array_equal(X, before)


@each_kind
def test_an_outlying_cell_does_not_stretch_the_box(kind):
    X = np.random.default_rng(0).standard_normal((60, 8))
    outlying = X.copy()
    outlying[5, 3] = 1e6
    clean, spoilt = draw_many(kind, X, 50), draw_many(kind, outlying, 50)
    assert_allclose(spoilt.std(axis=0), clean.std(axis=0), rtol=0.25)
    assert_allclose(spoilt.mean(axis=0), clean.mean(axis=0), atol=1)
    outlying[5, 3] = -1e12
    # It is drawn in to 3.5 MADs, which is farther than the lowest cell of this column.
    assert_allclose(draw_many(kind, outlying, 50).std(axis=0), clean.std(axis=0), rtol=0.6)


@each_kind
def test_odd_columns_are_no_obstacle(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    X[:, 0] = np.nan
    X[:, 1] = 7.25
    X[:, 2] = 0.0
    X[:6, 2] = rng.uniform(1, 2, 6)  # more than half are 0: its MAD is 0
    X[1:, 3] = np.nan
    drawn = draw_many(kind, X, 20)
    assert np.isnan(drawn[:, 0]).all()
    assert_allclose(drawn[:, 1], 7.25, rtol=1e-12)
    assert np.isfinite(drawn[:, [1, 2, 4]]).all()
    assert 1 < np.ptp(drawn[:, 2]) < 4
    assert_allclose(drawn[::40, 3], X[0, 3], rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_are_permuted_each_on_its_own(dtype):
    rng = np.random.default_rng(0)
    X = np.tile(np.arange(50.0, dtype=dtype)[:, None], (1, 8))
    X[rng.random(X.shape) < 0.1] = np.nan
    before = X.copy()
    mixed = permuted(X, np.random.default_rng(1))
    assert mixed.dtype == dtype
    assert_array_equal(X, before)
    assert_array_equal(np.sort(mixed, axis=0), np.sort(X, axis=0))
    assert_array_equal(mixed, permuted(X, np.random.default_rng(1)))
    complete = permuted(np.tile(np.arange(50.0)[:, None], (1, 8)), np.random.default_rng(1))
    assert len(np.unique(complete, axis=1).T) == 8
    assert np.abs(np.corrcoef(complete.T) - np.eye(8)).max() < 0.6


def test_every_order_of_a_column_is_as_likely():
    rng = np.random.default_rng(0)
    counts = np.zeros((4, 4))
    for _ in range(2000):
        counts[np.arange(4), permuted(np.arange(4.0)[:, None], rng)[:, 0].astype(int)] += 1
    assert_allclose(counts, 500, atol=100)
