"""From a grid of fits to the page."""

import html
import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from rskc.estimator import RobustSparseKMeans
from rskc.explorer.grid import Exploration
from rskc.explorer.packing import bits_for, packed, parcel, scaled
from rskc.explorer.views import Scene, scene_of, values_of
from rskc.inputs.labels import read_labels
from rskc.inputs.validation import names_of_cases
from rskc.model.fitted import feature_names
from rskc.model.summary import words_on_cells
from rskc.pictures.palette import DARK_PALETTE, PALETTE
from rskc.preprocessing.preparer import Unit
from rskc.selection.findings import words_on_sample
from rskc.selection.search import MAX_SAMPLES
from rskc.utils.snippets import snippet_of
from rskc.utils.webpage import Page, clean_names, content_policy, plain_numbers
from rskc.utils.wording import cleaned, count, exact_percent

STATIC = Path(__file__).parent / "static"
# The scripts, each after those that it imports.
SCRIPTS = "dom state data project plane map tree features values cases compare sliders take main"


class Explorer(Page):
    """Fits at many settings on one HTML page that needs no network.

    Parameters
    ----------
    search : Exploration
        A fitted one, as :func:`explore` makes it.
    labels, case_names, title
        As in :func:`explore`.
    run : mapping, default=None
        How the table was read: ``reader``, ``standardizer``, ``file`` and ``standardization``, as
        :func:`rskc.report.make_report` takes them.
    units : mapping, default=None
        Center and scale of columns that were standardized, by name: values are then shown as they
        were before.
    numbered_like : array-like of shape (n_samples,), default=None
        Labels, such as those of a report; clusters of the page that share their cases have the same
        numbers and colors. None for those of the automatic fit.

    Attributes
    ----------
    search : Exploration
        The fits.
    html : str
        The page.
    """

    def __init__(
        self,
        search: Exploration,
        *,
        labels: Any = None,
        case_names: Any = None,
        title: str | None = None,
        run: Mapping[str, Any] | None = None,
        units: Mapping[str, Any] | None = None,
        numbered_like: Any = None,
    ):
        _check_lengths(search.n_samples_, labels=labels, case_names=case_names)
        self.search, self.title = search, cleaned(title or "Explorer", 200)
        used = search.samples_used_
        names = range(search.n_samples_) if case_names is None else list(case_names)
        scene, classes = scene_of(search, numbered_like), None
        if labels is not None:
            codes, known = read_labels("labels", labels)
            classes = {"names": clean_names(known), "codes": codes[used].tolist()}
        words = {
            "title": self.title,
            **_words(search, scene),
            **_repeating(search, run or {}),
            "cases": clean_names(names[i] for i in used),
            "classes": classes,
            "features": clean_names(feature_names(search)),
        }
        arrays: dict[str, np.ndarray] = {}
        values = _values(search, scene, units or {})
        for part in (_views(scene, 2 * search.n_splits), values, _cells(search, scene)):
            words |= part[0]
            arrays |= part[1]
        modules = [(STATIC / f"{name}.js").read_text("utf-8") for name in SCRIPTS.split()]
        # One script, in which the names of the modules must differ.
        joined = re.sub(r"^import [^;]*;\n|^export ", "", "\n".join(modules), flags=re.MULTILINE)
        script = f'"use strict";\n(() => {{\n{joined}}})();\n'
        slots = {
            "title": html.escape(self.title),
            "policy": html.escape(content_policy([script])),
            "version": version("rskc"),
            "style": (STATIC / "style.css").read_text("utf-8"),
            "script": script,
            "data": parcel(words, arrays),
        }
        page = (STATIC / "page.html").read_text("utf-8")
        self.html = re.sub(r"\{\{(\w+)\}\}", lambda slot: slots[slot[1]], page)

    def __repr__(self) -> str:
        return f"<Explorer: {count(self.search.axes_.n_settings, 'setting')}, {self.title}>"


