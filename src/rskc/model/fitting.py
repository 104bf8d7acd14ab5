"""How a fit is made: the engine, the problem, the starts, the solution (internal).

``fit`` is the way from a table to a fitted model. The estimator goes it, and the searches of
``rskc.selection``; those that follow a path of bounds take single steps of it. A ``model`` is a
RobustSparseKMeans, of which the steps read the parameters.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from rskc.engines import BoundedEngine, Engine, engine_for
from rskc.engines.threads import one_blas_thread
from rskc.exceptions import FitWarning, OverflowedError, ParameterError
from rskc.inputs.arrays import (
    is_dask,
    is_elsewhere,
    merged_blocks,
    to_numpy,
    warn_of_columns,
    warn_of_numbers,
)
from rskc.inputs.case_weights import Counting, counting_cases, rows_of
from rskc.inputs.frames import NUMBERS
from rskc.inputs.validation import (
    PRECISIONS,
    check_bound,
    check_centers,
    check_choice,
    check_integer,
    check_n_threads,
    check_real,
    check_seed,
    check_wanted,
    is_word,
    names_of_cases,
    validated,
)
from rskc.model import outliers
from rskc.model.automatic import Found, Wishes, mass_of, solve_automatically
from rskc.model.bounding import shows_outlying_cells, solve_with_cells
from rskc.model.cells import CUTOFF, FEW_CASES, CellBounds
from rskc.model.fitted import by_column, number_names, outlying_cells, predictor_of
from rskc.model.warnings import on_cells, on_scales, warnings_of
from rskc.solver import Problem, Solution, Starts, Warm, solve
from rskc.solver.feature_groups import FeatureGroups, check_groups
from rskc.solver.search import auto_inits, auto_starts, draw_cases, search_cases
from rskc.solver.starts import INITS
from rskc.utils.verbosity import told
from rskc.utils.wording import count

# Restarts from a function with n_init="auto".
CALLED_STARTS = 10
# Attributes that only some fits leave: with l1_bound="auto", with feature_groups, with names of the
# cases, with sample_weight.
OF_SOME_FITS = (
    "feature_statistics_",
    "feature_p_values_",
    "n_features_different_",
    "n_features_enough_",
    "group_names_",
    "group_weights_",
    "feature_group_",
    "case_names_in_",
    "sample_weight_",
)


class Rehearsal(NamedTuple):
    """How a fit to a part of a table stands for the fit to all of it (:mod:`rskc.planning`)."""

    n_searched: int | None  # cases that the search is made on; None for as many as usual
    share: float  # of the cells: limits of memory shrink as much


THE_WHOLE = Rehearsal(None, 1.0)


def fit(
    model: Any,
    X: Any,
    warm: Sequence[Warm] = (),
    sample_weight: Any = None,
    rehearsal: Rehearsal = THE_WHOLE,
) -> list[FitWarning]:
    """Fit a model, from known solutions too, and return what there is to warn of."""
    case_names = names_of_cases(X)
    X = validated_for_fit(model, X, sample_weight)
    counting = counting_cases(X, sample_weight)
    own, names = counting.of(X), counting.names(case_names)
    with solver_settings(model.verbose):
        size = rehearsal.n_searched
        engine = make_engine(model, own, counting.masses, size)
        engine.stand_for_more(rehearsal.share)
        problem = make_problem(model, engine)
        engine.expect(problem.n_clusters, problem.n_trim)
        with overflow_explained(model, engine, own, names):
            starts = make_starts(model, own, engine, problem, size)
            made = _solve(model, engine, problem, starts, warm)
            made.solution.check_finite()
        if made.cells is not None:
            engine = BoundedEngine(engine, made.cells.limits)
        judged = _judge(model, engine, made.solution)
        found = list(warnings_of(model, engine, made, judged.out, names))
        _store(model, engine, made, judged, counting)
        found += on_scales(model, own)
        if hasattr(model, "encoder_") and model.n_missing_:  # a category is one cell
            model.n_missing_ = int(np.isnan(by_column(model, own)).sum())
    if counting.weights is not None:
        model.sample_weight_ = counting.weights
        _judge_others(model, X, engine, counting.weights == 0)
    _store_cells(model, X, made.cells)
    found += on_cells(model)
    model.warnings_ = [str(warning) for warning in found]
    model.warning_kinds_ = [warning.kind for warning in found]
    if case_names is not None:
        model.case_names_in_ = case_names
    return found


def _judge_others(model: Any, X: Any, engine: Engine, out: np.ndarray) -> None:
    """Give cases of weight 0, which took no part, labels and distances as ``predict`` would."""
    if not out.any():
        return
    predictor, rest = predictor_of(model), rows_of(X, np.flatnonzero(out))
    rest = to_numpy(rest) if is_elsewhere(rest) else rest  # a sparse matrix stays one
    judged = predictor.judged(rest)
    found = {
        "labels_": judged.labels,
        "distances_": judged.weighted,
        "unweighted_distances_": judged.unweighted,
        "outliers_": judged.outliers,
        "trimmed_": np.zeros(rest.shape[0], bool),
        "trimmed_weighted_": np.zeros(rest.shape[0], bool),
        "trimmed_unweighted_": np.zeros(rest.shape[0], bool),
    }
    for name, values in found.items():
        own = getattr(model, name)
        if is_dask(own):
            setattr(model, name, merged_blocks(own, out, values, X.chunks[0]))
            continue
        whole = np.empty(len(out), to_numpy(own).dtype)
        whole[~out], whole[out] = to_numpy(own), values
        setattr(model, name, engine.as_result(whole))


def _solve(
    model: Any, engine: Engine, problem: Problem, starts: Starts, warm: Sequence[Warm]
) -> Found:
    """Solve the problem, or let the data decide what the model leaves to them."""
    bound = problem.l1_bound is not None and is_word(model.l1_bound, "auto")
    wishes = Wishes(is_word(model.trim, "auto"), bound, bool(model.reweight))
    if (cutoff := check_cells(model.cells)) is not None:
        return solve_with_cells(engine, problem, starts, wishes, cutoff, _unscaled(model))
    by_data = is_word(model.cells, "auto") and (wishes.trim or wishes.bound)
    if by_data and shows_outlying_cells(engine, problem, starts):
        found = solve_with_cells(engine, problem, starts, wishes, CUTOFF, _unscaled(model))
        if found.cells is not None and found.cells.extreme_share > FEW_CASES:
            return found
    if wishes.any:
        return solve_automatically(engine, problem, starts, wishes)
    return Found(solve(engine, problem, starts, warm), problem, None)


def _unscaled(model: Any) -> np.ndarray | None:
    """Return which numbers stand for categories, which have no outlying cells."""
    encoder = getattr(model, "encoder_", None)
    if encoder is None:
        return None
    return np.array([code.kind != NUMBERS for code in encoder.columns_])[encoder.columns]


def validated_for_fit(model: Any, X: Any, sample_weight: Any = None) -> Any:
    """Check the data of a fit, and remember their features in the model."""
    checked = validated(model, X, reset=True, dtype=PRECISIONS, sample_weight=sample_weight)
    warn_of_columns(X)
    if not hasattr(model, "encoder_"):
        warn_of_numbers(X, checked)
    return checked


@contextmanager
def solver_settings(verbose: Any) -> Iterator[None]:
    """Hold BLAS to one thread, log to the terminal if asked, and leave overflows to checks."""
    check_integer("verbose", verbose, 0)
    with told.at(verbose), one_blas_thread, np.errstate(over="ignore", invalid="ignore"):
        yield


def make_engine(
    model: Any, X: Any, masses: np.ndarray | None = None, n_searched: int | None = None
) -> Engine:
    """Return the engine for validated data; cases with no observed value are left out."""
    options: dict[str, Any] = {"masses": masses, "n_threads": check_n_threads(model.n_threads)}
    if is_dask(X) and masses is None:
        options["wanted"] = _expected_cases(model, X.shape, n_searched)
    return engine_for(X, drop_unobserved=True, **options)


def _expected_cases(
    model: Any, shape: tuple[float, int], n_searched: int | None
) -> np.ndarray | None:
    """Return the cases that ``make_starts`` will draw, if X need not be read for that.

    One pass over the data is enough for the look and for their rows then.
    """
    (n, p), K, random_state = shape, model.n_clusters, check_seed(model.random_state)
    if not (isinstance(model.init, str) and isinstance(K, int) and n == n):  # n may be NaN
        return None
    return draw_cases(int(n), p, K, copy.deepcopy(random_state), n_searched)


def make_problem(model: Any, engine: Engine) -> Problem:
    """Check the parameters against the data."""
    n, groups = engine.n_cases, groups_of(model, engine.n_features)
    p = engine.n_features if groups is None else len(groups)
    K = check_integer("n_clusters", model.n_clusters, 1)
    trim = check_trim(model.trim)
    check_choice("reweight", model.reweight, (True, False))
    n_trim = 0 if trim is None else mass_of(trim, engine)
    if n < K:
        raise ParameterError(
            "n_clusters", K, f"is more than {count(n, 'case')}; lower {{n_clusters}}."
        )
    if engine.mass - n_trim < K:
        raise ParameterError(
            "n_clusters",
            K,
            f"is more than the {engine.mass - n_trim:g} cases that are left of {engine.mass:g} "
            f"when {{trim}}={model.trim} takes {n_trim:g} away; lower one of the two.",
        )
    check_rule(model)
    l1_bound = check_bound(model.l1_bound, model.n_features, p)
    if K == 1 and isinstance(model.l1_bound, str):
        l1_bound = None  # one cluster differs from nothing: the first features would get the weight
    problem = Problem(
        n_clusters=K,
        n_trim=n_trim,
        l1_bound=l1_bound,
        n_features=check_wanted(model.n_features, model.l1_bound, p),
        max_iter=check_integer("max_iter", model.max_iter, 1),
        tol=check_real("tol", model.tol, 0),
        feature_groups=groups and groups.observed(engine.equal_weights()[0] > 0),
    )
    distinct = engine.distinct(K)
    if distinct < K:
        raise ParameterError(
            "n_clusters",
            K,
            f"is more than the {count(distinct, 'distinct case')} among the {n}; lower "
            "{n_clusters}.",
        )
    return problem


def groups_of(model: Any, p: int) -> FeatureGroups | None:
    """Return the groups of the p features of a fit; indicators of a category are one."""
    names, encoder = getattr(model, "feature_names_in_", None), getattr(model, "encoder_", None)
    if encoder is not None:
        return encoder.groups(model.feature_groups, names)
    return check_groups(model.feature_groups, names, p)


def check_trim(trim: Any) -> float | None:
    """Return the share of cases to trim; None if the data are to decide."""
    if is_word(trim, "auto"):
        return None
    words = ', or "auto": the share of cases that may be outlying'
    return check_real("trim", trim, 0, 0.5, words)


def check_cells(cells: Any) -> float | None:
    """Return the cut-off in scales beyond which a cell is outlying; None for none, or "auto"."""
    if cells is None or is_word(cells, "auto"):
        return None
    remedy = ' scales, "auto" or {None}'
    cutoff = check_real("cells", cells, 0, remedy=remedy)
    if cutoff == 0:
        raise ParameterError("cells", cells, f"must be a number above 0{remedy}.")
    return cutoff


def check_rule(model: Any) -> tuple[str, float | None]:
    """Return the rule for outliers and its cut-off, None for the rule's own."""
    rule, cutoff = model.outlier_rule, model.outlier_cutoff
    check_choice("outlier_rule", rule, outliers.RULES)
    if cutoff is not None:
        cutoff = check_real("outlier_cutoff", cutoff, 0, remedy=" or None")
    return rule, cutoff


