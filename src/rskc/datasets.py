"""Data with a known truth: the paper's generators, and contamination that is hard on K-means.

The paper's tables have three Gaussian clusters that differ in the first few features only; the rest
is noise. What varies is how many features matter and where the outlying cells are.

References
----------
Kondo, Salibian-Barrera and Zamar (2012), "A robust and sparse K-means clustering algorithm",
arXiv:1201.6082.
"""

from typing import Any, NamedTuple

import numpy as np

from rskc.inputs.validation import check_choice, check_integer

__all__ = [
    "Dataset",
    "make_contaminated",
    "make_figure1",
    "make_masking",
    "make_simulation",
]

_N_CLUSTERS = 3


class Dataset(NamedTuple):
    """A table and the truth about it.

    Attributes
    ----------
    data : ndarray of shape (n_samples, n_features)
        The cases, ordered by cluster.
    target : ndarray of shape (n_samples,)
        The true cluster of each case: 0, 1 or 2.
    outliers : ndarray of bool of shape (n_samples,)
        The cases with at least one outlying cell.
    informative : ndarray of bool of shape (n_features,)
        The features in which the clusters differ.
    """

    data: np.ndarray
    target: np.ndarray
    outliers: np.ndarray
    informative: np.ndarray


def make_figure1(n_samples: int = 300, n_features: int = 1000, random_state: Any = None) -> Dataset:
    """Draw the data of the paper's Figure 1: two features matter, all others are noise.

    Three clusters with identity covariance and the centers ``(mu, mu, 0, ..., 0)``,
    mu = -3, 0, 3. No outliers.

    Parameters
    ----------
    n_samples : int, default=300
        Number of cases, at least 3; the clusters differ by one case at most.
    n_features : int, default=1000
        Number of features, at least 2.
    random_state : None, int or numpy.random.Generator, default=None
        Seed; an int gives the same data every time.

    Returns
    -------
    Dataset
        Data, true clusters, outliers (none) and informative features.

    Examples
    --------
    >>> from rskc.datasets import make_figure1
    >>> figure1 = make_figure1(random_state=0)
    >>> figure1.data.shape
    (300, 1000)
    >>> int(figure1.informative.sum())
    2
    """
    return _draw_clusters(_generator_of(random_state), n_samples, n_features, 2, spread=3.0)


def make_masking(n_samples: int = 300, random_state: Any = None, *, size: float = 500.0) -> Dataset:
    """Draw the paper's masking example: outlying cells in features that carry no weight.

    Three clusters with identity covariance and the centers ``(mu, mu, 0, 0, 0)``,
    mu = -2, 0, 2. The last two cells of the first three cases are drawn anew from N(size, 1).
    Trimming by the weighted distance alone cannot see these cases, and if they are outlying enough
    they then attract all the weight; the second, unweighted trimmed set is there for them.

    Parameters
    ----------
    n_samples : int, default=300
        Number of cases, at least 3.
    random_state : None, int or numpy.random.Generator, default=None
        Seed; an int gives the same data every time.
    size : float, default=500
        How outlying the cells are. The paper calls them large; the clusters contribute about 800 to
        the between sum of squares of a feature, and a cell of 25 in a cluster of 100 cases only 6.

    Returns
    -------
    Dataset
        Data, true clusters, outliers (the first three cases) and informative features.

    Examples
    --------
    >>> from rskc.datasets import make_masking
    >>> masking = make_masking(random_state=0)
    >>> bool(masking.data[:3, 3:].min() > 400)
    True
    """
    rng = _generator_of(random_state)
    clean = _draw_clusters(rng, n_samples, 5, 2, spread=2.0)
    return _replace_cells(clean, np.arange(3), [3, 4], rng.normal(size, 1.0, (3, 2)))


def make_simulation(
    model: int = 0,
    random_state: Any = None,
    n_samples: int = 60,
    n_features: int = 500,
    n_informative: int = 50,
) -> Dataset:
    """Draw one data set of the paper's simulation.

    Three clusters with identity covariance; in the informative features, which come first, their
    means are -1, 0 and 1, in all others 0.

    Parameters
    ----------
    model : {0, 1, 2}, default=0
        0: clean. 1: the first case is 25 in the last feature. 2: the first case is 25 in the
        first feature.
    random_state : None, int or numpy.random.Generator, default=None
        Seed; an int gives the same data every time. The models of one seed differ in the outlying
        cell only.
    n_samples : int, default=60
        Number of cases, at least 3; the clusters differ by one case at most.
    n_features : int, default=500
        Number of features.
    n_informative : int, default=50
        Number of features in which the clusters differ, 1 to `n_features`.

    Returns
    -------
    Dataset
        Data, true clusters, outliers and informative features.

    Examples
    --------
    >>> from rskc.datasets import make_simulation
    >>> clean, outlying = (make_simulation(model, random_state=0) for model in (0, 1))
    >>> float(outlying.data[0, -1])
    25.0
    >>> int((clean.data != outlying.data).sum())
    1
    """
    check_choice("model", model, (0, 1, 2))
    rng = _generator_of(random_state)
    clean = _draw_clusters(rng, n_samples, n_features, n_informative, spread=1.0)
    if model == 0:
        return clean
    return _replace_cells(clean, [0], [n_features - 1 if model == 1 else 0], 25.0)


