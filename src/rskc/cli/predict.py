"""``rskc predict``: clusters of new cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import typer

from rskc.cli._app import command
from rskc.cli._console import Console, recorded_warnings
from rskc.cli._options import EngineOptions, ModelPath, Rereading, TablePath, Target
from rskc.cli._output import check_no_file, open_model, preparer_of, stem_of
from rskc.cli._results import Counts
from rskc.cli._tables import is_sparse, prepared
from rskc.cli._terminal import bold, clusters_table
from rskc.cli._work import work_on
from rskc.utils.wording import cleaned, count, on_outliers, quoted


@command(
    "predict",
    "rskc predict iris-rskc new.csv --out new-labels.csv",
    "rskc predict model.rskc new.csv --out - | head",
    out="The file (default: the name of the table and -labels.csv; - prints it).",
)
def predict(
    model: ModelPath,
    table: TablePath,
    rereading: Rereading,
    engine: EngineOptions,
    target: Target,
    console: Console,
) -> None:
    """Assign the cases of another table to the clusters of a fit.

    Columns are found by their names, in whatever order. They are prepared as for the fit.
    """
    from rskc.files.writing import csv_parts, write_csv_parts

    out = target.out
    if out is None:
        out = Path("-") if console.json else Path(f"{stem_of(table)}-labels.csv")
    is_printed = out == Path("-")
    if not is_printed:
        check_no_file(out, target.force, table)
    with work_on(table, engine, None, console) as work:
        if work.in_blocks and is_printed:
            raise ValueError(
                "clusters of a table in blocks are written to a file; name it by --out."
            )
        saved = open_model(model)
        with console.busy(f"Reading {table.name}"):
            frames, notes = _predicted(saved, table, rereading, work.in_blocks)
        counts = Counts(len(saved.model.cluster_centers_))

        def counted() -> Iterator[Any]:
            for frame in frames:
                counts.add(frame)
                yield frame

        with console.busy("Predicting"):
            printed = list(counted()) if is_printed else []
            if not is_printed:
                write_csv_parts(counted(), out)
    console.note(*notes)
    clusters = [row for row in counts.clusters() if row["cases"]]
    facts: dict[str, Any] = {
        "n_cases": counts.total("cases"),
        "sizes": {row["cluster"]: row["cases"] for row in clusters},
        "outliers": {row["cluster"]: row["outliers"] for row in clusters if row["outliers"]},
        "n_outliers": counts.total("outliers"),
        "n_without_data": counts.total("blind"),
        "notes": notes,
        "file": None if is_printed else str(out),
    }
    if is_printed:
        facts["cases"] = printed[0].to_dict("records")
        if not console.silent:
            typer.echo(b"".join(csv_parts(printed)), nl=False)
    else:
        outliers = on_outliers(facts["n_outliers"], facts["n_without_data"])
        cases = f"{count(facts['n_cases'], 'case')} of {cleaned(table.name, 80)}"
        console.print("", bold(f"{cases}; {outliers}."), "", clusters_table(counts))
        words = f"Cluster, distances and more for each case: {out}"
        console.print(words, soft_wrap=True)
    console.print_json(facts)


def _predicted(
    saved: Any, path: Path, rereading: Rereading, in_blocks: bool
) -> tuple[Iterable[Any], list[str]]:
    """Return the clusters of a table, in a frame or in one for each block, and notes."""
    from rskc.files import read_table

    preparer = preparer_of(saved)
    if in_blocks:
        from rskc.cli._blocks import predicted_parts
        from rskc.files.blocks import open_blocks

        blocks = _read_like_fit(open_blocks, saved, path, rereading)
        _, notes = matched(blocks, saved.model, preparer)
        return predicted_parts(blocks, saved.model, preparer, _clusters), notes
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


def _read_like_fit(read: Callable, saved: Any, path: Path, rereading: Rereading) -> Any:
    """Read a table as that of the fit; it need not have ids or labels because that had."""
    from rskc.files import TableError

    categories = []
    if (encoder := getattr(saved.model, "encoder_", None)) is not None:
        codes = zip(saved.model.feature_names_in_, encoder.columns_, strict=True)
        categories = [str(name) for name, code in codes if code.categories]
    free = dict.fromkeys(["id_column", "label_column", "weight_column", "label_row"])
    # The model knows which columns are features.
    known = {"drop": [], "use_columns": "all", "text_columns": "drop", "categorical": categories}
    arguments = rereading.like(saved.extra.get("reading", {}) | free | known)
    ids = saved.extra.get("id_column") or None
    if rereading.id_column is None:
        arguments["id_column"] = ids
    while True:
        try:
            return read(path, **arguments)
        except TableError as error:
            categories = arguments["categorical"]
            # What the table lacks is refused later, if it has weight.
            present = [name for name in categories if name != error.name]
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
                f"{table.path.name!r} has {frame.shape[1]} columns, and the model has "
                f"{model.n_features_in_} without names; give a table with the columns of the fit."
            )
        return frame, []
    known, known_names = list(names), set(names)
    needed = names if preparer.needs_all else names[model.feature_weights_ > 0]
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        one = len(missing) == 1
        text = [name for name in missing if name in table.dropped]
        are = "is there, but holds" if one else "are there, but hold"
        held = f" ({quoted(text, 6)} {are} no numbers)"
        raise ValueError(
            f"{table.path.name!r} lacks {len(missing)} of the {len(needed)} columns that the model "
            f"needs: {quoted(missing, 6)}{held if text else ''}; add {'it' if one else 'them'}, or "
            "fit again."
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
