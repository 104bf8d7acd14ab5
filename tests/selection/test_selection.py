"""The searches: what they decide, by hand-made tables, by laws, and on data with a known truth."""

import gzip
import json
import pickle
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

from rskc import RobustSparseKMeans, selection
from rskc.datasets import make_simulation
from rskc.metrics import classification_error_rate
from rskc.selection import (
    Clest,
    GapL1,
    GridSearch,
)
from rskc.selection import grid as grid_module
from rskc.selection.clest import most_below, paper_rule
from rskc.selection.gap import within_one_error

FOLDER = Path(__file__).parents[1] / "reference"
QUIET = {"progress": False, "random_state": 0}
ALONE = {**QUIET, "n_jobs": 1}
MODEL = RobustSparseKMeans(l1_bound=4, trim=0.05)
SMALL = RobustSparseKMeans(3, l1_bound=2, trim=0.05, n_init=3)


def corners(K, n=60, p=8, far=8.0, seed=0):
    """Clusters of unit noise, each out along an axis of its own."""
    target = np.arange(n) % K
    return far * np.eye(K, p)[target] + np.random.default_rng(seed).standard_normal((n, p))


def noise(kind, seed, shape=(60, 20)):
    rng = np.random.default_rng(seed)
    return rng.uniform(size=shape) if kind == "uniform" else rng.standard_normal(shape)


def with_missing(X, share=0.1, seed=0):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


def quick_clest(model=SMALL, n_clusters=(2, 3, 4), **params):
    common = {"n_splits": 5, "n_references": 5, "level": 0.2, **ALONE, **params}
    return Clest(model, n_clusters, **common)


def assert_one_sentence(error):
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith(".")


# ---- Clest: the rules, by hand


def decide(observed, reference, numbers=None, **params):
    """Let Clest decide on CERs: a row a split or a reference set, a column a number of clusters."""
    clest = Clest(None, n_references=len(reference), **params)
    clest.observed_cers_, clest.reference_cers_ = np.array(observed), np.array(reference)
    clest._decide(np.arange(2, 2 + len(observed[0])) if numbers is None else np.array(numbers))
    return clest


@cache
def golden(name):
    return json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))


@pytest.mark.parametrize("name", ["clest01", "clest02"])
def test_from_the_cers_of_rskc_follow_its_table_and_its_decision(name):
    runs = golden(name)["runs"]
    assert len(runs) == 4
    for run in runs:
        common = {"rule": "paper", "level": run["beta"], "numbers": run["K_values"]}
        clest = decide(run["observedCERs"], run["referenceCERs"], **common)
        columns = ["difference", "observed_cer", "reference_cer", "share_below"]
        assert_allclose(clest.table_[columns], run["result_table"], atol=1e-12)
        assert clest.n_clusters_ == run["K"]
        assert_array_equal(clest.table_.chosen, np.array(run["K_values"]) == run["K"])


def constant(values, times=20):
    return np.tile(np.array(values, float), (times, 1))


def test_the_table_by_hand():
    observed = [[0.0, 0.3], [0.1, 0.2], [0.5, 0.4]]
    reference = [[0.1, 0.1], [0.2, 0.3], [0.05, 0.4], [0.25, 0.2]]
    table = decide(observed, reference, level=0.5, rule="agreement").table_
    assert table.columns.tolist() == [
        "n_clusters",
        "observed_cer",
        "reference_cer",
        "difference",
        "agreement",
        "n_below",
        "share_below",
        "passed",
        "chosen",
    ]
    assert_allclose(table.observed_cer, [0.1, 0.3])  # medians
    assert_allclose(table.reference_cer, [0.15, 0.25])  # means
    assert_allclose(table.difference, [-0.05, 0.05])
    assert_allclose(table.agreement, [1 / 3, -0.2])
    assert table.n_below.tolist() == [1, 2]  # a tie is not below
    assert_allclose(table.share_below, [1 / 4, 2 / 4])


def test_the_paper_takes_the_least_difference_of_those_that_pass():
    reference = constant([0.3, 0.3, 0.3, 0.3])
    reference[:1, 1] = 0.0  # one of twenty is below: a share of 0.05 is not less than the level
    observed = constant([0.2, 0.05, 0.1, 0.1], 3)
    clest = decide(observed, reference, rule="paper")
    assert clest.table_.passed.tolist() == [True, False, True, True]
    assert clest.n_clusters_ == 4  # the first of two that tie
    assert decide(observed, reference, rule="paper", level=0.06).n_clusters_ == 3


