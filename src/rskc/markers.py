"""Markers: the features that set each cluster apart from the others, and by how much.

A marker of a cluster is a feature with weight whose mean over the cluster differs from that over
all other clusters (the effect) or from that over each of them (the separation): a cluster in the
middle of two others has no effect. Both are in robust standard deviations within clusters, so that
units do not count. No p-value goes with them: the same cases made the clusters, so that a test for
a difference finds one where there is none (Chen and Witten, arXiv:2203.15267).
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from rskc.inputs.arrays import masses_of, to_numpy_pair
from rskc.inputs.validation import check_integer, check_real, validated
from rskc.model.fitted import number_names, number_weights, unequal_weights
from rskc.model.summary import check_cases
from rskc.utils.wording import short_repr

__all__ = ["MarkerEffects", "marker_effects"]

# Half a standard deviation: what sets a cluster apart by less does not show in single cases.
LEAST_EFFECT = 0.5
# A cell counts as no farther from the median of its cluster than three robust standard deviations.
# These are made of the distance that a tenth of the cells exceeds, which is 1.645 for normal ones.
# The median distance, as in a MAD, would be next to nothing for a gene that is off in most cells.
CUT, SHARE_WITHIN, NORMAL_WITHIN = 3.0, 0.9, 1.645
# No scale is below this share of the standard deviation over all cases: without any spread within
# clusters an effect would be infinite.
LEAST_SCALE = 1e-2
CELLS_AT_ONCE = 2**20
# Cases of a cluster by which its cells are cut, evenly spaced where there are more: they give the
# distance to 2%, and a million cases need not be sorted by each feature.
MOST_FOR_CUTS = 5000


class MarkerEffects(NamedTuple):
    """How far apart each cluster is from the others, feature by feature.

    Attributes
    ----------
    effects : ndarray of shape (n_clusters, n_features)
        ``(means - means_of_others) / scales``: above 0 where the cluster is above the others. NaN
        where the feature is not observed in the cluster, or in none of the others; 0 for a constant
        feature.
    separations : ndarray of shape (n_clusters, n_features)
        Distance to the nearest mean of another cluster, in the same unit. It is large also for a
        cluster in the middle of others, whose effect is small.
    means, means_of_others : ndarray of shape (n_clusters, n_features)
        Mean over the cases of the cluster, and over the cases of all others. Cells farther than
        three robust standard deviations from the median of their cluster count as if they were
        there: few cells cannot make an effect. (Robust: by the distance that one cell in ten
        exceeds.) Of a feature with two values, such as 0 and 1, it is the plain mean.
    scales : ndarray of shape (n_features,)
        Standard deviation of the same cells about the means of their clusters, all clusters
        together; at least 1% of that about the mean of all cases.
    """

    effects: np.ndarray
    separations: np.ndarray
    means: np.ndarray
    means_of_others: np.ndarray
    scales: np.ndarray


def marker_effects(model: Any, X: Any) -> MarkerEffects:
    """Compute how far each cluster is from the others in each feature, with weight or without.

    Over the cases that are neither trimmed nor outliers, and over the observed cells of these; by
    the weights of the fit, if it had any.

    Parameters
    ----------
    model : RobustSparseKMeans
        A fitted model.
    X : array-like or data frame of shape (n_samples, n_features)
        The data of the fit.

    Returns
    -------
    effects : MarkerEffects
        With one cluster, all effects are NaN: there is nothing to compare it with.

    Raises
    ------
    ValueError
        If X does not have the cases and the features of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from rskc import RobustSparseKMeans
    >>> from rskc.markers import marker_effects
    >>> X = np.array([[1.0, 5.0], [2.0, 4.0], [3.0, 6.0], [11.0, 5.0], [12.0, 6.0], [13.0, 4.0]])
    >>> model = RobustSparseKMeans(2, trim=0, l1_bound=None, random_state=0).fit(X)
    >>> np.abs(marker_effects(model, X).effects).round(2)
    array([[10.,  0.],
           [10.,  0.]])
    """
    model, X = to_numpy_pair(model, X)
    table = validated(model, X, False, model.cluster_centers_.dtype)
    check_cases(model, table.shape[0])
    return effects_of(model, table)


def effects_of(model: Any, table: np.ndarray) -> MarkerEffects:
    """Compute the effects in the checked data of the fit; of an indicator, means are shares."""
    encoder, K = getattr(model, "encoder_", None), len(model.cluster_centers_)
    weights, clusters = unequal_weights(model), regular_clusters(model)
    masses = None if weights is None else masses_of(weights)
    if encoder is None:
        return effects_between(table, clusters, K, masses=masses)
    indicators = np.flatnonzero(encoder.indicators)
    return effects_between(table / encoder.units, clusters, K, indicators, masses)


def regular_clusters(model: Any) -> np.ndarray:
    """Return the cluster of each case of the fit, -1 where it is trimmed or an outlier."""
    return np.where(model.trimmed_ | model.outliers_, -1, model.labels_)


def effects_between(
    table: Any, clusters: np.ndarray, K: int, indicators: Any = (), masses: np.ndarray | None = None
) -> MarkerEffects:
    """Compute the effects in a table (n, p), which may be sparse; -1 leaves a case out.

    Of the features that are ``indicators``, or have two values only, no cell is outlying: a tenth
    of ones among zeros would be cut to none. Cases count as copies of them would, as many as their
    masses say.
    """
    kept = np.flatnonzero((clusters >= 0) & (True if masses is None else masses > 0))
    kept = kept[np.argsort(clusters[kept], kind="stable")]
    own = np.ones(len(kept)) if masses is None else masses[kept]
    ends = np.cumsum(np.bincount(clusters[kept], minlength=K))
    p, sparse = table.shape[1], issparse(table)
    table = table.tocsc() if sparse else table
    step = max(1, CELLS_AT_ONCE // max(1, table.shape[0] if sparse else len(kept)))
    parts = []
    for first in range(0, p, step):
        cells = table[:, first : first + step]
        cells = cells.toarray()[kept] if sparse else cells[kept]
        cells = np.ascontiguousarray(cells.T, dtype=np.float64)  # one row per feature
        least, most = (end.reduce(cells, axis=1)[:, None] for end in (np.fmin, np.fmax))
        two_valued = ((cells == least) | (cells == most) | np.isnan(cells)).all(axis=1)
        cut = ~np.isin(first + np.arange(len(cells)), indicators) & ~two_valued
        parts.append(_effects(cells, ends, cut, own))
    return MarkerEffects(*(np.concatenate(each, axis=-1) for each in zip(*parts, strict=True)))


def _effects(
    cells: np.ndarray, ends: np.ndarray, cut: np.ndarray, masses: np.ndarray
) -> MarkerEffects:
    """Compute the effects of features (p, n) whose cases are sorted by cluster.

    Outlying cells are cut of the features of a mask (p,).
    """
    # From their least value on: the mean of a constant feature is then exact.
    least = np.fmin.reduce(cells, axis=1, initial=np.inf)
    least[~np.isfinite(least)] = 0.0
    cells -= least[:, None]
    parts, own = np.split(cells, ends[:-1], axis=1), np.split(masses, ends[:-1])
    pairs = list(zip(parts, own, strict=True))
    for part, m in pairs:
        _cut(part, cut, m)
    counts = np.array([~np.isnan(part) @ m for part, m in pairs])
    totals = np.array([np.nansum(part * m, axis=1) for part, m in pairs])
    n, total = counts.sum(axis=0), totals.sum(axis=0)
    means, others = _ratio(totals, counts), _ratio(total - totals, n - counts)
    within = sum(
        np.nansum((part - mean[:, None]) ** 2 * m, axis=1)
        for (part, m), mean in zip(pairs, means, strict=True)
    )
    between = np.nansum(counts * (means - _ratio(total, n)) ** 2, axis=0)
    spread = np.sqrt(_ratio(within, n - np.count_nonzero(counts, axis=0)))
    scales = np.fmax(spread, LEAST_SCALE * np.sqrt(_ratio(within + between, n)))
    differences = means - others
    nearest = [
        np.fmin.reduce(np.abs(np.delete(means, k, axis=0) - mean), axis=0, initial=np.inf)
        for k, mean in enumerate(means)
    ]
    gaps = np.where(np.isnan(differences), np.nan, nearest)
    effects, separations = (
        np.divide(values, scales, out=0 * values, where=scales > 0)
        for values in (differences, gaps)
    )
    return MarkerEffects(effects, separations, means + least, others + least, scales)


def _cut(part: np.ndarray, cut: np.ndarray, masses: np.ndarray) -> None:
    """Bring cells (p, n) of a cluster that are far from its median nearer, in place."""
    if part.shape[1] == 0:
        return
    step = -(-part.shape[1] // MOST_FOR_CUTS)
    some, own = part[:, ::step], masses[::step]
    last = np.maximum(~np.isnan(some) @ own - 1, 0)  # the place of the last copy
    middle = _at_places(some, own, np.column_stack([np.floor(last / 2), np.ceil(last / 2)]))
    medians = middle.mean(axis=1, keepdims=True)
    away = np.floor(SHARE_WITHIN * last)[:, None]
    exceeded = _at_places(np.abs(some - medians), own, away)
    most = np.where(cut[:, None], CUT / NORMAL_WITHIN * exceeded, np.inf)
    np.clip(part, medians - most, medians + most, out=part)


def _at_places(cells: np.ndarray, masses: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the cells (p, m) at places (p, m) among all, sorted, each as often as its mass says.

    What is missing is sorted last.
    """
    if (masses == 1).all():
        return np.take_along_axis(np.sort(cells, axis=1), places.astype(int), axis=1)
    order = np.argsort(cells, axis=1, kind="stable")
    ends = np.cumsum(masses[order], axis=1) - 1e-9
    found = [np.searchsorted(row, own, side="right") for row, own in zip(ends, places, strict=True)]
    numbers = np.take_along_axis(order, np.minimum(found, cells.shape[1] - 1), axis=1)
    return np.take_along_axis(cells, numbers, axis=1)


