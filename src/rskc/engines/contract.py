"""What the solver asks of an engine: the contract, and what is done alike in all places.

Rules of an engine:

- An engine is one place where data are: memory, blocks of a cluster, a device. Missing cells and
  masses of the cases are facts about its data, and no engines of their own.
- Every pass takes a leading axis of runs, so that many restarts, or several branches, are one
  matrix product.
- Arrays of length n - labels, groups, costs, masks - are of the engine's own kind and stay where
  the data are. The solver hands them on, joins masks by ``&``, ``|`` and ``~``, multiplies costs by
  a number, and leaves all else to ``arrays``, the engine's :class:`ArrayOps`.
  What has K x p numbers, or one for each run, is NumPy's.
- Groups are labels, with -1 for a trimmed case. Where cases have masses, sums, sizes, medians and
  what is trimmed are by mass, and the last case that is trimmed may be so in part
  (:mod:`rskc.engines.arrays`).
- Of cells that are missing nothing is imputed (:mod:`rskc.engines.memory`).
- The same data give the same bits for any number of threads.

:class:`Engine`, :class:`Table` and :class:`ArrayOps` have a body wherever there is one for all; an
engine is what differs. It adds the passes, and the making of its tables: ``_cells``, ``table_of``
and, for rotated ones, ``_gram`` and ``_table_of_coordinates``.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from rskc.engines.arrays import ArrayOps, MissingSums, Sums, labels_of
from rskc.engines.passes import PASSES
from rskc.engines.passes_numpy import factors_of

if TYPE_CHECKING:
    from rskc.engines.memory import Frame

# A squared distance, in typical deviations, beyond which subtracting a case from sums would leave
# its rounding behind.
OUTLYING_DISTANCE = 1e12
# A column subset is copied if that saves at least this share of the columns...
SUBSET_SHARE = 0.25
# Rows that are looked at together, to see whether they differ.
DISTINCT_BYTES = 2**23


# ---- What passes return: arrays of length n are of the engine's own kind


class Assignment(NamedTuple):
    """The nearest center of every case and what the case costs there, a row for each run."""

    labels: Any  # (runs, n) int32
    costs: Any  # (runs, n), weighted squared distances in the units of the table


class Grouping(NamedTuple):
    """Groups, the labels with -1 for a trimmed case, and the costs of the kept cases summed."""

    groups: Any  # (runs, n) int32
    within: np.ndarray  # (runs,)


class Regrouping(NamedTuple):
    """A grouping, and how many cases of each run were in another group before."""

    groups: Any  # (runs, n) int32
    within: np.ndarray  # (runs,)
    moved: np.ndarray  # (runs,)


@dataclass
class Partitions:
    """Partitions of the cases, a row for each run; groups and labels are the engine's arrays."""

    groups: Any  # (runs, n) int32: labels, -1 for a trimmed case
    labels: Any  # (runs, n) int32: trimmed cases have one too
    within: np.ndarray  # (runs,) weighted within sum of squares of the kept cases, table units
    converged: np.ndarray  # (runs,) bool
    arrays: ArrayOps

    def __len__(self) -> int:
        return len(self.within)

    def take(self, rows: np.ndarray | slice) -> Partitions:
        """Return some of the runs."""
        groups, labels = (self.arrays.take(part, rows) for part in (self.groups, self.labels))
        return Partitions(groups, labels, self.within[rows], self.converged[rows], self.arrays)

    def join(self, *others: Partitions) -> Partitions:
        """Return these runs and those."""
        every = [self, *others]
        return Partitions(
            self.arrays.join([part.groups for part in every]),
            self.arrays.join([part.labels for part in every]),
            np.concatenate([part.within for part in every]),
            np.concatenate([part.converged for part in every]),
            self.arrays,
        )

    def replace(self, rows: np.ndarray, other: Partitions) -> Partitions:
        """Return the runs with others in the place of some."""
        order = np.arange(len(self))
        order[rows] = len(self) + np.arange(len(rows))
        return self.join(other).take(order)

    def best(self, most: int, K: int) -> Partitions:
        """Return the runs of least within sum, each partition once, whatever its numbering.

        Of the runs with the same partition the first is taken: their within sums differ by rounding
        alone, which depends on the engine.
        """
        first: dict[bytes, int] = {}
        for run, key in enumerate(self.arrays.keys(self.groups, K)):
            first.setdefault(key, run)
        runs = np.fromiter(first.values(), np.int64)
        return self.take(runs[np.argsort(self.within[runs], kind="stable")[:most]])


