"""Stability: how many clusters are found again in half of the cases."""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rskc.inputs.arrays import to_dense, to_numpy
from rskc.inputs.validation import check_integer, check_real, is_word
from rskc.model.fitted import by_column, predictor_of
from rskc.selection.checkpoint import Result
from rskc.selection.cloud import compare_with_cloud
from rskc.selection.gaps import is_a_sequence, separation
from rskc.selection.halves import Fits, best_match, fit_all, fit_halves
from rskc.selection.runner import Key, Runner, Work
from rskc.selection.search import Chosen, Search, check_clusters, with_clusters
from rskc.selection.subsample import Sample

# "auto" tries up to this number of clusters first, and goes on, to twice as many, while the most
# clusters that are stable, each by itself, are found with one of the last three numbers, and are
# two at least. Too few clusters join true ones, of which ever more come apart; too many cut some.
# With 12 to 20 clusters of 5 to 12 cases two to nine are stable at 10, none of a normal cloud.
FIRST_NUMBERS, LAST_NUMBERS = 10, 3
# Numbers whose stability is lower by more than this after the first splits get no more splits. Most
# numbers are wrong, and far below: that halves the work.
FIRST_SPLITS, STABILITY_MARGIN = 2, 0.1
# From this stability on, clusters count if the p-value of any two neighbors is at most the second
# number. One cluster too many has two neighbors of which it is .5 or more.
MIN_NEAR_STABILITY, MAX_PAIR_P_VALUE = 0.6, 0.2
# Two large neighbors with a larger p-value than this are halves of a single cluster: of one that is
# long, or of few features, the same halves are found again.
MAX_LARGE_PAIR_P_VALUE = 0.5
# Whether there are clusters at all is decided by the level; if there are, a stable number counts up
# to this p-value.
WEAK_LEVEL = 0.1
# Gaps between neighbors, or a gradient, are seen where the cases between them give odds of so much
# to 1. Clusters of up to SMALL_CLUSTER cases have too few for such odds; even ones are enough where
# any two neighbors have no larger p-value than the next number. Of a sequence, a density above the
# last is enough for a gradient: stretches of random walks have .3 to .8, as halves share their
# jumps.
ENOUGH_ODDS, SMALL_CLUSTER, MAX_SMALL_PAIR_P_VALUE = 5.0, 16, 0.3
MAX_DENSITY_OF_SEQUENCES = 0.2
# Halves have too few cases of a cluster of 5 to 12. Where most clusters are stable, the small ones
# need not be, if all are so many standard deviations apart: parts of one cluster were 2.8 apart at
# most in 24 tables with small clusters, and slices of an even gradient are 3.46. Of clusters of
# fewer cases no deviation is known.
MIN_SEPARATION, FEWEST_CASES = 3.5, 4
# From this stability on a number testifies against others: with .75, which Hennig calls valid and
# stable, 36 of 36 gradients were refused, with .8 34; their seeds were looked at.
WITNESS_STABILITY = 0.75
# What is known of the gaps between clusters.
CLEAR, UNKNOWN, NONE = "clear", "unknown", "none"
# A number is mentioned of which this share of the clusters is stable, and more than are chosen. On
# noise around three clusters five of ten were.
MIN_STABLE_SHARE = 0.6
# There are no more clusters than would have this number of cases each.
SMALLEST_CLUSTER = 5


class Choice(NamedTuple):
    """A number of clusters, and why."""

    n_clusters: int
    reason: str
    fit: Result | None  # to all cases that were searched on; None for one cluster