@pytest.mark.parametrize(
    ("agreement", "chosen"),
    [
        ([1, 0.85, 0.6], 2),  # the largest within 0.1 of the best
        ([1, 0.95, 0.6], 3),
        ([0.91, 0.95, 0.86], 4),
        ([0.6, 0.9, 0.7], 3),
        ([0.49, 0.4, 0.3], 1),  # all pass the test, none agrees enough
        ([0.52, 0.49, 0.45], 2),  # nearly as good, but below one half
        ([1, 1, 1], 4),
    ],
)
def test_agreement_takes_the_largest_of_those_nearly_as_good(agreement, chosen):
    reference = constant([0.4, 0.3, 0.2])
    observed = constant((1 - np.array(agreement)) * reference[0], 5)
    clest = decide(observed, reference)
    assert_allclose(clest.table_.agreement, agreement)
    assert clest.n_clusters_ == chosen
    assert clest.table_.chosen.sum() == (chosen > 1)


@pytest.mark.parametrize(("below_the_best", "chosen"), [(0.06, 5), (0.065, 4)])
def test_five_clusters_must_be_nearer_to_the_best_than_half_of_a_split(below_the_best, chosen):
    """Of four true ones, one split in two costs 1/32 of the pairs, .125 of a CER of .25."""
    reference = constant([0.4, 0.3, 0.3, 0.25])
    observed = constant((1 - np.array([0.6, 0.6, 1, 1 - below_the_best])) * reference[0], 5)
    assert decide(observed, reference, numbers=[2, 3, 4, 5]).n_clusters_ == chosen


@pytest.mark.parametrize(
    ("rule", "level", "n_references", "most"),
    [
        ("agreement", 0.05, 20, 0),
        ("agreement", 0.05, 39, 1),
        ("agreement", 0.05, 5, 0),  # at least none
        ("agreement", 0.1, 20, 1),
        ("paper", 0.05, 20, 0),
        ("paper", 0.05, 21, 1),
        ("paper", 0.06, 20, 1),
        ("paper", 0.0, 20, -1),
    ],
)
def test_how_many_reference_sets_may_be_below(rule, level, n_references, most):
    assert most_below(rule, level, n_references) == most
    share = np.arange(n_references + 1)
    by_definition = share / n_references < level
    if rule == "agreement":
        by_definition = (1 + share) / (1 + n_references) <= max(level, 1 / (1 + n_references))
    assert np.count_nonzero(by_definition) == most + 1


def test_agreement_asks_that_hardly_any_reference_is_below():
    reference = constant([0.4, 0.4])
    reference[0] = [0.0, 0.4]  # one below the observed: 2/21 is above .05
    observed = constant([0.02, 0.1], 5)
    clest = decide(observed, reference)
    assert clest.table_.n_below.tolist() == [1, 0]
    assert clest.table_.passed.tolist() == [False, True]
    assert clest.n_clusters_ == 3
    assert decide(observed, reference, level=0.1).n_clusters_ == 2


@pytest.mark.parametrize("n_references", [19, 39, 199])
def test_none_below_passes_at_its_own_level(n_references):
    """1 / 20 is 0.05, whatever it rounds to."""
    observed, reference = constant([0.0], 3), constant([0.3], n_references)
    level = 1 / (1 + n_references)
    assert decide(observed, reference, level=level).n_clusters_ == 2


@pytest.mark.parametrize("rule", ["agreement", "paper"])
def test_none_better_than_chance_is_one_cluster(rule):
    observed, reference = constant([0.3, 0.3], 5), constant([0.2, 0.2])
    clest = decide(observed, reference, rule=rule)
    assert clest.n_clusters_ == 1
    assert not clest.table_[["passed", "chosen"]].any(axis=None)


def test_one_cluster_is_fitted_with_equal_weights():
    X = noise("normal", 1, (40, 5))
    clest = quick_clest(level=0.17, n_clusters=(2, 3)).fit(X)
    assert clest.n_clusters_ == 1
    assert clest.best_estimator_.n_clusters == 1
    assert (clest.best_estimator_.labels_ == 0).all()
    assert_array_equal(clest.best_estimator_.feature_weights_, np.ones(5))
    assert quick_clest(KMeans(n_init=2), (2,)).fit(X).best_estimator_.n_clusters == 1


