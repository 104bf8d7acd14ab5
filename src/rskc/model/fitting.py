"""How a fit is made: the engine, the problem, the starts, the solution (internal).

``fit`` is the way from a table to a fitted model. The estimator goes it, and the searches of
``rskc.selection``; those that follow a path of bounds take single steps of it. A ``model`` is a
RobustSparseKMeans, of which the steps read the parameters.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.sparse import issparse

from rskc.engines import BoundedEngine, Engine, engine_for
from rskc.engines.memory import one_blas_thread
from rskc.exceptions import FitWarning, OverflowedError, ParameterError
from rskc.inputs.arrays import (
    CaseWeights,
    case_weights_of,
    is_dask,
    is_elsewhere,
    merged_blocks,
    rows_of,
    to_numpy,
    warn_of_columns,
    warn_of_numbers,
)
from rskc.inputs.frames import NUMBERS
from rskc.inputs.spreads import MAD_FACTOR, column_medians, differing_spreads
from rskc.inputs.validation import (
    PRECISIONS,
    check_centers,
    check_choice,
    check_device,
    check_integer,
    check_n_threads,
    check_real,
    check_seed,
    check_sparsity,
    is_word,
    names_of_cases,
    validated,
)
from rskc.model import fitted
from rskc.model.automatic import FitResult, LeftToData, solve_automatically, where_searched
from rskc.model.cells import CUTOFF, FEW_CASES, shows_outlying_cells, solve_with_cells
from rskc.model.outliers import CUTOFFS, Judgment, find_clump, judge
from rskc.model.warnings import fit_warning
from rskc.solver import Problem, Starts, Warm, solve
from rskc.solver.alternate import VERBOSITY, count_active, mass_of
from rskc.solver.groups import FeatureGroups, check_groups
from rskc.solver.search import INITS, auto_inits, auto_starts, draw_cases, search_cases
from rskc.solver.solution import RIVAL_CASES, hand_back
from rskc.utils.wording import cleaned, count, listed

# Restarts from a function with n_init="auto".
CALLED_STARTS = 10
MOST_ITERATIONS = 2**31 - 1  # that a compiled pass can count
# Optional attributes that validated data have set before the others are.
OF_VALIDATION = {"encoder_", "feature_names_in_", "_sklearn_output_config"}
# Numbers beside categories that have a larger robust standard deviation count more than 14 times as
# much as a category, whose variance is 2 / pi. They are looked at in this many cases.
MOST_DEVIATION, SAMPLED_CASES = 3.0, 2000
# Distances rest on little when less than this share of the weight is observed.
LITTLE_SEEN = 0.1
MOST_CANDIDATES = 5000  # trimmed and flagged cases that are looked at for a clump
MOST_NAMES = 6  # of cases and features in a warning


def fit(
    model: Any,
    X: Any,
    warm: Sequence[Warm] = (),
    sample_weight: Any = None,
    *,
    n_searched: int | None = None,
    share: float = 1.0,
) -> list[FitWarning]:
    """Fit a model, from known solutions too, and return what there is to warn of.

    Where a part of a table stands for all of it (:mod:`rskc.planning`), the search is made on
    ``n_searched`` cases, and limits of memory shrink to the ``share`` of its cells.
    """
    case_names, given = names_of_cases(X), X
    X = validated(model, X, reset=True, dtype=PRECISIONS, sample_weight=sample_weight)
    warn_of_columns(given)
    if not hasattr(model, "encoder_"):
        warn_of_numbers(given, X)
    weights = case_weights_of(X, sample_weight)
    counted, names = weights.of(X), weights.names(case_names)
    with solver_settings(model.verbose):
        engine = make_engine(model, counted, weights.masses, n_searched)
        engine.stand_for_more(share)
        problem = make_problem(model, engine)
        with overflow_explained(engine):
            starts = make_starts(model, counted, engine, problem, n_searched)
            result = _solve(model, engine, problem, starts, warm)
            result.solution.check_finite()
        if result.cells is not None:
            engine = BoundedEngine(engine, result.cells.limits)
        judged = judge(engine, result.solution, model.outlier_rule, model.outlier_cutoff)
        messages = list(warnings_of(model, engine, result, judged.outliers, names))
        _store(model, engine, result, judged, weights)
        messages += on_scales(model, counted)
        if hasattr(model, "encoder_") and model.n_missing_:  # a category is one cell
            model.n_missing_ = int(np.isnan(fitted.by_column(model, counted)).sum())
    if weights.given is not None:
        model.sample_weight_ = weights.given
        _judge_others(model, X, engine, weights.given == 0)
    model.outlying_cells_ = fitted.outlying_cells(model, X, model.labels_)
    model.warnings_ = [str(message) for message in messages]
    model.warning_kinds_ = [message.kind for message in messages]
    if case_names is not None:
        model.case_names_in_ = case_names
    return messages


@contextmanager
def solver_settings(verbose: Any) -> Iterator[None]:
    """Hold BLAS to one thread, print the stages if asked, and leave overflows to checks."""
    before = VERBOSITY.set(check_integer("verbose", verbose, 0))
    try:
        with one_blas_thread, np.errstate(over="ignore", invalid="ignore"):
            yield
    finally:
        VERBOSITY.reset(before)


def make_engine(
    model: Any, X: Any, masses: np.ndarray | None = None, n_searched: int | None = None
) -> Engine:
    """Return the engine for validated data; cases with no observed value are left out."""
    options: dict[str, Any] = {"masses": masses, "n_threads": check_n_threads(model.n_threads)}
    K, n = model.n_clusters, X.shape[0]
    drawn = isinstance(model.init, str) and isinstance(K, int) and n == n  # n may be NaN
    if model.device is not None:
        options["device"] = check_device(model.device, X)
    if (is_dask(X) or model.device is not None) and masses is None:
        # Where the cases that the starts draw are known, one pass over the data is enough for the
        # look and for their rows.
        random_state = copy.deepcopy(check_seed(model.random_state))
        options["wanted"] = None
        if drawn:
            options["wanted"] = draw_cases(int(n), X.shape[1], K, random_state, n_searched)
    return engine_for(X, drop_unobserved=True, **options)


def make_problem(model: Any, engine: Engine) -> Problem:
    """Check the parameters against the data."""
    n, groups = engine.n_cases, groups_of(model, model.feature_groups, engine.n_features)
    p = engine.n_features if groups is None else len(groups)
    K, trim = check_integer("n_clusters", model.n_clusters, 1), model.trim
    n_trim: float = 0
    if not is_word(trim, "auto"):
        words = ', or "auto": the share of cases that may be outlying'
        n_trim = mass_of(check_real("trim", trim, 0, 0.5, words), engine)
    check_choice("reweight", model.reweight, (True, False))
    if (kept := engine.mass - n_trim) < K:
        why = f" that {{trim}}={trim} leaves" * (n_trim > 0)
        words = f"is more than {kept:g}, the number of cases{why}; lower {{n_clusters}}."
        raise ParameterError("n_clusters", K, words)
    if (distinct := engine.distinct(K)) < K:
        words = f"is more than the {count(distinct, 'distinct case')} among the {n}"
        raise ParameterError("n_clusters", K, f"{words}; lower {{n_clusters}}.")
    check_choice("outlier_rule", model.outlier_rule, tuple(CUTOFFS))
    if model.outlier_cutoff is not None:
        check_real("outlier_cutoff", model.outlier_cutoff, 0, remedy=" or None")
    l1_bound, n_features = check_sparsity(model.l1_bound, model.n_features, p)
    if K == 1 and isinstance(model.l1_bound, str):
        l1_bound = None  # one cluster differs from nothing: the first features would get the weight
    return Problem(
        n_clusters=K,
        n_trim=n_trim,
        l1_bound=l1_bound,
        n_features=n_features,
        max_iter=min(check_integer("max_iter", model.max_iter, 1), MOST_ITERATIONS),
        tol=check_real("tol", model.tol, 0),
        feature_groups=groups and groups.observed(engine.equal_weights()[0] > 0),
    )


def groups_of(checked: Any, feature_groups: Any, p: int) -> FeatureGroups | None:
    """Return the groups of p features that a model or a search has seen; a category is one."""
    names = getattr(checked, "feature_names_in_", None)
    if hasattr(checked, "encoder_"):
        return checked.encoder_.groups(feature_groups, names)
    return None if feature_groups is None else check_groups(feature_groups, names, p)


def make_starts(
    model: Any, X: Any, engine: Engine, problem: Problem, n_searched: int | None = None
) -> Starts:
    """Draw what the restarts begin with, or take the centers that are given."""
    K, p, init = problem.n_clusters, engine.n_features, model.init
    is_drawn, n_init = isinstance(init, str), model.n_init
    if not is_word(n_init, "auto"):
        n_init = check_integer("n_init", n_init, 1, remedy=' or "auto"')
    elif is_drawn:
        n_init = auto_starts(engine.n_cases, p, problem)
    else:
        n_init = CALLED_STARTS if callable(init) else 1
    random_state = check_seed(model.random_state)
    if is_drawn:
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


@contextmanager
def overflow_explained(engine: Engine) -> Iterator[None]:
    """Turn an error about sums that overflow into one about the data."""
    try:
        yield
    except FloatingPointError:
        raise OverflowedError(
            "The squares of {X} overflow: it has cells of up to {largest}. Rescale its columns, or "
            "raise {trim} if these cells are outlying.",
            largest=f"{engine.largest_cell():.3g}",
        ) from None


def _solve(
    model: Any, engine: Engine, problem: Problem, starts: Starts, warm: Sequence[Warm]
) -> FitResult:
    """Solve the problem, or let the data decide what the model leaves to them."""
    cutoff, is_auto = model.cells, is_word(model.cells, "auto")
    bound = problem.l1_bound is not None and is_word(model.l1_bound, "auto")
    trim = is_word(model.trim, "auto")
    left = LeftToData(trim, bound, trim or bool(model.reweight))
    unscaled = None  # which numbers stand for categories, which have no outlying cells
    if hasattr(model, "encoder_"):
        coded = [code.kind != NUMBERS for code in model.encoder_.columns_]
        unscaled = fitted.by_number(model, np.array(coded))
    if is_auto:
        cutoff = CUTOFF if left.trim or left.bound else None
    elif cutoff is not None:
        cutoff = check_real("cells", cutoff, 1, remedy=' scales, "auto" or {None}')
    if cutoff is None and not any(left):
        return FitResult(solve(engine, problem, starts, warm), problem, None)
    here, starts = where_searched(engine, problem, starts)
    result = None
    if cutoff is not None and (not is_auto or shows_outlying_cells(here, problem, starts)):
        result = solve_with_cells(here, problem, starts, left, cutoff, unscaled)
        if is_auto and result.cells is not None and result.cells.extreme_share <= FEW_CASES:
            result = None
    if result is None:
        result = solve_automatically(here, problem, starts, left)
    if here is not engine:
        result = result._replace(solution=hand_back(engine, result.solution))
    return result


def _store(
    model: Any, engine: Engine, result: FitResult, judged: Judgment, weights: CaseWeights
) -> None:
    """Set the attributes of fitted.ATTRIBUTES; a case of mass 1 weighs a unit."""
    for name, attribute in fitted.ATTRIBUTES.items():
        if attribute.optional and name not in OF_VALIDATION:
            vars(model).pop(name, None)  # of an earlier fit
    solution, problem, features, cells = result
    unit, out = weights.unit, solution.trimmed_weighted
    model._frame = engine.frame
    model.n_missing_ = engine.n_missing + engine.n_unobserved * engine.n_features
    model.labels_ = engine.returned(solution.labels, 0)
    model.cluster_centers_ = engine.as_result(solution.centers)
    model.feature_weights_ = engine.as_result(fitted.by_column(model, solution.weights))
    model.trimmed_weighted_ = engine.returned(out, True)
    model.trimmed_unweighted_ = engine.returned(solution.trimmed_unweighted, False)
    model.trimmed_ = model.trimmed_weighted_ | model.trimmed_unweighted_
    n_trim = problem.n_trim
    if is_word(model.trim, "auto") or model.reweight:
        n_trim = engine.mass - solution.n_kept
    model.trim_ = n_trim / engine.mass
    # By mass, as many as it takes.
    model.n_trim_ = int(n_trim) if weights.masses is None else engine.arrays.number(out)
    model.objective_ = solution.objective * unit
    path = np.array(solution.path) * unit
    # Infinite where the sums overflowed before an outlying case was trimmed.
    model.objective_path_ = engine.as_result(np.where(np.isfinite(path), path, np.inf))
    model.inertia_ = solution.inertia * unit
    model.n_iter_ = len(solution.path)
    weighted, unweighted = judged.distances
    model.distances_ = engine.returned(weighted, np.inf)
    model.unweighted_distances_ = engine.returned(unweighted, np.inf)
    model.outlier_threshold_, model.unweighted_outlier_threshold_ = judged.thresholds
    model.outlier_cutoff_ = float(judged.cutoff)
    model.outliers_ = engine.returned(judged.outliers, True)
    model.cell_cutoff_, model.cell_scales_ = None, np.full(model.n_features_in_, np.inf)
    if cells is not None:
        model.cell_cutoff_, model.cell_scales_ = cells.cutoff, fitted.by_column(model, cells.scales)

    groups, unit_weights = problem.feature_groups, solution.weights
    if features is not None:
        statistics, p_values = features.tests
        if groups is not None:  # each feature has the test of its group
            statistics, p_values = statistics[groups.numbers], p_values[groups.numbers]
        model.feature_statistics_ = engine.as_result(fitted.by_column(model, statistics))
        model.feature_p_values_ = engine.as_result(fitted.by_column(model, p_values))
        model.n_features_different_ = features.n_different
        model.n_features_enough_ = features.n_enough
    if groups is not None:
        unit_weights = groups.weights_of(solution.weights)
    if model.feature_groups is not None:
        assert groups is not None
        model.group_names_ = groups.names
        model.group_weights_ = engine.as_result(unit_weights)
        model.feature_group_ = fitted.by_column(model, groups.numbers)
    given = problem.n_features is None
    model.l1_bound_ = problem.l1_bound if given else float(unit_weights.sum())


def _judge_others(model: Any, X: Any, engine: Engine, out: np.ndarray) -> None:
    """Give cases of weight 0, which took no part, labels and distances as ``predict`` would."""
    if not out.any():
        return
    cases = rows_of(X, np.flatnonzero(out))
    cases = to_numpy(cases) if is_elsewhere(cases) else cases  # a sparse matrix stays one
    judged = fitted.predictor_of(model).judged(cases)
    none = np.zeros(cases.shape[0], bool)
    values_of = {
        "labels_": judged.labels,
        "distances_": judged.weighted,
        "unweighted_distances_": judged.unweighted,
        "outliers_": judged.outliers,
        **dict.fromkeys(("trimmed_", "trimmed_weighted_", "trimmed_unweighted_"), none),
    }
    for name, values in values_of.items():
        counted = getattr(model, name)
        if is_dask(counted):
            setattr(model, name, merged_blocks(counted, out, values, X.chunks[0]))
            continue
        whole = np.empty(len(out), to_numpy(counted).dtype)
        whole[~out], whole[out] = to_numpy(counted), values
        setattr(model, name, engine.as_result(whole))


# ---- Warnings


def on_scales(model: Any, X: Any) -> Iterator[FitWarning]:
    """Warn of features that differ in scale, or vary far more than the categories beside them.

    Those of a sparse table do not, or nobody knows.
    """
    if is_dask(X) or issparse(X):
        return
    rows = to_numpy(X[:: X.shape[0] // SAMPLED_CASES + 1, :])  # as the array API wants it
    if not hasattr(model, "encoder_"):
        if (spreads := differing_spreads(rows)) is not None:
            names = fitted.feature_names(model)[[spreads.largest, spreads.small]]
            largest, small = (cleaned(name, 24) for name in names)
            ratio = float(f"{spreads.ratio:.2g}")
            yield fit_warning("units differ", largest=largest, small=small, ratio=ratio)
        return
    is_number = [code.kind == NUMBERS for code in model.encoder_.columns_]
    numbers = model.encoder_.first[is_number]
    rows = rows[:, numbers]
    # By the MAD: columns in units of their MAD or standard deviation do not count as wide.
    deviations = MAD_FACTOR * column_medians(np.abs(rows - column_medians(rows)))
    wide = numbers[deviations > MOST_DEVIATION]
    if len(wide):
        yield fit_warning(
            "numbers not standardized",
            columns=count(len(wide), "column of numbers varies", "columns of numbers vary"),
            names=listed(fitted.number_names(model)[wide], MOST_NAMES),
        )


def warnings_of(
    model: Any, engine: Engine, result: FitResult, out: Any, case_names: np.ndarray | None
) -> Iterator[FitWarning]:
    """Yield the warnings of a solution; ``out`` is the mask (n,) of cases that are outlying."""
    solution, arrays = result.solution, engine.arrays

    def names(cases: np.ndarray, n: int) -> str:
        numbers = engine.numbers(cases)
        return listed(numbers if case_names is None else case_names[numbers], MOST_NAMES, n)

    yield from _on_parameters(model, engine, result)
    small = {"small cluster": solution.rival, "exposed cluster": solution.exposed}
    for kind, cluster in small.items():
        if cluster is not None:
            first, size = cluster.cases, cluster.size  # only the first ones are known
            n = len(first) if len(first) < RIVAL_CASES else round(size)
            means = {"larger": cluster.mean, "objective": solution.mean}
            n_trim = result.problem.n_trim
            yield fit_warning(kind, size=size, cases=names(first, n), n_trim=n_trim, **means)
    out = solution.trimmed_weighted | solution.trimmed_unweighted | out
    groups = arrays.without(solution.labels, out)[None, ...]
    clump = find_clump(engine, solution, arrays.first_members(groups, -1, MOST_CANDIDATES))
    if clump.size > clump.n_nearby:
        yield fit_warning(
            "clump", size=len(clump.cases), cases=names(clump.cases, len(clump.cases))
        )
    if engine.n_missing and (little := engine.little_seen(solution.weights, LITTLE_SEEN)).total:
        yield fit_warning(
            "hardly observed cases",
            cases=count(little.total, "case is", "cases are"),
            share=LITTLE_SEEN,
            names=names(little.first, little.total),
        )


def _on_parameters(model: Any, engine: Engine, result: FitResult) -> Iterator[FitWarning]:
    """Warn of parameters that the solution does not keep to."""
    solution, problem, features, _ = result
    groups, asked = problem.feature_groups, model.l1_bound
    p = engine.n_features if groups is None else len(groups)
    most = np.sqrt(p)
    given = problem.l1_bound is not None and not isinstance(asked, str)
    if given and asked > most * (1 + 1e-9):
        yield fit_warning("bound never binds", value=asked, p=p, most=most)
    if not solution.converged:
        yield fit_warning("not converged", value=problem.max_iter)
    n_found = int(np.count_nonzero(solution.sizes))
    if n_found < problem.n_clusters:
        yield fit_warning("fewer clusters", value=problem.n_clusters, found=n_found)
    selected = count_active(groups, solution.weights)
    if features is None and problem.n_features not in (None, selected):
        yield fit_warning("other number of features", value=problem.n_features, found=selected)
