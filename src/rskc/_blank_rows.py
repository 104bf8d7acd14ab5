"""Cases of which nothing is observed: the solver does not see them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rskc.engines import has_holes


def blank_rows(X: np.ndarray) -> np.ndarray:
    """Cases of which nothing is observed."""
    if not has_holes(X):
        return np.zeros(len(X), bool)
    blank = np.isnan(X).all(axis=1)
    if blank.all():
        raise ValueError(f"X has no observed cell in any of its {len(X)} cases; give it some data.")
    return blank


def with_blank_rows(solution: Any, blank: np.ndarray) -> Any:
    """Put cases of which nothing is observed back: label 0, trimmed, infinitely far."""
    if not blank.any():
        return solution

    def spread(part: np.ndarray, value: float) -> np.ndarray:
        whole = np.full(len(blank), value, part.dtype)
        whole[~blank] = part
        return whole

    return replace(
        solution,
        labels=spread(solution.labels, 0),
        costs=spread(solution.costs, np.inf),
        trimmed_weighted=spread(solution.trimmed_weighted, True),
        trimmed_unweighted=spread(solution.trimmed_unweighted, False),
    )
