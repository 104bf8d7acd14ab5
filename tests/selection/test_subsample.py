"""Which cases of a table a search works on."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rskc import RobustSparseKMeans
from rskc.inputs.validation import PRECISIONS, validated
from rskc.selection import Clest
from rskc.selection.findings import describe
from rskc.selection.subsample import draw, draw_cases, evenly_drawn, with_length
from search_kinds import corners, search_of
from skips import skip_without
from table_kinds import TABLES, each_table


@given(n=st.integers(1, 500), share=st.floats(0, 1), seed=st.integers(0, 2**31 - 1))
def test_cases_are_drawn_once_each_and_upwards(n, share, seed):
    n_used = max(1, int(share * n))
    cases = draw_cases(n, n_used, seed)
    assert len(cases) == n_used
    assert (np.diff(cases) > 0).all()
    assert cases[0] >= 0
    assert cases[-1] < n
    assert_array_equal(cases, draw_cases(n, n_used, seed))


def test_few_of_very_many_cases_take_little_memory():
    assert draw_cases(10**12, 10_000, 0).max() < 10**12


def test_a_table_that_is_small_enough_is_itself():
    X = corners()
    assert draw(X, None, 60, 0)[1].X is X


@each_table
def test_the_same_cases_of_every_kind_of_table(kind):
    X = corners(n=400)
    search = Clest(RobustSparseKMeans())
    table = with_length(validated(search, TABLES[kind](X), reset=True, dtype=PRECISIONS))
    gathered = draw(table, None, 37, 5)[1].X
    assert isinstance(gathered, np.ndarray)
    assert gathered.flags.c_contiguous
    assert_array_equal(gathered, X[draw_cases(400, 37, 5)])
    assert_array_equal(draw(table, None, 400, 5)[1].X, X)


def test_only_the_wanted_rows_of_dask_travel_and_other_blocks_are_not_read():
    skip_without("dask")
    import dask.array as array

    read = []

    def block(block_info=None):
        (first, last), _ = block_info[None]["array-location"]
        read.append(first)
        return np.arange(first, last, dtype=float)[:, None]

    table = array.map_blocks(block, chunks=((10,) * 100, (1,)), dtype=float)
    read.clear()  # Dask may have tried it
    gathered = draw(table, None, 5, 3)[1].X
    assert_array_equal(gathered[:, 0], draw_cases(1000, 5, 3))
    assert len(read) <= 5


# ---- By weight


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40), number=st.integers(1, 60))
def test_cases_are_drawn_in_proportion(seed, n, number):
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=n)
    drawn = evenly_drawn(weights, number, rng)
    assert drawn.sum() == number
    assert (np.abs(drawn - number * weights / weights.sum()) < 1 + 1e-6).all()


def test_of_a_large_table_heavy_cases_are_drawn_and_count_alike():
    weights = np.r_[np.full(50, 99.0), np.full(4950, 1.0), np.zeros(100)]
    table = np.arange(5100.0)[:, None]
    cases, drawn = draw(table, weights, 500, seed=0)
    assert_array_equal(drawn.X[:, 0], cases)
    assert len(cases) <= 500
    assert set(range(50)) <= set(cases)  # each is 5 of the 500
    assert drawn.weights.sum() == 500
    assert_allclose(drawn.weights[:50], 5, atol=1)
    assert (drawn.weights[50:] == 1).all()
    assert cases.max() < 5000
    assert_array_equal(cases, draw(table, weights, 500, seed=0)[0])
    cases, equal = draw(table[:1000], np.r_[0.0, np.full(999, 0.3)], 100, seed=0)
    assert equal.weights is None
    assert len(cases) == 100


def test_a_search_on_some_cases_says_how_they_were_drawn():
    X, weights = corners(n=90), np.random.default_rng(9).integers(0, 4, 90)
    search = search_of("Stability", max_samples=40).fit(X, sample_weight=weights)
    assert search.n_samples_used_ <= 40
    assert (weights[search.samples_used_] > 0).all()
    assert len(search.case_stability_) == search.n_samples_used_
    assert "drawn in proportion to their weights" in describe(search).sample
