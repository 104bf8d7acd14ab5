"""What holds for all searches: with any jobs, when stopped, by weight, on tables of any kind."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from rskc import selection
from rskc.inputs.labels import adjusted_rand_index
from rskc.selection import runner
from rskc.selection.findings import describe
from rskc.selection.subsample import draw_cases
from search_kinds import (
    SEARCHES,
    Calls,
    assert_same,
    assert_sound,
    corners,
    count_results,
    each_search,
    fitted,
    search_of,
    stopped,
)
from table_kinds import TABLES, each_table

pytestmark = pytest.mark.filterwarnings("ignore::rskc.exceptions.FitWarning")


# ---- As estimators


def test_the_public_searches_are_these():
    assert sorted(SEARCHES) == selection.__all__


@each_search
def test_a_search_is_an_estimator(name):
    search = SEARCHES[name]
    assert search.get_params()["estimator__n_init"] == 3
    copy = clone(search)
    assert copy is not search
    assert copy.get_params()["random_state"] == 0
    assert copy.set_params(estimator__n_init=2, n_jobs=None).estimator.n_init == 2
    assert search.estimator.n_init == 3
    assert name in repr(search)
    with pytest.raises(ValueError, match="Invalid parameter"):
        copy.set_params(color="blue")
    with pytest.raises(NotFittedError):
        clone(search).predict(corners())


@each_search
def test_a_fitted_search_predicts_is_pickled_and_repeats_its_refit(name):
    search = search_of(name)
    labels = search.fit_predict(corners())
    assert_array_equal(search.predict(corners()), labels)
    assert_array_equal(search.best_estimator_.labels_, labels)
    assert not hasattr(search.estimator, "labels_")
    assert search.table_.chosen.sum() == 1
    again = pickle.loads(pickle.dumps(search))
    assert_same(again, search)
    assert_array_equal(again.predict(corners()), labels)
    assert search.best_estimator_.random_state is not None
    refit = clone(search.best_estimator_).fit(corners())
    assert_array_equal(refit.feature_weights_, search.best_estimator_.feature_weights_)
    seeded = search_of(name, estimator__random_state=5).fit(corners())
    assert seeded.best_estimator_.random_state == 5


@each_search
def test_names_of_a_data_frame_are_kept(name):
    names = [f"gene{j}" for j in range(8)]
    frame = pd.DataFrame(corners(), columns=names, index=[f"s{i}" for i in range(60)])
    search = search_of(name).fit(frame)
    assert search.feature_names_in_.tolist() == names
    assert search.best_estimator_.feature_names_in_.tolist() == names
    assert search.best_estimator_.case_names_in_[3] == "s3"
    assert_same(search, fitted(name), {"feature_names_in_", "changes_"})


@each_search
@pytest.mark.parametrize("X", [[[1.0, np.inf], [0, 1], [2, 3]], [1, 2, 3], np.empty((0, 3))])
def test_data_that_are_no_table_of_numbers_are_refused(name, X):
    with pytest.raises(ValueError):
        search_of(name).fit(X)


# ---- Jobs and seeds


@each_search
def test_any_number_of_jobs_gives_the_same(name, in_processes):
    assert_same(search_of(name, n_jobs=2).fit(corners()), fitted(name))


@pytest.mark.slow
def test_tasks_that_begin_here_and_end_in_processes_give_the_same(in_processes, monkeypatch):
    monkeypatch.setattr(runner, "SERIAL_SECONDS", 0.05)
    assert_same(search_of("Clest", n_jobs=2).fit(corners()), fitted("Clest"))


def test_other_seeds_give_other_splits():
    noise = np.random.default_rng(3).standard_normal((30, 3))
    one, other = (search_of("Clest", random_state=seed).fit(noise) for seed in (0, 1))
    assert (one.observed_cers_ != other.observed_cers_).any()


@pytest.mark.parametrize("kind", [int, np.random.RandomState, np.random.default_rng])
def test_any_seed_decides(kind):
    one, other = (search_of("Clest", random_state=kind(7)).fit(corners()) for _ in range(2))
    assert_same(one, other)
    if kind is np.random.RandomState:
        assert_same(one, search_of("Clest", random_state=7).fit(corners()))


# ---- Stopped, and gone on with


@each_search
def test_a_search_that_was_stopped_goes_on_to_the_same_result(name, tmp_path):
    path, calls = tmp_path / "checkpoint", Calls()
    for number in (1, 2):
        stopped(name, path, number)
        assert count_results(path) == number
    assert_sound(path)
    search = search_of(name, checkpoint=path, progress=calls).fit(corners())
    assert calls[0][0] == 2
    assert_same(search, fitted(name))


@each_search
def test_a_finished_search_is_read_and_not_run(name, tmp_path, monkeypatch):
    path = tmp_path / "checkpoint"
    search_of(name, checkpoint=path).fit(corners())

    def no_work(*args):
        raise AssertionError("a task was run")

    monkeypatch.setattr(runner, "_numbered", no_work)
    assert_same(search_of(name, checkpoint=str(path)).fit(corners()), fitted(name))
    with pytest.raises(AssertionError, match="a task was run"):
        search_of(name).fit(corners())


# ---- Case weights


def figures(search, without=()):
    return search.table_.drop(columns=list(without)).to_numpy(float)


@each_search
def test_equal_weights_change_nothing(name):
    for weights in (np.ones(60), np.full(60, 0.3)):
        search = search_of(name).fit(corners(), sample_weight=weights)
        assert_same(search, fitted(name))


@each_search
def test_scaling_all_weights_changes_nothing(name):
    weights = np.random.default_rng(1).uniform(0.2, 3, 60)
    one, other = (
        search_of(name).fit(corners(seed=1), sample_weight=scale * weights) for scale in (1, 4)
    )
    sums = ["inertia"] if name == "GridSearch" else []
    assert_array_equal(figures(one, sums), figures(other, sums))
    assert_array_equal(one.best_estimator_.labels_, other.best_estimator_.labels_)


@each_search
def test_weights_matter_and_a_case_of_weight_0_is_not_searched_on(name):
    X, weights = corners(seed=2), np.random.default_rng(2).integers(0, 4, 60).astype(float)
    there = weights > 0
    X[~there] = 1e3
    one = search_of(name).fit(X, sample_weight=weights)
    other = search_of(name).fit(X[there], sample_weight=weights[there])
    assert_array_equal(figures(one), figures(other))
    labels = one.best_estimator_.labels_[there], other.best_estimator_.labels_
    assert adjusted_rand_index(*labels) == 1
    assert (one.n_samples_, one.n_samples_used_) == (60, there.sum())
    assert "those with a weight above 0. Cases count by their weights." in describe(one).sample
    assert_array_equal(one.best_estimator_.sample_weight_, weights)
    equal = search_of(name).fit(X[there])
    assert not np.array_equal(figures(equal), figures(other), equal_nan=True)


# ---- Tables with more cases than a search works on, and of other kinds


def many():
    """Clusters of 400 cases, some of them outlying."""
    X = corners(n=400)
    X[::50] += np.random.default_rng(1).uniform(20, 40, (8, 8))
    return X


def drawn(random_state=0):
    seed = int(np.random.RandomState(random_state).randint(2**31))
    return draw_cases(400, 150, seed)


def assert_same_choice(search, other):
    pd.testing.assert_frame_equal(search.table_, other.table_)
    parameters = search.best_estimator_.get_params()
    assert parameters == other.best_estimator_.get_params()


@each_search
def test_a_search_on_a_part_is_that_on_the_drawn_cases_and_fits_all(name):
    X = many()
    part = search_of(name, max_samples=150).fit(X)
    assert (part.n_samples_used_, part.n_samples_) == (150, 400)
    whole = search_of(name).fit(X[drawn()])
    assert_same_choice(part, whole)
    alone = clone(part.best_estimator_).fit(X)
    assert_array_equal(part.best_estimator_.labels_, alone.labels_)
    assert_allclose(part.best_estimator_.objective_, alone.objective_, rtol=1e-12)
    told, untold = (describe(search).explanation for search in (part, whole))
    assert "Searched on 150 of the 400 cases, drawn at random." in told
    assert "Searched" not in untold


def test_too_small_a_part_is_refused_and_leaves_no_checkpoint(tmp_path):
    path = tmp_path / "checkpoint"
    with pytest.raises(ValueError, match="n_clusters=3 is more than 2 cases, as many as"):
        search_of("Clest", max_samples=8, checkpoint=path).fit(many())
    assert not path.exists()


@pytest.mark.parametrize("random_state", [0, None])
def test_a_checkpoint_is_of_its_part(random_state, tmp_path):
    path, calls = tmp_path / "checkpoint", Calls()
    how = {"max_samples": 150, "checkpoint": path, "random_state": random_state}
    stopped("Clest", path, 2, many(), max_samples=150, random_state=random_state)
    with pytest.raises(ValueError, match=r"made with max_samples=150 .* has max_samples=160"):
        search_of("Clest", **how | {"max_samples": 160}).fit(many())
    with pytest.raises(ValueError, match="made with other data"):
        search_of("Clest", **how).fit(many() + 1e-9)
    search = search_of("Clest", **how, progress=calls).fit(many())
    assert calls[0][0] == 2
    if random_state is not None:
        assert_same(search, search_of("Clest", max_samples=150).fit(many()))


@each_table
def test_a_checkpoint_serves_every_kind_of_table(kind, tmp_path):
    path, calls = tmp_path / "checkpoint", Calls()
    stopped("Clest", path, 4, many(), max_samples=150)
    how = {"max_samples": 150, "checkpoint": path, "progress": calls}
    search_of("Clest", **how).fit(TABLES[kind](many()))
    assert calls[0][0] == 4


@each_table
@pytest.mark.parametrize("most", [40, None])
@pytest.mark.parametrize("name", ["GapL1", "Stability"])
def test_every_kind_of_table_gives_the_same_choice(name, most, kind):
    search = search_of(name, max_samples=most).fit(TABLES[kind](corners()))
    numpy = search_of(name, max_samples=most).fit(corners())
    assert_same_choice(search, numpy)
    labels = search.best_estimator_.labels_
    assert type(labels).__module__.split(".")[0] == {"tensor": "torch"}.get(kind, "dask")
    if (name, most) != ("GapL1", None):  # there a fit in memory starts from the path's solution too
        assert_array_equal(np.asarray(labels), numpy.best_estimator_.labels_)
