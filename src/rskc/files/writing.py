"""Writing files whole or not at all, and results in them that read back exactly."""

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rskc.files._source import needed
from rskc.inputs.frames import as_number
from rskc.markers import marker_effects
from rskc.model.fitted import number_names
from rskc.utils.atomic import atomic_write
from rskc.utils.wording import as_utf8

# Text that begins so is run as a formula by spreadsheets (OWASP, "CSV injection"); some of them
# drop spaces in front of it first.
FORMULA = r"^(\s*[=+\-@＝＋－＠]|[\t\r\n])"


def write_csv(frame: Any, path: str | os.PathLike) -> None:
    """Write a pandas.DataFrame as CSV, without its index.

    UTF-8; numbers are written so that they read back exactly; a missing cell is empty, an empty
    text is ``""``. Text, also that of a column's name, that begins with ``=``, ``+``, ``-`` or
    ``@``, after spaces too, or with a tab or a line end gets an apostrophe in front, because
    spreadsheets would run it as a formula. A text that is a number, such as a case called "-5", is
    left alone.

    Parameters
    ----------
    frame : pandas.DataFrame
        What to write.
    path : str or path
        Where to; written whole or not at all.
    """
    write_csv_parts([frame], path)


def write_csv_parts(frames: Iterable[Any], path: str | os.PathLike) -> None:
    """Write frames with the same columns one after the other as one CSV, as ``write_csv`` does.

    Parameters
    ----------
    frames : iterable of pandas.DataFrame
        What to write; each is asked for when those before it are written.
    path : str or path
        Where to; written whole or not at all.
    """
    with atomic_write(path) as file:
        for part in csv_parts(frames):
            file.write(part)


def csv_parts(frames: Iterable[Any]) -> Iterator[bytes]:
    """Yield the bytes of a CSV of frames with the same columns, as ``write_csv`` writes it."""
    pl = needed("polars", "to write CSV", "tables")
    for number, frame in enumerate(frames):
        if number == 0:
            names = pl.Series([as_utf8(str(name)) for name in frame.columns], dtype=pl.String)
            header = names.to_frame("0").select(_harmless(pl, pl.all())).transpose()
            yield header.write_csv(include_header=False).encode()
        columns = [_column(pl, frame.iloc[:, j]).alias(str(j)) for j in range(frame.shape[1])]
        body = pl.DataFrame(columns).with_columns(_harmless(pl, pl.selectors.string().as_expr()))
        yield body.write_csv(include_header=False).encode()


def _column(pl: Any, series: Any) -> Any:
    """Make a series of polars without pyarrow, which polars needs to take one of pandas."""
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biuf":
        made = pl.Series(series.to_numpy())
        return made.fill_nan(None) if series.dtype.kind == "f" else made
    # Text of pandas 3 takes a call for each that is asked for.
    pairs = zip(series.to_numpy(object), series.isna().to_numpy(), strict=True)
    cells = [None if is_missing else str(cell) for cell, is_missing in pairs]
    try:
        return pl.Series(cells, dtype=pl.String)
    except UnicodeEncodeError:  # seldom: a call for each cell takes longer than all the rest
        return pl.Series([cell and as_utf8(cell) for cell in cells], dtype=pl.String)


def _harmless(pl: Any, text: Any) -> Any:
    number = text.str.strip_chars(" ").cast(pl.Float64, strict=False)
    formula = text.str.contains(FORMULA) & number.is_null()
    return pl.when(formula).then(pl.lit("'") + text).otherwise(text).name.keep()


def write_ranked_lists(model: Any, X: Any, folder: str | os.PathLike) -> list[Path]:
    """Write for each cluster all features, ranked by their effect, as enrichment tools read them.

    The file ``cluster-0.rnk`` has a line for each feature: its name, a tab, and how far cluster 0
    is above the others in it, or below; see :func:`rskc.markers.marker_effects`. The largest is
    first. All features are in it, with weight or without, because such tools need the others for
    comparison. Features that are not observed in the cluster or outside it are left out. Names that
    spreadsheets would run as formulas get an apostrophe, as in ``write_csv``.

    Parameters
    ----------
    model : RobustSparseKMeans
        A fitted model with at least two clusters.
    X : array-like or data frame of shape (n_samples, n_features)
        The data of the fit.
    folder : str or path
        Where to; the folder is made if there is none. Each file is written whole or not at all.

    Returns
    -------
    paths : list of Path
        The files; none of a cluster whose cases are all trimmed or outliers.
    """
    effects, names = marker_effects(model, X).effects, number_names(model)
    if len(effects) == 1:
        raise ValueError(
            "One cluster has nothing to be compared with, so no features can be ranked for it."
        )
    # A tab or a line end in a name would be one of the file.
    words = [" ".join(as_utf8(str(name)).split()) for name in names]
    words = [f"'{x}" if as_number(x) is None and re.match(FORMULA, x) else x for x in words]
    paths = []
    for k, scores in enumerate(effects):
        order = np.argsort(-scores, kind="stable")
        lines = [f"{words[j]}\t{scores[j]:.6g}\n" for j in order[np.isfinite(scores[order])]]
        if not lines:
            continue
        path = Path(folder) / f"cluster-{k}.rnk"
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write("".join(lines).encode())
        paths.append(path)
    return paths


def write_json(obj: Any, path: str | os.PathLike) -> None:
    """Write an object as JSON, in UTF-8, indented.

    NumPy's numbers and arrays are welcome. NaN and infinities, which JSON does not have, become
    null. Anything else that JSON does not have becomes its text.

    Parameters
    ----------
    obj : object
        What to write.
    path : str or path
        Where to; written whole or not at all.
    """
    with atomic_write(path) as file:
        # A lone surrogate, from a file name that is no UTF-8, is no text.
        file.write(as_utf8(json_text(obj)).encode() + b"\n")


def json_text(obj: Any) -> str:
    """Return an object as indented JSON, as ``write_json`` writes it."""
    return json.dumps(to_json(obj), ensure_ascii=False, allow_nan=False, indent=1)


def to_json(value: Any) -> Any:
    """Return an object made of what JSON has; NaN and infinities become None."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(item) for item in value]
    return str(value)
