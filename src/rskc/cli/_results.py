"""What a run found: its summary, and the files of it."""

from __future__ import annotations

import importlib.util
import os
import shlex
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rskc.cli._counts import Counts
from rskc.cli._tables import Data

TOP = 10
NOT_TOLD = ("estimator", "progress", "n_jobs")  # of a search: told apart, or without consequences


@dataclass(frozen=True)
class Result:
    """A fitted model, the data, and how it came about."""

    data: Data
    model: Any
    searches: list[Any]
    warnings: list[str]
    seconds: float  # of clustering and searching
    command: list[str]
    whole: Counts | None = None  # over all cases, where data and model have some of them only

    @cached_property
    def cases(self) -> Any:
        """A row a case, with silhouettes."""
        return self.model.cases_frame(self.data.X)

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
    def sections(self) -> list[dict[str, Any]]:
        """What the searches found, in words and tables."""
        if not self.searches:
            return []
        from rskc.report._searches import sections_of

        return sections_of(self.searches)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """All that is needed to understand the run, and to repeat it."""
        from rskc.versions import environment

        return {
            "command": shlex.join(self.command),
            "arguments": self.command,
            "working_folder": os.getcwd(),
            "date": datetime.now().astimezone().isoformat(timespec="seconds"),
            "table": _table(self.data, self.counts.n_cases),
            "reading": self.data.reading,
            "standardization": {
                "of": self.data.scaling.of,
                "scale": self.data.scaling.kind,
                "words": self.data.scaling.words(),
            },
            "parameters": self.model.get_params(),
            "seed": self.model.random_state,
            "searches": [_search(*each) for each in zip(self.searches, self.sections, strict=True)],
            "result": self._result(),
            "truth": self._truth(),
            "warnings": self.warnings,
            "notes": self.data.notes,
            "seconds": {"reading": self.data.seconds, "clustering": self.seconds},
            "versions": environment(),
        }

    def _result(self) -> dict[str, Any]:
        model, counts = self.model, self.counts
        return {
            "n_clusters": len(model.cluster_centers_),
            "clusters": counts.clusters(),
            "n_features": int(np.count_nonzero(model.feature_weights_)),
            "top_features": self.top_features(),
            "n_outliers": int(counts.outliers.sum()),
            "n_trimmed": counts.n_trimmed,
            "l1_bound": model.l1_bound_,
            "outlier_threshold": model.outlier_threshold_,
            "objective": model.objective_,
            "inertia": model.inertia_,
            "iterations": model.n_iter_,
            "silhouette": counts.silhouette(),
        }

    def top_features(self) -> list[dict[str, Any]]:
        """The features of largest weight."""
        weights = self.model.feature_weights_
        order = np.argsort(-weights, kind="stable")[: min(TOP, np.count_nonzero(weights))]
        names = self.data.X.columns
        return [{"feature": str(names[j]), "weight": float(weights[j])} for j in order]

    def _truth(self) -> dict[str, Any] | None:
        from rskc.metrics import classification_error_rate, sensitivity

        labels = self.data.table.labels
        if labels is None:
            return None
        return {
            "label_column": self.data.reading["label_column"],
            "n_cases": len(labels),
            "cer": classification_error_rate(labels, self.model.labels_),
            "classes": sensitivity(labels, self.model.labels_).to_dict("records"),
        }


def _table(data: Data, n_cases: int) -> dict[str, Any]:
    table = data.table
    return {
        "file": table.path.name,
        "path": os.path.abspath(table.path),
        "sha256": table.sha256,
        "n_cases": n_cases,
        "n_features": table.data.shape[1],
        "n_missing": table.n_missing,
        "id_column": table.id_column,
        "dropped": dict(table.dropped),
        "constant": table.constant,
        "empty": table.empty,
    }


def headline(result: Result) -> str:
    """The result in a sentence."""
    found, table = result.summary["result"], result.summary["table"]
    n, p, selected = table["n_cases"], table["n_features"], found["n_features"]
    matter = f"{selected:,} of {counted(p, 'feature')} matter{'s' if selected == 1 else ''}"
    if found["l1_bound"] is None:
        matter = f"all {counted(p, 'feature')} count alike"
    outlying = found["n_outliers"]
    looks = "looks like an outlier" if outlying == 1 else "look like outliers"
    outliers = (
        f"{counted(outlying, 'case')} {looks}" if outlying else "no case looks like an outlier"
    )
    return (
        f"{counted(found['n_clusters'], 'cluster')} of {counted(n, 'case')}; {matter}; {outliers}."
    )


def counted(number: int, thing: str) -> str:
    """So many things."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _search(search: Any, section: dict[str, Any]) -> dict[str, Any]:
    own = search.get_params(deep=False)
    asked = {k: _listed(v) for k, v in own.items() if k not in NOT_TOLD}
    return {
        "search": type(search).__name__,
        "parameters": asked,
        "found": section["found"],
        "suggests": section["suggests"],
        "table": search.table_.to_dict("records"),
    }


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, range) else value


def check_report(wanted: bool) -> None:
    """Say before the work, and not after it, that a page cannot be made."""
    packages = {"jinja2": "jinja2", "vl_convert": "vl-convert-python"}
    missing = [name for module, name in packages.items() if not importlib.util.find_spec(module)]
    if wanted and missing:
        raise ImportError(
            f"the HTML page needs {' and '.join(missing)}, not installed here: pip install "
            '"rskc[report]", or do without it by --no-report.'
        )


def write_results(folder: Path, result: Result, *, report: bool, title: str | None) -> None:
    """Write all files of a result."""
    from rskc.files import write_csv

    write_csv(result.cases, folder / "labels.csv")
    write_others(folder, result, report=report, title=title)


def write_others(folder: Path, result: Result, *, report: bool, title: str | None) -> None:
    """Write all files but labels.csv."""
    from rskc.files import save, write_csv, write_json

    write_csv(result.model.features_frame(), folder / "features.csv")
    save(result.model, folder / "model.rskc", extra=_extra(result, title))
    if report:
        write_page(folder / "report.html", result, title)
    write_json(result.summary, folder / "summary.json")


def write_page(path: Path, result: Result, title: str | None) -> None:
    """Write the HTML page."""
    from rskc.report import Report, summarize

    data = result.data
    summary = summarize(
        result.model,
        data.X,
        searches=result.searches,
        labels=data.table.labels,
        title=title or f"Clusters of {data.table.path.name}",
        run={
            "command": shlex.join(result.command),
            "file": data.table.path.name,
            **({} if data.table.sha256 is None else {"sha256": data.table.sha256}),
            "standardization": data.scaling.words(),
            "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        },
    )
    if result.is_sample:
        n, shown = result.counts.n_cases, len(result.model.labels_)
        summary["headline"] = headline(result)
        summary["meaning"].insert(
            0,
            f"All {n:,} cases were clustered. Apart from the headline, this page is about "
            f"{shown:,} of them, drawn at random, and counts only these; labels.csv has all.",
        )
    Report(summary).save(path)


def _extra(result: Result, title: str | None) -> dict[str, Any]:
    """What predict and report need to know, in the model's file."""
    table = result.data.table
    return {
        "reading": result.data.reading,
        "id_column": table.id_column,
        "scaling": result.data.scaling.extra(),
        "file": table.path.name,
        "sha256": table.sha256,
        "command": result.command,
        "title": title,
    }