# ---- Clest: what is refused


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"n_clusters": 1}, "n_clusters=1 must be an integer >= 2"),
        ({"n_clusters": (2, 2.5)}, "n_clusters=2.5"),
        ({"n_clusters": ()}, "n_clusters is empty"),
        ({"n_clusters": "two"}, "n_clusters='two' must be"),
        ({"n_clusters": iter([2, 3])}, "list or range"),
        ({"n_clusters": 21}, "n_clusters=21 is more than 20 cases, as many as"),
        ({"n_splits": 0}, "n_splits=0"),
        ({"n_references": 0}, "n_references=0"),
        ({"rule": "best"}, "rule='best' must be one of 'agreement', 'paper'"),
        ({"reference": "normal"}, "reference='normal' must be one of 'pca', 'uniform'"),
        ({"level": 1.5}, "level=1.5"),
        ({"estimator__trim": 0.7}, "trim=0.7"),
    ],
)
def test_clest_refuses(params, told):
    clest = Clest(clone(SMALL), (2, 3), **ALONE).set_params(**params)
    with pytest.raises(ValueError, match=told) as error:
        clest.fit(corners(3))
    assert_one_sentence(error)


@pytest.mark.parametrize(("below", "number"), [(0, 2), (1, 1)])
def test_with_few_references_none_may_be_below(below, number):
    """As few as RSKC's five: p-values of 1/6 and more, at a level of .05."""
    reference = [[0.05]] * below + [[0.4]] * (5 - below)
    assert decide([[0.1]] * 3, reference, level=0.05).n_clusters_ == number


def test_few_references_are_enough_for_the_paper():
    assert quick_clest(rule="paper", n_references=2, level=0.05).fit(corners(3)).n_clusters_ > 1


@pytest.mark.parametrize("model", [None, AgglomerativeClustering()], ids=["None", "no predict"])
def test_an_estimator_that_cannot_be_used_is_refused(model):
    with pytest.raises((TypeError, ValueError), match="estimator="):
        quick_clest(model).fit(corners(3))


# ---- Clest on data


def reference_number(name, seed, **params):
    X = np.array(golden(name)["data"])
    clest = Clest(MODEL, range(2, 7), **{**QUIET, "random_state": seed, **params})
    return clest.fit(X).n_clusters_


# The refit on clest02 says that two of its cases might be a cluster; they are not.
small_clusters = pytest.mark.filterwarnings("ignore::rskc.SmallClusterWarning")


@small_clusters
@pytest.mark.parametrize(("name", "K"), [("clest01", 2), ("clest02", 3)])
def test_clest_finds_the_number_that_rskc_finds(name, K):
    assert golden(name)["K"] == K
    assert reference_number(name, 0, n_splits=5, n_references=19) == K


@pytest.mark.slow
@small_clusters
@pytest.mark.parametrize(("name", "K"), [("clest01", 2), ("clest02", 3)])
def test_clest_finds_the_number_with_nine_seeds_of_ten(name, K):
    found = [reference_number(name, seed) for seed in range(10)]
    assert found.count(K) >= 9, found


@pytest.mark.parametrize("K", [2, 3, 4])
def test_clest_finds_clusters_far_apart(K):
    X = corners(K)
    clest = quick_clest(n_clusters=range(2, 6)).fit(X)
    assert clest.n_clusters_ == clest.best_estimator_.n_clusters == K
    assert classification_error_rate(clest.best_estimator_.labels_, np.arange(60) % K) == 0
    assert clest.table_.n_clusters.tolist() == [2, 3, 4, 5]
    assert clest.observed_cers_.shape == clest.reference_cers_.shape == (5, 4)


@pytest.mark.parametrize("reference", ["pca", "uniform"])
def test_clest_takes_other_clusterers(reference):
    model = KMeans(n_init=3)
    clest = quick_clest(model, reference=reference).fit(corners(3))
    assert clest.n_clusters_ == 3
    assert isinstance(clest.best_estimator_, KMeans)
    assert not hasattr(model, "labels_")


def test_clest_with_missing_values():
    clest = quick_clest().fit(with_missing(corners(3)))
    assert clest.n_clusters_ == 3
    assert classification_error_rate(clest.best_estimator_.labels_, np.arange(60) % 3) < 0.1


@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_data_without_clusters_have_one(kind):
    clest = Clest(RobustSparseKMeans(l1_bound=3, trim=0.05, n_init=10), (2, 3, 4), **QUIET)
    assert clest.fit(noise(kind, 0)).n_clusters_ == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["uniform", "normal"])
@small_clusters
def test_data_without_clusters_have_one_nearly_always(kind):
    clest = Clest(RobustSparseKMeans(l1_bound=3, trim=0.05), range(2, 6), **QUIET)
    found = [clest.fit(noise(kind, seed)).n_clusters_ for seed in range(20)]
    assert found.count(1) >= 17, found


