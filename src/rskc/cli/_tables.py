"""From a file to the data that is clustered, with notes on what was done to it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rskc.cli._console import Console, recorded_warnings
from rskc.cli._options import Reading, Standardizing
from rskc.wording import listed, quoted

SCALES = {"robust": ("median", "mad"), "classic": ("mean", "std")}
WORDS = {
    "robust": "centered at the median and divided by the MAD",
    "classic": "centered at the mean and divided by the standard deviation",
}


@dataclass(frozen=True)
class Scaling:
    """How tables are standardized: "none", "rows", or "columns" by centers and scales of a fit."""

    of: str = "none"
    kind: str = "robust"
    centers: Any = None  # arrays, of columns
    scales: Any = None

    def apply(self, frame: Any) -> Any:
        """Standardize a frame; warns of rows that are constant."""
        return frame if self.of == "none" else _framed(frame, self._standardizer().transform)

    def apply_to_block(self, frame: Any) -> Any:
        """Standardize a block; without a warning on constant rows, whose numbers it cannot know."""
        if self.of != "rows":
            return self.apply(frame)
        from rskc.preprocessing import standardize_rows

        return _framed(frame, lambda X: standardize_rows(X, *SCALES[self.kind])[0])

    def of_columns(self, places: list[int]) -> Scaling:
        """Return how some of the columns are standardized, each by itself."""
        if self.of != "columns":
            return self
        return replace(self, centers=self.centers[places], scales=self.scales[places])

    def _standardizer(self) -> Any:
        from rskc.preprocessing import ColumnStandardizer, RowStandardizer

        if self.of == "rows":
            return RowStandardizer(*SCALES[self.kind])
        made = ColumnStandardizer(*SCALES[self.kind])
        made.center_, made.scale_ = self.centers, self.scales
        made.n_features_in_ = len(self.centers)
        return made

    def words(self) -> str:
        """Say what was done."""
        return "none" if self.of == "none" else f"{self.of} {WORDS[self.kind]}"

    def python(self) -> str | None:
        """Return the standardizer as one writes it in Python."""
        return None if self.of == "none" else repr(self._standardizer())

    def extra(self) -> dict[str, Any]:
        """Return what the model's file keeps."""
        return {"of": self.of, "kind": self.kind, "centers": self.centers, "scales": self.scales}

    @classmethod
    def from_extra(cls, extra: Mapping[str, Any] | None, p: int) -> Scaling:
        """Make one from what the model's file has kept, if it fits its model."""
        scaling = cls(**(extra or {}))
        arrays = (scaling.centers, scaling.scales) if scaling.of == "columns" else ()
        if scaling.kind not in SCALES or any(np.shape(array) != (p,) for array in arrays):
            raise ValueError("the standardization in the model's file does not fit the model.")
        return scaling


def _framed(frame: Any, transform: Any) -> Any:
    import pandas as pd

    values = transform(frame.to_numpy())
    return pd.DataFrame(values, index=frame.index, columns=frame.columns, copy=False)


def fit_scaling(asked: Standardizing, frame: Any) -> Scaling:
    """Find centers and scales of the columns, if it is these; may warn of some of them."""
    if asked.standardize != "columns":
        return Scaling(asked.standardize, asked.scale)
    from rskc.preprocessing import ColumnStandardizer

    fitted = ColumnStandardizer(*SCALES[asked.scale]).fit(frame)
    return Scaling("columns", asked.scale, fitted.center_, fitted.scale_)


@dataclass(frozen=True)
class Data:
    """A table, and what is clustered of it."""

    table: Any
    X: Any  # pandas.DataFrame, or one of Dask, standardized
    shape: tuple[int, int]
    scaling: Scaling
    reading: dict[str, Any]  # arguments of read_table
    notes: list[str]
    seconds: float


def read(path: Path, reading: Reading, standardizing: Standardizing, console: Console) -> Data:
    """Read a table and standardize it."""
    return _read(path, reading.arguments(), console, standardizing)


def reread(path: Path, arguments: dict[str, Any], scaling: Scaling, console: Console) -> Data:
    """Read the table of a fit again, and standardize it as then."""
    return _read(path, arguments, console, scaling)


def _read(
    path: Path, arguments: dict[str, Any], console: Console, how: Standardizing | Scaling
) -> Data:
    from rskc.files import read_table

    start = time.perf_counter()
    with console.busy(f"Reading {path.name}"), recorded_warnings() as warned:
        table = read_table(path, **arguments)
        scaling = how if isinstance(how, Scaling) else fit_scaling(how, table.data)
        X = scaling.apply(table.data)
    notes = [*notes_of(table), *map(str, warned)]
    return Data(table, X, X.shape, scaling, arguments, notes, time.perf_counter() - start)


def notes_of(table: Any) -> Iterator[str]:
    """Say what someone who thinks the table is just numbers would like to know."""
    first, name = table.data.iloc[:, 0].to_numpy(), table.data.columns[0]
    n = len(first)
    if n > 3 and (first - first[0] == range(n)).all() and first[0] in (0, 1):
        yield (
            f"Column {name!r} counts the rows and was clustered as a measurement; if it names the "
            f"cases, add --id-column {name!r}."
        )
    unobserved = table.data.index[table.data.isna().all(axis=1)] if table.n_missing else []
    if len(unobserved):
        which = listed(map(repr, unobserved))
        yield f"No value at all, so that the cluster means nothing: {which}."
    yield from left_out(table)
    if table.empty:
        yield f"Without a single value: {quoted(table.empty)}."
    if table.constant:
        tell = "it tells" if len(table.constant) == 1 else "they tell"
        yield f"The same in all cases, so {tell} nothing: {quoted(table.constant)}."


def left_out(table: Any) -> Iterator[str]:
    """Name columns that were left out without having been asked for."""
    dropped = {name: why for name, why in table.dropped.items() if why != "asked for"}
    if dropped:
        which = listed(f"{name!r} ({why})" for name, why in dropped.items())
        hold = "it holds" if len(dropped) == 1 else "they hold"
        yield f"Left out, since {hold} no numbers: {which}."
