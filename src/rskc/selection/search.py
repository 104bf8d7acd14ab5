"""What all searches share: checking, seeds, the runner, and the refitted model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from importlib.metadata import version
from typing import Any, Self

import joblib
import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from rskc.estimator import RobustSparseKMeans
from rskc.exceptions import ParameterError
from rskc.fitting import fit
from rskc.groups import FeatureGroups, as_plain, check_groups
from rskc.selection.checkpoint import open_store
from rskc.selection.runner import Runner
from rskc.selection.subsample import check_max_samples, gather, with_length
from rskc.validation import PRECISIONS, check_integer, check_seed, is_integer, is_word, validated
from rskc.wording import count

# The most cases of a table that a search works on by default. All of a large table are no better:
# with ever more cases any number of clusters is predicted, since the best partition into them is
# ever less in doubt. On 100,000 x 20 with 4 clusters and 3% outlying cases, Clest chose 4 for 1,000
# to 10,000 cases (23 of 23 searches) and 5 or 6 for all (4 of 4): one cluster too many agreed by at
# most 0.65 with 5,000 cases, 0.87 with 10,000, and 0.91 or more with all; 0.9 is enough.
MAX_SAMPLES = 5000
# Parameters that change how a search runs and not what it finds.
HOW = ("n_jobs", "progress", "checkpoint", "random_state")
HOW_TO_FIT = ("n_threads", "verbose", "random_state")
# Settings of the fits that tasks compare, where the estimator asks for "auto".
FOR_TASKS = {"trim": 0.1, "l1_bound": "half"}


@dataclass(eq=False, repr=False)
class Search(MetaEstimatorMixin, BaseEstimator):
    """Base class: ``fit`` runs the tasks of a search, decides, and refits a model.

    The fields of a search are its parameters: the dataclass writes the ``__init__`` that only
    stores them. A search implements ``_check``, ``_search`` and ``_chosen``.
    """

    estimator: Any
    _: KW_ONLY
    max_samples: int | None = MAX_SAMPLES
    random_state: Any = None
    n_jobs: int | None = -1
    checkpoint: Any = None
    progress: Any = True

    def fit(self, X: Any, y: Any = None) -> Self:
        """Search, decide, and fit the model that was chosen.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The data, NaN for a missing cell. Of a tensor or a Dask array or dataframe, the cases
            that are searched on are read into memory; the chosen model is fitted to X as it is.
        y : ignored
            There for the scikit-learn interface.

        Returns
        -------
        self : object
        """
        check_clusterer(self.estimator)
        most = check_max_samples(self.max_samples)
        table = with_length(validated(self, X, reset=True, dtype=PRECISIONS))
        n, p = map(int, table.shape)
        n_used = n if most is None else min(n, most)
        self._groups = self._groups_of(p)
        self._check(n_used, self._n_units(p))
        jobs = self.n_jobs
        if jobs is not None and (not is_integer(jobs) or jobs == 0):
            raise ParameterError("n_jobs", jobs, "must be None or an integer other than 0.")
        with open_store(self.checkpoint, self._identity()) as store:
            data = gather(table, n_used, int(store.identity["seed"]))
            cells = (data.data, data.indices, data.indptr) if issparse(data) else data
            store.claim("data", f"{data.shape} {data.dtype} {joblib.hash(cells)}")
            with closing(Runner(store, jobs, self.progress)) as runner:
                self._search(data, runner)
        self.n_samples_, self.n_samples_used_ = n, n_used
        model = clone(self.estimator).set_params(**self._chosen())
        if model.get_params().get("random_state", 0) is None:
            model.set_params(random_state=runner.seed % 2**32)
        self.best_estimator_ = model
        self._refit(X, searched_all=data is table)
        return self

    def predict(self, X: Any) -> Any:
        """Return the clusters that the chosen model gives to cases."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    def fit_predict(self, X: Any, y: Any = None) -> Any:
        """Search, and return the clusters of the chosen model."""
        return self.fit(X).best_estimator_.labels_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "clusterer"
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def _check(self, n: int, p: int) -> None:
        """Check the parameters against the data to search on, before any work.

        ``p`` is the number of weights: of features, or of groups of features.
        """
        raise NotImplementedError

    def _search(self, X: np.ndarray, runner: Runner) -> None:
        """Run the tasks, and store the table and the decision."""
        raise NotImplementedError

    def _chosen(self) -> dict[str, Any]:
        """Return the parameters of the model that was chosen."""
        raise NotImplementedError

    def _refit(self, X: Any, searched_all: bool) -> None:
        """Fit the chosen model to all the data, which may be those that were searched on."""
        self.best_estimator_.fit(X)

    def _for_tasks(self) -> Any:
        """Return the estimator for tasks that compare fits at settings that are given.

        What an automatic fit would find is fixed: tasks compare fits with one another, and the
        automatic steps take three to four times the time. The chosen model is fitted as asked.
        """
        model = self._for_arrays()
        asked = model.get_params()
        automatic = [name for name in FOR_TASKS if is_word(asked.get(name), "auto")]
        if asked.get("n_features") is not None and "l1_bound" in automatic:
            automatic.remove("l1_bound")
        model.set_params(**{name: FOR_TASKS[name] for name in automatic})
        return self._on_one_thread(model)

    def _groups_of(self, p: int) -> FeatureGroups | None:
        """Return the groups of the estimator, which may name features; a category is one too."""
        given = self.estimator.get_params(deep=False).get("feature_groups")
        names, encoder = getattr(self, "feature_names_in_", None), getattr(self, "encoder_", None)
        return check_groups(given, names, p) if encoder is None else encoder.groups(given, names)

    def _n_units(self, p: int) -> int:
        return p if self._groups is None else len(self._groups)

    def _for_arrays(self) -> Any:
        """Return the estimator for tables of tasks, which have lost the names of features."""
        model = clone(self.estimator)
        if self._groups is None:
            return model
        return model.set_params(feature_groups=self._groups, categorical=None, ordinal=None)

    def _on_one_thread(self, model: Any) -> Any:
        """Let a model use one thread, if several tasks run at a time."""
        if effective_n_jobs(self.n_jobs) > 1 and "n_threads" in model.get_params():
            model.set_params(n_threads=1)
        return model

    def _identity(self) -> dict[str, str | None]:
        """Return what results depend on, data aside; without a seed, a checkpoint's is taken."""
        given = self.random_state
        seed = None if given is None else str(check_seed(given).randint(2**31))
        asked = {k: v for k, v in self.get_params(deep=False).items() if k not in HOW}
        model = asked.pop("estimator")
        fitted = {k: v for k, v in model.get_params().items() if k not in HOW_TO_FIT}
        return {
            "rskc": version("rskc"),
            "search": type(self).__name__,
            "estimator": type(model).__name__,
            **{f"estimator__{name}": _as_text(value) for name, value in sorted(fitted.items())},
            **{name: _as_text(value) for name, value in sorted(asked.items())},
            "random_state": repr(given) if given is None or is_integer(given) else "RandomState",
            "seed": seed,
        }


