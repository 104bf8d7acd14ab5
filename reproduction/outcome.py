"""What an experiment leaves: a figure, tables and a verdict, and the files made of them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from rskc.exceptions import SmallClusterWarning
from rskc.utils.atomic import atomic_write
from rskc.utils.wording import quoted

# Above the pages of all experiments.
INTRODUCTION = """\
# The paper's experiments, repeated

Kondo, Salibian-Barrera and Zamar, "A robust and sparse K-means clustering algorithm"
([arXiv:1201.6082](https://arxiv.org/abs/1201.6082)), show that sparse K-means, which finds the few
features that separate the clusters, breaks down with a single outlying cell, and that trimming
cases by two rules at once makes it robust. Below are the paper's experiments as rskc repeats them,
compared with the numbers of the paper and of RSKC 2.4.2, the authors' R package. K is K-means, SK
sparse, TK trimmed, and RSK robust and sparse K-means; CER, the classification error rate, is the
share of pairs of cases that are together in one partition and apart in the other.

The command above each result repeats it, in a clone of the repository. The same seed (`--seed`, 0
here) gives the same numbers. This page is made by `python -m reproduction --out docs/reproduction`.
"""
OF_DATA = {"breast-cancer": " --data tumours.csv --labels receptor.csv --label-column ER"}


@dataclass(frozen=True)
class Reproduction:
    """One experiment.

    Attributes
    ----------
    name, title : str
        For files and headings.
    figure : matplotlib.figure.Figure
        The paper's figure, drawn anew.
    tables : dict of str to pandas.DataFrame
        Numbers, by caption; next to ours those of the paper and of RSKC, where there are any.
    verdict : str
        What agrees, what does not, and why.
    """

    name: str
    title: str
    figure: Any
    tables: dict[str, Any]
    verdict: str

    def markdown(self) -> str:
        """Return the page of this experiment."""
        parts = [f"## {self.title}", f"![{self.title}]({self.name}.png)"]
        for caption, table in self.tables.items():
            parts += [f"**{caption}**", _markdown_table(table)]
        return "\n\n".join([*parts, self.verdict]) + "\n"

    def save(self, folder: str | os.PathLike) -> list[Path]:
        """Write the figure (PNG and SVG), a CSV for each table, and the page; return the files."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        files: dict[str, bytes] = {
            f"{self.name}.png": self._drawn("png"),
            f"{self.name}.svg": self._drawn("svg"),
            f"{self.name}.md": self.markdown().encode(),
        }
        for number, table in enumerate(self.tables.values(), start=1):
            suffix = "" if len(self.tables) == 1 else f"-{number}"
            files[f"{self.name}{suffix}.csv"] = table.to_csv(index=False).encode()
        for name, content in files.items():
            with atomic_write(folder / name, "wb") as file:
                file.write(content)
        return [folder / name for name in files]

    def _drawn(self, kind: str) -> bytes:
        import matplotlib

        buffer = BytesIO()
        same = {"Date": None} if kind == "svg" else {}
        with matplotlib.rc_context({"svg.hashsalt": self.name}):  # the same bytes every time
            self.figure.savefig(buffer, format=kind, dpi=120, metadata=same)
        return buffer.getvalue()


@contextmanager
def small_clusters_expected() -> Iterator[None]:
    """Keep back the warning of a cluster of outlying cases: it is what the experiments show."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallClusterWarning)
        yield


def write_index(folder: Path, names: Iterable[str]) -> None:
    """Write ``index.md``: the pages of those experiments that are in a folder."""
    pages = [INTRODUCTION]
    for name in names:
        if (folder / f"{name}.md").exists():
            heading, rest = (folder / f"{name}.md").read_text("utf-8").split("\n", 1)
            command = f"python -m reproduction {name}{OF_DATA.get(name, '')}"
            pages.append(f"{heading}\n\n```bash\n{command}\n```\n{rest}")
    with atomic_write(folder / "index.md", "w") as file:
        file.write("\n".join(pages))


def read_column(path: Path, name: str) -> Any:
    """Read one column of a text table, as text."""
    import pandas as pd

    separator = "\t" if ".tsv" in path.suffixes else ","
    cells = pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False)
    if name not in cells:
        raise ValueError(
            f"{path.name!r} has no column {name!r}, but {quoted(cells.columns)}; use "
            "--label-column."
        )
    return cells[name].to_numpy(object)


def _markdown_table(table: Any) -> str:
    cells = [[_shown(value) for value in row] for row in table.itertuples(index=False)]
    lines = [list(map(str, table.columns)), ["---"] * len(table.columns), *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _shown(value: Any) -> str:
    if not isinstance(value, float | np.floating):
        return str(value)
    number = float(value)
    if np.isnan(number):
        return ""
    return f"{number:.4f}" if 0 < abs(number) < 1 else f"{number:.4g}"
