"""Stability: how many clusters come back when half of the cases is clustered again."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from rskc.arrays import to_numpy
from rskc.exceptions import ParameterError
from rskc.selection.checkpoint import Result
from rskc.selection.references import NormalReference
from rskc.selection.runner import Key, Runner, rng_of, seed_of
from rskc.selection.search import Search, check_clusters, configured, fit_quietly, with_clusters
from rskc.selection.subsample import draw_cases
from rskc.validation import check_integer, check_real, is_word

# Restarts of the fits to half-samples and references, where the estimator has "auto".
STARTS = 25
# "auto" tries up to this number of clusters first. It goes on, to twice as many, while one of the
# last two numbers is stable. It also goes on where no large number is, but the halves agree by more
# than this: too few clusters join true ones, not always the same, yet most pairs of cases are
# together or apart in both halves.
FIRST_NUMBERS, HIGH = 10, 0.6
# A number that is below the threshold by more than this after the first splits is not stable;
# others see all splits. Most numbers are wrong, and far below: that halves the work.
FIRST_SPLITS, FAR_BELOW = 2, 0.25
# A half has at least this number of cases for each cluster.
CASES_A_CLUSTER = 3


@dataclass(eq=False, repr=False)
class Stability(Search):
    """Number of clusters by half-samples: the largest number of which every cluster comes back.

    All cases are clustered, and again and again the two halves of a random split of them. Each of
    these fits predicts the clusters of all cases. A cluster of the first fit *comes back* in
    another one to the extent of its Jaccard index: the cases that it shares with the cluster there
    that resembles it most, divided by the cases of either. The stability of a cluster is the median
    of that over the halves, and the stability of a number of clusters is that of its worst cluster.
    One cluster too many splits a true one, each time in another way; one too few joins two.

    The largest stable number is then compared with one cloud: reference sets, drawn from one normal
    distribution along the principal axes of the data, are clustered as well. If clusters of the
    data are no more compact than those of the references, one cloud explains them.

    Parameters
    ----------
    estimator : RobustSparseKMeans or another clusterer
        Anything with ``n_clusters``, ``fit``, ``labels_`` and ``predict``. What it leaves to the
        data, features and outlying cases, is found anew in every half.
    n_clusters : int, iterable of int or "auto", default="auto"
        The numbers to try. "auto": 2 to 10, and more while the largest ones are stable.
    n_splits : int, default=6
        Splits into halves; two fits each.
    threshold : float, default=0.8
        What the stability of a number must reach.
    n_references : int, default=10
        Reference sets. 0: no comparison with one cloud.
    level : float, default=0.05
        Level of that comparison.
    max_samples, random_state, n_jobs, checkpoint, progress
        As in :class:`Clest`.

    Attributes
    ----------
    n_clusters_ : int
        The number chosen: the largest stable one that one cloud does not explain; 1 if none is.
    reason_ : str
        Why, in a sentence or two.
    table_ : pandas.DataFrame
        A row for each number: ``n_clusters``; ``n_splits`` that were made, fewer for numbers that
        are far from stable; ``stability``, of the worst cluster; ``agreement``,
        the median adjusted Rand index of the two halves of a split, and ``agreement_spread``, half
        of its interquartile range; for RobustSparseKMeans with ``l1_bound="auto"`` the features
        that differ and those that are enough, with all cases, ``features_different`` and
        ``features_enough``; ``stable``; ``p_value`` of the comparison with one cloud, missing where
        it was not made; ``chosen``.
    agreements_ : ndarray of shape (n_splits, numbers)
        Adjusted Rand index of the halves of each split; missing where none was made.
    cluster_stability_ : ndarray of shape (n_clusters_,)
        How far each cluster of ``best_estimator_`` came back: the median Jaccard index.
    case_stability_ : ndarray of shape (n_samples_used_,)
        For each case that was searched on, the share of the half-sample fits that give it the
        cluster that it has with all cases.
    selection_probabilities_ : ndarray of shape (n_features_in_,)
        For each feature, the share of the half-sample fits in which it has weight.
    half_labels_ : ndarray of shape (2 * n_splits, n_samples_used_)
        Clusters that the half-sample fits give to the cases, numbered as in ``best_estimator_``.
    samples_used_ : ndarray of shape (n_samples_used_,)
        Numbers of the cases that were searched on.
    n_samples_, n_samples_used_ : int
        How many cases the table has, and how many of them were searched on.
    best_estimator_ : estimator
        Fitted to all the data with ``n_clusters_`` clusters.

    Notes
    -----
    "Stable" and "not explained by one cloud" are two things. A single long cloud is halved in the
    same way each time, so that two clusters are stable; and clusters that are real may be too close
    together to be found again in half of the cases. Neither says that clusters are real.

    The comparison with one cloud is in the features that have weight, times the roots of their
    weights, of the cases that are no outliers. The ``p_value`` is of the sum of squares within
    clusters over that in total (the cluster index of SigClust), for a number of clusters and for
    features that are given; it does not know that both were looked for.

    References
    ----------
    Hennig, "Cluster-wise assessment of cluster stability", Computational Statistics and Data
    Analysis 52, 2007. Liu, Hayes, Nobel and Marron, "Statistical significance of clustering for
    high-dimension, low-sample size data", Journal of the American Statistical Association 103,
    2008. Shah and Samworth, "Variable selection with error control: another look at stability
    selection", Journal of the Royal Statistical Society B 75, 2013.

    Examples
    --------
    >>> from rskc import RobustSparseKMeans
    >>> from rskc.datasets import make_simulation
    >>> from rskc.selection import Stability
    >>> data = make_simulation(model=1, random_state=0).data
    >>> search = Stability(RobustSparseKMeans(), range(2, 5), random_state=0).fit(data)
    >>> search.n_clusters_
    3
    """

    n_clusters: Any = "auto"
    _: KW_ONLY
    n_splits: int = 6
    threshold: float = 0.8
    n_references: int = 10
    level: float = 0.05

    def selection_bound(self, threshold: float = 0.75) -> float:
        """Return how many false features to expect among those of a selection probability.

        With halves that select q of p features on average, at most ``q**2 / p / (2 * threshold -
        1)`` features that are selected no more often than at random reach the threshold (Shah and
        Samworth, theorem 1).

        Parameters
        ----------
        threshold : float, default=0.75
            Above 0.5, and at most 1.

        Returns
        -------
        bound : float
        """
        check_real("threshold", threshold, 0.5, 1.0)
        if threshold == 0.5:
            return np.inf
        q, p = self.selection_probabilities_.sum(), len(self.selection_probabilities_)
        return float(q**2 / p / (2 * threshold - 1))

    def consensus_matrix(self) -> np.ndarray:
        """Return the share of the half-sample fits (n, n) that give two cases the same cluster."""
        together = np.zeros((self.n_samples_used_,) * 2, np.float32)
        for labels in self.half_labels_:
            together += labels[:, None] == labels
        return together / len(self.half_labels_)

    def _check(self, n: int, p: int) -> None:
        self._numbers(n)
        check_integer("n_splits", self.n_splits, 2)
        check_real("threshold", self.threshold, 0, 1)
        if self.n_references != 0:
            check_integer("n_references", self.n_references, 2, remedy=" or 0")
        check_real("level", self.level, 0, 1)

    def _numbers(self, n: int) -> list[int]:
        """Return the numbers of clusters to try first, upwards; of one nothing need be tried."""
        most = max(1, n // 2 // CASES_A_CLUSTER)
        if is_word(self.n_clusters, "auto"):
            return list(range(2, min(FIRST_NUMBERS, most) + 1))
        return [K for K in check_clusters(self.n_clusters, 1, n // 2) if K > 1]

    def _search(self, X: np.ndarray, runner: Runner) -> None:
        work = partial(_fit, X, self._as_asked(runner.seed), runner.seed)
        fits: dict[int, _Fits] = {}

        def run(numbers: list[int], splits: range, later: int) -> None:
            keys = [(K, split) for K in numbers for split in splits]
            results = runner.run("Stability", work, keys, more=later)
            for (K, _), result in zip(keys, results, strict=True):
                fits.setdefault(K, _Fits(K)).add(result)

        numbers, few = self._numbers(len(X)), min(FIRST_SPLITS, self.n_splits)
        while numbers:
            run(numbers, range(few + 1), len(numbers) * (self.n_splits - few))
            promising = [K for K in numbers if fits[K].stability >= self.threshold - FAR_BELOW]
            run(promising, range(few + 1, self.n_splits + 1), 0)
            numbers = self._more(fits, len(X))
        self._decide(X, fits, runner)

    def _more(self, fits: dict[int, _Fits], n: int) -> list[int]:
        """Return further numbers to try, where "auto" has not come to an end."""
        if not is_word(self.n_clusters, "auto"):
            return []
        last = max(fits)
        stable = max((K for K in fits if fits[K].stability >= self.threshold), default=1)
        too_few = stable <= last // 2 and np.median(fits[last].agreements) >= HIGH
        if stable < last - 1 and not too_few:
            return []
        return list(range(last + 1, min(2 * last, n // 2 // CASES_A_CLUSTER) + 1))

    def _as_asked(self, seed: int) -> Any:
        """Return the estimator for tasks: seeded as the chosen model will be."""
        model = clone(self.estimator)
        if model.get_params().get("random_state", 0) is None:
            model.set_params(random_state=seed % 2**32)
        return self._on_one_thread(model)

    def _decide(self, X: np.ndarray, fits: dict[int, _Fits], runner: Runner) -> None:
        import pandas as pd

        p_values = dict.fromkeys(fits, np.nan)
        stable = [K for K in sorted(fits, reverse=True) if fits[K].stability >= self.threshold]
        self.n_clusters_ = 1
        for K in stable:
            if self.n_references:
                p_values[K] = self._compare(X, fits[K], runner)
            if not p_values[K] > self.level:
                self.n_clusters_ = K
                break
        table = pd.DataFrame([fits[K].figures() for K in fits], columns=COLUMNS)
        for name in COLUMNS[-2:]:
            if table[name].isna().any():  # features are not chosen by a test
                del table[name]
        table["stable"] = table.stability >= self.threshold
        self.table_ = table.assign(
            p_value=list(p_values.values()), chosen=table.n_clusters == self.n_clusters_
        )
        self.agreements_ = np.full((self.n_splits, len(fits)), np.nan)
        for i, K in enumerate(fits):
            own = fits[K].agreements
            self.agreements_[: len(own), i] = own
        self.reason_ = self._reason(fits, stable)
        self._fits, self._sample, self._seed = fits.get(self.n_clusters_), X, runner.seed

    def _compare(self, X: np.ndarray, fits: _Fits, runner: Runner) -> float:
        """Return the p-value of as compact clusters in one normal cloud."""
        weights = fits.full["weights"]
        used = np.flatnonzero(weights > 0)
        cells = X[np.ix_(~fits.full["outliers"], used)] * np.sqrt(weights[used])
        work = partial(_cluster_index, cells, self._without_choices(runner.seed), runner.seed)
        keys = [(fits.n_clusters, r) for r in range(self.n_references + 1)]
        results = runner.run("One cloud", work, keys)
        own, *drawn = (float(result["index"]) for result in results)
        spread = np.std(drawn, ddof=1) * np.sqrt(1 + 1 / len(drawn))
        if spread == 0:
            return float(own >= drawn[0])
        return float(student.cdf((own - np.mean(drawn)) / spread, len(drawn) - 1))

    def _without_choices(self, seed: int) -> Any:
        """Return the estimator without weights and trimming, where it has them."""
        model = self._as_asked(seed)
        known = model.get_params(deep=False)
        dense = {"l1_bound": None, "n_features": None, "trim": 0.0}
        return model.set_params(**{name: dense[name] for name in dense if name in known})

    def _chosen(self) -> dict[str, Any]:
        return with_clusters(self.estimator, self.n_clusters_)

    def _refit(self, X: Any, searched_all: bool) -> None:
        """Fit the chosen model, and number what is known of its clusters and cases as it does."""
        super()._refit(X, searched_all)
        fits, sample, seed = self._fits, self._sample, self._seed
        del self._fits, self._sample, self._seed
        self.samples_used_ = np.arange(self.n_samples_)
        if not searched_all and self.n_samples_used_ < self.n_samples_:
            self.samples_used_ = draw_cases(self.n_samples_, self.n_samples_used_, seed)
        if fits is None:
            n, p = sample.shape
            self.half_labels_ = np.zeros((2 * self.n_splits, n), np.int32)
            self.cluster_stability_, self.case_stability_ = np.ones(1), np.ones(n)
            self.selection_probabilities_ = np.zeros(p)
            return
        own = to_numpy(self.best_estimator_.predict(sample))
        numbers = best_match(own, fits.full["labels"], fits.n_clusters)
        self.cluster_stability_ = np.empty(fits.n_clusters)
        self.cluster_stability_[numbers] = fits.cluster_stability
        self.half_labels_ = numbers[fits.matched_labels()].astype(np.int32)
        self.case_stability_ = (self.half_labels_ == numbers[fits.full["labels"]]).mean(axis=0)
        self.selection_probabilities_ = np.mean([half["selected"] for half in fits.halves], axis=0)

    def _reason(self, fits: dict[int, _Fits], stable: list[int]) -> str:
        """Say why the number was chosen."""
        K, least = self.n_clusters_, f"{self.threshold:.2f}"
        if not fits:
            return "There are too few cases to cluster half of them: one cluster is assumed."
        if not stable:
            best = max(fits.values(), key=lambda own: own.stability)
            return (
                f"No number of clusters is stable: with {best.n_clusters}, the best one, the worst "
                f"cluster comes back to {best.stability:.2f} in half of the cases, less than "
                f"{least}."
            )
        if K == 1:
            return (
                f"{_numbers(stable)} clusters are stable, but no more compact than clusters of "
                "one normal cloud: one cluster is assumed."
            )
        text = (
            f"Each of the {K} clusters comes back in half of the cases, the worst to "
            f"{fits[K].stability:.2f}"
        )
        if passed := [number for number in stable if number > K]:
            return f"{text}; {_numbers(passed)} are stable too, but one cloud explains them."
        return f"{text}; with more clusters one falls below {least}."


class _Fits:
    """Fits with a number of clusters: to all cases, and to the halves of each split."""

    def __init__(self, n_clusters: int):
        self.n_clusters = n_clusters
        self.full: Result = {}
        self.splits: list[Result] = []

    def add(self, result: Result) -> None:
        """Add the fit to all cases, which comes first, or those to the halves of a split."""
        if self.full:
            self.splits.append(result)
        else:
            self.full = result

    @property
    def halves(self) -> list[Result]:
        """Two for each split."""
        halves = ("first", "second")
        names = ("labels", "selected")
        return [
            {name: split[f"{half}_{name}"] for name in names}
            for split in self.splits
            for half in halves
        ]

    @property
    def agreements(self) -> list[float]:
        """Adjusted Rand index of the halves of each split, over the cases that are no outliers."""
        clean = ~self.full["outliers"]
        return [
            adjusted_rand_score(split["first_labels"][clean], split["second_labels"][clean])
            for split in self.splits
        ]

    @property
    def cluster_stability(self) -> np.ndarray:
        """The median Jaccard index (K,) of each cluster of the fit to all cases."""
        clean = ~self.full["outliers"]
        own = self.full["labels"][clean]
        found = [
            jaccard_indices(own, half["labels"][clean], self.n_clusters) for half in self.halves
        ]
        return np.median(found, axis=0)

    @property
    def stability(self) -> float:
        """That of the worst cluster."""
        return float(self.cluster_stability.min())

    def matched_labels(self) -> np.ndarray:
        """Return the labels of the halves, numbered as those of the fit to all cases."""
        own, K = self.full["labels"], self.n_clusters
        return np.array([best_match(own, h["labels"], K)[h["labels"]] for h in self.halves])

    def figures(self) -> tuple:
        """Return a row of the table."""
        low, middle, high = np.percentile(self.agreements, (25, 50, 75))
        counts = self.full["n_different"], self.full["n_enough"]
        spread = (high - low) / 2
        n_splits = len(self.splits)
        return (self.n_clusters, n_splits, self.stability, middle, spread, *map(float, counts))


COLUMNS = (
    "n_clusters",
    "n_splits",
    "stability",
    "agreement",
    "agreement_spread",
    "features_different",
    "features_enough",
)


def jaccard_indices(labels: np.ndarray, others: np.ndarray, K: int) -> np.ndarray:
    """Return for each of K clusters the largest Jaccard index with a cluster of another fit."""
    shared = _contingency(labels, others, K)
    either = shared.sum(axis=1, keepdims=True) + shared.sum(axis=0) - shared
    return (shared / np.maximum(either, 1)).max(axis=1)


def best_match(labels: np.ndarray, others: np.ndarray, K: int) -> np.ndarray:
    """Return which cluster (K,) of a fit each cluster of another is, by the cases they share."""
    _, numbers = linear_sum_assignment(-_contingency(others, labels, K))
    return numbers


def _contingency(labels: np.ndarray, others: np.ndarray, K: int) -> np.ndarray:
    pairs = labels.astype(np.int64) * K + others
    return np.bincount(pairs, minlength=K * K).reshape(K, K)


def _fit(X: np.ndarray, estimator: Any, seed: int, key: Key) -> Result:
    """Cluster all cases, or the two halves of a split, which is the same for every number."""
    K, split = key
    if split == 0:
        model = fit_quietly(clone(estimator).set_params(n_clusters=K), X)
        outliers = np.asarray(getattr(model, "outliers_", np.zeros(len(X), bool)))
        return {
            "labels": model.labels_,
            "outliers": outliers,
            "weights": getattr(model, "feature_weights_", np.ones(X.shape[1])),
            "n_different": getattr(model, "n_features_different_", np.nan),
            "n_enough": getattr(model, "n_features_enough_", np.nan),
        }
    halves = np.array_split(rng_of(seed, split).permutation(len(X)), 2)
    result = {}
    for i, name in enumerate(("first", "second")):
        labels, selected = _predict_from(
            X, np.sort(halves[i]), estimator, seed_of(seed, *key, i), K
        )
        result |= {f"{name}_labels": labels, f"{name}_selected": selected}
    return result


def _predict_from(
    X: np.ndarray, half: np.ndarray, estimator: Any, seed: int, K: int
) -> tuple[np.ndarray, np.ndarray]:
    """Cluster some cases; return the clusters of all, and which features have weight."""
    try:
        model = fit_quietly(_with_few_starts(configured(estimator, seed, n_clusters=K)), X[half])
    except ParameterError:  # fewer distinct cases than clusters: nothing comes back
        return np.zeros(len(X), np.int32), np.zeros(X.shape[1], bool)
    weights = getattr(model, "feature_weights_", np.ones(X.shape[1]))
    return model.predict(X).astype(np.int32), weights > 0


def _cluster_index(cells: np.ndarray, estimator: Any, seed: int, key: Key) -> Result:
    """Return the sum of squares within clusters over that in total, of the data or a reference."""
    K, number = key
    if number > 0:
        cells = NormalReference.of(cells).draw(rng_of(seed, *key))
    model = configured(estimator, seed_of(seed, *key), n_clusters=K)
    labels = fit_quietly(_with_few_starts(model), cells).labels_
    within = sum(_squares(cells[labels == k]) for k in np.unique(labels))
    return {"index": within / max(_squares(cells), np.finfo(float).tiny)}


def _squares(cells: np.ndarray) -> float:
    """Return the sum of squares of the observed cells around the means of their columns."""
    observed = ~np.isnan(cells)
    means = np.where(observed, cells, 0.0).sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
    return float((np.where(observed, cells - means, 0.0) ** 2).sum())


def _with_few_starts(model: Any) -> Any:
    if is_word(model.get_params().get("n_init"), "auto") and hasattr(model, "trim"):
        model.set_params(n_init=STARTS)
    return model


def _numbers(values: list[int]) -> str:
    *first, last = map(str, sorted(values))
    return f"{', '.join(first)} and {last}" if first else last
