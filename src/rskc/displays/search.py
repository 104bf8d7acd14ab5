"""What a search measured, whichever it is: lines over the settings that it tried."""

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rskc.displays import style
from rskc.pictures.palette import GRAY, PALETTE
from rskc.selection.findings import AXES, Curve, describe
from rskc.utils.wording import exact_percent

_TITLE_WIDTH = 92  # characters of a line
_TICK_POINTS = 7.5  # size of the words along the axes
_WORDS: dict[str, Callable[[Any], str]] = {
    "n_clusters": str,
    "l1_bound": "{:.3g}".format,
    "trim": exact_percent,
}
_DASHES = ("-", "--", ":", "-.")
_CURVE = {"marker": "o", "ms": 4.5, "lw": 1.2, "zorder": 2.5, "capsize": 2.5, "elinewidth": 0.9}
_RING = {"marker": "o", "ms": 12.0, "mfc": "none", "mec": PALETTE[5], "mew": 2.0, "ls": "none"}


@dataclass(eq=False, repr=False)
class SearchDisplay:
    """The curve of a search: for each setting that it tried, what it measured.

    For :class:`rskc.selection.Clest` these are error rates in the data and in reference sets, for
    Stability the least stable cluster and the agreement of halves, for GapL1 the gap, and for
    GridSearch the consensus. Points without a line are single splits or sets, bars are errors, a
    dashed line without points is a threshold, and what was chosen has a ring.

    Parameters
    ----------
    curve : Curve
        The curve that the search describes.
    title, reason : str, default=""
        What was chosen, and why.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure
        Where it was drawn.
    curves_ : list of ErrorbarContainer
        The lines, with their error bars, in the order of the curve.
    dots_ : list of PathCollection
        Single splits or sets, of the lines that have them.
    threshold_, chosen_ : Line2D or None
        The threshold, and the ring around what was chosen.
    above_axis_ : SecondaryAxis or None
        What else is known of each setting, such as the number of features.
    legend_ : Legend
    """

    curve: Curve
    title: str = ""
    reason: str = ""

    @classmethod
    def from_estimator(cls, search: Any, *, ax: Any = None) -> Self:
        """Draw a search.

        Parameters
        ----------
        search : Stability, Clest, GapL1 or GridSearch
            A fitted search.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : SearchDisplay
        """
        finding = describe(search)
        title, reason = (f"{s[:1].upper()}{s[1:]}" for s in (finding.result, finding.reason))
        return cls(finding.curve, title, reason).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the curve in ``ax``, or in a new figure."""
        self.ax_, self.figure_ = style.open_axes(ax, 7.5, 4.2)
        curve, self.curves_, self.dots_ = self.curve, [], []
        self.ax_.set(xlabel=AXES[curve.by], ylabel=curve.name)
        self.ax_.set_xscale("log" if curve.by == "l1_bound" else "linear")
        for line in curve.lines:
            color = PALETTE[line.color % len(PALETTE)]
            look = _CURVE | {"color": color, "ls": _DASHES[line.dash % len(_DASHES)]}
            look["label"] = line.label
            self.curves_.append(self.ax_.errorbar(curve.x, line.y, line.errors, **look))
            if line.dots is not None:
                places = np.tile(curve.x, (len(line.dots), 1))
                spots = {"s": 10, "color": color, "alpha": 0.3, "linewidths": 0, "zorder": 2}
                self.dots_.append(self.ax_.scatter(places, line.dots, **spots))
        self.threshold_ = self.chosen_ = self.above_axis_ = None
        if curve.threshold is not None:
            label, height = curve.threshold
            self.threshold_ = self.ax_.axhline(height, label=label, **style.DASHED)
        if curve.chosen is not None:
            number, place = curve.chosen
            at = curve.x[place], curve.lines[number].y[place]
            (self.chosen_,) = self.ax_.plot(*at, label="chosen", zorder=4, **_RING)
        marks = [mark for mark in (self.threshold_, self.chosen_) if mark is not None]
        self.legend_ = style.legend_beside(self.ax_, handles=[*self.curves_, *marks])
        style.headline(self.ax_, self.title, *textwrap.wrap(self.reason, _TITLE_WIDTH))
        if curve.above is not None:
            name, words = curve.above
            self.above_axis_ = self.ax_.secondary_xaxis("top")
            self.above_axis_.set_xlabel(name, fontsize=8)
            self.above_axis_.spines[:].set_visible(False)
            self._write(self.above_axis_, words)
        self._write(self.ax_, [_WORDS[curve.by](x) for x in curve.x.tolist()])
        return self

    def _write(self, axis: Any, words: list[str]) -> None:
        """Write a word at each setting, or at evenly spaced ones where there is less room."""
        width = _TICK_POINTS * (0.65 * max(map(len, words), default=0) + 0.7)
        shown = style.thinned(len(words), style.size_in_points(self.ax_)[0] / width)
        labels = [words[i] for i in shown]
        axis.set_xticks(self.curve.x[shown], labels, fontsize=_TICK_POINTS)
        axis.set_xticks([], minor=True)
        axis.tick_params(axis="x", length=2, color=GRAY)
