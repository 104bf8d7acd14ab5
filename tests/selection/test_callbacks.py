"""Callbacks of scikit-learn 1.9: a search tells them of its stages and fits."""

import pytest

from rskc.selection import Stability
from search_kinds import (
    Calls,
    Stop,
    assert_same,
    corners,
    each_search,
    fitted,
    search_of,
    stop_at,
)

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


def test_stages_and_fits_are_told_in_order():
    recorder, calls = Recorder(), Calls()
    search_of("Stability", progress=calls).set_callbacks(recorder).fit(corners())
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
    assert sum(event == ("end", "fit") for event in told) - 1 == calls[-1][0]


@each_search
def test_the_result_is_the_same(name):
    assert_same(search_of(name).set_callbacks(Recorder()).fit(corners()), fitted(name))


def test_callbacks_are_torn_down_after_an_error():
    recorder = Recorder()
    with pytest.raises(Stop):
        search_of("Stability", progress=stop_at(1)).set_callbacks(recorder).fit(corners())
    assert recorder.told[-1] == ("teardown",)
