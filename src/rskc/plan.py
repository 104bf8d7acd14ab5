"""What a fit takes, told before it is made: the engine, reads of the data, memory and time.

The algorithm is not described a second time. Small parts of the table are fitted with the settings
and by the passes of the fit itself, and what they take is carried over to all cells:

    seconds = a + b * cells searched on + c * cells of all cases

Most cases of a large table are seen after the search alone, so that a part of many cases whose
search is small tells c. Memory is in proportion to the cells, once limits of memory shrink with the
part too. A search is begun, and stopped after a second.
"""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from rskc.arrays import as_blocks, is_dask, is_on_device
from rskc.fitting import Rehearsal, fit
from rskc.selection.search import Search
from rskc.solver.problem import Problem
from rskc.solver.search import auto_starts, search_size
from rskc.validation import is_word
from rskc.wording import count

CLOCK = time.perf_counter
# Cells of the first part, and how much larger each of the next is, while it takes no longer than
# some tenths of a second.
FIRST_CELLS, STEP, MOST_SECONDS = 2**17, 4, 0.4
# Multiplications of a pass over a part of many cases: as long as one that has threads.
LONG_WORK, MOST_CELLS = 60_000_000, 2**24
# Cases of a part, for each cluster and at least.
CASES_OF_CLUSTER, FEWEST_CASES = 25, 300
# A search is stopped after this long. Its first tasks have few clusters: those that follow take
# this many times as long.
SEARCH_SECONDS, LATER_TASKS = 1.0, 1.3
# A cell of a larger table takes longer than one of a part: passes leave the caches, and there are
# more iterations. Settled on eight fits of 200 x 20,000 to 1,600,000 x 20, of which the parts told
# 0.5 to 1.1 of the time.
BEYOND = 1.3
# The range is this many times as short and as long; of what was made as a whole, it is less.
SPREAD, KNOWN_SPREAD = 1.6, 1.2
# Of blocks: the bytes of a case while outliers are judged, and what a thread makes of its block.
CASE_BYTES, BLOCK_SHARE = 40, 4.5
# Blocks of the part whose reads are counted.
COUNTED_BLOCKS = 8


@dataclass(frozen=True)
class Plan:
    """What a fit is going to take; printed, it says so in a few lines.

    Attributes
    ----------
    engine : str
        Who does the work: ``"memory"``, ``"blocks"`` of Dask, or ``"device"``.
    why : str
        What this follows from.
    n_samples, n_features : int
        The size of the table.
    reads : float
        How often all cells are read from their source; 1 of a table in memory.
    data_bytes : int
        The bytes of the data.
    peak_bytes : int
        Memory at its peak, data in memory included, Python and its packages not.
    seconds : tuple of float
        The least and the most that the fit is likely to take.
    """

    engine: str
    why: str
    n_samples: int
    n_features: int
    reads: float
    data_bytes: int
    peak_bytes: int
    seconds: tuple[float, float]

    @property
    def expected_seconds(self) -> float:
        """The middle of the range, on a scale of ratios."""
        return float(np.sqrt(np.prod(self.seconds)))

    def to_frame(self) -> Any:
        """Return the plan as a data frame with one row."""
        import pandas as pd

        facts = {name: value for name, value in vars(self).items() if name != "seconds"}
        least, most = self.seconds
        return pd.DataFrame([facts | {"least_seconds": least, "most_seconds": most}])

    def __str__(self) -> str:
        least, most = self.seconds
        lines = [
            f"{count(self.n_samples, 'case')} by {count(self.n_features, 'feature')}, "
            f"{in_bytes(self.data_bytes)}",
            f"Engine: {self.engine}, because {self.why}",
        ]
        if self.engine == "blocks":
            lines.append(f"Reads of the data: about {self.reads:.0f}")
        lines.append(f"Memory at its peak: about {in_bytes(self.peak_bytes)}")
        lines.append(f"Time: {in_time(least)} to {in_time(most)}")
        return "\n".join(lines)


