"""What all engines share: the frame of the data, the sums of clusters, and much of an engine.

:class:`BaseEngine` and :class:`BaseTable` hold what is alike in memory, in blocks and on a device.
The functions at the end make keys of partitions.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.linalg import lapack

from rskc.engines.cells import CellPasses
from rskc.engines.descent import descend_by_passes
from rskc.engines.interface import Listed, Remaining

# In tables, cells beyond this many times the largest spread of a column are cut off there: sums
# then keep some digits of the others when an outlying case joins and leaves a cluster, and squares
# stay finite. What is returned is summed anew, from the data themselves.
OUTLYING = 1e9
# A squared distance, in typical deviations, beyond which subtracting a case from sums would leave
# its rounding behind.
OUTLYING_DISTANCE = 1e12
# Cells of the rows that show how large columns are that are mostly constant.
FRAME_CELLS = 2**22
# A column subset is copied if that saves at least this share of the columns...
SUBSET_SHARE = 0.25
# ... or if the copy is small anyway.
SUBSET_BYTES = 2**25
# Less mass than this, where a case has about 1, is none.
NO_MASS = 1e-9
# Bits of the random number of a case: fewer where sums over very many cases would be inexact.
KEY_BITS, EXACT_BITS = 30, 52


class Frame(NamedTuple):
    """Where the data lie and how large they are: all passes see (X - location) * factor.

    The factor keeps squares from overflow and underflow, whatever the scale of the data.
    """

    location: np.ndarray
    factor: float
    limits: np.ndarray  # (p,) where tables cut off, in the frame

    @classmethod
    def of(cls, X: np.ndarray) -> Frame:
        """Frame X robustly, from a sample of its rows."""
        few, many = sample_steps(*X.shape)
        return cls.from_rows(X[::few], X[::many])

    @classmethod
    def from_rows(cls, few: np.ndarray, many: Any) -> Frame:
        """Frame data by about 31 of their rows, and more for columns that hardly vary.

        Center first: |x|^2 - 2xc + |c|^2 loses digits when the center of the data is far from 0.
        A median, so that an outlying cell of 1e30 does not drag its column away: of about 31 rows,
        since any place among the data will do, and a median over all of 300 x 1000 cells takes 4
        ms.
        """
        ordered = np.sort(few.astype(np.float64), axis=0)
        last = len(ordered) - 1
        location = ordered[(last + 1) // 2]
        spread = ordered[last - last // 4] - ordered[last // 4]
        for j in np.flatnonzero(spread == 0):
            # The median deviation of the cells that deviate, in a column that is mostly constant.
            deviations = np.abs(many[:, j] - location[j])
            deviations = deviations[deviations > 0]
            spread[j] = np.median(deviations) if len(deviations) else 0.0
        typical = spread.max() if spread.any() else 1.0
        factor = 2.0 ** np.clip(-np.floor(np.log2(typical)), -1000, 1000)
        return cls(location, float(factor), np.full(len(spread), OUTLYING * typical * factor))

    def place(self, points: np.ndarray) -> np.ndarray:
        """Bring points from the space of the data into the frame."""
        return (points - self.location) * self.factor

    def of_columns(self, columns: np.ndarray) -> Frame:
        """Return the frame of some of the columns."""
        return Frame(self.location[columns], self.factor, self.limits[columns])


def sample_steps(n: int, p: int) -> tuple[int, int]:
    """Return the steps between the rows that a frame is made of: the few, and the many."""
    return max(1, -(-n // 31)), max(1, -(-n // max(31, FRAME_CELLS // p)))


class Place(NamedTuple):
    """Where the columns of a table come from."""

    columns: np.ndarray
    frame: Frame

    def centers(self, centers: np.ndarray) -> np.ndarray:
        """Bring centers (runs, K, p) from the space of the data into that of the table."""
        own = self.frame.of_columns(self.columns)
        return np.clip(own.place(centers[:, :, self.columns]), -own.limits, own.limits)


def above_0(counts: np.ndarray) -> np.ndarray:
    """Return counts to divide by: 1 where there is nothing."""
    return np.where(counts > NO_MASS, counts, 1.0)


@dataclass
class Sums:
    """Totals and counts of the cases of each cluster; ``shift`` passes change them in place.

    Where cases have masses, the counts are masses.
    """

    totals: np.ndarray  # (runs, K, columns) float64
    counts: np.ndarray  # (runs, K) float64
    factored: ClassVar[bool] = False  # whether B_j of an engine has factors that these lack

    @classmethod
    def empty(cls, runs: int, K: int, columns: int) -> Self:
        """Return the sums over no case."""
        return cls(np.zeros((runs, K, columns)), np.zeros((runs, K)))

    def change(self, totals: np.ndarray, counts: np.ndarray, moved: np.ndarray) -> np.ndarray:
        """Add what totals and counts change by when cases move; return how many moved."""
        self.totals += totals
        self.counts += counts
        return moved.astype(np.int64)

    def means(self) -> np.ndarray:
        """Return the means of the clusters; 0, the location of the data, for an empty one."""
        return self.totals / above_0(self.counts)[:, :, None]

    def between(self) -> np.ndarray:
        """Return B_j = sum_k n_k (mean_kj - mean_j)^2, a row for each run."""
        mean = self.totals.sum(axis=1) / above_0(self.counts.sum(axis=1))[:, None]
        return np.einsum("rk,rkj->rj", self.counts, (self.means() - mean[:, None, :]) ** 2)

    def n_kept(self) -> float:
        """Return how many cases the only run has in its groups, an int where that is whole."""
        total = float(self.counts.sum())
        return int(total) if total.is_integer() else total

    def values_and_cells(self) -> tuple[np.ndarray, np.ndarray]:
        """Return totals (K, p) of the only run, and the number of cells (K, 1 or p) in each."""
        return self.totals[0], self.counts[0][:, None]

    def of_runs(self, index: np.ndarray | slice) -> Self:
        """Return the sums of some of the runs: a copy, or for a slice a view."""
        return type(self)(*(part[index] for part in vars(self).values()))


class Latest:
    """The latest value that was made, and the key that it was made for."""

    def __init__(self) -> None:
        self.key: Any = None
        self.value: Any = None

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the value for a key, made anew where the key is not the latest."""
        if self.key != key:
            self.key = self.value = None  # gives the old value up before the next is made
            self.value, self.key = make(), key
        return self.value


