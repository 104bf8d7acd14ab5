"""Fits at many settings: trimming curves, and a grid of K, bound and trimming."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np

from rskc.comparison import Judgment, compare
from rskc.exceptions import ParameterError
from rskc.inputs.labels import adjusted_rand_index
from rskc.inputs.validation import check_choice, check_real, is_real
from rskc.metrics import classification_error_rate
from rskc.model.fitted import by_column, feature_names
from rskc.selection.checkpoint import Result
from rskc.selection.grid import FIGURES, describe_fit, fit_paths
from rskc.selection.path import check_bounds, check_sparse
from rskc.selection.runner import Runner
from rskc.selection.search import Search, check_clusters
from rskc.selection.stability import Stability
from rskc.selection.subsample import Sample

TRIMS = tuple(np.round(np.arange(0, 0.21, 0.02), 2).tolist())


@dataclass(eq=False, repr=False)
class TrimCurves(Search):
    """Trimming share by the distances of the cases, and curves that show what trimming changes.

    The share is that of the cases that a fit with ``trim="auto"`` finds outlying. The curves show
    partition, objective and features for more and more trimming. They are a picture, and no rule:
    where clusters overlap or a small one is trimmed away, the partition goes on changing after the
    last outlying case is gone.

    Parameters
    ----------
    estimator : RobustSparseKMeans
        Number of clusters, bound and all else; its own ``trim`` is not used.
    n_clusters : int, iterable of int or None, default=None
        Numbers of clusters; None for that of the estimator.
    trims : array-like, default=(0, 0.02, ..., 0.2)
        Trimming shares, each at least 0 and below 0.5.
    max_samples, random_state, n_jobs, checkpoint, progress
        As in :class:`Clest`.

    Attributes
    ----------
    suggested_trim_ : float
        Share of outlying cases with the estimator's number of clusters, or with the least if that
        was not tried.
    suggested_trims_ : dict
        The same for each number of clusters.
    table_ : pandas.DataFrame
        A row for each number of clusters and share: ``n_clusters``, ``trim``, ``n_trim``;
        ``objective`` per kept case; ``inertia``, the weighted within sum of the kept cases, and
        ``within``, the same per kept case; ``n_features`` with a weight above 0; ``n_outliers``
        flagged; ``moved``, the CER to the partition with the next smaller share over the cases
        that neither trims; ``chosen``, the least share tried that trims all outlying cases, or
        the largest.
    n_samples_, n_samples_used_ : int
        How many cases the table has, and how many of them were searched on.
    best_estimator_ : RobustSparseKMeans
        Fitted with ``suggested_trim_`` and the number of clusters that it is for.

    Notes
    -----
    Such curves are the trimming curves (ctlcurves) of Garcia-Escudero, Gordaliza, Matran and
    Mayo-Iscar, "Exploring the number of groups in robust model-based clustering", Statistics and
    Computing 21, 2011.

    Examples
    --------
    >>> from rskc import RobustSparseKMeans
    >>> from rskc.datasets import make_simulation
    >>> from rskc.selection import TrimCurves
    >>> data = make_simulation(model=1, random_state=0)
    >>> curves = TrimCurves(RobustSparseKMeans(3, l1_bound=6.2), random_state=0).fit(data.data)
    >>> round(60 * curves.suggested_trim_)  # one cell of one case of 60 is outlying
    1
    """

    n_clusters: Any = None
    trims: Any = TRIMS

    def _check(self, n: int, p: int) -> None:
        check_sparse(self.estimator)
        self._numbers(n)
        check_trims(self.trims)

    def _numbers(self, n: int) -> list[int]:
        asked = self.estimator.n_clusters if self.n_clusters is None else self.n_clusters
        return check_clusters(asked, 1, n)

    def _search(self, sample: Sample, runner: Runner) -> None:
        numbers, trims = self._numbers(sample.shape[0]), check_trims(self.trims)
        grid = [{"n_clusters": K, "trim": trim} for K, trim in product(numbers, trims)]
        found_by_distances = [{"n_clusters": K, "trim": "auto"} for K in numbers]
        paths = [[setting] for setting in grid + found_by_distances]
        found = fit_paths("Trimming", paths, sample, self._for_tasks(), runner, describe_fit)
        fits, automatic = [fit for (fit,) in found[: len(grid)]], found[len(grid) :]
        self.suggested_trims_ = {
            K: float(fit["share"]) for K, (fit,) in zip(numbers, automatic, strict=True)
        }
        self._n_clusters = _own_number(self.estimator, numbers)
        self.suggested_trim_ = self.suggested_trims_[self._n_clusters]
        n, table = len(trims), _in_table(grid, fits).astype({"trim": float})
        table["moved"] = [
            _moved(fits[i - 1], fits[i], sample.weights) if i % n else np.nan for i in table.index
        ]
        enough = table.n_clusters.map(
            {K: least_enough(trims, share) for K, share in self.suggested_trims_.items()}
        )
        self.table_ = table.drop(columns="silhouette").assign(chosen=table.trim == enough)

    def _chosen(self) -> dict[str, Any]:
        return {"n_clusters": self._n_clusters, "trim": self.suggested_trim_}


@dataclass(eq=False, repr=False)
class GridSearch(Search):
    """All combinations of K, L1 bound and trimming share, in one table.

    The paper's advice is to consider several combinations and to compare them. The objective cannot
    compare them, since it grows with all three. What can be compared is whether the partition
    depends on the setting: a true one is found with many, an accidental one with few.

    Parameters
    ----------
    estimator : RobustSparseKMeans
        All other parameters.
    n_clusters : int, iterable of int or None, default=None
        Numbers of clusters, 2 at least; None for that of the estimator.
    l1_bounds : int, array-like or None, default=5
        L1 bounds, or how many, spaced evenly on a logarithmic scale; None for no sparsity.
    trims : array-like, default=(0, 0.05, 0.1)
        Trimming shares.
    choose_clusters : bool, default=False
        Whether the number of clusters is chosen by half-samples, as :class:`Stability` does.
    max_samples, random_state, n_jobs, checkpoint, progress
        As in :class:`Clest`.

    Attributes
    ----------
    table_ : pandas.DataFrame
        A row for each combination: ``n_clusters``, ``l1_bound``, ``trim``, ``n_trim``;
        ``objective`` per kept case; ``inertia`` and ``within``, per kept case; ``n_features`` with
        a weight above 0; ``n_outliers``; ``silhouette``, the mean revised one of the cases that
        are not outliers; ``cer_bound`` and ``cer_trim``, the CER to the partitions with the
        neighboring bounds and shares, the mean if there are two; ``consensus``, the mean adjusted
        Rand index to the partitions of all other settings with as many clusters, over the cases
        that neither trims; ``chosen``.
    best_params_ : dict
        The setting on which most others agree: of the number of clusters that half-samples choose,
        or of the estimator's (or the least, if that was not tried), the largest consensus, with
        the fewest features and the least trimming where several have it. Consensus does not choose
        the number of clusters, for a wrong one may be found with every setting too.
    n_stable_ : int or None
        The number of clusters that half-samples choose, 1 if none is stable; None if not asked for.
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
    choose_clusters: bool = False

    def _check(self, n: int, p: int) -> None:
        check_sparse(self.estimator)
        check_choice("choose_clusters", self.choose_clusters, (True, False))
        self._axes(n, p)

    def _axes(self, n: int, p: int) -> tuple[list, list, list]:
        asked = self.estimator.n_clusters if self.n_clusters is None else self.n_clusters
        numbers, trims = check_clusters(asked, 2, n), check_trims(self.trims)
        if self.l1_bounds is None:
            return numbers, [None], trims
        return numbers, check_bounds(self.l1_bounds, p).tolist(), trims

    def _search(self, sample: Sample, runner: Runner) -> None:
        axes = self._axes(sample.shape[0], self._n_units(sample.shape[1]))
        numbers, bounds, trims = axes
        paths = [
            [{"n_clusters": K, "l1_bound": bound, "trim": trim} for bound in bounds]
            for K, trim in product(numbers, trims)
        ]
        model = self._for_tasks().set_params(n_features=None)
        found = fit_paths("Settings", paths, sample, model, runner, describe_fit)
        shape = len(numbers), len(bounds), len(trims)
        grid, fits = _by_bound(paths, shape), _by_bound(found, shape)
        table = _in_table(grid, fits)
        table["cer_bound"] = _moved_along(fits, shape, 1, sample.weights)
        table["cer_trim"] = _moved_along(fits, shape, 2, sample.weights)
        table["consensus"] = _consensus(fits, len(axes[0]), sample.weights)
        agreed = [_agreed(table, K) for K in axes[0]]
        judged = [_judgment(self, fits[i], grid[i]["n_clusters"]) for i in agreed]
        named = self._drawn.numbers, feature_names(self), sample.weights
        self.changes_ = [compare(fewer, more, *named) for fewer, more in pairwise(judged)]
        own, self.n_stable_ = _own_number(self.estimator, axes[0]), None
        if self.choose_clusters:
            search = Stability(self._for_arrays(), axes[0], n_jobs=self.n_jobs)
            self.n_stable_ = search.choose(sample, runner).n_clusters
            own = self.n_stable_ if self.n_stable_ in axes[0] else own
        best = agreed[axes[0].index(own)]
        self.table_ = table.assign(chosen=np.arange(len(table)) == best)
        self.best_params_ = grid[best]

    def _chosen(self) -> dict[str, Any]:
        return {**self.best_params_, "n_features": None}


