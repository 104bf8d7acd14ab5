"""Gaps between neighbors: places, laws, and slices of gradients that are no clusters."""

from types import SimpleNamespace

import numpy as np
import pytest

from rskc import RobustSparseKMeans
from rskc.selection import Stability
from rskc.selection.cloud import CloudPValues
from rskc.selection.gaps import Between, between_neighbors, is_a_sequence, places_of, separation
from rskc.selection.stability import CLEAR, NONE, UNKNOWN
from rskc.selection.subsample import Sample


def placed(at, weights=None, blur=(), seed=0, apart=2.0):
    """Return what is between two centers on a line, 0 midway, as some fits see the cases."""
    rng, distances, reach = np.random.default_rng(seed), [], apart / 2
    for scale in blur or (0,):
        seen = at + rng.normal(scale=scale, size=len(at)) if scale else at
        distances.append(np.c_[(seen + reach) ** 2, (seen - reach) ** 2])
    gaps = np.array([apart**2 * (1 - np.eye(2))] * len(distances))
    return between_neighbors(np.array(distances), gaps, weights)


def test_the_median_place_of_a_case_counts():
    """Two groups that each fit blurs, in its own way, are two groups still."""
    truth = np.repeat([-1.0, 1.0], 60) + np.tile(np.linspace(-0.4, 0.4, 60), 2)
    assert placed(truth, blur=[0.6] * 12).density < 0.3 < placed(truth, blur=[0.6]).density


def test_without_a_model_nothing_is_known():
    X = np.r_[np.zeros((10, 1)), np.full((10, 1), 9.0)] + np.arange(20.0)[:, None] / 100
    model = RobustSparseKMeans(2, trim=0, l1_bound=None, random_state=0).fit(X)

    def between(model, K):
        places = places_of(model, X, K, np.arange(20))
        return between_neighbors(places["distances"][None], places["gaps"][None])

    assert between(model, 2) == (0, 5)
    assert between(None, 2) == (0, 0)


def test_steps_of_a_feature_of_few_values_are_filled():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=300), np.tile([0.0, 1, 3], 100), np.tile([0.0, 5], 150)])
    X[::7, 1] = np.nan
    smooth = Sample(X).without_steps
    np.testing.assert_array_equal(smooth[:, [0, 2]], X[:, [0, 2]])
    np.testing.assert_array_equal(np.isnan(smooth), np.isnan(X))
    for value, low, high in [(0, -0.5, 0.5), (1, 0.5, 2), (3, 2, 4)]:
        cells = smooth[X[:, 1] == value, 1]
        assert low <= cells.min() < low + 0.2
        assert high - 0.2 < cells.max() <= high
    whole = Sample(np.tile(np.arange(4), (2, 30)).T).without_steps  # of whole numbers too
    assert len(np.unique(whole)) == 240


def test_sequences():
    """A walk is one; the same cases in another order, and sorted clusters, are none."""
    rng = np.random.default_rng(0)
    walk = rng.normal(size=(90, 5)).cumsum(axis=0)
    stretches = np.repeat([0, 1, 2], 30)
    assert is_a_sequence(walk, stretches)
    missing = np.where(rng.random(walk.shape) < 0.1, np.nan, walk)
    assert is_a_sequence(missing, stretches)
    order = np.r_[rng.permutation(30), 30 + rng.permutation(30), 60 + rng.permutation(30)]
    assert not is_a_sequence(walk[order], stretches)
    assert not is_a_sequence(walk, np.tile([0, 1, 2], 30))  # states that take turns
    assert not is_a_sequence(rng.normal(size=(90, 5)) + 5 * stretches[:, None], stretches)


SEEN, OPEN, SLICES = Between(0, 10), Between(5, 8), Between(20, 15)


