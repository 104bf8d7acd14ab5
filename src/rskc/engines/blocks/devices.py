"""Blocks on a device: what a task has of one, and the streams that the threads work in.

The data of a block are on the device, and arrays of length n in memory, as those of any other
block: labels and costs are 8 bytes a case, where 50 columns are 200.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, lru_cache, partial
from typing import Any

import dask
import dask.array as da
import numpy as np

from rskc.engines.arrays import ArrayOps, PartlyTrimmed, labels_of, with_labels
from rskc.engines.blocks.schedulers import DEVICE_MEMORY, memory_budget, scheduler_for
from rskc.engines.blocks.tasks import Sides, TableRecipe
from rskc.engines.contract import Assignment, Table
from rskc.engines.device.engine import DeviceEngine, passes_for
from rskc.engines.device.ops import DeviceOps, free_bytes, to_host
from rskc.engines.device.tables import DeviceTable
from rskc.engines.frame import Frame
from rskc.engines.memory import MemoryEngine
from rskc.utils.machine import free_memory

# Bytes of the blocks into which an array in memory is cut.
BLOCK_BYTES = 2**25
# What a thread has of its block on the device, as many times the block: rows, a table, work arrays.
BLOCKS_IN_WORK = 5


class Device:
    """A device of torch: all that is done on CUDA alone is done here."""

    def __init__(self, name: str):
        import torch

        self.torch, self.place = torch, torch.device(name)
        self.is_cuda = self.place.type == "cuda"
        self._of_thread = threading.local()
        self.n_copied = 0  # bytes that went there

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
        """Copy rows to the device, by way of pinned memory: at the speed of the bus."""
        kind = getattr(self.torch, rows.dtype.name)
        staged = self.torch.empty(rows.shape, dtype=kind, pin_memory=self.is_cuda)
        self.n_copied += rows.nbytes
        staged.numpy()[...] = rows  # torch warns of arrays that cannot be written, such as maps
        return staged.to(self.place, non_blocking=True)


def placed(X: np.ndarray, device: str) -> Any:
    """Return an array on the device, if it and its tables fit there; else cut into blocks."""
    if X.size * (X.dtype.itemsize + 16) <= memory_budget(partial(free_on, device), DEVICE_MEMORY):
        return device_named(device).copy(X)
    return cut(X, max(1, BLOCK_BYTES // (X.shape[1] * X.dtype.itemsize)))


def cut(X: np.ndarray, size: int) -> da.Array:
    """Return blocks of an array, or of a map, of so many cases: nothing of it is copied or read."""
    blocks = da.from_array(np.asarray(X), chunks=(size, -1), name=False)
    blocks.are_views = True
    return blocks


def here() -> Any:
    """Have Dask work in this process, where an array in memory is."""
    return dask.config.set({"scheduler": "threads"} if scheduler_for().remote else {})


@lru_cache
def device_named(name: str) -> Device:
    """Return a device of this process; tasks are sent its name."""
    return Device(name)


def free_on(name: str) -> int:
    """Return the bytes that are free on a device."""
    free = free_bytes(device_named(name).place)
    return free_memory() or 2**32 if free is None else free


class OnDevice:
    """An engine or a table on a device: its methods take and return arrays in memory."""

    owner: Any

    def __init__(self, device: str, owner: Table | None = None):
        self.device = device
        if owner is not None:
            self.owner = owner

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what Python and Dask look for
            raise AttributeError(name)
        return partial(self.ask, name)

    def ask(self, name: str, *values: Any, **options: Any) -> Any:
        """Call a method of the owner, with values that go to the device."""
        with device_named(self.device).work():
            owner = self.owner
            there = (owner.arrays.from_numpy(v) if is_of_cases(v) else v for v in values)
            return self._in_memory(getattr(owner, name)(*there, **options))

    @property
    def width(self) -> int:
        """Return the number of columns of sums."""
        return self.owner.width

    def _in_memory(self, value: Any) -> Any:
        if isinstance(value, Table):
            return OnDevice(self.device, value)
        if isinstance(value, Assignment):
            return Assignment(*map(self._in_memory, value))
        if is_of_cases(value) or hasattr(value, "is_cuda"):
            return with_labels(value, to_host(labels_of(value)))
        return value


def is_of_cases(value: Any) -> bool:
    """Whether a value is an array of length n."""
    return isinstance(value, np.ndarray | PartlyTrimmed)


class BlockEngine(OnDevice):
    """The engine of a block whose rows are copied to a device when a pass needs them.

    Where a pass is over a few of the cases, it is made in memory.
    """

    def __init__(
        self, X: np.ndarray | None, ops: ArrayOps, device: str, missing: bool, frame: Frame
    ):
        super().__init__(device)
        self.X, self.masses = X, ops.masses
        self.options: dict[str, Any] = {"missing": missing, "frame": frame}

    @cached_property
    def owner(self) -> DeviceEngine:
        """The engine on the device."""
        assert self.X is not None
        device = device_named(self.device)
        with device.work():
            return DeviceEngine(device.copy(self.X), masses=self.masses, **self.options)

    def stay(self, has_room: bool, forget: bool) -> BlockEngine:
        """Copy the rows now, for all passes, or else for each; in memory they may be forgotten."""
        if has_room:
            _ = self.owner
        self.X = None if forget else self.X
        return self

    def for_a_pass(self) -> BlockEngine:
        """Return an engine that lets go of its copy, unless the rows stay on the device."""
        return self if "owner" in vars(self) else copy.copy(self)

    def part(self, cases: Any) -> MemoryEngine:
        """Return the engine in memory of some of the cases."""
        rows = self.ask("rows", cases=cases) if self.X is None else self.X[cases]
        return MemoryEngine(np.ascontiguousarray(rows), **self.options)

    def weighted_rows(self, columns: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the cells of some columns in the frame, times the roots of their weights."""
        return self.part(slice(None)).weighted_rows(columns, weights)

    def lay_out(self, columns: np.ndarray, dtype: Any) -> Any:
        """Return the cells of a table, on the device."""
        with device_named(self.device).work():
            return self.owner.lay_out(columns, getattr(self.owner, np.dtype(dtype).name))


class DeviceRecipe(TableRecipe):
    """How the table of a block on a device is made."""

    device: str

    def table_of_cells(self, cells: Any, masses: np.ndarray | None) -> Any:
        """Return the table of cells that are laid out on the device."""
        arrays = DeviceOps(cells, masses)
        rows = arrays.xp.astype(cells, getattr(arrays.xp, self.dtype.name), copy=False)
        facts = arrays, passes_for(rows), self.missing
        return DeviceTable(rows, self.weights, self.place, *facts)

    def sides_of(self, cells: Any) -> Sides:
        """Return what is kept beside the cells, on the device."""
        with device_named(self.device).work():
            return super().sides_of(cells)

    def table_of(self, cells: Any, ops: ArrayOps, sides: Sides | None = None) -> OnDevice:
        """Return the table of cells, for arrays in memory."""
        with device_named(self.device).work():
            return OnDevice(self.device, super().table_of(cells, ops, sides))
