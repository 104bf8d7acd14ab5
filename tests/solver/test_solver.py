"""The algorithm, part by part: weights, partitions, starts, alternation, and the whole."""

from dataclasses import replace
from functools import cache
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from sklearn.base import clone

from rskc import RobustSparseKMeans
from rskc.datasets import make_contaminated, make_figure1, make_masking, make_simulation
from rskc.engines import ArrayOps, Partitions, engine_for, memory
from rskc.metrics import classification_error_rate
from rskc.solver import Problem, Starts, alternate, solve, solve_path
from rskc.solver import search as search_module
from rskc.solver import solution as solution_module
from rskc.solver.alternate import count_weights, improve, is_sparse, lloyd, sparse_weights, weigh
from rskc.solver.search import (
    INITS,
    Sampled,
    plusplus_cases,
    random_cases,
    robust_cases,
    search_cases,
    search_size,
)

ALMOST_1 = np.nextafter(1.0, 0.0)

# ---- Weights

positive = st.floats(1e-3, 1e3) | st.sampled_from([0.0, 1.0, 2.0])
between_sums = st.lists(positive | st.floats(-10, 0), min_size=1, max_size=30).map(np.array)


def dual_bound(between, s):
    """The least, over D, of an upper bound on what any weights can reach: D s + ||(B - D)+||_2."""
    top = between.max()
    solution = minimize_scalar(
        lambda D: D * s + np.linalg.norm(np.maximum(between - D, 0)),
        bounds=(0, top),
        method="bounded",
        options={"xatol": 1e-14 * top, "maxiter": 2000},
    )
    return min(solution.fun, top * s, np.linalg.norm(np.maximum(between, 0)))


@given(between_sums, st.floats(0, 1))
def test_no_weights_reach_more_within_both_norms(between, share):
    s = 1 + share * (np.sqrt(len(between)) - 1)
    weights = sparse_weights(between, s)
    assert (weights >= 0).all()
    assert np.linalg.norm(weights) == pytest.approx(1, rel=1e-9)
    assert weights.sum() <= s * (1 + 1e-9)
    if between.max() > 0:
        assert weights @ between >= dual_bound(between, s) * (1 - 1e-8)
        assert (weights[between <= 0] == 0).all()
        order = np.argsort(between)
        gaps, steps = np.diff(between[order]), np.diff(weights[order])
        assert (steps[gaps > 0] >= 0).all()


@given(between_sums, st.floats(0, 1), st.sampled_from([1e-150, 1e-30, 1e30, 1e150]))
def test_weights_do_not_see_the_scale(between, share, scale):
    assume((between == 0).sum() == (between * scale == 0).sum())  # nothing becomes 0
    s = 1 + share * (np.sqrt(len(between)) - 1)
    expected = sparse_weights(between, s)
    found = sparse_weights(between * scale, s)
    assert found @ between == pytest.approx(expected @ between, rel=1e-9, abs=1e-12)
    distinct = np.sort(between[between > 0])
    if len(distinct) > 1 and (np.diff(distinct) > 1e-6 * distinct[1:]).all():
        assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 3e-7])
def test_features_that_are_all_alike_at_the_largest_bound(value):
    """Where s**2 rounds to more, or to less, than the number of features."""
    for p in range(1, 300):
        for s in (np.sqrt(p), 1 + (np.sqrt(p) - 1)):
            weights = sparse_weights(np.full(p, value), s)
            assert_allclose(weights, 1 / np.sqrt(p), rtol=1e-6)
            assert np.linalg.norm(weights) == pytest.approx(1, rel=1e-12)


def test_a_bound_that_does_not_bind_leaves_the_direction_of_the_sums():
    between = np.random.default_rng(0).random(50)
    expected = between / np.linalg.norm(between)
    for s in (expected.sum() * (1 + 1e-12), np.sqrt(50), 1e9):
        assert_allclose(sparse_weights(between, s), expected, rtol=1e-12)


