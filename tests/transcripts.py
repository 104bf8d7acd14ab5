"""What the command line says, command by command.

``python tests/transcripts.py`` rewrites ``transcripts.txt``; read the difference as someone at a
terminal would before it is committed.
"""

import contextlib
import os
import re
import shlex
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from reviewed import with_slashes
from rskc.cli._commands import app

KEPT = Path(__file__).with_name("transcripts.txt")
N = 40
GROUP = np.arange(N) % 2
COUNT = np.arange(N)


def frame(**columns):
    """Two clusters in two of four features, and more columns."""
    noise = np.random.default_rng(1).uniform(-1, 1, (4, N))  # without a tail
    features = {x: noise[j] + 6 * GROUP * (x in "ab") for j, x in enumerate("abcd")}
    return pd.DataFrame(columns | features)


def changed(cells, **columns):
    """The same with other cells, by row and column; ``*`` stands for all columns."""
    made = frame(**columns)
    for (row, column), value in cells.items():
        made.loc[row, list(made) if column == "*" else column] = value
    return made


def text_of(table, **how):
    return table.to_csv(index=False, **how)


def words(first, second):
    return np.array([first, second])[GROUP]


def names(begin):
    return [f"{begin}{i}" for i in range(N)]


FIT = "fit t.csv -k 2 --n-init 5 --force --no-report"
ASIDE = "fit t.csv -k 2 --n-init 5 --force --no-report --text-columns refuse"
REPEATED = ["P1007", *(f"P{1000 + 7 * i}" for i in range(1, N))]
KILOS = [f"{7 * i % 40} kg" for i in range(N)]
NOISE = pd.DataFrame(np.random.default_rng(3).normal(size=(N, 6)), columns=list("abcdef"))
GENES = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 12))).add_prefix("S")
GENES.insert(0, "gene", [f"G{i}" for i in range(60)])
SPENT = {
    "salary": [f"${25108 + 13 * i:,}.0" for i in range(N)],
    "share": [f"{7 * i % 40}%" for i in range(N)],
    "crp": ["<5", "<5", *(5 + 7 * i % 40 for i in range(N - 2))],
}
CODED = changed({(row, "a"): -999 for row in (3, 8, 20)} | {(5, "c"): -999, (21, "c"): -999})
MIXED = {
    "smoker": words("yes", "no"),
    "color": [None, *["red", "green", "blue"] * (N // 3)],
    "visit": [f"2024-01-{1 + i % 28:02d}" for i in range(N)],
    "comment": names("note "),
    "code": COUNT % 3,
}
SPELLED = {"churned": GROUP, "city": words("berlin", "Berlin")}
WRONG = [
    "--l1-bound 0.2",
    "--n-features 99",
    "--n-features 3 --l1-bound 2",
    "--n-features 3 --l1-bound choose",
    "--trim 0.7",
    "--seed -1",
    "--threads 0",
    "--id-column nme",
    "--weight-column nme",
    "--drop gene99",
    "--decimal ';'",
    "--separator ::",
    "--separator é",
    "--cells 0",
    "--groups none.gmt",
]
PARTS = [
    (f"big/part.{k}.parquet", frame(group=words("x", "y"))[8 * k : 8 * k + 8]) for k in range(5)
]
# Tables, which are written to t.csv or to the file that is named, and commands. Of a pipe the last
# table is read.
SCENARIOS: dict[str, list[Any]] = {
    "A plain table": [frame(), FIT],
    "A cell of 1e300": [changed({(7, "a"): 1e300}), f"{FIT} --prepare none"],
    "Squares that overflow": [
        changed({(6, "c"): -1e300}),
        "fit t.csv --trim 0 --n-init 5 --jobs 1 --no-report",
        changed({(6, "c"): -1e300}, patient=names("p")),
        f"{FIT} --trim 0",
    ],
    "Cases without names are named by their lines": [
        changed({(7, "c"): 90.0, (11, "*"): np.nan}),
        FIT,
        text_of(changed({(7, "c"): 90.0})).replace("\n", "\n\n", 3),
        FIT,
    ],
    "Rows without a value": [
        changed({(7, "c"): 90.0, (0, "*"): np.nan}),
        FIT,
        changed({(7, "c"): 90.0, (0, "*"): np.nan, (1, "*"): np.nan}),
        FIT,
        "predict t-rskc t.csv --out new.csv",
    ],
    "One feature": [frame()[["a"]], FIT],
    "Too few cases": [frame().head(3), "fit t.csv --no-report"],
    "No clusters": [
        NOISE.assign(label=GROUP),
        "select-k t.csv -k 2-3 --splits 2 --references 3 --n-init 3 --jobs 1 --out none",
    ],
    "Parameters by their options": [
        frame(),
        "fit t.csv -k 99 --no-report",
        "fit t.csv -k 25 --trim 0.45 --no-report",
        f"{FIT} --l1-bound 50",
    ],
    "Columns of one name, and titles": [
        text_of(frame()).replace("a,b,c,d", "a,a,c,d", 1),
        FIT,
        f"My measurements\n\n{text_of(frame())}",
        FIT,
        f"{text_of(frame())}total,1,2,3,4\n",
        FIT,
    ],
    "Numbers with units": [
        frame().assign(**SPENT),
        FIT,
        text_of(frame().assign(salary=[f"{i},108" for i in range(1, N + 1)]), sep=";"),
        FIT,
        frame().assign(note=["1,500.0", "a, b and c.", *["x"] * (N - 2)]),
        ASIDE,
    ],
    "Another unit": [
        frame(mass=KILOS),
        FIT,
        frame(mass=[cell.replace("kg", "KG") for cell in KILOS]),
        "predict t-rskc t.csv --out new.csv",
        frame(mass=[cell.replace("kg", "lb") for cell in KILOS]),
        "predict t-rskc t.csv --out newer.csv",
    ],
    "Decimal commas": [
        text_of(frame().assign(mass=COUNT + 0.5), sep=";", decimal=","),
        FIT,
        text_of(frame().assign(mass=1000).round().astype(int), sep=";"),  # which does not show them
        "predict t-rskc t.csv --out new.csv",
    ],
    "From a pipe": [frame(), FIT.replace("t.csv", "-")],
    "Other columns than those of the fit": [
        frame(kind=words("y", "x"), noise=np.where(NOISE["a"] > 0, "u", "v")),
        FIT,
        frame(kind=words("y", "x"), noise="u", e=1.5, f="text"),
        "predict t-rskc t.csv --out new.csv",
        frame(),
        "predict t-rskc t.csv --out newer.csv",
        frame(kind=words("y", "x"), noise="u").assign(a="high"),
        "predict t-rskc t.csv --out newer.csv",
    ],
    "Units that differ": [
        frame(salary=1e5 * NOISE["a"], heavy=np.random.default_rng(0).standard_cauchy(N) ** 3),
        f"{FIT} --prepare none",
        f"{FIT} --standardize columns --scale classic",
    ],
    "Ids and classes": [
        frame(id=COUNT + 1000, label=GROUP + 1),
        FIT,
        FIT.replace("csv", "parquet"),
        f"{FIT.replace('csv', 'parquet')} --engine dask",
        f"{FIT} --use-column id",
        f"{FIT} --use-column idd",
    ],
    "Days as numbers": [frame(visit=20200101 + COUNT % 28 + 100 * (COUNT % 12), id=COUNT), FIT],
    "Text": [
        frame(label=words("x", "y"), cls=words("x", "y"), case=names("P")),
        f"{FIT} --text-columns drop",
        frame(city=words("x", "y")),
        FIT,
        ASIDE,
        frame(city=names("x")),
        ASIDE,
        frame(city=words("x", "y"), town=words("x", "y")),
        ASIDE,
    ],
    "A table on its side": [GENES, FIT, f"{FIT} --features-in-rows", f"{FIT} --cases-in-rows"],
    "A number for missing cells": [
        CODED,
        FIT,
        f"{FIT} --missing -999",
        FIT.replace("csv", "parquet"),
        f"{FIT.replace('csv', 'parquet')} --missing -999",
    ],
    "Categories and dates": [
        frame(**MIXED),
        FIT,
        f"{FIT} --dates numbers --categorical code --standardize none",
        f"{FIT} --text-columns drop",
        f"{FIT} --standardize rows",
        ASIDE,
    ],
    "Text of many values": [
        frame(town=[f"town {i % 19}" for i in range(N)]),
        FIT,
        f"{FIT} --categorical town",
        frame(town=[f"town {i % 20}" for i in range(N)]),
        FIT,
        f"{FIT} --categorical town",
    ],
    "None and NA": [
        frame(drinks=words("None", "much"), region=words("NA", "EU"), some=["None", *COUNT[1:]]),
        FIT,
        f"{FIT} --missing None",
    ],
    "Outcomes and spelling": [
        frame(patient=[f"P{i // 2}" for i in range(N)], **SPELLED),
        f"{FIT} --id-column patient",
    ],
    "Ids that repeat": [
        frame(customer_id=REPEATED),
        FIT,
        frame(customer_id=[*REPEATED[:30], *REPEATED[:10]]),
        FIT,
        pd.concat([frame(customer_id=names("P")), frame(customer_id=names("P"))[:3]]),
        FIT,
    ],
    "Weights": [
        frame(people=1 + COUNT % 3, town="north"),
        f"{FIT} --weight-column people",
        f"{FIT} --weight-column town",
    ],
    "Two results": [
        frame(),
        "fit t.csv -k 3 --n-init 5 --no-report --out three",
        "fit t.csv -k 2 --n-init 5 --no-report --out two --n-features 3",
        "changes two three/model.rskc",
        "changes three three",
        frame().head(30),
        "fit t.csv -k 3 --n-init 5 --no-report --out fewer",
        "changes three fewer",
        "changes three .",
    ],
    "What is there already": [
        frame(),
        "fit t.csv -k 1 --ranked-lists --no-report",
        "fit t.csv -k 2",
        FIT,
        "fit t-rskc/labels.csv -k 2 --force -o t-rskc",
        "predict t-rskc t.csv -o t.csv --force",
        "predict t-rskc t.csv -o t-rskc",
        "report t-rskc t.csv --out t-rskc/labels.csv",
        f"{text_of(frame())}\n",
        "report t-rskc t.csv --out page.html",
        text_of(frame().assign(a=0.0, b=-9 * frame()["b"])),
        "report t-rskc t.csv --out other.html",
    ],
    "Folders of files": [
        *PARTS,
        frame(),
        f"{FIT} --engine dask",
        "fit big/x*.parquet -k 3",
        "fit bug -k 3 --engine dask",
        "fit big -k 3 --use-column group --text-columns refuse",
        "fit big -k 3 --id-column x",
        "fit big -k 3 --features-in-rows",
        "fit big -k 3 --engine memory",
        "fit big -k 2 --n-init 5 --no-report",
        "predict big-rskc big --out -",
        "report big-rskc big",
        ("less/a.parquet", frame(group=words("x", "y")).drop(columns="b")),
        "predict big-rskc less --out new.csv",
        ("big/part.5.parquet", frame(group="x").assign(c=np.inf)),
        "fit big -k 2 --force",
        ("big/part.5.parquet", frame(group="x").rename(columns={"b": "other"})),
        "fit big -k 2 --force",
    ],
    "Refused": [
        frame(group=words("x", "y")),
        "fit no.csv -k 3",
        f"{ASIDE} --use-column group",
        "fit t.csv -k 300",
        "fit t.csv -k three",
        *(f"fit t.csv -k 3 {option}" for option in WRONG),
        "select-k t.csv --l1-bound choose",
        "select-k t.csv -k 2-40",
        "select-k t.csv --splits 0",
        "select-l1 t.csv -k 1",
        "compare t.csv -k 3 --trims 0,2",
        "predict t.csv t.csv",
        "predict no.rskc t.csv",
        "predict . t.csv",
        "report no.rskc t.csv",
        "explore t.csv -k 2 --trims 0.7",
        "explore t.csv -k 2 --n-features 2,9",
        "explore t.csv -k 2 --splits -1",
        "explore t.csv -k 1-2",
    ],
}
WRITTEN = re.compile(r"  (labels|features|markers|cells)\.csv|  model\.rskc|  summary\.json|$")


@contextlib.contextmanager
def somewhere() -> Iterator[None]:
    """Work in an empty folder, at a terminal that is wide enough for any sentence."""
    columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "1000"
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            yield
    finally:
        os.environ.pop("COLUMNS") if columns is None else os.environ.update(COLUMNS=columns)


def said(command: str, pipe: str | None) -> list[str]:
    """Run a command, and return what it says: an exclamation mark stands for stderr."""
    before = sorted(Path().iterdir())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = CliRunner().invoke(app, shlex.split(command), input=pipe)
    out = [line.rstrip() for line in result.stdout.splitlines() if "─" not in line]
    out = [re.sub(r"\d+\.\d s|\d+ ms", "0.0 s", line) for line in out if not WRITTEN.match(line)]
    # On a busy machine a log says what is under way.
    errors = [line for line in result.stderr.splitlines() if not line.endswith(" ...")]
    here = f"{Path().resolve()}{os.sep}"
    errors = [f"! {with_slashes(line.rstrip().replace(here, ''))}" for line in errors]
    if result.exit_code:
        assert not out or command.startswith("explore"), out
        assert len(errors) == 1, errors
        assert sorted(Path().iterdir()) == before
        errors.append(f"exit code {result.exit_code}")
    return [f"$ rskc {command}", *out, *errors]


def transcript(title: str) -> str:
    """Return what the commands of a scenario say."""
    lines, table, steps = [], None, SCENARIOS[title]
    is_parquet = any("t.parquet" in step for step in steps if isinstance(step, str))
    with somewhere():
        for step in steps:
            if isinstance(step, tuple):
                path, made = step
                Path(path).parent.mkdir(exist_ok=True)
                made.to_parquet(path, index=False)
                continue
            if isinstance(step, pd.DataFrame):
                if is_parquet:
                    step.to_parquet("t.parquet", index=False)
                step = text_of(step)
            if "\n" in step:
                table = step
                Path("t.csv").write_text(table, "utf-8")
            else:
                lines += [*said(step, table if " - " in step else None), ""]
    return "\n".join([f"# {title}", "", *lines])


def kept() -> dict[str, str]:
    """Return the transcripts that were reviewed, by title."""
    parts = re.split(r"^(?=# )", KEPT.read_text("utf-8"), flags=re.MULTILINE)
    return {part.partition("\n")[0].removeprefix("# "): part for part in parts if part}


if __name__ == "__main__":
    KEPT.write_text("\n".join(map(transcript, SCENARIOS)), "utf-8")
    print(f"{KEPT} has {len(KEPT.read_text('utf-8').splitlines())} lines; read what changed.")
