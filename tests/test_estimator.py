"""RobustSparseKMeans: its laws, its definitions, its special cases, and the design's table."""

import threading
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import rand_score

from definitions import (
    plain_between,
    plain_distances,
    plain_means,
    read_only,
    strided,
    with_missing,
)
from engine_kinds import threads_everywhere
from rskc import RobustSparseKMeans, SmallClusterWarning
from rskc.datasets import make_contaminated, make_figure1, make_masking, make_simulation
from rskc.model.fitting import solver_settings
from rskc.solver.alternate import tell

# Whether another solution is worth a word is not what most tests are about.
pytestmark = pytest.mark.filterwarnings("ignore::rskc.SmallClusterWarning")

TABLES = {
    "tall": make_figure1(n_samples=240, n_features=8, random_state=1),
    "masking": make_masking(n_samples=150, random_state=2),
    "wide": make_figure1(n_samples=60, n_features=300, random_state=3),
}
SETTINGS = {
    "robust and sparse": {"trim": 0.1, "l1_bound": 2.0},
    "sparse": {"trim": 0, "l1_bound": 2.0},
    "trimmed": {"trim": 0.1, "l1_bound": None},
    "plain": {"trim": 0, "l1_bound": None},
    "two features": {"trim": 0.1, "n_features": 2},
}
# What the data decide, cells that are bounded, and tables with missing cells keep the laws too.
LAWFUL = SETTINGS | {
    "automatic": {"trim": "auto", "l1_bound": "auto"},
    "cells": {"trim": "auto", "l1_bound": "auto", "cells": 3.3},
}
MASKS = ("trimmed_weighted_", "trimmed_unweighted_", "trimmed_", "outliers_")
CASE_RESULTS = ("labels_", *MASKS)
RESULTS = (*CASE_RESULTS, "feature_weights_", "cluster_centers_", "objective_", "inertia_")


def make_clear(n, p, trim=0.1):
    """Clusters 10 deviations apart in two features, and as many outlying cases as are trimmed."""
    X, target, *_ = make_figure1(n_samples=n, n_features=p, random_state=5)
    X[:, :2] += 7 * (target[:, None] - 1)
    outlying = np.arange(0, n, round(1 / trim)) if trim else []
    X[outlying] += 100 * np.random.default_rng(5).choice([-1, 1], (len(outlying), p))
    return X


CELLS = {name: data.data for name, data in TABLES.items()}
CELLS |= {"incomplete": with_missing(make_clear(90, 12)), "thin": with_missing(make_clear(60, 90))}


def each_of(values):
    """A fixture of each of the values, by name."""
    return pytest.fixture(params=values)(lambda request: values[request.param])


table, X = each_of(TABLES), each_of(CELLS)
setting, lawful = each_of(SETTINGS), each_of(LAWFUL)


def make_model(**changes):
    bound = {} if "n_features" in changes else {"l1_bound": "half"}
    given = {"n_clusters": 3, "n_init": 20, "random_state": 0, "trim": 0.1} | bound
    return RobustSparseKMeans(**given | changes)


def fitted(X, **changes):
    """Fit a model; warnings of it are not what laws are about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return make_model(**changes).fit(X)


def relabel(labels):
    """Number clusters by their first case, so that equal partitions are equal arrays."""
    first = np.unique(labels, return_index=True)[1]
    return np.argsort(np.argsort(first))[np.unique(labels, return_inverse=True)[1]]


def assert_same_partition(labels, expected):
    assert_array_equal(relabel(labels), relabel(expected))


def assert_same(names, one, other):
    for name in names:
        assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def assert_same_clusters(one, other, atol=1e-9):
    """The same partition, flags and weights, however clusters are numbered."""
    assert_same_partition(one.labels_, other.labels_)
    assert_same(MASKS, one, other)
    assert_allclose(one.feature_weights_, other.feature_weights_, atol=atol)


# Laws


@pytest.mark.parametrize("incomplete", [False, True])
@pytest.mark.parametrize("shape", [(240, 8), (60, 300)])
def test_permuting_cases_permutes_the_result(shape, incomplete, setting):
    X = make_clear(*shape, setting["trim"])  # elsewhere, other starts may lead to another optimum
    if incomplete:
        X = with_missing(X)
        setting = {name: value for name, value in setting.items() if name != "n_features"}
    order = np.random.default_rng(0).permutation(len(X))
    straight, permuted = fitted(X, **setting), fitted(X[order], **setting)
    assert_same_partition(permuted.labels_, straight.labels_[order])
    for mask in MASKS:
        assert_array_equal(getattr(permuted, mask), getattr(straight, mask)[order], err_msg=mask)
    assert_allclose(permuted.feature_weights_, straight.feature_weights_, atol=1e-9)


def unclear(seed, shape):
    """Return a table with hardly any clusters, and centers to begin with: many local optima."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape)
    X[:, :4] += rng.integers(0, 3, len(X))[:, None]
    return X, X[rng.choice(len(X), 3, replace=False)], rng


