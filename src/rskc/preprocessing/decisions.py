"""What the numbers of a table are: counts, intensities, features in one unit, or something else."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from rskc.inputs.columns import MANY, SPARSE, some_rows, spreads_of
from rskc.inputs.medians import column_medians

# From MANY columns on a table may be one of many features in one unit, such as genes. Cases are
# standardized without logarithms from VERY_MANY on.
VERY_MANY = 1000
# Natural logarithms of the medians of such features vary by less: 2.4 in bulk counts of RNA.
LEVELS = 3.5
# Of few features in one unit the spreads do not differ by more; of many, nine in ten from the
# median one.
ALIKE, MANY_ALIKE = 3.0, 8.0
# Skewness of quantiles, from -1 to 1, that logarithms must remove. Intensities have .34 to .72 and
# their logarithms -.19 to .12 (11 published tables); ages, scores and pixels are below .15.
SKEWED = 0.25
TAILS = (0.1, 0.05, 0.025)
FEWEST = 12  # distinct cells above the floor
# The largest cells, in medians: logarithms of counts and intensities end at 10, tables of
# intensities begin at 20.
REACH = 12.0
# Or spreads are proportional to levels, and their slope in logarithms is 1. Published intensities
# have .05 to 1.04, and logarithms or logarithms of ratios .22 at most (14 and 13 tables).
SLOPE = 0.7
# Counts: this share of the cells that are not 0 is the largest one, and no more. Pixels of digits
# have 18%.
MOST_AT_END = 0.01
# Largest cells, over the least ones, where those below 0 are noise.
MUCH_MORE = 3.0
AS_IT_IS, FLOORED, FROM_ZERO = 0, 1, 2


class Decisions(NamedTuple):
    """What the data say: counts or not, features in one unit or not, logarithms of which."""

    counts: bool
    alike: bool
    logs: np.ndarray  # (p,) AS_IT_IS, FLOORED: log(max(x, unit)), or FROM_ZERO: log(1 + x / unit)
    units: np.ndarray  # (p,)


def decide(table: Any) -> Decisions:
    """Say what the numbers of a table are, by some of its rows."""
    rows = some_rows(table)
    p = rows.shape[1]
    as_it_is = np.full(p, AS_IT_IS), np.ones(p)
    if p >= MANY:
        if _are_counts(table, rows):
            return Decisions(True, True, np.full(p, FROM_ZERO), np.ones(p))
        is_sparse = bool(np.nanmin(rows) >= 0 and np.mean(rows == 0) >= SPARSE)
        if _are_intensities(rows):
            return Decisions(False, not is_sparse, *logs_together(np.maximum(rows, 0)))
        if is_sparse:
            return Decisions(False, False, *as_it_is)
    if (p >= MANY and _spread_alike(rows)) or _have_one_range(rows):
        return Decisions(False, True, *as_it_is)
    skewed = np.array([_is_skewed(column) for column in rows.T], bool)
    spreads = spreads_of(rows)
    alike = not skewed.any() and (spreads is None or spreads.ratio <= ALIKE)
    return Decisions(False, alike, *logs_of_columns(rows, skewed))


def _are_counts(table: Any, rows: np.ndarray) -> bool:
    """Whether cells are whole numbers from 0 on, of which the largest are rare."""
    cells = table.data if issparse(table) else rows
    cells = cells[np.isfinite(cells)] if np.isnan(cells).any() else cells
    if cells.size == 0 or cells.min() < 0 or (cells != np.floor(cells)).any():
        return False
    filled = cells[cells > 0]
    largest = filled.max(initial=0)
    at_end = np.count_nonzero(filled == largest)
    is_open = at_end <= max(1, MOST_AT_END * filled.size)
    return bool(largest > 1 and (rows == 0).any() and is_open)


def _are_intensities(rows: np.ndarray) -> bool:
    """Whether features are skewed to the right, in one unit, and above 0 but for noise."""
    cells = rows[np.isfinite(rows)]
    if cells.size == 0:
        return False
    if cells.min() < 0:  # as where a background was subtracted: golub_72x7129 has 29%
        low, high = np.quantile(cells, (0.001, 0.999))
        if high < MUCH_MORE * -low or 2 * np.count_nonzero(cells < 0) > cells.size:
            return False
        rows = np.maximum(rows, 0)
    medians = column_medians(np.where(rows > 0, rows, np.nan))
    levels = np.log(medians[np.isfinite(medians)])
    # Features in one unit differ in level by less.
    one_level = len(levels) > MANY // 2 and levels.std() < LEVELS
    return bool(one_level) and _are_skewed_together(rows)


def _have_one_range(rows: np.ndarray) -> bool:
    """Whether most features have the same least and largest cell, as pixels and answers have."""
    low, high = np.fmin.reduce(rows, axis=0), np.fmax.reduce(rows, axis=0)
    varying = low < high
    ends = np.column_stack([low, high])[varying]
    if len(ends) < 2:
        return False
    return bool(2 * np.unique(ends, axis=0, return_counts=True)[1].max() > len(ends))


def _are_skewed_together(rows: np.ndarray) -> bool:
    """Whether the quarter of the features that vary most is skewed as amounts are.

    Or whether spreads grow like levels, as those of amounts do however little each of them varies.
    """
    above = np.where(rows > np.nanmin(rows), rows, np.nan)
    seen = above[np.isfinite(above)]
    if seen.size == 0 or np.quantile(seen, 0.999) < REACH * np.median(seen):
        return False
    deviations, levels = _deviations(rows), column_medians(rows)
    told = (deviations > 0) & (levels > 0)
    if 2 * np.count_nonzero(told) > len(told):
        level = np.log(levels[told]) - np.log(levels[told]).mean()
        if level @ np.log(deviations[told]) >= SLOPE * (level @ level) > 0:
            return True
    most = np.argsort(-deviations, kind="stable")[: max(1, rows.shape[1] // 4)]
    votes = [_is_skewed(column) for column in above[:, most].T]
    return 2 * sum(votes) > len(votes)


def _deviations(rows: np.ndarray) -> np.ndarray:
    """Return the standard deviations of columns, 0 for one without an observed cell."""
    with np.errstate(over="ignore"):
        return np.nanstd(np.where(np.isnan(rows).all(axis=0), 0.0, rows), axis=0)


def _spread_alike(rows: np.ndarray) -> bool:
    deviations = _deviations(rows)
    deviations = deviations[deviations > 0]
    if len(deviations) == 0:
        return True
    low, middle, high = np.quantile(deviations, (0.05, 0.5, 0.95))
    return high <= MANY_ALIKE * middle and middle <= MANY_ALIKE * low


def _is_skewed(column: np.ndarray) -> bool:
    """Whether a column is positive and skewed to the right, and its logarithms are not."""
    seen = column[np.isfinite(column)]
    if len(seen) < FEWEST or seen.min() < 0:
        return False
    above = seen[seen > 0]
    if len(np.unique(above)) < FEWEST:
        return False
    if 2 * np.count_nonzero(above == above.min()) > len(above):  # a floor
        above = above[above > above.min()]
    plain, logged = _skewness(above), _skewness(np.log(above))
    return plain >= SKEWED and abs(logged) <= plain / 2


def _skewness(values: np.ndarray) -> float:
    """Return the mean skewness of quantiles, from -1 to 1."""
    low = np.quantile(values, TAILS)
    high = np.quantile(values, 1 - np.array(TAILS))
    with np.errstate(invalid="ignore", divide="ignore"):
        skewness = (high + low - 2 * np.median(values)) / (high - low)
    return float(np.nan_to_num(skewness).mean())


def logs_together(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how logarithms of all features together are taken, and their unit.

    That is the median of the cells above the floor: below it noise is large in logarithms. Of 11
    published tables the mean adjusted Rand index was .28 with a unit of 0, .27 with .3 of the
    median and .32 with the median, all else chosen by the data.
    """
    p, above = rows.shape[1], rows[rows > max(0.0, np.nanmin(rows, initial=np.inf))]
    return np.full(p, FROM_ZERO), np.full(p, float(np.median(above)))


def logs_of_columns(rows: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how logarithms of each of the chosen columns are taken, and their floors or units."""
    logs, units = np.full(len(chosen), AS_IT_IS), np.ones(len(chosen))
    for j in np.flatnonzero(chosen):
        seen = rows[np.isfinite(rows[:, j]), j]
        above = seen[seen > 0]
        if 0 < len(above) == len(seen):
            middle, high = np.quantile(above, (0.5, 0.9))
            fence = (
                middle * (middle / high) ** 3
            )  # as far below the median as a slip of the decimal
            logs[j], units[j] = FLOORED, max(above.min(), fence)
        elif len(above):
            logs[j], units[j] = FROM_ZERO, np.median(above)
    return logs, units
