"""What a search says of itself: what it found, by which rule, and what follows."""

import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from rskc import RobustSparseKMeans
from rskc.datasets import make_figure1
from rskc.selection import (
    Clest,
    GapL1,
    GridSearch,
    PredictionStrength,
    TrimCurves,
    feature_path,
    findings,
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


def test_reasons():
    assert gap_reason([0, 3, 2, 9], np.arange(4) == 1) == "within one standard error"
    assert gap_reason([0, 3, 2, 9], np.arange(4) == 3) == "the largest gap"
    assert clest_reason([2, 3], [5, 1], 20, 3) == "predicted better than 19 of 20 reference sets"
    assert clest_reason([2, 3], [5, 6], 20, 1).startswith("no number of them")
    assert strength_reason(0.78, 0.05, 0.8).endswith("predicted well (strength 0.78)")
    assert "below the threshold of 0.9" in strength_reason(0.78, 0.05, 0.9)
    assert trim_reason([0.025]) == "2.5% of the cases are outlying"
    assert trim_reason([0.025, 0.0, 0.1]) == "0% to 10% of the cases are outlying"


@pytest.mark.parametrize(
    ("rule", "level", "words"),
    [
        ("agreement", 0.05, "none of the 4 reference sets has a smaller error, and if its"),
        ("agreement", 0.5, "no more than 1 of the 4 reference sets have a smaller error"),
        ("paper", 0.05, "none of the 4 reference sets has a smaller error. Of those, the one"),
    ],
)
def test_clest_describes_its_rule(rule, level, words):
    how = {"rule": rule, "level": level, **HOW}
    search = Clest(MODEL, [2, 3], n_splits=3, n_references=4, **how).fit(DATA)
    finding = describe(search)
    assert words in finding.rule
    assert "p-value" not in " ".join([finding.explanation, *finding.table.labels])
    below = finding.table.labels.index("Reference sets below")
    assert [int(row[below]) for row in finding.table.rows] == search.table_.n_below.tolist()
    assert finding.headline.startswith(f"Clest suggests {search.n_clusters_} cluster")


def test_gap_l1_describes_its_rule():
    search = GapL1(MODEL, 5, n_permutations=3, rule="largest", **HOW).fit(DATA)
    assert describe(search).suggests == {"l1_bound": search.l1_bound_}
    assert "The bound with the largest gap" in describe(search).rule
    search.set_params(rule="1se")
    assert describe(search).suggests == {"l1_bound": search.l1_bound_1se_}
    assert "within one standard error of the largest gap" in describe(search).rule


@pytest.mark.parametrize(
    ("p", "text"), [(np.nan, "–"), (0.0009, "< 0.001"), (0.001, "0.001"), (0.25, "0.250")]
)
def test_p_values_in_words(p, text):
    assert findings._p_value(p) == text


def test_trimming_says_what_it_measures():
    search = TrimCurves(MODEL, [3], [0, 0.05], **HOW).fit(DATA)
    finding = describe(search)
    assert finding.suggests == {"trim": search.suggested_trim_}
    assert "that of the outlying cases" in finding.rule
    assert finding.next_step == ""
    search.suggested_trim_ = 0.05 + 1e-12  # rounding is not more
    assert describe(search).next_step == ""
    search.suggested_trim_ = 0.06
    assert "more than the largest share" in describe(search).explanation


def test_the_grid_does_not_choose_the_number_of_clusters():
    search = GridSearch(MODEL, [2, 3], None, [0, 0.1], **HOW).fit(DATA)
    finding = describe(search)
    assert finding.suggests == {"trim": search.best_params_["trim"]}
    assert "Half-samples can choose it" in finding.explanation
    chosen = GridSearch(MODEL, [2, 3], None, [0, 0.1], choose_clusters=True, **HOW).fit(DATA)
    assert chosen.n_stable_ == chosen.best_params_["n_clusters"] == 3
    assert "was chosen by half-samples" in describe(chosen).explanation
    assert {row[1] for row in finding.table.rows} == {"–"}


def test_a_sample_is_mentioned():
    search = PredictionStrength(MODEL, [2, 3], n_splits=2, max_samples=40, **HOW).fit(DATA)
    assert "Searched on 40 of the 60 cases" in describe(search).explanation


def test_the_path_names_the_first_features():
    finding = describe(feature_path(MODEL, DATA, [1.2, 1.6]))
    assert finding.headline.startswith("The first to get weight: x")
    assert len(re.findall(r"\bx\d+", finding.headline)) == 5
    assert finding.suggests == {}
    assert finding.table.chosen == [False, False]


def test_what_cannot_be_described():
    with pytest.raises(NotFittedError):
        describe(Clest(MODEL))
    with pytest.raises(TypeError, match="must be one of Clest, GapL1, Stability"):
        describe(MODEL)
