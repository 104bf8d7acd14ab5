"""What the data decide: the features that differ, and the cases that are outlying."""

from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.designs import make_design
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2, f_oneway, kruskal, rankdata

from rskc import RobustSparseKMeans, SmallClusterWarning
from rskc.datasets import make_simulation
from rskc.engines import engine_for
from rskc.metrics import classification_error_rate
from rskc.model.automatic import FeatureTests, rank_tests, ranks_of
from rskc.model.outliers import far_of, judge

OF_CHOICE = ("feature_statistics_", "feature_p_values_", "n_features_different_")


def fit(X, K=3, **changes):
    return RobustSparseKMeans(K, **{"random_state": 0} | changes).fit(X)


# ---- Tests of the features


@pytest.fixture
def cells():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    X[:, 1] = np.round(X[:, 1])  # ties
    X[:, 2] = 3.0  # constant
    X[:20, 3] += 2
    return X


@pytest.mark.parametrize("share", [0, 0.2])
def test_the_statistic_is_a_one_way_f_on_the_ranks_of_observed_cells(cells, share):
    rng, groups = np.random.default_rng(1), np.arange(60) // 20
    cells[rng.random(cells.shape) < share] = np.nan
    some = np.where(np.arange(60) % 7 == 0, -1, groups)  # cases that are left out are ranked
    found, left = (rank_tests(ranks_of(cells), each, 3) for each in (groups, some))
    for j in (0, 1, 3, 4):
        seen = ~np.isnan(cells[:, j])
        ranks = rankdata(cells[seen, j])
        for tests, own in ((found, groups[seen]), (left, some[seen])):
            expected = f_oneway(*(ranks[own == k] for k in range(3)))
            assert_allclose(tests.statistics[j], expected.statistic)
            assert_allclose(tests.p_values[j], expected.pvalue)
        # Kruskal and Wallis's test has the same order of features.
        n = len(ranks)
        h = kruskal(*(cells[seen, j][groups[seen] == k] for k in range(3))).statistic
        assert_allclose(found.statistics[j], (h / 2) / ((n - 1 - h) / (n - 3)))
    assert (found.statistics[2], found.p_values[2]) == (0, 1)


def test_features_in_chunks_are_tested_alike(cells, monkeypatch):
    groups = np.arange(60) % 3
    whole = rank_tests(ranks_of(cells), groups, 3)
    monkeypatch.setattr("rskc.model.automatic.CELLS_AT_ONCE", 100)
    for one, other in zip(whole, rank_tests(ranks_of(cells), groups, 3), strict=True):
        assert_array_equal(one, other)


# ---- The bound


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_papers_simulation_with_nothing_but_k(number, seed):
    data = make_simulation(number, random_state=seed)
    model = fit(data.data, random_state=seed)
    support = model.get_support()
    assert support[:50].sum() >= 48
    assert support[50:].sum() <= 4
    assert classification_error_rate(model.labels_, data.target) <= 0.05
    assert model.n_features_enough_ <= model.n_features_different_


def test_the_attributes_say_what_was_tested():
    X = make_simulation(1, random_state=3).data
    model = fit(X, trim=0.05)
    passed = FeatureTests(model.feature_statistics_, model.feature_p_values_).passed()
    assert model.n_features_different_ == passed.sum() == model.get_support().sum()
    assert_allclose(model.feature_weights_.sum(), model.l1_bound_)
    near = fit(X, trim=0.05, n_features=model.n_features_enough_)
    assert 1 - classification_error_rate(near.labels_, model.labels_) >= 0.95
    model.set_params(l1_bound="half").fit(X)
    assert not any(hasattr(model, name) for name in OF_CHOICE)


