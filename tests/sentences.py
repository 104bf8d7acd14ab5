"""Results, and all that reports, summaries and searches say of them, for ``sentences.txt``."""

import copy
import re
import textwrap
import warnings
from collections.abc import Iterator
from functools import cache

import numpy as np

from rskc import RobustSparseKMeans
from rskc.report._words import advise
from rskc.selection import Stability
from rskc.selection.findings import describe

UNITS = {
    "warnings": [
        "salary spreads 12,000 times as far as height: the weight of a feature follows its "
        "variance, so if units differ, prepare the features first, by Preparer() in a pipeline."
    ],
    "warning_kinds": ["units differ"],
}
SEARCHED = {"name": "Stability", "suggests": {"n_clusters": 2}, "table": {"rows": [["2"]]}}
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


def changed(search, **attributes):
    """Return a copy of a search that has found something else."""
    search = copy.copy(search)
    vars(search).update(attributes)
    return search


def facts(**changes):
    """Numbers that call for no advice, and changes to them: ``result__n_trim=3`` and the like."""
    made = {
        "data": {"n_cases": 100, "n_features": 50, "n_missing": 0, "share_missing": 0.0}
        | {"n_blind": 0, "is_skewed": False},
        "result": {"n_clusters": 2, "n_trim": 5, "n_outliers": 5, "l1_bound": 3.0, "trim": 0.05}
        | {"top_features": ["x1"], "top_share": 0.2, "silhouette": 0.6, "n_selected": 4}
        | {
            "n_units": 50,
            "n_different": None,
            "n_enough": None,
            "trim_given": True,
        },
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


# ---- What is said, line by line


def page(summary) -> Iterator[str]:
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
        for point in summary["sure"]:
            yield f"sure, {point['about']}: {point['text']}"
        for row in summary["clusters"]:
            yield f"  stability of cluster {row['cluster']}: {row['stability']}"
    for section in summary["searches"]:
        yield f"search: {section['found']}"


def charts(summary) -> Iterator[str]:
    """Yield what the charts say."""
    curves = [search for search in summary["searches"] if search["table"]["rows"]]
    for chart in [*summary["charts"].values(), *curves]:
        yield f"chart {chart['title']}: {chart['caption']} {chart.get('hint', '')}".rstrip()
        yield f"  in words: {chart['alt']}"
        yield from (f"  key: {entry['label']}" for entry in chart["key"] if "cluster" not in entry)
        yield from (f"  note: {note}" for note in chart["notes"])


def described(search) -> Iterator[str]:
    """Yield what a search says of itself, its rule and its choice."""
    said = describe(search)
    values = ", ".join(f"{name}={value:.3g}" for name, value in said.suggests.items())
    yield f"{said.headline} Chosen: {values}; {said.reason}"
    yield f"  {said.explanation}"
    yield f"  columns: {', '.join(said.table['labels'])}"


def advice(**changes) -> Iterator[str]:
    """Yield the one advice on these numbers, in Python and at a terminal."""
    ((item,), (typed,)) = (advise(facts(**changes), names) for names in ({}, OPTIONS))
    for name in OPTIONS:
        assert name not in re.sub(r"--[\w-]+|trims|trimmed", "", typed["brief"])
    assert len(textwrap.wrap(f"{typed['about']}: {typed['brief']}", 80)) <= 2
    yield f"{item['about']}: {item['text']}"
    yield from (f"  {text}" for text in dict.fromkeys((typed["text"], typed["brief"])))
