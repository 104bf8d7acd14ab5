"""Measures of a result: of its partition, compared with a truth or on its own, and of its features.

The measures stay small on large data: partitions are compared by the table of label pairs that
occur, and silhouettes need the n x K distances to the centers. Labels may be of any type; missing
ones (None, NaN, NaT, NA) are one label, apart from all others.
"""

from typing import Any, NamedTuple

import numpy as np

from rskc.inputs.arrays import check_sample_weight, masses_of, mean_by_weight, to_numpy
from rskc.inputs.labels import in_order, read_two
from rskc.inputs.validation import check_integer
from rskc.utils.wording import short_repr

__all__ = [
    "FeatureAgreement",
    "RevisedSilhouette",
    "classification_error_rate",
    "feature_agreement",
    "feature_precision",
    "revised_silhouette",
    "sensitivity",
    "silhouette_means",
]


def classification_error_rate(a: Any, b: Any, sample_weight: Any = None) -> float:
    """Share of the pairs of cases that are together in one partition and apart in the other.

    This is 1 - Rand index: 0 for equal partitions, however their clusters are named, and at most 1.

    Parameters
    ----------
    a, b : array-like of shape (n_samples,)
        Labels of the same cases, at least two of them. Any type: numbers, strings, objects.
        Missing labels (None, NaN, NA) are together.
    sample_weight : array-like of shape (n_samples,), default=None
        Case weights; None for equal weights. A case of weight 3 counts as three copies of
        it, and multiplying all weights changes nothing.

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
    first, second = read_two(a=a, b=b)
    n_cases, masses = len(first.codes), None
    if sample_weight is not None:
        masses = masses_of(check_sample_weight(sample_weight, n_cases))
        n_cases = int(np.count_nonzero(masses))
    if n_cases < 2:
        raise ValueError("Fewer than 2 cases have a label; at least 2 are needed.")
    n = n_cases if masses is None else float(masses.sum())
    both = first.codes * len(second.names) + second.codes
    joined = [_joined_pairs(codes, masses) for codes in (first.codes, second.codes, both)]
    return max(joined[0] + joined[1] - 2 * joined[2], 0) / (n * (n - 1))


def sensitivity(true: Any, labels: Any, sample_weight: Any = None) -> Any:
    """For each true class, find the cluster that holds most of it, and the share it holds.

    R's RSKC calls this ``Sensitivity``. Look at the clusters too: if all cases are in one cluster,
    each class has sensitivity 1 and the same cluster.

    Parameters
    ----------
    true : array-like of shape (n_samples,)
        True class of each case. Any type; missing ones (None, NaN, NA) are one class, the last.
    labels : array-like of shape (n_samples,)
        Cluster of each case. Any type.
    sample_weight : array-like of shape (n_samples,), default=None
        Case weights; None for equal weights.

    Returns
    -------
    table : pandas.DataFrame
        One row per class, in sorted order, or as first seen if the classes have none: ``class``,
        ``size``, ``cluster`` and ``sensitivity``. Of clusters that hold equally many the first in
        that order is named. With weights also ``weight``, that of the class, of which
        ``sensitivity`` is a share; ``size`` is the number of cases.

    Raises
    ------
    ValueError
        If the two differ in length, or if there are no cases.

    Examples
    --------
    >>> from rskc.metrics import sensitivity
    >>> sensitivity(["setosa", "setosa", "virginica", "virginica"], [1, 1, 0, 1])
           class  size  cluster  sensitivity
    0     setosa     2        1          1.0
    1  virginica     2        0          0.5
    """
    import pandas as pd

    classes, clusters = map(in_order, read_two(true=true, labels=labels))
    if len(classes.codes) == 0:
        raise ValueError("true and labels have no cases; at least one is needed.")
    n = len(classes.codes)
    weights = None if sample_weight is None else check_sample_weight(sample_weight, n)
    sizes, totals = (np.bincount(classes.codes, w) for w in (None, weights))
    counts = pd.Series(1 if weights is None else weights, range(n))
    counts = counts.groupby([classes.codes, clusters.codes]).sum()
    best = counts[counts.groupby(level=0).idxmax()]
    # As objects: the text of pandas 3 holds no half characters.
    names = {"class": classes.names, "cluster": clusters.names[best.index.get_level_values(1)]}
    frame = pd.DataFrame({name: pd.Series(part, dtype=object) for name, part in names.items()})
    frame.insert(1, "size", sizes)
    if weights is not None:
        frame.insert(2, "weight", totals)
    frame["sensitivity"] = (best / totals).to_numpy()  # NaN for a class without weight
    try:
        return frame.infer_objects()
    except UnicodeEncodeError:
        return frame


class RevisedSilhouette(NamedTuple):
    """How much nearer each case is to its center than to the next one.

    Attributes
    ----------
    values : ndarray of shape (n_samples,)
        ``(b - a) / b``: 1 at the nearest center, 0 halfway between two; 0 where b is 0, and where
        both are infinite; 1 where only b is.
    nearest, second : ndarray of int of shape (n_samples,)
        The nearest and the second nearest center; of centers that tie the lower number first.
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

    Unlike the silhouette it compares cases with centers and not with one another, so that it needs
    n x K distances only. Missing cells are left out of these, as in ``transform``. A case of which
    nothing that has weight is observed is infinitely far from all centers: nothing speaks for one
    or the other, and its value is 0.

    Parameters
    ----------
    model : RobustSparseKMeans
        A fitted model with at least two clusters.
    X : array-like or data frame of shape (n_samples, n_features)
        Cases, those of the fit or new ones.

    Returns
    -------
    silhouette : RevisedSilhouette
        Values in [0, 1], the two centers, and the distances to them.

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
    distances = to_numpy(model._apply("squared", X))
    if distances.shape[1] < 2:
        raise ValueError(
            "The revised silhouette compares the nearest center with the second nearest, and "
            "n_clusters=1 has none; fit a model with n_clusters >= 2."
        )
    nearest, second = np.argsort(distances, axis=1, kind="stable")[:, :2].T
    a, b = (np.take_along_axis(distances, k[:, None], axis=1)[:, 0] for k in (nearest, second))
    values = (np.isinf(b) & np.isfinite(a)).astype(b.dtype)
    known = (b > 0) & np.isfinite(b)
    values[known] = (b[known] - a[known]) / b[known]
    return RevisedSilhouette(values, nearest, second, a, b)


