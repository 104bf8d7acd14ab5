"""The two distances by which cases are trimmed, side by side, and what became of each case."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from rskc.displays._cases import (
    check_cases_of_the_fit,
    check_fitted,
    look_up,
    table_of,
    unweighted_distances,
)
from rskc.displays._style import (
    GRAY,
    INK,
    MANY_CASES,
    PALETTE,
    axes_for,
    count,
    headline,
    name_points,
    plain_names,
    tidy,
)
from rskc.validation import check_integer

# Rule: color, marker, size. The index is trimmed_weighted + 2 * trimmed_unweighted.
_LOOKS = {
    "none": (GRAY, "o", 1.0),
    "weighted": (PALETTE[5], "^", 2.0),
    "unweighted": (PALETTE[0], "s", 1.6),
    "both": (INK, "D", 1.7),
}
_LEGEND = {
    "none": "kept",
    "weighted": "trimmed: weighted",
    "unweighted": "trimmed: unweighted",
    "both": "trimmed: both",
}
_SCALES = {False: "linear", True: "log"}
_SPREAD = 10.0  # a largest distance of more than so many medians calls for a log scale
_FLOOR = 1e-3  # on a log scale, what is below this share of the median stands on the edge


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

    def __init__(
        self,
        weighted: Any,
        unweighted: Any,
        trimmed_weighted: Any,
        trimmed_unweighted: Any,
        *,
        threshold: float,
        names: Any = None,
    ):
        self.weighted = weighted
        self.unweighted = unweighted
        self.trimmed_weighted = trimmed_weighted
        self.trimmed_unweighted = trimmed_unweighted
        self.threshold = threshold
        self.names = names

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
        cases = look_up(model, X)
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
        self.ax_ = axes_for(ax, 8, 5)
        self.figure_ = self.ax_.figure
        seen = np.isfinite(self.weighted) & np.isfinite(self.unweighted)
        points = np.column_stack([self.weighted, self.unweighted])[seen]
        logarithmic = [_is_spread(distances) for distances in points.T]
        points = _above_floor(points, logarithmic)
        self._draw_points(points, self._rules()[seen])
        self._draw_lines(seen)
        self._draw_frame(points, logarithmic)
        self._write_legend()
        self._write_title(seen)
        self._write_names(points, seen, n_names)
        return self

    def _rules(self) -> np.ndarray:
        """What trimmed each case."""
        codes = self.trimmed_weighted + 2 * np.asarray(self.trimmed_unweighted, int)
        return np.array(list(_LOOKS))[codes]

    def _draw_points(self, points: np.ndarray, rules: np.ndarray) -> None:
        many = len(points) > MANY_CASES
        size = 3.0 if many else np.clip(5000 / max(len(points), 1), 8, 20)
        self.points_ = {}
        for rule, (color, marker, factor) in _LOOKS.items():
            mine = points[rules == rule]
            style = {"s": size * factor, "c": color, "marker": marker, "linewidths": 0}
            label = f"{_LEGEND[rule]} ({len(mine):,})"
            self.points_[rule] = self.ax_.scatter(
                *mine.T, label=label, alpha=0.8, rasterized=many, zorder=2.5, **style
            )

    def _draw_lines(self, seen: np.ndarray) -> None:
        ax, label = self.ax_, f"outlier threshold {self.threshold:.3g}"
        self.lines_ = {"threshold": ax.axvline(self.threshold, color=INK, lw=1, label=label)}
        weighted = _boundary(self.weighted[seen], self.trimmed_weighted[seen])
        unweighted = _boundary(self.unweighted[seen], self.trimmed_unweighted[seen])
        for rule, boundary, line, band in (
            ("weighted", weighted, ax.axvline, ax.axvspan),
            ("unweighted", unweighted, ax.axhline, ax.axhspan),
        ):
            if boundary is not None:
                self.lines_[rule] = _draw_boundary(rule, *boundary, line, band)

    def _draw_frame(self, points: np.ndarray, logarithmic: list[bool]) -> None:
        ax, (x_log, y_log) = self.ax_, logarithmic
        x_limits = _limits(np.append(points[:, 0], self.threshold), x_log)
        y_limits = _limits(points[:, 1], y_log)
        ax.set(xscale=_SCALES[x_log], yscale=_SCALES[y_log], xlim=x_limits, ylim=y_limits)
        for axis, limits, is_log in ((ax.xaxis, x_limits, x_log), (ax.yaxis, y_limits, y_log)):
            if is_log:
                _write_decades(axis, *limits)
        ax.set_xlabel("weighted squared distance to the center" + ", log scale" * x_log)
        ax.set_ylabel("unweighted squared distance" + ", log scale" * y_log)
        tidy(ax)

    def _write_legend(self) -> None:
        self.legend_ = self.ax_.legend(
            loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8, frameon=False
        )
        for handle in self.legend_.legend_handles[: len(_LOOKS)]:
            handle.set_sizes([25])

    def _write_title(self, seen: np.ndarray) -> None:
        trimmed = {"weighted": self.trimmed_weighted, "unweighted": self.trimmed_unweighted}
        mixed = [
            rule for rule, cut in trimmed.items() if cut[seen].any() and rule not in self.lines_
        ]
        n, hidden = np.count_nonzero(seen), np.count_nonzero(~seen)
        n_outlying = np.count_nonzero(self.weighted[seen] > self.threshold)
        n_trimmed = np.count_nonzero(self._rules()[seen] != "none")
        other = f"no {' or '.join(mixed)} cut-off: trimmed by other weights than these"
        headline(
            self.ax_,
            f"{count(n, 'case')}: {count(n_outlying, 'outlier')}, {n_trimmed:,} trimmed",
            other if mixed else "",
            f"not shown: {count(hidden, 'case')} without an observed feature" if hidden else "",
        )

    def _write_names(self, points: np.ndarray, seen: np.ndarray, n_names: int) -> None:
        rows = np.flatnonzero(seen)
        flagged = (self._rules()[rows] != "none") | (self.weighted[rows] > self.threshold)
        typical = np.median(points, axis=0) if len(points) else np.ones(2)
        extreme = (points / np.where(typical > 0, typical, 1)).max(axis=1)
        chosen = np.argsort(np.where(flagged, -extreme, np.inf), kind="stable")
        chosen = chosen[: min(n_names, np.count_nonzero(flagged))]
        names = rows if self.names is None else np.asarray(self.names, object)[rows]
        labels = plain_names(names[chosen])
        self.texts_ = name_points(self.ax_, points[chosen], labels, points)


def _is_spread(distances: np.ndarray) -> bool:
    """Whether half of the cases would share less than a tenth of a linear axis."""
    median = np.median(distances) if len(distances) else 0.0
    return bool(median > 0 and distances.max() > _SPREAD * median)


def _above_floor(points: np.ndarray, logarithmic: list[bool]) -> np.ndarray:
    """Lift distances that a log scale cannot or should not show."""
    if not len(points):
        return points
    floor = np.where(logarithmic, _FLOOR * np.median(points, axis=0), 0)
    return np.maximum(points, floor)


def _limits(distances: np.ndarray, logarithmic: bool) -> tuple[float, float]:
    """Room on both sides; from 0 on if the scale is linear."""
    if not logarithmic:
        return 0.0, 1.1 * max(distances.max(initial=0), 1e-300)
    low, high = distances.min(), distances.max()
    room = (high / low) ** 0.06
    return low / room, high * room


def _boundary(distances: np.ndarray, trimmed: np.ndarray) -> tuple[float, float] | None:
    """Smallest distance of a trimmed case and largest of a kept one, at least the former.

    None if nothing is trimmed, or if more cases are kept beyond the smallest than were trimmed.
    """
    if not trimmed.any():
        return None
    smallest, kept = distances[trimmed].min(), distances[~trimmed]
    if np.count_nonzero(kept > smallest) > np.count_nonzero(trimmed):
        return None
    return float(smallest), float(max(smallest, kept.max(initial=0)))


def _draw_boundary(rule: str, low: float, high: float, line: Any, band: Any) -> Any:
    color = _LOOKS[rule][0]
    if high <= low * (1 + 1e-6):  # the two differ by rounding at most
        label = f"{rule} cut-off {low:.4g}"
        return line(low, color=color, lw=1, ls=(0, (4, 3)), zorder=2, label=label)
    label = f"{rule} cut-off {low:.4g} to {high:.4g}"
    return band(low, high, color=color, alpha=0.25, linewidth=1, zorder=1, label=label)


def _write_decades(axis: Any, low: float, high: float) -> None:
    """Put ticks of a log scale at 1, 2, 5, 10, ... or, beyond three decades, at 1, 10, ... only."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 1000 else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
