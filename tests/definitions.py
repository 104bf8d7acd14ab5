"""What passes compute, by definition, plain and slow; what R found; tables in other forms."""

import gzip
import json
from pathlib import Path

import numpy as np

from rskc.engines import Sums

LARGE = 20_011
LADDER = np.arange(LARGE) % (1 + LARGE // 32)  # 0 wherever the sample of the selection looks


def whole(rng, shape, dtype=np.float64, size=8):
    return rng.integers(-size, size + 1, shape).astype(dtype)


def whole_weights(rng, rows, q):
    """Some of them 0, but not the first."""
    weights = rng.integers(0, 4, (rows, q)).astype(float)
    weights[:, 0] += 1
    return weights


def squared_distances(X, centers, weights):
    """Weighted squared distance of each case to each center, (runs, n, K)."""
    X, weights = X.astype(np.float64), np.broadcast_to(weights, (len(centers), X.shape[1]))
    return np.einsum("rikj,rj->rik", (X[None, :, None] - centers[:, None]) ** 2, weights)


def own_columns(values, labels):
    return np.take_along_axis(values, labels[:, :, None], axis=2)[:, :, 0]


def plain_trim(labels, costs, m):
    groups = labels.copy()
    for group, cost in zip(groups, costs, strict=True):
        group[np.argsort(-cost, kind="stable")[:m]] = -1
    kept = [cost[group >= 0].sum(dtype=float) for group, cost in zip(groups, costs, strict=True)]
    return groups, np.array(kept)


def plain_sums(X, groups, K):
    members = groups[:, None, :] == np.arange(K)[:, None]
    return Sums(members @ X.astype(np.float64), members.sum(axis=2).astype(float))


SHAPES = {
    "continuous": lambda rng: rng.exponential(size=LARGE),
    "few levels": lambda rng: rng.integers(0, 5, LARGE),
    "all alike": lambda rng: np.ones(LARGE),
    "rising": lambda rng: np.arange(LARGE),
    "falling": lambda rng: np.arange(LARGE)[::-1],
    "one at the top": lambda rng: np.arange(LARGE) == 777,
    "mostly 0": lambda rng: rng.random(LARGE) * (rng.random(LARGE) < 0.01),
    "of all sizes": lambda rng: 10.0 ** rng.uniform(-30, 30, LARGE),
    "infinite, and 0 of either sign": lambda rng: rng.choice([0.0, -0.0, 1.0, 2.0, np.inf], LARGE),
    "sample misled": lambda rng: np.where(LADDER == 0, 0, 1 + rng.random(LARGE)),
    "sample misled upwards": lambda rng: np.where(LADDER == 0, 9 + rng.random(LARGE), 1),
}


def partitions(rng, runs, n, K, m):
    """Random groups with m trimmed cases each, as many in one cluster as in another."""
    group = np.r_[np.full(m, -1), np.arange(n - m) % K].astype(np.int32)
    return np.array([rng.permutation(group) for _ in range(runs)])


def plain_distances(X, centers, weights):
    """d(i, k) over the features observed in both, scaled up by the observed weight."""
    squares = (X[:, None, :] - centers) ** 2
    seen = ~np.isnan(squares) * weights
    sums, observed = np.nansum(seen * squares, axis=2), seen.sum(axis=2)
    out = np.full(sums.shape, np.inf)
    return np.divide(sums * weights.sum(), observed, out=out, where=observed > 0)


def plain_means(X, groups, K):
    """Means over observed cells."""
    means = np.full((K, X.shape[1]), np.nan)
    for k, j in np.ndindex(*means.shape):
        cells = X[groups == k, j]
        if not np.isnan(cells).all():
            means[k, j] = np.nanmean(cells)
    return means


def plain_between(X, groups, K, made_with):
    """B_j, each case's terms carrying the factor all weight / observed weight."""
    kept = groups >= 0
    X, groups = X[kept], groups[kept]
    observed = ~np.isnan(X) @ made_with
    factor = np.divide(made_with.sum(), observed, out=np.zeros(len(X)), where=observed > 0)
    mean = plain_means(X, np.zeros(len(X), int), 1)
    own = plain_means(X, groups, K)[groups]
    return np.nansum(factor[:, None] * ((X - mean) ** 2 - (X - own) ** 2), axis=0)


def found_by_r(name):
    """What R's RSKC found: see ``reference/README.md``."""
    path = Path(__file__).parent / "reference" / f"{name}.json.gz"
    return json.loads(gzip.decompress(path.read_bytes()))


def strided(X):
    """Return the same table as a part of a larger array."""
    wide = np.zeros((2 * len(X), 3 * X.shape[1]), X.dtype)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def read_only(X):
    """Return a copy of a table that cannot be written to."""
    X = X.copy()
    X.setflags(write=False)
    return X


def with_missing(X, share=0.08, seed=1):
    """A copy with missing cells; each row and column keeps a cell."""
    rng = np.random.default_rng(seed)
    missing = rng.random(X.shape) < share
    missing[np.arange(len(X)), rng.integers(0, X.shape[1], len(X))] = False
    missing[rng.integers(0, len(X), X.shape[1]), np.arange(X.shape[1])] = False
    return np.where(missing, X.dtype.type(np.nan), X)
