"""What searches found, as the page says it: a section for each, and how sure the result is.

What a search found, by which rule, and what follows is said by ``rskc.selection.findings``, which
also describes the curve.
"""

from collections.abc import Iterable
from typing import Any

from rskc.report._charts import chart_of_curve
from rskc.report._facts import Facts, paragraphs
from rskc.selection.findings import AXES, describe, p_value
from rskc.selection.stability import Stability, is_about, stability_among, stability_of_cases
from rskc.utils.wording import number, sentence_list

STABLE_CASE = 0.9  # share of the half-samples that give a case the same cluster
FOUND_AGAIN = 0.75  # share of the half-samples that select a feature


def searched(facts: Facts, searches: Any) -> dict[str, Any]:
    """Return what searches found, as the page says it and the file of a model keeps it.

    Of a stability search that is about the clusters of the page also the stability of these and of
    the cases, and how often features were selected.
    """
    given = searches if isinstance(searches, Iterable) else [searches]
    search = stability_among(given)
    known: dict[str, Any] = dict.fromkeys(("sure", "clusters", "cases", "features"))
    known["sections"] = [_section(i, each) for i, each in enumerate(given)]
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


def _section(i: int, search: Any) -> dict[str, Any]:
    """Return what a search found; with a chart, if it tried something."""
    finding = describe(search)
    section = {
        "id": f"search-{i}",
        "name": type(search).__name__,
        "title": finding.title,
        "found": finding.headline,
        "caption": finding.explanation,
        "notes": finding.changes,
        "suggests": finding.suggests,
        "table": finding.table,
        "n_slices": getattr(search, "n_slices_", None),  # of a gradient
    }
    if not finding.table["rows"]:
        return section
    curve = finding.curve
    lines = sentence_list([line.label for line in curve.lines], 6)
    ends = " to ".join(number(end) for end in curve.x[[0, -1]])
    alt = f"{curve.name.capitalize()} by {AXES[curve.by]}, {ends}: {lines}. "
    return chart_of_curve(curve, f"{alt}Chosen: {finding.result}.") | section


# How sure the result is


def how_sure(facts: Facts, search: Stability, same: bool) -> list[dict[str, str]]:
    """Return what the page says of a stability search, which may be about the same clusters."""
    table, n_stable = search.table_, int((search.case_stability_ >= STABLE_CASE).sum())
    compared = table[table.p_value.notna()]  # for the chosen number, or those that were refused
    compared = compared[compared.stable] if compared.stable.any() else compared
    n_selected = int((search.selection_probabilities_ >= FOUND_AGAIN).sum())
    points = paragraphs(
        "stability.txt",
        search=search,
        same=same,
        K=facts.K,
        tried=[f"{row.stability:.2f} with {row.n_clusters}" for row in table.itertuples()],
        compared=[
            f"p {p_value(row.p_value)} for {row.n_clusters}" for row in compared.itertuples()
        ],
        separate=(compared.p_value <= search.level).any(),
        n_slices=getattr(search, "n_slices_", None),
        stable_case=STABLE_CASE,
        n_stable=n_stable,
        found_again=FOUND_AGAIN,
        n_selected=n_selected,
        n_features=len(search.selection_probabilities_),
        bound=search.selection_bound(FOUND_AGAIN),
    )
    return [{"about": about, "text": text} for about, text in points]
