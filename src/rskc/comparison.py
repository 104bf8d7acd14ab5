"""Two solutions side by side: clusters matched, and what changed in cases and features."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rskc.exceptions import ComparisonError
from rskc.inputs.arrays import check_sample_weight, to_numpy
from rskc.inputs.labels import count_shared, match_clusters
from rskc.inputs.validation import names_of_cases
from rskc.metrics import classification_error_rate
from rskc.model.fitted import feature_names
from rskc.utils.wording import cleaned, count, listed

__all__ = ["SolutionComparison", "compare_solutions"]

MOST_NAMES = 8
LONGEST_NAME = 40


@dataclass(frozen=True, repr=False, eq=False)
class SolutionComparison:
    """Two solutions, a and b, for the same cases.

    Attributes
    ----------
    table : pandas.DataFrame
        How many cases are in each cluster of a (rows) and of b (columns).
    matches : dict
        The cluster of b that stands for each cluster of a: the pairs that hold most cases together,
        none of them twice. Clusters that have no counterpart are not in it.
    cer : float
        Classification error rate: the share of the pairs of cases that are together in one
        solution and apart in the other. NaN for a single case.
    cer_regular : float
        The same over the cases that are outliers in neither; NaN if they are fewer than two.
    cases : pandas.DataFrame
        A row for each case whose cluster in b is not the match of that in a, or that is an outlier
        in one only: ``case``, ``cluster_a``, ``cluster_b``, ``moved``, ``outlier_a``,
        ``outlier_b``.
    features : pandas.DataFrame
        A row for each feature with weight in a or in b, the largest weight first: ``feature``,
        ``weight_a``, ``weight_b`` and ``change``: "gained", "lost" or "kept".
    """

    table: Any
    matches: dict[int, int]
    cer: float
    cer_regular: float
    cases: Any
    features: Any

    @property
    def headline(self) -> str:
        """The differences in one line."""
        n_a, n_b = self.table.shape
        moved = f"{self.cases.moved.sum():,} of {count(self.table.to_numpy().sum(), 'case')} moved"
        changes = self.features.change.tolist()
        gained, lost = count(changes.count("gained"), "feature"), changes.count("lost")
        clusters = f"{count(n_a, 'cluster')} -> {n_b}"
        return f"{clusters}; {moved}, CER {self.cer:.3f}; {gained} gained, {lost:,} lost"

    def summary(self) -> str:
        """Describe the differences in a few lines."""
        cases, counts, lines = self.cases, self.table.to_numpy(), [self.headline]
        for a, b in self.matches.items():
            rest = [f"{counts[a, k]:,} now in {k}" for k in np.flatnonzero(counts[a]) if k != b]
            stay = f"{counts[a, b]:,}" if rest else "all"
            words = f"{stay} of {count(int(counts[a].sum()), 'case')}"
            lines.append(f"cluster {a} -> {b}: {listed([words, *rest], MOST_NAMES)}")
        gained = _names(cases.case[cases.outlier_b & ~cases.outlier_a])
        lost = _names(cases.case[cases.outlier_a & ~cases.outlier_b])
        more, less = (self.features.feature[self.features.change == c] for c in ("gained", "lost"))
        lines += [
            *self.unmatched(),
            f"cases that moved: {_names(cases.case[cases.moved])}",
            f"outliers gained: {gained}; lost: {lost}",
            f"features kept: {(self.features.change == 'kept').sum():,}; "
            f"gained: {_names(more)}; lost: {_names(less)}",
        ]
        return "\n  ".join(lines)

    def unmatched(self) -> list[str]:
        """Say where the cases of a cluster without match go, or where they come from."""
        lines, counts = [], self.table.to_numpy()
        for a in sorted(set(range(counts.shape[0])) - set(self.matches)):
            others = [f"{counts[a, b]:,} now in {b}" for b in np.flatnonzero(counts[a])]
            lines.append(f"cluster {a} is gone: {listed(others or ['no cases'], MOST_NAMES)}")
        for b in sorted(set(range(counts.shape[1])) - set(self.matches.values())):
            others = [f"{counts[a, b]:,} from the former {a}" for a in np.flatnonzero(counts[:, b])]
            lines.append(f"cluster {b} is new: {listed(others or ['no cases'], MOST_NAMES)}")
        return lines

    __str__ = summary

    def __repr__(self) -> str:
        return f"<SolutionComparison: {self.headline}>"


def _names(names: Sequence[Any]) -> str:
    first = [cleaned(name, LONGEST_NAME) for name in list(names)[:MOST_NAMES]]
    return f"{len(names):,} ({listed(first, MOST_NAMES, len(names))})" if first else "none"


def compare_solutions(
    a: Any, b: Any, X: Any = None, sample_weight: Any = None
) -> SolutionComparison:
    """Put two solutions for the same cases side by side.

    Parameters
    ----------
    a, b : RobustSparseKMeans or a search
        Two fitted models of the same features; of a fitted search, its ``best_estimator_``.
    X : array-like or data frame of shape (n_samples, n_features), default=None
        Cases to compare the models on: clusters and outliers are those that ``predict`` and
        ``is_outlier`` give. None for the cases of the fits, which must be the same.
    sample_weight : array-like of shape (n_samples,), default=None
        Case weights, for error rates and for matching clusters; cases are counted without them.
        None for the weights of the fits, where X is None and both had the same.

    Returns
    -------
    comparison : SolutionComparison
        ``print`` shows it in words.

    Raises
    ------
    ValueError
        If the models are not about the same features, or, without X, not about the same cases.

    Examples
    --------
    >>> from rskc import RobustSparseKMeans
    >>> from rskc.comparison import compare_solutions
    >>> from rskc.datasets import make_simulation
    >>> data = make_simulation(random_state=0).data
    >>> two, three = (RobustSparseKMeans(K, l1_bound=6, random_state=0).fit(data) for K in (2, 3))
    >>> compare_solutions(two, three)
    <SolutionComparison: 2 clusters -> 3; 20 of 60 cases moved, CER 0.237; ...>
    """
    a, b = models = [getattr(each, "best_estimator_", each) for each in (a, b)]
    for model in models:
        check_is_fitted(model, "cluster_centers_")
    p, q = a.n_features_in_, b.n_features_in_
    if p != q:
        raise ComparisonError(
            "{a} has {p} features and {b} has {q}; they must have the same.", p=p, q=q
        )
    if _names_differ(models, "feature_names_in_"):
        raise ComparisonError(
            "{a} and {b} have features with other names, or in another order; they must have the "
            "same."
        )
    first, second = _partition(a, X), _partition(b, X)
    n, names, weights = len(first.labels), None if X is None else names_of_cases(X), None
    if X is None:
        m = len(second.labels)
        if n != m or _names_differ(models, "case_names_in_"):
            words = f"{n} and {m} cases" if n != m else "cases of other names, or in another order"
            raise ComparisonError(
                "{a} and {b} were fitted to {words}; {give the cases to compare them on as X}.",
                words=words,
            )
        names = getattr(a, "case_names_in_", getattr(b, "case_names_in_", None))
        given = [model.sample_weight_ for model in models if hasattr(model, "sample_weight_")]
        if sample_weight is None and len(given) == 2 and np.array_equal(*given):
            sample_weight = given[0]
    if sample_weight is not None:
        weights = check_sample_weight(sample_weight, n)
    features = feature_names(a if hasattr(a, "feature_names_in_") else b)
    return compare(first, second, np.arange(n) if names is None else names, features, weights)


def _names_differ(models: Sequence[Any], attribute: str) -> bool:
    """Whether both models know names, and not the same."""
    names = [getattr(model, attribute) for model in models if hasattr(model, attribute)]
    return len(names) == 2 and not np.array_equal(*names)


class Partition(NamedTuple):
    """The clusters of some cases, which of them are outliers, and the weights of the features."""

    labels: np.ndarray
    outliers: np.ndarray
    weights: np.ndarray
    n_clusters: int


def _partition(model: Any, X: Any) -> Partition:
    """Return what a model says of cases, or without any of those of its fit."""
    labels = model.labels_ if X is None else model.predict(X)
    outliers = model.outliers_ if X is None else model.is_outlier(X)
    labels, outliers, weights = map(to_numpy, (labels, outliers, model.feature_weights_))
    return Partition(labels, outliers, weights, model.cluster_centers_.shape[0])


def compare(
    a: Partition, b: Partition, cases: Any, features: Any, weights: np.ndarray | None = None
) -> SolutionComparison:
    """Compare two partitions of the same cases, and the weights of the same features.

    Clusters are matched, and error rates computed, by the weights of the cases; cases are counted.
    """
    import pandas as pd

    both = a.labels, b.labels, a.n_clusters, b.n_clusters
    counts = count_shared(*both)
    pairs = enumerate(match_clusters(count_shared(*both, weights)).tolist())
    matches = {i: j for i, j in pairs if j >= 0 and counts[i, j]}
    columns = {
        "case": np.asarray(cases),
        "cluster_a": a.labels,
        "cluster_b": b.labels,
        "moved": np.array([matches.get(k, -1) for k in range(a.n_clusters)])[a.labels] != b.labels,
        "outlier_a": a.outliers,
        "outlier_b": b.outliers,
    }
    shown = np.flatnonzero(columns["moved"] | (a.outliers != b.outliers))
    frame = pd.DataFrame({name: values[shown] for name, values in columns.items()})
    counted = np.ones(len(a.labels), bool) if weights is None else weights > 0
    rates: list[float] = []
    for mask in (counted, counted & ~(a.outliers | b.outliers)):
        kept = None if weights is None else weights[mask]
        labels = a.labels[mask], b.labels[mask]
        rates.append(classification_error_rate(*labels, kept) if mask.sum() > 1 else np.nan)
    table = pd.DataFrame(counts).rename_axis(index="a", columns="b")
    largest = np.maximum(a.weights, b.weights)
    order = np.argsort(-largest, kind="stable")[: np.count_nonzero(largest)]
    columns = {"feature": features, "weight_a": a.weights, "weight_b": b.weights}
    kept = pd.DataFrame({name: values[order] for name, values in columns.items()})
    changes = np.select([kept.weight_a == 0, kept.weight_b == 0], ["gained", "lost"], "kept")
    kept["change"] = changes.astype(object)
    return SolutionComparison(table, matches, rates[0], rates[1], frame, kept)
