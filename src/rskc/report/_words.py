"""What a result means, what is wrong with it, if anything, and what to try next.

All of it follows from the numbers of the summary alone.
"""

import math
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from rskc.exceptions import NO_OTHER_NAMES, KnownNames
from rskc.report._facts import WORDS, paragraphs
from rskc.utils.wording import cleaned, count, number, percent, sentence_list

Summary = Mapping[str, Any]
ADVICE = WORDS["advice"]

LOW_SILHOUETTE = 0.25  # noise in hundreds of features has 0.2 to 0.3; digits .48, the paper's .54
NEARLY_ALL = 0.9  # of the squared weights, whose sum is 1
# Cases of a cluster that may be nothing but outlying ones: this share of all, and never more than
# this number. Outliers resemble one another by the dozen, not by the hundred.
SMALL_SHARE, MOST_SMALL = 0.02, 100
LONGEST_WARNING = 600
MANY_OUTLIERS = 0.15  # of the cases
UNSTABLE = 0.6  # median Jaccard index of a cluster over half-samples
MOST_WEIGHT = 0.8  # squared weight of a single feature, of three and more
ON_UNITS = {"numbers not standardized", "units differ"}  # kinds of warnings

# What it means


def meaning(summary: Summary) -> list[str]:
    """Explain the headline to someone who has never heard of the method."""
    how = {"number": number, "percent": percent, "low_silhouette": LOW_SILHOUETTE}
    lines = paragraphs("meaning.txt", summary=summary, **how)
    return [f"{first} {others}".strip() for first, others in lines]


# Advice

Findings = Iterator[tuple[str, dict[str, Any]]]  # what each is about, and values for its words


def advise(summary: Summary, names: Mapping[str, str] = NO_OTHER_NAMES) -> list[dict[str, Any]]:
    """Return what to look at again, the most important first.

    ``about`` is a few words, ``text`` a finding with a remedy, ``brief`` the same in at most two
    lines of a terminal, and ``alarm`` says whether the answer should not be trusted. Of the summary
    the keys ``data``, ``result``, ``clusters``, ``warnings``, ``warning_kinds``, ``searches`` and
    ``stability`` are needed; ``names`` has other names for parameters and searches.
    """
    rules = (_on_trust, _on_fit, _on_features, _on_weak_clusters, _on_trimming, _on_searches)
    found = [pair for rule in rules for pair in rule(summary, KnownNames(names))]
    if {"No feature differs", "Clusters overlap"} & {about for about, _ in found}:
        found = [pair for pair in found if pair[0] != "Not tested"]  # they name the remedy already
    advice = []
    for about, values in found:
        words = {"text": "{text}", "brief": "{text}", "alarm": False, **ADVICE.get(about, {})}
        text = words["text"].format_map(KnownNames({**names, **values}))
        known = KnownNames({**names, "text": text, "start": text.partition(":")[0]})
        brief = words["brief"].format_map(known)
        advice.append({"about": about, "text": text, "brief": brief, "alarm": words["alarm"]})
    return advice


def _on_trust(summary: Summary, names: KnownNames) -> Findings:
    """Say that there are no clusters, that many cases are in none, or that some are unstable."""
    result, K = summary["result"], summary["result"]["n_clusters"]
    slices = [search["n_slices"] for search in summary["searches"] if search.get("n_slices")]
    if K == 1 and slices:
        yield "A gradient", {"setting": names.with_value("n_clusters", slices[0])}
    elif K == 1 and summary["searches"]:
        yield "No clusters", {}
    elif K == 1:
        yield "One cluster", {}
    if K > 1 and result["outlier_share"] >= MANY_OUTLIERS:
        remedy = f"They may be clusters of their own: try {names.with_value('n_clusters', K + 1)}"
        if result["trim_given"]:  # too little, says another piece of advice
            auto = names.with_value("trim", "auto")
            remedy = f"Let the data decide how many to leave out: {auto}"
        yield "Many outliers", {"share": percent(result["outlier_share"]), "remedy": remedy}
    stability = enumerate(summary["stability"] or [])
    if low := [f"{k} ({value:.2f})" for k, value in stability if value < UNSTABLE]:
        fewer = f"try {names.with_value('n_clusters', K - 1)}"
        values = {
            "clusters": count(len(low), "cluster has", "clusters have"),
            "which": sentence_list(low, 3),
            "remedy": fewer if K > 2 else "do not rely on the result",
        }
        yield "Unstable clusters", values