@given(st.integers(0, 10**6), st.integers(1, 20))
def test_a_wanted_number_of_features_is_met(seed, wanted):
    between = np.random.default_rng(seed).permutation(np.geomspace(1, 100, 20))
    weights = count_weights(between, wanted)
    assert_array_equal(np.flatnonzero(weights), np.sort(np.argsort(-between)[:wanted]))
    assert np.linalg.norm(weights) == pytest.approx(1)
    assert_allclose(sparse_weights(between, weights.sum()), weights, atol=1e-9)


@given(st.integers(0, 10**6), st.integers(1, 8))
def test_sums_that_rounding_alone_sets_apart_tie(seed, wanted):
    """Halfway between them there is no threshold: no feature would be left."""
    rng = np.random.default_rng(seed)
    between = rng.integers(0, 3, 8) / 3
    rounded = between * (1 + np.spacing(1.0) * rng.integers(0, 3, 8))
    weights = count_weights(rounded, wanted)
    assert_array_equal(weights > 0, count_weights(between, wanted) > 0)
    assert np.linalg.norm(weights) == pytest.approx(1)


# ---- Partitions


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(2, 30))
def test_a_key_names_a_partition_whatever_its_numbering(seed, K, n):
    rng = np.random.default_rng(seed)
    groups = rng.integers(-1, K, n, np.int32)
    numbers = np.r_[rng.permutation(K), -1].astype(np.int32)  # -1 stays
    other = groups.copy()
    i = rng.integers(n)
    other[i] = -1 if other[i] >= 0 else 0
    keys = ArrayOps().keys(np.stack([groups, numbers[groups], other]), K)
    assert keys[0] == keys[1]
    assert keys[0] != keys[2]


def test_swapping_two_cases_changes_the_key():
    groups = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, -1], [0, 0, -1, 1]], np.int32)
    keys = ArrayOps().keys(groups, 2)
    assert len(set(keys)) == 4
    assert ArrayOps().keys(groups[1:], 2) == keys[1:]  # a branch is compared with other batches


def test_the_best_partitions_are_distinct_and_in_order():
    groups = np.array([[0, 0, 1], [1, 1, 0], [0, 1, 1], [0, 1, 0]], np.int32)
    found = Partitions(groups, groups, np.array([3.0, 3.0, 1.0, 2.0]), np.ones(4, bool), ArrayOps())
    assert_array_equal(found.best(3, 2).within, [1, 2, 3])
    assert_array_equal(found.best(9, 2).groups, groups[[2, 3, 0]])
    assert_array_equal(found.best(1, 2).groups, groups[[2]])


def lloyd_problem(seed, n=120, p=4, K=4, m=10, runs=20):
    rng = np.random.default_rng(seed)
    table = engine_for(rng.normal(size=(n, p))).table(np.ones((1, p)))
    centers = table.cases(random_cases(table, rng.random((runs, K)), 0))
    return table, centers, Problem(K, m)


@pytest.mark.parametrize("m", [0, 1, 10, 40])
def test_the_kept_within_sum_never_rises(m):
    table, centers, problem = lloyd_problem(0, m=m)
    before = np.inf
    for max_iter in range(1, 25):
        found = lloyd(table, centers, replace(problem, max_iter=max_iter))
        assert (found.within <= before * (1 + 1e-12)).all()
        before = found.within
    assert found.converged.all()
    assert not lloyd(table, centers, replace(problem, max_iter=1)).converged.all()


@pytest.mark.parametrize("m", [0, 10])
def test_lloyd_ends_where_centers_and_labels_agree(m):
    table, centers, problem = lloyd_problem(1, m=m)
    found = lloyd(table, centers, problem)
    assignment = table.assign(table.sums(found.groups, 4).means())
    assert_array_equal(assignment.labels, found.labels)
    groups, within = table.trim(assignment, m)
    assert_array_equal(groups, found.groups)
    assert_allclose(within, found.within, rtol=1e-9)
    assert_array_equal((found.groups < 0).sum(axis=1), m)