def _ratio(part: Any, whole: np.ndarray) -> np.ndarray:
    """Divide; what nothing is known of is NaN."""
    return np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0)


def markers_frame(
    model: Any,
    found: MarkerEffects,
    n_top: int | None = None,
    min_effect: float = LEAST_EFFECT,
    selection_probabilities: Any = None,
) -> Any:
    """Return a frame with one row per marker: as ``RobustSparseKMeans.markers_frame`` says."""
    import pandas as pd

    most = None if n_top is None else check_integer("n_top", n_top, 1, remedy=" or None")
    least = check_real("min_effect", min_effect, 0)
    weights, names = number_weights(model), number_names(model)
    given, p = np.asarray(selection_probabilities), model.n_features_in_
    if selection_probabilities is not None and not (
        given.shape == (p,) and given.dtype.kind in "fiu" and ((given >= 0) & (given <= 1)).all()
    ):
        raise ValueError(
            f"selection_probabilities must hold a number from 0 to 1 for each of the {p} features, "
            "as selection_probabilities_ of a search does; got "
            f"{short_repr(selection_probabilities)}."
        )
    encoder = getattr(model, "encoder_", None)
    place = np.arange(len(weights)) if encoder is None else encoder.columns
    frames = []
    for k, effects in enumerate(found.effects):
        strength = np.fmax(np.abs(effects), found.separations[k])
        strength[weights == 0] = np.nan
        # Of two categories both are as strong: the one that the cluster has is named.
        order = np.argsort(-strength * (1 + 1e-9 * (effects > 0)), kind="stable")
        order = order[strength[order] >= least]
        _, first = np.unique(place[order], return_index=True)  # one category of each column
        order = order[np.sort(first)][:most]
        others, own = np.delete(found.means[:, order], k, axis=0), found.means[k, order]
        high, low = (end.reduce(others, axis=0, initial=np.nan) for end in (np.fmax, np.fmin))
        words = np.select([own > high, own < low], ["above", "below"], "between")
        columns = {
            "cluster": k,
            "rank": np.arange(1, len(order) + 1),
            "feature": names[order],
            "effect": effects[order],
            "separation": found.separations[k, order],
            "position": words.astype(object),
            "mean": own,
            "mean_of_others": found.means_of_others[k, order],
            "scale": found.scales[order],
            "weight": weights[order],
        }
        if selection_probabilities is not None:
            columns["selection_probability"] = given[place[order]]
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)