def in_bytes(size: float) -> str:
    """Return an amount of memory in words."""
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 999.5:
            break
    return f"{size:.2g} {unit}" if size < 10 else f"{size:.0f} {unit}"


def in_time(seconds: float) -> str:
    """Return a time in words."""
    if seconds < 1:
        return "less than a second" if seconds < 0.5 else "a second"
    for unit, size in (("hour", 3600), ("minute", 60)):
        if seconds >= 2 * size:
            return count(round(seconds / size), unit)
    return count(round(seconds), "second")


def plan(X: Any, model: Any, sample_weight: Any = None) -> Plan:
    """Say what fitting a model to a table, or a search on it, is going to take.

    Parts of the table are fitted for that, which takes about two seconds. Of a table in blocks, one
    block or a few are read.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, tensor, or Dask array or dataframe
        The data, as ``fit`` takes them.
    model : RobustSparseKMeans or search
        What is to be fitted: it stays as it is. A search is one of :mod:`rskc.selection`.
    sample_weight : array-like of shape (n_samples,), default=None
        As ``fit`` takes it.

    Returns
    -------
    plan : Plan

    Examples
    --------
    >>> import rskc
    >>> from rskc.datasets import make_simulation
    >>> data = make_simulation(model=1, random_state=0).data
    >>> rskc.plan(data, rskc.RobustSparseKMeans(3)).engine
    'memory'
    """
    table = _Table.of(X, sample_weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(model, Search):
            found = _plan_of_fit(table, model.estimator)
            least, most = (_search_seconds(X, model) * np.array((1 / SPREAD, SPREAD))).tolist()
            return replace(found, seconds=(found.seconds[0] + least, found.seconds[1] + most))
        return _plan_of_fit(table, model)


# ---- The table


@dataclass(frozen=True)
class _Table:
    """A table of any kind, of which parts are taken."""

    X: Any
    weights: np.ndarray | None

    @classmethod
    def of(cls, X: Any, sample_weight: Any) -> _Table:
        """Take a table as ``fit`` does."""
        if is_dask(X):
            X = as_blocks(X)
            if np.isnan(X.shape[0]):
                raise ValueError(
                    "X does not know how many cases it has, and a plan needs their number; call "
                    "X.compute_chunk_sizes() before."
                )
        elif not hasattr(X, "shape"):
            X = np.asarray(X)
        if len(X.shape) != 2 or 0 in X.shape:
            raise ValueError(f"X has shape {tuple(X.shape)}; it must have cases and features.")
        return cls(X, None if sample_weight is None else np.asarray(sample_weight))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of cases and of features."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    @cached_property
    def n_bytes(self) -> int:
        """The bytes of the data."""
        X = self.X
        if issparse(X):
            X = X.tocsr()
            return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        if hasattr(X, "memory_usage"):  # of pandas
            return int(X.memory_usage(index=False).sum())
        return int(getattr(X, "nbytes", 8 * X.shape[0] * X.shape[1]))

    def part(self, n: int, p: int) -> _Table:
        """Return some evenly spaced cases and features, in memory or on the device of the data."""
        rows, columns = (
            np.linspace(0, most - 1, size).astype(np.int64)
            for most, size in zip(self.shape, (n, p), strict=True)
        )
        weights = None if self.weights is None else self.weights[rows]
        if is_on_device(self.X):
            from array_api_compat import array_namespace, device

            xp, X = array_namespace(self.X), self.X
            for axis, index in enumerate((rows, columns)):
                X = xp.take(X, xp.asarray(index, device=device(X)), axis=axis)
            return _Table(X, weights)
        X = _safe_indexing(self.X, rows) if n < self.shape[0] else self.X
        return _Table(_safe_indexing(X, columns, axis=1) if p < self.shape[1] else X, weights)


# ---- Parts of it are fitted


class _Took(NamedTuple):
    """What fitting a part took."""

    cells: int
    amount: float  # of seconds, or bytes


@dataclass(frozen=True)
class _Parts:
    """Fits of parts of a table, in memory or on its device, as if each were the whole."""

    table: _Table  # the whole, or what was read of it
    model: Any
    whole: tuple[int, int]

    @cached_property
    def size(self) -> int:
        """How many cases the search of the whole is made on."""
        drawn = isinstance(self.model.init, str)
        return search_size(*self.whole, self.model.n_clusters) if drawn else self.whole[0]

    def fit(self, part: _Table, share: float, n_searched: int | None = None) -> float:
        """Fit a part, which is such a share of the whole; return how long that took."""
        p, whole = part.shape[1], self.whole
        model = clone(self.model)
        model.set_params(verbose=0, random_state=0, n_init=self.n_init)
        if p < whole[1] and model.n_features is not None:
            model.set_params(n_features=max(1, model.n_features * p // whole[1]))
        if p < whole[1] and isinstance(model.l1_bound, float | int):
            model.set_params(l1_bound=max(1.0, model.l1_bound * (p / whole[1]) ** 0.5))
        start = CLOCK()
        fit(model, part.X, (), part.weights, Rehearsal(n_searched, share))
        return CLOCK() - start

    def peak(self, part: _Table, share: float, n_searched: int | None = None) -> float:
        """Fit a part; return the bytes that it takes at its peak."""
        with _traced(part.X) as peak:
            self.fit(part, share, n_searched)
        return peak[0]

    def searched_peak(self, cells: int) -> float:
        """Return the bytes that a search of the whole takes: by the line through two parts.

        They have all features, or all cases where these are fewer.
        """
        n, p, found = self.size, self.whole[1], []
        for most in {min(self.first_cells, cells // STEP), cells}:
            rows = n if n <= p else max(min(n, FEWEST_CASES), most // p)
            columns = max(1, min(p, most // n)) if n <= p and self._any_columns else p
            part, own = self.table.part(rows, columns), rows * columns
            found.append(_Took(own, self.peak(part, own / (n * p))))
        return _carried_to(n * p, sorted(found), 0.0)

    @cached_property
    def n_init(self) -> Any:
        """As many restarts as the whole has."""
        model = self.model
        if not is_word(model.n_init, "auto") or not isinstance(model.init, str):
            return model.n_init
        bound = None if model.l1_bound is None else 2.0
        problem = Problem(model.n_clusters, l1_bound=bound, n_features=model.n_features)
        return auto_starts(*self.whole, problem)

    @property
    def first_cells(self) -> int:
        """Cells of the first part: more of a sparse matrix."""
        X = self.table.X
        return int(FIRST_CELLS / (X.nnz / np.prod(X.shape) + 1e-9)) if issparse(X) else FIRST_CELLS

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Yield larger and larger parts of what is searched on, up to all of it.

        They have the shape that decides how it is searched: cases that are fewer than the features
        are rotated, and single cases are moved where there are few for each feature. Cases alone
        are left out of tall tables, features alone of wide ones.
        """
        n, p, K = self.size, self.whole[1], self.model.n_clusters
        cells = self.first_cells
        while cells < n * p:
            tall = min(n, max(1000, 2 * K * p))
            if n <= p and self._any_columns:
                yield n, max(n, cells // n)
            elif tall * p <= cells or not self._any_columns:
                yield max(cells // p, min(n, FEWEST_CASES, CASES_OF_CLUSTER * K)), p
            else:
                share = (cells / (tall * p)) ** 0.5
                yield max(FEWEST_CASES, int(1.05 * tall * share)), max(1, int(p * share))
            cells *= STEP
        yield n, p

    @property
    def _any_columns(self) -> bool:
        """Whether some of the features make sense without the others."""
        known, kinds = self.model.get_params(), getattr(self.table.X, "dtypes", None)
        asked = [known.get(name) for name in ("feature_groups", "categorical", "ordinal")]
        numbers = kinds is None or all(getattr(kind, "kind", "O") in "biuf" for kind in kinds)
        return all(each is None for each in asked) and isinstance(known["init"], str) and numbers


@contextmanager
def _traced(X: Any) -> Iterator[list[float]]:
    """Measure the bytes that are taken at most, beside those that were taken before."""
    peak: list[float] = []
    if is_on_device(X) and getattr(X.device, "type", "") == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats(X.device)
        before = torch.cuda.memory_allocated(X.device)
        yield peak
        peak.append(torch.cuda.max_memory_allocated(X.device) - before)
        return
    others = tracemalloc.is_tracing()
    if not others:
        tracemalloc.start()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        yield peak
        peak.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        if not others:
            tracemalloc.stop()


# ---- A fit


def _plan_of_fit(table: _Table, model: Any) -> Plan:
    if is_dask(table.X):
        return _plan_of_blocks(table, model)
    needs = _needs(_Parts(table, model, table.shape))
    engine, why = "memory", "X is in memory"
    if is_on_device(table.X):
        engine, why = "device", f"X is on {table.X.device}"
    peak = table.n_bytes + int(needs.peak)
    return Plan(engine, why, *table.shape, 1, table.n_bytes, peak, needs.range())


class _Needs(NamedTuple):
    """What a fit of the whole needs, by its parts."""

    seconds: float
    peak: float
    known: bool = False  # the whole was fitted

    def range(self, more: float = 0.0) -> tuple[float, float]:
        """Return the range of seconds, with some more."""
        spread, seconds = KNOWN_SPREAD if self.known else SPREAD, self.seconds + more
        return seconds / spread, seconds * spread


def _needs(parts: _Parts) -> _Needs:
    """Fit parts, larger ones while they are quick, and carry over what they take."""
    (n, p), searched, took, sizes = parts.whole, parts.size * parts.whole[1], [], []
    for size in parts.sizes():
        cells = size[0] * size[1]
        took.append(_Took(cells, parts.fit(parts.table.part(*size), cells / searched)))
        sizes.append(size)
        if len(took) > 1 and STEP * took[-1].amount > MOST_SECONDS:
            break
    seconds, peak = _carried_to(searched, took), parts.searched_peak(cells)
    if parts.size == n:
        known = cells == n * p
        return _Needs(seconds if known else BEYOND * seconds, peak, known)
    few, columns = sizes[0]
    rows = min(n, max(STEP * few, LONG_WORK // (columns * parts.model.n_clusters)))
    part, cells = parts.table.part(rows, columns), rows * columns
    with _traced(part.X) as most:  # long passes are no slower for that
        longer = parts.fit(part, cells / (n * p), few) - took[0].amount
    seconds += max(longer, 0.0) / (cells - took[0].cells) * n * p
    return _Needs(BEYOND * seconds, max(peak, most[0] / cells * n * p))


def _carried_to(cells: int, took: list[_Took], least: float = 0.5) -> float:
    """Return the amount for so many cells, by the line through the last two parts.

    A cell more takes at least a share of what a cell of the last part has taken.
    """
    last, slope = took[-1], took[-1].amount / took[-1].cells
    if len(took) > 1 and last.cells > took[-2].cells:
        steps = (last.amount - took[-2].amount) / (last.cells - took[-2].cells)
        slope = float(np.clip(steps, least * slope, slope))
    return last.amount + slope * (cells - last.cells)


# ---- A fit of blocks


def _plan_of_blocks(table: _Table, model: Any) -> Plan:
    """Add to a fit in memory the reads, and what tasks take, of a fit of some blocks."""
    from rskc.engines.blocks.schedulers import scheduler_for

    X, (n, p), scheduler = table.X, table.shape, scheduler_for()
    n_blocks, threads, budget = len(X.chunks[0]), scheduler.n_threads, scheduler.budget()
    start = CLOCK()
    known, n_read = _some_blocks(X, LONG_WORK // (p * model.n_clusters))
    a_read = (CLOCK() - start) / n_read * n_blocks * min(n_read, threads) / threads
    parts = _Parts(_Table(known, None), model, (n, p))
    needs, small = _needs(parts), FIRST_CELLS // p
    few, rows = (small, 2 * STEP * small) if small < parts.size < n else (None, STEP * small)
    known = known[:rows]
    share, n_counted = known.size / (n * p), min(n_blocks, COUNTED_BLOCKS, len(known))
    counted = _Counted(known)
    seconds = parts.fit(_Table(known, None), share, few)
    with _configured(budget * share), _traced(known) as peak:
        seconds -= parts.fit(_Table(counted.table(n_counted, X), None), share, few)
    tasks, reads = max(-seconds, 0) * n_blocks / n_counted, counted.cells / known.size
    # Threads make something of their blocks: of larger or smaller ones than here.
    work, item = BLOCK_SHARE * p * known.itemsize, min(threads, n_counted)
    kept = (peak[0] - work * item * len(known) / n_counted) / share
    kept = float(np.clip(kept, CASE_BYTES * n, budget + CASE_BYTES * n))
    bytes_ = int(kept + work * min(threads, n_blocks) * n / n_blocks)
    seconds_ = needs.range(reads * a_read + tasks)
    return Plan("blocks", "X is in blocks of Dask", n, p, reads, table.n_bytes, bytes_, seconds_)


@contextmanager
def _configured(budget: float) -> Iterator[None]:
    """Keep so many bytes of blocks, on threads of this process."""
    import dask

    with dask.config.set({"rskc.memory": int(budget) + 1, "scheduler": "threads"}):
        yield


class _Counted:
    """Rows in blocks; it counts the cells that are read of them."""

    def __init__(self, rows: np.ndarray):
        self.rows, self.cells = rows, 0

    def table(self, n_blocks: int, like: Any) -> Any:
        """Return a Dask array of the rows, whose columns are read apart if those of another are."""
        X = self._blocks(n_blocks, slice(None), self.rows.shape[1])
        if hasattr(like, "of_columns"):
            X.of_columns = lambda columns: self._blocks(n_blocks, columns, len(columns))
        return X

    def _blocks(self, n_blocks: int, columns: Any, width: int) -> Any:
        import dask.array as da

        numbers = da.arange(len(self.rows), chunks=-(-len(self.rows) // n_blocks))[:, None]
        how = {"chunks": (numbers.chunks[0], (width,)), "dtype": self.rows.dtype}
        meta = np.empty((0, 0), self.rows.dtype)
        return numbers.map_blocks(self._read, columns=columns, meta=meta, **how)

    def _read(self, numbers: np.ndarray, columns: Any) -> np.ndarray:
        rows = self.rows[numbers[0, 0] : numbers[-1, 0] + 1, columns].copy()
        self.cells += rows.size
        return rows


def _some_blocks(X: Any, n: int) -> tuple[np.ndarray, int]:
    """Read evenly spaced blocks that have so many cases together, and return how many they are."""
    import dask

    lengths = np.array(X.chunks[0])
    number = int(np.clip(np.ceil(n * len(lengths) / lengths.sum()), 1, len(lengths)))
    chosen = np.unique(np.linspace(0, len(lengths) - 1, number).astype(int))
    rows = dask.compute(*(X.blocks[int(i)] for i in chosen))
    return np.ascontiguousarray(np.concatenate(rows)), number


# ---- A search


class _Enough(Exception):
    """A search has shown how long it takes."""


def _search_seconds(X: Any, search: Search) -> float:
    """Begin a search, and return how long all its tasks are going to take."""
    start, done, expected = CLOCK(), [0], [1]
    jobs = effective_n_jobs(search.n_jobs)

    def watch(n: int, of: int) -> None:
        done[0], expected[0] = n, of
        if CLOCK() - start > SEARCH_SECONDS:
            raise _Enough

    begun = clone(search).set_params(progress=watch, n_jobs=1, checkpoint=None)
    with suppress(_Enough):
        begun.fit(X)
        return CLOCK() - start
    seconds = CLOCK() - start
    rest = expected[0] - done[0]
    return seconds + LATER_TASKS * seconds * rest / done[0] / min(jobs, rest or 1)
