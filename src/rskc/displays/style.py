"""What the displays share: axes, names, room for text, and the looks of searches (internal).

Everything that is given as a name by the user goes through ``plain`` before it is drawn, and
through ``for_legend`` if it enters a legend. matplotlib is imported inside functions only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from rskc.pictures.palette import GRAY, INK, cluster_colors
from rskc.utils.wording import cleaned, count

DASHED = {"color": INK, "lw": 0.8, "ls": (0, (4, 3)), "zorder": 1.5}
MANY_CASES = 20_000  # beyond this, points are small and rasterized
_CASE_POINTS, _CLUSTER_POINTS = 6.5, 10.0  # heights of a line of text
NAME_WIDTH = 22  # characters of a name that are shown


def pyplot() -> Any:
    """Return matplotlib.pyplot, or say how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'Drawing needs matplotlib, which is not installed: pip install "rskc[plot]".'
        ) from error
    return plt


def open_axes(ax: Any, width: float, height: float) -> tuple[Any, Any]:
    """Return ``ax``, or the axes of a new figure (sizes in inches), and their figure."""
    if ax is None:
        ax = pyplot().subplots(figsize=(width, height), layout="constrained")[1]
    tidy(ax)
    return ax, ax.figure


def tidy(ax: Any) -> None:
    """Remove the spines that say nothing."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)


def not_shown(n: int) -> str:
    """Say how many cases have nothing that could be drawn."""
    return f"not shown: {count(n, 'case')} without an observed feature" if n else ""


def headline(ax: Any, title: str, *notes: str) -> None:
    """Write the title, and below it what else must be said."""
    ax.set_title("\n".join([title, *filter(None, notes)]), fontsize=10, loc="left")


def legend_beside(ax: Any, **style: Any) -> Any:
    """Write the legend to the right of the axes."""
    style = {"fontsize": 8, "title_fontsize": 9, "frameon": False, "alignment": "left"} | style
    return ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), **style)


# Names


def plain(name: Any, width: int = NAME_WIDTH) -> str:
    """Return a name as matplotlib will show it to the letter, and not longer than ``width``.

    A dollar sign is escaped, the only character that starts mathematics.
    """
    return cleaned(name, width).replace("$", r"\$")


def plain_names(names: Iterable[Any], width: int = NAME_WIDTH) -> list[str]:
    """Return names as matplotlib will show them."""
    return [plain(name, width) for name in names]


def for_legend(text: str) -> str:
    """Return a text that a legend shows: matplotlib leaves out what starts with an underscore."""
    return f" {text}" if text.startswith("_") else text


# Room for text


def size_in_points(ax: Any) -> np.ndarray:
    """Return width and height of the axes, in points of 1/72 inch."""
    from matplotlib.figure import Figure

    # The layout of the figure must take effect before sizes can be measured.
    if isinstance(ax.figure, Figure) and (engine := ax.figure.get_layout_engine()) is not None:
        engine.execute(ax.figure)
    return np.array(ax.get_window_extent().size) * 72 / ax.figure.dpi


def thinned(n: int, room: float) -> np.ndarray:
    """Choose evenly spaced ones of n places in a row, no more than ``room``."""
    return np.arange(0, n, max(1, int(np.ceil(n / max(room, 1)))))


def spread_out(positions: Sequence[float] | np.ndarray, gap: float) -> np.ndarray:
    """Move ascending positions as little as possible (in squares) until they are ``gap`` apart."""
    slots = gap * np.arange(len(positions))
    return isotonic_regression(np.asarray(positions, float) - slots) + slots


def backing(**shape: Any) -> dict[str, Any]:
    """Return a white box behind text that stands on colors, for ``bbox``."""
    look = {"boxstyle": "round,pad=0.2", "facecolor": "white", "alpha": 0.85, "linewidth": 0}
    return look | shape


# Tables in colors, a row for each case, sorted by cluster


def color_bar(ax: Any, image: Any, label: str, **how: Any) -> Any:
    """Draw what the colors of an image mean, to the right of the axes."""
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.5, aspect=25, pad=0.02, **how)
    bar.set_label(label, size=8)
    bar.ax.tick_params(labelsize=8)
    return bar


def cluster_strip(ax: Any, labels: np.ndarray, width: float) -> Any:
    """Draw the clusters of the rows in their colors, on the left."""
    sizes = np.bincount(labels)
    colors = cluster_colors(len(sizes))
    starts = np.cumsum(sizes) - sizes
    return ax.barh(starts, width, sizes, -1.5 * width, align="edge", color=colors)


def name_clusters(ax: Any, labels: np.ndarray, names: Sequence[str]) -> None:
    """Write the names of the clusters on the left, below one another."""
    sizes = np.bincount(labels)
    used = np.flatnonzero(sizes)
    line = _CLUSTER_POINTS * len(labels) / size_in_points(ax)[1]
    middles = spread_out((np.cumsum(sizes) - sizes / 2)[used], line)
    ax.set_yticks(middles, np.asarray(names)[used], fontsize=8)
    ax.tick_params(axis="y", length=0)
    ax.set_ylabel("cluster")


def name_cases(ax: Any, names: Any, order: np.ndarray) -> Any:
    """Write the names of the cases on the right, where there is room; None for their numbers."""
    shown = thinned(len(order), size_in_points(ax)[1] / _CASE_POINTS)
    named = order if names is None else np.asarray(names, object)[order]
    axis = ax.secondary_yaxis("right")
    axis.set_yticks(shown + 0.5, plain_names(named[shown]), fontsize=5.5)
    axis.tick_params(length=2)
    axis.spines[:].set_visible(False)
    return axis


# Names beside points

# Where a name may stand: this many points away from its case, in these directions.
_RADII = (9.0, 16.0, 26.0, 40.0)
_ANGLES = np.radians([20, -20, 160, -160, 90, -90, 50, -50, 130, -130])


def name_points(ax: Any, points: np.ndarray, names: Sequence[str], crowd: np.ndarray) -> list:
    """Write names beside points, where they cover least of one another and of the crowd.

    Parameters
    ----------
    ax : Axes
        Its limits and scales must be final.
    points : ndarray of shape (m, 2)
        In the units of the data.
    names : sequence of str
    crowd : ndarray of shape (n, 2)
        What should stay visible.

    Returns
    -------
    texts : list of Annotation
    """
    from matplotlib.patheffects import withStroke

    size, halo = 7.0, [withStroke(linewidth=2.0, foreground="white")]
    join = {"arrowstyle": "-", "linewidth": 0.5, "color": GRAY, "shrinkA": 0, "shrinkB": 2}
    where = {"textcoords": "offset points", "ha": "center", "va": "center", "arrowprops": join}
    frame = np.array([[0.0, 0.0], size_in_points(ax)])
    crowd, spots = _in_points(ax, crowd), _in_points(ax, points)
    boxes, texts = np.empty((0, 2, 2)), []
    for point, spot, name in zip(points, spots, names, strict=True):
        half = np.array([0.31 * size * len(name.replace("\\", "")) + 1, 0.7 * size])
        offset = _best_offset(spot, half, boxes, crowd, frame)
        boxes = np.append(boxes, [[spot + offset - half, spot + offset + half]], axis=0)
        texts.append(
            ax.annotate(name, point, offset, fontsize=size, color=INK, path_effects=halo, **where)
        )
    return texts


def _in_points(ax: Any, data: np.ndarray) -> np.ndarray:
    """Convert positions in the data to points of 1/72 inch from the lower left of the axes."""
    pixels = ax.transData.transform(data) - ax.get_window_extent().min
    return pixels * 72 / ax.figure.dpi


def _best_offset(spot: Any, half: Any, boxes: Any, crowd: Any, frame: Any) -> np.ndarray:
    """From a point to the middle of its text, whose edge is one of the radii away."""
    directions = np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES)])
    edges = np.sign(directions.round(6)) * half * [1, 0.5]
    offsets = np.concatenate([radius * directions + edges for radius in _RADII])
    away = np.repeat(_RADII, len(_ANGLES))
    costs = [_cost(spot + offset, half, boxes, crowd, frame) for offset in offsets]
    return offsets[np.argmin(np.array(costs) + away)]


def _cost(middle: Any, half: Any, boxes: Any, crowd: Any, frame: Any) -> float:
    """Area of other names covered, cases covered, and what sticks out of the frame."""
    low, high = middle - half, middle + half
    shared = np.clip(np.minimum(high, boxes[:, 1]) - np.maximum(low, boxes[:, 0]), 0, None)
    covered = np.all((crowd > low - 2) & (crowd < high + 2), axis=1).sum()
    outside = np.clip(frame[0] - low, 0, None).sum() + np.clip(high - frame[1], 0, None).sum()
    return 10 * shared.prod(axis=1).sum() + 8 * min(covered, 10) + 100 * outside


# Searches


def check_search(search: Any, display: str, kinds: str, *columns: str) -> Any:
    """Return the table of a fitted search that has these columns.

    A search that was not fitted raises NotFittedError, and anything else TypeError.
    """
    table = getattr(search, "table_", None)
    if table is not None and set(columns) <= set(table):
        return table
    if table is None and hasattr(search, "estimator"):
        check_is_fitted(search)
    raise TypeError(f"{display} draws a fitted {kinds}, and not a {type(search).__name__}.")


def keep_apart(positions: np.ndarray, gap: float, first: Any = ()) -> list[int]:
    """Keep positions that are ``gap`` from all kept before: those of ``first``, then in order."""
    kept: list[int] = []
    for i in [*first, *range(len(positions))]:
        if all(abs(positions[i] - positions[j]) >= gap for j in kept):
            kept.append(int(i))
    return sorted(kept)
