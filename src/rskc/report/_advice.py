"""What looks doubtful, and what to try: a sentence each, from the numbers of the summary alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from rskc.report._words import count, listed, number, percent, shown

LOW_SILHOUETTE = 0.25  # noise in hundreds of features has 0.2 to 0.3; digits .48, the paper's .54
LOW_IN_CLUSTER = 0.15
NEARLY_ALL = 0.9  # of the squared weights, whose sum is 1
MANY_MISSING = 0.5
MANY_BLIND = 0.02
SMALL_SHARE = 0.02  # of the cases, for a cluster that may be nothing but outlying ones
LONGEST_WARNING = 600


def advise(facts: dict[str, Any]) -> list[dict[str, str]]:
    """Return what to look at again: ``about``, a few words, and ``text``, with a remedy.

    ``facts`` has the keys ``data``, ``result``, ``clusters``, ``warnings`` and ``searches`` of the
    summary.
    """
    rules = (
        _warned,
        _one_cluster,
        _small_clusters,
        _bound,
        _one_feature,
        _separation,
        _trimming,
        _missing,
        _searched,
    )
    return [{"about": about, "text": text} for rule in rules for about, text in rule(facts)]


Pairs = Iterator[tuple[str, str]]


def _warned(facts: dict[str, Any]) -> Pairs:
    for message in facts["warnings"]:
        unsettled = message.startswith("Not settled")
        yield "Not settled" if unsettled else "The fit warned", shown(message, LONGEST_WARNING)


def _one_cluster(facts: dict[str, Any]) -> Pairs:
    if facts["result"]["n_clusters"] > 1:
        return
    searched = any("n_clusters" in search["suggests"] for search in facts["searches"])
    why = "With one cluster there is nothing to tell apart, and no weights to learn"
    if searched:
        why = (
            "No number of clusters that was tried can be told from chance, so all cases are in one "
            "group, and no features are chosen"
        )
    remedy = "ask for a number of clusters" if searched else "try two or more, or Clest"
    yield "One cluster", f"{why}; to see a partition anyway, {remedy}."


def _small_clusters(facts: dict[str, Any]) -> Pairs:
    n, K, n_trim = (
        facts["data"]["n_cases"],
        facts["result"]["n_clusters"],
        facts["result"]["n_trim"],
    )
    most = max(n_trim, SMALL_SHARE * n, 2)
    small = [c for c in facts["clusters"] if 0 < c["size"] <= most and 2 * c["size"] * K < n]
    if not small or K == 1:
        return
    names = listed([f"{c['cluster']} ({count(c['size'], 'case')})" for c in small], 5)
    one = len(small) == 1
    yield (
        "Small clusters",
        f"Cluster{'' if one else 's'} {names} {'is' if one else 'are'} so small that "
        f"{'it' if one else 'they'} may be outliers and no group; look at the cases, and try "
        "fewer clusters or a larger trim.",
    )


def _bound(facts: dict[str, Any]) -> Pairs:
    bound, p = facts["result"]["l1_bound"], facts["data"]["n_features"]
    if bound is None or p == 1 or facts["result"]["n_clusters"] == 1:
        return
    if bound >= p**0.5 * (1 - 1e-9):
        yield (
            "No sparsity",
            f"The L1 bound is at its upper limit, {number(p**0.5)}, so it leaves no feature out; "
            "lower l1_bound, or choose it with GapL1.",
        )
    elif facts["result"]["n_selected"] == p:
        yield (
            "Every feature has weight",
            f"An L1 bound of {number(bound)} leaves no feature out, though most weights may be "
            "small; choose the bound with GapL1 (rskc select-l1), or ask for a number of features.",
        )
    elif bound <= 1 + 1e-9:
        yield (
            "A single feature",
            "The L1 bound is at its lower limit, 1, which allows for one feature only; raise "
            "l1_bound, or choose it with GapL1.",
        )


def _one_feature(facts: dict[str, Any]) -> Pairs:
    result, p = facts["result"], facts["data"]["n_features"]
    bound = result["l1_bound"]
    if bound is None or p == 1 or bound <= 1 + 1e-9 or result["top_share"] < NEARLY_ALL:
        return
    yield (
        "One feature decides",
        f"{shown(result['top_feature'], 40)} has {percent(result['top_share'])} of the squared "
        "weight, so that the clusters are those of this feature; see whether its scale is larger "
        "than that of the others, and standardize the columns if so.",
    )


def _separation(facts: dict[str, Any]) -> Pairs:
    mean = facts["result"]["silhouette"]
    if mean is None:
        return
    if mean < LOW_SILHOUETTE:
        yield (
            "Clusters overlap",
            f"The mean silhouette is {mean:.2f}: many cases are about as near to another center; "
            "try another number of clusters, and see with Clest whether there are any.",
        )
        return
    low = [c for c in facts["clusters"] if (c["silhouette"] or 1) < LOW_IN_CLUSTER]
    if low:
        names = listed([f"{c['cluster']} ({c['silhouette']:.2f})" for c in low], 5)
        yield (
            "A weak cluster",
            f"Silhouettes are low in cluster{'s' * (len(low) > 1)} {names}: these cases are about "
            "as near to another center; try fewer clusters.",
        )


def _trimming(facts: dict[str, Any]) -> Pairs:
    n, n_trim, outlying = (
        facts["data"]["n_cases"],
        facts["result"]["n_trim"],
        facts["result"]["n_outliers"],
    )
    if outlying > 2 * n_trim and outlying - n_trim >= max(5, 0.02 * n):
        yield (
            "More outliers than trimmed",
            f"{count(outlying, 'case')} look like outliers, and only {n_trim:,} are trimmed: the "
            f"others pull at the centers; try trim={_share_for(outlying, n)}, or choose it with "
            "TrimCurves.",
        )
    elif n_trim >= 4 and outlying < n_trim / 4:
        found = (
            f"only {outlying:,} look like outliers" if outlying else "none looks like an outlier"
        )
        yield (
            "Fewer outliers than trimmed",
            f"{count(n_trim, 'case')} are trimmed by each rule and {found}: good cases have no "
            f"say; try trim={_share_for(outlying, n)}, or choose it with TrimCurves.",
        )


def _share_for(outlying: int, n: int) -> str:
    """The share that trims so many cases: rounded up, as the number of cases is rounded down."""
    return f"{min(math.ceil(1000 * max(outlying, 1) / n) / 1000, 0.49):g}"


def _missing(facts: dict[str, Any]) -> Pairs:
    data = facts["data"]
    if data["share_missing"] >= MANY_MISSING:
        yield (
            "Many missing cells",
            f"{percent(data['share_missing'])} of the cells are missing, so that distances rest on "
            "few features; leave out the features and cases that are hardly observed.",
        )
    if data["n_blind"] >= max(1, MANY_BLIND * data["n_cases"]):
        yield (
            "Cases without data",
            f"Nothing is known of {count(data['n_blind'], 'case')} in the features that have "
            "weight, and their cluster is arbitrary; leave them out, or raise l1_bound so that "
            "more features count.",
        )


def _searched(facts: dict[str, Any]) -> Pairs:
    for search in facts["searches"]:
        for parameter, value in search["suggests"].items():
            own = facts["result"][parameter]
            if own is None or abs(own - value) <= _tolerance(parameter, value):
                continue
            yield (
                "A search suggests otherwise",
                f"{search['name']} suggests {parameter}={number(value)}, and this model has "
                f"{number(own)}; compare it with the best_estimator_ of the search.",
            )


def _tolerance(parameter: str, value: float) -> float:
    """How far a setting may be from a suggestion that is itself an estimate."""
    return {"n_clusters": 0.0, "l1_bound": 0.2 * value, "trim": 0.02 + 1e-9}[parameter]
