"""``rskc fit``: the whole job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from rskc.cli._app import command, typed_command
from rskc.cli._engine import Engine
from rskc.cli._folder import results_folder
from rskc.cli._options import (
    MODEL,
    Basics,
    Reading,
    ResultsOfFit,
    SparsityOrSearch,
    Standardizing,
    TablePath,
    Trimming,
)
from rskc.cli._phrases import clusters_or_auto
from rskc.cli._results import Result, check_report
from rskc.cli._show import show_result
from rskc.cli._tables import Data
from rskc.cli._voice import Voice
from rskc.cli._work import fit_model, fit_searched, searches_for, work_on

Clusters = Annotated[
    Any,
    Option(
        "--clusters",
        "-k",
        parser=clusters_or_auto,
        metavar="NUMBER",
        help="Number of clusters; auto tries 2 to 8 by Clest.",
        rich_help_panel=MODEL,
        show_default=False,
    ),
]


@command(
    "fit",
    "rskc fit iris.csv --clusters 3 --label-column species",
    "rskc fit genes.tsv.gz --features-in-rows --clusters auto --l1-bound choose",
    "rskc fit clinic.xlsx -k 4 --standardize columns --trim 0.05 --out results",
    "rskc fit parquet-folder -k 5 --scheduler tcp://host:8786",
)
def fit(
    table: TablePath,
    clusters: Clusters,
    trimming: Trimming,
    sparsity: SparsityOrSearch,
    basics: Basics,
    reading: Reading,
    standardizing: Standardizing,
    engine: Engine,
    results: ResultsOfFit,
    voice: Voice,
) -> None:
    """Cluster the cases of a table.

    Leaves a folder with an HTML page that explains the result, the clusters, the weights of the
    features, the model, and all that is needed to repeat it.
    """
    check_report(not results.no_report)
    folder = results.out if results.out is not None else default_folder(table)
    with (
        results_folder(folder, results.force) as part,
        work_on(table, engine, basics.threads, voice) as (read, write),
    ):
        data = read(table, reading, standardizing, voice)
        result = clustered(data, clusters, trimming, sparsity, basics, voice)
        with voice.busy("Writing the results"):
            result = write(part, result, report=not results.no_report, title=results.title)
    show_result(result, folder, voice)
    voice.tell(result.summary)


def clustered(
    data: Data,
    clusters: Any,
    trimming: Trimming,
    sparsity: SparsityOrSearch,
    basics: Basics,
    voice: Voice,
) -> Result:
    """Cluster, with whatever searches were asked for."""
    bound = sparsity.l1_bound
    if bound == "choose" and sparsity.n_features is not None:
        raise ValueError("--l1-bound choose and --n-features exclude each other; give one of them.")
    estimator = basics.estimator(
        2 if clusters == "auto" else clusters,
        trim=trimming.trim,
        l1_bound="auto" if bound == "choose" else bound,
        n_features=sparsity.n_features,
    )
    searches = searches_for(clusters, bound, estimator, data.shape[0], random_state=basics.seed)
    if searches:
        return fit_searched(searches, data, typed_command(), voice)
    return fit_model(estimator, data, typed_command(), voice)


def default_folder(table: Path) -> Path:
    """genes-rskc, here, for /data/genes.tsv.gz."""
    stem = table.name
    if not stem or "*" in stem:  # this folder, or a pattern
        stem = table.resolve().name if not stem else table.resolve().parent.name
    for suffix in reversed(table.suffixes[-2:] if table.suffix == ".gz" else [table.suffix]):
        stem = stem.removesuffix(suffix)
    return Path(f"{stem or table.name}-rskc")
