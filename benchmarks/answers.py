"""Accuracy: the paper's simulation, and outlying cases that resemble one another."""

import warnings

import numpy as np

from benchmarks.timing import print_table
from rskc import RobustSparseKMeans, SmallClusterWarning
from rskc.datasets import make_contaminated, make_simulation
from rskc.metrics import classification_error_rate

METHODS = {
    "K-means": {"trim": 0, "l1_bound": None},
    "trimmed": {"trim": 1 / 60, "l1_bound": None},
    "sparse": {"trim": 0, "l1_bound": 6.2},
    "robust and sparse": {"trim": 1 / 60, "l1_bound": 6.2},
}
# What R's RSKC 2.4.2 gave on data of the same distribution (K-means and trimmed by Lloyd).
RSKC_CER = {
    "K-means": (0.1548, 0.2475, 0.2482),
    "trimmed": (0.1505, 0.1532, 0.1622),
    "sparse": (0.0055, 0.2504, 0.2798),
    "robust and sparse": (0.0048, 0.0061, 0.0160),
}
KINDS = ("shared_cell", "clump_cells", "clump_rows", "far_rows")


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallClusterWarning)
        _simulation()
        _contamination()


def _simulation(replicates: int = 100) -> None:
    rows = []
    for name, options in METHODS.items():
        for model in (0, 1, 2):
            errors, counts = zip(
                *(_one(model, seed, options) for seed in range(replicates)), strict=True
            )
            rows.append(
                (
                    name,
                    ("clean", "outlying cell in noise", "outlying cell in a true feature")[model],
                    f"{np.mean(errors):.4f}",
                    f"{RSKC_CER[name][model]:.4f}",
                    f"{np.mean(counts):.1f}",
                )
            )
    header = ("method", "data", "CER", "CER of RSKC", "non-zero weights")
    print_table(f"The paper's simulation, {replicates} data sets each", header, rows)


def _one(model: int, seed: int, options: dict) -> tuple[float, int]:
    data = make_simulation(model, random_state=seed)
    fitted = RobustSparseKMeans(3, random_state=seed, **options).fit(data.data)
    error = classification_error_rate(fitted.labels_, data.target)
    return error, int(np.count_nonzero(fitted.feature_weights_))


def _contamination(seeds: int = 15) -> None:
    rows = []
    for kind in KINDS:
        errors = [_spoilt(kind, seed) for seed in range(seeds)]
        rows.append((kind, *(f"{column:.3f}" for column in np.mean(errors, axis=0))))
    header = ("outlying cases", "CER of the clean cases", "with the outlying cases removed")
    title = f"60 x 500, 10 true features, 4 outlying cases; trim=.1, l1_bound=3.5, {seeds} seeds"
    print_table(title, header, rows)


def _spoilt(kind: str, seed: int) -> tuple[float, float]:
    data = make_contaminated(kind, random_state=seed)
    model, clean = RobustSparseKMeans(3, l1_bound=3.5, random_state=seed), ~data.outliers
    target = data.target[clean]
    spoilt = classification_error_rate(model.fit(data.data).labels_[clean], target)
    return spoilt, classification_error_rate(model.fit(data.data[clean]).labels_, target)
