"""The sentences of reports and summaries: several results, and all that is said of them.

``python tests/sentences.py`` rewrites ``sentences.txt``; read the difference as a reader of a page
would before it is committed.
"""

import copy
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from rskc import RobustSparseKMeans
from rskc.model.summary import FeatureCounts
from rskc.report import summarize
from rskc.report._charts import curves_of
from rskc.report._words import advise
from rskc.selection import GridSearch, Stability
from rskc.selection.findings import describe, p_value
from search_kinds import HOW, MODEL, SEARCHES, corners, fitted

KEPT = Path(__file__).with_name("sentences.txt")


def make_data(n=60, p=6):
    """Three clusters in two of the features, an outlying case, and one outlying in noise."""
    X = np.random.default_rng(0).normal(size=(n, p))
    X[: n // 3, :2] += 8
    X[-n // 3 :, :2] -= 8
    X[3, 0], X[n - 5, 4] = 60, 40
    return X


def fit(X, K=3, sample_weight=None, **params):
    params = {"l1_bound": 1.4, "random_state": 0, "trim": 0.1} | params
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RobustSparseKMeans(K, **params).fit(X, sample_weight=sample_weight)


def search_stability(X, numbers=(2, 3), **how):
    how = {"n_splits": 3, "n_references": 4, "random_state": 0, "n_jobs": 1, **how}
    model = RobustSparseKMeans(n_init=5, random_state=0)
    return Stability(model, list(numbers), progress=False, **how).fit(X)


@cache
def stable():
    """Return a table with cases between the clusters, and a search."""
    X = make_data(90)
    X[::15, :2] *= 0.5
    return X, search_stability(X)


# Numbers that call for no advice, and changes to them


NOT_CONVERGED = "Not converged after max_iter=10 iterations; raise max_iter or tol."
EXPOSED = (
    "One of the clusters keeps 3 cases only (a, b), and up to 5 cases may be outliers; no solution "
    "without such a cluster was found. Lower trim or n_clusters."
)
UNITS = {
    "warnings": [
        "salary spreads 12,000 times as far as height: the weight of a feature follows its "
        "variance, so if units differ, prepare the features first, by Preparer() in a pipeline."
    ],
    "warning_kinds": ["units differ"],
}
WIDE = {"largest": "x1", "small": "height", "ratio": 4.0}
SEARCHED = {"name": "Stability", "suggests": {"n_clusters": 2}, "table": {"rows": [["2"]]}}
NONE = SEARCHED | {"suggests": {"n_clusters": 1}}


def facts(**changes):
    """Numbers that call for no advice, and changes to them: ``result__n_trim=3`` and the like."""
    made = {
        "data": {"n_cases": 100, "n_features": 50, "n_missing": 0, "share_missing": 0.0}
        | {"n_blind": 0, "n_empty": 0, "n_infinite": 0, "spreads": None, "skewness": 0.0},
        "result": {"n_clusters": 2, "n_trim": 5, "n_outliers": 5, "l1_bound": 3.0, "trim": 0.05}
        | {"top_feature": "x1", "top_share": 0.2, "silhouette": 0.6, "n_selected": 4, "n_units": 50}
        | {"n_different": None, "n_enough": None, "trim_given": True, "automatic": False},
        "clusters": [
            {"cluster": 0, "size": 60, "silhouette": 0.6},
            {"cluster": 1, "size": 40, "silhouette": 0.6},
        ],
        "warnings": [],
        "warning_kinds": [],
        "searches": [SEARCHED],
        "stability": None,
    }
    made = copy.deepcopy(made)
    for name, value in changes.items():
        part, _, key = name.partition("__")
        if key:
            made[part][key] = value
        else:
            made[part] = value
    made["result"]["outlier_share"] = made["result"]["n_outliers"] / made["data"]["n_cases"]
    return made


def clusters(*sizes, silhouette=0.6):
    return [{"cluster": k, "size": s, "silhouette": silhouette} for k, s in enumerate(sizes)]


ONE = {"result__n_clusters": 1, "clusters": clusters(100)}
CHANGES = [
    {"warnings": ["Of an old file."], "warning_kinds": [""]},
    {"warnings": [NOT_CONVERGED], "warning_kinds": ["not converged"]},
    {"warnings": [EXPOSED], "warning_kinds": ["exposed cluster"]},
    {**ONE, "searches": []},
    {**ONE, "searches": [NONE]},
    {**ONE, "searches": [NONE | {"table": {"rows": []}}]},
    {"searches": []},
    {"result__n_selected": 50},
    {"result__n_different": 0, "result__n_enough": 1},
    {"result__n_selected": 50, "result__n_different": 50, "result__n_enough": 7},
    {"clusters": clusters(97, 3)},
    {"clusters": clusters(99, 1)},
    {"result__l1_bound": 50**0.5},
    {"result__l1_bound": 1.0, "result__top_share": 1.0},
    {"result__top_share": 0.97},
    {"result__top_share": 0.97, "result__top_feature": "annual spend"},
    {"result__top_share": 0.97, "data__spreads": WIDE},
    {"result__l1_bound": 1.0, "result__top_share": 1.0, "result__automatic": True},
    {"result__silhouette": 0.1},
    {"clusters": clusters(50, 50, silhouette=0.1)},
    {"result__n_outliers": 14},
    {"result__n_outliers": 15, "result__n_trim": 15},
    {"result__n_outliers": 15, "result__trim_given": False},
    {"stability": [0.9, 0.4]},
    {**ONE, "searches": [SEARCHED | {"suggests": {}, "n_slices": 3}]},
    {"result__n_outliers": 1},
    {"result__n_outliers": 0},
    {"data__share_missing": 0.5},
    {"data__n_blind": 4},
    {"data__n_blind": 4, "data__n_empty": 4},
    {"data__n_infinite": 1},
    UNITS,
    UNITS | {"result__top_share": 0.97},
    {"data__skewness": 0.3},
    {"searches": [SEARCHED | {"name": "Clest", "suggests": {"n_clusters": 4}}]},
    {"searches": [SEARCHED, {"name": "GapL1", "suggests": {"l1_bound": 5.0}}]},
]
OPTIONS = {
    "trim": "--trim",
    "l1_bound": "--l1-bound",
    "n_clusters": "--clusters",
    "max_iter": "--max-iter",
    "drop": "--drop",
    "Stability": "rskc select-k",
    "Clest": "rskc select-k --method clest",
    "GapL1": "rskc select-l1",
}


# Results


def with_outliers():
    X = make_data()
    return summarize(fit(X), X, labels=np.repeat(["a", "b", "c"], 20))


def of_customers():
    rng = np.random.default_rng(0)
    is_big = np.arange(100) < 40
    table = pd.DataFrame(
        {
            "annual spend": np.where(is_big, 84.0, 12.0) + rng.normal(0, 0.9, 100),
            "returns": np.where(is_big, 0.2, 3.0) + rng.normal(0, 0.1, 100),
            "city": np.where(is_big, "Vienna", "Graz"),
        },
        index=[f"customer {i}" for i in range(100)],
    )
    units = {"annual spend": (0.0, 100.0), "returns": (0.0, 10.0)}
    return summarize(fit(table, 2, l1_bound=None), table, units=units)


def with_outlying_cells():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 30))
    X[:, :10] += 4.0 * (np.arange(80)[:, None] % 2)
    X.flat[rng.choice(80 * 30, 40, replace=False)] += 20.0
    table = pd.DataFrame(X, columns=[f"gene {j}" for j in range(30)])
    return summarize(RobustSparseKMeans(2, random_state=0).fit(table), table)


