"""Gaps between clusters: whether neighbors are apart, or slices of a gradient.

Cases along a line, a curve or a ring are cut into slices that come back in every half, and one
normal cloud does not explain them. But between slices there is no gap. The way from a cluster to
the nearest other one is divided into three parts. Between clusters the cases thin out in the middle
part; of a gradient it holds as many as the two others, also where it bends, since only the way
between the means counts: beyond them a curve turns back and seems dense. The cases are those that
the centers were not made of: the others always show a gap where there are many features.

How many cases there are decides what can be said. With 30 of them between two slices the odds are
clear; with 10, between clusters of a small table, they are not, and neither answer is shown.
"""

from typing import Any, NamedTuple

import numpy as np

from rskc.selection.cloud import neighbors

# Cases are a sequence if, among so many in succession, each is at less than this share of the
# squared distance of any two from the one before: of random walks it is .3, of tables that are
# sorted by clusters within the clusters found about 1.
SUCCESSIVE, MAX_STEP = 10, 0.5
# Density between neighbors, as a share of that beside it, of clusters that are hardly apart; it is
# 1 between slices. The odds of the two are even at .67. At the true number of 8 designs, two seeds
# each, the density was 0 to .45 and once .69; at the stable numbers of 24 gradients .73 to 1.8.
DENSITY_OF_CLUSTERS = 0.45


def places_of(model: Any, X: Any, K: int, others: np.ndarray) -> dict[str, np.ndarray]:
    """Return where cases lie that a model was not fitted to; NaN without a model.

    Parameters
    ----------
    model : RobustSparseKMeans or None
        Fitted to some cases.
    X : ndarray or sparse matrix of shape (n, p)
        All cases.
    K : int
        Number of clusters.
    others : ndarray of int
        Numbers of cases that the model was not fitted to.

    Returns
    -------
    places : dict
        ``distances`` (n, K), squared, to the centers, NaN for the cases that the model was fitted
        to; ``gaps`` (K, K), those of the centers.
    """
    places = {"distances": np.full((X.shape[0], K), np.nan), "gaps": np.full((K, K), np.nan)}
    if model is not None:
        places["distances"][others] = model.transform(X[others]).astype(np.float64) ** 2
        centers, roots = model.cluster_centers_, np.sqrt(model.feature_weights_)
        between = np.nan_to_num((centers[:, None] - centers) * roots)
        places["gaps"] = (between**2).sum(axis=2)
    return places


class Between(NamedTuple):
    """Cases between neighboring centers, over all pairs of neighbors."""

    middle: float  # in the middle third of the way
    beside: float  # in the first or the last third, whichever has fewer

    @property
    def density(self) -> float:
        """The density in the middle, as a share of that beside it; NaN if nothing is known."""
        if self.beside:
            return self.middle / self.beside
        return np.inf if self.middle else np.nan

    @property
    def evidence(self) -> float:
        """The logarithm of the odds of slices against clusters that these numbers of cases give.

        It is 0 at a density of two thirds, and the more cases there are, the more a larger density
        counts for slices, and a smaller one for clusters. Of few cases any density is an accident.
        """
        slices, clusters = (density / (1 + density) for density in (1.0, DENSITY_OF_CLUSTERS))
        in_middle, in_sides = np.log(slices / clusters), np.log((1 - slices) / (1 - clusters))
        return float(self.middle * in_middle + self.beside * in_sides)


