"""What the displays of searches share: what they ask of a search, and their axes of K and bounds.

A search is known by its table and not by its class: the displays do not import ``rskc.selection``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rskc.displays._style import GRAY, INK, PALETTE, size_in_points

CHOSEN = PALETTE[5]
_TICK_POINTS = 7.0

# Ticks of a log scale, by how many times the least the largest bound is.
_STEPS = {
    2.5: (1, 1.2, 1.4, 1.6, 1.8, 2, 2.2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9),
    12.0: (1, 1.5, 2, 3, 4, 5, 7),
    np.inf: (1, 2, 5),
}


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


def chosen_rows(table: Any) -> np.ndarray:
    return table["chosen"].to_numpy(dtype=bool)


# Axes


def places_of(ax: Any, numbers: Sequence[int] | np.ndarray, bold: Any = None) -> np.ndarray:
    """Give each number of clusters a place on the x axis, side by side even if numbers lack."""
    places = np.arange(len(numbers))
    labels = ax.set_xticks(places, [str(K) for K in numbers])
    for tick, K in zip(labels, numbers, strict=True):
        tick.label1.set_fontweight("bold" if bold == K else "normal")
    ax.set(xlim=(-0.6, len(numbers) - 0.4), xlabel="number of clusters")
    return places


def scale_of_bounds(ax: Any, bounds: np.ndarray) -> None:
    """Make the x axis a log scale with ticks that are read easily."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = float(np.min(bounds)), float(np.max(bounds))
    room = max(high / low, 1.05) ** 0.04
    ax.set(xscale="log", xlim=(low / room, high * room), xlabel="L1 bound, log scale")
    ax.xaxis.set_major_locator(FixedLocator(round_bounds(low / room, high * room)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_locator(NullLocator())


def round_bounds(low: float, high: float) -> list[float]:
    """Round numbers between two bounds."""
    steps = next(steps for ratio, steps in _STEPS.items() if high / low <= ratio)
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    ticks = np.outer(decades, steps).ravel()
    return ticks[(ticks >= low) & (ticks <= high)].round(6).tolist()


def axis_of_features(ax: Any, bounds: np.ndarray, counts: np.ndarray, first: Any = ()) -> Any:
    """Write above the axes how many features have weight, at the bounds where there is room.

    ``first`` are places of bounds that come before the others.
    """
    axis = ax.secondary_xaxis("top")
    axis.set_xscale("log")
    axis.spines[:].set_visible(False)
    axis.set_xlabel("features with weight", fontsize=8)
    write_counts(axis, ax, bounds, counts, first)
    return axis


def write_counts(axis: Any, ax: Any, bounds: np.ndarray, counts: Any, first: Any = ()) -> None:
    labels = [f"{int(n):,}" for n in counts]
    width = _TICK_POINTS * (0.65 * max(map(len, labels)) + 0.7)
    low, high = np.log(ax.get_xlim())
    points = (np.log(bounds) - low) / (high - low) * size_in_points(ax)[0]
    shown = keep_apart(points, width, first)
    axis.set_xticks(np.asarray(bounds)[shown], [labels[i] for i in shown], fontsize=_TICK_POINTS)
    axis.set_xticks([], minor=True)
    axis.tick_params(length=2, color=GRAY)


def keep_apart(positions: np.ndarray, gap: float, first: Any = ()) -> list[int]:
    """Keep positions that are ``gap`` from all kept before: those of ``first``, then in order."""
    kept: list[int] = []
    for i in [*first, *range(len(positions))]:
        if all(abs(positions[i] - positions[j]) >= gap for j in kept):
            kept.append(int(i))
    return sorted(kept)


# Looks


def legend_beside(ax: Any, **style: Any) -> Any:
    style = {"fontsize": 8, "title_fontsize": 9, "frameon": False, "alignment": "left"} | style
    return ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), **style)


def chosen_look(size: float = 12.0) -> dict[str, Any]:
    """A ring around the point that was chosen."""
    return {"marker": "o", "ms": size, "mfc": "none", "mec": CHOSEN, "mew": 2.0, "ls": "none"}


def curve_look(color: str = PALETTE[0]) -> dict[str, Any]:
    """Points with error bars, joined by a line."""
    return {
        "color": color,
        "marker": "o",
        "ms": 4.5,
        "lw": 1.2,
        "capsize": 2.5,
        "elinewidth": 0.9,
        "zorder": 2.5,
    }


def probability(p: float) -> str:
    """.048, 0 or 1."""
    return f"{p:.2g}".lstrip("0") or "0"


def share(value: float) -> str:
    """2%, or 2.5%."""
    return f"{100 * value:.3g}%"


DASHED = {"color": INK, "lw": 0.8, "ls": (0, (4, 3)), "zorder": 1.5}
