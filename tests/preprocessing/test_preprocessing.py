"""Standardizers: what they promise of distances, of odd rows and columns, and to scikit-learn."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks

from counting import count_calls
from rskc import ColumnStandardizer, RowStandardizer

X = np.random.default_rng(0).standard_normal((12, 7)) * 3 + 5
KINDS = list(product(("median", "mean"), ("mad", "std")))
each_kind = pytest.mark.parametrize(("center", "scale"), KINDS)

cells = st.integers(-5, 5).map(float)
incomplete = st.one_of(cells, st.just(np.nan))
tables = hnp.arrays(
    float, hnp.array_shapes(min_dims=2, max_dims=2, max_side=8), elements=incomplete
)


def quietly(transformer, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return transformer.fit_transform(X)


def spread(row, scale):
    """Scale of one row, by the definition."""
    seen = row[~np.isnan(row)]
    if len(seen) == 0 or np.ptp(seen) == 0:
        return 0
    return np.std(seen) if scale == "std" else 1.4826 * np.median(np.abs(seen - np.median(seen)))


def naive(row, center, scale):
    """One row, by the definition."""
    seen = row[~np.isnan(row)]
    if len(seen) == 0:
        return row
    return (row - getattr(np, center)(seen)) / (spread(row, scale) or 1)


@parametrize_with_checks(
    [
        make(*kind)
        for make in (RowStandardizer, ColumnStandardizer)
        for kind in (KINDS[0], KINDS[-1])
    ]
)
@pytest.mark.filterwarnings("ignore:.* scale 0 :UserWarning")
@pytest.mark.filterwarnings("ignore:.* MAD 0, :UserWarning")
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_squared_distances_are_those_of_correlation(dtype):
    Z = RowStandardizer("mean", "std").fit_transform(X.astype(dtype))
    distances = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    expected = 2 * X.shape[1] * (1 - np.corrcoef(X))
    assert Z.dtype == dtype
    assert_allclose(distances, expected, atol=1e-12 if dtype is np.float64 else 1e-4)


@each_kind
@given(table=tables)
def test_each_row_is_standardized_by_its_observed_cells(center, scale, table):
    expected = [naive(row, center, scale) for row in table]
    assert_allclose(quietly(RowStandardizer(center, scale), table), expected, atol=1e-12)


@each_kind
@given(table=tables, factor=st.sampled_from([0.25, 8.0]), shift=st.integers(-9, 9))
def test_level_and_unit_of_a_row_are_forgotten(center, scale, table, factor, shift):
    varied = [spread(row, scale) > 0 for row in table]
    transformer = RowStandardizer(center, scale)
    before, after = quietly(transformer, table), quietly(transformer, table * factor + shift)
    assert_allclose(after[varied], before[varied], atol=1e-12)
    assert_array_equal(np.isnan(after), np.isnan(table))


def test_by_hand():
    row = [[1.0, 2.0, 4.0, 100.0, np.nan]]
    robust = RowStandardizer().fit_transform(row)
    assert_allclose(robust, [[-2 / 2.2239, -1 / 2.2239, 1 / 2.2239, 97 / 2.2239, np.nan]])
    assert_allclose(RowStandardizer("mean", "std").fit_transform([[1.0, 3.0]]), [[-1, 1]])


@each_kind
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_rows_are_centered_to_zero_and_named(center, scale, dtype):
    rows = X.astype(dtype)
    rows[[2, 5]] = [[0.1], [-1e30]]  # 0.1 * 7 / 7 is not 0.1
    rows[7, 1:] = np.nan
    rows[9] = np.nan
    transformer = RowStandardizer(center, scale)
    with pytest.warns(UserWarning, match="scale 0") as said:
        Z = transformer.fit_transform(rows)
    message = f"3 cases have scale 0 ({scale}) and can be centered only: 2, 5, 7."
    assert [str(warning.message) for warning in said] == [message]
    assert_array_equal(Z[[2, 5]], 0)
    assert_array_equal(Z[7], [0] + [np.nan] * 6)
    assert np.isnan(Z[9]).all()
    others = np.delete(np.arange(12), [2, 5, 7, 9])
    assert_array_equal(Z[others], transformer.transform(rows[others]))


def test_a_row_with_half_of_its_cells_equal_has_no_mad():
    with pytest.warns(UserWarning, match="1 case has scale 0"):
        Z = RowStandardizer().fit_transform([[3.0, 3.0, 3.0, 4.0, 9.0]])
    assert_array_equal(Z, [[0, 0, 0, 1, 6]])


@each_kind
@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_squares_neither_vanish_nor_overflow(center, scale, unit):
    transformer = RowStandardizer(center, scale)
    assert_allclose(transformer.fit_transform(X * unit), transformer.fit_transform(X))


@each_kind
@pytest.mark.parametrize("kind", [RowStandardizer, ColumnStandardizer])
def test_a_wide_table_takes_no_more_calls_than_a_narrow_one(kind, center, scale):
    wide = np.random.default_rng(0).standard_normal((78, 24_000))
    wide[::3, ::50] = np.nan
    narrow, work = wide[:, :100], kind(center, scale).fit_transform
    assert count_calls(lambda: work(wide)) == count_calls(lambda: work(narrow))


@pytest.mark.parametrize("cell", [np.inf, -np.inf])
def test_infinity_is_refused(cell):
    outlying = X.copy()
    outlying[3, 3] = cell
    fitted = ColumnStandardizer().fit(X)
    for method in (
        RowStandardizer().fit,
        RowStandardizer().transform,
        fitted.transform,
        fitted.fit,
    ):
        with pytest.raises(ValueError, match="infinity"):
            method(outlying)


# --- columns


@each_kind
@given(table=tables)
def test_columns_are_the_rows_of_the_transpose(center, scale, table):
    expected = quietly(RowStandardizer(center, scale), table.T).T
    Z = quietly(ColumnStandardizer(center, scale), table)
    rough = [spread(x, scale) == 0 and spread(x, "std") > 0 for x in table.T]
    assert_allclose(Z[:, ~np.array(rough)], expected[:, ~np.array(rough)], atol=1e-12)
    for column in np.flatnonzero(rough):  # a MAD of 0 says nothing of their spread
        assert_allclose(Z[:, column], naive(table[:, column], center, "std"), atol=1e-12)


@each_kind
@given(table=tables)
def test_the_way_back(center, scale, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        transformer = ColumnStandardizer(center, scale).fit(table)
    back = transformer.inverse_transform(transformer.transform(table))
    assert_allclose(back, table, atol=1e-12)


def test_other_cases_are_standardized_as_those_of_the_fit():
    transformer = ColumnStandardizer().fit(X)
    assert_allclose(transformer.center_, np.median(X, axis=0))
    assert_array_equal(transformer.transform(X[3:5]), transformer.transform(X)[3:5])
    single = transformer.transform(X.astype(np.float32))
    assert single.dtype == transformer.inverse_transform(single).dtype == np.float32
    assert_allclose(single, transformer.transform(X), rtol=1e-3, atol=1e-5)


@each_kind
def test_constant_and_empty_columns_are_kept_without_a_warning(center, scale):
    table = X.copy()
    table[:, 1], table[:, 4] = 0.1, np.nan
    transformer = ColumnStandardizer(center, scale)
    Z = transformer.fit_transform(table)
    assert_array_equal(Z[:, 1], 0)
    assert np.isnan(Z[:, 4]).all()
    assert (transformer.center_[4], *transformer.scale_[[1, 4]]) == (0, 1, 1)


def test_columns_with_more_than_half_of_their_cells_equal_are_named():
    frame = pd.DataFrame({"a": [0.0] * 6 + [1.0, 2, 3, 4], "b": np.arange(10.0)})
    with pytest.warns(UserWarning, match=r"^1 feature has MAD 0, because .* instead: a\.$"):
        Z = ColumnStandardizer().fit_transform(frame)
    assert np.isclose(Z[:, 0].std(), 1)
    ColumnStandardizer("median", "std").fit(frame)


@pytest.mark.filterwarnings("ignore:invalid value encountered in reduce")  # by scikit-learn
def test_a_column_whose_scale_overflows_is_left_alone():
    table = np.column_stack([X[:, 0], np.tile([-1.7e308, 1.7e308], 6)])
    assert_array_equal(ColumnStandardizer().fit_transform(table)[:, 1], table[:, 1])


def test_frames_of_standardized_columns_keep_their_names():
    frame = pd.DataFrame(X, columns=list("abcdefg"), index=[f"case {i}" for i in range(12)])
    transformer = ColumnStandardizer().set_output(transform="pandas")
    Z = transformer.fit_transform(frame)
    assert list(transformer.get_feature_names_out()) == list(Z.columns) == list("abcdefg")
    assert_array_equal(Z.index, frame.index)
    assert_array_equal(Z, ColumnStandardizer().fit_transform(X))