@pytest.mark.parametrize(
    ("numbers", "gaps"),
    [  # of numbers of clusters, the last of which is judged
        ({4: SEEN}, CLEAR),
        ({4: OPEN}, UNKNOWN),
        ({4: SLICES}, NONE),
        ({4: Between(0, 0)}, UNKNOWN),  # of a model without centers
        ({2: SEEN, 4: OPEN}, UNKNOWN),
        ({2: SEEN, 4: SLICES}, NONE),  # two gradients
        ({2: SLICES, 4: OPEN}, NONE),
        ({6: SLICES, 4: OPEN}, NONE),
        ({6: SLICES, 4: SEEN}, CLEAR),
        ({2: SLICES, 4: SEEN}, CLEAR),  # the middle of two clusters may be one of four
    ],
)
def test_stable_numbers_testify(numbers, gaps, monkeypatch):
    monkeypatch.setattr("rskc.selection.stability.is_a_sequence", lambda *_: False)
    search = Stability(RobustSparseKMeans())
    monkeypatch.setattr(search, "_cells", lambda *_: (None, None))

    def judged(numbers, stability, size=20, pair=0.0, apart=np.nan, unstable=0):
        full = {"labels": np.repeat(np.arange(4), size)}
        rest = {"stability": stability, "full": full, "cloud": CloudPValues(0.0, pair, 0.0)}
        rest |= {"smallest": size, "cluster_stability": np.r_[np.zeros(unstable), np.ones(4)]}
        fits = {
            K: SimpleNamespace(between=each, n_clusters=K, separation=apart, **rest)
            for K, each in numbers.items()
        }
        return search._gaps(None, fits, 4)

    assert judged(numbers, 0.9) == gaps
    alone = {4: numbers[4]}
    assert judged(numbers, 0.7) == judged(alone, 0.9)  # what is not stable is no witness
    assert judged({4: Between(1, 3)}, 0.5) == UNKNOWN
    assert judged({4: Between(1, 3)}, 0.5, size=8) == CLEAR
    assert judged({4: Between(1, 3)}, 0.5, size=8, pair=0.5) == UNKNOWN
    assert judged({4: SLICES}, 0.5, size=8) == NONE
    # Small clusters that are far apart need no halves, unless another number shows a gradient.
    assert judged({4: SLICES}, 0.5, size=8, apart=3.6) == CLEAR
    assert judged({4: SLICES}, 0.5, size=20, apart=3.6) == NONE
    assert judged({4: SLICES}, 0.5, size=8, apart=3.4) == NONE
    assert judged({4: SLICES}, 0.5, size=8, apart=3.6, unstable=4) == NONE
    assert judged({2: SLICES, 4: OPEN}, 0.9, size=8, pair=0.5, apart=3.6) == NONE


def by_definition(cells, labels, masses):
    """Return how far clusters are apart, case by case."""

    def mean(cases):
        return np.average(cells[cases], axis=0, weights=masses[cases])

    K = labels.max() + 1
    members = [np.flatnonzero(labels == k) for k in range(K)]
    errors = np.concatenate([cells[cases] - mean(cases) for cases in members])
    of_errors = np.concatenate([masses[cases] for cases in members])
    apart = np.zeros((K, K))
    for a in range(K):
        for b in set(range(K)) - {a}:
            places, centers = [], []
            for one, other, sign in ((a, b, 1), (b, a, -1)):
                for i in members[one]:
                    own, far = mean(np.setdiff1d(members[one], [i])), mean(members[other])
                    way = sign * (own - far)
                    places.append((cells[i] - (own + far) / 2) @ way / np.linalg.norm(way))
            sizes, places = len(members[a]), np.array(places)
            parts = (places[:sizes], masses[members[a]]), (places[sizes:], masses[members[b]])
            centers = [np.average(part, weights=counts) for part, counts in parts]
            squares = sum(
                counts @ (part - center) ** 2
                for (part, counts), center in zip(parts, centers, strict=True)
            )
            own = squares / (masses[members[a]].sum() + masses[members[b]].sum() - 2)
            axis = mean(members[a]) - mean(members[b])
            along = errors @ axis / np.linalg.norm(axis)
            pooled = of_errors @ along**2 / (masses.sum() - K)
            apart[a, b] = (centers[0] - centers[1]) / np.sqrt(max(own, pooled))
    return apart