def make_starts(
    model: Any, X: Any, engine: Engine, problem: Problem, n_searched: int | None = None
) -> Starts:
    """Draw what the restarts begin with, or take the centers that are given."""
    K, p, init = problem.n_clusters, engine.n_features, model.init
    n_init = _n_starts(model, engine, problem)
    random_state = check_seed(model.random_state)
    if isinstance(init, str):
        check_choice("init", init, ("auto", *INITS), ", an array or a callable")
        inits = auto_inits(problem) if init == "auto" else (init,)
        cases = search_cases(engine, K, random_state, n_searched)  # first: before n_init is known
        return Starts(inits, random_state.random_sample((n_init, K)), cases)
    given = [init]
    if callable(init):
        given = [init(X, K, random_state=random_state) for _ in range(n_init)]
    centers = np.stack([check_centers(center, K, p) for center in given])
    table = engine.table(np.ones((1, p)))
    labels = [table.assign(table.place(center[None])) for center in centers]
    return Starts(groups=[table.trim(label, problem.n_trim).groups for label in labels])


def _n_starts(model: Any, engine: Engine, problem: Problem) -> int:
    if not (isinstance(model.n_init, str) and model.n_init == "auto"):
        return check_integer("n_init", model.n_init, 1, remedy=' or "auto"')
    if callable(model.init):
        return CALLED_STARTS
    if not isinstance(model.init, str):
        return 1
    return auto_starts(engine.n_cases, engine.n_features, problem)


