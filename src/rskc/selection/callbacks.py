"""Progress for the callbacks of scikit-learn 1.9 and later, by its public protocol (internal).

A search is a task of unknown length; its stages are subtasks, and the fits of a stage are theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

try:
    from sklearn.callback import CallbackSupportMixin as WithCallbacks
    from sklearn.callback import with_callbacks
except ImportError:  # an earlier scikit-learn, which knows no callbacks
    WithCallbacks, with_callbacks = object, None

__all__ = ["Announcer", "WithCallbacks", "tearing_down"]

Method = TypeVar("Method", bound=Callable[..., Any])


def tearing_down(method: Method) -> Method:
    """Let callbacks be torn down when a method has ended, by an error too."""
    return method if with_callbacks is None else with_callbacks(method)


class Announcer:
    """Announce the stages of a search, and each fit that is finished, to its callbacks."""

    def __init__(self, search: Any, X: Any):
        self._search, self._X = search, X
        self._root: Any = None
        self._stage: Any = None
        if hasattr(search, "set_callbacks"):
            self._root = search._init_callback_context(max_subtasks=None)
            self._root.call_on_fit_task_begin(estimator=search, X=X)

    def begin(self, name: str, n: int) -> None:
        """Announce a stage of n fits; the one before is over."""
        self.end_stage()
        if self._root is not None:
            self._stage = self._root.subcontext(task_name=name, max_subtasks=n)
            self._stage.call_on_fit_task_begin(estimator=self._search)

    def finished(self, n: int) -> None:
        """Announce that n fits are finished."""
        for _ in range(n if self._stage is not None else 0):
            fit = self._stage.subcontext(task_name="fit")
            fit.call_on_fit_task_begin(estimator=self._search)
            fit.call_on_fit_task_end(estimator=self._search)

    def end_stage(self) -> None:
        """Announce that a stage is over, if there was one."""
        if self._stage is not None:
            self._stage.call_on_fit_task_end(estimator=self._search)
            self._stage = None

    def end(self) -> None:
        """Announce that the search is over."""
        self.end_stage()
        if self._root is not None:
            self._root.call_on_fit_task_end(estimator=self._search, X=self._X)
