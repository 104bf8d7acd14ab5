"""Bars of features: their weights, and how often half-samples select them."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from rskc.displays import style
from rskc.inputs.validation import check_integer
from rskc.model.fitted import feature_names, units_of
from rskc.pictures.models import check_fitted, strongest
from rskc.pictures.palette import GRAY, PALETTE
from rskc.utils.wording import count, number

FEATURE_POINTS = 8.0  # height of a line of text


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
        self.ax_.set_yticks(places, style.plain_names(self.names[:n_top]))
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


@dataclass(eq=False, repr=False)
class SelectionDisplay:
    """One bar per feature: the share of the half-sample fits that select it, the largest first.

    Features that are selected equally often are ordered by their weight. Gray bars are features
    without weight in the model of all cases.

    Parameters
    ----------
    probabilities : ndarray of shape (n_features,)
        Selection probabilities of all features, the largest first.
    names : array-like of shape (n_features,)
        Names of the features.
    weighted : ndarray of bool of shape (n_features,), default=None
        Which of them have weight; None if that is not known.
    threshold : float, default=0.75
        Share of the half-samples from which on a feature counts as selected.
    bound : float, default=None
        How many false ones to expect among these at most, for the title.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure
        Where it was drawn.
    bars_ : BarContainer
        The bars, from left to right.
    line_ : Line2D
        The threshold.
    more_ : Text or None
        What is said of the features that have no bar.
    legend_ : Legend
    """

    probabilities: Any
    names: Any
    _: KW_ONLY
    weighted: Any = None
    threshold: float = 0.75
    bound: float | None = None

    @classmethod
    def from_estimator(
        cls, search: Any, *, threshold: float = 0.75, n_top: int = 60, ax: Any = None
    ) -> Self:
        """Draw how often half-samples select the features.

        Parameters
        ----------
        search : Stability
            A fitted search.
        threshold : float, default=0.75
            From which on a feature counts as found again; above 0.5.
        n_top : int, default=60
            Largest number of bars.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : SelectionDisplay
        """
        check_integer("n_top", n_top, 1)
        style.check_stability(search, cls.__name__)
        bound, found = search.selection_bound(threshold), search.selection_probabilities_
        weights = getattr(search.best_estimator_, "feature_weights_", np.ones(len(found)))
        order = np.lexsort((-weights, -found))
        return cls(
            found[order],
            feature_names(search)[order],
            weighted=weights[order] > 0,
            threshold=threshold,
            bound=bound,
        ).plot(ax, n_top=n_top)

    def plot(self, ax: Any = None, *, n_top: int = 60) -> Self:
        """Draw at most ``n_top`` bars in ``ax``, or in a new figure."""
        shares = np.asarray(self.probabilities)
        shown, p = shares[:n_top], len(shares)
        self.ax_, self.figure_ = style.open_axes(ax, np.clip(2.5 + 0.125 * len(shown), 5, 11), 4)
        weighted = np.ones(p, bool) if self.weighted is None else np.asarray(self.weighted)
        colors = np.where(weighted[:n_top], PALETTE[0], GRAY)
        self.bars_ = self.ax_.bar(np.arange(len(shown)), shown, width=0.75, color=colors)
        label = f"threshold {self.threshold:g}"
        self.line_ = self.ax_.axhline(self.threshold, label=label, **style.DASHED)
        self.ax_.set(xlim=(-0.7, len(shown) - 0.3), ylim=(0, 1.02))
        self.ax_.set(ylabel="share of half-samples that select it")
        named = style.thinned(len(shown), style.size_in_points(self.ax_)[0] / FEATURE_POINTS)
        names = style.names_at(self.names, named)
        self.ax_.set_xticks(named, names, rotation=90, fontsize=6.5)
        self.more_ = None
        if p > n_top:
            text = f"and {p - n_top:,} more, at most {number(float(shares[n_top]), 2)}"
            look = {"ha": "right", "va": "top", "fontsize": 8, "color": GRAY}
            look |= {"transform": self.ax_.transAxes, "bbox": style.backing()}
            self.more_ = self.ax_.text(0.99, 0.97, text, **look)
        handles = [self.line_]
        for color, words in ((GRAY, "has no weight"), (PALETTE[0], "has weight")):
            if self.weighted is not None and color in colors:
                first = self.bars_[int(np.argmax(colors == color))]
                first.set_label(words)
                handles.insert(0, first)
        self.legend_ = style.legend_beside(self.ax_, handles=handles)
        n, note = np.count_nonzero(shares >= self.threshold), ""
        title = f"{n:,} of {count(p, 'feature')} selected by {self.threshold:.0%} of the"
        if n and self.bound is not None and np.isfinite(self.bound):
            note = f"at most {number(self.bound, 2)} of them expected by chance alone"
        style.headline(self.ax_, f"{title} half-samples or more", note)
        return self
