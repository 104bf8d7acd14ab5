"""Missing values: laws, the definition in plain NumPy, and rows and columns without a value."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import rand_score

from definitions import plain_between, plain_distances, with_missing
from engine_kinds import _passes, each_pass, needs_compiler
from rskc import RobustSparseKMeans
from rskc.engines import Frame, MemoryEngine, engine_for, passes_numpy
from rskc.solver import Problem, Starts, solve
from rskc.solver.alternate import alternate
from rskc.solver.search import search
from rskc.solver.solution import finish
from skips import Optional

pl = Optional("polars")
incomplete_engine = partial(MemoryEngine, missing=True)
# That a cluster may be outlying is no complaint about missing cells.
pytestmark = pytest.mark.filterwarnings("ignore::rskc.SmallClusterWarning")

FIT_OPTIONS = pytest.mark.parametrize(
    "options",
    [
        {"trim": 0, "l1_bound": 2.0},
        {"trim": 0.1, "l1_bound": 2.0},
        {"trim": 0, "l1_bound": None},
        {"trim": 0.1, "l1_bound": None},
        {"trim": 0.1, "l1_bound": None, "n_features": 3},
    ],
    ids=["sparse", "robust-sparse", "plain", "trimmed", "counted"],
)


def clusters(n=60, p=12, K=3, n_active=4, gap=6.0, seed=0):
    """Clear clusters that show in the first features, and which case is of which."""
    rng = np.random.default_rng(seed)
    target = np.arange(n) % K
    X = rng.standard_normal((n, p))
    # Along the corners of a simplex, so that no cluster lies between two others.
    X[:, :n_active] += gap * rng.permuted(np.tile(np.arange(K), (n_active, 1)), axis=1)[:, target].T
    return X, target


def make_model(n_clusters=3, **changes):
    bound = {} if "n_features" in changes else {"l1_bound": "half"}
    given = {"n_init": 8, "random_state": 0, "trim": 0.1, "outlier_rule": "paper"} | bound
    return RobustSparseKMeans(n_clusters, **given | changes)


def quiet_fit(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X)


# ---- The definition, in plain NumPy


def incomplete_table(rng, n, p, share=0.25):
    """Random numbers with missing cells: rows and columns without a cell included."""
    X = rng.normal(size=(n, p))
    X[rng.random(X.shape) < share] = np.nan
    return X


@pytest.mark.parametrize("far", [1e6, 1e9])
def test_what_lies_far_away_under_a_missing_cell_takes_no_digits_from_the_rest(far):
    """A center far out where the case is missing, an outlying cell where the center has none."""
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[0, 2] = np.nan
    X[1, 1] = far
    centers = np.array([[0.5, np.nan, far], [np.nan, 0.5, 0.5]])
    engine = incomplete_engine(X)
    labels, weights = np.zeros((1, 20), np.int32), np.array([[1.0, 2.0, 0.5]])
    found = engine.distances(labels, engine.frame.place(centers[None]), weights)[0] * engine.unit
    assert_allclose(found, plain_distances(X, centers, weights[0])[:, 0], rtol=1e-9)
    table = engine.table(weights)
    assigned, costs = table.assign(table.place(centers[None]))
    plain = plain_distances(X, centers, weights[0])
    assert_array_equal(assigned[0], plain.argmin(axis=1))
    assert costs[0, 0] * engine.unit == pytest.approx(plain[0].min(), rel=1e-9)


@each_pass
@pytest.mark.parametrize("far", [1e6, 1e9])
def test_an_outlying_cell_where_no_center_is_observed_takes_no_digits_from_a_cost(passes, far):
    X = np.random.default_rng(1).normal(size=(20, 4))
    X[3, 0] = far
    centers = np.random.default_rng(2).normal(size=(1, 3, 4))
    centers[0, :, 0] = np.nan
    engine, weights = incomplete_engine(X, passes=passes), np.array([[2.0, 1.0, 0.5, 3.0]])
    table = engine.table(weights)
    labels, costs = table.assign(table.place(centers))
    plain = plain_distances(X, centers[0], weights[0])
    assert_array_equal(labels[0], plain.argmin(axis=1))
    assert_allclose(costs[0] * engine.unit, plain.min(axis=1), rtol=1e-9)


def partly_seen_scene(rng, n, q, K, runs, own):
    """Cases, centers and weights: a center lacks every third feature, a run every center some."""
    X = incomplete_table(rng, n, q, share=0.3)
    centers = rng.normal(size=(runs, K, q))
    centers[::2, 0, ::3] = np.nan
    centers[1] = np.where(rng.random((K, q)) < 0.2, np.nan, centers[1])
    weights = rng.random((runs if own else 1, q)) * (rng.random(q) < 0.8)
    weights[:, -1] = 0.5
    return X, centers, weights


@needs_compiler
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(700, 9, 3, 4), (60, 80, 2, 3), (300, 20, 12, 20)])
def test_both_find_the_same_nearest_centers_and_threads_the_same_bits(shape, dtype, own):
    X, centers, weights = partly_seen_scene(np.random.default_rng(4), *shape, own)
    X[:4] = np.nan
    found = []
    for passes, threads in ((passes_numpy, 1), (_passes, 1), (_passes, 2), (_passes, 3)):
        engine = incomplete_engine(X, passes=passes, n_threads=threads)
        table = engine.table(weights, np.dtype(dtype))
        table._threads = lambda work, threads=threads: threads
        found.append(table.assign(table.place(centers)))
    twin, one, *others = found
    assert_allclose(one.costs, twin.costs, rtol=1e-4 if dtype == np.float32 else 1e-9, atol=1e-5)
    assert (one.labels != twin.labels).mean() < (1e-3 if dtype == np.float32 else 1e-9)
    for other in others:
        assert_array_equal(other.labels, one.labels)
        assert_array_equal(other.costs, one.costs)


@needs_compiler
@pytest.mark.parametrize("masses", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_both_sum_and_measure_alike_and_threads_give_the_same_bits(dtype, masses):
    """More cases than one stripe of sums (2048), whole numbers: every sum is exact."""
    rng = np.random.default_rng(5)
    X = rng.integers(-8, 9, (20_011, 3)).astype(dtype)
    X[rng.random(X.shape) < 0.2] = np.nan
    groups = rng.integers(-1, 4, (2, len(X)), np.int32)
    own = rng.integers(1, 4, len(X)).astype(float)
    location, weights = np.full(3, float(masses)), np.array([[1.0, 2.0, 4.0]])
    frame = Frame(location, 1.0, np.full(3, 1e9))
    found = []
    for passes, threads in ((passes_numpy, 1), (_passes, 1), (_passes, 3)):
        options = {"frame": frame, "passes": passes, "n_threads": threads}
        engine = incomplete_engine(X, masses=own if masses else None, **options)
        engine._threads = lambda work, threads=threads: threads
        sums = engine.sums(groups[::-1].copy(), 4)
        engine.shift(sums, groups[::-1].copy(), groups)
        centers = np.round(np.nan_to_num(sums.means()))
        labels = np.maximum(groups, 0)
        found.append((sums.totals, sums.counts, engine.factored(groups, np.ones((2, 3)), 4)))
        found[-1] += (engine.distances(labels, centers, weights), engine._factors(weights))
    for a, b in zip(found[0], found[1], strict=True):
        assert_allclose(b, a, rtol=1e-12, atol=1e-12)
    for a, b in zip(found[1], found[2], strict=True):
        assert_array_equal(a, b)
    members = groups[:, None, :] == np.arange(4)[:, None]
    counted = members * (own if masses else 1.0)
    assert_array_equal(found[0][0][:, :, 3:], counted @ ~np.isnan(X))
    assert_array_equal(found[0][0][:, :, :3], counted @ np.nan_to_num(X.astype(float) - location))


# ---- Laws


def solve_with(engine, K, options, seed=0, starts=8):
    trim = int(options["trim"] * engine.n_cases + 1e-9)
    problem = Problem(K, trim, options["l1_bound"], options.get("n_features"), tol=1e-4)
    draws = np.random.default_rng(seed).random((starts, K))
    return solve(engine, problem, Starts(("random", "robust"), draws))


@FIT_OPTIONS
@pytest.mark.parametrize("shape", [(120, 8), (40, 100)], ids=["tall", "wide"])
def test_without_missing_cells_it_is_the_fit_of_complete_data(shape, options):
    X, _ = clusters(*shape, gap=3.0)
    complete = solve_with(engine_for(X), 3, options)
    incomplete = solve_with(engine_for(X, missing=True), 3, options)
    assert not engine_for(X).missing
    assert rand_score(incomplete.labels, complete.labels) == 1
    assert_array_equal(incomplete.trimmed_weighted, complete.trimmed_weighted)
    assert_array_equal(incomplete.trimmed_unweighted, complete.trimmed_unweighted)
    assert_allclose(incomplete.weights, complete.weights, rtol=0, atol=1e-10)
    assert incomplete.objective == pytest.approx(complete.objective, rel=1e-10)
    assert incomplete.inertia == pytest.approx(complete.inertia, rel=1e-10)


@pytest.mark.filterwarnings("ignore::rskc.SmallClusterWarning")
@pytest.mark.parametrize("n_trim", [0, 6])
def test_the_objective_has_the_factors_of_the_weights_that_made_the_partition(n_trim):
    X = with_missing(clusters(gap=2.5)[0], 0.15)
    engine, problem = incomplete_engine(X), Problem(3, n_trim, 1.5)
    starts = Starts(("random",), np.random.default_rng(0).random((10, 3)))
    partitions = search(engine, problem, starts).partitions
    made_with = np.repeat(engine.equal_weights(), len(partitions), axis=0)
    states = [s for some, _ in alternate(engine, problem, partitions, made_with) for s in some]
    assert any((state.made_with == 0).any() for state in states)
    for state in states:
        found = finish(engine, problem, state)
        trimmed = found.trimmed_weighted | found.trimmed_unweighted
        groups = np.where(trimmed, -1, found.labels)
        between = plain_between(X, groups, 3, state.made_with)
        assert found.objective == pytest.approx(found.weights @ between, rel=1e-9)


def results(model):
    names = ("labels_", "feature_weights_", "cluster_centers_", "trimmed_", "outliers_")
    return [getattr(model, name) for name in names]


def assert_same_bits(one, other):
    for a, b in zip(results(one), results(other), strict=True):
        assert_array_equal(a, b)
    assert (one.objective_, one.inertia_) == (other.objective_, other.inertia_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_nan_are_alike(dtype):
    """There are many, by sign and payload; all of them are the same missing cell."""
    X = with_missing(clusters()[0].astype(dtype))
    missing = np.isnan(X)
    bits = np.uint32 if dtype == np.float32 else np.uint64
    other = X.copy()
    other.view(bits)[missing] |= bits(1 << (8 * bits().itemsize - 1))  # the sign
    other.view(bits)[missing] += np.arange(missing.sum()).astype(bits) + bits(1)
    assert np.isnan(other[missing]).all()
    assert_same_bits(make_model().fit(other), make_model().fit(X))
    few = np.column_stack([np.ones(missing.sum(), dtype), other[missing]])
    with pytest.raises(ValueError, match="the 1 distinct case among"):
        make_model(2).fit(few)


@settings(max_examples=120)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(4, 30),
    p=st.integers(1, 8),
    share=st.sampled_from([0.05, 0.3, 0.7]),
    trim=st.sampled_from([0, 0.1, 0.3]),
    bound=st.sampled_from([None, "auto", 1.0]),
    K=st.integers(1, 3),
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_any_missing_cells_give_a_sound_result(seed, n, p, share, trim, bound, K):
    X = incomplete_table(np.random.default_rng(seed), n, p, share)
    X[:K, 0] = np.arange(K)  # K distinct cases
    unobserved = np.isnan(X).all(axis=1)
    if (~unobserved).sum() * (1 - trim) < K:
        return
    model = make_model(K, trim=trim, l1_bound=bound, n_init=2).fit(X)
    weights, dead = model.feature_weights_, np.isnan(X).all(axis=0)
    assert set(model.labels_) <= set(range(K))
    assert_array_equal(model.predict(X), model.labels_)
    assert np.isfinite([model.objective_, model.inertia_, model.outlier_threshold_]).all()
    assert (weights >= 0).all()
    assert_array_equal(weights[dead], 0)
    assert weights.sum() > 0
    blind = ~(~np.isnan(X) & (weights > 0)).any(axis=1)
    assert model.trimmed_[blind].all()
    assert model.outliers_[blind].all()
    assert_array_equal(model.labels_[blind], 0)
    assert model.trimmed_weighted_.sum() <= model.n_trim_ + blind.sum()
    plain = plain_distances(X, model.cluster_centers_, weights)
    assert_allclose(model.transform(X) ** 2, plain, rtol=1e-7, atol=1e-9)
    assert_array_equal(model.is_outlier(X), model.outliers_)


# ---- Decisions


@FIT_OPTIONS
def test_rows_without_a_cell_are_excluded(options):
    X = with_missing(clusters()[0])
    rows = [0, 17, 62]
    unobserved = np.full((len(X) + 3, X.shape[1]), np.nan)
    rest = np.setdiff1d(np.arange(len(unobserved)), rows)
    unobserved[rest] = X
    without = quiet_fit(make_model(**options), X)
    model = quiet_fit(make_model(**options), unobserved)
    assert_array_equal(model.labels_[rows], 0)
    assert model.trimmed_[rows].all()
    assert model.outliers_[rows].all()
    assert_array_equal(model.labels_[rest], without.labels_)
    assert_array_equal(model.trimmed_[rest], without.trimmed_)
    assert_array_equal(model.feature_weights_, without.feature_weights_)
    assert_array_equal(model.cluster_centers_, without.cluster_centers_)
    assert (model.objective_, model.inertia_) == (without.objective_, without.inertia_)
    assert model.n_trim_ == without.n_trim_
    assert model.outlier_threshold_ == without.outlier_threshold_
    assert model.n_missing_ == without.n_missing_ + 3 * X.shape[1]
    assert_array_equal(model.predict(unobserved), model.labels_)
    assert_array_equal(model.is_outlier(unobserved), model.outliers_)


@pytest.mark.parametrize("method", ["predict", "transform", "score_samples", "is_outlier"])
@pytest.mark.parametrize("kind", ["unobserved", "blind"])
def test_new_rows_that_miss_everything(method, kind):
    model = make_model(l1_bound=1.8).fit(clusters()[0])
    new = np.zeros((3, 12))
    new[1, : 12 if kind == "unobserved" else 4] = np.nan
    assert model.get_support(indices=True).max() < 4
    expected = {"predict": 0, "transform": np.inf, "score_samples": -np.inf, "is_outlier": True}
    found = getattr(model, method)(new)
    assert_array_equal(found[1], expected[method])
    assert_allclose(found[[0, 2]], getattr(model, method)(new[[0, 2]]), rtol=1e-12)
    assert_array_equal(getattr(model, method)(new[1:2])[0], expected[method])


@FIT_OPTIONS
def test_a_column_without_a_cell_gets_no_weight(options):
    X = with_missing(clusters()[0])
    without = quiet_fit(make_model(**options), X)
    dead = np.insert(X, [0, 7], np.nan, axis=1)
    model = quiet_fit(make_model(**options), dead)
    assert_array_equal(model.feature_weights_[[0, 8]], 0)
    assert np.isnan(model.cluster_centers_[:, [0, 8]]).all()
    assert rand_score(model.labels_, without.labels_) == 1
    assert_array_equal(model.trimmed_, without.trimmed_)
    assert_allclose(np.delete(model.feature_weights_, [0, 8]), without.feature_weights_, atol=1e-10)
    assert_array_equal(model.predict(dead), model.labels_)
    assert not np.isnan(model.transform(dead)).any()
    filled = np.nan_to_num(dead[~np.isnan(dead[:, 1:8]).any(axis=1)], nan=1e9)
    assert np.isfinite(model.transform(filled)).all()


# ---- Data frames


def cells(X):
    """Rows with None for a missing cell."""
    return [[None if np.isnan(cell) else cell for cell in row] for row in X.tolist()]


FRAMES = {
    "pandas NaN": pd.DataFrame,
    "pandas None": lambda X: pd.DataFrame(cells(X), dtype=object),
    "pandas NA": lambda X: pd.DataFrame(X).convert_dtypes(),
    "pandas Int64": lambda X: pd.DataFrame(X).astype("Int64"),
    "polars null": lambda X: pl.DataFrame(cells(X), orient="row"),
    "polars NaN": lambda X: pl.DataFrame(X),
    "polars integers": lambda X: pl.DataFrame(cells(X), orient="row").cast(pl.Int32),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_frames_with_nulls_are_arrays_with_nan(make):
    X = with_missing(np.round(10 * clusters()[0]))
    frame, model = make(X), make_model().fit(X)
    frame.columns = frame_names = [f"x{j}" for j in range(12)]
    framed = make_model().fit(frame)
    assert_same_bits(framed, model)
    assert framed.n_missing_ == model.n_missing_ > 0
    assert_array_equal(framed.feature_names_in_, frame_names)
    for method in ("predict", "transform", "score_samples", "is_outlier"):
        assert_array_equal(getattr(framed, method)(frame), getattr(model, method)(X))