def _by_bound(paths: list[list], shape: tuple[int, int, int]) -> list:
    """Order what is by number, trim and bound by number, bound and trim."""
    n_numbers, n_bounds, n_trims = shape
    return [
        paths[i * n_trims + k][j]
        for i, j, k in product(range(n_numbers), range(n_bounds), range(n_trims))
    ]


def check_trims(trims: Any) -> list[float]:
    """Return the trimming shares, upwards."""
    values = [trims] if is_real(trims) else trims
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterError("trims", trims, "must be a share of cases, or several.")
    shares = sorted({check_real("trims", trim, 0, 0.5) for trim in values})
    if not shares:
        raise ValueError("trims is empty; give the shares of cases to trim.")
    return shares


def _in_table(settings: list[dict], fits: list[Result]) -> Any:
    """Return a frame with a row a setting."""
    import pandas as pd

    figures = {name: [np.asarray(fit[name]).item() for fit in fits] for name in FIGURES}
    return pd.DataFrame(settings).assign(**figures)


def _moved(a: Result, b: Result, weights: np.ndarray | None = None) -> float:
    """CER of two partitions over the cases that neither trims."""
    kept = ~(a["trimmed"] | b["trimmed"])
    if np.count_nonzero(kept) < 2:
        return np.nan
    own = None if weights is None else weights[kept]
    return classification_error_rate(a["labels"][kept], b["labels"][kept], own)


