"""A fitted model as a plain dict of numbers and words: what the page says, without the page."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rskc.exceptions import NO_OTHER_NAMES
from rskc.inputs.labels import Labels, adjusted_rand_index, count_shared
from rskc.markers import MarkerEffects, effects_of, markers_frame
from rskc.metrics import classification_error_rate, sensitivity
from rskc.model.fitted import number_names, number_weights, units_of
from rskc.model.summary import bounds_cells, count_features, headline, in_units, words_on_cells
from rskc.pictures import models as pictures
from rskc.preprocessing.preparer import Unit, decide
from rskc.report._charts import charts_of
from rskc.report._facts import (
    CHART_WIDTH,
    NO_UNITS,
    WORDS,
    Facts,
    Units,
    cases_table,
    cells_table,
    features_table,
)
from rskc.report._searches import searched
from rskc.report._words import advise, meaning
from rskc.utils.snippets import LONGEST, in_python, parameters_of, snippet_of
from rskc.utils.webpage import clean_names, plain_numbers
from rskc.utils.wording import cleaned, count, number, percent, sentence_list
from rskc.versions import environment

PACKAGES = ("rskc", "numpy", "scipy", "scikit-learn", "python", "passes")
# What is known of a run that is written in Python, and not as words.
IN_SNIPPET = ("standardizer", "reader")
MOST_MARKERS = 5  # of a cluster in the table of markers
MOST_IN_PROFILE = 6  # features, the same for all clusters, so that profiles can be compared
MOST_PROFILES = 24
LONGEST_NAME, LONGEST_FEATURE = 48, 40  # of a cluster, and of a feature in a sentence
# From which median Jaccard index over half-samples on a cluster is called so.
STABILITY = {0.85: "stable", 0.6: "fairly stable", 0.0: "unstable"}
# A category is what a cluster mostly is, or hardly ever, from these shares of its cases on.
MOSTLY, RARELY = 0.5, 0.1
FIRST_CASE = "first case"  # of a table whose cases have no names: where it is, such as "line 2"


def summarize(
    model: Any,
    X: Any,
    *,
    searches: Any = (),
    labels: Any = None,
    case_names: Any = None,
    title: str | None = None,
    run: Mapping[str, Any] | None = None,
    read: Mapping[str, Any] | None = None,
    names: Mapping[str, str] = NO_OTHER_NAMES,
    units: Units = NO_UNITS,
    kept: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return all that the page says as dicts, lists, numbers and strings, fit for JSON.

    ``read`` is what is known of the file, as the command line puts it together. ``names`` has other
    names for parameters and searches in advice, such as options of a command.
    ``units`` has the center and scale of columns that were standardized, by name: means are then
    those of the table before. ``kept`` is what ``to_keep`` returned for the searches.
    """
    facts, run = Facts(model, X, case_names, units, labels), run or {}
    known = searched(facts, searches) if kept is None else kept
    summary = _numbers(facts, known) | {"cells": cells_table(facts)}
    effects = effects_of(facts.model, facts.X)
    markers = markers_of(facts, effects, known["features"])
    cards = cards_of(facts, effects, markers)
    features = features_table(facts, known["features"])
    cases = cases_table(facts, [features, summary["cells"]], known["cases"])
    if FIRST_CASE in run:
        first = f"case 0 is {cleaned(run[FIRST_CASE], 40)} of the file."
        cases["note"] = f"Cases are numbered from 0: {first} {cases['note']}".strip()
    n_found, n_outliers = (summary["result"][name] for name in ("n_found", "n_outliers"))
    return summary | {
        "title": "Robust and sparse K-means" if title is None else cleaned(title, 200),
        "in_units": bool(units),
        "in_logarithms": any(Unit(*unit).log for unit in units.values()),
        "truth": facts.classes and _truth(facts, facts.classes, labels),
        "clusters": [row | card for row, card in zip(summary["clusters"], cards, strict=True)],
        "markers": markers,
        "headline": headline(facts.model, facts.n, n_found, n_outliers, summary["data"]["n_blind"]),
        "meaning": meaning(summary),
        "advice": advise(summary, names),
        "read": read,
        "charts": charts_of(facts),
        "features": features,
        "cases": cases,
        "settings": settings_of(facts, run),
    }


def numbers_of(model: Any, X: Any, searches: Any = ()) -> dict[str, Any]:
    """Return the numbers that advice is made of, without the rest of the page."""
    facts = Facts(model, X)
    return _numbers(facts, searched(facts, searches))


def to_keep(model: Any, X: Any, searches: Any) -> dict[str, Any]:
    """Return what a page says of searches, as arrays, lists and words that a file can hold."""
    return searched(Facts(model, X), searches)


