"""Stability: half-samples, the comparison with one cloud, and what is known from the fits."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.designs import make_design
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import t as student
from sklearn.cluster import KMeans

from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.exceptions import ParameterError
from rskc.metrics import classification_error_rate
from rskc.selection import Clest, Stability
from rskc.selection.cloud import _p_value, cluster_index, nearest_pairs
from rskc.selection.halves import best_match, jaccard_indices
from rskc.selection.references import normal_reference
from rskc.selection.stability import (
    is_about,
    stability_among,
    stability_for,
    stability_of_cases,
)


def _search(X, numbers=range(2, 6), **how):
    how = {"random_state": 0, "n_jobs": 1, "progress": False, **how}
    model = how.pop("estimator", RobustSparseKMeans(random_state=0))
    return Stability(model, numbers, **how).fit(X)


@pytest.fixture(scope="module")
def simulated():
    return make_simulation(model=1, random_state=0)


@pytest.fixture(scope="module")
def found(simulated):
    return _search(simulated.data)


# ---- Small cases by hand


def test_jaccard_indices_by_hand():
    labels = np.array([0, 0, 0, 0, 1, 1])
    others = np.array([1, 1, 1, 0, 0, 0])
    # {0,1,2,3} and {0,1,2}: 3 of 4. {4,5} and {3,4,5}: 2 of 3.
    assert_allclose(jaccard_indices(labels, others, 2), [3 / 4, 2 / 3])
    assert_allclose(jaccard_indices(labels, labels, 3), [1, 1, 0])  # the third is empty


def test_best_match_renumbers_a_permutation():
    labels = np.array([0, 0, 1, 1, 2, 2, 2])
    others = np.array([2, 2, 0, 0, 1, 1, 0])
    assert_array_equal(best_match(labels, others, 3)[others][:6], labels[:6])


def test_nearest_pairs_by_hand():
    cells = np.array([[0.0], [0.1], [1.0], [1.1], [9.0], [9.2]])
    labels = np.array([0, 0, 1, 1, 2, 2])
    assert nearest_pairs(cells, labels, 3) == [(0, 1), (1, 2)]
    assert nearest_pairs(cells[:4], labels[:4], 2) == []  # two clusters are all there are


def test_cluster_index_by_hand():
    """A feature that no case of a cluster has a value of is 0 in it."""
    cells = np.array([[1, np.nan], [3, np.nan], [5, 2], [9, 4.0]])
    labels = np.array([0, 0, 3, 3])
    assert_allclose(cluster_index(cells, labels, False), (10 + 2) / (35 + 11))
    assert_allclose(cluster_index(cells[:, :1], labels, True), 10 / 35)
    # In the plane of the centers: the second feature is the same in both clusters.
    flat = np.array([[1, 5], [3, -5], [5, 5], [9, -5.0]])
    assert_allclose(cluster_index(flat, labels, True), 10 / 35)
    assert_allclose(cluster_index(flat, labels, False), (10 + 100) / (35 + 100))


def test_p_values_by_hand():
    assert _p_value(1.0, np.array([2.0, 2.0, 2.0])) == 0
    assert _p_value(2.0, np.array([2.0, 2.0, 2.0])) == 1
    drawn = np.array([1.0, 2.0, 3.0])  # spread 1, so that the index is sqrt(3/4) times 4 below
    assert_allclose(_p_value(-2.0, drawn), student.cdf(-4 * np.sqrt(3 / 4), 2))


def test_normal_reference_has_mean_axes_and_missing_cells_of_the_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3)) * [1, 3, 0.2] + [5, 0, -1]
    X[:, 2] += X[:, 1]
    X[7, 0] = np.nan
    drawn = normal_reference(X).draw(np.random.default_rng(1))
    assert_array_equal(np.isnan(drawn), np.isnan(X))
    assert_allclose(np.nanmean(drawn, axis=0), np.nanmean(X, axis=0), atol=0.15)
    complete = np.delete(np.arange(4000), 7)
    assert_allclose(np.cov(drawn[complete].T), np.cov(X[complete].T), rtol=0.1, atol=0.15)


# ---- What is found


def test_the_simulation(simulated, found):
    assert found.n_clusters_ == 3
    assert found.table_.chosen.tolist() == [False, True, False, False]
    assert (found.cluster_stability_ >= 0.9).all()
    assert classification_error_rate(found.predict(simulated.data), simulated.target) <= 0.05
    often = found.selection_probabilities_ >= 0.75
    assert often[:50].sum() >= 47
    assert often[50:].sum() <= 2
    assert found.reason_.startswith("All 3 clusters are stable: the least stable one has a median")


def test_no_clusters_in_one_cloud():
    search = _search(np.random.default_rng(0).normal(size=(60, 20)))
    assert search.n_clusters_ == 1
    assert "No number of clusters is stable" in search.reason_
    assert_array_equal(search.predict(np.zeros((3, 20))), 0)
    assert search.selection_probabilities_.sum() == 0
    assert_array_equal(search.case_stability_, 1)


def test_a_long_cloud_is_stable_but_one_cloud():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 12)) + 4 * rng.normal(size=(150, 1))
    search = _search(X, [2])
    assert search.table_.stability[0] >= 0.8
    assert search.n_clusters_ == 1
    assert "parts of a single" in search.reason_
    assert _search(X, [2], n_references=0).n_slices_ == 2


def test_auto_goes_on_beyond_ten():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(12), 12)
    X = 8 * rng.normal(size=(12, 6))[y] + rng.normal(size=(len(y), 6))
    model = RobustSparseKMeans(l1_bound=None, n_init=5, random_state=0)
    search = _search(X, "auto", n_splits=2, n_references=5, estimator=model)
    assert search.n_clusters_ == 12
    assert search.table_.n_clusters.tolist() == list(range(2, 21))


def test_missing_cells_and_unequal_clusters():
    design = make_design("unequal, rows", 3)
    X = design.data.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    search = _search(X, [2, 3, 4], n_splits=3, n_references=5)
    assert search.n_clusters_ == 3
    assert search.best_estimator_.outliers_[design.outlying].all()


def test_a_cluster_too_small_for_halves_is_found_in_three_quarters():
    rng = np.random.default_rng(5)
    y = np.repeat(np.arange(3), [30, 20, 5])
    X = rng.normal(size=(55, 100))
    X[:, :30] += 1.5 * rng.normal(size=(3, 30))[y]
    search = _search(X, [2, 3], n_references=5)
    assert search.n_clusters_ == 3
    two, three = search.table_.itertuples()
    assert three.stability < 0.6 < 0.9 <= three.larger_stability
    assert np.isnan(two.larger_stability)  # all are found again in halves
    assert "three quarters" in search.reason_


def test_clusters_that_are_stable_each_by_itself_are_mentioned():
    """Four clusters far apart, and a cloud that six centers cut in two each time anew."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(5), [15, 15, 15, 15, 60])
    X = rng.normal(size=(120, 10)) + 9 * np.eye(5, 10)[y]
    model = RobustSparseKMeans(l1_bound=None, cells=None, trim=0, random_state=0)
    search = _search(X, [2, 6], estimator=model)
    assert search.n_clusters_ < 6
    assert "There may be more: of 6 clusters, 4 are stable each by itself" in search.reason_


