"""Pages: ``rskc explore``, of many settings, and ``rskc report``, of a saved result."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from typer import Argument

from rskc.cli._app import command, seconds_since_start
from rskc.cli._console import Console, bold
from rskc.cli._options import (
    Basics,
    ExploredSettings,
    ModelPath,
    Page,
    Preparing,
    Reading,
    Rereading,
    Searching,
    TableFile,
    out_option,
)
from rskc.cli._output import (
    check_no_file,
    check_report,
    open_model,
    preparer_of,
    stem_of,
    write_page,
)
from rskc.cli._repeat import fit_command, run_of
from rskc.cli._results import Result
from rskc.cli._tables import Data, read, reread
from rskc.cli._work import run_search
from rskc.utils.wording import cleaned, count


@dataclass(frozen=True)
class ExplorerPage(Page):
    """Where the page is written, and its heading."""

    out: Path | None = out_option(None, "The page; else TABLE-explorer.html, here.", "FILE")


_table = Argument(metavar="TABLE", help="A row a case, in one file.", show_default=False)


@command(
    "explore",
    "rskc explore table.csv",
    "rskc explore genes.csv -k 2-5 --n-features 10,50,200 --trims 0,0.1 --out genes.html",
)
def explore(
    table: Annotated[Path, _table],
    settings: ExploredSettings,
    reading: Reading,
    preparing: Preparing,
    basics: Basics,
    searching: Searching,
    page: ExplorerPage,
    console: Console,
) -> None:
    """Fit many settings, and write one page with sliders to compare them.

    It works offline and can be mailed.
    """
    out = page.out if page.out is not None else Path(f"{stem_of(table)}-explorer.html")
    check_no_file(out, page.force, table)
    data = read(table, reading, preparing, basics.feature_groups, console)
    search, warned = explored(settings, basics, searching, data, console)
    with console.busy("Writing the page"):
        write_explorer(out, search, data, page.title)
    choice, n = search.choice_, search.axes_.n_settings
    console.print("", bold(f"{count(n, 'setting')} of {count(len(data.X), 'case')}."))
    console.print(choice.reason)
    console.note(*data.notes, *warned)
    console.print(f"Time: {seconds_since_start():.1f} s")
    console.print("", f"The page is in {cleaned(out, 2000)}: open it in a browser", soft_wrap=True)
    console.print_json(
        {
            "file": str(out),
            "n_settings": n,
            "n_clusters": search.axes_.n_clusters,
            "n_features": search.axes_.n_features,
            "trims": search.axes_.trims,
            "chosen": choice.n_clusters,
            "reason": choice.reason,
            "notes": data.notes,
        }
    )


def explored(
    settings: ExploredSettings, basics: Basics, searching: Searching, data: Data, console: Console
) -> tuple[Any, list[Any]]:
    """Fit all settings; return the search, and what there is to warn of."""
    from rskc.explorer.grid import Exploration

    how = vars(settings) | vars(searching) | {"random_state": basics.random_state}
    estimator = basics.estimator(2).set_params(feature_groups=data.feature_groups)
    search, (n, p) = Exploration(estimator, **how), data.shape
    used = n if search.max_samples is None else min(n, search.max_samples)
    numbers, features, trims = search.planned(used, p)
    halves = f", each with {count(2 * search.n_splits, 'half', 'halves')}" * (search.n_splits > 0)
    console.print(
        f"{count(len(numbers), 'number')} of clusters x {len(features)} of features x "
        f"{count(len(trims), 'share')} to trim: {len(numbers) * len(features) * len(trims):,} fits "
        f"to {count(used, 'case')}{halves} of them.",
    )
    return search, run_search(search, data, console)


def write_explorer(path: Path, search: Any, data: Data, title: str | None) -> None:
    """Write the page; clusters are numbered as in a report of the same table in its folder."""
    from rskc.explorer import Explorer
    from rskc.files import ModelFileError

    labels = None
    if (path.parent / "model.rskc").exists():
        with suppress(ModelFileError, OSError):
            saved = open_model(path.parent)
            same = saved.extra.get("sha256") == data.table.sha256 is not None
            if same and len(saved.model.labels_) == len(data.X):
                labels = saved.model.labels_
    Explorer(
        search,
        labels=data.table.labels,
        case_names=list(data.X.index),
        title=title or f"Clusters of {data.table.path.name}",
        run=run_of(data),
        command=lambda model: fit_command(data, model),
        units=data.units,
        numbered_like=labels,
    ).save(path)


@command("report", "rskc report iris-rskc iris.csv --out iris.html --title Iris")
def report(
    model: ModelPath, table: TableFile, rereading: Rereading, page: Page, console: Console
) -> None:
    """Make the HTML page of a saved result and its table again."""
    check_report(True)
    saved = open_model(model)
    out = page.out
    if out is None:
        out = (model if model.is_dir() else model.parent) / "report.html"
    check_no_file(out, page.force, table)
    extra = saved.extra
    data = reread(table, rereading.arguments(extra.get("reading", {})), preparer_of(saved), console)
    doubts = []
    if extra.get("sha256") not in (None, data.table.sha256):
        doubts = [
            f"{table.name!r} is not, byte by byte, the file of the fit ({extra.get('file')!r}); "
            "the page is right only if the numbers are the same."
        ]
    typed = list(extra.get("command", []))
    with console.busy("Writing the page"):
        kept = extra.get("searches")
        result = Result(data, saved.model, [], doubts, 0.0, typed, kept=kept)
        write_page(out, result, page.title or extra.get("title"))
    console.note(*doubts)
    console.print(f"The page is in {out}: open it in a browser", soft_wrap=True)
    console.print_json({"file": str(out), "warnings": doubts})
