"""What a search found, by which rule, and what follows, in words for reports, displays and console.

The curve of a search is described here as well: displays and report draw it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rskc.selection.clest import MAX_CER_AGREEMENT_LOSS, MIN_CER_AGREEMENT, Clest, most_below
from rskc.selection.gap import GapL1
from rskc.selection.grid import GridSearch
from rskc.selection.stability import Stability
from rskc.utils.wording import count, number

# Headings of the columns of the tables of searches, and how their cells are written.
LABELS = {
    "n_clusters": "Clusters",
    "l1_bound": "L1 bound",
    "trim": "Trim",
    "n_features": "Features",
    "n_outliers": "Outliers",
    "silhouette": "Silhouette",
    "consensus": "Consensus",
    "observed_cer": "Error",
    "reference_cer": "Error without clusters",
    "n_below": "Reference sets below",
    "passed": "Passes",
    "stability": "Least stable cluster",
    "agreement": "Agreement",
    "p_value": "p, single cluster",
    "features_different": "Features that differ",
    "features_enough": "Features enough",
    "stable": "Stable",
    "gap": "Gap",
    "standard_error": "Standard error",
    "objective": "Objective per case",
}
FORMATS: dict[str, Callable[[float], str]] = {
    "stability": "{:.2f}".format,
    "agreement": "{:.2f}".format,
    "p_value": lambda p: p_value(p).removeprefix("= "),
    "passed": lambda value: "yes" if value else "no",
    "stable": lambda value: "yes" if value else "no",
}
# Columns that may be x of a curve, and the label of the axis.
AXES = {
    "n_clusters": "number of clusters",
    "l1_bound": "L1 bound, log scale",
    "trim": "share of cases that is trimmed",
}


class TextTable(NamedTuple):
    """The table of a search, as text."""

    labels: list[str]
    rows: list[list[str]]
    chosen: list[bool]  # the rows that the search chose


class Line(NamedTuple):
    """One line of a curve."""

    label: str
    y: np.ndarray  # (places,) NaN where nothing was measured
    dots: np.ndarray | None = None  # (repeats, places) what y is the mean or median of
    errors: np.ndarray | None = None  # (places,) half lengths of bars
    color: int = 0  # number in the palette
    dash: int = 0  # 0 for a solid line


class Curve(NamedTuple):
    """What a search measured, for displays and charts."""

    by: str  # which of AXES
    x: np.ndarray  # (places,) upwards
    name: str  # of y
    lines: list[Line]
    chosen: tuple[int, int] | None = None  # line and place
    threshold: tuple[str, float] | None = None
    above: tuple[str, list[str]] | None = None  # name and values of another measure of the places


@dataclass(frozen=True)
class Finding:
    """What a search found, by which rule, and what follows."""

    title: str  # the question, and the method
    headline: str  # what the search suggests, in a sentence
    result: str  # the same in a few words
    rule: str  # what was measured, and how the choice follows
    table: TextTable
    curve: Curve
    suggests: dict[str, Any]  # parameters of RobustSparseKMeans
    reason: str = ""  # why this was chosen, for the title of a display
    sample: str = ""  # how many of the cases were searched on, if not all
    next_step: str = ""
    changes: list[str] = field(default_factory=list)  # from each solution to the next, in sentences

    @property
    def explanation(self) -> str:
        """The rule, the sample, and the next step."""
        return " ".join(filter(None, (self.rule, self.sample, self.next_step)))


def describe(search: Any) -> Finding:
    """Describe what a fitted search found.

    Parameters
    ----------
    search : Stability, Clest, GapL1 or GridSearch
        A fitted search.

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
    describers = {Clest: _clest, GapL1: _gap, Stability: _stability, GridSearch: _grid}
    for kind, describer in describers.items():
        if isinstance(search, kind):
            check_is_fitted(search, "table_")
            return replace(describer(search, search.table_), sample=_sample(search))
    kinds = ", ".join(kind.__name__ for kind in describers)
    raise TypeError(f"search is of type {type(search).__name__}; it must be one of {kinds}.")