def test_another_clusterer():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 30)
    X = np.array([[0, 0], [6, 0], [0, 6.0]])[y] + rng.normal(size=(90, 2))
    model = KMeans(n_init=1, random_state=0)
    search = _search(X, [2, 3, 4], n_splits=3, n_references=5, estimator=model)
    assert search.n_clusters_ == 3
    assert "features_different" not in search.table_
    assert_array_equal(search.selection_probabilities_, 1)


# ---- Laws


def test_units_and_order_of_features_do_not_matter(simulated, found):
    moved = _search(2.0 * simulated.data[:, ::-1] + 3.0)
    assert moved.n_clusters_ == found.n_clusters_
    assert_allclose(moved.table_.stability, found.table_.stability, atol=0.1)
    # One threshold of halves: a feature on the edge may go either way.
    often = moved.selection_probabilities_[::-1] >= 0.75
    assert np.count_nonzero(often != (found.selection_probabilities_ >= 0.75)) <= 3


def test_consensus_and_case_stability(found):
    together = found.consensus_matrix()
    assert_array_equal(together, together.T)
    assert_array_equal(np.diag(together), 1)
    own = found.best_estimator_.labels_
    assert_allclose(found.case_stability_, (found.half_labels_ == own).mean(axis=0))
    i, j = 0, 25
    assert_allclose(together[i, j], np.mean(found.half_labels_[:, i] == found.half_labels_[:, j]))


def test_selection_bound_by_hand(found):
    q, p = found.selection_probabilities_.sum(), 500
    assert_allclose(found.selection_bound(0.75), q**2 / p / 0.5)
    assert found.selection_bound(0.9) < found.selection_bound(0.75)
    assert found.selection_bound(0.5) == np.inf
    assert_allclose(found.selection_bound(1.0), q**2 / p)


