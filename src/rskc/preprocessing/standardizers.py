"""Standardization of cases or of features before they are clustered."""

from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from rskc.exceptions import warn_user
from rskc.inputs.arrays import is_dask, to_dense, without_mask
from rskc.inputs.frames import NUMBERS, column, kinds_of
from rskc.inputs.spreads import MAD_FACTOR, column_medians
from rskc.inputs.validation import check_choice
from rskc.utils.wording import count, listed

# Cells of columns of a sparse matrix that are measured together.
CELLS_AT_ONCE = 2**20
# Standard deviations beyond which cells are clipped, and between the outer deciles of normal cells.
CLIP, DECILES = 3.0, 2.563
# Share of the cells that may be outlying; more belong to a feature, as what is not 0 in counts.
FEW = 0.05
RARE = 0.01  # of a feature of few values, the share that may be outlying
# Variance of a feature by the number of its values, from 0 on: what so many clusters explain of a
# normal feature of variance 1, by the quantizers of Lloyd and Max. It is 2 / pi for two.
VARIANCES = np.array(
    [1, 1, 2 / np.pi, 0.8098, 0.8825, 0.9201, 0.9420, 0.9560, 0.9655, 0.9721, 0.9772, 1]
)


class Transformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """What transformers of numbers have in common."""

    _accepted: Any = False  # of sparse matrices

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = bool(self._accepted)
        return tags

    def _numbers(self, X: Any, reset: bool) -> tuple[Any, list[int] | None]:
        """Return the numbers of a table, and their places in a frame that has other columns."""
        is_frame = getattr(X, "columns", None) is not None and hasattr(X, "dtypes")
        kinds = kinds_of(X) if is_frame and not is_dask(X) else []
        if not set(kinds) - {NUMBERS}:
            return self._validate(X, reset), None
        validate_data(self, X, reset=reset, skip_check_array=True)
        places = [j for j, kind in enumerate(kinds) if kind == NUMBERS]
        return np.asarray(column(X, places), dtype=np.float64), places

    def _validate(self, X: Any, reset: bool) -> Any:
        return validate_data(
            self,
            without_mask(X),
            reset=reset,
            dtype=[np.float64, np.float32],
            order="C",
            accept_sparse=self._accepted,
            ensure_all_finite="allow-nan",
        )


class _Standardizer(Transformer):
    def __init__(self, center: str = "median", scale: str = "mad"):
        self.center = center
        self.scale = scale

    def _validate(self, X: Any, reset: bool) -> Any:
        check_choice("center", self.center, ("median", "mean"))
        check_choice("scale", self.scale, tuple(SCALES))
        return super()._validate(X, reset)


