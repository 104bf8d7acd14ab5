"""The two distances by which cases are trimmed, side by side, and what became of each case."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from rskc.displays import style
from rskc.pictures.models import (
    RULES,
    DistanceScatter,
    assign,
    check_cases_of_the_fit,
    check_fitted,
    distance_scatter,
    table_of,
    unweighted_distances,
)
from rskc.pictures.palette import GRAY, INK, PALETTE
from rskc.validation import check_integer
from rskc.wording import count

# Of the cases that a rule trimmed: color, marker, size, and a name.
_LOOKS = {
    "none": (GRAY, "o", 1.0, "kept"),
    "weighted": (PALETTE[5], "^", 2.0, "trimmed: weighted"),
    "unweighted": (PALETTE[0], "s", 1.6, "trimmed: unweighted"),
    "both": (INK, "D", 1.7, "trimmed: both"),
}


@dataclass(eq=False, repr=False)
class OutlierDisplay:
    """One point a case: its weighted and its unweighted squared distance to its center.

    Color and marker tell which of the two rules trimmed the case. A solid line is the threshold
    above which the weighted distance makes a case an outlier.

    A dashed line stands at the smallest distance among the cases that a rule trimmed, if the rule
    kept none beyond it. It may have: the rules worked with the weights, and so with the labels of
    trimmed cases, of the iteration before (see ``trimmed_weighted_``). Then a band reaches from the
    smallest distance of a trimmed case to the largest of a kept one: below it the rule trimmed no
    case, above it all, and within it both are found. If it holds more kept cases than the rule
    trimmed, there is no boundary to speak of: none is drawn, and the title says so.

    An axis is logarithmic if the largest distance is more than 10 times the median, so that the
    half of the cases would share a tenth of it. Distances below a thousandth of the median, and 0,
    are then drawn on the edge. Cases of which nothing that has weight is observed are left out.

    Parameters
    ----------
    weighted, unweighted : ndarray of shape (n_samples,)
        Squared distances to the center of the own cluster.
    trimmed_weighted, trimmed_unweighted : ndarray of bool of shape (n_samples,)
        Which cases the two rules trimmed.
    threshold : float
        Weighted distance above which a case is an outlier.
    names : array-like of shape (n_samples,), default=None
        Names of the cases; None for numbers.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure
        Where it was drawn.
    points_ : dict of str to PathCollection
        The cases by what trimmed them: "none", "weighted", "unweighted" or "both".
    lines_ : dict of str to Line2D or Rectangle
        "threshold", and the line or band of the rules "weighted" and "unweighted" if they trim.
    texts_ : list of Annotation
        Names of the most extreme among outliers and trimmed cases.
    legend_ : Legend
    """

    weighted: Any
    unweighted: Any
    trimmed_weighted: Any
    trimmed_unweighted: Any
    _: KW_ONLY
    threshold: float
    names: Any = None

    @classmethod
    def from_estimator(cls, model: Any, X: Any, *, n_names: int = 10, ax: Any = None) -> Self:
        """Compute both distances of the cases of the fit and draw them.

        Parameters
        ----------
        model : RobustSparseKMeans
            A fitted model.
        X : array-like or data frame of shape (n_samples, n_features)
            The data of the fit: of other cases it is not known what would trim them.
        n_names : int, default=10
            Number of cases to be named, of the outliers and trimmed ones.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : OutlierDisplay
        """
        check_integer("n_names", n_names, 0)
        model, X = check_fitted(model, X)
        cases = assign(model, X)
        check_cases_of_the_fit(model, len(cases.labels), "what trimmed a case")
        display = cls(
            cases.distances,
            unweighted_distances(table_of(model, X), cases.labels, model.cluster_centers_),
            model.trimmed_weighted_,
            model.trimmed_unweighted_,
            threshold=model.outlier_threshold_,
            names=cases.names,
        )
        return display.plot(ax, n_names=n_names)

    def plot(self, ax: Any = None, *, n_names: int = 10) -> Self:
        """Draw the cases in ``ax``, or in a new figure, and name the ``n_names`` most extreme."""
        self.ax_ = style.axes_for(ax, 8, 5)
        self.figure_ = self.ax_.figure
        trimmed = self.trimmed_weighted, self.trimmed_unweighted
        scatter = distance_scatter(self.weighted, self.unweighted, *trimmed)
        self._draw_points(scatter)
        self._draw_lines(scatter)
        self._draw_frame(scatter)
        self.legend_ = style.legend_beside(self.ax_)
        for handle in self.legend_.legend_handles[: len(_LOOKS)]:
            handle.set_sizes([25])
        outlying = self.weighted[scatter.seen] > self.threshold
        self._write_title(scatter, int(outlying.sum()))
        self._write_names(scatter, outlying | (scatter.rules > 0), n_names)
        return self

    def _draw_points(self, scatter: DistanceScatter) -> None:
        n = len(scatter.points)
        many = n > style.MANY_CASES
        size = 3.0 if many else np.clip(5000 / max(n, 1), 8, 20)
        self.points_ = {}
        for code, rule in enumerate(RULES):
            mine = scatter.points[scatter.rules == code]
            color, marker, factor, name = _LOOKS[rule]
            look = {"s": size * factor, "c": color, "marker": marker, "linewidths": 0}
            look |= {"alpha": 0.8, "rasterized": many, "zorder": 2.5}
            self.points_[rule] = self.ax_.scatter(*mine.T, label=f"{name} ({len(mine):,})", **look)

    def _draw_lines(self, scatter: DistanceScatter) -> None:
        ax, label = self.ax_, f"outlier threshold {self.threshold:.3g}"
        self.lines_ = {"threshold": ax.axvline(self.threshold, color=INK, lw=1, label=label)}
        draw = {"weighted": (ax.axvline, ax.axvspan), "unweighted": (ax.axhline, ax.axhspan)}
        for rule, boundary in scatter.boundaries.items():
            (low, high), (line, band), color = boundary, draw[rule], _LOOKS[rule][0]
            if boundary.is_sharp:
                look = {"lw": 1, "ls": (0, (4, 3)), "zorder": 2}
                label = f"{rule} cut-off {low:.4g}"
                self.lines_[rule] = line(low, color=color, label=label, **look)
            else:
                look = {"alpha": 0.25, "linewidth": 1, "zorder": 1}
                label = f"{rule} cut-off {low:.4g} to {high:.4g}"
                self.lines_[rule] = band(low, high, color=color, label=label, **look)

    def _draw_frame(self, scatter: DistanceScatter) -> None:
        ax, (x_log, y_log) = self.ax_, scatter.logarithmic
        x_limits = _limits(np.append(scatter.points[:, 0], self.threshold), x_log)
        y_limits = _limits(scatter.points[:, 1], y_log)
        x_scale, y_scale = ("log" if log else "linear" for log in scatter.logarithmic)
        ax.set(xscale=x_scale, yscale=y_scale, xlim=x_limits, ylim=y_limits)
        for axis, limits, is_log in ((ax.xaxis, x_limits, x_log), (ax.yaxis, y_limits, y_log)):
            if is_log:
                _write_decades(axis, *limits)
        ax.set_xlabel("weighted squared distance to the center" + ", log scale" * x_log)
        ax.set_ylabel("unweighted squared distance" + ", log scale" * y_log)
        style.tidy(ax)

    def _write_title(self, scatter: DistanceScatter, n_outlying: int) -> None:
        n, hidden = len(scatter.points), np.count_nonzero(~scatter.seen)
        n_trimmed = np.count_nonzero(scatter.rules)
        other = f"no {' or '.join(scatter.mixed)} cut-off: trimmed by other weights than these"
        style.headline(
            self.ax_,
            f"{count(n, 'case')}: {count(n_outlying, 'outlier')}, {n_trimmed:,} trimmed",
            other if scatter.mixed else "",
            f"not shown: {count(hidden, 'case')} without an observed feature" if hidden else "",
        )

    def _write_names(self, scatter: DistanceScatter, flagged: np.ndarray, n_names: int) -> None:
        rows, points = np.flatnonzero(scatter.seen), scatter.points
        typical = np.median(points, axis=0) if len(points) else np.ones(2)
        extreme = (points / np.where(typical > 0, typical, 1)).max(axis=1)
        chosen = np.argsort(np.where(flagged, -extreme, np.inf), kind="stable")
        chosen = chosen[: min(n_names, np.count_nonzero(flagged))]
        names = rows if self.names is None else np.asarray(self.names, object)[rows]
        labels = style.plain_names(names[chosen])
        self.texts_ = style.name_points(self.ax_, points[chosen], labels, points)


def _limits(distances: np.ndarray, logarithmic: bool) -> tuple[float, float]:
    """Leave room on both sides; from 0 on if the scale is linear."""
    if not logarithmic:
        return 0.0, 1.1 * max(distances.max(initial=0), 1e-300)
    low, high = distances.min(), distances.max()
    room = (high / low) ** 0.06
    return low / room, high * room


def _write_decades(axis: Any, low: float, high: float) -> None:
    """Put ticks of a log scale at 1, 2, 5, 10, ... or, beyond three decades, at 1, 10, ... only."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 1000 else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