@pytest.mark.parametrize("outlying", [1e6, 1e12, 1e30])
def test_lloyd_ends_so_beside_outlying_cases_too(outlying):
    """An outlying case that comes and goes must not spoil sums that are kept up by difference."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 3))
    X[:5, 0] += outlying * rng.random(5)
    table = engine_for(X).table(np.ones((1, 3)))
    centers = table.cases(random_cases(table, rng.random((100, 4)), 0))
    found = lloyd(table, centers, Problem(4, 5))
    groups = table.trim(table.assign(table.sums(found.groups, 4).means()), 5).groups
    assert_array_equal(groups[:, 5:], found.groups[:, 5:])


def test_empty_clusters_get_the_costliest_case():
    points = np.array([[0.0, 0], [10, 0], [0, 10]]).repeat(20, axis=0)
    table = engine_for(points).table(np.ones((1, 2)))
    same = table.cases(np.array([[0, 1, 2], [0, 20, 21]]))  # clusters that start at one place
    for m in (0, 5):
        found = lloyd(table, same, Problem(3, m))
        assert found.converged.all()
        assert_allclose(found.within, 0, atol=1e-20)
        assert all(len(np.unique(labels)) == 3 for labels in found.labels)


def test_single_moves_free_what_lloyd_leaves_stuck():
    """The paper's clean simulation, at equal weights: .155 by Lloyd alone."""
    stuck, freed = [], []
    for seed in range(8):
        clean = make_simulation(0, seed)
        table = engine_for(clean.data).compact_table(np.ones((1, 500)))
        uniforms = np.random.default_rng(seed).random((100, 3))
        found = lloyd(table, table.cases(random_cases(table, uniforms, 0)), Problem(3)).best(8, 3)
        moved = improve(table, found.groups, Problem(3))
        assert (moved.within <= found.within * (1 + 1e-12)).all()
        stuck.append(classification_error_rate(found.labels[0], clean.target))
        freed.append(classification_error_rate(moved.best(1, 3).labels[0], clean.target))
    assert np.mean(stuck) > 0.08
    assert np.mean(freed) < 0.03


# ---- Starts


@pytest.mark.parametrize("init", INITS)
def test_starts_are_different_cases(init):
    table = engine_for(np.random.default_rng(0).normal(size=(12, 3))).table(np.ones((1, 3)))
    uniforms = np.random.default_rng(1).random((300, 5))
    uniforms[0], uniforms[1] = 1e-9, ALMOST_1
    cases = INITS[init](table, uniforms, 2)
    assert cases.shape == (300, 5)
    assert ((cases >= 0) & (cases < 12)).all()
    assert all(len(set(row)) == 5 for row in cases)


def test_random_starts_are_all_subsets_alike():
    table = engine_for(np.zeros((5, 1))).table(np.ones((1, 1)))
    cases = np.sort(random_cases(table, np.random.default_rng(2).random((20_000, 2)), 0), axis=1)
    _, counts = np.unique(cases, axis=0, return_counts=True)
    assert len(counts) == 10
    assert np.abs(counts - 2000).max() < 5 * np.sqrt(2000)


@pytest.mark.parametrize("first", [0, 17, 54])
@pytest.mark.parametrize("kind", ["far rows", "clump"])
def test_robust_starts_are_never_outlying_cases(first, kind):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 5))
    outlying = np.arange(first, first + 6)
    X[outlying] = rng.normal(0, 1000, (6, 5)) if kind == "far rows" else rng.normal(50, 0.1, (6, 5))
    table, uniforms = engine_for(X).table(np.ones((1, 5))), rng.random((500, 4))
    assert not np.isin(robust_cases(table, uniforms, 6), outlying).any()
    assert np.isin(plusplus_cases(table, uniforms, 6), outlying).any(axis=1).mean() > 0.9


