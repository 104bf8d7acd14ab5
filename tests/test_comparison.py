"""Two solutions side by side: matches by hand, laws, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from rskc import RobustSparseKMeans
from rskc.comparison import Partition, compare, compare_solutions
from rskc.datasets import make_simulation
from rskc.metrics import classification_error_rate, feature_agreement
from rskc.selection import GridSearch

NAMES = np.array(["u", "v", "w", "x"])


def judgment(labels, outliers=(), weights=(0.5, 0.5, 0, 0), K=None):
    labels = np.array(labels)
    flags = np.isin(np.arange(len(labels)), outliers)
    return Partition(labels, flags, np.array(weights, float), K or labels.max() + 1)


def compared(a, b):
    return compare(a, b, np.array([f"case {i}" for i in range(len(a.labels))]), NAMES)


@pytest.fixture(scope="module")
def frame():
    data = make_simulation(random_state=0, n_features=40, n_informative=20).data
    names = [f"gene {j}" for j in range(40)]
    return pd.DataFrame(data, [f"P{i}" for i in range(60)], names)


@pytest.fixture(scope="module")
def models(frame):
    return [
        RobustSparseKMeans(K, trim=0.05, l1_bound=s, n_init=5, random_state=0).fit(frame)
        for K, s in ((3, 4), (4, 2))
    ]


# --- laws


@pytest.mark.parametrize("seed", range(5))
def test_numbers_of_clusters_and_order_of_cases_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 4, 50), rng.integers(0, 3, 50)
    a[:40] = b[:40]  # mostly the same, so that the best match is the only one
    one = compared(judgment(a, K=4), judgment(b, K=3))
    new = rng.permutation(4)
    other = compared(judgment(new[a], K=4), judgment(b, K=3))
    assert other.cer == one.cer
    assert {int(new[k]): match for k, match in one.matches.items()} == other.matches
    assert_array_equal(other.cases.case, one.cases.case)
    order = rng.permutation(50)
    shuffled = compared(judgment(a[order], K=4), judgment(b[order], K=3))
    assert shuffled.matches == one.matches
    numbers = shuffled.cases.case.str[5:].astype(int)
    assert_array_equal(np.sort(order[numbers]), one.cases.case.str[5:].astype(int))


def test_numbers_are_those_of_the_metrics(models, frame):
    a, b = models
    found = compare_solutions(a, b)
    assert found.cer == classification_error_rate(a.labels_, b.labels_)
    agreement = feature_agreement(a, b)
    changes = found.features.change.tolist()
    assert changes.count("gained") == agreement.n_b - agreement.n_both
    assert changes.count("lost") == agreement.n_a - agreement.n_both
    expected = np.array([found.matches.get(k, -1) for k in range(3)])
    moved = expected[a.labels_] != b.labels_
    assert set(found.cases.case[found.cases.moved]) == set(frame.index[moved])


def test_on_new_cases_the_predictions_are_compared(models, frame):
    some = frame.iloc[5:25]
    found = compare_solutions(*models, some)
    a, b = (model.predict(some) for model in models)
    assert found.cer == classification_error_rate(a, b)
    assert found.table.to_numpy().sum() == 20
    assert set(found.cases.case) <= set(some.index)


# --- cases, searches, refusals


def test_a_search_stands_for_its_model(frame):
    model = RobustSparseKMeans(2, n_init=2, random_state=0)
    how = {"random_state": 0, "n_jobs": 1, "progress": False}
    grid = GridSearch(model, [2, 3, 4], [2, 4], [0, 0.1], **how).fit(frame)
    assert compare_solutions(grid, grid.best_estimator_).cases.empty
    assert [step.table.shape for step in grid.changes_] == [(2, 3), (3, 4)]
    assert "gene" in grid.changes_[0].features.feature[0]
    table = grid.table_
    rows = [table[table.n_clusters == K].consensus.idxmax() for K in (2, 3)]
    counts = table.n_features[rows].to_numpy()
    step = grid.changes_[0]
    changes = step.features.change.tolist()
    assert changes.count("gained") - changes.count("lost") == counts[1] - counts[0]
