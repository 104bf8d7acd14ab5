"""One runner for all searches: parallel work, honest progress, and resuming.

A search is a list of tasks, each with a key of whole numbers. A task draws its random numbers from
the seed of the search and its own key alone, so the result is the same for any number of jobs, in
any order, and whether it was stopped in between or not.

Its progress is shown by a bar on a terminal or a callable.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from tqdm import tqdm

from rskc.engines.memory import one_blas_thread
from rskc.selection.checkpoint import Checkpoint, Result
from rskc.utils.worker import deaf_to_interrupts, end_with

# Tasks run in processes: a small fit spends half its time in Python, and two threads take longer
# than one (Clest on 60 x 500: 3.4 s against 2.9 s). Processes take about this number of seconds to
# start, so a search begins without them, and a short one never needs them. In a table with more
# cells than the second number, the first task alone may take longer.
SERIAL_SECONDS, MAX_SERIAL_CELLS = 0.5, 2**20

Key = tuple[int, ...]
Work = Callable[[Key], Result]


class Runner:
    """Runs the tasks that a checkpoint does not have yet, and shows the progress.

    Parameters
    ----------
    store : Checkpoint
        Where finished tasks are kept, if anywhere.
    n_jobs : int or None
        How many tasks run in parallel, as in joblib.
    progress : bool or callable
        True: a bar on a terminal, and nothing elsewhere. A callable gets the number of finished
        tasks and the number of all.
    n_cells : int
        How many cells the table has that each task reads.
    """

    def __init__(self, store: Checkpoint, n_jobs: int | None, progress: Any, n_cells: int = 0):
        self.seed = int(store.identity["seed"])
        self._store, self._finished = store, store.results()
        self._n_jobs, self._report = n_jobs, progress
        self._serial_seconds = SERIAL_SECONDS if n_cells <= MAX_SERIAL_CELLS else 0.0
        self.later = 0  # tasks of another part of the search, for the progress
        self._done = self._total = 0
        hidden = progress is not True or sys.stderr is None or not sys.stderr.isatty()
        # Searches of less than half a second need no bar.
        self._bar = tqdm(total=0, disable=hidden, delay=0.5, dynamic_ncols=True)

    def run(self, name: str, work: Work, keys: Sequence[Key], more: int = 0) -> list[Result]:
        """Run ``work`` on each of the keys, and return the results in their order.

        At most ``more`` tasks follow later; the progress counts them too.
        """
        names = [f"{name} {' '.join(map(str, key))}" for key in keys]
        todo = [i for i, task in enumerate(names) if task not in self._finished]
        # The total never falls.
        self._total = max(self._total, self._done + len(keys) + more + self.later)
        self._bar.total = self._total
        self._bar.set_description(name, refresh=False)
        self._advance(len(keys) - len(todo))
        for i, result in self._results(work, [(i, keys[i]) for i in todo]):
            self._finished[names[i]] = result
            self._store.add(names[i], result)
            self._advance(1)
        return [self._finished[task] for task in names]

    def close(self) -> None:
        """Close the bar."""
        self._bar.close()

    def _advance(self, n: int) -> None:
        """Show that n more tasks are finished."""
        self._done += n
        self._bar.update(n)
        if callable(self._report):
            self._report(self._done, self._total)

    def _results(self, work: Work, tasks: list[tuple[int, Key]]) -> Iterator[tuple[int, Result]]:
        """Yield results as they come, with the number of their task."""
        seconds = self._serial_seconds if effective_n_jobs(self._n_jobs) > 1 else np.inf
        start = time.monotonic()
        while tasks and time.monotonic() - start < seconds:
            yield _numbered(work, *tasks.pop(0))
        self._serial_seconds -= time.monotonic() - start
        if not tasks:
            return
        options = {"initializer": end_with, "initargs": (os.getpid(),)}
        parallel = Parallel(self._n_jobs, return_as="generator_unordered", **options)
        with deaf_to_interrupts():  # where the workers start, which inherit it
            results = parallel(delayed(_numbered)(work, *task) for task in tasks)
        try:
            for result in results:  # noqa: UP028 (yield from would close it first)
                yield result
        finally:  # if nobody wants more, joblib need not warn that tasks were canceled
            with _quiet_in_main_thread():
                results.close()


def rng_of(seed: int, *key: int) -> np.random.Generator:
    """Return the random numbers of a task."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def seed_of(seed: int, *key: int) -> int:
    """Return a seed for the estimator of a task."""
    return int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1)[0])


def _numbered(work: Work, i: int, key: Key) -> tuple[int, Result]:
    """Run one task, and return its number too.

    Warnings about parts of the data and about random data are not shown; those of the refit are.
    BLAS has one thread, as in a worker, so that its sums are rounded in the same way in this
    process: the clock decides where a task runs.
    """
    with _quiet_in_main_thread(), one_blas_thread:
        return i, work(key)


@contextmanager
def _quiet_in_main_thread() -> Iterator[None]:
    """Keep warnings back, but not in threads, where filters are shared.

    Of two threads that leave in another order than they came, the last one would restore what the
    first had set. The fits of rskc itself are quiet in any case.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
