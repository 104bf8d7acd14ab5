"""Fits at many settings: a grid of K, bound and trimming."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, combinations, pairwise, product
from typing import Any

import numpy as np

from rskc.comparison import Judgment, compare
from rskc.exceptions import ParameterError
from rskc.inputs.labels import adjusted_rand_index
from rskc.inputs.validation import check_real, is_real
from rskc.model.fitted import by_column, feature_names
from rskc.selection.checkpoint import Result
from rskc.selection.grid import FIGURES, describe_fit, fit_paths
from rskc.selection.path import check_bounds, check_sparse
from rskc.selection.runner import Runner
from rskc.selection.search import Search, check_clusters
from rskc.selection.subsample import Sample


@dataclass(eq=False, repr=False)
class GridSearch(Search):
    """Fits with all combinations of K, L1 bound and trimming share, in one table.

    The paper's advice is to consider several combinations and to compare them. The objective cannot
    compare them, since it grows with all three. What can be compared is whether the partition
    depends on the setting: a true one is found with many, an accidental one with few.

    With one number of clusters and many bounds it is the path of the feature weights, and with one
    bound and many shares it has the trimming curves: :class:`rskc.displays.SearchDisplay` draws
    the consensus, and the table has what else changes.

    Parameters
    ----------
    estimator : RobustSparseKMeans
        All other parameters.
    n_clusters : int, iterable of int or None, default=None
        Numbers of clusters, 2 at least; None for that of the estimator.
    l1_bounds : int, array-like or None, default=5
        L1 bounds, or how many, spaced evenly on a logarithmic scale; None for the bound or number
        of features of the estimator.
    trims : float or array-like, default=(0, 0.05, 0.1)
        Trimming shares, each at least 0 and below 0.5.
    max_samples, random_state, n_jobs, checkpoint, progress
        As in :class:`Clest`.

    Attributes
    ----------
    table_ : pandas.DataFrame
        One row per combination: ``n_clusters``, ``l1_bound`` (NaN for no sparsity), ``trim``,
        ``n_trim``; ``objective`` per kept case; ``inertia`` and ``within``, per kept case;
        ``n_features`` with a weight above 0; ``n_outliers``; ``silhouette``, the mean revised one
        of the cases that are not outliers; ``consensus``, the mean adjusted Rand index to the
        partitions of all other settings with as many clusters, over the cases that neither trims;
        ``chosen``.
    weights_ : ndarray of shape (settings, n_features)
        Weights of the features with each setting, in the order of the table.
    best_params_ : dict
        The setting on which most others agree: of the estimator's number of clusters (or the
        least, if that was not tried), the largest consensus, with the fewest features and the
        least trimming where several have it. Consensus does not choose the number of clusters, for
        a wrong one may be found with every setting too.
    changes_ : list of SolutionComparison
        From each number of clusters to the next: what changes between their settings with the
        largest consensus, over the cases that were searched on, by their numbers.
    n_samples_, n_samples_used_ : int
        How many cases the table has, and how many of them were searched on.
    best_estimator_ : RobustSparseKMeans
        Fitted with it.

    Examples
    --------
    >>> from rskc import RobustSparseKMeans
    >>> from rskc.datasets import make_simulation
    >>> from rskc.selection import GridSearch
    >>> data = make_simulation(model=1, random_state=0)
    >>> model = RobustSparseKMeans(n_init=10)
    >>> grid = GridSearch(model, range(2, 5), [4, 5, 6], [0, 0.05], random_state=0).fit(data.data)
    >>> len(grid.table_)
    18
    """

    n_clusters: Any = None
    l1_bounds: Any = 5
    trims: Any = (0, 0.05, 0.1)

    def _check(self, n: int, p: int) -> None:
        check_sparse(self.estimator)
        self._paths(n, p)

    def _paths(self, n: int, p: int) -> list[list[dict[str, Any]]]:
        """Return the settings along the bound, for each number of clusters and share to trim."""
        asked = self.estimator.n_clusters if self.n_clusters is None else self.n_clusters
        bounds: list[dict[str, Any]] = [{}]
        if self.l1_bounds is not None:
            tried = check_bounds(self.l1_bounds, p).tolist()
            bounds = [{"l1_bound": bound, "n_features": None} for bound in tried]
        return [
            [{"n_clusters": K, "trim": trim, **bound} for bound in bounds]
            for K, trim in product(check_clusters(asked, 2, n), check_trims(self.trims))
        ]

    def _search(self, sample: Sample, runner: Runner) -> None:
        import pandas as pd

        paths = self._paths(sample.shape[0], self._n_units(sample.shape[1]))
        found = fit_paths("Settings", paths, sample, self._for_tasks(), runner, describe_fit)
        settings, fits = list(chain(*paths)), list(chain(*found))
        table = pd.DataFrame(
            {
                "n_clusters": [setting["n_clusters"] for setting in settings],
                "trim": [setting["trim"] for setting in settings],
                **{name: [np.asarray(fit[name]).item() for fit in fits] for name in FIGURES},
            }
        )
        numbers = table.n_clusters.unique().tolist()
        table["consensus"] = _consensus(fits, table.n_clusters.to_numpy(), sample.weights)
        agreed = [_agreed(table, K) for K in numbers]
        self.weights_ = by_column(self, np.array([fit["weights"] for fit in fits]))
        judged = [
            Judgment(fits[i]["labels"], fits[i]["outliers"], self.weights_[i], K)
            for i, K in zip(agreed, numbers, strict=True)
        ]
        named = self._drawn.numbers, feature_names(self), sample.weights
        self.changes_ = [compare(fewer, more, *named) for fewer, more in pairwise(judged)]
        wanted = self.estimator.n_clusters
        best = agreed[numbers.index(wanted) if wanted in numbers else 0]
        self.table_ = table.assign(chosen=np.arange(len(table)) == best)
        self.best_params_ = settings[best]

    def _chosen(self) -> dict[str, Any]:
        return self.best_params_


def check_trims(trims: Any) -> list[float]:
    """Return the trimming shares, upwards."""
    values = [trims] if is_real(trims) else trims
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterError("trims", trims, "must be a share of cases, or several.")
    shares = sorted({check_real("trims", trim, 0, 0.5) for trim in values})
    if not shares:
        raise ValueError("trims is empty; give the shares of cases to trim.")
    return shares


def _consensus(fits: list[Result], numbers: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Mean adjusted Rand index of each partition to the others with as many clusters."""
    sums = np.zeros(len(fits))
    for i, j in combinations(range(len(fits)), 2):
        if numbers[i] == numbers[j]:
            kept = ~(fits[i]["trimmed"] | fits[j]["trimmed"])
            labels = fits[i]["labels"][kept], fits[j]["labels"][kept]
            sums[[i, j]] += adjusted_rand_index(*labels, None if weights is None else weights[kept])
    n_others = (numbers[:, None] == numbers).sum(axis=1) - 1
    return sums / np.maximum(n_others, 1)


def _agreed(table: Any, K: int) -> int:
    """Row of the setting on which most settings with K clusters agree."""
    alike = table[table.n_clusters == K]
    alike = alike[alike.consensus >= alike.consensus.max() - 1e-9]
    return int(alike.sort_values(["n_features", "trim"], kind="stable").index[0])
