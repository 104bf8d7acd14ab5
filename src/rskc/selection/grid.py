"""Fits along paths of settings, and how far half-samples agree with them.

What the grid search and the explorer share. A path is a list of settings that differ in their bound
or number of features, from the least upwards: each fit makes its own restarts, and one more branch
begins at the solution before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from rskc.exceptions import ParameterError
from rskc.inputs.case_weights import mean_by_weight
from rskc.inputs.labels import adjusted_rand_index
from rskc.inputs.validation import is_integer
from rskc.metrics import revised_silhouette
from rskc.model.fitting import fit
from rskc.selection.checkpoint import Result
from rskc.selection.cloud import with_few_starts
from rskc.selection.halves import best_match
from rskc.selection.runner import Key, Runner, rng_of, seed_of
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
    return [_unstacked(result, len(path)) for result, path in zip(results, paths, strict=True)]


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


class HalfSamples(NamedTuple):
    """Fits of one setting to halves of the cases."""

    labels: np.ndarray  # (halves, n) clusters of all cases, two halves a split
    selected: np.ndarray  # (halves, p) whether features have weight
    weights: np.ndarray | None = None  # (n,) of the cases

    def agreement(self, outliers: np.ndarray) -> float:
        """Return the mean adjusted Rand index of the halves of a split, without outliers."""
        clean, halves = ~outliers, self.labels[:, ~outliers]
        weights = None if self.weights is None else self.weights[clean]
        pairs = zip(halves[::2], halves[1::2], strict=True)
        return float(np.mean([adjusted_rand_index(a, b, weights) for a, b in pairs]))

    def times_agreed(self, labels: np.ndarray, K: int) -> np.ndarray:
        """Return for each case (n,) how many halves give it the cluster that it has."""
        matched = [best_match(labels, half, K, self.weights)[half] for half in self.labels]
        return (np.array(matched) == labels).sum(axis=0)


def fit_half_paths(
    paths: Sequence[Path], sample: Sample, estimator: Any, n_splits: int, runner: Runner
) -> list[list[HalfSamples]]:
    """Fit with all settings to the halves of the cases, split in the same way for all."""
    if not n_splits:
        n, p = sample.shape
        nothing = HalfSamples(np.empty((0, n), int), np.empty((0, p), bool))
        return [[nothing] * len(path) for path in paths]
    keys = [(i, split) for i in range(len(paths)) for split in range(n_splits)]
    work = partial(_fit_halves, sample, paths, estimator, runner.seed)
    results = iter(runner.run("Halves of the settings", work, keys))
    found = []
    for path in paths:
        splits = [_unstacked(next(results), len(path)) for _ in range(n_splits)]
        joined = [
            {name: np.concatenate([split[j][name] for split in splits]) for name in splits[0][j]}
            for j in range(len(path))
        ]
        found.append([HalfSamples(**half, weights=sample.masses) for half in joined])
    return found


def _fit_halves(
    sample: Sample, paths: Sequence[Path], estimator: Any, seed: int, key: Key
) -> Result:
    """Fit along a path to two halves of the cases; return clusters of all, and the features."""
    (i, split), X = key, sample.X
    order = rng_of(seed, split).permutation(X.shape[0])
    halves = []
    for number, cases in enumerate(np.array_split(order, 2)):
        try:
            half, few = sample.take(np.sort(cases)), with_few_starts(configured(estimator, 0))
            models = models_along(paths[i], half, few, seed_of(seed, i, split, number))
            halves.append([(model.predict(X), model.feature_weights_ > 0) for model in models])
        except ParameterError:  # fewer distinct cases than clusters: nothing comes back
            nothing = np.zeros(X.shape[0], np.int32), np.zeros(X.shape[1], bool)
            halves.append([nothing] * len(paths[i]))
    labels, selected = (np.array([[one[k] for one in half] for half in halves]) for k in (0, 1))
    return {"labels": labels.swapaxes(0, 1), "selected": selected.swapaxes(0, 1)}


def _unstacked(result: Result, n: int) -> list[Result]:
    return [{name: values[j] for name, values in result.items()} for j in range(n)]