def silhouette_means(
    silhouette: RevisedSilhouette, outliers: Any = None, sample_weight: Any = None
) -> Any:
    """Average the revised silhouette over each cluster, with and without its outliers.

    Parameters
    ----------
    silhouette : RevisedSilhouette
        What ``revised_silhouette`` gives.
    outliers : array-like of bool of shape (n_samples,) or None, default=None
        Cases to set apart, such as ``model.outliers_``; None for no case.
    sample_weight : array-like of shape (n_samples,), default=None
        Case weights, for the means; None for equal weights.

    Returns
    -------
    table : pandas.DataFrame
        One row per cluster, numbered as in ``silhouette.nearest``: ``cluster``, ``size``,
        ``n_outliers``, ``mean``, ``mean_without_outliers`` and ``mean_of_outliers``; a mean over no
        case is NaN. With weights also ``weight``, that of the cluster; ``size`` and ``n_outliers``
        are numbers of cases.

    Raises
    ------
    ValueError
        If ``outliers`` is not a mask of these cases.

    Examples
    --------
    >>> import numpy as np
    >>> from rskc import RobustSparseKMeans
    >>> from rskc.metrics import revised_silhouette, silhouette_means
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> model = RobustSparseKMeans(2, trim=0, l1_bound=None, random_state=0).fit(X)
    >>> found = revised_silhouette(model, [[0.5], [2.75], [9.5]])
    >>> silhouette_means(found, [False, True, False])["n_outliers"].sum()
    np.int64(1)
    """
    import pandas as pd

    values, clusters = np.asarray(silhouette.values, float), silhouette.nearest
    apart = np.zeros(len(values), bool) if outliers is None else np.asarray(outliers)
    if apart.dtype.kind != "b" or apart.shape != values.shape:
        raise ValueError(
            f"outliers must be a mask, True or False for each of the {len(values)} cases; got "
            f"{apart.dtype} of shape {apart.shape}."
        )
    weights = None if sample_weight is None else check_sample_weight(sample_weight, len(values))
    rows = []
    for k in range(max(clusters.max(initial=-1), silhouette.second.max(initial=-1)) + 1):
        mine = clusters == k
        row = {"cluster": k, "size": mine.sum()}
        if weights is not None:
            row["weight"] = weights[mine].sum()
        row["n_outliers"] = (mine & apart).sum()
        parts = {"": mine, "_without_outliers": mine & ~apart, "_of_outliers": mine & apart}
        for name, cases in parts.items():
            of_cases = None if weights is None else weights[cases]
            row[f"mean{name}"] = mean_by_weight(values[cases], of_cases)
        rows.append(row)
    return pd.DataFrame(rows)


