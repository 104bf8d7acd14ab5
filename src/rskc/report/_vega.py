"""The Vega-Lite specifications of charts, their colors, and the entries of their keys.

The specifications are in ``templates/charts.json``, where ``"$name"`` stands for a value. Names
given by the user are values of data and never names of fields. Colors are variables of the style
sheet, so that light, dark and print each have their own.
"""

from __future__ import annotations

import json
from typing import Any

from rskc.pictures.palette import DARK_PALETTE, MARKERS, PALETTE, cluster_markers
from rskc.report._facts import TEMPLATES

Chart = dict[str, Any]

INK, SOFT, BLUE, ORANGE = "var(--ink)", "var(--soft)", "var(--c0)", "var(--c5)"
RED, DEEP_BLUE = "#b2182b", "#2166ac"  # of the scheme redblue
SHAPES = dict(
    zip(MARKERS, ("circle", "square", "diamond", "triangle-down", "triangle-up"), strict=True)
)
MOST_IN_KEY, MOST_TO_REPEAT = 40, 12  # clusters in the first key, and in those of later charts
NUMBER = ",.4~r"  # four digits, no exponent
WORDS = ("title", "caption", "hint")  # of the file, beside the specification
SPECS: Chart = json.loads((TEMPLATES / "charts.json").read_text("utf-8"))
SIZE: Chart = {"width": "container", "autosize": {"type": "fit-x"}}


def spec(name: str, values: Chart) -> Chart:
    """Return one of the specifications with its values, as wide as the page.

    A layer with an ``if`` is left out where that value is None.
    """
    values = SPECS["shared"] | values

    def filled(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: filled(value) for key, value in part.items() if key != "if"}
        if isinstance(part, list):
            return [filled(each) for each in part if not _is_left_out(each, values)]
        return values[part[1:]] if isinstance(part, str) and part.startswith("$") else part

    look = {key: value for key, value in SPECS[name].items() if key not in WORDS}
    return SIZE | filled(look)


def _is_left_out(part: Any, values: Chart) -> bool:
    return isinstance(part, dict) and "if" in part and values[part["if"]] is None


def chart(
    name: str, *, alt: str, data: Chart, key: Any = (), notes: Any = (), **values: Any
) -> Chart:
    """Make a chart of its words, its data and the values of its specification."""
    words = {part: text.format_map(values) for part, text in SPECS[name].items() if part in WORDS}
    drawn = {"key": list(key), "spec": spec(name, values), "data": data}
    return {"id": name, "alt": alt, "notes": list(notes), **words, **drawn}


def number_format(values: list[float]) -> str:
    """Choose digits, or powers of ten where these would be many: distances in millionths."""
    largest = max(map(abs, values), default=1.0)
    return NUMBER if 1e-3 <= largest < 1e9 or largest == 0 else ".3~e"


# Colors and keys


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


def look(name: str, values: Any, styles: Any) -> Chart:
    """Give each value of a field a style; the page writes the legend."""
    scale = {"domain": list(values), "range": list(styles)}
    return {"field": name, "type": "nominal", "title": None, "scale": scale, "legend": None}


def by_cluster(K: int) -> Chart:
    """Color by cluster."""
    return look("cluster", range(K), color_variables(K))


def entry(shape: str, color: str, label: str) -> Chart:
    """Make an entry of the key."""
    return {"shape": shape, "color": color, "label": label}


def cluster_key(sizes: Any, most: int = MOST_TO_REPEAT) -> list[Chart]:
    """Make the entries of the key for clusters, if there are not too many."""
    K = len(sizes)
    looks = zip(color_variables(K), cluster_markers(K), sizes, strict=True)
    return [
        entry(SHAPES[marker], color, f"(n = {size:,})") | {"cluster": k}
        for k, (color, marker, size) in enumerate(looks)
        if most >= K
    ]
