"""The result of a run: the model, and its numbers as a summary."""

import os
import shlex
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np

from rskc.cli._options import NAMES
from rskc.cli._tables import Data, what_was_read

TOP = 10
MOST_NAMES = 6  # of outliers
OF_TABLE = ("sha256", "n_missing", "id_column", "constant", "empty")  # in summary.json
# Parameters of a search that stand elsewhere, or do not change what it finds.
NOT_LISTED = ("estimator", "progress", "n_jobs")


@dataclass
class Counts:
    """Sums over all cases by cluster, of frames as ``model.cases_frame(X)`` makes them.

    Those of cases that are predicted have no silhouettes, and none was trimmed. Cases of which
    nothing is observed in the features that have weight are no outliers.
    """

    n_clusters: int
    by_cluster: Any = None
    farthest: Any = None  # the outliers that are farthest from their centers

    def add(self, cases: Any) -> Any:
        """Count more cases, and return them."""
        import pandas as pd

        blind = cases["observed"] == 0
        outlying = cases["outlier"] & ~blind
        counted = cases[["cluster"]].assign(cases=1, outliers=outlying, blind=blind)
        counted["trimmed"] = cases.get("trimmed", 0)
        weights = cases.get("weight", counted["cases"])
        if "weight" in cases:
            counted["weight"] = weights
        silhouettes = cases.get("silhouette", np.nan * weights).mask(outlying | blind).astype(float)
        counted["known"] = weights.where(silhouettes.notna(), 0.0)
        counted["silhouettes"] = silhouettes.fillna(0.0) * weights
        sums = counted.groupby("cluster").sum().reindex(range(self.n_clusters), fill_value=0)
        self.by_cluster = sums if self.by_cluster is None else self.by_cluster + sums
        outliers = pd.concat([self.farthest, cases.loc[outlying, ["case", "distance"]]])
        outliers = outliers.sort_values("distance", ascending=False, kind="stable")
        self.farthest = outliers.head(MOST_NAMES)
        return cases

    def total(self, name: str) -> int:
        """Return the sum of a column over the clusters."""
        return int(self.by_cluster[name].sum())

    def clusters(self) -> list[dict[str, Any]]:
        """Return a dict for each cluster, in which means of nothing are None."""
        return [
            {
                "cluster": k,
                **{name: sums[name] for name in ("cases", "weight", "outliers") if name in sums},
                "silhouette": sums["silhouettes"] / sums["known"] if sums["known"] else None,
            }
            for k, sums in self.by_cluster.to_dict("index").items()
        ]


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
        """One row per case, with silhouette, known class and, after a search, stability."""
        return self.with_more(self.model.cases_frame(self.data.X), self.data.table.labels)

    @cached_property
    def stability(self) -> Any:
        """The search by half-samples that is about the model, if there was one."""
        if not self.searches:
            return None
        from rskc.selection.stability import is_about, stability_among

        search = stability_among(self.searches)
        return search if search is not None and is_about(search, self.model) else None

    def with_more(self, cases: Any, labels: Any, first: int = 0) -> Any:
        """Add known classes and stability to a frame of cases; ``first`` numbers the first one."""
        if labels is not None:
            cases = cases.assign(known_class=np.asarray(labels))
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
        frames = {"features.csv": features, "markers.csv": markers}
        if bounds_cells(model) and model.outlying_cells_.nnz:
            frames["cells.csv"] = model.cells_frame(X)
        return {name: in_units(frame, self.data.units) for name, frame in frames.items()}

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
        return self.counts.total("cases") > len(self.model.labels_)

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
        preparer = self.data.preparer
        done = {"Preparer()": preparer.log == "auto"}  # and is not advised again
        done["Preparer() in a pipeline"] = preparer.standardize_ == "columns"
        return NAMES | {name: "" for name, is_done in done.items() if is_done}

    @cached_property
    def advice(self) -> list[dict[str, Any]]:
        """What to try next: that of the page, if there is one."""
        from rskc.report import advise, numbers_of

        if "page" in vars(self):
            return self.page["advice"]
        return advise(numbers_of(self.model, self.data.X, self.searches), self.names)

    @property
    def headline(self) -> str:
        """The result in a sentence, over all cases."""
        from rskc.model.summary import headline

        counts = self.counts
        n_found = int((counts.by_cluster["cases"] > 0).sum())
        outliers = counts.total("outliers"), counts.total("blind")
        return headline(self.model, counts.total("cases"), n_found, *outliers)

    @cached_property
    def page(self) -> dict[str, Any]:
        """What the page says."""
        from rskc.report import summarize

        data, now = self.data, datetime.now().astimezone()
        run = {
            "command": shlex.join(self.command),
            "sha256": data.table.sha256,
            **data.run(),
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
        return what_was_read(self.data, self.counts.total("cases"), self.warnings)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """All that is needed to understand the run, and to repeat it."""
        from rskc.versions import environment

        data, table = self.data, self.data.table
        return {
            "command": shlex.join(self.command),
            "working_folder": os.getcwd(),
            "date": datetime.now().astimezone().isoformat(timespec="seconds"),
            "table": {
                "file": table.path.name,
                "path": os.path.abspath(table.path),
                "n_cases": self.counts.total("cases"),
                "n_features": table.data.shape[1],
                "dropped": dict(table.dropped),
                **{name: getattr(table, name) for name in OF_TABLE},
            },
            "read": self.read,
            "reading": data.reading,
            "parameters": self.model.get_params(),
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
        sums = counts.by_cluster[["silhouettes", "known"]].sum()
        same = ("l1_bound", "outlier_threshold", "objective", "inertia")
        return {
            "n_clusters": len(model.cluster_centers_),
            "clusters": counts.clusters(),
            "n_features": n_features,
            "n_features_different": getattr(model, "n_features_different_", None),
            "n_features_enough": getattr(model, "n_features_enough_", None),
            "top_features": [
                {"feature": str(names[j]), "weight": float(weights[j])} for j in largest
            ],
            "n_outliers": counts.total("outliers"),
            "n_without_data": counts.total("blind"),
            "n_trimmed": counts.total("trimmed"),
            **{name: getattr(model, f"{name}_") for name in same},
            "unweighted_outlier_threshold": thresholds_of(model).unweighted,
            "iterations": model.n_iter_,
            # Over all cases that have one and are no outliers.
            "silhouette": float(sums["silhouettes"] / sums["known"]) if sums["known"] else None,
        }

    def _truth(self) -> dict[str, Any] | None:
        from rskc.inputs.labels import adjusted_rand_index, read_labels
        from rskc.metrics import classification_error_rate

        labels = self.data.table.labels
        if labels is None:
            return None
        weights = getattr(self.model, "sample_weight_", None)
        both = labels, self.model.labels_, weights
        return {
            "label_column": self.data.table.label_column,
            "n_cases": len(labels),
            "cer": classification_error_rate(*both),
            "ari": adjusted_rand_index(
                read_labels("labels", labels).codes, self.model.labels_, weights
            ),
        }


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
