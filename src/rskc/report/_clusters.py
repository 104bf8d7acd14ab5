"""The clusters one by one: counts, markers, a sentence, a short name and a profile of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rskc.markers import MarkerEffects, markers_frame
from rskc.model.fitted import number_names, number_weights
from rskc.model.summary import in_units
from rskc.pictures import models as pictures
from rskc.report._facts import CHART_WIDTH, Facts
from rskc.utils.webpage import clean_names, plain_numbers
from rskc.utils.wording import cleaned, count, number, percent, sentence_list

MOST_MARKERS = 5  # of a cluster in the table of markers
MOST_IN_PROFILE = 6  # features, the same for all clusters, so that profiles can be compared
MOST_PROFILES = 24
LONGEST_NAME, LONGEST_FEATURE = 48, 40  # of a cluster, and of a feature in a sentence
# A category is what a cluster mostly is, or hardly ever, from these shares of its cases on.
MOSTLY, RARELY = 0.5, 0.1


def clusters_of(facts: Facts) -> list[dict[str, Any]]:
    """Return how large each cluster is, and how clear."""
    weights = np.bincount(facts.labels, facts.masses, facts.K)
    return [
        {
            "cluster": k,
            "size": int(facts.sizes[k]),
            "share": float(facts.sizes[k] / facts.n),
            "weight": None if facts.case_weights is None else float(weights[k]),
            "weight_share": float(weights[k] / weights.sum()),
            "n_outliers": int((mine & facts.outliers).sum()),
            "silhouette": facts.mean_silhouette(mine),
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
    mean, others = write(row.mean), write(row.mean_of_others)
    side, level = ("below", "low") if row.effect < 0 else ("above", "high")
    words, against = f"{abs(row.effect):.1f} SD {side}", f" against {others}"
    if is_share:
        words = f"{mean} of the cluster, {others} of the others"
        level = "mostly" if row.mean >= MOSTLY else "more often"
        if row.mean < row.mean_of_others:
            level = "rarely" if row.mean < RARELY else "less often"
    # With two clusters, effect and separation are the same number, up to rounding.
    elif row.position == "between" and row.separation > abs(row.effect):
        words = f"between the others, {row.separation:.1f} SD from the nearest"
        level, against = "medium", ", between those of other clusters"
    name = f"{level} {cleaned(row.feature, LONGEST_FEATURE)}"
    return {
        "feature": cleaned(row.feature),
        "words": words,
        "name": name,
        "longer_name": f"{name} ({mean})",
        "phrase": f"{name} ({'' if is_share else 'mean '}{mean}{against})",
        "is_share": is_share,
        "mean": float(row.mean),
        "mean_of_others": float(row.mean_of_others),
        "probability": getattr(row, "selection_probability", None),
    }


def cards_of(
    facts: Facts,
    effects: MarkerEffects,
    markers: list[dict[str, Any]],
    sure: Mapping[str, Any] | None,
) -> list[dict[str, Any]]:
    """Return a sentence, a short name and a profile of each cluster."""
    tops, cards = [group["top"] for group in markers], []
    stable = (sure and sure["clusters"]) or [None] * facts.K
    names, profiles = short_names(tops), _profiles(facts, effects)
    for k in range(facts.K):
        words = sentence_list([row["phrase"] for row in tops[k][:3]])
        if facts.K > 1 and not words:
            words = "no feature sets them apart by half a standard deviation or more"
        size = f"{count(int(facts.sizes[k]), 'case')} ({percent(facts.sizes[k] / facts.n)})"
        parts = [f"{size}: {words}" if words else size]
        if stable[k] is not None:
            figure = f"median Jaccard index {stable[k]['stability']:.2f}"
            parts.append(f"The cluster is {stable[k]['word']} over the half-samples ({figure})")
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
    for n, name in ((1, "name"), (2, "name"), (1, "longer_name")):
        longer = [", ".join(row[name] for row in top[:n]) for top in tops]
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
