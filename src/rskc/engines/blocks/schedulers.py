"""The scheduler that the user has: threads and processes of this machine, or a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import dask
import dask.array
from dask.utils import parse_bytes, parse_timedelta

# How often, in seconds, a cluster that is at work is asked whether it still has workers.
POLL = 1.0


def scheduler_for() -> LocalScheduler | ClusterScheduler:
    """The scheduler that Dask would choose for an array."""
    get = dask.base.get_scheduler(cls=dask.array.Array)
    client = getattr(get, "__self__", None)
    if client is not None and hasattr(client, "gather"):
        return ClusterScheduler(client)
    if get is dask.base.named_schedulers.get("processes"):
        # It starts processes anew for each graph, a second or two, and sends them all labels;
        # threads do as well, since the passes let go of the interpreter.
        get = dask.base.named_schedulers["threads"]
    return LocalScheduler(get)


def memory_budget(available: Callable[[], int]) -> int:
    """Bytes that may be used: as configured (``rskc.memory``), else half of what is there."""
    asked = dask.config.get("rskc.memory", None)
    return available() // 2 if asked is None else parse_bytes(asked)


class LocalScheduler:
    """Threads (or whatever else is configured) of this process."""

    remote = False

    def __init__(self, get: Callable):
        self.get = get

    def get_one(self, graph: dict, key: Any) -> Any:
        """Run a graph; return one of its values."""
        return self.get(graph, key)

    def budget(self) -> int:
        """Bytes that the engine may use."""
        return memory_budget(_available_here)


def _available_here() -> int:
    try:
        import psutil  # type: ignore[import-untyped]
    except ImportError:  # it comes with distributed
        return 2**32
    return psutil.virtual_memory().available


def _memory_limits(dask_scheduler: Any) -> list[int]:
    return [worker.memory_limit for worker in dask_scheduler.workers.values()]


class ClusterScheduler:
    """A client of ``distributed``."""

    remote = True

    def __init__(self, client: Any):
        self.client = client

    def budget(self) -> int:
        """Bytes that the engine may use, on all workers together."""
        return memory_budget(self._available)

    def _available(self) -> int:
        limits = self.client.run_on_scheduler(_memory_limits)
        return sum(limit or 2**32 for limit in limits) or 2**32

    def get_one(self, graph: dict, key: Any) -> Any:
        """Run a graph; return one of its values."""
        return self.get_and_leave(graph, [], key)[1]

    def get_and_leave(self, graph: dict, kept: list[list], result: Any) -> tuple[list, Any]:
        """Run a graph; return futures of what is kept, and the result itself."""
        # Coordinates of a rotated table, of which no more than one worker's memory is used, are
        # part of the graph, so that they survive the workers.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            *futures, future = self.client.get(graph, [*kept, result], sync=False)
        return futures, self._result(future)

    def _result(self, future: Any) -> Any:
        from distributed import CancelledError, KilledWorker

        try:
            self._wait(future)
            if future.status != "error":
                return future.result()
        except (CancelledError, OSError) as error:
            raise RuntimeError(
                "The connection to the Dask cluster, or data that only it had, was lost during "
                "the fit; check the scheduler and fit again."
            ) from error
        try:
            return future.result()  # what a task raised: the user's own, mostly
        except KilledWorker as error:
            raise RuntimeError(
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
                raise RuntimeError(
                    f"The Dask cluster has had no worker for {patience:g} seconds; start some "
                    "and fit again (rskc.no-workers-timeout says how long to wait)."
                )
