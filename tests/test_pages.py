"""Report, explorer and files of one result: the same numbers, the same clusters, links."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from browsing import Watch, skip_without_browser
from rskc.cli import main
from rskc.explorer.views import scene_of
from rskc.report import make_report
from rskc.webpage import link_pages

TABLE = "table.csv"


def make_table():
    """Three clusters of unequal sizes in 4 of 12 features, some outlying cells and rows."""
    rng = np.random.default_rng(5)
    labels = np.repeat([2, 0, 1], [34, 26, 20])
    X = rng.normal(size=(80, 12))
    X[:, :2] += 7.0 * (labels == 1)[:, None]
    X[:, 2:4] -= 7.0 * (labels == 2)[:, None]
    X.flat[rng.choice(X.size, 20, replace=False)] += 25.0
    X[3] += 9.0
    frame = pd.DataFrame(X.round(3), columns=[f"f{j}" for j in range(12)])
    frame.insert(0, "id", [f"case {i}" for i in range(80)])
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, the results of a fit, and the explorer beside its report."""
    folder = tmp_path_factory.mktemp("pages")
    table, results = folder / TABLE, folder / "results"
    make_table().to_csv(table, index=False)
    fit = ["fit", str(table), "--clusters", "3", "--out", str(results), "--quiet"]
    assert main(fit) == 0
    page = ["--out", str(results / "explorer.html"), "--quiet"]
    small = ["-k", "2-4", "--n-features", "2,4,12", "--trims", "0,0.05", "--splits", "1"]
    assert main(["explore", str(table), *small, "--jobs", "1", *page]) == 0
    return results


def rows_of(path):
    return list(csv.DictReader(path.open(encoding="utf-8-sig", newline="")))
