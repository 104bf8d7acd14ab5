"""What a fit takes, told before it is made: the engine, reads of the data, memory and time.

The algorithm is not described a second time. Small parts of the table are fitted with the settings
and by the passes of the fit itself, and what they take is carried over to all cells:

    seconds = a + b * cells searched on + c * cells of all cases

Most cases of a large table are seen after the search alone, so that a part of many cases whose
search is small tells c. Memory is in proportion to the cells, once limits of memory shrink with the
part too. On a GPU few cells take as long as many: two large parts are fitted there. A search is
begun, with one number of clusters and few repeats, and stopped after a second.
"""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
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
from rskc.selection.runner import SERIAL_SECONDS
from rskc.selection.search import Search, with_clusters
from rskc.selection.stability import (
    FIRST_NUMBERS,
    FIRST_SPLITS,
    SMALLEST_CLUSTER,
    Stability,
)
from rskc.solver.alternate import Problem
from rskc.solver.search import auto_starts, search_size
from rskc.utils.wording import count, in_bytes, in_time


@dataclass(frozen=True)
class AnyTable:
    """A table of any kind, of which parts are taken."""

    X: Any
    weights: np.ndarray | None

    @classmethod
    def of(cls, X: Any, sample_weight: Any, model: Any) -> AnyTable:
        """Take a table as ``fit`` of the model does; of blocks, categories are numbers then."""
        if is_dask(X):
            named = model.categorical, model.ordinal
            is_coded = hasattr(X, "columns") and (
                named != (None, None) or set(kinds_of(X._meta)) != {NUMBERS}
            )
            X = encoded_blocks(X, CategoryEncoder(*named).fit(X)) if is_coded else as_blocks(X)
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
# A shorter fit is made again without a look at its memory, which takes as long.
SHORT_SECONDS = 0.5
# Multiplications of a pass over a part of many cases: as long as one that has threads.
LONG_WORK = 60_000_000
# Cases of a part, for each cluster and at least.
CASES_OF_CLUSTER, FEWEST_CASES = 25, 300
# A search is stopped after this long.
SEARCH_SECONDS = 1.0
# How far "auto" goes is seen on so many cases: on twelve tables of 300 to 5,000 as on all of them.
CASES_OF_AUTO = 300
# What a reference set takes, as a share of a fit to all cases, where that takes long; and how many
# numbers of clusters are compared with one cloud.
SHARE_OF_CLOUD, N_COMPARED = 0.01, 1.5
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
# Cells of the parts on a GPU, where few take as long as 2**26 do, and work arrays are as large from
# there on. A cell more takes at least this share of what one of the last part has taken: the time
# of few depends on their iterations.
GPU_CELLS, LEAST_OF_GPU = (2**26, 2**29), 0.2
# Of blocks on a GPU, the most bytes of a part; and parts have a multiple of so many cases, since
# kernels are compiled apart for numbers that 16 does not divide.
GPU_BYTES, EVEN = 2**30, 10_240


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

    def __str__(self) -> str:
        size = f"{count(self.n_samples, 'case')} by {count(self.n_features, 'feature')}"
        in_blocks = self.engine.startswith("blocks")
        reads = f"Reads of the data: about {self.reads:.0f}\n" if in_blocks else ""
        least, most = map(in_time, self.seconds)
        return (
            f"{size}, {in_bytes(self.data_bytes)}\n"
            f"Engine: {self.engine}, because {self.why}\n{reads}"
            f"Memory at its peak: about {in_bytes(self.peak_bytes)}\n"
            f"Time: {least if least == most else f'{least} to {most}'}"
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
    fitted = model.estimator if isinstance(model, Search) else model
    table = AnyTable.of(X, sample_weight, fitted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(model, Search):
            K, seconds = _search_of(X, table.shape[0], model)
            chosen = clone(fitted).set_params(**with_clusters(K))
            found = _plan_of_fit(table, chosen)
            least, most = found.seconds
            return replace(found, seconds=(least + seconds / SPREAD, most + seconds * SPREAD))
        return _plan_of_fit(table, model)


# ---- Parts of it are fitted


class _Took(NamedTuple):
    """What fitting a part took."""

    cells: int
    seconds: float
    peak: float  # bytes


@dataclass(frozen=True)
class _Parts:
    """Fits of parts of a table, in memory or on its device, as if each were the whole."""

    table: AnyTable  # the whole, or what was read of it
    model: Any
    whole: tuple[int, int]

    @property
    def place(self) -> str:
        """The name of the device of a fit, "cpu" if it has none."""
        X = self.table.X
        return str(X.device) if is_on_device(X) else self.model.device or "cpu"

    @cached_property
    def size(self) -> int:
        """How many cases the search of the whole is made on."""
        drawn = isinstance(self.model.init, str)
        return search_size(*self.whole, self.model.n_clusters) if drawn else self.whole[0]

    def traced(self, part: AnyTable, share: float, n_searched: int | None = None) -> _Took:
        """Fit a part, which is such a share of the whole; return what that took."""
        cells = part.shape[0] * part.shape[1]
        if self.place.startswith("cuda"):
            import torch

            torch.cuda.reset_peak_memory_stats(self.place)
            before, start = torch.cuda.memory_allocated(self.place), CLOCK()
            self.fit(part, share, n_searched)
            peak = torch.cuda.max_memory_allocated(self.place) - before
            return _Took(cells, CLOCK() - start, peak)
        tracemalloc.start()
        try:
            start = CLOCK()
            self.fit(part, share, n_searched)
            return _Took(
                int(np.prod(part.shape)), CLOCK() - start, tracemalloc.get_traced_memory()[1]
            )
        finally:
            tracemalloc.stop()

    def fit(self, part: AnyTable, share: float, n_searched: int | None = None) -> None:
        """Fit a part, with the settings of the whole, and as many restarts."""
        model, p, n_features = clone(self.model), part.shape[1], self.whole[1]
        model.set_params(verbose=0, random_state=0)
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
    engine, why = "memory", "the data are in memory"
    if model.device is not None and isinstance(table.X, np.ndarray):
        from rskc.engines.blocks.devices import fits_on, placed

        engine, why = "device", f"all of the data fit on {model.device}"
        if not fits_on(check_device(model.device, table.X), table.X):
            return _plan_of_blocks(AnyTable(placed(table.X, model.device), table.weights), model)
    if is_dask(table.X):
        return _plan_of_blocks(table, clone(model).set_params(categorical=None, ordinal=None))
    if is_on_device(table.X):
        engine, why = "device", f"the data are on {table.X.device}"
    parts = _Parts(table, model, table.shape)
    needs = _needs_of_gpu(parts) if parts.place.startswith("cuda") else _needs(parts)
    peak = table.n_bytes + int(needs.peak)
    return Plan(engine, why, *table.shape, 1, table.n_bytes, peak, needs.range())


def _needs(parts: _Parts) -> _Needs:
    """Fit parts, larger ones while they are quick, and carry over what they take."""
    (n, p), took = parts.whole, _searched(parts)
    seconds, peak = _carried(took, parts.size * p, 0.5)
    if took[-1].cells == n * p:  # the whole was fitted
        if seconds < SHORT_SECONDS:
            start = CLOCK()
            parts.fit(parts.table, 1.0)
            seconds = CLOCK() - start
        return _Needs(seconds, peak, peak, KNOWN_SPREAD)
    if parts.size == n:
        return _Needs(LARGE_TABLE_FACTOR * seconds, peak, peak, SPREAD)
    few, columns = next(parts.sizes())
    rows = min(n // STEP, max(STEP * few, LONG_WORK // (columns * parts.model.n_clusters)))
    share = rows * columns / (n * p)
    last = parts.traced(parts.table.part(rows, columns), share, few)
    a_cell = max(last.seconds - took[0].seconds, 0.0) / (last.cells - took[0].cells)
    seconds = LARGE_TABLE_FACTOR * (seconds + a_cell * n * p)
    return _Needs(seconds, max(peak, last.peak / share), peak, SPREAD)


def _searched(parts: _Parts) -> list[_Took]:
    """Fit parts of what is searched on, larger ones while they are quick."""
    took: list[_Took] = []
    for size in parts.sizes():
        part = parts.table.part(*size)
        took.append(parts.traced(part, np.prod(part.shape) / (parts.size * parts.whole[1])))
        if len(took) > 1 and STEP * took[-1].seconds > MOST_SECONDS:
            break
    return took


def _needs_of_gpu(parts: _Parts) -> _Needs:
    """Fit two large parts, or the whole, once kernels are compiled."""
    n, p = parts.whole
    fewest = CASES_OF_CLUSTER * parts.model.n_clusters
    sizes = [min(n, max(cells // p, fewest)) for cells in GPU_CELLS]
    parts.fit(parts.table.part(sizes[0], p), sizes[0] / n)
    known = sizes[-1] == n
    took = [parts.traced(parts.table.part(rows, p), rows / n) for rows in sizes[known:]]
    seconds, peak = _carried(took, n * p, LEAST_OF_GPU)
    return _Needs(seconds, peak, peak, KNOWN_SPREAD if known else SPREAD)


def _carried(took: list[_Took], cells: int, least: float) -> tuple[float, float]:
    """Return seconds and bytes for so many cells, by the lines through those of the last two parts.

    A cell more takes at least a share of the time that a cell of the last part has taken.
    """
    last, amounts = took[-1], []
    for name, share in (("seconds", least), ("peak", 0.0)):
        amount, slope = getattr(last, name), getattr(last, name) / last.cells
        if len(took) > 1 and last.cells > took[-2].cells:
            steps = (amount - getattr(took[-2], name)) / (last.cells - took[-2].cells)
            slope = float(np.clip(steps, share * slope, slope))
        amounts.append(amount + slope * (cells - last.cells))
    return amounts[0], amounts[1]


def _plan_of_blocks(table: AnyTable, model: Any) -> Plan:
    """Add to a fit in memory the reads, and what tasks take, of a fit of some blocks."""
    import dask

    from rskc.engines.blocks.data import counted, cut, spaced_rows
    from rskc.engines.blocks.schedulers import DEVICE_MEMORY, scheduler_for

    X, (n, p), scheduler, even = table.X, table.shape, scheduler_for(), 1
    n_blocks, wanted = len(X.chunks[0]), LONG_WORK // (p * model.n_clusters)
    if model.device is not None:
        from rskc.engines.blocks.devices import BLOCKS_IN_WORK, DEVICE_THREADS, free_on

        scheduler.most_threads = DEVICE_THREADS
        if model.device.startswith("cuda"):
            most = GPU_BYTES // (p * X.dtype.itemsize)
            wanted, even = min(most, COUNTED_BLOCKS * n // n_blocks), EVEN
    threads, budget = scheduler.n_threads, scheduler.budget()
    # A pass reads in order, by all threads: files are read fastest so. The first read warms up.
    known = spaced_rows(X, wanted)
    known = known[: len(known) // even * even or None]
    start, timed = CLOCK(), min(threads, n_blocks)
    dask.compute(*map(dask.delayed(len), X.blocks[:timed].to_delayed().ravel()))
    a_read = (CLOCK() - start) * n_blocks / timed
    parts = _Parts(AnyTable(known, None), clone(model).set_params(device=None), (n, p))
    small = COUNTED_CELLS // p
    few, rows = (small, 2 * STEP * small) if small < parts.size < n else (None, STEP * small)
    first = known[: rows // even * even or None]
    n_counted, cells = min(n_blocks, COUNTED_BLOCKS, len(first)), list[int]()

    def fit_of(X: Any) -> float:
        """Return how long a fit of some rows takes, in memory or in blocks as all of them."""
        share, settings, own = X.size / (n * p), dict[str, Any](), parts.model
        if is_dask(X):
            own = model
            settings = {"rskc.memory": int(budget * share) + 1, "scheduler": "threads"}
            if model.device is not None:  # what is kept there is the same share
                kept = scheduler.budget(DEVICE_MEMORY, partial(free_on, model.device)) * share
                more = threads * (1 / X.numblocks[0] - 1 / n_blocks)
                settings["rskc.device-memory"] = int(kept + BLOCKS_IN_WORK * more * X.nbytes) + 1
        with dask.config.set(settings):
            start = CLOCK()
            replace(parts, model=own).fit(AnyTable(X, None), share, few)
            return CLOCK() - start

    engine, why = "blocks", "the data are in blocks of Dask"
    if model.device is None:
        needs = _needs(parts)
    else:
        engine, why = "blocks on a device", f"passes over blocks are made on {model.device}"
        seconds, peak = _carried(_searched(parts), parts.size * p, 0.5)
        needs = _Needs(seconds, peak, peak, SPREAD)
    in_memory, in_blocks = fit_of(first), fit_of(counted(first, n_counted, X, cells))
    tasks = max(in_blocks - in_memory, 0.0) * n_blocks / n_counted
    reads = 1.0 if hasattr(X, "are_views") else sum(cells) / first.size
    if model.device is not None:
        # Of blocks as large as those of the whole, now that kernels are compiled.
        in_blocks = fit_of(cut(known, -(-len(known) // n_counted)))
        tasks = max(in_blocks - in_memory, 0.0) * n / len(known)
    kept = needs.peak + (table.n_bytes if table.n_bytes <= budget / 2 else 0)
    work = BLOCK_SHARE * table.n_bytes * min(threads, n_blocks) / n_blocks
    sample = parts.size * p * known.itemsize
    most = CASE_BYTES * n + min(budget, kept) + max(work, needs.of_search) + sample
    time = needs.range(reads * a_read + tasks)
    return Plan(engine, why, n, p, reads, table.n_bytes, int(most), time)


# ---- A search


class _Enough(Exception):
    """A search has shown how long it takes."""


def _begun(
    X: Any, search: Search, most_seconds: float, fewest: int = 1, **settings: Any
) -> tuple[np.ndarray, int]:
    """Begin a search, with other settings; return how long each task took, and how many there are.

    It is stopped after so many seconds and tasks, and before the chosen model is fitted.
    """
    ends, n_tasks = [CLOCK()], 0

    def watch(n_done: int, n_expected: int) -> None:
        nonlocal n_tasks
        ends.extend([CLOCK()] * (n_done + 1 - len(ends)))
        n_tasks = n_expected
        if n_done >= fewest and ends[-1] - ends[0] > most_seconds:
            raise _Enough

    def end(*_: Any) -> None:
        raise _Enough

    begun: Any = clone(search).set_params(progress=watch, n_jobs=1, checkpoint=None, **settings)
    begun._refit = end
    with suppress(_Enough):
        begun.fit(X)
    return np.diff(ends), n_tasks


def _search_of(X: Any, n: int, search: Search) -> tuple[int, float]:
    """Return a number of clusters that a search may choose, and how long all its tasks take."""
    numbers, jobs = getattr(search, "n_clusters", None), effective_n_jobs(search.n_jobs)
    if is_word(numbers, "auto"):
        most = min(n, search.max_samples or n) // SMALLEST_CLUSTER
        numbers = list(range(2, min(FIRST_NUMBERS, most) + 1)) or [1]
        few = {"max_samples": min(n, CASES_OF_AUTO), "n_splits": FIRST_SPLITS, "n_references": 0}
        if _begun(X, search, 4 * SEARCH_SECONDS, **few)[1] > len(numbers) * (1 + FIRST_SPLITS):
            numbers = list(range(2, min(2 * FIRST_NUMBERS, most) + 1))
    tried = np.ravel(search.estimator.n_clusters if numbers is None else numbers)
    if jobs > 1:
        search = clone(search).set_params(estimator__n_threads=1)
    chosen = round(float(np.exp(np.log(tried).mean())))
    if isinstance(search, Stability) and tried.max() > 1:
        seconds = _stability_of(X, search, tried, chosen)
    else:
        took, n_tasks = _begun(X, search, SEARCH_SECONDS)
        seconds = took.sum() * max(1.0, n_tasks / max(1, len(took)))
    # It begins without processes, which take as long to start.
    return chosen, min(seconds, 2 * SERIAL_SECONDS + seconds / jobs)


def _stability_of(X: Any, search: Stability, tried: np.ndarray, chosen: int) -> float:
    """Carry over what a number of clusters above the middle takes, and few splits and references.

    Half of the numbers get all splits.
    """
    K = int(np.ceil(np.sqrt(np.mean(tried**2.0))))
    few: dict[str, Any] = {"n_clusters": K, "n_splits": FIRST_SPLITS, "threshold": 0}
    few["n_references"] = min(2, search.n_references)
    took, _ = _begun(X, search, SEARCH_SECONDS, 2, **few)
    halves, clouds = took[1 : 1 + FIRST_SPLITS], took[1 + FIRST_SPLITS :]
    cloud = clouds.mean() if len(clouds) else SHARE_OF_CLOUD * took[0]
    n_halves = len(tried) * (FIRST_SPLITS + search.n_splits) / 2
    n_clouds = N_COMPARED * chosen * (1 + 2 * search.n_references) * (search.n_references > 0)
    return float(len(tried) * took[0] + n_halves * halves.mean() + n_clouds * cloud)
