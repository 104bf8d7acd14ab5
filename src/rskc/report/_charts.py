"""Charts of the model: plain numbers, what they show in words, and the values of their looks.

A chart is a dict: ``title``, ``alt`` (what it shows, in words), ``caption``, ``notes``, ``key``
(the legend, which the page writes), ``spec`` (Vega-Lite) and ``data`` (columns by name of the data
set; the page makes rows of them). The look of each is in ``templates/charts.json``, where
``"$name"`` stands for a value. Names given by the user are values of data and never names of
fields. Colors are variables of the style sheet, so that light, dark and print each have their own.

Of many cases only some are drawn: all outliers as long as they make up no more than half of what
is drawn, and of the others a sample that is the same every time.
"""

from typing import Any

import numpy as np

from rskc.inputs.arrays import to_dense
from rskc.model.fitted import JudgedCases, number_names, number_weights, units_of
from rskc.model.outliers import Distances
from rskc.model.summary import in_units
from rskc.pictures import models as pictures
from rskc.pictures.models import FLAGS
from rskc.pictures.palette import GRAY, INK, MARKERS, PALETTE, cluster_markers
from rskc.report._facts import CHART_WIDTH, SPECS, Facts
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
MOST_IN_KEY, MOST_TO_REPEAT = 40, 12  # clusters in the first key, and in those of later charts
ON_PAGE = {GRAY: "var(--soft)", PALETTE[5]: "var(--c5)", PALETTE[0]: "var(--c0)"}
ON_PAGE[INK] = "var(--ink)"
RED, DEEP_BLUE = "#b2182b", "#2166ac"  # of the scheme redblue
SHAPES = dict(
    zip(MARKERS, ("circle", "square", "diamond", "triangle-down", "triangle-up"), strict=True)
)
DASHES = [[1, 0], [5, 4], [2, 3], [8, 3, 2, 3]]
NUMBER = ",.4~r"  # four digits, no exponent
WORDS = ("title", "caption", "hint")  # of the file, beside the specification
Chart = dict[str, Any]


def charts_of(facts: Facts) -> dict[str, Chart]:
    """Make the charts that can be drawn of this model, in the order of the page."""
    # With one cluster there is no reason to prefer features, nor to look at the first of them.
    is_one = facts.K == 1 and np.ptp(facts.weights) == 0
    is_seen = bool(facts.seen.any() and len(facts.support))
    makers = {
        _clusters: is_seen,
        _silhouettes: is_seen and facts.silhouette is not None,
        _weights: not is_one,
        _heat_map: is_seen and not is_one,
        _outliers: is_seen,
        _outlying_cells: is_seen and facts.cells is not None,
    }
    charts = [make(facts) for make, can_be_drawn in makers.items() if can_be_drawn]
    return {chart["id"]: chart for chart in charts}


def _chart(
    name: str, *, alt: str, data: Chart, key: Any = (), notes: Any = (), **values: Any
) -> Chart:
    """Make a chart of its words, its data and the values of its specification.

    Entries of the key and notes that are empty are left out.
    """
    for columns in data.values():
        for field, column in columns.items():
            if not isinstance(column, list):
                # Of places among hundreds, or of any.
                digits = 6 if field in ("place", "start", "end") else 4
                columns[field] = plain_numbers(column, digits)
    words = {part: text.format_map(values) for part, text in SPECS[name].items() if part in WORDS}
    drawn = {"key": list(filter(None, key)), "spec": _spec(name, values), "data": data}
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


def _format(values: list[float]) -> str:
    """Choose digits, or powers of ten where these would be many: distances in millionths."""
    largest = max(map(abs, values), default=1.0)
    return NUMBER if 1e-3 <= largest < 1e9 or largest == 0 else ".3~e"


def _colors(K: int) -> list[str]:
    """Return colors of K clusters, those of the displays; beyond 20 they repeat."""
    return [f"var(--c{k % len(PALETTE)})" for k in range(K)]


def _look(name: str, values: Any, styles: Any) -> Chart:
    """Give each value of a field a style; the page writes the legend."""
    scale = {"domain": list(values), "range": list(styles)}
    return {"field": name, "type": "nominal", "title": None, "scale": scale, "legend": None}


