import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import rand_score

from rskc import RobustSparseKMeans
from rskc.datasets import make_figure1
from rskc.metrics import RevisedSilhouette, classification_error_rate, revised_silhouette

labels = st.integers(-3, 5)
pairs = st.lists(st.tuples(labels, labels), min_size=2, max_size=40)


class Distances:
    """Stands for a fitted model: its distances are given."""

    def __init__(self, distances):
        self.distances = np.asarray(distances)

    def transform(self, X):
        return self.distances


def naive_rate(a, b):
    n = len(a)
    wrong = [(a[i] == a[j]) != (b[i] == b[j]) for i in range(n) for j in range(i)]
    return np.mean(wrong)


@given(pairs)
def test_the_rate_is_the_share_of_pairs_that_disagree(rows):
    a, b = np.transpose(rows)
    rate = classification_error_rate(a, b)
    assert rate == pytest.approx(naive_rate(a, b), abs=1e-15)
    assert rate == pytest.approx(1 - rand_score(a, b), abs=1e-12)
    assert rate == classification_error_rate(b, a)


@given(pairs, st.randoms())
def test_the_rate_does_not_see_names_or_order(rows, random):
    a, b = np.transpose(rows)
    order = random.sample(range(len(a)), len(a))
    named = np.array(["x", "", "yy", "é", "1", "z z", "0", "-1", "nan"])[b + 3]
    renumbered = random.sample(range(-(10**9), 10**9), 9)
    rate = classification_error_rate(a, b)
    assert classification_error_rate(a[order], b[order]) == rate
    assert classification_error_rate(np.array(renumbered)[a + 3], named) == rate
    assert classification_error_rate(a, a * 0.25) == 0


def test_labels_may_be_anything_that_has_an_equal():
    mixed = [None, None, ("a", 1), "a", 1.5]
    objects = np.empty(5, object)
    objects[:] = mixed
    assert classification_error_rate(objects, [0, 0, 1, 2, 3]) == 0
    assert classification_error_rate(objects, [True, True, False, False, False]) == 0.3
    dates = np.array(["2026-01-01", "2026-01-01", "2026-01-02"], "datetime64[D]")
    assert classification_error_rate(dates, ["a", "a", "b"]) == 0


def test_all_labels_different_needs_no_square_table():
    n = 200_000
    assert classification_error_rate(np.arange(n), np.zeros(n, int)) == 1
    assert classification_error_rate(np.arange(n), -np.arange(n)) == 0


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([0, 1, 2], [0, 1], "a has 3 labels and b has 2"),
        ([0], [0], "1 labels make no pair"),
        ([], [], "0 labels make no pair"),
        ([[0, 1]], [0, 1], r"a must be one row of labels; its shape is \(1, 2\)"),
        ([0, 1], 3, r"b must be one row of labels; its shape is \(\)"),
    ],
)
def test_labels_that_cannot_be_compared_are_refused(a, b, message):
    with pytest.raises(ValueError, match=message):
        classification_error_rate(a, b)


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 30))
def test_a_silhouette_compares_the_two_nearest_centres(seed, K, n):
    distances = np.random.default_rng(seed).integers(0, 5, (n, K)) / 4
    found = revised_silhouette(Distances(distances), None)
    ordered = np.sort(distances, axis=1)
    assert_array_equal(found.a, ordered[:, 0])
    assert_array_equal(found.b, ordered[:, 1])
    assert_array_equal(found.nearest, distances.argmin(axis=1))
    assert (found.second != found.nearest).all()
    assert_array_equal(distances[np.arange(n), found.second], found.b)
    assert ((found.values >= 0) & (found.values <= 1)).all()
    assert_allclose(found.values * found.b, found.b - found.a)
    assert (found.values[found.b == 0] == 0).all()


def test_silhouettes_by_hand():
    found = revised_silhouette(Distances([[3.0, 1, 4], [2, 2, 9], [0, 0, 1], [7, 5, 0]]), None)
    assert isinstance(found, RevisedSilhouette)
    assert_allclose(found.values, [2 / 3, 0, 0, 1])
    assert_array_equal(found.nearest, [1, 0, 0, 2])
    assert_array_equal(found.second, [0, 1, 1, 1])
    with pytest.raises(AttributeError):
        found.values = None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_silhouettes_of_a_fitted_model(dtype):
    X = make_figure1(n_samples=90, n_features=20, random_state=0).data.astype(dtype)
    model = RobustSparseKMeans(3, trim=0, l1_bound=1.4, random_state=0).fit(X)
    found = revised_silhouette(model, X)
    assert_array_equal(found.nearest, model.labels_)
    errors = X[:, None, :] - model.cluster_centers_
    expected = np.sort((errors**2) @ model.feature_weights_, axis=1)
    assert_allclose(found.a, expected[:, 0], rtol=1e-5)
    assert_allclose(found.b, expected[:, 1], rtol=1e-5)
    framed = revised_silhouette(model.set_output(transform="pandas"), X)
    assert_array_equal(framed.values, found.values)


def test_one_cluster_has_no_silhouette():
    X = np.arange(10.0).reshape(-1, 1)
    model = RobustSparseKMeans(1, trim=0, l1_bound=None).fit(X)
    with pytest.raises(ValueError, match="n_clusters=1 has none; fit a model with n_clusters >= 2"):
        revised_silhouette(model, X)
