"""Charts of the model: plain numbers, what they show in words, and the values of their looks.

A chart is a dict: ``title``, ``alt`` (what it shows, in words), ``caption``, ``notes``, ``key``
(the legend, which the page writes), ``spec`` (Vega-Lite) and ``data`` (columns by name of the data
set; the page makes rows of them). The look of each is in ``templates/charts.json``, where
``"$name"`` stands for a value. Names given by the user are values of data and never names of
fields. Colors are variables of the style sheet, so that light, dark and print each have their own.

Of many cases only some are drawn: the farthest outliers, up to half of what is drawn, and of the
others a sample that is the same every time.
"""

from typing import Any

import numpy as np

from rskc.inputs.arrays import to_dense
from rskc.model.fitted import JudgedCases, number_names, number_weights, units_of
from rskc.model.outliers import Distances
from rskc.pictures import models as pictures
from rskc.pictures.models import FLAGS
from rskc.pictures.palette import GRAY, INK, MARKERS, PALETTE, cluster_markers
from rskc.report._facts import CHART_WIDTH, SPECS, Facts
from rskc.selection.findings import AXES, Curve
from rskc.utils.webpage import clean_names, plain_numbers
from rskc.utils.wording import cleaned, count, number, percent, sentence_list

MOST_POINTS = 2000  # of a scatter plot: an SVG of more is slow to pan
FEW_POINTS = 400  # up to this many are drawn larger
MOST_BARS = 600
MOST_WEIGHTS = 30
MOST_ROWS, MOST_COLUMNS = 120, 40  # of the heat map
MOST_IN_KEY, MOST_TO_REPEAT = 40, 12  # clusters in the first key, and in those of later charts
ON_PAGE = {GRAY: "var(--soft)", PALETTE[5]: "var(--c5)", PALETTE[0]: "var(--c0)"}
ON_PAGE[INK] = "var(--ink)"
SHAPES = dict(
    zip(MARKERS, ("circle", "square", "diamond", "triangle-down", "triangle-up"), strict=True)
)
DASHES = [[1, 0], [5, 4], [2, 3], [8, 3, 2, 3]]
NUMBER = ".6~g"  # six digits, and an exponent beyond
WORDS = ("title", "caption", "hint")  # of the file, beside the specification
Chart = dict[str, Any]


def charts_of(facts: Facts) -> dict[str, Chart]:
    """Make the charts that can be drawn of this model, in the order of the page."""
    # With one cluster there is no reason to prefer features, nor to look at the first of them.
    is_one = facts.K == 1 and np.ptp(facts.weights) == 0
    is_seen = bool(facts.seen.any() and len(facts.support))
    makers = {
        _clusters: is_seen,
        _silhouettes: is_seen and facts.K > 1,
        _weights: not is_one,
        _heat_map: is_seen and not is_one,
        _outliers: is_seen,
    }
    charts = [make(facts) for make, can_be_drawn in makers.items() if can_be_drawn]
    return {chart["id"]: chart for chart in charts}


def _chart(
    name: str, *, alt: str, data: Chart, key: Any = (), notes: Any = (), **values: Any
) -> Chart:
    """Make a chart of its words, its data and the values of its specification.

    Entries of the key and notes that are empty are left out.
    """
    plain = {
        part: {
            field: column if isinstance(column, list) else plain_numbers(column)
            for field, column in columns.items()
        }
        for part, columns in data.items()
    }
    words = {part: text.format_map(values) for part, text in SPECS[name].items() if part in WORDS}
    drawn = {"key": list(filter(None, key)), "spec": _spec(name, values), "data": plain}
    return {"id": name, "alt": alt, "notes": list(filter(None, notes)), **words, **drawn}


