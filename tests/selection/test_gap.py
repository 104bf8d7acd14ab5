"""The gap for the bound: its table, its rules, and the features that it finds."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.selection import GapL1
from search_kinds import HOW


@cache
def simulation(model=1):
    return make_simulation(model, 0, n_features=100, n_informative=15)


def gap_l1(X, l1_bounds=8, trim=0.05, n_permutations=5, K=3, **params):
    model = RobustSparseKMeans(K, trim=trim)
    return GapL1(model, l1_bounds, n_permutations=n_permutations, **HOW, **params).fit(X)


@cache
def found():
    """The search on the simulation, which several tests look at."""
    return gap_l1(simulation().data)


def test_gap_and_standard_error_by_hand():
    gap, table, logs = found(), found().table_, found().permuted_log_objectives_
    assert " ".join(table.columns) == (
        "l1_bound n_features objective log_objective permuted_mean gap standard_error chosen"
    )
    assert logs.shape == (5, len(table))
    assert_allclose(table.log_objective, np.log(table.objective))
    assert_allclose(table.permuted_mean, logs.mean(axis=0))
    assert_allclose(table.gap, table.log_objective - logs.mean(axis=0))
    spread = np.sqrt(((logs - logs.mean(axis=0)) ** 2).mean(axis=0))
    assert_allclose(table.standard_error, spread * np.sqrt(1 + 1 / 5))
    assert gap.l1_bound_ == table.l1_bound[table.gap.idxmax()]
    enough = table.gap >= table.gap.max() - table.standard_error[table.gap.idxmax()]
    assert gap.l1_bound_1se_ == table.l1_bound[enough].min() <= gap.l1_bound_
    assert table.l1_bound[table.chosen].tolist() == [gap.l1_bound_1se_]
    assert gap.best_estimator_.l1_bound == gap.l1_bound_1se_


def test_the_objective_is_that_of_a_fit_with_the_bound():
    model, row = found().best_estimator_, found().table_[found().table_.chosen].iloc[0]
    assert model.objective_ / (~model.trimmed_).sum() == pytest.approx(row.objective, rel=0.01)


# ---- Laws


@pytest.mark.parametrize(("trim", "tolerance"), [(0, 1e-9), (0.05, 0.1)])
def test_objectives_of_permuted_data_do_not_fall_along_the_bounds(trim, tolerance):
    """With trimming they may, since other cases are trimmed; seldom, and by 0.06 in the log."""
    X, evenly = simulation(1 if trim else 0).data, np.geomspace(1.2, 10, 6)
    gap = gap_l1(X, evenly, trim=trim, n_permutations=10)
    steps = np.diff(gap.permuted_log_objectives_, axis=1)
    assert steps.min() >= -tolerance
    assert (steps < -1e-3).mean() <= 0.1
    assert (steps.mean(axis=0) >= -1e-9).all()
    n_features = gap.table_.n_features.to_numpy()
    assert (np.diff(n_features) >= -2).all()
    assert n_features[-1] > 3 * n_features[0]


@pytest.mark.parametrize("number", [2, 3, 5, 10])
def test_a_number_of_bounds_is_not_exceeded_and_reaches_the_root(number):
    bounds = gap_l1(simulation().data, number, n_permutations=2).table_.l1_bound
    assert 2 <= len(bounds) <= number
    assert (np.diff(bounds) > 0).all()
    assert bounds.iloc[-1] == pytest.approx(10)
    assert bounds.iloc[0] == pytest.approx(1.2)


@pytest.mark.parametrize("change", [lambda X: X * 1000, lambda X: X / 1024, lambda X: X + 100])
def test_the_gap_does_not_see_unit_and_origin(change):
    moved = gap_l1(change(simulation().data))
    assert_allclose(moved.table_.l1_bound, found().table_.l1_bound)
    assert_allclose(moved.table_.gap, found().table_.gap, atol=1e-9)
    assert moved.l1_bound_1se_ == found().l1_bound_1se_


# ---- What is found


def found_features(trim):
    """Number of features, of true ones, and the size of the least cluster for each data set."""
    rows = []
    for seed in range(3):
        table = make_simulation(1, seed)
        gap = gap_l1(table.data, 10, trim)
        support = gap.best_estimator_.get_support()
        sizes = np.bincount(gap.best_estimator_.labels_, minlength=3)
        rows.append((support.sum(), (support & table.informative).sum(), sizes.min()))
    return np.transpose(rows)


def test_the_bound_is_right_with_trimming_and_wrong_without():
    selected, true, sizes = found_features(0.05)
    assert ((selected >= 40) & (selected <= 60)).all(), selected
    assert true.mean() >= 45
    assert sizes.min() > 5
    selected, _, sizes = found_features(0)
    assert ((selected > 100) | (selected < 20) | (sizes == 1)).all()


# ---- Refused, and warned of


@pytest.mark.parametrize("method", ["fit", "fit_predict"])
def test_a_warning_of_the_chosen_model_names_the_users_line(method):
    model = RobustSparseKMeans(2, max_iter=1, tol=0, n_init=1, random_state=0)
    search = GapL1(model, n_permutations=3, **HOW)
    with pytest.warns(UserWarning, match="Not converged") as warned:
        getattr(search, method)(make_simulation(model=1, random_state=0).data)
    assert {warning.filename for warning in warned} == {__file__}
