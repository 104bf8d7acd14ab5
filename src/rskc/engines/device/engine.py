"""The engine for arrays on a device: torch tensors, CuPy arrays, or any other of the array API.

Every array of length n stays on the device of the data. In an iteration of K-means
the centers go there and sums, counts and within sums come back: two synchronizations, one for the
number of cases that moved and one for the sums.
"""

from operator import attrgetter
from types import ModuleType
from typing import Any

import numpy as np
from array_api_compat import device, is_torch_array

from rskc.engines import contract
from rskc.engines.arrays import labels_of
from rskc.engines.contract import Place
from rskc.engines.device import passes_array
from rskc.engines.device.ops import UNKNOWN_WORK_BYTES, DeviceOps, fetch, free_bytes, to_host
from rskc.engines.memory import Frame, MemoryTable, observed_frame, sample_steps, to_blocks
from rskc.engines.passes import PASSES
from rskc.engines.passes_numpy import factors_of, scale_centers, scaled_up


class SummedOnDevice(contract.CaseData):
    """What the engine and its tables do alike: sums over cases on the device."""

    arrays: DeviceOps
    work_bytes = property(attrgetter("arrays.work_bytes"))
    summing: Any  # the passes that sum
    summed: Any  # the array (n, .) that they sum
    facts: tuple = ()  # its frame, and which cells are observed

    def sums(self, groups, K):
        more = self._more(self.arrays.kept_masses(groups))
        totals, counts = self.summing.sums(self.summed, labels_of(groups), K, *more)
        return self.sums_type(*fetch(totals[:, :, : self.width], counts))

    def change(self, sums, before, after):
        return sums.change(*fetch(*self._change(before, after, sums.counts.shape[1])))

    def _change(self, before, after, K):
        """Return what totals and counts change by, and how many cases moved."""
        both = before, after
        kept = None if self.masses is None else [self.arrays.kept_masses(part) for part in both]
        labels, more = map(labels_of, both), self._more(kept)
        totals, *others = self.summing.shift(self.summed, *labels, K, *more)
        return totals[:, :, : self.width], *others

    def _more(self, masses):
        """Return masses and facts, if there are any: kernels take none."""
        return () if masses is None and not self.facts else (masses, *self.facts)


