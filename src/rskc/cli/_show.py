"""Results on a terminal, for a reader who has never heard of the method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rskc.cli._counts import MOST_NAMES
from rskc.cli._phrases import as_options
from rskc.cli._results import Result, counted, headline
from rskc.cli._voice import Voice

MOST_CLUSTERS = 20
FILES = {
    "report.html": "the page that explains it all: open it in a browser",
    "labels.csv": "cluster, distance and more of each case",
    "features.csv": "weight and centers of each feature",
    "table.csv": "what the search tried",
    "model.rskc": "the model, for rskc predict",
    "summary.json": "settings and results, enough to repeat it",
}


def show_result(result: Result, folder: Path | None, voice: Voice) -> None:
    """The result in a few lines, and where the files are."""
    if voice.silent:
        return
    for section in result.sections:
        show_section(section, voice)
    voice.say("", _bold(headline(result)), "", _clusters(result))
    for heading, words in _facts(result):
        voice.say(_line(heading, words))
    for note in [*result.data.notes, *map(as_options, result.warnings)]:
        voice.note(clean(note, 2000))
    if folder is not None:
        show_files(folder, voice)


def show_section(section: dict[str, Any], voice: Voice) -> None:
    """What a search tried, and what it suggests."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    found = section["table"]
    table = Table(title=section["title"], title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for label in ["", *found["labels"]]:
        table.add_column(label, justify="right")
    for row, chosen in zip(found["rows"], found["chosen"], strict=True):
        table.add_row(">" if chosen else "", *row, style="bold green" if chosen else None)
    voice.say("", table, _bold(section["found"]), section["explain"])


def show_files(folder: Path, voice: Voice) -> None:
    """Which files were written."""
    voice.say("")
    voice.say_in_one_line(f"Written to {clean(folder, 2000)}:")
    width = max(map(len, FILES))
    for name, words in FILES.items():
        if (folder / name).exists():
            voice.say_in_one_line(f"  {name:<{width}}  {words}")


def _clusters(result: Result) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table, rows = Table(box=SIMPLE_HEAD), result.summary["result"]["clusters"]
    for label in ("Cluster", "Cases", "Outliers", "Silhouette"):
        table.add_column(label, justify="right")
    for row in rows[:MOST_CLUSTERS]:
        width = "–" if row["silhouette"] is None else f"{row['silhouette']:.2f}"
        table.add_row(f"{row['cluster']}", f"{row['cases']:,}", f"{row['outliers']:,}", width)
    if len(rows) > MOST_CLUSTERS:
        table.add_row("...", f"{len(rows) - MOST_CLUSTERS} more", "", "")
    return table


def _facts(result: Result) -> Any:
    found, truth = result.summary["result"], result.summary["truth"]
    if found["l1_bound"] is not None and found["top_features"]:
        weights = [f"{clean(f['feature'])} {f['weight']:.2g}" for f in found["top_features"]]
        yield "Largest weights", _few(weights, found["n_features"])
    if found["n_outliers"]:
        names = [clean(name) for name in result.counts.farthest["case"]]
        yield "Outliers", _few(names, found["n_outliers"])
    if truth is not None:
        told = (
            f"{truth['cer']:.1%} of the pairs of cases are together in one and apart in the other"
        )
        told += f" (CER {truth['cer']:.3f})"
        if result.is_sample:
            told += f", among {truth['n_cases']:,} cases drawn at random"
        yield f"Compared with {clean(truth['label_column'])}", told
    if result.data.table.n_missing:
        yield "Missing", counted(result.data.table.n_missing, "cell")
    seconds = result.data.seconds + result.seconds
    if result.is_sample:
        shown = f"{len(result.model.labels_):,} of the cases, drawn at random"
        yield "On the page and in model.rskc", shown
    yield "Time", f"{seconds:.1f} s, of which reading {result.data.seconds:.1f} s"


def clean(text: Any, width: int = 40) -> str:
    """A name of the user's in one line, without anything that a terminal would obey."""
    from rskc.wording import cleaned

    return cleaned(text, width)


def _few(words: list[str], n: int) -> str:
    more = n - len(words[:MOST_NAMES])
    return ", ".join(words[:MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def _bold(words: str) -> Any:
    from rich.text import Text

    return Text(words, style="bold")


def _line(heading: str, words: str) -> Any:
    from rich.text import Text

    return Text.assemble((f"{heading}: ", "cyan"), words)
