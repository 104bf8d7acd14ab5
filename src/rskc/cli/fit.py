"""``rskc fit``: the whole job."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

from rskc.cli._app import command, typed_command
from rskc.cli._console import Console
from rskc.cli._options import (
    Basics,
    EngineOptions,
    NumberOrAuto,
    Preparing,
    Reading,
    ResultsOfFit,
    Searching,
    SparsityOrSearch,
    TablePath,
    TrimmingAndCells,
)
from rskc.cli._output import check_report, results_folder, stem_of
from rskc.cli._terminal import show_result
from rskc.cli._work import fit_model, fit_searched, plan_of, searches_for, work_on


@command("fit", "rskc fit iris.csv", "rskc fit genes.tsv.gz -k 4 --features-in-rows --out results")
def fit(
    table: TablePath,
    number: NumberOrAuto,
    reading: Reading,
    preparing: Preparing,
    trimming: TrimmingAndCells,
    sparsity: SparsityOrSearch,
    basics: Basics,
    searching: Searching,
    engine: EngineOptions,
    results: ResultsOfFit,
    console: Console,
) -> None:
    """Cluster the cases of a table, and write a page that explains the result.

    What no option says is recognized, or chosen from the data.
    """
    from rskc.files import write_ranked_lists

    check_report(not results.no_report)
    folder = results.out if results.out is not None else Path(f"{stem_of(table)}-rskc")
    K, bound = number.n_clusters, sparsity.l1_bound
    if bound == "choose" and sparsity.n_features is not None:
        raise ValueError("--l1-bound choose and --n-features exclude each other; give one of them.")
    settings = vars(trimming) | vars(sparsity)
    if bound == "choose":
        settings["l1_bound"] = "auto"
    estimator = basics.estimator(2 if K == "auto" else K, **settings)
    how = vars(searching) | {"random_state": basics.random_state}
    searches = searches_for(K, bound, estimator, **how)
    place: Any = nullcontext()  # a plan leaves nothing behind
    if not results.plan:
        place = results_folder(folder, results.force, table, basics.feature_groups)
    with place as part, work_on(table, engine, basics.n_threads, console) as work:
        data = work.read(table, reading, preparing, basics.feature_groups, console)
        estimator.set_params(feature_groups=data.feature_groups)
        if results.plan:
            with console.busy("Estimating what it takes"):
                plan = plan_of(searches or [estimator], data, work.why)
            console.print(str(plan))
            console.print_json(plan.as_dict())
            return
        if searches:
            result = fit_searched(searches, data, typed_command(), console)
        else:
            result = fit_model(estimator, data, typed_command(), console, work.why)
        with console.busy("Writing the results"):
            result = work.write(part, result, report=not results.no_report, title=results.title)
            if results.ranked_lists and len(result.model.cluster_centers_) > 1:
                write_ranked_lists(result.model, result.data.X, part)
    if results.ranked_lists and len(result.model.cluster_centers_) == 1:
        console.note("One cluster has nothing to be compared with: there are no ranked lists.")
    show_result(result, folder, console)
    console.print_json(result.summary)