@contextmanager
def overflow_explained(
    model: Any, engine: Engine, X: Any, case_names: np.ndarray | None = None
) -> Iterator[None]:
    """Turn an error about sums that overflow into one about the data."""
    try:
        yield
    except FloatingPointError:
        place = ""
        if isinstance(X, np.ndarray):
            case, feature = np.unravel_index(np.nanargmax(np.abs(X)), X.shape)
            place = f"feature {feature}"
            if hasattr(model, "feature_names_in_"):
                place = f"feature {number_names(model)[feature]!r:.80}"
            # Without a name it is perhaps the number within a sample of a search.
            place += "" if case_names is None else f" of case {case_names[case]!r:.80}"
        raise OverflowedError(engine.largest_cell(), place) from None


class _Judged(NamedTuple):
    """Distances of the cases, the thresholds that follow from them, and who is beyond these."""

    distances: outliers.Distances
    thresholds: outliers.Thresholds
    cutoff: float
    out: Any  # (n,)


def _judge(model: Any, engine: Engine, solution: Solution) -> _Judged:
    distances = outliers.distances_of(engine, solution)
    members = engine.arrays.without(solution.labels, solution.trimmed_weighted)
    sizes = solution.kept_sizes
    found = outliers.judge(engine, distances, members, sizes, *check_rule(model))
    far, far_unweighted = found.thresholds.flag(distances)
    return _Judged(distances, *found, far | far_unweighted)


