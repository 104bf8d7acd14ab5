"""Tables in colors: cells of cases and features, outlying cells, and pairs of cases."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from rskc.displays import style
from rskc.inputs.arrays import to_dense, to_numpy
from rskc.inputs.validation import check_integer
from rskc.model.fitted import case_names, judge_cases, number_names, number_weights
from rskc.model.summary import cells_frame
from rskc.pictures import models as pictures
from rskc.pictures.palette import GRAY, INK, PALETTE
from rskc.utils.wording import count

MOST_ROWS = 2000  # of the heat map; of more cases, evenly spaced ones are drawn
FEATURE_POINTS = 8.0  # height of a line of text
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
        Cells of the features to be shown, NaN for missing ones.
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
    standardized : bool, default=False
        Whether each feature has mean 0 and standard deviation 1. The colors then diverge from 0.
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
    """

    values: Any
    labels: Any
    distances: Any
    outliers: Any
    _: KW_ONLY
    names: Any = None
    feature_names: Any = None
    n_features: tuple[int, int] | None = None
    standardized: bool = False
    weights: Any = None

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, *, n_top: int = 50, standardize: bool = True, ax: Any = None
    ) -> Self:
        """Draw the cells of the features with the largest weights.

        Parameters
        ----------
        model : RobustSparseKMeans
            A fitted model.
        X : array-like or data frame of shape (n_samples, n_features)
            Cases, those of the fit or new ones.
        n_top : int, default=50
            Largest number of features.
        standardize : bool, default=True
            Bring each feature to mean 0 and standard deviation 1, both taken without the outliers.
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
            pictures.standardize_cells(values, cases.outliers) if standardize else values,
            cases.labels,
            cases.weighted,
            cases.outliers,
            names=pictures.case_names(X, len(cases.labels)),
            feature_names=number_names(model)[features],
            n_features=(len(support), len(weights)),
            standardized=standardize,
            weights=style.weights_of_fit(model, cases.labels),
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the cells in ``ax``, or in a new figure."""
        n, m = self.values.shape
        size = np.clip(2.5 + 0.12 * m, 4.5, 11), np.clip(2 + 0.095 * n, 4, 9)
        self.ax_, self.figure_ = style.open_axes(ax, *size)
        order = np.lexsort((self.distances, self.labels))
        self.rows_ = order[style.thinned(n, MOST_ROWS)]
        limits = pictures.symmetric_limits if self.standardized else pictures.color_limits
        low, high = limits(self.values)
        label = "standardized value" if self.standardized else "value"
        self.image_, self.colorbar_, self.strip_ = style.draw_table(
            self.ax_,
            np.ma.masked_invalid(self.values[self.rows_]),
            self.labels,
            {"label": label, "extend": "both"},
            cmap="RdBu_r" if self.standardized else "viridis",
            vmin=low,
            vmax=high,
        )
        self.image_.set_cmap(self.image_.cmap.with_extremes(bad=GRAY))
        self._draw_margins(order)
        self._write_title()
        shown = style.thinned(m, style.size_in_points(self.ax_)[0] / FEATURE_POINTS)
        labels = style.names_at(self.feature_names, shown)
        self.ax_.set_xticks(shown + 0.5, labels, rotation=90, fontsize=6.5)
        self.ax_.tick_params(axis="x", length=2)
        sizes = pictures.sizes_in_words(self.labels, np.max(self.labels) + 1, self.weights)
        words = [f"{k} ({size})" for k, size in enumerate(sizes)]
        self.case_axis_ = style.name_rows(self.ax_, self.labels, words, self.names, order)
        return self

    def _draw_margins(self, order: np.ndarray) -> None:
        """Mark outliers on the right, and divide the clusters."""
        m, outlying = self.values.shape[1], np.flatnonzero(self.outliers[order]) + 0.5
        look = {"ls": "none", "marker": "<", "ms": 4, "mew": 0, "color": INK}
        (self.marks_,) = self.ax_.plot(np.full(len(outlying), 1.015 * m), outlying, **look)
        sizes = np.bincount(self.labels)
        ends = np.cumsum(sizes)[:-1][sizes[1:] > 0]
        self.ax_.hlines(ends, 0, m, color="white", linewidth=1)
        self.ax_.set(xlim=(self.ax_.get_xlim()[0], 1.03 * m), ylim=(len(self.labels), 0))

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
        rows, ends = pictures.rows_by_cluster(self.labels), np.cumsum(np.bincount(self.labels))
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


