"""Make ``docs/reproduction``: the experiments of the paper, and a page that has them all.

    python docs/make_reproduction.py [--data FILE --labels FILE [--label-column ER]]

Without the data, breast-cancer is left as it is.
"""

import argparse
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from rskc.cli.reproduce import read_column
from rskc.files import read_table
from rskc.reproduce import EXPERIMENTS, Reproduction

FOLDER = Path(__file__).parent / "reproduction"
COMMANDS = {name: f"rskc reproduce {name}" for name in EXPERIMENTS}
COMMANDS["breast-cancer"] += " --data tumours.csv --labels receptor.csv --label-column ER"
INTRODUCTION = """\
# The paper's experiments, repeated

Kondo, Salibian-Barrera and Zamar, "A robust and sparse K-means clustering algorithm"
([arXiv:1201.6082](https://arxiv.org/abs/1201.6082)), show that sparse K-means, which finds the few
features that separate the clusters, breaks down with a single outlying cell, and that trimming
cases by two rules at once makes it robust. Below are the paper's experiments as rskc repeats them,
compared with the numbers of the paper and of RSKC 2.4.2, the authors' R package. K is K-means, SK
sparse, TK trimmed, and RSK robust and sparse K-means; CER, the classification error rate, is the
share of pairs of cases that are together in one partition and apart in the other.

The command above each result repeats it. The same seed (`--seed`, 0 here) gives the same
numbers. This page is made by `python docs/make_reproduction.py`.
"""


def main() -> None:
    """Run what can be run, and write the pages."""
    asked = _arguments()
    for name, experiment in EXPERIMENTS.items():
        if name != "breast-cancer":
            _save(experiment())
        elif asked.data is not None and asked.labels is not None:
            data = read_table(asked.data, id_column="sample").data
            _save(experiment(data, read_column(asked.labels, asked.label_column)))
    pages = [_page(name) for name in EXPERIMENTS if (FOLDER / f"{name}.md").exists()]
    (FOLDER / "index.md").write_text("\n".join([INTRODUCTION, *pages]), "utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--labels", type=Path)
    parser.add_argument("--label-column", default="ER")
    return parser.parse_args()


def _save(found: Reproduction) -> None:
    """Keep all but the SVG, which is large."""
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        for file in found.save(folder):
            if file.suffix != ".svg":
                shutil.copyfile(file, FOLDER / file.name)
    print(f"{found.name}: {found.verdict}\n")


def _page(name: str) -> str:
    """Return a page, with the command below its heading."""
    heading, rest = (FOLDER / f"{name}.md").read_text("utf-8").split("\n", 1)
    return f"{heading}\n\n```bash\n{COMMANDS[name]}\n```\n{rest}"


if __name__ == "__main__":
    main()
