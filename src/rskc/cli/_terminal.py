"""How a terminal shows a result, for a reader who does not know the method."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rskc.cli._app import seconds_since_start
from rskc.cli._console import Console, bold, text_table
from rskc.cli._output import FILES, RANKED
from rskc.cli._repeat import explore_command
from rskc.cli._results import MOST_NAMES, Result, headline
from rskc.cli._tables import named_cases
from rskc.exceptions import FitWarning
from rskc.utils.wording import cleaned, count, listed, number

MOST_CLUSTERS = 20  # of which the terminal shows a row


def show_result(result: Result, folder: Path | None, console: Console) -> None:
    """Print the result in a few lines, and where the files are."""
    if console.silent:
        return
    from rich.text import Text

    with console.busy("Looking at the result"):  # before the time is taken
        _ = result.advice
    for finding in result.findings:
        _show_finding(finding, console)
    console.print("", bold(headline(result)))
    for item in result.advice:
        if item["alarm"]:
            console.print(Text.assemble((f"{item['about']}: ", "bold yellow"), item["brief"]))
    console.print("", _clusters(result))
    for heading, words in _facts(result):
        console.print(Text.assemble((f"{heading}: ", "cyan"), words))
    sentences = [each for each in result.warnings if not isinstance(each, FitWarning)]
    console.note(*result.data.notes, *sentences)
    advice = [item for item in result.advice if not item["alarm"]]
    if advice:
        console.print("", bold("What to try next"))
    for item in advice:
        console.print(Text.assemble((f"{item['about']}: ", "cyan"), item["brief"]))
    if folder is not None:
        console.print("", f"Written to {cleaned(folder, 2000)}:", soft_wrap=True)
        width = max(map(len, [*FILES, "cluster-*.rnk"]))
        for name, words in FILES.items():
            if (folder / name).exists():
                console.print(f"  {name:<{width}}  {words}", soft_wrap=True)
        if any(RANKED.fullmatch(file.name) for file in folder.iterdir()):
            words = "all features, ranked, for enrichment tools"
            console.print(f"  {'cluster-*.rnk':<{width}}  {words}", soft_wrap=True)
    if folder is not None and result.command[1:2] == ["fit"] and not result.is_sample:
        more = f"All other settings on one page: {explore_command(result.data, folder)}"
        console.print("", more, soft_wrap=True)


def _show_finding(finding: Any, console: Console) -> None:
    labels, rows, chosen = finding.table
    marked = ([">" if is_chosen else "", *row] for row, is_chosen in zip(rows, chosen, strict=True))
    columns = [(label, "right") for label in ["", *labels]]
    table = text_table(
        columns, marked, title=finding.title, title_justify="left", title_style="bold"
    )
    for row, is_chosen in zip(table.rows, chosen, strict=True):
        row.style = "bold green" if is_chosen else None
    if not rows:  # nothing was tried
        console.print("", bold(finding.headline))
        return
    console.print("", table, bold(finding.headline), finding.explanation, *finding.changes)


def _clusters(result: Result) -> Any:
    clusters = result.summary["result"]["clusters"]
    labels = ["Cluster", "Cases", "Outliers", "Silhouette"]
    if result.counts.is_weighted:
        labels.insert(2, "Weight")
    rows = [
        [
            f"{row['cluster']}",
            f"{row['cases']:,}",
            *([number(row["weight"], 4)] if result.counts.is_weighted else []),
            f"{row['outliers']:,}",
            "–" if row["silhouette"] is None else f"{row['silhouette']:.2f}",
        ]
        for row in clusters[:MOST_CLUSTERS]
    ]
    if len(clusters) > MOST_CLUSTERS:
        rows.append(["...", f"{len(clusters) - MOST_CLUSTERS} more"])
    return text_table([(label, "right") for label in labels], rows)


def _facts(result: Result) -> Iterator[tuple[str, str]]:
    found, truth, data = result.summary["result"], result.summary["truth"], result.data
    if found["l1_bound"] is not None and found["top_features"]:
        weights = [f"{cleaned(f['feature'], 40)} {f['weight']:.2g}" for f in found["top_features"]]
        yield "Largest weights", listed(weights, MOST_NAMES, found["n_features"])
    if found["n_outliers"]:
        cases = result.counts.farthest["case"]
        names = [cleaned(name, 40) for name in cases]
        if data.table.id_column is None and not result.is_sample:  # by their number and line
            names = named_cases(data.table, cases.astype(int).tolist())
        yield "Outliers", listed(names, MOST_NAMES, found["n_outliers"])
    if truth is not None and found["n_clusters"] > 1:
        sample = f", among {truth['n_cases']:,} cases drawn at random" if result.is_sample else ""
        yield (
            f"Compared with {cleaned(truth['label_column'], 40)}",
            f"adjusted Rand index {truth['ari']:.3f} (1: the same, 0: by chance), CER "
            f"{truth['cer']:.3f} ({truth['cer']:.1%} of the pairs of cases are together in one and "
            f"apart in the other){sample}",
        )
    if data.table.n_missing:
        yield "Missing", count(data.table.n_missing, "cell")
    if result.is_sample:
        shown = f"{len(result.model.labels_):,} of the cases, drawn at random"
        yield "On the page and in model.rskc", shown
    parts = f"reading {data.seconds:.1f} s, clustering {result.seconds:.1f} s"
    yield "Time", f"{seconds_since_start():.1f} s, of which {parts}"