class Summed(NamedTuple):
    """Groups, and the sums of each over the columns of a table, or over all features."""

    groups: Any  # (runs, n) int32
    sums: Sums


class Remaining(NamedTuple):
    """What is left of groups when the farthest cases are taken out too."""

    far: Any  # (runs, n) a mask of these cases
    kept: Any  # (runs, n) int32: groups without them
    sums: Sums  # of these groups


class Listed(NamedTuple):
    """How many cases there are of some kind, and the numbers of the first of them."""

    total: int
    first: np.ndarray


# ---- Tables


class Place(NamedTuple):
    """Where the columns of a table come from."""

    columns: np.ndarray
    frame: Frame

    def centers(self, centers: np.ndarray) -> np.ndarray:
        """Bring centers (runs, K, p) from the space of the data into that of the table."""
        frame = self.frame.of_columns(self.columns)
        return np.clip(frame.place(centers[:, :, self.columns]), -frame.limits, frame.limits)


class CaseData:
    """What an engine and its tables know of their cases, and sums over these."""

    # ``shift``, whatever rounding leaves in empty clusters: sums may be a change of others.
    change: Callable[[Sums, Any, Any], np.ndarray]

    def __init__(self, arrays: Any, n_cases: int, n_columns: int, missing: bool):
        self.arrays, self.xp = arrays, arrays.xp
        self.n_cases, self.missing = n_cases, missing  # whether cells may be missing
        self.masses = arrays.masses  # (n,) of the kind of arrays; None where all count the same
        # Columns of sums: of values, and of marks where cells may be missing.
        self.width = (1 + missing) * n_columns
        self.sums_type: type[Sums] = MissingSums if missing else Sums
        # The mass of all cases: their number, if nothing else is said of them.
        self.mass: float = n_cases if self.masses is None else float(arrays.host_masses.sum())

    def cases_at(self, positions: np.ndarray) -> np.ndarray:
        """Return the cases at positions from 0 to the mass of all, one after another by mass."""
        if self.masses is None:
            return positions.astype(np.int64)
        ladder = np.cumsum(self.arrays.host_masses)
        return np.minimum(np.searchsorted(ladder, positions, side="right"), self.n_cases - 1)

    def sums(self, groups: Any, K: int) -> Sums:
        """Sum the cases of each group (runs, n)."""
        sums = self.sums_type.empty(len(groups), K, self.width)
        self.shift(sums, np.full_like(labels_of(groups), -1), groups)
        return sums

    def shift(self, sums: Sums, before: Any, after: Any) -> np.ndarray:
        """Bring sums from one grouping to another; return how many cases changed in each run."""
        moved = self.change(sums, before, after)
        if self.masses is not None:
            sums.drop_rounding()
        return moved

    def changed(self, sums: Sums, change: Any) -> np.ndarray:
        """Add what totals and counts change by; return how many cases moved in each run."""
        moved = sums.change(*change)
        if self.masses is not None:
            sums.drop_rounding()
        return moved