class BaseTable:
    """What the tables of all engines have: their size, their weights, and where centers belong."""

    arrays: Any
    width_factor = 1  # columns in storage for each column
    sums_type = Sums

    def __init__(self, n_cases: int, weights: np.ndarray, place: Place | None):
        self.n_cases, self.n_columns = n_cases, weights.shape[1]
        self.weights, self.width = weights, self.width_factor * self.n_columns
        self.rotated, self._place = place is None, place
        self._norms: Any = None

    @property
    def mass(self):
        return self.n_cases

    def cases_at(self, positions):
        return positions.astype(np.int64)

    def place(self, centers):
        assert self._place is not None, "a rotated table has no place for centers"
        return self._place.centers(centers)

    def seeding_table(self):
        return self

    def exclude(self, groups):
        return groups

    def descend(self, centers, m, max_iter, tol=0.0):
        return descend_by_passes(self, centers, m, max_iter, tol)

    def norms(self):
        """Return the weighted squared norm of each case, (1 or runs, n)."""
        if self._norms is None:
            self._norms = self._row_sums(self.weights)
        return self._norms

    def of_runs(self, index):
        if len(self.weights) == 1:
            return self
        part = copy.copy(self)
        part.weights, part._norms = self.weights[index], self.arrays.take(self.norms(), index)
        return part

    def _row_sums(self, weights: np.ndarray, dtype: Any = None) -> Any:
        """Return sum_j weights_j x_j^2 of each case, for each row of weights."""
        raise NotImplementedError


