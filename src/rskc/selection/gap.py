"""The permutation gap: how far clusters are from those of data without any, for the L1 bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.base import clone

from rskc.estimator import RobustSparseKMeans
from rskc.exceptions import warn_user
from rskc.inputs.validation import check_choice, check_integer, is_integer
from rskc.model import fitting
from rskc.model.fitting import fit
from rskc.selection.checkpoint import Result
from rskc.selection.references import permuted
from rskc.selection.runner import Key, Runner, rng_of, seed_of
from rskc.selection.search import (
    Search,
    check_bounds,
    check_sparse,
    configured,
    fit_quietly,
    spaced_bounds,
)
from rskc.selection.subsample import Sample
from rskc.solver import Warm, solve_near, solve_path
from rskc.solver.alternate import count_active

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
    rule : {"1se", "largest"}, default="1se"
        Which bound ``best_estimator_`` has, see Notes.
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
        Fitted to all the data with the bound of ``rule``: from restarts, and from the solution that
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
    rule: str = "1se"

    def _check(self, n: int, p: int) -> None:
        check_sparse(self.estimator)
        check_integer("n_clusters", self.estimator.n_clusters, 2)
        check_bounds(self.l1_bounds, p)
        check_integer("n_permutations", self.n_permutations, 2)
        check_choice("rule", self.rule, ("1se", "largest"))

    def _search(self, sample: Sample, runner: Runner) -> None:
        settings = {"l1_bound": "half", "n_features": None}
        model = configured(self._for_comparisons(), runner.seed % 2**32, **settings)
        once = fit_quietly(clone(model), sample)
        clean = sample.take(~(once.trimmed_ | once.outliers_))
        path = _GapPath(_Sets(sample, clean, model, runner.seed), runner, self.n_permutations)
        if not is_integer(self.l1_bounds):
            path.solve(check_bounds(self.l1_bounds, self._n_units))
        else:
            n_spaced = max(2, round(SPACED_SHARE * self.l1_bounds))
            path.solve(spaced_bounds(n_spaced, self._n_units), more=self.l1_bounds - n_spaced)
            for _ in range(self.l1_bounds - n_spaced):
                path.close_in()
        self.table_ = path.table()
        self.permuted_log_objectives_ = path.values("log_objective")[:, 1:].T
        largest, least = self.table_.gap.argmax(), within_one_error(self.table_)
        self.l1_bound_ = float(self.table_.l1_bound[largest])
        self.l1_bound_1se_ = float(self.table_.l1_bound[least])
        self.table_["chosen"] = self.table_.l1_bound == self._chosen()["l1_bound"]
        self._warm = _warm(path.results[self._chosen()["l1_bound"]][0])

    def _refit(self, X: Any, counted: dict[str, Any], searched_all: bool) -> None:
        """Fit from restarts and, if it is a partition of all cases, from the path's solution."""
        warm = [self._warm] if searched_all else []
        del self._warm
        for warning in fit(self.best_estimator_, X, warm, **counted):
            warn_user(warning)

    def _chosen(self) -> dict[str, Any]:
        bound = self.l1_bound_1se_ if self.rule == "1se" else self.l1_bound_
        return {"l1_bound": bound, "n_features": None}


def within_one_error(table: Any) -> int:
    """Row of the least bound whose gap is within one standard error of the largest."""
    largest = table.gap.argmax()
    return int(np.argmax(table.gap >= table.gap[largest] - table.standard_error[largest]))


@dataclass
class _GapPath:
    """The data (set 0) and its permutations, solved for more and more bounds."""

    sets: _Sets
    runner: Runner
    n_permutations: int
    results: dict[float, list[Result]] = field(default_factory=dict)  # by bound, of each set

    def solve(self, bounds: np.ndarray, near: Sequence[list[Result]] = (), more: int = 0) -> None:
        """Solve all sets along the bounds; ``more`` bounds will follow.

        Or for one bound, from the results ``near`` it.
        """
        name, place = ("L1 bounds between", (len(self.results),)) if near else ("L1 bounds", ())
        keys: list[Key] = [(*place, number) for number in range(self.n_permutations + 1)]
        work = partial(self.sets.solve, bounds, near)
        results = self.runner.run(name, work, keys, more * len(keys))
        for i, bound in enumerate(bounds):
            self.results[float(bound)] = [{k: v[i] for k, v in r.items()} for r in results]

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

    def table(self) -> Any:
        """Return a frame with one row per bound."""
        import pandas as pd

        logs, n_features = self.values("log_objective"), self.values("n_features")
        n_permuted = logs.shape[1] - 1
        return pd.DataFrame(
            {
                "l1_bound": sorted(self.results),
                "n_features": n_features[:, 0],
                "objective": np.exp(logs[:, 0]),
                "log_objective": logs[:, 0],
                "permuted_mean": logs[:, 1:].mean(axis=1),
                "gap": logs[:, 0] - logs[:, 1:].mean(axis=1),
                "standard_error": logs[:, 1:].std(axis=1) * np.sqrt(1 + 1 / n_permuted),
            }
        )

    def values(self, name: str) -> np.ndarray:
        """Return one of the results for each bound (rows) and set."""
        bounds = sorted(self.results)
        values = np.array([[result[name] for result in self.results[s]] for s in bounds])
        # What was found under one bound is allowed under the next: the objective cannot fall.
        return np.maximum.accumulate(values) if name == "log_objective" else values


class _Sets(NamedTuple):
    """The data (number 0), and permutations of their clean cases.

    A permutation spreads the cells of outlying cases over all others: 8% of rows with 5 outlying
    cells each contaminate 34% of the permuted ones. The weights are those of the data.
    """

    data: Sample
    clean: Sample
    model: RobustSparseKMeans
    seed: int

    def draw(self, number: int) -> Sample:
        """Return one of the sets, always the same for its number."""
        if number == 0:
            return self.data
        rng, clean = rng_of(self.seed, number), self.clean
        groups = self.model.feature_groups
        drawn = permuted(clean.X, rng, groups, clean.weights)
        while (lacking := self.data.shape[0] - drawn.shape[0]) > 0:
            # As many cases as the data have: fewer fit more closely, and seem to have clusters.
            more = permuted(clean.X, rng, groups, clean.weights)[:lacking]
            drawn = vstack([drawn, more], "csr") if issparse(more) else np.vstack([drawn, more])
        return replace(self.data, X=drawn)

    def solve(self, bounds: np.ndarray, near: Sequence[list[Result]], key: Key) -> Result:
        """Solve one of the sets for the bounds, upwards, each from the one before.

        Where ``near`` has results for its neighbors, there is one bound, and it is solved from
        these.
        """
        number = key[-1]
        model, sample = configured(self.model, seed_of(self.seed, *key)), self.draw(number)
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


def _warm(result: Result) -> Warm:
    return Warm(result["labels"], result["trimmed"], result["weights"])
