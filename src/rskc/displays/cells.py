"""The table as a picture, with its outlying cells."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from rskc.displays import style
from rskc.inputs.arrays import to_numpy_pair
from rskc.model.summary import flagged_cells
from rskc.pictures.models import check_fitted, rows_by_cluster
from rskc.pictures.palette import GRAY, PALETTE
from rskc.utils.wording import count

# Marks beyond this many scales have the full color.
FAR = 10.0


@dataclass(eq=False, repr=False)
class CellsDisplay:
    """One mark per outlying cell, at its feature and its case.

    Cases are sorted by cluster, and lines divide these. Cells above their center are of one color
    and cells below of another, the stronger the more scales they are away. A row or a column of
    marks is a case or a feature that is worth a look.

    Parameters
    ----------
    cases, features : ndarray of int
        Where each outlying cell is, by number.
    scales : ndarray of float
        How many scales it is above its center.
    labels : ndarray of shape (n_samples,)
        Clusters of all cases.
    n_features : int
        How many features the table has.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure
        Where it was drawn.
    marks_ : PathCollection
        The cells.
    """

    cases: Any
    features: Any
    scales: Any
    _: KW_ONLY
    labels: Any
    n_features: int

    @classmethod
    def from_estimator(cls, model: Any, X: Any, *, ax: Any = None) -> Self:
        """Draw the outlying cells of a fit.

        Parameters
        ----------
        model : RobustSparseKMeans
            A fitted model.
        X : array-like or data frame of shape (n_samples, n_features)
            The data of the fit.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : CellsDisplay
        """
        check_fitted(model)
        known, X = to_numpy_pair(model, X)
        found = flagged_cells(known, X)
        shown = found.cases, found.features, found.scales
        return cls(*shown, labels=known.labels_, n_features=known.n_features_in_).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the cells in ``ax``, or in a new figure."""
        self.ax_, self.figure_ = style.open_axes(ax, 7, 4.5)
        places, ends = rows_by_cluster(self.labels)
        colors = [
            (PALETTE[5 if scale > 0 else 0], min(max(abs(scale) / FAR, 0.3), 1.0))
            for scale in self.scales
        ]
        look = {"marker": "s", "s": 6, "linewidths": 0, "c": colors}
        self.marks_ = self.ax_.scatter(self.features, places[self.cases], **look)
        for end in ends[:-1]:
            self.ax_.axhline(end - 0.5, color=GRAY, linewidth=0.6)
        n, p = len(self.labels), self.n_features
        self.ax_.set(xlim=(-0.5, p - 0.5), ylim=(n - 0.5, -0.5))
        self.ax_.set(xlabel="feature", ylabel="case, sorted by cluster")
        title = f"{count(len(self.cases), 'cell')} of {n:,} x {p:,} outlying"
        style.headline(self.ax_, title, "blue below the center, vermilion above")
        return self
