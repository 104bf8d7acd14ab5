"""Clest: how many clusters can be predicted better than in data without any."""

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rskc.inputs.validation import check_choice, check_integer, check_real
from rskc.metrics import classification_error_rate
from rskc.selection.references import REFERENCES, Reference, reference_of
from rskc.selection.runner import Key, Runner, rng_of, seed_of
from rskc.selection.search import Chosen, Search, check_clusters, fit_task, with_clusters
from rskc.selection.subsample import Sample

DATA, REFERENCE = 0, 1
# The default rule. Agreement is 1 - observed / reference CER: 1 for partitions that are predicted
# without error, 0 for those that are predicted as badly as without clusters. Fewer clusters than
# there are may be predicted as well as the true number, so the largest good number is taken. Its
# agreement is at most this much below the best, and at most half of what one cluster too many
# costs.
MIN_CER_AGREEMENT = 0.5
MAX_CER_AGREEMENT_LOSS = 0.1
TINY = np.finfo(float).tiny
RULES = ("agreement", "paper")


@dataclass(eq=False, repr=False)
class Clest(Search):
    """Number of clusters by prediction: Clest of Dudoit and Fridlyand.

    The cases are split repeatedly into two thirds for learning and one third for testing. Clusters
    are learned from the first part, and the test cases are assigned to their centers. The test
    cases are also clustered on their own, and the classification error rate (CER) measures how much
    the two partitions differ. With the right number of clusters they agree. How much they differ by
    chance is measured on reference sets without clusters, one split each.

    Parameters
    ----------
    estimator : RobustSparseKMeans
        All other parameters.
    n_clusters : int or iterable of int, default=range(2, 9)
        The numbers to try, 2 at least.
    n_splits : int, default=20
        Splits of the data, B.
    n_references : int, default=20
        Reference sets, B0.
    level : float, default=0.05
        Share of the reference sets that may have a smaller CER than the data, see Notes.
    rule : {"agreement", "paper"}, default="agreement"
        How to decide, see Notes.
    reference : {"pca", "uniform"}, default="pca"
        Reference sets are drawn evenly between the ends of each column, "uniform", or of each
        principal component, "pca", which keeps correlations. Cells farther than 3.5 MADs from the
        median of their column are clipped to that distance before. Missing cells are missing in the
        reference sets too.
    max_samples : int or None, default=5000
        The most cases to search on. Of a larger table this number is drawn at random, by the seed,
        and read into memory. The chosen model is fitted to all cases. None to search on all.
    random_state : int, RandomState or None, default=None
        Seed. The same seed gives the same result for any ``n_jobs``. Without one, a checkpoint's
        own is used.
    n_jobs : int or None, default=-1
        Parallel tasks, as in joblib; -1 for one per core.
    checkpoint : path or None, default=None
        A file that keeps finished tasks. A search that was stopped for any reason goes on from
        there, with the same result. A file made for other data or settings is refused.
    progress : bool or callable, default=True
        True: a bar with the time left, on a terminal only. A callable is called with the number of
        finished tasks and the total number.

    Attributes
    ----------
    n_clusters_ : int
        The number chosen; 1 if no number is better than chance.
    table_ : pandas.DataFrame
        A row for each number: ``n_clusters``; ``observed_cer``, the median over the splits;
        ``reference_cer``, the mean over the reference sets; ``difference`` of the two;
        ``agreement``, 1 - observed / reference; ``n_below``, the number of reference sets whose
        CER is below the observed one, and ``share_below``, their share; ``passed``, by the rule;
        ``chosen``.
    observed_cers_ : ndarray of shape (n_splits, numbers)
        CER of each split.
    reference_cers_ : ndarray of shape (n_references, numbers)
        CER of each reference set.
    samples_used_ : ndarray of shape (n_samples_used_,)
        Numbers of the cases that were searched on.
    n_samples_, n_samples_used_ : int
        How many cases the table has, and how many of them were searched on.
    best_estimator_ : estimator
        Fitted to all the data with ``n_clusters_`` clusters. If that is 1, all features have the
        same weight, because there are no clusters to separate.

    Notes
    -----
    ``rule="paper"`` is that of Kondo, Salibian-Barrera and Zamar: among the numbers with
    ``share_below < level``, the one with the least difference. Where two true clusters lie close
    together, joining them can be predicted without error as well, and since CERs are larger for few
    clusters the difference prefers the smaller number.

    ``rule="agreement"`` asks that ``(1 + n_below) / (1 + n_references) <= level``, and that the
    agreement is at least 0.5. With fewer than 19 reference sets, where even
    1 / (1 + n_references) is above .05, none may be below. Of the numbers that pass it takes the
    largest whose agreement is close to the best. One cluster more than the K true ones splits a
    true one at random, which raises the CER by 1 / (2 K^2). The agreement may be lower than the
    best by half of that, as a share of the reference CER, and by no more than 0.1.

    The paper calls ``share_below`` a p-value, but it is none: the observed CER is a median over
    splits, those of the reference sets are of single splits, several numbers of clusters are
    tried, and the reference is one of many kinds of data without clusters.

    Of a large table ``max_samples`` cases are enough if the smallest cluster that matters has some
    dozens among them: about 1% of the table, with 5,000. Raise it to look for smaller clusters, but
    only then: with very many cases a wrong number of clusters is predicted well too.

    References
    ----------
    Dudoit and Fridlyand, "A prediction-based resampling method for estimating the number of
    clusters in a dataset", Genome Biology 3(7), 2002.

    Examples
    --------
    >>> from rskc import RobustSparseKMeans
    >>> from rskc.datasets import make_simulation
    >>> from rskc.selection import Clest
    >>> outlying = make_simulation(model=1, random_state=0)
    >>> model = RobustSparseKMeans(trim=0.05, l1_bound=6, n_init=10)
    >>> clest = Clest(model, n_clusters=range(2, 5), random_state=0).fit(outlying.data)
    >>> clest.n_clusters_
    3
    """

    n_clusters: Any = range(2, 9)
    _: KW_ONLY
    n_splits: int = 20
    n_references: int = 20
    level: float = 0.05
    rule: str = "agreement"
    reference: str = "pca"

    def _check(self, n: int, p: int) -> None:
        check_clusters(self.n_clusters, 2, n // 3)
        check_integer("n_splits", self.n_splits, 1)
        check_integer("n_references", self.n_references, 1)
        check_choice("reference", self.reference, REFERENCES)
        check_choice("rule", self.rule, RULES)
        check_real("level", self.level, 0, 1)

    def _search(self, sample: Sample, runner: Runner) -> tuple[Chosen, None]:
        numbers = check_clusters(self.n_clusters, 2, sample.shape[0] // 3)
        kinds = [(DATA, b) for b in range(self.n_splits)]
        kinds += [(REFERENCE, b) for b in range(self.n_references)]
        reference = reference_of(self.reference, sample.X, sample.masses)
        work = partial(_split_error, sample, reference, self._for_comparisons(), runner.seed)
        results = runner.run("Clest", work, [(*kind, K) for kind in kinds for K in numbers])
        cers = np.array([result["cer"] for result in results]).reshape(-1, len(numbers))
        self.observed_cers_, self.reference_cers_ = np.split(cers, [self.n_splits])
        self._decide(np.array(numbers))
        return with_clusters(self.n_clusters_), None

    def _decide(self, numbers: np.ndarray) -> None:
        import pandas as pd

        observed = np.median(self.observed_cers_, axis=0)
        reference = self.reference_cers_.mean(axis=0)
        below = np.count_nonzero(self.reference_cers_ < observed, axis=0)
        table = pd.DataFrame(
            {
                "n_clusters": numbers,
                "observed_cer": observed,
                "reference_cer": reference,
                "difference": observed - reference,
                "agreement": 1 - observed / np.maximum(reference, TINY),
                "n_below": below,
                "share_below": below / self.n_references,
            }
        )
        choice = chosen_by(self.rule, table, self.level, self.n_references)
        table["passed"], self.n_clusters_ = choice
        table["chosen"] = table.n_clusters == self.n_clusters_
        self.table_ = table


def most_below(level: float, n_references: int) -> int:
    """Return how many reference sets may have a smaller CER than the data, by the default rule."""
    return max(0, int(np.floor(level * (1 + n_references) + 1e-9)) - 1)


def chosen_by(rule: str, table: Any, level: float, n_references: int) -> tuple[Any, int]:
    """Return which K pass, with few reference sets below, and which of them is chosen.

    "paper": that with the least difference. "agreement": of those that agree nearly as well as the
    best of them, the largest.
    """
    passed = table.share_below < level
    if rule == "agreement":
        passed = table.n_below <= most_below(level, n_references)
        passed &= table.agreement >= MIN_CER_AGREEMENT
    good = table[passed]
    if good.empty:
        return passed, 1
    if rule == "paper":
        return passed, int(good.n_clusters[good.difference.idxmin()])
    # What it costs to split one of K - 1 true clusters: .39, .20, .13, .10, .08 for K = 3 to 7.
    splitting = 0.5 / (good.n_clusters - 1) ** 2 / np.maximum(good.reference_cer, TINY)
    tolerance = np.minimum(MAX_CER_AGREEMENT_LOSS, splitting / 2)
    return passed, int(good.n_clusters[good.agreement >= good.agreement.max() - tolerance].max())


def _split_error(sample: Sample, reference: Reference, estimator: Any, seed: int, key: Key) -> dict:
    """CER of one split of the data, or of a reference set, for one number of clusters.

    The split and the set are the same for every number of clusters.
    """
    kind, number, K = key
    rng = rng_of(seed, kind, number)
    if kind == REFERENCE:
        sample = replace(sample, X=reference.draw(rng).astype(sample.X.dtype, copy=False))
    n = sample.shape[0]
    test, learning = map(sample.take, np.split(rng.permutation(n), [n // 3]))
    learned, clustered = (
        fit_task(estimator, part, n_clusters=K, random_state=seed_of(seed, *key, i))
        for i, part in enumerate((learning, test))
    )
    cer = classification_error_rate(learned.predict(test.X), clustered.labels_, test.weights)
    return {"cer": cer}
