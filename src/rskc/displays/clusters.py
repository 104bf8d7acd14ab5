"""The cases in two dimensions, colored by cluster."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from rskc.displays import style
from rskc.inputs.validation import check_choice
from rskc.model.fitted import JudgedCases, judge_cases
from rskc.pictures import models as pictures
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
        model, X = pictures.check_fitted(model, X)
        cases = judge_cases(model, X)
        n, weights = len(cases.labels), pictures.weights_of_fit(model, cases.labels)
        if stability is not None and np.shape(stability) != (n,):
            raise ValueError(
                f"stability has shape {np.shape(stability)} and X {n} cases; give a number for "
                "each, NaN where none is known."
            )
        seen = np.isfinite(cases.weighted)
        pictures.check_seen(seen)
        cases = JudgedCases(*(part[seen] for part in cases))
        X = pictures.table_of(model, X)[seen]
        plane = pictures.plane_of(model, X, cases, kind)
        x_name, y_name = style.plain_names(plane.axis_names, 40)
        filled = f"{count(plane.n_filled, 'case')} with missing cells"
        filled = f"{filled}, these put at the cluster's center" if plane.n_filled else ""
        display = cls(
            plane.positions,
            cases.labels,
            cases.outliers,
            plane.centers,
            axis_names=(x_name, y_name),
            notes=(filled, style.not_shown(n - len(cases.labels))),
            stability=None if stability is None else np.asarray(stability, float)[seen],
            weights=None if weights is None else weights[seen],
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the cases in ``ax``, or in a new figure."""
        self.ax_, self.figure_ = style.open_axes(ax, 7.5, 5)
        n, K = len(self.labels), len(self.centers)
        about = self.positions, self.labels, self.outliers, self.centers
        low, high, n_beyond = pictures.frame_of(*about)
        self._draw_cases(np.clip(self.positions, low, high))
        # The numbers of the clusters that have cases, in white discs.
        disc = style.backing(boxstyle="circle,pad=0.25", edgecolor=INK, linewidth=1)
        text = {"ha": "center", "va": "center", "fontsize": 7.5, "color": INK, "zorder": 4}
        self.centers_ = {
            k: self.ax_.text(*self.centers[k], str(k), bbox=disc, **text)
            for k in np.unique(self.labels).tolist()
        }
        (left, bottom), (right, top) = low - 0.02 * (high - low), high + 0.02 * (high - low)
        self.ax_.set(xlim=(left, right), ylim=(bottom, top))
        self.ax_.set(xlabel=self.axis_names[0], ylabel=self.axis_names[1])
        self._write_legend()
        title = f"{count(n, 'case')} in {count(K, 'cluster')}; circles: centers"
        beyond = f"{count(n_beyond, 'outlier')} beyond the frame, drawn on its edge"
        style.headline(self.ax_, title, *self.notes, beyond if n_beyond else "")
        return self

    def _draw_cases(self, positions: np.ndarray) -> None:
        from matplotlib.colors import to_rgba_array

        self.points_, self.crosses_ = {}, {}
        K, many = len(self.centers), len(positions) > style.MANY_CASES
        size = 2.0 if many else np.clip(6000 / max(len(positions), 1), 7, 30)
        points = {"s": size, "linewidths": 0, "alpha": 0.4 if many else 0.75, "rasterized": many}
        crosses = {"s": size + 12, "linewidths": 1.2, "marker": "x", "zorder": 2}
        if many:  # thousands of crosses must not bury the clusters
            crosses |= {"s": 6, "linewidths": 0.5, "zorder": 0.9, "rasterized": True}
        for k, color, marker in zip(range(K), cluster_colors(K), cluster_markers(K), strict=True):
            mine = self.labels == k
            look: dict[str, Any] = {"c": color}
            regular, outlying = mine & ~self.outliers, mine & self.outliers
            if self.stability is not None:  # the more stable a case, the fuller
                stable = np.nan_to_num(self.stability[regular], nan=1.0)
                faces = to_rgba_array(color).repeat(len(stable), axis=0)
                faces[:, 3] = 0.9 * np.clip(stable, 0, 1) ** _CONTRAST
                look = {"facecolors": faces, "edgecolors": color, "linewidths": 0.6, "alpha": None}
            own = points | {"marker": marker} | look
            self.points_[k] = self.ax_.scatter(*positions[regular].T, **own)
            dark = darker(color, 0.25)
            self.crosses_[k] = self.ax_.scatter(*positions[outlying].T, c=dark, **crosses)

    def _write_legend(self) -> None:
        from matplotlib.lines import Line2D

        K = len(self.centers)
        sizes = pictures.sizes_in_words(self.labels, K, self.weights)
        looks = zip(cluster_colors(K), cluster_markers(K), sizes, strict=True)
        entries: list[dict[str, Any]] = [
            {"marker": marker, "color": color, "label": f"{k} ({size})", "ms": 6}
            for k, (color, marker, size) in enumerate(looks)
            if K <= _MOST_ENTRIES
        ]
        if n_outlying := np.count_nonzero(self.outliers):
            label = count(n_outlying, "outlier")
            entries.append({"marker": "x", "color": INK, "label": label, "ms": 5})
        if self.stability is not None:
            label = "pale: changes its\ncluster in half-samples"
            ring = {"marker": "o", "mfc": "none", "mew": 0.6, "ms": 5}
            entries.append({"color": INK, "label": label, **ring})
        handles = [Line2D([], [], ls="none", **entry) for entry in entries]
        title = "cluster" if K <= _MOST_ENTRIES else None
        look = {"handles": handles, "title": title, "ncols": 1 + (K > 20)}
        self.legend_ = style.legend_beside(self.ax_, **look)