class RowStandardizer(_Standardizer):
    """Standardize each case: subtract the center of its cells and divide by their scale.

    Clustering then goes by the shape of a case and not by its level, as for gene expression. With
    mean and standard deviation the squared Euclidean distance of two complete cases is
    ``2 * n_features * (1 - correlation)``. With median and MAD, the paper's choice, it is about
    that, and outlying cells hardly change center and scale.

    Parameters
    ----------
    center : {"median", "mean"}, default="median"
        Center of a case.
    scale : {"mad", "std", "clipped"}, default="mad"
        Scale of a case. "mad": median distance of its cells to their median, times 1.4826, whatever
        ``center`` is. "std": standard deviation, dividing by the number of cells. "clipped": that
        of the cells clipped at three robust standard deviations from the median.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, if X had any.

    Warns
    -----
    UserWarning
        If cases have scale 0, as a constant one has. They are centered and not scaled. A MAD is 0
        if more than half of the cells are equal.

    Notes
    -----
    ``fit`` learns nothing: each case is standardized on its own. NaN marks a missing cell; center
    and scale are over the observed cells, and a missing cell stays missing.

    Examples
    --------
    >>> from rskc import RowStandardizer
    >>> RowStandardizer("mean", "std").fit_transform([[1.0, 3.0], [20.0, 10.0]])
    array([[-1.,  1.],
           [ 1., -1.]])

    Before clustering::

        make_pipeline(RowStandardizer(), RobustSparseKMeans(2))
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters and X; nothing is learned.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Cases, NaN for a missing cell.
        y : ignored
            There for the scikit-learn interface.

        Returns
        -------
        self : RowStandardizer
        """
        self._validate(X, reset=True)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Standardize each case of X.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Cases, NaN for a missing cell.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            A standardized copy; float32 stays float32.
        """
        X = self._validate(X, reset=False)
        Z, flat = standardize_rows(X, self.center, self.scale)
        if len(flat):
            warn_user(
                f"{count(len(flat), 'case has', 'cases have')} scale 0 ({self.scale}) and can be "
                f"centered only: {listed(flat, 6)}."
            )
        return Z

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class ColumnStandardizer(_Standardizer):
    """Standardize each feature: subtract the center of its cells and divide by their scale.

    The units of the features then do not matter. With median and MAD outlying cells hardly
    change center and scale.

    Parameters
    ----------
    center : {"median", "mean"}, default="median"
        Center of a feature.
    scale : {"mad", "std", "clipped"}, default="mad"
        Scale of a feature. "mad": median distance of its cells to their median, times 1.4826,
        whatever ``center`` is. "std": standard deviation, dividing by the number of cells.
        "clipped": that of the cells clipped at three robust standard deviations from the median,
        judged by the first and the last decile; of all cells, where these agree, as in a feature
        that is mostly 0, or where more than 5% are beyond. It is 0 for constant features only, and
        few outlying cells hardly change it. A feature of two values, such as 0 and 1, gets the
        variance 2 / pi, like a column of categories: two clusters can explain all of it, and 2 / pi
        of a normal one. A feature of 3 to 10 values gets, likewise, .81 to .98: what so many
        clusters can explain of a normal one.

    Attributes
    ----------
    center_ : ndarray of shape (n_features,)
        Centers of the features.
    scale_ : ndarray of shape (n_features,)
        Scales of the features; 1 where a feature is constant.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, if X had any.

    Warns
    -----
    UserWarning
        If features that are not constant have MAD 0, because more than half of their cells are
        equal. Their standard deviation is used instead.

    Notes
    -----
    NaN marks a missing cell; center and scale are over the observed cells, and a missing cell stays
    missing. A feature without an observed cell, or whose scale overflows, stays as it is.

    A sparse matrix is divided by the scales and not centered, since that would fill it: its zeros
    stay 0, and ``center_`` is 0. That makes no difference to clusters. Scales are those of the
    dense table; the MAD of a feature that is mostly 0 is 0.

    See Also
    --------
    RowStandardizer : Standardizes each case.

    Examples
    --------
    >>> from rskc import ColumnStandardizer
    >>> standardizer = ColumnStandardizer("mean", "std").fit([[1.0, 20.0], [3.0, 10.0]])
    >>> standardizer.transform([[1.0, 20.0], [5.0, 15.0]])
    array([[-1.,  1.],
           [ 3.,  0.]])

    Before clustering::

        make_pipeline(ColumnStandardizer(), RobustSparseKMeans(2))
    """

    _accepted = "csr"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find center and scale of each feature.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Cases, NaN for a missing cell.
        y : ignored
            There for the scikit-learn interface.

        Returns
        -------
        self : ColumnStandardizer
        """
        table, places = self._numbers(X, reset=True)
        p, at = self.n_features_in_, slice(None) if places is None else places
        names = getattr(self, "feature_names_in_", np.arange(p))[at]
        self.center_, self.scale_ = np.zeros(p), np.ones(p)
        found = column_scales(table, self.center, self.scale, names)
        self.center_[at], self.scale_[at] = found
        return self

    def transform(self, X: Any) -> Any:
        """Standardize each feature of X by the centers and scales of the fit.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Cases, NaN for a missing cell. A sparse matrix if the fit was to one.

        Returns
        -------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
            A standardized copy; float32 stays float32. Of a data frame that also holds other
            columns than numbers, a frame in which these are as they were.
        """
        check_is_fitted(self)
        table, places = self._numbers(X, reset=False)
        if places is not None:
            return with_numbers(X, places, (table - self.center_[places]) / self.scale_[places])
        if issparse(table):
            return self._scaled(table, 1 / self.scale_)
        return ((table - self.center_) / self.scale_).astype(table.dtype, copy=False)

    def inverse_transform(self, X: Any) -> Any:
        """Undo the standardization.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Standardized cases, NaN for a missing cell.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Cases in the units of the data of the fit; float32 stays float32.
        """
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        if issparse(X):
            return self._scaled(X, self.scale_)
        return (X * self.scale_ + self.center_).astype(X.dtype, copy=False)

    def _scaled(self, X: Any, factors: np.ndarray) -> Any:
        if self.center_.any():
            raise ValueError(
                "X is sparse, and centering by a fit to a dense table would fill it; fit the "
                "standardizer to a sparse matrix, or give X.toarray()."
            )
        scaled = X.copy()
        scaled.data = (X.data * factors[X.indices]).astype(X.dtype, copy=False)
        return scaled


