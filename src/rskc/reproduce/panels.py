"""Panels that the figures share."""

from __future__ import annotations

from typing import Any

import numpy as np

from rskc.displays._style import cluster_colours, pyplot


def row_of_panels(number: int, width: float = 3.4, height: float = 3.4) -> tuple[Any, np.ndarray]:
    """Return a figure with so many axes in a row, which share their scales."""
    return pyplot().subplots(
        1,
        number,
        figsize=(width * number, height),
        sharex=True,
        sharey=True,
        layout="constrained",
        squeeze=False,
    )


def scatter(ax: Any, X: np.ndarray, labels: Any, title: str, marked: np.ndarray | None = None):
    """Draw the cases in two features, coloured by cluster; marked ones with a black rim."""
    colours = np.array(cluster_colours(int(np.max(labels)) + 1))[np.asarray(labels)]
    ax.scatter(X[:, 0], X[:, 1], c=colours, s=10, linewidths=0, alpha=0.8)
    if marked is not None and marked.any():
        ax.scatter(
            X[marked, 0], X[marked, 1], c=colours[marked], s=60, marker="X", edgecolors="black"
        )
    ax.set_title(title, fontsize=10, loc="left")
    ax.spines[["top", "right"]].set_visible(False)
