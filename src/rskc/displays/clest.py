"""How well clusters are predicted: in the data, and in data without clusters."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from rskc.displays import style
from rskc.pictures.palette import GRAY, INK, PALETTE
from rskc.selection.findings import clest_reason, clusters
from rskc.utils.wording import count

_ASIDE = 0.2  # of a place: observed to the left, reference to the right
_WIDTH = 0.28  # of a place: of a cloud of points and the bar through it
_OBSERVED, _REFERENCE = PALETTE[0], GRAY
_PLACE_POINTS = 30.0  # a place of fewer points has its number upright


@dataclass(eq=False, repr=False)
class ClestDisplay:
    """One point a classification error rate: of the splits of the data, and of reference sets.

    For each number of clusters the observed ones stand to the left with their median, and those of
    the reference sets, which have no clusters, to the right with their mean. Above stands how many
    reference sets are below the median of the observed; bold with a star are those that passed.

    Parameters
    ----------
    n_clusters : ndarray of int of shape (numbers,)
        The numbers of clusters that were tried.
    observed : ndarray of shape (n_splits, numbers)
        Error rates of the splits.
    reference : ndarray of shape (n_references, numbers)
        Error rates of the reference sets.
    passed : ndarray of bool of shape (numbers,)
        Which numbers passed.
    chosen : int
        The number that was chosen; 1 for no clusters.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure
        Where it was drawn.
    points_ : dict of str to PathCollection
        The error rates, "observed" and "reference".
    bars_ : dict of str to LineCollection
        The "median" of the observed and the "mean" of the reference ones.
    band_ : Rectangle or None
        What marks the chosen number, if that is one of those tried.
    below_axis_ : SecondaryAxis
        The numbers of reference sets below.
    legend_ : Legend
    """

    n_clusters: Any
    observed: Any
    reference: Any
    _: KW_ONLY
    passed: Any
    chosen: int

    @classmethod
    def from_estimator(cls, search: Any, *, ax: Any = None) -> Self:
        """Draw a search for the number of clusters by Clest.

        Parameters
        ----------
        search : Clest
            A fitted search.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : ClestDisplay
        """
        table = style.check_search(search, cls.__name__, "Clest", "observed_cer", "reference_cer")
        display = cls(
            table["n_clusters"].to_numpy(),
            search.observed_cers_,
            search.reference_cers_,
            passed=table["passed"].to_numpy(dtype=bool),
            chosen=search.n_clusters_,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the error rates in ``ax``, or in a new figure."""
        self.ax_ = style.axes_for(ax, np.clip(3.2 + 0.55 * len(self.n_clusters), 5.5, 11), 4)
        self.figure_ = self.ax_.figure
        style.tidy(self.ax_)
        places = style.places_of(self.ax_, self.n_clusters, bold=self.chosen)
        self._draw_points(places)
        self._draw_bars(places)
        self._draw_band(places)
        top = max(np.max(self.observed), np.max(self.reference), 0.05)
        self.ax_.set(ylim=(-0.04 * top, 1.06 * top), ylabel="classification error rate")
        self.legend_ = style.legend_beside(self.ax_)
        n_below = np.count_nonzero(self.reference < np.median(self.observed, axis=0), axis=0)
        reason = clest_reason(self.n_clusters, n_below, len(self.reference), self.chosen)
        sign = "\n" if self.chosen == 1 else ": "
        style.headline(self.ax_, f"{clusters(self.chosen).capitalize()}{sign}{reason}")
        self._write_below(places, n_below)
        return self

    def _draw_points(self, places: np.ndarray) -> None:
        self.points_ = {}
        looks = {"s": 11, "alpha": 0.6, "linewidths": 0}
        for name, rates, aside, color, marker, noun in (
            ("observed", self.observed, -_ASIDE, _OBSERVED, "o", "split"),
            ("reference", self.reference, _ASIDE, _REFERENCE, "s", "set"),
        ):
            rates = np.asarray(rates)
            x = places + aside + _scatter(len(rates))[:, None]
            label = f"{name}, {count(len(rates), noun)}"
            self.points_[name] = self.ax_.scatter(
                x.ravel(), rates.ravel(), c=color, marker=marker, label=label, **looks
            )

    def _draw_bars(self, places: np.ndarray) -> None:
        self.bars_ = {}
        for name, rates, summary, aside, color in (
            ("median", self.observed, np.median, -_ASIDE, _OBSERVED),
            ("mean", self.reference, np.mean, _ASIDE, INK),
        ):
            ends = places + aside - 0.6 * _WIDTH, places + aside + 0.6 * _WIDTH
            self.bars_[name] = self.ax_.hlines(
                summary(rates, axis=0), *ends, color=color, linewidth=2.2, zorder=3, label=name
            )

    def _draw_band(self, places: np.ndarray) -> None:
        self.band_ = None
        for place in places[np.asarray(self.n_clusters) == self.chosen]:
            self.band_ = self.ax_.axvspan(
                place - 0.5,
                place + 0.5,
                color=style.CHOSEN,
                alpha=0.13,
                lw=0,
                zorder=0,
                label="chosen",
            )

    def _write_below(self, places: np.ndarray, n_below: np.ndarray) -> None:
        pairs = list(zip(n_below.tolist(), self.passed, strict=True))
        labels = [f"{number}{' *' * bool(passed)}" for number, passed in pairs]
        crowded = style.size_in_points(self.ax_)[0] < _PLACE_POINTS * len(places)
        self.below_axis_ = self.ax_.secondary_xaxis("top")
        ticks = self.below_axis_.set_xticks(places, labels, fontsize=8, rotation=90 * crowded)
        for tick, (_, passed) in zip(ticks, pairs, strict=True):
            tick.label2.set(fontweight="bold" if passed else "normal", color=INK)
        self.below_axis_.tick_params(length=0)
        self.below_axis_.spines[:].set_visible(False)
        star = " (*: passed)" if np.any(self.passed) else " (none passed)"
        title = f"of {count(len(self.reference), 'reference set')}, below the median{star}"
        self.below_axis_.set_xlabel(title, fontsize=8)


def _scatter(n: int) -> np.ndarray:
    """Spread n points over the width of a cloud, neighbors far apart (golden ratio)."""
    return _WIDTH * ((np.arange(n) * 0.6180339887 + 0.5) % 1 - 0.5)
