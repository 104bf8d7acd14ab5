"""What is done with NumPy arrays of length n."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from rskc.engines.contract.ops import ArrayOps, case_numbers
from rskc.engines.empty import costliest
from rskc.engines.groups import labels_of
from rskc.engines.passes import PASSES as PASSES


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
        out = np.empty((len(labels), 1 + K))
        PASSES.group_sums(np.ascontiguousarray(labels), values, out)
        return out

    def _numbers_of(self, n):
        return _case_numbers(n)

    def _costliest(self, labels, costs, run, most):
        return costliest(labels[run], costs[run], most, self.masses)

    def _drawn(self, chances, uniforms):
        cases = np.empty((len(chances), uniforms.shape[-1]), np.int64)
        PASSES.draw(*map(np.ascontiguousarray, (chances, uniforms)), cases)
        return cases

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
