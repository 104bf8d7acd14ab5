"""Bars of features: their weights."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from rskc.displays import style
from rskc.inputs.validation import check_integer
from rskc.model.fitted import units_of
from rskc.pictures.models import check_fitted, strongest
from rskc.pictures.palette import GRAY, PALETTE
from rskc.utils.wording import count


@dataclass(eq=False, repr=False)
class WeightsDisplay:
    """One bar per feature, or group of features, for those with the largest weights.

    Parameters
    ----------
    weights : ndarray
        Weights above 0, the largest first.
    names : array-like of the same length
        Names of these features.
    n_features : int
        Number of features of the data, or of groups of them.
    noun : str, default="feature"
        What these are: "feature" or "feature group".

    Attributes
    ----------
    ax_, figure_ : Axes and Figure
        Where it was drawn.
    bars_ : BarContainer
        The bars, from top to bottom.
    more_ : Text or None
        What is said of the features with weight that have no bar.
    """

    weights: Any
    names: Any
    _: KW_ONLY
    n_features: int
    noun: str = "feature"

    @classmethod
    def from_estimator(cls, model: Any, X: Any = None, *, n_top: int = 30, ax: Any = None) -> Self:
        """Draw the weights of a model.

        Parameters
        ----------
        model : RobustSparseKMeans
            A fitted model.
        X : ignored
            There so that all displays can be called alike.
        n_top : int, default=30
            Largest number of bars.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : WeightsDisplay
        """
        model, X = check_fitted(model, X)
        check_integer("n_top", n_top, 1)
        units = units_of(model)
        first = strongest(units.weights)
        weights, names, n = units.weights[first], units.names[first], len(units.names)
        return cls(weights, names, n_features=n, noun=units.noun).plot(ax, n_top=n_top)

    def plot(self, ax: Any = None, *, n_top: int = 30) -> Self:
        """Draw at most ``n_top`` bars in ``ax``, or in a new figure."""
        weights, more = self.weights[:n_top], len(self.weights) - n_top
        self.ax_, self.figure_ = style.open_axes(ax, 6, 1.1 + 0.19 * (len(weights) + (more > 0)))
        places = np.arange(len(weights))
        self.bars_ = self.ax_.barh(places, weights, height=0.75, color=PALETTE[0])
        self.ax_.set_yticks(places, style.names_at(self.names, places))
        self.ax_.set(ylim=(len(weights) - 0.4 + (more > 0), -0.6), xlabel="weight")
        line = style.size_in_points(self.ax_)[1] / (len(weights) + 1)
        self.ax_.tick_params(axis="y", length=0, labelsize=np.clip(0.9 * line, 3, 8))
        self.more_, n, share = None, len(self.weights), ""
        if more > 0:
            text = f" and {more:,} more of {self.n_features:,}, down to {self.weights[-1]:.2g}"
            look = {"va": "center", "fontsize": 8, "color": GRAY}
            self.more_ = self.ax_.text(0, len(weights), text, **look)
            held = weights.sum() / self.weights.sum()
            share = f"the {len(weights)} largest hold {held:.0%} of the sum"
        title = f"{n:,} of {count(self.n_features, self.noun)} have weight"
        if n == self.n_features and np.ptp(self.weights) == 0:
            title = f"All {count(n, self.noun)} have the same weight"
        style.headline(self.ax_, title, share)
        return self
