"""What a search found, by which rule, and what follows, in words for reports, displays and console.

The curve of a search is described here as well: displays and report draw it.
"""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rskc.selection.clest import MAX_CER_AGREEMENT_LOSS, MIN_CER_AGREEMENT, Clest, most_below
from rskc.selection.gap import GapL1
from rskc.selection.grid import GridSearch
from rskc.selection.stability import Stability
from rskc.utils.wording import count, number

WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
AXES = WORDS["axes"]  # columns that may be x of a curve, and their labels
# How cells of tables are written.
FORMATS: dict[str, Callable[[float], str]] = {
    "stability": "{:.2f}".format,
    "agreement": "{:.2f}".format,
    "p_value": lambda p: p_value(p).removeprefix("= "),
    "passed": lambda value: "yes" if value else "no",
    "stable": lambda value: "yes" if value else "no",
}


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
    table: dict[str, list]  # as text: labels, rows, and which of these were chosen
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
    kind: Any = next((kind for kind in describers if isinstance(search, kind)), None)
    if kind is None:
        kinds = ", ".join(kind.__name__ for kind in describers)
        raise TypeError(f"search is of type {type(search).__name__}; it must be one of {kinds}.")
    check_is_fitted(search, "table_")
    about, frame = dict(WORDS[kind.__name__]), search.table_
    values = {"sample": words_on_sample(search), **describers[kind](search, frame)}
    shown = [name for name in about.pop("columns").split() if name in frame]
    cells = [map(FORMATS.get(name, number), frame[name].tolist()) for name in shown]
    table = {
        "labels": [WORDS["headings"][name] for name in shown],
        "rows": [list(row) for row in zip(*cells, strict=True)],
        "chosen": frame["chosen"].tolist(),
    }
    words = {name: text.format_map(values) for name, text in about.items()}
    known = {name: values[name] for name in values.keys() & Finding.__annotations__.keys()}
    return Finding(table=table, **words | known)


# What is said of each kind: fields of a finding, and what stands in the braces of its words


def _clest(search: Clest, frame: Any) -> dict[str, Any]:
    K, references = search.n_clusters_, count(search.n_references, "reference set")
    most = most_below(search.level, search.n_references)
    choice = WORDS["rules"][search.rule].format(
        where=f"in at most {most:,}" if most else "in none",
        references=references,
        level=search.level,
        least=MIN_CER_AGREEMENT,
        loss=MAX_CER_AGREEMENT_LOSS,
    )
    reason = "no number of clusters is predicted well enough"
    for n_below in frame.n_below[frame.chosen]:
        reason = f"predicted better than {search.n_references - n_below:,} of {references}"
    observed, reference = frame.observed_cer.to_numpy(), frame.reference_cer.to_numpy()
    lines = [
        Line("median of the splits", observed, search.observed_cers_),
        Line("mean of the reference sets", reference, search.reference_cers_),
    ]
    below = f"of {references}, below the median", [f"{n:,}" for n in frame.n_below]
    curve = _curve(frame, "n_clusters", "classification error rate", lines, above=below)
    words = {"result": clusters(K), "reason": reason, "choice": choice}
    return {"curve": curve, "suggests": {"n_clusters": K}, **words}


def _gap(search: GapL1, frame: Any) -> dict[str, Any]:
    bound = search.l1_bound_1se_
    n_features = int(search.best_estimator_.get_support().sum())
    result = f"an L1 bound of {number(bound)}, which gives weight to {count(n_features, 'feature')}"
    largest = frame.gap.argmax()
    reason = "the largest gap" if frame.chosen[largest] else "within one standard error"
    gaps, errors = frame.gap.to_numpy(), frame.standard_error.to_numpy()
    lines = [Line("gap ± standard error", gaps, errors=errors)]
    threshold = "largest - standard error", float(gaps[largest] - errors[largest])
    above = "features with weight", [f"{n:,}" for n in frame.n_features]
    curve = _curve(frame, "l1_bound", "gap", lines, threshold=threshold, above=above)
    suggests = {"l1_bound": bound}
    return {"curve": curve, "suggests": suggests, "result": result, "reason": reason}


