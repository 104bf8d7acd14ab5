"""What a search says of itself: what it found, by which rule, and what follows."""

from copy import copy

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

from rskc import RobustSparseKMeans
from rskc.selection import Clest, GridSearch, findings
from rskc.selection.findings import describe
from search_kinds import HOW, MODEL, corners, fitted


def test_clest_says_why():
    search = copy(fitted("Clest"))
    search.table_ = search.table_.assign(n_below=[2, 1], chosen=[False, True])
    assert describe(search).reason == "predicted better than 2 of 3 reference sets"
    search.n_clusters_, search.table_ = 1, search.table_.assign(chosen=False)
    assert describe(search).reason == "no number of clusters is predicted well enough"
    assert describe(search).curve.chosen is None


@pytest.mark.parametrize(
    ("rule", "level", "words"),
    [
        ("agreement", 0.05, "if none of the 3 reference sets has a smaller error and its"),
        ("agreement", 0.5, "if no more than 1 of the 3 reference sets have a smaller error"),
        ("paper", 0.05, "if none of the 3 reference sets has a smaller error. Of those that"),
        ("paper", 0, "if less than 0% of the reference sets have a smaller error"),
    ],
)
def test_clest_describes_its_rule(rule, level, words):
    search = copy(fitted("Clest")).set_params(rule=rule, level=level)
    finding = describe(search)
    assert words in finding.rule
    assert "p-value" not in " ".join([finding.explanation, *finding.table["labels"]])
    below = finding.table["labels"].index("Reference sets below")
    assert [int(row[below]) for row in finding.table["rows"]] == search.table_.n_below.tolist()
    assert finding.headline == f"Clest suggests {search.n_clusters_} clusters."


def test_gap_l1_describes_its_rule():
    search = copy(fitted("GapL1")).set_params(rule="largest")
    search.table_ = search.table_.assign(chosen=search.table_.l1_bound == search.l1_bound_)
    assert describe(search).suggests == {"l1_bound": search.l1_bound_}
    assert describe(search).reason == "the largest gap"
    assert "The bound with the largest gap is chosen" in describe(search).rule
    search.set_params(rule="1se")
    assert describe(search).suggests == {"l1_bound": search.l1_bound_1se_}
    assert "within one standard error of the largest gap" in describe(search).rule


@pytest.mark.parametrize(
    ("p", "text"), [(np.nan, "–"), (0.0009, "< 0.001"), (0.001, "= 0.001"), (0.25, "= 0.250")]
)
def test_p_values_in_words(p, text):
    assert findings.p_value(p) == text


def test_the_grid_does_not_choose_the_number_of_clusters():
    search = GridSearch(MODEL, [2, 3], None, [0, 0.1], **HOW).fit(corners())
    finding = describe(search)
    assert finding.suggests == {"trim": search.best_params_["trim"]}
    assert "Half-samples can choose the number" in finding.explanation
    assert {row[1] for row in finding.table["rows"]} == {"2"}


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


def test_what_cannot_be_described():
    with pytest.raises(NotFittedError):
        describe(Clest(MODEL))
    with pytest.raises(TypeError, match="must be one of Clest, GapL1, Stability"):
        describe(RobustSparseKMeans())
