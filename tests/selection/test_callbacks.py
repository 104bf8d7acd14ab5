"""Callbacks of scikit-learn 1.9: a search tells them of its stages and fits."""

import numpy as np
import pytest
from sklearn.base import clone

from rskc import RobustSparseKMeans
from rskc.selection import Stability

pytestmark = pytest.mark.skipif(
    not hasattr(Stability, "set_callbacks"), reason="needs scikit-learn 1.9, which is not installed"
)


class Recorder:
    """Follows the protocol of scikit-learn, and writes down what it is told."""

    def __init__(self):
        self.told = []

    def setup(self, estimator, context):
        self.told.append(("setup",))

    def on_fit_task_begin(self, estimator, context, **_):
        self.told.append(("begin", context.task_name, context.max_subtasks))

    def on_fit_task_end(self, estimator, context, **_):
        self.told.append(("end", context.task_name))

    def teardown(self, estimator, context):
        self.told.append(("teardown",))


def search(**how):
    how = {"n_splits": 2, "n_references": 2, "n_jobs": 1, "progress": False} | how
    return Stability(RobustSparseKMeans(2, random_state=0), [2, 3], random_state=0, **how)


@pytest.fixture(scope="module")
def X():
    X = np.random.default_rng(0).normal(size=(40, 4))
    X[:20] += 5
    return X


def test_stages_and_fits_are_told_in_order(X):
    recorder, counts = Recorder(), []
    model = search(progress=lambda done, total: counts.append(done)).set_callbacks(recorder)
    model.fit(X)
    told = recorder.told
    assert told[:2] == [("setup",), ("begin", "fit", None)]
    assert told[-2:] == [("end", "fit"), ("teardown",)]
    fits = stages = 0
    for event in told[2:-2]:
        if event[0] == "begin" and event[2]:
            stages += 1
            expected, fits = event[2], 0
        elif event == ("end", "fit"):
            fits += 1
        elif event[0] == "end":
            assert fits == expected
    assert stages >= 2
    assert sum(event == ("end", "fit") for event in told) - 1 == counts[-1]


def test_the_answer_is_the_same(X):
    alone = search().fit(X)
    told = clone(search()).set_callbacks(Recorder()).fit(X)
    assert alone.table_.equals(told.table_)


def test_callbacks_are_torn_down_after_an_error(X):
    recorder = Recorder()

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(progress=stop).set_callbacks(recorder).fit(X)
    assert recorder.told[-1] == ("teardown",)


def test_the_bar_of_scikit_learn_takes_them(X, capsys):
    from sklearn.callback import ProgressBar

    search().set_callbacks(ProgressBar()).fit(X)
    assert "Stability" in capsys.readouterr().out
