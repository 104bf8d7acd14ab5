"""A fit of each method, the same data and seed at every commit: its time, and how good it is."""

import subprocess
import sys

import numpy as np

from rskc import RobustSparseKMeans

METHODS = {
    "K-means": {"trim": 0, "l1_bound": None},
    "trimmed": {"trim": 0.1, "l1_bound": None},
    "sparse": {"trim": 0, "l1_bound": 6},
    "robust and sparse": {"trim": 0.1, "l1_bound": 6},
    "automatic": {},
}


def clusters(n: int, p: int, K: int) -> np.ndarray:
    """K clusters that differ in a tenth of the features, and two outlying cases."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    X[:, : p // 10] += 3 * rng.standard_normal((K, p // 10))[np.arange(n) % K]
    X[:2] += 30
    return X


class Fit:
    params = tuple(METHODS)
    param_names = ("method",)

    def setup(self, method):
        self.X = clusters(300, 300, 4)
        self.model = RobustSparseKMeans(4, random_state=0, n_threads=1, **METHODS[method])

    def time_fit(self, method):
        self.model.fit(self.X)

    def track_objective(self, method):
        return self.model.fit(self.X).objective_


class Large:
    def setup(self):
        self.X = clusters(20_000, 20, 30)
        self.missing = self.X[:2_000].copy()
        self.missing[::3, ::4] = np.nan

    def time_many_clusters(self):
        RobustSparseKMeans(30, trim=0, l1_bound=None, random_state=0).fit(self.X)

    def time_missing_cells(self):
        RobustSparseKMeans(4, trim=0.1, l1_bound=3, random_state=0).fit(self.missing)

    def peakmem_many_clusters(self):
        self.time_many_clusters()


def time_import():
    subprocess.run([sys.executable, "-c", "import rskc"], check=True)
