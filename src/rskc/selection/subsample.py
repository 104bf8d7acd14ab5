"""The cases that a search works on: those of a table of any kind, or some of a large one.

A case is one observation, however much it counts: it is drawn as a whole, and its weight goes with
it. If its copies were drawn one by one, both halves of a split would hold the heavy cases, and
agree for that reason alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array

from rskc.inputs.arrays import is_dask, is_on_device, masses_of, to_numpy
from rskc.inputs.validation import PRECISIONS
from rskc.selection.runner import rng_of

# Keys of tasks are small numbers; the draw of the cases has one that no task has.
DRAW = 2**32 - 1
# A feature of 3 to 20 values has steps: the gaps between its values are no gaps between clusters.
FEWEST_STEPS, MOST_STEPS = 3, 20
# So many cases, or up to twice as many, show at once which features may be of few values.
SOME_CASES = 50


@dataclass(frozen=True)
class Sample:
    """Cases, and what they count."""

    X: Any  # (n, p) in memory
    weights: np.ndarray | None = None  # (n,) above 0; None if all count the same

    @property
    def shape(self) -> tuple[int, int]:
        """Number of cases and of features."""
        return self.X.shape

    @cached_property
    def masses(self) -> np.ndarray | None:
        """The weights in units: a case of mass 3 is as three copies. None if all have mass 1."""
        masses = None if self.weights is None else masses_of(self.weights)
        return None if masses is None or (masses == 1).all() else masses

    @cached_property
    def without_steps(self) -> Any:
        """The cases, with each value of a feature of few values spread to those beside it.

        Between 2 and 3 rooms there are no cases. Where gaps are looked for, those with 2 rooms are
        spread evenly from 1.5 to 2.5. A table of normal features and a number of rooms from 1 to 5
        that tells nothing was five clusters otherwise.
        """
        if issparse(self.X):
            return self.X
        rng, smooth = np.random.default_rng(0), {}
        some = np.sort(self.X[:: max(1, len(self.X) // SOME_CASES)], axis=0)  # NaN is the last
        for j in np.flatnonzero((some[1:] > some[:-1]).sum(axis=0) < MOST_STEPS):
            column = self.X[:, j]
            values = np.unique(column[~np.isnan(column)])
            if FEWEST_STEPS <= len(values) <= MOST_STEPS:
                between = (values[1:] + values[:-1]) / 2
                ends = np.r_[2 * values[0] - between[0], between, 2 * values[-1] - between[-1]]
                at = np.searchsorted(values, column).clip(max=len(values) - 1)  # NaN is the last
                spread = ends[at] + rng.random(len(at)) * np.diff(ends)[at]
                smooth[j] = np.where(np.isnan(column), np.nan, spread)
        X = np.array(self.X, np.result_type(self.X, np.float32)) if smooth else self.X
        for j, column in smooth.items():
            X[:, j] = column
        return X

    def take(self, cases: np.ndarray) -> Sample:
        """Return some of the cases, by number or as a mask, with their weights."""
        return Sample(self.X[cases], None if self.weights is None else self.weights[cases])


def with_length(table: Any) -> Any:
    """Return a table that knows how many cases it has; Dask may have to read it for that."""
    if not is_dask(table) or not np.isnan(table.shape[0]):
        return table
    # A copy: counting sets the lengths in place, and the array may be the caller's own.
    return table.copy().compute_chunk_sizes()


def draw_cases(n: int, n_used: int, seed: int) -> np.ndarray:
    """Draw ``n_used`` of n cases, and return their numbers upwards."""
    return np.sort(rng_of(seed, DRAW).choice(n, n_used, replace=False, shuffle=False))


def draw(
    table: Any, weights: np.ndarray | None, most: int | None, seed: int
) -> tuple[np.ndarray, Sample]:
    """Read at most this many cases of a table, those of weight 0 never; their numbers come first.

    By weight, cases are drawn in proportion to it, and count alike afterwards; one that is so heavy
    that it is drawn several times counts as often.
    """
    n = int(table.shape[0])
    cases = np.arange(n) if weights is None else np.flatnonzero(weights)
    if most is None or len(cases) <= most:
        weights = None if weights is None else weights[cases]
    elif weights is None:
        cases = draw_cases(n, most, seed)
    else:
        rng, hits = rng_of(seed, DRAW), np.zeros(n)
        order = rng.permutation(cases)
        hits[order] = evenly_drawn(weights[order], most, rng)
        cases = np.flatnonzero(hits)
        weights = None if (hits[cases] == 1).all() else hits[cases]
    return cases, Sample(gather(table, cases), weights)


def evenly_drawn(weights: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    """Return how often each case (n,) is drawn, by evenly spaced points on the sum of weights.

    A case is drawn as often as its share of the weight asks for, rounded up or down.
    """
    ends = np.cumsum(weights) * (number / weights.sum()) - rng.random()
    ends[-1] = number - 0.5  # between the last point and the next, whatever the sums round to
    return np.diff(np.ceil(ends).astype(np.int64), prepend=0)


def gather(table: Any, cases: np.ndarray) -> Any:
    """Return cases of a table in memory; an array or matrix of which these are all is itself.

    Of a Dask array only the blocks are read that have some of them.
    """
    drawn = table
    if len(cases) < table.shape[0] and is_on_device(table):
        from array_api_compat import array_namespace, device

        xp = array_namespace(table)
        drawn = xp.take(table, xp.asarray(cases, device=device(table)), axis=0)
    elif len(cases) < table.shape[0]:
        drawn = table[cases]
    if issparse(drawn) or (drawn is table and isinstance(table, np.ndarray)):
        return drawn
    return check_array(
        to_numpy(drawn), dtype=PRECISIONS, order="C", ensure_all_finite="allow-nan", input_name="X"
    )
