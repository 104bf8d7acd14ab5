"""Labels of any type as numbers, and clusters of two partitions matched.

Missing labels (None, NaN, NaT, NA) are one label, the last.
"""

from typing import Any, NamedTuple

import numpy as np


class Labels(NamedTuple):
    """Labels as numbers, and their names."""

    codes: np.ndarray  # (n_samples,) number of the label of each case
    names: np.ndarray  # the labels, by number; a missing one is the last


def read_two(**given: Any) -> tuple[Labels, Labels]:
    """Read two lists of labels of the same cases."""
    (a, b), (first, second) = given, (read_labels(name, labels) for name, labels in given.items())
    n, other = len(first.codes), len(second.codes)
    if n != other:
        raise ValueError(f"{a} has {n} labels and {b} has {other}; they must label the same cases.")
    return first, second


def read_labels(name: str, labels: Any) -> Labels:
    """Assign numbers to labels: in sorted order if they are numbers or dates, else as first seen.

    Objects need not be sortable, and sorting a million strings takes half a second.
    """
    array = np.asarray(labels)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one row of labels; its shape is {array.shape}.")
    if array.dtype.kind in "biufcmM":
        names, codes = np.unique(array, return_inverse=True)
        return Labels(codes, names)
    if array.dtype.kind in "US" and not hasattr(labels, "dtype"):
        array = np.asarray(labels, dtype=object)  # NumPy makes "1" of 1 if there are strings too
    import pandas as pd

    try:
        codes, names = pd.factorize(array.astype(object))
    except TypeError as error:
        raise ValueError(f"{name} has labels that cannot be distinguished: {error}.") from None
    if (codes >= 0).all():
        return Labels(codes, names)
    return Labels(np.where(codes < 0, len(names), codes), np.append(names, [None]))


def in_order(labels: Labels) -> Labels:
    """Assign numbers in sorted order, if labels have one; a missing one stays the last."""
    names = [name for name in labels.names if name is not None]
    try:
        order = sorted(range(len(names)), key=names.__getitem__)
    except TypeError:
        return labels
    order += range(len(names), len(labels.names))
    return Labels(np.argsort(order)[labels.codes], labels.names[order])


# Two partitions into numbered clusters


def count_shared(
    labels: np.ndarray, others: np.ndarray, K: int, L: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """Count the cases (K, L) that clusters of one partition share with those of another.

    Or add up their weights.
    """
    pairs = labels.astype(np.int64) * L + others
    return np.bincount(pairs, weights, minlength=K * L).reshape(K, L)


def adjusted_rand_index(
    labels: np.ndarray, others: np.ndarray, weights: np.ndarray | None = None
) -> float:
    """Return how far two partitions agree: 1 if they are the same, 0 on average by chance.

    A pair of cases counts the product of their weights. Copies of one case are no pair: they are
    together in any partition.
    """
    K, L = (int(numbers.max(initial=0)) + 1 for numbers in (labels, others))
    shared = count_shared(labels, others, K, L, weights).astype(np.float64)
    counts = shared, shared.sum(axis=1), shared.sum(axis=0), shared.sum()
    same, first, second, every = ((count**2).sum() for count in counts)
    itself = len(labels) if weights is None else (weights**2).sum()
    # Pairs that are together in both, in one of the two only, and in neither.
    both, one, other = same - itself, first - same, second - same
    neither = every - first - second + same
    if max(one, other) <= 1e-12 * every:
        return 1.0
    chance = (both + other) * (other + neither) + (both + one) * (one + neither)
    return float(2 * (both * neither - one * other) / chance)


def match_clusters(shared: np.ndarray) -> np.ndarray:
    """Match the clusters of two partitions so that matches share as many cases as possible.

    Parameters
    ----------
    shared : ndarray of shape (K, L)
        What ``count_shared`` gives.

    Returns
    -------
    numbers : ndarray of shape (K,)
        The cluster of the other partition that each one is matched with; -1 if K > L and there is
        none left. Of matches that share equally many cases, those with the larger shares.
    """
    from scipy.optimize import linear_sum_assignment

    sizes = np.add.outer(shared.sum(axis=1), shared.sum(axis=0))
    rows, columns = linear_sum_assignment(
        shared + 1e-6 * shared / np.maximum(sizes, 1), maximize=True
    )
    numbers = np.full(len(shared), -1)
    numbers[rows] = columns
    return numbers
