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
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from rskc.inputs.arrays import as_blocks, is_dask, is_on_device
from rskc.inputs.categories import CategoryEncoder, encoded_blocks
from rskc.inputs.frames import NUMBERS, kinds_of
from rskc.inputs.validation import check_device, is_word
from rskc.model.fitting import fit
from rskc.selection.search import Search
from rskc.solver.alternate import Problem
from rskc.solver.search import auto_starts, search_size
from rskc.utils.wording import count, in_bytes, in_time


@dataclass(frozen=True)
class AnyTable:
    """A table of any kind, of which parts are taken."""

    X: Any
    weights: np.ndarray | None

    @classmethod
    def of(cls, X: Any, sample_weight: Any) -> AnyTable:
        """Take a table as ``fit`` does."""
        if is_dask(X):
            is_coded = hasattr(X, "columns") and set(kinds_of(X._meta)) != {NUMBERS}
            X = encoded_blocks(X, CategoryEncoder().fit(X)) if is_coded else as_blocks(X)
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

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return self.shape[0] * self.shape[1]

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

    def part(self, n: int, p: int) -> AnyTable:
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
            return AnyTable(X, weights)
        X = _safe_indexing(self.X, rows) if n < self.shape[0] else self.X
        return AnyTable(_safe_indexing(X, columns, axis=1) if p < self.shape[1] else X, weights)


CLOCK = time.perf_counter
# Cells of the first part, and how much larger each of the next is, while it takes less than this
# many seconds.
FIRST_CELLS, STEP, MOST_SECONDS = 2**17, 4, 2.0
# Multiplications of a pass over a part of many cases: as long as one that has threads.
LONG_WORK = 60_000_000
# Cases of a part, for each cluster and at least.
CASES_OF_CLUSTER, FEWEST_CASES = 25, 300
# A search is stopped after this long.
SEARCH_SECONDS = 1.0
# A cell of a larger table takes longer than one of a part: passes leave the caches, and there are
# more iterations. Settled on eight fits of 200 x 20,000 to 1,600,000 x 20, of which the parts told
# 0.5 to 1.1 of the time.
LARGE_TABLE_FACTOR = 1.3
# The range is this many times as short and as long; of what was made as a whole, it is less.
SPREAD, KNOWN_SPREAD = 1.6, 1.2
# Of blocks: the bytes of a case while outliers are judged, and what a thread makes of its block.
CASE_BYTES, BLOCK_SHARE = 40, 4.5
# Blocks of the part whose reads are counted.
COUNTED_BLOCKS, COUNTED_CELLS = 8, 2**19