def _numbers(facts: Facts, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers that sentences and advice are made of."""
    return {
        "data": _data(facts),
        "result": _result(facts),
        "clusters": clusters_of(facts, known["clusters"]),
        "warnings": list(facts.model.warnings_),
        "warning_kinds": list(facts.model.warning_kinds_),
        "searches": known["sections"],
        "sure": known["sure"],
        "stability": known["clusters"],
    }


def _data(facts: Facts) -> dict[str, Any]:
    weights = facts.case_weights
    return {
        "n_cases": facts.n,
        "n_features": facts.p,
        "weight": None if weights is None else float(weights.sum()),
        "n_without_weight": int((facts.masses == 0).sum()),
        "n_missing": int(facts.model.n_missing_),
        "share_missing": facts.model.n_missing_ / (facts.n * facts.p),
        "n_blind": int(facts.blind.sum()),  # no value in the features that have weight
        "is_skewed": bool(decide(facts.columns).logs.any()),
    }


def _result(facts: Facts) -> dict[str, Any]:
    model, counts, units = facts.model, count_features(facts.model), units_of(facts.model)
    squares, flags = units.weights.astype(float) ** 2, facts.flags[facts.seen]
    return {
        "n_clusters": facts.K,
        "n_found": int(np.count_nonzero(facts.sizes)),
        **counts._asdict(),
        "n_units": counts.n_features,  # features, or groups that share a weight
        "features": counts.words,
        "alike": bool(len(facts.support) == facts.p and np.ptp(facts.weights) == 0),
        "n_outliers": int(facts.outliers.sum()),
        "outlier_share": float(facts.masses[facts.outliers].sum() / facts.masses.sum()),
        "n_trimmed": int((model.trimmed_ & ~facts.blind).sum()),
        "n_weighted": int((flags & 1 > 0).sum()),
        "n_unweighted": int((flags & 2 > 0).sum()),
        "cells": words_on_cells(model) if bounds_cells(model) else "",
        "n_trim": int(model.n_trim_),
        "trim_given": not isinstance(model.trim, str) and not model.reweight,
        "trim": float(model.trim_),
        "l1_bound": None if model.l1_bound_ is None else float(model.l1_bound_),
        "top_features": clean_names(units.names[pictures.strongest(units.weights, 3)]),
        "top_share": float(squares.max() / squares.sum()) if len(facts.support) else 0.0,
        "silhouette": facts.mean_silhouette(facts.seen),
    }


def _truth(facts: Facts, classes: Labels, labels: Any) -> dict[str, Any]:
    codes, names = classes
    table = sensitivity(labels, facts.labels, facts.case_weights)
    counted = facts.masses > 0
    both = codes[counted], facts.labels[counted], facts.masses[counted]
    compared = facts.K > 1 and counted.sum() > 1
    return {
        "cer": classification_error_rate(*both) if compared else None,
        "ari": adjusted_rand_index(*both),
        "classes": {
            "class": clean_names(table["class"]),
            "size": plain_numbers(table["size"]),
            "cluster": plain_numbers(table["cluster"]),
            "sensitivity": plain_numbers(table["sensitivity"], 3),
            "counts": count_shared(codes, facts.labels, len(names), facts.K).tolist(),
        },
    }


# The clusters one by one


def clusters_of(facts: Facts, stability: list[float] | None) -> list[dict[str, Any]]:
    """Return how large each cluster is, and how clear and stable."""
    weights = np.bincount(facts.labels, facts.masses, facts.K)
    words = [
        f"{value:.2f} ({next(word for least, word in STABILITY.items() if value >= least)})"
        for value in stability or ()
    ]
    return [
        {
            "cluster": k,
            "size": int(facts.sizes[k]),
            "share": float(facts.sizes[k] / facts.n),
            "weight": None if facts.case_weights is None else float(weights[k]),
            "weight_share": float(weights[k] / weights.sum()),
            "n_outliers": int((mine & facts.outliers).sum()),
            "silhouette": facts.mean_silhouette(mine),
            "stability": words[k] if words else None,
        }
        for k, mine in enumerate(facts.labels == np.arange(facts.K)[:, None])
    ]


def markers_of(
    facts: Facts, effects: MarkerEffects, probabilities: np.ndarray | None
) -> list[dict[str, Any]]:
    """Return what sets each cluster apart, in words and numbers."""
    frame = markers_frame(facts.model, effects, selection_probabilities=probabilities)
    frame = in_units(frame, facts.units)
    encoder = getattr(facts.model, "encoder_", None)
    shares = () if encoder is None else number_names(facts.model)[encoder.indicators]
    markers = []
    for k in range(facts.K):
        rows = frame[frame.cluster == k]
        top = [_marker(row, row.feature in shares) for row in rows.head(MOST_MARKERS).itertuples()]
        markers.append({"cluster": k, "n": len(rows), "top": top})
    return markers


def _marker(row: Any, is_share: bool) -> dict[str, Any]:
    """Describe a marker: how far the cluster is from the others, and with which means."""
    write = percent if is_share else number
    side, level = ("below", "low") if row.effect < 0 else ("above", "high")
    words = f"{abs(row.effect):.1f} SD {side}"
    if is_share:
        words = f"{percent(row.mean)} of the cluster, {percent(row.mean_of_others)} of the others"
        level = "mostly" if row.mean >= MOSTLY else "more often"
        if row.mean < row.mean_of_others:
            level = "rarely" if row.mean < RARELY else "less often"
    # With two clusters, effect and separation are the same number, up to rounding.
    elif row.position == "between" and row.separation > abs(row.effect):
        words = f"between the others, {row.separation:.1f} SD from the nearest"
        level = "medium"
    return {
        "feature": cleaned(row.feature),
        "words": words,
        "name": f"{level} {cleaned(row.feature, LONGEST_FEATURE)}",
        "mean": write(row.mean),
        "mean_of_others": write(row.mean_of_others),
        "probability": getattr(row, "selection_probability", None),
    }


def cards_of(
    facts: Facts, effects: MarkerEffects, markers: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return a sentence, a short name and a profile of each cluster."""
    tops = [group["top"] for group in markers]
    names, profiles, cards = short_names(tops), _profiles(facts, effects), []
    for k, top in enumerate(tops):
        words = sentence_list([f"{row['name']} ({row['mean']})" for row in top[:3]])
        if facts.K > 1 and not words:
            words = "no feature sets them apart by half a standard deviation or more"
        size = f"{count(int(facts.sizes[k]), 'case')} ({percent(facts.sizes[k] / facts.n)})"
        parts = [f"{size}: {words}" if words else size]
        mine = (facts.labels == k) & facts.regular
        if mine.any():
            nearest = np.argmin(np.where(mine, facts.distances, np.inf))
            typical = cleaned(facts.case_names[nearest], LONGEST_NAME)
            parts.append(f"Its most typical case is {'number ' * typical.isdecimal()}{typical}")
        sentence = ". ".join(parts) + "."
        cards.append({"name": names[k], "sentence": sentence, "profile": profiles[k]})
    return cards


def short_names(tops: list[list[dict[str, Any]]]) -> list[str]:
    """Name each cluster by what sets it apart most; by more of it where two would be alike."""
    names = ["" for _ in tops]
    for n, words in ((1, "{name}"), (2, "{name}"), (1, "{name} ({mean})")):
        longer = [", ".join(words.format_map(row) for row in top[:n]) for top in tops]
        names = [
            new if names.count(old) > 1 else old for old, new in zip(names, longer, strict=True)
        ]
    return [cleaned(name, LONGEST_NAME) or f"cluster {k}" for k, name in enumerate(names)]


def _profiles(facts: Facts, effects: MarkerEffects) -> list[list[dict[str, Any]]]:
    """Return, for each cluster, how far it is from the others in the strongest features."""
    if not 1 < facts.K <= MOST_PROFILES:
        return [[] for _ in range(facts.K)]
    features = pictures.strongest(number_weights(facts.model), MOST_IN_PROFILE)
    names = clean_names(number_names(facts.model)[features], CHART_WIDTH)
    shown = np.nan_to_num(effects.effects[:, features])
    lengths = (np.abs(shown) / max(np.abs(shown).max(initial=0), 1e-9)).round(3).tolist()
    return [
        [
            {"feature": name, "effect": effect, "length": length}
            for name, effect, length in zip(names, plain_numbers(row, 3), part, strict=True)
        ]
        for row, part in zip(shown, lengths, strict=True)
    ]


# How to repeat the run


def settings_of(facts: Facts, run: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters, particulars of the run, versions, and a piece of Python."""
    model, installed = facts.model, environment()
    by_each = " by each rule" if not isinstance(model.trim, str) and model.n_trim_ else ""
    found = {
        "L1 bound used": number(model.l1_bound_, 4),
        "Trimmed": f"{count(int(model.n_trim_), 'case')} of {facts.n:,}{by_each}",
        "Outlier threshold, weighted": number(facts.thresholds.weighted, 4),
        "Outlier threshold, unweighted": number(facts.thresholds.unweighted, 4),
        "Objective": number(model.objective_, 6),
        "Iterations": f"{int(model.n_iter_)}",
    }
    snippet = snippet_of(model, facts.n, facts.p, run, getattr(model, "sample_weight_", None))
    labels = ", labels=table.labels" if snippet.reader else ""
    page = f'make_report(model, X{labels}).save("report.html")'
    lines = [*snippet.imports, "from rskc.report import make_report", "", *snippet.lines]
    lines += [snippet.model, snippet.fit, page]
    return {
        "parameters": [
            {
                "name": name,
                "value": f"{value:.6g}" if isinstance(value, float) else in_python(value),
                "meaning": WORDS["parameters"].get(name, ""),
            }
            for name, value in parameters_of(model).items()
        ],
        "found": {label: value for label, value in found.items() if value != "–"},
        "run": {
            WORDS["run"].get(key, cleaned(key, 60)): cleaned(value, LONGEST)
            for key, value in run.items()
            if key not in (*IN_SNIPPET, FIRST_CASE)
        },
        "versions": {name: installed[name] for name in PACKAGES},
        "seeded": model.random_state is not None,
        "snippet": "\n".join(lines),
    }
