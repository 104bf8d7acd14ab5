"""A dip between neighbors: whether cases that did not make two clusters lie in two groups.

Cases along a line are cut into slices that come back in every half, and one normal cloud does not
explain them. But between slices there is no gap. Where there are clusters, the projections of their
cases onto the line between the centers have two modes. The dip of Hartigan and Hartigan ("The dip
test of unimodality", Annals of Statistics 13, 1985) is the distance of a distribution from the
nearest one with a single mode. It is measured on the half of the cases that the clusters were not
made of: those of the other half always show a gap where there are many features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rskc.inputs.arrays import to_numpy
from rskc.selection.cloud import neighbors

# Of more values so many, evenly spaced, stand for them all: the dip of 2,500 even values is .007.
MOST_VALUES = 500
# Of fewer cases in either cluster the places say too little: of 14 beside 34, far apart, halves
# missed the small one, and no dip was left.
FEWEST = 15
# Of the larger of two clusters no more than so many times the cases of the smaller one count, those
# that are nearest to it: 7 beside 33 hardly make a dip.
MOST_TIMES = 2
# Quantiles of sqrt(n) times the dip of n even values, for these probabilities, at sizes SIZES; of
# 100,000 draws each. Even values have the largest dips of all that have one mode.
PROBABILITIES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
SIZES = (8, 16, 32, 64, 128, 256, 512)
QUANTILES = (
    (0.1768, 0.2086, 0.2318, 0.2723, 0.3143, 0.3476, 0.4005, 0.4351, 0.4887, 0.5450),
    (0.2131, 0.2359, 0.2474, 0.2817, 0.3250, 0.3738, 0.4279, 0.4609, 0.5273, 0.6093),
    (0.2185, 0.2446, 0.2608, 0.2941, 0.3379, 0.3924, 0.4489, 0.4858, 0.5587, 0.6429),
    (0.2246, 0.2522, 0.2695, 0.3030, 0.3491, 0.4046, 0.4634, 0.5021, 0.5785, 0.6724),
    (0.2298, 0.2586, 0.2764, 0.3107, 0.3573, 0.4143, 0.4741, 0.5131, 0.5945, 0.6857),
    (0.2347, 0.2634, 0.2813, 0.3163, 0.3634, 0.4214, 0.4831, 0.5233, 0.6070, 0.7071),
    (0.2385, 0.2676, 0.2851, 0.3201, 0.3682, 0.4273, 0.4901, 0.5308, 0.6170, 0.7177),
)


def places_of(model: Any, X: Any, others: np.ndarray) -> dict[str, np.ndarray]:
    """Return where cases lie that a model was not fitted to; nothing of a model without centers.

    Parameters
    ----------
    model : estimator
        Fitted to some cases, with ``cluster_centers_`` and ``transform``.
    X : ndarray or sparse matrix of shape (n, p)
        All cases.
    others : ndarray of int
        Numbers of cases that the model was not fitted to.

    Returns
    -------
    places : dict
        ``others``; ``distances`` (others, K), squared, to the centers; ``gaps`` (K, K) of these.
    """
    centers = to_numpy(getattr(model, "cluster_centers_", np.empty((0, 0))))
    K, width = centers.shape
    if K == 0 or width != X.shape[1] or not hasattr(model, "transform"):
        return {"others": others[:0], "distances": np.empty((0, K)), "gaps": np.empty((K, K))}
    distances = to_numpy(model.transform(X[others])).astype(np.float64) ** 2
    roots = np.sqrt(to_numpy(getattr(model, "feature_weights_", np.ones(width))))
    between = np.nan_to_num((centers[:, None] - centers) * roots)
    return {"others": others, "distances": distances, "gaps": (between**2).sum(axis=2)}


def largest_dip(n: int, K: int, places: Sequence[Mapping[str, Any]]) -> float:
    """Return the largest p-value of a dip between two neighbors; NaN where none is known.

    A case has one place for each fit that it took no part in, and their median counts: places of
    single fits, to half of the cases, are blurred, and a half may miss a small cluster.

    Parameters
    ----------
    n, K : int
        Number of cases, and of clusters.
    places : sequence of dict
        What ``places_of`` found, with the clusters numbered alike.
    """
    known = [each for each in places if len(each["others"])]
    if not known or K < 2:
        return np.nan
    gaps = np.median([each["gaps"] for each in known], axis=0)
    distances = np.full((len(known), n, K), np.nan)
    for each, own in zip(known, distances, strict=True):
        own[each["others"]] = each["distances"]
    distances = distances[:, ~np.isnan(distances).all(axis=(0, 2))]
    labels = np.nanmedian(distances, axis=0).argmin(axis=1)
    found = []
    for a, b in neighbors(gaps):
        apart = np.array([each["gaps"][a, b] for each in known])[:, None]
        steps = (distances[:, :, a] - distances[:, :, b]) / np.where(apart > 0, apart, np.inf)
        along = np.nanmedian(steps, axis=0)
        sides = [along[labels == k] for k in (a, b)]
        few = min(map(len, sides))
        if few >= FEWEST:
            # What is left of a distribution with one mode, cut off, has one mode.
            near = [side[np.argsort(np.abs(side))[: MOST_TIMES * few]] for side in sides]
            found.append(dip_p_value(np.concatenate(near)))
    return max(found, default=np.nan)


def dip_p_value(values: np.ndarray) -> float:
    """Return the probability of a dip as large, if the values (n,) were drawn from an even one."""
    size = np.sqrt(len(values)) * dip(values)
    at = np.clip(np.log2(len(values)), np.log2(SIZES[0]), np.log2(SIZES[-1]))
    quantiles = [np.interp(at, np.log2(SIZES), column) for column in np.transpose(QUANTILES)]
    return float(1 - np.interp(size, quantiles, PROBABILITIES, 0.0, 1.0))


def dip(values: np.ndarray) -> float:
    """Return the dip of values (n,): the distance from the nearest distribution with one mode.

    A mode lies between two values; to their left the nearest distribution is the greatest convex
    minorant of the observed one, to their right the least concave majorant. From all values on, the
    two are moved together while minorant and majorant are farther apart in between than the
    observed distribution is from them outside.
    """
    x, n = np.sort(values), len(values)
    if n > MOST_VALUES:
        x, n = x[_spaced(n)], MOST_VALUES
    before, after = np.arange(n, dtype=float), np.arange(1.0, n + 1)  # values below, and at most
    low, high, distance = 0, n - 1, 1.0
    while x[low] < x[high]:
        inside = np.arange(low, high + 1)
        under = inside[_hull(x[inside], before[inside], 1.0)]
        above = inside[_hull(x[inside], after[inside], -1.0)]
        corners = np.union1d(under, above)
        minorant = np.interp(x[corners], x[under], before[under])
        majorant = np.interp(x[corners], x[above], after[above])
        widest = corners[np.argmax(majorant - minorant)]
        gap = (majorant - minorant).max()
        if gap <= distance:
            break
        new_low, new_high = under[under <= widest].max(), above[above >= widest].min()
        left, right = np.arange(low, new_low + 1), np.arange(new_high, high + 1)
        outside = (
            (after[left] - np.interp(x[left], x[under], before[under])).max(),
            (np.interp(x[right], x[above], after[above]) - before[right]).max(),
        )
        distance = max(distance, *outside)
        if (new_low, new_high) == (low, high):
            break
        low, high = new_low, new_high
    return float(distance) / (2 * n)


def _spaced(n: int) -> np.ndarray:
    return ((np.arange(MOST_VALUES) + 0.5) * n / MOST_VALUES).astype(np.int64)


def _hull(x: np.ndarray, y: np.ndarray, side: float) -> np.ndarray:
    """Return which points are corners of the lower hull (side 1) or the upper one (side -1)."""
    points = list(zip(x.tolist(), (side * y).tolist(), strict=True))
    corners: list[int] = []
    for i, (xi, yi) in enumerate(points):
        while len(corners) > 1:
            (xa, ya), (xb, yb) = points[corners[-2]], points[corners[-1]]
            if (yb - ya) * (xi - xa) < (yi - ya) * (xb - xa):
                break
            corners.pop()
        corners.append(i)
    return np.array(corners)
