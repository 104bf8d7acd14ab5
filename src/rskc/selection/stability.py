"""Stability: how many clusters come back when half of the cases is clustered again."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rskc.inputs.arrays import to_dense, to_numpy
from rskc.inputs.validation import check_integer, check_real, is_word
from rskc.model.fitted import by_column, predictor_of
from rskc.selection.checkpoint import Result
from rskc.selection.cloud import compare_with_cloud
from rskc.selection.halves import COLUMNS, Fits, best_match, fit_all, fit_halves
from rskc.selection.runner import Key, Runner
from rskc.selection.search import Search, check_clusters, with_clusters
from rskc.selection.subsample import Sample

# "auto" tries up to this number of clusters first. It goes on, to twice as many, while one of the
# last two numbers is stable. It also goes on where the halves agree by more than HIGH at the last,
# and hardly less than at a stable number: too few clusters join true ones, not always the same,
# yet most pairs of cases are together or apart in both halves. With 13 or 14 clusters of 6 to 12
# cases these agree by .47 to .63 at 10 clusters; a HIGH of .6 ended there in 4 of 7 tables.
FIRST_NUMBERS, HIGH, LITTLE = 10, 0.4, 0.1
# A number that is below by more than this after the first splits is not stable; others see all
# splits. Most numbers are wrong, and far below: that halves the work.
FIRST_SPLITS, FAR_BELOW = 2, 0.1
# Clusters that nearly come back do count if every two neighboring ones are told from one cloud, by
# a p-value of at most this. One cluster too many has two of which the p-value is .5 or more.
NEARLY, APART = 0.6, 0.2
# Where two large neighbors have a larger p-value than this, they are halves of a single cluster: of
# one that is long, or of few features, the halves come back.
HALVES = 0.5
# Whether there are clusters at all is decided by the level; if there are, a stable number counts up
# to this p-value.
LIKELY = 0.1
# Where the dip between two neighbors has a larger p-value than this, they are slices of a gradient.
# At the true number of the designs of benchmarks/number.py it is .1 at most, but .6 to .7 where a
# cluster is small or hardly stable (seeds 100, 400 and 401); of slices of lines, curves and planes
# .7 to .99. The second holds where more clusters come nearly back too and have no dip: slices may
# be thinner. Where fewer clusters are stable and have a dip for certain, nothing is refused: halves
# that make more of them need not find the same ones. A ring or a horseshoe, whose halves have a dip
# as they bend, is taken for clusters therefore.
SLICES, THINNER = 0.6, 0.25
# Two neighbors with a p-value of one cloud of at most this are no slices: a half of the cases may
# miss a small cluster, whose cases then show no dip. Of slices it is .04 and more.
SURE = 0.01
# A half has at least this number of cases for each cluster.
CASES_A_CLUSTER = 3


class Choice(NamedTuple):
    """A number of clusters, and why."""

    n_clusters: int
    reason: str
    fit: Result | None  # to all cases that were searched on; None for one cluster


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
    Where the data have categories, the numbers drawn become categories that are as frequent.

    Cases along a gradient are cut into slices that are stable, and no cloud of these kinds explains
    them. But there is no gap between slices. So the cases of each half are projected on the lines
    between the centers that the other half made, and the dip test says whether two neighbors are
    two groups. If some are not (a p-value above 0.6, or 0.25 where more clusters nearly come back
    as well), the number is refused: ``n_slices_`` keeps it, and one cluster is chosen.

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
    n_slices_ : int or None
        Where the cases lie along a gradient, and therefore in one cluster, the number of clusters
        that are stable slices of it; ``set_params(n_clusters=...)`` of the estimator gives these.
    reason_ : str
        Why, in a sentence or two.
    table_ : pandas.DataFrame
        A row for each number: ``n_clusters``; ``n_splits`` that were made, fewer for numbers that
        are far from stable; ``stability``, of the worst cluster; ``agreement``,
        the median adjusted Rand index of the two halves of a split, and ``agreement_spread``, half
        of its interquartile range; for RobustSparseKMeans with ``l1_bound="auto"`` the features
        that differ and those that are enough, with all cases, ``features_different`` and
        ``features_enough``; ``stable``; ``p_value`` of the comparison with one cloud, and
        ``pair_p_value`` of that of two neighboring clusters with one, the largest of all pairs;
        missing where it was not made; ``dip_p_value``, of a dip between neighbors; ``chosen``.
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
    Analysis 52, 2007. Hartigan and Hartigan, "The dip test of unimodality", Annals of Statistics
    13, 1985. Liu, Hayes, Nobel and Marron, "Statistical significance of clustering for
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
        if threshold != 1:
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

    def choose(self, sample: Sample, runner: Runner) -> Choice:
        """Choose the number of clusters, as a part of another search."""
        self._groups = self._groups_of(sample.shape[1])
        self._search(sample, runner)
        fits = self._fits
        del self._fits, self._sample
        return Choice(self.n_clusters_, self.reason_, None if fits is None else fits.full)

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

    def _search(self, sample: Sample, runner: Runner) -> None:
        model, n = self._as_asked(runner.seed), sample.shape[0]
        fits: dict[int, Fits] = {}
        numbers, few = self._numbers(n), min(FIRST_SPLITS, self.n_splits)
        while numbers:
            keys: list[Key] = [(K,) for K in numbers]
            later = len(numbers) * self.n_splits
            results = runner.run("All cases", partial(fit_all, sample, model), keys, later)
            pairs = zip(numbers, results, strict=True)
            fits |= {K: Fits(K, full, sample.masses) for K, full in pairs}
            # Outlying in most of the fits: one of many clusters may consist of outlying cases.
            flagged = np.mean([fit.full["outliers"] for fit in fits.values()], axis=0)
            work = partial(fit_halves, sample, np.flatnonzero(flagged <= 0.5), model, runner.seed)
            for splits in (range(few), range(few, self.n_splits)):
                keys = [(K, split) for K in numbers for split in splits]
                later -= len(keys)
                for key, result in zip(keys, runner.run("Halves", work, keys, later), strict=True):
                    fits[key[0]].splits.append(result)
                numbers = [K for K in numbers if fits[K].stability >= self.nearly - FAR_BELOW]
            numbers = self._more(fits, n)
        self._decide(sample, fits, runner)

    def _more(self, fits: dict[int, Fits], n: int) -> list[int]:
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
        model = self._for_arrays()
        if model.get_params().get("random_state", 0) is None:
            model.set_params(random_state=seed % 2**32)
        return self._on_one_thread(model)

    def _decide(self, sample: Sample, fits: dict[int, Fits], runner: Runner) -> None:
        import pandas as pd

        self.n_clusters_, self._sample = 1, sample
        candidates = [K for K in sorted(fits, reverse=True) if fits[K].stability >= self.nearly]
        likely = []  # stable numbers, of which the largest is chosen if there are clusters at all
        for K in candidates:
            if self.n_references:
                self._compare(sample, fits[K], runner)
            if self._is_stable(fits[K]) and not fits[K].cloud.p_value > max(LIKELY, self.level):
                likely.append(K)
                if not fits[K].cloud.p_value > self.level:
                    self.n_clusters_ = likely[0]
                    break
        self.n_slices_ = None
        if self._are_slices(fits):
            self.n_clusters_, self.n_slices_ = 1, self.n_clusters_
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

    def _are_slices(self, fits: dict[int, Fits]) -> bool:
        """Whether the clusters chosen are slices of a gradient."""
        K = self.n_clusters_
        more = (fit for k, fit in fits.items() if k > K and fit.stability >= self.nearly)
        thinner = any(fit.dip > SLICES for fit in more)
        if K == 1 or (K > 2 and fits[K].cloud.pair <= SURE):
            return False
        fewer = (fit for k, fit in fits.items() if k < K and fit.stability >= self.threshold)
        if any(fit.dip <= self.level for fit in fewer):
            return False
        return fits[K].dip > (THINNER if thinner else SLICES)

    def _is_stable(self, fit: Fits) -> bool:
        """Whether clusters come back, and two large ones are not halves of one cloud.

        Or nearly come back, and every two neighboring ones are told from one cloud.
        """
        if fit.stability >= self.threshold and not fit.cloud.large_pair > HALVES:
            return True
        return fit.stability >= self.nearly and fit.cloud.pair <= APART

    def _compare(self, sample: Sample, fit: Fits, runner: Runner) -> None:
        """Compare the clusters, and each with its nearest one, with one cloud."""
        weights, clean = fit.full["weights"], ~fit.full["outliers"]
        used, regular = np.flatnonzero(weights > 0), sample.take(clean)
        cells = regular.replaced(to_dense(regular.X[:, used]) * np.sqrt(weights[used]))
        labels = fit.full["labels"][clean]
        model = self._without_choices(runner.seed)
        columns = np.arange(len(weights)) if self._groups is None else self._groups.columns
        fit.cloud = compare_with_cloud(
            cells, labels, fit.n_clusters, model, self.n_references, runner, columns[used]
        )

    def _without_choices(self, seed: int) -> Any:
        """Return the estimator without weights and trimming, where it has them."""
        model = self._as_asked(seed)
        known = model.get_params(deep=False)
        dense = {"l1_bound": None, "n_features": None, "feature_groups": None, "trim": 0.0}
        return model.set_params(**{name: dense[name] for name in dense if name in known})

    def _chosen(self) -> dict[str, Any]:
        return with_clusters(self.estimator, self.n_clusters_)

    def _refit(self, X: Any, counted: dict[str, Any], searched_all: bool) -> None:
        """Fit the chosen model, and number what is known of its clusters and cases as it does."""
        super()._refit(X, counted, searched_all)
        fits, sample = self._fits, self._sample
        del self._fits, self._sample
        self.samples_used_ = self._drawn.numbers
        if fits is None:
            n, p = sample.shape
            self.half_labels_ = np.zeros((2 * self.n_splits, n), np.int32)
            self.cluster_stability_, self.case_stability_ = np.ones(1), np.ones(n)
            self.selection_probabilities_ = by_column(self, np.zeros(p))
            return
        own = to_numpy(self.best_estimator_.labels_) if searched_all else self._predicted(sample.X)
        numbers = best_match(own, fits.full["labels"], fits.n_clusters, sample.masses)
        self.cluster_stability_ = np.empty(fits.n_clusters)
        self.cluster_stability_[numbers] = fits.cluster_stability
        self.half_labels_ = numbers[fits.matched_labels()].astype(np.int32)
        self.case_stability_ = (self.half_labels_ == numbers[fits.full["labels"]]).mean(axis=0)
        selected = np.mean([half["selected"] for half in fits.halves], axis=0)
        self.selection_probabilities_ = by_column(self, selected)

    def _predicted(self, X: np.ndarray) -> np.ndarray:
        """Return the clusters of the chosen model; the sample has lost the names of features."""
        if hasattr(self.best_estimator_, "encoder_"):  # and its categories are numbers
            return predictor_of(self.best_estimator_).labels(X)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            return to_numpy(self.best_estimator_.predict(X))

    def _reason(self, fits: dict[int, Fits]) -> str:
        """Say why the number was chosen."""
        K, least = self.n_clusters_, f"{self.threshold:.2f}"
        if not fits:
            return "There are too few cases to cluster halves of them: nothing was searched."
        if self.n_slices_ is not None:
            return (
                f"The cases lie along a gradient: {self.n_slices_} clusters are stable, but as "
                "slices of it. Cases that did not make them show no gap between neighbors."
            )
        explained = [k for k in fits if k > K and self._is_stable(fits[k])]
        if K > 1:
            text = (
                f"{'Both' if K == 2 else f'All {K}'} clusters are stable: the least stable one has "
                f"a median Jaccard index of {fits[K].stability:.2f} over the half-samples"
            )
            if fits[K].stability < self.threshold:
                text += f", less than {least}, but any two neighboring clusters are separated"
            coarser = [k for k in fits if k < K and fits[k].stability >= self.threshold]
            also = ""
            if coarser:
                also = f" {_listed(coarser, 'or')} clusters, a coarser view, are stable as well."
            if explained:
                return (
                    f"{text}. {_listed(explained)} clusters are stable too, but no more compact "
                    f"than parts of a single one.{also}"
                )
            if max(fits) > K:
                return f"{text}. No larger number of clusters is stable.{also}"
            return f"{text}. More than {K} were not tried.{also}"
        if explained:
            clusters = f"{_listed(explained)} clusters are"
            return f"{clusters} stable, but no more compact than parts of a single cluster."
        best = max(fits.values(), key=lambda fit: fit.stability)
        return (
            f"No number of clusters is stable. With {best.n_clusters}, the best number, the least "
            f"stable cluster has a median Jaccard index of {best.stability:.2f} over the "
            f"half-samples, less than {least}."
        )


def _listed(values: list[int], word: str = "and") -> str:
    *first, last = map(str, sorted(values))
    return f"{', '.join(first)} {word} {last}" if first else last
