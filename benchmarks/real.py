"""Tables with known classes beside scikit-learn: ``python -m benchmarks real FOLDER``.

Each table of numbers is clustered twice: as ``rskc.Preparer`` makes it, and with what is usual for
the others, logarithms of amounts and columns of unit variance. Missing cells are those of the
column's mean for scikit-learn. What is printed are adjusted Rand indices against the classes.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from benchmarks.declare import Rows, and_mean, benchmark
from rskc import Preparer, RobustSparseKMeans
from rskc.files import Table, TableError, read_table
from rskc.selection import Stability

# Numbers above this are amounts or intensities; below 1 such numbers are noise of the scanner.
AMOUNTS, FLOOR = 100.0, 1.0
# The least cluster of HDBSCAN: its default is 5.
SMALLEST = 5

Labels = Callable[[np.ndarray, int], np.ndarray]

# Mixtures have diagonal covariances: there are more features than cases.
K_GIVEN: dict[str, Labels] = {
    "rskc": lambda X, K: RobustSparseKMeans(K, random_state=0).fit(X).labels_,
    "K-means": lambda X, K: KMeans(K, n_init=10, random_state=0).fit_predict(_filled(X)),
    "mixture": lambda X, K: GaussianMixture(
        K, covariance_type="diag", n_init=10, reg_covar=1e-3, random_state=0
    ).fit_predict(_filled(X)),
    "Ward": lambda X, K: AgglomerativeClustering(K).fit_predict(_filled(X)),
}
NOTHING_GIVEN: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "rskc": lambda X: (
        Stability(RobustSparseKMeans(random_state=0), random_state=0, n_jobs=1, progress=False)
        .fit(X)
        .best_estimator_.labels_
    ),
    "HDBSCAN": lambda X: HDBSCAN(min_cluster_size=SMALLEST, copy=True).fit_predict(_filled(X)),
}
PREPARED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "logarithms and unit variance": lambda X: unit_variance(X),
    "rskc.Preparer": lambda X: np.asarray(Preparer().fit_transform(X)),
}


def published(folder: Path) -> Iterator[tuple[str, Table | TableError]]:
    """Read all tables of a folder with no option; one that is refused is its error."""
    for path in sorted(folder.iterdir()):
        try:
            yield path.name.partition(".")[0], read_table(path, text_columns="categories")
        except TableError as error:
            yield path.name, error


def unit_variance(X: np.ndarray) -> np.ndarray:
    """Take logarithms of amounts, and standardize the columns that vary."""
    if np.nanmax(X) > AMOUNTS:
        X = np.log(np.maximum(X, FLOOR))
    spread = np.nanstd(X, axis=0)
    return ((X - np.nanmean(X, axis=0)) / np.where(spread > 0, spread, 1))[:, spread > 0]


def _filled(X: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(X), np.nanmean(X, axis=0), X)


RIVALS = [*K_GIVEN, *(f"{name}, nothing given" for name in NOTHING_GIVEN)]


@benchmark(
    "Tables of {folder}",
    " | ".join(["table", "classes", *(f"{name} {{:.3f}}" for name in RIVALS), "K found"]),
)
def real(folder: Path) -> Rows:
    for preparation in PREPARED:
        yield from and_mean(_indices(folder, preparation), f"mean, {preparation}")


def _indices(folder: Path, preparation: str) -> Rows:
    for name, table in published(folder):
        if not isinstance(table, Table) or table.labels is None or table.categories:
            continue
        X, K = PREPARED[preparation](np.asarray(table.data, float)), len(set(table.labels))
        partitions = [labels(X, K) for labels in K_GIVEN.values()]
        partitions += [labels(X) for labels in NOTHING_GIVEN.values()]
        indices = [adjusted_rand_score(table.labels, labels) for labels in partitions]
        n_found = len(np.unique(partitions[len(K_GIVEN)]))
        yield name, str(K), *indices, str(n_found)
