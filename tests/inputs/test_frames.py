"""Data frames of pandas and polars, in and out."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from rskc import RobustSparseKMeans
from rskc.datasets import make_figure1
from rskc.exceptions import FitWarning
from skips import Optional

pl = Optional("polars")
X = make_figure1(n_samples=90, n_features=5, random_state=0).data
NAMES = ["length", "width", "weight", "age", "größe"]
FRAMES = {
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
}
KINDS = {"pandas": pd, "polars": pl}
RESULTS = ("labels_", "feature_weights_", "cluster_centers_", "trimmed_", "outliers_")


@pytest.fixture(params=FRAMES)
def library(request):
    return request.param


@pytest.fixture
def frame(library):
    return FRAMES[library](X)


@pytest.fixture
def model():
    return make_model()


def make_model():
    return RobustSparseKMeans(3, n_init=4, random_state=0)


def assert_same_fit(one, other):
    for name in RESULTS:
        assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_a_frame_is_its_numbers_and_its_names(frame, model):
    model.fit(frame)
    assert_array_equal(model.feature_names_in_, NAMES)
    assert_array_equal(model.predict(frame), model.labels_)
    assert_same_fit(model, make_model().fit(X))


@pytest.mark.parametrize("method", ["predict", "transform", "score", "score_samples", "is_outlier"])
def test_other_columns_are_refused(frame, model, method):
    method = getattr(model.fit(frame), method)
    with pytest.raises(ValueError, match="same order"):
        method(frame[NAMES[::-1]])
    with pytest.raises(ValueError, match="now missing:\n- age"):
        method(frame[NAMES[:3]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        method(X)


def test_integer_columns_are_numbers_and_boolean_ones_standardized(library, model):
    flags = X[:, 3] > 0
    numbers = np.column_stack([np.round(10 * X[:, :3]), flags, X[:, 4]])
    columns = {name: numbers[:, j] for j, name in enumerate(NAMES)}
    columns["length"] = columns["length"].astype(np.int8)
    columns["width"] = columns["width"].astype(np.int64)
    columns["age"] = columns["age"].astype(bool)
    mixed = KINDS[library].DataFrame(columns)
    with pytest.warns(FitWarning, match="3 columns of numbers vary far more than a category"):
        model.fit(mixed)
    assert_array_equal(model.feature_names_in_, NAMES)
    assert_array_equal(model.predict(mixed), model.labels_)
    numbers[:, 3] /= flags.std()
    expected = make_model().fit(numbers)
    assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_allclose(model.feature_weights_, expected.feature_weights_, atol=1e-9)


def test_float32_frames_stay_float32(model):
    """Those of pandas: scikit-learn itself makes float64 of polars frames."""
    single = pd.DataFrame(X.astype(np.float32))
    assert model.fit(single).cluster_centers_.dtype == np.float32


def test_the_index_of_a_pandas_frame_does_not_matter(model):
    index = np.random.default_rng(0).permutation(len(X))
    frame = pd.DataFrame(X, columns=NAMES, index=index)
    model.set_output(transform="pandas").fit(frame)
    assert_same_fit(model, make_model().fit(X))
    assert_array_equal(model.transform(frame).index, index)


@pytest.mark.parametrize("output", KINDS)
def test_set_output_wins_over_the_input(frame, model, output):
    kind = KINDS[output].DataFrame
    distances = model.set_output(transform=output).fit_transform(frame)
    assert isinstance(distances, kind)
    assert list(distances.columns) == [f"robustsparsekmeans{k}" for k in range(3)]
    plain = model.set_output(transform="default").transform(frame)
    assert_array_equal(distances.to_numpy(), plain)
