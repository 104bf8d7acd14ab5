"""The permutation gap: how far clusters are from those of data without any, for the L1 bound."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.base import clone

from rskc.estimator import RobustSparseKMeans
from rskc.exceptions import warn_user
from rskc.inputs.validation import check_integer, is_integer
from rskc.model import fitting
from rskc.model.fitting import fit
from rskc.selection.checkpoint import Result
from rskc.selection.references import permuted
from rskc.selection.runner import Key, Runner, rng_of, seed_of
from rskc.selection.search import Chosen, Search, check_bounds, fit_task, spaced_bounds
from rskc.selection.subsample import Sample
from rskc.solver import Warm, solve_near, solve_path
from rskc.solver.alternate import count_active
from rskc.solver.groups import FeatureGroups

# This share of the bounds is spaced evenly; the others close in on the choice.
SPACED_SHARE = 0.6
# No bound is tried between two of a smaller ratio: they differ by two or three features.
MIN_BOUND_RATIO = 1.1
# The log of 0 is taken to be that of this.
TINY = np.finfo(float).tiny


@dataclass(eq=False, repr=False)
class GapL1(Search):
    """L1 bound by the permutation gap, with trimming on.

    The objective grows with the bound, whether or not the features separate clusters. So it is
    compared with the objective on data in which each column is permuted on its own: these have the
    same columns, the same missing cells, and no clusters. The gap is the difference of the logs.
    Cases are trimmed in both. Only cases that are neither trimmed nor outliers are permuted:
    otherwise the cells of outlying cases would spread over most of the permuted ones.

    Parameters
    ----------
    estimator : RobustSparseKMeans
        Number of clusters, trimming and all else; its own bound is not used.
    l1_bounds : int or array-like, default=10
        The bounds to try, or how many. A number: six of ten are spaced evenly on a logarithmic
        scale from 1.2 to sqrt(n_features); the others close in on ``l1_bound_1se_``, until it is
        known to 10%, and then on ``l1_bound_``.
    n_permutations : int, default=20
        Permuted data sets, the same for all bounds.
    max_samples, random_state, n_jobs, checkpoint, progress
        As in :class:`Clest`.

    Attributes
    ----------
    l1_bound_ : float
        The bound with the largest gap.
    l1_bound_1se_ : float
        The least bound whose gap is within one standard error of the largest.
    table_ : pandas.DataFrame
        A row for each bound: ``l1_bound``; ``n_features`` with a weight above 0; ``objective`` per
        kept case; ``log_objective``; ``permuted_mean`` of the log objective; ``gap``;
        ``standard_error`` of the gap; ``chosen``.
    permuted_log_objectives_ : ndarray of shape (n_permutations, bounds)
        Log objective per kept case of each permuted data set.
    samples_used_ : ndarray of shape (n_samples_used_,)
        Numbers of the cases that were searched on.
    n_samples_, n_samples_used_ : int
        How many cases the table has, and how many of them were searched on.
    best_estimator_ : RobustSparseKMeans
        Fitted to all the data with ``l1_bound_1se_``: from restarts, and from the solution that
        the path has for this bound if it was made of all cases, in memory. What was found on some
        cases only is no partition of all of them.

    Notes
    -----
    Beyond the bound at which all features that matter have weight, the gap hardly changes: the
    weights of the others are small, and the largest gap may lie anywhere there. Hence the rule of
    one standard error: no more features than needed. On the paper's simulation, 50 features of 500
    matter, the largest gap comes with 100 to 250 features, and one standard error below it with 50.

    Bounds are solved upwards, each from the solution before; the restarts are shared. Both make
    the objective grow along the path, as it should: independent fits lose up to a tenth of it on
    permuted data, at large bounds, and the gap would never come down.

    References
    ----------
    Witten and Tibshirani, "A framework for feature selection in clustering", Journal of the
    American Statistical Association 105, 2010.

    Examples
    --------
    >>> from rskc import RobustSparseKMeans
    >>> from rskc.datasets import make_simulation
    >>> from rskc.selection import GapL1
    >>> outlying = make_simulation(model=1, random_state=0)
    >>> gap = GapL1(RobustSparseKMeans(3, trim=0.05), n_permutations=5, random_state=0)
    >>> 40 <= gap.fit(outlying.data).best_estimator_.get_support().sum() <= 60
    np.True_
    """

    l1_bounds: Any = 10
    _: KW_ONLY
    n_permutations: int = 20

    def _check(self, n: int, p: int) -> None:
        check_integer("n_clusters", self.estimator.n_clusters, 2)
        check_bounds(self.l1_bounds, p)
        check_integer("n_permutations", self.n_permutations, 2)

    def _search(self, sample: Sample, runner: Runner) -> tuple[Chosen, Warm]:
        model = self._for_comparisons(
            l1_bound="half", n_features=None, random_state=runner.seed % 2**32
        )
        once = fit_task(model, sample)
        clean = sample.take(~(once.trimmed_ | once.outliers_))
        work = partial(_solve, sample, clean, model, runner.seed)
        path = _GapPath(work, runner, 1 + self.n_permutations)
        if not is_integer(self.l1_bounds):
            path.solve(check_bounds(self.l1_bounds, self._n_units))
        else:
            n_spaced = max(2, round(SPACED_SHARE * self.l1_bounds))
            path.solve(spaced_bounds(n_spaced, self._n_units), more=self.l1_bounds - n_spaced)
            for _ in range(self.l1_bounds - n_spaced):
                path.close_in()
        table = path.table()
        self.permuted_log_objectives_ = path.log_objectives()[:, 1:].T
        self.l1_bound_ = float(table.l1_bound[table.gap.argmax()])
        self.l1_bound_1se_ = float(table.l1_bound[within_one_error(table)])
        self.table_ = table.assign(chosen=table.l1_bound == self.l1_bound_1se_)
        chosen = {"l1_bound": self.l1_bound_1se_, "n_features": None}
        return chosen, _warm(path.results[self.l1_bound_1se_][0])

    def _refit(self, X: Any, sample_weight: Any, found: Warm, searched_all: bool) -> None:
        """Fit from restarts and, if it is a partition of all cases, from the path's solution."""
        for warning in fit(self.best_estimator_, X, [found] * searched_all, sample_weight):
            warn_user(warning)


