"""The values of settings that a search tries, checked and upwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from rskc.estimator import RobustSparseKMeans
from rskc.exceptions import ParameterError
from rskc.inputs.validation import check_integer, check_real, is_integer, is_real
from rskc.utils.wording import count

# The smallest of the bounds that are spaced evenly: about two features have weight.
MIN_SPACED_BOUND = 1.2


def check_values(
    name: str, values: Any, what: str, check: Callable[..., Any], *limits: Any
) -> list:
    """Return one or several values of a parameter, each checked to lie within limits, upwards."""
    values = values.ravel().tolist() if isinstance(values, np.ndarray) else values
    several = [values] if is_real(values) else values
    if isinstance(several, str | Iterator) or not isinstance(several, Iterable):
        raise ParameterError(name, values, f"must be {what}.")
    checked = sorted({check(name, value, *limits) for value in several})
    if not checked:
        raise ParameterError(name, values, f"is empty; give {what}.")
    return checked


def check_clusters(n_clusters: Any, least: int, n_cases: int) -> list[int]:
    """Return the numbers of clusters to try, upwards."""
    what = "a number of clusters, or a list or range of them"
    numbers = check_values("n_clusters", n_clusters, what, check_integer, least)
    if numbers[-1] > n_cases:
        raise ParameterError(
            "n_clusters",
            numbers[-1],
            f"is more than {count(n_cases, 'case')}, as many as are clustered at a time; lower it, "
            "or give more cases.",
        )
    return numbers


def check_sparse(estimator: Any) -> None:
    """Refuse an estimator that has no bound."""
    if not isinstance(estimator, RobustSparseKMeans):
        raise TypeError(
            f"estimator={estimator!r:.80} must be a RobustSparseKMeans: others have no L1 bound."
        )


def check_bounds(l1_bounds: Any, p: int) -> np.ndarray:
    """Return the bounds of a path, upwards; evenly spaced ones, if their number is given."""
    if p == 1:
        raise ValueError("X has one feature only: there is no L1 bound to choose.")
    if is_integer(l1_bounds):
        return spaced_bounds(check_integer("l1_bounds", l1_bounds, 2), p)
    what, below = "how many bounds to try, or a list of bounds", np.sqrt(p) * (1 + 1e-9)
    limits = 1, below, f" for {p} features, or how many bounds to try"
    return np.array(check_values("l1_bounds", l1_bounds, what, check_real, *limits))


def spaced_bounds(number: int, p: int) -> np.ndarray:
    """Space bounds evenly on a logarithmic scale, up to where they no longer bind."""
    root = np.sqrt(p)
    return np.geomspace(min(MIN_SPACED_BOUND, (1 + root) / 2), root, number)


def check_trims(trims: Any) -> list[float]:
    """Return the trimming shares, upwards."""
    what = "a share of cases, or a list of shares"
    return check_values("trims", trims, what, check_real, 0, 0.5)
