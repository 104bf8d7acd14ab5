"""A fitted model as a plain dict of numbers and words: what the page says, without the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rskc.labels import read_two
from rskc.metrics import classification_error_rate, sensitivity
from rskc.report._advice import advise
from rskc.report._facts import Facts, gather
from rskc.report._figures import figures_of
from rskc.report._repeat import settings_of
from rskc.report._searches import sections_of
from rskc.report._tables import cases_table, features_table, json_bytes
from rskc.report._words import count, listed, percent, plain_numbers, shown, shown_all

MOST_NAMED = 4  # features named for a cluster, above the mean and below
WORTH_NAMING = 0.1  # of the largest shift of any cluster


def summarize(
    model: Any,
    X: Any,
    *,
    searches: Any = (),
    labels: Any = None,
    case_names: Any = None,
    title: str | None = None,
    run: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return all that the page says as dicts, lists, numbers and strings, fit for JSON."""
    facts = gather(model, X, case_names)
    truth = None if labels is None else _truth(facts, labels)
    summary = {
        "title": "Robust and sparse K-means" if title is None else shown(title, 200),
        "data": _data(facts),
        "result": _result(facts),
        "clusters": _clusters(facts),
        "warnings": list(model.warnings_),
        "truth": truth,
        "searches": sections_of(searches),
    }
    features = features_table(facts)
    return {
        **summary,
        "headline": headline(summary),
        "meaning": meaning(summary),
        "advice": advise(summary),
        "figures": figures_of(facts),
        "features": features,
        "cases": cases_table(facts, labels, taken=json_bytes(features["data"])),
        "settings": settings_of(facts, run or {}),
    }


def _data(facts: Facts) -> dict[str, Any]:
    return {
        "n_cases": facts.n,
        "n_features": facts.p,
        "n_missing": int(facts.model.n_missing_),
        "share_missing": facts.model.n_missing_ / (facts.n * facts.p),
        "n_blind": int((~facts.seen).sum()),
    }


def _result(facts: Facts) -> dict[str, Any]:
    model, support = facts.model, facts.support
    squares = facts.weights.astype(float) ** 2
    return {
        "n_clusters": facts.K,
        "n_found": int(np.count_nonzero(facts.sizes)),
        "n_selected": len(support),
        "alike": bool(len(support) == facts.p and np.ptp(facts.weights) == 0),
        "n_outliers": int(facts.outliers.sum()),
        "n_trimmed": int(model.trimmed_.sum()),
        "n_trim": int(model.n_trim_),
        "trim": float(model.trim),
        "l1_bound": None if model.l1_bound_ is None else float(model.l1_bound_),
        "top_features": [facts.feature_names[j] for j in support[:3]],
        "top_feature": facts.feature_names[support[0]] if len(support) else "",
        "top_share": float(squares.max() / squares.sum()) if len(support) else 0.0,
        "silhouette": _mean_silhouette(facts, facts.seen),
        "outlier_threshold": float(model.outlier_threshold_),
        "objective": float(model.objective_),
        "n_iter": int(model.n_iter_),
    }


def _mean_silhouette(facts: Facts, cases: np.ndarray) -> float | None:
    if facts.silhouette is None or not cases.any():
        return None
    return float(facts.silhouette.values[cases].mean())


def _clusters(facts: Facts) -> list[dict[str, Any]]:
    shift = _shifts(facts)
    shift[np.abs(shift) < WORTH_NAMING * np.abs(shift).max(initial=0)] = 0
    return [_cluster(facts, k, shift[k]) for k in range(facts.K)]


def _cluster(facts: Facts, k: int, shift: np.ndarray) -> dict[str, Any]:
    mine = facts.labels == k
    above, below = _leaders(shift), _leaders(-shift)
    return {
        "cluster": k,
        "size": int(mine.sum()),
        "share": float(mine.mean()),
        "n_outliers": int((mine & facts.outliers).sum()),
        "silhouette": _mean_silhouette(facts, mine & facts.seen & ~facts.outliers),
        "above": [facts.feature_names[j] for j in facts.support[above]],
        "below": [facts.feature_names[j] for j in facts.support[below]],
    }


def _leaders(shift: np.ndarray) -> np.ndarray:
    """The places of the largest shifts upwards."""
    order = np.argsort(-shift, kind="stable")[:MOST_NAMED]
    return order[shift[order] > 0]


def _shifts(facts: Facts) -> np.ndarray:
    """How far each center is from the overall mean, by weight: (n_clusters, features with weight).

    The square of an entry is what the feature adds to the distance between center and mean.
    """
    shift = facts.centers[:, facts.support] - facts.means
    return np.nan_to_num(shift * np.sqrt(facts.weights[facts.support]))


