"""What the page is about: a fitted model and its data, and the tables of features and cases."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.sparse import issparse

from rskc.estimator import RobustSparseKMeans
from rskc.inputs.arrays import mean_by_weight
from rskc.inputs.labels import in_order, read_two
from rskc.metrics import revised_silhouette
from rskc.model.fitted import by_column, feature_names, judge_cases, thresholds_of, unequal_weights
from rskc.model.outliers import Distances
from rskc.model.summary import (
    bounds_cells,
    counts_of_cells,
    features_frame,
    flagged_cells,
    in_units,
)
from rskc.pictures import models as pictures
from rskc.utils.webpage import clean_names, plain_numbers
from rskc.utils.wording import cleaned, number

TEMPLATES = Path(__file__).parent / "templates"
WORDS = tomllib.loads((TEMPLATES / "words.toml").read_text("utf-8"))
# Distances may differ from those of the fit by rounding (float32), not by more than this share.
ROUNDING = 0.01
CHART_WIDTH = 48  # characters of a name in charts, which hold each name several times
# Bytes of JSON, of both tables and of that of the features. 100,000 cases with short names take
# 3.4 MB; with the 0.9 MB of Vega and the charts the page stays below 5 MB.
MOST_BYTES, MOST_FOR_FEATURES = 3_800_000, 1_200_000
MOST_CENTERS = 12
MOST_WITH_CELLS = 8  # features, and cases, with the most outlying cells
RULES = ("no", "weighted", "unweighted", "both")  # which flagged or trimmed a case
Units = Mapping[str, tuple[float, float]]
NO_UNITS: Units = MappingProxyType({})


class Facts:
    """A fitted model and its data; arrays of cases are in the order of the data.

    Raises where they do not belong together.
    """

    def __init__(self, model: Any, X: Any, case_names: Any = None, units: Units = NO_UNITS):
        if not isinstance(model, RobustSparseKMeans):
            raise TypeError(
                f"model={model!r:.60} must be a fitted RobustSparseKMeans; of a search, give its "
                "best_estimator_, and the search itself in searches."
            )
        model, X = pictures.check_fitted(model, X)
        table = pictures.table_of(model, X)  # an array, or a CSR matrix
        n, p, K = table.shape[0], model.n_features_in_, len(model.cluster_centers_)
        pictures.check_cases_of_the_fit(model, n, "what a report says")
        if case_names is None:
            case_names = getattr(model, "case_names_in_", pictures.case_names(X, n))
        names = list(case_names)
        if len(names) != n:
            raise ValueError(f"case_names has {len(names)} names for {n} cases; give one for each.")
        _check_same_data(model.distances_, judge_cases(model, X).weighted)
        self.model, self.X, self.n, self.p, self.K = model, table, n, p, K
        self.case_names, self.feature_names = clean_names(names), clean_names(feature_names(model))
        self.units = units  # center and scale of columns that were standardized, by name
        self.case_weights = unequal_weights(model)  # None if all cases count the same
        self.labels, self.sizes = model.labels_, np.bincount(model.labels_, minlength=K)
        self.distances, self.unweighted = model.distances_, model.unweighted_distances_
        self.weights = model.feature_weights_
        self.support = pictures.strongest(self.weights)  # features that have weight, largest first
        # Cases of which no feature with weight is observed; they are not among the outliers.
        self.blind = np.zeros(n, bool)
        if len(self.support) and not issparse(table):
            self.blind = np.isnan(self.columns[:, self.support]).all(axis=1)
        self.outliers = model.outliers_ & ~self.blind
        self.seen = np.isfinite(self.distances)  # not blind, nor with cells too large for squares
        self.thresholds = thresholds_of(model)
        distances = Distances(self.distances, self.unweighted)
        self.flags = pictures.flags_of(distances, self.thresholds)  # indices of FLAGS
        self.silhouette = revised_silhouette(model, X) if K > 1 else None
        # The outlying cells; None where the errors of cells are not bounded.
        self.cells = flagged_cells(model, X) if bounds_cells(model) else None

    def weight_of(self, cases: np.ndarray) -> float:
        """Return the weight of the cases of a mask; their number, if all count the same."""
        return float(cases.sum() if self.case_weights is None else self.case_weights[cases].sum())

    def mean(self, values: np.ndarray, cases: np.ndarray) -> float:
        """Return the mean of values over the cases of a mask, by weight."""
        weights = None if self.case_weights is None else self.case_weights[cases]
        return mean_by_weight(values[cases], weights)

    def mean_silhouette(self, cases: np.ndarray) -> float | None:
        """Return the mean silhouette of the cases of a mask that can be judged and are no outliers.

        None if there is none.
        """
        cases = cases & self.seen & ~self.outliers
        if self.silhouette is None or self.weight_of(cases) == 0:
            return None
        return self.mean(self.silhouette.values, cases)

    @property
    def columns(self) -> np.ndarray:
        """The data by features (n, p): of a category the first indicator, missing or not."""
        return by_column(self.model, self.X)

    @property
    def n_cells(self) -> int:
        """Number of outlying cells."""
        return 0 if self.cells is None else len(self.cells.cases)


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


# Tables: the values of each column by its key, of which the heading is in the words of the page

Columns = dict[str, np.ndarray]
FEATURE_COLUMNS = "feature rank weight group group_weight outlying_cells probability"


def features_table(facts: Facts, probabilities: np.ndarray | None = None) -> dict[str, Any]:
    """Return a row for each feature, the largest weight first."""
    model = facts.model
    frame = in_units(features_frame(model), facts.units).assign(feature=facts.feature_names)
    if "group" in frame:
        frame["group"] = clean_names(frame["group"])
    if probabilities is not None:
        frame["probability"] = probabilities.round(3)
    centers = [f"center_{k}" for k in range(facts.K if facts.K <= MOST_CENTERS else 0)]
    for center in centers if hasattr(model, "encoder_") else ():  # in words: some are categories
        words = [x if isinstance(x, str) else number(x, 4) for x in frame[center]]
        frame[center] = clean_names(words)
    if model.n_missing_:
        frame["missing"] = np.count_nonzero(np.isnan(facts.columns), axis=0)
    frame = frame.iloc[np.argsort(-facts.weights, kind="stable")]
    keys = [*FEATURE_COLUMNS.split(), *centers, "missing"]
    columns = {key: frame[key].to_numpy() for key in keys if key in frame}
    which = "features with the largest weights"
    return _table(columns, np.arange(facts.p), MOST_FOR_FEATURES, which)


def cases_table(
    facts: Facts, features: dict[str, Any], labels: Any = None, stability: np.ndarray | None = None
) -> dict[str, Any]:
    """Return a row for each case, in the order of the data, beside the table of the features."""
    model, rules, silhouette = facts.model, np.array(RULES, object), facts.silhouette
    trimmed = model.trimmed_weighted_ + 2 * model.trimmed_unweighted_.astype(int)
    columns = {
        "case": np.array(facts.case_names, object),
        "weight": facts.case_weights,
        "cluster": facts.labels,
        "distance": facts.distances,
        "unweighted": facts.unweighted,
        "outlier": np.where(facts.blind, "no data", rules[facts.flags]),
        "trimmed": rules[trimmed],
        "outlying_cells": None if facts.cells is None else counts_of_cells(model, axis=1),
    }
    if silhouette is not None:
        columns["second"] = silhouette.second
        columns["silhouette"] = np.where(facts.seen, silhouette.values.round(3), np.nan)
    columns["stability"] = None if stability is None else stability.round(3)
    if labels is not None:
        classes = in_order(read_two(labels=labels, clusters=facts.labels)[0])
        columns["class"] = np.array(clean_names(classes.names, 40), object)[classes.codes]
    known = {key: values for key, values in columns.items() if values is not None}
    far_first, left = np.argsort(-facts.distances, kind="stable"), MOST_BYTES
    left -= _json_bytes(features["data"])
    return _table(known, far_first, left, "cases farthest from their centers")


def _fitting(columns: Columns, order: np.ndarray, budget: int) -> np.ndarray:
    """Return the first rows in this order whose JSON fits into the budget, sorted."""
    names, *others = columns.values()
    sample = order[:: len(order) // 1000 + 1]
    row = 0.0
    for values in others:  # words are stored once
        numbers = values.dtype != object
        row += _json_bytes(plain_numbers(values[sample])) / len(sample) if numbers else 3.0
    order = order[: max(int(budget / (3 + row)), 0)]  # no more would fit without any name
    sizes = np.array([len(x.encode()) + 5 * sum(map(x.count, "<>&")) for x in names[order]], int)
    return np.sort(order[np.cumsum(sizes + 3 + row) <= budget])


def _json_bytes(value: Any) -> int:
    """Return the number of bytes that a value takes on the page."""
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def _table(columns: Columns, order: np.ndarray, budget: int, which: str) -> dict[str, Any]:
    """Return the rows that fit, as plain columns; words that repeat are stored once, with codes."""
    keep = _fitting(columns, order, budget)
    described, data, words = [], {}, {}
    for key, values in columns.items():
        kind = {"O": "text", "b": "flag"}.get(values.dtype.kind, "number")
        label = WORDS["headings"].get(key, key.replace("_", " ").capitalize())
        described.append({"key": key, "label": label, "kind": kind})
        data[key] = values[keep].tolist() if kind == "text" else plain_numbers(values[keep])
        if kind == "text" and len(data) > 1:
            words[key] = list(dict.fromkeys(data[key]))
            codes = {word: i for i, word in enumerate(words[key])}
            data[key] = [codes[word] for word in data[key]]
    n, held = len(order), len(keep)
    note = "" if held == n else f"Of {n:,}, the table holds the {held:,} {which}."
    return {"columns": described, "data": data, "words": words, "n_rows": n, "note": note}


# Outlying cells


def cells_of(facts: Facts) -> dict[str, Any] | None:
    """Return how many cells are outlying, and the features and cases that have most of them."""
    cells = facts.cells
    if cells is None or not facts.n_cells:
        return None
    return {
        "n_cells": facts.n_cells,
        "share": facts.n_cells / (facts.n * facts.p - facts.model.n_missing_),
        "cutoff": float(facts.model.cell_cutoff_),
        "features": _most(cells.features, cells.scales, facts.feature_names, facts.n),
        "cases": _most(cells.cases, cells.scales, facts.case_names, facts.p),
    }


def _most(places: np.ndarray, scales: np.ndarray, names: list[str], n: int) -> dict[str, Any]:
    """Return the features, or cases, with the most outlying cells; each has ``n`` cells."""
    counts = np.bincount(places, minlength=len(names))
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    rows = [
        {
            "name": cleaned(names[j]),
            "n_cells": int(counts[j]),
            "share": float(counts[j] / n),
            # The cells are sorted, the farthest first.
            "farthest": float(f"{scales[np.argmax(places == j)]:.4g}"),
        }
        for j in order[:MOST_WITH_CELLS]
    ]
    return {"n": len(order), "rows": rows}
