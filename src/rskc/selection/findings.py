"""What a search found, by which rule, and what follows: the words of page, pictures and console."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rskc.selection.clest import LEAST_AGREEMENT, NEARLY_AS_GOOD, Clest, most_below
from rskc.selection.gap import GapL1
from rskc.selection.path import FeaturePath
from rskc.selection.settings import GridSearch, TrimCurves
from rskc.selection.stability import Stability
from rskc.selection.strength import PredictionStrength
from rskc.utils.wording import cleaned, count, exact_percent, number


class TextTable(NamedTuple):
    """What a search tried, as text."""

    labels: list[str]
    rows: list[list[str]]
    chosen: list[bool]  # the rows that the search chose


@dataclass(frozen=True)
class Finding:
    """What a search found, by which rule, and what follows."""

    title: str  # the question, and how it was answered
    headline: str  # what the search suggests, in a sentence
    result: str  # the same in a few words
    rule: str  # what was measured, and how the choice follows
    table: TextTable
    reason: str = ""  # why this was chosen and nothing else, for the title of a picture
    sample: str = ""  # how many of the cases were searched on, if not all
    next_step: str = ""
    suggests: dict[str, Any] = field(default_factory=dict)  # parameters of RobustSparseKMeans
    changes: list[str] = field(default_factory=list)  # from each solution to the next, in sentences

    @property
    def explanation(self) -> str:
        """The rule, and all that a reader of the result must know."""
        return " ".join(filter(None, (self.rule, self.sample, self.next_step)))


@singledispatch
def describe(search: Any) -> Finding:
    """Describe what a fitted search found.

    Parameters
    ----------
    search : Stability, Clest, GapL1, PredictionStrength, TrimCurves, GridSearch or FeaturePath
        A fitted search, or a path of features.

    Returns
    -------
    finding : Finding

    Raises
    ------
    TypeError
        If it is anything else.
    NotFittedError
        If the search was not fitted.
    """
    known = ", ".join(kind.__name__ for kind in describe.registry if kind is not object)
    raise TypeError(f"search={search!r:.60} must be one of {known}.")


@describe.register
def _(search: Clest) -> Finding:
    columns = {
        "n_clusters": "Clusters",
        "observed_cer": "Error",
        "reference_cer": "Error without clusters",
        "agreement": "Agreement",
        "n_below": "Reference sets below",
        "passed": "Passes",
    }
    table, K = _table(search, columns), search.n_clusters_
    most = most_below(search.rule, search.level, search.n_references)
    limit = _limit_of_references(most, search.n_references)
    if search.rule == "paper":
        choice = f"A number passes if {limit}. Of those, the one whose error is farthest below"
        choice += " that of the made-up data is chosen."
    else:
        choice = (
            f"A number passes if {limit}, and if its agreement (1 - error / error without "
            f"clusters) is at least {LEAST_AGREEMENT:g}. Of those that pass, the largest is chosen "
            "whose agreement is nearly that of the best: less than half of what one cluster too "
            f"many would cost, and {NEARLY_AS_GOOD:g} at most."
        )
    return Finding(
        title="How many clusters: Clest",
        headline=f"Clest suggests {clusters(K)}.",
        result=clusters(K),
        reason=clest_reason(
            search.table_.n_clusters, search.table_.n_below, search.n_references, K
        ),
        rule="Part of the cases predicts the clusters of the rest, again and again. The error "
        f"should be small, and much smaller than in made-up data without clusters. {choice} If "
        "there is none, there are no clusters.",
        sample=_sample(search),
        suggests={"n_clusters": K},
        table=table,
    )


def _limit_of_references(most: int, n_references: int) -> str:
    """Say how many reference sets may have a smaller error."""
    if most < 0:
        return "a share below 0 of the reference sets has a smaller error, which none can"
    if most == 0:
        return f"none of the {count(n_references, 'reference set')} has a smaller error"
    return f"no more than {most:,} of the {n_references:,} reference sets have a smaller error"


def clest_reason(numbers: Any, n_below: Any, n_references: int, chosen: int) -> str:
    """Say why Clest chose a number of clusters."""
    if chosen == 1:
        return "no number of them is predicted well enough"
    better = n_references - int(np.asarray(n_below)[np.asarray(numbers) == chosen][0])
    return f"predicted better than {better:,} of {count(n_references, 'reference set')}"


@describe.register
def _(search: GapL1) -> Finding:
    columns = {
        "l1_bound": "L1 bound",
        "n_features": "Features",
        "gap": "Gap",
        "standard_error": "Standard error",
        "objective": "Objective per case",
    }
    table = _table(search, columns)
    bound = search.l1_bound_1se_ if search.rule == "1se" else search.l1_bound_
    n_features = int(search.best_estimator_.get_support().sum())
    result = f"an L1 bound of {number(bound)}, which gives weight to {count(n_features, 'feature')}"
    choice = "least bound within one standard error of" if search.rule == "1se" else "bound with"
    return Finding(
        title="How many features: the gap",
        headline=f"The gap suggests {result}.",
        result=result,
        reason=gap_reason(search.table_.gap, search.table_.chosen),
        rule="The gap is how much better the clusters are separated than in the same data with "
        f"each column shuffled. The {choice} the largest gap is chosen.",
        sample=_sample(search),
        suggests={"l1_bound": float(bound)},
        table=table,
    )


def gap_reason(gap: Any, chosen: Any) -> str:
    """Say why GapL1 chose a row."""
    largest = int(np.argmax(chosen)) == int(np.argmax(gap))
    return "the largest gap" if largest else "within one standard error"


@describe.register
def _(search: Stability) -> Finding:
    columns = {
        "n_clusters": "Clusters",
        "stability": "Least stable cluster",
        "agreement": "Halves agree",
        "p_value": "p, single cluster",
        "features_different": "Features that differ",
        "features_enough": "Features enough",
        "stable": "Stable",
    }
    check_is_fitted(search, "table_")
    known = {name: label for name, label in columns.items() if name in search.table_}
    table, K = _table(search, known), search.n_clusters_
    written = {"stability": "{:.2f}".format, "agreement": "{:.2f}".format, "p_value": _p_value}
    for name, write in written.items():
        place = list(known).index(name)
        for row, value in zip(table.rows, search.table_[name], strict=True):
            row[place] = write(value)
    suggestion = f"Half-samples suggest {clusters(K)}. " if table.rows else ""
    nearly = f", or {search.near_threshold:g} if any two neighboring clusters are separated"
    return Finding(
        title="How many clusters: half-samples",
        headline=f"{suggestion}{search.reason_}",
        result=clusters(K),
        reason=search.reason_.rstrip("."),
        rule="All cases are clustered, and so are random halves of them. The stability of a "
        "cluster is its median Jaccard index over the halves: 1 if they find the same cases, 0 if "
        "none of them. A number of clusters is stable if the least stable one reaches "
        f"{search.threshold:g}{nearly if search.near_threshold < search.threshold else ''}. The "
        "largest stable number is chosen whose clusters are more compact than parts of a single "
        f"one, in simulated data, would be (p at most {search.level:g}; – where not compared), and "
        "have gaps between them: without gaps they are slices of a gradient. A stable cluster is "
        "not necessarily a meaningful one: check what its cases have in common.",
        sample=_sample(search),
        suggests={"n_clusters": K},
        table=table,
    )


def _p_value(p: float) -> str:
    return "–" if np.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


@describe.register
def _(search: PredictionStrength) -> Finding:
    columns = {"n_clusters": "Clusters", "strength": "Strength", "standard_error": "Standard error"}
    table, K, threshold = _table(search, columns), search.n_clusters_, search.threshold
    row, frame = table.chosen.index(True), search.table_
    return Finding(
        title="How many clusters: prediction strength",
        headline=f"Prediction strength suggests {clusters(K)}.",
        result=clusters(K),
        reason=strength_reason(frame.strength[row], frame.standard_error[row], threshold),
        rule="Half of the cases predicts which pairs of the other half belong together. The "
        "largest number is chosen for which this succeeds in every cluster: with a share of "
        f"{threshold:g} or more, within one standard error. If there is none, it is the strongest.",
        sample=_sample(search),
        suggests={"n_clusters": K},
        table=table,
    )


def strength_reason(strength: float, error: float, threshold: float) -> str:
    """Say why a number of clusters was chosen by its prediction strength."""
    if strength + error < threshold:
        return f"the strongest, though below the threshold of {threshold:g}"
    return f"the largest number that is predicted well (strength {strength:.2f})"


@describe.register
def _(search: TrimCurves) -> Finding:
    columns = {
        "n_clusters": "Clusters",
        "trim": "Trim",
        "moved": "Change from the share before",
        "within": "Within sum per case",
        "n_features": "Features",
        "n_outliers": "Outliers",
    }
    table, trim = _table(search, columns), search.suggested_trim_
    result = f"trimming {exact_percent(trim)} of the cases" if trim else "no trimming"
    for_clusters = count(search.best_estimator_.n_clusters, "cluster")
    return Finding(
        title="How much to trim: outlying cases",
        headline=f"The distances of the cases suggest {result}, for {for_clusters}.",
        result=result,
        reason=trim_reason([trim]),
        rule="The share is that of the outlying cases: those that are far from their centers, by "
        "the weighted or the unweighted distance. In the table, the least share that trims as many "
        "is marked; its other columns show what changes when more is trimmed.",
        sample=_sample(search),
        next_step=""
        if trim <= search.table_.trim.max() + 1e-9
        else "That is more than the largest share that was tried.",
        suggests={"trim": float(trim)},
        table=table,
    )


def trim_reason(suggested: Any) -> str:
    """Say which shares of the cases are outlying, one for each number of clusters."""
    low, high = exact_percent(min(suggested)), exact_percent(max(suggested))
    return f"{low if low == high else f'{low} to {high}'} of the cases are outlying"


@describe.register
def _(search: GridSearch) -> Finding:
    columns = {
        "n_clusters": "Clusters",
        "l1_bound": "L1 bound",
        "trim": "Trim",
        "n_features": "Features",
        "n_outliers": "Outliers",
        "silhouette": "Silhouette",
        "consensus": "Consensus",
    }
    table, best = _table(search, columns), search.best_params_
    bound = "" if best["l1_bound"] is None else f"an L1 bound of {number(best['l1_bound'])} and "
    result = f"{bound}trim {best['trim']:g}"
    consensus = search.table_.consensus[table.chosen.index(True)]
    return Finding(
        title="Settings side by side: the grid",
        headline=f"Of the settings for {count(best['n_clusters'], 'cluster')}, the others agree "
        f"most with {result} (consensus {consensus:.2f}).",
        result=result,
        reason=f"the largest consensus, {consensus:.2f}",
        rule="A true partition is found with many settings, an accidental one with few. Consensus "
        "is the mean agreement (adjusted Rand index) with the partitions of all other settings "
        "with as many clusters, over the cases that neither of two settings trims; 1 is the same "
        "partition. The setting with the largest consensus is chosen.",
        sample=_sample(search),
        next_step=_on_number(search),
        suggests={
            name: float(best[name]) for name in ("trim", "l1_bound") if best[name] is not None
        },
        changes=[f"{'; '.join([step.headline, *step.unmatched()])}." for step in search.changes_],
        table=table,
    )


def _on_number(search: GridSearch) -> str:
    """Say how the number of clusters was chosen."""
    if search.n_stable_ is None and search.table_.n_clusters.nunique() == 1:
        return ""
    if search.n_stable_ is None:
        return (
            "The number of clusters is not chosen by this, for a wrong one may be found with every "
            f"setting too. The model is that of {search.best_params_['n_clusters']} clusters, the "
            "number of the estimator or else the least. Half-samples can choose it."
        )
    if search.n_stable_ == 1:
        return "No number of clusters is stable in half-samples: the choice of one is arbitrary."
    return "The number of clusters was chosen by half-samples."


@describe.register
def _(path: FeaturePath) -> Finding:
    names = [cleaned(path.feature_names[j], 32) for j in features_by_entry(path)[:5]]
    columns = {"L1 bound": path.l1_bounds, "Features": path.n_features}
    columns["Objective per case"] = path.objective
    rows = [list(map(number, row)) for row in zip(*columns.values(), strict=True)]
    return Finding(
        title="Which features first: the feature path",
        headline=f"The first to get weight: {', '.join(names)}.",
        result=", ".join(names),
        rule="With a small L1 bound few features have weight; as it grows, others follow.",
        table=TextTable(list(columns), rows, [False] * len(rows)),
    )


def features_by_entry(path: FeaturePath) -> np.ndarray:
    """Return the features that get weight, by the bound at which they do, then by their weight."""
    order = np.lexsort((-path.weights.max(axis=0), path.entry))
    return order[np.isfinite(path.entry[order])]


def clusters(K: int) -> str:
    """Write a number of clusters that was chosen."""
    return count(K, "cluster") if K > 1 else "no clusters: all cases are one group"


def _sample(search: Any) -> str:
    """Say which cases were searched on, and that they do not all count the same."""
    n, n_used = search.n_samples_, search.n_samples_used_
    weights = getattr(search.best_estimator_, "sample_weight_", None)
    if weights is None:
        return f"Searched on {n_used:,} of the {n:,} cases, drawn at random." if n_used < n else ""
    which = ""
    if n_used < np.count_nonzero(weights):
        which = f"Searched on {n_used:,} of the {n:,} cases, drawn in proportion to their weights. "
    elif n_used < n:
        which = f"Searched on the {n_used:,} of {n:,} cases that have a weight above 0. "
    return f"{which}Cases count by their weights."


def _table(search: Any, columns: dict[str, str]) -> TextTable:
    check_is_fitted(search, "table_")
    frame = search.table_
    cells = [_cells(frame[name].to_numpy()) for name in columns]
    rows = [list(row) for row in zip(*cells, strict=True)]
    return TextTable(list(columns.values()), rows, frame["chosen"].tolist())


def _cells(values: np.ndarray) -> list[str]:
    if values.dtype.kind == "b":
        return ["yes" if value else "no" for value in values]
    return [number(None if value is None else float(value)) for value in values.tolist()]
