"""The runner: processes and threads, warnings, progress, and searches that are killed."""

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed
from pandas.testing import assert_frame_equal
from threadpoolctl import threadpool_info, threadpool_limits

from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.selection import Clest, runner
from rskc.selection.checkpoint import Checkpoint
from rskc.selection.runner import Runner
from search_kinds import (
    HOW,
    Calls,
    Stop,
    assert_same,
    assert_sound,
    corners,
    count_results,
    each_search,
    fitted,
    search_of,
    stop_at,
)


@contextlib.contextmanager
def runner_of(progress):
    """A runner without a checkpoint, in this process."""
    with contextlib.closing(Checkpoint(None, {"seed": "0"})) as store:
        runner = Runner(store, 1, progress)
        with contextlib.closing(runner):
            yield runner


def test_blas_has_one_thread_in_tasks_of_this_process():
    """As in workers: results must not depend on where the clock lets a task run."""

    def work(key):
        libraries = [info for info in threadpool_info() if info["user_api"] == "blas"]
        return {"threads": max(info["num_threads"] for info in libraries)}

    with threadpool_limits(2, "blas"), runner_of(False) as runner:
        (result,) = runner.run("test", work, [(0,)])
    assert result["threads"] == 1


# ---- Inside other work


def table_of(seed):
    return search_of("Clest", random_state=seed).fit(corners()).table_


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_searches_run_inside_other_parallel_work(backend):
    tables = Parallel(2, backend=backend)(delayed(table_of)(seed) for seed in (0, 0, 1))
    assert_frame_equal(tables[0], tables[1], check_exact=True)
    # pandas may give the names of columns another type in another process.
    same = {"check_exact": True, "check_column_type": False}
    assert_frame_equal(tables[0], fitted("Clest").table_, **same)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_warning_filters_are_as_before(n_jobs, in_processes):
    before = list(warnings.filters)
    search_of("Clest", n_jobs=n_jobs).fit(corners())
    with pytest.raises(Stop):
        search_of("Clest", n_jobs=n_jobs, progress=stop_at(2)).fit(corners())
    assert list(warnings.filters) == before


def test_a_thread_leaves_warning_filters_alone():
    """They are shared: of two threads the last to leave would restore what the first had set."""
    before, seen = list(warnings.filters), []

    def look():
        with runner._quiet_in_main_thread():
            seen.append(list(warnings.filters))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [before]


# ---- Killed, and interrupted from the keyboard


CHILD = """
import signal, sys, time
sys.path.insert(0, "..")
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored below a shell's `&`
from test_runner import long_clest, long_data
def report(done, total):
    time.sleep(0.02)
long_clest(checkpoint=sys.argv[1], progress=report, n_jobs={n_jobs}).fit(long_data())
"""


def long_clest(**params):
    model = RobustSparseKMeans(l1_bound=4, trim=0.05, n_init=5)
    common = {**HOW, "random_state": 5, "n_splits": 8, "n_references": 12, **params}
    return Clest(model, (2, 3, 4), **common)


def long_data():
    return make_simulation(1, 0, n_features=100).data


@cache
def long_result():
    """The search when nothing stops it."""
    return long_clest().fit(long_data())


def living(session):
    """Processes of a session, without those that are dead and not yet waited for."""
    pids = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, number = stat.read_text().rpartition(")")[2].split()[:4]
            if int(number) == session and state not in "ZX":
                pids.append(int(stat.parent.name))
    return pids


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def stopped_by(kill, path, n_jobs):
    """Start a search in another process, and stop it when some of its results are on disk."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD.format(n_jobs=n_jobs), str(path)],
        cwd=Path(__file__).parent,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert wait_until(lambda: path.exists() and count_results(path) >= 5, 60)
        assert child.poll() is None
        kill(child.pid)
        _, errors = child.communicate(timeout=30)
        gone = wait_until(lambda: not living(child.pid), 10)
        return child.returncode, errors, gone
    finally:
        for pid in living(child.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def assert_goes_on(path):
    assert_sound(path)
    n_done, calls = count_results(path), Calls()
    assert 5 <= n_done < 60
    resumed = long_clest(checkpoint=path, progress=calls).fit(long_data())
    assert calls[0] == (n_done, 60)
    assert calls[-1] == (60, 60)
    assert_same(resumed, long_result())


linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")


@linux
@pytest.mark.parametrize("n_jobs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_killed_outright_it_goes_on(n_jobs, tmp_path):
    path = tmp_path / "checkpoint"
    code, _, gone = stopped_by(lambda pid: os.kill(pid, signal.SIGKILL), path, n_jobs)
    assert code == -signal.SIGKILL
    assert gone, "its workers live on"
    assert_goes_on(path)


@linux
@pytest.mark.parametrize(
    "send",
    [
        pytest.param(os.kill, marks=pytest.mark.slow, id="to the parent"),
        pytest.param(os.killpg, id="to the group"),
    ],
)
def test_ctrl_c_ends_it_leaves_no_process_and_it_goes_on(send, tmp_path):
    """A terminal sends the signal to the whole group; `kill -INT` to one process."""
    path = tmp_path / "checkpoint"
    code, errors, gone = stopped_by(lambda pid: send(pid, signal.SIGINT), path, 2)
    assert code in (1, 130, -signal.SIGINT)
    assert "KeyboardInterrupt" in errors
    assert gone
    assert_goes_on(path)


# ---- Progress


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_callable_is_called_for_every_task(n_jobs, in_processes):
    calls = Calls()
    search_of("Clest", progress=calls, n_jobs=n_jobs).fit(corners())
    assert calls == [(done, 12) for done in range(13)]


@each_search
def test_progress_goes_up_to_the_end(name):
    calls = Calls()
    search_of(name, progress=calls).fit(corners())
    done, total = np.transpose(calls)
    assert (np.diff(done) >= 0).all()
    assert (np.diff(total) >= 0).all()
    assert done[-1] <= total[-1]
    assert name == "Stability" or done[-1] == total[-1]  # of which some splits are not needed


@each_search
def test_nothing_is_written_where_there_is_no_terminal(name, capfd):
    search_of(name, progress=True).fit(corners())
    assert capfd.readouterr() == ("", "")


def test_a_program_without_stderr_may_search(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert search_of("Clest", progress=True).fit(corners()).n_clusters_ == 3


@pytest.mark.parametrize("wanted", [True, False])
def test_a_bar_is_shown_on_a_terminal_unless_unwanted(wanted, monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    with runner_of(wanted) as runner:
        runner._bar.delay = runner._bar.mininterval = 0
        runner.run("Clest", lambda key: {}, [(i,) for i in range(16)])
    shown = terminal.getvalue()
    assert ("Clest" in shown) == ("16/16" in shown) == wanted
    assert bool(re.search(r"\d\d:\d\d<\d\d:\d\d", shown)) == wanted, "the time left"
    assert wanted or not shown