def of_a_search():
    X, search = stable()
    return summarize(search.best_estimator_, X, searches=search)


def of_a_gradient():
    X, search = stable()
    search = copy.copy(search)
    search.n_clusters_, search.n_slices_ = 1, 3
    search.table_ = search.table_.assign(chosen=False, p_value=0.001)
    search.best_estimator_ = fit(X, 1)
    return summarize(search.best_estimator_, X, searches=search)


def with_weights():
    X = make_data()
    return summarize(fit(X, sample_weight=np.arange(60) % 4), X)


def with_missing_cells():
    X = make_data()
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    X[7] = np.nan
    return summarize(fit(X, trim=0.05), X)


def of_one_cluster():
    X = make_data()
    return summarize(fit(X, 1, l1_bound=None), X)


RESULTS = {
    "Three clusters, with outliers and known classes": with_outliers,
    "Two clusters, in units and with a category": of_customers,
    "Outlying cells": with_outlying_cells,
    "A stability search": of_a_search,
    "A gradient": of_a_gradient,
    "Case weights": with_weights,
    "Missing cells": with_missing_cells,
    "One cluster": of_one_cluster,
}


# Summaries of models

START = make_data()[[0, 25, 50]]
ASKED = [
    {},
    {"trim": 0},
    {"l1_bound": None},
    {"l1_bound": "half"},
    {"l1_bound": "auto"},
    {"l1_bound": "auto", "n_features": 2},
    {"trim": "auto"},
    {"reweight": True},
    {"n_init": 1},
    {"init": "robust", "n_init": "auto"},
    {"random_state": None},
    {"init": START},
    {"init": lambda X, K, random_state: START},
    {"outlier_cutoff": 2},
    {"outlier_rule": "paper"},
]
COUNTS = [
    (500, 49, 42, None, None),
    (500, 49, 1, None, None),
    (500, 1, 1, None, None),
    (2000, 1337, 600, 1337, 24),
    (9, 9, 9, 5, 5),
    (9, 1, 1, 1, 1),
    (9, 1, 1, 0, 1),
]


