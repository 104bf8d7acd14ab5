"""What is written of a result, a folder that is there whole or not at all, and what is shown.

The terminal is for a reader who does not know the method.
"""

import importlib.util
import os
import re
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from rskc.cli import STARTED
from rskc.cli._app import Console
from rskc.cli._options import Results
from rskc.cli._results import MOST_NAMES, Counts, Result
from rskc.cli._tables import named_cases
from rskc.exceptions import FitWarning
from rskc.utils.atomic import PREFIX, SUFFIX, umask
from rskc.utils.wording import cleaned, listed, number

# The files that we write, and what they are.
FILES = {
    "report.html": "the page that explains the result: open it in a browser",
    "labels.csv": "cluster, distances and more for each case",
    "features.csv": "weight of each feature, and its centers",
    "cells.csv": "the outlying cells, and by how much",
    "markers.csv": "the features that set each cluster apart, and by how much",
    "table.csv": "what the search tried, and how it went",
    "model.rskc": "the model, for rskc predict",
    "summary.json": "settings and results, enough to repeat it",
    "cluster-*.rnk": "all features, ranked, for enrichment tools",
}
RANKED = re.compile(r"cluster-\d+\.rnk")  # those of write_ranked_lists
OURS = re.compile("|".join([RANKED.pattern, *map(re.escape, FILES)]))


@contextmanager
def results_folder(folder: Path, force: bool, table: Path) -> Iterator[Path]:
    """Make a folder beside ``folder`` to write into, which takes its place when the block ends.

    If the block is left by an exception, nothing stays. With ``force`` an existing folder keeps
    what is not ours. ``table`` is the file that the results are made of.
    """
    target = Path(os.path.realpath(folder))
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{str(folder)!r} is a file, and the results need a folder; use --out.")
    source = Path(os.path.realpath(table))
    if source.parent == target and OURS.fullmatch(source.name):
        raise ValueError(
            f"{str(table)!r} would be overwritten by the results in {str(folder)!r}; use --out "
            "for another folder."
        )
    check_empty(target, folder, force)
    made, part = [parent for parent in target.parents if not parent.exists()], None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        prefix = f"{PREFIX}{target.name[:60]}."
        part = Path(tempfile.mkdtemp(prefix=prefix, suffix=SUFFIX, dir=target.parent))
        yield part
        check_empty(target, folder, force)  # another run may have made it meanwhile
        _install(part, target)
    except BaseException as error:
        if part is not None:
            shutil.rmtree(part, ignore_errors=True)
        for parent in made:
            with suppress(OSError):
                parent.rmdir()
        if isinstance(error, OSError) and error.errno is not None:
            # About the folder that was asked for, and not about the temporary one.
            name = str(folder)
            if part is not None:
                name = os.fspath(error.filename or folder).replace(str(part), name)
            raise type(error)(error.errno, error.strerror, name) from error
        raise


def check_empty(target: Path, folder: Path, force: bool) -> None:
    """Refuse to replace results, unless that is asked for."""
    if not force and target.is_dir() and any(target.iterdir()):
        raise ValueError(
            f"the folder {str(folder)!r} already exists; use --force to replace the results in "
            "it, or --out for another folder."
        )


def _install(part: Path, target: Path) -> None:
    part.chmod(0o777 & ~umask())
    with suppress(OSError):  # it is there, and has files in it
        part.rename(target)
        return
    written = {file.name for file in part.iterdir()}
    for name in sorted(written):
        os.replace(part / name, target / name)
    # Of ours, those of an earlier result are gone; nothing else in a folder is ever removed.
    for name in filter(OURS.fullmatch, {file.name for file in target.iterdir()} - written):
        (target / name).unlink()
    part.rmdir()


def stem_of(table: Path) -> str:
    """Return what results of a table are called: genes for /data/genes.tsv.gz."""
    name = table.name
    if not name or "*" in name:  # this folder, or a pattern
        name = (table.resolve().parent if name else table.resolve()).name
    stem = name.removesuffix(".gz")
    return stem.removesuffix(Path(stem).suffix) or name


def check_no_file(path: Path, force: bool, *inputs: Path) -> None:
    """Refuse, before any work, to overwrite a file or to write where there is no folder."""
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder; give the name of a file to --out.")
    if path.is_file() and not force:
        raise ValueError(
            f"{str(path)!r} already exists; use --force to replace it, or --out for another name."
        )
    if any(path.exists() and each.exists() and path.samefile(each) for each in inputs):
        raise ValueError(f"{str(path)!r} is one of the files to read; use --out for another name.")
    path.parent.mkdir(parents=True, exist_ok=True)


def check_installed(packages: Iterable[str], extra: str, why: str) -> None:
    """Say before the work, and not after it, what is not installed."""
    missing = " and ".join(name for name in packages if not importlib.util.find_spec(name))
    if missing:
        are = "are" if " " in missing else "is"
        raise ImportError(f'{missing} {are} needed {why}; pip install "rskc[{extra}]".')


