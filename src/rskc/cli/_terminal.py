"""How a terminal shows a result, for a reader who does not know the method."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from rskc.cli._app import seconds_since_start
from rskc.cli._console import Console
from rskc.cli._output import FILES, RANKED
from rskc.cli._results import MOST_NAMES, Counts, Result
from rskc.cli._tables import named_cases
from rskc.exceptions import FitWarning
from rskc.utils.wording import cleaned, listed, number

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
    console.print("", bold(result.headline))
    for item in result.advice:
        if item["alarm"]:
            console.print(Text.assemble((f"{item['about']}: ", "bold yellow"), item["brief"]))
    console.print("", clusters_table(result.counts))
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
        names = {RANKED.sub("cluster-*.rnk", file.name) for file in folder.iterdir()}
        for name in filter(names.__contains__, FILES):
            line = f"  {name:<{max(map(len, FILES))}}  {FILES[name]}"
            console.print(line, soft_wrap=True)
    if folder is not None and result.command[1:2] == ["fit"] and not result.is_sample:
        explore = [*result.data.command("explore"), "--out", str(folder / "explorer.html")]
        more = f"All other settings on one page: {shlex.join(explore)}"
        console.print("", more, soft_wrap=True)


def _show_finding(finding: Any, console: Console) -> None:
    labels, rows, chosen = (finding.table[part] for part in ("labels", "rows", "chosen"))
    console.print("")
    if rows:  # else nothing was tried
        marked = [[">" * mark, *row] for row, mark in zip(rows, chosen, strict=True)]
        table = text_table(["", *labels], marked, finding.title)
        for row, mark in zip(table.rows, chosen, strict=True):
            row.style = "bold green" if mark else None
        console.print(table)
    console.print(bold(finding.headline))
    if rows:
        console.print(finding.explanation, *finding.changes)


def clusters_table(counts: Counts) -> Any:
    """Make a table of the clusters that have cases, with all that is known of them."""
    written: dict[str, Callable] = {
        "cluster": str,
        "cases": "{:,}".format,
        "weight": partial(number, digits=4),
        "outliers": "{:,}".format,
        "silhouette": lambda mean: "–" if mean is None else f"{mean:.2f}",
    }
    clusters = [row for row in counts.clusters() if row["cases"]]
    names = [name for name in written if any(row.get(name) is not None for row in clusters)]
    rows = [[written[name](row[name]) for name in names] for row in clusters[:MOST_CLUSTERS]]
    if len(clusters) > MOST_CLUSTERS:
        rows.append(["...", f"{len(clusters) - MOST_CLUSTERS} more"])
    return text_table([name.capitalize() for name in names], rows)


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
            f"{truth['cer']:.3f} ({truth['cer']:.1%} of the pairs of cases are together in one "
            f"partition and apart in the other){sample}",
        )
    if data.table.n_missing:
        yield "Missing cells", f"{data.table.n_missing:,}"
    if result.is_sample:
        shown = f"{len(result.model.labels_):,} of the cases, drawn at random"
        yield "On the page and in model.rskc", shown
    parts = f"reading {data.seconds:.1f} s, clustering {result.seconds:.1f} s"
    yield "Time", f"{seconds_since_start():.1f} s, of which {parts}"


def bold(words: str, style: str = "bold") -> Any:
    """Return text that stands out."""
    from rich.text import Text

    return Text(words, style=style)


def text_table(labels: Iterable[str], rows: Iterable[Iterable[str]], title: Any = None) -> Any:
    """Make a table of numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    # Without double space between columns, the seven of a grid fit into 80 characters.
    how: Any = {"title": title, "title_justify": "left", "title_style": "bold"}
    table = Table(box=SIMPLE_HEAD, collapse_padding=True, **how)
    for label in labels:
        table.add_column(label, justify="right")
    for cells in rows:
        table.add_row(*cells)
    return table
