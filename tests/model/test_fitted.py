"""The fitted state: its table of attributes, copies with other cases, and what predicts."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rskc import RobustSparseKMeans
from rskc.datasets import make_figure1
from rskc.model.fitted import ATTRIBUTES, predictor_of, with_cases

X = make_figure1(n_samples=90, n_features=6, random_state=0).data


@pytest.fixture(scope="module")
def model():
    return RobustSparseKMeans(3, trim=0.1, random_state=0).fit(X)


def test_the_table_describes_what_a_fit_leaves(model):
    lengths = {"n": 90, "K": 3, "p": 6, "q": 6, "i": model.n_iter_}
    for name, attribute in ATTRIBUTES.items():
        if attribute.optional and not hasattr(model, name):
            continue
        value = getattr(model, name)
        if attribute.axes:
            assert value.shape == tuple(lengths[axis] for axis in attribute.axes), name
            types = attribute.types.replace("csr", "b1").split()
            assert value.dtype in [np.dtype(each) for each in types], name
        elif value is not None:
            assert type(value).__name__ == attribute.types, name
    fitted = set(vars(model)) - set(model.get_params())
    assert fitted <= set(ATTRIBUTES)


def test_a_model_without_cases_is_small_and_predicts(model):
    small = with_cases(model)
    assert not hasattr(small, "labels_")
    assert len(pickle.dumps(small)) < len(pickle.dumps(model))
    assert_array_equal(small.predict(X), model.labels_)
    assert hasattr(model, "labels_")


def test_a_model_takes_other_cases(model):
    first = np.arange(20)
    part = with_cases(model, labels_=model.labels_[first], n_trim_=2, case_names_in_=first)
    assert_array_equal(part.labels_, model.labels_[:20])
    assert (part.n_trim_, model.n_trim_) == (2, 9)
    assert not hasattr(model, "case_names_in_")


def test_what_predicts_can_be_sent(model):
    predictor = pickle.loads(pickle.dumps(predictor_of(model)))
    assert_array_equal(predictor.labels(X), model.predict(X))
    assert_array_equal(predictor.transform(X), model.transform(X))
    assert_array_equal(-predictor.scores(X), model.score_samples(X))
    assert_array_equal(predictor.outliers(X), model.outliers_)
    limits = model.outlier_threshold_, model.unweighted_outlier_threshold_
    assert predictor.thresholds == limits
    with pytest.raises(AttributeError):
        predictor.thresholds = limits