class DeviceTable(SummedOnDevice, contract.Table):
    """The cells of the columns that carry weight, on the device.

    ``rows`` is (n, width) or wider: columns of zeros may follow. Where cells may be missing, values
    are followed by marks. Nearest centers have no masses, and are Triton kernels where there are
    any; other passes with masses are those of the array API.
    """

    def __init__(
        self,
        rows: Any,
        weights: np.ndarray,
        place: Place | None,
        arrays: DeviceOps,
        passes: Any,
        missing: bool,
    ):
        super().__init__(arrays, rows.shape[0], weights, place, missing)
        self.rows = self.summed = rows
        self.passes = passes
        self.summing = passes if arrays.masses is None else passes_array  # kernels know no masses
        self.padding = rows.shape[1] - self.width

    def _row_sums(self, weights, dtype=None):
        columns = self.arrays.asarray(self._padded(weights).T)
        sums = passes_array.weighted_squares(self.rows, columns)
        return self.xp.astype(sums, dtype or self.rows.dtype)

    # ---- Nearest centers

    def assign(self, centers):
        if self.missing:
            return self._assign_observed(centers)
        factors, constants = np.empty(centers.shape), np.empty(centers.shape[:2])
        scale_centers(self.weights, centers, factors, constants)
        return self._nearest(factors, constants)

    def _nearest(self, factors, constants):
        """Find the least of x * factors + constants (runs, K) for every case and run."""
        asarray, dtype = self.arrays.asarray, self.rows.dtype
        parts = asarray(self._padded(factors), dtype), asarray(constants, dtype)
        return contract.Assignment(*self.passes.assign(self.rows, *parts, self.norms()))

    def _padded(self, array):
        """Add columns of 0, as the cells have; NumPy's pad takes longer than to launch a kernel."""
        wide = np.zeros((*array.shape[:-1], array.shape[-1] + self.padding))
        wide[..., : array.shape[-1]] = array
        return wide

    def _assign_observed(self, centers):
        xp, unseen = self.xp, np.isnan(centers)
        filled = np.where(unseen, 0, centers)
        weighted = self.weights[:, None, :] * filled
        factors = np.concatenate([-2 * weighted, weighted * filled], axis=2)
        labels, costs = self._nearest(factors, np.zeros(centers.shape[:2]))
        costs = xp.astype(xp.astype(costs, xp.float64) * self.scale, costs.dtype)
        unseen &= self.weights[:, None, :] > 0
        for run in np.flatnonzero(unseen.any(axis=(1, 2))):
            own = self._assign_partly_seen(centers[run], self.weights[run % len(self.weights)])
            labels[int(run), :] = own.labels
            costs[int(run), :] = xp.astype(own.costs, costs.dtype)
        blind = self.scale == 0
        return contract.Assignment(xp.where(blind, xp.zeros_like(labels), labels), costs)

    def _assign_partly_seen(self, centers: np.ndarray, weights: np.ndarray) -> contract.Assignment:
        """Find the nearest of centers that are not observed in all features, for one run."""
        arrays, xp = self.arrays, self.xp
        seen, filled = ~np.isnan(centers) * weights, np.nan_to_num(centers)
        parts = np.hstack([-2 * seen * filled, seen * filled**2]), np.hstack([0 * seen, seen])
        columns, marks, squares = (arrays.asarray(part.T) for part in (*parts, seen))
        labels, costs = [], []
        for rows in passes_array.chunks(self.rows, 4 * self.rows.shape[1]):
            cells = passes_array.read(self.rows, rows)[:, : self.width]
            sums = cells[:, : self.n_columns] ** 2 @ squares + cells @ columns
            scaled = scaled_up(sums, cells @ marks, float(weights.sum()), xp)
            least = xp.min(scaled, axis=1)
            labels.append(xp.astype(xp.argmin(scaled, axis=1), xp.int32))
            costs.append(xp.where(xp.isfinite(least), least, xp.zeros_like(least)))
        return contract.Assignment(xp.concat(labels), xp.concat(costs))

    # ---- Trimming and sums

    def _trimmed(self, assignment, m):
        """Return groups, and the costs of kept cases summed, on the device."""
        if self.summing is not passes_array:
            return self.passes.trim(*assignment, m)
        out = self.arrays.largest(assignment.costs, m)
        groups, costs, xp = self.arrays.without(assignment.labels, out), assignment.costs, self.xp
        costs = costs if self.masses is None else self.arrays.kept_masses(groups) * costs
        kept = xp.where(labels_of(groups) < 0, xp.zeros_like(costs), costs)
        return groups, xp.sum(kept, axis=1, dtype=xp.float64)

    def trim(self, assignment, m):
        groups, within = self._trimmed(assignment, m)
        return contract.Grouping(self.exclude(groups), to_host(within))

    def regroup(self, assignment, m, sums, before):
        groups, within = self._trimmed(assignment, m)
        groups = self.exclude(groups)
        *change, within = fetch(*self._change(before, groups, sums.counts.shape[1]), within)
        return contract.Regrouping(groups, within, self.changed(sums, change))

    def cases(self, index):
        xp, flat = self.xp, self.arrays.asarray(index.reshape(-1))
        rows = to_host(xp.take(self.rows, flat, axis=0))[:, : self.n_columns]
        return rows.astype(np.float64).reshape(*index.shape, -1)

    def in_memory(self):
        rows = np.ascontiguousarray(to_host(self.rows[:, : self.width]))
        cells, weights = (to_blocks(rows, PASSES.BLOCK), rows.reshape(-1)), self.weights
        facts = {"masses": self.arrays.host_masses, "missing": self.missing}
        return MemoryTable(cells, np.ascontiguousarray(weights), self._place, **facts)


