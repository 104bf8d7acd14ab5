"""RobustSparseKMeans among scikit-learn's tools."""

from threading import Event, Thread

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import ThreadpoolController

from rskc import RobustSparseKMeans
from rskc.datasets import make_figure1

DATA = make_figure1(n_samples=90, n_features=20, random_state=0)
X = DATA.data
FITTED = ("labels_", "cluster_centers_", "feature_weights_", "trimmed_", "outliers_", "objective_")


def make_model(**changes):
    return RobustSparseKMeans(3, **{"n_init": 4, "random_state": 0, "l1_bound": 1.6} | changes)


def assert_same_fit(one, other):
    for name in FITTED:
        assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@parametrize_with_checks(
    [
        RobustSparseKMeans(n_clusters=2, n_init=2),
        RobustSparseKMeans(n_clusters=2, n_init=2, trim=0, l1_bound=None),
        RobustSparseKMeans(n_clusters=2, n_init=2, n_features=1),
    ]
)
@pytest.mark.filterwarnings("ignore::rskc.exceptions.SmallClusterWarning")
def test_estimator_checks(estimator, check):
    if check.func.__name__.startswith("check_sample_weight_equivalence_on_"):
        # As of scikit-learn's KMeans. The law itself is tested in test_sample_weight.py.
        pytest.xfail("15 shuffled cases of noise, of which other starts make other clusters")
    check(estimator)


def test_grid_search_maximizes_the_score():
    grid = GridSearchCV(make_model(), {"n_clusters": [1, 3], "trim": [0.1]}, cv=3)
    grid.fit(X[np.random.default_rng(0).permutation(len(X))])
    assert grid.best_params_["n_clusters"] == 3
    assert (grid.cv_results_["mean_test_score"] < 0).all()
    assert grid.score(X) == grid.best_estimator_.score(X)


def test_select_from_model_needs_no_getter():
    plain = SelectFromModel(make_model()).fit(X)
    weights = plain.estimator_.feature_weights_
    assert_array_equal(plain.get_support(), weights >= weights.mean())
    selector = SelectFromModel(make_model(), threshold=1e-9).fit(X)
    assert_array_equal(selector.get_support(), selector.estimator_.get_support())
    assert not hasattr(make_model(), "feature_importances_")


def test_a_generator_is_a_seed():
    fits = [make_model(random_state=np.random.default_rng(5)).fit(X) for _ in range(2)]
    assert_array_equal(fits[0].labels_, fits[1].labels_)
    assert_array_equal(fits[0].cluster_centers_, fits[1].cluster_centers_)
    generator = np.random.default_rng(5)
    make_model(random_state=generator).fit(X)
    assert generator.random() != np.random.default_rng(5).random()  # it went on


def test_fits_in_threads_are_the_fits_one_by_one():
    X = make_figure1(n_samples=900, n_features=50, random_state=1).data
    alone = [make_model(random_state=seed).fit(X) for seed in range(8)]
    jobs = (joblib.delayed(make_model(random_state=seed).fit)(X) for seed in range(8))
    for one, other in zip(joblib.Parallel(4, prefer="threads")(jobs), alone, strict=True):
        assert_same_fit(one, other)


@pytest.fixture
def blas_threads():
    """A function that says how many threads BLAS uses, which are 2 now."""
    pools = ThreadpoolController().select(user_api="blas")
    before = max((pool["num_threads"] for pool in pools.info()), default=1)
    set_blas_threads(pools, 2)
    yield lambda: {pool["num_threads"] for pool in pools.info()}
    set_blas_threads(pools, before)


def set_blas_threads(pools, number):
    """From a thread that ends: what a living one has set, no other one can change."""
    thread = Thread(target=pools.limit, kwargs={"limits": number})
    thread.start()
    thread.join()


def test_fits_that_overlap_leave_the_blas_threads_as_they_were(blas_threads):
    """The first begins first and ends first: what the second found is not what it must leave."""
    first_began, second_began, first_ended = Event(), Event(), Event()

    def fit(before, began, wait_for, ended):
        def init(X, K, random_state):
            began.set()
            assert wait_for.wait(10)
            return X[:K]

        assert before is None or before.wait(10)
        make_model(init=init, n_init=1).fit(X)
        ended.set()

    jobs = [(None, first_began, second_began, first_ended)]
    jobs += [(first_began, second_began, first_ended, Event())]
    joblib.Parallel(2, prefer="threads")(joblib.delayed(fit)(*job) for job in jobs)
    assert blas_threads() <= {2}
