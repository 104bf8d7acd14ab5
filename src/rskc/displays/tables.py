"""Tables in colors: cells of cases and features, and outlying cells."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from rskc.displays import style
from rskc.inputs.arrays import to_dense
from rskc.inputs.validation import check_integer
from rskc.model.fitted import judge_cases, number_names, number_weights
from rskc.model.summary import cells_frame
from rskc.pictures import models as pictures
from rskc.pictures.palette import GRAY, INK, PALETTE, cluster_colors
from rskc.utils.wording import count

MOST_ROWS = 2000  # of the heat map; of more cases, evenly spaced ones are drawn
# Heights of a line of text.
FEATURE_POINTS, CASE_POINTS, CLUSTER_POINTS = 8.0, 6.5, 10.0
FAR = 10.0  # marks of outlying cells beyond this many scales have the full color


@dataclass(eq=False, repr=False)
class HeatmapDisplay:
    """One row per case, one column per feature: the cells as colors.

    Cases are ordered by cluster and then by their distance to its center, nearest on top; features
    by weight. The strip on the left shows the clusters, marks on the right the outliers, and gray
    cells are missing. Colors end at the 2% and the 98% quantile of the cells, so that an outlying
    cell does not bleach the rest. Of more than 2,000 cases, evenly spaced ones are drawn; strip and
    marks are for all.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_shown)
        Standardized cells of the features to be shown, NaN for missing ones.
    labels : ndarray of int of shape (n_samples,)
        Clusters.
    distances : ndarray of shape (n_samples,)
        Distances of the cases to their centers, which order them.
    outliers : ndarray of bool of shape (n_samples,)
        Cases to be marked.
    names : array-like of shape (n_samples,), default=None
        Names of the cases; None for numbers.
    feature_names : array-like of shape (n_shown,), default=None
        Names of the features; None for numbers.
    n_features : tuple of two ints, default=None
        Number of features with weight, and of all, for the title.
    weights : ndarray of shape (n_samples,), default=None
        Case weights, for the names of the clusters; None for equal weights.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure
        Where it was drawn.
    rows_ : ndarray of int
        The cases of the image, from top to bottom.
    image_ : AxesImage
        The cells.
    strip_ : BarContainer
        The clusters.
    marks_ : Line2D
        The outliers.
    colorbar_ : Colorbar
    case_axis_ : SecondaryAxis
        Names of cases, on the right.
    """

    values: Any
    labels: Any
    distances: Any
    outliers: Any
    _: KW_ONLY
    names: Any = None
    feature_names: Any = None
    n_features: tuple[int, int] | None = None
    weights: Any = None

    @classmethod
    def from_estimator(cls, model: Any, X: Any, *, n_top: int = 50, ax: Any = None) -> Self:
        """Draw the cells of the features with the largest weights.

        Each feature is brought to mean 0 and standard deviation 1, both taken without the outliers.

        Parameters
        ----------
        model : RobustSparseKMeans
            A fitted model.
        X : array-like or data frame of shape (n_samples, n_features)
            Cases, those of the fit or new ones.
        n_top : int, default=50
            Largest number of features.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : HeatmapDisplay
        """
        check_integer("n_top", n_top, 1)
        model, X = pictures.check_fitted(model, X)
        cases = judge_cases(model, X)
        weights = number_weights(model)
        support = pictures.strongest(weights)
        features = support[:n_top]
        values = to_dense(pictures.table_of(model, X)[:, features]).astype(np.float64)
        return cls(
            pictures.standardize_cells(values, cases.outliers),
            cases.labels,
            cases.weighted,
            cases.outliers,
            names=pictures.case_names(X, len(cases.labels)),
            feature_names=number_names(model)[features],
            n_features=(len(support), len(weights)),
            weights=style.weights_of_fit(model, cases.labels),
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the cells in ``ax``, or in a new figure."""
        n, m = self.values.shape
        size = np.clip(2.5 + 0.12 * m, 4.5, 11), np.clip(2 + 0.095 * n, 4, 9)
        self.ax_, self.figure_ = style.open_axes(ax, *size)
        order = np.lexsort((self.distances, self.labels))
        self.rows_ = order[style.thinned(n, MOST_ROWS)]
        self._draw_cells()
        self._draw_margins(order)
        self._write_title()
        self._write_names(order)
        return self

    def _draw_cells(self) -> None:
        """Draw the table, and what the colors mean."""
        from matplotlib import colormaps

        n, m = self.values.shape
        low, high = pictures.color_limits(self.values)
        self.image_ = self.ax_.imshow(
            np.ma.masked_invalid(self.values[self.rows_]),
            aspect="auto",
            interpolation="nearest",
            extent=(0, m, n, 0),
            cmap=colormaps["RdBu_r"].with_extremes(bad=GRAY),
            vmin=low,
            vmax=high,
        )
        bar = {"ax": self.ax_, "shrink": 0.5, "aspect": 25, "pad": 0.02, "extend": "both"}
        self.colorbar_ = self.figure_.colorbar(self.image_, **bar)
        self.colorbar_.set_label("standardized value", fontsize=8)
        self.colorbar_.ax.tick_params(labelsize=8)

    def _draw_margins(self, order: np.ndarray) -> None:
        """Draw a strip of clusters on the left, mark outliers on the right, divide the clusters."""
        (n, m), sizes = self.values.shape, np.bincount(self.labels)
        strip, ends = 0.025 * m, np.cumsum(sizes)
        colors = cluster_colors(len(sizes))
        left: dict[str, Any] = {"left": -1.5 * strip, "align": "edge", "color": colors}
        self.strip_ = self.ax_.barh(ends - sizes, strip, sizes, **left)
        outlying = np.flatnonzero(self.outliers[order]) + 0.5
        look: dict[str, Any] = {"ls": "none", "marker": "<", "ms": 4, "mew": 0, "color": INK}
        (self.marks_,) = self.ax_.plot(np.full(len(outlying), 1.015 * m), outlying, **look)
        self.ax_.hlines(ends[:-1][sizes[1:] > 0], 0, m, color="white", linewidth=1)
        self.ax_.set(xlim=(-1.5 * strip, 1.03 * m), ylim=(n, 0))
        self.ax_.spines[:].set_visible(False)

    def _write_title(self) -> None:
        n, m = self.values.shape
        shown, outlying = len(self.rows_), np.count_nonzero(self.outliers)
        what = f"{count(n, 'case')} x {count(m, 'feature')}"
        if self.n_features is not None and self.n_features[0] > m:
            what += f" of largest weight, of {self.n_features[0]:,}"
        marks = f"marks on the right: {count(outlying, 'outlier')}" if outlying else "no outliers"
        missing = ", gray: missing" if np.isnan(self.values).any() else ""
        some = f"rows: {shown:,} of them, evenly spaced" if shown < n else ""
        style.headline(self.ax_, what, marks + missing, some)

    def _write_names(self, order: np.ndarray) -> None:
        """Name features below, clusters on the left, and on the right cases where there is room."""
        (width, height), (n, m) = style.size_in_points(self.ax_), self.values.shape
        shown = style.thinned(m, width / FEATURE_POINTS)
        names = style.names_at(self.feature_names, shown)
        self.ax_.set_xticks(shown + 0.5, names, rotation=90, fontsize=6.5)
        sizes = np.bincount(self.labels)
        words = pictures.sizes_in_words(self.labels, len(sizes), self.weights)
        used = np.flatnonzero(sizes)
        middles = (np.cumsum(sizes) - sizes / 2)[used]
        places = style.spread_out(middles, CLUSTER_POINTS * n / height)
        self.ax_.set_yticks(places, [f"{k} ({words[k]})" for k in used], fontsize=8)
        self.ax_.tick_params(axis="x", length=2)
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.set_ylabel("cluster")
        shown = style.thinned(n, height / CASE_POINTS)
        self.case_axis_ = self.ax_.secondary_yaxis("right")
        names = style.names_at(self.names, order[shown])
        self.case_axis_.set_yticks(shown + 0.5, names, fontsize=5.5)
        self.case_axis_.tick_params(length=2)
        self.case_axis_.spines[:].set_visible(False)


