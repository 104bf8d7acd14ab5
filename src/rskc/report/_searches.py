"""Searches on the page: a plain section for each, and its curve in Vega-Lite.

What a search found, by which rule, and what follows is said by ``rskc.selection.findings``, which
also describes the curve.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rskc.report import _vega as vl
from rskc.report._facts import plain_numbers
from rskc.report._vega import Chart
from rskc.selection.findings import AXES, Curve, describe
from rskc.utils.wording import number, sentence_list


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
    lines, n, nothing = curve.lines, len(curve.x), np.full(len(curve.x), np.nan)
    y = np.array([line.y for line in lines])
    errors = np.array([nothing if line.errors is None else line.errors for line in lines])
    columns = {
        "line": np.repeat(np.arange(len(lines)), n),
        "x": np.tile(curve.x, len(lines)),
        "y": y.ravel(),
        "low": (y - errors).ravel(),
        "high": (y + errors).ravel(),
    }
    points = {name: plain_numbers(values, 5) for name, values in columns.items()}
    points["label"] = [line.label for line in lines for _ in range(n)]
    if curve.above:
        points["above"] = curve.above[1] * len(lines)
    dots = [
        (i, *plain_numbers([x, value]))
        for i, line in enumerate(lines)
        for row in (() if line.dots is None else line.dots)
        for x, value in zip(curve.x, row, strict=True)
        if np.isfinite(value)
    ]
    return {
        "by": curve.by,
        "name": curve.name,
        "lines": [{"label": x.label, "color": x.color, "dash": x.dash} for x in lines],
        "points": points,
        "dots": {name: [dot[i] for dot in dots] for i, name in enumerate(("line", "x", "y"))},
        "chosen": None if curve.chosen is None else np.dot(curve.chosen, [n, 1]).item(),
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
    """Draw lines, the dots and error bars below them, a threshold, and a ring around the choice."""
    points, lines, numbers = curve["points"], curve["lines"], range(len(curve["lines"]))
    palette = vl.color_variables(1 + max(line["color"] for line in lines))
    colors = [palette[line["color"]] for line in lines]
    color = vl.look("line", [*numbers], colors)
    dash = vl.look("line", [*numbers], [vl.DASHES[line["dash"] % len(vl.DASHES)] for line in lines])
    x, title = _axis(curve["by"], points["x"]), {"title": curve["name"], "scale": {"zero": False}}
    place, data = {"x": x, "y": vl.field("y", **title)}, {"curve": points, "dots": curve["dots"]}
    key = [
        vl.entry("dash" if line["dash"] else "line", color, line["label"])
        for line, color in zip(lines, colors, strict=True)
    ]

    layers = []
    # A layer without data has no domain, of which Vega warns.
    if curve["dots"]["x"]:
        dot = vl.mark("point", clip=False, filled=True, size=14, opacity=0.35)
        layers.append(vl.layer("dots", dot, {**place, "color": color}))
    if any(low is not None for low in points["low"]):
        ends = {"x": x, "y": vl.field("low", **title), "y2": {"field": "high"}, "color": color}
        layers.append(
            vl.layer("curve", vl.mark("rule", strokeWidth=1.5), ends, "isValid(datum.low)")
        )
    above = {"above": curve["above"]} if curve["above"] else {}
    known = vl.tips(label="line", x=AXES[curve["by"]], y=curve["name"], **above)
    line = vl.mark("line", point={"filled": True, "size": 45, "opacity": 1})
    looks = {"color": color, "strokeDash": dash, "tooltip": known}
    layers.append(vl.layer("curve", line, place | looks))
    if curve["threshold"]:
        label, height = curve["threshold"]
        layers.append(vl.line_at("y", height, vl.SOFT, strokeDash=vl.DASHES[1]))
        key.append(vl.entry("dash", vl.SOFT, label))
    if curve["chosen"] is not None:
        ring = vl.mark("point", clip=False, filled=False, size=260, opacity=1, tooltip=None)
        # On a lighter ring, so that it shows on any color.
        for stroke, width in ((vl.PAPER, 5), (vl.INK, 2)):
            layers.append(
                vl.layer("chosen", ring | {"stroke": stroke, "strokeWidth": width}, place)
            )
        key.append(vl.entry("ring", vl.INK, "chosen"))
        data["chosen"] = {name: [points[name][curve["chosen"]]] for name in ("x", "y")}
    return {"key": key, "spec": vl.spec(280, layers), "data": data}


def _axis(by: str, x: list[float]) -> Chart:
    """Make the axis of a setting: a tick at each number of clusters, a log scale for bounds."""
    axis: Chart = {"format": "~%", "grid": False, "tickCount": 6}
    scale: Chart = {"nice": False}
    if by == "n_clusters":
        axis = {"values": sorted(set(x)), "format": "d", "grid": False}
        scale["domain"] = [min(x) - 0.3, max(x) + 0.3]
    elif by == "l1_bound":
        axis |= {"format": vl.NUMBER, "labelOverlap": "greedy"}
        scale |= {"type": "log", "padding": 12}
    return vl.field("x", title=AXES[by], axis=axis, scale=scale)