def between_neighbors(
    distances: np.ndarray, gaps: np.ndarray, weights: np.ndarray | None = None
) -> Between:
    """Count the cases midway between neighbors, and those on its sides.

    These are the cases in the middle third of the way between two neighboring clusters, and in the
    first or the last third, whichever has fewer; both are summed over all pairs of neighbors.

    The way leads from the mean place of the cases of one cluster to that of the other: centers
    that a few other cases made are in error in each of many features, which moves them apart, and
    all cases seem to be midway. Of 40 cases of 1,000 features in two clusters that are found with
    an adjusted Rand index of .8 or more, 9 to 18 were in the middle third between such centers, and
    none in that between the means. A case has one place for each fit that it took no part in, and
    their median counts: places of single fits, to half of the cases, are blurred.

    Parameters
    ----------
    distances : ndarray of shape (fits, n, K)
        Squared distances to the centers of each fit, with the clusters numbered alike; NaN for
        cases that the fit was made of.
    gaps : ndarray of shape (fits, K, K)
        Squared distances of the centers.
    weights : ndarray of shape (n,), optional
        Case weights.

    Returns
    -------
    between : Between
    """
    K, judged = distances.shape[2], np.isfinite(distances).all(axis=2)
    placed = judged.any(axis=0)
    if K < 2 or not placed.any():
        return Between(0.0, 0.0)
    # A case that shares no observed cell with a center has no place.
    distances = np.where(judged[:, :, None], distances, np.nan)[:, placed]
    labels = np.nanmedian(distances, axis=0).argmin(axis=1)
    counts = np.ones(len(labels)) if weights is None else weights[placed]
    middle, beside = 0.0, 0.0
    for a, b in neighbors(np.nanmedian(gaps, axis=0)):
        apart = np.where(gaps[:, a, b] > 0, gaps[:, a, b], np.inf)[:, None]
        along = np.nanmedian((distances[:, :, a] - distances[:, :, b]) / apart, axis=0)
        first, second = labels == a, labels == b
        if not (first.any() and second.any()):
            continue
        low, high = (np.average(along[m], weights=counts[m]) for m in (first, second))
        if low < high:
            pair = first | second
            places = (2 * along[pair] - low - high) / (high - low)  # from -1 to 1
            thirds, _ = np.histogram(places, (-1, -1 / 3, 1 / 3, 1), weights=counts[pair])
            middle, beside = middle + thirds[1], beside + min(thirds[0], thirds[2])
    return Between(float(middle), float(beside))


def separation(
    cells: np.ndarray, labels: np.ndarray, masses: np.ndarray | None = None
) -> np.ndarray:
    """Return how far clusters are apart (K, K), in standard deviations within clusters.

    Each case is placed on the line between the mean of the other cases of its cluster, and that of
    another cluster: a case pulls its own center towards itself, so that halves of noise in many
    features would seem to be apart. The deviations are those of all clusters along the line, or of
    the two, whichever are larger. Beside other clusters, halves of a normal one of 8 cases or more,
    in 5 to 300 features, are 1 to 3 apart; slices of an even gradient are the root of 12, 3.46.

    Parameters
    ----------
    cells : ndarray of shape (n, p)
        Weighted cells, NaN where missing.
    labels : ndarray of shape (n,)
        Clusters 0 .. K - 1, each of two cases or more.
    masses : ndarray of shape (n,), optional
        Case weights.
    """
    own = np.ones(len(labels)) if masses is None else masses
    members = np.eye(labels.max() + 1)[labels] * own[:, None]
    observed = ~np.isnan(cells)
    counts = np.maximum(members.T @ observed, np.finfo(float).tiny)
    centers = members.T @ np.where(observed, cells, 0.0) / counts
    errors = np.where(observed, cells - centers[labels], 0.0)
    sizes, squares = members.sum(axis=0), (errors**2).sum(axis=1)[:, None]
    gaps = ((centers[:, None] - centers) ** 2).sum(axis=2)
    along = errors @ centers.T
    inner = np.take_along_axis(along, labels[:, None], axis=1) - along
    share = (own / (sizes[labels] - own))[:, None]  # by which a center moves without a case
    way = gaps[labels] - 2 * share * inner + share**2 * squares
    nearer = gaps[labels] + 2 * inner + squares - (1 + share) ** 2 * squares
    places = nearer / (2 * np.sqrt(np.maximum(way, np.finfo(float).tiny)))
    means = members.T @ places / sizes[:, None]
    spread = members.T @ places**2 - sizes[:, None] * means**2
    spread = (spread + spread.T) / (sizes[:, None] + sizes - 2)
    products = (along.T * own) @ along
    variances = np.diag(products)[:, None] + np.diag(products) - 2 * products
    variances /= np.maximum(gaps, np.finfo(float).tiny) * (own.sum() - len(sizes))
    deviations = np.sqrt(np.maximum(spread, variances))
    return (means + means.T) / np.maximum(deviations, np.finfo(float).tiny)


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