def _entry(shape: str, color: str, label: str) -> Chart:
    """Make an entry of the key."""
    return {"shape": shape, "color": ON_PAGE.get(color, color), "label": label}


def _cluster_key(sizes: Any, most: int = MOST_TO_REPEAT) -> list[Chart]:
    """Make the entries of the key for clusters, if there are not too many."""
    K = len(sizes)
    looks = zip(_colors(K), cluster_markers(K), sizes, strict=True)
    return [
        _entry(SHAPES[marker], color, f"(n = {size:,})") | {"cluster": k}
        for k, (color, marker, size) in enumerate(looks)
        if most >= K
    ]


def _numbers_along(name: str, title: str, scale: Chart, **more: Any) -> Chart:
    """Place the numbers of a field along an axis."""
    return {"field": name, "type": "quantitative", "title": title, "scale": scale, **more}


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


def _notes(facts: Facts, candidates: np.ndarray, rows: np.ndarray) -> list[str]:
    """Return the notes below a chart on cases that are not drawn."""
    chosen, hidden = "", facts.n - len(candidates)
    outlying, drawn = (int(facts.outliers[c].sum()) for c in (candidates, rows))
    if len(rows) < len(candidates):
        which = f"all {count(outlying, 'outlier')}" if outlying > 1 else "the outlier"
        if drawn < outlying:
            which = f"{drawn:,} of {count(outlying, 'outlier')}, the farthest among them"
        which = f": {which}, and others taken" if outlying else ", taken"
        chosen = f"Drawn: {len(rows):,} of {count(len(candidates), 'case')}{which} at random."
    unseen = f"Not drawn: {count(hidden, 'case')} without an observed feature that has weight."
    return [chosen, unseen if hidden else ""]


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
    drawn = np.searchsorted(seen, rows)
    places, nearer = plane.positions[drawn], plane.looks_nearer(cases, drawn)
    x, y = np.clip(places, low, high).T
    points = {"x": x, "y": y, "distance": facts.distances[rows], "nearer": nearer}
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
    n_nearer = int(nearer.sum())
    rings = ", as far as two dimensions can show; rings mark cases farther away than they look"

    pad, few = 0.03 * (high - low), len(rows) <= FEW_POINTS
    axes = {
        axis: _numbers_along(axis, name, {"domain": plain_numbers(ends), "nice": False})
        for axis, name, ends in zip("xy", names, np.transpose([low - pad, high + pad]), strict=True)
    }
    return _chart(
        "clusters",
        alt=f"Scatter plot of the cases by {names[0]} and {names[1]}, colored by cluster: "
        f"{sentence_list(words, 12)}{crosses}.",
        farther=rings if n_nearer else "",
        notes=[
            n_beyond and f"{beyond} far beyond the frame, drawn on its edge.",
            plane.n_filled and f"{filled} of the cluster, for the drawing only.",
            *_notes(facts, seen, rows),
        ],
        key=[
            *_cluster_key(facts.sizes, MOST_IN_KEY),
            outliers and _entry("cross", INK, outliers),
            n_nearer and _entry("ring", GRAY, f"farther than it looks ({n_nearer:,})"),
        ],
        data={"points": points | _columns(facts, rows), "centers": centers | {"cluster": used}},
        color=_look("cluster", range(K), _colors(K)),
        clusters=list(range(K)),
        shapes=[SHAPES[marker] for marker in cluster_markers(K)],
        digits=_format(points["distance"]),
        size=55 if few else 28,
        cross_size=50 if few else 24,
        cross_width=2 if few else 1.3,
        ring_size=170 if few else 90,
        **axes,
    )


