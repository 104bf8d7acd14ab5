"""Tables with a known truth on which choosing K, the features and the outliers is judged."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rskc.inputs.validation import check_choice


class Design(NamedTuple):
    """A table on which choices are judged, and the truth about it.

    Attributes
    ----------
    data : ndarray of shape (n_samples, n_features)
        The cases.
    labels : ndarray of shape (n_samples,)
        The true cluster of each case; -1 for one that belongs to none.
    n_clusters : int
        The true number of clusters, 1 for data without clusters.
    informative : ndarray of bool of shape (n_features,)
        The features in which the clusters differ.
    outlying : ndarray of bool of shape (n_samples,)
        The cases with outlying cells.
    """

    data: np.ndarray
    labels: np.ndarray
    n_clusters: int
    informative: np.ndarray
    outlying: np.ndarray


class _Plan(NamedTuple):
    """K clusters of n cases that differ by ``separation`` in the first q of p features."""

    n_clusters: int
    n: int
    p: int
    q: int
    separation: float
    layout: str  # how the centers lie
    sizes: tuple[float, ...] = ()  # shares of the cases; equal ones if empty
    noise: str = "normal"
    outliers: tuple[float, str] = (0.0, "rows")  # share of the cases, and their kind


_PLANS = {
    "equal, rows": _Plan(3, 150, 300, 20, 1.2, "spread", outliers=(0.06, "rows")),
    "unequal, rows": _Plan(
        3, 120, 200, 15, 1.5, "spread", sizes=(0.60, 0.28, 0.12), outliers=(0.05, "rows")
    ),
    "line, cells": _Plan(4, 120, 100, 10, 2.0, "line", outliers=(0.05, "cells")),
    "few features, cells": _Plan(5, 150, 400, 6, 2.5, "spread", outliers=(0.10, "cells")),
    "blocks, clump": _Plan(6, 180, 150, 60, 1.8, "blocks", outliers=(0.05, "clump")),
    "three, clump": _Plan(3, 90, 300, 20, 1.0, "spread", outliers=(0.08, "clump")),
    "heavy tails": _Plan(3, 120, 200, 20, 1.0, "spread", noise="t3"),
    "correlated noise": _Plan(4, 120, 300, 20, 1.5, "spread", noise="factors"),
    "wide": _Plan(2, 80, 2000, 40, 1.2, "blocks", outliers=(0.03, "cells")),
}
_SMALL_PLANS = {
    "small cluster": _Plan(3, 150, 200, 20, 1.5, "spread", sizes=(0.50, 0.42, 0.08)),
    "small cluster, clump": _Plan(
        3, 150, 200, 20, 1.5, "spread", sizes=(0.50, 0.42, 0.08), outliers=(0.05, "clump")
    ),
}
_NULLS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "normal": lambda rng: rng.normal(size=(100, 100)),
    "uniform": lambda rng: rng.uniform(size=(100, 50)),
    "one factor": lambda rng: (
        rng.normal(size=(100, 1)) @ rng.normal(size=(1, 100)) + rng.normal(size=(100, 100))
    ),
    "t3": lambda rng: rng.standard_t(3, size=(100, 100)),
    "counts": lambda rng: rng.poisson(rng.uniform(0.3, 3, 60), size=(100, 60)).astype(float),
}

DESIGNS = tuple(_PLANS)
SMALL_CLUSTERS = tuple(_SMALL_PLANS)
NULLS = tuple(_NULLS)


def make_design(name: str, random_state: Any = None) -> Design:
    """Draw a table on which choosing K, the features and the outliers is judged.

    Parameters
    ----------
    name : str
        What is hard about the table: one of ``DESIGNS``, of ``SMALL_CLUSTERS``, where one cluster
        has 8% of the cases, or of ``NULLS``, data without clusters. The word behind the comma is
        the kind of outlying case: "cells" has three outlying cells each, "rows" has nothing but
        noise of four times the spread, and "clump" shares five cells near 8. Clusters of the
        design "correlated noise" compete with three factors in the other features.
    random_state : None, int or numpy.random.Generator, default=None
        Seed; an int gives the same table every time, another one for each name.

    Returns
    -------
    Design
        Data, true clusters, informative features and outlying cases. A case whose *cells* are
        outlying still belongs to its cluster; others that are outlying belong to none.

    Examples
    --------
    >>> from benchmarks.designs import make_design
    >>> design = make_design("line, cells", random_state=0)
    >>> design.data.shape, design.n_clusters, int(design.informative.sum())
    ((120, 100), 4, 10)
    """
    check_choice("name", name, (*DESIGNS, *SMALL_CLUSTERS, *NULLS))
    is_seed = not (random_state is None or isinstance(random_state, np.random.Generator))
    rng = np.random.default_rng([random_state, *name.encode()] if is_seed else random_state)
    if name in _NULLS:
        data = _NULLS[name](rng)
        n, p = data.shape
        return Design(data, np.zeros(n, int), 1, np.zeros(p, bool), np.zeros(n, bool))
    return _draw_design(rng, (_PLANS | _SMALL_PLANS)[name])


def _draw_design(rng: np.random.Generator, plan: _Plan) -> Design:
    K, n = plan.n_clusters, plan.n
    counts = np.floor(np.array(plan.sizes or [1 / K] * K) * n).astype(int)
    counts[0] += n - counts.sum()
    labels = np.repeat(np.arange(K), counts)
    data = _draw_noise(rng, plan)
    data[:, : plan.q] += _draw_centers(rng, plan)[labels]
    share, kind = plan.outliers
    cases = rng.choice(n, round(share * n), replace=False)
    if kind == "cells":
        for i in cases:
            cells = rng.choice(plan.p, 3, replace=False)
            data[i, cells] += rng.choice([-1, 1], 3) * rng.uniform(10, 20, 3)
    elif kind == "rows":
        data[cases] = rng.normal(0, 4, size=(len(cases), plan.p))
    else:
        cells = rng.choice(plan.p, 5, replace=False)
        data[np.ix_(cases, cells)] = 8 + 0.3 * rng.normal(size=(len(cases), 5))
    if kind != "cells":  # an outlying row belongs to no cluster
        labels[cases] = -1
    informative, outlying = np.arange(plan.p) < plan.q, np.isin(np.arange(n), cases)
    return Design(data, labels, K, informative, outlying)


def _draw_noise(rng: np.random.Generator, plan: _Plan) -> np.ndarray:
    n, p, q = plan.n, plan.p, plan.q
    if plan.noise == "t3":
        return rng.standard_t(3, size=(n, p)) / np.sqrt(3)
    data = rng.normal(size=(n, p))
    if plan.noise == "factors":  # three factors, each in a third of the features without clusters
        loadings = rng.normal(size=(3, p - q)) * (rng.random((3, p - q)) < 0.3)
        data[:, q:] = np.sqrt(0.5) * (data[:, q:] + rng.normal(size=(n, 3)) @ loadings)
    return data


def _draw_centers(rng: np.random.Generator, plan: _Plan) -> np.ndarray:
    K, q = plan.n_clusters, plan.q
    if plan.layout == "line":
        steps = plan.separation * (np.arange(K) - (K - 1) / 2)
        return np.repeat(steps[:, None], q, axis=1)
    if plan.layout == "blocks":  # each cluster is high in features of its own
        centers = np.zeros((K, q))
        for k, own in enumerate(np.array_split(np.arange(q), K)):
            centers[k, own] = plan.separation
        return centers
    return plan.separation * rng.normal(size=(K, q))
