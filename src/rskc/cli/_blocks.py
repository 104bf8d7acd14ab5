"""Tables that are read block by block, by Dask: what is clustered of them, and files of it."""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rskc.cli._console import Console, recorded_warnings
from rskc.cli._options import Preparing, Reading
from rskc.cli._output import write_others
from rskc.cli._results import Counts, Result, with_classes
from rskc.cli._tables import Data, fit_preparer, notes_of, preparation_note, prepared
from rskc.utils.wording import count

# Cases that the page shows, that model.rskc keeps, and that columns are standardized by.
MOST_SHOWN = 10_000
PATIENCE = 15  # seconds that a scheduler has to answer, and then to find a worker
# Attributes of a model that blocks of cases are written from.
OF_CASES = (
    "labels_",
    "distances_",
    "unweighted_distances_",
    "outliers_",
    "trimmed_weighted_",
    "trimmed_unweighted_",
)


# ---- Dask


@contextmanager
def dask_configured(
    scheduler: str | None, memory: int | None, n_threads: int | None, console: Console
) -> Iterator[None]:
    """Have Dask work as asked for, and let go of its cluster at the end."""
    import dask

    settings: dict[str, Any] = {} if memory is None else {"rskc.memory": memory}
    if scheduler is None:
        workers = {} if n_threads is None else {"num_workers": n_threads}
        with dask.config.set(settings | {"scheduler": "threads"} | workers):
            yield
        return
    log = logging.getLogger("distributed")
    level = log.level
    log.setLevel(logging.CRITICAL)  # what distributed logs of an error, the error says too
    try:
        with dask.config.set(settings), _connected(scheduler) as client:
            workers = client.nthreads()
            console.print(
                f"Dask: {count(len(workers), 'worker')} with {sum(workers.values())} threads; "
                f"dashboard: {client.dashboard_link}",
                soft_wrap=True,
            )
            yield
    finally:
        log.setLevel(level)


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    from distributed import Client

    class Connection(Client):
        """A client that closes when it cannot start.

        Dask's own closes only after some errors. After the others (an unknown kind of address, TLS
        without certificates) it remains the default client, and so does its scheduler in the
        configuration of Dask, where later computations fail for want of a client.
        """

        def start(self, **kwargs: Any) -> Any:
            try:
                return super().start(**kwargs)
            except BaseException:
                self.close()
                raise

    try:
        client = Connection(address, timeout=PATIENCE, name="rskc")
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(
            f"no Dask scheduler answers at {address!r}; check the address and that "
            "`dask scheduler` runs there, or leave --scheduler out to work on this machine."
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            raise ValueError(
                f"the Dask scheduler at {address!r} has no workers; start some by `dask worker "
                f"{address}`."
            ) from error
        yield client


def _in_turn(tasks: list[Any]) -> Iterator[Any]:
    """Compute tasks in order, some ahead of the one that is asked for: never all of them.

    In order, because files are read fastest so.
    """
    import dask
    from dask.base import get_scheduler
    from joblib import cpu_count

    client: Any = getattr(get_scheduler(), "__self__", None)
    if hasattr(client, "nthreads"):
        step = 2 * max(1, sum(client.nthreads().values()))
        for start in range(0, len(tasks), step):
            yield from dask.compute(*tasks[start : start + step])
        return
    n_threads = dask.config.get("num_workers", None) or cpu_count()
    pool, waiting = ThreadPoolExecutor(n_threads), deque[Any]()
    try:
        for task in tasks:
            waiting.append(pool.submit(task.compute, scheduler="synchronous"))
            if len(waiting) > n_threads:  # one more, so that no thread waits for the file
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


# ---- Reading


def read_blocks(
    path: Path, reading: Reading, preparing: Preparing, groups: Path | None, console: Console
) -> Data:
    """Open a table; read no more of it than columns are standardized by."""
    from rskc.files import open_blocks

    if reading.labels is not None:
        raise ValueError(
            "--labels goes with tables in memory; write the classes into the table, and name them "
            "by --label-column."
        )
    start, arguments = time.perf_counter(), reading.arguments()
    with console.busy(f"Looking at {path.name or path}"), recorded_warnings() as warned:
        table = open_blocks(path, **arguments)
        drawn = _drawn(table) if preparing.is_judged else None
        preparer = fit_preparer(preparing, table.data if drawn is None else drawn)
    notes = [*map(str, warned), *preparation_note(preparing, preparer)]
    if not preparer.is_idle and drawn is not None and len(drawn) < table.n_cases:
        notes.append(
            f"Columns are prepared by {len(drawn):,} of the {table.n_cases:,} cases, drawn at "
            "random."
        )
    shape = table.n_cases, len(table.features)
    X, seconds = _lazy_frame(table, preparer), time.perf_counter() - start
    data = Data(table, X, shape, preparer, arguments, notes, seconds, drawn=drawn)
    return data.grouped(groups)


def shown_cases(n: int) -> np.ndarray:
    """Return the numbers of the cases that are shown: all, or some that are always the same."""
    from rskc.selection.subsample import draw_cases

    return np.arange(n) if n <= MOST_SHOWN else draw_cases(n, MOST_SHOWN, seed=0)


def _shown_rows(table: Any) -> list[np.ndarray]:
    """Return, for each piece, the rows of it that are shown."""
    cases = shown_cases(table.n_cases)
    firsts = [piece.first for piece in table.pieces]
    parts = np.split(cases, np.searchsorted(cases, firsts[1:]))
    return [part - first for part, first in zip(parts, firsts, strict=True)]


def _drawn(table: Any) -> Any:
    """Return the features of the cases that are shown, as they are in the files."""
    import pandas as pd
    from dask import delayed

    def read_rows(piece: Any, rows: np.ndarray) -> Any:
        return table.read_features(piece).iloc[rows]

    pairs = zip(table.pieces, _shown_rows(table), strict=True)
    tasks = [delayed(read_rows)(piece, rows) for piece, rows in pairs if len(rows)]
    return pd.concat(list(_in_turn(tasks)))


def _lazy_frame(table: Any, preparer: Any) -> Any:
    """Make a Dask dataframe of what is clustered."""
    import dask
    import dask.dataframe as dd

    read = _Prepared(replace(table, pieces=[]), preparer)
    # There is no text in it, and looking for some would copy every block.
    with dask.config.set({"dataframe.convert-string": False}):
        frame = dd.from_map(read, table.pieces, meta=table.data, label="rskc-table")
    frame.part_lengths = [piece.n_cases for piece in table.pieces]
    return frame


@dataclass(frozen=True)
class _Prepared:
    """Reads a block and prepares it; Dask says which columns are wanted."""

    table: Any
    preparer: Any

    def __call__(self, piece: Any, columns: list[str] | None = None) -> Any:
        wanted = self.table.features if columns is None else list(columns)
        if self.preparer.needs_all:
            return prepared(self.preparer, self.table.read_features(piece))[wanted]
        places = [self.table.features.index(name) for name in wanted]
        preparer = self.preparer.of_columns(places)
        return prepared(preparer, self.table.read_features(piece, wanted))


# ---- Results


class ShownCases(NamedTuple):
    """Cases that are shown: their rows of labels.csv, names and known classes."""

    cases: Any
    names: Any
    labels: np.ndarray | None


@dataclass(frozen=True)
class _CasesOfBlock:
    """Makes the rows of labels.csv, where the blocks are."""

    table: Any
    preparer: Any
    model: Any
    features: list[str]  # that the model knows, and that are read
    weights: np.ndarray | None  # of all cases

    def __call__(self, piece: Any, rows: np.ndarray, *arrays: np.ndarray) -> Any:
        from rskc.model.fitted import with_cases

        block = self.table.read(piece, self.features)
        of_cases = dict(zip(OF_CASES, arrays, strict=True))
        of_cases["trimmed_"] = of_cases["trimmed_weighted_"] | of_cases["trimmed_unweighted_"]
        if self.weights is not None:
            of_cases["sample_weight_"] = self.weights[piece.first : piece.first + len(block.data)]
        names = block.data.index.to_numpy()
        model = with_cases(self.model, **of_cases, case_names_in_=names)
        cases = model.cases_frame(prepared(self.preparer, block.data))
        cases = with_classes(cases, block.labels)
        labels = None if block.labels is None else block.labels[rows]
        return cases, ShownCases(cases.iloc[rows], block.data.index[rows], labels)


def write_results(
    folder: Path | None, result: Result, *, report: bool, title: str | None
) -> Result:
    """Write all files, labels.csv block by block; return the result with the cases that are shown.

    Without a folder the cases are counted all the same.
    """
    result = write_cases(os.devnull if folder is None else folder / "labels.csv", result)
    if folder is not None:
        write_others(folder, result, report=report, title=title)
    return result


def _cases_of_block(result: Result) -> _CasesOfBlock:
    """Return what makes the rows; it reads no feature without weight if none is missing."""
    from rskc.model.fitted import with_cases, with_features

    data, model = result.data, result.model
    features, preparer, small = data.table.features, data.preparer, with_cases(model, n_threads=1)
    if not preparer.needs_all and model.n_missing_ == 0 and not data.table.categories:
        used = np.flatnonzero(small.feature_weights_)
        features = [features[j] for j in used]
        preparer = preparer.of_columns(used.tolist())
        small = with_features(small, used)
    weights = getattr(model, "sample_weight_", None)
    return _CasesOfBlock(replace(data.table, pieces=[]), preparer, small, features, weights)


def write_cases(path: str | os.PathLike, result: Result) -> Result:
    """Write labels.csv block by block; return the result with the cases that are shown."""
    from dask import delayed

    from rskc.files import write_csv_parts

    table, model = result.data.table, result.model
    table.close()  # what the fit left
    counts, shown = Counts(len(model.cluster_centers_)), []
    work = delayed(_cases_of_block(result), pure=False)
    blocks = zip(*(getattr(model, name).to_delayed() for name in OF_CASES), strict=True)
    tasks = [
        work(piece, rows, *arrays)
        for piece, rows, arrays in zip(table.pieces, _shown_rows(table), blocks, strict=True)
    ]

    def frames() -> Iterator[Any]:
        for cases, part in _in_turn(tasks):
            first = counts.n_cases
            counts.add(cases)
            shown.append(part)
            yield result.with_stability(cases, first)

    write_csv_parts(frames(), path)
    drawn = _drawn(table) if result.data.drawn is None else result.data.drawn
    return _with_shown(result, _joined(shown), drawn, counts)


def _joined(parts: list[ShownCases]) -> ShownCases:
    import pandas as pd

    labels = None
    if parts[0].labels is not None:
        text = [str(label) for part in parts for label in part.labels]  # type: ignore[union-attr]
        try:
            labels = np.array([int(label) for label in text])
        except ValueError:
            labels = np.array(text)
    cases = pd.concat([part.cases for part in parts], ignore_index=True)
    names = parts[0].names.append([part.names for part in parts[1:]])
    return ShownCases(cases, names, labels)


def _with_shown(result: Result, shown: ShownCases, drawn: Any, counts: Counts) -> Result:
    """Return the result with what is shown of its data in memory, and counts over all cases."""
    from rskc.files import Table

    data, blocks, drawn = result.data, result.data.table, drawn.set_axis(shown.names)
    is_sample, numbers = len(drawn) < counts.n_cases, drawn.select_dtypes("number")
    values = numbers.to_numpy()
    low, high = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
    of_all = [] if is_sample else numbers  # a sample does not show what all cases are like
    alone = [] if is_sample else [name for name, own in blocks.categories.items() if len(own) == 1]
    table = Table(
        data=drawn,
        labels=shown.labels,
        id_column=blocks.id_column,
        label_column=blocks.label_column,
        dropped=blocks.dropped,
        set_aside=blocks.set_aside,
        constant=[name for name, same in zip(of_all, low == high, strict=False) if same] + alone,
        empty=[name for name, gone in zip(of_all, np.isnan(low), strict=False) if gone],
        n_missing=int(result.model.n_missing_),
        path=Path(blocks.path),
        sha256=None,
        categories=blocks.categories,
    )
    X = prepared(data.preparer, drawn)
    notes = notes_of(table, counts.n_cases, data.reading)
    small = replace(data, table=table, X=X, shape=X.shape, notes=[*notes, *data.notes])
    model = _model_of(result.model, shown.cases, X, is_sample)
    return replace(result, data=small, model=model, whole=counts)


def _model_of(model: Any, cases: Any, X: Any, is_sample: bool) -> Any:
    """Return the model with the cases that are shown, as if it had been fitted to these."""
    from rskc.inputs.case_weights import count_of
    from rskc.model.fitted import with_cases

    columns = {"labels_": "cluster", "distances_": "distance", "outliers_": "outlier"}
    columns["unweighted_distances_"] = "unweighted_distance"
    columns |= {f"{name}_": name for name in ("trimmed", "trimmed_weighted", "trimmed_unweighted")}
    if "weight" in cases:
        columns["sample_weight_"] = "weight"
    of_cases: dict[str, Any] = {name: cases[column].to_numpy() for name, column in columns.items()}
    if is_sample or X.index.dtype == object:
        of_cases["case_names_in_"] = X.index.to_numpy(object)  # numbers are names too
    if is_sample:
        of_cases["n_missing_"] = int(X.isna().sum().sum())
        of_cases["n_trim_"] = count_of(model.trim_, len(cases))
    return with_cases(model, **of_cases)


# ---- Predictions


@dataclass(frozen=True)
class _Predicted:
    """Reads a block, and predicts the clusters of its cases."""

    table: Any
    names: list[str] | None
    model: Any
    preparer: Any
    predict: Callable

    def __call__(self, piece: Any) -> Any:
        frame = self.table.read(piece).data
        if self.names is not None:
            frame = frame.reindex(columns=self.names)
        return self.predict(self.model, prepared(self.preparer, frame))


def predicted_parts(table: Any, model: Any, preparer: Any, predict: Callable) -> Iterator[Any]:
    """Make frames of the clusters of all cases, block by block."""
    from dask import delayed

    from rskc.model.fitted import with_cases

    known = getattr(model, "feature_names_in_", None)
    names = None if known is None else list(known)
    features = [name for name in table.features if names is None or name in names]
    blocks = replace(table, pieces=[], features=features)
    small = with_cases(model, n_threads=1)
    work = delayed(_Predicted(blocks, names, small, preparer, predict), pure=False)
    return _in_turn([work(piece) for piece in table.pieces])
