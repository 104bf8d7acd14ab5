"""How sure the result is, in words and numbers: what a stability search found."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rskc.report._facts import Facts
from rskc.selection.firmness import (
    is_about,
    stability_among,
    stability_for,
    stability_of_cases,
)
from rskc.selection.stability import Stability
from rskc.wording import count, listed, number, percent

FIRM_CASE = 0.9  # share of the half-samples that give a case the same cluster
FOUND_AGAIN = 0.75  # share of the half-samples that select a feature
# From which stability on a cluster is called so.
WORDS = {0.85: "firm", 0.6: "fair", 0.0: "doubtful"}
MOST_NAMES = 12
LEAST_P = 0.001  # smaller ones are not told apart: references are few


class Known(NamedTuple):
    """Columns of the tables of cases and features, None where nothing is known."""

    cases: np.ndarray | None  # stability
    features: np.ndarray | None  # selection probabilities


def known_by_half_samples(facts: Facts, searches: Any) -> Known:
    """Return what a stability search knows of the cases and features of the page."""
    search = stability_for(searches, facts.model)
    if search is None or facts.K == 1:
        return Known(None, None)
    is_whole = facts.n == search.n_samples_  # of large tables, the page shows some of the cases
    cases = stability_of_cases(search, 0, facts.n) if is_whole else None
    return Known(cases, search.selection_probabilities_)


def how_sure(facts: Facts, searches: Any) -> dict[str, Any] | None:
    """Return what the page says of a stability search, None if there is none."""
    search = stability_among(searches)
    if search is None:
        return None
    same = is_about(search, facts.model)
    points = [
        {"about": "How many clusters", "text": _number(search)},
        {"about": "Clusters, or one cloud", "text": _cloud(search)},
    ]
    if not same:
        points.append({"about": "Another model", "text": _other(search, facts)})
    elif search.n_clusters_ > 1:
        points += [
            {"about": "Cases", "text": _cases(search, facts)},
            {"about": "Features", "text": _features(search)},
        ]
    return {
        "points": points,
        "clusters": _clusters(search, facts) if same and search.n_clusters_ > 1 else [],
        "key": " ".join(f"{WORDS[x].capitalize()}: {x:g} or more." for x in WORDS if x),
    }


def _number(search: Stability) -> str:
    """Say how many clusters, and what was seen where there are none."""
    n, table = len(search.half_labels_), search.table_
    if search.n_clusters_ > 1:
        return (
            f"{search.n_clusters_:,}. {search.reason_} To see this, {n} half-samples were "
            "clustered anew."
        )
    text = f"No clusters were found. {search.reason_}"
    if table.empty:
        return text
    seen = [f"{row.stability:.2f} with {row.n_clusters}" for row in table.itertuples()]
    return f"{text} How far the worst cluster came back: {listed(seen, 8)}."


def _cloud(search: Stability) -> str:
    """Say what the comparison with one cloud gave: for the chosen number, or those it refused."""
    compared = search.table_[search.table_.p_value.notna()]
    shown = compared[compared.stable] if compared.stable.any() else compared
    question = "Stable clusters may be slices of a single cloud: that is a second question."
    if not search.n_references:
        return f"{question} It was not asked: no reference sets were drawn."
    if shown.empty:
        return f"{question} It was not asked: no number was stable enough to be compared."
    figures = [f"p {_p_value(row.p_value)} for {row.n_clusters}" for row in shown.itertuples()]
    asked = f"{search.level:g} or less is asked for{' once' if len(figures) > 1 else ''}"
    if (shown.p_value <= search.level).any():
        answer = (
            "Here one cloud does not explain them: made-up data from one have less compact clusters"
        )
    else:
        answer = "Here one cloud may explain them: made-up data from one have clusters as compact"
    return (
        f"{question} {answer} ({listed(figures, 4)}; {asked}). The p does not know that the number "
        "and the features were looked for: it is a guide, no proof."
    )


def _p_value(p: float) -> str:
    return f"below {LEAST_P:g}" if p < LEAST_P else f"= {number(p, 2)}"


def _other(search: Stability, facts: Facts) -> str:
    K = count(search.n_clusters_, "cluster")
    return (
        f"The search is about its own {K}, and this page shows another model, of "
        f"{count(facts.K, 'cluster')}: nothing is known of how firm these are."
    )


def _cases(search: Stability, facts: Facts) -> str:
    """Count the cases that sit firmly, and name the others, the least firm first."""
    stability, n = search.case_stability_, search.n_samples_used_
    n_firm = int((stability >= FIRM_CASE).sum())
    text = (
        f"{n_firm:,} of {count(n, 'case')} sit firmly: {percent(FIRM_CASE)} of the half-samples or "
        "more give them the same cluster."
    )
    if n < search.n_samples_:
        text += f" The other {search.n_samples_ - n:,} cases were not searched on."
    if n_firm == n:
        return text
    if facts.n != search.n_samples_:  # the page shows some of the cases only
        return f"{text} {n - n_firm:,} are doubtful."
    known = stability_of_cases(search, 0, facts.n)
    order = np.argsort(known, kind="stable")[: n - n_firm]
    names = [f"{facts.case_names[i]} ({percent(known[i])})" for i in order[:MOST_NAMES]]
    return f"{text} Doubtful: {listed(names, MOST_NAMES, n - n_firm)}."


def _features(search: Stability) -> str:
    found, bound = search.selection_probabilities_, search.selection_bound(FOUND_AGAIN)
    n = int((found >= FOUND_AGAIN).sum())
    text = (
        f"{n:,} of {count(len(found), 'feature')} would be found again: {percent(FOUND_AGAIN)} of "
        "the half-samples or more select them."
    )
    if n == 0 or bound >= n:
        return text
    return (
        f"{text} If features are selected that differ by chance alone, at most {number(bound, 2)} "
        "such features are expected among them: a bound, and no estimate."
    )


def _clusters(search: Stability, facts: Facts) -> list[dict[str, Any]]:
    return [
        {
            "cluster": k,
            "size": int(facts.sizes[k]),
            "stability": float(value),
            "word": next(word for least, word in WORDS.items() if value >= least),
        }
        for k, value in enumerate(search.cluster_stability_)
    ]
