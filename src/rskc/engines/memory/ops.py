"""What is done with NumPy arrays of length n."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from rskc.engines.contract.ops import ArrayOps, case_numbers
from rskc.engines.empty import costliest
from rskc.engines.groups import labels_of

# Up to this many cases the runs of a batch are counted all at once: Python takes longer than that.
FEW_CASES = 500


class NumpyOps(ArrayOps):
    """The same for NumPy arrays."""

    xp = np

    def __init__(self, masses: np.ndarray | None = None):
        self.masses = self.host_masses = masses

    def asarray(self, array, dtype=None):
        return array

    def to_numpy(self, array):
        return labels_of(array)

    def from_numpy(self, array):
        return array

    def take(self, array, runs):
        return array[runs]

    def only(self, array):
        return array[0]

    def as_run(self, array):
        return array[None]

    def lesser(self, costs, others):
        return np.minimum(costs, others)

    def put(self, array, run, case, values):
        array = np.array(array)
        array[run, case] = values
        return array

    def values_at(self, array, run, case):
        return array[run, case]

    def _joined(self, arrays):
        return np.concatenate(arrays)

    def _trimmed_like(self, labels):
        return np.int32(-1)

    def _of_groups(self, labels, K, values):
        runs, n = labels.shape
        if n > FEW_CASES:
            return np.array([np.bincount(row + 1, values, K + 1) for row in labels])
        places = labels + (1 + (K + 1) * np.arange(runs)[:, None])
        weights = None if values is None else np.broadcast_to(values, labels.shape).ravel()
        return np.bincount(places.ravel(), weights, runs * (K + 1)).reshape(runs, K + 1)

    def _numbers_of(self, n):
        return _case_numbers(n)

    def _costliest(self, labels, costs, run, most):
        return costliest(labels[run], costs[run], most, self.masses)

    def _drawn(self, chances, uniforms):
        ladder = np.cumsum(chances, axis=1, dtype=np.float64)
        ladder[ladder[:, -1] == 0] = np.arange(1, ladder.shape[1] + 1)  # all alike: any case
        goals = uniforms * ladder[:, -1:]
        if ladder.shape[1] <= FEW_CASES:  # counting is quicker than a search for each run
            places = np.count_nonzero(ladder[:, None, :] <= goals[:, :, None], axis=2)
        else:
            rows = zip(ladder, goals, strict=True)
            places = np.array([np.searchsorted(steps, own, side="right") for steps, own in rows])
        return np.minimum(places, ladder.shape[1] - 1)

    def _total(self, costs, out):
        return float(costs[~out].sum())

    def _median(self, values):
        return float(np.median(values))

    def cube_roots(self, costs, groups, factors):
        return np.cbrt(costs * np.append(factors, 1.0)[labels_of(groups)])


@lru_cache(maxsize=4)
def _case_numbers(n: int) -> np.ndarray:
    return case_numbers(0, n, n)


NUMPY_OPS = NumpyOps()


def ops_of(masses: np.ndarray | None) -> NumpyOps:
    """Return what is done with NumPy arrays of cases that have these masses."""
    return NUMPY_OPS if masses is None else NumpyOps(masses)
