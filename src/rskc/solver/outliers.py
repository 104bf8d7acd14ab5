"""Which cases are outlying: by the distances to their centers, weighted and unweighted.

A squared distance over many features is nearly a sum of squares of normal errors, and the cube root
of such a sum is nearly normal whatever their number (Wilson and Hilferty): on that scale 3 MAD
above the median are exceeded by .13% to .18% of the cases of clean normal data, for 1 to 1,000
features alike. On the scale of the distances themselves, the paper's, 3.5 MAD are exceeded by 10%
of the cases with one feature, and by 2% with four.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rskc.engines import Cases, Engine

# For normal data the standard deviation is this many median deviations.
NORMAL = 1.4826
# Cut-offs of the rules: MADs above the median.
CUTOFFS = {"both": 3.0, "paper": 3.5}
RULES = tuple(CUTOFFS)
# No more than this share of the cases is set aside; the cut-off is raised until it is so.
MOST_FLAGGED, LARGEST_CUTOFF = 0.25, 1e6
# Distances of typical cases are about 1 in the frame; less than this is rounding and no outlier.
ROUNDING = 1e-24


class Distances(NamedTuple):
    """Squared distances (n,) of cases to their centers, in the units of the data."""

    weighted: Any
    unweighted: Any


class Thresholds(NamedTuple):
    """The squared distances beyond which a case is an outlier."""

    weighted: float
    unweighted: float

    def flag(self, distances: Distances) -> Distances:
        """Return masks of the cases that either distance flags."""
        return Distances(*(d > limit for d, limit in zip(distances, self, strict=True)))


def even_weights(centers: np.ndarray) -> np.ndarray:
    """Return the weights (1, p) of the unweighted distance: 0 for features without a center."""
    return (~np.isnan(centers)).any(axis=0)[None].astype(np.float64)


def distances_to(engine: Engine, labels: Any, centers: np.ndarray, weights: np.ndarray) -> Any:
    """Return the squared distances (n,) to centers (K, p), by weights (1, p)."""
    arrays = engine.arrays
    found = engine.distances(arrays.as_run(labels), engine.place(centers[None]), weights)
    return arrays.only(found) * engine.unit


def thresholds(
    engine: Engine, distances: Distances, groups: Any, sizes: np.ndarray, rule: str, cutoff: float
) -> Thresholds:
    """Return the thresholds of a rule for the cases of a fit.

    ``groups`` (n,) are the labels of the cases that make the centers, -1 for the others, and
    ``sizes`` (K,) how many these are. A case pulls its center towards itself; what it would be far
    from the center without it, as new cases are, is the distance times (n / (n - 1))^2. Where
    there are many features and few cases that is several MADs: with 5,000 and 20 a cluster, 5.
    """
    least = ROUNDING * engine.unit
    if rule == "paper":
        median, deviation = engine.arrays.spread(distances.weighted)
        return Thresholds(max(median + cutoff * NORMAL * deviation, least), np.inf)
    found = (_limit(engine.arrays, each, groups, sizes, cutoff) for each in distances)
    return Thresholds(*(max(limit, least) for limit in found))


def _limit(arrays: Cases, costs: Any, groups: Any, sizes: np.ndarray, cutoff: float) -> float:
    median, deviation = arrays.spread(arrays.cube_roots(costs, groups, pulls(sizes)))
    return (median + cutoff * NORMAL * deviation) ** 3


def far_cases(
    engine: Engine, distances: Distances, groups: Any, sizes: np.ndarray, cutoff: float
) -> Distances:
    """Return masks of the cases of a fit that either distance flags by the rule "both".

    Every case is judged by its distance to the center without it. Where more than MOST_FLAGGED
    would be flagged, as with few distinct values, only those at the largest distances are.
    """
    arrays = engine.arrays
    roots = [arrays.cube_roots(each, groups, pulls(sizes)) for each in distances]
    spreads = [arrays.spread(each) for each in roots]
    while True:
        limits = [median + cutoff * NORMAL * deviation for median, deviation in spreads]
        far = Distances(*(each > limit for each, limit in zip(roots, limits, strict=True)))
        flagged = arrays.as_run(far.weighted | far.unweighted)
        if arrays.differ(flagged, flagged & ~flagged)[0] <= MOST_FLAGGED * engine.n_cases:
            return far
        cutoff *= 2
        if cutoff > LARGEST_CUTOFF or not any(deviation for _, deviation in spreads):
            return Distances(*(mask & ~mask for mask in far))


def pulls(sizes: np.ndarray) -> np.ndarray:
    """Return by how much squared distances of the cases of each cluster are too small."""
    return (sizes / np.maximum(sizes - 1, 1)) ** 2
