"""Prediction strength over the number of clusters."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from rskc.displays import style
from rskc.pictures.palette import GRAY
from rskc.selection.findings import strength_reason
from rskc.utils.wording import count


@dataclass(eq=False, repr=False)
class StrengthDisplay:
    """The prediction strength of each number of clusters, with standard errors.

    Gray points are single splits, the dashed line is the threshold, and what was chosen has a ring.

    Parameters
    ----------
    n_clusters : ndarray of int of shape (numbers,)
        The numbers of clusters that were tried.
    strength, standard_error : ndarray of shape (numbers,)
        Mean strengths and their standard errors.
    threshold : float
        What the strength must reach.
    chosen : int
        The number that was chosen.
    splits : ndarray of shape (n_splits, numbers), default=None
        Strength of each split; None for no gray points.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure
        Where it was drawn.
    curve_ : ErrorbarContainer
        The strengths.
    points_ : PathCollection or None
        The splits.
    line_ : Line2D
        The threshold.
    chosen_ : Line2D
        The mark of the chosen number.
    legend_ : Legend
    """

    n_clusters: Any
    strength: Any
    standard_error: Any
    _: KW_ONLY
    threshold: float
    chosen: int
    splits: Any = None

    @classmethod
    def from_estimator(cls, search: Any, *, ax: Any = None) -> Self:
        """Draw a search for the number of clusters by prediction strength.

        Parameters
        ----------
        search : PredictionStrength
            A fitted search.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : StrengthDisplay
        """
        columns = "strength", "standard_error"
        table = style.check_search(search, cls.__name__, "PredictionStrength", *columns)
        display = cls(
            table["n_clusters"].to_numpy(),
            *(table[column].to_numpy() for column in columns),
            threshold=search.threshold,
            chosen=search.n_clusters_,
            splits=search.strengths_,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the strengths in ``ax``, or in a new figure."""
        self.ax_ = style.axes_for(ax, 7, 4)
        self.figure_ = self.ax_.figure
        style.tidy(self.ax_)
        places = style.places_of(self.ax_, self.n_clusters, bold=self.chosen)
        self.points_ = None if self.splits is None else self._draw_splits(places)
        self.curve_ = self.ax_.errorbar(
            places,
            self.strength,
            self.standard_error,
            label="mean ± std. error",
            **style.CURVE,
        )
        label = f"threshold {self.threshold:g}"
        self.line_ = self.ax_.axhline(self.threshold, label=label, **style.DASHED)
        own = int(np.argmax(np.asarray(self.n_clusters) == self.chosen))
        strength, error = self.strength[own], self.standard_error[own]
        (self.chosen_,) = self.ax_.plot(
            places[own], strength, label="chosen", zorder=4, **style.RING
        )
        top = max(1.05, 1.05 * self.threshold)
        self.ax_.set(ylim=(-0.03, top), ylabel="prediction strength")
        self.legend_ = style.legend_beside(self.ax_)
        reason = strength_reason(strength, error, self.threshold)
        style.headline(self.ax_, f"{count(self.chosen, 'cluster')}: {reason}")
        return self

    def _draw_splits(self, places: np.ndarray) -> Any:
        splits = np.asarray(self.splits)
        x = np.tile(places, (len(splits), 1))
        look = {"s": 9, "c": GRAY, "alpha": 0.45, "linewidths": 0, "zorder": 2}
        return self.ax_.scatter(x, splits, label=count(len(splits), "split"), **look)