def column_scales(
    X: Any, center: str, scale: str, names: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return centers and scales of columns, as ``ColumnStandardizer`` has them."""
    table = X.tocsc() if issparse(X) else X
    step = max(1, CELLS_AT_ONCE // X.shape[0]) if issparse(X) else X.shape[1]
    parts = []
    for first in range(0, X.shape[1], step):  # all columns of an array, some of a sparse matrix
        columns = np.ascontiguousarray(to_dense(table[:, first : first + step]).T, np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            centers = column_medians(columns.T) if center == "median" else _means(columns)
            spreads = _deviations(columns)
            parts.append([centers, spreads, spreads if scale == "std" else SCALES[scale](columns)])
    centers, spreads, scales = np.concatenate(parts, axis=1)
    concentrated = (scales == 0) & (spreads > 0)
    if concentrated.any():
        warn_user(
            f"{count(int(concentrated.sum()), 'feature has', 'features have')} MAD 0, because "
            "more than half of the cells are equal; the standard deviation is used instead: "
            f"{listed(names[concentrated], 6)}."
        )
    scales = np.where(concentrated, spreads, scales)
    usable = np.isfinite(scales) & (scales > 0) & np.isfinite(centers)
    centers = np.where(usable | (scales == 0), centers, 0.0) * (not issparse(X))
    return centers, np.where(usable, scales, 1.0)


def with_numbers(X: Any, places: list[int], numbers: np.ndarray) -> Any:
    """Return a frame of the same kind with other numbers in some columns."""
    columns = {X.columns[j]: numbers[:, i] for i, j in enumerate(places)}
    return X.assign(**columns) if hasattr(X, "iloc") else X.with_columns(**columns)


def standardize_rows(X: np.ndarray, center: str, scale: str) -> tuple[np.ndarray, np.ndarray]:
    """Standardize the rows of an array, as ``RowStandardizer`` does but without a warning.

    Returns
    -------
    Z : ndarray of the shape of X
        The standardized rows.
    flat : ndarray of int
        Numbers of the rows with scale 0, which are centered only.
    """
    scales = SCALES[scale](X)
    centers = column_medians(X.T) if center == "median" else _means(X)
    flat = np.flatnonzero(scales == 0)
    scales[flat] = 1
    return (X - centers[:, None]) / scales[:, None], flat


def _mads(X: np.ndarray) -> np.ndarray:
    errors = np.abs(X - column_medians(X.T)[:, None])
    return column_medians(errors.T) * X.dtype.type(MAD_FACTOR)


def _means(X: np.ndarray) -> np.ndarray:
    """Return the mean of each row over its observed cells; NaN if it has none.

    Within the range of the row, so that a constant one is centered to 0 and not to a rounding
    error.
    """
    seen = ~np.isnan(X)
    sums = np.sum(X, axis=1, where=seen, dtype=np.float64)
    means = np.divide(sums, seen.sum(axis=1), out=np.full(len(X), np.nan), where=seen.any(axis=1))
    low = np.min(X, axis=1, where=seen, initial=np.inf)
    high = np.max(X, axis=1, where=seen, initial=-np.inf)
    return means.clip(low, high).astype(X.dtype)


def _deviations(X: np.ndarray) -> np.ndarray:
    """Return the standard deviation of each row over its observed cells; NaN if it has none."""
    errors = X - _means(X)[:, None]
    # In units of the largest: the square of 1e-200 is 0, and that of 1e200 infinite.
    largest = np.max(np.abs(errors), axis=1, where=~np.isnan(errors), initial=0)
    errors /= np.where(largest > 0, largest, 1)[:, None]
    return largest * np.sqrt(_means(errors**2))


def _clipped(X: np.ndarray) -> np.ndarray:
    """Return the standard deviation of each row without the tails that a few cells make.

    So many clusters can explain all of a feature of few values, and would lead; it gets the
    variance that they explain of a normal one. With a scale of 1, two columns of 0 and 1 that tell
    nothing lead: in made tables with three clusters in the numbers the mean adjusted Rand index was
    .60, and .81 with this. A column of 1 to 5 led in tables of customers: .70, and .82 with this.
    """
    variances, few = np.ones(len(X)), np.arange(len(X))
    for step in (max(1, X.shape[1] // 100), 1):  # of most rows some cells show many values
        ordered = np.sort(X[few, ::step], axis=1)  # NaN comes last
        n_values = ~np.isnan(ordered[:, 0]) + (ordered[:, 1:] > ordered[:, :-1]).sum(axis=1)
        n_values = np.minimum(n_values, len(VARIANCES) - 1)
        variances[few] = VARIANCES[n_values]
        few = few[n_values < len(VARIANCES) - 1]
    low, middle, high = _quantiles(X, np.array([0.1, 0.5, 0.9]))
    reach = np.where(high > low, CLIP / DECILES * (high - low), np.inf)
    least, most = middle - reach, middle + reach
    # Among few values the deciles say little: of 0 to 3, mostly 0, all above 1 would be clipped.
    rarest, rare = _quantiles(X[few], np.array([RARE, 1 - RARE]))
    least[few], most[few] = np.fmin(least[few], rarest), np.fmax(most[few], rare)
    clipped = np.clip(X, least[:, None], most[:, None])
    many = np.count_nonzero(clipped != X, axis=1) - np.isnan(X).sum(axis=1) > FEW * X.shape[1]
    scales = np.where(many, _deviations(X), _deviations(clipped))
    return scales / np.sqrt(variances)


def _quantiles(X: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return quantiles of the observed cells of each row, as NumPy's ``nanquantile`` does.

    That goes through Python for each row, and warns of one without a cell.
    """
    missing = np.isnan(X)
    if not missing.any():
        return np.quantile(X, shares, axis=1)
    last = (X.shape[1] - 1 - missing.sum(axis=1)).clip(0)
    places = shares[:, None] * last
    below = places.astype(np.int64)
    ordered = np.sort(X, axis=1)  # NaN comes last
    low, high = (
        np.take_along_axis(ordered, at.T, axis=1).T for at in (below, np.minimum(below + 1, last))
    )
    part = places - below
    return np.where(part < 0.5, low + (high - low) * part, high - (high - low) * (1 - part))


SCALES = {"mad": _mads, "std": _deviations, "clipped": _clipped}
