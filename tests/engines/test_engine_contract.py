"""What the solver asks of an engine, asked of all of them.

The definitions are those of test_passes.py, written down as plainly as can be. Where data are small
whole numbers every sum and product is exact, in single precision too, and results must agree to the
last bit, ties included.
"""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs

from definitions import (
    SHAPES,
    own_columns,
    partitions,
    plain_between,
    plain_distances,
    plain_means,
    plain_sums,
    plain_trim,
    squared_distances,
    whole,
    whole_weights,
)
from engine_kinds import KINDS
from rskc.datasets import make_simulation
from rskc.engines import ArrayOps, Assignment, BoundedEngine, Frame, MemoryEngine, engine_for
from rskc.solver import Problem, Starts, search, solve
from rskc.solver.groups import check_groups

each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
few = settings(max_examples=12)
seeds = st.integers(0, 2**32 - 1)
NUMPY = ArrayOps()
incomplete_engine = partial(MemoryEngine, missing=True)


def plain_frame(p, location=None):
    """A frame that leaves the data as they are."""
    return Frame(np.zeros(p) if location is None else location, 1.0, np.full(p, np.inf))


def plain_engine(kind, X, location=None):
    return kind.engine(X, frame=plain_frame(X.shape[1], location))


def asked(kind, engine, function, *arrays):
    """Ask something of arrays that are brought to the engine, and bring the answer back."""
    return kind.numpy(function(*(kind.brought(engine, array) for array in arrays)))


def seeds_of(table):
    """The table from which starts are drawn: of blocks that is done in memory."""
    return table.in_memory() if hasattr(table, "of_moved") else table


def plain_within(X, groups, K, weights):
    """Weighted squares over the observed cells of kept cases, unscaled."""
    kept = groups >= 0
    return np.nansum(weights * (X[kept] - plain_means(X, groups, K)[groups[kept]]) ** 2)


def from_anywhere(array):
    """Seeds and parts are in memory, or on the device of the whole."""
    return array if isinstance(array, np.ndarray) else KINDS["strict"].numpy(array)


# ---- Tables


@each_kind
@each_dtype
@few
@given(
    seed=seeds, n=st.integers(1, 80), K=st.integers(1, 4), runs=st.integers(1, 3), own=st.booleans()
)
def test_assign_finds_the_nearest_center_and_the_lower_number_in_a_tie(
    kind, dtype, seed, n, K, runs, own
):
    rng = np.random.default_rng(seed)
    X, centers = whole(rng, (n, 3), dtype, 3), whole(rng, (runs, K, 3), size=3)
    weights = whole_weights(rng, runs if own else 1, 3)
    engine = plain_engine(kind, X)
    expected = squared_distances(X, centers, weights)
    for table in (engine.table(weights), engine.compact_table(weights, engine.float32)):
        if table.rotated:
            continue
        labels, costs = map(kind.numpy, table.assign(table.place(centers)))
        assert labels.dtype == np.int32
        assert_array_equal(labels, expected.argmin(axis=2))
        assert_array_equal(costs, expected.min(axis=2))


@each_kind
def test_a_table_for_some_runs_is_the_table_without_the_others(kind):
    rng = np.random.default_rng(2)
    X, weights, centers = rng.normal(size=(80, 6)), rng.random((5, 6)), rng.normal(size=(5, 3, 6))
    table, some = plain_engine(kind, X).table(weights), np.array([3, 0])
    every, part = table.assign(centers), table.of_runs(some).assign(centers[some])
    assert_array_equal(kind.numpy(part.labels), kind.numpy(every.labels)[some])
    assert_allclose(kind.numpy(part.costs), kind.numpy(every.costs)[some], rtol=1e-12)
    groups = rng.integers(-1, 3, (2, 80), np.int32)
    sums = table.of_runs(some).sums(kind.brought(plain_engine(kind, X), groups), 3)
    assert_allclose(sums.totals, plain_sums(X, groups, 3).totals, atol=1e-12)


@each_kind
@pytest.mark.parametrize("shape", [(60, 200), (200, 6), (30, 1)], ids=["wide", "tall", "one"])
def test_all_tables_have_the_distances_of_the_data(kind, shape):
    rng = np.random.default_rng(3)
    X, weights = 10 + rng.normal(size=shape), rng.random((1, shape[1]))
    weights[0, 1::3] = 0
    engine = kind.engine(X)
    tables = (
        engine.table(weights),
        engine.compact_table(weights),
        engine.compact_table(weights, engine.float32),
    )
    groups = kind.brought(engine, np.arange(shape[0], dtype=np.int32)[None] % 3)
    factor = engine.frame.factor**2
    means = np.stack([X[k::3].mean(axis=0) for k in range(3)])
    expected = squared_distances(X, means[None], weights)[0] * factor
    for table, rounding in zip(tables, (1e-10, 1e-10, 1e-5), strict=True):
        labels, costs = map(kind.numpy, table.assign(table.sums(groups, 3).means()))
        size = rounding * max(1, shape[1]) * expected.max()
        assert_allclose(costs[0], expected.min(axis=1), atol=size)
        assert (costs >= 0).all()
        assert_allclose(own_columns(expected[None], labels)[0], expected.min(axis=1), atol=size)
    active = np.count_nonzero(weights)
    assert tables[0].n_columns == active
    most = active if hasattr(engine, "blocks") else min(active, shape[0])  # those are not rotated
    assert all(table.n_columns <= most for table in tables[1:])
    assert [table.n_cases for table in tables] == [shape[0]] * 3