@pytest.mark.parametrize(
    "options", [{}, {"trim": 0}, {"trim": 0.1}, {"reweight": True, "trim": 0.1}]
)
def test_edges(options):
    rng = np.random.default_rng(0)
    blobs = np.repeat([0.0, 9.0], 15)[:, None] + rng.normal(size=(30, 1))
    assert_array_equal(fit(blobs, 2, **options).get_support(), [True])  # p = 1
    one = fit(blobs, 1, **options)  # K = 1
    assert one.l1_bound_ is None
    assert_array_equal(np.unique(one.labels_), [0])
    ties = np.round(np.hstack([blobs, rng.normal(size=(30, 3)), np.ones((30, 2))]))
    found = fit(ties, 2, **options)
    assert_array_equal(found.get_support(), [True, False, False, False, False, False])
    assert_array_equal(found.feature_p_values_[4:], [1, 1])
    noise = fit(rng.normal(size=(40, 300)), 2, **options)
    assert noise.get_support().sum() >= 1
    few = fit(np.array([[0.0], [0.1], [5.0], [5.1]]), 2, **options)
    assert_array_equal(few.labels_[:2] == few.labels_[2:], [False, False])


# ---- Outliers


def one_cluster(distances):
    """What is known of a solution with one cluster, by the distances of its cases."""
    n = len(distances)
    return SimpleNamespace(
        labels=np.zeros(n, np.int32),
        trimmed_weighted=np.zeros(n, bool),
        kept_sizes=np.array([n]),
        costs=distances,
        unweighted_costs=distances,
    )


@pytest.mark.parametrize("df", [1, 4, 50, 1000])
def test_hardly_any_clean_case_is_flagged(df):
    n = 20_000
    distances = chi2(df).rvs(n, random_state=0)
    engine = engine_for(np.zeros((n, 1)) + np.arange(n)[:, None])
    solution = one_cluster(distances)
    judged = judge(engine, solution, "both", None)
    assert judged.cutoff == 3
    assert_array_equal(judged.outliers, distances > judged.thresholds.weighted)
    assert 0 < judged.outliers.mean() < 0.004
    assert far_of(engine, solution).weighted.mean() < 0.004


def test_heavy_tails_raise_the_cutoff_and_outlying_cases_do_not():
    rng, n = np.random.default_rng(0), 2000
    engine = engine_for(rng.normal(size=(n, 2)))

    def cutoff(roots):
        return judge(engine, one_cluster(roots**3), "both", None).cutoff

    clean = 10 + rng.normal(size=n)
    assert cutoff(np.where(np.arange(n) < 200, 30, clean)) == 3
    assert cutoff(np.where(np.arange(n) < 200, clean + 7, clean)) == 3
    assert cutoff(10 + np.abs(rng.standard_t(2, n))) == 5


def test_no_more_than_a_quarter_is_set_aside():
    n = 100
    distances = np.where(np.arange(n) % 3 == 0, 5.0, 1.0)  # no spread
    engine = engine_for(np.arange(n, dtype=float)[:, None])
    assert not far_of(engine, one_cluster(distances)).weighted.any()


@pytest.mark.parametrize("options", [{}, {"trim": 0.1, "l1_bound": 3.0}, {"l1_bound": None}])
def test_outliers_are_those_of_new_cases_and_scores_follow(options):
    X = make_design("few features, cells", random_state=0).data
    model = fit(X, 5, **options)
    assert_array_equal(model.is_outlier(X), model.outliers_)
    far = model.distances_ > model.outlier_threshold_
    far |= model.unweighted_distances_ > model.unweighted_outlier_threshold_
    assert_array_equal(model.outliers_, far)
    assert_array_equal(-model.score_samples(X) > model.outlier_threshold_, far)
    own = X - model.cluster_centers_[model.labels_]
    assert_allclose(model.unweighted_distances_, (own**2).sum(axis=1))
    assert_allclose(model.distances_, own**2 @ model.feature_weights_)


# ---- Trimming


@pytest.mark.parametrize("name", ["equal, rows", "few features, cells", "three, clump", "wide"])
def test_outlying_cases_are_set_aside_and_others_are_not(name):
    design = make_design(name, random_state=0)
    model = fit(design.data, design.n_clusters)
    assert model.outliers_[design.outlying].all()
    assert model.trimmed_[design.outlying].all()
    assert model.outliers_[~design.outlying].mean() < 0.02
    assert model.trim_ == model.n_trim_ / len(design.data) == model.trimmed_.mean()


