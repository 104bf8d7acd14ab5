"""What a search says of itself: what it found, by which rule, and what follows."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from rskc import RobustSparseKMeans
from rskc.datasets import make_figure1
from rskc.selection import (
    Clest,
    GapK,
    GapL1,
    GridSearch,
    PredictionStrength,
    TrimCurves,
    feature_path,
)
from rskc.selection.findings import (
    clest_reason,
    describe,
    gap_reason,
    strength_reason,
    trim_reason,
)

DATA = make_figure1(60, 8, random_state=0).data
MODEL = RobustSparseKMeans(3, trim=0.02, l1_bound=1.6, n_init=3, random_state=0)
HOW = {"random_state": 0, "n_jobs": 1, "progress": False}


@pytest.fixture(scope="module")
def gap_k():
    return GapK(MODEL, range(1, 6), n_references=4, **HOW).fit(DATA)


def test_gap_k_describes_the_rule_it_follows(gap_k):
    """The least number within one standard error of the first local maximum, and not the next."""
    gap, error = gap_k.table_.gap.to_numpy(), gap_k.table_.standard_error.to_numpy()
    peak = next(i for i in range(5) if i == 4 or gap[i] >= gap[i + 1])
    least = next(i for i in range(5) if gap[i] >= gap[peak] - error[peak])
    finding = describe(gap_k)
    assert finding.suggests == {"n_clusters": least + 1}
    assert finding.table.chosen == [i == least for i in range(5)]
    assert "within one standard error of the first local maximum" in finding.rule


@pytest.mark.parametrize(
    ("kind", "gap", "row", "reason"),
    [
        ("n_clusters", [0, 3, 2, 1], 1, "the largest gap"),
        ("n_clusters", [0, 3, 2, 9], 1, "the first local maximum"),
        ("n_clusters", [0, 2, 3, 1], 1, "within one standard error of the first local maximum"),
        ("n_clusters", [2, 1, 3, 4], 0, "the first local maximum"),
        ("l1_bound", [0, 3, 2, 9], 1, "within one standard error"),
        ("l1_bound", [0, 3, 2, 9], 3, "the largest gap"),
    ],
)
def test_reasons_of_the_gap(kind, gap, row, reason):
    assert gap_reason(kind, gap, np.arange(4) == row) == reason


def test_reasons_of_the_others():
    assert clest_reason([2, 3], [0.5, 0.048], 3) == "predicted better than by chance, p = .048"
    assert clest_reason([2, 3], [0.5, 0.6], 1).startswith("no number of them")
    assert strength_reason(0.78, 0.05, 0.8).endswith("predicted well (strength 0.78)")
    assert "below the threshold of 0.9" in strength_reason(0.78, 0.05, 0.9)
    assert trim_reason([0, 0.025, 0.1], 0.025) == "the partition is stable from 2.5% on"
    assert trim_reason([0, 0.025, 0.1], 0.1) == "the partition is not stable up to 10%"


@pytest.mark.parametrize(
    ("rule", "column", "words"),
    [
        ("agreement", "p_value", "agreement within 0.1"),
        ("paper", "p_value_share", "farthest"),
    ],
)
def test_clest_describes_its_rule(rule, column, words):
    search = Clest(MODEL, [2, 3], n_splits=3, n_references=4, rule=rule, **HOW).fit(DATA)
    finding = describe(search)
    assert words in finding.rule
    shown = [float(row[finding.table.labels.index("p-value")]) for row in finding.table.rows]
    assert shown == search.table_[column].tolist()
    assert finding.headline.startswith(f"Clest suggests {search.n_clusters_} cluster")


def test_gap_l1_describes_its_rule():
    search = GapL1(MODEL, 5, n_permutations=3, rule="largest", **HOW).fit(DATA)
    assert describe(search).suggests == {"l1_bound": search.l1_bound_}
    assert "The bound with the largest gap" in describe(search).rule
    search.set_params(rule="1se")
    assert describe(search).suggests == {"l1_bound": search.l1_bound_1se_}
    assert "within one standard error of the largest gap" in describe(search).rule


def test_trimming_that_is_not_stable_asks_for_larger_shares():
    search = TrimCurves(MODEL, [3], [0, 0.05], **HOW).fit(DATA)
    search.suggested_trim_ = 0.05
    assert "try larger ones" in describe(search).explanation
    search.suggested_trim_ = 0.0
    assert describe(search).next_step == ""


def test_the_grid_does_not_choose_the_number_of_clusters():
    search = GridSearch(MODEL, [2, 3], None, [0, 0.1], **HOW).fit(DATA)
    finding = describe(search)
    assert finding.suggests == {"trim": search.best_params_["trim"]}
    assert "use Clest for it" in finding.explanation
    assert {row[1] for row in finding.table.rows} == {"–"}


def test_a_sample_is_mentioned():
    search = PredictionStrength(MODEL, [2, 3], n_splits=2, max_samples=40, **HOW).fit(DATA)
    assert "Searched on 40 of the 60 cases" in describe(search).explanation


def test_the_path_names_the_first_features():
    finding = describe(feature_path(MODEL, DATA, [1.2, 1.6]))
    assert finding.headline.startswith("The first to get weight: x")
    assert finding.suggests == {}
    assert finding.table.chosen == [False, False]


def test_what_cannot_be_described():
    with pytest.raises(NotFittedError):
        describe(Clest(MODEL))
    with pytest.raises(TypeError, match="must be one of Clest, GapL1, GapK"):
        describe(MODEL)
