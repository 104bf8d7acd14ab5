"""A fitted model as frames, with one row per feature or case, and in words (internal)."""

import textwrap
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from rskc.inputs.arrays import to_dense
from rskc.inputs.validation import is_word, validated
from rskc.metrics import revised_silhouette
from rskc.model import fitted
from rskc.model.outliers import Distances
from rskc.preprocessing.preparer import Unit
from rskc.utils.wording import count, listed, number, on_outliers, shortened

MOST_OF_WEIGHT = 0.9  # of the sum of the weights
WIDTH = 96
LONGEST_NAME = 24
LONGEST_WARNING = 260
MOST_NAMES = 10
MOST_SIZES = 20
# Columns of frames that are in the units of a table.
SCALES = ("scale", "cell_scale")
IN_UNITS = ("mean", "mean_of_others", "value", "center", *SCALES)
GLUE = "\xa0"  # a space at which no line is broken
MARGIN = 11  # of the words in the summary, behind their headings


class FeatureCounts(NamedTuple):
    """How many features have weight, hold most of it, differ between clusters, and are enough.

    Where features share weights, these are groups of features.
    """

    n_features: int
    n_selected: int
    n_mostly: int  # the fewest that hold MOST_OF_WEIGHT of the sum of the weights
    n_different: int | None  # None where the number of features was not left to the data
    n_enough: int | None
    noun: str = "feature"  # or "feature group"

    @property
    def words(self) -> str:
        """Say it: 52 of 500 features differ between the clusters, and 13 are enough ..."""
        if self.n_different is not None and self.n_enough is not None:
            differ = "differs" if self.n_different == 1 else "differ"
            all_ = count(self.n_features, self.noun)
            text = f"{self.n_different:,} of {all_} {differ} between the clusters"
            if self.n_enough >= self.n_different:
                return text
            return f"{text}, and {count(self.n_enough, 'is', 'are')} enough to separate them"
        have = "has" if self.n_selected == 1 else "have"
        text = f"{self.n_selected:,} of {count(self.n_features, self.noun)} {have} weight"
        if self.n_mostly == self.n_selected:
            return text
        return f"{text}, and {count(self.n_mostly, 'holds', 'hold')} {MOST_OF_WEIGHT:.0%} of it"


def count_features(model: Any) -> FeatureCounts:
    """Count features of a fitted model, or groups of features."""
    units = fitted.units_of(model)
    weights = np.sort(units.weights.astype(float))[::-1]
    held = np.cumsum(weights)
    n_mostly = int(np.searchsorted(held, MOST_OF_WEIGHT * held[-1] * (1 - 1e-12))) + 1
    several = len(model.cluster_centers_) > 1  # one cluster differs from nothing
    different, enough = (
        getattr(model, name, None) if several else None
        for name in ("n_features_different_", "n_features_enough_")
    )
    n_selected = int(np.count_nonzero(weights))
    return FeatureCounts(len(weights), n_selected, n_mostly, different, enough, units.noun)


def headline(model: Any, n_cases: int, n_clusters: int, n_outliers: int, n_blind: int) -> str:
    """Return a result in one sentence; a fit may have seen some of the cases only."""
    cases, features = count(n_cases, "case"), count_features(model).words
    if np.all(model.feature_weights_ == model.feature_weights_[0]):
        features = f"all {count(model.n_features_in_, 'feature')} have the same weight"
    if model.n_features_in_ == 1:
        features = "there is one feature"
    clusters = f"{count(n_clusters, 'cluster')} of {cases}"
    if n_clusters == 1:
        clusters = f"All {cases} are one group"
    return f"{clusters}; {features}; {on_outliers(n_outliers, n_blind)}."


def features_frame(model: Any) -> Any:
    """Return a frame with one row per feature, in the order of the data."""
    import pandas as pd

    weights, centers = model.feature_weights_, model.cluster_centers_
    if hasattr(model, "encoder_"):
        described = model.encoder_.describe(centers)
        centers = [pd.Series(center, dtype=object) for center in described]
    columns = {
        "feature": fitted.feature_names(model),
        "weight": weights,
        "rank": np.argsort(np.argsort(-weights, kind="stable")) + 1,
        "selected": weights > 0,
    }
    if hasattr(model, "group_names_"):
        group = model.feature_group_
        columns["group"] = model.group_names_[group]
        columns["group_weight"] = model.group_weights_[group]
    if bounds_cells(model):
        columns["outlying_cells"] = counts_of_cells(model, axis=0)
        columns["cell_scale"] = model.cell_scales_
    return pd.DataFrame(columns | {f"center_{k}": center for k, center in enumerate(centers)})


