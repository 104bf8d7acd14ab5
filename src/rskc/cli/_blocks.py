"""Tables that are read block by block: what is clustered of them, and files of the result."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rskc.cli._counts import Counts
from rskc.cli._options import Reading, Standardizing
from rskc.cli._results import Result
from rskc.cli._scaling import Scaling, learn, rows_standardized
from rskc.cli._tables import Data, left_out, notes_of
from rskc.cli._voice import Voice

# Cases that the page shows, that model.rskc keeps, and that columns are standardized by.
MOST_SHOWN = 10_000
ARRAYS = ("labels_", "distances_", "outliers_", "trimmed_weighted_", "trimmed_unweighted_")


@dataclass(frozen=True)
class BlockData(Data):
    """A table in blocks; X is a Dask dataframe."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of cases and features."""
        return self.table.n_cases, len(self.table.features)


def read_blocks(path: Path, reading: Reading, standardizing: Standardizing, voice: Voice) -> Data:
    """Open a table; read no more of it than columns are standardized by."""
    from rskc.files import open_blocks

    start, arguments = time.perf_counter(), reading.arguments()
    with voice.busy(f"Looking at {path.name or path}"):
        table = open_blocks(path, **arguments)
        scaling, notes = _scaling(table, standardizing)
    X = lazily(table, scaling)
    return BlockData(table, X, scaling, arguments, notes, time.perf_counter() - start)


def _scaling(table: Any, asked: Standardizing) -> tuple[Scaling, list[str]]:
    if asked.standardize != "columns":
        return Scaling(asked.standardize, asked.scale), []
    frame = _drawn(table)
    scaling, notes = learn("columns", asked.scale, frame)
    if len(frame) < table.n_cases:
        notes.append(
            f"Columns are standardized by what {len(frame):,} of the {table.n_cases:,} cases say, "
            "drawn at random."
        )
    return scaling, notes


def shown_cases(n: int) -> np.ndarray:
    """Numbers of the cases that are shown: all, or some that are always the same."""
    from rskc.selection.subsample import draw_cases

    return np.arange(n) if n <= MOST_SHOWN else draw_cases(n, MOST_SHOWN, seed=0)


def _wanted(table: Any) -> list[np.ndarray]:
    """For each piece, the rows of it that are shown."""
    cases = shown_cases(table.n_cases)
    firsts = [piece.first for piece in table.pieces]
    parts = np.split(cases, np.searchsorted(cases, firsts[1:]))
    return [part - first for part, first in zip(parts, firsts, strict=True)]


def _drawn(table: Any) -> Any:
    """The features of the cases that are shown."""
    import pandas as pd
    from dask import compute, delayed

    rows = zip(table.pieces, _wanted(table), strict=True)
    parts = [delayed(_some)(table, piece, some) for piece, some in rows if len(some)]
    return pd.concat(compute(*parts))


def _some(table: Any, piece: Any, rows: np.ndarray) -> Any:
    return table.read_numbers(piece).iloc[rows]


def lazily(table: Any, scaling: Scaling) -> Any:
    """A Dask dataframe of what is clustered."""
    import dask.dataframe as dd
    import pandas as pd

    meta = pd.DataFrame({name: pd.Series(dtype=table.dtype) for name in table.features})
    return dd.from_map(_Numbers(table, scaling), table.pieces, meta=meta, label="rskc-table")


class _Numbers:
    """Reads a block and standardizes it."""

    def __init__(self, table: Any, scaling: Scaling):
        self.table, self.scaling = replace(table, pieces=[]), scaling

    def __call__(self, piece: Any) -> Any:
        return standardized(self.scaling, self.table.read_numbers(piece))


def standardized(scaling: Scaling, frame: Any) -> Any:
    """A block, standardized; in blocks nothing is said of constant rows, whose numbers differ."""
    if scaling.of != "rows":
        return scaling.apply(frame)
    import pandas as pd

    values = rows_standardized(frame.to_numpy(), scaling.kind)
    return pd.DataFrame(values, index=frame.index, columns=frame.columns, copy=False)


# ---- Results


class Part(NamedTuple):
    """Of a block: a row a case, and what is shown of it."""

    cases: Any
    data: Any
    labels: Any
    rows: np.ndarray


class _Cases:
    """Makes the parts, where the blocks are."""

    def __init__(self, table: Any, scaling: Scaling, model: Any):
        self.table, self.scaling = replace(table, pieces=[]), scaling
        self.model = without_cases(model)

    def __call__(self, piece: Any, rows: np.ndarray, *arrays: np.ndarray) -> Part:
        block = self.table.read(piece)
        model = copy.copy(self.model)
        for name, array in zip(ARRAYS, arrays, strict=True):
            setattr(model, name, array)
        model.trimmed_ = model.trimmed_weighted_ | model.trimmed_unweighted_
        model.case_names_in_ = block.data.index.to_numpy()
        cases = model.cases_frame(standardized(self.scaling, block.data))
        labels = None if block.labels is None else block.labels[rows]
        return Part(cases, block.data.iloc[rows], labels, rows)


def without_cases(model: Any) -> Any:
    """A copy of a model without what is as long as the data."""
    from rskc.arrays import to_numpy

    made = copy.copy(model)
    for name in [*ARRAYS, "trimmed_", "case_names_in_"]:
        made.__dict__.pop(name, None)
    for name in ("cluster_centers_", "feature_weights_"):
        setattr(made, name, to_numpy(getattr(model, name)))
    made.n_threads = 1
    return made


