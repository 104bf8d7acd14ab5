"""Pieces of Vega-Lite that charts are made of, their colors, and the entries of their keys.

Names given by the user are values of data and never names of fields. Colors are variables of the
style sheet, so that light, dark and print each have their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rskc.pictures.palette import DARK_PALETTE, MARKERS, PALETTE, cluster_markers

Chart = dict[str, Any]

INK, SOFT, PAPER, EDGE = "var(--ink)", "var(--soft)", "var(--paper)", "var(--edge)"
BLUE, ORANGE = "var(--c0)", "var(--c5)"
RED, DEEP_BLUE = "#b2182b", "#2166ac"  # of the scheme redblue
SHAPES = dict(
    zip(MARKERS, ("circle", "square", "diamond", "triangle-down", "triangle-up"), strict=True)
)
MOST_IN_KEY, MOST_TO_REPEAT = 40, 12  # clusters in the first key, and in those of later charts
FEW_POINTS = 400  # up to this many points are drawn larger
NAMES = ("case", "feature", "flag", "cell", "cluster", "label", "above")
NUMBER = ",.4~r"  # four digits, no exponent
# Zoomed with Ctrl and the wheel (or two fingers): the wheel alone scrolls the page.
ZOOM = {
    "name": "zoom",
    "select": {"type": "interval", "zoom": "wheel![event.ctrlKey || event.metaKey]"},
    "bind": "scales",
}
NONE: Mapping[str, Any] = MappingProxyType({})
DASHES = [[1, 0], [5, 4], [2, 3], [8, 3, 2, 3]]


def palette_style() -> str:
    """Return the palette for light and print, and a lighter one for the dark, as style sheet."""
    first, second = (
        "".join(f"--c{k}:{color};" for k, color in enumerate(colors))
        for colors in (PALETTE, DARK_PALETTE)
    )
    return f":root{{{first}}}@media screen and (prefers-color-scheme:dark){{:root{{{second}}}}}\n"


def color_variables(K: int) -> list[str]:
    """Return colors of K clusters, those of the displays; beyond 20 they repeat."""
    return [f"var(--c{k % len(PALETTE)})" for k in range(K)]


# Channels, marks, layers and charts


def field(name: str, kind: str = "quantitative", title: str | None = None, **more: Any) -> Chart:
    """Make a channel of an encoding; layers that share an axis must give it the same title."""
    return {"field": name, "type": kind, "title": title, **more}


def look(name: str, values: Any, styles: Any) -> Chart:
    """Make a channel that gives each value of a field a style; the page writes the legend."""
    scale = {"domain": list(values), "range": list(styles)}
    return field(name, "nominal", scale=scale, legend=None)


def by_cluster(K: int, shapes: bool = False) -> Chart:
    """Color by cluster, or give each its shape."""
    styles = [SHAPES[marker] for marker in cluster_markers(K)] if shapes else color_variables(K)
    return look("cluster", list(range(K)), styles)


def mark(kind: str, **style: Any) -> Chart:
    """Make a mark; points that are too far out are cut at the frame."""
    clip = {"clip": True} if kind in ("point", "text") else {}
    return {"type": kind, **clip, **style}


def layer(data: str, mark: Chart, encoding: Chart, where: str = "", params: Any = ()) -> Chart:
    """Make a layer of marks, one for each row of a data set that passes a test."""
    made: Chart = {"data": {"name": data}, "mark": mark, "encoding": encoding}
    made |= {"transform": [{"filter": where}]} if where else {}
    return made | ({"params": params} if params else {})


def line_at(axis: str, place: float, color: str, **style: Any) -> Chart:
    """Make a layer of one line across the chart."""
    rule = mark("rule", stroke=color, strokeWidth=1.4, clip=True, **style)
    encoding = {axis: {"datum": place, "type": "quantitative"}}
    return {"data": {"values": [{}]}, "mark": rule, "encoding": encoding}


def strip(data: str, K: int, **channels: Any) -> Chart:
    """Make a layer of clusters in their colors, on the left of a table in colors."""
    place = {"x": {"value": -14}, "x2": {"value": -4}, "fill": by_cluster(K)}
    return layer(data, mark("rect", strokeWidth=0, clip=False), place | channels)


def spec(height: int, layers: list[Chart], lists: Mapping[str, Any] = NONE, **more: Any) -> Chart:
    """Make a drawing of layers, as wide as the page; expressions may use the lists by name."""
    size = {"width": "container", "height": height, "autosize": {"type": "fit-x"}}
    params = [{"name": name, "value": value} for name, value in lists.items()]
    return {**size, "layer": layers, **({"params": params} if params else {}), **more}


def number_format(values: list[float]) -> str:
    """Choose digits, or powers of ten where these would be many: distances in millionths."""
    largest = max(map(abs, values), default=1.0)
    return NUMBER if 1e-3 <= largest < 1e9 or largest == 0 else ".3~e"


def tips(number: str = NUMBER, /, **titles: str) -> list[Chart]:
    """Make what is shown when a mark is pointed at; names are of cases and features."""
    # The page adds to each row with a cluster what this is called.
    return [
        {"field": "called" if key == "cluster" else key, "title": title}
        | ({"type": "nominal"} if key in NAMES else {"type": "quantitative", "format": number})
        for key, title in titles.items()
    ]


# Keys


def entry(shape: str, color: str, label: str) -> Chart:
    """Make an entry of the key."""
    return {"shape": shape, "color": color, "label": label}


def cluster_key(sizes: Any, most: int = MOST_IN_KEY) -> list[Chart]:
    """Make the entries of the key for clusters, if there are not too many."""
    K = len(sizes)
    looks = zip(color_variables(K), cluster_markers(K), sizes, strict=True)
    return [
        entry(SHAPES[marker], color, f"(n = {size:,})") | {"cluster": k}
        for k, (color, marker, size) in enumerate(looks)
        if most >= K
    ]
