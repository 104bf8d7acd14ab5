"""The gap over the L1 bound."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from rskc.displays import style
from rskc.pictures.palette import INK
from rskc.selection.findings import gap_reason
from rskc.utils.wording import count


@dataclass(eq=False, repr=False)
class GapDisplay:
    """The gap between the data and data without clusters, with standard errors.

    The largest gap is a diamond, and what was chosen has a ring. A dashed line is one standard
    error below the largest gap: the least bound above it is that of the rule "1se".

    Parameters
    ----------
    l1_bounds : ndarray of shape (tried,)
        The bounds that were tried, upwards.
    gap, standard_error : ndarray of shape (tried,)
        The gaps and their standard errors.
    chosen : ndarray of bool of shape (tried,)
        Which one was chosen.
    n_features : ndarray of int of shape (tried,), default=None
        Number of features with weight at each bound; None if not known.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure
        Where it was drawn.
    curve_ : ErrorbarContainer
        The gaps.
    largest_, chosen_ : Line2D
        The marks of the largest and of the chosen one.
    line_ : Line2D
        One standard error below the largest.
    feature_axis_ : SecondaryAxis or None
        Numbers of features, if they are known.
    legend_ : Legend
    """

    l1_bounds: Any
    gap: Any
    standard_error: Any
    _: KW_ONLY
    chosen: Any
    n_features: Any = None

    @classmethod
    def from_estimator(cls, search: Any, *, ax: Any = None) -> Self:
        """Draw a search for the L1 bound by the gap.

        Parameters
        ----------
        search : GapL1
            A fitted search.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : GapDisplay
        """
        table = style.check_search(search, cls.__name__, "GapL1", "l1_bound", "gap")
        display = cls(
            table["l1_bound"].to_numpy(),
            table["gap"].to_numpy(),
            table["standard_error"].to_numpy(),
            chosen=table["chosen"].to_numpy(dtype=bool),
            n_features=table["n_features"].to_numpy(),
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the gaps in ``ax``, or in a new figure."""
        self.ax_ = style.axes_for(ax, 7, 4)
        self.figure_ = self.ax_.figure
        style.tidy(self.ax_)
        bounds = np.asarray(self.l1_bounds, float)
        largest, chosen = int(np.argmax(self.gap)), int(np.argmax(self.chosen))
        style.scale_of_bounds(self.ax_, bounds)
        self.curve_ = self.ax_.errorbar(
            bounds, self.gap, self.standard_error, label="gap ± std. error", **style.CURVE
        )
        height = self.gap[largest] - self.standard_error[largest]
        self.line_ = self.ax_.axhline(height, label="largest - std. error", **style.DASHED)
        diamond = {"marker": "D", "ms": 7, "color": INK, "ls": "none", "zorder": 3}
        (self.largest_,) = self.ax_.plot(
            bounds[largest], self.gap[largest], label="largest", **diamond
        )
        (self.chosen_,) = self.ax_.plot(
            bounds[chosen], self.gap[chosen], label="chosen", zorder=4, **style.RING
        )
        self.ax_.set_ylabel("gap")
        self.legend_ = style.legend_beside(self.ax_)
        title = f"{self._describe(chosen)}: {gap_reason(self.gap, self.chosen)}"
        most = f"largest gap: {self._describe(largest)}" if chosen != largest else ""
        style.headline(self.ax_, title, most)
        self.feature_axis_ = None
        if self.n_features is not None:
            self.feature_axis_ = style.axis_of_features(
                self.ax_, bounds, self.n_features, first=(chosen, largest)
            )
        return self

    def _describe(self, row: int) -> str:
        value = self.l1_bounds[row]
        if self.n_features is None:
            return f"bound {value:.3g}"
        return f"bound {value:.3g} ({count(int(self.n_features[row]), 'feature')})"