def close_clusters(seed):
    """Four clusters of which some lie close together, and four outlying cells."""
    rng = np.random.default_rng(seed)
    centers = np.zeros((4, 60))
    centers[:, :15] = rng.normal(0, 2, (4, 15))
    X = centers[np.arange(100) * 4 // 100] + rng.standard_normal((100, 60))
    for _ in range(4):
        X[rng.integers(100), rng.integers(60)] = 25
    return X


def numbers_of_both_rules(seed):
    clest = Clest(MODEL, range(2, 7), **QUIET).fit(close_clusters(seed))
    return clest.n_clusters_, paper_rule(clest.table_, 0.05, clest.n_references)[1]


@small_clusters
def test_joining_clusters_is_as_stable_and_the_default_rule_is_not_taken_in():
    assert numbers_of_both_rules(0) == (4, 2)


@pytest.mark.slow
@small_clusters
def test_the_default_rule_finds_four_where_the_paper_joins():
    found = np.array([numbers_of_both_rules(seed) for seed in range(10)])
    assert np.count_nonzero(found[:, 0] == 4) >= 9, found
    assert np.count_nonzero(found[:, 1] < 4) >= 4, found


# ---- Searches as estimators


def all_searches(model=SMALL):
    return [
        quick_clest(model, (2, 3)),
        GapL1(model, 3, n_permutations=2, **ALONE),
        GridSearch(model, l1_bounds=(1.5, 2), trims=(0, 0.1), **ALONE),
    ]


def class_name(search):
    return type(search).__name__


each_search = pytest.mark.parametrize("search", all_searches(), ids=class_name)


@each_search
def test_a_search_is_an_estimator(search):
    params = search.get_params()
    assert params["estimator__n_init"] == 3
    copy = clone(search)
    assert copy is not search
    assert copy.get_params()["random_state"] == 0
    assert copy.set_params(estimator__n_init=2, n_jobs=None).estimator.n_init == 2
    assert search.estimator.n_init == 3
    assert type(search).__name__ in repr(search)
    with pytest.raises(ValueError, match="Invalid parameter"):
        copy.set_params(color="blue")
    with pytest.raises(NotFittedError):
        clone(search).predict(corners(3))


@each_search
def test_a_fitted_search_predicts_and_leaves_the_estimator_alone(search):
    X, search = corners(3), clone(search)
    labels = search.fit_predict(X)
    assert_array_equal(labels, search.best_estimator_.labels_)
    assert_array_equal(search.predict(X), labels)
    assert not hasattr(search.estimator, "labels_")
    assert search.table_.chosen.sum() >= 1
    again = pickle.loads(pickle.dumps(search))
    assert_array_equal(again.predict(X), labels)
    pd.testing.assert_frame_equal(again.table_, search.table_)


@each_search
def test_the_refit_can_be_repeated(search):
    X = corners(3)
    search = clone(search).fit(X)
    assert search.best_estimator_.random_state is not None
    again = clone(search.best_estimator_).fit(X)
    assert_array_equal(again.feature_weights_, search.best_estimator_.feature_weights_)
    own = clone(search).set_params(estimator__random_state=5).fit(X)
    assert own.best_estimator_.random_state == 5


@each_search
def test_names_of_a_data_frame_are_kept(search):
    names = [f"gene{j}" for j in range(8)]
    frame = pd.DataFrame(corners(3), columns=names, index=[f"s{i}" for i in range(60)])
    search = clone(search).fit(frame)
    assert search.feature_names_in_.tolist() == names
    assert search.best_estimator_.feature_names_in_.tolist() == names
    assert search.best_estimator_.case_names_in_[3] == "s3"
    plain = clone(search).fit(frame.to_numpy())
    pd.testing.assert_frame_equal(plain.table_, search.table_)


@each_search
@pytest.mark.parametrize("X", [[[1.0, np.inf], [0, 1], [2, 3]], [1, 2, 3], np.empty((0, 3))])
def test_data_that_are_no_table_of_numbers_are_refused(search, X):
    with pytest.raises(ValueError):
        clone(search).fit(X)


@pytest.mark.parametrize("search", all_searches(KMeans(3, n_init=1)), ids=class_name)
def test_what_needs_a_bound_says_so(search):
    if isinstance(search, Clest):
        assert search.fit(corners(3)).n_clusters_ == 3
        return
    with pytest.raises(TypeError, match="must be a RobustSparseKMeans") as error:
        search.fit(corners(3))
    assert_one_sentence(error)


# ---- GapL1


@cache
def small_simulation(model=1):
    return make_simulation(model, 0, n_features=100, n_informative=15)


def gap_l1(X, l1_bounds=8, trim=0.05, n_permutations=5, K=3, **params):
    model = RobustSparseKMeans(K, trim=trim)
    return GapL1(model, l1_bounds, n_permutations=n_permutations, **{**ALONE, **params}).fit(X)


EVENLY = np.geomspace(1.2, 10, 6)


@pytest.mark.parametrize(("trim", "tolerance"), [(0, 1e-9), (0.05, 0.1)])
def test_objectives_of_permuted_data_do_not_fall_along_the_bounds(trim, tolerance):
    """With trimming they may, since other cases are trimmed; seldom, and by 0.06 in the log."""
    gap = gap_l1(small_simulation(1 if trim else 0).data, EVENLY, trim=trim, n_permutations=10)
    steps = np.diff(gap.permuted_log_objectives_, axis=1)
    assert steps.min() >= -tolerance
    assert (steps < -1e-3).mean() <= 0.1
    assert (steps.mean(axis=0) >= -1e-9).all()
    n_features = gap.table_.n_features.to_numpy()
    assert (np.diff(n_features) >= -2).all()
    assert n_features[-1] > 3 * n_features[0]


def test_objectives_do_not_fall_where_bounds_close_in():
    gap = gap_l1(small_simulation(0).data, trim=0, n_permutations=10)
    assert np.diff(gap.permuted_log_objectives_, axis=1).min() >= -1e-9


def test_gap_and_standard_error_by_hand():
    gap = gap_l1(small_simulation().data)
    table, logs = gap.table_, gap.permuted_log_objectives_
    assert logs.shape == (5, len(table))
    assert_allclose(table.log_objective, np.log(table.objective))
    assert_allclose(table.permuted_mean, logs.mean(axis=0))
    assert_allclose(table.gap, table.log_objective - logs.mean(axis=0))
    spread = np.sqrt(((logs - logs.mean(axis=0)) ** 2).mean(axis=0))
    assert_allclose(table.standard_error, spread * np.sqrt(1 + 1 / 5))
    assert gap.l1_bound_ == table.l1_bound[table.gap.idxmax()]
    enough = table.gap >= table.gap.max() - table.standard_error[table.gap.idxmax()]
    assert gap.l1_bound_1se_ == table.l1_bound[enough].min() <= gap.l1_bound_
    assert table.l1_bound[table.chosen].tolist() == [gap.l1_bound_1se_]
    assert gap.best_estimator_.l1_bound == gap.l1_bound_1se_
    assert list(table.columns) == [
        "l1_bound",
        "n_features",
        "objective",
        "log_objective",
        "permuted_mean",
        "gap",
        "standard_error",
        "chosen",
    ]


def test_the_objective_is_that_of_a_fit_with_the_bound():
    gap = gap_l1(small_simulation().data)
    model, row = gap.best_estimator_, gap.table_[gap.table_.chosen].iloc[0]
    assert model.objective_ / (~model.trimmed_).sum() == pytest.approx(row.objective, rel=0.01)


@pytest.mark.parametrize(
    ("gaps", "errors", "row"),
    [
        ([1, 2, 3], [0.1, 0.1, 0.5], 2),
        ([1, 2.6, 3], [9, 9, 0.5], 1),  # the error of the largest counts, not their own
        ([2.5, 1, 3], [0, 0, 0.5], 0),
        ([3, 3, 1], [0, 0, 0], 0),
        ([1], [0], 0),
    ],
)
def test_one_standard_error_by_hand(gaps, errors, row):
    assert within_one_error(pd.DataFrame({"gap": gaps, "standard_error": errors})) == row


def test_the_largest_gap_can_be_asked_for():
    gap = gap_l1(small_simulation().data, rule="largest")
    assert gap.best_estimator_.l1_bound == gap.l1_bound_
    assert gap.table_.l1_bound[gap.table_.chosen].tolist() == [gap.l1_bound_]


def test_bounds_that_are_given_are_the_rows():
    gap = gap_l1(small_simulation().data, [5, 2.5, 10, 2.5, 1])
    assert gap.table_.l1_bound.tolist() == [1, 2.5, 5, 10]
    assert gap_l1(small_simulation().data, [3.0]).l1_bound_ == 3


@pytest.mark.parametrize("number", [2, 3, 5, 10])
def test_a_number_of_bounds_is_not_exceeded_and_reaches_the_root(number):
    bounds = gap_l1(small_simulation().data, number, n_permutations=2).table_.l1_bound
    assert 2 <= len(bounds) <= number
    assert (np.diff(bounds) > 0).all()
    assert bounds.iloc[-1] == pytest.approx(10)
    assert bounds.iloc[0] == pytest.approx(1.2)


@pytest.mark.parametrize("change", [lambda X: X * 1000, lambda X: X / 1024, lambda X: X + 100])
def test_the_gap_does_not_see_unit_and_origin(change):
    X = small_simulation().data
    here, there = gap_l1(X), gap_l1(change(X))
    assert_allclose(there.table_.l1_bound, here.table_.l1_bound)
    assert_allclose(there.table_.gap, here.table_.gap, atol=1e-9)
    assert there.l1_bound_1se_ == here.l1_bound_1se_


@pytest.mark.parametrize("axis", [0, 1])
def test_the_order_of_cases_and_columns_hardly_matters(axis):
    """Other permutations are drawn then, and other starts: bounds and gaps differ by chance."""
    X, bounds = small_simulation().data, [2, 3, 4, 6, 10]
    order = np.random.default_rng(0).permutation(X.shape[axis])
    here, there = gap_l1(X, bounds), gap_l1(np.take(X, order, axis=axis), bounds)
    assert_allclose(there.table_.log_objective, here.table_.log_objective, atol=0.02)
    assert_allclose(there.table_.gap, here.table_.gap, atol=0.1)
    support = here.best_estimator_.get_support()
    found = there.best_estimator_.get_support()
    moved = support if axis == 0 else support[order]
    assert np.count_nonzero(found != moved) <= 8


def found_features(seeds, trim, **params):
    """Number of features, of true ones, and the size of the least cluster for each data set."""
    rows = []
    for seed in seeds:
        table = make_simulation(1, seed)
        gap = GapL1(RobustSparseKMeans(3, trim=trim), **{**QUIET, **params}).fit(table.data)
        support = gap.best_estimator_.get_support()
        sizes = np.bincount(gap.best_estimator_.labels_, minlength=3)
        rows.append((support.sum(), (support & table.informative).sum(), sizes.min()))
    return np.transpose(rows)


def test_the_bound_is_right_with_trimming_and_wrong_without():
    selected, true, sizes = found_features(range(3), 0.05, n_permutations=5, n_jobs=1)
    assert ((selected >= 40) & (selected <= 60)).all(), selected
    assert true.mean() >= 45
    assert sizes.min() > 5
    selected, _, sizes = found_features(range(3), 0, n_permutations=5, n_jobs=1)
    assert ((selected > 100) | (selected < 20) | (sizes == 1)).all()


@pytest.mark.slow
def test_the_bound_is_right_on_twenty_data_sets():
    selected, true, _ = found_features(range(20), 0.05)
    print(f"features {selected.mean():.1f} ({selected.min()}-{selected.max()}), true {true.mean()}")
    assert 45 <= selected.mean() <= 55
    assert np.count_nonzero((selected >= 40) & (selected <= 60)) >= 18
    assert true.mean() >= 45


def test_the_bound_with_missing_values():
    table = small_simulation()
    X = with_missing(table.data)
    X[7] = np.nan
    support = gap_l1(X).best_estimator_.get_support()
    assert 8 <= support.sum() <= 30
    assert (support & table.informative).sum() >= 8


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"K": 1}, "n_clusters=1 must be an integer >= 2"),
        ({"l1_bounds": 1}, "l1_bounds=1 must be an integer >= 2"),
        ({"l1_bounds": [2, 10.1]}, r"l1_bounds=.*10.1.* must be a number in \[1, 10\)"),
        ({"l1_bounds": [0.5, 2]}, r"l1_bounds=.*0.5.* must be a number in \[1, 10\)"),
        ({"l1_bounds": [np.nan]}, "l1_bounds"),
        ({"l1_bounds": []}, "l1_bounds is empty"),
        ({"l1_bounds": "many"}, "l1_bounds="),
        ({"n_permutations": 1}, "n_permutations=1"),
        ({"rule": "2se"}, "rule='2se' must be one of '1se', 'largest'"),
    ],
)
def test_gap_l1_refuses(params, told):
    with pytest.raises(ValueError, match=told) as error:
        gap_l1(small_simulation().data, **params)
    assert_one_sentence(error)


