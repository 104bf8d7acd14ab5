"""The engine for arrays on a device: torch tensors, CuPy arrays, or any other of the array API.

Everything that is as long as the data stays on the device of the data. In an iteration of K-means
the centers go there and sums, counts and within sums come back: two synchronizations, one for the
number of cases that moved and one for the sums.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from array_api_compat import device, is_torch_array

from rskc.engines.device import passes_array
from rskc.engines.device.arrays import DeviceCases, fetch, free_bytes, to_host
from rskc.engines.device.tables import DeviceTable
from rskc.engines.frame import Frame, Place, sample_steps
from rskc.engines.interface import Farthest, Listed, Sums
from rskc.engines.memory import gram_coordinates

# Work arrays of a batch of runs may take this share of the memory that is free on the device...
WORK_SHARE = 8
# ... or so much, where the device does not say how much that is.
WORK_BYTES = 2**30


def passes_for(X: Any) -> ModuleType:
    """The Triton kernels for torch tensors on a CUDA device; else what the array API gives."""
    if is_torch_array(X) and X.device.type == "cuda":
        try:
            from rskc.engines.device import kernels
        except ImportError:  # torch without Triton
            return passes_array
        return kernels
    return passes_array


class DeviceEngine:
    """Passes over an array (n, p) on a device, float32 or float64, without missing cells."""

    table_cells = 1  # of a table, for each cell of the data

    searchable = True

    def __init__(self, X: Any, *, frame: Frame | None = None, n_threads: int = 1, passes=None):
        self.X, self.passes = X, passes or passes_for(X)
        self.arrays: Any = DeviceCases(X)
        self.n_cases, self.n_features = X.shape
        self.n_missing = self.n_unobserved = 0
        self.seen: Any = None
        self.multiple = getattr(self.passes, "COLUMNS_MULTIPLE", 1)
        self.frame = frame or self._frame_of(X)
        with np.errstate(over="ignore", under="ignore"):
            self.unit = float(np.power(self.frame.factor, -2.0))
        location = self.arrays.asarray(self.frame.location)
        self.place_on_device = passes_array.Place(location, self.frame.factor)
        self.work_bytes = self._work_bytes()
        self._last: Any = None
        self._rotated: Any = None

    def _check_room(self, columns):
        """Refuse what would fail half-way, with the numbers."""
        free, needed = free_bytes(self.X), self.table_cells * self.n_cases * columns * 8
        if free is not None and needed > free:
            raise MemoryError(
                f"A table of {self.n_cases} x {columns} cells needs about {needed / 2**30:.0f} GiB "
                f"on the device, in double precision, and {free / 2**30:.0f} GiB are free there; "
                "give fewer columns or cases, or a Dask array."
            )

    def _frame_of(self, X):
        few, many = (to_host(X[::step, :]) for step in sample_steps(*X.shape))
        return Frame.from_rows(few, many)

    def _work_bytes(self):
        free = free_bytes(self.X)
        return WORK_BYTES if free is None else free // WORK_SHARE

    def leave_out(self, unobserved):
        """Take note of unobserved cases (of all): the data of this engine are without them."""
        xp = self.arrays.xp
        self.n_unobserved, self.seen = (
            unobserved.shape[0] - self.n_cases,
            xp.nonzero(~unobserved)[0],
        )
        place = xp.cumulative_sum(xp.astype(~unobserved, xp.int64)) - 1
        self._sources = xp.where(unobserved, xp.full_like(place, self.n_cases), place)

    def part(self, cases):
        rows = self.arrays.xp.take(self.X, self.arrays.asarray(cases), axis=0)
        return DeviceEngine(rows, frame=self.frame, passes=self.passes)

    def numbers(self, cases):
        return cases if self.seen is None else to_host(self.seen)[cases]

    def returned(self, array, unobserved):
        if self.seen is None:
            return array
        xp = self.arrays.xp
        last = xp.full((1,), unobserved, dtype=array.dtype, device=device(array))
        return xp.take(xp.concat([array, last]), self._sources)

    def distinct(self, most):
        """Look at more and more cases, as long as too few of them differ."""
        known: set[bytes] = set()
        step = max(1000, 4 * most)
        for first in range(0, self.n_cases, step):
            known |= self._row_keys(slice(first, min(self.n_cases, first + step)))
            if len(known) >= most:
                return most
        return len(known)

    def _row_keys(self, rows):
        return {row.tobytes() for row in to_host(self.X[rows, :]) + 0.0}  # -0.0 is 0.0

    def largest_cell(self):
        return float(self.arrays.xp.max(self.arrays.xp.abs(self.X)))

    def little_seen(self, weights, share):
        return Listed(0, np.empty(0, np.int64))

    def equal_weights(self):
        return np.ones((1, self.n_features))

    def table(self, weights):
        return self._columns_table(weights, self.arrays.xp.float64)

    def compact_table(self, weights):
        if self._wide(weights):
            return self._rotated_table(weights, self.arrays.xp.float64)
        return self.table(weights)

    def search_table(self, weights):
        if self._wide(weights):
            return self._rotated_table(weights, self.arrays.xp.float32)
        return self._columns_table(weights, self.arrays.xp.float32)

    def _wide(self, weights):
        return len(weights) == 1 and np.count_nonzero(weights) > self.n_cases

    def _columns_table(self, weights, dtype):
        columns = np.flatnonzero(weights.any(axis=0))
        rows = self._cells(columns, dtype)
        own = np.ascontiguousarray(weights[:, columns])
        return self._table_of(rows, own, Place(columns, self.frame))

    def _table_of(self, *parts):
        return DeviceTable(self, *parts)

    def _cells(self, columns, dtype):
        """The cells of a table; the last are kept: which weights are above 0 changes seldom."""
        key = (dtype, columns.tobytes())
        if self._last is None or self._last[0] != key:
            self._last = None  # before the next is made
            self._check_room(len(columns))
            self._last = (key, self._lay_out(columns, dtype))
        return self._last[1]

    def _lay_out(self, columns, dtype):
        """The cells of a table, as wide as the passes like it: zeros follow."""
        xp, parts = self.arrays.xp, self._parts(columns, dtype)
        gap = -sum(part.shape[1] for part in parts) % self.multiple
        if gap:
            zeros = xp.zeros((self.n_cases, gap), dtype=dtype, device=self.arrays.device)
            parts.append(zeros)
        return parts[0] if len(parts) == 1 else xp.concat(parts, axis=1)

    def _parts(self, columns, dtype):
        """The cells of some columns in the frame, cut off at its limits."""
        xp, asarray = self.arrays.xp, self.arrays.asarray
        out = xp.empty((self.n_cases, len(columns)), dtype=dtype, device=self.arrays.device)
        limits, numbers = asarray(self.frame.limits[columns]), asarray(columns)
        place = self.place_on_device._replace(location=asarray(self.frame.location[columns]))
        for rows in passes_array.chunks(self.X, 2 * self.n_features):
            cells = self.X[rows, :]
            if len(columns) < self.n_features:
                cells = xp.take(cells, numbers, axis=1)
            cells = passes_array.read(cells, slice(None), place)
            out[rows, :] = xp.astype(xp.clip(cells, -limits, limits), dtype)
        return [out]

    def _rotated_table(self, weights, dtype):
        """Coordinates of the cases in the space that they span, n x n instead of n x q."""
        xp, asarray = self.arrays.xp, self.arrays.asarray
        if self._rotated is None or not np.array_equal(self._rotated[0], weights):
            columns = np.flatnonzero(weights[0])
            rows = self._parts(columns, xp.float64)[0] * asarray(np.sqrt(weights[0, columns]))
            self._rotated = (weights, gram_coordinates(to_host(rows @ rows.T)))
        rows = asarray(self._rotated[1], dtype)
        return DeviceTable(self, rows, np.ones((1, rows.shape[1])), None)

    def sums(self, groups, K):
        parts = passes_array.sums(self.X, groups, K, self.place_on_device)
        return Sums(*fetch(*parts))

    def shift(self, sums, before, after):
        K = sums.counts.shape[1]
        change = passes_array.shift(self.X, before, after, K, self.place_on_device)
        return sums.change(*fetch(*change))

    def distances(self, labels, centers, weights=None):
        weights = self.equal_weights() if weights is None else weights
        parts = self.arrays.asarray(weights), labels, self.arrays.asarray(centers)
        return self.passes.own_distances(self.X, *self.place_on_device, *parts)

    def transform(self, centers, weights):
        xp, shape = self.arrays.xp, (len(centers), self.n_cases)
        labels = xp.zeros(shape, dtype=xp.int32, device=self.arrays.device)
        distances = self.distances(labels, centers[:, None, :], weights[None])
        return xp.astype(distances.T * self.unit, self.X.dtype)

    def as_result(self, array):
        return self.arrays.asarray(array)

    def between(self, sums, groups, weights):
        return sums.between()

    def set_aside(self, groups, weights):
        return groups < 0

    def farthest(self, distances, m):
        largest = to_host(self.arrays.xp.max(distances, axis=1))
        return Farthest(passes_array.largest(distances, m), largest)

    def place(self, centers):
        return self.frame.place(centers)

    def restore(self, centers):
        dtype = np.float32 if self.X.dtype == self.arrays.xp.float32 else np.float64
        return (centers / self.frame.factor + self.frame.location).astype(dtype)
