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
# The cut-off is raised by this factor where more than these shares of the cases lie within it, just
# before and just behind: on noise with 3 degrees of freedom that flags 2% instead of 8%.
TAIL, TAIL_BEFORE, TAIL_BEHIND = 5 / 3, 0.05, 0.01
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


class Judgment(NamedTuple):
    """The thresholds of a rule, and the cut-off that they were made with."""

    thresholds: Thresholds
    cutoff: float


def judge(
    engine: Engine,
    distances: Distances,
    groups: Any,
    sizes: np.ndarray,
    rule: str,
    cutoff: float | None,
) -> Judgment:
    """Return the thresholds of a rule for the cases of a fit.

    ``groups`` (n,) are the labels of the cases that make the centers, -1 for the others, and
    ``sizes`` (K,) how many these are. A case pulls its center towards itself; what it would be far
    from the center without it, as new cases are, is the distance times (n / (n - 1))^2. Where
    there are many features and few cases that is several MADs: with 5,000 and 20 a cluster, 5.
    Without a cut-off the rule's own is taken, raised for heavy tails.
    """
    least = ROUNDING * engine.unit
    if rule == "paper":
        own = CUTOFFS[rule] if cutoff is None else cutoff
        median, deviation = engine.arrays.spread(distances.weighted)
        return Judgment(Thresholds(max(median + own * NORMAL * deviation, least), np.inf), own)
    scale = _Scale.of(engine, distances, groups, sizes)
    own = scale.cutoff_for_tail(CUTOFFS[rule]) if cutoff is None else cutoff
    return Judgment(Thresholds(*(max(limit**3, least) for limit in scale.limits(own))), own)


def far_cases(
    engine: Engine, distances: Distances, groups: Any, sizes: np.ndarray, cutoff: float
) -> Distances:
    """Return masks of the cases of a fit that either distance flags by the rule "both".

    Every case is judged by its distance to the center without it. Where more than MOST_FLAGGED
    would be flagged, as with few distinct values, only those at the largest distances are.
    """
    scale = _Scale.of(engine, distances, groups, sizes)
    cutoff = scale.cutoff_for_tail(cutoff)
    while scale.n_beyond(cutoff) > MOST_FLAGGED * engine.n_cases:
        cutoff *= 2
        if cutoff > LARGEST_CUTOFF:
            return Distances(*(mask & ~mask for mask in scale.beyond(cutoff)))
    return scale.beyond(cutoff)


class _Scale(NamedTuple):
    """Cube roots (n,) of both distances, to the centers without the case, and their spreads."""

    arrays: Cases
    n_cases: int
    roots: Distances
    spreads: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, engine: Engine, distances: Distances, groups: Any, sizes: np.ndarray) -> _Scale:
        """Take the cube roots of distances."""
        arrays = engine.arrays
        roots = Distances(*(arrays.cube_roots(each, groups, pulls(sizes)) for each in distances))
        return cls(arrays, engine.n_cases, roots, tuple(arrays.spread(each) for each in roots))

    def limits(self, cutoff: float) -> list[float]:
        """Return the cube roots beyond which a case is flagged."""
        return [median + cutoff * NORMAL * deviation for median, deviation in self.spreads]

    def beyond(self, cutoff: float) -> Distances:
        """Return masks of the cases that each distance flags."""
        pairs = zip(self.roots, self.limits(cutoff), strict=True)
        return Distances(*(each > limit for each, limit in pairs))

    def n_beyond(self, cutoff: float) -> int:
        """Count the cases that either distance flags."""
        far = self.beyond(cutoff)
        out = self.arrays.as_run(far.weighted | far.unweighted)
        return int(self.arrays.differ(out, out & ~out)[0])

    def cutoff_for_tail(self, cutoff: float) -> float:
        """Return the cut-off, or a larger one where no gap but a tail lies behind it.

        Outlying cases come after a gap. Of heavy-tailed data many lie just before and just behind
        any cut-off, where of normal data 5% and .3% do.
        """
        before, behind, last = (self.n_beyond(step * cutoff) for step in (1 / TAIL, 1.0, TAIL))
        is_tail = behind - last >= max(3, TAIL_BEHIND * self.n_cases) and (
            before - behind >= max(TAIL_BEFORE * self.n_cases, 0.75 * (behind - last))
        )
        return TAIL * cutoff if is_tail else cutoff


def pulls(sizes: np.ndarray) -> np.ndarray:
    """Return by how much squared distances of the cases of each cluster are too small."""
    return (sizes / np.maximum(sizes - 1, 1)) ** 2
