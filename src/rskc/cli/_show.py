"""Results on a terminal, for a reader who has never heard of the method."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rskc.cli._console import Console, bold
from rskc.cli._output import FILES
from rskc.cli._results import MOST_NAMES, Result, headline
from rskc.wording import cleaned, count, listed

MOST_CLUSTERS = 20


def show_result(result: Result, folder: Path | None, console: Console) -> None:
    """Print the result in a few lines, and where the files are."""
    if console.silent:
        return
    from rich.text import Text

    for finding in result.findings:
        _show_finding(finding, console)
    console.print("", bold(headline(result)), "", _clusters(result))
    for heading, words in _facts(result):
        console.print(Text.assemble((f"{heading}: ", "cyan"), words))
    console.note(*result.data.notes, *result.warnings)
    if folder is not None:
        console.print("", f"Written to {cleaned(folder, 2000)}:", soft_wrap=True)
        width = max(map(len, FILES))
        for name, words in FILES.items():
            if (folder / name).exists():
                console.print(f"  {name:<{width}}  {words}", soft_wrap=True)


def text_table(labels: Iterable[tuple[str, Any]], rows: Iterable[Iterable[str]], **how: Any) -> Any:
    """Make a table; each column has a label and is justified "left" or "right"."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, **how)
    for label, justify in labels:
        table.add_column(label, justify=justify)
    for row in rows:
        table.add_row(*row)
    return table


def _show_finding(finding: Any, console: Console) -> None:
    labels, rows, chosen = finding.table
    marked = ([">" if is_chosen else "", *row] for row, is_chosen in zip(rows, chosen, strict=True))
    columns = [(label, "right") for label in ["", *labels]]
    table = text_table(
        columns, marked, title=finding.title, title_justify="left", title_style="bold"
    )
    for row, is_chosen in zip(table.rows, chosen, strict=True):
        row.style = "bold green" if is_chosen else None
    console.print("", table, bold(finding.headline), finding.explanation)


def _clusters(result: Result) -> Any:
    clusters = result.summary["result"]["clusters"]
    rows = [
        [
            f"{row['cluster']}",
            f"{row['cases']:,}",
            f"{row['outliers']:,}",
            "–" if row["silhouette"] is None else f"{row['silhouette']:.2f}",
        ]
        for row in clusters[:MOST_CLUSTERS]
    ]
    if len(clusters) > MOST_CLUSTERS:
        rows.append(["...", f"{len(clusters) - MOST_CLUSTERS} more"])
    return text_table(
        [(label, "right") for label in ("Cluster", "Cases", "Outliers", "Silhouette")], rows
    )


def _facts(result: Result) -> Iterator[tuple[str, str]]:
    found, truth, data = result.summary["result"], result.summary["truth"], result.data
    if found["l1_bound"] is not None and found["top_features"]:
        weights = [f"{cleaned(f['feature'], 40)} {f['weight']:.2g}" for f in found["top_features"]]
        yield "Largest weights", listed(weights, MOST_NAMES, found["n_features"])
    if found["n_outliers"]:
        names = [cleaned(name, 40) for name in result.counts.farthest["case"]]
        yield "Outliers", listed(names, MOST_NAMES, found["n_outliers"])
    if truth is not None:
        sample = f", among {truth['n_cases']:,} cases drawn at random" if result.is_sample else ""
        yield (
            f"Compared with {cleaned(truth['label_column'], 40)}",
            f"{truth['cer']:.1%} of the pairs of cases are together in one and apart in the other "
            f"(CER {truth['cer']:.3f}){sample}",
        )
    if data.table.n_missing:
        yield "Missing", count(data.table.n_missing, "cell")
    if result.is_sample:
        shown = f"{len(result.model.labels_):,} of the cases, drawn at random"
        yield "On the page and in model.rskc", shown
    yield "Time", f"{data.seconds + result.seconds:.1f} s, of which reading {data.seconds:.1f} s"