@pytest.mark.parametrize("work_bytes", [1, 30_000])
def test_batches_of_starts_are_cut_without_a_trace(work_bytes, monkeypatch):
    table = engine_for(np.random.default_rng(0).normal(size=(50, 3))).table(np.ones((1, 3)))
    starts = Starts(("random", "robust"), np.random.default_rng(6).random((21, 4)))
    problem = Problem(4, 5)
    whole = list(starts.batches(table, problem))
    assert_array_equal(next(starts.fewer(6, 0).batches(table, problem))[0], whole[0][0][:6])
    monkeypatch.setattr(memory, "WORK_BYTES", work_bytes)
    cut = list(starts.batches(table, problem))
    assert len(whole) == 1 < len(cut)
    for i in (0, 1):
        assert_array_equal(np.concatenate([batch[i] for batch in cut]), whole[0][i])
    assert_array_equal(whole[0][1], np.arange(21) % 2)


def test_given_starts_are_the_means_of_their_groups():
    X = np.random.default_rng(7).normal(size=(30, 2))
    groups = np.random.default_rng(8).integers(-1, 3, (2, 30), np.int32)
    table, starts = engine_for(X).table(np.ones((1, 2))), Starts(groups=list(groups[:, None]))
    batches = list(starts.batches(table, Problem(3)))
    assert len(batches) == 2
    assert len(list(starts.fewer(1, 0).batches(table, Problem(3)))) == 1
    for (centers, _), group in zip(batches, groups, strict=True):
        means = np.stack([X[group == k].mean(axis=0) for k in range(3)])
        assert_allclose(centers[0], table.place(means[None])[0], atol=1e-12)


# ---- Alternation


def drawn(K, runs=30, seed=0, inits=("random", "robust")):
    return Starts(inits, np.random.default_rng(seed).random((runs, K)))


def as_partitions(*labels, out=()):
    labels = np.array(labels, np.int32)
    groups = labels.copy()
    groups[:, list(out)] = -1
    return Partitions(groups, labels, np.zeros(len(labels)), np.ones(len(labels), bool), ArrayOps())


@pytest.mark.parametrize("length", [1, 3])
def test_branches_that_go_round_or_stay_end(length, monkeypatch):
    clean = make_figure1(60, 5, random_state=0)
    rng = np.random.default_rng(9)
    cycle = [as_partitions(rng.integers(0, 3, 60)) for _ in range(length)]
    calls = []

    def advance(engine, problem, states):
        calls.append(len(states))
        return cycle[len(calls) % length]

    monkeypatch.setattr(alternate, "advance", advance)
    problem = Problem(3, l1_bound=1.5)
    steps = alternate.alternate(engine_for(clean.data), problem, cycle[0], np.ones((1, 5)))
    iterations = list(islice(steps, 10))
    assert [going for _, going in iterations] == [True] * length + [False]  # the first again


def test_guarded_states_come_first():
    engine = engine_for(np.random.default_rng(0).normal(size=(60, 4)))
    lopsided = np.where(np.arange(60) < 5, 2, np.arange(60) % 2)
    partitions = as_partitions(lopsided, np.arange(60) % 3)
    for n_trim, guarded in ((6, [False, True]), (4, [True, True])):
        states, _ = alternate.reweigh(
            engine, Problem(3, n_trim, 1.5), partitions, [0, 1], np.ones((2, engine.n_features))
        )
        assert [state.guarded for state in states] == guarded
        more_outlying = replace(states[0], objective=1e9, rest=1e9)
        assert more_outlying.beats(states[1]) == guarded[0]


def test_what_is_left_without_an_outlying_cluster():
    """A state whose objective hangs on five outlying cases has little left without them."""
    X = np.random.default_rng(1).normal(size=(60, 3))
    X[:5] += 100
    labels = np.where(np.arange(60) < 5, 2, np.arange(60) % 2)
    (state,), _ = alternate.reweigh(
        engine_for(X), Problem(3, 6, 1.5), as_partitions(labels), [0], np.ones((1, X.shape[1]))
    )
    assert not state.guarded
    assert state.mean > 100
    assert state.rest < 1


