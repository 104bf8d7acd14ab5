"""What a fitted model found: as frames with a row a feature or a case, and in words."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np

from rskc.metrics import revised_silhouette

WIDTH = 96
LONGEST_NAME = 24
LONGEST_WARNING = 260
MOST_NAMES = 10
MOST_SIZES = 20
GLUE = "\xa0"  # a space at which no line is broken
MARGIN = 11  # of the words in the summary, behind their headings


def features_frame(model: Any) -> Any:
    import pandas as pd

    weights, centers = model.feature_weights_, model.cluster_centers_
    columns = {
        "feature": _feature_names(model),
        "weight": weights,
        "rank": np.argsort(_by_weight(weights)) + 1,
        "selected": weights > 0,
    }
    return pd.DataFrame(columns | {f"center_{k}": center for k, center in enumerate(centers)})


def cases_frame(model: Any, X: Any) -> Any:
    import pandas as pd

    columns = {
        "case": _case_names(model),
        "cluster": model.labels_,
        "distance": model.distances_,
        "outlier": model.outliers_,
        "trimmed": model.trimmed_,
        "trimmed_weighted": model.trimmed_weighted_,
        "trimmed_unweighted": model.trimmed_unweighted_,
    }
    frame = pd.DataFrame(columns)
    if X is None:
        return frame
    return frame.assign(**_second_choices(model, X))


def _second_choices(model: Any, X: Any) -> dict[str, Any]:
    """Second nearest center and revised silhouette; missing if there is one center only."""
    import pandas as pd

    n, m = len(model.labels_), len(model.predict(X))
    if m != n:
        raise ValueError(f"X has {m} cases and the model was fitted to {n}; give the data of fit.")
    if len(model.cluster_centers_) == 1:
        return {"second_cluster": pd.array([pd.NA] * n, "Int64"), "silhouette": np.full(n, np.nan)}
    found = revised_silhouette(model, X)
    return {"second_cluster": pd.array(found.second, "Int64"), "silhouette": found.values}


def describe(model: Any) -> str:
    """Settings and result in a few lines, none wider than WIDTH."""
    lines = ["Robust and sparse K-means", "Asked for:"]
    for heading, words in _asked(model):
        lines += _wrapped(heading, words)
    lines += ["Found:"]
    for heading, words in _found(model):
        lines += _wrapped(heading, words)
    if model.warnings_:
        lines += ["Warned of:"]
    for message in model.warnings_:
        lines += _wrapped("-", textwrap.shorten(message, LONGEST_WARNING), margin=2)
    return "\n".join(lines)


def _wrapped(heading: str, words: str, margin: int = MARGIN) -> list[str]:
    lines = textwrap.wrap(
        f"  {heading:<{margin}}{words}", WIDTH, subsequent_indent=" " * (margin + 2)
    )
    return [line.replace(GLUE, " ") for line in lines]


def _asked(model: Any) -> Iterator[tuple[str, str]]:
    n, K = len(model.labels_), len(model.cluster_centers_)
    yield "clusters", f"{K}, from {_starts(model)}"
    yield "features", _sparsity(model)
    if model.n_trim_:
        cases = _counted(model.n_trim_, "case")
        yield "trimming", f"{cases} of {n} by weighted and as many by unweighted distance"
    else:
        yield "trimming", "none"
    yield "outliers", f"beyond the median distance plus {model.outlier_cutoff:g} MAD"


def _starts(model: Any) -> str:
    if callable(model.init):
        return "centers of a function"
    if not isinstance(model.init, str):
        return "given centers"
    number = "restarts" if isinstance(model.n_init, str) else _counted(model.n_init, "restart")
    seed = "no seed" if model.random_state is None else f"seed {model.random_state!s:.20}"
    return f"{number} with {model.init} centers, {seed}"


def _sparsity(model: Any) -> str:
    if model.l1_bound_ is None:
        return "all, with equal weights"
    if model.n_features is not None:
        return f"{model.n_features}, which took an L1 bound of {model.l1_bound_:.4g} on the weights"
    chosen = ", chosen halfway" if isinstance(model.l1_bound, str) else ""
    return f"weights of L2 norm 1 and an L1 norm of at most {model.l1_bound_:.4g}{chosen}"


def _found(model: Any) -> Iterator[tuple[str, str]]:
    n, K, p = len(model.labels_), len(model.cluster_centers_), model.n_features_in_
    sizes = _few(np.bincount(model.labels_, minlength=K).astype(str), MOST_SIZES)
    yield "clusters", f"{_counted(K, 'cluster')} of {_counted(n, 'case')}: {sizes}"
    yield "features", f"{np.count_nonzero(model.feature_weights_)} of {p} have weight{_top(model)}"
    yield "trimmed", _named_cases(model, model.trimmed_)
    yield "outliers", _named_cases(model, model.outliers_)
    yield "missing", _missing(model, n * p)
    iterations = _counted(model.n_iter_, "iteration")
    yield "objective", f"{model.objective_:.6g} after {iterations}"


def _top(model: Any) -> str:
    """The largest weights, with the names of their features."""
    if model.l1_bound_ is None:
        return ", all the same"
    weights, names = model.feature_weights_, _feature_names(model)
    order = _by_weight(weights)[: np.count_nonzero(weights)]
    top = [f"{_shortened(names[j])}{GLUE}{weights[j]:.3g}" for j in order[:MOST_NAMES]]
    return f": {_few(top, n=len(order))}"


def _named_cases(model: Any, mask: np.ndarray) -> str:
    """How many and, the farthest first, which."""
    cases = np.flatnonzero(mask)
    if len(cases) == 0:
        return "none"
    cases = cases[np.argsort(-model.distances_[cases], kind="stable")]
    names = [_shortened(name) for name in _case_names(model)[cases[:MOST_NAMES]]]
    return f"{_counted(len(cases), 'case')}: {_few(names, n=len(cases))}"


def _missing(model: Any, n_cells: int) -> str:
    words, blind = f"{model.n_missing_} of {n_cells} cells missing", np.isinf(model.distances_)
    if not blind.any():
        return words
    return f"{words}; nothing known of {_counted(blind.sum(), 'case')} in features with weight"


def _feature_names(model: Any) -> Any:
    """As scikit-learn names them: x0, x1, ... where they have no names."""
    numbers = [f"x{j}" for j in range(model.n_features_in_)]
    return getattr(model, "feature_names_in_", numbers)


def _case_names(model: Any) -> np.ndarray:
    return getattr(model, "case_names_in_", np.arange(len(model.labels_)))


def _by_weight(weights: np.ndarray) -> np.ndarray:
    """Numbers of the features, the largest weight first, ties in the order of the data."""
    return np.argsort(-weights, kind="stable")


def _few(words: Any, most: int = MOST_NAMES, n: int | None = None) -> str:
    """The first of n words, and how many more there are."""
    more = (len(words) if n is None else n) - most
    return ", ".join(words[:most]) + (f" and {more} more" if more > 0 else "")


def _shortened(name: Any, most: int = LONGEST_NAME) -> str:
    """The beginning of a name, in one piece."""
    words = GLUE.join(str(name).split())
    return words if len(words) <= most else words[: most - 3] + "..."


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
