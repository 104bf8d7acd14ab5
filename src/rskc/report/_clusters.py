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
    total = facts.weight_of(facts.labels >= 0)
    return [
        {
            "cluster": k,
            "size": int(mine.sum()),
            "share": float(mine.mean()),
            "weight": None if facts.case_weights is None else facts.weight_of(mine),
            "weight_share": facts.weight_of(mine) / total,
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


def cards_of(
    facts: Facts,
    effects: MarkerEffects,
    markers: list[dict[str, Any]],
    sure: Mapping[str, Any] | None,
) -> list[dict[str, Any]]:
    """Return a sentence, a short name, the most typical case and a profile of each cluster."""
    tops, cards = [group["top"] for group in markers], []
    stable = (sure and sure["clusters"]) or [None] * facts.K
    names, profiles = short_names(tops), _profiles(facts, effects)
    for k in range(facts.K):
        size, words = int(facts.sizes[k]), sentence_list([_phrase(row) for row in tops[k][:3]])
        if facts.K > 1 and not words:
            words = "no feature sets them apart by half a standard deviation or more"
        parts = [f"{count(size, 'case')} ({percent(size / facts.n)}){words and ': '}{words}"]
        if stable[k] is not None:
            figure = f"median Jaccard index {stable[k]['stability']:.2f}"
            parts.append(f"The cluster is {stable[k]['word']} over the half-samples ({figure})")
        mine, typical = (facts.labels == k) & facts.seen & ~facts.outliers, None
        if mine.any():
            nearest = np.argmin(np.where(mine, facts.distances, np.inf))
            typical = cleaned(facts.case_names[nearest], LONGEST_NAME)
            parts.append(f"Its most typical case is {'number ' * typical.isdecimal()}{typical}")
        cards.append(
            {
                "name": names[k],
                "sentence": ". ".join(parts) + ".",
                "typical": typical,
                "stability": stable[k] and stable[k]["stability"],
                "profile": profiles[k],
            }
        )
    return cards


def _profiles(facts: Facts, effects: MarkerEffects) -> list[list[dict[str, Any]]]:
    """Return, for each cluster, how far it is from the others in the strongest features."""
    if not 1 < facts.K <= MOST_PROFILES:
        return [[] for _ in range(facts.K)]
    features = pictures.strongest(number_weights(facts.model), MOST_IN_PROFILE)
    names = clean_names(number_names(facts.model)[features], CHART_WIDTH)
    shown = np.nan_to_num(effects.effects[:, features])
    lengths = (np.abs(shown) / max(np.abs(shown).max(initial=0), 1e-9)).round(3)
    return [
        [
            {"feature": name, "effect": effect, "length": length}
            for name, effect, length in zip(names, plain_numbers(row, 3), part, strict=True)
        ]
        for row, part in zip(shown, lengths.tolist(), strict=True)
    ]


def _marker(row: Any, is_share: bool) -> dict[str, Any]:
    words = f"{abs(row.effect):.1f} SD {'below' if row.effect < 0 else 'above'}"
    # With two clusters, effect and separation are the same number, up to rounding.
    between = row.position == "between" and row.separation > abs(row.effect)
    if between:
        words = f"between the others, {row.separation:.1f} SD from the nearest"
    if is_share:
        words = f"{percent(row.mean)} of the cluster, {percent(row.mean_of_others)} of the others"
    return {
        "feature": cleaned(row.feature),
        "words": words,
        "level": "medium" if between and not is_share else "low" if row.effect < 0 else "high",
        "is_share": is_share,
        "mean": float(row.mean),
        "mean_of_others": float(row.mean_of_others),
        "probability": getattr(row, "selection_probability", None),
    }


def _phrase(row: Mapping[str, Any]) -> str:
    """Say how a feature sets a cluster apart, with its means."""
    write = percent if row["is_share"] else number
    mean, others = write(row["mean"]), f" against {write(row['mean_of_others'])}"
    if row["level"] == "medium":
        others = ", between those of other clusters"
    return f"{_level(row)} ({mean if row['is_share'] else f'mean {mean}'}{others})"


def _level(row: Mapping[str, Any]) -> str:
    name, share = cleaned(row["feature"], LONGEST_FEATURE), row["mean"]
    if not row["is_share"]:
        return f"{row['level']} {name}"
    if share >= row["mean_of_others"]:
        return f"{'mostly' if share >= MOSTLY else 'more often'} {name}"
    return f"{'rarely' if share < RARELY else 'less often'} {name}"


def short_names(tops: list[list[dict[str, Any]]]) -> list[str]:
    """Name each cluster by what sets it apart most; by more of it where two would be alike."""
    names = [", ".join(map(_level, top[:1])) for top in tops]
    for more in (lambda top: ", ".join(map(_level, top[:2])), _level_and_mean):
        alike = [names.count(name) > 1 for name in names]
        names = [
            more(top) if same else name for name, top, same in zip(names, tops, alike, strict=True)
        ]
    return [cleaned(name, LONGEST_NAME) or f"cluster {k}" for k, name in enumerate(names)]


def _level_and_mean(top: list[dict[str, Any]]) -> str:
    if not top:
        return ""
    write = percent if top[0]["is_share"] else number
    return f"{_level(top[0])} ({write(top[0]['mean'])})"
