"""Clest: its rules by hand, and what it finds in data with a known truth."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from definitions import found_by_r
from rskc import RobustSparseKMeans
from rskc.metrics import classification_error_rate
from rskc.selection import Clest
from rskc.selection.clest import chosen_by
from search_kinds import HOW, corners, search_of

golden = cache(found_by_r)
MODEL = RobustSparseKMeans(l1_bound=4, trim=0.05)
FEW = {"n_splits": 5, "n_references": 19}


def quick_clest(n_clusters=(2, 3, 4), **params):
    few = {"n_splits": 5, "n_references": 5, "level": 0.2, "rule": "agreement", **params}
    return search_of("Clest", n_clusters=n_clusters, **few)


# ---- The rules by hand


def decide(observed, reference, numbers=None, **params):
    """Let Clest decide on CERs: a row a split or a reference set, a column a number of clusters."""
    clest = Clest(None, n_references=len(reference), **params)
    clest.observed_cers_, clest.reference_cers_ = np.array(observed), np.array(reference)
    clest._decide(np.arange(2, 2 + len(observed[0])) if numbers is None else np.array(numbers))
    return clest


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


# ---- On data


# The refit on clest02 says that two of its cases might be a cluster; they are not.
small_clusters = pytest.mark.filterwarnings("ignore::rskc.SmallClusterWarning")


@small_clusters
@pytest.mark.parametrize(("name", "K"), [("clest01", 2), ("clest02", 3)])
def test_clest_finds_the_number_that_rskc_finds(name, K):
    assert golden(name)["K"] == K
    clest = Clest(MODEL, range(2, 7), **HOW, **FEW).fit(np.array(golden(name)["data"]))
    assert clest.n_clusters_ == K


@pytest.mark.parametrize("K", [2, 3, 4])
def test_clest_finds_clusters_far_apart(K):
    clest = quick_clest(range(2, 6)).fit(corners(K))
    assert clest.n_clusters_ == clest.best_estimator_.n_clusters == K
    assert classification_error_rate(clest.best_estimator_.labels_, np.arange(60) % K) == 0
    assert clest.table_.n_clusters.tolist() == [2, 3, 4, 5]
    assert clest.observed_cers_.shape == clest.reference_cers_.shape == (5, 4)


def test_one_cluster_is_fitted_with_equal_weights():
    X = np.random.default_rng(1).standard_normal((40, 5))
    clest = quick_clest((2, 3), level=0.17).fit(X)
    assert clest.n_clusters_ == clest.best_estimator_.n_clusters == 1
    assert (clest.best_estimator_.labels_ == 0).all()
    assert_array_equal(clest.best_estimator_.feature_weights_, np.ones(5))


@small_clusters
def test_joining_clusters_is_as_stable_and_the_default_rule_is_not_taken_in():
    """Four clusters of which some lie close together, and four outlying cells."""
    rng = np.random.default_rng(0)
    centers = np.zeros((4, 60))
    centers[:, :15] = rng.normal(0, 2, (4, 15))
    X = centers[np.arange(100) * 4 // 100] + rng.standard_normal((100, 60))
    for _ in range(4):
        X[rng.integers(100), rng.integers(60)] = 25
    clest = Clest(MODEL, (2, 4, 5), **HOW, **FEW).fit(X)
    assert clest.n_clusters_ == 4
    assert chosen_by("paper", clest.table_, 0.05, clest.n_references)[1] == 2


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_sums_that_overflow_are_reported_as_in_a_fit():
    with pytest.raises(ValueError, match="The squares of X overflow"):
        quick_clest().fit(corners() * 1e307)
