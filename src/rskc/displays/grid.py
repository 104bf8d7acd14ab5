"""One figure of the fits at all combinations of bound and trimming share, as a table in colors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from rskc.displays import style
from rskc.inputs.validation import check_choice
from rskc.pictures.palette import GRAY, INK
from rskc.utils.wording import count, exact_percent

_COLUMNS = {
    "consensus": "consensus (adjusted Rand)",
    "silhouette": "mean revised silhouette",
    "cer_bound": "CER to neighboring bounds",
    "cer_trim": "CER to neighboring shares",
    "objective": "objective per kept case",
    "within": "within sum of squares per kept case",
    "n_features": "features with weight",
    "n_outliers": "outliers",
}
_CELL_POINTS = 22.0, 10.0  # in smaller cells nothing is written


@dataclass(eq=False, repr=False)
class GridDisplay:
    """A table in colors for each number of clusters: trimming shares x L1 bounds.

    Under each bound stands the number of features that have weight, a range if it depends on the
    trimming. A frame marks what was chosen.

    Parameters
    ----------
    l1_bounds : array-like of shape (bounds,)
        The bounds, upwards; None stands for no bound.
    trims : ndarray of shape (shares,)
        The trimming shares, upwards.
    n_clusters : ndarray of int of shape (numbers,)
        The numbers of clusters.
    values, n_features : ndarray of shape (numbers, shares, bounds)
        What to draw, and the number of features with weight.
    chosen : tuple of three ints
        Which number, share and bound were chosen, counted from 0.
    name : str, default="consensus"
        What the values are, as in the table of the search.

    Attributes
    ----------
    axes_ : ndarray of Axes of shape (numbers,)
        Where the tables were drawn; ``ax_`` is the first.
    figure_ : Figure
    images_ : list of AxesImage
        The tables.
    texts_ : list of dict of tuple to Text
        For each table the numbers in its cells, by share and bound.
    frame_ : Rectangle
        What marks the chosen cell.
    colorbar_ : Colorbar
    """

    l1_bounds: Any
    trims: Any
    n_clusters: Any
    values: Any
    n_features: Any
    _: KW_ONLY
    chosen: tuple[int, int, int]
    name: str = "consensus"

    @classmethod
    def from_estimator(cls, search: Any, *, column: str = "consensus", axes: Any = None) -> Self:
        """Draw a column of the table of a grid search.

        Parameters
        ----------
        search : GridSearch
            A fitted search.
        column : str, default="consensus"
            Column of its table: "consensus", "silhouette", "cer_bound", "cer_trim", "objective",
            "within", "n_features" or "n_outliers".
        axes : sequence of Axes, default=None
            Where to draw, one for each number of clusters; None for a new figure.

        Returns
        -------
        display : GridDisplay
        """
        table = style.check_search(
            search, cls.__name__, "GridSearch", "consensus", "l1_bound", "trim"
        )
        check_choice("column", column, tuple(_COLUMNS))
        numbers, trims, bounds = (
            table[name].drop_duplicates().to_numpy() for name in ("n_clusters", "trim", "l1_bound")
        )
        shape = len(numbers), len(bounds), len(trims)  # the order of the rows
        values, n_features, marked = (
            np.asarray(part).reshape(shape).swapaxes(1, 2)
            for part in (table[column], table["n_features"], table["chosen"])
        )
        number, row, place = np.argwhere(marked)[0].tolist()
        chosen = number, row, place
        display = cls(bounds, trims, numbers, values, n_features, chosen=chosen, name=column)
        return display.plot(axes)

    def plot(self, axes: Any = None) -> Self:
        """Draw the tables in ``axes``, one for each number of clusters, or in a new figure."""
        self.axes_ = self._make_axes() if axes is None else np.atleast_1d(axes).ravel()
        if len(self.axes_) != len(self.n_clusters):
            raise ValueError(
                f"axes has {len(self.axes_)} elements and there are {len(self.n_clusters)} numbers "
                "of clusters; give one for each."
            )
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        self._draw_tables()
        self._draw_frame()
        self.colorbar_ = self.figure_.colorbar(
            self.images_[0], ax=list(self.axes_), shrink=0.8, aspect=25, pad=0.02
        )
        self.colorbar_.set_label(_COLUMNS.get(self.name, self.name), size=8)
        self.colorbar_.ax.tick_params(labelsize=8)
        self.texts_ = [self._write_cells(i) for i in range(len(self.axes_))]
        return self

    def _make_axes(self) -> np.ndarray:
        m, shares, bounds = np.shape(self.values)
        width = np.clip(1 + 0.5 * bounds, 2.2, 6)
        size = min(width * m + 1.2, 14), np.clip(1.6 + 0.32 * shares, 3, 7)
        subplots = style.pyplot().subplots
        return subplots(1, m, figsize=size, layout="constrained", squeeze=False)[1].ravel()

    def _draw_tables(self) -> None:
        values = np.asarray(self.values, float)
        low, high = np.nanmin(values), np.nanmax(values)
        if not high > low:
            low, high = low - 0.5, high + 0.5
        self.images_ = []
        for i, ax in enumerate(self.axes_):
            self.images_.append(
                ax.imshow(values[i], cmap=_colors(), vmin=low, vmax=high, aspect="auto")
            )
            style.headline(ax, count(int(self.n_clusters[i]), "cluster"))
            ax.set_xticks(range(len(self.l1_bounds)), self._bound_labels(i), fontsize=7)
            ax.set_yticks(
                range(len(self.trims)), [exact_percent(trim) for trim in self.trims], fontsize=8
            )
            ax.tick_params(length=0)
            ax.spines[:].set_visible(False)
            ax.set_xlabel("L1 bound\n(features with weight)", fontsize=8)
        self.ax_.set_ylabel("trimmed", fontsize=8)

    def _bound_labels(self, i: int) -> list[str]:
        labels = []
        for bound, counts in zip(self.l1_bounds, np.transpose(self.n_features[i]), strict=True):
            few, many = int(min(counts)), int(max(counts))
            range_ = f"{few}" if few == many else f"{few}-{many}"
            labels.append(("none" if _is_none(bound) else f"{bound:.3g}") + f"\n({range_})")
        return labels

    def _draw_frame(self) -> None:
        from matplotlib.patches import Rectangle

        number, row, column = self.chosen
        look: dict[str, Any] = {
            "fill": False,
            "edgecolor": style.CHOSEN,
            "linewidth": 2.5,
            "clip_on": False,
            "zorder": 3,
        }
        frame = Rectangle((column - 0.5, row - 0.5), 1, 1, **look)
        self.frame_ = self.axes_[number].add_patch(frame)

    def _write_cells(self, i: int) -> dict:
        """Write the values into cells that have room."""
        values, ax = np.asarray(self.values[i], float), self.axes_[i]
        room = style.size_in_points(ax) / values.shape[::-1]
        if np.any(room < _CELL_POINTS):
            return {}
        look = {"ha": "center", "va": "center", "fontsize": 7.5}
        rgba, write = self.images_[i].to_rgba(values), _writer(values)
        return {
            (row, column): ax.text(
                column, row, write(value), color=_ink_on(rgba[row, column]), **look
            )
            for (row, column), value in np.ndenumerate(values)
        }


def _colors() -> Any:
    from matplotlib import colormaps

    return colormaps["viridis"].with_extremes(bad=GRAY)


def _writer(values: np.ndarray) -> Callable[[float], str]:
    """How to write values: whole numbers, two decimals, or three digits; nothing for NaN."""
    seen = values[~np.isnan(values)]
    form = "{:.3g}" if np.any(np.abs(seen) >= 10) else "{:.2f}"
    if np.all(seen == np.round(seen)) and np.any(np.abs(seen) > 1):
        form = "{:,.0f}"
    return lambda value: "" if np.isnan(value) else form.format(value)


def _ink_on(rgba: np.ndarray) -> str:
    """Black or white, whichever is read better on a color."""
    return INK if rgba[:3] @ [0.299, 0.587, 0.114] > 0.55 else "white"


def _is_none(bound: Any) -> bool:
    return bound is None or np.isnan(bound)