@dataclass(eq=False, repr=False)
class ConsensusDisplay:
    """One row and one column per case: how often half-samples give two cases the same cluster.

    Cases are ordered by cluster and then by their stability, the most stable first. Stable clusters
    are dark squares on a white ground. A case that changes its cluster is a pale line at the end of
    its square, and two clusters that are joined now and then have a pale square in common. Of many
    cases, evenly spaced ones in this order are drawn.

    Parameters
    ----------
    consensus : ndarray of shape (n_shown, n_shown)
        The shares, in any order of the cases.
    labels : ndarray of int of shape (n_shown,)
        Clusters.
    stability : ndarray of shape (n_shown,)
        Stability of the cases, which orders them within clusters.
    names : array-like of shape (n_shown,), default=None
        Names of the cases; None for numbers.
    n_cases : int, default=None
        Number of the cases that these are drawn from; None if these are all.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure
        Where it was drawn.
    image_ : AxesImage
        The shares.
    colorbar_ : Colorbar
    order_ : ndarray of int
        The cases from top to bottom.
    strip_ : BarContainer
        The clusters, on the left.
    case_axis_ : SecondaryAxis
        Names of cases, on the right.
    """

    consensus: Any
    labels: Any
    stability: Any
    _: KW_ONLY
    names: Any = None
    n_cases: int | None = None

    @classmethod
    def from_estimator(cls, search: Any, *, max_cases: int = 500, ax: Any = None) -> Self:
        """Draw how the cases of a search stay together.

        Parameters
        ----------
        search : Stability
            A fitted search.
        max_cases : int, default=500
            Largest number of cases to draw.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : ConsensusDisplay
        """
        check_integer("max_cases", max_cases, 1)
        style.check_stability(search, cls.__name__)
        model, used = search.best_estimator_, search.samples_used_
        labels, stability = to_numpy(model.labels_)[used], search.case_stability_
        order = np.lexsort((-stability, labels))
        shown = order[style.thinned(len(order), max_cases)]
        halves = search.half_labels_[:, shown]
        together = np.zeros((len(shown), len(shown)))
        for half in halves:  # one at a time: a matrix of all cases would not fit into memory
            together += half[:, None] == half
        return cls(
            together / len(halves),
            labels[shown],
            stability[shown],
            names=np.asarray(case_names(model), object)[used[shown]],
            n_cases=len(order),
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the shares in ``ax``, or in a new figure."""
        self.ax_, self.figure_ = style.open_axes(ax, 6.8, 5.6)
        self.order_ = np.lexsort((-np.asarray(self.stability), self.labels))
        n, shares = len(self.order_), np.asarray(self.consensus)[np.ix_(self.order_, self.order_)]
        self.image_, self.colorbar_, self.strip_ = style.draw_table(
            self.ax_,
            shares,
            self.labels,
            {"label": "share of half-samples together"},
            cmap="Blues",
            vmin=0,
            vmax=1,
        )
        self.ax_.set_xticks([])
        n_cases, clusters = self.n_cases or n, np.unique(self.labels)
        some = f"rows: {n:,} of them, evenly spaced" if n < n_cases else ""
        what = f"{count(n_cases, 'case')} in {count(len(clusters), 'cluster')}"
        style.headline(self.ax_, f"{what}: together in half-samples", some)
        words = [str(k) for k in range(clusters.max() + 1)]
        self.case_axis_ = style.name_rows(self.ax_, self.labels, words, self.names, self.order_)
        return self
