"""The cells of the features that matter, cases ordered by cluster."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from rskc.displays import style
from rskc.inputs.arrays import to_dense
from rskc.inputs.validation import check_integer
from rskc.model.fitted import judge_cases, number_names, number_weights
from rskc.pictures import models as pictures
from rskc.pictures.palette import GRAY, INK
from rskc.utils.wording import count

_MOST_ROWS = 2000  # of the image; of more cases, evenly spaced ones are drawn
_FEATURE_POINTS = 8.0  # height of a line of text


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
        display = cls(
            pictures.standardize_cells(values, cases.outliers) if standardize else values,
            cases.labels,
            cases.weighted,
            cases.outliers,
            names=pictures.case_names(X, len(cases.labels)),
            feature_names=number_names(model)[features],
            n_features=(len(support), len(weights)),
            standardized=standardize,
            weights=pictures.weights_of_fit(model, cases.labels),
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the cells in ``ax``, or in a new figure."""
        n, m = self.values.shape
        size = np.clip(2.5 + 0.12 * m, 4.5, 11), np.clip(2 + 0.095 * n, 4, 9)
        self.ax_, self.figure_ = style.open_axes(ax, *size)
        order = np.lexsort((self.distances, self.labels))
        self.rows_ = order[style.thinned(n, _MOST_ROWS)]
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
        names = np.arange(m) if self.feature_names is None else self.feature_names
        shown = style.thinned(m, style.size_in_points(self.ax_)[0] / _FEATURE_POINTS)
        labels = style.plain_names(np.asarray(names, object)[shown])
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