def _spec(name: str, values: Chart) -> Chart:
    """Return one of the specifications with its values, as wide as the page.

    A layer with an ``if`` is left out where that value is None.
    """
    values = SPECS["shared"] | values

    def filled(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: filled(value) for key, value in part.items() if key != "if"}
        if isinstance(part, list):
            left_out = [isinstance(x, dict) and "if" in x and values[x["if"]] is None for x in part]
            return [filled(x) for x, is_out in zip(part, left_out, strict=True) if not is_out]
        return values[part[1:]] if isinstance(part, str) and part.startswith("$") else part

    look = {key: value for key, value in SPECS[name].items() if key not in WORDS}
    return {"width": "container", "autosize": {"type": "fit-x"}} | filled(look)


# What charts share


def _look(name: str, values: Any, styles: Any) -> Chart:
    """Give each value of a field a style; the page writes the legend."""
    scale = {"domain": list(values), "range": list(styles)}
    return {"field": name, "type": "nominal", "title": None, "scale": scale, "legend": None}


def _by_cluster(K: int) -> Chart:
    """Give clusters the colors of the displays; beyond 20 they repeat."""
    return _look("cluster", range(K), [f"var(--c{k % len(PALETTE)})" for k in range(K)])


def _entry(shape: str, color: str, label: str) -> Chart:
    """Make an entry of the key."""
    return {"shape": shape, "color": ON_PAGE.get(color, color), "label": label}


def _cluster_key(sizes: Any, most: int = MOST_TO_REPEAT) -> list[Chart]:
    """Make the entries of the key for clusters, if there are not too many."""
    K = len(sizes)
    looks = zip(_by_cluster(K)["scale"]["range"], cluster_markers(K), sizes, strict=True)
    return [
        _entry(SHAPES[marker], color, f"(n = {size:,})") | {"cluster": k}
        for k, (color, marker, size) in enumerate(looks)
        if most >= K
    ]


def _numbers_along(name: str, title: str, scale: Chart, **more: Any) -> Chart:
    """Place the numbers of a field along an axis."""
    return {"field": name, "type": "quantitative", "title": title, "scale": scale, **more}


