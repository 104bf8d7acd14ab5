"""The Dask engine on a cluster of worker processes, which may die."""

import faulthandler
import logging
import os
import signal

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import CancelledError, Client, KilledWorker, LocalCluster
from numpy.testing import assert_allclose, assert_array_equal

from engine_kinds import DEVICE
from fits import assert_same_fit
from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.engines import engine_for
from rskc.engines.blocks.plans import Blocks
from rskc.engines.blocks.schedulers import ClusterScheduler
from rskc.solver import search
from skips import skip_without

X = make_simulation(1, 0, n_samples=20_000, n_features=6, n_informative=3).data
OPTIONS = {"trim": 0.05, "n_init": 2, "random_state": 0, "tol": 0.01}
CONFIG = {
    "distributed.scheduler.allowed-failures": 10,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    # On a busy machine a worker that was killed may need more than the usual 15 seconds to start
    # again, after which the cluster would go on without it.
    "distributed.comm.timeouts.connect": "120s",
    "distributed.deploy.lost-worker-timeout": "120s",
}


@pytest.fixture(scope="module")
def started():
    """Two workers, each a process; nothing is left of them in the end."""
    logger = logging.getLogger("distributed")
    level = logger.level
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        dask.config.set(CONFIG),
        LocalCluster(**options, silence_logs=logging.CRITICAL) as cluster,
        Client(cluster, timeout="120s") as client,
    ):
        yield client
    logger.setLevel(level)


@pytest.fixture
def client(started):
    """The client of both workers: one that an earlier test killed has been started again."""
    started.cluster.scale(2)
    started.wait_for_workers(2, timeout=120)
    return started


