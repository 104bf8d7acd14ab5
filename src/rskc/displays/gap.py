"""Gap statistics over the L1 bound, or over the number of clusters."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from rskc.displays._searches import (
    DASHED,
    axis_of_features,
    check_search,
    chosen_look,
    chosen_rows,
    curve_look,
    legend_beside,
    places_of,
    scale_of_bounds,
)
from rskc.displays._style import INK, axes_for, count, headline, tidy
from rskc.validation import check_choice

_KINDS = ("l1_bound", "n_clusters")


class GapDisplay:
    """The gap between the data and data without clusters, with standard errors.

    The largest gap is a diamond, and what was chosen has a ring. For bounds, a dashed line is one
    standard error below the largest gap: the least bound above it is that of the rule "1se".

    Parameters
    ----------
    values : ndarray of shape (tried,)
        What was tried, upwards: bounds or numbers of clusters.
    gap, standard_error : ndarray of shape (tried,)
        The gaps and their standard errors.
    chosen : ndarray of bool of shape (tried,)
        Which one was chosen.
    kind : {"l1_bound", "n_clusters"}
        What the values are.
    n_features : ndarray of int of shape (tried,), default=None
        For bounds, the number of features with weight at each; None if not known.

    Attributes
    ----------
    ax_, figure_ : Axes and Figure
        Where it was drawn.
    curve_ : ErrorbarContainer
        The gaps.
    largest_, chosen_ : Line2D
        The marks of the largest and of the chosen one.
    line_ : Line2D or None
        One standard error below the largest, for bounds.
    feature_axis_ : SecondaryAxis or None
        Numbers of features, if they are known.
    legend_ : Legend
    """

    def __init__(
        self,
        values: Any,
        gap: Any,
        standard_error: Any,
        *,
        chosen: Any,
        kind: str,
        n_features: Any = None,
    ):
        self.values = values
        self.gap = gap
        self.standard_error = standard_error
        self.chosen = chosen
        self.kind = kind
        self.n_features = n_features

    @classmethod
    def from_estimator(cls, search: Any, *, ax: Any = None) -> Self:
        """Draw a search for the L1 bound, or for the number of clusters, by the gap.

        Parameters
        ----------
        search : GapL1 or GapK
            A fitted search.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : GapDisplay
        """
        table = check_search(search, cls.__name__, "GapL1 or GapK", "gap", "standard_error")
        kind = "l1_bound" if "l1_bound" in table else "n_clusters"
        display = cls(
            table[kind].to_numpy(),
            table["gap"].to_numpy(),
            table["standard_error"].to_numpy(),
            chosen=chosen_rows(table),
            kind=kind,
            n_features=table["n_features"].to_numpy() if kind == "l1_bound" else None,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the gaps in ``ax``, or in a new figure."""
        check_choice("kind", self.kind, _KINDS)
        self.ax_ = axes_for(ax, 7, 4)
        self.figure_ = self.ax_.figure
        tidy(self.ax_)
        places = self._places()
        look = curve_look()
        self.curve_ = self.ax_.errorbar(
            places, self.gap, self.standard_error, label="gap ± std. error", **look
        )
        self.line_ = self._draw_line() if self.kind == "l1_bound" else None
        self._mark(places)
        self.ax_.set_ylabel("gap")
        self.legend_ = legend_beside(self.ax_)
        headline(self.ax_, *self._title())
        self.feature_axis_ = None if self.n_features is None else self._write_features()
        return self

    def _rows(self) -> tuple[int, int]:
        """Rows of the largest gap and of what was chosen."""
        return int(np.argmax(self.gap)), int(np.argmax(self.chosen))

    def _places(self) -> np.ndarray:
        if self.kind == "n_clusters":
            return places_of(self.ax_, self.values, bold=self.values[self._rows()[1]])
        scale_of_bounds(self.ax_, self.values)
        return np.asarray(self.values, float)

    def _draw_line(self) -> Any:
        largest, _ = self._rows()
        height = self.gap[largest] - self.standard_error[largest]
        return self.ax_.axhline(height, label="largest - std. error", **DASHED)

    def _mark(self, places: np.ndarray) -> None:
        largest, chosen = self._rows()
        top = {"marker": "D", "ms": 7, "color": INK, "ls": "none", "zorder": 3}
        (self.largest_,) = self.ax_.plot(places[largest], self.gap[largest], label="largest", **top)
        (self.chosen_,) = self.ax_.plot(
            places[chosen], self.gap[chosen], label="chosen", zorder=4, **chosen_look()
        )

    def _title(self) -> tuple[str, str]:
        largest, chosen = self._rows()
        what, most = self._describe(chosen), f"largest gap: {self._describe(largest)}"
        if chosen == largest:
            return f"{what}: the largest gap", ""
        if self.kind == "l1_bound":
            return f"{what}: within one standard error", most
        return f"{what}: the next gap is no larger, or within its error", most

    def _describe(self, row: int) -> str:
        value = self.values[row]
        if self.kind == "n_clusters":
            return count(int(value), "cluster")
        if self.n_features is None:
            return f"bound {value:.3g}"
        return f"bound {value:.3g} ({count(int(self.n_features[row]), 'feature')})"

    def _write_features(self) -> Any:
        return axis_of_features(
            self.ax_, np.asarray(self.values), self.n_features, first=self._rows()[::-1]
        )