@each_kind
def test_starts_are_drawn_from_the_same_table(kind):
    rng = np.random.default_rng(5)
    X, weights, centers = whole(rng, (40, 5)), whole_weights(rng, 1, 5), whole(rng, (1, 3, 5))
    table = plain_engine(kind, X).table(weights)
    seeds, index = seeds_of(table), np.array([[0, 39], [7, 8]])
    assert_array_equal(seeds.cases(index), table.place(X[index]))
    found, expected = (part.assign(table.place(centers)) for part in (seeds, table))
    assert_array_equal(from_anywhere(found.labels), kind.numpy(expected.labels))
    assert_array_equal(from_anywhere(found.costs), kind.numpy(expected.costs))


@each_kind
def test_starts_are_drawn_in_proportion_to_costs(kind):
    rng = np.random.default_rng(6)
    seeds = seeds_of(plain_engine(kind, whole(rng, (9, 2))).table(np.ones((1, 2))))
    costs = rng.integers(0, 5, (4, 9)).astype(float)
    costs[3] = 0
    groups = rng.integers(-1, 2, (4, 9), np.int32)
    uniforms = np.tile([0.0, 0.3, 0.999, 0.5], (4, 1))
    bring = getattr(seeds.arrays, "asarray", np.asarray)
    found = seeds.arrays.draw(bring(costs), bring(groups), uniforms)
    assert_array_equal(found, NUMPY.draw(costs, groups, uniforms))


@each_kind
def test_the_typical_norm_is_a_median(kind):
    rng = np.random.default_rng(6)
    X, weights = rng.normal(size=(101, 4)), rng.random((1, 4))
    found = plain_engine(kind, X).table(weights).typical_norm()
    assert found == pytest.approx(np.median(X**2 @ weights[0]), rel=1e-12)


@each_kind
@each_dtype
def test_place_and_restore_are_inverse(kind, dtype):
    X = (1000 + np.random.default_rng(7).normal(size=(80, 7))).astype(dtype)
    engine, groups = kind.engine(X), np.arange(80, dtype=np.int32)[None] % 4
    table, brought = engine.table(np.ones((1, 7))), kind.brought(engine, groups)
    sums = engine.sums(brought, 4)
    means = engine.restore(sums.means())
    assert means.dtype == dtype
    expected = np.stack([X[k::4].mean(axis=0, dtype=float) for k in range(4)])
    assert_allclose(means[0], expected, rtol=4 * np.finfo(dtype).eps)
    rounding = 1e4 * np.finfo(dtype).eps * engine.frame.factor
    assert_allclose(table.place(means)[0], table.sums(brought, 4).means()[0], atol=rounding)
    assert_allclose(engine.frame.place(means)[0], sums.means()[0], atol=rounding)
    assert_array_equal(engine.restore(engine.frame.place(X[None, :4]))[0], X[:4])


@each_kind
@each_dtype
def test_all_engines_see_the_data_in_the_same_frame(kind, dtype):
    rng = np.random.default_rng(8)
    X = (rng.normal(size=(700, 5)) * [1, 10, 0.1, 1, 1] + 50).astype(dtype)
    X[:, 3] = 7
    X[rng.random(700) < 0.02, 3] = 2000
    incomplete = np.where(rng.random(X.shape) < 0.1, dtype(np.nan), X)
    incomplete[:600, 4] = np.nan
    for data, plain in ((X, MemoryEngine), (incomplete, incomplete_engine)):
        found, expected = kind.engine(data).frame, plain(data).frame
        for part, value in zip(found, expected, strict=True):
            assert_array_equal(part, value)


# ---- Trimming


def call_trim(kind, labels, costs, m):
    engine = plain_engine(kind, np.zeros((labels.shape[1], 1)))
    table = engine.table(np.ones((1, 1)))
    brought = Assignment(kind.brought(engine, labels), kind.brought(engine, costs))
    groups, within = table.trim(brought, m)
    return kind.numpy(groups), within


@each_kind
@few
@given(seed=seeds, n=st.integers(1, 60), levels=st.integers(1, 20), data=st.data())
def test_trim_takes_the_largest_and_the_lower_number_in_a_tie(kind, seed, n, levels, data):
    m = data.draw(st.integers(0, n))
    rng = np.random.default_rng(seed)
    labels, costs = rng.integers(0, 4, (3, n), np.int32), rng.integers(0, levels, (3, n))
    groups, within = call_trim(kind, labels, costs.astype(np.float32), m)
    expected = plain_trim(labels, costs, m)
    assert_array_equal(groups, expected[0])
    assert_array_equal(within, expected[1])


