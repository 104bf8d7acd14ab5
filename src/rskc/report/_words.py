"""What a result means, what is wrong with it, if anything, and what to try next.

All of it follows from the numbers of the summary alone.
"""

import math
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from rskc.exceptions import NO_OTHER_NAMES, KnownNames
from rskc.model.warnings import KINDS
from rskc.report._facts import WORDS, paragraphs
from rskc.utils.wording import cleaned, count, number, percent, sentence_list

Summary = Mapping[str, Any]
ADVICE = WORDS["advice"]

LOW_SILHOUETTE = 0.25  # noise in hundreds of features has 0.2 to 0.3; digits .48, the paper's .54
LOW_IN_CLUSTER = 0.15
NEARLY_ALL = 0.9  # of the squared weights, whose sum is 1
MANY_MISSING = 0.5
MANY_BLIND = 0.02
WIDE = 3  # times that the spread of a feature is that of others
# Cases of a cluster that may be nothing but outlying ones: this share of all, and never more than
# this number. Outliers resemble one another by the dozen, not by the hundred.
SMALL_SHARE, MOST_SMALL = 0.02, 100
LONGEST_WARNING = 600
MANY_OUTLIERS = 0.15  # of the cases
UNSTABLE = 0.6  # median Jaccard index of a cluster over half-samples
MOST_WEIGHT = 0.8  # squared weight of a single feature, of three and more
STANDARDIZE = "Preparer() in a pipeline"  # a name that is empty where this was done already
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
    rules = (
        *(_on_trust, _on_fit, _on_one_cluster, _on_choice_of_features),
        *(_on_weak_clusters, _on_trimming, _on_missing_cells, _on_bound, _on_searches),
    )
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


def _searched_for(summary: Summary, parameter: str) -> list[Summary]:
    """Return the searches that suggest a parameter."""
    return [search for search in summary["searches"] if parameter in search["suggests"]]


def _slices(summary: Summary) -> list[int]:
    """Return the numbers of slices of a gradient that searches saw."""
    return [s["n_slices"] for s in summary["searches"] if s.get("n_slices")]


def _on_trust(summary: Summary, names: KnownNames) -> Findings:
    """Say that clusters are slices of a gradient, that many cases are in none, or unstable."""
    result, K, slices = summary["result"], summary["result"]["n_clusters"], _slices(summary)
    if slices and K == 1:
        yield "A gradient", {"setting": names.with_value("n_clusters", slices[0])}
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
    """Repeat the warnings of the fit, with the names that the reader knows."""
    for message, kind in zip(summary["warnings"], summary["warning_kinds"], strict=True):
        text = _rephrased(message, KINDS[kind][2], names) if kind in KINDS else message
        yield kind.capitalize() or "Warning", {"text": cleaned(text, LONGEST_WARNING)}


def _rephrased(message: str, template: str, names: KnownNames) -> str:
    """Return a message made from a template with other names for the parameters in it."""
    pieces, fields = re.split(r"\{[^{}]*\}", template), re.findall(r"\{([^{}:]*)", template)
    match = re.fullmatch("(.*?)".join(map(re.escape, pieces)), message, re.DOTALL)
    if match is None:
        return message
    pairs = zip(fields, match.groups(), strict=True)
    words = [(names[field] or field) if word == field else word for field, word in pairs]
    text = "".join(f"{piece}{word}" for piece, word in zip(pieces, [*words, ""], strict=True))
    return re.sub(r"(--[\w-]+)=", r"\1 ", text)


def _on_one_cluster(summary: Summary, names: KnownNames) -> Findings:
    if summary["result"]["n_clusters"] > 1 or _slices(summary):
        return
    why = "With one cluster there is nothing to separate, and there are no weights to learn"
    remedy = f"try two or more, or {names['Stability']}"
    if searches := _searched_for(summary, "n_clusters"):
        remedy, why = f"set {names['n_clusters']}", "There are too few cases to look for clusters"
        if searches[0]["table"]["rows"]:
            why = "The search found no reliable clusters: all cases are one group"
    yield "One cluster", {"why": why, "remedy": remedy}


