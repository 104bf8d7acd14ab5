"""The cases in two dimensions, colored by cluster."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.decomposition import PCA

from rskc.displays._cases import (
    Cases,
    check_fitted,
    check_seen,
    feature_names,
    fill_with_centers,
    look_up,
    strongest,
    table_of,
)
from rskc.displays._style import (
    INK,
    MANY_CASES,
    axes_for,
    backing,
    cluster_colors,
    cluster_markers,
    count,
    darker,
    for_legend,
    headline,
    plain,
    tidy,
)
from rskc.validation import check_choice

_MARGIN = 0.35  # of the range of the cases, on each side: beyond it outliers stand on the edge

_MOST_ENTRIES = 40  # clusters in the legend; with more of them, the centers tell their numbers


class Plane(NamedTuple):
    """Cases and centers in two dimensions, and what these are."""

    positions: np.ndarray
    centers: np.ndarray
    axis_names: tuple[str, str]
    n_filled: int  # cases of which a cell in use is missing


class ClusterDisplay:
    """One point a case, with a color for each cluster; outliers are crosses.

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

    def __init__(
        self,
        positions: Any,
        labels: Any,
        outliers: Any,
        centers: Any,
        *,
        axis_names: tuple[str, str] = ("", ""),
        notes: tuple[str, ...] = (),
    ):
        self.positions = positions
        self.labels = labels
        self.outliers = outliers
        self.centers = centers
        self.axis_names = axis_names
        self.notes = notes

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
        model, X = check_fitted(model, X)
        cases = look_up(model, X)
        seen = np.isfinite(cases.distances)
        check_seen(seen)
        cases, X = Cases(*(part[seen] for part in cases)), table_of(model, X)[seen]
        plane = _plane(model, X, cases, kind)
        display = cls(
            plane.positions,
            cases.labels,
            cases.outliers,
            plane.centers,
            axis_names=plane.axis_names,
            notes=_notes(plane.n_filled, np.count_nonzero(~seen)),
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the cases in ``ax``, or in a new figure."""
        self.ax_ = axes_for(ax, 7.5, 5)
        self.figure_ = self.ax_.figure
        limits = self._limits()
        self._draw_cases(np.clip(self.positions, *limits))
        self._draw_centers()
        tidy(self.ax_)
        pad = 0.02 * (limits[1] - limits[0])
        (left, low), (right, high) = limits[0] - pad, limits[1] + pad
        self.ax_.set(xlim=(left, right), ylim=(low, high))
        self.ax_.set(xlabel=self.axis_names[0], ylabel=self.axis_names[1])
        self._write_legend()
        beyond = np.any((self.positions < limits[0]) | (self.positions > limits[1]), axis=1).sum()
        headline(self.ax_, self._title(), *self.notes, _beyond(beyond))
        return self

    def _limits(self) -> np.ndarray:
        """Lower left and upper right corner: all centers and cases that are no outliers, with
        room for outliers around them.
        """
        tame = self.positions[~self.outliers] if not self.outliers.all() else self.positions
        tame = np.concatenate([tame, self.centers[np.unique(self.labels)]])
        low, high = tame.min(axis=0), tame.max(axis=0)
        room = _MARGIN * np.where(high > low, high - low, 1.0)
        everything = np.concatenate([tame, self.positions])
        low = np.maximum(everything.min(axis=0), low - room)
        high = np.minimum(everything.max(axis=0), high + room)
        flat = high <= low
        return np.array([low - 0.5 * flat, high + 0.5 * flat])

    def _draw_cases(self, positions: np.ndarray) -> None:
        self.points_, self.crosses_ = {}, {}
        K, many = len(self.centers), len(positions) > MANY_CASES
        size = 2.0 if many else np.clip(6000 / max(len(positions), 1), 7, 30)
        points = {"s": size, "linewidths": 0, "alpha": 0.4 if many else 0.75, "rasterized": many}
        crosses = {"s": size + 12, "linewidths": 1.2, "marker": "x", "zorder": 2}
        if many:  # thousands of crosses must not bury the clusters
            crosses |= {"s": 6, "linewidths": 0.5, "zorder": 0.9, "rasterized": True}
        for k, color, marker in zip(range(K), cluster_colors(K), cluster_markers(K), strict=True):
            tame, outlying = (positions[(self.labels == k) & (self.outliers == w)] for w in (0, 1))
            self.points_[k] = self.ax_.scatter(*tame.T, c=color, marker=marker, **points)
            self.crosses_[k] = self.ax_.scatter(*outlying.T, c=darker(color, 0.25), **crosses)

    def _draw_centers(self) -> None:
        """Write the numbers of the clusters that have cases in white discs."""
        disc = backing(boxstyle="circle,pad=0.25", edgecolor=INK, linewidth=1)
        style = {"ha": "center", "va": "center", "fontsize": 7.5, "color": INK, "zorder": 4}
        self.centers_ = {
            int(k): self.ax_.text(*self.centers[k], str(k), bbox=disc, **style)
            for k in np.unique(self.labels)
        }

    def _write_legend(self) -> None:
        from matplotlib.lines import Line2D

        K = len(self.centers)
        sizes = np.bincount(self.labels, minlength=K)
        looks = zip(cluster_colors(K), cluster_markers(K), sizes, strict=True)
        handles = [
            _handle(Line2D, marker, color, f"{k} (n = {size:,})")
            for k, (color, marker, size) in enumerate(looks)
            if K <= _MOST_ENTRIES
        ]
        if n_outlying := np.count_nonzero(self.outliers):
            handles.append(_handle(Line2D, "x", INK, count(n_outlying, "outlier")))
        self.legend_ = self.ax_.legend(
            handles=handles,
            title="cluster" if K <= _MOST_ENTRIES else None,
            loc="upper left",
            bbox_to_anchor=(1.01, 1.0),
            ncols=1 + (K > 20),
            fontsize=8,
            title_fontsize=9,
            frameon=False,
            alignment="left",
        )

    def _title(self) -> str:
        n, K = len(self.labels), len(self.centers)
        return f"{count(n, 'case')} in {count(K, 'cluster')}; circles: centers"


def _handle(line: Any, marker: str, color: str, label: str) -> Any:
    size = 6 if marker != "x" else 5
    return line([], [], marker=marker, color=color, label=for_legend(label), ms=size, ls="none")


def _notes(n_filled: Any, n_hidden: Any) -> tuple[str, ...]:
    filled = f"{count(n_filled, 'case')} with missing cells, these put at the cluster's center"
    hidden = f"not shown: {count(n_hidden, 'case')} without an observed feature"
    return (filled if n_filled else "", hidden if n_hidden else "")


def _beyond(n: int) -> str:
    return f"{count(n, 'outlier')} beyond the frame, drawn on its edge" if n else ""


def _plane(model: Any, X: np.ndarray, cases: Cases, kind: str) -> Plane:
    features = strongest(model.feature_weights_)
    few = len(features) < (3 if kind == "auto" else 2)
    if kind == "features" or few:
        features = features[:2]
    X, centers = X[:, features], model.cluster_centers_[:, features]
    n_filled = np.count_nonzero(np.isnan(X).any(axis=1))
    X = fill_with_centers(X, cases.labels, centers)
    centers = fill_with_centers(centers, np.arange(len(centers)), centers)
    if kind == "features" or few:
        names = [plain(name, 40) for name in feature_names(model, features)]
        plane = _by_rank if len(features) == 1 else _by_features
        return plane(X, centers, cases.labels, names, n_filled)
    scale = np.sqrt(model.feature_weights_[features])
    return _by_components(X * scale, centers * scale, cases.outliers, n_filled)


def _by_features(X, centers, labels, names, n_filled) -> Plane:
    return Plane(X, centers, (names[0], names[1]), n_filled)


def _by_rank(X, centers, labels, names, n_filled) -> Plane:
    """One feature, and the place of each case among all, sorted by the feature."""
    order = np.lexsort((labels, X[:, 0]))
    ranks = np.empty(len(X))
    ranks[order] = np.arange(len(X))
    middles = [np.median(ranks[labels == k]) if k in labels else 0 for k in range(len(centers))]
    return Plane(
        np.column_stack([X[:, 0], ranks]),
        np.column_stack([centers[:, 0], middles]),
        (names[0], "cases, in the order of this feature"),
        n_filled,
    )


def _by_components(Z, centers, outliers, n_filled) -> Plane:
    tame = Z[~outliers]
    if len(tame) < 3:  # too few to span a plane
        tame = np.concatenate([Z, centers])
    with np.errstate(invalid="ignore"):  # the shares of no variance at all
        pca = PCA(2, random_state=0).fit(tame)
    names = [
        f"PC {i} ({share:.0%} of the weighted variance)"
        for i, share in enumerate(np.nan_to_num(pca.explained_variance_ratio_), 1)
    ]
    return Plane(pca.transform(Z), pca.transform(centers), (names[0], names[1]), n_filled)
