"""What the solver asks of an engine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from rskc.engines.cells import CellPasses
from rskc.engines.contract.results import Farthest, Listed, Remaining, Summed
from rskc.engines.contract.tables import CaseData, Table
from rskc.engines.frame import Frame, Place
from rskc.engines.groups import labels_of
from rskc.engines.keeping import Latest, distinct_rows, gram_coordinates
from rskc.engines.sums import Sums

# A squared distance, in typical deviations, beyond which subtracting a case from sums would leave
# its rounding behind.
OUTLYING_DISTANCE = 1e12
# A column subset is copied if that saves at least this share of the columns...
SUBSET_SHARE = 0.25
# ... or if the copy is small anyway.
SUBSET_BYTES = 2**25


class Engine(CellPasses, CaseData):
    """The data in their frame: centered, and scaled by a power of 2."""

    n_features: int
    n_unobserved = 0  # cases of which nothing is observed, which were left out
    gathers = False  # whether results are NumPy arrays, since the data were before they moved
    searchable: bool  # whether its tables can draw starts; a part of the cases always can
    frame: Frame  # what another engine needs to see other data in the same frame
    unit: float  # a squared distance of 1 in the frame, in the space of the data
    float32: Any = np.dtype(np.float32)  # the types of tables
    float64: Any = np.dtype(np.float64)
    n_missing: Any = 0  # cells
    observed_features: Any  # (p,) whether features are observed at all
    work_bytes: Any  # what labels, groups and masks of branches side by side may take

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
    # frame: over all features, weighted by weights (1 or runs, p) if these are given.
    distances: Callable[..., Any]
    # The m largest distances of each run, the lower case number first where they tie.
    farthest: Callable[[Any, float], Farthest]
    _factors: Callable[[np.ndarray], Any]  # all weight / observed weight (runs, n); 0 if blind
    _factored: Callable[[Any, Any, int], Any]  # sums by groups of what has these factors
    _cells: Callable[[np.ndarray, Any], Any]  # of a table of some columns
    _table_of: Callable[..., Table]
    _gram: Callable[[np.ndarray], np.ndarray]  # the weighted scalar products (n, n) of the cases
    _table_of_coordinates: Callable[[np.ndarray, Any], Table]

    def __init__(self, shape: tuple[int, int], dtype: Any, frame: Frame, missing: bool):
        self.n_cases, self.n_features = shape
        self.dtype, self.frame, self.missing = np.dtype(dtype), frame, missing
        self.width = (1 + missing) * self.n_features
        with np.errstate(over="ignore", under="ignore"):
            # Never 0, so that an infinite distance stays infinite. Of data below 1e-154, whose
            # squares no number can hold, distances keep their order and not their size.
            self.unit = max(float(np.power(frame.factor, -2.0)), sys.float_info.min)
        self.seen: np.ndarray | None = None
        self._layouts, self._rotations = Latest(), Latest()

    # ---- The data

    def rounded(self, mass: float) -> float:
        """Return a mass in whole cases, rounded down, where masses are whole."""
        return int(mass) if self.masses is None or self.arrays.copies else float(mass)

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

    def expect(self, n_clusters: int, n_trim: float) -> None:
        """Get ready for problems with so many clusters and trimmed cases."""

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

    def place(self, centers: np.ndarray) -> np.ndarray:
        """Bring centers (runs, K, p) from the space of the data into the frame."""
        return self.frame.place(centers)

    def restore(self, centers: np.ndarray) -> np.ndarray:
        """Bring them back."""
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
        cases = self.arrays.numbers_where((factors == 0) | (factors * share > 1))
        return Listed(len(cases), cases)

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
        trimmed = self.arrays.trimmed(groups)
        return trimmed & (self._factors(weights[None]) > 0) if self.missing else trimmed

    # ---- Distances

    def nearest(self, centers: np.ndarray, weights: np.ndarray) -> Any:
        """Return the number (n,) of the nearest of the centers (K, p), given in the space of X.

        It is what ``table(weights).assign`` finds, by weighted distance in double precision.
        """
        table = self.table(weights[None])
        assignment = table.assign(table.place(centers[None]))
        return self.arrays.only(assignment.labels)

    def squared(self, centers: np.ndarray, weights: np.ndarray) -> Any:
        """Return weighted squared distances (n, K) of all cases to centers (K, p) in the frame.

        They are in the units and the precision of the data.
        """
        found = self._to_all(centers, weights) * self.unit
        return self.arrays.from_numpy(found.astype(self.dtype))

    def transform(self, centers: np.ndarray, weights: np.ndarray) -> Any:
        """Return their roots, also where the squares overflow the precision of the data."""
        roots = np.sqrt(self._to_all(centers, weights)) / self.frame.factor
        return self.arrays.from_numpy(roots.astype(self.dtype))

    def _to_all(self, centers: np.ndarray, weights: np.ndarray) -> Any:
        labels = self.arrays.from_numpy(np.zeros((len(centers), self.n_cases), np.int32))
        found = self.distances(labels, centers[:, None, :], weights[None])
        return self.arrays.to_numpy(found).T

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
            none = self.arrays.trimmed(groups)
            return Remaining(none & ~none, groups, sums)
        far, largest = self.farthest(self.distances(labels, sums.means()), m)
        return self._without(groups, far, largest, sums)

    def _without(self, groups: Any, far: Any, largest: np.ndarray, sums: Sums) -> Remaining:
        """Take cases out of groups and their sums."""
        kept = self.arrays.without(groups, far)
        if largest.max() > OUTLYING_DISTANCE:
            return Remaining(far, kept, self.sums(kept, sums.counts.shape[1]))
        self.shift(sums, groups, kept)
        return Remaining(far, kept, sums)

    # ---- Tables

    def table(self, weights: np.ndarray) -> Table:
        """Return the table for weights (1 or runs, p), whose passes are in double precision."""
        return self._columns_table(weights, self.float64)

    def rough_table(self, weights: np.ndarray) -> Table:
        """Return such a table for iterations whose last ones are made with ``table``.

        Where that could not be kept in memory, its cells may be rounded to single precision.
        """
        return self.table(weights)

    def compact_table(self, weights: np.ndarray) -> Table:
        """Return a table with the same distances and as few columns as possible."""
        return self._narrow_table(weights, self.float64)

    def search_table(self, weights: np.ndarray) -> Table:
        """Return such a table in the precision that is fastest for many runs."""
        return self._narrow_table(weights, self.float32)

    def _narrow_table(self, weights: np.ndarray, dtype: Any) -> Table:
        make = self._rotated_table if self._can_rotate(weights) else self._columns_table
        return make(weights, dtype)

    def _can_rotate(self, weights: np.ndarray) -> bool:
        """Whether coordinates in the space that the cases span are fewer than the columns."""
        few = len(weights) == 1 and np.count_nonzero(weights) > self.n_cases
        return bool(few) and not self.missing

    def _columns_table(self, weights: np.ndarray, dtype: Any) -> Table:
        columns = self._columns(weights)
        weights, place = np.ascontiguousarray(weights[:, columns]), Place(columns, self.frame)
        return self._table_of(self._cells(columns, dtype), weights, place, dtype)

    def _columns(self, weights: np.ndarray) -> np.ndarray:
        """Return the active columns; all where a subset would save little of a large copy."""
        active = np.flatnonzero(weights.any(axis=0))
        small = self.n_cases * len(active) * self.dtype.itemsize <= SUBSET_BYTES
        if small or len(active) <= SUBSET_SHARE * self.n_features:
            return active
        return np.arange(self.n_features)

    def _rotated_table(self, weights: np.ndarray, dtype: Any) -> Table:
        """Return the table of coordinates in the space that the cases span: n x n, not n x q."""
        coordinates = self._rotations.get(
            weights.tobytes(), lambda: gram_coordinates(self._gram(weights))
        )
        return self._table_of_coordinates(coordinates, dtype)

    def _cell_type(self, dtype: Any) -> Any:
        """Return how a table of this precision keeps its cells: those of float32 data stay so."""
        return self.float32 if self.dtype == np.float32 else dtype