def _moved_along(
    fits: list[Result], shape: tuple[int, ...], axis: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """Mean CER of each partition to its neighbors along one axis of the grid."""
    numbers = np.arange(len(fits)).reshape(shape)
    sums, counts = np.zeros(len(fits)), np.zeros(len(fits))
    lower, upper = (np.delete(numbers, end, axis=axis).ravel() for end in (-1, 0))
    for i, j in zip(lower, upper, strict=True):
        sums[[i, j]] += _moved(fits[i], fits[j], weights)
        counts[[i, j]] += 1
    return np.divide(sums, counts, out=np.full(len(fits), np.nan), where=counts > 0)


def _consensus(fits: list[Result], n_numbers: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Mean adjusted Rand index of each partition to those with as many clusters."""
    means = []
    for own in np.array_split(np.arange(len(fits)), n_numbers):
        alike = np.ones((len(own), len(own)))
        for i, j in combinations(range(len(own)), 2):
            alike[i, j] = alike[j, i] = _alike(fits[own[i]], fits[own[j]], weights)
        means.append((alike.sum(axis=1) - 1) / max(len(own) - 1, 1))
    return np.concatenate(means)


def _alike(a: Result, b: Result, weights: np.ndarray | None) -> float:
    kept = ~(a["trimmed"] | b["trimmed"])
    own = None if weights is None else weights[kept]
    return adjusted_rand_index(a["labels"][kept], b["labels"][kept], own)


def _agreed(table: Any, K: int) -> int:
    """Row of the setting on which most settings with K clusters agree."""
    own = table[table.n_clusters == K]
    own = own[own.consensus >= own.consensus.max() - 1e-9]
    return int(own.sort_values(["n_features", "trim"], kind="stable").index[0])


def _judgment(search: Any, fit: Result, K: int) -> Judgment:
    return Judgment(fit["labels"], fit["outliers"], by_column(search, fit["weights"]), K)


def _own_number(estimator: Any, numbers: list[int]) -> int:
    """Return the estimator's number of clusters, if it was tried, else the least."""
    return estimator.n_clusters if estimator.n_clusters in numbers else numbers[0]


def least_enough(trims: Any, share: float) -> float:
    """Return the least of the shares tried, upwards, that trims as many; the largest if none."""
    return next((trim for trim in trims if trim >= share - 1e-9), trims[-1])
