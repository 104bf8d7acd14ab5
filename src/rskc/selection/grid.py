"""Fits along paths of settings, and how far half-samples agree with them.

What the grid search and the explorer share. A path is a list of settings that differ in their bound
or number of features, from the least upwards: each fit makes its own restarts, and one more branch
begins at the solution before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse

from rskc.exceptions import ParameterError
from rskc.inputs.case_weights import mean_by_weight
from rskc.inputs.validation import is_integer
from rskc.metrics import revised_silhouette
from rskc.model.fitting import fit
from rskc.selection.checkpoint import Result
from rskc.selection.cloud import with_few_starts
from rskc.selection.halves import HalfSamples, split_in_halves
from rskc.selection.runner import Key, Runner, seed_of
from rskc.selection.search import configured
from rskc.selection.subsample import Sample
from rskc.solver import Warm
from rskc.solver.feature_groups import count_active

Path = Sequence[dict[str, Any]]  # settings of an estimator
Described = Callable[[Any, Sample], Result]


def fit_paths(
    name: str,
    paths: Sequence[Path],
    sample: Sample,
    estimator: Any,
    runner: Runner,
    described: Described,
    more: int = 0,
) -> list[list[Result]]:
    """Fit with all settings, and return for each path what ``described`` says of its models."""
    work = partial(_fit_path, sample, paths, estimator, runner.seed, described)
    results = runner.run(name, work, [(i,) for i in range(len(paths))], more)
    return [
        [{name: values[j] for name, values in result.items()} for j in range(len(path))]
        for result, path in zip(results, paths, strict=True)
    ]


def _fit_path(
    sample: Sample,
    paths: Sequence[Path],
    estimator: Any,
    seed: int,
    described: Described,
    key: Key,
) -> Result:
    """Fit along a path; the seed is the same for all, so that fits can be compared.

    It is that of the estimator, if it has one, so that a fit with the same settings repeats it.
    """
    given = estimator.random_state
    seed = given if is_integer(given) else seed_of(seed)
    models = models_along(paths[key[0]], sample, estimator, seed)
    results = [described(model, sample) for model in models]
    return {name: np.array([result[name] for result in results]) for name in results[0]}


def models_along(path: Path, sample: Sample, estimator: Any, seed: int) -> list[Any]:
    """Fit a model with each of the settings, from restarts and from the solution before."""
    X = sample.X
    # A fit is of the cases that have a value; in a sparse table all have.
    observed = np.ones(X.shape[0], bool) if issparse(X) else ~np.isnan(X).all(axis=1)
    models: list[Any] = []
    for setting in path:
        model = configured(estimator, seed, **setting)
        warm = [
            Warm(m.labels_[observed], m.trimmed_weighted_[observed], m.feature_weights_)
            for m in models[-1:]
        ]
        fit(model, X, warm, sample.weights)
        models.append(model)
    return models


def describe_fit(model: Any, sample: Sample) -> Result:
    """Return what tables and pages say of a fit.

    Sums per case are per unit of weight, where cases have weights; one that is trimmed in part does
    not count.
    """
    weights = np.ones(sample.shape[0]) if sample.weights is None else sample.weights
    return {
        "labels": model.labels_,
        "trimmed": model.trimmed_,
        "outliers": model.outliers_,
        "weights": model.feature_weights_,
        "n_trim": model.n_trim_,
        "share": model.trim_,
        "l1_bound": np.nan if model.l1_bound_ is None else model.l1_bound_,
        "objective": model.objective_ / weights[~model.trimmed_].sum(),
        "inertia": model.inertia_,
        "within": model.inertia_ / weights[~model.trimmed_weighted_].sum(),
        "n_features": count_active(model.feature_groups, model.feature_weights_),
        "n_outliers": np.count_nonzero(model.outliers_),
        "silhouette": _silhouette(model, sample),
    }


FIGURES = ["l1_bound", "n_trim", "objective", "inertia", "within", "n_features", "n_outliers"]
FIGURES += ["silhouette"]


def _silhouette(model: Any, sample: Sample) -> float:
    """Mean revised silhouette of the cases that are not outliers."""
    if model.n_clusters == 1 or model.outliers_.all():
        return np.nan
    regular, weights = ~model.outliers_, sample.weights
    values = revised_silhouette(model, sample.X).values[regular]
    return mean_by_weight(values, None if weights is None else weights[regular])


# ---- Half-samples


def fit_half_paths(
    paths: Sequence[Path], sample: Sample, estimator: Any, n_splits: int, runner: Runner
) -> list[list[HalfSamples]]:
    """Fit with all settings to the halves of the cases, split in the same way for all."""
    keys = [(i, split) for i in range(len(paths)) for split in range(n_splits)]
    work = partial(_fit_halves, sample, paths, estimator, runner.seed)
    results = runner.run("Halves of the settings", work, keys) if keys else []
    (n, p), fits = sample.shape, []
    for i, path in enumerate(paths):
        splits = results[i * n_splits : (i + 1) * n_splits]
        nothing = {
            "labels": np.zeros((len(path), 0, n), np.int32),
            "selected": np.zeros((len(path), 0, p), bool),
        }
        labels, selected = (
            np.concatenate([nothing[name], *(split[name] for split in splits)], axis=1)
            for name in nothing
        )
        fits.append(
            [HalfSamples(*halves, sample.masses) for halves in zip(labels, selected, strict=True)]
        )
    return fits


def _fit_halves(
    sample: Sample, paths: Sequence[Path], estimator: Any, seed: int, key: Key
) -> Result:
    """Fit along a path to two halves of the cases; return clusters of all, and the features."""
    (i, split), (n, p) = key, sample.shape
    labels, selected = [], []
    for number, half in enumerate(split_in_halves(np.arange(n), seed, split)):
        few = with_few_starts(configured(estimator, 0))
        try:
            models = models_along(paths[i], sample.take(half), few, seed_of(seed, *key, number))
            labels.append(np.array([model.predict(sample.X) for model in models]))
            selected.append(np.array([model.feature_weights_ > 0 for model in models]))
        except ParameterError:  # fewer distinct cases than clusters: no cluster is found again
            labels.append(np.zeros((len(paths[i]), n), np.int32))
            selected.append(np.zeros((len(paths[i]), p), bool))
    return {"labels": np.stack(labels, axis=1), "selected": np.stack(selected, axis=1)}
