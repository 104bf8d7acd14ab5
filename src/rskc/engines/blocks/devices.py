"""Blocks on a device: what a task has of one, and the streams that the threads work in.

The data of a block are on the device, and arrays of length n in memory, as those of any other
block: labels and costs are 8 bytes a case, where 50 columns are 200.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property, lru_cache, partial
from operator import is_not
from typing import Any

import dask
import numpy as np

from rskc.engines.arrays import ArrayOps, PartlyTrimmed, each_part
from rskc.engines.blocks.data import cut
from rskc.engines.blocks.schedulers import DEVICE_MEMORY, LocalScheduler, scheduler_for
from rskc.engines.contract import Assignment, Table
from rskc.engines.device.engine import DeviceEngine, DeviceTable, passes_for
from rskc.engines.device.ops import DeviceOps, free_bytes, to_host
from rskc.engines.memory import Frame, MemoryEngine
from rskc.utils.machine import free_memory

# What a thread has of its block on the device, as many times the block: rows, a table, work arrays.
BLOCKS_IN_WORK = 10
# Threads that work on blocks of this process: more are in each other's way between passes, and
# fewer wait for the bus. A fit of 10 GB took 70 s with 16, and 34 s with eight or four; of 80 GB
# 103 to 121 s with eight, and more than 140 s with four.
DEVICE_THREADS = 8
# Bytes of the blocks into which an array in memory is cut: large ones, of which a graph has few
# tasks, up to three quarters of the device memory in work.
LEAST_BYTES, BLOCK_BYTES = 2**24, 2**29


class Device:
    """A device of torch: all that is done on CUDA alone is done here."""

    def __init__(self, name: str):
        import torch

        self.torch, self.place = torch, torch.device(name)
        self.is_cuda = self.place.type == "cuda"
        self.ops = DeviceOps(torch.empty(0, device=self.place))  # brings arrays of length n here
        self._of_thread = threading.local()
        self._locked: Counter[tuple[int, int]] = Counter()  # first and last byte: how many need it
        self._lock = threading.RLock()  # a finalizer may run while it is held

    @contextmanager
    def work(self) -> Iterator[None]:
        """Work on this device in the stream of the thread, and wait for the end of it.

        While one thread computes on its block another one copies the next. What is kept is complete
        when a task of another thread takes it.
        """
        if not self.is_cuda:
            yield
            return
        if not hasattr(self._of_thread, "stream"):
            self._of_thread.stream = self.torch.cuda.Stream(self.place)
        with self.torch.cuda.stream(self._of_thread.stream):
            yield
            self._of_thread.stream.synchronize()

    def copy(self, rows: np.ndarray) -> Any:
        """Copy rows to the device at the speed of the bus: by way of pinned memory, mostly."""
        if self._is_locked(rows):
            return self.torch.from_numpy(rows).to(self.place, non_blocking=True)
        kind = getattr(self.torch, rows.dtype.name)
        staged = self.torch.empty(rows.shape, dtype=kind, pin_memory=self.is_cuda)
        staged.numpy()[...] = rows  # torch warns of arrays that cannot be written, such as maps
        return staged.to(self.place, non_blocking=True)

    def lock(self, X: np.ndarray, owner: Any) -> None:
        """Lock an array into memory while its owner lives: then nothing is copied within memory.

        Copies of pieces of 8 GB went at 55 GB/s so, and at 43 by way of pinned memory with 16
        threads. Maps of files are not locked, nor what the system refuses.
        """
        if not self.is_cuda or not X.flags.writeable or not X.flags.c_contiguous or is_map(X):
            return
        span, runtime = _span(X), self.torch.cuda.cudart()
        with self._lock:
            if not self._locked[span] and int(runtime.cudaHostRegister(span[0], X.nbytes, 0)):
                del self._locked[span]
                self._take_error()
                return
            self._locked[span] += 1
        weakref.finalize(owner, self._unlock, span)

    def _unlock(self, span: tuple[int, int]) -> None:
        with self._lock:
            self._locked[span] -= 1
            if not self._locked[span]:
                del self._locked[span]
                if int(self.torch.cuda.cudart().cudaHostUnregister(span[0])):
                    self._take_error()

    def _take_error(self) -> None:
        """Let a kernel raise the error of a call that was refused: the next one would."""
        with suppress(RuntimeError):
            self.torch.ones(1, device=self.place)

    def _is_locked(self, rows: np.ndarray) -> bool:
        if not self._locked or not rows.flags.c_contiguous:
            return False
        first, last = _span(rows)
        return any(low <= first and last <= high for low, high in tuple(self._locked))

    def latest(self, make: Callable[[], Any], X: np.ndarray, *facts: Any) -> Any:
        """Return what a thread has made of an array last, or make it.

        A graph makes several things of a block, one after the other and in the same thread: its
        rows are copied once. They are forgotten with the array, at the latest.
        """
        known = getattr(self._of_thread, "latest", None)
        if known is None or known.X() is not X or any(map(is_not, known.facts, facts)):
            known = self._of_thread.latest = _Latest(X, facts, make())
        return known.value


class _Latest:
    """What was made of an array, as long as that lives."""

    def __init__(self, X: np.ndarray, facts: tuple, value: Any):
        self.facts, self.value = facts, value
        this = weakref.ref(self)

        def forget(_: Any) -> None:
            if (latest := this()) is not None:
                latest.facts, latest.value = (), None

        self.X = weakref.ref(X, forget)


def _span(X: np.ndarray) -> tuple[int, int]:
    """Return the addresses at which a contiguous array begins and ends."""
    return X.ctypes.data, X.ctypes.data + X.nbytes


def is_map(X: Any) -> bool:
    """Whether an array is that of a file."""
    while X is not None and not isinstance(X, np.memmap):
        X = getattr(X, "base", None)
    return X is not None


def placed(X: np.ndarray, device: str) -> Any:
    """Return an array on the device, if it and its tables fit there; else cut into blocks."""
    if fits_on(device, X):
        return device_named(device).copy(X)
    share = 3 * budget_of(device) // (4 * BLOCKS_IN_WORK * DEVICE_THREADS)
    size = min(max(share, LEAST_BYTES), BLOCK_BYTES) // (X.shape[1] * X.dtype.itemsize)
    blocks = cut(X, max(1, size))
    device_named(device).lock(X, blocks)
    return blocks


def fits_on(device: str, X: np.ndarray) -> bool:
    """Whether an array and its tables fit on a device."""
    return X.size * (X.dtype.itemsize + 16) <= budget_of(device)


def budget_of(device: str) -> int:
    """Return the bytes of a device of this process that may be used."""
    return LocalScheduler(dask.get).budget(DEVICE_MEMORY, partial(free_on, device))


def here() -> Any:
    """Have Dask work in this process, where an array in memory is."""
    return dask.config.set({"scheduler": "threads"} if scheduler_for().remote else {})


device_named = lru_cache(Device)  # the devices of this process; tasks are sent their names


def work_on(name: str) -> AbstractContextManager[None]:
    """Work on a device in the stream of the thread."""
    return device_named(name).work()


def free_on(name: str) -> int:
    """Return the bytes that are free on a device."""
    free = free_bytes(device_named(name).place)
    return free_memory() or 2**32 if free is None else free


OF_CASES = np.ndarray | PartlyTrimmed  # arrays of length n


class OnDevice:
    """An engine or a table on a device: its methods take and return arrays in memory."""

    def __init__(self, device: str, owner: Any):
        self.device, self.owner, self.width = device, owner, owner.width

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what Python and Dask look for
            raise AttributeError(name)
        return partial(self.ask, name)

    def ask(self, name: str, *values: Any, **options: Any) -> Any:
        """Call a method of the owner, with values that go to the device."""
        ops = device_named(self.device).ops
        # First: behind the rows they would wait for the bus.
        there = [ops.from_numpy(v) if isinstance(v, OF_CASES) else v for v in values]
        return self._in_memory(getattr(self.owner, name)(*there, **options))

    def _in_memory(self, value: Any) -> Any:
        if isinstance(value, Table):
            return OnDevice(self.device, value)
        if isinstance(value, Assignment):
            return Assignment(*map(self._in_memory, value))
        if isinstance(value, OF_CASES) or hasattr(value, "is_cuda"):
            return each_part(to_host, value)
        return value


class BlockEngine(OnDevice):
    """The engine of a block whose rows are copied to a device when a pass needs them.

    Where a pass is over a few of the cases, it is made in memory.
    """

    X: np.ndarray | None

    def __init__(self, X: np.ndarray, ops: ArrayOps, device: str, missing: bool, frame: Frame):
        self.X, self.masses, self.device = X, ops.masses, device
        self.width = (1 + missing) * X.shape[1]
        self.options: dict[str, Any] = {"missing": missing, "frame": frame}

    @cached_property
    def owner(self) -> DeviceEngine:
        """The engine on the device."""
        X, device = self.X, device_named(self.device)
        assert X is not None
        return device.latest(
            lambda: DeviceEngine(device.copy(X), masses=self.masses, **self.options),
            X,
            self.masses,
            self.options["frame"],
        )

    def stay(self, forget: bool) -> BlockEngine:
        """Copy the rows now, for all passes; in memory they may be forgotten."""
        _ = self.owner
        self.X = None if forget else self.X
        return self

    def part(self, cases: Any) -> MemoryEngine:
        """Return the engine in memory of some of the cases."""
        rows = self.ask("rows", cases=cases) if self.X is None else self.X[cases]
        return MemoryEngine(np.ascontiguousarray(rows), **self.options)

    def lay_out(self, columns: np.ndarray, dtype: Any) -> Any:
        """Return the cells of a table, on the device."""
        return self.owner.lay_out(columns, getattr(self.owner, np.dtype(dtype).name))


def table_on_device(
    cells: Any, ops: ArrayOps, device: str, dtype: np.dtype, **facts: Any
) -> OnDevice:
    """Return the table of cells that are laid out on a device, for arrays in memory."""
    arrays = DeviceOps(cells, ops.masses)
    rows = arrays.xp.astype(cells, getattr(arrays.xp, dtype.name), copy=False)
    return OnDevice(device, DeviceTable(rows, arrays=arrays, passes=passes_for(rows), **facts))