@pytest.mark.parametrize("seed", range(10))
def test_from_given_centers_the_order_of_features_does_not_matter(seed, setting):
    X, centers, rng = unclear(seed, (40, 12) if seed % 2 else (30, 50))
    order = rng.permutation(X.shape[1])
    straight = make_model(**setting, init=centers).fit(X)
    permuted = make_model(**setting, init=centers[:, order]).fit(X[:, order])
    assert_array_equal(permuted.labels_, straight.labels_)
    assert_allclose(permuted.objective_, straight.objective_)


@pytest.mark.parametrize("seed", range(3))
def test_from_given_centers_the_order_of_many_cases_does_not_matter(seed, setting):
    """From 1,000 cases on, where cases are not moved one by one, in the order that they have."""
    X, centers, rng = unclear(seed, (1100, 12))
    order = rng.permutation(len(X))
    straight, permuted = (make_model(**setting, init=centers).fit(Z) for Z in (X, X[order]))
    assert_array_equal(permuted.labels_, straight.labels_[order])
    assert_allclose(permuted.objective_, straight.objective_)


def test_permuting_features_permutes_the_weights(X, lawful):
    order = np.random.default_rng(0).permutation(X.shape[1])
    straight, permuted = fitted(X, **lawful), fitted(X[:, order], **lawful)
    straight.feature_weights_ = straight.feature_weights_[order]
    assert_same_clusters(permuted, straight)
    assert_allclose(permuted.objective_, straight.objective_)


@pytest.mark.parametrize("factor", [1.0, 1e-6, 1e6, -2.0])
def test_units_change_nothing_but_the_centers(X, lawful, factor):
    if "cells" in lawful:
        factor = abs(factor)  # medians of cells are the lower ones
    shift = 1e3 * abs(factor)
    straight, other = fitted(X, **lawful), fitted(X * factor + shift, **lawful)
    assert_same_clusters(other, straight)
    assert_allclose(other.objective_, straight.objective_ * factor**2, rtol=1e-6)
    centers = straight.cluster_centers_ * factor + shift
    order = other.predict(centers)
    assert_allclose(other.cluster_centers_[order], centers, atol=1e-9 * abs(factor))


@pytest.mark.parametrize("exponent", [-300, -20, 1, 7, 300])
def test_scaling_by_a_power_of_two_changes_no_bit(X, lawful, exponent):
    straight, scaled = fitted(X, **lawful), fitted(X * 2.0**exponent, **lawful)
    assert_same((*CASE_RESULTS, "feature_weights_"), scaled, straight)
    assert_array_equal(scaled.cluster_centers_, straight.cluster_centers_ * 2.0**exponent)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bound", [2.0, None])
@pytest.mark.parametrize("long_pass", [10_000_000, 0])
def test_the_number_of_threads_changes_no_bit(dtype, bound, long_pass, monkeypatch):
    threads_everywhere(monkeypatch, long_pass)
    monkeypatch.setattr("rskc.inputs.validation.usable_threads", int)  # however few CPUs there are
    X = make_figure1(n_samples=12_000, n_features=40, random_state=4).data.astype(dtype)
    one, two, four = (make_model(n_init=8, l1_bound=bound, n_threads=n).fit(X) for n in (1, 2, 4))
    assert 8 * 3 * X.size > long_pass
    assert_same(RESULTS, two, one)
    assert_same(RESULTS, four, one)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_in_small_passes_change_no_bit(dtype, X, lawful, monkeypatch):
    threads_everywhere(monkeypatch)
    monkeypatch.setattr("rskc.inputs.validation.usable_threads", int)  # however few CPUs there are
    one, four = (fitted(X.astype(dtype), n_threads=n, **lawful) for n in (1, 4))
    assert_same(RESULTS, four, one)


