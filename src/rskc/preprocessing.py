"""Making cases comparable before they are clustered."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from rskc.validation import check_choice
from rskc.wording import count, listed

# MAD times this is the standard deviation of normal data.
MAD_FACTOR = 1.4826


class RowStandardizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Standardize each case: subtract the center of its cells and divide by their scale.

    Clustering then goes by the shape of a case and not by its level, as for gene expression. With
    mean and standard deviation the squared Euclidean distance of two complete cases is
    ``2 * n_features * (1 - correlation)``. With median and MAD, the paper's choice, it is about
    that, and outlying cells have no say in center and scale.

    Parameters
    ----------
    center : {"median", "mean"}, default="median"
        Center of a case.
    scale : {"mad", "std"}, default="mad"
        Scale of a case. "mad": median distance of its cells to their median, times 1.4826, whatever
        ``center`` is. "std": standard deviation, dividing by the number of cells.

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

    def __init__(self, center: str = "median", scale: str = "mad"):
        self.center = center
        self.scale = scale

    def fit(self, X, y=None):
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

    def transform(self, X):
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
        find_center = _medians if self.center == "median" else _means
        find_scale = _mads if self.scale == "mad" else _deviations
        scale = find_scale(X)
        flat = np.flatnonzero(scale == 0)
        if len(flat):
            warnings.warn(
                f"{count(len(flat), 'case has', 'cases have')} scale 0 ({self.scale}) and can be "
                f"centered only: {listed(flat, 6)}.",
                UserWarning,
                stacklevel=3,  # beyond set_output's wrapper
            )
        scale[flat] = 1
        return (X - find_center(X)[:, None]) / scale[:, None]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = True
        tags.requires_fit = False
        return tags

    def _validate(self, X, reset: bool) -> np.ndarray:
        check_choice("center", self.center, ("median", "mean"))
        check_choice("scale", self.scale, ("mad", "std"))
        dtype = [np.float64, np.float32]
        return validate_data(
            self, X, reset=reset, dtype=dtype, order="C", ensure_all_finite="allow-nan"
        )


def _medians(X: np.ndarray) -> np.ndarray:
    """Median of each row over its observed cells; NaN if it has none.

    NumPy's nanmedian goes row by row: 0.17 s for 200,000 rows of 20 cells, against 0.03 s.
    """
    n_observed = X.shape[1] - np.isnan(X).sum(axis=1)
    ordered = np.sort(X, axis=1)  # NaN comes last
    middle = np.stack([(n_observed - 1) // 2, n_observed // 2], axis=1).clip(0)
    # Halved before they are added, lest the sum overflow.
    return (np.take_along_axis(ordered, middle, axis=1) / 2).sum(axis=1)


def _mads(X: np.ndarray) -> np.ndarray:
    return _medians(np.abs(X - _medians(X)[:, None])) * X.dtype.type(MAD_FACTOR)


def _means(X: np.ndarray) -> np.ndarray:
    """Mean of each row over its observed cells; NaN if it has none.

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
    """Standard deviation of each row over its observed cells; NaN if it has none."""
    errors = X - _means(X)[:, None]
    # In units of the largest: the square of 1e-200 is 0, and that of 1e200 infinite.
    largest = np.max(np.abs(errors), axis=1, where=~np.isnan(errors), initial=0)
    errors /= np.where(largest > 0, largest, 1)[:, None]
    return largest * np.sqrt(_means(errors**2))
