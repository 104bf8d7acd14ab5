"""Pictures with a mark for each case: clusters, silhouettes, and the distances of outliers."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from rskc.displays import style
from rskc.inputs.arrays import mean_by_weight
from rskc.inputs.validation import check_choice, check_integer
from rskc.metrics import revised_silhouette
from rskc.model.fitted import JudgedCases, judge_cases, thresholds_of
from rskc.model.outliers import Distances, Thresholds
from rskc.model.summary import check_cases
from rskc.pictures import models as pictures
from rskc.pictures.palette import GRAY, INK, cluster_colors, cluster_markers
from rskc.utils.wording import count, percent

MOST_ENTRIES = 40  # clusters in the legend; with more of them, the centers tell their numbers
NAME_POINTS, MEAN_POINTS = 6.0, 10.0  # height of a line of text


@dataclass(eq=False, repr=False)
class ClusterDisplay:
    """One point per case, with a color for each cluster; outliers are crosses.

    Cases of which no feature with weight is observed are left out. Outliers that are far from all
    other cases stand on the edge of the picture, so that they do not squeeze the rest.

    Parameters
    ----------
    positions : ndarray of shape (n_samples, 2)
        Where the cases are.
    labels : ndarray of int of shape (n_samples,)
        Clusters.
    outliers : ndarray of bool of shape (n_samples,)
        Cases to be drawn as crosses.
    centers : ndarray of shape (n_clusters, 2)
        Where the centers are.
    axis_names : tuple of str
        What the two dimensions are.
    notes : tuple of str, default=()
        What else the title must say.
    n_hidden : int, default=0
        Number of cases that have nothing to be drawn, for the title.
    weights : ndarray of shape (n_samples,), default=None
        Case weights, for the legend; None for equal weights.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure
        Where it was drawn.
    points_, crosses_ : dict of int to PathCollection
        The cases of each cluster that are no outliers, and the outliers.
    centers_ : dict of int to Text
        The centers of the clusters that have cases.
    legend_ : Legend
    """

    positions: Any
    labels: Any
    outliers: Any
    centers: Any
    _: KW_ONLY
    axis_names: tuple[str, str] = ("", "")
    notes: tuple[str, ...] = ()
    n_hidden: int = 0
    weights: Any = None

    @classmethod
    def from_estimator(cls, model: Any, X: Any, *, kind: str = "auto", ax: Any = None) -> Self:
        """Place the cases of X in two dimensions and draw them.

        Missing cells are put at the center of their cluster, for the drawing only.

        Parameters
        ----------
        model : RobustSparseKMeans
            A fitted model.
        X : array-like or data frame of shape (n_samples, n_features)
            Cases, those of the fit or new ones.
        kind : {"auto", "features", "pca"}, default="auto"
            "features": the two features with the largest weights; if only one has weight, that one
            and the rank of the cases. "pca": the first two principal components of the data, each
            column scaled by the square root of its weight so that distances are those of the model.
            They are found without the outliers. "auto": "features" if at most two have weight.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : ClusterDisplay
        """
        check_choice("kind", kind, ("auto", "features", "pca"))
        model, X = pictures.check_fitted(model, X)
        cases = judge_cases(model, X)
        weights, seen = style.weights_of_fit(model, cases.labels), np.isfinite(cases.weighted)
        pictures.check_seen(seen)
        cases = JudgedCases(*(part[seen] for part in cases))
        plane = pictures.plane_of(model, pictures.table_of(model, X)[seen], cases, kind)
        x_name, y_name = style.names_at(plane.axis_names, [0, 1], 40)
        filled = f"{count(plane.n_filled, 'case')} with missing cells"
        filled = f"{filled}, these put at the cluster's center" if plane.n_filled else ""
        return cls(
            plane.positions,
            cases.labels,
            cases.outliers,
            plane.centers,
            axis_names=(x_name, y_name),
            notes=(filled,),
            n_hidden=int((~seen).sum()),
            weights=None if weights is None else weights[seen],
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the cases in ``ax``, or in a new figure."""
        self.ax_, self.figure_ = style.open_axes(ax, 7.5, 5)
        n, K = len(self.labels), len(self.centers)
        low, high = pictures.frame_of(self.positions, self.labels, self.outliers, self.centers)
        positions = np.clip(self.positions, low, high)
        handles = self._draw_cases(positions)
        # The numbers of the clusters that have cases, in white discs.
        disc = style.BACKING | {"boxstyle": "circle,pad=0.25", "edgecolor": INK, "linewidth": 1}
        text = {"ha": "center", "va": "center", "fontsize": 7.5, "color": INK, "zorder": 4}
        self.centers_ = {
            k: self.ax_.text(*self.centers[k], str(k), bbox=disc, **text)
            for k in np.unique(self.labels).tolist()
        }
        (left, bottom), (right, top) = low - 0.02 * (high - low), high + 0.02 * (high - low)
        self.ax_.set(xlim=(left, right), ylim=(bottom, top))
        self.ax_.set(xlabel=self.axis_names[0], ylabel=self.axis_names[1])
        look = {"handles": handles, "title": "cluster" if K <= MOST_ENTRIES else None}
        self.legend_ = style.legend_beside(self.ax_, ncols=1 + (K > 20), **look)
        n_beyond = int((positions != self.positions).any(axis=1).sum())
        beyond = f"{count(n_beyond, 'outlier')} beyond the frame, drawn on its edge"
        title = f"{count(n, 'case')} in {count(K, 'cluster')}; circles: centers"
        notes = [*self.notes, beyond if n_beyond else ""]
        style.headline(self.ax_, title, *notes, n_hidden=self.n_hidden)
        return self

    def _draw_cases(self, positions: np.ndarray) -> list[Any]:
        """Draw points and crosses, and return what a legend shows of them."""
        self.points_, self.crosses_ = {}, {}
        n, K = len(positions), len(self.centers)
        many = n > style.MANY_CASES  # thousands of crosses must not bury the clusters
        size = np.clip(6000 / max(n, 1), 2, 30)
        points = {"s": size, "linewidths": 0, "alpha": 0.4 if many else 0.75, "rasterized": many}
        crosses = {"s": size + 6, "marker": "x", "zorder": 0.9 if many else 2, "rasterized": many}
        sizes = pictures.sizes_in_words(self.labels, K, self.weights)
        for k, color, marker in zip(range(K), cluster_colors(K), cluster_markers(K), strict=True):
            regular, outlying = ((self.labels == k) & (self.outliers == far) for far in (0, 1))
            look = {"label": f"{k} ({sizes[k]})", "c": color, "marker": marker, **points}
            self.points_[k] = self.ax_.scatter(*positions[regular].T, **look)
            look = {"c": color, "linewidths": 0.5 if many else 1.2, **crosses}
            self.crosses_[k] = self.ax_.scatter(*positions[outlying].T, **look)
        handles = list(self.points_.values()) if K <= MOST_ENTRIES else []
        if n_outlying := np.count_nonzero(self.outliers):
            label = count(n_outlying, "outlier")
            handles.append(self.ax_.scatter([], [], c=INK, marker="x", label=label))
        return handles


