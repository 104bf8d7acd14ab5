"""Blocks whose passes run on a device: the same fit as in memory, whatever stays there.

The device is torch's CPU where there is no other; streams and pinned memory are those of CUDA.
"""

from functools import cache

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from engine_kinds import DEVICE
from fits import CASES, assert_same_fit
from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.engines import engine_for
from rskc.engines.blocks.schedulers import Value
from rskc.selection import Stability
from rskc.solver import search
from skips import skip_without

X = make_simulation(1, 0, n_samples=1500, n_features=8, n_informative=3).data
BLANK = np.where(np.random.default_rng(0).random(X.shape) < 0.06, np.nan, X)
BLANK[[0, 7, 1499]] = np.nan
WEIGHTS = np.random.default_rng(1).integers(0, 4, len(X))
PLAIN = {"trim": 0.05, "l1_bound": 1.8}
TABLES = {
    "automatic": (X, {}, None),
    "robust sparse": (X, PLAIN, None),
    "float32": (X.astype(np.float32), PLAIN, None),
    "trimmed": (X, {"trim": 0.05, "l1_bound": None}, None),
    "missing": (BLANK, PLAIN, None),
    "weights": (X, PLAIN, WEIGHTS),
    "weights, missing": (BLANK, PLAIN, WEIGHTS),
}
# What stays on the device, and in memory: all of the data, and nothing.
MEMORY = {
    "all stays": {},
    "nothing on the device": {"rskc.device-memory": "1kB"},
    "nothing": {"rskc.device-memory": "1kB", "rskc.memory": "1kB"},
}


@pytest.fixture(autouse=True)
def large_table(monkeypatch):
    """The search is on a sample, as of large tables; all cases are seen by the engine alone."""
    skip_without("torch", "array_api_compat")
    monkeypatch.setattr(search, "SAMPLE_CELLS", 3000)
    monkeypatch.setattr(search, "FEWEST_CASES", 300)
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def model_for(name, device=None):
    return RobustSparseKMeans(3, n_init=4, random_state=0, device=device, **TABLES[name][1])


@cache
def in_memory(name):
    return model_for(name).fit(TABLES[name][0], sample_weight=TABLES[name][2])


@pytest.mark.parametrize("memory", MEMORY.values(), ids=MEMORY)
@pytest.mark.parametrize("name", TABLES)
def test_a_fit_is_that_in_memory(name, memory, passes_counted):
    table, _, weights = TABLES[name]
    blocks = da.from_array(table, chunks=(400, -1))
    with dask.config.set(memory):
        found = model_for(name, DEVICE).fit(blocks, sample_weight=weights)
    assert passes_counted
    assert found.labels_.chunks == ((400, 400, 400, 300),)
    assert_same_fit(found, in_memory(name), 1e-5 if name == "float32" else 1e-9)


@pytest.fixture
def passes_counted(monkeypatch):
    """The passes over all features that are made on a device."""
    from rskc.engines.device.engine import DeviceEngine

    made, sums = [], DeviceEngine.sums
    monkeypatch.setattr(DeviceEngine, "sums", lambda *args: made.append(1) or sums(*args))
    return made


@pytest.mark.parametrize("name", ["robust sparse", "missing", "weights"])
@pytest.mark.parametrize("memory", [None, "1kB"], ids=["as a whole", "cut"])
def test_an_array_in_memory_goes_to_the_device_and_results_come_back(
    name, memory, monkeypatch, tmp_path
):
    monkeypatch.setattr("rskc.engines.blocks.devices.BLOCK_BYTES", 2**14)
    np.save(tmp_path / "X.npy", TABLES[name][0])
    for table in (TABLES[name][0], np.load(tmp_path / "X.npy", mmap_mode="r")):
        with dask.config.set({"rskc.device-memory": memory}):
            found = model_for(name, DEVICE).fit(table, sample_weight=TABLES[name][2])
        values = [getattr(found, attribute) for attribute in CASES]
        assert {type(array) for array in (*values, found.distances_)} == {np.ndarray}
        assert_same_fit(found, in_memory(name))


def test_categories_become_numbers_while_blocks_are_read():
    words = np.array(["left", "middle", "right"])[np.digitize(X[:, 0], [-2, 2])]
    frame = pd.DataFrame(X, columns=list("abcdefgh")).assign(side=pd.Categorical(words))
    blocks = dd.from_pandas(frame, npartitions=3)
    found = model_for("robust sparse", DEVICE).fit(blocks)
    assert_same_fit(found, model_for("robust sparse").fit(frame))


def copies(monkeypatch):
    """The rows that are copied to the device, block by block."""
    from rskc.engines.blocks.devices import Device

    copied, copy = [], Device.copy

    def watched(self, rows):
        copied.append(len(rows))
        return copy(self, rows)

    monkeypatch.setattr(Device, "copy", watched)
    return copied


def test_what_fits_is_copied_once(monkeypatch):
    copied = copies(monkeypatch)
    model_for("robust sparse", DEVICE).fit(da.from_array(X, chunks=(400, -1)))
    assert sorted(copied) == [300, 400, 400, 400]


