"""The scheduler that the user has: threads and processes of this machine, or a cluster."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import dask
import dask.array
import dask.threaded
from dask.callbacks import Callback
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from dask.optimization import cull
from dask.system import CPU_COUNT
from dask.utils import parse_bytes, parse_timedelta

from rskc.exceptions import ClusterError
from rskc.utils.machine import free_memory

# How often, in seconds, a cluster that is at work is asked whether it still has workers.
POLL = 1.0
# What says in Dask's configuration how many bytes may be used, in memory and on devices.
MEMORY, DEVICE_MEMORY = "rskc.memory", "rskc.device-memory"


def make_task(function: Callable, *arguments: Any) -> tuple:
    """Return a task of a Dask graph; keys among its arguments stand for what they make.

    Every task is made here, and read by ``arguments_of`` alone.
    """
    return function, *arguments


def arguments_of(task: Any) -> tuple:
    """Return the arguments of a task; none of a value that stands in its place."""
    return task[1:] if isinstance(task, tuple) else ()


def scheduler_for() -> LocalScheduler | ClusterScheduler:
    """Return the scheduler that Dask would choose for an array."""
    get = dask.base.get_scheduler(cls=dask.array.Array)
    client = getattr(get, "__self__", None)
    if client is not None and hasattr(client, "gather"):
        return ClusterScheduler(client)
    if get is dask.base.named_schedulers.get("processes"):
        # It starts processes anew for each graph, a second or two, and sends them all labels;
        # threads do as well, since the passes release the interpreter lock.
        get = dask.base.named_schedulers["threads"]
    return LocalScheduler(get)


def memory_budget(available: Callable[[], int], name: str = MEMORY) -> int:
    """Return the bytes to use: as configured, else half of what is there."""
    asked = dask.config.get(name, None)
    return available() // 2 if asked is None else parse_bytes(asked)


class LocalScheduler:
    """Threads (or whatever else is configured) of this process."""

    remote = False
    most_threads = CPU_COUNT

    def __init__(self, get: Callable):
        self.get = get

    def get_blocks(self, graph: dict, keys: list[list]) -> list[Sequence]:
        """Run a graph; return the values that belong to each block.

        Threads take the blocks in their order, which Dask's do not: files are read fastest so.
        Those who watch Dask's tasks, by a progress bar for instance, get to see all of them.
        """
        if self.get is not dask.base.named_schedulers["threads"]:
            return self.get(graph, keys)
        if Callback.active:
            return self.get(graph, keys, num_workers=self.n_threads)

        def run(own: list) -> Sequence:
            return dask.get(cull(graph, own)[0], own)

        threads = _threads(self.n_threads)
        made = [threads.submit(run, own) for own in keys]
        try:
            return [future.result() for future in made]
        finally:
            for future in made:
                future.cancel()

    @property
    def n_threads(self) -> int:
        """How many blocks are in work at a time."""
        return min(dask.config.get("num_workers", None) or CPU_COUNT, self.most_threads)

    def budget(self) -> int:
        """Return the bytes that the engine may use."""
        return memory_budget(lambda: free_memory() or 2**32)

    def device_budget(self, free: Callable[[], int]) -> int:
        """Return the bytes of a device that the engine may use, of those that are free."""
        return memory_budget(free, DEVICE_MEMORY)


@lru_cache(maxsize=1)
def _threads(n: int) -> ThreadPoolExecutor:
    """Return threads that stay: memory that one has freed is used again by itself only."""
    return ThreadPoolExecutor(n, "rskc-blocks")


def _leave_threads_behind() -> None:
    """Forget pools whose threads stayed in the parent: a child would wait for them without end.

    Those of Dask too, which computes what a fit gives back.
    """
    _threads.cache_clear()
    dask.threaded.default_pool = None
    dask.threaded.pools.clear()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_leave_threads_behind)


def _memory_limits(dask_scheduler: Any) -> list[int]:
    return [worker.memory_limit for worker in dask_scheduler.workers.values()]


@contextmanager
def _naming_a_lost_cluster() -> Iterator[None]:
    """Raise an error that says that the cluster is gone."""
    from distributed import CancelledError

    try:
        yield
    except (CancelledError, OSError) as error:
        raise ClusterError(
            "The connection to the Dask cluster, or data that only it had, was lost during "
            "the fit; check the scheduler and fit again."
        ) from error


class ClusterScheduler:
    """A client of ``distributed``.

    Each block has a home: the worker that holds what was kept of it. Its tasks are sent there, for
    the cluster would also take a worker that has nothing but the program of a task and is idle,
    and send it the block's table, labels or costs.
    """

    remote = True
    most_threads = CPU_COUNT  # of this process; workers say themselves how many they have

    def __init__(self, client: Any):
        self.client = client
        self.homes: dict[int, str] = {}
        self.workers: set[str] = set()

    @property
    def n_threads(self) -> int:
        """How many blocks are in work at a time, on all workers together."""
        return sum(self.client.nthreads().values()) or 1

    def budget(self) -> int:
        """Return the bytes that the engine may use, on all workers together."""
        return memory_budget(self._available)

    def device_budget(self, free: Callable[[], int]) -> int:
        """Return the bytes of the devices of all workers that the engine may use."""
        return memory_budget(lambda: sum(self.client.run(free).values()), DEVICE_MEMORY)

    def _available(self) -> int:
        limits = self.client.run_on_scheduler(_memory_limits)
        return sum(limit or 2**32 for limit in limits) or 2**32

    def get_and_leave(
        self, graph: dict, kept: list[list], result: Any, own: Mapping[int, Sequence] | None = None
    ) -> tuple[list, Any]:
        """Run a graph; return futures of what is kept, and the result itself.

        ``own`` has the tasks of each block.
        """
        with _naming_a_lost_cluster():
            self._find_homes(graph, own or {})
        placed = self._at_home(graph, own or {})
        # Coordinates of a rotated table, of which no more than one worker's memory is used, are
        # part of the graph, so that they survive the workers.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            *futures, future = self.client.get(placed, [*kept, result], sync=False)
        return futures, self._result(future)

    def _find_homes(self, graph: dict, own: Mapping[int, Sequence]) -> None:
        """Ask who holds the first thing that the tasks of a block take, where that is not known.

        What a worker that died had is where the cluster has made it again.
        """
        threads = self.client.nthreads()
        if threads.keys() != self.workers:
            self._reassign(threads)
        taken = {block: _first_held(graph, own[block]) for block in own.keys() - self.homes.keys()}
        held = {block: future for block, future in taken.items() if future is not None}
        if held:
            holders = self.client.who_has(list(held.values()))
            found = {block: holders.get(future.key) for block, future in held.items()}
            self.homes |= {block: workers[0] for block, workers in found.items() if workers}

    def _reassign(self, threads: dict[str, int]) -> None:
        """Forget workers that are gone, and give new ones their share of the blocks."""
        came, self.workers = threads.keys() - self.workers, set(threads)
        self.homes = {block: home for block, home in self.homes.items() if home in threads}
        for worker in came:
            for _ in range(len(self.homes) * threads[worker] // sum(threads.values())):
                load = Counter(self.homes.values())
                fullest = max(load, key=lambda home: load[home] / threads[home])
                block = next(block for block, home in self.homes.items() if home == fullest)
                self.homes[block] = worker

    def _at_home(self, graph: dict, own: Mapping[int, Sequence]) -> HighLevelGraph:
        """Return the graph, with the tasks of each block at its home as long as that lives."""
        parts: dict[str | None, dict] = defaultdict(dict)
        homes = {key: self.homes.get(block) for block, keys in own.items() for key in keys}
        for key, task in graph.items():
            parts[homes.get(key)][key] = task
        layers = {
            f"rskc-at-{home}": MaterializedLayer(
                tasks, annotations=home and {"workers": [home], "allow_other_workers": True}
            )
            for home, tasks in parts.items()
        }
        return HighLevelGraph(layers, {name: set() for name in layers})

    def _result(self, future: Any) -> Any:
        from distributed import KilledWorker

        with _naming_a_lost_cluster():
            self._wait(future)
            if future.status != "error":
                return future.result()
        try:
            return future.result()  # what a task raised: the user's own, mostly
        except KilledWorker as error:
            raise ClusterError(
                "The workers of the Dask cluster died again and again while they worked on the "
                "same block; give them more memory or X smaller chunks."
            ) from error

    def _wait(self, future: Any) -> None:
        """Wait for a future, but not for workers that do not come."""
        from distributed import wait

        patience = parse_timedelta(dask.config.get("rskc.no-workers-timeout", "30s"))
        seen = time.monotonic()
        while True:
            try:
                wait(future, timeout=POLL)
                return
            except TimeoutError:
                if self.client.nthreads():
                    seen = time.monotonic()
            if time.monotonic() - seen > patience:
                raise ClusterError(
                    f"The Dask cluster has had no worker for {patience:g} seconds; start some "
                    "and fit again (rskc.no-workers-timeout says how long to wait)."
                )


def _first_held(graph: dict, keys: Sequence) -> Any:
    """Return the first future that tasks take, of what was kept or of the user's data."""
    from distributed import Future

    parts = (part for key in keys for part in arguments_of(graph[key]))
    values = (graph.get(part, part) if isinstance(part, str | tuple) else part for part in parts)
    return next((value for value in values if isinstance(value, Future)), None)
