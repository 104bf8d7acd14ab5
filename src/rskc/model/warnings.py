"""What a fit warns of: the kinds of warnings, and their words (internal)."""

from typing import Any

from sklearn.exceptions import ConvergenceWarning

from rskc.exceptions import FitWarning, SmallClusterWarning


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
    "hardly observed cases": (
        FitWarning,
        None,
        "{cases} judged by less than {share:.0%} of the weight, since their other cells are "
        "missing: {names}. Their clusters mean little: leave these cases out, or find the missing "
        "cells.",
    ),
}


def fit_warning(kind: str, **values: Any) -> FitWarning:
    """Make a warning of one of the kinds."""
    warning, parameter, template = KINDS[kind]
    return warning(kind, parameter, template, **values)