@dataclass(eq=False, repr=False)
class SilhouetteDisplay:
    """One bar per case: how much nearer it is to its center than to the next one.

    The paper's figure. Bars are sorted within clusters, clusters follow one another, and outliers
    are dark. Means are without outliers; in each cluster that of its outliers is written too.

    Parameters
    ----------
    values : ndarray of shape (n_samples,)
        Revised silhouettes, see :func:`rskc.metrics.revised_silhouette`. NaN for a case of which
        nothing is observed; it is left out.
    labels : ndarray of int of shape (n_samples,)
        Clusters.
    outliers : ndarray of bool of shape (n_samples,)
        Cases to be drawn dark.
    names : array-like of shape (n_samples,), default=None
        Names of the cases, shown if they fit; None for numbers.
    weights : ndarray of shape (n_samples,), default=None
        Case weights, for the means; None for equal weights.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure
        Where it was drawn.
    bars_, outlier_bars_ : dict of int to StepPatch
        The bars of each cluster, and the dark ones of outliers over them.
    texts_ : dict of int to Text
        What is written in each cluster.
    """

    values: Any
    labels: Any
    outliers: Any
    _: KW_ONLY
    names: Any = None
    weights: Any = None

    @classmethod
    def from_estimator(cls, model: Any, X: Any, *, ax: Any = None) -> Self:
        """Compute the silhouettes of the cases of X and draw them.

        Parameters
        ----------
        model : RobustSparseKMeans
            A fitted model with at least two clusters.
        X : array-like or data frame of shape (n_samples, n_features)
            Cases, those of the fit or new ones. Those of a fit with weights have these.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : SilhouetteDisplay
        """
        model, X = pictures.check_fitted(model, X)
        silhouette = revised_silhouette(model, X)
        seen = np.isfinite(silhouette.a)
        pictures.check_seen(seen)
        values = np.where(seen, silhouette.values, np.nan)
        labels, names = silhouette.nearest, pictures.case_names(X, len(values))
        weights = style.weights_of_fit(model, labels)
        return cls(values, labels, model.is_outlier(X), names=names, weights=weights).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the bars in ``ax``, or in a new figure."""
        rows = np.lexsort((-self.values, self.labels))  # the largest first, cluster by cluster
        rows = rows[~np.isnan(self.values[rows])]
        n, labels, outlying = len(rows), self.labels[rows], self.outliers[rows]
        clusters, order = np.unique(labels, return_inverse=True)
        # One after another, with a gap after each cluster.
        positions = np.arange(n) + order * max(1.0, n * min(0.03, 0.15 / len(clusters)))
        self.ax_, self.figure_ = style.open_axes(ax, 7, np.clip(1.2 + 0.1 * n, 4, 9))
        self.bars_, self.outlier_bars_ = {}, {}
        colors = cluster_colors(labels[-1] + 1)
        for k in clusters.tolist():
            mine, far = labels == k, outlying[labels == k]
            values, places = self.values[rows][mine], positions[mine]
            self.bars_[k] = _draw_steps(self.ax_, values, places, colors[k])
            if far.any():
                values = np.where(far, values, np.nan)
                self.outlier_bars_[k] = _draw_steps(self.ax_, values, places, INK)
        regular, m = outlying.all() | ~outlying, np.count_nonzero(outlying)
        masses = np.ones(n) if self.weights is None else self.weights[rows]
        mean = mean_by_weight(self.values[rows][regular], masses[regular])
        self.ax_.set(xlim=(0, 1), ylim=(positions[-1] + 1, positions[0] - 1), yticks=[])
        self.ax_.set_xlabel("revised silhouette")
        self.ax_.axvline(mean, **style.DASHED)
        style.headline(
            self.ax_,
            f"{count(n, 'case')}, mean silhouette {mean:.2f} (dashed)",
            f"dark: {count(m, 'outlier')}" if m else "no outliers",
            n_hidden=len(self.values) - n,
        )
        if positions[-1] + 2 > style.size_in_points(self.ax_)[1] / NAME_POINTS:
            self.ax_.set_ylabel("cases, sorted within their cluster", color=GRAY, fontsize=8)
        else:
            names = style.names_at(self.names, rows)
            self.ax_.set_yticks(positions, names, fontsize=NAME_POINTS)
            self.ax_.tick_params(axis="y", length=0, pad=2)
        self._write_means(rows, positions, masses)
        return self

    def _write_means(self, rows: np.ndarray, positions: np.ndarray, masses: np.ndarray) -> None:
        """Write the mean of each cluster without its outliers, and of these, as the paper does.

        In a cluster too thin for text, as near as can be.
        """
        groups = 2 * self.labels[rows] + self.outliers[rows]
        weights = None if self.weights is None else masses
        sizes = pictures.sizes_in_words(groups, groups.max() + 1, weights)
        words: dict[int, list[str]] = {}
        for group in np.unique(groups).tolist():
            mine, name = groups == group, ("mean", "outliers")[group % 2]
            mean = mean_by_weight(self.values[rows][mine], masses[mine])
            words.setdefault(group // 2, []).append(f"{name} {mean:.2f} ({sizes[group]})")
        height = style.size_in_points(self.ax_)[1]
        line = min(MEAN_POINTS, height / len(words))
        middles = [positions[groups // 2 == k].mean() for k in words]
        spread = style.spread_out(middles, line * (positions[-1] + 2) / height)
        look = {"va": "center", "fontsize": 0.8 * line, "color": INK, "bbox": style.BACKING}
        self.texts_ = {
            k: self.ax_.text(0.015, place, f"cluster {k}: {', '.join(words[k])}", **look)
            for k, place in zip(words, spread, strict=True)
        }


def _draw_steps(ax: Any, values: Any, places: Any, color: Any) -> Any:
    """Draw bars as one filled path, past ``ax.stairs``, which looks at every corner for limits.

    A display of 100,000 cases takes 0.4 s; with ``ax.stairs`` it took 4.4 s.
    """
    from matplotlib.patches import StepPatch

    look = {"facecolor": color, "linewidth": 0, "fill": True, "orientation": "horizontal"}
    return ax.add_artist(StepPatch(values, np.append(places - 0.5, places[-1] + 0.5), **look))


@dataclass(eq=False, repr=False)
class OutlierDisplay:
    """One point per case: its weighted and its unweighted squared distance to its center.

    Lines stand at the thresholds: a case beyond either is an outlier. Color and marker tell which
    distance makes it one. Cases that were trimmed and are no outliers are hollow.

    Both axes are logarithmic. Distances below a hundredth of the median, and 0, are drawn there.
    Cases of which nothing that has weight is observed are left out.

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
        check_cases(model, len(cases.labels))
        return cls(
            cases.weighted,
            cases.unweighted,
            thresholds=thresholds_of(model),
            trimmed=model.trimmed_,
            names=pictures.case_names(X, len(cases.labels)),
            weights=style.weights_of_fit(model, cases.labels),
        ).plot(ax, n_names=n_names)

    def plot(self, ax: Any = None, *, n_names: int = 10) -> Self:
        """Draw the cases in ``ax``, or in a new figure, and name the ``n_names`` most extreme."""
        self.ax_, self.figure_ = style.open_axes(ax, 8, 5)
        distances = Distances(np.asarray(self.weighted), np.asarray(self.unweighted))
        seen, points = pictures.distance_points(distances)
        pictures.check_seen(seen)
        trimmed = False if self.trimmed is None else np.asarray(self.trimmed)
        flags = pictures.flags_of(distances, Thresholds(*self.thresholds), trimmed)[seen]
        flagged = np.isin(flags, (1, 2, 3))
        self._draw_points(points, flags)
        self._draw_axes()
        self.legend_ = style.legend_beside(self.ax_)
        share, n, n_outliers = "", len(flags), np.count_nonzero(flagged)
        if self.weights is not None and n_outliers:
            weights = self.weights[seen]
            share = f", {percent(weights[flagged].sum() / weights.sum())} of the weight"
        title = f"{count(n, 'case')}: {count(n_outliers, 'outlier')}{share}"
        style.headline(self.ax_, title, n_hidden=len(seen) - n)
        self.texts_ = []
        if n_named := min(
            n_names, int(n_outliers)
        ):  # those farthest in the one or the other distance
            extreme = (points / np.median(points, axis=0)).max(axis=1) * flagged
            chosen = np.argsort(-extreme, kind="stable")[:n_named]
            names = style.names_at(self.names, np.flatnonzero(seen)[chosen])
            self.texts_ = style.name_points(self.ax_, points[chosen], names)
        return self

    def _draw_points(self, points: np.ndarray, flags: np.ndarray) -> None:
        n, self.points_ = len(flags), {}
        many, size = n > style.MANY_CASES, np.clip(5000 / max(n, 1), 3, 20)
        for code, (flag, (color, marker, name)) in enumerate(pictures.FLAGS.items()):
            mine = flags == code
            look = {"s": size, "marker": marker, "alpha": 0.8, "zorder": 2.5, "rasterized": many}
            look |= {"facecolors": color, "linewidths": 0}
            if flag == "trimmed":
                look |= {"facecolors": "none", "edgecolors": color, "linewidths": 1}
            # None for no points: Matplotlib leaves out what starts with an underscore.
            label = f"{name} ({np.count_nonzero(mine):,})" if mine.any() else "_none"
            self.points_[flag] = self.ax_.scatter(*points[mine].T, label=label, **look)

    def _draw_axes(self) -> None:
        """Draw the thresholds, and set scales and ticks."""
        from matplotlib.ticker import LogLocator, NullFormatter

        self.ax_.set(xscale="log", yscale="log")
        self.ax_.set_xlabel("weighted squared distance to the center")
        self.ax_.set_ylabel("unweighted squared distance")
        draw, self.lines_ = {"weighted": self.ax_.axvline, "unweighted": self.ax_.axhline}, {}
        for (flag, line), limit in zip(draw.items(), self.thresholds, strict=True):
            if 0 < limit < np.inf:
                look = {"color": pictures.FLAGS[flag][0], "lw": 1, "zorder": 2}
                self.lines_[flag] = line(limit, label=f"{flag} threshold {limit:.3g}", **look)
        for axis in (self.ax_.xaxis, self.ax_.yaxis):
            # Ticks at 1, 2, 5, 10, ... or, beyond three decades, at 1, 10, ... only.
            low, high = axis.get_view_interval()
            axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 1000 else (1,)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