def _store(model: Any, engine: Engine, made: Found, judged: _Judged, counting: Counting) -> None:
    """Set the attributes of fitted.ATTRIBUTES; a case of mass 1 weighs a unit."""
    for name in OF_SOME_FITS:
        vars(model).pop(name, None)  # of an earlier fit
    solution, problem = made.solution, made.problem
    unit, out = counting.unit, solution.trimmed_weighted
    model._frame = engine.frame
    model.n_missing_ = engine.n_missing + engine.n_unobserved * engine.n_features
    model.labels_ = engine.returned(solution.labels, 0)
    model.cluster_centers_ = engine.as_result(solution.centers)
    model.feature_weights_ = engine.as_result(by_column(model, solution.weights))
    model.trimmed_weighted_ = engine.returned(out, True)
    model.trimmed_unweighted_ = engine.returned(solution.trimmed_unweighted, False)
    model.trimmed_ = model.trimmed_weighted_ | model.trimmed_unweighted_
    gone = problem.n_trim
    if is_word(model.trim, "auto") or model.reweight:
        gone = engine.mass - solution.n_kept
    model.trim_ = gone / engine.mass
    # By mass, as many as it takes.
    model.n_trim_ = int(gone) if counting.masses is None else engine.arrays.number(out)
    model.objective_ = solution.objective * unit
    path = np.array(solution.path) * unit
    # Infinite where the sums overflowed before an outlying case was trimmed.
    model.objective_path_ = engine.as_result(np.where(np.isfinite(path), path, np.inf))
    model.inertia_ = solution.inertia * unit
    model.n_iter_ = len(solution.path)
    _store_features(model, engine, made)
    model.distances_, model.unweighted_distances_ = (
        engine.returned(each, np.inf) for each in judged.distances
    )
    model.outlier_threshold_, model.unweighted_outlier_threshold_ = judged.thresholds
    model.outlier_cutoff_ = judged.cutoff
    model.outliers_ = engine.returned(judged.out, True)


def _store_cells(model: Any, X: Any, cells: CellBounds | None) -> None:
    """Set which cells of all cases are outlying, and on what scales."""
    model.cell_cutoff_, model.cell_scales_ = None, np.full(model.n_features_in_, np.inf)
    if cells is not None:
        model.cell_cutoff_, model.cell_scales_ = cells.cutoff, by_column(model, cells.scales)
    model.outlying_cells_ = outlying_cells(model, X, model.labels_)


def _store_features(model: Any, engine: Engine, made: Found) -> None:
    """Set what is known of the features and their groups, besides their weights."""
    solution, problem, features, _ = made
    groups, own_weights = problem.feature_groups, solution.weights
    if features is not None:
        statistics, p_values = features.tests
        if groups is not None:  # each feature has the test of its group
            statistics, p_values = statistics[groups.numbers], p_values[groups.numbers]
        model.feature_statistics_ = engine.as_result(by_column(model, statistics))
        model.feature_p_values_ = engine.as_result(by_column(model, p_values))
        model.n_features_different_ = features.n_different
        model.n_features_enough_ = features.n_enough
    if groups is not None:
        own_weights = groups.weights_of(solution.weights)
    if model.feature_groups is not None:
        assert groups is not None
        model.group_names_ = groups.names
        model.group_weights_ = engine.as_result(own_weights)
        model.feature_group_ = by_column(model, groups.numbers)
    model.l1_bound_ = problem.l1_bound
    if problem.n_features is not None:
        model.l1_bound_ = float(own_weights.sum())
