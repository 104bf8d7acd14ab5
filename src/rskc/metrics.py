"""How good a partition is: beside a truth or another partition, and on its own.

Both measures stay small on large data: the first needs the table of label pairs that occur, the
second the n x K distances to the centres.
"""

from typing import Any, NamedTuple

import numpy as np

__all__ = ["RevisedSilhouette", "classification_error_rate", "revised_silhouette"]


def classification_error_rate(a: Any, b: Any) -> float:
    """Share of the pairs of cases that are together in one partition and apart in the other.

    This is 1 - Rand index: 0 for equal partitions, however their clusters are named, and at most 1.

    Parameters
    ----------
    a, b : array-like of shape (n_samples,)
        Labels of the same cases, at least two of them. Any type: numbers, strings, objects.

    Returns
    -------
    rate : float
        Classification error rate (CER), in [0, 1].

    Raises
    ------
    ValueError
        If the two differ in length, or if there are fewer than two cases and so no pair.

    Examples
    --------
    >>> from rskc.metrics import classification_error_rate
    >>> classification_error_rate([0, 0, 1, 1], ["x", "x", "y", "y"])
    0.0
    >>> round(classification_error_rate([0, 0, 1, 1], [0, 0, 0, 1]), 3)
    0.5
    """
    first, second = _codes("a", a), _codes("b", b)
    n = len(first)
    if n != len(second):
        raise ValueError(
            f"a has {n} labels and b has {len(second)}; they must label the same cases."
        )
    if n < 2:
        raise ValueError(f"{n} labels make no pair of cases; at least 2 are needed.")
    both = first * (second.max() + 1) + second
    apart = _joined_pairs(first) + _joined_pairs(second) - 2 * _joined_pairs(both)
    return apart / (n * (n - 1))


class RevisedSilhouette(NamedTuple):
    """How much nearer each case is to its centre than to the next one.

    Attributes
    ----------
    values : ndarray of shape (n_samples,)
        ``(b - a) / b``: 1 at the nearest centre, 0 halfway between two; 0 where b is 0.
    nearest, second : ndarray of int of shape (n_samples,)
        The nearest and the second nearest centre; of centres that tie the lower number first.
    a, b : ndarray of shape (n_samples,)
        Weighted squared distances to these two.
    """

    values: np.ndarray
    nearest: np.ndarray
    second: np.ndarray
    a: np.ndarray
    b: np.ndarray


def revised_silhouette(model: Any, X: Any) -> RevisedSilhouette:
    """Compute the revised silhouette of each case of X.

    Unlike the silhouette it compares cases with centres and not with one another, so that it needs
    n x K distances only.

    Parameters
    ----------
    model : RobustSparseKMeans
        A fitted model with at least two clusters; anything whose ``transform(X)`` gives the
        weighted squared distances (n_samples, n_clusters) will do.
    X : array-like or data frame of shape (n_samples, n_features)
        Cases, those of the fit or new ones.

    Returns
    -------
    silhouette : RevisedSilhouette
        Values in [0, 1], the two centres, and the distances to them.

    Raises
    ------
    ValueError
        If the model has one cluster only.

    Examples
    --------
    >>> import numpy as np
    >>> from rskc import RobustSparseKMeans
    >>> from rskc.metrics import revised_silhouette
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> model = RobustSparseKMeans(2, trim=0, l1_bound=None, random_state=0).fit(X)
    >>> revised_silhouette(model, [[0.5], [2.75], [5.0]]).values.round(2)
    array([1.  , 0.89, 0.  ])
    """
    distances = np.asarray(model.transform(X))
    if distances.shape[1] < 2:
        raise ValueError(
            "The revised silhouette compares the nearest centre with the second nearest, and "
            "n_clusters=1 has none; fit a model with n_clusters >= 2."
        )
    nearest, a = _least(distances)
    others = distances.copy()
    np.put_along_axis(others, nearest[:, None], np.inf, axis=1)
    second, b = _least(others)
    values = np.divide(b - a, b, out=np.zeros_like(b), where=b > 0)
    return RevisedSilhouette(values, nearest, second, a, b)


def _codes(name: str, labels: Any) -> np.ndarray:
    """Number the labels from 0 on.

    By a dictionary if they are no numbers: objects need not be sortable, and sorting a million
    strings takes half a second.
    """
    labels = np.asarray(labels)
    if labels.ndim != 1:
        raise ValueError(f"{name} must be one row of labels; its shape is {labels.shape}.")
    if labels.dtype.kind in "biuf":
        return np.unique(labels, return_inverse=True)[1]
    codes: dict = {}
    return np.array([codes.setdefault(label, len(codes)) for label in labels.tolist()], np.int64)


def _joined_pairs(codes: np.ndarray) -> int:
    """Count the ordered pairs of cases, each case with itself too, that share a code."""
    few = codes.max() < 4 * len(codes)
    sizes = np.bincount(codes) if few else np.unique(codes, return_counts=True)[1]
    return int(sizes @ sizes)


def _least(distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the column of the least entry of each row, and that entry."""
    columns = distances.argmin(axis=1)
    return columns, np.take_along_axis(distances, columns[:, None], axis=1)[:, 0]
