"""What is done with one block: the passes of the engines in memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from dask.sizeof import sizeof

from rskc.engines.frame import Frame, Place
from rskc.engines.interface import Assignment, Listed, Sums
from rskc.engines.memory import PASSES, MemoryEngine, MemoryTable, to_blocks
from rskc.engines.missing import MissingEngine, MissingTable

# ---- The data


class Inspected(NamedTuple):
    """What a block of the data is like."""

    length: int
    unobserved: int  # rows of which nothing is observed
    missing: int  # cells of the other rows
    observed: np.ndarray  # (p,) whether a feature is observed at all
    infinite: bool


def clean(block: Any, dtype: np.dtype) -> np.ndarray:
    """The block as the passes take it; a view where it is that already."""
    return np.ascontiguousarray(np.asarray(block), dtype)


class Looked(NamedTuple):
    """What a block is like, and the numbers in it of its unobserved rows."""

    facts: Inspected
    unobserved: np.ndarray


def look(X: np.ndarray) -> Looked:
    """Look at all cells; the sum tells, mostly, whether there is anything to be found."""
    n, p = X.shape
    if np.isfinite(np.sum(X)):
        return Looked(Inspected(n, 0, 0, np.full(p, n > 0), False), np.empty(0, np.int64))
    missing = np.isnan(X)
    unobserved, observed = np.flatnonzero(missing.all(axis=1)), ~missing.all(axis=0)
    missing = int(np.count_nonzero(missing)) - len(unobserved) * p
    return Looked(
        Inspected(n, len(unobserved), missing, observed, bool(np.isinf(X).any())), unobserved
    )


def facts_of(looked: Looked) -> list[Inspected]:
    """What the block is like."""
    return [looked.facts]


def unobserved_of(looked: Looked) -> np.ndarray:
    """The numbers in it of its unobserved rows."""
    return looked.unobserved


def seen_rows(X: np.ndarray, unobserved: np.ndarray) -> np.ndarray:
    """The block without its unobserved rows."""
    return np.delete(X, unobserved, axis=0) if len(unobserved) else X


def engine_of(X: np.ndarray, missing: bool, frame: Frame, n_threads: int) -> MemoryEngine:
    """The engine of a block."""
    return (MissingEngine if missing else MemoryEngine)(X, frame=frame, n_threads=n_threads)


@sizeof.register(MissingEngine)
def _engine_bytes(engine: MissingEngine) -> int:
    """So that Dask sends tasks to the engine, and not the engine to tasks."""
    return engine.X.nbytes + engine.observed.nbytes + 2 * engine.missing_rows.nbytes


def rows_of(engine: MemoryEngine, index: np.ndarray) -> np.ndarray:
    """Rows of the data of an engine, NaN in missing cells."""
    rows = engine.X[index]
    if isinstance(engine, MissingEngine):
        rows[~engine.observed[index]] = np.nan
    return rows


def gather(engine: MemoryEngine, index: np.ndarray) -> list[np.ndarray]:
    """Some rows."""
    return [rows_of(engine, index)]


def all_rows(engine: MemoryEngine) -> list[np.ndarray]:
    """All rows."""
    return [rows_of(engine, np.arange(engine.n_cases))]


def every_row(X: np.ndarray) -> list[np.ndarray]:
    """All rows of the data themselves."""
    return [X]


def some_rows(X: np.ndarray, index: np.ndarray) -> list[np.ndarray]:
    """Some rows of the data themselves."""
    return [X[index]]


def first_observed(X: np.ndarray, columns: np.ndarray, most: int) -> list[list[np.ndarray]]:
    """The first observed cells of some columns."""
    cells = (X[:, j] for j in columns)
    return [[column[~np.isnan(column)][:most] for column in cells]]


def distinct_rows(X: np.ndarray, most: int) -> list[set[bytes]]:
    """Rows that differ from one another, no more than so many."""
    known: set[bytes] = set()
    for row in X:
        known.add(np.where(np.isnan(row), np.nan, row + 0.0).tobytes())  # -0.0 is 0.0
        if len(known) >= most:
            break
    return [known]


def largest_cell(X: np.ndarray) -> list[float]:
    """The largest absolute value; -inf if nothing is observed."""
    return [float(np.max(np.abs(X), where=~np.isnan(X), initial=-np.inf))]


def put_back(array: np.ndarray, unobserved: np.ndarray, value: Any) -> np.ndarray:
    """An array (n, ...) with a value for each unobserved row."""
    if len(unobserved) == 0:
        return array
    whole = np.full((len(array) + len(unobserved), *array.shape[1:]), value, array.dtype)
    whole[np.delete(np.arange(len(whole)), unobserved)] = array
    return whole


def number_of_seen(unobserved: np.ndarray, cases: np.ndarray, length: int) -> list[np.ndarray]:
    """The numbers that cases have when the unobserved rows of the block are counted."""
    return [np.delete(np.arange(length), unobserved)[cases]]


def dtype_of(array: np.ndarray) -> list[np.dtype]:
    """The type of an array."""
    return [array.dtype]


def products(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Scalar products of rows."""
    return first @ second.T


