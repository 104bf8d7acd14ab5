"""Stability: half-samples, the comparison with one cloud, and what is known from the fits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.metrics import classification_error_rate
from rskc.selection import Clest, Stability
from rskc.selection.stability import is_about, stability_among


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


def test_auto_goes_on_while_halves_agree_more_and_more():
    """Of 17 clusters no 10 are stable, and halves hardly agree on so few."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(17), 6)
    X = 2 * rng.normal(size=(17, 12))[y] + rng.normal(size=(len(y), 12))
    model = RobustSparseKMeans(l1_bound=None, n_init=5, random_state=0)
    search = _search(X, "auto", n_splits=2, n_references=5, estimator=model)
    assert search.table_.stability[:9].max() < 0.8
    assert search.n_clusters_ == 17


def test_halves_keep_a_cluster_of_five_cases():
    """Halves have two or three of its cases, which would be outlying if halves trimmed anew."""
    rng = np.random.default_rng(5)
    y = np.repeat(np.arange(3), [30, 20, 5])
    X = rng.normal(size=(55, 100))
    X[:, :30] += 1.5 * rng.normal(size=(3, 30))[y]
    search = _search(X, [2, 3], n_references=5)
    assert search.n_clusters_ == 3
    assert search.table_.stability.min() >= 0.9


def test_clusters_that_are_stable_each_by_itself_are_mentioned():
    """Four clusters far apart, and a cloud that six centers cut in two each time anew."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(5), [15, 15, 15, 15, 60])
    X = rng.normal(size=(120, 10)) + 9 * np.eye(5, 10)[y]
    model = RobustSparseKMeans(l1_bound=None, cells=None, trim=0, random_state=0)
    search = _search(X, [2, 6], estimator=model)
    assert search.n_clusters_ < 6
    assert (
        "There may be 4 or more: of 6 clusters, so many are stable each by itself" in search.reason_
    )


# ---- Laws


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


# ---- Bad input


def test_few_cases_are_one_cluster():
    search = _search(np.random.default_rng(0).normal(size=(5, 3)), "auto")
    assert search.n_clusters_ == 1
    assert "too few cases" in search.reason_
    assert len(search.table_) == 0


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


# ---- What a search knows of a model


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
    assert not is_about(search, three)
