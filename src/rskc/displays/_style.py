"""What the displays share in looks: axes, colors and markers, names, room for text.

Everything that is given as a name by the user goes through ``plain`` before it is drawn, and
through ``for_legend`` if it enters a legend. matplotlib is imported inside functions only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression

# The first seven are those of Okabe and Ito. The others were picked one by one, each as far as
# can be from those before, among colors neither pale, dark nor shrill. Any two of the twenty are
# at least 17 apart in CIELAB, to normal eyes and to those without red or green cones: no less than
# the closest two of the first seven.
PALETTE = [
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442"),
    *("#872D2D", "#A5E196", "#783C5A", "#4B69E1", "#87E1C3", "#2D3CA5", "#692D78"),
    *("#F04B69", "#E1D269", "#7896FF", "#A5A54B", "#69E1F0", "#A51E00"),
]
# One for every seven clusters: beyond seven, color alone is hard to read.
MARKERS = "osDv^"
GRAY = "#8C8C8C"
INK = "#303030"

MANY_CASES = 20_000  # beyond this, points are small and rasterised
NAME_WIDTH = 22  # characters of a name that are shown


def pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'Drawing needs matplotlib, which is not installed: pip install "rskc[plot]".'
        ) from error
    return plt


def axes_for(ax: Any, width: float, height: float) -> Any:
    """Return ``ax``, or the axes of a new figure (sizes in inches) if it is None."""
    if ax is not None:
        return ax
    return pyplot().subplots(figsize=(width, height), layout="constrained")[1]


def tidy(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)


def headline(ax: Any, title: str, *notes: str) -> None:
    """Write the title, and below it what else must be said."""
    ax.set_title("\n".join([title, *filter(None, notes)]), fontsize=10, loc="left")


# Colors and markers of clusters


def cluster_colors(K: int) -> list[str]:
    """Colors of K clusters; beyond 20 they repeat, with other markers."""
    return [PALETTE[k % len(PALETTE)] for k in range(K)]


def cluster_markers(K: int) -> list[str]:
    """Markers of K clusters: the pair of color and marker is unique up to K = 100."""
    colors = len(PALETTE)
    return [MARKERS[(k % colors // 7 + k // colors) % len(MARKERS)] for k in range(K)]


def darker(color: str, share: float = 0.5) -> str:
    """Mix a color with black."""
    parts = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(part * (1 - share)):02X}" for part in parts)


# Names


def plain(name: Any, width: int = NAME_WIDTH) -> str:
    """Return a name as matplotlib will show it to the letter, and not longer than ``width``.

    The middle is left out, as long names tend to differ at one of their ends. A dollar sign is
    escaped, the only character that starts mathematics.
    """
    text = " ".join(str(name).split())
    if len(text) > width:
        tail = (width - 1) // 2
        text = text[: width - 1 - tail] + "…" + text[len(text) - tail :]
    return text.replace("$", r"\$")


def plain_names(names: Iterable[Any], width: int = NAME_WIDTH) -> list[str]:
    return [plain(name, width) for name in names]


def for_legend(text: str) -> str:
    """Return a text that a legend shows: matplotlib leaves out what starts with an underscore."""
    return f" {text}" if text.startswith("_") else text


def count(n: Any, noun: str) -> str:
    """1 case, 2 cases, 1,797 cases."""
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


# Room for text


def settle(ax: Any) -> None:
    """Let the layout of the figure take effect now, so that sizes can be measured."""
    from matplotlib.figure import Figure

    if isinstance(ax.figure, Figure) and (engine := ax.figure.get_layout_engine()) is not None:
        engine.execute(ax.figure)


def size_in_points(ax: Any) -> np.ndarray:
    """Width and height of the axes, in points of 1/72 inch."""
    settle(ax)
    return np.array(ax.get_window_extent().size) * 72 / ax.figure.dpi


def thinned(n: int, room: float) -> np.ndarray:
    """Choose, of n places in a row, every so many that no more than ``room`` are left."""
    return np.arange(0, n, max(1, int(np.ceil(n / max(room, 1)))))


def spread_out(positions: Sequence[float] | np.ndarray, gap: float) -> np.ndarray:
    """Move ascending positions as little as can be (in squares) until they are ``gap`` apart."""
    slots = gap * np.arange(len(positions))
    return isotonic_regression(np.asarray(positions, float) - slots) + slots


def backing(**shape: Any) -> dict[str, Any]:
    """A white box behind text that stands on colors, for ``bbox``."""
    return {
        "boxstyle": "round,pad=0.2",
        "facecolor": "white",
        "alpha": 0.85,
        "linewidth": 0,
    } | shape


def halo(width: float = 2.0) -> list:
    """A white rim that makes text readable on any color."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=width, foreground="white")]


# Names beside points

# Where a name may stand: so many points away from its case, in these directions.
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
    size = 7.0
    frame = np.array([[0.0, 0.0], size_in_points(ax)])
    crowd, spots = _in_points(ax, crowd), _in_points(ax, points)
    boxes, texts = np.empty((0, 2, 2)), []
    for point, spot, name in zip(points, spots, names, strict=True):
        half = np.array([0.31 * size * len(name.replace("\\", "")) + 1, 0.7 * size])
        offset = _best_offset(spot, half, boxes, crowd, frame)
        boxes = np.append(boxes, [[spot + offset - half, spot + offset + half]], axis=0)
        texts.append(_annotate(ax, name, point, offset, size))
    return texts


def _in_points(ax: Any, data: np.ndarray) -> np.ndarray:
    """Bring positions in the data to points of 1/72 inch from the lower left of the axes."""
    pixels = ax.transData.transform(data) - ax.get_window_extent().min
    return pixels * 72 / ax.figure.dpi


def _best_offset(spot, half, boxes, crowd, frame) -> np.ndarray:
    offsets = np.array([_offset(angle, radius, half) for radius in _RADII for angle in _ANGLES])
    away = np.repeat(_RADII, len(_ANGLES))
    costs = [_cost(spot + offset, half, boxes, crowd, frame) for offset in offsets]
    return offsets[np.argmin(np.array(costs) + away)]


def _offset(angle: float, radius: float, half: np.ndarray) -> np.ndarray:
    """From a point to the middle of a text whose rim is ``radius`` away in this direction."""
    direction = np.array([np.cos(angle), np.sin(angle)])
    return direction * radius + np.sign(direction.round(6)) * half * [1, 0.5]


def _cost(middle, half, boxes, crowd, frame) -> float:
    """Area of other names covered, cases covered, and what sticks out of the frame."""
    low, high = middle - half, middle + half
    shared = np.clip(np.minimum(high, boxes[:, 1]) - np.maximum(low, boxes[:, 0]), 0, None)
    covered = np.all((crowd > low - 2) & (crowd < high + 2), axis=1).sum()
    outside = np.clip(frame[0] - low, 0, None).sum() + np.clip(high - frame[1], 0, None).sum()
    return 10 * shared.prod(axis=1).sum() + 8 * min(covered, 10) + 100 * outside


def _annotate(ax, name, point, offset, size):
    line = {"arrowstyle": "-", "linewidth": 0.5, "color": GRAY, "shrinkA": 0, "shrinkB": 2}
    where = {"xytext": offset, "textcoords": "offset points", "ha": "center", "va": "center"}
    return ax.annotate(
        name, point, fontsize=size, color=INK, arrowprops=line, path_effects=halo(), **where
    )