def test_one_feature_has_no_bound():
    with pytest.raises(ValueError, match="one feature only") as error:
        gap_l1(np.arange(30.0)[:, None])
    assert_one_sentence(error)


def test_squares_that_overflow_are_reported_as_in_a_fit():
    X = small_simulation().data * 1e170
    with pytest.raises(ValueError, match="The squares of X overflow"):
        RobustSparseKMeans(3).fit(X)
    with pytest.raises(ValueError, match="The squares of X overflow"):
        gap_l1(X)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_sums_that_overflow_are_reported_as_in_a_fit():
    with pytest.raises(ValueError, match="The squares of X overflow"):
        quick_clest().fit(corners(3) * 1e307)


def test_a_name_that_is_gone_is_no_attribute():
    assert not hasattr(selection, "GapK")


@pytest.mark.parametrize("method", ["fit", "fit_predict"])
def test_a_warning_of_the_chosen_model_names_the_users_line(method):
    model = RobustSparseKMeans(2, max_iter=1, tol=0, n_init=1, random_state=0)
    found = GapL1(model, n_permutations=3, n_jobs=1, progress=False, random_state=0)
    with pytest.warns(UserWarning, match="Not converged") as said:
        getattr(found, method)(make_simulation(model=1, random_state=0).data)
    assert {warning.filename for warning in said} == {__file__}


