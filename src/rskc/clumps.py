"""Whether cases that were trimmed or flagged form a clump: perhaps a small cluster (internal).

Outlying cases may resemble one another in the features that make them outlying. In the features
that tell the clusters apart they are still a mixture of the clusters. A small cluster that trimming
took away is compact there, as the other clusters are, and lies apart from them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rskc.engines import Engine
from rskc.solver import Solution
from rskc.solver.outliers import NORMAL, pulls

# A clump has at least this many cases. The densest third of the cases in question is looked at, and
# where that is none the densest sixth.
FEWEST, PARTS = 5, (3, 6)
# Its center is farther from all others than cases from their centers, by this factor of squares.
APART = 1.5
# Cases within this many MADs of its center, on the cube-root scale of the clusters, belong to it.
REACH = 3.5
# A feature in which the clump is this many deviations from every cluster, and farther than these
# are from one another, shows outlying cells and not clusters.
OUTLYING = 5.0
# Of more suspect cases some evenly spaced ones are looked at; of the clusters, their first cases.
MOST_SUSPECTS, MOST_MEMBERS = 600, 500


class _View(NamedTuple):
    """Cases in the features that have weight, times the roots of the weights."""

    suspects: np.ndarray  # (m, q)
    members: np.ndarray  # (l, q) some cases of the clusters
    errors: np.ndarray  # (l, q) these, less their centers
    counts: np.ndarray  # (l,) for how many cases each of them stands
    centers: np.ndarray  # (K, q)


class Clump(NamedTuple):
    """Suspect cases that form a clump, and how many cases of clusters are as near to its center.

    Where these are more it is the edge of a cluster: there are too few clusters, or wrong ones.
    """

    cases: np.ndarray
    n_nearby: float


def find_clump(engine: Engine, solution: Solution, suspects: np.ndarray) -> Clump:
    """Return the suspect cases that form a clump; none if there is none.

    Parameters
    ----------
    engine : Engine
        The data.
    solution : Solution
        Clusters of the other cases.
    suspects : ndarray of int
        Numbers of the cases that were trimmed or flagged, upwards.

    Returns
    -------
    clump : Clump
    """
    none = Clump(np.empty(0, np.int64), 0.0)
    n_members = int(solution.kept_sizes.sum())
    if len(suspects) < FEWEST or solution.inertia <= 0 or n_members == 0:
        return none
    # Cases of a mixture of the clusters are this much farther from their mean than those of one.
    mixture = 1 + (solution.objective / max(solution.n_kept, 1)) / (solution.inertia / n_members)
    # Features that a center has no value of are left out.
    columns = np.flatnonzero((solution.weights > 0) & ~np.isnan(solution.centers).any(axis=0))
    roots = np.sqrt(solution.weights[columns])

    def coordinates(cases: np.ndarray) -> np.ndarray:
        return engine.frame.place(engine.rows(cases))[:, columns] * roots

    centers = engine.frame.place(solution.centers)[:, columns] * roots
    some = _some(suspects, MOST_SUSPECTS)
    members, labels = _members(engine, solution)
    points = coordinates(members)
    errors = (points - centers[labels]) * np.sqrt(pulls(solution.kept_sizes))[labels, None]
    sampled = np.bincount(labels, minlength=len(centers))
    counts = (solution.kept_sizes / np.maximum(sampled, 1))[labels]
    view = _View(coordinates(some), points, errors, counts, centers)
    for part in PARTS:
        region = _find(view, max(FEWEST, len(some) // part), np.sqrt(mixture))
        if region is not None:
            chunks = np.array_split(suspects, -(-len(suspects) // MOST_SUSPECTS))
            own = np.concatenate([region.has(coordinates(cases)) for cases in chunks])
            if own.sum() >= FEWEST:
                return Clump(suspects[own], float(counts[region.has(points)].sum()))
    return none


def _members(engine: Engine, solution: Solution) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers, upwards, and the labels of the first cases of each cluster."""
    arrays, K = engine.arrays, len(solution.kept_sizes)
    groups = arrays.as_run(arrays.without(solution.labels, solution.trimmed_weighted))
    each = [arrays.first_members(groups, k, -(-MOST_MEMBERS // K)) for k in range(K)]
    members, labels = np.concatenate(each), np.repeat(np.arange(K), [len(own) for own in each])
    order = np.argsort(members)
    return members[order], labels[order]


def _some(numbers: np.ndarray, most: int) -> np.ndarray:
    if len(numbers) <= most:
        return numbers
    return numbers[np.linspace(0, len(numbers) - 1, most).astype(np.int64)]


class _Region(NamedTuple):
    """Where a clump is, in some of the features, and how far it reaches."""

    columns: np.ndarray  # (q,) which of them
    center: np.ndarray
    reach: float  # squared distance

    def has(self, points: np.ndarray) -> np.ndarray:
        """Return which cases are of the clump."""
        return _squares(points[:, self.columns] - self.center) < self.reach


def _find(view: _View, size: int, most_spread: float) -> _Region | None:
    """Return the densest group of suspects, if it is compact, and apart from all clusters."""
    missing = np.isnan(view.suspects)
    middle = np.where(missing.all(axis=0), 0.0, _medians(view.suspects))
    filled = np.where(missing, middle, view.suspects)
    densest = _densest(filled, size)
    usual = ~_has_outlying_cells(view, filled[densest])
    if not usual.any():
        return None
    if not usual.all():
        densest = _densest(filled[:, usual], size)
    group = filled[densest][:, usual]
    center = group.mean(axis=0)
    distances = _squares(view.errors[:, usual])
    typical = float(np.median(distances))
    spread = float(np.median(_squares(group - center))) * (size / (size - 1)) ** 2
    apart = _squares(view.centers[:, usual] - center).min() - spread / size
    if spread > most_spread * typical or apart < APART * typical:
        return None
    roots = np.cbrt(distances)
    median = np.median(roots)
    reach = (median + REACH * NORMAL * np.median(np.abs(roots - median))) ** 3
    return _Region(usual, center, float(reach) * (size + 1) / size)


def _has_outlying_cells(view: _View, group: np.ndarray) -> np.ndarray:
    """Return the features in which a group is farther from all clusters than these can be."""
    deviations = NORMAL * _medians(np.abs(view.errors))
    gaps = np.abs(view.centers - np.median(group, axis=0)).min(axis=0)
    between = view.centers.max(axis=0) - view.centers.min(axis=0)
    return gaps > np.maximum(OUTLYING * deviations, between)


def _medians(values: np.ndarray) -> np.ndarray:
    """Return the medians of the observed values of each column; 0 where none is observed."""
    observed = ~np.isnan(values)
    if observed.all():
        return np.median(values, axis=0)
    return np.nanmedian(np.where(observed.any(axis=0), values, 0.0), axis=0)


def _densest(points: np.ndarray, size: int) -> np.ndarray:
    """Return the densest of the groups of this many nearest neighbors."""
    norms = (points**2).sum(axis=1)
    squares = norms[:, None] + norms - 2 * points @ points.T
    radii = np.partition(squares, size - 1, axis=1)[:, :size].sum(axis=1)
    return np.argpartition(squares[radii.argmin()], size - 1)[:size]


def _squares(errors: np.ndarray) -> np.ndarray:
    """Return sums of squares over observed coordinates, scaled up for missing ones."""
    observed = ~np.isnan(errors)
    if observed.all():
        return (errors**2).sum(axis=1)
    shares = np.maximum(observed.mean(axis=1), 1 / max(errors.shape[1], 1))
    return np.where(observed, errors, 0.0) ** 2 @ np.ones(errors.shape[1]) / shares