@pytest.mark.parametrize("outlying", [1e9, 1e20, 1e30])
def test_a_case_that_only_the_unweighted_rule_trims_leaves_no_trace(outlying):
    X = np.random.default_rng(2).normal(size=(60, 4))
    labels, kept = np.arange(60) % 3, np.arange(60) > 0
    X[0, 2] = outlying
    engine = engine_for(X)
    partitions = as_partitions(labels)
    sums = engine.sums_near(None, partitions.groups, 3)
    far, _, sums = engine.take_out_farthest(partitions.groups, partitions.labels, sums, 1)
    assert_array_equal(np.flatnonzero(far[0]), [0])
    expected = between_sum(X[kept], labels[kept], 3)
    assert_allclose(sums.between()[0] * engine.unit, expected, rtol=1e-6)


# ---- The whole

PROBLEMS = {
    "RSK": (make_contaminated("shared_cell", random_state=0), Problem(3, 6, 3.5)),
    "RSK, outlying rows": (make_contaminated("far_rows", random_state=1), Problem(3, 6, 3.5)),
    "RSK, tall": (make_masking(random_state=0), Problem(3, 30, 1.5)),
    "SK": (make_figure1(90, 200, random_state=0), Problem(3, 0, 1.4)),
    "TK": (make_simulation(1, 0), Problem(3, 1)),
    "K": (make_simulation(0, 0), Problem(3)),
    "n_features": (make_simulation(2, 1), Problem(3, 6, n_features=20)),
}
each_problem = pytest.mark.parametrize(("table", "problem"), PROBLEMS.values(), ids=PROBLEMS)


def solve_for(X, problem, **options):
    return solve(engine_for(X, **options), replace(problem, tol=0.0), drawn(problem.n_clusters))


@each_problem
def test_a_solution_is_one_consistent_state(table, problem):
    X, K, m = table.data, problem.n_clusters, problem.n_trim
    found = solve_for(X, problem)
    assert found.converged
    distances = ((X[:, None, :] - found.centers) ** 2) @ found.weights
    assert_array_equal(found.labels, distances.argmin(axis=1))
    assert_allclose(found.costs, distances.min(axis=1), rtol=1e-9)
    assert found.trimmed_weighted.sum() == m
    assert found.trimmed_unweighted.sum() == (m if is_sparse(problem) else 0)
    inside = ~found.trimmed_weighted
    means = np.stack([X[inside & (found.labels == k)].mean(axis=0) for k in range(K)])
    assert_allclose(found.centers, means, rtol=1e-9, atol=1e-9)
    kept = inside & ~found.trimmed_unweighted
    between = between_sum(X[kept], found.labels[kept], K)
    assert found.objective == pytest.approx(found.weights @ between, rel=1e-9)
    assert found.inertia == pytest.approx(found.costs[inside].sum())
    if is_sparse(problem):
        assert_allclose(found.weights, weigh(problem, between), atol=1e-9)
    else:
        assert_array_equal(found.weights, 1)


def between_sum(X, labels, K):
    sizes = np.bincount(labels, minlength=K)
    means = np.stack([X[labels == k].mean(axis=0) for k in range(K)])
    return sizes @ (means - X.mean(axis=0)) ** 2


def outlying_clusters(found, outliers):
    """How many clusters consist of outlying cases only."""
    inside = ~found.trimmed_weighted
    members = [outliers[inside & (found.labels == k)] for k in range(len(found.centers))]
    return sum(bool(member.all()) for member in members)


@cache
def mean_error_without_outlying_cases(n_trim):
    """CER of the same cases, the outlying ones removed beforehand and as many others trimmed."""
    errors = []
    for seed in range(8):
        table = make_contaminated("shared_cell", n_features=50, random_state=seed)
        X, target = table.data[~table.outliers], table.target[~table.outliers]
        found = solve(engine_for(X), Problem(3, n_trim, 2.8), drawn(3, 60, seed))
        errors.append(classification_error_rate(found.labels, target))
    return np.mean(errors)


