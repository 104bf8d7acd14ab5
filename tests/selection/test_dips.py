"""The dip between neighbors: reference values, laws, and gradients that are no clusters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rskc import RobustSparseKMeans
from rskc.selection import Stability
from rskc.selection.dips import (
    PROBABILITIES,
    QUANTILES,
    SIZES,
    dip,
    dip_p_value,
    largest_dip,
    places_of,
)

# Dips of these values by the package diptest 0.12, of which no source was read.
REFERENCE = {
    "two groups": (np.r_[np.arange(20.0), np.arange(40.0, 55)], 0.12857142857142856),
    "sine": (np.sin(1.7 * np.arange(40)), 0.06278226110653248),
    "squares": (np.arange(30.0) ** 2, 0.016666666666666666),
    "ties": (np.repeat([0.0, 1, 2, 5], [3, 9, 2, 6]), 0.15),
    "sum": (np.sin(np.arange(300)) + np.cos(2.3 * np.arange(300)) ** 3, 0.01622182078798378),
    "three": (np.array([0.0, 1, 5]), 1 / 6),
}


@pytest.mark.parametrize(("values", "expected"), REFERENCE.values(), ids=REFERENCE)
def test_the_dip_is_that_of_the_reference(values, expected):
    assert dip(values) == pytest.approx(expected, rel=1e-12)


@given(st.integers(0, 10**6), st.integers(4, 60))
def test_order_place_scale_and_side_do_not_matter(seed, n):
    values = np.random.default_rng(seed).choice(500, n, replace=False) * 1.0
    expected = dip(np.sort(values))
    for other in (values, -values, values * 4, values + 1024):
        assert dip(other) == pytest.approx(expected, rel=1e-9)
    assert 1 / (2 * n) <= expected <= 0.25 + 1 / (2 * n)


def test_p_values_of_even_values_are_even():
    rng = np.random.default_rng(0)
    found = np.array([dip_p_value(rng.uniform(size=100)) for _ in range(400)])
    assert abs((found <= 0.5).mean() - 0.5) < 0.08
    assert abs((found <= 0.1).mean() - 0.1) < 0.06
    assert np.shape(QUANTILES) == (len(SIZES), len(PROBABILITIES))


def test_many_values_are_thinned_out():
    rng = np.random.default_rng(0)
    normal = rng.normal(size=20_000)
    assert dip_p_value(normal) > 0.5
    assert dip_p_value(np.r_[normal[:10_000], normal[10_000:] + 4]) < 0.01


def test_pairs_of_too_few_cases_say_nothing():
    X = np.r_[np.zeros((10, 1)), np.full((3, 1), 9.0)] + np.arange(13.0)[:, None] / 100
    model = RobustSparseKMeans(2, trim=0, l1_bound=None, random_state=0).fit(X)
    assert np.isnan(largest_dip(13, 2, [places_of(model, X, np.arange(13))]))
    assert np.isnan(largest_dip(13, 2, [places_of(object(), X, np.arange(13))]))
    assert np.isnan(largest_dip(13, 2, []))


def test_the_median_place_of_a_case_counts():
    """Two groups that each fit blurs, in its own way, are two groups still."""
    rng = np.random.default_rng(0)
    truth, places = np.repeat([-0.5, 0.5], 40), []
    for _ in range(12):
        at = truth + rng.normal(scale=0.4, size=80)
        distances = np.c_[(at + 0.5) ** 2, (at - 0.5) ** 2]
        gaps = 1.0 - np.eye(2)
        places.append({"others": np.arange(80), "distances": distances, "gaps": gaps})
    assert largest_dip(80, 2, places) < 0.001 < largest_dip(80, 2, places[:1])


def test_slices_of_a_gradient_are_no_clusters():
    rng = np.random.default_rng([0, 7])
    X = rng.uniform(-3, 3, (150, 1)) + rng.normal(size=(150, 15))
    model = RobustSparseKMeans(random_state=0)
    found = Stability(model, range(2, 6), random_state=0, n_jobs=1, progress=False).fit(X)
    assert (found.n_clusters_, found.n_slices_) == (1, 5)
    assert found.reason_.startswith("The cases lie along a gradient: 5 clusters are stable")
    dips = found.table_.set_index("n_clusters").dip_p_value
    assert dips[5] > 0.6
    X[:, 0] += 12 * (np.arange(150) % 2)
    found.fit(X)
    assert (found.n_clusters_, found.n_slices_) == (2, None)
