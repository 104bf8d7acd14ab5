"""Charts of the model: plain numbers, what they show in words, and the values of their looks.

A chart is a dict: ``title``, ``alt`` (what it shows, in words), ``caption``, ``notes``, ``key``
(the legend, which the page writes), ``spec`` (Vega-Lite) and ``data`` (columns by name of the data
set; the page makes rows of them). The look of each is in ``templates/charts.json``.

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
from rskc.pictures.palette import GRAY, INK, PALETTE, cluster_markers
from rskc.report import _vega as vl
from rskc.report._facts import CHART_WIDTH, Facts
from rskc.report._vega import Chart
from rskc.selection.findings import AXES
from rskc.utils.webpage import clean_names, plain_numbers
from rskc.utils.wording import cleaned, count, number, percent, sentence_list

MOST_POINTS = 2000  # of a scatter plot: an SVG of more is slow to pan
FEW_POINTS = 400  # up to this many are drawn larger
MOST_BARS = 600
MOST_WEIGHTS = 30
MOST_ROWS, MOST_COLUMNS = 120, 40  # of the heat map
MOST_MARKS = 2000  # of the picture of outlying cells
FARTHEST = 1000  # of these, wherever they are; the others are drawn at random
FAR = 10  # scales from which on the color of an outlying cell is at its strongest
VARIABLES = {GRAY: vl.SOFT, PALETTE[5]: vl.ORANGE, PALETTE[0]: vl.BLUE, INK: vl.INK}
DASHES = [[1, 0], [5, 4], [2, 3], [8, 3, 2, 3]]


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
    charts: dict[str, Chart] = {name: make(facts) for name, make in makers.items() if make}
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
    low, high = pictures.frame_of(plane.positions, cases.labels, cases.outliers, plane.centers)
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
    key, farther = vl.cluster_key(facts.sizes, vl.MOST_IN_KEY), ""
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
    x, y = (
        _numbers_along(axis, name, {"domain": plain_numbers(domain), "nice": False})
        for axis, name, domain in zip("xy", names, ends, strict=True)
    )
    few = len(rows) <= FEW_POINTS
    return vl.chart(
        "clusters",
        alt=f"{alt}.",
        farther=farther,
        notes=_notes(facts, seen, rows, *notes),
        key=key,
        data={"points": points | _columns(facts, rows), "centers": centers},
        x=x,
        y=y,
        color=vl.by_cluster(K),
        clusters=list(range(K)),
        shapes=[vl.SHAPES[marker] for marker in cluster_markers(K)],
        digits=vl.number_format(points["distance"]),
        size=55 if few else 28,
        cross_size=50 if few else 24,
        cross_width=2 if few else 1.3,
        ring_size=170 if few else 90,
    )


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
    key = vl.cluster_key(facts.sizes)
    key += [vl.entry("square", vl.INK, "outliers")] if facts.outliers[rows].any() else []
    key += [vl.entry("line", vl.INK, "mean of the cluster, without outliers")]
    color = {"condition": {"test": "datum.outlier == 1", "value": vl.INK}, **vl.by_cluster(K)}
    bars = {"place": places, "end": places + 1, "value": values[rows]}
    bars |= {"second": facts.silhouette.second[rows]}
    return vl.chart(
        "silhouettes",
        alt="Bars of the silhouettes of the cases, sorted within clusters, from 0 to 1. The mean "
        f"without outliers by cluster: {sentence_list(words, 12)}.",
        notes=_notes(facts, seen, rows),
        key=key,
        data={
            "bars": bars | _columns(facts, rows),
            "means": {"cluster": used, "start": starts, "end": ends + 1, "mean": np.array(means)},
        },
        color=color,
        end=float(places[-1] + 1),
    )


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
    return vl.chart(
        "weights",
        alt=f"Bars of the {count(len(top), 'largest weight')} of "
        f"{count(len(units.names), units.noun)}, of which {len(support):,} have weight: "
        f"{sentence_list(largest)}.",
        notes=[note] * (len(support) > len(top)),
        data={"bars": {"rank": np.arange(len(top)), "weight": shown, "feature": names}},
        names=names,
        height=30 + 18 * max(len(names), 1),
    )


def _heat_map(facts: Facts) -> Chart:
    """Draw the cells of the features with the largest weights, standardized, cases by cluster."""
    features = pictures.strongest(number_weights(facts.model), MOST_COLUMNS)
    values = to_dense(facts.X[:, features]).astype(np.float64)
    standardized = pictures.standardize_cells(values, facts.outliers)
    rows = _chosen(facts, np.arange(facts.n), MOST_ROWS)
    rows = rows[np.lexsort((facts.distances[rows], facts.labels[rows]))]
    values, (n, m) = standardized[rows], (len(rows), len(features))
    names = clean_names(number_names(facts.model)[features], CHART_WIDTH)
    (row, column), cases = np.indices((n, m)), {"row": np.arange(n)} | _columns(facts, rows)

    key = vl.cluster_key(facts.sizes)
    key += [vl.entry("triangle-left", vl.INK, "outlier")] if cases["outlier"].any() else []
    key += [vl.entry("square", vl.SOFT, "missing")] if np.isnan(values).any() else []
    table = {"row": row.ravel(), "column": column.ravel(), "value": values.ravel()}
    return vl.chart(
        "cells",
        alt=f"Heat map of {count(n, 'case')}, ordered by cluster, and the {count(m, 'feature')} "
        f"with the largest weights, from {cleaned(names[0], 32)} on: red cells are above the mean "
        "of the feature, blue ones below.",
        notes=_notes(facts, np.arange(facts.n), rows),
        key=key,
        data={"cells": table, "rows": cases},
        height=min(max(12 * n, 160), 620),
        names=names,
        cases=cases["case"],
        limits=plain_numbers(pictures.symmetric_limits(standardized)),
        color=vl.by_cluster(facts.K),
    )


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
    key, beyond = [], []
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
        title = f"{titles[i]}, {kind}"
        place |= {axis: _numbers_along(axis, title, scale, axis=ticks), flag: limit}
        if limit is not None:
            color = looks[1 + i][0]
            beyond.append(f"{flag} {number(limit)}")
            key.append(vl.entry("line", color, f"{flag} threshold {number(limit)}"))
    colors, shapes, _ = zip(*looks, strict=True)
    farther = f" Farthest: {sentence_list(names)}." if names else ""
    return vl.chart(
        "outliers",
        alt="Scatter plot of the weighted and the unweighted squared distance of each case to its "
        f"center. {count(len(outlying), 'case')} beyond the thresholds ({', '.join(beyond)})."
        f"{farther}",
        lines="either line" if len(beyond) > 1 else "the line",
        notes=_notes(facts, seen, rows),
        key=key,
        data={"points": points | flags | _columns(facts, rows)},
        size=55 if len(rows) <= FEW_POINTS else 28,
        flags=list(FLAGS),
        colors=list(colors),
        shapes=list(shapes),
        numbers=vl.number_format(points["x"]),
        **place,
    )


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
    ends = np.cumsum(facts.sizes)[used]
    side = min(max(height / n, 3.0 if n_cells > FEW_POINTS else 5.0), 8.0)
    return vl.chart(
        "outlying",
        alt=f"The table of {count(n, 'case')}, sorted by cluster, and {count(p, 'feature')}, with "
        f"a mark at each of {count(n_cells, 'outlying cell')}.",
        cutoff=number(facts.model.cell_cutoff_),
        far=FAR,
        notes=[note] * (n_cells > MOST_MARKS),
        key=[
            *vl.cluster_key(facts.sizes),
            vl.entry("square", vl.RED, "above the center"),
            vl.entry("square", vl.DEEP_BLUE, "below the center"),
        ],
        data={
            "marks": {"x": chosen.features, "y": rows[chosen.cases], "feature": names}
            | {"scales": chosen.scales, "value": frame["value"], "center": frame["center"]}
            | _columns(facts, chosen.cases),
            "clusters": {"cluster": used, "start": ends - facts.sizes[used], "end": ends},
        },
        height=height,
        size=side**2,
        last_feature=p - 0.5,
        last_case=n - 0.5,
        limits=[-FAR, FAR],
        color=vl.by_cluster(facts.K),
    )


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
    data = {"curve": points, "dots": curve["dots"]}
    key = [
        vl.entry("dash" if line["dash"] else "line", color, line["label"])
        for line, color in zip(lines, colors, strict=True)
    ]

    if curve["threshold"]:
        key.append(vl.entry("dash", vl.SOFT, curve["threshold"][0]))
    if curve["chosen"] is not None:
        key.append(vl.entry("ring", vl.INK, "chosen"))
        data["chosen"] = {name: [points[name][curve["chosen"]]] for name in ("x", "y")}
    looks = {
        "x": _axis(curve["by"], points["x"]),
        "name": curve["name"],
        "color": vl.look("line", numbers, colors),
        "dash": vl.look("line", numbers, [DASHES[line["dash"] % len(DASHES)] for line in lines]),
        "setting": AXES[curve["by"]],
        # A layer without data has no domain, of which Vega warns.
        "dots": curve["dots"]["x"] or None,
        "errors": next((low for low in points["low"] if low is not None), None),
        "threshold": curve["threshold"] and curve["threshold"][1],
        "chosen": curve["chosen"],
        "above": curve["above"],
    }
    return {"key": key, "spec": vl.spec("search", looks), "data": data}


def _numbers_along(name: str, title: str, scale: Chart, **more: Any) -> Chart:
    """Place the numbers of a field along an axis."""
    return {"field": name, "type": "quantitative", "title": title, "scale": scale, **more}


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
    return _numbers_along("x", AXES[by], scale, axis=axis)
