"""What is wrong with a result, if anything, and what to try next.

All of it follows from the numbers of the summary alone.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from rskc.exceptions import NO_OTHER_NAMES, KnownNames
from rskc.inputs.columns import SKEWED
from rskc.model.warnings import KINDS
from rskc.report._meaning import LOW_SILHOUETTE
from rskc.utils.wording import cleaned, count, number, percent, sentence_list

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
# Findings for which the answer should not be trusted: they stand at the top.
ALARMS = frozenset(
    {
        "A gradient",
        "Many outliers",
        "Unstable clusters",
        "One feature decides",
        "Small clusters",
        "Clusters overlap",
        "No feature differs",
        "Not converged",
    }
)


Names = Mapping[str, str]
STANDARDIZE = "Preparer() in a pipeline"  # a name that is empty where this was done already
ON_UNITS = {"numbers not standardized", "units differ"}  # kinds of warnings
# Of each kind of warning, what to do about it, where there is no room for all of it. {start} is the
# warning itself up to the list of names.
IN_BRIEF = {
    "bound never binds": "{l1_bound} is so large that it leaves no feature out; to ask for a "
    "number of features, use {n_features}.",
    "not converged": "The iterations ended before they converged; raise {max_iter} or {tol}.",
    "fewer clusters": "Too few kept cases differ for so many clusters; lower {n_clusters} or "
    "{trim}.",
    "other number of features": "{n_features} cannot be reached, since features tie or do not "
    "differ.",
    "small cluster": "A small group is taken for outliers; if it is a cluster, lower {trim}.",
    "exposed cluster": "A cluster has hardly more cases than are trimmed; lower {trim} or "
    "{n_clusters}.",
    "clump": "Some outliers resemble one another; if they are a cluster, raise {n_clusters} or "
    "lower {trim}.",
    "many outlying cells": "{start}; try a larger {n_clusters}.",
    "numbers not standardized": "Some numbers vary far more than categories do, and take most of "
    "the weight; standardize them.",
    "units differ": "{start}; if units differ, try {Preparer() in a pipeline}",
    "unobserved features": "{start}; leave them out.",
    "hardly observed cases": "{start}; leave them out, or find the missing cells.",
}


def advise(facts: dict[str, Any], names: Names = NO_OTHER_NAMES) -> list[dict[str, Any]]:
    """Return what to look at again, the most important first.

    ``about`` is a few words, ``text`` a finding with a remedy, ``brief`` the same in at most two
    lines of a terminal, and ``alarm`` says whether the answer should not be trusted. ``facts`` has
    the keys ``data``, ``result``, ``clusters``, ``warnings``, ``warning_kinds``, ``searches`` and
    ``stability`` of the summary; ``names`` has other names for parameters and searches.
    """
    rules = (
        _on_trust,
        _warned,
        _one_cluster,
        _on_features,
        _on_clusters,
        _trimming,
        _missing,
        _bound,
        _on_searches,
    )
    facts = {**facts, "names": KnownNames(names)}
    found: list[tuple[str, str]] = []
    for rule in rules:
        found += rule(facts | {"found": found})
    advice = []
    for about, text in found:
        brief = text
        if template := IN_BRIEF.get(about.lower()):
            known = {**names, "start": text.partition(":")[0]}
            brief = template.format_map(KnownNames(known))
        advice.append({"about": about, "text": text, "brief": brief, "alarm": about in ALARMS})
    return advice


Pairs = Iterator[tuple[str, str]]


def _on_trust(facts: dict[str, Any]) -> Pairs:
    """Say that clusters are slices of a gradient, that many cases are in none, or unstable."""
    result, names, K = facts["result"], facts["names"], facts["result"]["n_clusters"]
    slices = [search.get("n_slices") for search in facts["searches"] if search.get("n_slices")]
    if slices and K == 1:
        yield (
            "A gradient",
            "The cases lie along a gradient without gaps: any clusters are slices of it. To cut it "
            f"all the same, give {names.with_value('n_clusters', slices[0])}.",
        )
    share = result["outlier_share"]
    if K > 1 and share is not None and share >= MANY_OUTLIERS:
        remedy = f"they may be clusters of their own: try {names.with_value('n_clusters', K + 1)}"
        if result["trim_given"]:  # too little, says another piece of advice
            remedy = f"let the data decide on them: {names.with_value('trim', 'auto')}"
        yield (
            "Many outliers",
            f"{percent(share)} of the cases look like outliers, and the clusters are those of the "
            f"others; {remedy}.",
        )
    stability = enumerate(facts["stability"] or [])
    if low := [f"{k} ({value:.2f})" for k, value in stability if value < UNSTABLE]:
        fewer = names.with_value("n_clusters", K - 1)
        remedy = f"try {fewer}" if K > 2 else "do not rely on the result"
        yield (
            "Unstable clusters",
            f"{count(len(low), 'cluster has', 'clusters have')} a low median Jaccard index over "
            f"half-samples: {sentence_list(low, 3)}. Other cases would give other clusters; "
            f"{remedy}.",
        )


def _warned(facts: dict[str, Any]) -> Pairs:
    is_searched = any("n_clusters" in search["suggests"] for search in facts["searches"])
    is_one_group = is_searched and facts["result"]["n_clusters"] == 1
    for message, kind in zip(facts["warnings"], facts["warning_kinds"], strict=True):
        if kind == "many outlying cells" and is_one_group:  # of which a search wants no more
            continue
        text = _rephrased(message, KINDS[kind][2], facts["names"]) if kind in KINDS else message
        yield kind.capitalize() or "Warning", cleaned(text, LONGEST_WARNING)


def _rephrased(message: str, template: str, names: Names) -> str:
    """Return a message made from a template with other names for the parameters in it."""
    pieces, fields = re.split(r"\{[^{}]*\}", template), re.findall(r"\{([^{}:]*)", template)
    match = re.fullmatch("(.*?)".join(map(re.escape, pieces)), message, re.DOTALL)
    if match is None:
        return message
    pairs = zip(fields, match.groups(), strict=True)
    words = [(names[field] or field) if word == field else word for field, word in pairs]
    text = "".join(f"{piece}{word}" for piece, word in zip(pieces, [*words, ""], strict=True))
    return re.sub(r"(--[\w-]+)=", r"\1 ", text)


def _one_cluster(facts: dict[str, Any]) -> Pairs:
    is_gradient = any(about == "A gradient" for about, _ in facts["found"])
    if facts["result"]["n_clusters"] > 1 or is_gradient:
        return
    tables = [s["table"] for s in facts["searches"] if "n_clusters" in s["suggests"]]
    why = "With one cluster there is nothing to separate, and no weights to learn"
    remedy = f"try two or more, or {facts['names']['Stability']}"
    if tables:
        why = "The search found no reliable clusters: all cases are one group"
        remedy = f"give {facts['names']['n_clusters']}"
    if tables and not tables[0]["rows"]:
        why = "There are too few cases to look for clusters"
    yield "One cluster", f"{why}; to see a partition anyway, {remedy}."


def _on_features(facts: dict[str, Any]) -> Pairs:
    """Say that features are skewed, that none differs, or that one has most of the weight."""
    data, result, names, p = (
        facts["data"],
        facts["result"],
        facts["names"],
        facts["result"]["n_units"],
    )
    if (data["skewness"] or 0) >= SKEWED and names["Preparer()"]:
        yield (
            "Skewed features",
            "Most features are skewed, as intensities and amounts are; if no value is negative, "
            f"cluster their logarithms ({names['Preparer()']}).",
        )
    if result["n_clusters"] > 1 and result["n_different"] == 0:
        yield (
            "No feature differs",
            "By the test no feature differs between the clusters: they may be chance; do not rely "
            f"on them, and see {names['Stability']}.",
        )
    bound, top, spreads = result["l1_bound"], result["top_feature"], data["spreads"]
    if bound is None or p == 1 or result["top_share"] < (NEARLY_ALL if p < 3 else MOST_WEIGHT):
        return
    is_asked_for = bound <= 1 + 1e-9 and not result["automatic"]
    if is_asked_for or ON_UNITS & set(facts["warning_kinds"]):  # which say so already
        return
    remedy = "leave it out to see whether there are others."
    if "drop" in names:
        option = names.with_value("drop", shlex.quote(top))
        remedy = f"to see whether there are others, leave it out by {option}"
    if spreads and spreads["largest"] == top and spreads["ratio"] >= WIDE and names[STANDARDIZE]:
        remedy = f"if its units differ, try {names[STANDARDIZE]}"
    yield (
        "One feature decides",
        f"{cleaned(top, 24)} has {percent(result['top_share'])} of the squared weight: the "
        f"clusters are those of this feature; {remedy}",
    )


def _bound(facts: dict[str, Any]) -> Pairs:
    result, names = facts["result"], facts["names"]
    bound, p, auto = result["l1_bound"], result["n_units"], names.with_value("l1_bound", "auto")
    if bound is None or p == 1 or result["n_clusters"] == 1:
        return
    if bound >= p**0.5 * (1 - 1e-9):
        yield (
            "No sparsity",
            f"The L1 bound is at its upper limit, {number(p**0.5)}, so it leaves no feature out; "
            f"lower {names['l1_bound']}, or leave it to the data ({auto}).",
        )
    elif result["n_different"] == p > result["n_enough"]:
        few = result["n_enough"]
        yield (
            "Every feature differs",
            f"All {p:,} differ between the clusters, and {count(few, 'is', 'are')} enough to "
            f"separate them; for a short list try {names.with_value('n_features', few)}.",
        )
    elif result["n_selected"] == p and result["n_different"] is None:
        yield (
            "Every feature has weight",
            f"An L1 bound of {number(bound)} leaves no feature out, though weights may be small; "
            f"leave it to the data ({auto}), or use {names['n_features']}.",
        )
    elif bound <= 1 + 1e-9 and not result["automatic"]:
        yield (
            "A single feature",
            "The L1 bound is at its lower limit, 1, which allows for one feature only; raise "
            f"{names['l1_bound']}, or leave it to the data ({auto}).",
        )


def _on_clusters(facts: dict[str, Any]) -> Pairs:
    """Say that clusters overlap, or are so small that they may be outliers."""
    result, names, K = facts["result"], facts["names"], facts["result"]["n_clusters"]
    mean = 1 if result["silhouette"] is None else result["silhouette"]
    low = [c for c in facts["clusters"] if (c["silhouette"] or 1) < LOW_IN_CLUSTER]
    if mean < LOW_SILHOUETTE:
        yield (
            "Clusters overlap",
            f"The mean silhouette is {mean:.2f}: many cases are about as near to another center; "
            f"check with {names['Stability']} whether there are clusters.",
        )
    elif low:
        which = sentence_list([f"{c['cluster']} ({c['silhouette']:.2f})" for c in low], 2)
        yield (
            "A weak cluster",
            f"Silhouettes are low in cluster{'s' * (len(low) > 1)} {which}: these cases are about "
            "as near to another center; try fewer.",
        )
    n = facts["data"]["n_cases"]
    most = min(max(result["n_trim"], SMALL_SHARE * n, 2), MOST_SMALL)
    small = [c for c in facts["clusters"] if 0 < c["size"] <= most and 2 * c["size"] * K < n]
    if small and K > 1:
        sizes = [f"cluster {c['cluster']} has {count(c['size'], 'case')}" for c in small]
        what = "which may be outliers rather than groups; look at them"
        if sum(c["size"] for c in small) == 1:
            what = "which may be an outlier; look at it"
        yield (
            "Small clusters",
            f"C{sentence_list(sizes, 2)[1:]}, {what}, and try fewer clusters or a larger "
            f"{names['trim']}.",
        )


def _trimming(facts: dict[str, Any]) -> Pairs:
    n, result = facts["data"]["n_cases"], facts["result"]
    n_trim, outlying = result["n_trim"], result["n_outliers"]
    names = facts["names"]
    if not result["trim_given"]:
        return
    # Rounded up, as the number of trimmed cases is rounded down. By weight, as trimming goes.
    share = min(math.ceil(1000 * (result["outlier_share"] or 1 / n)) / 1000, 0.49)
    remedy = f"try {names.with_value('trim', share)}, or {names.with_value('trim', 'auto')}."
    if outlying > 2 * n_trim and outlying - n_trim >= max(5, 0.02 * n):
        yield (
            "More outliers than trimmed",
            f"{count(outlying, 'case')} look like outliers, and only {n_trim:,} are trimmed: the "
            f"others pull at the centers; {remedy}",
        )
    elif n_trim >= 4 and outlying < n_trim / 4:
        who = {0: "none looks like an outlier", 1: "only 1 looks like an outlier"}
        found = who.get(outlying, f"only {outlying:,} look like outliers")
        yield (
            "Fewer outliers than trimmed",
            f"Each rule trims {n_trim:,} cases, but {found}: good cases are left out; {remedy}",
        )


def _missing(facts: dict[str, Any]) -> Pairs:
    data = facts["data"]
    if data["share_missing"] >= MANY_MISSING:
        yield (
            "Many missing cells",
            f"{percent(data['share_missing'])} of the cells are missing: distances rest on few "
            "features; leave out features and cases that are hardly observed.",
        )
    if (n_blind := data["n_blind"]) >= max(1, MANY_BLIND * data["n_cases"]):
        them, theirs = ("it", "its cluster is") if n_blind == 1 else ("them", "their clusters are")
        where, remedy = "at all", f"leave {them} out"
        if data["n_empty"] < n_blind:
            where = "in the features that have weight"
            remedy += f", or raise {facts['names']['l1_bound']}"
        cases = count(n_blind, "case has", "cases have")
        yield (
            "Cases without data",
            f"{cases} no value {where}: {theirs} arbitrary; {remedy}.",
        )
    if data["n_infinite"]:
        yield (
            "Cells too large",
            f"{count(data['n_infinite'], 'case has', 'cases have')} a cell so large that no "
            "distance can be computed; correct it, or leave it empty.",
        )


def _on_searches(facts: dict[str, Any]) -> Pairs:
    """Say that a search suggests otherwise, or that nobody has asked whether there are clusters."""
    names, result, K = facts["names"], facts["result"], facts["result"]["n_clusters"]
    suggestions = [
        (search["name"], parameter, value)
        for search in facts["searches"]
        for parameter, value in search["suggests"].items()
    ]
    for search, parameter, value in suggestions:
        # How far a setting may be from a suggestion that is itself an estimate.
        tolerance = {"n_clusters": 0.0, "l1_bound": 0.2 * value, "trim": 0.02 + 1e-9}[parameter]
        if result[parameter] is not None and abs(result[parameter] - value) > tolerance:
            yield (
                "A search suggests otherwise",
                f"{names[search]} suggests {names.with_value(parameter, value)}, and this model "
                f"has {number(result[parameter])}; compare the two.",
            )
    stability, is_tested = names["Stability"], any(s[1] == "n_clusters" for s in suggestions)
    if K > 1 and not is_tested and not any(stability in text for _, text in facts["found"]):
        yield (
            "Not tested",
            f"{K} clusters were asked for, and K-means finds as many in any data; {stability} "
            "says how many the data support.",
        )
