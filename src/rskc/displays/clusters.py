"""The cases in two dimensions, colored by cluster."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from rskc.displays import style
from rskc.inputs.validation import check_choice
from rskc.pictures.models import (
    AssignedCases,
    assign,
    check_fitted,
    check_seen,
    frame_of,
    plane_of,
    sizes_in_words,
    table_of,
    weights_of_fit,
)
from rskc.pictures.palette import INK, cluster_colors, cluster_markers, darker
from rskc.utils.wording import count

_MOST_ENTRIES = 40  # clusters in the legend; with more of them, the centers tell their numbers
_CONTRAST = 3  # power of the stability: of a case that changes now and then, half of the color goes


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
    stability : ndarray of shape (n_samples,), default=None
        How stable the cases are in their clusters, from 0 to 1, NaN where that is not known: the
        lower, the paler their points. None for full points.
    weights : ndarray of shape (n_samples,), default=None
        What each case counts, for the legend; None if all count the same.

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
    stability: Any = None
    weights: Any = None

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, *, kind: str = "auto", stability: Any = None, ax: Any = None
    ) -> Self:
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
        stability : array-like of shape (n_samples,), default=None
            How stable the cases are in their clusters, from 0 to 1, such as ``case_stability_`` of
            :class:`rskc.selection.Stability`: cases that change their cluster are pale rings.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : ClusterDisplay
        """
        check_choice("kind", kind, ("auto", "features", "pca"))
        model, X = check_fitted(model, X)
        cases = assign(model, X)
        weights = weights_of_fit(model, cases.labels)
        stability = _check_stability(stability, len(cases.labels))
        seen = np.isfinite(cases.distances)
        check_seen(seen)
        cases, X = AssignedCases(*(part[seen] for part in cases)), table_of(model, X)[seen]
        plane = plane_of(model, X, cases, kind)
        x_name, y_name = style.plain_names(plane.axis_names, 40)
        filled = (
            f"{count(plane.n_filled, 'case')} with missing cells, these put at the cluster's center"
        )
        display = cls(
            plane.positions,
            cases.labels,
            cases.outliers,
            plane.centers,
            axis_names=(x_name, y_name),
            notes=(filled if plane.n_filled else "", style.not_shown(int((~seen).sum()))),
            stability=None if stability is None else stability[seen],
            weights=None if weights is None else weights[seen],
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the cases in ``ax``, or in a new figure."""
        self.ax_, self.figure_ = style.open_axes(ax, 7.5, 5)
        frame = frame_of(self.positions, self.labels, self.outliers, self.centers)
        self._draw_cases(np.clip(self.positions, frame.low, frame.high))
        self._draw_centers()
        pad = 0.02 * (frame.high - frame.low)
        (left, low), (right, high) = frame.low - pad, frame.high + pad
        self.ax_.set(xlim=(left, right), ylim=(low, high))
        self.ax_.set(xlabel=self.axis_names[0], ylabel=self.axis_names[1])
        self._write_legend()
        n, K, m = len(self.labels), len(self.centers), frame.n_beyond
        title = f"{count(n, 'case')} in {count(K, 'cluster')}; circles: centers"
        beyond = f"{count(m, 'outlier')} beyond the frame, drawn on its edge" if m else ""
        style.headline(self.ax_, title, *self.notes, beyond)
        return self

    def _draw_cases(self, positions: np.ndarray) -> None:
        self.points_, self.crosses_ = {}, {}
        K, many = len(self.centers), len(positions) > style.MANY_CASES
        size = 2.0 if many else np.clip(6000 / max(len(positions), 1), 7, 30)
        points = {"s": size, "linewidths": 0, "alpha": 0.4 if many else 0.75, "rasterized": many}
        crosses = {"s": size + 12, "linewidths": 1.2, "marker": "x", "zorder": 2}
        if many:  # thousands of crosses must not bury the clusters
            crosses |= {"s": 6, "linewidths": 0.5, "zorder": 0.9, "rasterized": True}
        for k, color, marker in zip(range(K), cluster_colors(K), cluster_markers(K), strict=True):
            mine, far = positions[self.labels == k], self.outliers[self.labels == k]
            look = {"c": color} if self.stability is None else self._by_stability(k, color)
            self.points_[k] = self.ax_.scatter(*mine[~far].T, marker=marker, **points | look)
            self.crosses_[k] = self.ax_.scatter(*mine[far].T, c=darker(color, 0.25), **crosses)

    def _by_stability(self, k: int, color: str) -> dict[str, Any]:
        """Return the looks of the points of a cluster: the more stable a case, the fuller."""
        from matplotlib.colors import to_rgba_array

        stable = np.asarray(self.stability, float)[(self.labels == k) & ~self.outliers]
        faces = to_rgba_array(color).repeat(len(stable), axis=0)
        faces[:, 3] = 0.9 * np.where(np.isnan(stable), 1.0, np.clip(stable, 0, 1)) ** _CONTRAST
        return {"facecolors": faces, "edgecolors": color, "linewidths": 0.6, "alpha": None}

    def _draw_centers(self) -> None:
        """Write the numbers of the clusters that have cases in white discs."""
        disc = style.backing(boxstyle="circle,pad=0.25", edgecolor=INK, linewidth=1)
        text = {"ha": "center", "va": "center", "fontsize": 7.5, "color": INK, "zorder": 4}
        self.centers_ = {
            int(k): self.ax_.text(*self.centers[k], str(k), bbox=disc, **text)
            for k in np.unique(self.labels)
        }

    def _write_legend(self) -> None:
        from matplotlib.lines import Line2D

        K = len(self.centers)
        sizes = sizes_in_words(self.labels, K, self.weights)
        looks = zip(cluster_colors(K), cluster_markers(K), sizes, strict=True)
        handles = [
            Line2D([], [], marker=marker, color=color, label=f"{k} ({size})", ms=6, ls="none")
            for k, (color, marker, size) in enumerate(looks)
            if K <= _MOST_ENTRIES
        ]
        if n_outlying := np.count_nonzero(self.outliers):
            label = count(n_outlying, "outlier")
            handles.append(Line2D([], [], marker="x", color=INK, label=label, ms=5, ls="none"))
        if self.stability is not None:
            label = "pale: changes its\ncluster in half-samples"
            ring: dict[str, Any] = {"marker": "o", "mfc": "none", "mew": 0.6, "ms": 5, "ls": "none"}
            handles.append(Line2D([], [], color=INK, label=label, **ring))
        title = "cluster" if K <= _MOST_ENTRIES else None
        self.legend_ = style.legend_beside(
            self.ax_, handles=handles, title=title, ncols=1 + (K > 20)
        )


def _check_stability(stability: Any, n: int) -> np.ndarray | None:
    if stability is None:
        return None
    values = np.asarray(stability, float)
    if values.shape != (n,):
        raise ValueError(
            f"stability has shape {values.shape} and X {n} cases; give a number for each, NaN "
            "where none is known."
        )
    return values
