"""Case weights in searches, metrics and comparisons; test_search.py has their laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from rskc import RobustSparseKMeans
from rskc.comparison import compare_solutions
from rskc.inputs.labels import adjusted_rand_index
from rskc.metrics import (
    classification_error_rate,
    revised_silhouette,
    sensitivity,
    silhouette_means,
)
from rskc.selection import Stability
from rskc.selection.cloud import cluster_indices
from rskc.selection.halves import jaccard_indices
from rskc.selection.search import fit_task
from search_kinds import HOW, MODEL, corners, search_of

pytestmark = pytest.mark.filterwarnings("ignore::rskc.exceptions.FitWarning")

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=20)


def test_a_case_goes_into_one_half_with_its_weight(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "rskc.selection.halves.fit_task",
        lambda *args, **settings: seen.append(args[1]) or fit_task(*args, **settings),
    )
    X, weights = corners(), np.arange(1.0, 61.0)
    search_of("Stability", n_clusters=[3], n_references=0).fit(X, sample_weight=weights)
    every, *halves = seen
    assert every.shape == (60, 8)
    numbers = {tuple(row): i for i, row in enumerate(X)}
    for one, other in zip(halves[::2], halves[1::2], strict=True):
        cases = [[numbers[tuple(row)] for row in half.X] for half in (one, other)]
        assert not set(cases[0]) & set(cases[1])
        for half, numbered in zip((one, other), cases, strict=True):
            assert_array_equal(half.weights, weights[numbered])


def test_by_weight_what_few_cases_say_is_found():
    """A cluster of 6 cases that have half of the weight is stable; without weights it is no number.

    The 6 are split into halves as all others: the cluster comes back by what it weighs.
    """
    rng = np.random.default_rng(5)
    X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(20, 2)) + [9, 0]])
    weights = np.where(np.arange(80) < 60, 1.0, 3.0)
    model = RobustSparseKMeans(2, trim=0, l1_bound=None, n_init=4, random_state=0)
    search = Stability(model, [2, 3], n_splits=3, n_references=3, **HOW)
    assert search.fit(X, sample_weight=weights).n_clusters_ == 2
    sizes = np.bincount(search.best_estimator_.labels_, weights)
    assert_array_equal(np.sort(sizes), [60, 60])


# ---- Measures


@few
@given(seed=seeds, n=st.integers(3, 30))
def test_measures_of_weights_are_those_of_copies(seed, n):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 3, (2, n))
    a[:2] = 0, 1  # the center of one cluster alone is the mean, and there is no plane
    weights = rng.integers(0, 4, n)
    weights[:2] = 1, 2
    copies = [np.repeat(part, weights) for part in (a, b)]
    assert_allclose(classification_error_rate(a, b, weights), classification_error_rate(*copies))
    assert_allclose(
        classification_error_rate(a, b, 0.37 * weights), classification_error_rate(*copies)
    )
    assert_allclose(jaccard_indices(a, b, 3, 1.0 * weights), jaccard_indices(*copies, 3))
    cells = rng.normal(size=(n, 3))
    there = weights > 0
    one = cluster_indices(cells[there], a[there], 1.0 * weights[there])
    other = cluster_indices(np.repeat(cells, weights, axis=0), copies[0])
    assert_allclose(list(one.values()), list(other.values()))


@few
@given(seed=seeds, n=st.integers(2, 40), K=st.integers(1, 5))
def test_the_adjusted_rand_index_is_scikit_learns(seed, n, K):
    a, b = np.random.default_rng(seed).integers(0, K, (2, n))
    assert_allclose(adjusted_rand_index(a, b), adjusted_rand_score(a, b), atol=1e-12)
    expected = adjusted_rand_score(a, b)
    assert_allclose(adjusted_rand_index(a, b, np.full(n, 0.3)), expected, atol=1e-12)
    assert adjusted_rand_index(a, a, np.random.default_rng(seed).exponential(size=n)) == 1


def test_sensitivity_and_silhouettes_by_weight():
    table = sensitivity(["a", "a", "b", "b"], [0, 1, 1, 1], sample_weight=[1, 3, 2, 2])
    assert table["cluster"].tolist() == [1, 1]
    assert_allclose(table["sensitivity"], [0.75, 1])
    assert_array_equal(table["weight"], [4, 4])
    assert_array_equal(table["size"], [2, 2])
    X = corners(seed=12)
    weights = np.random.default_rng(12).integers(0, 4, 60)
    model = clone(MODEL).fit(X, sample_weight=weights)
    one = silhouette_means(revised_silhouette(model, X), model.outliers_, weights)
    copies, outliers = np.repeat(X, weights, axis=0), np.repeat(model.outliers_, weights)
    other = silhouette_means(revised_silhouette(model, copies), outliers)
    for name in ("mean", "mean_without_outliers", "mean_of_outliers"):
        assert_allclose(one[name], other[name], err_msg=name)
    assert_array_equal(one["weight"], other["size"])


def test_solutions_are_compared_by_weight():
    X, weights = corners(seed=13), np.random.default_rng(13).integers(0, 4, 60)
    two, three = (
        clone(MODEL).set_params(n_clusters=K).fit(X, sample_weight=weights) for K in (2, 3)
    )
    found = compare_solutions(two, three)
    copies = [np.repeat(model.labels_, weights) for model in (two, three)]
    assert found.cer == pytest.approx(classification_error_rate(*copies))
    assert found.table.to_numpy().sum() == 60
    assert compare_solutions(two, three, X).cer != found.cer
    assert compare_solutions(two, three, X, weights).cer == pytest.approx(found.cer)
