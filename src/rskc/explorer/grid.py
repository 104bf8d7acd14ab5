"""The grid of the explorer: the automatic choice, fits around it, and fits to half-samples."""

from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from rskc.exceptions import ParameterError
from rskc.inputs.validation import check_integer, is_integer, is_word
from rskc.model.fitting import make_engine
from rskc.selection import Stability
from rskc.selection.checkpoint import Result
from rskc.selection.grid import fit_paths
from rskc.selection.halves import HalfSamples, split_in_halves
from rskc.selection.runner import Key, Runner, seed_of
from rskc.selection.search import (
    Chosen,
    Search,
    check_clusters,
    check_trims,
    check_values,
    fit_task,
    with_clusters,
)
from rskc.selection.stability import SMALLEST_CLUSTER
from rskc.selection.subsample import Sample
from rskc.solver.alternate import count_active

# Numbers of clusters that are shown without being asked for, and how many more than are chosen.
NUMBERS, BEYOND = range(2, 9), 2
N_FEATURES, LEAST_FEATURES = 8, 2  # how many numbers of features, and the least
TRIMS = (0.0, 0.05, 0.1)
MOST_SETTINGS = 1000


class Axes(NamedTuple):
    """The settings of which all combinations are fitted, each upwards."""

    n_clusters: list[int]
    n_features: list[int]
    trims: list[float]

    @property
    def settings(self) -> list[dict[str, Any]]:
        """All combinations; the number of features changes first, that of clusters last."""
        return [
            {"n_clusters": K, "trim": trim, "n_features": number, "l1_bound": "auto"}
            for K, trim, number in product(self.n_clusters, self.trims, self.n_features)
        ]

    @property
    def n_settings(self) -> int:
        """How many combinations there are."""
        return len(self.settings)


