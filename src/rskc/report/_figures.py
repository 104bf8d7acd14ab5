"""The numbers behind the charts, as plain columns, with what a chart says in words.

Of many cases only some are drawn: all outliers as long as they make up no more than half of what
is drawn, and of the others a sample that is the same every time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rskc.inputs.arrays import to_dense
from rskc.model.fitted import number_names, number_weights, units_of
from rskc.model.outliers import Distances
from rskc.pictures import models as pictures
from rskc.pictures.models import FLAGS, AssignedCases
from rskc.report._cells import outlying
from rskc.report._facts import CHART_WIDTH, Facts, clean_names, plain_numbers
from rskc.utils.wording import cleaned, count, number, percent, sentence_list

MOST_POINTS = 2000  # of a scatter plot: an SVG of more is slow to pan
MOST_BARS = 600
MOST_WEIGHTS = 30
MOST_ROWS, MOST_COLUMNS = 120, 40  # of the heat map


def figures_of(facts: Facts) -> dict[str, Any]:
    """Compute the charts that can be drawn of this model."""
    figures = {}
    # With one cluster there is no reason to prefer features, nor to look at the first of them.
    is_one = facts.K == 1 and np.ptp(facts.weights) == 0
    if not is_one:
        figures["weights"] = weights(facts)
    if facts.seen.any() and len(facts.support):
        figures["clusters"] = clusters(facts)
        figures["outliers"] = outliers(facts)
        if not is_one:
            figures["cells"] = cells(facts)
        if facts.cells is not None and len(facts.cells.cases):
            figures["outlying"] = outlying(facts)
        if facts.silhouette is not None:
            figures["silhouettes"] = silhouettes(facts)
    return figures


def chosen_cases(facts: Facts, candidates: np.ndarray, most: int) -> np.ndarray:
    """Choose cases to be drawn, in their order: outliers before others."""
    if len(candidates) <= most:
        return candidates
    rng = np.random.default_rng(0)
    outlying, regular = (candidates[facts.outliers[candidates] == w] for w in (1, 0))
    if len(outlying) > most // 2:  # some of them: the farthest, and a sample, lest a gap appear
        outlying = outlying[np.argsort(-facts.distances[outlying], kind="stable")]
        farthest, others = np.split(outlying, [most // 10])
        outlying = np.concatenate([farthest, rng.permutation(others)[: most // 5]])
    return np.sort(np.concatenate([outlying, rng.permutation(regular)[: most - len(outlying)]]))


def _notes(facts: Facts, candidates: np.ndarray, rows: np.ndarray, *notes: str) -> list[str]:
    """Return the notes below a chart, with those on cases that are not drawn."""
    chosen, hidden = "", facts.n - len(candidates)
    outlying, drawn = (int(facts.outliers[c].sum()) for c in (candidates, rows))
    if len(rows) < len(candidates):
        which = f"all {count(outlying, 'outlier')}" if outlying > 1 else "the outlier"
        if drawn < outlying:
            which = f"{drawn:,} of {count(outlying, 'outlier')}, the farthest among them"
        which = f": {which}, and others taken" if outlying else ", taken"
        chosen = f"Drawn: {len(rows):,} of {count(len(candidates), 'case')}{which} at random."
    unseen = f"Not drawn: {count(hidden, 'case')} without an observed feature that has weight."
    return [note for note in (*notes, chosen, unseen if hidden else "") if note]


def _names(facts: Facts, rows: np.ndarray) -> list[str]:
    return clean_names((facts.case_names[i] for i in rows), CHART_WIDTH)


def _places(places: np.ndarray) -> dict[str, list]:
    return {"x": plain_numbers(places[:, 0]), "y": plain_numbers(places[:, 1])}


def clusters(facts: Facts) -> dict[str, Any]:
    """Place the cases in two dimensions."""
    seen = np.flatnonzero(facts.seen)
    cases = AssignedCases(facts.labels[seen], facts.distances[seen], facts.outliers[seen], seen)
    plane = pictures.plane_of(facts.model, facts.X[seen], cases, "auto")
    rows = chosen_cases(facts, seen, MOST_POINTS)
    drawn = np.searchsorted(seen, rows)
    places, nearer = plane.positions[drawn], plane.looks_nearer(cases, drawn)
    low, high, _ = pictures.frame_of(plane.positions, cases.labels, cases.outliers, plane.centers)
    beyond = int(((places < low) | (places > high)).any(axis=1).sum())
    used, pad = np.flatnonzero(facts.sizes), 0.03 * (high - low)
    x_name, y_name = clean_names(plane.axis_names, CHART_WIDTH)
    words = pictures.sizes_in_words(facts.labels, facts.K, facts.case_weights)
    sizes = [f"cluster {k} with {count(size, 'case')}" for k, size in enumerate(facts.sizes)]
    if facts.case_weights is not None:
        sizes = [f"cluster {k} ({each})" for k, each in enumerate(words)]
    lie = f"{count(beyond, 'outlier')} {'lies' if beyond == 1 else 'lie'} far beyond the frame"
    crosses = f"; {count(int(facts.outliers.sum()), 'outlier')} drawn with crosses"
    crosses = crosses if facts.outliers.any() else ""
    filled = f"{count(plane.n_filled, 'case')} with missing cells: these are put at the center"
    return {
        "axes": [x_name, y_name],
        "domain": [plain_numbers([a, b]) for a, b in zip(low - pad, high + pad, strict=True)],
        "points": {
            **_places(np.clip(places, low, high)),
            "cluster": plain_numbers(facts.labels[rows]),
            "outlier": plain_numbers(facts.outliers[rows]),
            "distance": plain_numbers(facts.distances[rows]),
            "nearer": plain_numbers(nearer),
            "case": _names(facts, rows),
        },
        "centers": {**_places(plane.centers[used]), "cluster": plain_numbers(used)},
        "alt": f"Scatter plot of the cases by {x_name} and {y_name}, colored by cluster: "
        f"{sentence_list(sizes, 12)}{crosses}.",
        "notes": _notes(
            facts,
            seen,
            rows,
            f"{lie}, drawn on its edge." if beyond else "",
            f"{filled} of the cluster, for the drawing only." if plane.n_filled else "",
        ),
    }


def silhouettes(facts: Facts) -> dict[str, Any]:
    """Draw one bar a case, sorted within clusters."""
    assert facts.silhouette is not None
    values, seen = facts.silhouette.values, np.flatnonzero(facts.seen)
    rows = chosen_cases(facts, seen, MOST_BARS)
    rows = rows[pictures.by_silhouette(values[rows], facts.labels[rows])]
    labels = facts.labels[rows]
    used = np.unique(labels)
    places = pictures.stacked(labels, max(1.0, 0.01 * len(rows)))
    regular = facts.seen & ~facts.outliers
    means = [facts.mean(values, regular & (facts.labels == k)) for k in used]
    spans = [places[labels == k] for k in used]
    each = [f"cluster {k} {number(mean, 2)}" for k, mean in zip(used, means, strict=True)]
    return {
        "bars": {
            "place": plain_numbers(places, 6),
            "value": plain_numbers(values[rows], 3),
            "cluster": plain_numbers(labels),
            "second": plain_numbers(facts.silhouette.second[rows]),
            "outlier": plain_numbers(facts.outliers[rows]),
            "case": _names(facts, rows),
        },
        "means": {
            "cluster": plain_numbers(used),
            "start": plain_numbers([span[0] for span in spans], 6),
            "end": plain_numbers([span[-1] + 1 for span in spans], 6),
            "mean": plain_numbers(means, 3),
        },
        "width": float(places[-1] + 1),
        "alt": f"Bars of the silhouettes of the cases, sorted within clusters, from 0 to 1. The "
        f"mean without outliers by cluster: {sentence_list(each, 12)}.",
        "notes": _notes(facts, seen, rows),
    }


def weights(facts: Facts) -> dict[str, Any]:
    """Draw the largest weights, of features or of groups of them."""
    units = units_of(facts.model)
    support = pictures.strongest(units.weights)
    top, held = support[:MOST_WEIGHTS], units.weights[support]
    more = len(support) - len(top)
    names = clean_names((units.names[j] for j in top), CHART_WIDTH)
    largest = [f"{cleaned(names[i], 32)} {held[i]:.2g}" for i in range(min(3, len(top)))]
    notes = []
    if more:
        share = percent(held[: len(top)].sum() / held.sum())
        least = number(float(held[-1]), 2)
        notes = [
            f"And {more:,} more, down to {least}; the {len(top)} drawn hold {share} of the sum of "
            "the weights."
        ]
    return {
        "bars": {
            "rank": list(range(len(top))),
            "weight": plain_numbers(held[: len(top)]),
            "feature": names,
        },
        "alt": f"Bars of the {count(len(top), 'largest weight')} of "
        f"{count(len(units.names), units.noun)}, of which {len(support):,} have weight: "
        f"{sentence_list(largest)}.",
        "notes": notes,
    }


def outliers(facts: Facts) -> dict[str, Any]:
    """Draw the two distances of each case, and where the thresholds are."""
    scatter = pictures.distance_scatter(Distances(facts.distances, facts.unweighted))
    seen = np.flatnonzero(scatter.seen)
    rows = chosen_cases(facts, seen, MOST_POINTS)
    trimmed = facts.model.trimmed_ & (facts.flags == 0)
    outlying = np.flatnonzero(facts.seen & facts.outliers)
    farthest = outlying[np.argsort(-facts.distances[outlying], kind="stable")[:3]]
    names = clean_names((facts.case_names[i] for i in farthest), 32)
    counts = dict(zip(FLAGS, np.bincount(facts.flags[seen], minlength=4).tolist(), strict=True))
    counts["trimmed"] = int(trimmed[seen].sum())
    counts["none"] -= counts["trimmed"]
    limits = dict(zip(FLAGS[1:3], plain_numbers(facts.thresholds), strict=True))
    beyond = [f"{name} {number(limit)}" for name, limit in limits.items() if limit is not None]
    return {
        "points": {
            **_places(scatter.points[np.searchsorted(seen, rows)]),
            "flag": [FLAGS[code] for code in facts.flags[rows]],
            "trimmed": plain_numbers(trimmed[rows]),
            "cluster": plain_numbers(facts.labels[rows]),
            "case": _names(facts, rows),
        },
        "log": list(scatter.logarithmic),
        "thresholds": limits,  # None: there is none
        "counts": counts,
        "alt": "Scatter plot of the weighted and the unweighted squared distance of each case to "
        f"its center. {count(len(outlying), 'case')} beyond the thresholds ({', '.join(beyond)})."
        + (f" Farthest: {sentence_list(names)}." if names else ""),
        "notes": _notes(facts, seen, rows),
    }


def cells(facts: Facts) -> dict[str, Any]:
    """Draw the cells of the features with the largest weights, standardized, cases by cluster."""
    features = pictures.strongest(number_weights(facts.model), MOST_COLUMNS)
    values = to_dense(facts.X[:, features]).astype(np.float64)
    values = pictures.standardize_cells(values, facts.outliers)
    everyone = np.arange(facts.n)
    rows = chosen_cases(facts, everyone, MOST_ROWS)
    rows = rows[pictures.by_distance(facts.distances[rows], facts.labels[rows])]
    names = clean_names(number_names(facts.model)[features], CHART_WIDTH)
    m = len(features)
    return {
        "cells": {
            "row": np.repeat(np.arange(len(rows)), m).tolist(),
            "column": np.tile(np.arange(m), len(rows)).tolist(),
            "value": plain_numbers(values[rows].ravel(), 3),
        },
        "rows": {
            "row": list(range(len(rows))),
            "cluster": plain_numbers(facts.labels[rows]),
            "outlier": plain_numbers(facts.outliers[rows]),
            "case": _names(facts, rows),
        },
        "features": names,
        "limit": plain_numbers(pictures.symmetric_limits(values))[1],
        "missing": bool(np.isnan(values[rows]).any()),
        "alt": f"Heat map of {count(len(rows), 'case')}, ordered by cluster, and the "
        f"{count(m, 'feature')} with the largest weights, from {cleaned(names[0], 32)} on: red "
        "cells are above the mean of the feature, blue ones below.",
        "notes": _notes(facts, everyone, rows),
    }