def test_a_large_table_is_searched_on_a_sample():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=900)
    X = 5 * rng.normal(size=(3, 4))[y] + rng.normal(size=(900, 4))
    search = _search(X, max_samples=150, n_splits=3, n_references=5)
    assert search.n_clusters_ == 3
    assert search.case_stability_.shape == search.samples_used_.shape == (150,)
    assert len(search.best_estimator_.labels_) == 900
    own = search.best_estimator_.labels_[search.samples_used_]
    assert np.mean(search.half_labels_ == own) > 0.95  # numbered as the model's clusters


# ---- Bad input


def test_few_cases_are_one_cluster():
    search = _search(np.random.default_rng(0).normal(size=(5, 3)), "auto")
    assert search.n_clusters_ == 1
    assert "too few cases" in search.reason_
    assert len(search.table_) == 0


def test_few_distinct_cases():
    X = np.repeat(np.eye(3), 10, axis=0)
    assert _search(X, [2, 3]).n_clusters_ in (1, 3)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"n_splits": 1}, "n_splits"),
        ({"threshold": 1.5}, "threshold"),
        ({"n_references": 1}, "n_references"),
        ({"level": -1}, "level"),
        ({"numbers": [40]}, "n_clusters"),
        ({"numbers": "many"}, "n_clusters"),
    ],
)
def test_wrong_parameters(wrong, name):
    with pytest.raises(ParameterError, match=name):
        _search(np.random.default_rng(0).normal(size=(40, 3)), **wrong)


def test_coarser_numbers_are_mentioned():
    # Two pairs of clusters: four are stable, and so are two.
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 25)
    X = np.array([[0, 0], [6, 0], [0, 60], [6, 60.0]])[y] + rng.normal(size=(100, 2))
    model = RobustSparseKMeans(l1_bound=None, cells=None, random_state=0)
    search = _search(X, [2, 4], estimator=model)
    assert search.n_clusters_ == 4
    assert search.reason_.endswith("2 clusters, a coarser view, are stable as well.")


def test_identical_cases_are_one_cluster():
    search = _search(np.ones((30, 2)), "auto")
    assert search.n_clusters_ == 1
    assert "No number of clusters is stable" in search.reason_


def test_a_wrong_setting_of_the_estimator_is_refused():
    with pytest.raises(ParameterError, match="l1_bound"):
        _search(
            np.random.default_rng(0).normal(size=(40, 3)),
            estimator=RobustSparseKMeans(l1_bound=0.5),
        )


def test_clusters_far_apart_are_no_outlying_cells():
    """A fifth of the cases far from the middle of some columns: a cluster, and no bad cells."""
    X = np.random.default_rng(0).normal(size=(140, 20))
    X[:30, :4] += 9.0
    X[30:80, 4:8] += 9.0
    few = {"n_splits": 3, "n_references": 5}
    search = _search(X, [2, 3, 4], estimator=RobustSparseKMeans(2, random_state=0), **few)
    assert search.n_clusters_ == 3
    assert search.best_estimator_.cell_cutoff_ is None


# ---- What a search knows of a model

SOME = SimpleNamespace(
    samples_used_=np.array([1, 4, 5, 9]), case_stability_=np.array([0.1, 0.4, 0.5, 0.9])
)


def test_stability_of_cases_by_hand():
    nan = np.nan
    assert_array_equal(stability_of_cases(SOME, 0, 4), [nan, 0.1, nan, nan])
    assert_array_equal(stability_of_cases(SOME, 4, 6), [0.4, 0.5])
    assert_array_equal(stability_of_cases(SOME, 6, 9), [nan] * 3)
    assert_array_equal(stability_of_cases(SOME, 6, 6), [])


def test_blocks_put_together_are_the_whole():
    ends = [0, 3, 3, 5, 11]
    parts = [stability_of_cases(SOME, a, b) for a, b in pairwise(ends)]
    assert_array_equal(np.concatenate(parts), stability_of_cases(SOME, 0, 11))


def test_the_search_is_found_among_others():
    model = RobustSparseKMeans()
    search = Stability(model)
    assert stability_among([Clest(model), search]) is search
    assert stability_among(search) is search
    assert stability_among([Clest(model)]) is None
    assert stability_among(()) is None


def test_a_search_is_about_models_with_its_centers():
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[:20] += 5
    two, three = (RobustSparseKMeans(K, random_state=0).fit(X) for K in (2, 3))
    search = Stability(RobustSparseKMeans())
    search.best_estimator_ = two
    assert is_about(search, RobustSparseKMeans(2, random_state=0).fit(X))
    assert not is_about(search, RobustSparseKMeans(2, random_state=0).fit(X + 1))
    assert stability_for([search], two) is search
    assert stability_for([search], three) is None