@dataclass(eq=False, repr=False)
class Exploration(Search):
    """The number of clusters by half-samples, and fits at many settings around that choice.

    Parameters
    ----------
    estimator : RobustSparseKMeans
        All other parameters.
    n_clusters, n_features, trims, n_splits
        As in :func:`explore`.
    max_samples, random_state, n_jobs, checkpoint, progress
        As in :class:`rskc.selection.Clest`.

    Attributes
    ----------
    axes_ : Axes
        The settings; all arrays below are in their order.
    choice_ : Choice
        The number of clusters that half-samples choose, and why.
    fits_ : list of dict
        Labels, flags, weights and figures of the fit at each setting.
    halves_ : list of HalfSamples
        Fits with each setting to half-samples.
    samples_used_ : ndarray of shape (n_samples_used_,)
        Numbers of the cases that were searched on.
    data_ : ndarray
        These cases; a category has a number for each of its categories.
    searched_ : ndarray
        The same without extreme cells, where the fit bounds outlying cells.
    best_estimator_ : RobustSparseKMeans
        The automatic fit to all the data, as ``rskc fit`` makes it.
    """

    n_clusters: Any = "auto"
    n_features: Any = "auto"
    trims: Any = "auto"
    _: KW_ONLY
    n_splits: int = 2

    def n_active(self, weights: np.ndarray) -> int:
        """Return how many features, or groups of them, have weight."""
        return count_active(self._groups, weights)

    def planned(self, n: int, p: int) -> Axes:
        """Return the settings for n cases by p features, before the automatic choice is known."""
        if self.n_splits != 0:
            check_integer("n_splits", self.n_splits, 1, remedy=" or 0")
        most = n // SMALLEST_CLUSTER
        numbers = [K for K in NUMBERS if max(most, 2) >= K]
        if not is_word(self.n_clusters, "auto"):
            numbers = check_clusters(self.n_clusters, 2, n)
        features = self._spaced_features(p)
        trims = TRIMS if is_word(self.trims, "auto") else check_trims(self.trims)
        axes = Axes(numbers, features, list(trims))
        if axes.n_settings > MOST_SETTINGS:
            raise ValueError(
                f"{axes.n_settings:,} settings are more than the {MOST_SETTINGS:,} that a page can "
                "hold; give fewer numbers of clusters, of features or shares to trim."
            )
        return axes

    _check = planned

    def _spaced_features(self, p: int) -> list[int]:
        asked: Any = N_FEATURES if is_word(self.n_features, "auto") else self.n_features
        if is_integer(asked):
            number = check_integer("n_features", asked, 1)
            spaced = np.geomspace(min(LEAST_FEATURES, p), p, number) if number > 1 else [p]
            return sorted({round(float(each)) for each in spaced})
        what = "how many numbers of features, or the numbers"
        numbers = check_values("n_features", asked, what, check_integer, 1)
        if numbers[-1] > p:
            words = f"must be numbers from 1 to the {p} features there are."
            raise ParameterError("n_features", self.n_features, words)
        return numbers

    def _search(self, sample: Sample, runner: Runner) -> tuple[Chosen, None]:
        search = Stability(self._for_tasks(), self.n_clusters, n_jobs=self.n_jobs)
        asked = self.planned(sample.shape[0], self._n_units)
        runner.later = asked.n_settings * (1 + self.n_splits)
        self.choice_ = search.choose(sample, runner)
        runner.later = 0
        self.axes_ = self._axes_around(asked, sample.X)
        settings = self.axes_.settings
        # Each by itself, so that a fit with the settings of a view repeats it.
        paths, more = [[setting] for setting in settings], len(settings) * self.n_splits
        self.fits_ = fit_paths(paths, sample, self._for_comparisons(), runner, more)
        model = self._for_comparisons(**self._few_starts)
        work = partial(_fit_halves, sample, settings, model, runner.seed)
        keys = list(product(range(len(settings)), range(self.n_splits)))
        results = runner.run("Halves of the settings", work, keys)
        labels = np.array([result["labels"] for result in results], np.int32)
        selected = np.array([result["selected"] for result in results], bool)
        (n, p), shape = sample.shape, (len(settings), -1)
        halves = zip(labels.reshape(*shape, n), selected.reshape(*shape, p), strict=True)
        self.halves_ = [HalfSamples(*of_setting, sample.masses) for of_setting in halves]
        self.searched_ = sample.X
        return with_clusters(self.choice_.n_clusters), None

    def _without_extremes(self, sample: Sample) -> Sample:
        self.data_ = sample.X
        return super()._without_extremes(sample)

    def _axes_around(self, asked: Axes, X: np.ndarray) -> Axes:
        """Return the settings, with those that the automatic choice took among them."""
        numbers, features, trims = asked
        K, _, fit = self.choice_
        if is_word(self.n_clusters, "auto"):
            last = max(numbers[-1], min(K + BEYOND, X.shape[0] // SMALLEST_CLUSTER))
            distinct = make_engine(self._for_tasks(), X).distinct(last)
            numbers = list(range(2, max(min(last, distinct), 2) + 1))
        if fit is not None and is_word(self.n_features, "auto"):
            features = _with(features, self.n_active(fit["weights"]), np.log)
        if fit is not None and is_word(self.trims, "auto"):
            trims = _with(trims, float(fit["share"]), np.asarray)
        return Axes(numbers, features, trims)


def _fit_halves(
    sample: Sample, settings: list[dict[str, Any]], estimator: Any, seed: int, key: Key
) -> Result:
    """Fit to two halves of the cases, the same for all settings; return clusters of all cases."""
    (i, split), (n, p) = key, sample.shape
    labels, selected = np.zeros((2, n), np.int32), np.zeros((2, p), bool)
    for number, half in enumerate(split_in_halves(np.arange(n), seed, split)):
        own = settings[i] | {"random_state": seed_of(seed, *key, number)}
        with suppress(ParameterError):  # fewer distinct cases than clusters: none is found again
            model = fit_task(estimator, sample.take(half), **own)
            labels[number], selected[number] = model.predict(sample.X), model.feature_weights_ > 0
    return {"labels": labels, "selected": selected}


def _with(values: list, wanted: Any, scale: Any) -> list:
    """Put a value among others, in place of the nearest; the first and the last one stay.

    It is added where it is beyond the last one, or where there is none to be replaced.
    """
    inner = values[1:-1] if wanted < values[-1] else values[1:]
    if wanted in values or not wanted:
        return values
    if inner:
        nearest = min(inner, key=lambda value: abs(scale(value) - scale(wanted)))
        values = [value for value in values if value != nearest]
    return sorted([*values, wanted])
