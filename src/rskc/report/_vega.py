"""Pieces of Vega-Lite that the charts share: channels, tooltips, layers, the key to clusters."""

from __future__ import annotations

from typing import Any

from rskc.displays._style import cluster_markers
from rskc.report._colors import cluster_colors

CROSS = "M-1,-1L1,1M1,-1L-1,1"
SHAPES = {"o": "circle", "s": "square", "D": "diamond", "v": "triangle-down", "^": "triangle-up"}
MOST_IN_KEY, MOST_TO_REPEAT = 40, 12  # clusters in the first key, and in those of later charts
NAMES = ("case", "feature", "rule", "told")
NUMBER = ",.4~r"  # four digits, no exponent
# Zoomed with Ctrl and the wheel (or two fingers): the wheel alone scrolls the page.
ZOOM = {
    "name": "zoom",
    "select": {"type": "interval", "zoom": "wheel![event.ctrlKey || event.metaKey]"},
    "bind": "scales",
}
HINT = (
    "Drag to move, Ctrl and wheel to zoom, double-click to go back; point at a case for its name."
)


def field(name: str, kind: str, title: str | None = None, **more: Any) -> dict[str, Any]:
    """A channel of an encoding; layers that share an axis must give it the same title."""
    return {"field": name, "type": kind, "title": title, **more}


def number_format(values: list[float]) -> str:
    """Digits, or powers of ten where these would be many: distances of data in millionths."""
    largest = max(map(abs, values), default=1.0)
    return NUMBER if 1e-3 <= largest < 1e9 or largest == 0 else ".3~e"


def tips(number: str = NUMBER, /, **titles: str) -> list[dict[str, Any]]:
    """What is shown when a mark is pointed at; names are of cases and features."""
    return [
        {"field": key, "title": title}
        | ({"type": "nominal"} if key in NAMES else {"type": "quantitative", "format": number})
        for key, title in titles.items()
    ]


def chart(height: int, layers: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A chart as wide as the page, of layers."""
    size = {"width": "container", "height": height, "autosize": {"type": "fit-x"}}
    return {**size, "layer": layers, **more}


def by_cluster(K: int) -> dict[str, Any]:
    """Color by cluster; the page writes the legend."""
    scale = {"domain": list(range(K)), "range": cluster_colors(K)}
    return field("cluster", "nominal", scale=scale, legend=None)


def cluster_key(summary: dict[str, Any], most: int = MOST_IN_KEY) -> list[dict[str, str]]:
    """Entries of the legend for clusters, if there are not too many."""
    K = summary["result"]["n_clusters"]
    if most < K:
        return []
    looks = zip(cluster_colors(K), cluster_markers(K), summary["clusters"], strict=True)
    return [
        {"shape": SHAPES[marker], "color": color, "label": f"cluster {k} (n = {c['size']:,})"}
        for k, (color, marker, c) in enumerate(looks)
    ]