def test_the_same_seed_gives_the_same_result(X, lawful):
    states = (7, 7, np.random.RandomState(7))
    once, *others = (fitted(X, n_init=3, random_state=state, **lawful) for state in states)
    for again in others:
        assert_same(RESULTS, again, once)


def test_float32_stays_float32_and_predict_gives_the_labels(X, lawful):
    single = X.astype(np.float32)
    model, double = fitted(single, **lawful), fitted(X, **lawful)
    assert model.cluster_centers_.dtype == np.float32
    assert model.transform(single).dtype == np.float32
    assert_same_clusters(model, double, atol=1e-4)
    for fit, data in ((model, single), (double, X)):
        assert_array_equal(fit.predict(data), fit.labels_)
        assert_array_equal(fit.predict(data[::-1]), fit.labels_[::-1])


# Definitions, recomputed in plain NumPy


def test_all_attributes_are_of_one_solution(X, setting):
    model, n = fitted(X, outlier_rule="paper", **setting), len(X)
    n_trim = int(np.floor(setting["trim"] * n + 1e-9))
    sparse = setting.get("l1_bound", "auto") is not None
    assert model.n_trim_ == n_trim == model.trimmed_weighted_.sum()
    assert model.trimmed_unweighted_.sum() == (n_trim if sparse else 0)
    assert_array_equal(model.trimmed_, model.trimmed_weighted_ | model.trimmed_unweighted_)
    kept = ~model.trimmed_weighted_
    means = plain_means(X, np.where(kept, model.labels_, -1), 3)
    assert_allclose(model.cluster_centers_, means, rtol=1e-10, atol=1e-12)
    distances = plain_distances(X, model.cluster_centers_, model.feature_weights_)
    nearest = distances.min(axis=1)
    assert_allclose(model.transform(X) ** 2, distances, rtol=1e-9)
    assert_array_equal(model.labels_, distances.argmin(axis=1))
    assert_allclose(model.score_samples(X), -nearest, rtol=1e-9)
    assert_allclose(model.score(X), -np.sort(nearest)[: n - n_trim].sum())
    assert_allclose(model.inertia_, nearest[kept].sum())
    assert len(model.objective_path_) == model.n_iter_
    if not np.isnan(X).any():  # else cases have factors by the weights of the step before
        groups = np.where(model.trimmed_, -1, model.labels_)
        between = plain_between(X, groups, 3, model.feature_weights_)
        assert_allclose(model.objective_, model.feature_weights_ @ between)


@pytest.mark.parametrize("cutoff", [3.5, 1.0])
def test_outliers_are_beyond_the_median_by_the_cutoff_in_mads(table, setting, cutoff):
    given = {"outlier_rule": "paper", "outlier_cutoff": cutoff, **setting}
    model, X = make_model(**given).fit(table.data), table.data
    nearest = plain_distances(X, model.cluster_centers_, model.feature_weights_).min(axis=1)
    mad = 1.4826 * np.median(np.abs(nearest - np.median(nearest)))
    assert_allclose(model.outlier_threshold_, np.median(nearest) + cutoff * mad)
    assert_array_equal(model.outliers_, nearest > model.outlier_threshold_)
    assert_array_equal(model.is_outlier(X), model.outliers_)
    assert model.is_outlier(X[:1] + 1e3).all()


def test_outlying_cells_without_weight_are_trimmed_all_the_same():
    data = TABLES["masking"]
    X = data.data.copy()
    weights = []
    for factor in (1, 1e6, 1e30):  # how outlying they are changes nothing
        X[data.outliers] = np.where(
            data.informative, X[data.outliers], factor * data.data[data.outliers]
        )
        model = make_model(trim=0.1, l1_bound=1.4).fit(X)
        assert model.trimmed_unweighted_[data.outliers].all()
        assert_array_equal(model.get_support(), data.informative)
        weights.append(model.feature_weights_)
    assert_allclose(weights[1:], [weights[0]] * 2, atol=1e-9)


