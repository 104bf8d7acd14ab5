"""What a picture of a fitted model shows: cases, plane, silhouettes, heat map and distances."""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from rskc.inputs.arrays import to_dense, to_numpy_pair
from rskc.inputs.validation import validated
from rskc.model.fitted import JudgedCases, cell_limits, number_names, number_weights
from rskc.model.outliers import Distances, Thresholds
from rskc.pictures.palette import GRAY, INK, PALETTE
from rskc.utils.wording import cleaned, number

MARGIN = 0.35  # of the range of the cases, on each side: outliers beyond it stand on the edge
# A sparse table with more cells than this in features with weight stays sparse.
MOST_CELLS = 2**22
# Up to this many cells a plain SVD is as fast as scikit-learn's PCA, which takes .2 s to import.
PLAIN_CELLS = 2**17
LOW, HIGH = 0.02, 0.98  # quantiles at which the colors of a heat map end
FLOOR = 1e-2  # of the median distance: what is below stands there, as a log scale has no 0
# Color, marker and words of a case, by the distance that makes it an outlier.
FLAGS = {
    "none": (GRAY, "o", "no outlier"),
    "weighted": (PALETTE[5], "^", "outlier: weighted"),
    "unweighted": (PALETTE[0], "s", "outlier: unweighted"),
    "both": (INK, "D", "outlier: both"),
    "trimmed": (GRAY, "o", "trimmed, no outlier"),
}


# Cases and names


def check_fitted(model: Any, X: Any = None) -> tuple[Any, Any]:
    """Return a fitted model and a table, both in memory."""
    check_is_fitted(model, "cluster_centers_")
    return to_numpy_pair(model, X)


def sizes_in_words(labels: np.ndarray, K: int, weights: Any = None) -> list[str]:
    """Write how many cases each cluster has, and what they weigh: n = 12, weight 30.5."""
    sizes = [f"n = {size:,}" for size in np.bincount(labels, minlength=K)]
    if weights is None:
        return sizes
    totals = np.bincount(labels, weights, minlength=K).tolist()
    return [f"{n}, weight {number(total)}" for n, total in zip(sizes, totals, strict=True)]


def check_seen(seen: np.ndarray) -> None:
    """Refuse a table without any case that can be drawn."""
    if not seen.any():
        raise ValueError(
            f"X has nothing to draw: none of its {len(seen)} cases has an observed feature with "
            "weight."
        )


def table_of(model: Any, X: Any) -> Any:
    """Return X as an array of floats, NaN for a missing cell, or as a CSR matrix.

    Its columns are those of the fit; a category is several, one for each of its categories.
    """
    return validated(model, X, False, model.cluster_centers_.dtype)


def case_names(X: Any, n: int) -> np.ndarray:
    """Return the index of a pandas frame, or numbers from 0 on."""
    return np.asarray(X.index.to_flat_index()) if hasattr(X, "iloc") else np.arange(n)


def strongest(weights: np.ndarray, n_top: int | None = None) -> np.ndarray:
    """Return the features that have weight, the largest first, at most ``n_top`` of them."""
    order = np.argsort(-weights, kind="stable")
    return order[: np.count_nonzero(weights > 0)][:n_top]


