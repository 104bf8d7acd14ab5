"""Stability: how many clusters come back when half of the cases is clustered again."""

from __future__ import annotations

import warnings
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
from rskc.selection.references import NormalReference, PcaReference
from rskc.selection.runner import Key, Runner, rng_of, seed_of
from rskc.selection.search import Search, check_clusters, configured, fit_quietly, with_clusters
from rskc.selection.subsample import draw_cases
from rskc.validation import check_integer, check_real, is_word

# Restarts of the fits to half-samples and references, where the estimator has "auto".
STARTS = 25
# "auto" tries up to this number of clusters first. It goes on, to twice as many, while one of the
# last two numbers is stable. It also goes on where the halves agree by more than HIGH at the last,
# and hardly less than at a stable number: too few clusters join true ones, not always the same,
# yet most pairs of cases are together or apart in both halves.
FIRST_NUMBERS, HIGH, LITTLE = 10, 0.6, 0.1
# A number that is below by more than this after the first splits is not stable; others see all
# splits. Most numbers are wrong, and far below: that halves the work.
FIRST_SPLITS, FAR_BELOW = 2, 0.1
# Clusters that nearly come back do count if every two neighboring ones are told from one cloud, by
# a p-value of at most this. One cluster too many has two of which the p-value is .5 or more.
NEARLY, APART = 0.6, 0.2
# Where two neighbors of at least LARGE cases have a larger p-value than this, they are halves of a
# single cluster: of one that is long, or of few features, the halves come back. Of smaller ones the
# comparison knows too little.
HALVES, LARGE = 0.5, 20
# Whether there are clusters at all is decided by the level; if there are, a stable number counts up
# to this p-value.
LIKELY = 0.1
# Clouds without clusters along the principal axes: a normal one, and one with edges. Clusters of an
# even spread are more compact than those of a normal one.
CLOUDS, DATA = (NormalReference, PcaReference), 2
# Sums of squares of all features, or in the plane of the centers: see cluster_index.
INDICES = ("all", "plane")
# A feature counts as selected by a half if its test passes at this level. Many tests are made, but
# of noise hardly any feature is selected by most of the halves.
SELECTED = 0.07
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
    or one even distribution along the principal axes of the data, are clustered as well. If
    clusters of the data are no more compact than those of the references, one cloud explains them.

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
    n_references : int, default=20
        Reference sets of each of the two kinds. 0: no comparison with one cloud.
    level : float, default=0.05
        Level of that comparison.
    max_samples, random_state, n_jobs, checkpoint, progress
        As in :class:`Clest`.

    Attributes
    ----------
    n_clusters_ : int
        The number chosen: the largest stable one that one cloud does not explain (its p-value is at
        most 0.1, and that of a stable number at most ``level``); 1 if there is none.
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
        For each feature, the share of the half-sample fits that select it: in which it differs
        between the clusters, by its test at a level of 7%; without ``l1_bound="auto"``, in which it
        has weight.
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
    clusters over that in total (the cluster index of SigClust), in the plane of the centers, for a
    number of clusters and for features that are given; it does not know that both were looked for.

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
    n_references: int = 20
    level: float = 0.05

    @property
    def nearly(self) -> float:
        """The stability below which a number is out of the question."""
        return min(NEARLY, self.threshold)

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

    def choose(self, X: np.ndarray, runner: Runner) -> int:
        """Return the number of clusters that is chosen, as a part of another search."""
        self._search(X, runner)
        del self._fits, self._sample, self._seed
        return self.n_clusters_

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
        model = self._as_asked(runner.seed)
        fits: dict[int, _Fits] = {}
        numbers, few = self._numbers(len(X)), min(FIRST_SPLITS, self.n_splits)
        while numbers:
            keys: list[Key] = [(K,) for K in numbers]
            later = len(numbers) * self.n_splits
            results = runner.run("All cases", partial(_fit_all, X, model), keys, later)
            fits |= {K: _Fits(K, full) for K, full in zip(numbers, results, strict=True)}
            # Outlying in most of the fits: one of many clusters may consist of outlying cases.
            flagged = np.mean([fit.full["outliers"] for fit in fits.values()], axis=0)
            work = partial(_fit_halves, X, np.flatnonzero(flagged <= 0.5), model, runner.seed)
            for splits in (range(few), range(few, self.n_splits)):
                keys = [(K, split) for K in numbers for split in splits]
                later -= len(keys)
                for key, result in zip(keys, runner.run("Halves", work, keys, later), strict=True):
                    fits[key[0]].splits.append(result)
                numbers = [K for K in numbers if fits[K].stability >= self.nearly - FAR_BELOW]
            numbers = self._more(fits, len(X))
        self._decide(X, fits, runner)

    def _more(self, fits: dict[int, _Fits], n: int) -> list[int]:
        """Return further numbers to try, where "auto" has not come to an end."""
        if not is_word(self.n_clusters, "auto"):
            return []
        last = max(fits)
        stable = max((K for K in fits if fits[K].stability >= self.threshold), default=1)
        agreement = {K: np.median(fits[K].agreements) for K in fits}
        too_few = agreement[last] >= max(HIGH, agreement.get(stable, 0) - LITTLE)
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

        self.n_clusters_, self._sample, self._seed = 1, X, runner.seed
        candidates = [K for K in sorted(fits, reverse=True) if fits[K].stability >= self.nearly]
        likely = []  # stable numbers, of which the largest is chosen if there are clusters at all
        for K in candidates:
            if self.n_references:
                self._compare(X, fits[K], runner)
            if self._is_stable(fits[K]) and not fits[K].p_value > max(LIKELY, self.level):
                likely.append(K)
                if not fits[K].p_value > self.level:
                    self.n_clusters_ = likely[0]
                    break
        table = pd.DataFrame([fit.figures() for fit in fits.values()], columns=COLUMNS)
        if table.features_different.isna().any():  # features are not chosen by a test
            table = table.drop(columns=["features_different", "features_enough"])
        stable = [self._is_stable(fit) for fit in fits.values()]
        self.table_ = table.assign(stable=stable, chosen=table.n_clusters == self.n_clusters_)
        self.agreements_ = np.full((self.n_splits, len(fits)), np.nan)
        for i, fit in enumerate(fits.values()):
            self.agreements_[: len(fit.splits), i] = fit.agreements
        self.reason_ = self._reason(fits)
        self._fits = fits.get(self.n_clusters_)

    def _is_stable(self, fit: _Fits) -> bool:
        """Whether clusters come back, and two large ones are not halves of one cloud.

        Or nearly come back, and every two neighboring ones are told from one cloud.
        """
        if fit.stability >= self.threshold and not fit.large_pair_p_value > HALVES:
            return True
        return fit.stability >= self.nearly and fit.pair_p_value <= APART

    def _compare(self, X: np.ndarray, fit: _Fits, runner: Runner) -> None:
        """Compare the clusters, and each with its nearest one, with one cloud."""
        weights, clean = fit.full["weights"], ~fit.full["outliers"]
        used = np.flatnonzero(weights > 0)
        cells, labels = X[np.ix_(clean, used)] * np.sqrt(weights[used]), fit.full["labels"][clean]
        model = self._without_choices(runner.seed)
        work = partial(_cluster_index, cells, labels, model, runner.seed)
        K, draws = fit.n_clusters, range(self.n_references)
        sets = [(K, 0, 0), *((K, *pair) for pair in nearest_pairs(cells, labels, K))]
        own = [(*cases, DATA, 0) for cases in sets]
        drawn = [(*cases, kind, r) for cases in sets for kind in range(len(CLOUDS)) for r in draws]
        results = runner.run("One cloud", work, [*own, *drawn])
        p_values, in_plane = (
            _p_values(np.array([result[name] for result in results]), len(sets)) for name in INDICES
        )
        sizes = np.bincount(labels, minlength=K)
        large = [min(sizes[[*pair[1:]]]) >= LARGE for pair in sets[1:]]
        fit.p_value, fit.pair_p_value = in_plane[0], max(p_values[1:], default=0.0)
        both = np.minimum(p_values, in_plane)[1:]
        fit.large_pair_p_value = both[large].max(initial=0.0)

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
        own = to_numpy(self.best_estimator_.labels_) if searched_all else self._predicted(sample)
        numbers = best_match(own, fits.full["labels"], fits.n_clusters)
        self.cluster_stability_ = np.empty(fits.n_clusters)
        self.cluster_stability_[numbers] = fits.cluster_stability
        self.half_labels_ = numbers[fits.matched_labels()].astype(np.int32)
        self.case_stability_ = (self.half_labels_ == numbers[fits.full["labels"]]).mean(axis=0)
        self.selection_probabilities_ = np.mean([half["selected"] for half in fits.halves], axis=0)

    def _predicted(self, sample: np.ndarray) -> np.ndarray:
        """Return the clusters of the chosen model; the sample has lost the names of features."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            return to_numpy(self.best_estimator_.predict(sample))

    def _reason(self, fits: dict[int, _Fits]) -> str:
        """Say why the number was chosen."""
        K, least = self.n_clusters_, f"{self.threshold:.2f}"
        if not fits:
            return "There are too few cases to cluster half of them: one cluster is assumed."
        explained = [k for k in fits if k > K and self._is_stable(fits[k])]
        if K > 1:
            text = (
                f"Each of the {K} clusters comes back in half-samples, the worst to "
                f"{fits[K].stability:.2f}"
            )
            coarser = [k for k in fits if k < K and fits[k].stability >= self.threshold]
            also = ""
            if coarser:
                also = f" A coarser view with {_listed(coarser, 'or')} is stable as well."
            if explained:
                cloud = f"{_listed(explained)} are stable too, but one cloud explains them"
                return f"{text}; {cloud}.{also}"
            if max(fits) > K:
                return f"{text}; with more clusters one falls below {least}.{also}"
            return f"{text}; more than {K} were not tried.{also}"
        if explained:
            clusters = f"{_listed(explained)} clusters are"
            return f"{clusters} stable, but no more compact than clusters of one cloud."
        best = max(fits.values(), key=lambda fit: fit.stability)
        return (
            f"No number of clusters is stable: with {best.n_clusters}, the best one, the worst "
            f"cluster comes back to {best.stability:.2f} in half-samples, less than {least}."
        )


class _Fits:
    """Fits with a number of clusters: to all cases, and to the halves of each split."""

    def __init__(self, n_clusters: int, full: Result):
        self.n_clusters, self.full = n_clusters, full
        self.splits: list[Result] = []
        # Of the comparison with one cloud: all clusters, two neighbors, two large neighbors.
        self.p_value = self.pair_p_value = self.large_pair_p_value = np.nan

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
        return (
            self.n_clusters,
            len(self.splits),
            self.stability,
            middle,
            (high - low) / 2,
            float(self.full["n_different"]),
            float(self.full["n_enough"]),
            self.p_value,
            self.pair_p_value,
        )


COLUMNS = (
    "n_clusters",
    "n_splits",
    "stability",
    "agreement",
    "agreement_spread",
    "features_different",
    "features_enough",
    "p_value",
    "pair_p_value",
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


def nearest_pairs(cells: np.ndarray, labels: np.ndarray, K: int) -> list[tuple[int, int]]:
    """Return each cluster and the one with the nearest center, every pair once."""
    known = [k for k in range(K) if (labels == k).any()]
    filled = np.where(np.isnan(cells), np.nanmean(cells, axis=0), cells)
    centers = np.array([filled[labels == k].mean(axis=0) for k in known])
    distances = ((centers[:, None] - centers) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    pairs = enumerate(distances.argmin(axis=1)) if len(known) > 2 else ()
    return sorted({tuple(sorted((known[a], known[b]))) for a, b in pairs})


def _fit_all(X: np.ndarray, estimator: Any, key: Key) -> Result:
    """Cluster all cases."""
    try:
        model = fit_quietly(clone(estimator).set_params(n_clusters=key[0]), X)
    except ParameterError as error:
        if error.parameter != "n_clusters":
            raise
        return _of_no_clusters(X)  # fewer distinct cases than clusters
    return {
        "labels": model.labels_,
        "outliers": np.asarray(getattr(model, "outliers_", np.zeros(len(X), bool))),
        "weights": getattr(model, "feature_weights_", np.ones(X.shape[1])),
        "n_different": getattr(model, "n_features_different_", np.nan),
        "n_enough": getattr(model, "n_features_enough_", np.nan),
    }


def _of_no_clusters(X: np.ndarray) -> Result:
    n, p = X.shape
    return {
        "labels": np.zeros(n, np.int32),
        "outliers": np.zeros(n, bool),
        "weights": np.ones(p),
        "n_different": 0,
        "n_enough": 0,
    }


def _fit_halves(X: np.ndarray, cases: np.ndarray, estimator: Any, seed: int, key: Key) -> Result:
    """Cluster the two halves of some cases, split in the same way for every number of clusters."""
    K, split = key
    halves = np.array_split(rng_of(seed, split).permutation(cases), 2)
    result: dict[str, Any] = {}
    for i, name in enumerate(("first", "second")):
        half, own_seed = np.sort(halves[i]), seed_of(seed, *key, i)
        labels, selected = _predict_from(X, half, estimator, own_seed, K)
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
    return model.predict(X).astype(np.int32), _selected(model, X.shape[1])


def _selected(model: Any, p: int) -> np.ndarray:
    """Return which features differ between the clusters of a half, or have weight."""
    if hasattr(model, "feature_p_values_"):
        return model.feature_p_values_ <= SELECTED
    return getattr(model, "feature_weights_", np.ones(p)) > 0


def _cluster_index(
    cells: np.ndarray, labels: np.ndarray, estimator: Any, seed: int, key: Key
) -> Result:
    """Return the sum of squares within clusters over that in total, of the data or a reference.

    The cases are those of two clusters, for two; or all, for all, where both are the same.
    """
    K, first, second, kind, _ = key
    if first != second:
        K, cells = 2, cells[(labels == first) | (labels == second)]
    if kind != DATA:
        cells = CLOUDS[kind].of(cells).draw(rng_of(seed, *key))
    try:
        model = configured(estimator, seed_of(seed, *key), n_clusters=K)
        labels = fit_quietly(_with_few_starts(model), cells).labels_
    except ParameterError:  # fewer distinct cases than clusters
        return dict.fromkeys(INDICES, 0.0)
    return {name: cluster_index(cells, labels, name == "plane") for name in INDICES}


def cluster_index(cells: np.ndarray, labels: np.ndarray, in_plane: bool) -> float:
    """Return the sum of squares within clusters over that in total.

    Either of all features, or in the plane (line, space) in which the centers lie: across it there
    is nothing but noise, which hides how compact many clusters are. Two halves of one cluster are
    better told from two clusters by all features. Missing cells are filled with the mean of their
    cluster.
    """
    _, labels = np.unique(labels, return_inverse=True)
    members = np.eye(labels.max() + 1)[labels]
    observed = ~np.isnan(cells)
    counts = np.maximum(members.T @ observed, 1)
    centers = members.T @ np.where(observed, cells, 0.0) / counts
    cells = np.where(observed, cells, centers[labels])
    around_mean, around_centers = cells - cells.mean(axis=0), cells - centers[labels]
    if in_plane:
        _, sizes, axes = np.linalg.svd(centers - cells.mean(axis=0), full_matrices=False)
        plane = axes[sizes > 1e-9 * sizes[0]].T
        around_mean, around_centers = around_mean @ plane, around_centers @ plane
    total = max((around_mean**2).sum(), np.finfo(float).tiny)
    return float((around_centers**2).sum() / total)


def _p_values(indices: np.ndarray, n_sets: int) -> list[float]:
    """Return the p-value of each set of cases; of two kinds of cloud, the larger one."""
    drawn = indices[n_sets:].reshape(n_sets, len(CLOUDS), -1)
    pairs = zip(indices[:n_sets], drawn, strict=True)
    return [max(_p_value(own, kind) for kind in kinds) for own, kinds in pairs]


def _p_value(index: float, drawn: np.ndarray) -> float:
    """Return the probability of an index as small, if it is drawn as the others were."""
    spread = drawn.std(ddof=1) * np.sqrt(1 + 1 / len(drawn))
    if spread == 0:
        return float(index >= drawn[0])
    return float(student.cdf((index - drawn.mean()) / spread, len(drawn) - 1))


def _with_few_starts(model: Any) -> Any:
    if is_word(model.get_params().get("n_init"), "auto") and hasattr(model, "trim"):
        model.set_params(n_init=STARTS)
    return model


def _listed(values: list[int], word: str = "and") -> str:
    *first, last = map(str, sorted(values))
    return f"{', '.join(first)} {word} {last}" if first else last
