"""Progress of a search: a bar on a terminal, a callable, and the callbacks of scikit-learn.

These, of version 1.9 and later, follow its public protocol. A search is a task of unknown length;
its stages are subtasks, and the fits of a stage are theirs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

from tqdm import tqdm

try:
    from sklearn.callback import CallbackSupportMixin as WithCallbacks
    from sklearn.callback import with_callbacks
except ImportError:  # an earlier scikit-learn, which knows no callbacks
    WithCallbacks, with_callbacks = object, None

__all__ = ["Progress", "WithCallbacks", "tearing_down"]

Method = TypeVar("Method", bound=Callable[..., Any])


def tearing_down(method: Method) -> Method:
    """Let callbacks be torn down when a method has ended, by an error too."""
    return method if with_callbacks is None else with_callbacks(method)


class Progress:
    """Reports the stages of a search and its finished fits.

    Parameters
    ----------
    report : bool or callable
        True: a bar on a terminal, and nothing elsewhere. A callable gets the number of finished
        fits and the number of all.
    search, X : object
        The search whose callbacks are told, and its data.
    """

    def __init__(self, report: Any, search: Any = None, X: Any = None):
        self._report, self._search, self._X = report, search, X
        self._done = self._total = 0
        self._root: Any = None
        self._stage: Any = None
        terminal = sys.stderr is not None and sys.stderr.isatty()
        hidden = not (report is True and terminal)
        # Searches of less than half a second need no bar.
        self._bar = tqdm(total=0, disable=hidden, delay=0.5, dynamic_ncols=True)
        if hasattr(search, "set_callbacks"):
            self._root = search._init_callback_context(max_subtasks=None)
            self._root.call_on_fit_task_begin(estimator=search, X=X)

    def begin(self, name: str, n: int, more: int) -> None:
        """Begin a stage of n fits, and end the one before. At most ``more`` fits will follow."""
        # The total never falls.
        self._total = self._bar.total = max(self._total, self._done + n + more)
        self._bar.set_description(name, refresh=False)
        self._end_stage()
        if self._root is not None:
            self._stage = self._root.subcontext(task_name=name, max_subtasks=n)
            self._stage.call_on_fit_task_begin(estimator=self._search)

    def advance(self, n: int) -> None:
        """Report that n fits are finished."""
        self._done += n
        self._bar.update(n)
        if callable(self._report):
            self._report(self._done, self._total)
        for _ in range(n if self._stage is not None else 0):
            fit = self._stage.subcontext(task_name="fit")
            fit.call_on_fit_task_begin(estimator=self._search)
            fit.call_on_fit_task_end(estimator=self._search)

    def close(self) -> None:
        """Close the bar."""
        self._bar.close()

    def end(self) -> None:
        """Tell the callbacks that the search is over."""
        self._end_stage()
        if self._root is not None:
            self._root.call_on_fit_task_end(estimator=self._search, X=self._X)

    def _end_stage(self) -> None:
        if self._stage is not None:
            self._stage.call_on_fit_task_end(estimator=self._search)
            self._stage = None
