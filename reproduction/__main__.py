"""Repeat experiments of the paper, and write figure, tables and page of each.

    python -m reproduction masking              # or several, or none for all
    python -m reproduction simulation --replicates 20
    python -m reproduction breast-cancer --data tumours.csv --labels receptor.csv
    python -m reproduction --out docs/reproduction

figure-1: K-means and sparse K-means on 1,000 features, of which two matter. masking: why one
trimming rule is not enough. simulation: four methods, on clean data and with an outlying cell.
breast-cancer: 78 tumours by 4,751 genes, the data of which you need to have. digits: the example of
R's RSKC package. Each takes a minute or two. Files that are there are replaced; ``index.md`` has
the pages of all experiments in the folder.
"""

import argparse
import inspect
import sys
import warnings
from pathlib import Path
from typing import Any

from reproduction import EXPERIMENTS
from reproduction.outcome import read_column, write_index
from rskc.files import read_table


def main() -> int:
    """Run the experiments that are named; those that need data only if these are given."""
    asked = _asked()
    given: dict[str, Any] = {"seed": asked.seed, "replicates": asked.replicates}
    given |= {"n_jobs": asked.jobs, "checkpoint": asked.checkpoint, "progress": True}
    try:
        if asked.data is not None and asked.labels is not None:
            given["data"] = read_table(asked.data, id_column=asked.id_column).data
            given["labels"] = read_column(asked.labels, asked.label_column)
        everything = [name for name in EXPERIMENTS if name != "breast-cancer" or "data" in given]
        for name in asked.experiments or everything:
            _run(name, {key: value for key, value in given.items() if value is not None}, asked.out)
        write_index(asked.out, list(EXPERIMENTS))
    except (ValueError, OSError) as error:
        print(f"reproduction: {error}", file=sys.stderr)
        return 1
    return 0


def _run(name: str, given: dict[str, Any], out: Path) -> None:
    experiment = EXPERIMENTS[name]
    known = inspect.signature(experiment).parameters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the fits, which are no news here
        found = experiment(**{key: value for key, value in given.items() if key in known})
    print(found.markdown())
    for file in found.save(out):
        print(f"Written: {file}")


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("experiments", nargs="*", metavar="EXPERIMENT", help=", ".join(EXPERIMENTS))
    add("--data", type=Path, help="breast-cancer: log ratios, a row per tumour, a column per gene")
    add("--id-column", default="sample", help="column of --data with the names of the tumours")
    add(
        "--labels", type=Path, help="breast-cancer: a .csv or .tsv with the receptor, tumours alike"
    )
    add("--label-column", default="ER", help="column of --labels with it")
    add("--replicates", type=int, help="simulation: data sets of each model (default: 100)")
    add("--jobs", type=int, help="parallel fits (default: one per core)")
    add("--checkpoint", type=Path, help="simulation: keep what is done, to go on after a stop")
    add("--seed", type=int, default=0, help="another one gives other data, or other starts")
    add("--out", type=Path, default=Path("rskc-reproduction"), help="folder for the files")
    asked = parser.parse_args()
    if unknown := set(asked.experiments).difference(EXPERIMENTS):
        parser.error(f"there is no experiment {', '.join(sorted(unknown))}.")
    return asked


if __name__ == "__main__":
    sys.exit(main())