def _clest(search: Clest, frame: Any) -> Finding:
    K = search.n_clusters_
    most = most_below(search.rule, search.level, search.n_references)
    references = count(search.n_references, "reference set")
    limit = f"no more than {most:,} of the {references} have a smaller error"
    if most == 0:
        limit = f"none of the {references} has a smaller error"
    elif most < 0:
        limit = "less than 0% of the reference sets have a smaller error, which is impossible"
    if search.rule == "paper":
        choice = (
            f"A number of clusters passes if {limit}. Of those that pass, the one whose error is "
            "farthest below that of the reference sets is chosen."
        )
    else:
        choice = (
            f"A number of clusters passes if {limit} and its agreement (1 - error / error without "
            f"clusters) is at least {MIN_CER_AGREEMENT:g}. Of those that pass, the largest is "
            "chosen whose agreement is close to the best: lower by no more than half of what one "
            f"cluster too many would cost, and by no more than {MAX_CER_AGREEMENT_LOSS:g}."
        )
    reason = "no number of clusters is predicted well enough"
    for n_below in frame.n_below[frame.chosen]:
        reason = f"predicted better than {search.n_references - n_below:,} of {references}"
    curve = Curve(
        by="n_clusters",
        x=frame.n_clusters.to_numpy(),
        name="classification error rate",
        lines=[
            Line("median of the splits", frame.observed_cer.to_numpy(), search.observed_cers_),
            Line(
                "mean of the reference sets",
                frame.reference_cer.to_numpy(),
                search.reference_cers_,
                color=1,
                dash=1,
            ),
        ],
        chosen=_place_of(frame),
        above=(f"of {references}, below the median", [f"{n:,}" for n in frame.n_below]),
    )
    return Finding(
        title="How many clusters: Clest",
        headline=f"Clest suggests {clusters(K)}.",
        result=clusters(K),
        reason=reason,
        rule="The cases are split again and again, and the clusters of one part predict those of "
        "the other. The error should be small, and much smaller than in simulated data without "
        f"clusters. {choice} If none passes, there are no clusters.",
        suggests={"n_clusters": K},
        table=_table(
            frame, ["n_clusters", "observed_cer", "reference_cer", "agreement", "n_below", "passed"]
        ),
        curve=curve,
    )


def _gap(search: GapL1, frame: Any) -> Finding:
    bound = search.l1_bound_1se_ if search.rule == "1se" else search.l1_bound_
    n_features = int(search.best_estimator_.get_support().sum())
    result = f"an L1 bound of {number(bound)}, which gives weight to {count(n_features, 'feature')}"
    choice = "bound with the largest gap"
    if search.rule == "1se":
        choice = "smallest bound whose gap is within one standard error of the largest gap"
    largest, place = frame.gap.idxmax(), _place_of(frame)
    curve = Curve(
        by="l1_bound",
        x=frame.l1_bound.to_numpy(),
        name="gap",
        lines=[
            Line(
                "gap ± standard error", frame.gap.to_numpy(), errors=frame.standard_error.to_numpy()
            )
        ],
        chosen=place,
        threshold=("largest - standard error", float((frame.gap - frame.standard_error)[largest])),
        above=("features with weight", [f"{n:,}" for n in frame.n_features]),
    )
    return Finding(
        title="How many features: the gap",
        headline=f"The gap suggests {result}.",
        result=result,
        reason="the largest gap" if place == (0, largest) else "within one standard error",
        rule="The gap is how much better the clusters are separated than in the same data with "
        f"each column shuffled. The {choice} is chosen.",
        suggests={"l1_bound": float(bound)},
        table=_table(frame, ["l1_bound", "n_features", "gap", "standard_error", "objective"]),
        curve=curve,
    )


def _stability(search: Stability, frame: Any) -> Finding:
    K = search.n_clusters_
    columns = "n_clusters stability agreement p_value features_different features_enough stable"
    suggestion = f"Half-samples suggest {clusters(K)}. " if len(frame) else ""
    nearly = f", or {search.near_threshold:g} if any two neighboring clusters are separated"
    curve = Curve(
        by="n_clusters",
        x=frame.n_clusters.to_numpy(int),
        name="stability, agreement",
        lines=[
            Line("least stable cluster", frame.stability.to_numpy(float)),
            Line(
                "agreement of the halves, median",
                frame.agreement.to_numpy(float),
                search.agreements_,
                frame.agreement_spread.to_numpy(float),
                color=1,
                dash=1,
            ),
        ],
        chosen=_place_of(frame),
        threshold=(f"threshold {search.threshold:g}", search.threshold),
    )
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
        f"one, in simulated data, would be (p at most {search.level:g}; – where not compared), "
        "unless cases that did not make them show no gap between neighbors: slices of a gradient. "
        "A stable cluster is not necessarily a meaningful one: check what its cases have in "
        "common.",
        suggests={"n_clusters": K},
        table=_table(frame, columns.split()),
        curve=curve,
    )


