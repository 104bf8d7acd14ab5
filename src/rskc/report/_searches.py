"""What searches found, as the page says it: a section for each, and how sure the result is.

What a search found, by which rule, and what follows is said by ``rskc.selection.findings``, which
also describes the curve.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rskc.report._facts import Facts
from rskc.selection.findings import AXES, Curve, describe, p_value
from rskc.selection.stability import Stability, is_about, stability_among, stability_of_cases
from rskc.utils.webpage import plain_numbers
from rskc.utils.wording import count, listed, number, percent, sentence_list

STABLE_CASE = 0.9  # share of the half-samples that give a case the same cluster
FOUND_AGAIN = 0.75  # share of the half-samples that select a feature
# From which stability on a cluster is called so.
WORDS = {0.85: "stable", 0.6: "fairly stable", 0.0: "unstable"}
MOST_NAMES = 12


def searched(facts: Facts, searches: Any) -> dict[str, Any]:
    """Return what searches found, as the page says it and the file of a model keeps it.

    Of a stability search that is about the clusters of the page also the stability of these and of
    the cases, and how often features were selected.
    """
    given = searches if isinstance(searches, Iterable) else [searches]
    search = stability_among(given)
    known: dict[str, Any] = dict.fromkeys(("sure", "clusters", "cases", "features"))
    known["sections"] = [_section(each) for each in given]
    if search is None:
        return known
    same = is_about(search, facts.model)
    known["sure"] = how_sure(facts, search, same)
    if same and facts.K > 1:
        known["clusters"] = search.cluster_stability_.tolist()
        known["features"] = search.selection_probabilities_
        if facts.n == search.n_samples_:  # of large tables, the page shows some of the cases
            known["cases"] = stability_of_cases(search, 0, facts.n)
    return known


def _section(search: Any) -> dict[str, Any]:
    finding = describe(search)
    curve = finding.curve
    ends = " to ".join(number(end) for end in curve.x[[0, -1]]) if len(curve.x) else ""
    lines = sentence_list([line.label for line in curve.lines], 6)
    return {
        "name": type(search).__name__,
        "title": finding.title,
        "found": finding.headline,
        "explain": finding.explanation,
        "notes": finding.changes,
        "suggests": finding.suggests,
        "table": finding.table,
        "n_slices": getattr(search, "n_slices_", None),  # of a gradient
        "alt": f"{curve.name.capitalize()} by {AXES[curve.by]}, {ends}: {lines}. "
        f"Chosen: {finding.result}.",
        "curve": _plain(curve),
    }


def _plain(curve: Curve) -> dict[str, Any]:
    """Return a curve as words and plain numbers: columns of its points, and of single dots."""
    lines, n, numbers = curve.lines, len(curve.x), range(len(curve.lines))
    y = np.array([line.y for line in lines])
    unknown = np.full(n, np.nan)
    errors = np.array([unknown if line.errors is None else line.errors for line in lines])
    columns = {"line": np.repeat(numbers, n), "x": np.tile(curve.x, len(lines))}
    columns |= {"y": y.ravel(), "low": (y - errors).ravel(), "high": (y + errors).ravel()}
    points = {name: plain_numbers(values, 5) for name, values in columns.items()}
    points["label"] = [line.label for line in lines for _ in range(n)]
    if curve.above:
        points["above"] = curve.above[1] * len(lines)
    dots: dict[str, list] = {"line": [], "x": [], "y": []}
    for i, line in enumerate(lines):
        measured = np.empty((0, n)) if line.dots is None else line.dots
        repeats, places = np.nonzero(np.isfinite(measured))
        dots["line"] += [i] * len(places)
        dots["x"] += plain_numbers(curve.x[places])
        dots["y"] += plain_numbers(measured[repeats, places])
    return {
        "by": curve.by,
        "name": curve.name,
        "lines": [{"label": x.label, "color": x.color, "dash": x.dash} for x in lines],
        "points": points,
        "dots": dots,
        "chosen": None if curve.chosen is None else curve.chosen[0] * n + curve.chosen[1],
        "threshold": list(curve.threshold) if curve.threshold else None,
        "above": curve.above and curve.above[0],
    }


# How sure the result is


def how_sure(facts: Facts, search: Stability, same: bool) -> dict[str, Any]:
    """Return what the page says of a stability search, which may be about the same clusters."""
    points = {
        "How many clusters": _on_number(search),
        "Clusters, or parts of a single one": _on_single_cluster(search),
    }
    clusters = []
    if not same:
        points["Another model"] = (
            f"The search is about its own {count(search.n_clusters_, 'cluster')}, and this page "
            f"shows another model, of {count(facts.K, 'cluster')}: how stable these are is not "
            "known."
        )
    elif search.n_clusters_ > 1:
        points |= {"Cases": _on_cases(search, facts), "Features": _on_features(search)}
        for k, value in enumerate(search.cluster_stability_.tolist()):
            word = next(word for least, word in WORDS.items() if value >= least)
            size = int(facts.sizes[k])
            clusters.append({"cluster": k, "size": size, "stability": value, "word": word})
    return {
        "points": [{"about": about, "text": text} for about, text in points.items()],
        "clusters": clusters,
        "key": " ".join(f"{WORDS[x].capitalize()}: {x:g} or more." for x in WORDS if x),
    }


def _on_number(search: Stability) -> str:
    """Say how many clusters, and what was seen where there are none."""
    n, table = len(search.half_labels_), search.table_
    if search.n_clusters_ > 1:
        return (
            f"{search.n_clusters_:,}. {search.reason_} A half-sample is a random half of the "
            f"cases, clustered on its own; there were {n}."
        )
    text = f"No clusters were found. {search.reason_}"
    if table.empty:
        return text
    seen = [f"{row.stability:.2f} with {row.n_clusters}" for row in table.itertuples()]
    return f"{text} The median Jaccard index of the least stable cluster: {listed(seen, 8)}."


def _on_single_cluster(search: Stability) -> str:
    """Say what the comparison with one cloud gave: for the chosen number, or those it refused."""
    compared = search.table_[search.table_.p_value.notna()]
    shown = compared[compared.stable] if compared.stable.any() else compared
    question = "Stable clusters may still be parts of a single one, such as a long cloud of cases."
    if not search.n_references:
        return f"{question} This was not tested: no reference sets were drawn."
    if shown.empty:
        return f"{question} This was not tested: no number was stable enough to be compared."
    figures = [f"p {p_value(row.p_value)} for {row.n_clusters}" for row in shown.itertuples()]
    asked = f"{search.level:g} or less is required"
    answer = "These may be: simulated data without clusters split into parts as compact"
    if (shown.p_value <= search.level).any():
        answer = "These are not: simulated data without clusters split into less compact parts"
        if getattr(search, "n_slices_", None):
            answer = "These are more compact than parts of a round cloud, and yet slices of a "
            answer += "gradient"
    return (
        f"{question} {answer} ({listed(figures, 4)}; {asked}). Take p as a guide and not as proof: "
        "it does not account for the choice of the number and of the features."
    )


def _on_cases(search: Stability, facts: Facts) -> str:
    """Count the cases that keep their cluster, and name the others, the least stable first."""
    stability, n = search.case_stability_, search.n_samples_used_
    n_stable = int((stability >= STABLE_CASE).sum())
    share = f"{percent(STABLE_CASE)} or more of the half-samples"
    text = f"{n_stable:,} of {count(n, 'case')} keep their cluster in {share}."
    if n < search.n_samples_:
        text += f" The other {search.n_samples_ - n:,} cases were not searched on."
    if n_stable == n:
        return text
    if facts.n != search.n_samples_:  # the page shows some of the cases only
        return f"{text} {n - n_stable:,} do not."
    known = stability_of_cases(search, 0, facts.n)
    order = np.argsort(known, kind="stable")[: n - n_stable]
    names = [f"{facts.case_names[i]} ({percent(known[i])})" for i in order[:MOST_NAMES]]
    return f"{text} The others, with their share: {listed(names, MOST_NAMES, n - n_stable)}."


def _on_features(search: Stability) -> str:
    found, bound = search.selection_probabilities_, search.selection_bound(FOUND_AGAIN)
    n = int((found >= FOUND_AGAIN).sum())
    share = f"{percent(FOUND_AGAIN)} or more of the half-samples"
    text = (
        f"{n:,} of {count(len(found), 'feature')} {'is' if n == 1 else 'are'} selected in {share}."
    )
    if n == 0 or bound >= n:
        return text
    return (
        f"{text} Of these, at most {number(bound, 2)} are expected to be there by chance alone. "
        "This is an upper bound and not an estimate."
    )