@pytest.mark.parametrize("n_trim", [15, 20, 25])
@pytest.mark.parametrize("kind", ["shared_cell", "clump_cells", "clump_rows", "far_rows"])
def test_outlying_cases_do_not_become_a_cluster_where_no_state_can_be_guarded(kind, n_trim):
    """K * trim near 1: no partition keeps more than n_trim cases in each of its clusters."""
    errors = []
    for seed in range(8):
        table = make_contaminated(kind, n_features=50, random_state=seed)
        found = solve(engine_for(table.data), Problem(3, n_trim, 2.8), drawn(3, 60, seed))
        assert outlying_clusters(found, table.outliers) == 0
        clean = ~table.outliers
        errors.append(classification_error_rate(found.labels[clean], table.target[clean]))
    assert np.mean(errors) <= mean_error_without_outlying_cases(n_trim) + 0.05


def finish_in_turn(monkeypatch, kept_sizes):
    """Have states finish with these sizes of kept clusters, one after the other."""
    real, sizes = solution_module.finish, iter(kept_sizes)

    def finish(engine, problem, state):
        own = np.array(next(sizes))
        return replace(real(engine, problem, state), sizes=own, kept_sizes=own)

    monkeypatch.setattr(solution_module, "finish", finish)


def contaminated_fit():
    table = make_contaminated("shared_cell", n_features=100, random_state=0)
    return solve(engine_for(table.data), Problem(3, 6, 3.0), drawn(3, 60))


def test_a_state_that_loses_its_guard_when_finished_makes_room_for_an_end(monkeypatch):
    finish_in_turn(monkeypatch, [[27, 27, 2], [20, 20, 20], [1, 1, 1]])
    found = contaminated_fit()
    assert_array_equal(found.kept_sizes, [20, 20, 20])
    assert found.exposed is None


def test_a_cluster_that_may_be_outlying_is_named_where_no_other_solution_is_found(monkeypatch):
    finish_in_turn(monkeypatch, [[27, 27, 2]] * 10)
    found = contaminated_fit()
    assert_array_equal(found.kept_sizes, [27, 27, 2])
    assert found.exposed is not None
    assert found.exposed.size == 2


@pytest.mark.parametrize(
    ("between", "bound"),
    [([1, 4, 0, 4, 0], np.sqrt(2)), ([1, 5, 5, 63], 1 + 2.2e-16), ([3, 3, 3, 1], np.sqrt(3))],
)
def test_bounds_that_round_badly_hold_too(between, bound):
    weights = sparse_weights(np.array(between, float), bound)
    assert weights.sum() <= bound * (1 + 1e-9)
    assert np.linalg.norm(weights) == pytest.approx(1)


