"""What is wrong with a result, if anything, and what to try next.

All of it follows from the numbers of the summary alone.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from rskc.exceptions import NO_OTHER_NAMES, KnownNames
from rskc.inputs.columns import SKEWED
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
        _gradient,
        _many_outliers,
        _unstable,
        _warned,
        _one_cluster,
        _skewed,
        _no_features,
        _one_feature,
        _separation,
        _small_clusters,
        _trimming,
        _missing,
        _bound,
        _searched,
        _not_tested,
    )
    facts = {**facts, "names": KnownNames(names)}
    found: list[tuple[str, str]] = []
    for rule in rules:
        found += rule(facts | {"found": found})
    return [
        {"about": about, "text": text, "brief": _brief(about, text, facts["names"])}
        | {"alarm": about in ALARMS}
        for about, text in found
    ]


def _brief(about: str, text: str, names: Names) -> str:
    template = IN_BRIEF.get(about.lower())
    if template is None:
        return text
    return template.format_map(KnownNames({**names, "start": text.partition(":")[0]}))


Pairs = Iterator[tuple[str, str]]


def _gradient(facts: dict[str, Any]) -> Pairs:
    """Say that clusters are slices of a gradient, and that a partition is a choice."""
    slices = [search.get("n_slices") for search in facts["searches"] if search.get("n_slices")]
    if slices and facts["result"]["n_clusters"] == 1:
        remedy = facts["names"].with_value("n_clusters", slices[0])
        yield (
            "A gradient",
            "The cases lie along a gradient without gaps: any clusters are slices of it. To cut it "
            f"all the same, give {remedy}.",
        )


def _many_outliers(facts: dict[str, Any]) -> Pairs:
    result = facts["result"]
    share = result["outlier_share"]
    if result["n_clusters"] > 1 and share is not None and share >= MANY_OUTLIERS:
        more = facts["names"].with_value("n_clusters", result["n_clusters"] + 1)
        yield (
            "Many outliers",
            f"{percent(share)} of the cases look like outliers, and the clusters are those of the "
            f"others; they may be clusters of their own: try {more}.",
        )


def _unstable(facts: dict[str, Any]) -> Pairs:
    stability, K = facts["stability"], facts["result"]["n_clusters"]
    low = [f"{k} ({value:.2f})" for k, value in enumerate(stability or []) if value < UNSTABLE]
    if low:
        fewer = facts["names"].with_value("n_clusters", K - 1)
        remedy = f"try {fewer}" if K > 2 else "do not rely on the result"
        one, many = "cluster has", "clusters have"
        yield (
            "Unstable clusters",
            f"{count(len(low), one, many)} a low median Jaccard index over half-samples: "
            f"{sentence_list(low, 3)}. Other cases would give other clusters; {remedy}.",
        )


def _warned(facts: dict[str, Any]) -> Pairs:
    for message, kind in zip(facts["warnings"], facts["warning_kinds"], strict=True):
        yield kind.capitalize() or "Warning", cleaned(message, LONGEST_WARNING)


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


def _skewed(facts: dict[str, Any]) -> Pairs:
    skewness, remedy = facts["data"]["skewness"], facts["names"]["Preparer()"]
    if skewness is not None and skewness >= SKEWED and remedy:
        yield (
            "Skewed features",
            "Most features are skewed, as intensities and amounts are; if no value is negative, "
            f"cluster their logarithms ({remedy}).",
        )


def _no_features(facts: dict[str, Any]) -> Pairs:
    if facts["result"]["n_clusters"] > 1 and facts["result"]["n_different"] == 0:
        yield (
            "No feature differs",
            "By the test no feature differs between the clusters: they may be chance; do not rely "
            f"on them, and see {facts['names']['Stability']}.",
        )


def _small_clusters(facts: dict[str, Any]) -> Pairs:
    n, K = facts["data"]["n_cases"], facts["result"]["n_clusters"]
    most = min(max(facts["result"]["n_trim"], SMALL_SHARE * n, 2), MOST_SMALL)
    small = [c for c in facts["clusters"] if 0 < c["size"] <= most and 2 * c["size"] * K < n]
    if not small or K == 1:
        return
    sizes = [f"cluster {c['cluster']} has {count(c['size'], 'case')}" for c in small]
    what = "which may be outliers rather than groups; look at them"
    if sum(c["size"] for c in small) == 1:
        what = "which may be an outlier; look at it"
    text = f"{sentence_list(sizes, 2)}, {what}"
    yield (
        "Small clusters",
        f"C{text[1:]}, and try fewer clusters or a larger {facts['names']['trim']}.",
    )


def _bound(facts: dict[str, Any]) -> Pairs:
    bound, p, names = facts["result"]["l1_bound"], facts["result"]["n_units"], facts["names"]
    if bound is None or p == 1 or facts["result"]["n_clusters"] == 1:
        return
    if bound >= p**0.5 * (1 - 1e-9):
        yield (
            "No sparsity",
            f"The L1 bound is at its upper limit, {number(p**0.5)}, so it leaves no feature out; "
            f"lower {names['l1_bound']}, or leave it to the data "
            f"({names.with_value('l1_bound', 'auto')}).",
        )
    elif facts["result"]["n_different"] == p > facts["result"]["n_enough"]:
        few = facts["result"]["n_enough"]
        yield (
            "Every feature differs",
            f"All {p:,} differ between the clusters, and {few:,} are enough to separate them; for "
            f"a short list try {names.with_value('n_features', few)}.",
        )
    elif facts["result"]["n_selected"] == p and facts["result"]["n_different"] is None:
        yield (
            "Every feature has weight",
            f"An L1 bound of {number(bound)} leaves no feature out, though weights may be small; "
            f"leave it to the data ({names.with_value('l1_bound', 'auto')}), or use "
            f"{names['n_features']}.",
        )
    elif bound <= 1 + 1e-9 and not facts["result"]["automatic"]:
        yield (
            "A single feature",
            "The L1 bound is at its lower limit, 1, which allows for one feature only; raise "
            f"{names['l1_bound']}, or leave it to the data "
            f"({names.with_value('l1_bound', 'auto')}).",
        )


def _one_feature(facts: dict[str, Any]) -> Pairs:
    result, p = facts["result"], facts["result"]["n_units"]
    bound = result["l1_bound"]
    if bound is None or p == 1 or result["top_share"] < (NEARLY_ALL if p < 3 else MOST_WEIGHT):
        return
    if bound <= 1 + 1e-9 and not result["automatic"]:  # it was asked for
        return
    if ON_UNITS & set(facts["warning_kinds"]):  # which say so already
        return
    spreads, remedy = facts["data"]["spreads"], "leave it out to see whether there are others."
    if "drop" in facts["names"]:
        option = facts["names"].with_value("drop", shlex.quote(result["top_feature"]))
        remedy = f"to see whether there are others, leave it out by {option}"
    is_wide = spreads and spreads["largest"] == result["top_feature"] and spreads["ratio"] >= WIDE
    if is_wide and facts["names"][STANDARDIZE]:
        remedy = f"if its units differ, try {facts['names'][STANDARDIZE]}"
    yield (
        "One feature decides",
        f"{cleaned(result['top_feature'], 24)} has {percent(result['top_share'])} of the squared "
        f"weight: the clusters are those of this feature; {remedy}",
    )


def _separation(facts: dict[str, Any]) -> Pairs:
    mean = facts["result"]["silhouette"]
    if mean is None:
        return
    if mean < LOW_SILHOUETTE:
        yield (
            "Clusters overlap",
            f"The mean silhouette is {mean:.2f}: many cases are about as near to another center; "
            f"check with {facts['names']['Stability']} whether there are clusters.",
        )
        return
    low = [c for c in facts["clusters"] if (c["silhouette"] or 1) < LOW_IN_CLUSTER]
    if low:
        names = sentence_list([f"{c['cluster']} ({c['silhouette']:.2f})" for c in low], 2)
        yield (
            "A weak cluster",
            f"Silhouettes are low in cluster{'s' * (len(low) > 1)} {names}: these cases are about "
            "as near to another center; try fewer.",
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


def _searched(facts: dict[str, Any]) -> Pairs:
    names = facts["names"]
    for search in facts["searches"]:
        for parameter, value in search["suggests"].items():
            own = facts["result"][parameter]
            # How far a setting may be from a suggestion that is itself an estimate.
            tolerance = {"n_clusters": 0.0, "l1_bound": 0.2 * value, "trim": 0.02 + 1e-9}
            if own is None or abs(own - value) <= tolerance[parameter]:
                continue
            yield (
                "A search suggests otherwise",
                f"{names[search['name']]} suggests {names.with_value(parameter, value)}, and this "
                f"model has {number(own)}; compare the two.",
            )


def _not_tested(facts: dict[str, Any]) -> Pairs:
    """Say that nobody has asked whether there are clusters, unless that was said already."""
    K, stability = facts["result"]["n_clusters"], facts["names"]["Stability"]
    is_said = any(stability in text for _, text in facts["found"])
    if K == 1 or is_said or any("n_clusters" in search["suggests"] for search in facts["searches"]):
        return
    yield (
        "Not tested",
        f"{K} clusters were asked for, and K-means finds as many in any data; {stability} tells "
        "how many the data support.",
    )
