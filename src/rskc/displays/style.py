"""What the displays share: axes, names, room for text, and tables in colors (internal).

Everything that is given as a name by the user goes through ``plain_names`` before it is drawn.
matplotlib is imported inside functions only.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from rskc.model.fitted import unequal_weights
from rskc.pictures.palette import GRAY, INK, cluster_colors
from rskc.selection.stability import Stability
from rskc.utils.wording import cleaned, count

DASHED = {"color": INK, "lw": 0.8, "ls": (0, (4, 3)), "zorder": 1.5}
MANY_CASES = 20_000  # beyond this, points are small and rasterized
_CASE_POINTS, _CLUSTER_POINTS = 6.5, 10.0  # heights of a line of text
NAME_WIDTH = 22  # characters of a name that are shown


def open_axes(ax: Any, width: float, height: float) -> tuple[Any, Any]:
    """Return ``ax``, or the axes of a new figure (sizes in inches), and their figure.

    Spines that say nothing are removed.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'Drawing needs matplotlib, which is not installed: pip install "rskc[plot]".'
        ) from error
    if ax is None:
        ax = plt.subplots(figsize=(width, height), layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)
    return ax, ax.figure


def weights_of_fit(model: Any, labels: np.ndarray) -> np.ndarray | None:
    """Return the case weights, if the cases are those of a weighted fit: by their labels."""
    weights = unequal_weights(model)
    return weights if weights is not None and np.array_equal(labels, model.labels_) else None


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


def plain_names(names: Iterable[Any], width: int = NAME_WIDTH) -> list[str]:
    """Return names as matplotlib will show them to the letter, and not longer than ``width``.

    A dollar sign is escaped, the only character that starts mathematics.
    """
    return [cleaned(name, width).replace("$", r"\$") for name in names]


def names_at(names: Any, places: np.ndarray) -> list[str]:
    """Return the names at some places, as they are shown; the places, where there are no names."""
    return plain_names(places if names is None else np.asarray(names, object)[places])


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


def draw_table(ax: Any, cells: Any, labels: np.ndarray, bar: dict, **look: Any) -> Any:
    """Draw a table in colors, what they mean, and a strip of clusters on the left.

    ``labels`` may have more cases than the table has rows, of which these are evenly spaced.
    """
    n, width = len(labels), np.shape(cells)[1]
    how = {"aspect": "auto", "interpolation": "nearest", "extent": (0, width, n, 0)}
    image = ax.imshow(cells, **how, **look)
    colorbar = ax.figure.colorbar(image, ax=ax, shrink=0.5, aspect=25, pad=0.02, **bar)
    colorbar.ax.yaxis.label.set_size(8)
    colorbar.ax.tick_params(labelsize=8)
    sizes, strip = np.bincount(labels), 0.025 * width
    starts, colors = np.cumsum(sizes) - sizes, cluster_colors(len(sizes))
    bars = ax.barh(starts, strip, sizes, -1.5 * strip, align="edge", color=colors)
    ax.set(xlim=(-1.5 * strip, width), ylim=(n, 0))
    ax.spines[:].set_visible(False)
    return image, colorbar, bars


def name_rows(ax: Any, labels: Any, words: Sequence[str], names: Any, order: np.ndarray) -> Any:
    """Name clusters on the left, below one another, and on the right cases where there is room.

    ``names`` may be None, for the numbers of the cases.
    """
    height, sizes = size_in_points(ax)[1], np.bincount(labels)
    used = np.flatnonzero(sizes)
    line = _CLUSTER_POINTS * len(labels) / height
    middles = spread_out((np.cumsum(sizes) - sizes / 2)[used], line)
    ax.set_yticks(middles, np.asarray(words)[used], fontsize=8)
    ax.tick_params(axis="y", length=0)
    ax.set_ylabel("cluster")
    shown = thinned(len(order), height / _CASE_POINTS)
    axis = ax.secondary_yaxis("right")
    axis.set_yticks(shown + 0.5, names_at(names, order[shown]), fontsize=5.5)
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
    frame, corner, unit = size_in_points(ax), ax.get_window_extent().min, 72 / ax.figure.dpi
    crowd, spots = ((ax.transData.transform(data) - corner) * unit for data in (crowd, points))
    directions = np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES)])
    boxes, texts = np.empty((0, 2, 2)), []
    for point, spot, name in zip(points, spots, names, strict=True):
        half = np.array([0.31 * size * len(name.replace("\\", "")) + 1, 0.7 * size])
        edges = np.sign(directions.round(6)) * half * [1, 0.5]
        offsets = np.concatenate([radius * directions + edges for radius in _RADII])
        low, high = spot + offsets - half, spot + offsets + half
        shared = np.minimum(high[:, None], boxes[:, 1]) - np.maximum(low[:, None], boxes[:, 0])
        covered = ((crowd > low[:, None] - 2) & (crowd < high[:, None] + 2)).all(axis=2).sum(axis=1)
        outside = np.clip(-low, 0, None).sum(axis=1) + np.clip(high - frame, 0, None).sum(axis=1)
        costs = np.repeat(_RADII, len(_ANGLES)) + 8 * np.minimum(covered, 10) + 100 * outside
        costs += 10 * np.clip(shared, 0, None).prod(axis=2).sum(axis=1)
        best = costs.argmin()
        boxes = np.append(boxes, [[low[best], high[best]]], axis=0)
        look = {"fontsize": size, "color": INK, "path_effects": halo}
        texts.append(ax.annotate(name, point, offsets[best], **look, **where))
    return texts


# Searches


def check_stability(search: Any, display: str) -> None:
    """Refuse what is no fitted Stability search."""
    if not isinstance(search, Stability):
        kind = type(search).__name__
        raise TypeError(f"{display} draws a fitted Stability, and not a {kind}.")
    check_is_fitted(search, "table_")


def keep_apart(positions: np.ndarray, gap: float, first: Any = ()) -> list[int]:
    """Keep positions that are ``gap`` from all kept before: those of ``first``, then in order."""
    kept: list[int] = []
    for i in [*first, *range(len(positions))]:
        if all(abs(positions[i] - positions[j]) >= gap for j in kept):
            kept.append(int(i))
    return sorted(kept)