def _silhouettes(facts: Facts) -> Chart:
    """Draw a bar for each case, sorted within clusters, and the mean of each cluster."""
    assert facts.silhouette is not None
    values, seen = facts.silhouette.values, np.flatnonzero(facts.seen)
    rows = _chosen(facts, seen, MOST_BARS)
    rows = rows[np.lexsort((-values[rows], facts.labels[rows]))]
    labels = facts.labels[rows]
    used, order = np.unique(labels, return_inverse=True)
    places = np.arange(len(rows)) + order * max(1.0, 0.01 * len(rows))  # a gap after each cluster
    means = [facts.mean_silhouette(facts.labels == k) for k in used]
    starts, ends = (np.array([places[labels == k][end] for k in used]) for end in (0, -1))
    words = [f"cluster {k} {number(mean, 2)}" for k, mean in zip(used, means, strict=True)]
    by_cluster = _look("cluster", range(facts.K), _colors(facts.K))
    bars = {"place": places, "end": places + 1, "value": values[rows]}
    bars |= {"second": facts.silhouette.second[rows]}
    lines = {"cluster": used, "start": starts, "end": ends + 1, "mean": np.array(means, float)}
    return _chart(
        "silhouettes",
        alt="Bars of the silhouettes of the cases, sorted within clusters, from 0 to 1. The mean "
        f"without outliers by cluster: {sentence_list(words, 12)}.",
        notes=_notes(facts, seen, rows),
        key=[
            *_cluster_key(facts.sizes),
            facts.outliers[rows].any() and _entry("square", INK, "outliers"),
            _entry("line", INK, "mean of the cluster, without outliers"),
        ],
        data={"bars": bars | _columns(facts, rows), "means": lines},
        color={"condition": {"test": "datum.outlier == 1", "value": ON_PAGE[INK]}, **by_cluster},
        end=float(places[-1] + 1),
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
        limits=plain_numbers(pictures.symmetric_limits(standardized)),
        color=_look("cluster", range(facts.K), _colors(facts.K)),
    )


def _outliers(facts: Facts) -> Chart:
    """Draw the two distances of each case, with the thresholds."""
    scatter = pictures.distance_scatter(Distances(facts.distances, facts.unweighted))
    seen = np.flatnonzero(scatter.seen)
    rows = _chosen(facts, seen, MOST_POINTS)
    codes = facts.flags[rows]
    outlying = np.flatnonzero(facts.seen & facts.outliers)
    farthest = outlying[np.argsort(-facts.distances[outlying], kind="stable")[:3]]
    names = clean_names((facts.case_names[i] for i in farthest), 32)
    points = dict(zip("xy", scatter.points[np.searchsorted(seen, rows)].T, strict=True))
    flags = {"flag": [list(FLAGS)[code % 4] for code in codes], "trimmed": codes == 4}

    colors, markers, words = zip(*FLAGS.values(), strict=True)
    shapes = [SHAPES[marker] for marker in markers]
    numbers = np.bincount(facts.flags[scatter.seen], minlength=len(FLAGS)).tolist()
    key = [
        n and _entry(shape, color, f"{label} ({n:,})")
        for shape, color, label, n in zip(
            [*shapes[:4], "ring"], colors, words, numbers, strict=True
        )
    ]
    beyond: list[str] = []
    place: Chart = {}
    for i, (axis, flag) in enumerate(zip("xy", ("weighted", "unweighted"), strict=True)):
        (limit,) = plain_numbers(facts.thresholds[i : i + 1])
        # Domains are given: Vega finds none for a layer without points, and warns.
        ends = [*points[axis], *([limit] if limit else [])]
        ticks: Chart = {"format": _format(points[axis]), "labelOverlap": "greedy"}
        if scatter.logarithmic[i]:
            kind, ticks["tickCount"] = "log scale", 6
            scale = {"type": "log", "domain": [min(ends), max(ends)], "nice": False, "padding": 12}
        else:
            kind, high = "cube root", 1.15 * max(ends) or 1
            scale = {"type": "pow", "exponent": 1 / 3, "domain": [0, high], "nice": False}
            ticks["values"] = pictures.cube_ticks(high)
        title = f"{flag} squared distance, {kind}"
        place |= {axis: _numbers_along(axis, title, scale, axis=ticks), flag: limit}
        if limit is not None:
            beyond.append(f"{flag} {number(limit)}")
            key.append(_entry("line", colors[1 + i], f"{flag} threshold {number(limit)}"))
    farther = f" Farthest: {sentence_list(names)}." if names else ""
    return _chart(
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
        colors=[ON_PAGE[color] for color in colors],
        shapes=shapes,
        numbers=_format(points["x"]),
        **place,
    )


