"""What a search says of itself: what it found, by which rule, and what follows."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

from rskc import RobustSparseKMeans
from rskc.selection import Clest, GridSearch
from rskc.selection.findings import describe
from search_kinds import HOW, MODEL, corners, fitted


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