def in_units(frame: Any, units: Mapping[str, Any]) -> Any:
    """Return a frame of features, markers or cells with its means in the units of the table.

    ``units`` has, by the name of a column, how prepared values become those of the table: a
    :class:`rskc.preprocessing.preparer.Unit`, or center and scale. Means of logarithms are
    geometric means then, and their scale stays that of natural logarithms.
    """
    places = [i for i, name in enumerate(frame["feature"]) if name in units]
    if not places:
        return frame
    converted = frame.copy()
    units_of_rows = [Unit(*units[name]) for name in frame["feature"].iloc[places]]
    for j, name in enumerate(frame.columns):
        if name in IN_UNITS or name.startswith("center_"):
            values = frame.iloc[places, j].to_numpy(np.float64)
            converted.iloc[places, j] = [
                value * unit.scale if name in SCALES else float(unit.back(value))
                for value, unit in zip(values, units_of_rows, strict=True)
            ]
    return converted


def cases_frame(model: Any, X: Any) -> Any:
    """Return a frame with one row per case; with the data, also second clusters and silhouettes."""
    import pandas as pd

    distances = Distances(model.distances_, model.unweighted_distances_)
    far, far_unweighted = fitted.thresholds_of(model).flag(distances)
    columns = {"case": fitted.case_names(model)}
    if hasattr(model, "sample_weight_"):
        columns["weight"] = model.sample_weight_
    columns |= {
        "cluster": model.labels_,
        "distance": model.distances_,
        "unweighted_distance": model.unweighted_distances_,
        "outlier": model.outliers_,
        "outlier_weighted": far,
        "outlier_unweighted": far_unweighted,
        "trimmed": model.trimmed_,
        "trimmed_weighted": model.trimmed_weighted_,
        "trimmed_unweighted": model.trimmed_unweighted_,
    }
    if bounds_cells(model):
        columns["outlying_cells"] = counts_of_cells(model, axis=1)
    frame = pd.DataFrame(columns)
    if X is None:
        return frame
    observed, n = observed_share(model, X), len(frame)
    _check_cases(model, len(observed))
    second: Any = [pd.NA] * n
    silhouettes = np.full(n, np.nan)
    if len(model.cluster_centers_) > 1:
        revised = revised_silhouette(model, X)
        second, silhouettes = revised.second, revised.values
    second = pd.array(second, "Int64")
    return frame.assign(observed=observed, second_cluster=second, silhouette=silhouettes)


def _check_cases(model: Any, m: int) -> None:
    if m != (n := len(model.labels_)):
        raise ValueError(f"X has {m} cases and the model was fitted to {n}; give the data of fit.")


def bounds_cells(model: Any) -> bool:
    """Whether the errors of cells were bounded in a fit, and the model still has its cases."""
    return getattr(model, "cell_cutoff_", None) is not None and hasattr(model, "outlying_cells_")


def counts_of_cells(model: Any, axis: int) -> np.ndarray:
    """Count the outlying cells of each feature (axis 0) or of each case (1)."""
    places = model.outlying_cells_.nonzero()[1 - axis]
    return np.bincount(places, minlength=model.outlying_cells_.shape[1 - axis])


def cells_frame(model: Any, X: Any) -> Any:
    """Return a frame with one row per outlying cell of a fit, the farthest from its center first.

    Its columns ``row`` and ``column`` have the numbers of case and feature.
    """
    import pandas as pd

    centers = fitted.by_column(model, model.cluster_centers_)
    cells = fitted.by_column(model, validated(model, X, False, centers.dtype))
    _check_cases(model, cells.shape[0])
    rows, columns = model.outlying_cells_.nonzero()
    values = np.asarray(to_dense(cells[rows, columns])).ravel()
    own_centers = centers[model.labels_[rows], columns]
    with np.errstate(over="ignore"):
        scales = (values - own_centers) / model.cell_scales_[columns]
    frame = {
        "case": fitted.case_names(model)[rows],
        "feature": fitted.feature_names(model)[columns],
        "value": values,
        "cluster": model.labels_[rows],
        "center": own_centers,
        "scales": scales,
        "row": rows,
        "column": columns,
    }
    order = np.argsort(-np.abs(scales), kind="stable")
    return pd.DataFrame(frame).iloc[order].reset_index(drop=True)