@dataclass(frozen=True)
class Plan:
    """What a fit is going to take; printed, it says so in a few lines.

    Attributes
    ----------
    engine : str
        Who does the work: ``"memory"``, ``"blocks"`` of Dask, ``"device"``, or ``"blocks on a
        device"``.
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

    @property
    def time(self) -> str:
        """The range in words."""
        least, most = (in_time(seconds) for seconds in self.seconds)
        return least if least == most else f"{least} to {most}"

    @property
    def memory(self) -> str:
        """The peak in words."""
        return in_bytes(self.peak_bytes)

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return asdict(self)

    def to_frame(self) -> Any:
        """Return the plan as a data frame with one row."""
        import pandas as pd

        return pd.DataFrame([self.as_dict()])

    def __str__(self) -> str:
        size = f"{count(self.n_samples, 'case')} by {count(self.n_features, 'feature')}"
        in_blocks = self.engine.startswith("blocks")
        reads = f"Reads of the data: about {self.reads:.0f}\n" if in_blocks else ""
        return (
            f"{size}, {in_bytes(self.data_bytes)}\n"
            f"Engine: {self.engine}, because {self.why}\n{reads}"
            f"Memory at its peak: about {self.memory}\n"
            f"Time: {self.time}"
        )


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
    table = AnyTable.of(X, sample_weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(model, Search):
            found = _plan_of_fit(table, model.estimator)
            least, most = (_search_seconds(X, model) * np.array((1 / SPREAD, SPREAD))).tolist()
            return replace(found, seconds=(found.seconds[0] + least, found.seconds[1] + most))
        return _plan_of_fit(table, model)


# ---- Parts of it are fitted


class _Took(NamedTuple):
    """What fitting a part took."""

    cells: int
    seconds: float
    work: float  # of processors, in seconds
    peak: float  # bytes


@dataclass(frozen=True)
class _Parts:
    """Fits of parts of a table, in memory or on its device, as if each were the whole."""

    table: AnyTable  # the whole, or what was read of it
    model: Any
    whole: tuple[int, int]
    in_blocks: bool = False  # so that parts in memory stay there

    @cached_property
    def size(self) -> int:
        """How many cases the search of the whole is made on."""
        drawn = isinstance(self.model.init, str)
        return search_size(*self.whole, self.model.n_clusters) if drawn else self.whole[0]

    def traced(self, part: AnyTable, share: float, n_searched: int | None = None) -> _Took:
        """Fit a part, which is such a share of the whole; return what that took."""
        start, worked = CLOCK(), time.process_time()
        with _traced(_place_of(part.X, self.model)) as peak:
            self.fit(part, share, n_searched)
        return _Took(part.n_cells, CLOCK() - start, time.process_time() - worked, peak[0])

    def fit(self, part: AnyTable, share: float, n_searched: int | None) -> None:
        """Fit a part, with the settings of the whole, and as many restarts."""
        model, p, n_features = clone(self.model), part.shape[1], self.whole[1]
        model.set_params(verbose=0, random_state=0)
        if self.in_blocks and not is_dask(part.X):
            model.set_params(device=None)
        if is_word(model.n_init, "auto") and isinstance(model.init, str):
            bound = None if model.l1_bound is None else 2.0
            problem = Problem(model.n_clusters, l1_bound=bound, n_features=model.n_features)
            model.set_params(n_init=auto_starts(*self.whole, problem))
        if p < n_features and model.n_features is not None:
            model.set_params(n_features=max(1, model.n_features * p // n_features))
        if p < n_features and isinstance(model.l1_bound, float | int):
            model.set_params(l1_bound=max(1.0, model.l1_bound * (p / n_features) ** 0.5))
        fit(model, part.X, (), part.weights, n_searched=n_searched, share=share)

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Yield larger and larger parts of what is searched on, up to all of it.

        They have the shape that decides how it is searched: cases that are fewer than the features
        are rotated, and single cases are moved where there are few for each feature. Cases alone
        are left out of tall tables, features alone of wide ones.
        """
        X, n, p, K = self.table.X, self.size, self.whole[1], self.model.n_clusters
        fewest = min(n, max(FEWEST_CASES, CASES_OF_CLUSTER * K))
        density = X.nnz / np.prod(X.shape) + 1e-9 if issparse(X) else 1.0
        cells, any_columns = int(FIRST_CELLS / density), self._any_columns()
        while cells < n * p:
            tall = min(n, max(1000, 2 * K * p))
            if n <= p and any_columns:
                yield n, max(n, cells // n)
            elif tall * p <= cells or not any_columns:
                yield max(cells // p, fewest), p
            else:
                share = (cells / (tall * p)) ** 0.5
                yield min(n, max(fewest, int(1.05 * tall * share))), max(1, int(p * share))
            cells *= STEP
        yield n, p

    def _any_columns(self) -> bool:
        """Whether some of the features make sense without the others."""
        known, kinds = self.model.get_params(), getattr(self.table.X, "dtypes", None)
        asked = [known.get(name) for name in ("feature_groups", "categorical", "ordinal")]
        numbers = kinds is None or all(getattr(kind, "kind", "O") in "biuf" for kind in kinds)
        return all(each is None for each in asked) and isinstance(known["init"], str) and numbers


def _place_of(X: Any, model: Any) -> str:
    """Return the name of the device of a fit, "cpu" if it has none."""
    return str(X.device) if is_on_device(X) else model.device or "cpu"


@contextmanager
def _traced(place: str) -> Iterator[list[float]]:
    """Measure the bytes that are taken at most, beside those that were taken before."""
    peak: list[float] = []
    if place.startswith("cuda"):
        import torch

        torch.cuda.reset_peak_memory_stats(place)
        before = torch.cuda.memory_allocated(place)
        yield peak
        peak.append(torch.cuda.max_memory_allocated(place) - before)
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


class _Needs(NamedTuple):
    """What a fit of the whole needs, by its parts."""

    seconds: float
    peak: float
    of_search: float
    spread: float  # the range is this many times as short and as long

    def range(self, more: float = 0.0) -> tuple[float, float]:
        """Return the range of seconds, with some more."""
        return (self.seconds + more) / self.spread, (self.seconds + more) * self.spread


def _plan_of_fit(table: AnyTable, model: Any) -> Plan:
    engine, why = "memory", "X is in memory"
    if model.device is not None and isinstance(table.X, np.ndarray):
        from rskc.engines.blocks.devices import placed

        X = placed(table.X, check_device(model.device, table.X))
        if is_dask(X):
            return _plan_of_blocks(AnyTable(X, table.weights), model)
        engine, why = "device", f"all of X fits on {model.device}"
    if is_dask(table.X):
        return _plan_of_blocks(table, model)
    if is_on_device(table.X):
        engine, why = "device", f"X is on {table.X.device}"
    needs = _needs(_Parts(table, model, table.shape))
    peak = table.n_bytes + int(needs.peak)
    return Plan(engine, why, *table.shape, 1, table.n_bytes, peak, needs.range())


def _needs(parts: _Parts) -> _Needs:
    """Fit parts, larger ones while they are quick, and carry over what they take."""
    (n, p), searched, took = parts.whole, parts.size * parts.whole[1], []
    for size in parts.sizes():
        part = parts.table.part(*size)
        took.append(parts.traced(part, part.n_cells / searched))
        if len(took) > 1 and STEP * took[-1].work > MOST_SECONDS:
            break
    seconds = _carried_to(searched, [(one.cells, one.seconds) for one in took], 0.5)
    peak = _carried_to(searched, [(one.cells, one.peak) for one in took], 0.0)
    if took[-1].cells == n * p:  # the whole was fitted
        return _Needs(seconds, peak, peak, KNOWN_SPREAD)
    if parts.size == n:
        return _Needs(LARGE_TABLE_FACTOR * seconds, peak, peak, SPREAD)
    few, columns = next(parts.sizes())
    rows = min(n // STEP, max(STEP * few, LONG_WORK // (columns * parts.model.n_clusters)))
    share = rows * columns / (n * p)
    part = parts.table.part(rows, columns)
    if parts.in_blocks and parts.model.device is not None:
        from rskc.engines.blocks.devices import cut

        part = AnyTable(cut(part.X, -(-rows // COUNTED_BLOCKS)), part.weights)
    last = parts.traced(part, share, few)
    a_cell = max(last.seconds - took[0].seconds, 0.0) / (last.cells - took[0].cells)
    seconds = LARGE_TABLE_FACTOR * (seconds + a_cell * n * p)
    return _Needs(seconds, max(peak, last.peak / share), peak, SPREAD)


def _carried_to(cells: int, amounts: list[tuple[int, float]], least: float) -> float:
    """Return the amount for so many cells, by the line through those of the last two parts.

    A cell more takes at least a share of what a cell of the last part has taken.
    """
    last, amount = amounts[-1]
    slope = amount / last
    if len(amounts) > 1 and last > amounts[-2][0]:
        steps = (amount - amounts[-2][1]) / (last - amounts[-2][0])
        slope = float(np.clip(steps, least * slope, slope))
    return amount + slope * (cells - last)


def _plan_of_blocks(table: AnyTable, model: Any) -> Plan:
    """Add to a fit in memory the reads, and what tasks take, of a fit of some blocks."""
    import dask

    from rskc.engines.blocks.data import CountedRows, read_blocks, spaced_blocks
    from rskc.engines.blocks.schedulers import scheduler_for

    X, (n, p), scheduler = table.X, table.shape, scheduler_for()
    if model.device is not None:
        from rskc.engines.blocks.devices import DEVICE_THREADS

        scheduler.most_threads = DEVICE_THREADS
    n_blocks, threads, budget = len(X.chunks[0]), scheduler.n_threads, scheduler.budget()
    # A pass reads in order, by all threads: files are read fastest so. The first read warms up.
    spaced = spaced_blocks(X, LONG_WORK // (p * model.n_clusters))
    known = read_blocks(X, spaced)
    start, timed = CLOCK(), min(threads, n_blocks)
    dask.compute(*map(dask.delayed(len), X.blocks[:timed].to_delayed().ravel()))
    a_read = (CLOCK() - start) * n_blocks / timed
    parts = _Parts(AnyTable(known, None), model, (n, p), in_blocks=True)
    needs, small = _needs(parts), COUNTED_CELLS // p
    few, rows = (small, 2 * STEP * small) if small < parts.size < n else (None, STEP * small)
    known = known[:rows]
    share, n_counted = known.size / (n * p), min(n_blocks, COUNTED_BLOCKS, len(known))
    counted = CountedRows(known)
    start = CLOCK()
    parts.fit(AnyTable(known, None), share, few)
    in_memory, start = CLOCK() - start, CLOCK()
    copies = _Copies(model.device, known)
    settings = copies.settings(scheduler, share, n_blocks, n_counted)
    settings |= {"rskc.memory": int(budget * share) + 1, "scheduler": "threads"}
    with dask.config.set(settings):
        parts.fit(AnyTable(counted.table(n_counted, X), None), share, few)
    tasks = max(CLOCK() - start - in_memory, 0) * n_blocks / n_counted
    reads = counted.cells / known.size
    engine, why = "blocks", "X is in blocks of Dask"
    if model.device is not None:
        engine, why = "blocks on a device", f"passes over blocks are made on {model.device}"
    kept = needs.peak + (table.n_bytes if table.n_bytes <= budget / 2 else 0)
    work = BLOCK_SHARE * table.n_bytes * min(threads, n_blocks) / n_blocks
    sample = parts.size * p * known.itemsize
    most = CASE_BYTES * n + min(budget, kept) + max(work, needs.of_search) + sample
    seconds = needs.range(reads * a_read + copies.seconds() / share + tasks)
    return Plan(engine, why, n, p, reads, table.n_bytes, int(most), seconds)


class _Copies:
    """Copies of rows to the device of a fit, if it has one: their number, and what they take."""

    def __init__(self, device: str | None, known: np.ndarray):
        self.known, self.device = known, device
        if device is not None:
            from rskc.engines.blocks.devices import device_named

            self.place = device_named(device)
            self.before = self.place.n_copied

    def settings(self, scheduler: Any, share: float, n_blocks: int, n_counted: int) -> dict:
        """Return the memory of a device for a share of a table: what is kept of it is the same."""
        if self.device is None:
            return {}
        from rskc.engines.blocks.devices import BLOCKS_IN_WORK, free_on

        budget = scheduler.device_budget(partial(free_on, self.device)) * share
        more = scheduler.n_threads * (1 / n_counted - 1 / n_blocks)
        return {"rskc.device-memory": int(budget + BLOCKS_IN_WORK * more * self.known.nbytes) + 1}

    def seconds(self) -> float:
        """Return the time of the copies that were made."""
        if self.device is None:
            return 0.0
        number, seconds = (self.place.n_copied - self.before) / self.known.nbytes, []
        for _ in range(2):  # memory is set aside for the first copy
            start = CLOCK()
            with self.place.work():
                self.place.copy(self.known)
            seconds.append(CLOCK() - start)
        return number * min(seconds)


# ---- A search


class _Enough(Exception):
    """A search has shown how long it takes."""


def _search_seconds(X: Any, search: Search) -> float:
    """Begin a search, and return how long all its tasks are going to take."""
    start, (done, expected) = CLOCK(), (0, 1)

    def watch(n: int, of: int) -> None:
        nonlocal done, expected
        done, expected = n, of
        if n and CLOCK() - start > SEARCH_SECONDS:  # of no task nothing follows
            raise _Enough

    begun = clone(search).set_params(progress=watch, n_jobs=1, checkpoint=None)
    with suppress(_Enough):
        begun.fit(X)
        return CLOCK() - start
    seconds, rest = CLOCK() - start, expected - done
    return seconds + seconds * rest / done / min(effective_n_jobs(search.n_jobs), rest or 1)
