"""The clusters one by one: counts, markers, a sentence, a short name and a profile of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rskc.markers import effects_of, markers_frame
from rskc.model.fitted import number_names, number_weights
from rskc.model.summary import in_units
from rskc.pictures import models as pictures
from rskc.report._facts import CHART_WIDTH, Facts, clean_names, plain_numbers
from rskc.utils.wording import cleaned, count, number, percent, sentence_list

MOST_MARKERS = 5  # of a cluster in the table of markers
MOST_IN_SENTENCE = 3
MOST_IN_PROFILE = 6  # features, the same for all clusters, so that profiles can be compared
MOST_PROFILES = 24
LONGEST_NAME, LONGEST_FEATURE = 48, 40  # of a cluster, and of a feature in a sentence
# A category is what a cluster mostly is, or hardly ever, from these shares of its cases on.
MOSTLY, RARELY = 0.5, 0.1


def clusters_of(facts: Facts) -> list[dict[str, Any]]:
    """Return how large each cluster is, and how clear."""
    return [_counts(facts, k) for k in range(facts.K)]


def _counts(facts: Facts, k: int) -> dict[str, Any]:
    mine = facts.labels == k
    return {
        "cluster": k,
        "size": int(mine.sum()),
        "share": float(mine.mean()),
        "weight": None if facts.case_weights is None else facts.weight_of(mine),
        "weight_share": facts.weight_of(mine) / facts.weight_of(facts.labels >= 0),
        "n_outliers": int((mine & facts.outliers).sum()),
        "silhouette": mean_silhouette(facts, mine & facts.seen & ~facts.outliers),
    }


def mean_silhouette(facts: Facts, cases: np.ndarray) -> float | None:
    """Return the mean silhouette of the cases of a mask, None if there is none."""
    if facts.silhouette is None or facts.weight_of(cases) == 0:
        return None
    return facts.mean(facts.silhouette.values, cases)


class Told:
    """What sets each cluster apart, in words and numbers."""

    def __init__(self, facts: Facts, probabilities: np.ndarray | None):
        self._facts, self._effects = facts, effects_of(facts.model, facts.X)
        frame = markers_frame(facts.model, self._effects, selection_probabilities=probabilities)
        frame = in_units(frame, facts.units)
        encoder, self._names = getattr(facts.model, "encoder_", None), number_names(facts.model)
        indicators = () if encoder is None else self._names[encoder.indicators]
        self.markers: list[dict[str, Any]] = []
        for k in range(facts.K):
            own = frame[frame.cluster == k]
            rows = own.head(MOST_MARKERS).itertuples()
            top = [_marker(row, row.feature in indicators) for row in rows]
            self.markers.append({"cluster": k, "n": len(own), "top": top})

    def cards(self, sure: Mapping[str, Any] | None) -> list[dict[str, Any]]:
        """Return a sentence, a short name, the most typical case and a profile of each cluster."""
        tops = [group["top"] for group in self.markers]
        known: list[Any] = [] if sure is None else sure["clusters"]
        stable = known or [None] * len(tops)
        typical = [self._typical(k) for k in range(len(tops))]
        profiles = self._profiles()
        return [
            {
                "name": name,
                "sentence": self._sentence(k, tops[k], stable[k], typical[k]),
                "typical": typical[k],
                "stability": stable[k] and stable[k]["stability"],
                "profile": profiles[k],
            }
            for k, name in enumerate(short_names(tops))
        ]

    def _sentence(self, k: int, top: list, stable: Mapping | None, typical: str | None) -> str:
        facts = self._facts
        size = int(facts.sizes[k])
        parts = [f"{count(size, 'case')} ({percent(size / facts.n)})"]
        if top:
            parts[0] += f": {sentence_list([_phrase(row) for row in top[:MOST_IN_SENTENCE]])}"
        elif facts.K > 1:
            parts[0] += ", which no feature sets apart by half a standard deviation or more"
        if stable is not None:
            figure = f"median Jaccard index {stable['stability']:.2f}"
            parts.append(f"The cluster is {stable['word']} over the half-samples ({figure})")
        if typical is not None:
            parts.append(f"Its most typical case is {typical}")
        return ". ".join(parts) + "."

    def _typical(self, k: int) -> str | None:
        """Name the case nearest to the center."""
        facts = self._facts
        own = np.flatnonzero((facts.labels == k) & facts.seen & ~facts.outliers)
        if len(own) == 0:
            return None
        return cleaned(facts.case_names[own[np.argmin(facts.distances[own])]], LONGEST_NAME)

    def _profiles(self) -> list[list[dict[str, Any]]]:
        """Return, for each cluster, how far it is from the others in the strongest features."""
        effects = self._effects.effects
        if not 1 < len(effects) <= MOST_PROFILES:
            return [[] for _ in effects]
        features = pictures.strongest(number_weights(self._facts.model), MOST_IN_PROFILE)
        names = clean_names(self._names[features], CHART_WIDTH)
        shown = np.nan_to_num(effects[:, features])
        lengths = np.abs(shown) / max(np.abs(shown).max(initial=0), 1e-9)
        return [
            [
                {"feature": name, "effect": effect, "length": length}
                for name, effect, length in zip(names, plain_numbers(row, 3), part, strict=True)
            ]
            for row, part in zip(shown, lengths.round(3).tolist(), strict=True)
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
    longer = [", ".join(map(_level, top[:2])) for top in tops]
    return [
        cleaned(name if names.count(name) == 1 else more, LONGEST_NAME) or f"cluster {k}"
        for k, (name, more) in enumerate(zip(names, longer, strict=True))
    ]
