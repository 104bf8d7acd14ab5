"""Making cells comparable before clustering, and in the same way before predicting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

ROWS = {"robust": ("median", "mad"), "classic": ("mean", "std")}
WORDS = {
    "robust": "centered at the median and divided by the MAD",
    "classic": "centered at the mean and divided by the standard deviation",
}


@dataclass(frozen=True)
class Scaling:
    """What is centered and scaled: "none", "rows" or "columns"; these with what they learned."""

    of: str = "none"
    kind: str = "robust"
    centers: np.ndarray | None = None
    scales: np.ndarray | None = None

    def apply(self, frame: Any) -> Any:
        """Standardize a frame; warns of rows that are constant."""
        if self.of == "none":
            return frame
        values = self._rows(frame) if self.of == "rows" else self._columns(frame)
        import pandas as pd

        return pd.DataFrame(values, index=frame.index, columns=frame.columns, copy=False)

    def _rows(self, frame: Any) -> np.ndarray:
        from rskc.preprocessing import RowStandardizer

        return RowStandardizer(*ROWS[self.kind]).fit_transform(frame.to_numpy())

    def _columns(self, frame: Any) -> np.ndarray:
        values = frame.to_numpy()
        made = (values - self.centers) / self.scales
        return made.astype(values.dtype, copy=False)

    def words(self) -> str:
        """What was done."""
        return "none" if self.of == "none" else f"{self.of} {WORDS[self.kind]}"

    def extra(self) -> dict[str, Any]:
        """For the model's file."""
        return {"of": self.of, "kind": self.kind, "centers": self.centers, "scales": self.scales}

    @classmethod
    def from_extra(cls, extra: Mapping[str, Any] | None, p: int) -> Scaling:
        """From the model's file, if it fits its model."""
        scaling = cls(**(extra or {}))
        arrays: Any = (scaling.centers, scaling.scales) if scaling.of == "columns" else ()
        if scaling.kind not in ROWS or any(np.shape(array) != (p,) for array in arrays):
            raise ValueError("the standardization in the model's file does not fit the model.")
        return scaling


def learn(of: str, kind: str, frame: Any) -> tuple[Scaling, list[str]]:
    """Find centers and scales of the columns, if it is these; and say what was out of the usual."""
    if of != "columns":
        return Scaling(of, kind), []
    values = frame.to_numpy(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        centers, scales = (_robust if kind == "robust" else _classic)(values)
        spread = _classic(values)[1]
    rough = (scales == 0) & (spread > 0)
    scales = np.where(rough, spread, scales)
    usable = np.isfinite(scales) & (scales > 0) & np.isfinite(centers)
    scaling = Scaling(
        of, kind, np.where(usable | (scales == 0), centers, 0.0), np.where(usable, scales, 1.0)
    )
    return scaling, _told(frame.columns[rough])


def rows_standardized(values: np.ndarray, kind: str) -> np.ndarray:
    """What RowStandardizer makes of cases, without a word on those that are constant."""
    from rskc.preprocessing import _deviations, _mads, _means, _medians

    centers, scales = (
        (_medians(values), _mads(values))
        if kind == "robust"
        else (_means(values), _deviations(values))
    )
    return (values - centers[:, None]) / np.where(scales == 0, 1, scales)[:, None]


def _told(names: Any) -> list[str]:
    from rskc.files._source import named

    if not len(names):
        return []
    which = named(map(str, names), 3)
    return [
        f"More than half of the cells of {len(names)} columns are equal, so that the MAD is 0; "
        f"their standard deviation was taken instead: {which}."
    ]


def _robust(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Medians and MADs of the columns, over the cells that are there."""
    from rskc.preprocessing import _mads, _medians

    columns = np.ascontiguousarray(values.T)
    return _medians(columns), _mads(columns)


def _classic(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of the columns, over the cells that are there."""
    from rskc.preprocessing import _deviations, _means

    columns = np.ascontiguousarray(values.T)
    return _means(columns), _deviations(columns)
