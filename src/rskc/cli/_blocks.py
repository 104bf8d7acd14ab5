"""Tables that are read block by block, by Dask: what is clustered of them, and files of it."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from joblib import cpu_count

from rskc.cli._app import Console, recorded_warnings
from rskc.cli._options import Preparing, Reading
from rskc.cli._results import Counts, Result
from rskc.cli._tables import Data, fit_preparer, notes_of, preparation_note, prepared
from rskc.files import Table
from rskc.files.blocks import open_blocks
from rskc.files.tables import ColumnRoles
from rskc.files.writing import write_csv_parts
from rskc.inputs.arrays import count_of
from rskc.model.fitted import with_cases, with_features
from rskc.selection.subsample import draw_cases

# Cases that the page shows, that model.rskc keeps, and that columns are standardized by.
MOST_SHOWN = 10_000
# Attributes of a model that blocks of cases are written from, and their columns in labels.csv.
OF_CASES = {
    "labels_": "cluster",
    "distances_": "distance",
    "unweighted_distances_": "unweighted_distance",
    "outliers_": "outlier",
    "trimmed_weighted_": "trimmed_weighted",
    "trimmed_unweighted_": "trimmed_unweighted",
}


def _of_blocks(function: Callable, pieces: list[Any], *more: Any) -> Iterator[Any]:
    """Call a function on each piece.

    In order, because files are read fastest so, and some ahead of the one that is asked for: never
    all of them. Read by Dask, a few at a time, 4 GB with text took 65 s instead of 55.
    """
    work = dask.delayed(function, pure=False)
    n_threads = dask.config.get("num_workers", None) or cpu_count()
    waiting = deque[Any]()
    with ThreadPoolExecutor(n_threads) as pool:
        for each in zip(pieces, *more, strict=True):
            waiting.append(pool.submit(work(*each).compute, scheduler="synchronous"))
            if len(waiting) > n_threads:  # one more, so that no thread waits for the file
                yield waiting.popleft().result()
        yield from (task.result() for task in waiting)


# ---- Reading


def read_blocks(path: Path, reading: Reading, preparing: Preparing, console: Console) -> Data:
    """Open a table; read no more of it than columns are standardized by."""
    if reading.labels is not None:
        raise ValueError(
            "--labels goes with tables in memory; write the classes into the table, and name them "
            "by --label-column."
        )
    start, arguments = time.perf_counter(), reading.arguments()
    with console.busy(f"Looking at {path.name or path}"), recorded_warnings() as warned:
        table = open_blocks(path, **arguments)
        drawn = None if preparing.is_settled else _drawn(table)
        preparer = fit_preparer(preparing, table.data if drawn is None else drawn)
    notes = [*map(str, warned), *preparation_note(preparing, preparer)]
    shape = table.n_cases, len(table.features)
    # There is no text in it, and looking for some would copy every block.
    with dask.config.set({"dataframe.convert-string": False}):
        read = partial(_read_prepared, replace(table, pieces=[]), preparer)
        X = dd.from_map(read, table.pieces, meta=table.data, label="rskc-table")
    X.part_lengths = [piece.n_cases for piece in table.pieces]
    seconds = time.perf_counter() - start
    return Data(table, X, shape, preparer, arguments, notes, seconds, drawn=drawn)


def _shown_rows(table: Any) -> list[np.ndarray]:
    """Return, for each piece, the rows that are shown: all, or some that are always the same."""
    n = table.n_cases
    cases = np.arange(n) if n <= MOST_SHOWN else draw_cases(n, MOST_SHOWN, seed=0)
    firsts = [piece.first for piece in table.pieces]
    parts = np.split(cases, np.searchsorted(cases, firsts[1:]))
    return [part - first for part, first in zip(parts, firsts, strict=True)]


def _drawn(table: Any) -> Any:
    """Return the features of the cases that are shown, as they are in the files."""
    parts = _of_blocks(
        lambda piece, rows: table.read_features(piece).iloc[rows], table.pieces, _shown_rows(table)
    )
    return pd.concat(list(parts))


def _read_prepared(table: Any, preparer: Any, piece: Any, columns: Any = None) -> Any:
    """Read a block and prepare it; Dask says which columns are wanted."""
    wanted = table.features if columns is None else list(columns)
    if preparer.needs_all:
        return prepared(preparer, table.read_features(piece))[wanted]
    part = preparer.of_columns([table.features.index(name) for name in wanted])
    return prepared(part, table.read_features(piece, wanted))


# ---- Results


def write_cases(folder: Path | None, result: Result) -> Result:
    """Write labels.csv, block by block; return the result with the cases that are shown.

    Without a folder the cases are counted all the same.
    """
    table, counts = result.data.table, Counts(len(result.model.cluster_centers_))
    table.close()  # what the fit left
    shown: list[Any] = []

    def frames() -> Iterator[Any]:
        for cases, rows in zip(_cases_of_blocks(result), _shown_rows(table), strict=True):
            counts.add(cases)
            shown.append(cases.iloc[rows])
            yield cases

    write_csv_parts(frames(), os.devnull if folder is None else folder / "labels.csv")
    return _with_shown(result, shown, counts)


def _cases_of_blocks(result: Result) -> Iterator[Any]:
    """Make the rows of labels.csv; no feature without weight is read, if none is missing."""
    data, model = result.data, result.model
    pieces, table = data.table.pieces, replace(data.table, pieces=[])
    features, preparer, small = table.features, data.preparer, with_cases(model, n_threads=1)
    if not preparer.needs_all and model.n_missing_ == 0 and not table.categories:
        used = np.flatnonzero(small.feature_weights_)
        features = [features[j] for j in used]
        preparer = preparer.of_columns(used.tolist())
        small = with_features(small, used)

    def cases_of_block(piece: Any, weights: np.ndarray | None, *arrays: np.ndarray) -> Any:
        block = table.read(piece, features)
        of_cases = dict(zip(OF_CASES, arrays, strict=True))
        of_cases["trimmed_"] = of_cases["trimmed_weighted_"] | of_cases["trimmed_unweighted_"]
        of_cases["case_names_in_"] = block.data.index.to_numpy()
        if weights is not None:
            of_cases["sample_weight_"] = weights
        cases = with_cases(small, **of_cases).cases_frame(prepared(preparer, block.data))
        return result.with_more(cases, block.labels, piece.first)

    weights: list[Any] = [None] * len(pieces)
    if hasattr(model, "sample_weight_"):
        weights = np.split(model.sample_weight_, [piece.first for piece in pieces[1:]])
    blocks = [getattr(model, name).to_delayed() for name in OF_CASES]
    return _of_blocks(cases_of_block, pieces, weights, *blocks)


def _with_shown(result: Result, parts: list[Any], counts: Counts) -> Result:
    """Return the result with what is shown of its data in memory, and counts over all cases."""
    data, blocks, cases = result.data, result.data.table, pd.concat(parts, ignore_index=True)
    drawn = _drawn(blocks) if data.drawn is None else data.drawn
    drawn.index = pd.Index(cases["case"], dtype=None if blocks.id_column is None else object)
    table = Table(
        data=drawn,
        labels=cases["known_class"].to_numpy(str) if "known_class" in cases else None,
        **{field.name: getattr(blocks, field.name) for field in fields(ColumnRoles)},
        constant=[],  # which a sample does not show
        empty=[],
        n_missing=int(result.model.n_missing_),
        sha256=None,
    )
    X = prepared(data.preparer, drawn)
    notes = notes_of(table, blocks.n_cases, data.reading)
    small = replace(data, table=table, X=X, shape=X.shape, notes=[*notes, *data.notes])
    model = _model_of(result.model, cases, X, is_sample=len(drawn) < blocks.n_cases)
    return replace(result, data=small, model=model, whole=counts)


def _model_of(model: Any, cases: Any, X: Any, is_sample: bool) -> Any:
    """Return the model with the cases that are shown, as if it had been fitted to these."""
    columns = OF_CASES | {"trimmed_": "trimmed"}
    if "weight" in cases:
        columns["sample_weight_"] = "weight"
    of_cases: dict[str, Any] = {name: cases[column].to_numpy() for name, column in columns.items()}
    if is_sample or X.index.dtype == object:
        of_cases["case_names_in_"] = X.index.to_numpy(object)  # numbers are names too
    if is_sample:
        of_cases["n_missing_"] = int(X.isna().sum().sum())
        of_cases["n_trim_"] = count_of(model.trim_, len(cases))
    return with_cases(model, **of_cases)


def predicted_parts(table: Any, known: set[str], predict: Callable) -> Iterator[Any]:
    """Make frames of the clusters of all cases, by features that are known, block by block."""
    features = [name for name in table.features if name in known]
    blocks = replace(table, pieces=[], features=features)
    return _of_blocks(lambda piece: predict(blocks.read(piece).data), table.pieces)
