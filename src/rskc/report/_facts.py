"""What the page is about: a fitted model and its data, and the tables of features and cases."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse

from rskc.estimator import RobustSparseKMeans
from rskc.inputs.case_weights import mean_by_weight
from rskc.inputs.labels import in_order, read_two
from rskc.metrics import RevisedSilhouette, revised_silhouette
from rskc.model.fitted import (
    by_column,
    feature_names,
    judge_cases,
    thresholds_of,
    unequal_weights,
)
from rskc.model.outliers import Distances, Thresholds
from rskc.model.summary import (
    FlaggedCells,
    bounds_cells,
    counts_of_cells,
    features_frame,
    flagged_cells,
    in_units,
)
from rskc.pictures import models as pictures
from rskc.utils.wording import cleaned, number

# Distances may differ from those of the fit by rounding (float32), not by more than this share.
ROUNDING = 0.01
CHART_WIDTH = 48  # characters of a name in charts, which hold each name several times
# Bytes of JSON, of both tables and of that of the features. 100,000 cases with short names take
# 3.4 MB; with the 0.9 MB of Vega and the charts the page stays below 5 MB.
MOST_BYTES, MOST_FOR_FEATURES = 3_800_000, 1_200_000
MOST_CENTERS = 12
RULES = ("no", "weighted", "unweighted", "both")  # which flagged or trimmed a case


def clean_names(names: Iterable[Any], width: int = 120) -> list[str]:
    """Return names that any browser can show."""
    return [cleaned(name, width) for name in names]


def plain_numbers(values: Any, digits: int = 4) -> list:
    """Return numbers for JSON: this many significant digits, None for what is not finite."""
    array = np.asarray(values)
    if array.dtype.kind in "biu":
        return array.astype(int).tolist()
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in array.tolist()]


@dataclass(frozen=True)
class Facts:
    """A fitted model and its data; arrays of cases are in the order of the data."""

    model: Any
    X: Any  # an array, or a CSR matrix; a category has a number for each of its categories
    n: int
    p: int
    K: int
    case_names: list[str]
    feature_names: list[str]
    labels: np.ndarray
    distances: np.ndarray
    unweighted: np.ndarray  # distances
    thresholds: Thresholds
    blind: np.ndarray  # cases of which no feature with weight is observed
    outliers: np.ndarray  # without these
    flags: np.ndarray  # which distance makes each case an outlier: indices of FLAGS
    seen: np.ndarray  # cases with a distance: not blind, and without cells too large for squares
    silhouette: RevisedSilhouette | None  # None with one cluster
    centers: np.ndarray
    sizes: np.ndarray
    weights: np.ndarray
    support: np.ndarray  # features that have weight, the largest first
    case_weights: np.ndarray | None  # None if all cases count the same
    cells: FlaggedCells | None  # the outlying ones; None where the errors of cells are not bounded
    units: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # of columns

    def weight_of(self, cases: np.ndarray) -> float:
        """Return the weight of the cases of a mask; their number, if all count the same."""
        return float(cases.sum() if self.case_weights is None else self.case_weights[cases].sum())

    def mean(self, values: np.ndarray, cases: np.ndarray) -> float:
        """Return the mean of values over the cases of a mask, by weight."""
        weights = None if self.case_weights is None else self.case_weights[cases]
        return mean_by_weight(values[cases], weights)

    @property
    def columns(self) -> np.ndarray:
        """The data by features (n, p): of a category the first indicator, missing or not."""
        return by_column(self.model, self.X)


def gather(model: Any, X: Any, case_names: Any = None) -> Facts:
    """Check that model and data belong together, and compute what all parts of the page need."""
    if not isinstance(model, RobustSparseKMeans):
        raise TypeError(
            f"model={model!r:.60} must be a fitted RobustSparseKMeans; of a search, give its "
            "best_estimator_, and the search itself in searches."
        )
    model, X = pictures.check_fitted(model, X)
    table = pictures.table_of(model, X)
    pictures.check_cases_of_the_fit(model, table.shape[0], "what a report says")
    judged = judge_cases(model, X)
    _check_same_data(model.distances_, judged.weighted)
    # Files of earlier versions have no unweighted distances.
    unweighted = getattr(model, "unweighted_distances_", judged.unweighted)
    thresholds = thresholds_of(model)
    n, p, K = table.shape[0], model.n_features_in_, len(model.cluster_centers_)
    support = pictures.strongest(model.feature_weights_)
    blind = np.zeros(n, bool)
    if len(support) and not issparse(table):
        blind = np.isnan(by_column(model, table)[:, support]).all(axis=1)
    return Facts(
        model,
        table,
        n,
        p,
        K,
        case_names=_names_of_cases(model, X, case_names, n),
        feature_names=clean_names(feature_names(model)),
        labels=model.labels_,
        distances=model.distances_,
        unweighted=unweighted,
        thresholds=thresholds,
        blind=blind,
        outliers=model.outliers_ & ~blind,
        flags=pictures.flags_of(Distances(model.distances_, unweighted), thresholds),
        seen=np.isfinite(model.distances_),
        silhouette=revised_silhouette(model, X) if K > 1 else None,
        centers=model.cluster_centers_,
        sizes=np.bincount(model.labels_, minlength=K),
        weights=model.feature_weights_,
        support=support,
        case_weights=unequal_weights(model),
        cells=flagged_cells(model, X) if bounds_cells(model) else None,
    )


def _names_of_cases(model: Any, X: Any, given: Any, n: int) -> list[str]:
    """Return the names of the n cases: those that are given, or of the fit, or of the data."""
    names = getattr(model, "case_names_in_", None) if given is None else list(given)
    if names is None:
        names = pictures.case_names(X, n)
    if len(names) != n:
        raise ValueError(f"case_names has {len(names)} names for {n} cases; give one for each.")
    return clean_names(names)


def _check_same_data(known: np.ndarray, found: np.ndarray) -> None:
    """See by the distances whether X is the data of the fit, standardized in the same way."""
    both = np.isfinite(known) & np.isfinite(found)
    scale = np.maximum(np.abs(known[both]), np.median(known[both]) if both.any() else 0)
    apart = np.abs(found[both] - known[both]) > ROUNDING * scale
    if apart.mean() > 0.5 if both.any() else np.isfinite(known).any():
        raise ValueError(
            "X is not the data that the model was fitted to: most of its cases have other "
            "distances to their centers. Give what was given to fit, standardized in the same way."
        )


# Tables: a heading and the values of each column, by its key

Columns = dict[str, tuple[str, np.ndarray]]


def features_table(facts: Facts, probabilities: np.ndarray | None = None) -> dict[str, Any]:
    """Return a row for each feature, the largest weight first."""
    order = np.argsort(-facts.weights, kind="stable")
    columns = {
        "feature": ("Feature", np.array(facts.feature_names, object)[order]),
        "rank": ("Rank", np.arange(1, facts.p + 1)),
        "weight": ("Weight", facts.weights[order]),
    }
    if hasattr(facts.model, "group_names_"):
        group = facts.model.feature_group_[order]
        names = clean_names(facts.model.group_names_)
        columns["group"] = "Group", np.array(names, object)[group]
        columns["group_weight"] = "Weight of the group", facts.model.group_weights_[group]
    if facts.cells is not None:
        counts = counts_of_cells(facts.model, axis=0)
        columns["outlying_cells"] = "Outlying cells", counts[order]
    if probabilities is not None:
        columns["probability"] = "Selected", probabilities[order].round(3)
    for k, center in enumerate(_centers(facts)) if facts.K <= MOST_CENTERS else ():
        columns[f"center_{k}"] = f"Center {k}", center[order]
    if facts.model.n_missing_:
        missing = np.count_nonzero(np.isnan(facts.columns), axis=0)
        columns["missing"] = "Missing cells", missing[order]
    keep = _fitting(columns, np.arange(facts.p), MOST_FOR_FEATURES)
    return _table(columns, keep, "features with the largest weights")


def _centers(facts: Facts) -> Iterable[np.ndarray]:
    """Return the centers by features; in words where there are categories."""
    frame = in_units(features_frame(facts.model), facts.units)
    centers = [frame[f"center_{k}"].to_numpy() for k in range(facts.K)]
    if not hasattr(facts.model, "encoder_"):
        return centers
    words = [
        [each if isinstance(each, str) else number(each, 4) for each in center]
        for center in centers
    ]
    return np.array([clean_names(center) for center in words], object)


def cases_table(
    facts: Facts, labels: Any = None, stability: np.ndarray | None = None, taken: int = 0
) -> dict[str, Any]:
    """Return a row for each case, in the order of the data; other tables have ``taken`` bytes."""
    model = facts.model
    trimmed = model.trimmed_weighted_ + 2 * model.trimmed_unweighted_.astype(int)
    columns = {
        "case": ("Case", np.array(facts.case_names, object)),
        **({} if facts.case_weights is None else {"weight": ("Weight", facts.case_weights)}),
        "cluster": ("Cluster", facts.labels),
        "distance": ("Weighted distance", facts.distances),
        "unweighted": ("Unweighted", facts.unweighted),
        "outlier": (
            "Outlier",
            np.where(facts.blind, "no data", np.array(RULES, object)[facts.flags]),
        ),
        "trimmed": ("Trimmed", np.array(RULES, object)[trimmed]),
    }
    if facts.cells is not None:
        columns["outlying_cells"] = "Outlying cells", counts_of_cells(model, axis=1)
    if facts.silhouette is not None:
        values = np.where(facts.seen, facts.silhouette.values.round(3), np.nan)
        columns["second"] = "Second cluster", facts.silhouette.second
        columns["silhouette"] = "Silhouette", values
    if stability is not None:
        columns["stability"] = "Stability", stability.round(3)
    if labels is not None:
        classes = in_order(read_two(labels=labels, clusters=facts.labels)[0])
        names = np.array(clean_names(classes.names, 40), object)
        columns["class"] = "Known class", names[classes.codes]
    far_first = np.argsort(-facts.distances, kind="stable")
    keep = _fitting(columns, far_first, MOST_BYTES - taken)
    return _table(columns, keep, "cases farthest from their centers")


def _fitting(columns: Columns, order: np.ndarray, budget: int) -> np.ndarray:
    """Return the first rows in this order whose JSON fits into the budget, sorted."""
    names, *others = (values for _, values in columns.values())
    sample = order[:: len(order) // 1000 + 1]
    row = 0.0
    for values in others:  # words are stored once
        numbers = values.dtype != object
        row += json_bytes(plain_numbers(values[sample])) / len(sample) if numbers else 3.0
    order = order[: max(int(budget / (3 + row)), 0)]  # no more would fit without any name
    sizes = np.array([len(x.encode()) + 5 * sum(map(x.count, "<>&")) for x in names[order]], int)
    return np.sort(order[np.cumsum(sizes + 3 + row) <= budget])


def json_bytes(value: Any) -> int:
    """Return the number of bytes that a value takes on the page."""
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def _table(columns: Columns, keep: np.ndarray, which: str) -> dict[str, Any]:
    """Return rows as plain columns; words that repeat are stored once, with codes."""
    described, data, words = [], {}, {}
    for key, (label, values) in columns.items():
        kind = {"O": "text", "b": "flag"}.get(values.dtype.kind, "number")
        described.append({"key": key, "label": label, "kind": kind})
        data[key] = values[keep].tolist() if kind == "text" else plain_numbers(values[keep])
        if kind == "text" and len(data) > 1:
            words[key] = list(dict.fromkeys(data[key]))
            codes = {word: i for i, word in enumerate(words[key])}
            data[key] = [codes[word] for word in data[key]]
    n, held = len(values), len(keep)
    note = "" if held == n else f"Of {n:,}, the table holds the {held:,} {which}."
    return {"columns": described, "data": data, "words": words, "n_rows": n, "note": note}