@pytest.fixture(autouse=True)
def within_bounds():
    """A test that hangs says where, and ends."""
    faulthandler.dump_traceback_later(180, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def in_blocks():
    return da.from_array(X, chunks=(7000, -1))


def fit(data, l1_bound=None, device=None):
    return RobustSparseKMeans(3, l1_bound=l1_bound, device=device, **OPTIONS).fit(data)


def after_graphs(monkeypatch, number, happening):
    """Let something happen before the graph of this number is sent."""
    sent, run = [], Blocks._run

    def watched(self, *arguments, **options):
        sent.append(1)
        if len(sent) == number:
            happening()
        return run(self, *arguments, **options)

    monkeypatch.setattr(Blocks, "_run", watched)
    return sent


def worker_pids(client):
    return client.run(os.getpid)


def test_a_fit_is_the_same_on_a_cluster(client):
    found = fit(in_blocks(), 1.6)
    assert_same_fit(found, fit(X, 1.6))
    assert found.labels_.chunks == ((7000, 7000, 6000),)
    assert_array_equal(found.predict(in_blocks()).compute(), found.labels_.compute())


def test_data_that_the_cluster_holds_already(client):
    held = in_blocks().persist()
    for blocks in (held, held + 0, held[:, ::-1][:, ::-1]):
        engine = engine_for(blocks)
        groups = engine.arrays.from_numpy(np.zeros((1, len(X)), np.int32))
        means = engine.restore(engine.sums(groups, 1).means())
        assert_allclose(means[0, 0], X.mean(axis=0), rtol=1e-9)


def test_no_array_as_long_as_a_block_travels(client):
    def received(dask_worker):  # in here, since workers do not know this module
        log = list(dask_worker.transfer_incoming_log)
        dask_worker.transfer_incoming_log.clear()
        return [size for got in log for size in got["keys"].values()]

    n, runs, m = 50_000, 4, 8_000
    engine = engine_for(da.random.default_rng(0).random((8 * n, 4), chunks=(n, -1)).persist())
    table = engine.table(engine.equal_weights())
    groups = table.trim(table.assign(np.random.default_rng(0).random((runs, 3, 4))), m).groups
    sums = table.sums(groups, 3)
    largest = []
    for _ in range(9):
        groups = table.regroup(table.assign(sums.means()), m, sums, groups).groups
        largest.append(max(sum(client.run(received).values(), [0])))
    # Labels have a byte for each case and run, costs eight. A task may be stolen now and then.
    assert 0 < np.median(largest[2:]) < n * runs / 2


class Cluster:
    """A client that knows where futures are."""

    def __init__(self, holders):
        self.holders = holders

    def who_has(self, futures):
        return {future.key: self.holders[future.key] for future in futures}


def test_the_tasks_of_a_block_go_where_it_lies(monkeypatch):
    class Held:
        def __init__(self, key):
            self.key = key

    monkeypatch.setattr("distributed.Future", Held)
    # What a worker had that died is not there again at once.
    scheduler = ClusterScheduler(Cluster({0: ("a",), 1: ("b", "a"), 2: ()}))
    labels, sums = ([(name, i) for i in range(4)] for name in ("labels", "sums"))
    taken = ["users", Held(1), Held(2), 4.0]
    graph = {key: (max, "program", part) for key, part in zip(labels, taken, strict=True)}
    graph |= {key: (max, "program", made) for key, made in zip(sums, labels, strict=True)}
    homes = scheduler._homes(graph | {"program": 1, "users": Held(0)}, [labels, sums])
    assert homes == {labels[0]: "a", sums[0]: "a", labels[1]: "b", sums[1]: "b"}


@pytest.mark.parametrize(("device", "memory"), [(None, None), (DEVICE, None), (DEVICE, "1kB")])
def test_a_worker_that_dies_changes_nothing(client, monkeypatch, device, memory):
    """Workers with a device each; the data and tables that stay there are lost with it."""
    if device is not None:
        skip_without("torch")
        monkeypatch.setattr(search, "SAMPLE_CELLS", 9000)  # else it is all searched in memory
        monkeypatch.setattr(search, "FEWEST_CASES", 1000)
    before = worker_pids(client)
    victim = next(iter(before.values()))
    sent = after_graphs(monkeypatch, 5, lambda: os.kill(victim, signal.SIGKILL))
    with dask.config.set({"rskc.device-memory": memory}):
        found = fit(in_blocks(), device=device)
    assert len(sent) > 5
    assert_same_fit(found, fit(X))
    assert victim not in worker_pids(client).values()


@pytest.mark.slow
def test_results_outlive_the_workers_that_had_them(client):
    found = fit(in_blocks())
    for pid in worker_pids(client).values():
        os.kill(pid, signal.SIGKILL)
    assert_same_fit(found, fit(X))


def test_the_scheduler_remembers_nothing_of_earlier_iterations(client):
    engine = engine_for(in_blocks())
    table = engine.table(engine.equal_weights())
    groups, _ = table.trim(table.assign(X[:9].reshape(3, 3, -1)), 500)
    sums = table.sums(groups, 3)
    remembered = []
    for _ in range(8):
        assignment = table.assign(sums.means())
        groups = table.regroup(assignment, 500, sums, groups).groups
        groups = engine.arrays.take(groups, np.arange(3))
        remembered.append(len(client.cluster.scheduler.tasks))
    assert max(remembered[4:]) <= max(remembered[:4]) + 10


class Ended:
    """A future that has come to an end."""

    def __init__(self, status, error):
        self.status, self.error = status, error

    def result(self):
        raise self.error


@pytest.mark.parametrize(
    ("future", "kind", "said"),
    [
        (Ended("error", KilledWorker("task", None, 3)), RuntimeError, "died again and again"),
        (Ended("cancelled", CancelledError("task")), RuntimeError, "was lost during the fit"),
        (Ended("finished", OSError("closed")), RuntimeError, "was lost during the fit"),
        (Ended("error", OSError("no such file")), OSError, "no such file"),
    ],
    ids=["killed", "cancelled", "closed", "the user's own"],
)
def test_what_happens_to_workers_is_said_in_a_sentence(future, kind, said):
    scheduler = ClusterScheduler(client=None)
    scheduler._wait = lambda future: None
    with pytest.raises(kind, match=said):
        scheduler._result(future)


def test_a_cluster_without_workers_is_an_error_and_no_wait(client, monkeypatch):
    """Last of all: the workers are gone then. ``within_bounds`` ends a wait."""
    after_graphs(monkeypatch, 8, lambda: client.cluster.scale(0))
    with (
        dask.config.set({"rskc.no-workers-timeout": "2s"}),
        pytest.raises(RuntimeError, match="has had no worker for 2 seconds"),
    ):
        fit(in_blocks())
