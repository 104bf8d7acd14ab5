"""The passes, compiled and in NumPy, against definitions written down as plainly as can be.

They are called as the solver calls them, through an engine whose frame leaves the data as they are.
Where data are small whole numbers every sum and product is exact, in single precision too: then
results must agree to the last bit, ties included.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from definitions import LARGE, partitions, plain_sums, squared_distances, whole, whole_weights
from engine_kinds import _passes, each_pass, needs_compiler, threads_everywhere
from rskc.engines import Table, engine_for, memory, passes_numpy
from rskc.engines.arrays import labels_of as groups_of

each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
seeds = st.integers(0, 2**32 - 1)


def engine_of(passes, X, location=None, threads=1, factor=1.0, limit=np.inf):
    """An engine whose tables hold X - location as it is, unless they shall scale and cut it."""
    location = np.zeros(X.shape[1]) if location is None else location
    frame = memory.Frame(location, factor, np.full(X.shape[1], limit))
    return memory.MemoryEngine(X, frame=frame, n_threads=threads, passes=passes)


def table_of(passes, X, weights, threads=1):
    return engine_of(passes, X, threads=threads).table(weights, X.dtype)


# ---- Definitions


def within_sum(X, weights, group, K):
    total = 0.0
    for k in range(K):
        rows = X[group == k].astype(np.float64)
        if len(rows):
            total += ((rows - rows.mean(axis=0)) ** 2).sum(axis=0) @ weights
    return total


def assert_same_sums(found, expected):
    assert_array_equal(found.totals, expected.totals)
    assert_array_equal(found.counts, expected.counts)


# ---- Tables


@each_pass
@each_dtype
def test_outlying_cells_are_cut_so_that_their_squares_stay_finite(passes, dtype):
    X = np.zeros((20, 3), dtype)
    X[4, 1], X[5, 1] = np.finfo(dtype).max, -np.finfo(dtype).max
    engine = engine_of(passes, X, limit=1e6)
    for table in (
        engine.table(np.ones((1, 3))),
        engine.compact_table(np.ones((1, 3)), engine.float32),
    ):
        assert_array_equal(table.cases(np.array([4, 5]))[:, 1], [1e6, -1e6])
        assert np.isfinite(table.norms()).all()
        assert np.isfinite(table.assign(np.zeros((1, 1, 3))).costs).all()


# ---- assign


def assigned(passes, X, centers, threads=1, dtype=np.float64):
    """Labels and costs of cases (n, q), for centers (runs, K, q)."""
    X, runs = np.ascontiguousarray(X), len(centers)
    blocks, ones = memory.to_blocks(X, passes.BLOCK), np.ones((1, X.shape[1]))
    labels, costs = np.empty((runs, len(X)), np.int32), np.empty((runs, len(X)), dtype)
    norms = np.full((1, len(X)), 1e4, dtype)
    passes.assign(blocks, passes.BLOCK, ones, centers, norms, None, threads, labels, costs)
    return labels, costs


@each_pass
@pytest.mark.parametrize("shape", [(700, 77, 3, 4), (60, 33, 2, 7), (5, 3, 1, 2), (263, 65, 1, 9)])
def test_cells_in_single_precision_are_multiplied_in_double(passes, shape):
    n, q, runs, K = shape
    rng = np.random.default_rng(0)
    X, centers = rng.standard_normal((n, q)).astype(np.float32), rng.standard_normal((runs, K, q))
    single, double = (assigned(passes, cells, centers) for cells in (X, X.astype(np.float64)))
    assert_array_equal(single[0], double[0])
    assert_allclose(single[1], double[1], rtol=1e-13)


@needs_compiler
def test_cells_in_double_precision_are_not_multiplied_in_single():
    with pytest.raises(TypeError, match="double precision"):
        assigned(_passes, np.ones((3, 2)), np.ones((1, 2, 2)), dtype=np.float32)


@needs_compiler
@pytest.mark.skipif(not _passes or not _passes.HAS_PRODUCTS, reason="needs AVX2 and FMA")
@each_dtype
def test_a_product_has_the_same_bits_in_any_company(dtype):
    """Of fewer cases, fewer runs and more threads: no matrix product of a BLAS promises that."""
    rng = np.random.default_rng(0)
    X, centers = rng.standard_normal((900, 70)).astype(dtype), rng.standard_normal((9, 5, 70))
    labels, costs = assigned(_passes, X, centers, 1, dtype)
    for cases, runs, threads in (
        (slice(3, 200), slice(0, 1), 1),
        (slice(250, 900), slice(2, 9), 2),
    ):
        some = assigned(_passes, X[cases], centers[runs], threads, dtype)
        assert_array_equal(some[0], labels[runs, cases])
        assert_array_equal(some[1], costs[runs, cases])


@each_pass
@each_dtype
@pytest.mark.parametrize(
    ("n", "q", "K", "runs"), [(3000, 11, 7, 3), (1025, 3, 40, 5), (70, 90, 2, 400)]
)
def test_assign_over_many_blocks(passes, dtype, n, q, K, runs):
    rng = np.random.default_rng(n)
    X, centers, ones = whole(rng, (n, q), dtype), whole(rng, (runs, K, q)), np.ones((1, q))
    labels, costs = table_of(passes, X, ones).assign(centers)
    for r in range(0, runs, 4):
        expected = squared_distances(X, centers[r : r + 1], ones)[0]
        assert_array_equal(labels[r], expected.argmin(axis=1))
        assert_array_equal(costs[r], expected.min(axis=1))


# ---- Sums and distances


@each_pass
@each_dtype
def test_sums_over_several_stripes(passes, dtype):
    rng = np.random.default_rng(5)
    X, location = whole(rng, (2 * LARGE, 3), dtype), whole(rng, 3)
    engine = engine_of(passes, X, location)
    groups = rng.integers(-1, 4, (2, len(X)), np.int32)
    for owner in (engine, engine.table(np.ones((1, 3)))):
        assert_same_sums(owner.sums(groups, 4), plain_sums(X - location, groups, 4))


# ---- Single moves


def move(passes, X, weights, groups, K, threads=1):
    """Groups and sums after single moves."""
    table = table_of(passes, X, weights, threads)
    return table.single_moves(groups, K)


def with_case(group, i, k):
    changed = group.copy()
    changed[i] = k
    return changed


def may_leave(group):
    return [i for i in np.flatnonzero(group >= 0) if (group == group[i]).sum() > 1]


def best_move(X, weights, group, K):
    """Least within sum when one case goes to another cluster."""
    tries = [with_case(group, i, k) for i in may_leave(group) for k in range(K)]
    return min((within_sum(X, weights, trial, K) for trial in tries), default=np.inf)


def best_exchange(X, weights, group, K):
    """Least within sum when the case whose leaving gains most makes room for a trimmed one.

    The two cases of a pair gain the same; then the one with which less can be had.
    """
    without = [with_case(group, i, -1) for i in may_leave(group)]
    sums = np.array([within_sum(X, weights, trial, K) for trial in without])
    out = np.flatnonzero(group < 0)
    reached = [
        min(within_sum(X, weights, with_case(trial, i, k), K) for i in out for k in range(K))
        for trial, left in zip(without, sums, strict=True)
        if left <= sums.min() + 1e-9 * sums.max() and len(out)
    ]
    return max(reached, default=np.inf)


@each_pass
@each_dtype
@given(
    seed=seeds,
    n=st.integers(8, 18),
    q=st.integers(1, 6),
    K=st.integers(1, 4),
    m=st.integers(0, 2),
    own=st.booleans(),
)
def test_single_moves_lower_the_within_sum_until_none_can(passes, dtype, seed, n, q, K, m, own):
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(n, q)).astype(dtype), rng.random((2 if own else 1, q))
    before = partitions(rng, 2, n, K, m)
    groups, sums = move(passes, X, weights, before, K)
    expected = plain_sums(X, groups, K)
    assert_allclose(sums.totals, expected.totals, atol=1e-12)
    assert_array_equal(sums.counts, expected.counts)
    assert (sums.counts > 0).all()
    assert_array_equal((groups < 0).sum(axis=1), m)
    for r, w in enumerate(np.broadcast_to(weights, (2, q))):
        start, end = within_sum(X, w, before[r], K), within_sum(X, w, groups[r], K)
        assert end < start or np.array_equal(groups[r], before[r])
        assert best_move(X, w, groups[r], K) >= end * (1 - 1e-9)
        assert best_exchange(X, w, groups[r], K) >= end * (1 - 1e-9)


@each_pass
def test_cases_that_are_all_alike_stay(passes):
    before = np.array([[0, 1, 2, 0, 1, -1]], np.int32)
    groups, _ = move(passes, np.ones((6, 2)), np.ones((1, 2)), before, 3)
    assert_array_equal(groups, before)


@needs_compiler
@each_dtype
@pytest.mark.parametrize("seed", range(4))
def test_rounds_that_look_at_some_cases_only_miss_no_move(dtype, seed):
    """Of clusters that lie apart most cases need not be screened again; the twin screens all."""
    rng = np.random.default_rng(seed)
    K, n, q = 4, 500, 40
    labels = rng.integers(0, K, n)
    X = (rng.normal(size=(n, q)) + 0.6 * rng.normal(size=(K, q))[labels]).astype(dtype)
    mixed = np.where(rng.random(n) < 0.15, rng.integers(0, K, n), labels)
    before = np.where(rng.random(n) < 0.05, -1, mixed)[None].astype(np.int32)
    weights = rng.random((1, q))
    groups, _ = move(_passes, X, weights, before, K)
    twin, _ = move(passes_numpy, X, weights, before, K)
    assert_array_equal(groups, twin)
    assert np.count_nonzero(groups != before) > 40


@needs_compiler
@each_dtype
def test_a_table_without_a_second_copy_row_by_row_is_the_same(dtype, monkeypatch):
    """Large tables are kept in blocks only; single cases are read from these."""
    rng = np.random.default_rng(11)
    X, weights, groups = (
        whole(rng, (700, 5), dtype),
        rng.random((2, 5)),
        partitions(rng, 2, 700, 3, 9),
    )

    def everything():
        table = table_of(_passes, X, weights)
        sums = table.sums(groups, 3)
        table.shift(sums, groups, np.roll(groups, 3, axis=1))
        moved, moved_sums = move(_passes, X, weights, groups, 3)
        cases = table.cases(np.arange(700)[::-1])
        return cases, sums.totals, sums.counts, moved, moved_sums.totals

    expected = everything()
    monkeypatch.setattr(memory.MemoryEngine, "rows_bytes", 0)
    for found, value in zip(everything(), expected, strict=True):
        assert_array_equal(found, value)


# ---- Threads


@needs_compiler
@each_dtype
def test_any_number_of_threads_gives_the_same_bits(dtype, monkeypatch):
    threads_everywhere(monkeypatch)
    rng = np.random.default_rng(10)
    n, q, K, runs = LARGE + 8192, 7, 4, 3
    X, weights = rng.normal(size=(n, q)).astype(dtype), rng.random((runs, q))
    centers, location = rng.normal(size=(runs, K, q)), rng.normal(size=q)
    few = partitions(rng, runs, 300, K, 9)

    def everything(threads):
        engine = engine_of(_passes, X, location, threads)
        table = engine.table(weights)
        assignment = table.assign(centers)
        groups, within = table.trim(assignment, n // 9)
        sums, all_sums = table.sums(groups, K), engine.sums(groups, K)
        table.shift(sums, groups, np.roll(groups, 5, axis=1))
        distances = engine.distances(assignment.labels, centers, weights)
        moved, moved_sums = move(_passes, X[:300], weights, few, K, threads)
        return [
            *(table.cases(np.arange(n)), table.norms(), *assignment, groups, within),
            *(sums.totals, sums.counts, all_sums.totals, all_sums.counts),
            *(distances, *engine.farthest(distances, n // 7)),
            *(moved, moved_sums.totals, moved_sums.counts),
        ]

    one = everything(1)
    for threads in (2, 3):
        for expected, found in zip(one, everything(threads), strict=True):
            assert_array_equal(found, expected)


# ---- Descents


def descents(seed, masses, missing):
    """A table of whole numbers in two threads, and where its runs begin; weights differ by run."""
    rng = np.random.default_rng(seed)
    n, q, K, runs = int(rng.integers(30, 600)), 5, int(rng.integers(1, 7)), 9
    X, weights = whole(rng, (n, q), size=4), whole_weights(rng, runs if seed % 2 else 1, q)
    X[rng.random(X.shape) < 0.2 * missing] = np.nan
    own = rng.integers(1, 4, n) * (1.0 if seed % 3 else 0.9) if masses else None
    engine = engine_for(X, masses=own, missing=missing, n_threads=2)
    cases = rng.integers(0, n, (runs, K))
    return engine, weights, cases, n // 7 + (0.5 if masses else 0)


@needs_compiler
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("masses", [False, True], ids=["cases", "masses"])
@pytest.mark.parametrize("ending", [(300, 0.0), (300, 0.02), (2, 0.0)])
@pytest.mark.parametrize("seed", range(4))
def test_a_descent_is_the_loop_over_passes(seed, masses, missing, ending):
    engine, weights, cases, m = descents(seed, masses, missing)
    table = engine.table(weights)
    centers = table.cases(cases)
    found = table.descend(centers, m, *ending)
    loop = Table.descend(table, centers, m, *ending)
    assert_array_equal(groups_of(found.groups), groups_of(loop.groups))
    assert not table.arrays.differ(found.groups, loop.groups).any()
    assert_array_equal(found.labels, loop.labels)
    assert_array_equal(found.converged, loop.converged)
    assert_allclose(found.within, loop.within, rtol=1e-9)


@needs_compiler
@each_dtype
def test_a_descent_is_the_same_for_any_number_of_threads_and_beside_any_others(dtype):
    engine, weights, cases, m = descents(1, False, True)
    table = engine.table(weights, np.dtype(dtype))
    centers = table.cases(cases).astype(np.float64)
    found = table.descend(centers, m, 300)
    table.n_threads = 1
    alone = [table.of_runs([r]).descend(centers[[r]], m, 300) for r in range(len(cases))]
    assert_array_equal(table.descend(centers, m, 300).within, found.within)
    for r, each in enumerate(alone):
        assert_array_equal(each.groups[0], found.groups[r])
        assert each.within[0] == found.within[r]


@needs_compiler
@pytest.mark.parametrize("masses", [False, True], ids=["cases", "masses"])
def test_a_descent_gives_empty_clusters_the_costliest_cases(masses):
    X = np.repeat(whole(np.random.default_rng(0), (12, 3)), 4, axis=0)
    engine = engine_for(X, masses=np.ones(48) if masses else None)
    table = engine.table(np.ones((1, 3)))
    centers = table.cases(np.array([[0, 0, 0, 0, 5], [0, 1, 2, 3, 3]]))
    found = table.descend(centers, 3, 1)
    loop = Table.descend(table, centers, 3, 1, 0.0)
    assert_array_equal(groups_of(found.groups), groups_of(loop.groups))
    assert (table.arrays.sizes(found.groups, 5) > 0).all()


# ---- Groups and draws


@each_pass
def test_sums_over_groups_and_trimmed_cases(passes):
    groups = np.array([[0, 2, -1, 2], [1, 1, 1, -1]], np.int32)
    values, out = np.array([1.0, 2.0, 4.0, 8.0]), np.empty((2, 4))
    passes.group_sums(groups, values, out)
    assert_array_equal(out, [[4, 1, 0, 10], [8, 0, 7, 0]])
    passes.group_sums(groups, None, out)
    assert_array_equal(out, [[1, 1, 0, 2], [1, 0, 3, 0]])


@each_pass
@each_dtype
def test_cases_are_drawn_in_proportion_to_their_chances(passes, dtype):
    chances = np.array([[1, 0, 0, 3], [0, 0, 0, 0]], dtype)
    uniforms = np.tile([0.0, 0.2, 0.25, 0.3, 0.99, 1.0], (2, 1))
    cases = np.empty(uniforms.shape, np.int64)
    passes.draw(chances, uniforms, cases)
    assert_array_equal(cases, [[0, 0, 3, 3, 3, 3], [0, 0, 1, 1, 3, 3]])
