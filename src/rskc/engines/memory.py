"""The engine for NumPy arrays in memory: the frame, threads, tables; missing cells are NaN.

With missing cells, distances are over the features observed in both the case and the center, scaled
up by the observed weight; means are over observed cells. The data stay as they are. A table holds
the values, 0 in a missing cell, and beside them marks, 1 where a cell is observed: then one product
of values and marks with ``[-2 w c ; w c^2]`` gives the distances, and sums of both give totals and
counts at once.

A center is NaN in a feature of which its cluster has no observed cell. A case of which nothing that
has weight is observed is *blind*: its distances are infinite, its label is 0, and it is excluded
from everything else.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import joblib
import numpy as np
from threadpoolctl import ThreadpoolController

from rskc.engines import passes_numpy
from rskc.engines.arrays import ArrayOps, Sums, labels_of, slots_of, with_cuts, with_labels
from rskc.engines.contract import (
    Assignment,
    CaseData,
    Engine,
    Grouping,
    Partitions,
    Summed,
    Table,
)
from rskc.engines.passes import PASSES

# ---- The frame

# In tables, cells beyond this many times the largest spread of a column are cut off there: sums
# then keep some digits of the others when an outlying case joins and leaves a cluster, and squares
# stay finite. What is returned is summed anew, from the data themselves.
OUTLYING = 1e9
# Cells of the rows that show how large columns are that are mostly constant.
FRAME_CELLS = 2**22


class Frame(NamedTuple):
    """Where the data lie and how large they are: all passes see (X - location) * factor.

    The factor keeps squares from overflow and underflow, whatever the scale of the data.
    """

    location: np.ndarray
    factor: float
    limits: np.ndarray  # (p,) where tables cut off, in the frame

    @classmethod
    def of(cls, X: np.ndarray, missing: bool = False) -> Frame:
        """Frame X robustly, from a sample of its rows; where cells are missing, by the others."""
        few, many = sample_steps(*X.shape)
        if missing:
            return observed_frame(X[::few], lambda j: X[:, j])
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


def observed_frame(sample: np.ndarray, column: Callable[[int], np.ndarray] | None = None) -> Frame:
    """Frame data by cells that are observed; the location is exact in their type.

    About 31 rows stand for all: in each column, missing cells among them are filled with observed
    cells, of the whole ``column`` of this number where the rows have none.
    """
    missing = np.isnan(sample)
    # The observed cells of a column, in order, over and over.
    places = np.arange(len(sample))[:, None] % np.maximum(np.count_nonzero(~missing, axis=0), 1)
    places = np.take_along_axis(np.argsort(missing, axis=0, kind="stable"), places, axis=0)
    sample = np.take_along_axis(sample, places, axis=0)
    for j in np.flatnonzero(missing.all(axis=0)):
        cells = sample[:0, j] if column is None else column(int(j))
        cells = cells[~np.isnan(cells)]
        sample[:, j] = np.resize(cells, len(sample)) if len(cells) else 0.0
    frame = Frame.from_rows(sample, sample)
    return frame._replace(location=frame.location.astype(sample.dtype).astype(np.float64))


# ---- Threads
#
# Results do not depend on their number. Long passes over the data have threads of their own, which
# wait for one another at the end. What consists of runs that take a while each is shared instead:
# threads of a pool take one part after another.

# A pass of more multiplications than this has all threads, others one: a millisecond or two.
LONG_PASS = 50_000_000
# Work of fewer multiplications is not worth the .1 ms that it takes to wake a thread.
SHARED_WORK = 20_000_000


def usable_threads(wanted: int | None) -> int:
    """Return how many threads the passes use: as many as wanted, or all that the machine allows.

    More than there are CPUs, or than OMP_NUM_THREADS allows, would only wait for one another. After
    a fork it is one: the threads of OpenMP stay behind in the parent, and the child would wait for
    them without end.
    """
    if wanted == 1 or _forks:
        return 1  # counting the CPUs takes longer than a pass
    most = max(1, min(PASSES.max_threads(), joblib.cpu_count()))
    return most if wanted is None else min(wanted, most)


class _OneBlasThread:
    """Holds BLAS to one thread while any fit is under way.

    The passes call BLAS from threads of their own, and one thread rounds alike everywhere. Fits
    may overlap in threads: the first to enter sets the limit, the last to leave restores it.
    """

    def __init__(self) -> None:
        self.lock, self.depth = threading.Lock(), 0
        self.controller: ThreadpoolController | None = None

    def __enter__(self) -> None:
        with self.lock:
            self.controller = self.controller or ThreadpoolController()
            if self.depth == 0:
                self._let_any_thread_limit()
                self.limit = self.controller.limit(limits=1, user_api="blas")
            self.depth += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                self._let_any_thread_limit()
                self.limit.restore_original_limits()
                self._let_any_thread_limit()

    def _let_any_thread_limit(self) -> None:
        """Since threadpoolctl 3.8 only the thread that set a limit can change it, in silence.

        The last fit to leave may be in another thread than the first to enter.
        """
        for library in self.controller.lib_controllers if self.controller else ():
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)


one_blas_thread = _OneBlasThread()
_forks: list[int] = []  # the processes that this one was forked from, since rskc was imported


def _note_fork() -> None:
    """Use one thread from now on; a lock that another thread held is held by nobody here."""
    _forks.append(os.getppid())
    one_blas_thread.lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_note_fork)


# ---- Work that threads share


def team(work: float, n_threads: int) -> int:
    """Return how many threads a pass of this many multiplications has: all, or one.

    OpenMP ends the threads that a smaller team leaves out, and begins new ones for a larger.
    """
    return n_threads if work > LONG_PASS else 1


def share(
    work: Callable[[slice], Any], n_runs: int, step: int, n_threads: int, size: float
) -> list[Any]:
    """Return the results of work on runs, so many at a time, made by some threads.

    ``size`` is how many multiplications all runs take; a few are not worth a part of their own.
    """
    step = step if size > SHARED_WORK else max(n_runs, 1)
    parts = [slice(first, min(first + step, n_runs)) for first in range(0, n_runs, step)]
    if min(n_threads, len(parts)) < 2:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(n_threads, thread_name_prefix="rskc") as pool:
        return list(pool.map(work, parts))


# ---- Tables

# Tables up to this size are also kept row by row: sums read single cases, twice as fast so. Larger
# ones too, if both copies together take no more than the data, as in single precision.
ROWS_BYTES = 2**27
# Rows that are looked at together.
ROWS_AT_ONCE = 16384
# Restarts go in batches whose work arrays (labels, groups, costs, sums) stay within this.
WORK_BYTES = 2**25
# Runs of a descent that a thread takes at once: as many as an iteration of them takes this many
# multiplications for, about .5 ms in all. They share a product, which has room for 6 centers.
PART_WORK, MOST_TOGETHER, TILE = 2_000_000, 8, 6
# Iterations that a descent, and rounds that single moves take, about; and the most rounds: with
# missing cells moves lower the sum over observed ones and exchanges the one scaled up, and together
# they may cycle.
USUAL_ROUNDS, MOST_ROUNDS = 8, 100
# A few runs that take more multiplications than this in an iteration share threads within passes.
FEW_RUNS, LONG_RUN = 4, 10_000_000
# The label of a case that stays where it is in single moves.
STAYS = -2


class InMemory(CaseData):
    """What engines and tables in memory do alike: passes, with masses or without."""

    arrays: Any
    passes: Any
    n_threads: int

    def _change(self, cells, location, factor, sums, before, after, masses=None):
        """Bring sums from one grouping to another; masses (1 or runs, n) if not those of the cases.

        Cells are as the pass takes them, and the number of cases in one of their blocks.
        """
        if masses is None and self.masses is not None:
            masses = self.masses[None]
        groups = before, after
        slots = (slots_of(each, self.masses) for each in groups)
        moved = np.empty(len(before), np.int64)
        threads = self._threads(len(moved) * (20 + self.width))
        facts = *cells, location, factor, masses, *map(labels_of, groups), *slots, threads
        self.passes.shift_sums(*facts, sums.totals, sums.counts, moved)
        return moved

    def _trim(self, labels, costs, m):
        """Return groups, and the costs of the kept cases summed."""
        groups, within, runs = np.empty_like(labels), np.empty(len(labels)), len(labels)
        cut, left = np.empty((runs, 1), np.int64), np.empty((runs, 1))
        facts = self.masses, m, self._threads(20 * runs)
        self.passes.trim(labels, costs, *facts, groups, within, cut, left)
        return with_cuts(groups, self.masses, cut, left), within

    def _threads(self, work_per_case: float) -> int:
        return team(work_per_case * self.n_cases, self.n_threads)


class MemoryTable(InMemory, Table):
    """Columns of the data that carry weight, or coordinates with the same distances.

    Passes are in the precision ``dtype``; cells in single precision may have passes in double.
    ``blocks`` holds the cases in blocks of ``passes.BLOCK``, column by column within a block; that
    is what products read. ``rows`` is for reading single cases: the same row by row
    (``row_block`` = 1), or ``blocks`` again where a second copy would be large. Where cells may be
    missing, the columns are those of values, and then of marks.
    """

    def __init__(
        self, cells, weights, place, how=(1, PASSES), *, masses=None, missing=False, dtype=None
    ):
        blocks, rows = cells
        n_cases = blocks.size // ((1 + missing) * weights.shape[1])
        super().__init__(ArrayOps(masses), n_cases, weights, place, missing)
        self.blocks, self.rows = blocks, blocks if rows is None else rows
        self.n_threads, self.passes = how
        self.row_block = self.passes.BLOCK if rows is None else 1
        self.dtype = blocks.dtype if dtype is None else dtype

    @property
    def work_bytes(self):
        """A batch reads the table once for all its runs: large tables get a third of their size."""
        return max(WORK_BYTES, self.n_cases * self.n_columns * 4 // 3)

    def assign(self, centers):
        shape = len(centers), self.n_cases
        labels, costs = np.empty(shape, np.int32), np.empty(shape, self.dtype)
        threads = self._threads(len(centers) * centers.shape[1] * self.width)
        centers = np.ascontiguousarray(centers, np.float64)
        facts = self.weights, centers, *self._known_of_cases(), threads
        self.passes.assign(self.blocks, self.passes.BLOCK, *facts, labels, costs)
        return Assignment(labels, costs)

    def trim(self, assignment, m):
        groups, within = self._trim(assignment.labels, assignment.costs, m)
        return Grouping(self.exclude(groups), within)

    def change(self, sums, before, after):
        cells = self.rows, self.row_block
        return self._change(cells, np.zeros(self.width), 1.0, sums, before, after)

    def descend(self, centers, m, max_iter, tol=0.0):
        runs, K, _ = centers.shape
        one_run = self.n_cases * self.width * K
        if not hasattr(self.passes, "descend") or (runs < FEW_RUNS and one_run > LONG_RUN):
            return super().descend(centers, m, max_iter, tol)
        self._known_of_cases()
        step = int(np.clip(PART_WORK // one_run, max(1, TILE // K), MOST_TOGETHER))

        def some(rows: slice) -> tuple:
            part, n_runs = self.of_runs(rows), rows.stop - rows.start
            labels = [np.empty((n_runs, self.n_cases), np.int32) for _ in range(2)]
            slots = np.empty((n_runs, 1), np.int64), np.empty((n_runs, 1))
            results = *labels, np.empty(n_runs), np.empty(n_runs, np.uint8), *slots
            cells = self.blocks, self.passes.BLOCK, self.rows, self.row_block
            facts = part.weights, *part._known_of_cases(), self.masses, m, max_iter, tol
            starts = np.ascontiguousarray(centers[rows], np.float64)
            self.passes.descend(*cells, *facts, starts, *results)
            return results

        parts = share(some, runs, step, self.n_threads, USUAL_ROUNDS * runs * one_run)
        groups, labels, within, converged, *slots = map(np.concatenate, zip(*parts, strict=True))
        kept = with_cuts(groups, self.masses, *slots)
        return Partitions(kept, labels, within, converged.astype(bool), self.arrays)

    def _known_of_cases(self):
        """Return norms, and scale where cells are missing: made before threads share runs."""
        return self.norms(), self.scale if self.missing else None

    def single_moves(self, groups, K):
        sums, cuts = self.sums(groups, K), self.arrays.cuts(groups)
        labels = labels_of(groups).copy()
        labels[cuts.run, cuts.case] = STAYS  # a case that is trimmed in part
        self._known_of_cases()

        def some(rows: slice) -> tuple:
            parts = (part[rows].copy() for part in (labels, sums.totals, sums.counts))
            results = *parts, np.empty(rows.stop - rows.start, np.int64)
            self.of_runs(rows)._move(*results)
            return results

        size = USUAL_ROUNDS * labels.size * self.width * K
        parts = share(some, len(labels), 1, self.n_threads, size)
        moved, totals, counts, _ = map(np.concatenate, zip(*parts, strict=True))
        moved[cuts.run, cuts.case] = cuts.group
        after = self.sums_type(totals, counts)
        if self.masses is not None:
            after.drop_rounding()
        return Summed(with_labels(groups, moved), after)

    def _move(self, *results):
        """Move cases in this thread; groups, totals, counts and moves change in place."""
        facts = self.weights, self._known_of_cases()[1], self.masses, MOST_ROUNDS, 1
        self.passes.single_moves(self.rows, self.row_block, *facts, *results)

    def _row_sums(self, weights, dtype=None):
        out = np.empty((len(weights), self.n_cases), dtype or self.dtype)
        threads = self._threads(self.width * len(weights))
        self.passes.row_norms(self.blocks, self.passes.BLOCK, weights, threads, out)
        return out

    def cases(self, index):
        if self.row_block == 1:
            return self.rows.reshape(self.n_cases, self.width)[index, : self.n_columns]
        first = index - index % self.row_block
        stride = np.minimum(self.row_block, self.n_cases - first)
        start = first * self.width + index - first
        return self.rows[start[..., None] + stride[..., None] * np.arange(self.n_columns)]


def to_blocks(rows: np.ndarray, block: int) -> np.ndarray:
    """Lay the rows (n, q) out in blocks, column by column within a block."""
    if block == 1:
        return rows.reshape(-1)
    return np.concatenate([rows[i : i + block].T.ravel() for i in range(0, len(rows), block)])


def passes_info() -> dict:
    """Return which passes are in use, and how many threads they may have."""
    return {
        "compiled": PASSES is not passes_numpy,
        "openmp": PASSES.HAS_OPENMP,
        "max_threads": PASSES.max_threads(),
    }


class MemoryEngine(InMemory, Engine):
    """Passes over a C-ordered float32 or float64 array."""

    work_bytes = WORK_BYTES
    rows_bytes = ROWS_BYTES
    searchable = True

    def __init__(self, X, *, masses=None, missing=False, frame=None, n_threads=1, passes=PASSES):
        frame = frame or Frame.of(X, missing)
        super().__init__(ArrayOps(masses), X.shape, X.dtype, frame, missing)
        self.X, self.n_bytes, self.n_threads, self.passes = X, X.nbytes, n_threads, passes
        self.in_place, self.cell_passes = X, passes
        # What an engine of other cases has too.
        self._options = {"frame": frame, "n_threads": n_threads, "passes": passes}
        self._options["missing"] = missing
        if missing:
            starts = range(0, self.n_cases, ROWS_AT_ONCE)
            parts = (np.isnan(X[start : start + ROWS_AT_ONCE]) for start in starts)
            missing_cells = sum(np.count_nonzero(part, axis=0) for part in parts)
            self.n_missing = int(np.sum(missing_cells))
            self.observed_features = missing_cells < self.n_cases

    def stand_for_more(self, share):
        self.rows_bytes = int(self.rows_bytes * share)

    def rows(self, cases):
        return self.X[cases]

    def part(self, cases, masses=None):
        if self.masses is not None and masses is None:
            masses = self.masses[cases]
        return type(self)(self.X[cases], masses=masses, **self._options)

    def returned(self, array, unobserved):
        array = self.arrays.as_mask(array)
        if self.seen is None:
            return array
        whole = np.full(self.n_cases + self.n_unobserved, unobserved, array.dtype)
        whole[self.seen] = array
        return whole

    def largest_cell(self):
        return float(max(np.nanmax(self.X), -np.nanmin(self.X)))

    def _factors(self, weights):
        out = np.empty((len(weights), self.n_cases))
        self.passes.missing_factors(self.X, weights, self._threads(weights.size), out)
        return out

    def _factored(self, labels, factors, K):
        sums, none = Sums.empty(len(labels), K, self.width), np.full_like(labels, -1)
        self._change((self.X.reshape(-1), 1), *self.frame[:2], sums, none, labels, factors)
        return tuple(np.split(sums.totals, 2, axis=2))

    # ---- Passes

    def change(self, sums, before, after):
        return self._change((self.X.reshape(-1), 1), *self.frame[:2], sums, before, after)

    def sums_near(self, known, groups, K):
        """Read only the cases that have moved."""
        if known is None:
            return self.sums(groups, K)
        self.shift(known.sums, known.groups, groups)
        return known.sums

    def distances(self, labels, centers, weights):
        out, frame = np.empty(labels.shape), self.frame[:2]
        threads = self._threads(len(labels) * self.n_features)
        self.passes.own_distances(
            self.X, *frame, weights, labels, centers, self.missing, threads, out
        )
        return out

    def farthest(self, distances, m):
        groups = np.zeros(distances.shape, np.int32)
        if m > 0:
            groups, _ = self._trim(groups, distances, m)
        return groups < 0, distances.max(axis=1)

    # ---- Tables

    def table_of(self, cells, weights, place, dtype):
        facts = {"masses": self.masses, "missing": self.missing, "dtype": dtype}
        return MemoryTable(cells, weights, place, (self.n_threads, self.passes), **facts)

    def _cells(self, columns, dtype):
        size = self.n_cases * len(columns) * self._cell_type(dtype).itemsize * (1 + self.missing)
        kept = size <= self.rows_bytes  # the last small ones are
        return super()._cells(columns, dtype) if kept else self.lay_out(columns, dtype)

    def lay_out(self, columns, dtype):
        """Return cells in blocks and, where there is room, row by row too (else None)."""
        dtype = self._cell_type(dtype)
        blocks, rows = self._laid_out(columns, dtype, self.passes.BLOCK), None
        most = max(self.rows_bytes, (1 + self.missing) * self.n_bytes - blocks.nbytes)
        if self.passes.BLOCK > 1 and blocks.nbytes <= most:
            rows = self._laid_out(columns, dtype, 1)
        return blocks, rows

    def _laid_out(self, columns, dtype, block):
        out = np.empty(self.n_cases * len(columns) * (1 + self.missing), dtype)
        threads = self._threads(4 * len(columns))
        self.passes.table(self.X, columns, *self.frame, block, threads, out)
        return out

    def weighted_rows(self, columns, weights):
        """Return the cells (n, columns) in the frame, times the roots of their weights."""
        rows = self._laid_out(columns, self.float64, 1).reshape(self.n_cases, -1)
        rows *= np.sqrt(weights)  # in place: wide tables are large
        return rows

    def _gram(self, weights):
        columns = self._columns(weights)
        rows = self.weighted_rows(columns, weights[0, columns])
        return rows @ rows.T

    def _table_of_coordinates(self, coordinates, dtype):
        rows = np.ascontiguousarray(coordinates, dtype)
        cells = to_blocks(rows, self.passes.BLOCK), rows.reshape(-1)
        return self.table_of(cells, np.ones((1, rows.shape[1])), None, rows.dtype)
