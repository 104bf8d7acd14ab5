"""The scheduler that the user has: threads and processes of this machine, or a cluster.

A task of a graph is a tuple of a function and its arguments; keys among these stand for what they
make.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import uuid4

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

# Results of this many blocks are added at a time, in this order whatever the scheduler: sums round
# alike then.
FAN_IN = 16
# How often, in seconds, a cluster that is at work is asked whether it still has workers.
POLL = 1.0
# What says in Dask's configuration how many bytes may be used, in memory and on devices.
MEMORY, DEVICE_MEMORY = "rskc.memory", "rskc.device-memory"


@dataclass(eq=False, slots=True)
class Value:
    """A value in a graph that Dask must not look into."""

    value: Any


def add(parts: Sequence[Any]) -> Any:
    """Sum numbers or arrays, or tuples of them place by place."""
    if isinstance(parts[0], tuple):
        return tuple(add(column) for column in zip(*parts, strict=True))
    return sum(parts[1:], parts[0])


def add_all(parts: Sequence[Any], add_some: Callable = add) -> Any:
    """Sum the results of all blocks, some at a time."""
    while True:
        firsts = range(0, len(parts), FAN_IN)
        parts = [add_some(parts[first : first + FAN_IN]) for first in firsts]
        if len(parts) == 1:
            return parts[0]


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


def memory_here(dask_worker: Any = None) -> int:
    """Return the bytes that are free in this process, or that a worker may have."""
    free = free_memory() if dask_worker is None else dask_worker.memory_manager.memory_limit
    return free or 2**32


class LocalScheduler:
    """Threads (or whatever else is configured) of this process."""

    remote = False
    most_threads = CPU_COUNT  # of this process; workers say themselves how many they have

    def __init__(self, get: Callable):
        self.get = get

    def run(self, graph: dict, keys: list[list], combine: Callable) -> tuple[list, Any]:
        """Run a graph; return what is made of all keys but the last, and of these a sum or a list.

        Threads take the blocks in their order, which Dask's do not: files are read fastest so.
        Those who watch Dask's tasks, by a progress bar for instance, get to see all of them.
        """
        by_block, n_threads = [list(block) for block in zip(*keys, strict=True)], self.n_threads
        if self.get is not dask.base.named_schedulers["threads"]:
            each = self.get(graph, by_block)
        elif Callback.active:
            each = self.get(graph, by_block, num_workers=n_threads)
        else:
            threads = _threads(n_threads, "rskc-blocks")
            graphs = [cull(graph, block)[0] for block in by_block]
            made = [threads.submit(dask.get, *each) for each in zip(graphs, by_block, strict=True)]
            try:
                each = [future.result() for future in made]
            finally:
                for future in made:
                    future.cancel()
        *kept, parts = zip(*each, strict=True)
        held = [[Value(part) for part in column] for column in kept]
        return held, add_all(parts) if combine is add else combine(parts)

    @property
    def n_threads(self) -> int:
        """How many blocks are in work at a time."""
        return min(dask.config.get("num_workers", None) or CPU_COUNT, self.most_threads)

    def everywhere(self, function: Callable) -> list[Any]:
        """Return what a function returns in each process."""
        return [function()]

    def budget(self, name: str = MEMORY, free: Callable[[], int] = memory_here) -> int:
        """Return the bytes to use: as configured, else half of what is there in all processes."""
        asked = dask.config.get(name, None)
        return sum(self.everywhere(free)) // 2 if asked is None else parse_bytes(asked)


# Threads that stay: memory that one has freed is used again by itself only.
_threads = lru_cache(maxsize=1)(ThreadPoolExecutor)


def _leave_threads_behind() -> None:
    """Forget pools whose threads stayed in the parent: a child would wait for them without end.

    Those of Dask too, which computes what a fit gives back.
    """
    _threads.cache_clear()
    dask.threaded.default_pool = None
    dask.threaded.pools.clear()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_leave_threads_behind)


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


class ClusterScheduler(LocalScheduler):
    """A client of ``distributed``.

    The tasks of a block are sent to the worker that holds what was kept of it, for the cluster
    would also take one that has nothing but the program of a task and is idle, and send it the
    block's table, labels or costs: of 400,000 cases and 4 runs 2 to 16 MB in an iteration, instead
    of 0.3.
    """

    remote = True

    def __init__(self, client: Any):
        self.client = client

    @property
    def n_threads(self) -> int:
        """How many blocks are in work at a time, on all workers together."""
        return sum(self.client.nthreads().values()) or 1

    def everywhere(self, function: Callable) -> list[Any]:
        """Return what a function returns in each worker."""
        return list(self.client.run(function).values())

    def run(self, graph: dict, keys: list[list], combine: Callable) -> tuple[list, Any]:
        """Run a graph; return futures of all keys but the last, and of these a sum or a list."""
        homes, name = self._homes(graph, keys), f"rskc-{combine.__name__}-{uuid4().hex}"

        def add_some(parts: list) -> tuple:
            graph[name, len(graph)] = add, parts
            return name, len(graph) - 1

        if combine is list:
            graph[name] = list, keys[-1]
        last = name if combine is list else add_all(keys[-1], add_some)
        at_home = {key: graph.pop(key) for key in homes}
        where = {"workers": homes.get, "allow_other_workers": True}  # as long as these live
        layers = {"rskc-anywhere": MaterializedLayer(graph)}
        layers["rskc-at-home"] = MaterializedLayer(at_home, annotations=where)
        # Coordinates of a rotated table, of which no more than one worker's memory is used, are
        # part of the graph, so that they survive the workers.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            placed = HighLevelGraph(layers, {layer: set() for layer in layers})
            *held, future = self.client.get(placed, [*keys[:-1], last], sync=False)
        return held, self._result(future)

    def _homes(self, graph: dict, keys: list[list]) -> dict[Any, str]:
        """Return workers by task: those that have the first thing that tasks of its block take.

        That is kept, or the user's data. What a worker that died had, no other one has at once.
        """
        from distributed import Future

        taken: dict[Any, Future] = {}
        for block in zip(*keys, strict=True):
            parts = (part for key in block for part in graph[key][1:])
            parts = (graph.get(part) if isinstance(part, str | tuple) else part for part in parts)
            first = next((part for part in parts if isinstance(part, Future)), None)
            if first is not None:
                taken |= dict.fromkeys(block, first)
        if not taken:
            return {}
        with _naming_a_lost_cluster():
            holders = self.client.who_has(list(taken.values()))
        homes = ((key, holders.get(future.key)) for key, future in taken.items())
        return {key: workers[0] for key, workers in homes if workers}

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