def test_separation_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat([0, 1, 2], [5, 9, 12]))
    cells = rng.normal(size=(26, 7)) + 2 * rng.normal(size=(3, 7))[labels]
    masses = rng.uniform(0.5, 2, 26)
    off = ~np.eye(3, dtype=bool)
    expected = by_definition(cells, labels, masses)
    np.testing.assert_allclose(separation(cells, labels, masses)[off], expected[off])
    plain = separation(cells, labels)
    np.testing.assert_allclose(plain[off], by_definition(cells, labels, np.ones(26))[off])
    np.testing.assert_allclose(separation(3 * cells + 5, labels)[off], plain[off])
    order = rng.permutation(26)
    np.testing.assert_allclose(separation(cells[order], labels[order])[off], plain[off])


@pytest.mark.parametrize("p", [5, 60, 300])
def test_halves_of_noise_are_not_apart(p):
    """In sample they are: the more features, the farther. Other clusters tell the deviations."""
    rng, judged = np.random.default_rng(p), 0
    for _ in range(10):
        X = rng.normal(size=(74, p))
        X[:, 0] += np.repeat([0, 20, 40, 60], [14, 20, 20, 20])
        model = RobustSparseKMeans(2, trim=0, l1_bound=None, random_state=0).fit(X[:14])
        labels = np.r_[model.labels_, np.repeat([2, 3, 4], 20)]
        if np.bincount(model.labels_).min() > 3:
            judged += 1
            assert separation(X, labels)[0, 1] < 3.5 < separation(X, labels)[2:, 0].min()
    assert judged > 2


@pytest.mark.filterwarnings("ignore::rskc.SmallClusterWarning")
def test_small_clusters_far_apart_need_not_be_found_in_halves():
    """Beside a large cluster the halves cut that one instead of five clusters of five cases."""
    rng = np.random.default_rng(6)
    labels = np.repeat(np.arange(6), [70, 5, 5, 5, 5, 5])
    X = rng.normal(size=(95, 30))
    X[:, :6] += 2.5 * rng.normal(size=(6, 6))[labels]
    model = RobustSparseKMeans(n_init=10, random_state=0)
    options = {"n_splits": 3, "n_references": 3, "random_state": 0, "n_jobs": 1}
    found = Stability(model, [4, 5, 6], progress=False, **options).fit(X)
    row = found.table_.set_index("n_clusters").loc[6]
    assert row.stability < 0.8 < 3.5 < row.separation
    assert found.n_clusters_ == 6
    assert "clusters are 4.4 standard deviations apart or more" in found.reason_


def test_slices_of_a_gradient_are_no_clusters():
    rng = np.random.default_rng([0, 7])
    X = rng.uniform(-3, 3, (150, 1)) + rng.normal(size=(150, 15))
    model = RobustSparseKMeans(random_state=0)
    found = Stability(model, range(2, 6), random_state=0, n_jobs=1, progress=False).fit(X)
    assert found.n_clusters_ == 1
    assert found.n_slices_ == 4
    assert found.reason_.startswith("The cases lie along a gradient: 4 clusters are stable")
    assert found.table_.set_index("n_clusters").density_between[4] > 0.65
    X[:, 0] += 12 * (np.arange(150) % 2)
    found.fit(X)
    assert (found.n_clusters_, found.n_slices_) == (2, None)


def test_two_gradients_are_two_clusters():
    """Four slices are stable, two of each gradient; two clusters have a clear gap."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (160, 1)) * np.ones(10) + rng.normal(scale=0.6, size=(160, 10))
    X[::2] += 10 * rng.choice([-1, 1], 10)
    model = RobustSparseKMeans(trim=0, l1_bound=None, random_state=0)
    found = Stability(model, [2, 4], n_references=0, random_state=0, n_jobs=1, progress=False)
    found.fit(X)
    assert found.table_.stable.all()
    assert (found.n_clusters_, found.n_slices_) == (2, None)
    assert "4 clusters are stable too" in found.reason_


def test_where_gaps_are_open_a_stable_number_goes_before_a_nearly_stable_one():
    from benchmarks.mixed_number import chosen, in_categories

    assert chosen(in_categories, 8) == 3  # of 5 clusters the least stable has an index of .60
