"""Which cases are outlying, clusters without them, and which of them are a clump (internal).

*Distances and thresholds.* Cases are judged by the distances to their centers, weighted and
unweighted. A squared distance over many features is nearly a sum of squares of normal errors, and
the cube root of such a sum is nearly normal whatever their number (Wilson and Hilferty): on that
scale 3 MAD above the median are exceeded by .13% to .18% of the cases of clean normal data, for 1
to 1,000 features alike. On the scale of the distances themselves, the paper's, 3.5 MAD are exceeded
by 10% of the cases with one feature, and by 2% with four.

*Reweighting.* Trimming takes a share of the cases that somebody chose. In the reweighting step the
distances decide: cases beyond the cut-off are left out of centers, B_j and weights, which are made
anew, and so are labels and flags, until they no longer change.

*Clumps.* Outlying cases may resemble one another in the features that make them outlying. In the
features that separate the clusters they are still a mixture of the clusters. A small cluster that
trimming took away is compact there, as the other clusters are, and lies apart from them;
``find_clump`` looks for one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rskc.engines import ArrayOps, Engine
from rskc.inputs.spreads import MAD_FACTOR, column_medians
from rskc.solver import Problem, Solution
from rskc.solver.solution import Held, finish, may_move

# Cut-offs of the rules: MADs above the median.
CUTOFFS = {"both": 3.0, "paper": 3.5}
# The cut-off is raised by this factor where more than these shares of the cases lie within it, just
# before and just behind: on noise with 3 degrees of freedom that flags 2% instead of 8%.
TAIL, TAIL_BEFORE, TAIL_BEHIND = 5 / 3, 0.05, 0.01
# No more than this share of the cases is set aside; the cut-off is raised until it is so.
MOST_FLAGGED, LARGEST_CUTOFF = 0.25, 1e6
# Distances of typical cases are about 1 in the frame; less than this is rounding and no outlier.
ROUNDING = 1e-24
# Rounds in which the reweighting step makes flags and centers consistent.
MOST_ROUNDS = 10


# ---- Distances and thresholds


class Distances(NamedTuple):
    """Squared distances (n,) of cases to their centers, in the units of the data, or flags."""

    weighted: Any
    unweighted: Any

    @property
    def either(self) -> Any:
        """Whether either of two flags is set."""
        return self.weighted | self.unweighted


class Thresholds(NamedTuple):
    """The squared distances beyond which a case is an outlier."""

    weighted: float
    unweighted: float

    def flag(self, distances: Distances) -> Distances:
        """Return masks of the cases that each distance flags."""
        return Distances(*(d > limit for d, limit in zip(distances, self, strict=True)))


def distances_to(engine: Engine, labels: Any, centers: np.ndarray, weights: np.ndarray) -> Any:
    """Return the squared distances (n,) to centers (K, p), by weights (p,)."""
    placed = engine.frame.place(centers[None])
    return engine.distances(labels[None, ...], placed, weights[None])[0, ...] * engine.unit


def both_distances(
    engine: Engine, labels: Any, centers: np.ndarray, weights: np.ndarray, weighted: Any = None
) -> Distances:
    """Return the weighted and the unweighted distances of cases to their centers.

    The weighted ones may be known. To features without a center an unweighted one is 0.
    """
    if weighted is None:
        weighted = distances_to(engine, labels, centers, weights)
    even = (~np.isnan(centers)).any(axis=0).astype(np.float64)
    return Distances(weighted, distances_to(engine, labels, centers, even))


def distances_of(engine: Engine, solution: Solution) -> Distances:
    """Return both distances of the cases of a solution."""
    labels, costs = solution.labels, solution.costs
    if solution.unweighted_costs is not None:
        return Distances(costs, solution.unweighted_costs)
    return both_distances(engine, labels, solution.centers, solution.weights, costs)


def members_of(engine: Engine, solution: Solution) -> Any:
    """Return the labels (n,) of the cases that made the centers, -1 for the others."""
    return engine.arrays.without(solution.labels, solution.trimmed_weighted)


class Judgment(NamedTuple):
    """Distances of the cases, the thresholds that follow from them, and who is beyond these."""

    distances: Distances
    thresholds: Thresholds
    cutoff: float
    outliers: Any  # (n,)


def judge(engine: Engine, solution: Solution, rule: str, cutoff: float | None) -> Judgment:
    """Judge the cases of a fit by a rule.

    A case pulls its center towards itself; what it would be far from the center without it, as new
    cases are, is the distance times (n / (n - 1))^2, for a cluster of n. Where there are many
    features and few cases that is several MADs: with 5,000 and 20 a cluster, 5. Without a cut-off
    the rule's own is taken, raised for heavy tails.
    """
    distances = distances_of(engine, solution)
    least = max(ROUNDING * engine.unit, math.ulp(0.0))  # above 0 for tiny data too
    if rule == "paper":
        cutoff = CUTOFFS[rule] if cutoff is None else cutoff
        median, deviation = engine.arrays.spread(distances.weighted)
        limits = [median + cutoff * MAD_FACTOR * deviation, np.inf]
    else:
        members = members_of(engine, solution)
        scale = _Scale.of(engine, distances, members, solution.kept_sizes)
        cutoff = scale.cutoff_for_tail(CUTOFFS[rule]) if cutoff is None else cutoff
        limits = np.power(scale.limits(cutoff), 3).tolist()  # infinite where no number holds them
    thresholds = Thresholds(*(max(limit, least) for limit in limits))
    return Judgment(distances, thresholds, cutoff, thresholds.flag(distances).either)


def far_of(engine: Engine, solution: Solution, cutoff: float = CUTOFFS["both"]) -> Distances:
    """Return masks of the cases of a solution that each distance flags."""
    distances, members = distances_of(engine, solution), members_of(engine, solution)
    return _Scale.of(engine, distances, members, solution.kept_sizes).far(cutoff)


class _Scale(NamedTuple):
    """Cube roots (n,) of both distances, to the centers without the case, and their spreads."""

    engine: Engine
    roots: Distances
    spreads: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, engine: Engine, distances: Distances, members: Any, sizes: np.ndarray) -> _Scale:
        """Take the cube roots of distances."""
        arrays = engine.arrays
        factors = pulls(sizes)
        roots = Distances(*(arrays.cube_roots(costs, members, factors) for costs in distances))
        # The unweighted ones first: blocks are read for these, while the others need no room.
        unweighted, weighted = map(arrays.spread, roots[::-1])
        return cls(engine, roots, (weighted, unweighted))

    def limits(self, cutoff: float) -> Thresholds:
        """Return the cube roots beyond which a case is flagged."""
        return Thresholds(*(median + cutoff * MAD_FACTOR * mad for median, mad in self.spreads))

    def far(self, cutoff: float = CUTOFFS["both"]) -> Distances:
        """Return masks of the cases that each distance flags by the rule "both".

        Every case is judged by its distance to the center without it.
        """
        return self.limits_for_few(cutoff).flag(self.roots)

    def limits_for_few(self, cutoff: float = CUTOFFS["both"]) -> Thresholds:
        """Return the cube roots beyond which a case is flagged by that rule.

        Where more than MOST_FLAGGED would be flagged, as with few distinct values, only those at
        the largest distances are, or none.
        """
        cutoff = self.cutoff_for_tail(cutoff)
        while self._n_beyond(cutoff) > MOST_FLAGGED * self.engine.mass:
            cutoff = 2 * cutoff if 2 * cutoff <= LARGEST_CUTOFF else np.inf
        return self.limits(cutoff)

    def cutoff_for_tail(self, cutoff: float) -> float:
        """Return the cut-off, or a larger one where no gap but a tail lies behind it.

        Outlying cases come after a gap. Of heavy-tailed data many lie just before and just behind
        any cut-off, where of normal data 5% and .3% do.
        """
        before, behind, last = (self._n_beyond(step * cutoff) for step in (1 / TAIL, 1.0, TAIL))
        is_tail = behind - last >= max(3, TAIL_BEHIND * self.engine.mass) and (
            before - behind >= max(TAIL_BEFORE * self.engine.mass, 0.75 * (behind - last))
        )
        return TAIL * cutoff if is_tail else cutoff

    def _n_beyond(self, cutoff: float) -> float:
        return self.engine.arrays.count(self.limits(cutoff).flag(self.roots).either)


def pulls(sizes: np.ndarray) -> np.ndarray:
    """Return by how much squared distances of the cases of each cluster are too small."""
    return (sizes / np.maximum(sizes - 1, 1)) ** 2


# ---- Reweighting


def reweight(
    engine: Engine,
    problem: Problem,
    centers: np.ndarray,
    weights: np.ndarray,
    members: Any = None,
    thresholds: Thresholds | None = None,
) -> Solution:
    """Repeat flags, centers and weights from given ones until the flags no longer change.

    Those of a few among millions of cases may still change, as labels may.

    Parameters
    ----------
    engine : Engine
        The data.
    problem : Problem
        Its bound, or its number of features, and its number of clusters; nothing is trimmed.
    centers, weights : ndarray of shape (K, p) and (p,)
        Where to begin, in the space of the data.
    members : array of shape (n,) or None
        The cases that made the centers: their labels, -1 for others. None for all.
    thresholds : Thresholds or None
        What the first flags go by, if it is known: one pass over the data then makes flags and
        centers.

    Returns
    -------
    solution : Solution
        Its ``trimmed_weighted`` are all cases that were left out, and its ``trimmed_unweighted``
        those of them that the unweighted distance flags.
    """
    arrays, most = engine.arrays, may_move(problem, engine.n_cases)
    flagged = _first_flags(engine, centers, weights, members, thresholds)
    solution: Solution | None = None
    for _ in range(MOST_ROUNDS):
        held = Held(flagged.groups, flagged.far[None, ...], weights, weights, True)
        del solution  # it has arrays of n numbers, and the next one will
        solution = finish(engine, problem, held)
        del held, flagged
        distances = distances_of(engine, solution)
        solution = replace(solution, unweighted_costs=distances.unweighted)
        weights, sizes = solution.weights, solution.kept_sizes
        groups = members_of(engine, solution)[None, ...]
        far = _Scale.of(engine, distances, groups[0, ...], sizes).far()
        flagged = _Flagged.of(arrays, solution.labels, far)
        if arrays.differ(flagged.groups, groups)[0] <= most or flagged.empties(arrays, sizes):
            break
        del distances, groups, far
    assert solution is not None
    return solution


class _Flagged(NamedTuple):
    """The labels (1, n) of the cases that are not flagged, -1 for the others."""

    groups: Any
    far: Any  # (n,) those that the unweighted distance flags
    labels: Any  # (n,) with them: of blocks, made once for both as long as somebody has them

    @classmethod
    def of(cls, arrays: ArrayOps, labels: Any, far: Distances) -> _Flagged:
        """Leave out the cases that either distance flags."""
        groups = arrays.without(labels[None, ...], far.either[None, ...])
        return cls(groups, far.unweighted, labels)

    def empties(self, arrays: ArrayOps, sizes: np.ndarray) -> bool:
        """Whether nothing is left of a cluster that had cases."""
        return bool(((arrays.sizes(self.groups, len(sizes))[0] == 0) & (sizes > 0)).any())


def first_thresholds(sample: Engine, centers: np.ndarray, weights: np.ndarray) -> Thresholds | None:
    """Return the thresholds by which a sample is flagged; None if that would empty a cluster.

    All cases are flagged by them, in clusters so large that a case does not pull its center.
    """
    arrays, labels = sample.arrays, sample.nearest(centers, weights)
    distances = both_distances(sample, labels, centers, weights)
    sizes = arrays.sizes(labels[None, ...], len(centers))[0]
    limits = _Scale.of(sample, distances, labels, sizes).limits_for_few()
    thresholds = Thresholds(*np.power(limits, 3))
    flagged = _Flagged.of(arrays, labels, thresholds.flag(distances))
    return None if flagged.empties(arrays, sizes) else thresholds


def _first_flags(
    engine: Engine,
    centers: np.ndarray,
    weights: np.ndarray,
    members: Any,
    thresholds: Thresholds | None,
) -> _Flagged:
    """Flag cases by their distances to the first centers; none if that would empty a cluster."""
    arrays, labels = engine.arrays, engine.nearest(centers, weights)
    distances = both_distances(engine, labels, centers, weights)
    if thresholds is not None:  # of blocks nothing is asked yet
        return _Flagged.of(arrays, labels, thresholds.flag(distances))
    groups = (labels if members is None else members)[None, ...]
    sizes = arrays.sizes(groups, len(centers))[0]
    far = _Scale.of(engine, distances, groups[0, ...], sizes).far()
    flagged = _Flagged.of(arrays, labels, far)
    if not flagged.empties(arrays, sizes):
        return flagged
    return flagged._replace(groups=groups, far=flagged.far & ~flagged.far)


# ---- Clumps

# A clump has at least this many cases. The densest third of the cases in question is looked at, and
# where that is none the densest sixth.
FEWEST_OF_CLUMP, CLUMP_PARTS = 5, (3, 6)
# Its center is farther from all others than cases from their centers, by this factor of squares.
LEAST_GAP = 1.5
# Cases within this many MADs of its center, on the cube-root scale of the clusters, belong to it.
REACH_MADS = 3.5
# A feature in which the clump is this many deviations from every cluster, and farther than these
# are from one another, shows outlying cells and not clusters.
OUTLYING_DEVIATIONS = 5.0
# Of more suspect cases some evenly spaced ones are looked at; of the clusters, their first cases.
# Up to 4,000 cases these are all, where that is no more than 4 million cells: with 500, it was the
# order of the cases that decided whether one of 2,500 was set aside, and then what was found.
MOST_SUSPECTS, FEWEST_MEMBERS, MOST_MEMBERS, MEMBER_CELLS = 600, 500, 4000, 2**22


class _Places(NamedTuple):
    """Where cases and clusters are: in the features with weight, times the roots of the weights."""

    cells: Callable[[np.ndarray], np.ndarray]  # (m, q) of the cases of these numbers
    centers: np.ndarray  # (K, q)
    points: np.ndarray  # (l, q) some cases of the clusters
    labels: np.ndarray  # (l,) theirs
    errors: np.ndarray  # (l, q) less their centers, as of cases that did not make these
    deviations: np.ndarray  # (q,) typical size of these

    @classmethod
    def of(cls, engine: Engine, solution: Solution) -> _Places:
        """Place the clusters of a solution; features that a center has no value of are left out."""
        columns = np.flatnonzero((solution.weights > 0) & ~np.isnan(solution.centers).any(axis=0))
        roots, frame = np.sqrt(solution.weights[columns]), engine.frame.of_columns(columns)

        def cells(cases: np.ndarray) -> np.ndarray:
            return frame.place(engine.columns_of(cases, columns)) * roots

        centers = frame.place(solution.centers[:, columns]) * roots
        K, groups = len(centers), members_of(engine, solution)[None, ...]
        n_read = np.clip(MEMBER_CELLS // max(len(columns), 1), FEWEST_MEMBERS, MOST_MEMBERS)
        most = -(-int(n_read) // K)
        members = [
            _copies(engine, engine.arrays.first_members(groups, k, most))[:most] for k in range(K)
        ]
        cases, labels = np.concatenate(members), np.repeat(np.arange(K), list(map(len, members)))
        order = np.argsort(cases)
        points, labels = cells(cases[order]), labels[order]
        errors = (points - centers[labels]) * np.sqrt(pulls(solution.kept_sizes))[labels, None]
        deviations = MAD_FACTOR * np.nan_to_num(column_medians(np.abs(errors)))
        return cls(cells, centers, points, labels, errors, deviations)


def any_of_outlying_cells(engine: Engine, solution: Solution, clusters: np.ndarray) -> bool:
    """Whether one of these clusters of a solution is far from all others in single features."""
    if len(clusters) == 0:
        return False
    places = _Places.of(engine, solution)
    return any(
        _has_outlying_cells(np.delete(places.centers, k, axis=0), center, places.deviations).any()
        for k, center in zip(clusters, places.centers[clusters], strict=True)
    )


class Clump(NamedTuple):
    """Suspect cases that form a clump, and how many cases of clusters are as near to its center.

    Where these are more it is the edge of a cluster: there are too few clusters, or wrong ones.
    """

    cases: np.ndarray
    size: float  # how many these are, or their mass
    n_nearby: float


NO_CLUMP = Clump(np.empty(0, np.int64), 0, 0.0)


def find_clump(engine: Engine, solution: Solution, suspects: np.ndarray) -> Clump:
    """Return the suspect cases that form a clump; none if there is none.

    Parameters
    ----------
    engine : Engine
        The data.
    solution : Solution
        Clusters of the other cases.
    suspects : ndarray of int
        Numbers of the cases that were trimmed or flagged, upwards.

    Returns
    -------
    clump : Clump
    """
    n_members = solution.kept_sizes.sum()
    copies = _copies(engine, suspects)
    if len(copies) < FEWEST_OF_CLUMP or solution.inertia <= 0 or n_members == 0:
        return NO_CLUMP
    # Cases of a mixture of the clusters are this much farther from their mean than those of one.
    mixture = 1 + (solution.objective / max(solution.n_kept, 1)) / (solution.inertia / n_members)
    places = _Places.of(engine, solution)
    sampled = np.bincount(places.labels, minlength=len(places.centers))
    counts = (solution.kept_sizes / np.maximum(sampled, 1))[places.labels]
    evenly_spaced = np.linspace(0, len(copies) - 1, min(len(copies), MOST_SUSPECTS))
    points = places.cells(copies[evenly_spaced.astype(np.int64)])
    missing = np.isnan(points)
    if missing.any():  # a median stands for a missing cell, 0 where all are missing
        points = np.where(missing, np.nan_to_num(column_medians(points)), points)
    gaps = _gaps(points)
    for part in CLUMP_PARTS:
        size = max(FEWEST_OF_CLUMP, len(points) // part)
        is_there = _dense_region(places, points, gaps, size, np.sqrt(mixture))
        if is_there is not None:
            chunks = np.array_split(suspects, -(-len(suspects) // MOST_SUSPECTS))
            inside = np.concatenate([is_there(places.cells(cases)) for cases in chunks])
            size = len(_copies(engine, suspects[inside]))
            if size >= FEWEST_OF_CLUMP:
                return Clump(suspects[inside], size, float(counts[is_there(places.points)].sum()))
    return NO_CLUMP


def _copies(engine: Engine, cases: np.ndarray) -> np.ndarray:
    """Return the numbers of cases, each as often as its mass, and once at least."""
    masses = engine.arrays.masses_at(cases)
    return np.repeat(cases, np.clip(np.rint(masses), 1, MOST_SUSPECTS).astype(np.int64))


def _dense_region(
    places: _Places, suspects: np.ndarray, gaps: np.ndarray, size: int, most_spread: float
) -> Callable[[np.ndarray], np.ndarray] | None:
    """Find the densest group of suspects (m, q), if it is compact, and apart from all clusters.

    ``gaps`` (m, m) are the squared distances between the suspects. What is returned says which
    cases (l, q) are where the group is.
    """
    densest = _densest(gaps, size)
    middle = np.median(suspects[densest], axis=0)
    usual = ~_has_outlying_cells(places.centers, middle, places.deviations)
    if not usual.any():
        return None
    if not usual.all():
        densest = _densest(_gaps(suspects[:, usual]), size)
    group = suspects[densest][:, usual]
    center = group.mean(axis=0)
    distances = _squares(places.errors[:, usual])
    typical = float(np.median(distances))
    spread = float(np.median(_squares(group - center))) * (size / (size - 1)) ** 2
    gap = _squares(places.centers[:, usual] - center).min() - spread / size
    if spread > most_spread * typical or gap < LEAST_GAP * typical:
        return None
    roots = np.cbrt(distances)
    median = np.median(roots)
    reach = (median + REACH_MADS * MAD_FACTOR * np.median(np.abs(roots - median))) ** 3
    reach = float(reach) * (size + 1) / size
    return lambda points: _squares(points[:, usual] - center) < reach


def _has_outlying_cells(
    centers: np.ndarray, middle: np.ndarray, deviations: np.ndarray
) -> np.ndarray:
    """Return the features in which a group is farther from all clusters than these can be."""
    gaps = np.abs(centers - middle).min(axis=0)
    between = centers.max(axis=0) - centers.min(axis=0)
    return gaps > np.maximum(OUTLYING_DEVIATIONS * deviations, between)


def _gaps(points: np.ndarray) -> np.ndarray:
    """Return the squared distances between points."""
    norms = (points**2).sum(axis=1)
    return norms[:, None] + norms - 2 * points @ points.T


def _densest(gaps: np.ndarray, size: int) -> np.ndarray:
    """Return the densest of the groups of this many nearest neighbors."""
    radii = np.partition(gaps, size - 1, axis=1)[:, :size].sum(axis=1)
    return np.argpartition(gaps[radii.argmin()], size - 1)[:size]


def _squares(errors: np.ndarray) -> np.ndarray:
    """Return sums of squares over observed coordinates, scaled up for missing ones."""
    observed = ~np.isnan(errors)
    if observed.all():
        return (errors**2).sum(axis=1)
    shares = np.maximum(observed.mean(axis=1), 1 / max(errors.shape[1], 1))
    return np.where(observed, errors, 0.0) ** 2 @ np.ones(errors.shape[1]) / shares
