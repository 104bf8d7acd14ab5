"""What the page shows of a grid: clusters numbered alike, a plane for all, features and values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rskc.explorer.grid import Exploration
from rskc.inputs.arrays import to_dense, to_numpy
from rskc.inputs.labels import count_shared, match_clusters
from rskc.model.fitted import by_column, feature_names
from rskc.model.summary import bounds_cells
from rskc.pictures.models import frame_of, principal_components, strongest
from rskc.preprocessing.preparer import Unit
from rskc.selection.halves import best_match

ROOM = 0.1  # of the range of the cases, on each side of the plane
MOST_WEIGHTS = 1000  # of a setting, the largest ones
MOST_IN_PLANE = 2000  # features that place the cases, those with the largest mean weights
MOST_CELLS = 250_000  # of the table
MOST_CATEGORIES = 8  # of a feature, side by side


class View(NamedTuple):
    """One setting; clusters have the numbers that they have on the page."""

    labels: np.ndarray  # (n,)
    trimmed: np.ndarray
    outliers: np.ndarray
    times_agreed: np.ndarray  # (n,) of the half-samples
    features: np.ndarray  # numbers of those with weight, the largest first
    weights: np.ndarray  # of these
    times_selected: np.ndarray  # of these, by the half-samples
    sizes: np.ndarray  # (K,)
    figures: dict[str, float]  # agreement, silhouette and others


@dataclass(frozen=True)
class Scene:
    """All views, and what they have in common."""

    views: list[View]
    marked: list[int] | None  # the setting that the automatic choice took, or is nearest to it
    start: list[int]  # what is shown first
    plane: np.ndarray  # (n, 2) from 0 to 1
    n_beyond: int  # cases outside of its frame, drawn on the edge
    shown: np.ndarray  # features of which the page has the values, the largest weights first
    cells: Any  # (n, p) sparse: the outlying cells of the automatic fit; None if it bounds none


def scene_of(search: Exploration, numbered_like: Any = None) -> Scene:
    """Put together what the page shows; ``numbered_like`` has labels whose numbers it takes."""
    marked, model = _marked(search), search.best_estimator_
    start = marked or [0, len(search.axes_.n_features) // 2, len(search.axes_.trims) // 2]
    known = np.asarray(to_numpy(model.labels_) if numbered_like is None else numbered_like)
    numbers = _numbered_alike(search, start[1:], known[search.samples_used_])
    views = [_view(search, s, numbers[s]) for s in range(len(search.fits_))]
    weights = np.array([by_column(search, fit["weights"]) for fit in search.fits_])
    top = np.lexsort((-weights.mean(axis=0), -weights.max(axis=0)))
    top = top[weights.max(axis=0)[top] > 0]
    # With more clusters an outlier may have one of its own, and be none by that fit.
    outlying = np.mean([fit["outliers"] for fit in search.fits_], axis=0) > 0.5
    outlying |= np.asarray(to_numpy(model.outliers_))[search.samples_used_]
    of_numbers = np.mean([fit["weights"] for fit in search.fits_], axis=0)
    plane, n_beyond = _plane(search.searched_, of_numbers, outlying)
    shown = top[: max(1, MOST_CELLS // search.n_samples_used_)]
    cells = model.outlying_cells_[search.samples_used_] if bounds_cells(model) else None
    return Scene(views, marked, start, plane, n_beyond, shown, cells)


def _marked(search: Exploration) -> list[int] | None:
    K, _, fit = search.choice_
    numbers, features, trims = search.axes_
    if fit is None or K not in numbers:
        return None
    n_features = max(1, search.n_active(fit["weights"]))
    nearest = np.abs(np.log(features) - np.log(n_features)).argmin()
    # The least share that trims as many; the largest if none does.
    enough = min(int(np.searchsorted(trims, float(fit["share"]) - 1e-9)), len(trims) - 1)
    return [numbers.index(K), int(nearest), enough]


# ---- Numbers of clusters


def _numbered_alike(
    search: Exploration, others: list[int], reference: np.ndarray
) -> list[np.ndarray]:
    """Return for each setting the number on the page of each of its clusters.

    Clusters that share their cases have the same number from view to view, as far as that goes.
    From those of the reference on, with its numbers, more and fewer clusters are matched one after
    another; settings with as many clusters are matched with these. ``others`` are the places of
    features and trim on their axes at which numbers of clusters are compared.
    """
    (numbers, features, _), (f, t) = search.axes_, others
    labels = np.array([fit["labels"] for fit in search.fits_])
    labels = labels.reshape(len(numbers), -1, labels.shape[1])  # (numbers, others, n)
    first = min(range(len(numbers)), key=lambda k: abs(numbers[k] - int(reference.max()) - 1))
    known = {first: reference}
    for k in sorted(range(len(numbers)), key=lambda k: abs(k - first)):
        K, like, compared = (
            numbers[k],
            known[k - np.sign(k - first)],
            labels[k, t * len(features) + f],
        )
        shared = count_shared(compared, like, K, max(K, int(like.max()) + 1))
        known[k] = match_clusters(shared[:, :K])[compared]  # those with which they share most
    return [best_match(known[k], each, K) for k, K in enumerate(numbers) for each in labels[k]]


# ---- One setting


def _view(search: Exploration, s: int, numbers: np.ndarray) -> View:
    fit, halves, K = search.fits_[s], search.halves_[s], len(numbers)
    weights = by_column(search, fit["weights"])
    features = strongest(weights, MOST_WEIGHTS)
    labels, outliers, agreement = numbers[fit["labels"]], fit["outliers"], np.nan
    agreed, sizes = np.zeros(len(labels), int), np.bincount(labels, minlength=K)
    if len(halves.labels):
        agreed = (halves.matched(fit["labels"], K) == fit["labels"]).sum(axis=0)
        agreement = float(np.mean(halves.agreements(outliers)))
    selected = by_column(search, halves.selected)[:, features].sum(axis=0)
    names = ("silhouette", "objective", "n_outliers", "n_trim")
    figures = {"agreement": agreement, "n_features": float(np.count_nonzero(weights))}
    figures |= {name: float(fit[name]) for name in names}
    heights = weights[features]
    return View(
        labels, fit["trimmed"], outliers, agreed, features, heights, selected, sizes, figures
    )


# ---- The plane


def _plane(X: np.ndarray, weights: np.ndarray, outliers: np.ndarray) -> tuple[np.ndarray, int]:
    """Place the cases (n, 2), each coordinate from 0 to 1, by the mean weights of all settings."""
    used, kept = strongest(weights, MOST_IN_PLANE), outliers.all() | ~outliers
    cells = np.array(to_dense(X[:, used]), float) * np.sqrt(weights[used])
    if len(used) == 1:
        cells = np.pad(cells, ((0, 0), (0, 1)))
    means = np.nansum(cells[kept], axis=0) / np.maximum((~np.isnan(cells[kept])).sum(axis=0), 1)
    cells = np.where(np.isnan(cells), means, cells)
    positions = principal_components(cells, outliers, means[None]).place(cells)
    middle = positions[kept].mean(axis=0)[None]
    low, high = frame_of(positions, np.zeros(len(cells), int), outliers, middle, ROOM)
    n_beyond = int(((positions < low) | (positions > high)).any(axis=1).sum())
    return (np.clip(positions, low, high) - low) / (high - low), n_beyond


# ---- Values


def values_of(
    search: Exploration, shown: np.ndarray, units: Mapping[str, Any]
) -> tuple[np.ndarray, list[list[str] | None]]:
    """Return the values (n, features) of features, and the categories of those that have some.

    A category is its place among those that are shown: the most frequent ones, and the others
    together. Numbers that were prepared are in the ``units`` of the table, by name.
    """
    encoder, names = getattr(search, "encoder_", None), feature_names(search)[shown]
    if encoder is None:
        cells = np.array(to_dense(search.data_[:, shown]), float)
    else:
        cells = encoder.by_category(search.data_)[:, shown]
    categories: list[list[str] | None] = []
    for i, name in enumerate(names):
        known = () if encoder is None else encoder.columns_[shown[i]].categories
        categories.append(list(known) or None)
        if known:
            cells[:, i], categories[i] = _most_frequent(cells[:, i], known)
        elif name in units:
            cells[:, i] = Unit(*units[name]).back(cells[:, i])
    return cells, categories


def _most_frequent(places: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Return places among the most frequent categories, the last one for all others."""
    if len(names) <= MOST_CATEGORIES:
        return places, list(names)
    counts = np.bincount(places[~np.isnan(places)].astype(int), minlength=len(names))
    order = np.argsort(-counts, kind="stable")[: MOST_CATEGORIES - 1]
    new = np.full(len(names) + 1, MOST_CATEGORIES - 1.0)
    new[order], new[-1] = np.arange(len(order)), np.nan  # what is missing is last
    chosen = new[np.nan_to_num(places, nan=-1).astype(int)]
    return chosen, [*(names[i] for i in order), f"{len(names) - len(order)} others"]
