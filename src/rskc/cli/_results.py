"""The result of a run: the model, and its numbers as a summary."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np

from rskc.cli._options import NAMES
from rskc.cli._repeat import fit_command, run_of
from rskc.cli._tables import Data
from rskc.exceptions import FitWarning
from rskc.utils.wording import cleaned, count, listed, percent, sentence_list

TOP = 10
MOST_COLUMNS = 200  # of which the page says what they were taken for
NAMES_IN_TEXT = 5
LONGEST_COMMAND = 64  # that advice repeats
MOST_NAMES = 6  # of outliers
# Parameters of a search that stand elsewhere, or do not change what it finds.
NOT_LISTED = ("estimator", "progress", "n_jobs")


@dataclass
class Counts:
    """Numbers over all cases, of frames as ``model.cases_frame(X)`` makes them.

    Those of cases that are predicted have no silhouettes, and none was trimmed.
    """

    n_clusters: int
    n_cases: int = 0
    n_trimmed: int = 0
    n_blind: int = 0  # cases of which nothing is observed that has weight; they are no outliers
    is_weighted: bool = False
    farthest: Any = None  # the outliers that are farthest from their centers

    def __post_init__(self) -> None:
        self.sizes, self.outliers = np.zeros((2, self.n_clusters), int)
        # The weights of the cases of each cluster, the weights of those with a silhouette that are
        # no outliers, and the sums of these silhouettes.
        self.weights, self.known, self.silhouettes = np.zeros((3, self.n_clusters))

    def add(self, cases: Any) -> None:
        """Count more cases."""
        import pandas as pd

        clusters, blind = cases["cluster"].to_numpy(), cases["observed"].to_numpy() == 0
        outlying = cases["outlier"].to_numpy() & ~blind
        weights = cases["weight"].to_numpy() if "weight" in cases else np.ones(len(cases))
        self.is_weighted |= "weight" in cases
        self.n_cases += len(cases)
        self.n_blind += int(blind.sum())
        self.sizes += np.bincount(clusters, minlength=self.n_clusters)
        self.outliers += np.bincount(clusters[outlying], minlength=self.n_clusters)
        self.weights += np.bincount(clusters, weights, self.n_clusters)
        outliers = pd.concat([self.farthest, cases.loc[outlying, ["case", "distance"]]])
        outliers = outliers.sort_values("distance", ascending=False, kind="stable")
        self.farthest = outliers.head(MOST_NAMES)
        if "silhouette" not in cases:
            return
        values = cases["silhouette"].to_numpy(float)
        known = np.isfinite(values) & ~outlying & ~blind
        sums = values[known] * weights[known]
        self.n_trimmed += int(cases["trimmed"].sum())
        self.known += np.bincount(clusters[known], weights[known], self.n_clusters)
        self.silhouettes += np.bincount(clusters[known], sums, self.n_clusters)

    def clusters(self) -> list[dict[str, Any]]:
        """Return a dict for each cluster."""
        return [
            {
                "cluster": k,
                "cases": int(self.sizes[k]),
                **({"weight": float(self.weights[k])} if self.is_weighted else {}),
                "outliers": int(self.outliers[k]),
                "silhouette": self.silhouettes[k] / self.known[k] if self.known[k] else None,
            }
            for k in range(self.n_clusters)
        ]

    def silhouette(self) -> float | None:
        """Return the mean over all cases that have one and are no outliers."""
        n_known = self.known.sum()
        return float(self.silhouettes.sum() / n_known) if n_known else None


@dataclass(frozen=True)
class Result:
    """A fitted model, the data, and how it came about."""

    data: Data
    model: Any
    searches: list[Any]
    warnings: list[Any]  # warnings and sentences
    seconds: float  # of clustering and searching
    command: list[str]
    kept: Any = None  # of the searches of a saved model: what its page said of them
    whole: Counts | None = None  # over all cases, where data and model have some of them only

    @cached_property
    def cases(self) -> Any:
        """A row a case, with silhouette, known class and, after a search, stability."""
        cases = with_classes(self.model.cases_frame(self.data.X), self.data.table.labels)
        return self.with_stability(cases, first=0)

    @cached_property
    def stability(self) -> Any:
        """The search by half-samples that is about the model, if there was one."""
        if not self.searches:
            return None
        from rskc.selection.stability import stability_for

        return stability_for(self.searches, self.model)

    def with_stability(self, cases: Any, first: int) -> Any:
        """Add the stability of cases to their frame; ``first`` is the number of the first one."""
        if self.stability is None:
            return cases
        from rskc.selection.stability import stability_of_cases

        last = first + len(cases)
        return cases.assign(stability=stability_of_cases(self.stability, first, last))

    def tables(self) -> dict[str, Any]:
        """Return features, markers and outlying cells, if there are any, in units of the file.

        After a search by half-samples, with how often these select a feature.
        """
        from rskc.model.summary import bounds_cells, in_units

        model, X, search = self.model, self.data.X, self.stability
        probabilities = None if search is None else search.selection_probabilities_
        features = model.features_frame()
        if search is not None:
            features = features.assign(selection_probability=probabilities)
        markers = model.markers_frame(X, selection_probabilities=probabilities)
        found = {"features.csv": features, "markers.csv": markers}
        if bounds_cells(model) and model.outlying_cells_.nnz:
            found["cells.csv"] = model.cells_frame(X)
        return {name: in_units(frame, self.data.units) for name, frame in found.items()}

    @cached_property
    def counts(self) -> Counts:
        """What is counted over all cases."""
        if self.whole is not None:
            return self.whole
        counts = Counts(len(self.model.cluster_centers_))
        counts.add(self.cases)
        return counts

    @property
    def is_sample(self) -> bool:
        """Whether there are more cases than data and model have."""
        return self.counts.n_cases > len(self.model.labels_)

    @cached_property
    def findings(self) -> list[Any]:
        """What the searches found, in words and tables."""
        if not self.searches:
            return []
        from rskc.selection.findings import describe

        return [describe(search) for search in self.searches]

    @property
    def names(self) -> dict[str, str]:
        """What parameters and searches are called by someone who typed the command."""
        preparer, command, remedy = self.data.preparer, self.command, ["--standardize", "columns"]
        names = NAMES | ({"Preparer()": ""} if preparer.log == "auto" else {})
        if preparer.standardize_ == "columns":
            return names | {"Preparer() in a pipeline": ""}
        asked = shlex.join(command)
        if " --prepare none" in asked:
            command, remedy = shlex.split(asked.replace(" --prepare none", "")), []
        force = [] if "--force" in command else ["--force"]
        standardized = shlex.join([*command, *remedy, *force])
        if len(standardized) > LONGEST_COMMAND or command[1:2] != ["fit"]:
            return names
        return names | {"Preparer() in a pipeline": standardized}

    @cached_property
    def advice(self) -> list[dict[str, str]]:
        """What to try next: that of the page, if there is one."""
        from rskc.report import advice_on

        if "page" in vars(self):
            return self.page["advice"]
        return advice_on(self.model, self.data.X, self.searches, self.names)

    @cached_property
    def page(self) -> dict[str, Any]:
        """What the page says."""
        from rskc.report import summarize

        data, now = self.data, datetime.now().astimezone()
        is_fit = self.command[1:2] == ["fit"]
        run = {
            "command": shlex.join(self.command) if is_fit else fit_command(data, self.model),
            "file": data.table.path.name,
            "sha256": data.table.sha256,
            **run_of(data),
            "date": f"{now.day} {now:%B %Y, %H:%M %Z}",
            "first case": None if data.table.id_column else data.table.where(0),
        }
        return summarize(
            self.model,
            data.X,
            names=self.names,
            searches=self.searches,
            kept=self.kept,
            labels=data.table.labels,
            run={name: value for name, value in run.items() if value is not None},
            units=data.units,
            read=self.read,
        )

    @cached_property
    def read(self) -> dict[str, Any]:
        """What was read of the table, and every note on it."""
        return what_was_read(self.data, self.counts.n_cases, self.warnings)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """All that is needed to understand the run, and to repeat it."""
        from rskc.versions import environment

        data, table = self.data, self.data.table
        return {
            "command": shlex.join(self.command),
            "arguments": self.command,
            "working_folder": os.getcwd(),
            "date": datetime.now().astimezone().isoformat(timespec="seconds"),
            "table": {
                "file": table.path.name,
                "path": os.path.abspath(table.path),
                "sha256": table.sha256,
                "n_cases": self.counts.n_cases,
                "n_features": table.data.shape[1],
                "n_missing": table.n_missing,
                "id_column": table.id_column,
                "dropped": dict(table.dropped),
                "constant": table.constant,
                "empty": table.empty,
            },
            "read": self.read,
            "reading": data.reading,
            "standardization": {
                "of": data.preparer.standardize_ or "none",
                "words": data.preparer.describe(),
            },
            "parameters": self.model.get_params(),
            "seed": self.model.random_state,
            "searches": [_search(*each) for each in zip(self.searches, self.findings, strict=True)],
            "result": self._result(),
            "truth": self._truth(),
            "warnings": [str(each) for each in self.warnings],
            "notes": data.notes,
            "try_next": self.advice,
            "seconds": {"reading": data.seconds, "clustering": self.seconds},
            "versions": environment(),
        }

    def _result(self) -> dict[str, Any]:
        from rskc.model.fitted import thresholds_of, units_of

        model, counts = self.model, self.counts
        names, weights, _ = units_of(model)
        n_features = int(np.count_nonzero(weights))
        largest = np.argsort(-weights, kind="stable")[: min(TOP, n_features)]
        return {
            "n_clusters": len(model.cluster_centers_),
            "clusters": counts.clusters(),
            "n_features": n_features,
            "n_features_different": getattr(model, "n_features_different_", None),
            "n_features_enough": getattr(model, "n_features_enough_", None),
            "top_features": [
                {"feature": str(names[j]), "weight": float(weights[j])} for j in largest
            ],
            "n_outliers": int(counts.outliers.sum()),
            "n_without_data": counts.n_blind,
            "n_trimmed": counts.n_trimmed,
            "l1_bound": model.l1_bound_,
            "outlier_threshold": model.outlier_threshold_,
            "unweighted_outlier_threshold": thresholds_of(model).unweighted,
            "objective": model.objective_,
            "inertia": model.inertia_,
            "iterations": model.n_iter_,
            "silhouette": counts.silhouette(),
        }

    def _truth(self) -> dict[str, Any] | None:
        from rskc.inputs.labels import adjusted_rand_index, read_one
        from rskc.metrics import classification_error_rate, sensitivity

        labels = self.data.table.labels
        if labels is None:
            return None
        weights = getattr(self.model, "sample_weight_", None)
        both = labels, self.model.labels_, weights
        return {
            "label_column": self.data.table.label_column,
            "n_cases": len(labels),
            "cer": classification_error_rate(*both),
            "ari": adjusted_rand_index(read_one(labels=labels).codes, self.model.labels_, weights),
            "classes": sensitivity(*both).to_dict("records"),
        }


def with_classes(cases: Any, labels: Any) -> Any:
    """Add the known classes to a frame of cases, if there are any."""
    return cases if labels is None else cases.assign(known_class=np.asarray(labels))


def _search(search: Any, finding: Any) -> dict[str, Any]:
    given = {k: v for k, v in search.get_params(deep=False).items() if k not in NOT_LISTED}
    return {
        "search": type(search).__name__,
        "parameters": {k: list(v) if isinstance(v, range) else v for k, v in given.items()},
        "found": finding.headline,
        "suggests": finding.suggests,
        "changes": finding.changes,
        "table": search.table_.to_dict("records"),
    }


def headline(result: Result) -> str:
    """Return the result in a sentence."""
    from rskc.model import summary

    found, n_cases = result.summary["result"], result.counts.n_cases
    outliers = found["n_outliers"], found["n_without_data"]
    return summary.headline(result.model, n_cases, found["n_clusters"], *outliers)


# ---- What was read


def what_was_read(data: Data, n_cases: int, warnings: list[Any]) -> dict[str, Any]:
    """Return the file, its rows and columns, what these were taken for, and every note."""
    table, columns = data.table, list(_columns(data, n_cases))
    kinds = [column["kind"] for column in columns]
    nouns = {"number": "of numbers", "category": "of categories"}
    line = "row" if data.reading.get("features_in_rows") is True else "column"  # of a feature
    words = [
        count(kinds.count(kind), f"{line} {noun}", f"{line}s {noun}")
        for kind, noun in nouns.items()
        if kind in kinds
    ]
    were = "was" if n_cases == 1 else "were"
    sentence = f"{count(n_cases, 'case')} {were} clustered by {sentence_list(words)}"
    left = [cleaned(column["name"], 40) for column in columns if column["kind"] == "left out"]
    if left:
        which = listed(left, NAMES_IN_TEXT)
        were = count(len(left), f"{line} was", f"{line}s were")
        sentence += f"; {were} left out: {which}"
    note = f"{line.capitalize()}s of the file, in the order of their use."
    if len(columns) > MOST_COLUMNS:
        note = f"The first {MOST_COLUMNS} of {len(columns):,} {line}s."
    missing = count(int(table.n_missing), "cell") if table.n_missing else "none"
    if table.n_missing and len(table.data) == n_cases:
        holes = np.array([column["n_missing"] or 0 for column in columns])
        first = np.argsort(-holes, kind="stable")[: min(NAMES_IN_TEXT, np.count_nonzero(holes))]
        names = [f"{columns[j]['name']} ({holes[j]:,})" for j in first]
        which = listed(names, NAMES_IN_TEXT, int(np.count_nonzero(holes)))
        missing += f" ({percent(table.n_missing / table.data.size)}), in {which}"
    return {
        "sentence": f"{sentence}.",
        "file": table.path.name,
        "n_cases": n_cases,
        # Where rows are features, their names are a column.
        "n_columns": len(columns) - (kinds.count("names") if line == "row" else 0),
        "line": line,
        "missing": {"n_cells": int(table.n_missing), "words": missing},
        "prepared": run_of(data)["standardization"],
        "columns": columns[:MOST_COLUMNS],
        "columns_note": note,
        "notes": [*data.notes, *(str(w) for w in warnings if not isinstance(w, FitWarning))],
    }


def _columns(data: Data, n_cases: int) -> Iterator[dict[str, Any]]:
    """Yield what each column was taken for: what is no feature first.

    Of a table of which only some cases are in memory, missing cells by column are not known.
    """
    table, seen = data.table, set[str]()

    def row(name: str, kind: str, taken_for: str, n_missing: int | None = None) -> dict[str, Any]:
        seen.add(name)
        words = cleaned(taken_for, 200)
        return {"name": cleaned(name, 60), "kind": kind, "taken_for": words, "n_missing": n_missing}

    if table.id_column is not None:
        what = "features" if data.reading.get("features_in_rows") is True else "cases"
        yield row(table.id_column, "names", f"names of the {what}")
    if table.label_column is not None:
        yield row(table.label_column, "classes", "known classes, compared with the clusters")
    if (weights := data.reading.get("weight_column")) is not None:
        yield row(weights, "weights", "weights of the cases")
    for name, why in ({c.name: c.why for c in table.set_aside} | dict(table.dropped)).items():
        if name not in seen:
            yield row(name, "left out", f"left out: {why}")
    holes = table.data.isna().sum().to_numpy() if len(table.data) == n_cases else None
    for j, name in enumerate(table.data.columns):
        kind, words = "number", "a number"
        if name in table.categories:
            kind = "category"
            words = f"a category of {count(len(table.categories[name]), 'value')}"
        elif name in table.written:
            words = f"a number, written {table.written[name]}"
        words += ", the same in all cases" * (name in table.constant)
        words += ", without any value" * (name in table.empty)
        yield row(str(name), kind, words, None if holes is None else int(holes[j]))
