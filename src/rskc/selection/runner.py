"""One runner for all searches: parallel work, honest progress, and resuming.

A search is a list of tasks, each with a key of whole numbers. A task draws its random numbers from
the seed of the search and its own key alone, so the result is the same for any number of jobs, in
any order, and whether it was stopped in between or not.
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

from rskc._workers import end_with
from rskc.selection.checkpoint import Memory, Result

# Tasks run in processes: a small fit spends half its time in Python, and two threads take longer
# than one (Clest on 60 x 500: 3.4 s against 2.9 s). Processes take about as many seconds as this to
# start, so a search begins without them, and a short one never needs them.
HERE = 0.5

Key = tuple[int, ...]
Work = Callable[[Key], Result]


class Runner:
    """Runs tasks, those that a checkpoint does not hold yet.

    Parameters
    ----------
    store : Memory
        Where finished tasks are kept.
    n_jobs : int or None
        How many tasks run at a time, as joblib counts.
    progress : bool or callable
        True: a bar on a terminal, and nothing elsewhere. A callable gets the number of finished
        tasks and the number of all.
    """

    def __init__(self, store: Memory, n_jobs: int | None, progress: Any):
        self.seed = int(store.identity["random_state"])
        self._store, self._finished = store, store.results()
        self._n_jobs, self._progress, self._here = n_jobs, progress, HERE

    def run(self, name: str, work: Work, keys: Sequence[Key]) -> list[Result]:
        """Run ``work`` on each of the keys, and return the results in their order."""
        names = [f"{name} {' '.join(map(str, key))}" for key in keys]
        todo = [i for i, task in enumerate(names) if task not in self._finished]
        with self._showing(name, len(keys), len(keys) - len(todo)) as advance, _quietly():
            for i, result in self._results(work, [(i, keys[i]) for i in todo]):
                self._finished[names[i]] = result
                self._store.add(names[i], result)
                advance()
        return [self._finished[task] for task in names]

    def _results(self, work: Work, tasks: list[tuple[int, Key]]) -> Iterator[tuple[int, Result]]:
        """Yield results as they come, with the number of their task."""
        here = self._here if effective_n_jobs(self._n_jobs) > 1 else np.inf
        start = time.monotonic()
        while tasks and time.monotonic() - start < here:
            yield _numbered(work, *tasks.pop(0))
        self._here -= time.monotonic() - start
        if tasks:
            how = {"initializer": end_with, "initargs": (os.getpid(),)}
            parallel = Parallel(self._n_jobs, return_as="generator_unordered", **how)
            yield from parallel(delayed(_numbered)(work, *task) for task in tasks)

    @contextmanager
    def _showing(self, name: str, total: int, done: int) -> Iterator[Callable[[], None]]:
        if callable(self._progress):
            yield _counter(self._progress, total, done)
            return
        hidden = not (self._progress and sys.stderr.isatty())
        # Half a second's work needs no bar.
        with tqdm(
            desc=name, total=total, initial=done, disable=hidden, delay=0.5, dynamic_ncols=True
        ) as bar:
            yield bar.update


def rng_of(seed: int, *key: int) -> np.random.Generator:
    """Return the random numbers of a task."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def seed_of(seed: int, *key: int) -> int:
    """Return a seed for the estimator of a task."""
    return int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1)[0])


def _counter(report: Callable[[int, int], object], total: int, done: int) -> Callable[[], None]:
    def advance() -> None:
        nonlocal done
        done += 1
        report(done, total)

    report(done, total)
    return advance


def _numbered(work: Work, i: int, key: Key) -> tuple[int, Result]:
    """Run one task, and say which it was."""
    if threading.current_thread() is not threading.main_thread():
        return i, work(key)  # a thread: the filters are those of the runner, and shared
    with _quietly():
        return i, work(key)


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep back warnings about parts of the data and random data; those of the refit are shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