# ---- The grid


def fake_fit(labels, trimmed=()):
    labels = np.array(labels)
    return {"labels": labels, "trimmed": np.isin(np.arange(len(labels)), trimmed)}


@pytest.mark.parametrize(
    ("trims", "told"),
    [
        ([0, 0.5], "trims=0.5 must be a number in"),
        ([-0.1], "trims=-0.1"),
        ([], "trims is empty"),
        ("much", "trims='much'"),
        ([None], "trims=None"),
    ],
)
def test_trimming_shares_out_of_range_are_refused(trims, told):
    with pytest.raises(ValueError, match=told) as error:
        GridSearch(SMALL, trims=trims).fit(corners(3))
    assert_one_sentence(error)


def test_weights_obey_both_norms_along_the_bounds():
    model = RobustSparseKMeans(3, random_state=0)
    X = small_simulation().data
    grid = GridSearch(model, l1_bounds=[1.5, 2.5, 4, 6, 10], trims=0.05, **ALONE).fit(X)
    weights, table = grid.weights_, grid.table_
    assert weights.shape == (5, 100)
    assert (weights >= 0).all()
    assert_allclose(np.linalg.norm(weights, axis=1), 1)
    assert (weights.sum(axis=1) <= table.l1_bound * (1 + 1e-9)).all()
    assert_array_equal(table.n_features, (weights > 0).sum(axis=1))
    for bound, objective in zip(table.l1_bound, table.objective, strict=True):
        alone = clone(model).set_params(l1_bound=bound, trim=0.05).fit(X)
        assert objective >= 0.999 * alone.objective_ / (~alone.trimmed_).sum()


