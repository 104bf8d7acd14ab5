"""RobustSparseKMeans: validate, solve, store."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from rskc.arrays import model_to_numpy, to_numpy, to_numpy_pair
from rskc.engines import Engine, engine_for
from rskc.engines.threads import one_blas_thread
from rskc.fit_warnings import Complaint, of_bound, of_missing, of_solution
from rskc.logs import logging_to_terminal
from rskc.prediction import PredictionMixin, count_of
from rskc.solver import DrawnStarts, GivenStarts, Problem, Solution, Starts, Warm, solve
from rskc.solver.search import search_cases, search_size
from rskc.solver.starts import INITS
from rskc.summary import cases_frame, describe, features_frame, names_of_cases
from rskc.validation import (
    check_bound,
    check_centers,
    check_choice,
    check_distinct,
    check_finite,
    check_integer,
    check_n_threads,
    check_real,
    check_seed,
    check_wanted,
    squares_overflow,
)

# Restarts with n_init="auto": as many as take about this many multiplications an iteration.
AUTO_WORK = 100_000_000
FEWEST_STARTS, MOST_STARTS = 10, 100
# Restarts on a sample of very many cases, where they are cheap.
SAMPLE_STARTS = 30
# Distances of typical cases are about 1 in the frame; less than this is rounding and no outlier.
ROUNDING = 1e-24


class RobustSparseKMeans(PredictionMixin, ClusterMixin, BaseEstimator):
    """Robust and sparse K-means.

    Finds clusters that show in a few of many features, while a share of the cases may be outlying.
    Each feature gets a weight, 0 for those that do not matter; the cases farthest from their
    centers, in the weighted and in the unweighted sense, have no say in centers and weights.

    Without trimming (``trim=0``) it is sparse K-means, without sparsity (``l1_bound=None``) trimmed
    K-means, and without both K-means.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, K.
    trim : float, default=0.1
        Share of the cases that each of the two rules trims, 0 <= trim < 0.5.
    l1_bound : float, "auto" or None, default="auto"
        Bound on the L1 norm of the weights, whose L2 norm is 1: from 1, one feature, to
        ``sqrt(n_features_in_)``, where it no longer binds. "auto" is halfway between. None: no
        sparsity, all weights are 1.
    n_features : int or None, default=None
        A wanted number of features instead of a bound. The bound is chosen so that just so many
        weights are above 0.
    init : {"auto", "random", "k-means++", "robust"}, array or callable, default="auto"
        Starting centers. "random": cases drawn at random. "k-means++": cases far from one another.
        "robust": the same, but the cases farthest from all others cannot be drawn, so that outlying
        ones do not capture a center. "auto": random ones and, in turn, robust ones if cases are
        trimmed, else k-means++. An array (n_clusters, n_features_in_) is one start; a callable
        gets ``X``, ``n_clusters`` and ``random_state`` and returns such an array.
    n_init : int or "auto", default="auto"
        Number of restarts. "auto": 10 to 100, the fewer the larger the data; 1 for an array. Of
        tables with more than 8 million cells (and 32,768 cases) a sample of the cases is searched,
        30 times, and what is found is brought to rest on all cases.
    max_iter : int, default=300
        Most iterations of K-means in each step, and most alternations between partition and
        weights.
    tol : float, default=1e-4
        Restarts stop when their within sum of squares falls by less than this share of itself, and
        the alternation when the weights change by less than this share. What is returned is
        brought to rest in any case, so that its labels are those that ``predict`` gives; of a
        million cases or more the share ``tol`` may have moved since the centers were made. 0 runs
        everything until nothing changes.
    outlier_cutoff : float, default=3.5
        A case is an outlier if its weighted distance to its center is above the median of these
        distances by more than so many times their MAD (times 1.4826).
    random_state : int, RandomState or None, default=None
        Seed of the restarts. The same seed gives the same result for any number of threads.
    n_threads : int or None, default=None
        Number of threads in memory; None for all that the machine, or OMP_NUM_THREADS, allows.
        A device, and the scheduler of Dask, have their own.
    verbose : int, default=0
        1: a line for each stage; 2: also one for each iteration.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each case, trimmed or not: that of its nearest center.
    cluster_centers_ : ndarray of shape (n_clusters, n_features_in_)
        Means, in the space of the data, of the cases that the weighted rule keeps.
    feature_weights_ : ndarray of shape (n_features_in_,)
        Weights of the features.
    trimmed_weighted_, trimmed_unweighted_, trimmed_ : ndarray of bool of shape (n_samples,)
        Cases trimmed by their weighted distance, by their unweighted one, and by either, in the
        iteration that is returned. As in RSKC, its partition and trimmed cases were made with the
        weights of the iteration before: ``trimmed_weighted_`` need not be the cases that are
        farthest in the final weights. To judge cases by these, use ``outliers_``.
    n_trim_ : int
        How many cases each rule trims.
    outliers_ : ndarray of bool of shape (n_samples,)
        Cases whose weighted distance is above ``outlier_threshold_``.
    distances_ : ndarray of shape (n_samples,)
        Weighted squared distance of each case to its center.
    outlier_threshold_ : float
        The median of the weighted distances plus ``outlier_cutoff`` times their MAD.
    objective_ : float
        Weighted between-cluster sum of squares over the cases that both rules keep.
    objective_path_ : ndarray
        The objective, iteration by iteration, and last that of the solution: the best state passed
        through, brought to rest. It may fall, since the trimmed cases change.
    inertia_ : float
        Weighted within-cluster sum of squares over the cases that the weighted rule keeps.
    l1_bound_ : float or None
        The bound that was used, or that ``n_features`` led to.
    n_iter_ : int
        Number of alternations between partition and weights, the last being that of the solution.
    n_missing_ : int
        Number of missing cells.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had any.
    case_names_in_ : ndarray of object of shape (n_samples,)
        Index of X, if it was a pandas frame with other than the default one.
    warnings_ : list of str
        What the fit warned of.

    Warns
    -----
    ConvergenceWarning
        If ``max_iter`` ended it.
    SmallClusterWarning
        If another solution has a larger objective, but a cluster of no more cases than may be
        outlying.

    Notes
    -----
    Distances are weighted squared Euclidean ones, ``sum_j w_j (x_j - c_j)^2``, everywhere: in
    ``transform``, in ``score_samples`` and in the outlier rule.

    NaN marks a missing cell. Nothing is imputed and no case is dropped: distances are over the
    features observed in both case and center, scaled up by the observed weight, and means are over
    observed cells (a center is NaN in a feature of which its cluster has none). A case of which
    nothing that has weight is observed gets label 0 and an infinite distance, is flagged as an
    outlier, and has no say. A feature without an observed cell gets weight 0.

    Where more than ``l1_bound**2`` features tie for the largest weight, no solution treats them
    alike; the first of them get the weight, so that both norms hold.

    To use the weights for selecting features in a pipeline::

        SelectFromModel(RobustSparseKMeans(3), importance_getter="feature_weights_", threshold=1e-9)

    References
    ----------
    Kondo, Salibian-Barrera and Zamar, "A robust and sparse K-means clustering algorithm",
    arXiv:1201.6082.

    Examples
    --------
    >>> from rskc import RobustSparseKMeans
    >>> from rskc.datasets import make_simulation
    >>> outlying = make_simulation(model=1, random_state=0)
    >>> model = RobustSparseKMeans(3, trim=1 / 60, l1_bound=6.2, random_state=0).fit(outlying.data)
    >>> int(model.get_support().sum())
    49
    >>> bool(model.trimmed_[0])
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        trim: float = 0.1,
        l1_bound: float | str | None = "auto",
        n_features: int | None = None,
        init: Any = "auto",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        outlier_cutoff: float = 3.5,
        random_state: Any = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.trim = trim
        self.l1_bound = l1_bound
        self.n_features = n_features
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.outlier_cutoff = outlier_cutoff
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(self, X, y=None, **unsupported):
        """Cluster the cases of X.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The data, NaN for a missing cell. float32 arrays stay float32, anything else becomes
            float64. A torch tensor or a CuPy array is clustered on its device, a Dask array or
            dataframe block by block on Dask's scheduler; labels, masks and distances are then of
            the same kind.
        y : ignored
            There for the scikit-learn interface.
        **unsupported
            Refused: case weights have no meaning where cases are counted for trimming.

        Returns
        -------
        self : RobustSparseKMeans
        """
        unsupported = {name: value for name, value in unsupported.items() if value is not None}
        if unsupported:
            raise TypeError(
                f"fit does not take {', '.join(unsupported)}: trimming counts whole cases, so "
                "case weights are not supported; leave it out."
            )
        for message, category in self._fit(X):
            warnings.warn(message, category, stacklevel=2)
        return self

    def _fit(self, X, warm: Sequence[Warm] = ()) -> list[Complaint]:
        """Fit, from solutions that are known too, and return what there is to warn of."""
        case_names = names_of_cases(X)
        X = self._validate(X, reset=True)
        with self._prepared(X) as (engine, problem):
            solution = solve(engine, problem, self._starts(X, engine, problem), warm)
            check_finite(engine, solution)
            complaints = self._complain(engine, problem, solution, case_names)
            self.warnings_ = [complaint.message for complaint in complaints]
            self._store(engine, problem, solution)
        self.__dict__.pop("case_names_in_", None)  # of an earlier fit
        if case_names is not None:
            self.case_names_in_ = case_names
        return complaints

    def fit_predict(self, X, y=None, **unsupported):
        """Cluster the cases of X and return their labels."""
        return self.fit(X, y, **unsupported).labels_

    def get_support(self, indices: bool = False):
        """Return the features with a weight above 0, as a mask or as their numbers."""
        check_is_fitted(self, "cluster_centers_")
        support = to_numpy(self.feature_weights_) > 0
        return np.flatnonzero(support) if indices else support

    def features_frame(self):
        """Return a pandas.DataFrame with a row a feature, in the order of the data.

        Its columns: ``feature``, the name, or x0, x1, ...; ``weight``; ``rank``, 1 for the largest
        weight, ties in the order of the data; ``selected``, whether the weight is above 0; and the
        centers ``center_0``, ``center_1``, ....
        """
        check_is_fitted(self, "cluster_centers_")
        return features_frame(model_to_numpy(self))

    def cases_frame(self, X=None):
        """Return a pandas.DataFrame with a row a case of the fit.

        Its columns: ``case``, the name in the index of the fitted frame, or the number;
        ``cluster``; ``distance``, the weighted squared one to the center; ``outlier``; ``trimmed``,
        ``trimmed_weighted`` and ``trimmed_unweighted``. With ``X``, the data of the fit, also
        ``second_cluster`` and ``silhouette``, the revised one; with one cluster these are missing.
        """
        check_is_fitted(self, "cluster_centers_")
        return cases_frame(*to_numpy_pair(self, X))

    def summary(self) -> str:
        """Say in a few lines what was asked and what was found."""
        check_is_fitted(self, "cluster_centers_")
        return describe(model_to_numpy(self))

    def report(self, X, path: Any = None):
        """Make a page of HTML that explains the result, with charts and tables; it needs no net.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The data of the fit.
        path : str or path, default=None
            Where to write the page, whole or not at all; None to write nothing.

        Returns
        -------
        report : rskc.report.Report
            With ``html``, ``save`` and, in a notebook, the page itself. For true labels, searches
            and a title see :func:`rskc.report.make_report`. Needs the extra ``report``.
        """
        check_is_fitted(self, "cluster_centers_")
        # The one door upwards, by name: the page is made of models and not the other way round.
        report = import_module("rskc.report").make_report(model_to_numpy(self), X)
        if path is not None:
            report.save(path)
        return report

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = True
        return tags

    @contextmanager
    def _prepared(self, X: np.ndarray) -> Iterator[tuple[Engine, Problem]]:
        """Make of X and the parameters what the solver takes, and the surroundings it runs in."""
        verbose = check_integer("verbose", self.verbose, 0)
        n_threads = check_n_threads(self.n_threads)
        ignored = np.errstate(over="ignore", invalid="ignore")
        with one_blas_thread, logging_to_terminal(verbose), ignored:
            engine = engine_for(X, drop_unobserved=True, n_threads=n_threads)
            problem = self._problem(engine.n_cases, engine.n_features)
            check_distinct(engine, problem.n_clusters)
            try:
                yield engine, problem
            except FloatingPointError:
                raise squares_overflow(engine) from None

    def _problem(self, n: int, p: int) -> Problem:
        """Check the parameters against the shape of the data."""
        K = check_integer("n_clusters", self.n_clusters, 1)
        trim = check_real("trim", self.trim, 0, 0.5, ": the share of cases that may be outlying")
        n_trim = count_of(trim, n)
        if n - n_trim < K:
            raise ValueError(
                f"n_clusters={K} is more than the {n - n_trim} cases that are left of "
                f"n_samples={n} when trim={trim:g} takes {n_trim} away; lower one of the two."
            )
        check_real("outlier_cutoff", self.outlier_cutoff, 0)
        return Problem(
            n_clusters=K,
            n_trim=n_trim,
            l1_bound=check_bound(self.l1_bound, self.n_features, p),
            n_features=check_wanted(self.n_features, self.l1_bound, p),
            max_iter=check_integer("max_iter", self.max_iter, 1),
            tol=check_real("tol", self.tol, 0),
        )

    def _starts(self, X: np.ndarray, engine: Engine, problem: Problem) -> Starts:
        K, p, n_init = problem.n_clusters, engine.n_features, self._n_starts(engine, problem)
        random_state = check_seed(self.random_state)
        if isinstance(self.init, str):
            check_choice("init", self.init, ("auto", *INITS), ", an array or a callable")
            inits: tuple[str, ...] = (self.init,)
            if self.init == "auto":
                inits = ("random", "robust" if problem.n_trim else "k-means++")
            uniforms = random_state.random_sample((n_init, K))
            return DrawnStarts(inits, uniforms, search_cases(engine.n_cases, p, K, random_state))
        if callable(self.init):
            given = [self.init(X, K, random_state=random_state) for _ in range(n_init)]
        else:
            given = [self.init]
        centers = np.stack([check_centers(center, K, p) for center in given])
        table = engine.table(np.ones((1, p)))
        labels = [table.assign(table.place(center[None])) for center in centers]
        return GivenStarts([table.trim(label, problem.n_trim).groups for label in labels], K)

    def _n_starts(self, engine: Engine, problem: Problem) -> int:
        if isinstance(self.n_init, str) and self.n_init == "auto":
            if not (isinstance(self.init, str) or callable(self.init)):
                return 1
            if callable(self.init):
                return FEWEST_STARTS
            shape = engine.n_cases, engine.n_features
            if search_size(*shape, problem.n_clusters) < engine.n_cases:
                return SAMPLE_STARTS
            work = shape[0] * min(shape) * problem.n_clusters
            return int(np.clip(AUTO_WORK // work, FEWEST_STARTS, MOST_STARTS))
        return check_integer("n_init", self.n_init, 1, remedy=' or "auto"')

    def _complain(
        self, engine: Engine, problem: Problem, solution: Solution, case_names: np.ndarray | None
    ) -> list[Complaint]:
        names = getattr(self, "feature_names_in_", np.arange(engine.n_features))

        def name_cases(numbers: np.ndarray) -> np.ndarray:
            numbers = engine.numbers(numbers)
            return numbers if case_names is None else case_names[numbers]

        return [
            *of_bound(self.l1_bound, problem, engine.n_features),
            *of_solution(problem, solution, name_cases),
            *of_missing(engine, solution.weights, names, name_cases),
        ]

    def _threshold(self, engine: Engine, solution: Solution) -> float:
        """The distance beyond which a case is an outlier."""
        median, deviation = engine.arrays.spread(solution.costs)
        return max(median + self.outlier_cutoff * 1.4826 * deviation, ROUNDING * engine.unit)

    def _store(self, engine: Engine, problem: Problem, solution: Solution) -> None:
        self._frame = engine.frame
        self.n_missing_ = engine.n_missing + engine.n_unobserved * engine.n_features
        self.labels_ = engine.returned(solution.labels, 0)
        self.cluster_centers_ = engine.as_result(solution.centers)
        self.feature_weights_ = engine.as_result(solution.weights)
        self.trimmed_weighted_ = engine.returned(solution.trimmed_weighted, True)
        self.trimmed_unweighted_ = engine.returned(solution.trimmed_unweighted, False)
        self.trimmed_ = self.trimmed_weighted_ | self.trimmed_unweighted_
        self.n_trim_ = problem.n_trim
        self.objective_ = solution.objective
        self.objective_path_ = engine.as_result(np.array(solution.path))
        self.inertia_ = solution.inertia
        self.n_iter_ = len(solution.path)
        self.l1_bound_ = problem.l1_bound
        if problem.n_features is not None:
            self.l1_bound_ = float(solution.weights.sum())
        self.distances_ = engine.returned(solution.costs, np.inf)
        self.outlier_threshold_ = self._threshold(engine, solution)
        self.outliers_ = self.distances_ > self.outlier_threshold_
