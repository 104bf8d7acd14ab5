"""The reweighting step: centers and weights without the cases that are outlying (internal).

Trimming takes a share of the cases that somebody chose. Here the distances decide: cases beyond the
cut-off are left out of centers, B_j and weights, which are made anew, and so are labels and flags,
until these stand.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rskc.engines import ArrayOps, Engine
from rskc.model.outliers import (
    Distances,
    Thresholds,
    distances_of,
    distances_to,
    even_weights,
    far_cases,
    far_thresholds,
)
from rskc.solver import Problem, Solution
from rskc.solver.finish import Held, finish, may_move

# Rounds in which flags and centers are made consistent.
MOST_ROUNDS = 10


def reweight(
    engine: Engine,
    problem: Problem,
    centers: np.ndarray,
    weights: np.ndarray,
    cutoff: float,
    members: Any = None,
    thresholds: Thresholds | None = None,
) -> Solution:
    """Repeat flags, centers and weights from given ones until the flags stand.

    Those of a few among millions of cases may still change, as labels may.

    Parameters
    ----------
    engine : Engine
        The data.
    problem : Problem
        Its bound, or its number of features, and its number of clusters; nothing is trimmed.
    centers, weights : ndarray of shape (K, p) and (p,)
        Where to begin, in the space of the data.
    cutoff : float
        MADs above the median of the cube roots beyond which a case is left out.
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
    if thresholds is None:
        flagged = _flag_first(engine, centers, weights, cutoff, members)
    else:
        flagged = _flag_by(thresholds, engine, centers, weights)
    solution: Solution | None = None
    for _ in range(MOST_ROUNDS):
        held = Held(flagged.groups, arrays.as_run(flagged.far), weights, weights, True)
        del solution  # it has arrays of n numbers, and the next one will
        solution = finish(engine, problem, held)
        del held, flagged
        distances = distances_of(engine, solution)
        solution = replace(solution, unweighted_costs=distances.unweighted)
        labels, weights = solution.labels, solution.weights
        groups = arrays.as_run(arrays.without(labels, solution.trimmed_weighted))
        sizes = solution.kept_sizes
        far = far_cases(engine, distances, arrays.only(groups), sizes, cutoff)
        flagged = _Flagged.of(arrays, labels, far)
        stands = arrays.differ(flagged.groups, groups)[0] <= most
        if stands or flagged.empties(arrays, sizes):
            break
        del distances, labels, groups, far
    assert solution is not None
    return solution


def first_thresholds(
    sample: Engine, centers: np.ndarray, weights: np.ndarray, cutoff: float
) -> Thresholds | None:
    """Return the thresholds by which a sample is flagged; None if that would empty a cluster."""
    arrays, (labels, distances) = sample.arrays, _first(sample, centers, weights)
    sizes = arrays.sizes(arrays.as_run(labels), len(centers))[0]
    found = far_thresholds(sample, distances, labels, sizes, cutoff)
    flagged = _Flagged.of(arrays, labels, found.flag(distances))
    return None if flagged.empties(arrays, sizes) else found


def _first(engine: Engine, centers: np.ndarray, weights: np.ndarray) -> tuple[Any, Distances]:
    """Return labels and distances by the first centers and weights."""
    labels, ways = engine.nearest(centers, weights), (weights[None], even_weights(centers))
    return labels, Distances(*(distances_to(engine, labels, centers, own) for own in ways))


class _Flagged(NamedTuple):
    """The labels (1, n) of the cases that are not flagged, -1 for the others."""

    groups: Any
    far: Any  # (n,) those that the unweighted distance flags
    labels: Any  # (n,) with them: of blocks, made once for both as long as somebody has them

    @classmethod
    def of(cls, arrays: ArrayOps, labels: Any, far: Distances) -> _Flagged:
        """Leave out the cases that either distance flags."""
        out = arrays.as_run(far.weighted | far.unweighted)
        return cls(arrays.without(arrays.as_run(labels), out), far.unweighted, labels)

    def empties(self, arrays: ArrayOps, sizes: np.ndarray) -> bool:
        """Whether nothing is left of a cluster that had cases."""
        return bool(((arrays.sizes(self.groups, len(sizes))[0] == 0) & (sizes > 0)).any())


def _flag_first(
    engine: Engine, centers: np.ndarray, weights: np.ndarray, cutoff: float, members: Any
) -> _Flagged:
    """Flag cases by their distances to the first centers; none if that would empty a cluster."""
    arrays, (labels, distances) = engine.arrays, _first(engine, centers, weights)
    groups = arrays.as_run(labels if members is None else members)
    sizes = arrays.sizes(groups, len(centers))[0]
    far = far_cases(engine, distances, arrays.only(groups), sizes, cutoff)
    flagged = _Flagged.of(arrays, labels, far)
    if not flagged.empties(arrays, sizes):
        return flagged
    return flagged._replace(groups=groups, far=flagged.far & ~flagged.far)


def _flag_by(
    thresholds: Thresholds, engine: Engine, centers: np.ndarray, weights: np.ndarray
) -> _Flagged:
    """Flag cases by given thresholds: of blocks nothing is asked yet."""
    labels, distances = _first(engine, centers, weights)
    return _Flagged.of(engine.arrays, labels, thresholds.flag(distances))
