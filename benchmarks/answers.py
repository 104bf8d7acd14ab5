"""Accuracy: the paper's simulation, and outlying cases that resemble one another."""

import numpy as np

from benchmarks.declare import Rows, benchmark
from rskc import RobustSparseKMeans
from rskc.datasets import make_contaminated, make_simulation
from rskc.metrics import classification_error_rate

# Parameters, and what R's RSKC 2.4.2 gave on data of the same distribution (K-means and trimmed by
# Lloyd), for each kind of data.
METHODS = {
    "K-means": ({"trim": 0, "l1_bound": None}, (0.1548, 0.2475, 0.2482)),
    "trimmed": ({"trim": 1 / 60, "l1_bound": None}, (0.1505, 0.1532, 0.1622)),
    "sparse": ({"trim": 0, "l1_bound": 6.2}, (0.0055, 0.2504, 0.2798)),
    "robust and sparse": ({"trim": 1 / 60, "l1_bound": 6.2}, (0.0048, 0.0061, 0.0160)),
}
DATA = ("clean", "outlying cell in noise", "outlying cell in a true feature")
KINDS = ("shared_cell", "clump_cells", "clump_rows", "far_rows")


@benchmark(
    "The paper's simulation, {seeds} data sets each",
    "method | data | CER {:.4f} | CER of RSKC {:.4f} | non-zero weights {:.1f}",
)
def simulation(seeds: int = 100) -> Rows:
    for name, (options, theirs) in METHODS.items():
        for number, kind in enumerate(DATA):
            results = []
            for seed in range(seeds):
                data = make_simulation(number, random_state=seed)
                model = RobustSparseKMeans(3, random_state=seed, **options).fit(data.data)
                error = classification_error_rate(model.labels_, data.target)
                results.append((error, np.count_nonzero(model.feature_weights_)))
            error, n_features = np.mean(results, axis=0)
            yield name, kind, error, theirs[number], n_features


@benchmark(
    "60 x 500, 10 true features, 4 outlying cases; trim=.1, l1_bound=3.5, {seeds} seeds",
    "outlying cases | CER of the clean cases {:.3f} | with the outlying cases removed {:.3f}",
)
def contamination(seeds: int = 15) -> Rows:
    for kind in KINDS:
        errors = []
        for seed in range(seeds):
            data = make_contaminated(kind, random_state=seed)
            model = RobustSparseKMeans(3, trim=0.1, l1_bound=3.5, random_state=seed)
            clean, target = ~data.outliers, data.target[~data.outliers]
            partitions = model.fit(data.data).labels_[clean], model.fit(data.data[clean]).labels_
            errors.append([classification_error_rate(labels, target) for labels in partitions])
        yield kind, *np.mean(errors, axis=0)
