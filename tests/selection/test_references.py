"""Data without clusters: reference sets, and columns that are permuted."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from rskc.selection.references import CLOUDS, REFERENCES, permuted, reference_of
from rskc.selection.search import fit_task
from search_kinds import corners, search_of

each_kind = pytest.mark.parametrize("kind", REFERENCES)


def draw(kind, X, seed=0):
    return reference_of(kind, X).draw(np.random.default_rng(seed))


def draw_many(kind, X, times=200):
    box, rng = reference_of(kind, X), np.random.default_rng(0)
    return np.vstack([box.draw(rng) for _ in range(times)])


def rotated_box(n=400):
    """Cases drawn evenly in a box that is not along the axes."""
    rng = np.random.default_rng(1)
    axes = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    return rng.uniform(-1, 1, (n, 4)) * [9, 5, 2, 0.5] @ axes + [10, -20, 0, 3]


def test_wide_data_need_nothing_as_large_as_the_square_of_their_features():
    X = np.random.default_rng(0).standard_normal((50, 3000))
    tracemalloc.start()
    try:
        draw("pca", X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12 * X.nbytes < 0.25 * 3000**2 * 8


@pytest.mark.parametrize("kind", ["pca", "uniform"])
def test_draws_fill_the_box_along_the_axes_or_the_columns(kind):
    X = rotated_box()
    axes = np.linalg.svd(X - X.mean(axis=0))[2] if kind == "pca" else np.eye(4)
    drawn, scores = draw_many(kind, X, 20) @ axes.T, X @ axes.T
    size = np.ptp(scores, axis=0)
    assert (drawn >= scores.min(axis=0) - 1e-9 * size).all()
    assert (drawn <= scores.max(axis=0) + 1e-9 * size).all()
    assert_allclose(np.ptp(drawn, axis=0), size, rtol=0.01)
    assert_allclose(np.corrcoef(drawn.T), np.eye(4), atol=0.06)


@pytest.mark.parametrize("kind", CLOUDS)
def test_draws_have_the_mean_and_the_covariances_of_the_data(kind):
    X = rotated_box(2000)
    drawn = draw_many(kind, X, 20)
    spread = np.sqrt(np.linalg.eigvalsh(np.cov(X.T)))
    assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.05 * spread.max())
    assert_allclose(np.sqrt(np.linalg.eigvalsh(np.cov(drawn.T))), spread, rtol=0.08)
    assert_allclose(np.corrcoef(drawn.T), np.corrcoef(X.T), atol=0.06)


def test_references_have_the_moments_of_copies():
    rng = np.random.default_rng(10)
    X, masses = rng.normal(size=(200, 3)) * [1, 3, 5], rng.integers(1, 4, 200).astype(float)
    copies = np.repeat(X, masses.astype(int), axis=0)
    for kind in CLOUDS:
        one, other = reference_of(kind, X, masses), reference_of(kind, copies)
        assert_allclose(one.mean, other.mean)
        assert_allclose(np.abs(one.axes), np.abs(other.axes), atol=1e-9)
    one, other = (reference_of("normal", *data) for data in ((X, masses), (copies,)))
    deviations, copied = one.spread[1], other.spread[1]
    assert_allclose(deviations, copied, rtol=2e-3)  # n - 1 of fewer cases
    assert one.n_cases == 200


@each_kind
def test_a_reference_set_is_as_large_and_no_copy(kind):
    X = np.random.default_rng(0).standard_normal((30, 7))
    first, second = draw(kind, X, 0), draw(kind, X, 1)
    assert first.shape == second.shape == X.shape
    assert_array_equal(first, draw(kind, X, 0))
    assert (first != second).all()
    assert (first != X).all()


@each_kind
def test_missing_cells_are_carried_over(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    missing = rng.random(X.shape) < 0.2
    missing[3] = True
    missing[:, 4] = True
    X[missing] = np.nan
    before = X.copy()
    assert_array_equal(np.isnan(draw(kind, X)), missing)
    assert_array_equal(X, before)


@each_kind
def test_an_outlying_cell_does_not_stretch_the_box(kind):
    X = np.random.default_rng(0).standard_normal((60, 8))
    outlying = X.copy()
    outlying[5, 3] = 1e6
    clean, spoilt = draw_many(kind, X, 50), draw_many(kind, outlying, 50)
    assert_allclose(spoilt.std(axis=0), clean.std(axis=0), rtol=0.25)
    assert_allclose(spoilt.mean(axis=0), clean.mean(axis=0), atol=1)
    outlying[5, 3] = -1e12
    # It is clipped to 3.5 MADs, which is farther than the lowest cell of this column.
    assert_allclose(draw_many(kind, outlying, 50).std(axis=0), clean.std(axis=0), rtol=0.6)


@each_kind
def test_odd_columns_are_no_obstacle(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    X[:, 0] = np.nan
    X[:, 1] = 7.25
    X[:, 2] = 0.0
    X[:6, 2] = rng.uniform(1, 2, 6)  # more than half are 0: its MAD is 0
    X[1:, 3] = np.nan
    drawn = draw_many(kind, X, 20)
    assert np.isnan(drawn[:, 0]).all()
    assert_allclose(drawn[:, 1], 7.25, rtol=1e-12)
    assert np.isfinite(drawn[:, [1, 2, 4]]).all()
    assert 1 < np.ptp(drawn[:, 2]) < 4
    assert_allclose(drawn[::40, 3], X[0, 3], rtol=1e-9)


@each_kind
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_reference_sets_have_the_type_of_the_data(dtype, kind, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "rskc.selection.clest.fit_task",
        lambda *args, **settings: seen.append(args[1].X.dtype) or fit_task(*args, **settings),
    )
    search_of("Clest", reference=kind).fit(corners().astype(dtype))
    assert len(seen) == 2 * 12
    assert set(seen) == {np.dtype(dtype)}


# ---- Permuted columns


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_are_permuted_each_on_its_own(dtype):
    rng = np.random.default_rng(0)
    X = np.tile(np.arange(50.0, dtype=dtype)[:, None], (1, 8))
    X[rng.random(X.shape) < 0.1] = np.nan
    before = X.copy()
    mixed = permuted(X, np.random.default_rng(1))
    assert mixed.dtype == dtype
    assert_array_equal(X, before)
    assert_array_equal(np.sort(mixed, axis=0), np.sort(X, axis=0))
    assert_array_equal(mixed, permuted(X, np.random.default_rng(1)))
    complete = permuted(np.tile(np.arange(50.0)[:, None], (1, 8)), np.random.default_rng(1))
    assert len(np.unique(complete, axis=1).T) == 8
    assert np.abs(np.corrcoef(complete.T) - np.eye(8)).max() < 0.6


def test_cells_are_permuted_in_proportion_to_weight():
    X = np.repeat([[1.0, 1.0], [0.0, 0.0]], 10, axis=0)
    weights = np.where(X[:, 0] == 1, 3.0, 1.0)
    for table in (X, csr_array(X)):
        drawn = permuted(table, np.random.default_rng(0), None, weights)
        drawn = drawn if isinstance(drawn, np.ndarray) else drawn.toarray()
        assert_array_equal(drawn.sum(axis=0), [15, 15])  # 3 of 4 shares of 20 cases
        assert (drawn[:, 0] != drawn[:, 1]).any()