def observed_share(model: Any, X: Any) -> np.ndarray:
    """Return the share of the weight that is observed of each case."""
    used = np.flatnonzero(model.feature_weights_)
    weights = model.feature_weights_[used]
    cells = fitted.by_column(model, validated(model, X, False, weights.dtype))[:, used]
    if issparse(cells):  # nothing is missing
        return np.ones(cells.shape[0])
    # From what is missing: 1 is exact then, and cases without a value have 0 by the last digit.
    missing = np.isnan(cells)
    shares = 1 - np.where(missing, weights, 0).sum(axis=1) / weights.sum()
    shares[missing.all(axis=1)] = 0.0
    return np.clip(shares, 0.0, 1.0)


def describe(model: Any) -> str:
    """Describe settings and result in a few lines, none wider than WIDTH."""
    lines = ["Robust and sparse K-means"]
    for title, pairs in (("Asked for:", _settings(model)), ("Found:", _results(model))):
        lines += [title, *(line for pair in pairs for line in _wrapped(*pair))]
    lines += ["Warnings:"] if model.warnings_ else []
    for message in model.warnings_:
        lines += _wrapped("-", textwrap.shorten(message, LONGEST_WARNING), margin=2)
    return "\n".join(lines)


def describe_html(model: Any) -> str:
    """Describe settings and result as a small piece of HTML, for notebooks."""
    parts = [("Asked for", _settings(model)), ("Found", _results(model))]
    rows = [
        f"<tr><th scope='row' style='text-align:left'>{escape(heading)}</th>"
        f"<td style='text-align:left'>{escape(words.replace(GLUE, ' '))}</td></tr>"
        for title, pairs in parts
        for heading, words in [(title, ""), *pairs]
    ]
    notes = [f"<p>{escape(message)}</p>" for message in model.warnings_]
    body = "".join([*rows, "</table>", *notes])
    return f"<table><caption>Robust and sparse K-means</caption>{body}"


def _wrapped(heading: str, words: str, margin: int = MARGIN) -> list[str]:
    text, indent = f"  {heading:<{margin}}{words}", " " * (margin + 2)
    lines = textwrap.wrap(text, WIDTH, subsequent_indent=indent)
    return [line.replace(GLUE, " ") for line in lines]


def _settings(model: Any) -> Iterator[tuple[str, str]]:
    if callable(model.init):
        starts = "centers of a function"
    elif not isinstance(model.init, str):
        starts = "given centers"
    else:
        number = "restarts" if isinstance(model.n_init, str) else count(model.n_init, "restart")
        seed = "no seed" if model.random_state is None else f"seed {model.random_state!s:.20}"
        starts = f"{number} with {model.init} centers, {seed}"
    yield "clusters", f"{len(model.cluster_centers_)}, from {starts}"

    bound = model.l1_bound_
    took = f", which took an L1 bound of {bound:.4g} on the weights" if bound is not None else ""
    if bound is None:
        sparsity = "all, with equal weights"
    elif model.n_features is not None:
        sparsity = f"{model.n_features}{' groups' * hasattr(model, 'group_names_')}{took}"
    elif hasattr(model, "n_features_different_"):
        sparsity = f"as many as differ between the clusters{took}"
    else:
        chosen = ", chosen halfway" if isinstance(model.l1_bound, str) else ""
        sparsity = f"weights of L2 norm 1 and an L1 norm of at most {bound:.4g}{chosen}"
    yield "features", sparsity

    n, cases = len(model.labels_), count(model.n_trim_, "case")
    if is_word(model.trim, "auto") or model.reweight:
        trimming = f"cases that are outlying by their distances: {cases} of {n:,} left out"
    elif model.n_trim_ == 0:
        trimming = "none"
    elif hasattr(model, "sample_weight_"):
        share = f"{model.trim_:.3g} of the case weight"
        trimming = f"{share} by weighted and as much by unweighted distance"
    else:
        trimming = f"{cases} of {n:,} by weighted and as many by unweighted distance"
    yield "trimming", trimming

    rule = f"beyond the median weighted distance plus {model.outlier_cutoff_:g} MAD"
    if model.outlier_rule != "paper":
        roots = f"beyond the median plus {model.outlier_cutoff_:g} MAD of the cube roots"
        rule = f"weighted or unweighted squared distance {roots}"
    yield "outliers", rule