class Shown(NamedTuple):
    """The cases that are shown: their rows of labels.csv, their numbers and classes."""

    cases: Any
    data: Any
    labels: np.ndarray | None


def write_cases(path: str | os.PathLike, result: Result) -> Result:
    """Write labels.csv block by block; return the result with the cases that are shown."""
    from rskc.files import write_csv_parts

    counts = Counts(len(result.model.cluster_centers_))
    kept: list[Part] = []

    def frames() -> Iterator[Any]:
        for part in _parts(result):
            counts.add(part.cases)
            kept.append(part._replace(cases=part.cases.iloc[part.rows]))
            yield part.cases

    write_csv_parts(frames(), path)
    return _of_shown(result, _joined(kept), counts)


def _parts(result: Result) -> Iterator[Part]:
    from dask import delayed

    table, model = result.data.table, result.model
    work = delayed(_Cases(table, result.data.scaling, model), pure=False)
    blocks = zip(*(getattr(model, name).to_delayed() for name in ARRAYS), strict=True)
    tasks = [
        work(piece, rows, *arrays)
        for piece, rows, arrays in zip(table.pieces, _wanted(table), blocks, strict=True)
    ]
    return in_turn(tasks)


def in_turn(tasks: list[Any]) -> Iterator[Any]:
    """What tasks give, in order, some at a time: never is all of it in memory."""
    from dask import compute

    step = _at_a_time()
    for start in range(0, len(tasks), step):
        yield from compute(*tasks[start : start + step])


def _at_a_time() -> int:
    """Blocks that are worked on at a time: two a thread, so that none waits for the file."""
    import dask
    from dask.base import get_scheduler
    from joblib import cpu_count

    client: Any = getattr(get_scheduler(), "__self__", None)
    if hasattr(client, "nthreads"):
        return 2 * max(1, sum(client.nthreads().values()))
    return 2 * (dask.config.get("num_workers", None) or cpu_count())


def _joined(parts: list[Part]) -> Shown:
    import pandas as pd

    labels = None
    if parts[0].labels is not None:
        labels = classes(np.concatenate([part.labels for part in parts]))
    cases = pd.concat([part.cases for part in parts], ignore_index=True)
    return Shown(cases, pd.concat([part.data for part in parts]), labels)


def classes(labels: np.ndarray) -> np.ndarray:
    """Known classes as whole numbers if they are, else as text."""
    text = [str(label) for label in labels]
    try:
        return np.array([int(each) for each in text])
    except ValueError:
        return np.array(text)


def _of_shown(result: Result, shown: Shown, counts: Counts) -> Result:
    """The result with what is shown of its data in memory, and counts over all cases."""
    data, table = result.data, _table(result, shown, counts)
    X = standardized(data.scaling, table.data)
    few = len(shown.cases) < counts.n_cases
    notes = left_out(table) if few else notes_of(table)
    small = Data(table, X, data.scaling, data.reading, [*notes, *data.notes], data.seconds)
    model = _model(result.model, shown, X, few)
    return replace(result, data=small, model=model, whole=counts)


def _table(result: Result, shown: Shown, counts: Counts) -> Any:
    from rskc.files import Table

    lazy, values = result.data.table, shown.data.to_numpy()
    whole = len(values) == counts.n_cases  # of some cases one cannot say what all are like
    low, high = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
    return Table(
        data=shown.data,
        labels=shown.labels,
        id_column=lazy.id_column,
        dropped=lazy.dropped,
        constant=[lazy.features[j] for j in np.flatnonzero(low == high)] if whole else [],
        empty=[lazy.features[j] for j in np.flatnonzero(np.isnan(low))] if whole else [],
        n_missing=int(result.model.n_missing_),
        path=Path(lazy.path),
        sha256=None,
    )


def _model(model: Any, shown: Shown, X: Any, few: bool) -> Any:
    """The model with the cases that are shown as if it had been fitted to these."""
    from rskc.fitting import count_of

    made, cases = without_cases(model), shown.cases
    made.n_threads = model.n_threads
    made.labels_ = cases["cluster"].to_numpy()
    made.distances_ = cases["distance"].to_numpy()
    made.outliers_ = cases["outlier"].to_numpy()
    for name in ("trimmed", "trimmed_weighted", "trimmed_unweighted"):
        setattr(made, f"{name}_", cases[name].to_numpy())
    if few or X.index.dtype == object:
        made.case_names_in_ = X.index.to_numpy()
    if few:
        made.n_missing_ = int(np.isnan(X.to_numpy()).sum())
        made.n_trim_ = count_of(model.trim, len(cases))
    return made


# ---- Predictions


class _Predicted:
    """Reads a block, and says where its cases belong."""

    def __init__(self, table: Any, model: Any, scaling: Scaling, predict: Callable):
        known = getattr(model, "feature_names_in_", None)
        self.names = None if known is None else list(known)
        features = [name for name in table.features if self.names is None or name in self.names]
        self.table = replace(table, pieces=[], features=features)
        self.model, self.scaling, self.predict = without_cases(model), scaling, predict

    def __call__(self, piece: Any) -> Any:
        frame = self.table.read(piece).data
        if self.names is not None:
            frame = frame.reindex(columns=self.names)
        return self.predict(self.model, standardized(self.scaling, frame))


def predicted_parts(table: Any, model: Any, scaling: Scaling, predict: Callable) -> Iterator[Any]:
    """Frames of the clusters of all cases, block by block."""
    from dask import delayed

    work = delayed(_Predicted(table, model, scaling, predict), pure=False)
    return in_turn([work(piece) for piece in table.pieces])
