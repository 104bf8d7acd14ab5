"""Searches on the page: a plain section for each, and its curve in Vega-Lite.

What a search found, by which rule, and what follows is said by ``rskc.selection.findings``, which
also describes the curve.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rskc.report._charts import (
    INK,
    NUMBER,
    PAPER,
    SOFT,
    Chart,
    amount,
    chart,
    color_variables,
    constant,
    entry,
    field,
    layer,
    tips,
    where,
)
from rskc.report._facts import plain_numbers
from rskc.selection.findings import AXES, Curve, describe
from rskc.utils.wording import number, sentence_list

DASHES = [[1, 0], [5, 4], [2, 3], [8, 3, 2, 3]]


def sections_of(searches: Any) -> list[dict[str, Any]]:
    """Make a section for each search, in the order given."""
    return [_section(one) for one in (searches if isinstance(searches, Iterable) else [searches])]


def _section(search: Any) -> dict[str, Any]:
    finding = describe(search)
    curve = finding.curve
    ends = [number(end) for end in curve.x[[0, -1]]] if len(curve.x) else []
    return {
        "name": type(search).__name__,
        "title": finding.title,
        "found": finding.headline,
        "explain": finding.explanation,
        "notes": finding.changes,
        "suggests": finding.suggests,
        "table": finding.table._asdict(),
        "n_slices": getattr(search, "n_slices_", None),  # of a gradient
        "alt": f"{curve.name.capitalize()} by {AXES[curve.by]}, {' to '.join(ends)}: "
        f"{sentence_list([line.label for line in curve.lines], 6)}. Chosen: {finding.result}.",
        "curve": _plain(curve),
    }


def _plain(curve: Curve) -> dict[str, Any]:
    """Return a curve as words and plain numbers: columns of its points, and of single dots."""
    points: dict[str, list] = {name: [] for name in ("line", "label", "x", "y", "low", "high")}
    dots: dict[str, list] = {name: [] for name in ("line", "x", "y")}
    for i, line in enumerate(curve.lines):
        low, high = (
            (np.nan, np.nan) if line.errors is None else line.y + np.outer([-1, 1], line.errors)
        )
        for values, name in (
            (i, "line"),
            (curve.x, "x"),
            (line.y, "y"),
            (low, "low"),
            (high, "high"),
        ):
            points[name] += plain_numbers(np.broadcast_to(values, len(curve.x)), 5)
        points["label"] += [line.label] * len(curve.x)
        if line.dots is not None:
            made = ~np.isnan(line.dots)
            for values, name in ((i, "line"), (curve.x, "x"), (line.dots, "y")):
                dots[name] += plain_numbers(np.broadcast_to(values, made.shape)[made])
    if curve.above:
        points["above"] = curve.above[1] * len(curve.lines)
    return {
        "by": curve.by,
        "name": curve.name,
        "lines": [{"label": x.label, "color": x.color, "dash": x.dash} for x in curve.lines],
        "points": points,
        "dots": dots,
        "chosen": None if curve.chosen is None else np.dot(curve.chosen, [len(curve.x), 1]).item(),
        "threshold": list(curve.threshold) if curve.threshold else None,
        "above": curve.above and curve.above[0],
    }


def curves_of(summary: Chart) -> list[Chart]:
    """Make a chart for each search that tried something; its id is ``search-0`` and so on."""
    return [
        {
            "id": f"search-{i}",
            "place": i,
            "title": section["title"],
            "alt": section["alt"],
            "caption": section["explain"],
            "notes": section["notes"],
            **_drawn(section["curve"]),
        }
        for i, section in enumerate(summary["searches"])
        if section["table"]["rows"]
    ]


def _drawn(curve: Chart) -> Chart:
    """Make the chart of a curve."""
    points, colors = curve["points"], _colors(curve)
    key = [
        entry("dash" if line["dash"] else "line", color, line["label"])
        for line, color in zip(curve["lines"], colors, strict=True)
    ]
    data = {"curve": points, "dots": curve["dots"]}
    if curve["threshold"]:
        key.append(entry("dash", SOFT, curve["threshold"][0]))
    if curve["chosen"] is not None:
        key.append(entry("ring", INK, "chosen"))
        data["chosen"] = {name: [points[name][curve["chosen"]]] for name in ("x", "y")}
    return {"key": key, "spec": chart(280, [*_lines(curve), *_marks(curve)]), "data": data}


def _colors(curve: Chart) -> list[str]:
    numbers = [line["color"] for line in curve["lines"]]
    colors = color_variables(1 + max(numbers))
    return [colors[number] for number in numbers]


def _place(curve: Chart, y: str = "y") -> Chart:
    x = _axis(curve["by"], curve["points"]["x"])
    return {"x": x, "y": amount(y, curve["name"], scale={"zero": False})}


def _lines(curve: Chart) -> list[Chart]:
    """Draw dots and error bars, where there are any, and the lines upon them."""
    dashes = [DASHES[line["dash"] % len(DASHES)] for line in curve["lines"]]
    color, dash = (
        field(
            "line", "nominal", legend=None, scale={"domain": [*range(len(looks))], "range": looks}
        )
        for looks in (_colors(curve), dashes)
    )
    above = {"above": curve["above"]} if curve["above"] else {}
    tooltip = tips(label="line", x=AXES[curve["by"]], y=curve["name"], **above)
    line = {"type": "line", "point": {"filled": True, "size": 45, "opacity": 1}}
    looks = {"color": color, "strokeDash": dash, "tooltip": tooltip}
    layers = [layer("curve", line, _place(curve) | looks)]
    # A layer without data has no domain, of which Vega warns.
    if any(low is not None for low in curve["points"]["low"]):
        ends = {**_place(curve, "low"), "y2": {"field": "high"}, "color": color}
        bar = {"type": "rule", "strokeWidth": 1.5}
        layers.insert(0, layer("curve", bar, ends, transform=where("isValid(datum.low)")))
    if curve["dots"]["x"]:
        dot = {"type": "point", "filled": True, "size": 14, "opacity": 0.35}
        layers.insert(0, layer("dots", dot, {**_place(curve), "color": color}))
    return layers


def _marks(curve: Chart) -> list[Chart]:
    """Draw the threshold, and a ring around what was chosen."""
    layers = []
    if curve["threshold"]:
        rule = {"type": "rule", "stroke": SOFT, "strokeDash": DASHES[1], "strokeWidth": 1.4}
        height = {"datum": curve["threshold"][1], "type": "quantitative"}
        layers.append(constant(rule, {"y": height}))
    if curve["chosen"] is not None:
        ring = {"type": "point", "filled": False, "size": 260, "opacity": 1, "tooltip": None}
        # On a lighter ring, so that it shows on any color.
        layers += [
            layer("chosen", ring | {"stroke": stroke, "strokeWidth": width}, _place(curve))
            for stroke, width in ((PAPER, 5), (INK, 2))
        ]
    return layers


def _axis(by: str, x: list[float]) -> Chart:
    """Make the axis of a setting: a tick at each number of clusters, a log scale for bounds."""
    if by == "n_clusters":
        axis: Chart = {"values": sorted(set(x)), "format": "d", "grid": False}
        scale: Chart = {"domain": [min(x) - 0.3, max(x) + 0.3], "nice": False}
    elif by == "l1_bound":
        axis = {"tickCount": 6, "format": NUMBER, "labelOverlap": "greedy", "grid": False}
        scale = {"type": "log", "nice": False, "padding": 12}
    else:
        axis, scale = {"format": "~%", "grid": False, "tickCount": 6}, {"nice": False}
    return amount("x", AXES[by], axis=axis, scale=scale)
