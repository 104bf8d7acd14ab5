"""Figures, and panels that they share."""

from __future__ import annotations

from typing import Any

import numpy as np

from rskc.inputs.labels import count_shared, match_clusters
from rskc.pictures.palette import cluster_colors


def new_figure(width: float, height: float) -> Any:
    """Return a figure, in inches, that no window shows and nobody has to close."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def row_of_panels(number: int) -> tuple[Any, np.ndarray]:
    """Return a figure, and axes in a row which share their scales."""
    figure = new_figure(3.4 * number, 3.4)
    return figure, figure.subplots(1, number, sharex=True, sharey=True)


def scatter(
    ax: Any,
    X: np.ndarray,
    labels: np.ndarray,
    truth: np.ndarray,
    title: str,
    marked: np.ndarray | None = None,
) -> None:
    """Draw the cases in two features, colored by cluster; marked ones as crosses."""
    colors = np.array(cluster_colors(int(labels.max()) + 1))[_renumbered(labels, truth)]
    ax.scatter(X[:, 0], X[:, 1], c=colors, s=10, linewidths=0, alpha=0.8)
    if marked is not None and marked.any():
        outlying, look = X[marked], {"s": 60, "marker": "X", "edgecolors": "black"}
        ax.scatter(outlying[:, 0], outlying[:, 1], c=colors[marked], **look)
    ax.set_title(title, fontsize=10, loc="left")
    ax.spines[["top", "right"]].set_visible(False)


def _renumbered(labels: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Give clusters the numbers of the true ones that they share most cases with."""
    K = int(max(labels.max(), truth.max())) + 1
    return match_clusters(count_shared(labels, truth, K, K))[labels]