def test_rows_are_all_combinations():
    grid = GridSearch(SMALL, (2, 3), [2, 1.5], [0.1, 0], **ALONE).fit(corners(3))
    rows = grid.table_[["n_clusters", "l1_bound", "trim"]].to_numpy().tolist()
    assert rows == [[K, s, t] for K in (2, 3) for t in (0, 0.1) for s in (1.5, 2)]
    assert list(grid.table_.columns) == [
        "n_clusters",
        "trim",
        "l1_bound",
        "n_trim",
        "objective",
        "inertia",
        "within",
        "n_features",
        "n_outliers",
        "silhouette",
        "consensus",
        "chosen",
    ]
    best = grid.table_[grid.table_.chosen]
    assert len(best) == 1
    for name in ("n_clusters", "l1_bound", "trim"):
        value = grid.best_params_[name]
        assert best[name].item() == value
        assert getattr(grid.best_estimator_, name) == value
    own = grid.table_[grid.table_.n_clusters == 3]
    assert best.consensus.item() == pytest.approx(own.consensus.max())
    assert best.n_clusters.item() == 3


def test_figures_are_those_of_the_fits():
    grid = GridSearch(SMALL, 3, [1.5, 2], [0, 0.1], **ALONE).fit(corners(3))
    model, row = grid.best_estimator_, grid.table_[grid.table_.chosen].iloc[0]
    assert row.n_trim == model.n_trim_
    assert row.n_features == model.get_support().sum()
    assert row.objective == pytest.approx(model.objective_ / (~model.trimmed_).sum(), rel=0.01)
    assert row.inertia == pytest.approx(model.inertia_, rel=0.01)


def test_consensus_by_hand():
    a, b = [0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1]
    c = [1, 1, 1, 0, 0, 0]
    fits = [fake_fit(a), fake_fit(b), fake_fit(c)]
    alike = adjusted_rand_score(a, b)
    assert 0 < alike < 1
    expected = [(1 + alike) / 2, alike, (1 + alike) / 2]
    consensus = grid_module._consensus
    assert_allclose(consensus(fits, np.full(3, 2), None), expected)
    numbers = np.repeat([2, 3], 3)
    assert_allclose(consensus(fits + fits[::-1], numbers, None), expected + expected[::-1])
    trimmed = [fake_fit(a), fake_fit(b, [2])]  # the case that differs
    assert_allclose(consensus(trimmed, np.full(2, 2), None), [1, 1])