def _outlying_cells(facts: Facts) -> Chart:
    """Draw the table with a mark at each outlying cell, cases sorted by cluster."""
    assert facts.cells is not None
    n, p, n_cells = facts.n, facts.p, len(facts.cells)
    drawn = np.arange(n_cells)
    if n_cells > MOST_MARKS:  # the farthest come first
        others = np.random.default_rng(0).permutation(drawn[FARTHEST:])
        drawn = np.r_[drawn[:FARTHEST], np.sort(others[: MOST_MARKS - FARTHEST])]
    note = f"Drawn: {len(drawn):,} of {count(n_cells, 'cell')}: the {FARTHEST:,} that are farthest "
    note += "from their centers, and others taken at random."
    frame = in_units(facts.cells.iloc[drawn], facts.units)
    rows, columns = frame["row"].to_numpy(), frame["column"].to_numpy()
    marks = {
        "x": columns,
        "y": pictures.rows_by_cluster(facts.labels)[rows],
        "feature": clean_names(np.take(facts.feature_names, columns), CHART_WIDTH),
        **{name: frame[name] for name in ("scales", "value", "center")},
    }
    used, height = np.unique(facts.labels), min(max(3 * n, 200), 480)
    ends = np.cumsum(facts.sizes)[used]
    side = min(max(height / n, 3.0 if n_cells > FEW_POINTS else 5.0), 8.0)
    return _chart(
        "outlying",
        alt=f"The table of {count(n, 'case')}, sorted by cluster, and {count(p, 'feature')}, with "
        f"a mark at each of {count(n_cells, 'outlying cell')}.",
        cutoff=number(facts.model.cell_cutoff_),
        far=FAR,
        notes=[n_cells > MOST_MARKS and note],
        key=[
            *_cluster_key(facts.sizes),
            _entry("square", RED, "above the center"),
            _entry("square", DEEP_BLUE, "below the center"),
        ],
        data={
            "marks": marks | _columns(facts, rows),
            "clusters": {"cluster": used, "start": ends - facts.sizes[used], "end": ends},
        },
        height=height,
        size=side**2,
        last_feature=p - 0.5,
        last_case=n - 0.5,
        limits=[-FAR, FAR],
        color=_look("cluster", range(facts.K), _colors(facts.K)),
    )


# Searches


def curves_of(summary: Chart) -> list[Chart]:
    """Make a chart for each search that tried something; its id is ``search-0`` and so on."""
    return [
        {"id": f"search-{i}", "caption": search["explain"], **search, **_drawn(search["curve"])}
        for i, search in enumerate(summary["searches"])
        if search["table"]["rows"]
    ]


def _drawn(curve: Chart) -> Chart:
    """Draw lines, the dots and error bars below them, a threshold, and a ring around the choice."""
    points, lines, numbers = curve["points"], curve["lines"], range(len(curve["lines"]))
    palette = _colors(1 + max(line["color"] for line in lines))
    colors = [palette[line["color"]] for line in lines]
    data = {"curve": points, "dots": curve["dots"]}
    key = [
        _entry("dash" if line["dash"] else "line", color, line["label"])
        for line, color in zip(lines, colors, strict=True)
    ]
    if curve["threshold"]:
        key.append(_entry("dash", GRAY, curve["threshold"][0]))
    if curve["chosen"] is not None:
        key.append(_entry("ring", INK, "chosen"))
        data["chosen"] = {name: [points[name][curve["chosen"]]] for name in ("x", "y")}
    looks = {
        "x": _axis(curve["by"], points["x"]),
        "name": curve["name"],
        "color": _look("line", numbers, colors),
        "dash": _look("line", numbers, [DASHES[line["dash"] % len(DASHES)] for line in lines]),
        "setting": AXES[curve["by"]],
        # A layer without data has no domain, of which Vega warns.
        "dots": curve["dots"]["x"] or None,
        "errors": next((low for low in points["low"] if low is not None), None),
        "threshold": curve["threshold"] and curve["threshold"][1],
        "chosen": curve["chosen"],
        "above": curve["above"],
    }
    return {"key": key, "spec": _spec("search", looks), "data": data}


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