# ---- Very many cases


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(("n_trim", "l1_bound"), [(0, None), (120, None), (120, 2.0), (0, 2.0)])
def test_a_search_on_a_sample_ends_where_one_on_all_cases_does(n_trim, l1_bound, missing):
    X = np.random.default_rng(0).normal(size=(3000, 12))
    X[:, :4] += 3 * (np.arange(3000) % 3)[:, None]
    X[: n_trim // 2, -1] += 40
    if missing:
        X[np.random.default_rng(1).random(X.shape) < 0.03] = np.nan
    problem, uniforms = Problem(3, n_trim, l1_bound), np.random.default_rng(2).random((20, 3))
    sample = Sampled(np.sort(np.random.default_rng(3).choice(3000, 600, replace=False)))
    found, whole = (
        solve(engine_for(X), problem, Starts(("random", "robust"), uniforms, cases))
        for cases in (sample, None)
    )
    assert classification_error_rate(found.labels, whole.labels) < 0.01
    assert found.mean == pytest.approx(whole.mean, rel=0.02)
    if l1_bound is None:  # else it may be another state of the same branch
        assert found.inertia == pytest.approx(whole.inertia, rel=1e-6)
    assert found.converged
    assert found.trimmed_weighted.sum() == whole.trimmed_weighted.sum()


def test_a_rival_of_the_sample_is_named_by_its_cases():
    table = make_contaminated("clump_rows", random_state=0)
    X = np.tile(table.data, (5, 1))
    X += np.random.default_rng(0).normal(0, 0.01, X.shape)
    outlying = np.tile(table.outliers, 5)
    sample = np.flatnonzero(np.arange(len(X)) % 5 < 3)
    problem = Problem(3, int(0.1 * len(X)), 3.5)
    uniforms = np.random.default_rng(0).random((40, 3))
    starts = Starts(("random", "robust"), uniforms, Sampled(sample))
    found = solve(engine_for(X), problem, starts)
    assert found.rival is not None
    assert outlying[found.rival.cases].all()
    assert found.rival.size == pytest.approx(outlying.sum(), rel=0.5)
    assert found.trimmed_weighted[outlying].mean() > 0.9


@pytest.mark.parametrize(
    ("n", "p", "sampled"), [(32_768, 2000, False), (170_000, 50, True), (160_000, 50, False)]
)
def test_only_tables_with_very_many_cells_are_sampled(n, p, sampled):
    engine = SimpleNamespace(n_cases=n, n_features=p, masses=None)
    found = search_cases(engine, 3, np.random.RandomState(0))
    assert (found is not None) == sampled
    if sampled:
        cases = found.numbers
        assert found.masses is None
        assert len(np.unique(cases)) == len(cases) == search_size(n, p, 3)
        assert cases.max() < n
        assert (np.diff(cases) > 0).all()


def test_a_feature_that_the_sample_does_not_show_still_counts(monkeypatch):
    monkeypatch.setattr(search_module, "SAMPLE_CELLS", 60)
    monkeypatch.setattr(search_module, "FEWEST_CASES", 10)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1000, 6))
        X[:, :2] += 4 * (np.arange(1000) % 2)[:, None]
        X[:, 5] = np.nan
        X[rng.choice(1000, 6, replace=False), 5] = 1.0
        model = RobustSparseKMeans(2, trim=0, l1_bound=None, random_state=seed).fit(X)
        assert_array_equal(model.predict(X), model.labels_)
        assert_allclose(model.distances_, -model.score_samples(X))


def test_a_path_of_bounds_on_very_many_cases_searches_a_sample(monkeypatch):
    X = np.random.default_rng(0).normal(size=(1000, 6))
    X[:, :2] += 4 * (np.arange(1000) % 2)[:, None]
    problems = [Problem(2, 50, bound) for bound in (1.2, 1.6, 2.0)]
    uniforms = np.random.default_rng(1).random((10, 2))
    whole, part = (
        [
            solution.mean
            for solution in solve_path(
                engine_for(X), problems, Starts(("random",), uniforms, cases)
            )
        ]
        for cases in (None, Sampled(np.arange(0, 1000, 5)))
    )
    assert_allclose(part, whole, rtol=0.02)


@pytest.mark.parametrize("l1_bound", [None, 1.8])
def test_of_millions_of_cases_a_few_may_move_at_convergence(l1_bound, monkeypatch):
    """Labels are those of the centers all the same, and these are nearly the means."""
    X = np.random.default_rng(0).normal(size=(5000, 5))
    model = RobustSparseKMeans(4, trim=0.05, l1_bound=l1_bound, tol=0.01, random_state=0)
    exact = clone(model).fit(X)
    monkeypatch.setattr(solution_module, "MILLIONS", 1000)
    quick = clone(model).fit(X)
    off = []
    for fitted in (exact, quick):
        assert_array_equal(fitted.predict(X), fitted.labels_)
        kept = ~fitted.trimmed_weighted_
        means = np.array([X[kept & (fitted.labels_ == k)].mean(axis=0) for k in range(4)])
        off.append(np.abs(fitted.cluster_centers_ - means).max())
    assert off[0] < 1e-9 < off[1] < 0.05  # the second stopped before
    assert quick.objective_ == pytest.approx(exact.objective_, rel=0.05)