def check_report() -> None:
    """Say before the work that a page cannot be made."""
    check_installed(("jinja2", "vl_convert"), "report", "for the HTML page (or --no-report)")


def write_results(folder: Path, result: Result, asked: Results, tried: Any) -> None:
    """Write all files; labels.csv is there already where tables are read in blocks.

    ``tried`` is the table of a search, None for a fit.
    """
    from rskc.files import save, write_csv, write_json, write_ranked_lists

    data, tables = result.data, result.tables()
    extra = {  # what predict and report need to know
        "reading": data.reading,
        "id_column": data.table.id_column,
        "units": {name: unit for name, unit in data.table.written.items() if unit},
        "preparation": data.preparer.to_plain(),
        "file": data.table.path.name,
        "sha256": data.table.sha256,
        "command": result.command,
        "title": asked.title,
    }
    if result.searches:
        from rskc.report import to_keep

        extra["searches"] = to_keep(result.model, data.X, result.searches)
    if result.whole is None:
        tables["labels.csv"] = result.cases
    if tried is not None:
        tables["table.csv"] = tried
    for name, frame in tables.items():
        write_csv(frame, folder / name)
    save(result.model, folder / "model.rskc", extra=extra)
    if not asked.no_report:
        write_page(folder / "report.html", result, asked.title)
    if asked.ranked_lists and len(result.model.cluster_centers_) > 1:
        write_ranked_lists(result.model, data.X, folder)
    write_json(result.summary, folder / "summary.json")


def write_page(path: Path, result: Result, title: str | None) -> None:
    """Write the HTML page."""
    from rskc.report import Report

    heading = cleaned(title or f"Clusters of {result.data.table.path.name}", 200)
    summary = result.page | {"title": heading}
    if result.is_sample:
        n, shown = result.counts.total("cases"), len(result.model.labels_)
        summary["headline"] = result.headline
        about = (
            f"All {n:,} cases were clustered. Apart from the headline, this page is about "
            f"{shown:,} of them, drawn at random, and counts only these; labels.csv has all."
        )
        summary["meaning"] = [about, *summary["meaning"]]
    Report(summary).save(path)


def open_model(path: Path) -> Any:
    """Open a saved model, given its file or its folder."""
    from rskc.files import ModelFileError, read_model

    if path.is_dir() and not (path / "model.rskc").exists():
        raise ModelFileError(f"the folder {str(path)!r} has no model.rskc in it.")
    return read_model(path / "model.rskc" if path.is_dir() else path)


def preparer_of(saved: Any) -> Any:
    """Return what prepared the table of a saved model; nothing did where the library saved it."""
    from rskc.preprocessing.preparer import Preparer

    usual = {"log": None, "standardize": None, "scale": "auto"}
    return Preparer.from_plain(saved.extra.get("preparation", usual), saved.model.n_features_in_)


def show_result(result: Result, folder: Path | None, console: Console) -> None:
    """Print the result in a few lines, and where the files are."""
    if console.silent:
        return
    for finding in result.findings:
        _show_finding(finding, console)
    console.print("", result.headline, style="bold")
    for item in result.advice:
        if item["alarm"]:
            console.fact(item["about"], item["brief"], "bold yellow")
    console.print("", clusters_table(result.counts))
    for heading, words in _facts(result):
        console.fact(heading, words)
    sentences = [each for each in result.warnings if not isinstance(each, FitWarning)]
    console.note(*result.data.notes, *sentences)
    advice = [item for item in result.advice if not item["alarm"]]
    if advice:
        console.print("", "What to try next", style="bold")
    for item in advice:
        console.fact(item["about"], item["brief"])
    if folder is not None:
        console.print("", f"Written to {cleaned(folder, 2000)}:", soft_wrap=True)
        names = {RANKED.sub("cluster-*.rnk", file.name) for file in folder.iterdir()}
        for name in filter(names.__contains__, FILES):
            line = f"  {name:<{max(map(len, FILES))}}  {FILES[name]}"
            console.print(line, soft_wrap=True)
        if not result.is_sample:
            page = shlex.quote(str(folder / "explorer.html"))
            words = f"All other settings on one page: rskc explore, of the same table, --out {page}"
            console.print("", words, soft_wrap=True)


def _show_finding(finding: Any, console: Console) -> None:
    labels, rows, chosen = (finding.table[part] for part in ("labels", "rows", "chosen"))
    console.print("")
    if rows:  # else nothing was tried
        marked = [[">" * mark, *row] for row, mark in zip(rows, chosen, strict=True)]
        table = text_table(["", *labels], marked, finding.title)
        for row, mark in zip(table.rows, chosen, strict=True):
            row.style = "bold green" if mark else None
        console.print(table)
    console.print(finding.headline, style="bold")
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
    rows = [[written[name](row[name]) for name in names] for row in clusters]
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
    parts = f"reading {data.seconds:.1f} s, clustering {result.seconds:.1f} s"
    yield "Time", f"{time.perf_counter() - STARTED:.1f} s, of which {parts}"


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
