"""Empty clusters: which cases they get."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rskc.engines.tolerances import NO_MASS


class Candidates(NamedTuple):
    """The cases of a run that cost most, the most expensive first."""

    numbers: np.ndarray
    costs: np.ndarray
    groups: np.ndarray
    masses: np.ndarray


def candidates_needed(counts: np.ndarray) -> int:
    """Count the cases that can be moved: one for each empty cluster, and those that are alone."""
    return len(counts) + int(np.count_nonzero(counts == 0))


def costliest(
    groups: np.ndarray, costs: np.ndarray, most: int, masses: np.ndarray | None = None
) -> Candidates:
    """Return the kept cases (of n) that cost most, the lower number first where they tie."""
    paid = np.where(groups < 0, 0, costs)
    numbers = np.argsort(-paid, kind="stable")[:most]
    case_masses = np.ones(len(numbers)) if masses is None else masses[numbers]
    return Candidates(numbers, paid[numbers], groups[numbers], case_masses)


def fill_from(found: Candidates, counts: np.ndarray) -> list[tuple[int, int]]:
    """Return (case, group) pairs: each empty group gets a case that is not alone in its group."""
    counts, pairs, free = counts.copy(), [], list(zip(*found, strict=True))
    for k in np.flatnonzero(counts == 0):
        for place, (case, cost, group, mass) in enumerate(free):
            if cost > 0 and counts[group] - mass > NO_MASS:
                counts[group] -= mass
                counts[k] = mass
                pairs.append((int(case), int(k)))
                del free[place]
                break
    return pairs
