"""Medians of columns."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rskc.inputs.spreads import column_medians


@pytest.mark.parametrize("share", [0, 0.3])
def test_medians_are_those_of_numpy_and_of_copies(share):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(41, 6))
    X[rng.random(X.shape) < share] = np.nan
    assert_array_equal(column_medians(X), np.nanmedian(X, axis=0))
    masses = rng.integers(1, 5, 41)
    copies = column_medians(X.repeat(masses, axis=0))
    assert_allclose(column_medians(X, masses.astype(float)), copies)
