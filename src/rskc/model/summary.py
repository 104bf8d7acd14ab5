"""A fitted model as frames, with one row per feature or case, and in words (internal)."""

import textwrap
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from rskc.inputs.arrays import model_to_numpy, to_dense, to_numpy_pair
from rskc.inputs.validation import validated
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
        of_all = f"of {count(self.n_features, self.noun)}"
        if self.n_different is None or self.n_enough is None:
            text = count(self.n_selected, f"{of_all} has weight", f"{of_all} have weight")
            holds = f"{count(self.n_mostly, 'holds', 'hold')} {MOST_OF_WEIGHT:.0%} of it"
            return f"{text}, and {holds}" if self.n_mostly < self.n_selected else text
        differ = f"{of_all} differs", f"{of_all} differ"
        text = f"{count(self.n_different, *differ)} between the clusters"
        if self.n_enough >= self.n_different:
            return text
        return f"{text}, and {count(self.n_enough, 'is', 'are')} enough to separate them"


def count_features(model: Any) -> FeatureCounts:
    """Count features of a fitted model, or groups of features."""
    units = fitted.units_of(model)
    held = np.cumsum(np.sort(units.weights.astype(float))[::-1])
    n_mostly = int(np.searchsorted(held, MOST_OF_WEIGHT * held[-1] * (1 - 1e-12))) + 1
    n_selected = int(np.count_nonzero(units.weights))
    names = "n_features_different_", "n_features_enough_"
    different, enough = (getattr(model, name, None) for name in names)
    return FeatureCounts(len(held), n_selected, n_mostly, different, enough, units.noun)


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


class ResultsMixin:
    """A fitted estimator as frames, with one row per feature, case or cell, and in words."""

    def features_frame(self) -> Any:
        """Return a pandas.DataFrame with one row per feature, in the order of the data.

        Its columns: ``feature``, the name, or x0, x1, ...; ``weight``; ``rank``, 1 for the largest
        weight, ties in the order of the data; ``selected``, whether the weight is above 0; with
        ``feature_groups``, ``group`` and ``group_weight``; where errors of cells were bounded,
        ``outlying_cells``, their number, and ``cell_scale``; and the centers ``center_0``,
        ``center_1``, ...: of a category the shares in words, of an ordinal one the mean rank.
        """
        import pandas as pd

        check_is_fitted(self, "cluster_centers_")
        model = model_to_numpy(self)
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

    def cases_frame(self, X: Any = None) -> Any:
        """Return a pandas.DataFrame with one row per case of the fit.

        Its columns: ``case``, the name in the index of the fitted frame, or the number;
        ``cluster``; ``distance``, the weighted squared one to the center;
        ``unweighted_distance``; ``outlier``, ``outlier_weighted`` and ``outlier_unweighted``, by
        which distance; ``trimmed``, ``trimmed_weighted`` and ``trimmed_unweighted``; where errors
        of cells were bounded, ``outlying_cells``, their number. With ``X``,
        the data of the fit, also ``observed``, the share of the weight that is observed (of a case
        with 0 nothing is known, so that it counts as outlying), and ``second_cluster`` and
        ``silhouette``, the revised one; with one cluster these two are missing.
        """
        import pandas as pd

        check_is_fitted(self, "cluster_centers_")
        model, X = to_numpy_pair(self, X)
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
        check_cases(model, len(observed))
        second: Any = [pd.NA] * n
        silhouettes = np.full(n, np.nan)
        if len(model.cluster_centers_) > 1:
            revised = revised_silhouette(model, X)
            second, silhouettes = revised.second, revised.values
        second = pd.array(second, "Int64")
        return frame.assign(observed=observed, second_cluster=second, silhouette=silhouettes)

    def cells_frame(self, X: Any) -> Any:
        """Return a pandas.DataFrame with one row per outlying cell, the farthest first.

        Its columns: ``case`` and ``feature``; ``value`` of the cell; ``cluster`` of the case and
        its ``center`` in the feature; and ``scales``, the standardized residual: how many
        ``cell_scales_`` the value is above the center, or below. X is the data of the fit.
        """
        check_is_fitted(self, "cluster_centers_")
        return cells_frame(*to_numpy_pair(self, X)).drop(columns=["row", "column"])

    def summary(self) -> str:
        """Describe settings and result in a few lines.

        Settings are those that are not the usual ones, as scikit-learn shows them.
        """
        check_is_fitted(self, "cluster_centers_")
        model = model_to_numpy(self)
        lines = _wrapped("", " ".join(repr(model).split()), 0)
        for heading, words in _results(model):
            lines += _wrapped(f"  {heading:<{MARGIN}}", words, MARGIN + 2)
        lines += ["Warnings:"] if model.warnings_ else []
        for message in model.warnings_:
            lines += _wrapped("  - ", textwrap.shorten(message, LONGEST_WARNING), 4)
        return "\n".join(lines)

    def _html_repr(self) -> str:
        """Describe a fitted model for a notebook; scikit-learn would count outputs as features."""
        if not hasattr(self, "cluster_centers_"):
            return estimator_html_repr(self)
        return f"<pre>{escape(self.summary())}</pre>"