def test_of_equals_the_simplest_is_agreed_on():
    table = pd.DataFrame(
        {
            "n_clusters": [2, 3, 3, 3, 3],
            "consensus": [1, 0.9, 0.9, 0.9, 0.8],
            "n_features": [1, 7, 5, 5, 1],
            "trim": [0, 0, 0.1, 0.05, 0],
        }
    )
    assert grid_module._agreed(table, 3) == 3
    assert grid_module._agreed(table, 2) == 0


def test_a_grid_without_sparsity():
    dense = clone(SMALL).set_params(l1_bound=None)
    grid = GridSearch(dense, (2, 3), None, [0, 0.1], **ALONE).fit(corners(3))
    assert len(grid.table_) == 4
    assert grid.table_.l1_bound.isna().all()
    assert set(grid.best_params_) == {"n_clusters", "trim"}
    assert grid.best_estimator_.l1_bound is None
    assert (grid.table_.n_features == 8).all()
    one_feature = GridSearch(dense, 2, None, [0], **ALONE).fit(corners(2)[:, :1])
    assert one_feature.table_.consensus.tolist() == [0]


def test_a_grid_with_missing_values_finds_the_truth():
    grid = GridSearch(SMALL, None, 3, [0, 0.1], **ALONE).fit(with_missing(corners(3)))
    assert len(grid.table_) == 6
    assert classification_error_rate(grid.best_estimator_.labels_, np.arange(60) % 3) < 0.1


def test_the_bound_of_the_estimator_is_kept_where_none_is_tried():
    model = RobustSparseKMeans(4, n_features=4, n_init=3)
    grid = GridSearch(model, (2, 3), None, [0, 0.1], **ALONE).fit(corners(3))
    assert (grid.table_.n_features == 4).all()
    assert grid.best_estimator_.n_features == 4
    assert grid.best_estimator_.n_clusters == 2  # the estimator's was not tried


def test_the_number_of_features_of_the_estimator_gives_way():
    model = RobustSparseKMeans(3, n_features=4, n_init=3)
    for search in (GridSearch(model, 3, [2], [0], **ALONE), GapL1(model, 3, **ALONE)):
        fitted = search.fit(corners(3)).best_estimator_
        assert fitted.n_features is None
        assert fitted.l1_bound is not None


# ---- Small odd tables: a result, or one sentence

cells = st.sampled_from([0.0, 0.0, 1.0, -1.0, 2.5, 30.0, np.nan]) | st.floats(-5, 5, width=16)


@st.composite
def tables(draw):
    n, p = draw(st.integers(6, 15)), draw(st.integers(1, 6))
    rows = draw(st.lists(st.lists(cells, min_size=p, max_size=p), min_size=3, max_size=n))
    X = np.array([rows[i % len(rows)] for i in range(n)])
    X[:, 0] += draw(st.sampled_from([0.0, 0.1])) * np.arange(n)
    if p > 1 and draw(st.booleans()):
        X[:, -1] = draw(st.sampled_from([3.0, np.nan]))
    return X


numbers = st.lists(st.integers(1, 5), min_size=1, max_size=2)
trim_shares = st.sampled_from([0.0, 0.1, 0.3, 0.49])
bounds = st.sampled_from([2, 3, [1.0], [1.2, 1.4], [2.0], [1.0, 2.4]])
models = st.builds(
    RobustSparseKMeans,
    st.integers(1, 4),
    trim=trim_shares,
    l1_bound=st.sampled_from([None, "auto", 1.0, 1.3]),
    n_init=st.just(2),
)
TINY = {
    "Clest": st.builds(
        Clest,
        models,
        numbers,
        n_splits=st.just(2),
        n_references=st.just(2),
        level=st.just(0.4),
        rule=st.sampled_from(["agreement", "paper"]),
        reference=st.sampled_from(["pca", "uniform"]),
    ),
    "GapL1": st.builds(GapL1, models, bounds, n_permutations=st.just(2)),
    "GridSearch": st.builds(
        GridSearch,
        models,
        st.none() | numbers,
        st.none() | bounds,
        st.lists(trim_shares, min_size=1, max_size=2),
    ),
}


def refusal(work):
    """Run, with warnings of the packages' own let through; return the refusal, if any."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            work()
        except (ValueError, TypeError) as error:
            return str(error)
    return None


def assert_fine(message):
    if message is not None:
        assert "\n" not in message
        assert message.endswith("."), message


@settings(max_examples=15)
@pytest.mark.parametrize("name", TINY)
@given(data=st.data(), X=tables())
def test_odd_tables_are_clustered_or_refused_in_a_sentence(name, data, X):
    search = data.draw(TINY[name]).set_params(**ALONE)
    assert_fine(refusal(lambda: search.fit(X)))
