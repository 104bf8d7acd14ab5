"""The engine for arrays on a device: torch tensors, CuPy arrays, or any other of the array API.

Everything that is as long as the data stays on the device of the data. In an iteration of K-means
the centres go there and sums, counts and within sums come back: two synchronisations, one for the
number of cases that moved and one for the sums.
"""

from __future__ import annotations

import copy
from types import ModuleType
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_cupy_array, is_torch_array, to_device

from rskc.engines import passes_array
from rskc.engines.cases import (
    Candidates,
    candidates_needed,
    case_numbers,
    fill_from,
    sums_to_keys,
)
from rskc.engines.interface import (
    Assignment,
    Cases,
    Farthest,
    Grouping,
    Listed,
    Moved,
    Regrouping,
    Sums,
)
from rskc.engines.memory import PASSES as HOST_PASSES
from rskc.engines.memory import (
    Frame,
    MemoryTable,
    Place,
    gram_coordinates,
    sample_steps,
)
from rskc.engines.memory import to_blocks as host_blocks

# Work arrays of a batch of runs may take this share of the memory that is free on the device...
WORK_SHARE = 8
# ... or so much, where the device does not say how much that is.
WORK_BYTES = 2**30


def to_host(array: Any) -> np.ndarray:
    """Copy an array of any kind into memory."""
    if is_torch_array(array) or is_cupy_array(array):
        array = to_device(array, "cpu")
    return np.asarray(array)


def fetch(*arrays: Any) -> list[np.ndarray]:
    """Copy small arrays into memory, as float64, in one go: one synchronisation for all."""
    xp = array_namespace(*arrays)
    flat = xp.concat([xp.astype(xp.reshape(part, (-1,)), xp.float64) for part in arrays])
    ends = np.cumsum([int(np.prod(part.shape)) for part in arrays])[:-1]
    parts = np.split(to_host(flat), ends)
    return [part.reshape(array.shape) for part, array in zip(parts, arrays, strict=True)]


def passes_for(X: Any) -> ModuleType:
    """The Triton kernels for torch tensors on a CUDA device; else what the array API gives."""
    if is_torch_array(X) and X.device.type == "cuda":
        try:
            from rskc.engines import kernels_triton
        except ImportError:  # torch without Triton
            return passes_array
        return kernels_triton
    return passes_array


def free_bytes(X: Any) -> int | None:
    """The memory that is free on the device of X, if it can be asked."""
    if is_torch_array(X) and X.device.type == "cuda":
        import torch

        unused = torch.cuda.memory_reserved(X.device) - torch.cuda.memory_allocated(X.device)
        return torch.cuda.mem_get_info(X.device)[0] + unused
    if is_cupy_array(X):
        import cupy

        return cupy.cuda.Device(X.device.id).mem_info[0]
    return None


