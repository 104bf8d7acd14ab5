"""The frame in which passes see the data, and the sums over clusters that they make in it.

Missing cells make sums of observed cells: there are totals of values, and of marks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

# In tables, cells beyond this many times the largest spread of a column are cut off there: sums
# then keep some digits of the others when an outlying case joins and leaves a cluster, and squares
# stay finite. What is returned is summed anew, from the data themselves.
OUTLYING = 1e9
# Cells of the rows that show how large columns are that are mostly constant.
FRAME_CELLS = 2**22


class Frame(NamedTuple):
    """Where the data lie and how large they are: all passes see (X - location) * factor.

    The factor keeps squares from overflow and underflow, whatever the scale of the data.
    """

    location: np.ndarray
    factor: float
    limits: np.ndarray  # (p,) where tables cut off, in the frame

    @classmethod
    def of(cls, X: np.ndarray, missing: bool = False) -> Frame:
        """Frame X robustly, from a sample of its rows; where cells are missing, by the others."""
        few, many = sample_steps(*X.shape)
        if missing:
            return observed_frame(X[::few], lambda j: X[:, j])
        return cls.from_rows(X[::few], X[::many])

    @classmethod
    def from_rows(cls, few: np.ndarray, many: Any) -> Frame:
        """Frame data by about 31 of their rows, and more for columns that hardly vary.

        Center first: |x|^2 - 2xc + |c|^2 loses digits when the center of the data is far from 0.
        A median, so that an outlying cell of 1e30 does not drag its column away: of about 31 rows,
        since any place among the data will do, and a median over all of 300 x 1000 cells takes 4
        ms.
        """
        ordered = np.sort(few.astype(np.float64), axis=0)
        last = len(ordered) - 1
        location = ordered[(last + 1) // 2]
        spread = ordered[last - last // 4] - ordered[last // 4]
        for j in np.flatnonzero(spread == 0):
            # The median deviation of the cells that deviate, in a column that is mostly constant.
            deviations = np.abs(many[:, j] - location[j])
            deviations = deviations[deviations > 0]
            spread[j] = np.median(deviations) if len(deviations) else 0.0
        typical = spread.max() if spread.any() else 1.0
        factor = 2.0 ** np.clip(-np.floor(np.log2(typical)), -1000, 1000)
        return cls(location, float(factor), np.full(len(spread), OUTLYING * typical * factor))

    def place(self, points: np.ndarray) -> np.ndarray:
        """Bring points from the space of the data into the frame."""
        return (points - self.location) * self.factor

    def of_columns(self, columns: np.ndarray) -> Frame:
        """Return the frame of some of the columns."""
        return Frame(self.location[columns], self.factor, self.limits[columns])


def sample_steps(n: int, p: int) -> tuple[int, int]:
    """Return the steps between the rows that a frame is made of: the few, and the many."""
    return max(1, -(-n // 31)), max(1, -(-n // max(31, FRAME_CELLS // p)))


class Place(NamedTuple):
    """Where the columns of a table come from."""

    columns: np.ndarray
    frame: Frame

    def centers(self, centers: np.ndarray) -> np.ndarray:
        """Bring centers (runs, K, p) from the space of the data into that of the table."""
        frame = self.frame.of_columns(self.columns)
        return np.clip(frame.place(centers[:, :, self.columns]), -frame.limits, frame.limits)


def observed_frame(sample: np.ndarray, column: Callable[[int], np.ndarray] | None = None) -> Frame:
    """Frame data by cells that are observed; the location is exact in their type.

    About 31 rows stand for all: in each column, missing cells among them are filled with observed
    cells, of the whole ``column`` of this number where the rows have none.
    """
    missing = np.isnan(sample)
    # The observed cells of a column, in order, over and over.
    places = np.arange(len(sample))[:, None] % np.maximum(np.count_nonzero(~missing, axis=0), 1)
    places = np.take_along_axis(np.argsort(missing, axis=0, kind="stable"), places, axis=0)
    sample = np.take_along_axis(sample, places, axis=0)
    for j in np.flatnonzero(missing.all(axis=0)):
        cells = sample[:0, j] if column is None else column(int(j))
        cells = cells[~np.isnan(cells)]
        sample[:, j] = np.resize(cells, len(sample)) if len(cells) else 0.0
    frame = Frame.from_rows(sample, sample)
    return frame._replace(location=frame.location.astype(sample.dtype).astype(np.float64))


# ---- Sums

# What counts as none and as the same; ``kernels.h`` has these numbers too.
# Less mass than this, where a case has about 1, is none.
NO_MASS = 1e-9
# Masses that are off by less than this share of what is trimmed are off by rounding.
MASS_SLACK = 1e-11
# Parts of a case that differ by less are the same: sums of masses are rounded.
SAME_PART = 1e-9
# Less observed weight than this share of all weight counts as none.
NOTHING = 1e-12


def above_0(counts: np.ndarray) -> np.ndarray:
    """Return counts to divide by: 1 where there is nothing."""
    return np.where(counts > NO_MASS, counts, 1.0)


@dataclass
class Sums:
    """Totals and counts of the cases of each cluster; ``shift`` passes change them in place.

    Where cases have masses, the counts are masses.
    """

    totals: np.ndarray  # (runs, K, columns) float64
    counts: np.ndarray  # (runs, K) float64
    factored: ClassVar[bool] = False  # whether B_j of an engine has factors that these lack

    @classmethod
    def empty(cls, runs: int, K: int, columns: int) -> Self:
        """Return the sums over no case."""
        return cls(np.zeros((runs, K, columns)), np.zeros((runs, K)))

    def and_empty(self, runs: int) -> Self:
        """Return these, and the sums over no case for more runs."""
        _, K, columns = self.totals.shape
        more = self.empty(runs, K, columns)
        totals, counts = (self.totals, more.totals), (self.counts, more.counts)
        return type(self)(np.concatenate(totals), np.concatenate(counts))

    def change(self, totals: np.ndarray, counts: np.ndarray, moved: np.ndarray) -> np.ndarray:
        """Add what totals and counts change by when cases move; return how many moved."""
        self.totals += totals
        self.counts += counts
        return moved.astype(np.int64)

    def drop_rounding(self) -> None:
        """Make clusters empty that have no more mass than what rounding left in them."""
        empty = self.counts < NO_MASS
        if empty.any():
            self.counts[empty], self.totals[empty] = 0.0, 0.0

    def means(self) -> np.ndarray:
        """Return the means of the clusters; 0, the location of the data, for an empty one."""
        return self.totals / above_0(self.counts)[:, :, None]

    def between(self) -> np.ndarray:
        """Return B_j = sum_k n_k (mean_kj - mean_j)^2, a row for each run."""
        mean = self.totals.sum(axis=1) / above_0(self.counts.sum(axis=1))[:, None]
        return np.einsum("rk,rkj->rj", self.counts, (self.means() - mean[:, None, :]) ** 2)

    def n_kept(self) -> float:
        """Return how many cases the only run has in its groups, an int where that is whole."""
        total = float(self.counts.sum())
        return int(total) if total.is_integer() else total

    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        """Return totals (runs, K, p), and the number of cells (runs, K, 1 or p) in each."""
        return self.totals, self.counts[:, :, None]

    def of_runs(self, index: np.ndarray | slice) -> Self:
        """Return the sums of some of the runs: a copy, or for a slice a view."""
        return type(self)(*(part[index] for part in vars(self).values()))


def missing_factors(observed: Any, total: Any, xp: Any = np) -> Any:
    """Return all weight / observed weight, by which distances are scaled up; 0 if there is none."""
    some = observed > NOTHING * total
    one, zero = xp.ones_like(observed), xp.zeros_like(observed)
    return xp.where(some, total / xp.where(some, observed, one), zero)


def scaled_up(sums: Any, observed: Any, total: float, xp: Any = np) -> Any:
    """Return distances over observed features, scaled up; infinite where nothing is observed."""
    some = observed > NOTHING * total
    scaled = sums * total / xp.where(some, observed, xp.ones_like(observed))
    scaled = xp.where(scaled < 0, xp.zeros_like(scaled), scaled)
    return xp.where(some, scaled, xp.full_like(scaled, float("inf")))


class MissingSums(Sums):
    """Sums whose totals are of values, and then of marks: the number of observed cells."""

    factored = True

    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the totals (runs, K, p) of values, and those of marks."""
        p = self.totals.shape[2] // 2
        return self.totals[:, :, :p], self.totals[:, :, p:]

    def means(self) -> np.ndarray:
        """Return means over observed cells; NaN where there is none."""
        values, cells = self.halves()
        means = np.where(cells > NO_MASS, cells, np.nan)
        return np.divide(values, means, out=means)

    def between(self) -> np.ndarray:
        """Return B_j as if every case had observed all features that it is judged by."""
        means, mean = self._means_and_mean()
        return np.einsum("rkj,rkj->rj", self.halves()[1], (means - mean) ** 2)

    def factored_between(self, first: np.ndarray, zeroth: np.ndarray) -> np.ndarray:
        """Return B_j from sums (runs, K, p) of f x, and of f over observed cells."""
        means, mean = self._means_and_mean()
        return (2 * first * (means - mean) + zeroth * (mean**2 - means**2)).sum(axis=1)

    def _means_and_mean(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the means (runs, K, p), 0 where there is none, and those of all clusters."""
        values, cells = self.halves()
        means = np.where(cells > NO_MASS, values, 0.0) / above_0(cells)
        return means, (values.sum(axis=1) / above_0(cells.sum(axis=1)))[:, None, :]