def _stability(search: Stability, frame: Any) -> dict[str, Any]:
    K, nearly = search.n_clusters_, ""
    if search.near_threshold < search.threshold:
        nearly = f", or {search.near_threshold:g} if any two neighboring clusters are separated"
    agreement, spread = (frame[name].to_numpy(float) for name in ("agreement", "agreement_spread"))
    lines = [
        Line("least stable cluster", frame.stability.to_numpy(float)),
        Line("agreement of the halves, median", agreement, search.agreements_, spread),
    ]
    threshold = f"threshold {search.threshold:g}", search.threshold
    curve = _curve(frame, "n_clusters", "stability, agreement", lines, threshold=threshold)
    return {
        "curve": curve,
        "suggests": {"n_clusters": K},
        "result": clusters(K),
        "reason": search.reason_.rstrip("."),
        "suggestion": f"Half-samples suggest {clusters(K)}. " if len(frame) else "",
        "nearly": nearly,
        "threshold": search.threshold,
        "level": search.level,
    }


def p_value(p: float) -> str:
    """Write a p-value after its name: p = 0.250; values below 0.001 are not distinguished."""
    return "–" if np.isnan(p) else "< 0.001" if p < 0.001 else f"= {p:.3f}"


def _grid(search: GridSearch, frame: Any) -> dict[str, Any]:
    best, consensus = search.best_params_, frame.consensus[frame.chosen].item()
    bound = f"an L1 bound of {number(best['l1_bound'])} and " if "l1_bound" in best else ""
    one_number = {"next_step": ""} if frame.n_clusters.nunique() == 1 else {}
    return {
        "curve": _curve_of_grid(frame, search.l1_bounds is None),
        "suggests": {name: best[name] for name in ("trim", "l1_bound") if name in best},
        "result": f"{bound}trim {number(best['trim'])}",
        "reason": f"the largest consensus, {consensus:.2f}",
        "clusters": count(best["n_clusters"], "cluster"),
        "consensus": consensus,
        "changes": [
            f"{'; '.join([step.headline, *step.unmatched()])}." for step in search.changes_
        ],
        **one_number,
    }


def _curve_of_grid(frame: Any, has_own_bound: bool) -> Curve:
    """Return the consensus along the bounds or, if there is only one, along the shares."""
    by, others = "l1_bound", ["n_clusters", "trim"]
    if has_own_bound or frame.l1_bound.nunique() == 1:
        by, others = "trim", ["n_clusters"]
    numbers, trims = (frame[name].unique().tolist() for name in ("n_clusters", "trim"))
    chosen, lines = None, list[Line]()
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


def _curve(frame: Any, by: str, name: str, lines: list[Line], **more: Any) -> Curve:
    """Return the curve of a table, with a color and dashes for each line; the first has the choice.

    There is no ring where the choice was not tried.
    """
    lines = [line._replace(color=i, dash=i) for i, line in enumerate(lines)]
    chosen = (0, int(frame.chosen.argmax())) if frame.chosen.any() else None
    return Curve(by, frame[by].to_numpy(), name, lines, chosen, **more)


def words_on_sample(search: Any) -> str:
    """Say which cases were searched on, and whether they have weights."""
    n, n_used = search.n_samples_, search.n_samples_used_
    weights = getattr(search.best_estimator_, "sample_weight_", None)
    how = "drawn at random"
    if weights is not None:
        has_all = n_used == np.count_nonzero(weights)
        how = "those with a weight above 0" if has_all else "drawn in proportion to their weights"
    words = [f"Searched on {n_used:,} of the {n:,} cases, {how}."] * (n_used < n)
    words += ["Cases count by their weights."] * (weights is not None)
    return " ".join(words)
