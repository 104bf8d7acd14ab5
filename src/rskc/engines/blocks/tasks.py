"""What is done with one block, beyond calling the passes of the engines in memory."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rskc.engines.arrays import ArrayOps, Sums, labels_of, with_cuts
from rskc.engines.blocks.schedulers import Value
from rskc.engines.contract import Listed
from rskc.engines.memory import MemoryEngine, MemoryTable
from rskc.engines.passes import PASSES
from rskc.exceptions import not_numpy

# Tables of blocks up to this size are kept row by row too: less than in memory, where there is one.
ROWS_BYTES = 2**25

# ---- The data


class Facts(NamedTuple):
    """What is known of a block of the data."""

    length: int
    unobserved: Any  # rows of which nothing is observed: which in the block, or how many
    missing: int  # cells of the other rows
    observed: np.ndarray  # (p,) whether a feature is observed at all
    infinite: bool


def clean(block: Any, dtype: np.dtype) -> np.ndarray:
    """Return the block as the passes take it; a view where it is that already."""
    if hasattr(block, "toarray"):  # sparse, although the array looked dense
        raise not_numpy(block)
    return np.ascontiguousarray(np.asarray(block), dtype)


def inspect(X: np.ndarray) -> Facts:
    """Look at all cells; the sum mostly shows whether there is anything to find."""
    n, p = X.shape
    if np.isfinite(np.sum(X)):
        return Facts(n, np.empty(0, np.int64), 0, np.full(p, n > 0), False)
    missing = np.isnan(X)
    rows, observed = np.flatnonzero(missing.all(axis=1)), ~missing.all(axis=0)
    cells = int(np.count_nonzero(missing)) - len(rows) * p
    return Facts(n, rows, cells, observed, bool(np.isinf(X).any()))


def facts_and_rows(found: Facts, X: np.ndarray, cases: np.ndarray) -> tuple:
    """Return what is known of a block, and some of its rows."""
    return found._replace(unobserved=len(found.unobserved)), X[cases[cases < len(X)]]


def seen_rows(X: np.ndarray, unobserved: np.ndarray) -> np.ndarray:
    """Return the block without its unobserved rows."""
    return np.delete(X, unobserved, axis=0) if len(unobserved) else X


def put_back(array: np.ndarray, unobserved: np.ndarray, value: Any) -> np.ndarray:
    """Return an array (n, ...) with a value for each unobserved row."""
    if len(unobserved) == 0:
        return array
    whole = np.full((len(array) + len(unobserved), *array.shape[1:]), value, array.dtype)
    whole[np.delete(np.arange(len(whole)), unobserved)] = array
    return whole


def number_of_seen(unobserved: np.ndarray, cases: np.ndarray) -> np.ndarray:
    """Return the numbers of cases when the unobserved rows of the block are counted."""
    seen_before = unobserved - np.arange(len(unobserved))
    return cases + np.searchsorted(seen_before, cases, side="right")


def first_observed(X: np.ndarray, columns: np.ndarray, most: int) -> list[np.ndarray]:
    """Return the first observed cells of some columns."""
    return [column[~np.isnan(column)][:most] for column in (X[:, j] for j in columns)]


def largest_cell(X: np.ndarray) -> float:
    """Return the largest absolute value; -inf if nothing is observed."""
    return float(np.max(np.abs(X), where=~np.isnan(X), initial=-np.inf))


# ---- Engines


def engine_of(X: np.ndarray, ops: ArrayOps, **options: Any) -> MemoryEngine:
    """Return the engine of a block."""
    engine = MemoryEngine(X, masses=ops.masses, **options)
    engine.rows_bytes = ROWS_BYTES
    return engine


def sums_of(owner: Any, groups: Any, K: int) -> tuple:
    """Return totals and counts over the columns of an engine or a table."""
    sums = owner.sums(groups, K)
    return sums.totals, sums.counts


def changes_of(owner: Any, before: Any, after: Any, K: int) -> tuple:
    """Return the change of the sums of an engine or a table, and how many cases moved."""
    sums = Sums.empty(len(before), K, owner.width)
    moved = owner.change(sums, before, after)
    return sums.totals, sums.counts, moved


class Examined(NamedTuple):
    """Distances (runs, n), sums over cases beyond a bracket, and the cases in it."""

    distances: np.ndarray
    beyond: Sums
    high: np.ndarray  # (runs,) the upper end of the bracket
    near: np.ndarray  # numbers of cases in the bracket of some run
    engine: MemoryEngine  # of these


def examined(
    engine: Any,
    groups: np.ndarray,
    labels: np.ndarray,
    K: int,
    bracket: Sequence[np.ndarray],
    **facts: np.ndarray,
) -> Examined:
    """Find distances, and what it takes to sum over those above a value in the bracket."""
    distances, (low, high) = engine.distances(labels, **facts), bracket
    beyond = distances > high[:, None]
    near = np.flatnonzero(((distances >= low[:, None]) & ~beyond).any(axis=0))
    sums = engine.sums(np.where(beyond, groups, np.int32(-1)), K)
    return Examined(distances, sums, high, near, engine.part(near))


def is_bracketed(found: Examined, far: np.ndarray) -> bool:
    """Whether the farthest cases are those beyond the bracket, and some of those in it."""
    others = np.ones(far.shape[1], bool)
    others[found.near] = False
    beyond = found.distances > found.high[:, None]
    return bool((beyond == far)[:, others].all()) and not (beyond & ~far).any()


def taken_out(found: Examined, groups: np.ndarray, far: np.ndarray, K: int) -> tuple:
    """Return how sums change without the farthest cases, and how many these were."""
    taken = far & (groups >= 0)
    near = taken & (found.distances <= found.high[:, None])
    own = np.ascontiguousarray(np.where(near, groups, np.int32(-1))[:, found.near])
    sums = found.engine.sums(own, K)
    totals, counts = found.beyond.totals + sums.totals, found.beyond.counts + sums.counts
    return -totals, -counts, taken.sum(axis=1)


def little_seen(engine: Any, first: int, weights: np.ndarray, share: float, most: int) -> Listed:
    """Return how many cases have little observed weight, and the numbers of some."""
    count, cases = engine.little_seen(weights=weights, share=share)
    return Listed(count, first + cases[:most])


# ---- Tables


def table_of(cells: tuple, ops: ArrayOps, n_threads: int, **facts: Any) -> MemoryTable:
    """Return the table of cells that are laid out."""
    return MemoryTable(cells, how=(n_threads, PASSES), masses=ops.masses, **facts)


def known_of(table: Any) -> Value:
    """Return what a table knows of each case, so that it need not be computed in each pass."""
    table = getattr(table, "owner", table)  # of a table on a device
    return Value((table.norms(), table.scale if table.missing else None))


def with_known(table: Any, known: tuple) -> Any:
    """Return a table that knows this of each case."""
    owner = getattr(table, "owner", table)
    owner._norms, owner._scale = known
    return table


def cut_off(
    ops: ArrayOps, costs: np.ndarray, ties: np.ndarray, values: np.ndarray, slack: float
) -> Any:
    """Return a mask of the costs (runs, n) above values (runs,), and of the first ties.

    Where cases have masses, ties are masses too, and the last case may go in part.
    """
    mask = costs > values[:, None]
    if ops.masses is None:
        for run in np.flatnonzero(ties):
            mask[run, np.flatnonzero(costs[run] == values[run])[: ties[run]]] = True
        return mask
    cut, left = np.full((len(costs), 1), -1), np.zeros((len(costs), 1))
    for run in np.flatnonzero(ties > slack):
        cases = np.flatnonzero(costs[run] == values[run])
        gone = np.cumsum(ops.masses[cases])
        n_whole = int(np.searchsorted(gone, ties[run] + slack, side="right"))
        mask[run, cases[:n_whole]] = True
        rest = ties[run] - (gone[n_whole - 1] if n_whole else 0.0)
        if n_whole < len(cases) and rest > slack:
            cut[run], left[run] = cases[n_whole], ops.masses[cases[n_whole]] - rest
    return with_cuts(mask, ops.masses, cut, left)


def within(ops: ArrayOps, groups: Any, costs: np.ndarray) -> tuple:
    """Sum the costs of kept cases, times their masses, as the only item of a tuple."""
    own = costs if ops.masses is None else ops.kept_masses(groups) * costs
    return (own.sum(axis=1, dtype=np.float64, where=labels_of(groups) >= 0),)


def changes_of_moved(
    engine: Any, before: np.ndarray, after: np.ndarray, K: int, columns: np.ndarray, **facts: Any
) -> tuple:
    """Return the change of the sums of a table that is not kept: made of the cases that moved.

    ``columns`` are those of the table in the engine.
    """
    moved = np.flatnonzero((before != after).any(axis=0))
    part = engine.part(moved)
    table = part.table_of(part.lay_out(columns, facts["dtype"]), **facts)
    before, after = (np.ascontiguousarray(part[:, moved]) for part in (before, after))
    return changes_of(table, before, after, K)
