"""The tables of features and of cases: columns for the page, and for its downloads."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from rskc.labels import in_order, read_two
from rskc.report._facts import Facts
from rskc.report._words import plain_numbers, shown_all

# Bytes of JSON, of both tables and of that of the features. 100,000 cases with short names take
# 3.0 MB; with the 0.9 MB of Vega and the charts the page stays below 5 MB.
MOST_BYTES, MOST_FOR_FEATURES = 3_300_000, 1_200_000
MOST_CENTERS = 12
TRIMMED = ("no", "weighted", "unweighted", "both")


def features_table(facts: Facts) -> dict[str, Any]:
    """A row a feature, the largest weight first."""
    order = np.argsort(-facts.weights, kind="stable")
    columns = [
        _column("feature", "Feature", "text"),
        _column("rank", "Rank", "number"),
        _column("weight", "Weight", "number"),
    ]
    values = {
        "feature": np.array(facts.feature_names, object)[order],
        "rank": np.arange(1, facts.p + 1),
        "weight": facts.weights[order],
    }
    for k in range(facts.K) if facts.K <= MOST_CENTERS else ():
        columns.append(_column(f"center_{k}", f"Center {k}", "number"))
        values[f"center_{k}"] = facts.centers[k, order]
    if facts.model.n_missing_:
        columns.append(_column("missing", "Missing cells", "number"))
        values["missing"] = np.count_nonzero(np.isnan(facts.X), axis=0)[order]
    keep = _fitting(values, np.arange(facts.p), MOST_FOR_FEATURES)
    return _table(columns, values, keep, "features with the largest weights")


def cases_table(facts: Facts, labels: Any = None, taken: int = 0) -> dict[str, Any]:
    """A row a case, in the order of the data; so many bytes are taken by other tables."""
    columns, values = _case_columns(facts)
    if labels is not None:
        classes = in_order(read_two(labels=labels, clusters=facts.labels)[0])
        columns.append(_column("class", "True class", "text"))
        values["class"] = np.array(shown_all(classes.names, 40), object)[classes.codes]
    far_first = np.argsort(-facts.distances, kind="stable")
    keep = _fitting(values, far_first, MOST_BYTES - taken)
    return _table(columns, values, keep, "cases farthest from their centers")


def _case_columns(facts: Facts) -> tuple[list[dict[str, str]], dict[str, np.ndarray]]:
    columns = [
        _column("case", "Case", "text"),
        _column("cluster", "Cluster", "number"),
        _column("distance", "Weighted distance", "number"),
        _column("outlier", "Outlier", "flag"),
        _column("trimmed", "Trimmed", "text"),
    ]
    values = {
        "case": np.array(facts.case_names, object),
        "cluster": facts.labels,
        "distance": facts.distances,
        "outlier": facts.outliers,
        "trimmed": np.array(TRIMMED, object)[facts.rules],
    }
    if facts.silhouette is not None:
        columns += [
            _column("second", "Second cluster", "number"),
            _column("silhouette", "Silhouette", "number"),
        ]
        values |= {
            "second": facts.silhouette.second,
            "silhouette": np.where(facts.seen, facts.silhouette.values.round(3), np.nan),
        }
    return columns, values


def _plain_column(column: np.ndarray) -> list:
    return column.tolist() if column.dtype == object else plain_numbers(column)


def _column(key: str, label: str, kind: str) -> dict[str, str]:
    return {"key": key, "label": label, "kind": kind}


def _fitting(values: dict[str, np.ndarray], order: np.ndarray, budget: int) -> np.ndarray:
    """The first rows, in this order, that fit in so many bytes; they come back sorted."""
    names, *others = values.values()
    row = sum(_bytes_a_row(column[order[:: len(order) // 1000 + 1]]) for column in others)
    sizes = np.array([len(name.encode()) + 5 * sum(map(name.count, "<>&")) for name in names])
    return np.sort(order[np.cumsum(sizes[order] + 3 + row) <= budget])


def _bytes_a_row(sample: np.ndarray) -> float:
    if sample.dtype == object:  # words are stored once
        return 3.0
    return json_bytes(plain_numbers(sample)) / len(sample)


def json_bytes(value: Any) -> int:
    """How many bytes a value takes on the page."""
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def _table(
    columns: list[dict[str, str]], values: dict[str, np.ndarray], keep: np.ndarray, which: str
) -> dict[str, Any]:
    """The rows to keep, as plain columns; words that repeat are stored once, with codes."""
    data, words = {}, {}
    for key, column in values.items():
        data[key] = _plain_column(column[keep])
        if column.dtype == object and key != columns[0]["key"]:
            words[key] = list(dict.fromkeys(data[key]))
            codes = {word: i for i, word in enumerate(words[key])}
            data[key] = [codes[word] for word in data[key]]
    n, held = len(values[columns[0]["key"]]), len(keep)
    note = "" if held == n else f"Of {n:,}, the table holds the {held:,} {which}."
    return {"columns": columns, "data": data, "words": words, "n_rows": n, "note": note}
