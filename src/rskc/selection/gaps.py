"""Gaps between clusters: whether neighbors are apart, or slices of a gradient.

Cases along a line, a curve or a ring are cut into slices that come back in every half, and one
normal cloud does not explain them. But between slices there is no gap. The way from a center to the
nearest other one is divided into three parts. Between clusters the cases thin out in the middle
part; of a gradient it holds as many as the two others, also where it bends, since only the way
between the centers counts: beyond them a curve turns back and seems dense. The cases are those that
the centers were not made of: the others always show a gap where there are many features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rskc.inputs.arrays import to_numpy
from rskc.selection.cloud import neighbors

# Cases are a sequence if, among so many in succession, each is at less than this share of the
# squared distance of any two from the one before: of random walks it is .3, of tables that are
# sorted by clusters within the clusters found about 1.
SUCCESSIVE, MAX_STEP = 10, 0.5


def places_of(model: Any, X: Any, others: np.ndarray) -> dict[str, np.ndarray]:
    """Return where cases lie that a model was not fitted to; nothing of a model without centers.

    Parameters
    ----------
    model : estimator
        Fitted to some cases, with ``cluster_centers_`` and ``transform``.
    X : ndarray or sparse matrix of shape (n, p)
        All cases.
    others : ndarray of int
        Numbers of cases that the model was not fitted to.

    Returns
    -------
    places : dict
        ``others``; ``distances`` (others, K), squared, to the centers; ``gaps`` (K, K) of these.
    """
    centers = to_numpy(getattr(model, "cluster_centers_", np.empty((0, 0))))
    K, width = centers.shape
    if K == 0 or width != X.shape[1] or not hasattr(model, "transform"):
        return {"others": others[:0], "distances": np.empty((0, K)), "gaps": np.empty((K, K))}
    distances = to_numpy(model.transform(X[others])).astype(np.float64) ** 2
    roots = np.sqrt(to_numpy(getattr(model, "feature_weights_", np.ones(width))))
    between = np.nan_to_num((centers[:, None] - centers) * roots)
    return {"others": others, "distances": distances, "gaps": (between**2).sum(axis=2)}


def density_between(
    places: Sequence[Mapping[str, Any]], n: int, K: int, weights: np.ndarray | None = None
) -> float:
    """Return the density midway between neighbors, as a share of that on its sides; NaN if unknown.

    It is the number of cases in the middle third of the way between two neighboring centers,
    divided by that in the first or the last third, whichever has fewer; both are summed over all
    pairs of neighbors. A case has one place for each fit that it took no part in, and their median
    counts: places of single fits, to half of the cases, are blurred.

    Parameters
    ----------
    places : sequence of dict
        What ``places_of`` found, with the clusters numbered alike.
    n, K : int
        Number of cases, and of clusters.
    weights : ndarray of shape (n,), optional
        What cases count.
    """
    places = [each for each in places if len(each["others"])]
    if not places or K < 2:
        return np.nan
    distances = np.full((len(places), n, K), np.nan)
    for each, rows in zip(places, distances, strict=True):
        rows[each["others"]] = each["distances"]
    placed = ~np.isnan(distances).all(axis=(0, 2))
    distances = distances[:, placed]
    labels = np.nanmedian(distances, axis=0).argmin(axis=1)
    counts = np.ones(len(labels)) if weights is None else weights[placed]
    middle, sides = 0.0, 0.0
    for a, b in neighbors(np.median([each["gaps"] for each in places], axis=0)):
        apart = np.array([each["gaps"][a, b] for each in places])[:, None]
        steps = (distances[:, :, a] - distances[:, :, b]) / np.where(apart > 0, apart, np.inf)
        along = np.nanmedian(steps, axis=0)  # -1 at center a, 1 at center b
        pair = (labels == a) | (labels == b)
        thirds, _ = np.histogram(along[pair], (-1, -1 / 3, 1 / 3, 1), weights=counts[pair])
        middle, sides = middle + thirds[1], sides + min(thirds[0], thirds[2])
    return float(middle / sides) if sides else np.nan


def is_a_sequence(cells: np.ndarray, labels: np.ndarray) -> bool:
    """Whether clusters are stretches of the table, in which each case resembles the last one.

    Halves of such cases agree because each case has its neighbors in the other half: they say
    nothing about clusters.
    """
    if np.count_nonzero(np.diff(labels)) >= 2 * (labels.max() + 1):
        return False
    known = np.ma.masked_invalid(cells)
    steps = expected = 0.0
    for k in np.unique(labels):
        members = np.flatnonzero(labels == k)
        for cases in np.array_split(members, -(-len(members) // SUCCESSIVE)):
            part = known[cases]
            differences = part[1:] - part[:-1]
            spread = differences.count(axis=0) * part.var(axis=0, ddof=1)
            steps += (differences**2).filled(0).sum()
            expected += 2 * np.ma.filled(spread, 0).sum()
    return bool(steps < MAX_STEP * expected)
