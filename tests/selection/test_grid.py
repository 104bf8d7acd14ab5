"""The grid: its table, the consensus of its fits, and the setting that it chooses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.selection import GapL1, GridSearch
from rskc.selection.findings import describe
from search_kinds import HOW, MODEL, corners, fitted


def grid_of(*settings, model=MODEL, X=None):
    return GridSearch(model, *settings, **HOW).fit(corners() if X is None else X)


# ---- The table


def test_rows_are_all_combinations():
    grid = grid_of((2, 3), [2, 1.5], [0.1, 0])
    rows = grid.table_[["n_clusters", "l1_bound", "trim"]].to_numpy().tolist()
    assert rows == [[K, s, t] for K in (2, 3) for t in (0, 0.1) for s in (1.5, 2)]
    assert " ".join(grid.table_.columns) == (
        "n_clusters trim l1_bound n_trim objective inertia within n_features n_outliers "
        "silhouette consensus chosen"
    )
    best = grid.table_[grid.table_.chosen]
    assert len(best) == 1
    for name in ("n_clusters", "l1_bound", "trim"):
        value = grid.best_params_[name]
        assert best[name].item() == value
        assert getattr(grid.best_estimator_, name) == value
    alike = grid.table_[grid.table_.n_clusters == 3]
    assert best.consensus.item() == pytest.approx(alike.consensus.max())
    assert best.n_clusters.item() == 3


def test_weights_obey_both_norms_along_the_bounds():
    model = RobustSparseKMeans(3, random_state=0)
    X = make_simulation(1, 0, n_features=100, n_informative=15).data
    grid = grid_of(None, [1.5, 2.5, 4, 6, 10], 0.05, model=model, X=X)
    weights, table = grid.weights_, grid.table_
    assert weights.shape == (5, 100)
    assert (weights >= 0).all()
    assert_allclose(np.linalg.norm(weights, axis=1), 1)
    assert (weights.sum(axis=1) <= table.l1_bound * (1 + 1e-9)).all()
    assert_array_equal(table.n_features, (weights > 0).sum(axis=1))
    for bound, objective in zip(table.l1_bound, table.objective, strict=True):
        alone = clone(model).set_params(l1_bound=bound, trim=0.05).fit(X)
        assert objective >= 0.999 * alone.objective_ / (~alone.trimmed_).sum()


def test_a_grid_without_sparsity():
    dense = clone(MODEL).set_params(l1_bound=None)
    grid = grid_of((2, 3), None, [0, 0.1], model=dense)
    assert len(grid.table_) == 4
    assert grid.table_.l1_bound.isna().all()
    assert set(grid.best_params_) == {"n_clusters", "trim"}
    assert grid.best_estimator_.l1_bound is None
    assert (grid.table_.n_features == 8).all()
    one_feature = grid_of(2, None, [0], model=dense, X=corners(2)[:, :1])
    assert one_feature.table_.consensus.tolist() == [0]


def test_the_bound_of_the_estimator_is_kept_where_none_is_tried():
    grid = grid_of((2, 3), None, [0, 0.1], model=RobustSparseKMeans(4, n_features=4, n_init=3))
    assert (grid.table_.n_features == 4).all()
    assert grid.best_estimator_.n_features == 4
    assert grid.best_estimator_.n_clusters == 2  # the estimator's was not tried


def test_the_number_of_features_of_the_estimator_gives_way():
    model = RobustSparseKMeans(3, n_features=4, n_init=3)
    for search in (GridSearch(model, 3, [2], [0], **HOW), GapL1(model, 3, **HOW)):
        best = search.fit(corners()).best_estimator_
        assert best.n_features is None
        assert best.l1_bound is not None


def test_the_curve_of_a_grid_is_the_consensus_along_what_was_tried():
    curve, table = describe(fitted("GridSearch")).curve, fitted("GridSearch").table_
    labels = [f"{K} clusters, trim {trim}" for K in (2, 3) for trim in (0, 0.1)]
    assert [line.label for line in curve.lines] == labels
    for line, rows in zip(curve.lines, np.split(table.consensus.to_numpy(), 4), strict=True):
        assert_array_equal(line.y, rows)
    line, place = curve.chosen
    assert curve.lines[line].y[place] == table.consensus[table.chosen].item()
    shares = describe(GridSearch(MODEL, 3, None, [0, 0.1], **HOW).fit(corners())).curve
    assert (shares.by, shares.x.tolist(), len(shares.lines)) == ("trim", [0, 0.1], 1)
