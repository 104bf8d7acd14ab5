"""What the page is about: a fitted model and its data, and the tables of features and cases."""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from rskc.estimator import RobustSparseKMeans
from rskc.inputs.labels import in_order, read_two
from rskc.model.fitted import by_column, feature_names, judge_cases, thresholds_of, unequal_weights
from rskc.model.outliers import Distances
from rskc.model.summary import bounds_cells, cells_frame, in_units
from rskc.pictures import models as pictures
from rskc.utils.webpage import clean_names, embedded_json, plain_numbers
from rskc.utils.wording import count, listed, number, percent, sentence_list

TEMPLATES = Path(__file__).parent / "templates"
WORDS = tomllib.loads((TEMPLATES / "words.toml").read_text("utf-8"))
SPECS = json.loads((TEMPLATES / "charts.json").read_text("utf-8"))  # of charts
# Distances may differ from those of the fit by rounding (float32), not by more than this share.
ROUNDING = 0.01
CHART_WIDTH = 48  # characters of a name in charts, which hold each name several times
# Bytes of JSON, of all tables and of those of features and cells. 100,000 cases with short names
# take 3.4 MB; with the 0.9 MB of Vega and the charts the page stays below 5 MB.
MOST_BYTES, MOST_FOR_FEATURES, MOST_FOR_CELLS = 3_700_000, 1_200_000, 300_000
MOST_CENTERS = 12
RULES = ("no", "weighted", "unweighted", "both", "no")  # which flagged or trimmed a case
Units = Mapping[str, tuple[float, float]]
NO_UNITS: Units = MappingProxyType({})


class Facts:
    """A fitted model and its data; arrays of cases are in the order of the data.

    Raises where they do not belong together.
    """

    def __init__(
        self,
        model: Any,
        X: Any,
        case_names: Any = None,
        units: Units = NO_UNITS,
        labels: Any = None,
    ):
        if not isinstance(model, RobustSparseKMeans):
            raise TypeError(
                f"model={model!r:.60} must be a fitted RobustSparseKMeans; of a search, give its "
                "best_estimator_, and the search itself in searches."
            )
        model, X = pictures.check_fitted(model, X)
        cases = model.cases_frame(X)  # which refuses another number of cases
        n, names = len(cases), list(cases["case"] if case_names is None else case_names)
        if len(names) != n:
            raise ValueError(f"case_names has {len(names)} names for {n} cases; give one for each.")
        _check_same_data(model.distances_, judge_cases(model, X).weighted)
        self.model, self.X = model, pictures.table_of(model, X)  # an array, or a CSR matrix
        self.n, self.p, self.K = n, model.n_features_in_, len(model.cluster_centers_)
        self.cases, self.columns = cases, by_column(model, self.X)  # the data by features (n, p)
        self.case_names, self.feature_names = clean_names(names), clean_names(feature_names(model))
        self.units = units  # center and scale of columns that were standardized, by name
        self.case_weights = unequal_weights(model)  # None if all cases count the same
        self.masses = np.ones(n) if self.case_weights is None else self.case_weights
        self.labels, self.sizes = model.labels_, np.bincount(model.labels_, minlength=self.K)
        self.distances, self.unweighted = model.distances_, model.unweighted_distances_
        self.weights = model.feature_weights_
        self.support = pictures.strongest(self.weights)  # features that have weight, largest first
        # Cases of which no feature with weight is observed; they are not among the outliers.
        self.blind = cases["observed"].to_numpy() == 0
        self.outliers = model.outliers_ & ~self.blind
        self.seen = np.isfinite(self.distances)  # not blind, nor with cells too large for squares
        self.regular = self.seen & ~self.outliers
        self.thresholds = thresholds_of(model)
        distances = Distances(self.distances, self.unweighted)
        self.flags = pictures.flags_of(distances, self.thresholds, model.trimmed_)  # as in FLAGS
        # The outlying cells; None where the errors of cells are not bounded, or none is outlying.
        has_cells = bounds_cells(model) and model.outlying_cells_.nnz
        self.cells = cells_frame(model, X) if has_cells else None
        # Known classes, in order; None if they are not known.
        both = None if labels is None else read_two(labels=labels, clusters=self.labels)
        self.classes = both and in_order(both[0])

    def mean_silhouette(self, cases: np.ndarray) -> float | None:
        """Return the mean silhouette, by weight, of the cases of a mask that are regular.

        None if there is none.
        """
        masses = np.where(cases & self.regular, self.masses, 0.0)
        if self.K == 1 or not masses.any():
            return None
        return float(np.average(self.cases["silhouette"], weights=masses))


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

FEATURE_COLUMNS = "feature rank weight group group_weight outlying_cells probability"
CASE_COLUMNS = "case weight cluster distance unweighted_distance outlying_cells"