class DeviceCases:
    """:class:`~rskc.engines.interface.Cases` for arrays on a device."""

    def __init__(self, like: Any):
        self.xp, self.device = array_namespace(like), device(like)
        self._numbers: Any = None

    def asarray(self, array: Any, dtype: Any = None) -> Any:
        """Bring an array from memory to the device."""
        return self.xp.asarray(np.ascontiguousarray(array), dtype=dtype, device=self.device)

    def take(self, array, runs):
        if isinstance(runs, slice):
            return array[slice(*runs.indices(array.shape[0])), :]
        return self.xp.take(array, self.asarray(runs), axis=0)

    def only(self, array):
        return array[0, ...]

    def as_run(self, array):
        return array[None, ...]

    def join(self, parts):
        return self.xp.concat(list(parts), axis=0)

    def without(self, groups, out):
        return self.xp.where(out, -self.xp.ones_like(groups), groups)

    def trimmed(self, groups):
        return groups < 0

    def sizes(self, groups, K):
        return self._of_groups(groups, K, lambda own: self.xp.astype(own, self.xp.float64))[
            :, 1:
        ].astype(np.int64)

    def differ(self, groups, others):
        return to_host(self.xp.any(groups != others, axis=1))

    def keys(self, groups, K, masks=None):
        numbers = self._numbers_of(groups.shape[1])
        zeros = self.xp.zeros_like(numbers)
        sums = self._of_groups(groups, K, lambda own: self.xp.where(own, numbers, zeros))
        marks = None
        if masks is not None:
            numbers = self.xp.flip(numbers)
            marks = to_host(self.xp.sum(self.xp.where(masks, numbers, zeros), axis=1))
        return sums_to_keys(sums, marks)

    def _of_groups(self, groups, K, value):
        """Sums of values over the trimmed cases and over each group, (runs, 1 + K)."""
        parts = [self.xp.sum(value(groups == k), axis=1) for k in range(-1, K)]
        return to_host(self.xp.stack(parts, axis=1))

    def _numbers_of(self, n):
        if self._numbers is None or self._numbers.shape[0] != n:
            self._numbers = self.asarray(case_numbers(0, n, n))
        return self._numbers

    def fill_empty(self, groups, counts, costs):
        xp, groups = self.xp, self.xp.asarray(groups, copy=True)
        for run in np.flatnonzero((counts == 0).any(axis=1)):
            own = groups[int(run), :]
            paid = xp.where(own < 0, xp.zeros_like(costs[0, :]), costs[int(run), :])
            most = min(candidates_needed(counts[run]), paid.shape[0])
            numbers = xp.argsort(-paid, stable=True)[:most]
            found = (
                to_host(part) for part in (numbers, xp.take(paid, numbers), xp.take(own, numbers))
            )
            for case, k in fill_from(Candidates(*found), counts[run]):
                groups[int(run), case] = k
        return groups

    def lesser(self, costs, others):
        return self.xp.where(costs < others, costs, others)

    def draw(self, costs, groups, uniforms):
        xp = self.xp
        chances = xp.astype(xp.where(groups < 0, xp.zeros_like(costs), costs), xp.float64)
        ladder = xp.cumulative_sum(chances, axis=1)
        goals = self.asarray(uniforms[:, None]) * ladder[:, -1:]
        places, total = fetch(xp.count_nonzero(ladder <= goals, axis=1), ladder[:, -1])
        n = costs.shape[1]
        places = np.where(total == 0, uniforms * n, places)  # all alike: any case
        return np.minimum(places, n - 1).astype(np.int64)

    def first_members(self, groups, k, most):
        return to_host(self.xp.nonzero(groups[0, :] == k)[0])[:most]

    def total(self, costs, out):
        return float(self.xp.sum(self.xp.where(out, self.xp.zeros_like(costs), costs)))

    def spread(self, costs):
        finite = costs[self.xp.isfinite(costs)]
        if finite.shape[0] == 0:
            return 0.0, 0.0
        median = self._median(finite)
        return median, self._median(self.xp.abs(finite - median))

    def _median(self, values):
        ordered, n = self.xp.sort(values), values.shape[0]
        return float(self.xp.mean(ordered[(n - 1) // 2 : n // 2 + 1]))


class DeviceTable:
    """The cells of the columns that carry weight, on the device.

    ``rows`` is (n, width) or wider: columns of zeros may follow.
    """

    width_factor = 1  # columns in storage for each column
    sums_type = Sums

    def __init__(self, engine: DeviceEngine, rows: Any, weights: np.ndarray, place: Place | None):
        self.engine, self.rows, self.weights = engine, rows, weights
        self.arrays: Cases = engine.arrays
        self.work_bytes = engine.work_bytes
        self.n_cases, self.n_columns = engine.n_cases, weights.shape[1]
        self.width = self.width_factor * self.n_columns
        self.padding = rows.shape[1] - self.width
        self.rotated = place is None
        self._place = place
        self._norms: Any = None
        self._host: MemoryTable | None = None

    def place(self, centres):
        assert self._place is not None, "a rotated table has no place for centres"
        return self._place.centres(centres)

    def of_runs(self, index):
        if len(self.weights) == 1:
            return self
        part = copy.copy(self)
        part.weights, part._host = self.weights[index], None
        part._norms = self.arrays.take(self.norms(), index)
        return part

    def norms(self):
        """Return the weighted squared norm of each case, (1 or runs, n)."""
        if self._norms is None:
            self._norms = self._row_sums(self.weights)
        return self._norms

    def _row_sums(self, weights):
        """sum_j weights_j x_j^2 of each case, for each row of weights, in the table's precision."""
        arrays, xp = self.engine.arrays, self.engine.arrays.xp
        weights = np.pad(weights, ((0, 0), (0, self.padding)))
        columns, width = arrays.asarray(weights.T), 2 * self.rows.shape[1] + len(weights)
        parts = [
            (passes_array.read(self.rows, rows) ** 2 @ columns).T
            for rows in passes_array.chunks(self.rows, width)
        ]
        return xp.astype(xp.concat(parts, axis=1), self.rows.dtype)

    def typical_norm(self):
        xp, norms = self.engine.arrays.xp, self.norms()
        return float(xp.sort(xp.reshape(norms, (-1,)))[norms.shape[0] * norms.shape[1] // 2])

    def assign(self, centres):
        weighted = self.weights[:, None, :] * centres
        constants = np.einsum("rkj,rkj->rk", weighted, centres)
        return self._nearest(-2 * weighted, constants)

    def _nearest(self, factors, constants):
        """Find the least of x * factors + constants (runs, K) for every case and run."""
        asarray, dtype = self.engine.arrays.asarray, self.rows.dtype
        factors = np.pad(factors, ((0, 0), (0, 0), (0, self.padding)))
        parts = asarray(factors, dtype), asarray(constants, dtype)
        return Assignment(*self.engine.passes.assign(self.rows, *parts, self.norms()))

    def trim(self, assignment, m):
        groups, within = self.engine.passes.trim(*assignment, m)
        return Grouping(groups, to_host(within))

    def exclude(self, groups):
        return groups

    def sums(self, groups, K):
        totals, counts = self.engine.passes.sums(self.rows, groups, K)
        return self.sums_type(*fetch(totals[:, :, : self.width], counts))

    def shift(self, sums, before, after):
        return add_change(sums, *fetch(*self._change(before, after, sums.counts.shape[1])))

    def _change(self, before, after, K):
        """What totals and counts change by, and how many cases moved."""
        totals, *others = self.engine.passes.shift(self.rows, before, after, K)
        return totals[:, :, : self.width], *others

    def regroup(self, assignment, m, sums, before):
        groups, within = self.engine.passes.trim(*assignment, m)
        groups = self.exclude(groups)
        change = self._change(before, groups, sums.counts.shape[1])
        *change, within = fetch(*change, within)
        return Regrouping(groups, within, add_change(sums, *change))

    def single_moves(self, groups, K):
        """Move cases one after the other in memory: it is asked of small tables only."""
        moved, sums, moves = self.in_memory().single_moves(to_host(groups), K)
        return Moved(self.engine.arrays.asarray(moved), sums, moves)

    def seeds(self):
        return self

    def cases(self, index):
        xp, flat = self.engine.arrays.xp, self.engine.arrays.asarray(index.reshape(-1))
        rows = to_host(xp.take(self.rows, flat, axis=0))[:, : self.n_columns]
        return rows.astype(np.float64).reshape(*index.shape, -1)

    def in_memory(self):
        """Return the same table in memory."""
        if self._host is None:
            rows = np.ascontiguousarray(to_host(self.rows[:, : self.width]))
            blocks, flat = host_blocks(rows, HOST_PASSES.BLOCK), rows.reshape(-1)
            weights = np.ascontiguousarray(self.weights)
            self._host = self._host_table(blocks, flat, weights, 1, HOST_PASSES, self._place)
        return self._host

    def _host_table(self, *parts):
        return MemoryTable(*parts)


def add_change(sums: Sums, totals: np.ndarray, counts: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Bring sums up to date; return how many cases moved in each run."""
    sums.totals += totals
    sums.counts += counts
    return moved.astype(np.int64)


class DeviceEngine:
    """Passes over an array (n, p) on a device, float32 or float64, without holes."""

    table_cells = 1  # of a table, for each cell of the data

    def __init__(self, X: Any, *, frame: Frame | None = None, n_threads: int = 1, passes=None):
        self.X, self.passes = X, passes or passes_for(X)
        self.arrays: Any = DeviceCases(X)
        self.n_cases, self.n_features = X.shape
        self.n_missing = self.n_blank = 0
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

    def leave_out(self, blank):
        """Take note of blank cases (of all): the data of this engine are without them."""
        xp = self.arrays.xp
        self.n_blank, self.seen = blank.shape[0] - self.n_cases, xp.nonzero(~blank)[0]
        place = xp.cumulative_sum(xp.astype(~blank, xp.int64)) - 1
        self._sources = xp.where(blank, xp.full_like(place, self.n_cases), place)

    def part(self, cases):
        rows = self.arrays.xp.take(self.X, self.arrays.asarray(cases), axis=0)
        return DeviceEngine(rows, frame=self.frame, passes=self.passes)

    def numbers(self, cases):
        return cases if self.seen is None else to_host(self.seen)[cases]

    def returned(self, array, blank):
        if self.seen is None:
            return array
        xp = self.arrays.xp
        last = xp.full((1,), blank, dtype=array.dtype, device=device(array))
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
        return add_change(sums, *fetch(*change))

    def distances(self, labels, centres, weights=None):
        weights = self.equal_weights() if weights is None else weights
        parts = self.arrays.asarray(weights), labels, self.arrays.asarray(centres)
        return self.passes.own_distances(self.X, *self.place_on_device, *parts)

    def transform(self, centres, weights):
        xp, shape = self.arrays.xp, (len(centres), self.n_cases)
        labels = xp.zeros(shape, dtype=xp.int32, device=self.arrays.device)
        distances = self.distances(labels, centres[:, None, :], weights[None])
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

    def place(self, centres):
        return self.frame.place(centres)

    def restore(self, centres):
        dtype = np.float32 if self.X.dtype == self.arrays.xp.float32 else np.float64
        return (centres / self.frame.factor + self.frame.location).astype(dtype)