def _results(model: Any) -> Iterator[tuple[str, str]]:
    n, K, p = len(model.labels_), len(model.cluster_centers_), model.n_features_in_
    sizes = listed(np.bincount(model.labels_, minlength=K), MOST_SIZES)
    yield "clusters", f"{count(K, 'cluster')} of {count(n, 'case')}: {sizes}"
    if (weights := fitted.unequal_weights(model)) is not None:
        parts = [number(part, 6) for part in np.bincount(model.labels_, weights, K).tolist()]
        total = number(float(weights.sum()), 6)
        yield "weights", f"cases have a weight of {total}, by cluster: {listed(parts, MOST_SIZES)}"
    counts = count_features(model)
    total = f"{counts.n_features:,}{' groups' * (counts.noun != 'feature')}"
    largest = ", all the same"
    if model.l1_bound_ is not None:
        names, weights, _ = fitted.units_of(model)
        first = np.argsort(-weights, kind="stable")[: min(counts.n_selected, MOST_NAMES)]
        pairs = [f"{_in_one_piece(names[j])}{GLUE}{weights[j]:.3g}" for j in first]
        largest = f": {listed(pairs, MOST_NAMES, counts.n_selected)}"
    yield "features", f"{counts.n_selected:,} of {total} have weight{largest}"
    if counts.n_different is not None:
        mostly = count(counts.n_mostly, "holds", "hold")
        yield "choice", f"{counts.words}; {mostly} {MOST_OF_WEIGHT:.0%} of the weight"
    yield "trimmed", _farthest_cases(model, model.trimmed_)
    yield "outliers", _farthest_cases(model, model.outliers_)
    if bounds_cells(model):
        yield "cells", words_on_cells(model)
    missing = f"{model.n_missing_:,} of {n * p:,} cells missing"
    if n_far := np.count_nonzero(np.isinf(model.distances_)):
        # Cells too large for their squares look the same from here.
        why = "nothing is observed" if model.n_missing_ else "a cell is too large"
        missing += f"; of {count(n_far, 'case')} {why} in the features that have weight"
    yield "missing", missing
    yield "objective", f"{model.objective_:.6g} after {count(model.n_iter_, 'iteration')}"


def words_on_cells(model: Any) -> str:
    """Say how many cells are outlying, and of which features and cases most of them are."""
    per_feature, per_case = (counts_of_cells(model, axis) for axis in (0, 1))
    total, n_features = int(per_feature.sum()), int(np.count_nonzero(per_feature))
    if total == 0:
        return f"no cell is outlying beyond {model.cell_cutoff_:g} scales of its feature"
    features, cases = fitted.feature_names(model), fitted.case_names(model)
    most = []
    for counts, names in ((per_feature, features), (per_case, cases)):
        largest = int(counts.argmax())
        most.append(f"{_in_one_piece(names[largest])} ({counts[largest]:,})")
    are = "is" if total == 1 else "are"
    return (
        f"{count(total, 'cell')} of {count(n_features, 'feature')} {are} outlying beyond "
        f"{model.cell_cutoff_:g} scales; {most[0]} and case {most[1]} have the most"
    )


def _farthest_cases(model: Any, mask: np.ndarray) -> str:
    """Count the cases, and list the farthest."""
    cases = np.flatnonzero(mask)
    if len(cases) == 0:
        return "none"
    first = cases[np.argsort(-model.distances_[cases], kind="stable")][:MOST_NAMES]
    names = [_in_one_piece(name) for name in fitted.case_names(model)[first]]
    return f"{count(len(cases), 'case')}: {listed(names, MOST_NAMES, len(cases))}"


def _in_one_piece(name: Any) -> str:
    return shortened(GLUE.join(str(name).split()), LONGEST_NAME)