# Special cases


def test_without_sparsity_and_trimming_it_is_k_means():
    X = make_figure1(n_samples=300, n_features=2, random_state=0).data
    model = make_model(trim=0, l1_bound=None).fit(X)
    rival = KMeans(3, n_init=10, tol=0, random_state=0).fit(X)
    assert_allclose(model.inertia_, rival.inertia_)
    assert_same_partition(model.labels_, rival.labels_)
    assert_array_equal(model.feature_weights_, 1)
    assert model.l1_bound_ is None
    assert not model.trimmed_.any()


@pytest.mark.parametrize("m", [1, 2, 3, 5, 8])
def test_n_features_gives_exactly_that_number(m):
    for data in (TABLES["tall"], TABLES["wide"]):
        model = make_model(n_features=m).fit(data.data)
        assert model.get_support().sum() == m
        assert_allclose(model.l1_bound_, model.feature_weights_.sum())
        assert model.get_support()[data.informative].sum() == min(m, 2)


def test_n_features_warns_where_features_tie():
    X = np.repeat(TABLES["tall"].data[:, :2], 3, axis=1)
    with pytest.warns(UserWarning, match=r"n_features=2 cannot be reached, .* tie or .*; 3 have"):
        model = make_model(n_features=2).fit(X)
    assert model.get_support().sum() == 3
    assert len(np.unique(model.feature_weights_)) == 2


def test_half_is_halfway(table):
    root = np.sqrt(table.data.shape[1])
    assert make_model(n_init=1, l1_bound="half").fit(table.data).l1_bound_ == 1 + (root - 1) / 2


@pytest.mark.parametrize("init", ["auto", "random", "k-means++", "robust"])
@pytest.mark.parametrize("trim", [0, 0.1])
def test_every_init_finds_easy_clusters(init, trim):
    data = TABLES["tall"]
    model = make_model(init=init, trim=trim, l1_bound=1.5).fit(data.data)
    assert rand_score(model.labels_, data.target) > 0.96


def test_init_as_array_is_one_start():
    data = TABLES["tall"]
    centers = [data.data[data.target == k].mean(axis=0) for k in (2, 0, 1)]
    model = make_model(init=centers, n_init="auto", random_state=None).fit(data.data)
    assert rand_score(model.labels_, data.target) > 0.97
    assert_array_equal(np.argsort(model.cluster_centers_[:, 0]), [1, 2, 0])


def test_init_as_callable_is_called_for_each_start():
    X, seen = TABLES["tall"].data, []

    def draw(X, n_clusters, random_state):
        seen.append((X.shape, n_clusters))
        return X[random_state.choice(len(X), n_clusters, replace=False)]

    model = make_model(init=draw, n_init=6).fit(X)
    assert seen == [(X.shape, 3)] * 6
    assert_same_partition(model.labels_, make_model().fit(X).labels_)


@pytest.mark.parametrize(("verbose", "least", "most"), [(0, 0, 0), (1, 2, 6), (2, 4, 100)])
def test_verbose_talks_on_stderr(verbose, least, most, capsys):
    make_model(verbose=verbose).fit(TABLES["tall"].data)
    out, err = capsys.readouterr()
    assert out == ""
    assert least <= len(err.splitlines()) <= most
    assert all(line.startswith("rskc: ") for line in err.splitlines())


