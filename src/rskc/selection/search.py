"""What all searches share: checking, seeds, the runner, and the refitted model."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, replace
from importlib.metadata import version
from typing import Any, Self

import joblib
import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from rskc.estimator import RobustSparseKMeans
from rskc.exceptions import ParameterError
from rskc.inputs.arrays import check_sample_weight, to_dense
from rskc.inputs.validation import (
    PRECISIONS,
    check_integer,
    check_real,
    check_seed,
    is_integer,
    is_real,
    is_word,
    validated,
)
from rskc.model.cells import extreme_columns, shows_outlying_cells, without_extremes
from rskc.model.fitting import fit, groups_of, make_engine, make_starts
from rskc.selection.checkpoint import Checkpoint
from rskc.selection.runner import Runner
from rskc.selection.subsample import Sample, draw, with_length
from rskc.solver import Problem, Warm
from rskc.solver.groups import FeatureGroups, as_plain
from rskc.utils.wording import count

Chosen = dict[str, Any]  # parameters of the model that was chosen

# The most cases of a table that a search works on by default. More cases of a large table are no
# better: the more there are, the less doubtful is the best partition into any number of clusters,
# and any number is predicted well. On 100,000 x 20 with 4 clusters and 3% outlying cases, Clest
# chose 4 for 1,000 to 10,000 cases (23 of 23 searches) and 5 or 6 for all (4 of 4): the agreement
# for one cluster too many was at most 0.65 with 5,000 cases, 0.87 with 10,000, and 0.91 or more
# with all; 0.9 is enough.
MAX_SAMPLES = 5000
# A fit with this number of clusters shows whether extreme cells are those of clusters far apart.
QUICK_CLUSTERS = 10
# The smallest of the bounds that are spaced evenly: about two features have weight.
MIN_SPACED_BOUND = 1.2
# Restarts of the fits to half-samples and references, where the estimator has "auto".
STARTS = 25
# Parameters that change how a search runs, but not its result.
RUNTIME_PARAMS = ("n_jobs", "progress", "checkpoint", "random_state")
RUNTIME_FIT_PARAMS = ("n_threads", "device", "verbose", "random_state")
# Settings of the fits that tasks compare, where the estimator asks for "auto".
TASK_SETTINGS: dict[str, Any] = {"trim": 0.1, "l1_bound": "half"}


@dataclass(eq=False, repr=False)
class Search(BaseEstimator):
    """Base class: ``fit`` runs the tasks of a search, decides, and refits a model.

    The fields of a search are its parameters: the dataclass writes the ``__init__`` that only
    stores them. A search implements ``_check(n, p)``, which checks them against n cases and p
    weights (of features or of groups) before any work, and ``_search(sample, runner)``, which runs
    the tasks, stores the table and the decision, and returns the parameters of the model that was
    chosen, and what ``_refit`` needs.
    """

    estimator: Any
    _: KW_ONLY
    max_samples: int | None = MAX_SAMPLES
    random_state: Any = None
    n_jobs: int | None = -1
    checkpoint: Any = None
    progress: Any = True

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Search, decide, and fit the model that was chosen.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The data, NaN for a missing cell. Of a tensor or a Dask array or dataframe, the cases
            that are searched on are read into memory; the chosen model is fitted to X as it is.
        y : ignored
            There for the scikit-learn interface.
        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each case in the fits and in all comparisons of them; None for equal
            weights. Where cases are split, a case goes into one part as a whole, with its weight.
            Of a table of more than ``max_samples`` cases, some are drawn in proportion to their
            weights. Cases of weight 0 are not searched on.

        Returns
        -------
        self : object
        """
        if not isinstance(self.estimator, RobustSparseKMeans):
            raise TypeError(f"estimator={self.estimator!r:.80} must be a RobustSparseKMeans.")
        most = self.max_samples
        if most is not None:
            most = check_integer("max_samples", most, 1, remedy=" or None")
        checked = validated(self, X, reset=True, dtype=PRECISIONS, sample_weight=sample_weight)
        table = with_length(checked)
        n, p = map(int, table.shape)
        weights = None if sample_weight is None else check_sample_weight(sample_weight, n)
        if weights is not None and (weights == weights[0]).all():
            weights = None
        n_used = n if weights is None else int(np.count_nonzero(weights))
        n_used = n_used if most is None else min(n_used, most)
        self._groups = groups_of(self, self.estimator.feature_groups, p)
        self._n_units = p if self._groups is None else len(self._groups)
        self._check(n_used, self._n_units)
        jobs = self.n_jobs
        if jobs is not None and (not is_integer(jobs) or jobs == 0):
            raise ParameterError("n_jobs", jobs, "must be None or an integer other than 0.")
        with closing(Checkpoint(self.checkpoint, self._identity())) as store:
            seed = int(store.identity["seed"])
            self.samples_used_, sample = draw(table, weights, most, seed)
            store.claim(data=_hash_of(sample))
            with closing(Runner(store, jobs, self.progress, math.prod(sample.shape))) as runner:
                chosen, found = self._search(self._without_extremes(sample), runner)
                self.n_samples_, self.n_samples_used_ = n, sample.shape[0]
                self.best_estimator_ = clone(self.estimator).set_params(**chosen)
                if self.best_estimator_.random_state is None:
                    self.best_estimator_.random_state = seed % 2**32
                self._refit(X, sample_weight, found, sample.X is table)
        return self

    def predict(self, X: Any) -> Any:
        """Return the clusters that the chosen model gives to cases."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Search, and return the clusters of the chosen model."""
        return self.fit(X, sample_weight=sample_weight).best_estimator_.labels_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "clusterer"
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def _refit(self, X: Any, sample_weight: Any, found: Any, searched_all: bool) -> None:
        """Fit the chosen model to all the data, which may be those that were searched on."""
        self.best_estimator_.fit(X, sample_weight=sample_weight)

    def _without_extremes(self, sample: Sample) -> Sample:
        """Return the cases without extreme cells, where a fit might bound outlying cells.

        Fits of tasks are then as fast as without outlying cells. The chosen model is fitted to the
        table as it is.
        """
        asked = self.estimator
        if asked.cells is None or hasattr(self, "encoder_"):
            return sample
        X, masses = to_dense(sample.X), sample.masses
        if is_word(asked.cells, "auto"):
            by_data = is_word(asked.trim, "auto") or is_word(asked.l1_bound, "auto")
            if not by_data or extreme_columns(X, masses) is None:
                return sample
            # Extreme cells may be outlying cells, or those of clusters far apart.
            model = self._for_tasks(init="auto", n_init="auto", random_state=0)
            engine = make_engine(model, sample.X, masses)
            quick = Problem(engine.distinct(max(1, min(QUICK_CLUSTERS, engine.n_cases // 4))))
            model.set_params(n_clusters=quick.n_clusters)
            if not shows_outlying_cells(engine, quick, make_starts(model, sample.X, engine, quick)):
                return sample
        return replace(sample, X=without_extremes(X, masses))

    def _for_tasks(self, seed: int | None = None, **settings: Any) -> Any:
        """Return the estimator for the tables of tasks, whose features have no names.

        A seed makes it start as the chosen model will. It uses one thread if several tasks run at a
        time.
        """
        # The sample has no extreme cells left, and its fits are faster in memory.
        asked: dict[str, Any] = {"cells": None, "device": None}
        if self._groups is not None:
            asked |= {"feature_groups": self._groups, "categorical": None, "ordinal": None}
        if seed is not None and self.estimator.random_state is None:
            asked["random_state"] = seed % 2**32
        if effective_n_jobs(self.n_jobs) > 1:
            asked["n_threads"] = 1
        return clone(self.estimator).set_params(**asked | settings)

    @property
    def _few_starts(self) -> dict[str, Any]:
        """Few restarts for tasks that need no more, where their number is not given."""
        return {"n_init": STARTS} if is_word(self.estimator.n_init, "auto") else {}

    def _for_comparisons(self, **more: Any) -> Any:
        """Return the estimator for tasks that compare fits, with no setting left to the data.

        An automatic fit would take three to four times as long. The chosen model is fitted as the
        estimator asks.
        """
        asked = self.estimator.get_params()
        settings = {k: v for k, v in TASK_SETTINGS.items() if is_word(asked[k], "auto")}
        if asked["n_features"] is not None:
            settings.pop("l1_bound", None)
        return self._for_tasks(**settings | more)

    def _identity(self) -> dict[str, str | None]:
        """Return all that results depend on but the data; a seed of None is the checkpoint's."""
        given = self.random_state
        seed = None if given is None else str(check_seed(given).randint(2**31))
        asked = {k: v for k, v in self.get_params(deep=False).items() if k not in RUNTIME_PARAMS}
        model = asked.pop("estimator")
        fitted = {k: v for k, v in model.get_params().items() if k not in RUNTIME_FIT_PARAMS}
        return {
            "rskc": version("rskc"),
            "search": type(self).__name__,
            "estimator": type(model).__name__,
            **{f"estimator__{name}": _as_text(value) for name, value in sorted(fitted.items())},
            **{name: _as_text(value) for name, value in sorted(asked.items())},
            "random_state": repr(given) if given is None or is_integer(given) else "RandomState",
            "seed": seed,
        }


def fit_task(
    estimator: Any, sample: Sample, warm: Sequence[Warm] = (), **settings: Any
) -> RobustSparseKMeans:
    """Fit a copy of an estimator with settings of one task, from known solutions too.

    Its warnings would be about part of the data, and are not shown.
    """
    model = clone(estimator).set_params(**settings)
    fit(model, sample.X, warm, sample.weights)
    return model


def with_clusters(n_clusters: int) -> dict[str, Any]:
    """Return the parameters for K clusters; with a single cluster all features weigh the same."""
    dense = {"l1_bound": None, "n_features": None} if n_clusters == 1 else {}
    return {"n_clusters": n_clusters, **dense}


def _hash_of(sample: Sample) -> str:
    """Return a text that identifies the data of a search."""
    X = sample.X
    cells = (X.data, X.indices, X.indptr) if issparse(X) else X
    text = f"{X.shape} {X.dtype} {joblib.hash(cells)}"
    return text if sample.weights is None else f"{text} weights {joblib.hash(sample.weights)}"


def _as_text(value: Any) -> str:
    """Return a parameter as a short text that is the same in every process."""
    if isinstance(value, Mapping | FeatureGroups):  # of features
        return f"groups {joblib.hash(as_plain(value))}"
    if isinstance(value, np.ndarray):
        return f"array {value.shape} {joblib.hash(value)}"
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value)}"
    if isinstance(value, Iterable) and not isinstance(value, str):
        value = [item.item() if isinstance(item, np.generic) else item for item in value]
    return repr(value.item() if isinstance(value, np.generic) else value)


# ---- The values of settings that a search tries


def check_values(
    name: str, values: Any, what: str, check: Callable[..., Any], *limits: Any
) -> list:
    """Return one or several values of a parameter, each checked to lie within limits, upwards."""
    values = values.ravel().tolist() if isinstance(values, np.ndarray) else values
    several = [values] if is_real(values) else values
    if isinstance(several, str | Iterator) or not isinstance(several, Iterable):
        raise ParameterError(name, values, f"must be {what}.")
    checked = sorted({check(name, value, *limits) for value in several})
    if not checked:
        raise ParameterError(name, values, f"is empty; give {what}.")
    return checked


def check_clusters(n_clusters: Any, least: int, n_cases: int) -> list[int]:
    """Return the numbers of clusters to try, upwards."""
    what = "a number of clusters, or a list or range of them"
    numbers = check_values("n_clusters", n_clusters, what, check_integer, least)
    if numbers[-1] > n_cases:
        raise ParameterError(
            "n_clusters",
            numbers[-1],
            f"is more than {count(n_cases, 'case')}, as many as are clustered at a time; lower it, "
            "or give more cases.",
        )
    return numbers


def check_bounds(l1_bounds: Any, p: int) -> np.ndarray:
    """Return the bounds of a path, upwards; evenly spaced ones, if their number is given."""
    if p == 1:
        raise ValueError("X has one feature only: there is no L1 bound to choose.")
    if is_integer(l1_bounds):
        return spaced_bounds(check_integer("l1_bounds", l1_bounds, 2), p)
    what, below = "how many bounds to try, or a list of bounds", np.sqrt(p) * (1 + 1e-9)
    limits = 1, below, f" for {p} features, or how many bounds to try"
    return np.array(check_values("l1_bounds", l1_bounds, what, check_real, *limits))


def spaced_bounds(number: int, p: int) -> np.ndarray:
    """Space bounds evenly on a logarithmic scale, up to where they no longer bind."""
    root = np.sqrt(p)
    return np.geomspace(min(MIN_SPACED_BOUND, (1 + root) / 2), root, number)


def check_trims(trims: Any) -> list[float]:
    """Return the trimming shares, upwards."""
    what = "a share of cases, or a list of shares"
    return check_values("trims", trims, what, check_real, 0, 0.5)
