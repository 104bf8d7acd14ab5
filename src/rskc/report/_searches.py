"""What searches found, as the page says it: a section for each, and how sure the result is.

What a search found, by which rule, and what follows is said by ``rskc.selection.findings``, which
also describes the curve.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from rskc.report._facts import Facts, paragraphs
from rskc.selection.findings import AXES, Curve, describe, p_value
from rskc.selection.stability import Stability, is_about, stability_among, stability_of_cases
from rskc.utils.webpage import plain_numbers
from rskc.utils.wording import number, percent, sentence_list

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
    table, stability = search.table_, search.case_stability_
    compared = table[table.p_value.notna()]  # for the chosen number, or those that were refused
    compared = compared[compared.stable] if compared.stable.any() else compared
    n, n_stable = search.n_samples_used_, int((stability >= STABLE_CASE).sum())
    names: list[str] = []
    if facts.n == search.n_samples_:  # else the page shows some of the cases only
        known = stability_of_cases(search, 0, facts.n)
        order = np.argsort(known, kind="stable")[: n - n_stable]
        names = [f"{facts.case_names[i]} ({percent(known[i])})" for i in order[:MOST_NAMES]]
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
        n_searched=n,
        n_stable=n_stable,
        names=names,
        found_again=FOUND_AGAIN,
        n_selected=n_selected,
        n_features=len(search.selection_probabilities_),
        bound=search.selection_bound(FOUND_AGAIN),
    )
    clusters = []
    for k, value in enumerate(search.cluster_stability_.tolist() if same and facts.K > 1 else ()):
        word = next(word for least, word in WORDS.items() if value >= least)
        size = int(facts.sizes[k])
        clusters.append({"cluster": k, "size": size, "stability": value, "word": word})
    return {
        "points": [{"about": about, "text": text} for about, text in points],
        "clusters": clusters,
        "key": " ".join(f"{WORDS[x].capitalize()}: {x:g} or more." for x in WORDS if x),
    }
