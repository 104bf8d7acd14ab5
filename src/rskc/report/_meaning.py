"""The result in sentences: a headline, and what it means.

All of it follows from the numbers of the summary alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rskc.utils.wording import cleaned, count, number, on_outliers, percent, sentence_list

LOW_SILHOUETTE = 0.25  # noise in hundreds of features has 0.2 to 0.3; digits .48, the paper's .54


def headline(summary: Mapping[str, Any]) -> str:
    """Return the result in one sentence."""
    data, result = summary["data"], summary["result"]
    n, p, features = data["n_cases"], data["n_features"], result["features"]
    if result["alike"]:
        features = f"all {count(p, 'feature')} count alike"
    if p == 1:
        features = "there is one feature"
    outliers = on_outliers(result["n_outliers"], data["n_blind"])
    found = f"{count(result['n_found'], 'cluster')} found in {count(n, 'case')}"
    if result["n_found"] == 1:
        found = f"All {count(n, 'case')} are one group"
    return f"{found}; {features}; {outliers}."


def meaning(summary: Mapping[str, Any]) -> list[str]:
    """Explain the headline to someone who has never heard of the method."""
    return [
        sentence
        for part in (_on_clusters, _on_weights, _on_features, _on_outliers, _on_cells, _on_missing)
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
    if mean >= 0.5:
        verdict = "most cases clearly belong to their group"
    elif mean >= LOW_SILHOUETTE:
        verdict = "the groups differ, but they overlap"
    else:
        verdict = "the groups overlap a lot; do not rely on this result alone"
    return (
        f"{text} On average, the squared distance of a case to its own center is {percent(mean)} "
        f"smaller than to the next center (mean silhouette {mean:.2f}; 0 means halfway between two "
        f"centers): {verdict}."
    )


def _on_weights(summary: Mapping[str, Any]) -> str:
    """Say that cases do not all count the same, and what they weigh."""
    data, clusters = summary["data"], [c for c in summary["clusters"] if c["size"]]
    if data["weight"] is None:
        return ""
    shares = [c["weight_share"] for c in clusters]
    total = f"the {data['n_cases']:,} cases have a weight of {number(data['weight'], 6)} in all"
    text = f"Cases do not all count the same: {total}"
    if len(clusters) > 1:
        each = {percent(min(shares)): None, percent(max(shares)): None}
        text += f", of which each group has {' to '.join(each)}"
    text += ". Centers, features, outliers, means, shares and error rates go by weight."
    if data["n_without_weight"]:
        none = count(data["n_without_weight"], "case has", "cases have")
        text += f" {none} weight 0: they took no part, and got the cluster of the nearest center."
    return text


def _on_features(summary: Mapping[str, Any]) -> str:
    result = summary["result"]
    if result["alike"] and result["n_clusters"] == 1:
        return "With one group there is nothing to choose features by: all count alike."
    if result["alike"]:
        return "All features count alike: no choice among them was asked for."
    names = sentence_list([cleaned(name, 32) for name in result["top_features"]])
    verb = "separates" if len(result["top_features"]) == 1 else "separate"
    rest, best = result["n_units"] - result["n_selected"], f"; {names} {verb} the groups best"
    best = best if result["n_clusters"] > 1 else ""
    text = f"{result['features'][0].upper()}{result['features'][1:]}{best}."
    if result["n_different"] is not None and result["n_enough"] < result["n_different"]:
        n = result["n_enough"]
        which = "the first alone" if n == 1 else f"the {n:,} of largest weight alone"
        text += f" With {which}, nearly all cases would be in the same groups."
    others = f"{count(rest, result['noun'])} {'has' if rest == 1 else 'have'}"
    return f"{text} {others} no weight in the comparison." if rest else text


def _on_outliers(summary: Mapping[str, Any]) -> str:
    result = summary["result"]
    outlying, n_trimmed = result["n_outliers"], result["n_trimmed"]
    text = "All cases contributed to the centers: nothing was trimmed."
    if n_trimmed:
        who = f"the {n_trimmed:,} that lay farthest from their centers were"
        who = who if n_trimmed > 1 else "the one that lay farthest from its center was"
        text = (
            f"So that unusual cases cannot distort the groups, {who} left out when the centers "
            "were computed."
        )
    if not outlying:
        return f"{text} No case is unusually far from its center."
    far = "One case is" if outlying == 1 else f"{outlying:,} cases are"
    of = "its center" if outlying == 1 else "their centers"
    weighted, unweighted = result["n_weighted"], result["n_unweighted"]
    how = f" ({weighted:,} in the features that have weight, {unweighted:,} in all features)"
    how = how if weighted and unweighted and outlying > 1 and not result["alike"] else ""
    look = "They are worth a look: they may be errors, or something new"
    look = "It is worth a look: it may be an error, or something new" if outlying == 1 else look
    if summary["data"]["weight"] is not None:
        how += f", with {percent(result['outlier_share'])} of the weight"
    return f"{text} {far} unusually far from {of}{how}. {look}."


def _on_cells(summary: Mapping[str, Any]) -> str:
    words, cells = summary["result"]["cells"], summary["cells"]
    if not words:
        return ""
    them = "It takes" if cells and cells["n_cells"] == 1 else "They take"
    rest = f" {them} no part in the centers." if cells else ""
    return f"{words[0].upper()}{words[1:]}.{rest}"


def _on_missing(summary: Mapping[str, Any]) -> str:
    data = summary["data"]
    if not data["n_missing"]:
        return ""
    cells, share = count(data["n_missing"], "cell"), percent(data["share_missing"])
    verb = "is" if data["n_missing"] == 1 else "are"
    text = f"{cells} of the table ({share}) {verb} missing. They were left out, not filled in."
    if not data["n_blind"]:
        return text
    blind = count(data["n_blind"], "case has", "cases have")
    judged = "It is" if data["n_blind"] == 1 else "They are"
    return (
        f"{text} {blind} no observed value in the features that have weight. {judged} not counted "
        "among the outliers."
    )