@pytest.mark.parametrize("options", [{}, {"trim": 0.1, "l1_bound": 2.0, "reweight": True}])
def test_reweighting_ends_where_nothing_changes(options):
    X = make_design("line, cells", random_state=2).data
    model = fit(X, 4, **options)
    kept = ~model.trimmed_
    means = [X[kept & (model.labels_ == k)].mean(axis=0) for k in range(4)]
    assert_allclose(model.cluster_centers_, means)
    assert_array_equal(model.predict(X), model.labels_)
    assert_array_equal(model.trimmed_, model.outliers_)


def test_a_small_cluster_is_no_group_of_outliers():
    kept = []
    for seed in range(8):
        design = make_design("small cluster", random_state=seed)
        model = fit(design.data, 3, random_state=seed)
        kept.append(classification_error_rate(model.labels_, design.labels) < 0.02)
    assert sum(kept) >= 6


def test_a_small_cluster_that_is_trimmed_is_named():
    design = make_design("small cluster", random_state=0)
    with pytest.warns(SmallClusterWarning, match="form a clump") as said:
        model = fit(design.data, 2, trim=0.1, l1_bound="half")
    assert model.warning_kinds_ == ["clump"]
    first = int(np.flatnonzero(design.labels == 2)[0])
    assert f"({first}, {first + 1}, " in str(said[0].message)


@pytest.mark.parametrize("name", ["blocks, clump", "equal, rows", "heavy tails"])
def test_outlying_cases_that_are_no_cluster_are_not_named(name):
    design = make_design(name, random_state=0)
    assert fit(design.data, design.n_clusters, trim=0.1, l1_bound="half").warning_kinds_ == []


# ---- Parts, by hand


@pytest.mark.filterwarnings("ignore::rskc.SmallClusterWarning", "ignore:.* times as far as")
@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_of_cases_that_are_alike_another_is_outlying_and_rounding_is_not(unit):
    X = np.repeat([[0.1, 0.7], [10.3, 0.7]], 20, axis=0)
    X[7, 1] += 1e-4
    model = fit(unit * X, 2, l1_bound=None, trim=0)
    assert_array_equal(np.flatnonzero(model.outliers_), [7])


# ---- Laws


@pytest.fixture(scope="module")
def table():
    return make_design("equal, rows", random_state=1).data


def test_the_order_of_cases_and_features_does_not_matter(table):
    rng = np.random.default_rng(0)
    cases, features = rng.permutation(len(table)), rng.permutation(table.shape[1])
    once, again = fit(table), fit(table[cases][:, features])
    assert classification_error_rate(once.labels_[cases], again.labels_) == 0
    assert_array_equal(once.get_support()[features], again.get_support())
    assert_array_equal(once.outliers_[cases], again.outliers_)


@pytest.mark.parametrize("options", [{}, {"trim": 0.05}, {"l1_bound": 4.0}, {"l1_bound": None}])
def test_very_many_cases_are_decided_by_a_sample(options, monkeypatch):
    monkeypatch.setattr("rskc.solver.search.SAMPLE_CELLS", 2**13)
    monkeypatch.setattr("rskc.solver.search.FEWEST_CASES", 2**8)
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=3000)
    X = rng.normal(size=(3000, 30))
    X[:, :5] += 6 * rng.normal(size=(3, 5))[labels]
    X[::50, 20:23] += 15
    model = fit(X, **options)
    assert classification_error_rate(model.labels_, labels) < 0.01
    assert model.outliers_[::50].all()
    assert model.outliers_.mean() < 0.03
    assert_array_equal(model.predict(X), model.labels_)
    if options.get("l1_bound", "auto") == "auto":
        assert_array_equal(np.flatnonzero(model.get_support()), np.arange(5))
