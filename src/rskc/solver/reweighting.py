"""The reweighting step: centers and weights over the cases that are no outliers, until these stand.

Trimming takes a share of the cases that somebody chose. Here the distances decide: cases beyond the
cut-off are left out of centers, B_j and weights, which are made anew, and so are labels and flags.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rskc.engines import Engine
from rskc.solver.outliers import Distances, distances_to, even_weights, far_cases
from rskc.solver.problem import Problem, Solution
from rskc.solver.solve import Held, finish

# Rounds in which flags and centers are made consistent.
MOST_ROUNDS = 10


def reweight(
    engine: Engine,
    problem: Problem,
    centers: np.ndarray,
    weights: np.ndarray,
    cutoff: float,
    members: Any = None,
) -> Solution:
    """Repeat flags, centers and weights from given ones until the flags stand.

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

    Returns
    -------
    solution : Solution
        Its ``trimmed_weighted`` are all cases that were left out, and its ``trimmed_unweighted``
        those of them that the unweighted distance flags.
    """
    arrays, K = engine.arrays, problem.n_clusters
    table = engine.table(weights[None])
    labels = arrays.only(table.assign(table.place(centers[None])).labels)
    groups = arrays.as_run(labels if members is None else members)
    solution: Solution | None = None
    for _ in range(MOST_ROUNDS):
        even = even_weights(centers)
        each = (distances_to(engine, labels, centers, own) for own in (weights[None], even))
        sizes = arrays.sizes(groups, K)[0]
        far = far_cases(engine, Distances(*each), arrays.only(groups), sizes, cutoff)
        out = far.weighted | far.unweighted
        new = arrays.without(arrays.as_run(labels), arrays.as_run(out))
        stands = solution is not None and arrays.differ(new, groups)[0] == 0
        emptied = (arrays.sizes(new, K)[0] == 0) & (sizes > 0)
        if stands or (solution is not None and emptied.any()):
            break
        if emptied.any():
            new = groups
        held = Held(new, arrays.as_run(far.unweighted), weights, weights, True)
        solution = finish(engine, problem, held)
        labels, centers, weights = solution.labels, solution.centers, solution.weights
        groups = arrays.as_run(arrays.without(labels, solution.trimmed_weighted))
    assert solution is not None
    return solution