def _chosen(facts: Facts, candidates: np.ndarray, most: int) -> np.ndarray:
    """Choose cases to be drawn, in their order: the farthest outliers, and others at random."""
    if len(candidates) <= most:
        return candidates
    distances = np.where(facts.outliers, facts.distances, 0.0)[candidates]
    n_first = min(int(facts.outliers[candidates].sum()), most // 2)
    first, others = np.split(candidates[np.argsort(-distances, kind="stable")], [n_first])
    others = np.random.default_rng(0).permutation(others)[: most - n_first]
    return np.sort(np.concatenate([first, others]))


def _notes(facts: Facts, candidates: np.ndarray, rows: np.ndarray) -> list[str]:
    """Return the notes below a chart on cases that are not drawn."""
    notes, hidden = [], facts.n - len(candidates)
    if len(rows) < len(candidates):
        cases = f"{len(rows):,} of {count(len(candidates), 'case')}"
        notes.append(f"Drawn: {cases}, the farthest outliers and others at random.")
    if hidden:
        notes.append(
            f"Not drawn: {count(hidden, 'case')} without an observed feature that has weight."
        )
    return notes


def _columns(facts: Facts, rows: np.ndarray) -> Chart:
    """Return what tooltips and colors need to know of cases."""
    known = {"cluster": facts.labels[rows], "outlier": facts.outliers[rows]}
    return known | {"case": clean_names(np.take(facts.case_names, rows), CHART_WIDTH)}


# Charts of a model


def _clusters(facts: Facts) -> Chart:
    """Draw the cases in two dimensions, outliers as crosses, and the numbers of the clusters."""
    K, seen = facts.K, np.flatnonzero(facts.seen)
    parts = facts.labels, facts.distances, facts.unweighted, facts.outliers
    cases = JudgedCases(*(part[seen] for part in parts))
    plane = pictures.plane_of(facts.model, facts.X[seen], cases, "auto")
    low, high = pictures.frame_of(plane.positions, cases.labels, cases.outliers, plane.centers)
    rows = _chosen(facts, seen, MOST_POINTS)
    places = plane.positions[np.searchsorted(seen, rows)]
    x, y = np.clip(places, low, high).T
    used = np.flatnonzero(facts.sizes)
    centers = dict(zip("xy", plane.centers[used].T, strict=True))

    names = clean_names(plane.axis_names, CHART_WIDTH)
    words = pictures.sizes_in_words(facts.labels, K, facts.case_weights)
    words = [f"cluster {k} ({size})" for k, size in enumerate(words)]
    outliers = count(int(facts.outliers.sum()), "outlier") if facts.outliers.any() else ""
    crosses = f"; {outliers} drawn with crosses" if outliers else ""
    n_beyond = int(((places < low) | (places > high)).any(axis=1).sum())
    beyond = count(n_beyond, "outlier lies", "outliers lie")
    filled = f"{count(plane.n_filled, 'case')} with missing cells: these are put at the center"
    pad = 0.03 * (high - low)
    axes = {
        axis: _numbers_along(axis, name, {"domain": plain_numbers(ends), "nice": False})
        for axis, name, ends in zip("xy", names, np.transpose([low - pad, high + pad]), strict=True)
    }
    return _chart(
        "clusters",
        alt=f"Scatter plot of the cases by {names[0]} and {names[1]}, colored by cluster: "
        f"{sentence_list(words, 12)}{crosses}.",
        notes=[
            n_beyond and f"{beyond} far beyond the frame, drawn on its edge.",
            plane.n_filled and f"{filled} of the cluster, for the drawing only.",
            *_notes(facts, seen, rows),
        ],
        key=[
            *_cluster_key(facts.sizes, MOST_IN_KEY),
            outliers and _entry("cross", INK, outliers),
        ],
        data={
            "points": {"x": x, "y": y, "distance": facts.distances[rows]} | _columns(facts, rows),
            "centers": centers | {"cluster": used},
        },
        color=_by_cluster(K),
        clusters=list(range(K)),
        shapes=[SHAPES[marker] for marker in cluster_markers(K)],
        size=55 if len(rows) <= FEW_POINTS else 28,
        **axes,
    )


def _silhouettes(facts: Facts) -> Chart:
    """Draw a bar for each case, sorted within clusters."""
    values, seen = facts.cases["silhouette"].to_numpy(), np.flatnonzero(facts.seen)
    rows = _chosen(facts, seen, MOST_BARS)
    rows = rows[np.lexsort((-values[rows], facts.labels[rows]))]
    used, order = np.unique(facts.labels[rows], return_inverse=True)
    places = np.arange(len(rows)) + order * max(1, len(rows) // 100)  # a gap after each cluster
    means = [number(facts.mean_silhouette(facts.labels == k), 2) for k in used]
    words = [f"cluster {k} {mean}" for k, mean in zip(used, means, strict=True)]
    bars = {"place": places, "end": places + 1, "value": values[rows]}
    bars |= {"second": facts.cases["second_cluster"].to_numpy(int)[rows]}
    return _chart(
        "silhouettes",
        alt="Bars of the silhouettes of the cases, sorted within clusters, from 0 to 1. The mean "
        f"without outliers by cluster: {sentence_list(words, 12)}.",
        notes=_notes(facts, seen, rows),
        key=[
            *_cluster_key(facts.sizes),
            facts.outliers[rows].any() and _entry("square", INK, "outliers"),
        ],
        data={"bars": bars | _columns(facts, rows)},
        color={"condition": {"test": "datum.outlier == 1", "value": ON_PAGE[INK]}}
        | _by_cluster(facts.K),
        end=int(places[-1] + 1),
    )


def _weights(facts: Facts) -> Chart:
    """Draw a bar for each of the largest weights, of features or of groups of them."""
    units = units_of(facts.model)
    support = pictures.strongest(units.weights)
    held = units.weights[support]
    names = clean_names(units.names[support[:MOST_WEIGHTS]], CHART_WIDTH)
    n, n_more, shown = len(names), len(support) - len(names), held[:MOST_WEIGHTS]
    largest = [f"{cleaned(names[i], 32)} {held[i]:.2g}" for i in range(min(3, n))]
    share, least = percent(shown.sum() / held.sum()), number(float(held[-1]), 2)
    more = f"And {n_more:,} more, down to {least}; the {n} drawn hold {share} of the sum"
    return _chart(
        "weights",
        alt=f"Bars of the {count(n, 'largest weight')} of {count(len(units.names), units.noun)}, "
        f"of which {len(support):,} have weight: {sentence_list(largest)}.",
        notes=[n_more and f"{more} of the weights."],
        data={"bars": {"rank": np.arange(n), "weight": shown, "feature": names}},
        names=names,
        height=30 + 18 * max(n, 1),
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
    table = {"row": row.ravel(), "column": column.ravel(), "value": values.ravel()}
    return _chart(
        "cells",
        alt=f"Heat map of {count(n, 'case')}, ordered by cluster, and the {count(m, 'feature')} "
        f"with the largest weights, from {cleaned(names[0], 32)} on: red cells are above the mean "
        "of the feature, blue ones below.",
        notes=_notes(facts, np.arange(facts.n), rows),
        key=[
            *_cluster_key(facts.sizes),
            facts.outliers[rows].any() and _entry("triangle-left", INK, "outlier"),
            np.isnan(values).any() and _entry("square", GRAY, "missing"),
        ],
        data={"cells": table, "rows": cases},
        height=min(max(12 * n, 160), 620),
        names=names,
        cases=cases["case"],
        limits=plain_numbers(pictures.color_limits(standardized)),
        color=_by_cluster(facts.K),
    )


def _outliers(facts: Facts) -> Chart:
    """Draw the two distances of each case, with the thresholds."""
    is_seen, points = pictures.distance_points(Distances(facts.distances, facts.unweighted))
    seen = np.flatnonzero(is_seen)
    rows = _chosen(facts, seen, MOST_POINTS)
    places, codes = points[np.searchsorted(seen, rows)].T, facts.flags[rows]
    outlying = np.flatnonzero(facts.seen & facts.outliers)
    farthest = outlying[np.argsort(-facts.distances[outlying], kind="stable")[:3]]
    names = clean_names((facts.case_names[i] for i in farthest), 32)
    drawn = {"x": places[0], "y": places[1], "trimmed": codes == 4} | _columns(facts, rows)
    drawn |= {"weighted": facts.distances[rows], "unweighted": facts.unweighted[rows]}
    drawn["flag"] = [list(FLAGS)[code % 4] for code in codes]

    colors, markers, words = zip(*FLAGS.values(), strict=True)
    shapes = [SHAPES[marker] for marker in markers]
    numbers = np.bincount(facts.flags[seen], minlength=len(FLAGS)).tolist()
    looks = zip([*shapes[:4], "ring"], colors, words, numbers, strict=True)
    key = [n and _entry(shape, color, f"{label} ({n:,})") for shape, color, label, n in looks]
    beyond: list[str] = []
    place: Chart = {}
    rules = Distances._fields
    for axis, rule, limit, along in zip("xy", rules, facts.thresholds, places, strict=True):
        is_limit = bool(0 < limit < np.inf)
        # Domains are given: Vega finds none for a layer without points, and warns.
        ends = [*along, *([limit] if is_limit else [])]
        domain = plain_numbers([min(ends) / 1.2, max(ends) * 1.2])
        ticks = {"format": NUMBER, "labelOverlap": "greedy", "tickCount": 6}
        scale = {"type": "log", "domain": domain, "nice": False}
        title = f"{rule} squared distance, log scale"
        place |= {axis: _numbers_along(axis, title, scale, axis=ticks)}
        place[rule] = float(limit) if is_limit else None
        if is_limit:
            beyond.append(f"{rule} {number(limit)}")
            key.append(_entry("line", FLAGS[rule][0], f"{rule} threshold {number(limit)}"))
    farther = f" Farthest: {sentence_list(names)}." if names else ""
    return _chart(
        "outliers",
        alt="Scatter plot of the weighted and the unweighted squared distance of each case to its "
        f"center. {count(len(outlying), 'case')} beyond the thresholds ({', '.join(beyond)})."
        f"{farther}",
        lines="either line" if len(beyond) > 1 else "the line",
        notes=_notes(facts, seen, rows),
        key=key,
        data={"points": drawn},
        size=55 if len(rows) <= FEW_POINTS else 28,
        flags=list(FLAGS),
        colors=[ON_PAGE[color] for color in colors],
        shapes=shapes,
        **place,
    )


# Searches


def chart_of_curve(curve: Curve, alt: str) -> Chart:
    """Draw lines, the dots and error bars below them, a threshold, and a ring around the choice."""
    lines, x, numbers = curve.lines, curve.x, range(len(curve.lines))
    y = np.array([line.y for line in lines])
    none = np.full(len(x), np.nan)
    errors = np.array([none if line.errors is None else line.errors for line in lines])
    points: Chart = {
        "line": np.repeat(numbers, len(x)),
        "x": np.tile(x, len(lines)),
        "y": y.ravel(),
    }
    points |= {"low": (y - errors).ravel(), "high": (y + errors).ravel()}
    points["label"] = [line.label for line in lines for _ in x]
    dots = [
        (i, place, value)
        for i, line in enumerate(lines)
        for repeat in (() if line.dots is None else line.dots)
        for place, value in zip(x.tolist(), repeat.tolist(), strict=True)
        if np.isfinite(value)
    ]
    data: Chart = {"curve": points}
    colors = [f"var(--c{line.color % len(PALETTE)})" for line in lines]
    key = [
        _entry("dash" if line.dash else "line", color, line.label)
        for line, color in zip(lines, colors, strict=True)
    ]
    if dots:
        data["dots"] = dict(zip(("line", "x", "y"), np.transpose(dots), strict=True))
    if curve.above:
        points["above"] = curve.above[1] * len(lines)
    if curve.threshold:
        key.append(_entry("dash", GRAY, curve.threshold[0]))
    if curve.chosen is not None:
        line, place = curve.chosen
        key.append(_entry("ring", INK, "chosen"))
        data["chosen"] = {"x": x[[place]], "y": y[line, [place]]}
    return _chart(
        "search",
        alt=alt,
        key=key,
        data=data,
        x=_axis(curve.by, x.tolist()),
        measure=curve.name,
        color=_look("line", numbers, colors),
        dash=_look("line", numbers, [DASHES[line.dash % len(DASHES)] for line in lines]),
        setting=AXES[curve.by],
        # A layer without data has no domain, of which Vega warns.
        dots=dots or None,
        errors=True if np.isfinite(errors).any() else None,
        threshold=curve.threshold and curve.threshold[1],
        chosen=curve.chosen,
        above=curve.above and curve.above[0],
    )


def _axis(by: str, x: list[float]) -> Chart:
    """Make the axis of a setting: a tick at each number of clusters, a log scale for bounds."""
    axis: Chart = {"format": "~%", "grid": False, "tickCount": 6}
    scale: Chart = {"nice": False}
    if by == "n_clusters":
        axis = {"values": sorted(set(x)), "format": "d", "grid": False}
        scale["domain"] = [min(x) - 0.3, max(x) + 0.3]
    elif by == "l1_bound":
        axis |= {"format": NUMBER, "labelOverlap": "greedy"}
        scale |= {"type": "log", "padding": 12}
    return _numbers_along("x", AXES[by], scale, axis=axis)