class BaseEngine(CellPasses):
    """What the engines for complete data answer alike.

    An engine adds the passes, and the making of its tables: ``_cells``, ``_table_of`` and, for
    rotated ones, ``_gram`` and ``_table_of_coordinates``.
    """

    arrays: Any
    weighted = False
    n_missing = n_unobserved = 0
    float32: Any = np.dtype(np.float32)  # the types of tables
    float64: Any = np.dtype(np.float64)
    sums: Callable[..., Any]  # the passes
    shift: Callable[..., Any]
    distances: Callable[..., Any]
    farthest: Callable[..., Any]

    def __init__(self, shape: tuple[int, int], dtype: Any, frame: Frame):
        self.n_cases, self.n_features = shape
        self.dtype, self.frame = np.dtype(dtype), frame
        with np.errstate(over="ignore", under="ignore"):
            # Never 0, so that an infinite distance stays infinite. Of data below 1e-154, whose
            # squares no number can hold, distances keep their order and not their size.
            self.unit = max(float(np.power(frame.factor, -2.0)), sys.float_info.min)
        self.seen: np.ndarray | None = None
        self._layouts, self._rotations = Latest(), Latest()

    # ---- The data

    def leave_out(self, unobserved: np.ndarray) -> None:
        """Note which of all cases are unobserved: the data of this engine are without them."""
        self.seen = np.flatnonzero(~unobserved)
        self.n_unobserved = len(unobserved) - len(self.seen)

    @property
    def mass(self):
        return self.n_cases

    def rounded(self, mass):
        return int(mass)

    def cases_at(self, positions):
        return positions.astype(np.int64)

    def numbers(self, cases):
        return cases if self.seen is None else self.seen[cases]

    def as_result(self, array):
        return array

    def rows(self, cases: Any) -> np.ndarray:
        """Return some of the data, in memory."""
        raise NotImplementedError

    def columns_of(self, cases, columns):
        return self.rows(cases)[:, columns]

    def distinct(self, most):
        return min(most, len(distinct_rows(self.rows, self.n_cases, most)))

    def expect(self, n_clusters, n_trim):
        pass

    def forget_part(self):
        pass

    def place(self, centers):
        return self.frame.place(centers)

    def restore(self, centers):
        return (centers / self.frame.factor + self.frame.location).astype(self.dtype)

    # ---- What missing cells would change

    def equal_weights(self):
        return np.ones((1, self.n_features))

    def little_seen(self, weights, share):
        return Listed(0, np.empty(0, np.int64))

    def between(self, sums, groups, weights):
        return sums.between()

    def set_aside(self, groups, weights):
        return self.arrays.trimmed(groups)

    def nearest(self, centers, weights):
        table = self.table(weights[None])
        assignment = table.assign(table.place(centers[None]))
        return self.arrays.only(assignment.labels)

    # ---- Cases at large distances

    def take_out_farthest(self, groups, labels, sums, m):
        if m == 0:
            none = self.arrays.trimmed(groups)
            return Remaining(none & ~none, groups, sums)
        far, largest = self.farthest(self.distances(labels, sums.means()), m)
        return self._without(groups, far, largest, sums)

    def _without(self, groups, far, largest, sums):
        """Take cases out of groups and their sums."""
        kept = self.arrays.without(groups, far)
        if largest.max() > OUTLYING_DISTANCE:
            return Remaining(far, kept, self.sums(kept, sums.counts.shape[1]))
        self.shift(sums, groups, kept)
        return Remaining(far, kept, sums)

    # ---- Tables

    def table(self, weights):
        return self._columns_table(weights, self.float64)

    def rough_table(self, weights):
        return self.table(weights)

    def compact_table(self, weights):
        return self._narrow_table(weights, self.float64)

    def search_table(self, weights):
        return self._narrow_table(weights, self.float32)

    def _narrow_table(self, weights, dtype):
        make = self._rotated_table if self._can_rotate(weights) else self._columns_table
        return make(weights, dtype)

    def _can_rotate(self, weights):
        """Whether coordinates in the space that the cases span are fewer than the columns."""
        return len(weights) == 1 and np.count_nonzero(weights) > self.n_cases

    def _columns_table(self, weights, dtype):
        columns = self._columns(weights)
        own, place = np.ascontiguousarray(weights[:, columns]), Place(columns, self.frame)
        return self._table_of(self._cells(columns, dtype), own, place)

    def _columns(self, weights):
        """Return the active columns; all where a subset would save little of a large copy."""
        active = np.flatnonzero(weights.any(axis=0))
        small = self.n_cases * len(active) * self.dtype.itemsize <= SUBSET_BYTES
        if small or len(active) <= SUBSET_SHARE * self.n_features:
            return active
        return np.arange(self.n_features)

    def _rotated_table(self, weights, dtype):
        """Return the table of coordinates in the space that the cases span: n x n, not n x q."""
        coordinates = self._rotations.get(
            weights.tobytes(), lambda: gram_coordinates(self._gram(weights))
        )
        return self._table_of_coordinates(coordinates, dtype)

    def _cells(self, columns: np.ndarray, dtype: Any) -> Any:
        """Return the cells of a table of some columns."""
        raise NotImplementedError

    def _table_of(self, cells: Any, weights: np.ndarray, place: Place) -> Any:
        raise NotImplementedError

    def _gram(self, weights: np.ndarray) -> np.ndarray:
        """Return the weighted scalar products (n, n) of the cases."""
        raise NotImplementedError

    def _table_of_coordinates(self, coordinates: np.ndarray, dtype: Any) -> Any:
        raise NotImplementedError


