"""Stability over the number of clusters."""

from __future__ import annotations

import textwrap
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from rskc.displays import style
from rskc.pictures.palette import GRAY, PALETTE
from rskc.selection.findings import clusters
from rskc.utils.wording import count

_TITLE_WIDTH = 92  # characters of a line


@dataclass(eq=False, repr=False)
class StabilityDisplay:
    """Stability of the least stable cluster and agreement of halves, by number of clusters.

    Gray points are single splits: the agreement of the two halves. The dashed line is the threshold
    of the least stable cluster, and what was chosen has a ring.

    Parameters
    ----------
    n_clusters : ndarray of int of shape (numbers,)
        The numbers of clusters that were tried.
    stability : ndarray of shape (numbers,)
        Stability of the least stable cluster.
    agreement, spread : ndarray of shape (numbers,)
        Median agreement of the halves, and half of its interquartile range.
    threshold : float
        What the stability must reach.
    chosen : int
        The number that was chosen; 1 has no ring, as nothing is drawn for it.
    reason : str, default=""
        Why, for the title.
    splits : ndarray of shape (n_splits, numbers), default=None
        Agreement of each split; None for no gray points.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure
        Where it was drawn.
    curve_ : Line2D
        The stability of the least stable cluster.
    agreement_ : ErrorbarContainer
        The agreement of the halves.
    points_ : PathCollection or None
        The splits.
    line_ : Line2D
        The threshold.
    chosen_ : Line2D or None
        The mark of the chosen number.
    legend_ : Legend
    """

    n_clusters: Any
    stability: Any
    agreement: Any
    spread: Any
    _: KW_ONLY
    threshold: float
    chosen: int
    reason: str = ""
    splits: Any = None

    @classmethod
    def from_estimator(cls, search: Any, *, ax: Any = None) -> Self:
        """Draw a search for the number of clusters by half-samples.

        Parameters
        ----------
        search : Stability
            A fitted search.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : StabilityDisplay
        """
        columns = "stability", "agreement", "agreement_spread"
        table = style.check_search(search, cls.__name__, "Stability", *columns)
        display = cls(
            table["n_clusters"].to_numpy(),
            *(table[column].to_numpy() for column in columns),
            threshold=search.threshold,
            chosen=search.n_clusters_,
            reason=search.reason_,
            splits=search.agreements_,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw both curves in ``ax``, or in a new figure."""
        self.ax_ = style.axes_for(ax, 7.5, 4.2)
        self.figure_ = self.ax_.figure
        style.tidy(self.ax_)
        places = style.places_of(self.ax_, self.n_clusters, bold=self.chosen)
        self.points_ = None if self.splits is None else self._draw_splits(places)
        orange = style.CURVE | {"color": PALETTE[1], "ls": "--", "marker": "s", "ms": 4.0}
        label = "halves agree, median\n± half the quartile range"
        self.agreement_ = self.ax_.errorbar(
            places, self.agreement, self.spread, label=label, **orange
        )
        look = {name: style.CURVE[name] for name in ("color", "marker", "ms", "lw", "zorder")}
        (self.curve_,) = self.ax_.plot(places, self.stability, label="least stable cluster", **look)
        label = f"threshold {self.threshold:g}"
        self.line_ = self.ax_.axhline(self.threshold, label=label, **style.DASHED)
        self.chosen_ = None
        for own in np.flatnonzero(np.asarray(self.n_clusters) == self.chosen):
            (self.chosen_,) = self.ax_.plot(
                places[own], self.stability[own], label="chosen", zorder=4, **style.RING
            )
        self.ax_.set(ylim=(self._lowest() - 0.03, 1.05), ylabel="stability, agreement")
        handles = [self.curve_, self.line_, self.agreement_, self.points_, self.chosen_]
        self.legend_ = style.legend_beside(self.ax_, handles=[h for h in handles if h is not None])
        style.headline(
            self.ax_,
            clusters(self.chosen).capitalize(),
            *textwrap.wrap(self.reason, _TITLE_WIDTH),
        )
        return self

    def _lowest(self) -> float:
        """Return 0, or the least agreement: by chance it may be below."""
        drawn = [self.agreement] if self.splits is None else [self.agreement, self.splits]
        return min(float(np.fmin.reduce(np.ravel(part), initial=0.0)) for part in drawn)

    def _draw_splits(self, places: np.ndarray) -> Any:
        splits = np.asarray(self.splits)
        x = np.tile(places, (len(splits), 1))
        look = {"s": 10, "c": GRAY, "alpha": 0.5, "linewidths": 0, "zorder": 2}
        label = f"halves agree, {count(len(splits), 'split')}"
        return self.ax_.scatter(x, splits, label=label, **look)