def p_value(p: float) -> str:
    """Write a p-value after its name: p = 0.250; values below 0.001 are not distinguished."""
    return "–" if np.isnan(p) else "< 0.001" if p < 0.001 else f"= {p:.3f}"


def _grid(search: GridSearch, frame: Any) -> Finding:
    best = search.best_params_
    columns = "n_clusters l1_bound trim n_features n_outliers silhouette consensus"
    bound = f"an L1 bound of {number(best['l1_bound'])} and " if "l1_bound" in best else ""
    result = f"{bound}trim {number(best['trim'])}"
    consensus = frame.consensus[frame.chosen].item()
    return Finding(
        title="Settings side by side: the grid",
        headline=f"Of the settings for {count(best['n_clusters'], 'cluster')}, the others agree "
        f"most with {result} (consensus {consensus:.2f}).",
        result=result,
        reason=f"the largest consensus, {consensus:.2f}",
        rule="A true partition is found with many settings, an accidental one with few. Consensus "
        "is the mean agreement (adjusted Rand index) with the partitions of all other settings "
        "with the same number of clusters, over the cases that neither of two settings trims; 1 "
        "is the same partition. The setting with the largest consensus is chosen.",
        next_step=""
        if frame.n_clusters.nunique() == 1
        else "Consensus does not choose the number of clusters, because every setting may find a "
        f"wrong number too. The model has {count(best['n_clusters'], 'cluster')}: the number that "
        "the estimator has or, if that was not tried, the smallest one. Half-samples can choose "
        "the number.",
        suggests={name: best[name] for name in ("trim", "l1_bound") if name in best},
        changes=[f"{'; '.join([step.headline, *step.unmatched()])}." for step in search.changes_],
        table=_table(frame, columns.split()),
        curve=_curve_of_grid(frame, search.l1_bounds is None),
    )


def _curve_of_grid(frame: Any, has_own_bound: bool) -> Curve:
    """Return the consensus along the bounds or, if there is only one, along the shares."""
    by, others = "l1_bound", ["n_clusters", "trim"]
    if has_own_bound or frame.l1_bound.nunique() == 1:
        by, others = "trim", ["n_clusters"]
    numbers, trims = (frame[name].unique().tolist() for name in ("n_clusters", "trim"))
    lines: list[Line] = []
    chosen = None
    for (K, *trim), rows in frame.sort_values(by).groupby(others):
        if rows.chosen.any():
            chosen = len(lines), int(rows.chosen.argmax())
        label = ", ".join([count(K, "cluster"), *(f"trim {number(share)}" for share in trim)])
        look = [numbers.index(K), *(trims.index(share) for share in trim)]
        look = look if len(numbers) > 1 else look[1:]
        lines.append(Line(label, rows.consensus.to_numpy(), None, None, *look))
    return Curve(by, np.unique(frame[by]), "consensus (adjusted Rand index)", lines, chosen)


def clusters(K: int) -> str:
    """Write a number of clusters that was chosen."""
    return count(K, "cluster") if K > 1 else "no clusters: all cases are one group"


def _place_of(frame: Any) -> tuple[int, int] | None:
    """Return the first line, and the row that was chosen; None if that was not tried."""
    return (0, int(frame.chosen.argmax())) if frame.chosen.any() else None


def _sample(search: Any) -> str:
    """Say which cases were searched on, and whether they have weights."""
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


def _table(frame: Any, names: Iterable[str]) -> TextTable:
    """Return the columns of the table of a search that it has, as text."""
    shown = [name for name in names if name in frame]
    cells = [map(FORMATS.get(name, number), frame[name].tolist()) for name in shown]
    rows = [list(row) for row in zip(*cells, strict=True)]
    return TextTable([LABELS[name] for name in shown], rows, frame["chosen"].tolist())