def test_verbose_fits_side_by_side_print_each_its_own(capsys):
    """One prints most, one a little and one nothing; they meet where each has begun."""
    met = threading.Barrier(3)

    def print_some(verbose):
        with solver_settings(verbose):
            met.wait(60)
            tell(1, f"stage of {verbose}")
            tell(2, f"iteration of {verbose}")
            met.wait(60)
        tell(1, "nothing")

    threads = [threading.Thread(target=print_some, args=(verbose,)) for verbose in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = sorted(capsys.readouterr().err.splitlines())
    assert lines == ["rskc: iteration of 2", "rskc: stage of 1", "rskc: stage of 2"]


def test_max_iter_ends_it_with_a_warning():
    X = make_simulation(random_state=0).data
    with pytest.warns(ConvergenceWarning, match="max_iter=1 ") as said:
        model = make_model(max_iter=1, n_init=2, init="random").fit(X)
    assert said[0].filename == __file__
    assert set(model.labels_) == {0, 1, 2}


def test_a_small_far_clump_is_not_a_cluster_but_is_named():
    data = make_contaminated("clump_rows", n_features=50, random_state=0)
    with pytest.warns(SmallClusterWarning, match="lower trim") as said:
        model = make_model(l1_bound=3.0).fit(data.data)
    outlying = np.flatnonzero(data.outliers)
    assert f"has 4 cases only ({', '.join(map(str, outlying))})" in str(said[0].message)
    assert said[0].filename == __file__
    assert model.trimmed_[outlying].all()


# Kinds of arrays


FORMS = {
    "Fortran": np.asfortranarray,
    "strided": strided,
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": read_only,
    "list": lambda X: X.tolist(),
    "big-endian": lambda X: X.astype(">f8"),
    "integers": lambda X: X.astype(np.int64),
    "small integers": lambda X: X.astype(np.int8),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_the_array_changes_no_bit(form, setting):
    X = np.round(TABLES["tall"].data * 10)
    other = FORMS[form](X)
    straight, model = make_model(**setting).fit(X), make_model(**setting).fit(other)
    assert_same(RESULTS, model, straight)
    assert_array_equal(model.predict(other), straight.labels_)


# The design's table


def share_misplaced(data, kept):
    """The CER of the kept cases: the share of pairs that are together in one partition only."""
    model = make_model(n_init="auto", trim=0.1, l1_bound=3.5).fit(data.data[kept])
    clean = ~data.outliers[kept]
    return 1 - rand_score(model.labels_[clean], data.target[kept][clean])


@pytest.mark.parametrize("kind", ["shared_cell", "clump_cells", "clump_rows", "far_rows"])
def test_outlying_cases_cost_little(kind):
    tables = [make_contaminated(kind, random_state=seed) for seed in range(15)]
    outlying = np.mean([share_misplaced(data, np.ones(60, bool)) for data in tables])
    clean = np.mean([share_misplaced(data, ~data.outliers) for data in tables])
    assert outlying <= clean + 0.015
    assert outlying <= 0.03 or kind != "shared_cell"


@pytest.mark.filterwarnings("ignore:.* times as far as")
def test_far_clusters_in_a_column_that_is_mostly_constant():
    rng = np.random.default_rng(0)
    cases = rng.normal(0, 1e-3, (1000, 3))
    cases[:, 1] = 0
    cases[:40, 1] = np.repeat([1e4, 2e4], 20) + rng.normal(0, 10, 40)
    cases = cases[rng.permutation(1000)]
    model = RobustSparseKMeans(3, trim=0, l1_bound=None, random_state=0).fit(cases)
    assert sorted(np.bincount(model.labels_)) == [20, 20, 960]


def test_close_clusters_far_away_in_single_precision():
    rng = np.random.default_rng(0)
    centers = np.repeat([0, 1e4, 1e4 + 2], [200, 50, 50])
    cases = (centers + rng.normal(0, 0.2, 300)).astype(np.float32)[:, None]
    model = RobustSparseKMeans(3, trim=0, l1_bound=None, random_state=0).fit(cases)
    assert sorted(np.bincount(model.labels_)) == [50, 50, 200]


@pytest.mark.filterwarnings("ignore::rskc.SmallClusterWarning")
@pytest.mark.parametrize("seed", range(6))
def test_no_cluster_of_outlying_cases_comes_out_of_heavy_tails(seed):
    rng = np.random.default_rng(seed)
    cases = rng.standard_normal((300, 50)) + 0.3 * rng.standard_t(1, (300, 50))
    cases[:, :8] += 4 * np.repeat([0, 1, 2], 100)[:, None]
    model = RobustSparseKMeans(3, random_state=seed).fit(cases)
    assert np.bincount(model.labels_, minlength=3).min() > 30