def within_one_error(table: Any) -> int:
    """Row of the least bound whose gap is within one standard error of the largest."""
    largest = table.gap.argmax()
    return int(np.argmax(table.gap >= table.gap[largest] - table.standard_error[largest]))


@dataclass
class _GapPath:
    """The data (set 0) and its permutations, solved for more and more bounds."""

    work: Callable[..., Result]  # of bounds, of results near one, and of a key
    runner: Runner
    n_sets: int
    results: dict[float, list[Result]] = field(default_factory=dict)  # by bound, of each set

    def solve(self, bounds: np.ndarray, near: Sequence[list[Result]] = (), more: int = 0) -> None:
        """Solve all sets along the bounds; ``more`` bounds will follow.

        Or for one bound, from the results ``near`` it.
        """
        name, place = ("L1 bounds between", (len(self.results),)) if near else ("L1 bounds", ())
        keys: list[Key] = [(*place, number) for number in range(self.n_sets)]
        results = self.runner.run(name, partial(self.work, bounds, near), keys, more * len(keys))
        for i, bound in enumerate(bounds.tolist()):
            self.results[bound] = [{k: v[i] for k, v in r.items()} for r in results]

    def close_in(self) -> None:
        """Solve for one more bound, between two others where the choice is open.

        That is below the choice or, where these are narrow, in the wider of the intervals next to
        the largest gap.
        """
        bounds, table = np.array(sorted(self.results)), self.table()
        ratios = bounds[1:] / bounds[:-1]
        choice, largest = within_one_error(table), int(table.gap.argmax())
        nearby = [i for i in (largest - 1, largest) if 0 <= i < len(ratios)]
        if choice > 0 and ratios[choice - 1] > MIN_BOUND_RATIO:
            nearby = [choice - 1]
        widest = max(nearby, key=lambda i: ratios[i])
        if ratios[widest] > MIN_BOUND_RATIO:
            low, high = bounds[widest : widest + 2]
            self.solve(np.array([np.sqrt(low * high)]), [self.results[low], self.results[high]])

    def log_objectives(self) -> np.ndarray:
        """Return those of each bound (rows), upwards, and set."""
        found = [[each["log_objective"] for each in self.results[s]] for s in sorted(self.results)]
        # What was found under one bound is allowed under the next: the objective cannot fall.
        return np.maximum.accumulate(found)

    def table(self) -> Any:
        """Return a frame with one row per bound."""
        import pandas as pd

        bounds, logs = sorted(self.results), self.log_objectives()
        observed, permuted = logs[:, 0], logs[:, 1:]
        return pd.DataFrame(
            {
                "l1_bound": bounds,
                "n_features": [self.results[bound][0]["n_features"] for bound in bounds],
                "objective": np.exp(observed),
                "log_objective": observed,
                "permuted_mean": permuted.mean(axis=1),
                "gap": observed - permuted.mean(axis=1),
                "standard_error": permuted.std(axis=1) * np.sqrt(1 + 1 / permuted.shape[1]),
            }
        )


