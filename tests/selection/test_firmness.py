"""What a stability search knows of a model: of which clusters, and of which cases."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
from numpy.testing import assert_array_equal

from rskc import RobustSparseKMeans
from rskc.selection import Clest, Stability
from rskc.selection.firmness import is_about, stability_among, stability_for, stability_of_cases

SOME = SimpleNamespace(
    samples_used_=np.array([1, 4, 5, 9]), case_stability_=np.array([0.1, 0.4, 0.5, 0.9])
)


def test_stability_of_cases_by_hand():
    nan = np.nan
    assert_array_equal(stability_of_cases(SOME, 0, 4), [nan, 0.1, nan, nan])
    assert_array_equal(stability_of_cases(SOME, 4, 6), [0.4, 0.5])
    assert_array_equal(stability_of_cases(SOME, 6, 9), [nan] * 3)
    assert_array_equal(stability_of_cases(SOME, 6, 6), [])


def test_blocks_put_together_are_the_whole():
    ends = [0, 3, 3, 5, 11]
    parts = [stability_of_cases(SOME, a, b) for a, b in pairwise(ends)]
    assert_array_equal(np.concatenate(parts), stability_of_cases(SOME, 0, 11))


def test_the_search_is_found_among_others():
    model = RobustSparseKMeans()
    search = Stability(model)
    assert stability_among([Clest(model), search]) is search
    assert stability_among(search) is search
    assert stability_among([Clest(model)]) is None
    assert stability_among(()) is None


def test_a_search_is_about_models_with_its_centers():
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[:20] += 5
    two, three = (RobustSparseKMeans(K, random_state=0).fit(X) for K in (2, 3))
    search = Stability(RobustSparseKMeans())
    search.best_estimator_ = two
    assert is_about(search, RobustSparseKMeans(2, random_state=0).fit(X))
    assert not is_about(search, RobustSparseKMeans(2, random_state=0).fit(X + 1))
    assert stability_for([search], two) is search
    assert stability_for([search], three) is None
