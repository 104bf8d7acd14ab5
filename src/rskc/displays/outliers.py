"""The two distances by which cases are judged, side by side."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from rskc.displays import style
from rskc.inputs.validation import check_integer
from rskc.model.fitted import judge_cases, thresholds_of
from rskc.model.outliers import Distances, Thresholds
from rskc.pictures import models as pictures
from rskc.pictures.palette import GRAY, INK, PALETTE
from rskc.utils.wording import count, percent

# Of the cases that a distance flags, or that were trimmed: color, marker, size, and a name.
_LOOKS = {
    "none": (GRAY, "o", 1.0, "no outlier"),
    "weighted": (PALETTE[5], "^", 2.0, "outlier: weighted"),
    "unweighted": (PALETTE[0], "s", 1.6, "outlier: unweighted"),
    "both": (INK, "D", 1.7, "outlier: both"),
    "trimmed": (GRAY, "o", 1.0, "trimmed, no outlier"),
}


@dataclass(eq=False, repr=False)
class OutlierDisplay:
    """One point per case: its weighted and its unweighted squared distance to its center.

    Lines stand at the thresholds: a case beyond either is an outlier. Color and marker tell which
    distance makes it one. Cases that were trimmed and are no outliers are hollow.

    The scales are those of cube roots, on which the distances of cases that are no outliers are
    nearly normal. An axis is logarithmic if the largest distance is more than 1,000 times the
    median. Distances below a thousandth of the median, and 0, are then drawn on the edge. Cases of
    which nothing that has weight is observed are left out.

    Parameters
    ----------
    weighted, unweighted : ndarray of shape (n_samples,)
        Squared distances to the center of the own cluster.
    thresholds : tuple of float
        Weighted and unweighted distance beyond which a case is an outlier; inf for none.
    trimmed : ndarray of bool of shape (n_samples,), default=None
        Which cases were trimmed; None for no case.
    names : array-like of shape (n_samples,), default=None
        Names of the cases; None for numbers.
    weights : ndarray of shape (n_samples,), default=None
        Case weights, for the title; None for equal weights.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure
        Where it was drawn.
    points_ : dict of str to PathCollection
        The cases by the distance that makes them outliers: "none", "weighted", "unweighted" or
        "both"; and those that are none and were "trimmed".
    lines_ : dict of str to Line2D
        The thresholds, "weighted" and "unweighted", as far as there are any.
    texts_ : list of Annotation
        Names of the most extreme outliers.
    legend_ : Legend
    """

    weighted: Any
    unweighted: Any
    _: KW_ONLY
    thresholds: Any
    trimmed: Any = None
    names: Any = None
    weights: Any = None

    @classmethod
    def from_estimator(cls, model: Any, X: Any, *, n_names: int = 10, ax: Any = None) -> Self:
        """Compute both distances of the cases of the fit and draw them.

        Parameters
        ----------
        model : RobustSparseKMeans
            A fitted model.
        X : array-like or data frame of shape (n_samples, n_features)
            The data of the fit: of other cases it is not known whether they would be trimmed.
        n_names : int, default=10
            Number of outliers to be named.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : OutlierDisplay
        """
        check_integer("n_names", n_names, 0)
        model, X = pictures.check_fitted(model, X)
        cases = judge_cases(model, X)
        pictures.check_cases_of_the_fit(model, len(cases.labels), "which cases were trimmed")
        display = cls(
            cases.weighted,
            cases.unweighted,
            thresholds=thresholds_of(model),
            trimmed=model.trimmed_,
            names=pictures.case_names(X, len(cases.labels)),
            weights=pictures.weights_of_fit(model, cases.labels),
        )
        return display.plot(ax, n_names=n_names)

    def plot(self, ax: Any = None, *, n_names: int = 10) -> Self:
        """Draw the cases in ``ax``, or in a new figure, and name the ``n_names`` most extreme."""
        self.ax_, self.figure_ = style.open_axes(ax, 8, 5)
        distances = Distances(np.asarray(self.weighted), np.asarray(self.unweighted))
        scatter = pictures.distance_scatter(distances)
        flags = pictures.flags_of(distances, Thresholds(*self.thresholds))[scatter.seen]
        self._draw_points(scatter, flags)
        self._draw_axes(scatter)
        self.legend_ = style.legend_beside(self.ax_)
        for handle in self.legend_.legend_handles:
            if hasattr(handle, "set_sizes"):
                handle.set_sizes([25])
        share = ""
        if self.weights is not None and flags.any():
            weights = self.weights[scatter.seen]
            share = f", {percent(weights[flags > 0].sum() / weights.sum())} of the weight"
        n, n_outliers = len(flags), np.count_nonzero(flags)
        title = f"{count(n, 'case')}: {count(n_outliers, 'outlier')}{share}"
        style.headline(self.ax_, title, style.not_shown(len(scatter.seen) - n))
        self._write_names(scatter, flags > 0, n_names)
        return self

    def _draw_points(self, scatter: pictures.DistanceScatter, flags: np.ndarray) -> None:
        n, self.points_ = len(flags), {}
        many = n > style.MANY_CASES
        size = 3.0 if many else np.clip(5000 / max(n, 1), 8, 20)
        trimmed = np.zeros(n, bool)
        if self.trimmed is not None:
            trimmed = np.asarray(self.trimmed)[scatter.seen] & (flags == 0)
        groups = {flag: (flags == code) & ~trimmed for code, flag in enumerate(pictures.FLAGS)}
        for flag, mine in (groups | {"trimmed": trimmed}).items():
            color, marker, factor, name = _LOOKS[flag]
            look = {"s": size * factor, "marker": marker, "alpha": 0.8, "zorder": 2.5}
            look |= {"facecolors": color, "linewidths": 0}
            if flag == "trimmed":
                look |= {"facecolors": "none", "edgecolors": color, "linewidths": 1}
            # None for no points: Matplotlib leaves out what starts with an underscore.
            label = f"{name} ({np.count_nonzero(mine):,})" if mine.any() else "_none"
            places = scatter.points[mine].T
            self.points_[flag] = self.ax_.scatter(*places, label=label, rasterized=many, **look)

    def _draw_axes(self, scatter: pictures.DistanceScatter) -> None:
        """Draw the thresholds, and set scales, limits and ticks."""
        from matplotlib.ticker import LogLocator, NullFormatter

        titles = ("weighted squared distance to the center", "unweighted squared distance")
        draw, self.lines_ = {"weighted": self.ax_.axvline, "unweighted": self.ax_.axhline}, {}
        for i, (flag, line) in enumerate(draw.items()):
            ends, limit, is_log = scatter.points[:, i], self.thresholds[i], scatter.logarithmic[i]
            if np.isfinite(limit):
                look = {"color": _LOOKS[flag][0], "lw": 1, "zorder": 2}
                self.lines_[flag] = line(limit, label=f"{flag} threshold {limit:.3g}", **look)
                ends = np.append(ends, limit)
            low, high = 0.0, 1.2 * max(ends.max(initial=0), 1e-300)
            scale: dict[str, Any] = {"value": "function", "functions": (np.cbrt, lambda x: x**3)}
            if is_log:
                low, high, scale = ends.min(), ends.max(), {"value": "log"}
                room = (high / low) ** 0.06
                low, high = low / room, high * room
            axis = (self.ax_.xaxis, self.ax_.yaxis)[i]
            (self.ax_.set_xscale, self.ax_.set_yscale)[i](**scale)
            (self.ax_.set_xlim, self.ax_.set_ylim)[i](low, high)
            axis.set_label_text(f"{titles[i]}, {'log scale' if is_log else 'cube root'}")
            if is_log:  # ticks at 1, 2, 5, 10, ... or, beyond three decades, at 1, 10, ... only
                axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 1000 else (1,)))
                axis.set_major_formatter("{x:g}")
                axis.set_minor_formatter(NullFormatter())
            else:
                axis.set_ticks(
                    ticks := pictures.cube_ticks(high), [f"{value:g}" for value in ticks]
                )

    def _write_names(
        self, scatter: pictures.DistanceScatter, flagged: np.ndarray, n_names: int
    ) -> None:
        rows, points = np.flatnonzero(scatter.seen), scatter.points
        typical = np.median(points, axis=0) if len(points) else np.ones(2)
        extreme = (points / np.where(typical > 0, typical, 1)).max(axis=1)
        chosen = np.argsort(np.where(flagged, -extreme, np.inf), kind="stable")
        chosen = chosen[: min(n_names, np.count_nonzero(flagged))]
        names = rows if self.names is None else np.asarray(self.names, object)[rows]
        labels = style.plain_names(names[chosen])
        self.texts_ = style.name_points(self.ax_, points[chosen], labels, points)
