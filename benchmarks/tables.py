"""Real tables with known classes, nothing given: ``python -m benchmarks.tables FOLDER``.

A table is a CSV file with the classes in a column ``label``; other columns of text are left out.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.timing import print_table
from rskc import RobustSparseKMeans
from rskc.metrics import classification_error_rate
from rskc.preprocessing.standardizers import RowStandardizer
from rskc.selection import Stability

# Intensities of microarrays: logarithms, and rows standardized, as is usual.
INTENSITIES = ("golub", "alon")


def main(folder: str) -> None:
    rows = []
    for file in sorted(Path(folder).glob("*.csv*")):
        frame = pd.read_csv(file)
        if "label" in frame:
            rows += _measure(file.name.partition("_")[0], frame)
    header = ("table", "", "classes", "K", "CER", "CER without outliers", "outliers", "features")
    print_table("Real tables, nothing given but what is said", (*header, "seconds"), rows)


def _measure(name: str, frame: pd.DataFrame) -> list[tuple[str, ...]]:
    labels = frame.pop("label").to_numpy()
    X = frame.select_dtypes("number").to_numpy()
    if name in INTENSITIES:
        X = RowStandardizer().fit_transform(np.log(np.maximum(X, 20.0)))
    start = time.perf_counter()
    search = Stability(RobustSparseKMeans(random_state=0), random_state=0, progress=False).fit(X)
    seconds = time.perf_counter() - start
    n_classes = len(np.unique(labels))
    given = RobustSparseKMeans(n_classes, random_state=0).fit(X)
    rows = []
    for how, model in (("nothing given", search.best_estimator_), ("K given", given)):
        kept = ~model.outliers_
        rows.append(
            (
                f"{name} {X.shape[0]} x {X.shape[1]}",
                how,
                str(n_classes),
                str(model.n_clusters),
                f"{classification_error_rate(model.labels_, labels):.3f}",
                f"{classification_error_rate(model.labels_[kept], labels[kept]):.3f}",
                str(np.count_nonzero(model.outliers_)),
                str(int(model.get_support().sum())),
                f"{seconds:.0f}" if model is search.best_estimator_ else "",
            )
        )
    return rows


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main(sys.argv[1])
