"""Make the finished reports and explorers that the site shows, of simulated tables.

    python docs/make_pages.py FOLDER

The build of the site runs it, in a minute or two.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

PAGES = ("report.html", "explorer.html")
SETTINGS = ["-k", "2-5", "--n-features", "6", "--trims", "0,0.05", "--splits", "1"]


def single_cells():
    """Count transcripts: 500 cells of four types, 150 genes, of which each type has its markers."""
    rng = np.random.default_rng(11)
    types = np.repeat(["B cell", "T cell", "monocyte", "NK cell"], [180, 160, 110, 50])
    means = rng.gamma(0.6, 3.0, 150)
    rates = np.tile(means, (500, 1))
    for place, kind in enumerate(np.unique(types)):
        markers = slice(12 * place, 12 * place + 12)
        rates[np.ix_(types == kind, range(150)[markers])] += rng.gamma(4.0, 2.5, 12)
    depth = rng.lognormal(0, 0.35, 500)
    counts = rng.poisson(rates * depth[:, None] * rng.gamma(5, 0.2, rates.shape))
    genes = [f"GENE{j:03d}" for j in range(1, 151)]
    frame = pd.DataFrame(counts, columns=genes)
    frame.insert(0, "cell", [f"cell{i:04d}" for i in range(500)])
    frame.insert(1, "type", types)
    return frame.sample(frac=1, random_state=0)


def customers():
    """Make up customers: amounts, counts and where they buy; typing errors, and some gaps."""
    rng = np.random.default_rng(12)
    group = np.repeat([0, 1, 2], [210, 130, 60])
    spend = np.array([900.0, 2600.0, 9500.0])[group] * rng.lognormal(0, 0.25, 400)
    orders = rng.poisson(np.array([5, 22, 30])[group]) + 1
    frame = pd.DataFrame(
        {
            "customer": [f"C{i:04d}" for i in range(400)],
            "annual spend": spend.round(2),
            "orders": orders,
            "returned share": rng.beta(*np.array([(2, 30), (8, 14), (2, 40)])[group].T).round(3),
            "days since order": (rng.gamma(3, np.array([30, 6, 8])[group])).round(),
            "newsletter": np.where(rng.random(400) < np.array([0.2, 0.8, 0.6])[group], "yes", "no"),
            "channel": np.where(rng.random(400) < np.array([0.2, 0.85, 0.3])[group], "app", "shop"),
            "age": rng.normal(44, 13, 400).round().clip(18, 90),
            "shoe size": rng.normal(41, 2.5, 400).round(),
            "distance km": rng.gamma(2, 6, 400).round(1),
        }
    ).sample(frac=1, random_state=0)
    frame.iloc[[17, 230], 1] *= 100  # cents for euros
    return frame.mask(rng.random(frame.shape) < 0.02 * (np.arange(frame.shape[1]) > 1))


def survey():
    """Answers to 16 questions by 300 people: categories and ratings, some without an answer."""
    rng = np.random.default_rng(13)
    group = np.repeat([0, 1, 2], [130, 100, 70])
    often = ["never", "sometimes", "often"]
    columns = {"person": [f"P{i:03d}" for i in range(300)]}
    for topic, likely in {
        "cycles": (0.03, 0.95, 0.3),
        "drives": (0.97, 0.05, 0.1),
        "takes the train": (0.02, 0.4, 0.97),
        "works at home": (0.05, 0.1, 0.95),
        "eats meat": (0.95, 0.05, 0.6),
        "grows vegetables": (0.6, 0.95, 0.02),
        "goes to concerts": (0.05, 0.1, 0.9),
        "repairs things": (0.5, 0.97, 0.03),
        "buys second-hand": (0.1, 0.95, 0.2),
    }.items():
        columns[topic] = np.array(often)[rng.binomial(2, np.array(likely)[group])]
    is_urban = rng.random(300) < np.array([0.03, 0.3, 0.97])[group]
    columns["home"] = np.where(is_urban, "city", "country")
    for number in range(1, 7):
        columns[f"opinion {number}"] = rng.integers(1, 6, 300)
    frame = pd.DataFrame(columns).sample(frac=1, random_state=0)
    return frame.mask(rng.random(frame.shape) < 0.03 * (np.arange(frame.shape[1]) > 0))


TABLES = {
    "single-cells": (single_cells, ["--label-column", "type"]),
    "customers": (customers, []),
    "survey": (survey, []),
}


def rskc(*words):
    """Run a command, in silence."""
    command = [sys.executable, "-m", "rskc", *map(str, words)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_pages(folder):
    """Write report and explorer of each table, in a folder of its own; those there are kept."""
    with TemporaryDirectory() as place:
        work = Path(place)
        if not (folder / "expression").exists():
            rskc("demo", "--out", work / "demo")
            _keep(work / "demo" / "expression-rskc", folder / "expression")
        for name, (make, options) in TABLES.items():
            if (folder / name).exists():
                continue
            table, results = work / f"{name}.csv", work / name
            make().to_csv(table, index=False)
            rskc("fit", table, *options, "--out", results)
            rskc("explore", table, *options, *SETTINGS, "--out", results / "explorer.html")
            _keep(results, folder / name)


def _keep(results, folder):
    folder.mkdir(parents=True)
    for page in PAGES:
        shutil.copy(results / page, folder)


if __name__ == "__main__":
    make_pages(Path(sys.argv[1]))