def fill_with_centers(X: np.ndarray, labels: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Put missing cells at the center of their cluster, or at the mean of the centers."""
    known = np.count_nonzero(~np.isnan(centers), axis=0)
    mean = np.nansum(centers, axis=0) / np.maximum(known, 1)
    centers = np.where(np.isnan(centers), mean, centers)
    return np.where(np.isnan(X), centers[labels], X)


# The plane


class Plane(NamedTuple):
    """Cases and centers in two dimensions, and what these are."""

    positions: np.ndarray
    centers: np.ndarray
    axis_names: tuple[str, str]
    n_filled: int  # cases of which a cell in use is missing


def plane_of(model: Any, X: Any, cases: JudgedCases, kind: str) -> Plane:
    """Place cases in two dimensions.

    Parameters
    ----------
    model : RobustSparseKMeans
        A fitted model.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Cases of which a feature with weight is observed.
    cases : JudgedCases
        The same, as the model sees them.
    kind : {"auto", "features", "pca"}
        As in ``ClusterDisplay.from_estimator``.
    """
    weights = number_weights(model)
    features = strongest(weights)
    by_features = kind == "features" or len(features) < (3 if kind == "auto" else 2)
    if by_features:
        features = features[:2]
    X, centers = X[:, features], model.cluster_centers_[:, features]
    if by_features or X.shape[0] * len(features) <= MOST_CELLS or len(features) < 3:
        X = to_dense(X)
    n_filled = 0 if issparse(X) else int(np.isnan(X).any(axis=1).sum())
    if n_filled:
        X = fill_with_centers(X, cases.labels, centers)
    centers = fill_with_centers(centers, np.arange(len(centers)), centers)
    limits = cell_limits(model)
    if limits is not None and not issparse(X):  # where the fit bounds their errors
        middles = centers[cases.labels]
        X = np.clip(X, middles - limits[features], middles + limits[features])
    if not by_features:
        scale = np.sqrt(weights[features])
        Z = X.multiply(scale[None]).tocsr() if issparse(X) else X * scale
        found = principal_components(Z, cases.outliers, centers * scale)
        x_name, y_name = (
            f"PC {i} ({share:.0%} of the weighted variance)"
            for i, share in enumerate(found.shares, 1)
        )
        places = found.place(Z), found.place(centers * scale)
        return Plane(*places, (x_name, y_name), n_filled)
    names = [cleaned(name, 40) for name in number_names(model)[features]]
    if len(features) == 2:
        return Plane(X, centers, (names[0], names[1]), n_filled)
    # One feature, and the place of each case among all, sorted by the feature.
    ranks, labels = np.empty(len(X)), cases.labels
    ranks[np.lexsort((labels, X[:, 0]))] = np.arange(len(X))
    middles = [np.median(ranks[labels == k]) if k in labels else 0 for k in range(len(centers))]
    return Plane(
        np.column_stack([X[:, 0], ranks]),
        np.column_stack([centers[:, 0], middles]),
        (names[0], "cases, in the order of this feature"),
        n_filled,
    )


class Components(NamedTuple):
    """The first two principal components of some cases."""

    mean: np.ndarray  # (p,)
    axes: np.ndarray  # (2, p), of length 1; the largest entry of each is positive
    shares: np.ndarray  # of the variance

    def place(self, Z: Any) -> np.ndarray:
        """Return where cases lie, (n, 2)."""
        return Z @ self.axes.T - self.mean @ self.axes.T


def principal_components(Z: Any, outliers: np.ndarray, centers: np.ndarray) -> Components:
    """Find the first two principal components of cases that are no outliers.

    Centers take part where there are too few of these.
    """
    regular = Z[~outliers]
    if regular.shape[0] < 3:  # too few to span a plane
        regular = np.concatenate([to_dense(Z), centers])
    if issparse(regular) or regular.size > PLAIN_CELLS:
        from sklearn.decomposition import PCA  # a tenth of the start of a command

        with np.errstate(invalid="ignore"):  # the shares of no variance at all
            pca = PCA(2, svd_solver="arpack" if issparse(regular) else "auto", random_state=0)
            pca.fit(regular)
        return Components(pca.mean_, pca.components_, np.nan_to_num(pca.explained_variance_ratio_))
    mean = regular.mean(axis=0)
    _, sizes, axes = np.linalg.svd(regular - mean, full_matrices=False)
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    shares = sizes**2 / np.maximum(np.sum(sizes**2), np.finfo(sizes.dtype).tiny)
    return Components(mean, axes[:2] * np.sign(largest[:2]), shares[:2])


def frame_of(
    positions: np.ndarray,
    labels: np.ndarray,
    outliers: np.ndarray,
    centers: np.ndarray,
    margin: float = MARGIN,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of a frame around centers and cases, with some room for outliers."""
    regular = positions if outliers.all() else positions[~outliers]
    regular = np.concatenate([regular, centers[np.unique(labels)]])
    low, high = regular.min(axis=0), regular.max(axis=0)
    room = margin * np.where(high > low, high - low, 1.0)
    everything = np.concatenate([regular, positions])
    low = np.maximum(everything.min(axis=0), low - room)
    high = np.minimum(everything.max(axis=0), high + room)
    flat = 0.5 * (high <= low)
    return low - flat, high + flat


# The heat map


def standardize_cells(values: np.ndarray, outliers: np.ndarray) -> np.ndarray:
    """Subtract the mean and divide by the standard deviation of the cells that are no outliers."""
    regular = np.ones(len(values), bool) if outliers.all() else ~outliers
    cells = np.ma.masked_invalid(values[regular])
    mean, spread = cells.mean(axis=0).filled(0.0), cells.std(axis=0).filled(0.0)
    return (values - mean) / np.where(spread > 0, spread, 1.0)


def color_limits(values: np.ndarray) -> tuple[float, float]:
    """Return where colors that diverge from 0 end.

    At quantiles, so that an outlying cell does not bleach all.
    """
    seen = values[np.isfinite(values)]
    end = np.abs(np.quantile(seen, [LOW, HIGH])).max() if len(seen) else 0.0
    return (-end, end) if end > 0 else (-1.0, 1.0)


# The two distances


def flags_of(distances: Distances, thresholds: Thresholds, trimmed: Any) -> np.ndarray:
    """Return for each case which distance makes it an outlier, or trimmed: places in FLAGS."""
    far = thresholds.flag(distances)
    flags = far.weighted + 2 * far.unweighted.astype(int)
    return np.where((flags == 0) & trimmed, 4, flags)


def distance_points(distances: Distances) -> tuple[np.ndarray, np.ndarray]:
    """Return which cases can be drawn, and the two distances of these, (n, 2), for a log scale."""
    seen = np.isfinite(distances.weighted) & np.isfinite(distances.unweighted)
    points = np.column_stack(distances)[seen]
    floors = [FLOOR * np.median(d[d > 0]) if (d > 0).any() else 1.0 for d in points.T]
    return seen, np.maximum(points, floors)
