"""The weights of the features along the L1 bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rskc.displays import style
from rskc.inputs.validation import check_integer
from rskc.pictures.models import strongest
from rskc.pictures.palette import GRAY, INK, PALETTE
from rskc.utils.wording import count

MOST_LINES = 300  # of features without a name; more are a gray block, and slow
_NAME_POINTS = 9.0  # height of a line of text
_COLORS = PALETTE[:6]
_STYLES = ("-", "--", ":")  # beyond six lines, colors come again


@dataclass(eq=False, repr=False)
class FeaturePathDisplay:
    """One line a feature: its weight at each L1 bound.

    Features are strong by the sum of their weights over all bounds. The strongest have a color and
    their name on the right, the others are thin and gray; of these, at most 300 are drawn.

    Parameters
    ----------
    l1_bounds : ndarray of shape (bounds,)
        The bounds, upwards.
    weights : ndarray of shape (bounds, n_features)
        Weights of all features.
    names : array-like of shape (n_features,)
        Names of the features.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure
        Where it was drawn.
    features_ : ndarray of int
        The features that have a color, the strongest first.
    lines_ : list of Line2D
        Their weights.
    texts_ : list of Annotation
        Their names.
    others_ : LineCollection
        The gray lines.
    feature_axis_ : SecondaryAxis
        Numbers of features with weight.
    """

    l1_bounds: Any
    weights: Any
    names: Any

    @classmethod
    def from_estimator(cls, path: Any, *, n_top: int = 10, ax: Any = None) -> Self:
        """Draw the path that ``feature_path`` has found.

        Parameters
        ----------
        path : FeaturePath
            What ``rskc.selection.feature_path`` returns.
        n_top : int, default=10
            Number of features with a color and a name.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : FeaturePathDisplay
        """
        if not all(hasattr(path, name) for name in ("l1_bounds", "weights", "feature_names")):
            raise TypeError(
                f"{cls.__name__} draws a FeaturePath, the result of feature_path(estimator, X), "
                f"and not a {type(path).__name__}."
            )
        check_integer("n_top", n_top, 1)
        return cls(path.l1_bounds, path.weights, path.feature_names).plot(ax, n_top=n_top)

    def plot(self, ax: Any = None, *, n_top: int = 10) -> Self:
        """Draw the weights in ``ax``, or in a new figure, and name the ``n_top`` strongest."""
        self.ax_ = style.axes_for(ax, 7.5, np.clip(1.8 + 0.13 * n_top, 4.5, 10))
        self.figure_ = self.ax_.figure
        style.tidy(self.ax_)
        order = strongest(np.sum(self.weights, axis=0))
        self.features_, others = order[:n_top], order[n_top:]
        style.scale_of_bounds(self.ax_, self.l1_bounds)
        self._draw_others(others[:MOST_LINES])
        self._draw_features()
        top = 1.05 * np.max(self.weights, initial=1e-300)
        self.ax_.set(ylim=(-0.02 * top, top), ylabel="weight")
        style.headline(self.ax_, *self._title(len(order), len(others)))
        counts = np.count_nonzero(self.weights, axis=1)
        self.feature_axis_ = style.axis_of_features(self.ax_, self.l1_bounds, counts)
        self._write_names()  # the axes are lower now; the names make them narrower:
        style.write_counts(self.feature_axis_, self.ax_, self.l1_bounds, counts)
        return self

    def _draw_others(self, features: np.ndarray) -> None:
        from matplotlib.collections import LineCollection

        lines = [np.column_stack([self.l1_bounds, self.weights[:, j]]) for j in features]
        look: dict[str, Any] = {"colors": GRAY, "linewidths": 0.5, "alpha": 0.5, "zorder": 1.5}
        self.others_ = self.ax_.add_collection(LineCollection(lines, **look), autolim=False)

    def _draw_features(self) -> None:
        self.lines_ = []
        alone = "o" if len(self.l1_bounds) == 1 else None
        for i, j in enumerate(self.features_):
            look = {"color": _COLORS[i % 6], "ls": _STYLES[i // 6 % 3], "marker": alone}
            self.lines_ += self.ax_.plot(
                self.l1_bounds, self.weights[:, j], lw=1.6, zorder=3 - 0.01 * i, **look
            )

    def _title(self, n_active: int, n_others: int) -> tuple[str, str]:
        p, n_top = np.shape(self.weights)[1], len(self.features_)
        hidden = n_others - MOST_LINES
        some = f"All {count(p, 'feature')}" if n_active == p else f"{n_active:,} of {p:,} features"
        named = f"; the {n_top} strongest are named" if n_top < n_active else ""
        left_out = f"the {hidden:,} weakest of them are not drawn" if hidden > 0 else ""
        return f"{some} get weight{named}", left_out

    def _write_names(self) -> None:
        """Write names to the right of the axes, below one another, joined to their lines."""
        height = style.size_in_points(self.ax_)[1]
        low, high = self.ax_.get_ylim()
        heights = (self.weights[-1, self.features_] - low) / (high - low)
        order = np.argsort(heights, kind="stable")
        line = min(_NAME_POINTS, height / max(len(order), 1))
        places = _within(style.spread_out(heights[order], line / height), line / height)
        names = style.plain_names(np.asarray(self.names, object)[self.features_])
        texts = {
            i: self._write_name(i, names[i], heights[i], place, 0.8 * line)
            for i, place in zip(order, places, strict=True)
        }
        self.texts_ = [texts[i] for i in range(len(order))]

    def _write_name(self, i: int, name: str, height: float, place: float, size: float) -> Any:
        x = self.ax_.transAxes.inverted().transform(
            self.ax_.transData.transform((self.l1_bounds[-1], 0))
        )[0]
        join = {"arrowstyle": "-", "lw": 0.6, "color": _COLORS[i % 6], "shrinkA": 0, "shrinkB": 0}
        join |= {"relpos": (0, 0.5)}  # from the left end of the name, not from its middle
        where = {"xycoords": "axes fraction", "textcoords": "axes fraction", "va": "center"}
        return self.ax_.annotate(
            name, (x, height), (1.03, place), fontsize=size, color=INK, arrowprops=join, **where
        )


def _within(places: np.ndarray, gap: float) -> np.ndarray:
    """Shift ascending places, ``gap`` apart, as little as can be until all are in [0, 1]."""
    slots = gap * np.arange(len(places))
    return np.clip(places - slots, gap / 2, max(gap / 2, 1 - gap / 2 - slots[-1])) + slots
