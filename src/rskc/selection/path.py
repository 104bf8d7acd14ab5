"""Solutions along a path of L1 bounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

import rskc.model.fitting as fitting
from rskc.estimator import RobustSparseKMeans
from rskc.exceptions import ParameterError
from rskc.inputs.validation import check_integer, check_real, is_integer
from rskc.selection.subsample import Sample
from rskc.solver import Solution, Warm, solve_near, solve_path

# The least bound of a path: two features or so.
LEAST_BOUND = 1.2


def solve_bounds(
    model: RobustSparseKMeans, sample: Sample, bounds: Iterable[float], neighbors: list[Warm]
) -> list[Solution]:
    """Solve for each of the bounds, upwards, each from the one before.

    Where solutions for its neighbors are given, there is one bound, and it is solved from these.
    """
    X = sample.X
    with fitting.solver_settings(model.verbose):
        engine = fitting.make_engine(model, X, sample.masses)
        problem = fitting.make_problem(model, engine)
        problems = [replace(problem, l1_bound=float(s), n_features=None) for s in bounds]
        with fitting.overflow_explained(model, engine, X):
            if neighbors:
                solutions = [solve_near(engine, problems[0], neighbors)]
            else:
                starts = fitting.make_starts(model, X, engine, problem)
                solutions = list(solve_path(engine, problems, starts))
            solutions[-1].check_finite()
    to_numpy = engine.arrays.to_numpy  # a plain mask, whether a case is trimmed in part or not
    return [replace(each, trimmed_weighted=to_numpy(each.trimmed_weighted)) for each in solutions]


def check_sparse(estimator: Any) -> RobustSparseKMeans:
    """Return a copy of an estimator that has a bound."""
    if not isinstance(estimator, RobustSparseKMeans):
        raise TypeError(
            f"estimator={estimator!r:.80} must be a RobustSparseKMeans: others have no L1 bound."
        )
    return clone(estimator).set_params(l1_bound="half", n_features=None)


def check_bounds(l1_bounds: Any, p: int) -> np.ndarray:
    """Return the bounds of a path, upwards; some of them evenly spaced, if a number is given."""
    root = float(np.sqrt(p))
    if p == 1:
        raise ValueError("X has one feature only: there is no L1 bound to choose.")
    if is_integer(l1_bounds):
        return spaced_bounds(check_integer("l1_bounds", l1_bounds, 2), p)
    try:
        bounds = np.unique(np.asarray(l1_bounds, dtype=float))
    except (TypeError, ValueError):
        words = "must be a number of bounds, or the bounds."
        raise ParameterError("l1_bounds", l1_bounds, words) from None
    if bounds.size == 0:
        raise ValueError("l1_bounds is empty; give a number of bounds, or the bounds.")
    for bound in bounds:
        check_real("l1_bounds", bound, 1, root * (1 + 1e-9), f" for {p} features, or their number")
    return bounds


def spaced_bounds(number: int, p: int) -> np.ndarray:
    """Space bounds evenly on a logarithmic scale, up to where they no longer bind."""
    root = np.sqrt(p)
    return np.geomspace(min(LEAST_BOUND, (1 + root) / 2), root, number)