def _on_fit(summary: Summary, names: KnownNames) -> Findings:
    """Repeat the warnings of the fit."""
    for message, kind in zip(summary["warnings"], summary["warning_kinds"], strict=True):
        yield kind.capitalize() or "Warning", {"text": cleaned(message, LONGEST_WARNING)}


def _on_features(summary: Summary, names: KnownNames) -> Findings:
    """Say that features are skewed, that none differs, or that one has most of the weight."""
    result, p = summary["result"], summary["result"]["n_units"]
    if summary["data"]["is_skewed"] and names["Preparer()"]:
        yield "Skewed features", {}
    if result["n_clusters"] > 1 and result["n_different"] == 0:
        yield "No feature differs", {}
    says_so = ON_UNITS & set(summary["warning_kinds"])
    most = NEARLY_ALL if p < 3 else MOST_WEIGHT
    if result["l1_bound"] is not None and p > 1 and result["top_share"] >= most and not says_so:
        top, option = result["top_features"][0], ""
        if "drop" in names:
            option = f" by {names.with_value('drop', shlex.quote(top))}"
        values = {"feature": cleaned(top, 24), "share": percent(result["top_share"])}
        yield "One feature decides", values | {"option": option}


def _on_weak_clusters(summary: Summary, names: KnownNames) -> Findings:
    """Say that clusters are hardly separate, or so small that they may be outliers."""
    result, n, K = summary["result"], summary["data"]["n_cases"], summary["result"]["n_clusters"]
    mean = result["silhouette"]
    if mean is not None and mean < LOW_SILHOUETTE:
        yield "Clusters overlap", {"mean": f"{mean:.2f}"}
    most = min(max(result["n_trim"], SMALL_SHARE * n, 2), MOST_SMALL)
    small = [c for c in summary["clusters"] if 0 < c["size"] <= most and 2 * c["size"] * K < n]
    if small and K > 1:
        sizes = [f"cluster {c['cluster']} has {count(c['size'], 'case')}" for c in small]
        yield "Small clusters", {"sizes": sentence_list(sizes, 2)[1:]}


def _on_trimming(summary: Summary, names: KnownNames) -> Findings:
    n, result = summary["data"]["n_cases"], summary["result"]
    n_trim, n_outliers = result["n_trim"], result["n_outliers"]
    if not result["trim_given"]:
        return
    # Rounded up, as the number of trimmed cases is rounded down. By weight, as trimming goes.
    share = min(math.ceil(1000 * (result["outlier_share"] or 1 / n)) / 1000, 0.49)
    values = {
        "n": f"{n_outliers:,}",
        "n_trim": f"{n_trim:,}",
        "share": names.with_value("trim", share),
        "auto": names.with_value("trim", "auto"),
    }
    if n_outliers > 2 * n_trim and n_outliers - n_trim >= max(5, 0.02 * n):
        yield "More outliers than trimmed", values
    elif n_trim >= 4 and n_outliers < n_trim / 4:
        few = count(n_outliers, "looks like an outlier", "look like outliers")
        yield "Fewer outliers than trimmed", values | {"few": few}


def _on_searches(summary: Summary, names: KnownNames) -> Findings:
    """Say that a search suggests otherwise, or that nobody has asked whether there are clusters."""
    asked = [name for search in summary["searches"] for name in search["suggests"]]
    for search in summary["searches"]:
        for parameter, value in search["suggests"].items():
            # How far a setting may be from a suggestion that is itself an estimate.
            tolerance = {"n_clusters": 0.0, "l1_bound": 0.2 * value, "trim": 0.02 + 1e-9}[parameter]
            setting = summary["result"][parameter]
            if setting is not None and abs(setting - value) > tolerance:
                suggested = names.with_value(parameter, value)
                values = {"suggested": suggested, "setting": number(setting)}
                yield "A search suggests otherwise", values | {"search": names[search["name"]]}
    if (K := summary["result"]["n_clusters"]) > 1 and "n_clusters" not in asked:
        yield "Not tested", {"K": K}