def configured(estimator: Any, seed: int, **params: Any) -> Any:
    """Return a copy of an estimator for one task, with its own seed."""
    if "random_state" in estimator.get_params():
        params["random_state"] = seed
    return clone(estimator).set_params(**params)


def fit_quietly(model: Any, X: np.ndarray) -> Any:
    """Fit a model of a task; warnings of rskc's own would be about a part of the data."""
    if not isinstance(model, RobustSparseKMeans):
        return model.fit(X)
    fit(model, X)
    return model


def check_clusterer(estimator: Any) -> None:
    """Refuse what has no number of clusters, or cannot predict."""
    known = estimator.get_params() if hasattr(estimator, "get_params") else {}
    if "n_clusters" not in known or not hasattr(estimator, "predict"):
        raise TypeError(
            f"estimator={estimator!r:.80} must be a clusterer with n_clusters and predict, such as "
            "RobustSparseKMeans()."
        )


def with_clusters(estimator: Any, n_clusters: int) -> dict[str, Any]:
    """Return the parameters for K clusters; one alone gives no reason to weight features."""
    known = estimator.get_params(deep=False) if n_clusters == 1 else {}
    dense = {name: None for name in ("l1_bound", "n_features") if name in known}
    return {"n_clusters": n_clusters, **dense}


def check_clusters(n_clusters: Any, least: int, n_cases: int) -> list[int]:
    """Return the numbers of clusters to try, upwards."""
    values = [n_clusters] if is_integer(n_clusters) else n_clusters
    if isinstance(values, str | Iterator) or not isinstance(values, Iterable):
        raise ParameterError(
            "n_clusters", n_clusters, "must be a number of clusters, or a list or range of them."
        )
    numbers = sorted({check_integer("n_clusters", K, least) for K in values})
    if not numbers:
        raise ValueError("n_clusters is empty; give the numbers of clusters to try.")
    if numbers[-1] > n_cases:
        raise ParameterError(
            "n_clusters",
            numbers[-1],
            f"is more than {count(n_cases, 'case')}, as many as are clustered at a time; lower it, "
            "or give more cases.",
        )
    return numbers


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