# ---- Passes of the engine


def engine_sums(engine: MemoryEngine, groups: np.ndarray, K: int) -> tuple:
    """Totals and counts over all features."""
    sums = engine.sums(groups, K)
    return sums.totals, sums.counts


def engine_shift(engine: MemoryEngine, before: np.ndarray, after: np.ndarray, K: int) -> tuple:
    """The change of the sums of complete data, and how many cases moved."""
    return _changes(engine, before, after, K, engine.n_features)


def incomplete_shift(engine: MemoryEngine, before: np.ndarray, after: np.ndarray, K: int) -> tuple:
    """The new sums of data with missing cells, and how many cases moved."""
    return *engine_sums(engine, after, K), np.count_nonzero(before != after, axis=1)


def distances(
    engine: MemoryEngine, labels: np.ndarray, centers: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Distances to the own centers."""
    return engine.distances(labels, centers, weights)


def factored(engine: MissingEngine, groups: np.ndarray, weights: np.ndarray, K: int) -> tuple:
    """Sums with the factors for missing cells."""
    return engine.factored(groups, weights, K)


def set_aside(engine: MemoryEngine, groups: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mask of the trimmed cases that are not blind."""
    return engine.set_aside(groups, weights)


def little_seen(
    engine: MemoryEngine, first: int, weights: np.ndarray, share: float, most: int
) -> list[Listed]:
    """The cases of which little is seen: how many, and the numbers of some."""
    count, cases = engine.little_seen(weights, share)
    return [Listed(count, first + cases[:most])]


def transform(engine: MemoryEngine, centers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Distances (n, K) to all centers."""
    return engine.transform(centers, weights)


# ---- Tables


class TableRecipe(NamedTuple):
    """How the table of a block is made."""

    columns: np.ndarray
    weights: np.ndarray  # (1 or runs, columns)
    dtype: np.dtype
    frame: Frame
    missing: bool
    n_threads: int

    def table(self, layout: tuple) -> MemoryTable:
        """The table of cells that are laid out."""
        made = MissingTable if self.missing else MemoryTable
        blocks, rows = layout
        return made(blocks, rows, self.weights, self.n_threads, PASSES, self.place)

    def table_of_rows(self, rows: np.ndarray) -> MemoryTable:
        """The table of rows of the data."""
        engine = engine_of(rows, self.missing, self.frame, self.n_threads)
        return self.table(engine._lay_out(self.columns, self.dtype))

    @property
    def place(self) -> Place:
        """Where centers belong."""
        return Place(self.columns, self.frame)


def lay_out(engine: MemoryEngine, columns: np.ndarray, dtype: np.dtype) -> tuple:
    """The cells of a table, in blocks and row by row."""
    return engine._lay_out(columns, dtype)


class Sides(NamedTuple):
    """What a table knows of each case besides its cells."""

    norms: np.ndarray
    scale: np.ndarray | None


def sides_of(layout: tuple, recipe: TableRecipe) -> Sides:
    """What is kept beside the cells, so that it need not be computed in each pass."""
    table = recipe.table(layout)
    return Sides(table.norms(), table.scale if isinstance(table, MissingTable) else None)


def table_of(layout: tuple, recipe: TableRecipe) -> MemoryTable:
    """The table, where nothing of it is kept."""
    return recipe.table(layout)


def kept_table(layout: tuple, sides: Sides, recipe: TableRecipe) -> MemoryTable:
    """The table of what is kept."""
    table = recipe.table(layout)
    table._norms = sides.norms
    if isinstance(table, MissingTable):
        table._scale = sides.scale
    return table


def table_of_coordinates(rows: np.ndarray) -> MemoryTable:
    """A rotated table."""
    blocks, ones = to_blocks(rows, PASSES.BLOCK), np.ones((1, rows.shape[1]))
    return MemoryTable(blocks, np.ascontiguousarray(rows).reshape(-1), ones, 1, PASSES, None)


def of_runs(table: MemoryTable, index: np.ndarray) -> MemoryTable:
    """The table for some of the runs."""
    return table.of_runs(index)


def weighted_rows(engine: MemoryEngine, columns: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The cells of a table, times the roots of their weights."""
    rows = engine._laid_out(columns, np.dtype(np.float64), 1)
    return rows.reshape(engine.n_cases, -1) * np.sqrt(weights)


def norms(table: MemoryTable) -> np.ndarray:
    """Weighted squared norms of the cases."""
    return table.norms()


def assign(table: MemoryTable, centers: np.ndarray) -> Assignment:
    """Nearest centers."""
    return table.assign(centers)


def labels_of(assignment: Assignment) -> np.ndarray:
    """The labels of an assignment."""
    return assignment.labels


def costs_of(assignment: Assignment) -> np.ndarray:
    """Its costs."""
    return assignment.costs


def cut_off(costs: np.ndarray, ties: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Mask of the costs (runs, n) above values (runs,), and of the first ties of each run."""
    mask = costs > values[:, None]
    for run in np.flatnonzero(ties):
        mask[run, np.flatnonzero(costs[run] == values[run])[: ties[run]]] = True
    return mask


def trim(labels: np.ndarray, costs: np.ndarray, ties: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Groups: the labels, -1 for what is cut off."""
    return np.where(cut_off(costs, ties, values), np.int32(-1), labels)


def exclude(table: MemoryTable, groups: np.ndarray) -> np.ndarray:
    """Groups with -1 for blind cases."""
    return table.exclude(groups)


def within(groups: np.ndarray, costs: np.ndarray) -> tuple:
    """The costs of kept cases, summed."""
    return (costs.sum(axis=1, dtype=np.float64, where=groups >= 0),)


def table_sums(table: MemoryTable, groups: np.ndarray, K: int) -> tuple:
    """Totals and counts over the columns of a table."""
    sums = table.sums(groups, K)
    return sums.totals, sums.counts


def table_shift(table: MemoryTable, before: np.ndarray, after: np.ndarray, K: int) -> tuple:
    """The change of the sums, and how many cases moved."""
    return _changes(table, before, after, K, table.width)


def changed_shift(
    engine: MemoryEngine, before: np.ndarray, after: np.ndarray, K: int, recipe: TableRecipe
) -> tuple:
    """The same where the table is not kept: one is made of the cases that moved."""
    moved = np.flatnonzero((before != after).any(axis=0))
    if len(moved) == 0:
        width = len(recipe.columns) * (2 if recipe.missing else 1)
        sums = Sums.empty(len(before), K, width)
        return sums.totals, sums.counts, np.zeros(len(before), np.int64)
    table = recipe.table_of_rows(rows_of(engine, moved))
    before, after = (np.ascontiguousarray(part[:, moved]) for part in (before, after))
    return _changes(table, before, after, K, table.width)


def regroup(moved: tuple, kept: tuple) -> tuple:
    """Both in one."""
    return *moved, *kept


def _changes(owner: Any, before: np.ndarray, after: np.ndarray, K: int, width: int) -> tuple:
    sums = Sums.empty(len(before), K, width)
    moved = owner.shift(sums, before, after)
    return sums.totals, sums.counts, moved