def feature_precision(weights: Any, true_features: Any, n_top: int | None = None) -> int:
    """Count the true features among those with the largest weights.

    This is the paper's measure of precision: how many of the 50 features that separate its clusters
    are among the 50 largest weights. Divide it by the number of true features for a share.

    Parameters
    ----------
    weights : array-like of shape (n_features,)
        Weights of the features, at least 0. A feature of weight 0 never counts.
    true_features : array-like
        The features that matter: their numbers, or a mask of shape (n_features,).
    n_top : int or None, default=None
        How many of the largest weights to look at; None for as many as there are true features. Of
        weights that tie for the last place those of the first features count.

    Returns
    -------
    count : int
        Number of true features found, at most ``n_top``.

    Raises
    ------
    ValueError
        If the weights are no weights, or the true features are not among them.

    Examples
    --------
    >>> from rskc.metrics import feature_precision
    >>> feature_precision([0.8, 0.0, 0.5, 0.3], [0, 3])
    1
    >>> feature_precision([0.8, 0.0, 0.5, 0.3], [0, 3], n_top=3)
    2
    """
    weights = _check_weights("weights", weights)
    p, given = len(weights), np.asarray(true_features)
    is_mask = given.dtype.kind == "b" and given.shape == (p,)
    are_numbers = given.ndim == 1 and given.dtype.kind in ("iu" if given.size else "iuf")
    if not is_mask and not (are_numbers and set(given.tolist()) <= set(range(p))):
        raise ValueError(
            f"true_features must be feature numbers from 0 to {p - 1} or a mask of {p}; got "
            f"{short_repr(true_features)}."
        )
    wanted = given if is_mask else np.isin(np.arange(p), given)
    n_top = int(wanted.sum()) if n_top is None else check_integer("n_top", n_top, 1)
    top = np.argsort(-weights, kind="stable")[:n_top]
    return int(np.count_nonzero(wanted[top] & (weights[top] > 0)))


class FeatureAgreement(NamedTuple):
    """How far two selections of features agree.

    Attributes
    ----------
    n_a, n_b, n_both : int
        Number of features that the one, the other and both select.
    jaccard : float
        Those that both select as a share of those that either selects.
    share_of_a, share_of_b : float
        Those that both select as a share of those of the one, and of the other.
    """

    n_a: int
    n_b: int
    n_both: int
    jaccard: float
    share_of_a: float
    share_of_b: float


def feature_agreement(a: Any, b: Any) -> FeatureAgreement:
    """Compare the features that two models select, those with a weight above 0.

    The paper gives one number for two models, "62% of the genes with positive weight agree": that
    is ``jaccard``, 55 of the 88 genes that either selects (the experiment breast-cancer in
    ``reproduction``, in the repository).

    Parameters
    ----------
    a, b : RobustSparseKMeans or array-like of shape (n_features,)
        Fitted models, or weights; of the same features in the same order.

    Returns
    -------
    agreement : FeatureAgreement
        Counts and shares; a share of nothing is NaN.

    Raises
    ------
    ValueError
        If the two are not about the same features.

    Examples
    --------
    >>> from rskc.metrics import feature_agreement
    >>> feature_agreement([0.6, 0.8, 0.0, 0.0], [0.0, 0.9, 0.3, 0.3]).n_both
    1
    """
    names, others = (getattr(model, "feature_names_in_", None) for model in (a, b))
    first = _check_weights("a", getattr(a, "feature_weights_", a)) > 0
    second = _check_weights("b", getattr(b, "feature_weights_", b)) > 0
    unlike = names is not None and others is not None and not np.array_equal(names, others)
    if len(first) != len(second) or unlike:
        raise ValueError(
            f"a is about {len(first)} features and b about {len(second)}; they must be the same, "
            "with the same names, in the same order."
        )
    n_a, n_b, n_both = (int(np.count_nonzero(x)) for x in (first, second, first & second))
    shares = [n_both / n if n else np.nan for n in (n_a + n_b - n_both, n_a, n_b)]
    return FeatureAgreement(n_a, n_b, n_both, *shares)


def _joined_pairs(codes: np.ndarray, masses: np.ndarray | None) -> Any:
    """Count the ordered pairs of cases, each case with itself too, that share a code."""
    if codes.max() >= 4 * len(codes):
        codes = np.unique(codes, return_inverse=True)[1]
    sizes = np.bincount(codes, masses)
    return int(sizes @ sizes) if masses is None else float(sizes @ sizes)


def _check_weights(name: str, weights: Any) -> np.ndarray:
    array = np.asarray(weights)
    is_row = array.ndim == 1 and array.size and array.dtype.kind in "biuf"
    if is_row and (array >= 0).all() and np.isfinite(array).all():
        return array
    raise ValueError(
        f"{name} must be one row of finite weights, none below 0; got {short_repr(weights)}."
    )
