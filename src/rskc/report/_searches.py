"""Searches for K, the bound and the trimming, as plain sections of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rskc.report._words import CHART_WIDTH, count, number, plain_numbers, shown
from rskc.selection import (
    Clest,
    FeaturePath,
    GapK,
    GapL1,
    GridSearch,
    PredictionStrength,
    TrimCurves,
)
from rskc.selection.settings import SAME

MOST_LINES = 15  # features of a path that are drawn


def sections_of(searches: Any) -> list[dict[str, Any]]:
    """A section for each search, in the order given."""
    one = isinstance(searches, tuple(SECTIONS)) or not isinstance(searches, Iterable)
    return [_section(search) for search in ([searches] if one else searches)]


def _section(search: Any) -> dict[str, Any]:
    for kind, make in SECTIONS.items():
        if isinstance(search, kind):
            if kind is not FeaturePath:
                check_is_fitted(search, "table_")
            found = {"kind": kind.__name__, "name": kind.__name__, **make(search)}
            return found | {"explain": found["explain"] + _on_part(search)}
    known = ", ".join(kind.__name__ for kind in SECTIONS)
    raise TypeError(f"searches has {search!r:.60}; of use for a report are {known}.")


def _on_part(search: Any) -> str:
    n, n_used = getattr(search, "n_samples_", 0), getattr(search, "n_samples_used_", 0)
    return f" Searched on {n_used:,} of the {n:,} cases, drawn at random." if n_used < n else ""


def _table(frame: Any, labels: dict[str, str]) -> dict[str, Any]:
    """Some columns of a table, with words for headings; ``chosen`` marks rows."""
    kept = {name: label for name, label in labels.items() if name in frame}
    return {
        "labels": list(kept.values()),
        "rows": [list(row) for row in zip(*(_cells(frame[name]) for name in kept), strict=True)],
        "chosen": frame["chosen"].tolist() if "chosen" in frame else [False] * len(frame),
    }


def _cells(column: Any) -> list[str]:
    values = column.to_numpy()
    if values.dtype.kind == "b":
        return ["yes" if value else "no" for value in values]
    return ["–" if value is None else number(float(value)) for value in values.tolist()]


def _columns(frame: Any, *names: str) -> dict[str, list]:
    return {name: plain_numbers(frame[name].to_numpy(float), 5) for name in names}


def _clusters(n: int) -> str:
    return f"{n} clusters" if n != 1 else "1 cluster, that is none"


def _of_clest(search: Clest) -> dict[str, Any]:
    table, K = search.table_, search.n_clusters_
    best = table[table.chosen]
    alt = f"Lines of the prediction error by number of clusters; chosen: {_clusters(K)}"
    if len(best):
        row = best.iloc[0]
        alt += f", error {row.observed_cer:.3f} against {row.reference_cer:.3f} without clusters"
    return {
        "title": "How many clusters: Clest",
        "found": f"Clest suggests {_clusters(K)}.",
        "explain": "Part of the cases foretells the clusters of the rest, again and again. The "
        "error should be small, and much smaller than in made-up data without clusters.",
        "suggests": {"n_clusters": K},
        "alt": f"{alt}.",
        "curve": _columns(table, "n_clusters", "observed_cer", "reference_cer", "agreement"),
        "chosen": K,
        "splits": _long(table.n_clusters, search.observed_cers_),
        "table": _table(
            table,
            {
                "n_clusters": "Clusters",
                "observed_cer": "Error",
                "reference_cer": "Error without clusters",
                "agreement": "Agreement",
                "p_value": "p-value",
                "significant": "Passes",
            },
        ),
    }


def _long(numbers: Any, values: np.ndarray) -> dict[str, list]:
    """A row for each entry of an array (repeats, numbers)."""
    return {
        "n_clusters": plain_numbers(np.tile(numbers, len(values))),
        "value": plain_numbers(values.ravel()),
    }


def _of_gap_l1(search: GapL1) -> dict[str, Any]:
    table, bound = search.table_, search._chosen()["l1_bound"]
    n_features = int(search.best_estimator_.get_support().sum())
    told = f"an L1 bound of {number(bound)}, which gives weight to {count(n_features, 'feature')}"
    return {
        "title": "How many features: the gap",
        "found": f"The gap suggests {told}.",
        "explain": "The gap tells how much better the clusters are told apart than in the same "
        "data with each column shuffled. Taken is the least bound within one standard error of "
        "the largest gap."
        if search.rule == "1se"
        else "The gap tells how much better the clusters are told apart than in the same data with "
        "each column shuffled. Taken is the bound with the largest gap.",
        "suggests": {"l1_bound": float(bound)},
        "alt": f"Line of the gap by L1 bound, from {number(table.l1_bound.min())} to "
        f"{number(table.l1_bound.max())}; chosen: {told}.",
        "curve": _columns(table, "l1_bound", "gap", "standard_error", "n_features"),
        "chosen": float(f"{bound:.5g}"),
        "table": _table(
            table,
            {
                "l1_bound": "L1 bound",
                "n_features": "Features",
                "gap": "Gap",
                "standard_error": "Standard error",
                "objective": "Objective per case",
            },
        ),
    }


def _of_gap_k(search: GapK) -> dict[str, Any]:
    table, K = search.table_, search.n_clusters_
    return {
        "title": "How many clusters: the gap",
        "found": f"The gap suggests {_clusters(K)}.",
        "explain": "The gap tells how much closer the cases are to their centers than in made-up "
        "data without clusters. Taken is the least number whose gap the next one does not beat "
        "by more than its standard error.",
        "suggests": {"n_clusters": K},
        "alt": f"Line of the gap by number of clusters; chosen: {_clusters(K)}.",
        "curve": _columns(table, "n_clusters", "gap", "standard_error"),
        "chosen": K,
        "table": _table(
            table, {"n_clusters": "Clusters", "gap": "Gap", "standard_error": "Standard error"}
        ),
    }


def _of_strength(search: PredictionStrength) -> dict[str, Any]:
    table, K = search.table_, search.n_clusters_
    return {
        "title": "How many clusters: prediction strength",
        "found": f"Prediction strength suggests {_clusters(K)}.",
        "explain": "Half of the cases foretells which pairs of the other half belong together. "
        f"Taken is the largest number that does so well in every cluster, {search.threshold:g} or "
        "more within one standard error.",
        "suggests": {"n_clusters": K},
        "alt": f"Line of the prediction strength by number of clusters, with the threshold "
        f"{search.threshold:g}; chosen: {_clusters(K)}.",
        "curve": _columns(table, "n_clusters", "strength", "standard_error"),
        "threshold": float(search.threshold),
        "chosen": K,
        "table": _table(
            table,
            {"n_clusters": "Clusters", "strength": "Strength", "standard_error": "Standard error"},
        ),
    }


def _of_trims(search: TrimCurves) -> dict[str, Any]:
    table, trim = search.table_, search.suggested_trim_
    told = f"trimming {100 * trim:.3g}% of the cases"
    return {
        "title": "How much to trim: trimming curves",
        "found": f"Trimming curves suggest {told}, for {_clusters(search._n_clusters)}.",
        "explain": "As long as outlying cases are left, the partition jumps when a little more is "
        f"trimmed; once they are gone it stays, and at most {SAME:.0%} of pairs of cases change.",
        "suggests": {"trim": float(trim)},
        "alt": f"Lines of the change of the partition if more is trimmed, by trimming share from "
        f"{100 * table.trim.min():.3g}% to {100 * table.trim.max():.3g}%; suggested: {told}.",
        "curve": {
            **_columns(table, "n_clusters", "trim", "n_outliers", "within"),
            "change": plain_numbers(table.groupby("n_clusters").moved.shift(-1)),
            "chosen": plain_numbers(table.chosen),
        },
        "same": SAME,
        "table": _table(
            table,
            {
                "n_clusters": "Clusters",
                "trim": "Trim",
                "moved": "Change from the share before",
                "within": "Within sum per case",
                "n_features": "Features",
                "n_outliers": "Outliers",
            },
        ),
    }


def _of_grid(search: GridSearch) -> dict[str, Any]:
    table, best = search.table_, search.best_params_
    bound = "" if best["l1_bound"] is None else f"an L1 bound of {number(best['l1_bound'])} and "
    told = f"{bound}trim {best['trim']:g}"
    suggested = {name: best[name] for name in ("trim", "l1_bound") if best[name] is not None}
    largest = table[table.chosen].consensus.iloc[0]
    return {
        "title": "Settings side by side: the grid",
        "found": f"Of the settings for {_clusters(best['n_clusters'])}, the others agree most "
        f"with {told} (consensus {largest:.2f}).",
        "explain": "A true partition is found with many settings, an accidental one with few. "
        "Consensus is the mean agreement (adjusted Rand index) with the partitions of all other "
        "settings with as many clusters; 1 is the same partition. The number of clusters is not "
        "chosen here: a wrong one may be found with every setting too.",
        "suggests": {name: float(value) for name, value in suggested.items()},
        "alt": f"Heat map of the consensus of {count(len(table), 'setting')}; the largest for "
        f"this number of clusters is {largest:.2f}, with {told}.",
        "curve": {
            **_columns(table, "n_clusters", "l1_bound", "trim", "consensus", "n_features"),
            "chosen": plain_numbers(table.chosen),
        },
        "table": _table(table, GRID_LABELS),
    }


GRID_LABELS = {
    "n_clusters": "Clusters",
    "l1_bound": "L1 bound",
    "trim": "Trim",
    "n_features": "Features",
    "n_outliers": "Outliers",
    "silhouette": "Silhouette",
    "consensus": "Consensus",
}


def _of_path(path: FeaturePath) -> dict[str, Any]:
    first = np.lexsort((-path.weights.max(axis=0), np.nan_to_num(path.entry, nan=np.inf)))
    drawn = [j for j in first[:MOST_LINES] if np.isfinite(path.entry[j])]
    names = [shown(path.feature_names[j], CHART_WIDTH) for j in drawn]
    leaders = ", ".join(shown(name, 32) for name in names[:5])
    (fewest, most), (least, root) = path.n_features[[0, -1]], path.l1_bounds[[0, -1]]
    return {
        "title": "Which features first: the feature path",
        "found": f"The first to get weight: {leaders}.",
        "explain": "With a small L1 bound few features have weight; as it grows, others follow. "
        f"Drawn are the first {count(len(drawn), 'feature')}.",
        "suggests": {},
        "alt": f"Lines of the weights of {count(len(drawn), 'feature')} by L1 bound; the first to "
        f"get weight: {leaders}. From {count(int(fewest), 'feature')} at {number(least)} to "
        f"{int(most):,} at {number(root)}.",
        "curve": {
            "l1_bound": plain_numbers(np.tile(path.l1_bounds, len(drawn)), 5),
            "weight": plain_numbers(path.weights[:, drawn].T.ravel()),
            "line": np.repeat(np.arange(len(drawn)), len(path.l1_bounds)).tolist(),
        },
        "names": names,
        "table": _path_table(path),
    }


def _path_table(path: FeaturePath) -> dict[str, Any]:
    import pandas as pd

    names = {"l1_bounds": "L1 bound", "n_features": "Features", "objective": "Objective per case"}
    return _table(pd.DataFrame({name: getattr(path, name) for name in names}), names)


SECTIONS: dict[type, Callable[[Any], dict[str, Any]]] = {
    Clest: _of_clest,
    GapL1: _of_gap_l1,
    GapK: _of_gap_k,
    PredictionStrength: _of_strength,
    TrimCurves: _of_trims,
    GridSearch: _of_grid,
    FeaturePath: _of_path,
}
