"""The numbers behind the charts, as plain columns, with what a chart says in words.

The computations are those of ``rskc.displays``. Of many cases only some are drawn: all outliers as
long as they make up no more than half of what is drawn, and of the others a draw that is the same
every time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rskc.displays._cases import Cases
from rskc.displays.clusters import ClusterDisplay, _plane
from rskc.displays.heatmap import HeatmapDisplay, _standardize
from rskc.displays.outliers import _above_floor, _boundary, _is_spread
from rskc.report._facts import Facts
from rskc.report._words import (
    CHART_WIDTH,
    count,
    listed,
    number,
    percent,
    plain_numbers,
    shown,
    shown_all,
)

MOST_POINTS = 2000  # of a scatter plot: an SVG of more is slow to pan
MOST_BARS = 600
MOST_WEIGHTS = 30
MOST_ROWS, MOST_COLUMNS = 120, 40  # of the heat map
RULES = ("none", "weighted", "unweighted", "both")


def figures_of(facts: Facts) -> dict[str, Any]:
    """The charts that can be drawn of this model."""
    figures = {"weights": weights(facts)}
    if facts.seen.any() and len(facts.support):
        figures["clusters"] = clusters(facts)
        figures["outliers"] = outliers(facts)
        figures["cells"] = cells(facts)
        if facts.silhouette is not None:
            figures["silhouettes"] = silhouettes(facts)
    return figures


def chosen_cases(facts: Facts, candidates: np.ndarray, most: int) -> np.ndarray:
    """Choose cases to be drawn, in their order: outliers before others."""
    if len(candidates) <= most:
        return candidates
    rng = np.random.default_rng(0)
    outlying, tame = (candidates[facts.outliers[candidates] == w] for w in (1, 0))
    if len(outlying) > most // 2:  # a part of them: the farthest, and a draw, lest a gap appear
        outlying = outlying[np.argsort(-facts.distances[outlying], kind="stable")]
        farthest, others = np.split(outlying, [most // 10])
        outlying = np.concatenate([farthest, rng.permutation(others)[: most // 5]])
    return np.sort(np.concatenate([outlying, rng.permutation(tame)[: most - len(outlying)]]))


def _said_of_choice(facts: Facts, candidates: np.ndarray, rows: np.ndarray) -> str:
    """Say which cases were drawn, if not all."""
    if len(rows) == len(candidates):
        return ""
    text = f"Drawn: {len(rows):,} of {count(len(candidates), 'case')}"
    outlying, drawn = (int(facts.outliers[c].sum()) for c in (candidates, rows))
    if not outlying:
        return f"{text}, taken at random."
    which = f"all {count(outlying, 'outlier')}" if outlying > 1 else "the outlier"
    if drawn < outlying:
        which = f"{drawn:,} of {count(outlying, 'outlier')}, the farthest among them"
    return f"{text}: {which}, and others taken at random."


def _said_of_hidden(facts: Facts) -> str:
    hidden = int((~facts.seen).sum())
    if not hidden:
        return ""
    return f"Not drawn: {count(hidden, 'case')} without an observed feature that has weight."


def _names(facts: Facts, rows: np.ndarray) -> list[str]:
    return [shown(facts.case_names[i], CHART_WIDTH) for i in rows]


def _notes(*notes: str) -> list[str]:
    return [note for note in notes if note]


def clusters(facts: Facts) -> dict[str, Any]:
    """The cases in two dimensions."""
    seen = np.flatnonzero(facts.seen)
    cases = Cases(facts.labels, facts.distances, facts.outliers, np.arange(facts.n))
    cases = Cases(*(part[seen] for part in cases))
    plane = _plane(facts.model, facts.X[seen], cases, "auto")
    picture = ClusterDisplay(plane.positions, cases.labels, cases.outliers, plane.centers)
    low, high = picture._limits()
    rows = chosen_cases(facts, seen, MOST_POINTS)
    places = plane.positions[np.searchsorted(seen, rows)]
    beyond = int(((places < low) | (places > high)).any(axis=1).sum())
    used, pad = np.flatnonzero(facts.sizes), 0.03 * (high - low)
    return {
        "axes": shown_all(plane.axis_names, CHART_WIDTH),
        "domain": [plain_numbers([a, b]) for a, b in zip(low - pad, high + pad, strict=True)],
        "points": _points(facts, rows, np.clip(places, low, high)),
        "centers": {**_places(plane.centers[used]), "cluster": plain_numbers(used)},
        "alt": _alt_of_clusters(facts, plane),
        "notes": _notes(
            f"{_beyond(beyond)} beyond the frame, drawn on its edge." if beyond else "",
            _said_of_filled(plane.n_filled),
            _said_of_choice(facts, seen, rows),
            _said_of_hidden(facts),
        ),
    }


def _places(places: np.ndarray) -> dict[str, list]:
    return {"x": plain_numbers(places[:, 0]), "y": plain_numbers(places[:, 1])}


def _points(facts: Facts, rows: np.ndarray, places: np.ndarray) -> dict[str, list]:
    return {
        **_places(places),
        "cluster": plain_numbers(facts.labels[rows]),
        "outlier": plain_numbers(facts.outliers[rows]),
        "distance": plain_numbers(facts.distances[rows]),
        "case": _names(facts, rows),
    }


def _said_of_filled(n: int) -> str:
    if not n:
        return ""
    cells = "these are put at the center of the cluster, for the drawing only"
    return f"{count(n, 'case')} with missing cells: {cells}."


def _beyond(n: int) -> str:
    return f"{count(n, 'outlier')} {'lies' if n == 1 else 'lie'} far"


def _alt_of_clusters(facts: Facts, plane: Any) -> str:
    sizes = [f"cluster {k} with {count(size, 'case')}" for k, size in enumerate(facts.sizes)]
    return (
        f"Scatter plot of the cases by {shown(plane.axis_names[0], CHART_WIDTH)} and "
        f"{shown(plane.axis_names[1], CHART_WIDTH)}, colored by cluster: {listed(sizes, 12)}; "
        f"{count(int(facts.outliers.sum()), 'outlier')} drawn as crosses."
    )


def silhouettes(facts: Facts) -> dict[str, Any]:
    """One bar a case, sorted within clusters."""
    values, seen = facts.silhouette.values, np.flatnonzero(facts.seen)  # type: ignore[union-attr]
    rows = chosen_cases(facts, seen, MOST_BARS)
    rows = rows[np.lexsort((-values[rows], facts.labels[rows]))]
    labels = facts.labels[rows]
    gap = max(1.0, 0.01 * len(rows))
    places = np.arange(len(rows)) + gap * np.unique(labels, return_inverse=True)[1]
    means = [float(values[seen][facts.labels[seen] == k].mean()) for k in np.unique(labels)]
    spans = [places[labels == k] for k in np.unique(labels)]
    return {
        "bars": {
            "place": plain_numbers(places, 6),
            "value": plain_numbers(values[rows], 3),
            "cluster": plain_numbers(labels),
            "second": plain_numbers(facts.silhouette.second[rows]),  # type: ignore[union-attr]
            "outlier": plain_numbers(facts.outliers[rows]),
            "case": _names(facts, rows),
        },
        "means": {
            "cluster": plain_numbers(np.unique(labels)),
            "start": plain_numbers([span[0] for span in spans], 6),
            "end": plain_numbers([span[-1] + 1 for span in spans], 6),
            "mean": plain_numbers(means, 3),
        },
        "width": float(places[-1] + 1),
        "alt": _alt_of_silhouettes(values[seen], np.unique(labels), means),
        "notes": _notes(_said_of_choice(facts, seen, rows), _said_of_hidden(facts)),
    }


def _alt_of_silhouettes(values: np.ndarray, used: np.ndarray, means: list[float]) -> str:
    each = [f"cluster {k} {mean:.2f}" for k, mean in zip(used, means, strict=True)]
    return (
        f"Bars of the silhouettes of the cases, sorted within clusters, from 0 to 1. The mean is "
        f"{values.mean():.2f} over all; by cluster: {listed(each, 12)}."
    )


def weights(facts: Facts) -> dict[str, Any]:
    """The largest weights."""
    top, held = facts.support[:MOST_WEIGHTS], facts.weights[facts.support]
    more = len(facts.support) - len(top)
    share = held[: len(top)].sum() / held.sum() if len(top) else 1.0
    names = [shown(facts.feature_names[j], CHART_WIDTH) for j in top]
    largest = [f"{shown(names[i], 32)} {held[i]:.2g}" for i in range(min(3, len(top)))]
    note = f"And {more:,} more, down to {number(float(held[-1]), 2)}; " if more else ""
    note += f"the {len(top)} drawn hold {percent(share)} of the sum of the weights." if more else ""
    return {
        "bars": {
            "rank": list(range(len(top))),
            "weight": plain_numbers(facts.weights[top]),
            "feature": names,
        },
        "alt": f"Bars of the {count(len(top), 'largest weight')} of {count(facts.p, 'feature')}, "
        f"of which {len(facts.support):,} have weight: {listed(largest)}.",
        "notes": _notes(note),
    }


def outliers(facts: Facts) -> dict[str, Any]:
    """Weighted and unweighted distance of each case, and where the cut-offs are."""
    seen = np.flatnonzero(facts.seen & np.isfinite(facts.unweighted))
    points = np.column_stack([facts.distances[seen], facts.unweighted[seen]])
    logarithmic = [_is_spread(column) for column in points.T]
    rows = chosen_cases(facts, seen, MOST_POINTS)
    places = _above_floor(points, logarithmic)[np.searchsorted(seen, rows)]
    model = facts.model
    cuts = {
        "weighted": _boundary(points[:, 0], model.trimmed_weighted_[seen]),
        "unweighted": _boundary(points[:, 1], model.trimmed_unweighted_[seen]),
    }
    return {
        "points": {
            **_places(places),
            "rule": [RULES[code] for code in facts.rules[rows]],
            "cluster": plain_numbers(facts.labels[rows]),
            "case": _names(facts, rows),
        },
        "log": logarithmic,
        "threshold": float(model.outlier_threshold_),
        "cuts": {rule: cut if cut is None else plain_numbers(cut) for rule, cut in cuts.items()},
        "counts": dict(zip(RULES, np.bincount(facts.rules, minlength=4).tolist(), strict=True)),
        "alt": _alt_of_outliers(facts),
        "notes": _notes(
            _said_of_mixture(facts, cuts),
            _said_of_choice(facts, seen, rows),
            _said_of_hidden(facts),
        ),
    }


def _said_of_mixture(facts: Facts, cuts: dict[str, Any]) -> str:
    trimmed = (facts.model.trimmed_weighted_.any(), facts.model.trimmed_unweighted_.any())
    mixed = [rule for rule, any_ in zip(cuts, trimmed, strict=True) if any_ and cuts[rule] is None]
    if not mixed:
        return ""
    return f"No {' or '.join(mixed)} cut-off is drawn: cases were trimmed by other weights."


def _alt_of_outliers(facts: Facts) -> str:
    n_outlying, n_trimmed = int(facts.outliers.sum()), int((facts.rules > 0).sum())
    text = (
        f"Scatter plot of the weighted and the unweighted squared distance of each case to its "
        f"center. {count(n_outlying, 'case')} beyond the outlier threshold "
        f"{number(facts.model.outlier_threshold_)}; {n_trimmed:,} trimmed."
    )
    far = np.argsort(-np.where(facts.seen & facts.outliers, facts.distances, -1), kind="stable")
    if n_seen := int((facts.seen & facts.outliers).sum()):
        names = [shown(facts.case_names[i], 32) for i in far[: min(3, n_seen)]]
        text += f" Farthest: {listed(names)}."
    return text


def cells(facts: Facts) -> dict[str, Any]:
    """The cells of the features with the largest weights, standardized, cases by cluster."""
    features = facts.support[:MOST_COLUMNS]
    values = _standardize(facts.X[:, features].astype(np.float64), facts.tame)
    picture = HeatmapDisplay(values, None, None, None, standardized=True)
    rows = chosen_cases(facts, np.arange(facts.n), MOST_ROWS)
    rows = rows[np.lexsort((facts.distances[rows], facts.labels[rows]))]
    names = [shown(facts.feature_names[j], CHART_WIDTH) for j in features]
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
        "limit": plain_numbers(picture._color_limits())[1],
        "missing": bool(np.isnan(values[rows]).any()),
        "alt": f"Heat map of {count(len(rows), 'case')}, ordered by cluster, and the "
        f"{count(m, 'feature')} with the largest weights, from {shown(names[0], 32)} on: red cells "
        "are above the mean of the feature, blue ones below.",
        "notes": _notes(_said_of_choice(facts, np.arange(facts.n), rows)),
    }
