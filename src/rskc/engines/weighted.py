"""The engines in memory for cases that have masses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rskc.engines.base import NO_MASS, BaseEngine, BaseTable, Sums
from rskc.engines.interface import Farthest, Grouping, Moved
from rskc.engines.masses import (
    Parted,
    WeightedCases,
    no_slots,
    parts_differ,
    weighted_median,
    whole,
)
from rskc.engines.memory import MemoryEngine, MemoryTable, NumpyCases, table_of_coordinates
from rskc.engines.missing import MissingEngine, MissingTable
from rskc.engines.sparse import SparseEngine, SparseTable


class WeightedNumpyCases(WeightedCases, NumpyCases):
    """:class:`~rskc.engines.interface.Cases` for NumPy arrays of cases with masses."""

    def __init__(self, masses: np.ndarray):
        self.masses = masses

    def masses_at(self, cases):
        return self.masses[cases]

    def values_at(self, array, run, case):
        return array[run, case]

    def put(self, array, run, case, values):
        array = np.array(array)
        array[run, case] = values
        return array


class WeightedOwner:
    """What engines and tables with masses do alike."""

    weighted = True
    arrays: Any
    masses: Any  # (n,) float64, of the engine's kind
    total_mass: float
    ladder: np.ndarray | None = None

    @property
    def mass(self):
        return self.total_mass

    def cases_at(self, positions):
        if self.ladder is None:
            masses = self.masses
            own = masses if isinstance(masses, np.ndarray) else self.arrays.to_numpy(masses)
            self.ladder = np.cumsum(own)
        found = np.searchsorted(self.ladder, positions, side="right")
        return np.minimum(found, len(self.ladder) - 1)


class WeightedSums(WeightedOwner):
    """What engines and tables in memory do with sums: cases by mass, and parts of cases beside."""

    def correct(self, sums: Sums, before: Any, after: Any, rows_of: Callable) -> None:
        """Put back into sums what was trimmed of cases before, and take out what is so after."""
        one, other = self.arrays.cuts(before), self.arrays.cuts(after)
        parts = one, other._replace(gone=-other.gone)
        run, case, group, gone = (np.concatenate(pair) for pair in zip(*parts, strict=True))
        if len(run):
            np.add.at(sums.totals, (run, group), gone[:, None] * rows_of(case))
            np.add.at(sums.counts, (run, group), gone)

    def change(self, sums: Sums, before: Any, after: Any) -> np.ndarray:
        """Bring sums, or a part of them, from one grouping to another."""
        raise NotImplementedError

    def shift(self, sums: Sums, before: Any, after: Any) -> np.ndarray:
        """Bring sums from one grouping to another."""
        moved = self.change(sums, before, after)
        without_rounding(sums)
        return moved


def slots_of(groups: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return cut and left (runs, slots) as the passes take them."""
    if not isinstance(groups, Parted):
        return no_slots(len(groups))
    return np.ascontiguousarray(groups.cut), np.ascontiguousarray(groups.left)


def without_rounding(sums: Sums) -> None:
    """Make clusters empty that have no more than what rounding left in them."""
    empty = sums.counts < NO_MASS
    if empty.any():
        sums.counts[empty], sums.totals[empty] = 0.0, 0.0


class WeightedTableMixin(WeightedSums, BaseTable):
    """A table in memory whose cases have masses."""

    blocks: Any
    rows: Any
    row_block: int
    passes: Any
    _gather: Any
    _threads: Any

    def trim(self, assignment, m):
        labels, costs = assignment
        groups, within = np.empty_like(labels), np.empty(len(labels))
        cut, left = np.empty((len(labels), 1), np.int64), np.empty((len(labels), 1))
        threads = self._threads(20 * len(groups))
        self.passes.trim(labels, costs, self.masses, m, threads, groups, within, cut, left)
        return Grouping(self.exclude(Parted(groups, cut, left)), within)

    def sums(self, groups, K):
        sums = self.sums_type.empty(len(whole(groups)), K, self.width)
        self.shift(sums, np.full_like(whole(groups), -1), groups)
        return sums

    def change(self, sums, before, after):
        moved = np.empty(len(whole(before)), np.int64)
        self.passes.shift_sums(
            self.rows,
            self.row_block,
            np.zeros(self.width),
            1.0,
            self.masses[None],
            whole(before),
            whole(after),
            *slots_of(before),
            *slots_of(after),
            self._threads(len(moved) * self.width),
            sums.totals,
            sums.counts,
            moved,
        )
        return moved

    def single_moves(self, groups, K, max_rounds=100):
        return self._move_masses(self.passes.single_moves, None, groups, K, max_rounds)

    def _move_masses(self, moves_of, scale, groups, K, max_rounds):
        """Move cases; those that are trimmed in part stay where they are."""
        sums, cuts = self.sums(groups, K), self.arrays.cuts(groups)
        stay = np.full(len(cuts.run), -2, np.int32)
        own = self.arrays.put(whole(groups), cuts.run, cuts.case, stay)
        moves = np.empty(len(own), np.int64)
        moves_of(
            self.rows,
            self.row_block,
            self.weights,
            scale,
            self.masses,
            max_rounds,
            self._threads(own.size),
            own,
            sums.totals,
            sums.counts,
            moves,
        )
        own[cuts.run, cuts.case] = cuts.group
        without_rounding(sums)
        after = Parted(own, groups.cut, groups.left) if isinstance(groups, Parted) else own
        return Moved(after, sums, moves)

    def typical_norm(self):
        norms = self.norms()
        masses = np.broadcast_to(self.masses, norms.shape)
        return weighted_median(norms.reshape(-1), masses.reshape(-1))