def features_table(facts: Facts, probabilities: np.ndarray | None = None) -> dict[str, Any]:
    """Return a row for each feature, the largest weight first."""
    model = facts.model
    frame = in_units(model.features_frame(), facts.units).assign(feature=facts.feature_names)
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
    facts: Facts, others: list[dict[str, Any] | None], stability: np.ndarray | None = None
) -> dict[str, Any]:
    """Return a row for each case, in the order of the data, beside other tables of the page."""
    model, rules = facts.model, np.array(RULES, object)
    trimmed = model.trimmed_weighted_ + 2 * model.trimmed_unweighted_.astype(int)
    frame = facts.cases
    columns = {key: frame[key].to_numpy() for key in CASE_COLUMNS.split() if key in frame}
    columns["case"] = np.array(facts.case_names, object)
    columns["outlier"] = np.where(facts.blind, "no data", rules[facts.flags])
    columns["trimmed"] = rules[trimmed]
    if facts.K > 1:
        columns["second_cluster"] = frame["second_cluster"].to_numpy(int)
        columns["silhouette"] = np.where(facts.seen, frame["silhouette"].round(3), np.nan)
    if stability is not None:
        columns["stability"] = stability.round(3)
    if facts.classes is not None:
        names = np.array(clean_names(facts.classes.names, 40), object)
        columns["class"] = names[facts.classes.codes]
    far_first = np.argsort(-facts.distances, kind="stable")
    left = MOST_BYTES - sum(len(embedded_json(t["data"]).encode()) for t in others if t)
    return _table(columns, far_first, left, "cases farthest from their centers")


def cells_table(facts: Facts) -> dict[str, Any] | None:
    """Return how many cells are outlying, and a row for each of them, the farthest first."""
    if facts.cells is None:
        return None
    frame = in_units(facts.cells, facts.units)
    columns = {
        "case": np.array(facts.case_names, object)[frame["row"]],
        "feature": np.array(facts.feature_names, object)[frame["column"]],
        **{key: frame[key].to_numpy() for key in ("cluster", "value", "center", "scales")},
    }
    n_cells = len(frame)
    which = "cells farthest from their centers"
    return _table(columns, np.arange(n_cells), MOST_FOR_CELLS, which) | {
        "share": n_cells / (facts.n * facts.p - facts.model.n_missing_),
        "cutoff": float(facts.model.cell_cutoff_),
    }


def _table(
    columns: dict[str, np.ndarray], order: np.ndarray, budget: int, which: str
) -> dict[str, Any]:
    """Return the first rows in this order that fit into the budget of bytes, sorted."""
    sample = order[:: len(order) // 1000 + 1]
    each = len(embedded_json(_plain_columns(columns, sample)).encode()) / len(sample)
    keep = np.sort(order[: max(int(budget / each), 0)])
    data, words = _plain_columns(columns, keep)
    described = [
        {
            "key": key,
            "label": WORDS["headings"].get(key, key.replace("_", " ").capitalize()),
            "kind": "text" if values.dtype == object else "number",
        }
        for key, values in columns.items()
    ]
    n, held = len(order), len(keep)
    note = "" if held == n else f"Of {n:,}, the table holds the {held:,} {which}."
    return {"columns": described, "data": data, "words": words, "n_rows": n, "note": note}


def _plain_columns(columns: dict[str, np.ndarray], rows: np.ndarray) -> tuple[dict, dict]:
    """Return some rows as plain columns, and the words of those that are codes.

    Words other than those of the first column, the names, repeat: they are stored once.
    """
    from pandas import factorize

    data: dict[str, list] = {}
    words: dict[str, list] = {}
    for key, values in columns.items():
        if values.dtype != object:
            data[key] = plain_numbers(values[rows])
        elif not data:
            data[key] = values[rows].tolist()
        else:
            codes, distinct = factorize(values[rows])
            data[key], words[key] = codes.tolist(), distinct.tolist()
    return data, words


# Templates of the page and its words


def needed(package: str) -> Any:
    """Import a package of the extra ``report``, or say how to install it."""
    try:
        return __import__(package)
    except ImportError as error:
        raise ImportError(
            f'A report needs {error.name}, which is not installed: pip install "rskc[report]".'
        ) from error


@cache
def templates() -> Any:
    jinja2, markup = needed("jinja2"), needed("markupsafe").Markup
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=lambda name: name is None or name.endswith(".html"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "percent": percent, "counted": count, "ends": _ends}
    environment.filters["listed"] = listed
    environment.filters["short_list"] = lambda names: sentence_list(clean_names(names, 32))
    environment.filters["json"] = lambda value: markup(embedded_json(value))
    return environment


def paragraphs(name: str, **values: Any) -> list[tuple[str, str]]:
    """Fill a template of text, and return the first line of each paragraph and the others."""
    text = templates().get_template(name).render(values)
    parts = [part.strip().partition("\n") for part in text.split("\n\n") if part.strip()]
    return [(first, re.sub(r"[ \n]+", " ", rest)) for first, _, rest in parts]


def _ends(values: Iterable[Any], write: Callable[[Any], str], between: str) -> str:
    """Write the least and the largest of some values, or one where both read the same."""
    ends = sorted(values)
    return f" {between} ".join(dict.fromkeys((write(ends[0]), write(ends[-1]))))
