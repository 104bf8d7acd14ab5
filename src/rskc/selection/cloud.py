"""Whether one cloud explains clusters: compared with those of reference sets from one."""

from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from rskc.exceptions import ParameterError
from rskc.selection.checkpoint import Result
from rskc.selection.references import CLOUDS, reference_of, stepped_reference
from rskc.selection.runner import Key, Runner, rng_of, seed_of
from rskc.selection.search import fit_task
from rskc.selection.subsample import Sample

DATA = 2  # in the place of the number of a cloud
# Sums of squares of all features, or in the plane of the centers: see cluster_indices.
INDICES = ("all", "plane")
# Of pairs with fewer cases in a cluster the comparison knows too little.
LARGE = 20


class CloudPValues(NamedTuple):
    """P-values of clusters as compact in one cloud."""

    p_value: float  # all clusters
    pair: float  # two neighbors, the largest; 0 with two clusters
    large_pair: float  # two neighbors with many cases each


NOT_COMPARED = CloudPValues(np.nan, np.nan, np.nan)


def compare_with_cloud(
    sample: Sample,
    labels: np.ndarray,
    K: int,
    estimator: Any,
    n_references: int,
    runner: Runner,
    columns: np.ndarray,
) -> CloudPValues:
    """Compare clusters of cells, and each of them with its nearest one, with those of one cloud.

    ``columns`` (p,) has the column of each feature: those that share one are of a category.
    """
    work = partial(_cluster_index, sample, labels, estimator, columns, runner.seed)
    pairs = nearest_pairs(sample.X, labels, K, sample.weights)
    sets = [(K, 0, 0), *((K, *pair) for pair in pairs)]
    own = [(*cases, DATA, 0) for cases in sets]
    draws = product(sets, range(len(CLOUDS)), range(n_references))
    drawn = [(*cases, kind, r) for cases, kind, r in draws]
    results = runner.run("One cloud", work, [*own, *drawn])
    p_values, in_plane = (
        _p_values(np.array([result[name] for result in results]), len(sets)) for name in INDICES
    )
    if len(np.unique(columns)) < len(columns):
        # In the plane of its own categories any partition by one column is perfect.
        in_plane = p_values
    sizes = np.bincount(labels, minlength=K)
    large = [min(sizes[[*pair[1:]]]) >= LARGE for pair in sets[1:]]
    both = np.minimum(p_values, in_plane)[1:]
    pair, large_pair = (float(some.max(initial=0.0)) for some in (p_values[1:], both[large]))
    return CloudPValues(float(in_plane[0]), pair, large_pair)


def nearest_pairs(
    cells: np.ndarray, labels: np.ndarray, K: int, weights: np.ndarray | None = None
) -> list[tuple[int, int]]:
    """Return each cluster and the one with the nearest center, every pair once."""
    known = [k for k in range(K) if (labels == k).any()]
    filled = np.where(np.isnan(cells), np.nanmean(cells, axis=0), cells)
    own = np.ones(len(labels)) if weights is None else weights
    members = [labels == k for k in known]
    centers = np.array([np.average(filled[m], axis=0, weights=own[m]) for m in members])
    gaps = ((centers[:, None] - centers) ** 2).sum(axis=2)
    return [(known[a], known[b]) for a, b in neighbors(gaps)] if len(known) > 2 else []


def neighbors(gaps: np.ndarray) -> list[tuple[int, int]]:
    """Return each cluster and the one at the least distance (K, K) to it, every pair once."""
    distances = gaps + np.diag(np.full(len(gaps), np.inf))
    pairs = {(min(a, b), max(a, b)) for a, b in enumerate(distances.argmin(axis=1).tolist())}
    return sorted(pairs)


def _cluster_index(
    sample: Sample, labels: np.ndarray, estimator: Any, columns: np.ndarray, seed: int, key: Key
) -> Result:
    """Return the sum of squares within clusters over that in total, of the data or a reference.

    The cases are those of two clusters, for two; or all, for all, where both are the same.
    """
    K, first, second, kind, _ = key
    if first != second:
        K, sample = 2, sample.take((labels == first) | (labels == second))
    if kind != DATA:
        if len(np.unique(columns)) < len(columns):  # some are indicators of categories
            cloud = stepped_reference(CLOUDS[kind], sample.X, columns, sample.masses)
        else:
            cloud = reference_of(CLOUDS[kind], sample.X, sample.masses)
        sample = replace(sample, X=cloud.draw(rng_of(seed, *key)))
    try:
        labels = fit_task(estimator, sample, n_clusters=K, random_state=seed_of(seed, *key)).labels_
    except ParameterError:  # fewer distinct cases than clusters
        return dict.fromkeys(INDICES, 0.0)
    return cluster_indices(sample.X, labels, sample.masses)


def cluster_indices(
    cells: np.ndarray, labels: np.ndarray, masses: np.ndarray | None = None
) -> dict[str, float]:
    """Return the sums of squares within clusters over those in total.

    Both of all features, and in the plane (line, space) in which the centers lie: across it there
    is nothing but noise, which hides how compact many clusters are. Two halves of one cluster are
    better told from two clusters by all features. Missing cells are filled with the mean of their
    cluster.
    """
    _, labels = np.unique(labels, return_inverse=True)
    members = np.eye(labels.max() + 1)[labels]
    own = np.ones(len(cells)) if masses is None else masses
    observed = ~np.isnan(cells)
    counts = (members.T * own) @ observed
    sums = (members.T * own) @ np.where(observed, cells, 0.0)
    centers = sums / np.where(counts > 0, counts, 1)
    cells = np.where(observed, cells, centers[labels])
    mean = cells.mean(axis=0) if masses is None else own @ cells / own.sum()
    around_mean, around_centers = cells - mean, cells - centers[labels]
    _, sizes, axes = np.linalg.svd(centers - mean, full_matrices=False)
    plane = axes[sizes > 1e-9 * sizes[0]].T
    parts = (around_mean, around_centers), (around_mean @ plane, around_centers @ plane)
    squares = [[(own @ part**2).sum() for part in both] for both in parts]
    shares = [float(within / max(total, np.finfo(float).tiny)) for total, within in squares]
    return dict(zip(INDICES, shares, strict=True))


def _p_values(indices: np.ndarray, n_sets: int) -> np.ndarray:
    """Return the probability of indices as small, if they are drawn as the others were.

    One for each set of cases; of two kinds of cloud, the larger one.
    """
    own, drawn = indices[:n_sets, None], indices[n_sets:].reshape(n_sets, len(CLOUDS), -1)
    n = drawn.shape[2]
    spread = drawn.std(axis=2, ddof=1) * np.sqrt(1 + 1 / n)
    away = (own - drawn.mean(axis=2)) / np.where(spread > 0, spread, 1)
    chances = np.where(spread > 0, student.cdf(away, n - 1), own >= drawn[:, :, 0])
    return chances.max(axis=1)