def explore(
    X: Any,
    *,
    n_clusters: Any = "auto",
    n_features: Any = "auto",
    trims: Any = "auto",
    n_splits: int = 2,
    estimator: RobustSparseKMeans | None = None,
    labels: Any = None,
    case_names: Any = None,
    sample_weight: Any = None,
    title: str | None = None,
    max_samples: int | None = MAX_SAMPLES,
    random_state: Any = 0,
    n_jobs: int | None = -1,
    checkpoint: Any = None,
    progress: Any = True,
) -> Explorer:
    """Fit all combinations of clusters, features and trimming, and put them on one page to explore.

    On the page three sliders choose a setting; clusters, their tree, features, cases and what
    differs from another setting follow. It marks what the automatic fit chooses. It is one file
    that opens without a network.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        The data, NaN for a missing cell.
    n_clusters : int, iterable of int or "auto", default="auto"
        Numbers of clusters. "auto": 2 to 8, and 2 more than half-samples choose.
    n_features : int, iterable of int or "auto", default="auto"
        Numbers of features that have weight, or how many numbers, spaced evenly on a logarithmic
        scale. "auto": 8, among them that of the automatic fit.
    trims : array-like or "auto", default="auto"
        Shares of the cases to trim. "auto": 0, 0.05 and 0.1, one of which gives way to the share
        of the automatic fit.
    n_splits : int, default=2
        Splits of the cases into halves, each of which is fitted with every setting: what the
        agreement of cases, features and settings is counted over. 0 for none.
    estimator : RobustSparseKMeans, default=None
        All other parameters.
    labels : array-like of shape (n_samples,), default=None
        Known classes to compare clusters with.
    case_names : array-like of shape (n_samples,), default=None
        Names of the cases; None for the index of the frame, or numbers.
    sample_weight : array-like of shape (n_samples,), default=None
        Case weights, in all fits; None for equal weights. The page counts cases.
    title : str, default=None
        Heading of the page.
    max_samples : int or None, default=5000
        Most cases to fit and to show. Of a larger table so many are drawn.
    random_state : int, RandomState or None, default=0
        Seed.
    n_jobs : int or None, default=-1
        Number of parallel fits; -1 for one per core.
    checkpoint : str, path or None, default=None
        File that keeps finished fits, so that the same call goes on from there.
    progress : bool or callable, default=True
        Whether to show a bar; or a function of the finished and of all tasks.

    Returns
    -------
    explorer : Explorer
        With ``html`` and ``save(path)``; shows itself in a notebook.

    Examples
    --------
    >>> import rskc
    >>> from rskc.datasets import make_simulation
    >>> data = make_simulation(n_samples=45, n_features=20, n_informative=8, random_state=0).data
    >>> rskc.explore(data, n_clusters=[2, 3], n_features=[4, 8], n_splits=0)
    <Explorer: 12 settings, Explorer>
    """
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    _check_lengths(n, labels=labels, case_names=case_names)
    model = RobustSparseKMeans(2, random_state=random_state) if estimator is None else estimator
    search = Exploration(
        model,
        n_clusters,
        n_features,
        trims,
        n_splits=n_splits,
        max_samples=max_samples,
        random_state=random_state,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        progress=progress,
    ).fit(X, sample_weight=sample_weight)
    names = names_of_cases(X) if case_names is None else case_names
    return Explorer(search, labels=labels, case_names=names, title=title)


def _check_lengths(n: int, **given: Any) -> None:
    for name, values in given.items():
        if values is not None and len(values) != n:
            raise ValueError(
                f"{name} has length {len(values)}; it must have length {n}, one for each case."
            )


# ---- Words


def _words(search: Exploration, scene: Scene) -> dict[str, Any]:
    axes, n, n_used = search.axes_, search.n_samples_, search.n_samples_used_
    n_halves, sample = 2 * search.n_splits, words_on_sample(search)
    budget = f"{count(axes.n_settings, 'setting')}, each fitted to {count(n_used, 'case')}"
    budget += f" and to {count(n_halves, 'half', 'halves')} of them." if n_halves else "."
    return {
        "version": version("rskc"),
        "n": n,
        "n_shown": n_used,
        "n_halves": n_halves,
        "axes": [axes.n_clusters, axes.n_features, axes.trims],
        "marked": scene.marked,
        "start": scene.start,
        "automatic": _automatic(search, scene),
        "reason": search.choice_.reason,
        "budget": budget,
        "sample": f"{sample} The page shows these cases, each counted once." if sample else "",
        "n_beyond": scene.n_beyond,
        "colors": PALETTE,
        "dark": DARK_PALETTE,
    }