def _on_choice_of_features(summary: Summary, names: KnownNames) -> Findings:
    """Say that features are skewed, that none differs, or that one has most of the weight."""
    data, result, p = summary["data"], summary["result"], summary["result"]["n_units"]
    if data["is_skewed"] and names["Preparer()"]:
        yield "Skewed features", {}
    if result["n_clusters"] > 1 and result["n_different"] == 0:
        yield "No feature differs", {}
    bound, spreads = result["l1_bound"], data["spreads"]
    if bound is None or p == 1 or result["top_share"] < (NEARLY_ALL if p < 3 else MOST_WEIGHT):
        return
    is_asked_for = bound <= 1 + 1e-9 and not result["automatic"]
    if is_asked_for or ON_UNITS & set(summary["warning_kinds"]):  # which say so already
        return
    top, remedy = result["top_features"][0], "leave it out to see whether others do."
    if "drop" in names:
        option = names.with_value("drop", shlex.quote(top))
        remedy = f"to see whether others do, leave it out by {option}"
    if spreads and spreads["largest"] == top and spreads["ratio"] >= WIDE and names[STANDARDIZE]:
        remedy = f"if its units differ, try {names[STANDARDIZE]}"
    share = percent(result["top_share"])
    yield "One feature decides", {"feature": cleaned(top, 24), "share": share, "remedy": remedy}


def _on_weak_clusters(summary: Summary, names: KnownNames) -> Findings:
    """Say that clusters are hardly separate, or so small that they may be outliers."""
    result, n, K = summary["result"], summary["data"]["n_cases"], summary["result"]["n_clusters"]
    mean = result["silhouette"]
    low = [c for c in summary["clusters"] if (c["silhouette"] or 1) < LOW_IN_CLUSTER]
    if mean is not None and mean < LOW_SILHOUETTE:
        yield "Clusters overlap", {"mean": f"{mean:.2f}"}
    elif low:
        which = sentence_list([f"{c['cluster']} ({c['silhouette']:.2f})" for c in low], 2)
        yield "A weak cluster", {"clusters": f"cluster{'s' * (len(low) > 1)} {which}"}
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
        few = f"only {count(n_outliers, 'looks like an outlier', 'look like outliers')}"
        few = few if n_outliers else "none looks like an outlier"
        yield "Fewer outliers than trimmed", values | {"few": few}


def _on_missing_cells(summary: Summary, names: KnownNames) -> Findings:
    """Say that much is missing, or all of a case, or that a cell is too large for a distance."""
    data = summary["data"]
    if data["share_missing"] >= MANY_MISSING:
        yield "Many missing cells", {"share": percent(data["share_missing"])}
    if (n_blind := data["n_blind"]) >= max(1, MANY_BLIND * data["n_cases"]):
        where, remedy = "at all", ""
        if data["n_empty"] < n_blind:
            where = "in the features that have weight"
            remedy = f", or raise {names['l1_bound']}"
        cases = count(n_blind, "case has", "cases have")
        yield "Cases without data", {"cases": cases, "where": where, "remedy": remedy}
    if data["n_infinite"]:
        yield "Cells too large", {"cases": count(data["n_infinite"], "case has", "cases have")}


def _on_bound(summary: Summary, names: KnownNames) -> Findings:
    result = summary["result"]
    bound, p, few = result["l1_bound"], result["n_units"], result["n_enough"]
    if bound is None or p == 1 or result["n_clusters"] == 1:
        return
    values = {"bound": number(bound), "auto": names.with_value("l1_bound", "auto")}
    if bound >= p**0.5 * (1 - 1e-9):
        yield "No sparsity", values
    elif result["n_different"] == p > few:
        enough = count(few, "is", "are")
        setting = names.with_value("n_features", few)
        yield "Every feature differs", {"p": f"{p:,}", "few": enough, "setting": setting}
    elif result["n_selected"] == p and result["n_different"] is None:
        yield "Every feature has weight", values
    elif bound <= 1 + 1e-9 and not result["automatic"]:
        yield "A single feature", values


def _on_searches(summary: Summary, names: KnownNames) -> Findings:
    """Say that a search suggests otherwise, or that nobody has asked whether there are clusters."""
    for search in summary["searches"]:
        for parameter, value in search["suggests"].items():
            # How far a setting may be from a suggestion that is itself an estimate.
            tolerance = {"n_clusters": 0.0, "l1_bound": 0.2 * value, "trim": 0.02 + 1e-9}[parameter]
            setting = summary["result"][parameter]
            if setting is not None and abs(setting - value) > tolerance:
                suggested = names.with_value(parameter, value)
                values = {"suggested": suggested, "setting": number(setting)}
                yield "A search suggests otherwise", values | {"search": names[search["name"]]}
    if (K := summary["result"]["n_clusters"]) > 1 and not _searched_for(summary, "n_clusters"):
        yield "Not tested", {"K": K}
