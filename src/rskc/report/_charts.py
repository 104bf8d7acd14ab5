"""Charts of the model: plain numbers of the summary -> Vega-Lite.

A chart is a dict: ``id``, ``title``, ``alt`` (what it shows, in words), ``caption``, ``notes``,
``key`` (the legend, which the page writes), ``spec`` (Vega-Lite) and ``data`` (columns by name of
the data set; the page makes rows of them). Names given by the user are values of data and never
names of fields. Colors are variables of the style sheet, so that light, dark and print each have
their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rskc.pictures.models import cube_ticks
from rskc.pictures.palette import PALETTE, cluster_markers, readable_on
from rskc.utils.wording import count, number

Chart = dict[str, Any]

INK, SOFT, PAPER, EDGE = "var(--ink)", "var(--soft)", "var(--paper)", "var(--edge)"
BLUE, ORANGE = "var(--c0)", "var(--c5)"
DARK_PAPER = "#14171B"
CROSS = "M-1,-1L1,1M1,-1L-1,1"
SHAPES = {"o": "circle", "s": "square", "D": "diamond", "v": "triangle-down", "^": "triangle-up"}
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
HINT = (
    "Drag to move, Ctrl and wheel to zoom, double-click to go back; point at a case for its name."
)
BARE: Chart = {"labels": False, "ticks": False, "grid": False, "domain": False}
BESIDE_STRIP = BARE | {"titlePadding": 20}
WHOLE = {"tickMinStep": 1, "format": "d", "grid": False}
FAR = 10  # scales from which on the color of an outlying cell is at its strongest
RED, DEEP_BLUE = "#b2182b", "#2166ac"  # of the scheme redblue
SOLID = "datum.trimmed == 0"  # hollow: trimmed, and no outlier
FLAG_LOOKS = {
    "none": (SOFT, "circle", "no outlier"),
    "weighted": (ORANGE, "triangle-up", "outlier: weighted"),
    "unweighted": (BLUE, "square", "outlier: unweighted"),
    "both": (INK, "diamond", "outlier: both"),
}


def palette_style() -> str:
    """Return the palette for light and print, and a lighter one for the dark, as style sheet."""
    dark = [readable_on(DARK_PAPER, color) for color in PALETTE]
    first, second = (
        "".join(f"--c{k}:{color};" for k, color in enumerate(colors)) for colors in (PALETTE, dark)
    )
    return f":root{{{first}}}@media screen and (prefers-color-scheme:dark){{:root{{{second}}}}}\n"


def color_variables(K: int) -> list[str]:
    """Return colors of K clusters, those of the displays; beyond 20 they repeat."""
    return [f"var(--c{k % len(PALETTE)})" for k in range(K)]


# Pieces of Vega-Lite


def field(name: str, kind: str, title: str | None = None, **more: Any) -> Chart:
    """Make a channel of an encoding; layers that share an axis must give it the same title."""
    return {"field": name, "type": kind, "title": title, **more}


def amount(name: str, title: str | None = None, **more: Any) -> Chart:
    """Make a channel of numbers."""
    return field(name, "quantitative", title, **more)


def layer(data: str, mark: Chart, encoding: Chart, **more: Any) -> Chart:
    """Make a layer of marks, one for each row of a data set."""
    return {"data": {"name": data}, **more, "mark": mark, "encoding": encoding}


def constant(mark: Chart, encoding: Chart) -> Chart:
    """Make a layer of one mark that depends on no data."""
    return {"data": {"values": [{}]}, "mark": mark, "encoding": encoding}


def chart(height: int, layers: list[Chart], **more: Any) -> Chart:
    """Make a chart as wide as the page, of layers."""
    size = {"width": "container", "height": height, "autosize": {"type": "fit-x"}}
    return {**size, "layer": layers, **more}


def where(test: str) -> list[Chart]:
    """Make a transform that keeps the rows that pass a test."""
    return [{"filter": test}]


def entry(shape: str, color: str, label: str) -> Chart:
    """Make an entry of the key."""
    return {"shape": shape, "color": color, "label": label}


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


def by_cluster(K: int) -> Chart:
    """Color by cluster; the page writes the legend."""
    scale = {"domain": list(range(K)), "range": color_variables(K)}
    return field("cluster", "nominal", scale=scale, legend=None)


def cluster_key(summary: Chart, most: int = MOST_IN_KEY) -> list[Chart]:
    """Make the entries of the key for clusters, if there are not too many."""
    K = summary["result"]["n_clusters"]
    if most < K:
        return []
    looks = zip(color_variables(K), cluster_markers(K), summary["clusters"], strict=True)
    return [
        entry(SHAPES[marker], color, f"(n = {c['size']:,})") | {"cluster": k}
        for k, (color, marker, c) in enumerate(looks)
    ]


# The charts


def charts_of(summary: Chart) -> list[Chart]:
    """Make the charts of the model, in the order of the page."""
    makers = {
        "clusters": clusters_chart,
        "silhouettes": silhouettes_chart,
        "weights": weights_chart,
        "cells": cells_chart,
        "outliers": outliers_chart,
        "outlying": outlying_cells_chart,
    }
    figures = summary["figures"]
    return [
        {"id": name, "alt": figures[name]["alt"], "notes": figures[name]["notes"]}
        | make(figures[name], summary)
        for name, make in makers.items()
        if name in figures
    ]


def clusters_chart(figure: Chart, summary: Chart) -> Chart:
    """Draw the cases as points, outliers as crosses, and the numbers of the clusters."""
    K, outlying = summary["result"]["n_clusters"], summary["result"]["n_outliers"]
    key, beyond = cluster_key(summary), ""
    if outlying:
        key.append(entry("cross", INK, count(outlying, "outlier")))
    if n_nearer := sum(figure["points"]["nearer"]):
        looks = "it looks" if n_nearer == 1 else "they look"
        key.append(entry("ring", SOFT, f"farther than {looks} ({n_nearer:,})"))
        beyond = ", as far as two dimensions can show it: what rings mark is farther off in others"
    return {
        "title": "The clusters",
        "caption": "Each point is a case; the numbers stand at the centers of the clusters. Cases "
        f"close together are alike in the features that have weight{beyond}. {HINT}",
        "key": key,
        "spec": chart(420, _clusters_layers(figure, K)),
        "data": {"points": figure["points"], "centers": figure["centers"]},
    }


def _clusters_layers(figure: Chart, K: int) -> list[Chart]:
    few = len(figure["points"]["x"]) <= FEW_POINTS
    place = {
        axis: amount(axis, title, scale={"domain": domain, "nice": False})
        for axis, title, domain in zip("xy", figure["axes"], figure["domain"], strict=True)
    }
    shapes = {"domain": list(range(K)), "range": [SHAPES[marker] for marker in cluster_markers(K)]}
    digits = number_format(figure["points"]["distance"])
    point = {"type": "point", "filled": True, "clip": True, "size": 55 if few else 28}
    point |= {"opacity": 0.8, "stroke": EDGE, "strokeWidth": 0.5}
    cross: Chart = {"type": "point", "shape": CROSS, "size": 50 if few else 24, "clip": True}
    cross |= {"strokeWidth": 2 if few else 1.3, "opacity": 1}
    ring = {"type": "point", "shape": "circle", "filled": False, "size": 170 if few else 90}
    ring |= {"stroke": SOFT, "strokeWidth": 1.4, "opacity": 1, "clip": True, "tooltip": None}
    disc = {"type": "point", "filled": True, "size": 330, "fill": PAPER, "stroke": INK}
    disc |= {"strokeWidth": 1.2, "opacity": 0.92, "clip": True, "tooltip": None}
    text = {"type": "text", "fontSize": 12, "fontWeight": "bold", "fill": INK, "clip": True}
    cases = {
        **place,
        "fill": by_cluster(K),
        "shape": field("cluster", "nominal", scale=shapes, legend=None),
        "tooltip": tips(digits, case="case", cluster="cluster", distance="weighted distance"),
    }
    outlier_tips = tips(digits, case="case", cluster="cluster", distance="distance of this outlier")
    crosses = {**place, "stroke": by_cluster(K), "tooltip": outlier_tips}
    return [
        layer("points", ring, place, transform=where("datum.nearer == 1")),  # below the points
        layer("points", point, cases, params=[ZOOM], transform=where("datum.outlier == 0")),
        layer("points", cross, crosses, transform=where("datum.outlier == 1")),
        layer("centers", disc, place),
        layer("centers", text, {**place, "text": field("cluster", "nominal")}),
    ]


def silhouettes_chart(figure: Chart, summary: Chart) -> Chart:
    """Draw a bar for each case, and the mean of each cluster."""
    K = summary["result"]["n_clusters"]
    key = cluster_key(summary, MOST_TO_REPEAT)
    key += [entry("square", INK, "outliers")] if any(figure["bars"]["outlier"]) else []
    key += [entry("line", INK, "mean of the cluster, without outliers")]
    scale = {"domain": [0, figure["width"]], "nice": False}
    bars = {
        "x": amount("place", "cases, by cluster", scale=scale, axis=BARE),
        "x2": {"field": "end"},
        "y": amount("value", "silhouette", scale={"domain": [0, 1]}),
        "y2": {"datum": 0},
        "fill": {"condition": {"test": "datum.outlier == 1", "value": INK}, **by_cluster(K)},
        "tooltip": tips(case="case", cluster="cluster", second="next cluster", value="silhouette"),
    }
    means = {
        "x": amount("start", "cases, by cluster"),
        "x2": {"field": "end"},
        "y": amount("mean", "silhouette"),
        "tooltip": tips(cluster="cluster", mean="mean silhouette"),
    }
    ends = [{"calculate": "datum.place + 1", "as": "end"}]
    rule = {"type": "rule", "stroke": INK, "strokeDash": [4, 3], "strokeWidth": 1.3}
    layers = [
        layer("bars", {"type": "rect", "strokeWidth": 0}, bars, transform=ends),
        layer("means", rule, means),
    ]
    return {
        "title": "How clearly each case belongs",
        "caption": "One bar per case: 1 if it lies on the center of its cluster, 0 if it is as "
        "near to the next one. Clusters whose bars are long are clear; cases with short bars "
        "could as well belong to the neighbor.",
        "key": key,
        "spec": chart(260, layers),
        "data": {"bars": figure["bars"], "means": figure["means"]},
    }


def weights_chart(figure: Chart, summary: Chart) -> Chart:
    """Draw a bar for each of the largest weights."""
    names = figure["bars"]["feature"]
    bars = {
        "x": amount("weight", "weight", axis={"tickCount": 6}),
        "y": field("rank", "ordinal", sort=None, axis=_named_axis("features", limit=170)),
        "tooltip": tips(feature="feature", weight="weight"),
    }
    layers = [layer("bars", {"type": "bar", "fill": BLUE, "tooltip": True}, bars)]
    height = 30 + 18 * max(len(names), 1)
    return {
        "title": "The features with the largest weights",
        "caption": "The larger the weight of a feature, the more it counts when cases are "
        "compared; one without weight does not count at all.",
        "key": [],
        "spec": chart(height, layers, params=[{"name": "features", "value": names}]),
        "data": {"bars": figure["bars"]},
    }


def _named_axis(names: str, limit: int, **more: Any) -> Chart:
    """Make an axis of numbers that stand for names, so that two alike do not become one."""
    expression = f"{names}[datum.value]"
    return {"labelExpr": expression, "labelLimit": limit, "ticks": False, "grid": False, **more}


def cells_chart(figure: Chart, summary: Chart) -> Chart:
    """Draw the cells as colors, with a strip of clusters and marks of outliers."""
    n_rows, K = len(figure["rows"]["row"]), summary["result"]["n_clusters"]
    key = cluster_key(summary, MOST_TO_REPEAT)
    key += [entry("triangle-left", INK, "outlier")] if any(figure["rows"]["outlier"]) else []
    key += [entry("square", SOFT, "missing")] if figure["missing"] else []
    strip = {
        "x": {"value": -14},
        "x2": {"value": -4},
        "y": field("row", "ordinal"),
        "fill": by_cluster(K),
        "tooltip": tips(case="case", cluster="cluster"),
    }
    marks = {
        "x": {"value": "width"},
        "y": field("row", "ordinal"),
        "tooltip": tips(case="case", cluster="cluster of this outlier"),
    }
    mark = {"type": "point", "filled": True, "shape": "triangle-left", "size": 36, "fill": INK}
    mark |= {"opacity": 1, "xOffset": 8, "clip": False}
    layers = [
        _cells_layer(figure["limit"]),
        layer("rows", {"type": "rect", "strokeWidth": 0, "clip": False}, strip),
        layer("rows", mark, marks, transform=where("datum.outlier == 1")),
    ]
    names = {"features": figure["features"], "cases": figure["rows"]["case"]}
    return {
        "title": "Cases and features side by side",
        "caption": "Each row is a case, each column a feature, the largest weight on the left. Red "
        "is above the mean of the feature, blue below; where clusters differ, so do their blocks "
        "of color. The strip on the left shows the clusters.",
        "key": key,
        "spec": chart(
            min(max(12 * n_rows, 160), 620),
            layers,
            params=[{"name": name, "value": values} for name, values in names.items()],
            resolve={"scale": {"fill": "independent"}},
            padding={"left": 22, "right": 16, "top": 5, "bottom": 5},
        ),
        "data": {"cells": figure["cells"], "rows": figure["rows"]},
    }


def _cells_layer(limit: float) -> Chart:
    scale = {"scheme": "redblue", "reverse": True, "domain": [-limit, limit], "clamp": True}
    legend: Chart = {"title": "standardized value", "orient": "top"}
    legend |= {"gradientLength": 160, "gradientThickness": 10}
    names = _named_axis("features", 140, labelAngle=-90, labelOverlap=True, orient="bottom")
    transform = [
        {"calculate": "features[datum.column]", "as": "feature"},
        {"calculate": "cases[datum.row]", "as": "case"},
        {"calculate": "isValid(datum.value) ? datum.value : 'missing'", "as": "cell"},
    ]
    cells = {
        "x": field("column", "ordinal", axis=names, scale={"padding": 0}),
        "y": field("row", "ordinal", axis=None, scale={"padding": 0}),
        "fill": {
            "condition": {"test": "!isValid(datum.value)", "value": SOFT},
            **amount("value", scale=scale, legend=legend),
        },
        "tooltip": tips(case="case", feature="feature", cell="standardized"),
    }
    mark = {"type": "rect", "strokeWidth": 0, "invalid": None}
    return layer("cells", mark, cells, transform=transform)


def outlying_cells_chart(figure: Chart, summary: Chart) -> Chart:
    """Draw the table with a mark at each outlying cell, and a strip of clusters."""
    n, p, marks = figure["n_cases"], figure["n_features"], figure["marks"]
    K, height = summary["result"]["n_clusters"], min(max(3 * n, 200), 480)
    place: Chart = {
        "x": amount("x", "feature, in the order of the table", scale=_over(p), axis=WHOLE),
        "y": amount("y", "case, by cluster", scale=_over(n, reverse=True), axis=BESIDE_STRIP),
    }
    scale = {"scheme": "redblue", "reverse": True, "domain": [-FAR, FAR], "clamp": True}
    colors = amount("scales", scale=scale, legend=None)
    titles = {"case": "case", "feature": "feature", "cluster": "cluster", "value": "value"}
    tip = tips(**titles, center="center", scales="scales above the center")
    side = min(max(height / n, 3.0), 8.0)
    mark = {"type": "point", "shape": "square", "filled": True, "size": side**2}
    mark |= {"opacity": 1, "stroke": SOFT, "strokeWidth": 0.3}
    strip = {
        "x": {"value": -14},
        "x2": {"value": -4},
        "y": amount("start", "case, by cluster"),
        "y2": {"field": "end"},
        "fill": by_cluster(K),
        "tooltip": tips(cluster="cluster"),
    }
    line = {"type": "rule", "stroke": SOFT, "strokeWidth": 0.6}
    layers = [
        layer("clusters", line, {"y": amount("end", "case, by cluster")}),
        layer("marks", mark, {**place, "fill": colors, "tooltip": tip}),
        layer("clusters", {"type": "rect", "strokeWidth": 0, "clip": False}, strip),
    ]
    return {
        "title": "The outlying cells",
        "caption": "The whole table: each mark is a cell that lies more than "
        f"{number(summary['cells']['cutoff'])} scales from the center of its cluster, the stronger "
        f"its color the farther away, up to {FAR} scales. A column of marks is a feature worth a "
        "look, a row of them a case.",
        "key": [
            *cluster_key(summary, MOST_TO_REPEAT),
            entry("square", RED, "above the center"),
            entry("square", DEEP_BLUE, "below the center"),
        ],
        "spec": chart(
            height,
            layers,
            resolve={"scale": {"fill": "independent"}},
            padding={"left": 5, "right": 5, "top": 5, "bottom": 5},
        ),
        "data": {"marks": marks, "clusters": figure["clusters"]},
    }


def _over(n: int, **more: Any) -> Chart:
    """Make the scale of n rows or columns."""
    return {"domain": [-0.5, n - 0.5], "nice": False, **more}


def outliers_chart(figure: Chart, summary: Chart) -> Chart:
    """Draw the two distances of each case, with the thresholds."""
    points, counts = figure["points"], figure["counts"]
    key = [
        entry(shape, color, f"{label} ({counts[flag]:,})")
        for flag, (color, shape, label) in FLAG_LOOKS.items()
        if counts[flag]
    ]
    if counts["trimmed"]:
        key.append(entry("ring", SOFT, f"trimmed, no outlier ({counts['trimmed']:,})"))
    layers = _points_layers(figure)
    for axis, (flag, limit) in zip("xy", figure["thresholds"].items(), strict=True):
        if limit is None:
            continue
        color = FLAG_LOOKS[flag][0]
        mark = {"type": "rule", "stroke": color, "strokeWidth": 1.4, "clip": True}
        layers.append(constant(mark, {axis: {"datum": limit, "type": "quantitative"}}))
        key.append(entry("line", color, f"{flag} threshold {number(limit)}"))
    line = "either line" if None not in figure["thresholds"].values() else "the line"
    return {
        "title": "The outliers",
        "caption": "Each point is a case: to the right if it is far from its center in the "
        "features that have weight, upwards if it is far in all features together. Cases beyond "
        f"{line} are called outliers. {HINT}",
        "key": key,
        "spec": chart(420, layers),
        "data": {"points": points},
    }


def _points_layers(figure: Chart) -> list[Chart]:
    points, ends = figure["points"], figure["thresholds"].values()
    titles = ("weighted squared distance", "unweighted squared distance")
    encoding: Chart = {}
    for axis, title, log, end in zip("xy", titles, figure["log"], ends, strict=True):
        # Domains are given: Vega finds none for a layer without points, and warns.
        held = [*points[axis], *([end] if end else [])]
        ticks: Chart = {"format": number_format(points[axis]), "labelOverlap": "greedy"}
        if log:
            scale = {"type": "log", "domain": [min(held), max(held)], "nice": False, "padding": 12}
            ticks["tickCount"] = 6
        else:
            high = 1.15 * max(held) or 1
            scale = {"type": "pow", "exponent": 1 / 3, "domain": [0, high], "nice": False}
            ticks["values"] = cube_ticks(high)
        title = f"{title}, {'log scale' if log else 'cube root'}"
        encoding[axis] = amount(axis, title, scale=scale, axis=ticks)
    encoding["tooltip"] = tips(
        number_format(points["x"]),
        case="case",
        cluster="cluster",
        x="weighted distance",
        y="unweighted distance",
        flag="outlier by",
    )
    colors, shapes, _ = zip(*FLAG_LOOKS.values(), strict=True)
    looks = {"fill": _by_flag(colors), "shape": _by_flag(shapes)}
    point = {"type": "point", "clip": True, "size": 55 if len(points["x"]) <= FEW_POINTS else 28}
    solid = {"filled": True, "opacity": 0.85, "stroke": EDGE, "strokeWidth": 0.5}
    hollow = {"filled": False, "opacity": 1, "stroke": SOFT, "strokeWidth": 1.3}
    return [
        layer("points", point | solid, encoding | looks, params=[ZOOM], transform=where(SOLID)),
        layer("points", point | hollow, encoding, transform=where(f"!({SOLID})")),
    ]


def _by_flag(looks: Iterable[str]) -> Chart:
    scale = {"domain": list(FLAG_LOOKS), "range": list(looks)}
    return field("flag", "nominal", scale=scale, legend=None)
