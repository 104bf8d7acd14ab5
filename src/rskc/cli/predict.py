"""``rskc predict``: clusters of new cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from rskc.cli._app import command
from rskc.cli._engine import Engine, dask_at_work
from rskc.cli._options import RESULTS, Rereading, TablePath
from rskc.cli._saved import check_no_file, open_model
from rskc.cli._scaling import Scaling
from rskc.cli._voice import Voice, heard

ModelPath = Annotated[
    Path,
    Argument(
        metavar="MODEL",
        help="The model.rskc of a fit, or the folder it is in.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Write to this file; else, or for -, print the CSV.",
        rich_help_panel=RESULTS,
    ),
]
Force = Annotated[
    bool, Option("--force", help="Replace a file that is there.", rich_help_panel=RESULTS)
]


@command(
    "predict",
    "rskc predict iris-rskc new.csv --out new-labels.csv",
    "rskc predict model.rskc new.csv | head",
)
def predict(
    model: ModelPath,
    table: TablePath,
    rereading: Rereading,
    engine: Engine,
    voice: Voice,
    out: Out = None,
    force: Force = False,
) -> None:
    """Put the cases of another table into the clusters of a fit.

    Columns are found by their names, in whatever order. What was standardized for the fit is
    standardized in the same way.
    """
    out = None if out == Path("-") else out
    check_no_file(out, force)
    if engine.in_blocks(table):
        with dask_at_work(engine, None, voice):
            predict_blocks(model, table, rereading, voice, out)
        return
    frame, notes = predicted(model, table, rereading, voice)
    for note in notes:
        voice.note(note)
    if out is not None:
        from rskc.files import write_csv

        write_csv(frame, out)
        voice.say_in_one_line(f"{len(frame):,} cases written to {out}")
    elif not voice.silent:
        typer.echo(csv_of(frame), nl=False)
    voice.tell(_told(frame, notes, out))


def predicted(model: Path, path: Path, rereading: Rereading, voice: Voice) -> tuple[Any, list[str]]:
    """A row a case, and what to say of it."""
    saved = open_model(model)
    scaling = Scaling.from_extra(saved.extra.get("scaling"), saved.model.n_features_in_)
    with voice.busy(f"Reading {path.name}"):
        table = _read_like(saved.extra, path, rereading)
    frame, notes = matched(table, saved.model, scaling)
    with voice.busy("Predicting"), heard() as warned:
        found = _clusters(saved.model, scaling.apply(frame))
    return found, [*notes, *warned]


def predict_blocks(
    model: Path, path: Path, rereading: Rereading, voice: Voice, out: Path | None
) -> None:
    """Predict block by block, straight into a file."""
    from rskc.cli._blocks import predicted_parts
    from rskc.files import open_blocks, write_csv_parts

    if out is None:
        raise ValueError("clusters of a table in blocks are written to a file; name it by --out.")
    saved = open_model(model)
    scaling = Scaling.from_extra(saved.extra.get("scaling"), saved.model.n_features_in_)
    table = _read_like(saved.extra, path, rereading, open_blocks)
    _, notes = matched(table.head(), saved.model, scaling)
    told: dict[str, Any] = {"n_cases": 0, "sizes": Counter(), "n_outliers": 0}

    def frames() -> Iterator[Any]:
        for frame in predicted_parts(table, saved.model, scaling, _clusters):
            told["n_cases"] += len(frame)
            told["sizes"] += Counter(frame.cluster.tolist())
            told["n_outliers"] += int(frame.outlier.sum())
            yield frame

    with voice.busy(f"Predicting {table.n_cases:,} cases"):
        write_csv_parts(frames(), out)
    for note in notes:
        voice.note(note)
    voice.say_in_one_line(f"{told['n_cases']:,} cases written to {out}")
    voice.tell(told | {"sizes": dict(sorted(told["sizes"].items())), "file": str(out)})


def _read_like(extra: dict[str, Any], path: Path, rereading: Rereading, reader: Any = None) -> Any:
    """The table, read as that of the fit; it need not have ids or labels because that had."""
    from rskc.files import TableError, read_table

    read = reader or read_table
    free: dict[str, Any] = {
        "id_column": None,
        "label_column": None,
        "drop": [],
        "text_columns": "drop",
    }
    arguments = rereading.arguments({**extra.get("reading", {}), **free})
    ids = extra.get("id_column") or None
    if ids is None or arguments["id_column"] is not None:
        return read(path, **arguments)
    try:
        return read(path, **{**arguments, "id_column": ids})
    except TableError as error:
        if "given as id_column" not in str(error):
            raise
        return read(path, **arguments)


def matched(table: Any, model: Any, scaling: Scaling) -> tuple[Any, list[str]]:
    """The columns that the model knows, in its order; refused if some that count are missing.

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
    needed = model.feature_weights_ > 0 if scaling.of != "rows" else slice(None)
    _check_columns(table, names[needed])
    known = set(names)
    more = [name for name in frame.columns if name not in known]
    unused = [name for name in [*table.dropped, *more] if name not in known]
    notes = [f"Not used, since the model does not know it: {_few(unused)}."] if unused else []
    same = not more and list(frame.columns) == list(names)
    return frame if same else frame.reindex(columns=list(names)), notes


def _check_columns(table: Any, names: Any) -> None:
    missing = [name for name in names if name not in table.data.columns]
    if not missing:
        return
    one = len(missing) == 1
    words = f"{table.path.name!r} lacks {len(missing)} of the {len(names)} columns that the model "
    words += "needs: "
    text = [name for name in missing if name in table.dropped]
    held = f" ({_few(text)} {'is' if one else 'are'} there but held no numbers)" if text else ""
    raise ValueError(f"{words}{_few(missing)}{held}; add {'it' if one else 'them'}, or fit anew.")


def _few(names: Any) -> str:
    from rskc.files._source import named

    return named(map(str, names), 6)


def _clusters(model: Any, X: Any) -> Any:
    import pandas as pd

    values = X if hasattr(model, "feature_names_in_") else X.to_numpy()
    distances = -model.score_samples(values)
    return pd.DataFrame(
        {
            "case": X.index,
            "cluster": model.predict(values),
            "distance": distances,
            "outlier": distances > model.outlier_threshold_,
        }
    )


def csv_of(frame: Any) -> bytes:
    """A frame as the bytes that write_csv writes."""
    from tempfile import TemporaryDirectory

    from rskc.files import write_csv

    with TemporaryDirectory() as folder:
        write_csv(frame, Path(folder, "frame.csv"))
        return Path(folder, "frame.csv").read_bytes()


def _told(frame: Any, notes: list[str], out: Path | None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "n_cases": len(frame),
        "sizes": frame.cluster.value_counts().sort_index().to_dict(),
        "n_outliers": int(frame.outlier.sum()),
        "notes": notes,
        "file": None if out is None else str(out),
    }
    return told if out is not None else told | {"cases": frame.to_dict("records")}
