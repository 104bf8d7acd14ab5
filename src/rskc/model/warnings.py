"""What a fit warns of: the kinds of warnings, their words, and when each is given (internal)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning

from rskc.engines import Engine
from rskc.exceptions import FitWarning, SmallClusterWarning
from rskc.inputs.arrays import is_dask, to_numpy
from rskc.inputs.frames import NUMBERS
from rskc.inputs.spreads import MAD_FACTOR, column_medians, differing_spreads
from rskc.model.automatic import FitResult
from rskc.model.cells import MANY_CELLS
from rskc.model.fitted import feature_names, number_names
from rskc.model.outliers import find_clump
from rskc.solver import Solution
from rskc.solver.problem import Rival, count_active
from rskc.solver.solution import RIVAL_CASES
from rskc.utils.wording import cleaned, count, listed

# Numbers beside categories that have a larger robust standard deviation count more than 14 times as
# much as a category, whose variance is 2 / pi. They are looked at in this many cases.
MOST_DEVIATION, SAMPLED_CASES = 3.0, 2000
# Distances rest on little when less than this share of the weight is observed.
LITTLE_SEEN = 0.1
MOST_CANDIDATES = 5000  # trimmed and flagged cases that are looked at for a clump
MOST_NAMES = 6  # of cases and features in a warning


class NotConvergedWarning(FitWarning, ConvergenceWarning):
    """The result is not what was asked for: iterations ended too early, or clusters are missing."""


# Of each kind: its class, the parameter that can remedy it, and its words.
KINDS: dict[str, tuple[type[FitWarning], str | None, str]] = {
    "bound never binds": (
        FitWarning,
        "l1_bound",
        "{l1_bound}={value:g} never binds: {p} weights of L2 norm 1 have an L1 norm of at most "
        "{most:.3g}. To ask for a number of features, use {n_features}.",
    ),
    "not converged": (
        NotConvergedWarning,
        "max_iter",
        "Not converged after {max_iter}={value} iterations; raise {max_iter} or {tol}.",
    ),
    "fewer clusters": (
        NotConvergedWarning,
        "n_clusters",
        "Only {found} distinct clusters found, fewer than {n_clusters}={value}: too few kept cases "
        "differ. Lower {n_clusters} or {trim}.",
    ),
    "other number of features": (
        FitWarning,
        "n_features",
        "{n_features}={value} cannot be reached, because features tie or do not differ between "
        "clusters; {found} have a weight above 0.",
    ),
    "small cluster": (
        SmallClusterWarning,
        "trim",
        "Another solution has a larger objective ({larger:.4g} against {objective:.4g} per kept "
        "case), but one of its clusters has {size} cases only ({cases}), and up to {n_trim} cases "
        "may be outliers. If these are a true cluster, lower {trim}.",
    ),
    "exposed cluster": (
        SmallClusterWarning,
        "trim",
        "One of the clusters keeps {size} cases only ({cases}), and up to {n_trim} cases may be "
        "outliers; no solution without such a cluster was found. Lower {trim} or {n_clusters}.",
    ),
    "clump": (
        SmallClusterWarning,
        "n_clusters",
        "{size} of the cases that are trimmed or taken for outliers form a clump ({cases}): they "
        "resemble one another as the cases of a cluster do, and lie apart from all clusters. If "
        "they are a true cluster, raise {n_clusters} or lower {trim}.",
    ),
    "many outlying cells": (
        FitWarning,
        "n_clusters",
        "{features} more than a quarter of their cells outlying: {names}. Such a feature has two "
        "modes within clusters; or there are too few clusters, and {n_clusters} should be raised.",
    ),
    "numbers not standardized": (
        FitWarning,
        None,
        "{columns} far more than a category, which counts like a number of standard deviation 1: "
        "{names}. Such columns take most of the weight; standardize them first: "
        "{ColumnStandardizer()}.",
    ),
    "units differ": (
        FitWarning,
        None,
        "{largest} spreads {ratio:,.0f} times as far as {small}: the weight of a feature follows "
        "its variance, so if units differ, prepare the features first, by {Preparer() in a "
        "pipeline}.",
    ),
    "unobserved features": (FitWarning, None, "{features} no observed cell and weight 0: {names}."),
    "hardly observed cases": (
        FitWarning,
        None,
        "{cases} judged by less than {share:.0%} of the weight, since their other cells are "
        "missing: {names}. Their clusters mean little: leave these cases out, or find the missing "
        "cells.",
    ),
}


def on_scales(model: Any, X: Any) -> Iterator[FitWarning]:
    """Warn of features that differ in scale, or vary far more than the categories beside them.

    Those of a sparse table do not, or nobody knows.
    """
    if is_dask(X) or issparse(X):
        return
    rows = to_numpy(X[:: X.shape[0] // SAMPLED_CASES + 1, :])  # as the array API wants it
    if not hasattr(model, "encoder_"):
        if (spreads := differing_spreads(rows)) is not None:
            largest, small = (
                cleaned(feature_names(model)[j], 24) for j in (spreads.largest, spreads.small)
            )
            ratio = float(f"{spreads.ratio:.2g}")
            yield fit_warning("units differ", largest=largest, small=small, ratio=ratio)
        return
    is_number = [code.kind == NUMBERS for code in model.encoder_.columns_]
    numbers = model.encoder_.first[is_number]
    rows = rows[:, numbers]
    # By the MAD: columns in units of their MAD or standard deviation do not count as wide.
    deviations = MAD_FACTOR * column_medians(np.abs(rows - column_medians(rows)))
    wide = numbers[deviations > MOST_DEVIATION]
    if len(wide):
        yield fit_warning(
            "numbers not standardized",
            columns=count(len(wide), "column of numbers varies", "columns of numbers vary"),
            names=listed(number_names(model)[wide], MOST_NAMES),
        )


def warnings_of(
    model: Any, engine: Engine, result: FitResult, out: Any, case_names: np.ndarray | None
) -> Iterator[FitWarning]:
    """Yield the warnings of a solution; ``out`` is the mask (n,) of cases that are outlying."""
    solution, problem, arrays = result.solution, result.problem, engine.arrays

    def names(cases: np.ndarray, n: int) -> str:
        numbers = engine.numbers(cases)
        return listed(numbers if case_names is None else case_names[numbers], MOST_NAMES, n)

    def members(cluster: Rival) -> int:
        """Return how many cases it has, of which the first are known; by mass about as many."""
        return len(cluster.cases) if len(cluster.cases) < RIVAL_CASES else round(cluster.size)

    yield from _on_parameters(model, engine, result)
    if (rival := solution.rival) is not None:
        yield fit_warning(
            "small cluster",
            larger=rival.mean,
            objective=solution.mean,
            size=rival.size,
            cases=names(rival.cases, members(rival)),
            n_trim=problem.n_trim,
        )
    if (exposed := solution.exposed) is not None:
        cases, size = names(exposed.cases, members(exposed)), exposed.size
        yield fit_warning("exposed cluster", size=size, cases=cases, n_trim=problem.n_trim)
    out = solution.trimmed_weighted | solution.trimmed_unweighted | out
    groups = arrays.as_run(arrays.without(solution.labels, out))
    clump = find_clump(engine, solution, arrays.first_members(groups, -1, MOST_CANDIDATES))
    if clump.size > clump.n_nearby:
        yield fit_warning(
            "clump", size=len(clump.cases), cases=names(clump.cases, len(clump.cases))
        )
    if engine.n_missing:
        yield from _on_missing(model, engine, solution, names)


def _on_parameters(model: Any, engine: Engine, result: FitResult) -> Iterator[FitWarning]:
    """Warn of parameters that the solution does not keep to."""
    solution, problem, features, _ = result
    groups, asked = problem.feature_groups, model.l1_bound
    p = engine.n_features if groups is None else len(groups)
    most = np.sqrt(p)
    given = problem.l1_bound is not None and not isinstance(asked, str)
    if given and asked > most * (1 + 1e-9):
        yield fit_warning("bound never binds", value=asked, p=p, most=most)
    if not solution.converged:
        yield fit_warning("not converged", value=problem.max_iter)
    n_found = int(np.count_nonzero(solution.sizes))
    if n_found < problem.n_clusters:
        yield fit_warning("fewer clusters", value=problem.n_clusters, found=n_found)
    selected = count_active(groups, solution.weights)
    if features is None and problem.n_features not in (None, selected):
        yield fit_warning("other number of features", value=problem.n_features, found=selected)


def _on_missing(
    model: Any, engine: Engine, solution: Solution, names: Callable[[np.ndarray, int], str]
) -> Iterator[FitWarning]:
    """Warn of features and cases of which little is observed."""
    dead = np.flatnonzero(engine.equal_weights()[0] == 0)
    if len(dead):
        named = hasattr(model, "feature_names_in_") or hasattr(model, "encoder_")
        dead_names = number_names(model)[dead] if named else dead
        yield fit_warning(
            "unobserved features",
            features=count(len(dead), "feature has", "features have"),
            names=listed(dead_names, MOST_NAMES),
        )
    little = engine.little_seen(solution.weights, LITTLE_SEEN)
    if little.total:
        yield fit_warning(
            "hardly observed cases",
            cases=count(little.total, "case is", "cases are"),
            share=LITTLE_SEEN,
            names=names(little.first, little.total),
        )


def on_cells(model: Any) -> Iterator[FitWarning]:
    """Warn of features of which very many cells are outlying."""
    cells = model.outlying_cells_
    many = np.flatnonzero(np.bincount(cells.nonzero()[1]) > MANY_CELLS * cells.shape[0])
    if len(many):
        features = count(len(many), "feature has", "features have")
        names = listed(feature_names(model)[many], MOST_NAMES)
        yield fit_warning("many outlying cells", features=features, names=names)


def fit_warning(kind: str, **values: Any) -> FitWarning:
    """Make a warning of one of the kinds."""
    warning, parameter, template = KINDS[kind]
    return warning(kind, parameter, template, **values)