class Table(CaseData):
    """The columns that carry weight, centered: what step (a), a trimmed K-means, works on.

    Centers are given in the coordinates of the table.
    """

    work_bytes: Any  # what labels, groups, costs and sums of a batch of runs may take

    # ---- What a table adds

    assign: Callable[[np.ndarray], Assignment]  # the nearest of the centers (runs, K, columns)
    # Trim the m cases, or the mass m, of largest cost, the lower number first where costs tie.
    trim: Callable[[Assignment, float], Grouping]
    cases: Callable[[np.ndarray], np.ndarray]  # coordinates (..., columns); not in blocks
    in_memory: Callable[[], Table]  # the same table in memory, where it is not there
    _row_sums: Callable[..., Any]  # sum_j weights_j x_j^2 of each case, for each row of weights

    def __init__(
        self,
        arrays: Any,
        n_cases: int,
        weights: np.ndarray,
        place: Place | None,
        missing: bool = False,
    ):
        super().__init__(arrays, n_cases, weights.shape[1], missing)
        self.n_columns = weights.shape[1]
        self.weights = weights  # (1 or runs, columns); 1 where coordinates contain them
        # Coordinates of its own, in which centers of the data cannot be placed, have no place.
        self.rotated, self._place = place is None, place
        self._norms: Any = None
        self._scale: Any = None

    # ---- Passes

    def regroup(self, assignment: Assignment, m: float, sums: Sums, before: Any) -> Regrouping:
        """Trim, and bring the sums of the groups before to those of the new ones."""
        groups, within = self.trim(assignment, m)
        return Regrouping(groups, within, self.shift(sums, before, groups))

    def descend(self, centers: np.ndarray, m: float, max_iter: int, tol: float = 0.0) -> Partitions:
        """Run trimmed Lloyd from each of the centers (runs, K, columns).

        A run ends, and leaves the batch, when nothing in it changes, or when its within sum falls
        by no more than ``tol`` of itself.
        """
        table = self
        runs, converged = np.arange(len(centers)), np.zeros(len(centers), bool)
        ended_runs, ended = [], []
        assignment = table.assign(centers)
        groups, within = table.trim(assignment, m)
        sums = table.sums(groups, centers.shape[1])
        for iteration in range(max_iter + 1):
            if iteration:
                assignment = table.assign(centers)
                before = within
                groups, within, moved = table.regroup(assignment, m, sums, groups)
                # A sum that no longer falls goes round in ties or in rounding.
                converged = (moved == 0) | (within >= before * (1 - tol))
            if not sums.counts.all():  # empty groups get a case
                filled = table.arrays.fill_empty(groups, sums.counts, assignment.costs)
                table.shift(sums, groups, filled)
                groups = filled
            # A cluster that is empty all the same keeps its center.
            centers = np.where((sums.counts == 0)[:, :, None], centers, sums.means())
            now = Partitions(groups, assignment.labels, within, converged, table.arrays)
            del assignment  # of blocks, it is kept while somebody may ask for it
            done = converged | (iteration == max_iter)
            if done.any():
                ended_runs.append(runs[done])
                ended.append(now.take(np.flatnonzero(done)))
                if done.all():
                    break
                stay = np.flatnonzero(~done)
                table, runs, now = table.of_runs(stay), runs[stay], now.take(stay)
                groups, within, centers = now.groups, now.within, centers[stay]
                sums = sums.of_runs(stay)
        if len(ended) == 1:
            return ended[0]
        return ended[0].join(*ended[1:]).take(np.argsort(np.concatenate(ended_runs)))

    def single_moves(self, groups: Any, K: int) -> Summed:
        """Move single cases while the within sum falls, one after the other: of small tables."""
        moved, sums = self.in_memory().single_moves(self.arrays.gathered(groups), K)
        return Summed(self.arrays.from_numpy(moved), sums)

    def place(self, centers: np.ndarray) -> np.ndarray:
        """Bring centers (runs, K, p) from the space of the data into that of the table."""
        assert self._place is not None, "a rotated table has no place for centers"
        return self._place.centers(centers)

    # ---- What a table knows of each case

    def of_runs(self, index: np.ndarray | slice) -> Any:
        """Return the table for some of the runs only (each may have its own weights)."""
        if len(self.weights) == 1:
            return self
        part = copy.copy(self)
        part.weights, part._norms = self.weights[index], self.arrays.take(self.norms(), index)
        if self.missing:
            part._scale = self.arrays.take(self.scale, index)
        return part

    def exclude(self, groups: Any) -> Any:
        """Return groups with -1 also for cases of which nothing that has weight is observed."""
        return self.arrays.without(groups, self.scale == 0) if self.missing else groups

    def typical_norm(self) -> float:
        """Return the weighted squared norm of a typical case."""
        return self.arrays.middle(self.norms())

    def norms(self) -> Any:
        """Return the weighted squared norm of each case, (1 or runs, n)."""
        if self._norms is None:
            marks = [np.zeros_like(self.weights)] * self.missing
            self._norms = self._row_sums(np.hstack([self.weights, *marks]))
        return self._norms

    @property
    def scale(self) -> Any:
        """Factor of distances for missing cells: all weight / observed weight; 0 if blind."""
        if self._scale is None:
            total = self.weights.sum(axis=1, keepdims=True)
            of_marks = np.hstack([np.zeros_like(self.weights), self.weights])
            observed = self._row_sums(of_marks, self.xp.float64)
            self._scale = factors_of(observed, self.arrays.asarray(total), self.xp)
        return self._scale


