"""Charts of the model: plain numbers of the summary -> Vega-Lite.

A chart is a dict: ``id``, ``title``, ``alt`` (what it shows, in words), ``caption``, ``notes``,
``key`` (the legend, which the page writes), ``spec`` (Vega-Lite) and ``data`` (columns by name of
the data set; the page makes rows of them). Names given by the user are values of data and never
names of fields. Colors that depend on light and dark are variables of the style sheet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rskc.displays._style import cluster_markers, count
from rskc.report._colors import BLUE, INK, ORANGE, SOFT
from rskc.report._vega import (
    CROSS,
    HINT,
    MOST_TO_REPEAT,
    SHAPES,
    ZOOM,
    by_cluster,
    chart,
    cluster_key,
    field,
    number_format,
    tips,
)
from rskc.report._words import number

RULE_LOOKS = {
    "none": (SOFT, "circle", "kept"),
    "weighted": (ORANGE, "triangle-up", "trimmed: weighted"),
    "unweighted": (BLUE, "square", "trimmed: unweighted"),
    "both": (INK, "diamond", "trimmed: both"),
}
CUT_COLORS = {"weighted": ORANGE, "unweighted": BLUE}


def charts_of(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """The charts of the model, in the order of the page."""
    makers = {
        "clusters": clusters_chart,
        "silhouettes": silhouettes_chart,
        "weights": weights_chart,
        "cells": cells_chart,
        "outliers": outliers_chart,
    }
    figures = summary["figures"]
    return [
        {"id": name, "alt": figures[name]["alt"], "notes": figures[name]["notes"]}
        | make(figures[name], summary)
        for name, make in makers.items()
        if name in figures
    ]


def clusters_chart(figure: dict[str, Any], summary: dict[str, Any]) -> dict[str, Any]:
    K, outlying = summary["result"]["n_clusters"], summary["result"]["n_outliers"]
    key = cluster_key(summary)
    if outlying:
        key.append({"shape": "cross", "color": INK, "label": count(outlying, "outlier")})
    return {
        "title": "The clusters",
        "caption": "Each point is a case; the numbers stand at the centers of the clusters. Cases "
        f"close together are alike in the features that have weight. {HINT}",
        "key": key,
        "spec": chart(
            420, [_cases_layer(figure, K), _crosses_layer(figure, K), *_center_layers(figure)]
        ),
        "data": {"points": figure["points"], "centers": figure["centers"]},
    }


def _cases_layer(figure: dict[str, Any], K: int) -> dict[str, Any]:
    shapes = {"domain": list(range(K)), "range": [SHAPES[marker] for marker in cluster_markers(K)]}
    few = len(figure["points"]["x"]) <= 400
    number = number_format(figure["points"]["distance"])
    return {
        "data": {"name": "points"},
        "params": [ZOOM],
        "transform": [{"filter": "datum.outlier == 0"}],
        "mark": {
            "type": "point",
            "filled": True,
            "clip": True,
            "size": 55 if few else 28,
            "opacity": 0.8,
            "stroke": "var(--edge)",
            "strokeWidth": 0.5,
        },
        "encoding": {
            **_plane(figure),
            "fill": by_cluster(K),
            "shape": field("cluster", "nominal", scale=shapes, legend=None),
            "tooltip": tips(number, case="case", cluster="cluster", distance="weighted distance"),
        },
    }


def _plane(figure: dict[str, Any]) -> dict[str, Any]:
    return {
        axis: field(axis, "quantitative", title, scale={"domain": domain, "nice": False})
        for axis, title, domain in zip("xy", figure["axes"], figure["domain"], strict=True)
    }


def _crosses_layer(figure: dict[str, Any], K: int) -> dict[str, Any]:
    few = len(figure["points"]["x"]) <= 400
    number = number_format(figure["points"]["distance"])
    return {
        "data": {"name": "points"},
        "transform": [{"filter": "datum.outlier == 1"}],
        "mark": {"type": "point", "shape": CROSS, "size": 50 if few else 24, "clip": True}
        | {"strokeWidth": 2 if few else 1.3, "opacity": 1},
        "encoding": {
            **_plane(figure),
            "stroke": by_cluster(K),
            "tooltip": tips(
                number, case="case", cluster="cluster", distance="distance of this outlier"
            ),
        },
    }


def _center_layers(figure: dict[str, Any]) -> list[dict[str, Any]]:
    where = _plane(figure)
    disc = {
        "type": "point",
        "filled": True,
        "size": 330,
        "fill": "var(--paper)",
        "stroke": INK,
        "strokeWidth": 1.2,
        "opacity": 0.92,
        "clip": True,
        "tooltip": None,
    }
    text = {"type": "text", "fontSize": 12, "fontWeight": "bold", "fill": INK, "clip": True}
    return [
        {"data": {"name": "centers"}, "mark": disc, "encoding": where},
        {
            "data": {"name": "centers"},
            "mark": text,
            "encoding": {**where, "text": field("cluster", "nominal")},
        },
    ]


def silhouettes_chart(figure: dict[str, Any], summary: dict[str, Any]) -> dict[str, Any]:
    outlying = sum(figure["bars"]["outlier"])
    key = cluster_key(summary, MOST_TO_REPEAT)
    key += [{"shape": "square", "color": INK, "label": "outliers"}] if outlying else []
    key += [{"shape": "line", "color": INK, "label": "mean of the cluster"}]
    return {
        "title": "How clearly each case belongs",
        "caption": "One bar a case: 1 if it lies on the center of its cluster, 0 if it is as near "
        "to the next one. Clusters whose bars are long are clear; cases with short bars could "
        "as well belong to the neighbor.",
        "key": key,
        "spec": chart(260, _silhouette_layers(figure, summary["result"]["n_clusters"])),
        "data": {"bars": figure["bars"], "means": figure["means"]},
    }


def _silhouette_layers(figure: dict[str, Any], K: int) -> list[dict[str, Any]]:
    scale = {"domain": [0, figure["width"]], "nice": False}
    values = field("value", "quantitative", "silhouette", scale={"domain": [0, 1]})
    bars = {
        "data": {"name": "bars"},
        "transform": [{"calculate": "datum.place + 1", "as": "end"}],
        "mark": {"type": "rect", "strokeWidth": 0},
        "encoding": {
            "x": field("place", "quantitative", "cases, by cluster", scale=scale, axis=_bare()),
            "x2": {"field": "end"},
            "y": values,
            "y2": {"datum": 0},
            "fill": {"condition": {"test": "datum.outlier == 1", "value": INK}, **by_cluster(K)},
            "tooltip": tips(
                case="case", cluster="cluster", second="next cluster", value="silhouette"
            ),
        },
    }
    means = {
        "data": {"name": "means"},
        "mark": {"type": "rule", "stroke": INK, "strokeDash": [4, 3], "strokeWidth": 1.3},
        "encoding": {
            "x": field("start", "quantitative", "cases, by cluster"),
            "x2": {"field": "end"},
            "y": field("mean", "quantitative", "silhouette"),
            "tooltip": tips(cluster="cluster", mean="mean silhouette"),
        },
    }
    return [bars, means]


def _bare() -> dict[str, Any]:
    return {"labels": False, "ticks": False, "grid": False, "domain": False}


def weights_chart(figure: dict[str, Any], summary: dict[str, Any]) -> dict[str, Any]:
    names = figure["bars"]["feature"]
    axis = _named_axis("features", limit=170)
    layer = {
        "data": {"name": "bars"},
        "mark": {"type": "bar", "fill": BLUE, "tooltip": True},
        "encoding": {
            "x": field("weight", "quantitative", "weight", axis={"tickCount": 6}),
            "y": field("rank", "ordinal", sort=None, axis=axis),
            "tooltip": tips(feature="feature", weight="weight"),
        },
    }
    height = 30 + 18 * max(len(names), 1)
    return {
        "title": "The features that matter",
        "caption": "The larger the weight of a feature, the more it counts when cases are "
        "compared; one without weight does not count at all.",
        "key": [],
        "spec": chart(height, [layer], params=[{"name": "features", "value": names}]),
        "data": {"bars": figure["bars"]},
    }


def _named_axis(names: str, limit: int, **more: Any) -> dict[str, Any]:
    """An axis of numbers that stand for names, so that two alike do not become one."""
    expression = f"{names}[datum.value]"
    return {"labelExpr": expression, "labelLimit": limit, "ticks": False, "grid": False, **more}


def cells_chart(figure: dict[str, Any], summary: dict[str, Any]) -> dict[str, Any]:
    n_rows, K = len(figure["rows"]["row"]), summary["result"]["n_clusters"]
    layers = [_cells_layer(figure, n_rows), _strip_layer(K), _marks_layer()]
    key = cluster_key(summary, MOST_TO_REPEAT)
    key += [{"shape": "triangle-left", "color": INK, "label": "outlier"}] * any(
        figure["rows"]["outlier"]
    )
    key += [{"shape": "square", "color": SOFT, "label": "missing"}] * figure["missing"]
    height = min(max(12 * n_rows, 160), 620)
    names = {"name": "features", "value": figure["features"]}
    cases = {"name": "cases", "value": figure["rows"]["case"]}
    return {
        "title": "Cases and features side by side",
        "caption": "Each row is a case, each column a feature, the largest weight on the left. Red "
        "is above the mean of the feature, blue below; where clusters differ, so do their blocks "
        "of color. The strip on the left shows the clusters.",
        "key": key,
        "spec": chart(
            height,
            layers,
            params=[names, cases],
            resolve={"scale": {"fill": "independent"}},
            padding={"left": 22, "right": 16, "top": 5, "bottom": 5},
        ),
        "data": {"cells": figure["cells"], "rows": figure["rows"]},
    }


def _cells_layer(figure: dict[str, Any], n_rows: int) -> dict[str, Any]:
    limit = figure["limit"]
    scale = {"scheme": "redblue", "reverse": True, "domain": [-limit, limit], "clamp": True}
    legend = {
        "title": "standardized value",
        "orient": "top",
        "gradientLength": 160,
        "gradientThickness": 10,
    }
    columns = _named_axis("features", 140, labelAngle=-90, labelOverlap=True, orient="bottom")
    return {
        "data": {"name": "cells"},
        "transform": [
            {"calculate": "features[datum.column]", "as": "feature"},
            {"calculate": "cases[datum.row]", "as": "case"},
            {"calculate": "isValid(datum.value) ? datum.value : 'missing'", "as": "told"},
        ],
        "mark": {"type": "rect", "strokeWidth": 0, "invalid": None},
        "encoding": {
            "x": field("column", "ordinal", axis=columns, scale={"padding": 0}),
            "y": field("row", "ordinal", axis=None, scale={"padding": 0}),
            "fill": {
                "condition": {"test": "!isValid(datum.value)", "value": SOFT},
                **field("value", "quantitative", scale=scale, legend=legend),
            },
            "tooltip": tips(case="case", feature="feature", told="standardized"),
        },
    }


def _strip_layer(K: int) -> dict[str, Any]:
    return {
        "data": {"name": "rows"},
        "mark": {"type": "rect", "strokeWidth": 0, "clip": False},
        "encoding": {
            "x": {"value": -14},
            "x2": {"value": -4},
            "y": field("row", "ordinal"),
            "fill": by_cluster(K),
            "tooltip": tips(case="case", cluster="cluster"),
        },
    }


def _marks_layer() -> dict[str, Any]:
    mark = {"type": "point", "filled": True, "shape": "triangle-left", "size": 36, "fill": INK}
    return {
        "data": {"name": "rows"},
        "transform": [{"filter": "datum.outlier == 1"}],
        "mark": {**mark, "opacity": 1, "xOffset": 8, "clip": False},
        "encoding": {
            "x": {"value": "width"},
            "y": field("row", "ordinal"),
            "tooltip": tips(case="case", cluster="cluster of this outlier"),
        },
    }


def outliers_chart(figure: dict[str, Any], summary: dict[str, Any]) -> dict[str, Any]:
    layers = [_line_layer("x", figure["threshold"], INK, [])]
    key = [
        {"shape": shape, "color": color, "label": f"{label} ({figure['counts'][rule]:,})"}
        for rule, (color, shape, label) in RULE_LOOKS.items()
        if figure["counts"][rule]
    ]
    told = number(figure["threshold"])
    key.append({"shape": "line", "color": INK, "label": f"outlier threshold {told}"})
    for rule, axis in (("weighted", "x"), ("unweighted", "y")):
        if (cut := figure["cuts"][rule]) is not None:
            layers += [_cut_layer(axis, CUT_COLORS[rule], *cut)]
            key.append({"shape": "dash", "color": CUT_COLORS[rule], "label": _cut_told(rule, *cut)})
    return {
        "title": "The outliers",
        "caption": "Each point is a case: to the right if it is far from its center in the "
        "features that have weight, upwards if it is far in all features together. Cases to the "
        f"right of the solid line are called outliers. {HINT}",
        "key": key,
        "spec": chart(420, [_distances_layer(figure), *layers]),
        "data": {"points": figure["points"]},
    }


def _cut_told(rule: str, low: float, high: float) -> str:
    ends = number(low) if high <= low * (1 + 1e-6) else f"{number(low)} to {number(high)}"
    return f"{rule} cut-off {ends}"


def _distances_layer(figure: dict[str, Any]) -> dict[str, Any]:
    few = len(figure["points"]["x"]) <= 400
    colors, shapes, _ = zip(*RULE_LOOKS.values(), strict=True)
    return {
        "data": {"name": "points"},
        "params": [ZOOM],
        "mark": {"type": "point", "filled": True, "clip": True, "opacity": 0.85}
        | {"size": 55 if few else 28, "stroke": "var(--edge)", "strokeWidth": 0.5},
        "encoding": {
            **_distance_axes(figure),
            "fill": _by_rule(colors),
            "shape": _by_rule(shapes),
            "tooltip": tips(
                number_format(figure["points"]["x"]),
                case="case",
                cluster="cluster",
                x="weighted distance",
                y="unweighted distance",
                rule="trimmed by",
            ),
        },
    }


def _distance_axes(figure: dict[str, Any]) -> dict[str, Any]:
    titles = ("weighted squared distance to the center", "unweighted squared distance")
    ends = {"x": figure["threshold"], "y": 0.0}
    return {
        axis: field(
            axis,
            "quantitative",
            title + ", log scale" * log,
            scale=_scale(log, max([*figure["points"][axis], ends[axis]])),
            axis=_ticks(log, number_format(figure["points"][axis])),
        )
        for axis, title, log in zip("xy", titles, figure["log"], strict=True)
    }


def _by_rule(looks: Iterable[str]) -> dict[str, Any]:
    scale = {"domain": list(RULE_LOOKS), "range": list(looks)}
    return field("rule", "nominal", scale=scale, legend=None)


def _scale(log: bool, largest: float) -> dict[str, Any]:
    """Room beyond the largest distance; from 0 on if the scale is linear."""
    if log:
        return {"type": "log", "nice": False, "padding": 12}
    return {"domain": [0, 1.04 * largest or 1], "nice": False}


def _ticks(log: bool, number: str) -> dict[str, Any]:
    return {"tickCount": 6, "format": number} | ({"labelOverlap": "greedy"} if log else {})


def _line_layer(axis: str, value: float, color: str, dash: list[int]) -> dict[str, Any]:
    return {
        "data": {"values": [{}]},
        "mark": {
            "type": "rule",
            "stroke": color,
            "strokeDash": dash,
            "strokeWidth": 1.4,
            "clip": True,
        },
        "encoding": {axis: {"datum": value, "type": "quantitative"}},
    }


def _cut_layer(axis: str, color: str, low: float, high: float) -> dict[str, Any]:
    """A dashed line, or a band where trimmed and kept cases lie mixed."""
    if high <= low * (1 + 1e-6):
        return _line_layer(axis, low, color, [5, 4])
    return {
        "data": {"values": [{}]},
        "mark": {"type": "rect", "fill": color, "stroke": color, "clip": True, "tooltip": None}
        | {"opacity": 1, "fillOpacity": 0.2, "strokeOpacity": 0.6},
        "encoding": {axis: {"datum": low, "type": "quantitative"}, f"{axis}2": {"datum": high}},
    }
