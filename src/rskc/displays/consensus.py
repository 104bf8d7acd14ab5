"""Which cases are together in half-samples, as a heat map."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from rskc.displays import style
from rskc.inputs.arrays import to_numpy
from rskc.inputs.validation import check_integer
from rskc.model.fitted import case_names
from rskc.utils.wording import count


@dataclass(eq=False, repr=False)
class ConsensusDisplay:
    """One row and one column per case: how often half-samples give two cases the same cluster.

    Cases are ordered by cluster and then by their stability, the most stable first. Stable clusters
    are dark squares on a white ground. A case that changes its cluster is a pale line at the end of
    its square, and two clusters that are joined now and then have a pale square in common. Of many
    cases, evenly spaced ones in this order are drawn.

    Parameters
    ----------
    consensus : ndarray of shape (n_shown, n_shown)
        The shares, in any order of the cases.
    labels : ndarray of int of shape (n_shown,)
        Clusters.
    stability : ndarray of shape (n_shown,)
        Stability of the cases, which orders them within clusters.
    names : array-like of shape (n_shown,), default=None
        Names of the cases; None for numbers.
    n_cases : int, default=None
        Number of the cases that these are drawn from; None if these are all.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure
        Where it was drawn.
    image_ : AxesImage
        The shares.
    colorbar_ : Colorbar
    order_ : ndarray of int
        The cases from top to bottom.
    strip_ : BarContainer
        The clusters, on the left.
    case_axis_ : SecondaryAxis
        Names of cases, on the right.
    """

    consensus: Any
    labels: Any
    stability: Any
    _: KW_ONLY
    names: Any = None
    n_cases: int | None = None

    @classmethod
    def from_estimator(cls, search: Any, *, max_cases: int = 500, ax: Any = None) -> Self:
        """Draw how the cases of a search stay together.

        Parameters
        ----------
        search : Stability
            A fitted search.
        max_cases : int, default=500
            Largest number of cases to draw.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : ConsensusDisplay
        """
        check_integer("max_cases", max_cases, 1)
        style.check_stability(search, cls.__name__)
        model, used = search.best_estimator_, search.samples_used_
        labels, stability = to_numpy(model.labels_)[used], search.case_stability_
        order = np.lexsort((-stability, labels))
        shown = order[style.thinned(len(order), max_cases)]
        halves = search.half_labels_[:, shown]
        together = np.zeros((len(shown), len(shown)))
        for half in halves:  # one at a time: a matrix of all cases would not fit into memory
            together += half[:, None] == half
        display = cls(
            together / len(halves),
            labels[shown],
            stability[shown],
            names=np.asarray(case_names(model), object)[used[shown]],
            n_cases=len(order),
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the shares in ``ax``, or in a new figure."""
        self.ax_, self.figure_ = style.open_axes(ax, 6.8, 5.6)
        self.order_ = np.lexsort((-np.asarray(self.stability), self.labels))
        n, shares = len(self.order_), np.asarray(self.consensus)[np.ix_(self.order_, self.order_)]
        self.image_, self.colorbar_, self.strip_ = style.draw_table(
            self.ax_,
            shares,
            self.labels,
            {"label": "share of half-samples together"},
            cmap="Blues",
            vmin=0,
            vmax=1,
        )
        self.ax_.set_xticks([])
        n_cases, clusters = self.n_cases or n, np.unique(self.labels)
        some = f"rows: {n:,} of them, evenly spaced" if n < n_cases else ""
        what = f"{count(n_cases, 'case')} in {count(len(clusters), 'cluster')}"
        style.headline(self.ax_, f"{what}: together in half-samples", some)
        words = [str(k) for k in range(clusters.max() + 1)]
        self.case_axis_ = style.name_rows(self.ax_, self.labels, words, self.names, self.order_)
        return self
