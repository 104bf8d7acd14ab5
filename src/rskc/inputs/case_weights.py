"""What cases count: ``sample_weight`` as the engines take it (internal).

Weights are divided by a unit, so that a case has about mass 1. Where all weights are multiples of a
unit, masses are whole, and a case is as that many copies of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rskc.inputs.arrays import is_on_device, to_numpy
from rskc.utils.wording import short_repr


def check_sample_weight(sample_weight: Any, n: int | None) -> np.ndarray:
    """Return weights (n,) of cases; None for a number of cases that is not known."""
    try:
        weights = np.asarray(to_numpy(sample_weight), dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"sample_weight must hold numbers, one for each case; got {short_repr(sample_weight)}."
        ) from None
    if weights.ndim != 1 or (n is not None and len(weights) != n):
        cases = "one number for each case" if n is None else f"shape ({n},): a number for each case"
        raise ValueError(f"sample_weight has shape {weights.shape}; it must have {cases}.")
    for bad, what in ((np.isnan(weights), "NaN"), (np.isinf(weights), "infinity")):
        if bad.any():
            raise ValueError(
                f"sample_weight contains {what}, first for case {int(bad.argmax())}; give every "
                "case a number, 0 for one that is not to count."
            )
    if (weights < 0).any():
        case = int((weights < 0).argmax())
        raise ValueError(
            f"sample_weight is negative for case {case}: {weights[case]:g}; weights must be 0 or "
            "more."
        )
    if not weights.any():
        raise ValueError("sample_weight is zero for all cases; give some of them a weight above 0.")
    return weights


class CaseWeights(NamedTuple):
    """Which cases count, and how much."""

    given: np.ndarray | None  # (n,) as they were given; None if all count the same
    masses: np.ndarray | None  # of those above 0, in units; None if these are all 1
    unit: float

    def of(self, array: Any) -> Any:
        """Return an array without the cases of weight 0, which do not take part in a fit."""
        if self.given is None or self.given.all():
            return array
        return rows_of(array, np.flatnonzero(self.given))

    def names(self, names: np.ndarray | None) -> np.ndarray | None:
        """Return the names of these cases; their numbers, where some are left out."""
        if names is None and self.given is not None and not self.given.all():
            return np.flatnonzero(self.given)
        return names if names is None else self.of(names)


def rows_of(array: Any, numbers: np.ndarray) -> Any:
    """Return some cases of an array of any kind, of that kind."""
    if not is_on_device(array):
        return array[numbers]
    from array_api_compat import array_namespace, device

    xp = array_namespace(array)
    return xp.take(array, xp.asarray(numbers, device=device(array)), axis=0)


def case_weights_of(X: Any, sample_weight: Any) -> CaseWeights:
    """Check the weights of cases, and find their unit."""
    if sample_weight is None:
        return CaseWeights(None, None, 1.0)
    n = X.shape[0]
    weights = check_sample_weight(sample_weight, None if np.isnan(n) else int(n))
    if np.isnan(n) and not weights.all():
        raise ValueError(
            "sample_weight is 0 for some cases, and the lengths of the chunks of X are not known; "
            "call X.compute_chunk_sizes() first, or leave these cases out."
        )
    masses, unit = _in_units(weights[weights > 0])
    return CaseWeights(weights, None if (masses == 1).all() else masses, unit)


def masses_of(weights: np.ndarray) -> np.ndarray:
    """Return checked weights (n,) in units, 0 for a case that takes no part."""
    masses, counted = np.zeros(len(weights)), weights > 0
    masses[counted] = _in_units(weights[counted])[0]
    return masses


def _in_units(weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Return weights above 0 in units, and the unit; whole numbers where they are copies."""
    if len(weights) == 0:
        return weights, 1.0
    unit, whole = unit_of(weights)
    return np.rint(weights / unit) if whole else weights / unit, unit


def mean_by_weight(values: np.ndarray, weights: np.ndarray | None) -> float:
    """Return the mean of values; NaN of those that have no weight."""
    if weights is None:
        return float(values.mean()) if len(values) else np.nan
    total = weights.sum()
    return float(values @ weights / total) if total > 0 else np.nan


def count_of(share: float, n: int) -> int:
    """Return floor(share * n); 10 / 78 * 78 and 0.29 * 100 are 10 and 29 whatever they round to."""
    return int(np.floor(share * n + 1e-9))


def trimmed_sum(distances: np.ndarray, weights: np.ndarray, share: float) -> float:
    """Sum distances times weights, without the largest that have this share of the weight."""
    counted = weights > 0
    if not counted.any():
        return 0.0
    distances, weights = distances[counted], weights[counted]
    unit, whole = unit_of(weights)
    gone = share * weights.sum()
    gone = count_of(1, gone / unit) * unit if whole else gone
    order = np.argsort(-distances, kind="stable")
    kept = np.clip(np.cumsum(weights[order]) - gone, 0, weights[order])
    return float(kept @ distances[order])


def unit_of(weights: np.ndarray, most: int = 20) -> tuple[float, bool]:
    """Return the unit of weights, and whether these are whole multiples of it: copies.

    It is the largest number of which all weights are multiples, if the least of them is at most
    20 units. Otherwise it is their mean: a case has about mass 1 in any case, whatever all weights
    are multiplied by.
    """

    def are_multiples(weights: np.ndarray, unit: float) -> bool:
        counts = weights / unit
        whole_counts = np.abs(counts - np.rint(counts)) <= 1e-9 * counts
        return bool(whole_counts.all()) and float(counts.max()) < 1e6

    for number in range(1, most + 1):
        unit = float(weights.min()) / number
        if are_multiples(weights[:1000], unit) and are_multiples(weights, unit):
            return unit, True
    return float(weights.mean()), False
