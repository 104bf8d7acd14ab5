"""Tables with known classes beside scikit-learn: ``python -m benchmarks real FOLDER``.

Each table of numbers is clustered twice: as ``rskc.Preparer`` makes it, and with what is usual for
the others, logarithms of amounts and columns of unit variance. Missing cells are those of the
column's mean for scikit-learn. What is printed are adjusted Rand indices against the classes.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from benchmarks.timing import print_table
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


def main(folders: Iterable[Path] = ()) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for folder in folders:
            for preparation in PREPARED:
                _judge(folder, preparation)


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


def _judge(folder: Path, preparation: str) -> None:
    rows, indices = [], []
    for name, table in published(folder):
        if not isinstance(table, Table) or table.labels is None or table.categories:
            continue
        X = PREPARED[preparation](np.asarray(table.data, float))
        K = len(set(table.labels))
        partitions = [labels(X, K) for labels in K_GIVEN.values()]
        partitions += [labels(X) for labels in NOTHING_GIVEN.values()]
        indices.append([adjusted_rand_score(table.labels, labels) for labels in partitions])
        n_found = len(np.unique(partitions[len(K_GIVEN)]))
        shown = [f"{index:.3f}" for index in indices[-1]]
        rows.append((name, str(K), *shown[: len(K_GIVEN)], str(n_found), *shown[len(K_GIVEN) :]))
    means = [f"{mean:.3f}" for mean in np.mean(indices, axis=0)] if rows else []
    rows.append(("mean", "", *means[: len(K_GIVEN)], "", *means[len(K_GIVEN) :]))
    nothing = [f"{name}, nothing given" for name in NOTHING_GIVEN]
    header = ("table", "classes", *K_GIVEN, "K found", *nothing)
    print_table(f"{folder.name}, {preparation}", header, rows)
