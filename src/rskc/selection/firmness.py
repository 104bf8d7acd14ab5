"""What a stability search knows of a model: which search it is, and of which of the cases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rskc.inputs.arrays import to_numpy
from rskc.selection.stability import Stability


def stability_among(searches: Any) -> Stability | None:
    """Return the first Stability search of one or several searches."""
    searches = searches if isinstance(searches, Iterable) else [searches]
    return next((search for search in searches if isinstance(search, Stability)), None)


def stability_for(searches: Any, model: Any) -> Stability | None:
    """Return the first Stability search, if it is about the clusters of a model."""
    search = stability_among(searches)
    return search if search is not None and is_about(search, model) else None


def is_about(search: Stability, model: Any) -> bool:
    """Whether the clusters of a model are those of which the search knows the stability."""
    own, other = (to_numpy(m.cluster_centers_) for m in (search.best_estimator_, model))
    return own.shape == other.shape and np.allclose(own, other, equal_nan=True)


def stability_of_cases(search: Stability, first: int, last: int) -> np.ndarray:
    """Return the stability of the cases from ``first`` on, missing where not searched on.

    ``last`` is not one of them. The cases are numbered as in the table of the search.
    """
    used = search.samples_used_
    known = slice(*np.searchsorted(used, (first, last)))
    stability = np.full(last - first, np.nan)
    stability[used[known] - first] = search.case_stability_[known]
    return stability
