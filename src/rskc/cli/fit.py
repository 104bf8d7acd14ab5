"""``rskc fit``: the whole job."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

from rskc.cli._app import command, typed_command
from rskc.cli._console import Console
from rskc.cli._options import (
    Basics,
    EngineOptions,
    Reading,
    ResultsOfFit,
    SparsityOrSearch,
    Standardizing,
    TablePath,
    Trimming,
    clusters_option,
    clusters_or_auto,
)
from rskc.cli._output import check_report, results_folder
from rskc.cli._results import show_result
from rskc.cli._work import fit_model, fit_searched, searches_for, work_on


@dataclass(frozen=True)
class NumberOrAuto:
    """The number of clusters, or the wish to have it chosen."""

    clusters: Any = clusters_option(
        MISSING,
        "Number of clusters; auto tries 2 to 8 by Clest.",
        "NUMBER",
        parser=clusters_or_auto,
    )


@command(
    "fit",
    "rskc fit iris.csv --clusters 3 --label-column species",
    "rskc fit genes.tsv.gz --features-in-rows --clusters auto --l1-bound choose",
    "rskc fit clinic.xlsx -k 4 --standardize columns --trim 0.05 --out results",
    "rskc fit parquet-folder -k 5 --scheduler tcp://host:8786",
)
def fit(
    table: TablePath,
    number: NumberOrAuto,
    trimming: Trimming,
    sparsity: SparsityOrSearch,
    basics: Basics,
    reading: Reading,
    standardizing: Standardizing,
    engine: EngineOptions,
    results: ResultsOfFit,
    console: Console,
) -> None:
    """Cluster the cases of a table.

    Leaves a folder with an HTML page that explains the result, the clusters, the weights of the
    features, the model, and all that is needed to repeat it.
    """
    from rskc.files import write_ranked_lists

    check_report(not results.no_report)
    folder = results.out if results.out is not None else default_folder(table)
    K, bound = number.clusters, sparsity.l1_bound
    if bound == "choose" and sparsity.n_features is not None:
        raise ValueError("--l1-bound choose and --n-features exclude each other; give one of them.")
    estimator = basics.estimator(
        2 if K == "auto" else K,
        trim=trimming.trim,
        l1_bound="auto" if bound == "choose" else bound,
        n_features=sparsity.n_features,
    )
    with (
        results_folder(folder, results.force) as part,
        work_on(table, engine, basics.threads, console) as (read, write),
    ):
        data = read(table, reading, standardizing, console)
        searches = searches_for(K, bound, estimator, data.shape[0], random_state=basics.seed)
        if searches:
            result = fit_searched(searches, data, typed_command(), console)
        else:
            result = fit_model(estimator, data, typed_command(), console)
        with console.busy("Writing the results"):
            result = write(part, result, report=not results.no_report, title=results.title)
            if results.ranked_lists and len(result.model.cluster_centers_) > 1:
                write_ranked_lists(result.model, result.data.X, part)
    if results.ranked_lists and len(result.model.cluster_centers_) == 1:
        console.note("One cluster has nothing to be compared with: there are no ranked lists.")
    show_result(result, folder, console)
    console.print_json(result.summary)


def default_folder(table: Path) -> Path:
    """Return genes-rskc, here, for /data/genes.tsv.gz."""
    stem = table.name
    if not stem or "*" in stem:  # this folder, or a pattern
        stem = table.resolve().name if not stem else table.resolve().parent.name
    for suffix in reversed(table.suffixes[-2:] if table.suffix == ".gz" else [table.suffix]):
        stem = stem.removesuffix(suffix)
    return Path(f"{stem or table.name}-rskc")
