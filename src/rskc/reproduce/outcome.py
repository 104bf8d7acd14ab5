"""What an experiment leaves: a figure, tables and a verdict, and the files made of them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from rskc.exceptions import SmallClusterWarning
from rskc.utils.atomic import atomic_write


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


def shown_rows(table: Any) -> list[list[str]]:
    """Return the cells of a table as people read them."""
    return [[_shown(value) for value in row] for row in table.itertuples(index=False)]


def _markdown_table(table: Any) -> str:
    lines = [list(map(str, table.columns)), ["---"] * len(table.columns), *shown_rows(table)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _shown(value: Any) -> str:
    if not isinstance(value, float | np.floating):
        return str(value)
    number = float(value)
    if np.isnan(number):
        return ""
    return f"{number:.4f}" if 0 < abs(number) < 1 else f"{number:.4g}"