def in_units(frame: Any, units: Mapping[str, Any]) -> Any:
    """Return a frame of features, markers or cells with its means in the units of the table.

    ``units`` has, by the name of a column, how prepared values become those of the table: a
    :class:`rskc.preprocessing.preparer.Unit`, or center and scale. Means of logarithms are
    geometric means then, and their scale stays that of natural logarithms.
    """
    known = np.array([name in units for name in frame["feature"]], bool)
    if not known.any():
        return frame
    frame = frame.copy()
    units_of_rows = [Unit(*units[name]) for name in frame["feature"][known]]
    for name in frame.columns:
        if name in IN_UNITS or name.startswith("center_"):
            pairs = zip(frame.loc[known, name].astype(np.float64), units_of_rows, strict=True)
            frame.loc[known, name] = [
                value * unit.scale if name in SCALES else float(unit.back(value))
                for value, unit in pairs
            ]
    return frame


def check_cases(model: Any, m: int) -> None:
    """Refuse another number of cases than a model was fitted to."""
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
    check_cases(model, cells.shape[0])
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


def _wrapped(heading: str, words: str, margin: int) -> list[str]:
    lines = textwrap.wrap(heading + words, WIDTH, subsequent_indent=" " * margin)
    return [line.replace(GLUE, " ") for line in lines]


def _results(model: Any) -> Iterator[tuple[str, str]]:
    n, K, p = len(model.labels_), len(model.cluster_centers_), model.n_features_in_
    sizes = listed(np.bincount(model.labels_, minlength=K), MOST_SIZES)
    yield "clusters", f"{count(K, 'cluster')} of {count(n, 'case')}: {sizes}"
    if (weights := fitted.unequal_weights(model)) is not None:
        parts = [number(part, 6) for part in np.bincount(model.labels_, weights, K).tolist()]
        total = number(float(weights.sum()), 6)
        yield "weights", f"cases have a weight of {total}, by cluster: {listed(parts, MOST_SIZES)}"
    counts = count_features(model)
    if model.l1_bound_ is None:
        yield "features", f"{counts.words}, all the same"
    else:
        names, weights, _ = fitted.units_of(model)
        first = np.argsort(-weights, kind="stable")[: min(counts.n_selected, MOST_NAMES)]
        pairs = [f"{_in_one_piece(names[j])}{GLUE}{weights[j]:.3g}" for j in first]
        yield "features", f"{counts.words}: {listed(pairs, MOST_NAMES, counts.n_selected)}"
        yield "l1_bound", f"{model.l1_bound_:.4g}"
    for heading, mask in (("trimmed", model.trimmed_), ("outliers", model.outliers_)):
        cases = np.flatnonzero(mask)
        first = cases[np.argsort(-model.distances_[cases], kind="stable")][:MOST_NAMES]
        farthest = [_in_one_piece(name) for name in fitted.case_names(model)[first]]
        words = f"{count(len(cases), 'case')}: {listed(farthest, MOST_NAMES, len(cases))}"
        yield heading, words if len(cases) else "none"
    if bounds_cells(model):
        yield "cells", words_on_cells(model)
    yield "missing", f"{model.n_missing_:,} of {n * p:,} cells missing"
    yield "objective", f"{model.objective_:.6g} after {count(model.n_iter_, 'iteration')}"


def words_on_cells(model: Any) -> str:
    """Say how many cells are outlying."""
    per_feature = counts_of_cells(model, axis=0)
    of_features = f"of {count(int(np.count_nonzero(per_feature)), 'feature')}"
    words = count(int(per_feature.sum()), f"cell {of_features} is", f"cells {of_features} are")
    return f"{words} outlying beyond {model.cell_cutoff_:g} scales"


def _in_one_piece(name: Any) -> str:
    return shortened(GLUE.join(str(name).split()), LONGEST_NAME)
