"""``rskc predict``: clusters of new cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer

from rskc.cli._app import command
from rskc.cli._console import Console, bold, recorded_warnings, text_table
from rskc.cli._options import (
    RESULTS,
    EngineOptions,
    ModelPath,
    Rereading,
    TablePath,
    flag,
    out_option,
)
from rskc.cli._output import check_no_file, open_model, preparer_of, stem_of
from rskc.cli._results import Counts
from rskc.cli._tables import is_sparse, prepared
from rskc.cli._work import work_on
from rskc.utils.wording import cleaned, count, on_outliers, quoted


@dataclass(frozen=True)
class LabelsFile:
    """Where the clusters are written."""

    out: Path | None = out_option(
        None, "Write to this file; else the name of the table and -labels.csv; - prints it.", "FILE"
    )
    force: bool = flag(RESULTS, "Replace a file that is there.", "--force")


@command(
    "predict",
    "rskc predict iris-rskc new.csv --out new-labels.csv",
    "rskc predict model.rskc new.csv --out - | head",
)
def predict(
    model: ModelPath,
    table: TablePath,
    rereading: Rereading,
    engine: EngineOptions,
    file: LabelsFile,
    console: Console,
) -> None:
    """Assign the cases of another table to the clusters of a fit.

    Columns are found by their names, in whatever order. They are prepared as for the fit.
    """
    from rskc.files.writing import csv_parts, write_csv_parts

    out = file.out
    if out is None:
        out = Path("-") if console.json else Path(f"{stem_of(table)}-labels.csv")
    is_printed = out == Path("-")
    if not is_printed:
        check_no_file(out, file.force, table)
    frames: list[Any] = []
    with work_on(table, engine, None, console) as work:
        if work.in_blocks and is_printed:
            raise ValueError(
                "clusters of a table in blocks are written to a file; name it by --out."
            )
        saved = open_model(model)
        make = _frames_of_blocks if work.in_blocks else _frames_of_table
        parts, notes = make(saved, table, rereading, console)
        counts = Counts(len(saved.model.cluster_centers_))

        def counted() -> Iterator[Any]:
            for frame in parts:
                counts.add(frame)
                yield frame

        with console.busy("Predicting"):
            if is_printed:
                frames = list(counted())
            else:
                write_csv_parts(counted(), out)
    console.note(*notes)
    facts = {
        "n_cases": counts.n_cases,
        "sizes": {k: n for k, n in enumerate(counts.sizes) if n},
        "outliers": {k: n for k, n in enumerate(counts.outliers) if n},
        "n_outliers": counts.outliers.sum(),
        "n_without_data": counts.n_blind,
        "notes": notes,
        "file": None if is_printed else str(out),
    }
    if is_printed:
        facts["cases"] = frames[0].to_dict("records")
        if not console.silent:
            typer.echo(b"".join(csv_parts(frames)), nl=False)
    else:
        _show(counts, table.name, out, console)
    console.print_json(facts)


def _show(counts: Counts, name: str, out: Path, console: Console) -> None:
    """Print the result in a few lines."""
    if console.silent:
        return
    cases = count(counts.n_cases, "case")
    outliers = on_outliers(int(counts.outliers.sum()), counts.n_blind)
    console.print("", bold(f"{cases} of {cleaned(name, 80)}; {outliers}."), "")
    rows = [
        [f"{k}", f"{size:,}", f"{n:,}"]
        for k, (size, n) in enumerate(zip(counts.sizes, counts.outliers, strict=True))
        if size
    ]
    console.print(text_table([(each, "right") for each in ("Cluster", "Cases", "Outliers")], rows))
    console.print(f"Cluster, distance and more of each case: {out}", soft_wrap=True)


def _frames_of_table(
    saved: Any, path: Path, rereading: Rereading, console: Console
) -> tuple[list[Any], list[str]]:
    """Return the clusters of a table in memory, in one frame, and notes."""
    from rskc.files import read_table

    preparer = preparer_of(saved)
    with console.busy(f"Reading {path.name}"):
        table = _read_like_fit(read_table, saved, path, rereading)
    for name, how in table.written.items():
        known = saved.extra.get("units", {}).get(name)
        if how.differs_from(known):
            raise ValueError(
                f"{path.name!r}: column {name!r} is in {how.unit}, and was in {known} in the fit; "
                f"write it in {known}."
            )
    X, notes = matched(table, saved.model, preparer)
    with recorded_warnings() as warned:
        frame = _clusters(saved.model, prepared(preparer, X))
    return [frame], [*notes, *map(str, warned)]


def _frames_of_blocks(
    saved: Any, path: Path, rereading: Rereading, console: Console
) -> tuple[Iterator[Any], list[str]]:
    """Return the clusters of a table in blocks, in a frame for each, and notes."""
    from rskc.cli._blocks import predicted_parts
    from rskc.files.blocks import open_blocks

    preparer = preparer_of(saved)
    table = _read_like_fit(open_blocks, saved, path, rereading)
    _, notes = matched(table, saved.model, preparer)
    return predicted_parts(table, saved.model, preparer, _clusters), notes


def _read_like_fit(read: Callable, saved: Any, path: Path, rereading: Rereading) -> Any:
    """Read a table as that of the fit; it need not have ids or labels because that had."""
    from rskc.files import TableError

    categories = []
    if (encoder := getattr(saved.model, "encoder_", None)) is not None:
        codes = zip(saved.model.feature_names_in_, encoder.columns_, strict=True)
        categories = [str(name) for name, code in codes if code.categories]
    free: dict[str, Any] = {
        "id_column": None,
        "label_column": None,
        "weight_column": None,
        "label_row": None,
        "drop": [],
        "text_columns": "drop",
        "categorical": categories,
        "use_columns": "all",  # the model knows which
    }
    arguments = rereading.arguments(saved.extra.get("reading", {}) | free)
    ids = saved.extra.get("id_column") or None
    if arguments["id_column"] is None:
        arguments["id_column"] = ids
    while True:
        try:
            return read(path, **arguments)
        except TableError as error:
            categories = arguments["categorical"]
            # What the table lacks is refused later, if it has weight.
            present = [name for name in categories if repr(name) != error.values.get("name")]
            if error.parameter == "categorical" and present != categories:
                arguments["categorical"] = present
            elif error.parameter == "id_column" and arguments["id_column"] == ids:
                arguments["id_column"] = None
            else:
                raise


def matched(table: Any, model: Any, preparer: Any) -> tuple[Any, list[str]]:
    """Return the columns that the model knows, in its order; refuse if some that count are missing.

    A feature without weight changes no distance, so a table of the selected ones will do; not if
    rows are standardized, by all of their cells.
    """
    names, frame = getattr(model, "feature_names_in_", None), table.data
    if names is None:
        if frame.shape[1] != model.n_features_in_:
            raise ValueError(
                f"{table.path.name!r} has {frame.shape[1]} columns and the model, which knows no "
                f"names, {model.n_features_in_}; give a table with the columns of the fit."
            )
        return frame, []
    known, known_names = list(names), set(names)
    needed = names if preparer.needs_all else names[model.feature_weights_ > 0]
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        one = len(missing) == 1
        text = [name for name in missing if name in table.dropped]
        held = f" ({quoted(text, 6)} {'is' if one else 'are'} there but held no numbers)"
        raise ValueError(
            f"{table.path.name!r} lacks {len(missing)} of the {len(needed)} columns that the model "
            f"needs: {quoted(missing, 6)}{held if text else ''}; add {'it' if one else 'them'}, or "
            "fit anew."
        )
    unused = [name for name in [*table.dropped, *frame.columns] if name not in known_names]
    them = "it" if len(unused) == 1 else "them"
    note = f"Not used, since the model does not know {them}: {quoted(unused, 6)}."
    notes = [note] if unused else []
    if list(frame.columns) == known:
        return frame, notes
    if is_sparse(frame) and not known_names <= set(frame.columns):
        frame = frame.sparse.to_dense()  # what is missing is not 0
    return frame.reindex(columns=known), notes


def _clusters(model: Any, X: Any) -> Any:
    import pandas as pd

    from rskc.model.fitted import by_column, judge_cases, with_cases
    from rskc.model.summary import observed_share

    values = X if hasattr(model, "feature_names_in_") else X.to_numpy()
    known = ~np.isnan(by_column(model, model.cluster_centers_)).all(axis=0)
    if (X.isna().all() & known).any():
        # A table of the selected features, or a few more: an unweighted distance over these few is
        # not what the threshold was made for.
        model = with_cases(model, unweighted_outlier_threshold_=np.inf)
    found = judge_cases(model, values)
    return pd.DataFrame(
        {
            "case": X.index,
            "cluster": found.labels,
            "distance": found.weighted,
            "unweighted_distance": found.unweighted,
            "outlier": found.outliers,
            "observed": observed_share(model, values),
        }
    )
