"""Time and memory: of two things side by side, or of one in a process of its own."""

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.declare import NotHereError

STATUS = Path("/proc/self/status")


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


def best_of(
    repeats: int, *works: Callable[[], object], clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Least seconds of each, the repeats taken in turn so that noise affects all alike."""
    for work in works:
        work()
    rounds = [[seconds(work, clock) for work in works] for _ in range(repeats)]
    return [min(column) for column in zip(*rounds, strict=True)]


def apart(work: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function of a module returns in a new process."""
    if not STATUS.exists():
        raise NotHereError("memory is read from /proc, which this system does not have")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


class Usage(NamedTuple):
    """What a piece of work returned and took; memory in MB."""

    result: Any
    seconds: float
    cpu: float
    before: float
    peak: float


def usage(work: Callable[[], Any]) -> Usage:
    """Do the work and measure it; the peak is that of the process from its beginning on."""
    before, start, cpu = resident("VmRSS"), time.perf_counter(), time.process_time()
    result = work()
    took = time.perf_counter() - start, time.process_time() - cpu
    return Usage(result, *took, before, resident("VmHWM"))


def resident(field: str) -> float:
    """Memory of this process in MB: ``VmRSS`` now, ``VmHWM`` at its peak."""
    return int(STATUS.read_text().split(f"{field}:")[1].split()[0]) / 1024


def forget_peak() -> None:
    """Begin the peak again."""
    Path("/proc/self/clear_refs").write_text("5")
