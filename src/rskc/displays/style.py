"""What the displays share: axes, names, and room for text (internal).

Everything that is given as a name by the user goes through ``names_at`` before it is drawn.
matplotlib is imported inside functions only.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from rskc.model.fitted import unequal_weights
from rskc.pictures.palette import GRAY, INK
from rskc.utils.wording import cleaned, count

DASHED = {"color": INK, "lw": 0.8, "ls": (0, (4, 3)), "zorder": 1.5}
MANY_CASES = 20_000  # beyond this, points are small and rasterized
NAME_WIDTH = 22  # characters of a name that are shown
NAME_SIZE = 7.0  # of names beside points
# Behind text that stands on colors, for ``bbox``.
BACKING = {"boxstyle": "round,pad=0.2", "facecolor": "white", "alpha": 0.85, "linewidth": 0}


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


def headline(ax: Any, title: str, *notes: str, n_hidden: int = 0) -> None:
    """Write the title, and below it what else must be said, and how many cases are not drawn."""
    hidden = f"not shown: {count(n_hidden, 'case')} without an observed feature"
    lines = [title, *notes, hidden if n_hidden else ""]
    ax.set_title("\n".join(filter(None, lines)), fontsize=10, loc="left")


def legend_beside(ax: Any, **style: Any) -> Any:
    """Write the legend to the right of the axes, with points of one size."""
    look = {"fontsize": 8, "title_fontsize": 9, "frameon": False, "alignment": "left"}
    legend = ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), **look, **style)
    for handle in legend.legend_handles:
        if hasattr(handle, "set_sizes"):
            handle.set_sizes([25])
    return legend


def names_at(names: Any, places: Any, width: int = NAME_WIDTH) -> list[str]:
    """Return the names at some places as matplotlib will show them to the letter.

    They are the places where there are no names, and not longer than ``width``. A dollar sign is
    escaped, the only character that starts mathematics.
    """
    chosen = places if names is None else np.asarray(names, object)[places]
    return [cleaned(name, width).replace("$", r"\$") for name in chosen]


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


def spread_out(
    positions: Sequence[float] | np.ndarray, gap: float, most: float | None = None
) -> np.ndarray:
    """Move ascending positions as little as possible (in squares) until they are ``gap`` apart.

    None is above ``most``.
    """
    slots = gap * np.arange(len(positions))
    last = None if most is None else most - gap * (len(slots) - 1)
    return isotonic_regression(np.asarray(positions, float) - slots, y_max=last) + slots


def name_points(ax: Any, points: np.ndarray, names: Sequence[str]) -> list:
    """Write names beside points (m, 2), none over another, on the side that has more room.

    Limits and scales of the axes must be final.
    """
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.0, foreground="white")]
    join = {"arrowstyle": "-", "linewidth": 0.5, "color": GRAY, "shrinkA": 0, "shrinkB": 2}
    look = {"fontsize": NAME_SIZE, "color": INK, "path_effects": halo, "arrowprops": join}
    gap, texts = 1.5 * NAME_SIZE / size_in_points(ax)[1], []
    spots = ax.transAxes.inverted().transform(ax.transData.transform(points))
    order = np.argsort(spots[:, 1], kind="stable")
    for i, height in zip(order, spread_out(spots[order, 1], gap, 1.0), strict=True):
        side, step = ("left", 0.03) if spots[i, 0] < 0.5 else ("right", -0.03)
        place = {"xytext": (spots[i, 0] + step, height), "textcoords": "axes fraction"}
        texts.append(ax.annotate(names[i], points[i], ha=side, va="center", **place, **look))
    return texts
