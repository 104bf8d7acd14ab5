"""The plan of a fit: what it says, and that a fit takes the memory that was told."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

import rskc
from rskc import RobustSparseKMeans, planning
from rskc.datasets import make_simulation
from rskc.model import fitting
from rskc.selection import Stability, cloud, halves
from rskc.selection.search import fit_task
from rskc.utils.wording import in_bytes
from search_kinds import corners, search_of
from skips import skip_without

# Shapes and settings that no constant of rskc.planning was settled on.
FITS = {
    "tall": ("(150_000, 30)", "4, trim=.05, l1_bound=3.", "X"),
    "automatic": ("(90_000, 40)", "4", "X"),
    "single": ("(60_000, 120)", "6, trim=.1, l1_bound=None", "X.astype('float32')"),
    "missing": ("(100_000, 25)", "4, trim=.02, l1_bound=2.", "with_missing(X)"),
    "blocks": ("(400_000, 30)", "4, trim=.05, l1_bound=2.", "in_blocks(X)"),
}
# The C library gives freed arrays back at once. What it keeps of them otherwise varies from run to
# run: a fit of 114 MB takes 135 to 177 MB of the system.
GIVEN_BACK = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
CODE = """
import ctypes, gc, json, sys, tempfile, warnings
import numpy as np
from rskc import RobustSparseKMeans, plan
warnings.simplefilter("ignore")
rng = np.random.default_rng(7)
def with_missing(X):
    X[rng.random(X.shape) < .05] = np.nan
    return X