def _truth(facts: Facts, labels: Any) -> dict[str, Any]:
    codes = read_two(labels=labels, clusters=facts.labels)[0].codes
    kept = ~facts.model.trimmed_
    table = sensitivity(labels, facts.labels)
    return {
        "cer": _error_rate(codes, facts.labels),
        "cer_kept": _error_rate(codes[kept], facts.labels[kept]),
        "classes": {
            "class": shown_all(table["class"]),
            "size": plain_numbers(table["size"]),
            "cluster": plain_numbers(table["cluster"]),
            "sensitivity": plain_numbers(table["sensitivity"], 3),
        },
    }


def _error_rate(true: np.ndarray, labels: np.ndarray) -> float | None:
    return classification_error_rate(true, labels) if len(true) > 1 else None


def headline(summary: Mapping[str, Any]) -> str:
    """The result in one sentence."""
    data, result = summary["data"], summary["result"]
    n, p, selected = data["n_cases"], data["n_features"], result["n_selected"]
    if result["alike"]:
        features = f"all {count(p, 'feature')} count alike" if p > 1 else "there is one feature"
    else:
        features = (
            f"{selected:,} of {count(p, 'feature')} {'matters' if selected == 1 else 'matter'}"
        )
    outlying = result["n_outliers"]
    looks = "looks like an outlier" if outlying == 1 else "look like outliers"
    outliers = f"{count(outlying, 'case')} {looks}" if outlying else "no case looks like an outlier"
    found = f"{count(result['n_found'], 'cluster')} found in {count(n, 'case')}"
    return f"{found}; {features}; {outliers}."


def meaning(summary: Mapping[str, Any]) -> list[str]:
    """What the headline means, for someone who has never heard of the method."""
    return [
        sentence
        for part in (_on_clusters, _on_features, _on_outliers, _on_missing)
        if (sentence := part(summary))
    ]


def _on_clusters(summary: Mapping[str, Any]) -> str:
    result, sizes = summary["result"], [c["size"] for c in summary["clusters"] if c["size"]]
    if result["n_found"] < 2:
        return "All cases are in one group."
    word = "and" if len(sizes) == 2 else "to"
    ends = f"{min(sizes):,} {word} {max(sizes):,}" if min(sizes) < max(sizes) else f"{max(sizes):,}"
    text = (
        f"The cases fall into {result['n_found']} groups of {ends} cases that resemble one another."
    )
    mean = result["silhouette"]
    if mean is None:
        return text
    return (
        f"{text} On average the squared distance of a case to the center of its own group is "
        f"{percent(mean)} less than to the next one (the mean silhouette is {mean:.2f}; 0 would be "
        f"halfway between two centers): {_apart(mean)}."
    )


def _apart(mean: float) -> str:
    if mean >= 0.5:
        return "most cases have a clear place"
    if mean >= 0.25:
        return "the groups can be told apart but overlap"
    return "the groups overlap much, and the result should not be trusted alone"


def _on_features(summary: Mapping[str, Any]) -> str:
    data, result = summary["data"], summary["result"]
    if result["alike"]:
        return "All features count alike: no choice among them was asked for."
    names = listed([shown(name, 32) for name in result["top_features"]])
    rest = data["n_features"] - result["n_selected"]
    if not rest:
        return f"Every feature has some weight; {names} tell the groups apart best."
    verb = "tells" if len(result["top_features"]) == 1 else "tell"
    others = "was found" if rest == 1 else "were found"
    return (
        f"The groups differ in {count(result['n_selected'], 'feature')}; {names} {verb} them apart "
        f"best. The other {rest:,} {others} not to help, and were left out of the comparison."
    )


def _on_outliers(summary: Mapping[str, Any]) -> str:
    result = summary["result"]
    outlying, n_trimmed = result["n_outliers"], result["n_trimmed"]
    if n_trimmed:
        text = (
            f"So that unusual cases cannot distort the groups, the {n_trimmed:,} that lay farthest "
            "from their centers had no say in where these are."
        )
    else:
        text = "All cases had a say in where the centers are: nothing was trimmed."
    if not outlying:
        return f"{text} In the end, none is unusually far from its center."
    far = "One case is" if outlying == 1 else f"{outlying:,} cases are"
    look = "worth a look, be it an error or something new"
    return f"{text} {far} unusually far from every center: {look}."


def _on_missing(summary: Mapping[str, Any]) -> str:
    data = summary["data"]
    if not data["n_missing"]:
        return ""
    cells, share = count(data["n_missing"], "cell"), percent(data["share_missing"])
    verb = "is" if data["n_missing"] == 1 else "are"
    text = f"{cells} of the table ({share}) {verb} missing. They were left out, not filled in."
    if not data["n_blind"]:
        return text
    return f"{text} Nothing that matters is known of {count(data['n_blind'], 'case')}."
