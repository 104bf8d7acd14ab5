"""Searches on the page: the numbers of each as a plain section, and its chart in Vega-Lite.

What a search found, by which rule, and what follows is said by ``rskc.selection.findings``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from rskc.report._charts import (
    BLUE,
    INK,
    NUMBER,
    ORANGE,
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
from rskc.report._facts import CHART_WIDTH, clean_names, plain_numbers
from rskc.selection import (
    Clest,
    FeaturePath,
    GapL1,
    GridSearch,
    PredictionStrength,
    Stability,
    TrimCurves,
)
from rskc.selection.findings import Finding, describe, features_by_entry
from rskc.utils.wording import count, exact_percent, number

MOST_LINES = 15  # features of a path that are drawn
CER = "classification error rate"
RING = entry("ring", INK, "chosen")


def sections_of(searches: Any) -> list[dict[str, Any]]:
    """Make a section for each search, in the order given."""
    return [_section(one) for one in (searches if isinstance(searches, Iterable) else [searches])]


def _section(search: Any) -> dict[str, Any]:
    finding = describe(search)
    name, kind = next((n, k) for n, k in KINDS.items() if isinstance(search, k.searched))
    return {
        "kind": name,
        "name": name,
        "title": finding.title,
        "found": finding.headline,
        "explain": finding.explanation,
        "notes": finding.changes,
        "suggests": finding.suggests,
        "table": finding.table._asdict(),
        **kind.numbers(search, finding),
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
        }
        | KINDS[section["kind"]].draw(section)
        for i, section in enumerate(summary["searches"])
        if section["table"]["rows"]
    ]


# Numbers


def _columns(frame: Any, *names: str) -> dict[str, list]:
    return {name: plain_numbers(frame[name].to_numpy(float), 5) for name in names}


def _clest(search: Clest, finding: Finding) -> dict[str, Any]:
    table, cers = search.table_, search.observed_cers_
    alt = f"Lines of the prediction error by number of clusters; chosen: {finding.result}"
    for row in table[table.chosen].itertuples():
        alt += f", error {row.observed_cer:.3f} against {row.reference_cer:.3f} without clusters"
    return {
        "alt": f"{alt}.",
        "curve": _columns(table, "n_clusters", "observed_cer", "reference_cer", "agreement"),
        "chosen": search.n_clusters_,
        "splits": {
            "n_clusters": plain_numbers(np.tile(table.n_clusters, len(cers))),
            "value": plain_numbers(cers.ravel()),
        },
    }


def _gap_l1(search: GapL1, finding: Finding) -> dict[str, Any]:
    table = search.table_
    least, largest = number(table.l1_bound.min()), number(table.l1_bound.max())
    return {
        "alt": f"Line of the gap by L1 bound, from {least} to {largest}; chosen: {finding.result}.",
        "curve": _columns(table, "l1_bound", "gap", "standard_error", "n_features"),
        "chosen": float(f"{finding.suggests['l1_bound']:.5g}"),
    }


def _strength(search: PredictionStrength, finding: Finding) -> dict[str, Any]:
    return {
        "alt": "Line of the prediction strength by number of clusters, with the threshold "
        f"{search.threshold:g}; chosen: {finding.result}.",
        "curve": _columns(search.table_, "n_clusters", "strength", "standard_error"),
        "threshold": float(search.threshold),
        "chosen": search.n_clusters_,
    }


def _stability(search: Stability, finding: Finding) -> dict[str, Any]:
    table, agreements = search.table_, search.agreements_
    alt = f"Lines of the stability by number of clusters; chosen: {finding.result}"
    for row in table[table.chosen].itertuples():
        alt += f", the least stable cluster has {row.stability:.2f}, "
        alt += f"halves agree by {row.agreement:.2f}"
    made = ~np.isnan(agreements.ravel())
    return {
        "alt": f"{alt}. The threshold is {search.threshold:g}.",
        "curve": _columns(table, "n_clusters", "stability", "agreement", "p_value"),
        "threshold": float(search.threshold),
        "chosen": search.n_clusters_,
        "n_slices": getattr(search, "n_slices_", None),  # of a gradient
        "splits": {
            "n_clusters": plain_numbers(np.tile(table.n_clusters, len(agreements))[made]),
            "value": plain_numbers(agreements.ravel()[made]),
        },
    }


def _trims(search: TrimCurves, finding: Finding) -> dict[str, Any]:
    table = search.table_
    least, largest = exact_percent(table.trim.min()), exact_percent(table.trim.max())
    return {
        "alt": "Lines of the change of the partition from the share before, by trimming share from "
        f"{least} to {largest}; suggested: {finding.result}.",
        "curve": {
            **_columns(table, "n_clusters", "trim", "n_outliers", "within"),
            "change": plain_numbers(table.moved),
            # Of the least share no change is known: its ring is drawn at 0.
            "ring": plain_numbers(table.moved.fillna(0.0)),
            "chosen": plain_numbers(table.chosen),
        },
    }


def _grid(search: GridSearch, finding: Finding) -> dict[str, Any]:
    table = search.table_
    largest = table[table.chosen].consensus.iloc[0]
    return {
        "alt": f"Heat map of the consensus of {count(len(table), 'setting')}; the largest for "
        f"this number of clusters is {largest:.2f}, with {finding.result}.",
        "curve": {
            **_columns(table, "n_clusters", "l1_bound", "trim", "consensus", "n_features"),
            "chosen": plain_numbers(table.chosen),
        },
    }


def _path(path: FeaturePath, finding: Finding) -> dict[str, Any]:
    drawn = features_by_entry(path)[:MOST_LINES]
    (fewest, most), (least, root) = path.n_features[[0, -1]], path.l1_bounds[[0, -1]]
    lines = count(len(drawn), "feature")
    return {
        "explain": f"{finding.explanation} Drawn are the first {lines}.",
        "alt": f"Lines of the weights of {lines} by L1 bound; the first to get weight: "
        f"{finding.result}. From {count(int(fewest), 'feature')} at {number(least)} to "
        f"{int(most):,} at {number(root)}.",
        "curve": {
            "l1_bound": plain_numbers(np.tile(path.l1_bounds, len(drawn)), 5),
            "weight": plain_numbers(path.weights[:, drawn].T.ravel()),
            "line": np.repeat(np.arange(len(drawn)), len(path.l1_bounds)).tolist(),
        },
        "names": clean_names(path.feature_names[drawn], CHART_WIDTH),
    }


# Charts


def _line(x: Chart, y: Chart, color: Any, tooltip: list, dash: Any = None) -> Chart:
    mark: Chart = {"type": "line", "point": {"filled": True, "size": 45, "opacity": 1}}
    if dash:
        mark["strokeDash"] = dash
    return layer("curve", mark, {"x": x, "y": y, "color": color, "tooltip": tooltip})


def _ring(x: Chart, y: Chart, test: str, before: Any = ()) -> list[Chart]:
    """Draw a ring around what was chosen, on a lighter one so that it shows on any color."""
    mark = {"type": "point", "filled": False, "size": 260, "opacity": 1, "tooltip": None}
    return [
        layer(
            "curve",
            {**mark, "stroke": color, "strokeWidth": width},
            {"x": x, "y": y},
            transform=[*before, *where(test)],
        )
        for color, width in ((PAPER, 5), (INK, 2))
    ]


def _around_choice(
    section: Chart, x: Chart, y: Chart, layers: list[Chart], key: list[Chart]
) -> Chart:
    """Make the chart of a curve, with a ring around what was chosen."""
    chosen, by = section["chosen"], x["field"]
    # One cluster often is not on the curve, and Vega warns then.
    if any(math.isclose(value, chosen, rel_tol=1e-6) for value in section["curve"][by]):
        layers += _ring(x, y, f"abs(datum.{by} - {chosen}) < 1e-6 * datum.{by}")
        key.append(RING)
    data = {name: section[name] for name in ("curve", "splits") if name in section}
    return {"key": key, "spec": chart(280, layers), "data": data}


def _threshold(value: float) -> Chart:
    mark = {"type": "rule", "stroke": SOFT, "strokeDash": [5, 4], "strokeWidth": 1.4}
    return constant(mark, {"y": {"datum": value, "type": "quantitative"}})


def _numbers_axis(numbers: list[float]) -> Chart:
    """Make an axis of the number of clusters, with a tick at each."""
    axis = {"values": numbers, "format": "d", "grid": False}
    ends = [min(numbers, default=1) - 0.3, max(numbers, default=1) + 0.3]  # few cases: none tried
    scale = {"domain": ends, "nice": False}
    return amount("n_clusters", "number of clusters", axis=axis, scale=scale)


def _bounds_axis() -> Chart:
    scale = {"type": "log", "nice": False, "padding": 12}
    axis = {"tickCount": 6, "format": NUMBER, "labelOverlap": "greedy", "grid": False}
    return amount("l1_bound", "L1 bound, log scale", scale=scale, axis=axis)


def _draw_clest(section: Chart) -> Chart:
    x = _numbers_axis(section["curve"]["n_clusters"])
    observed, reference = amount("observed_cer", CER), amount("reference_cer", CER)
    tooltip = tips(
        n_clusters="clusters",
        observed_cer="error",
        reference_cer="error without clusters",
        agreement="agreement",
    )
    dot = {"type": "point", "filled": True, "size": 14, "fill": BLUE, "opacity": 0.3}
    layers = [
        layer("splits", dot, {"x": x, "y": amount("value", CER)}),
        _line(x, observed, {"value": BLUE}, tooltip),
        _line(x, reference, {"value": ORANGE}, tooltip, [5, 4]),
    ]
    key = [
        entry("line", BLUE, "error (median); dots: single splits"),
        entry("dash", ORANGE, "error without clusters (mean)"),
    ]
    return _around_choice(section, x, observed, layers, key)


def _draw_gap_l1(section: Chart) -> Chart:
    titles = {"l1_bound": "L1 bound", "n_features": "features"}
    return _with_errors(section, _bounds_axis(), "gap", titles)


def _draw_strength(section: Chart) -> Chart:
    x = _numbers_axis(section["curve"]["n_clusters"])
    made = _with_errors(section, x, "strength", {"n_clusters": "clusters"})
    made["spec"]["layer"].append(_threshold(section["threshold"]))
    made["key"].append(entry("dash", SOFT, f"threshold {section['threshold']:g}"))
    return made


def _with_errors(section: Chart, x: Chart, name: str, titles: dict[str, str]) -> Chart:
    y = amount(name, name, scale={"zero": False})
    ends = {"low": f"datum.{name} - datum.standard_error"}
    ends["high"] = f"datum.{name} + datum.standard_error"
    error = {"x": x, "y": amount("low", name, scale={"zero": False}), "y2": {"field": "high"}}
    tooltip = tips(**titles, **{name: name}, standard_error="standard error")
    layers = [
        layer(
            "curve",
            {"type": "rule", "stroke": BLUE, "strokeWidth": 1.5},
            error,
            transform=[{"calculate": value, "as": end} for end, value in ends.items()],
        ),
        _line(x, y, {"value": BLUE}, tooltip),
    ]
    key = [entry("line", BLUE, f"{name} and its standard error")]
    return _around_choice(section, x, y, layers, key)


def _draw_stability(section: Chart) -> Chart:
    x, title = _numbers_axis(section["curve"]["n_clusters"]), "stability, agreement"
    least, agreement = amount("stability", title), amount("agreement", title)
    tooltip = tips(
        n_clusters="clusters",
        stability="least stable cluster",
        agreement="halves agree",
        p_value="p, single cluster",
    )
    dot = {"type": "point", "filled": True, "size": 14, "fill": ORANGE, "opacity": 0.4}
    layers = [
        layer("splits", dot, {"x": x, "y": amount("value", title)}),
        _line(x, agreement, {"value": ORANGE}, tooltip, [5, 4]),
        _line(x, least, {"value": BLUE}, tooltip),
        _threshold(section["threshold"]),
    ]
    key = [
        entry("line", BLUE, "least stable cluster"),
        entry("dash", ORANGE, "halves agree (median); dots: single splits"),
        entry("dash", SOFT, f"threshold {section['threshold']:g}"),
    ]
    return _around_choice(section, x, least, layers, key)


def _draw_trims(section: Chart) -> Chart:
    numbers = sorted(set(section["curve"]["n_clusters"]))
    colors = color_variables(len(numbers))
    x = amount("trim", "share trimmed", axis={"format": "~%", "grid": False, "tickCount": 6})
    y, ring = (amount(name, "change from the share before") for name in ("change", "ring"))
    tooltip = tips(
        n_clusters="clusters",
        trim="trim",
        change="change from the share before",
        n_outliers="outliers",
        within="within sum",
    )
    scale = {"domain": numbers, "range": colors}
    lines = _line(x, y, field("n_clusters", "nominal", legend=None, scale=scale), tooltip)
    key = [
        entry("line", color, count(int(K), "cluster"))
        for K, color in zip(numbers, colors, strict=True)
    ]
    layers = [lines, *_ring(x, ring, "datum.chosen == 1")]
    return {
        "key": [*key, entry("ring", INK, "trims all outlying cases")],
        "spec": chart(260, layers),
        "data": {"curve": section["curve"]},
    }


def _draw_grid(section: Chart) -> Chart:
    names = "datum.n_clusters + ' clusters, trim ' + format(datum.trim, '.2~g')"
    bound = "isValid(datum.l1_bound) ? format(datum.l1_bound, '.3~g') : 'none'"
    made = [{"calculate": names, "as": "row"}, {"calculate": bound, "as": "bound"}]
    x = field("bound", "ordinal", "L1 bound", sort=None, axis={"labelAngle": 0})
    y = field("row", "ordinal", sort=None, axis={"labelLimit": 160})
    scale = {"scheme": "blues", "domain": [0, 1], "clamp": True}
    legend = {"title": "consensus", "orient": "top", "gradientThickness": 10}
    cells = {
        "x": x,
        "y": y,
        "fill": amount("consensus", scale=scale, legend=legend),
        "tooltip": tips(
            n_clusters="clusters",
            l1_bound="L1 bound",
            trim="trim",
            consensus="consensus",
            n_features="features",
        ),
    }
    cell = {"type": "rect", "stroke": PAPER, "strokeWidth": 1}
    layers = [layer("curve", cell, cells, transform=made)]
    layers += _ring(x, y, "datum.chosen == 1", before=made)
    rows = len({*zip(section["curve"]["n_clusters"], section["curve"]["trim"], strict=True)})
    return {
        "key": [RING],
        "spec": chart(60 + 24 * rows, layers),
        "data": {"curve": section["curve"]},
    }


def _draw_path(section: Chart) -> Chart:
    names, colors = section["names"], color_variables(len(section["names"]))
    scale = {"domain": list(range(len(names))), "range": colors}
    lines = {
        "x": _bounds_axis(),
        "y": amount("weight", "weight"),
        "color": field("line", "nominal", legend=None, scale=scale),
        "tooltip": tips(feature="feature", l1_bound="L1 bound", weight="weight"),
    }
    made = [{"calculate": "features[datum.line]", "as": "feature"}]
    mark = {"type": "line", "strokeWidth": 1.8, "point": {"size": 24}}
    layers = [layer("curve", mark, lines, transform=made)]
    return {
        "key": [entry("line", color, name) for name, color in zip(names, colors, strict=True)],
        "spec": chart(300, layers, params=[{"name": "features", "value": names}]),
        "data": {"curve": section["curve"]},
    }


class Kind(NamedTuple):
    """How one kind of search gets on the page."""

    searched: type
    numbers: Any  # (search, finding) -> what the section has beside the finding
    draw: Any  # section -> chart


KINDS = {
    "Stability": Kind(Stability, _stability, _draw_stability),
    "Clest": Kind(Clest, _clest, _draw_clest),
    "GapL1": Kind(GapL1, _gap_l1, _draw_gap_l1),
    "PredictionStrength": Kind(PredictionStrength, _strength, _draw_strength),
    "TrimCurves": Kind(TrimCurves, _trims, _draw_trims),
    "GridSearch": Kind(GridSearch, _grid, _draw_grid),
    "FeaturePath": Kind(FeaturePath, _path, _draw_path),
}
