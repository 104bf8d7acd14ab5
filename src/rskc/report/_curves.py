"""Charts of the searches: plain sections of the summary -> Vega-Lite."""

from __future__ import annotations

from typing import Any

from rskc.report._colors import BLUE, INK, ORANGE, SOFT, cluster_colors
from rskc.report._vega import NUMBER, chart, field, tips

CER = "classification error rate"


def curves_of(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """A chart for each search; its id is ``search-0`` and so on."""
    return [
        {
            "id": f"search-{i}",
            "title": section["title"],
            "alt": section["alt"],
            "caption": section["explain"],
            "notes": [],
        }
        | MAKERS[section["kind"]](section)
        for i, section in enumerate(summary["searches"])
    ]


def _line(x: dict, y: dict, color: Any, tooltip: list, dash: Any = None) -> dict[str, Any]:
    mark = {"type": "line", "point": {"filled": True, "size": 45, "opacity": 1}}
    return {
        "data": {"name": "curve"},
        "mark": mark | ({"strokeDash": dash} if dash else {}),
        "encoding": {"x": x, "y": y, "color": color, "tooltip": tooltip},
    }


def _errors(x: dict, name: str) -> dict[str, Any]:
    low, high = (f"datum.{name} {sign} datum.standard_error" for sign in "-+")
    y = field("low", "quantitative", name, scale={"zero": False})
    return {
        "data": {"name": "curve"},
        "transform": [{"calculate": low, "as": "low"}, {"calculate": high, "as": "high"}],
        "mark": {"type": "rule", "stroke": BLUE, "strokeWidth": 1.5},
        "encoding": {"x": x, "y": y, "y2": {"field": "high"}},
    }


def _ring(x: dict, y: dict, test: str) -> list[dict[str, Any]]:
    """A ring around what was chosen, on a lighter one so that it shows on any color."""
    return [
        {
            "data": {"name": "curve"},
            "transform": [{"filter": test}],
            "mark": {"type": "point", "filled": False, "size": 260, "opacity": 1, "tooltip": None}
            | {"stroke": color, "strokeWidth": width},
            "encoding": {"x": x, "y": y},
        }
        for color, width in (("var(--paper)", 5), (INK, 2))
    ]


def _rule(value: float) -> dict[str, Any]:
    mark = {"type": "rule", "stroke": SOFT, "strokeDash": [5, 4], "strokeWidth": 1.4}
    return {
        "data": {"values": [{}]},
        "mark": mark,
        "encoding": {"y": {"datum": value, "type": "quantitative"}},
    }


def _numbers_axis(numbers: list[float]) -> dict[str, Any]:
    """The number of clusters, with a tick at each."""
    axis = {"values": numbers, "format": "d", "grid": False}
    scale = {"domain": [min(numbers) - 0.3, max(numbers) + 0.3], "nice": False}
    return field("n_clusters", "quantitative", "number of clusters", axis=axis, scale=scale)


def _bounds_axis() -> dict[str, Any]:
    scale = {"type": "log", "nice": False, "padding": 12}
    axis = {"tickCount": 6, "format": NUMBER, "labelOverlap": "greedy", "grid": False}
    return field("l1_bound", "quantitative", "L1 bound, log scale", scale=scale, axis=axis)


def _ring_key() -> dict[str, str]:
    return {"shape": "ring", "color": INK, "label": "chosen"}


def _clest(section: dict[str, Any]) -> dict[str, Any]:
    x = _numbers_axis(section["curve"]["n_clusters"])
    observed = field("observed_cer", "quantitative", CER)
    tooltip = tips(
        n_clusters="clusters",
        observed_cer="error",
        reference_cer="error without clusters",
        agreement="agreement",
    )
    dots = {
        "data": {"name": "splits"},
        "mark": {"type": "point", "filled": True, "size": 14, "fill": BLUE, "opacity": 0.3},
        "encoding": {"x": x, "y": field("value", "quantitative", CER)},
    }
    reference = field("reference_cer", "quantitative", CER)
    layers = [
        dots,
        _line(x, observed, {"value": BLUE}, tooltip),
        _line(x, reference, {"value": ORANGE}, tooltip, [5, 4]),
        *_ring(x, observed, f"datum.n_clusters == {section['chosen']}"),
    ]
    return {
        "key": [
            {"shape": "line", "color": BLUE, "label": "error (median); dots: single splits"},
            {"shape": "dash", "color": ORANGE, "label": "error without clusters (mean)"},
            _ring_key(),
        ],
        "spec": chart(280, layers),
        "data": {"curve": section["curve"], "splits": section["splits"]},
    }


def _gap_l1(section: dict[str, Any]) -> dict[str, Any]:
    tooltip = tips(
        l1_bound="L1 bound", n_features="features", gap="gap", standard_error="standard error"
    )
    return _with_errors(section, _bounds_axis(), "gap", "l1_bound", tooltip)


def _gap_k(section: dict[str, Any]) -> dict[str, Any]:
    tooltip = tips(n_clusters="clusters", gap="gap", standard_error="standard error")
    x = _numbers_axis(section["curve"]["n_clusters"])
    return _with_errors(section, x, "gap", "n_clusters", tooltip)


def _strength(section: dict[str, Any]) -> dict[str, Any]:
    tooltip = tips(n_clusters="clusters", strength="strength", standard_error="standard error")
    x = _numbers_axis(section["curve"]["n_clusters"])
    made = _with_errors(section, x, "strength", "n_clusters", tooltip)
    made["spec"]["layer"].append(_rule(section["threshold"]))
    label = f"threshold {section['threshold']:g}"
    made["key"].append({"shape": "dash", "color": SOFT, "label": label})
    return made


def _with_errors(
    section: dict[str, Any], x: dict, name: str, chosen_by: str, tooltip: list
) -> dict[str, Any]:
    y = field(name, "quantitative", name, scale={"zero": False})
    layers = [
        _errors(x, name),
        _line(x, y, {"value": BLUE}, tooltip),
        *_ring(x, y, f"abs(datum.{chosen_by} - {section['chosen']}) < 1e-6 * datum.{chosen_by}"),
    ]
    return {
        "key": [
            {"shape": "line", "color": BLUE, "label": f"{name} and its standard error"},
            _ring_key(),
        ],
        "spec": chart(280, layers),
        "data": {"curve": section["curve"]},
    }


def _trims(section: dict[str, Any]) -> dict[str, Any]:
    numbers = sorted(set(section["curve"]["n_clusters"]))
    colors = cluster_colors(len(numbers))
    scale = {"domain": numbers, "range": colors}
    ticks = {"format": "~%", "grid": False, "tickCount": 6}
    x = field("trim", "quantitative", "share trimmed", axis=ticks)
    y = field("change", "quantitative", "change if more is trimmed")
    tooltip = tips(
        n_clusters="clusters",
        trim="trim",
        change="change if more is trimmed",
        n_outliers="outliers",
        within="within sum",
    )
    lines = _line(x, y, field("n_clusters", "nominal", legend=None, scale=scale), tooltip)
    key = [
        {"shape": "line", "color": c, "label": f"{K:g} cluster{'s' * (K != 1)}"}
        for K, c in zip(numbers, colors, strict=True)
    ]
    key += [{"shape": "dash", "color": SOFT, "label": f"no more than {section['same']:.0%}"}]
    return {
        "key": [*key, _ring_key()],
        "spec": chart(260, [lines, _rule(section["same"]), *_ring(x, y, "datum.chosen == 1")]),
        "data": {"curve": section["curve"]},
    }


def _grid(section: dict[str, Any]) -> dict[str, Any]:
    names = "datum.n_clusters + ' clusters, trim ' + format(datum.trim, '.2~g')"
    bound = "isValid(datum.l1_bound) ? format(datum.l1_bound, '.3~g') : 'none'"
    made = [{"calculate": names, "as": "row"}, {"calculate": bound, "as": "bound"}]
    x = field("bound", "ordinal", "L1 bound", sort=None, axis={"labelAngle": 0})
    y = field("row", "ordinal", sort=None, axis={"labelLimit": 160})
    layers = [_consensus_layer(x, y), *_ring(x, y, "datum.chosen == 1")]
    rows = len({*zip(section["curve"]["n_clusters"], section["curve"]["trim"], strict=True)})
    return {
        "key": [_ring_key()],
        "spec": chart(60 + 24 * rows, [_after(made, layer) for layer in layers]),
        "data": {"curve": section["curve"]},
    }


def _consensus_layer(x: dict, y: dict) -> dict[str, Any]:
    scale = {"scheme": "blues", "domain": [0, 1], "clamp": True}
    legend = {"title": "consensus", "orient": "top", "gradientThickness": 10}
    return {
        "data": {"name": "curve"},
        "mark": {"type": "rect", "stroke": "var(--paper)", "strokeWidth": 1},
        "encoding": {
            "x": x,
            "y": y,
            "fill": field("consensus", "quantitative", scale=scale, legend=legend),
            "tooltip": tips(
                n_clusters="clusters",
                l1_bound="L1 bound",
                trim="trim",
                consensus="consensus",
                n_features="features",
            ),
        },
    }


def _after(transform: list, layer: dict[str, Any]) -> dict[str, Any]:
    return {**layer, "transform": transform + layer.get("transform", [])}


def _path(section: dict[str, Any]) -> dict[str, Any]:
    names, n = section["names"], len(section["names"])
    colors = cluster_colors(n)
    layer = {
        "data": {"name": "curve"},
        "transform": [{"calculate": "features[datum.line]", "as": "feature"}],
        "mark": {"type": "line", "strokeWidth": 1.8, "point": {"size": 24}},
        "encoding": {
            "x": _bounds_axis(),
            "y": field("weight", "quantitative", "weight"),
            "color": field(
                "line", "nominal", legend=None, scale={"domain": list(range(n)), "range": colors}
            ),
            "tooltip": tips(feature="feature", l1_bound="L1 bound", weight="weight"),
        },
    }
    return {
        "key": [
            {"shape": "line", "color": color, "label": name}
            for name, color in zip(names, colors, strict=True)
        ],
        "spec": chart(300, [layer], params=[{"name": "features", "value": names}]),
        "data": {"curve": section["curve"]},
    }


MAKERS = {
    "Clest": _clest,
    "GapL1": _gap_l1,
    "GapK": _gap_k,
    "PredictionStrength": _strength,
    "TrimCurves": _trims,
    "GridSearch": _grid,
    "FeaturePath": _path,
}