# ---- The engine


def passes_for(X: Any) -> ModuleType:
    """Return the Triton kernels for torch tensors on a CUDA device, else the array API's passes."""
    if is_torch_array(X) and X.device.type == "cuda":
        try:
            from rskc.engines.device import kernels
        except ImportError:  # torch without Triton
            return passes_array
        return kernels
    return passes_array


class DeviceEngine(SummedOnDevice, contract.Engine):
    """Passes over an array (n, p) on a device, float32 or float64.

    Where cells may be missing, ``X`` has the location of the frame in these.
    """

    searchable = True
    summing = passes_array
    subset_bytes = np.inf  # there is room for tables, or none is made

    def __init__(
        self,
        X: Any,
        *,
        masses: np.ndarray | None = None,
        missing: bool = False,
        frame: Frame | None = None,
        n_threads: int = 1,
        passes=None,
    ):
        self.X, self.passes, arrays = X, passes or passes_for(X), DeviceOps(X, masses)
        xp = arrays.xp
        self.float32, self.float64 = xp.float32, xp.float64
        dtype = np.float32 if X.dtype == self.float32 else np.float64
        super().__init__(arrays, X.shape, dtype, frame or _frame_of(X, missing), missing)
        self.multiple = getattr(self.passes, "COLUMNS_MULTIPLE", 1)
        self.device_frame = self.frame._replace(location=arrays.asarray(self.frame.location))
        self.observed = ~xp.isnan(X) if missing else None
        if missing:
            location = xp.astype(self.device_frame.location, X.dtype)
            self.X = xp.where(self.observed, X, location)
            self.n_missing = self.n_cases * self.n_features - int(xp.count_nonzero(self.observed))
            self.observed_features = to_host(xp.any(self.observed, axis=0))
        # What stands in a missing cell is at the location of the frame, and adds 0.
        self.summed, self.facts = self.X, (self.device_frame, self.observed)

    def _check_room(self, columns):
        """Refuse what would fail half-way, with the numbers; what is small is not looked at."""
        needed = (1 + self.missing) * columns * self.n_cases * 8
        free = free_bytes(self.arrays.device) if needed > UNKNOWN_WORK_BYTES else None
        if free is not None and needed > free:
            raise MemoryError(
                f"A table of {self.n_cases} x {columns} cells needs about {needed / 2**30:.0f} GiB "
                f"on the device, in double precision, and {free / 2**30:.0f} GiB are free there; "
                "give fewer columns or cases, or a Dask array."
            )

    def leave_out(self, unobserved):
        super().leave_out(to_host(unobserved))
        sources = np.full(self.n_cases + self.n_unobserved, self.n_cases)
        sources[self.seen] = np.arange(self.n_cases)
        self._sources = self.arrays.asarray(sources)

    def rows(self, cases):
        return to_host(self._taken(cases))

    def part(self, cases, masses=None):
        options: dict[str, Any] = {"frame": self.frame, "passes": self.passes}
        if self.masses is not None:
            options["masses"] = self.arrays.masses_at(cases) if masses is None else masses
        return DeviceEngine(self._taken(cases), missing=self.missing, **options)

    def _taken(self, cases):
        """Return some cases as they were given, on the device."""
        xp, index = self.xp, None if isinstance(cases, slice) else self.arrays.asarray(cases)
        arrays = [self.X, self.observed] if self.missing else [self.X]
        rows, *seen = (
            array[cases, :] if index is None else xp.take(array, index, axis=0) for array in arrays
        )
        return xp.where(seen[0], rows, xp.full_like(rows, float("nan"))) if seen else rows

    def returned(self, array, unobserved):
        array, xp = self.arrays.as_mask(array), self.xp
        if self.seen is not None:
            last = xp.full((1,), unobserved, dtype=array.dtype, device=device(array))
            array = xp.take(xp.concat([array, last]), self._sources)
        return to_host(array) if self.gathers else array

    def largest_cell(self):
        return float(self.xp.max(self.xp.abs(self.X)))

    def _cell_type(self, dtype):
        return dtype  # products take cells and centers of one type here

    def table_of(self, cells, weights, place, dtype):
        return DeviceTable(cells, weights, place, self.arrays, self.passes, self.missing)

    def lay_out(self, columns, dtype):
        """Return the cells of a table, followed by zeros up to a width that the passes like."""
        self._check_room(len(columns))
        xp, parts = self.xp, self._parts(columns, dtype)
        gap = -sum(part.shape[1] for part in parts) % self.multiple
        if gap:
            zeros = xp.zeros((self.n_cases, gap), dtype=dtype, device=self.arrays.device)
            parts.append(zeros)
        return parts[0] if len(parts) == 1 else xp.concat(parts, axis=1)

    def _parts(self, columns, dtype):
        """Return the cells of some columns in the frame, cut off at its limits, and marks."""
        xp, asarray = self.xp, self.arrays.asarray
        out = xp.empty((self.n_cases, len(columns)), dtype=dtype, device=self.arrays.device)
        limits, numbers = asarray(self.frame.limits[columns]), asarray(columns)
        frame = self.device_frame._replace(location=asarray(self.frame.location[columns]))
        for rows in passes_array.chunks(self.X, 2 * self.n_features):
            cells = self.X[rows, :]
            if len(columns) < self.n_features:
                cells = xp.take(cells, numbers, axis=1)
            cells = passes_array.read(cells, slice(None), frame)
            out[rows, :] = xp.astype(xp.clip(cells, -limits, limits), dtype)
        if not self.missing:
            return [out]
        return [out, xp.astype(xp.take(self.observed, numbers, axis=1), dtype)]

    def _gram(self, weights):
        columns = self._columns(weights)
        roots = self.arrays.asarray(np.sqrt(weights[0, columns]))
        rows = self._parts(columns, self.float64)[0] * roots
        return to_host(rows @ rows.T)

    def _table_of_coordinates(self, coordinates, dtype):
        rows = self.arrays.asarray(coordinates, dtype)
        return self.table_of(rows, np.ones((1, rows.shape[1])), None, dtype)

    # ---- Passes

    def distances(self, labels, centers, weights):
        asarray, (location, factor, _) = self.arrays.asarray, self.device_frame
        rows = self.X, location, factor, asarray(weights), labels
        if not self.missing:
            return self.passes.own_distances(*rows, asarray(centers))
        marks = self.observed, asarray((~np.isnan(centers)).astype(float))
        filled = asarray(np.nan_to_num(centers))
        return passes_array.own_distances(*rows, filled, marks)

    def as_result(self, array):
        return array if self.gathers else self.arrays.asarray(array)

    def farthest(self, distances, m):
        largest = to_host(self.xp.max(distances, axis=1))
        return self.arrays.largest(distances, m), largest

    def _factored(self, groups, factors, K):
        totals, _ = passes_array.sums(self.X, groups, K, factors, *self.facts)
        return tuple(np.split(to_host(totals), 2, axis=2))

    def _factors(self, weights):
        asarray, total = self.arrays.asarray, weights.sum(axis=1, keepdims=True)
        observed = passes_array.weighted_squares(self.observed, asarray(weights.T))
        return factors_of(observed, asarray(total), self.xp)


def _frame_of(X: Any, missing: bool) -> Frame:
    """Frame some rows, with observed cells of each column of which they show none."""
    few, many = (X[::step, :] for step in sample_steps(*X.shape))
    if not missing:
        return Frame.from_rows(to_host(few), to_host(many))
    return observed_frame(to_host(few), lambda j: to_host(X[:, j]))
