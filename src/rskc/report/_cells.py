"""The outlying cells: how many, where most of them are, and a picture of the table with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rskc.model.summary import FlaggedCells, frame_of_cells, in_units
from rskc.pictures import models as pictures
from rskc.report._facts import CHART_WIDTH, Facts, clean_names, plain_numbers
from rskc.utils.wording import cleaned, count

MOST_MARKS = 2000  # of the picture
FARTHEST = 1000  # of these, wherever they are; the others are drawn at random
MOST_ROWS = 8  # features, and cases, with the most outlying cells


def cells_of(facts: Facts) -> dict[str, Any] | None:
    """Return how many cells are outlying, and the features and cases that have most of them."""
    cells = facts.cells
    if cells is None or not len(cells.cases):
        return None
    return {
        "n_cells": len(cells.cases),
        "share": len(cells.cases) / (facts.n * facts.p - facts.model.n_missing_),
        "cutoff": float(facts.model.cell_cutoff_),
        "features": _most(cells.features, cells.scales, facts.feature_names, facts.n),
        "cases": _most(cells.cases, cells.scales, facts.case_names, facts.p),
    }


def _most(places: np.ndarray, scales: np.ndarray, names: list[str], n: int) -> dict[str, Any]:
    """Return the features, or cases, with the most outlying cells; ``n`` cells has each."""
    counts = np.bincount(places, minlength=len(names))
    first = np.argsort(-counts, kind="stable")[: min(MOST_ROWS, np.count_nonzero(counts))]
    return {
        "n": int(np.count_nonzero(counts)),
        "rows": [
            {
                "name": cleaned(names[j]),
                "n_cells": int(counts[j]),
                "share": float(counts[j] / n),
                # The cells are sorted, the farthest first.
                "farthest": float(f"{scales[np.argmax(places == j)]:.4g}"),
            }
            for j in first
        ],
    }


def outlying(facts: Facts) -> dict[str, Any]:
    """Draw the outlying cells in the table, cases sorted by cluster."""
    assert facts.cells is not None
    cells, rows = facts.cells, pictures.rows_by_cluster(facts.labels)
    drawn = _drawn(len(cells.cases))
    chosen = FlaggedCells(*(part[drawn] for part in cells))
    frame = in_units(frame_of_cells(facts.model, chosen), facts.units)
    used = np.unique(facts.labels)
    note = ""
    if len(drawn) < len(cells.cases):
        note = (
            f"Drawn: {len(drawn):,} of {count(len(cells.cases), 'cell')}: the {FARTHEST:,} that "
            "are farthest from their centers, and others taken at random."
        )
    return {
        "marks": {
            "x": plain_numbers(chosen.features),
            "y": plain_numbers(rows.places[chosen.cases]),
            "scales": plain_numbers(chosen.scales),
            "value": plain_numbers(frame["value"]),
            "center": plain_numbers(frame["center"]),
            "cluster": plain_numbers(facts.labels[chosen.cases]),
            "case": clean_names((facts.case_names[i] for i in chosen.cases), CHART_WIDTH),
            "feature": clean_names((facts.feature_names[j] for j in chosen.features), CHART_WIDTH),
        },
        "clusters": {
            "cluster": plain_numbers(used),
            "start": plain_numbers(rows.ends[used] - facts.sizes[used]),
            "end": plain_numbers(rows.ends[used]),
        },
        "n_cases": facts.n,
        "n_features": facts.p,
        "alt": f"The table of {count(facts.n, 'case')}, sorted by cluster, and "
        f"{count(facts.p, 'feature')}, with a mark at each of "
        f"{count(len(cells.cases), 'outlying cell')}.",
        "notes": [note] if note else [],
    }


def _drawn(n: int) -> np.ndarray:
    """Choose cells to be drawn of n that are sorted, the farthest first."""
    if n <= MOST_MARKS:
        return np.arange(n)
    others = np.random.default_rng(0).permutation(np.arange(FARTHEST, n))
    return np.concatenate([np.arange(FARTHEST), np.sort(others[: MOST_MARKS - FARTHEST])])