def make_contaminated(
    kind: str,
    n_samples: int = 60,
    n_features: int = 500,
    n_informative: int = 10,
    n_outliers: int = 4,
    random_state: Any = None,
) -> Dataset:
    """Draw clusters with a few outlying cases that resemble one another and so pose as a cluster.

    Three clusters with identity covariance; in the informative features, which come first, their
    means are -1.5, 0 and 1.5. `n_outliers` cases, drawn at random, are then spoilt.

    Parameters
    ----------
    kind : {"shared_cell", "clump_cells", "clump_rows", "far_rows"}
        What the outlying cases look like:

        - ``"shared_cell"``: exactly 25 in the last feature;
        - ``"clump_cells"``: N(8, 1) in the last three features, mildly outlying;
        - ``"clump_rows"``: N(5, 0.3^2) in every feature, a tight clump of outlying rows;
        - ``"far_rows"``: N(1000, 1) in every feature.
    n_samples : int, default=60
        Number of cases, at least 3; the clusters differ by one case at most.
    n_features : int, default=500
        Number of features.
    n_informative : int, default=10
        Number of features in which the clusters differ; at least one feature more for
        ``"shared_cell"`` and three more for ``"clump_cells"`` must be left as noise.
    n_outliers : int, default=4
        Number of outlying cases, 0 to `n_samples`.
    random_state : None, int or numpy.random.Generator, default=None
        Seed; an int gives the same data every time. The kinds of one seed share the clean cells
        and the outlying cases.

    Returns
    -------
    Dataset
        Data, true clusters (of the outlying cases too: where they were before), outliers and
        informative features.

    Examples
    --------
    >>> from rskc.datasets import make_contaminated
    >>> spoilt = make_contaminated("shared_cell", random_state=0)
    >>> spoilt.data[spoilt.outliers, -1]
    array([25., 25., 25., 25.])
    """
    check_choice("kind", kind, tuple(_CONTAMINATIONS))
    noise, mean, deviation = _CONTAMINATIONS[kind]
    check_integer("n_outliers", n_outliers, 0, n_samples)
    rng = _generator_of(random_state)
    clean = _draw_clusters(rng, n_samples, n_features, n_informative, spread=1.5, n_noise=noise)
    cases = np.sort(rng.choice(n_samples, n_outliers, replace=False))
    cells = np.arange(n_features)[-noise:]  # all of them for -0
    values = rng.normal(mean, deviation, (n_outliers, cells.size))
    return _replace_cells(clean, cases, cells, values)


# How many of the last features are outlying (0: all), and mean and deviation of what stands there.
_CONTAMINATIONS = {
    "shared_cell": (1, 25.0, 0.0),
    "clump_cells": (3, 8.0, 1.0),
    "clump_rows": (0, 5.0, 0.3),
    "far_rows": (0, 1000.0, 1.0),
}


def _draw_clusters(
    rng: np.random.Generator,
    n_samples: int,
    n_features: int,
    n_informative: int,
    spread: float,
    n_noise: int = 0,
) -> Dataset:
    """Draw unit normal clusters at -spread, 0 and spread in the first `n_informative` features."""
    check_integer("n_samples", n_samples, _N_CLUSTERS)
    check_integer("n_features", n_features, max(2, 1 + n_noise))
    check_integer("n_informative", n_informative, 1, n_features - n_noise)
    target = np.arange(n_samples) * _N_CLUSTERS // n_samples
    informative = np.arange(n_features) < n_informative
    data = rng.standard_normal((n_samples, n_features))
    data[:, informative] += spread * (target[:, None] - 1)
    return Dataset(data, target, np.zeros(n_samples, dtype=bool), informative)


def _replace_cells(clean: Dataset, cases: Any, cells: Any, values: Any) -> Dataset:
    """Put `values` where `cases` (rows) and `cells` (columns) cross, and mark the cases."""
    data, outliers = clean.data.copy(), clean.outliers.copy()
    data[np.ix_(cases, cells)] = values
    outliers[cases] = True
    return clean._replace(data=data, outliers=outliers)


def _generator_of(random_state: Any) -> np.random.Generator:
    """Return the generator that a seed stands for."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state={random_state!r} must be None, an int >= 0 or a numpy.random.Generator."
        ) from None
