"""``rskc predict``: clusters of new cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
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
from rskc.cli._tables import is_sparse, prepared
from rskc.cli._where import place_of
from rskc.cli._work import blocks_suggested
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
    """Put the cases of another table into the clusters of a fit.

    Columns are found by their names, in whatever order. They are prepared as for the fit.
    """
    out = file.out
    if out is None:
        out = Path("-") if console.json else Path(f"{stem_of(table)}-labels.csv")
    is_printed = out == Path("-")
    if not is_printed:
        check_no_file(out, file.force, table)
    if not place_of(table, engine).in_blocks:
        with blocks_suggested():
            _predict_table(model, table, rereading, None if is_printed else out, console)
        return
    from rskc.cli._blocks import dask_configured

    if is_printed:
        raise ValueError("clusters of a table in blocks are written to a file; name it by --out.")
    with dask_configured(engine, None, console):
        _predict_blocks(model, table, rereading, out, console)


@dataclass
class Tally:
    """What is counted over the cases that are predicted."""

    n_cases: int = 0
    sizes: dict[int, int] = field(default_factory=Counter)
    outliers: dict[int, int] = field(default_factory=Counter)  # by cluster
    n_outliers: int = 0
    n_without_data: int = 0  # cases of which nothing is observed that has weight; no outliers

    def add(self, frame: Any) -> None:
        """Count more cases."""
        blind = frame.observed == 0
        outlying = frame.outlier & ~blind
        self.n_cases += len(frame)
        self.n_without_data += int(blind.sum())
        self.sizes = dict(sorted((Counter(self.sizes) + Counter(frame.cluster.tolist())).items()))
        self.outliers = Counter(self.outliers) + Counter(frame.cluster[outlying].tolist())
        self.n_outliers += int(outlying.sum())

    def show(self, name: str, out: Path, console: Console) -> None:
        """Print the result in a few lines."""
        if console.silent:
            return
        cases = count(self.n_cases, "case")
        outliers = on_outliers(self.n_outliers, self.n_without_data)
        console.print("", bold(f"{cases} of {cleaned(name, 80)}; {outliers}."), "")
        rows = [
            [f"{k}", f"{size:,}", f"{self.outliers.get(k, 0):,}"] for k, size in self.sizes.items()
        ]
        columns = [(label, "right") for label in ("Cluster", "Cases", "Outliers")]
        console.print(text_table(columns, rows))
        console.print(f"Cluster, distance and more of each case: {out}", soft_wrap=True)


def _predict_table(
    model: Path, path: Path, rereading: Rereading, out: Path | None, console: Console
) -> None:
    from rskc.files import read_table, write_csv
    from rskc.files.tables import other_units

    saved = open_model(model)
    preparer = preparer_of(saved)
    with console.busy(f"Reading {path.name}"):
        table = _read_like_fit(read_table, saved, path, rereading)
    for name, (own, known) in other_units(table, saved.extra.get("units", {})).items():
        raise ValueError(
            f"{path.name!r}: column {name!r} is in {own}, and was in {known} in the fit; write it "
            f"in {known}."
        )
    X, notes = matched(table, saved.model, preparer)
    with console.busy("Predicting"), recorded_warnings() as warned:
        frame = _clusters(saved.model, prepared(preparer, X))
    notes += map(str, warned)
    console.note(*notes)
    tally = Tally()
    tally.add(frame)
    facts = asdict(tally) | {"notes": notes, "file": None if out is None else str(out)}
    if out is not None:
        write_csv(frame, out)
        tally.show(path.name, out, console)
    else:
        facts["cases"] = frame.to_dict("records")
        if not console.silent:
            typer.echo(csv_of(frame), nl=False)
    console.print_json(facts)


def _predict_blocks(
    model: Path, path: Path, rereading: Rereading, out: Path, console: Console
) -> None:
    """Predict block by block, straight into a file."""
    from rskc.cli._blocks import predicted_parts
    from rskc.files import open_blocks, write_csv_parts

    saved = open_model(model)
    preparer = preparer_of(saved)
    table = _read_like_fit(open_blocks, saved, path, rereading)
    _, notes = matched(table.head(), saved.model, preparer)
    tally = Tally()

    def frames() -> Iterator[Any]:
        for frame in predicted_parts(table, saved.model, preparer, _clusters):
            tally.add(frame)
            yield frame

    with console.busy(f"Predicting {table.n_cases:,} cases"):
        write_csv_parts(frames(), out)
    console.note(*notes)
    tally.show(path.name, out, console)
    console.print_json(asdict(tally) | {"file": str(out)})


def _read_like_fit(read: Callable, saved: Any, path: Path, rereading: Rereading) -> Any:
    """Read a table as that of the fit; it need not have ids or labels because that had."""
    from rskc.files import TableError

    extra = saved.extra
    free: dict[str, Any] = {
        "id_column": None,
        "label_column": None,
        "weight_column": None,
        "label_row": None,
        "drop": [],
        "text_columns": "drop",
        "categorical": _categories(saved.model),
        "use_columns": "all",  # the model knows which
    }
    arguments = rereading.arguments({**extra.get("reading", {}), **free})
    ids = extra.get("id_column") or None
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


def _categories(model: Any) -> list[str]:
    """Return the columns of a model that hold categories."""
    if not hasattr(model, "encoder_"):
        return []
    names = zip(model.feature_names_in_, model.encoder_.columns_, strict=True)
    return [str(name) for name, code in names if code.categories]


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

    from rskc.model.fitted import by_column, with_cases
    from rskc.model.prediction import judge_cases
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


def csv_of(frame: Any) -> bytes:
    """Return a frame as the bytes that write_csv writes."""
    from tempfile import TemporaryDirectory

    from rskc.files import write_csv

    with TemporaryDirectory() as folder:
        write_csv(frame, Path(folder, "frame.csv"))
        return Path(folder, "frame.csv").read_bytes()
