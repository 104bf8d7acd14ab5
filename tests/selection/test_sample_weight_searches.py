"""Case weights in searches, metrics and comparisons: cases are drawn with their weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rskc import RobustSparseKMeans
from rskc.comparison import compare_solutions
from rskc.inputs.labels import adjusted_rand_index
from rskc.metrics import (
    classification_error_rate,
    revised_silhouette,
    sensitivity,
    silhouette_means,
)
from rskc.selection import (
    Clest,
    GapL1,
    GridSearch,
    Stability,
)
from rskc.selection.cloud import cluster_index
from rskc.selection.findings import describe
from rskc.selection.halves import jaccard_indices
from rskc.selection.references import normal_reference, pca_reference, permuted
from rskc.selection.subsample import draw, evenly_drawn
from skips import skip_without

pytestmark = pytest.mark.filterwarnings("ignore::rskc.exceptions.FitWarning")

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=20)


def make_table(seed=0, n=48, p=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[:, :3] += 7 * np.eye(3)[np.arange(n) % 3]
    return X


MODEL = RobustSparseKMeans(3, trim=0.05, l1_bound=1.6, n_init=4, random_state=0)
HOW = {"n_jobs": 1, "random_state": 0, "progress": False}
SEARCHES = {
    "stability": Stability(MODEL, range(2, 5), n_splits=2, n_references=3, **HOW),
    "clest": Clest(MODEL, range(2, 4), n_splits=2, n_references=3, **HOW),
    "gap": GapL1(MODEL, [1.3, 1.8, 2.2], n_permutations=3, **HOW),
    "grid": GridSearch(MODEL, [2, 3], [1.4, 2.0], [0, 0.1], **HOW),
}
each_search = pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)


def figures(search, without=()):
    kept = [name for name in search.table_ if name not in without]
    return search.table_[kept].to_numpy(float)


# ---- Laws of searches


@each_search
def test_weights_of_1_change_nothing(search):
    X = make_table()
    one, other = clone(search).fit(X, sample_weight=np.ones(48)), clone(search).fit(X)
    assert_array_equal(figures(one), figures(other))
    assert_array_equal(one.best_estimator_.labels_, other.best_estimator_.labels_)


@each_search
def test_scaling_all_weights_changes_nothing(search):
    X, weights = make_table(1), np.random.default_rng(1).uniform(0.2, 3, 48)
    one = clone(search).fit(X, sample_weight=weights)
    other = clone(search).fit(X, sample_weight=weights * 4)
    assert_array_equal(figures(one, ["inertia"]), figures(other, ["inertia"]))
    assert_array_equal(one.best_estimator_.labels_, other.best_estimator_.labels_)


@each_search
def test_a_case_of_weight_0_is_not_searched_on(search):
    X, weights = make_table(2), np.random.default_rng(2).integers(0, 4, 48).astype(float)
    X[weights == 0] = 1e3
    there = weights > 0
    one = clone(search).fit(X, sample_weight=weights)
    other = clone(search).fit(X[there], sample_weight=weights[there])
    assert_array_equal(figures(one), figures(other))
    labels = one.best_estimator_.labels_[there], other.best_estimator_.labels_
    assert adjusted_rand_index(*labels) == 1
    assert (one.n_samples_, one.n_samples_used_) == (48, there.sum())
    assert "cases that have a weight above 0. Cases count by their weights." in describe(one).sample


@each_search
def test_weights_matter(search):
    X, weights = make_table(3), np.where(np.arange(48) % 3 == 0, 9.0, 1.0)
    one, other = clone(search).fit(X, sample_weight=weights), clone(search).fit(X)
    assert not np.array_equal(figures(one), figures(other), equal_nan=True)
    assert_array_equal(one.best_estimator_.sample_weight_, weights)


def test_a_case_goes_into_one_half_with_its_weight(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "rskc.selection.halves.fit_quietly",
        lambda model, sample: seen.append(sample) or model.fit(sample.X),
    )
    X, weights = make_table(4), np.arange(1.0, 49.0)
    Stability(MODEL, [3], n_splits=2, n_references=0, **HOW).fit(X, sample_weight=weights)
    every, *halves = seen
    assert every.shape == (48, 6)
    numbers = {tuple(row): i for i, row in enumerate(X)}
    for one, other in zip(halves[::2], halves[1::2], strict=True):
        cases = [[numbers[tuple(row)] for row in half.X] for half in (one, other)]
        assert not set(cases[0]) & set(cases[1])
        for half, own in zip((one, other), cases, strict=True):
            assert_array_equal(half.weights, weights[own])


def test_by_weight_what_few_cases_say_is_found():
    """A cluster of 6 cases that have half of the weight is stable; without weights it is no number.

    The 6 are split into halves as all others: the cluster comes back by what it weighs.
    """
    rng = np.random.default_rng(5)
    X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(20, 2)) + [9, 0]])
    weights = np.where(np.arange(80) < 60, 1.0, 3.0)
    model = RobustSparseKMeans(2, trim=0, l1_bound=None, n_init=4, random_state=0)
    search = Stability(model, [2, 3], n_splits=3, n_references=3, **HOW)
    found = search.fit(X, sample_weight=weights)
    assert found.n_clusters_ == 2
    sizes = np.bincount(found.best_estimator_.labels_, weights)
    assert_array_equal(np.sort(sizes), [60, 60])


def test_a_checkpoint_is_of_its_weights(tmp_path):
    X, weights = make_table(6), np.random.default_rng(6).uniform(0.2, 3, 48)
    search = clone(SEARCHES["clest"]).set_params(checkpoint=tmp_path / "search.db")
    search.fit(X, sample_weight=weights)
    first = search.table_
    assert_array_equal(search.fit(X, sample_weight=weights).table_, first)
    with pytest.raises(ValueError, match="was made with other data"):
        search.fit(X, sample_weight=weights[::-1])


def test_dask_arrays_and_sparse_matrices_are_searched_by_weight():
    skip_without("dask")
    import dask.array as da

    X, weights = make_table(7), np.random.default_rng(7).integers(0, 4, 48)
    X[::2, 3:] = 0
    search = SEARCHES["clest"]
    one = clone(search).fit(X, sample_weight=weights)
    for other in (da.from_array(X, chunks=(17, 6)), csr_array(X)):
        found = clone(search).fit(other, sample_weight=weights)
        assert_allclose(figures(found), figures(one))


# ---- Draws


@few
@given(seed=seeds, n=st.integers(1, 40), number=st.integers(1, 60))
def test_cases_are_drawn_in_proportion(seed, n, number):
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=n)
    drawn = evenly_drawn(weights, number, rng)
    assert drawn.sum() == number
    assert (np.abs(drawn - number * weights / weights.sum()) < 1 + 1e-6).all()


def test_of_a_large_table_heavy_cases_are_drawn_and_count_alike():
    weights = np.r_[np.full(50, 99.0), np.full(4950, 1.0), np.zeros(100)]
    found = draw(5100, weights, 500, seed=0)
    assert found.cases is not None
    assert len(found.cases) <= 500
    assert set(range(50)) <= set(found.cases)  # each is 5 of the 500
    assert found.weights.sum() == 500
    assert_allclose(found.weights[:50], 5, atol=1)
    assert (found.weights[50:] == 1).all()
    assert found.cases.max() < 5000
    assert_array_equal(found.cases, draw(5100, weights, 500, seed=0).cases)
    equal = draw(1000, np.r_[0.0, np.full(999, 0.3)], 100, seed=0)
    assert equal.weights is None
    assert len(equal.cases) == 100


def test_a_search_on_some_cases_says_how_they_were_drawn():
    X, weights = make_table(9, 90), np.random.default_rng(9).integers(0, 4, 90)
    search = clone(SEARCHES["stability"]).set_params(max_samples=40)
    found = search.fit(X, sample_weight=weights)
    assert found.n_samples_used_ <= 40
    assert_array_equal(weights[found.samples_used_] > 0, True)
    assert len(found.case_stability_) == found.n_samples_used_
    assert "drawn in proportion to their weights" in describe(found).sample


# ---- References


def test_references_have_the_moments_of_copies():
    rng = np.random.default_rng(10)
    X, masses = rng.normal(size=(200, 3)) * [1, 3, 5], rng.integers(1, 4, 200).astype(float)
    copies = np.repeat(X, masses.astype(int), axis=0)
    for kind in (normal_reference, pca_reference):
        one, other = kind(X, masses), kind(copies)
        assert_allclose(one.mean, other.mean)
        assert_allclose(np.abs(one.axes), np.abs(other.axes), atol=1e-9)
    one, other = normal_reference(X, masses), normal_reference(copies)
    (own,), (copied,) = one.spread.args, other.spread.args  # deviations
    assert_allclose(own, copied, rtol=2e-3)  # n - 1 of fewer cases
    assert one.n_cases == 200


def test_cells_are_permuted_in_proportion_to_weight():
    X = np.repeat([[1.0, 1.0], [0.0, 0.0]], 10, axis=0)
    weights = np.where(X[:, 0] == 1, 3.0, 1.0)
    for table in (X, csr_array(X)):
        drawn = permuted(table, np.random.default_rng(0), None, weights)
        drawn = drawn if isinstance(drawn, np.ndarray) else drawn.toarray()
        assert_array_equal(drawn.sum(axis=0), [15, 15])  # 3 of 4 shares of 20 cases
        assert (drawn[:, 0] != drawn[:, 1]).any()


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
    assert_allclose(
        cluster_index(cells[there], a[there], True, 1.0 * weights[there]),
        cluster_index(np.repeat(cells, weights, axis=0), copies[0], True),
    )


@few
@given(seed=seeds, n=st.integers(2, 40), K=st.integers(1, 5))
def test_the_adjusted_rand_index_is_scikit_learns(seed, n, K):
    a, b = np.random.default_rng(seed).integers(0, K, (2, n))
    assert_allclose(adjusted_rand_index(a, b), adjusted_rand_score(a, b), atol=1e-12)
    expected = adjusted_rand_score(a, b)
    assert_allclose(adjusted_rand_index(a, b, np.full(n, 0.3)), expected, atol=1e-12)
    assert adjusted_rand_index(a, a, np.random.default_rng(seed).exponential(size=n)) == 1


def test_heavy_cases_do_not_agree_by_chance():
    rng = np.random.default_rng(11)
    weights = rng.integers(1, 40, 300).astype(float)
    found = [adjusted_rand_index(*rng.integers(0, 3, (2, 300)), weights) for _ in range(200)]
    assert abs(np.mean(found)) < 3 * np.std(found) / np.sqrt(200)


def test_sensitivity_and_silhouettes_by_weight():
    table = sensitivity(["a", "a", "b", "b"], [0, 1, 1, 1], sample_weight=[1, 3, 2, 2])
    assert table["cluster"].tolist() == [1, 1]
    assert_allclose(table["sensitivity"], [0.75, 1])
    assert_array_equal(table["weight"], [4, 4])
    assert_array_equal(table["size"], [2, 2])
    X = make_table(12)
    weights = np.random.default_rng(12).integers(0, 4, 48)
    model = clone(MODEL).fit(X, sample_weight=weights)
    one = silhouette_means(revised_silhouette(model, X), model.outliers_, weights)
    copies, outliers = np.repeat(X, weights, axis=0), np.repeat(model.outliers_, weights)
    other = silhouette_means(revised_silhouette(model, copies), outliers)
    for name in ("mean", "mean_without_outliers", "mean_of_outliers"):
        assert_allclose(one[name], other[name], err_msg=name)
    assert_array_equal(one["weight"], other["size"])


def test_solutions_are_compared_by_weight():
    X, weights = make_table(13), np.random.default_rng(13).integers(0, 4, 48)
    two, three = (
        clone(MODEL).set_params(n_clusters=K).fit(X, sample_weight=weights) for K in (2, 3)
    )
    found = compare_solutions(two, three)
    copies = [np.repeat(model.labels_, weights) for model in (two, three)]
    assert found.cer == pytest.approx(classification_error_rate(*copies))
    assert found.table.to_numpy().sum() == 48
    assert compare_solutions(two, three, X).cer != found.cer
    assert compare_solutions(two, three, X, weights).cer == pytest.approx(found.cer)


# ---- Other estimators, and metadata routing


def test_another_clusterer_is_searched_by_weight():
    X, weights = make_table(14), np.random.default_rng(14).integers(1, 4, 48)
    search = Clest(KMeans(3, n_init=2), [2, 3], n_splits=2, n_references=2, **HOW)
    found = search.fit(X, sample_weight=weights)
    direct = clone(found.best_estimator_).fit(X, sample_weight=weights)
    assert_allclose(found.best_estimator_.inertia_, direct.inertia_)
    unweighted = clone(found.best_estimator_).fit(X)
    assert found.best_estimator_.inertia_ > 1.2 * unweighted.inertia_


class Ward(AgglomerativeClustering):
    """A clusterer that predicts, and takes no weights."""

    def predict(self, X):
        return np.zeros(len(X), int)


def test_an_estimator_that_takes_no_weights_is_named():
    search = Clest(Ward(), [2], **HOW)
    with pytest.raises(TypeError, match="the fit of Ward takes none; leave it out") as error:
        search.fit(make_table(), sample_weight=np.ones(48))
    assert "\n" not in str(error.value)


def test_metadata_is_routed_through_a_search():
    X, weights = make_table(15), np.random.default_rng(15).integers(1, 4, 48)
    search = SEARCHES["clest"]
    expected = clone(search).fit(X, sample_weight=weights)
    with config_context(enable_metadata_routing=True):
        asking = clone(MODEL).set_fit_request(sample_weight=True)
        found = clone(search).set_params(estimator=asking).fit(X, sample_weight=weights)
        pipeline = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            clone(search).set_params(estimator=asking),
        ).fit(X, sample_weight=weights)
        with pytest.raises(ValueError, match="not explicitly set as requested or not"):
            clone(search).fit(X, sample_weight=weights)
        deaf = clone(MODEL).set_fit_request(sample_weight=False)
        with pytest.raises(TypeError, match="not routed to any object"):
            clone(search).set_params(estimator=deaf).fit(X, sample_weight=weights)
    assert_array_equal(figures(found), figures(expected))
    assert_array_equal(pipeline[-1].best_estimator_.sample_weight_, weights)


BAD = {
    "negative": (np.r_[-1.0, np.ones(47)], "sample_weight is negative for case 0"),
    "too short": (np.ones(47), r"sample_weight has shape \(47,\); it must have shape \(48,\)"),
    "all zero": (np.zeros(48), "sample_weight is zero for all cases"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_weights_are_refused(bad):
    weights, message = BAD[bad]
    for call in (
        lambda: clone(SEARCHES["clest"]).fit(make_table(), sample_weight=weights),
        lambda: classification_error_rate(np.arange(48), np.arange(48), weights),
    ):
        with pytest.raises(ValueError, match=message):
            call()
