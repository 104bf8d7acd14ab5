"""Charts of the model: plain numbers, what they show in words, and how Vega-Lite draws them.

A chart is a dict: ``title``, ``alt`` (what it shows, in words), ``caption``, ``notes``, ``key``
(the legend, which the page writes), ``spec`` (Vega-Lite) and ``data`` (columns by name of the data
set; the page makes rows of them).

Of many cases only some are drawn: all outliers as long as they make up no more than half of what
is drawn, and of the others a sample that is the same every time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rskc.inputs.arrays import to_dense
from rskc.model.fitted import JudgedCases, number_names, number_weights, units_of
from rskc.model.outliers import Distances
from rskc.model.summary import FlaggedCells, frame_of_cells, in_units
from rskc.pictures import models as pictures
from rskc.pictures.models import FLAGS, TRIMMED
from rskc.pictures.palette import GRAY, INK, PALETTE
from rskc.report import _vega as vl
from rskc.report._facts import CHART_WIDTH, Facts, clean_names, plain_numbers
from rskc.report._vega import Chart
from rskc.selection.findings import AXES
from rskc.utils.wording import cleaned, count, number, percent, sentence_list

MOST_POINTS = 2000  # of a scatter plot: an SVG of more is slow to pan
MOST_BARS = 600
MOST_WEIGHTS = 30
MOST_ROWS, MOST_COLUMNS = 120, 40  # of the heat map
MOST_MARKS = 2000  # of the picture of outlying cells
FARTHEST = 1000  # of these, wherever they are; the others are drawn at random
FAR = 10  # scales from which on the color of an outlying cell is at its strongest
HINT = (
    "Drag to move, Ctrl and wheel to zoom, double-click to go back; point at a case for its name."
)
ABOUT = {"case": "case", "cluster": "cluster"}
SOLID, NO_TIP = {"opacity": 1}, {"opacity": 1, "tooltip": None}
FINE_EDGE = {"stroke": vl.EDGE, "strokeWidth": 0.5}
BARE: Chart = {"labels": False, "ticks": False, "grid": False, "domain": False}
CROSS = "M-1,-1L1,1M1,-1L-1,1"
VARIABLES = {GRAY: vl.SOFT, PALETTE[5]: vl.ORANGE, PALETTE[0]: vl.BLUE, INK: vl.INK}


def charts_of(facts: Facts) -> dict[str, Chart]:
    """Make the charts that can be drawn of this model, in the order of the page."""
    # With one cluster there is no reason to prefer features, nor to look at the first of them.
    is_one = facts.K == 1 and np.ptp(facts.weights) == 0
    is_seen = bool(facts.seen.any() and len(facts.support))
    makers = {
        "clusters": is_seen and _clusters,
        "silhouettes": is_seen and facts.silhouette is not None and _silhouettes,
        "weights": not is_one and _weights,
        "cells": is_seen and not is_one and _heat_map,
        "outliers": is_seen and _outliers,
        "outlying": is_seen and facts.n_cells and _outlying_cells,
    }
    charts: dict[str, Chart] = {
        id: {"id": id, **make(facts)} for id, make in makers.items() if make
    }
    for chart in charts.values():
        for columns in chart["data"].values():
            for name, values in columns.items():
                if not isinstance(values, list):
                    # Of places among hundreds, or of any.
                    digits = 6 if name in ("place", "start", "end") else 4
                    columns[name] = plain_numbers(values, digits)
    return charts


def _chosen(facts: Facts, candidates: np.ndarray, most: int) -> np.ndarray:
    """Choose cases to be drawn, in their order: outliers before others."""
    if len(candidates) <= most:
        return candidates
    rng = np.random.default_rng(0)
    outlying, regular = (candidates[facts.outliers[candidates] == w] for w in (1, 0))
    if len(outlying) > most // 2:  # some of them: the farthest, and a sample, lest a gap appear
        outlying = outlying[np.argsort(-facts.distances[outlying], kind="stable")]
        farthest, others = np.split(outlying, [most // 10])
        outlying = np.concatenate([farthest, rng.permutation(others)[: most // 5]])
    return np.sort(np.concatenate([outlying, rng.permutation(regular)[: most - len(outlying)]]))


def _notes(facts: Facts, candidates: np.ndarray, rows: np.ndarray, *notes: str) -> list[str]:
    """Return the notes below a chart, with those on cases that are not drawn."""
    chosen, hidden = "", facts.n - len(candidates)
    outlying, drawn = (int(facts.outliers[c].sum()) for c in (candidates, rows))
    if len(rows) < len(candidates):
        which = f"all {count(outlying, 'outlier')}" if outlying > 1 else "the outlier"
        if drawn < outlying:
            which = f"{drawn:,} of {count(outlying, 'outlier')}, the farthest among them"
        which = f": {which}, and others taken" if outlying else ", taken"
        chosen = f"Drawn: {len(rows):,} of {count(len(candidates), 'case')}{which} at random."
    unseen = f"Not drawn: {count(hidden, 'case')} without an observed feature that has weight."
    return [note for note in (*notes, chosen, unseen if hidden else "") if note]


def _columns(facts: Facts, rows: np.ndarray) -> Chart:
    """Return what tooltips and colors need to know of cases."""
    known = {"cluster": facts.labels[rows], "outlier": facts.outliers[rows]}
    return known | {"case": clean_names(np.take(facts.case_names, rows), CHART_WIDTH)}


def _clusters(facts: Facts) -> Chart:
    """Draw the cases in two dimensions, outliers as crosses, and the numbers of the clusters."""
    K, seen = facts.K, np.flatnonzero(facts.seen)
    parts = facts.labels, facts.distances, facts.unweighted, facts.outliers
    cases = JudgedCases(*(part[seen] for part in parts))
    plane = pictures.plane_of(facts.model, facts.X[seen], cases, "auto")
    low, high, _ = pictures.frame_of(plane.positions, cases.labels, cases.outliers, plane.centers)
    rows = _chosen(facts, seen, MOST_POINTS)
    drawn = np.searchsorted(seen, rows)
    places, nearer = plane.positions[drawn], plane.looks_nearer(cases, drawn)
    n_beyond = int(((places < low) | (places > high)).any(axis=1).sum())
    used, pad = np.flatnonzero(facts.sizes), 0.03 * (high - low)
    x, y = np.clip(places, low, high).T
    points = {"x": x, "y": y, "distance": facts.distances[rows], "nearer": nearer}
    x, y = plane.centers[used].T
    centers = {"x": x, "y": y, "cluster": used}

    names, notes = clean_names(plane.axis_names, CHART_WIDTH), []
    words = pictures.sizes_in_words(facts.labels, K, facts.case_weights)
    alt = f"Scatter plot of the cases by {names[0]} and {names[1]}, colored by cluster: "
    alt += sentence_list([f"cluster {k} ({size})" for k, size in enumerate(words)], 12)
    key, farther = vl.cluster_key(facts.sizes), ""
    if n_outlying := int(facts.outliers.sum()):
        alt += f"; {count(n_outlying, 'outlier')} drawn with crosses"
        key.append(vl.entry("cross", vl.INK, count(n_outlying, "outlier")))
    if n_nearer := int(nearer.sum()):
        looks = "it looks" if n_nearer == 1 else "they look"
        key.append(vl.entry("ring", vl.SOFT, f"farther than {looks} ({n_nearer:,})"))
        farther = (
            ", as far as two dimensions can show; rings mark cases farther away than they look"
        )
    if n_beyond:
        lie = "lies" if n_beyond == 1 else "lie"
        notes.append(f"{count(n_beyond, 'outlier')} {lie} far beyond the frame, drawn on its edge.")
    if plane.n_filled:
        filled = f"{count(plane.n_filled, 'case')} with missing cells: these are put at the center"
        notes.append(f"{filled} of the cluster, for the drawing only.")

    ends = np.transpose([low - pad, high + pad])
    place: Chart = {
        axis: vl.field(axis, title=name, scale={"domain": plain_numbers(domain), "nice": False})
        for axis, name, domain in zip("xy", names, ends, strict=True)
    }
    few, digits = len(rows) <= vl.FEW_POINTS, vl.number_format(points["distance"])
    point = vl.mark("point", filled=True, size=55 if few else 28, opacity=0.8, **FINE_EDGE)
    cross = vl.mark("point", shape=CROSS, size=50 if few else 24, strokeWidth=2 if few else 1.3)
    ring = vl.mark("point", shape="circle", filled=False, size=170 if few else 90, stroke=vl.SOFT)
    disc = vl.mark("point", filled=True, size=330, fill=vl.PAPER, stroke=vl.INK, strokeWidth=1.2)
    text = vl.mark("text", fontSize=12, fontWeight="bold", fill=vl.INK)
    tips = vl.tips(digits, **ABOUT, distance="weighted distance")
    shown = {"fill": vl.by_cluster(K), "shape": vl.by_cluster(K, shapes=True), "tooltip": tips}
    tips = vl.tips(digits, **ABOUT, distance="distance of this outlier")
    crossed = {"stroke": vl.by_cluster(K), "tooltip": tips}
    layers = [
        vl.layer("points", ring | {"strokeWidth": 1.4} | NO_TIP, place, "datum.nearer == 1"),
        vl.layer("points", point, place | shown, "datum.outlier == 0", [vl.ZOOM]),
        vl.layer("points", cross | SOLID, place | crossed, "datum.outlier == 1"),
        vl.layer("centers", disc | NO_TIP | {"opacity": 0.92}, place),
        vl.layer("centers", text, place | {"text": vl.field("cluster", "nominal")}),
    ]
    return {
        "title": "The clusters",
        "alt": f"{alt}.",
        "caption": "Each point is a case; the numbers stand at the centers of the clusters. Cases "
        f"close together are alike in the features that have weight{farther}.",
        "hint": HINT,
        "notes": _notes(facts, seen, rows, *notes),
        "key": key,
        "spec": vl.spec(420, layers),
        "data": {"points": points | _columns(facts, rows), "centers": centers},
    }


def _silhouettes(facts: Facts) -> Chart:
    """Draw a bar for each case, sorted within clusters, and the mean of each cluster."""
    assert facts.silhouette is not None
    K, values, seen = facts.K, facts.silhouette.values, np.flatnonzero(facts.seen)
    rows = _chosen(facts, seen, MOST_BARS)
    rows = rows[np.lexsort((-values[rows], facts.labels[rows]))]
    labels = facts.labels[rows]
    places, used = pictures.stacked(labels, max(1.0, 0.01 * len(rows))), np.unique(labels)
    regular = facts.seen & ~facts.outliers
    means = [facts.mean(values, regular & (facts.labels == k)) for k in used]
    starts, ends = (np.array([places[labels == k][end] for k in used]) for end in (0, -1))
    words = [f"cluster {k} {number(mean, 2)}" for k, mean in zip(used, means, strict=True)]
    key = vl.cluster_key(facts.sizes, vl.MOST_TO_REPEAT)
    key += [vl.entry("square", vl.INK, "outliers")] if facts.outliers[rows].any() else []
    key += [vl.entry("line", vl.INK, "mean of the cluster, without outliers")]
    title, scale = "cases, by cluster", {"domain": [0, float(places[-1] + 1)], "nice": False}
    bars: Chart = {
        "x": vl.field("place", title=title, scale=scale, axis=BARE),
        "x2": {"field": "end"},
        "y": vl.field("value", title="silhouette", scale={"domain": [0, 1]}),
        "y2": {"datum": 0},
        "fill": {
            "condition": {"test": "datum.outlier == 1", "value": vl.INK},
            **vl.by_cluster(K),
        },
        "tooltip": vl.tips(**ABOUT, second="next cluster", value="silhouette"),
    }
    lines: Chart = {"x": vl.field("start", title=title), "x2": {"field": "end"}}
    lines |= {"y": vl.field("mean", title="silhouette")}
    lines |= {"tooltip": vl.tips(cluster="cluster", mean="mean silhouette")}
    dashes = vl.mark("rule", stroke=vl.INK, strokeDash=[4, 3], strokeWidth=1.3)
    bar = vl.mark("rect", strokeWidth=0)
    return {
        "title": "How clearly each case belongs to its cluster",
        "alt": "Bars of the silhouettes of the cases, sorted within clusters, from 0 to 1. The "
        f"mean without outliers by cluster: {sentence_list(words, 12)}.",
        "caption": "One bar per case: 1 if it lies on the center of its cluster, 0 if it is as "
        "near to the next one. Clusters with long bars are clear; cases with short bars could as "
        "well belong to the neighboring cluster.",
        "notes": _notes(facts, seen, rows),
        "key": key,
        "spec": vl.spec(260, [vl.layer("bars", bar, bars), vl.layer("means", dashes, lines)]),
        "data": {
            "bars": {"place": places, "end": places + 1, "value": values[rows]}
            | {"second": facts.silhouette.second[rows]}
            | _columns(facts, rows),
            "means": {"cluster": used, "start": starts, "end": ends + 1, "mean": np.array(means)},
        },
    }


def _weights(facts: Facts) -> Chart:
    """Draw a bar for each of the largest weights, of features or of groups of them."""
    units = units_of(facts.model)
    support = pictures.strongest(units.weights)
    top, held = support[:MOST_WEIGHTS], units.weights[support]
    names, shown = clean_names(units.names[top], CHART_WIDTH), held[: len(top)]
    largest = [f"{cleaned(names[i], 32)} {held[i]:.2g}" for i in range(min(3, len(top)))]
    share, least = percent(shown.sum() / held.sum()), number(float(held[-1]), 2)
    note = f"And {len(support) - len(top):,} more, down to {least}; the {len(top)} drawn hold "
    note += f"{share} of the sum of the weights."
    bars: Chart = {
        "x": vl.field("weight", title="weight", axis={"tickCount": 6}),
        "y": vl.field("rank", "ordinal", sort=None, axis=_named_axis("features", 170)),
        "tooltip": vl.tips(feature="feature", weight="weight"),
    }
    return {
        "title": "The features with the largest weights",
        "alt": f"Bars of the {count(len(top), 'largest weight')} of "
        f"{count(len(units.names), units.noun)}, of which {len(support):,} have weight: "
        f"{sentence_list(largest)}.",
        "caption": "The larger the weight of a feature, the more it counts when cases are "
        "compared; one without weight does not count at all.",
        "notes": [note] * (len(support) > len(top)),
        "key": [],
        "spec": vl.spec(
            30 + 18 * max(len(names), 1),
            [vl.layer("bars", vl.mark("bar", fill=vl.BLUE, tooltip=True), bars)],
            {"features": names},
        ),
        "data": {"bars": {"rank": np.arange(len(top)), "weight": shown, "feature": names}},
    }


def _named_axis(names: str, limit: int, **more: Any) -> Chart:
    """Make an axis of numbers that stand for names, so that two alike do not become one."""
    expression = f"{names}[datum.value]"
    return {"labelExpr": expression, "labelLimit": limit, "ticks": False, "grid": False, **more}


def _heat_map(facts: Facts) -> Chart:
    """Draw the cells of the features with the largest weights, standardized, cases by cluster."""
    features = pictures.strongest(number_weights(facts.model), MOST_COLUMNS)
    values = to_dense(facts.X[:, features]).astype(np.float64)
    values = pictures.standardize_cells(values, facts.outliers)
    limits = plain_numbers(pictures.symmetric_limits(values))
    rows = _chosen(facts, np.arange(facts.n), MOST_ROWS)
    rows = rows[np.lexsort((facts.distances[rows], facts.labels[rows]))]
    values, (n, m) = values[rows], (len(rows), len(features))
    names = clean_names(number_names(facts.model)[features], CHART_WIDTH)
    (row, column), cases = np.indices((n, m)), {"row": np.arange(n)} | _columns(facts, rows)

    key = vl.cluster_key(facts.sizes, vl.MOST_TO_REPEAT)
    key += [vl.entry("triangle-left", vl.INK, "outlier")] if cases["outlier"].any() else []
    key += [vl.entry("square", vl.SOFT, "missing")] if np.isnan(values).any() else []
    legend = {"title": "standardized value", "orient": "top", "gradientLength": 160}
    fill = vl.field("value", scale=_diverging(limits), legend=legend | {"gradientThickness": 10})
    axis = _named_axis("features", 140, labelAngle=-90, labelOverlap=True, orient="bottom")
    y = vl.field("row", "ordinal")
    calculated = [
        {"calculate": "features[datum.column]", "as": "feature"},
        {"calculate": "cases[datum.row]", "as": "case"},
        {"calculate": "isValid(datum.value) ? datum.value : 'missing'", "as": "cell"},
    ]
    cells: Chart = {
        "x": vl.field("column", "ordinal", axis=axis, scale={"padding": 0}),
        "y": vl.field("row", "ordinal", axis=None, scale={"padding": 0}),
        "fill": {"condition": {"test": "!isValid(datum.value)", "value": vl.SOFT}, **fill},
        "tooltip": vl.tips(case="case", feature="feature", cell="standardized"),
    }
    rect = vl.mark("rect", strokeWidth=0, invalid=None)
    triangle = vl.mark("point", filled=True, shape="triangle-left", size=36, fill=vl.INK, xOffset=8)
    tips = vl.tips(case="case", cluster="cluster of this outlier")
    marked = {"x": {"value": "width"}, "y": y, "tooltip": tips}
    layers = [
        vl.layer("cells", rect, cells) | {"transform": calculated},
        vl.strip("rows", facts.K, y=y, tooltip=vl.tips(**ABOUT)),
        vl.layer("rows", triangle | SOLID | {"clip": False}, marked, "datum.outlier == 1"),
    ]
    return {
        "title": "Cases and features side by side",
        "alt": f"Heat map of {count(n, 'case')}, ordered by cluster, and the "
        f"{count(m, 'feature')} with the largest weights, from {cleaned(names[0], 32)} on: red "
        "cells are above the mean of the feature, blue ones below.",
        "caption": "Each row is a case, each column a feature, the largest weight on the left. Red "
        "is above the mean of the feature, blue below; where clusters differ, so do their blocks "
        "of color. The strip on the left shows the clusters.",
        "notes": _notes(facts, np.arange(facts.n), rows),
        "key": key,
        "spec": vl.spec(
            min(max(12 * n, 160), 620),
            layers,
            {"features": names, "cases": cases["case"]},
            resolve={"scale": {"fill": "independent"}},
            padding={"left": 22, "right": 16, "top": 5, "bottom": 5},
        ),
        "data": {
            "cells": {"row": row.ravel(), "column": column.ravel(), "value": values.ravel()},
            "rows": cases,
        },
    }


def _diverging(limits: list[float]) -> Chart:
    """Make a scale of colors from blue to red."""
    return {"scheme": "redblue", "reverse": True, "domain": limits, "clamp": True}


def _outliers(facts: Facts) -> Chart:
    """Draw the two distances of each case, with the thresholds."""
    scatter = pictures.distance_scatter(Distances(facts.distances, facts.unweighted))
    seen = np.flatnonzero(scatter.seen)
    rows = _chosen(facts, seen, MOST_POINTS)
    trimmed = facts.model.trimmed_ & (facts.flags == 0)
    outlying = np.flatnonzero(facts.seen & facts.outliers)
    farthest = outlying[np.argsort(-facts.distances[outlying], kind="stable")[:3]]
    names = clean_names((facts.case_names[i] for i in farthest), 32)
    points = dict(zip("xy", scatter.points[np.searchsorted(seen, rows)].T, strict=True))
    flags = {"flag": [list(FLAGS)[code] for code in facts.flags[rows]], "trimmed": trimmed[rows]}
    key, lines, beyond = [], [], []
    place: Chart = {}
    looks = [
        (VARIABLES[color], vl.SHAPES[marker], words) for color, marker, words in FLAGS.values()
    ]
    for code, (color, shape, label) in enumerate(looks):
        if n := int(np.count_nonzero((facts.flags == code) & ~trimmed & scatter.seen)):
            key.append(vl.entry(shape, color, f"{label} ({n:,})"))
    if n := int(np.count_nonzero(trimmed & scatter.seen)):
        key.append(vl.entry("ring", vl.SOFT, f"{TRIMMED} ({n:,})"))
    titles = ("weighted squared distance", "unweighted squared distance")
    for i, (axis, flag) in enumerate(zip("xy", ("weighted", "unweighted"), strict=True)):
        (limit,) = plain_numbers(facts.thresholds[i : i + 1])
        # Domains are given: Vega finds none for a layer without points, and warns.
        ends = [*points[axis], *([limit] if limit else [])]
        ticks: Chart = {"format": vl.number_format(points[axis]), "labelOverlap": "greedy"}
        if scatter.logarithmic[i]:
            scale = {"type": "log", "domain": [min(ends), max(ends)], "nice": False, "padding": 12}
            ticks["tickCount"] = 6
        else:
            high = 1.15 * max(ends) or 1
            scale = {"type": "pow", "exponent": 1 / 3, "domain": [0, high], "nice": False}
            ticks["values"] = pictures.cube_ticks(high)
        kind = "log scale" if scatter.logarithmic[i] else "cube root"
        place[axis] = vl.field(axis, title=f"{titles[i]}, {kind}", scale=scale, axis=ticks)
        if limit is not None:
            color = looks[1 + i][0]
            beyond.append(f"{flag} {number(limit)}")
            lines.append(vl.line_at(axis, limit, color))
            key.append(vl.entry("line", color, f"{flag} threshold {number(limit)}"))
    colors, shapes, _ = zip(*looks, strict=True)
    distances = {"x": "weighted distance", "y": "unweighted distance", "flag": "outlier by"}
    place["tooltip"] = vl.tips(vl.number_format(points["x"]), **ABOUT, **distances)
    flagged = {"fill": vl.look("flag", FLAGS, colors), "shape": vl.look("flag", FLAGS, shapes)}
    size = 55 if len(rows) <= vl.FEW_POINTS else 28
    solid = vl.mark("point", size=size, filled=True, opacity=0.85, **FINE_EDGE)
    hollow = vl.mark("point", size=size, filled=False, stroke=vl.SOFT, strokeWidth=1.3, **SOLID)
    return {
        "title": "The outliers",
        "alt": "Scatter plot of the weighted and the unweighted squared distance of each case to "
        f"its center. {count(len(outlying), 'case')} beyond the thresholds ({', '.join(beyond)})."
        + (f" Farthest: {sentence_list(names)}." if names else ""),
        "caption": "Each point is a case: to the right if it is far from its center in the "
        "features that have weight, upwards if it is far in all features together. Cases beyond "
        f"{'either line' if len(lines) > 1 else 'the line'} are called outliers.",
        "hint": HINT,
        "notes": _notes(facts, seen, rows),
        "key": key,
        "spec": vl.spec(
            420,
            [
                vl.layer("points", solid, place | flagged, "datum.trimmed == 0", [vl.ZOOM]),
                vl.layer("points", hollow, place, "datum.trimmed == 1"),
                *lines,
            ],
        ),
        "data": {"points": points | flags | _columns(facts, rows)},
    }


def _outlying_cells(facts: Facts) -> Chart:
    """Draw the table with a mark at each outlying cell, cases sorted by cluster."""
    assert facts.cells is not None
    n, p, n_cells, rows = facts.n, facts.p, facts.n_cells, pictures.rows_by_cluster(facts.labels)
    drawn = np.arange(n_cells)
    if n_cells > MOST_MARKS:  # the farthest come first
        others = np.random.default_rng(0).permutation(drawn[FARTHEST:])
        drawn = np.r_[drawn[:FARTHEST], np.sort(others[: MOST_MARKS - FARTHEST])]
    note = f"Drawn: {len(drawn):,} of {count(n_cells, 'cell')}: the {FARTHEST:,} that are farthest "
    note += "from their centers, and others taken at random."
    chosen = FlaggedCells(*(part[drawn] for part in facts.cells))
    frame = in_units(frame_of_cells(facts.model, chosen), facts.units)
    names = clean_names(np.take(facts.feature_names, chosen.features), CHART_WIDTH)
    used, height = np.unique(facts.labels), min(max(3 * n, 200), 480)
    ends = rows.ends[used]
    titles = {"case": "case", "feature": "feature", "cluster": "cluster", "value": "value"}
    columns, cases = ({"domain": [-0.5, size - 0.5], "nice": False} for size in (p, n))
    whole = {"tickMinStep": 1, "format": "d", "grid": False}
    beside_strip = BARE | {"titlePadding": 20}
    by_case, by_feature = "case, by cluster", "feature, in the order of the table"
    line = vl.mark("rule", stroke=vl.SOFT, strokeWidth=0.6)
    side = min(max(height / n, 3.0 if n_cells > vl.FEW_POINTS else 5.0), 8.0)
    square = vl.mark("point", shape="square", filled=True, size=side**2)
    marks: Chart = {
        "x": vl.field("x", title=by_feature, scale=columns, axis=whole),
        "y": vl.field("y", title=by_case, scale=cases | {"reverse": True}, axis=beside_strip),
        "fill": vl.field("scales", scale=_diverging([-FAR, FAR]), legend=None),
        "tooltip": vl.tips(**titles, center="center", scales="scales above the center"),
    }
    band = {"y2": {"field": "end"}, "tooltip": vl.tips(cluster="cluster")}
    layers = [
        vl.layer("clusters", line, {"y": vl.field("end", title=by_case)}),
        vl.layer("marks", square | SOLID | {"stroke": vl.SOFT, "strokeWidth": 0.3}, marks),
        vl.strip("clusters", facts.K, y=vl.field("start", title=by_case), **band),
    ]
    return {
        "title": "The outlying cells",
        "alt": f"The table of {count(n, 'case')}, sorted by cluster, and {count(p, 'feature')}, "
        f"with a mark at each of {count(n_cells, 'outlying cell')}.",
        "caption": "The whole table: each mark is a cell that lies more than "
        f"{number(facts.model.cell_cutoff_)} scales from the center of its cluster; the farther "
        f"away, the stronger its color, up to {FAR} scales. A column of marks is a feature worth a "
        "look, a row of marks a case.",
        "notes": [note] * (n_cells > MOST_MARKS),
        "key": [
            *vl.cluster_key(facts.sizes, vl.MOST_TO_REPEAT),
            vl.entry("square", vl.RED, "above the center"),
            vl.entry("square", vl.DEEP_BLUE, "below the center"),
        ],
        "spec": vl.spec(
            height,
            layers,
            resolve={"scale": {"fill": "independent"}},
            padding={"left": 5, "right": 5, "top": 5, "bottom": 5},
        ),
        "data": {
            "marks": {"x": chosen.features, "y": rows.places[chosen.cases], "feature": names}
            | {"scales": chosen.scales, "value": frame["value"], "center": frame["center"]}
            | _columns(facts, chosen.cases),
            "clusters": {"cluster": used, "start": ends - facts.sizes[used], "end": ends},
        },
    }


# Searches


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