def test_where_nothing_stays_an_iteration_copies_the_table_once(monkeypatch):
    """Sums change by the cases that moved, which are summed in memory."""
    with dask.config.set(MEMORY["nothing"]):
        engine = engine_for(da.from_array(X, chunks=(400, -1)), device=DEVICE)
        table = engine.table(engine.equal_weights())
        groups = table.trim(table.assign(X[None, :3]), 100).groups
        sums, copied = table.sums(groups, 3), copies(monkeypatch)
        for _ in range(3):
            copied.clear()
            groups = table.regroup(table.assign(sums.means()), 100, sums, groups).groups
            assert 2 <= len(copied) <= 4  # two threads may still have the block of the last pass


@pytest.mark.parametrize("enough", [False, True])
def test_an_array_in_memory_stays_on_the_device_as_a_whole_or_not_at_all(enough, monkeypatch):
    monkeypatch.setattr("rskc.engines.blocks.devices.BLOCK_BYTES", 50 * X[0].nbytes)
    monkeypatch.setattr("rskc.engines.blocks.devices.DEVICE_THREADS", 2)
    copied = copies(monkeypatch)
    # Two threads have ten times a block of 50 each; half of the rest is for blocks that stay.
    cases = 2 * 10 * 50 + 2 * (len(X) + 1 if enough else len(X) - 50)
    with dask.config.set({"rskc.device-memory": cases * X[0].nbytes, "num_workers": 2}):
        engine = engine_for(X, device=DEVICE)
        for _ in range(3):
            engine.sums(engine.arrays.from_numpy(np.zeros((1, len(X)), np.int32)), 1)
    # A thread may begin a pass with the block that it ended the last one with.
    assert set(copied) == {50}
    assert len(copied) == 30 if enough else 80 < len(copied) <= 90


@pytest.mark.parametrize("name", ["a map", "an array"])
def test_blocks_of_an_array_are_views_of_it(name, tmp_path):
    from rskc.engines.blocks.data import cut
    from rskc.engines.blocks.devices import is_map

    np.save(tmp_path / "X.npy", X)
    table = X if name == "an array" else np.load(tmp_path / "X.npy", mmap_mode="r")
    blocks = cut(table, 400)
    assert blocks.chunks == ((400, 400, 400, 300), (8,))
    assert all(np.shares_memory(rows, table) for rows in blocks.dask.values())
    assert {is_map(rows) for rows in blocks.dask.values()} == {name == "a map"}
    assert_array_equal(blocks.compute(scheduler="synchronous"), X)


def test_infinite_cells_of_an_array_that_goes_to_a_device_are_refused():
    table = X.copy()
    table[700, 3] = np.inf
    for memory in (None, "1kB"):
        with (
            dask.config.set({"rskc.device-memory": memory}),
            pytest.raises(ValueError, match="infinity"),
        ):
            model_for("robust sparse", DEVICE).fit(table)
    model = model_for("robust sparse", DEVICE).fit(X)
    for method in (model.predict, model.transform, model.score_samples, model.is_outlier):
        with pytest.raises(ValueError, match="infinity"):
            method(table)


def test_a_search_compares_fits_in_memory_and_fits_the_chosen_model_on_the_device(monkeypatch):
    copied = copies(monkeypatch)
    options = {"max_samples": 300, "n_splits": 2, "n_jobs": 1, "progress": False}
    Stability(model_for("trimmed", DEVICE), [2, 3], random_state=0, **options).fit(X)
    assert copied == [len(X)]


@pytest.mark.parametrize(
    ("device", "table", "message"),
    [
        ("tpu", X, 'must be "cuda", "cuda:1", "cpu" or None'),
        ("meta", X, "must be"),
        (1, X, "must be"),
        ("cpu", scipy.sparse.csr_array(X), "X is a csr_"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(device, table, message):
    with pytest.raises(ValueError, match=message):
        RobustSparseKMeans(3, device=device).fit(table)


def test_a_tensor_is_where_it_is():
    import torch

    with pytest.raises(ValueError, match="X is a Tensor"):
        RobustSparseKMeans(3, device="cpu").fit(torch.asarray(X))


def test_what_stays_on_a_device_may_be_sent_to_another_worker(monkeypatch):
    """Dask itself sends tensors by way of NumPy, which refuses those on a GPU."""
    import torch

    protocol = pytest.importorskip("distributed.protocol")
    engine = engine_for(da.from_array(X, chunks=(500, -1)), device=DEVICE)
    table = engine.table(engine.equal_weights())
    centers = np.zeros((1, 2, table.n_columns))
    within = table.trim(table.assign(centers), 0).within
    plain, norms = table.node.parents
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "numpy", None, raising=False)
        for node in (engine.node, plain.parents[0], norms):  # rows, cells, and norms
            sent = (protocol.serialize(part.value) for part in node.held)
            node.held = [Value(protocol.deserialize(*parts)) for parts in sent]
    assert_array_equal(table.trim(table.assign(centers), 0).within, within)
