"""The engine in memory: its tables, its frame, and what does not depend on how work is cut."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from engine_kinds import each_pass, threads_everywhere
from rskc import RobustSparseKMeans
from rskc.datasets import make_contaminated, make_simulation
from rskc.engines import MemoryEngine, contract, memory


def draw(shape, seed=0):
    """Columns of different places and sizes."""
    rng = np.random.default_rng(seed)
    spread = np.exp(rng.normal(size=shape[1]))
    return rng.normal(size=shape) * spread + 10 * rng.normal(size=shape[1])


def pair_distances(rows, weights):
    rows = rows * np.sqrt(weights)
    return ((rows[:, None, :] - rows[None, :, :]) ** 2).sum(axis=2)


def table_distances(table):
    """Weighted squared distances between all cases, as the table sees them."""
    cases = table.cases(np.arange(table.n_cases))
    squares = [table.assign(case[None, None, :]).costs[0] for case in cases]
    return np.array(squares)


def test_a_rotation_is_as_exact_for_tame_cases_beside_an_outlying_one():
    X, weights = draw((30, 100)), np.ones((1, 100))
    tame = pair_distances(X[1:], weights[0])
    X[0, 5] = 1e9
    engine = MemoryEngine(X)
    rotated = table_distances(engine.compact_table(weights)) / engine.frame.factor**2
    assert_allclose(rotated[1:, 1:], tame, rtol=1e-9, atol=1e-9 * tame.max())


@each_pass
def test_rotations_follow_the_weights(passes):
    """A table is remembered for its weights only."""
    X, engines = draw((20, 50)), []
    for order in ([0, 1], [1, 0]):
        engine = MemoryEngine(X, passes=passes)
        weights = np.random.default_rng(3).random((2, 1, 50))
        tables = {i: table_distances(engine.compact_table(weights[i])) for i in order}
        engines.append(tables)
    for i in (0, 1):
        assert_array_equal(engines[0][i], engines[1][i])
    assert not np.allclose(engines[0][0], engines[0][1])


def test_all_columns_stay_where_a_subset_of_a_large_table_saves_little(monkeypatch):
    X, weights = draw((50, 8)), np.zeros((1, 8))
    weights[0, :5] = 1
    expected = MemoryEngine(X).table(weights)
    monkeypatch.setattr(contract.Engine, "subset_bytes", 0)
    table = MemoryEngine(X).table(weights)
    assert (expected.n_columns, table.n_columns) == (5, 8)
    assert_allclose(table_distances(table), table_distances(expected), rtol=1e-9, atol=1e-9)
    few = np.zeros((1, 8))
    few[0, 6] = 1
    assert MemoryEngine(X).table(few).n_columns == 1


# ---- Where the data lie


@each_pass
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("outlying", [1e30, -1e30])
def test_an_outlying_cell_moves_neither_location_nor_scale(passes, dtype, outlying):
    X = draw((61, 9)).astype(dtype)
    frame = MemoryEngine(X.copy(), passes=passes).frame
    X[0, 4] = outlying
    spoilt = MemoryEngine(X, passes=passes).frame
    spread = np.ptp(X[1:], axis=0)
    assert (np.abs(spoilt.location - frame.location) <= spread).all()
    assert 0.5 <= spoilt.factor / frame.factor <= 2


@pytest.mark.parametrize(("cpus", "openmp"), [(3, 8), (8, 3), (3, 3)])
def test_threads_are_no_more_than_the_machine_allows(cpus, openmp, monkeypatch):
    monkeypatch.setattr(memory.joblib, "cpu_count", lambda: cpus)
    monkeypatch.setattr(memory.PASSES, "max_threads", lambda: openmp)
    wanted = [1, 2, 3, 4, 10**9, None]
    assert [memory.usable_threads(n) for n in wanted] == [1, 2, 3, 3, 3, 3]


# ---- The whole fit does not depend on how work is cut


def results(model):
    names = (
        "labels_",
        "cluster_centers_",
        "feature_weights_",
        "trimmed_",
        "objective_",
        "inertia_",
    )
    return [getattr(model, name) for name in names]


PROBLEMS = {
    "wide, trimmed": (make_contaminated("shared_cell", random_state=0).data, 0.1, 3.5),
    "tall": (make_simulation(0, 0, n_samples=400, n_features=6, n_informative=2).data, 0.05, 1.5),
    "K-means": (
        make_simulation(0, 1, n_samples=90, n_features=30, n_informative=9).data,
        0.0,
        None,
    ),
}


def fit(problem, **options):
    X, trim, l1_bound = problem
    options = {"random_state": 0, "n_init": 30, **options}
    return RobustSparseKMeans(3, trim=trim, l1_bound=l1_bound, **options).fit(X)


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize(
    "room",
    [
        {"rskc.engines.memory.WORK_BYTES": 100_000},  # restarts in batches
        dict.fromkeys(  # and branches one by one
            [
                "rskc.engines.memory.WORK_BYTES",
                "rskc.engines.memory.MemoryEngine.work_bytes",
                "rskc.solver.search.WORK_BYTES",
            ],
            1,
        ),
    ],
)
def test_the_room_for_work_changes_nothing(problem, room, monkeypatch):
    expected = results(fit(problem))
    for name, size in room.items():
        monkeypatch.setattr(name, size)
    for found, value in zip(results(fit(problem)), expected, strict=True):
        assert_array_equal(found, value)


def test_a_pass_has_threads_by_its_size(monkeypatch):
    threads_everywhere(monkeypatch, 1000)
    assert memory.team(1000, 4) == 1
    assert memory.team(1001, 4) == 4
    assert memory.team(1001, 1) == 1


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("n_runs", [0, 1, 2, 30])
@pytest.mark.parametrize("step", [1, 4])
def test_shared_runs_come_in_their_order(n_runs, step, n_threads):
    found = memory.share(lambda rows: list(range(n_runs))[rows], n_runs, step, n_threads, np.inf)
    assert [len(part) for part in found[:-1]] == [step] * (len(found) - 1)
    assert [run for part in found for run in part] == list(range(n_runs))


def test_an_error_in_another_thread_is_raised_here():
    begun = threading.Event()

    def work(rows):
        if threading.current_thread() is threading.main_thread() and not begun.wait(60):
            return rows
        begun.set()
        raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        memory.share(work, 4, 1, 2, np.inf)