def _solve(
    sample: Sample,
    clean: Sample,
    model: RobustSparseKMeans,
    seed: int,
    bounds: np.ndarray,
    near: Sequence[list[Result]],
    key: Key,
) -> Result:
    """Solve the data (number 0) or a permutation for the bounds, upwards, each from the last one.

    Where ``near`` has results for its neighbors, there is one bound, and it is solved from these.
    """
    number = key[-1]
    if number > 0:
        sample = _permuted(sample, clean, model.feature_groups, rng_of(seed, number))
    model = clone(model).set_params(random_state=seed_of(seed, *key))
    with fitting.solver_settings(model.verbose):
        engine = fitting.make_engine(model, sample.X, sample.masses)
        problem = fitting.make_problem(model, engine)
        problems = [replace(problem, l1_bound=float(s), n_features=None) for s in bounds]
        with fitting.overflow_explained(engine):
            if near:
                neighbors = [_warm(results[number]) for results in near]
                solutions = [solve_near(engine, problems[0], neighbors)]
            else:
                starts = fitting.make_starts(model, sample.X, engine, problem)
                solutions = list(solve_path(engine, problems, starts))
            solutions[-1].check_finite()
    to_numpy, groups = engine.arrays.to_numpy, model.feature_groups
    return {
        "log_objective": np.log([max(each.mean, TINY) for each in solutions]),
        "n_features": np.array([count_active(groups, each.weights) for each in solutions]),
        "labels": np.array([each.labels for each in solutions]),
        # A plain mask, whether a case is trimmed in part or not.
        "trimmed": np.array([to_numpy(each.trimmed_weighted) for each in solutions]),
        "weights": np.array([each.weights for each in solutions]),
    }


def _permuted(
    sample: Sample, clean: Sample, groups: FeatureGroups | None, rng: np.random.Generator
) -> Sample:
    """Permute the clean cases, with the weights of the data.

    Otherwise the cells of outlying cases would spread over all others: 8% of rows with 5 outlying
    cells each contaminate 34% of the permuted ones. There are as many cases as the data have: fewer
    fit more closely, and seem to have clusters.
    """
    drawn = permuted(clean.X, rng, groups, clean.weights)
    while (lacking := sample.shape[0] - drawn.shape[0]) > 0:
        more = permuted(clean.X, rng, groups, clean.weights)[:lacking]
        drawn = vstack([drawn, more], "csr") if issparse(more) else np.vstack([drawn, more])
    return replace(sample, X=drawn)


def _warm(result: Result) -> Warm:
    return Warm(result["labels"], result["trimmed"], result["weights"])