class WeightedTable(WeightedTableMixin, MemoryTable):
    """Columns of complete data."""


class WeightedMissingTable(WeightedTableMixin, MissingTable):
    """Values and marks of the columns that carry weight."""

    def single_moves(self, groups, K, max_rounds=100):
        return self._move_masses(self.passes.single_moves, self.scale, groups, K, max_rounds)


def give_masses(table: Any, masses: np.ndarray) -> Any:
    """Tell a table the masses of its cases, and return it."""
    table.masses, table.total_mass = masses, float(masses.sum())
    table.arrays = WeightedNumpyCases(masses)
    return table


class WeightedEngineMixin(WeightedSums, BaseEngine):
    """An engine in memory whose cases have masses."""

    passes: Any
    arrays: Any
    sums_type: Any
    width: int
    X: np.ndarray
    n_threads: int
    _threads: Any

    def __init__(self, X, *, masses, **options):
        super().__init__(X, **options)
        self.masses, self.total_mass = masses, float(masses.sum())
        self.arrays = WeightedNumpyCases(masses)
        self.copies = bool((masses == np.rint(masses)).all())

    def rounded(self, mass):
        return int(mass) if self.copies else float(mass)

    def part(self, cases, masses=None):
        options = {"n_threads": self.n_threads, "passes": self.passes, "frame": self.frame}
        masses = self.masses[cases] if masses is None else masses
        return type(self)(self.rows(cases), masses=masses, **options)

    def returned(self, array, unobserved):
        if isinstance(array, Parted):  # a case that is trimmed in part is named with the others
            array, cut = array.array.copy(), array.cut[array.cut >= 0]
            array[cut] = True
        return super().returned(array, unobserved)  # type: ignore[misc]

    def sums(self, groups, K):
        sums = self.sums_type.empty(len(whole(groups)), K, self.width)
        WeightedSums.shift(self, sums, np.full_like(whole(groups), -1), groups)
        return sums

    def change(self, sums, before, after):
        moved = np.empty(len(whole(before)), np.int64)
        location, factor, _ = self.frame
        self.passes.shift_sums(
            self.X.reshape(-1),
            1,
            location,
            factor,
            self.masses[None],
            whole(before),
            whole(after),
            *slots_of(before),
            *slots_of(after),
            self._threads(len(moved) * self.width),
            sums.totals,
            sums.counts,
            moved,
        )
        return moved

    def farthest(self, distances, m):
        groups, largest = np.zeros(distances.shape, np.int32), distances.max(axis=1)
        if m <= 0:
            return Farthest(groups < 0, largest)
        runs, labels = len(groups), np.zeros_like(groups)
        cut, left, kept = np.empty((runs, 1), np.int64), np.empty((runs, 1)), np.empty(runs)
        threads = self._threads(20 * runs)
        self.passes.trim(labels, distances, self.masses, m, threads, groups, kept, cut, left)
        return Farthest(Parted(groups < 0, cut, left), largest)

    def _table_of(self, cells, weights, place):
        return give_masses(super()._table_of(cells, weights, place), self.masses)

    def _table_of_coordinates(self, coordinates, dtype):
        rows, options = coordinates.astype(dtype), (self.n_threads, self.passes, WeightedTable)
        return give_masses(table_of_coordinates(rows, *options), self.masses)


class WeightedEngine(WeightedEngineMixin, MemoryEngine):
    """Passes over an array without missing cells."""

    table_type = WeightedTable


class WeightedMissingEngine(WeightedEngineMixin, MissingEngine):
    """Passes over an array in which NaN marks a missing cell."""

    table_type = WeightedMissingTable

    def factored(self, groups, weights, K):
        factors = self._factors(weights) * self.arrays.kept_masses(groups)
        return self._factored(whole(groups), factors, K)


class WeightedSparseTable(WeightedTableMixin, SparseTable):
    """Columns of a sparse matrix."""

    def change(self, sums, before, after):
        moved = self.cells.shift(sums, whole(before), whole(after), self.masses)
        self.correct(sums, before, after, self.cells.rows)
        return moved + parts_differ(before, after)

    def single_moves(self, groups, K, max_rounds=100):
        return self._move_masses(self.move_runs, None, groups, K, max_rounds)


class WeightedSparseEngine(WeightedEngineMixin, SparseEngine):
    """Passes over a sparse matrix."""

    table_type, sparse_table_type = WeightedTable, WeightedSparseTable

    def part(self, cases, masses=None):
        options = {"n_threads": self.n_threads, "passes": self.passes, "frame": self.frame}
        masses = self.masses[cases] if masses is None else masses
        options |= {"masses": masses, "dense_bytes": self.dense_bytes}
        return type(self)(self.X[cases], **options)

    def change(self, sums, before, after):
        moved = self.cells.shift(sums, whole(before), whole(after), self.masses)
        self.correct(sums, before, after, self.cells.rows)
        return moved + parts_differ(before, after)
