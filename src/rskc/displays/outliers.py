"""The two distances by which cases are judged, side by side."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from rskc.displays import style
from rskc.inputs.validation import check_integer
from rskc.model.fitted import judge_cases, thresholds_of
from rskc.model.outliers import Distances, Thresholds
from rskc.pictures.models import (
    FLAGS,
    DistanceScatter,
    case_names,
    check_cases_of_the_fit,
    check_fitted,
    cube_ticks,
    distance_scatter,
    flags_of,
    weights_of_fit,
)
from rskc.pictures.palette import GRAY, INK, PALETTE
from rskc.utils.wording import count, percent

# Of the cases that a distance flags: color, marker, size, and a name.
_LOOKS = {
    "none": (GRAY, "o", 1.0, "no outlier"),
    "weighted": (PALETTE[5], "^", 2.0, "outlier: weighted"),
    "unweighted": (PALETTE[0], "s", 1.6, "outlier: unweighted"),
    "both": (INK, "D", 1.7, "outlier: both"),
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
        What each case counts, for the title; None if all count the same.

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
        model, X = check_fitted(model, X)
        cases = judge_cases(model, X)
        check_cases_of_the_fit(model, len(cases.labels), "which cases were trimmed")
        display = cls(
            cases.weighted,
            cases.unweighted,
            thresholds=thresholds_of(model),
            trimmed=model.trimmed_,
            names=case_names(X, len(cases.labels)),
            weights=weights_of_fit(model, cases.labels),
        )
        return display.plot(ax, n_names=n_names)

    def plot(self, ax: Any = None, *, n_names: int = 10) -> Self:
        """Draw the cases in ``ax``, or in a new figure, and name the ``n_names`` most extreme."""
        self.ax_, self.figure_ = style.open_axes(ax, 8, 5)
        distances = Distances(np.asarray(self.weighted), np.asarray(self.unweighted))
        scatter = distance_scatter(distances)
        flags = flags_of(distances, Thresholds(*self.thresholds))[scatter.seen]
        self._draw_points(scatter, flags)
        self._draw_lines()
        self._draw_frame(scatter)
        self.legend_ = style.legend_beside(self.ax_)
        for handle in self.legend_.legend_handles:
            if hasattr(handle, "set_sizes"):
                handle.set_sizes([25])
        n, hidden = len(scatter.points), int((~scatter.seen).sum())
        share = ""
        if self.weights is not None and flags.any():
            weights = self.weights[scatter.seen]
            share = f", {percent(weights[flags > 0].sum() / weights.sum())} of the weight"
        style.headline(
            self.ax_,
            f"{count(n, 'case')}: {count(np.count_nonzero(flags), 'outlier')}{share}",
            style.not_shown(hidden),
        )
        self._write_names(scatter, flags > 0, n_names)
        return self

    def _draw_points(self, scatter: DistanceScatter, flags: np.ndarray) -> None:
        n = len(scatter.points)
        many = n > style.MANY_CASES
        size = 3.0 if many else np.clip(5000 / max(n, 1), 8, 20)
        look = {"alpha": 0.8, "rasterized": many, "zorder": 2.5}
        trimmed = np.zeros(n, bool)
        if self.trimmed is not None:
            trimmed = np.asarray(self.trimmed)[scatter.seen] & (flags == 0)
        self.points_ = {}
        for code, flag in enumerate(FLAGS):
            mine = scatter.points[(flags == code) & ~trimmed]
            color, marker, factor, name = _LOOKS[flag]
            own = {"s": size * factor, "c": color, "marker": marker, "linewidths": 0, **look}
            self.points_[flag] = self.ax_.scatter(*mine.T, label=_label(name, mine), **own)
        hollow = {"s": size, "facecolors": "none", "edgecolors": GRAY, "linewidths": 1, **look}
        mine = scatter.points[trimmed]
        label = _label("trimmed, no outlier", mine)
        self.points_["trimmed"] = self.ax_.scatter(*mine.T, label=label, **hollow)

    def _draw_lines(self) -> None:
        self.lines_ = {}
        draw = {"weighted": self.ax_.axvline, "unweighted": self.ax_.axhline}
        for (flag, line), limit in zip(draw.items(), self.thresholds, strict=True):
            if np.isfinite(limit):
                look = {"color": _LOOKS[flag][0], "lw": 1, "zorder": 2}
                self.lines_[flag] = line(limit, label=f"{flag} threshold {limit:.3g}", **look)

    def _draw_frame(self, scatter: DistanceScatter) -> None:
        ax = self.ax_
        names = ("weighted squared distance to the center", "unweighted squared distance")
        drawn = zip(
            "xy", names, scatter.points.T, self.thresholds, scatter.logarithmic, strict=True
        )
        for letter, name, distances, limit, is_log in drawn:
            ends = np.append(distances, limit if np.isfinite(limit) else [])
            low, high = _limits(ends, is_log)
            kind = {} if is_log else {"functions": (np.cbrt, lambda values: values**3)}
            getattr(ax, f"set_{letter}scale")("log" if is_log else "function", **kind)
            getattr(ax, f"set_{letter}lim")(low, high)
            axis = getattr(ax, f"{letter}axis")
            axis.set_label_text(f"{name}, {'log scale' if is_log else 'cube root'}")
            if is_log:
                _write_decades(axis, low, high)
            else:
                axis.set_ticks(ticks := cube_ticks(high), [f"{value:g}" for value in ticks])

    def _write_names(self, scatter: DistanceScatter, flagged: np.ndarray, n_names: int) -> None:
        rows, points = np.flatnonzero(scatter.seen), scatter.points
        typical = np.median(points, axis=0) if len(points) else np.ones(2)
        extreme = (points / np.where(typical > 0, typical, 1)).max(axis=1)
        chosen = np.argsort(np.where(flagged, -extreme, np.inf), kind="stable")
        chosen = chosen[: min(n_names, np.count_nonzero(flagged))]
        names = rows if self.names is None else np.asarray(self.names, object)[rows]
        labels = style.plain_names(names[chosen])
        self.texts_ = style.name_points(self.ax_, points[chosen], labels, points)


def _label(name: str, points: np.ndarray) -> str:
    """Return an entry of the legend; none for no points, as Matplotlib reads the underscore."""
    return f"{name} ({len(points):,})" if len(points) else "_none"


def _limits(distances: np.ndarray, logarithmic: bool) -> tuple[float, float]:
    """Leave room on both sides; from 0 on if the scale is not logarithmic."""
    if not logarithmic:
        return 0.0, 1.2 * max(distances.max(initial=0), 1e-300)
    low, high = distances.min(), distances.max()
    room = (high / low) ** 0.06
    return low / room, high * room


def _write_decades(axis: Any, low: float, high: float) -> None:
    """Put ticks of a log scale at 1, 2, 5, 10, ... or, beyond three decades, at 1, 10, ... only."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 1000 else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
