"""Dask arrays: the same fit as in memory, whatever the blocks, and few passes over the data."""

import gc
import sys
import warnings
import weakref

import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from fits import CASES, TABLES, TALL, assert_same_fit, in_memory, model_for
from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.engines import engine_for
from rskc.engines.arrays import PartlyTrimmed, labels_of
from rskc.engines.blocks import engine, order
from rskc.engines.blocks.order import select
from rskc.engines.blocks.plans import Blocks, known, packed, unpacked
from rskc.engines.blocks.schedulers import FAN_IN, add, add_all
from rskc.inputs.arrays import as_blocks
from rskc.model.fitting import make_engine, make_problem, make_starts
from rskc.solver import search

pytestmark = pytest.mark.filterwarnings("ignore::rskc.SmallClusterWarning")


@pytest.fixture(autouse=True)
def synchronous():
    """Tasks are small: threads would only wait for one another."""
    with dask.config.set(scheduler="synchronous"):
        yield


each_table = pytest.mark.parametrize("name", TABLES)


def cuts(n, least=0):
    """Lengths of blocks that together have n rows."""
    lengths = st.lists(st.integers(least, n // 2), min_size=1, max_size=5)

    def exactly(drawn):
        total = np.minimum(np.cumsum(drawn), n)
        return tuple(int(length) for length in np.diff([0, *total, n]))

    return lengths.map(exactly)


# ---- The same fit


@each_table
@settings(max_examples=6)
@given(data=st.data())
def test_a_fit_is_the_same_for_any_blocks(name, data):
    X, _ = TABLES[name]
    chunks = data.draw(cuts(len(X)))
    found = model_for(name).fit(da.from_array(X, chunks=(chunks, X.shape[1])))
    assert_same_fit(found, in_memory(name))
    for attribute in (*CASES, "distances_"):
        assert getattr(found, attribute).chunks == (chunks,)


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_a_fit_is_the_same_on_local_schedulers(scheduler):
    X = TALL[:60]
    model = RobustSparseKMeans(3, n_init=2, trim=0.1, l1_bound=None, random_state=0, max_iter=20)
    expected = clone(model).fit(X)
    with dask.config.set(scheduler=scheduler, num_workers=2):
        model.fit(da.from_array(X, chunks=(25, -1)))
    assert_same_fit(model, expected)


@pytest.mark.parametrize(
    "name", ["robust sparse", "trimmed", "unobserved cases", "features chosen", "outliers found"]
)
def test_a_search_on_a_sample_is_the_same(name, monkeypatch):
    """Of very many cases a sample is searched, which is in memory; the rest is done on all."""
    X, _ = TABLES[name]
    monkeypatch.setattr(search, "search_size", lambda n, p, K: min(n, 150))
    expected = model_for(name).fit(X)
    assert_same_fit(model_for(name).fit(da.from_array(X, chunks=(77, -1))), expected)


@each_table
def test_rows_unknown_in_number(name):
    X, _ = TABLES[name]
    whole = da.from_array(np.concatenate([X, X[:5] + 1]), chunks=(70, X.shape[1]))
    known = whole[da.from_array(np.arange(len(X) + 5) < len(X), chunks=70)]
    assert np.isnan(known.shape[0])
    found = model_for(name).fit(known)
    assert_same_fit(found, in_memory(name))
    assert sum(found.labels_.chunks[0]) == len(X)


def test_frames_of_other_types():
    whole = pd.DataFrame({"a": [1, 2, 3, 4], "b": pd.array([1, None, 3, 5], "Int64")})
    blocks = as_blocks(dd.from_pandas(whole, npartitions=2))
    assert_array_equal(blocks, [[1, 1], [2, np.nan], [3, 3], [4, 5]])
    assert blocks.dtype == np.float64
    single = dd.from_pandas(whole[["a"]].astype("float32"), npartitions=1)
    assert as_blocks(single).dtype == np.float32
    with pytest.raises(ValueError, match="columns that are not numbers: c"):
        as_blocks(dd.from_pandas(whole.assign(c=list("wxyz")), npartitions=1))


def test_whole_numbers_become_float64():
    X = np.round(10 * TALL).astype(np.int16)
    model = model_for("trimmed")
    found = clone(model).fit(da.from_array(X, chunks=(100, -1)))
    assert_same_fit(found, model.fit(X))
    assert found.cluster_centers_.dtype == np.float64


def test_an_error_in_a_block_is_the_users_own():
    def read(block):
        raise OSError("no such file")

    X = da.ones((10, 2), chunks=(5, 2)).map_blocks(read, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(OSError, match="no such file"):
        RobustSparseKMeans(2).fit(X)


# ---- What a fitted model says of blocks


@each_table
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_predictions_are_lazy_and_the_same(name, known):
    X, _ = TABLES[name]
    model = in_memory(name)
    blocks = da.from_array(X, chunks=((20, 0, len(X) - 20), X.shape[1]))
    if not known:
        blocks = blocks[da.ones(len(X), chunks=(blocks.chunks[0],), dtype=bool)]
    for method in ("predict", "transform", "score_samples", "is_outlier"):
        expected, found = getattr(model, method)(X), getattr(model, method)(blocks)
        assert isinstance(found, da.Array)
        assert found.dtype == expected.dtype
        assert len(found.chunks[0]) == 3
        assert_allclose(found.compute(), expected, rtol=1e-9, atol=1e-9)
    assert model.score(blocks) == pytest.approx(model.score(X), rel=1e-9)


def test_nothing_is_computed_before_it_is_asked_for():
    def read(block):
        raise AssertionError("read")

    X = da.ones((10, 8), chunks=(5, 8)).map_blocks(read, dtype=float, meta=np.empty((0, 0)))
    model = in_memory("trimmed")
    for method in ("predict", "transform", "score_samples", "is_outlier"):
        assert isinstance(getattr(model, method)(X), da.Array)


# ---- Exact order statistics


def blocks_of(parts):
    """Blocks, and a node with an array in each."""
    blocks = Blocks({}, [None] * len(parts))
    return blocks, known(parts)


VALUES = {
    "continuous": lambda rng, n: rng.exponential(size=n),
    "few levels": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "two levels": lambda rng, n: (rng.random(n) < 0.1).astype(float),
    "all alike": lambda rng, n: np.ones(n),
    "rising": lambda rng, n: np.arange(n, dtype=float),
    "many infinite": lambda rng, n: np.where(rng.random(n) < 0.4, np.inf, rng.random(n)),
    "many orders": lambda rng, n: 10 ** rng.uniform(-300, 300, n),
    "sample misled": lambda rng, n: np.where(np.arange(n) % 3 == 0, 9 + rng.random(n), 1.0),
    "heavy steps": lambda rng, n: rng.integers(0, 40, n) // 8 + 0.25 * (rng.random(n) < 0.01),
}


@pytest.mark.parametrize("shape", VALUES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 900), data=st.data())
def test_selection_is_exact(shape, dtype, seed, n, data):
    rng = np.random.default_rng(seed)
    with np.errstate(over="ignore", under="ignore"):
        values = np.array([VALUES[shape](rng, n), VALUES[shape](rng, n)]).astype(dtype)
    ranks = np.array(data.draw(st.tuples(st.integers(1, n), st.integers(0, n))))
    lengths = np.array([part for part in data.draw(cuts(n)) if part])
    parts = np.split(values, np.cumsum(lengths)[:-1], axis=1)
    blocks, node = blocks_of(parts)
    with pytest.MonkeyPatch.context() as patch:
        for constant, value in (
            ("SAMPLE", 30),
            ("INSIDE", 40),
            ("INSIDE_HERE", 40),
            ("LEAST_INSIDE", 4),
        ):
            patch.setattr(order, constant, value)
        found = select(blocks, node, n, lambda counts: ranks)
    assert blocks.n_graphs <= 20
    for r, rank in enumerate(ranks):
        if rank == 0:
            continue
        value = np.sort(values[r])[::-1][rank - 1]
        assert found.values[r] == value
        assert found.above[r] == np.count_nonzero(values[r] > value)
        assert_array_equal(found.ties[:, r], [(part[r] == value).sum() for part in parts])
        assert found.largest[r] == values[r].max()


def test_values_that_are_no_numbers_do_not_go_on_for_ever(monkeypatch):
    monkeypatch.setattr(order, "SAMPLE", 10)
    values = np.full((1, 100), np.nan)
    values[0, ::10] = 1.0
    blocks, node = blocks_of([values])
    assert select(blocks, node, 100, lambda counts: np.array([50])).values[0] == -np.inf


# ---- Passes over the data


class Counted:
    """Data whose blocks count how often they are read."""

    def __init__(self, X, chunk):
        self.X, self.reads = X, []
        starts = list(range(0, len(X), chunk))
        rows = tuple(len(X[start : start + chunk]) for start in starts)
        graph = {("counted", i, 0): (self.read, start, chunk) for i, start in enumerate(starts)}
        self.array = da.Array(graph, "counted", (rows, (X.shape[1],)), X.dtype)

    def read(self, start, chunk):
        self.reads.append(start)
        return self.X[start : start + chunk]


LARGE = make_simulation(0, 0, n_samples=20_000, n_features=4, n_informative=4).data


def test_data_are_read_once_where_they_fit():
    data = Counted(TALL, 75)
    model_for("robust sparse").fit(data.array)
    assert len(data.reads) == 4


@pytest.mark.parametrize("unobserved", [0, 1])
def test_the_look_at_the_data_brings_the_sample_of_the_search_along(monkeypatch, unobserved):
    """Without unobserved cases, which are left out of the numbers; else it is read afterwards."""
    monkeypatch.setattr(search, "SAMPLE_CELLS", 4000)
    monkeypatch.setattr(search, "FEWEST_CASES", 1000)
    X = LARGE.copy()
    X[:unobserved] = np.nan
    model = RobustSparseKMeans(3, trim=0.1, l1_bound=1.5, random_state=0)
    with dask.config.set({"rskc.memory": "1kB"}):
        data = Counted(X, 5000)
        made = make_engine(model, data.array)
        starts = make_starts(model, data.array, made, make_problem(model, made))
        before = len(data.reads)
        rows = made.part(*starts.sample).rows(slice(None))
    assert_array_equal(rows, X[unobserved:][starts.sample.numbers])
    assert len(data.reads) - before == 4 * unobserved


def iterate(X, m, runs=3, K=3, iterations=3):
    """Lloyd's iterations; the graphs and the reads of each."""
    engine = engine_for(X.array)
    table = engine.compact_table(engine.equal_weights(), engine.float32)
    centers = LARGE[: runs * K].reshape(runs, K, -1)
    groups, _ = table.trim(table.assign(centers), m)
    sums = table.sums(groups, K)
    spent = []
    for _ in range(iterations):
        graphs, reads = engine.blocks.n_graphs, len(X.reads)
        groups = table.regroup(table.assign(sums.means()), m, sums, groups).groups
        spent.append((engine.blocks.n_graphs - graphs, len(X.reads) - reads))
    return spent


def test_an_iteration_is_a_graph_and_three_if_cases_are_trimmed():
    data = Counted(LARGE, 5000)
    assert all(graphs == 1 for graphs, _ in iterate(data, 0))
    assert all(graphs <= 3 for graphs, _ in iterate(data, 1000))
    assert len(data.reads) == 8


def columns_counted(X, chunk, label):
    """A dataframe in parts that notes how many columns are read, as of files of columns."""
    read, names = [], [f"x{j}" for j in range(X.shape[1])]

    def part(start, columns=None):
        read.append(len(names if columns is None else columns))
        frame = pd.DataFrame(X[start : start + chunk], columns=names)
        return frame if columns is None else frame[list(columns)]

    meta = pd.DataFrame({name: pd.Series(dtype=X.dtype) for name in names})
    return dd.from_map(part, list(range(0, len(X), chunk)), meta=meta, label=label), read


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("share", [0.0, 0.02])
def test_only_columns_that_carry_weight_are_read(monkeypatch, dtype, share):
    """A search on a sample, then all cases: labels are those of the same fit in memory."""
    monkeypatch.setattr(search, "SAMPLE_CELLS", 6000)
    monkeypatch.setattr(search, "FEWEST_CASES", 300)
    rng = np.random.default_rng(0)
    X = make_simulation(0, 0, n_samples=2600, n_features=20, n_informative=4).data.astype(dtype)
    X[rng.random(X.shape) < share] = np.nan
    X[7] = np.nan if share else X[7]
    model = RobustSparseKMeans(3, trim=0.1, n_features=4, n_init=3, random_state=0)
    known, reads = clone(model).fit(X), []
    enough = "400kB" if dtype == np.float32 else "700kB"  # for the cells of a few columns
    for memory in ("1kB", enough):
        frame, read = columns_counted(X, 900, memory)
        with dask.config.set({"rskc.memory": memory}):
            found = clone(model).fit(frame)
        assert_array_equal(found.labels_.compute(), known.labels_)
        assert_array_equal(found.trimmed_.compute(), known.trimmed_)
        assert_allclose(found.feature_weights_, known.feature_weights_, rtol=1e-6)
        assert found.objective_ == pytest.approx(known.objective_)
        reads.append(sum(columns < 20 for columns in read))
        with dask.config.set({"rskc.memory": memory}):
            made = engine_for(as_blocks(frame))
        read.clear()
        cells = made.columns_of(np.array([2, 1500]), np.array([3, 4]))
        assert_array_equal(cells, X[[2, 1500]][:, [3, 4]])
        assert read == [2, 2]
    assert 0 < reads[1] < reads[0]


@pytest.mark.parametrize("unobserved", [0, 1])
def test_columns_are_taken_from_rows_that_are_read_anyway(unobserved):
    """Labels of few columns and sums of all are made in one graph, and blocks are read once."""
    X = make_simulation(0, 0, n_samples=900, n_features=20, n_informative=4).data
    X[5][:] = X[5] if unobserved == 0 else np.nan
    weights = np.where(np.arange(20) < 4, 1.0, 0.0)[None]
    frame, read = columns_counted(X, 300, f"anyway-{unobserved}")
    with dask.config.set({"rskc.memory": "1kB"}):
        engines = [engine_for(each, drop_unobserved=True) for each in (as_blocks(frame), X)]
    read.clear()
    found = []
    for made in engines:
        table = made.table(weights)
        labels = table.assign(table.place(X[None, :3])).labels
        found.append(made.sums(labels, 3))
    assert read == [20] * 3
    assert_allclose(found[0].totals, found[1].totals)
    assert_array_equal(found[0].counts, found[1].counts)


def test_the_farthest_are_taken_out_in_one_read():
    data, rng = Counted(LARGE, 5000), np.random.default_rng(0)
    labels = rng.integers(0, 3, (2, len(LARGE))).astype(np.int32)
    groups = np.where(rng.random(labels.shape) < 0.1, np.int32(-1), labels)
    memory = engine_for(LARGE)
    with dask.config.set({"rskc.memory": "1kB"}):
        blocks = engine_for(data.array)
        blocks.part(np.arange(0, len(LARGE), 10))
        arrays = blocks.arrays
        for m in (0, 1, 1000, 19_990):
            sums = blocks.sums(arrays.from_numpy(groups), 3)
            before, own = len(data.reads), (arrays.from_numpy(x) for x in (groups, labels))
            found = blocks.take_out_farthest(*own, sums, m)
            assert len(data.reads) - before == (4 if m else 0)
            known = memory.take_out_farthest(groups, labels, memory.sums(groups, 3), m)
            assert_array_equal(arrays.to_numpy(found.far), known.far)
            assert_array_equal(arrays.to_numpy(found.kept), known.kept)
            assert_allclose(found.sums.totals, known.sums.totals, atol=1e-8)
            assert_array_equal(found.sums.counts, known.sums.counts)


def test_a_bracket_that_misses_costs_another_read(monkeypatch):
    data, labels = Counted(LARGE, 5000), np.zeros((1, len(LARGE)), np.int32)
    with dask.config.set({"rskc.memory": "1kB"}):
        blocks = engine_for(data.array)
        blocks.part(np.arange(20))
        wrong = [np.array([1e9]), np.array([2e9])]
        monkeypatch.setattr(engine.KnownCases, "bracket", lambda *args: wrong)
        own = blocks.arrays.from_numpy(labels)
        found = blocks.take_out_farthest(own, own, blocks.sums(own, 1), 500)
    memory = engine_for(LARGE)
    known = memory.take_out_farthest(labels, labels, memory.sums(labels, 1), 500)
    assert_array_equal(blocks.arrays.to_numpy(found.far), known.far)
    assert_allclose(found.sums.totals, known.sums.totals, atol=1e-8)


def test_what_nobody_has_any_more_is_let_go():
    engine = engine_for(Counted(LARGE, 5000).array)
    table = engine.table(np.ones((1, 4)))
    assignment = table.assign(LARGE[:6].reshape(2, 3, 4))
    groups, _ = table.trim(assignment, 100)
    taken = engine.arrays.take(groups, np.array([1]))
    held = groups.node
    del groups, assignment
    engine.arrays.sizes(taken, 3)
    assert taken.node.held is not None
    assert taken.node.parents == ()
    assert {len(part.value) for part in held.held} == {2}


@pytest.fixture
def no_cycles_found():
    """Python does not look for reference cycles."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_labels_are_kept_without_costs_that_nobody_has(no_cycles_found):
    counted = Counted(LARGE, 5000)
    with dask.config.set({"rskc.memory": "1kB"}):
        engine = engine_for(counted.array)
        table = engine.table(np.ones((1, 4)))
        assignment = table.assign(LARGE[:3].reshape(1, 3, 4))
        labels, costs = assignment.labels, weakref.ref(assignment.costs.node)
        before = len(counted.reads)
        del assignment
        sizes = engine.arrays.sizes(labels, 3)
        assert costs() is None
        assert labels.node.parents == ()
        assert_array_equal(engine.arrays.sizes(labels, 3), sizes)
    assert len(counted.reads) - before == 4  # each block once


@pytest.mark.parametrize(("K", "kind"), [(126, np.int8), (300, np.int16), (70_000, np.int32)])
def test_labels_are_kept_in_few_bytes_and_come_back_as_they_were(K, kind):
    labels = np.array([[-1, 0, K]], np.int32)
    for groups in (labels, PartlyTrimmed(labels, np.array([[1.0, 0.5, 1.0]]))):
        kept = packed(groups)
        assert labels_of(kept).dtype == kind
        assert type(unpacked(kept)) is type(groups)
        assert labels_of(unpacked(kept)).dtype == np.int32
        assert_array_equal(labels_of(unpacked(kept)), labels)
    costs = np.ones((2, 3))
    assert packed(costs) is costs


def test_sums_of_blocks_are_added_in_a_fixed_order():
    parts = [(np.array([1e16]),), (np.array([1.0]),)] * 40
    grouped = [add(parts[i : i + FAN_IN]) for i in range(0, 80, FAN_IN)]
    assert add_all(parts) == add(grouped)


def test_the_budget_may_be_said_in_words():
    sizes = []
    for memory in ("10kB", "1 GB", 20_000, None):
        with dask.config.set({"rskc.memory": memory}):
            sizes.append(engine_for(da.from_array(TALL, chunks=(100, -1))).data.budget)
    assert sizes[:3] == [10_000, 10**9, 20_000]
    assert sizes[3] > 10**7


def test_frames_keep_their_names_in_reports_and_tables_of_cases():
    X = np.random.default_rng(0).normal(size=(90, 3))
    X[:45] += 4
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=3)
    model = RobustSparseKMeans(2, random_state=0).fit(frame)
    assert len(model.cases_frame(frame)) == 90
    assert "90 cases" in model.report(frame).html


# ---- Warnings, and set_output


def test_chunks_of_columns_are_warned_of_once_at_the_callers_line():
    X = da.from_array(TALL, chunks=(100, 3))
    model = model_for("trimmed")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
        for method in (model.predict, model.transform, model.score_samples, model.score):
            method(X)
        model.fit_predict(X)
    assert_same_fit(model, in_memory("trimmed"))
    first = sys._getframe().f_lineno - 5
    found = [(each.filename, each.lineno) for each in caught if "chunks" in str(each.message)]
    assert found == [(__file__, first), (__file__, first + 3)]


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_set_output_leaves_blocks_lazy(output):
    def read(block):
        raise AssertionError("read")

    model, expected = clone(in_memory("trimmed")), in_memory("trimmed").transform(TALL)
    blocks = da.from_array(TALL, chunks=(100, -1))
    found = model.set_output(transform=output).fit_transform(blocks)
    assert isinstance(found, da.Array)
    assert_allclose(found.compute(), expected, rtol=1e-9)
    model.transform(blocks.map_blocks(read, dtype=float, meta=np.empty((0, 0))))
    assert type(model.transform(TALL)).__module__.startswith(output)
    with sklearn.config_context(transform_output=output):
        blockwise = in_memory("trimmed").transform(blocks).compute()
    assert isinstance(blockwise, np.ndarray)