# ---- Engines


class Engine(CaseData):
    """The data in their frame: centered, and scaled by a power of 2."""

    n_unobserved = 0  # cases of which nothing is observed, which were left out
    gathers = False  # whether results are NumPy arrays, since the data were before they moved
    source: Any = None  # the blocks of an array in memory, which is locked while they live
    searchable: bool  # whether its tables can draw starts; a part of the cases always can
    float32: Any = np.dtype(np.float32)  # the types of tables
    float64: Any = np.dtype(np.float64)
    n_missing: Any = 0  # cells
    observed_features: Any  # (p,) whether features are observed at all
    work_bytes: Any  # what labels, groups and masks of branches side by side may take
    n_threads = 1
    in_place: np.ndarray | None = None  # the data, where they are one array in memory
    subset_bytes: float = 2**25  # up to which a subset of the columns is copied in any case
    cell_passes: Any = PASSES  # for errors that are bounded, which are found in memory

    # ---- What an engine adds

    # Some of the cases as they were given, in memory; NaN for a missing cell.
    rows: Callable[[Any], np.ndarray]
    # An engine for some of the cases, in the same frame; they may have other masses there.
    part: Callable[..., Engine]
    # An array (n,) as the user gets it, with a value for unobserved cases. In a mask, a case that
    # is trimmed in part is named with the others.
    returned: Callable[[Any, Any], Any]
    largest_cell: Callable[[], float]  # the largest absolute value in the data
    # Squared distances (runs, n) of cases to the centers (runs, K, p) of their labels, in the
    # frame, weighted by weights (1 or runs, p).
    distances: Callable[[Any, np.ndarray, np.ndarray], Any]
    # A mask (runs, n) of the m largest distances of each run, the lower case number first where
    # they tie, and the largest of each run.
    farthest: Callable[[Any, float], tuple[Any, np.ndarray]]
    _factors: Callable[[np.ndarray], Any]  # all weight / observed weight (runs, n); 0 if blind
    _factored: Callable[[Any, Any, int], Any]  # sums by groups of what has these factors
    lay_out: Callable[[np.ndarray, Any], Any]  # the cells of a table of some columns
    table_of: Callable[..., Table]
    _gram: Callable[[np.ndarray], np.ndarray]  # the weighted scalar products (n, n) of the cases
    _table_of_coordinates: Callable[[np.ndarray, Any], Table]

    def __init__(
        self, arrays: Any, shape: tuple[int, int], dtype: Any, frame: Frame, missing: bool
    ):
        super().__init__(arrays, *shape, missing)
        self.n_features, self.dtype, self.frame = shape[1], np.dtype(dtype), frame
        with np.errstate(over="ignore", under="ignore"):
            # A squared distance of 1 in the frame, in the space of the data.
            # Never 0, so that an infinite distance stays infinite. Of data below 1e-154, whose
            # squares no number can hold, distances keep their order and not their size.
            self.unit = max(float(np.power(frame.factor, -2.0)), sys.float_info.min)
        self.seen: np.ndarray | None = None
        self._layouts, self._rotations = Latest(), Latest()

    # ---- The data

    def rounded(self, mass: float) -> float:
        """Return a mass in whole cases, rounded down, where masses are whole."""
        masses = self.arrays.host_masses
        return int(mass) if masses is None or (masses == np.rint(masses)).all() else float(mass)

    def leave_out(self, unobserved: np.ndarray) -> None:
        """Note which of all cases are unobserved: the data of this engine are without them."""
        self.seen = np.flatnonzero(~unobserved)
        self.n_unobserved = len(unobserved) - len(self.seen)

    def numbers(self, cases: np.ndarray) -> np.ndarray:
        """Return the numbers that cases have in the data, unobserved ones counted."""
        return cases if self.seen is None else self.seen[cases]

    def as_result(self, array: np.ndarray) -> Any:
        """Return an array that is not of length n as the user gets it."""
        return array

    def stand_for_more(self, share: float) -> None:
        """Use memory as an engine would of whose cells these are a share: limits shrink as much."""

    def columns_of(self, cases: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return some columns of some cases."""
        return self.rows(cases)[:, columns]

    def forget_part(self) -> None:
        """Give up what is kept of the last part: it is not needed any more."""

    def distinct(self, most: int) -> int:
        """Count the cases that differ from one another, up to ``most``."""
        return min(most, len(distinct_rows(self.rows, self.n_cases, most)))

    def restore(self, centers: np.ndarray) -> np.ndarray:
        """Bring centers (runs, K, p) from the frame into the space of the data."""
        return (centers / self.frame.factor + self.frame.location).astype(self.dtype)

    # ---- What missing cells change

    def equal_weights(self) -> np.ndarray:
        """Return weights (1, p) of 1, and 0 for features that are nowhere observed."""
        if not self.missing:
            return np.ones((1, self.n_features))
        return self.observed_features[None].astype(np.float64)

    def little_seen(self, weights: np.ndarray, share: float) -> Listed:
        """List the cases of which less than this share of the weight is observed."""
        if not self.missing:
            return Listed(0, np.empty(0, np.int64))
        factors = self._factors(weights[None])[0, :]
        (cases,) = self.xp.nonzero((factors == 0) | (factors * share > 1))
        return Listed(cases.shape[0], self.arrays.to_numpy(cases))

    def between(self, sums: Any, groups: Any, weights: np.ndarray) -> np.ndarray:
        """Return B_j (runs, p) of groups with these sums, which these weights (runs, p) made.

        Each case's terms are multiplied by the factor for its missing cells.
        """
        if not self.missing:
            return sums.between()
        parts = self.factored(groups, weights, sums.counts.shape[1])
        return np.where(self.observed_features, sums.factored_between(*parts), -1.0)

    def factored(self, groups: Any, weights: np.ndarray, K: int) -> Any:
        """Return sums (runs, K, p) of f x, and of f over observed cells; f is a case's factor."""
        factors = self._factors(weights)
        if self.masses is not None:
            factors = factors * self.arrays.kept_masses(groups)
        return self._factored(labels_of(groups), factors, K)

    def set_aside(self, groups: Any, weights: np.ndarray) -> Any:
        """Return a mask of the trimmed cases of which something that has weight is observed."""
        trimmed = groups < 0
        return trimmed & (self._factors(weights[None]) > 0) if self.missing else trimmed

    # ---- Distances

    def nearest(self, centers: np.ndarray, weights: np.ndarray) -> Any:
        """Return the number (n,) of the nearest of the centers (K, p), given in the space of X.

        It is what ``table(weights).assign`` finds, by weighted distance in double precision.
        """
        table = self.table(weights[None])
        assignment = table.assign(table.place(centers[None]))
        return assignment.labels[0, ...]

    def squared(self, centers: np.ndarray, weights: np.ndarray) -> Any:
        """Return weighted squared distances (n, K) of all cases to centers (K, p).

        They are in the units and the precision of the data, in whose space the centers are.
        """
        return self.in_type_of_data(self._to_all(centers, weights) * self.unit)

    def transform(self, centers: np.ndarray, weights: np.ndarray) -> Any:
        """Return their roots, also where the squares overflow the precision of the data."""
        roots = self.xp.sqrt(self._to_all(centers, weights)) / self.frame.factor
        return self.in_type_of_data(roots)

    def in_type_of_data(self, array: Any) -> Any:
        """Return an array in the precision of the data."""
        return self.xp.asarray(array, dtype=getattr(self.xp, self.dtype.name))

    def _to_all(self, centers: np.ndarray, weights: np.ndarray) -> Any:
        shape, placed = (len(centers), self.n_cases), self.frame.place(centers)[:, None, :]
        labels = self.xp.zeros(shape, dtype=self.xp.int32, **self.arrays.there)
        return self.distances(labels, placed, weights[None]).T

    def sums_near(self, known: Summed | None, groups: Any, K: int) -> Sums:
        """Return sums of groups, where those of groups are known that differ little.

        What is known may be changed in place.
        """
        return self.sums(groups, K)

    def take_out_farthest(self, groups: Any, labels: Any, sums: Sums, m: float) -> Remaining:
        """Take the m cases that are farthest from the means of their labels out of each run.

        ``sums``, over all features, are those of the groups; they may be changed in place.
        """
        if m == 0:
            return Remaining(groups < -1, groups, sums)  # none
        distances = self.distances(labels, sums.means(), self.equal_weights())
        far, largest = self.farthest(distances, m)
        return self._without(groups, far, largest, sums)

    def _without(self, groups: Any, far: Any, largest: np.ndarray, sums: Sums) -> Remaining:
        """Take cases out of groups and their sums."""
        kept = self.arrays.without(groups, far)
        if largest.max() > OUTLYING_DISTANCE:
            return Remaining(far, kept, self.sums(kept, sums.counts.shape[1]))
        self.shift(sums, groups, kept)
        return Remaining(far, kept, sums)

    # ---- Tables

    def table(self, weights: np.ndarray, dtype: Any = None) -> Table:
        """Return the table for weights (1 or runs, p).

        Passes are in double precision, if no other one is given.
        """
        dtype, columns = dtype or self.float64, self._columns(weights)
        weights, place = np.ascontiguousarray(weights[:, columns]), Place(columns, self.frame)
        return self.table_of(self._cells(columns, dtype), weights, place, dtype)

    def compact_table(self, weights: np.ndarray, dtype: Any = None) -> Table:
        """Return a table with the same distances and as few columns as possible, for a search.

        That is the table of columns, or of fewer coordinates in the space that the cases span.
        """
        dtype = dtype or self.float64
        if not self._can_rotate(weights):
            return self.table(weights, dtype)
        key = weights.tobytes()
        coordinates = self._rotations.get(key, lambda: gram_coordinates(self._gram(weights)))
        return self._table_of_coordinates(coordinates, dtype)

    def _can_rotate(self, weights: np.ndarray) -> bool:
        """Whether coordinates in the space that the cases span are fewer than the columns."""
        few = len(weights) == 1 and np.count_nonzero(weights) > self.n_cases
        return bool(few) and not self.missing

    def _cells(self, columns: np.ndarray, dtype: Any) -> Any:
        """Return the cells of a table; the last are kept.

        Weights change more often than which of them are above 0.
        """
        dtype = self._cell_type(dtype)
        make = partial(self.lay_out, columns, dtype)
        return self._layouts.get((dtype, columns.tobytes()), make)

    def _columns(self, weights: np.ndarray) -> np.ndarray:
        """Return the active columns; all where a subset would save little of a large copy."""
        active = np.flatnonzero(weights.any(axis=0))
        small = self.n_cases * len(active) * self.dtype.itemsize <= self.subset_bytes
        if small or len(active) <= SUBSET_SHARE * self.n_features:
            return active
        return np.arange(self.n_features)

    def _cell_type(self, dtype: Any) -> Any:
        """Return how a table of this precision keeps its cells: those of float32 data stay so."""
        return self.float32 if self.dtype == np.float32 else dtype


# ---- What engines keep


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


def distinct_rows(rows: Callable[[slice], np.ndarray], n: int, most: int) -> set[bytes]:
    """Return the first of n rows that differ, each as its bytes; hardly more than ``most``."""
    known: set[bytes] = set()
    largest = max(1, DISTINCT_BYTES // max(1, rows(slice(0, 1)).nbytes))
    first, step = 0, min(4 * most, largest)
    while first < n and len(known) < most:
        part = rows(slice(first, min(n, first + step))) + 0.0  # -0.0 is the same as 0.0
        part[np.isnan(part)] = np.nan
        known |= {row.tobytes() for row in part}
        first, step = first + step, min(4 * step, largest)
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