@each_kind
@each_dtype
@pytest.mark.parametrize("shape", SHAPES)
def test_trim_of_many_cases(kind, dtype, shape):
    rng = np.random.default_rng(3)
    costs = np.array([SHAPES[shape](rng) for _ in range(2)], dtype)
    n = costs.shape[1]
    labels = rng.integers(0, 9, costs.shape, np.int32)
    for m in (0, 1, 2, 150, n // 10, n // 2, n - 2, n - 1, n):
        groups, within = call_trim(kind, labels, costs, m)
        expected = plain_trim(labels, costs, m)
        assert_array_equal(groups, expected[0], err_msg=f"m={m}")
        assert_allclose(within, expected[1], rtol=1e-9, atol=1e-9, err_msg=f"m={m}")


@each_kind
def test_outlying_costs_leave_no_trace_in_the_sum_of_the_others(kind):
    costs = np.ones((1, 50))
    costs[0, [4, 20, 30]] = 1e25
    groups, within = call_trim(kind, np.zeros((1, 50), np.int32), costs, 3)
    assert_array_equal(np.flatnonzero(groups[0] < 0), [4, 20, 30])
    assert within[0] == 47


@each_kind
def test_farthest_takes_the_lower_number_in_a_tie_and_infinite_ones_first(kind):
    engine = plain_engine(kind, np.zeros((6, 1)))
    distances = np.array([[1.0, 5, 5, 0, 5, 9], [2, 2, 2, 2, 2, 2], [1, np.inf, 3, 8, np.inf, 2]])
    brought = kind.brought(engine, distances)
    mask, largest = engine.farthest(brought, 3)
    mask = kind.numpy(mask)
    assert_array_equal(largest, [9, 2, np.inf])
    for row, expected in zip(mask, ([1, 2, 5], [0, 1, 2], [1, 3, 4]), strict=True):
        assert_array_equal(np.flatnonzero(row), expected)
    assert not kind.numpy(engine.farthest(brought, 0)[0]).any()
    assert kind.numpy(engine.farthest(brought, 6)[0]).all()


# ---- Sums and distances


@each_kind
@each_dtype
@few
@given(seed=seeds, n=st.integers(1, 90), K=st.integers(1, 5) | st.sampled_from([33, 90, 200]))
def test_shifted_sums_are_those_of_the_new_groups(kind, dtype, seed, n, K):
    rng = np.random.default_rng(seed)
    X, location = whole(rng, (n, 4), dtype), whole(rng, 4)
    engine = plain_engine(kind, X, location)
    before, after = rng.integers(-1, K, (2, 3, n), np.int32)
    brought = [kind.brought(engine, groups) for groups in (before, after)]
    for owner in (engine, engine.table(np.ones((1, 4)))):
        sums = owner.sums(brought[0], K)
        for groups in (before, after):
            expected = plain_sums(X - location, groups, K)
            assert_array_equal(sums.totals, expected.totals)
            assert_array_equal(sums.counts, expected.counts)
            if groups is before:
                moved = owner.shift(sums, *brought)
                assert_array_equal(moved, (before != after).sum(axis=1))


@each_kind
@few
@given(seed=seeds, n=st.integers(4, 60), own=st.booleans(), data=st.data())
def test_regroup_trims_and_shifts(kind, seed, n, own, data):
    m = data.draw(st.integers(0, n - 1))
    rng = np.random.default_rng(seed)
    X, centers = whole(rng, (n, 3), size=3), whole(rng, (2, 3, 3), size=3)
    weights, before = whole_weights(rng, 2 if own else 1, 3), rng.integers(-1, 3, (2, n), np.int32)
    engine = plain_engine(kind, X)
    table, brought = engine.table(weights), kind.brought(engine, before)
    sums = table.sums(brought, 3)
    placed = table.place(centers)
    groups, within, moved = table.regroup(table.assign(placed), m, sums, brought)
    distances = squared_distances(X, centers, weights)
    labels = distances.argmin(axis=2).astype(np.int32)
    expected = plain_trim(labels, distances.min(axis=2), m)
    assert_array_equal(kind.numpy(groups), expected[0])
    assert_array_equal(within, expected[1])
    assert_array_equal(moved, (expected[0] != before).sum(axis=1))
    columns = np.flatnonzero(weights.any(axis=0))
    assert_array_equal(sums.totals, plain_sums(X[:, columns], expected[0], 3).totals)


@each_kind
@each_dtype
@few
@given(seed=seeds, n=st.integers(1, 60), runs=st.integers(1, 3), own=st.booleans())
def test_distances_to_the_own_center(kind, dtype, seed, n, runs, own):
    rng = np.random.default_rng(seed)
    X, location = whole(rng, (n, 5), dtype), whole(rng, 5)
    weights = whole_weights(rng, runs if own else 1, 5)
    centers, labels = whole(rng, (runs, 3, 5)), rng.integers(0, 3, (runs, n), np.int32)
    engine = plain_engine(kind, X, location)
    for given_weights, used in ((weights, weights), (np.ones((1, 5)), np.ones(5))):
        found = engine.distances(kind.brought(engine, labels), centers, given_weights)
        expected = own_columns(squared_distances(X - location, centers, used), labels)
        assert_array_equal(kind.numpy(found), expected)
    if hasattr(engine, "blocks"):
        return  # these are asked of the engine of each block
    expected = squared_distances(X - location, centers[:1], weights[0])[0]
    assert_array_equal(kind.numpy(engine.squared(engine.restore(centers)[0], weights[0])), expected)
    found = kind.numpy(engine.transform(engine.restore(centers)[0], weights[0]))
    rounding = 5 * np.finfo(dtype).eps  # roots of torch are not NumPy's
    assert_allclose(found, np.sqrt(expected), rtol=rounding)


@each_kind
def test_between_sums_are_those_of_the_definition(kind):
    rng = np.random.default_rng(9)
    X, groups = rng.normal(size=(60, 5)), rng.integers(-1, 3, (2, 60), np.int32)
    engine = kind.engine(X)
    brought = kind.brought(engine, groups)
    between = engine.between(engine.sums(brought, 3), brought, np.ones((2, 5)))
    for found, group in zip(between, groups, strict=True):
        assert_allclose(found * engine.unit, plain_between(X, group, 3, np.ones(5)), rtol=1e-9)


@each_kind
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_single_moves_are_those_in_memory(kind, missing, seed):
    rng = np.random.default_rng(seed)
    X, weights, before = rng.normal(size=(60, 8)), rng.random((2, 8)), partitions(rng, 2, 60, 3, 5)
    X[rng.random(X.shape) < 0.25 * missing] = np.nan
    engine, memory = kind.engine(X, missing=missing), MemoryEngine(X, missing=missing)
    found = engine.table(weights).single_moves(kind.brought(engine, before), 3)
    groups, sums = memory.table(weights).single_moves(before, 3)
    assert_array_equal(kind.numpy(found.groups), groups)
    assert_allclose(found.sums.totals, sums.totals, atol=1e-9)
    fresh = engine.table(weights).sums(found.groups, 3)
    assert_allclose(found.sums.totals, fresh.totals, atol=1e-9)
    assert_array_equal(found.sums.counts, fresh.counts)
    for start, end, own in zip(before, groups, weights, strict=True):
        assert plain_within(X, end, 3, own) < plain_within(X, start, 3, own)


@each_kind
def test_a_part_is_the_engine_of_its_cases(kind):
    rng = np.random.default_rng(11)
    X, index = whole(rng, (70, 4)), np.array([0, 3, 4, 30, 31, 69])
    incomplete = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    centers = whole(rng, (1, 2, 4))
    for data, plain in ((X, MemoryEngine), (incomplete, incomplete_engine)):
        engine = plain_engine(kind, data)
        part, expected = engine.part(index), plain(data[index], frame=engine.frame)
        assert part.n_cases == 6
        found = part.table(np.ones((1, 4))).assign(centers)
        assert_array_equal(
            from_anywhere(found.labels), expected.table(np.ones((1, 4))).assign(centers).labels
        )


# ---- Arrays of cases


def draw_cases(seed, n=50, K=3):
    rng = np.random.default_rng(seed)
    groups = rng.integers(-1, K, (3, n), np.int32)
    groups[1] = np.where(groups[0] < 0, -1, (groups[0] + 1) % K)  # the same, numbered otherwise
    return groups, rng.random((3, n)) < 0.3, rng.integers(0, 9, (3, n)).astype(float)


@each_kind
def test_arrays_are_taken_apart_and_put_together(kind):
    groups, masks, costs = draw_cases(12)
    engine = plain_engine(kind, np.zeros((50, 1)))
    arrays, brought = engine.arrays, kind.brought(engine, groups)
    for runs in (np.array([2, 0]), slice(1, 3), slice(0, 1)):
        assert_array_equal(kind.numpy(arrays.take(brought, runs)), groups[runs])
    joined = arrays.join([brought, arrays.take(brought, np.array([1]))])
    assert_array_equal(kind.numpy(joined), np.concatenate([groups, groups[1:2]]))
    row = arrays.take(brought, slice(1, 2))[0, ...]
    assert_array_equal(kind.numpy(row), groups[1])
    assert_array_equal(kind.numpy(row[None, ...]), groups[1:2])
    assert_array_equal(kind.numpy(brought < 0), groups < 0)
    out, other = (kind.brought(engine, mask) for mask in (masks, groups < 0))
    assert_array_equal(kind.numpy(arrays.without(brought, out)), np.where(masks, -1, groups))
    assert_array_equal(kind.numpy(out & ~other), masks & (groups >= 0))
    assert_array_equal(kind.numpy(out | other), masks | (groups < 0))
    own = kind.brought(engine, costs)
    assert_array_equal(kind.numpy(own * 0.5), costs / 2)
    assert_array_equal(kind.numpy(own > 3), costs > 3)


@each_kind
def test_arrays_are_counted_and_distinguished(kind):
    groups, masks, costs = draw_cases(13)
    engine = plain_engine(kind, np.zeros((50, 1)))
    arrays, brought = engine.arrays, kind.brought(engine, groups)
    assert_array_equal(arrays.sizes(brought, 4), NUMPY.sizes(groups, 4))
    other = groups.copy()
    other[2, 49] = (other[2, 49] + 2) % 3
    differ = arrays.differ(brought, kind.brought(engine, other))
    assert_array_equal(differ, [False, False, True])
    assert arrays.keys(brought, 3) == NUMPY.keys(groups, 3)
    keys = arrays.keys(brought, 3, kind.brought(engine, masks))
    assert keys == NUMPY.keys(groups, 3, masks)
    assert len(set(arrays.keys(brought, 3))) == 2
    first = arrays.take(brought, slice(0, 1))
    for most in (2, 100):
        expected = NUMPY.first_members(groups[:1], 2, most)
        assert_array_equal(arrays.first_members(first, 2, most), expected)
    row, out = (kind.brought(engine, part[:1])[0, ...] for part in (costs, masks))
    assert arrays.total(row, out) == costs[0, ~masks[0]].sum()


@each_kind
@pytest.mark.parametrize("n", [1, 2, 7, 50])
@pytest.mark.parametrize("infinite", [0, 1, 3])
def test_the_spread_is_the_median_and_the_median_deviation(kind, n, infinite):
    costs = np.random.default_rng(n).exponential(size=n)
    costs[:infinite] = np.inf
    engine = plain_engine(kind, np.zeros((n, 1)))
    row = kind.brought(engine, costs[None])[0, ...]
    assert_allclose(engine.arrays.spread(row), NUMPY.spread(costs), rtol=1e-15)


@each_kind
def test_cube_roots_are_of_costs_times_the_factor_of_their_group(kind):
    rng = np.random.default_rng(0)
    costs, groups = rng.exponential(size=50), rng.integers(-1, 3, 50).astype(np.int32)
    costs[7], factors = np.inf, np.array([1.0, 2.5, 4.0])
    engine = plain_engine(kind, np.zeros((50, 1)))
    arrays = engine.arrays
    brought = (kind.brought(engine, part[None])[0, ...] for part in (costs, groups))
    found = kind.numpy(arrays.cube_roots(*brought, factors))
    scaled = [cost * (factors[k] if k >= 0 else 1) for cost, k in zip(costs, groups, strict=True)]
    assert_allclose(found, np.cbrt(scaled), rtol=1e-14)


@each_kind
@pytest.mark.parametrize("missing", [False, True])
def test_rows_are_the_data_as_they_were_given(kind, missing):
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[::7, 1] = np.nan if missing else 0
    engine, cases = kind.engine(X), np.array([0, 3, 7, 20, 39])
    assert_array_equal(engine.rows(cases), X[cases])
    assert_array_equal(engine.columns_of(cases, np.array([0, 2])), X[cases][:, [0, 2]])


@each_kind
@few
@given(seed=seeds, n=st.integers(4, 30), K=st.integers(2, 5))
def test_empty_clusters_get_the_most_expensive_cases(kind, seed, n, K):
    rng = np.random.default_rng(seed)
    groups = rng.integers(-1, K, (3, n), np.int32)
    groups[groups == rng.integers(0, K)] = -1
    costs = rng.integers(0, 4, (3, n)).astype(float)
    engine = plain_engine(kind, np.zeros((n, 1)))
    counts = NUMPY.sizes(groups, K).astype(float)
    brought = kind.brought(engine, groups), kind.brought(engine, costs)
    found = engine.arrays.fill_empty(brought[0], counts, brought[1])
    assert_array_equal(kind.numpy(found), NUMPY.fill_empty(groups, counts, costs))


# ---- The data


@each_kind
def test_what_the_data_are_like(kind):
    rng = np.random.default_rng(14)
    X = whole(rng, (40, 3), size=1)
    X[7, 1], X[8, 1] = -0.0, 0.0
    engine = kind.engine(X)
    distinct = len(np.unique(X + 0.0, axis=0))
    assert engine.distinct(1000) == distinct
    assert engine.distinct(3) == 3
    assert kind.engine(np.ones((9, 2))).distinct(5) == 1
    assert engine.largest_cell() == 1
    assert engine.n_missing == engine.n_unobserved == 0
    assert (engine.n_cases, engine.n_features) == (40, 3)
    assert engine.little_seen(np.ones(3), 0.1).total == 0
    assert_array_equal(engine.equal_weights(), np.ones((1, 3)))
    assert_array_equal(engine.numbers(np.array([3, 8])), [3, 8])


def incomplete_data(seed=15, n=40, p=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[rng.random(X.shape) < 0.25] = np.nan
    X[np.arange(n), np.arange(n) % (p - 1)] = (
        1.5  # no case is unobserved, but of the last feature...
    )
    X[[0, 5, 6, 30]] = np.nan  # ... and of these
    return X


@each_kind
def test_unobserved_cases_are_left_out_and_put_back(kind):
    X, unobserved = incomplete_data(), np.isin(np.arange(40), [0, 5, 6, 30])
    engine = kind.engine(X, drop_unobserved=True)
    assert (engine.n_cases, engine.n_unobserved) == (36, 4)
    assert engine.n_missing == np.isnan(X[~unobserved]).sum()
    assert_array_equal(
        engine.numbers(np.array([0, 4, 35])), np.flatnonzero(~unobserved)[[0, 4, 35]]
    )
    row = np.arange(36, dtype=np.int32)
    brought = kind.brought(engine, row[None])[0, ...]
    returned = kind.numpy(engine.returned(brought, -7))
    assert_array_equal(returned[~unobserved], row)
    assert_array_equal(returned[unobserved], -7)
    weights = np.array([1.0, 0, 0, 0, 0])
    seen = np.flatnonzero(np.isnan(X[~unobserved, 0]))
    little = engine.little_seen(weights, 0.1)
    assert little.total == len(seen)
    assert_array_equal(little.first, seen)


@each_kind
def test_data_that_are_unobserved_all_over_are_refused(kind):
    for n, where in ((6, "any of its 6 cases"), (1, "its only case")):
        with pytest.raises(ValueError, match=f"no observed cell in {where};"):
            kind.engine(np.full((n, 2), np.nan), drop_unobserved=True)


@each_kind
def test_complete_cases_have_no_missing_cells_once_unobserved_ones_are_out(kind):
    X = np.random.default_rng(16).normal(size=(20, 3))
    X[4] = np.nan
    engine = kind.engine(X, drop_unobserved=True)
    assert engine.n_missing == 0
    assert not engine.sums(kind.brought(engine, np.zeros((1, 19), np.int32)), 1).factored


# ---- Missing cells


def incomplete_scene(seed):
    X = incomplete_data(seed)
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(2, 3, 5))
    centers[rng.random(centers.shape) < 0.2] = np.nan
    weights = rng.random((2, 5)) * (rng.random((2, 5)) < 0.7)
    weights[:, -1] = 0.5
    return X, rng.integers(-1, 3, (2, 40), np.int32), centers, weights


@each_kind
@pytest.mark.parametrize("seed", range(4))
def test_distances_with_missing_cells(kind, seed):
    X, groups, centers, weights = incomplete_scene(seed)
    engine, labels = kind.engine(X), np.maximum(groups, 0)
    brought = kind.brought(engine, labels)
    for given_weights, used in ((weights, weights), (engine.equal_weights(), np.ones((2, 5)))):
        found = engine.distances(brought, engine.frame.place(centers), given_weights)
        found = kind.numpy(found) * engine.unit
        for r, label in enumerate(labels):
            expected = plain_distances(X, centers[r], used[r])[np.arange(40), label]
            assert_allclose(found[r], expected, rtol=1e-9, atol=1e-12)


@each_kind
@pytest.mark.parametrize("holes", [False, True], ids=["complete", "missing"])
def test_cells_whose_squares_overflow_count_only_where_they_have_weight(kind, holes):
    """0 times infinity would be no number."""
    X = np.random.default_rng(0).normal(size=(6, 3))
    X[2, 1], X[4, 1] = 1e200, -1e300
    if holes:
        X[3, 2] = np.nan
    engine = plain_engine(kind, X)
    labels = kind.brought(engine, np.zeros((2, 6), np.int32))
    weights = np.array([[0.5, 0.0, 0.5], [0.5, 0.5, 0.0]])
    with np.errstate(over="ignore"):  # as in a fit
        found = kind.numpy(engine.distances(labels, np.zeros((2, 1, 3)), weights))
    assert np.isfinite(found[0]).all()
    assert_array_equal(np.flatnonzero(np.isinf(found[1])), [2, 4])
    assert not np.isnan(found).any()


@each_kind
@pytest.mark.parametrize("seed", range(4))
def test_assign_and_exclude_with_missing_cells(kind, seed):
    X, groups, centers, weights = incomplete_scene(seed)
    engine = kind.engine(X)
    table = engine.table(weights)
    labels, costs = map(kind.numpy, table.assign(table.place(centers)))
    excluded = asked(kind, engine, table.exclude, groups)
    for r in range(2):
        plain = plain_distances(X, centers[r], weights[r])
        blind, reached = np.isinf(plain).all(axis=1), plain[np.arange(40), labels[r]]
        assert_allclose(reached[~blind], plain[~blind].min(axis=1), rtol=1e-9, atol=1e-12)
        assert_allclose(costs[r][~blind] * engine.unit, reached[~blind], rtol=1e-9, atol=1e-12)
        assert_array_equal(labels[r][blind], 0)
        assert_array_equal(costs[r][blind], 0)
        unseen = ~(~np.isnan(X) @ (weights[r] > 0))
        assert_array_equal(excluded[r], np.where(unseen, -1, groups[r]))


@each_kind
@pytest.mark.parametrize("seed", range(4))
def test_means_and_between_sums_with_missing_cells(kind, seed):
    X, groups, _, weights = incomplete_scene(seed)
    engine = kind.engine(X)
    brought, before = (kind.brought(engine, part) for part in (groups, np.roll(groups, 3)))
    sums = engine.sums(before, 3)
    assert_array_equal(engine.shift(sums, before, brought), (groups != np.roll(groups, 3)).sum(1))
    between = engine.between(sums, brought, weights) * engine.unit
    for r, group in enumerate(groups):
        assert_allclose(engine.restore(sums.means())[r], plain_means(X, group, 3), atol=1e-12)
        assert_allclose(between[r], plain_between(X, group, 3, weights[r]), atol=1e-10)


@each_kind
def test_regroup_with_missing_cells_leaves_blind_cases_out(kind):
    X, before, centers, weights = incomplete_scene(17)
    centers = np.nan_to_num(centers)
    engine, plain = kind.engine(X), incomplete_engine(X)
    brought = kind.brought(engine, before)
    table, expected = engine.table(weights), plain.table(weights)
    sums, plain_sums_ = table.sums(brought, 3), expected.sums(before, 3)
    placed = table.place(centers)
    groups, within, moved = table.regroup(table.assign(placed), 4, sums, brought)
    trimmed = expected.regroup(expected.assign(placed), 4, plain_sums_, before)
    assert_array_equal(kind.numpy(groups), trimmed.groups)
    assert_array_equal(moved, trimmed.moved)
    assert_allclose(within, trimmed.within, rtol=1e-12)
    assert_allclose(sums.totals, plain_sums_.totals, atol=1e-12)
    trimmed_once = kind.numpy(table.trim(table.assign(placed), 4).groups)
    assert_array_equal(trimmed_once, trimmed.groups)


@each_kind
def test_set_aside_are_the_trimmed_cases_that_are_not_blind(kind):
    X, groups, _, weights = incomplete_scene(18)
    engine, plain = kind.engine(X), incomplete_engine(X)
    found = engine.set_aside(kind.brought(engine, groups[:1]), weights[0])
    assert_array_equal(kind.numpy(found), plain.set_aside(groups[:1], weights[0]))


@each_kind
def test_a_feature_without_a_cell_has_no_weight(kind):
    X = incomplete_data(19)
    X[:, 2] = np.nan
    engine = kind.engine(X)
    assert_array_equal(engine.equal_weights(), [[1, 1, 0, 1, 1]])
    groups = kind.brought(engine, np.zeros((1, 40), np.int32))
    between = engine.between(engine.sums(groups, 1), groups, engine.equal_weights())
    assert between[0, 2] == -1


@each_kind
def test_the_data_stay_as_they_are(kind):
    """Also where a column has no observed cell among the rows that the frame is made of."""
    X = np.random.default_rng(0).normal(size=(200, 4))
    X[:, 3] = np.nan
    X[[5, 50], 3] = 1.0
    before = X.copy()
    engine = kind.engine(X)
    engine.table(engine.equal_weights())
    assert_array_equal(X, before)


# ---- Case weights: whole masses are copies


fewer, K = settings(max_examples=6), 3


class Twins:
    """The same data as cases with masses, and as copies."""

    def __init__(self, kind, seed, missing=False, n=20, p=4):
        self.kind, self.rng = kind, np.random.default_rng(seed)
        self.masses = self.rng.integers(1, 4, n)
        self.case_of = np.repeat(np.arange(n), self.masses)
        X = whole(self.rng, (n, p), size=5)
        X[:3] *= 4
        if missing:
            X[self.rng.random((n, p)) < 0.15] = np.nan
            X[np.isnan(X).all(axis=1)] = 1.0
        frame = plain_frame(p)
        self.one = kind.engine(X, frame=frame, missing=missing, masses=self.masses.astype(float))
        self.other = kind.engine(X[self.case_of], frame=frame, missing=missing)
        self.weights = whole_weights(self.rng, 1, p)

    def both(self, array):
        """Bring an array (runs, n) to both engines."""
        copies = np.ascontiguousarray(array[:, self.case_of])
        return self.kind.brought(self.one, array), self.kind.brought(self.other, copies)

    def trimmed(self, m, runs=2):
        """Trim costs with ties by both engines; return tables and groupings."""
        tables = [engine.table(self.weights) for engine in (self.one, self.other)]
        n = len(self.masses)
        labels = self.both(self.rng.integers(0, K, (runs, n), np.int32))
        costs = self.both(self.rng.integers(0, 9, (runs, n)).astype(float))
        pairs = zip(tables, map(Assignment, labels, costs), strict=True)
        return tables, [table.trim(assignment, m) for table, assignment in pairs]


def assert_same_sums(one, other):
    assert_allclose(one.totals, other.totals, atol=1e-9)
    assert_allclose(one.counts, other.counts, atol=1e-9)


@each_kind
@pytest.mark.parametrize("missing", [False, True])
@fewer
@given(seed=seeds, m=st.integers(0, 15))
def test_trimming_by_mass_is_trimming_of_copies(kind, missing, seed, m):
    twins = Twins(kind, seed, missing)
    tables, (one, other) = twins.trimmed(m)
    assert_allclose(one.within, other.within, rtol=1e-12)
    sizes = [e.arrays.sizes(g.groups, K) for e, g in ((twins.one, one), (twins.other, other))]
    assert_allclose(sizes[0], sizes[1])
    for owners in (tables, (twins.one, twins.other)):
        sums = [own.sums(each.groups, K) for own, each in zip(owners, (one, other), strict=True)]
        assert_same_sums(*sums)


@each_kind
@pytest.mark.parametrize("missing", [False, True])
@fewer
@given(seed=seeds, m=st.integers(0, 9), far=st.integers(0, 9))
def test_two_trimmed_sets_take_what_copies_would_lose(kind, missing, seed, m, far):
    twins = Twins(kind, seed, missing)
    engines = twins.one, twins.other
    labels = twins.both(twins.rng.integers(0, K, (2, 20), np.int32))
    groupings = twins.trimmed(m)[1]
    found = []
    for engine, own, grouping in zip(engines, labels, groupings, strict=True):
        sums = engine.sums(grouping.groups, K)
        remaining = engine.take_out_farthest(grouping.groups, own, sums, far)
        weights = np.repeat(np.abs(twins.weights) + 0.0, 2, axis=0)
        between = engine.between(remaining.sums, remaining.kept, weights)
        found.append((remaining.sums, engine.sums(remaining.kept, K), between))
    assert_same_sums(found[0][0], found[1][0])
    assert_same_sums(found[0][1], found[1][1])
    assert_allclose(found[0][2], found[1][2], rtol=1e-9, atol=1e-9)


@each_kind
@fewer
@given(seed=seeds, m=st.integers(1, 12))
def test_sums_follow_from_one_grouping_to_the_next(kind, seed, m):
    twins = Twins(kind, seed)
    tables, (one, other) = twins.trimmed(m)
    fresh = twins.both(twins.rng.integers(-1, K, (2, 20), np.int32))
    for table, grouping, after in zip(tables, (one, other), fresh, strict=True):
        sums = table.sums(grouping.groups, K)
        table.shift(sums, grouping.groups, after)
        assert_same_sums(sums, table.sums(after, K))
        table.shift(sums, after, grouping.groups)
        assert_same_sums(sums, table.sums(grouping.groups, K))


def for_seeds(table, array):
    """Bring an array to where starts are drawn: blocks gather it."""
    return table.arrays.gathered(array) if hasattr(table, "of_moved") else array


@each_kind
@fewer
@given(seed=seeds, m=st.integers(0, 12))
def test_totals_medians_and_draws_are_those_of_copies(kind, seed, m):
    twins = Twins(kind, seed)
    tables, groupings = twins.trimmed(m, runs=1)
    costs = twins.both(twins.rng.integers(0, 9, (1, 20)).astype(float))
    uniforms, found = np.array([[0.01, 0.3, 0.77, 0.999]]), []
    for table, grouping, cost in zip(tables, groupings, costs, strict=True):
        arrays, seeds = table.arrays, seeds_of(table)
        own = cost[0, ...]
        out = (grouping.groups < 0)[0, ...]
        found.append((arrays.total(own, out), *arrays.spread(own), arrays.count(own > 4)))
        assert table.mass == twins.masses.sum()
        assert len(seeds.cases_at(uniforms)[0]) == 4
    assert_allclose(found[0], found[1])
    drawn = [
        seeds_of(table).arrays.draw(
            for_seeds(table, cost), for_seeds(table, grouping.groups), uniforms
        )
        for table, grouping, cost in zip(tables, groupings, costs, strict=True)
    ]
    assert_array_equal(drawn[0], twins.case_of[drawn[1]])
    positions = np.arange(twins.masses.sum()) + 0.5
    assert_array_equal(seeds_of(tables[0]).cases_at(positions), twins.case_of)


@each_kind
@pytest.mark.parametrize("missing", [False, True])
@fewer
@given(seed=seeds, m=st.integers(0, 6))
def test_single_moves_lower_the_within_sum_and_keep_their_sums(kind, missing, seed, m):
    twins = Twins(kind, seed, missing)
    (table, _), (grouping, _) = twins.trimmed(m)
    before, after = table.sums(grouping.groups, K), table.single_moves(grouping.groups, K)
    assert_same_sums(after.sums, table.sums(after.groups, K))
    assert_allclose(after.sums.counts.sum(axis=1), before.counts.sum(axis=1))
    if not missing and m == 0:
        # Nothing is exchanged, and the total sum of squares stays: what lies between rises.
        ends = [sums.between() @ table.weights[0] for sums in (before, after.sums)]
        assert (ends[1] >= ends[0] - 1e-9).all()


@each_kind
def test_a_move_that_gains_is_made_by_mass(kind):
    """At 0 and 4 one cluster, at 9 the other: with 5 cases at 0 the one at 4 is better off at 9."""
    X, groups = np.array([[0.0], [4.0], [9.0]]), np.array([[0, 0, 1]], np.int32)
    moved = {}
    for name, masses in (("heavy", np.array([5.0, 1.0, 1.0])), ("alike", None)):
        engine = kind.engine(
            X, frame=plain_frame(1), **({} if masses is None else {"masses": masses})
        )
        found = engine.table(np.ones((1, 1))).single_moves(kind.brought(engine, groups), 2)
        moved[name] = engine.arrays.to_numpy(found.groups)[0]
    assert_array_equal(moved["alike"], [0, 0, 1])
    assert_array_equal(moved["heavy"], [0, 1, 1])


@each_kind
def test_a_sample_is_drawn_in_proportion_to_mass(kind, monkeypatch):
    monkeypatch.setattr(search, "SAMPLE_CELLS", 400)
    monkeypatch.setattr(search, "FEWEST_CASES", 200)
    rng = np.random.default_rng(0)
    masses = np.where(np.arange(600) % 100 == 0, 60.0, rng.uniform(0.1, 1, 600))
    engine = kind.engine(rng.normal(size=(600, 4)), masses=masses)
    drawn = np.zeros(600)
    for seed in range(60):
        found = search.search_cases(engine, 2, np.random.RandomState(seed))
        assert found.masses.sum() == 200
        assert (np.diff(found.numbers) > 0).all()
        drawn[found.numbers] += found.masses
    expected = 60 * 200 * masses / masses.sum()
    assert_allclose(drawn[::100], expected[::100], rtol=0.03)
    light = np.arange(600) % 100 > 0
    heavier = light & (masses > 0.55)
    assert_allclose(drawn[heavier].sum(), expected[heavier].sum(), rtol=0.03)
    assert_allclose(drawn[light & ~heavier].sum(), expected[light & ~heavier].sum(), rtol=0.06)
    part = engine.part(*found)
    assert part.mass == 200
    assert engine.part(found.numbers).mass == pytest.approx(masses[found.numbers].sum())


# ---- Cells whose squared error is bounded


def plain_bounded(X, centers, weights, limits):
    """The definition: cells that are missing count as the others of the case do on average."""
    squares = (X[:, None, :] - centers) ** 2
    seen = ~np.isnan(squares)
    sums = np.where(seen, np.minimum(squares, limits**2), 0) @ weights
    return sums * weights.sum() / (seen @ weights)


@each_kind
@pytest.mark.parametrize("missing", [False, True])
def test_every_engine_bounds_distances_and_sums(kind, missing):
    rng = np.random.default_rng(3)
    X, K = rng.normal(size=(41, 7)), 3
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    centers, weights = rng.normal(size=(K, 7)), np.array([0, 1, 2, 1, 0.5, 0, 1])
    limits = np.array([1, 1, 0.7, np.inf, 1.2, 1, 1])
    engine = BoundedEngine(kind.engine(X), limits)
    expected = plain_bounded(X, centers, weights, limits)
    labels = kind.numpy(engine.nearest(centers, weights))
    assert_array_equal(labels, expected.argmin(axis=1))
    placed = engine.frame.place(centers[None])
    run = kind.brought(engine, labels[None].astype(np.int32))
    found = kind.numpy(engine.distances(run, placed, weights[None]))[0] * engine.unit
    assert_allclose(found, expected.min(axis=1))
    sums = engine.sums(run, K)
    means = engine.restore(sums.means())[0]
    for k in range(K):
        own = X[labels == k]
        unflagged = np.abs(own - means[k]) <= limits
        assert_allclose(means[k], np.nanmean(np.where(unflagged, own, np.nan), axis=0))


# ---- Whole solutions


def grouped_features():
    """A table of which ten features each share a weight."""
    X = make_simulation(model=1, random_state=0).data[:, :40].copy()
    groups = check_groups([f"g{j // 10}" for j in range(40)], None, 40)
    return X, Problem(3, n_trim=2, l1_bound=1.5, feature_groups=groups), "random"


def many_clusters():
    """A table of so many clusters that they are split and merged."""
    X, _ = make_blobs(300, 4, centers=8, cluster_std=0.4, random_state=2)
    return X, Problem(8, n_trim=15, l1_bound=1.6, tol=1e-4), "robust"


@each_kind
@pytest.mark.parametrize("make", [grouped_features, many_clusters])
def test_every_engine_leads_to_the_same_solution(kind, make):
    X, problem, init = make()
    starts = Starts((init,), np.random.default_rng(0).random((5, problem.n_clusters)))
    found, here = (solve(engine, problem, starts) for engine in (kind.engine(X), engine_for(X)))
    assert_array_equal(kind.numpy(found.labels), here.labels)
    assert_allclose(found.weights, here.weights, rtol=1e-9, atol=1e-12)
    assert found.objective == pytest.approx(here.objective, rel=1e-9)
