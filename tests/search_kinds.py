"""One small search of each kind, for the tests of what holds for all of them."""

import contextlib
import sqlite3
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from pandas.testing import assert_frame_equal
from sklearn.base import clone

from rskc import RobustSparseKMeans
from rskc.selection import Clest, GapL1, GridSearch, Stability

HOW = {"progress": False, "random_state": 0, "n_jobs": 1}
MODEL = RobustSparseKMeans(3, trim=0.05, l1_bound=2, n_init=3)
SEARCHES = {
    "Clest": Clest(MODEL, (2, 3), n_splits=3, n_references=3, rule="paper", **HOW),
    "GapL1": GapL1(MODEL, 4, n_permutations=3, **HOW),
    "GridSearch": GridSearch(MODEL, (2, 3), (1.5, 2), (0, 0.1), **HOW),
    "Stability": Stability(MODEL, (2, 3, 4), n_splits=2, n_references=3, **HOW),
}
each_search = pytest.mark.parametrize("name", SEARCHES)


def search_of(name, **params):
    return clone(SEARCHES[name]).set_params(**params)


def corners(K=3, n=60, p=8, far=8.0, seed=0):
    """Clusters of unit noise, each out along an axis of its own."""
    noise = np.random.default_rng(seed).standard_normal((n, p))
    return far * np.eye(K, p)[np.arange(n) % K] + noise


@cache
def fitted(name):
    """The search that was fitted to ``corners()``."""
    return search_of(name).fit(corners())


def results_of(search):
    """All that a search has found."""
    results = {k: v for k, v in vars(search).items() if k.endswith("_") and not k.startswith("_")}
    model = results.pop("best_estimator_")
    if "changes_" in results:
        results["changes_"] = [str(change) for change in results["changes_"]]
    return {**results, "labels": model.labels_, "weights": model.feature_weights_}


def assert_same(one, other, without=frozenset()):
    """Two searches have found the same, but for some attributes."""
    ours, theirs = results_of(one), results_of(other)
    assert ours.keys() - without == theirs.keys() - without
    for name in ours.keys() - without:
        if name == "table_":
            assert_frame_equal(ours[name], theirs[name], check_exact=True)
        else:
            assert_array_equal(ours[name], theirs[name], err_msg=name)


def assert_one_sentence(error):
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert len(message) < 400


# ---- Searches that are stopped


class Stop(Exception):
    """Ends a search from its progress."""


class Calls(list):
    """A progress that remembers."""

    def __call__(self, done, total):
        self.append((done, total))


def stop_at(number):
    def report(done, total):
        if done == number:
            raise Stop

    return report


def stopped(name, path, number, X=None, **params):
    """Run a search until a number of tasks are in its checkpoint."""
    search = search_of(name, checkpoint=path, progress=stop_at(number), **params)
    with pytest.raises(Stop):
        search.fit(corners() if X is None else X)


def count_results(path):
    """How many results another process finds in a checkpoint."""
    with contextlib.closing(sqlite3.connect(path, timeout=10)) as connection:
        try:
            return connection.execute("select count(*) from results").fetchone()[0]
        except sqlite3.OperationalError:  # no table yet
            return 0


def assert_sound(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
