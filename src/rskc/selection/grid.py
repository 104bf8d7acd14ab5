"""Fits at many settings: a grid of K, bound and trimming, for the grid search and the explorer.

A path is a list of settings that differ in their bound or number of features, from the smallest
upwards. Each fit makes its own restarts, and one more branch starts at the solution before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations, pairwise, product
from typing import Any

import numpy as np
from scipy.sparse import issparse

from rskc.comparison import Partition, compare
from rskc.inputs.arrays import mean_by_weight
from rskc.inputs.labels import adjusted_rand_index
from rskc.inputs.validation import is_integer
from rskc.metrics import revised_silhouette
from rskc.model.fitted import by_column, feature_names
from rskc.selection.checkpoint import Result
from rskc.selection.runner import Key, Runner, seed_of
from rskc.selection.search import (
    Chosen,
    Search,
    check_bounds,
    check_clusters,
    check_trims,
    fit_task,
)
from rskc.selection.subsample import Sample
from rskc.solver import Warm
from rskc.solver.alternate import count_active


@dataclass(eq=False, repr=False)
class GridSearch(Search):
    """Fits with all combinations of K, L1 bound and trimming share, in one table.

    The paper's advice is to consider several combinations and to compare them. The objective cannot
    compare them, since it grows with all three. But a true partition is found with many settings,
    and an accidental one with few.

    One number of clusters and many bounds give the path of the feature weights, one bound and many
    shares the trimming curves: :class:`rskc.displays.SearchDisplay` draws the consensus, and the
    table has all other figures.

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
        The setting on which most others agree: with the estimator's number of clusters (or the
        smallest, if that was not tried), that of the largest consensus; of several, that with the
        fewest features and the least trimming. Consensus does not choose the number of clusters,
        because every setting may find a wrong number too.
    changes_ : list of SolutionComparison
        From each number of clusters to the next: what changes between their settings with the
        largest consensus, over the cases that were searched on, by their numbers.
    samples_used_ : ndarray of shape (n_samples_used_,)
        Numbers of the cases that were searched on.
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

    def _check(self, n: int, p: int) -> list[list[dict[str, Any]]]:
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

    def _search(self, sample: Sample, runner: Runner) -> tuple[Chosen, None]:
        import pandas as pd

        paths = self._check(sample.shape[0], self._n_units)
        fits = fit_paths(paths, sample, self._for_comparisons(), runner)
        settings = list(chain(*paths))
        table = pd.DataFrame(
            {
                "n_clusters": [setting["n_clusters"] for setting in settings],
                "trim": [setting["trim"] for setting in settings],
                **{name: [np.asarray(fit[name]).item() for fit in fits] for name in FIGURES},
            }
        )
        numbers = table.n_clusters.unique().tolist()
        table["consensus"] = _consensus(fits, table.n_clusters.to_numpy(), sample.weights)
        rows = _most_agreed_rows(table)
        self.weights_ = by_column(self, np.array([fit["weights"] for fit in fits]))
        partitions = [
            Partition(fits[i]["labels"], fits[i]["outliers"], self.weights_[i], K)
            for i, K in zip(rows, numbers, strict=True)
        ]
        names = self.samples_used_, feature_names(self), sample.weights
        self.changes_ = [compare(fewer, more, *names) for fewer, more in pairwise(partitions)]
        K = self.estimator.n_clusters
        best = rows[numbers.index(K) if K in numbers else 0]
        self.table_ = table.assign(chosen=np.arange(len(table)) == best)
        self.best_params_ = settings[best]
        return self.best_params_, None


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


def _most_agreed_rows(table: Any) -> list[int]:
    """Return for each number of clusters, upwards, the setting on which most others agree."""
    most = table.groupby("n_clusters").consensus.transform("max")
    agreed = table[table.consensus >= most - 1e-9]
    agreed = agreed.sort_values(["n_clusters", "n_features", "trim"])
    return agreed.drop_duplicates("n_clusters").index.tolist()


# ---- Fits along paths

Path = Sequence[dict[str, Any]]  # settings of an estimator


def fit_paths(
    paths: Sequence[Path], sample: Sample, estimator: Any, runner: Runner, more: int = 0
) -> list[Result]:
    """Fit with all settings of all paths, and describe each model."""
    work = partial(_fit_path, sample, paths, estimator, runner.seed)
    results = runner.run("Settings", work, [(i,) for i in range(len(paths))], more)
    return [
        {name: values[j] for name, values in result.items()}
        for result, path in zip(results, paths, strict=True)
        for j in range(len(path))
    ]


def _fit_path(sample: Sample, paths: Sequence[Path], estimator: Any, seed: int, key: Key) -> Result:
    """Fit along a path, with each of the settings from restarts and from the solution before.

    The seed is the same for all, so that fits can be compared. It is that of the estimator, if it
    has one, so that a fit with the same settings repeats it.
    """
    X, given = sample.X, estimator.random_state
    seed = given if is_integer(given) else seed_of(seed)
    # A fit is of the cases that have a value; in a sparse table all have.
    observed = np.ones(X.shape[0], bool) if issparse(X) else ~np.isnan(X).all(axis=1)
    warm: list[Warm] = []
    results: list[Result] = []
    for setting in paths[key[0]]:
        model = fit_task(estimator, sample, warm, random_state=seed, **setting)
        trimmed = model.trimmed_weighted_[observed]
        warm = [Warm(model.labels_[observed], trimmed, model.feature_weights_)]
        results.append(_describe(model, sample))
    return {name: np.array([result[name] for result in results]) for name in results[0]}


def _describe(model: Any, sample: Sample) -> Result:
    """Return the figures of a fit for tables and pages.

    Where cases have weights, sums per case are per unit of weight, without the case that is trimmed
    in part.
    """
    weights = np.ones(sample.shape[0]) if sample.weights is None else sample.weights
    regular, silhouette = ~model.outliers_, np.nan
    if model.n_clusters > 1 and regular.any():
        silhouettes = revised_silhouette(model, sample.X).values
        silhouette = mean_by_weight(silhouettes[regular], weights[regular])
    return {
        "labels": model.labels_,
        "trimmed": model.trimmed_,
        "outliers": model.outliers_,
        "weights": model.feature_weights_,
        "n_trim": model.n_trim_,
        "l1_bound": np.nan if model.l1_bound_ is None else model.l1_bound_,
        "objective": model.objective_ / weights[~model.trimmed_].sum(),
        "inertia": model.inertia_,
        "within": model.inertia_ / weights[~model.trimmed_weighted_].sum(),
        "n_features": count_active(model.feature_groups, model.feature_weights_),
        "n_outliers": np.count_nonzero(model.outliers_),
        "silhouette": silhouette,
    }


FIGURES = ["l1_bound", "n_trim", "objective", "inertia", "within", "n_features", "n_outliers"]
FIGURES += ["silhouette"]