@dataclass(eq=False, repr=False)
class Stability(Search):
    """Number of clusters by half-samples: the largest number of which all clusters are stable.

    All cases are clustered, and so are the two halves of several random splits. Each of these fits
    predicts the clusters of all cases. The stability of a cluster is its median Jaccard index over
    the halves: the cases that it shares with the most similar cluster of a half, divided by the
    cases of either. A number of clusters is as stable as its least stable cluster. One cluster too
    many splits a true one, each time in another way; one too few joins two. Cases that are outlying
    with all cases are in no half, and no others are trimmed there: in half of a small cluster a few
    cases are left, which would seem to be outlying.

    Half of a cluster of 5 to 12 cases may be too few. So where most clusters are stable by
    themselves, the others need not be, if some cluster has 16 cases or fewer and any two are at
    least 3.5 standard deviations apart: each case is placed between the other cases of its cluster
    and those of another one.

    Stable clusters must also be more compact than parts of a single one. Reference sets, drawn from
    one normal or one even distribution along the principal axes of the data, are clustered in the
    same way, and the sums of squares compared. Where the data have categories, the numbers drawn
    become categories that are as frequent.

    And they must not be slices of a gradient. Cases along a gradient are cut into slices that are
    stable, and more compact than parts of a normal distribution, but with cases all the way from
    one center to the next. So the cases of each half are placed on the way between clusters that
    the other half made. The more of them lie in its middle third, as compared with the thirds
    beside it, the more likely the clusters are slices: odds of 5 to 1 decide. The largest number
    with gaps is chosen. Where no number is seen to have gaps, it is the largest that is not seen to
    be slices, unless another stable number shows a gradient: there may be too few cases to tell,
    and ``reason_`` says that it is open. ``n_slices_`` keeps the number of slices. Of a sequence,
    where clusters are stretches of the table and each case resembles the one before, the middle
    third may hold 20% of the cases that are beside it: halves of it agree whatever its course.

    Parameters
    ----------
    estimator : RobustSparseKMeans
        All other parameters. Features that it leaves to the data are found anew in every half.
    n_clusters : int, iterable of int or "auto", default="auto"
        The numbers to try. "auto": 2 to 10, and more while that brings more stable clusters.
    n_splits : int, default=6
        Splits into halves; two fits each.
    threshold : float, default=0.8
        What the stability of a number must reach.
    n_references : int, default=20
        Reference sets of each of the two kinds. 0: no comparison with a single cluster.
    level : float, default=0.05
        Level of that comparison.
    max_samples, random_state, n_jobs, checkpoint, progress
        As in :class:`Clest`.

    Attributes
    ----------
    n_clusters_ : int
        The number chosen: the largest stable one whose clusters have gaps between them, or else are
        not seen to be slices of a gradient, and are more compact than parts of a single one
        (p-value at most 0.1, and at most ``level`` for some such number); one that reaches
        ``threshold`` goes before a larger one that does not; 1 if there is none.
    n_slices_ : int or None
        Where the cases lie along a gradient, and therefore in one cluster, the number of clusters
        that are stable slices of it; ``set_params(n_clusters=...)`` of the estimator gives these.
    reason_ : str
        Why, in a sentence or two.
    table_ : pandas.DataFrame
        A row for each number: ``n_clusters``; ``n_splits`` that were made, fewer for numbers that
        are far from stable; ``stability``, of the least stable cluster; ``agreement``, the median
        adjusted Rand index of the two halves of a split, and ``agreement_spread``, half
        of its interquartile range; with ``l1_bound="auto"`` the features
        that differ and those that are enough, with all cases, ``features_different`` and
        ``features_enough``; ``stable``; ``p_value`` of the comparison with a single
        cluster, and ``pair_p_value`` of that of two neighbors, the largest of all pairs, missing
        where it was not made; ``density_between``, the density midway between
        neighbors as a share of that on both sides; ``separation`` of the two nearest clusters, in
        standard deviations within clusters, missing where one has fewer than 4 cases; ``chosen``.
    agreements_ : ndarray of shape (n_splits, numbers)
        Adjusted Rand index of the halves of each split; missing where none was made.
    cluster_stability_ : ndarray of shape (n_clusters_,)
        The stability of each cluster of ``best_estimator_``: its median Jaccard index.
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
    A single long cluster is halved in the same way each time, so that two clusters are stable; and
    clusters that are real may be too close together to be found again in half of the cases.
    Where no number is stable, or a small one, and more clusters of a larger one are stable each by
    itself, ``reason_`` says so.

    Clusters that pass all three conditions need not mean anything: factors in the noise, such as
    batches, make clusters too.

    The comparison with a single cluster is in the features that have weight, times the roots of
    their weights, of the cases that are no outliers. The ``p_value`` is of the sum of squares
    within clusters over that in total (the cluster index of SigClust), in the plane of the centers,
    for a number of clusters and for features that are given; it does not know that both were looked
    for.

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
    def near_threshold(self) -> float:
        """The stability below which a number is out of the question."""
        return min(MIN_NEAR_STABILITY, self.threshold)

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
        self._groups = self.estimator.feature_groups
        _, (_, fits) = self._search(sample, runner)
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
        most = max(1, n // SMALLEST_CLUSTER)
        if is_word(self.n_clusters, "auto"):
            return list(range(2, min(FIRST_NUMBERS, most) + 1))
        return [K for K in check_clusters(self.n_clusters, 1, n // 2) if K > 1]

    def _search(self, sample: Sample, runner: Runner) -> tuple[Chosen, Any]:
        model, n = self._for_tasks(runner.seed), sample.shape[0]
        # In a half 3 or 4 cases of a cluster of 7 seem to be outlying: where halves trimmed, one of
        # 5 to 12 cases was not stable in 7 of 12 tables, and where they do not in none.
        untrimmed = self._for_tasks(runner.seed, trim=0.0, **self._few_starts)
        fits: dict[int, Fits] = {}
        numbers, few = self._numbers(n), min(FIRST_SPLITS, self.n_splits)
        while numbers:
            keys: list[Key] = [(K,) for K in numbers]
            later = len(numbers) * self.n_splits
            results = runner.run("All cases", partial(fit_all, sample, model), keys, later)
            pairs = zip(numbers, results, strict=True)
            fits |= {K: Fits(K, full, sample.masses) for K, full in pairs}
            # Outlying in most of the fits: one of many clusters may consist of outlying cases.
            often = np.mean([fit.full["outliers"] for fit in fits.values()], axis=0) > 0.5
            regular = {K: np.flatnonzero(~(often | fits[K].full["outliers"])) for K in numbers}
            smooth = sample.without_steps
            work = partial(fit_halves, sample, smooth, regular, untrimmed, runner.seed)
            stable = [fits[K] for K in numbers]
            for splits in (range(few), range(few, self.n_splits)):
                later -= len(numbers) * len(splits)
                _add_splits(stable, splits, work, runner, later)
                least = self.near_threshold - STABILITY_MARGIN
                stable = [fit for fit in stable if fit.stability >= least]
            numbers = self._more(fits, n)
        self._decide(sample, fits, runner)
        return with_clusters(self.n_clusters_), (sample, fits.get(self.n_clusters_))

    def _more(self, fits: dict[int, Fits], n: int) -> list[int]:
        """Return further numbers to try, where "auto" has not come to an end."""
        last = max(fits)
        more = range(last + 1, min(2 * last, n // SMALLEST_CLUSTER) + 1)
        if not is_word(self.n_clusters, "auto") or not more:
            return []
        stable = {K: np.sum(fit.cluster_stability >= self.threshold) for K, fit in fits.items()}
        best = max(stable, key=lambda K: (stable[K], K))
        return list(more) if stable[best] > 1 and best > last - LAST_NUMBERS else []

    def _decide(self, sample: Sample, fits: dict[int, Fits], runner: Runner) -> None:
        import pandas as pd

        smooth = replace(sample, X=sample.without_steps)
        for K, fit in fits.items():
            if fit.smallest >= FEWEST_CASES:
                masses = sample.take(~fit.full["outliers"]).masses
                apart = separation(*self._cells(smooth, fit), masses)
                fit.separation = float(apart[~np.eye(K, dtype=bool)].min())
        numbers: dict[str, list[int]] = {CLEAR: [], UNKNOWN: [], NONE: []}
        found: set[str] = set()  # kinds of which a number passes the level
        for K, fit in sorted(fits.items(), reverse=True):
            if fit.stability < self.near_threshold and not self._is_apart(fit):
                continue
            if self.n_references:
                self._compare(sample, fit, runner)
            if not self._is_stable(fit) or fit.cloud.p_value > max(WEAK_LEVEL, self.level):
                continue
            gaps = self._gaps(sample, fits, K)
            numbers[gaps].append(K)
            if not fit.cloud.p_value > self.level:
                found.add(gaps)
                if gaps == CLEAR and self._is_sure(fit):
                    break
        # The largest number of each kind. A nearly stable one is too little beside a stable one.
        largest = {
            gaps: max(numbers[gaps], key=lambda K: (self._is_sure(fits[K]), K)) for gaps in found
        }
        self.n_clusters_ = largest.get(CLEAR, largest.get(UNKNOWN, 1))
        self.n_slices_ = largest.get(NONE) if self.n_clusters_ == 1 else None
        all_fits = list(fits.values())
        self.agreements_ = np.full((self.n_splits, len(fits)), np.nan)
        for i, fit in enumerate(all_fits):
            self.agreements_[: len(fit.splits), i] = fit.halves.agreements(fit.full["outliers"])
        quartiles = [np.nanpercentile(splits, (25, 50, 75)) for splits in self.agreements_.T]
        table = pd.DataFrame(
            {
                "n_clusters": list(fits),
                "n_splits": [len(fit.splits) for fit in all_fits],
                "stability": [fit.stability for fit in all_fits],
                "agreement": [middle for _, middle, _ in quartiles],
                "agreement_spread": [(high - low) / 2 for low, _, high in quartiles],
                "features_different": [float(fit.full["n_different"]) for fit in all_fits],
                "features_enough": [float(fit.full["n_enough"]) for fit in all_fits],
                "p_value": [fit.cloud.p_value for fit in all_fits],
                "pair_p_value": [fit.cloud.pair for fit in all_fits],
                "density_between": [fit.between.density for fit in all_fits],
                "separation": [fit.separation for fit in all_fits],
                "stable": [self._is_stable(fit) for fit in all_fits],
            }
        )
        if table.features_different.isna().any():  # features are not chosen by a test
            table = table.drop(columns=["features_different", "features_enough"])
        self.table_ = table.assign(chosen=table.n_clusters == self.n_clusters_)
        self.reason_ = self._reason(sample, fits)

    def _gaps(self, sample: Sample, fits: dict[int, Fits], K: int) -> str:
        """Say whether there are gaps between clusters, or whether these are slices of a gradient.

        Where the cases between clusters do not say, another stable number may show that they lie
        along a gradient.
        """
        fit, enough = fits[K], np.log(ENOUGH_ODDS)
        if is_a_sequence(*self._cells(sample, fit)):
            return NONE if fit.between.density > MAX_DENSITY_OF_SEQUENCES else CLEAR
        is_small = np.bincount(fit.full["labels"], minlength=K).min() <= SMALL_CLUSTER
        is_compact = fit.cloud.pair <= MAX_SMALL_PAIR_P_VALUE
        if fit.between.evidence <= (0 if is_small and is_compact and K > 2 else -enough):
            return CLEAR
        least = min(WITNESS_STABILITY, self.threshold)
        stable = [other for other in fits.values() if other.stability >= least]
        is_apart = self._is_apart(fit)
        witnesses = stable if is_apart else [fit, *stable]
        if max((other.between.evidence for other in witnesses), default=0.0) >= enough:
            return NONE
        return CLEAR if is_apart else UNKNOWN

    def _is_apart(self, fit: Fits) -> bool:
        """Whether clusters, small ones among them, are far apart, and most but not all stable."""
        if fit.stability >= self.threshold or not fit.separation >= MIN_SEPARATION:
            return False
        share = np.mean(fit.cluster_stability >= self.threshold)
        small = fit.smallest <= SMALL_CLUSTER and fit.n_clusters > 2
        return bool(small and share >= MIN_STABLE_SHARE)

    def _is_sure(self, fit: Fits) -> bool:
        """Whether clusters are stable, or far apart, and not only nearly stable."""
        return fit.stability >= self.threshold or self._is_apart(fit)

    def _is_stable(self, fit: Fits) -> bool:
        """Whether clusters are stable, and no two large neighbors are halves of one cluster.

        Or nearly stable, and any two neighbors are separated; or small and far apart.
        """
        if self._is_apart(fit):
            return True
        if fit.stability >= self.threshold and not fit.cloud.large_pair > MAX_LARGE_PAIR_P_VALUE:
            return True
        return fit.stability >= self.near_threshold and fit.cloud.pair <= MAX_PAIR_P_VALUE

    def _compare(self, sample: Sample, fit: Fits, runner: Runner) -> None:
        """Compare the clusters, and each with its nearest one, with parts of a single one."""
        weights = fit.full["weights"]
        cells, labels = self._cells(sample, fit)
        plain = {"l1_bound": None, "n_features": None, "feature_groups": None, "trim": 0.0}
        model = self._for_tasks(runner.seed, **plain, **self._few_starts)
        columns = np.arange(len(weights)) if self._groups is None else self._groups.columns
        regular = replace(sample.take(~fit.full["outliers"]), X=cells)
        fit.cloud = compare_with_cloud(
            regular, labels, fit.n_clusters, model, self.n_references, runner, columns[weights > 0]
        )

    def _cells(self, sample: Sample, fit: Fits) -> tuple[np.ndarray, np.ndarray]:
        """Return the weighted cells and the clusters of the cases that are no outliers."""
        weights, clean = fit.full["weights"], ~fit.full["outliers"]
        used = np.flatnonzero(weights > 0)
        cells = to_dense(sample.X[clean][:, used]) * np.sqrt(weights[used])
        return cells, fit.full["labels"][clean]

    def _refit(self, X: Any, sample_weight: Any, found: Any, searched_all: bool) -> None:
        """Fit the chosen model, and number what is known of its clusters and cases as it does."""
        super()._refit(X, sample_weight, found, searched_all)
        sample, fits = found
        if fits is None:
            n, p = sample.shape
            self.half_labels_ = np.zeros((2 * self.n_splits, n), np.int32)
            self.cluster_stability_, self.case_stability_ = np.ones(1), np.ones(n)
            self.selection_probabilities_ = by_column(self, np.zeros(p))
            return
        own = to_numpy(self.best_estimator_.labels_)
        if not searched_all:  # the sample has no names of features, and its categories are numbers
            own = predictor_of(self.best_estimator_).apply("labels", sample.X)
        numbers = best_match(own, fits.full["labels"], fits.n_clusters, sample.masses)
        self.cluster_stability_ = np.empty(fits.n_clusters)
        self.cluster_stability_[numbers] = fits.cluster_stability
        matched = fits.halves.matched(fits.full["labels"], fits.n_clusters)
        self.half_labels_ = numbers[matched].astype(np.int32)
        self.case_stability_ = (self.half_labels_ == numbers[fits.full["labels"]]).mean(axis=0)
        self.selection_probabilities_ = by_column(self, fits.halves.selected.mean(axis=0))

    def _reason(self, sample: Sample, fits: dict[int, Fits]) -> str:
        """Say why the number was chosen."""
        K, least = self.n_clusters_, f"{self.threshold:.2f}"
        if not fits:
            return "There are too few cases to cluster halves of them: nothing was searched."
        if self.n_slices_ is not None:
            if is_a_sequence(*self._cells(sample, fits[self.n_slices_])):
                return (
                    f"The cases are a sequence: {self.n_slices_} clusters are stable, but they are "
                    "stretches of the table, in which each case resembles the one before."
                )
            return (
                f"The cases lie along a gradient: {self.n_slices_} clusters are stable, but slices "
                "of it, with no gaps between neighbors."
            )
        larger = [k for k in fits if k > K and self._is_stable(fits[k])]
        if K > 1:
            fit = fits[K]
            how_many = "Both" if K == 2 else f"All {K}"
            if is_apart := self._is_apart(fit):
                how_many = f"{np.sum(fit.cluster_stability >= self.threshold)} of {K}"
            text = (
                f"{how_many} clusters are stable: the least stable one has a median Jaccard index "
                f"of {fit.stability:.2f} over the half-samples"
            )
            if is_apart:
                text += (
                    ", which hold few cases of a small cluster; but any two clusters are "
                    f"{fit.separation:.1f} standard deviations apart or more"
                )
            elif fit.stability < self.threshold:
                text += f", less than {least}, but any two neighboring clusters are separated"
            smaller = [k for k in fits if k < K and self._is_sure(fits[k])]
            nearly = [k for k in larger if not self._is_sure(fits[k])]
            joined = [k for k in larger if k not in nearly]
            if joined:
                text += f". {_listed(joined)} clusters are stable too, but not separated"
            if nearly:
                text += f". {_listed(nearly)} clusters are nearly stable, which is too little here"
            if not larger:
                none = "No larger number of clusters is stable"
                text += f". {none if max(fits) > K else f'More than {K} were not tried'}"
            if smaller:
                text += f". {_listed(smaller, 'or')} clusters, a coarser view, are stable as well"
            if any(fits[K].between) and self._gaps(sample, fits, K) == UNKNOWN:
                text += (
                    ". Whether there are gaps between them is open: too few cases lie between "
                    "neighbors to tell clusters from slices of a gradient"
                )
            return f"{text}.{self._at_least(fits)}"
        if larger:
            clusters = f"{_listed(larger)} clusters are"
            return f"{clusters} stable, but no more compact than parts of a single cluster."
        best = max(fits.values(), key=lambda fit: fit.stability)
        return (
            f"No number of clusters is stable. With {best.n_clusters}, the best number, the least "
            f"stable cluster has a median Jaccard index of {best.stability:.2f} over the "
            f"half-samples, less than {least}.{self._at_least(fits)}"
        )

    def _at_least(self, fits: dict[int, Fits]) -> str:
        """Name a larger number most of whose clusters, each by itself, are stable."""
        for k in sorted(fits, reverse=True):
            n_stable = int((fits[k].cluster_stability >= self.threshold).sum())
            if self.n_clusters_ + 1 < n_stable < k and n_stable >= MIN_STABLE_SHARE * k:
                return (
                    f" There may be {n_stable} or more: of {k} clusters, so many are stable each "
                    "by itself, and the others are not."
                )
        return ""


def _add_splits(fits: list[Fits], splits: range, work: Work, runner: Runner, later: int) -> None:
    """Cluster the halves of each split, with each number of clusters."""
    if not fits:
        return
    keys: list[Key] = [(fit.n_clusters, split) for fit in fits for split in splits]
    results = iter(runner.run("Halves", work, keys, later))
    for fit in fits:
        fit.splits += [next(results) for _ in splits]


def _listed(values: list[int], word: str = "and") -> str:
    *first, last = map(str, sorted(values))
    return f"{', '.join(first)} {word} {last}" if first else last


# ---- What a search knows of a model


def stability_among(searches: Any) -> Stability | None:
    """Return the first Stability search of one or several searches."""
    searches = searches if isinstance(searches, Iterable) else [searches]
    return next((search for search in searches if isinstance(search, Stability)), None)


def is_about(search: Stability, model: Any) -> bool:
    """Whether the clusters of a model are those of which the search knows the stability."""
    own, other = (to_numpy(m.cluster_centers_) for m in (search.best_estimator_, model))
    return own.shape == other.shape and np.allclose(own, other, equal_nan=True)


def stability_of_cases(search: Stability, first: int, last: int) -> np.ndarray:
    """Return the stability of the cases from ``first`` on, missing where not searched on.

    ``last`` is not one of them. The cases are numbered as in the table of the search.
    """
    used = search.samples_used_
    known = slice(*np.searchsorted(used, (first, last)))
    stability = np.full(last - first, np.nan)
    stability[used[known] - first] = search.case_stability_[known]
    return stability
