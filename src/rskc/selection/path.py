"""Solutions along a path of L1 bounds, and the features that enter on the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

import rskc.model.fitting as fitting
from rskc.engines import Engine
from rskc.estimator import RobustSparseKMeans
from rskc.exceptions import ParameterError
from rskc.inputs.case_weights import counting_cases
from rskc.inputs.validation import check_integer, check_real, is_integer, is_word
from rskc.model.fitted import by_column, feature_names
from rskc.selection.subsample import Sample
from rskc.solver import Solution, Warm, solve_near, solve_path
from rskc.solver.feature_groups import count_active

# The least bound of a path: two features or so.
LEAST_BOUND = 1.2
# Share that is trimmed of the cases that the data decide to keep.
CLEAN_TRIM = 0.02


@dataclass(frozen=True)
class FeaturePath:
    """Weights of the features along the L1 bound.

    Attributes
    ----------
    l1_bounds : ndarray of shape (bounds,)
        The bounds, upwards.
    weights : ndarray of shape (bounds, n_features)
        Weights of the features at each.
    n_features : ndarray of shape (bounds,)
        Number of features, or of groups of features, with weights above 0.
    objective : ndarray of shape (bounds,)
        Weighted between-cluster sum of squares per kept case.
    entry : ndarray of shape (n_features,)
        The least bound at which a feature has weight; NaN for one that never has.
    feature_names : ndarray of shape (n_features,)
        Names of the features, x0, x1, ... where X has none.
    """

    l1_bounds: np.ndarray
    weights: np.ndarray
    n_features: np.ndarray
    objective: np.ndarray
    entry: np.ndarray
    feature_names: np.ndarray

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame: a row a feature, a column a bound, in order of entry."""
        import pandas as pd

        weights = pd.DataFrame(self.weights.T, columns=self.l1_bounds)
        frame = pd.DataFrame({"feature": self.feature_names, "entry": self.entry}).join(weights)
        order = ["entry", frame.columns[-1]]
        return frame.sort_values(order, ascending=[True, False], kind="stable")


def feature_path(
    estimator: Any, X: Any, l1_bounds: Any = 20, sample_weight: Any = None
) -> FeaturePath:
    """Follow the weights of the features along the L1 bound.

    Parameters
    ----------
    estimator : RobustSparseKMeans
        Number of clusters, trimming and all else; its own bound is not used.
    X : array-like or data frame of shape (n_samples, n_features)
        The data, NaN for a missing cell.
    l1_bounds : int or array-like, default=20
        The bounds, or how many: these are then spaced evenly on a logarithmic scale up to
        sqrt(n_features).
    sample_weight : array-like of shape (n_samples,), default=None
        What each case counts, as in ``fit``; None if all count the same.

    Returns
    -------
    path : FeaturePath

    Examples
    --------
    >>> from rskc import RobustSparseKMeans
    >>> from rskc.datasets import make_figure1
    >>> from rskc.selection import feature_path
    >>> X = make_figure1(random_state=0).data
    >>> path = feature_path(RobustSparseKMeans(3, random_state=0), X, [1.2, 1.4])
    >>> path.n_features
    array([2, 2])
    """
    model = check_sparse(estimator)
    data = fitting.validated_for_fit(model, X, sample_weight)
    counting = counting_cases(data, sample_weight)
    sample = Sample(counting.of(data), counting.masses)
    names, groups = feature_names(model), fitting.groups_of(model, data.shape[1])
    # What follows has no names of features, and numbers for categories.
    checked = model.set_params(feature_groups=groups, categorical=None, ordinal=None)
    bounds = check_bounds(l1_bounds, data.shape[1] if groups is None else len(groups))
    if is_word(model.trim, "auto"):
        model, kept, _ = find_clean(model, sample)
        sample = sample.take(kept)
    solutions = solve_bounds(model, sample, bounds)
    weights = np.array([solution.weights for solution in solutions])
    n_features = np.array([count_active(groups, row) for row in weights])
    weights = by_column(checked, weights)
    active = weights > 0
    return FeaturePath(
        l1_bounds=bounds,
        weights=weights,
        n_features=n_features,
        objective=np.array([solution.mean for solution in solutions]),
        entry=np.where(active.any(axis=0), bounds[active.argmax(axis=0)], np.nan),
        feature_names=names,
    )


def solve_bounds(
    model: RobustSparseKMeans, sample: Sample, bounds: Iterable[float]
) -> list[Solution]:
    """Solve for each of the bounds, upwards, each from the one before."""
    X = sample.X
    with fitting.solver_settings(model.verbose):
        engine = fitting.make_engine(model, X, sample.masses)
        problem = fitting.make_problem(model, engine)
        problems = [replace(problem, l1_bound=float(s), n_features=None) for s in bounds]
        starts = fitting.make_starts(model, X, engine, problem)
        with fitting.overflow_explained(model, engine, X):
            solutions = list(solve_path(engine, problems, starts))
            fitting.check_finite(solutions[-1])
    return [_plain(solution, engine) for solution in solutions]


def solve_between(
    model: RobustSparseKMeans, sample: Sample, bound: float, neighbors: list[Warm]
) -> Solution:
    """Solve for a bound from the solutions for its neighbors."""
    with fitting.solver_settings(model.verbose):
        engine = fitting.make_engine(model, sample.X, sample.masses)
        problem = replace(fitting.make_problem(model, engine), l1_bound=bound, n_features=None)
        with fitting.overflow_explained(model, engine, sample.X):
            return _plain(solve_near(engine, problem, neighbors), engine)


def _plain(solution: Solution, engine: Engine) -> Solution:
    """Return a solution with a plain mask, whether a case is trimmed in part or not."""
    trimmed = engine.arrays.to_numpy(solution.trimmed_weighted)
    return replace(solution, trimmed_weighted=trimmed)


def check_sparse(estimator: Any) -> RobustSparseKMeans:
    """Return a copy of an estimator that has a bound."""
    if not isinstance(estimator, RobustSparseKMeans):
        raise TypeError(
            f"estimator={estimator!r:.80} must be a RobustSparseKMeans: others have no L1 bound."
        )
    return clone(estimator).set_params(l1_bound="half", n_features=None)


class CleanCases(NamedTuple):
    """A model with a share to trim, and which cases it is for."""

    model: RobustSparseKMeans
    kept: np.ndarray  # (n,) not set aside; all, where the share to trim is given
    usual: np.ndarray  # (n,) neither trimmed nor outliers


def find_clean(model: RobustSparseKMeans, sample: Sample) -> CleanCases:
    """Fit a model once; where the data are to decide what is trimmed, they do it here."""
    once = clone(model)
    fitting.fit(once, sample.X, sample_weight=sample.weights)
    usual = ~(once.trimmed_ | once.outliers_)
    if not is_word(model.trim, "auto"):
        return CleanCases(model, np.ones(sample.shape[0], bool), usual)
    return CleanCases(clone(model).set_params(trim=CLEAN_TRIM), ~once.trimmed_, usual)


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