def distinct_rows(rows: Callable[[slice], np.ndarray], n: int, most: int) -> set[bytes]:
    """Return the first of n rows that differ, each as its bytes; hardly more than ``most``."""
    known: set[bytes] = set()
    first, step = 0, 4 * most
    while first < n and len(known) < most:
        part = rows(slice(first, min(n, first + step))) + 0.0  # -0.0 is the same as 0.0
        part[np.isnan(part)] = np.nan
        known |= {row.tobytes() for row in part}
        first, step = first + step, 4 * step
    return known


def gram_coordinates(gram: np.ndarray) -> np.ndarray:
    """Return coordinates (n, rank) with these scalar products (n, n).

    A pivoted Cholesky factor of the Gram matrix: its error is of the size that the scalar products
    have anyway, and for 78 x 4751 it takes 1 ms where a QR factorization takes 8. Rows are scaled
    to length 1 for it, so that one outlying case does not decide what counts as 0.
    """
    norms = np.sqrt(gram.diagonal())
    norms[norms == 0] = 1.0
    factor, pivots, rank, _ = lapack.dpstrf(gram / norms / norms[:, None], lower=1)
    rank = max(rank, 1)  # cases that are all alike have one coordinate, 0
    coordinates = np.empty((len(gram), rank))
    coordinates[pivots - 1] = np.tril(factor)[:, :rank]
    return coordinates * norms[:, None]


# ---- Keys of partitions


def case_numbers(first: int, last: int, n: int) -> np.ndarray:
    """Return a random whole number for each of the cases from the first to before the last of n.

    It depends on the number of the case alone, so that blocks of cases can be keyed apart
    (splitmix64). Sums of them are exact in float64.
    """
    with np.errstate(over="ignore"):
        z = np.arange(first + 1, last + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = min(KEY_BITS, EXACT_BITS - int(n).bit_length())
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(64 - bits)).astype(np.float64)


def sums_to_keys(sums: np.ndarray, marks: np.ndarray | None) -> list[bytes]:
    """Make keys of the sums (runs, 1 + K) of the numbers of trimmed cases and of each group.

    Sorted, they do not depend on how the groups are numbered. ``marks`` (runs,) are sums over a
    mask.
    """
    sums = np.hstack([sums[:, :1], np.sort(sums[:, 1:], axis=1)])
    if marks is not None:
        sums = np.hstack([sums, marks[:, None]])
    return [row.tobytes() for row in sums]
