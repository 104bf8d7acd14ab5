"""What changes as more and more cases are trimmed, one curve a number of clusters."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from rskc.displays import style
from rskc.inputs.validation import check_choice
from rskc.pictures.palette import MARKERS, cluster_colors, darker
from rskc.selection.findings import trim_reason
from rskc.selection.settings import least_enough
from rskc.utils.wording import count, exact_percent

_LABELS = {
    "moved": "share of pairs that moved (CER)",
    "objective": "objective per kept case",
    "within": "weighted within sum of squares per kept case",
    "n_features": "features with weight",
    "n_outliers": "outliers",
}
_TICK_POINTS = 26.0  # from one share that is written to the next
_ASIDE = 0.5  # of a step of the shares: how wide the curves stand apart


@dataclass(eq=False, repr=False)
class TrimCurvesDisplay:
    """One curve a number of clusters, over the share of cases that is trimmed.

    The legend tells the share of outlying cases, and rings mark the least share tried that trims as
    many. Of "moved", the share of pairs whose being together differs from the next smaller share,
    the least share has none; its ring stands at 0. Curves are set a little apart sideways, so that
    one does not cover another.

    Parameters
    ----------
    trims : ndarray of shape (shares,)
        Trimming shares, upwards.
    values : ndarray of shape (numbers, shares)
        Heights of the curves, NaN for none.
    n_clusters : ndarray of int of shape (numbers,)
        Numbers of clusters.
    suggested : ndarray of shape (numbers,)
        The share of outlying cases with each.
    name : str, default="moved"
        What the values are, as in the table of the search.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure
        Where it was drawn.
    curves_, rings_ : dict of int to Line2D
        For each number of clusters its curve and, if a share that was tried trims all outlying
        cases, the mark of the least.
    legend_ : Legend
    """

    trims: Any
    values: Any
    n_clusters: Any
    suggested: Any
    _: KW_ONLY
    name: str = "moved"

    @classmethod
    def from_estimator(cls, search: Any, *, y: str = "moved", ax: Any = None) -> Self:
        """Draw trimming curves.

        Parameters
        ----------
        search : TrimCurves
            A fitted search.
        y : {"moved", "objective", "within", "n_features", "n_outliers"}, default="moved"
            Column of its table to be drawn.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : TrimCurvesDisplay
        """
        table = style.check_search(search, cls.__name__, "TrimCurves", "trim", "moved")
        check_choice("y", y, tuple(_LABELS))
        wide = table.pivot(index="n_clusters", columns="trim", values=y)
        numbers = wide.index.to_numpy()
        suggested = np.array([search.suggested_trims_[K] for K in numbers.tolist()])
        values = wide.to_numpy(dtype=float)
        return cls(wide.columns.to_numpy(), values, numbers, suggested, name=y).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the curves in ``ax``, or in a new figure."""
        self.ax_ = style.axes_for(ax, 7.5, 4)
        self.figure_ = self.ax_.figure
        style.tidy(self.ax_)
        self._draw_curves()
        self._draw_frame()
        self.legend_ = style.legend_beside(self.ax_, title="clusters: outlying cases")
        reason = trim_reason(self.suggested)
        note = f"{count(len(self.trims), 'share')} tried; rings: the least that trims as many"
        style.headline(self.ax_, reason, note)
        self._write_shares()
        return self

    def _draw_curves(self) -> None:
        self.curves_, self.rings_ = {}, {}
        colors, asides = cluster_colors(len(self.n_clusters)), self._asides()
        for i, K in enumerate(np.asarray(self.n_clusters).tolist()):
            x, heights, color = self.trims + asides[i], self.values[i], colors[i]
            marker = {"marker": MARKERS[i % len(MARKERS)], "mec": darker(color), "mew": 0.5}
            label = f"{K}: {exact_percent(self.suggested[i])}"
            (self.curves_[K],) = self.ax_.plot(
                x, heights, color=color, ms=5, lw=1.5, label=label, **marker
            )
            if self.suggested[i] <= self.trims[-1] + 1e-9:
                own = list(self.trims).index(least_enough(self.trims, self.suggested[i]))
                ring = {"marker": "o", "ms": 12, "mfc": "none", "mec": darker(color, 0.3)}
                (self.rings_[K],) = self.ax_.plot(
                    x[own], np.nan_to_num(heights[own]), mew=1.6, ls="none", zorder=3, **ring
                )

    def _asides(self) -> np.ndarray:
        """How far each curve stands aside."""
        step = np.diff(self.trims).min() if len(self.trims) > 1 else 0.0
        m = len(self.n_clusters)
        return _ASIDE * step * (np.arange(m) - (m - 1) / 2) / max(m, 3)

    def _draw_frame(self) -> None:
        from matplotlib.ticker import FuncFormatter

        ax, (low, high) = self.ax_, (self.trims[0], self.trims[-1])
        room = 0.05 * (high - low) or 0.01
        ax.set(xlim=(low - room, high + room), ylabel=_LABELS.get(self.name, self.name))
        ax.set_xlabel("share of cases that is trimmed")
        if self.name == "moved":
            top = max(np.nanmax(self.values, initial=0), 0.1)
            ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: exact_percent(value)))
            ax.set_ylim(-0.06 * top, 1.08 * top)

    def _write_shares(self) -> None:
        """Put ticks at the shares that were tried, where there is room."""
        left, right = self.ax_.get_xlim()
        points = (
            (np.asarray(self.trims) - left) / (right - left) * style.size_in_points(self.ax_)[0]
        )
        shown = np.asarray(self.trims)[style.keep_apart(points, _TICK_POINTS)]
        self.ax_.set_xticks(shown, [exact_percent(trim) for trim in shown])