def in_blocks(X):
    import dask, dask.array as da
    dask.config.set({"scheduler": "threads", "num_workers": 2, "rskc.memory": "30MB"})
    path = tempfile.mkdtemp() + "/X.npy"
    np.save(path, X)
    numbers = da.arange(len(X), chunks=len(X) // 9)[:, None]
    def rows(some):
        return np.array(np.load(path, mmap_mode="r")[some[0, 0] : some[-1, 0] + 1])
    chunks = numbers.chunks[0], (X.shape[1],)
    return da.map_blocks(rows, numbers, dtype=float, chunks=chunks, meta=np.empty((0, 0)))
def memory(kind):
    status = open("/proc/self/status").read()
    return 1024 * int(status.split(kind)[1].split()[0])
def measured(shape, model, change):
    X = rng.standard_normal(shape)
    X[:, :6] += 2 * (np.arange(len(X)) % 4)[:, None]
    X = change(X)
    told = plan(X, model)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before = memory("VmRSS:")
    open("/proc/self/clear_refs", "w").write("5")  # the peak counts from here
    model.fit(X)
    held = X.nbytes if isinstance(X, np.ndarray) else 0
    return told.peak_bytes, memory("VmHWM:") - before + held
model = RobustSparseKMeans({model}, n_threads=1, random_state=0)
measured((2000, 5), RobustSparseKMeans(2, n_init=1), {change})  # what importing takes
print(json.dumps(measured({shape}, model, {change})))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(("shape", "model", "change"), FITS.values(), ids=FITS)
def test_a_fit_takes_the_memory_that_was_told(shape, model, change):
    if "blocks" in change:
        skip_without("dask")
    facts = {"{shape}": shape, "{model}": model, "{change}": f"lambda X: {change}"}
    code = CODE
    for name, value in facts.items():
        code = code.replace(name, value)
    # With blocks, what threads keep is part of the plan.
    env = os.environ | ({} if "blocks" in change else GIVEN_BACK)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert found.returncode == 0, found.stderr
    told, taken = json.loads(found.stdout)
    assert 0.7 < told / taken < 1.3, (told, taken)


@pytest.fixture
def data():
    return make_simulation(
        model=1, n_samples=60, n_features=20, n_informative=5, random_state=0
    ).data


def test_a_plan_says_what_it_found(data):
    told = rskc.plan(data, RobustSparseKMeans(3, n_init=2))
    assert (told.engine, told.n_samples, told.n_features) == ("memory", *data.shape)
    assert told.data_bytes == data.nbytes < told.peak_bytes
    assert told.seconds[0] < told.expected_seconds < told.seconds[1]
    first, engine, memory, seconds = str(told).splitlines()
    assert first == f"60 cases by {data.shape[1]} features, {in_bytes(data.nbytes)}"
    assert engine == "Engine: memory, because the data are in memory"
    assert memory.startswith("Memory at its peak: about ")
    assert seconds.startswith("Time: ")


@pytest.mark.parametrize("kind", ["sparse", "frame", "blocks", "list", "weights", "centers"])
def test_tables_and_models_of_all_kinds_are_planned(data, kind):
    X, model, weights = np.abs(data), RobustSparseKMeans(3, n_init=2, n_features=5), None
    if kind == "sparse":
        X = csr_array(X)
    elif kind in ("frame", "blocks"):
        pd = pytest.importorskip("pandas")
        X = pd.DataFrame(X).assign(kind=list("abc") * 20, ward=[1, 2] * 30)
        X.columns = X.columns.astype(str)
        model.set_params(categorical=["kind", "ward"])
        if kind == "blocks":
            skip_without("dask")
            import dask.dataframe as dd

            X = dd.from_pandas(X, npartitions=3)
            X.part_lengths = [20] * 3
    elif kind == "list":
        X = X.tolist()
    elif kind == "weights":
        weights = np.arange(60) + 1.0
    else:
        model.set_params(init=X[:3], n_init="auto")
    told = rskc.plan(X, model, weights)
    assert told.n_samples == 60
    assert (told.engine == "blocks") == (kind == "blocks")
    assert told.peak_bytes > told.data_bytes > 0


@pytest.mark.parametrize("numbers", [range(2, 7), "auto"])
def test_a_search_takes_the_fits_that_were_told(data, numbers, monkeypatch):
    """The clock counts fits; all of a search are made in one process."""
    number = [0.0]

    def counted(*args, **settings):
        number[0] += 1
        return fit_task(*args, **settings)

    monkeypatch.setattr(halves, "fit_task", counted)
    monkeypatch.setattr(cloud, "fit_task", counted)
    monkeypatch.setattr(planning, "CLOCK", lambda: number[0])
    monkeypatch.setattr(planning, "SEARCH_SECONDS", np.inf)
    model = RobustSparseKMeans(3, trim=0.05, n_init=2, random_state=0)
    search = Stability(model, numbers, n_references=0, random_state=0, n_jobs=1)
    told = rskc.plan(data, search).expected_seconds
    assert not hasattr(search, "table_")
    assert search.progress is True
    number[0] = 0.0
    search.fit(data)
    assert 0.5 < number[0] / told < 2


@pytest.mark.parametrize("kind", ["Clest", "GapL1", "GridSearch", "Stability"])
def test_every_kind_of_search_is_planned_from_its_first_task_on(kind, monkeypatch):
    monkeypatch.setattr(planning, "SEARCH_SECONDS", 0.0)
    search = search_of(kind)
    alone = rskc.plan(corners(), search.estimator).expected_seconds
    assert rskc.plan(corners(), search).seconds[1] > 0 < alone


@pytest.mark.parametrize(
    ("n", "fitted", "expected"), [(50, [50], 1.5), (400, [400], 5.0), (4000, [100, 400], 41.0)]
)
def test_parts_on_a_gpu_are_large_and_told_by_their_line(n, fitted, expected, monkeypatch):
    """Few cells take 1 second more than in proportion, which does not grow with the table."""
    took = []

    def traced(parts, part, share, n_searched=None):
        took.append(part.shape[0])
        cells = int(np.prod(part.shape))
        return planning._Took(cells, 1 + cells / 1000, 500.0 + cells)

    monkeypatch.setattr(planning._Parts, "traced", traced)
    monkeypatch.setattr(planning._Parts, "fit", lambda *args: None)
    monkeypatch.setattr(planning, "GPU_CELLS", (1000, 4000))
    table, model = planning.AnyTable(np.zeros((n, 10)), None), RobustSparseKMeans(2)
    needs = planning._needs_of_gpu(planning._Parts(table, model, table.shape))
    assert took == fitted
    assert needs.seconds == pytest.approx(expected)
    assert needs.peak == pytest.approx(500 + 10 * n)


def test_reads_of_blocks_are_counted():
    skip_without("dask")
    import dask
    import dask.array as da

    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 8)) + 5 * rng.integers(0, 2, 12_000)[:, None]
    read = []

    def rows(some):
        read.append(some.size)
        return X[some[0, 0] : some[-1, 0] + 1].copy()

    numbers = da.arange(len(X), chunks=2000)[:, None]
    how = {"dtype": float, "chunks": (numbers.chunks[0], (8,)), "meta": np.empty((0, 0))}
    blocks = numbers.map_blocks(rows, **how)
    model = RobustSparseKMeans(2, trim=0.05, l1_bound=2, n_init=2, random_state=0)
    for budget, least in (("1kB", 2), ("1GB", 1)):
        with dask.config.set({"rskc.memory": budget, "scheduler": "threads", "num_workers": 1}):
            told = rskc.plan(blocks, model)
            assert told.engine == "blocks"
            assert "Reads of the data: about" in str(told)
            read.clear()
            model.fit(blocks)
        assert told.reads >= least
        assert told.reads == pytest.approx(sum(read) / len(X), rel=0.3)


def test_a_search_on_a_part_is_as_small_as_was_asked(data):
    """A rehearsal makes its search on fewer cases than it has, and cells are kept as in a whole."""
    model = RobustSparseKMeans(2, trim=0.1, l1_bound=2.0, n_init=2, random_state=0)
    fitting.fit(model, data, n_searched=30, share=0.5)
    assert len(model.labels_) == 60


@pytest.mark.parametrize(
    ("memory", "in_blocks", "engine"),
    [
        (None, False, "device"),
        ("1kB", False, "blocks on a device"),
        (None, True, "blocks on a device"),
    ],
)
def test_a_device_is_planned_with(memory, in_blocks, engine):
    skip_without("dask", "torch", "array_api_compat")
    import dask
    import dask.array as da

    X = make_simulation(1, 0, n_samples=900, n_features=6, n_informative=3).data
    table = da.from_array(X, chunks=(300, -1)) if in_blocks else X
    with dask.config.set({"rskc.device-memory": memory}):
        told = rskc.plan(table, RobustSparseKMeans(3, n_init=2, device="cpu"))
    assert told.engine == engine
    assert "cpu" in told.why
    assert ("Reads of the data" in str(told)) == (engine != "device")