@dataclass(eq=False, repr=False)
class CellsDisplay:
    """One mark per outlying cell, at its feature and its case.

    Cases are sorted by cluster, and lines divide these. Cells above their center are of one color
    and cells below of another, the stronger the more scales they are away. A row or a column of
    marks is a case or a feature that is worth a look.

    Parameters
    ----------
    cases, features : ndarray of int
        Where each outlying cell is, by number.
    scales : ndarray of float
        How many scales it is above its center.
    labels : ndarray of shape (n_samples,)
        Clusters of all cases.
    n_features : int
        How many features the table has.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure
        Where it was drawn.
    marks_ : PathCollection
        The cells.
    """

    cases: Any
    features: Any
    scales: Any
    _: KW_ONLY
    labels: Any
    n_features: int

    @classmethod
    def from_estimator(cls, model: Any, X: Any, *, ax: Any = None) -> Self:
        """Draw the outlying cells of a fit.

        Parameters
        ----------
        model : RobustSparseKMeans
            A fitted model.
        X : array-like or data frame of shape (n_samples, n_features)
            The data of the fit.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : CellsDisplay
        """
        model, X = pictures.check_fitted(model, X)
        cells = cells_frame(model, X)
        places = (cells[name].to_numpy() for name in ("row", "column", "scales"))
        return cls(*places, labels=model.labels_, n_features=model.n_features_in_).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the cells in ``ax``, or in a new figure."""
        self.ax_, self.figure_ = style.open_axes(ax, 7, 4.5)
        # The row of each case: by cluster, and within clusters in the order of the table.
        rows = np.argsort(np.argsort(self.labels, kind="stable"))
        ends = np.cumsum(np.bincount(self.labels))
        colors = [
            (PALETTE[5 if scale > 0 else 0], min(max(abs(scale) / FAR, 0.3), 1.0))
            for scale in self.scales
        ]
        look = {"marker": "s", "s": 6, "linewidths": 0, "c": colors}
        self.marks_ = self.ax_.scatter(self.features, rows[self.cases], **look)
        for end in ends[:-1]:
            self.ax_.axhline(end - 0.5, color=GRAY, linewidth=0.6)
        n, p = len(self.labels), self.n_features
        self.ax_.set(xlim=(-0.5, p - 0.5), ylim=(n - 0.5, -0.5))
        self.ax_.set(xlabel="feature", ylabel="case, sorted by cluster")
        title = f"{count(len(self.cases), 'cell')} of {n:,} x {p:,} outlying"
        style.headline(self.ax_, title, "blue below the center, vermilion above")
        return self