def _automatic(search: Exploration, scene: Scene) -> str:
    """Say what the automatic choice took, and how near the marked setting comes to it."""
    K, _, fit = search.choice_
    if fit is None:
        return "The automatic choice is one cluster, that is, no clusters."
    n_features, share = search.n_active(fit["weights"]), float(fit["share"])
    text = (
        f"The automatic choice has {count(K, 'cluster')} and {count(n_features, 'feature')}, and "
        f"trims {exact_percent(share)} of the cases."
    )
    if scene.marked is None:
        return f"{text} That is not among the settings here."
    _, f, t = scene.marked
    if search.axes_.n_features[f] != n_features or abs(search.axes_.trims[t] - share) >= 1e-9:
        text += " The marks show the nearest setting here."
    return text


def _repeating(search: Exploration, run: Mapping[str, Any]) -> dict[str, Any]:
    """Return how each view is repeated, in Python."""
    n, p = search.n_samples_, search.n_features_in_
    # The fits saw a table without extreme cells; one to the table itself has to bound them.
    bounded = search.searched_ is not search.data_
    cells = {"cells": search.best_estimator_.cell_cutoff_} if bounded else {}
    own = clone(search.estimator).set_params(**cells)
    models = [clone(own).set_params(**setting) for setting in search.axes_.settings]
    weights = getattr(search.best_estimator_, "sample_weight_", None)
    snippets = [snippet_of(model, n, p, run, weights) for model in models]
    first = snippets[0]
    return {
        "python": "\n".join([*first.imports, "", *first.lines]),
        "fit": first.fit,
        "models": [snippet.model for snippet in snippets],
        "bounded": bounded,
    }


# ---- Numbers


# Words and arrays of the page.
Part = tuple[dict[str, Any], dict[str, np.ndarray]]


def _views(scene: Scene, n_halves: int) -> Part:
    views = scene.views
    arrays = {
        "labels": [packed(v.labels, bits_for(len(v.sizes))) for v in views],
        "flags": [packed(v.trimmed + 2 * v.outliers.astype(int), 2) for v in views],
        "agreed": [packed(v.times_agreed, bits_for(n_halves + 1)) for v in views],
        "features": [v.features.astype("<u4") for v in views],
        "weights": [scaled(v.weights, 0.0, 1.0) for v in views],
        "selected": [v.times_selected.astype("<u2") for v in views],
        "plane": [scaled(scene.plane, 0.0, 1.0)],
    }
    words = {
        "n_weights": [len(view.features) for view in views],
        "sizes": [view.sizes.tolist() for view in views],
        **{name: plain_numbers([v.figures[name] for v in views], 6) for name in views[0].figures},
    }
    return words, {name: np.concatenate(parts) for name, parts in arrays.items()}


def _values(search: Exploration, scene: Scene, units: Mapping[str, Any]) -> Part:
    values, categories = values_of(search, scene.shown, units)
    # Of each feature; 0 where nothing is observed.
    low, high = (np.nan_to_num(end.reduce(values, axis=0)) for end in (np.fmin, np.fmax))
    how = [Unit(*units.get(str(name), (0.0, 1.0))) for name in feature_names(search)[scene.shown]]
    words = {
        "shown": scene.shown.tolist(),
        "spans": np.column_stack([low, high]).tolist(),
        "categories": [each and clean_names(each) for each in categories],
        "scales": [float(unit.scale) for unit in how],
        "logs": [int(unit.log) for unit in how],
        "log_units": [float(unit.unit) for unit in how],
    }
    return words, {"values": scaled(values, low, high).T}


def _cells(search: Exploration, scene: Scene) -> Part:
    """Return the outlying cells: counts of all, and which cases have them in features shown."""
    if scene.cells is None or not scene.cells.nnz:
        return {"cells": ""}, {}
    n, p = scene.cells.shape
    cases, features = scene.cells.nonzero()
    by_feature = scene.cells.tocsc()[:, scene.shown]
    arrays = {
        "cells_of_cases": np.bincount(cases, minlength=n),
        "cells_of_features": np.bincount(features, minlength=p),
        "cell_cases": by_feature.indices,
        "cell_starts": by_feature.indptr,
    }
    words = {"cells": f"In the automatic fit {words_on_cells(search.best_estimator_)}."}
    return words, {name: array.astype("<u4") for name, array in arrays.items()}
