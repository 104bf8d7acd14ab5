"""Sums over the cases of each cluster, and what missing cells make of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

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