def summaries() -> Iterator[str]:
    """Yield what models say of their settings, of features and of cells, one fact per line."""
    for asked in ASKED:
        yield from fit(make_data(), **asked).summary().partition("Found:")[0].splitlines()
    blind, huge = make_data(), make_data()
    blind[7], huge[7] = np.nan, 1e300
    for table in (blind, huge):
        _, _, found = fit(table).summary().partition("missing    ")
        yield " ".join(found.partition("objective")[0].split())
    yield from (FeatureCounts(*counts).words for counts in COUNTS)


def searches() -> Iterator[str]:
    """Yield what searches say of themselves, their rules and their choice, one fact per line."""
    clest, gap = copy.copy(fitted("Clest")), copy.copy(fitted("GapL1"))
    found = [fitted(name) for name in SEARCHES]
    found.append(GridSearch(MODEL, [2, 3], None, [0, 0.1], **HOW).fit(corners()))
    found.append(copy.copy(clest))
    found[-1].n_clusters_, found[-1].table_ = 1, clest.table_.assign(chosen=False)
    for rule, level in (("agreement", 0.05), ("agreement", 0.5), ("paper", 0.05), ("paper", 0)):
        found.append(copy.copy(clest).set_params(rule=rule, level=level))
    found.append(gap.set_params(rule="largest"))
    gap.table_ = gap.table_.assign(chosen=gap.table_.l1_bound == gap.l1_bound_)
    for search in found:
        said = describe(search)
        values = ", ".join(f"{name}={value:.3g}" for name, value in said.suggests.items())
        yield f"{said.headline} Chosen: {values}; {said.reason}"
        yield f"  {said.explanation}"
        yield f"  columns: {', '.join(said.table['labels'])}"
    yield " ".join(map(p_value, (np.nan, 0.0009, 0.001, 0.25)))


def lines_of(summary) -> Iterator[str]:
    """Yield what the page says, one fact per line."""
    yield summary["headline"]
    yield from summary["meaning"]
    for item in summary["advice"]:
        yield f"{'ALARM' if item['alarm'] else 'advice'} {item['about']}: {item['text']}"
    for row, group in zip(summary["clusters"], summary["markers"], strict=True):
        yield f"cluster {row['cluster']}, {row['name']}: {row['sentence']}"
        for marker in group["top"][:2]:
            yield f"  marker {marker['feature']}: {marker['words']}"
    if summary["sure"]:
        for point in summary["sure"]["points"]:
            yield f"sure, {point['about']}: {point['text']}"
        for row in summary["sure"]["clusters"]:
            yield f"  cluster {row['cluster']} is {row['word']}"
        yield f"  {summary['sure']['key']}"
    for section in summary["searches"]:
        yield f"search: {section['found']}"
    for chart in [*summary["charts"].values(), *curves_of(summary)]:
        yield f"chart {chart['title']}: {chart['caption']} {chart.get('hint', '')}".rstrip()
        yield f"  in words: {chart['alt']}"
        yield from (f"  key: {entry['label']}" for entry in chart["key"] if "cluster" not in entry)
        yield from (f"  note: {note}" for note in chart["notes"])


def written() -> str:
    """Return all sentences."""
    parts, known = [], set()
    for title, make in RESULTS.items():
        new = [line for line in lines_of(make()) if line not in known]
        known.update(line for line in new if line.startswith("chart "))
        parts += [f"# {title}", "", *new, ""]
    parts += ["# Summaries of models", "", *dict.fromkeys(summaries()), ""]
    parts += ["# Searches", "", *dict.fromkeys(searches()), ""]
    parts += ["# Advice, in Python and at a terminal", ""]
    for changes in CHANGES:
        both = (advise(facts(**changes), names) for names in ({}, OPTIONS))
        for item, typed in zip(*both, strict=True):
            parts.append(f"{item['about']}: {item['text']}")
            parts += [f"  {text}" for text in dict.fromkeys((typed["text"], typed["brief"]))]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    KEPT.write_text(written(), "utf-8")
    print(f"{KEPT} has {len(KEPT.read_text('utf-8').splitlines())} lines; read what changed.")
